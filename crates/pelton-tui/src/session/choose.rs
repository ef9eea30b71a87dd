//! Which session is gone on with, asked before there is one.

use crossterm::event::{Event as Typed, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use uuid::Uuid;

use crate::ask::list::{Found, List};
use crate::paint::Live;
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
    loop {
        terminal.ready().await;
        terminal.paint(&[], &Live { lines: list.lines(&theme), caret: None });
        let Input::Keys(keys) = terminal.input()? else { return None };
        match keys.next().await?.ok()? {
            Typed::Key(key) if key.kind != KeyEventKind::Release => {
                if key.modifiers.contains(KeyModifiers::CONTROL)
                    && matches!(key.code, KeyCode::Char('c' | 'd'))
                {
                    return None;
                }
                match list.key(key) {
                    Some(Found::Item(at)) => return sessions.get(at).map(|(id, ..)| *id),
                    Some(Found::Nothing) => return None,
                    None => {}
                }
            }
            Typed::Resize(columns, rows) => terminal.resize(columns, rows),
            _ => {}
        }
    }
}
