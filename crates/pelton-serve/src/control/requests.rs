//! What the client may want at any time, also in the middle of a submission: everything here works through handles, and
//! what takes a while is a future.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::compact::ContextUsage;
use pelton::file_history::{Conflicts, FileHistory, HistoryError, Rewound};
use pelton::permission::{Behavior, Change, Mode, Permissions, Rule, Update};
use pelton::tools::{FileMemory, Tool, ToolServer};
use pelton::{CLI_VERSION, ContextWatch, Dials, Engine, Interrupter, Outcome, Queue, Status, Tasks, Title};
use pelton_model::{Thinking, ThinkingDisplay, catalogue};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::files::{self, Suggested};
use super::said::Request;
use super::servers::Servers;

/// The ways into a session while it runs.
pub(crate) struct Handles {
    pub interrupter: Interrupter,
    pub queue: Queue,
    pub permissions: Permissions,
    pub dials: Dials,
    pub tasks: Tasks,
    pub title: Title,
    pub status: watch::Receiver<Status>,
    pub files: Arc<FileMemory>,
    pub file_history: Option<FileHistory>,
    pub cwd: PathBuf,
    pub servers: Servers,
    pub may_bypass: bool,
    suggested: Suggested,
    pub agents: Vec<String>,
    /// What fills the context.
    context: ContextWatch,
    /// The newest result.
    pub last: Option<Arc<Outcome>>,
}

/// What comes of a request.
pub(crate) enum Served {
    /// An answer.
    Now(Result<Value, String>),
    /// An answer that takes a while.
    Later(BoxFuture<'static, Result<Value, String>>),
    /// An answer, and then the running submission ends.
    Interrupt(Value),
    /// An answer, and then the mode is told to everyone.
    Mode(Mode),
}

impl Handles {
    pub fn of(engine: &Engine, servers: Servers, cwd: PathBuf, may_rewind: bool) -> Self {
        Self {
            context: engine.context_watch(),
            interrupter: engine.interrupter(),
            queue: engine.queue(),
            permissions: engine.permissions(),
            dials: engine.dials(),
            tasks: engine.tasks(),
            title: engine.title(),
            status: engine.watch(),
            files: engine.files(),
            file_history: engine.file_history().filter(|_| may_rewind),
            cwd,
            servers,
            may_bypass: false,
            suggested: if engine.suggests_ignored() { Suggested::All } else { Suggested::NotIgnored },
            agents: Vec::new(),
            last: None,
        }
    }

