//! Which settings files count, and what of them: the user's own, the project's, the user's for this project, and what
//! the command line names. Whoever opened a repository may not have read it, so what it would grant itself is left out
//! until its directory is trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pelton::hooks::{Severity, Source};
use pelton::settings::{
    self, Brought, Origin, PluginSettings, Power, Settings, Treatment, Watched, untrusted,
};

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
    let bare = super::bare(args, env);
    let mut all = together(&layers(args, env, cwd)?, watched, bare)?;
    if super::alone(args, env) {
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

/// One file that counts, or what was said in place of one, before anybody has read it.
pub(crate) struct Layer {
    pub source: Source,
    /// What messages call it.
    pub name: String,
    /// Where path rules that begin with `/` are anchored.
    pub anchor: Option<PathBuf>,
    /// What is in it, or why nobody can say.
    pub text: Result<String, String>,
    /// It comes with a directory that nobody has trusted.
    pub is_untrusted: bool,
    /// It comes with a directory that somebody has trusted: the marks of what they saw.
    approved: Option<BTreeSet<String>>,
    /// Somebody typed it, or handed it over, for this run: what is wrong with it is an error.
    is_for_this_run: bool,
}

impl Layer {
    fn in_file(source: Source, file: &Path, anchor: Option<&Path>) -> Option<Self> {
        let name = file.display().to_string();
        let text = match text_of(file, SETTINGS_BYTES_MAX) {
            Ok(None) => return None,
            Ok(Some(text)) => Ok(text),
            Err(error) => Err(error),
        };
        let anchor = anchor.map(Path::to_owned);
        Some(Self { source, name, anchor, text, is_untrusted: false, approved: None, is_for_this_run: false })
    }

    fn for_this_run(source: Source, name: String, text: String) -> Self {
        let (anchor, text, approved) = (None, Ok(text), None);
        Self { source, name, anchor, text, is_untrusted: false, approved, is_for_this_run: true }
    }

    pub fn origin(&self) -> Origin<'_> {
        Origin { source: &self.source, file: &self.name, anchor: self.anchor.as_deref() }
    }

    /// Takes out what it may not say: before trust, and in a bare run. What that was.
    pub fn leave_out(&self, settings: &mut Settings, watched: Watched, bare: bool) -> Vec<String> {
        let mut given_up = Vec::new();
        if self.is_untrusted {
            if untrusted(Brought::Grants, watched) != Treatment::Used {
                given_up.extend(settings.give_up_grants());
            }
            if bare || untrusted(Brought::Programs, watched) != Treatment::Used {
                given_up.extend(settings.give_up_programs());
            }
        }
        if bare && matches!(self.source, Source::User | Source::Project | Source::Local) {
            // Only the command line names a helper then.
            settings.api_key_helper = None;
        }
        given_up
    }

    fn tell_of_changes(&self, left_out: &[Power]) {
        if !left_out.is_empty() {
            let told: Vec<String> = left_out.iter().map(Power::told).collect();
            tell(&format!(
                "warning: {} has changed since its directory was trusted, so this is not used until it is trusted again (pelton trust): {}",
                self.name,
                told.join("; ")
            ));
        }
    }

    /// What it says. What is wrong with it is told, and the rest of it counts; of a file that cannot be read at all
    /// nobody knows what it forbids.
    fn read(&self, watched: Watched) -> Result<Settings, Fail> {
        let read = match (&self.text, &self.approved) {
            // Somebody can be asked about what they have not seen.
            (Ok(text), Some(approved)) if watched == Watched::Interactive => {
                let read = settings::read_approved(text, self.origin(), approved);
                read.map(|(settings, problems, left_out)| {
                    self.tell_of_changes(&left_out);
                    (settings, problems)
                })
                .map_err(|error| error.to_string())
            }
            (Ok(text), _) => settings::read(text, self.origin()).map_err(|error| error.to_string()),
            (Err(error), _) => Err(format!("{}: {error}", self.name)),
        };
        match read {
            Ok((settings, problems)) => {
                for problem in problems {
                    if problem.severity == Severity::Error
                        && self.is_for_this_run
                        && self.source == Source::Flag
                    {
                        return Err(Fail::at_start(problem.to_string()));
                    }
                    tell(&format!("warning: {problem}"));
                }
                Ok(settings)
            }
            Err(error) if self.is_for_this_run => Err(Fail::at_start(error)),
            Err(error) => {
                tell(&format!("warning: {error} (the file is left as it is, and nothing of it counts)"));
                let mut unknown = Settings::default();
                unknown.restrictions_unknown = true;
                Ok(unknown)
            }
        }
    }
}

