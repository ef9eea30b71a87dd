//! What the client may want at any time, also in the middle of a submission: everything here works through handles, and
//! what takes a while is a future.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::file_history::{Conflicts, FileHistory, HistoryError, Rewound};
use pelton::hooks::HooksListed;
use pelton::permission::{Behavior, Change, Destination, Mode, Permissions, Rule, Update};
use pelton::tools::{FileMemory, ToolServer, changed_lines, served_name};
use pelton::{
    CLI_VERSION, ContextWatch, CostWatch, Dials, Engine, Interrupter, Joins, Menu, Namer, Outcome, Phase,
    Queue, Status, Tasks, Title,
};
use pelton_mcp::{Caller, Reach, Server};
use pelton_model::{Effort, Thinking, ThinkingDisplay, World};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::client::Client;
use super::files::{self, Suggested};
use super::initialize;
use super::limits::SERVERS_GUARDED_MAX;
use super::plugins::Added;
use super::said::Request;
use super::servers::{Servers, ServersNamed};
use crate::frames::listed;

/// The ways into a session while it runs.
#[non_exhaustive]
pub struct Handles {
    /// Ends the running submission.
    pub interrupter: Interrupter,
    /// Prompts that wait.
    pub queue: Queue,
    /// What may run.
    pub permissions: Permissions,
    /// Which model is asked.
    pub dials: Dials,
    /// What runs in the background.
    pub tasks: Tasks,
    /// What the session is called.
    pub title: Title,
    /// What it does right now.
    pub status: watch::Receiver<Status>,
    /// Files that the model knows.
    pub files: Arc<FileMemory>,
    /// What was done to files, if they may be taken back.
    pub file_history: Option<FileHistory>,
    /// Where it works.
    pub cwd: PathBuf,
    pub(super) servers: Arc<Servers>,
    /// Whoever drives it may switch all permissions off.
    pub may_bypass: bool,
    /// An interrupt lets agents in the background go on.
    pub spares_agents: bool,
    suggested: Suggested,
    /// The agents there are.
    pub agents: Vec<String>,
    /// What fills the context.
    pub(super) context: ContextWatch,
    /// What the session has cost so far.
    pub cost: CostWatch,
    /// The newest result.
    pub last: Option<Arc<Outcome>>,
    /// What all results came to.
    pub(super) spent: Spent,
    /// What prompts may call by name.
    pub(super) menu: Menu,
    /// Where the files of the session's settings are, if anybody knows.
    pub(super) home: Option<Arc<dyn SettingsHome>>,
    /// The model the session started with.
    pub(super) own_model: String,
    /// The betas that models are asked with.
    pub(super) betas: Vec<String>,
    /// What the client was told about the session at first.
    pub(super) about: Value,
    /// The hooks there are.
    pub(super) hooks: HooksListed,
    /// Lets plugins join.
    pub(super) joins: Joins,
    /// Those that have.
    pub(super) plugins_added: Arc<Mutex<Vec<Added>>>,
    /// The command that says which files are suggested, and what it runs with.
    suggesting: Option<(String, Vec<(OsString, OsString)>)>,
    /// Makes names for the session.
    pub(super) namer: Namer,
    /// The directories it was started with.
    pub(super) launched_in: Vec<PathBuf>,
    /// Servers whose tools are asked about even where nothing is.
    guarded: Mutex<BTreeSet<String>>,
    /// Rules that came with settings for the running session.
    flag_rules: Mutex<Vec<(Behavior, Vec<Rule>)>>,
}

/// What all submissions of a session came to.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pub all: Duration,
    pub api: Duration,
    pub lines_added: u64,
    pub lines_removed: u64,
}

/// Where the files are that a session's settings come from.
///
/// See [`ConverseOptions`](super::ConverseOptions).
pub trait SettingsHome: Send + Sync {
    /// Writes a value into the user's file for the project, or the user's own. Where one key is inside another, there is a dot between.
    ///
    /// # Errors
    ///
    /// If it cannot be written, in words.
    fn write(&self, to: Destination, key: &str, value: &Value) -> Result<(), String>;

    /// The names of the ways to answer, looked for anew.
    fn styles(&self) -> Vec<String>;

    /// What each file says, the weakest first: `{source, settings}`.
    fn sources(&self) -> Vec<Value>;
}

