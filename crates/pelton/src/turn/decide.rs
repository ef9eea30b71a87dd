//! What to do next, and why: facts in, move out. The only place that chooses to go on or to stop.
//!
//! Every way to go on is a [`Transition`] and has a bound that nothing resets within a submission; every way to
//! stop is a [`Terminal`]. Ids in comments are the rows of the loop specification.

/// What was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    /// The model was not asked.
    Blocked(Blocked),
    /// The model was asked.
    Reply(Reply),
    /// The tools of its answer have ended and are recorded.
    Tools(Tools),
    /// Staged folds of the context were committed, or there were none.
    Drained {
        /// The context became smaller.
        freed: bool,
    },
    /// The context was compacted, or could not be.
    Compacted(Compaction),
    /// The stop hooks have ended.
    StopHooks(Verdict),
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
}

/// How asking the model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reply {
    /// It wants tools.
    ToolUse,
    /// It has finished.
    EndTurn,
    /// It has finished without the structured output it was asked for.
    Unstructured,
    /// A server-side tool loop was paused: the answer goes back as it is.
    Paused,
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
    /// No answer.
    Failed(Failure),
    /// There is an answer, but it took the last of the money.
    OverBudget,
    /// The user interrupted.
    Aborted,
}

/// Errors that may still be recovered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Withheld {
    /// W1: the prompt does not fit the context window.
    PromptTooLong {
        /// Compacting could free as much as it is too long.
        can_shrink: bool,
    },
    /// W2: an image or the request's bytes are too large.
    MediaTooLarge,
    /// W3: the answer was cut, by the output limit or on the way.
    OutputTruncated {
        /// The limit was low and the model allows more.
        cap_can_rise: bool,
    },
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

/// Why the loop went on.
///
/// ```
/// use pelton::Transition;
///
/// assert_eq!(Transition::NextTurn.name(), "next_turn");
/// assert!(Transition::ALL.contains(&Transition::FallbackRetry));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transition {
    /// T1: tools ran, results go back.
    NextTurn,
    /// T2: the prompt was too long; staged folds were committed.
    CollapseDrainRetry,
    /// T3: the prompt or its media were too large; the context was compacted.
    ReactiveCompactRetry,
    /// T4: the same request again with a higher output limit.
    MaxOutputTokensEscalate,
    /// T5: the model is asked to go on where it was cut.
    MaxOutputTokensRecovery,
    /// T6: a stop hook blocked; its words go to the model.
    StopHookBlocking,
    /// T7: more output was asked for than there is so far.
    TokenBudgetContinuation,
    /// T8: the next model is asked.
    FallbackRetry,
    /// T9: a paused answer goes back as it is.
    PauseTurn,
    /// T10: the model said nothing and is nudged.
    EmptyReplyNudge,
    /// T11: the request was refused; what it was refused for is left out.
    RequestRepair,
    /// The model is reminded of the structured output, or told what is wrong with it.
    StructuredOutputRetry,
}

/// Why the loop ended.
///
/// ```
/// use pelton::Terminal;
///
/// assert_eq!(Terminal::MaxTurns.name(), "max_turns");
/// assert!(Terminal::ALL.contains(&Terminal::Completed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Terminal {
    /// X1: a natural end.
    Completed,
    /// X1 against the will of the stop hooks, whose bound was reached.
    CompletedOverHooks,
    /// The model ended without an answer, and a nudge did not help.
    NoAnswer,
    /// X2: interrupted while the model answered, or was about to be asked.
    AbortedStreaming,
    /// X3: interrupted while tools or hooks ran.
    AbortedToolExecution,
    /// X4: the turn limit was reached.
    MaxTurns,
    /// X5: the prompt does not fit.
    PromptTooLong,
    /// X6: an image or the request is too large.
    ImageError,
    /// X7: the API refused, or its retries or our recoveries are used up.
    ModelError,
    /// X7: no API answered at all.
    ModelUnreachable,
    /// X7: the model kept asking for tools in ways that cannot be run.
    MalformedToolUse,
    /// X7: the model kept making the same call, which kept bringing the same.
    Repetitive,
    /// X8: too little of the context window is left.
    BlockingLimit,
    /// X8: the context window fills again as fast as it is emptied.
    RapidRefill,
    /// X9: a stop hook said: do not continue.
    StopHookPrevented,
    /// X10: a tool hook said: do not continue.
    HookStopped,
    /// A tool hook put the only call off: somebody decides about it before the conversation goes on.
    ToolDeferred,
    /// A call was put off, and its tool is not there any more.
    ToolDeferredUnavailable,
    /// B1: the money is spent.
    BudgetExhausted,
    /// The model did not bring the structured output it was asked for.
    StructuredOutputRetries,
    /// The conversation cannot be written down, so it does not go on.
    Unrecorded,
}

