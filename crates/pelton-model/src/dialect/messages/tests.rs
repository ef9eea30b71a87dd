use std::sync::Arc;

use expect_test::{Expect, expect};

use super::*;
use crate::error::ErrorKind;

fn manner(ask: &Ask, max_tokens: u32) -> Manner {
    Manner { max_tokens, streaming: ask.streaming, fast: false }
}

fn written(ask: &Ask, max_tokens: u32) -> String {
    let body = body(ask, manner(ask, max_tokens), &BTreeMap::new(), &Map::new());
    assert_eq!(body.length(), body.to_vec().len() as u64);
    let text = String::from_utf8(body.to_vec()).unwrap();
    serde_json::from_str::<Value>(&text).unwrap();
    text
}

fn ask(model: &str) -> Ask {
    let messages = vec![Bytes::from_static(br#"{"role":"user","#), Bytes::from_static(br#""content":"hi"}"#)];
    Ask::new(model, 64_000, Arc::default(), messages)
}

#[test]
fn a_bare_request_has_nothing_it_does_not_need() {
    expect![[r#"{"model":"some-model","max_tokens":64000,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#]]
        .assert_eq(&written(&ask("some-model"), 64_000));
}

#[test]
fn a_full_request_has_its_parts_in_a_fixed_order() {
    let prefix = Prefix {
        system: Bytes::from_static(br#"[{"type":"text","text":"be kind"}]"#),
        tools: Bytes::from_static(br#"[{"name":"Read"}]"#),
    };
    let ask = Ask {
        prefix: Arc::new(prefix),
        effort: Some(Effort::High),
        user_id: Some("a\"b".to_owned()),
        streaming: false,
        ..ask("opus[1m]")
    };
    expect![[
        r#"{"model":"claude-opus-5-5","max_tokens":20041,"stream":false,"system":[{"type":"text","text":"be kind"}],"tools":[{"name":"Read"}],"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"high"},"metadata":{"user_id":"a\"b"},"messages":[{"role":"user","content":"hi"}]}"#
    ]]
    .assert_eq(&written(&ask, 20_041));
}

#[test]
fn further_fields_win_but_for_what_the_conversation_is_made_of() {
    let ask = Ask { effort: Some(Effort::High), user_id: Some("u".to_owned()), ..ask("claude-opus-5-5") };
    let extra = serde_json::json!({
        "temperature": 0.5, "thinking": {"type": "disabled"}, "output_config": {"format": "f"},
        "a \"b\"": [1], "model": "another", "messages": [], "stream": false, "tools": [], "max_tokens": 1, "system": "x",
    });
    let extra = extra.as_object().unwrap();
    let body = body(&ask, manner(&ask, 64_000), &BTreeMap::new(), extra);
    let sent: Value = serde_json::from_slice(&body.to_vec()).unwrap();
    assert_eq!(
        sent,
        serde_json::json!({
            "model": "claude-opus-5-5", "max_tokens": 64_000, "stream": true, "temperature": 0.5,
            "thinking": {"type": "disabled"}, "output_config": {"effort": "high", "format": "f"},
            "metadata": {"user_id": "u"}, "a \"b\"": [1], "messages": [{"role": "user", "content": "hi"}],
        })
    );
}

#[test]
fn the_prefix_and_the_messages_are_not_copied() {
    let mut ask = ask("m");
    ask.prefix = Arc::new(Prefix { system: Bytes::from(b"[1]".to_vec()), tools: Bytes::from_static(b"[ ]") });
    let body = body(&ask, manner(&ask, 1), &BTreeMap::new(), &Map::new());
    let has = |bytes: &Bytes| body.pieces().iter().any(|piece| piece.as_ptr() == bytes.as_ptr());
    assert!(has(&ask.prefix.system) && ask.messages.iter().all(has));
    assert!(!has(&ask.prefix.tools), "an empty list of tools is left out");
}

#[test]
fn thinking_is_what_the_model_accepts() {
    use Thinking::*;
    let adaptive = r#"{"type":"adaptive","display":"omitted"}"#;
    let disabled = r#"{"type":"disabled"}"#;
    let enabled = |budget: u32| format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#);
    let check = |model: &str, thinking, effort, max_tokens, expected: Option<&str>| {
        let ask = Ask { thinking, effort, ..ask(model) };
        let sent: Value = serde_json::from_str(&written(&ask, max_tokens)).unwrap();
        let expected = expected.map(|json| serde_json::from_str::<Value>(json).unwrap());
        assert_eq!(sent.get("thinking"), expected.as_ref(), "{model} {thinking:?} {effort:?}");
    };
    for model in ["claude-opus-5-5", "claude-sonnet-5", "claude-opus-4-6", "claude-haiku-5-5"] {
        check(model, ModelDefault, None, 64_000, Some(adaptive));
        check(model, Adaptive, None, 64_000, Some(adaptive));
    }
    check("claude-sonnet-4-5-20250929", ModelDefault, None, 32_000, Some(&enabled(31_999)));
    check("claude-sonnet-4-5", Adaptive, None, 32_000, Some(&enabled(31_999)));
    check("claude-sonnet-4-5", Enabled { budget: 4000 }, None, 32_000, Some(&enabled(4000)));
    check("claude-sonnet-4-5", Enabled { budget: 4000 }, None, 3500, Some(&enabled(3499)));
    check("claude-sonnet-4-5", Enabled { budget: 1 }, None, 3500, Some(&enabled(1024)));
    check("claude-sonnet-4-5", ModelDefault, None, 1024, None);
    check("claude-sonnet-4-5", Disabled, None, 32_000, Some(disabled));
    check("claude-opus-4-6", Enabled { budget: 4000 }, None, 32_000, Some(&enabled(4000)));
    check("claude-opus-5-5", Enabled { budget: 4000 }, None, 32_000, Some(adaptive));
    check("claude-opus-5-5", Disabled, None, 32_000, Some(adaptive));
    check("claude-opus-5", Disabled, Some(Effort::High), 32_000, Some(disabled));
    check("claude-opus-5", Disabled, Some(Effort::Max), 32_000, Some(adaptive));
    check("local-model", ModelDefault, None, 32_000, None);
    check("local-model", Enabled { budget: 4000 }, None, 32_000, Some(&enabled(4000)));
}

#[test]
fn effort_is_what_the_model_accepts() {
    let check = |model: &str, effort, expected: Option<&str>| {
        let sent: Value = serde_json::from_str(&written(&Ask { effort, ..ask(model) }, 64_000)).unwrap();
        assert_eq!(sent["output_config"]["effort"].as_str(), expected, "{model} {effort:?}");
    };
    check("claude-opus-5-5", None, None);
    check("claude-opus-5-5", Some(Effort::XHigh), Some("xhigh"));
    check("claude-opus-4-6", Some(Effort::XHigh), Some("high"));
    check("claude-haiku-4-5", Some(Effort::Low), None);
    check("local-model", Some(Effort::Max), Some("max"));
}

#[test]
fn a_task_budget_is_told_with_its_beta() {
    let check = |effort, total, remaining, expected: &str| {
        let ask =
            Ask { task_budget: Some(TaskBudget { total, remaining }), effort, ..ask("claude-opus-5-5") };
        let sent: Value = serde_json::from_str(&written(&ask, 64_000)).unwrap();
        assert_eq!(sent["output_config"].to_string(), expected);
        assert_eq!(betas(&ask, manner(&ask, 1)).collect::<Vec<_>>(), ["task-budgets-2026-03-13"]);
    };
    check(None, 50_000, None, r#"{"task_budget":{"type":"tokens","total":50000}}"#);
    check(
        Some(Effort::Low),
        50_000,
        Some(12),
        r#"{"effort":"low","task_budget":{"type":"tokens","total":50000,"remaining":12}}"#,
    );
    // Less than the least is the rest of it.
    check(None, 5000, None, r#"{"task_budget":{"type":"tokens","total":20000,"remaining":5000}}"#);
    check(None, 5000, Some(9000), r#"{"task_budget":{"type":"tokens","total":20000,"remaining":5000}}"#);
    check(None, 5000, Some(9), r#"{"task_budget":{"type":"tokens","total":20000,"remaining":9}}"#);
    assert_eq!(betas(&ask("claude-opus-5-5"), manner(&ask("claude-opus-5-5"), 1)).count(), 0);
}

#[allow(clippy::needless_pass_by_value, reason = "`expect!` at the call site")]
fn check_event(name: &str, data: &str, expected: Expect) {
    let event = event(name, data);
    expected.assert_eq(&format!("{event:?}"));
}

#[test]
fn events_are_read() {
    check_event("", r#"{"type":"ping"}"#, expect!["Some(Ping)"]);
    check_event("ping", "{}", expect!["Some(Ping)"]);
    check_event("", "[DONE]", expect!["Some(Ping)"]);
    check_event("", "{\"type\":\"pi", expect!["None"]);
    check_event("", "7", expect!["None"]);
    check_event("", r#"{"type":"content_block_stop","index":3}"#, expect!["Some(BlockStop { index: 3 })"]);
    check_event(
        "",
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n"}}"#,
        expect![[r#"Some(BlockDelta { index: 1, change: Text("\"a\\n\"") })"#]],
    );
    check_event(
        "",
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"","estimated_tokens":50}}"#,
        expect![[
            r#"Some(BlockDelta { index: 1, change: Thinking { text: "\"\"", estimated_tokens: Some(50) } })"#
        ]],
    );
}

#[test]
fn unknown_events_are_known_to_be_so() {
    check_event("", r#"{"type":"tea_break","index":"x","object":{}}"#, expect!["Some(Unknown)"]);
    check_event("", r#"{"type":"tea_break","delta":7}"#, expect!["Some(Unknown)"]);
    check_event("", r#"{"no_type":true}"#, expect!["Some(Unknown)"]);
    check_event("", r#"{"type":7,"index":-1}"#, expect!["Some(Unknown)"]);
    check_event(
        "",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"smell_delta","smell":"tea"}}"#,
        expect!["Some(BlockDelta { index: 0, change: Unknown })"],
    );
    check_event(
        "",
        r#"{"type":"content_block_delta","index":0,"delta":"?"}"#,
        expect!["Some(BlockDelta { index: 0, change: Unknown })"],
    );
}

fn tail_of(data: &str) -> Tail {
    match event("", data) {
        Some(Event::MessageDelta(tail)) => tail,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_end_of_a_message_is_read() {
    let tail = tail_of(
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"category":"bio"}},"usage":{"output_tokens":5}}"#,
    );
    assert_eq!(tail.stop_reason, Some(StopReason::Refusal));
    assert_eq!(tail.stop_details.unwrap()["category"], "bio");
    assert_eq!(tail.usage.output_tokens, Some(5));
    // One strange part does not spoil the rest.
    let tail =
        tail_of(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":"none of yours"}"#);
    assert_eq!((tail.stop_reason, tail.usage.output_tokens), (Some(StopReason::EndTurn), None));
}

fn kind_of(status: u16, body: &str) -> ErrorKind {
    from_answer(status, body.as_bytes(), None).kind
}

fn check_words(status: u16, message: &str, expected: &ErrorKind) {
    let body =
        serde_json::json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    assert_eq!(kind_of(status, &body.to_string()), *expected, "{status} {message}");
}

#[test]
fn sizes_are_read_in_everybodys_words() {
    use ErrorKind::*;
    let too_long = |tokens, limit| PromptTooLong { tokens, limit };
    let overflow = OutputOverflow { input: 178_959, max_tokens: 64_000, limit: 200_000 };
    for (status, words, expected) in [
        (
            400,
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
            overflow.clone(),
        ),
        (400, "input length and max_tokens exceed context limit: 178959 + 64000 > 200000", overflow),
        (400, "prompt is too long: 208310 tokens > 200000 maximum", too_long(Some(208_310), Some(200_000))),
        (
            400,
            "max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for claude-x-4-5",
            MaxTokensTooHigh { limit: 8192 },
        ),
        (400, "prompt is too long: 208,310 tokens > 200,000 maximum", too_long(Some(208_310), Some(200_000))),
        (413, "Request exceeds the maximum size", RequestTooLarge),
        (400, "Request exceeds the maximum allowed content length", RequestTooLarge),
        (
            400,
            "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens",
            too_long(Some(9001), Some(8192)),
        ),
        (400, "This endpoint's maximum context length is 8192 tokens.", too_long(None, Some(8192))),
        (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            too_long(Some(1_200_000), Some(1_048_576)),
        ),
        (400, "Please reduce the length of the messages or completion.", too_long(None, None)),
        (
            400,
            "The number of tokens to keep from the initial prompt is greater than the context length",
            too_long(None, None),
        ),
        (500, "prompt too long; exceeded max context length by 5 tokens", too_long(None, None)),
        (
            400,
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            too_long(None, Some(32_768)),
        ),
        (400, "Input is too long for requested model.", too_long(None, None)),
        (400, "Your input exceeds the context window of this model", too_long(None, None)),
        (429, "prompt is too long: 1 tokens > 0 maximum", RateLimited),
        (400, "Too many tokens, please wait before trying again.", InvalidRequest),
        (429, "This request would exceed your rate limit; maximum context length is 5", RateLimited),
    ] {
        check_words(status, words, &expected);
    }
    let llama = r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (20031 tokens) exceeds the available context size (8192 tokens), try increasing it","n_prompt_tokens":20031,"n_ctx":8192}}"#;
    assert_eq!(kind_of(400, llama), too_long(None, Some(8192)));
    let openai =
        r#"{"error":{"message":"no","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    assert_eq!(kind_of(400, openai), too_long(None, None));
}

#[test]
fn repairable_requests_are_told_apart() {
    use ErrorKind::*;
    let betas = |names: &[&str]| BetaRefused { names: names.iter().map(|name| (*name).to_owned()).collect() };
    for (words, expected) in [
        (
            "messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block",
            ThinkingBound,
        ),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", ThinkingBound),
        (
            "messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
            ThinkingBound,
        ),
        (
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`",
            ThinkingBound,
        ),
        (
            "messages.7.content.3.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
            Image { path: Some("messages.7.content.3".to_owned()) },
        ),
        (
            "messages.0.content.1.document.source.base64: The PDF is too long",
            Image { path: Some("messages.0.content.1".to_owned()) },
        ),
        ("Could not process image", Image { path: None }),
        (
            "Unexpected value(s) `a-thing-2026-01-31`, `old_1-20250131` for the `anthropic-beta` header. Please consult \
             our documentation at platform.claude.com/docs or try again without the header.",
            betas(&["a-thing-2026-01-31", "old_1-20250131"]),
        ),
        ("invalid beta flag", betas(&[])),
        ("anthropic_beta: Extra inputs are not permitted", betas(&[])),
        ("Unsupported beta header(s): mine-2026-02-03.", betas(&["mine-2026-02-03"])),
        ("system: alphabet soup is not supported", InvalidRequest),
        ("Your credit balance is too low to access the API", Billing),
        ("temperature: Extra inputs are not permitted", InvalidRequest),
        ("messages.2: all messages must have non-empty content about an .image: x", InvalidRequest),
    ] {
        check_words(400, words, &expected);
    }
}

#[test]
fn credentials_that_have_run_out_are_worth_renewing() {
    for words in [
        "OAuth token has been revoked. Please log in again.",
        "The security token included in the request is expired",
        "The security token included in the request is invalid.",
        "Signature expired: 20260131T000000Z is now earlier than 20260131T001000Z",
    ] {
        check_words(403, words, &ErrorKind::Authentication);
    }
    check_words(403, "Your organisation does not have access to this model", &ErrorKind::Permission);
}

#[test]
fn what_a_server_refused_is_neither_named_nor_used() {
    let budget = Some(crate::TaskBudget { total: 50_000, remaining: None });
    let mut ask = Ask { task_budget: budget, ..ask("claude-opus-5-5") };
    assert!(written(&ask, 1000).contains("task_budget"));
    ask.refused_betas.add(&[TASK_BUDGET_BETA.to_owned()]);
    assert!(!written(&ask, 1000).contains("task_budget"));
    assert_eq!(super::betas(&ask, manner(&ask, 1000)).count(), 0);
}

#[test]
fn statuses_and_types_are_read() {
    use ErrorKind::*;
    for (status, name, expected) in [
        (400, "invalid_request_error", InvalidRequest),
        (401, "authentication_error", Authentication),
        (402, "billing_error", Billing),
        (403, "permission_error", Permission),
        (404, "not_found_error", NotFound),
        (408, "", Timeout),
        (409, "conflict_error", Server),
        (413, "request_too_large", RequestTooLarge),
        (422, "", InvalidRequest),
        (429, "rate_limit_error", RateLimited),
        (500, "api_error", Server),
        (502, "", Server),
        (503, "", Server),
        (503, "overloaded_error", Overloaded),
        (504, "timeout_error", Timeout),
        (529, "overloaded_error", Overloaded),
        (529, "", Overloaded),
        (418, "", Other),
        (307, "", Other),
    ] {
        let body = serde_json::json!({"type": "error", "error": {"type": name, "message": "m"}}).to_string();
        assert_eq!(kind_of(status, &body), expected, "{status} {name}");
    }
    let code = |status, code: &str| {
        let error =
            serde_json::json!({"type": "rate_limit_error", "message": "m", "details": {"error_code": code}});
        kind_of(status, &serde_json::json!({"type": "error", "error": error}).to_string())
    };
    assert_eq!(code(429, "enforced_spend_limit_reached"), Billing);
    assert_eq!(code(429, "ramp_limit_exceeded"), RateLimited);
}

#[test]
fn errors_inside_a_stream_are_read_by_name() {
    use ErrorKind::*;
    for (data, expected) in [
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, Overloaded),
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#, RateLimited),
        (r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#, Server),
        (r#"{"type":"error","error":{"type":"timeout_error","message":"m"}}"#, Timeout),
        (r#"{"type":"error","error":{"type":"invalid_request_error","message":"m"}}"#, InvalidRequest),
        (r#"{"type":"error","error":{"type":"never_heard_of","message":"m"}}"#, Server),
        (r#"{"error":{"message":"slow down","code":429}}"#, RateLimited),
        (r#"{"object":"error","message":"engine died"}"#, Server),
    ] {
        match event("", data) {
            Some(Event::Error(error)) => assert_eq!((error.kind, error.status), (expected, None), "{data}"),
            other => panic!("{data}: {other:?}"),
        }
    }
}

#[test]
fn errors_are_told_in_one_line() {
    let check = |status, body: &str, id, expected: Expect| {
        expected.assert_eq(&from_answer(status, body.as_bytes(), id).to_string());
    };
    check(
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_2"}"#,
        None,
        expect!["529 overloaded_error: Overloaded (request req_2)"],
    );
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"a\n\n  b"},"request_id":"req_2"}"#,
        Some("req_1"),
        expect!["400 invalid_request_error: a b (request req_1)"],
    );
    check(500, "", None, expect!["HTTP 500: the server gave no reason"]);
    check(
        502,
        "<html><head><title>502 Bad Gateway</title></head></html>",
        None,
        expect!["HTTP 502: 502 Bad Gateway"],
    );
    check(502, "<h1>oh</h1>", None, expect!["HTTP 502: the answer is a web page"]);
    check(503, "upstream gone\n", None, expect!["HTTP 503: upstream gone"]);
    check(400, r#"{"error":"just words"}"#, None, expect!["HTTP 400: just words"]);
    check(422, r#"{"detail":"field required"}"#, None, expect!["HTTP 422: field required"]);
    check(
        307,
        "",
        None,
        expect![
            "HTTP 307: the server points to another address; a request with credentials is not sent there"
        ],
    );
    let long = from_answer(500, "é".repeat(10_000).as_bytes(), None);
    assert_eq!(long.message.chars().count(), 2000);
}