/// What layers say together, the weakest first.
fn together(layers: &[Layer], watched: Watched, bare: bool) -> Result<Settings, Fail> {
    let mut all = Settings::default();
    for layer in layers {
        let mut settings = layer.read(watched)?;
        let given_up = layer.leave_out(&mut settings, watched, bare);
        if !given_up.is_empty() && untrusted(Brought::Grants, watched) == Treatment::LeftWithWarning {
            tell(&format!(
                "warning: {} comes with a directory that is not trusted, so what it grants itself is not used: {}",
                layer.name,
                given_up.join(", ")
            ));
        }
        all = settings.over(all);
    }
    Ok(all)
}

/// What layers say together, whoever may say it. What cannot be read says nothing, and nobody is told.
pub(super) fn as_written(layers: &[Layer]) -> Settings {
    let texts = layers.iter().filter_map(|layer| Some((layer.text.as_deref().ok()?, layer.origin())));
    let said = texts.filter_map(|(text, origin)| settings::read(text, origin).ok());
    said.fold(Settings::default(), |all, (settings, _)| settings.over(all))
}

/// All that counts in a run that was started like this, the weakest first.
pub(crate) fn layers(args: &RunArgs, env: &Env, cwd: &Path) -> Result<Vec<Layer>, Fail> {
    let mut layers = said(args, env, cwd)?;
    layers.extend(managed(Path::new(MANAGED_DIR), args.client.managed_settings.as_deref()));
    Ok(layers)
}

