//! What cannot be meant, table by table: one line on standard error that names the cause, a result where clients read one, the
//! right exit code, soon, and nobody is asked anything.

use std::process::{Command, Stdio};
use std::time::Duration;

use pelton_testkit::{Script, ScriptedModel, Step, text};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, Ran, model, of_type};

/// The longest that anything here may take.
const SOON: Duration = Duration::from_secs(5);

const CLIENT: [&str; 5] = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

fn hello() -> ScriptedModel {
    model(Script::new().step(Step::reply([text("hello")]).always()))
}

/// It ended with this code, soon, and with one line that has these words.
#[track_caller]
fn refused(ran: &Ran, words: &[&str]) {
    ran.failed(1, words);
    assert!(ran.took < SOON, "{:?}: {}", ran.took, ran.err);
}

#[test]
fn pit_K4_options_that_cannot_be_meant_are_refused_before_anything_is_asked() {
    let (place, model) = (Place::new(), hello());
    std::fs::create_dir(place.work().join("folder")).unwrap();
    std::fs::write(place.work().join("huge.json"), " ".repeat(3 * 1024 * 1024)).unwrap();
    let long = "9".repeat(100_000);
    let cases: &[(&[&str], &[&str])] = &[
        (&["--nope"], &["unknown option '--nope'"]),
        (&["--max-turns", "x"], &["--max-turns", "whole number"]),
        (&["--max-turns", &long], &["--max-turns"]),
        (&["--max-turns=-1"], &["--max-turns"]),
        (&["--max-turns", "0"], &["--max-turns"]),
        (&["--max-budget-usd", "NaN"], &["--max-budget-usd", "not an amount"]),
        (&["--max-budget-usd", "1e400"], &["--max-budget-usd", "not an amount"]),
        (&["--max-budget-usd=-1"], &["--max-budget-usd", "not an amount"]),
        (&["--max-thinking-tokens=-5"], &["--max-thinking-tokens"]),
        (&["--permission-mode", "zzz"], &["--permission-mode", "acceptEdits"]),
        (&["--output-format", "xml"], &["--output-format", "stream-json"]),
        (&["--output-format", "stream-json"], &["--verbose"]),
        (&["--session-id", "mine"], &["--session-id", "UUID"]),
        (&["--session-id", &long], &["--session-id", "UUID"]),
        (&["--resume"], &["--resume needs the id of a session"]),
        (&["--resume", "mine"], &["No conversation found with session ID: mine"]),
        (
            &["--resume-session-at", "0f0e0d0c-0b0a-4908-8706-050403020100"],
            &["--resume-session-at", "--resume"],
        ),
        (&["--continue"], &["no session to continue"]),
        (&["--settings", "missing.json"], &["--settings", "missing.json", "no such file"]),
        (&["--settings", "folder"], &["--settings", "folder", "not a file"]),
        (&["--settings", "huge.json"], &["--settings", "huge.json"]),
        (&["--settings", "{bad"], &["--settings"]),
        (&["--settings", "[]"], &["--settings"]),
        (&["--managed-settings", "{bad"], &["--managed-settings"]),
        (&["--setting-sources", "moon"], &["--setting-sources", "'moon'"]),
        (&["--mcp-config", "missing.json"], &["--mcp-config", "missing.json"]),
        (&["--mcp-config", "{bad"], &["--mcp-config", "not JSON"]),
        (&["--agents", "{bad"], &["--agents", "not JSON"]),
        (&["--agent", "nobody"], &["nobody"]),
        (&["--json-schema", "{bad"], &["--json-schema", "not JSON"]),
        (&["--json-schema", r#"{"type":7}"#], &["schema"]),
        (&["--system-prompt-file", "missing.txt"], &["missing.txt"]),
        (&["--add-dir", "/no/such/place"], &["/no/such/place"]),
    ];
    for (words, expected) in cases {
        let mut ran = place.task(&model, ["hi"].into_iter().chain(words.iter().copied()));
        // An input that stays open and silent is not waited for.
        refused(&ran.stdin(Stdio::piped()).run(), expected);
    }
    assert!(model.requests().is_empty() && place.transcripts().is_empty());
}

#[test]
fn pit_K4_a_proxy_that_cannot_be_one_is_refused_and_not_gone_past() {
    let (place, model) = (Place::new(), hello());
    for address in
        ["::::", "http://", "not an address", "ftp://127.0.0.1:9", "socks5://ada:secret@127.0.0.1:9"]
    {
        for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY"] {
            let ran = place.task(&model, ["hi"]).env(name, address).run();
            refused(&ran, &[name, "http or https proxy"]);
            assert!(!ran.err.contains("secret"), "{ran:?}");
        }
    }
    assert!(model.requests().is_empty());
    let mut local = place.task(&model, ["hi"]);
    local.env("ALL_PROXY", "socks5://127.0.0.1:9").env("NO_PROXY", "127.0.0.1,localhost").run().well();
}

#[test]
fn pit_K4_clients_are_told_the_same_and_read_it_as_a_result_where_there_is_one() {
    let (place, model) = (Place::new(), hello());
    let unknown = "0f0e0d0c-0b0a-4908-8706-050403020100";
    // What was said, what the line says, and whether the command line itself was fine.
    let cases: &[(&[&str], &str, bool)] = &[
        (&["--nope"], "unknown option '--nope'", false),
        (&["--resume", unknown], "No conversation found with session ID: 0f0e0d0c", true),
        (&["--settings", "missing.json"], "there is no such file", true),
        (&["--settings", "{bad"], "--settings", true),
        (&["--system-prompt-file", "missing.txt"], "missing.txt", true),
        (&["--continue"], "no session to continue", true),
    ];
    for (words, line, has_result) in cases {
        let mut command = place.pelton(CLIENT.into_iter().chain(words.iter().copied()));
        let ran = command.asks(&model).stdin(Stdio::piped()).run();
        refused(&ran, &[line]);
        if *has_result {
            let result = ran.result();
            assert_eq!(
                (&result["subtype"], &result["is_error"]),
                (&json!("error_during_execution"), &json!(true))
            );
            assert!(result["errors"][0].as_str().unwrap().contains(line), "{result}");
        } else {
            assert_eq!(ran.out, "", "{words:?}");
        }
    }
    assert!(model.requests().is_empty());
}

fn client(place: &Place, model: &ScriptedModel) -> Command {
    let mut command = place.pelton(CLIENT);
    command.asks(model);
    command
}

#[test]
fn pit_K4_lines_that_are_no_messages_end_the_session() {
    let (place, model) = (Place::new(), hello());
    let deep = "[".repeat(200_000);
    let inside = format!(
        r#"{{"type":"user","message":{{"role":"user","content":{}{}}}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    for line in [
        "nonsense",
        r#"{"type":"user""#,
        "[1]",
        "42",
        "null",
        "\"hi\"",
        "\0\0",
        "{'type':'user'}",
        &deep,
        &inside,
    ] {
        let ran = client(&place, &model).run_with_input(&format!("{line}\n"));
        refused(&ran, &["standard input"]);
        assert_eq!(ran.out, "");
        // The same without an end of the line, and behind a prompt that is answered.
        refused(&client(&place, &model).run_with_input(line), &["standard input"]);
    }
    assert!(model.requests().is_empty());
}

#[test]
fn messages_that_cannot_be_used_are_answered_and_the_session_goes_on() {
    let (place, model) = (Place::new(), hello());
    let request = |body: Value| json!({"type": "control_request", "request_id": "r", "request": body});
    // What is said, and what is found in an answer; nothing for what is passed over.
    let cases: &[(Value, Option<&str>)] = &[
        (json!({}), None),
        (json!({"type": "tomorrow"}), None),
        (json!({"type": "keep_alive"}), None),
        (
            json!({"type": "control_response", "response": {"subtype": "success", "request_id": "nobody's"}}),
            None,
        ),
        (json!({"type": "control_cancel_request", "request_id": "nobody's"}), None),
        (json!({"type": "user"}), Some("error_during_execution")),
        (json!({"type": "user", "message": {"role": "user", "content": 7}}), Some("error_during_execution")),
        (json!({"type": "user", "message": {"role": "user", "content": []}}), Some("error_during_execution")),
        (json!({"type": "user", "message": {"role": "user", "content": ""}}), Some("error_during_execution")),
        (request(json!({"subtype": "tomorrow"})), Some("Unsupported control request subtype: tomorrow")),
        (request(json!({})), Some("Unsupported control request subtype")),
        (request(Value::Null), Some("Unsupported control request subtype")),
        (
            request(json!({"subtype": "set_permission_mode", "mode": "moon"})),
            Some("there is no permission mode 'moon'"),
        ),
        (request(json!({"subtype": "set_permission_mode"})), Some("set_permission_mode: mode is missing")),
        (request(json!({"subtype": "set_model", "model": 7})), Some("set_model: model is no text")),
        (
            request(json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": "many"})),
            Some("\"subtype\":\"error\""),
        ),
        (request(json!({"subtype": "mcp_reconnect"})), Some("serverName is missing")),
        (request(json!({"subtype": "mcp_reconnect", "serverName": "moon"})), Some("Server not found: moon")),
        (request(json!({"subtype": "stop_task", "task_id": "moon"})), Some("No task found with ID: moon")),
        (
            request(json!({"subtype": "rewind_files", "user_message_id": "moon"})),
            Some("File rewinding is not enabled."),
        ),
        (request(json!({"subtype": "apply_flag_settings", "settings": 7})), Some("\"subtype\":\"error\"")),
        (request(json!({"subtype": "read_file", "path": "/no/such/file"})), Some("\"subtype\":\"error\"")),
    ];
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "hi"}});
    for (line, answer) in cases {
        let ran = client(&place, &model).run_with_input(&format!("{line}\n{prompt}\n"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}: {ran:?}");
        assert!(ran.took < SOON, "{line}");
        let frames = ran.frames();
        assert_eq!(of_type(&frames, "result").last().unwrap()["result"], "hello", "{line}");
        match answer {
            Some(answer) => assert!(ran.out.contains(answer), "{line}: {}", ran.out),
            None => {
                assert!(
                    !ran.out.contains("informational") && !ran.out.contains("control_response"),
                    "{line}"
                );
            }
        }
    }
}

