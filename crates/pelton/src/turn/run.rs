//! The loop.

use super::decide::{Next, Seen, Withheld, decide};
use super::hands::{Fit, Hands};
use super::memory::Memory;
use super::reasons::Terminal;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub terminal: Terminal,
    /// An error that was held back, and that nobody will hear of if it is not said now.
    pub unsaid: Option<Withheld>,
}

/// Asks the model and runs its tools until there is a reason to stop.
pub async fn run(hands: &mut impl Hands) -> End {
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
                Next::DiscardAnswer => Seen::Discarded { recorded: hands.discard_answer().await },
                Next::DrainCollapse => Seen::Drained { freed: hands.drain_collapse().await },
                Next::ReactiveCompact => Seen::Compacted(hands.reactive_compact().await),
                Next::RunStopHooks => Seen::StopHooks(hands.stop_hooks().await),
                Next::Continue(transition) => break transition,
                Next::Stop(terminal) => return End { terminal, unsaid: memory.left_unsaid(terminal) },
            };
        };
        hands.prepare(transition).await;
    }
}
