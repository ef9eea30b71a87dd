//! How the loop goes about calls, as flags and settings say.

use std::time::Duration;

use pelton_testkit::{Part, Script, text, tool};
use serde_json::{Value, json};

use crate::frames::STREAM;
use crate::place::{Commanded, Place, Ran, model, of_type};

fn sh(command: &str) -> Part {
    tool("Bash", json!({"command": command}))
}

fn run(script: Script, words: &[&str], prepare: impl FnOnce(&Place)) -> (Place, usize, Ran) {
    let (place, model) = (Place::new(), model(script));
    prepare(&place);
    let words = ["hi", "--allowedTools", "Bash", "--include-loop-events"]
        .into_iter()
        .chain(words.iter().copied())
        .chain(STREAM);
    let ran = place.task(&model, words).run();
    (place, model.requests().len(), ran)
}

fn loop_events<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    of_type(frames, "system")
        .into_iter()
        .filter(|frame| frame["subtype"] == "loop_event" && frame["kind"] == kind)
        .collect()
}

#[test]
fn loop_P5_whom_a_failed_call_cancels_is_a_flag_and_a_setting() {
    let setting = |whom: &str| json!({"loop": {"siblingAbort": whom}}).to_string();
    let (any, effects) = (setting("any"), setting("side_effects"));
    // Words, and whether what stands behind the failed call is done, and whether what only looks is.
    let rows: [(&[&str], bool, bool); 7] = [
        (&[], true, true),
        (&["--sibling-abort", "never"], true, true),
        (&["--sibling-abort", "side_effects"], false, true),
        (&["--sibling-abort", "any"], false, false),
        (&["--settings", &effects], false, true),
        (&["--settings", &any], false, false),
        (&["--settings", &any, "--sibling-abort", "never"], true, true),
    ];
    for (words, changes, looks) in rows {
        let look = tool("Glob", json!({"pattern": "*"})).id("toolu_look");
        let script = Script::new()
            .reply([
                sh("touch tried; exit 4").id("toolu_failed"),
                sh("touch behind").id("toolu_behind"),
                look,
            ])
            .reply([text("Done.")]);
        let (place, _, ran) = run(script, words, |_| {});
        ran.well();
        let frames = ran.frames();
        let looked = of_type(&frames, "user").into_iter().any(|frame| {
            let block = &frame["message"]["content"][0];
            block["tool_use_id"] == "toolu_look" && block["is_error"] != json!(true)
        });
        assert_eq!((place.has("behind"), looked), (changes, looks), "{words:?}");
    }
    let wrong = Place::new();
    let model = model(Script::new());
    let ran = wrong.task(&model, ["hi", "--settings", r#"{"loop": {"siblingAbort": "some"}}"#]).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("loop.siblingAbort") && ran.err.contains("never, side_effects or any"),
        "{ran:?}"
    );
}

#[test]
fn loop_Z2_likely_calls_are_made_ahead_for_those_who_ask() {
    let script = || {
        Script::new()
            .reply([tool("Grep", json!({"pattern": "pump"}))])
            .reply([tool("Read", json!({"file_path": "a.txt"}))])
            .reply([text("Done.")])
    };
    let settings = r#"{"loop": {"speculation": true}}"#;
    let rows: [(&[&str], bool); 3] =
        [(&[], false), (&["--speculation"], true), (&["--settings", settings], true)];
    for (words, ahead) in rows {
        let (_place, _, ran) = run(script(), words, |place| {
            place.put("a.txt", "the pump\n");
            // What was written this very moment is not trusted to stay.
            std::thread::sleep(Duration::from_millis(100));
        });
        ran.well();
        let frames = ran.frames();
        assert_eq!(!loop_events(&frames, "speculation").is_empty(), ahead, "{words:?}: {frames:#?}");
    }
}

#[test]
fn pit_L12_a_run_that_goes_round_in_circles_is_stopped_for_those_who_ask() {
    let script = || {
        let circle =
            (0..6).fold(Script::new(), |script, _| script.reply([tool("Glob", json!({"pattern": "*"}))]));
        circle.reply([text("Done.")])
    };
    let settings = r#"{"loop": {"stopOnRepetition": true}}"#;
    let rows: [(&[&str], usize); 3] =
        [(&[], 7), (&["--stop-on-repetition"], 5), (&["--settings", settings], 5)];
    for (words, asked) in rows {
        let (_place, requests, ran) = run(script(), words, |_| {});
        assert_eq!((requests, ran.code), (asked, Some(i32::from(asked == 5))), "{words:?}: {ran:?}");
        assert_eq!(ran.result()["is_error"], json!(asked == 5), "{words:?}");
        assert_eq!(loop_events(&ran.frames(), "repetition").len(), 2, "{words:?}");
    }
}
