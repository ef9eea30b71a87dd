//! `pelton project purge`: all that is kept of a project, taken away. What the project itself holds stays.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pelton::settings::{value_of, with_value};
use pelton::transcript::{SessionFile, holder, project_key, remove_session, session_files};
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
    let found = found(&config, &env, &whose);
    if found.is_empty() {
        return say("Nothing is kept of it.\n");
    }
    if !args.interactive {
        for thing in &found {
            say(&format!("{}\n", plain(&thing.told())))?;
        }
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
    let mut is_done = true;
    for thing in &found {
        let question = format!("Take away {}? [y/N] ", plain(&thing.told()));
        if args.interactive && !asked(&question)? {
            continue;
        }
        if let Err(why) = thing.take_away(&config, &env, &whose) {
            tell(&format!("{} stays: {why}", plain(&thing.told())));
            is_done = false;
        }
    }
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
        let mut dirs = vec![named.canonicalize().unwrap_or_else(|_| named.clone())];
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

fn found(config: &Path, env: &Env, whose: &Whose) -> Vec<Thing> {
    let sessions = session_files(config).into_iter().filter(|file| whose.has_key(&file.project));
    let mut found: Vec<Thing> = sessions.map(Thing::Session).collect();
    let folders = fs::read_dir(config.join("projects")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = folders
        .filter(|folder| folder.file_name().to_str().is_some_and(|key| whose.has_key(key)))
        .map(|folder| folder.path())
        .collect();
    folders.sort();
    found.extend(folders.into_iter().map(Thing::Folder));
    let prompts = config.join("history.jsonl");
    let text = fs::read_to_string(&prompts).unwrap_or_default();
    let typed = text.lines().filter(|line| is_of(line, whose)).count();
    if typed > 0 {
        found.push(Thing::Prompts(prompts, typed));
    }
    if let Some(file) = state_file(env) {
        let state = fs::read_to_string(&file).ok().and_then(|text| value_of(&text).ok()).unwrap_or_default();
        let remembered = state["projects"].as_object().into_iter().flatten().map(|(dir, _)| dir);
        let remembered: Vec<String> = remembered.filter(|dir| whose.has(dir)).cloned().collect();
        if !remembered.is_empty() {
            found.push(Thing::State(file, remembered));
        }
    }
    found
}

/// Whether a line of the file of prompts belongs to these projects. What cannot be read belongs to nobody.
fn is_of(line: &str, whose: &Whose) -> bool {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["project"].as_str().is_some_and(|project| whose.has(project))
}

impl Thing {
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
