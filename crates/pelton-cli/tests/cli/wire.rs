//! What clients may ask, and what they are told unasked, beyond the everyday.

use pelton_testkit::{Script, Step, When, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Place, model, of_type, until, wait};
use crate::talk::Talk;

fn subtypes(seen: &[Value]) -> Vec<&str> {
    seen.iter().filter_map(|line| line["subtype"].as_str()).collect()
}

#[test]
fn a_refusal_that_nobody_was_asked_about_is_told_as_it_happens() {
    let script = Script::new()
        .reply([
            tool("Bash", json!({"command": "touch made"})),
            tool("Read", json!({"file_path": "secret.txt"})),
            tool("Bash", json!({"command": "echo fine"})),
        ])
        .reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    place.put("secret.txt", "hush");
    let words = ["--disallowedTools", "Read(secret.txt)", "--allowedTools", "Bash(echo fine)"];
    let mut talk = Talk::start(&place, &model, &words);
    talk.prompt("go");
    let result = talk.result();
    let over = talk.end();
    let told: Vec<&Value> =
        over.well().iter().filter(|line| line["subtype"] == "permission_denied").collect();
    let kinds: Vec<(&str, &str)> = told
        .iter()
        .map(|line| (line["tool_name"].as_str().unwrap(), line["decision_reason_type"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, [("Bash", "mode"), ("Read", "rule")]);
    // What the model reads is what is told, and the result counts the same calls.
    let sent = model.reply_requests()[1].body["messages"].to_string();
    for (line, denial) in told.iter().zip(result["permission_denials"].as_array().unwrap()) {
        assert_eq!(line["tool_use_id"], denial["tool_use_id"]);
        assert!(sent.contains(line["message"].as_str().unwrap()), "{line}");
    }
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 2);
}

#[test]
fn what_runs_in_the_background_is_told_whole_whenever_it_changes() {
    let sleeper =
        json!({"command": "while [ ! -e on ]; do sleep 0.05; done; echo over", "run_in_background": true});
    let script =
        Script::new().reply([tool("Bash", sleeper)]).reply([text("it runs")]).reply([text("it ended")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("go");
    let running = talk.system("background_tasks_changed");
    let task = running["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(
        (running["tasks"].as_array().unwrap().len(), &running["tasks"][0]["task_type"]),
        (1, &json!("local_bash"))
    );
    talk.result();
    // Whoever comes back is told what there is.
    talk.asked(&json!({"subtype": "initialize"}));
    assert_eq!(talk.system("background_tasks_changed")["tasks"][0]["task_id"], *task);
    let so_far = talk.asked(&json!({"subtype": "get_task_output", "task_id": task}));
    assert_eq!(so_far["response"], json!({"output": "", "total_bytes": 0, "truncated": false}));
    place.put("on", "");
    assert_eq!(talk.system("background_tasks_changed")["tasks"], json!([]));
    assert_eq!(talk.result()["result"], "it ended");
    let all = talk.asked(&json!({"subtype": "get_task_output", "task_id": task}));
    assert_eq!(all["response"]["output"], "over\n");
    let unknown = talk.asked(&json!({"subtype": "get_task_output", "task_id": "nobody"}));
    assert_eq!(unknown["error"], "No task found with ID: nobody");
    talk.end().well();
}

#[test]
fn limits_of_a_subscription_are_told_when_they_change() {
    let limits = |status: &str, used: &str| {
        [
            ("anthropic-ratelimit-unified-status".to_owned(), status.to_owned()),
            ("anthropic-ratelimit-unified-representative-claim".to_owned(), "five_hour".to_owned()),
            ("anthropic-ratelimit-unified-5h-utilization".to_owned(), used.to_owned()),
            ("anthropic-ratelimit-unified-reset".to_owned(), "1767225600".to_owned()),
        ]
    };
    let with = |step: Step, status: &str, used: &str| {
        limits(status, used).into_iter().fold(step, |step, (name, value)| step.header(&name, &value))
    };
    let script = Script::new()
        .step(with(Step::reply([text("one")]), "allowed", "0.5"))
        .step(with(Step::reply([text("two")]), "allowed", "0.5"))
        .step(with(Step::reply([text("three")]), "allowed_warning", "0.9"))
        .step(with(Step::reply([text("four")]), "tomorrow", "0.95"));
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    for _ in 0..4 {
        talk.prompt("go");
        talk.result();
    }
    let over = talk.end();
    let told: Vec<&Value> =
        of_type(over.well(), "rate_limit_event").into_iter().map(|line| &line["rate_limit_info"]).collect();
    let info = |status: &str, used: f64| json!({"status": status, "resetsAt": 1_767_225_600, "rateLimitType": "five_hour", "utilization": used});
    assert_eq!(told, [&info("allowed", 0.5), &info("allowed_warning", 0.9)]);
}

#[test]
fn commands_that_come_are_told_and_looked_for_on_request() {
    let (place, model) = (Place::new(), model(Script::new().step(Step::reply([text("hi")]).always())));
    let mut talk = Talk::start(&place, &model, &[]);
    let first = talk.asked(&json!({"subtype": "initialize"}));
    assert!(!first["response"]["commands"].to_string().contains("\"late\""));
    talk.prompt("go");
    talk.result();
    assert!(!subtypes(&talk.seen).contains(&"commands_changed"), "nothing has");
    place.put(".claude/skills/late/SKILL.md", "---\ndescription: came late\n---\nDo.");
    let skills = talk.asked(&json!({"subtype": "reload_skills"}));
    assert_eq!(skills["response"]["skills"][0]["name"], "late");
    let reloaded = talk.asked(&json!({"subtype": "reload_plugins", "refuse_if_busy": true}));
    assert!(reloaded["response"]["commands"].to_string().contains("\"late\""));
    assert_eq!(reloaded["response"]["error_count"], 0);
    let refused =
        talk.asked(&json!({"subtype": "reload_plugins", "add_plugins": [{"type": "local", "path": "/x"}]}));
    assert!(refused["error"].as_str().unwrap().contains("cannot be read"));
    talk.prompt("again");
    let told = talk.system("commands_changed");
    assert!(told["commands"].to_string().contains("\"late\""));
    talk.result();
    talk.prompt("and again");
    talk.result();
    let over = talk.end();
    let times = subtypes(over.well()).iter().filter(|subtype| **subtype == "commands_changed").count();
    assert_eq!(times, 1, "a change is told once");
}

#[test]
fn a_message_without_anything_in_it_has_a_result() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("hi")])));
    let mut talk = Talk::start(&place, &model, &[]);
    for empty in [json!(""), json!([]), json!([{"type": "tool_result", "tool_use_id": "x"}]), json!(null)] {
        talk.say(&json!({"type": "user", "message": {"role": "user", "content": empty}}));
        let result = talk.result();
        assert_eq!(
            (&result["subtype"], &result["is_error"]),
            (&json!("error_during_execution"), &json!(true))
        );
        assert_eq!(result["errors"], json!(["A message without anything in it was not taken"]));
    }
    talk.prompt("hi");
    assert_eq!(talk.result()["result"], "hi");
    talk.end().well();
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("");
    talk.result();
    assert_eq!(talk.end().code, Some(1), "the last result is an error");
}

