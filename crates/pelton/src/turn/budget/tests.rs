use super::*;
use proptest::prelude::*;

const EPSILON: f64 = 1e-9;

fn likely(usd: f64) -> Quote {
    Quote { likely_usd: usd, prompt_usd_max: usd, output_token_usd: 0.0, output_tokens_max: 1_000 }
}

/// A prompt of a cent, and a dollar for ten thousand tokens of answer.
fn strict(output_tokens_max: u32) -> Quote {
    Quote { likely_usd: 0.0, prompt_usd_max: 0.01, output_token_usd: 0.0001, output_tokens_max }
}

#[track_caller]
fn granted(answer: Answer) -> Reserved {
    match answer {
        Answer::Granted(reserved) => reserved,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_sent_while_something_is_left_beside_the_reservations_of_others() {
    let mut purse = Purse::new(Some(1.0), Policy::Likely);
    let first = granted(purse.ask(&likely(0.6)));
    let second = granted(purse.ask(&likely(0.6)));
    assert_eq!(purse.ask(&likely(0.1)), Answer::Later, "both are in flight, and nothing is spent yet");
    purse.settle(first, 0.3);
    let third = granted(purse.ask(&likely(0.1)));
    purse.settle(second, 0.3);
    purse.settle(third, 0.5);
    assert!(purse.is_spent());
    assert_eq!(purse.ask(&likely(0.0)), Answer::Refused);
    assert!((purse.spent_usd() - 1.1).abs() < EPSILON);
}

#[test]
fn the_last_cent_is_the_last() {
    let mut purse = Purse::new(Some(1.0), Policy::Likely);
    let (first, second) = (granted(purse.ask(&likely(0.5))), granted(purse.ask(&likely(0.5))));
    assert_eq!((first.usd(), purse.reserved_usd(), purse.left_usd()), (0.5, 1.0, Some(0.0)));
    assert_eq!(purse.ask(&likely(0.0)), Answer::Later, "nothing is left, but something may come back");
    purse.settle(first, 1.0);
    assert_eq!(purse.ask(&likely(0.0)), Answer::Refused, "whatever comes back, all is spent");
    purse.settle(second, 0.5);
    assert_eq!(purse.ask(&likely(0.0)), Answer::Refused);

    let mut purse = Purse::new(Some(1.0), Policy::Likely);
    let call = granted(purse.ask(&likely(0.1)));
    assert!(!purse.again(&call, 1.0), "all is spent");
    let mut purse = Purse::new(Some(1.0), Policy::Likely);
    let (call, other) = (granted(purse.ask(&likely(0.4))), granted(purse.ask(&likely(0.4))));
    assert!(!purse.again(&call, 0.7), "what others have set aside is theirs");
    purse.settle(other, 0.0);
    assert!(purse.again(&call, 0.1));
    purse.settle(call, 0.0);
}

#[test]
fn a_purse_says_what_it_was_told_and_what_answers_were_like() {
    let mut purse = Purse::new(Some(2.0), Policy::Strict);
    assert_eq!((purse.cap_usd(), purse.policy()), (Some(2.0), Policy::Strict));
    assert_eq!(Purse::default().policy(), Policy::Likely);
    assert_eq!(purse.mean_output_tokens(), 0, "there was none yet");
    purse.answered(100);
    purse.answered(51);
    assert_eq!(purse.mean_output_tokens(), 75);
}

#[test]
fn without_a_cap_there_is_no_end() {
    for policy in [Policy::Likely, Policy::Strict] {
        let mut purse = Purse::new(None, policy);
        let reserved = granted(purse.ask(&likely(1e9)));
        assert!(purse.again(&reserved, 1e9));
        purse.settle(reserved, 1e9);
        assert!(!purse.is_spent() && purse.left_usd().is_none());
        let _ = granted(purse.ask(&likely(1.0)));
    }
}

#[test]
fn an_attempt_that_was_paid_for_counts_before_the_next_is_sent() {
    let mut purse = Purse::new(Some(1.0), Policy::Likely);
    let call = granted(purse.ask(&likely(0.9)));
    assert!(purse.again(&call, 0.6), "its own reservation is no obstacle");
    assert!(!purse.again(&call, 0.6));

    let mut purse = Purse::new(Some(1.0), Policy::Strict);
    let call = granted(purse.ask(&strict(4_000)));
    assert!(purse.again(&call, 0.41), "a second attempt fits beside the first");
    assert!(!purse.again(&call, 0.41), "a third does not");
}

#[test]
fn a_strict_call_is_made_to_fit_or_refused() {
    // (cap, wanted, granted)
    let rows = [
        (10.0, 8_000, Some(8_000)),
        (0.51, 8_000, Some(5_000)),
        (0.112_401, 8_000, Some(1_024)),
        (0.112_399, 8_000, None),
        (0.001, 8_000, None),
        // What is short by itself needs no more.
        (0.060_01, 500, Some(500)),
        (0.05, 500, None),
    ];
    for (cap, wanted, expected) in rows {
        let mut purse = Purse::new(Some(cap), Policy::Strict);
        match (purse.ask(&strict(wanted)), expected) {
            (Answer::Granted(reserved), Some(tokens)) => {
                assert!(reserved.output_tokens_max.abs_diff(tokens) <= 1, "{cap}: {reserved:?}");
                assert!(reserved.usd() <= cap);
            }
            (Answer::Refused, None) => {}
            (answer, _) => panic!("{cap} for {wanted}: {answer:?}"),
        }
    }
}

#[test]
fn a_strict_call_waits_rather_than_being_cut_short() {
    let mut purse = Purse::new(Some(1.0), Policy::Strict);
    let first = granted(purse.ask(&strict(8_000)));
    assert_eq!(purse.ask(&strict(8_000)), Answer::Later);
    purse.settle(first, 0.05);
    assert_eq!(granted(purse.ask(&strict(8_000))).output_tokens_max, 8_000);
    // What will never fit does not wait for anybody.
    let hopeless = Quote { prompt_usd_max: 0.9, ..strict(8_000) };
    assert_eq!(purse.ask(&hopeless), Answer::Refused);
}

#[test]
fn the_likely_usage_follows_the_last_one() {
    let caching = Usage {
        input_tokens: 10,
        cache_creation_input_tokens: 300,
        cache_read_input_tokens: 700,
        ..Usage::default()
    };
    // (last, prompt) → (plain, written, read)
    for (last, prompt, expected) in [
        (None, 500, (500, 0, 0)),
        (Some(Usage { input_tokens: 400, ..Usage::default() }), 500, (500, 0, 0)),
        (Some(caching.clone()), 1_500, (0, 500, 1_000)),
        // The context was made smaller in between.
        (Some(caching), 200, (0, 0, 200)),
    ] {
        let usage = likely_usage(last.as_ref(), prompt, 7);
        let split = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens);
        assert_eq!((split, usage.output_tokens), (expected, 7), "{last:?}");
    }
}

/// What one agent of a random tree does next.
#[derive(Debug, Clone)]
struct Move {
    agent: usize,
    quote: Quote,
    /// What the call or the attempt really costs, as a share of the most it can.
    share: f64,
    retries: bool,
}

fn moves(likely_is_right: bool) -> impl Strategy<Value = Vec<Move>> {
    let quote = (0.0f64..0.3, 0.0f64..0.0001, 1u32..6_000, 0.0f64..2.0).prop_map(
        move |(prompt, token, tokens, off)| {
            let most = prompt + token * f64::from(tokens);
            let likely_usd = if likely_is_right { most } else { most * off };
            Quote { likely_usd, prompt_usd_max: prompt, output_token_usd: token, output_tokens_max: tokens }
        },
    );
    let one = (0usize..8, quote, 0.0f64..=1.0, prop::bool::weighted(0.2));
    let one = one.prop_map(|(agent, quote, share, retries)| Move { agent, quote, share, retries });
    prop::collection::vec(one, 1..300)
}

/// Agents that ask, retry and end in any order. Gives the purse, and what was in flight when the cap was passed.
fn play(mut purse: Purse, moves: &[Move]) -> Result<(Purse, f64), TestCaseError> {
    let mut in_flight: Vec<Option<(Reserved, Quote)>> = (0..8).map(|_| None).collect();
    let mut excess = 0.0;
    for Move { agent, quote, share, retries } in moves {
        let before = purse.spent_usd();
        // What each call in flight may still cost, if all of them cost the most they can.
        let flying = |in_flight: &[Option<(Reserved, Quote)>]| {
            in_flight.iter().flatten().map(|(own, quote)| quote.usd_max(own.output_tokens_max)).sum::<f64>()
        };
        let flying_before = flying(&in_flight);
        match in_flight[*agent].take() {
            None => match purse.ask(quote) {
                Answer::Granted(reserved) => in_flight[*agent] = Some((reserved, *quote)),
                Answer::Later => {
                    prop_assert!(in_flight.iter().any(Option::is_some), "a wait that nobody ends");
                }
                Answer::Refused => {}
            },
            Some((reserved, quote)) => {
                let cost = share * quote.usd_max(reserved.output_tokens_max);
                // An attempt may have cost as much as the whole call.
                let billed = if purse.policy() == Policy::Strict { reserved.usd() } else { cost };
                if *retries && purse.again(&reserved, billed) {
                    in_flight[*agent] = Some((reserved, quote));
                } else if *retries {
                    // It is not sent again, and costs nothing more.
                    purse.settle(reserved, 0.0);
                } else {
                    purse.settle(reserved, cost);
                }
            }
        }
        if purse.cap_usd().is_some_and(|cap| before < cap && purse.spent_usd() >= cap) {
            excess = flying_before;
        }
        prop_assert!(purse.spent_usd() >= before);
    }
    Ok((purse, excess))
}

proptest! {
    #[test]
    fn the_cap_is_never_passed_by_more_than_the_calls_in_flight(moves in moves(false)) {
        let (purse, excess) = play(Purse::new(Some(1.0), Policy::Likely), &moves)?;
        prop_assert!(purse.spent_usd() <= 1.0 + excess + EPSILON, "{purse:?}, {excess} in flight");
    }

    #[test]
    fn a_strict_cap_is_never_passed_at_all(moves in moves(false)) {
        let (purse, _) = play(Purse::new(Some(1.0), Policy::Strict), &moves)?;
        prop_assert!(purse.spent_usd() <= 1.0 + EPSILON, "{purse:?}");
    }

    /// Where no call costs more than was thought, all but one of them together stay below the cap.
    #[test]
    fn good_guesses_pass_the_cap_by_one_call_at_most(mut moves in moves(true)) {
        moves.iter_mut().for_each(|one| one.retries = false);
        let (purse, _) = play(Purse::new(Some(1.0), Policy::Likely), &moves)?;
        prop_assert!(purse.spent_usd() + purse.reserved_usd() < 1.0 + 0.9 + EPSILON, "{purse:?}");
    }

    #[test]
    fn nothing_stays_set_aside(moves in moves(false), strict in any::<bool>()) {
        let policy = if strict { Policy::Strict } else { Policy::Likely };
        let mut purse = Purse::new(Some(1.0), policy);
        for Move { quote, share, .. } in &moves {
            if let Answer::Granted(reserved) = purse.ask(quote) {
                let cost = share * quote.usd_max(reserved.output_tokens_max);
                purse.settle(reserved, cost);
            }
            prop_assert!(purse.reserved_usd().abs() < EPSILON);
        }
    }
}

#[test]
fn a_prompt_nobody_counted_has_at_most_a_token_for_each_byte_and_what_the_server_adds() {
    assert_eq!(prompt_tokens_max(0), PROMPT_TOKENS_UNSEEN_MAX);
    assert_eq!(prompt_tokens_max(9_000), 9_000 + PROMPT_TOKENS_UNSEEN_MAX);
    assert_eq!(prompt_tokens_max(u64::MAX), u64::MAX);
}
