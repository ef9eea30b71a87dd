//! Hooks from `--settings`, as frames, exit codes and people see them.

use pelton_testkit::{Script, ScriptedModel, Step, text, tool};
use serde_json::{Value, json};

use crate::frames::{STREAM, check_stream};
use crate::place::{Commanded, Place, Ran, model, of_type};
use crate::talk::Talk;

fn on(event: &str, commands: &[&str]) -> String {
    let hooks: Vec<Value> =
        commands.iter().map(|command| json!({"type": "command", "command": command})).collect();
    json!({"hooks": {event: [{"hooks": hooks}]}}).to_string()
}

/// A run whose settings are given on the command line.
fn run(script: Script, settings: &str, words: &[&str]) -> (Place, ScriptedModel, Ran) {
    let (place, model) = (Place::new(), model(script));
    let words = ["hi", "--settings", settings].into_iter().chain(words.iter().copied());
    let ran = place.task(&model, words.chain(STREAM)).run();
    (place, model, ran)
}

fn informational(frames: &[Value]) -> Vec<(&str, &Value)> {
    of_type(frames, "system")
        .into_iter()
        .filter(|frame| frame["subtype"] == "informational")
        .map(|frame| (frame["content"].as_str().unwrap(), &frame["prevent_continuation"]))
        .collect()
}

/// What the model read last.
fn last_words(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    messages.last().unwrap()["content"].to_string()
}

#[test]
fn loop_H1_a_hook_without_objections_changes_nothing() {
    let settings = on("Stop", &["cat > heard.json"]);
    let (place, model, ran) = run(Script::new().reply([text("Done.")]), &settings, &[]);
    ran.well();
    let frames = check_stream(&ran);
    assert_eq!(ran.result()["result"], "Done.");
    assert_eq!(ran.result()["num_turns"], 1);
    assert!(informational(&frames).is_empty());
    let heard: Value = serde_json::from_str(&place.read("heard.json")).unwrap();
    assert_eq!((&heard["hook_event_name"], &heard["stop_hook_active"]), (&json!("Stop"), &json!(false)));
    assert_eq!(heard["session_id"], ran.result()["session_id"]);
    model.assert_played_out();
}

#[test]
fn loop_T6_loop_H2_a_hook_that_blocks_sends_the_model_back_with_its_words() {
    let blocks = "test -e blocked && exit 0; touch blocked; echo 'run the tests first' >&2; exit 2";
    let script = Script::new().reply([text("Done.")]).reply([text("Tests pass.")]);
    let (_place, model, ran) = run(script, &on("Stop", &[blocks]), &["--include-loop-events"]);
    ran.well();
    let frames = check_stream(&ran);
    assert_eq!((&ran.result()["result"], &ran.result()["num_turns"]), (&json!("Tests pass."), &json!(2)));
    assert!(frames.iter().any(|frame| frame["reason"] == "stop_hook_blocking"), "{frames:?}");
    let said = of_type(&frames, "user");
    assert_eq!(said[0]["isSynthetic"], true);
    assert!(last_words(&model).contains("Stop hook feedback:"), "{}", last_words(&model));
    assert!(last_words(&model).contains("run the tests first"));
    model.assert_played_out();
}

