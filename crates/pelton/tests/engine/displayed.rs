//! Words that hooks hear of before they are shown, and may have others shown in their place.

use std::sync::Arc;

use pelton::event::Display;
use pelton::{Event, Terminal};
use pelton_testkit::{Script, Step, gate, text, tool};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::hooks::{hook, on};
use crate::stage::{Stage, Told, prompt, rest, run, sh, until};

/// A hook that keeps what it is told and has it shown in capitals.
fn shouts(stage: &Stage) -> Value {
    let heard = stage.path("heard.txt");
    let line = format!(
        "line=$(tr -d '\\n'); printf '%s\\n' \"$line\" >> {}; printf '%s' \"$line\" | \
         sed -E 's/.*\"delta\":(\"([^\"\\\\]|\\\\.)*\").*/{{\"continue\":false,\"systemMessage\":\"no\",\"hookSpecificOutput\":{{\"hookEventName\":\"MessageDisplay\",\"displayContent\":\\U\\1}}}}/; s/\\\\N/\\\\n/g'",
        heard.display()
    );
    on("MessageDisplay", &[&line])
}

fn heard(stage: &Stage) -> Vec<Value> {
    let text = std::fs::read_to_string(stage.path("heard.txt")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn deltas(heard: &[Value]) -> Vec<&str> {
    heard.iter().map(|told| told["delta"].as_str().unwrap()).collect()
}

/// What is shown, in the place of what was said.
fn shown(told: &[Event]) -> Vec<(Arc<str>, Arc<str>)> {
    let words = told.iter().filter_map(|event| match event {
        Event::Display(Display::Words { said, shown }) => Some((Arc::clone(said), Arc::clone(shown))),
        _ => None,
    });
    words.collect()
}

#[tokio::test]
async fn an_answer_is_told_whole_and_what_hooks_say_is_shown_in_its_place() {
    let script = Script::new()
        .reply([text("one\ntwo"), tool("Bash", sh("true"))])
        .reply([tool("Bash", sh("true"))])
        .reply([text("three")]);
    let stage = Stage::new(script).await;
    let settings = shouts(&stage);
    let mut engine = stage.engine_with(|options| hook(options, &settings));
    let told = run(&mut engine, "Go.").await;
    // They can end nothing, and have nothing to say but what is shown.
    let outcome = told.assert_completed();
    assert_eq!(outcome.text, "three", "what was said stays as it is");
    assert!(!told.0.iter().any(|event| matches!(event, Event::Informational { .. })));
    let words = shown(&told.0);
    let words: Vec<(&str, &str)> = words.iter().map(|(said, shown)| (&**said, &**shown)).collect();
    assert_eq!(words, [("one\ntwo", "ONE\nTWO"), ("three", "THREE")]);
    let heard = heard(&stage);
    assert_eq!(deltas(&heard), ["one\ntwo", "three"], "an answer without words is none");
    for told in &heard {
        assert_eq!((&told["index"], &told["final"]), (&json!(0), &json!(true)));
        assert_eq!(told["turn_id"], heard[0]["turn_id"]);
    }
    assert_ne!(heard[0]["message_id"], heard[1]["message_id"]);
    let sent = stage.request(3);
    assert!(sent["messages"].to_string().contains("one\\ntwo"), "the model knows what it said: {sent}");
    stage.assert_all_played();
}

#[tokio::test]
async fn lines_are_told_as_they_are_complete_and_the_rest_at_the_end() {
    let stage = Stage::new(Script::new().reply([
        text("first\nsecond\nthi"),
        gate("rest"),
        text("rd\n"),
        text("end"),
    ]))
    .await;
    let settings = shouts(&stage);
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.displays_by_line = true;
    });
    let mut events = engine.submit(prompt("Go."));
    let is_shown = |event: &Event| matches!(event, Event::Display(Display::Words { .. }));
    let mut told = until(&mut events, is_shown).await;
    assert_eq!(&*shown(&told)[0].1, "FIRST\nSECOND\n", "shown while the rest is not there");
    stage.model.open("rest");
    told.extend(rest(&mut events).await);
    assert_eq!(Told(told.clone()).outcome().terminal, Terminal::Completed);
    let heard = heard(&stage);
    let told_whole: String = deltas(&heard).concat();
    assert_eq!(told_whole, "first\nsecond\nthird\nend");
    for (at, told) in heard.iter().enumerate() {
        assert_eq!(told["index"], at);
        assert_eq!(told["final"], at + 1 == heard.len());
        assert_eq!(told["message_id"], heard[0]["message_id"]);
        let whole_lines = told["delta"].as_str().unwrap().ends_with('\n');
        assert!(whole_lines || told["final"] == true, "{told}");
    }
    let all: String = shown(&told).iter().map(|(_, shown)| shown.to_string()).collect();
    assert_eq!(all, "FIRST\nSECOND\nTHIRD\nEND");
}

#[tokio::test]
async fn hooks_that_fail_hang_or_say_nothing_leave_what_was_said() {
    for command in [
        "exit 1",
        "exit 2",
        "echo words",
        "sleep 30",
        "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\", \"displayContent\": \"x\"}}'",
    ] {
        let stage = Stage::new(
            Script::new().reply([text("plain"), tool("Bash", sh("touch ran"))]).reply([text("end")]),
        )
        .await;
        let settings =
            json!({"MessageDisplay": [{"hooks": [{"type": "command", "command": command, "timeout": 1}]}]});
        let mut engine = stage.engine_with(|options| hook(options, &settings));
        let told = run(&mut engine, "Go.").await;
        told.assert_completed();
        let words = shown(&told.0);
        assert!(words.iter().all(|(said, shown)| said == shown) && words.len() == 2, "{command}: {words:?}");
        assert!(stage.path("ran").exists());
    }
}