#[test]
fn half_a_character_and_a_nameless_request_hinder_nothing() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("hi")])));
    let mut talk = Talk::start(&place, &model, &[]);
    for id in [json!(3), json!(null), json!({})] {
        talk.say(&json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}}));
        let answer = talk.until(|line| line["type"] == "control_response");
        assert_eq!(
            (&answer["response"]["subtype"], &answer["response"]["request_id"]),
            (&json!("error"), &id)
        );
    }
    // A text that another program cut in the middle of an emoji.
    talk.say_text(r#"{"type":"user","message":{"role":"user","content":"half \ud83d of it"}}"#);
    assert_eq!(talk.result()["result"], "hi");
    talk.end().well();
    assert!(model.reply_requests()[0].body["messages"].to_string().contains("half \u{fffd} of it"));
}

#[test]
fn an_interrupt_before_the_model_is_asked_is_a_turn() {
    let (place, model) = (Place::new(), model(Script::new()));
    let mut talk = Talk::start(&place, &model, &[]);
    let hooks = json!({"UserPromptSubmit": [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    talk.asked(&json!({"subtype": "initialize", "hooks": hooks}));
    talk.prompt("go");
    talk.question("hook_callback");
    talk.asked(&json!({"subtype": "interrupt"}));
    let result = talk.result();
    assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("error_during_execution"), &json!(1)));
    assert_eq!(model.reply_requests().len(), 0);
    assert_eq!(talk.end().code, Some(1));
}

#[test]
fn another_model_is_asked_for_a_reason_and_a_fourth_never() {
    let script = Script::new()
        .step(Step::status(500).times(9).when(When::any().model("opus")))
        .step(Step::reply([text("hi")]).always());
    let (place, model) = (Place::new(), model(script));
    let models = "claude-sonnet-5-5,claude-haiku-4-5,claude-sonnet-4-5,claude-opus-4-1,claude-sonnet-5-5";
    let mut talk =
        Talk::with(&place, &model, &["--model", "claude-opus-5-5", "--fallback-model", models], |command| {
            command.env("CLAUDE_CODE_MAX_RETRIES", "0");
        });
    talk.prompt("go");
    assert_eq!(talk.system("model_fallback")["trigger"], "server_error");
    talk.result();
    let over = talk.end();
    assert_eq!(
        over.err,
        "warning: 3 fallback models count at most, so these are never asked: claude-opus-4-1\n"
    );
}

#[test]
fn what_holds_and_what_it_cost_can_be_asked_for() {
    let script = Script::new()
        .reply([tool("Write", json!({"file_path": "a.txt", "content": "one\ntwo\n"}))])
        .reply([tool("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2\n3"}))])
        .reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    std::fs::write(place.config().join("settings.json"), r#"{"permissions": {"deny": ["WebFetch"]}}"#)
        .unwrap();
    let words = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash(ls:*)"];
    let mut talk = Talk::start(&place, &model, &words);
    let before = talk.asked(&json!({"subtype": "get_usage"}))["response"].clone();
    assert_eq!(
        (&before["session"]["total_cost_usd"], &before["rate_limits_available"]),
        (&json!(0.0), &json!(false))
    );
    talk.prompt("go");
    let result = talk.result();
    let after = talk.asked(&json!({"subtype": "get_usage"}))["response"]["session"].clone();
    assert_eq!(
        (&after["total_cost_usd"], &after["model_usage"]),
        (&result["total_cost_usd"], &result["modelUsage"])
    );
    assert_eq!((&after["total_lines_added"], &after["total_lines_removed"]), (&json!(4), &json!(1)));
    let state = talk.asked(&json!({"subtype": "list_permission_rules"}))["response"]["state"].clone();
    let row = |rule: &str| {
        state["rules"].as_array().unwrap().iter().find(|row| row["rule"] == rule).cloned().unwrap()
    };
    assert_eq!(
        row("WebFetch"),
        json!({"behavior": "deny", "source": "userSettings", "rule": "WebFetch", "editability": "persistent"})
    );
    assert_eq!(row("Bash(ls:*)")["source"], "cliArg");
    let settings = talk.asked(&json!({"subtype": "get_settings"}))["response"].clone();
    assert_eq!(
        settings["sources"],
        json!([{"source": "userSettings", "settings": {"permissions": {"deny": ["WebFetch"]}}}])
    );
    let usage = talk.asked(&json!({"subtype": "get_context_usage"}))["response"].clone();
    for row in usage["categories"].as_array().unwrap() {
        assert!(row["id"].is_string() && ["used", "free"].contains(&row["kind"].as_str().unwrap()), "{row}");
    }
    let models = talk.asked(&json!({"subtype": "list_models"}));
    assert_eq!(models["response"]["models"][0]["value"], "default");
    // It ends as if there was nothing more to say, though the pipe is open.
    assert_eq!(talk.asked(&json!({"subtype": "end_session"}))["subtype"], "success");
    talk.wait().well();
}

