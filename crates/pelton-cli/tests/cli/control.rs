//! The control protocol: what a client and `pelton` ask of each other while a session runs.

use std::time::{Duration, Instant};

use pelton_testkit::{Script, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model, of_type, wait};
use crate::talk::{Talk, until_queued};

const ASKS: [&str; 2] = ["--permission-prompt-tool", "stdio"];

fn bash(command: &str) -> Script {
    Script::new().reply([tool("Bash", json!({"command": command}))]).reply([text("done")])
}

fn tool_result(line: &Value) -> &Value {
    &line["message"]["content"][0]
}

#[test]
fn the_first_words_are_answered_with_what_there_is() {
    let (place, model) = (Place::new(), model(Script::new()));
    let mut talk = Talk::start(&place, &model, &[]);
    let first = talk.asked(&json!({"subtype": "initialize", "hooks": null, "agents": {"helper": {"description": "Helps.", "prompt": "You help."}}}));
    let reply = &first["response"];
    for list in ["commands", "agents", "models", "available_output_styles"] {
        assert!(reply[list].is_array(), "{list}: {reply}");
    }
    assert!(reply["agents"].to_string().contains("helper"));
    assert_eq!(reply["hook_on_failure_supported"], true);
    assert_eq!(reply["pid"], talk.id());
    assert_eq!(reply["account"]["apiKeySource"], "ANTHROPIC_API_KEY");
    let second = talk.asked(&json!({"subtype": "initialize"}));
    assert_eq!(second["response"], *reply);
    for list in
        ["pending_permission_requests", "pending_user_dialog_requests", "pending_elicitation_requests"]
    {
        assert_eq!((&first[list], &second[list]), (&json!([]), &json!([])));
    }
    talk.end().well();
}

#[test]
fn a_client_that_joins_learns_which_questions_are_open() {
    let outside = Place::new();
    let calls = ["a", "b"].map(|name| tool("Read", json!({"file_path": outside.put(name, name)})));
    let (place, model) = (Place::new(), model(Script::new().reply(calls).reply([text("done")])));
    let mut talk = Talk::start(&place, &model, &ASKS);
    talk.prompt("go");
    let questions = [talk.question("can_use_tool"), talk.question("can_use_tool")];
    let pending = |talk: &mut Talk| {
        talk.asked(&json!({"subtype": "initialize"}))["pending_permission_requests"].clone()
    };
    assert_eq!(pending(&mut talk), json!(questions), "as they were asked, in their order");
    talk.answer(&questions[0], &json!({"behavior": "allow"}));
    assert_eq!(pending(&mut talk), json!([questions[1]]));
    talk.answer(&questions[1], &json!({"behavior": "deny", "message": "No."}));
    talk.result();
    assert_eq!(pending(&mut talk), json!([]));
    talk.end().well();
}

#[test]
fn what_nobody_knows_is_answered_with_that() {
    let (place, model) = (Place::new(), model(Script::new()));
    let mut talk = Talk::start(&place, &model, &[]);
    for subtype in ["yesterday", "tomorrow"] {
        let answer = talk.asked(&json!({"subtype": subtype}));
        assert_eq!(answer["subtype"], "error");
        assert_eq!(answer["error"], format!("Unsupported control request subtype: {subtype}"));
    }
    let bad = talk.asked(&json!({"subtype": "mcp_reconnect", "serverName": "x"}));
    assert_eq!(bad["error"], "Server not found: x");
    let bad = talk.asked(&json!({"subtype": "rewind_files", "user_message_id": "x"}));
    assert_eq!(bad["error"], "File rewinding is not enabled.");
    talk.end().well();
}

#[test]
fn calls_are_asked_about_and_run_as_the_client_says() {
    let (place, model) = (Place::new(), model(bash("touch asked")));
    let mut talk = Talk::start(&place, &model, &ASKS);
    talk.prompt("go");
    let question = talk.question("can_use_tool");
    let asked = &question["request"];
    assert_eq!((&asked["tool_name"], &asked["input"]["command"]), (&json!("Bash"), &json!("touch asked")));
    assert!(asked["tool_use_id"].is_string() && asked["permission_suggestions"].is_array());
    let at = talk.seen.iter().position(|line| line["type"] == "assistant").expect("the call is shown before");
    assert!(at < talk.seen.len() - 1);
    talk.answer(&question, &json!({"behavior": "allow", "updatedInput": {"command": "touch allowed"}}));
    assert_eq!(talk.result()["permission_denials"], json!([]));
    talk.end().well();
    assert!(place.has("allowed") && !place.has("asked"));
}

