//! One purse for the whole tree.

use std::time::Duration;

use pelton::Options;
use pelton_model::catalogue::{Prices, Rates};

use super::*;
use crate::stage::{holds, pulling, rest};

const MODEL: &str = "claude-sonnet-5-5";

/// A dollar for a million tokens in, ten for a million out, and nothing is cached.
fn budget(options: &mut Options, cap: f64, strict: bool) {
    let rates = Rates { input: 1.0, output: 10.0, cache_write_5m: 1.0, cache_write_1h: 1.0, cache_read: 1.0 };
    options.prices = vec![(MODEL.to_owned(), Prices { rates, long_prompt: None })];
    options.max_budget_usd = Some(cap);
    options.strict_budget = strict;
}

/// A step with this usage.
fn priced(step: Step, input: u64, output: u64) -> Step {
    step.usage("input_tokens", input)
        .usage("cache_creation_input_tokens", 0)
        .usage("cache_read_input_tokens", 0)
        .usage("output_tokens", output)
}

/// A step that costs thirty cents.
fn costly(step: Step) -> Step {
    priced(step, 100_000, 20_000)
}

/// After a first call of this price, the model starts some agents in one answer. They use tools for ever.
fn spawns(count: usize, price: fn(Step) -> Step) -> Script {
    let calls: Vec<Part> = (1..=count).map(|n| start(&format!("toolu_{n}"), &format!("task {n}"))).collect();
    let look = || Step::reply([gate("go"), tool("Glob", json!({"pattern": "*"}))]);
    Script::new()
        .step(price(Step::reply([tool("Glob", json!({"pattern": "*"}))])))
        .step(price(Step::reply(calls)))
        .step(price(look().when(When::any().system(CHILD)).always()))
        .step(price(Step::reply([text("Done.")])).always())
}

fn budget_reasons(told: &Told) -> Vec<String> {
    let reason = |event: &Event| match event {
        Event::Loop(told) if told.kind.name() == "budget" => Some(told.reason.clone()),
        Event::Agent(AgentEvent { news: AgentNews::Told(event), .. }) => match &**event {
            Event::Loop(told) if told.kind.name() == "budget" => Some(told.reason.clone()),
            _ => None,
        },
        _ => None,
    };
    told.0.iter().filter_map(reason).collect()
}

#[tokio::test]
async fn pit_B1_loop_B1_five_children_share_one_cap_and_pass_it_by_no_more_than_the_calls_in_flight() {
    let stage = Stage::new(spawns(5, costly)).await;
    let mut engine = stage.engine_with(|options| budget(options, 1.0, false));

    let told = {
        let mut events = engine.submit(crate::stage::prompt("Go."));
        // The children's answers come after the one that started them has ended and is paid for.
        let ended = || stage.model.reply_requests().get(1).is_some_and(|seen| seen.reply.ending.is_some());
        let (mut told, ()) = pulling(&mut events, holds(ended)).await;
        told.extend(pulling(&mut events, tokio::time::sleep(Duration::from_secs(1))).await.0);
        stage.model.open("go");
        told.extend(rest(&mut events).await);
        Told(told)
    };

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::BudgetExhausted, "{outcome:#?}");
    assert_eq!(outcome.errors, ["Reached maximum budget ($1)"]);
    // Two calls of the main thread and two of the children: what is set aside for each of these is twenty cents, so a
    // third child waits, and then the money is gone.
    assert_eq!(stage.request_count(), 4);
    assert!((outcome.cost_usd - 1.2).abs() < 1e-9, "{}", outcome.cost_usd);
    assert_eq!(told.results().len(), 6, "every call is answered");
    assert_eq!(ends(&told).len(), 5, "every child has an outcome");
    assert!(ends(&told).iter().all(|(_, end)| *end != AgentEnd::Completed));
    let reasons = budget_reasons(&told);
    assert_eq!(reasons.iter().filter(|reason| reason.starts_with("set aside")).count(), 4, "{reasons:#?}");
    for word in ["waits until", "not enough money"] {
        assert!(reasons.iter().any(|reason| reason.contains(word)), "{word}: {reasons:#?}");
    }

    // There is none left for the next prompt either.
    let told = run(&mut engine, "More.").await;
    assert_eq!((told.outcome().terminal, stage.request_count()), (Terminal::BudgetExhausted, 4));
}

