use pelton_wire::cache::CacheLife;
use serde_json::{Value, json};

use super::*;
use crate::permission::Mode;
use crate::transcript::read;

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn line(number: u128, parent: Option<u128>, rest: &Value) -> Value {
    let mut line = json!({"uuid": id(number), "parentUuid": parent.map(id), "sessionId": id(99)});
    line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    line
}

fn said(number: u128, parent: Option<u128>, words: &str) -> Value {
    line(number, parent, &json!({"type": "user", "message": {"role": "user", "content": words}}))
}

/// A boundary as other programs write it.
fn boundary(number: u128, before: u128) -> Value {
    let rest = json!({"type": "system", "subtype": "compact_boundary", "logicalParentUuid": id(before)});
    line(number, None, &rest)
}

/// Three windows, and garbage between them that nobody needs to look at.
fn three_windows() -> Vec<String> {
    let lines = [
        said(1, None, "one"),
        said(2, Some(1), "two"),
        boundary(10, 2),
        said(11, Some(10), "summary of two"),
        said(12, Some(11), "three"),
        boundary(20, 12),
        said(21, Some(20), "summary of three"),
        said(22, Some(21), "four"),
        said(23, Some(22), "five"),
    ];
    let mut lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.insert(5, "x".repeat(3 * BLOCK_BYTES));
    lines
}

fn window(lines: &[String]) -> Loaded {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    std::fs::write(&file, lines.concat_lines()).unwrap();
    let before = std::fs::read(&file).unwrap();
    let window = read_window(&file).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let whole = read(&file).unwrap();
    assert_eq!((window.newest, window.read_to), (whole.newest, whole.read_to));
    assert_eq!((window.session_id, &window.works_as), (whole.session_id, &whole.works_as));
    assert_eq!(sent(&window), sent(&whole));
    window
}

trait ConcatLines {
    fn concat_lines(&self) -> String;
}

