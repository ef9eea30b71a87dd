//! One agent while it runs: what it tells goes into its parent's stream, and how it ends becomes its one outcome.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Children;
use super::progress::ProgressLines;
use super::roster::Outlet;
use crate::engine::{Engine, Prompt};
use crate::event::{AgentEnd, AgentEvent, AgentFacts, AgentNews, AgentWork, Event, Outcome};
use crate::history::{Entry, EntryId, Kind, Piece};
use crate::status::Wait;
use crate::tools::agent::{Delivered, Order, ToolStats};
use crate::turn::Terminal;

/// Why an agent ended that did not end by itself.
const SILENT: &str = "The agent was given up: it did nothing for too long.";
const INTERRUPTED: &str = "The agent was interrupted by the user.";

/// What is told about one agent. Its end is told even when it is dropped, if there is room.
struct News {
    facts: Arc<AgentFacts>,
    outlet: Outlet,
    work: AgentWork,
    stats: ToolStats,
    /// When it began, and the clock to see how long that is ago.
    began: Duration,
    world: Arc<dyn pelton_model::World>,
    ended: bool,
    /// The text of its newest answer, and which answer that is.
    words: (String, Vec<(EntryId, String)>),
    /// The calls of its newest answer.
    calls: Vec<Made>,
}

/// A call that an agent made.
struct Made {
    entry: EntryId,
    call: Arc<str>,
    tool: Arc<str>,
    begun: bool,
}

/// An agent that is watched.
pub(super) struct Watched {
    pub facts: Arc<AgentFacts>,
    /// It worked before, and goes on.
    pub goes_on: bool,
    pub stop: CancellationToken,
    pub outlet: Outlet,
}

impl Children {
    /// Runs an agent to its end.
    pub(super) async fn watch(
        &self,
        mut engine: Box<Engine>,
        watched: Watched,
        order: &Order,
        cwd: &Path,
    ) -> Delivered {
        let Watched { facts, goes_on, stop, outlet } = watched;
        let world = Arc::clone(&self.options.world);
        let mut news = News {
            facts: Arc::clone(&facts),
            outlet,
            work: AgentWork::default(),
            stats: ToolStats::default(),
            began: world.monotonic(),
            world,
            ended: false,
            words: Default::default(),
            calls: Vec::new(),
        };
        let model = engine.question.model.clone();
        news.tell(AgentNews::Started).await;
        if let Some(task) = news.outlet.task() {
            news.tell(AgentNews::Beside(task)).await;
        }
        let skills = match goes_on {
            true => String::new(),
            false => self.skills_of(&engine, order, &stop, &news).await,
        };
        let prompt = prompt(&engine, skills + &order.prompt, &stop, cwd, &news).await;
        let mut entered = Some(self.roster.enter(&facts.id, order.name.as_deref(), engine.queue()));
        let mut outcome = match prompt {
            Ok(prompt) => self.pull(&mut engine, Some(prompt), &stop, &mut news).await,
            Err(why) => Err(why),
        };
        // What it was written too late to be read is read now.
        while outcome.is_ok() && !stop.is_cancelled() {
            entered = None;
            if !engine.queue.is_ready() {
                break;
            }
            entered = Some(self.roster.enter(&facts.id, order.name.as_deref(), engine.queue()));
            outcome = self.pull(&mut engine, None, &stop, &mut news).await;
        }
        drop(entered);
        let left = stop_what_is_left(&engine).await;
        let (failure, end) = match &outcome {
            Ok(outcome) => ending(outcome, engine.options.limits.turns_max.unwrap_or_default()),
            Err(why) => (Some(why.clone()), AgentEnd::Failed),
        };
        let usage = outcome.as_ref().map(|outcome| outcome.usage.clone()).unwrap_or_default();
        if outcome.is_ok() {
            news.work.tokens = usage.prompt_tokens().saturating_add(usage.output_tokens);
        }
        if let Some(why) = &failure {
            news.outlet.said(why);
        }
        news.end(end).await;
        let text = match &outcome {
            Ok(outcome) if failure.is_none() => format!("{}{}", outcome.text_before, outcome.text),
            _ => news.words.1.iter().map(|(_, text)| text.as_str()).collect(),
        };
        let text = [Some(text), left].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        Delivered {
            agent_id: facts.id.clone(),
            agent_type: facts.agent_type.clone(),
            model,
            text,
            failure,
            usage,
            tool_calls: news.work.tool_calls,
            stats: news.stats,
            duration: news.work.duration,
            end,
        }
    }