    /// Answers a request, or says that it is not one of ours.
    pub fn serve(&self, request: &Request) -> Served {
        let body = &request.body;
        let word = |name: &str| body.get(name).and_then(Value::as_str);
        let needed = |name: &str| word(name).ok_or_else(|| format!("{}: {name} is missing", request.subtype));
        match request.subtype.as_str() {
            "interrupt" => self.interrupt(body.get("cancel_queued").and_then(Value::as_bool) == Some(true)),
            "set_permission_mode" => match self.set_mode(word("mode").unwrap_or_default()) {
                Ok(mode) => Served::Mode(mode),
                Err(why) => Served::Now(Err(why)),
            },
            "set_model" => {
                let model = word("model").filter(|model| !model.is_empty() && *model != "default");
                let set = self.dials.set_model(model).map_err(|error| error.to_string());
                Served::Now(set.map(|()| json!({})))
            }
            "set_max_thinking_tokens" => Served::Now(self.set_thinking(body)),
            "mcp_status" => Served::Now(Ok(self.servers.status())),
            "mcp_reconnect" => match needed("serverName") {
                Ok(name) => Served::Later(self.servers.reconnect(name)),
                Err(why) => Served::Now(Err(why)),
            },
            "mcp_toggle" => match needed("serverName") {
                Ok(name) => {
                    let enabled = body.get("enabled").and_then(Value::as_bool).unwrap_or(true);
                    Served::Later(self.servers.toggle(name, enabled))
                }
                Err(why) => Served::Now(Err(why)),
            },
            "mcp_set_servers" => Served::Later(self.servers.set(body.get("servers").unwrap_or(&Value::Null))),
            "mcp_message" => {
                if let (Some(name), Some(message)) = (word("server_name"), body.get("message")) {
                    self.servers.heard(name, message);
                }
                Served::Now(Ok(json!({})))
            }
            "rewind_files" => self.rewind(body),
            "stop_task" => match needed("task_id") {
                Err(why) => Served::Now(Err(why)),
                Ok(id) => {
                    let (tasks, id) = (self.tasks.clone(), id.to_owned());
                    Served::Later(
                        async move {
                            let found = tasks.stop(&id).await;
                            if found { Ok(json!({})) } else { Err(format!("No task found with ID: {id}")) }
                        }
                        .boxed(),
                    )
                }
            },
            "background_tasks" if !self.tasks.are_allowed() => {
                Served::Now(Err("Background tasks are disabled for this session".to_owned()))
            }
            "background_tasks" => {
                // Whoever means none in particular is told that there is nothing left to wait for.
                let call = word("tool_use_id");
                let put_aside = self.tasks.put_aside(call) || call.is_none();
                Served::Now(Ok(json!({"backgrounded": put_aside})))
            }
            "get_settings" => Served::Now(Ok(self.settings())),
            "apply_flag_settings" => {
                Served::Now(self.apply_settings(body.get("settings").unwrap_or(&Value::Null)))
            }
            "get_context_usage" => Served::Now(Ok(self.context_usage())),
            "get_session_cost" => {
                let cost = self.last.as_ref().map_or(0.0, |outcome| outcome.cost_usd);
                Served::Now(Ok(json!({"text": format!("Total cost: ${cost:.4}")})))
            }
            "get_binary_version" => Served::Now(Ok(
                json!({"version": CLI_VERSION, "buildTime": "", "pelton": env!("CARGO_PKG_VERSION")}),
            )),
            "rename_session" => {
                let named = needed("title")
                    .and_then(|title| self.title.set(title).map_err(|error| error.to_string()));
                Served::Now(named.map(|()| json!({})))
            }
            "seed_read_state" => {
                let mtime = body.get("mtime").and_then(Value::as_f64);
                match needed("path") {
                    Ok(path) => {
                        Served::Later(files::seed(self.cwd.join(path), mtime, Arc::clone(&self.files)))
                    }
                    Err(why) => Served::Now(Err(why)),
                }
            }
            "cancel_async_message" => {
                let id = word("message_uuid").and_then(|id| id.parse::<Uuid>().ok());
                Served::Now(Ok(json!({"cancelled": id.is_some_and(|id| self.queue.cancel(id))})))
            }
            "read_file" => match needed("path") {
                Ok(path) => {
                    let bytes = body.get("max_bytes").and_then(Value::as_u64);
                    let base64 = word("encoding") == Some("base64");
                    let path = self.cwd.join(path);
                    Served::Later(files::read(
                        path,
                        self.cwd.clone(),
                        self.permissions.clone(),
                        bytes,
                        base64,
                    ))
                }
                Err(why) => Served::Now(Err(why)),
            },
            "file_suggestions" => {
                let query = word("query").unwrap_or_default().to_owned();
                Served::Later(files::suggest(self.cwd.clone(), query, self.suggested))
            }
            other => Served::Now(Err(format!("Unsupported control request subtype: {other}"))),
        }
    }

    fn interrupt(&self, cancels_queued: bool) -> Served {
        let waiting = self.queue.waiting();
        let cancelled: Vec<Uuid> =
            waiting.iter().copied().filter(|id| cancels_queued && self.queue.cancel(*id)).collect();
        let still: Vec<Uuid> = waiting.into_iter().filter(|id| !cancelled.contains(id)).collect();
        Served::Interrupt(json!({"still_queued": still, "cancelled": cancelled}))
    }

    fn set_mode(&self, name: &str) -> Result<Mode, String> {
        let mode = Mode::from_name(name).ok_or_else(|| format!("there is no permission mode '{name}'"))?;
        if mode == Mode::BypassPermissions && !self.may_bypass {
            return Err(
                "Cannot set permission mode to bypassPermissions because the session was not launched with \
                        --dangerously-skip-permissions or --allow-dangerously-skip-permissions"
                    .to_owned(),
            );
        }
        let update = Update::session(Change::SetMode(mode));
        self.permissions.apply(&update).map_err(|error| error.to_string())?;
        Ok(mode)
    }

