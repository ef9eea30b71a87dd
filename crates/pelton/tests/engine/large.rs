//! P10: results that are too long to be told.

use std::path::Path;

use futures::future::BoxFuture;
use pelton::ToolLimits;
use pelton::history::Kind;
use pelton::permission::Mode;
use pelton::tools::{Access, InvalidInput, Output, ResultBlock, Safety, Spec, Tool, ToolCx};
use pelton::{Engine, Options};
use pelton_testkit::{Part, Script, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, Told, last_user_blocks, notes, results_in, resume_from, run, sh};

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Says as much as it is asked for.
pub struct Talker;

impl Tool for Talker {
    fn spec(&self) -> Spec<'_> {
        Spec {
            name: "Talk",
            description: "Says much.",
            input_schema: r#"{"type":"object","properties":{"unit":{"type":"string"},"times":{"type":"integer"},"fails":{"type":"boolean"},"shows":{"type":"boolean"}},"required":["unit","times"]}"#,
        }
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _input: &Value, _cx: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, _cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let times = usize::try_from(input["times"].as_u64().unwrap()).unwrap();
            let words = format!("begin {} end", input["unit"].as_str().unwrap().repeat(times));
            let mut output = Output::text(words);
            output.is_error = input["fails"] == true;
            if input["shows"] == true {
                output.content.push(ResultBlock::Image { media_type: "image/png", base64: PIXEL.to_owned() });
            }
            output
        })
    }
}

fn talk(id: &str, unit: &str, times: usize) -> Part {
    tool("Talk", json!({"unit": unit, "times": times})).id(id)
}

fn limits(options: &mut Options) {
    options.tools.push(std::sync::Arc::new(Talker));
    options.tool_limits.result_chars_max = 1_000;
    options.tool_limits.message_result_chars_max = 2_000;
    options.tool_limits.result_preview_chars = 100;
}

fn engine(stage: &Stage) -> Engine {
    stage.engine_with(limits)
}

/// The file a text points to.
#[track_caller]
fn file_in(words: &str) -> &Path {
    let (_, rest) = words.split_once("All of it is in ").unwrap_or_else(|| panic!("no file: {words}"));
    Path::new(rest.split_once(": use Read").unwrap().0)
}

