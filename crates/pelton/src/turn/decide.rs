//! What to do next, and why: facts in, move out. The only place that chooses to go on or to stop.
//!
//! Every way to go on is a [`Transition`] and has a bound that nothing resets within a submission; every way to
//! stop is a [`Terminal`]. Ids in comments are the rows of the loop specification.

use super::memory::{Gauges, Limits, Memory};
use super::reasons::{Terminal, Transition};

/// What was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    /// The model was not asked.
    Blocked(Blocked),
    /// The model was asked.
    Reply(Reply),
    /// The tools of its answer have ended and are recorded.
    Tools(Tools),
    /// What there was of its answer does not count any more.
    Discarded {
        /// That is on record.
        recorded: bool,
    },
    /// Staged folds of the context were committed, or there were none.
    Drained {
        /// The context became smaller.
        freed: bool,
    },
    /// The context was compacted, or could not be.
    Compacted(Compaction),
    /// The stop hooks have ended.
    StopHooks(Verdict),
    /// It is over, and everything said was to be put on the disk.
    Settled {
        /// Why it is over.
        terminal: Terminal,
        /// It is there.
        kept: bool,
    },
}

/// Why the model was not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Too little of the context window would be left for an answer, and compacting did not help.
    ContextFull,
    /// The context fills again as fast as it is emptied.
    Refilled,
    /// The money is spent.
    Budget,
    /// The user interrupted.
    Aborted,
    /// What was said cannot be recorded.
    Unrecorded,
    /// A call was put off before, and its tool is not there any more.
    ToolGone,
}

/// How compacting the context ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compaction {
    /// It became smaller.
    Smaller,
    /// It did not.
    NoSmaller,
    /// The user interrupted.
    Aborted,
    /// It cannot be recorded.
    Unrecorded,
}

/// How asking the model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reply {
    /// It wants tools.
    ToolUse,
    /// It wants tools, and the output limit cut the last of its calls, which is answered with the others.
    ToolUseCut,
    /// It has finished.
    EndTurn,
    /// It has finished without the structured output it was asked for.
    Unstructured,
    /// A server-side tool loop was paused: the answer goes back as it is.
    Paused {
        /// There is text in it.
        said_something: bool,
        /// A structured output was asked for, and this is none.
        unstructured: bool,
    },
    /// Nothing usable in it: no text and no call.
    Empty,
    /// It declined.
    Refused,
    /// An error that may still be recovered from, and is not shown until that failed.
    Withheld(Withheld),
    /// The request was refused for something that can be left out of it.
    Repairable {
        /// What can be left out.
        rung: Rung,
        /// What it is if that was done already.
        otherwise: Failure,
    },
    /// This model does not answer, and there is another.
    Fallback,
    /// M6: its streams do not come through, and the same question can be put once more for an answer in one piece.
    NoStream,
    /// No answer.
    Failed(Failure),
    /// The last of the money is spent.
    OverBudget(Bought),
    /// The user interrupted.
    Aborted,
}

/// What the last of the money bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bought {
    /// Attempts in vain, or an answer whose stream broke.
    Nothing,
    /// An answer that the output limit cut.
    Part,
    /// A whole answer: what was held back before it is recovered from.
    Answer,
}

/// Errors that may still be recovered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Withheld {
    /// W1: the prompt does not fit the context window.
    PromptTooLong {
        /// Compacting could free as much as it is too long.
        can_shrink: bool,
    },
    /// W1: the context window filled up while the model answered, so there was less room than anybody knew.
    WindowFilled {
        /// Compacting could make room.
        can_shrink: bool,
    },
    /// W2: an image or the request's bytes are too large.
    MediaTooLarge,
    /// W3: the output limit cut the answer.
    OutputTruncated {
        /// The limit was low and the model allows more.
        cap_can_rise: bool,
    },
    /// M4: the stream broke after something of the answer was complete.
    StreamCut {
        /// What was.
        complete: Complete,
        /// Who is asked for the rest.
        rest: Rest,
    },
}

/// What of an answer was complete when its stream broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Complete {
    /// Text, and no calls.
    Text,
    /// Calls beside text, or calls that may have changed something: they are made before anybody is asked for the rest.
    Calls,
    /// Nothing but calls that only look, or have not begun.
    Looks,
}

/// Who is asked for the rest of an answer whose stream broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rest {
    /// The same model, after a wait.
    Same,
    /// The next model.
    Next,
    /// Nobody: patience is used up, or the failure is none that passes.
    Nobody(Failure),
}