#[test]
fn a_denial_is_what_the_model_reads() {
    for (error, words) in [(false, "Not today."), (true, "the callback broke")] {
        let (place, model) = (Place::new(), model(bash("touch x")));
        let mut talk = Talk::start(&place, &model, &ASKS);
        talk.prompt("go");
        let question = talk.question("can_use_tool");
        match error {
            true => talk.answer_error(&question, words),
            false => talk.answer(&question, &json!({"behavior": "deny", "message": words})),
        }
        let told = talk.until(|line| line["type"] == "user");
        assert_eq!(
            (&tool_result(&told)["is_error"], &told["tool_use_result"]),
            (&json!(true), &json!(format!("Error: {words}")))
        );
        assert_eq!(tool_result(&told)["content"], words, "exactly that, and nothing around it");
        let result = talk.result();
        assert_eq!((&result["is_error"], &result["result"]), (&json!(false), &json!("done")));
        assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
        talk.end().well();
        assert!(!place.has("x"));
        assert!(model.requests()[1].body["messages"].to_string().contains(words));
    }
}

#[test]
fn a_denial_can_end_the_turn() {
    let (place, model) = (Place::new(), model(bash("touch x").reply([text("again")])));
    let mut talk = Talk::start(&place, &model, &ASKS);
    talk.prompt("go");
    let question = talk.question("can_use_tool");
    talk.answer(&question, &json!({"behavior": "deny", "message": "Stop.", "interrupt": true}));
    let result = talk.result();
    assert_eq!(
        (&result["subtype"], &result["terminal_reason"]),
        (&json!("error_during_execution"), &json!("aborted_tools"))
    );
    let said =
        talk.seen.iter().any(|line| line.to_string().contains("[Request interrupted by user for tool use]"));
    assert!(said, "{:#?}", talk.seen);
    talk.prompt("and now?");
    assert_eq!(talk.result()["is_error"], false);
    talk.end().well();
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn what_an_answer_changes_holds_for_the_next_call() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "touch a"}))])
        .reply([tool("Bash", json!({"command": "touch b"}))])
        .reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &ASKS);
    talk.prompt("go");
    let question = talk.question("can_use_tool");
    let rule = json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": null}], "behavior": "allow", "destination": "session"});
    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    talk.answer(&question, &json!({"behavior": "allow", "updatedPermissions": [rule, mode]}));
    assert_eq!(talk.system("status")["permissionMode"], "acceptEdits");
    talk.result();
    let over = talk.end();
    assert_eq!(of_type(over.well(), "control_request").len(), 1);
    assert!(place.has("a") && place.has("b"));
}

#[test]
fn questions_of_parallel_calls_are_asked_together() {
    let outside = Place::new();
    let files: Vec<String> =
        ["a", "b", "c"].iter().map(|name| outside.put(name, name).to_string_lossy().into_owned()).collect();
    let calls = files.iter().map(|file| tool("Read", json!({"file_path": file})));
    let script = Script::new().reply(calls).reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &ASKS);
    talk.prompt("go");
    let questions: Vec<Value> = (0..3).map(|_| talk.question("can_use_tool")).collect();
    assert!(questions.iter().all(|question| question["request"]["blocked_path"].is_string()));
    for question in questions.iter().rev() {
        talk.answer(question, &json!({"behavior": "allow"}));
    }
    talk.result();
    let over = talk.end();
    let results: Vec<&Value> = of_type(over.well(), "user");
    let texts: Vec<String> = results.iter().map(|line| tool_result(line)["content"].to_string()).collect();
    assert!(
        texts.len() == 3 && ["a", "b", "c"].iter().zip(&texts).all(|(name, text)| text.contains(name)),
        "{texts:?}"
    );
}

