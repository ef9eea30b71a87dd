//! What shows that a line is still as it was written. Thinking is bound to every word that stood in front of it, so that a
//! server refuses it behind words that became others; whoever reads a record has to know that before anything is sent.
//!
//! It goes by what a line says: programs that copy records, or keep their values, write the same with other escapes, blanks and
//! orders of fields.

use uuid::Uuid;

/// Letters that stand for the content, and behind them those that stand for the line it follows.
const CONTENT_CHARS: usize = 16;
const PARENT_CHARS: usize = 8;

/// Stands for content that was not to be written down as it was said.
const HIDDEN: &str = "hidden----------";

/// Whether what was said is what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    AsSaid,
    /// A secret is not.
    InPart,
}

/// What a line of the conversation is written with.
pub(super) fn proof(kind: &str, content: &[u8], parent: Option<Uuid>, written: Written) -> String {
    let of_content = match written {
        Written::AsSaid => format!("{:016x}", sum_of(kind, content)),
        Written::InPart => HIDDEN.to_owned(),
    };
    of_content + &of_parent(parent)
}

/// What a line was written with, as far as it can be read.
pub(super) struct Proof<'a>(pub &'a str);

impl Proof<'_> {
    /// Whether somebody said exactly that.
    pub fn is_of(&self, kind: &str, content: &str) -> bool {
        let sum = sum_of(kind, content.as_bytes());
        self.0.get(..CONTENT_CHARS) == Some(&*format!("{sum:016x}"))
    }

    /// Whether something was said that is not written.
    pub fn hides_something(&self) -> bool {
        self.0.get(..CONTENT_CHARS) == Some(HIDDEN)
    }

    /// Whether it was said behind that line, or behind none.
    pub fn follows(&self, parent: Option<Uuid>) -> bool {
        self.0.get(CONTENT_CHARS..) == Some(&*of_parent(parent))
    }
}

fn of_parent(parent: Option<Uuid>) -> String {
    let mut sum = Sum::default();
    sum.add(parent.unwrap_or_default().as_bytes());
    let mut letters = format!("{:016x}", sum.end());
    letters.truncate(PARENT_CHARS);
    letters
}

/// Objects and lists within others that are looked into; what lies deeper goes by its letters.
const LEVELS_MAX: usize = 128;

/// The sum of what JSON says: its texts without their escapes, nothing of the blanks around them, and fields in any order.
fn sum_of(kind: &str, json: &[u8]) -> u64 {
    let mut sum = Sum::default();
    sum.add(kind.as_bytes());
    let mut left = json.trim_ascii();
    while !left.is_empty() {
        let (of_value, behind) = sum_of_value(left, LEVELS_MAX);
        sum.mix(of_value);
        left = behind.trim_ascii_start();
    }
    sum.end()
}

/// The sum of the value that stands first, and what is left behind it: less than there was, unless that was nothing.
fn sum_of_value(json: &[u8], levels: usize) -> (u64, &[u8]) {
    let json = json.trim_ascii_start();
    let Some((&first, inside)) = json.split_first() else { return (0, &[]) };
    let mut sum = Sum::default();
    if !is_of_number(first) {
        sum.add(&[first]);
    }
    let left = match first {
        b'"' => add_text(&mut sum, inside),
        b'[' | b'{' if levels == 0 => {
            sum.add(inside);
            &[]
        }
        b'[' => add_all(inside, b']', |json| {
            let (item, left) = sum_of_value(json, levels - 1);
            sum.mix(item);
            left
        }),
        b'{' => {
            let mut fields = 0_u64;
            let left = add_all(inside, b'}', |json| {
                let (name, left) = sum_of_value(json, levels - 1);
                let left = left.trim_ascii_start();
                let (value, left) = sum_of_value(left.strip_prefix(b":").unwrap_or(left), levels - 1);
                let mut field = Sum::default();
                field.mix(name);
                field.mix(value);
                fields = fields.wrapping_add(field.end());
                left
            });
            sum.mix(fields);
            left
        }
        _ => {
            let is_over = |byte: &u8| matches!(byte, b',' | b':' | b']' | b'}') || byte.is_ascii_whitespace();
            let end = inside.iter().position(is_over).unwrap_or(inside.len());
            match is_of_number(first) {
                true => add_number(&mut sum, &json[..=end]),
                false => sum.add(&inside[..end]),
            }
            &inside[end..]
        }
    };
    (sum.end(), left)
}

