//! What calls came to, in a line, by a small model in the background.

use std::time::{Duration, Instant};

use pelton::Event;
use pelton_testkit::{Script, Step, When, gate, pause, text, tool};
use serde_json::json;

use crate::stage::{Stage, Told, prompt, pulling, rest, run};

const SMALL: &str = "claude-haiku-5-5";

fn small() -> When {
    When::any().model(SMALL)
}

fn look(id: &str) -> Step {
    Step::reply([text("Looking."), tool("Glob", json!({"pattern": "*.rs"})).id(id)])
}

fn summaries(told: &Told) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for event in &told.0 {
        if let Event::ToolUseSummary { summary, calls } = event {
            found.push((summary.clone(), calls.iter().map(ToString::to_string).collect()));
        }
    }
    found
}

async fn wanted(stage: &Stage) -> Told {
    run(&mut stage.engine_with(|options| options.tool_use_summaries = true), "Go.").await
}

#[tokio::test]
async fn loop_Z1_loop_I4_the_calls_of_a_turn_are_put_into_a_line_while_the_next_runs() {
    let script = Script::new()
        .step(Step::reply([text("Searched for Rust files\nand more")]).when(small()).times(2))
        .step(look("toolu_1"))
        // Time enough for the first summary.
        .step(Step::reply([
            pause(Duration::from_millis(150)),
            tool("Read", json!({"file_path": "none"})).id("toolu_2"),
        ]))
        .step(Step::reply([pause(Duration::from_millis(150)), text("Done.")]));
    let stage = Stage::new(script).await;
    let told = wanted(&stage).await;
    let outcome = told.assert_completed();
    let lines = |id: &str| ("Searched for Rust files".to_owned(), vec![id.to_owned()]);
    assert_eq!(summaries(&told), [lines("toolu_1"), lines("toolu_2")]);
    // Told when the answer of the next turn is complete, before its calls are answered.
    let first = told.position(|event| matches!(event, Event::ToolUseSummary { .. }));
    assert!(first > told.position(|event| crate::stage::is_result_of(event, "toolu_1")));
    assert!(first < told.position(|event| crate::stage::is_result_of(event, "toolu_2")));
    // The small model is told of the calls, and of nothing else.
    let request = stage.model.reply_requests().into_iter().find(|seen| seen.body["model"] == SMALL).unwrap();
    let said = request.body["messages"].to_string();
    assert!(said.contains("Glob") && said.contains("*.rs") && said.contains("Looking."), "{said}");
    assert_eq!((request.body.get("tools"), &request.body["max_tokens"]), (None, &json!(100)));
    // It is in the cost, but not in the main loop's own usage.
    let own = &outcome.by_model[SMALL];
    assert!(own.usage.output_tokens > 0 && own.cost_usd.unwrap() > 0.0);
    let main = &outcome.by_model["claude-sonnet-5-5"].usage;
    assert_eq!(main.output_tokens, outcome.usage.output_tokens);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z1_nothing_is_asked_unless_it_is_wanted() {
    let script = Script::new().step(look("toolu_1")).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine(), "Go.").await;
    told.assert_completed();
    assert!(summaries(&told).is_empty());
    assert!(stage.model.reply_requests().iter().all(|seen| seen.body["model"] != SMALL));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z1_a_model_that_hangs_delays_neither_a_turn_nor_the_result() {
    let script = Script::new()
        .step(Step::reply([gate("never"), text("Too late.")]).when(small()).always())
        .step(look("toolu_1"))
        .step(look("toolu_2"))
        .step(look("toolu_3"))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let began = Instant::now();
    let told = wanted(&stage).await;
    told.assert_completed();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(summaries(&told).is_empty());
    // Each turn's request comes as soon as without: the server's own clock says so.
    let seen = stage.model.reply_requests();
    let main: Vec<Duration> =
        seen.iter().filter(|seen| seen.body["model"] != SMALL).map(|seen| seen.arrived).collect();
    assert_eq!(main.len(), 4);
    for pair in main.windows(2) {
        assert!(pair[1] - pair[0] < Duration::from_secs(2), "{main:?}");
    }
    assert!(seen.iter().any(|seen| seen.body["model"] == SMALL), "they were asked for");
    crate::stage::holds(|| {
        stage
            .model
            .reply_requests()
            .iter()
            .filter(|seen| seen.body["model"] == SMALL)
            .all(|seen| seen.hung_up)
    })
    .await;
}

#[tokio::test]
async fn loop_Z1_loop_R1_an_overloaded_small_model_is_not_asked_again() {
    let script = Script::new()
        .step(Step::status(529).when(small()).always())
        .step(look("toolu_1"))
        .step(Step::reply([pause(Duration::from_millis(200)), text("Done.")]));
    let stage = Stage::new(script).await;
    let told = wanted(&stage).await;
    told.assert_completed();
    assert!(summaries(&told).is_empty() && told.retries().is_empty());
    let asked = stage.model.reply_requests().iter().filter(|seen| seen.body["model"] == SMALL).count();
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn loop_Z1_loop_R1_a_summary_that_is_asked_for_again_is_told_and_counted() {
    let script = Script::new()
        .step(Step::status(500).when(small()))
        .step(Step::reply([text("Searched")]).when(small()))
        .step(look("toolu_1"))
        .step(Step::reply([gate("summed up"), text("Done.")]));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tool_use_summaries = true);
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let asked_twice = crate::stage::holds(|| {
        stage.model.reply_requests().iter().filter(|seen| seen.body["model"] == SMALL).count() == 2
    });
    let (mut told, ()) = pulling(&mut events, asked_twice).await;
    stage.model.open("summed up");
    told.extend(rest(&mut events).await);
    let told = Told(told);
    let outcome = told.assert_completed();
    let reasons = told.loop_reasons("retry");
    assert!(matches!(&reasons[..], [reason] if reason.starts_with("a summary of calls: ")), "{reasons:?}");
    assert_eq!(outcome.retries, 1);
    assert!(told.retries().is_empty(), "nobody waits for it");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z1_loop_B1_summaries_are_paid_from_the_same_purse_and_give_way() {
    // All the money is set aside for the summary that hangs; the turn takes it back rather than wait.
    let hangs = Step::reply([gate("never")]).when(small()).always();
    let script = Script::new().step(hangs).step(look("toolu_1")).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.tool_use_summaries = true;
        options.max_budget_usd = Some(0.5);
        options.strict_budget = true;
        options.max_output_tokens = Some(40_000);
    });
    let began = Instant::now();
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert!(began.elapsed() < Duration::from_secs(5));

    // Where nothing is left for it, none is made.
    let script = Script::new()
        .step(look("toolu_1").usage("output_tokens", 30_000).usage("input_tokens", 10))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.tool_use_summaries = true;
        options.max_budget_usd = Some(0.35);
        options.strict_budget = true;
        options.max_output_tokens = Some(30_000);
        let dear = pelton_model::catalogue::Rates {
            input: 900.0,
            output: 900.0,
            cache_write_5m: 900.0,
            cache_write_1h: 900.0,
            cache_read: 900.0,
        };
        options.prices =
            vec![(SMALL.to_owned(), pelton_model::catalogue::Prices { rates: dear, long_prompt: None })];
    });
    let told = run(&mut engine, "Go.").await;
    let refused =
        |event: &Event| matches!(event, Event::Loop(told) if told.reason.starts_with("no summary is made"));
    assert!(told.0.iter().any(refused), "{:#?}", told.outcome());
    assert!(stage.model.reply_requests().iter().all(|seen| seen.body["model"] != SMALL));
}
