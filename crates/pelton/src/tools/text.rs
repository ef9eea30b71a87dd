//! Bytes of a file as text: which encoding they are in, and how to show them.

mod older; // what was before UTF-8

use std::borrow::Cow;

pub use older::Older;

/// How a file's bytes stand for characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8,
    /// UTF-16 with the low byte first, as its byte order mark says.
    Utf16Le,
    /// UTF-16 with the high byte first, as its byte order mark says.
    Utf16Be,
    /// An older encoding that the whole file agrees with.
    Older(Older),
    /// Text in which ASCII is ASCII and the rest is not UTF-8: one of the many older encodings, or damage.
    /// Nobody can tell which, so bytes beyond ASCII are kept and never made.
    AsciiAndUnknown,
}

/// A text that a file's encoding cannot hold, as far as we can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unrepresentable;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const UTF16_LE_MARK: &[u8] = b"\xFF\xFE";
const UTF16_BE_MARK: &[u8] = b"\xFE\xFF";
const UTF32_LE_MARK: &[u8] = b"\xFF\xFE\0\0";

/// Characters beyond ASCII for each damaged place, so that a file still counts as UTF-8.
const CHARACTERS_PER_DAMAGE_MIN: usize = 4;

/// Bytes at the start of a file that decide whether it is text.
pub const SNIFFED_BYTES: usize = 8 * 1024;

/// Bytes at the start of a file that decide how it is shown.
pub const SHOWN_BY_BYTES: usize = 1024 * 1024;

impl Encoding {
    /// The encoding a byte order mark names, or UTF-8 as a first guess; `None` for a file that is not text.
    pub fn sniff(head: &[u8]) -> Option<Self> {
        let head = &head[..head.len().min(SNIFFED_BYTES)];
        if head.starts_with(UTF32_LE_MARK) {
            None
        } else if head.starts_with(UTF16_LE_MARK) {
            Some(Self::Utf16Le)
        } else if head.starts_with(UTF16_BE_MARK) {
            Some(Self::Utf16Be)
        } else {
            (!head.contains(&0)).then_some(Self::Utf8)
        }
    }

    /// The encoding of a file that is at hand as a whole; `None` when it is not text.
    pub fn of(content: &[u8]) -> Option<Self> {
        match Self::sniff(content)? {
            Self::Utf8 if !is_mostly_utf8(content) => {
                Some(Older::of(content).map_or(Self::AsciiAndUnknown, Self::Older))
            }
            encoding => Some(encoding),
        }
    }

    /// The encoding to show a file in of which this is the beginning; `None` when it is not text.
    pub fn of_head(head: &[u8]) -> Option<Self> {
        let head = &head[..head.len().min(SHOWN_BY_BYTES)];
        let whole_lines = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..=end]);
        // The end of the piece may be in the middle of a character.
        Self::of(if head.len() == SHOWN_BY_BYTES { whole_lines } else { head })
    }

    /// The length of the byte order mark that `head` starts with.
    pub fn mark_bytes(self, head: &[u8]) -> usize {
        match self {
            Self::Utf8 | Self::AsciiAndUnknown if head.starts_with(UTF8_MARK) => UTF8_MARK.len(),
            Self::Utf8 | Self::Older(_) | Self::AsciiAndUnknown => 0,
            Self::Utf16Le | Self::Utf16Be => UTF16_LE_MARK.len(),
        }
    }

    /// Bytes of the smallest piece a character is made of. Matches start only at multiples of it.
    pub fn unit_bytes(self) -> usize {
        match self {
            Self::Utf8 | Self::Older(_) | Self::AsciiAndUnknown => 1,
            Self::Utf16Le | Self::Utf16Be => 2,
        }
    }

    /// An ASCII character in this encoding; the second byte counts only when units have two.
    pub fn ascii_unit(self, c: u8) -> [u8; 2] {
        match self {
            Self::Utf8 | Self::Older(_) | Self::AsciiAndUnknown | Self::Utf16Le => [c, 0],
            Self::Utf16Be => [0, c],
        }
    }

    /// The bytes of `text`, without a byte order mark.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, Unrepresentable> {
        match self {
            Self::Utf8 => Ok(Cow::Borrowed(text.as_bytes())),
            Self::AsciiAndUnknown if text.is_ascii() => Ok(Cow::Borrowed(text.as_bytes())),
            Self::AsciiAndUnknown => Err(Unrepresentable),
            Self::Older(older) => older.encode(text),
            Self::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        }
    }

    /// The text to show for `bytes`, which start on a unit; what is not a character becomes U+FFFD. A byte order mark
    /// is not taken off.
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Utf8 | Self::AsciiAndUnknown => String::from_utf8_lossy(bytes),
            Self::Older(older) => older.decode(bytes),
            Self::Utf16Le | Self::Utf16Be => {
                let mut decoder = Decoder::new(self);
                let mut text = Vec::new();
                decoder.feed(bytes, &mut text);
                decoder.finish(&mut text);
                String::from_utf8_lossy(&text).into_owned().into()
            }
        }
    }

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Older(older) => older.name(),
            Self::AsciiAndUnknown => "not UTF-8",
        }
    }
}

/// Whether bytes are UTF-8, or UTF-8 with a few damaged places. Text in another encoding looks different: hardly any of
/// its bytes beyond ASCII make a character.
fn is_mostly_utf8(content: &[u8]) -> bool {
    if std::str::from_utf8(content).is_ok() {
        return true;
    }
    let (mut characters, mut damaged) = (0, 0);
    for chunk in content.utf8_chunks() {
        characters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        damaged += usize::from(!chunk.invalid().is_empty());
    }
    characters >= damaged * CHARACTERS_PER_DAMAGE_MIN
}

