//! Answers in the form of a schema.

use pelton::{Engine, Terminal};
use pelton_testkit::{Script, Step, error, gate, text, thinking, tool, tool_with_json};
use serde_json::{Value, json};

use crate::stage::{Stage, Told, last_user_blocks, prompt, pulling, rest, results_in, run, sh, text_of};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["city", "people"],
        "additionalProperties": false,
    })
}

fn answer() -> Value {
    json!({"city": "Bern", "people": 134_000})
}

fn engine(stage: &Stage) -> Engine {
    stage.engine_with(|options| options.json_schema = Some(schema()))
}

#[tokio::test]
async fn loop_E19_an_answer_that_fits_ends_the_run() {
    let script = Script::new()
        .reply([thinking("Hm."), tool("Glob", json!({"pattern": "*"}))])
        .reply([text("Here it is."), tool("StructuredOutput", answer())])
        .reply([tool("StructuredOutput", json!({"city": "Basel", "people": 1}))]);
    let stage = Stage::new(script).await;
    let mut engine = engine(&stage);

    let told = run(&mut engine, "Which city?").await;

    let outcome = told.assert_completed();
    assert_eq!(outcome.structured_output, Some(answer()));
    assert_eq!(serde_json::from_str::<Value>(&outcome.text).unwrap(), answer());
    let request = stage.request(1);
    let offered = request["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "StructuredOutput");
    assert_eq!(offered.unwrap()["input_schema"], schema());
    // Each submission has an answer of its own, and what came before is legal to send.
    let told = run(&mut engine, "Another?").await;
    assert_eq!(told.assert_completed().structured_output.as_ref().unwrap()["city"], "Basel");
    stage.assert_all_played();
}

#[tokio::test]
async fn nothing_that_is_called_behind_an_answer_that_fits_is_done() {
    let script = Script::new().reply([
        tool("StructuredOutput", json!({"city": 7})).id("toolu_wrong"),
        tool("StructuredOutput", answer()).id("toolu_answer"),
        tool("Bash", sh("touch too-late")).id("toolu_late"),
        tool("StructuredOutput", json!({"city": "Basel", "people": 1})).id("toolu_second"),
    ]);
    let stage = Stage::new(script.reply([tool("StructuredOutput", answer())])).await;
    let mut engine = engine(&stage);

    let told = run(&mut engine, "Which city?").await;

    assert_eq!(told.assert_completed().structured_output, Some(answer()));
    assert!(!stage.path("too-late").exists());
    // Each call has its answer all the same: the next request is legal.
    run(&mut engine, "And the next?").await.assert_completed();
    let results = results_in(&stage.request(2));
    let ended: Vec<(&str, bool)> = results.iter().map(|(id, error, _)| (id.as_str(), *error)).collect();
    let expected =
        [("toolu_wrong", true), ("toolu_answer", false), ("toolu_late", true), ("toolu_second", true)];
    assert_eq!(ended, expected);
    assert!(results[2].2.contains("the final answer was given"), "{}", results[2].2);
    stage.model.assert_clean();
}

#[tokio::test]
async fn loop_S9_what_is_no_success_has_no_structured_output() {
    let stopping = json!({"PostToolUse": [{"hooks": [{
        "type": "command", "command": r#"echo '{"continue": false, "stopReason": "enough"}'"#,
    }]}]});
    let rows: [(&str, &str, Terminal); 3] = [
        ("the budget", "tool_use", Terminal::BudgetExhausted),
        ("a refusal", "refusal", Terminal::Completed),
        ("a hook", "tool_use", Terminal::HookStopped),
    ];
    for (what, stop, terminal) in rows {
        let given = [tool("StructuredOutput", answer()), gate("it ran")];
        let script = Script::new()
            .step(Step::reply(given).stop(stop).usage("output_tokens", 2_000_000))
            .reply([tool("StructuredOutput", json!({"city": "Basel", "people": 1}))]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            options.json_schema = Some(schema());
            match what {
                "the budget" => options.max_budget_usd = Some(1.0),
                "a hook" => crate::hooks::hook(options, &stopping),
                _ => {}
            }
        });
        let mut events = Box::pin(engine.submit(prompt("Which city?")));
        let mut told = pulling(&mut events, tokio::time::sleep(std::time::Duration::from_millis(50))).await.0;
        stage.model.open("it ran");
        told.extend(rest(&mut events).await);
        drop(events);
        let told = Told(told);
        let outcome = told.outcome();
        assert_eq!((outcome.terminal, &outcome.structured_output), (terminal, &None), "{what}");
        assert!(!outcome.text.contains("Bern"), "{what}: {}", outcome.text);
    }
}

#[tokio::test]
async fn loop_P8_loop_M4_a_structured_output_that_was_given_before_the_last_overload_is_the_answer() {
    // It runs alone, so it counts as done: nothing is discarded behind it, and nobody else is asked.
    let given = [
        tool("StructuredOutput", answer()),
        text("half a te").fragments(2).after(1, error("overloaded_error", "")),
    ];
    let script = Script::new().step(Step::status(529).times(2)).step(Step::reply(given));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.json_schema = Some(schema());
        options.fallback_models = vec!["opus".to_owned()];
    });
    let told = run(&mut engine, "Which city?").await;
    assert_eq!(told.assert_completed().structured_output, Some(answer()));
    stage.assert_all_played();
}

#[tokio::test]
async fn what_is_wrapped_or_written_as_text_is_understood() {
    let shapes = [
        json!({"output": answer()}),
        json!({"parameter": answer().to_string()}),
        json!({"input": {"city": "Bern", "people": 134_000}}),
    ];
    for shape in shapes {
        let stage = Stage::new(Script::new().reply([tool("StructuredOutput", shape.clone())])).await;
        let told = run(&mut engine(&stage), "Which city?").await;
        assert_eq!(told.assert_completed().structured_output, Some(answer()), "{shape}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn what_does_not_fit_is_told_and_asked_for_again() {
    let script = Script::new()
        .reply([tool("StructuredOutput", json!({"city": "Bern", "people": "many"}))])
        .reply([tool_with_json("StructuredOutput", r#"{"city": "Be"#)])
        .reply([text("It is Bern.")])
        .reply([tool("StructuredOutput", answer())]);
    let stage = Stage::new(script).await;

    let told = run(&mut engine(&stage), "Which city?").await;

    assert_eq!(told.assert_completed().structured_output, Some(answer()));
    let results = results_in(&stage.request(2));
    assert!(results[0].1 && results[0].2.contains("/people"), "{results:?}");
    assert!(text_of(&json!(last_user_blocks(&stage.request(4)))).contains("StructuredOutput tool"));
    stage.assert_all_played();
}

#[tokio::test]
async fn a_model_that_never_brings_it_is_asked_five_times_more() {
    for step in [Step::reply([text("No.")]), Step::reply([tool("StructuredOutput", json!({"city": 1}))])] {
        let stage = Stage::new(Script::new().step(step.always())).await;
        let told = run(&mut engine(&stage), "Which city?").await;
        let outcome = told.outcome();
        assert_eq!((outcome.terminal, outcome.is_error), (Terminal::StructuredOutputRetries, true));
        assert_eq!((outcome.structured_output.as_ref(), outcome.errors.len()), (None, 1));
        assert_eq!(told.transitions(), ["structured_output_retry"; 5]);
        assert_eq!(stage.request_count(), 6);
        stage.model.assert_clean();
    }
}
