//! What an engine is told at its start: complete, resolved, and never changed afterwards.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pelton_model::catalogue::{self, Prices};
use pelton_model::{
    CacheLife, Effort, Endpoint, HttpOptions, HttpTransport, RealWorld, RetryPolicy, Thinking,
    ThinkingDisplay, Transport, World,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::command::Command;
use crate::compact::{CompactOptions, Room};
use crate::context::{MemorySources, OutputStyle, SystemPrompt};
use crate::file_history::FileHistoryLimits;
use crate::history::SnipReplay;
use crate::hooks::{HookConfig, HttpHookTerms, Problem, Source};
use crate::host::Host;
use crate::limits::{
    AgentLimits, OUTPUT_TOKENS_UNKNOWN_MODEL, TOOL_CALLS_RUNNING_MAX, ToolLimits, WINDOW_TOKENS_UNKNOWN_MODEL,
};
use crate::model_choice::ModelChoice;
use crate::permission::{Answer, Keeper, Mode, Questions, RuleSet};
use crate::plugins::{Plugin, PluginError};
use crate::reload::SettingsWatch;
use crate::sandbox::SandboxOptions;
use crate::secrets::Secrets;
use crate::skills::SkillSources;
use crate::tools::agent::{AgentDefinition, Startable, built_in};
use crate::tools::ahead::Speculation;
use crate::tools::file_memory::FileMemory;
use crate::tools::schedule::Siblings;
use crate::tools::{ServerMaker, TodoTools, Tool, ToolSearch, ToolServer, builtin};
use crate::transcript::{Disk, Durability, Loaded, RealDisk};
use crate::turn::Limits;

/// Everything an [`Engine`](crate::Engine) needs to know. Nothing is taken from the process: the environment, the
/// directory and the clock arrive here.
///
/// ```
/// use pelton::Options;
/// use pelton::permission::Mode;
/// use pelton_model::{Auth, Endpoint, Secret};
///
/// let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// let mut options = Options::new("/srv/project", endpoint);
/// options.model = "opus".to_owned();
/// options.mode = Mode::AcceptEdits;
/// options.rules.allow.push("Bash(cargo test:*)".parse()?);
/// options.limits.turns_max = Some(20);
/// options.max_budget_usd = Some(2.50);
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where the session works; absolute.
    pub cwd: PathBuf,
    /// Where the project's own configuration is, if that is not where the session works; absolute. Its skills come from there,
    /// and hooks know it as the project.
    pub project_dir: Option<PathBuf>,
    /// Further directories it may work in; absolute.
    pub additional_dirs: Vec<PathBuf>,
    /// Who is asked, and who pays.
    pub endpoint: Endpoint,
    /// Where the credentials came from, in the words of the protocol.
    pub api_key_source: &'static str,
    /// The model: an id, or an alias such as `sonnet`.
    pub model: String,
    /// Somebody named it for this run: the agent that the session [works as](Self::work_as) does not choose another.
    pub model_is_named: bool,
    /// The model that is asked instead while planning: an id or an alias.
    pub planner: Option<String>,
    /// Models to ask when that one does not answer, in this order, for the rest of a submission. At most
    /// [`FALLBACK_MODELS_MAX`](crate::limits::FALLBACK_MODELS_MAX) count.
    pub fallback_models: Vec<String>,
    /// How long the server keeps what it was sent.
    pub cache: CacheLife,
    /// The same of what sub-agents send.
    pub agents_cache: CacheLife,
    /// Nothing is kept for models whose id has one of these in it, in small letters.
    pub uncached_models: Vec<String>,
    /// Which models may be asked at all, whoever names them. The session starts with [`model`](Self::model) all the same.
    pub model_choice: ModelChoice,
    /// B1: the most the session may spend, in US dollars, sub-agents and side calls included.
    pub max_budget_usd: Option<f64>,
    /// What of that the process has spent in sessions before this one. The cap is about all that it does, then: another conversation
    /// (`/clear`) does not begin it anew.
    pub budget_spent_usd: Option<f64>,
    /// The cap is never passed, not even by calls in flight: the most a call can cost is set aside before it is sent,
    /// and its answer is kept as short as what is left affords. Calls may have to wait for each other, and an answer
    /// that broke off counts as if it had been written to its end.
    pub strict_budget: bool,
    /// Prices of models the catalogue does not know, or knows wrongly.
    pub prices: Vec<(String, Prices)>,
    /// The context window of the model that the session begins with, whoever chose that, if it is not the one the catalogue says.
    pub window_tokens: Option<u64>,
    /// From where on it is made smaller, and how.
    pub compact: CompactOptions,
    /// The most tokens an answer may have; the model's own default if absent.
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks before it answers.
    pub thinking: Thinking,
    /// What is shown of that.
    pub thinking_display: ThinkingDisplay,
    /// How hard it tries; the model's own default if absent.
    pub effort: Option<Effort>,
    /// No skill, agent or client lets it try harder than this.
    pub effort_max: Option<Effort>,
    /// Whether fast answers are asked for, from models that have them and at their price.
    pub fast_mode: bool,
    /// B3: the tokens the whole task may take, for the model to know. Not a hard limit.
    pub task_budget: Option<u64>,
    /// What the model is told about itself.
    pub system_prompt: SystemPrompt,
    /// What every sub-agent is told besides its own prompt, but for forks: they are told what their caller is.
    pub agents_appended: Option<String>,
    /// The files that tell it what the project and its user want; none if absent.
    pub memory: Option<MemorySources>,
    /// The skills and custom commands that it and its user may call; none if absent.
    pub skills: Option<SkillSources>,
    /// The ways to answer that may be chosen, besides Pelton's own; see [`Options::choose_style`].
    pub(crate) styles: Vec<OutputStyle>,
    /// The plugins there are; see [`Options::add_plugin`].
    pub(crate) plugins: Vec<Arc<Plugin>>,
    /// Plugins that were wanted and cannot be used.
    pub plugin_errors: Vec<PluginError>,
    /// Whether it is told the state of the git repository around its directory: what differs, and the newest commits. It is
    /// read without running git.
    pub git_state: bool,
    /// What it may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools by names the model may call them by besides: a call of the first name is one of the second.
    pub tool_aliases: BTreeMap<String, String>,
    /// What the model is told to do in plan mode, in the place of Pelton's own words; the rules of that mode stay.
    pub plan_instructions: Option<String>,
    /// Where plans are kept that somebody is asked to approve; beside the session's other files, if absent.
    pub plans_dir: Option<PathBuf>,
    /// Whether files that ignore files name are suggested to clients that ask for names, too.
    pub suggest_ignored: bool,
    /// E4: who serves further tools; the model calls them `mcp__<server>__<tool>`.
    pub servers: Vec<Arc<dyn ToolServer>>,
    /// When those are told of by name only, and searched for by a tool.
    pub tool_search: ToolSearch,
    /// Which tools for things to do the model is told of.
    pub todo_tools: TodoTools,
    /// E3: what a prompt may call by `/name`. Of two with one name the first is meant.
    pub commands: Vec<Arc<dyn Command>>,
    /// Reaches servers that agents bring themselves; without it they do without.
    pub server_maker: Option<Arc<dyn ServerMaker>>,
    /// Whether the texts that come with the program can be called (`/init`, `/review`, `/security-review`).
    pub bundled_skills: bool,
    /// E5: the agents that may be started. Without any, there is no tool to start them with.
    pub agents: Vec<AgentDefinition>,
    /// The one of them the session itself works as; see [`Options::work_as`].
    pub(crate) works_as: Option<String>,
    /// Bounds on them.
    pub agent_limits: AgentLimits,
    /// How worktrees are made for those that want one of their own.
    pub worktrees: WorktreeOptions,
    /// The model of all of them, whatever they or their callers say.
    pub agent_model: Option<String>,
    /// Z1: what the calls of each turn came to is put into a line by the [small model](Self::small_model). Costs a call
    /// for each turn with calls; nothing waits for it.
    pub tool_use_summaries: bool,
    /// What a sub-agent is doing is put into a line by the [small model](Self::small_model), every half minute in which it does
    /// something. Costs a call for each line; nothing waits for it.
    pub agent_progress_summaries: bool,
    /// The small, fast model for what is asked beside the conversation, such as what a page says. Empty for none.
    pub small_model: String,
    /// The JSON schema the answer must fit: it is then brought by a call of the StructuredOutput tool.
    pub json_schema: Option<Value>,
    /// How many read-only calls run at once.
    pub tool_calls_running_max: usize,
    /// Z2: how much is done ahead of the model; nothing if absent. Needs a [`World`] whose clock is that of the files.
    pub speculation: Option<Speculation>,
    /// Whether a call that fails cancels others of the same answer.
    pub siblings: Siblings,
    /// Who keeps what answers change for later sessions; nobody if absent.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// How much runs without asking.
    pub mode: Mode,
    /// The box commands run in; none if absent.
    pub sandbox: Option<SandboxOptions>,
    /// What is allowed, asked for and denied by name.
    pub rules: RuleSet,
    /// E6: who decides about calls that these neither allow nor deny; such calls are refused if there is nobody.
    pub questions: Option<Questions>,
    /// How long they, and questions of servers, wait for an answer; then it is no. For ever, if it is not said.
    pub questions_time: Option<Duration>,
    /// Other people's programs, called around tools and at the end.
    pub hooks: HookConfig,
    /// What those of them that are addresses on the web must keep to, wherever they come from.
    pub http_hooks: HttpHookTerms,
    /// Who says when settings have changed; nobody if absent: then those of the start hold to the end.
    pub settings_watch: Option<Arc<dyn SettingsWatch>>,
    /// Why the project is set up before the session begins, if it is: hooks of the event `Setup` are called.
    pub setup: Option<Setup>,
    /// A hook may put the only call of an answer off: the run ends, and the call is judged anew when the session is
    /// resumed. For runs of one prompt; elsewhere such a hook means that somebody should be asked.
    pub may_defer: bool,
    /// Files and resources that a prompt mentions (`@name`) are attached to it.
    pub attaches_mentioned: bool,
    /// What is said in front of the first prompt of a new session, as if it had been typed there.
    pub initial_prompt: Option<String>,
    /// Hooks of the session's start may say something in front of the first prompt (`initialUserMessage`). Not at a terminal:
    /// there people say what they want themselves.
    pub heeds_initial_message: bool,
    /// Hooks that have a say in what is shown of an answer (`MessageDisplay`) are told each line as it is complete, because
    /// answers are shown as they come; otherwise the whole of it at its end.
    pub displays_by_line: bool,
    /// A line for the shell that says which files are suggested to clients, in the place of our own look at them.
    pub file_suggestion: Option<String>,
    /// Bounds of a submission.
    pub limits: Limits,
    /// Bounds of what tools read, print and wait for.
    pub tool_limits: ToolLimits,
    /// When and how often a failed request is repeated.
    pub retry: RetryPolicy,
    /// What is written down nowhere: learnt from the fields here and from who pays.
    pub(crate) secrets: Secrets,
    /// How requests travel. Over TLS only those are trusted whom [`HttpOptions::roots`] names, and by default that is
    /// nobody.
    pub transport: Arc<dyn Transport>,
    /// Time and chance.
    pub world: Arc<dyn World>,
    /// What tools may ask of the program around the session.
    pub host: Host,
    /// E25: ends the running submission and every later one, for good.
    pub cancel: CancellationToken,
    /// E10: which files count as read from the start. It is shared: what this session reads is added.
    pub files: Arc<FileMemory>,
    /// The environment of child processes.
    pub env: Vec<(OsString, OsString)>,
    /// Where output too large for an answer goes when the session is not recorded.
    pub temp_dir: PathBuf,
    /// The user's home, for `~` in rules.
    pub home: Option<PathBuf>,
    /// The session's id; a new one if absent.
    pub session_id: Option<Uuid>,
    /// A conversation to go on with, and the file it is in.
    pub resume: Option<Resumed>,
    /// That is a copy, made for this session: hooks of its start hear of a fork.
    pub is_fork: bool,
    /// E27: who says what the snip boundaries of that conversation took away.
    pub snip_replay: Option<Arc<dyn SnipReplay>>,
    /// E26: a permission that was asked for before the conversation was left, and answered since.
    pub late_answer: Option<LateAnswer>,
    /// Where the session is recorded; nowhere if absent.
    pub sessions: Option<Sessions>,
    /// How much is kept of files that are changed, so that it can be undone; nothing if absent. Only what is recorded can be.
    pub file_history: Option<FileHistoryLimits>,
    /// What it is recorded on.
    pub disk: Arc<dyn Disk>,
    /// Which front end runs it, as transcripts say it.
    pub entrypoint: String,
    /// Whose settings and instructions these options were put together from, in the words of the protocol. For [`Event::Init`]
    /// to tell; nothing is read here.
    ///
    /// [`Event::Init`]: crate::Event::Init
    pub setting_sources: Vec<&'static str>,
}

