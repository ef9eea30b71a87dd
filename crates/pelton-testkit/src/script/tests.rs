//! Scripts as people write them, and the mistakes they make.

use super::part::{self, Fragments};
use super::travel::{Chunk, EarlyEnd, Place};
use super::when::{Facts, Matcher};
use super::*;
use crate::strict::Rule;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

fn read(text: &str) -> Script {
    Script::from_yaml_or_json(text).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "the literal at each call reads best without a reference")]
fn check_error(text: &str, expected: Expect) {
    expected.assert_eq(&Script::from_yaml_or_json(text).unwrap_err().to_string());
}

#[test]
fn every_field_is_read() {
    let script = read(
        r#"
model: claude-sonnet-5-5
strict: {off: [known-model]}
seed: 7
vars: {dir: /tmp, port: 80}
steps:
  - when: {nth: 2, model: haiku, last_tool_result: a, last_user_text: b, tool: Read, system: c, has_tool: X,
           path: /v1/messages, stream: true, header: {x-app: cli}}
    times: 3
    reply:
      - thinking: hm
        signature: mine
      - text: Hello
        fragments: 3
        after: {1: {gate: slow}, 2: [{ping: true}, {pause_ms: 5}]}
      - "plain text"
      - tool: Read
        id: toolu_1
        input: {file_path: a}
        fragments: [2, 5]
      - tool: Bash
        input_json: '{"command": "l'
        fragments: random
      - redacted_thinking: data
      - raw_block: {type: future_block, x: 1}
        deltas: [{type: future_delta}]
      - gate: slow
      - pause_ms: 50
      - ping: true
      - comment: keep
      - event: {name: future_event, data: {a: 1}}
      - error: overloaded_error
    stop: tool_use
    stop_sequence: END
    stop_details: {category: cyber}
    usage: {input_tokens: 10}
    opening_ping: false
    non_streaming: refuse
    headers: {x-a: 1}
    pace: {chunk_bytes: 7, delay_ms: 2, jitter_ms: 3}
    line_end: crlf
    bom: true
    gzip: true
    fault: {malformed_json_at_event: 2, cut_after_bytes: 100}
  - status: 529
    always: true
    headers: {retry-after: "1"}
    body: {a: 1}
"#,
    );
    let when = When::any()
        .nth(2)
        .model("haiku")
        .last_tool_result("a")
        .last_user_text("b")
        .tool("Read")
        .system("c")
        .has_tool("X")
        .path("/v1/messages")
        .stream(true)
        .header("x-app", "cli");
    let reply = Step::reply([
        part::thinking("hm").signature("mine"),
        part::text("Hello")
            .fragments(3)
            .after(1, part::gate("slow"))
            .after(2, part::ping())
            .after(2, part::pause(Duration::from_millis(5))),
        part::text("plain text"),
        part::tool("Read", json!({"file_path": "a"})).id("toolu_1").fragments([2, 5]),
        part::tool_with_json("Bash", r#"{"command": "l"#).fragments(Fragments::Random),
        part::redacted_thinking("data"),
        part::raw_block_with_deltas(
            json!({"type": "future_block", "x": 1}),
            [json!({"type": "future_delta"})],
        ),
        part::gate("slow"),
        part::pause(Duration::from_millis(50)),
        part::ping(),
        part::comment("keep"),
        part::event("future_event", json!({"a": 1})),
        part::error("overloaded_error", ""),
    ])
    .when(when)
    .times(3)
    .stop("tool_use")
    .stop_sequence("END")
    .stop_details(json!({"category": "cyber"}))
    .usage("input_tokens", 10)
    .no_opening_ping()
    .refuse_non_streaming()
    .header("x-a", "1")
    .pace(Pace { chunk: Chunk::Bytes(7), delay: Duration::from_millis(2), jitter: Duration::from_millis(3) })
    .line_end(LineEnd::CrLf)
    .bom()
    .gzip()
    .fault(Fault::MalformedJsonAtEvent(2))
    .fault(Fault::cut_after_bytes(100));
    let status = Step::status(529).always().header("retry-after", "1").body(json!({"a": 1}));
    assert_eq!(script.steps, [reply, status]);
    assert_eq!(script.model.as_deref(), Some("claude-sonnet-5-5"));
    assert_eq!((script.seed, script.vars["port"].as_str()), (7, "80"));
    assert!(!script.strictness.is_on(Rule::KnownModel) && script.strictness.is_on(Rule::ToolPairs));
}

#[test]
fn every_fault_is_read() {
    use EarlyEnd::{Cut, End, Reset, Stall};
    use Place::{BeforeHeaders, Bytes, Events};
    for (text, end, place) in [
        ("cut_after_bytes: 1", Cut, Bytes(1)),
        ("cut_after_events: 2", Cut, Events(2)),
        ("end_after_bytes: 3", End, Bytes(3)),
        ("end_after_events: 4", End, Events(4)),
        ("reset_after_bytes: 5", Reset, Bytes(5)),
        ("reset_after_events: 6", Reset, Events(6)),
        ("stall_after_bytes: 7", Stall, Bytes(7)),
        ("stall_after_events: 8", Stall, Events(8)),
        ("close_before_headers: true", Cut, BeforeHeaders),
        ("reset_before_headers: true", Reset, BeforeHeaders),
        ("stall_before_headers: true", Stall, BeforeHeaders),
        ("headers_then_stall: true", Stall, Bytes(0)),
        ("empty_stream: true", End, Events(0)),
    ] {
        let script = read(&format!("steps: [{{fault: {{{text}}}}}]"));
        assert_eq!(script.steps, [Step::reply([]).fault(Fault::Ends(end, place))], "{text}");
    }
}

#[test]
fn json_and_yaml_say_the_same() {
    let json = r#"{"steps": [{"reply": "hi"}, {"status": 429, "message": "slow down"}]}"#;
    let yaml = "steps:\n- reply: hi\n- status: 429\n  message: slow down\n";
    assert_eq!(read(json).steps, read(yaml).steps);
    assert_eq!(read(yaml).steps, [Step::reply([part::text("hi")]), Step::status(429).message("slow down")]);
}

#[test]
fn unknown_fields_are_named_with_the_nearest_known() {
    check_error(
        "steps:\n- reply: hi\n- replay: hi",
        expect!["line 3: step 2, field `replay`: unknown field; did you mean `reply`?"],
    );
    check_error(
        "steps:\n- reply:\n  - text: a\n  - txt: b",
        expect!["line 4: step 1, reply item 2, field `txt`: unknown field; did you mean `text`?"],
    );
    check_error(
        "steps: [{reply: hi, when: {modl: x}}]",
        expect!["step 1, field `when.modl`: unknown field; did you mean `model`?"],
    );
    check_error("step: []", expect!["line 1: script, field `step`: unknown field; did you mean `steps`?"]);
    check_error(
        "steps: [{reply: hi, pace: {speed: 3}}]",
        expect![
            "step 1, field `pace.speed`: unknown field; known here: `chunk_bytes`, `delay_ms`, `jitter_ms`"
        ],
    );
    check_error(
        "steps: [{fault: {cut_after_event: 3}}]",
        expect!["step 1, field `fault.cut_after_event`: unknown field; did you mean `cut_after_events`?"],
    );
}

#[test]
fn wrong_values_are_named_with_a_way_out() {
    check_error(
        "steps: [{reply: [{text: 42}]}]",
        expect![[
            r#"step 1, reply item 1, field `text`: expected a text, found `42`; put it in quotes: `text: "42"`"#
        ]],
    );
    check_error(
        "steps: [{status: ok}]",
        expect![
            "step 1, field `status`: expected a whole number, found the text `ok`; write digits alone, without quotes or sign"
        ],
    );
    check_error(
        "steps: [{reply: hi, line_end: crfl}]",
        expect!["step 1, field `line_end`: unknown word `crfl`; did you mean `crlf`?"],
    );
    check_error(
        "steps: [{reply: [{tool: Read, input: a}]}]",
        expect![
            "step 1, reply item 1, field `input`: expected fields, found the text `a`; write fields below `input:`, or use `input_json` for a text that is no JSON object"
        ],
    );
    check_error(
        "steps: [{reply: [{text: a, fragments: {}}]}]",
        expect![
            "step 1, reply item 1, field `fragments`: expected where to cut, found fields; write a number of pieces, a list of places like `[2, 5]`, `random`, `whole` or `natural`"
        ],
    );
    check_error(
        "strict: {off: [tool-pears]}\nsteps: []",
        expect![[
            r#"line 1: script, field `strict.off`: there is no rule "tool-pears"; did you mean `tool-pairs`?"#
        ]],
    );
    check_error(
        "a: [",
        expect![
            "script: not YAML or JSON: did not find expected node content at line 2 column 1, while parsing a flow node; check the indentation, and put texts with `: `, `#` or `{` in quotes"
        ],
    );
}

#[test]
fn scripts_that_cannot_play_are_refused() {
    for (text, expected) in [
        ("seed: 1", "script, field `steps`: missing"),
        ("steps: [{}]", "step 1: the step says nothing to answer"),
        ("steps: [{reply: a, status: 500}]", "step 1, field `status`: a step is a reply or a status"),
        ("steps: [{status: 500, stop: end_turn}]", "step 1, field `stop`: a `status` step has no `stop`"),
        ("steps: [{reply: a, body: b}]", "step 1, field `body`: a `reply` step has no `body`"),
        ("steps: [{status: 99}]", "step 1, field `status`: 99 is no final HTTP status"),
        ("steps: [{reply: a, times: 0}]", "step 1, field `times`: a step that never plays"),
        ("steps: [{reply: a, times: 1, always: true}]", "step 1, field `always`: `times` and `always`"),
        (
            "steps: [{reply: a, headers: {content-length: 3}}]",
            "step 1, field `headers`: `content-length` is set",
        ),
        ("steps: [{reply: a, headers: {'a b': c}}]", "step 1, field `headers`: `a b` is not a header"),
        (
            "steps: [{reply: a, headers: {a: \"b\\r\\nc: d\"}}]",
            "step 1, field `headers`: `a` is not a header",
        ),
        (
            "steps: [{reply: a, pace: {chunk_bytes: 0}}]",
            "step 1, field `pace.chunk_bytes`: writes of no bytes",
        ),
        ("steps: [{reply: a, pace: {delay_ms: 9999999}}]", "step 1, field `pace.delay_ms`: longer than"),
        (
            "steps: [{fault: {cut_after_bytes: 1, stall_after_bytes: 2}}]",
            "step 1, field `fault`: an answer can end",
        ),
        (
            "steps: [{status: 500, fault: {cut_after_events: 1}}]",
            "step 1, field `fault`: a status has no events",
        ),
        (
            "steps: [{fault: {malformed_json_at_event: 0}}]",
            "step 1, field `fault.malformed_json_at_event`: events",
        ),
        ("steps: [{reply: a, when: {model: '('}}]", "step 1, field `when.model`: not a regular expression"),
        ("steps: [{reply: a, when: {header: {x: '('}}}]", "step 1, field `when.header.x`: not a regular"),
        ("steps: [{reply: a, when: {nth: 0}}]", "step 1, field `when.nth`: requests are counted from 1"),
        (
            "steps: [{reply: [{text: a, gate: b}]}]",
            "step 1, reply item 1, field `gate`: the item says several",
        ),
        ("steps: [{reply: [{fragments: 3}]}]", "step 1, reply item 1: the item says nothing"),
        (
            "steps: [{reply: [{gate: a, fragments: 3}]}]",
            "step 1, reply item 1, field `fragments`: a `gate` item",
        ),
        ("steps: [{reply: [{text: a, fragments: 0}]}]", "step 1, reply item 1, field `fragments`: no pieces"),
        (
            "steps: [{reply: [{text: a, fragments: [3, 1]}]}]",
            "step 1, reply item 1, field `fragments`: the places",
        ),
        ("steps: [{reply: [{text: a, id: x}]}]", "step 1, reply item 1, field `id`: a `text` item has no id"),
        (
            "steps: [{reply: [{text: a, signature: x}]}]",
            "step 1, reply item 1, field `signature`: a `text` item",
        ),
        (
            "steps: [{reply: [{text: a, input: {}}]}]",
            "step 1, reply item 1, field `input`: only a `tool` item",
        ),
        (
            "steps: [{reply: [{text: a, after: {x: {ping: true}}}]}]",
            "step 1, reply item 1, field `after.x`: not a",
        ),
        (
            "steps: [{reply: [{text: a, after: {1: {text: b}}}]}]",
            "step 1, reply item 1, after fragment 1, field `text`",
        ),
        (
            "steps: [{reply: [{ping: true, after: {1: {gate: b}}}]}]",
            "step 1, reply item 1, field `after`: nothing",
        ),
        (
            "steps: [{reply: [{error: api_error}, {text: b}]}]",
            "step 1, reply item 1, field `error`: nothing plays",
        ),
        (
            "steps: [{reply: [{raw_block: {x: 1}}]}]",
            "step 1, reply item 1, field `raw_block`: a block needs a type",
        ),
        (
            "steps: [{reply: [{comment: \"a\\nb\"}]}]",
            "step 1, reply item 1, field `comment`: a comment is one line",
        ),
        ("steps: [{reply: [{event: {data: 1}}]}]", "step 1, reply item 1, field `event.name`: missing"),
        (
            "steps: [{reply: [{event: {name: a, data: \"b\\nc\"}}]}]",
            "step 1, reply item 1, field `event`: a line",
        ),
        ("steps: [{reply: [{ping: false}]}]", "step 1, reply item 1, field `ping`: a ping that is not sent"),
        ("steps: [{reply: [{tool: ''}]}]", "step 1, reply item 1, field `tool`: a tool needs a name"),
    ] {
        let error = Script::from_yaml_or_json(text).map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with(expected), "{text}\n  said:     {said}\n  expected: {expected}");
        assert!(!error.way_out.is_empty(), "{text}: no way out");
    }
}

