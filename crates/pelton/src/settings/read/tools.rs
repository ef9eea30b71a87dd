//! What is said about the tools themselves.

use serde_json::{Map, Value};

use super::super::ToolSettings;
use super::Reader;
use crate::hooks::Source;

impl Reader<'_> {
    pub(super) fn tools(&mut self, all: &Map<String, Value>) -> ToolSettings {
        // Whether it is the one that is not there.
        let shell = |value: &Value| match value.as_str()? {
            "bash" => Some(false),
            "powershell" => Some(true),
            _ => None,
        };
        if self.field(all, "", "defaultShell", "\"bash\" or \"powershell\"", shell) == Some(true) {
            self.warn("defaultShell", "is \"powershell\", which there is no tool for: commands run in bash");
        }
        let expected = "an object with type \"command\" and a command";
        let command = |value: &Value| {
            (value["type"] == "command").then(|| value["command"].as_str().map(str::to_owned)).flatten()
        };
        let mut file_suggestion = self.field(all, "", "fileSuggestion", expected, command);
        let is_projects = matches!(self.origin.source, Source::Project | Source::Local);
        if is_projects && file_suggestion.take().is_some() {
            self.warn(
                "fileSuggestion",
                "is a command, and not taken from a project: write it into your own settings",
            );
        }
        ToolSettings {
            file_suggestion,
            plans_dir: self.text(all, "", "plansDirectory"),
            plans_dir_is_projects: is_projects,
            respect_gitignore: self.field(all, "", "respectGitignore", "true or false", Value::as_bool),
        }
    }
}
