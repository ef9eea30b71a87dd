//! What the server knows and what waits for it: requests seen, steps used, gates, the record.

use super::seen::{Illegal, Seen, SentEvent, Unexpected};
use crate::cache::PromptCache;
use crate::issued::Issued;
use crate::play::{Ending, Event};
use crate::record::Record;
use crate::script::when::{Captured, Facts, Matcher};
use crate::script::{Script, Times};
use crate::serve::Notice;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// Most requests whose details are kept; older ones are only counted.
pub const REQUESTS_KEPT_MAX: usize = 4096;
/// Most bytes of request bodies that are kept.
pub const REQUEST_BYTES_KEPT_MAX: usize = 256 * 1024 * 1024;
/// Most refusals and unexpected requests whose details are kept; all are counted.
pub const FAILURES_KEPT_MAX: usize = 256;
/// Most steps of which a request without a step is told why they did not fit.
const MISSES_TOLD_MAX: usize = 20;
/// Most notices waiting for a slow reader; it misses the oldest.
const NOTICES_QUEUED_MAX: usize = 256;

/// What connections and handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) matchers: Vec<Matcher>,
    /// By the runtime's clock, which a test may have stopped.
    pub(crate) started: Instant,
    pub(crate) notices: broadcast::Sender<Notice>,
    state: Mutex<State>,
    /// Bumped after every change, so that waiting is looking again.
    changes: watch::Sender<u64>,
}

/// What changes while the server runs.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) seen: VecDeque<Seen>,
    pub(crate) count: usize,
    pub(crate) finished: usize,
    pub(crate) illegal: Failures<Illegal>,
    pub(crate) unexpected: Failures<Unexpected>,
    pub(crate) open_gates: BTreeSet<String>,
    pub(crate) reached_gates: BTreeSet<String>,
    pub(crate) cache: PromptCache,
    pub(crate) issued: Issued,
    pub(crate) record_error: Option<String>,
    record: Option<Record>,
    steps: Vec<StepUse>,
    bytes_kept: usize,
}

/// Failures of one sort: all counted, the first ones kept.
#[derive(Debug, Clone)]
pub(crate) struct Failures<T> {
    pub(crate) count: usize,
    pub(crate) first: Vec<T>,
}

/// How often a step matched and played.
#[derive(Debug, Clone, Copy, Default)]
struct StepUse {
    /// Requests that met all conditions but `nth`.
    matched: u32,
    played: u32,
}

/// Which step answers.
#[derive(Debug)]
pub(crate) enum Choice {
    Step {
        index: usize,
        captured: Captured,
    },
    /// None; per unused step, why it did not fit.
    None {
        misses: Vec<String>,
    },
}

impl Shared {
    pub(crate) fn new(script: Script, matchers: Vec<Matcher>, record: Option<Record>) -> Self {
        let state = State {
            seen: VecDeque::new(),
            count: 0,
            finished: 0,
            illegal: Failures::default(),
            unexpected: Failures::default(),
            open_gates: BTreeSet::new(),
            reached_gates: BTreeSet::new(),
            cache: PromptCache::default(),
            issued: Issued::new(script.seed),
            record,
            record_error: None,
            steps: vec![StepUse::default(); script.steps.len()],
            bytes_kept: 0,
        };
        Self {
            script,
            matchers,
            started: Instant::now(),
            notices: broadcast::Sender::new(NOTICES_QUEUED_MAX),
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
        }
    }

    /// The state, to look at.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic of another holder leaves counters behind, nothing half linked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes everyone who waits for something in it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changes.send_modify(|version| *version = version.wrapping_add(1));
        result
    }

    /// Returns when the condition holds.
    pub(crate) async fn until(&self, holds: impl Fn(&State) -> bool) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if holds(&self.state()) {
                return;
            }
            // The sender lives in self, so this cannot fail while we are here.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// A gate is reached; returns when it is open.
    pub(crate) async fn pass_gate(&self, request: usize, name: &str) {
        let open = self.change(|state| {
            state.reached_gates.insert(name.to_owned());
            state.open_gates.contains(name)
        });
        if !open {
            // Nobody may be listening, which is fine.
            let _ = self.notices.send(Notice::Waiting { request, gate: name.to_owned() });
            self.until(|state| state.open_gates.contains(name)).await;
        }
    }

    pub(crate) fn open_gate(&self, name: &str) {
        self.change(|state| state.open_gates.insert(name.to_owned()));
    }

    /// An answer has ended.
    pub(crate) fn finish(&self, number: usize, ending: Ending, hung_up: bool) {
        let notice = self.change(|state| {
            state.finished += 1;
            let seen = state.seen_mut(number)?;
            seen.reply.ending = Some(ending);
            seen.hung_up = hung_up;
            let seen = seen.clone();
            state.write_record(|record| record.reply(&seen));
            Some(Notice::finished(&seen))
        });
        if let Some(notice) = notice {
            let _ = self.notices.send(notice);
        }
    }
}

