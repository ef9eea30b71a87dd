//! Which calls may start now: readers together, everything else alone and in order; and which a failure cancels. Pure.

use super::tool::Safety;

/// How the calls of one answer run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How many run at once, at least one.
    pub running_max: usize,
    /// Whom a failure cancels.
    pub siblings: Siblings,
}

/// P5: whom a failed call cancels among the others of the same answer. A call has failed when the model is told an
/// error: it could not be tried, was not allowed, crashed, or said so itself, as Bash does of a command that exits with
/// another code than zero. What the user interrupts has not failed.
///
/// ```
/// use pelton::tools::Siblings;
///
/// assert_eq!(Siblings::from_name("side_effects"), Some(Siblings::SideEffects));
/// assert_eq!(Siblings::default().name(), "never");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Siblings {
    /// Nobody: an error is an answer like any other.
    #[default]
    Never,
    /// When it may have changed something: the calls behind it that would change something, too. Calls that only look
    /// cancel nobody and are not cancelled.
    SideEffects,
    /// All of them, also those that run.
    Any,
}

impl Siblings {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Never, Self::SideEffects, Self::Any];

    /// Its name in settings and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::SideEffects => "side_effects",
            Self::Any => "any",
        }
    }

    /// The policy of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a result.
    Well,
    /// With an error.
    Failed,
}

/// The calls of one answer and how far they are. A slot is a call's place in the order of asking.
#[derive(Debug, Clone)]
pub struct Schedule {
    calls: Vec<(Safety, State)>,
    terms: Terms,
    /// The first call whose failure cancels others.
    failed: Option<usize>,
    /// The call after which nothing more begins.
    stopped: Option<usize>,
    /// Those that were cancelled, and by which, as far as nobody asked yet.
    cancelled: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Done,
    Cancelled,
}

impl State {
    fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

impl Schedule {
    /// No calls yet.
    pub fn new(terms: Terms) -> Self {
        let terms = Terms { running_max: terms.running_max.max(1), ..terms };
        Self { calls: Vec::new(), terms, failed: None, stopped: None, cancelled: Vec::new() }
    }

    /// Adds a call behind those already there.
    pub fn add(&mut self, safety: Safety) -> usize {
        self.calls.push((safety, State::Waiting));
        self.cancel_siblings();
        self.cancel_waiting();
        self.calls.len() - 1
    }

    /// Marks the calls that may start now as running and returns their slots.
    pub fn start(&mut self) -> Vec<usize> {
        let mut started = Vec::new();
        let mut running = self.running();
        let mut all_before_over = true;
        for (slot, (safety, state)) in self.calls.iter_mut().enumerate() {
            let alone = *safety == Safety::Alone;
            if *state == State::Waiting && running < self.terms.running_max && (!alone || all_before_over) {
                *state = State::Running;
                running += 1;
                started.push(slot);
            }
            if !state.is_over() {
                all_before_over = false;
                if alone {
                    // Nothing overtakes a call that may change things.
                    break;
                }
            }
        }
        started
    }

    /// A call has ended. One that was cancelled meanwhile stays so.
    pub fn finish(&mut self, slot: usize, end: End) {
        let Some((safety, state)) = self.calls.get_mut(slot).filter(|(_, state)| !state.is_over()) else {
            return;
        };
        *state = State::Done;
        let cancels = match self.terms.siblings {
            Siblings::Never => false,
            Siblings::SideEffects => *safety == Safety::Alone,
            Siblings::Any => true,
        };
        if end == End::Failed && cancels && self.failed.is_none() {
            self.failed = Some(slot);
            self.cancel_siblings();
        }
    }

    /// I10: nothing more begins after this call, whatever comes; what runs goes on to its end.
    pub fn stop(&mut self, slot: usize) {
        self.stopped.get_or_insert(slot);
        self.cancel_waiting();
    }

    /// The call after which nothing more begins.
    pub fn stopped_by(&self) -> Option<usize> {
        self.stopped
    }

    /// The calls cancelled since the last time, each with the one that did it. They must not go on.
    pub fn take_cancelled(&mut self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.cancelled)
    }

    /// How many calls run.
    pub fn running(&self) -> usize {
        self.calls.iter().filter(|(_, state)| *state == State::Running).count()
    }

    /// Whether every call has ended.
    #[cfg(test)]
    pub fn is_done(&self) -> bool {
        self.calls.iter().all(|(_, state)| state.is_over())
    }

    /// Whether a call that may change something has begun.
    pub fn has_touched_anything(&self) -> bool {
        let touched = |(safety, state): &(Safety, State)| {
            *safety != Safety::Shared && matches!(state, State::Running | State::Done)
        };
        self.calls.iter().any(touched)
    }