/// How worktrees are made for agents that want one of their own.
///
/// ```
/// use pelton::{WorktreeBase, WorktreeOptions};
///
/// let mut worktrees = WorktreeOptions::default(); // `Options::worktrees` is where it goes
/// worktrees.base = WorktreeBase::Head;
/// worktrees.linked_directories.push("node_modules".to_owned());
/// assert_eq!(WorktreeBase::from_name("fresh"), Some(WorktreeBase::Fresh));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorktreeOptions {
    /// Where they begin.
    pub base: WorktreeBase,
    /// Directories of the repository that are the same in all of them: linked, not copied.
    pub linked_directories: Vec<String>,
    /// The only directories that are checked out; all if there is none.
    pub sparse_paths: Vec<String>,
}

/// Where a worktree begins.
///
/// See [`WorktreeOptions`].
///
/// ```
/// assert_eq!(pelton::WorktreeBase::from_name("head"), Some(pelton::WorktreeBase::Head));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorktreeBase {
    /// At what the remote repository takes for its main branch, as far as it is known here; without one, as `Head`.
    #[default]
    Fresh,
    /// At what is checked out here.
    Head,
}

impl WorktreeBase {
    /// As settings write it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "fresh" => Some(Self::Fresh),
            "head" => Some(Self::Head),
            _ => None,
        }
    }
}

