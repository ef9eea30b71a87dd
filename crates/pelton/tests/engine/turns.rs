//! Why the loop goes on.

use pelton::hooks::Source;
use pelton::{Event, Terminal};
use pelton_testkit::{Part, Script, Step, error, gate, raw_block, redacted_thinking, text, thinking, tool};
use serde_json::{Value, json};

use crate::probe::{Note, Notes};
use crate::stage::{
    Stage, Told, blocks, entry_of, holds, is_start_of, last_user_blocks, lines, prompt, pulling, rest,
    results_in, run, sh, text_of,
};

#[tokio::test]
async fn loop_T1_loop_I13_tools_run_and_their_results_go_back() {
    let script = Script::new()
        .reply([text("Let me look."), tool("Read", json!({"file_path": "a.txt"})).id("toolu_1")])
        .reply([text("It says hello.")]);
    let stage = Stage::new(script).await;
    stage.write("a.txt", "hello from the file\n");
    let mut engine = stage.engine();

    let told = run(&mut engine, "What does a.txt say?").await;

    let outcome = told.assert_completed();
    assert_eq!(outcome.text, "It says hello.");
    assert_eq!(told.transitions(), ["next_turn"]);
    assert_eq!(outcome.transitions, [("next_turn", 1)].into());
    let second = stage.request(2);
    let sent = results_in(&second);
    assert_eq!(sent.len(), 1);
    let (id, is_error, content) = &sent[0];
    assert_eq!((id.as_str(), *is_error), ("toolu_1", false));
    assert!(content.contains("hello from the file"), "{content}");
    let roles: Vec<&Value> =
        second["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T5_an_answer_cut_by_the_output_limit_is_continued_and_both_halves_count() {
    let script = Script::new()
        .step(Step::reply([text("The first half,")]).stop("max_tokens"))
        .reply([text(" and the second.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Write a lot.").await;

    told.assert_completed();
    assert_eq!(told.transitions(), ["max_output_tokens_recovery"]);
    let outcome = told.outcome();
    assert_eq!((&*outcome.text_before, &*outcome.text), ("The first half,", " and the second."));
    let second = stage.request(2);
    assert_eq!(text_of(&json!(blocks(&second, "assistant"))), "The first half,");
    assert!(text_of(&json!(last_user_blocks(&second))).contains("cut off"));
    // The words in between are the harness's own, and the transcript says so.
    let lines = lines(&engine.transcript_file().unwrap());
    let nudge = lines.iter().rfind(|line| line["type"] == "user").unwrap();
    assert_eq!(nudge["isMeta"], true);
    stage.assert_all_played();
}

#[tokio::test]
async fn what_goes_before_the_rest_of_an_answer_is_all_of_that_answer_and_nothing_else() {
    let cut = |words: &str| Step::reply([text(words)]).stop("max_tokens");
    let broken = Step::reply([text("two, "), error("api_error", "Internal server error")]);
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let script = Script::new()
        .step(cut("Not of it. "))
        .reply([thinking("Hm."), text("I look first."), tool("Look", json!({"name": "a"}))])
        .step(cut("One, "))
        .step(broken)
        .step(Step::status(400).message(refusal))
        .reply([text("three.")])
        .reply([text("Another answer.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(Notes::default().tools()));

    let told = run(&mut engine, "Count.").await;
    let outcome = told.assert_completed();
    assert_eq!((&*outcome.text_before, &*outcome.text), ("One, two, ", "three."));

    let told = run(&mut engine, "And now?").await;
    assert_eq!((&*told.outcome().text_before, &*told.outcome().text), ("", "Another answer."));
}

#[tokio::test]
async fn loop_T5_loop_X7_the_fourth_cut_in_a_submission_is_its_end() {
    let cut = Step::reply([text("Again and again")]).stop("max_tokens").times(4);
    let stage = Stage::new(Script::new().step(cut)).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Write a lot.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::ModelError);
    assert!(outcome.is_error);
    assert!(outcome.text.contains("output limit"), "{}", outcome.text);
    assert_eq!(told.transitions(), ["max_output_tokens_recovery"; 3]);
    assert_eq!(stage.request_count(), 4);
    stage.assert_all_played();
}

/// A search the server runs itself, and is not done with.
fn searching() -> Vec<Part> {
    let call = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "pelton"}});
    vec![thinking("I should search."), text("Searching."), raw_block(call)]
}

#[tokio::test]
async fn loop_T9_a_paused_answer_goes_back_as_it_came() {
    let found = json!({
        "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "e"}]
    });
    let script = Script::new()
        .step(Step::reply(searching()).stop("pause_turn"))
        .reply([raw_block(found.clone()), text("It is a turbine.")])
        .reply([text("You are welcome.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "What is a Pelton?").await;

    told.assert_completed();
    assert_eq!(told.transitions(), ["pause_turn"]);
    let second = stage.request(2);
    let last = second["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "assistant", "nobody says anything in between");
    let kinds: Vec<&Value> = last["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "server_tool_use"]);
    assert_eq!(last["content"][2]["input"], json!({"query": "pelton"}));

    run(&mut engine, "Thank you.").await.assert_completed();
    let third = stage.request(3);
    assert!(blocks(&third, "assistant").contains(&&found), "what the server found is sent back unchanged");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T9_an_answer_that_is_paused_for_ever_goes_back_ten_times() {
    let mut script = Script::new();
    for n in 0..11 {
        let call = json!({"type": "server_tool_use", "id": format!("srvtoolu_{n}"), "name": "web_search", "input": {}});
        script = script.step(Step::reply([text("Searching."), raw_block(call)]).stop("pause_turn"));
    }
    let stage = Stage::new(script.reply([text("Never mind.")])).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "What is a Pelton?").await;

    assert_eq!(told.assert_completed().text, "Searching.", "there is an answer, such as it is");
    assert_eq!(told.transitions(), ["pause_turn"; 10]);
    assert_eq!(stage.request_count(), 11);
    let is_said = |event: &Event| matches!(event, Event::Loop(said) if said.reason.contains("paused more than 10 times"));
    assert_eq!(told.0.iter().filter(|event| is_said(event)).count(), 1);
    run(&mut engine, "Then do not search.").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T9_a_paused_answer_of_words_alone_is_asked_to_go_on() {
    let script = Script::new()
        .step(Step::reply([text("First part.")]).stop("pause_turn"))
        .reply([text("Second part.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.assert_completed().text, "Second part.");
    assert_eq!(told.transitions(), ["pause_turn"]);
    assert!(text_of(&json!(last_user_blocks(&stage.request(2)))).contains("Go on"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T9_a_tool_of_the_servers_in_an_attempt_that_failed_is_none_of_the_answers() {
    let call = searching().pop().unwrap();
    let script = Script::new()
        .step(Step::reply([call, error("overloaded_error", "")]))
        .step(Step::reply([text("First part.")]).stop("pause_turn"))
        .reply([text("Second part.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.assert_completed().text, "Second part.");
    assert_eq!(told.transitions(), ["pause_turn"]);
    assert!(text_of(&json!(last_user_blocks(&stage.request(3)))).contains("Go on"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T9_a_pause_without_words_is_asked_to_go_on_too() {
    for paused in [vec![thinking("Hm.")], vec![redacted_thinking("secret")], vec![], vec![text("  ")]] {
        // At the beginning, behind a call, and in an agent.
        let paused = || Step::reply(paused.clone()).stop("pause_turn");
        let script = Script::new()
            .step(paused())
            .reply([thinking("Now."), tool("Bash", sh("echo"))])
            .step(paused().times(2))
            .reply([tool(
                "Agent",
                json!({"description": "d", "prompt": "Child.", "subagent_type": "general-purpose"}),
            )])
            .step(paused())
            .reply([text("Of the child.")])
            .reply([text("Done.")]);
        let stage = Stage::new(script).await;
        let told = run(&mut stage.engine(), "Go.").await;
        assert_eq!(told.assert_completed().text, "Done.");
        let expected = ["pause_turn", "next_turn", "pause_turn", "pause_turn", "next_turn"];
        assert_eq!(told.transitions(), expected);
        for nth in [2, 4, 5, 7] {
            assert!(text_of(&json!(last_user_blocks(&stage.request(nth)))).contains("Go on"), "{nth}");
        }
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_B2_loop_X4_the_last_answer_is_the_last_whatever_there_would_be_to_ask() {
    let blocking = json!({"Stop": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]});
    let answer = || Step::reply([text("An answer.")]).usage("output_tokens", 600);
    let rows: [(&str, Step, &str); 6] = [
        ("a stop hook", answer(), "stop_hook_blocking"),
        ("more output", answer(), "token_budget_continuation"),
        ("the output limit", answer().stop("max_tokens"), "max_output_tokens_recovery"),
        ("a pause", answer().stop("pause_turn"), "pause_turn"),
        ("a tool", Step::reply([tool("Glob", json!({"pattern": "*"}))]), "next_turn"),
        ("a reminder", answer(), "structured_output_retry"),
    ];
    for (what, step, transition) in rows {
        // A failure in between is no answer.
        let script = Script::new().step(step.clone()).step(Step::status(529)).step(step);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            options.limits.turns_max = Some(2);
            match what {
                "a stop hook" => assert!(options.hooks.add_settings(&blocking, &Source::User).is_empty()),
                "more output" => options.limits.output_tokens_wanted = Some(6_000),
                "a reminder" => options.json_schema = Some(json!({"type": "object"})),
                _ => {}
            }
        });
        let told = run(&mut engine, "Go.").await;
        let outcome = told.outcome();
        assert_eq!((outcome.terminal, outcome.is_error), (Terminal::MaxTurns, true), "{what}");
        assert_eq!(told.transitions(), [transition], "{what}");
        assert_eq!(outcome.errors[0], "Reached maximum number of turns (2)", "{what}");
        // What was held back and could not be recovered from is said, too.
        let unsaid = &outcome.errors[1..];
        match what {
            "the output limit" => {
                assert!(unsaid.len() == 1 && unsaid[0].contains("output limit"), "{unsaid:?}");
            }
            _ => assert!(unsaid.is_empty(), "{what}: {unsaid:?}"),
        }
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_T10_an_empty_answer_is_nudged_once() {
    let script = Script::new().reply([]).reply([text("  \n")]).reply([text("Here I am.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Hello?").await;

    told.outcome();
    assert_eq!(told.transitions(), ["empty_reply_nudge"]);
    assert_eq!(stage.request_count(), 2, "once");
    let second = stage.request(2);
    assert_eq!(second["messages"].as_array().unwrap().len(), 1, "the empty answer is not sent back");
    assert!(text_of(&json!(last_user_blocks(&second))).contains("empty"));

    let told = run(&mut engine, "Hello again?").await;
    assert_eq!(told.assert_completed().text, "Here I am.");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L14_loop_S10_an_answer_that_stays_empty_is_an_error_that_says_so() {
    let stage = Stage::new(Script::new().step(Step::reply([]).times(2)).reply([text("Here I am.")])).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "Hello?").await;
    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::NoAnswer, true));
    assert_eq!(outcome.errors, ["The model gave no answer"], "{outcome:#?}");
    assert!(outcome.text.is_empty());
    run(&mut engine, "Hello again?").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T10_thinking_alone_is_no_answer() {
    let script = Script::new().reply([thinking("Hm.")]).reply([thinking("Ah."), text("Here I am.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Hello?").await;

    assert_eq!(told.assert_completed().text, "Here I am.");
    assert_eq!(told.transitions(), ["empty_reply_nudge"]);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L14_no_stop_reason_and_no_empty_answer_spoils_the_next_prompt() {
    let reasons = [
        "end_turn",
        "stop_sequence",
        "tool_use",
        "max_tokens",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
        "compaction",
        "moonrise",
    ];
    for reason in reasons {
        for said in ["", "Some words."] {
            let parts = if said.is_empty() { vec![] } else { vec![text(said)] };
            // The odd answer once, then an end.
            let script = Script::new()
                .step(Step::reply(parts).stop(reason))
                .step(Step::reply([text("And an end.")]).times(2));
            let stage = Stage::new(script).await;
            let mut engine = stage.engine();

            let told = run(&mut engine, "Say something.").await;
            let outcome = told.outcome();
            let visible = !outcome.text.is_empty() || !outcome.errors.is_empty();
            assert!(visible, "{reason}, {said:?}: {outcome:#?}");
            assert_eq!(outcome.is_error, reason == "refusal", "{reason}, {said:?}");

            let told = run(&mut engine, "And now?").await;
            assert_eq!(told.assert_completed().text, "And an end.", "{reason}, {said:?}");
            stage.model.assert_clean();
        }
    }
}

#[tokio::test]
async fn loop_P1_loop_I3_a_tool_runs_while_the_message_still_streams() {
    let notes = Notes::default();
    let script = Script::new()
        .reply([
            text("Writing."),
            tool("Write", json!({"file_path": "early.txt", "content": "early"})).id("toolu_1"),
            tool("Look", json!({"name": "look"})).id("toolu_2"),
            gate("rest"),
            text("And there is more to say."),
        ])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));
    let mut events = engine.submit(prompt("Write it."));

    // The message is held back behind the gate, so both calls run to their end in the middle of it.
    let ended = || notes.has(&Note::Ended("look".to_owned()));
    let (mut told, ()) = pulling(&mut events, holds(ended)).await;
    assert_eq!(stage.read("early.txt"), "early");
    let streaming = stage.model.reply_requests().remove(0).reply.ending.is_none();
    assert!(streaming, "the model is still speaking");

    stage.model.open("rest");
    told.extend(rest(&mut events).await);
    let told = Told(told);
    told.assert_completed();
    let late = |event: &Event| {
        entry_of(event).is_some_and(|entry| String::from_utf8_lossy(&entry.json).contains("more to say"))
    };
    let places = [
        told.position(|event| matches!(event, Event::Requesting)),
        told.position(|event| is_start_of(event, "toolu_1")),
        told.position(|event| is_start_of(event, "toolu_2")),
        told.position(late),
    ];
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(told.results(), ["toolu_1", "toolu_2"]);
    stage.assert_all_played();
}
