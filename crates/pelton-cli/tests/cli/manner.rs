//! Settings about how the model works and answers, and which may be asked: seen in what the model is sent.

use pelton_testkit::strict::{Rule, Strictness};
use pelton_testkit::{Script, ScriptedModel, Step, text, tool};
use serde_json::{Value, json};

use crate::frames::STREAM;
use crate::place::{Commanded, Place, Ran, model, of_type};
use crate::talk::Talk;

fn hello() -> ScriptedModel {
    let script = Script::new().step(Step::reply([text("Hello.")]).always());
    model(script.strict(Strictness::default().relax(Rule::KnownModel)))
}

/// Runs a prompt with these settings on the command line.
fn with(place: &Place, settings: &Value, words: &[&str]) -> (Ran, ScriptedModel) {
    let model = hello();
    let settings = settings.to_string();
    let words = ["hi", "--settings", &settings].into_iter().chain(words.iter().copied()).chain(STREAM);
    let ran = place.task(&model, words).run();
    (ran, model)
}

fn system(model: &ScriptedModel) -> String {
    model.requests()[0].body["system"].to_string()
}

fn init(ran: &Ran) -> Value {
    let frames = ran.frames();
    of_type(&frames, "system").into_iter().find(|frame| frame["subtype"] == "init").unwrap().clone()
}

#[test]
fn an_output_style_is_told_in_the_place_of_words_about_answers() {
    let place = Place::new();
    let (ran, model) = with(&place, &json!({}), &[]);
    assert_eq!(init(&ran)["output_style"], "default");
    assert!(system(&model).contains("# How to answer\\n"));

    let (ran, model) = with(&place, &json!({"outputStyle": "explanatory"}), &[]);
    assert_eq!(init(&ran)["output_style"], "Explanatory");
    assert!(system(&model).contains("Insight:") && system(&model).contains("# How to work on code"));
    assert!(!system(&model).contains("# How to answer\\n"));

    // One of the project, one of the user with the same name, and one that there is not.
    place.put(".claude/output-styles/p.md", "---\nname: Poet\n---\nAnswer in verse.");
    std::fs::create_dir_all(place.config().join("output-styles")).unwrap();
    std::fs::write(place.config().join("output-styles/poet.md"), "Answer in prose.").unwrap();
    let (ran, model) = with(&place, &json!({"outputStyle": "Poet"}), &[]);
    assert_eq!((init(&ran)["output_style"].clone(), ran.err.as_str()), (json!("Poet"), ""));
    assert!(system(&model).contains("Answer in verse.") && !system(&model).contains("prose"));
    assert!(!system(&model).contains("# How to work on code"), "unless the style keeps it");
    let (ran, model) = with(&place, &json!({"outputStyle": "Poet"}), &["--setting-sources", "user"]);
    assert!(system(&model).contains("prose"), "{ran:?}");
    let (ran, model) = with(&place, &json!({"outputStyle": "Mime"}), &[]);
    assert!(ran.err.contains("no output style 'Mime'") && ran.err.contains("Poet"), "{ran:?}");
    assert!(system(&model).contains("# How to answer\\n"));
}

