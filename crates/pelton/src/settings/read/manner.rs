//! How the model works and answers, and which may be asked.

use pelton_model::CacheLife;
use serde_json::{Map, Value};

use super::Reader;
use crate::context::Attribution;
use crate::hooks::Source;
use crate::options::WorktreeBase;
use crate::settings::{MannerSettings, ModelSettings, Patience, ScreenSettings, WorktreeSettings};

impl Reader<'_> {
    pub(super) fn manner(&mut self, all: &Map<String, Value>) -> MannerSettings {
        MannerSettings {
            agent: self.text(all, "", "agent"),
            output_style: self.text(all, "", "outputStyle"),
            language: self.text(all, "", "language"),
            attribution: self.attribution(all),
        }
    }

    fn attribution(&mut self, all: &Map<String, Value>) -> Attribution {
        let usual = |wanted: bool| Some(if wanted { Attribution::USUAL } else { "" }.to_owned());
        let mut attribution = Attribution::default();
        let older = self.field(all, "", "includeCoAuthoredBy", "true or false", Value::as_bool);
        if let Some(wanted) = older {
            (attribution.commit, attribution.pull_request) = (usual(wanted), usual(wanted));
        }
        let expected = "true, false, or an object with `commit` and `pr`";
        let said = self.field(all, "", "attribution", expected, |value| {
            (value.is_boolean() || value.is_object()).then(|| value.clone())
        });
        match said {
            Some(Value::Bool(wanted)) => {
                (attribution.commit, attribution.pull_request) = (usual(wanted), usual(wanted));
            }
            Some(Value::Object(said)) => {
                let text = |value: &Value| value.as_str().map(str::to_owned);
                let commit = self.field(&said, "attribution.", "commit", "a text", text);
                let pull_request = self.field(&said, "attribution.", "pr", "a text", text);
                attribution.commit = commit.or(attribution.commit);
                attribution.pull_request = pull_request.or(attribution.pull_request);
            }
            _ => {}
        }
        attribution
    }

    pub(super) fn screen(&mut self, all: &Map<String, Value>) -> ScreenSettings {
        let said =
            self.field(all, "", "statusLine", "an object", Value::as_object).cloned().unwrap_or_default();
        // The only kind there is.
        let _ =
            self.field(&said, "statusLine.", "type", "\"command\"", |kind| (kind == "command").then_some(()));
        let seconds = |value: &Value| value.as_u64().filter(|seconds| *seconds > 0);
        // Whether somebody is asked is not for a project to say.
        let is_projects = matches!(self.origin.source, Source::Project | Source::Local);
        let patience = |value: &Value| value.as_str().and_then(Patience::from_name);
        let mut time = |key| {
            self.field(all, "", key, "\"60s\", \"5m\", \"10m\" or \"never\"", patience)
                .filter(|_| !is_projects)
        };
        let (question_time, dialog_time) = (time("askUserQuestionTimeout"), time("dialogExpiry"));
        ScreenSettings {
            question_time,
            dialog_time,
            answers_shell: self.field(all, "", "respondToBashCommands", "true or false", Value::as_bool),
            theme: self.text(all, "", "theme"),
            vim: self.field(all, "", "editorMode", "\"normal\" or \"vim\"", |mode| match mode.as_str()? {
                "vim" => Some(true),
                "normal" | "emacs" => Some(false),
                _ => None,
            }),
            status_command: self.text(&said, "statusLine.", "command"),
            status_padding: self.field(&said, "statusLine.", "padding", "a whole number", Value::as_u64),
            status_refresh_s: self.field(
                &said,
                "statusLine.",
                "refreshInterval",
                "a number of seconds",
                seconds,
            ),
        }
    }

    pub(super) fn worktrees(&mut self, all: &Map<String, Value>) -> WorktreeSettings {
        let said =
            self.field(all, "", "worktree", "an object", Value::as_object).cloned().unwrap_or_default();
        let base = |value: &Value| value.as_str().and_then(WorktreeBase::from_name);
        WorktreeSettings {
            base: self.field(&said, "worktree.", "baseRef", "\"fresh\" or \"head\"", base),
            linked_directories: self.texts(&said, "worktree.", "symlinkDirectories").unwrap_or_default(),
            sparse_paths: self.texts(&said, "worktree.", "sparsePaths").unwrap_or_default(),
        }
    }

    pub(super) fn choice_of_models(&mut self, all: &Map<String, Value>) -> ModelSettings {
        let levels = "low, medium, high, xhigh or max";
        let ids = |value: &Value| {
            let one = |(id, other): (&String, &Value)| Some((id.clone(), other.as_str()?.to_owned()));
            value.as_object()?.iter().map(one).collect()
        };
        let mut life =
            |key| self.field(all, "", key, "\"5m\" or \"1h\"", |value| CacheLife::from_name(value.as_str()?));
        let (cache, agents_cache) = (life("promptCacheTtl"), life("subagentPromptCacheTtl"));
        ModelSettings {
            available: self.texts(all, "", "availableModels"),
            enforced: self.field(all, "", "enforceAvailableModels", "true or false", Value::as_bool),
            denied: self.texts(all, "", "deniedModels").unwrap_or_default(),
            ids: self
                .field(all, "", "modelOverrides", "an object of ids and what the server calls them", ids)
                .unwrap_or_default(),
            cache,
            agents_cache,
            effort_max: self.field(all, "", "maxEffortLevel", levels, |level| level.as_str()?.parse().ok()),
            thinks: self.field(all, "", "alwaysThinkingEnabled", "true or false", Value::as_bool),
            shows_thinking: self.field(all, "", "showThinkingSummaries", "true or false", Value::as_bool),
        }
    }
}