/// Why a project is set up.
///
/// ```
/// use pelton::{Options, Setup};
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// let mut options = Options::new("/srv/project", endpoint);
/// options.setup = Some(Setup::Init); // hooks of the event `Setup` read "init"
/// assert_eq!(Setup::Maintenance.name(), "maintenance");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setup {
    /// It is new here.
    Init,
    /// It is looked after.
    Maintenance,
}

impl Setup {
    /// The name hooks read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Maintenance => "maintenance",
        }
    }
}

/// The agent that a session worked as is not there any more: it goes on as if there had been none.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Options, Resumed, transcript};
///
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// std::fs::write(&file, r#"{"type":"agent-setting","agentSetting":"gardener"}"#)?;
/// let mut options = Options::new(dir.path(), endpoint);
/// options.resume = Some(Resumed { conversation: transcript::read(&file)?, file });
/// assert!(options.work_as_before().is_err_and(|gone| gone.to_string().contains("gardener")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this session worked as the agent '{0}', which this run does not have: it goes on with the usual prompt and tools, \
     without what the agent was held to (--agent names another)"
)]
pub struct AgentGone(pub String);

/// A conversation to go on with.
///
/// ```
/// use pelton::{Resumed, transcript};
///
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// # std::fs::write(&file, r#"{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","message":{"role":"user","content":"Hi"}}"#)?;
/// let conversation = transcript::read(&file)?;
/// let resumed = Resumed { file, conversation }; // `Options::resume` is where it goes
/// assert_eq!(resumed.conversation.entries.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Resumed {
    /// Its file: new lines are added there.
    pub file: PathBuf,
    /// What it says.
    pub conversation: Loaded,
}