#[test]
fn pit_K2_an_interrupt_is_answered_first_and_ends_the_turn_wherever_it_is() {
    let streaming = || Script::new().reply([text("half"), gate("never"), text("whole")]);
    let before = || Script::new().reply([gate("never"), text("never")]);
    let in_tool = || bash("sleep 60");
    let waiting = || Script::new().step(pelton_testkit::Step::status(529).header("retry-after", "30"));
    for (what, script, words, sign) in [
        ("before the first byte", before(), &["--allowedTools", "Bash"][..], "init"),
        ("streaming", streaming(), &["--allowedTools", "Bash"], "assistant"),
        ("in a command", in_tool(), &["--allowedTools", "Bash"], "assistant"),
        ("in a question", bash("touch x"), &ASKS, "control_request"),
        ("in a wait", waiting(), &[], "api_retry"),
    ] {
        let (place, model) = (Place::new(), model(script));
        let mut talk = Talk::start(&place, &model, words);
        talk.prompt("go");
        talk.until(|line| line["type"] == sign || line["subtype"] == sign);
        let began = Instant::now();
        let answer = talk.asked(&json!({"subtype": "interrupt"}));
        assert_eq!(answer["subtype"], "success", "{what}");
        let result = talk.result();
        assert!(began.elapsed() < Duration::from_secs(3), "{what}: {:?}", began.elapsed());
        assert_eq!(
            (&result["subtype"], &result["is_error"]),
            (&json!("error_during_execution"), &json!(true)),
            "{what}"
        );
        let over = talk.end();
        assert_eq!(over.code, Some(1), "{what}");
        assert_eq!(of_type(&over.seen, "result").len(), 1, "{what}");
        let asked = of_type(&over.seen, "control_request").len();
        assert_eq!(of_type(&over.seen, "control_cancel_request").len(), asked, "{what}");
        // Every call was answered.
        let calls = over.seen.iter().filter(|line| line.to_string().contains(r#""type":"tool_use""#)).count();
        let results = over.seen.iter().filter(|line| tool_result(line)["type"] == "tool_result").count();
        assert_eq!(calls, results, "{what}");
    }
}

#[test]
fn loop_A6_an_interrupt_right_behind_a_result_is_meant_for_the_prompt_before_it() {
    let step = |script: Script, _| script.reply([text("one")]);
    let (place, model) = (Place::new(), model((0..20).fold(Script::new(), step)));
    let mut talk = Talk::start(&place, &model, &[]);
    for n in 0..10 {
        talk.prompt("first");
        assert_eq!(talk.result()["subtype"], "success", "round {n}");
        // Both are there before anybody can have looked at the first.
        let prompt = json!({"type": "user", "message": {"role": "user", "content": "second"}});
        let interrupt = json!({"type": "control_request", "request_id": format!("i{n}"), "request": {"subtype": "interrupt"}});
        talk.say_text(&format!("{prompt}\n{interrupt}\n"));
        assert_eq!(talk.result()["subtype"], "error_during_execution", "round {n}");
    }
    let over = talk.end();
    assert_eq!(of_type(&over.seen, "result").len(), 20, "one for each prompt");
}

#[test]
fn an_interrupt_of_nothing_is_well() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    let mut talk = Talk::start(&place, &model, &[]);
    assert_eq!(talk.asked(&json!({"subtype": "interrupt"}))["subtype"], "success");
    talk.prompt("hi");
    assert_eq!(talk.result()["result"], "one");
    talk.end().well();
}

#[test]
fn hooks_of_the_client_are_called_and_heard() {
    let (place, model) = (Place::new(), model(bash("touch x")));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    let matcher = |id: &str| json!([{"matcher": null, "hookCallbackIds": [id]}]);
    talk.asked(&json!({"subtype": "initialize", "hooks": {
        "UserPromptSubmit": matcher("prompt"), "PreToolUse": [{"matcher": "Bash|Edit", "hookCallbackIds": ["pre", "pre2"]}, {"matcher": "Edit", "hookCallbackIds": ["never"]}],
        "PostToolUse": matcher("post"), "Stop": matcher("stop")}}));
    talk.prompt("go");
    let prompt = talk.question("hook_callback");
    assert_eq!(
        (&prompt["request"]["callback_id"], &prompt["request"]["input"]["prompt"]),
        (&json!("prompt"), &json!("go"))
    );
    assert!(!talk.seen.iter().any(|line| line["subtype"] == "init"), "hooks come before init");
    talk.answer(&prompt, &json!({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "It is Monday."}}));
    let (one, two) = (talk.question("hook_callback"), talk.question("hook_callback"));
    let mut ids =
        [&one, &two].map(|question| question["request"]["callback_id"].as_str().unwrap().to_owned());
    ids.sort();
    assert_eq!(ids, ["pre", "pre2"]);
    assert_eq!(one["request"]["input"]["tool_input"]["command"], "touch x");
    talk.answer(&two, &json!({}));
    talk.answer(&one, &json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "touch y"}}}));
    let post = talk.question("hook_callback");
    assert_eq!(post["request"]["callback_id"], "post");
    talk.answer_error(&post, "broken");
    let stop = talk.question("hook_callback");
    assert_eq!(stop["request"]["input"]["hook_event_name"], "Stop");
    talk.answer(&stop, &json!({}));
    assert_eq!(talk.result()["is_error"], false);
    talk.end().well();
    assert!(place.has("y") && !place.has("x"));
    assert!(model.requests()[0].body["messages"].to_string().contains("It is Monday."));
}

