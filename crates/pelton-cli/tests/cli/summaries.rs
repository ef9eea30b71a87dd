//! Lines about what calls came to.

use std::time::Duration;

use pelton_testkit::{Script, Step, When, gate, pause, text, tool};
use serde_json::json;

use crate::frames::STREAM;
use crate::place::{Commanded, Place, model, of_type};
use crate::talk::Talk;

#[test]
fn loop_Z1_summaries_are_frames_for_those_who_ask_and_never_when_traffic_is_to_be_minimal() {
    let script = || {
        Script::new()
            .step(Step::reply([text("Searched for everything")]).when(When::any().model("haiku")).always())
            .reply([tool("Glob", json!({"pattern": "*"})).id("toolu_1")])
            .step(Step::reply([pause(Duration::from_millis(300)), text("Done.")]))
    };
    type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], bool);
    let rows: [Row<'_>; 4] = [
        (&["--tool-use-summaries"], &[], true),
        (&[], &[], false),
        (&["--tool-use-summaries"], &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")], false),
        (&["--tool-use-summaries"], &[("ANTHROPIC_SMALL_FAST_MODEL", "claude-haiku-4-5")], true),
    ];
    for (words, env, told) in rows {
        let (place, model) = (Place::new(), model(script()));
        let words = ["hi"].into_iter().chain(words.iter().copied()).chain(STREAM);
        let ran = place.task(&model, words).envs(env.iter().copied()).run();
        ran.well();
        let frames = ran.frames();
        let summaries = of_type(&frames, "tool_use_summary");
        assert_eq!(summaries.len(), usize::from(told), "{env:?}: {frames:#?}");
        let asked = model
            .reply_requests()
            .iter()
            .filter(|seen| seen.body["model"].as_str().unwrap().contains("haiku"))
            .count();
        assert_eq!(asked, usize::from(told), "{env:?}");
        if let [summary] = summaries[..] {
            assert_eq!(summary["summary"], "Searched for everything");
            assert_eq!(summary["preceding_tool_use_ids"], json!(["toolu_1"]));
            assert_eq!(summary["session_id"], frames[0]["session_id"]);
        }
        model.assert_clean();
    }
}

#[test]
fn a_guess_of_the_next_prompt_comes_behind_the_result_and_hinders_nobody() {
    let guess = |words: &str| Step::reply([text(words)]).when(When::any().model("haiku")).always();
    type Row<'a> = (&'a str, bool, &'a [(&'a str, &'a str)], Option<&'a str>);
    let rows: [Row<'_>; 5] = [
        ("run the tests", true, &[], Some("run the tests")),
        ("NONE", true, &[], None),
        ("run the tests", false, &[], None),
        ("run the tests", true, &[("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "false")], None),
        ("run the tests", true, &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")], None),
    ];
    for (words, wanted, env, expected) in rows {
        let script =
            Script::new().step(guess(words)).reply([text("First.")]).reply([text("Shall I test it?")]);
        let (place, model) = (Place::new(), model(script));
        let mut talk = Talk::with(&place, &model, &[], |command| {
            command.envs(env.iter().copied());
        });
        talk.asked(&json!({"subtype": "initialize", "promptSuggestions": wanted}));
        talk.prompt("FIRST-PROMPT");
        talk.result();
        talk.prompt("SECOND-PROMPT");
        talk.result();
        // A client that has nothing more to say gets it, too.
        let over = talk.end();
        let frames = over.well();
        let told = of_type(frames, "prompt_suggestion");
        let suggestions: Vec<&str> = told.iter().map(|frame| frame["suggestion"].as_str().unwrap()).collect();
        assert_eq!(suggestions, expected.into_iter().collect::<Vec<_>>(), "{words} {wanted} {env:?}");
        let asked: Vec<_> = model.reply_requests();
        let asked: Vec<_> =
            asked.iter().filter(|seen| seen.body["model"].as_str().unwrap().contains("haiku")).collect();
        assert_eq!(
            asked.len(),
            usize::from(wanted && env.is_empty()),
            "not behind the first, and once behind the second"
        );
        for seen in asked {
            let said = seen.body["messages"].to_string();
            for part in ["FIRST-PROMPT", "SECOND-PROMPT", "Shall I test it?"] {
                assert!(said.contains(part), "{said}");
            }
        }
        if let [frame] = told[..] {
            assert_eq!(frame["session_id"], frames.last().unwrap()["session_id"]);
            let results: Vec<usize> =
                (0..frames.len()).filter(|at| frames[*at]["type"] == "result").collect();
            let at = frames.iter().position(|frame| frame["type"] == "prompt_suggestion").unwrap();
            assert!(at > results[1]);
        }
    }
}

#[test]
fn whoever_says_something_waits_for_no_guess() {
    let script = Script::new()
        .step(Step::reply([gate("never")]).when(When::any().model("haiku")).always())
        .reply([text("One.")])
        .reply([text("Two.")])
        .reply([text("Three.")]);
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.asked(&json!({"subtype": "initialize", "promptSuggestions": true}));
    for words in ["One.", "Two.", "Three."] {
        talk.prompt("go on");
        assert_eq!(talk.result()["result"], words);
    }
}
