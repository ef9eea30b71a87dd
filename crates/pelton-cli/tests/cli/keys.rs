//! Settings, key by key: that each has the effect that is said of it, seen from outside. Those about the model, answers and rules are
//! in `manner.rs`, `settings.rs` and `permissions.rs`.

use pelton_testkit::{Script, ScriptedModel, Step, text, tool};
use serde_json::{Value, json};

use crate::frames::STREAM;
use crate::place::{Commanded, Place, Ran, model};

fn says_yes() -> ScriptedModel {
    model(Script::new().step(Step::reply([text("Yes.")]).always()))
}

fn users(place: &Place, settings: &Value) {
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
}

/// What the model was asked first, with these settings of the user's.
fn asked(place: &Place, settings: &Value, words: &[&str]) -> String {
    users(place, settings);
    let model = says_yes();
    let ran = place.task(&model, words.iter().copied()).run();
    assert_eq!(ran.code, Some(0), "{settings}: {ran:?}");
    model.requests()[0].body.to_string()
}

/// A run in which the model makes this call first.
fn called(place: &Place, settings: &Value, call: (&str, Value), words: &[&str]) -> (Ran, ScriptedModel) {
    users(place, settings);
    let script = Script::new().reply([tool(call.0, call.1)]).step(Step::reply([text("Done.")]).always());
    let model = model(script);
    let ran = place.task(&model, ["go"].into_iter().chain(words.iter().copied()).chain(STREAM)).run();
    assert_eq!(ran.code, Some(0), "{settings}: {ran:?}");
    (ran, model)
}

#[test]
fn what_the_model_is_told_goes_by_the_settings() {
    let place = Place::new();
    place.put("CLAUDE.md", "words of CLAUDE");
    place.put("AGENTS.md", "words of AGENTS");
    place.put(".claude/skills/x/SKILL.md", &format!("---\ndescription: {}\n---\nDo.\n", "long ".repeat(50)));
    place
        .shell("git init -q . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first-of-all")
        .run();
    let notes = place.home().join("my-notes").display().to_string();
    for (settings, told, not_told) in [
        (
            json!({}),
            vec!["words of CLAUDE", "first-of-all", "MEMORY.md", "- x: long long long"],
            vec!["words of AGENTS"],
        ),
        (json!({"claudeMdExcludes": ["**/CLAUDE.md"]}), vec![], vec!["words of CLAUDE"]),
        (json!({"agentsMd": "both"}), vec!["words of CLAUDE", "words of AGENTS"], vec![]),
        (json!({"autoMemoryEnabled": false}), vec![], vec!["MEMORY.md"]),
        (json!({"autoMemoryDirectory": notes}), vec![notes.as_str()], vec![]),
        (json!({"includeGitInstructions": false}), vec![], vec!["first-of-all"]),
        (json!({"skillListingBudgetFraction": 0}), vec!["- x"], vec!["- x: long"]),
        (json!({"skillListingMaxDescChars": 9}), vec!["- x: long long"], vec!["- x: long long long"]),
    ] {
        let asked = asked(&place, &settings, &["hi"]);
        for words in told {
            assert!(asked.contains(words), "{settings}: {words} is missing");
        }
        for words in not_told {
            assert!(!asked.contains(words), "{settings}: {words} is there");
        }
    }
    std::fs::remove_file(place.work().join("CLAUDE.md")).unwrap();
    assert!(asked(&place, &json!({}), &["hi"]).contains("words of AGENTS"));
    assert!(!asked(&place, &json!({"agentsMd": "never"}), &["hi"]).contains("words of AGENTS"));
    // Only an administrator speaks to everybody's model.
    let managed = json!({"claudeMd": "words of the administrator"}).to_string();
    assert!(
        asked(&place, &json!({}), &["hi", "--managed-settings", &managed])
            .contains("words of the administrator")
    );
}

#[test]
fn commands_in_skills_and_histories_of_files_go_by_the_settings() {
    let place = Place::new();
    place.put(
        ".claude/skills/x/SKILL.md",
        "---\ndescription: d\nallowed-tools: Bash(echo *)\n---\nIt is !`echo $((40 + 2))`.\n",
    );
    assert!(asked(&place, &json!({}), &["/x"]).contains("It is 42."));
    assert!(!asked(&place, &json!({"disableSkillShellExecution": true}), &["/x"]).contains("It is 42."));
    let writes = || ("Write", json!({"file_path": "n.txt", "content": "x"}));
    let kept = |settings: Value| {
        let _ = std::fs::remove_dir_all(place.config().join("file-history"));
        called(&place, &settings, writes(), &["--permission-mode", "acceptEdits"]);
        std::fs::remove_file(place.work().join("n.txt")).unwrap();
        std::fs::read_dir(place.config().join("file-history")).map_or(0, Iterator::count) > 0
    };
    assert!(kept(json!({})) && !kept(json!({"fileCheckpointingEnabled": false})));
}

