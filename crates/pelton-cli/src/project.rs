//! `pelton project purge`: all that is kept of a project, taken away. What the project itself holds stays.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pelton::normalised;
use pelton::settings::{value_of, with_value};
use pelton::transcript::{SessionFile, holder, project_key, remove_session, session_files, sessions_of};
use pelton_serve::plain;
use serde_json::Value;

use crate::args::{ProjectCommand, PurgeArgs};
use crate::fail::{Fail, tell};
use crate::resolve::{Env, STATE_BYTES_MAX, back_up, config_dir, state_file, working_directory};
use crate::trust::{asked, say};
use crate::written::{Seen, change};

/// Bytes of the file of prompts that is still rewritten.
const PROMPTS_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// What stands elsewhere by a session's id: our own logs, and what other programs of this kind keep there.
const BESIDE: [&str; 3] = ["tasks", "session-env", "debug"];

pub(crate) fn run(command: &ProjectCommand) -> Result<ExitCode, Fail> {
    let ProjectCommand::Purge(args) = command;
    let env = Env::of_process();
    let config = config_dir(&env)
        .ok_or_else(|| Fail::new("cannot look for what is kept: set CLAUDE_CONFIG_DIR or HOME"))?;
    let whose = Whose::meant(args)?;
    let Found { things, stays, is_open } = found(&config, &env, &whose);
    if !args.interactive {
        for thing in &things {
            say(&format!("{}\n", plain(&thing.told())))?;
        }
    }
    for (thing, why) in &stays {
        say(&format!("{} stays: {}\n", plain(&thing.told()), plain(why)))?;
    }
    if things.is_empty() {
        return match stays.is_empty() {
            true => say("Nothing is kept of it.\n"),
            false => ended("Nothing was changed.\n", !is_open || args.dry_run),
        };
    }
    if args.dry_run {
        return say("Nothing was changed.\n");
    }
    let can_ask = io::stdin().is_terminal();
    if !args.yes && !can_ask {
        return Err(Fail::new("nothing was changed: say --yes to have it taken away without a question"));
    }
    if !args.yes && !args.interactive && !asked("Take all of this away? It does not come back. [y/N] ")? {
        return say("Nothing was changed.\n");
    }
    let mut is_done = !is_open;
    for thing in &things {
        let question = format!("Take away {}? [y/N] ", plain(&thing.told()));
        if args.interactive && !asked(&question)? {
            continue;
        }
        if let Err(why) = thing.take_away(&config, &env, &whose) {
            tell(&format!("{} stays: {why}", plain(&thing.told())));
            is_done = false;
        }
    }
    ended("", is_done)
}

fn ended(words: &str, is_done: bool) -> Result<ExitCode, Fail> {
    say(words)?;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Which projects are meant.
enum Whose {
    All,
    /// Of one directory: as it was named, and as it is.
    One(Vec<PathBuf>),
}

impl Whose {
    fn meant(args: &PurgeArgs) -> Result<Self, Fail> {
        if args.all {
            return Ok(Self::All);
        }
        let here = working_directory()?;
        let named = args.dir.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir));
        let (real, named) = (named.canonicalize(), normalised(&named));
        let mut dirs = vec![real.unwrap_or_else(|_| named.clone())];
        if dirs[0] != named {
            dirs.push(named);
        }
        Ok(Self::One(dirs))
    }

    fn has(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(dirs) => dirs.iter().any(|dir| dir.to_str() == Some(path)),
        }
    }

    /// The sessions of these directories, and others whose records lie in the same folders. A record of another day may lie in that of a name
    /// that the directory had then.
    fn sessions(&self, config: &Path) -> Vec<SessionFile> {
        let Self::One(dirs) = self else { return session_files(config) };
        let mut all: Vec<SessionFile> = dirs.iter().flat_map(|dir| sessions_of(config, dir)).collect();
        all.sort_by(|one, other| one.file.cmp(&other.file));
        all.dedup();
        all
    }

    /// Whether a session is of these directories; `None` if it does not say.
    fn works_in(&self, session: &SessionFile) -> Option<bool> {
        let Self::One(dirs) = self else { return Some(true) };
        let said: Vec<bool> = dirs.iter().filter_map(|dir| session.works_in(dir)).collect();
        (!said.is_empty()).then(|| said.contains(&true))
    }

    fn has_key(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(dirs) => dirs.iter().any(|dir| project_key(dir) == key),
        }
    }
}

/// Something that is kept.
enum Thing {
    Session(SessionFile),
    /// What is left of a project's folder without its sessions: notes, and records of nobody.
    Folder(PathBuf),
    /// So many prompts of other days, in a file of all projects.
    Prompts(PathBuf, usize),
    /// What is remembered of these directories, in a file of all projects.
    State(PathBuf, Vec<String>),
}

/// What is taken away, and what would be if it were not for something else.
struct Found {
    things: Vec<Thing>,
    stays: Vec<(Thing, String)>,
    /// Something of it is in use.
    is_open: bool,
}