#[test]
fn dials_are_turned_alone_and_turned_back() {
    let (place, model) = (Place::new(), model(Script::new().step(Step::reply([text("hi")]).always())));
    let words = ["--model", "claude-sonnet-4-5", "--max-thinking-tokens", "3000"];
    let mut talk = Talk::start(&place, &model, &words);
    let budget = |talk: &mut Talk| {
        talk.prompt("go");
        talk.result();
        model.reply_requests().last().unwrap().body["thinking"]["budget_tokens"].clone()
    };
    assert_eq!(budget(&mut talk), 3000);
    talk.asked(&json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 2000}));
    // Only what is shown of it changes.
    talk.asked(&json!({"subtype": "set_max_thinking_tokens", "thinking_display": "summarized"}));
    assert_eq!(budget(&mut talk), 2000);
    talk.asked(
        &json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": null, "thinking_display": null}),
    );
    assert_eq!(budget(&mut talk), 3000);
    let refused =
        talk.asked(&json!({"subtype": "set_max_thinking_tokens", "thinking_display": "highlights"}));
    assert!(refused["error"].as_str().unwrap().contains("thinking_display"));
    let applied = json!({"model": "claude-opus-5-5", "effortLevel": "low"});
    talk.asked(&json!({"subtype": "apply_flag_settings", "settings": applied}));
    talk.prompt("go");
    talk.result();
    let body = model.reply_requests().last().unwrap().body.clone();
    assert_eq!(
        (&body["model"], &body["output_config"]["effort"]),
        (&json!("claude-opus-5-5"), &json!("low"))
    );
    talk.asked(&json!({"subtype": "apply_flag_settings", "settings": {"model": null, "effortLevel": null}}));
    talk.prompt("go");
    talk.result();
    let body = model.reply_requests().last().unwrap().body.clone();
    assert_eq!((&body["model"], body["output_config"].get("effort")), (&json!("claude-sonnet-4-5"), None));
    // One that is wrong takes the others with it.
    let refused = talk.asked(
        &json!({"subtype": "apply_flag_settings", "settings": {"model": "opus", "effortLevel": "most"}}),
    );
    assert!(refused["error"].as_str().unwrap().contains("effortLevel"));
    talk.prompt("go");
    talk.result();
    assert_eq!(model.reply_requests().last().unwrap().body["model"], "claude-sonnet-4-5");
    talk.end().well();
}

