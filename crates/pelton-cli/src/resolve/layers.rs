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
use super::memory::MANAGED_DIR;
use super::repository::{Repository, is_tracked};
use super::sessions::config_dir;
use super::trust::Trust;
use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// The most bytes of a settings file.
pub(super) const SETTINGS_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Everything that was set: the administrator's word over the command line over the files. Of a directory that nobody has trusted less counts when
/// somebody watches, who can be asked.
pub(super) fn settings(args: &RunArgs, env: &Env, cwd: &Path, watched: Watched) -> Result<Settings, Fail> {
    let managed = managed(Path::new(MANAGED_DIR), args.client.managed_settings.as_deref())?;
    let mut all = managed.over(said(args, env, cwd, watched)?);
    if super::bare(args, env) {
        all.disable_all_hooks = Some(true);
    }
    let left_out = all.obey();
    if !left_out.is_empty() {
        tell(&format!(
            "warning: managed settings do not let anybody else say this, so it is not used: {}",
            left_out.join(", ")
        ));
    }
    Ok(all)
}

/// What the administrator of the machine says: one file, then the others by their names, then what whoever started this
/// hands over. Nothing that can be switched off.
fn managed(dir: &Path, handed_over: Option<&str>) -> Result<Settings, Fail> {
    let mut all = Settings::default();
    if let Some(text) = handed_over.filter(|text| !text.trim().is_empty()) {
        let origin = Origin { source: &Source::Policy, file: "--managed-settings", anchor: None };
        let (settings, problems) =
            settings::read(text, origin).map_err(|error| Fail::at_start(error.to_string()))?;
        problems.iter().for_each(|problem| tell(&format!("warning: {problem}")));
        all = settings;
    }
    let mut parts: Vec<PathBuf> = fs::read_dir(dir.join("managed-settings.d"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    parts.retain(|path| path.extension().is_some_and(|kind| kind == "json"));
    parts.sort();
    for file in std::iter::once(dir.join("managed-settings.json")).chain(parts) {
        all = managed_layer(&file).over(all);
    }
    Ok(all)
}

/// One file of the administrator. If others could have written it, nobody knows what the administrator forbids.
fn managed_layer(file: &Path) -> Settings {
    match written_by_others(file) {
        None => layer(file, &Source::Policy, None),
        Some(why) => {
            tell(&format!("warning: {}: {why} (nothing of it counts until that is mended)", file.display()));
            let mut unknown = Settings::default();
            unknown.restrictions_unknown = true;
            unknown
        }
    }
}

/// Why a file, or the directory it is in, may have been written by somebody other than the administrator and whoever runs
/// this. `None` also if there is no such file.
pub(super) fn written_by_others(file: &Path) -> Option<String> {
    const BY_OTHERS: u32 = 0o022;
    fs::metadata(file).ok()?;
    [Some(file), file.parent()].into_iter().flatten().find_map(|path| {
        let about = fs::metadata(path).ok()?;
        let is_own = about.uid() == 0 || about.uid() == nix::unistd::geteuid().as_raw();
        let what = if path == file { "it" } else { "its directory" };
        match (is_own, about.mode() & BY_OTHERS) {
            (false, _) => Some(format!("{what} belongs to another user")),
            (true, 0) => None,
            (true, _) => Some(format!("others may write to {what}")),
        }
    })
}

/// Everything else that was set.
fn said(args: &RunArgs, env: &Env, cwd: &Path, watched: Watched) -> Result<Settings, Fail> {
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let bare = super::bare(args, env);
    let mut all = Settings::default();
    let files = Files::around(env, cwd);
    if let (true, Some(file)) = (sources.user, &files.user) {
        all = layer(file, &Source::User, file.parent()).over(all);
    }
    let trusted = || Trust::in_dir(env, cwd).is_given();
    // In the home directory the project's file is the user's.
    if sources.project && !is_same(&files.project, files.user.as_deref()) {
        let mut project = layer(&files.project, &Source::Project, None);
        if files.project.exists() && !trusted() {
            leave_out(&mut project, &files.project, watched, bare);
        }
        all = project.over(all);
    }
    if sources.local {
        let mut local = layer(&files.local, &Source::Local, None);
        if files.local.exists() && files.local_came_along() && !trusted() {
            leave_out(&mut local, &files.local, watched, bare);
        }
        all = local.over(all);
    }
    if bare {
        // Only the command line names a helper then.
        all.api_key_helper = None;
    }
    if let Some(said) = args.settings.as_deref().filter(|said| !said.trim().is_empty()) {
        all = from_command_line(said, cwd)?.over(all);
    }
    Ok(all)
}

/// Where the files are.
pub(super) struct Files {
    pub(super) user: Option<PathBuf>,
    pub(super) project: PathBuf,
    pub(super) local: PathBuf,
    repository: Option<Repository>,
}

impl Files {
    pub(super) fn around(env: &Env, cwd: &Path) -> Self {
        let repository = Repository::around(cwd);
        let root = repository.as_ref().map_or(cwd, |repository| &repository.root);
        // SDKs work where they are told to, and nowhere above.
        let by_sdk = env.get("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry.starts_with("sdk-"));
        let at_home = env.path("HOME").is_some_and(|home| home == root);
        let folder = if by_sdk || at_home { cwd } else { root };
        Self {
            user: config_dir(env).map(|dir| dir.join("settings.json")),
            project: cwd.join(".claude/settings.json"),
            local: folder.join(".claude/settings.local.json"),
            repository,
        }
    }

    /// Whether the user's own file for the project came, or may have come, with the repository.
    fn local_came_along(&self) -> bool {
        is_from_repository(&self.local, self.repository.as_ref())
    }

    /// What a directory would add, if it were trusted.
    pub(super) fn brought(&self) -> Settings {
        let project = match is_same(&self.project, self.user.as_deref()) {
            true => Settings::default(),
            false => layer(&self.project, &Source::Project, None),
        };
        match self.local.exists() && self.local_came_along() {
            true => layer(&self.local, &Source::Local, None).over(project),
            false => project,
        }
    }
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
    let (name, text) = said_in_json("--settings", said, cwd, SETTINGS_BYTES_MAX)?;
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

/// What an option says that takes JSON or the name of a file: what to call it in complaints, and its text.
pub(super) fn said_in_json(
    option: &str,
    said: &str,
    cwd: &Path,
    bytes_max: u64,
) -> Result<(String, String), Fail> {
    if said.trim_start().starts_with('{') {
        return Ok((option.to_owned(), said.to_owned()));
    }
    let file = cwd.join(said);
    let name = format!("{option} {}", file.display());
    match text_of(&file, bytes_max) {
        Ok(Some(text)) => Ok((name, text)),
        Ok(None) => Err(Fail::at_start(format!("{name}: there is no such file"))),
        Err(error) => Err(Fail::at_start(format!("{name}: {error}"))),
    }
}

/// The text of a file, `None` if there is none. Only files are read: a pipe would be waited for.
pub(crate) fn text_of(file: &Path, bytes_max: u64) -> Result<Option<String>, String> {
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

/// Takes out what a directory that nobody has trusted may not bring.
fn leave_out(settings: &mut Settings, file: &Path, watched: Watched, bare: bool) {
    let treatment = untrusted(Brought::Grants, watched);
    let mut given_up = match treatment {
        Treatment::Used => Vec::new(),
        _ => settings.give_up_grants(),
    };
    if bare || untrusted(Brought::Programs, watched) != Treatment::Used {
        given_up.extend(settings.give_up_programs());
    }
    if !given_up.is_empty() && treatment == Treatment::LeftWithWarning {
        tell(&format!(
            "warning: {} comes with a directory that is not trusted, so what it grants itself is not used: {}",
            file.display(),
            given_up.join(", ")
        ));
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use clap::Parser;

    use super::*;
    use crate::args::Args;

    /// A project that brings one of each, and a home.
    fn place() -> (tempfile::TempDir, Env, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (home, work) = (dir.path().join("home"), dir.path().join("work"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(work.join(".claude")).unwrap();
        let brought = r#"{"permissions": {"allow": ["Bash(make)"], "deny": ["Bash(rm *)"], "defaultMode": "acceptEdits",
            "additionalDirectories": [".."]}, "env": {"A": "b"}, "apiKeyHelper": "key",
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
        fs::write(work.join(".claude/settings.json"), brought).unwrap();
        let home = home.to_str().unwrap().to_owned();
        let env = Env::of_process().without(&[""]).with(&[("HOME".to_owned(), home)].into());
        (dir, env, work)
    }

    fn counts(env: &Env, work: &Path, watched: Watched, words: &[&str]) -> [bool; 6] {
        let args = Args::parse_from(["pelton"].iter().chain(words)).run;
        let said = settings(&args, env, work, watched).unwrap();
        [
            !said.rules.deny.is_empty(),
            !said.rules.allow.is_empty() || !said.additional_dirs.is_empty(),
            said.mode.is_some(),
            !said.env.is_empty(),
            said.api_key_helper.is_some(),
            said.hooks.commands().next().is_some(),
        ]
    }

    #[test]
    fn before_trust_less_counts_when_somebody_could_be_asked() {
        let (_dir, env, work) = place();
        let (watched, not) = (Watched::Interactive, Watched::Unattended);
        assert_eq!(counts(&env, &work, watched, &[]), [true, false, false, false, false, false]);
        assert_eq!(counts(&env, &work, not, &[]), [true, false, false, true, true, true]);
        assert_eq!(counts(&env, &work, not, &["--bare"]), [true, false, false, false, false, false]);
        assert_eq!(counts(&env, &work, not, &["--setting-sources", "user"]), [false; 6]);
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert_eq!(counts(&env, &work, watched, &[]), [true; 6]);
        assert_eq!(counts(&env, &work, not, &[]), [true; 6]);
        // A repository inside of it is another one.
        let inner = work.join("vendor/inner");
        fs::create_dir_all(inner.join(".git")).unwrap();
        assert!(!Trust::in_dir(&env, &inner).is_given());
        Trust::in_dir(&env, &work).say(&env, false).unwrap();
        assert!(!counts(&env, &work, watched, &[])[1]);
    }

    #[test]
    fn pit_P6_nothing_of_a_fresh_clone_runs_before_trust_and_a_changed_server_is_asked_about_again() {
        use pelton::settings::Approval;
        let (_dir, env, work) = place();
        let serve = |port: &str| {
            let server =
                format!(r#"{{"mcpServers": {{"tickets": {{"command": "serve", "args": ["{port}"]}}}}}}"#);
            fs::write(work.join(".mcp.json"), server).unwrap();
        };
        let servers = || Trust::in_dir(&env, &work).servers(&env);
        serve("1");
        // Somebody watches and was not asked: no hook, no variable, no key program, no server.
        assert_eq!(counts(&env, &work, Watched::Interactive, &[])[3..], [false; 3]);
        assert_eq!(servers(), [("tickets".to_owned(), Approval::Missing)]);
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert_eq!(counts(&env, &work, Watched::Interactive, &[])[3..], [true; 3]);
        assert_eq!(servers(), [("tickets".to_owned(), Approval::Given)]);
        // One argument is another: that one server is asked about again.
        serve("2");
        assert_eq!(servers(), [("tickets".to_owned(), Approval::Changed)]);
        assert!(Trust::in_dir(&env, &work).is_given());
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert_eq!(servers(), [("tickets".to_owned(), Approval::Given)]);
        Trust::in_dir(&env, &work).say(&env, false).unwrap();
        assert_eq!(servers(), [("tickets".to_owned(), Approval::Missing)]);
        // The switches for CI take nothing of it, whoever watches.
        for switch in [&["--bare"][..], &["--setting-sources", "user"]] {
            assert_eq!(counts(&env, &work, Watched::Unattended, switch)[3..], [false; 3], "{switch:?}");
        }
    }

    #[test]
    fn the_administrators_word_is_above_all_others() {
        let (dir, env, work) = place();
        let managed_dir = dir.path().join("etc");
        fs::create_dir_all(managed_dir.join("managed-settings.d")).unwrap();
        let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        allow(&managed_dir, 0o755);
        allow(&managed_dir.join("managed-settings.d"), 0o755);
        let put = |name: &str, text: &str| {
            fs::write(managed_dir.join(name), text).unwrap();
            allow(&managed_dir.join(name), 0o644);
        };
        put(
            "managed-settings.json",
            r#"{"model": "first", "permissions": {"deny": ["WebFetch"]}, "env": {"A": "m"}}"#,
        );
        put("managed-settings.d/20-b.json", r#"{"model": "last"}"#);
        put("managed-settings.d/10-a.json", r#"{"model": "middle", "permissions": {"defaultMode": "plan"}}"#);
        put("managed-settings.d/30.txt", r#"{"model": "no"}"#);
        let words =
            ["pelton", "--settings", r#"{"model": "mine", "env": {"A": "mine"}}"#, "--setting-sources", ""];
        let args = Args::parse_from(words).run;
        let managed = managed(&managed_dir, None).unwrap();
        let all = managed.over(said(&args, &env, &work, Watched::Unattended).unwrap());
        assert_eq!(all.model.as_deref(), Some("last"));
        assert_eq!(all.policy.mode, Some(pelton::permission::Mode::Plan));
        assert_eq!(all.env["A"], "m");
        assert_eq!(all.rules.deny.len(), 1);
        // What cannot be read may have forbidden anything.
        put("managed-settings.d/40.json", "{");
        assert!(super::managed(&managed_dir, None).unwrap().restrictions_unknown);
        fs::remove_file(managed_dir.join("managed-settings.d/40.json")).unwrap();
        let (file, folder) =
            (managed_dir.join("managed-settings.json"), managed_dir.join("managed-settings.d"));
        for (path, mode) in [(&file, 0o666), (&file, 0o664), (&folder, 0o777)] {
            let before = fs::metadata(path).unwrap().permissions().mode();
            allow(path, mode);
            let managed = super::managed(&managed_dir, None).unwrap();
            assert!(managed.restrictions_unknown, "{path:?} {mode:o}");
            allow(path, before);
            assert!(!super::managed(&managed_dir, None).unwrap().restrictions_unknown, "{path:?} again");
        }
    }

    #[test]
    fn a_checkout_shares_the_trust_of_its_main_one_only_if_that_knows_it() {
        let (dir, env, work) = place();
        fs::create_dir_all(work.join(".git/worktrees/side")).unwrap();
        let side = dir.path().join("side");
        fs::create_dir(&side).unwrap();
        fs::write(side.join(".git"), format!("gitdir: {}/.git/worktrees/side\n", work.display())).unwrap();
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert!(!Trust::in_dir(&env, &side).is_given(), "anybody can write such a file");
        fs::write(work.join(".git/worktrees/side/gitdir"), format!("{}/.git\n", side.display())).unwrap();
        assert!(Trust::in_dir(&env, &side).is_given());
    }

    #[test]
    fn the_home_is_not_trusted_for_good() {
        let (dir, env, _) = place();
        let home = dir.path().join("home");
        assert!(Trust::in_dir(&env, &home).say(&env, true).is_err());
        let state =
            format!("{{\"projects\": {{\"{}\": {{\"hasTrustDialogAccepted\": true}}}}}}", home.display());
        fs::write(home.join(".claude.json"), state).unwrap();
        assert!(!Trust::in_dir(&env, &home).is_given());
    }
}
