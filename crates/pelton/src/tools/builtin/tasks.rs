//! TaskCreate, TaskGet, TaskList, TaskUpdate: what is to be done, task by task, with what waits for what.
//!
//! The list is part of the session: what calls did to it is in the conversation, and a session that goes on reads it there
//! ([`replay`]).

mod list; // the tasks themselves: pure

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(crate) use self::list::{Change, Status, Task, TaskList};
use super::todo;
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// Their names.
pub(crate) const NAMES: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

/// Which tools for things to do the model is told of. The others can be called all the same.
///
/// ```
/// # use pelton::Options;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// let mut options = Options::new("/srv/project", endpoint);
/// options.todo_tools = pelton::tools::TodoTools::Tasks;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TodoTools {
    /// The tasks, if the model is an older one; the newest need no list.
    #[default]
    ByModel,
    /// TaskCreate, TaskGet, TaskList and TaskUpdate.
    Tasks,
    /// TodoWrite.
    Todos,
    /// Whichever are among the tools.
    AsGiven,
}

impl TodoTools {
    /// Whether a tool is told of to a model.
    pub(crate) fn sends(self, tool: &str, model: &str) -> bool {
        let (is_task, is_todo) = (NAMES.contains(&tool), tool == todo::NAME);
        match self {
            _ if !is_task && !is_todo => true,
            Self::ByModel => is_task && !needs_no_list(model),
            Self::Tasks => is_task,
            Self::Todos => is_todo,
            Self::AsGiven => true,
        }
    }
}

/// Whether a model keeps track by itself: those of the fifth generation do, and whatever nobody knows is taken for new.
fn needs_no_list(model: &str) -> bool {
    let generation = model.split('-').find_map(|part| part.parse::<u32>().ok());
    generation.is_none_or(|generation| generation >= 5)
}

/// The tools, by name.
pub(super) fn tools() -> [Arc<dyn Tool>; 4] {
    [Verb::Create, Verb::Get, Verb::List, Verb::Update].map(|verb| Arc::new(TaskTool(verb)) as Arc<dyn Tool>)
}

/// The tasks of a session. All clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<TaskList>>);

/// Does again what a call did that succeeded; calls of other tools are passed over.
pub(crate) fn replay(tasks: &mut TaskList, tool: &str, input: &Value) {
    if let Some(verb) = Verb::of(tool)
        && let Ok(wish) = verb.parse(input)
    {
        let _ = wish.apply(tasks);
    }
}

/// A task that a call is about to make or to finish.
pub(crate) struct Pending {
    /// It is made; otherwise it is done.
    pub is_new: bool,
    /// What is known of it, by the names hooks know.
    pub fields: Map<String, Value>,
}

impl Tasks {
    /// What a call is about to do that others may object to. Nothing for calls of other tools.
    pub fn pending(&self, tool: &str, input: &Value) -> Option<Pending> {
        let tasks = self.lock();
        let (is_new, id, subject, description) = match Verb::of(tool)?.parse(input).ok()? {
            Wish::Create(made) => (true, tasks.next_id(), made.subject, made.description),
            Wish::Update(update) if update.status == Some(Status::Completed) => {
                let task = tasks.get(&update.task_id).filter(|task| task.status != Status::Completed)?;
                let Update { task_id, subject, description, .. } = *update;
                let subject = subject.unwrap_or_else(|| task.subject.clone());
                (false, task_id, subject, description.unwrap_or_else(|| task.description.clone()))
            }
            Wish::Update(_) | Wish::Get(_) | Wish::List(_) => return None,
        };
        let fields = [("task_id", id), ("task_subject", subject), ("task_description", description)];
        let fields = fields.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        Some(Pending { is_new, fields })
    }

    /// A list that stands already.
    pub fn of(tasks: TaskList) -> Self {
        Self(Arc::new(Mutex::new(tasks)))
    }

    fn lock(&self) -> MutexGuard<'_, TaskList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Create,
    Get,
    List,
    Update,
}

const CREATE: Spec<'static> = Spec {
    name: "TaskCreate",
    description: include_str!("tasks.md"),
    input_schema: r#"{"type":"object","properties":{"subject":{"type":"string"},"description":{"type":"string"},"activeForm":{"type":"string"},"metadata":{"type":"object"}},"required":["subject","description"]}"#,
};
const GET: Spec<'static> = Spec {
    name: "TaskGet",
    description: include_str!("task_get.md"),
    input_schema: r#"{"type":"object","properties":{"taskId":{"type":"string"}},"required":["taskId"]}"#,
};
const LIST: Spec<'static> = Spec {
    name: "TaskList",
    description: include_str!("task_list.md"),
    input_schema: r#"{"type":"object","properties":{}}"#,
};
const UPDATE: Spec<'static> = Spec {
    name: "TaskUpdate",
    description: include_str!("task_update.md"),
    input_schema: r#"{"type":"object","properties":{"taskId":{"type":"string"},"subject":{"type":"string"},"description":{"type":"string"},"activeForm":{"type":"string"},"status":{"enum":["pending","in_progress","completed","deleted"]},"addBlocks":{"type":"array","items":{"type":"string"}},"addBlockedBy":{"type":"array","items":{"type":"string"}},"owner":{"type":"string"},"metadata":{"type":"object"}},"required":["taskId"]}"#,
};

impl Verb {
    fn of(tool: &str) -> Option<Self> {
        [Self::Create, Self::Get, Self::List, Self::Update].into_iter().find(|verb| verb.spec().name == tool)
    }

