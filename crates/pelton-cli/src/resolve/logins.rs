//! Logins at servers of tools, in a file of their own beside the other credentials: readable for its owner alone, replaced
//! whole, shared by many processes.

use std::any::Any;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use pelton_mcp::{Login, Logins};
use serde_json::{Map, Value};

use super::layers::text_of;
use crate::written::{Seen, change};

/// The most bytes of the file.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Its name. The one of the login that pays is another: whether that is there means something by itself.
pub(super) const FILE: &str = ".mcp-credentials.json";

/// The file that logins are kept in.
pub(crate) struct LoginFile(pub PathBuf);

impl LoginFile {
    fn all(&self, text: &str) -> Result<Map<String, Value>, String> {
        match serde_json::from_str(if text.trim().is_empty() { "{}" } else { text }) {
            Ok(Value::Object(all)) => Ok(all),
            // What exactly is wrong would quote from the file.
            _ => Err("is no JSON object".to_owned()),
        }
    }
}

impl Logins for LoginFile {
    fn read(&self, server: &str) -> Result<Option<Login>, String> {
        let about = |why: String| format!("{} {why}", self.0.display());
        let text = text_of(&self.0, FILE_BYTES_MAX).map_err(about)?.unwrap_or_default();
        Ok(self.all(&text).map_err(about)?.get(server).and_then(Login::from_json))
    }

    fn write(&self, server: &str, login: Option<&Login>) -> Result<(), String> {
        change(&self.0, FILE_BYTES_MAX, Seen::ByOwner, |text| {
            let mut all = self.all(text)?;
            match login {
                Some(login) => _ = all.insert(server.to_owned(), login.to_json()),
                None => _ = all.shift_remove(server),
            }
            Ok(Some(Value::Object(all).to_string()))
        })
    }

    fn try_lock(&self) -> Result<Option<Box<dyn Any + Send>>, String> {
        // The file itself is replaced while this is held, so the lock is on a neighbour.
        let mut name = self.0.clone().into_os_string();
        name.push(".lock");
        let failed = |error: std::io::Error| format!("{}: {error}", self.0.display());
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(name).map_err(failed)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(Box::new(lock))),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(failed(error.into())),
        }
    }
}
