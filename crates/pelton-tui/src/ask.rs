//! Questions to the person in front: whether a call may run, what the model or a server wants to know, and which of many
//! things is meant.

pub(crate) mod choice; // a few answers
pub(crate) mod form; // fields
pub(crate) mod list; // one of many
pub(crate) mod permission; // whether a call may run
pub(crate) mod person; // what the model wants to know
mod words; // an answer that is typed

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::KeyEvent;
use pelton::host::{Elicitation, Elicited};
use pelton::permission::{Answer, Question};
use ratatui_core::text::Line;

use crate::commands::Own as Command;
use crate::paint::{Caret, Live};
use crate::theme::Theme;
use choice::{Choice, Picked};
use form::Form;
use list::{Found, List};
use permission::Permission;
use person::Person;

/// Whoever is in the middle of a sentence has to pause for so long before keys are answers.
const PAUSE: Duration = Duration::from_millis(600);

/// Nobody has read a question that came so shortly before: a key that is pressed then was meant for what stood there.
const GLANCE: Duration = Duration::from_millis(200);
/// Stands in front of the answer that Enter gives.
pub(crate) const MARK: &str = "❯ ";

/// A number for each question of a session.
pub type AskedId = u64;

/// Something the engine asks.
#[derive(Debug)]
pub enum Asked {
    /// Whether a call may run.
    Permission(Box<Question>),
    /// A form of a server's.
    Elicitation(Box<Elicitation>),
}

/// What the engine is answered.
#[derive(Debug, PartialEq)]
pub enum Answered {
    /// To [`Asked::Permission`].
    Permission(Answer),
    /// To [`Asked::Elicitation`].
    Elicitation(Elicited),
}

/// What came of a key.
pub(crate) enum Outcome {
    /// The engine's question is answered, and what is to be told of it.
    Answered(AskedId, Answered, Told),
    /// An own question is answered: the place in its list, if there is one.
    Found(Own, Option<usize>),
}

/// What somebody gives as an answer.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    Key(KeyEvent),
    /// A whole line, where there are no keys.
    Line(&'a str),
}

/// What is told of an answer.
pub(crate) enum Told {
    /// It speaks for itself.
    Nothing,
    /// Nothing came of this call, in a word, and why, in the user's; and what it was about.
    Not { call: Arc<str>, word: &'static str, words: String, what: String },
    /// Lines below this call.
    Below(Arc<str>, Vec<String>),
}

/// Questions of the terminal's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// Which session to go on with.
    Session,
    /// What to give this command.
    Argument(Command),
    /// Which prompt to go back to.
    Prompt,
    /// What to take back.
    Rewind,
}

/// A question that is shown.
pub(crate) struct Dialog {
    kind: Kind,
    /// When keys become answers; until then they are the input's.
    armed_at: Duration,
    /// From then on it can have been read; nobody has seen it before it is painted.
    read_from: Option<Duration>,
}

enum Kind {
    Permission(AskedId, Box<Permission>),
    Person(AskedId, Person),
    Form(AskedId, Form),
    List(Own, List),
    Choice(Own, Choice, Vec<Line<'static>>),
}

impl Dialog {
    /// A question of the engine's. `typed` is when the last key was pressed that was none of an answer.
    pub fn of(id: AskedId, asked: Asked, now: Duration, typed: Option<Duration>) -> Self {
        let kind = match asked {
            Asked::Permission(question) if &*question.tool == person::TOOL => match Person::of(&question) {
                Some(person) => Kind::Person(id, person),
                None => Kind::Permission(id, Box::new(Permission::of(*question))),
            },
            Asked::Permission(question) => Kind::Permission(id, Box::new(Permission::of(*question))),
            Asked::Elicitation(elicitation) => Kind::Form(id, Form::of(&elicitation)),
        };
        let armed_at = typed.map_or(now, |last| last + PAUSE);
        Self { kind, armed_at, read_from: None }
    }

    pub fn list(own: Own, list: List) -> Self {
        Self { kind: Kind::List(own, list), armed_at: Duration::ZERO, read_from: Some(Duration::ZERO) }
    }

