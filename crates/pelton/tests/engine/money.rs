//! What a run may cost, and what it did cost.

use pelton::{EndReason, Engine, Event, StartError, Terminal};
use pelton_model::catalogue::{Prices, Rates};
use pelton_testkit::strict::{Rule, Strictness};
use pelton_testkit::{Fault, Script, Step, gate, text, tool};
use serde_json::{Value, json};

use crate::probe::Notes;
use crate::stage::{Stage, Told, notes, results_in, resume_from, run};

/// Round prices: a dollar for a million of anything that was not cached.
fn round_prices() -> Prices {
    let rates = Rates { input: 1.0, output: 10.0, cache_write_5m: 2.0, cache_write_1h: 4.0, cache_read: 0.1 };
    Prices { rates, long_prompt: None }
}

/// A step whose usage is exactly this.
fn priced(step: Step, input: u64, output: u64) -> Step {
    step.usage("input_tokens", input)
        .usage("cache_creation_input_tokens", 0)
        .usage("cache_read_input_tokens", 0)
        .usage("output_tokens", output)
}

const MODEL: &str = "claude-sonnet-5-5";

#[tokio::test]
async fn an_error_that_the_last_of_the_money_recovered_from_is_not_shown() {
    let limit = "The model's answer was cut by its output limit.";
    let budget = "Reached maximum budget ($0.35)";
    for (stop, expected) in [("end_turn", vec![budget]), ("max_tokens", vec![budget, limit])] {
        let script = Script::new()
            .step(priced(Step::reply([text("Half, ")]).stop("max_tokens"), 10_000, 1_000))
            .step(priced(Step::reply([text("whole.")]).stop(stop), 100_000, 40_000));
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            options.prices = vec![(MODEL.to_owned(), round_prices())];
            options.max_budget_usd = Some(0.35);
        });
        let told = run(&mut engine, "Go.").await;
        assert_eq!(told.outcome().terminal, Terminal::BudgetExhausted);
        assert_eq!(told.outcome().errors, expected, "{stop}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_B1_loop_E17_the_call_that_passes_the_cap_is_the_last_and_its_tools_are_not_run() {
    let script = Script::new()
        .step(priced(Step::reply([tool("Look", json!({"name": "a"}))]), 100_000, 10_000))
        // 0.4 dollars so far: one more such call passes half a dollar.
        .step(priced(
            Step::reply([
                tool("Change", json!({"name": "b", "does": "hang"})).id("toolu_b"),
                tool("Change", json!({"name": "c"})).id("toolu_c"),
                gate("begun"),
            ]),
            100_000,
            10_000,
        ))
        .reply([text("Never.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(calls.tools());
        options.prices = vec![(MODEL.to_owned(), round_prices())];
        options.max_budget_usd = Some(0.35);
    });
    stage.model.open("begun");

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::BudgetExhausted, true));
    assert_eq!(outcome.errors, ["Reached maximum budget ($0.35)"]);
    assert!((outcome.cost_usd - 0.4).abs() < 1e-9, "{}", outcome.cost_usd);
    assert!(!calls.begun().contains(&"c".to_owned()), "{:?}", calls.begun());
    assert_eq!(told.results().len(), 3, "every call has its result all the same");
    assert!(notes(&engine.transcript_file().unwrap()).iter().any(|(kind, _)| kind == "budget"));

    // There is no more: the next prompt is recorded, but nobody is asked.
    let told = run(&mut engine, "More.").await;
    assert_eq!(told.outcome().terminal, Terminal::BudgetExhausted);
    assert!(!told.0.iter().any(|event| matches!(event, Event::Requesting)));
    assert_eq!(stage.request_count(), 2);

    // With more money the session goes on, and nothing in it is open.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let mut engine = stage.resume(&file);
    run(&mut engine, "And now?").await.assert_completed();
    let results = results_in(&stage.request(3));
    assert_eq!(results.len(), 3);
    // The model reads what ended its calls: it was not the user.
    assert!(results[1..].iter().all(|(_, _, words)| words.contains("budget")), "{results:?}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_B1_a_cap_that_is_not_reached_changes_nothing() {
    let stage =
        Stage::new(Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| options.max_budget_usd = Some(10.0));
    let told = run(&mut engine, "Go.").await;
    assert!(told.assert_completed().cost_usd > 0.0);
    stage.assert_all_played();
}

