//! What the user asked for is there after every compaction, word for word and with its pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pelton::{Engine, Event, Prompt, PromptBlock};
use pelton_testkit::{Part, Script, Step, When, text, tool};
use serde_json::Value;

use super::{boundaries, heard, levels, newest, small, summary};
use crate::media::png;
use crate::stage::{Stage, Told, blocks, rest, run, sh};

fn say(n: usize, tokens: usize) -> [Part; 2] {
    let words = format!("Round {n}. {}", "word ".repeat(tokens * 4 / 5));
    [text(words), tool("Bash", sh(&format!("echo {n}")))]
}

/// Rounds that fill the window, behind a request.
fn rounds(script: Script, count: usize) -> Script {
    (0..count).fold(script, |script, n| script.reply(say(n, 2_500)))
}

fn pictures(request: &Value) -> Vec<&Value> {
    blocks(request, "user").into_iter().filter(|block| block["type"] == "image").collect()
}

async fn ask(engine: &mut Engine, prompt: Prompt) -> Told {
    Told(rest(&mut engine.submit(prompt)).await)
}

fn engine(stage: &Stage) -> Engine {
    stage.engine_with(|options| {
        small(options, &["Bash", "Read"]);
        options.compact.folds = false;
    })
}

/// So many lines that differ.
fn long(lines: usize) -> String {
    (0..lines).map(|line| format!("Line {line} of the order: beans, peas and lentils.\n")).collect()
}

fn said(told: &Told, words: &str) -> bool {
    told.0
        .iter()
        .any(|event| matches!(event, Event::Informational { content, .. } if content.contains(words)))
}

fn no_summaries() -> Step {
    Step::status(400)
        .error_type("invalid_request_error")
        .message("no summaries today")
        .when(When::any().last_user_text("call no tools"))
        .always()
}

/// A long request with pictures, its own and one it mentions, through one compaction and another.
async fn check(script: Script, level: &'static str) {
    let script = rounds(script.reply([text("Hello.")]), 40).reply([text("Done.")]).reply([text("Again.")]);
    let stage = Stage::new(script).await;
    std::fs::write(stage.path("plan.png"), png(60, 40)).unwrap();
    let order = long(900) + "As on @plan.png.";
    let picture =
        PromptBlock::Image { media_type: "image/png".to_owned(), base64: BASE64.encode(png(50, 30)) };
    let mut engine = engine(&stage);
    run(&mut engine, "Hello!").await.assert_completed();

    let prompt = Prompt::blocks([PromptBlock::Text(order.clone()), picture]).unwrap();
    let told = ask(&mut engine, prompt).await;

    told.assert_completed();
    assert_eq!(levels(&told), [level]);
    assert!(boundaries(&told).len() > 1, "more than once: {:?}", boundaries(&told));
    assert!(!said(&told, "too long to be sent whole"));
    for request in stage.model.reply_requests() {
        let body = &request.body;
        if !heard(body).contains("Line 0 of the order") {
            continue;
        }
        assert!(heard(body).contains(&order), "all of it, word for word");
        let shown: Vec<String> =
            pictures(body).iter().map(|block| block["source"]["data"].as_str().unwrap().to_owned()).collect();
        let mut wanted = [png(50, 30), png(60, 40)].map(|bytes| BASE64.encode(bytes)).to_vec();
        let mut sorted = shown.clone();
        wanted.sort();
        sorted.sort();
        assert_eq!(sorted, wanted, "both pictures, once");
    }
    assert!(heard(&newest(&stage)).contains("first request, word for word:\nHello!"));
    assert!(heard(&newest(&stage)).contains("which you are working on, word for word:\nLine 0 of the order"));
    // Another process knows it by the record alone.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let mut second = stage.engine_with(|options| {
        small(options, &["Bash", "Read"]);
        options.compact.folds = false;
        crate::stage::resume_from(options, &file);
    });
    run(&mut second, "Once more.").await.assert_completed();
    assert!(heard(&newest(&stage)).contains(&order) && pictures(&newest(&stage)).len() == 2);
    let longest = crate::stage::lines(&file).iter().map(|line| line.to_string().len()).max().unwrap();
    assert!(longest < 200_000, "pictures are kept beside the record: {longest}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_C4_pit_C4_a_long_request_and_its_pictures_stay_whole_after_every_summary() {
    check(Script::new().step(summary("In short: it goes well.").always()), "autocompact").await;
}

#[tokio::test]
async fn pit_C1_pit_C4_a_long_request_and_its_pictures_stay_whole_without_a_model_too() {
    check(Script::new().step(no_summaries()), "local").await;
}

#[tokio::test]
async fn pit_C4_a_request_that_cannot_fit_beside_the_rest_is_told_in_part_and_all_of_it_is_in_a_file() {
    let summaries = Script::new().step(summary("In short: it goes well.").always());
    let summed_up = rounds(summaries, 6).reply([text("Done.")]);
    let left_out =
        rounds(Script::new().step(no_summaries()).reply([text("Hello.")]), 8).reply([text("Done.")]);
    for (script, before, lines, auto_percent, level) in
        [(summed_up, None, 1_400, 40, "autocompact"), (left_out, Some("Hello!"), 3_300, 80, "local")]
    {
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            small(options, &["Bash", "Read"]);
            options.compact.folds = false;
            options.compact = options.compact.clone().lowered_to(auto_percent);
        });
        if let Some(words) = before {
            run(&mut engine, words).await.assert_completed();
        }
        let order = long(lines);
        let told = run(&mut engine, &order).await;
        told.assert_completed();

        assert_eq!(levels(&told), [level], "{:?}", told.loop_reasons("compaction"));
        assert!(
            said(&told, "The request is too long to be sent whole"),
            "nobody has to find that out: {:?}",
            told.loop_reasons("compaction")
        );
        let words = heard(&newest(&stage));
        assert!(
            words.contains("word for word:\nLine 0 of the order")
                && words.contains(&format!("Line {} of", lines - 1))
        );
        assert!(!words.contains(&format!("Line {} of", lines / 2)));
        let path = words.split("All of it is in ").nth(1).unwrap().split(": use Read").next().unwrap();
        assert!(std::fs::read_to_string(path).unwrap().trim_end() == order.trim_end(), "all of it");
        stage.assert_all_played();
    }
}