/// What comes of a request.
pub enum Served {
    /// An answer.
    Now(Result<Value, String>),
    /// An answer that takes a while.
    Later(BoxFuture<'static, Result<Value, String>>),
    /// An answer, and then the running submission ends.
    Interrupt(Value),
    /// An answer, and then the mode is told to everyone.
    Mode(Mode),
    /// An answer, and then the session ends as if the client had nothing more to say.
    End,
}

impl Handles {
    /// For whoever is at the same machine and brings no servers of their own.
    pub fn of_person(
        engine: &Engine,
        servers: Vec<Arc<Server>>,
        named: ServersNamed,
        cwd: PathBuf,
        world: Arc<dyn World>,
    ) -> Self {
        let (client, _) = Client::new(world);
        client.is_gone();
        Self::of(engine, Servers::new(servers, engine.servers(), client, named), cwd, true)
    }

    /// What comes of a request that nobody sent over a wire.
    pub fn ask(&self, subtype: &str, body: Value) -> Served {
        self.serve(&Request { id: String::new(), subtype: subtype.to_owned(), body })
    }

    pub(super) fn of(engine: &Engine, servers: Servers, cwd: PathBuf, may_rewind: bool) -> Self {
        Self {
            context: engine.context_watch(),
            cost: engine.cost_watch(),
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
            servers: Arc::new(servers),
            may_bypass: false,
            spares_agents: true,
            suggested: if engine.suggests_ignored() { Suggested::All } else { Suggested::NotIgnored },
            agents: Vec::new(),
            last: None,
            spent: Spent::default(),
            menu: engine.menu(),
            home: None,
            own_model: engine.dials().model(),
            betas: engine.betas().to_vec(),
            about: Value::Null,
            hooks: engine.hooks_listed(),
            joins: engine.joins(),
            plugins_added: Arc::default(),
            suggesting: engine.file_suggestion(),
            namer: engine.namer(),
            launched_in: engine.permissions().roots(),
            guarded: Mutex::default(),
            flag_rules: Mutex::default(),
        }
    }

    /// A submission is over.
    pub fn ended(&mut self, outcome: &Arc<Outcome>) {
        self.spent.all += outcome.duration;
        self.spent.api += outcome.duration_api;
        self.last = Some(Arc::clone(outcome));
    }

    /// A file was changed by a call, by so many lines.
    pub fn changed_lines(&mut self, detail: &[u8]) {
        let (added, removed) = changed_lines(detail);
        self.spent.lines_added += added;
        self.spent.lines_removed += removed;
    }

