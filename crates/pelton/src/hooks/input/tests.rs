use super::*;

fn base() -> Base {
    Base {
        session_id: "S".into(),
        transcript_path: "/t.jsonl".into(),
        cwd: "/w".into(),
        prompt_id: Some("P".into()),
        permission_mode: Some("default".into()),
        ..Base::default()
    }
}

fn call() -> ToolCall {
    ToolCall { name: "Bash".into(), input: json!({"command": "ls"}), id: "toolu_1".into() }
}

/// The fields of an event after those that every event has, in their order; and what matchers look at.
#[track_caller]
fn check(event: EventInput, matched: Option<&str>, expected: &str) {
    let input = HookInput { base: base(), event };
    let json = input.to_json();
    assert_eq!(subject(input.event(), &json), matched);
    let text = json.to_string();
    let before = format!(
        r#"{{"session_id":"S","transcript_path":"/t.jsonl","cwd":"/w","prompt_id":"P","permission_mode":"default","hook_event_name":"{}""#,
        input.event().name()
    );
    assert_eq!(text, format!("{before},{expected}}}"));
}

#[test]
fn each_event_tells_its_fields() {
    let call_text = r#""tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"toolu_1""#;
    let second = Duration::from_secs(1);
    check(EventInput::PreToolUse { call: call() }, Some("Bash"), call_text);
    check(
        EventInput::PostToolUse { call: call(), response: json!({"stdout": "a"}), duration: second },
        Some("Bash"),
        &format!(r#"{call_text},"tool_response":{{"stdout":"a"}},"duration_ms":1000"#),
    );
    check(
        EventInput::PostToolUseFailure {
            call: call(),
            error: "E".into(),
            is_interrupt: false,
            duration: second,
        },
        Some("Bash"),
        &format!(r#"{call_text},"error":"E","is_interrupt":false,"duration_ms":1000"#),
    );
    check(
        EventInput::PostToolBatch { calls: vec![(call(), json!("seen"))] },
        None,
        &format!(r#""tool_calls":[{{{call_text},"tool_response":"seen"}}]"#),
    );
    check(
        EventInput::PermissionRequest {
            tool_name: "Bash".into(),
            tool_input: json!({}),
            suggestions: vec![],
        },
        Some("Bash"),
        r#""tool_name":"Bash","tool_input":{},"permission_suggestions":[]"#,
    );
    check(EventInput::UserPromptSubmit { prompt: "hi".into() }, None, r#""prompt":"hi""#);
    check(
        EventInput::Stop {
            stop_hook_active: true,
            last_assistant_message: Some("done".into()),
            background_tasks: vec![json!({"id": "b1"})],
        },
        None,
        r#""stop_hook_active":true,"last_assistant_message":"done","background_tasks":[{"id":"b1"}],"session_crons":[]"#,
    );
    check(
        EventInput::SubagentStop {
            stop_hook_active: false,
            agent_id: "a1".into(),
            agent_type: "helper".into(),
            agent_transcript_path: "/a.jsonl".into(),
            last_assistant_message: None,
            background_tasks: Vec::new(),
        },
        Some("helper"),
        r#""stop_hook_active":false,"agent_id":"a1","agent_transcript_path":"/a.jsonl","agent_type":"helper","background_tasks":[],"session_crons":[]"#,
    );
    check(
        EventInput::StopFailure {
            error: "overloaded".into(),
            error_details: None,
            last_assistant_message: Some("x".into()),
        },
        Some("overloaded"),
        r#""error":"overloaded","last_assistant_message":"x""#,
    );
    check(
        EventInput::SessionStart { source: "startup".into(), model: Some("m".into()) },
        Some("startup"),
        r#""source":"startup","model":"m""#,
    );
    check(EventInput::SessionEnd { reason: "other".into() }, Some("other"), r#""reason":"other""#);
    check(
        EventInput::SubagentStart { agent_id: "a1".into(), agent_type: "helper".into() },
        Some("helper"),
        r#""agent_id":"a1","agent_type":"helper""#,
    );
    check(
        EventInput::PreCompact { trigger: "auto".into(), custom_instructions: None },
        Some("auto"),
        r#""trigger":"auto","custom_instructions":null"#,
    );
    check(
        EventInput::PostCompact { trigger: "manual".into(), compact_summary: "s".into() },
        Some("manual"),
        r#""trigger":"manual","compact_summary":"s""#,
    );
    check(
        EventInput::Notification {
            message: "m".into(),
            title: None,
            notification_type: "idle_prompt".into(),
        },
        Some("idle_prompt"),
        r#""message":"m","notification_type":"idle_prompt""#,
    );
    let fields = json!({"file_path": "/w/.env", "event": "change"});
    let other =
        |event, fields: &Value| EventInput::Other { event, fields: fields.as_object().unwrap().clone() };
    check(other(HookEvent::FileChanged, &fields), Some(".env"), r#""file_path":"/w/.env","event":"change""#);
    check(
        other(HookEvent::ConfigChange, &json!({"source": "user_settings"})),
        Some("user_settings"),
        r#""source":"user_settings""#,
    );
}

#[test]
fn an_agent_and_its_effort_stand_before_the_event() {
    let base = Base {
        agent_id: Some("a1".into()),
        agent_type: Some("helper".into()),
        effort: Some("high".into()),
        transcript_path: PathBuf::new(),
        prompt_id: None,
        permission_mode: None,
        ..base()
    };
    let input = HookInput { base, event: EventInput::SessionEnd { reason: "clear".into() } };
    assert_eq!(
        input.to_json().to_string(),
        r#"{"session_id":"S","transcript_path":"","cwd":"/w","agent_id":"a1","agent_type":"helper","effort":{"level":"high"},"hook_event_name":"SessionEnd","reason":"clear"}"#
    );
}

#[test]
fn the_call_in_question_is_known() {
    let id = |event| HookInput { base: base(), event }.tool_use_id().map(str::to_owned);
    assert_eq!(id(EventInput::PreToolUse { call: call() }).as_deref(), Some("toolu_1"));
    assert_eq!(id(EventInput::SessionEnd { reason: "other".into() }), None);
    let fields = json!({"tool_name": "Bash", "tool_use_id": "toolu_9"}).as_object().unwrap().clone();
    assert_eq!(
        id(EventInput::Other { event: HookEvent::PermissionDenied, fields }).as_deref(),
        Some("toolu_9")
    );
}
