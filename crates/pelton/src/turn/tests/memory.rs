//! What the loop remembers after each choice.

use super::*;

/// The memory after a reason to go on was chosen `times` times, from nothing.
fn after(transition: Transition, times: usize) -> Memory {
    let seen = match transition {
        Transition::RequestRepair => {
            Seen::Reply(Reply::Repairable { rung: Rung::Tool, otherwise: Failure::Api })
        }
        _ => Seen::Tools(Tools::Done),
    };
    let mut memory = Memory::default();
    for _ in 0..times {
        memory.note(Gauges::default(), seen, Next::Continue(transition));
    }
    memory
}

#[test]
fn each_reason_to_go_on_is_counted_and_no_other() {
    for transition in Transition::ALL {
        for times in 1..=3 {
            let count = times as u8;
            let mut expected = Memory { last: Some(transition), turns: times as u32, ..Memory::default() };
            match transition {
                Transition::NextTurn | Transition::ReactiveCompactRetry => {}
                Transition::CollapseDrainRetry => {
                    expected.drains = count;
                    expected.drained_in_a_row = true;
                }
                Transition::MaxOutputTokensEscalate => expected.escalated = true,
                Transition::MaxOutputTokensRecovery => expected.output_recoveries = count,
                Transition::StopHookBlocking => expected.stop_hook_blocks = count,
                Transition::TokenBudgetContinuation => {
                    expected.budget_continuations = times as u32;
                    // The first has nothing before it that could have been small.
                    expected.small_continuations_in_a_row = count - 1;
                }
                Transition::FallbackRetry => expected.fallbacks = count,
                Transition::PauseTurn => expected.pauses = count,
                Transition::EmptyReplyNudge => expected.nudged = true,
                Transition::RequestRepair => {
                    expected.turns = 0;
                    expected.repairs = count;
                    expected.repaired_in_a_row = 1 << Rung::Tool as u8;
                }
                Transition::StructuredOutputRetry => expected.structured_retries = count,
            }
            assert_eq!(after(transition, times), expected, "{transition:?} × {times}");
        }
    }
}
