//! Which key means what in the prompt: those of readline and Emacs, and those of every text field.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::Command;

/// What a key means in the prompt; `None`: nothing, so that others may have a use for it.
pub fn command(key: &KeyEvent) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    match (key.code, control, alt) {
        (KeyCode::Enter, false, false) if !shift => Some(Command::Enter),
        // Whatever of it a terminal can tell from Enter alone.
        (KeyCode::Enter, ..) => Some(Command::Newline),
        (KeyCode::Backspace, false, false) => Some(Command::Backspace),
        (KeyCode::Backspace, ..) => Some(Command::KillWordBefore),
        (KeyCode::Delete, false, false) => Some(Command::Delete),
        (KeyCode::Delete, ..) => Some(Command::KillWordAfter),
        (KeyCode::Left, false, false) => Some(Command::Left),
        (KeyCode::Right, false, false) => Some(Command::Right),
        (KeyCode::Left, ..) => Some(Command::WordLeft),
        (KeyCode::Right, ..) => Some(Command::WordRight),
        (KeyCode::Up, false, false) => Some(Command::Up),
        (KeyCode::Down, false, false) => Some(Command::Down),
        (KeyCode::Up, true, false) => Some(Command::HistoryOlder),
        (KeyCode::Down, true, false) => Some(Command::HistoryNewer),
        (KeyCode::Home, true, _) => Some(Command::Start),
        (KeyCode::End, true, _) => Some(Command::End),
        (KeyCode::Home, ..) => Some(Command::LineStart),
        (KeyCode::End, ..) => Some(Command::LineEnd),
        (KeyCode::Char(c), true, false) => with_control(c),
        (KeyCode::Char(c), false, true) => with_alt(c),
        // Some keyboards have characters that need both.
        (KeyCode::Char(c), true, true) if !c.is_ascii_alphanumeric() => Some(Command::Insert(c)),
        (KeyCode::Char(c), false, false) if !c.is_control() => Some(Command::Insert(c)),
        _ => None,
    }
}

fn with_control(c: char) -> Option<Command> {
    Some(match c.to_ascii_lowercase() {
        'a' => Command::LineStart,
        'b' => Command::Left,
        'd' => Command::Delete,
        'e' => Command::LineEnd,
        'f' => Command::Right,
        'g' => Command::Cancel,
        'h' => Command::Backspace,
        'j' => Command::Newline,
        'k' => Command::KillLineEnd,
        'n' => Command::Down,
        'p' => Command::Up,
        'r' => Command::Search,
        't' => Command::Transpose,
        'u' => Command::KillLineStart,
        'w' => Command::KillRun,
        'y' => Command::Yank,
        // Terminals send the same for these.
        '_' | '-' | '/' | '7' => Command::Undo,
        _ => return None,
    })
}

fn with_alt(c: char) -> Option<Command> {
    Some(match c.to_ascii_lowercase() {
        'b' => Command::WordLeft,
        'd' => Command::KillWordAfter,
        'f' => Command::WordRight,
        'y' => Command::YankOlder,
        '<' => Command::Start,
        '>' => Command::End,
        '_' | '-' | '/' => Command::Redo,
        _ => return None,
    })
}
