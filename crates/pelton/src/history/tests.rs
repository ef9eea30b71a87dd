//! Whatever is pushed, what would be sent is legal.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use pelton_wire::usage::Usage;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::media::MEDIA_LEFT_OUT;
use super::repair::{INTERRUPTED_RESULT, LEFT_OUT, RESULT_FOLDED};
use super::view::Pushed;
use super::*;

fn entry(kind: Kind, content: &Value) -> Arc<Entry> {
    let json = Bytes::from(content.to_string());
    Arc::new(Entry::new(Uuid::nil(), Timestamp::UNIX_EPOCH, kind, json).unwrap())
}

fn prompt(text: &str) -> Arc<Entry> {
    entry(Kind::Prompt { meta: false }, &json!([{"type": "text", "text": text}]))
}

fn assistant(piece: Piece, content: &Value) -> Arc<Entry> {
    let origin =
        Origin { message_id: "msg".into(), model: "m".into(), usage: Usage::default(), request_id: None };
    entry(Kind::Assistant { origin: Arc::new(origin), piece }, content)
}

fn says(text: &str) -> Arc<Entry> {
    assistant(Piece::Text, &json!([{"type": "text", "text": text}]))
}

fn thinks() -> Arc<Entry> {
    assistant(Piece::Thinking, &json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]))
}

fn calls(id: &str) -> Arc<Entry> {
    let piece = Piece::Call { id: id.into(), name: "Read".into() };
    assistant(piece, &json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]))
}

fn answers(id: &str) -> Arc<Entry> {
    let kind = Kind::ToolResult { call: id.into(), is_error: false };
    entry(kind, &json!([{"type": "tool_result", "tool_use_id": id, "content": "ok", "is_error": false}]))
}

fn sent(view: &mut View) -> Vec<Value> {
    let mut text = vec![b'['];
    view.request().iter().for_each(|piece| text.extend_from_slice(piece));
    text.push(b']');
    serde_json::from_slice(&text).unwrap()
}

/// `user: hi | assistant: call a | user: result a`, with `!` for stand-ins and `*` for cache marks.
fn outline(view: &mut View) -> String {
    let messages = sent(view);
    let message = |message: &Value| {
        let blocks: Vec<String> = message["content"].as_array().unwrap().iter().map(block).collect();
        format!("{}: {}", message["role"].as_str().unwrap(), blocks.join(", "))
    };
    messages.iter().map(message).collect::<Vec<_>>().join(" | ")
}

fn block(block: &Value) -> String {
    let mark = if block.get("cache_control").is_some() { "*" } else { "" };
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let words = match block["type"].as_str().unwrap() {
        "text" => text("text"),
        "tool_use" => format!("call {}", text("id")),
        "tool_result" if text("content") == INTERRUPTED_RESULT => format!("!{}", text("tool_use_id")),
        "tool_result" => format!("result {}", text("tool_use_id")),
        other => other.to_owned(),
    };
    format!("{words}{mark}")
}

fn check(entries: &[Arc<Entry>], expected: &str) {
    let mut view = View::default();
    for entry in entries {
        view.push(Arc::clone(entry));
    }
    assert_eq!(outline(&mut view), expected);
}

#[test]
fn blocks_of_one_side_become_one_message() {
    check(
        &[
            prompt("env"),
            prompt("hi"),
            thinks(),
            says("a"),
            calls("1"),
            calls("2"),
            answers("1"),
            answers("2"),
        ],
        "user: env, hi | assistant: thinking, a, call 1, call 2 | user: result 1, result 2*",
    );
}

#[test]
fn loop_P9_an_open_call_is_closed_until_its_result_comes() {
    let crashed = [prompt("hi"), calls("1"), calls("2"), answers("2"), prompt("go on")];
    check(&crashed, "user: hi | assistant: call 1, call 2 | user: result 2, !1, go on*");
    let mut late = crashed.to_vec();
    late.push(answers("1"));
    check(&late, "user: hi | assistant: call 1, call 2 | user: result 2, result 1, go on*");
}

#[test]
fn what_cannot_be_sent_is_left_out() {
    check(&[says("nobody asked"), prompt("hi")], "user: hi*");
    check(&[prompt("hi"), answers("1")], "user: hi*");
    check(
        &[prompt("hi"), calls("1"), answers("1"), answers("1")],
        "user: hi | assistant: call 1 | user: result 1*",
    );
    check(
        &[prompt("hi"), calls("1"), calls("1"), answers("1")],
        "user: hi | assistant: call 1 | user: result 1*",
    );
    check(&[prompt("hi"), says("a"), thinks(), prompt("b")], "user: hi | assistant: a | user: b*");
    check(&[prompt("hi"), thinks(), prompt("b")], "user: hi, b*");
}