#[test]
fn which_servers_of_a_project_are_started_goes_by_the_settings() {
    let program = json!(["sh", "-c", "touch served; cat > /dev/null"]);
    let server =
        json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", "touch served; cat > /dev/null"]}}});
    for (settings, managed, expected) in [
        (json!({}), json!({}), true),
        (json!({"disabledMcpjsonServers": ["s"]}), json!({}), false),
        (json!({"deniedMcpServers": [{"serverName": "s"}]}), json!({}), false),
        (json!({"deniedMcpServers": [{"serverCommand": program}]}), json!({}), false),
        (json!({"allowedMcpServers": [{"serverName": "other"}]}), json!({}), false),
        (json!({"allowedMcpServers": [{"serverCommand": program}]}), json!({}), true),
        (
            json!({"allowedMcpServers": [{"serverName": "s"}]}),
            json!({"allowManagedMcpServersOnly": true}),
            false,
        ),
        (
            json!({}),
            json!({"allowManagedMcpServersOnly": true, "allowedMcpServers": [{"serverName": "s"}]}),
            true,
        ),
    ] {
        let place = Place::new();
        place.put(".mcp.json", &server.to_string());
        let call = (
            "Bash",
            json!({"command": "while [ ! -e served ] && [ $((n = n + 1)) -lt 40 ]; do sleep 0.02; done"}),
        );
        called(
            &place,
            &settings,
            call,
            &["--allowedTools", "Bash", "--managed-settings", &managed.to_string()],
        );
        assert_eq!(place.has("served"), expected, "{settings} {managed}");
    }
}

#[test]
fn how_checkouts_of_agents_are_made_goes_by_the_settings() {
    let place = Place::new();
    for name in ["top.txt", "kept/a.txt", "left/b.txt"] {
        place.put(name, "x");
    }
    place.put(".gitignore", "node_modules\n.claude/\n");
    place.put("node_modules/m.js", "x");
    let git = "git -c user.name=a -c user.email=a@example.org";
    place.shell(&format!("git init -q . && git add . && {git} commit -q -m one")).run();
    let seen = |settings: Value| {
        users(&place, &settings);
        let order = json!({"subagent_type": "general-purpose", "description": "d", "prompt": "p", "isolation": "worktree"});
        let script = Script::new()
            .reply([tool("Agent", order)])
            .reply([tool("Bash", json!({"command": "echo kept/* left/* node_modules/*"}))])
            .step(Step::reply([text("Done.")]).always());
        let model = model(script);
        let ran = place.task(&model, ["go", "--allowedTools", "Agent", "Bash(echo *)"]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        model.requests()[2].body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
    };
    let usual = seen(json!({}));
    assert!(usual.contains("kept/a.txt left/b.txt node_modules/*"), "{usual}");
    let ours = seen(
        json!({"worktree": {"baseRef": "head", "symlinkDirectories": ["node_modules"], "sparsePaths": ["kept"]}}),
    );
    assert!(ours.contains("kept/a.txt left/* node_modules/m.js"), "{ours}");
}

#[test]
fn where_plugins_may_come_from_goes_by_the_settings() {
    let place = Place::new();
    let shop = place.home().join("shop");
    std::fs::create_dir_all(shop.join("kit/hooks")).unwrap();
    std::fs::create_dir_all(shop.join(".claude-plugin")).unwrap();
    let hooks =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}});
    std::fs::write(shop.join("kit/hooks/hooks.json"), hooks.to_string()).unwrap();
    let list = json!({"name": "shop", "plugins": [{"name": "kit", "source": "./kit"}]});
    std::fs::write(shop.join(".claude-plugin/marketplace.json"), list.to_string()).unwrap();
    let source = json!({"source": "directory", "path": shop});
    for (terms, expected) in [
        (json!({}), true),
        (json!({"blockedMarketplaces": [source]}), false),
        (json!({"strictKnownMarketplaces": []}), false),
        (json!({"strictKnownMarketplaces": [source]}), true),
    ] {
        let mut settings = json!({"enabledPlugins": {"kit@shop": true}, "extraKnownMarketplaces": {"shop": {"source": source}}});
        settings.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let _ = std::fs::remove_file(place.work().join("hooked"));
        asked(&place, &settings, &["hi"]);
        assert_eq!(place.has("hooked"), expected, "{terms}");
    }
}

