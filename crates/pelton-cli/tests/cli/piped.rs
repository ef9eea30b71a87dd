//! A whole session through pipes: prompts, results, the end.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pelton_testkit::{Script, Step, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, lines_of, model, of_type, until};
use crate::talk::{TALK, Talk, until_queued};

fn user(content: impl Into<Value>) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": content.into()}})
}

#[test]
fn a_prompt_and_the_end_are_a_whole_session() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("Four.")])));
    let ran = place.pelton(TALK).asks(&model).run_with_input(&format!("{}\n", user("What is two and two?")));
    ran.well();
    let result = ran.result();
    assert_eq!((&result["result"], &result["is_error"]), (&json!("Four."), &json!(false)));
    let frames = ran.frames();
    assert_eq!(of_type(&frames, "system").iter().filter(|frame| frame["subtype"] == "init").count(), 1);
    assert_eq!(place.transcripts().len(), 1);
}

#[test]
fn every_prompt_has_one_init_and_one_result() {
    let script = Script::new().reply([text("one")]).reply([text("two")]).reply([text("three")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    let mut sessions = Vec::new();
    for word in ["one", "two", "three"] {
        talk.prompt(word);
        let result = talk.result();
        assert_eq!(result["result"], word);
        sessions.push(result["session_id"].clone());
    }
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    let over = talk.end();
    let seen = over.well();
    assert_eq!(seen.iter().filter(|line| line["subtype"] == "init").count(), 3);
    assert_eq!(of_type(seen, "result").len(), 3);
}

#[test]
fn loop_Z7_prompts_of_a_busy_time_are_one_next_turn() {
    let script = Script::new().reply([gate("go"), text("one")]).reply([text("both")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("first");
    talk.system("init");
    talk.prompt("second");
    talk.prompt("third");
    // They are on the disk before the first is answered: none can be lost.
    until_queued(&place, 2);
    model.open("go");
    assert_eq!(talk.result()["result"], "one");
    assert_eq!(talk.result()["result"], "both");
    talk.end().well();
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    let last = requests[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(last.to_string().contains(r"second\nthird"), "{last}");
}

#[test]
fn the_end_of_input_does_not_end_what_runs() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "sleep 0.5; echo slow"}))])
        .reply([text("done")])
        .reply([text("then")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("go");
    talk.prompt("and then?");
    talk.close();
    let over = talk.end();
    let results = of_type(over.well(), "result").into_iter().map(|result| result["result"].clone());
    assert_eq!(results.collect::<Vec<_>>(), ["done", "then"]);
}

#[test]
fn nothing_said_is_nothing_done() {
    let (place, model) = (Place::new(), model(Script::new()));
    let ran = place.pelton(TALK).asks(&model).run_with_input("");
    assert_eq!(ran.well(), "");
    assert!(place.transcripts().is_empty());
    // Neither is what nobody knows.
    let lines = format!("{}\n\n{}\n", json!({"type": "keep_alive"}), json!({"type": "tomorrow"}));
    assert_eq!(place.pelton(TALK).asks(&model).run_with_input(&lines).well(), "");
}

#[test]
fn the_exit_code_is_that_of_the_last_result() {
    let script = Script::new().step(Step::status(400)).reply([text("fine")]).step(Step::status(400));
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("fails");
    assert_eq!(talk.result()["is_error"], true);
    talk.prompt("works");
    assert_eq!(talk.result()["is_error"], false);
    assert_eq!(talk.end().code, Some(0));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("fails");
    let result = talk.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!(talk.end().code, Some(1));
}

#[test]
fn a_line_that_is_no_json_is_the_end() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    place.pelton(TALK).asks(&model).run_with_input("nonsense\n").failed(1, &["not JSON"]);
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("hi");
    talk.result();
    talk.say_text("{\"type\":");
    let over = talk.end();
    assert_eq!(over.code, Some(1));
    assert!(over.err.contains("not JSON"), "{}", over.err);
}