#[tokio::test]
async fn a_built_script_is_checked_when_it_starts() {
    let error = Script::new().step(Step::status(500).stop("end_turn")).start().await.unwrap_err();
    assert!(error.to_string().starts_with("step 1, field `stop`: a `status` step has no `stop`"), "{error}");
}

#[test]
fn every_field_and_rule_is_on_the_page() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripted-model.md");
    let page = std::fs::read_to_string(path).unwrap();
    let faults = read::FAULTS_COUNTED
        .iter()
        .map(|fault| fault.0)
        .chain(read::FAULTS_PLAIN.iter().map(|fault| fault.0));
    let fields =
        [read::SCRIPT_FIELDS, read::STEP_FIELDS, read::WHEN_FIELDS, read::ITEM_KINDS, read::ITEM_DETAILS];
    let words = fields.into_iter().flatten().copied().chain(faults).chain([read::MALFORMED]);
    let rules = Rule::ALL.iter().map(|rule| rule.name());
    for word in words.map(str::to_owned).chain(rules) {
        let told = ["`{}`", "`{}:", "\n{}:", "{{}:"].map(|form| form.replace("{}", &word));
        assert!(
            told.iter().any(|form| page.contains(form)),
            "{word} is not explained in docs/scripted-model.md"
        );
    }
}

