//! What is asked where there is no session: which one is gone on with, and whether that is wanted.

use std::time::Duration;

use crossterm::event::{Event as Typed, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use ratatui_core::text::Line;
use tokio::time::timeout;
use uuid::Uuid;

use crate::ask::list::{Found, List};
use crate::ask::within;
use crate::feed::wrapped;
use crate::paint::{Caret, Live};
use crate::terminal::{Input, Terminal};
use crate::theme::Theme;

/// What was typed before a question was there is no answer to it: it is asked when nothing was typed for so long.
const QUIET: Duration = Duration::from_millis(250);

/// Asks whether something is wanted, below what is told about it. No is proposed, and meant by whoever leaves.
pub async fn confirm(terminal: &mut Terminal, theme: Theme, told: &str, wanted: &str, not: &str) -> bool {
    let answers = [not, wanted].map(|answer| (answer.to_owned(), String::new()));
    let list = List::new("", answers.to_vec());
    let lines: Vec<Line<'_>> = told.lines().map(Line::raw).collect();
    let (columns, _) = terminal.size();
    let wrapped = lines.iter().flat_map(|line| wrapped(&line.to_string(), columns)).map(Line::raw);
    terminal.paint(&wrapped.collect::<Vec<_>>(), &Live::default());
    if let Some(Input::Keys(keys)) = terminal.input() {
        while let Ok(Some(Ok(_))) = timeout(QUIET, keys.next()).await {}
    }
    matches!(answer(terminal, theme, list).await, Some(Found::Item(1)))
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

/// What is found in a list; nothing, if nobody is there any more.
async fn answer(terminal: &mut Terminal, theme: Theme, mut list: List) -> Option<Found> {
    loop {
        terminal.ready().await;
        if terminal.is_plain() {
            terminal.paint(
                &list.told(&theme),
                &Live { caret: Some(Caret { row: 0, column: 0 }), ..Live::default() },
            );
        } else {
            let (columns, rows) = terminal.look_at_size().unwrap_or(terminal.size());
            terminal.paint(&[], &within(list.live(&theme, columns), rows));
        }
        let keys = match terminal.input()? {
            Input::Keys(keys) => keys,
            Input::Lines(lines) => {
                let line = lines.recv().await?;
                terminal.line_ended();
                if let Some(found) = list.line(&line) {
                    return Some(found);
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
                if let Some(found) = list.key(key) {
                    return Some(found);
                }
            }
            Typed::Paste(text) => list.paste(&text),
            Typed::Resize(columns, rows) => terminal.resize(columns, rows),
            _ => {}
        }
    }
}