impl ConcatLines for [String] {
    fn concat_lines(&self) -> String {
        self.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// What the model would be sent.
fn sent(loaded: &Loaded) -> String {
    let (mut history, _) =
        crate::history::History::replay(loaded.entries.clone(), loaded.edits.clone(), Default::default());
    String::from_utf8(history.view_mut().request(CacheLife::default()).to_vec()).unwrap()
}

#[test]
fn only_what_stands_behind_the_newest_boundary_is_read() {
    let window = window(&three_windows());
    assert!(window.is_partial);
    assert_eq!(window.lines_skipped, 0, "the garbage was not looked at");
    let ids: Vec<Uuid> = window.entries.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [21, 22, 23].map(id));
}

#[test]
fn whoever_went_back_before_a_boundary_gets_what_stands_there() {
    let mut lines = three_windows();
    lines.push(said(30, Some(11), "somewhere else").to_string());
    let back = window(&lines);
    assert!(back.is_partial && sent(&back).contains("summary of two") && !sent(&back).contains("four"));
    lines.push(said(31, Some(1), "even further back").to_string());
    let back = window(&lines);
    assert!(!back.is_partial && sent(&back).contains("one") && !sent(&back).contains("summary"));
}

#[test]
fn damage_in_the_window_is_bridged_and_counted() {
    let mut lines = three_windows();
    let at = lines.len() - 2;
    lines[at].truncate(40);
    lines.push("\0\0\0".to_owned());
    let window = window(&lines);
    assert!(window.is_partial);
    assert_eq!(window.lines_skipped, 1);
    assert!(sent(&window).contains("summary of three") && sent(&window).contains("five"));
}

#[test]
fn words_that_look_like_a_boundary_are_none() {
    let mut lines = three_windows();
    lines.push(said(24, Some(23), r#"{"subtype":"compact_boundary"}"#).to_string());
    lines.push(r#"{"type":"x","data":"compact_boundary"}"#.to_owned());
    let torn = boundary(40, 24).to_string();
    lines.push(torn[..torn.len() - 3].to_owned());
    let sidechain =
        line(41, None, &json!({"type": "system", "subtype": "compact_boundary", "isSidechain": true}));
    lines.push(sidechain.to_string());
    assert_eq!(window(&lines).entries.len(), 4);
}

#[test]
fn a_file_cut_at_any_byte_behind_its_boundary_reads_like_the_whole() {
    let lines = three_windows();
    let text = lines.concat_lines();
    let from = text.rfind("\"compact_boundary\"").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    for cut in from..text.len() {
        std::fs::write(&file, &text[..cut]).unwrap();
        let (window, whole) = (read_window(&file).unwrap(), read(&file).unwrap());
        assert_eq!((window.newest, window.read_to), (whole.newest, whole.read_to), "cut at {cut}");
        assert_eq!(sent(&window), sent(&whole), "cut at {cut}");
    }
}

#[test]
fn bytes_on_the_edge_of_two_blocks_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    for place in (BLOCK_BYTES - 20..BLOCK_BYTES + 20).chain([0, 1, 2 * BLOCK_BYTES]) {
        let mut bytes = vec![b'.'; 2 * BLOCK_BYTES + 100];
        bytes[place..place + 8].copy_from_slice(b"\"wanted\"");
        std::fs::write(&path, &bytes).unwrap();
        let file = Searched::open(&path).unwrap();
        assert_eq!(file.last(b"\"wanted\"", file.bytes).unwrap(), Some(place as u64));
        assert_eq!(file.last(b"\"wanted\"", place as u64 + 7).unwrap(), None);
        assert_eq!(file.last(b"\"wanted\"", place as u64 + 8).unwrap(), Some(place as u64));
    }
}

#[test]
fn a_long_line_is_shared_and_not_copied() {
    let words = "w".repeat(3 * 1024 * 1024);
    let content = json!([{"type": "text", "text": words}]);
    let long = line(24, Some(23), &json!({"type": "user", "message": {"role": "user", "content": content}}));
    let mut lines = three_windows();
    lines.push(long.to_string());
    let window = window(&lines);
    assert_eq!(window.entries.last().unwrap().json, content.to_string());
}

fn until(lines: &[String], message: u128) -> Option<Loaded> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    std::fs::write(&file, lines.concat_lines()).unwrap();
    let end = read(&file).unwrap();
    let part = read_window_until(&file, id(message)).unwrap();
    if let Some(part) = &part {
        assert_eq!((part.newest, part.read_to), (Some(id(message)), end.read_to));
    }
    part
}

#[test]
fn whoever_goes_back_to_a_message_reads_what_stood_before_it() {
    let lines = three_windows();
    let part = until(&lines, 22).unwrap();
    assert!(part.is_partial && part.lines_skipped == 0, "no more than the window was looked at");
    assert!(sent(&part).contains("four") && !sent(&part).contains("five"));
    let part = until(&lines, 12).unwrap();
    assert!(
        part.is_partial
            && sent(&part).contains("summary of two")
            && !sent(&part).contains("summary of three")
    );
    let part = until(&lines, 2).unwrap();
    assert!(!part.is_partial && sent(&part).contains("one") && !sent(&part).contains("summary"));
    assert!(until(&lines, 10).is_none(), "a boundary was not said");
    assert!(until(&lines, 77).is_none());
}

#[test]
fn what_names_a_message_is_not_taken_for_it() {
    let mut lines = three_windows();
    let named = json!({"type": "x", "about": {"uuid": id(22)}});
    lines.push(named.to_string());
    lines.push(r#"{"torn":{"uuid":"00000000-0000-0000-0000-000000000016"#.to_owned());
    let part = until(&lines, 22).unwrap();
    assert!(sent(&part).contains("four") && !sent(&part).contains("five"));
}

#[test]
fn what_was_done_to_what_is_not_said_any_more_does_not_count() {
    let clear = json!({"type": "system", "subtype": "context_edit", "editId": id(60), "by": "x",
        "edit": {"op": "replace", "from": id(1), "to": id(1), "by": "nothing"}});
    let mut lines: Vec<String> =
        [said(1, None, "one"), said(2, Some(1), "two"), said(3, Some(2), "three"), clear]
            .iter()
            .map(Value::to_string)
            .collect();
    assert!(!sent(&window(&lines)).contains("one"));
    let part = until(&lines, 2).unwrap();
    assert!(sent(&part).contains("one") && !sent(&part).contains("three"), "it was made later");
    lines.push(said(4, Some(2), "other").to_string());
    assert!(sent(&window(&lines)).contains("one"), "it was made elsewhere");
}

#[test]
fn prompts_that_wait_still_wait_after_going_back() {
    let queued = |number: u128| {
        json!({"type": "queue-operation", "operation": "enqueue", "promptId": id(number), "priority": "later",
            "content": [{"type": "text", "text": "wait"}], "sessionId": id(99)})
    };
    let mut consumed = said(5, Some(2), "used");
    consumed["queuedIds"] = json!([id(70)]);
    let lines: Vec<String> =
        [said(1, None, "one"), queued(70), said(2, Some(1), "two"), consumed, queued(71)]
            .iter()
            .map(Value::to_string)
            .collect();
    let whole = window(&lines);
    let part = until(&lines, 2).unwrap();
    let ids = |loaded: &Loaded| loaded.queued.iter().map(|queued| queued.id).collect::<Vec<_>>();
    assert_eq!((ids(&whole), ids(&part)), (vec![id(71)], vec![id(71)]));
}

#[test]
fn what_was_taken_back_is_no_place_to_go_on_from() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    let answer = json!({"type": "assistant", "message": {"role": "assistant", "content": "Half of"}});
    let lines = [
        said(1, None, "one"),
        line(2, Some(1), &answer),
        json!({"type": "tombstone", "uuids": [id(2)]}),
        line(3, Some(2), &answer),
        said(4, Some(3), "two"),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.concat_lines()).unwrap();
    let until = |number| read_window_until(&file, id(number)).unwrap().map(|part| part.entries.len());
    assert_eq!([1, 2, 3, 4].map(until), [Some(1), None, Some(2), Some(3)]);
}

#[test]
fn what_was_done_between_a_message_and_going_back_to_it_does_not_count() {
    let edit = |number: u128, taken: u128| {
        json!({"type": "system", "subtype": "context_edit", "editId": id(number), "by": "x",
            "edit": {"op": "replace", "from": id(taken), "to": id(taken), "by": "nothing"}})
    };
    let back = |number: u128, parent: u128| {
        line(number, Some(parent), &json!({"type": "system", "subtype": "gone_back"}))
    };
    // Before the third message something was done to the first, and that was gone back from.
    let mut lines: Vec<String> = [
        said(1, None, "one"),
        said(2, Some(1), "two"),
        edit(60, 1),
        said(3, Some(2), "three"),
        back(4, 2),
        edit(61, 2),
    ]
    .iter()
    .map(Value::to_string)
    .collect();
    let sent_in = |lines: &[String]| {
        let sent = sent(&window(lines));
        ["one", "two", "three", "four"].map(|words| sent.contains(words))
    };
    assert_eq!(sent_in(&lines), [true, false, false, false], "what was done behind it counts");
    let mut before = lines.clone();
    before.insert(1, edit(59, 1).to_string());
    assert_eq!(sent_in(&before), [false; 4], "so does what was done before that message came");
    lines.push(said(5, Some(4), "four").to_string());
    assert_eq!(sent_in(&lines), [true, false, false, true]);
}

#[test]
fn the_agent_is_known_wherever_it_is_named() {
    let named = |agent: &str| {
        json!({"type": "agent-setting", "agentSetting": agent, "sessionId": id(99)}).to_string()
    };
    for (places, works_as) in [
        (vec![], None),
        // Others say it at the beginning, ours say it behind every summary.
        (vec![(0, "gardener")], Some("gardener")),
        (vec![(0, "gardener"), (9, "smith")], Some("smith")),
        (vec![(9, "smith"), (11, "baker")], Some("baker")),
    ] {
        let mut lines = three_windows();
        places.iter().for_each(|(place, agent)| lines.insert(*place, named(agent)));
        let window = window(&lines);
        assert!(window.is_partial);
        assert_eq!(window.works_as.as_deref(), works_as, "{places:?}");
    }
}

#[test]
fn what_a_session_has_cost_and_what_runs_unasked_is_known_wherever_it_is_said() {
    let cost = |usd: f64| {
        let used = json!({"m": {"usage": {}, "cost_usd": usd}});
        let models: std::collections::BTreeMap<String, crate::event::ModelUsage> =
            serde_json::from_value(used).unwrap();
        json!({"type": "session-cost", "models": models, "sessionId": id(99)}).to_string()
    };
    let asked = |number: u128, parent: Option<u128>, front: &str, mode: &str| {
        let mut line = said(number, parent, "asked");
        line["permissionMode"] = json!(mode);
        line["entrypoint"] = json!(front);
        line.to_string()
    };
    let chosen = |mode: &str| json!({"type": "session-mode", "permissionMode": mode}).to_string();
    for (changes, usd, mode) in [
        (vec![], None, None),
        // Before the boundary, as earlier versions left it.
        (vec![(2, cost(0.25))], Some(0.25), None),
        (vec![(2, cost(0.25)), (10, cost(0.5))], Some(0.5), None),
        // What only looks like a line that says it is passed over.
        (
            vec![(2, cost(0.25)), (3, json!({"type": "user", "x": {"type": "session-cost"}}).to_string())],
            Some(0.25),
            None,
        ),
        (vec![(0, asked(50, None, "cli", "acceptEdits"))], None, Some(Mode::AcceptEdits)),
        (vec![(0, asked(50, None, "sdk-cli", "acceptEdits"))], None, None),
        (
            vec![(0, asked(50, None, "cli", "dontAsk")), (1, asked(51, None, "sdk-py", "acceptEdits"))],
            None,
            Some(Mode::DontAsk),
        ),
        (
            vec![(0, asked(50, None, "cli", "dontAsk")), (9, chosen("acceptEdits"))],
            None,
            Some(Mode::AcceptEdits),
        ),
    ] {
        let mut lines = three_windows();
        for (place, line) in &changes {
            lines.insert(*place, line.clone());
        }
        let window = window(&lines);
        assert!(window.is_partial);
        assert_eq!(window.spent.get("m").and_then(|used| used.cost_usd), usd, "{changes:?}");
        assert_eq!(window.mode, mode, "{changes:?}");
    }
}

#[test]
fn whoever_goes_back_keeps_what_is_of_the_session_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.jsonl");
    let mut lines = three_windows();
    let cost = json!({"type": "session-cost", "models": {"m": crate::event::ModelUsage { cost_usd: Some(0.5), ..Default::default() }}});
    let agent = json!({"type": "agent-setting", "agentSetting": "smith"});
    let mode = json!({"type": "session-mode", "permissionMode": "acceptEdits"});
    lines.extend([cost, agent, mode].iter().map(Value::to_string));
    std::fs::write(&file, lines.concat_lines()).unwrap();
    for message in [22, 12, 1] {
        let part = read_window_until(&file, id(message)).unwrap().unwrap();
        assert_eq!(part.spent["m"].cost_usd, Some(0.5), "{message}");
        assert_eq!(
            (part.works_as.as_deref(), part.mode),
            (Some("smith"), Some(Mode::AcceptEdits)),
            "{message}"
        );
    }
}

#[test]
fn whoever_goes_back_to_before_everything_has_left_all_of_it() {
    let request = |model: &str| {
        let facts = json!({"type": "system", "subtype": "request", "timestamp": "2026-01-01T00:00:00Z", "request": {"model": model}});
        facts.to_string()
    };
    let files = json!({"type": "system", "subtype": "gone_back"});
    let lines = [
        said(1, None, "one").to_string(),
        request("left"),
        line(2, None, &files).to_string(),
        said(3, Some(2), "two").to_string(),
        request("stays"),
    ];
    let loaded = crate::transcript::read_from(lines.concat_lines().as_bytes()).unwrap();
    assert_eq!(loaded.entries.len(), 1);
    let models: Vec<&str> = loaded.requests.iter().map(|request| request.model.as_str()).collect();
    assert!(!models.contains(&"left"), "{models:?}");
}