#[test]
fn ids_of_the_client_are_adopted_and_prompts_may_be_echoed() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    let mut talk = Talk::start(&place, &model, &["--replay-user-messages"]);
    let id = "0f0e0d0c-0b0a-4908-8706-050403020100";
    talk.say(&json!({"type": "user", "uuid": id, "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}}));
    let echo = talk.until(|line| line["type"] == "user");
    assert_eq!((&echo["uuid"], &echo["isReplay"]), (&json!(id), &json!(true)));
    talk.result();
    talk.end().well();
    assert!(place.transcript().iter().any(|line| line["uuid"] == id));
}

#[test]
fn words_that_ask_nothing_are_read_with_the_next_prompt() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.say(&json!({"type": "user", "shouldQuery": false, "message": {"role": "user", "content": "My name is Ada."}}));
    talk.prompt("What is my name?");
    talk.result();
    let over = talk.end();
    assert_eq!(of_type(over.well(), "result").len(), 1);
    let body = model.requests()[0].body.to_string();
    assert!(body.contains("My name is Ada.") && body.contains("What is my name?"), "{body}");
}

#[test]
fn composed_prompts_mean_what_they_say() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    place.put("secret.txt", "xyzzy");
    let mut talk = Talk::start(&place, &model, &[]);
    talk.say(&json!({"type": "user", "client_composed": true, "message": {"role": "user", "content": "/nothing @secret.txt"}}));
    assert_eq!(talk.result()["result"], "one");
    talk.prompt("/nothing");
    let result = talk.result();
    assert_eq!((&result["num_turns"], &result["result"]), (&json!(0), &json!("Unknown command: /nothing")));
    talk.end();
    assert!(!model.requests()[0].body.to_string().contains("xyzzy"));
}

#[test]
fn the_state_is_told_to_those_who_ask_for_it() {
    for (name, marked) in
        [("CLAUDE_CODE_SDK_READS_SESSION_STATE", true), ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", false)]
    {
        let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
        let mut talk = Talk::with(&place, &model, &[], |command| _ = command.env(name, "1"));
        talk.prompt("hi");
        let running = talk.system("session_state_changed");
        assert_eq!((&running["state"], running.get("sdk_host_only").is_some()), (&json!("running"), marked));
        talk.result();
        assert_eq!(talk.system("session_state_changed")["state"], "idle");
        talk.end().well();
    }
}

#[test]
fn pit_K5_a_long_line_is_read_like_any_other() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("short");
    talk.result();
    talk.prompt(&"z".repeat(20_000_000));
    // It was understood, and is a turn of its own: no model takes as much.
    assert_eq!(talk.result()["is_error"], true);
    let over = talk.end();
    assert_eq!((over.code, of_type(&over.seen, "result").len()), (Some(1), 2));
    let kept = place.transcript().iter().any(|line| line.to_string().len() > 20_000_000);
    assert!(kept, "the whole prompt is on record");
}

#[test]
fn no_line_is_longer_than_readers_can_take() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x"}))])
        .reply([text("y".repeat(2_000_000))]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("go");
    assert!(talk.result()["result"].as_str().unwrap().len() > 100_000);
    for line in talk.end().well() {
        assert!(line.to_string().len() < 1024 * 1024);
    }
}

#[test]
fn pit_K5_fifty_megabytes_go_through_a_slow_pipe() {
    const REQUESTS: usize = 100;
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    place.put("large", &"some words\n".repeat(48_000));
    let request = |n: usize| json!({"type": "control_request", "request_id": n.to_string(), "request": {"subtype": "read_file", "path": "large"}});
    let requests: String = (0..REQUESTS).map(|n| format!("{}\n", request(n))).collect();
    place.put("said", &format!("{requests}{}\n", user("go")));
    // The reader sleeps before it reads.
    let script = format!("\"$PELTON\" {} < said | (sleep 2; cat) > all", TALK.join(" "));
    place.shell(&script).asks(&model).run().well();
    let all = place.read("all");
    assert!(all.len() > 50_000_000, "{}", all.len());
    let lines: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(of_type(&lines, "control_response").len(), REQUESTS);
    assert_eq!(of_type(&lines, "result")[0]["result"], "one");
}

