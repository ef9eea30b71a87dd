//! Lines about what calls came to.

use std::time::Duration;

use pelton_testkit::{Script, Step, When, pause, text, tool};
use serde_json::json;

use crate::frames::STREAM;
use crate::place::{Commanded, Place, model, of_type};

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
