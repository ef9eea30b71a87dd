//! Where things stand in a file: the line of every value, by its place. Pure.

use std::collections::{HashMap, HashSet};

use super::relaxed::strict;

/// The lines of a text, by places such as `hooks.Stop[0].matcher`.
#[derive(Debug, Default)]
pub(super) struct Lines {
    places: HashMap<String, u32>,
    /// Keys that were written before in the same object, and where they are again.
    repeated: Vec<(String, u32)>,
}

impl Lines {
    /// Looks through a text that was read as settings. Of a key that is written twice the last counts.
    pub fn of(text: &str) -> Self {
        let plain = strict(text);
        let mut walk = Walk { bytes: plain.as_bytes(), at: 0, line: 1, lines: Self::default() };
        walk.value("");
        walk.lines
    }

    /// The keys that are written more than once in an object: what stands behind them first does not count.
    pub fn repeated(&self) -> &[(String, u32)] {
        &self.repeated
    }

    /// The line of a place, or of the nearest around it that is written there.
    pub fn of_place(&self, place: &str) -> Option<u32> {
        let mut place = place;
        loop {
            if let Some(line) = self.places.get(place) {
                return Some(*line);
            }
            place = &place[..place.rfind(['.', '['])?];
        }
    }
}

/// A walk through JSON. What is none is walked through, too, to an end.
struct Walk<'t> {
    bytes: &'t [u8],
    at: usize,
    line: u32,
    lines: Lines,
}

impl Walk<'_> {
    fn value(&mut self, place: &str) {
        self.skip_blanks();
        match self.bytes.get(self.at) {
            Some(b'{') => self.members(place),
            Some(b'[') => self.items(place),
            Some(b'"') => {
                self.text();
            }
            // A number or a word.
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                while self.bytes.get(self.at).is_some_and(|byte| !is_end(byte)) {
                    self.at += 1;
                }
            }
        }
    }

    fn members(&mut self, place: &str) {
        self.at += 1;
        let mut keys = HashSet::new();
        loop {
            self.skip_blanks();
            match self.bytes.get(self.at) {
                Some(b'"') => {}
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                _ => break,
            }
            let line = self.line;
            let key = self.text();
            let is_new = keys.insert(key.clone());
            let inner = if place.is_empty() { key } else { format!("{place}.{key}") };
            self.lines.places.insert(inner.clone(), line);
            if !is_new {
                self.lines.repeated.push((inner.clone(), line));
            }
            self.skip_blanks();
            // Over the colon.
            self.at += 1;
            self.value(&inner);
        }
        self.at += 1;
    }

    fn items(&mut self, place: &str) {
        self.at += 1;
        let mut count = 0;
        loop {
            self.skip_blanks();
            match self.bytes.get(self.at) {
                None | Some(b']') => break,
                Some(b',') => self.at += 1,
                Some(_) => {
                    let inner = format!("{place}[{count}]");
                    self.lines.places.insert(inner.clone(), self.line);
                    let before = self.at;
                    self.value(&inner);
                    if self.at == before {
                        // No value begins here: the text is no JSON, and nothing behind it has a place.
                        self.at = self.bytes.len();
                    }
                    count += 1;
                }
            }
        }
        self.at += 1;
    }

    /// The text that begins here. No line ends inside of one.
    fn text(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += match byte {
                b'\\' => 2,
                b'"' => break,
                _ => 1,
            };
        }
        self.at = (self.at + 1).min(self.bytes.len());
        serde_json::from_slice(&self.bytes[start..self.at]).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_whitespace()) {
            self.line += u32::from(*byte == b'\n');
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_value_has_its_line() {
        let text = "{\n  // one\n  \"a\": {\"b\": [1,\n    \"x{[\\\"\",\n  {\"c\": null}]},\n\"d\": true, \"a\\u0062\": 1.5e3,\n}";
        let lines = Lines::of(text);
        for (place, line) in [
            ("a", 3),
            ("a.b", 3),
            ("a.b[0]", 3),
            ("a.b[1]", 4),
            ("a.b[2]", 5),
            ("a.b[2].c", 5),
            ("d", 6),
            ("ab", 6),
            ("a.b[2].missing[4]", 5),
        ] {
            assert_eq!(lines.of_place(place), Some(line), "{place}");
        }
        assert_eq!(lines.of_place("z.y"), None);
        for broken in ["[}", "[[}", "{\"a\": [}", "{\"a\" }", "[", "{\"", "[1 }"] {
            Lines::of(broken);
        }
        assert_eq!(Lines::of("").of_place("a"), None);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i32>().prop_map(Value::from), any::<String>().prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\\\]{1,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The lines of everything in a value as it is printed, one value on each.
    fn expected(value: &Value, place: &str, line: &mut u32, found: &mut Vec<(String, u32)>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, value) in members {
                    *line += 1;
                    let inner = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                    found.push((inner.clone(), *line));
                    expected(value, &inner, line, found);
                }
                *line += 1;
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, value) in items.iter().enumerate() {
                    *line += 1;
                    let inner = format!("{place}[{at}]");
                    found.push((inner.clone(), *line));
                    expected(value, &inner, line, found);
                }
                *line += 1;
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn whatever_is_printed_is_found_on_its_line(value in json()) {
            let (mut line, mut found) = (1, Vec::new());
            expected(&value, "", &mut line, &mut found);
            let lines = Lines::of(&serde_json::to_string_pretty(&value).unwrap());
            for (place, line) in found {
                prop_assert_eq!(lines.of_place(&place), Some(line), "{}", place);
            }
        }

        #[test]
        fn any_text_is_walked_through(text in any::<String>(), marks in "[\\[\\]{}:,\"a1 \n\\\\]{0,24}") {
            Lines::of(&text);
            Lines::of(&marks);
        }
    }
}