fn found(config: &Path, env: &Env, whose: &Whose) -> Found {
    let mut found = Found { things: Vec::new(), stays: Vec::new(), is_open: false };
    let prompts = config.join("history.jsonl");
    let text = fs::read_to_string(&prompts).unwrap_or_default();
    let state_file = state_file(env);
    let state = state_file.as_ref().and_then(|file| fs::read_to_string(file).ok());
    let state = state.and_then(|text| value_of(&text).ok()).unwrap_or_default();
    let remembered = || state["projects"].as_object().into_iter().flatten().map(|(dir, _)| dir.as_str());
    // Whoever else is known by the name of a folder.
    let asked = text.lines().filter_map(project_of);
    let others: BTreeSet<String> =
        remembered().map(str::to_owned).chain(asked).filter(|dir| !whose.has(dir)).collect();
    for file in whose.sessions(config) {
        let thing = Thing::Session(file);
        let Thing::Session(session) = &thing else { continue };
        let why = match whose.works_in(session) {
            Some(true) => holder(&session.file).map(|holder| {
                found.is_open = true;
                format!("it is open ({holder})")
            }),
            Some(false) => Some(match session.facts().cwd {
                Some(cwd) => format!("it is of {}", cwd.display()),
                None => "it is of another directory".to_owned(),
            }),
            None => Some("it does not say where it worked".to_owned()),
        };
        match why {
            None => found.things.push(thing),
            Some(why) => found.stays.push((thing, why)),
        }
    }
    let folders = fs::read_dir(config.join("projects")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path()).collect();
    folders.sort();
    for folder in folders {
        let Some(key) = folder.file_name().and_then(|key| key.to_str()).filter(|key| whose.has_key(key))
        else {
            continue;
        };
        let mut left = found.stays.iter().filter_map(|(thing, _)| thing.file());
        let why = match others.iter().find(|dir| project_key(Path::new(dir)) == key) {
            _ if left.any(|file| file.starts_with(&folder)) => Some("a session in it stays".to_owned()),
            Some(other) => Some(format!("it may be of {other}, too")),
            None => None,
        };
        match why {
            None => found.things.push(Thing::Folder(folder)),
            Some(why) => found.stays.push((Thing::Folder(folder), why)),
        }
    }
    let typed = text.lines().filter(|line| is_of(line, whose)).count();
    if typed > 0 {
        found.things.push(Thing::Prompts(prompts, typed));
    }
    let remembered: Vec<String> = remembered().filter(|dir| whose.has(dir)).map(str::to_owned).collect();
    if let Some(file) = state_file.filter(|_| !remembered.is_empty()) {
        found.things.push(Thing::State(file, remembered));
    }
    found
}

/// The project that a line of the file of prompts says.
fn project_of(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    line["project"].as_str().map(str::to_owned)
}

/// Whether a line of the file of prompts belongs to these projects. What cannot be read belongs to nobody.
fn is_of(line: &str, whose: &Whose) -> bool {
    project_of(line).is_some_and(|project| whose.has(&project))
}

impl Thing {
    /// The record of a session.
    fn file(&self) -> Option<&Path> {
        match self {
            Self::Session(session) => Some(&session.file),
            _ => None,
        }
    }

    fn told(&self) -> String {
        match self {
            Self::Session(session) => format!("session {}: {}", session.id, session.file.display()),
            Self::Folder(folder) => format!("folder: {}", folder.display()),
            Self::Prompts(file, count) => format!("{count} prompts in {}", file.display()),
            Self::State(file, dirs) => format!("what {} remembers of {}", file.display(), dirs.join(", ")),
        }
    }

    fn take_away(&self, config: &Path, env: &Env, whose: &Whose) -> Result<(), String> {
        match self {
            Self::Session(session) => {
                if let Some(holder) = holder(&session.file) {
                    return Err(format!("it is open ({holder})"));
                }
                for folder in BESIDE {
                    for name in [session.id.to_string(), format!("{}.txt", session.id)] {
                        gone(&config.join(folder).join(name)).map_err(|error| error.to_string())?;
                    }
                }
                remove_session(config, session).map_err(|error| error.to_string())
            }
            Self::Folder(folder) => {
                let is_used = session_files(config).iter().any(|session| session.file.starts_with(folder));
                if is_used {
                    Err("there is a session in it".to_owned())
                } else {
                    gone(folder).map_err(|error| error.to_string())
                }
            }
            Self::Prompts(file, _) => change(file, PROMPTS_BYTES_MAX, Seen::ByOwner, |text| {
                let kept = text.lines().filter(|line| !is_of(line, whose));
                Ok(Some(kept.map(|line| format!("{line}\n")).collect()))
            }),
            Self::State(file, _) => change(file, STATE_BYTES_MAX, Seen::ByOwner, |text| {
                let state = value_of(text).map_err(|error| error.to_string())?;
                let Some(mut projects) = state["projects"].as_object().cloned() else { return Ok(None) };
                projects.retain(|dir, _| !whose.has(dir));
                back_up(env, text)?;
                with_value(text, &["projects"], &projects.into()).map_err(|error| error.to_string())
            }),
        }
    }
}

/// Takes a file or a folder away, without following links.
fn gone(path: &Path) -> io::Result<()> {
    let done = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