#[tokio::test]
async fn a_cap_in_money_needs_a_price() {
    let stage = Stage::new(Script::new()).await;
    let mut options = stage.options();
    options.model = "somebody-elses-model".to_owned();
    options.max_budget_usd = Some(1.0);
    let refused = Engine::new(options.clone()).err();
    assert!(matches!(refused, Some(StartError::NoPrice { ref model }) if model == "somebody-elses-model"));
    // A fallback may be asked too.
    let mut fallback = stage.options();
    fallback.max_budget_usd = Some(1.0);
    fallback.fallback_models = vec!["somebody-elses-model".to_owned()];
    assert!(matches!(Engine::new(fallback).err(), Some(StartError::NoPrice { .. })));

    options.prices = vec![("somebody-elses-model".to_owned(), round_prices())];
    assert!(Engine::new(options).is_ok());
}

#[tokio::test]
async fn pit_B4_the_cost_is_the_sum_of_all_usage_at_its_prices() {
    let figures = [(1_000, 200, 3_000, 50), (10, 0, 4_200, 7), (5, 100, 4_300, 900)];
    let mut script = Script::new();
    for (n, (input, written, read, output)) in figures.into_iter().enumerate() {
        let part = if n < 2 { tool("Glob", json!({"pattern": "*"})) } else { text("Done.") };
        let step = priced(Step::reply([part]), input, output)
            .usage("cache_creation_input_tokens", written)
            .usage("cache_read_input_tokens", read)
            .usage(
                "cache_creation",
                json!({"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}),
            );
        // A failure in between costs nothing.
        script = script.step(Step::status(529)).step(step);
    }
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.prices = vec![(MODEL.to_owned(), round_prices())]);

    let outcome = run(&mut engine, "Go.").await.assert_completed().clone();

    let sum = |figure: fn(&(u64, u64, u64, u64)) -> u64| figures.iter().map(figure).sum::<u64>();
    let usage = &outcome.usage;
    assert_eq!(usage.input_tokens, sum(|row| row.0));
    assert_eq!(usage.output_tokens, sum(|row| row.3));
    let micros = figures.iter().map(|&(input, written, read, output)| {
        input as f64 + 2.0 * written as f64 + 0.1 * read as f64 + 10.0 * output as f64
    });
    let expected = micros.sum::<f64>() / 1e6;
    assert!((outcome.cost_usd - expected).abs() < 1e-12, "{} instead of {expected}", outcome.cost_usd);
    let model = &outcome.by_model[MODEL];
    assert!((model.cost_usd.unwrap() - expected).abs() < 1e-12);
    stage.assert_all_played();
}

/// The most a request can cost at the round prices: every byte a token, written to the cache, in the dearest place.
fn worst_usd(request: &Value) -> f64 {
    let bytes =
        ["system", "tools", "messages"].map(|part| request[part].to_string().len()).iter().sum::<usize>();
    let tokens = request["max_tokens"].as_u64().unwrap();
    (2.0 * bytes as f64 + 10.0 * tokens as f64) / 1e6
}

fn budget_notes(told: &Told) -> Vec<&str> {
    let reason = |event: &'_ Event| matches!(event, Event::Loop(told) if told.kind.name() == "budget");
    told.0
        .iter()
        .filter(|event| reason(event))
        .map(|event| match event {
            Event::Loop(told) => told.reason.as_str(),
            _ => unreachable!(),
        })
        .collect()
}

#[tokio::test]
async fn loop_B1_a_strict_cap_shortens_answers_and_then_refuses_the_call() {
    let mut script = Script::new();
    for _ in 0..20 {
        // It writes as much as it may when it is short of it, as models do.
        script = script.step(priced(Step::reply([tool("Glob", json!({"pattern": "*"}))]), 2_000, 1_500));
    }
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.prices = vec![(MODEL.to_owned(), round_prices())];
        options.max_budget_usd = Some(0.15);
        options.strict_budget = true;
        options.max_output_tokens = Some(6_000);
    });

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::BudgetExhausted, "{outcome:#?}");
    assert!(outcome.cost_usd <= 0.15, "{}", outcome.cost_usd);
    let asked: Vec<u64> =
        (1..=stage.request_count()).map(|nth| stage.request(nth)["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(asked[0], 6_000, "there is enough for the first");
    assert!(asked.last().unwrap() < &6_000 && asked.iter().all(|tokens| *tokens >= 1_024), "{asked:?}");
    assert!(asked.is_sorted_by(|one, next| one >= next), "{asked:?}");
    // Each could have cost all it may, and the cap would have held.
    let mut spent = 0.0;
    for nth in 1..=stage.request_count() {
        // What was counted already is no longer measured in bytes.
        let most = if nth == 1 { worst_usd(&stage.request(nth)) } else { asked[nth - 1] as f64 / 1e5 };
        assert!(spent + most <= 0.15, "request {nth}: {spent} + {most}");
        spent += 0.017;
    }
    let notes = budget_notes(&told);
    assert_eq!(notes.len(), stage.request_count() + 1, "every decision is told: {notes:#?}");
    assert!(notes.iter().any(|note| note.contains("at most")), "{notes:#?}");
    assert!(notes.last().unwrap().contains("not enough money"), "{notes:#?}");
}

#[tokio::test]
async fn loop_B1_a_broken_answer_is_paid_for_before_another_is_asked() {
    let cut = || priced(Step::reply([text("Half an answ")]), 100_000, 10).fault(Fault::cut_after_events(4));
    for (strict, cap, requests) in [(false, 0.15, 2), (false, 0.95, 3), (true, 0.15, 1)] {
        let script = Script::new().step(cut()).step(cut()).reply([text("Done.")]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            options.prices = vec![(MODEL.to_owned(), round_prices())];
            options.max_budget_usd = Some(cap);
            options.strict_budget = strict;
            options.max_output_tokens = Some(8_000);
        });
        let told = run(&mut engine, "Go.").await;
        assert_eq!(stage.request_count(), requests, "strict: {strict}, cap: {cap}");
        let outcome = told.outcome();
        if requests == 3 {
            told.assert_completed();
            assert!(outcome.cost_usd > 0.2, "{}", outcome.cost_usd);
        } else {
            assert_eq!(outcome.terminal, Terminal::BudgetExhausted, "{outcome:#?}");
            assert!(budget_notes(&told).iter().any(|note| note.contains("ask again")));
        }
    }
}