/// What can be left out of a refused request. Each is tried once per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rung {
    /// Thinking that is bound to another conversation or model.
    Thinking,
    /// The image the error names.
    Image,
    /// Media, oldest first, until the request is small enough.
    Media,
    /// The tool whose schema the error names.
    Tool,
    /// The beta features the error names, with what needs them.
    Beta,
    /// Content blocks of kinds that the server does not know.
    Block,
    /// Content blocks of every kind that can be left out, after those it named.
    EveryBlock,
    /// The tools of servers, all of them, after the one it named.
    EveryTool,
}

/// Why there is no answer, as far as it makes a difference here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The API refused, or retries are used up.
    Api,
    /// An image or the request's bytes are too large.
    Media,
    /// No API answered.
    Unreachable,
    /// What was said cannot be recorded.
    Unrecorded,
}

/// How the tools of one answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tools {
    /// Results are recorded.
    Done,
    /// Results are recorded, but not one call was usable: unknown tools or malformed input only.
    Unusable,
    /// The structured output is there.
    Structured,
    /// A structured output was given, but it does not fit its schema.
    Misstructured,
    /// Results are recorded, but the same call brings the same again and again.
    Repeating,
    /// A tool hook said: do not continue.
    HookStopped,
    /// A tool hook put the only call off: it has no result.
    Deferred,
    /// The user interrupted.
    Aborted,
    /// A result could not be recorded.
    Unrecorded,
}

/// What the stop hooks said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// H1: nothing against it.
    Pass,
    /// H2: go on, and why.
    Block,
    /// H3: do not continue.
    Prevent,
    /// The user interrupted.
    Aborted,
    /// What they said could not be recorded.
    Unrecorded,
}

/// The next move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// Wait for the tools of this answer.
    FinishTools,
    /// Forget this answer, and what its calls found.
    DiscardAnswer,
    /// Commit the staged folds of the context.
    DrainCollapse,
    /// Compact the context because the API refused it.
    ReactiveCompact,
    /// Ask the stop hooks.
    RunStopHooks,
    /// Ask the model again.
    Continue(Transition),
    /// The submission is over.
    Stop(Terminal),
}

/// Chooses the next move.
pub fn decide(memory: &Memory, limits: &Limits, gauges: Gauges, seen: Seen) -> Next {
    let used_up = limits.turns_max.is_some_and(|max| memory.turns + 1 >= max);
    match choose(memory, limits, gauges, seen) {
        // B2, X4: whatever there would be to ask, the model has answered as often as it may.
        Next::Continue(transition) if used_up && asks_anew(seen, transition) => {
            Next::Stop(Terminal::MaxTurns)
        }
        next => next,
    }
}

/// Whether a question is another one than the last. The same once more, because it failed, is no turn of its own.
pub fn asks_anew(seen: Seen, transition: Transition) -> bool {
    match transition {
        Transition::NextTurn
        | Transition::MaxOutputTokensRecovery
        | Transition::StopHookBlocking
        | Transition::TokenBudgetContinuation
        | Transition::PauseTurn
        | Transition::EmptyReplyNudge
        | Transition::StructuredOutputRetry => true,
        // Results are something new to whoever is asked.
        Transition::FallbackRetry => matches!(seen, Seen::Tools(_)),
        Transition::CollapseDrainRetry
        | Transition::ReactiveCompactRetry
        | Transition::MaxOutputTokensEscalate
        | Transition::RequestRepair
        | Transition::StreamCutRetry => false,
    }
}