/// Nothing that the program needs to know is asked for: who gives no prompt, no key and no screen is told what is missing.
#[test]
fn pit_K4_nothing_is_asked_where_nobody_can_answer() {
    let (place, model) = (Place::new(), hello());
    let fresh = place.temp().join("fresh");
    let mut without_key = place.pelton(["-p", "hi"]);
    without_key.env("HOME", &fresh).env("CLAUDE_CONFIG_DIR", fresh.join("config"));
    refused(&without_key.run(), &["ANTHROPIC_API_KEY"]);
    refused(&place.task(&model, []).run(), &["no prompt"]);
    refused(&place.task(&model, []).stdin(Stdio::piped()).run(), &["no prompt"]);
    refused(&place.pelton([]).asks(&model).run(), &["-p"]);
    refused(&place.pelton(["frobnicate"]).asks(&model).run(), &["-p"]);
    assert!(model.requests().is_empty());
    // An open input that nobody writes to is not waited for when there is a prompt.
    let ran = place.task(&model, ["hi"]).stdin(Stdio::piped()).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"), "{ran:?}");
    assert!(ran.took < SOON, "{:?}", ran.took);
    let ran = place.task(&model, ["/nothing", "--output-format", "json"]).run();
    refused(&ran, &["Unknown command: /nothing"]);
    assert_eq!((&ran.result()["is_error"], &ran.result()["num_turns"]), (&json!(true), &json!(0)));
}