#[tokio::test]
async fn money_of_a_call_that_was_dropped_is_free_again() {
    let script = Script::new().reply([text("One."), gate("never")]).reply([text("Two.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.max_budget_usd = Some(0.05);
        options.strict_budget = false;
    });
    {
        let mut events = engine.submit(crate::stage::prompt("Go."));
        crate::stage::until(&mut events, |event| matches!(event, Event::Delta(_))).await;
    }
    // Set aside for a call that is no more, it would be waited for for ever.
    run(&mut engine, "Again.").await.assert_completed();
}

#[tokio::test]
async fn pit_B4_a_model_without_a_price_costs_nothing_that_is_counted_and_that_is_said_once() {
    let script = Script::new()
        .reply([tool("Glob", json!({"pattern": "*"}))])
        .reply([text("Done.")])
        .reply([text("Again.")])
        .strict(Strictness::default().relax(Rule::KnownModel));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.model = "somebody-elses".to_owned());

    let warnings = |told: &Told| {
        let words = |event: &Event| match event {
            Event::Informational { content, prevents_continuation: false } => Some(content.clone()),
            _ => None,
        };
        told.0.iter().filter_map(words).collect::<Vec<_>>()
    };
    let first = run(&mut engine, "Go.").await;
    let [warning] = &warnings(&first)[..] else { panic!("{:?}", warnings(&first)) };
    assert!(warning.contains("somebody-elses") && warning.contains("modelPricing"), "{warning}");
    let outcome = first.assert_completed();
    assert_eq!((outcome.cost_usd, outcome.by_model["somebody-elses"].cost_usd), (0.0, None));
    assert!(outcome.by_model["somebody-elses"].usage.output_tokens > 0);

    let second = run(&mut engine, "And again.").await;
    assert!(warnings(&second).is_empty(), "once is enough");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_B4_an_answer_of_many_blocks_is_counted_once() {
    let looks = (0..4).map(|n| tool("Glob", json!({"pattern": format!("*{n}")})));
    let blocks: Vec<_> = [text("One."), text("Two.")].into_iter().chain(looks).collect();
    let script = Script::new().step(priced(Step::reply(blocks), 1_000, 300)).step(priced(
        Step::reply([text("Done.")]),
        2_000,
        10,
    ));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.prices = vec![(MODEL.to_owned(), round_prices())]);
    let outcome = run(&mut engine, "Go.").await.assert_completed().clone();
    // What the server says it sent is the reference.
    let sent = stage.model.reply_requests().into_iter().map(|seen| seen.reply.usage.unwrap());
    let expected: f64 = sent
        .map(|usage| {
            let of = |figure: &str| usage[figure].as_f64().unwrap();
            (of("input_tokens") + 10.0 * of("output_tokens")) / 1e6
        })
        .sum();
    assert!((expected - 0.0061).abs() < 1e-12, "{expected}");
    assert!((outcome.cost_usd - expected).abs() < 1e-12, "{} instead of {expected}", outcome.cost_usd);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_S9_the_cap_and_the_structured_retries_are_looked_at_after_each_message() {
    let prose = || priced(Step::reply([text("Bern, of course.")]), 100_000, 10_000);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let asked = async |change: &dyn Fn(&mut pelton::Options)| {
        let script = (0..8).fold(Script::new(), |script, _| script.step(prose()));
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            options.json_schema = Some(schema.clone());
            options.prices = vec![(MODEL.to_owned(), round_prices())];
            change(options);
        });
        let told = run(&mut engine, "Which city?").await;
        (told.outcome().terminal, stage.request_count())
    };
    // The message that uses up the retries is the last, and so is the one that passes the cap: a fifth of a dollar each.
    let retries = |options: &mut pelton::Options| options.limits.structured_retries_max = 2;
    assert_eq!(asked(&retries).await, (Terminal::StructuredOutputRetries, 3));
    let cap = |options: &mut pelton::Options| options.max_budget_usd = Some(0.3);
    assert_eq!(asked(&cap).await, (Terminal::BudgetExhausted, 2));
    // Whichever comes first.
    let both = |options: &mut pelton::Options| {
        options.limits.structured_retries_max = 1;
        options.max_budget_usd = Some(0.7);
    };
    assert_eq!(asked(&both).await, (Terminal::StructuredOutputRetries, 2));
}

