//! What is asked where there is no session: which one is gone on with, and whether that is wanted.

use std::time::Duration;

use crossterm::event::{Event as Typed, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use ratatui_core::text::Line;
use tokio::time::timeout;
use uuid::Uuid;

use crate::ask::choice::{Answer, Choice, Picked};
use crate::ask::list::{Found, List};
use crate::ask::{Given, within};
use crate::feed::wrapped;
use crate::paint::{Caret, Live};
use crate::terminal::{Input, Terminal};
use crate::theme::Theme;

/// What was typed before a question was there is no answer to it: it is asked when nothing was typed for so long.
const QUIET: Duration = Duration::from_millis(250);

/// Asks whether something is wanted, below what is told about it. No is proposed, and meant by whoever leaves.
pub async fn confirm(terminal: &mut Terminal, theme: Theme, told: &str, wanted: &str, not: &str) -> bool {
    let answers = [not, wanted].map(|answer| Answer::new(None, answer));
    let choice = Choice::new("", answers.to_vec()).with_escape("Esc: no");
    let (columns, _) = terminal.size();
    let mut lines: Vec<Line<'_>> =
        told.lines().flat_map(|line| wrapped(line, columns)).map(Line::raw).collect();
    // What is asked, and what comes after it, stands apart.
    lines.push(Line::default());
    terminal.paint(&lines, &Live::default());
    match terminal.input() {
        Some(Input::Keys(keys)) => while let Ok(Some(Ok(_))) = timeout(QUIET, keys.next()).await {},
        Some(Input::Lines(lines)) => while let Ok(Some(_)) = timeout(QUIET, lines.recv()).await {},
        None => {}
    }
    matches!(answer(terminal, theme, choice).await, Some(Picked::Answers(at, _)) if at == [1])
}

/// Asks which of these is gone on with: their ids, what they are called, when they were last written to.
pub async fn choose(
    terminal: &mut Terminal,
    theme: Theme,
    sessions: Vec<(Uuid, String, String)>,
) -> Option<Uuid> {
    let items = sessions.iter().map(|(_, name, when)| (name.clone(), when.clone())).collect();
    match answer(terminal, theme, List::new("Go on with", items)).await? {
        Found::Item(at) => sessions.get(at).map(|(id, ..)| *id),
        Found::Nothing => None,
    }
}

/// A question that somebody answers.
trait Asked {
    /// What it is answered.
    type Answer;
    fn live(&self, theme: &Theme, columns: usize) -> Live;
    /// The same where there are no keys.
    fn told(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>>;
    fn given(&mut self, given: Given<'_>) -> Option<Self::Answer>;
    fn paste(&mut self, text: &str);
}

impl Asked for List {
    type Answer = Found;

    fn live(&self, theme: &Theme, columns: usize) -> Live {
        self.live(theme, columns)
    }

    fn told(&self, theme: &Theme, _columns: usize) -> Vec<Line<'static>> {
        self.told(theme)
    }

    fn given(&mut self, given: Given<'_>) -> Option<Found> {
        match given {
            Given::Key(key) => self.key(key),
            Given::Line(line) => self.line(line),
        }
    }

    fn paste(&mut self, text: &str) {
        self.paste(text);
    }
}

impl Asked for Choice {
    type Answer = Picked;

    fn live(&self, theme: &Theme, columns: usize) -> Live {
        self.live(theme, columns)
    }

    fn told(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        self.told(theme, columns)
    }

    fn given(&mut self, given: Given<'_>) -> Option<Picked> {
        self.given(given)
    }

    fn paste(&mut self, text: &str) {
        self.paste(text);
    }
}

/// What somebody answers; nothing, if nobody is there any more.
async fn answer<A: Asked>(terminal: &mut Terminal, theme: Theme, mut asked: A) -> Option<A::Answer> {
    loop {
        terminal.ready().await;
        let (columns, rows) = terminal.look_at_size().unwrap_or(terminal.size());
        if terminal.is_plain() {
            let asks = Live { caret: Some(Caret { row: 0, column: 0 }), ..Live::default() };
            terminal.paint(&asked.told(&theme, columns), &asks);
        } else {
            terminal.paint(&[], &within(asked.live(&theme, columns), rows));
        }
        let keys = match terminal.input()? {
            Input::Keys(keys) => keys,
            Input::Lines(lines) => {
                let line = lines.recv().await?;
                terminal.line_ended();
                if let Some(answer) = asked.given(Given::Line(&line)) {
                    return Some(answer);
                }
                continue;
            }
        };
        match keys.next().await?.ok()? {
            Typed::Key(key) if key.kind != KeyEventKind::Release => {
                if key.modifiers.contains(KeyModifiers::CONTROL)
                    && matches!(key.code, KeyCode::Char('c' | 'd'))
                {
                    return None;
                }
                if let Some(answer) = asked.given(Given::Key(key)) {
                    return Some(answer);
                }
            }
            Typed::Paste(text) => asked.paste(&text),
            Typed::Resize(columns, rows) => terminal.resize(columns, rows),
            _ => {}
        }
    }
}