/// What the server refuses is told on both streams, and not asked for again where that was said.
#[test]
fn pit_K4_what_the_server_refuses_is_told_on_both_streams() {
    for (status, words) in [(401, "401"), (403, "403"), (429, "429"), (500, "500"), (529, "529"), (413, "")] {
        let model = model(Script::new().step(Step::status(status).always()));
        let place = Place::new();
        for format in [&["--output-format", "json"][..], &["--output-format", "stream-json", "--verbose"]] {
            let mut command = place.task(&model, ["hi"].into_iter().chain(format.iter().copied()));
            let ran = command.env("CLAUDE_CODE_MAX_RETRIES", "0").run();
            refused(&ran, &[]);
            let result = ran.result();
            assert_eq!(result["is_error"], true);
            assert_eq!(result["api_error_status"], status, "{result}");
            assert!(
                ran.err.contains(words) || !result["result"].as_str().unwrap_or_default().is_empty(),
                "{ran:?}"
            );
        }
    }
}

/// A client that ends behind an error reads why, also where it reads no messages.
#[test]
fn pit_K4_a_session_that_ends_behind_an_error_says_why_on_standard_error() {
    let place = Place::new();
    let refuses = model(Script::new().step(Step::status(400).message("not today").always()));
    let asks = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    for (line, words) in [(asks, "not today"), ("{\"type\":\"user\"}\n", "nothing in it")] {
        let ran = client(&place, &refuses).run_with_input(line);
        assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{ran:?}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains(words), "{ran:?}");
        assert_eq!(ran.result()["is_error"], true);
    }
    let ran = client(&place, &hello()).run_with_input(asks);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
}
