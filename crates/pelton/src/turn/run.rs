//! The loop.

use super::decide::{Memory, Next, Seen, Terminal, decide};
use super::hands::Hands;

/// Asks the model and runs its tools until there is a reason to stop.
pub async fn run(hands: &mut impl Hands) -> Terminal {
    let mut memory = Memory::default();
    loop {
        let mut seen = Seen::Reply(hands.ask().await);
        let transition = loop {
            let next = decide(&memory, hands.limits(), seen);
            memory.note(seen, next);
            seen = match next {
                Next::FinishTools => hands.finish_tools().await,
                Next::Continue(transition) => break transition,
                Next::Stop(terminal) => return terminal,
            };
        };
        hands.prepare(transition).await;
    }
}
