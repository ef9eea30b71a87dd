//! Going on from what is on disk.

use std::path::{Path, PathBuf};

use pelton::transcript;
use pelton_testkit::{Script, Step, gate, redacted_thinking, text, thinking, tool};
use serde_json::{Value, json};

use crate::probe::{Note, Notes};
use crate::stage::{
    Stage, blocks, holds, is_result_of, lines, prompt, pulling, rest, results_in, resume_from, run, sh,
    unmarked, until,
};

#[tokio::test]
async fn loop_P9_pit_L1_a_call_that_was_running_when_the_process_died_is_answered_once_and_not_run_again() {
    let notes = Notes::default();
    let script = Script::new()
        .reply([
            thinking("All three."),
            tool("Look", json!({"name": "ended"})).id("toolu_ended"),
            tool("Change", json!({"name": "hangs", "does": "hang"})).id("toolu_hangs"),
            tool("Change", json!({"name": "waits"})).id("toolu_waits"),
        ])
        .reply([thinking("I see."), text("Going on.")])
        .reply([text("And on.")])
        .reply([text("And on and on.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));
    let file = engine.transcript_file().unwrap();

    let mut events = engine.submit(prompt("Go."));
    until(&mut events, |event| is_result_of(event, "toolu_ended")).await;
    pulling(&mut events, holds(|| notes.has(&Note::Begun("hangs".into())))).await;
    drop(events);
    drop(engine);

    let resume = || {
        stage.engine_with(|options| {
            options.tools.extend(notes.tools());
            resume_from(options, &file);
        })
    };
    let mut engine = resume();
    run(&mut engine, "Go on.").await.assert_completed();
    run(&mut engine, "And on.").await.assert_completed();
    drop(engine);
    run(&mut resume(), "And on.").await.assert_completed();

    assert_eq!(notes.begun(), ["ended", "hangs"], "nothing runs again");
    for request in 2..=4 {
        let results = results_in(&stage.request(request));
        let errors: Vec<(&str, bool)> =
            results.iter().map(|(id, is_error, _)| (id.as_str(), *is_error)).collect();
        assert_eq!(
            errors,
            [("toolu_ended", false), ("toolu_hangs", true), ("toolu_waits", true)],
            "request {request}"
        );
        assert!(results[1].2.contains("may or may not have taken effect"), "{}", results[1].2);
    }
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P9_loop_E9_a_session_that_ended_well_goes_on_where_it_was() {
    let script = Script::new()
        .reply([text("Both."), tool("Bash", sh("echo a")), tool("Bash", sh("exit 3"))])
        .reply([text("Done.")])
        .step(Step::reply([text("And on.")]).times(2));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Go.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    let copy = file.with_file_name("copy.jsonl");
    std::fs::copy(&file, &copy).unwrap();

    run(&mut engine, "Go on.").await.assert_completed();
    let session = engine.session_id();
    let mut resumed = stage.resume(&copy);
    run(&mut resumed, "Go on.").await.assert_completed();

    // Whether it was resumed or not makes no difference to the model.
    assert_eq!(unmarked(&stage.request(4)), unmarked(&stage.request(3)));
    assert_eq!(resumed.session_id(), session);
    assert_eq!(resumed.transcript_file(), Some(copy.clone()));
    let lines = lines(&copy);
    for pair in lines.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"], "new lines join the chain");
    }
    stage.assert_all_played();
}

/// Everything a conversation can hold, twice.
fn eventful() -> Script {
    let read = |n: usize| tool("Read", json!({"file_path": format!("{n}.txt")}));
    let mut script = Script::new();
    for n in 0..2 {
        script = script
            .reply([
                thinking(format!("First of all, {n}.")),
                text("Let me look."),
                read(0),
                thinking("Another one."),
                read(1),
                read(2),
                tool("Imagine", json!({})),
            ])
            .reply([
                redacted_thinking("secret"),
                thinking("Now write."),
                tool("Bash", sh("echo x >> log.txt")),
            ])
            .step(Step::status(529))
            .step(Step::reply([thinking("Too long."), text("Part one,")]).stop("max_tokens"))
            .reply([thinking("Go on."), text(" part two.")]);
    }
    script
}

/// Runs the eventful conversation to its end; its file.
async fn converse(stage: &Stage) -> PathBuf {
    for n in 0..3 {
        stage.write(&format!("{n}.txt"), &format!("file {n}\n"));
    }
    let mut engine = stage.engine();
    run(&mut engine, "One.").await.assert_completed();
    run(&mut engine, "Two.").await.assert_completed();
    engine.transcript_file().unwrap()
}

#[tokio::test]
async fn thinking_is_replayed_exactly_after_a_restart() {
    let stage =
        Stage::new(eventful().step(Step::reply([thinking("Still."), text("And on.")]).times(2))).await;
    let file = converse(&stage).await;
    let last = stage.model.reply_requests().pop().unwrap();
    assert_eq!(last.body["model"], "claude-sonnet-5-5");

    let mut engine = stage.resume(&file);
    run(&mut engine, "Three.").await.assert_completed();
    run(&mut engine, "Four.").await.assert_completed();

    // The strict model checks signatures, their places and everything before them.
    let request = stage.model.reply_requests().pop().unwrap();
    let signed = |body: &Value| {
        let thoughts = blocks(body, "assistant").into_iter().filter(|block| block["type"] == "thinking");
        thoughts.map(|block| block["signature"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = signed(&last.body);
    assert!(before.len() >= 8 && signed(&request.body).starts_with(&before));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P9_pit_L1_a_session_goes_on_from_any_line_its_file_ends_with() {
    let stage = Stage::new(eventful().step(Step::reply([thinking("Hm."), text("And on.")]).always())).await;
    let file = converse(&stage).await;
    let whole = std::fs::read(&file).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    assert!(ends.len() > 20);

    let copy = file.with_file_name("copy.jsonl");
    for (n, end) in ends.iter().enumerate() {
        // At a line's end, and in the middle of the next line.
        let torn = ends.get(n + 1).map_or(*end, |next| (end + next) / 2);
        for end in [*end, torn] {
            std::fs::write(&copy, &whole[..end]).unwrap();
            let mut engine = stage.resume(&copy);
            run(&mut engine, "Go on.").await.assert_completed();
            run(&mut engine, "And on.").await.assert_completed();
            drop(engine);
            run(&mut stage.resume(&copy), "Once more.").await.assert_completed();
        }
    }
    assert_eq!(stage.read("log.txt"), "x\nx\n", "nothing was run again");
    stage.model.assert_clean();
}

#[tokio::test]
async fn a_transcript_cut_at_any_byte_of_its_end_keeps_all_before() {
    let stage = Stage::new(eventful()).await;
    let file = converse(&stage).await;
    // Behind the last message stands what is known of its request, which is no part of the conversation.
    let mut lines: Vec<String> = std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    while !lines.last().unwrap().contains(r#""type":"assistant""#) {
        lines.pop();
    }
    let whole = (lines.join("\n") + "\n").into_bytes();
    std::fs::write(&file, &whole).unwrap();
    let ids = |file: &Path| {
        let loaded = transcript::read(file).unwrap();
        (loaded.entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), loaded.lines_skipped)
    };
    let (all, skipped) = ids(&file);
    assert_eq!(skipped, 0);
    let last_line = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let copy = file.with_file_name("copy.jsonl");
    for end in last_line..whole.len() {
        std::fs::write(&copy, &whole[..end]).unwrap();
        let (kept, skipped) = ids(&copy);
        let complete = end + 1 == whole.len();
        let expected = if complete { &all[..] } else { &all[..all.len() - 1] };
        assert_eq!(kept, expected, "{end}");
        assert_eq!(skipped, usize::from(!complete && end > last_line), "{end}");
        assert_eq!(std::fs::read(&copy).unwrap(), &whole[..end], "reading changes nothing");
    }
}

#[tokio::test]
async fn an_interrupted_session_can_be_resumed() {
    let script = Script::new()
        .reply([thinking("Hm."), text("Sleeping."), tool("Bash", sh("touch begun; sleep 300"))])
        .reply([text("I was"), gate("rest")])
        .reply([text("Good morning.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("Sleep."));
    pulling(&mut events, holds(|| stage.path("begun").exists())).await;
    interrupter.interrupt();
    rest(&mut events).await;
    drop(events);
    let mut events = engine.submit(prompt("Talk."));
    pulling(&mut events, stage.model.wait_at_gate("rest")).await;
    interrupter.interrupt();
    rest(&mut events).await;
    drop(events);
    let file = engine.transcript_file().unwrap();
    drop(engine);

    run(&mut stage.resume(&file), "Wake up.").await.assert_completed();

    assert_eq!(results_in(&stage.request(3)).len(), 1);
    stage.assert_all_played();
}

/// Takes away what a boundary names.
pub struct AsNamed;

impl pelton::history::SnipReplay for AsNamed {
    fn replay(
        &self,
        boundary: &pelton::history::SnipBoundary,
        said: &[std::sync::Arc<pelton::history::Entry>],
    ) -> Vec<pelton::history::EntryId> {
        let named = boundary.line["removedUuids"].to_string();
        said.iter().map(|entry| entry.id).filter(|id| named.contains(&id.to_string())).collect()
    }
}

#[tokio::test]
async fn loop_E27_the_host_says_what_a_snip_boundary_took_away() {
    let script = Script::new()
        .reply([text("The pump drips."), tool("Glob", json!({"pattern": "*"})).id("toolu_dead")])
        .reply([text("Nothing else.")])
        .reply([text("The turbine runs.")])
        .reply([text("With all of it.")])
        .reply([text("With the rest.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "What about the pump?").await.assert_completed();
    run(&mut engine, "And the turbine?").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let said = lines(&file);
    let dead = said
        .iter()
        .filter(|line| line.to_string().contains("pump") || line.to_string().contains("toolu_dead"));
    let removed: Vec<_> = dead.map(|line| line["uuid"].clone()).collect();
    assert!(removed.len() >= 4, "prompt, words, call and result: {removed:?}");
    let boundary = json!({"type": "system", "subtype": "snip_boundary", "removedUuids": removed,
        "uuid": "00000000-0000-4000-8000-00000000cafe", "parentUuid": said.last().unwrap()["uuid"],
        "sessionId": said[0]["sessionId"], "timestamp": "2026-01-01T00:00:00.000Z"});
    let recorded = std::fs::read_to_string(&file).unwrap();
    let snipped = stage.path("snipped.jsonl");

    for (handler, pump) in [(false, true), (true, false)] {
        std::fs::write(&snipped, format!("{recorded}{boundary}\n")).unwrap();
        let mut engine = stage.engine_with(|options| {
            resume_from(options, &snipped);
            if handler {
                options.snip_replay = Some(std::sync::Arc::new(AsNamed));
            }
        });
        run(&mut engine, "What was it?").await.assert_completed();
        let request = stage.request(stage.request_count());
        let sent = request.to_string();
        assert_eq!(sent.contains("pump"), pump, "{sent}");
        assert_eq!(sent.contains("toolu_dead"), pump, "a call and its result go together");
        assert!(sent.contains("Nothing else.") && sent.contains("And the turbine?"), "{sent}");
        // What was said is not forgotten, only not sent.
        let log =
            engine.history().iter().filter(|entry| String::from_utf8_lossy(&entry.json).contains("pump"));
        assert_eq!(log.count(), 2);
    }
    stage.assert_all_played();
}
