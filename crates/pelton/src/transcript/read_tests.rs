use std::io::Write;

use pelton_wire::cache::CacheLife;
use serde_json::{Value, json};

use super::*;
use crate::history::View;

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn line(number: u128, parent: Option<u128>, kind: &str, message: &Value) -> String {
    json!({
        "parentUuid": parent.map(id), "type": kind, "uuid": id(number), "sessionId": id(99),
        "timestamp": "2026-01-01T00:00:00.000Z", "message": message,
    })
    .to_string()
}

fn user(number: u128, parent: Option<u128>, content: &Value) -> String {
    line(number, parent, "user", &json!({"role": "user", "content": content}))
}

fn assistant(number: u128, parent: Option<u128>, block: &Value) -> String {
    let message = json!({"id": "msg", "role": "assistant", "model": "m", "content": [block]});
    line(number, parent, "assistant", &message)
}

fn call(name: &str) -> Value {
    json!({"type": "tool_use", "id": name, "name": "Read", "input": {"z": 1, "a": 2}})
}

fn result(name: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": name, "content": "ok"}])
}

fn load(text: impl AsRef<[u8]>) -> Loaded {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    read(file.path()).unwrap()
}

/// What the model would be sent.
fn sent(loaded: &Loaded) -> String {
    let mut view = View::default();
    for entry in &loaded.entries {
        view.push(Arc::clone(entry));
    }
    if !view.open_calls().is_empty() {
        return format!("open: {:?}", view.open_calls());
    }
    String::from_utf8(view.request(CacheLife::default()).to_vec())
        .unwrap()
        .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

fn conversation() -> Vec<String> {
    vec![
        user(1, None, &json!("hi")),
        assistant(2, Some(1), &json!({"type": "thinking", "thinking": "", "signature": "s"})),
        assistant(3, Some(2), &call("a")),
        user(4, Some(3), &result("a")),
        assistant(5, Some(4), &json!({"type": "text", "text": "done"})),
        user(6, Some(5), &json!([{"type": "text", "text": "more"}])),
    ]
}

const SENT: &str = concat!(
    r#"{"role":"user","content":[{"type":"text","text":"hi"}]},"#,
    r#"{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},"#,
    r#"{"type":"tool_use","id":"a","name":"Read","input":{"z":1,"a":2}}]},"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]},"#,
    r#"{"role":"assistant","content":[{"type":"text","text":"done"}]},"#,
    r#"{"role":"user","content":[{"type":"text","text":"more"}]}"#
);

#[test]
fn a_conversation_comes_back_byte_for_byte() {
    let loaded = load(conversation().join("\n") + "\n");
    assert_eq!(sent(&loaded), SENT);
    assert_eq!((loaded.session_id, loaded.newest, loaded.lines_skipped), (Some(id(99)), Some(id(6)), 0));
}

#[test]
fn a_file_cut_at_any_byte_of_its_last_lines_keeps_all_before() {
    let lines = conversation();
    let kept: String = lines[..4].join("\n") + "\n";
    let text = lines.join("\n") + "\n";
    for cut in kept.len()..text.len() {
        let loaded = load(&text[..cut]);
        assert!(loaded.entries.len() >= 4, "cut at {cut}");
        assert!(loaded.lines_skipped <= 1);
        assert!(SENT.starts_with(sent(&loaded).trim_end_matches("]}")), "cut at {cut}");
    }
}

#[test]
fn damage_is_skipped_counted_and_bridged() {
    let mut lines = conversation();
    lines[4] = "{\"broken\": ".to_owned();
    lines.insert(2, "\0\0\0\0".to_owned());
    lines.insert(0, r#"{"type":"custom-title","customTitle":"x"}"#.to_owned());
    lines.push(lines[3].clone());
    lines.push("not json".to_owned());
    let loaded = load(lines.join("\n"));
    assert_eq!(loaded.lines_skipped, 2);
    assert_eq!(
        sent(&loaded),
        SENT.replace(
            r#"]},{"role":"assistant","content":[{"type":"text","text":"done"}]},{"role":"user","content":["#,
            ","
        )
    );
}

#[test]
fn an_answer_or_a_result_that_follows_nothing_follows_the_line_before_it() {
    for index in 1..5 {
        let mut lines = conversation();
        let parent = format!("\"parentUuid\":\"{}\"", id(index as u128));
        assert!(lines[index].contains(&parent), "{}", lines[index]);
        lines[index] = lines[index].replace(&parent, "\"parentUuid\":null");
        let loaded = load(lines.join("\n"));
        assert_eq!(sent(&loaded), SENT, "line {index}");
        assert!(loaded.reshaped);
    }
    // A prompt may begin another conversation.
    let mut lines = conversation();
    lines[5] = user(6, None, &json!("more"));
    assert!(!sent(&load(lines.join("\n"))).contains("done"));
}

#[test]
fn titles_that_others_write_are_no_part_of_the_conversation() {
    let mut lines = conversation();
    let title = r#"{"type":"custom-title","customTitle":"x","uuid":"00000000-0000-4000-8000-0000000000ff"}"#;
    lines.push(title.to_owned());
    let loaded = load(lines.join("\n"));
    assert_eq!(sent(&loaded), SENT);
    assert_eq!(loaded.newest, load(conversation().join("\n")).newest);
}

#[test]
fn invalid_utf8_and_a_cycle_of_parents_end() {
    let mut bytes = (conversation().join("\n") + "\n").into_bytes();
    bytes.extend(b"{\"type\":\"user\",\"x\":\"\xff\"\n");
    assert_eq!(load(&bytes).lines_skipped, 1);
    let cycle = [user(1, Some(2), &json!("a")), user(2, Some(1), &json!("b"))].join("\n");
    assert_eq!(load(cycle).entries.len(), 2);
}

#[test]
fn results_on_branches_of_their_own_find_their_calls() {
    let lines = [
        user(1, None, &json!("hi")),
        assistant(2, Some(1), &call("a")),
        assistant(3, Some(2), &call("b")),
        user(4, Some(2), &result("a")),
        user(5, Some(3), &result("b")),
        assistant(6, Some(5), &json!({"type": "text", "text": "done"})),
        user(7, Some(6), &json!("next")),
    ];
    let sent = sent(&load(lines.join("\n")));
    assert!(!sent.contains("interrupted"), "{sent}");
    assert!(sent.contains(r#""tool_use_id":"a","content":"ok""#), "{sent}");
}

#[test]
fn words_of_the_harness_and_blank_text_are_not_sent() {
    let error = json!({"id": "x", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]});
    let lines = [
        user(1, None, &json!([{"type": "text", "text": "hi"}, {"type": "text", "text": " "}])),
        line(2, Some(1), "assistant", &error),
    ];
    assert_eq!(sent(&load(lines.join("\n"))), r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#);
}

#[test]
fn blocks_that_lost_what_no_server_does_without_are_left_out() {
    for (kind, block) in [
        ("assistant", json!({"type": "thinking", "thinking": "hm"})),
        ("assistant", json!({"type": "thinking", "thinking": "hm", "signature": null})),
        ("assistant", json!({"type": "redacted_thinking"})),
        ("assistant", json!({"type": "text", "text": 3})),
        ("user", json!({"type": "image"})),
        ("user", json!({"type": "document", "source": "x"})),
    ] {
        let content = json!([block, {"type": "text", "text": "stays"}]);
        let message = json!({"role": kind, "model": "m", "content": content});
        let text = [user(1, None, &json!("hi")), line(2, Some(1), kind, &message)].join("\n");
        let loaded = load(text);
        let sent = sent(&loaded);
        assert!(
            sent.contains("stays") && !sent.contains(block["type"].as_str().unwrap())
                || block["type"] == "text",
            "{sent}"
        );
        assert_eq!(sent.matches("\"type\"").count(), 2, "{sent}");
    }
    let broken = json!([{"type": "tool_result", "tool_use_id": "a", "content": 7}]);
    let text = [user(1, None, &json!("hi")), assistant(2, Some(1), &call("a")), user(3, Some(2), &broken)];
    assert_eq!(sent(&load(text.join("\n"))), "open: [\"a\"]");
}

#[test]
fn what_follows_itself_follows_what_was_written_before_it() {
    let text =
        [user(1, Some(1), &json!("hi")), assistant(2, Some(2), &json!({"type": "text", "text": "ho"}))];
    let loaded = load(text.join("\n"));
    assert_eq!(loaded.entries.len(), 2);
}

#[test]
fn what_stands_before_a_cycle_is_still_the_conversation() {
    let said = |words: &str| json!({"type": "text", "text": words});
    let text = [
        user(1, None, &json!("first")),
        assistant(2, Some(1), &said("one")),
        // Written over: it follows what was written after it.
        user(3, Some(5), &json!("second")),
        assistant(4, Some(3), &said("two")),
        user(5, Some(4), &json!("third")),
    ];
    assert_eq!(load(text.join("\n")).entries.len(), 5);
}

#[test]
fn lines_in_another_order_are_read_along_their_parents() {
    let mut lines = conversation();
    let (said, newest) = (load(lines.join("\n")), id(6));
    lines.reverse();
    let loaded = load(lines.join("\n"));
    assert_eq!(loaded.newest, Some(newest));
    let ids = |loaded: &Loaded| loaded.entries.iter().map(|entry| entry.id).collect::<Vec<_>>();
    assert_eq!(ids(&loaded), ids(&said));
}

#[test]
fn words_without_a_name_are_counted_and_bookkeeping_is_not() {
    let nameless = json!({"type": "user", "message": {"role": "user", "content": "lost"}});
    let title = json!({"type": "custom-title", "customTitle": "t"});
    let text = [user(1, None, &json!("hi")), nameless.to_string(), title.to_string()];
    let loaded = load(text.join("\n"));
    assert_eq!((loaded.entries.len(), loaded.lines_skipped), (1, 1));
}

mod properties {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whatever is done to the bytes of a record, it is read, and what would be sent is what can be sent: no call is left open
        /// that the view does not know of.
        #[test]
        fn any_damage_is_survived(
            hits in proptest::collection::vec((any::<Index>(), any::<u8>()), 0..12),
            holes in proptest::collection::vec((any::<Index>(), 0usize..200), 0..4),
            doubled in any::<Index>(),
        ) {
            let mut lines = conversation();
            lines.push(lines[doubled.index(lines.len())].clone());
            let mut bytes = lines.join("\n").into_bytes();
            for (at, byte) in hits {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            for (at, length) in holes {
                let at = at.index(bytes.len());
                let end = (at + length).min(bytes.len());
                bytes.drain(at..end);
                if bytes.is_empty() {
                    bytes.push(0);
                }
            }
            let loaded = load(&bytes);
            let _ = sent(&loaded);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600), text in "[\\{\\}\"\\[\\]:,a-z0-9\\\\\n ]{0,300}") {
            let _ = sent(&load(&bytes));
            let _ = sent(&load(&text));
        }
    }
}

#[test]
fn what_was_done_for_a_prompt_outlives_its_line() {
    let lines = [
        user(1, None, &json!("Build it.")),
        assistant(2, Some(1), &json!({"type": "text", "text": "I look."})),
        assistant(3, Some(2), &call("toolu_1")),
        user(4, Some(3), &result("toolu_1")),
        assistant(5, Some(4), &json!({"type": "text", "text": "Built."})),
        user(6, Some(5), &json!("And now?")),
    ];
    let headless = [&[r#"{"type":"us"#.to_owned()][..], &lines[1..]].concat().join("\n");
    let loaded = load(&headless);
    let words = sent(&loaded);
    for said in ["cannot be read", "I look.", "toolu_1", "Built.", "And now?"] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert!(words.starts_with(r#"{"role":"user""#), "{words}");
    assert!(loaded.reshaped && loaded.lines_skipped == 1);
    // Whoever reads it again finds the same.
    assert_eq!(load(&headless).entries[0].id, loaded.entries[0].id);
    assert_eq!(
        load(lines.join("\n")).entries.len(),
        6,
        "nothing stands in front of what begins with a prompt"
    );
}