/// A decision about a call that nobody waits for any more. It is settled by the first submission: the call runs, if that
/// is allowed and it has certainly not run before, and its result takes its place in the conversation.
///
/// ```
/// use pelton::LateAnswer;
/// use pelton::permission::Answer;
///
/// let late = LateAnswer { call: "toolu_01".to_owned(), answer: Answer::allow() };
/// # assert_eq!(late.call, "toolu_01");
/// ```
#[derive(Debug, Clone)]
pub struct LateAnswer {
    /// The call.
    pub call: String,
    /// What becomes of it.
    pub answer: Answer,
}

/// Where and how sessions are recorded.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text, tool};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).reply([text("Five.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::transcript::{self, Durability};
/// use pelton::{Engine, Options, Prompt, Resumed, Sessions};
///
/// let mut options = Options::new(dir.path(), endpoint);
/// options.sessions = Some(Sessions { config_dir: dir.path().join("config"), durability: Durability::Fast });
/// let mut engine = Engine::new(options.clone())?;
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// let file = engine.transcript_file().ok_or("it is recorded")?;
/// drop(engine);
///
/// // Another process, another day:
/// let conversation = transcript::read(&file)?;
/// options.resume = Some(Resumed { file, conversation });
/// let mut engine = Engine::new(options)?;
/// engine.submit(Prompt::text("And one more?")?).for_each(async |_| {}).await;
/// assert!(engine.history().len() > 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Sessions {
    /// The configuration directory that holds `projects/`.
    pub config_dir: PathBuf,
    /// How much a crash of the machine may cost.
    pub durability: Durability,
}

