//! From the reason for the end to the result.

use std::time::Duration;

use pelton_model::stream::Sender;

use super::Engine;
use super::input::Answered;
use crate::account::Tally;
use crate::event::{Event, Outcome};
use crate::transcript::TranscriptError;
use crate::turn::live::{CUT_BY_LIMIT, LastReply};
use crate::turn::{Blocked, CostWatch, End, Seen, Terminal, ends_at_once};

/// How a submission ended, before it is put into words.
pub(super) enum Ending {
    /// The loop ended.
    Loop(End),
    /// The loop could not begin: the prompt cannot be written down.
    Unrecorded,
    /// The model was not to be asked any more.
    BeforeLoop(Terminal),
    /// The prompt was answered without a model.
    Local(Answered),
}

impl Ending {
    /// Something that must be on the disk is not.
    pub fn unrecorded(last: &mut LastReply, error: TranscriptError) -> Self {
        last.unrecorded = Some(error);
        Self::Unrecorded
    }
}

impl Engine {
    /// Why the model is not asked where the window is full.
    fn why_full(&self) -> &'static str {
        let compact = &self.options.compact;
        match (compact.enabled, compact.auto) {
            (true, true) => {
                "The conversation fills the context window, and nothing more can be left out of it."
            }
            (true, false) => {
                "The conversation fills the context window, and compacting by itself is switched off: /compact or /context \
                 make room."
            }
            (false, _) => {
                "The conversation fills the context window, and compaction is switched off: /context drop makes room, or \
                 /clear begins anew."
            }
        }
    }

    /// Turns the reason for the end into a result. An error the user must see is said first, in the assistant's
    /// role.
    pub(super) async fn outcome(
        &mut self,
        ending: Ending,
        started_at: Duration,
        tally: Tally,
        mut last: LastReply,
        events: &Sender<Event>,
    ) -> Outcome {
        let mut unsaid_errors = Vec::new();
        let refused = last.stop_reason == Some(pelton_wire::stop::StopReason::Refusal);
        let (terminal, asked, local) = match ending {
            Ending::Loop(End { terminal, unsaid }) => {
                unsaid_errors.extend(last.held_back.take().filter(|_| unsaid.is_some()));
                (terminal, true, None)
            }
            Ending::Unrecorded => (Terminal::Unrecorded, true, None),
            Ending::BeforeLoop(terminal) => (terminal, false, None),
            Ending::Local(answered) => (Terminal::Completed, false, Some(answered)),
        };
        let aborted = matches!(terminal, Terminal::AbortedStreaming | Terminal::AbortedToolExecution);
        // Whoever wants something else at once does not call what ran until then a failure.
        let made_way = aborted && self.queue.is_urgent();
        // Where nothing can be written down, that is what ended it, and not the user.
        let unrecorded = last.unrecorded.as_ref().filter(|_| aborted);
        let terminal =
            unrecorded.and_then(|_| ends_at_once(Seen::Blocked(Blocked::Unrecorded))).unwrap_or(terminal);
        // What broke an answer whose calls went well is no reason for an end that comes later.
        let error = last.error.take().filter(|_| terminal.is_of_the_api());
        let mut errors = Vec::new();
        let mut text = last.words().unwrap_or_default();
        // Taken in any case: it is no answer to the next prompt.
        let structured_output = self.structured.as_ref().and_then(|tool| tool.take());
        let structured_output = structured_output.filter(|_| terminal == Terminal::Completed && !refused);
        if let Some(output) = &structured_output {
            text = output.to_string();
        }
        if let Some(answered) = &local {
            text.clone_from(&answered.text);
        }
        match terminal {
            Terminal::Completed | Terminal::CompletedOverHooks if refused && text.is_empty() => {
                text = "The model declined to answer.".to_owned();
            }
            Terminal::NoAnswer => errors.push("The model gave no answer".to_owned()),
            Terminal::Completed | Terminal::CompletedOverHooks | Terminal::ToolDeferred => {}
            // What the hook said was told when it said it; the result has no words of its own.
            Terminal::StopHookPrevented | Terminal::HookStopped => text.clear(),
            Terminal::BudgetExhausted => {
                let cap = self.options.max_budget_usd.unwrap_or_default();
                errors.push(format!("Reached maximum budget (${cap})"));
            }
            Terminal::StructuredOutputRetries => {
                errors.push("The model did not bring the structured output it was asked for".to_owned());
            }
            Terminal::MaxTurns => {
                let turns = self.options.limits.turns_max.unwrap_or_default();
                errors.push(format!("Reached maximum number of turns ({turns})"));
            }
            Terminal::AbortedStreaming | Terminal::AbortedToolExecution if made_way => text.clear(),
            Terminal::AbortedStreaming | Terminal::AbortedToolExecution => {
                errors.push("Interrupted by the user".to_owned());
            }
            Terminal::Unrecorded => {
                errors.extend(last.unrecorded.as_ref().map(ToString::to_string).or(last.not_run.take()));
            }
            Terminal::PromptTooLong
            | Terminal::ImageError
            | Terminal::BlockingLimit
            | Terminal::RapidRefill
            | Terminal::ModelError
            | Terminal::ModelUnreachable
            | Terminal::MalformedToolUse
            | Terminal::Repetitive
            | Terminal::ToolDeferredUnavailable => {
                let (message, name) = match &error {
                    Some(error) => (format!("API Error: {error}"), error.kind.wire_name()),
                    None if terminal == Terminal::RapidRefill => {
                        (last.full.take().unwrap_or_default(), "invalid_request")
                    }
                    None if terminal == Terminal::BlockingLimit => (
                        format!("{} {}", self.why_full(), last.full.as_deref().unwrap_or_default()),
                        "invalid_request",
                    ),
                    None if terminal == Terminal::MalformedToolUse => {
                        ("The model kept calling tools in ways that cannot be run.".to_owned(), "unknown")
                    }
                    None if terminal == Terminal::ToolDeferredUnavailable => {
                        let tool = last.deferred.as_ref().map_or("", |deferred| &deferred.tool);
                        (format!("{tool} was put off and is not available any more."), "unknown")
                    }
                    None if terminal == Terminal::Repetitive => {
                        (last.repetition.clone().unwrap_or_default(), "unknown")
                    }
                    None => (CUT_BY_LIMIT.to_owned(), "max_output_tokens"),
                };
                text.clone_from(&message);
                match self.session.record_error(message, name) {
                    Ok(synthetic) => events.send(Event::Synthetic(synthetic)).await,
                    Err(error) => errors.push(error.to_string()),
                }
            }
        }
        let is_rest = terminal.is_well() && structured_output.is_none();
        let text_before = if is_rest { last.begun } else { String::new() };
        errors.append(&mut unsaid_errors);
        let by_model = self.kin.spending.by_model();
        self.session.note_spent(&by_model);
        // Everything said is on the disk before the result is: what was acknowledged cannot be lost.
        let synced = self.session.sync().await;
        let settled = Seen::Settled { terminal, kept: synced.is_ok() };
        let terminal = ends_at_once(settled).unwrap_or(terminal);
        errors.extend(synced.err().map(|error| error.to_string()));
        let is_error = match terminal {
            Terminal::Completed | Terminal::CompletedOverHooks => {
                refused || local.is_some_and(|answered| answered.is_error)
            }
            Terminal::StopHookPrevented | Terminal::HookStopped | Terminal::ToolDeferred => false,
            Terminal::AbortedStreaming | Terminal::AbortedToolExecution => !made_way,
            _ => true,
        };
        Outcome {
            terminal,
            asked,
            is_error,
            text,
            text_before,
            structured_output,
            errors,
            stop_reason: last.stop_reason,
            error: error.filter(|_| terminal.is_of_the_api()),
            // A call that was settled before the prompt is part of it.
            num_turns: if asked || aborted || tally.user_messages > 0 { 1 + tally.user_messages } else { 0 },
            duration: self.options.world.monotonic().saturating_sub(started_at),
            duration_api: tally.duration_api,
            first_token_after: tally.first_token_after,
            usage: tally.usage,
            by_model,
            cost_usd: self.kin.spending.cost_usd(),
            fast_mode: self.fast_mode(),
            denials: self.kin.denials(tally.denials),
            transitions: tally.transitions,
            loop_events: tally.loop_events,
            retries: tally.retries,
            tool_calls: tally.tool_calls,
            speculation: tally.speculation,
            deferred: last.deferred.filter(|_| terminal == Terminal::ToolDeferred),
        }
    }

    /// A handle to see what the session has cost, at any time.
    pub fn cost_watch(&self) -> CostWatch {
        CostWatch::of(&self.kin.spending)
    }
}
