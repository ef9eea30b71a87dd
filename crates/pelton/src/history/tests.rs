//! Whatever is pushed, what would be sent is legal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use jiff::Timestamp;
use pelton_wire::cache::CacheLife;
use pelton_wire::usage::Usage;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::edit::{By, Edit, Edited};
use super::log::History;
use super::media::MEDIA_LEFT_OUT;
use super::repair::{INTERRUPTED_RESULT, LEFT_OUT, RESULT_FOLDED};
use super::view::Pushed;
use super::*;

mod foreign; // what a server does not know
mod recalled; // what was counted in an earlier process
mod released; // what is on the disk only
mod running; // what is kept in passing

pub(crate) fn entry(kind: Kind, content: &Value) -> Arc<Entry> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = Uuid::from_u128(u128::from(NEXT.fetch_add(1, Ordering::Relaxed)));
    let json = Bytes::from(content.to_string());
    Arc::new(Entry::new(id, Timestamp::UNIX_EPOCH, kind, json).unwrap())
}

/// The same under a name of its own: one sample may be drawn many times.
pub(crate) fn renamed(sample: &Entry) -> Arc<Entry> {
    entry(sample.kind.clone(), &serde_json::from_slice(&sample.json).unwrap())
}

pub(crate) fn prompt(text: &str) -> Arc<Entry> {
    entry(Kind::Prompt { meta: false }, &json!([{"type": "text", "text": text}]))
}

pub(super) fn assistant(piece: Piece, content: &Value) -> Arc<Entry> {
    let origin =
        Origin { message_id: "msg".into(), model: "m".into(), usage: Usage::default(), request_id: None };
    entry(Kind::Assistant { origin: Arc::new(origin), piece }, content)
}