#[tokio::test]
async fn loop_B1_a_strict_cap_holds_for_children_that_ask_at_the_same_time() {
    for cap in [0.25, 0.5, 0.95, 1.3] {
        let stage = Stage::new(spawns(5, |step| priced(step, 5_000, 20_000))).await;
        stage.model.open("go");
        let mut engine = stage.engine_with(|options| {
            budget(options, cap, true);
            options.max_output_tokens = Some(20_000);
        });
        let told = run(&mut engine, "Go.").await;
        let outcome = told.outcome();
        assert_eq!(outcome.terminal, Terminal::BudgetExhausted, "{cap}: {outcome:#?}");
        // The scripted model writes 20,000 tokens whatever it may; a real one writes no more than it may.
        let asked = (1..=stage.request_count()).map(|nth| stage.request(nth)["max_tokens"].as_f64().unwrap());
        let cost: f64 = asked.map(|tokens| 0.005 + tokens.min(20_000.0) * 1e-5).sum();
        assert!(cost <= cap, "{cap}: {cost}");
        assert!(cost > cap - 0.2, "most of it can be used: {cost} of {cap}");
        let calls = told.entries().iter().filter(|entry| is_call(entry)).count();
        assert_eq!(told.results().len(), calls, "{cap}: every call is answered");
    }
}

#[tokio::test]
async fn loop_B1_children_wait_for_money_that_calls_in_flight_give_back() {
    // Each is thought to cost as much as the first call, and costs next to nothing.
    let calls: Vec<Part> = (1..=4).map(|n| start(&format!("toolu_{n}"), &format!("task {n}"))).collect();
    let cheap = |step: Step| priced(step, 10, 1);
    let script = Script::new()
        .step(costly(Step::reply([tool("Glob", json!({"pattern": "*"}))])))
        .step(cheap(Step::reply(calls)))
        .step(cheap(Step::reply([text("Fine.")])).when(When::any().system(CHILD)).times(4))
        .step(cheap(Step::reply([text("Done.")])));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| budget(options, 0.75, false));
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert!(ends(&told).iter().all(|(_, end)| *end == AgentEnd::Completed), "{:?}", ends(&told));
    let reasons = budget_reasons(&told);
    assert!(reasons.iter().any(|reason| reason.contains("waits until")), "{reasons:#?}");
    stage.assert_all_played();
}

#[tokio::test]
async fn an_agent_whose_price_nobody_knows_is_not_started_within_a_budget() {
    let script = Script::new()
        .reply([tool("Agent", json!({"description": "x", "prompt": "y", "model": "somebody-elses"}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine_with(|options| options.max_budget_usd = Some(10.0)), "Go.").await;
    told.assert_completed();
    let [(_, true, words)] = &results_in(&stage.request(2))[..] else { panic!() };
    assert!(words.contains("price of somebody-elses"), "{words}");
    stage.assert_all_played();
}

fn is_call(entry: &pelton::history::Entry) -> bool {
    matches!(entry.kind, Kind::Assistant { piece: pelton::history::Piece::Call { .. }, .. })
}

#[tokio::test]
async fn pit_B1_a_broken_answer_of_a_child_is_in_the_cost_of_the_session() {
    let half = Step::reply([text("Half an answ")]).fault(pelton_testkit::Fault::cut_after_events(4));
    let script = Script::new()
        .step(costly(Step::reply([start("toolu_a", "task")])))
        .step(priced(half, 50_000, 1).when(When::any().system(CHILD)))
        .step(priced(Step::reply([text("Whole.")]), 50_000, 1_000).when(When::any().system(CHILD)))
        .step(costly(Step::reply([text("Done.")])));
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine_with(|options| budget(options, 10.0, false)), "Go.").await;
    let outcome = told.assert_completed();
    // Twice thirty cents, the five that the broken answer's prompt cost, and six for the whole one.
    let (least, most) = (0.3 + 0.05 + 0.06 + 0.3, 0.3 + 0.051 + 0.06 + 0.3);
    assert!((least..=most).contains(&outcome.cost_usd), "{}", outcome.cost_usd);
    stage.assert_all_played();
}