    fn set_thinking(&self, body: &Value) -> Result<Value, String> {
        match body.get("max_thinking_tokens") {
            None | Some(Value::Null) => self.dials.set_thinking(None),
            Some(tokens) => {
                let tokens = tokens.as_u64().and_then(|tokens| u32::try_from(tokens).ok());
                let tokens = tokens.ok_or_else(|| "max_thinking_tokens is no whole number".to_owned())?;
                self.dials.set_thinking(Some(Thinking::up_to(tokens)));
            }
        }
        match body.get("thinking_display").and_then(Value::as_str) {
            Some("summarized") => self.dials.set_thinking_display(ThinkingDisplay::Summarized),
            Some("omitted") => self.dials.set_thinking_display(ThinkingDisplay::Omitted),
            _ => {}
        }
        Ok(json!({}))
    }

    fn rewind(&self, body: &Value) -> Served {
        let Some(history) = self.file_history.clone() else {
            return Served::Now(Err("File rewinding is not enabled.".to_owned()));
        };
        let to = body.get("user_message_id").and_then(Value::as_str).and_then(|id| id.parse::<Uuid>().ok());
        let Some(to) = to else {
            return Served::Now(Err(NO_CHECKPOINT.to_owned()));
        };
        let dry_run = body.get("dry_run").and_then(Value::as_bool).unwrap_or_default();
        let work = tokio::task::spawn_blocking(move || match dry_run {
            true => history.preview(to),
            false => history.rewind(to, Conflicts::Leave),
        });
        Served::Later(
            async move {
                let rewound = work.await.map_err(|error| error.to_string())?;
                rewound.map(|rewound| told(&rewound, dry_run)).map_err(|error| match error {
                    HistoryError::NoSuchMessage | HistoryError::None => NO_CHECKPOINT.to_owned(),
                    error => error.to_string(),
                })
            }
            .boxed(),
        )
    }

    fn settings(&self) -> Value {
        let rules = self.permissions.rules();
        let words = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (mode, model) = (self.permissions.mode().name(), self.dials.model());
        let directories = self.permissions.roots().into_iter().skip(1);
        let directories: Vec<String> = directories.map(|dir| dir.to_string_lossy().into_owned()).collect();
        json!({
            "effective": {
                "model": model,
                "permissions": {
                    "allow": words(&rules.allow),
                    "ask": words(&rules.ask),
                    "deny": words(&rules.deny),
                    "defaultMode": mode,
                    "additionalDirectories": directories,
                },
            },
            "sources": [],
            "applied": {"model": model, "permissionMode": mode},
        })
    }

    /// Settings for the rest of the session. Those that cannot be changed any more are named, and then none is.
    fn apply_settings(&self, settings: &Value) -> Result<Value, String> {
        let settings = settings.as_object().ok_or("settings is no object")?;
        let mut updates = Vec::new();
        for (name, value) in settings.iter().filter(|(_, value)| !value.is_null()) {
            match name.as_str() {
                "model" if value.is_string() => {}
                "permissions" => updates.extend(permission_updates(value)?),
                other => return Err(format!("{other} cannot be changed while a session runs")),
            }
        }
        let sets_bypass = |update: &Update| update.change == Change::SetMode(Mode::BypassPermissions);
        if updates.iter().any(sets_bypass) {
            self.set_mode(Mode::BypassPermissions.name())?;
        }
        if let Some(model) = settings.get("model") {
            self.dials.set_model(model.as_str()).map_err(|error| error.to_string())?;
        }
        for update in updates {
            self.permissions.apply(&update).map_err(|error| error.to_string())?;
        }
        Ok(json!({}))
    }