#[test]
fn a_call_that_the_server_never_answered_is_left_out() {
    let searches = || {
        assistant(Piece::Other, &json!([{"type": "server_tool_use", "id": "s1", "name": "w", "input": {}}]))
    };
    let found =
        || assistant(Piece::Other, &json!([{"type": "w_tool_result", "tool_use_id": "s1", "content": []}]));
    let paused = [prompt("hi"), thinks(), says("a"), searches(), thinks(), says("b")];
    check(&paused, "user: hi | assistant: thinking, a, server_tool_use, thinking, b*");
    let abandoned = [&paused[..], &[prompt("never mind"), says("ok")]].concat();
    // The thinking behind it is bound to it.
    check(&abandoned, "user: hi | assistant: thinking, a, b | user: never mind | assistant: ok*");
    let beside_ours = [prompt("hi"), searches(), calls("1"), answers("1")];
    check(&beside_ours, "user: hi | assistant: call 1 | user: result 1*");
    let nothing_left = [prompt("hi"), searches(), prompt("never mind")];
    check(&nothing_left, "user: hi, never mind*");
    let whole = [prompt("hi"), searches(), found(), says("a"), prompt("thanks")];
    check(&whole, "user: hi | assistant: server_tool_use, w_tool_result, a | user: thanks*");
}

#[test]
fn results_come_before_words_in_their_message() {
    check(
        &[prompt("hi"), calls("1"), calls("2"), answers("1"), prompt("wait"), answers("2")],
        "user: hi | assistant: call 1, call 2 | user: result 1, result 2, wait*",
    );
}

#[test]
fn the_mark_of_the_last_request_is_set_again() {
    let mut view = View::default();
    view.push(prompt("hi"));
    assert_eq!(outline(&mut view), "user: hi*");
    for entry in [calls("1"), answers("1")] {
        view.push(entry);
    }
    assert_eq!(outline(&mut view), "user: hi* | assistant: call 1 | user: result 1*");
    for entry in [calls("2"), answers("2")] {
        view.push(entry);
    }
    assert_eq!(
        outline(&mut view),
        "user: hi | assistant: call 1 | user: result 1* | assistant: call 2 | user: result 2*"
    );
}

#[test]
fn the_bytes_before_a_mark_never_change() {
    let mut view = View::default();
    view.push(prompt("hi"));
    let without_marks = |view: &mut View| {
        let bytes: Vec<u8> = view.request().concat();
        String::from_utf8(bytes).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    let mut before = without_marks(&mut view);
    for turn in 0..5 {
        let id = turn.to_string();
        for entry in [thinks(), calls(&id), answers(&id)] {
            view.push(entry);
        }
        let now = without_marks(&mut view);
        assert!(now.starts_with(before.trim_end_matches("]}")), "{now} does not start with {before}");
        before = now;
    }
}

#[test]
fn the_models_own_count_replaces_estimates() {
    let mut view = View::default();
    view.push(prompt(&"x".repeat(400)));
    let estimated = view.tokens();
    assert!((100..130).contains(&estimated), "{estimated}");
    view.counted(&Usage { input_tokens: 5_000, output_tokens: 20, ..Usage::default() });
    assert_eq!(view.tokens(), 5_020);
    view.push(prompt("more"));
    assert!(view.tokens() > 5_020);
    view.counted(&Usage::default());
    assert!(view.tokens() > 5_020, "a server that counts nothing changes nothing");
}

/// The rules of the API, written down a second time and without looking at the view.
fn legal(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut used = std::collections::HashSet::new();
    let mut marks = 0;
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        let expected = if index % 2 == 0 { "user" } else { "assistant" };
        if role != expected {
            return Err(format!("message {index} is of the {role}"));
        }
        let blocks = message["content"].as_array().unwrap();
        marks += blocks.iter().filter(|block| block.get("cache_control").is_some()).count();
        if blocks.is_empty() {
            return Err(format!("message {index} is empty"));
        }
        if role == "user" {
            let mut words = false;
            for block in blocks {
                match block["type"].as_str().unwrap() {
                    "tool_result" if words => return Err("a result behind words".into()),
                    "tool_result" => {
                        let id = block["tool_use_id"].as_str().unwrap();
                        let at = open.iter().position(|open| open == id).ok_or("a result without a call")?;
                        open.remove(at);
                    }
                    _ => words = true,
                }
            }
            if !open.is_empty() {
                return Err(format!("calls without results: {open:?}"));
            }
        } else {
            let last = index + 1 == messages.len();
            if !last && blocks.last().unwrap()["type"] == "thinking" {
                return Err("an answer ends in thinking".into());
            }
            for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
                let id = block["id"].as_str().unwrap().to_owned();
                if !used.insert(id.clone()) {
                    return Err("a call id twice".into());
                }
                open.push(id);
            }
        }
    }
    if marks > 2 {
        return Err(format!("{marks} marks"));
    }
    Ok(())
}

