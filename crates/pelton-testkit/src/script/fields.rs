//! Reading fields of a script file so that every mistake is named with its place and a way out.

use super::ScriptError;
use serde_json::{Map, Value};

/// One mapping of the file, whose field names were checked when it was opened.
pub(super) struct Fields<'a> {
    place: String,
    prefix: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Opens a mapping at a place, allowing only the known fields.
    pub(super) fn open(value: &'a Value, place: &str, known: &[&str]) -> Result<Self, ScriptError> {
        Self::open_in(value, place, "", known)
    }

    /// Opens a mapping that is itself a field.
    pub(super) fn open_field(&self, name: &str, known: &[&str]) -> Result<Option<Self>, ScriptError> {
        self.get(name).map(|value| Self::open_in(value, &self.place, &self.full(name), known)).transpose()
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A field's value; null counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.map.iter()
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, ScriptError> {
        let take = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Err(self.wrong(
                name,
                "a text",
                value,
                &format!("put it in quotes: `{}: \"{value}\"`", leaf(name)),
            )),
            _ => Err(self.wrong(name, "a text", value, "write one string")),
        };
        self.get(name).map(take).transpose()
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ScriptError> {
        let take = |value: &Value| {
            let way_out = "write digits alone, without quotes or sign";
            value.as_u64().ok_or_else(|| self.wrong(name, "a whole number", value, way_out))
        };
        self.get(name).map(take).transpose()
    }

    /// A number that counts things in memory.
    pub(super) fn size(&self, name: &str) -> Result<Option<usize>, ScriptError> {
        self.number(name)?
            .map(|number| {
                usize::try_from(number).map_err(|_| self.error(name, "the number is too large", "write less"))
            })
            .transpose()
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, ScriptError> {
        let take = |value: &Value| {
            value.as_bool().ok_or_else(|| self.wrong(name, "true or false", value, "write `true` or `false`"))
        };
        self.get(name).map(take).transpose()
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, ScriptError> {
        let take = |value: &'a Value| match value {
            Value::Array(items) => Ok(items.as_slice()),
            _ => Err(self.wrong(name, "a list", value, "start each item with `- `")),
        };
        self.get(name).map(take).transpose()
    }

    /// Names and texts; numbers and booleans are taken as they are written, since headers have no types.
    pub(super) fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, ScriptError> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let Value::Object(map) = value else {
            return Err(self.wrong(name, "names with values", value, "write `name: value` lines below it"));
        };
        map.iter()
            .map(|(key, value)| match value {
                Value::String(text) => Ok((key.clone(), text.clone())),
                Value::Number(_) | Value::Bool(_) => Ok((key.clone(), value.to_string())),
                _ => Err(self.wrong(&format!("{name}.{key}"), "a text", value, "write one string")),
            })
            .collect()
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, ScriptError> {
        let Some(said) = self.text(name)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == said).map(|(_, meaning)| *meaning);
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let way_out = || suggest(&said, &known);
        found.map(Some).ok_or_else(|| self.error(name, format!("unknown word `{said}`"), way_out()))
    }

    pub(super) fn error(
        &self,
        name: &str,
        problem: impl Into<String>,
        way_out: impl Into<String>,
    ) -> ScriptError {
        ScriptError::new(&self.place, self.full(name), problem, way_out)
    }

    /// The error of a field that holds something else than it should.
    pub(super) fn wrong(&self, name: &str, expected: &str, found: &Value, way_out: &str) -> ScriptError {
        self.error(name, format!("expected {expected}, found {}", describe(found)), way_out)
    }

    fn open_in(value: &'a Value, place: &str, prefix: &str, known: &[&str]) -> Result<Self, ScriptError> {
        let Value::Object(map) = value else {
            let problem = format!("expected fields, found {}", describe(value));
            return Err(ScriptError::new(place, prefix, problem, format!("write {}", list_of(known))));
        };
        let fields = Self { place: place.to_owned(), prefix: prefix.to_owned(), map };
        match map.keys().find(|key| !known.is_empty() && !known.contains(&key.as_str())) {
            Some(stranger) => Err(fields.error(stranger, "unknown field", suggest(stranger, known))),
            None => Ok(fields),
        }
    }

    fn full(&self, name: &str) -> String {
        match (self.prefix.is_empty(), name.is_empty()) {
            (true, _) => name.to_owned(),
            (false, true) => self.prefix.clone(),
            (false, false) => format!("{}.{name}", self.prefix),
        }
    }
}

/// `did you mean …` for something close, else all there is.
pub(super) fn suggest(said: &str, known: &[&str]) -> String {
    // Half of the word may differ: more, and the guess would mislead.
    let nearest = known
        .iter()
        .map(|word| (distance(said, word), *word))
        .filter(|(distance, word)| *distance * 2 <= word.chars().count().max(2))
        .min();
    match nearest {
        Some((_, word)) => format!("did you mean `{word}`?"),
        None => format!("known here: {}", list_of(known)),
    }
}

pub(super) fn list_of(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn leaf(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn describe(value: &Value) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "fields".to_owned(),
        Value::String(text) => {
            format!("the text `{}`", text.chars().take(SHOWN_CHARS_MAX).collect::<String>())
        }
        other => format!("`{other}`"),
    }
}

/// Edit distance, counting insertions, deletions and changes of one character.
fn distance(left: &str, right: &str) -> usize {
    // Names longer than any field are strangers anyway; this bounds the work.
    const COMPARED_CHARS_MAX: usize = 40;
    let right: Vec<char> = right.chars().take(COMPARED_CHARS_MAX).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.chars().take(COMPARED_CHARS_MAX).enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, to) in right.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}
