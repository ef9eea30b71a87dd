use proptest::prelude::*;

use super::*;

fn sse(data: &str) -> sse::Event {
    sse::Event { name: Bytes::new(), data: Bytes::copy_from_slice(data.as_bytes()) }
}

/// Events as good, strange and broken servers send them.
fn soup() -> impl Strategy<Value = String> {
    let index =
        prop_oneof![Just("0"), Just("1"), Just("-1"), Just("4294967296"), Just("null"), Just("\"x\"")];
    let block = prop::sample::select(vec![
        r#"{"type":"text","text":""}"#,
        r#"{"type":"text","text":" "}"#,
        r#"{"type":"text"}"#,
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        r#"{"type":"redacted_thinking","data":"x"}"#,
        r#"{"type":"tool_use","id":"t","name":"n","input":{}}"#,
        r#"{"type":"tool_use"}"#,
        r#"{"type":7}"#,
        r#"[]"#,
        "null",
    ]);
    let delta = prop::sample::select(vec![
        r#"{"type":"text_delta","text":"hi \ud83d"}"#,
        r#"{"type":"text_delta","text":7}"#,
        r#"{"type":"thinking_delta","thinking":"hm"}"#,
        r#"{"type":"signature_delta","signature":"s"}"#,
        r#"{"type":"input_json_delta","partial_json":"{\"a\":"}"#,
        r#"{"type":"input_json_delta","partial_json":"1}"}"#,
        r#"{"type":"citations_delta","citation":{"a":1}}"#,
        r#"{"type":"compaction_delta","content":"c"}"#,
        r#"{"type":"later_delta"}"#,
        "17",
    ]);
    let other = prop::sample::select(vec![
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":null}}}"#,
        r#"{"type":"message_start"}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3.5}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"moonrise"}}"#,
        r#"{"type":"message_stop"}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"tea_break"}"#,
        r#"{}"#,
        "{",
        "\u{0}",
        r#"{"type":"error"}"#,
    ]);
    prop_oneof![
        2 => (index.clone(), block).prop_map(|(index, block)| format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#
        )),
        3 => (index.clone(), delta).prop_map(|(index, delta)| format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#
        )),
        2 => index.prop_map(|index| format!(r#"{{"type":"content_block_stop","index":{index}}}"#)),
        1 => other.prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_an_answer_ends_in_order(events in proptest::collection::vec(soup(), 0..30)) {
        let mut answer = Answer::new(None, None);
        let mut steps = Vec::new();
        let mut cause = None;
        for event in &events {
            match answer.event(sse(event), &mut steps) {
                Ok(Life::End) => break,
                Ok(_) => {}
                Err(error) => {
                    cause = Some(error);
                    break;
                }
            }
        }
        let shown = answer.shown();
        let end = answer.end(cause, 1000, &mut steps);

        let mut started = 0;
        let (mut worth_keeping, mut any) = (false, false);
        for step in &steps {
            match step {
                Step::Started(_) => started += 1,
                Step::Delta(delta) => {
                    any = true;
                    prop_assert!(serde_json::from_slice::<Value>(&delta.raw).is_ok());
                    prop_assert!(!delta.raw.contains(&b'\n'));
                }
                Step::Block(block) => {
                    any = true;
                    prop_assert_eq!(started, 1, "a block comes after the beginning");
                    prop_assert!(serde_json::from_slice::<Value>(&block.json).unwrap().is_object());
                    worth_keeping |= matches!(block.kind, BlockKind::Text { blank: false } | BlockKind::ToolUse { .. });
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert!(started <= 1);
        // Closing what is open at the end shows more, but only on the way to success.
        prop_assert!(shown == any || end.is_ok());
        match end {
            Ok(reply) if reply.cut.is_some() => prop_assert!(worth_keeping),
            Ok(_) => {}
            Err(_) => prop_assert!(!worth_keeping),
        }
    }
}

#[test]
fn an_answer_without_a_beginning_gets_one() {
    let mut answer = Answer::new(None, None);
    let mut steps = Vec::new();
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}"#;
    answer.event(sse(start), &mut steps).unwrap();
    assert!(matches!(steps[0], Step::Started(_)));
}

#[test]
fn a_block_that_was_never_closed_ends_where_the_next_begins() {
    let mut answer = Answer::new(None, None);
    let mut steps = Vec::new();
    for text in ["one", "two"] {
        let start = format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"text","text":"{text}"}}}}"#
        );
        answer.event(sse(&start), &mut steps).unwrap();
    }
    answer.event(sse(r#"{"type":"message_stop"}"#), &mut steps).unwrap();
    let blocks: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Block(block) => Some(&block.json),
            _ => None,
        })
        .collect();
    assert_eq!(blocks, [r#"{"type":"text","text":"one"}"#, r#"{"type":"text","text":"two"}"#]);
}

#[test]
fn text_that_is_no_utf8_is_made_readable() {
    let mut answer = Answer::new(None, None);
    let mut steps = Vec::new();
    let mut start =
        br#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a?"}}"#.to_vec();
    let at = start.iter().position(|byte| *byte == b'?').unwrap();
    start[at] = 0xFF;
    answer.event(sse::Event { name: Bytes::new(), data: start.into() }, &mut steps).unwrap();
    answer.event(sse(r#"{"type":"content_block_stop","index":0}"#), &mut steps).unwrap();
    let block = steps.iter().find_map(|step| match step {
        Step::Block(block) => Some(block.json.clone()),
        _ => None,
    });
    assert_eq!(block.unwrap(), "{\"type\":\"text\",\"text\":\"a\u{FFFD}\"}");
}

#[test]
fn compactions_by_the_server_are_counted_and_do_not_swell_the_context() {
    let rounds = r#""usage":{"input_tokens":23,"output_tokens":19,"iterations":[
        {"type":"compaction","input_tokens":180000,"output_tokens":3500,"cache_creation":{"ephemeral_5m_input_tokens":7}},
        {"type":"message","input_tokens":11,"output_tokens":9},{"type":"later","input_tokens":1},17,
        {"type":"message","input_tokens":12,"cache_read_input_tokens":40,"output_tokens":10}]}"#;
    let streamed = [
        r#"{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":23,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"iterations":null}}"#,
    ];
    let last = format!(r#"{{"type":"message_delta","delta":{{}},{rounds}}}"#);
    let whole = format!(r#"{{"type":"message","id":"m","content":[],"stop_reason":"end_turn",{rounds}}}"#);
    let mut in_pieces = Answer::new(None, None);
    for data in streamed.into_iter().chain([last.as_str()]) {
        in_pieces.event(sse(data), &mut Vec::new()).unwrap();
    }
    let mut at_once = Answer::new(None, None);
    at_once.whole(Bytes::from(whole), &mut Vec::new()).unwrap();
    for answer in [in_pieces, at_once] {
        let reply = answer.end(None, 100, &mut Vec::new()).unwrap();
        assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (180_023, 3519));
        assert_eq!(reply.usage.cache_creation.ephemeral_5m_input_tokens, 7);
        assert_eq!((reply.context_usage().prompt_tokens(), reply.context_usage().output_tokens), (52, 10));
    }
}
