//! stream-json and json, field by field.

use std::collections::HashSet;

use pelton_testkit::{Script, ScriptedModel, Step, text, thinking, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, Ran, model, of_type};
use crate::task::{TEN_TURNS_ALLOWED, ten_turns_place};

pub const STREAM: [&str; 3] = ["--output-format", "stream-json", "--verbose"];

/// The type of a field, as the protocol's own tables name it.
#[derive(Debug, Clone, Copy)]
enum Is {
    Text,
    Count,
    Number,
    Flag,
    Null,
    Object,
    List,
    TextOrNull,
}

impl Is {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Count => value.is_u64(),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::Null => value.is_null(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::TextOrNull => value.is_string() || value.is_null(),
        }
    }
}

#[track_caller]
fn check(value: &Value, fields: &[(&str, Is)]) {
    for (name, is) in fields {
        let field = value.get(name).unwrap_or_else(|| panic!("{name} is missing: {value}"));
        assert!(is.holds(field), "{name} is not {is:?}: {value}");
    }
}

const USAGE: &[(&str, Is)] = &[
    ("input_tokens", Is::Count),
    ("cache_creation_input_tokens", Is::Count),
    ("cache_read_input_tokens", Is::Count),
    ("output_tokens", Is::Count),
];

/// What every frame must have to be read by the official clients.
#[track_caller]
fn check_frame(frame: &Value) {
    check(frame, &[("type", Is::Text), ("session_id", Is::Text), ("uuid", Is::Text)]);
    frame["uuid"].as_str().unwrap().parse::<uuid::Uuid>().unwrap();
    match (frame["type"].as_str().unwrap(), frame["subtype"].as_str()) {
        ("system", Some("init")) => check(
            frame,
            &[
                ("apiKeySource", Is::Text),
                ("claude_code_version", Is::Text),
                ("cwd", Is::Text),
                ("tools", Is::List),
                ("mcp_servers", Is::List),
                ("model", Is::Text),
                ("permissionMode", Is::Text),
                ("slash_commands", Is::List),
                ("output_style", Is::Text),
                ("skills", Is::List),
                ("plugins", Is::List),
            ],
        ),
        ("system", Some("status")) if frame["status"].is_null() => {
            check(frame, &[("compact_result", Is::Text)]);
        }
        ("system", Some("status")) => check(frame, &[("status", Is::Text)]),
        ("system", Some("compact_boundary")) => {
            let metadata = &frame["compact_metadata"];
            check(
                metadata,
                &[("trigger", Is::Text), ("pre_tokens", Is::Number), ("post_tokens", Is::Number)],
            );
        }
        ("system", Some("api_retry")) => check(
            frame,
            &[
                ("attempt", Is::Count),
                ("max_retries", Is::Count),
                ("retry_delay_ms", Is::Number),
                ("error", Is::Text),
            ],
        ),
        ("system", Some("thinking_tokens")) => {
            check(frame, &[("estimated_tokens", Is::Count), ("estimated_tokens_delta", Is::Count)]);
        }
        ("system", Some("model_fallback")) => check(
            frame,
            &[
                ("trigger", Is::Text),
                ("original_model", Is::Text),
                ("fallback_model", Is::Text),
                ("content", Is::Text),
            ],
        ),
        ("system", Some("model_refusal_no_fallback")) => check(
            frame,
            &[("original_model", Is::Text), ("refused_user_message_uuid", Is::Text), ("content", Is::Text)],
        ),
        ("system", Some("task_started")) => check(
            frame,
            &[
                ("task_id", Is::Text),
                ("tool_use_id", Is::Text),
                ("description", Is::Text),
                ("task_type", Is::Text),
            ],
        ),
        ("system", Some("task_updated")) => check(frame, &[("task_id", Is::Text), ("patch", Is::Object)]),
        ("system", Some("task_notification")) => check(
            frame,
            &[("task_id", Is::Text), ("status", Is::Text), ("output_file", Is::Text), ("summary", Is::Text)],
        ),
        ("system", Some("background_tasks_changed")) => check(frame, &[("tasks", Is::List)]),
        ("system", Some("permission_denied")) => check(
            frame,
            &[
                ("tool_name", Is::Text),
                ("tool_use_id", Is::Text),
                ("decision_reason_type", Is::Text),
                ("decision_reason", Is::Text),
                ("message", Is::Text),
            ],
        ),
        ("system", Some("informational")) => check(frame, &[("content", Is::Text), ("level", Is::Text)]),
        ("system", Some("loop_event")) => {
            check(frame, &[("kind", Is::Text), ("reason", Is::Text), ("turn", Is::Count)]);
        }
        ("assistant", None) => check_assistant(frame),
        ("user", None) => check_user(frame),
        ("stream_event", None) => check(frame, &[("event", Is::Object), ("parent_tool_use_id", Is::Null)]),
        ("result", Some(_)) => check_result(frame),
        other => panic!("a frame of an unknown kind, {other:?}: {frame}"),
    }
}