impl Options {
    /// Lets the session itself work as one of its [agents](Self::agents): with its words, what it says first, its tools, its hooks,
    /// its model unless one [was named](Self::model_is_named) or it may not be asked, and how hard it tries.
    /// Tells whether there is an agent of that name.
    pub fn work_as(&mut self, name: &str) -> bool {
        let Some(agent) = self.agents.iter().find(|agent| agent.name == name) else { return false };
        self.system_prompt.custom = Some(agent.whole_prompt());
        self.initial_prompt.clone_from(&agent.initial_prompt);
        if let Some(hooks) = &agent.hooks {
            // What is wrong with them was said when its file was looked through.
            self.hooks.add_settings(hooks, &Source::Agent);
        }
        let its_own = agent.model.as_deref().filter(|model| !self.model_is_named && *model != "inherit");
        let its_own = its_own.map(catalogue::resolve).filter(|model| self.model_choice.allows(model));
        if let Some(model) = its_own.filter(|model| *model != self.model) {
            (self.model, self.planner) = (model, None);
        }
        self.works_as = Some(agent.name.clone());
        self.tools.retain(|tool| agent.has(tool.spec().name));
        self.effort = agent.effort.or(self.effort);
        self.limits.turns_max = self.limits.turns_max.or(agent.max_turns);
        true
    }

    /// The agents that the model may start: all, unless the session works as an agent that says which.
    pub(crate) fn startable(&self) -> Startable {
        let works_as = self.works_as.as_ref();
        let own = works_as.and_then(|name| self.agents.iter().find(|agent| agent.name == *name));
        match own.and_then(AgentDefinition::starts_only) {
            Some(names) => Startable::only(&self.agents, &names),
            None => Startable::all(&self.agents),
        }
    }

    /// Lets the session that goes on work as the agent that its record names, if it names one.
    pub fn work_as_before(&mut self) -> Result<(), AgentGone> {
        let before = self.resume.as_ref().and_then(|resumed| resumed.conversation.works_as.clone());
        match before {
            Some(agent) if !self.work_as(&agent) => Err(AgentGone(agent)),
            _ => Ok(()),
        }
    }

    /// How long the server keeps what this model is sent.
    pub(crate) fn cache_for(&self, model: &str) -> CacheLife {
        let model = model.to_ascii_lowercase();
        match self.uncached_models.iter().any(|part| model.contains(part.as_str())) {
            true => CacheLife::Nothing,
            false => self.cache,
        }
    }