#[test]
fn a_plugin_brings_output_styles_and_the_agent_a_session_works_as() {
    let place = Place::new();
    place.put("kit/output-styles/t.md", "---\nname: Terse\n---\nTwo words.");
    place.put("kit/agents/a.md", "---\nname: scout\ndescription: looks\ntools: Read\n---\nYou scout.");
    let (ran, model) = with(&place, &json!({"outputStyle": "kit:Terse"}), &["--plugin-dir", "kit"]);
    assert_eq!(init(&ran)["output_style"], "kit:Terse");
    assert!(system(&model).contains("Two words."));
    // One that wants to hold as soon as it is there, unless somebody wants another.
    place.put("kit/output-styles/t.md", "---\nname: Terse\nforce-for-plugin: true\n---\nTwo words.");
    let (ran, _) = with(&place, &json!({}), &["--plugin-dir", "kit"]);
    assert_eq!(init(&ran)["output_style"], "kit:Terse");
    let (ran, _) = with(&place, &json!({"outputStyle": "default"}), &["--plugin-dir", "kit"]);
    assert_eq!(init(&ran)["output_style"], "default");
    place.put("kit/settings.json", r#"{"agent": "scout"}"#);
    let (_, model) = with(&place, &json!({}), &["--plugin-dir", "kit"]);
    assert!(system(&model).contains("You scout.") && !system(&model).contains("Two words."));
}

#[test]
fn the_agent_of_the_settings_is_the_main_thread_unless_one_is_named_for_the_run() {
    let place = Place::new();
    let agent = |name: &str, words: &str| {
        format!("---\nname: {name}\ndescription: d\ntools: Read, Grep\n---\n{words}")
    };
    place.put(".claude/agents/a.md", &agent("scout", "You scout."));
    place.put(".claude/agents/b.md", &agent("judge", "You judge."));
    let (ran, model) = with(&place, &json!({"agent": "scout"}), &[]);
    assert!(system(&model).contains("You scout.") && !system(&model).contains("You are Pelton"));
    assert_eq!(init(&ran)["tools"], json!(["Grep", "Read"]));
    let (_, model) = with(&place, &json!({"agent": "scout"}), &["--agent", "judge"]);
    assert!(system(&model).contains("You judge."));
    let (ran, model) = with(&place, &json!({"agent": "nobody"}), &[]);
    assert!(ran.err.contains("no agent 'nobody'") && ran.err.contains("scout"), "{ran:?}");
    assert!(system(&model).contains("You are Pelton"));
}

#[test]
fn language_and_attribution_are_told() {
    let place = Place::new();
    let (_, model) = with(&place, &json!({}), &[]);
    assert!(!system(&model).contains("Answer in") && !system(&model).contains("commit you make"));
    for (settings, parts) in [
        (json!({"language": "Danish"}), vec!["Answer in Danish"]),
        (
            json!({"attribution": {"commit": "By: me", "pr": ""}}),
            vec!["By: me", "yourself, Pelton or the model in pull requests"],
        ),
        (json!({"attribution": false}), vec!["model in commit messages", "model in pull requests"]),
        (json!({"includeCoAuthoredBy": true}), vec!["Assisted-by: Pelton"]),
        (
            json!({"includeCoAuthoredBy": true, "attribution": {"commit": "By: me"}}),
            vec!["By: me", "Assisted-by: Pelton"],
        ),
    ] {
        // Whoever replaces Pelton's own words has wishes all the same.
        for words in [&[][..], &["--system-prompt", "You are mine."]] {
            let (ran, model) = with(&place, &settings, words);
            for part in &parts {
                assert!(system(&model).contains(part), "{settings}: {part}: {ran:?}");
            }
        }
    }
}

#[test]
fn models_that_may_not_be_asked_are_not_whoever_names_them() {
    let place = Place::new();
    let only_sonnet = json!({"availableModels": ["sonnet"]});
    let (ran, model) = with(&place, &only_sonnet, &["--model", "sonnet"]);
    assert_eq!((ran.code, model.requests().len()), (Some(0), 1));
    let (ran, model) = with(&place, &only_sonnet, &["--model", "opus"]);
    assert_eq!((ran.code, model.requests().len()), (Some(1), 0), "{ran:?}");
    assert!(ran.err.contains("opus is not among the models that may be asked here: sonnet"), "{ran:?}");
    // What stands in a file is not meant for this run: it is said, and the usual model is asked.
    place.put(".claude/settings.json", r#"{"model": "haiku", "fallbackModel": ["opus"]}"#);
    let (ran, model) = with(&place, &json!({"availableModels": ["opus"]}), &[]);
    assert!(ran.err.contains("haiku is not among"), "{ran:?}");
    assert_eq!(model.requests()[0].body["model"], "claude-sonnet-5-5", "the default is an exception");
    let strict = json!({"availableModels": ["opus"], "enforceAvailableModels": true});
    let (_, model) = with(&place, &strict, &[]);
    assert!(model.requests()[0].body["model"].as_str().unwrap().contains("opus"));
    let (ran, _) = with(&place, &json!({"deniedModels": ["claude"], "model": "claude-opus-4-5"}), &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // An administrator's list stands alone.
    let managed = r#"{"availableModels": ["haiku"]}"#;
    let (ran, _) = with(
        &place,
        &json!({"availableModels": ["opus"]}),
        &["--model", "opus", "--managed-settings", managed],
    );
    assert!(ran.err.contains("may be asked here: haiku"), "{ran:?}");
}

#[test]
fn an_agent_that_asks_for_such_a_model_is_not_started() {
    let place = Place::new();
    let script = Script::new()
        .reply([tool("Agent", json!({"description": "d", "prompt": "p", "model": "haiku"}))])
        .reply([text("Done.")]);
    let model = model(script);
    let ran = place.task(&model, ["hi", "--settings", r#"{"availableModels": ["sonnet"]}"#]).run();
    assert_eq!((ran.well(), model.requests().len()), ("Done.\n", 2));
    let told = model.requests()[1].body["messages"].to_string();
    assert!(told.contains("is not among the models that may be asked here: sonnet"), "{told}");
}

#[test]
fn thinking_and_effort_keep_to_the_settings_unless_the_run_says_otherwise() {
    let place = Place::new();
    let asked = |settings: Value, words: &[&str]| with(&place, &settings, words).1.requests()[0].body.clone();
    assert!(asked(json!({}), &[]).get("thinking").is_some());
    assert!(asked(json!({"alwaysThinkingEnabled": true}), &[]).get("thinking").is_some());
    // The newest models cannot do without.
    let older = ["--model", "claude-sonnet-4-5"];
    assert_eq!(asked(json!({}), &older)["thinking"]["type"], "enabled");
    let off = asked(json!({"alwaysThinkingEnabled": false}), &older);
    assert!(off.get("thinking").is_none_or(|thinking| thinking["type"] == "disabled"), "{off}");
    let said = [&older[..], &["--thinking", "enabled"]].concat();
    assert_eq!(asked(json!({"alwaysThinkingEnabled": false}), &said)["thinking"]["type"], "enabled");
    assert_eq!(asked(json!({"showThinkingSummaries": true}), &[])["thinking"]["display"], "summarized");
    let effort = |settings, words: &[&str]| asked(settings, words)["output_config"]["effort"].clone();
    assert_eq!(effort(json!({"maxEffortLevel": "medium"}), &["--effort", "high"]), "medium");
    assert_eq!(effort(json!({"maxEffortLevel": "medium"}), &["--effort", "low"]), "low");
}

/// All cache marks of a request.
fn marks(body: &Value) -> Vec<Value> {
    let system = body["system"].as_array().into_iter().flatten();
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    system.chain(blocks).filter_map(|block| block.get("cache_control").cloned()).collect()
}

#[test]
fn what_a_server_keeps_it_keeps_as_long_as_is_said() {
    let place = Place::new();
    let asked = |settings: Value, env: &[(&str, &str)]| {
        let model = hello();
        let settings = settings.to_string();
        let mut task = place.task(&model, ["hi", "--settings", &settings]);
        env.iter().for_each(|(name, value)| _ = task.env(name, value));
        task.run().well();
        marks(&model.requests()[0].body)
    };
    let (usual, long) = (json!({"type": "ephemeral"}), json!({"type": "ephemeral", "ttl": "1h"}));
    let hour = || json!({"promptCacheTtl": "1h"});
    assert_eq!(asked(json!({}), &[]), [usual.clone(), usual.clone()]);
    assert_eq!(asked(hour(), &[]), [long.clone(), long.clone()]);
    assert_eq!(asked(json!({}), &[("ENABLE_PROMPT_CACHING_1H", "1")]), [long.clone(), long.clone()]);
    assert_eq!(asked(hour(), &[("FORCE_PROMPT_CACHING_5M", "1")]), [usual.clone(), usual]);
    assert!(asked(hour(), &[("DISABLE_PROMPT_CACHING", "1")]).is_empty());
    assert!(asked(json!({"model": "opus"}), &[("DISABLE_PROMPT_CACHING_OPUS", "1")]).is_empty());
    assert_eq!(asked(hour(), &[("DISABLE_PROMPT_CACHING_OPUS", "1")]), [long.clone(), long]);
}

#[test]
fn what_is_kept_longer_stays_so_in_a_resumed_session_and_agents_have_their_own() {
    let place = Place::new();
    let script = Script::new()
        .reply([tool(
            "Agent",
            json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"}),
        )])
        .reply([text("Looked.")])
        .reply([text("Done.")])
        .reply([text("Again.")])
        .reply([text("And again.")]);
    let model = model(script.strict(Strictness::default().relax(Rule::KnownModel)));
    let hour = r#"{"promptCacheTtl": "1h"}"#;
    place.task(&model, ["hi", "--settings", hour]).run().well();
    place.task(&model, ["more", "--continue", "--settings", hour]).run().well();
    place.task(&model, ["more", "--continue"]).run().well();
    let requests = model.requests();
    let is_long = |at: usize| {
        let marks = marks(&requests[at].body);
        assert!(!marks.is_empty() && marks.iter().all(|mark| mark["ttl"] == marks[0]["ttl"]), "{marks:?}");
        marks[0]["ttl"] == "1h"
    };
    // The prompt, the agent, what the agent said, and two resumes, the last without the setting.
    assert_eq!([0, 1, 2, 3, 4].map(is_long), [true, false, true, true, false]);
}

/// A session that goes on keeps its model, whatever settings name by then; what is said of models holds for that one.
#[test]
fn a_session_that_goes_on_is_asked_of_its_own_model_in_its_own_way() {
    let place = Place::new();
    let said = hello();
    place.task(&said, ["hi", "--model", "claude-sonnet-4-6"]).run().well();
    let goes_on = |settings: &str, words: &[&str], env: &[(&str, &str)]| {
        let model = hello();
        let mut task = place.task(&model, ["more", "--continue", "--settings", settings]);
        task.args(STREAM).args(words);
        env.iter().for_each(|(name, value)| _ = task.env(name, value));
        let ran = task.run();
        ran.well();
        let body = model.requests()[0].body.clone();
        (init(&ran)["model"].as_str().unwrap().to_owned(), marks(&body).len())
    };
    let (sonnet, opus) = ("claude-sonnet-4-6".to_owned(), r#"{"model": "opus"}"#);
    assert_eq!(goes_on(opus, &[], &[]), (sonnet.clone(), 2));
    assert_eq!(goes_on(opus, &[], &[("DISABLE_PROMPT_CACHING_SONNET", "1")]), (sonnet.clone(), 0));
    assert_eq!(goes_on(opus, &[], &[("DISABLE_PROMPT_CACHING_OPUS", "1")]), (sonnet.clone(), 2));
    assert_eq!(goes_on(r#"{"model": "claude-sonnet-4-6[1m]"}"#, &[], &[]).0, "claude-sonnet-4-6[1m]");
    assert_ne!(goes_on("{}", &["--model", "default"], &[]).0, sonnet, "the usual one is named");
}

#[test]
fn models_are_asked_by_the_name_that_the_server_knows() {
    let place = Place::new();
    let named = json!({"modelOverrides": {"claude-sonnet-4-5": "arn:aws:bedrock:eu:1:profile/ours"}});
    let (ran, model) = with(&place, &named, &["--model", "claude-sonnet-4-5"]);
    assert_eq!(model.requests()[0].body["model"], "arn:aws:bedrock:eu:1:profile/ours");
    assert_eq!(init(&ran)["model"], "claude-sonnet-4-5", "what it can do and costs is known by its own");
    let (_, model) = with(&place, &named, &["--model", "claude-opus-4-5"]);
    assert_eq!(model.requests()[0].body["model"], "claude-opus-4-5");
    // Another name may be another model: a directory that nobody trusts does not choose it.
    place.put(".claude/settings.json", &named.to_string());
    let (ran, model) = with(&place, &json!({}), &["--model", "claude-sonnet-4-5"]);
    assert_eq!(model.requests()[0].body["model"], "claude-sonnet-4-5");
    assert!(ran.err.contains("modelOverrides"), "{ran:?}");
}

#[test]
fn what_comes_with_the_program_is_not_there_where_nobody_wants_it() {
    let place = Place::new();
    let commands = |ran: &Ran| init(ran)["slash_commands"].to_string();
    let (ran, _) = with(&place, &json!({}), &[]);
    assert!(commands(&ran).contains("\"init\"") && commands(&ran).contains("\"compact\""), "{ran:?}");
    let (ran, _) = with(&place, &json!({"disableBundledSkills": true}), &[]);
    assert!(!commands(&ran).contains("\"init\"") && commands(&ran).contains("\"compact\""), "{ran:?}");
    let model = hello();
    let ran = place.task(&model, ["/init", "--settings", r#"{"disableBundledSkills": true}"#]).run();
    assert!(ran.err.contains("Unknown command: /init") && model.requests().is_empty(), "{ran:?}");
}

#[test]
fn skills_are_shown_to_whom_the_settings_say() {
    let place = Place::new();
    for name in ["open", "named", "mine", "gone"] {
        let text = format!("---\ndescription: about {name}\n---\nDo {name}.");
        place.put(&format!(".claude/skills/{name}/SKILL.md"), &text);
    }
    let overrides = json!({"skillOverrides": {"named": "name-only", "mine": "user-invocable-only", "gone": "off", "open": "on"}});
    let (ran, model) = with(&place, &overrides, &[]);
    assert_eq!(init(&ran)["skills"], json!(["mine", "named", "open"]));
    let told = model.requests()[0].body["messages"].to_string();
    assert!(told.contains("about open") && told.contains("- named"), "{told}");
    for part in ["about named", "mine", "gone"] {
        assert!(!told.contains(part), "{part}: {told}");
    }
    let settings = overrides.to_string();
    let model = hello();
    let ran = place.task(&model, ["/mine", "--settings", &settings]).run();
    assert!(model.requests()[0].body["messages"].to_string().contains("Do mine."), "{ran:?}");
    let ran = place.task(&hello(), ["/gone", "--settings", &settings]).run();
    assert!(ran.err.contains("Unknown command: /gone"), "{ran:?}");
}

#[test]
fn hooks_that_are_addresses_keep_to_the_list() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let mut all = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 16_384];
            let mut said = String::new();
            while !said.contains("hook_event_name") && !said.contains("enough") {
                let read = stream.read(&mut bytes).unwrap();
                said += &String::from_utf8_lossy(&bytes[..read]);
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            if said.contains("enough") {
                return all;
            }
            all.push(said);
        }
        all
    });
    let url = format!("http://127.0.0.1:{port}/told");
    let hook = json!({"type": "http", "url": url, "headers": {"x-one": "$ONE", "x-two": "$TWO"}, "allowedEnvVars": ["ONE", "TWO"]});
    let settings = |urls: Value| {
        json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook.clone()]}]},
        "allowedHttpHookUrls": urls, "httpHookAllowedEnvVars": ["TWO"], "env": {"ONE": "first", "TWO": "second"}})
    };
    let (ran, _) = with(&place, &settings(json!(["https://*"])), &["--include-hook-events"]);
    assert!(ran.out.contains("allowedHttpHookUrls"), "{ran:?}");
    with(&place, &settings(json!([format!("http://127.0.0.1:{port}/*")])), &[]).0.well();
    std::io::Write::write_all(&mut std::net::TcpStream::connect(("127.0.0.1", port)).unwrap(), b"enough")
        .unwrap();
    let [said] = &heard.join().unwrap()[..] else { panic!("once, where the list has it") };
    assert!(said.contains("x-two: second") && !said.contains("first"), "{said}");
}