    fn spec(self) -> Spec<'static> {
        match self {
            Self::Create => CREATE,
            Self::Get => GET,
            Self::List => LIST,
            Self::Update => UPDATE,
        }
    }

    fn parse(self, input: &Value) -> Result<Wish, InvalidInput> {
        let wish = match self {
            Self::Create => Wish::Create(parse_input(input)?),
            Self::Get => Wish::Get(parse_input(input)?),
            Self::List => Wish::List(parse_input(input)?),
            Self::Update => Wish::Update(Box::new(parse_input(input)?)),
        };
        match &wish {
            Wish::Create(Create { subject, .. }) if subject.trim().is_empty() => {
                Err(InvalidInput("`subject` is empty: say what is to be done".to_owned()))
            }
            _ => Ok(wish),
        }
    }
}

/// What a call wants.
enum Wish {
    Create(Create),
    Get(Get),
    List(List),
    Update(Box<Update>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Create {
    subject: String,
    description: String,
    #[serde(default)]
    active_form: Option<String>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Get {
    #[serde(deserialize_with = "id")]
    task_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Update {
    #[serde(deserialize_with = "id")]
    task_id: String,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    active_form: Option<String>,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default)]
    add_blocks: Option<Vec<String>>,
    #[serde(default)]
    add_blocked_by: Option<Vec<String>>,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

/// An id, also as a number or with the sign that is put before it.
fn id<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match Value::deserialize(from)? {
        Value::String(id) => Ok(id.trim().trim_start_matches('#').to_owned()),
        Value::Number(id) => Ok(id.to_string()),
        _ => Err(serde::de::Error::custom("expected the id of a task")),
    }
}

struct TaskTool(Verb);

impl Tool for TaskTool {
    fn spec(&self) -> Spec<'_> {
        self.0.spec()
    }

    fn safety(&self, _: &Value) -> Safety {
        match self.0 {
            Verb::Get | Verb::List => Safety::Shared,
            // Ids follow the order of asking.
            Verb::Create | Verb::Update => Safety::Alone,
        }
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        self.0.parse(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        let output = match self.0.parse(&input) {
            Ok(wish) => wish.apply(&mut cx.tasks.lock()),
            Err(InvalidInput(why)) => Output::unusable(why),
        };
        async move { output }.boxed()
    }
}

impl Wish {
    fn apply(self, tasks: &mut TaskList) -> Output {
        match self {
            Self::Create(Create { subject, description, active_form, metadata }) => {
                let made = tasks.create(subject, description, active_form, metadata.unwrap_or_default());
                match made {
                    Ok(task) => Output::text(format!("Task #{} created: {}", task.id, task.subject))
                        .with_detail(json!({"task": {"id": task.id, "subject": task.subject}})),
                    Err(why) => Output::error(why),
                }
            }
            Self::Get(Get { task_id }) => match tasks.get(&task_id) {
                Some(task) => Output::text(task.told()).with_detail(json!({"task": task})),
                None => Output::error(missing(&task_id)).with_detail(json!({"task": null})),
            },
            Self::List(List {}) => listed(tasks),
            Self::Update(update) => update.apply(tasks),
        }
    }
}

impl Update {
    fn apply(self, tasks: &mut TaskList) -> Output {
        let Self {
            task_id,
            subject,
            description,
            active_form,
            status,
            add_blocks,
            add_blocked_by,
            owner,
            metadata,
        } = self;
        let plain = |ids: Option<Vec<String>>| -> Vec<String> {
            ids.iter().flatten().map(|id| id.trim().trim_start_matches('#').to_owned()).collect()
        };
        let change = Change {
            subject,
            description,
            active_form,
            status,
            blocks: plain(add_blocks),
            blocked_by: plain(add_blocked_by),
            owner,
            metadata: metadata.unwrap_or_default(),
        };
        let before = tasks.get(&task_id).map(|task| task.status);
        match tasks.update(&task_id, change) {
            Ok(changed) if changed.is_empty() => Output::text(format!("Task #{task_id} is as it was."))
                .with_detail(json!({"success": true, "taskId": task_id, "updatedFields": []})),
            Ok(changed) => {
                let mut detail = json!({"success": true, "taskId": task_id, "updatedFields": changed});
                if let (Some(from), Some(to), true) = (before, status, changed.contains(&"status")) {
                    detail["statusChange"] = json!({"from": from, "to": to});
                }
                Output::text(format!("Task #{task_id} updated: {}.", changed.join(", "))).with_detail(detail)
            }
            Err(why) => Output::error(why)
                .with_detail(json!({"success": false, "taskId": task_id, "updatedFields": []})),
        }
    }
}

fn missing(id: &str) -> String {
    format!("There is no task #{id}: TaskList shows those there are.")
}

fn listed(tasks: &TaskList) -> Output {
    let all: Vec<&Task> = tasks.iter().collect();
    let lines: Vec<String> = all.iter().map(|task| task.line(tasks)).collect();
    let told = if lines.is_empty() { "There are no tasks.".to_owned() } else { lines.join("\n") };
    let brief = all.iter().map(|task| {
        let mut brief = json!({"id": task.id, "subject": task.subject, "status": task.status, "blockedBy": tasks.open_blockers(task)});
        if let Some(owner) = &task.owner {
            brief["owner"] = json!(owner);
        }
        brief
    });
    Output::text(told).with_detail(json!({"tasks": brief.collect::<Vec<_>>()}))
}

#[cfg(test)]
mod tests;
