//! What to do next, and why: facts in, move out. The only place that chooses to go on or to stop.
//!
//! Every way to go on is a [`Transition`] and has a bound that nothing resets within a submission; every way to
//! stop is a [`Terminal`]. Ids in comments are the rows of the loop specification.

/// What was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The model was asked.
    Reply(Reply),
    /// The tools of its answer have ended and are recorded.
    Tools(Tools),
}

/// How asking the model ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It wants tools.
    ToolUse,
    /// It has finished.
    EndTurn,
    /// It was cut, by the output limit or on the way, and called no tool.
    Truncated,
    /// A server-side tool loop was paused: the answer goes back as it is.
    Paused,
    /// Nothing usable in it: no text and no call.
    Empty,
    /// It declined.
    Refused,
    /// No answer.
    Failed(Failure),
    /// The user interrupted.
    Aborted,
}

/// Why there is no answer, as far as it makes a difference here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The prompt does not fit the context window.
    PromptTooLong,
    /// An image or the request's bytes are too large.
    MediaTooLarge,
    /// The API refused, or retries are used up.
    Api,
    /// No API answered.
    Unreachable,
    /// What was said cannot be recorded.
    Unrecorded,
}

/// How the tools of one answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tools {
    /// Results are recorded.
    Done {
        /// Not one call was usable: unknown tools or malformed input only.
        all_unusable: bool,
    },
    /// The user interrupted.
    Aborted,
    /// A result could not be recorded.
    Unrecorded,
}

/// The next move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait for the tools of this answer.
    FinishTools,
    /// Ask the model again.
    Continue(Transition),
    /// The submission is over.
    Stop(Terminal),
}

/// Why the loop went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transition {
    /// T1: tools ran, results go back.
    NextTurn,
    /// T5: the model is asked to go on where it was cut.
    MaxOutputTokensRecovery,
    /// T9: a paused answer goes back as it is.
    PauseTurn,
    /// T10: the model said nothing and is nudged.
    EmptyReplyNudge,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Terminal {
    /// X1: a natural end.
    Completed,
    /// X2: interrupted while the model answered.
    AbortedStreaming,
    /// X3: interrupted while tools ran.
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
    /// The conversation cannot be written down, so it does not go on.
    Unrecorded,
}

/// Bounds of one submission.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How often the model may be asked because tools ran.
    pub turns_max: Option<u32>,
    /// How often a cut answer is continued.
    pub output_recoveries_max: u8,
    /// How often a paused answer goes back.
    pub pauses_max: u8,
    /// Answers in a row with nothing but unusable calls.
    pub unusable_in_a_row_max: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns_max: None, output_recoveries_max: 3, pauses_max: 10, unusable_in_a_row_max: 3 }
    }
}

/// What the loop remembers of this submission. Counters only grow, except the two that count "in a row".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Trips to the model whose tools have ended.
    pub turns: u32,
    /// Cut answers continued.
    pub output_recoveries: u8,
    /// Paused answers sent back.
    pub pauses: u8,
    /// The one nudge was given.
    pub nudged: bool,
    /// Answers in a row with nothing but unusable calls.
    pub unusable_in_a_row: u8,
    /// Why the loop last went on.
    pub last: Option<Transition>,
}

impl Memory {
    /// Notes what was seen and chosen.
    pub fn note(&mut self, seen: Seen, next: Next) {
        if let Seen::Tools(tools) = seen {
            self.turns += 1;
            self.unusable_in_a_row = match tools {
                Tools::Done { all_unusable: true } => self.unusable_in_a_row.saturating_add(1),
                Tools::Done { all_unusable: false } | Tools::Aborted | Tools::Unrecorded => 0,
            };
        }
        if let Next::Continue(transition) = next {
            self.last = Some(transition);
            match transition {
                Transition::NextTurn => {}
                Transition::MaxOutputTokensRecovery => self.output_recoveries += 1,
                Transition::PauseTurn => self.pauses += 1,
                Transition::EmptyReplyNudge => self.nudged = true,
            }
        }
    }
}

/// Chooses the next move.
pub fn decide(memory: &Memory, limits: &Limits, seen: Seen) -> Next {
    use Next::{Continue, FinishTools, Stop};
    match seen {
        Seen::Reply(Reply::ToolUse) => FinishTools,
        Seen::Reply(Reply::EndTurn | Reply::Refused) => Stop(Terminal::Completed),
        Seen::Reply(Reply::Aborted) => Stop(Terminal::AbortedStreaming),

        Seen::Reply(Reply::Truncated) if memory.output_recoveries < limits.output_recoveries_max => {
            Continue(Transition::MaxOutputTokensRecovery)
        }
        Seen::Reply(Reply::Truncated) => Stop(Terminal::ModelError),

        Seen::Reply(Reply::Paused) if memory.pauses < limits.pauses_max => Continue(Transition::PauseTurn),
        Seen::Reply(Reply::Paused) => Stop(Terminal::Completed),

        Seen::Reply(Reply::Empty) if !memory.nudged => Continue(Transition::EmptyReplyNudge),
        Seen::Reply(Reply::Empty) => Stop(Terminal::Completed),

        Seen::Reply(Reply::Failed(failure)) => Stop(match failure {
            Failure::PromptTooLong => Terminal::PromptTooLong,
            Failure::MediaTooLarge => Terminal::ImageError,
            Failure::Api => Terminal::ModelError,
            Failure::Unreachable => Terminal::ModelUnreachable,
            Failure::Unrecorded => Terminal::Unrecorded,
        }),

        Seen::Tools(Tools::Aborted) => Stop(Terminal::AbortedToolExecution),
        Seen::Tools(Tools::Unrecorded) => Stop(Terminal::Unrecorded),
        Seen::Tools(Tools::Done { all_unusable: true })
            if memory.unusable_in_a_row + 1 >= limits.unusable_in_a_row_max =>
        {
            Stop(Terminal::MalformedToolUse)
        }
        Seen::Tools(Tools::Done { .. }) if limits.turns_max.is_some_and(|max| memory.turns + 1 >= max) => {
            Stop(Terminal::MaxTurns)
        }
        Seen::Tools(Tools::Done { .. }) => Continue(Transition::NextTurn),
    }
}

impl Transition {
    /// The name in events, transcripts and counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::NextTurn => "next_turn",
            Self::MaxOutputTokensRecovery => "max_output_tokens_recovery",
            Self::PauseTurn => "pause_turn",
            Self::EmptyReplyNudge => "empty_reply_nudge",
        }
    }
}

impl Terminal {
    /// The name on the wire (`terminal_reason`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::AbortedStreaming => "aborted_streaming",
            Self::AbortedToolExecution => "aborted_tools",
            Self::MaxTurns => "max_turns",
            Self::PromptTooLong => "prompt_too_long",
            Self::ImageError => "image_error",
            Self::ModelError => "api_error",
            Self::ModelUnreachable => "model_error",
            Self::MalformedToolUse => "malformed_tool_use_exhausted",
            Self::Unrecorded => "turn_setup_failed",
        }
    }
}