    /// The texts of the skills that an agent knows from the start, in front of its task.
    async fn skills_of(
        &self,
        engine: &Engine,
        order: &Order,
        stop: &CancellationToken,
        news: &News,
    ) -> String {
        let definition = self.definition(&order.agent_type);
        let wanted = definition.map(|definition| definition.skills.clone()).unwrap_or_default();
        if wanted.is_empty() {
            return String::new();
        }
        engine.skills.discover().await;
        let mut texts = String::new();
        for name in wanted {
            let expanded = match engine.skills.get(&name) {
                Some(skill) => engine.expand_skill(&skill, "", stop).await.map_err(|error| error.to_string()),
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

    /// Pulls one submission of an agent to its end: a prompt, or what waits for it.
    async fn pull(
        &self,
        engine: &mut Engine,
        prompt: Option<Prompt>,
        stop: &CancellationToken,
        news: &mut News,
    ) -> Result<Arc<Outcome>, String> {
        let interrupter = engine.interrupter();
        let status = engine.watch();
        let small = engine.small_talk().filter(|_| engine.options.agent_progress_summaries);
        let limits = &self.kin.census.limits;
        let mut lines = ProgressLines::by(small, &self.options.world, limits.progress_every);
        let mut interrupted = false;
        let mut outcome = None;
        let Some(mut events) = submitted(engine, prompt) else { return Err(INTERRUPTED.to_owned()) };
        loop {
            let silent = self.options.world.sleep(limits.silent_max);
            tokio::select! {
                biased;
                () = stop.cancelled(), if !interrupted => {
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
                line = lines.next(&news.facts, news.words.1.last().map_or("", |(_, text)| text)) => {
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
            Event::Agent(_) | Event::Background(_) => return self.outlet.send(event).await,
            Event::Init(_) | Event::Delta(_) => return,
            _ => {}
        }
        match &event {
            Event::Started(started) => {
                self.work.tokens = started.usage.prompt_tokens();
                self.calls.clear();
            }
            Event::Message(entry) => self.listen(entry),
            Event::Tombstone(withdrawn) => self.forget(withdrawn),
            Event::ToolStarted(started) => {
                self.calls
                    .iter_mut()
                    .filter(|made| made.call == started.call)
                    .for_each(|made| made.begun = true);
            }
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
        let (done, output) = (self.work, self.outlet.output());
        self.tell(AgentNews::Ended { end, done, output }).await;
    }

    async fn tell(&self, news: AgentNews) {
        self.outlet.send(Event::Agent(AgentEvent { agent: Arc::clone(&self.facts), news })).await;
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
        if let Kind::ToolResult { call, .. } = &entry.kind
            && let Some(made) = self.calls.iter().find(|made| made.call == *call && made.begun)
        {
            self.stats.add(&made.tool, entry.detail.as_deref());
        }
        let Kind::Assistant { origin, piece } = &entry.kind else { return };
        if let Piece::Call { id, name } = piece {
            let (call, tool) = (Arc::clone(id), Arc::clone(name));
            self.calls.push(Made { entry: entry.id, call, tool, begun: false });
        }
        if !matches!(piece, Piece::Text) {
            return;
        }
        if self.words.0 != origin.message_id {
            self.words = (origin.message_id.clone(), Vec::new());
        }
        let blocks: Vec<Text> = serde_json::from_slice(&entry.json).unwrap_or_default();
        blocks.iter().for_each(|block| self.outlet.said(&block.text));
        self.words.1.extend(blocks.into_iter().map(|block| (entry.id, block.text)));
    }

    /// What was taken back was neither said nor done.
    fn forget(&mut self, withdrawn: &[EntryId]) {
        self.words.1.retain(|(entry, _)| !withdrawn.contains(entry));
        let gone = self.calls.iter().filter(|made| made.begun && withdrawn.contains(&made.entry)).count();
        self.work.tool_calls = self.work.tool_calls.saturating_sub(gone as u32);
        self.calls.retain(|made| !withdrawn.contains(&made.entry));
    }
}

impl Drop for News {
    fn drop(&mut self) {
        if !self.ended {
            self.measure();
            let output = self.outlet.output();
            let news = AgentNews::Ended { end: AgentEnd::Stopped, done: self.work, output };
            self.tell(news).now_or_never();
        }
    }
}

/// What an agent tells of a prompt, or of what waits for it; `None` if nothing does.
fn submitted(
    engine: &mut Engine,
    prompt: Option<Prompt>,
) -> Option<Pin<Box<dyn Stream<Item = Event> + Send + '_>>> {
    match prompt {
        Some(prompt) => Some(Box::pin(engine.submit(prompt))),
        None => engine.submit_queued().map(|events| Box::pin(events) as _),
    }
}

/// The task, with what hooks have to say to it.
async fn prompt(
    engine: &Engine,
    mut text: String,
    stop: &CancellationToken,
    cwd: &Path,
    news: &News,
) -> Result<Prompt, String> {
    if let Some(fired) = engine.session_hooks(stop).agent_started(cwd).await {
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

/// Ends the commands that an agent left in the background. Whoever gets its report is told.
async fn stop_what_is_left(engine: &Engine) -> Option<String> {
    let left: Vec<String> =
        engine.tasks().running().iter().map(|task| format!("`{}`", task.command)).collect();
    if left.is_empty() {
        return None;
    }
    engine.settle_background(Duration::ZERO).await;
    Some(format!("[Commands that it left in the background were ended with it: {}.]", left.join(", ")))
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
