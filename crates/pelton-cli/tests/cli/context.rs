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

/// A picture of one pixel.
const PIXEL: &[u8] =
    b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x01\x00\x00\
    \x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x0d\x49\x44\x41\x54\x78\xda\x63\
    \x64\xf8\xcf\x50\x0f\x00\x03\x86\x01\x80\x5a\x34\x7d\x6b\x00\x00\x00\x00\x49\x45\x4e\x44\
    \xae\x42\x60\x82";

#[test]
fn every_share_every_level_both_prices_and_the_cache_are_told() {
    let script = Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Here.")]);
    let (place, model) = (Place::new(), model(script.reply([text("Hm.")])));
    let memory = place.put("CLAUDE.md", "Speak plainly, and count the beans twice.");
    std::fs::write(place.work().join("dot.png"), PIXEL).unwrap();
    let id = "11111111-2222-4333-8444-555555555555";
    let words = ["What is on @dot.png?", "--session-id", id, "--model", "claude-sonnet-5-5"];
    assert_eq!(place.task(&model, words).run().code, Some(0));
    let again = ["And now?", "--resume", id, "--model", "claude-haiku-5-5"];
    assert_eq!(place.task(&model, again).run().code, Some(0));

    let ran = place.pelton(["context", id, "--json"]).run();
    let usage: Value = serde_json::from_str(&ran.out).unwrap();
    let tokens = |kind: &str| -> Vec<(String, u64)> {
        let shares = usage["shares"].as_array().unwrap().iter().filter(|share| share["kind"] == kind);
        shares
            .map(|share| (share["name"].as_str().unwrap().to_owned(), share["tokens"].as_u64().unwrap()))
            .collect()
    };
    for kind in ["system", "tools", "memory", "media", "messages"] {
        assert!(
            tokens(kind).iter().all(|(_, tokens)| *tokens > 0) && !tokens(kind).is_empty(),
            "{kind}: {usage}"
        );
    }
    assert_eq!(tokens("memory")[0].0, memory.display().to_string());
    let levels: Vec<&str> =
        usage["levels"].as_array().unwrap().iter().map(|level| level["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["microcompact", "collapse", "autocompact", "local"]);
    assert!(usage["levels"].as_array().unwrap().iter().all(|level| level["wouldFreeTokens"].is_u64()));
    let usd = |name: &str| usage[name].as_f64().unwrap();
    assert!(usd("nextTurnCachedUsd") > 0.0 && usd("nextTurnCachedUsd") < usd("nextTurnUncachedUsd"));
    // What it was told is what the server counted.
    let cache = usage["cache"].as_array().unwrap();
    let counted: Vec<Value> =
        model.reply_requests().iter().map(|seen| seen.reply.usage.clone().unwrap()).collect();
    assert_eq!((cache.len(), counted.len()), (3, 3));
    for (told, counted) in cache.iter().zip(&counted) {
        assert_eq!(told["read"], counted["cache_read_input_tokens"], "{told} {counted}");
        assert_eq!(told["written"], counted["cache_creation_input_tokens"], "{told} {counted}");
    }
    assert!(cache[2]["missed"].as_u64().unwrap() > 0, "{usage}");
    let why = cache[2]["reason"].as_str().unwrap();
    assert_eq!(why, "model: claude-haiku-5-5 is asked instead of claude-sonnet-5-5");

    let ran = place.pelton(["context", id]).run();
    for words in [
        "System prompt",
        "Built-in tools",
        "CLAUDE.md",
        "Images and documents",
        "Messages",
        "autocompact",
        "if it is cached",
        "The cache in the newest 3 requests",
        why,
    ] {
        assert!(ran.out.contains(words), "{words} is not in {}", ran.out);
    }
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
