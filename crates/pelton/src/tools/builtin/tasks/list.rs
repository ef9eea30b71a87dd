//! Tasks, and what waits for what. Pure.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::missing;
use crate::limits::{TASK_METADATA_KEYS_MAX, TASKS_MAX};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    /// Given in the order of making, from 1, and never again.
    pub id: String,
    /// What is to be done, in a few words.
    pub subject: String,
    /// All there is to know about it.
    pub description: String,
    /// What is being done, while it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    pub status: Status,
    /// Who does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Tasks that wait for this one.
    pub blocks: Vec<String>,
    /// Tasks this one waits for.
    pub blocked_by: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
    /// It is taken off the list.
    Deleted,
}

/// What is changed about a task.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub subject: Option<String>,
    pub description: Option<String>,
    pub active_form: Option<String>,
    pub status: Option<Status>,
    pub blocks: Vec<String>,
    pub blocked_by: Vec<String>,
    pub owner: Option<String>,
    /// Keys to set; `null` takes one away.
    pub metadata: Map<String, Value>,
}

/// All tasks, in the order of making.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TaskList {
    tasks: Vec<Task>,
    /// Tasks made so far.
    made: u64,
}

impl Task {
    /// All there is to know about it.
    pub fn told(&self) -> String {
        let mut told = format!("Task #{}: {}\nStatus: {}", self.id, self.subject, self.status.name());
        if let Some(owner) = &self.owner {
            let _ = write!(told, "\nOwner: {owner}");
        }
        for (what, ids) in [("Waits for", &self.blocked_by), ("Blocks", &self.blocks)] {
            if !ids.is_empty() {
                let _ = write!(told, "\n{what}: {}", numbered(ids));
            }
        }
        if !self.metadata.is_empty() {
            let _ = write!(told, "\nMetadata: {}", Value::Object(self.metadata.clone()));
        }
        let _ = write!(told, "\n\n{}", self.description);
        told.trim_end().to_owned()
    }

    /// It on one line.
    pub fn line(&self, among: &TaskList) -> String {
        let mut line = format!("#{} [{}] {}", self.id, self.status.name(), self.subject);
        if let Some(owner) = &self.owner {
            let _ = write!(line, " ({owner})");
        }
        let open = among.open_blockers(self);
        if !open.is_empty() {
            let _ = write!(line, " [waits for {}]", numbered(&open));
        }
        line
    }
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }
}

impl TaskList {
    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    /// Each on a line, those that are done last.
    pub fn lines(&self) -> Vec<String> {
        let (done, open): (Vec<&Task>, Vec<&Task>) =
            self.iter().partition(|task| task.status == Status::Completed);
        open.into_iter().chain(done).map(|task| task.line(self)).collect()
    }