#[test]
fn output_is_cut_where_the_settings_say() {
    let place = Place::new();
    let script = Script::new().reply([tool("Bash", json!({"command": "seq 1 2000"}))]).reply([text("Done.")]);
    let model = model(script);
    let settings = r#"{"bashOutputMaxChars": 1000, "permissions": {"allow": ["Bash"]}}"#;
    place.task(&model, ["hi", "--settings", settings]).run().well();
    let told = model.requests()[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told.len() < 3_000, "{} bytes", told.len());
}

#[test]
fn rules_and_hooks_that_change_while_a_session_runs_count_from_there_on() {
    let place = Place::new();
    let write = |settings: Value| {
        tool(
            "Bash",
            json!({"command": format!("mkdir -p .claude; printf '%s' '{settings}' > .claude/settings.json")}),
        )
    };
    let hook = json!([{"hooks": [{"type": "command", "command": "echo >> heard"}]}]);
    let script = Script::new()
        .reply([write(json!({"permissions": {"deny": ["Bash(touch *)"]}, "hooks": {"PostToolUse": hook}}))])
        .reply([
            tool("Bash", json!({"command": "touch denied"})),
            tool("Bash", json!({"command": "echo fine"})),
        ])
        .reply([write(json!({}))])
        .reply([tool("Bash", json!({"command": "touch allowed"}))])
        .reply([text("Done.")]);
    let model = model(script);
    let asked = json!({"permissions": {"allow": ["Bash"]}, "hooks": {"ConfigChange": [{"matcher": "project_settings", "hooks": [{"type": "command", "command": "cat >> changes; echo >> changes"}]}]}});
    let ran = place
        .task(
            &model,
            ["hi", "--settings", &asked.to_string(), "--permission-mode", "bypassPermissions"]
                .into_iter()
                .chain(STREAM),
        )
        .env("IS_SANDBOX", "1")
        .run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!place.has("denied") && place.has("allowed"), "{ran:?}");
    // After `echo fine`, and after the call that took it away again.
    assert_eq!(place.read("heard").lines().count(), 2);
    let changes: Vec<Value> = place
        .read("changes")
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sources: Vec<&Value> = changes.iter().map(|change| &change["source"]).collect();
    assert_eq!(sources, ["project_settings", "project_settings"]);
    assert!(changes[0]["file_path"].as_str().unwrap().ends_with(".claude/settings.json"));
    // What stands in front of every request is the same.
    let requests = model.requests();
    assert!(requests.iter().all(|request| request.body["system"] == requests[0].body["system"]
        && request.body["tools"] == requests[0].body["tools"]));
}

