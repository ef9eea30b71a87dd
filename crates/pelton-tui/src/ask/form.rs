//! Questions of servers: a form with fields, or an address to visit.

use crossterm::event::{KeyCode, KeyEvent};
use pelton::host::{Elicitation, Elicited};
use ratatui_core::text::{Line, Span};
use serde_json::{Map, Value, json};

use super::MARK;
use super::choice::is_typed;
use crate::clean;
use crate::feed::wrapped;
use crate::theme::{Role, Theme};

/// Fields of one form.
const FIELDS_MAX: usize = 50;
/// What refuses a form, or leaves it, where there are no keys.
const DECLINE: &str = "/decline";
const CANCEL: &str = "/cancel";
/// Characters of one value.
const VALUE_CHARS_MAX: usize = 10_000;

pub(crate) struct Form {
    asker: String,
    message: String,
    url: Option<String>,
    fields: Vec<Field>,
    at: usize,
    /// Why the values cannot be sent.
    complaint: Option<String>,
}

struct Field {
    name: String,
    title: String,
    kind: Kind,
    required: bool,
    value: String,
}

enum Kind {
    Text,
    Number {
        whole: bool,
    },
    Flag,
    OneOf(Vec<String>),
    /// Several words, separated by commas.
    List,
}

impl Form {
    pub fn of(question: &Elicitation) -> Self {
        let required = question.schema["required"].as_array().cloned().unwrap_or_default();
        let properties = question.schema["properties"].as_object().into_iter().flatten().take(FIELDS_MAX);
        let field = |(name, schema): (&String, &Value)| {
            let words = |key: &str| schema[key].as_str().map(str::to_owned);
            let kind = match (schema["enum"].as_array(), schema["type"].as_str()) {
                (Some(values), _) => {
                    Kind::OneOf(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                }
                (None, Some("boolean")) => Kind::Flag,
                (None, Some("integer")) => Kind::Number { whole: true },
                (None, Some("number")) => Kind::Number { whole: false },
                (None, Some("array")) => Kind::List,
                _ => Kind::Text,
            };
            let value = match &schema["default"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Field {
                name: name.clone(),
                title: words("title").or_else(|| words("description")).unwrap_or_else(|| name.clone()),
                kind,
                required: required.iter().any(|required| required == name),
                value,
            }
        };
        Self {
            asker: question.asker.clone(),
            message: question.message.clone(),
            url: question.url.clone(),
            fields: properties.map(field).collect(),
            at: 0,
            complaint: None,
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Option<Elicited> {
        let count = self.fields.len().max(1);
        match key.code {
            KeyCode::Esc => return Some(Elicited::Cancel),
            KeyCode::Up | KeyCode::BackTab => self.at = (self.at + count - 1) % count,
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % count,
            KeyCode::Enter if self.at + 1 < self.fields.len() => self.at += 1,
            KeyCode::Enter => match self.content() {
                Ok(content) => return Some(Elicited::Accept(content)),
                Err((at, why)) => {
                    self.at = at;
                    self.complaint = Some(why);
                }
            },
            KeyCode::Char('d') if !is_typed(key) => return Some(Elicited::Decline),
            KeyCode::Left | KeyCode::Right => self.turn(key.code == KeyCode::Right),
            KeyCode::Backspace => _ = self.fields.get_mut(self.at).and_then(|field| field.value.pop()),
            KeyCode::Char(c) if is_typed(key) => self.put(c),
            _ => {}
        }
        None
    }

    /// A line was typed: the value of the field that is asked for. An empty one keeps what is there.
    pub fn line(&mut self, line: &str) -> Option<Elicited> {
        let line = line.trim();
        match line {
            DECLINE => return Some(Elicited::Decline),
            CANCEL => return Some(Elicited::Cancel),
            _ => {}
        }
        self.complaint = None;
        if let Some(field) = self.fields.get_mut(self.at).filter(|_| !line.is_empty()) {
            field.value = match (&field.kind, line.to_ascii_lowercase().as_str()) {
                (Kind::Flag, "y" | "yes" | "true") => "true".to_owned(),
                (Kind::Flag, "n" | "no" | "false") => "false".to_owned(),
                (Kind::Flag, _) => return None,
                _ => line.chars().take(VALUE_CHARS_MAX).collect(),
            };
        }
        self.key(KeyEvent::from(KeyCode::Enter))
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(field) = self.fields.get_mut(self.at) {
            field.value.extend(clean::line(text).chars().take(VALUE_CHARS_MAX));
        }
    }

    fn put(&mut self, c: char) {
        self.complaint = None;
        let Some(field) = self.fields.get_mut(self.at) else { return };
        match (&field.kind, c) {
            (Kind::Flag, 'y' | 'Y') => field.value = "true".to_owned(),
            (Kind::Flag, 'n' | 'N') => field.value = "false".to_owned(),
            (Kind::Flag | Kind::OneOf(_), ' ') => self.turn(true),
            (Kind::Flag | Kind::OneOf(_), _) => {}
            _ if field.value.len() < VALUE_CHARS_MAX => field.value.push(c),
            _ => {}
        }
    }

    /// The next value of those there are.
    fn turn(&mut self, forward: bool) {
        let Some(field) = self.fields.get_mut(self.at) else { return };
        let flags = ["true".to_owned(), "false".to_owned()];
        let values: &[String] = match &field.kind {
            Kind::OneOf(values) => values,
            Kind::Flag => &flags,
            _ => return,
        };
        if values.is_empty() {
            return;
        }
        let at = values.iter().position(|value| *value == field.value);
        let next = match (at, forward) {
            (None, _) => 0,
            (Some(at), true) => (at + 1) % values.len(),
            (Some(at), false) => (at + values.len() - 1) % values.len(),
        };
        field.value.clone_from(&values[next]);
    }

    fn content(&self) -> Result<Value, (usize, String)> {
        let mut content = Map::new();
        for (at, field) in self.fields.iter().enumerate() {
            let text = field.value.trim();
            if text.is_empty() {
                if field.required {
                    return Err((at, format!("{} is needed", field.title)));
                }
                continue;
            }
            let value = match &field.kind {
                Kind::Text => json!(field.value),
                Kind::Flag => json!(text == "true"),
                Kind::List => json!(text.split(',').map(str::trim).collect::<Vec<_>>()),
                Kind::Number { whole: true } => {
                    json!(
                        text.parse::<i64>()
                            .map_err(|_| (at, format!("{} is a whole number", field.title)))?
                    )
                }
                Kind::Number { whole: false } => {
                    json!(text.parse::<f64>().map_err(|_| (at, format!("{} is a number", field.title)))?)
                }
                Kind::OneOf(values) if values.iter().any(|value| value == text) => json!(text),
                Kind::OneOf(values) => {
                    return Err((at, format!("{} is one of {}", field.title, values.join(", "))));
                }
            };
            content.insert(field.name.clone(), value);
        }
        Ok(Value::Object(content))
    }

    pub fn lines(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let keys = match &self.url {
            Some(_) => "open the address, then Enter · Ctrl-D declines · Esc cancels",
            None => "Tab between fields · Enter on the last sends · Ctrl-D declines · Esc cancels",
        };
        self.rows(theme, columns, keys)
    }

    /// The same where there are no keys.
    pub fn told(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let keys = match &self.url {
            Some(_) => "Open the address, then an empty line; /decline or /cancel.",
            None => "Type a value; an empty line leaves it as it is; /decline or /cancel.",
        };
        self.rows(theme, columns, keys)
    }

    fn rows(&self, theme: &Theme, columns: usize, keys: &'static str) -> Vec<Line<'static>> {
        let mut lines = vec![Line::styled(
            format!("{} asks:", clean::revealed_line(&self.asker)),
            theme.style(Role::Strong),
        )];
        for row in clean::text(&self.message).lines().flat_map(|line| wrapped(line, columns)) {
            lines.push(Line::raw(row));
        }
        if let Some(url) = &self.url {
            lines.push(Line::styled(clean::revealed_line(url), theme.style(Role::Link)));
            lines.push(Line::styled(keys, theme.style(Role::Faint)));
            return lines;
        }
        for (at, field) in self.fields.iter().enumerate() {
            let is_at = at == self.at;
            let mark = if is_at { MARK } else { "  " };
            let needed = if field.required { "*" } else { "" };
            let hint = match &field.kind {
                Kind::Flag => " (y/n)".to_owned(),
                Kind::OneOf(values) => format!(" (←→: {})", clean::revealed_line(&values.join(", "))),
                Kind::List => " (separated by commas)".to_owned(),
                Kind::Text | Kind::Number { .. } => String::new(),
            };
            let caret = if is_at { "▏" } else { "" };
            lines.push(Line::from(vec![
                Span::styled(mark, theme.style(Role::Accent)),
                Span::raw(format!("{}{needed}", clean::revealed_line(&field.title))),
                Span::styled(format!("{hint}: "), theme.style(Role::Faint)),
                Span::styled(format!("{}{caret}", clean::line(&field.value)), theme.style(Role::Prompt)),
            ]));
        }
        if let Some(complaint) = &self.complaint {
            lines.push(Line::styled(clean::revealed_line(complaint), theme.style(Role::Error)));
        }
        lines.push(Line::styled(keys, theme.style(Role::Faint)));
        lines
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    fn typed(form: &mut Form, keys: &[KeyCode]) -> Option<Elicited> {
        keys.iter().find_map(|key| form.key(KeyEvent::new(*key, KeyModifiers::NONE)))
    }

    #[test]
    fn fields_are_checked_by_their_kinds_before_they_are_sent() {
        let schema = json!({"type": "object", "required": ["n"], "properties": {
            "n": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"enum": ["x", "y"]}}});
        let question = Elicitation::new("c".into(), "server", "Fill in", schema);
        let mut form = Form::of(&question);
        use KeyCode::{Backspace, Char, Enter, Right};
        assert_eq!(typed(&mut form, &[Char('z'), Enter, Char('y'), Enter, Right, Right, Enter]), None);
        assert_eq!(form.complaint.as_deref(), Some("n is a whole number"));
        let sent = typed(&mut form, &[Backspace, Char('7'), Enter, Enter, Enter]);
        assert_eq!(sent, Some(Elicited::Accept(json!({"n": 7, "b": true, "c": "y"}))));
        assert_eq!(typed(&mut Form::of(&question), &[KeyCode::Esc]), Some(Elicited::Cancel));
    }
}