#[tokio::test]
async fn what_is_withdrawn_and_what_agents_say_is_not_told() {
    let script = Script::new()
        .step(Step::reply([text("half\nof it")]).fault(pelton_testkit::Fault::cut_after_events(3)))
        .reply([tool(
            "Agent",
            json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"}),
        )])
        .reply([text("an agent's words")])
        .reply([text("whole")]);
    let stage = Stage::new(script).await;
    let settings = shouts(&stage);
    let mut engine = stage.engine_with(|options| hook(options, &settings));
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(deltas(&heard(&stage)), ["whole"]);
    stage.assert_all_played();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// However an answer is cut into lines and blocks, everything is told once, in order, and one piece is the last.
    #[test]
    fn everything_is_told_once(parts in prop::collection::vec("[a-z\n]{0,12}", 1..5), by_line in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let blocks: Vec<_> = parts.iter().filter(|part| !part.trim().is_empty()).map(|part| text(part.as_str())).collect();
            if blocks.is_empty() {
                return Ok(());
            }
            let whole: String = parts.iter().filter(|part| !part.trim().is_empty()).map(String::as_str).collect();
            let stage = Stage::new(Script::new().reply(blocks)).await;
            let settings = shouts(&stage);
            let mut engine = stage.engine_with(|options| {
                hook(options, &settings);
                options.displays_by_line = by_line;
            });
            let told = run(&mut engine, "Go.").await;
            prop_assert_eq!(&told.assert_completed().text, &whole);
            let heard = heard(&stage);
            prop_assert_eq!(deltas(&heard).concat(), whole);
            prop_assert_eq!(heard.iter().filter(|told| told["final"] == true).count(), 1);
            prop_assert_eq!(&heard.last().unwrap()["final"], &json!(true));
            prop_assert!(by_line || heard.len() == 1);
            Ok(())
        })?;
    }
}

/// What is on the screen: what hooks have shown, in paragraphs.
fn on_screen(told: &[Event]) -> String {
    let piece = |event: &Event| match event {
        Event::Display(Display::Words { shown, .. }) => Some(shown.to_string()),
        Event::Display(Display::Break) => Some("|".to_owned()),
        _ => None,
    };
    told.iter().filter_map(piece).collect()
}

#[tokio::test]
async fn a_block_of_words_is_told_at_its_end_and_the_next_stands_apart() {
    let call = || tool("Bash", sh("true")).id("toolu_between");
    let stage = Stage::new(
        Script::new()
            .reply([text("first"), call(), text("then"), gate("rest"), text(" more\nand")])
            .reply([text("end")]),
    )
    .await;
    let settings = shouts(&stage);
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.displays_by_line = true;
    });
    let mut events = engine.submit(prompt("Go."));
    let is_then = |event: &Event| matches!(event, Event::Display(Display::Break));
    let mut told = until(&mut events, is_then).await;
    assert_eq!(on_screen(&told), "FIRST|", "nobody waits for what comes behind it");
    stage.model.open("rest");
    told.extend(rest(&mut events).await);
    assert_eq!(on_screen(&told), "FIRST|THEN MORE\nAND|END|");
    let heard = heard(&stage);
    assert_eq!(deltas(&heard), ["first", "then more\n", "and", "end"]);
    let last: Vec<bool> = heard.iter().map(|told| told["final"] == true).collect();
    assert_eq!(last, [false, false, true, true]);

    // Whole answers are told at once, with the same between what stands apart.
    let stage =
        Stage::new(Script::new().reply([text("first"), call(), text("then")]).reply([text("end")])).await;
    let settings = shouts(&stage);
    let told = run(&mut stage.engine_with(|options| hook(options, &settings)), "Go.").await;
    told.assert_completed();
    assert_eq!(on_screen(&told.0), "FIRST\n\nTHEN|END|");
}

#[tokio::test]
async fn an_interrupt_shows_what_counts_as_said() {
    // Hooks that answer, and some that never do.
    for (by_line, hangs) in [(true, false), (true, true), (false, false), (false, true)] {
        let call = tool("Bash", sh("touch ran"));
        let begun = text("line\nhalf of it").fragments(2).after(1, gate("never"));
        let script = Script::new().reply([text("whole"), call, begun]).reply([text("end")]);
        let stage = Stage::new(script).await;
        let settings = match hangs {
            true => on("MessageDisplay", &["sleep 60"]),
            false => on("MessageDisplay", &["true"]),
        };
        let mut engine = stage.engine_with(|options| {
            hook(options, &settings);
            options.displays_by_line = by_line;
        });
        let interrupter = engine.interrupter();
        let mut events = engine.submit(prompt("Go."));
        let has_more = |event: &Event| match event {
            Event::Delta(delta) => {
                matches!(&delta.kind, pelton_model::DeltaKind::Text(words) if words.starts_with("line"))
            }
            _ => false,
        };
        let mut told = until(&mut events, has_more).await;
        interrupter.interrupt();
        told.extend(rest(&mut events).await);
        drop(events);
        run(&mut engine, "And?").await;
        let sent = stage.request(2);
        let texts: Vec<&str> = crate::stage::blocks(&sent, "assistant")
            .into_iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        assert!(texts[0] == "whole" && texts[1].starts_with("line"), "{texts:?}");
        let words: Vec<(Arc<str>, Arc<str>)> = shown(&told);
        let said: String = words.iter().map(|(said, _)| said.to_string()).collect();
        assert_eq!(said, texts.concat(), "{by_line} {hangs}: what is recorded was shown");
        assert!(words.iter().all(|(said, shown)| said == shown));
        assert!(on_screen(&told).starts_with("whole|"), "{}", on_screen(&told));
    }
}
