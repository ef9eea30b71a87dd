//! An engine is put together, or refused with the reason.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pelton_model::{Ask, Prefix, Speed, TaskBudget, catalogue};

use super::children::Roster;
use super::informed::BesideRecord;
use super::joining::Joins;
use super::kin::Kin;
use super::late::call_in;
use super::models::{Panel, fallbacks};
use super::opening::{Begun, ToTell};
use super::{Engine, gather};
use crate::file_history::FileHistory;
use crate::gauge::Gauge;
use crate::hooks::HookEvent;
use crate::interrupt::Interrupter;
use crate::options::{LateAnswer, Options};
use crate::queue::Queue;
use crate::sandbox::{Sandbox, Start};
use crate::session::Session;
use crate::skills::Skills;
use crate::status::Board;
use crate::tools::agent::{self, AgentTool, Startable};
use crate::tools::background::Background;
use crate::tools::builtin::todo::Todos;
use crate::tools::builtin::{ask_user, plan, tasks, web_search};
use crate::tools::offer::Offer;
use crate::tools::structured::{self, BadSchema, StructuredOutput};
use crate::tools::{Tool, tool_search};
use crate::turn::Bystander;
use crate::turn::live::FileNews;

/// The engine cannot start.
///
/// ```
/// use pelton::{Engine, Options, StartError};
/// use pelton_model::{Auth, Endpoint, Secret};
///
/// let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// let refused = Engine::new(Options::new("/no/such/directory", endpoint));
/// assert!(matches!(refused, Err(StartError::Directory { .. })));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A working directory cannot be used.
    #[error("cannot work in {path}: {reason}", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The schema of the structured output cannot be used.
    #[error(transparent)]
    Schema(#[from] BadSchema),
    /// The answer must fit a schema, and a rule denies the tool it would come by.
    #[error(
        "a rule denies StructuredOutput, by which an answer in the form of a JSON schema comes: take the rule or the schema away"
    )]
    StructuredDenied,
    /// Commands must run in a box, and there can be none.
    #[error("the sandbox is required and not available here: {reason}")]
    Sandbox {
        /// Why not.
        reason: String,
    },
    /// A permission is about a call that was never made.
    #[error("there is no call {call} in this conversation, so a permission for it cannot be settled")]
    NoSuchCall {
        /// The call.
        call: String,
    },
    /// A cap in money needs a price.
    #[error(
        "the price of {model} is not known, so a budget cannot be kept: set it under `modelPricing` in the settings, or leave the budget out"
    )]
    NoPrice {
        /// The model.
        model: String,
    },
}

/// Tools that wait for a person.
const NEED_A_PERSON: [&str; 3] = [ask_user::NAME, plan::ENTER, plan::EXIT];

impl Engine {
    /// An engine for one conversation. Touches the disk only to see that its directories are there.
    pub fn new(mut options: Options) -> Result<Self, StartError> {
        for path in std::iter::once(&options.cwd).chain(&options.additional_dirs) {
            std::fs::read_dir(path)
                .map_err(|error| StartError::Directory { path: path.clone(), reason: error.to_string() })?;
        }
        let mut kin = Kin::first(&mut options);
        let mut notice = None;
        if let Some(wanted) = options.sandbox.take() {
            let required = wanted.required;
            match Sandbox::start(wanted, options.home.clone(), &options.temp_dir) {
                Start::Ready(sandbox, said) => (kin.sandbox, notice) = (Some(sandbox), said),
                Start::Unavailable(reason) if required => return Err(StartError::Sandbox { reason }),
                Start::Unavailable(reason) => {
                    notice = Some(format!(
                        "Sandbox: not available here, so commands run without one and need approval. ({reason})"
                    ));
                }
            }
        }
        let mut engine = Self::within(options, kin)?;
        engine.to_tell.notice = notice;
        Ok(engine)
    }

