//! One submission and its result.

use std::collections::BTreeMap;
use std::time::Duration;

use pelton::Limits;
use pelton::history::{Kind, Piece};
use pelton::{Event, Outcome, Terminal, Transition};
use pelton_model::DeltaKind;
use serde_json::Value;

use super::{Checker, Heard, call_of};

/// An interrupt takes effect within this.
const INTERRUPT_MAX: Duration = Duration::from_millis(100);

impl Checker {
    pub(super) fn outcome_is_right(&mut self, heard: &Heard) {
        let results = heard.events.iter().filter(|event| matches!(event, Event::Result(_))).count();
        let last = matches!(heard.events.last(), Some(Event::Result(_)));
        if heard.ended {
            self.expect(results == 1 && last, || format!("{results} results, the last event is one: {last}"));
        } else {
            self.expect(results == usize::from(last), || "something follows the result".to_owned());
        }
        if heard.interrupted_at.is_some() {
            let took = heard.end_took;
            self.expect(took <= INTERRUPT_MAX, || format!("an interrupt took effect after {took:?}"));
        }
        self.calls_are_answered(heard);
        self.deltas_and_texts_agree(heard);
        if let Some(outcome) = heard.outcome() {
            self.parts_agree(heard, &outcome);
            self.bounds_hold(heard, &outcome);
        }
    }

    /// P9, P4: every call has one result, in the order of the calls.
    fn calls_are_answered(&mut self, heard: &Heard) {
        let calls: Vec<&str> = heard.entries().filter_map(|entry| call_of(entry)).collect();
        let results: Vec<&str> = heard
            .entries()
            .filter_map(|entry| match &entry.kind {
                Kind::ToolResult { call, .. } => Some(&**call),
                _ => None,
            })
            .collect();
        let mut rest = calls.iter();
        let in_order = results.iter().all(|result| rest.any(|call| call == result));
        self.expect(in_order, || format!("results {results:?} of calls {calls:?} are out of order"));
        if heard.outcome().is_some_and(|outcome| outcome.terminal != Terminal::Unrecorded) {
            let open = heard
                .entries()
                .filter(|entry| !self.withdrawn.contains(&entry.id))
                .filter_map(|entry| call_of(entry))
                .find(|call| !results.contains(call))
                .map(|call| format!("{call} was told and has no result"));
            self.broken.extend(open);
        }
    }