#[test]
fn a_reader_that_leaves_ends_the_session() {
    let script = Script::new().reply([tool("Bash", json!({"command": "sleep 100"}))]);
    let (place, model) = (Place::new(), model(script));
    let began = Instant::now();
    let line = user("go");
    let ran = place
        .shell(&format!(
            "(echo '{line}'; sleep 60) | (\"$PELTON\" {} --allowedTools Bash; echo $? >code) | head -1",
            TALK.join(" ")
        ))
        .asks(&model)
        .start();
    until("it has ended", || place.has("code") && place.read("code").ends_with('\n'));
    assert_eq!(place.read("code"), "141\n");
    assert!(began.elapsed() < Duration::from_secs(15));
    drop(ran);
}

#[test]
fn signals_end_the_session_and_it_can_go_on() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        let script =
            Script::new().reply([tool("Bash", json!({"command": "sleep 100"}))]).reply([text("again")]);
        let (place, model) = (Place::new(), model(script));
        let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
        talk.prompt("go");
        let session = talk.until(|line| line["type"] == "assistant")["session_id"].clone();
        kill(Pid::from_raw(talk.id().cast_signed()), signal).unwrap();
        let result = talk.result();
        assert_eq!(result["subtype"], "error_during_execution");
        let over = talk.end();
        assert_eq!(over.code, Some(code), "{over:#?}");
        let mut talk = Talk::start(&place, &model, &[&format!("--resume={}", session.as_str().unwrap())]);
        talk.prompt("go on");
        assert_eq!(talk.result()["result"], "again");
        talk.end().well();
        // While nothing runs, too.
        let talk = Talk::start(&place, &model, &[]);
        std::thread::sleep(Duration::from_millis(200));
        kill(Pid::from_raw(talk.id().cast_signed()), signal).unwrap();
        assert_eq!(talk.wait().code, Some(code));
    }
}

#[test]
fn what_cannot_start_is_told_without_waiting_for_input() {
    let (place, model) = (Place::new(), model(Script::new()));
    let id = "0f0e0d0c-0b0a-4908-8706-050403020100";
    let mut command = place.pelton(TALK.into_iter().chain(["--resume", id]));
    let running = command.asks(&model).stdin(std::process::Stdio::piped()).start();
    let ran = running.end();
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains(&format!("No conversation found with session ID: {id}")), "{}", ran.err);
    let result = ran.result();
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["errors"], json!([format!("No conversation found with session ID: {id}")]));
}

