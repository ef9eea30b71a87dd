use serde_json::json;

use super::*;

fn speaker(event: HookEvent) -> Speaker<'static> {
    Speaker { event, name: "Event:Subject", label: "hook.sh", on_failure: OnFailure::Usual }
}

/// What was said, in a few words: the outcome, then everything that is there.
fn words(said: &Said) -> String {
    let mut words = vec![format!("{:?}", said.outcome)];
    words.extend(said.stop.iter().map(|stop| format!("stop={stop}")));
    words.extend(said.block.iter().map(|block| format!("block={block}")));
    words.extend(said.permission.iter().map(answer));
    words.extend(said.updated_input.iter().map(|input| format!("input={input}")));
    words.extend(said.context.iter().map(|context| format!("context={context}")));
    words.extend(said.messages.iter().map(|message| format!("message={message}")));
    if !said.extras.is_empty() {
        words.push(format!("extras={}", Value::Object(said.extras.clone())));
    }
    words.join(" | ")
}

fn answer(answer: &PermissionAnswer) -> String {
    format!("{:?}={}", answer.decision, answer.reason.as_deref().unwrap_or("-"))
}

#[track_caller]
fn exit(event: HookEvent, code: i32, stdout: &str, stderr: &str, expected: &str) {
    let said = speaker(event).exited(Some(code), stdout, stderr);
    assert_eq!(words(&said), expected, "{event:?} exit {code} {stdout:?} {stderr:?}");
}

#[test]
fn exit_codes_without_an_object() {
    use HookEvent::*;
    exit(PreToolUse, 0, "", "", "Success");
    exit(PreToolUse, 0, "hello", "noise", "Success");
    exit(PreToolUse, 2, "", "no\n", "Blocked | Deny=[hook.sh]: no\n");
    exit(PreToolUse, 2, "hello", "", "Blocked | Deny=[hook.sh]: (no words on stderr)");
    exit(Stop, 2, "", "tests fail\n", "Blocked | block=[hook.sh]: tests fail\n");
    exit(PostToolUse, 2, "", "lint", "Blocked | block=[hook.sh]: lint");
    exit(UserPromptSubmit, 2, "", "secret", "Blocked | block=[hook.sh]: secret");
    exit(PreCompact, 2, "", "later", "Blocked | block=[hook.sh]: later");
    // Nothing can be blocked here: the words are shown.
    for event in [SessionStart, SessionEnd, Notification, StopFailure, PermissionRequest, PostCompact] {
        exit(event, 2, "", "oh\n", "Failed | message=Event:Subject hook: [hook.sh]: oh");
    }
    // Any other code is shown and blocks nothing, not even 1 or 127.
    exit(
        PreToolUse,
        1,
        "",
        "\n boom \nmore",
        "Failed | message=Event:Subject hook [hook.sh] exited with code 1: boom.",
    );
    exit(Stop, 127, "", "", "Failed | message=Event:Subject hook [hook.sh] exited with code 127.");
    exit(Stop, 1, "text", "", "Failed | message=Event:Subject hook [hook.sh] exited with code 1.");
    exit(WorktreeCreate, 1, "", "disk full", "Blocked | block=[hook.sh]: disk full");
    let killed = speaker(Stop).exited(None, "", "");
    assert_eq!(words(&killed), "Failed | message=Event:Subject hook [hook.sh] was ended by a signal.");
}

#[test]
fn plain_text_reaches_the_model_where_it_should() {
    use HookEvent::*;
    for event in [SessionStart, UserPromptSubmit, UserPromptExpansion] {
        exit(event, 0, " note \n", "", "Success | context=note");
        exit(event, 0, " \n", "", "Success");
        exit(event, 0, "{see notes} hi", "", "Success | context={see notes} hi");
        exit(event, 1, "note", "", "Failed | message=Event:Subject hook [hook.sh] exited with code 1.");
    }
    for event in [PreToolUse, PostToolUse, Stop, SessionEnd] {
        exit(event, 0, "note", "", "Success");
    }
}

