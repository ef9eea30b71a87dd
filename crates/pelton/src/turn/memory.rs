//! What one submission may do, and what the loop remembers of it.

use super::decide::{Bought, Failure, Next, Reply, Rung, Seen, Tools, Withheld, asks_anew};
use super::reasons::{Terminal, Transition};

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
    /// B2: how often the model may answer. Asking the same again because it failed is no answer more.
    pub turns_max: Option<u32>,
    /// How often staged folds are committed because the prompt was too long.
    pub drains_max: u8,
    /// How often an answer that the output limit cut is continued.
    pub output_recoveries_max: u8,
    /// How often the rest of an answer is asked for whose stream broke. How often in a row is for the policy of retries
    /// to say.
    pub stream_cuts_max: u16,
    /// M6: how often an answer is asked for in one piece because its streams break. Of one question once, which is for the
    /// policy of retries to say.
    pub in_one_piece_max: u16,
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
            stream_cuts_max: 1_000,
            in_one_piece_max: 1_000,
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
    /// Answers that were followed by another question.
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
    /// Answers continued that the output limit cut.
    pub output_recoveries: u8,
    /// The output limit cut a call of the newest answer.
    pub call_was_cut: bool,
    /// Answers continued whose stream broke.
    pub stream_cuts: u16,
    /// Answers asked for in one piece because their streams broke.
    pub in_one_piece: u16,
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

impl Memory {
    /// Notes what was seen and chosen.
    pub fn note(&mut self, gauges: Gauges, seen: Seen, next: Next) {
        if let Seen::Reply(reply) = seen {
            self.call_was_cut = reply == Reply::ToolUseCut;
        }
        match seen {
            Seen::Reply(Reply::Withheld(withheld)) => self.withheld = Some(withheld),
            Seen::Reply(Reply::OverBudget(Bought::Part)) => {
                self.withheld = Some(Withheld::OutputTruncated { cap_can_rise: false });
            }
            Seen::Reply(Reply::Repairable { otherwise: Failure::Media, .. }) => {
                self.withheld = Some(Withheld::MediaTooLarge);
            }
            Seen::Reply(
                Reply::ToolUse
                | Reply::ToolUseCut
                | Reply::EndTurn
                | Reply::Unstructured
                | Reply::Paused { .. }
                | Reply::Empty
                | Reply::Refused
                | Reply::OverBudget(Bought::Answer),
            ) => {
                self.withheld = None;
                self.drained_in_a_row = false;
                self.repaired_in_a_row = 0;
            }
            Seen::Tools(tools) => {
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
        self.turns += u32::from(asks_anew(seen, transition));
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
            Transition::FallbackRetry if seen == Seen::Reply(Reply::NoStream) => self.in_one_piece += 1,
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
            Transition::StreamCutRetry => self.stream_cuts += 1,
        }
    }

    /// An error that was held back and has not been recovered from, and that an end like this does not say by itself. Of
    /// a stream that broke everybody was told, or nothing of it is left.
    pub fn left_unsaid(&self, terminal: Terminal) -> Option<Withheld> {
        let unsaid = |withheld: &Withheld| !matches!(withheld, Withheld::StreamCut { .. });
        self.withheld.filter(|_| !terminal.is_said()).filter(unsaid)
    }

    /// B4: whether the last continuation, if there was one, brought little.
    pub fn continuation_was_small(&self, gauges: Gauges) -> bool {
        let brought = gauges.output_tokens.saturating_sub(self.output_at_continuation);
        self.budget_continuations > 0 && brought < SMALL_CONTINUATION_TOKENS
    }
}

impl Rung {
    /// Its place in a set.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}