fn any_entry() -> impl Strategy<Value = Arc<Entry>> {
    let id = || prop::sample::select(vec!["1", "2", "3", "4", "5"]);
    prop_oneof![
        Just(prompt("words")),
        Just(says("text")),
        Just(thinks()),
        id().prop_map(calls),
        id().prop_map(answers),
        Just(assistant(Piece::Other, &json!([{"type": "future", "x": 1}]))),
    ]
}

fn image() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x".repeat(9_000)}})
}

fn long_talk(rounds: usize) -> View {
    let mut view = View::default();
    view.push(prompt("the task"));
    for round in 0..rounds {
        let id = round.to_string();
        for entry in [thinks(), says(&"words ".repeat(50)), calls(&id), answers(&id)] {
            view.push(entry);
        }
    }
    view
}

#[test]
fn the_oldest_rounds_go_and_the_task_and_the_newest_stay() {
    let mut view = long_talk(10);
    let before = view.tokens();
    let freed = view.leave_out_oldest(before / 3);
    assert!(freed > before / 2, "{freed} of {before}");
    assert!(view.tokens() <= before / 3 + 60, "{} left of {before}", view.tokens());
    let messages = sent(&mut view);
    assert_eq!(legal(&messages), Ok(()));
    assert_eq!(messages[0]["content"][0]["text"], "the task");
    assert_eq!(messages[0]["content"][1]["text"], LEFT_OUT);
    assert_eq!(messages.last().unwrap()["content"][0]["tool_use_id"], "9");
    assert!(!serde_json::to_string(&messages).unwrap().contains("thinking"), "bound to what is no more");
}

#[test]
fn old_results_are_folded_and_the_newest_are_not() {
    let mut view = View::default();
    view.push(prompt("the task"));
    for id in ["a", "b", "c"] {
        let kind = Kind::ToolResult { call: id.into(), is_error: id == "a" };
        let block = json!([{"type": "tool_result", "tool_use_id": id, "content": "words ".repeat(500)}]);
        for entry in [thinks(), calls(id), entry(kind, &block)] {
            view.push(entry);
        }
    }
    let before = view.tokens();
    assert_eq!(view.fold_old_results(3), 0, "all are new");
    let freed = view.fold_old_results(1);
    assert!(freed > before / 2 && view.tokens() < before - freed + 100, "{freed} of {before}");
    let messages = sent(&mut view);
    assert_eq!(legal(&messages), Ok(()));
    let said = |message: usize| messages[message]["content"][0]["content"].as_str().unwrap();
    assert_eq!((said(2), said(4)), (RESULT_FOLDED, RESULT_FOLDED));
    assert!(said(6).starts_with("words"));
    assert_eq!(messages[2]["content"][0]["is_error"], true, "how it went stays");
    assert!(!serde_json::to_string(&messages).unwrap().contains("thinking"), "bound to what is no more");
    assert_eq!((view.fold_old_results(1), View::default().fold_old_results(0)), (0, 0));
}

#[test]
fn a_result_that_would_be_no_smaller_stays() {
    let mut view = View::default();
    view.push(prompt("the task"));
    let words = "x".repeat(RESULT_FOLDED.len());
    for id in ["a", "b"] {
        let kind = Kind::ToolResult { call: id.into(), is_error: false };
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": words, "is_error": false}]);
        view.push(calls(id));
        view.push(entry(kind, &result));
    }
    view.fold_old_results(1);
    assert_eq!(sent(&mut view)[2]["content"][0]["content"], words);
}

