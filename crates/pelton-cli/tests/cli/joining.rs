//! What joins a session that runs, and what is said in front of its first prompt.

use pelton_testkit::{Script, ScriptedModel, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model, until};
use crate::talk::Talk;

/// A plugin with one of each.
fn plugin(place: &Place) -> String {
    place.put("kit/.claude-plugin/plugin.json", r#"{"name": "kit", "version": "1.2.3"}"#);
    place.put("kit/agents/helper.md", "---\nname: helper\ndescription: helps\n---\nYou help.");
    place.put("kit/commands/look.md", "Look at it.");
    let hook = json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo the plugin heard it"}]}]}});
    place.put("kit/hooks/hooks.json", &hook.to_string());
    place.work().join("kit").to_str().unwrap().to_owned()
}

fn bodies_of(model: &ScriptedModel) -> Vec<Value> {
    model.requests().iter().map(|request| Value::clone(&request.body)).collect()
}

fn names(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[test]
fn a_plugin_joins_with_all_it_brings_and_nothing_in_front_changes() {
    let place = Place::new();
    let calls_it = tool("Agent", json!({"description": "d", "prompt": "p", "subagent_type": "kit:helper"}));
    let script =
        Script::new().reply([text("one")]).reply([calls_it]).reply([text("helped")]).reply([text("two")]);
    let model = model(script);
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("hello");
    talk.result();
    let kit = plugin(&place);
    let add =
        |path: &str| json!({"subtype": "reload_plugins", "add_plugins": [{"type": "local", "path": path}]});
    for (wrong, why) in [
        (json!({"subtype": "reload_plugins", "add_plugins": 3}), "is no list"),
        (add("kit"), "no whole path"),
        (add("/no/such/plugin"), "cannot be read"),
    ] {
        let answer = talk.asked(&wrong);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(why)), "{answer}");
    }
    let joined = talk.asked(&add(&kit))["response"].clone();
    assert_eq!((names(&joined["plugins"]), &joined["plugins"][0]["version"]), (vec!["kit"], &json!("1.2.3")));
    assert!(
        names(&joined["commands"]).contains(&"kit:look") && names(&joined["agents"]).contains(&"kit:helper")
    );
    assert!(talk.asked(&add(&kit))["error"].to_string().contains("is there already"));
    talk.prompt("use it");
    assert_eq!(talk.result()["result"], "two");
    talk.end().well();
    let bodies = bodies_of(&model);
    let told = bodies[1]["messages"].to_string();
    assert!(told.contains("the plugin heard it") && told.contains("kit:helper: helps"), "{told}");
    assert_eq!(bodies[0]["tools"], bodies[1]["tools"]);
    assert!(bodies[2]["system"].to_string().contains("You help."));
}

#[test]
fn a_session_at_work_is_not_reloaded_where_that_is_said() {
    let (place, model) = (Place::new(), model(Script::new().reply([gate("go"), text("one")])));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("first");
    talk.system("init");
    let refused = talk.asked(&json!({"subtype": "reload_plugins", "refuse_if_busy": true}));
    assert_eq!(
        (&refused["subtype"], &refused["error_code"]),
        (&json!("error"), &json!("reload_plugins_busy"))
    );
    model.open("go");
    assert_eq!(talk.result()["result"], "one");
    talk.end().well();
}

#[test]
fn agents_that_files_describe_come_and_go_between_prompts() {
    let place = Place::new();
    let model = model(Script::new().reply([text("one")]).reply([text("two")]).reply([text("three")]));
    let mut talk = Talk::start(&place, &model, &[]);
    let there = |talk: &Talk| {
        let init = talk.seen.iter().rfind(|line| line["subtype"] == "init").unwrap();
        init["agents"].as_array().unwrap().contains(&json!("late"))
    };
    talk.prompt("first");
    talk.result();
    assert!(!there(&talk));
    place.put(".claude/agents/late.md", "---\nname: late\ndescription: came late\n---\nYou are late.");
    talk.prompt("second");
    talk.result();
    assert!(there(&talk));
    std::fs::remove_file(place.work().join(".claude/agents/late.md")).unwrap();
    talk.prompt("third");
    talk.result();
    assert!(!there(&talk));
    talk.end().well();
    let bodies = bodies_of(&model);
    assert!(bodies[1]["messages"].to_string().contains("late: came late"));
    assert_eq!((&bodies[0]["tools"], &bodies[0]["tools"]), (&bodies[1]["tools"], &bodies[2]["tools"]));
}