/// Whether a number begins with it.
fn is_of_number(first: u8) -> bool {
    first == b'-' || first.is_ascii_digit()
}

/// Adds a number by what it is worth: whoever reads numbers and writes them again writes 1 for 1.0, and 100000 for 1e5.
fn add_number(sum: &mut Sum, letters: &[u8]) {
    match str::from_utf8(letters).ok().and_then(|letters| letters.parse::<f64>().ok()) {
        Some(0.0) => sum.mix(0),
        Some(worth) => sum.mix(worth.to_bits()),
        None => sum.add(letters),
    }
}

/// Takes what stands in brackets, part by part, and gives what is left behind them.
fn add_all<'a>(json: &'a [u8], end: u8, mut add: impl FnMut(&'a [u8]) -> &'a [u8]) -> &'a [u8] {
    let mut left = json.trim_ascii_start();
    while !left.is_empty() {
        if let Some(behind) = left.strip_prefix(&[end]) {
            return behind;
        }
        left = add(left).trim_ascii_start();
        left = left.strip_prefix(b",").unwrap_or(left).trim_ascii_start();
    }
    left
}

/// Adds what stands up to the quote that ends a text, and gives what is left behind it.
fn add_text<'a>(sum: &mut Sum, json: &'a [u8]) -> &'a [u8] {
    let mut left = json;
    while let Some(at) = memchr::memchr2(b'"', b'\\', left) {
        sum.add(&left[..at]);
        if left[at] == b'"' {
            return &left[at + 1..];
        }
        left = add_escaped(sum, &left[at + 1..]);
    }
    sum.add(left);
    &[]
}

/// Adds what a backslash stands for, which was just read.
fn add_escaped<'a>(sum: &mut Sum, json: &'a [u8]) -> &'a [u8] {
    let Some((&letter, left)) = json.split_first() else { return json };
    let plain = match letter {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return add_numbered(sum, left),
        letter => letter,
    };
    sum.add(&[plain]);
    left
}

/// The same for a letter by its number, of which one beyond 65,535 has two.
fn add_numbered<'a>(sum: &mut Sum, json: &'a [u8]) -> &'a [u8] {
    let number = |json: &[u8]| u32::from_str_radix(str::from_utf8(json.get(..4)?).ok()?, 16).ok();
    let Some(first) = number(json) else { return json };
    let left = &json[4..];
    let second =
        left.strip_prefix(br"\u").and_then(number).filter(|second| (0xdc00..0xe000).contains(second));
    let (number, left) = match second.filter(|_| (0xd800..0xdc00).contains(&first)) {
        Some(second) => (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), &left[6..]),
        None => (first, left),
    };
    match char::from_u32(number) {
        Some(letter) => sum.add(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        // Half a letter: no text has its bytes.
        None => sum.add(&[0xff, (number >> 8) as u8, number as u8]),
    }
    left
}

/// A sum of bytes that damage changes, whatever parts they come in. Nobody is kept from writing another line with its own sum,
/// so it need not be hard to make; it is made for every line that is written, so it has to be quick. It stands in files: it must
/// stay what it is.
#[derive(Default)]
struct Sum {
    sum: u64,
    /// Bytes that are no whole word yet, and how many there were in all.
    held: [u8; 8],
    count: u64,
}

