//! One field of a form: what it takes, what stands in it, and what is sent of it.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui_core::text::Span;
use serde_json::{Value, json};

use super::shape::Shape;
use crate::ask::words::Words;
use crate::cells::width;
use crate::clean;
use crate::theme::{Role, Theme};

/// Values that one field offers.
const OFFERED_MAX: usize = 100;

pub(super) struct Field {
    pub name: String,
    pub title: String,
    /// More about it, if its title does not say all.
    pub about: Option<String>,
    pub required: bool,
    bounds: Bounds,
    entry: Entry,
}

/// What stands in it.
enum Entry {
    Text(Words),
    /// A text that is only taken as what it has to be.
    Shaped {
        shape: Shape,
        words: Words,
    },
    Number {
        whole: bool,
        words: Words,
    },
    Flag(Option<bool>),
    OneOf {
        offered: Vec<Offered>,
        chosen: Option<usize>,
    },
    /// Several of those there are: which, and where the next key ticks.
    SomeOf {
        offered: Vec<Offered>,
        ticked: Vec<bool>,
        at: usize,
    },
    /// Several words, separated by commas.
    List(Words),
}

/// How it is filled in.
#[derive(Clone, Copy)]
pub(super) enum By {
    Keys,
    Lines,
}

/// A value, and what people call it.
struct Offered {
    value: Value,
    title: String,
}

/// How much it takes: characters, items, or the number itself.
#[derive(Default)]
struct Bounds {
    least: Option<f64>,
    most: Option<f64>,
}

impl Bounds {
    fn of(schema: &Value, least: &str, most: &str) -> Self {
        Self { least: schema[least].as_f64(), most: schema[most].as_f64() }
    }

    /// Why this is too little or too much.
    fn broken_by(&self, what: f64, unit: &str) -> Option<String> {
        match (self.least, self.most) {
            (Some(least), _) if what < least => Some(format!("at least {least}{unit}")),
            (_, Some(most)) if what > most => Some(format!("at most {most}{unit}")),
            _ => None,
        }
    }
}

impl Field {
    pub fn of(name: &str, schema: &Value, required: bool) -> Self {
        let words = |key: &str| schema[key].as_str().map(str::to_owned);
        let default = &schema["default"];
        let text = match default {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        };
        let (entry, bounds) = match (offered(schema), schema["type"].as_str()) {
            (Some(offered), _) => {
                let chosen = offered.iter().position(|one| one.value == *default);
                (Entry::OneOf { offered, chosen }, Bounds::default())
            }
            (None, Some("boolean")) => (Entry::Flag(default.as_bool()), Bounds::default()),
            (None, Some(kind @ ("integer" | "number"))) => (
                Entry::Number { whole: kind == "integer", words: Words::of(&text) },
                Bounds::of(schema, "minimum", "maximum"),
            ),
            (None, Some("array")) => {
                let bounds = Bounds::of(schema, "minItems", "maxItems");
                let entry = match self::offered(&schema["items"]) {
                    Some(offered) => {
                        let is_given =
                            |one: &Offered| default.as_array().is_some_and(|all| all.contains(&one.value));
                        let ticked = offered.iter().map(is_given).collect();
                        Entry::SomeOf { offered, ticked, at: 0 }
                    }
                    None => Entry::List(Words::of(&text)),
                };
                (entry, bounds)
            }
            _ => {
                let words = Words::of(&text);
                let entry = match schema["format"].as_str().and_then(Shape::of) {
                    Some(shape) => Entry::Shaped { shape, words },
                    None => Entry::Text(words),
                };
                (entry, Bounds::of(schema, "minLength", "maxLength"))
            }
        };
        let (title, about) = match (words("title"), words("description")) {
            (Some(title), about) => (title, about),
            (None, Some(about)) => (about, None),
            (None, None) => (name.to_owned(), None),
        };
        Self { name: name.to_owned(), title, about, required, bounds, entry }
    }

    /// A key that changes what stands in it.
    pub fn key(&mut self, key: &KeyEvent) {
        match &mut self.entry {
            Entry::Text(words)
            | Entry::Shaped { words, .. }
            | Entry::Number { words, .. }
            | Entry::List(words) => _ = words.key(key),
            Entry::Flag(flag) => match key.code {
                KeyCode::Char('y' | 'Y') => *flag = Some(true),
                KeyCode::Char('n' | 'N') => *flag = Some(false),
                KeyCode::Left | KeyCode::Right | KeyCode::Char(' ') => *flag = Some(!flag.unwrap_or(false)),
                KeyCode::Backspace => *flag = None,
                _ => {}
            },
            Entry::OneOf { offered, chosen } => match key.code {
                KeyCode::Right | KeyCode::Char(' ') => *chosen = turned(*chosen, offered.len(), true),
                KeyCode::Left => *chosen = turned(*chosen, offered.len(), false),
                KeyCode::Backspace => *chosen = None,
                _ => {}
            },
            Entry::SomeOf { offered, ticked, at } => match key.code {
                KeyCode::Right => *at = turned(Some(*at), offered.len(), true).unwrap_or(0),
                KeyCode::Left => *at = turned(Some(*at), offered.len(), false).unwrap_or(0),
                KeyCode::Char(' ') => {
                    if let Some(tick) = ticked.get_mut(*at) {
                        *tick = !*tick;
                    }
                }
                _ => {}
            },
        }
    }

