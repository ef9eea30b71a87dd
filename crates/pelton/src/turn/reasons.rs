//! Why the loop goes on, and why it ends: the names of both.

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
    /// T8: the next model is asked, or the same one for an answer in one piece.
    FallbackRetry,
    /// T9: a paused answer goes back as it is.
    PauseTurn,
    /// T10: the model said nothing and is nudged.
    EmptyReplyNudge,
    /// T11: the request was refused; what it was refused for is left out.
    RequestRepair,
    /// The model is reminded of the structured output, or told what is wrong with it.
    StructuredOutputRetry,
    /// The stream of an answer broke after something of it was complete; the rest is asked for.
    StreamCutRetry,
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

impl Transition {
    /// Every reason to go on.
    pub const ALL: [Self; 13] = [
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
        Self::StreamCutRetry,
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
            Self::StreamCutRetry => "stream_cut_retry",
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

    /// Whether the model's server would not answer.
    pub(crate) fn is_of_the_api(self) -> bool {
        matches!(self, Self::PromptTooLong | Self::ImageError | Self::ModelError | Self::ModelUnreachable)
    }

    /// Whether it is an end that nothing went wrong with.
    pub(crate) fn is_well(self) -> bool {
        matches!(
            self,
            Self::Completed
                | Self::CompletedOverHooks
                | Self::StopHookPrevented
                | Self::HookStopped
                | Self::ToolDeferred
        )
    }

    /// Whether it is an end by an error of the model's, or of its server's, which is said in the assistant's place.
    pub(crate) fn is_said(self) -> bool {
        matches!(
            self,
            Self::PromptTooLong
                | Self::ImageError
                | Self::BlockingLimit
                | Self::RapidRefill
                | Self::ModelError
                | Self::ModelUnreachable
                | Self::MalformedToolUse
                | Self::Repetitive
                | Self::ToolDeferredUnavailable
        )
    }

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