fn choose(memory: &Memory, limits: &Limits, gauges: Gauges, seen: Seen) -> Next {
    use Next::{Continue, FinishTools, RunStopHooks, Stop};
    match seen {
        Seen::Blocked(Blocked::ContextFull) => Stop(Terminal::BlockingLimit),
        Seen::Blocked(Blocked::Refilled) => Stop(Terminal::RapidRefill),
        Seen::Blocked(Blocked::Budget) | Seen::Reply(Reply::OverBudget(_)) => Stop(Terminal::BudgetExhausted),
        Seen::Blocked(Blocked::Unrecorded) | Seen::Compacted(Compaction::Unrecorded) => {
            Stop(Terminal::Unrecorded)
        }
        Seen::Blocked(Blocked::ToolGone) => Stop(Terminal::ToolDeferredUnavailable),
        Seen::Blocked(Blocked::Aborted)
        | Seen::Reply(Reply::Aborted)
        | Seen::Compacted(Compaction::Aborted) => Stop(Terminal::AbortedStreaming),

        Seen::Reply(Reply::ToolUse | Reply::ToolUseCut) => FinishTools,
        Seen::Reply(Reply::EndTurn) => RunStopHooks,
        Seen::Reply(Reply::Refused) => Stop(Terminal::Completed),
        Seen::Reply(Reply::Withheld(withheld)) => recover(memory, limits, withheld),
        Seen::Reply(Reply::Failed(failure)) => Stop(failed(failure)),

        Seen::Reply(Reply::Unstructured) => structured_again(memory, limits),
        Seen::Reply(Reply::Paused { .. }) if memory.pauses < limits.pauses_max => {
            Continue(Transition::PauseTurn)
        }
        Seen::Reply(Reply::Paused { unstructured: true, .. }) => structured_again(memory, limits),
        Seen::Reply(Reply::Paused { said_something: true, .. }) => RunStopHooks,
        Seen::Reply(Reply::Paused { said_something: false, .. }) => Stop(Terminal::NoAnswer),
        Seen::Reply(Reply::Empty) if !memory.nudged => Continue(Transition::EmptyReplyNudge),
        Seen::Reply(Reply::Empty) => Stop(Terminal::NoAnswer),
        Seen::Reply(Reply::Fallback) | Seen::Discarded { recorded: true } => next_model(memory, limits),
        Seen::Discarded { recorded: false } => Stop(Terminal::Unrecorded),
        Seen::Reply(Reply::NoStream) if memory.in_one_piece < limits.in_one_piece_max => {
            Continue(Transition::FallbackRetry)
        }
        Seen::Reply(Reply::NoStream) => Stop(Terminal::ModelError),
        Seen::Reply(Reply::Repairable { rung, .. })
            if memory.repaired_in_a_row & rung.bit() == 0 && memory.repairs < limits.repairs_max =>
        {
            Continue(Transition::RequestRepair)
        }
        Seen::Reply(Reply::Repairable { otherwise: Failure::Media, .. }) => {
            recover(memory, limits, Withheld::MediaTooLarge)
        }
        Seen::Reply(Reply::Repairable { otherwise, .. }) => Stop(failed(otherwise)),

        Seen::Drained { freed: true } => Continue(Transition::CollapseDrainRetry),
        Seen::Drained { freed: false } if !memory.compacted => Next::ReactiveCompact,
        Seen::Compacted(Compaction::Smaller) => Continue(Transition::ReactiveCompactRetry),
        Seen::Drained { freed: false } | Seen::Compacted(Compaction::NoSmaller) => Stop(unrecovered(memory)),

        Seen::Tools(tools) => after_tools(memory, limits, tools),

        Seen::StopHooks(Verdict::Prevent) => Stop(Terminal::StopHookPrevented),
        Seen::StopHooks(Verdict::Aborted) => Stop(Terminal::AbortedToolExecution),
        Seen::StopHooks(Verdict::Unrecorded) => Stop(Terminal::Unrecorded),
        Seen::StopHooks(Verdict::Block) if memory.stop_hook_blocks < limits.stop_hook_blocks_max => {
            Continue(Transition::StopHookBlocking)
        }
        Seen::StopHooks(Verdict::Block) => Stop(Terminal::CompletedOverHooks),
        Seen::StopHooks(Verdict::Pass) if wants_more(memory, limits, gauges) => {
            Continue(Transition::TokenBudgetContinuation)
        }
        Seen::StopHooks(Verdict::Pass) => Stop(Terminal::Completed),

        // What may be lost is not called a success.
        Seen::Settled { terminal, kept: false } if terminal.is_well() => Stop(Terminal::Unrecorded),
        Seen::Settled { terminal, .. } => Stop(terminal),
    }
}

fn after_tools(memory: &Memory, limits: &Limits, tools: Tools) -> Next {
    use Next::{Continue, Stop};
    let rest = match memory.withheld {
        Some(Withheld::StreamCut { rest, .. }) => Some(rest),
        _ => None,
    };
    match tools {
        Tools::Aborted => Stop(Terminal::AbortedToolExecution),
        Tools::Unrecorded => Stop(Terminal::Unrecorded),
        Tools::HookStopped => Stop(Terminal::HookStopped),
        Tools::Deferred => Stop(Terminal::ToolDeferred),
        Tools::Structured => Stop(Terminal::Completed),
        Tools::Unusable if memory.unusable_in_a_row + 1 >= limits.unusable_in_a_row_max => {
            Stop(Terminal::MalformedToolUse)
        }
        Tools::Repeating if limits.stop_on_repetition => Stop(Terminal::Repetitive),
        Tools::Done | Tools::Unusable | Tools::Repeating if memory.call_was_cut => continued(memory, limits),
        Tools::Done | Tools::Unusable | Tools::Repeating | Tools::Misstructured => match rest {
            Some(Rest::Nobody(failure)) => Stop(failed(failure)),
            Some(Rest::Next) => next_model(memory, limits),
            Some(Rest::Same) | None if tools == Tools::Misstructured => structured_again(memory, limits),
            Some(Rest::Same) | None => Continue(Transition::NextTurn),
        },
    }
}