    /// Answers a request, or says that it is not one of ours.
    pub(super) fn serve(&self, request: &Request) -> Served {
        let body = &request.body;
        let word = |name: &str| body.get(name).and_then(Value::as_str);
        let needed = |name: &str| word(name).ok_or_else(|| format!("{}: {name} is missing", request.subtype));
        match request.subtype.as_str() {
            "interrupt" => self.interrupt(body.get("cancel_queued").and_then(Value::as_bool) == Some(true)),
            "set_permission_mode" => match needed("mode").and_then(|mode| self.set_mode(mode)) {
                Ok(mode) => Served::Mode(mode),
                Err(why) => Served::Now(Err(why)),
            },
            "set_model" if body.get("model").is_some_and(|model| !model.is_null() && !model.is_string()) => {
                Served::Now(Err("set_model: model is no text".to_owned()))
            }
            "set_model" if word("model") == Some("") => Served::Now(Err(
                "set_model: model is empty (null or \"default\" names the usual one)".to_owned(),
            )),
            // Which models there are, the server knows: a name that nobody knows here is asked for like any other.
            "set_model" => {
                let model = word("model").filter(|model| *model != "default");
                let set = self.dials.set_model(model).map_err(|error| error.to_string());
                Served::Now(set.map(|()| json!({"model": self.dials.model()})))
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
            "get_hooks_listing" => Served::Now(Ok(self.hooks_listing())),
            "get_usage" => Served::Now(Ok(self.usage())),
            "get_task_output" => match needed("task_id") {
                Ok(id) => Served::Later(self.task_output(id)),
                Err(why) => Served::Now(Err(why)),
            },
            "list_permission_rules" => Served::Now(Ok(self.permission_rules())),
            "list_models" => Served::Now(Ok(json!({"models": initialize::models(&self.own_model)}))),
            "reload_skills" => {
                let menu = self.menu.clone();
                Served::Later(
                    async move { Ok(json!({"skills": listed(&menu.look_for_skills().await)})) }.boxed(),
                )
            }
            "reload_output_styles" => {
                let styles = self.home.as_ref().map(|home| json!(home.styles()));
                let styles = styles.unwrap_or_else(|| self.about["available_output_styles"].clone());
                Served::Now(Ok(json!({"available_output_styles": styles})))
            }
            "reload_plugins" => self.reload_plugins(body),
            "update_settings" => Served::Now(self.update_settings(body)),
            "set_mcp_permission_mode_override" => match needed("serverName") {
                Ok(name) => Served::Now(self.guard_server(name, body.get("mode").unwrap_or(&Value::Null))),
                Err(why) => Served::Now(Err(why)),
            },
            "mcp_read_resource" => match needed("serverName").and_then(|name| Ok((name, needed("uri")?))) {
                Ok((name, uri)) => Served::Later(self.servers.read(name, uri)),
                Err(why) => Served::Now(Err(why)),
            },
            "mcp_call" => match needed("tool") {
                Ok(tool) => Served::Later(self.call_tool(tool, body)),
                Err(why) => Served::Now(Err(why)),
            },
            // Lines are written as they come, whoever watches.
            "set_has_subscribers" => Served::Now(Ok(json!({}))),
            "end_session" => Served::End,
            "get_settings" => Served::Now(Ok(self.settings())),
            "apply_flag_settings" => {
                Served::Now(self.apply_settings(body.get("settings").unwrap_or(&Value::Null)))
            }
            "get_context_usage" => Served::Now(Ok(self.context_usage())),
            "get_session_cost" => {
                Served::Now(Ok(json!({"text": format!("Total cost: ${:.4}", self.cost.usd())})))
            }
            "get_binary_version" => Served::Now(Ok(
                json!({"version": CLI_VERSION, "buildTime": "", "pelton": env!("CARGO_PKG_VERSION")}),
            )),
            "rename_session" => {
                let named = needed("title")
                    .and_then(|title| self.title.set(title).map_err(|error| error.to_string()));
                Served::Now(named.map(|()| json!({})))
            }
            "generate_session_title" => self.make_title(body),
            "set_color" => Served::Now(needed("color").and_then(|color| self.set_color(color))),
            "register_repo_root" => {
                Served::Now(needed("directory").and_then(|dir| self.register_root(dir, body)))
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
                Served::Later(match self.suggesting.clone() {
                    Some((command, env)) => files::suggested_by(command, env, self.cwd.clone(), query),
                    None => files::suggest(self.cwd.clone(), query, self.suggested),
                })
            }
            other => Served::Now(Err(format!("Unsupported control request subtype: {other}"))),
        }
    }

    fn interrupt(&self, cancels_queued: bool) -> Served {
        let waiting = self.queue.waiting();
        let cancelled: Vec<Uuid> =
            waiting.iter().copied().filter(|id| cancels_queued && self.queue.cancel(*id)).collect();
        let still: Vec<Uuid> = waiting.into_iter().filter(|id| !cancelled.contains(id)).collect();
        Served::Interrupt(match cancels_queued {
            true => json!({"still_queued": still, "cancelled": cancelled}),
            false => json!({"still_queued": still}),
        })
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
        self.keep_guards();
        Ok(mode)
    }

    /// Lets the tools of a server be asked about where everything else runs without asking, or no more.
    fn guard_server(&self, server: &str, mode: &Value) -> Result<Value, String> {
        let mut guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        match mode {
            Value::Null => _ = guarded.remove(server),
            // Nobody else decides here than whoever is asked.
            Value::String(mode) if mode == "default" || mode == "auto" => {
                if guarded.len() >= SERVERS_GUARDED_MAX {
                    return Err(format!("at most {SERVERS_GUARDED_MAX} servers have a mode of their own"));
                }
                guarded.insert(server.to_owned());
            }
            other => return Err(format!("mode is {other}: only \"default\", \"auto\" and null tighten")),
        }
        drop(guarded);
        self.keep_guards();
        Ok(match self.servers.all().iter().any(|known| known.name() == server) {
            true => json!({}),
            false => json!({"warning": format!("No MCP server named '{server}' is known")}),
        })
    }

    /// The rules for servers with a mode of their own hold while the session's mode would ask nothing.
    pub fn keep_guards(&self) {
        let guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = self.permissions.mode() == Mode::BypassPermissions;
        let wanted = guarded.iter().filter(|_| is_open);
        let rules = wanted.filter_map(|server| format!("{}*", served_name(server, "")).parse::<Rule>().ok());
        let change = Change::ReplaceRules(Behavior::Ask, rules.collect());
        // Of their own destination, so that nobody else's rules are replaced. There are few of them.
        let _ = self.permissions.apply(&Update { change, destination: Destination::CliArg });
    }

    pub(super) fn is_busy(&self) -> bool {
        let is_at_work = !matches!(self.status.borrow().phase, Phase::Initial | Phase::Done);
        is_at_work || !self.queue.waiting().is_empty()
    }

    /// Writes one of the few settings that a client may write into a file.
    fn update_settings(&self, body: &Value) -> Result<Value, String> {
        let home = self.home.as_ref().ok_or("there are no settings files in this session")?;
        let to = match body.get("source").and_then(Value::as_str) {
            Some("localSettings") => (Destination::LocalSettings, "outputStyle"),
            Some("userSettings") => (Destination::UserSettings, "effortLevel"),
            _ => return Err("update_settings: source is neither localSettings nor userSettings".to_owned()),
        };
        let settings = body.get("settings").and_then(Value::as_object).ok_or("settings is no object")?;
        for (name, value) in settings {
            let Some(text) = value.as_str().filter(|_| name == to.1) else {
                return Err(format!("update_settings: only {} can be written there, and only a text", to.1));
            };
            if name == "effortLevel" && text.parse::<Effort>().is_err() {
                return Err(format!("update_settings: there is no effort '{text}'"));
            }
            // It is one for this session alone.
            if name == "effortLevel" && text == Effort::Max.as_str() {
                continue;
            }
            home.write(to.0, name, value)?;
        }
        Ok(json!({}))
    }

    /// Calls a tool of a server outside of the client, without a model.
    fn call_tool(&self, tool: &str, body: &Value) -> BoxFuture<'static, Result<Value, String>> {
        let found = self.servers.all().into_iter().find_map(|server| {
            let own = tool.strip_prefix(&served_name(server.name(), ""))?.to_owned();
            Some((server, own))
        });
        let arguments = body.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let checks = body.get("check_permissions").is_some_and(|checks| checks != &Value::Bool(false));
        let (tool, caller) = (tool.to_owned(), Caller::alone("mcp_call"));
        async move {
            let (server, own) = found.ok_or_else(|| format!("MCP server not connected: {tool}"))?;
            if matches!(server.config().reach, Reach::Wire(_)) {
                return Err(format!("{tool} is a tool of the client's own: call it there"));
            }
            if checks {
                return Err("The tool did not run: check_permissions is not supported here".to_owned());
            }
            let output = server.call(&own, arguments, &caller).await?;
            let text = || json!([{"type": "text", "text": output.words()}]);
            let content = output.detail.clone().filter(Value::is_array).unwrap_or_else(text);
            Ok(json!({"content": content, "isError": output.is_error}))
        }
        .boxed()
    }

