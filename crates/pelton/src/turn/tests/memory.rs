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
            let mut expected = Memory { last: Some(transition), ..Memory::default() };
            let is_anew = asks_anew(Seen::Tools(Tools::Done), transition);
            expected.turns = if is_anew { times as u32 } else { 0 };
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
                    expected.repairs = count;
                    expected.repaired_in_a_row = 1 << Rung::Tool as u8;
                }
                Transition::StructuredOutputRetry => expected.structured_retries = count,
                Transition::StreamCutRetry => expected.stream_cuts = times as u16,
            }
            assert_eq!(after(transition, times), expected, "{transition:?} × {times}");
        }
    }
}

#[test]
fn loop_B2_what_counts_as_a_turn_is_another_question() {
    let anew = |seen| -> Vec<&str> {
        Transition::ALL.into_iter().filter(|to| asks_anew(seen, *to)).map(Transition::name).collect()
    };
    let mut expected = vec![
        "next_turn",
        "max_output_tokens_recovery",
        "stop_hook_blocking",
        "token_budget_continuation",
        "pause_turn",
        "empty_reply_nudge",
        "structured_output_retry",
    ];
    assert_eq!(anew(Seen::Reply(Reply::Fallback)), expected);
    // Results are new to the model that is asked instead.
    expected.insert(4, "fallback_retry");
    assert_eq!(anew(Seen::Tools(Tools::Done)), expected);
}

#[test]
fn an_error_that_was_held_back_is_left_unsaid_only_by_ends_that_say_something_else() {
    let held = [
        Withheld::PromptTooLong { can_shrink: true },
        Withheld::WindowFilled { can_shrink: true },
        Withheld::MediaTooLarge,
        Withheld::OutputTruncated { cap_can_rise: false },
    ];
    for withheld in held {
        let memory = Memory { withheld: Some(withheld), ..Memory::default() };
        for terminal in Terminal::ALL {
            let expected = (!terminal.is_said()).then_some(withheld);
            assert_eq!(memory.left_unsaid(terminal), expected, "{withheld:?} {terminal:?}");
        }
    }
    let cut = Withheld::StreamCut { complete: Complete::Text, rest: Rest::Same };
    let memory = Memory { withheld: Some(cut), ..Memory::default() };
    assert_eq!(memory.left_unsaid(Terminal::AbortedStreaming), None);
    assert_eq!(Memory::default().left_unsaid(Terminal::MaxTurns), None);
}

#[test]
fn the_models_server_is_to_blame_for_four_ends() {
    let blamed = Terminal::ALL.into_iter().filter(|terminal| terminal.is_of_the_api());
    let expected =
        [Terminal::PromptTooLong, Terminal::ImageError, Terminal::ModelError, Terminal::ModelUnreachable];
    assert_eq!(blamed.collect::<HashSet<_>>(), HashSet::from(expected));
}

#[test]
fn loop_M6_an_answer_in_one_piece_gives_no_model_up() {
    let mut memory = Memory::default();
    let again = Next::Continue(Transition::FallbackRetry);
    memory.note(Gauges::default(), Seen::Reply(Reply::NoStream), again);
    assert_eq!((memory.in_one_piece, memory.fallbacks, memory.turns), (1, 0, 0));
    memory.note(Gauges::default(), Seen::Reply(Reply::Fallback), again);
    assert_eq!((memory.in_one_piece, memory.fallbacks, memory.turns), (1, 1, 0));
}
