//! What the engines of one tree of agents share, and where in it one stands.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pelton_model::Client;

use crate::event::{AgentFacts, Denial};
use crate::file_history::FileHistory;
use crate::hooks::Hooks;
use crate::limits::AgentLimits;
use crate::options::Options;
use crate::permission::Permissions;
use crate::sandbox::Sandbox;
use crate::tools::web::Web;
use crate::turn::budget::{Policy, Purse};
use crate::turn::spending::Spending;

/// What an engine has from others.
#[derive(Clone)]
pub(super) struct Kin {
    pub client: Client,
    pub hooks: Arc<Hooks>,
    pub permissions: Permissions,
    /// The money, shared with whoever works for this session.
    pub spending: Arc<Spending>,
    pub census: Arc<Census>,
    /// The boxes commands run in.
    pub sandbox: Option<Arc<Sandbox>>,
    /// The road to the web, and the pages that were read.
    pub web: Web,
    /// What is kept of files; agents keep it in their session's.
    pub file_history: Option<FileHistory>,
    /// Calls of agents that were refused, until the main thread tells of them.
    pub denied: Arc<Mutex<Vec<Denial>>>,
    /// Which agent it is; the main thread is none.
    pub agent: Option<Arc<AgentSelf>>,
}

/// A sub-agent, as it knows itself.
pub(super) struct AgentSelf {
    pub facts: Arc<AgentFacts>,
    /// How far below the main thread it stands.
    pub depth: u8,
    /// It knows all its parent knew.
    pub is_fork: bool,
    /// The record of the main thread, if there is one.
    pub session_file: Option<PathBuf>,
}

impl Kin {
    /// What a main thread starts with.
    pub fn first(options: &mut Options) -> Self {
        options.secrets.learn_from(&options.env, &options.endpoint.auth);
        let credentials = options.endpoint.credentials.take();
        options.endpoint.credentials = credentials.map(|credentials| options.secrets.heard_from(credentials));
        let policy = if options.strict_budget { Policy::Strict } else { Policy::Likely };
        let permissions = Permissions::new(
            options.rules.clone(),
            options.mode,
            options.cwd.clone(),
            options.additional_dirs.clone(),
            options.home.clone(),
        )
        .kept_by(options.keeper.clone());
        Self {
            web: Web::new(Arc::clone(&options.transport), permissions.clone()),
            client: Client::new(
                options.endpoint.clone(),
                Arc::clone(&options.transport),
                options.retry.clone(),
                Arc::clone(&options.world),
            ),
            hooks: Arc::new(Hooks::new(std::mem::take(&mut options.hooks))),
            permissions,
            spending: Spending::new(
                Purse::new(options.max_budget_usd, policy).having_spent(options.budget_spent_usd),
                options.prices.clone(),
            ),
            census: Arc::new(Census::new(options.agent_limits.clone())),
            sandbox: None,
            file_history: None,
            denied: Arc::default(),
            agent: None,
        }
    }

    /// How far below the main thread it stands.
    pub fn depth(&self) -> u8 {
        self.agent.as_ref().map_or(0, |agent| agent.depth)
    }

    /// What was refused in a submission: in that of the main thread also what agents were refused since the last one.
    pub fn denials(&self, own: Vec<Denial>) -> Vec<Denial> {
        let mut of_agents = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(agent) = &self.agent else {
            return std::mem::take(&mut *of_agents).into_iter().chain(own).collect();
        };
        // An agent that looks around for a hook was started by no call, and is told of to nobody.
        if !agent.facts.call.is_empty() {
            of_agents.extend(own.iter().cloned());
        }
        own
    }

    /// Whether agents may stand below it.
    pub fn may_have_children(&self) -> bool {
        self.depth() < self.census.limits.depth_max
    }
}

impl AgentSelf {
    /// Where it is recorded, if the session is.
    pub fn file(&self) -> Option<PathBuf> {
        let folder = self.session_file.as_ref()?.with_extension("").join("subagents");
        Some(folder.join(format!("agent-{}.jsonl", self.facts.id)))
    }
}

/// Counts the agents of a tree.
#[derive(Debug)]
pub(super) struct Census {
    pub limits: AgentLimits,
    running: AtomicUsize,
    started: AtomicU32,
}

/// An agent that is counted as running until this is dropped.
#[derive(Debug)]
pub(super) struct Seat(Arc<Census>);

impl Census {
    fn new(limits: AgentLimits) -> Self {
        Self { limits, running: AtomicUsize::new(0), started: AtomicU32::new(0) }
    }

    /// A submission of the main thread begins.
    pub fn begin(&self) {
        self.started.store(0, Ordering::Relaxed);
    }

    /// Counts one more, if there may be one.
    pub fn enter(self: &Arc<Self>) -> Result<Seat, String> {
        let AgentLimits { running_max, started_max, .. } = self.limits;
        let running = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |running| {
            (running < running_max).then_some(running + 1)
        });
        running.map_err(|running| {
            format!("{running} agents are running already, which is as many as may: do it yourself, or wait")
        })?;
        // From here on the seat is given back whatever happens.
        let seat = Seat(Arc::clone(self));
        let started = self.started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |started| {
            (started < started_max).then_some(started + 1)
        });
        started.map_err(|started| {
            format!("{started} agents were started for this task, which is as many as may be: do it yourself")
        })?;
        Ok(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_bounded_at_once_and_in_all() {
        let limits = AgentLimits { running_max: 2, started_max: 3, ..AgentLimits::default() };
        let census = Arc::new(Census::new(limits));
        let (one, two) = (census.enter().unwrap(), census.enter().unwrap());
        assert!(census.enter().unwrap_err().contains("2 agents are running"));
        drop(one);
        let three = census.enter().unwrap();
        drop(two);
        assert!(census.enter().unwrap_err().contains("3 agents were started"));
        drop(three);
        census.begin();
        let _four = census.enter().unwrap();
        let _five = census.enter().unwrap();
    }
}