    /// What counts is what was shown, once.
    fn deltas_and_texts_agree(&mut self, heard: &Heard) {
        let mut shown: BTreeMap<u32, String> = BTreeMap::new();
        let mut recorded = 0;
        let (mut streams, mut is_cut, mut is_behind) = (false, false, false);
        for event in &heard.events {
            match event {
                Event::Requesting => {
                    (shown, recorded, streams) = (BTreeMap::new(), 0, false);
                    (is_cut, is_behind) = (false, false);
                }
                Event::Cut { .. } => is_cut = true,
                Event::Transition(_) => is_behind = true,
                // The rest of an answer that was kept: it is another question, which waits before it is put.
                Event::Retry(notice) if is_behind => {
                    self.expect(is_cut && !notice.withdrawn, || {
                        "a question waits though the answer before it was not cut".to_owned()
                    });
                }
                Event::Delta(delta) => {
                    streams = true;
                    if let (DeltaKind::Text(text), Some(index)) = (&delta.kind, delta.index) {
                        shown.entry(index).or_default().push_str(text);
                    }
                }
                Event::Retry(notice) => {
                    self.expect(recorded == 0, || {
                        format!("{recorded} blocks were recorded, then the answer was asked for again")
                    });
                    self.expect(notice.withdrawn || shown.is_empty(), || {
                        "text was shown and not taken back by the retry".to_owned()
                    });
                }
                Event::Message(entry) => {
                    if let Kind::Assistant { piece, .. } = &entry.kind {
                        recorded += 1;
                        let text = text_of(&entry.json);
                        let known = !streams || *piece != Piece::Text || shown.values().any(|s| *s == text);
                        self.expect(known, || format!("recorded, but not what was shown: {text:?}"));
                    }
                }
                _ => {}
            }
        }
        let mut words: Vec<&String> = self.told.iter().flat_map(|told| &told.words).collect();
        words.sort();
        let twice = words.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone());
        self.broken.extend(twice.map(|word| format!("{word} counts twice")));
    }

    /// Reason, flag, words and what was shown say the same.
    fn parts_agree(&mut self, heard: &Heard, outcome: &Outcome) {
        let Outcome { terminal, is_error, text, errors, .. } = outcome;
        let shown: Vec<&str> = heard
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Synthetic(synthetic) => Some(synthetic.text.as_str()),
                _ => None,
            })
            .collect();
        let mut wrong = |holds: bool, what: &str| {
            self.expect(holds, || format!("{what}: {terminal:?}, error {is_error}, {text:?}, {errors:?}"));
        };
        match terminal {
            Terminal::Completed | Terminal::CompletedOverHooks => {
                wrong(!text.is_empty(), "a completed run says nothing");
                wrong(*is_error || errors.is_empty(), "no error, yet errors");
                wrong(shown.is_empty(), "an error was shown although the run completed");
            }
            Terminal::StopHookPrevented | Terminal::HookStopped => {
                wrong(text.is_empty(), "a run that a hook ended has words");
                wrong(*is_error || errors.is_empty(), "no error, yet errors");
                wrong(shown.is_empty(), "an error was shown although a hook ended the run");
            }
            Terminal::MaxTurns
            | Terminal::NoAnswer
            | Terminal::BudgetExhausted
            | Terminal::StructuredOutputRetries
            | Terminal::AbortedStreaming
            | Terminal::AbortedToolExecution
            | Terminal::Unrecorded => {
                wrong(*is_error && !errors.is_empty(), "a failure without a reason");
                wrong(shown.is_empty(), "an error was shown that nobody recovers from or waits for");
            }
            _ => {
                wrong(*is_error, "a failure that is no error");
                wrong(shown.len() == 1 || heard.disk_failed, "the error was not shown once");
                wrong(shown.iter().all(|shown| shown == text), "the error shown is not the result's");
            }
        }
        if let (Terminal::Completed, false) = (terminal, *is_error) {
            let structured = outcome.structured_output.is_some();
            self.expect(structured == self.setup.schema, || "an answer in the wrong form".to_owned());
        }
        let count = |wanted: &dyn Fn(&Event) -> bool| {
            heard.events.iter().filter(|event| wanted(event)).count() as u32
        };
        let retries = count(&|event| matches!(event, Event::Retry(_)));
        self.expect(outcome.retries == retries, || {
            format!("{retries} retries were told, {} counted", outcome.retries)
        });
        let calls = heard.entries().filter(|entry| call_of(entry).is_some()).count() as u32;
        self.expect(outcome.tool_calls == calls, || {
            format!("{calls} calls were told, {} counted", outcome.tool_calls)
        });
    }

    /// Every way to go on has a bound.
    fn bounds_hold(&mut self, heard: &Heard, outcome: &Outcome) {
        let mut went_on: BTreeMap<&'static str, u32> = BTreeMap::new();
        for event in &heard.events {
            if let Event::Transition(transition) = event {
                *went_on.entry(transition.name()).or_default() += 1;
            }
        }
        self.expect(went_on == outcome.transitions, || {
            format!("the loop went on {went_on:?}, the result says {:?}", outcome.transitions)
        });
        let limits = Limits::default();
        let in_one_piece = heard
            .events
            .iter()
            .filter(|event| matches!(event, Event::Retry(notice) if notice.non_streaming))
            .count();
        for transition in Transition::ALL {
            let most = match transition {
                Transition::NextTurn => self.setup.turns_max.unwrap_or(u32::MAX),
                Transition::CollapseDrainRetry => limits.drains_max.into(),
                Transition::ReactiveCompactRetry
                | Transition::MaxOutputTokensEscalate
                | Transition::EmptyReplyNudge => 1,
                Transition::MaxOutputTokensRecovery => limits.output_recoveries_max.into(),
                Transition::StopHookBlocking => limits.stop_hook_blocks_max.into(),
                Transition::FallbackRetry => (self.setup.fallback_models.len() + in_one_piece) as u32,
                Transition::StreamCutRetry => limits.stream_cuts_max.into(),
                Transition::PauseTurn => limits.pauses_max.into(),
                Transition::RequestRepair => limits.repairs_max.into(),
                Transition::StructuredOutputRetry => limits.structured_retries_max.into(),
                // At most three small ones follow each that brings enough.
                Transition::TokenBudgetContinuation => {
                    u32::from(self.setup.output_tokens_wanted.is_some()) * 100
                }
                _ => u32::MAX,
            };
            let times = went_on.get(transition.name()).copied().unwrap_or_default();
            self.expect(times <= most, || {
                format!(
                    "the loop went on {times} times for {}, at most {most} are allowed",
                    transition.name()
                )
            });
        }
    }
}

/// The text of a content array.
fn text_of(json: &[u8]) -> String {
    let blocks: Vec<Value> = serde_json::from_slice(json).unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
