//! One agent while it runs: what it tells goes into its parent's stream, and how it ends becomes its one outcome.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use pelton_model::stream::Sender;
use serde::Deserialize;

use super::Children;
use super::progress::ProgressLines;
use crate::engine::{Engine, Prompt};
use crate::event::{AgentEnd, AgentEvent, AgentFacts, AgentNews, AgentWork, Event, Outcome};
use crate::history::{Entry, Kind, Piece};
use crate::status::Wait;
use crate::tools::ToolCx;
use crate::tools::agent::{Delivered, Order};
use crate::turn::Terminal;

/// Why an agent ended that did not end by itself.
const SILENT: &str = "The agent was given up: it did nothing for too long.";
const INTERRUPTED: &str = "The agent was interrupted by the user.";

/// What is told about one agent. Its end is told even when it is dropped, if there is room.
struct News {
    facts: Arc<AgentFacts>,
    events: Sender<Event>,
    work: AgentWork,
    /// When it began, and the clock to see how long that is ago.
    began: Duration,
    world: Arc<dyn pelton_model::World>,
    ended: bool,
    /// The text of its newest answer, and which answer that is.
    words: (String, Vec<String>),
}

impl Children {
    /// Runs an agent to its end.
    pub(super) async fn watch(
        &self,
        mut engine: Engine,
        facts: Arc<AgentFacts>,
        order: &Order,
        cx: &ToolCx,
    ) -> Delivered {
        let mut news = News {
            facts: Arc::clone(&facts),
            events: self.events.clone(),
            work: AgentWork::default(),
            began: cx.world.monotonic(),
            world: Arc::clone(&cx.world),
            ended: false,
            words: Default::default(),
        };
        let model = engine.question.model.clone();
        news.tell(AgentNews::Started).await;
        let prompt = self.prompt(&engine, order, cx, &mut news).await;
        let outcome = match prompt {
            Ok(prompt) => self.pull(&mut engine, prompt, cx, &mut news).await,
            Err(why) => Err(why),
        };
        let (failure, end) = match &outcome {
            Ok(outcome) => ending(outcome, engine.options.limits.turns_max.unwrap_or_default()),
            Err(why) => (Some(why.clone()), AgentEnd::Failed),
        };
        if end == AgentEnd::Stopped && !cx.cancel.is_cancelled() {
            // Somebody refused a call of the agent's and ended the run with it: not only the agent's.
            self.refused.cancel();
            self.submission.cancel();
        }
        let usage = outcome.as_ref().map(|outcome| outcome.usage.clone()).unwrap_or_default();
        if outcome.is_ok() {
            news.work.tokens = usage.prompt_tokens().saturating_add(usage.output_tokens);
        }
        news.end(end).await;
        let text = match &outcome {
            Ok(outcome) if failure.is_none() => format!("{}{}", outcome.text_before, outcome.text),
            _ => news.words.1.concat(),
        };
        Delivered {
            agent_id: facts.id.clone(),
            agent_type: facts.agent_type.clone(),
            model,
            text,
            failure,
            usage,
            tool_calls: news.work.tool_calls,
            duration: news.work.duration,
        }
    }

    /// The task, with what hooks have to say to it.
    async fn prompt(
        &self,
        engine: &Engine,
        order: &Order,
        cx: &ToolCx,
        news: &mut News,
    ) -> Result<Prompt, String> {
        let mut text = self.skills_of(engine, order, cx, news).await + &order.prompt;
        if let Some(fired) = engine.session_hooks(&cx.cancel).agent_started(&cx.cwd).await {
            for run in fired.runs {
                news.tell(AgentNews::Told(Box::new(Event::Hook(Arc::new(run))))).await;
            }
            for content in fired.verdict.messages {
                let told = Event::Informational { content, prevents_continuation: false };
                news.tell(AgentNews::Told(Box::new(told))).await;
            }
            if let Some(reason) = fired.verdict.stop {
                return Err(format!("A hook did not let the agent start: {reason}"));
            }
            if !fired.verdict.contexts.is_empty() {
                let words = fired.verdict.contexts.join("\n");
                text = format!("<system-reminder>\n{words}\n</system-reminder>\n\n{text}");
            }
        }
        // No user typed it: neither commands nor mentions are meant.
        Prompt::text(text).map(Prompt::verbatim).map_err(|error| error.to_string())
    }

    /// The texts of the skills that an agent knows from the start, in front of its task.
    async fn skills_of(&self, engine: &Engine, order: &Order, cx: &ToolCx, news: &News) -> String {
        let wanted = self.definition(order).map(|definition| definition.skills.clone()).unwrap_or_default();
        if wanted.is_empty() {
            return String::new();
        }
        engine.skills.discover().await;
        let mut texts = String::new();
        for name in wanted {
            let expanded = match engine.skills.get(&name) {
                Some(skill) => {
                    engine.expand_skill(&skill, "", &cx.cancel).await.map_err(|error| error.to_string())
                }
                None => Err("there is no such skill".to_owned()),
            };
            match expanded.map(|expansion| expansion.prompt.unwrap_or_default()) {
                Ok(text) => texts += &format!("<skill name=\"{name}\">\n{}\n</skill>\n\n", text.trim()),
                Err(why) => {
                    let content =
                        format!("The agent '{}' does without the skill '{name}': {why}", order.agent_type);
                    let told = Event::Informational { content, prevents_continuation: false };
                    news.tell(AgentNews::Told(Box::new(told))).await;
                }
            }
        }
        texts
    }