#[test]
fn a_single_round_cannot_be_made_smaller() {
    let mut view = long_talk(1);
    assert_eq!((view.tokens_left_out_at_most(), view.leave_out_oldest(0)), (0, 0));
    assert_eq!(View::default().leave_out_oldest(0), 0);
}

/// A task with a picture, and a result with two.
fn three_pictures() -> View {
    let mut view = View::default();
    view.push(entry(Kind::Prompt { meta: false }, &json!([{"type": "text", "text": "look"}, image()])));
    view.push(thinks());
    view.push(calls("a"));
    let kind = Kind::ToolResult { call: "a".into(), is_error: false };
    let content = json!([image(), {"type": "text", "text": "and"}, image()]);
    view.push(entry(kind, &json!([{"type": "tool_result", "tool_use_id": "a", "content": content}])));
    view
}

/// Which of the three are there.
fn pictures(view: &mut View) -> [bool; 3] {
    let messages = sent(view);
    let inside = &messages[2]["content"][0]["content"];
    let blocks = [&messages[0]["content"][1], &inside[0], &inside[2]];
    for block in blocks {
        assert!(block["type"] == "image" || block["text"] == MEDIA_LEFT_OUT, "{block}");
    }
    blocks.map(|block| block["type"] == "image")
}

#[test]
fn media_go_by_place() {
    let mut view = three_pictures();
    assert_eq!(view.media_count(), 3);
    for nowhere in [(1, 0, None), (0, 7, None), (9, 0, None), (2, 0, Some(1))] {
        let left_out = view.leave_out_media_at(nowhere.0, nowhere.1, nowhere.2);
        assert_eq!((left_out.places.len(), left_out.bytes), (0, 0), "{nowhere:?}");
    }
    assert!(view.leave_out_media_at(2, 0, Some(2)).bytes > 9_000);
    assert_eq!(pictures(&mut view), [true, true, false]);
    assert_eq!(
        view.leave_out_media_at(2, 0, None).places.len(),
        1,
        "without a place inside, all of the block"
    );
    assert_eq!((pictures(&mut view), view.media_count()), ([true, false, false], 1));
}

#[test]
fn thinking_before_the_first_medium_that_goes_stays() {
    let thoughts =
        |view: &mut View| serde_json::to_string(&sent(view)).unwrap().matches("thinking\"").count();
    let mut view = three_pictures();
    let before = thoughts(&mut view);
    view.leave_out_media_at(2, 0, None);
    assert_eq!((thoughts(&mut view), before > 0), (before, true));
    assert!(!view.answers_calls_made_without_thinking());
    view.leave_out_media_at(0, 1, None);
    assert_eq!(thoughts(&mut view), 0);
    assert!(view.answers_calls_made_without_thinking());
    view.push(prompt("something else"));
    assert!(view.answers_calls_made_without_thinking(), "still in the message that answers");
    view.push(says("well"));
    view.push(prompt("something else"));
    assert!(!view.answers_calls_made_without_thinking());
}

#[test]
fn media_go_oldest_first_and_only_as_many_as_must() {
    let left = |choose: &dyn Fn(&mut View)| {
        let mut view = three_pictures();
        choose(&mut view);
        pictures(&mut view)
    };
    assert_eq!(left(&|view| drop(view.leave_out_oldest_media(1))), [false, true, true]);
    assert_eq!(left(&|view| drop(view.leave_out_oldest_media(9_500))), [false, false, true]);
    assert_eq!(left(&|view| drop(view.leave_out_oldest_media(usize::MAX))), [false, false, false]);
    assert_eq!(left(&|view| drop(view.leave_out_media_beyond(2))), [false, true, true]);
    assert_eq!(left(&|view| drop(view.leave_out_media_beyond(3))), [true, true, true]);
    assert_eq!(left(&|view| drop(view.leave_out_media_beyond(0))), [false, false, false]);
}

#[test]
fn what_was_left_out_can_be_left_out_again() {
    let mut view = three_pictures();
    let mut left_out = view.leave_out_oldest_media(1);
    left_out.add(view.leave_out_media_at(2, 0, Some(0)));
    let mut again = three_pictures();
    assert_eq!(again.leave_out_media_of(&left_out.places), left_out);
    assert_eq!((pictures(&mut again), sent(&mut again)), ([false, false, true], sent(&mut view)));
    assert_eq!(again.leave_out_media_of(&left_out.places).bytes, 0);
    let lines = serde_json::to_string(&left_out.places).unwrap();
    assert_eq!(serde_json::from_str::<Vec<MediaPlace>>(&lines).unwrap(), left_out.places);
}