#[test]
fn a_hook_of_the_start_speaks_first_and_brings_skills() {
    let place = Place::new();
    let answer = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "initialUserMessage": "First of all.", "reloadSkills": true}});
    place.put("answer.json", &answer.to_string());
    let skill = "mkdir -p .claude/skills/fresh; printf -- '---\\ndescription: came by a hook\\n---\\nDo.' > .claude/skills/fresh/SKILL.md";
    let hook = format!("{skill}; cat answer.json");
    let settings = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": hook}]}]}});
    let model = model(Script::new().reply([text("one")]).reply([text("two")]));
    let mut talk = Talk::start(&place, &model, &["--settings", &settings.to_string()]);
    talk.prompt("hello");
    talk.result();
    talk.prompt("again");
    talk.result();
    let init = talk.seen.iter().find(|line| line["subtype"] == "init").unwrap().clone();
    talk.end().well();
    assert_eq!(init["skills"], json!(["fresh"]));
    let texts = |body: &Value| {
        let content = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let texts =
            content.as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    let bodies = bodies_of(&model);
    let first = texts(&bodies[0]);
    assert_eq!(first[first.len() - 2..], ["First of all.", "hello"]);
    assert_eq!(texts(&bodies[1]).last().map(String::as_str), Some("again"));
    assert!(!texts(&bodies[1]).contains(&"First of all.".to_owned()));
}

#[test]
fn the_hooks_there_are_are_listed_with_whose_they_are() {
    let place = Place::new();
    let settings = json!({"hooks": {
        "PreToolUse": [{"matcher": "^W", "hooks": [{"type": "command", "command": "echo \u{1b}[2J", "timeout": 5, "statusMessage": "checks"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "true", "async": true}]}]}});
    place.put(".claude/settings.json", &settings.to_string());
    let model = model(Script::new());
    let mut talk = Talk::start(&place, &model, &[]);
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]});
    talk.asked(&json!({"subtype": "initialize", "hooks": hooks}));
    let listing = talk.asked(&json!({"subtype": "get_hooks_listing"}))["response"].clone();
    talk.end().well();
    assert_eq!(names(&listing["events"]), ["PreToolUse", "Stop"]);
    assert_eq!(
        (&listing["events"][0]["hookCount"], &listing["events"][1]["supportsMatcher"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(listing["eventCatalog"].as_array().unwrap().len(), 33);
    let rows = listing["hooks"].as_array().unwrap();
    let row = |at: usize, name: &str| rows[at][name].clone();
    assert_eq!(
        (row(0, "source"), row(0, "matcher"), row(0, "timeout")),
        (json!("projectSettings"), json!("^W"), json!(5.0))
    );
    assert_eq!((row(0, "displayText"), row(0, "commandText")), (json!("checks"), json!("echo \\u{1b}[2J")));
    assert_eq!(
        (row(1, "source"), row(1, "type"), row(1, "matcher")),
        (json!("sessionHook"), json!("callback"), json!("Bash"))
    );
    assert_eq!(row(2, "runsInBackground"), true);
    assert_eq!(listing["policy"]["managedOnly"], false);
}

#[test]
fn only_plugins_bring_what_the_administrator_leaves_to_them() {
    let place = Place::new();
    let kit = plugin(&place);
    place.put(".claude/agents/own.md", "---\nname: own\ndescription: d\n---\nP");
    place.put(".claude/skills/own/SKILL.md", "---\ndescription: d\n---\nDo.");
    place.put(".mcp.json", r#"{"mcpServers": {"own": {"command": "/no/such/program"}}}"#);
    let settings = json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo the project heard it"}]}]}});
    place.put(".claude/settings.json", &settings.to_string());
    for (managed, own) in [(json!(true), false), (json!(false), true)] {
        let model = model(Script::new().reply([text("done")]));
        let managed = json!({"strictPluginOnlyCustomization": managed}).to_string();
        let mut talk = Talk::start(&place, &model, &["--plugin-dir", &kit, "--managed-settings", &managed]);
        talk.prompt("hello");
        talk.result();
        let init = talk.seen.iter().find(|line| line["subtype"] == "init").unwrap().clone();
        talk.end();
        let has = |list: &str, name: &str| {
            init[list].as_array().unwrap().iter().any(|row| row == name || row["name"] == name)
        };
        assert_eq!(has("agents", "own"), own, "{init}");
        assert_eq!(has("skills", "own"), own);
        assert_eq!(has("mcp_servers", "own"), own);
        assert!(has("agents", "kit:helper") && has("slash_commands", "kit:look"));
        let told = bodies_of(&model)[0]["messages"].to_string();
        assert_eq!(told.contains("the project heard it"), own);
        assert!(told.contains("the plugin heard it"));
    }
}

#[test]
fn files_are_suggested_by_whom_the_user_asks() {
    let place = Place::new();
    let settings = json!({"fileSuggestion": {"type": "command", "command": "cat > asked.json; echo src/one.rs; echo; echo src/two.rs"}});
    let model = model(Script::new());
    let mut talk = Talk::start(&place, &model, &["--settings", &settings.to_string()]);
    let found = talk.asked(&json!({"subtype": "file_suggestions", "query": "o\"ne"}))["response"].clone();
    talk.end().well();
    assert_eq!(found, json!({"suggestions": [{"path": "src/one.rs"}, {"path": "src/two.rs"}]}));
    assert_eq!(place.read("asked.json"), r#"{"query":"o\"ne"}"#);
    // A directory does not choose what runs.
    place.put(".claude/settings.json", &settings.to_string());
    let mut talk = Talk::start(&place, &model, &[]);
    let found = talk.asked(&json!({"subtype": "file_suggestions", "query": "asked"}))["response"].clone();
    let over = talk.end();
    assert!(over.code == Some(0) && over.err.contains("not taken from a project"), "{over:?}");
    assert_eq!(found, json!({"suggestions": [{"path": "asked.json"}]}));
}

#[test]
fn a_safe_run_keeps_rules_and_leaves_the_rest_out() {
    let place = Place::new();
    place.put("CLAUDE.md", "The project says: be loud.");
    place.put(".claude/skills/own/SKILL.md", "---\ndescription: d\n---\nDo.");
    place.put(".claude/agents/own.md", "---\nname: own\ndescription: d\n---\nP");
    let settings = json!({
        "permissions": {"deny": ["Bash(touch *)"]},
        "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo the project heard it"}]}]}});
    place.put(".claude/settings.json", &settings.to_string());
    for flag in [true, false] {
        let script =
            Script::new().reply([tool("Bash", json!({"command": "touch made"}))]).reply([text("done")]);
        let model = model(script);
        let flags: &[&str] = if flag {
            &["--safe-mode", "--dangerously-skip-permissions"]
        } else {
            &["--dangerously-skip-permissions"]
        };
        let mut talk = Talk::with(&place, &model, flags, |command| {
            command.env("IS_SANDBOX", "1");
            if !flag {
                command.env("CLAUDE_CODE_SAFE_MODE", "1");
            }
        });
        talk.prompt("hello");
        assert_eq!(talk.result()["permission_denials"][0]["tool_name"], "Bash");
        let init = talk.seen.iter().find(|line| line["subtype"] == "init").unwrap().clone();
        talk.end();
        assert_eq!(init["skills"], json!([]));
        assert!(!init["agents"].to_string().contains("own") && init["tools"].to_string().contains("Grep"));
        let told = bodies_of(&model)[0]["messages"].to_string();
        assert!(!told.contains("be loud") && !told.contains("heard it"), "{told}");
        assert!(!place.has("made"));
    }
}

