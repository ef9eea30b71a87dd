//! Where sessions are kept, and which one goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pelton::file_history::FileHistoryLimits;
use pelton::settings::Settings;
use pelton::transcript::{
    self, Durability, Listed, Loaded, ReadError, SessionFile, copy_as, find_session, newest_attended_session,
    newest_session, session_file, session_files, sessions_of, with_facts,
};
use pelton::{Options, Resumed, Sessions, fresh_id};
use uuid::Uuid;

use super::env::Env;
use crate::args::{DurabilityArg, RunArgs};
use crate::fail::{Fail, tell};

const NOTHING_TO_CONTINUE: &str = "no session to continue in this directory: start one without --continue";

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// How much is kept of files that the agent changes.
pub(super) fn file_history_limits(settings: &Settings) -> FileHistoryLimits {
    let mut limits = FileHistoryLimits::default();
    limits.file_bytes_max = settings.file_history_file_bytes_max.unwrap_or(limits.file_bytes_max);
    limits.total_bytes_max = settings.file_history_total_bytes_max.unwrap_or(limits.total_bytes_max);
    // While a file cannot be read, nobody knows what it would have kept.
    limits.kept_for = match (settings.restrictions_unknown, settings.cleanup_days) {
        (true, _) => None,
        (false, Some(days)) => Some(Duration::from_secs(days.saturating_mul(DAY_SECONDS))),
        (false, None) => limits.kept_for,
    };
    limits
}

pub(crate) fn config_dir(env: &Env) -> Option<PathBuf> {
    env.path("CLAUDE_CONFIG_DIR").or_else(|| env.path("HOME").map(|home| home.join(".claude")))
}

pub(super) fn sessions(args: &RunArgs, env: &Env, set: Option<Durability>) -> Option<Sessions> {
    let config_dir = config_dir(env);
    if config_dir.is_none() {
        tell("warning: neither CLAUDE_CONFIG_DIR nor HOME is set, so this session is not recorded");
    }
    let said = args.durability.map(|said| match said {
        DurabilityArg::Synced => Durability::Synced,
        DurabilityArg::Fast => Durability::Fast,
    });
    let durability = said.or(set).unwrap_or_default();
    Some(Sessions { config_dir: config_dir?, durability })
}

pub(super) fn resumed(args: &RunArgs, env: &Env, options: &Options) -> Result<Option<Resumed>, Fail> {
    if args.resume.is_none() && !args.continue_newest {
        let client = &args.client;
        return match client
            .resume_session_at
            .map(|_| "--resume-session-at")
            .or(client.resume_drops_turn.map(|_| "--resume-drops-turn"))
        {
            Some(option) => {
                Err(Fail::at_start(format!("{option} needs --resume or --continue: it says from where on")))
            }
            None => Ok(None),
        };
    }
    let cwd = options.cwd.canonicalize().unwrap_or_else(|_| options.cwd.clone());
    let config_dir = config_dir(env)
        .ok_or_else(|| Fail::at_start("cannot look for sessions: set CLAUDE_CONFIG_DIR or HOME"))?;
    let file = match args.resume.as_deref() {
        Some("") => return Err(Fail::new("--resume needs the id of a session here")),
        Some(text) => {
            let unknown = || Fail::no_conversation(text);
            match text.parse() {
                Ok(id) => find_session(&config_dir, &cwd, id).ok_or_else(unknown)?,
                Err(_) => named(&config_dir, &cwd, text)?.ok_or_else(unknown)?,
            }
        }
        None if args.is_attended() => newest_attended_session(&config_dir, &cwd).ok_or_else(|| {
            Fail::at_start(match newest_session(&config_dir, &cwd) {
                Some(_) => "no session here had anybody in front of it: --resume goes on with those of pelton -p, too",
                None => NOTHING_TO_CONTINUE,
            })
        })?,
        None => newest_session(&config_dir, &cwd).ok_or_else(|| Fail::at_start(NOTHING_TO_CONTINUE))?,
    };
    let conversation = conversation(args, &file)?;
    let path = file.display();
    match conversation.lines_skipped {
        0 => {}
        1 => tell(&format!("warning: a damaged line of {path} was left out; the file is unchanged")),
        lines => {
            tell(&format!("warning: {lines} damaged lines of {path} were left out; the file is unchanged"));
        }
    }
    if args.client.fork_session {
        return forked(args, options, &config_dir, &cwd, &file, conversation).map(Some);
    }
    Ok(Some(Resumed { file, conversation }))
}