    pub fn choice(own: Own, choice: Choice, body: Vec<Line<'static>>) -> Self {
        Self {
            kind: Kind::Choice(own, choice, body),
            armed_at: Duration::ZERO,
            read_from: Some(Duration::ZERO),
        }
    }

    /// The question of the engine's that it is.
    pub fn id(&self) -> Option<AskedId> {
        match &self.kind {
            Kind::Permission(id, _) | Kind::Person(id, _) | Kind::Form(id, _) => Some(*id),
            Kind::List(..) | Kind::Choice(..) => None,
        }
    }

    /// Whether the model wants to know something.
    pub fn is_of_model(&self) -> bool {
        matches!(self.kind, Kind::Person(..))
    }

    /// Nobody is waited for any more: what was answered so far is all there is.
    pub fn given_up(&mut self) -> Option<Outcome> {
        let Kind::Person(id, person) = &mut self.kind else { return None };
        let answer = person.given_up();
        let told = person.told(&answer, "nobody answered in time");
        Some(Outcome::Answered(*id, Answered::Permission(answer), told))
    }

    /// The call that waits for it.
    pub fn call(&self) -> Option<&Arc<str>> {
        match &self.kind {
            Kind::Permission(_, permission) => Some(permission.call()),
            Kind::Person(_, person) => Some(person.call()),
            Kind::Form(..) | Kind::List(..) | Kind::Choice(..) => None,
        }
    }

    /// Whether it is about a plan.
    pub fn is_plan(&self) -> bool {
        self.plan().is_some()
    }

    /// The plan it is about, and which question that is.
    pub fn plan(&self) -> Option<(AskedId, String)> {
        match &self.kind {
            Kind::Permission(id, permission) => Some((*id, permission.plan()?.to_owned())),
            _ => None,
        }
    }

    /// Another plan is asked about.
    pub fn set_plan(&mut self, plan: &str) {
        if let Kind::Permission(_, permission) = &mut self.kind {
            permission.set_plan(plan);
        }
    }

    /// Whether a key is an answer.
    pub fn is_armed(&self, now: Duration) -> bool {
        self.read_from.is_some_and(|from| now >= self.armed_at.max(from))
    }

    /// Whether nobody has seen what is asked now.
    pub fn is_new(&self) -> bool {
        self.read_from.is_none()
    }

    /// It is painted.
    pub fn painted(&mut self, now: Duration) {
        self.read_from.get_or_insert(now + GLANCE);
    }

    /// Whether it waits for somebody to pause who goes on typing.
    pub fn is_put_off(&self, now: Duration) -> bool {
        now < self.armed_at
    }

    /// When it will be.
    pub fn armed_at(&self) -> Duration {
        self.armed_at
    }

    /// Somebody goes on typing what they typed before it was shown.
    pub fn put_off(&mut self, now: Duration) {
        self.armed_at = now + PAUSE;
    }

    /// Whether somebody who presses this key begins to write a sentence: it can be no answer, and what follows is none.
    pub fn begins_sentence(&mut self, key: KeyEvent) -> bool {
        match &mut self.kind {
            Kind::Permission(_, permission) => permission.choice.begins_sentence(key),
            Kind::Person(_, person) => person.choice().is_some_and(|choice| choice.begins_sentence(key)),
            Kind::Form(..) | Kind::List(..) | Kind::Choice(..) => false,
        }
    }

    /// A key was pressed: what came of it.
    pub fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.given(Given::Key(key))
    }

    /// A whole line was typed, where there are no keys.
    pub fn line(&mut self, line: &str) -> Option<Outcome> {
        self.given(Given::Line(line))
    }

