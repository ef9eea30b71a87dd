//! Changes of what may run, written to the settings file that they are meant for.

use std::sync::Arc;

use pelton::permission::{Destination, Keeper, Update};
use pelton::settings::edited;

use super::layers::{Files, SETTINGS_BYTES_MAX};
use super::watch::SettingsOnDisk;
use crate::written::{Seen, change};

/// The settings files of a session.
pub(super) struct SettingsFiles {
    pub files: Files,
    /// Who looks whether others change them: what is written here is no news.
    pub watch: Arc<SettingsOnDisk>,
}

impl Keeper for SettingsFiles {
    fn keep(&self, update: &Update) -> Result<(), String> {
        let (file, seen) = match update.destination {
            Destination::LocalSettings => (self.files.local.clone(), Seen::ByOwner),
            Destination::ProjectSettings => (self.files.project.clone(), Seen::ByMask),
            Destination::UserSettings => {
                let file = self.files.user.as_ref().ok_or("set CLAUDE_CONFIG_DIR or HOME")?;
                // Where the user keeps the directory is their own business.
                let dir = file.parent().and_then(|dir| dir.canonicalize().ok());
                (dir.map_or_else(|| file.clone(), |dir| dir.join("settings.json")), Seen::ByOwner)
            }
            _ => return Ok(()),
        };
        let kept = change(&file, SETTINGS_BYTES_MAX, seen, |text| {
            edited(text, update).map_err(|error| error.to_string())
        });
        self.watch.take_for_seen(&file);
        kept
    }
}
