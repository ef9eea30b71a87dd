//! What shows that a line is still as it was written. Thinking is bound to every word that stood in front of it, so that a
//! server refuses it behind words that became others; whoever reads a record has to know that before anything is sent.
//!
//! It goes by what a line means: programs that copy records write the same with other escapes, blanks and orders of fields.

use std::borrow::Cow;
use std::fmt;

use ring::digest::{Context, SHA256, digest};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use uuid::Uuid;

/// Letters that stand for the content, and behind them those that stand for the line it follows.
const CONTENT_CHARS: usize = 16;
const PARENT_CHARS: usize = 8;

/// Levels of JSON that are looked into: as many as are read elsewhere.
const LEVELS_MAX: usize = 128;

type Hash = [u8; 32];

/// Stands for content that was not to be written down as it was said.
const HIDDEN: &str = "hidden----------";

/// Whether what was said is what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    AsSaid,
    /// A secret is not.
    InPart,
}

/// What a line of the conversation is written with; nothing for content that is no JSON.
pub(super) fn proof(kind: &str, content: &[u8], parent: Option<Uuid>, written: Written) -> Option<String> {
    let of_content = match written {
        Written::AsSaid => letters(&content_hash(kind, content)?, CONTENT_CHARS),
        Written::InPart => HIDDEN.to_owned(),
    };
    Some(of_content + &of_parent(parent))
}

/// What a line was written with, as far as it can be read.
pub(super) struct Proof<'a>(pub &'a str);

impl Proof<'_> {
    /// Whether somebody said exactly that.
    pub fn is_of(&self, kind: &str, content: &str) -> bool {
        let hash = content_hash(kind, content.as_bytes());
        hash.is_some_and(|hash| self.0.get(..CONTENT_CHARS) == Some(&*letters(&hash, CONTENT_CHARS)))
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
    let id = parent.unwrap_or_default();
    letters(digest(&SHA256, id.as_bytes()).as_ref(), PARENT_CHARS)
}

fn content_hash(kind: &str, content: &[u8]) -> Option<Hash> {
    let mut json = serde_json::Deserializer::from_slice(content);
    let content = Meaning { levels: LEVELS_MAX }.deserialize(&mut json).ok()?;
    json.end().ok()?;
    Some(hash(b'l', &[kind.as_bytes(), b"\0", &content]))
}

fn letters(hash: &[u8], count: usize) -> String {
    hash.iter().take(count / 2).map(|byte| format!("{byte:02x}")).collect()
}

fn hash(kind: u8, parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    context.update(&[kind]);
    parts.iter().for_each(|part| context.update(part));
    let mut hash = Hash::default();
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Hashes JSON by what it means, without a copy of it.
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
    type Value = Hash;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Hash, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Meaning {
    type Value = Hash;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Hash, E> {
        Ok(hash(b'n', &[]))
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<Hash, E> {
        Ok(hash(b'b', &[&[u8::from(is)]]))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Hash, E> {
        Ok(hash(b'i', &[number.to_string().as_bytes()]))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Hash, E> {
        Ok(hash(b'i', &[number.to_string().as_bytes()]))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Hash, E> {
        Ok(hash(b'f', &[&number.to_bits().to_be_bytes()]))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Hash, E> {
        Ok(hash(b's', &[text.as_bytes()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Hash, A::Error> {
        let mut context = Context::new(&SHA256);
        context.update(b"a");
        while let Some(item) = items.next_element_seed(self.inside()?)? {
            context.update(&item);
        }
        let mut hash = Hash::default();
        hash.copy_from_slice(context.finish().as_ref());
        Ok(hash)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Hash, A::Error> {
        let mut all: Vec<(Hash, Hash)> = Vec::new();
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            let value = fields.next_value_seed(self.inside()?)?;
            all.push((hash(b's', &[name.as_bytes()]), value));
        }
        all.sort_unstable();
        let parts: Vec<&[u8]> = all.iter().flat_map(|(name, value)| [&name[..], &value[..]]).collect();
        Ok(hash(b'o', &parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = r#"[{"type":"text","text":"Grüße, \"du\"","n":[1,2.5,true,null]}]"#;

    #[test]
    fn what_means_the_same_is_the_same() {
        let parent = Some(Uuid::from_u128(7));
        let written = proof("user", SAID.as_bytes(), parent, Written::AsSaid).unwrap();
        let again = "[ {\"n\": [1, 2.5, true, null], \"text\": \"Gr\\u00fc\\u00dfe, \\\"du\\\"\", \"type\": \"text\"} ]";
        assert!(Proof(&written).is_of("user", SAID) && Proof(&written).is_of("user", again));
        assert!(Proof(&written).follows(parent) && !Proof(&written).follows(None));
    }

    #[test]
    fn every_other_letter_is_something_else() {
        let written = proof("user", SAID.as_bytes(), None, Written::AsSaid).unwrap();
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
        let written = proof("user", SAID.as_bytes(), parent, Written::InPart).unwrap();
        assert!(Proof(&written).hides_something() && Proof(&written).follows(parent));
        assert!(!Proof(&written).is_of("user", SAID));
    }

    #[test]
    fn what_is_no_json_or_too_deep_has_none() {
        assert_eq!(proof("user", b"[", None, Written::AsSaid), None);
        assert_eq!(proof("user", "[".repeat(100_000).as_bytes(), None, Written::AsSaid), None);
    }
}
