//! `pelton sessions`: what was said in past sessions, to look at, search, take along and take away.

mod said; // what was said, line by line
mod list; // which there are
mod show; // one of them
mod search; // words in them
mod export; // as a document
mod remove; // what is not wanted any more

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use jiff::Timestamp;
use pelton::transcript::{Listed, find_session, session_files, sessions_of, with_facts};
use pelton_serve::plain;
use uuid::Uuid;

use crate::args::SessionsCommand;
use crate::fail::Fail;
use crate::resolve::{Env, sessions, working_directory};

pub(crate) fn run(command: &SessionsCommand) -> Result<ExitCode, Fail> {
    let shelf = Shelf::of_process()?;
    match command {
        SessionsCommand::List(args) => list::run(args, &shelf),
        SessionsCommand::Show(args) => show::run(args, &shelf),
        SessionsCommand::Search(args) => search::run(args, &shelf),
        SessionsCommand::Export(args) => export::run(args, &shelf),
        SessionsCommand::Delete(args) => remove::delete(args, &shelf),
        SessionsCommand::Prune(args) => remove::prune(args, &shelf),
    }
}

/// Where sessions are, seen from a directory.
pub(crate) struct Shelf {
    pub config_dir: PathBuf,
    pub cwd: PathBuf,
}

impl Shelf {
    pub fn of_process() -> Result<Self, Fail> {
        let config_dir = sessions::config_dir(&Env::of_process())
            .ok_or_else(|| Fail::new("cannot look for sessions: set CLAUDE_CONFIG_DIR or HOME"))?;
        let cwd = working_directory()?;
        Ok(Self { config_dir, cwd: cwd.canonicalize().unwrap_or(cwd) })
    }

    /// The file of a session.
    pub fn find(&self, id: Uuid) -> Result<PathBuf, Fail> {
        find_session(&self.config_dir, &self.cwd, id).ok_or_else(|| Fail::no_conversation(&id.to_string()))
    }

    /// The sessions of this directory, or of all, newest first. Records of sub-agents are none.
    fn listed(&self, all: bool) -> Vec<Listed> {
        let files = match all {
            true => session_files(&self.config_dir),
            false => sessions_of(&self.config_dir, &self.cwd),
        };
        let mut listed = with_facts(&files);
        listed.retain(|one| !one.facts.is_sidechain);
        listed
    }
}

/// What a session is called, or what was asked first.
fn name_of(listed: &Listed) -> String {
    let facts = &listed.facts;
    let words = facts.title.as_ref().or(facts.first_prompt.as_ref()).or(facts.last_prompt.as_ref());
    plain(words.map_or("(nothing was asked)", String::as_str))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// A day and a time, as they are everywhere.
fn moment(time: std::time::SystemTime) -> String {
    Timestamp::try_from(time)
        .map_or_else(|_| "?".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Writes to standard output. A reader that has seen enough is no failure.
pub(crate) fn say(text: &str) -> Result<ExitCode, Fail> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Fail::new(format!("cannot write to standard output: {error}"))),
    }
}
