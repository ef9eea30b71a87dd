//! Words for agents that were started before. One that works reads them with its next step; one that has ended goes on from
//! its record, in the background.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::roster::Outlet;
use super::{Children, Letter, NotStarted, Order, Ran, Ready, Written};
use crate::event::AgentFacts;
use crate::limits::AGENT_RECORDS_LOOKED_AT_MAX;
use crate::options::{Options, Resumed};
use crate::prompt::Prompt;
use crate::queue::Priority;
use crate::tools::ToolCx;
use crate::tools::agent::{FORK, SEND_MESSAGE};
use crate::transcript;

/// What stands beside the record of an agent: what kind it is, for those who list them, and what it needs to go on.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    agent_type: String,
    description: String,
    tool_use_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worktree_path: Option<PathBuf>,
}

impl Children {
    pub(super) async fn write_to(
        self: Arc<Self>,
        letter: Letter,
        cx: &ToolCx,
    ) -> Result<Written, NotStarted> {
        if let Some((agent_id, queue)) = self.roster.find(&letter.to) {
            let prompt = Prompt::text(letter.message.clone()).map(Prompt::verbatim);
            let prompt = prompt.map_err(|error| NotStarted(error.to_string()))?;
            let written = queue.add(prompt, Priority::Next).await;
            let id = written.map_err(|error| NotStarted(format!("The agent was not written to: {error}")))?;
            // One that ended meanwhile, and has not read it, goes on with it.
            if self.roster.find(&agent_id).is_some() || !queue.cancel(id) {
                return Ok(Written::Delivered { agent_id });
            }
        }
        let (ready, order) = self.ready_again(&letter, cx).await?;
        match self.run_ready(ready, order, cx).await? {
            Ran::Beside(launched) => Ok(Written::GoesOn(launched)),
            // Where nothing runs in the background, it was waited for: what it says is told by its own call.
            Ran::Delivered(delivered) => Err(NotStarted(delivered.text)),
        }
    }

    /// An agent that has ended, ready to go on with what it is told.
    async fn ready_again(&self, letter: &Letter, cx: &ToolCx) -> Result<(Ready, Order), NotStarted> {
        if cx.limits.background_off {
            let off = "Nothing runs in the background here, so an agent that has ended cannot go on: start a new one.";
            return Err(NotStarted(off.to_owned()));
        }
        let (id, file, about) = self.record_of(&letter.to).await.map_err(NotStarted)?;
        if about.agent_type == FORK {
            return Err(NotStarted(format!("{id} is a fork, and those do not go on: start a new one.")));
        }
        let seat = self.seat()?;
        let facts = Arc::new(AgentFacts {
            id,
            call: Arc::clone(&cx.call_id),
            agent_type: about.agent_type.clone(),
            description: about.description.clone(),
            prompt: letter.message.clone(),
            beside: self.kin.agent.is_none(),
            depth: self.kin.depth() + 1,
            parent: self.parent(),
        });
        let stop = self.options.cancel.child_token();
        let outlet = Outlet::to(self.events.clone(), stop.clone());
        let mut order = Order::of(&about.agent_type, &letter.message, about.model);
        order.description.clone_from(&about.description);
        (order.name, order.effort) = (about.name, about.effort.and_then(|effort| effort.parse().ok()));
        let definition = self.definition(&about.agent_type).map_err(NotStarted)?;
        let hooks = self.hooks_of(definition, &outlet).await;
        let place = about.worktree_path.as_deref();
        if let Some(place) = place.filter(|place| !place.is_dir()) {
            let gone = format!("{} worked in {}, which is gone: start a new one.", facts.id, place.display());
            return Err(NotStarted(gone));
        }
        let conversation = {
            let file = file.clone();
            tokio::task::spawn_blocking(move || transcript::read_agent(&file)).await
        };
        let conversation = conversation.map_err(|error| error.to_string());
        let conversation = conversation.and_then(|read| read.map_err(|error| error.to_string()));
        let conversation = conversation
            .map_err(|error| NotStarted(format!("The record of {} cannot be read: {error}", facts.id)))?;
        let servers = self.servers_of(definition, &outlet).await;
        let resume = Some(Resumed { file, conversation });
        let resumed = Options { resume, servers, ..self.options.clone() };
        let me = self.member_of(&facts, false);
        let engine = self.from(resumed, me, &order, definition, hooks, place).map_err(NotStarted);
        let mut engine = engine?;
        if place.is_none() {
            engine.cwd = Arc::new(Mutex::new(cx.cwd.clone()));
        }
        let ready = Ready { engine, facts, seat, place: None, goes_on: true, stop, outlet };
        Ok((ready, order))
    }

    /// The agent of that id, or the newest of that name: its id, its record, and what is known about it.
    async fn record_of(&self, to: &str) -> Result<(String, PathBuf, About), String> {
        let folder = self.session_file.as_ref().map(|file| file.with_extension("").join("subagents"));
        let Some(folder) = folder.filter(|_| self.options.sessions.is_some()) else {
            return Err(
                "This session is not recorded, so an agent that has ended cannot go on: start a new one."
                    .to_owned(),
            );
        };
        let wanted = to.to_owned();
        let found = tokio::task::spawn_blocking(move || find(&folder, &wanted)).await;
        let found = found.map_err(|error| error.to_string())?;
        found.ok_or_else(|| format!("There is no agent '{to}': {SEND_MESSAGE} takes the id that Agent told, or the name that it was given."))
    }

    /// Says what kind of agent a record is of. A courtesy: the record itself does without.
    pub(super) fn describe(&self, facts: &Arc<AgentFacts>, order: &Order, place: Option<&Path>) {
        let file = self.options.sessions.as_ref().and_then(|_| self.member_of(facts, false).file());
        let Some(file) = file else { return };
        let about = About {
            agent_type: facts.agent_type.clone(),
            description: facts.description.clone(),
            tool_use_id: facts.call.to_string(),
            name: order.name.clone(),
            model: order.model.clone(),
            effort: order.effort.map(|effort| effort.as_str().to_owned()),
            worktree_path: place.map(Path::to_path_buf),
        };
        let Ok(told) = serde_json::to_vec(&about) else { return };
        let file = file.with_extension("meta.json");
        let _ = self.options.disk.open(&file).and_then(|file| file.write(&told));
    }
}

fn find(folder: &Path, to: &str) -> Option<(String, PathBuf, About)> {
    let read = |id: &str| {
        let about = std::fs::read(folder.join(format!("agent-{id}.meta.json"))).ok()?;
        let about: About = serde_json::from_slice(&about).ok()?;
        Some((id.to_owned(), folder.join(format!("agent-{id}.jsonl")), about))
    };
    if to.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && let Some(found) = read(to)
    {
        return Some(found);
    }
    let entries = std::fs::read_dir(folder).ok()?.flatten().take(AGENT_RECORDS_LOOKED_AT_MAX);
    let named = entries.filter_map(|entry| {
        let name = entry.file_name();
        let id = name.to_str()?.strip_prefix("agent-")?.strip_suffix(".meta.json")?;
        let found = read(id).filter(|(.., about)| about.name.as_deref() == Some(to))?;
        Some((entry.metadata().ok()?.modified().ok()?, found))
    });
    named.max_by_key(|(at, _)| *at).map(|(_, found)| found)
}
