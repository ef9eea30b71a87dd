//! Answers into the clipboard: by a program of the desktop's, or by the terminal, which may be far away from it.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pelton::Engine;
use pelton::history::{Entry, Kind, Piece};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::apart::apart;
use super::{Chore, Session};
use crate::theme::Role;

/// Programs that take a text for the clipboard: of Wayland, of X11, of macOS.
const WRITERS: [(&str, &[&str]); 4] = [
    ("wl-copy", &[]),
    ("xclip", &["-selection", "clipboard", "-in"]),
    ("xsel", &["--clipboard", "--input"]),
    ("pbcopy", &[]),
];
/// Whoever owns the clipboard may be asleep; nobody waits for that.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes that are handed to a terminal: many take no more.
const TERMINAL_BYTES_MAX: usize = 74_000;

/// What became of a text.
pub(super) enum Copied {
    /// A program has it.
    By(&'static str),
    /// No program took it.
    Not,
}

impl Session<'_> {
    /// Puts an answer into the clipboard: the newest, or the one so many before.
    pub(super) fn copy(&mut self, engine: &Engine, which: &str) {
        let back = match which {
            "" => 1,
            which => match which.parse::<usize>() {
                Ok(back) if back > 0 => back,
                _ => return self.app.say("/copy 2 copies the last answer but one", Role::Error),
            },
        };
        let Some(answer) = answers(engine).nth(back - 1) else {
            return self.app.say("there is no such answer", Role::Error);
        };
        self.chores.push(Box::pin(async move {
            let copied = by_a_program(&answer).await;
            Chore::Copied(answer, copied)
        }));
    }

    pub(super) fn copied(&mut self, answer: &str, copied: &Copied) {
        let characters = answer.chars().count();
        let many = if characters == 1 { "character" } else { "characters" };
        match copied {
            Copied::By(program) => {
                self.app.say(&format!("{characters} {many} are in the clipboard ({program})"), Role::Faint);
            }
            Copied::Not if self.terminal.is_plain() => {
                self.app.say("nothing here can write to the clipboard: /export writes a file", Role::Error);
            }
            Copied::Not if answer.len() > TERMINAL_BYTES_MAX => {
                let words = "no program here can write to the clipboard, and this is too long for terminals: /export writes a file";
                self.app.say(words, Role::Error);
            }
            Copied::Not => {
                // Letters and digits alone: whatever the answer says, it is nothing that a terminal would heed.
                self.terminal.say(&format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(answer)));
                let words = format!(
                    "{characters} {many} were handed to your terminal for the clipboard, if it takes them"
                );
                self.app.say(&words, Role::Faint);
            }
        }
    }
}

/// What the model said in the end of each turn, the newest first.
fn answers(engine: &Engine) -> impl Iterator<Item = String> {
    let mut answers: Vec<Vec<String>> = vec![Vec::new()];
    for entry in engine.history() {
        match &entry.kind {
            Kind::Assistant { piece: Piece::Text, .. } => {
                if let Some(answer) = answers.last_mut() {
                    answer.push(words(entry));
                }
            }
            // What was said before a call is not the answer, nor what was said before the next prompt.
            Kind::ToolResult { .. } => answers.last_mut().into_iter().for_each(Vec::clear),
            Kind::Prompt { meta: false } => answers.push(Vec::new()),
            _ => {}
        }
    }
    answers.into_iter().rev().filter(|answer| !answer.is_empty()).map(|answer| answer.join("\n\n"))
}

fn words(entry: &Entry) -> String {
    let blocks: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
    let texts = blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

async fn by_a_program(text: &str) -> Copied {
    for (program, words) in WRITERS {
        if timeout(TIME_MAX, takes(program, words, text)).await == Ok(true) {
            return Copied::By(program);
        }
    }
    Copied::Not
}

/// Whether a program takes a text. It may go on to hold it.
async fn takes(program: &str, words: &[&str], text: &str) -> bool {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let Ok(mut child) = apart(&mut command).spawn() else { return false };
    let Some(mut stdin) = child.stdin.take() else { return false };
    let is_written = stdin.write_all(text.as_bytes()).await.is_ok();
    drop(stdin);
    is_written && child.wait().await.is_ok_and(|status| status.success())
}
