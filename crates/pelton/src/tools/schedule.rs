//! Which calls may start now: readers together, everything else alone and in order. Pure.

use super::tool::Safety;

/// The calls of one answer and how far they are. A slot is a call's place in the order of asking.
#[derive(Debug, Clone)]
pub struct Schedule {
    calls: Vec<(Safety, State)>,
    running_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Done,
}

impl Schedule {
    /// No calls yet; at most `running_max` (at least one) will run at once.
    pub fn new(running_max: usize) -> Self {
        Self { calls: Vec::new(), running_max: running_max.max(1) }
    }

    /// Adds a call behind those already there.
    pub fn add(&mut self, safety: Safety) -> usize {
        self.calls.push((safety, State::Waiting));
        self.calls.len() - 1
    }

    /// Marks the calls that may start now as running and returns their slots.
    pub fn start(&mut self) -> Vec<usize> {
        let mut started = Vec::new();
        let mut running = self.calls.iter().filter(|(_, state)| *state == State::Running).count();
        let mut all_before_done = true;
        for (slot, (safety, state)) in self.calls.iter_mut().enumerate() {
            let alone = *safety == Safety::Alone;
            if *state == State::Waiting && running < self.running_max && (!alone || all_before_done) {
                *state = State::Running;
                running += 1;
                started.push(slot);
            }
            if *state != State::Done {
                all_before_done = false;
                if alone {
                    // Nothing overtakes a call that may change things.
                    break;
                }
            }
        }
        started
    }

    /// A call has ended.
    pub fn finish(&mut self, slot: usize) {
        if let Some((_, state)) = self.calls.get_mut(slot) {
            *state = State::Done;
        }
    }

    /// Whether every call has ended.
    pub fn is_done(&self) -> bool {
        self.calls.iter().all(|(_, state)| *state == State::Done)
    }

    /// Whether a call that may change something has begun.
    pub fn has_touched_anything(&self) -> bool {
        self.calls.iter().any(|(safety, state)| *safety == Safety::Alone && *state != State::Waiting)
    }

    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Safety::{Alone, Shared};
    use proptest::prelude::*;

    fn schedule(calls: &[Safety], running_max: usize) -> Schedule {
        let mut schedule = Schedule::new(running_max);
        for safety in calls {
            schedule.add(*safety);
        }
        schedule
    }

    #[test]
    fn readers_start_together_and_a_writer_waits_for_them() {
        let mut schedule = schedule(&[Shared, Shared, Alone, Shared], 10);
        assert_eq!(schedule.start(), [0, 1]);
        schedule.finish(1);
        assert!(schedule.start().is_empty());
        schedule.finish(0);
        assert_eq!(schedule.start(), [2]);
        assert!(schedule.start().is_empty(), "the reader behind a writer waits");
        schedule.finish(2);
        assert_eq!(schedule.start(), [3]);
    }

    #[test]
    fn a_call_added_while_others_run_follows_the_same_rule() {
        let mut schedule = schedule(&[Alone], 10);
        assert_eq!(schedule.start(), [0]);
        schedule.add(Shared);
        assert!(schedule.start().is_empty());
        schedule.finish(0);
        assert_eq!(schedule.start(), [1]);
        schedule.add(Shared);
        assert_eq!(schedule.start(), [2], "joins the running reader");
    }

    #[test]
    fn readers_and_waiting_writers_have_touched_nothing() {
        let mut schedule = schedule(&[Shared, Alone], 10);
        schedule.start();
        assert!(!schedule.has_touched_anything());
        schedule.finish(0);
        assert!(!schedule.has_touched_anything());
        schedule.start();
        assert!(schedule.has_touched_anything());
        schedule.finish(1);
        assert!(schedule.has_touched_anything());
    }

    #[test]
    fn the_cap_holds() {
        let mut schedule = schedule(&[Shared; 5], 2);
        assert_eq!(schedule.start(), [0, 1]);
        schedule.finish(0);
        assert_eq!(schedule.start(), [2]);
    }

    proptest! {
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
                schedule.finish(running.remove(index));
            }
            prop_assert_eq!(ran.len(), kinds.len());
        }
    }
}