#[test]
fn tokens_follow_the_media_that_go_and_the_rest_stays_counted() {
    let mut view = three_pictures();
    let estimated = view.tokens();
    assert!((4_800..5_000).contains(&estimated), "three large ones and some words: {estimated}");
    let counted = Usage { input_tokens: 20_000, ..Usage::default() };
    view.counted(&counted);
    view.leave_out_oldest_media(1);
    assert!((18_300..18_500).contains(&view.tokens()), "{}", view.tokens());
    assert_eq!(view.counted_tokens(), 0, "no model has counted this");
    view.leave_out_oldest_media(usize::MAX);
    assert!((15_000..15_400).contains(&view.tokens()), "{}", view.tokens());
}

#[test]
fn pictures_are_counted_by_pixels_and_only_where_they_are_pictures() {
    let tokens = |content: Value| entry(Kind::Prompt { meta: false }, &json!([content])).tokens;
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\xc8\0\0\0\x96\x08\x06";
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, head);
    let small =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    assert_eq!(tokens(small), 40 + 1, "200 by 150 pixels");
    let elsewhere = json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}});
    assert_eq!(tokens(elsewhere), 1_601);
    let words = json!({"type": "text", "text": r#"{"type":"image","source":{"type":"base64"}}"#});
    assert!(tokens(words) < 40);
}

#[test]
fn a_withdrawn_answer_is_gone_and_its_call_may_come_again() {
    let mut view = View::default();
    view.push(prompt("hi"));
    let mut answer = Vec::new();
    for (number, made) in [says("half"), calls("a")].into_iter().enumerate() {
        let mut made = Entry::clone(&made);
        made.id = Uuid::from_u128(number as u128 + 1);
        answer.push(made.id);
        view.push(Arc::new(made));
    }
    view.withdraw(&answer);
    assert_eq!(outline(&mut view), "user: hi*");
    for again in [says("whole"), calls("a"), answers("a")] {
        assert_eq!(view.push(again), Pushed::Seen);
    }
    assert_eq!(outline(&mut view), "user: hi* | assistant: whole, call a | user: result a*");
}

proptest! {
    #[test]
    fn whatever_is_left_out_the_rest_is_legal(
        entries in prop::collection::vec(any_entry(), 0..40),
        keep in 0u64..600,
        rounds_kept in 0usize..6,
    ) {
        let mut view = View::default();
        entries.into_iter().for_each(|entry| _ = view.push(entry));
        view.push(prompt("go on"));
        view.fold_old_results(rounds_kept);
        prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
        view.leave_out_oldest(keep);
        prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
        for more in [calls("new"), answers("new"), prompt("more")] {
            view.push(more);
        }
        view.leave_out_thinking();
        prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
    }

    #[test]
    fn any_history_whatever_its_damage_is_sent_legally(
        entries in prop::collection::vec(any_entry(), 0..40),
        asked_after in prop::collection::hash_set(0usize..40, 0..6),
    ) {
        let mut view = View::default();
        for (index, entry) in entries.into_iter().enumerate() {
            view.push(entry);
            if asked_after.contains(&index) && view.open_calls().is_empty() {
                view.request();
            }
        }
        // A session goes on with a prompt; that closes what is open.
        view.push(prompt("go on"));
        prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
    }

    #[test]
    fn nothing_that_can_be_sent_is_lost(turns in prop::collection::vec((any::<bool>(), 1usize..4), 1..8)) {
        let mut view = View::default();
        let mut blocks = 0;
        let mut next = 0;
        view.push(prompt("hi"));
        for (with_text, count) in turns {
            blocks += usize::from(with_text) + 2 * count;
            if with_text {
                view.push(says("text"));
            }
            let ids: Vec<String> = (0..count).map(|_| { next += 1; next.to_string() }).collect();
            ids.iter().for_each(|id| _ = view.push(calls(id)));
            ids.iter().rev().for_each(|id| _ = view.push(answers(id)));
        }
        let messages = sent(&mut view);
        let sent: usize = messages.iter().map(|message| message["content"].as_array().unwrap().len()).sum();
        prop_assert_eq!(sent, blocks + 1);
        prop_assert_eq!(legal(&messages), Ok(()));
    }
}
