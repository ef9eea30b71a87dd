use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// A block made of a start and some changes.
fn assemble(start: &str, changes: &[Change<'_>]) -> Block {
    let mut assembler = Assembler::default();
    assembler.open(0, Bytes::copy_from_slice(start.as_bytes()), "made_up").unwrap().expect("a block");
    for change in changes {
        assembler.change(0, change).unwrap();
    }
    let block = assembler.close(0).expect("an open block");
    assert!(assembler.close(0).is_none(), "a block is complete once");
    serde_json::from_slice::<Value>(&block.json).expect("a block is valid JSON");
    assert!(!block.json.contains(&b'\n'));
    block
}

#[allow(clippy::needless_pass_by_value, reason = "`expect!` at the call site")]
fn check(start: &str, changes: &[Change<'_>], expected: Expect) {
    let block = assemble(start, changes);
    expected.assert_eq(&format!("{}\n{:?}\n", String::from_utf8_lossy(&block.json), block.kind));
}

#[test]
fn text_is_joined_as_it_was_written() {
    check(
        r#"{"type":"text","text":""}"#,
        &[Change::Text(r#""Hel""#), Change::Text(r#""l\u00f6\n""#)],
        expect![[r#"
            {"type":"text","text":"Hell\u00f6\n"}
            Text { blank: false }
        "#]],
    );
    check(
        r#"{"type":"text","text":"a"}"#,
        &[Change::Text(r#""b""#)],
        expect![[r#"
        {"type":"text","text":"ab"}
        Text { blank: false }
    "#]],
    );
    check(
        r#"{"type":"text"}"#,
        &[Change::Text(r#""b""#)],
        expect![[r#"
        {"type":"text","text":"b"}
        Text { blank: false }
    "#]],
    );
}

#[test]
fn what_is_not_known_stays_where_it_was() {
    check(
        r#"{"zebra":[1, 2.50],"type":"text","citations":null,"text":"","apple":{"b":123456789012345678901.50,"a":0}}"#,
        &[Change::Text(r#""x""#), Change::Unknown],
        expect![[r#"
            {"zebra":[1, 2.50],"type":"text","citations":null,"text":"x","apple":{"b":123456789012345678901.50,"a":0}}
            Text { blank: false }
        "#]],
    );
    check(
        r#"{"type":"hologram","beam":{"w":1.0}}"#,
        &[Change::Unknown],
        expect![[r#"
        {"type":"hologram","beam":{"w":1.0}}
        Other
    "#]],
    );
    check(
        r#"{"type":"redacted_thinking","data":"Emw="}"#,
        &[],
        expect![[r#"
        {"type":"redacted_thinking","data":"Emw="}
        RedactedThinking
    "#]],
    );
}

#[test]
fn thinking_keeps_its_signature_even_when_empty() {
    check(
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        &[Change::Signature(r#""EqQB""#)],
        expect![[r#"
            {"type":"thinking","thinking":"","signature":"EqQB"}
            Thinking
        "#]],
    );
    check(
        r#"{"type":"thinking","thinking":""}"#,
        &[
            Change::Thinking { text: r#""hm ""#, estimated_tokens: None },
            Change::Thinking { text: r#""so""#, estimated_tokens: Some(3) },
            Change::Signature(r#""EqQB""#),
        ],
        expect![[r#"
            {"type":"thinking","thinking":"hm so","signature":"EqQB"}
            Thinking
        "#]],
    );
}

#[test]
fn citations_are_collected() {
    check(
        r#"{"type":"text","text":"","citations":[]}"#,
        &[Change::Citation(r#"{"n":1}"#), Change::Text(r#""x""#), Change::Citation(r#"{"n":2}"#)],
        expect![[r#"
            {"type":"text","text":"x","citations":[{"n":1},{"n":2}]}
            Text { blank: false }
        "#]],
    );
    check(
        r#"{"type":"text","text":"x","citations":[ {"n":0} ]}"#,
        &[Change::Citation(r#"{"n":1}"#)],
        expect![[r#"
            {"type":"text","text":"x","citations":[{"n":0},{"n":1}]}
            Text { blank: false }
        "#]],
    );
    check(
        r#"{"type":"text","text":"x"}"#,
        &[Change::Citation(r#"{"n":1}"#)],
        expect![[r#"
        {"type":"text","text":"x","citations":[{"n":1}]}
        Text { blank: false }
    "#]],
    );
}

#[test]
fn compactions_are_kept() {
    check(
        r#"{"type":"compaction","content":null}"#,
        &[Change::Compaction { content: Some(r#""all of it""#), encrypted_content: Some(r#""x9""#) }],
        expect![[r#"
            {"type":"compaction","content":"all of it","encrypted_content":"x9"}
            Other
        "#]],
    );
}

const CALL: &str =
    r#"{"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}"#;

#[test]
fn inputs_keep_the_bytes_the_model_wrote() {
    check(
        CALL,
        &[
            Change::InputJson(r#""""#),
            Change::InputJson(r#""{\"path\" : \"a\\u00e9""#),
            Change::InputJson(r#""\\n\",\n \"n\":1.50}""#),
        ],
        expect![[r#"
            {"type":"tool_use","id":"toolu_1","name":"Read","input":{"path" : "a\u00e9\n",  "n":1.50},"caller":{"type":"direct"}}
            ToolUse { id: "toolu_1", name: "Read", input: Ok(Object {"path": String("aé\n"), "n": Number(1.5)}) }
        "#]],
    );
    check(
        CALL,
        &[],
        expect![[r#"
        {"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}
        ToolUse { id: "toolu_1", name: "Read", input: Ok(Object {}) }
    "#]],
    );
    check(
        CALL,
        &[Change::InputJson(r#"" ""#)],
        expect![[r#"
        {"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}
        ToolUse { id: "toolu_1", name: "Read", input: Ok(Object {}) }
    "#]],
    );
    check(
        CALL,
        &[Change::InputJson(r#""null""#)],
        expect![[r#"
        {"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}
        ToolUse { id: "toolu_1", name: "Read", input: Ok(Object {}) }
    "#]],
    );
}

#[test]
fn calls_of_other_makers_are_read() {
    // No input, no id; the whole input at the start.
    check(
        r#"{"type":"tool_use","name":"Read"}"#,
        &[Change::InputJson(r#""{\"a\":1}""#)],
        expect![[r#"
        {"type":"tool_use","name":"Read","id":"made_up","input":{"a":1}}
        ToolUse { id: "made_up", name: "Read", input: Ok(Object {"a": Number(1)}) }
    "#]],
    );
    check(
        r#"{"type":"tool_use","id":"","name":"Read","input":{"a":1}}"#,
        &[],
        expect![[r#"
        {"type":"tool_use","id":"made_up","name":"Read","input":{"a":1}}
        ToolUse { id: "made_up", name: "Read", input: Ok(Object {"a": Number(1)}) }
    "#]],
    );
    check(
        r#"{"type":"tool_use","id":17,"input":null}"#,
        &[],
        expect![[r#"
        {"type":"tool_use","id":"made_up","input":{}}
        ToolUse { id: "made_up", name: "", input: Ok(Object {}) }
    "#]],
    );
}

#[test]
fn broken_inputs_are_errors_of_the_call() {
    check(
        CALL,
        &[Change::InputJson(r#""{\"path\":\"a""#)],
        expect![[r#"
        {"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}
        ToolUse { id: "toolu_1", name: "Read", input: Err(BadInput { raw: "{\"path\":\"a", error: "EOF while parsing a string at line 1 column 10" }) }
    "#]],
    );
    check(
        CALL,
        &[Change::InputJson(r#""[1]""#)],
        expect![[r#"
        {"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}
        ToolUse { id: "toolu_1", name: "Read", input: Err(BadInput { raw: "[1]", error: "the input is not a JSON object" }) }
    "#]],
    );
    let deep = format!("\"{}\"", "[".repeat(1000));
    assert!(matches!(
        assemble(CALL, &[Change::InputJson(&deep)]).kind,
        BlockKind::ToolUse { input: Err(_), .. }
    ));
}

#[test]
fn server_tools_are_kept_whole() {
    check(
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#,
        &[Change::InputJson(r#""{\"query\":\"tea\"}""#)],
        expect![[r#"
            {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"tea"}}
            ServerTool
        "#]],
    );
    check(
        r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"x"}]}"#,
        &[],
        expect![[r#"
            {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"x"}]}
            ServerTool
        "#]],
    );
}

#[test]
fn halves_of_characters_never_reach_a_block() {
    check(
        r#"{"type":"text","text":""}"#,
        &[Change::Text(r#""a\ud83d""#)],
        expect![[r#"
        {"type":"text","text":"a\ufffd"}
        Text { blank: false }
    "#]],
    );
    check(
        CALL,
        &[Change::InputJson(r#""{\"a\":\"\\ud83d\"}""#)],
        expect![[r#"
        {"type":"tool_use","id":"toolu_1","name":"Read","input":{"a":"\ufffd"},"caller":{"type":"direct"}}
        ToolUse { id: "toolu_1", name: "Read", input: Ok(Object {"a": String("�")}) }
    "#]],
    );
    // A pair that was cut between two events is whole again.
    check(
        r#"{"type":"text","text":""}"#,
        &[Change::Text(r#""a\ud83d""#), Change::Text(r#""\ude00""#)],
        expect![[r#"
            {"type":"text","text":"a\ud83d\ude00"}
            Text { blank: false }
        "#]],
    );
    check(
        CALL,
        &[Change::InputJson(r#""{\"a\":\"\\ud8""#), Change::InputJson(r#""3d\\ude00\"}""#)],
        expect![[r#"
            {"type":"tool_use","id":"toolu_1","name":"Read","input":{"a":"\ud83d\ude00"},"caller":{"type":"direct"}}
            ToolUse { id: "toolu_1", name: "Read", input: Ok(Object {"a": String("😀")}) }
        "#]],
    );
}

#[test]
fn blank_texts_are_marked() {
    let blank = |text: &str| {
        let start = format!(r#"{{"type":"text","text":{text}}}"#);
        assemble(&start, &[]).kind == BlockKind::Text { blank: true }
    };
    for text in [r#""""#, r#"" ""#, r#""\n\t \u00a0""#, r#""  \n""#, "null"] {
        assert!(blank(text), "{text}");
    }
    for text in [r#""a""#, r#"" \n\u0061""#, r#""\\""#, r#"" .""#] {
        assert!(!blank(text), "{text}");
    }
}

#[test]
fn blocks_grow_side_by_side() {
    let mut assembler = Assembler::default();
    let text = Bytes::from_static(br#"{"type":"text","text":""}"#);
    assembler.open(7, text.clone(), "").unwrap();
    assembler.open(2, text, "").unwrap();
    assembler.change(7, &Change::Text(r#""seven""#)).unwrap();
    assembler.change(2, &Change::Text(r#""two""#)).unwrap();
    assembler.change(9, &Change::Text(r#""nobody""#)).unwrap();
    assembler.change(7, &Change::Text(r#"" again""#)).unwrap();
    assert_eq!(assembler.close(7).unwrap().json, r#"{"type":"text","text":"seven again"}"#);
    assert_eq!(
        assembler.close_all().map(|block| block.json).collect::<Vec<_>>(),
        [r#"{"type":"text","text":"two"}"#]
    );
}

#[test]
fn a_message_has_limits() {
    let mut assembler = Assembler::default();
    let start = Bytes::from_static(br#"{"type":"text","text":""}"#);
    for index in 0..OPEN_BLOCKS_MAX as u32 {
        assembler.open(index, start.clone(), "").unwrap();
    }
    assert_eq!(assembler.open(u32::MAX, start.clone(), ""), Err(TooLarge::Blocks));

    let mut assembler = Assembler { bytes: MESSAGE_BYTES_MAX - 30, ..Assembler::default() };
    assembler.open(0, start, "").unwrap();
    assert_eq!(assembler.change(0, &Change::Text(r#""1234567890""#)), Err(TooLarge::Bytes));
}

#[test]
fn what_is_no_block_is_passed_over() {
    for start in ["7", "null", "[]", "{}", r#"{"text":"x"}"#, "{"] {
        assert_eq!(
            Assembler::default().open(0, Bytes::from_static(start.as_bytes()), ""),
            Ok(None),
            "{start}"
        );
    }
}

proptest! {
    #[test]
    fn any_cut_of_a_text_gives_the_same_text(pieces: Vec<String>) {
        let literals: Vec<String> = pieces.iter().map(|piece| serde_json::to_string(piece).unwrap()).collect();
        let changes: Vec<_> = literals.iter().map(|literal| Change::Text(literal)).collect();
        let block: Value = serde_json::from_slice(&assemble(r#"{"type":"text","text":""}"#, &changes).json).unwrap();
        prop_assert_eq!(block["text"].as_str().unwrap(), pieces.concat());
    }

    #[test]
    fn any_cut_of_an_input_gives_the_same_input(text: String, cuts: Vec<prop::sample::Index>) {
        let input = serde_json::json!({"a": text, "n": [1, null, {"b": 1.5}]});
        let written: Vec<char> = input.to_string().chars().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(written.len() + 1)).collect();
        cuts.extend([0, written.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| written[pair[0]..pair[1]].iter().collect::<String>());
        let literals: Vec<String> = pieces.map(|piece| serde_json::to_string(&piece).unwrap()).collect();
        let changes: Vec<_> = literals.iter().map(|literal| Change::InputJson(literal)).collect();
        let block = assemble(CALL, &changes);
        match block.kind {
            BlockKind::ToolUse { input: Ok(read), .. } => prop_assert_eq!(read, input),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