#[test]
fn an_object_that_cannot_be_read_is_said_so() {
    let said = speaker(HookEvent::PreToolUse).exited(Some(0), r#"{"decision":"#, "");
    assert_eq!((said.outcome, said.permission), (HookOutcome::Failed, None));
    assert!(said.messages[0].contains("printed JSON that cannot be read"), "{:?}", said.messages);
}

#[track_caller]
fn object(event: HookEvent, output: &Value, expected: &str) {
    let printed = speaker(event).exited(Some(0), &format!("\n{output:#}\n"), "");
    assert_eq!(words(&printed), expected, "{event:?} {output}");
    assert_eq!(speaker(event).answered(output), printed, "a callback means the same");
    // Another code than 0 and 2 does not matter once an object was printed.
    assert_eq!(speaker(event).exited(Some(7), &output.to_string(), "noise"), printed);
}

#[test]
fn fields_that_every_event_knows() {
    use HookEvent::*;
    object(Stop, &json!({}), "Success");
    object(Stop, &json!({"continue": true, "suppressOutput": true}), "Success");
    object(Stop, &json!({"continue": false, "stopReason": "enough"}), "Success | stop=enough");
    object(Stop, &json!({"continue": false}), "Success | stop=Stopped by the hook [hook.sh].");
    object(Stop, &json!({"stopReason": "alone it means nothing"}), "Success");
    object(Notification, &json!({"systemMessage": "hi"}), "Success | message=hi");
    object(Stop, &json!({"async": true, "decision": "block"}), "Success");
    object(Stop, &json!({"decision": null, "reason": null, "hookSpecificOutput": null}), "Success");
}

#[test]
fn decisions_of_the_old_form() {
    use HookEvent::*;
    for event in [
        UserPromptSubmit,
        UserPromptExpansion,
        PostToolUse,
        PostToolUseFailure,
        PostToolBatch,
        Stop,
        SubagentStop,
        ConfigChange,
        PreCompact,
        TaskCreated,
    ] {
        object(event, &json!({"decision": "block", "reason": "no"}), "Blocked | block=no");
        object(event, &json!({"decision": "approve"}), "Success");
    }
    object(Stop, &json!({"decision": "block"}), "Blocked | block=Blocked by the hook [hook.sh].");
    object(PreToolUse, &json!({"decision": "block", "reason": "no"}), "Blocked | Deny=no");
    object(PreToolUse, &json!({"decision": "approve", "reason": "ok"}), "Success | Allow=ok");
    object(
        SessionEnd,
        &json!({"decision": "block", "reason": "no"}),
        "Failed | message=Event:Subject hook: no",
    );
}

fn own(event: HookEvent, mut fields: Value) -> Value {
    fields["hookEventName"] = json!(event.name());
    json!({ "hookSpecificOutput": fields })
}

#[test]
fn answers_of_one_event() {
    use HookEvent::*;
    let pre = |fields| own(PreToolUse, fields);
    let decide =
        |decision: &str| pre(json!({"permissionDecision": decision, "permissionDecisionReason": "why"}));
    object(PreToolUse, &decide("allow"), "Success | Allow=why");
    object(PreToolUse, &decide("ask"), "Success | Ask=why");
    object(PreToolUse, &decide("defer"), "Success | Defer=why");
    object(PreToolUse, &decide("deny"), "Blocked | Deny=why");
    object(PreToolUse, &pre(json!({"permissionDecision": "allow"})), "Success | Allow=-");
    object(
        PreToolUse,
        &pre(json!({"permissionDecision": "deny"})),
        "Blocked | Deny=Refused by the hook [hook.sh].",
    );
    object(
        PreToolUse,
        &pre(json!({"permissionDecision": "allow", "updatedInput": {"a": 1}, "additionalContext": "note"})),
        r#"Success | Allow=- | input={"a":1} | context=note"#,
    );
    object(
        PreModelSwitch,
        &own(PreModelSwitch, json!({"permissionDecision": "deny"})),
        "Blocked | Deny=Refused by the hook [hook.sh].",
    );
    // The new form is the last word.
    let mut both = decide("ask");
    both["decision"] = json!("block");
    object(PreToolUse, &both, "Success | Ask=why");

    let request = |decision| own(PermissionRequest, json!({"decision": decision}));
    object(PermissionRequest, &request(json!({"behavior": "allow"})), "Success | Allow=-");
    object(
        PermissionRequest,
        &request(json!({"behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": []})),
        r#"Success | Allow=- | input={"a":1} | extras={"updatedPermissions":[]}"#,
    );
    object(
        PermissionRequest,
        &request(json!({"behavior": "deny", "message": "no", "interrupt": true})),
        r#"Blocked | Deny=no | extras={"interrupt":true}"#,
    );
    object(
        PostToolUse,
        &own(PostToolUse, json!({"additionalContext": "note", "updatedToolOutput": {"x": 1}})),
        r#"Success | context=note | extras={"updatedToolOutput":{"x":1}}"#,
    );
    object(
        SessionStart,
        &own(SessionStart, json!({"sessionTitle": "T"})),
        r#"Success | extras={"sessionTitle":"T"}"#,
    );
    // Without a name the answer is for the event that was asked about.
    object(Stop, &json!({"hookSpecificOutput": {"additionalContext": "note"}}), "Success | context=note");
}

#[test]
fn what_makes_no_sense_is_said_and_has_no_effect() {
    use HookEvent::*;
    let pre = |fields| own(PreToolUse, fields);
    for (event, output, what) in [
        (Stop, json!({"continue": "false"}), "said `continue` and neither true nor false"),
        (Stop, json!({"decision": "deny"}), "said a `decision` that is neither `block` nor `approve`"),
        (Stop, json!({"decision": 1}), "said a `decision` that is neither `block` nor `approve`"),
        (Stop, json!({"systemMessage": 1}), "said a `systemMessage` that is no text"),
        (Stop, json!({"hookSpecificOutput": []}), "said a `hookSpecificOutput` that is no object"),
        (
            PostToolUse,
            pre(json!({"permissionDecision": "deny"})),
            "answered for another event in `hookSpecificOutput`",
        ),
        (
            PreToolUse,
            pre(json!({"permissionDecision": "block"})),
            "said a `permissionDecision` that is none of allow, deny, ask and defer",
        ),
        (PreToolUse, pre(json!({"updatedInput": "x"})), "said an `updatedInput` that is no object"),
        (
            PermissionRequest,
            own(PermissionRequest, json!({"decision": {"behavior": "maybe"}})),
            "said a `behavior` that is neither `allow` nor `deny`",
        ),
    ] {
        object(event, &output, &format!("Success | message=Event:Subject hook [hook.sh] {what}."));
    }
    let no_object = speaker(Stop).answered(&json!("block"));
    assert_eq!(
        words(&no_object),
        "Failed | message=Event:Subject hook [hook.sh] answered with something that is no object."
    );
}

#[test]
fn exit_two_is_the_last_word() {
    use HookEvent::*;
    let allow = own(PreToolUse, json!({"permissionDecision": "allow"})).to_string();
    exit(PreToolUse, 2, &allow, "no", "Blocked | Deny=[hook.sh]: no");
    let reason =
        own(PreToolUse, json!({"permissionDecision": "ask", "permissionDecisionReason": "mine"})).to_string();
    exit(PreToolUse, 2, &reason, "no", "Blocked | Deny=mine");
    exit(Stop, 2, r#"{"reason":"mine"}"#, "no", "Blocked | block=mine");
    exit(
        Stop,
        2,
        r#"{"continue":false,"stopReason":"end"}"#,
        "no",
        "Blocked | stop=end | block=[hook.sh]: no",
    );
}

#[test]
fn failures_block_only_where_somebody_wants_that() {
    let limit = Duration::from_millis(1_500);
    let why = "did not end within 1.5 seconds and was stopped.";
    let notice = format!("message=Event:Subject hook [hook.sh] {why}");
    let pre = speaker(HookEvent::PreToolUse);
    assert_eq!(words(&pre.timed_out(limit, false)), format!("TimedOut | {notice}"));
    assert_eq!(
        words(&pre.timed_out(limit, true)),
        format!("TimedOut | Deny=The hook [hook.sh] {why} | {notice}")
    );
    let strict = Speaker { on_failure: OnFailure::Blocks, ..speaker(HookEvent::Stop) };
    assert_eq!(
        words(&strict.failed("broke")),
        "Failed | block=The hook [hook.sh] broke. | message=Event:Subject hook [hook.sh] broke."
    );
    assert_eq!(
        words(&speaker(HookEvent::Stop).failed("broke")),
        "Failed | message=Event:Subject hook [hook.sh] broke."
    );
    assert_eq!(words(&Speaker::cancelled()), "Cancelled");
}

#[test]
fn words_before_going_into_the_background_are_no_answer() {
    let stdout = "{\"async\":true,\"asyncTimeout\":5}\n{\"systemMessage\":\"later\"}\n";
    exit(HookEvent::PostToolUse, 0, stdout, "", "Success | message=later");
    exit(HookEvent::PostToolUse, 0, "{\"async\":true}\n", "", "Success");
    assert_eq!(goes_on_in_background(r#"{"async":true}"#), Some(None));
    assert_eq!(
        goes_on_in_background(r#"{"async":true,"asyncTimeout":250}"#),
        Some(Some(Duration::from_millis(250)))
    );
    for line in ["{}", r#"{"async":false}"#, r#"{"async":"true"}"#, "async", ""] {
        assert_eq!(goes_on_in_background(line), None, "{line}");
    }
}

#[test]
fn long_labels_are_cut_in_notices_on_a_character() {
    let label = "ä".repeat(NOTICE_CHARS_MAX + 1);
    let said = Speaker { label: &label, ..speaker(HookEvent::Stop) }.failed("broke");
    assert_eq!(said.messages[0].chars().filter(|c| *c == 'ä').count(), NOTICE_CHARS_MAX);
}

fn permission_of(decision: PermissionDecision, reason: &str) -> Said {
    Said {
        permission: Some(PermissionAnswer { decision, reason: Some(reason.to_owned()) }),
        ..Said::default()
    }
}

#[test]
fn the_strongest_permission_wins_in_any_order() {
    use PermissionDecision::*;
    let strength = [Allow, Ask, Defer, Deny];
    for (rank, one) in strength.into_iter().enumerate() {
        for (other_rank, other) in strength.into_iter().enumerate() {
            let verdict = merge([permission_of(one, "one"), Said::default(), permission_of(other, "other")]);
            let answered = answer(&verdict.permission.unwrap());
            let expected = match rank.cmp(&other_rank) {
                std::cmp::Ordering::Less => format!("{other:?}=other"),
                std::cmp::Ordering::Equal => format!("{one:?}=one\nother"),
                std::cmp::Ordering::Greater => format!("{one:?}=one"),
            };
            assert_eq!(answered, expected);
        }
    }
    assert_eq!(merge([Said::default()]), Verdict::default());
    assert_eq!(merge([]), Verdict::default());
}

#[test]
fn one_that_blocks_or_stops_is_enough() {
    let block = |words: &str| Said { block: Some(words.to_owned()), ..Said::default() };
    let stop = |words: &str| Said { stop: Some(words.to_owned()), ..Said::default() };
    let verdict = merge([Said::default(), block("a\n"), block("b"), block("c"), Said::default()]);
    assert_eq!(verdict.block.as_deref(), Some("a\nb\nc"));
    let verdict = merge([block("a"), stop("first"), stop("second")]);
    assert_eq!((verdict.stop.as_deref(), verdict.block.as_deref()), (Some("first"), Some("a")));
}

#[test]
fn words_and_changes_keep_the_order_of_the_configuration() {
    let said = |n: i64| Said {
        context: Some(format!("context {n}")),
        messages: vec![format!("message {n}")],
        updated_input: Some(json!({"n": n})),
        extras: Map::from_iter([("title".to_owned(), json!(n)), (format!("only {n}"), json!(true))]),
        ..Said::default()
    };
    let verdict = merge([said(1), Said::default(), said(2)]);
    assert_eq!(verdict.contexts, ["context 1", "context 2"]);
    assert_eq!(verdict.updated_input, Some(json!({"n": 2})));
    assert_eq!(
        verdict.messages,
        ["message 1", "message 2", "2 hooks changed the same input; the last one's is used."]
    );
    assert_eq!(Value::Object(verdict.extras), json!({"title": 2, "only 1": true, "only 2": true}));
    assert_eq!(merge([said(1)]).messages, ["message 1"]);
}

#[test]
fn a_terminal_is_told_titles_notes_and_bells_and_nothing_else() {
    for (said, kept) in [
        ("\u{1b}]0;title\u{7}", Some("\u{1b}]0;title\u{7}")),
        ("\u{1b}]9;done\u{1b}\\", Some("\u{1b}]9;done\u{1b}\\")),
        ("\u{1b}]777;notify;a;b\u{7}\u{7}", Some("\u{1b}]777;notify;a;b\u{7}\u{7}")),
        ("words \u{7} around", Some("\u{7}")),
        ("\u{1b}[2J", None),
        ("\u{1b}]52;c;c2VjcmV0\u{7}", None),
        ("\u{1b}]8;;http://x\u{7}", None),
        ("\u{1b}]0;never ends", None),
        ("\u{1b}]0;a\u{1b}[2Jb\u{7}", Some("\u{7}")),
        ("\u{1b}]0\u{7}", None),
        ("plain", None),
    ] {
        assert_eq!(terminal_words(said).as_deref(), kept, "{said:?}");
    }
    assert_eq!(terminal_words(&format!("\u{1b}]0;{}\u{7}", "x".repeat(TERMINAL_BYTES_MAX))), None);
}
