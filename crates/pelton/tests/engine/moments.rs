//! Every moment that hooks can be called at, exactly as often as it comes; and hooks that are no programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pelton::hooks::{HookEvent, HookKind};
use pelton::permission::{Answer, Asker, Mode, Question, Questions};
use pelton::tools::{ServerState, ToolServer};
use pelton::{EndReason, Event, Options, Terminal};
use pelton_model::{Auth, Secret};
use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::hooks::{hook, on, said};
use crate::servers::Calculator;
use crate::stage::{Stage, Told, last_user_blocks, results_in, run, sh, text_of};

/// Every event there is, each heard by a command that keeps what it is told.
fn everything(stage: &Stage) -> Value {
    let file = stage.path("heard.txt");
    // Hooks run side by side: each line is written in one go.
    let line = format!("line=$(tr -d '\\n'); printf '%s\\n' \"$line\" >> {}", file.display());
    let hooks = json!([{"hooks": [{"type": "command", "command": line}]}]);
    HookEvent::ALL
        .iter()
        .map(|event| (event.name().to_owned(), hooks.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn heard(stage: &Stage) -> Vec<Value> {
    stage.read("heard.txt").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How often each event was heard of.
fn counts(stage: &Stage) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for told in heard(stage) {
        *counts.entry(told["hook_event_name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

fn expected(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(event, times)| ((*event).to_owned(), *times)).collect()
}

/// Allows everything it is asked, once the hook beside it has been heard: an answer ends the hooks that may still give one.
struct Obliging {
    heard: PathBuf,
}

impl Asker for Obliging {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        let is_heard =
            || std::fs::read_to_string(&self.heard).is_ok_and(|all| all.contains("PermissionRequest"));
        Box::pin(async move {
            // A hook that is never called is told by the counts, and not by a test that hangs.
            for _ in 0..2_000 {
                if is_heard() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Answer::allow()
        })
    }
}

#[tokio::test]
async fn pit_H1_every_event_of_a_session_is_heard_of_exactly_as_often_as_it_happens() {
    let script = Script::new()
        .reply([
            tool("Bash", sh("echo one")).id("toolu_1"),
            tool("Bash", sh("exit 3")).id("toolu_2"),
            tool("Read", json!({"file_path": "missing.txt"})).id("toolu_3"),
        ])
        .reply([tool("Bash", sh("mkdir -p below && cd below")).id("toolu_4")])
        .reply([tool("Invented", json!({})).id("toolu_5")])
        .reply([text("Done.")])
        .step(Step::status(400).message("no"));
    let stage = Stage::new(script).await;
    let settings = everything(&stage);
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.mode = Mode::Default;
        options.questions = Some(Questions::to(Obliging { heard: stage.path("heard.txt") }));
    });
    run(&mut engine, "Go.").await.assert_completed();
    assert_eq!(run(&mut engine, "And now?").await.outcome().terminal, Terminal::ModelError);
    engine.close(EndReason::Other).await;

    // A tool that is not there and input that cannot be are no moments of a tool. One call had to be asked about.
    assert_eq!(
        counts(&stage),
        expected(&[
            ("CwdChanged", 1),
            ("MessageDisplay", 1),
            ("Notification", 1),
            ("PermissionRequest", 1),
            ("PostToolBatch", 3),
            ("PostToolUse", 2),
            ("PostToolUseFailure", 2),
            ("PreToolUse", 4),
            ("SessionEnd", 1),
            ("SessionStart", 1),
            ("Stop", 1),
            ("StopFailure", 1),
            ("UserPromptSubmit", 2),
        ])
    );
    let heard = heard(&stage);
    let of = |event: &str| heard.iter().find(|told| told["hook_event_name"] == event).unwrap();
    let batch = of("PostToolBatch")["tool_calls"].as_array().unwrap();
    let ids: Vec<&str> = batch.iter().map(|call| call["tool_use_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["toolu_1", "toolu_2", "toolu_3"]);
    assert!(batch[0]["tool_response"].to_string().contains("one"), "{batch:?}");
    assert_eq!(of("StopFailure")["error"], "invalid_request");
    assert!(of("StopFailure")["last_assistant_message"].as_str().unwrap().starts_with("API Error: 400"));
    assert_eq!(of("Notification")["notification_type"], "permission_prompt");
    let moved = of("CwdChanged");
    assert_eq!(moved["new_cwd"].as_str(), stage.path("below").to_str());
    stage.assert_all_played();
}

/// A batch is told at its end, when the work may have moved; its calls are told as they were made.
#[tokio::test]
async fn the_calls_of_a_batch_are_told_with_the_paths_and_inputs_they_were_made_with() {
    let script = Script::new()
        .reply([
            tool("Read", json!({"file_path": "a.txt"})),
            tool("Read", json!({"file_path": "swapped.txt"})),
            tool("Bash", sh("mkdir -p below && cd below")),
            tool("Read", json!({"file_path": "a.txt"})),
        ])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    stage.write("a.txt", "above");
    stage.write("b.txt", "other");
    let swap = r#"grep -q swapped && echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"file_path": "b.txt"}}}'; true"#;
    let mut settings = on("PreToolUse", &[swap]);
    settings["PostToolBatch"] = everything(&stage)["PostToolBatch"].clone();
    let mut engine = stage.engine_with(|options| hook(options, &settings));
    run(&mut engine, "Go.").await.assert_completed();
    let heard = heard(&stage);
    let calls = heard[0]["tool_calls"].as_array().unwrap();
    let paths: Vec<Option<&str>> =
        calls.iter().map(|call| call["tool_input"]["file_path"].as_str()).collect();
    let whole = |name: &str| stage.path(name).to_str().unwrap().to_owned();
    assert_eq!(paths, [Some(&*whole("a.txt")), Some(&*whole("b.txt")), None, Some(&*whole("below/a.txt"))]);
    assert_eq!(heard[0]["cwd"].as_str(), stage.path("below").to_str());
}

#[tokio::test]
async fn pit_H1_a_call_that_hooks_deny_is_not_entered() {
    let stage =
        Stage::new(Script::new().reply([tool("Bash", sh("touch entered"))]).reply([text("Done.")])).await;
    let mut settings = everything(&stage);
    settings["PreToolUse"] = on("PreToolUse", &["exit 2"])["PreToolUse"].clone();
    run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await.assert_completed();
    assert!(!stage.path("entered").exists());
    let counts = counts(&stage);
    assert_eq!((counts.get("PostToolUse"), counts.get("PostToolUseFailure")), (None, None));
    assert_eq!(counts["PostToolBatch"], 1, "the model has an answer to the call");
}

#[tokio::test]
async fn loop_X10_a_hook_behind_all_calls_of_an_answer_ends_the_run_before_the_next_question() {
    let calls = || Script::new().reply([tool("Bash", sh("echo a")), tool("Bash", sh("echo b"))]);
    let stage = Stage::new(calls()).await;
    let settings = on("PostToolBatch", &["echo 'that is enough' >&2; exit 2"]);
    let told = run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await;
    assert_eq!((told.outcome().terminal, stage.request_count()), (Terminal::HookStopped, 1));
    let (words, ends) = said(&told).remove(0);
    assert!(words.contains("that is enough") && ends, "{words}");

    // And its words reach the model behind the results.
    let stage = Stage::new(calls().reply([text("Done.")])).await;
    let words = r#"echo '{"hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": "mind the gap"}}'"#;
    let settings = on("PostToolBatch", &[words]);
    run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await.assert_completed();
    let sent = stage.request(2);
    assert_eq!(results_in(&sent).len(), 2);
    assert!(text_of(&json!(last_user_blocks(&sent))).contains("mind the gap"), "{sent}");
}

#[tokio::test]
async fn a_stop_hook_is_told_what_runs_in_the_background() {
    let start = json!({"command": "sleep 300", "description": "Wait", "run_in_background": true});
    let stage = Stage::new(Script::new().reply([tool("Bash", start)]).reply([text("Started.")])).await;
    let settings = everything(&stage);
    let mut engine = stage.engine_with(|options| hook(options, &settings));
    run(&mut engine, "Go.").await.assert_completed();
    let heard = heard(&stage);
    let stop = heard.iter().find(|told| told["hook_event_name"] == "Stop").unwrap();
    let id = &engine.tasks().running()[0].id;
    let expected = json!([{"id": id, "type": "shell", "status": "running", "description": "Wait", "command": "sleep 300"}]);
    assert_eq!(stop["background_tasks"], expected, "{stop}");
    engine.close(EndReason::Other).await;
}

/// An address that keeps what it is sent and answers the same each time.
async fn address(status: &'static str, body: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut all = Vec::new();
            loop {
                let mut piece = [0; 4096];
                let n = socket.read(&mut piece).await.unwrap_or(0);
                all.extend_from_slice(&piece[..n]);
                let words = String::from_utf8_lossy(&all).into_owned();
                let length = words
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                let whole =
                    words.split_once("\r\n\r\n").zip(length).is_some_and(|((_, body), n)| body.len() >= n);
                if whole || n == 0 {
                    break;
                }
            }
            kept.lock().unwrap().push(String::from_utf8_lossy(&all).into_owned());
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    (url, seen)
}

fn kinds(told: &Told) -> Vec<HookKind> {
    let kind = |event: &Event| match event {
        Event::Hook(run) => Some(run.kind),
        _ => None,
    };
    told.0.iter().filter_map(kind).collect()
}

fn calls() -> Script {
    Script::new().reply([tool("Bash", sh("touch entered"))]).reply([text("Done.")])
}

#[tokio::test]
async fn an_address_hears_of_a_call_and_can_refuse_it() {
    let refusal = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "not today"}}"#;
    let (url, seen) = address("200 OK", refusal).await;
    let stage = Stage::new(calls()).await;
    let settings = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": url,
        "headers": {"Authorization": "Bearer $HOOK_TOKEN", "X-Other": "$PATH"}, "allowedEnvVars": ["HOOK_TOKEN"]}]}]});
    let told = run(
        &mut stage.engine_with(|options| {
            hook(options, &settings);
            options.env.push(("HOOK_TOKEN".into(), "t0ken".into()));
        }),
        "Go.",
    )
    .await;
    told.assert_completed();
    assert!(!stage.path("entered").exists());
    let (_, is_error, words) = results_in(&stage.request(2)).remove(0);
    assert!(is_error && words.contains("not today"), "{words}");
    assert_eq!(kinds(&told), [HookKind::Http]);
    let asked = seen.lock().unwrap().remove(0);
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook ") && head.contains("authorization: Bearer t0ken"), "{head}");
    assert!(head.lines().any(|line| line.trim_end() == "x-other:"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["hook_event_name"], &body["tool_name"]), (&json!("PreToolUse"), &json!("Bash")));
}

