use std::time::Duration;

use futures::StreamExt;
use pelton::Event;
use pelton_testkit::{Part, Script, Step, When, text, thinking, tool};
use serde_json::{Value, json};

use super::{asks_for_summary, boundaries, fold, heard, small, summary};
use crate::stage::{Stage, Told, prompt, unmarked};

const WINDOW: u64 = 200_000;
const SUBMISSIONS: usize = 8;
const TURNS_EACH: usize = 50;
const PATIENCE: Duration = Duration::from_secs(300);

/// Bulky results in some stretches, many words in others, and now and then more results than one message may hold: every
/// level has its time.
fn turn(n: usize) -> Vec<Part> {
    let print =
        |tokens: usize, n: usize| tool("Talk", json!({"unit": format!("{n:>8}"), "times": tokens / 2}));
    let is_bulky = (n / 12).is_multiple_of(2);
    let (said, printed) = if is_bulky { (20, 6_000) } else { (4_000, 10) };
    let words = format!("Turn {n}. {}", "word ".repeat(said * 4 / 5));
    let mut parts = vec![thinking("Hm."), text(words)];
    match n % TURNS_EACH {
        30 => parts.extend((0..8).map(|part| print(7_000, n * 10 + part))),
        _ => parts.push(print(printed, n)),
    }
    parts
}

/// How much of a request was in the one before it: what a cache can have.
fn shared(before: &Value, now: &Value) -> usize {
    let texts = [before, now].map(|request| {
        let messages = unmarked(&request["messages"]);
        messages
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| {
                let role = message["role"].to_string();
                message["content"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(move |block| format!("{role}{block}"))
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    });
    texts[0].iter().zip(&texts[1]).take_while(|(one, two)| one == two).map(|(one, _)| one.len()).sum()
}

#[tokio::test]
async fn loop_C0_loop_C1_loop_C2_loop_C3_loop_C4_four_hundred_turns_cross_every_level_and_nothing_is_refused()
{
    let todos = json!({"todos": [{"content": "Count to the end", "status": "in_progress", "activeForm": "Counting"}]});
    let stage = Stage::new(Script::new()).await;
    stage.write("CLAUDE.md", "Always speak of beans.\n");
    let file = stage.path("notes.txt").display().to_string();
    let first =
        [tool("TodoWrite", todos), tool("Write", json!({"file_path": file, "content": "A thousand.\n"}))];
    // Folds do for a while; then nobody makes them any more, and summaries have to do.
    let no_fold =
        Step::status(400).error_type("invalid_request_error").when(When::any().system("You shorten"));
    let helpers = Script::new()
        .step(summary("In short: so far all is well.").always())
        .step(fold("They were counted.").times(8))
        .step(no_fold.always());
    let script = (0..SUBMISSIONS * TURNS_EACH).fold(helpers.reply(first), |script, n| {
        let script = script.reply(turn(n));
        if n % TURNS_EACH == TURNS_EACH - 1 { script.reply([text("So far.")]) } else { script }
    });
    let stage = stage.playing(script).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["TodoWrite", "Write"]);
        options.tools.push(std::sync::Arc::new(crate::large::Talker));
        options.window_tokens = Some(WINDOW);
        options.memory = Some(pelton::MemorySources::project());
    });

    let mut all: Vec<Event> = Vec::new();
    for nth in 0..SUBMISSIONS {
        let asked =
            if nth == 0 { "Count the beans, all of them.".to_owned() } else { format!("Go on, part {nth}.") };
        // What somebody does not need any more goes by hand.
        for words in [asked.as_str(), "/context drop 2-3"] {
            let events = engine.submit(prompt(words)).collect();
            let told = Told(tokio::time::timeout(PATIENCE, events).await.expect("it takes too long"));
            assert!(!told.outcome().is_error, "{words}: {}", told.outcome().text);
            all.extend(told.0);
        }
    }
    let told = Told(all);

    stage.model.assert_clean();
    for level in ["result_budget", "snip", "microcompact", "collapse", "autocompact"] {
        let times = boundaries(&told).iter().filter(|boundary| boundary.level.name() == level).count();
        println!("{level} ran {times} times");
        assert!(times >= 3, "{level} ran {times} times");
    }
    let requests = stage.model.reply_requests();
    let of_conversation: Vec<&Value> =
        requests.iter().map(|seen| &*seen.body).filter(|body| body["tools"].is_array()).collect();
    for pair in of_conversation.windows(2).filter(|pair| asks_for_summary(pair[0])) {
        let words = heard(pair[1]);
        for told_again in
            ["Always speak of beans.", "Count the beans, all of them.", "Count to the end", "A thousand."]
        {
            assert!(words.contains(told_again), "{told_again:?} is missing");
        }
        let latest = (1..SUBMISSIONS)
            .rev()
            .map(|nth| format!("Go on, part {nth}."))
            .find(|asked| heard(pair[0]).contains(asked));
        assert!(latest.is_none_or(|asked| words.contains(&asked)), "the latest request is missing");
    }
    // Of what a cache can have, nearly all is read from it.
    let (mut could, mut was) = (0.0, 0.0);
    for (before, now) in requests.iter().zip(&requests[1..]) {
        if !now.body["tools"].is_array() || !before.body["tools"].is_array() {
            continue;
        }
        let fixed = now.body["tools"].to_string().len() + now.body["system"].to_string().len();
        let all = fixed + shared(&now.body, &now.body);
        let usage = now.reply.usage.clone().unwrap_or_default();
        let figure = |name: &str| usage[name].as_f64().unwrap_or_default();
        let read = figure("cache_read_input_tokens");
        let prompt = read + figure("cache_creation_input_tokens") + figure("input_tokens");
        could += prompt * (fixed + shared(&before.body, &now.body)) as f64 / all as f64;
        was += read;
    }
    println!("{:.1} % of what a cache can have was read from it", was / could * 100.0);
    assert!(could > 0.0 && was >= 0.9 * could, "{was} of {could}");
}