#[test]
fn answers_name_the_prompts_they_are_to() {
    let script = Script::new().reply([gate("said"), text("first")]).reply([text("second")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    let ids = ["0f0e0d0c-0b0a-4908-8706-05040302010a", "0f0e0d0c-0b0a-4908-8706-05040302010b"];
    let prompt = |id: &str, kind: &str| json!({"type": "user", "uuid": id, "origin": {"kind": kind}, "message": {"role": "user", "content": "go"}});
    talk.say(&prompt(ids[0], "human"));
    wait(model.wait_at_gate("said"));
    // No client speaks for anything else.
    talk.say(&prompt(ids[1], "task-notification"));
    crate::talk::until_queued(&place, 1);
    model.open("said");
    let (first, second) = (talk.result(), talk.result());
    assert_eq!((&first["user_message_uuid"], &first["queued_turn_count"]), (&json!(ids[0]), &json!(1)));
    assert_eq!((&second["user_message_uuids"], &second["queued_turn_count"]), (&json!([ids[1]]), &json!(0)));
    assert_eq!((&first["result_index"], &second["result_index"]), (&json!(0), &json!(1)));
    assert_eq!((&first["origin"], &second["origin"]), (&json!({"kind": "human"}), &Value::Null));
    let over = talk.end();
    let answers = of_type(over.well(), "assistant");
    assert_eq!(answers.iter().map(|line| &line["user_message_uuid"]).collect::<Vec<_>>(), ids);
}

#[test]
fn the_checkout_that_is_trusted_configures_a_run_elsewhere() {
    let script = Script::new().reply([tool("Bash", json!({"command": "touch made"}))]).reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    let (trusted, work) = (place.config().join("trusted"), place.work());
    for (root, name) in [(trusted.as_path(), "kept"), (work.as_path(), "brought")] {
        let skill = root.join(".claude/skills").join(name);
        std::fs::create_dir_all(&skill).unwrap();
        std::fs::write(skill.join("SKILL.md"), "---\ndescription: d\n---\nDo.").unwrap();
        let servers = json!({"mcpServers": {name: {"command": "true"}}});
        std::fs::write(root.join(".mcp.json"), servers.to_string()).unwrap();
    }
    // What the branch carries would refuse it, and run something of its own.
    let hook = |file: &str| json!([{"hooks": [{"type": "command", "command": format!("echo $CLAUDE_PROJECT_DIR > {file}")}]}]);
    let settings = json!({"permissions": {"deny": ["Bash"]}, "hooks": {"Stop": hook("branch")}});
    place.put(".claude/settings.json", &settings.to_string());
    let settings = json!({"hooks": {"Stop": hook("trusted")}});
    std::fs::write(trusted.join(".claude/settings.json"), settings.to_string()).unwrap();
    let root = trusted.to_str().unwrap();
    let words = ["--project-config-root", root, "--allowedTools", "Bash(touch made)"];
    let mut talk = Talk::start(&place, &model, &words);
    talk.prompt("go");
    assert_eq!(talk.result()["permission_denials"], json!([]));
    let init = talk.seen.iter().find(|line| line["subtype"] == "init").unwrap().clone();
    assert_eq!(init["skills"], json!(["kept"]));
    assert_eq!(init["mcp_servers"][0]["name"], "kept");
    assert_eq!(init["cwd"], place.work().to_str().unwrap());
    talk.end();
    assert!(place.has("made") && !place.has("branch"));
    let told = std::fs::read_to_string(place.work().join("trusted")).unwrap();
    assert_eq!(std::path::Path::new(told.trim()), trusted.canonicalize().unwrap());
    for bad in ["relative", "/no/such/directory"] {
        let over = Talk::start(&place, &model, &["--project-config-root", bad]).end();
        assert!(over.code == Some(1) && over.err.contains(bad), "{over:?}");
    }
}

#[test]
fn servers_that_come_with_the_first_words_are_on_no_command_line() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("hi")])));
    let mut talk = Talk::start(&place, &model, &["--await-initialize"]);
    let servers = json!({"outside": {"command": "true", "env": {"SECRET": "hush"}}});
    let reply = talk.asked(&json!({"subtype": "initialize", "mcpServers": servers}));
    assert_eq!(reply["response"]["mcp_servers_applied"], true);
    let words = std::fs::read(format!("/proc/{}/cmdline", talk.id())).unwrap();
    assert!(!String::from_utf8_lossy(&words).contains("hush"));
    let status = talk.asked(&json!({"subtype": "mcp_status"}));
    assert_eq!(status["response"]["mcpServers"][0]["name"], "outside");
    talk.prompt("go");
    talk.result();
    talk.end();
    // Without the flag nobody reads them at the start, and that is said.
    let mut talk = Talk::start(&place, &model, &[]);
    let reply = talk.asked(&json!({"subtype": "initialize", "mcpServers": servers}));
    assert_eq!(reply["response"]["mcp_servers_applied"], false);
    talk.end().well();
}

