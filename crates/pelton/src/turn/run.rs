//! The loop.

use super::decide::{Memory, Next, Seen, Terminal, decide};
use super::hands::{Fit, Hands};

/// Asks the model and runs its tools until there is a reason to stop.
pub async fn run(hands: &mut impl Hands) -> Terminal {
    let mut memory = Memory::default();
    loop {
        let mut seen = match hands.fit().await {
            Fit::Ready => Seen::Reply(hands.ask().await),
            Fit::Blocked(why) => Seen::Blocked(why),
        };
        let transition = loop {
            let gauges = hands.gauges();
            let next = decide(&memory, hands.limits(), gauges, seen);
            memory.note(gauges, seen, next);
            seen = match next {
                Next::FinishTools => Seen::Tools(hands.finish_tools().await),
                Next::DrainCollapse => Seen::Drained { freed: hands.drain_collapse().await },
                Next::ReactiveCompact => Seen::Compacted(hands.reactive_compact().await),
                Next::RunStopHooks => Seen::StopHooks(hands.stop_hooks().await),
                Next::Continue(transition) => break transition,
                Next::Stop(terminal) => return terminal,
            };
        };
        hands.prepare(transition).await;
    }
}