#[test]
fn what_agents_are_told_besides_and_what_one_says_first() {
    let place = Place::new();
    let starts = tool("Agent", json!({"description": "d", "prompt": "p", "subagent_type": "worker"}));
    let model = model(
        Script::new().reply([starts]).reply([text("worked")]).reply([text("done")]).reply([text("more")]),
    );
    let agents = json!({
        "chief": {"description": "leads", "prompt": "You lead.", "initialPrompt": "Take stock.", "criticalSystemReminder_EXPERIMENTAL": "Never shout."},
        "worker": {"description": "works", "prompt": "You work."}});
    place.put(
        ".claude/agents/worker.md",
        "---\nname: worker\ndescription: from a file\n---\nYou are not meant.",
    );
    let agents = agents.to_string();
    let flags = ["--agents", &agents, "--agent", "chief", "--append-subagent-system-prompt", "Be brief."];
    let mut talk = Talk::start(&place, &model, &flags);
    talk.prompt("go");
    talk.result();
    talk.prompt("again");
    talk.result();
    talk.end().well();
    let bodies = bodies_of(&model);
    let system = |at: usize| bodies[at]["system"].to_string();
    assert!(
        system(0).contains("You lead.")
            && system(0).contains("Never shout.")
            && !system(0).contains("Be brief.")
    );
    assert!(system(1).contains("You work.") && system(1).contains("Be brief."), "{}", system(1));
    assert!(bodies[0]["messages"].to_string().contains(r"Take stock.\n\ngo"));
    assert!(!bodies[3]["messages"].as_array().unwrap().last().unwrap().to_string().contains("Take stock."));
}

