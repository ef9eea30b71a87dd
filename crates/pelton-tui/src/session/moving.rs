//! Another directory for the session (`/cd`).

use std::path::{Path, PathBuf};

use pelton::permission::{Access, HookSays, Judged, Verdict};
use pelton::{Engine, normalised};
use serde_json::json;

use super::{Left, Session};
use crate::clean;
use crate::theme::Role;

impl Session<'_> {
    /// Goes on in another directory, with the same conversation.
    pub(super) fn move_to(&mut self, engine: &Engine, named: &str) {
        if named.is_empty() {
            let words = format!("the session works in {}; /cd DIRECTORY moves it", self.cwd.display());
            return self.app.say(&words, Role::Text);
        }
        let to = match self.directory(named) {
            Ok(to) => to,
            Err(why) => return self.app.say(&why, Role::Error),
        };
        if self.cwd.canonicalize().is_ok_and(|here| here == to) {
            return self.app.say("the session works there already", Role::Faint);
        }
        let is_recorded = engine.transcript_file().is_some_and(|file| file.exists());
        if !is_recorded && !engine.history().is_empty() {
            let words = "nothing of this session is recorded, so it cannot be gone on with elsewhere";
            return self.app.say(words, Role::Error);
        }
        let session = is_recorded.then(|| engine.session_id());
        // Whoever went on writing while this waited goes on there.
        let written = self.app.draft.submit();
        let stands = self.stands_elsewhere();
        self.leave(Left::Moved { session, to, written, stands });
    }

    /// Where names begin. The directory may be called something else than when the session began.
    fn base(&self) -> PathBuf {
        match self.cwd.is_dir() {
            true => self.cwd.clone(),
            false => self.outside.here.and_then(|here| here()).unwrap_or_else(|| self.cwd.clone()),
        }
    }

    /// The directory that is called so, if the session may go there.
    fn directory(&self, named: &str) -> Result<PathBuf, String> {
        let path = match (Path::new(named).strip_prefix("~"), &self.home_dir) {
            (Ok(rest), Some(dir)) => dir.join(rest),
            _ => self.base().join(named),
        };
        let told = clean::revealed_line(named);
        let path = path.canonicalize().or_else(|error| match self.base().is_dir() {
            true => Err(error),
            // Of a directory that is gone one finds the way by its name.
            false => normalised(&path).canonicalize(),
        });
        let path = path.map_err(|error| format!("{told}: {error}"))?;
        if !path.is_dir() {
            return Err(format!("{told} is no directory"));
        }
        let (input, access) = (json!({"path": path}), Access::Skill(path.display().to_string()));
        let call =
            Judged { tool: "Cd", input: &input, access: &access, cwd: &self.cwd, hook: HookSays::Nothing };
        let decision = self.handles.permissions.judge(&call);
        // Whoever types it has decided; only what is forbidden stays so.
        match decision.rule.filter(|_| decision.verdict == Verdict::Deny) {
            Some(rule) => Err(format!("a rule denies it: {rule}")),
            None => Ok(path),
        }
    }
}
