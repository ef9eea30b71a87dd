//! What an agent is doing, in a line every now and then, by a small model. The agent does not wait for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pelton_model::World;

use crate::context::AGENT_PROGRESS;
use crate::engine::small_talk::SmallTalk;
use crate::event::{AgentFacts, ToolStarted};
use crate::limits::{AGENT_PROGRESS_CALLS_SHOWN_MAX, SUMMARY_SHOWN_CHARS_MAX};

/// Lines about one agent.
pub(super) struct ProgressLines {
    /// Who makes them; nobody if they are not wanted.
    small: Option<SmallTalk>,
    world: Arc<dyn World>,
    every: Duration,
    /// The newest calls.
    calls: VecDeque<String>,
    /// There were calls since the last line.
    is_news: bool,
    next: BoxFuture<'static, ()>,
    making: Option<BoxFuture<'static, Option<String>>>,
}

impl ProgressLines {
    pub fn by(small: Option<SmallTalk>, world: &Arc<dyn World>, every: Duration) -> Self {
        let next = match small {
            Some(_) => world.sleep(every),
            None => Box::pin(std::future::pending()),
        };
        let world = Arc::clone(world);
        Self { small, world, every, calls: VecDeque::new(), is_news: false, next, making: None }
    }

    /// A call has begun.
    pub fn saw(&mut self, call: &ToolStarted) {
        if self.small.is_none() {
            return;
        }
        if self.calls.len() >= AGENT_PROGRESS_CALLS_SHOWN_MAX {
            self.calls.pop_front();
        }
        let input: String = call.input.to_string().chars().take(SUMMARY_SHOWN_CHARS_MAX).collect();
        self.calls.push_back(format!("{} {input}", call.tool));
        self.is_news = true;
    }

    /// The next line; never, if none are wanted. May be dropped and asked again.
    pub async fn next(&mut self, facts: &AgentFacts, words: &str) -> String {
        loop {
            if let Some(making) = &mut self.making {
                let made = making.await;
                self.making = None;
                self.next = self.world.sleep(self.every);
                if let Some(line) = made {
                    return line;
                }
            }
            (&mut self.next).await;
            self.next = self.world.sleep(self.every);
            if let Some(small) = self.small.as_ref().filter(|_| std::mem::take(&mut self.is_news)) {
                let calls = self.calls.make_contiguous().join("\n");
                let shown = |text: &str| text.chars().take(SUMMARY_SHOWN_CHARS_MAX).collect::<String>();
                let prompt = format!(
                    "Its task: {}\n\nIts newest calls:\n{calls}\n\nSaid last: {}",
                    shown(&facts.description),
                    shown(words)
                );
                self.making = Some(small.line("a line about an agent", AGENT_PROGRESS, prompt));
            }
        }
    }
}