#[test]
fn settings_are_written_for_later_sessions() {
    let (place, model) = (Place::new(), model(Script::new()));
    place.put(".claude/output-styles/terse.md", "---\nname: terse\ndescription: d\n---\nBe terse.");
    let mut talk = Talk::start(&place, &model, &[]);
    let styles = talk.asked(&json!({"subtype": "reload_output_styles"}));
    assert!(styles["response"]["available_output_styles"].to_string().contains("\"terse\""), "{styles}");
    let update = |talk: &mut Talk, source: &str, settings: Value| {
        talk.asked(&json!({"subtype": "update_settings", "source": source, "settings": settings}))
    };
    assert_eq!(update(&mut talk, "localSettings", json!({"outputStyle": "terse"}))["subtype"], "success");
    assert_eq!(update(&mut talk, "userSettings", json!({"effortLevel": "low"}))["subtype"], "success");
    for (source, settings) in [
        ("localSettings", json!({"permissions": {"allow": ["Bash"]}})),
        ("userSettings", json!({"effortLevel": "most"})),
        ("policySettings", json!({"outputStyle": "terse"})),
        ("localSettings", json!({"outputStyle": null})),
        ("localSettings", json!(3)),
    ] {
        assert_eq!(update(&mut talk, source, settings.clone())["subtype"], "error", "{source} {settings}");
    }
    talk.end().well();
    let written = |file: std::path::PathBuf| -> Value {
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    };
    assert_eq!(written(place.work().join(".claude/settings.local.json")), json!({"outputStyle": "terse"}));
    assert_eq!(written(place.config().join("settings.json")), json!({"effortLevel": "low"}));
    let mut talk = Talk::start(&place, &model, &["--setting-sources", "user"]);
    assert_eq!(update(&mut talk, "localSettings", json!({"outputStyle": "x"}))["subtype"], "error");
    talk.end().well();
}

