//! What happens around the conversation: files, settings, tasks, questions of servers.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::SessionHooks;
use crate::hooks::event::HookEvent;
use crate::hooks::input::EventInput;
use crate::hooks::run::Fired;
use crate::host::{Elicitation, Elicited};
use crate::instructed::Instructed;

impl SessionHooks {
    /// The model is told what an instruction file says.
    pub async fn instructed(&self, told: &Instructed, cwd: &Path) -> Option<Fired> {
        let fields = || {
            let mut fields = object(json!({
                "file_path": words(&told.file),
                "memory_type": told.whose,
                "load_reason": told.reason,
            }));
            if !told.globs.is_empty() {
                fields.insert("globs".to_owned(), json!(told.globs));
            }
            for (name, path) in [("trigger_file_path", &told.trigger), ("parent_file_path", &told.parent)] {
                fields.extend(path.as_deref().map(|path| (name.to_owned(), words(path))));
            }
            fields
        };
        self.other(HookEvent::InstructionsLoaded, cwd, fields).await
    }

    /// The project is set up, or looked after.
    pub async fn set_up(&self, trigger: &str) -> Option<Fired> {
        let cwd = self.base.cwd.clone();
        self.other(HookEvent::Setup, &cwd, || object(json!({"trigger": trigger}))).await
    }

    /// A settings file has changed.
    pub async fn settings_changed(&self, source: &str, file: &Path, cwd: &Path) -> Option<Fired> {
        let fields = || object(json!({"source": source, "file_path": words(file)}));
        self.other(HookEvent::ConfigChange, cwd, fields).await
    }

    /// A file that somebody wants to hear of has come, changed or gone.
    pub async fn file_changed(&self, file: &Path, what: &str, cwd: &Path) -> Option<Fired> {
        let fields = || object(json!({"file_path": words(file), "event": what}));
        self.other(HookEvent::FileChanged, cwd, fields).await
    }

    /// A task is about to be made, or to be done.
    pub async fn task(&self, event: HookEvent, fields: Map<String, Value>, cwd: &Path) -> Option<Fired> {
        self.other(event, cwd, || fields).await
    }

    /// A server, or a tool, asks a person something.
    pub async fn elicitation(&self, question: &Elicitation, cwd: &Path) -> Option<Fired> {
        self.other(HookEvent::Elicitation, cwd, || asked(question)).await
    }

    /// It was answered.
    pub async fn elicitation_result(
        &self,
        question: &Elicitation,
        answer: &Elicited,
        cwd: &Path,
    ) -> Option<Fired> {
        let fields = || {
            let mut fields = object(json!({"mcp_server_name": question.asker, "action": answer.action()}));
            if let Elicited::Accept(content) = answer
                && !content.is_null()
            {
                fields.insert("content".to_owned(), content.clone());
            }
            fields
        };
        self.other(HookEvent::ElicitationResult, cwd, fields).await
    }

    /// An agent wants a worktree of its own. Hooks may make it in our place.
    pub async fn worktree_wanted(&self, name: &str, cwd: &Path) -> Option<Fired> {
        self.other(HookEvent::WorktreeCreate, cwd, || object(json!({"name": name}))).await
    }

    /// A worktree is not wanted any more.
    pub async fn worktree_left(&self, path: &Path, cwd: &Path) -> Option<Fired> {
        let fields = || object(json!({"worktree_path": words(path)}));
        self.other(HookEvent::WorktreeRemove, cwd, fields).await
    }

    /// The session works in one more directory.
    pub async fn directory_added(&self, dir: &Path, source: &str, cwd: &Path) -> Option<Fired> {
        let fields = || object(json!({"directory": words(dir), "source": source}));
        self.other(HookEvent::DirectoryAdded, cwd, fields).await
    }

    /// Another model is about to be asked, or is from now on. What was said has to be told to it from the beginning.
    pub async fn model_switch(
        &self,
        event: HookEvent,
        switch: &ModelSwitch<'_>,
        cwd: &Path,
    ) -> Option<Fired> {
        let fields = || {
            object(json!({
                "from_model": switch.from,
                "to_model": switch.to,
                "requested_model": switch.requested,
                "source": switch.source,
                "context_tokens": switch.context_tokens,
                "prompt_cache_warm": false,
                "cache_ttl": "5m",
                "estimated_cache_write_usd": switch.write_usd.unwrap_or_default(),
                "pricing": match (switch.write_usd, switch.is_priced_by_user) {
                    (None, _) => "default",
                    (Some(_), true) => "configured",
                    (Some(_), false) => "catalog",
                },
            }))
        };
        self.other(event, cwd, fields).await
    }

    async fn other(
        &self,
        event: HookEvent,
        cwd: &Path,
        fields: impl FnOnce() -> Map<String, Value>,
    ) -> Option<Fired> {
        self.fire(event, cwd, || EventInput::Other { event, fields: fields() }).await
    }
}

/// From one model to another.
pub(crate) struct ModelSwitch<'a> {
    pub from: &'a str,
    pub to: &'a str,
    /// As it was asked for.
    pub requested: &'a str,
    /// Who asked for it.
    pub source: &'a str,
    pub context_tokens: u64,
    /// What it costs to tell the other one all of that, if its price is known.
    pub write_usd: Option<f64>,
    pub is_priced_by_user: bool,
}

fn asked(question: &Elicitation) -> Map<String, Value> {
    object(question.to_json())
}

fn words(path: &Path) -> Value {
    path.to_string_lossy().into()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
