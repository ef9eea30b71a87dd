//! Other programs: the user's editor, their command lines, and this very program for what it knows how to tell.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use pelton::tools::Report;
use pelton::{Engine, Prompt};
use ratatui_core::text::Line;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::apart::apart;
use super::{Chore, Session, Work};
use crate::app::Effect;
use crate::ask::AskedId;
use crate::theme::Role;

/// Lines of a command's output that wait to be shown; of more, some are not.
const REPORTS_WAITING_MAX: usize = 64;
/// What is shown of a program's words, in lines.
const LINES_SHOWN_MAX: usize = 500;

/// Other programs that a session may start.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Outside {
    /// The user's editor, as a shell would be told.
    pub editor: Option<String>,
    /// This program.
    pub program: Option<PathBuf>,
    /// Where files for a moment go.
    pub temp_dir: PathBuf,
    /// Where this program works now, if that is there: the directory of a session may be gone, or be called something else.
    pub here: Option<fn() -> Option<PathBuf>>,
    /// The model answers to what a command line of the user's says, instead of reading it with the next prompt.
    pub model_answers: bool,
}

/// Stops the whole program until a shell goes on with it, whoever listens for that. Where nobody could go on, nothing happens.
pub fn stop_here() {
    let by_itself = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: what the signal does by itself runs no code of ours.
    let Ok(before) = (unsafe { sigaction(Signal::SIGTSTP, &by_itself) }) else { return };
    let _ = raise(Signal::SIGTSTP);
    // SAFETY: this was in place before, and is as sound as it was.
    let _ = unsafe { sigaction(Signal::SIGTSTP, &before) };
}

/// What is written in an editor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Edits {
    Prompt,
    /// The plan that this question is about.
    Plan(AskedId),
}