#[test]
fn a_hook_whose_failure_blocks_does_so_and_one_that_is_late_is_taken_back() {
    let (place, model) = (Place::new(), model(bash("touch x")));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.asked(&json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"], "onFailure": "block"}],
        "Stop": [{"matcher": null, "hookCallbackIds": ["late"], "timeout": 0.2}]}}));
    talk.prompt("go");
    let question = talk.question("hook_callback");
    talk.answer_error(&question, "broken");
    let late = talk.question("hook_callback");
    let cancelled = talk.until(|line| line["type"] == "control_cancel_request");
    assert_eq!(cancelled["request_id"], late["request_id"]);
    talk.answer(&late, &json!({"decision": "block", "reason": "too late"}));
    talk.result();
    talk.end().well();
    assert!(!place.has("x"));
}

#[test]
fn tools_of_the_client_are_called_through_lines() {
    let script = Script::new()
        .reply([tool("mcp__calc__add", json!({"a": 1, "b": 2}))])
        .reply([tool("mcp__calc__fail", json!({}))])
        .reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "mcp__calc__add,mcp__calc__fail"]);
    talk.ask(&json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}));
    talk.prompt("go");
    let message = |question: &Value| question["request"]["message"].clone();
    let respond = |talk: &mut Talk, question: &Value, result: Value| {
        let id = &question["request"]["message"]["id"];
        talk.answer(question, &json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}}));
    };
    let first = talk.question("mcp_message");
    assert_eq!(
        (&first["request"]["server_name"], &message(&first)["method"]),
        (&json!("calc"), &json!("initialize"))
    );
    assert_eq!(message(&first)["params"]["protocolVersion"], "2025-11-25", "the newest that has a handshake");
    respond(
        &mut talk,
        &first,
        json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}, "instructions": "Use calc."}),
    );
    let noted = talk.question("mcp_message");
    assert_eq!(message(&noted)["method"], "notifications/initialized");
    talk.answer(&noted, &json!({"mcp_response": {"jsonrpc": "2.0", "result": {}}}));
    let list = talk.question("mcp_message");
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    respond(
        &mut talk,
        &list,
        json!({"tools": [{"name": "add", "description": "Adds.", "inputSchema": schema}, {"name": "fail", "inputSchema": {"type": "object"}}]}),
    );
    let init = talk.system("init");
    assert_eq!(init["mcp_servers"], json!([{"name": "calc", "status": "connected", "source": "sdk"}]));
    let called = talk.question("mcp_message");
    let params = &message(&called)["params"];
    assert_eq!((&params["name"], &params["arguments"]), (&json!("add"), &json!({"a": 1, "b": 2})));
    assert!(params["_meta"]["claudecode/toolUseId"].is_string());
    respond(&mut talk, &called, json!({"content": [{"type": "text", "text": "3"}]}));
    let told = talk.until(|line| line["type"] == "user");
    assert_eq!(
        (&tool_result(&told)["content"], &told["tool_use_result"]),
        (&json!([{"type": "text", "text": "3"}]), &json!([{"type": "text", "text": "3"}]))
    );
    let called = talk.question("mcp_message");
    respond(&mut talk, &called, json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
    let told = talk.until(|line| line["type"] == "user");
    assert_eq!(tool_result(&told)["is_error"], true);
    talk.result();
    // What the server has may change.
    talk.asked(&json!({"subtype": "mcp_message", "server_name": "calc", "message": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}}));
    let list = talk.question("mcp_message");
    respond(&mut talk, &list, json!({"tools": [{"name": "subtract", "inputSchema": {"type": "object"}}]}));
    // It is read beside everything else: the answer to the next question may still be the old one.
    let listed = (0..100).find(|_| {
        std::thread::sleep(Duration::from_millis(20));
        let status = talk.asked(&json!({"subtype": "mcp_status"}));
        status["response"]["mcpServers"][0]["tools"][0]["name"] == "subtract"
    });
    assert!(listed.is_some());
    assert_eq!(
        talk.asked(&json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": false}))["subtype"],
        "success"
    );
    let status = talk.asked(&json!({"subtype": "mcp_status"}));
    assert_eq!(status["response"]["mcpServers"][0]["status"], "disabled");
    talk.end().well();
    let body = &model.requests()[0].body;
    assert!(
        body["tools"].to_string().contains("mcp__calc__add")
            && body["system"].to_string().contains("Use calc.")
    );
}