#[tokio::test]
async fn nobody_outside_is_told_the_key_of_whoever_pays() {
    let key = "sk-ant-0123456789-abcdefghij";
    let (url, seen) = address("200 OK", "{}").await;
    let stage = Stage::new(Script::new().reply([text("Hello.")]).reply([text("{\"ok\": true}")])).await;
    let settings = json!({
        "UserPromptSubmit": [{"hooks": [{"type": "http", "url": url, "headers": {"X-Key": "is:$ANTHROPIC_API_KEY"},
            "allowedEnvVars": ["ANTHROPIC_API_KEY"]}]}],
        "Stop": [{"hooks": [{"type": "prompt", "prompt": "Well?"}]}],
    });
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.env.push(("ANTHROPIC_API_KEY".into(), key.into()));
        options.endpoint.auth = Auth::ApiKey(Secret::new(key));
    });
    run(&mut engine, &format!("Is {key} a good key?")).await.assert_completed();
    let asked = seen.lock().unwrap().remove(0);
    assert!(asked.contains("Is [redacted] a good key?") && asked.contains("x-key: is:\r\n"), "{asked}");
    assert!(!asked.contains(key), "{asked}");
    assert!(!stage.request(2).to_string().contains(key));
    stage.assert_all_played();
}

#[tokio::test]
async fn an_address_that_fails_blocks_nothing_and_is_told_of() {
    for (status, body) in [("500 Oh", "{}"), ("200 OK", "plain words"), ("204 No Content", "")] {
        let (url, _) = address(status, body).await;
        let stage = Stage::new(calls()).await;
        let settings = json!({"PreToolUse": [{"hooks": [{"type": "http", "url": url}]}]});
        let told = run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await;
        told.assert_completed();
        assert!(stage.path("entered").exists(), "{status}");
        assert_eq!(said(&told).is_empty(), status.starts_with("204"), "{status}");
    }
    // The same if nobody is there.
    let stage = Stage::new(calls()).await;
    let settings = json!({"PreToolUse": [{"hooks": [{"type": "http", "url": "http://127.0.0.1:9/x"}]}]});
    let told = run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await;
    assert!(
        stage.path("entered").exists() && said(&told)[0].0.contains("could not be asked"),
        "{:?}",
        said(&told)
    );
}

