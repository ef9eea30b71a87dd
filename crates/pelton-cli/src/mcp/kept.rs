//! Where servers are kept: the files, the place of an entry in them, and how that is changed.

use std::path::{Path, PathBuf};

use pelton::settings::with_value;
use serde_json::{Map, Value};

use crate::args::KeptIn;
use crate::resolve::{self, Env};
use crate::written::{Seen, change};

/// The most bytes of a file that is changed.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const SERVERS: &str = "mcpServers";
/// The places, the one that counts first.
pub(super) const PLACES: [KeptIn; 3] = [KeptIn::Local, KeptIn::Project, KeptIn::User];

/// A place where servers are kept.
pub(super) struct Kept {
    pub file: PathBuf,
    keys: Vec<String>,
    seen: Seen,
    /// Where older versions are kept, if the file holds more than servers.
    backed_up: Option<Env>,
}

impl Kept {
    /// The place of a scope, seen from a directory.
    pub fn at(scope: KeptIn, env: &Env, cwd: &Path) -> Result<Self, String> {
        let root = resolve::project_root(cwd);
        let keys = match scope {
            KeptIn::Project | KeptIn::User => vec![SERVERS.to_owned()],
            KeptIn::Local => {
                let root = root.to_str().ok_or("the path of this directory is no text")?.to_owned();
                vec!["projects".to_owned(), root, SERVERS.to_owned()]
            }
        };
        if scope == KeptIn::Project {
            return Ok(Self { file: root.join(".mcp.json"), keys, seen: Seen::ByMask, backed_up: None });
        }
        let file = resolve::state_file(env).ok_or("set CLAUDE_CONFIG_DIR or HOME")?;
        Ok(Self { file, keys, seen: Seen::ByOwner, backed_up: Some(env.clone()) })
    }

    /// The entries, as they are written.
    pub fn entries(&self) -> Result<Map<String, Value>, String> {
        let text = resolve::text_of(&self.file, FILE_BYTES_MAX)
            .map_err(|error| format!("{} {error}", self.file.display()))?;
        self.entries_in(&text.unwrap_or_default()).map_err(|why| format!("{}: {why}", self.file.display()))
    }

    /// Adds an entry. One that is there is not written over.
    pub fn add(&self, name: &str, entry: &Value) -> Result<(), String> {
        self.change(|entries| {
            if entries.contains_key(name) {
                return Err(format!("there is a server '{name}' already: remove it first"));
            }
            entries.insert(name.to_owned(), entry.clone());
            Ok(())
        })
    }

    /// Takes an entry away.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        self.change(|entries| match entries.shift_remove(name) {
            Some(_) => Ok(()),
            None => Err(format!("there is no server '{name}'")),
        })
    }

    fn change(&self, edit: impl FnOnce(&mut Map<String, Value>) -> Result<(), String>) -> Result<(), String> {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        change(&self.file, FILE_BYTES_MAX, self.seen, |text| {
            let mut entries = self.entries_in(text)?;
            edit(&mut entries)?;
            let new = with_value(text, &keys, &Value::Object(entries)).map_err(|error| error.to_string())?;
            if let (Some(_), Some(env), false) = (&new, &self.backed_up, text.is_empty()) {
                resolve::back_up(env, text)?;
            }
            Ok(new)
        })
    }

    fn entries_in(&self, text: &str) -> Result<Map<String, Value>, String> {
        if text.trim().is_empty() {
            return Ok(Map::new());
        }
        let mut written: Value = serde_json::from_str(text)
            .map_err(|error| format!("is not JSON, so it is left as it is: {error}"))?;
        let place = self.keys.iter().try_fold(&mut written, |at, key| at.get_mut(key));
        match place.map(Value::take) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(entries)) => Ok(entries),
            Some(_) => Err(format!("`{}` is no object, so it is left as it is", self.keys.join("."))),
        }
    }
}