    /// A line was typed for it. Whether it can be that.
    pub fn line(&mut self, line: &str) -> bool {
        match &mut self.entry {
            Entry::Text(words)
            | Entry::Shaped { words, .. }
            | Entry::Number { words, .. }
            | Entry::List(words) => words.set(line),
            Entry::Flag(flag) => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => *flag = Some(true),
                "n" | "no" | "false" => *flag = Some(false),
                _ => return false,
            },
            Entry::OneOf { offered, chosen } => match named(offered, line) {
                Some(at) => *chosen = Some(at),
                None => return false,
            },
            Entry::SomeOf { offered, ticked, .. } => {
                let all: Option<Vec<usize>> = line.split(',').map(|word| named(offered, word)).collect();
                let Some(all) = all else { return false };
                ticked.iter_mut().enumerate().for_each(|(at, tick)| *tick = all.contains(&at));
            }
        }
        true
    }

    pub fn paste(&mut self, text: &str) {
        if let Entry::Text(words)
        | Entry::Shaped { words, .. }
        | Entry::Number { words, .. }
        | Entry::List(words) = &mut self.entry
        {
            words.paste(text);
        }
    }

    /// What is sent; nothing, if nothing stands there. Or why it cannot be sent.
    pub fn value(&self) -> Result<Option<Value>, String> {
        let title = &self.title;
        let value = match &self.entry {
            Entry::Text(words)
            | Entry::Shaped { words, .. }
            | Entry::Number { words, .. }
            | Entry::List(words)
                if words.text().trim().is_empty() =>
            {
                None
            }
            Entry::Text(words) => {
                let text = words.text();
                self.bounded(count(text.chars().count()), " characters")?;
                Some(json!(text))
            }
            Entry::Shaped { shape, words } => {
                let text = words.text();
                let text = text.trim();
                if !shape.fits(text) {
                    return Err(format!("{title} is {}", shape.example()));
                }
                self.bounded(count(text.chars().count()), " characters")?;
                Some(json!(text))
            }
            Entry::Number { whole, words } => {
                let text = words.text();
                let text = text.trim();
                let number = match *whole {
                    true => text.parse::<i64>().ok().map(|number| json!(number)),
                    false => text
                        .parse::<f64>()
                        .ok()
                        .filter(|number| number.is_finite())
                        .map(|number| json!(number)),
                };
                let kind = if *whole { "a whole number" } else { "a number" };
                let number = number.ok_or_else(|| format!("{title} is {kind}"))?;
                self.bounded(number.as_f64().unwrap_or_default(), "")?;
                Some(number)
            }
            Entry::List(words) => {
                let text = words.text();
                let all: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
                self.bounded(count(all.len()), " of them")?;
                Some(json!(all))
            }
            Entry::Flag(flag) => flag.map(Value::Bool),
            Entry::OneOf { offered, chosen } => {
                chosen.and_then(|at| offered.get(at)).map(|one| one.value.clone())
            }
            Entry::SomeOf { offered, ticked, .. } => {
                let all: Vec<&Value> = offered
                    .iter()
                    .zip(ticked)
                    .filter(|(_, tick)| **tick)
                    .map(|(one, _)| &one.value)
                    .collect();
                if !all.is_empty() || self.required {
                    self.bounded(count(all.len()), " of them")?;
                }
                (!all.is_empty()).then(|| json!(all))
            }
        };
        match value {
            None if self.required => Err(format!("{title} is needed")),
            value => Ok(value),
        }
    }

    fn bounded(&self, what: f64, unit: &str) -> Result<(), String> {
        self.bounds.broken_by(what, unit).map_or(Ok(()), |why| Err(format!("{}: {why}", self.title)))
    }

    /// What can be done with it, in a few words.
    pub fn hint(&self, by: By) -> &'static str {
        match (&self.entry, by) {
            (Entry::Flag(_), _) => " (y/n)",
            (Entry::OneOf { .. }, By::Keys) => " (←→)",
            (Entry::OneOf { .. }, By::Lines) => " (its name or number)",
            (Entry::SomeOf { .. }, By::Keys) => " (←→, Space ticks)",
            (Entry::SomeOf { .. }, By::Lines) => " (names or numbers, separated by commas)",
            (Entry::List(_), _) => " (separated by commas)",
            (Entry::Shaped { shape, .. }, _) => shape.hint(),
            (Entry::Text(_) | Entry::Number { .. }, _) => "",
        }
    }

    /// What stands in it, and the cell of the caret where words are typed.
    pub fn shown(&self, theme: &Theme, is_at: bool, columns: usize) -> (Vec<Span<'static>>, Option<usize>) {
        match &self.entry {
            Entry::Text(words)
            | Entry::Shaped { words, .. }
            | Entry::Number { words, .. }
            | Entry::List(words) => {
                let (rows, caret) = words.view(columns, theme);
                // Where it is longer than a row, the one with the caret is seen.
                let row = rows.into_iter().nth(caret.row).unwrap_or_default();
                (row.spans, is_at.then_some(caret.column))
            }
            Entry::Flag(flag) => {
                let words = flag.map_or("", |flag| if flag { "yes" } else { "no" });
                (vec![Span::styled(words, theme.style(Role::Prompt))], None)
            }
            Entry::OneOf { offered, chosen } => {
                let one = |(at, one): (usize, &Offered)| match Some(at) == *chosen {
                    true => (format!("(•) {}", one.shown()), Role::Selected),
                    false => (format!("( ) {}", one.shown()), Role::Faint),
                };
                let all = offered.iter().enumerate().map(one).collect();
                (in_a_row(all, chosen.unwrap_or(0), theme, columns), None)
            }
            Entry::SomeOf { offered, ticked, at } => {
                let one = |(place, (one, tick)): (usize, (&Offered, &bool))| {
                    let role = if is_at && place == *at { Role::Selected } else { Role::Text };
                    (format!("{} {}", if *tick { "[x]" } else { "[ ]" }, one.shown()), role)
                };
                let all = offered.iter().zip(ticked).enumerate().map(one).collect();
                (in_a_row(all, *at, theme, columns), None)
            }
        }
    }
}