impl State {
    /// Remembers a request that just arrived.
    pub(crate) fn arrive(&mut self, seen: Seen) {
        self.write_record(|record| record.request(&seen));
        self.bytes_kept += seen.raw.len();
        self.seen.push_back(seen);
        while self.seen.len() > REQUESTS_KEPT_MAX || self.bytes_kept > REQUEST_BYTES_KEPT_MAX {
            // One whose answer is still on the way stays: its reply would be missing from the record.
            let Some(oldest) = self.seen.iter().position(|seen| seen.reply.ending.is_some()) else { break };
            let dropped = self.seen.remove(oldest);
            self.bytes_kept -= dropped.map_or(0, |seen| seen.raw.len());
        }
    }

    /// A request whose details are still kept.
    pub(crate) fn seen_mut(&mut self, number: usize) -> Option<&mut Seen> {
        // The newest are looked for most.
        self.seen.iter_mut().rev().find(|seen| seen.number == number)
    }

    /// More of an answer is on the wire.
    pub(crate) fn progress(&mut self, number: usize, bytes: usize, events: &[Event]) {
        if let Some(seen) = self.seen_mut(number) {
            seen.reply.bytes += bytes;
            let new = events.iter().skip(seen.reply.events.len());
            let new: Vec<_> =
                new.map(|event| SentEvent { name: event.name.clone(), data: event.data.clone() }).collect();
            seen.reply.events.extend(new);
        }
    }

    /// Chooses the first step in order that is not used up and whose conditions hold, and counts it as played.
    pub(crate) fn choose(&mut self, facts: &Facts, script: &Script, matchers: &[Matcher]) -> Choice {
        let mut chosen = None;
        let mut misses = Vec::new();
        let mut missed = 0;
        // Every step sees every request, so that `nth` counts the same whichever step answers.
        for (index, (step, matcher)) in script.steps.iter().zip(matchers).enumerate() {
            let uses = &mut self.steps[index];
            let left = match step.times {
                Times::Always => true,
                Times::AtMost(times) => uses.played < times,
            };
            let fits = matcher.judge(facts).and_then(|captured| {
                uses.matched = uses.matched.saturating_add(1);
                if matcher.nth().is_none_or(|nth| nth == uses.matched) { Ok(captured) } else { Err("nth") }
            });
            match fits {
                Ok(captured) if left && chosen.is_none() => {
                    uses.played = uses.played.saturating_add(1);
                    chosen = Some(Choice::Step { index, captured });
                }
                Err(condition) if left => {
                    missed += 1;
                    if missed > MISSES_TOLD_MAX {
                        continue;
                    }
                    misses.push(format!("step {} is unused, its `{condition}` does not fit", index + 1));
                }
                Ok(_) | Err(_) => {}
            }
        }
        if let Some(untold) = missed.checked_sub(MISSES_TOLD_MAX).filter(|untold| *untold > 0) {
            misses.push(format!("{untold} more steps do not fit"));
        }
        chosen.unwrap_or(Choice::None { misses })
    }

    /// Steps that could still play and are not for side calls.
    pub(crate) fn steps_left(&self, script: &Script) -> Vec<usize> {
        let left = |(index, step): (usize, &crate::script::Step)| match step.times {
            Times::AtMost(times) if self.steps[index].played < times => Some(index + 1),
            Times::AtMost(_) | Times::Always => None,
        };
        script.steps.iter().enumerate().filter_map(left).collect()
    }

    fn write_record(&mut self, write: impl FnOnce(&mut Record) -> std::io::Result<()>) {
        if let Some(record) = &mut self.record
            && let Err(error) = write(record)
        {
            self.record_error.get_or_insert(error.to_string());
        }
    }
}

impl<T> Failures<T> {
    pub(crate) fn push(&mut self, failure: T) {
        self.count += 1;
        if self.first.len() < FAILURES_KEPT_MAX {
            self.first.push(failure);
        }
    }
}

impl<T> Default for Failures<T> {
    fn default() -> Self {
        Self { count: 0, first: Vec::new() }
    }
}
