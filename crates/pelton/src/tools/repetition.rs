//! L12: notices a model that goes round in circles: the same call, the same result, again and again. Pure; remembers
//! hashes only, and not without end.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::limits::REPETITION_CALLS_REMEMBERED_MAX;

/// What calls brought so far in a submission.
#[derive(Debug, Clone, Default)]
pub struct Repetition {
    calls: HashMap<u64, Brought>,
    /// The same calls, the one not made for longest first.
    oldest: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Brought {
    result: u64,
    times: u32,
}

/// What a call did, as far as it makes a difference here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It looked, or failed.
    None,
    /// It may have changed something.
    Change,
}

/// Stands for a call, or for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark(u64);

impl Mark {
    /// Of anything that can be told apart.
    pub fn of(what: &(impl Hash + ?Sized)) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Repetition {
    /// A call has brought a result. Tells how often it has brought this very one without another in between.
    pub fn note(&mut self, call: Mark, result: Mark, effect: Effect) -> u32 {
        let Mark(call) = call;
        let Mark(result) = result;
        let is_new = !self.calls.contains_key(&call);
        if is_new && effect == Effect::Change {
            // Something was done that was not done before: what is looked at again may well look the same.
            self.calls.values_mut().for_each(|brought| brought.times = 0);
        }
        let brought = self.calls.entry(call).or_insert(Brought { result, times: 0 });
        brought.times = if brought.result == result { brought.times.saturating_add(1) } else { 1 };
        brought.result = result;
        let times = brought.times;
        self.oldest.retain(|known| *known != call);
        self.oldest.push_back(call);
        if self.oldest.len() > REPETITION_CALLS_REMEMBERED_MAX
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.calls.remove(&oldest);
        }
        times
    }

    /// How often a call has brought the same.
    pub fn times(&self, call: Mark) -> u32 {
        self.calls.get(&call.0).map_or(0, |brought| brought.times)
    }

    /// Counts a call from the beginning: somebody wants it.
    pub fn forgive(&mut self, call: Mark) {
        if let Some(brought) = self.calls.get_mut(&call.0) {
            brought.times = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{Change, None};
    use proptest::prelude::*;

    fn most(calls: impl IntoIterator<Item = (u32, u32, Effect)>) -> u32 {
        let mut repetition = Repetition::default();
        let noted = calls
            .into_iter()
            .map(|(call, result, effect)| repetition.note(Mark::of(&call), Mark::of(&result), effect));
        noted.max().unwrap_or_default()
    }

    #[test]
    fn circles_are_counted_also_when_they_are_wide() {
        assert_eq!(most((0..5).map(|_| (1, 1, None))), 5);
        assert_eq!(most((0..15).map(|n| (n % 3, 1, Change))), 5);
        assert_eq!(most([(1, 1, None), (1, 1, None), (1, 2, None), (1, 1, None)]), 2);
    }

    #[test]
    fn polls_edits_and_tests_between_edits_are_no_circles() {
        assert_eq!(most((0..50).map(|n| (1, n, None))), 1);
        assert_eq!(most((0..40).map(|n| (n, 1, Change))), 1);
        assert_eq!(most((0..40).map(|n| if n % 2 == 0 { (n, n, Change) } else { (1, 1, None) })), 1);
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_equal_results_in_a_row_and_memory_is_bounded(
            calls in prop::collection::vec((0u32..400, 0u32..2), 0..1_500),
        ) {
            let mut repetition = Repetition::default();
            let mut last: HashMap<u32, (u32, u32)> = HashMap::new();
            for (call, result) in calls {
                let times = repetition.note(Mark::of(&call), Mark::of(&result), None);
                let known = last.entry(call).or_insert((result, 0));
                known.1 = if known.0 == result { known.1 + 1 } else { 1 };
                known.0 = result;
                // What was forgotten counts from the beginning: never too much.
                prop_assert!(times <= known.1 && times >= 1);
                prop_assert!(repetition.calls.len() <= REPETITION_CALLS_REMEMBERED_MAX);
                prop_assert_eq!(repetition.calls.len(), repetition.oldest.len());
                known.1 = times;
            }
        }
    }
}