    fn cancel_siblings(&mut self) {
        let Some(failed) = self.failed else { return };
        let from = if self.terms.siblings == Siblings::Any { 0 } else { failed };
        for (slot, (safety, state)) in self.calls.iter_mut().enumerate().skip(from) {
            let hit = match self.terms.siblings {
                Siblings::Never => false,
                Siblings::SideEffects => *safety == Safety::Alone,
                Siblings::Any => true,
            };
            if hit && !state.is_over() {
                *state = State::Cancelled;
                self.cancelled.push((slot, failed));
            }
        }
    }

    fn cancel_waiting(&mut self) {
        let Some(stopped) = self.stopped else { return };
        for (slot, (_, state)) in self.calls.iter_mut().enumerate() {
            if *state == State::Waiting {
                *state = State::Cancelled;
                self.cancelled.push((slot, stopped));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Safety::{Alone, Shared};
    use proptest::prelude::*;

    #[test]
    fn every_policy_is_found_by_its_name_and_no_other_word_is_one() {
        assert_eq!(Siblings::ALL.map(Siblings::name), ["never", "side_effects", "any"]);
        for policy in Siblings::ALL {
            assert_eq!(Siblings::from_name(policy.name()), Some(policy));
        }
        assert_eq!(Siblings::from_name("sometimes"), None);
    }

    fn schedule(calls: &[Safety], running_max: usize) -> Schedule {
        with(calls, Terms { running_max, siblings: Siblings::Never })
    }

    fn with(calls: &[Safety], terms: Terms) -> Schedule {
        let mut schedule = Schedule::new(terms);
        for safety in calls {
            schedule.add(*safety);
        }
        schedule
    }

    #[test]
    fn readers_start_together_and_a_writer_waits_for_them() {
        let mut schedule = schedule(&[Shared, Shared, Alone, Shared], 10);
        assert_eq!(schedule.start(), [0, 1]);
        schedule.finish(1, End::Well);
        assert!(schedule.start().is_empty());
        schedule.finish(0, End::Well);
        assert_eq!(schedule.start(), [2]);
        assert!(schedule.start().is_empty(), "the reader behind a writer waits");
        schedule.finish(2, End::Well);
        assert_eq!(schedule.start(), [3]);
    }

    #[test]
    fn a_call_added_while_others_run_follows_the_same_rule() {
        let mut schedule = schedule(&[Alone], 10);
        assert_eq!(schedule.start(), [0]);
        assert_eq!(schedule.add(Shared), 1, "the slot it will be called by");
        assert!(schedule.start().is_empty());
        schedule.finish(0, End::Well);
        assert_eq!(schedule.start(), [1]);
        schedule.add(Shared);
        assert_eq!(schedule.start(), [2], "joins the running reader");
    }

    #[test]
    fn readers_and_waiting_writers_have_touched_nothing() {
        let mut schedule = schedule(&[Shared, Alone], 10);
        schedule.start();
        assert!(!schedule.has_touched_anything());
        schedule.finish(0, End::Well);
        assert!(!schedule.has_touched_anything());
        schedule.start();
        assert!(schedule.has_touched_anything());
        schedule.finish(1, End::Well);
        assert!(schedule.has_touched_anything());
    }

    #[test]
    fn the_cap_holds() {
        let mut schedule = schedule(&[Shared; 5], 2);
        assert_eq!(schedule.start(), [0, 1]);
        schedule.finish(0, End::Well);
        assert_eq!(schedule.start(), [2]);
    }

    #[test]
    fn a_failure_cancels_whom_the_policy_says() {
        let calls = [Shared, Shared, Alone, Shared, Alone];
        for (siblings, failed, expected) in [
            (Siblings::Never, 1, vec![]),
            (Siblings::SideEffects, 1, vec![]),
            (Siblings::SideEffects, 2, vec![4]),
            (Siblings::Any, 1, vec![0, 2, 3, 4]),
            (Siblings::Any, 2, vec![3, 4]),
        ] {
            let mut schedule = with(&calls, Terms { running_max: 10, siblings });
            for slot in 0..failed {
                schedule.start();
                if failed == 2 {
                    schedule.finish(slot, End::Well);
                }
            }
            schedule.start();
            schedule.finish(failed, End::Failed);
            let cancelled: Vec<usize> = schedule.take_cancelled().into_iter().map(|(slot, _)| slot).collect();
            assert_eq!(cancelled, expected, "{siblings:?}, {failed}");
        }
    }

    #[test]
    fn after_a_stop_nothing_begins_and_what_runs_goes_on() {
        let mut schedule = schedule(&[Shared, Shared, Alone], 10);
        assert_eq!(schedule.start(), [0, 1]);
        assert_eq!(schedule.stopped_by(), None);
        schedule.finish(1, End::Well);
        schedule.stop(1);
        assert_eq!((schedule.running(), schedule.take_cancelled()), (1, vec![(2, 1)]));
        assert_eq!(schedule.add(Shared), 3);
        assert_eq!(schedule.take_cancelled(), [(3, 1)], "nor does what comes later");
        assert!(schedule.start().is_empty() && !schedule.is_done());
        schedule.finish(0, End::Well);
        schedule.stop(0);
        assert_eq!((schedule.stopped_by(), schedule.take_cancelled()), (Some(1), vec![]));
        assert!(schedule.is_done());
    }

    proptest! {
        #[test]
        fn loop_P5_whatever_fails_and_when_only_those_the_policy_names_are_cancelled(
            kinds in prop::collection::vec((any::<bool>(), any::<bool>()), 1..16),
            siblings in prop::sample::select(vec![Siblings::Never, Siblings::SideEffects, Siblings::Any]),
            running_max in 1usize..6,
            at_first in 0usize..16,
            picks in prop::collection::vec(any::<prop::sample::Index>(), 64),
        ) {
            let safety = |slot: usize| if kinds[slot].0 { Shared } else { Alone };
            let mut schedule = Schedule::new(Terms { running_max, siblings });
            let (mut running, mut ran, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
            let mut first_failure = None;
            let mut picks = picks.iter();
            // Some calls are there from the beginning, the others come while those run.
            let mut coming = 0..kinds.len();
            for _ in 0..at_first.min(kinds.len()) {
                schedule.add(safety(coming.next().unwrap()));
            }
            loop {
                running.extend(schedule.start());
                for (slot, by) in schedule.take_cancelled() {
                    prop_assert_eq!(Some(by), first_failure);
                    running.retain(|running| *running != slot);
                    cancelled.push(slot);
                }
                if !running.is_empty() {
                    let slot: usize = running.remove(picks.next().map_or(0, |pick| pick.index(running.len())));
                    ran.push(slot);
                    let failed = kinds[slot].1;
                    let counts = match siblings {
                        Siblings::Never => false,
                        Siblings::SideEffects => safety(slot) == Alone,
                        Siblings::Any => true,
                    };
                    if failed && counts && first_failure.is_none() {
                        first_failure = Some(slot);
                    }
                    schedule.finish(slot, if failed { End::Failed } else { End::Well });
                } else if let Some(slot) = coming.next() {
                    schedule.add(safety(slot));
                } else if schedule.is_done() {
                    break;
                } else {
                    prop_assert!(false, "stuck");
                }
            }
            for (slot, by) in schedule.take_cancelled() {
                prop_assert_eq!(Some(by), first_failure);
                cancelled.push(slot);
            }
            for slot in 0..kinds.len() {
                let (ran, gone) = (ran.contains(&slot), cancelled.contains(&slot));
                prop_assert!(ran != gone, "each ends once, one way or the other");
                let named = first_failure.is_some_and(|failed| match siblings {
                    Siblings::Never => false,
                    Siblings::SideEffects => slot > failed && safety(slot) == Alone,
                    Siblings::Any => true,
                });
                prop_assert!(!gone || named);
                if let (Some(failed), Siblings::SideEffects) = (first_failure, siblings) {
                    prop_assert!(slot <= failed || safety(slot) == Shared || gone, "a writer behind it never runs");
                }
            }
        }

        #[test]
        fn loop_P3_any_order_of_ending_keeps_writers_alone_and_runs_all(
            kinds in prop::collection::vec(any::<bool>(), 0..20),
            running_max in 1usize..6,
            picks in prop::collection::vec(any::<prop::sample::Index>(), 64),
        ) {
            let kinds: Vec<Safety> = kinds.iter().map(|shared| if *shared { Shared } else { Alone }).collect();
            let mut schedule = schedule(&kinds, running_max);
            let mut running: Vec<usize> = Vec::new();
            let mut ran: Vec<usize> = Vec::new();
            let mut picks = picks.iter();
            while !schedule.is_done() {
                for slot in schedule.start() {
                    prop_assert!(!ran.contains(&slot), "a call starts once");
                    ran.push(slot);
                    running.push(slot);
                }
                prop_assert!(!running.is_empty(), "never stuck");
                prop_assert!(running.len() <= running_max);
                if running.iter().any(|slot| kinds[*slot] == Alone) {
                    prop_assert_eq!(running.len(), 1, "a writer runs alone");
                }
                for (earlier, safety) in kinds.iter().enumerate() {
                    let overtaken = *safety == Alone && !ran.contains(&earlier);
                    prop_assert!(!overtaken || running.iter().all(|slot| *slot < earlier));
                }
                let index = picks.next().map_or(0, |pick| pick.index(running.len()));
                schedule.finish(running.remove(index), End::Well);
            }
            prop_assert_eq!(ran.len(), kinds.len());
        }
    }
}