impl Sum {
    /// Odd, and half of its bits are set.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    fn add(&mut self, mut bytes: &[u8]) {
        let held = (self.count % 8) as usize;
        self.count += bytes.len() as u64;
        if held > 0 {
            let (first, rest) = bytes.split_at(bytes.len().min(8 - held));
            self.held[held..held + first.len()].copy_from_slice(first);
            bytes = rest;
            if held + first.len() < 8 {
                return;
            }
            self.mix(u64::from_le_bytes(self.held));
        }
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        self.held[..rest.len()].copy_from_slice(rest);
    }

    fn mix(&mut self, word: u64) {
        let mixed = (self.sum ^ word).wrapping_mul(Self::FACTOR);
        self.sum = mixed ^ (mixed >> 29);
    }

    fn end(mut self) -> u64 {
        self.held[(self.count % 8) as usize..].fill(0);
        self.mix(u64::from_le_bytes(self.held));
        self.mix(self.count);
        self.mix(Self::FACTOR);
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAID: &str = r#"[{"type":"text","text":"Grüße, \"du\"","n":[1,2.5,true,null,-0.0,100000]}]"#;

    #[test]
    fn what_means_the_same_is_the_same() {
        let parent = Some(Uuid::from_u128(7));
        let written = proof("user", SAID.as_bytes(), parent, Written::AsSaid);
        let again = "[ {\"n\": [1.0, 25e-1, true, null, 0, 1e5],\n \"text\": \"Gr\\u00fc\\u00dfe, \\\"du\\\"\", \"type\": \"text\"} ]";
        assert!(Proof(&written).is_of("user", SAID) && Proof(&written).is_of("user", again));
        assert!(Proof(&written).follows(parent) && !Proof(&written).follows(None));
    }

    #[test]
    fn every_other_letter_is_something_else() {
        let written = proof("user", SAID.as_bytes(), None, Written::AsSaid);
        assert!(!Proof(&written).is_of("assistant", SAID));
        for (at, letter) in SAID.char_indices() {
            let mut other = SAID.to_owned();
            other.replace_range(at..at + letter.len_utf8(), if letter == '7' { "8" } else { "7" });
            assert!(!Proof(&written).is_of("user", &other), "{other}");
        }
        for damaged in ["", "0123", "nonsense that is long enough", "ü"] {
            assert!(!Proof(damaged).is_of("user", SAID) && !Proof(damaged).follows(None), "{damaged}");
        }
    }

    #[test]
    fn what_is_hidden_has_its_place_and_no_words() {
        let parent = Some(Uuid::from_u128(7));
        let written = proof("user", SAID.as_bytes(), parent, Written::InPart);
        assert!(Proof(&written).hides_something() && Proof(&written).follows(parent));
        assert!(!Proof(&written).is_of("user", SAID));
    }

    /// As other programs write it: all letters beyond ASCII by their numbers, and blanks everywhere.
    fn written_otherwise(texts: &[String]) -> String {
        let escaped = |letter: char| match letter {
            '"' => "\\\"".to_owned(),
            '\\' => r"\\".to_owned(),
            ' '..='~' => letter.to_string(),
            _ => letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
        };
        let texts: Vec<String> = texts
            .iter()
            .map(|text| format!("\"{}\"", text.chars().map(escaped).collect::<String>()))
            .collect();
        format!(" [ {} ]\n", texts.join(" , "))
    }

    proptest! {
        #[test]
        fn however_it_is_written_it_says_the_same(texts: Vec<String>) {
            let (plain, otherwise) = (serde_json::to_string(&texts).unwrap(), written_otherwise(&texts));
            prop_assert_eq!(sum_of("user", plain.as_bytes()), sum_of("user", otherwise.as_bytes()));
        }

        #[test]
        fn other_texts_say_something_else(texts: Vec<String>, others: Vec<String>) {
            prop_assume!(texts != others);
            let [one, other] = [texts, others].map(|texts| serde_json::to_vec(&texts).unwrap());
            prop_assert_ne!(sum_of("user", &one), sum_of("user", &other));
        }

        #[test]
        fn any_bytes_have_a_sum(bytes: Vec<u8>, at in 0_usize..200) {
            let mut parts = Sum::default();
            let (first, rest) = bytes.split_at(at.min(bytes.len()));
            parts.add(first);
            parts.add(rest);
            let mut whole = Sum::default();
            whole.add(&bytes);
            prop_assert_eq!(parts.end(), whole.end());
            sum_of("user", &bytes);
        }

        #[test]
        fn anything_that_looks_like_json_has_a_sum(json in r#"[\[\]{}:," \\u1e\n]{0,40}"#, levels in 0_usize..300) {
            sum_of("user", json.as_bytes());
            sum_of("user", ("[".repeat(levels) + &json).as_bytes());
        }
    }
}