impl Offered {
    fn shown(&self) -> String {
        clean::revealed_line(&self.title)
    }
}

/// What is offered, in one row: where there is no room for all, those around the one that keys are about.
fn in_a_row(all: Vec<(String, Role)>, at: usize, theme: &Theme, columns: usize) -> Vec<Span<'static>> {
    const GAP: &str = "  ";
    let wide = |(words, _): &(String, Role)| width(words) + width(GAP);
    let mut from = 0;
    while from < at && all[from..=at].iter().map(wide).sum::<usize>() > columns {
        from += 1;
    }
    let more = (from > 0).then(|| Span::styled("… ", theme.style(Role::Faint)));
    let rest = all.into_iter().skip(from);
    let spans = rest.flat_map(|(words, role)| [Span::styled(words, theme.style(role)), Span::raw(GAP)]);
    more.into_iter().chain(spans).collect()
}

/// Items and characters are few enough to be counted so.
fn count(many: usize) -> f64 {
    u32::try_from(many).map_or(f64::MAX, f64::from)
}

/// The next of so many, or the one before.
fn turned(at: Option<usize>, many: usize, forward: bool) -> Option<usize> {
    let last = many.checked_sub(1)?;
    Some(match (at, forward) {
        (None, true) => 0,
        (None, false) => last,
        (Some(at), true) => (at + 1) % many,
        (Some(at), false) => at.checked_sub(1).unwrap_or(last),
    })
}

/// The one that a word names: by its number, its title or its value.
fn named(offered: &[Offered], word: &str) -> Option<usize> {
    let word = word.trim();
    let is_named = |one: &Offered| one.title.eq_ignore_ascii_case(word) || one.value.as_str() == Some(word);
    let by_number = || word.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < offered.len());
    offered.iter().position(is_named).or_else(by_number)
}

/// What a schema offers, in whichever way it names it.
fn offered(schema: &Value) -> Option<Vec<Offered>> {
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    let is_const = |one: &Value| one.get("const").is_some();
    if let Some(all) = titled.filter(|all| !all.is_empty() && all.iter().all(is_const)) {
        let one = |one: &Value| Offered {
            title: one["title"].as_str().map_or_else(|| words(&one["const"]), str::to_owned),
            value: one["const"].clone(),
        };
        return Some(all.iter().take(OFFERED_MAX).map(one).collect());
    }
    let all = schema["enum"].as_array().filter(|all| !all.is_empty())?;
    let titles = schema["enumNames"].as_array();
    let one = |(at, value): (usize, &Value)| {
        let title = titles.and_then(|titles| titles.get(at)).and_then(Value::as_str);
        Offered { title: title.map_or_else(|| words(value), str::to_owned), value: value.clone() }
    };
    Some(all.iter().take(OFFERED_MAX).enumerate().map(one).collect())
}