#[test]
fn options_of_other_programs_are_ignored_with_a_word() {
    let place = Place::new();
    let model = model(Script::new().reply([text("done")]));
    let mut command = place.pelton(["-p", "hi", "--chrome", "--teammate-mode=auto", "--ide"]);
    let ran = command.asks(&model).output().unwrap();
    let err = String::from_utf8(ran.stderr).unwrap();
    assert_eq!((ran.status.code(), err.lines().count()), (Some(0), 1), "{err}");
    assert!(err.contains("--ide, --chrome, --teammate-mode means nothing here"), "{err}");
    for dangerous in [
        "--worktree=x",
        "--worktree",
        "-w",
        "--plugin-url=http://x/",
        "--sdk-url=ws://x",
        "--cloud",
        "--exec=x",
    ] {
        let ran = place.pelton(["-p", "hi", dangerous]).asks(&model).output().unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert_eq!((ran.status.code(), err.lines().count()), (Some(1), 1), "{dangerous}: {err}");
    }
}

#[test]
fn a_session_that_waits_for_nothing_ends_by_itself_where_that_is_wanted() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")]).reply([text("two")])));
    let mut talk = Talk::with(&place, &model, &[], |command| {
        command.env("CLAUDE_CODE_EXIT_AFTER_STOP_DELAY", "300").env("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1");
    });
    place.put("note.txt", "what nobody asked for");
    talk.prompt("look at @note.txt");
    talk.result();
    // The client says nothing more, and keeps its end open.
    until("it has gone", || !std::path::Path::new("/proc").join(talk.id().to_string()).join("exe").exists());
    assert!(!bodies_of(&model)[0]["messages"].to_string().contains("what nobody asked for"));
    talk.end().well();
}

#[test]
fn a_directory_joins_and_says_what_it_has_to_say() {
    let place = Place::new();
    place.put("one/CLAUDE.md", "Tabs, not spaces.");
    place.put("one/.claude/skills/knot/SKILL.md", "---\ndescription: ties a knot\n---\nTie.");
    place.put("two/CLAUDE.md", "Spaces, not tabs.");
    place.put("two/file", "x");
    let heard = "cat >> heard.jsonl";
    let settings = json!({"hooks": {"DirectoryAdded": [{"hooks": [{"type": "command", "command": heard}]}]}});
    let model = model(Script::new().reply([text("one")]).reply([text("two")]).reply([text("three")]));
    let mut talk = Talk::start(&place, &model, &["--settings", &settings.to_string()]);
    talk.prompt("hello");
    talk.result();
    let register = |dir: &str, says: bool| json!({"subtype": "register_repo_root", "directory": dir, "reload_claude_md": says, "reload_skills": says});
    let outside = Place::new();
    let outside = outside.work().to_str().unwrap().to_owned();
    for (wrong, why) in [
        (json!({"subtype": "register_repo_root"}), "directory is missing"),
        (register("nowhere", true), "cannot be added"),
        (register("two/file", true), "is no directory"),
        (register(".", true), "already"),
        (register(&outside, true), "not below"),
        (register("one/../..", true), "not below"),
    ] {
        let answer = talk.asked(&wrong);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(why)), "{answer}");
    }
    assert_eq!(talk.asked(&register("one", true))["subtype"], "success");
    assert_eq!(talk.asked(&register("two", false))["subtype"], "success");
    assert!(talk.asked(&register("one", true))["error"].to_string().contains("already"));
    let rules = talk.asked(&json!({"subtype": "list_permission_rules"}))["response"].clone();
    assert!(rules["state"]["workspaceDirectories"].to_string().contains("/one"), "{rules}");
    talk.prompt("second");
    talk.result();
    talk.prompt("third");
    talk.result();
    talk.end().well();
    let bodies = bodies_of(&model);
    let (before, after) = (bodies[0]["messages"].to_string(), bodies[2]["messages"].to_string());
    assert!(!before.contains("Tabs, not spaces.") && !before.contains("ties a knot"), "{before}");
    assert_eq!(after.matches("Tabs, not spaces.").count(), 1, "{after}");
    assert!(after.contains("ties a knot") && !after.contains("Spaces, not tabs."), "{after}");
    let heard = std::fs::read_to_string(place.work().join("heard.jsonl")).unwrap();
    let heard: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(heard.len(), 2);
    assert!(heard.iter().all(|input| input["source"] == "register_repo_root"), "{heard:?}");
}