    fn given(&mut self, given: Given<'_>) -> Option<Outcome> {
        match &mut self.kind {
            Kind::Permission(id, permission) => {
                let picked = permission.choice.given(given)?;
                let answer = permission.answer(&picked);
                let told = permission.told(&answer, &picked);
                Some(Outcome::Answered(*id, Answered::Permission(answer), told))
            }
            Kind::Person(id, person) => {
                let picked = person.choice()?.given(given)?;
                let Some(answer) = person.take(&picked) else {
                    // The next one stands there now, and nobody has read it.
                    self.read_from = None;
                    return None;
                };
                let told = person.told(&answer, "");
                Some(Outcome::Answered(*id, Answered::Permission(answer), told))
            }
            Kind::Form(id, form) => {
                let elicited = match given {
                    Given::Key(key) => form.key(key)?,
                    Given::Line(line) => form.line(line)?,
                };
                Some(Outcome::Answered(*id, Answered::Elicitation(elicited), Told::Nothing))
            }
            Kind::List(own, list) => {
                let found = match given {
                    Given::Key(key) => list.key(key)?,
                    Given::Line(line) => list.line(line)?,
                };
                Some(match found {
                    Found::Item(at) => Outcome::Found(*own, Some(at)),
                    Found::Nothing => Outcome::Found(*own, None),
                })
            }
            Kind::Choice(own, choice, _) => Some(match choice.given(given)? {
                Picked::Answers(at, _) => Outcome::Found(*own, at.first().copied()),
                Picked::Nothing => Outcome::Found(*own, None),
            }),
        }
    }

    pub fn paste(&mut self, text: &str) {
        match &mut self.kind {
            Kind::Permission(_, permission) => permission.choice.paste(text),
            Kind::Person(_, person) => {
                if let Some(choice) = person.choice() {
                    choice.paste(text);
                }
            }
            Kind::Form(_, form) => form.paste(text),
            Kind::List(_, list) => list.paste(text),
            Kind::Choice(..) => {}
        }
    }

    /// What it is about.
    pub fn body(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        match &self.kind {
            Kind::Permission(_, permission) => permission.body(theme, columns),
            Kind::Choice(_, _, body) => body.clone(),
            _ => Vec::new(),
        }
    }

    /// The question itself, and the keys that answer it; the caret, where words are typed.
    pub fn live(&self, theme: &Theme, columns: usize) -> Live {
        match &self.kind {
            Kind::Permission(_, permission) => permission.choice.live(theme, columns),
            Kind::Person(_, person) => person.live(theme, columns),
            Kind::Form(_, form) => form.live(theme, columns),
            Kind::List(_, list) => list.live(theme, columns),
            Kind::Choice(_, choice, _) => choice.live(theme, columns),
        }
    }

    /// What is asked, in so many words. In a low window they are to be read above it.
    pub fn words(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        match &self.kind {
            Kind::Person(_, person) => person.words(theme, columns),
            Kind::Form(_, form) => form.words(theme, columns),
            Kind::Permission(..) | Kind::List(..) | Kind::Choice(..) => Vec::new(),
        }
    }

    /// The same where there are no keys.
    pub fn told(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        match &self.kind {
            Kind::Permission(_, permission) => permission.choice.told(theme, columns),
            Kind::Person(_, person) => person.told_lines(theme, columns),
            Kind::Form(_, form) => form.told(theme, columns),
            Kind::List(_, list) => list.told(theme),
            Kind::Choice(_, choice, _) => choice.told(theme, columns),
        }
    }
}

/// As much of a question as a low window has room for: what is asked, and the answer that Enter gives.
pub(crate) fn within(live: Live, rows: usize) -> Live {
    let Live { mut lines, caret } = live;
    let rows = rows.max(1);
    if lines.len() <= rows {
        return Live { lines, caret };
    }
    let is_marked = |line: &Line<'_>| line.spans.first().is_some_and(|span| span.content == MARK);
    let at = lines.iter().position(is_marked).unwrap_or_default();
    // What is typed is seen where there is room for nothing else.
    let at = caret.filter(|caret| caret.row >= at + rows.saturating_sub(1)).map_or(at, |caret| caret.row);
    let first = if rows == 1 { at } else { at.clamp(1, lines.len() + 1 - rows) };
    let title = usize::from(rows > 1);
    lines.drain(title..first);
    lines.truncate(rows);
    let moved = |caret: Caret| match caret.row.checked_sub(first) {
        Some(row) if row + title < rows => Some(Caret { row: row + title, ..caret }),
        _ if caret.row < title => Some(caret),
        _ => None,
    };
    Live { lines, caret: caret.and_then(moved) }
}
