//! Agents that look around for hooks: they read, change nothing, and call no hooks themselves.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tokio_util::sync::CancellationToken;

use super::{AgentSelf, Children};
use crate::event::{AgentFacts, Event};
use crate::hooks::{HookAgents, Hooks};
use crate::limits::HOOK_AGENT_TURNS_MAX;
use crate::permission::Mode;
use crate::prompt::Prompt;
use crate::tools::agent::{AgentDefinition, Order};

/// What they look with.
const TOOLS: [&str; 3] = ["Read", "Grep", "Glob"];
/// What they are called in records.
const NAME: &str = "hook";

/// Starts them, for the hooks of one submission.
pub(in crate::engine) struct Judges {
    pub children: Arc<Children>,
    pub cancel: CancellationToken,
}

impl HookAgents for Judges {
    fn look(
        &self,
        system: &'static str,
        prompt: String,
        model: Option<String>,
    ) -> BoxFuture<'static, Result<String, String>> {
        let (children, cancel) = (Arc::clone(&self.children), self.cancel.clone());
        async move { children.judge(system, prompt, model, &cancel).await }.boxed()
    }
}

impl Children {
    /// Nobody hears what it does meanwhile. Dropping the future ends it.
    async fn judge(
        &self,
        system: &str,
        prompt: String,
        model: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let _seat = self.kin.census.enter()?;
        let mut definition = AgentDefinition::new(NAME, "Looks around for a hook.", system);
        definition.tools = Some(TOOLS.map(str::to_owned).to_vec());
        definition.permission_mode = Some(Mode::DontAsk);
        definition.max_turns = Some(HOOK_AGENT_TURNS_MAX);
        let facts = Arc::new(AgentFacts {
            id: format!("a{:016x}", self.options.world.random()),
            call: Arc::from(""),
            agent_type: NAME.to_owned(),
            description: definition.description.clone(),
            prompt: prompt.clone(),
            beside: false,
            depth: self.kin.depth() + 1,
            parent: self.parent(),
        });
        let me = AgentSelf {
            facts,
            depth: self.kin.depth() + 1,
            is_fork: false,
            session_file: self.session_file.clone(),
        };
        let order = Order::of(NAME, &prompt, model);
        let mut engine = self.fresh(me, &order, &definition, Hooks::default(), None)?;
        let interrupter = engine.interrupter();
        let prompt = Prompt::text(prompt).map(Prompt::verbatim).map_err(|error| error.to_string())?;
        let mut events = std::pin::pin!(engine.submit(prompt));
        let mut interrupted = false;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if !interrupted => {
                    interrupted = true;
                    interrupter.interrupt();
                }
                event = events.next() => match event {
                    Some(Event::Result(outcome)) if outcome.is_error => {
                        return Err(format!("was not answered: {}", outcome.text));
                    }
                    Some(Event::Result(outcome)) => return Ok(outcome.text.clone()),
                    Some(_) => {}
                    None => return Err("was not answered".to_owned()),
                },
            }
        }
    }
}