    async fn pull(
        &self,
        engine: &mut Engine,
        prompt: Prompt,
        cx: &ToolCx,
        news: &mut News,
    ) -> Result<Arc<Outcome>, String> {
        let interrupter = engine.interrupter();
        let status = engine.watch();
        let small = engine.small_talk().filter(|_| engine.options.agent_progress_summaries);
        let mut lines = ProgressLines::by(small, &cx.world, self.kin.census.limits.progress_every);
        let mut interrupted = false;
        let mut outcome = None;
        let mut events = std::pin::pin!(engine.submit(prompt));
        loop {
            let silent = cx.world.sleep(self.kin.census.limits.silent_max);
            tokio::select! {
                biased;
                () = cx.cancel.cancelled(), if !interrupted => {
                    interrupted = true;
                    interrupter.interrupt();
                }
                event = events.next() => match event {
                    Some(Event::Result(result)) => outcome = Some(result),
                    Some(event) => {
                        if let Event::ToolStarted(call) = &event {
                            lines.saw(call);
                        }
                        news.of(event).await;
                    }
                    None => return outcome.ok_or_else(|| INTERRUPTED.to_owned()),
                },
                line = lines.next(&news.facts, news.words.1.last().map_or("", String::as_str)) => {
                    news.doing(line).await;
                }
                // A person may take their time.
                () = silent => if !status.borrow().waits.iter().any(is_person) {
                    return Err(SILENT.to_owned());
                },
            }
        }
    }
}

impl News {
    /// Passes on what the agent tells.
    async fn of(&mut self, event: Event) {
        match event {
            // Its own agents and commands tell for themselves.
            Event::Agent(_) | Event::Background(_) => return self.events.send(event).await,
            Event::Init(_) | Event::Delta(_) => return,
            _ => {}
        }
        match &event {
            Event::Started(started) => self.work.tokens = started.usage.prompt_tokens(),
            Event::Message(entry) => self.listen(entry),
            _ => {}
        }
        let tool = match &event {
            Event::ToolStarted(started) => Some(Arc::clone(&started.tool)),
            _ => None,
        };
        self.tell(AgentNews::Told(Box::new(event))).await;
        if let Some(tool) = tool {
            self.work.tool_calls += 1;
            self.measure();
            let done = self.work;
            self.tell(AgentNews::Progress { tool, done }).await;
        }
    }

    async fn doing(&mut self, summary: String) {
        self.measure();
        let done = self.work;
        self.tell(AgentNews::Doing { summary, done }).await;
    }

    async fn end(&mut self, end: AgentEnd) {
        self.measure();
        self.ended = true;
        let done = self.work;
        self.tell(AgentNews::Ended { end, done }).await;
    }

    async fn tell(&self, news: AgentNews) {
        self.events.send(Event::Agent(AgentEvent { agent: Arc::clone(&self.facts), news })).await;
    }

    fn measure(&mut self) {
        self.work.duration = self.world.monotonic().saturating_sub(self.began);
    }

    /// Remembers the text of the newest answer: it is what is left of an agent that fails.
    fn listen(&mut self, entry: &Entry) {
        #[derive(Deserialize)]
        struct Text {
            text: String,
        }
        let Kind::Assistant { origin, piece: Piece::Text } = &entry.kind else { return };
        if self.words.0 != origin.message_id {
            self.words = (origin.message_id.clone(), Vec::new());
        }
        let blocks: Vec<Text> = serde_json::from_slice(&entry.json).unwrap_or_default();
        self.words.1.extend(blocks.into_iter().map(|block| block.text));
    }
}

impl Drop for News {
    fn drop(&mut self) {
        if !self.ended {
            self.measure();
            let news = AgentNews::Ended { end: AgentEnd::Stopped, done: self.work };
            self.tell(news).now_or_never();
        }
    }
}

fn is_person(wait: &Wait) -> bool {
    matches!(wait, Wait::Permission { .. } | Wait::Elicitation { .. })
}

/// Why an agent did not finish, if it did not.
fn ending(outcome: &Outcome, turns_max: u32) -> (Option<String>, AgentEnd) {
    let failed = |why: String| (Some(why), AgentEnd::Failed);
    match outcome.terminal {
        Terminal::Completed | Terminal::CompletedOverHooks if !outcome.is_error => {
            (None, AgentEnd::Completed)
        }
        Terminal::AbortedStreaming | Terminal::AbortedToolExecution => {
            (Some(INTERRUPTED.to_owned()), AgentEnd::Stopped)
        }
        Terminal::BudgetExhausted => failed("Budget limit reached: the agent did not finish.".to_owned()),
        Terminal::MaxTurns => failed(format!("The agent did not finish within its {turns_max} turns.")),
        Terminal::StopHookPrevented | Terminal::HookStopped => failed("A hook ended the agent.".to_owned()),
        Terminal::Completed | Terminal::CompletedOverHooks => {
            failed("The model declined to do the agent's task.".to_owned())
        }
        _ if outcome.errors.is_empty() => failed(format!("The agent failed: {}", outcome.text)),
        _ => failed(format!("The agent failed: {}", outcome.errors.join("; "))),
    }
}