    fn set_thinking(&self, body: &Value) -> Result<Value, String> {
        match body.get("max_thinking_tokens") {
            None => {}
            Some(Value::Null) => self.dials.set_thinking(None),
            Some(tokens) => {
                let tokens = tokens.as_u64().and_then(|tokens| u32::try_from(tokens).ok());
                let tokens = tokens.ok_or_else(|| "max_thinking_tokens is no whole number".to_owned())?;
                self.dials.set_thinking(Some(Thinking::up_to(tokens)));
            }
        }
        let display = match body.get("thinking_display") {
            None => return Ok(json!({})),
            Some(Value::Null) => None,
            Some(Value::String(display)) if display == "summarized" => Some(ThinkingDisplay::Summarized),
            Some(Value::String(display)) if display == "omitted" => Some(ThinkingDisplay::Omitted),
            Some(other) => return Err(format!("thinking_display is {other}: \"summarized\" or \"omitted\"")),
        };
        self.dials.set_thinking_display(display);
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

    /// Settings for the rest of the session. Those that cannot be changed any more are named, and then none is.
    fn apply_settings(&self, settings: &Value) -> Result<Value, String> {
        let settings = settings.as_object().ok_or("settings is no object")?;
        let mut updates = Vec::new();
        let mut effort = None;
        for (name, value) in settings {
            match (name.as_str(), value) {
                ("model", Value::String(_) | Value::Null) => {}
                ("effortLevel", Value::String(level)) => {
                    let level = level.parse::<Effort>();
                    effort = Some(Some(level.map_err(|error| format!("effortLevel: {error}"))?));
                }
                ("effortLevel", Value::Null) => effort = Some(None),
                ("permissions", Value::Null) => updates.extend(self.flag_rules_gone()),
                ("permissions", value) => {
                    // All that such a request said of them before is replaced.
                    let new = permission_updates(value)?;
                    updates.extend(self.flag_rules_gone().into_iter().chain(new));
                }
                (_, Value::Null) => {}
                ("model" | "effortLevel", _) => return Err(format!("{name} is no text")),
                (other, _) => return Err(format!("{other} cannot be changed while a session runs")),
            }
        }
        let sets_bypass = |update: &Update| update.change == Change::SetMode(Mode::BypassPermissions);
        if updates.iter().any(sets_bypass) {
            self.set_mode(Mode::BypassPermissions.name())?;
        }
        if let Some(model) = settings.get("model") {
            let model = model.as_str().filter(|model| !model.is_empty() && *model != "default");
            self.dials.set_model(model).map_err(|error| error.to_string())?;
        }
        if let Some(effort) = effort {
            self.dials.set_effort(effort);
        }
        for update in updates {
            self.permissions.apply(&update).map_err(|error| error.to_string())?;
            let mut rules = self.flag_rules.lock().unwrap_or_else(PoisonError::into_inner);
            match update.change {
                Change::RemoveRules(..) => rules.clear(),
                Change::AddRules(behavior, added) => rules.push((behavior, added)),
                _ => {}
            }
        }
        Ok(json!({}))
    }

    /// What such requests said of permissions before, they say no more. What others added stays.
    fn flag_rules_gone(&self) -> Vec<Update> {
        let rules = self.flag_rules.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |(behavior, rules): &(Behavior, Vec<Rule>)| {
            Update::session(Change::RemoveRules(*behavior, rules.clone()))
        };
        rules.iter().map(gone).collect()
    }
}

const NO_CHECKPOINT: &str = "No file checkpoint found for this message.";

fn told(rewound: &Rewound, dry_run: bool) -> Value {
    let mut told = json!({"canRewind": true});
    let left: Vec<String> = rewound
        .files
        .iter()
        .filter_map(|file| file.left.as_ref().map(|why| format!("{} {why}", file.path.display())))
        .collect();
    if !left.is_empty() {
        told["left"] = json!(left);
    }
    if !dry_run {
        return told;
    }
    let files: Vec<String> =
        rewound.files.iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
    let sum = |of: fn(&pelton::file_history::RewoundFile) -> u64| rewound.files.iter().map(of).sum::<u64>();
    told["filesChanged"] = json!(files);
    told["insertions"] = json!(sum(|file| file.insertions));
    told["deletions"] = json!(sum(|file| file.deletions));
    let mut uncovered: Vec<String> =
        rewound.uncovered.iter().map(|(path, why)| format!("{} ({why})", path.display())).collect();
    if rewound.uncovered_more > 0 {
        uncovered.push(format!("{} more", rewound.uncovered_more));
    }
    if !uncovered.is_empty() {
        told["notCovered"] = json!(uncovered);
    }
    told
}

/// What settings say of permissions, as changes. Something of another kind than it has to be is a mistake in all of it.
fn permission_updates(permissions: &Value) -> Result<Vec<Update>, String> {
    let permissions = permissions.as_object().ok_or("permissions is no object")?;
    let texts = |name: &str| -> Result<Option<Vec<&str>>, String> {
        let Some(value) = permissions.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        let list = value.as_array().ok_or_else(|| format!("permissions.{name} is no list"))?;
        let texts = list
            .iter()
            .map(|text| text.as_str().ok_or_else(|| format!("permissions.{name}: {text} is no text")));
        texts.collect::<Result<_, _>>().map(Some)
    };
    let mut updates = Vec::new();
    for (name, behavior) in [("allow", Behavior::Allow), ("ask", Behavior::Ask), ("deny", Behavior::Deny)] {
        let Some(rules) = texts(name)? else { continue };
        let rules = rules.into_iter().map(|rule| rule.parse::<Rule>().map_err(|error| error.to_string()));
        updates.push(Update::session(Change::AddRules(behavior, rules.collect::<Result<_, _>>()?)));
    }
    match permissions.get("defaultMode") {
        None | Some(Value::Null) => {}
        Some(mode) => {
            let named = mode.as_str().and_then(Mode::from_name);
            let mode = named.ok_or_else(|| format!("there is no permission mode {mode}"))?;
            updates.push(Update::session(Change::SetMode(mode)));
        }
    }
    if let Some(directories) = texts("additionalDirectories")? {
        let directories = directories.into_iter().map(PathBuf::from).collect();
        updates.push(Update::session(Change::AddDirectories(directories)));
    }
    Ok(updates)
}