#[track_caller]
fn check_assistant(frame: &Value) {
    check(frame, &[("message", Is::Object), ("parent_tool_use_id", Is::Null)]);
    let message = &frame["message"];
    let fields = [
        ("id", Is::Text),
        ("type", Is::Text),
        ("role", Is::Text),
        ("model", Is::Text),
        ("content", Is::List),
    ];
    check(message, &fields);
    check(message, &[("stop_reason", Is::TextOrNull), ("stop_sequence", Is::Null), ("usage", Is::Object)]);
    check(&message["usage"], USAGE);
    let blocks = message["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 1, "one frame per block: {frame}");
    match blocks[0]["type"].as_str().unwrap() {
        "text" => check(&blocks[0], &[("text", Is::Text)]),
        "thinking" => check(&blocks[0], &[("thinking", Is::Text), ("signature", Is::Text)]),
        "tool_use" | "server_tool_use" => {
            check(&blocks[0], &[("id", Is::Text), ("name", Is::Text), ("input", Is::Object)]);
        }
        other => panic!("a block of an unknown kind, {other}"),
    }
}

#[track_caller]
fn check_user(frame: &Value) {
    check(frame, &[("message", Is::Object), ("parent_tool_use_id", Is::Null), ("timestamp", Is::Text)]);
    assert_eq!(frame["message"]["role"], "user");
    for block in frame["message"]["content"].as_array().unwrap() {
        if block["type"] == "tool_result" {
            check(block, &[("tool_use_id", Is::Text)]);
            assert!(block["content"].is_string() || block["content"].is_array(), "{block}");
            let detail =
                frame.get("tool_use_result").unwrap_or_else(|| panic!("no tool_use_result: {frame}"));
            if block["is_error"] == json!(true) && detail.is_string() {
                assert!(detail.as_str().unwrap().starts_with("Error: "), "{detail}");
            } else {
                assert!(detail.is_object(), "{detail}");
            }
        }
    }
}

#[track_caller]
fn check_result(frame: &Value) {
    check(
        frame,
        &[
            ("duration_ms", Is::Count),
            ("duration_api_ms", Is::Count),
            ("is_error", Is::Flag),
            ("num_turns", Is::Count),
            ("stop_reason", Is::TextOrNull),
            ("total_cost_usd", Is::Number),
            ("usage", Is::Object),
            ("modelUsage", Is::Object),
            ("permission_denials", Is::List),
        ],
    );
    check(&frame["usage"], USAGE);
    if frame["subtype"] == "success" {
        check(frame, &[("result", Is::Text)]);
    } else {
        check(frame, &[("errors", Is::List)]);
        assert!(!frame["errors"].as_array().unwrap().is_empty(), "{frame}");
    }
    for model in frame["modelUsage"].as_object().unwrap().values() {
        check(
            model,
            &[
                ("inputTokens", Is::Count),
                ("outputTokens", Is::Count),
                ("cacheReadInputTokens", Is::Count),
                ("cacheCreationInputTokens", Is::Count),
                ("webSearchRequests", Is::Count),
                ("costUSD", Is::Number),
                ("contextWindow", Is::Count),
                ("maxOutputTokens", Is::Count),
            ],
        );
    }
}

/// A stream as a whole: legal frames of one session with names of their own, one init before and one result behind
/// everything.
#[track_caller]
pub fn check_stream(ran: &Ran) -> Vec<Value> {
    let frames = ran.frames();
    frames.iter().for_each(check_frame);
    let names: HashSet<&str> = frames.iter().map(|frame| frame["uuid"].as_str().unwrap()).collect();
    assert_eq!(names.len(), frames.len(), "a uuid twice");
    assert!(frames.iter().all(|frame| frame["session_id"] == frames[0]["session_id"]));
    assert_eq!(frames.iter().filter(|frame| frame["subtype"] == "init").count(), 1);
    assert_eq!(frames[0]["subtype"], "init");
    assert_eq!(of_type(&frames, "result").len(), 1);
    assert_eq!(frames.last().unwrap()["type"], "result");
    frames
}

#[test]
fn a_task_of_ten_turns_as_a_stream_of_frames() {
    let (place, model) = ten_turns_place();
    let ran = place.task(&model, ["count"].into_iter().chain(TEN_TURNS_ALLOWED).chain(STREAM)).run();
    ran.well();
    let frames = check_stream(&ran);
    let init = &frames[0];
    assert_eq!(init["cwd"], place.work().to_str().unwrap());
    assert_eq!(
        (&init["apiKeySource"], &init["permissionMode"]),
        (&json!("ANTHROPIC_API_KEY"), &json!("acceptEdits"))
    );
    for tool in ["Read", "Write", "Edit", "Bash", "Glob", "Grep"] {
        assert!(init["tools"].as_array().unwrap().contains(&json!(tool)), "{tool}");
    }

    // One frame per block, and the blocks of one answer under one id.
    let assistant = of_type(&frames, "assistant");
    let ids: Vec<&str> = assistant.iter().map(|frame| frame["message"]["id"].as_str().unwrap()).collect();
    let mut answers = ids.clone();
    answers.dedup();
    assert_eq!((assistant.len(), answers.len()), (15, 11));
    assert_eq!(answers.iter().collect::<HashSet<_>>().len(), 11);
    assert!(assistant.iter().all(|frame| frame["message"]["stop_reason"].is_null()));

    // Every call is answered, in the order of asking, behind the answer it is part of.
    let calls: Vec<&str> =
        assistant.iter().filter_map(|frame| frame["message"]["content"][0]["id"].as_str()).collect();
    let users = of_type(&frames, "user");
    let results: Vec<&str> =
        users.iter().map(|frame| frame["message"]["content"][0]["tool_use_id"].as_str().unwrap()).collect();
    assert_eq!(calls, results);
    assert_eq!(users[0]["tool_use_result"]["numFiles"], 1);
    assert_eq!(users[1]["tool_use_result"]["file"]["totalLines"], 3);
    assert_eq!(users[2]["tool_use_result"]["newString"], "2");
    assert_eq!(users[5]["tool_use_result"]["stdout"], "sum");

    // The names in the stream are the names on disk.
    let lines = place.transcript();
    // What the model is told beside the conversation is on disk alone.
    let (attached, said): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| line.get("attachment").is_some());
    let recorded: Vec<&str> = said.iter().filter_map(|line| line["uuid"].as_str()).collect();
    assert_eq!(attached.len(), 1, "a command changed a file that was written before: {attached:?}");
    for frame in assistant.iter().chain(&users) {
        let uuid = frame["uuid"].as_str().unwrap();
        let line =
            lines.iter().find(|line| line["uuid"] == uuid).unwrap_or_else(|| panic!("{uuid} is not on disk"));
        assert_eq!(line["message"]["content"], frame["message"]["content"]);
        assert_eq!(line["sessionId"], frame["session_id"]);
    }
    assert_eq!(
        recorded.len(),
        2 + assistant.len() + users.len(),
        "the surroundings, the prompt, and all of the above"
    );

    let result = frames.last().unwrap();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert_eq!((&result["result"], &result["stop_reason"]), (&json!("All done: Ω."), &json!("end_turn")));
    assert_eq!(
        (&result["terminal_reason"], &result["api_error_status"]),
        (&json!("completed"), &Value::Null)
    );
    // One, and one for every result.
    assert_eq!(result["num_turns"], 12);
    let sent: u64 = model
        .reply_requests()
        .iter()
        .map(|seen| seen.reply.usage.as_ref().unwrap()["output_tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(result["usage"]["output_tokens"], sent);
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
}

#[test]
fn loop_E20_json_is_the_result_alone_and_verbose_the_whole_stream_as_a_list() {
    let (place, model) = ten_turns_place();
    let words = ["count", "--output-format", "json"].into_iter().chain(TEN_TURNS_ALLOWED);
    let ran = place.task(&model, words).run();
    ran.well();
    assert_eq!(ran.frames().len(), 1);
    check_frame(&ran.result());
    assert_eq!(ran.result()["result"], "All done: Ω.");

    let (place, model) = ten_turns_place();
    let words = ["count", "--verbose", "--output-format", "json"].into_iter().chain(TEN_TURNS_ALLOWED);
    let ran = place.task(&model, words).run();
    let list: Vec<Value> = serde_json::from_str(ran.well()).unwrap();
    list.iter().for_each(check_frame);
    assert_eq!(list[0]["subtype"], "init");
    assert_eq!(list.last().unwrap()["result"], "All done: Ω.");
    assert_eq!((of_type(&list, "assistant").len(), of_type(&list, "user").len()), (15, 11));
}

fn thinker() -> ScriptedModel {
    model(
        Script::new()
            .reply([
                thinking("Where am I?").fragments(2),
                text("Let me look.").fragments(3),
                tool("Bash", json!({"command": "pwd", "description": "Look"})).fragments(2),
            ])
            .reply([text("Here.")]),
    )
}

/// A stream in short: names of events with the index of their block, `(kind)` for a frame of the assistant.
fn in_short(frames: &[Value]) -> Vec<String> {
    let short = frames.iter().filter_map(|frame| match frame["type"].as_str().unwrap() {
        "stream_event" => {
            let event = &frame["event"];
            let index = event["index"].as_u64().map(|index| format!(" {index}")).unwrap_or_default();
            Some(format!("{}{index}", event["type"].as_str().unwrap()))
        }
        "assistant" => Some(format!("({})", frame["message"]["content"][0]["type"].as_str().unwrap())),
        "user" => Some("(result)".to_owned()),
        "system" => frame["status"].as_str().map(|status| format!("({status})")),
        _ => None,
    });
    let mut short: Vec<String> = short.collect();
    short.dedup();
    short
}

#[test]
fn loop_E23_partial_messages_come_in_order_and_only_when_asked_for() {
    let (place, model) = (Place::new(), thinker());
    let ran = place.task(&model, ["where?", "--include-partial-messages"].into_iter().chain(STREAM)).run();
    ran.well();
    let frames = check_stream(&ran);
    // A block's frame comes before its stop event. Thinking alone is no answer yet: should the stream break now, all of
    // it would be asked for again. Its frame comes with the next block's, when it is there to stay.
    assert_eq!(
        in_short(&frames),
        [
            "(requesting)",
            "message_start",
            "content_block_start 0",
            "content_block_delta 0",
            "content_block_stop 0",
            "content_block_start 1",
            "content_block_delta 1",
            "(thinking)",
            "(text)",
            "content_block_stop 1",
            "content_block_start 2",
            "content_block_delta 2",
            "(tool_use)",
            "content_block_stop 2",
            "message_delta",
            "message_stop",
            "(result)",
            "(requesting)",
            "message_start",
            "content_block_start 0",
            "content_block_delta 0",
            "(text)",
            "content_block_stop 0",
            "message_delta",
            "message_stop",
        ]
    );
    // The events are the server's own, pings left out.
    let sent: Vec<Value> = model
        .reply_requests()
        .iter()
        .flat_map(|seen| seen.reply.events.clone())
        .map(|event| serde_json::from_str(&event.data).unwrap())
        .filter(|event: &Value| event["type"] != "ping")
        .collect();
    let forwarded: Vec<&Value> =
        of_type(&frames, "stream_event").iter().map(|frame| &frame["event"]).collect();
    assert_eq!(forwarded, sent.iter().collect::<Vec<_>>());

    let (place, model) = (Place::new(), thinker());
    let ran = place.task(&model, ["where?"].into_iter().chain(STREAM)).run();
    ran.well();
    assert_eq!(in_short(&check_stream(&ran)), ["(thinking)", "(text)", "(tool_use)", "(result)", "(text)"]);
}

#[test]
fn a_frame_longer_than_clients_read_goes_without_its_detail() {
    let place = Place::new();
    // Two characters each in JSON, and told four times: before, after, and the difference.
    let write = |mark: &str| {
        let content = format!("{}{mark}\n", "\"".repeat(99)).repeat(1_500);
        tool("Write", json!({"file_path": "wide.txt", "content": content}))
    };
    let model = model(Script::new().reply([write("a")]).reply([write("b")]).reply([text("done")]));
    let words = ["widen", "--permission-mode", "acceptEdits"].into_iter().chain(STREAM);
    let ran = place.task(&model, words).run();
    ran.well();
    for line in ran.out.lines() {
        assert!(line.len() < 1024 * 1024, "a frame of {} bytes", line.len());
    }
    let frames = ran.frames();
    let results = of_type(&frames, "user");
    assert!(results[0]["tool_use_result"].is_object() && results[1].get("tool_use_result").is_none());
    assert_eq!(results[1]["message"]["content"][0]["type"], "tool_result");
    // Nothing is left out on disk.
    let lines = pelton::transcript::whole_lines(&place.transcripts()[0]).unwrap();
    let mut lines = lines.map(|line| serde_json::from_slice::<Value>(&line.unwrap()).unwrap());
    let line = lines.find(|line| line["uuid"] == results[1]["uuid"]).unwrap();
    assert!(line["toolUseResult"].to_string().len() > 1024 * 1024);
}

#[test]
fn a_retried_request_is_announced_and_an_exhausted_one_is_a_result() {
    let place = Place::new();
    let overloaded = || Step::status(529).header("retry-after-ms", "10");
    let server = model(Script::new().step(overloaded()).reply([text("there")]));
    let ran = place.task(&server, ["hi"].into_iter().chain(STREAM)).run();
    ran.well();
    let frames = check_stream(&ran);
    let retry = frames.iter().find(|frame| frame["subtype"] == "api_retry").unwrap();
    assert_eq!(
        (&retry["attempt"], &retry["error_status"], &retry["error"]),
        (&json!(1), &json!(529), &json!("overloaded"))
    );

    let server = model(Script::new().step(overloaded().times(2)));
    let ran = place.task(&server, ["hi"].into_iter().chain(STREAM)).env("CLAUDE_CODE_MAX_RETRIES", "1").run();
    assert_eq!(ran.code, Some(1));
    let frames = check_stream(&ran);
    let shown = of_type(&frames, "assistant");
    assert_eq!(shown.len(), 1);
    assert_eq!(
        (&shown[0]["error"], &shown[0]["message"]["model"]),
        (&json!("overloaded"), &json!("<synthetic>"))
    );
    let result = frames.last().unwrap();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!((&result["api_error_status"], &result["stop_reason"]), (&json!(529), &json!("stop_sequence")));
    assert_eq!(result["result"], shown[0]["message"]["content"][0]["text"]);
}

#[test]
fn formats_that_do_not_go_together_are_refused() {
    let (place, model) = (Place::new(), thinker());
    let ran = place.task(&model, ["hi", "--output-format", "stream-json"]).run();
    ran.failed(1, &["--output-format stream-json needs --verbose"]);
    let ran = place.task(&model, ["hi", "--include-partial-messages"]).run();
    ran.failed(1, &["--include-partial-messages needs --output-format stream-json"]);
    assert!(ran.out.is_empty() && model.requests().is_empty());
}