#[test]
fn flags_come_in_both_spellings_and_with_empty_values() {
    let script = Script::new().reply([text("one")]).reply([text("two")]);
    let (place, model) = (Place::new(), model(script));
    place.put("system.txt", "From a file.");
    let two_words = [
        "--system-prompt",
        "",
        "--tools",
        "",
        "--allowedTools",
        "Read,Bash(ls:*)",
        "--max-turns",
        "3",
        "--max-budget-usd",
        "1.5",
        "--disallowedTools",
        "Write",
        "--task-budget",
        "20000",
        "--model",
        "claude-opus-5-5",
        "--fallback-model",
        "claude-sonnet-5-5",
        "--betas",
        "interleaved-thinking-2025-05-14,context-management-2025-06-27",
        "--permission-prompt-tool",
        "stdio",
        "--permission-mode",
        "default",
        "--settings",
        "{}",
        "--add-dir",
        ".",
        "--mcp-config",
        r#"{"mcpServers":{}}"#,
        "--include-partial-messages",
        "--include-hook-events",
        "--strict-mcp-config",
        "--setting-sources=",
        "--thinking",
        "adaptive",
        "--thinking-display",
        "summarized",
        "--effort",
        "low",
    ];
    let mut talk = Talk::start(&place, &model, &two_words);
    talk.prompt("hi");
    assert_eq!(talk.result()["result"], "one");
    talk.end().well();
    let one_word = [
        "--system-prompt-file=system.txt",
        "--tools=default",
        "--allowedTools=Read,Bash(ls:*)",
        "--max-turns=3",
        "--max-budget-usd=1.5",
        "--disallowedTools=Write",
        "--task-budget=20000",
        "--model=claude-opus-5-5",
        "--fallback-model=claude-sonnet-5-5",
        "--betas=interleaved-thinking-2025-05-14",
        "--permission-prompt-tool=stdio",
        "--permission-prompts=none",
        "--permission-mode=default",
        "--settings={}",
        "--add-dir=.",
        r#"--mcp-config={"mcpServers":{}}"#,
        "--setting-sources=user,project",
        "--max-thinking-tokens=2000",
        "--effort=low",
        "--no-session-persistence",
        "--await-initialize",
        "--allow-dangerously-skip-permissions",
        "--append-system-prompt=And this.",
    ];
    let mut talk = Talk::start(&place, &model, &one_word);
    talk.prompt("hi");
    assert_eq!(talk.result()["result"], "two");
    talk.end().well();
    let requests = model.requests();
    assert!(requests[0].body.get("tools").is_none_or(|tools| tools.as_array().unwrap().is_empty()));
    assert!(requests[1].body["system"].to_string().contains("From a file."));
    assert!(requests[1].body["system"].to_string().contains("And this."));
    for request in requests {
        assert_eq!(request.body["model"], "claude-opus-5-5");
    }
}

#[test]
fn a_server_that_cannot_be_one_says_so() {
    let (place, model) = (Place::new(), model(Script::new()));
    let beyond = r#"{"mcpServers":{"files":{"url":"http://127.0.0.1/"}}}"#;
    let mut talk = Talk::start(&place, &model, &["--mcp-config", beyond]);
    let status = talk.asked(&json!({"subtype": "mcp_status"}));
    assert_eq!(status["response"]["mcpServers"][0]["status"], "failed");
    assert!(talk.end().err.contains("files"));
}

#[test]
fn prompts_with_pictures_are_taken() {
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let (place, model) = (Place::new(), model(Script::new().reply([text("a dot")])));
    let mut talk = Talk::start(&place, &model, &[]);
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}});
    talk.say(&user(json!([{"type": "text", "text": "What is it?"}, image, {"type": "future"}])));
    assert!(talk.system("informational")["content"].as_str().unwrap().contains("future"));
    assert_eq!(talk.result()["result"], "a dot");
    talk.end().well();
    assert!(model.requests()[0].body["messages"].to_string().contains("image/png"));
}

