//! Which settings files count, and what of them: the user's own, the project's, the user's for this project, and what
//! the command line names. Whoever opened a repository may not have read it, so what it would grant itself is left out
//! until its directory is trusted.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pelton::hooks::{Severity, Source};
use pelton::settings::{self, Brought, Origin, Settings, Treatment, Watched, untrusted};

use super::env::Env;
use super::repository::{Repository, is_tracked};
use super::sessions::config_dir;
use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// The most bytes of a settings file.
pub(super) const SETTINGS_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// The most bytes of the file that says, among much else, which directories are trusted.
const STATE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Everything that was set, the command line over the files.
pub(super) fn settings(args: &RunArgs, env: &Env, cwd: &Path) -> Result<Settings, Fail> {
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let mut all = Settings::default();
    let user_dir = config_dir(env);
    let user_file = user_dir.as_ref().map(|dir| dir.join("settings.json"));
    if let (true, Some(file)) = (sources.user, &user_file) {
        all = layer(file, &Source::User, user_dir.as_deref()).over(all);
    }
    let repository = Repository::around(cwd);
    let root = repository.as_ref().map_or(cwd, |repository| &repository.root);
    let trusted = || is_trusted(env, root);
    let project_file = cwd.join(".claude/settings.json");
    // In the home directory the project's file is the user's.
    if sources.project && !is_same(&project_file, user_file.as_deref()) {
        let mut project = layer(&project_file, &Source::Project, None);
        if project_file.exists() && !trusted() {
            leave_out_grants(&mut project, &project_file);
        }
        all = project.over(all);
    }
    if sources.local {
        // SDKs work where they are told to, and nowhere above.
        let by_sdk = env.get("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry.starts_with("sdk-"));
        let at_home = env.path("HOME").is_some_and(|home| home == root);
        let folder = if by_sdk || at_home { cwd } else { root };
        let file = folder.join(".claude/settings.local.json");
        let mut local = layer(&file, &Source::Local, None);
        if file.exists() && is_from_repository(&file, repository.as_ref()) && !trusted() {
            leave_out_grants(&mut local, &file);
        }
        all = local.over(all);
    }
    if let Some(said) = args.settings.as_deref().filter(|said| !said.trim().is_empty()) {
        all = from_command_line(said, cwd)?.over(all);
    }
    Ok(all)
}

/// Which files are read.
pub(super) struct Sources {
    pub(super) user: bool,
    pub(super) project: bool,
    pub(super) local: bool,
}

impl Sources {
    pub(super) fn said(said: Option<&str>) -> Result<Self, Fail> {
        let Some(said) = said else { return Ok(Self { user: true, project: true, local: true }) };
        let mut sources = Self { user: false, project: false, local: false };
        for name in said.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "user" => sources.user = true,
                "project" => sources.project = true,
                "local" => sources.local = true,
                other => {
                    return Err(Fail::new(format!(
                        "--setting-sources names a source there is not: '{other}' (there are user, project, local)"
                    )));
                }
            }
        }
        Ok(sources)
    }
}

/// One file that may be there. What is wrong with it is told, and the rest of it counts; of a file that cannot be read
/// at all nobody knows what it forbids.
fn layer(file: &Path, source: &Source, anchor: Option<&Path>) -> Settings {
    let name = file.display().to_string();
    let read = match text_of(file, SETTINGS_BYTES_MAX) {
        Ok(None) => return Settings::default(),
        Ok(Some(text)) => {
            settings::read(&text, Origin { source, file: &name, anchor }).map_err(|error| error.to_string())
        }
        Err(error) => Err(format!("{name}: {error}")),
    };
    match read {
        Ok((settings, problems)) => {
            problems.iter().for_each(|problem| tell(&format!("warning: {problem}")));
            settings
        }
        Err(error) => {
            tell(&format!("warning: {error} (the file is left as it is, and nothing of it counts)"));
            let mut unknown = Settings::default();
            unknown.restrictions_unknown = true;
            unknown
        }
    }
}

/// A file, or settings as they are. Somebody typed this for this run: what is wrong with it is an error.
fn from_command_line(said: &str, cwd: &Path) -> Result<Settings, Fail> {
    let (name, text) = if said.trim_start().starts_with('{') {
        ("--settings".to_owned(), said.to_owned())
    } else {
        let file = cwd.join(said);
        let name = format!("--settings {}", file.display());
        match text_of(&file, SETTINGS_BYTES_MAX) {
            Ok(Some(text)) => (name, text),
            Ok(None) => return Err(Fail::at_start(format!("{name}: there is no such file"))),
            Err(error) => return Err(Fail::at_start(format!("{name}: {error}"))),
        }
    };
    let origin = Origin { source: &Source::Flag, file: &name, anchor: None };
    let (settings, problems) =
        settings::read(&text, origin).map_err(|error| Fail::at_start(error.to_string()))?;
    for problem in problems {
        if problem.severity == Severity::Error {
            return Err(Fail::at_start(problem.to_string()));
        }
        tell(&format!("warning: {problem}"));
    }
    Ok(settings)
}

/// The text of a file, `None` if there is none. Only files are read: a pipe would be waited for.
pub(super) fn text_of(file: &Path, bytes_max: u64) -> Result<Option<String>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    match fs::metadata(file) {
        Ok(about) if !about.is_file() => return Err("is not a file".to_owned()),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    }
    let mut text = Vec::new();
    File::open(file).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut text)).map_err(unreadable)?;
    if text.len() as u64 > bytes_max {
        return Err(format!("is larger than {} MiB", bytes_max / 1024 / 1024));
    }
    String::from_utf8(text).map(Some).map_err(|_| "is not UTF-8".to_owned())
}

fn leave_out_grants(settings: &mut Settings, file: &Path) {
    let treatment = untrusted(Brought::Grants, Watched::Unattended);
    if treatment == Treatment::Used {
        return;
    }
    let given_up = settings.give_up_grants();
    if !given_up.is_empty() && treatment == Treatment::LeftWithWarning {
        tell(&format!(
            "warning: {} comes with a directory that is not trusted, so what it grants itself is not used: {}",
            file.display(),
            given_up.join(", ")
        ));
    }
}

/// Whether the user has said once that this directory is trusted.
fn is_trusted(env: &Env, root: &Path) -> bool {
    has_said_yes(env, root, "hasTrustDialogAccepted")
}

/// Whether the user has once said yes to a question about this directory.
pub(super) fn has_said_yes(env: &Env, root: &Path, question: &str) -> bool {
    let folder = env.path("CLAUDE_CONFIG_DIR").or_else(|| env.path("HOME"));
    let Some(Ok(Some(text))) = folder.map(|folder| text_of(&folder.join(".claude.json"), STATE_BYTES_MAX))
    else {
        return false;
    };
    let state: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(root) = root.to_str() else { return false };
    state["projects"][root][question] == true
}

/// Whether a file that should be the user's own came, or may have come, with the repository.
fn is_from_repository(file: &Path, repository: Option<&Repository>) -> bool {
    let linked = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    let foreign =
        |path: &Path| fs::metadata(path).is_ok_and(|about| about.uid() != nix::unistd::geteuid().as_raw());
    linked(file)
        || file.parent().is_some_and(linked)
        || foreign(file)
        || repository.is_some_and(|repository| is_tracked(repository, file))
}

fn is_same(one: &Path, other: Option<&Path>) -> bool {
    let real = |path: &Path| -> PathBuf { path.canonicalize().unwrap_or_else(|_| path.to_owned()) };
    other.is_some_and(|other| real(one) == real(other))
}