#[test]
fn loop_T6_a_hook_that_always_blocks_is_overridden_and_that_is_said() {
    let script = || Script::new().step(Step::reply([text("Done.")]).always());
    let settings = on("Stop", &["echo never >&2; exit 2"]);
    let (_place, model, ran) = run(script(), &settings, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(model.requests().len(), 9);
    let frames = check_stream(&ran);
    assert!(
        informational(&frames).iter().any(|(words, _)| words.contains("more than 8 times")),
        "{frames:?}"
    );
    let result = ran.result();
    assert_eq!((&result["is_error"], &result["terminal_reason"]), (&json!(false), &json!("completed")));

    let (place, model) = (Place::new(), crate::place::model(script()));
    let mut task = place.task(&model, ["hi", "--settings", &settings]);
    let ran = task.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2").run();
    assert_eq!((ran.code, model.requests().len()), (Some(0), 3), "{ran:?}");
    assert!(ran.err.contains("more than 2 times"), "{ran:?}");
}

#[test]
fn loop_H3_loop_X9_a_stop_hook_that_says_do_not_continue_ends_it_without_words() {
    let ends = r#"echo '{"continue": false, "stopReason": "lunch time"}'"#;
    let (_place, _model, ran) = run(Script::new().reply([text("Done.")]), &on("Stop", &[ends]), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let frames = check_stream(&ran);
    let [(words, ends)] = informational(&frames)[..] else { panic!("{frames:?}") };
    assert!(words.contains("lunch time") && *ends == true, "{words}");
    let result = ran.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert_eq!((&result["result"], &result["terminal_reason"]), (&json!(""), &json!("stop_hook_prevented")));
}

#[test]
fn loop_X10_a_tool_hook_that_says_do_not_continue_ends_it_without_words() {
    let ends = r#"echo '{"continue": false, "stopReason": "not today"}'"#;
    for (event, ran_the_tool) in [("PreToolUse", false), ("PostToolUse", true)] {
        let script = Script::new().reply([tool("Write", json!({"file_path": "a", "content": "x"}))]);
        let words = ["--permission-mode", "acceptEdits"];
        let (place, model, ran) = run(script, &on(event, &[ends]), &words);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        assert_eq!(place.has("a"), ran_the_tool, "{event}");
        let frames = check_stream(&ran);
        let [(words, ends)] = informational(&frames)[..] else { panic!("{frames:?}") };
        assert!(words.contains("not today") && *ends == true, "{words}");
        let result = ran.result();
        assert_eq!((&result["result"], &result["terminal_reason"]), (&json!(""), &json!("hook_stopped")));
        assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
        assert_eq!(model.requests().len(), 1, "nobody is asked again");
    }
}

#[test]
fn loop_H4_hooks_run_side_by_side_and_one_that_blocks_is_enough() {
    // Each waits for the other: one after the other they would wait in vain.
    let waits = |mine: &str, other: &str, then: &str| {
        format!(
            "touch {mine}; for i in $(seq 200); do test -e {other} && break; sleep 0.02; done; test -e {other} || exit 1; {then}"
        )
    };
    let passes = waits("a", "b", "exit 0");
    let blocks = waits("b", "a", "test -e done && exit 0; touch done; echo 'not yet' >&2; exit 2");
    let script = Script::new().reply([text("Done.")]).reply([text("Better.")]);
    let (_place, model, ran) = run(script, &on("Stop", &[&passes, &blocks]), &[]);
    ran.well();
    assert_eq!(ran.result()["result"], "Better.");
    assert!(last_words(&model).contains("not yet"));
    model.assert_played_out();
}

#[test]
fn loop_H5_a_hook_that_fails_is_shown_and_blocks_nothing() {
    let settings = on("Stop", &["echo 'no such thing' >&2; exit 1"]);
    let (_place, _model, ran) = run(Script::new().reply([text("Done.")]), &settings, &[]);
    ran.well();
    let frames = check_stream(&ran);
    let [(words, ends)] = informational(&frames)[..] else { panic!("{frames:?}") };
    assert!(words.contains("no such thing") && *ends == false, "{words}");
    assert_eq!(ran.result()["result"], "Done.");

    // People read the same.
    let (place, model) = (Place::new(), model(Script::new().reply([text("Done.")])));
    let ran = place.task(&model, ["hi", "--settings", &settings]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"));
    assert!(ran.err.contains("no such thing"), "{ran:?}");
}

#[test]
fn a_call_that_a_hook_puts_off_is_in_the_result_and_runs_when_the_session_goes_on() {
    let says = |decision: &str| json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}});
    let line = format!("test -e approved && echo '{}' || echo '{}'", says("allow"), says("defer"));
    let settings = on("PreToolUse", &[&line]);
    let script = Script::new()
        .reply([text("I will."), tool("Bash", json!({"command": "touch done"})).id("toolu_later")])
        .reply([text("Done.")]);
    let (place, model, ran) = run(script, &settings, &[]);
    ran.well();
    let frames = ran.frames();
    assert!(of_type(&frames, "user").is_empty(), "it has no result: {frames:#?}");
    let result = ran.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    let deferred = json!("tool_deferred");
    assert_eq!((&result["stop_reason"], &result["terminal_reason"]), (&deferred, &deferred));
    let call = json!({"id": "toolu_later", "name": "Bash", "input": {"command": "touch done"}});
    assert_eq!(result["deferred_tool_use"], call);
    assert!(!place.has("done"));

    let session = result["session_id"].as_str().unwrap();
    place.put("approved", "");
    let words = ["go on", "--resume", session, "--settings", settings.as_str()];
    let again = place.task(&model, words.into_iter().chain(STREAM)).run();
    again.well();
    assert_eq!(again.result()["result"], "Done.");
    assert!(again.result().get("deferred_tool_use").is_none());
    assert!(place.has("done"));
    model.assert_played_out();
}

