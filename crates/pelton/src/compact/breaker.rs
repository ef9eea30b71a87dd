//! C6: when to stop trying. What is counted here holds for one submission, and nothing resets it but the next prompt.

/// So many failures in a row, and the conversation is not summarised any more.
const FAILURES_IN_A_ROW_MAX: u8 = 3;
/// So many compactions without progress end the submission.
const STALLS_MAX: u8 = 2;
/// A context that is full again within so many turns was not made smaller to any effect.
const REFILL_TURNS: u32 = 1;
/// A result larger than this share of what it stands for, in percent, is no progress.
const SHRUNK_PERCENT_MAX: u64 = 70;

/// What was tried in this submission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Breaker {
    failures_in_a_row: u8,
    stalls: u8,
    /// The turn of the last compaction.
    last: Option<u32>,
    /// It cannot help, and was said so.
    is_futile: bool,
    folds_failed: u8,
}

impl Breaker {
    /// Why the conversation is not summarised any more, if so.
    pub fn open(&self) -> Option<&'static str> {
        if self.failures_in_a_row >= FAILURES_IN_A_ROW_MAX {
            Some("it failed three times in a row")
        } else if self.is_futile {
            Some("it did not help, and will not before something new is said")
        } else {
            None
        }
    }

    /// It is wanted again. Tells whether that is too soon after the last time: then that one was no progress.
    pub fn wanted(&mut self, turn: u32) -> bool {
        let too_soon = self.last.take_if(|last| turn.saturating_sub(*last) <= REFILL_TURNS).is_some();
        self.stalls += u8::from(too_soon);
        too_soon
    }

    /// It failed.
    pub fn failed(&mut self) {
        self.failures_in_a_row += 1;
    }

    /// It made the context smaller.
    pub fn worked(&mut self, turn: u32) {
        self.failures_in_a_row = 0;
        self.made_room(turn);
    }

    /// Room was made without a summary.
    pub fn made_room(&mut self, turn: u32) {
        self.last = Some(turn);
    }

    /// What came of it was no smaller, or not small enough: no progress, which counts once.
    pub fn was_futile(&mut self) {
        self.is_futile = true;
        self.stalls += 1;
        self.last = None;
    }

    /// The context fills again as fast as it is emptied.
    pub fn is_refilling(&self) -> bool {
        self.stalls >= STALLS_MAX
    }

    /// A fold could not be made.
    pub fn fold_failed(&mut self) {
        self.folds_failed += 1;
    }

    /// Whether another fold may be asked for.
    pub fn may_fold(&self) -> bool {
        self.folds_failed < FAILURES_IN_A_ROW_MAX
    }
}

/// Whether something became enough smaller to be worth it.
pub fn shrank(before: u64, after: u64) -> bool {
    after.saturating_mul(100) <= before.saturating_mul(SHRUNK_PERCENT_MAX)
}