#[test]
fn a_client_that_is_gone_answers_nothing_and_nothing_hangs() {
    let (place, model) = (Place::new(), model(bash("touch x")));
    let mut talk = Talk::start(&place, &model, &ASKS);
    talk.asked(&json!({"subtype": "initialize", "hooks": {"PostToolUseFailure": [{"matcher": null, "hookCallbackIds": ["h"]}], "SessionEnd": [{"matcher": null, "hookCallbackIds": ["e"]}]}}));
    talk.prompt("go");
    talk.question("can_use_tool");
    let over = talk.end();
    assert_eq!(over.code, Some(0), "{over:#?}");
    let result = of_type(&over.seen, "result")[0].clone();
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    assert!(!place.has("x"));
}

#[test]
fn mode_model_and_thinking_change_while_it_runs() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "touch x"})), gate("go")])
        .reply([text("one")])
        .reply([text("two")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]);
    talk.prompt("go");
    talk.until(|line| line["type"] == "assistant");
    assert_eq!(
        talk.asked(&json!({"subtype": "set_model", "model": "claude-opus-5-5"}))["subtype"],
        "success"
    );
    model.open("go");
    talk.result();
    assert_eq!(
        talk.asked(&json!({"subtype": "set_permission_mode", "mode": "plan"}))["response"],
        json!({"mode": "plan"})
    );
    assert_eq!(talk.system("status")["permissionMode"], "plan");
    assert_eq!(
        talk.asked(&json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}))["subtype"],
        "error"
    );
    assert_eq!(talk.asked(&json!({"subtype": "set_permission_mode", "mode": "wild"}))["subtype"], "error");
    assert_eq!(talk.asked(&json!({"subtype": "set_model", "model": null}))["subtype"], "success");
    assert_eq!(
        talk.asked(&json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 0}))["subtype"],
        "success"
    );
    talk.prompt("and now?");
    let init = talk.system("init");
    assert_eq!((&init["permissionMode"], &init["model"]), (&json!("plan"), &json!("claude-sonnet-4-5")));
    talk.result();
    talk.end().well();
    let models: Vec<Value> = model.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["claude-sonnet-4-5", "claude-opus-5-5", "claude-sonnet-4-5"]);
    assert_eq!(model.requests()[2].body["thinking"]["type"], "disabled");
}

#[test]
fn files_are_taken_back_to_what_they_were() {
    let file = |place: &Place| place.work().join("a.txt").to_string_lossy().into_owned();
    let place = Place::new();
    place.put("a.txt", "before\n");
    let script = Script::new()
        .reply([tool("Read", json!({"file_path": file(&place)}))])
        .reply([tool("Write", json!({"file_path": file(&place), "content": "after\nand more\n"}))])
        .reply([text("done")]);
    let model = model(script);
    let mut talk = Talk::with(&place, &model, &["--permission-mode", "acceptEdits"], |command| {
        command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    });
    let id = "0f0e0d0c-0b0a-4908-8706-050403020100";
    talk.say(&json!({"type": "user", "uuid": id, "message": {"role": "user", "content": "change it"}}));
    talk.result();
    assert_eq!(place.read("a.txt"), "after\nand more\n");
    let dry = talk.asked(&json!({"subtype": "rewind_files", "user_message_id": id, "dry_run": true}));
    assert_eq!((&dry["response"]["canRewind"], &dry["response"]["deletions"]), (&json!(true), &json!(2)));
    assert!(dry["response"].get("left").is_none(), "{dry}");
    // What would stay is said before.
    place.put("a.txt", "mine\n");
    let dry = talk.asked(&json!({"subtype": "rewind_files", "user_message_id": id, "dry_run": true}));
    assert!(dry["response"]["left"][0].as_str().unwrap().contains("changed by somebody else"), "{dry}");
    place.put("a.txt", "after\nand more\n");
    let other = "00000000-0b0a-4908-8706-050403020100";
    let unknown = talk.asked(&json!({"subtype": "rewind_files", "user_message_id": other}));
    assert_eq!(unknown["error"], "No file checkpoint found for this message.");
    let done = talk.asked(&json!({"subtype": "rewind_files", "user_message_id": id}));
    assert_eq!(done["response"], json!({"canRewind": true}));
    assert_eq!(place.read("a.txt"), "before\n");
    talk.end().well();
}