/// Turns a file's bytes, in pieces, into UTF-8 bytes. UTF-8 and unknown bytes go through as they are; the byte order
/// mark is left out.
pub enum Decoder {
    /// Nothing to do.
    Through,
    /// Units of two bytes.
    Utf16 {
        /// The high byte comes first.
        big_endian: bool,
        /// Bytes of a unit or of a surrogate pair whose rest has not come: at most three.
        held: Vec<u8>,
    },
    /// An older encoding.
    Older(Box<encoding_rs::Decoder>),
}

impl Decoder {
    /// A decoder for bytes after the byte order mark.
    pub fn new(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Utf8 | Encoding::AsciiAndUnknown => Self::Through,
            Encoding::Utf16Le => Self::Utf16 { big_endian: false, held: Vec::new() },
            Encoding::Utf16Be => Self::Utf16 { big_endian: true, held: Vec::new() },
            Encoding::Older(older) => Self::Older(Box::new(older.decoder())),
        }
    }

    /// Decodes the next piece onto `text`.
    pub fn feed(&mut self, piece: &[u8], text: &mut Vec<u8>) {
        match self {
            Self::Through => text.extend_from_slice(piece),
            Self::Utf16 { big_endian, held } => {
                held.extend_from_slice(piece);
                let unit = |pair: [u8; 2]| {
                    if *big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
                };
                let (pairs, odd) = held.as_chunks::<2>();
                let mut units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
                let mut rest = odd.to_vec();
                // A first half waits for its second.
                if units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit)) {
                    units.pop();
                    rest = held[units.len() * 2..].to_vec();
                }
                for c in char::decode_utf16(units) {
                    let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                    text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                *held = rest;
            }
            Self::Older(decoder) => decode_older(decoder, piece, false, text),
        }
    }

    /// Decodes what is left when nothing more comes.
    pub fn finish(&mut self, text: &mut Vec<u8>) {
        match self {
            Self::Through => {}
            Self::Utf16 { held, .. } => {
                if !held.is_empty() {
                    held.clear();
                    text.extend_from_slice(char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
            Self::Older(decoder) => decode_older(decoder, b"", true, text),
        }
    }
}

fn decode_older(decoder: &mut encoding_rs::Decoder, piece: &[u8], last: bool, text: &mut Vec<u8>) {
    // More than that would not be text any more, so an answer that cannot be had changes nothing.
    let room = decoder.max_utf8_buffer_length(piece.len()).unwrap_or(piece.len());
    let mut decoded = String::with_capacity(room);
    // The room is enough for all of it.
    let _ = decoder.decode_to_string(piece, &mut decoded, last);
    text.extend_from_slice(decoded.as_bytes());
}

/// The first `chars_max` characters of a text, and how many more there were.
pub fn cut(text: &str, chars_max: usize) -> (&str, usize) {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
        None => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(Encoding::of(b"abc\n"), Some(Encoding::Utf8));
        assert_eq!(Encoding::of("\u{FEFF}äöü".as_bytes()), Some(Encoding::Utf8));
        assert!(matches!(Encoding::of(b"caf\xE9"), Some(Encoding::Older(_))));
        assert_eq!(Encoding::of(b"x \xFF"), Some(Encoding::AsciiAndUnknown));
        assert_eq!(Encoding::of("äöüßé\u{FEFF}\n".as_bytes()), Some(Encoding::Utf8));
        assert_eq!(
            Encoding::of(b"\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4 \xE9"),
            Some(Encoding::Utf8),
            "a little damage"
        );
        assert_eq!(Encoding::of(b"\xC3\xA4 \xE9"), Some(Encoding::AsciiAndUnknown));
        assert_eq!(Encoding::of(b"\xFF\xFEa\0"), Some(Encoding::Utf16Le));
        assert_eq!(Encoding::of(b"\xFE\xFF\0a"), Some(Encoding::Utf16Be));
        assert_eq!(Encoding::of(b"\xFF\xFE\0\0a\0\0\0"), None);
        assert_eq!(Encoding::of(b"ELF\0"), None);
    }

    #[test]
    fn utf16_is_the_same_text_however_it_is_cut() {
        let text = "aé漢𝄞\r\nz";
        for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
            let bytes = encoding.encode(text).unwrap();
            assert_eq!(encoding.decode(&bytes), text);
            for size in 1..bytes.len() {
                let (mut decoder, mut out) = (Decoder::new(encoding), Vec::new());
                bytes.chunks(size).for_each(|piece| decoder.feed(piece, &mut out));
                decoder.finish(&mut out);
                assert_eq!(String::from_utf8(out).unwrap(), text, "{size}");
            }
        }
    }

    #[test]
    fn half_characters_are_shown_as_such() {
        assert_eq!(Encoding::Utf16Le.decode(b"a\0\x00\xD8"), "a\u{FFFD}");
        assert_eq!(Encoding::Utf16Le.decode(b"a\0b"), "a\u{FFFD}");
        assert_eq!(Encoding::Utf16Le.decode(b"\x00\xDCa\0"), "\u{FFFD}a");
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!(cut("äöü", 2), ("äö", 1));
        assert_eq!(cut("äöü", 3), ("äöü", 0));
    }
}
