//! What shows that a line is still as it was written. Thinking is bound to every word that stood in front of it, so that a
//! server refuses it behind words that became others; whoever reads a record has to know that before anything is sent.
//!
//! It goes by what a line means: programs that copy records write the same with other escapes, blanks and orders of fields.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use uuid::Uuid;

/// Letters that stand for the content, and behind them those that stand for the line it follows.
const CONTENT_CHARS: usize = 16;
const PARENT_CHARS: usize = 8;

/// Levels of JSON that are looked into: as many as are read elsewhere.
const LEVELS_MAX: usize = 128;

/// What a line of the conversation is written with; nothing for content that is no JSON.
pub(super) fn proof(kind: &str, content: &[u8], parent: Option<Uuid>) -> Option<String> {
    let of_content = sum_of(kind, content)?;
    Some(format!("{of_content:016x}{}", of_parent(parent)))
}

/// What a line was written with, as far as it can be read.
pub(super) struct Proof<'a>(pub &'a str);

impl Proof<'_> {
    /// Whether somebody said exactly that.
    pub fn is_of(&self, kind: &str, content: &str) -> bool {
        let sum = sum_of(kind, content.as_bytes());
        sum.is_some_and(|sum| self.0.get(..CONTENT_CHARS) == Some(&*format!("{sum:016x}")))
    }

    /// Whether it was said behind that line, or behind none.
    pub fn follows(&self, parent: Option<Uuid>) -> bool {
        self.0.get(CONTENT_CHARS..) == Some(&*of_parent(parent))
    }
}

fn of_parent(parent: Option<Uuid>) -> String {
    let sum = Sum::new(b'p').with_bytes(parent.unwrap_or_default().as_bytes()).end();
    format!("{sum:016x}")[..PARENT_CHARS].to_owned()
}

fn sum_of(kind: &str, content: &[u8]) -> Option<u64> {
    let mut json = serde_json::Deserializer::from_slice(content);
    let content = Meaning { levels: LEVELS_MAX }.deserialize(&mut json).ok()?;
    json.end().ok()?;
    Some(Sum::new(b'l').with_bytes(kind.as_bytes()).with(content).end())
}

/// A sum that damage changes. Nobody is kept from writing another line with its own sum, so it need not be hard to
/// make; it is made for every line that is written, so it has to be quick. It stands in files: it must stay what it is.
#[derive(Clone, Copy)]
struct Sum(u64);

impl Sum {
    /// Odd, and half of its bits are set.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    fn new(tag: u8) -> Self {
        Self(u64::from(tag)).with(Self::FACTOR)
    }

    fn with(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(Self::FACTOR);
        Self(mixed ^ (mixed >> 29))
    }

    fn with_bytes(self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(8);
        let mut sum = self;
        for word in &mut words {
            sum = sum.with(word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        }
        let rest = words.remainder().iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        sum.with(rest).with(bytes.len() as u64)
    }

    fn end(self) -> u64 {
        self.with(Self::FACTOR).0
    }
}

/// Sums up JSON by what it means, without a copy of it.
#[derive(Clone, Copy)]
struct Meaning {
    levels: usize,
}

impl Meaning {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1).ok_or_else(|| E::custom("too many levels"))?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Meaning {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<u64, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Meaning {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(Sum::new(b'n').end())
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<u64, E> {
        Ok(Sum::new(b'b').with(u64::from(is)).end())
    }

    // Only what is below zero comes here.
    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        Ok(Sum::new(b'i').with(number.unsigned_abs()).end())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(Sum::new(b'u').with(number).end())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        Ok(Sum::new(b'f').with(number.to_bits()).end())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        Ok(Sum::new(b's').with_bytes(text.as_bytes()).end())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut sum = Sum::new(b'a');
        while let Some(item) = items.next_element_seed(self.inside()?)? {
            sum = sum.with(item);
        }
        Ok(sum.end())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<u64, A::Error> {
        // Added up: in whatever order they come.
        let mut all = 0_u64;
        while let Some(name) = fields.next_key_seed(self.inside()?)? {
            let value = fields.next_value_seed(self.inside()?)?;
            all = all.wrapping_add(Sum::new(b'f').with(name).with(value).end());
        }
        Ok(Sum::new(b'o').with(all).end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = r#"[{"type":"text","text":"Grüße, \"du\"","n":[1,2.5,true,null]}]"#;

    #[test]
    fn what_means_the_same_is_the_same() {
        let parent = Some(Uuid::from_u128(7));
        let written = proof("user", SAID.as_bytes(), parent).unwrap();
        let again = "[ {\"n\": [1, 2.5, true, null], \"text\": \"Gr\\u00fc\\u00dfe, \\\"du\\\"\", \"type\": \"text\"} ]";
        assert!(Proof(&written).is_of("user", SAID) && Proof(&written).is_of("user", again));
        assert!(Proof(&written).follows(parent) && !Proof(&written).follows(None));
    }

    #[test]
    fn every_other_letter_is_something_else() {
        let written = proof("user", SAID.as_bytes(), None).unwrap();
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
    fn what_is_no_json_or_too_deep_has_none() {
        assert_eq!(proof("user", b"[", None), None);
        assert_eq!(proof("user", "[".repeat(100_000).as_bytes(), None), None);
    }
}
