//! The encodings that were before UTF-8: which of them a file is in, if that can be told.
//!
//! A wrong guess would put wrong bytes into somebody's file, so a guess counts only when everything in the file agrees
//! with it: every byte is a character, those characters give the same bytes again, and nothing looks like damaged UTF-8.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, WINDOWS_1252};

use super::Unrepresentable;

/// One of the encodings from before UTF-8. In all of them ASCII is ASCII, and no line end is part of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Older {
    encoding: &'static Encoding,
    /// Bytes 0x80 to 0x9F are used, so it is Windows' and not the ISO's form of Latin-1.
    has_high_controls: bool,
}

/// Bytes beyond ASCII from which on a guess other than the Western one counts.
const FOREIGN_BYTES_MIN: usize = 12;

impl Older {
    /// The encoding a whole file is in; `None` when nobody can tell.
    pub fn of(content: &[u8]) -> Option<Self> {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(content, true);
        let encoding = detector.guess(None, Utf8Detection::Deny);
        let text = encoding.decode_without_bom_handling_and_without_replacement(content)?;
        let (again, _, unmappable) = encoding.encode(&text);
        if unmappable || *again != *content || !encoding.is_ascii_compatible() {
            return None;
        }
        let believed = if encoding == WINDOWS_1252 {
            has_words(&text) && !looks_like_utf8(content)
        } else {
            // Elsewhere most letters are beyond ASCII; a few such bytes say nothing.
            !encoding.is_single_byte()
                || content.iter().filter(|byte| !byte.is_ascii()).count() >= FOREIGN_BYTES_MIN
        };
        if !believed {
            return None;
        }
        let has_high_controls = content.iter().any(|byte| (0x80..0xA0).contains(byte));
        Some(Self { encoding, has_high_controls })
    }

    /// The bytes of `text`.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, Unrepresentable> {
        let (bytes, _, unmappable) = self.encoding.encode(text);
        let foreign = self.encoding == WINDOWS_1252
            && !self.has_high_controls
            && bytes.iter().any(|byte| (0x80..0xA0).contains(byte));
        if unmappable || foreign { Err(Unrepresentable) } else { Ok(bytes) }
    }

    /// The text to show for `bytes`.
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        self.encoding.decode_without_bom_handling(bytes).0
    }

    /// A decoder for bytes that come in pieces.
    pub fn decoder(self) -> encoding_rs::Decoder {
        self.encoding.new_decoder_without_bom_handling()
    }

    /// Whether `bytes`, which start with a character, also end with a whole one.
    pub fn ends_whole(self, bytes: &[u8]) -> bool {
        self.encoding.is_single_byte()
            || self.encoding.decode_without_bom_handling_and_without_replacement(bytes).is_some()
    }

    /// What to call it.
    pub fn name(self) -> &'static str {
        self.encoding.name()
    }
}

/// Whether a character beyond ASCII is part of a word somewhere. Stray bytes are not.
fn has_words(text: &str) -> bool {
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let beside = |c: char| c.is_alphabetic() && (c.is_ascii() || !c.is_uppercase());
        // The last letters of Latin-1 are what bytes of no meaning usually look like.
        let counts = !c.is_ascii() && c.is_alphabetic() && !matches!(c, 'ÿ' | 'þ' | 'Þ');
        if counts && (beside(before) || chars.peek().is_some_and(|next| beside(*next))) {
            return true;
        }
        before = c;
    }
    false
}

/// Whether there is a piece of UTF-8 in it, or the byte that is in hardly any Western text.
fn looks_like_utf8(content: &[u8]) -> bool {
    let lead_and_more = |pair: &[u8]| matches!(pair, [0xC2..=0xF4, 0x80..=0xBF]);
    content.contains(&0xFF) || content.windows(2).any(lead_and_more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(content: &[u8]) -> Option<&'static str> {
        Older::of(content).map(Older::name)
    }

    #[test]
    fn encodings_are_named_only_when_the_whole_file_agrees() {
        assert_eq!(name(b"caf\xE9\n"), Some("windows-1252"));
        assert_eq!(name(b"caf\xE9 \x93quoted\x94 \x80 5\nname = old\nna\xEFve\n"), Some("windows-1252"));
        let (sjis, ..) = encoding_rs::SHIFT_JIS.encode("表示テスト\nname = old\n日本語のテキスト\n");
        assert_eq!(name(&sjis), Some("Shift_JIS"));
        let (cyrillic, ..) = encoding_rs::WINDOWS_1251.encode("Привет, мир! Это текст на русском языке.\n");
        assert_eq!(name(&cyrillic), Some("windows-1251"));
        for unclear in
            [&b"ok\n\xFF\xC3(\xF0\x9F\n"[..], b"a \x95\x5C\n", b"\xC3\xA4 \xE9", b"x\xFFy", b"\xA0 \xB7"]
        {
            assert_eq!(name(unclear), None, "{unclear:?}");
        }
    }

    #[test]
    fn what_has_no_bytes_is_not_made_up() {
        let latin = Older::of(b"caf\xE9\n").unwrap();
        assert_eq!(*latin.encode("gr\u{FC}n").unwrap(), *b"gr\xFCn");
        assert_eq!(latin.encode("€"), Err(Unrepresentable), "Latin-1 has none, and this may be Latin-1");
        assert_eq!(latin.encode("漢"), Err(Unrepresentable));
        let windows = Older::of(b"caf\xE9 \x93quoted\x94\n").unwrap();
        assert_eq!(*windows.encode("€").unwrap(), *b"\x80");
    }
}