#[test]
fn variables_are_filled_and_strangers_stay() {
    let values = [("dir", "/tmp"), ("match.1", "x"), ("nest", "${dir}")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
    for (text, filled) in [
        ("ls ${dir}/${match.1}", "ls /tmp/x"),
        ("echo ${HOME} $dir ${", "echo ${HOME} $dir ${"),
        ("$${dir}", "${dir}"),
        ("${nest}", "${dir}"),
        ("${a ${dir}", "${a /tmp"),
    ] {
        assert_eq!(fill::fill_text(text, &values), filled);
    }
    let value = json!({"${dir}": ["${dir}", 1, {"a": "${match.1}"}]});
    assert_eq!(fill::fill_value(&value, &values), json!({"${dir}": ["/tmp", 1, {"a": "x"}]}));
}

fn facts() -> Facts {
    Facts {
        path: "/v1/messages".to_owned(),
        headers: vec![("X-App".to_owned(), "cli".to_owned())],
        asks_for_reply: true,
        model: "claude-haiku-4-5".to_owned(),
        stream: true,
        system: "You make titles.".to_owned(),
        tools: vec!["Read".to_owned()],
        results: vec![
            ("Bash".to_owned(), "exit 3".to_owned()),
            ("Read".to_owned(), "line 12: fn main".to_owned()),
        ],
        user_text: "fix issue 77".to_owned(),
    }
}

#[test]
fn conditions_hold_or_name_the_one_that_does_not() {
    let judge = |when: When| {
        Matcher::new(&when, "step 1").unwrap().judge(&facts()).map(|groups| groups.into_iter().nth(1))
    };
    let group = |text: &str| Ok(Some(("1".to_owned(), text.to_owned())));
    assert_eq!(judge(When::any()), Ok(None));
    assert_eq!(
        judge(When::any().model("haiku").has_tool("Read").stream(true).header("x-app", "^cli$")),
        Ok(None)
    );
    assert_eq!(judge(When::any().last_tool_result(r"line (\d+)")), group("12"));
    assert_eq!(judge(When::any().last_tool_result(r"exit (\d)")), group("3"));
    assert_eq!(judge(When::any().tool("Read").last_tool_result(r"exit (\d)")), Err("last_tool_result"));
    assert_eq!(judge(When::any().last_user_text(r"issue (\d+)").model("(haiku)")), group("77"));
    assert_eq!(judge(When::any().system("^(You)")), group("You"));
    assert_eq!(judge(When::any().model("opus")), Err("model"));
    assert_eq!(judge(When::any().tool("Edit")), Err("tool"));
    assert_eq!(judge(When::any().has_tool("Edit")), Err("has_tool"));
    assert_eq!(judge(When::any().stream(false)), Err("stream"));
    assert_eq!(judge(When::any().path("/v1/models")), Err("path"));
    assert_eq!(judge(When::any().header("x-app", "sdk")), Err("header"));
    assert_eq!(judge(When::any().last_user_text("title")), Err("last_user_text"));
    assert_eq!(judge(When::any().system("^title")), Err("system"));
}

#[test]
fn steps_without_a_path_leave_other_paths_alone() {
    let other = Facts { asks_for_reply: false, path: "/v1/models".to_owned(), ..facts() };
    let judge = |when: When| Matcher::new(&when, "step 1").unwrap().judge(&other).is_ok();
    assert!(!judge(When::any()));
    assert!(judge(When::any().path("/v1/models")));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,120}") {
        let _ = Script::from_yaml_or_json(&text);
        let _ = Script::from_yaml_or_json(&format!("steps: [{{reply: [{{{text}}}]}}]"));
    }

    #[test]
    fn filling_without_variables_changes_only_doubled_signs(text in "[a-z${} ]{0,30}") {
        let filled = fill::fill_text(&text, &fill::Values::new());
        prop_assert_eq!(filled, text.replace("$${", "${"));
    }
}