#[tokio::test]
async fn a_question_to_a_model_sends_it_back_until_the_condition_holds() {
    let script = Script::new()
        .reply([text("Done.")])
        .reply([text("I think not: {\"ok\": false, \"reason\": \"the tests were not run\"}")])
        .reply([text("Tests run.")])
        .reply([text("{\"ok\": true}")]);
    let stage = Stage::new(script).await;
    let settings =
        json!({"Stop": [{"hooks": [{"type": "prompt", "prompt": "Were the tests run? $ARGUMENTS"}]}]});
    let told = run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await;
    assert_eq!(told.assert_completed().text, "Tests run.");
    assert_eq!((told.transitions(), kinds(&told)), (vec!["stop_hook_blocking"], vec![HookKind::Prompt; 2]));
    let asked = stage.request(2);
    let question = text_of(&json!(last_user_blocks(&asked)));
    assert!(
        question.starts_with("Were the tests run? {")
            && question.contains("\"last_assistant_message\":\"Done.\""),
        "{question}"
    );
    assert!(text_of(&json!(last_user_blocks(&stage.request(3)))).contains("the tests were not run"));
    assert!(told.outcome().usage.output_tokens > 0);
    stage.assert_all_played();
}

#[tokio::test]
async fn a_question_about_a_call_ends_the_turn_unless_it_is_to_go_on() {
    for (goes_on, terminal) in [(false, Terminal::HookStopped), (true, Terminal::Completed)] {
        let script = Script::new()
            .reply([tool("Bash", sh("touch entered"))])
            .reply([text("{\"ok\": false, \"reason\": \"no such calls\"}")])
            .reply([text("Then not.")]);
        let stage = Stage::new(script).await;
        let one = json!({"type": "prompt", "prompt": "Is it harmless?", "continueOnBlock": goes_on});
        let settings = json!({"PreToolUse": [{"hooks": [one]}]});
        let told = run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await;
        assert_eq!(told.outcome().terminal, terminal);
        assert!(!stage.path("entered").exists());
    }
}

#[tokio::test]
async fn a_tool_of_a_server_is_called_and_what_it_says_counts() {
    let server = Calculator::with(ServerState::Connected, &["sine"]);
    let with = |options: &mut Options, settings: &Value| {
        hook(options, settings);
        options.servers = vec![Arc::clone(&server) as Arc<dyn ToolServer>];
    };
    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let settings = |tool: &str| {
        json!({"UserPromptSubmit": [{"hooks": [{"type": "mcp_tool", "server": "calc", "tool": tool,
        "input": {"of": "${prompt}"}}]}]})
    };
    let told = run(&mut stage.engine_with(|options| with(options, &settings("sine"))), "Go.").await;
    told.assert_completed();
    assert_eq!(kinds(&told), [HookKind::ServerTool]);
    assert!(stage.request(1).to_string().contains("sine was pressed"), "{}", stage.request(1));

    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let told = run(&mut stage.engine_with(|options| with(options, &settings("cosine"))), "Go.").await;
    told.assert_completed();
    assert!(said(&told)[0].0.contains("no server `calc` has a tool `cosine`"), "{:?}", said(&told));
}
