//! Z1: what the calls of a turn came to, in a line, by a small model. Made while the next turn runs: told when that
//! one's answer is complete, if it is there by then. Nothing ever waits for it; what is not there at the end is dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Live;
use crate::aside::Told;
use crate::context::TOOL_SUMMARY;
use crate::event::{Event, LoopKind};
use crate::limits::{
    SUMMARIES_PENDING_MAX, SUMMARY_CALLS_MAX, SUMMARY_CHARS_MAX, SUMMARY_SHOWN_CHARS_MAX, SUMMARY_TOKENS_MAX,
};
use crate::tools::Output;
use crate::tools::executor::Call;
use crate::turn::side::{self, SideQuestion};
use crate::turn::spending::Wish;

/// The summaries of one submission.
#[derive(Default)]
pub(crate) struct Summaries {
    /// Who makes them; nobody if they are not wanted.
    model: Option<String>,
    /// What the calls of this turn were and brought.
    seen: Vec<(Arc<str>, String)>,
    /// Being made, oldest first.
    pending: VecDeque<Pending>,
}

struct Pending {
    calls: Vec<Arc<str>>,
    making: Making,
}

enum Making {
    Asked(BoxFuture<'static, Option<String>>),
    Made(Option<String>),
}

impl Summaries {
    /// Made by this model, if by any.
    pub fn by(model: Option<String>) -> Self {
        Self { model, ..Self::default() }
    }

    /// A call has ended.
    pub(super) fn saw(&mut self, call: &Call, output: &Output) {
        if self.model.is_none() || self.seen.len() >= SUMMARY_CALLS_MAX {
            return;
        }
        let input = call.input.as_ref().map(ToString::to_string).unwrap_or_default();
        let failed = if output.is_error { " (failed)" } else { "" };
        let words = output.words();
        let line = format!("{} {}{failed}: {}", call.tool, shown(&input), shown(&words));
        self.seen.push((Arc::clone(&call.id), line));
    }

    /// Makes what is being made advance. Returns when one is made; never if none is asked for. Cancel-safe.
    pub(super) async fn advance(&mut self) {
        std::future::poll_fn(|cx| {
            let mut made = false;
            for pending in &mut self.pending {
                if let Making::Asked(asked) = &mut pending.making
                    && let std::task::Poll::Ready(words) = asked.poll_unpin(cx)
                {
                    pending.making = Making::Made(words);
                    made = true;
                }
            }
            if made { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }

    /// Gives up what is being made. Tells whether there was anything.
    pub(super) fn give_up(&mut self) -> bool {
        let before = self.pending.len();
        self.pending.retain(|pending| matches!(pending.making, Making::Made(_)));
        self.pending.len() < before
    }

    fn take_made(&mut self) -> Vec<(Vec<Arc<str>>, String)> {
        let mut made = Vec::new();
        self.pending.retain_mut(|pending| match &mut pending.making {
            Making::Asked(_) => true,
            Making::Made(words) => {
                let calls = std::mem::take(&mut pending.calls);
                made.extend(words.take().and_then(|words| one_line(&words)).map(|words| (calls, words)));
                false
            }
        });
        made
    }
}

impl Live<'_> {
    /// Starts the summary of the calls that have just ended.
    pub(super) async fn summarise(&mut self) {
        let seen = std::mem::take(&mut self.summaries.seen);
        let Some(model) = self.summaries.model.clone().filter(|_| !seen.is_empty()) else { return };
        let mut prompt = String::new();
        if let Some(words) = self.last.words() {
            prompt = format!("Said before the calls: {}\n\n", shown(&words));
        }
        prompt += "The calls, and what they brought:\n";
        let (calls, lines): (Vec<Arc<str>>, Vec<String>) = seen.into_iter().unzip();
        prompt += &lines.join("\n");
        let question = SideQuestion::in_background(model, TOOL_SUMMARY, prompt, SUMMARY_TOKENS_MAX);
        let (ask, wish) = question.pay(&self.spending);
        let paid = match wish {
            Wish::Granted(paid) => paid,
            Wish::Later(why) | Wish::Refused(why) => {
                return self.note(LoopKind::Budget, format!("no summary is made: {why}")).await;
            }
        };
        if self.spending.is_capped() {
            self.note(LoopKind::Budget, format!("for a summary, {}", paid.in_words())).await;
        }
        if self.summaries.pending.len() >= SUMMARIES_PENDING_MAX {
            // The oldest is the least wanted.
            self.summaries.pending.pop_front();
        }
        let asked = side::ask(self.client.clone(), ask, paid, "a summary of calls", self.beside_in.clone());
        let asked = asked.map(|answer| Told::from(answer.ok()?).whole_words());
        let making = Making::Asked(asked.boxed());
        self.summaries.pending.push_back(Pending { calls, making });
    }

    /// I4: tells the summaries that are there.
    pub(super) async fn tell_summaries(&mut self) {
        for (calls, summary) in self.summaries.take_made() {
            self.events.send(Event::ToolUseSummary { summary, calls }).await;
        }
    }
}

/// The beginning of a text, on one line.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SUMMARY_SHOWN_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

fn one_line(words: &str) -> Option<String> {
    let line = words.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(SUMMARY_CHARS_MAX).collect())
}