#[tokio::test]
async fn what_a_process_has_spent_counts_whatever_the_session_has_cost() {
    let answer = priced(Step::reply([text("Yes.")]), 1_000, 2_000).always();
    let stage = Stage::new(Script::new().step(answer)).await;
    let mut first = stage.engine();
    let each = run(&mut first, "One.").await.assert_completed().cost_usd;
    let file = first.transcript_file().unwrap();
    first.close(EndReason::Other).await;
    // The record's sums are told; of the cap they take nothing.
    let mut second = stage.engine_with(|options| {
        resume_from(options, &file);
        options.max_budget_usd = Some(each * 1.5);
    });
    let cost = second.cost_watch();
    assert_eq!((cost.usd(), cost.counted_usd()), (each, 0.0));
    assert_eq!(run(&mut second, "Two.").await.assert_completed().cost_usd, each * 2.0);
    assert_eq!(cost.by_model().values().filter_map(|used| used.cost_usd).sum::<f64>(), each * 2.0);
    assert_eq!((cost.usd(), cost.counted_usd()), (each * 2.0, each));
    second.close(EndReason::Other).await;
    // What it has spent elsewhere does, and clearing changes nothing in that.
    for (before, turns) in [(Some(each), 1), (None, 2)] {
        let mut third = stage.engine_with(|options| {
            options.max_budget_usd = Some(each * 1.5);
            options.budget_spent_usd = before;
        });
        assert_eq!(third.cost_watch().counted_usd(), before.unwrap_or_default());
        let asked_before = stage.request_count();
        for words in ["Three.", "/clear", "Four."] {
            let told = run(&mut third, words).await;
            let is_anew = words == "/clear" && before.is_none();
            assert_eq!(third.cost_watch().counted_usd() == 0.0, is_anew, "{before:?} {words}");
            assert_eq!(third.cost_watch().usd() == 0.0, words == "/clear" || (words, turns) == ("Four.", 1));
            let ends = [("Three.", 1), ("Four.", 1)].contains(&(words, turns));
            assert_eq!(told.outcome().terminal == Terminal::BudgetExhausted, ends, "{before:?} {words}");
        }
        assert_eq!(stage.request_count() - asked_before, turns, "{before:?}");
    }
}