#[test]
fn a_hook_may_keep_a_change_of_settings_from_counting() {
    let place = Place::new();
    place.put(".claude/settings.json", r#"{"permissions": {"deny": ["Bash(touch *)"]}}"#);
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "echo '{}' > .claude/settings.json"}))])
        .reply([tool("Bash", json!({"command": "touch made"}))])
        .reply([text("Done.")]);
    let model = model(script);
    let asked = json!({"hooks": {"ConfigChange": [{"hooks": [{"type": "command", "command": "echo 'not while it runs' >&2; exit 2"}]}]}});
    let ran = place
        .task(
            &model,
            ["hi", "--settings", &asked.to_string(), "--permission-mode", "bypassPermissions"]
                .into_iter()
                .chain(STREAM),
        )
        .env("IS_SANDBOX", "1")
        .run();
    assert!(
        ran.out.contains("is not heeded: a hook objects") && ran.out.contains("not while it runs"),
        "{ran:?}"
    );
    assert!(!place.has("made"));
}

/// A model that was asked for one turn, because a command wanted it or because another did not answer, is not the session's.
#[test]
fn a_model_for_one_turn_is_not_kept_by_the_session() {
    for words in [&["/think hard"][..], &["/plain", "--fallback-model", "opus"]] {
        let place = Place::new();
        place.put(".claude/commands/think.md", "---\nmodel: opus\n---\nThink about $ARGUMENTS.");
        place.put(".claude/commands/plain.md", "Do it.");
        let overloaded = || Step::status(529).header("retry-after", "0");
        let script = match words.len() {
            1 => Script::new(),
            _ => Script::new().step(overloaded()).step(overloaded()).step(overloaded()),
        };
        let said = model(script.step(Step::reply([text("Yes.")]).always()));
        let first = ["--model", "claude-sonnet-4-6"];
        let ran = place.task(&said, words.iter().copied().chain(first)).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let asked = said.requests();
        assert!(asked.last().unwrap().body["model"].as_str().unwrap().contains("opus"), "{words:?}");
        let next = model(Script::new().step(Step::reply([text("Yes.")]).always()));
        place.task(&next, ["more", "--continue"]).run().well();
        assert_eq!(next.requests()[0].body["model"], "claude-sonnet-4-6", "{words:?}");
    }
}

