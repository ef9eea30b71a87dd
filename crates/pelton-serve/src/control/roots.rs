//! Directories that a session works in besides, because its client says so while it runs.

use std::path::Path;

use pelton::RootJoins;
use pelton::permission::{Change, Update};
use serde_json::{Value, json};

use super::requests::Handles;

impl Handles {
    /// Lets the session work in a directory below those that it was started with. What the directory says to the model counts
    /// where the client wants that.
    pub(super) fn register_root(&self, named: &str, body: &Value) -> Result<Value, String> {
        let wrong = |why: &str| format!("register_repo_root: {named} {why}");
        let dir = self.cwd.join(named);
        let dir = dir.canonicalize().map_err(|error| wrong(&format!("cannot be added: {error}")))?;
        if !dir.is_dir() {
            return Err(wrong("is no directory"));
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if self.permissions.roots().iter().any(|root| real(root) == dir) {
            return Err(wrong("is one of the session's directories already"));
        }
        if !self.launched_in.iter().any(|root| dir.starts_with(real(root))) {
            return Err(wrong("is not below a directory that the session was started with"));
        }
        let update = Update::session(Change::AddDirectories(vec![dir.clone()]));
        self.permissions.apply(&update).map_err(|error| error.to_string())?;
        let is_on = |name: &str| body.get(name).and_then(Value::as_bool) == Some(true);
        let (instructs, brings_skills) = (is_on("reload_claude_md"), is_on("reload_skills"));
        self.joins.add_root(RootJoins { dir, instructs, brings_skills });
        Ok(json!({}))
    }
}