#[tokio::test]
async fn loop_P10_a_result_above_its_tools_budget_is_shown_in_part_and_kept_whole() {
    let script = Script::new()
        .reply([
            talk("toolu_short", "x", 900),
            talk("toolu_long", "€", 5_000),
            tool("Talk", json!({"unit": "é", "times": 3_000, "fails": true})).id("toolu_bad"),
            tool("Talk", json!({"unit": "y", "times": 3_000, "shows": true})).id("toolu_seen"),
        ])
        .reply([text("I see.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut engine(&stage), "Talk.").await;
    told.assert_completed();
    let request = stage.request(2);
    let results = results_in(&request);
    assert!(results[0].2.starts_with("begin xxx") && results[0].2.len() == 910, "short ones are left alone");
    for (at, unit, count) in [(1, "€", 5_000), (2, "é", 3_000), (3, "y", 3_000)] {
        let words = &results[at].2;
        assert!(
            words.starts_with(&format!("begin {unit}")) && words.contains(&format!("{unit} end")),
            "{words}"
        );
        assert!(words.contains("bytes omitted") && words.chars().count() < 500, "{words}");
        let kept = std::fs::read_to_string(file_in(words)).unwrap();
        assert_eq!(kept, format!("begin {} end", unit.repeat(count)));
    }
    assert!(results[2].1, "an error stays one");
    let blocks = last_user_blocks(&request)[3]["content"].as_array().unwrap();
    assert_eq!(
        blocks.iter().map(|block| block["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["text", "image"]
    );
    stage.assert_all_played();
}

/// Five results, each within its budget, together beyond theirs.
fn crowd() -> Script {
    Script::new()
        .reply([
            talk("toolu_1", "a", 500),
            talk("toolu_2", "b", 900),
            talk("toolu_3", "c", 100),
            talk("toolu_4", "d", 800),
            talk("toolu_5", "e", 500),
        ])
        .reply([talk("toolu_6", "f", 900)])
        .reply([text("I see.")])
}

/// Which results of a request are shown in part.
fn in_part(request: &Value) -> Vec<String> {
    let part = results_in(request).into_iter().filter(|(_, _, words)| words.contains("bytes omitted"));
    part.map(|(id, _, _)| id).collect()
}

#[tokio::test]
async fn loop_P10_loop_C0_results_above_the_budget_of_a_message_are_replaced_largest_first() {
    let stage = Stage::new(crowd().reply([text("Still.")]).reply([text("Again.")])).await;
    let mut engine = engine(&stage);
    let told = run(&mut engine, "Talk.").await;
    told.assert_completed();
    // 2,850 are said: without the largest it is 2,040, without the two largest 1,330.
    assert_eq!(in_part(&stage.request(2)), ["toolu_2", "toolu_4"]);
    assert_eq!(in_part(&stage.request(3)), ["toolu_2", "toolu_4"], "another message has its own budget");
    let words = &results_in(&stage.request(2))[1].2;
    assert_eq!(std::fs::read_to_string(file_in(words)).unwrap(), format!("begin {} end", "b".repeat(900)));
    // Whoever watches, and the transcript, have all of it.
    let whole = told.entries().iter().any(|entry| {
        matches!(&entry.kind, Kind::ToolResult { call, .. } if &**call == "toolu_2")
            && String::from_utf8_lossy(&entry.json).contains(&"b".repeat(900))
    });
    assert!(whole);
    let file = engine.transcript_file().unwrap();
    assert!(notes(&file).iter().any(|(kind, reason)| kind == "result_budget" && reason.contains("2 of 5")));
    assert_eq!(loop_events(&told), 1);

    // What was sent is sent again, byte for byte: in the same session, and in a resumed one.
    run(&mut engine, "Still there?").await.assert_completed();
    drop(engine);
    let mut resumed = stage.engine_with(|options| {
        limits(options);
        resume_from(options, &file);
    });
    run(&mut resumed, "Again?").await.assert_completed();
    let messages = |nth: usize| crate::stage::unmarked(&stage.request(nth)["messages"]);
    let (third, fourth, fifth) = (messages(3), messages(4), messages(5));
    let old = third.as_array().unwrap().len();
    assert_eq!(fourth.as_array().unwrap()[..old], third.as_array().unwrap()[..]);
    assert_eq!(fifth.as_array().unwrap()[..old], third.as_array().unwrap()[..]);
    stage.assert_all_played();
}

fn loop_events(told: &Told) -> u32 {
    told.outcome().loop_events.get("result_budget").copied().unwrap_or_default()
}

#[tokio::test]
async fn loop_P10_a_file_that_was_lost_is_written_again_when_the_session_is_resumed() {
    let stage = Stage::new(crowd().reply([text("Again.")])).await;
    let mut engine = engine(&stage);
    run(&mut engine, "Talk.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let words = results_in(&stage.request(2))[1].2.clone();
    std::fs::remove_file(file_in(&words)).unwrap();
    let mut resumed = stage.engine_with(|options| {
        limits(options);
        resume_from(options, &file);
    });
    run(&mut resumed, "Again?").await.assert_completed();
    assert_eq!(results_in(&stage.request(4))[1].2, words);
    assert!(file_in(&words).exists());
}

#[tokio::test]
async fn loop_P10_images_do_not_count_and_small_results_are_left_alone() {
    let picture = tool("Talk", json!({"unit": "p", "times": 10, "shows": true}));
    let many = (0..40).map(|n| talk(&format!("toolu_{n}"), "s", 60)).chain([picture]);
    let stage = Stage::new(Script::new().reply(many).reply([text("I see.")])).await;
    let mut engine = stage.engine_with(|options| {
        limits(options);
        options.tool_limits.message_result_chars_max = 3_200;
    });
    run(&mut engine, "Talk.").await.assert_completed();
    assert!(in_part(&stage.request(2)).is_empty());
}

#[tokio::test]
async fn loop_P10_what_was_kept_may_be_read_without_asking() {
    for mode in [Mode::Default, Mode::DontAsk] {
        let script = Script::new().reply([talk("toolu_long", "long ", 1_000)]).reply([text("I see.")]);
        let stage = Stage::new(script).await;
        let mut engine = engine(&stage);
        run(&mut engine, "Talk.").await.assert_completed();
        let session = engine.transcript_file().unwrap();
        drop(engine);
        let words = results_in(&stage.request(2))[0].2.clone();
        let kept = file_in(&words);
        // Only now is it known where; the session goes on with a model that looks there.
        let script = Script::new()
            .reply([
                tool("Read", json!({"file_path": kept, "limit": 1})),
                tool("Bash", sh(&format!("wc -c {}", kept.display()))),
                tool("Write", json!({"file_path": kept, "content": ""})),
            ])
            .reply([text("I see.")]);
        let other = Stage::new(script).await;
        let mut engine = other.engine_with(|options| {
            limits(options);
            options.mode = mode;
            options.sessions.as_mut().unwrap().config_dir = stage.config_dir();
            resume_from(options, &session);
        });
        run(&mut engine, "Read it.").await.assert_completed();
        let read = results_in(&other.request(2));
        assert!(!read[1].1 && read[1].2.contains("begin long"), "{read:?}");
        assert!(!read[2].1 && read[2].2.contains("5010"), "{read:?}");
        assert!(read[3].1, "looking is not writing: {read:?}");
    }
}

#[tokio::test]
async fn loop_P10_what_cannot_be_kept_is_said_so() {
    let stage =
        Stage::new(Script::new().reply([talk("toolu_long", "x", 5_000)]).reply([text("I see.")])).await;
    std::fs::write(stage.path("file"), "").unwrap();
    let mut engine = stage.engine_with(|options| {
        limits(options);
        options.sessions = None;
        options.temp_dir = stage.path("file");
    });
    run(&mut engine, "Talk.").await.assert_completed();
    let words = &results_in(&stage.request(2))[0].2;
    assert!(words.contains("bytes omitted") && words.contains("could not be kept"), "{words}");
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let limits = ToolLimits::default();
    assert_eq!((limits.result_chars_max, limits.message_result_chars_max), (100_000, 200_000));
}
