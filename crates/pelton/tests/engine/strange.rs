//! Servers that count, number and name in ways of their own.

use pelton::{Priority, StartError, Terminal};
use pelton_testkit::{Fault, Script, Step, text, tool};
use serde_json::{Value, json};

use crate::stage::{
    Stage, Told, blocks, holds, last_user_blocks, prompt, pulling, rest, results_in, resume_from, run, sh,
    text_of, until,
};

const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;

#[tokio::test]
async fn a_count_that_cannot_be_is_not_believed_and_costs_nothing_of_the_conversation() {
    for count in [json!(u64::MAX), json!(1e300), json!(1_200_000), json!(5_000_000)] {
        let odd = Step::reply([tool("Bash", sh("echo one"))]).usage("input_tokens", count.clone());
        let script =
            Script::new().step(odd).reply([text("Two.")]).reply([text("Three.")]).reply([text("Four.")]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| options.window_tokens = None);
        let file = engine.transcript_file().unwrap();
        assert_eq!(run(&mut engine, "Go.").await.assert_completed().text, "Two.", "{count}");
        drop(engine);
        for words in ["Three.", "Four."] {
            let mut engine = stage.engine_with(|options| {
                options.window_tokens = None;
                resume_from(options, &file);
            });
            assert_eq!(run(&mut engine, "On.").await.assert_completed().text, words, "{count}");
        }
        let messages = |nth: usize| stage.request(nth)["messages"].as_array().unwrap().len();
        assert_eq!((messages(2), messages(3), messages(4)), (3, 5, 7), "{count}: nothing is left out");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn pit_L3_calls_have_ids_and_names_that_every_server_reads_and_each_its_own() {
    // One server numbers the calls of each answer anew, others have ways of their own, one does not at all.
    for id in ["toolu_same", "functions.Bash:0", "", "größe"] {
        let answer = |n: usize| Step::reply([tool("Bash", sh(&format!("echo number {n}"))).id(id)]);
        let steps = (1..=4).map(answer).chain([Step::reply([text("Done.")])]);
        let stage = Stage::new(steps.fold(Script::new(), Script::step)).await;
        run(&mut stage.engine(), "Go.").await.assert_completed();
        let sent = stage.request(5);
        let results = results_in(&sent);
        let said: Vec<&str> = results.iter().map(|(_, _, said)| said.trim()).collect();
        assert_eq!(said, ["number 1", "number 2", "number 3", "number 4"], "'{id}'");
        let calls: Vec<&Value> =
            blocks(&sent, "assistant").into_iter().filter(|block| block["type"] == "tool_use").collect();
        let mut ids: Vec<&str> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
        assert!(
            ids.iter()
                .all(|id| !id.is_empty()
                    && id.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))),
            "{ids:?}"
        );
        ids.dedup();
        assert_eq!(ids.len(), 4, "{ids:?}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn pit_L3_a_record_whose_calls_no_server_would_read_goes_on() {
    let calls = ["toolu_one", "toolu_two"].map(|id| tool("Bash", sh(&format!("echo from {id}"))).id(id));
    let stage = Stage::new(Script::new().reply(calls).reply([text("Done.")]).reply([text("Still.")])).await;
    let mut engine = stage.engine();
    let file = engine.transcript_file().unwrap();
    run(&mut engine, "Go.").await.assert_completed();
    drop(engine);
    // As others would have written it.
    let record = std::fs::read_to_string(&file).unwrap();
    let record = record
        .replace(r#""toolu_one""#, r#""functions.Bash:0""#)
        .replace(r#""toolu_two""#, r#""functions.Bash:1""#)
        .replace(r#""name":"Bash""#, r#""name":"shell.run""#);
    std::fs::write(&file, record).unwrap();

    run(&mut stage.resume(&file), "Sure?").await.assert_completed();

    let sent = stage.request(3);
    let results = results_in(&sent);
    let said: Vec<&str> = results.iter().map(|(_, _, said)| said.trim()).collect();
    assert_eq!(said, ["from toolu_one", "from toolu_two"]);
    assert!(
        !sent.to_string().contains("functions.Bash") && !sent.to_string().contains("shell.run"),
        "{sent}"
    );
    stage.assert_all_played();
}

#[tokio::test]
async fn a_tool_that_cannot_be_named_is_answered_and_sent_back_under_a_name_that_can() {
    let script = Script::new().reply([tool("fs.read file", json!({"x": 1}))]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    run(&mut stage.engine(), "Go.").await.assert_completed();
    let sent = stage.request(2);
    let call = blocks(&sent, "assistant").into_iter().find(|block| block["type"] == "tool_use").unwrap();
    assert_eq!(call["name"], "fs_read_file");
    assert!(results_in(&sent)[0].1, "there is no such tool");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_B1_what_an_answer_wrote_before_it_broke_off_is_paid_and_counted() {
    let long = "word ".repeat(80_000);
    let whole = Stage::new(Script::new().reply([text(long.clone())])).await;
    let cost_of_whole = run(&mut whole.engine(), "Go.").await.assert_completed().cost_usd;
    let cut = Step::reply([text(long.clone())]).fault(Fault::cut_after_bytes(300_000));
    let stage = Stage::new(Script::new().step(cut).reply([text("The rest.")])).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "Go.").await;
    let outcome = told.assert_completed();
    // Most of these bytes are not of the answer's words.
    assert!(outcome.cost_usd > cost_of_whole * 0.05, "{} of {cost_of_whole}", outcome.cost_usd);
    assert!(outcome.usage.output_tokens > 5_000, "{:?}", outcome.usage);

    // So is what was written before somebody interrupted.
    let stage = Stage::new(Script::new().reply([text(long), pelton_testkit::gate("never")])).await;
    let mut engine = stage.engine();
    let interrupter = engine.interrupter();
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let mut told = until(&mut events, |event| matches!(event, pelton::Event::Message(_))).await;
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    let told = Told(told);
    assert!(told.outcome().cost_usd > cost_of_whole * 0.4, "{} of {cost_of_whole}", told.outcome().cost_usd);
}

#[tokio::test]
async fn loop_S9_a_pause_for_ever_is_no_structured_output() {
    let pauses = Step::reply([text("Looking.")]).stop("pause_turn").times(11);
    let script = Script::new().step(pauses).step(Step::reply([tool("StructuredOutput", json!({"n": 1}))]));
    let stage = Stage::new(script).await;
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut engine = stage.engine_with(|options| options.json_schema = Some(schema));
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().structured_output, Some(json!({"n": 1})));
    assert_eq!(told.transitions().last(), Some(&"structured_output_retry"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T11_the_tool_an_answer_has_to_come_by_is_not_left_out() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let found = Stage::new(Script::new().reply([tool("StructuredOutput", json!({"n": 1}))])).await;
    run(&mut found.engine_with(|options| options.json_schema = Some(schema.clone())), "Go.")
        .await
        .assert_completed();
    let tools = found.request(1)["tools"].as_array().unwrap().clone();
    let place = tools.iter().position(|tool| tool["name"] == "StructuredOutput").unwrap();
    let refusal = format!("tools.{place}.custom.input_schema: JSON schema is invalid");
    let stage = Stage::new(Script::new().step(Step::status(400).message(refusal).always())).await;
    let told = run(&mut stage.engine_with(|options| options.json_schema = Some(schema.clone())), "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert!(told.outcome().text.contains("JSON schema is invalid"), "{}", told.outcome().text);
    assert_eq!(stage.request_count(), 1);

    let mut options = stage.options();
    options.json_schema = Some(schema);
    options.rules.deny.push("StructuredOutput".parse().unwrap());
    assert!(matches!(pelton::Engine::new(options), Err(StartError::StructuredDenied)));
}

#[tokio::test]
async fn pit_L13_calls_that_are_cut_beside_others_again_and_again_have_an_end() {
    let cut = r#"{"file_path": "long.txt", "content": "and so on and"#;
    let answer = |n: usize| {
        let parts = [tool("Bash", sh(&format!("echo {n}"))), pelton_testkit::tool_with_json("Write", cut)];
        Step::reply(parts).stop("max_tokens")
    };
    let steps = (0..9).map(answer);
    let stage = Stage::new(steps.fold(Script::new(), Script::step)).await;
    let mut engine = stage.engine_with(|options| options.max_output_tokens = Some(4_000));
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert_eq!(told.transitions(), ["max_output_tokens_recovery"; 3]);
    assert_eq!(stage.request_count(), 4);
    let asked: Vec<Value> = (1..=4).map(|nth| stage.request(nth)["max_tokens"].clone()).collect();
    assert_eq!(asked[0], 4_000);
    assert!(asked[1..].iter().all(|most| most.as_u64() > Some(8_000)), "{asked:?}");
}

#[tokio::test]
async fn loop_Z7_a_prompt_for_the_next_question_is_in_it_whatever_that_is() {
    let script = Script::new()
        .step(Step::reply([text("Half of"), pelton_testkit::gate("half")]).stop("max_tokens"))
        .reply([text("all of it.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let queue = engine.queue();
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let (mut told, ()) = pulling(&mut events, stage.model.wait_at_gate("half")).await;
    queue.add(prompt("And mind the gap!"), Priority::Next).await.unwrap();
    stage.model.open("half");
    told.extend(rest(&mut events).await);
    Told(told).assert_completed();
    let last = stage.request(stage.request_count());
    assert!(text_of(&json!(last_user_blocks(&last))).contains("And mind the gap!"), "{last}");
}

#[tokio::test]
async fn loop_A3_a_prompt_that_waited_is_over_when_it_is_interrupted() {
    for before_it_began in [false, true] {
        let stage = Stage::new(Script::new().reply([text("Here.")])).await;
        let line = "test -e let-go || { touch begun; sleep 30; }";
        let hooks = json!({"UserPromptSubmit": [{"hooks": [{"type": "command", "command": line}]}]});
        let mut engine = stage.engine_with(|options| {
            assert!(options.hooks.add_settings(&hooks, &pelton::hooks::Source::User).is_empty());
        });
        let (queue, interrupter) = (engine.queue(), engine.interrupter());
        let file = engine.transcript_file().unwrap();
        queue.add(prompt("It waited."), Priority::Later).await.unwrap();
        let mut events = Box::pin(engine.submit_queued().unwrap());
        let mut told = Vec::new();
        if !before_it_began {
            let begun = stage.path("begun");
            told = pulling(&mut events, holds(|| begun.exists())).await.0;
        }
        interrupter.interrupt();
        told.extend(rest(&mut events).await);
        drop(events);
        assert_eq!(Told(told).outcome().terminal, Terminal::AbortedStreaming);
        assert!(queue.waiting().is_empty(), "it does not come again");
        assert!(pelton::transcript::read(&file).unwrap().queued.is_empty());
        stage.write("let-go", "");
        run(&mut engine, "Another.").await.assert_completed();
        let sent = text_of(&json!(last_user_blocks(&stage.request(1))));
        assert!(sent.contains("It waited.") && sent.contains("[Request interrupted by user]"), "{sent}");
    }
}

#[tokio::test]
async fn loop_S4_an_id_that_was_used_before_makes_no_two_prompts_one() {
    let script = Script::new()
        .reply([tool("Bash", sh("echo one"))])
        .reply([text("One.")])
        .reply([text("Two.")])
        .reply([text("Three.")])
        .reply([text("Four.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let file = engine.transcript_file().unwrap();
    let id = uuid::Uuid::from_u128(7);
    let with_id = |words: &str| prompt(words).with_id(id);
    for asked in [with_id("First."), prompt("Middle."), with_id("Second.")] {
        Told(rest(&mut Box::pin(engine.submit(asked))).await).assert_completed();
    }
    drop(engine);
    run(&mut stage.resume(&file), "Last.").await.assert_completed();
    let sent = stage.request(5)["messages"].to_string();
    for words in ["First.", "echo one", "Middle.", "Second.", "Last."] {
        assert!(sent.contains(words), "{words}: {sent}");
    }
    stage.assert_all_played();
}
