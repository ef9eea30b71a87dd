//! Sub-agents, as branches of the call that started them: their newest calls while they run, a sum at their end.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pelton::event::{AgentEnd, AgentFacts, AgentNews, AgentWork, Event};
use pelton::history::Kind;
use pelton_serve::progress::{doing, measure, worked};
use ratatui_core::text::{Line, Span};

use super::calls::seconds_whole;
use crate::clean;
use crate::theme::{Role, Theme};

/// Calls of an agent that are shown while it runs.
const CALLS_SHOWN: usize = 3;

#[derive(Default)]
pub(super) struct Agents {
    /// By the call that started them. The engine bounds how many there are.
    running: HashMap<Arc<str>, Branch>,
}

#[derive(Default)]
struct Branch {
    calls: VecDeque<Twig>,
    summary: Option<String>,
    done: AgentWork,
    /// Nobody waits for it.
    is_beside: bool,
}

struct Twig {
    call: Arc<str>,
    doing: String,
    since: Duration,
    told: Option<String>,
}

impl Agents {
    pub fn clear(&mut self) {
        self.running.clear();
    }

    /// Something has happened to an agent: what is to be told of it in a line of its own.
    pub fn heard(
        &mut self,
        agent: &AgentFacts,
        news: &AgentNews,
        cwd: &Path,
        now: Duration,
    ) -> Option<String> {
        let branch = self.running.entry(Arc::clone(&agent.call)).or_default();
        branch.is_beside |= agent.beside;
        let named = || format!("{} ({})", clean::line(&agent.description), agent.id);
        match news {
            // What agents of agents do is theirs.
            AgentNews::Beside(_) if agent.parent.is_none() => {
                branch.is_beside = true;
                return Some(format!("in the background: {}", named()));
            }
            // Its call is over since.
            AgentNews::Ended { end, done, output: Some(_) } => {
                self.running.remove(&agent.call);
                let end = match end {
                    AgentEnd::Completed => "completed",
                    AgentEnd::Failed => "failed",
                    _ => "stopped",
                };
                return agent.parent.is_none().then(|| format!("{} {end} · {}", named(), worked(done)));
            }
            AgentNews::Told(event) => match &**event {
                Event::ToolStarted(started) => {
                    branch.calls.push_back(Twig {
                        call: Arc::clone(&started.call),
                        doing: doing(&started.tool, &started.input, cwd),
                        since: now,
                        told: None,
                    });
                    if branch.calls.len() > CALLS_SHOWN {
                        branch.calls.pop_front();
                    }
                }
                Event::Message(entry) => {
                    if let Kind::ToolResult { call, is_error } = &entry.kind
                        && let Some(twig) = branch.calls.iter_mut().find(|twig| twig.call == *call)
                    {
                        twig.told = Some(if *is_error { "failed".to_owned() } else { measure(entry) });
                    }
                }
                _ => {}
            },
            AgentNews::Progress { done, .. } => branch.done = *done,
            AgentNews::Doing { summary, done } => {
                branch.summary = Some(clean::line(summary));
                branch.done = *done;
            }
            AgentNews::Ended { done, .. } => {
                branch.done = *done;
                branch.calls.clear();
            }
            _ => {}
        }
        None
    }

    /// What an agent has done, at the end of its call.
    pub fn end(&mut self, call: &str) -> Option<String> {
        self.running.remove(call).map(|branch| match branch.is_beside {
            true => "in the background".to_owned(),
            false => worked(&branch.done),
        })
    }

    pub fn live(&self, call: &str, theme: &Theme, now: Duration, columns: usize) -> Vec<Line<'static>> {
        let Some(branch) = self.running.get(call) else { return Vec::new() };
        let faint = theme.style(Role::Faint);
        let mut lines = Vec::new();
        if let Some(summary) = branch.summary.as_ref().filter(|_| columns > 20) {
            lines.push(Line::from(vec![
                Span::styled("│  ", faint),
                Span::styled(summary.clone(), theme.style(Role::Emphasis)),
            ]));
        }
        for (at, twig) in branch.calls.iter().enumerate() {
            let last = at + 1 == branch.calls.len();
            let mark = if last { "│  └─ " } else { "│  ├─ " };
            let told = match &twig.told {
                Some(told) => told.clone(),
                None => seconds_whole(now.saturating_sub(twig.since)),
            };
            let told = if told.is_empty() { " …".to_owned() } else { format!(" · {told}") };
            lines.push(Line::from(vec![
                Span::styled(mark, faint),
                Span::raw(clean::line(&twig.doing)),
                Span::styled(told, faint),
            ]));
        }
        lines
    }
}