    pub fn get(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// The tasks this one waits for that are not done.
    pub fn open_blockers(&self, task: &Task) -> Vec<String> {
        let is_open = |id: &&String| self.get(id).is_some_and(|task| task.status != Status::Completed);
        task.blocked_by.iter().filter(is_open).cloned().collect()
    }

    /// The id of the next one that is made.
    pub fn next_id(&self) -> String {
        (self.made + 1).to_string()
    }

    pub fn create(
        &mut self,
        subject: String,
        description: String,
        active_form: Option<String>,
        metadata: Map<String, Value>,
    ) -> Result<&Task, String> {
        if self.tasks.len() >= TASKS_MAX {
            return Err(format!(
                "There are {TASKS_MAX} tasks already: delete what is done, or make larger ones."
            ));
        }
        if metadata.len() > TASK_METADATA_KEYS_MAX {
            return Err(format!("`metadata` has more than {TASK_METADATA_KEYS_MAX} keys."));
        }
        self.made += 1;
        let task = Task {
            id: self.made.to_string(),
            subject,
            description,
            active_form,
            status: Status::Pending,
            owner: None,
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata,
        };
        self.tasks.push(task);
        self.tasks.last().ok_or_else(|| "The task was lost.".to_owned())
    }

    /// Changes a task, all of it or nothing. Tells what is different now.
    pub fn update(&mut self, id: &str, change: Change) -> Result<Vec<&'static str>, String> {
        let at = self.tasks.iter().position(|task| task.id == id).ok_or_else(|| missing(id))?;
        if change.status == Some(Status::Deleted) {
            self.tasks.remove(at);
            for task in &mut self.tasks {
                task.blocks.retain(|other| other != id);
                task.blocked_by.retain(|other| other != id);
            }
            return Ok(vec!["deleted"]);
        }
        if change.subject.as_deref().is_some_and(|subject| subject.trim().is_empty()) {
            return Err("`subject` is empty: say what is to be done.".to_owned());
        }
        self.check_links(id, &change)?;
        let keys = change
            .metadata
            .iter()
            .filter(|(key, value)| !value.is_null() && !self.tasks[at].metadata.contains_key(*key));
        if self.tasks[at].metadata.len() + keys.count() > TASK_METADATA_KEYS_MAX {
            return Err(format!("`metadata` would have more than {TASK_METADATA_KEYS_MAX} keys."));
        }
        let mut changed = Vec::new();
        let task = &mut self.tasks[at];
        if let Some(subject) = change.subject.filter(|subject| *subject != task.subject) {
            task.subject = subject;
            changed.push("subject");
        }
        if let Some(description) = change.description.filter(|description| *description != task.description) {
            task.description = description;
            changed.push("description");
        }
        if change.active_form.is_some() && change.active_form != task.active_form {
            task.active_form = change.active_form;
            changed.push("activeForm");
        }
        if let Some(status) = change.status.filter(|status| *status != task.status) {
            task.status = status;
            changed.push("status");
        }
        if change.owner.is_some() && change.owner != task.owner {
            task.owner = change.owner.filter(|owner| !owner.is_empty());
            changed.push("owner");
        }
        if !change.metadata.is_empty() {
            for (key, value) in change.metadata {
                match value {
                    Value::Null => drop(task.metadata.shift_remove(&key)),
                    value => drop(task.metadata.insert(key, value)),
                }
            }
            changed.push("metadata");
        }
        let links = change.blocks.iter().map(|later| (id, later.as_str()));
        let links = links.chain(change.blocked_by.iter().map(|first| (first.as_str(), id)));
        let links: Vec<(String, String)> =
            links.map(|(first, later)| (first.to_owned(), later.to_owned())).collect();
        for (first, later) in links {
            if self.link(&first, &later) {
                let what = if first == id { "blocks" } else { "blockedBy" };
                if !changed.contains(&what) {
                    changed.push(what);
                }
            }
        }
        Ok(changed)
    }

    /// Whether all that is named is there, and nothing would wait for itself.
    fn check_links(&self, id: &str, change: &Change) -> Result<(), String> {
        for other in change.blocks.iter().chain(&change.blocked_by) {
            if self.get(other).is_none() {
                return Err(missing(other));
            }
            if other == id {
                return Err(format!("Task #{id} cannot wait for itself."));
            }
        }
        for later in &change.blocks {
            if self.waits_for(id, later) || change.blocked_by.contains(later) {
                return Err(circle(id, later));
            }
        }
        for first in &change.blocked_by {
            if self.waits_for(first, id) || change.blocks.iter().any(|later| self.waits_for(first, later)) {
                return Err(circle(first, id));
            }
        }
        Ok(())
    }

    /// Whether a task waits for another, by whatever is between them.
    fn waits_for(&self, task: &str, other: &str) -> bool {
        let (mut seen, mut next) = (Vec::new(), vec![task]);
        while let Some(id) = next.pop() {
            if id == other {
                return true;
            }
            if !seen.contains(&id) {
                seen.push(id);
                next.extend(self.get(id).iter().flat_map(|task| task.blocked_by.iter().map(String::as_str)));
            }
        }
        false
    }

    /// Makes one task wait for another. Tells whether it did not before.
    fn link(&mut self, first: &str, later: &str) -> bool {
        let mut is_new = false;
        for task in &mut self.tasks {
            let (links, other) = match task.id.as_str() {
                id if id == first => (&mut task.blocks, later),
                id if id == later => (&mut task.blocked_by, first),
                _ => continue,
            };
            if !links.iter().any(|known| known == other) {
                links.push(other.to_owned());
                is_new = true;
            }
        }
        is_new
    }
}

fn circle(first: &str, later: &str) -> String {
    format!("Task #{later} cannot wait for #{first}: that one waits for it already.")
}

fn numbered(ids: &[String]) -> String {
    ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}
