//! The loop in worlds that answer at random: it ends, within its bounds, and tells one reason for every trip.

use proptest::prelude::*;

use super::super::decide::*;
use super::super::hands::{Fit, Hands};
use super::super::memory::{Gauges, Limits};
use super::super::reasons::Transition;
use super::super::run;
use super::{BLOCKS, COMPACTIONS, HeldBack, REPLIES, TOOLS, VERDICTS};

/// A world that answers at random and notes what was done with it.
struct RandomWorld {
    limits: Limits,
    picks: std::vec::IntoIter<usize>,
    done: Vec<String>,
    held: HeldBack,
}

impl RandomWorld {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        // When the picks run out the world is all failure: the loop must end by itself.
        self.picks.next().map_or(from[from.len() - 1], |pick| from[pick % from.len()])
    }
}

impl Hands for RandomWorld {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn gauges(&self) -> Gauges {
        Gauges { output_tokens: 300 * self.done.len() as u64 }
    }

    async fn fit(&mut self) -> Fit {
        // Seldom blocked, or no run would be long.
        if self.picks.next().is_none_or(|pick| pick % 16 != 0) {
            return Fit::Ready;
        }
        let why = self.pick(&BLOCKS);
        self.done.push("blocked".into());
        self.held.saw(Seen::Blocked(why));
        Fit::Blocked(why)
    }

    async fn ask(&mut self) -> Reply {
        self.done.push("ask".into());
        let reply = self.pick(&REPLIES);
        self.held.saw(Seen::Reply(reply));
        reply
    }

    async fn finish_tools(&mut self) -> Tools {
        self.done.push("tools".into());
        self.pick(&TOOLS)
    }

    async fn discard_answer(&mut self) -> bool {
        self.done.push("discard".into());
        // What cannot be recorded is the walk's to look at.
        true
    }

    async fn drain_collapse(&mut self) -> bool {
        self.done.push("drain".into());
        self.pick(&[true, false])
    }

    async fn reactive_compact(&mut self) -> Compaction {
        self.done.push("compact".into());
        self.pick(&COMPACTIONS)
    }

    async fn stop_hooks(&mut self) -> Verdict {
        self.done.push("hooks".into());
        self.pick(&VERDICTS)
    }

    async fn prepare(&mut self, transition: Transition) {
        self.done.push(transition.name().into());
    }
}

proptest! {
    #[test]
    fn the_loop_ends_in_any_world_and_prepares_between_trips(
        picks in prop::collection::vec(0usize..1000, 0..200),
        turns_max in 1u32..20,
        wanted in prop::option::of(0u64..20_000),
    ) {
        let limits = Limits { turns_max: Some(turns_max), fallbacks_max: 3, in_one_piece_max: 2, output_tokens_wanted: wanted, ..Limits::default() };
        let held = HeldBack::default();
        let mut world = RandomWorld { limits, picks: picks.into_iter(), done: Vec::new(), held };
        let end = futures::executor::block_on(run(&mut world));
        world.held.check_end(end);
        let count = |what: &str| world.done.iter().filter(|done| *done == what).count();
        prop_assert!(count("tools") as u32 <= turns_max);
        let named_anew = ["next_turn", "max_output_tokens_recovery", "stop_hook_blocking", "token_budget_continuation",
            "pause_turn", "empty_reply_nudge", "structured_output_retry"];
        let anew: usize = named_anew.iter().map(|name| count(name)).sum();
        prop_assert!((anew as u32) < turns_max, "no more answers than there may be");
        prop_assert!(count("compact") <= 1);
        prop_assert!(count("stop_hook_blocking") <= 8);
        prop_assert!(count("pause_turn") <= 10);
        prop_assert!(count("fallback_retry") <= 3 + 2, "three models, and two answers in one piece");
        prop_assert!(count("discard") <= count("fallback_retry"), "what is discarded is for somebody else to say");
        prop_assert!(count("max_output_tokens_recovery") <= 3);
        let named: Vec<&str> = Transition::ALL.iter().map(|transition| transition.name()).collect();
        let went_on = world.done.iter().filter(|done| named.contains(&done.as_str())).count();
        prop_assert!(count("blocked") <= 1, "what is blocked is over");
        prop_assert_eq!(count("ask") + count("blocked"), went_on + 1, "one reason for every trip but the first");
    }
}