    /// The ways to answer that may be chosen, Pelton's own first.
    pub fn style_names(&self) -> Vec<&str> {
        std::iter::once(OutputStyle::DEFAULT)
            .chain(self.styles.iter().map(|style| style.name.as_str()))
            .collect()
    }

    /// Where the project's own configuration is.
    pub(crate) fn project(&self) -> &Path {
        self.project_dir.as_deref().unwrap_or(&self.cwd)
    }

    /// The name of the way it answers.
    pub fn style_name(&self) -> &str {
        self.system_prompt.style.as_ref().map_or(OutputStyle::DEFAULT, |style| &style.name)
    }

    /// Adds ways to answer. One with the name of another takes its place.
    pub fn add_styles(&mut self, styles: Vec<OutputStyle>) {
        self.styles.retain(|known| !styles.iter().any(|style| style.is_called(&known.name)));
        self.styles.extend(styles);
    }

    /// Chooses how it answers, by a name. Tells whether there is such a way; if not, nothing changes.
    pub fn choose_style(&mut self, name: &str) -> bool {
        if name.trim().eq_ignore_ascii_case(OutputStyle::DEFAULT) {
            self.system_prompt.style = None;
            return true;
        }
        let Some(style) = self.styles.iter().find(|style| style.is_called(name)) else { return false };
        self.system_prompt.style = Some(style.clone());
        true
    }

    /// The model asked when nobody names one.
    pub const DEFAULT_MODEL: &'static str = "claude-sonnet-5-5";

    /// The small model asked when nobody names one.
    pub const DEFAULT_SMALL_MODEL: &'static str = "haiku";

    /// A session in `cwd` that asks `endpoint`, with the built-in tools, the machine's clock, plain HTTP(S) and no
    /// record on disk. Change the fields that should differ.
    pub fn new(cwd: impl Into<PathBuf>, endpoint: Endpoint) -> Self {
        Self {
            cwd: cwd.into(),
            project_dir: None,
            additional_dirs: Vec::new(),
            endpoint,
            api_key_source: "none",
            model: Self::DEFAULT_MODEL.to_owned(),
            model_is_named: false,
            planner: None,
            fallback_models: Vec::new(),
            cache: CacheLife::default(),
            agents_cache: CacheLife::default(),
            uncached_models: Vec::new(),
            model_choice: ModelChoice::default(),
            max_budget_usd: None,
            budget_spent_usd: None,
            strict_budget: false,
            prices: Vec::new(),
            window_tokens: None,
            compact: CompactOptions::default(),
            max_output_tokens: None,
            thinking: Thinking::ModelDefault,
            thinking_display: ThinkingDisplay::Omitted,
            effort: None,
            effort_max: None,
            fast_mode: false,
            task_budget: None,
            system_prompt: SystemPrompt::default(),
            agents_appended: None,
            memory: None,
            git_state: false,
            skills: None,
            styles: OutputStyle::built_in(),
            plugins: Vec::new(),
            plugin_errors: Vec::new(),
            tools: builtin::all(),
            tool_aliases: BTreeMap::new(),
            plan_instructions: None,
            plans_dir: None,
            suggest_ignored: false,
            servers: Vec::new(),
            tool_search: ToolSearch::default(),
            todo_tools: TodoTools::default(),
            commands: Vec::new(),
            server_maker: None,
            bundled_skills: true,
            agents: built_in(),
            works_as: None,
            agent_limits: AgentLimits::default(),
            worktrees: WorktreeOptions::default(),
            agent_model: None,
            tool_use_summaries: false,
            agent_progress_summaries: false,
            small_model: Self::DEFAULT_SMALL_MODEL.to_owned(),
            json_schema: None,
            tool_calls_running_max: TOOL_CALLS_RUNNING_MAX,
            speculation: None,
            siblings: Siblings::default(),
            keeper: None,
            mode: Mode::Default,
            sandbox: None,
            rules: RuleSet::default(),
            questions: None,
            questions_time: None,
            hooks: HookConfig::default(),
            http_hooks: HttpHookTerms::default(),
            settings_watch: None,
            setup: None,
            may_defer: false,
            attaches_mentioned: true,
            initial_prompt: None,
            heeds_initial_message: true,
            displays_by_line: false,
            file_suggestion: None,
            limits: Limits::default(),
            tool_limits: ToolLimits::default(),
            retry: RetryPolicy::default(),
            secrets: Secrets::default(),
            transport: Arc::new(HttpTransport::new(HttpOptions::default())),
            world: Arc::new(RealWorld::new()),
            host: Host::default(),
            cancel: CancellationToken::new(),
            files: Arc::default(),
            env: Vec::new(),
            temp_dir: PathBuf::from("/tmp"),
            home: None,
            session_id: None,
            resume: None,
            is_fork: false,
            snip_replay: None,
            late_answer: None,
            sessions: None,
            file_history: None,
            disk: Arc::new(RealDisk),
            entrypoint: "sdk-rust".to_owned(),
            setting_sources: Vec::new(),
        }
    }

