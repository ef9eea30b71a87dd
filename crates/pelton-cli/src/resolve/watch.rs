//! Settings files that change while a session runs.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pelton::settings::Watched;
use pelton::tools::AgentDefinition;
use pelton::{AgentsChange, Options, Reloaded, SettingsChange, SettingsKind, SettingsWatch};
use pelton_model::{Auth, Endpoint};

use super::env::Env;
use super::layers::{self, Files};
use super::memory::MANAGED_DIR;
use super::permission::permissions;
use super::skills;
use crate::args::RunArgs;
use crate::fail::{Fail, kept_back};

/// What a file that was written to does not keep.
type Mark = Option<(u64, u64, i64, i64)>;

/// What the session's settings say about agents that files describe.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentTerms {
    /// Only the administrator's count.
    pub managed_only: bool,
    /// Hooks that they bring are not called.
    pub without_hooks: bool,
}

/// A file, and what it was when it was last looked at.
struct Seen {
    file: PathBuf,
    kind: SettingsKind,
    mark: Mark,
}

/// The settings files of a session.
pub(super) struct SettingsOnDisk {
    args: RunArgs,
    env: Env,
    cwd: PathBuf,
    watched: Watched,
    terms: AgentTerms,
    /// Where they are does not change while a session runs: a look comes with every request.
    seen: Mutex<Vec<Seen>>,
    /// It is not known what the settings that count forbid.
    restrictions_unknown: AtomicBool,
    /// The agents that files described when they were last looked at.
    agents: Mutex<Vec<AgentDefinition>>,
}

impl SettingsOnDisk {
    /// As they are now.
    pub fn of(
        args: &RunArgs,
        env: &Env,
        cwd: &Path,
        watched: Watched,
        terms: AgentTerms,
        restrictions_unknown: bool,
    ) -> Self {
        let (args, env, cwd) = (args.clone(), env.clone(), cwd.to_owned());
        let mut watch = Self {
            args,
            env,
            cwd,
            watched,
            terms,
            seen: Mutex::default(),
            restrictions_unknown: restrictions_unknown.into(),
            agents: Mutex::default(),
        };
        let as_it_is = |(file, kind): (PathBuf, _)| Seen { mark: mark_of(&file), file, kind };
        watch.seen = Mutex::new(watch.files().into_iter().map(as_it_is).collect());
        watch
    }

    /// These are the agents that files describe.
    pub fn take_agents_for_seen(&self, agents: &[AgentDefinition]) {
        *self.agents.lock().unwrap_or_else(PoisonError::into_inner) = agents.to_vec();
    }

    /// The agents that files describe now.
    fn agents_now(&self) -> Option<Vec<AgentDefinition>> {
        let AgentTerms { managed_only, without_hooks } = self.terms;
        let described =
            skills::agents(&self.args, &self.env, &self.project(), self.watched, managed_only).ok()?;
        let mut now = described.agents;
        if without_hooks {
            now.iter_mut().for_each(|agent| agent.hooks = None);
        }
        Some(now)
    }

    fn project(&self) -> PathBuf {
        // It was there when the session began.
        super::config_root(&self.args, &self.cwd).unwrap_or_else(|_| self.cwd.clone())
    }

    /// A file that this session has written itself is as it should be.
    pub fn take_for_seen(&self, file: &Path) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen.iter_mut().find(|seen| seen.file == file) {
            seen.mark = mark_of(file);
        }
    }

    fn files(&self) -> Vec<(PathBuf, SettingsKind)> {
        let files = Files::around(&self.env, &self.project());
        let managed = Path::new(MANAGED_DIR);
        let mut all = vec![(files.project, SettingsKind::Project), (files.local, SettingsKind::Local)];
        all.extend(files.user.map(|file| (file, SettingsKind::User)));
        all.extend(
            ["managed-settings.json", "managed-settings.d"]
                .map(|name| (managed.join(name), SettingsKind::Policy)),
        );
        all
    }
}

impl SettingsWatch for SettingsOnDisk {
    fn look(&self) -> Vec<SettingsChange> {
        let mut changes = Vec::new();
        for Seen { file, kind, mark } in &mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner) {
            let before = std::mem::replace(mark, mark_of(file));
            if before != *mark {
                changes.push(SettingsChange { kind: *kind, file: file.clone() });
            }
        }
        changes
    }

    fn read(&self) -> Result<Reloaded, String> {
        // In the middle of a session nobody writes past whoever shows it.
        let (read, problems) = kept_back(|| {
            let settings = layers::settings(&self.args, &self.env, &self.cwd, self.watched)?;
            // A file that is written to may be half there. What was forbidden goes on being so until it can be read again.
            let was_unknown =
                self.restrictions_unknown.swap(settings.restrictions_unknown, Ordering::Relaxed);
            if settings.restrictions_unknown && !was_unknown {
                self.restrictions_unknown.store(false, Ordering::Relaxed);
                return Err(Fail::new(
                    "what it forbids cannot be read, so what was read before counts until it can",
                ));
            }
            let mut options = Options::new(&self.cwd, Endpoint::new("http://127.0.0.1", Auth::None));
            options.home = self.env.path("HOME");
            permissions(&mut options, &self.args, &self.env, &settings)?;
            Ok((options, settings.hooks))
        });
        let (options, hooks) = read.map_err(|fail: Fail| {
            let told = std::iter::once(fail.line().trim_start_matches("error: "))
                .chain(problems.iter().map(String::as_str));
            told.collect::<Vec<_>>().join("; ")
        })?;
        let mut reloaded = Reloaded::default();
        (reloaded.rules, reloaded.additional_dirs) = (options.rules, options.additional_dirs);
        (reloaded.hooks, reloaded.problems) = (hooks, problems);
        Ok(reloaded)
    }

    fn agents(&self) -> Option<AgentsChange> {
        let now = self.agents_now()?;
        let mut seen = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == now {
            return None;
        }
        let before = std::mem::replace(&mut *seen, now.clone());
        Some(AgentsChange { gone: before.into_iter().map(|agent| agent.name).collect(), now })
    }
}

fn mark_of(file: &Path) -> Mark {
    let about = std::fs::metadata(file).ok()?;
    Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
}
