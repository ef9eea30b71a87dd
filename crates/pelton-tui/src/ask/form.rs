//! Questions of servers: a form with fields, or an address to visit.

mod field; // one field
mod shape; // what a text has to be

use crossterm::event::{KeyCode, KeyEvent};
use pelton::host::{Elicitation, Elicited};
use ratatui_core::text::{Line, Span};
use serde_json::{Map, Value};

use super::MARK;
use super::choice::is_typed;
use crate::clean;
use crate::feed::wrapped;
use crate::paint::{Caret, Live};
use crate::theme::{Role, Theme};
use field::{By, Field};

/// Fields of one form.
const FIELDS_MAX: usize = 50;
/// What refuses a form, or leaves it, where there are no keys.
const DECLINE: &str = "/decline";
const CANCEL: &str = "/cancel";

pub(crate) struct Form {
    asker: String,
    message: String,
    url: Option<String>,
    fields: Vec<Field>,
    at: usize,
    /// Why the values cannot be sent.
    complaint: Option<String>,
}

impl Form {
    pub fn of(question: &Elicitation) -> Self {
        let required = question.schema["required"].as_array().cloned().unwrap_or_default();
        let properties = question.schema["properties"].as_object().into_iter().flatten().take(FIELDS_MAX);
        let field = |(name, schema): (&String, &Value)| {
            Field::of(name, schema, required.iter().any(|required| required == name))
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
            _ => {
                self.complaint = None;
                if let Some(field) = self.fields.get_mut(self.at) {
                    field.key(&key);
                }
            }
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
        if let Some(field) = self.fields.get_mut(self.at).filter(|_| !line.is_empty())
            && !field.line(line)
        {
            return None;
        }
        self.key(KeyEvent::from(KeyCode::Enter))
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(field) = self.fields.get_mut(self.at) {
            field.paste(text);
        }
    }

    fn content(&self) -> Result<Value, (usize, String)> {
        let mut content = Map::new();
        for (at, field) in self.fields.iter().enumerate() {
            if let Some(value) = field.value().map_err(|why| (at, why))? {
                content.insert(field.name.clone(), value);
            }
        }
        Ok(Value::Object(content))
    }

    pub fn live(&self, theme: &Theme, columns: usize) -> Live {
        let keys = match &self.url {
            Some(_) => "open the address, then Enter · Ctrl-D declines · Esc cancels",
            None if self.fields.is_empty() => "Enter agrees · Ctrl-D declines · Esc cancels",
            None => "Tab between fields · Enter on the last sends · Ctrl-D declines · Esc cancels",
        };
        self.rows(theme, columns, By::Keys, keys)
    }

    /// The same where there are no keys.
    pub fn told(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let keys = match &self.url {
            Some(_) => "Open the address, then an empty line; /decline or /cancel.",
            None if self.fields.is_empty() => "An empty line agrees; /decline or /cancel.",
            None => "Type a value; an empty line leaves it as it is; /decline or /cancel.",
        };
        self.rows(theme, columns, By::Lines, keys).lines
    }

    /// Who asks, and for what.
    pub fn words(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let asker = format!("{} asks:", clean::revealed_line(&self.asker));
        let mut lines = vec![Line::styled(asker, theme.style(Role::Strong))];
        for row in clean::text(&self.message).lines().flat_map(|line| wrapped(line, columns)) {
            lines.push(Line::raw(row));
        }
        // Whoever opens it sees all of it.
        for row in self.url.iter().flat_map(|url| wrapped(&clean::revealed_line(url), columns)) {
            lines.push(Line::styled(row, theme.style(Role::Link)));
        }
        lines
    }

    fn rows(&self, theme: &Theme, columns: usize, by: By, keys: &'static str) -> Live {
        let faint = theme.style(Role::Faint);
        let mut lines = self.words(theme, columns);
        if self.url.is_some() {
            lines.extend(wrapped(keys, columns).into_iter().map(|row| Line::styled(row, faint)));
            return Live { lines, caret: None };
        }
        let mut caret = None;
        for (at, field) in self.fields.iter().enumerate() {
            let is_at = at == self.at;
            let needed = if field.required { "*" } else { "" };
            let mut spans = vec![
                Span::styled(if is_at { MARK } else { "  " }, theme.style(Role::Accent)),
                Span::raw(format!("{}{needed}", clean::revealed_line(&field.title))),
                Span::styled(format!("{}: ", field.hint(by)), faint),
            ];
            let before = spans.iter().map(Span::width).sum::<usize>();
            let (shown, column) = field.shown(theme, is_at, columns.saturating_sub(before));
            spans.extend(shown);
            if let Some(column) = column {
                caret = Some(Caret { row: lines.len(), column: before + column });
            }
            lines.push(Line::from(spans));
            if let Some(about) = field.about.as_ref().filter(|_| is_at) {
                for row in wrapped(&clean::revealed_line(about), columns.saturating_sub(4)) {
                    lines.push(Line::from(vec![Span::raw("    "), Span::styled(row, faint)]));
                }
            }
        }
        if let Some(complaint) = &self.complaint {
            lines.push(Line::styled(clean::revealed_line(complaint), theme.style(Role::Error)));
        }
        lines.extend(wrapped(keys, columns).into_iter().map(|row| Line::styled(row, faint)));
        Live { lines, caret }
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;
    use serde_json::json;

    use super::*;

    fn typed(form: &mut Form, keys: &[KeyCode]) -> Option<Elicited> {
        keys.iter().find_map(|key| form.key(KeyEvent::new(*key, KeyModifiers::NONE)))
    }

    #[test]
    fn fields_are_checked_by_their_kinds_before_they_are_sent() {
        let schema = json!({"type": "object", "required": ["n"], "properties": {
            "n": {"type": "integer", "maximum": 9}, "o": {"type": "boolean"}, "p": {"enum": ["x", "y"]}}});
        let question = Elicitation::new("c".into(), "server", "Fill in", schema);
        let mut form = Form::of(&question);
        use KeyCode::{Backspace, Char, Enter, Right};
        assert_eq!(typed(&mut form, &[Char('z'), Enter, Char('y'), Enter, Right, Right, Enter]), None);
        assert_eq!(form.complaint.as_deref(), Some("n is a whole number"));
        assert_eq!(typed(&mut form, &[Backspace, Char('7'), Char('7'), Enter, Enter, Enter]), None);
        assert_eq!(form.complaint.as_deref(), Some("n: at most 9"));
        let sent = typed(&mut form, &[Backspace, Enter, Enter, Enter]);
        assert_eq!(sent, Some(Elicited::Accept(json!({"n": 7, "o": true, "p": "y"}))));
        assert_eq!(typed(&mut Form::of(&question), &[KeyCode::Esc]), Some(Elicited::Cancel));
    }

    #[test]
    fn a_text_of_a_format_is_told_what_it_is_and_taken_only_as_that() {
        let schema = json!({"type": "object", "properties": {"m": {"type": "string", "format": "email"}}});
        let mut form = Form::of(&Elicitation::new("c".into(), "server", "Fill in", schema));
        let shown =
            |form: &Form| form.live(&Theme::BARE, 80).lines.iter().map(Line::to_string).collect::<String>();
        assert!(shown(&form).contains("m (a mail address): "), "{}", shown(&form));
        assert_eq!(form.line("nobody"), None);
        assert_eq!(form.complaint.as_deref(), Some("m is a mail address, as name@example.org"));
        assert_eq!(form.line(" a@b.org "), Some(Elicited::Accept(json!({"m": "a@b.org"}))));
    }

    #[test]
    fn what_is_offered_is_called_by_its_title_and_sent_by_its_value() {
        let titled = |value: &str, title: &str| json!({"const": value, "title": title});
        let colours = json!([titled("#f00", "Red"), titled("#00f", "Blue")]);
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "oneOf": colours.clone()},
            "b": {"type": "array", "items": {"anyOf": colours}, "minItems": 1},
            "c": {"type": "array", "items": {"enum": ["p", "q"]}, "default": ["q"]},
            "d": {"type": "string", "enum": ["1", "2"], "enumNames": ["One", "Two"], "default": "2"}}});
        let question = Elicitation::new("c".into(), "server", "Fill in", schema);
        let mut form = Form::of(&question);
        use KeyCode::{Char, Enter, Left, Right};
        let keys = [Left, Enter, Right, Char(' '), Left, Char(' '), Enter, Char(' '), Enter, Enter];
        let sent = typed(&mut form, &keys);
        let values = json!({"a": "#00f", "b": ["#f00", "#00f"], "c": ["p", "q"], "d": "2"});
        assert_eq!(sent, Some(Elicited::Accept(values.clone())));
        // Line by line the same is named by titles, values or numbers.
        let mut form = Form::of(&question);
        assert_eq!(form.line("green"), None);
        let lines = ["blue", "1, #00f", "p,q", ""];
        let sent = lines.iter().find_map(|line| form.line(line));
        assert_eq!(sent, Some(Elicited::Accept(values)));
    }
}
