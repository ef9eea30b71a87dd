//! `pelton context`, and the switches that say from where on the context is made smaller.

use pelton_testkit::{Script, Step, When, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};

#[test]
fn what_fills_a_session_is_told_in_words_and_as_json() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("Here.")])));
    let id = "11111111-2222-4333-8444-555555555555";
    let ran = place.task(&model, ["hi", "--session-id", id]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = place.pelton(["context", id, "--json"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let usage: Value = serde_json::from_str(&ran.out).unwrap();
    let shares = usage["shares"].as_array().unwrap();
    let sum: u64 = shares.iter().filter_map(|share| share["tokens"].as_u64()).sum();
    assert_eq!(usage["usedTokens"], json!(sum));
    assert_eq!(usage["isAutoCompactEnabled"], json!(true));
    let ran = place.pelton(["context", id]).env("DISABLE_AUTO_COMPACT", "1").run();
    assert!(ran.out.contains("System prompt") && ran.out.contains("autocompact"), "{ran:?}");
    let ran = place.pelton(["context", "11111111-2222-4333-8444-666666666666"]).run();
    assert_ne!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_lower_share_of_the_window_begins_earlier_and_off_is_off() {
    let script = || {
        let summary = Step::reply([text("In short.")]).when(When::any().last_user_text("call no tools"));
        let words = "word ".repeat(4_000);
        (0..3)
            .fold(Script::new().step(summary.always()), |script, n| {
                script.reply([text(words.clone()), tool("Glob", json!({"pattern": format!("{n}*")}))])
            })
            .reply([text("Done.")])
    };
    for (switch, value, expected) in [
        ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "20", true),
        ("DISABLE_AUTO_COMPACT", "1", false),
        ("DISABLE_COMPACT", "1", false),
    ] {
        let (place, model) = (Place::new(), model(script()));
        let ran = place
            .task(&model, ["hi"])
            .env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "60000")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env(switch, value)
            .run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let asked = model.reply_requests().iter().any(|seen| seen.body.to_string().contains("call no tools"));
        assert_eq!(asked, expected, "{switch}");
    }
    let (place, model) = (Place::new(), model(Script::new()));
    let ran = place.task(&model, ["hi", "--autocompact", "5"]).run();
    assert_ne!(ran.code, Some(0), "{ran:?}");
}