/// Fields of one's own go with every request, agents' too; what the conversation is made of stays ours.
#[test]
fn fields_of_ones_own_go_with_every_request() {
    let place = Place::new();
    let agent = tool("Agent", json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"}));
    let script = Script::new().reply([agent]).step(Step::reply([text("Yes.")]).always());
    let said = model(script.strict(Strictness::default().relax(Rule::Shape)));
    let extra = json!({"metadata": {"user_id": "team"}, "x_route": ["a", 1], "messages": [], "model": "other", "stream": false});
    place.task(&said, ["hi"]).env("CLAUDE_CODE_EXTRA_BODY", extra.to_string()).run().well();
    let requests = said.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(
            (&request.body["metadata"], &request.body["x_route"]),
            (&extra["metadata"], &extra["x_route"])
        );
        assert!(!request.body["messages"].as_array().unwrap().is_empty());
        assert!(request.body["stream"] == true && request.body["model"] != "other", "{}", request.body);
    }
}

/// Further directories that settings name count while a session runs, as their rules do, and no longer than they are named.
#[test]
fn directories_come_and_go_with_the_settings_of_a_session_that_runs() {
    let place = Place::new();
    let beside = place.temp().canonicalize().unwrap().join("beside");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("note.txt"), "between us").unwrap();
    let reads = || [tool("Read", json!({"file_path": beside.join("note.txt")}))];
    let script = (0..3).fold(Script::new(), |script, _| script.reply(reads()).reply([text("Done.")]));
    let model = model(script);
    let set = |dirs: Value| {
        let settings = json!({"permissions": {"additionalDirectories": dirs}}).to_string();
        std::fs::write(place.config().join("settings.json"), settings).unwrap();
    };
    set(json!([]));
    let mut talk = Talk::start(&place, &model, &[]);
    let mut is_read = |dirs: Value| {
        set(dirs);
        talk.prompt("Read it.");
        talk.result();
        model.requests().last().unwrap().body["messages"].to_string().matches("between us").count()
    };
    assert_eq!(is_read(json!([])), 0);
    assert_eq!(is_read(json!([beside])), 1);
    assert_eq!(is_read(json!([])), 1, "it may not be read any more");
    talk.end();
}