#[test]
fn a_command_in_the_background_that_ends_starts_a_turn() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "sleep 0.4; echo done", "run_in_background": true}))])
        .reply([text("It runs.")])
        .reply([text("It has ended.")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("go");
    let first = talk.result();
    assert_eq!((&first["result"], first.get("origin")), (&json!("It runs."), None));
    talk.system("task_notification");
    talk.system("init");
    let second = talk.result();
    assert_eq!(second["result"], "It has ended.");
    assert_eq!(second["origin"], json!({"kind": "task-notification"}));
    talk.end().well();
}

#[test]
fn now_ends_what_runs_and_next_is_read_with_the_results() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "until test -e go; do sleep 0.05; done"}))])
        .reply([tool("Bash", json!({"command": "touch began; sleep 100"}))])
        .reply([text("as you like")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("go");
    talk.until(|line| line["type"] == "assistant");
    talk.say(
        &json!({"type": "user", "priority": "next", "message": {"role": "user", "content": "By the way."}}),
    );
    until_queued(&place, 1);
    place.put("go", "");
    talk.until(|line| line["type"] == "assistant");
    let second = model.requests()[1].body["messages"].to_string();
    assert!(second.contains("By the way."), "{second}");
    until("it runs", || place.work().join("began").exists());
    // The answer that asked for it has ended, too.
    std::thread::sleep(Duration::from_millis(200));
    talk.say(
        &json!({"type": "user", "priority": "now", "message": {"role": "user", "content": "Stop that."}}),
    );
    // What made way for a prompt did not fail.
    let made_way = talk.result();
    assert_eq!(
        (&made_way["subtype"], &made_way["is_error"], &made_way["result"], &made_way["terminal_reason"]),
        (&json!("success"), &json!(false), &json!(""), &json!("aborted_tools"))
    );
    assert_eq!(talk.result()["result"], "as you like");
    talk.end().well();
}

#[test]
fn a_conversation_is_cleared_and_another_begins_in_its_place() {
    let script = Script::new().reply([text("one")]).reply([text("two")]).reply([text("three")]);
    let (place, model) = (Place::new(), model(script));
    place.put("CLAUDE.md", "Speak of turnips.");
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("the first secret");
    let first = talk.result()["session_id"].clone();
    talk.prompt("/clear");
    let reset = talk.until(|line| line["type"] == "conversation_reset");
    let second = reset["new_conversation_id"].clone();
    assert!(reset["session_id"] == first && second != first, "{reset}");
    assert_eq!(talk.system("init")["session_id"], second);
    let cleared = talk.result();
    assert_eq!(
        (&cleared["session_id"], &cleared["num_turns"], &cleared["result"], &cleared["is_error"]),
        (&second, &json!(0), &json!(""), &json!(false))
    );
    talk.prompt("the second");
    assert_eq!(talk.result()["session_id"], second);
    talk.end().well();
    let requests = model.requests();
    let sent = requests[1].body["messages"].to_string();
    assert!(sent.contains("the second") && !sent.contains("the first secret"), "{sent}");
    assert!(sent.contains("Speak of turnips."), "memory files are told anew: {sent}");
    assert_eq!(requests[0].body["system"], requests[1].body["system"]);
    // Both are kept, each for itself.
    assert_eq!(place.transcripts().len(), 2);
    let first = first.as_str().unwrap();
    place.pelton(["-p", "go on", "--resume", first]).asks(&model).run().well();
    let sent = model.requests()[2].body["messages"].to_string();
    assert!(sent.contains("the first secret") && !sent.contains("the second"), "{sent}");
}

#[test]
fn a_prompt_that_waits_moves_to_the_conversation_that_begins() {
    let script = Script::new().reply([gate("go"), text("one")]).reply([text("two")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("first");
    talk.system("init");
    talk.prompt("/clear");
    talk.prompt("second");
    until_queued(&place, 2);
    model.open("go");
    let first = talk.result()["session_id"].clone();
    assert_eq!(talk.result()["num_turns"], 0);
    let last = talk.result();
    assert_eq!(last["result"], "two");
    assert_ne!(last["session_id"], first);
    talk.end().well();
    // Nothing of it is left for whoever goes on with the first one.
    let left: Vec<Value> = place.transcripts().iter().flat_map(|file| lines_of(file)).collect();
    let of_first = left.iter().filter(|line| line["sessionId"] == first && line["operation"] == "remove");
    assert_eq!(of_first.count(), 1, "{left:#?}");
    let sent = model.requests()[1].body["messages"].to_string();
    assert!(sent.contains("second") && !sent.contains("first"), "{sent}");
}

#[test]
fn what_takes_long_is_told_of() {
    let script = Script::new().reply([tool("Bash", json!({"command": "sleep 6"}))]).reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("go");
    let told = talk.until(|line| line["type"] == "tool_progress");
    assert_eq!((&told["tool_name"], &told["parent_tool_use_id"]), (&json!("Bash"), &Value::Null));
    let elapsed = told["elapsed_time_seconds"].as_u64().unwrap();
    assert!((5..=7).contains(&elapsed) && told["tool_use_id"].is_string(), "{told}");
    assert_eq!(talk.result()["result"], "done");
    let over = talk.end();
    assert_eq!(of_type(over.well(), "tool_progress").len(), 1);
}
