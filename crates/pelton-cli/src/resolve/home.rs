//! The settings files of a session, for the client that drives it.

use std::path::PathBuf;

use pelton::hooks::Source;
use pelton::permission::Destination;
use pelton::settings::{value_of, with_value};
use pelton_serve::SettingsHome;
use serde_json::{Value, json};

use super::env::Env;
use super::layers::{self, Files, SETTINGS_BYTES_MAX, Sources};
use super::manner;
use crate::args::RunArgs;
use crate::written::{Seen, change};

/// Where the settings of a session come from.
pub(crate) struct Home {
    pub args: RunArgs,
    pub env: Env,
    pub cwd: PathBuf,
    /// The names of the ways to answer that are always there, or come from plugins.
    pub styles: Vec<String>,
}

impl SettingsHome for Home {
    fn write(&self, to: Destination, key: &str, value: &Value) -> Result<(), String> {
        let sources =
            Sources::said(self.args.setting_sources.as_deref()).map_err(|fail| fail.line().to_owned())?;
        let project = super::config_root(&self.args, &self.cwd).map_err(|fail| fail.line().to_owned())?;
        let files = Files::around(&self.env, &project);
        let (file, counts) = match to {
            Destination::LocalSettings => (Some(files.local), sources.local),
            Destination::UserSettings => (files.user, sources.user),
            _ => (None, false),
        };
        let file = file.filter(|_| counts).ok_or("settings of that source do not count in this session")?;
        change(&file, SETTINGS_BYTES_MAX, Seen::ByOwner, |text| {
            let keys: Vec<&str> = key.split('.').collect();
            with_value(text, &keys, value).map_err(|error| error.to_string())
        })
    }

    fn styles(&self) -> Vec<String> {
        let mut names = self.styles.clone();
        let project = super::config_root(&self.args, &self.cwd);
        let found = project.and_then(|project| manner::styles(&self.args, &self.env, &project));
        let found = found.unwrap_or_default();
        for style in found {
            if !names.contains(&style.name) {
                names.push(style.name);
            }
        }
        names
    }

    fn sources(&self) -> Vec<Value> {
        let layers = layers::layers(&self.args, &self.env, &self.cwd).unwrap_or_default();
        let row = |layer: &layers::Layer| {
            let source = match layer.source {
                Source::User => "userSettings",
                Source::Project => "projectSettings",
                Source::Local => "localSettings",
                Source::Flag => "flagSettings",
                Source::Policy => "policySettings",
                _ => return None,
            };
            let settings = value_of(layer.text.as_deref().ok()?).ok()?;
            Some(json!({"source": source, "settings": settings}))
        };
        layers.iter().filter_map(row).collect()
    }
}