#[test]
fn a_hook_with_a_condition_is_called_for_calls_that_it_speaks_of() {
    let hook = |name: &str, rule: &str| json!({"type": "command", "command": format!("echo {name} >> heard"), "if": rule});
    let hooks = json!([
        hook("git", "Bash(git *)"),
        hook("rm", "Bash(rm *)"),
        hook("text", "Read(*.txt)"),
        hook("rust", "Read(*.rs)")
    ]);
    let before = json!([{"matcher": "Bash|Read", "hooks": hooks}]);
    let after = json!([{"hooks": [hook("after-git", "Bash(git *)"), hook("after-rm", "Bash(rm *)")]}]);
    let settings = json!({"hooks": {"PreToolUse": before, "PostToolUse": after}}).to_string();
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "git --version"}))])
        .reply([tool("Read", json!({"file_path": "a.txt"}))])
        .reply([text("Done.")]);
    let (place, _, ran) = run(script, &settings, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.read("heard"), "git\nafter-git\ntext\n");
}

#[test]
fn hooks_are_told_where_a_command_and_a_server_come_from() {
    let place = Place::new();
    place.put(".claude/commands/mine.md", "Do it.");
    let server = "while IFS= read -r line; do id=$(printf '%s' \"$line\" | sed -n 's/^{\"jsonrpc\":\"2.0\",\"id\":\\([0-9]*\\).*/\\1/p'); \
        answer() { printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\\n' \"$id\" \"$1\"; }; case \"$line\" in \
        *'\"method\":\"initialize\"'*) answer '{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}' ;; \
        *'\"method\":\"tools/list\"'*) answer '{\"tools\":[{\"name\":\"say\",\"inputSchema\":{\"type\":\"object\"}}]}' ;; \
        *'\"method\":\"tools/call\"'*) answer '{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}' ;; esac; done";
    let servers = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", server]}}}).to_string();
    let note =
        |event: &str| json!([{"hooks": [{"type": "command", "command": format!("cat > {event}.json")}]}]);
    let settings = json!({"hooks": {"PreToolUse": note("PreToolUse"), "UserPromptExpansion": note("UserPromptExpansion")}}).to_string();
    let model = model(Script::new().reply([tool("mcp__s__say", json!({}))]).reply([text("Done.")]));
    let words = ["/mine", "--settings", &settings, "--mcp-config", &servers, "--allowedTools", "mcp__s"];
    let mut command = place.task(&model, words.into_iter().chain(STREAM));
    command.env("ENABLE_TOOL_SEARCH", "false");
    let ran = command.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let heard =
        |event: &str| -> Value { serde_json::from_str(&place.read(&format!("{event}.json"))).unwrap() };
    assert_eq!(heard("PreToolUse")["mcp_server"], json!({"name": "s", "source": "dynamic"}));
    let expanded = heard("UserPromptExpansion");
    assert_eq!((&expanded["command_name"], &expanded["command_source"]), (&json!("mine"), &json!("project")));
}

#[test]
fn without_a_screen_hooks_say_what_of_an_answer_is_shown() {
    let shouts = r#"d=$(tr -d '\n' | sed 's/.*"delta":"\([^"]*\)".*/\1/' | tr a-z A-Z); echo "{\"hookSpecificOutput\": {\"hookEventName\": \"MessageDisplay\", \"displayContent\": \"$d\"}}""#;
    let settings = on("MessageDisplay", &[shouts]);
    let answers = || {
        let cut = Step::reply([text("half of it, ")]).stop("max_tokens");
        Script::new()
            .reply([text("looking"), tool("Glob", json!({"pattern": "*"}))])
            .step(cut)
            .reply([text("and the rest")])
    };
    let place = Place::new();
    let model = model(answers());
    let ran = place.task(&model, ["hi", "--settings", &settings]).run();
    assert_eq!(ran.well(), "HALF OF IT, AND THE REST\n");
    // Programs read what was said.
    let (_place, _model, ran) = run(answers(), &settings, &["--include-hook-events"]);
    ran.well();
    let frames = ran.frames();
    let said: String =
        frames.iter().filter(|frame| frame["type"] == "assistant").map(|frame| frame.to_string()).collect();
    assert!(said.contains("looking") && said.contains("half of it") && !said.contains("HALF"), "{said}");
    let called = frames
        .iter()
        .filter(|frame| frame["subtype"] == "hook_response" && frame["hook_event"] == "MessageDisplay");
    assert_eq!(called.count(), 3);
}

