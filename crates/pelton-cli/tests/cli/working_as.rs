//! The agent that a session works as, through several processes.

use pelton_testkit::{Script, Step, text};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};
use crate::talk::Talk;

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

fn described(place: &Place, name: &str, more: &str) {
    let text = format!(
        "---\nname: {name}\ndescription: does things\ntools: Read, Bash\n{more}---\nYou are {name}.\n"
    );
    place.put(&format!(".claude/agents/{name}.md"), &text);
}

/// As whom the model was asked: its words, its model, its tools.
fn asked_as(body: &Value) -> (String, String, Vec<String>) {
    let words = body["system"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    let is_own = words.starts_with("You are ") && words.len() < 40;
    let who = if is_own { words.trim_end_matches('.').replace("You are ", "") } else { "nobody".to_owned() };
    let tools =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    (who, body["model"].as_str().unwrap().to_owned(), tools.collect())
}

#[test]
fn a_session_goes_on_as_the_agent_it_worked_as() {
    let place = Place::new();
    described(&place, "helper", "model: claude-haiku-4-5\n");
    described(&place, "other", "");
    place.put(".claude/settings.json", r#"{"agent": "other"}"#);
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let run = |words: &[&str]| {
        let ran = place.task(&model, words.iter().copied()).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let body = model.requests().last().unwrap().body.clone();
        (asked_as(&body), ran.err)
    };
    let helper = |((who, asked, tools), err): ((String, String, Vec<String>), String)| {
        assert_eq!((who.as_str(), asked.as_str(), err.as_str()), ("helper", "claude-haiku-4-5", ""));
        assert_eq!(tools, ["Bash", "Read"]);
    };
    helper(run(&["ONE", "--session-id", SESSION, "--agent", "helper"]));
    helper(run(&["TWO", "--resume", SESSION]));
    helper(run(&["THREE", "--continue"]));
    helper(run(&["FORK", "--resume", SESSION, "--fork-session"]));
    // What was said for this run counts, and from then on.
    assert_eq!(run(&["FOUR", "--resume", SESSION, "--agent", "other"]).0.0, "other");
    assert_eq!(run(&["FIVE", "--resume", SESSION]).0.0, "other");
    let named = run(&["SIX", "--resume", SESSION, "--agent", "helper", "--model", "claude-opus-5-5"]).0;
    assert_eq!((named.0.as_str(), named.1.as_str()), ("helper", "claude-opus-5-5"));
    let file =
        place.transcripts().into_iter().find(|file| file.ends_with(format!("{SESSION}.jsonl"))).unwrap();
    let lines = crate::place::lines_of(&file);
    let set: Vec<&str> = lines.iter().filter_map(|line| line["agentSetting"].as_str()).collect();
    assert_eq!(set, ["helper", "other", "helper"], "once for each change");
    assert_eq!(lines[0], json!({"type": "agent-setting", "agentSetting": "helper", "sessionId": SESSION}));
    // It is not there any more.
    std::fs::remove_file(place.work().join(".claude/agents/helper.md")).unwrap();
    let ((who, _, tools), err) = run(&["SEVEN", "--resume", SESSION]);
    assert_eq!(err.matches("worked as the agent 'helper', which this run does not have").count(), 1, "{err}");
    assert!(who == "nobody" && tools.len() > 5, "{who} {tools:?}");
    // And there again.
    described(&place, "helper", "model: claude-haiku-4-5\n");
    helper(run(&["EIGHT", "--resume", SESSION]));
}

#[test]
fn a_summary_keeps_the_agent_and_so_does_another_conversation() {
    let place = Place::new();
    described(&place, "helper", "");
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let mut talk = Talk::start(&place, &model, &["--agent", "helper"]);
    let mut sessions = Vec::new();
    for prompt in ["ONE", "TWO", "/compact", "/clear", "THREE"] {
        talk.prompt(prompt);
        sessions.push(talk.result()["session_id"].as_str().unwrap().to_owned());
    }
    talk.end().well();
    let [first, second] = [sessions[0].clone(), sessions[4].clone()];
    assert_ne!(first, second);
    for session in [first, second] {
        place.task(&model, ["AGAIN", "--resume", &session]).run().well();
        assert_eq!(asked_as(&model.requests().last().unwrap().body).0, "helper", "{session}");
    }
}

#[test]
fn an_agent_that_only_the_client_knows_is_found_when_it_says_so() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let agents =
        json!({"helper": {"description": "does things", "prompt": "You are helper.", "tools": ["Read"]}});
    for options in [&["--session-id", SESSION, "--agent", "helper"][..], &["--resume", SESSION]] {
        let mut talk = Talk::start(&place, &model, options);
        talk.ask(&json!({"subtype": "initialize", "agents": agents}));
        talk.prompt("ONE");
        talk.result();
        talk.end().well();
        assert_eq!(asked_as(&model.requests().last().unwrap().body).0, "helper");
    }
    let mut talk = Talk::start(&place, &model, &["--resume", SESSION]);
    talk.ask(&json!({"subtype": "initialize"}));
    talk.prompt("TWO");
    talk.result();
    let over = talk.end();
    let told = over
        .well()
        .iter()
        .filter(|line| line["content"].as_str().is_some_and(|words| words.contains("'helper'")));
    assert_eq!(told.count(), 1, "{over:#?}");
    assert_eq!(asked_as(&model.requests().last().unwrap().body).0, "nobody");
}

#[test]
fn the_window_that_is_named_is_that_of_the_model_the_session_begins_with() {
    // Whoever chose it: the flag, an agent, or the record.
    for options in [&["--model", "claude-haiku-4-5"][..], &["--agent", "helper"], &["--resume", SESSION]] {
        let place = Place::new();
        described(&place, "helper", "model: claude-haiku-4-5\n");
        let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
        if options[0] == "--resume" {
            place.task(&model, ["ONE", "--session-id", SESSION, "--model", "claude-haiku-4-5"]).run().well();
        }
        let words = ["/context"].into_iter().chain(options.iter().copied());
        let ran = place.task(&model, words).env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "60000").run();
        assert!(ran.well().contains("claude-haiku-4-5") && ran.out.contains("60000"), "{options:?}: {ran:?}");
    }
}

#[test]
fn a_run_that_leaves_out_what_files_describe_says_whom_it_does_not_work_as() {
    let place = Place::new();
    described(&place, "helper", "");
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let run = |words: &[&str]| {
        let ran = place.task(&model, words.iter().copied()).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (asked_as(&model.requests().last().unwrap().body).0, ran.err)
    };
    run(&["ONE", "--session-id", SESSION, "--agent", "helper"]);
    for option in ["--bare", "--safe-mode"] {
        let (who, err) = run(&["TWO", "--resume", SESSION, option]);
        assert_eq!(who, "nobody", "{option}");
        assert_eq!(
            err.matches("worked as the agent 'helper', which this run does not have").count(),
            1,
            "{err}"
        );
        // Also behind a summary that such a run takes, the session is held to it again.
        run(&["/compact", "--resume", SESSION, option]);
        let (who, err) = run(&["THREE", "--resume", SESSION]);
        assert_eq!((who.as_str(), err.as_str()), ("helper", ""), "{option}");
    }
    let summed_up = place
        .transcripts()
        .iter()
        .any(|file| crate::place::lines_of(file).iter().any(|line| line["subtype"] == "compact_boundary"));
    assert!(summed_up);
}