impl Session<'_> {
    /// Stops, until the shell goes on with it.
    pub(super) async fn suspend(&mut self) {
        self.terminal.give().await;
        stop_here();
        self.take_again();
    }

    fn take_again(&mut self) {
        if self.terminal.take().is_err() {
            self.needs.push_front(Effect::Leave);
        }
        let (columns, rows) = self.terminal.size();
        self.app.resize(columns, rows);
        self.is_stale = true;
    }

    /// Lets the user write in an editor of their own. The model goes on meanwhile; what it says is shown afterwards.
    pub(super) async fn edit_outside(&mut self, what: Edits, words: &str) {
        let Some(editor) = self.outside.editor.clone() else {
            return self.app.say("set EDITOR to write in an editor of your own", Role::Error);
        };
        let file = self.outside.temp_dir.join(format!("pelton-{}.md", pelton::fresh_id(self.world.as_ref())));
        // What is written may be nobody else's business.
        let mut options = std::fs::OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&file);
        if let Err(error) = opened.and_then(|mut file| file.write_all(words.as_bytes())) {
            return self.app.say(&format!("{}: {error}", file.display()), Role::Error);
        }
        self.terminal.give().await;
        self.chores.push(Box::pin(async move {
            // An interrupt that is typed there is the editor's, and not the end of the shell around it.
            let words = format!("trap : INT; {editor} \"$1\"");
            let ran = Command::new("sh").args(["-c", &words, "sh"]).arg(&file).status().await;
            let edited = match (ran, std::fs::read_to_string(&file)) {
                (Ok(status), Ok(text)) if status.success() => Ok(text.trim_end_matches('\n').to_owned()),
                (Ok(status), Ok(_)) => Err(format!("{editor}: {status}; nothing was taken over")),
                (Err(error), _) | (_, Err(error)) => Err(format!("{editor}: {error}")),
            };
            // What is left of it does no harm.
            let _ = std::fs::remove_file(&file);
            Chore::Edited(what, edited)
        }));
    }

    /// The editor is shut.
    pub(super) fn edited(&mut self, what: Edits, edited: Result<String, String>) {
        self.take_again();
        match (what, edited) {
            (Edits::Prompt, Ok(text)) => self.app.draft.set(&text),
            (Edits::Plan(id), Ok(text)) => self.app.plan_edited(id, &text),
            (_, Err(why)) => self.app.say(&why, Role::Error),
        }
    }

    /// Runs a command line of the user's own. The model answers to what it says, or reads it with the next prompt.
    pub(super) async fn shell(&mut self, engine: &mut Engine, command: String) {
        self.is_asked = true;
        let now = self.now();
        self.app.begin(Some(&format!("!{command}")), now);
        self.desk.typed(Some(&command));
        let cancel = CancellationToken::new();
        let output = {
            let input = json!({"command": command, "description": "The user's own command"});
            let (reports, mut told) = mpsc::channel(REPORTS_WAITING_MAX);
            self.app.feed.own_begins(&input, now);
            let mut call = std::pin::pin!(engine.call_told("Bash", input, &cancel, reports));
            loop {
                tokio::select! {
                    biased;
                    wake = self.wake() => {
                        self.heed_while(wake, &cancel).await;
                    }
                    Some((_, Report::OutputLine(line))) = told.recv() => {
                        self.app.feed.own_says(&line);
                        self.is_stale = true;
                    }
                    output = &mut call => break output,
                }
            }
        };
        self.desk.typed(None);
        self.app.feed.own_ended();
        self.ended();
        let words = output.words();
        let lines = words.lines().count();
        let shown: Vec<&str> = words.lines().take(LINES_SHOWN_MAX).collect();
        self.app.say(&shown.join("\n"), if output.is_error { Role::Error } else { Role::Text });
        if lines > LINES_SHOWN_MAX {
            self.app.say(&format!("… {} more lines", lines - LINES_SHOWN_MAX), Role::Faint);
        }
        // What is answered to it stands apart.
        self.app.put(vec![Line::default()]);
        let told = format!("<bash-input>{command}</bash-input>\n<bash-output>{words}</bash-output>");
        let is_answered = self.outside.model_answers && !cancel.is_cancelled();
        let kept = match Prompt::text(told) {
            Ok(prompt) if is_answered => {
                self.pull(engine, Work::Prompt(prompt.verbatim())).await;
                Ok(())
            }
            Ok(prompt) => engine.append(prompt.verbatim()).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = kept {
            self.app.say(&format!("the model will not read this: {why}"), Role::Error);
        }
    }

    /// Whether leaving comes next, whatever else is wanted.
    pub(super) fn is_leaving(&self) -> bool {
        self.needs.front() == Some(&Effect::Leave)
    }

    /// The same as ever, but an interrupt means the user's own command, and so does whatever ends the session.
    async fn heed_while(&mut self, wake: super::Wake, cancel: &CancellationToken) {
        let interrupted_before = self.app.is_interrupted();
        self.heed(wake).await;
        if self.app.is_interrupted() && !interrupted_before || self.is_leaving() {
            cancel.cancel();
        }
    }

    /// What this program says when it is asked so, one after the other.
    pub(super) fn ask_program(&mut self, asked: Vec<Vec<String>>) {
        let Some(program) = self.outside.program.clone() else {
            return self.app.say("this program cannot be found any more", Role::Error);
        };
        let cwd = self.cwd.clone();
        self.chores.push(Box::pin(async move {
            let mut said = Vec::new();
            for words in asked {
                let mut command = Command::new(&program);
                command.args(&words).current_dir(&cwd).stdin(Stdio::null()).kill_on_drop(true);
                said.push(match apart(&mut command).output().await {
                    Err(error) => error.to_string(),
                    Ok(output) => {
                        let said = [output.stdout, output.stderr].concat();
                        let said = String::from_utf8_lossy(&said);
                        said.lines().take(LINES_SHOWN_MAX).collect::<Vec<_>>().join("\n")
                    }
                });
            }
            Chore::Said(said.join("\n"))
        }));
    }
}