#[test]
fn the_end_of_a_hook_is_told_before_the_next_one_starts() {
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {"PreToolUse": hook("echo before"), "PostToolUse": hook("exit 1"), "Stop": hook("echo end")}});
    let script = Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")]);
    let (_place, _model, ran) = run(script, &settings.to_string(), &["--include-hook-events"]);
    let frames = ran.frames();
    let told: Vec<(&str, &str)> = frames
        .iter()
        .filter(|frame| frame["subtype"].as_str().is_some_and(|subtype| subtype.starts_with("hook_")))
        .filter(|frame| frame["subtype"] != "hook_progress")
        .map(|frame| (frame["subtype"].as_str().unwrap(), frame["hook_event"].as_str().unwrap()))
        .collect();
    let pairs = ["PreToolUse", "PostToolUse", "Stop"]
        .map(|event| [("hook_started", event), ("hook_response", event)]);
    assert_eq!(told, pairs.concat());
    let responses: Vec<&Value> = frames.iter().filter(|frame| frame["subtype"] == "hook_response").collect();
    assert_eq!(responses[0]["stdout"], "before\n");
    assert_eq!((&responses[1]["outcome"], &responses[1]["exit_code"]), (&json!("error"), &json!(1)));
}

#[test]
fn hooks_of_a_start_hear_how_it_begins_and_may_end_what_follows() {
    let place = Place::new();
    let heard = on("SessionStart", &["cat >> heard.jsonl; echo >> heard.jsonl"]);
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let first = place.task(&model, ["hi", "--settings", &heard]).args(STREAM).run();
    let session = first.result()["session_id"].as_str().unwrap().to_owned();
    place.task(&model, ["hi", "--settings", &heard, "--resume", &session]).run().well();
    place.task(&model, ["hi", "--settings", &heard, "--resume", &session, "--fork-session"]).run().well();
    let sources: Vec<String> = place
        .read("heard.jsonl")
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|told| told["source"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sources, ["startup", "resume", "fork"]);

    let asked = model.requests().len();
    let stops = on("SessionStart", &[r#"echo '{"continue": false, "stopReason": "not today"}'"#]);
    let ran = place.task(&model, ["hi", "--settings", &stops]).args(STREAM).run();
    let frames = ran.frames();
    assert_eq!(ran.result()["terminal_reason"], "hook_stopped");
    assert_eq!(informational(&frames), [("not today", &json!(true))]);
    assert_eq!(model.requests().len(), asked, "nobody was asked");
}

/// A hook that nobody waited for fetches the model back when all is done, and the same hook behind each turn not for ever.
#[test]
fn a_hook_in_the_background_wakes_an_idle_session_a_bounded_number_of_times() {
    let place = Place::new();
    let wakes = |event: &str, line: &str| {
        let hook = json!({"type": "command", "command": line, "asyncRewake": true});
        json!({"hooks": {event: [{"hooks": [hook]}]}}).to_string()
    };
    let script = Script::new()
        .reply([tool("Glob", json!({"pattern": "*"}))])
        .reply([text("Started.")])
        .reply([text("I see.")]);
    let model = model(script);
    // It waits until the turn is over: the session rests when it speaks.
    let late = "while [ ! -e over ]; do sleep 0.02; done; echo 'the deploy failed' >&2; exit 2";
    let mut talk = Talk::start(&place, &model, &["--settings", &wakes("PostToolUse", late)]);
    talk.prompt("Deploy it.");
    assert_eq!(talk.result()["result"], "Started.");
    place.put("over", "");
    assert_eq!(talk.result()["result"], "I see.");
    assert!(last_words(&model).contains("the deploy failed"), "{}", last_words(&model));
    talk.end();

    let model = crate::place::model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let mut talk = Talk::start(&place, &model, &["--settings", &wakes("Stop", "echo again >&2; exit 2")]);
    talk.prompt("hi");
    for _ in 0..=8 {
        talk.result();
    }
    // Its last word waits for somebody to say something.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(model.requests().len(), 9);
    talk.prompt("And now?");
    talk.result();
    assert!(last_words(&model).contains("again") && last_words(&model).contains("And now?"));
    talk.end();
}

#[test]
fn hooks_of_failures_hear_of_an_answer_that_was_never_whole() {
    let settings = json!({"hooks": {
        "StopFailure": [{"matcher": "max_output_tokens", "hooks": [{"type": "command", "command": "cat > failed.json"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "touch stopped"}]}],
    }});
    let script = Script::new().step(Step::reply([text("and ")]).stop("max_tokens").always());
    let (place, _model, ran) = run(script, &settings.to_string(), &[]);
    assert_eq!(ran.result()["terminal_reason"], "api_error");
    let heard: Value = serde_json::from_str(&place.read("failed.json")).unwrap();
    assert_eq!(
        (&heard["hook_event_name"], &heard["error"]),
        (&json!("StopFailure"), &json!("max_output_tokens"))
    );
    assert!(!place.has("stopped"));
}