    /// What fills the context: the figures everybody goes by.
    fn context_usage(&self) -> Value {
        let usage = self.context.usage();
        let window = usage.window_tokens;
        let category = |name: &str, tokens: u64, kind: &str| json!({"name": name, "tokens": tokens, "color": "inactive", "kind": kind});
        let sum = |kind: &str| -> u64 {
            usage.shares.iter().filter(|share| share.kind == kind).map(|share| share.tokens).sum()
        };
        let mut categories = vec![category("System prompt", sum("system"), "system")];
        let tools = usage.shares.iter().filter(|share| share.kind == "tools");
        categories.extend(tools.enumerate().map(|(nth, share)| match nth {
            0 => category("System tools", share.tokens, "tools"),
            _ => category(&format!("MCP tools: {}", share.name), share.tokens, "mcp_tools"),
        }));
        categories.extend([
            category("Memory files", sum("memory"), "memory"),
            category("Images and documents", sum("media"), "media"),
            category("Messages", sum("messages"), "messages"),
            category("Free space", window.saturating_sub(usage.used_tokens), "free"),
        ]);
        let memory = usage.shares.iter().filter(|share| share.kind == "memory");
        let raw = catalogue::caps(&usage.model).map_or(window, |caps| caps.window);
        json!({
            "categories": categories,
            "totalTokens": usage.used_tokens,
            "maxTokens": window,
            "rawMaxTokens": raw,
            "percentage": (usage.used_tokens as f64 / window.max(1) as f64 * 100.0).round(),
            "model": usage.model,
            "memoryFiles": memory.map(|share| json!({"path": share.name, "type": "Memory", "tokens": share.tokens})).collect::<Vec<_>>(),
            "mcpTools": self.mcp_tools(&usage),
            "agents": self.agents.iter().map(|name| json!({"agentType": name, "source": "session", "tokens": 0})).collect::<Vec<_>>(),
            "gridRows": [],
            "isAutoCompactEnabled": usage.is_auto_compact_enabled,
            "autoCompactThreshold": usage.is_auto_compact_enabled.then_some(usage.auto_compact_threshold),
            "apiUsage": self.last.as_ref().map(|outcome| json!(outcome.usage)),
            "usableTokens": usage.usable_tokens,
            "rounds": usage.rounds,
            "levels": usage.levels,
            "nextTurnCachedUsd": usage.next_turn_cached_usd,
            "nextTurnUncachedUsd": usage.next_turn_uncached_usd,
            "cache": usage.cache,
        })
    }

    /// The tools of the client's servers. Those that are sent share what their server takes; of the others the model knows
    /// the names only.
    fn mcp_tools(&self, usage: &ContextUsage) -> Vec<Value> {
        let mut told = Vec::new();
        for server in self.servers.all() {
            let tools = server.tools();
            let bytes = |tool: &Arc<dyn Tool>| {
                let spec = tool.spec();
                (spec.name.len() + spec.description.len() + spec.input_schema.len()) as u64
            };
            let all = tools.iter().map(bytes).sum::<u64>().max(1);
            let share =
                usage.shares.iter().find(|share| share.kind == "tools" && share.name == server.name());
            told.extend(tools.iter().map(|tool| {
                let tokens = share.map_or(0, |share| share.tokens * bytes(tool) / all);
                json!({"name": tool.spec().name, "serverName": server.name(), "tokens": tokens, "isLoaded": share.is_some()})
            }));
        }
        told
    }
}

const NO_CHECKPOINT: &str = "No file checkpoint found for this message.";

fn told(rewound: &Rewound, dry_run: bool) -> Value {
    if !dry_run {
        let left: Vec<String> = rewound
            .files
            .iter()
            .filter_map(|file| file.left.as_ref().map(|why| format!("{} {why}", file.path.display())))
            .collect();
        return if left.is_empty() {
            json!({"canRewind": true})
        } else {
            json!({"canRewind": true, "left": left})
        };
    }
    let files: Vec<String> =
        rewound.files.iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
    let sum = |of: fn(&pelton::file_history::RewoundFile) -> u64| rewound.files.iter().map(of).sum::<u64>();
    json!({
        "canRewind": true,
        "filesChanged": files,
        "insertions": sum(|file| file.insertions),
        "deletions": sum(|file| file.deletions),
    })
}

fn permission_updates(permissions: &Value) -> Result<Vec<Update>, String> {
    let mut updates = Vec::new();
    for (name, behavior) in [("allow", Behavior::Allow), ("ask", Behavior::Ask), ("deny", Behavior::Deny)] {
        let Some(rules) = permissions.get(name).and_then(Value::as_array) else { continue };
        let rules = rules.iter().map(|rule| {
            let rule = rule.as_str().ok_or_else(|| format!("permissions.{name}: a rule is no text"))?;
            rule.parse::<Rule>().map_err(|error| error.to_string())
        });
        updates.push(Update::session(Change::AddRules(behavior, rules.collect::<Result<_, _>>()?)));
    }
    if let Some(mode) = permissions.get("defaultMode").and_then(Value::as_str) {
        let mode = Mode::from_name(mode).ok_or_else(|| format!("there is no permission mode '{mode}'"))?;
        updates.push(Update::session(Change::SetMode(mode)));
    }
    if let Some(directories) = permissions.get("additionalDirectories").and_then(Value::as_array) {
        let directories = directories.iter().filter_map(Value::as_str).map(PathBuf::from).collect();
        updates.push(Update::session(Change::AddDirectories(directories)));
    }
    Ok(updates)
}