/// The session that is called so: of this directory, or else the only one of any.
fn named(config_dir: &Path, cwd: &Path, name: &str) -> Result<Option<PathBuf>, Fail> {
    for files in [sessions_of(config_dir, cwd), session_files(config_dir)] {
        let is_it = |one: &Listed| one.facts.title.as_deref() == Some(name) && !one.facts.is_sidechain;
        let mut found: Vec<SessionFile> =
            with_facts(&files).into_iter().filter(is_it).map(|one| one.file).collect();
        if found.len() > 1 {
            let ids: Vec<String> = found.iter().map(|file| file.id.to_string()).collect();
            let several =
                format!("several sessions are called '{name}': name one by its id, of {}", ids.join(", "));
            return Err(Fail::at_start(several));
        }
        if let Some(file) = found.pop() {
            return Ok(Some(file.file));
        }
    }
    Ok(None)
}

/// As much of a conversation as is gone on with.
fn conversation(args: &RunArgs, file: &Path) -> Result<Loaded, Fail> {
    let fail = |error: ReadError| Fail::at_start(error.to_string());
    let (at, drops) = (args.client.resume_session_at, args.client.resume_drops_turn);
    let Some(id) = at.or(drops) else { return transcript::read_window(file).map_err(fail) };
    let until = transcript::read_window_until(file, id).map_err(fail)?;
    let part = match at {
        Some(_) => until,
        None => until.and_then(|until| until.without_turn_of(id)),
    };
    let part = part.ok_or_else(|| Fail::at_start(not_found(file, id)))?;
    if let (Some(at), Some(drops)) = (at, drops) {
        drops_only_this_turn(file, at, drops)?;
    }
    Ok(part)
}

/// Why nothing can be gone on with from a message, and what can be done.
fn not_found(file: &Path, id: Uuid) -> String {
    let why = format!("No message found with message.uuid of: {id}");
    match transcript::withdrawn(file) {
        Ok(withdrawn) if withdrawn.contains(&id) => format!(
            "{why}: it was taken back when its answer was asked for again. Name the message before it, or leave the option \
             out to go on from the end"
        ),
        _ => why,
    }
}

/// Whoever says which turn is to be forgotten does not want to lose anything else that they have not seen.
fn drops_only_this_turn(file: &Path, at: Uuid, turn: Uuid) -> Result<(), Fail> {
    let fail = |error: ReadError| Fail::at_start(error.to_string());
    let mut all = transcript::read_window(file).map_err(fail)?;
    if all.is_partial && all.entries.iter().all(|entry| entry.id != at) {
        all = transcript::read(file).map_err(fail)?;
    }
    all.has_only_the_turn_of(turn, at)
        .map_err(|why| Fail::at_start(format!("Resume rejected by --resume-drops-turn: {why}")))
}

/// The same conversation under another id, in a file of its own. The other one stays as it is.
fn forked(
    args: &RunArgs,
    options: &Options,
    config_dir: &Path,
    cwd: &Path,
    from: &Path,
    mut conversation: Loaded,
) -> Result<Resumed, Fail> {
    let session = args.session_id.unwrap_or_else(|| fresh_id(options.world.as_ref()));
    let file = session_file(config_dir, cwd, session);
    if options.sessions.is_some() {
        copy_as(from, &file, session).map_err(|error| {
            Fail::at_start(format!("cannot copy the session file to {}: {error}", file.display()))
        })?;
        // What the copy holds is what was read, whoever wrote to the other file in the meantime.
        conversation.read_to = file.metadata().map_or(conversation.read_to, |copy| copy.len());
    }
    conversation.session_id = Some(session);
    Ok(Resumed { file, conversation })
}