#[test]
fn how_long_agents_prompts_are_kept_goes_by_the_settings() {
    let place = Place::new();
    for (settings, expected) in [
        (json!({}), [false, false]),
        (json!({"promptCacheTtl": "1h"}), [true, false]),
        (json!({"subagentPromptCacheTtl": "1h"}), [false, true]),
    ] {
        let order = ("Agent", json!({"subagent_type": "general-purpose", "description": "d", "prompt": "p"}));
        let (_, model) = called(&place, &settings, order, &["--allowedTools", "Agent"]);
        let asked = model.requests();
        let is_kept = |nth: usize| asked[nth].body.to_string().contains(r#""ttl":"1h""#);
        assert_eq!([is_kept(0), is_kept(1)], expected, "{settings}");
    }
}

/// A server that nobody can speak to is named where what there is is stated, with what would help.
#[test]
fn servers_that_nobody_can_speak_to_are_named_in_init() {
    let place = Place::new();
    place.put(
        ".mcp.json",
        r#"{"mcpServers": {"mute": {"url": "http://127.0.0.1:1/"}, "bad name": {"command": "x"}}}"#,
    );
    let ran = place.task(&says_yes(), ["hi"].into_iter().chain(STREAM)).run();
    let errors = ran.frames()[0]["mcp_server_errors"].clone();
    let told: Vec<(&str, bool)> = errors
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["name"].as_str().unwrap(), !error["error"].as_str().unwrap().is_empty()))
        .collect();
    assert_eq!(told, [("mute", true), ("bad name", true)], "{errors}");
}

/// Several skills in front of one prompt are followed together; how hard the model tries, and who is asked, holds for their turn.
#[test]
fn skills_that_are_stacked_are_followed_together_and_their_terms_hold_for_the_turn() {
    let place = Place::new();
    place.put(".claude/skills/one/SKILL.md", "---\ndescription: d\n---\nFIRST for $ARGUMENTS");
    place.put(
        ".claude/skills/two/SKILL.md",
        "---\ndescription: d\neffort: max\nmodel: claude-opus-4-6\n---\nSECOND with $0 and $1",
    );
    let model = says_yes();
    let mut talk = crate::talk::Talk::start(&place, &model, &["--effort", "low"]);
    for prompt in ["/one /two a b", "And now?"] {
        talk.prompt(prompt);
        talk.result();
    }
    talk.end();
    let asked = model.requests();
    let last = asked[0].body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(last.contains("FIRST for") && last.contains("SECOND with a and b"), "{last}");
    assert_eq!(
        (&asked[0].body["model"], &asked[0].body["output_config"]["effort"]),
        (&json!("claude-opus-4-6"), &json!("max"))
    );
    assert_eq!(asked[1].body["output_config"]["effort"], "low");
    assert_ne!(asked[1].body["model"], "claude-opus-4-6");
}

/// Skills that come, change and go while a session runs are called as they are then.
#[test]
fn skills_are_called_as_they_are_when_they_are_called() {
    let place = Place::new();
    let model = says_yes();
    let mut talk = crate::talk::Talk::start(&place, &model, &[]);
    let mut answer = |prompt: &str| {
        talk.prompt(prompt);
        talk.result()["result"].as_str().unwrap().to_owned()
    };
    assert!(answer("/fresh").contains("Unknown command"));
    place.put(".claude/skills/fresh/SKILL.md", "---\ndescription: d\n---\nEARLIER WORDS");
    assert_eq!(answer("/fresh"), "Yes.");
    place.put(".claude/skills/fresh/SKILL.md", "---\ndescription: d\n---\nLATER WORDS");
    assert_eq!(answer("/fresh"), "Yes.");
    std::fs::remove_dir_all(place.work().join(".claude/skills/fresh")).unwrap();
    assert!(answer("/fresh").contains("Unknown command"));
    talk.end();
    let last = |nth: usize| {
        let body = model.requests()[nth].body.clone();
        body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
    };
    assert!(last(0).contains("EARLIER WORDS") && last(1).contains("LATER WORDS"));
    assert!(model.requests()[0].body.to_string().contains("- fresh: d"), "the model is told of it, too");
}