/// Bounds of one submission.
///
/// ```
/// let mut limits = pelton::Limits::default();
/// limits.turns_max = Some(5);
/// limits.stop_on_repetition = true;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// B2: how often the model may be asked because tools ran.
    pub turns_max: Option<u32>,
    /// How often staged folds are committed because the prompt was too long.
    pub drains_max: u8,
    /// How often a cut answer is continued.
    pub output_recoveries_max: u8,
    /// How often stop hooks may block.
    pub stop_hook_blocks_max: u8,
    /// B4: how many tokens of output are wanted.
    pub output_tokens_wanted: Option<u64>,
    /// How many further models there are.
    pub fallbacks_max: u8,
    /// How often a paused answer goes back.
    pub pauses_max: u8,
    /// How often refused requests are repaired.
    pub repairs_max: u8,
    /// How often the structured output is asked for again.
    pub structured_retries_max: u8,
    /// Answers in a row with nothing but unusable calls.
    pub unusable_in_a_row_max: u8,
    /// Whether a model that makes the same call again and again is stopped.
    pub stop_on_repetition: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns_max: None,
            drains_max: 8,
            output_recoveries_max: 3,
            stop_hook_blocks_max: 8,
            output_tokens_wanted: None,
            fallbacks_max: 0,
            pauses_max: 10,
            repairs_max: 16,
            structured_retries_max: 5,
            unusable_in_a_row_max: 3,
            stop_on_repetition: false,
        }
    }
}

/// Figures that choices depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Gauges {
    /// Tokens the model has written in this submission.
    pub output_tokens: u64,
}

/// What the loop remembers of this submission. Counters only grow; what is reset by progress says so in its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Trips to the model whose tools have ended.
    pub turns: u32,
    /// The error that is being recovered from.
    pub withheld: Option<Withheld>,
    /// Staged folds committed.
    pub drains: u8,
    /// Staged folds were committed and no answer came since.
    pub drained_in_a_row: bool,
    /// The one reactive compaction was tried.
    pub compacted: bool,
    /// The output limit was raised.
    pub escalated: bool,
    /// Cut answers continued.
    pub output_recoveries: u8,
    /// Blocks of stop hooks obeyed.
    pub stop_hook_blocks: u8,
    /// Times more output was asked for.
    pub budget_continuations: u32,
    /// The last of these that brought little, in a row.
    pub small_continuations_in_a_row: u8,
    /// Tokens written when more output was last asked for.
    pub output_at_continuation: u64,
    /// Models given up.
    pub fallbacks: u8,
    /// Paused answers sent back.
    pub pauses: u8,
    /// The one nudge was given.
    pub nudged: bool,
    /// Repairs made.
    pub repairs: u8,
    /// Repairs made since the last answer, one bit each.
    pub repaired_in_a_row: u8,
    /// Times the structured output was asked for again.
    pub structured_retries: u8,
    /// Answers in a row with nothing but unusable calls.
    pub unusable_in_a_row: u8,
    /// Why the loop last went on.
    pub last: Option<Transition>,
}

/// B4: a continuation that brings fewer tokens than this brings little.
const SMALL_CONTINUATION_TOKENS: u64 = 500;
/// B4: so many of them in a row, and there is no more to come.
const SMALL_CONTINUATIONS_MAX: u8 = 3;
/// B4: this much of what is wanted is enough, in percent.
const OUTPUT_ENOUGH_PERCENT: u64 = 90;

impl Memory {
    /// Notes what was seen and chosen.
    pub fn note(&mut self, gauges: Gauges, seen: Seen, next: Next) {
        match seen {
            Seen::Reply(Reply::Withheld(withheld)) => self.withheld = Some(withheld),
            Seen::Reply(Reply::Repairable { otherwise: Failure::Media, .. }) => {
                self.withheld = Some(Withheld::MediaTooLarge);
            }
            Seen::Reply(
                Reply::ToolUse | Reply::EndTurn | Reply::Unstructured | Reply::Paused | Reply::Empty,
            ) => {
                self.withheld = None;
                self.drained_in_a_row = false;
                self.repaired_in_a_row = 0;
            }
            Seen::Tools(tools) => {
                self.turns += 1;
                self.unusable_in_a_row =
                    if tools == Tools::Unusable { self.unusable_in_a_row + 1 } else { 0 };
            }
            _ => {}
        }
        if next == Next::ReactiveCompact {
            self.compacted = true;
        }
        let Next::Continue(transition) = next else { return };
        self.last = Some(transition);
        match transition {
            Transition::NextTurn | Transition::ReactiveCompactRetry => {}
            Transition::CollapseDrainRetry => {
                self.drains += 1;
                self.drained_in_a_row = true;
            }
            Transition::MaxOutputTokensEscalate => self.escalated = true,
            Transition::MaxOutputTokensRecovery => self.output_recoveries += 1,
            Transition::StopHookBlocking => self.stop_hook_blocks += 1,
            Transition::TokenBudgetContinuation => {
                let small = self.continuation_was_small(gauges);
                self.small_continuations_in_a_row =
                    if small { self.small_continuations_in_a_row + 1 } else { 0 };
                self.budget_continuations += 1;
                self.output_at_continuation = gauges.output_tokens;
            }
            Transition::FallbackRetry => self.fallbacks += 1,
            Transition::PauseTurn => self.pauses += 1,
            Transition::EmptyReplyNudge => self.nudged = true,
            Transition::RequestRepair => {
                self.repairs += 1;
                if let Seen::Reply(Reply::Repairable { rung, .. }) = seen {
                    self.repaired_in_a_row |= rung.bit();
                }
            }
            Transition::StructuredOutputRetry => self.structured_retries += 1,
        }
    }