#[test]
fn a_background_command_may_be_waited_for_longer() {
    let slow = json!({"command": "while [ ! -e on ]; do sleep 0.05; done", "run_in_background": true});
    let script = Script::new().reply([tool("Bash", slow)]).reply([text("it runs")]).reply([text("it ended")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::with(&place, &model, &["--allowedTools", "Bash"], |command| {
        command.env("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", "60000");
    });
    talk.prompt("go");
    talk.result();
    talk.close();
    // Longer than it would be waited for otherwise.
    std::thread::sleep(std::time::Duration::from_secs(6));
    place.put("on", "");
    assert_eq!(talk.result()["result"], "it ended");
    talk.wait().well();
    until("nothing is left", || model.reply_requests().len() == 3);
}

#[test]
fn a_process_that_waits_for_its_session_becomes_it() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("hi")])));
    place.put("project/CLAUDE.md", "Be kind to the jars.");
    let project = place.work().join("project");
    let mut talk = Talk::start(&place, &model, &["--await-claim"]);
    let about = talk.asked(&json!({"subtype": "initialize", "systemPrompt": ["You are a baker."]}));
    assert!(about["response"]["models"].is_array() && about["response"]["pid"] == talk.id());
    // Nothing is asked of a session that is not there.
    let early = talk.asked(&json!({"subtype": "mcp_status"}));
    assert!(early["error"].as_str().unwrap().starts_with("not_claimed"));
    talk.asked(&json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"deny": ["Bash"]}}}));
    let claim = json!({
        "subtype": "claim_session", "cwd": project, "permission_mode": "plan", "title": "Jars",
        "additional_directories": [place.config()], "append_system_prompt": "Be brief.",
        "agents": {"helper": {"description": "Helps.", "prompt": "You help."}}, "include_initialize": true,
    });
    let claimed = talk.asked(&claim)["response"].clone();
    assert_eq!(claimed["cwd"], project.to_str().unwrap());
    assert!(claimed["initialize"]["agents"].to_string().contains("helper"));
    assert!(claimed["initialize"]["commands"].to_string().contains("\"compact\""));
    talk.asked(&json!({"subtype": "set_model", "model": "claude-opus-5-5"}));
    talk.prompt("go");
    assert_eq!(talk.result()["session_id"], claimed["session_id"]);
    let init = talk.seen.iter().find(|line| line["subtype"] == "init").unwrap().clone();
    assert_eq!((&init["cwd"], &init["permissionMode"]), (&claimed["cwd"], &json!("plan")));
    assert!(!init["tools"].to_string().contains("\"Bash\""), "settings that came before hold");
    talk.end().well();
    let body = &model.reply_requests()[0].body;
    assert_eq!(body["model"], "claude-opus-5-5");
    let system = body["system"].to_string();
    assert!(system.contains("You are a baker.") && system.contains("Be brief."), "{system}");
    assert!(body.to_string().contains("Be kind to the jars."));
    for (claim, why) in [
        (json!({"cwd": "/no/such/directory"}), "cwd_not_found"),
        (json!({}), "cwd_not_found"),
        (json!({"cwd": project, "permission_mode": "bypassPermissions"}), "permission_mode_not_claimable"),
        (json!({"cwd": project, "env": {"PATH": "/x"}}), "env_key_not_claimable"),
    ] {
        let mut talk = Talk::start(&place, &model, &["--await-claim"]);
        let mut request = json!({"subtype": "claim_session"});
        request.as_object_mut().unwrap().extend(claim.as_object().unwrap().clone());
        let refused = talk.asked(&request);
        assert!(refused["error"].as_str().unwrap().starts_with(why), "{refused}");
        assert_eq!(talk.wait().code, Some(1));
    }
    // Nobody wants it.
    assert_eq!(Talk::start(&place, &model, &["--await-claim"]).end().code, Some(0));
}

#[test]
fn tools_that_a_program_names_and_that_are_not_here_are_warned_of() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("hi")])));
    let mut talk = Talk::start(&place, &model, &["--tools", "Read,LSP,KillShell"]);
    talk.prompt("go");
    talk.result();
    let init = talk.seen.iter().find(|line| line["subtype"] == "init").unwrap().clone();
    assert_eq!(init["tools"], json!(["Read", "TaskStop"]));
    let over = talk.end();
    assert_eq!(
        (over.code, over.err.as_str()),
        (Some(0), "warning: --tools names tools there are not: LSP\n")
    );
}