pub(crate) fn says(text: &str) -> Arc<Entry> {
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

pub(crate) fn sent(view: &mut View) -> Vec<Value> {
    let mut text = vec![b'['];
    text.extend(view.request(CacheLife::default()).to_vec());
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
        let bytes: Vec<u8> = view.request(CacheLife::default()).to_vec();
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
pub(crate) fn legal(messages: &[Value]) -> Result<(), String> {
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

pub(crate) fn any_entry() -> impl Strategy<Value = Arc<Entry>> {
    let id = || prop::sample::select(vec!["1", "2", "3", "4", "5"]);
    prop_oneof![
        Just(prompt("words")),
        Just(says("text")),
        Just(thinks()),
        id().prop_map(calls),
        id().prop_map(answers),
        Just(assistant(Piece::Other, &json!([{"type": "future", "x": 1}]))),
        server_tool(),
    ]
}

pub(crate) fn summary_named(id: Uuid) -> Arc<Entry> {
    let mut summary = Entry::clone(&prompt("summary"));
    summary.id = id;
    Arc::new(summary)
}

/// A call that the server runs itself, or what came of it.
fn server_tool() -> impl Strategy<Value = Arc<Entry>> {
    let block = |(number, answered): (u8, bool)| match answered {
        false => json!([{"type": "server_tool_use", "id": format!("s{number}"), "name": "w", "input": {}}]),
        true => json!([{"type": "w_tool_result", "tool_use_id": format!("s{number}"), "content": []}]),
    };
    (0u8..2, any::<bool>()).prop_map(move |which| assistant(Piece::Other, &block(which)))
}

pub(crate) fn image() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x".repeat(9_000)}})
}

fn long_talk(rounds: usize) -> Vec<Arc<Entry>> {
    let mut said = vec![prompt("the task")];
    for round in 0..rounds {
        let id = round.to_string();
        said.extend([thinks(), says(&"words ".repeat(50)), calls(&id), answers(&id)]);
    }
    said
}

fn view_of(said: &[Arc<Entry>]) -> View {
    let mut view = View::default();
    said.iter().for_each(|entry| _ = view.push(Arc::clone(entry)));
    view
}

fn replace(from: &Entry, to: &Entry) -> Edit {
    Edit::Replace { from: from.id, to: to.id, by: By::Note }
}

#[test]
fn a_note_stands_for_what_was_left_out_and_only_thinking_behind_it_goes() {
    let said = long_talk(4);
    let mut view = view_of(&said);
    let before = view.tokens();
    // The second and the third round, named by a text in one and a call in the other.
    assert!(view.apply(&replace(&said[6], &said[11]), Some(prompt(LEFT_OUT)), "test"));
    let words = "words ".repeat(50);
    assert_eq!(
        outline(&mut view).replace(&words, "w").replace(LEFT_OUT, "note"),
        "user: the task | assistant: thinking, w, call 0 | user: result 0, note | assistant: w, call 3 | user: result 3*"
    );
    assert!(view.tokens() < before);
    assert_eq!(view.counted_tokens(), 0, "nobody has counted this");
}

#[test]
fn results_lose_their_words_and_keep_how_it_went() {
    let mut said = vec![prompt("the task")];
    for id in ["a", "b", "c"] {
        let kind = Kind::ToolResult { call: id.into(), is_error: id == "a" };
        let block = json!([{"type": "tool_result", "tool_use_id": id, "content": "words ".repeat(500)}]);
        said.extend([thinks(), calls(id), entry(kind, &block)]);
    }
    let mut view = view_of(&said);
    let before = view.tokens();
    assert!(!view.apply(&Edit::Clear { calls: vec!["elsewhere".into()] }, None, "test"));
    assert!(view.apply(&Edit::Clear { calls: vec!["b".into(), "a".into()] }, None, "test"));
    assert!(view.tokens() < before / 2);
    let messages = sent(&mut view);
    assert_eq!(legal(&messages), Ok(()));
    let said = |message: usize| messages[message]["content"][0]["content"].as_str().unwrap();
    assert_eq!((said(2), said(4)), (RESULT_FOLDED, RESULT_FOLDED));
    assert!(said(6).starts_with("words"));
    assert_eq!(messages[2]["content"][0]["is_error"], true, "how it went stays");
    let thoughts = |message: usize| messages[message]["content"][0]["type"] == "thinking";
    assert_eq!(
        (thoughts(1), thoughts(3), thoughts(5)),
        (true, false, false),
        "only what stands before it stays"
    );
    assert!(
        !view.apply(&Edit::Clear { calls: vec!["a".into()] }, None, "test"),
        "there is nothing left to clear"
    );
}

#[test]
fn a_result_that_would_be_no_smaller_stays() {
    let words = "x".repeat(RESULT_FOLDED.len());
    let kind = Kind::ToolResult { call: "a".into(), is_error: false };
    let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": words, "is_error": false}]);
    let mut view = view_of(&[prompt("the task"), calls("a"), entry(kind, &result)]);
    assert!(!view.apply(&Edit::Clear { calls: vec!["a".into()] }, None, "test"));
    assert_eq!(sent(&mut view)[2]["content"][0]["content"], words);
}

#[test]
fn what_is_being_worked_on_and_what_is_not_there_cannot_be_taken_away() {
    let said = [prompt("the task"), calls("a"), calls("b"), answers("a")];
    let mut view = view_of(&said);
    let before = view.len();
    assert!(!view.apply(&replace(&said[1], &said[3]), None, "test"), "b waits for its result");
    assert!(!view.apply(&replace(&said[3], &said[1]), None, "test"), "the wrong way round");
    assert!(!view.apply(&replace(&said[0], &prompt("elsewhere")), None, "test"));
    assert_eq!(view.len(), before);
}

#[test]
fn loop_C10_every_edit_can_be_made_again_and_undone() {
    let said = long_talk(6);
    let mut history = History::default();
    said.iter().for_each(|entry| _ = history.push(Arc::clone(entry)));
    let whole = outline(&mut history.view().clone());
    let name = |number: u128| Uuid::from_u128(1_000_000 + number);
    history.edit(name(1), "test", replace(&said[1], &said[4])).unwrap();
    history.push(prompt("more"));
    let summary = prompt("in short");
    history.keep(Arc::clone(&summary));
    let by = By::Entry(summary.id);
    let edit = Edit::Replace { from: said[0].id, to: said[12].id, by };
    history.edit(name(2), "test", edit).unwrap();
    history.push(says("well"));
    let edited = outline(&mut history.view().clone());
    assert!(edited.starts_with("user: in short | assistant: "), "{edited}");

    // What another process reads from the record.
    let entries = history.entries().to_vec();
    let edits: Vec<Edited> = history.edits().into_iter().cloned().collect();
    let (again, is_whole) = History::replay(entries.clone(), edits, Default::default());
    assert!(is_whole);
    assert_eq!(outline(&mut again.view().clone()), edited);

    history.edit(name(3), "undo", Edit::Undo { edit: name(2) }).unwrap();
    assert!(!outline(&mut history.view().clone()).contains("in short"));
    history.edit(name(4), "undo", Edit::Undo { edit: name(1) }).unwrap();
    let undone = outline(&mut history.view().clone());
    let without_marks = |text: &str| text.replace('*', "").replace("thinking, ", "");
    assert_eq!(without_marks(&undone), without_marks(&format!("{whole}, more | assistant: well")));
    assert_eq!(history.edit(name(5), "undo", Edit::Undo { edit: name(9) }), None, "there is no such edit");

    // A summary that was never written down: what it stood for is sent.
    let edit = Edit::Replace { from: said[0].id, to: said[4].id, by: By::Entry(name(7)) };
    let (torn, is_whole) =
        History::replay(entries, vec![Edited::new(name(6), 7, "test", edit)], Default::default());
    assert!(!is_whole && outline(&mut torn.view().clone()).starts_with("user: the task"));
}

#[test]
fn a_count_that_was_doubled_changes_nothing() {
    let mut view = view_of(&long_talk(4));
    view.set_overhead(4_000);
    let count = |total: u64| Usage { input_tokens: total, ..Usage::default() };
    view.counted(&count(2_000));
    assert_eq!(view.tokens(), 2_000);
    view.push(prompt("a few words more"));
    let expected = view.tokens();
    view.counted(&count(expected * 2));
    assert_eq!(view.tokens(), expected);
    view.counted(&count(expected * 3));
    assert_eq!(view.tokens(), expected * 3, "that is not twice as much");
}

#[test]
fn what_one_model_counted_is_taken_for_what_another_counts() {
    const MORE: (Option<bool>, bool) = (Some(true), true);
    const LESS: (Option<bool>, bool) = (Some(false), false);
    const UNKNOWN: (Option<bool>, bool) = (None, true);
    let count = |total: u64| Usage { input_tokens: total, ..Usage::default() };
    let mut view = view_of(&long_talk(4));
    view.set_overhead(40_000);
    view.set_counting(MORE.0, MORE.1);
    let guessed = view.tokens();
    view.set_counting(LESS.0, LESS.1);
    assert_eq!(view.tokens(), guessed, "nobody has counted anything");
    view.set_counting(MORE.0, MORE.1);
    view.counted(&count(13_000));
    let is_about = |view: &View, tokens: u64| {
        assert!(view.tokens().abs_diff(tokens) <= tokens / 100, "{} instead of {tokens}", view.tokens());
    };
    view.set_counting(LESS.0, LESS.1);
    is_about(&view, 10_000);
    assert_eq!(view.counted_tokens(), 0, "it has not counted this");
    // Whoever goes on with another of the same kind, or one that nobody knows, hears what was counted.
    for another in [LESS, UNKNOWN, MORE] {
        let mut view = view.clone();
        view.set_counting(another.0, another.1);
        view.set_counting(UNKNOWN.0, UNKNOWN.1);
        is_about(&view, if another == MORE { 13_000 } else { 10_000 });
    }
    // In another process, too.
    view.set_counting(MORE.0, MORE.1);
    view.counted(&count(13_000));
    let mut again = view_of(&long_talk(4));
    again.set_overhead(40_000);
    again.recall(&view.count_facts().unwrap());
    let mut same = again.clone();
    same.set_counting(MORE.0, MORE.1);
    is_about(&same, 13_000);
    again.set_counting(LESS.0, LESS.1);
    is_about(&again, 10_000);
    again.counted(&count(9_000));
    assert_eq!(again.tokens(), 9_000, "what it counts itself is believed");
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
    assert_eq!(left(&|view| drop(view.leave_out_pages_beyond(2))), [false, true, true]);
    assert_eq!(left(&|view| drop(view.leave_out_pages_beyond(3))), [true, true, true]);
    assert_eq!(left(&|view| drop(view.leave_out_pages_beyond(0))), [false, false, false]);
}

#[test]
fn what_was_left_out_can_be_left_out_again() {
    let mut again = three_pictures();
    let mut view = again.clone();
    let mut left_out = view.leave_out_oldest_media(1);
    left_out.add(view.leave_out_media_at(2, 0, Some(0)));
    assert_eq!(again.leave_out_media_of(&left_out.places, "test"), left_out);
    assert_eq!((pictures(&mut again), sent(&mut again)), ([false, false, true], sent(&mut view)));
    assert_eq!(again.leave_out_media_of(&left_out.places, "test").bytes, 0);
    let lines = serde_json::to_string(&left_out.places).unwrap();
    assert_eq!(serde_json::from_str::<Vec<MediaPlace>>(&lines).unwrap(), left_out.places);
}

#[test]
fn tokens_follow_the_media_that_go_and_the_rest_stays_counted() {
    let mut view = three_pictures();
    let estimated = view.tokens();
    assert!((4_800..5_000).contains(&estimated), "three large ones and some words: {estimated}");
    let counted = Usage { input_tokens: 20_000, ..Usage::default() };
    view.set_overhead(4 * (20_000 - estimated as usize));
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
    assert_eq!(tokens(elsewhere), 4_785, "as much as any, to models that look closely");
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

#[test]
fn blocks_that_a_server_does_not_know_go_with_what_hangs_on_them() {
    let other = |block: Value| assistant(Piece::Other, &json!([block]));
    let searches = other(json!({"type": "server_tool_use", "id": "s1", "name": "w", "input": {}}));
    let found = other(json!({"type": "w_tool_result", "tool_use_id": "s1", "content": []}));
    let future = other(json!({"type": "future", "x": 1}));
    let asked =
        entry(Kind::Prompt { meta: false }, &json!([{"type": "text", "text": "and"}, {"type": "hologram"}]));
    let said =
        [prompt("hi"), thinks(), future, thinks(), says("a"), asked, searches, found, says("b"), prompt("c")];
    let left = |kinds: &[&str]| {
        let kinds = kinds.iter().map(ToString::to_string).collect();
        let mut view = view_of(&said);
        let was_there = view.apply(&Edit::Blocks { kinds }, None, "test");
        assert_eq!(view.disagreement(), None);
        was_there.then(|| outline(&mut view))
    };
    assert_eq!(left(&["text", "past"]), None, "what is needed stays, whatever somebody says");
    let searched = "server_tool_use, w_tool_result, b | user: c*";
    assert_eq!(
        left(&["future"]),
        Some(format!("user: hi | assistant: thinking, a | user: and, hologram | assistant: {searched}"))
    );
    // Of what a server did, there is all or nothing.
    let before = "user: hi | assistant: thinking, future, thinking, a | user: and, hologram";
    for half in ["w_tool_result", "server_tool_use"] {
        assert_eq!(left(&[half]), Some(format!("{before} | assistant: b | user: c*")));
    }
    let note = left(&["hologram"]).unwrap();
    assert!(
        note.contains("the server does not know its kind") && note.contains("future, thinking, a"),
        "{note}"
    );
    let mut view = view_of(&said);
    assert_eq!(view.kinds_not_needed(), ["future", "hologram", "server_tool_use", "w_tool_result"]);
    let at = |message, block| view.kind_at(message, block, None);
    assert_eq!(
        (at(1, 1).as_deref(), at(1, 0), at(2, 1).as_deref()),
        (Some("future"), None, Some("hologram"))
    );
    assert_eq!(
        (at(3, 1).as_deref(), at(3, 2), at(9, 0), at(0, 7)),
        (Some("w_tool_result"), None, None, None)
    );
    assert_eq!(
        view.kind_at(3, 1, Some(0)).as_deref(),
        Some("w_tool_result"),
        "what is found goes as a whole"
    );
    assert_eq!(legal(&sent(&mut view)), Ok(()));
}

proptest! {
    #[test]
    fn pit_C3_loop_C11_whatever_is_cut_the_rest_is_legal(
        samples in prop::collection::vec(any_entry(), 1..40),
        cuts in prop::collection::vec((0usize..40, 0usize..40, 0usize..6, any::<bool>()), 1..6),
        asked in any::<bool>(),
    ) {
        let said: Vec<Arc<Entry>> = samples.iter().map(|sample| renamed(sample)).collect();
        let mut history = History::default();
        said.iter().for_each(|entry| _ = history.push(Arc::clone(entry)));
        if asked {
            history.push(prompt("go on"));
        }
        for (number, (first, last, kind, undo)) in cuts.into_iter().enumerate() {
            let name = Uuid::from_u128(1 << 64 | number as u128);
            let (from, to) = (said[first % said.len()].id, said[last % said.len()].id);
            let edit = match kind {
                0 => Edit::Replace { from, to, by: By::Nothing },
                1 => Edit::Replace { from, to, by: By::Words("in short".into()) },
                2 => Edit::Clear { calls: vec![(first % 6).to_string()] },
                3 => Edit::Blocks { kinds: vec!["future".into()] },
                4 => Edit::Blocks { kinds: vec!["w_tool_result".into()] },
                _ => Edit::Replace { from, to, by: By::Entry(Uuid::from_u128(3 << 64 | number as u128)) },
            };
            // As a session does: what cannot be done leaves nothing behind.
            let mut tried = history.clone();
            if let Edit::Replace { by: By::Entry(id), .. } = &edit {
                tried.keep(summary_named(*id));
            }
            let was_made = tried.edit(name, "test", edit).is_some();
            if was_made {
                history = tried;
            }
            if was_made && undo {
                history.edit(Uuid::from_u128(2 << 64 | number as u128), "undo", Edit::Undo { edit: name });
            }
            let mut view = history.view().clone();
            view.push(prompt("what now?"));
            prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
        }
        // Another process makes the same of it.
        let (again, _) = History::replay(history.entries().to_vec(), history.all_edits().to_vec(), Default::default());
        let mut views = [history.view().clone(), again.view().clone()];
        views.iter_mut().for_each(|view| _ = view.push(prompt("what now?")));
        let [mut one, mut two] = views;
        prop_assert_eq!(sent(&mut one), sent(&mut two));
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
                view.request(CacheLife::default());
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