#[test]
fn what_is_known_is_told() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")])));
    place.put("notes/todo.txt", "buy milk");
    let mut talk = Talk::start(&place, &model, &["--disallowedTools", "Read(./secret)"]);
    talk.prompt("hi");
    talk.result();
    let usage = talk.asked(&json!({"subtype": "get_context_usage"}))["response"].clone();
    assert_eq!(usage["totalTokens"], taken(&usage));
    assert!(taken(&usage) > 100 && usage["maxTokens"].as_u64().unwrap() >= 200_000);
    assert_eq!(usage["levels"].as_array().unwrap().len(), 4, "{usage}");
    assert!(usage["nextTurnCachedUsd"].as_f64().unwrap() < usage["nextTurnUncachedUsd"].as_f64().unwrap());
    let counted = model.reply_requests()[0].reply.usage.clone().unwrap();
    assert_eq!(usage["cache"][0]["written"], counted["cache_creation_input_tokens"], "{usage}");
    let settings = talk.asked(&json!({"subtype": "get_settings"}));
    assert_eq!(settings["response"]["effective"]["permissions"]["deny"], json!(["Read(./secret)"]));
    assert!(
        talk.asked(&json!({"subtype": "get_session_cost"}))["response"]["text"]
            .as_str()
            .unwrap()
            .contains('$')
    );
    assert!(talk.asked(&json!({"subtype": "get_binary_version"}))["response"]["version"].is_string());
    let file = talk.asked(&json!({"subtype": "read_file", "path": "notes/todo.txt", "max_bytes": 3}));
    assert_eq!(
        (&file["response"]["contents"], &file["response"]["truncated"]),
        (&json!("buy"), &json!(true))
    );
    place.put("secret", "x");
    assert_eq!(talk.asked(&json!({"subtype": "read_file", "path": "secret"}))["subtype"], "error");
    let found = talk.asked(&json!({"subtype": "file_suggestions", "query": "todo"}));
    assert_eq!(found["response"]["suggestions"][0]["path"], "notes/todo.txt");
    let set = talk.asked(
        &json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"allow": ["Bash(ls:*)"]}}}),
    );
    assert_eq!(set["subtype"], "success");
    let settings = talk.asked(&json!({"subtype": "get_settings"}));
    assert_eq!(settings["response"]["effective"]["permissions"]["allow"], json!(["Bash(ls:*)"]));
    // What such a request says of permissions takes the place of all that one said before.
    let mut now = |permissions: Value| {
        let settings = json!({"model": "haiku", "permissions": permissions});
        let answer = talk.asked(&json!({"subtype": "apply_flag_settings", "settings": settings}));
        let settings = talk.asked(&json!({"subtype": "get_settings"}))["response"]["effective"].clone();
        let permissions = &settings["permissions"];
        (answer["subtype"].clone(), permissions["allow"].clone(), permissions["deny"].clone())
    };
    // It was started with one rule of its own.
    let (before, denied) = (json!(["Read(./secret)"]), json!(["Read(./secret)", "Bash"]));
    assert_eq!(now(json!({"deny": ["Bash"]})), (json!("success"), json!([]), denied.clone()));
    for mistake in [json!({"allow": "Bash"}), json!({"deny": [7]}), json!({"defaultMode": 7}), json!([])] {
        assert_eq!(now(mistake), (json!("error"), json!([]), denied.clone()));
    }
    assert_eq!(now(Value::Null), (json!("success"), json!([]), before));
    assert_eq!(
        talk.asked(&json!({"subtype": "apply_flag_settings", "settings": {"theme": "dark"}}))["subtype"],
        "error"
    );
    assert_eq!(talk.asked(&json!({"subtype": "rename_session", "title": "Milk"}))["subtype"], "success");
    talk.end().well();
    assert!(place.transcript().iter().any(|line| line["customTitle"] == "Milk"));
}