    fn continuation_was_small(&self, gauges: Gauges) -> bool {
        let brought = gauges.output_tokens.saturating_sub(self.output_at_continuation);
        self.budget_continuations > 0 && brought < SMALL_CONTINUATION_TOKENS
    }
}

impl Rung {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Chooses the next move.
pub fn decide(memory: &Memory, limits: &Limits, gauges: Gauges, seen: Seen) -> Next {
    use Next::{Continue, FinishTools, RunStopHooks, Stop};
    match seen {
        Seen::Blocked(Blocked::ContextFull) => Stop(Terminal::BlockingLimit),
        Seen::Blocked(Blocked::Refilled) => Stop(Terminal::RapidRefill),
        Seen::Blocked(Blocked::Budget) | Seen::Reply(Reply::OverBudget) => Stop(Terminal::BudgetExhausted),
        Seen::Blocked(Blocked::Unrecorded) => Stop(Terminal::Unrecorded),
        Seen::Blocked(Blocked::ToolGone) => Stop(Terminal::ToolDeferredUnavailable),
        Seen::Blocked(Blocked::Aborted)
        | Seen::Reply(Reply::Aborted)
        | Seen::Compacted(Compaction::Aborted) => Stop(Terminal::AbortedStreaming),

        Seen::Reply(Reply::ToolUse) => FinishTools,
        Seen::Reply(Reply::EndTurn) => RunStopHooks,
        Seen::Reply(Reply::Refused) => Stop(Terminal::Completed),
        Seen::Reply(Reply::Withheld(withheld)) => recover(memory, limits, withheld),
        Seen::Reply(Reply::Failed(failure)) => Stop(failed(failure)),

        Seen::Reply(Reply::Unstructured) => structured_again(memory, limits),
        Seen::Reply(Reply::Paused) if memory.pauses < limits.pauses_max => Continue(Transition::PauseTurn),
        Seen::Reply(Reply::Paused) => Stop(Terminal::Completed),
        Seen::Reply(Reply::Empty) if !memory.nudged => Continue(Transition::EmptyReplyNudge),
        Seen::Reply(Reply::Empty) => Stop(Terminal::NoAnswer),
        Seen::Reply(Reply::Fallback) if memory.fallbacks < limits.fallbacks_max => {
            Continue(Transition::FallbackRetry)
        }
        Seen::Reply(Reply::Fallback) => Stop(Terminal::ModelError),
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

        Seen::Tools(Tools::Aborted) => Stop(Terminal::AbortedToolExecution),
        Seen::Tools(Tools::Unrecorded) => Stop(Terminal::Unrecorded),
        Seen::Tools(Tools::HookStopped) => Stop(Terminal::HookStopped),
        Seen::Tools(Tools::Deferred) => Stop(Terminal::ToolDeferred),
        Seen::Tools(Tools::Structured) => Stop(Terminal::Completed),
        Seen::Tools(Tools::Unusable) if memory.unusable_in_a_row + 1 >= limits.unusable_in_a_row_max => {
            Stop(Terminal::MalformedToolUse)
        }
        Seen::Tools(Tools::Repeating) if limits.stop_on_repetition => Stop(Terminal::Repetitive),
        Seen::Tools(_) if limits.turns_max.is_some_and(|max| memory.turns + 1 >= max) => {
            Stop(Terminal::MaxTurns)
        }
        Seen::Tools(Tools::Misstructured) => structured_again(memory, limits),
        Seen::Tools(Tools::Done | Tools::Unusable | Tools::Repeating) => Continue(Transition::NextTurn),

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
        Withheld::PromptTooLong { .. } if !memory.drained_in_a_row && memory.drains < limits.drains_max => {
            DrainCollapse
        }
        Withheld::PromptTooLong { .. } | Withheld::MediaTooLarge if !memory.compacted => ReactiveCompact,
        Withheld::PromptTooLong { .. } => Stop(Terminal::PromptTooLong),
        Withheld::MediaTooLarge => Stop(Terminal::ImageError),

        Withheld::OutputTruncated { cap_can_rise: true } if !memory.escalated => {
            Continue(Transition::MaxOutputTokensEscalate)
        }
        Withheld::OutputTruncated { .. } if memory.output_recoveries < limits.output_recoveries_max => {
            Continue(Transition::MaxOutputTokensRecovery)
        }
        Withheld::OutputTruncated { .. } => Stop(Terminal::ModelError),
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

/// B4: less than what is wanted, and still more to come.
fn wants_more(memory: &Memory, limits: &Limits, gauges: Gauges) -> bool {
    let Some(wanted) = limits.output_tokens_wanted else { return false };
    let enough = gauges.output_tokens.saturating_mul(100) >= wanted.saturating_mul(OUTPUT_ENOUGH_PERCENT);
    let small_in_a_row =
        memory.small_continuations_in_a_row + u8::from(memory.continuation_was_small(gauges));
    !enough && small_in_a_row < SMALL_CONTINUATIONS_MAX
}

impl Transition {
    /// Every reason to go on.
    pub const ALL: [Self; 12] = [
        Self::NextTurn,
        Self::CollapseDrainRetry,
        Self::ReactiveCompactRetry,
        Self::MaxOutputTokensEscalate,
        Self::MaxOutputTokensRecovery,
        Self::StopHookBlocking,
        Self::TokenBudgetContinuation,
        Self::FallbackRetry,
        Self::PauseTurn,
        Self::EmptyReplyNudge,
        Self::RequestRepair,
        Self::StructuredOutputRetry,
    ];

    /// The name in events, transcripts and counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::NextTurn => "next_turn",
            Self::CollapseDrainRetry => "collapse_drain_retry",
            Self::ReactiveCompactRetry => "reactive_compact_retry",
            Self::MaxOutputTokensEscalate => "max_output_tokens_escalate",
            Self::MaxOutputTokensRecovery => "max_output_tokens_recovery",
            Self::StopHookBlocking => "stop_hook_blocking",
            Self::TokenBudgetContinuation => "token_budget_continuation",
            Self::FallbackRetry => "fallback_retry",
            Self::PauseTurn => "pause_turn",
            Self::EmptyReplyNudge => "empty_reply_nudge",
            Self::RequestRepair => "request_repair",
            Self::StructuredOutputRetry => "structured_output_retry",
        }
    }
}

impl Terminal {
    /// Every reason to stop.
    pub const ALL: [Self; 21] = [
        Self::Completed,
        Self::CompletedOverHooks,
        Self::NoAnswer,
        Self::AbortedStreaming,
        Self::AbortedToolExecution,
        Self::MaxTurns,
        Self::PromptTooLong,
        Self::ImageError,
        Self::ModelError,
        Self::ModelUnreachable,
        Self::MalformedToolUse,
        Self::Repetitive,
        Self::BlockingLimit,
        Self::RapidRefill,
        Self::StopHookPrevented,
        Self::HookStopped,
        Self::ToolDeferred,
        Self::ToolDeferredUnavailable,
        Self::BudgetExhausted,
        Self::StructuredOutputRetries,
        Self::Unrecorded,
    ];

    /// The name on the wire (`terminal_reason`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed | Self::CompletedOverHooks => "completed",
            Self::AbortedStreaming => "aborted_streaming",
            Self::AbortedToolExecution => "aborted_tools",
            Self::MaxTurns => "max_turns",
            Self::PromptTooLong => "prompt_too_long",
            Self::ImageError => "image_error",
            Self::ModelError => "api_error",
            Self::ModelUnreachable | Self::NoAnswer | Self::Repetitive => "model_error",
            Self::MalformedToolUse => "malformed_tool_use_exhausted",
            Self::BlockingLimit => "blocking_limit",
            Self::RapidRefill => "rapid_refill_breaker",
            Self::StopHookPrevented => "stop_hook_prevented",
            Self::HookStopped => "hook_stopped",
            Self::ToolDeferred => "tool_deferred",
            Self::ToolDeferredUnavailable => "tool_deferred_unavailable",
            Self::BudgetExhausted => "budget_exhausted",
            Self::StructuredOutputRetries => "structured_output_retry_exhausted",
            Self::Unrecorded => "turn_setup_failed",
        }
    }
}