#[test]
fn a_session_gets_a_name_by_a_model_and_a_colour() {
    let place = Place::new();
    let named =
        Script::new().reply([text("one")]).reply([text("\"Mend the gate\"\n")]).reply([text("Paint it")]);
    let model = model(named);
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("hello");
    talk.result();
    let title = |keeps: bool| json!({"subtype": "generate_session_title", "description": "the gate is broken", "persist": keeps});
    assert_eq!(talk.asked(&title(true))["response"], json!({"title": "Mend the gate"}));
    assert_eq!(talk.asked(&title(false))["response"], json!({"title": "Paint it"}));
    assert!(
        talk.asked(&json!({"subtype": "generate_session_title"}))["error"].to_string().contains("missing")
    );
    assert!(
        talk.asked(&json!({"subtype": "set_color", "color": "plaid"}))["error"].to_string().contains("cyan")
    );
    assert_eq!(talk.asked(&json!({"subtype": "set_color", "color": "red"}))["subtype"], "success");
    talk.end().well();
    let asked = bodies_of(&model)[1]["messages"].to_string();
    assert!(asked.contains("the gate is broken") && !asked.contains("hello"), "{asked}");
    let listed = || {
        let listed = place.pelton(["sessions", "list", "--json"]).run();
        serde_json::from_str::<Value>(listed.well()).unwrap()[0].clone()
    };
    assert_eq!((&listed()["title"], &listed()["color"]), (&json!("Mend the gate"), &json!("red")));
    for (said, code) in [("/color cyan", 0), ("/color plaid", 1), ("/color", 1)] {
        assert_eq!(place.task(&model, [said, "--continue"]).run().code, Some(code), "{said}");
    }
    assert_eq!(listed()["color"], "cyan");
    place.task(&model, ["/color default", "--continue"]).run().well();
    assert_eq!(listed()["color"], Value::Null);
}

#[test]
fn a_prompt_on_the_command_line_is_asked_first() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("one")]).reply([text("two")])));
    let mut talk = Talk::start(&place, &model, &["from the command line"]);
    assert_eq!(talk.result()["result"], "one");
    talk.prompt("from the pipe");
    assert_eq!(talk.result()["result"], "two");
    talk.end().well();
    let bodies = bodies_of(&model);
    assert!(bodies[0]["messages"].to_string().contains("from the command line"));
}

#[test]
fn a_summary_that_is_asked_for_is_told_in_the_order_clients_expect() {
    let long = "They counted jars. ".repeat(1_000);
    let script = Script::new().reply([text(long.clone())]).reply([text(long)]).reply([text("Jars.")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    for prompt in ["one", "two"] {
        talk.prompt(prompt);
        talk.result();
    }
    let before = talk.seen.len();
    talk.prompt("/compact briefly");
    let result = talk.result();
    assert_eq!((&result["num_turns"], &result["is_error"]), (&json!(0), &json!(false)));
    let told: Vec<String> = talk.seen[before..]
        .iter()
        .map(|line| {
            let mark = ["isSynthetic", "isReplay"].iter().find(|mark| line[**mark] == true).unwrap_or(&"");
            let kind = line["subtype"].as_str().or(line["type"].as_str()).unwrap_or_default();
            format!("{kind}{mark}")
        })
        .collect();
    assert_eq!(
        told,
        ["status", "status", "init", "compact_boundary", "userisSynthetic", "userisReplay", "success"]
    );
    let said = talk.seen.iter().rfind(|line| line["isReplay"] == true).unwrap()["message"]["content"].clone();
    assert!(said.as_str().is_some_and(|said| said.starts_with("<local-command-stdout>")), "{said}");
    talk.end().well();
}

#[test]
fn a_client_that_leaves_while_a_request_is_worked_on_is_answered_and_not_waited_for() {
    let (place, model) = (Place::new(), model(Script::new()));
    let slow = json!({"fileSuggestion": {"type": "command", "command": "sleep 1; echo found.txt"}});
    let mut talk = Talk::start(&place, &model, &["--settings", &slow.to_string()]);
    talk.asked(&json!({"subtype": "initialize"}));
    let id = talk.ask(&json!({"subtype": "file_suggestions", "query": "f"}));
    let over = talk.end();
    let seen = over.well();
    let answered = seen.iter().find(|line| line["response"]["request_id"] == id.as_str()).unwrap();
    assert!(answered.to_string().contains("found.txt"), "{answered}");
}