#[test]
fn what_is_said_twice_is_a_mistake() {
    check_error("steps: []\nsteps: []", expect!["script: the field `steps` stands twice; keep one of them"]);
    check_error(
        "steps:\n  - reply: a\n    stop: x\n    reply: b\n",
        expect!["script: steps[0]: the field `reply` stands twice at line 2 column 5; keep one of them"],
    );
    check_error(
        r#"{"steps": [{"reply": "a", "reply": "b"}]}"#,
        expect!["script: steps[0]: the field `reply` stands twice at line 1 column 12; keep one of them"],
    );
}

#[test]
fn a_byte_order_mark_and_other_keys_are_no_obstacle() {
    check_error(
        "\u{feff}steps:\n  - reply: a\n    tims: 1\n",
        expect!["line 3: step 1, field `tims`: unknown field; did you mean `times`?"],
    );
    check_error(
        "steps:\n  - status: 99999999\n",
        expect!["line 2: step 1, field `status`: 99999999 is no final HTTP status; write 200 to 599"],
    );
    let script = read("vars: {1: one, true: yes}\nsteps: []\n");
    assert_eq!(script.vars.keys().collect::<Vec<_>>(), ["1", "true"]);
    check_error(
        "steps:\n  - ? [a]\n    : b\n",
        expect![
            "script: not YAML or JSON: steps[0]: a field's name is one word at line 2 column 5; check the indentation, and put texts with `: `, `#` or `{` in quotes"
        ],
    );
    let deep = format!("{{\"steps\": {}{}}}", "[".repeat(300), "]".repeat(300));
    check_error(
        &deep,
        expect![
            "script: not YAML or JSON: recursion limit exceeded at line 1 column 137; check the indentation, and put texts with `: `, `#` or `{` in quotes"
        ],
    );
}