    /// An engine in its place among others.
    pub(super) fn within(mut options: Options, mut kin: Kin) -> Result<Self, StartError> {
        options.tools.retain(|tool| !options.rules.removes(tool.spec().name));
        // What the session itself works as is no matter of its agents.
        let startable = match kin.agent {
            None => options.startable(),
            Some(_) => Startable::all(&options.agents),
        };
        if options.agents.is_empty() || !kin.may_have_children() {
            options.tools.retain(|tool| !agent::is_one(tool.as_ref()));
        } else if let Some(tool) = options.tools.iter_mut().find(|tool| agent::is_one(tool.as_ref())) {
            *tool = Arc::new(AgentTool::new(&startable));
        }
        if kin.agent.is_some() || !options.tools.iter().any(|tool| agent::is_one(tool.as_ref())) {
            // Agents wait for their own, so there is nobody they could write to.
            options.tools.retain(|tool| tool.spec().name != agent::SEND_MESSAGE);
        }
        let skills = Skills::new(
            options.skills.clone(),
            &options.plugins,
            options.project(),
            &options.additional_dirs,
        );
        let can_ask = options.questions.is_some() || kin.hooks.listens(HookEvent::PermissionRequest);
        if !can_ask || kin.agent.is_some() {
            // Nobody could ever answer; agents have a parent who can be asked to.
            options.tools.retain(|tool| !NEED_A_PERSON.contains(&tool.spec().name));
        }
        if options.tool_limits.web_searches_max == 0 {
            options.tools.retain(|tool| tool.spec().name != web_search::NAME);
        }
        let plans = options.plans_dir.clone();
        for bound in plan::of(&kin.permissions, options.plan_instructions.as_deref(), plans) {
            let same = |tool: &&mut Arc<dyn Tool>| tool.spec().name == bound.spec().name;
            if let Some(tool) = options.tools.iter_mut().find(same) {
                *tool = bound;
            }
        }
        let structured = match &options.json_schema {
            Some(_) if options.rules.removes(structured::NAME) => return Err(StartError::StructuredDenied),
            Some(schema) => Some(Arc::new(StructuredOutput::new(schema)?)),
            None => None,
        };
        options.tools.extend(structured.clone().map(|tool| tool as Arc<dyn Tool>));
        options.model = catalogue::resolve(&options.model);
        options.fallback_models = fallbacks(&options);
        options.limits.fallbacks_max = options.fallback_models.len() as u8;
        let mut models = std::iter::once(&options.model).chain(&options.fallback_models);
        if kin.spending.is_capped()
            && let Some(model) = models.find(|model| !kin.spending.knows(model))
        {
            return Err(StartError::NoPrice { model: model.clone() });
        }
        let max_tokens = options.max_tokens(&options.model);
        let mut question =
            Ask::new(options.model.clone(), max_tokens, Arc::new(Prefix::default()), Vec::new());
        (question.thinking, question.display) = (options.thinking, options.thinking_display);
        (question.effort, question.effort_max, question.cache) =
            (options.effort, options.effort_max, options.cache_for(&options.model));
        question.speed = if options.fast_mode { Speed::Fast } else { Speed::Standard };
        question.task_budget = options.task_budget.map(|total| TaskBudget { total, remaining: None });
        let session = Session::new(&options);
        if let Some(LateAnswer { call, .. }) = &options.late_answer
            && call_in(&session.history, call).is_none()
        {
            return Err(StartError::NoSuchCall { call: call.clone() });
        }
        if let (None, Some(sessions), Some(limits)) =
            (&kin.file_history, &options.sessions, &options.file_history)
        {
            let world = Arc::clone(&options.world);
            kin.file_history =
                Some(FileHistory::of_session(&sessions.config_dir, session.id, limits.clone(), world));
        }
        let interrupter = Interrupter::new(options.cancel.clone());
        let panel = Panel::of(&options, &kin.spending);
        let queue = queue_of(&session, &interrupter, &options);
        gather::bind_skills(&mut options.tools, &skills, &kin, session.id);
        let memory = gather::memory(&options, &kin.permissions);
        let cache = gather::cache_of(&options);
        if let Some(resumed) = &mut options.resume {
            // What it said is in the session now.
            resumed.conversation.entries = Vec::new();
            if kin.agent.is_none() {
                kin.spending.go_on_from(std::mem::take(&mut resumed.conversation.spent));
            }
        }
        let lost_agents = match &options.resume {
            Some(_) => session.kept.agents.clone(),
            None => Vec::new(),
        };
        let beside = BesideRecord::of(&kin, &session, &options);
        Ok(Self {
            structured,
            offer: offer(&mut options),
            arriving: None,
            question,
            tasks: tasks::Tasks::of(session.kept.tasks.clone()),
            todos: Todos::of(session.kept.todos.clone()),
            session,
            queue,
            cwd: Arc::new(Mutex::new(options.cwd.clone())),
            // A sub-agent is part of a session that has.
            begun: if kin.agent.is_some() { Begun::Whole } else { Begun::No },
            to_tell: ToTell { lost_agents, ..ToTell::default() },
            beside,
            bystander: Bystander::new(&kin.client, &kin.spending, &options.world),
            joins: Joins::of(skills.clone(), Arc::clone(&kin.hooks), &options.plugins),
            kin,
            prompt_id: None,
            interrupter,
            board: Board::new(&options.model),
            gauge: Gauge::default(),
            background: Background::default(),
            roster: Roster::default(),
            cache,
            memory,
            skills,
            file_news: FileNews::since(options.files.now()),
            has_gathered: false,
            plan_told: false,
            woken: 0,
            panel,
            options,
        })
    }
}

/// What the model is offered, and what can be called besides.
fn offer(options: &mut Options) -> Offer {
    let tools = std::mem::take(&mut options.tools);
    let is_sent = |tool: &Arc<dyn Tool>| options.todo_tools.sends(tool.spec().name, &options.model);
    let (sent, unsent) = tools.into_iter().partition(is_sent);
    let search = options.tool_search.tokens_max(options.room(&options.model).window_tokens);
    // Without the tool nothing could be found.
    let search = search.filter(|_| !options.rules.removes(tool_search::NAME));
    Offer::new(sent, unsent, std::mem::take(&mut options.servers), search)
}

/// The queue beside a session: it writes to the same file.
pub(super) fn queue_of(session: &Session, interrupter: &Interrupter, options: &Options) -> Queue {
    Queue::new(
        Arc::clone(&session.record),
        interrupter.clone(),
        Arc::clone(&options.world),
        options.cwd.clone(),
        options.resume.as_ref().map_or(&[], |resumed| &resumed.conversation.queued),
    )
}