/// What is wrong in a file that changes is told by whoever shows the session: standard error may be a screen that is being painted.
#[test]
fn what_is_wrong_in_a_file_that_changes_is_part_of_what_is_told() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("one");
    talk.result();
    std::fs::write(
        place.config().join("settings.json"),
        r#"{"permissions": {"deny": ["WebFetch"]}, "model": 3}"#,
    )
    .unwrap();
    talk.prompt("two");
    talk.result();
    let over = talk.end();
    assert_eq!(over.err, "");
    let told = of_type(&over.seen, "system").into_iter().filter_map(|frame| frame["content"].as_str());
    let told: Vec<&str> = told.collect();
    assert!(told.iter().any(|told| told.contains("`model` must be a text")), "{told:?}");
    assert!(told.iter().any(|told| told.contains("count from now on")), "{told:?}");
}

/// A file that is half written when a session looks at it takes nothing back: neither what it forbids nor its hooks.
#[test]
fn a_file_that_breaks_while_a_session_runs_forbids_what_it_forbade() {
    let place = Place::new();
    place.put("note.txt", "between us");
    let reads = || [tool("Read", json!({"file_path": "note.txt"}))];
    let script = (0..3).fold(Script::new(), |script, _| script.reply(reads()).reply([text("Done.")]));
    let model = model(script);
    let set = |settings: &str| std::fs::write(place.config().join("settings.json"), settings).unwrap();
    set(r#"{"permissions": {"deny": ["Read(note.txt)"]}}"#);
    let mut talk = Talk::start(&place, &model, &[]);
    let mut is_read = || {
        talk.prompt("Read it.");
        talk.result();
        model.requests().last().unwrap().body["messages"].to_string().contains("between us")
    };
    assert!(!is_read());
    set(r#"{"permissions": {"deny": ["Read(no"#);
    assert!(!is_read(), "what it forbids now cannot be known");
    set("{}");
    assert!(is_read());
    let over = talk.end();
    let told = of_type(&over.seen, "system").into_iter().filter_map(|frame| frame["content"].as_str());
    let told: Vec<&str> = told.collect();
    assert!(
        told.iter().any(|told| told.contains("is not heeded: what it forbids cannot be read")),
        "{told:?}"
    );
}
