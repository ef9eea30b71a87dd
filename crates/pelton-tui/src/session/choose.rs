//! Which session is gone on with, asked before there is one.

use crossterm::event::{Event as Typed, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use uuid::Uuid;

use crate::ask::list::{Found, List};
use crate::ask::within;
use crate::paint::{Caret, Live};
use crate::terminal::{Input, Terminal};
use crate::theme::Theme;

/// Asks which of these is gone on with: their ids, what they are called, when they were last written to.
pub async fn choose(
    terminal: &mut Terminal,
    theme: Theme,
    sessions: Vec<(Uuid, String, String)>,
) -> Option<Uuid> {
    let items = sessions.iter().map(|(_, name, when)| (name.clone(), when.clone())).collect();
    let mut list = List::new("Go on with", items);
    let chosen = |found| match found {
        Found::Item(at) => sessions.get(at).map(|(id, ..)| *id),
        Found::Nothing => None,
    };
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
                    return chosen(found);
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
                    return chosen(found);
                }
            }
            Typed::Paste(text) => list.paste(&text),
            Typed::Resize(columns, rows) => terminal.resize(columns, rows),
            _ => {}
        }
    }
}