/// T5.
fn continued(memory: &Memory, limits: &Limits) -> Next {
    if memory.output_recoveries < limits.output_recoveries_max {
        Next::Continue(Transition::MaxOutputTokensRecovery)
    } else {
        Next::Stop(Terminal::ModelError)
    }
}

/// T8.
fn next_model(memory: &Memory, limits: &Limits) -> Next {
    if memory.fallbacks < limits.fallbacks_max {
        Next::Continue(Transition::FallbackRetry)
    } else {
        Next::Stop(Terminal::ModelError)
    }
}

/// Where a submission ends whose first question has not been asked, if this ends it.
pub fn ends_at_once(seen: Seen) -> Option<Terminal> {
    match decide(&Memory::default(), &Limits::default(), Gauges::default(), seen) {
        Next::Stop(terminal) => Some(terminal),
        _ => None,
    }
}

/// §8: the ladder of each withheld error.
fn recover(memory: &Memory, limits: &Limits, withheld: Withheld) -> Next {
    use Next::{Continue, DrainCollapse, ReactiveCompact, Stop};
    match withheld {
        Withheld::PromptTooLong { can_shrink: false } => Stop(Terminal::PromptTooLong),
        // What is there of the answer stays, and the rest of it is asked for.
        Withheld::WindowFilled { can_shrink: false } => continued(memory, limits),
        Withheld::PromptTooLong { .. } | Withheld::WindowFilled { .. }
            if !memory.drained_in_a_row && memory.drains < limits.drains_max =>
        {
            DrainCollapse
        }
        Withheld::PromptTooLong { .. } | Withheld::WindowFilled { .. } | Withheld::MediaTooLarge
            if !memory.compacted =>
        {
            ReactiveCompact
        }
        Withheld::PromptTooLong { .. } | Withheld::WindowFilled { .. } => Stop(Terminal::PromptTooLong),
        Withheld::MediaTooLarge => Stop(Terminal::ImageError),

        Withheld::OutputTruncated { cap_can_rise: true } if !memory.escalated => {
            Continue(Transition::MaxOutputTokensEscalate)
        }
        Withheld::OutputTruncated { .. } => continued(memory, limits),

        // F2, P8: another model begins anew, unless that would lose something.
        Withheld::StreamCut { complete: Complete::Looks, rest: Rest::Next }
            if memory.fallbacks < limits.fallbacks_max =>
        {
            Next::DiscardAnswer
        }
        Withheld::StreamCut { complete: Complete::Calls | Complete::Looks, .. } => Next::FinishTools,
        Withheld::StreamCut { rest: Rest::Same, .. } if memory.stream_cuts < limits.stream_cuts_max => {
            Continue(Transition::StreamCutRetry)
        }
        Withheld::StreamCut { rest: Rest::Same, .. } => Stop(Terminal::ModelError),
        Withheld::StreamCut { rest: Rest::Next, .. } => next_model(memory, limits),
        Withheld::StreamCut { rest: Rest::Nobody(failure), .. } => Stop(failed(failure)),
    }
}

/// The end of a ladder whose last rung broke.
fn unrecovered(memory: &Memory) -> Terminal {
    match memory.withheld {
        Some(Withheld::MediaTooLarge) => Terminal::ImageError,
        _ => Terminal::PromptTooLong,
    }
}

fn failed(failure: Failure) -> Terminal {
    match failure {
        Failure::Api => Terminal::ModelError,
        Failure::Media => Terminal::ImageError,
        Failure::Unreachable => Terminal::ModelUnreachable,
        Failure::Unrecorded => Terminal::Unrecorded,
    }
}

fn structured_again(memory: &Memory, limits: &Limits) -> Next {
    if memory.structured_retries < limits.structured_retries_max {
        Next::Continue(Transition::StructuredOutputRetry)
    } else {
        Next::Stop(Terminal::StructuredOutputRetries)
    }
}

/// B4: so many continuations in a row that brought little, and there is no more to come.
const SMALL_CONTINUATIONS_MAX: u8 = 3;
/// B4: this much of what is wanted is enough, in percent.
const OUTPUT_ENOUGH_PERCENT: u64 = 90;

/// B4: less than what is wanted, and still more to come.
fn wants_more(memory: &Memory, limits: &Limits, gauges: Gauges) -> bool {
    let Some(wanted) = limits.output_tokens_wanted else { return false };
    let small_in_a_row =
        memory.small_continuations_in_a_row + u8::from(memory.continuation_was_small(gauges));
    !is_enough(gauges.output_tokens, wanted) && small_in_a_row < SMALL_CONTINUATIONS_MAX
}

/// B4: whether so much is about what is wanted.
pub fn is_enough(written: u64, wanted: u64) -> bool {
    written.saturating_mul(100) >= wanted.saturating_mul(OUTPUT_ENOUGH_PERCENT)
}
