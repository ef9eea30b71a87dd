//! Settings files that change while a session runs.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pelton::settings::Watched;
use pelton::{Options, Reloaded, SettingsChange, SettingsKind, SettingsWatch};
use pelton_model::{Auth, Endpoint};

use super::env::Env;
use super::layers::{self, Files};
use super::memory::MANAGED_DIR;
use super::permission::permissions;
use crate::args::RunArgs;

/// What a file that was written to does not keep.
type Mark = Option<(u64, u64, i64, i64)>;

/// The settings files of a session.
pub(super) struct SettingsOnDisk {
    args: RunArgs,
    env: Env,
    cwd: PathBuf,
    watched: Watched,
    seen: Mutex<BTreeMap<PathBuf, (SettingsKind, Mark)>>,
}

impl SettingsOnDisk {
    /// As they are now.
    pub fn of(args: &RunArgs, env: &Env, cwd: &Path, watched: Watched) -> Self {
        let (args, env, cwd) = (args.clone(), env.clone(), cwd.to_owned());
        let watch = Self { args, env, cwd, watched, seen: Mutex::default() };
        watch.look();
        watch
    }

    /// A file that this session has written itself is as it should be.
    pub fn take_for_seen(&self, file: &Path) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, mark)) = seen.get_mut(file) {
            *mark = mark_of(file);
        }
    }

    fn files(&self) -> Vec<(PathBuf, SettingsKind)> {
        // It was there when the session began.
        let project = super::config_root(&self.args, &self.cwd).unwrap_or_else(|_| self.cwd.clone());
        let files = Files::around(&self.env, &project);
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
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        for (file, kind) in self.files() {
            let mark = mark_of(&file);
            let before = seen.insert(file.clone(), (kind, mark));
            if before.is_some_and(|(_, before)| before != mark) {
                changes.push(SettingsChange { kind, file });
            }
        }
        changes
    }

    fn read(&self) -> Result<Reloaded, String> {
        let settings = layers::settings(&self.args, &self.env, &self.cwd, self.watched)
            .map_err(|fail| fail.line().to_owned())?;
        let mut options = Options::new(&self.cwd, Endpoint::new("http://127.0.0.1", Auth::None));
        options.home = self.env.path("HOME");
        permissions(&mut options, &self.args, &self.env, &settings).map_err(|fail| fail.line().to_owned())?;
        let mut reloaded = Reloaded::default();
        (reloaded.rules, reloaded.hooks) = (options.rules, settings.hooks);
        Ok(reloaded)
    }
}

fn mark_of(file: &Path) -> Mark {
    let about = std::fs::metadata(file).ok()?;
    Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
}