/// What the administrator of the machine says: what whoever started this hands over, then one file, then the others by
/// their names. Nothing that can be switched off.
fn managed(dir: &Path, handed_over: Option<&str>) -> Vec<Layer> {
    let handed_over = handed_over
        .filter(|text| !text.trim().is_empty())
        .map(|text| Layer::for_this_run(Source::Policy, "--managed-settings".to_owned(), text.to_owned()));
    let mut parts: Vec<PathBuf> = fs::read_dir(dir.join("managed-settings.d"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    parts.retain(|path| path.extension().is_some_and(|kind| kind == "json"));
    parts.sort();
    let files = std::iter::once(dir.join("managed-settings.json")).chain(parts);
    let in_files = files.filter_map(|file| {
        let mut layer = Layer::in_file(Source::Policy, &file, None)?;
        // If others could have written it, nobody knows what the administrator forbids.
        if let Some(why) = written_by_others(&file) {
            layer.text = Err(why);
        }
        Some(layer)
    });
    let in_files: Vec<Layer> = in_files.collect();
    // Whoever starts this is not above the administrator: what they hand over might allow what those leave out.
    match handed_over {
        Some(_) if !in_files.is_empty() && !in_files.iter().any(takes_in_what_is_handed_over) => {
            tell("warning: --managed-settings is not used: this machine has managed settings of its own");
            in_files
        }
        Some(Layer { text: Ok(text), .. }) if !in_files.is_empty() => {
            let restrictions =
                Layer::for_this_run(Source::Policy, "--managed-settings".to_owned(), restrictions(text));
            std::iter::once(restrictions).chain(in_files).collect()
        }
        handed_over => handed_over.into_iter().chain(in_files).collect(),
    }
}

/// Whether the administrator lets programs add restrictions of their own.
fn takes_in_what_is_handed_over(layer: &Layer) -> bool {
    let said = layer.text.as_deref().ok().and_then(|text| settings::value_of(text).ok());
    said.is_some_and(|said| said["parentSettingsBehavior"] == "merge")
}

/// What of settings can only forbid. A text that is none stays as it is, to be refused for that.
fn restrictions(text: String) -> String {
    const OF_ALL: [&str; 10] = [
        "allowManagedPermissionRulesOnly",
        "allowManagedHooksOnly",
        "allowManagedMcpServersOnly",
        "strictPluginOnlyCustomization",
        "disableAllHooks",
        "disableSkillShellExecution",
        "deniedMcpServers",
        "deniedModels",
        "blockedMarketplaces",
        "permissions",
    ];
    const OF_PERMISSIONS: [&str; 4] = ["deny", "ask", "disableBypassPermissionsMode", "disableAutoMode"];
    let Ok(serde_json::Value::Object(mut said)) = settings::value_of(&text) else { return text };
    said.retain(|name, _| OF_ALL.contains(&name.as_str()));
    if let Some(permissions) = said.get_mut("permissions").and_then(serde_json::Value::as_object_mut) {
        permissions.retain(|name, _| OF_PERMISSIONS.contains(&name.as_str()));
    }
    serde_json::Value::Object(said).to_string()
}

/// Why a file, or the directory it is in, may have been written by somebody other than the administrator and whoever runs
/// this. `None` also if there is no such file.
fn written_by_others(file: &Path) -> Option<String> {
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
fn said(args: &RunArgs, env: &Env, cwd: &Path) -> Result<Vec<Layer>, Fail> {
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let project = super::config_root(args, cwd)?;
    let files = Files::around(env, &project);
    let mut layers = Vec::new();
    if let (true, Some(file)) = (sources.user, &files.user) {
        layers.extend(Layer::in_file(Source::User, file, file.parent()));
    }
    // Of what comes with a directory counts what somebody has seen who trusts it.
    let judged = |mut layer: Layer| {
        let trust = Trust::in_dir(env, &project);
        layer.is_untrusted = !trust.is_given();
        layer.approved = trust.is_given().then(|| trust.approved_settings(env));
        layer
    };
    // In the home directory the project's file is the user's.
    if sources.project && !is_same(&files.project, files.user.as_deref()) {
        layers.extend(Layer::in_file(Source::Project, &files.project, None).map(judged));
    }
    if sources.local {
        let local = Layer::in_file(Source::Local, &files.local, None);
        layers.extend(local.map(|layer| if files.local_came_along() { judged(layer) } else { layer }));
    }
    if let Some(said) = args.settings.as_deref().filter(|said| !said.trim().is_empty()) {
        let (name, text) = said_in_json("--settings", said, cwd, SETTINGS_BYTES_MAX)?;
        layers.push(Layer::for_this_run(Source::Flag, name, text));
    }
    Ok(layers)
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

    /// What the user and the directory say of plugins, whether it is trusted or not.
    pub(super) fn said_of_plugins(&self) -> PluginSettings {
        let files = [(Source::Project, Some(&self.project)), (Source::Local, Some(&self.local))];
        let files = std::iter::once((Source::User, self.user.as_ref())).chain(files);
        let layers: Vec<Layer> =
            files.filter_map(|(source, file)| Layer::in_file(source, file?, None)).collect();
        as_written(&layers).plugins
    }

    /// Where the project's files, and the user's own for the project, say that marketplaces are, by their names. What is not among the
    /// sources is not opened.
    pub(super) fn marketplaces_named(&self, sources: &Sources) -> BTreeMap<String, String> {
        let project = sources.project.then_some((Source::Project, &self.project));
        let local = sources.local.then_some((Source::Local, &self.local));
        let files = project.into_iter().chain(local);
        let files = files.filter(|(_, file)| !is_same(file, self.user.as_deref()));
        let layers: Vec<Layer> =
            files.filter_map(|(source, file)| Layer::in_file(source, file, None)).collect();
        as_written(&layers).plugins.marketplaces
    }

    /// What a directory would add, if it were trusted.
    pub(super) fn brought(&self) -> Settings {
        together(&self.brought_layers(), Watched::Interactive, false).unwrap_or_default()
    }

    /// What of that grants or runs something.
    pub(super) fn brought_powers(&self) -> Vec<Power> {
        let layers = self.brought_layers();
        let texts = layers.iter().filter_map(|layer| Some((layer.text.as_ref().ok()?, layer.origin())));
        texts.flat_map(|(text, origin)| settings::powers(text, origin)).collect()
    }

    fn brought_layers(&self) -> Vec<Layer> {
        let is_users = is_same(&self.project, self.user.as_deref());
        let project = Layer::in_file(Source::Project, &self.project, None).filter(|_| !is_users);
        let local = Layer::in_file(Source::Local, &self.local, None).filter(|_| self.local_came_along());
        project.into_iter().chain(local).collect()
    }
}

/// Which files are read.
pub(super) struct Sources {
    pub(super) user: bool,
    pub(super) project: bool,
    pub(super) local: bool,
}

impl Sources {
    pub(super) const ALL: Self = Self { user: true, project: true, local: true };

    pub(super) fn said(said: Option<&str>) -> Result<Self, Fail> {
        let Some(said) = said else { return Ok(Self::ALL) };
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

    /// Their names.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let all = [(self.user, "user"), (self.project, "project"), (self.local, "local")];
        all.into_iter().filter(|(is_read, _)| *is_read).map(|(_, name)| name).collect()
    }
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

    use super::super::trust::state_file;
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
    fn pit_P6_one_changed_entry_of_a_trusted_directory_is_asked_about_again_and_the_others_count() {
        let (_dir, env, work) = place();
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert_eq!(counts(&env, &work, Watched::Interactive, &[]), [true; 6]);
        let file = work.join(".claude/settings.json");
        let seen = fs::read_to_string(&file).unwrap();
        for (before, after, left) in [
            (r#""command": "true""#, r#""command": "true; curl evil""#, 5),
            (r#""apiKeyHelper": "key""#, r#""apiKeyHelper": "key --to evil""#, 4),
            (r#"{"A": "b"}"#, r#"{"A": "c"}"#, 3),
            ("acceptEdits", "bypassPermissions", 2),
        ] {
            fs::write(&file, seen.replace(before, after)).unwrap();
            let mut expected = [true; 6];
            expected[left] = false;
            assert_eq!(counts(&env, &work, Watched::Interactive, &[]), expected, "{after}");
            // Where nobody can be asked, trust in the directory is all there is.
            assert_eq!(counts(&env, &work, Watched::Unattended, &[]), [true; 6], "{after}");
            assert_eq!(Trust::in_dir(&env, &work).new_settings(&env).len(), 1, "{after}");
            Trust::in_dir(&env, &work).say(&env, true).unwrap();
            assert_eq!(counts(&env, &work, Watched::Interactive, &[]), [true; 6], "{after}");
            fs::write(&file, &seen).unwrap();
            Trust::in_dir(&env, &work).say(&env, true).unwrap();
        }
        // Another program has asked, and nobody knows what was seen then.
        let state = state_file(&env).unwrap();
        let said =
            serde_json::json!({"projects": {work.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
        fs::write(state, said.to_string()).unwrap();
        assert_eq!(counts(&env, &work, Watched::Interactive, &[]), [true, false, false, false, false, false]);
    }

    #[test]
    fn hostile_repositories_bring_nothing_that_runs_while_somebody_watches_who_was_not_asked() {
        use pelton::settings::Approval;
        // What each of them does when it is opened without anybody in front is in `tests/cli/hostile.rs`.
        let cases: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/cli/hostile.json")).unwrap();
        for case in cases.as_array().unwrap() {
            let name = &case["name"];
            let dir = tempfile::tempdir().unwrap();
            let (home, work) = (dir.path().join("home"), dir.path().join("work"));
            fs::create_dir_all(&home).unwrap();
            for (file, content) in case["files"].as_object().unwrap() {
                let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
                let path = work.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let content = content.replace("@WORK@", work.to_str().unwrap());
                fs::write(path, content.replace("@EVIL@", "http://127.0.0.1:9")).unwrap();
            }
            for (link, target) in case["links"].as_object().into_iter().flatten() {
                let link = work.join(link);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(target.as_str().unwrap(), link).unwrap();
            }
            if case["tracked"] == true {
                for words in ["init -q .", "add -f ."] {
                    let mut git = std::process::Command::new("git");
                    assert!(git.args(words.split(' ')).current_dir(&work).status().unwrap().success());
                }
            }
            let home = home.to_str().unwrap().to_owned();
            let env =
                Env::of_process().without(&["CLAUDE_CONFIG_DIR"]).with(&[("HOME".to_owned(), home)].into());
            let cwd = work.join(case["cwd"].as_str().unwrap_or_default());
            let args = Args::parse_from(["pelton"]).run;
            let brings = || {
                let said = settings(&args, &env, &cwd, Watched::Interactive).unwrap();
                let agents = super::super::skills::agents(&args, &env, &cwd, Watched::Interactive, false)
                    .unwrap()
                    .agents;
                let servers = Trust::in_dir(&env, &cwd).servers(&env);
                // Settings: nothing that runs, grants, sends elsewhere or puts a guard aside.
                !said.hooks.is_empty()
                    || said.api_key_helper.is_some()
                    || !said.env.is_empty()
                    || !said.rules.allow.is_empty()
                    || !said.additional_dirs.is_empty()
                    || said.mode.is_some()
                    || said.brought_hooks_off
                    || !said.plugins.enabled.is_empty()
                    || !said.plugins.marketplaces.is_empty()
                    || agents.iter().any(pelton::tools::AgentDefinition::brings_programs)
                    || servers.iter().any(|(_, approval)| *approval == Approval::Given)
                    || pelton::SkillSources::powers_of_project(&cwd).iter().any(|power| {
                        let skills =
                            super::super::skills::skills(&args, &env, &said, &cwd, Watched::Interactive);
                        let counted = skills.unwrap().unwrap().project_powers.unwrap();
                        counted.contains(&power.mark)
                    })
            };
            assert!(!brings(), "{name}");
            Trust::in_dir(&env, &cwd).say(&env, true).unwrap();
            assert!(brings(), "{name}: nothing that counts once it is trusted proves nothing");
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
        let managed = || together(&managed(&managed_dir, None), Watched::Unattended, false).unwrap();
        let said = together(&said(&args, &env, &work).unwrap(), Watched::Unattended, false).unwrap();
        let all = managed().over(said);
        assert_eq!(all.model.as_deref(), Some("last"));
        assert_eq!(all.policy.mode, Some(pelton::permission::Mode::Plan));
        assert_eq!(all.env["A"], "m");
        assert_eq!(all.rules.deny.len(), 1);
        // A program that starts this is not above them.
        let handed = r#"{"model": "theirs", "permissions": {"allow": ["Bash"], "deny": ["Read"]}}"#;
        let with =
            || together(&super::managed(&managed_dir, Some(handed)), Watched::Unattended, false).unwrap();
        assert_eq!((with().rules.allow.len(), with().rules.deny.len()), (0, 1));
        put("managed-settings.d/50.json", r#"{"parentSettingsBehavior": "merge"}"#);
        assert_eq!((with().rules.allow.len(), with().rules.deny.len()), (0, 2));
        assert_eq!(with().model.as_deref(), Some("last"));
        fs::remove_file(managed_dir.join("managed-settings.d/50.json")).unwrap();
        let alone =
            together(&super::managed(Path::new("/nowhere"), Some(handed)), Watched::Unattended, false);
        assert_eq!(alone.unwrap().rules.allow.len(), 1, "nobody else speaks for this machine");
        // What cannot be read may have forbidden anything.
        put("managed-settings.d/40.json", "{");
        assert!(managed().restrictions_unknown);
        fs::remove_file(managed_dir.join("managed-settings.d/40.json")).unwrap();
        let (file, folder) =
            (managed_dir.join("managed-settings.json"), managed_dir.join("managed-settings.d"));
        for (path, mode) in [(&file, 0o666), (&file, 0o664), (&folder, 0o777)] {
            let before = fs::metadata(path).unwrap().permissions().mode();
            allow(path, mode);
            assert!(managed().restrictions_unknown, "{path:?} {mode:o}");
            allow(path, before);
            assert!(!managed().restrictions_unknown, "{path:?} again");
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