    /// The plugins that were added. See [`add_plugin`](Self::add_plugin).
    pub fn plugins(&self) -> impl Iterator<Item = &Plugin> {
        self.plugins.iter().map(Arc::as_ref)
    }

    /// Adds what a plugin brings: its skills and commands, its agents, its ways to answer, its hooks, and its programs for the shell. Its
    /// servers of tools are for the host to connect to. Tells what is wrong with its hooks. Blocks.
    ///
    /// ```
    /// use pelton::Options;
    /// use pelton::plugins::Plugin;
    /// # use pelton_model::{Auth, Endpoint, Secret};
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::create_dir_all(dir.path().join("kit/agents"))?;
    /// # std::fs::write(dir.path().join("kit/agents/a.md"), "---\nname: a\ndescription: b\n---\nYou are.")?;
    /// let mut options = Options::new("/srv/project", Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any"))));
    /// options.add_plugin(Plugin::read(&dir.path().join("kit"), "inline", dir.path()).unwrap());
    /// assert!(options.agents.iter().any(|agent| agent.name == "kit:a"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn add_plugin(&mut self, plugin: Plugin) -> Vec<Problem> {
        let source = plugin.as_source();
        let problems =
            plugin.hooks.iter().flat_map(|hooks| self.hooks.add_settings(hooks, &source)).collect();
        self.take_plugin(Arc::new(plugin));
        problems
    }

    /// Adds what a plugin brings, but for its hooks.
    pub(crate) fn take_plugin(&mut self, plugin: Arc<Plugin>) {
        self.agents.extend(plugin.agents());
        let styles = plugin.styles();
        if self.system_prompt.style.is_none() {
            self.system_prompt.style = styles.iter().find(|style| style.forced).cloned();
        }
        self.add_styles(styles);
        self.skills.get_or_insert_default();
        let path = self.env.iter_mut().find(|(name, _)| name == "PATH");
        if let (Some(programs), Some((_, path))) = (plugin.programs(), path) {
            let mut found_first = programs.into_os_string();
            found_first.push(":");
            found_first.push(&path);
            *path = found_first;
        }
        self.plugins.push(plugin);
    }

    /// What a model can hold, as far as the host lets it.
    pub(crate) fn room(&self, model: &str) -> Room {
        let known = catalogue::window(model, &self.endpoint.betas).unwrap_or(WINDOW_TOKENS_UNKNOWN_MODEL);
        // The host's figure is about the model it chose.
        let told = self.window_tokens.filter(|_| model == self.model);
        let window = told.unwrap_or(known);
        let window = self.compact.window_tokens.map_or(window, |most| window.min(most));
        Room::of(window, self.max_tokens(model))
    }

    /// The most tokens a model is asked for.
    pub(crate) fn max_tokens(&self, model: &str) -> u32 {
        let caps = catalogue::caps(model);
        let wanted = self
            .max_output_tokens
            .or(caps.map(|caps| caps.output_default))
            .unwrap_or(OUTPUT_TOKENS_UNKNOWN_MODEL);
        // The host's figure is about the model it chose: another may allow less.
        match caps.filter(|_| model != self.model) {
            Some(caps) => wanted.min(caps.output_max),
            None => wanted,
        }
    }
}