#[test]
fn a_prompt_that_waits_can_be_taken_back() {
    let script = Script::new().reply([gate("go"), text("one")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("first");
    talk.system("init");
    let id = "0f0e0d0c-0b0a-4908-8706-050403020100";
    talk.say(&json!({"type": "user", "uuid": id, "message": {"role": "user", "content": "second"}}));
    until_queued(&place, 1);
    let cancel = json!({"subtype": "cancel_async_message", "message_uuid": id});
    assert_eq!(talk.asked(&cancel)["response"], json!({"cancelled": true}));
    assert_eq!(talk.asked(&cancel)["response"], json!({"cancelled": false}));
    model.open("go");
    talk.result();
    let over = talk.end();
    assert_eq!(of_type(over.well(), "result").len(), 1);
}

#[test]
fn background_commands_are_stopped_and_are_not_put_aside_again() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "sleep 100", "run_in_background": true}))])
        .reply([text("It runs.")])
        .reply([text("It was stopped.")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("go");
    let id = talk.system("task_started")["task_id"].clone();
    talk.result();
    let call = of_type(&talk.seen, "assistant")[0]["message"]["content"][0]["id"].clone();
    let put_aside = talk.asked(&json!({"subtype": "background_tasks", "tool_use_id": call}));
    assert_eq!(put_aside["response"], json!({"backgrounded": false}), "nobody waits for it");
    assert_eq!(talk.asked(&json!({"subtype": "stop_task", "task_id": "x"}))["subtype"], "error");
    assert_eq!(talk.asked(&json!({"subtype": "stop_task", "task_id": id}))["subtype"], "success");
    assert_eq!(talk.system("task_notification")["status"], "stopped");
    talk.result();
    talk.end().well();
}

#[test]
fn names_plans_and_skills_are_what_the_client_says() {
    let script =
        Script::new().reply([tool("Bash", json!({"a": 1}))]).reply([text("done")]).reply([text("planned")]);
    let (place, model) = (Place::new(), model(script));
    for name in ["wanted", "other"] {
        place.put(
            &format!(".claude/skills/{name}/SKILL.md"),
            &format!("---\ndescription: the {name} one\n---\nDo."),
        );
    }
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "mcp__calc__look"]);
    let about = talk.asked(&json!({"subtype": "initialize", "sdkMcpServers": ["calc"],
        "toolAliases": {"Bash": "mcp__calc__look", "Read": "Nobody"}, "skills": ["wanted"],
        "planModeInstructions": "Draw a map first.", "excludeDynamicSections": true}));
    let commands = about["response"]["commands"].to_string();
    assert!(commands.contains("\"compact\"") && commands.contains("\"wanted\""), "{commands}");
    assert!(!commands.contains("\"other\""), "{commands}");
    talk.prompt("go");
    let listed = json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]});
    let started = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}});
    for result in [started, json!({}), listed] {
        let asked = talk.question("mcp_message");
        let id = &asked["request"]["message"]["id"];
        talk.answer(&asked, &json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}}));
    }
    let called = talk.question("mcp_message");
    let message = &called["request"]["message"];
    assert_eq!(
        (&message["params"]["name"], &message["params"]["arguments"]),
        (&json!("look"), &json!({"a": 1}))
    );
    talk.answer(&called, &json!({"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "seen"}]}}}));
    assert_eq!(talk.result()["result"], "done");
    talk.asked(&json!({"subtype": "set_permission_mode", "mode": "plan"}));
    talk.prompt("plan");
    assert_eq!(talk.result()["result"], "planned");
    talk.end().well();
    let body = &model.requests()[2].body;
    let (sent, system) = (body["messages"].to_string(), body["system"].to_string());
    assert!(sent.contains("Draw a map first.") && sent.contains("Plan mode is on"), "{sent}");
    assert!(sent.contains("the wanted one") && !sent.contains("the other one"), "{sent}");
    let home = place.home().display().to_string();
    assert!(!system.contains(&home) && !system.contains(&place.work().display().to_string()), "{system}");
}

/// What everything takes together, free space aside.
fn taken(usage: &Value) -> u64 {
    let categories = usage["categories"].as_array().unwrap();
    let used = categories.iter().filter(|part| part["kind"] != "free");
    used.map(|part| part["tokens"].as_u64().unwrap()).sum()
}

#[test]
fn what_fills_the_context_is_told_before_during_and_after_a_turn() {
    let script = Script::new()
        .reply([text("Let me see."), tool("Read", json!({"file_path": "long.txt"}))])
        .reply([text("Seen.").after(1, gate("middle"))]);
    let (place, model) = (Place::new(), model(script));
    place.put("CLAUDE.md", "Always speak of beans.");
    place.put("long.txt", &"A bean.\n".repeat(1_000));
    let mut talk = Talk::start(&place, &model, &["--model", "claude-sonnet-4-5", "--allowedTools", "Read"]);
    let asked = |talk: &mut Talk| talk.asked(&json!({"subtype": "get_context_usage"}))["response"].clone();

    let before = asked(&mut talk);
    assert!(before["totalTokens"].as_u64().unwrap() > 1_000, "system prompt and tools are known: {before}");
    talk.prompt("look at it");
    wait(model.wait_at_gate("middle"));
    let during = asked(&mut talk);
    assert_eq!(during["totalTokens"], taken(&during), "{during}");
    let grown = during["totalTokens"].as_u64().unwrap() - before["totalTokens"].as_u64().unwrap();
    assert!(grown > 2_000, "the file counts while the turn runs: {grown}");
    model.open("middle");
    talk.result();
    let after = asked(&mut talk);
    assert_eq!(after["totalTokens"], taken(&after));
    // The server's own count, to the token.
    let usage = &after["apiUsage"];
    assert!(usage.is_object(), "{after}");
    let last = model.reply_requests().last().unwrap().reply.usage.clone().unwrap();
    let figure = |name: &str| last[name].as_u64().unwrap_or_default();
    let counted = figure("input_tokens")
        + figure("cache_read_input_tokens")
        + figure("cache_creation_input_tokens")
        + figure("output_tokens");
    assert_eq!(after["totalTokens"], counted, "{last}");
    let memory = after["memoryFiles"].as_array().unwrap();
    assert_eq!(memory.len(), 1, "{after}");
    assert!(
        memory[0]["path"].as_str().unwrap().ends_with("CLAUDE.md")
            && memory[0]["tokens"].as_u64().unwrap() > 5
    );
    let levels: Vec<&str> =
        after["levels"].as_array().unwrap().iter().filter_map(|level| level["level"].as_str()).collect();
    assert_eq!(levels, ["microcompact", "collapse", "autocompact", "local"]);
    let price = |name: &str| after[name].as_f64().unwrap();
    assert!(price("nextTurnUncachedUsd") > price("nextTurnCachedUsd") && price("nextTurnCachedUsd") > 0.0);
    talk.end().well();
    // Another process that knows the record only says the same, but for what stands in front of it there.
    let id = place.transcripts()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let told: Value = serde_json::from_str(place.pelton(["context", &id, "--json"]).run().well()).unwrap();
    let (there, here) = (told["usedTokens"].as_u64().unwrap(), counted);
    assert!(there.abs_diff(here) * 100 <= here * 5, "{there} instead of {here}");
}

#[test]
fn whoever_approves_a_plan_may_choose_the_mode_to_go_on_in_and_every_change_is_told() {
    let place = Place::new();
    let write = json!({"file_path": place.work().join("late.txt"), "content": "x"});
    let model = model(
        Script::new()
            .reply([tool("EnterPlanMode", json!({}))])
            .reply([tool("ExitPlanMode", json!({"plan": "# One"}))])
            .reply([tool("ExitPlanMode", json!({"plan": "# Two"}))])
            .reply([tool("Write", write)])
            .reply([text("Done.")]),
    );
    let mut talk = Talk::start(&place, &model, &ASKS);
    talk.asked(&json!({"subtype": "initialize"}));
    talk.prompt("go");
    let refused = talk.question("can_use_tool");
    assert_eq!(refused["request"]["input"]["plan"], "# One");
    talk.answer(&refused, &json!({"behavior": "deny", "message": "Think more."}));
    let approved = talk.question("can_use_tool");
    let mode = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
    let input = approved["request"]["input"].clone();
    talk.answer(&approved, &json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": mode}));
    assert_eq!(talk.result()["result"], "Done.");
    assert!(place.has("late.txt"), "the mode is accepting edits");
    let modes: Vec<&Value> = talk.seen.iter().map(|line| &line["permissionMode"]).collect();
    let modes: Vec<&str> = modes.into_iter().filter_map(Value::as_str).collect();
    assert_eq!(modes.first(), Some(&"default"));
    assert_eq!(modes.iter().filter(|mode| **mode == "plan").count(), 1, "{modes:?}");
    assert_eq!(modes.last(), Some(&"acceptEdits"), "{modes:?}");
    let refusals = talk.seen.iter().filter(|line| line.to_string().contains("nothing to leave")).count();
    assert_eq!(refusals, 0);
    talk.end();
}
