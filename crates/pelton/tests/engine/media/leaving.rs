//! What is left out when there is too much of it.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::StreamExt;
use pelton::{Engine, Event};
use pelton_testkit::{Script, Step, text, thinking, tool};
use serde_json::Value;

use super::{Album, noise, page, pictures, png};
use crate::stage::{Stage, Told, notes, prompt, resume_from, run};

/// A stage whose model is expected to refuse something by itself.
async fn refusing(script: Script) -> Stage {
    let mut stage = Stage::new(script).await;
    stage.model = stage.model.expect_illegal();
    stage
}

/// Like `run`, for requests that take their time in a build for tests.
async fn run_long(engine: &mut Engine, words: &str) -> Told {
    let events = engine.submit(prompt(words)).collect();
    Told(tokio::time::timeout(Duration::from_secs(180), events).await.expect("the submission does not end"))
}

fn no_error_is_shown(told: &Told) {
    assert!(!told.0.iter().any(|event| matches!(event, Event::Synthetic(_))), "{told:#?}");
}

fn file_of(told: &Told) -> PathBuf {
    let file = |event: &Event| match event {
        Event::Init(init) => init.transcript.clone(),
        _ => None,
    };
    told.0.iter().find_map(file).unwrap()
}

/// The heights of the pictures in a request: those of an album tell them apart.
fn heights(request: &Value) -> Vec<u32> {
    pictures(request).iter().map(|seen| seen.2.1).collect()
}

fn with_album(stage: &Stage, pictures: impl IntoIterator<Item = Vec<u8>>) -> Engine {
    let album = Album::of(pictures);
    stage.engine_with(|options| options.tools.push(album))
}

#[tokio::test]
async fn pit_L7_a_history_of_34_megabytes_goes_on_without_its_oldest_pictures() {
    const PICTURES: u32 = 26;
    let script = Script::new()
        .reply((0..PICTURES as usize).map(|n| tool("Album", page(n))))
        .reply([text("Seen.")])
        .reply([text("Still.")])
        .reply([text("And again.")]);
    let stage = refusing(script).await;
    // They fit, each of them, and are 1.3 MB each once they are text.
    let mut engine = with_album(&stage, (0..PICTURES).map(|n| noise(572, 566 + n)));
    // The pictures cost some ten thousand tokens, the task does the rest.
    let task = "Look at all of them. ".repeat(29_000);

    let told = run_long(&mut engine, &task).await;

    assert_eq!(told.assert_completed().text, "Seen.");
    no_error_is_shown(&told);
    // It is not even tried: bytes are counted before they are sent.
    assert_eq!(told.transitions(), ["next_turn"]);
    // The newest are there, as many as leave room for some more turns, and no fewer.
    let sent = heights(&stage.request(2));
    assert!((16..=19).contains(&sent.len()), "{}", sent.len());
    let newest: Vec<u32> = (566..566 + PICTURES).skip(PICTURES as usize - sent.len()).collect();
    assert_eq!(sent, newest);
    let tokens = told.outcome().usage.prompt_tokens();
    assert!(tokens > 150_000, "{tokens}");

    // The others do not come back: neither in the next turn nor for somebody who knows the file only.
    run_long(&mut engine, "And now?").await.assert_completed();
    assert_eq!(heights(&stage.request(3)), newest);
    let file = file_of(&told);
    drop(engine);
    let told = run_long(&mut stage.resume(&file), "And now?").await;
    assert_eq!(told.assert_completed().text, "And again.");
    assert_eq!(heights(&stage.request(4)), newest);
    assert_eq!(stage.model.illegal().len(), 0);
    // The log keeps all of it.
    let kept = std::fs::read_to_string(&file).unwrap().matches("\"type\":\"image\"").count();
    assert_eq!(kept, PICTURES as usize);
    stage.model.assert_played_out();
}

#[tokio::test]
async fn pit_L7_somebody_on_the_way_who_takes_less_is_sent_half_of_the_pictures() {
    let refusal = "Request exceeds the maximum allowed content length";
    let script = Script::new()
        .reply((0..6).map(|n| tool("Album", page(n))))
        .step(Step::status(400).message(refusal))
        .reply([text("Seen.")])
        .reply([text("Still.")])
        .reply([text("And again.")]);
    let stage = Stage::new(script).await;
    let mut engine = with_album(&stage, (0..6).map(|n| noise(60, 65 - n)));

    let told = run(&mut engine, "Look.").await;

    assert_eq!(told.assert_completed().text, "Seen.");
    no_error_is_shown(&told);
    assert_eq!(told.transitions(), ["next_turn", "request_repair"]);
    assert_eq!(heights(&stage.request(2)), [65, 64, 63, 62, 61, 60]);
    assert_eq!(heights(&stage.request(3)), [62, 61, 60]);
    run(&mut engine, "And now?").await.assert_completed();
    assert_eq!(heights(&stage.request(4)), [62, 61, 60]);
    let file = file_of(&told);
    drop(engine);
    run(&mut stage.resume(&file), "And now?").await.assert_completed();
    assert_eq!(heights(&stage.request(5)), [62, 61, 60]);
    let noted = notes(&file).into_iter().find(|(kind, _)| kind == "repair").unwrap().1;
    assert!(noted.starts_with("3 images and documents of "), "{noted}");
    stage.assert_all_played();
}

#[tokio::test]
async fn more_pictures_than_a_request_may_hold_are_not_sent_and_do_not_come_back() {
    let look = |pages: std::ops::Range<usize>| {
        let calls = pages.map(|n| tool("Album", page(n)));
        Step::reply(std::iter::once(thinking("Hm.")).chain(calls))
    };
    // This model takes a hundred, and wants to see its own thinking again while its calls are answered.
    let script =
        Script::new().step(look(0..60)).step(look(60..104)).reply([text("Seen.")]).reply([text("Still.")]);
    let stage = Stage::new(script).await;
    let album = Album::of((0..104).map(|n| png(8, 8 + n)));
    let mut engine = stage.engine_with(|options| {
        options.model = "claude-sonnet-4-5".to_owned();
        options.tools.push(album);
    });

    let told = run(&mut engine, "Look.").await;

    assert_eq!(told.assert_completed().text, "Seen.");
    let newest: Vec<u32> = (8 + 24..8 + 104).collect();
    assert_eq!(heights(&stage.request(2)).len(), 60);
    assert_eq!(heights(&stage.request(3)), newest, "with room for some more");
    let file = file_of(&told);
    drop(engine);
    let mut resumed = stage.engine_with(|options| {
        options.model = "claude-sonnet-4-5".to_owned();
        resume_from(options, &file);
    });
    run(&mut resumed, "And now?").await.assert_completed();
    assert_eq!(heights(&stage.request(4)), newest);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L6_large_pictures_of_somebody_elses_session_become_stubs_together() {
    let look = (0..22).map(|n| tool("Album", page(n)));
    let script = Script::new().reply(look).reply([text("Seen.")]).reply([text("Still.")]);
    let stage = refusing(script).await;
    let mut engine = with_album(&stage, (0..22).map(|n| png(20, 20 + n)));
    let file = file_of(&run(&mut engine, "Look.").await);
    drop(engine);
    let mut session = std::fs::read_to_string(&file).unwrap();
    for (page, width) in [(3, 2500), (11, 2001)] {
        session = session.replace(&BASE64.encode(png(20, 20 + page)), &BASE64.encode(png(width, 20 + page)));
    }
    std::fs::write(&file, session).unwrap();

    let told = run(&mut stage.resume(&file), "And now?").await;

    assert_eq!(told.assert_completed().text, "Still.");
    no_error_is_shown(&told);
    // What the API would refuse among many is not sent.
    assert!(told.transitions().is_empty() && stage.model.illegal().is_empty());
    let kept: Vec<u32> = (20..42).filter(|height| ![23, 31].contains(height)).collect();
    assert_eq!(heights(&stage.request(3)), kept);
}

#[tokio::test]
async fn pit_L7_pages_of_documents_count_where_images_are_limited() {
    const DOCUMENTS: usize = 11;
    const PAGES: usize = 10;
    let script = (0..DOCUMENTS).fold(Script::new(), |script, n| {
        let file = serde_json::json!({"file_path": format!("{n}.pdf")});
        script.reply([tool("Read", file)])
    });
    // A model that takes a hundred of them, and refuses more.
    let stage = Stage::new(script.reply([text("Read.")])).await;
    for n in 0..DOCUMENTS {
        stage.write(&format!("{n}.pdf"), &document(PAGES));
    }
    let mut engine = stage.engine_with(|options| {
        options.model = "claude-haiku-4-5".to_owned();
        // So many pages nearly fill its window.
        options.compact.auto = false;
    });

    let told = run_long(&mut engine, "Read them all.").await;

    told.assert_completed();
    no_error_is_shown(&told);
    let sent = stage.request(DOCUMENTS + 1).to_string();
    assert_eq!(sent.matches("application/pdf").count(), 8, "the newest eighty pages");
    let said = |event: &Event| matches!(event, Event::Informational { content, .. } if content.contains("110 images and pages"));
    assert!(told.0.iter().any(said), "{told:#?}");
    stage.model.assert_clean();
}

#[tokio::test]
async fn documents_and_screenshots_say_nothing_about_how_words_are_counted() {
    let seen = |n: usize| Step::reply([text("Seen.")]).usage("input_tokens", n as u64);
    let script = Script::new()
        .reply([tool("Read", serde_json::json!({"file_path": "a.pdf"}))])
        .step(seen(46_000).usage("cache_read_input_tokens", 0).usage("cache_creation_input_tokens", 0));
    let stage = Stage::new(script).await;
    stage.write("a.pdf", &document(10));
    let mut engine = stage.engine_with(|options| options.model = "claude-haiku-4-5".to_owned());
    let before = engine.context_usage();
    run(&mut engine, "Look at it.").await.assert_completed();
    let after = engine.context_usage();
    let system = |usage: &pelton::compact::ContextUsage| {
        usage.shares.iter().filter(|share| share.kind == "system").map(|share| share.tokens).sum::<u64>()
    };
    let (was, is) = (system(&before), system(&after));
    assert!(was > 0 && is.abs_diff(was) * 5 < was, "{is} instead of {was}: {after:#?}");
    assert!(after.used_tokens.abs_diff(46_000) < 1_000, "{}", after.used_tokens);
}

/// A document of so many empty pages.
pub fn document(pages: usize) -> String {
    let kids: String = (0..pages).map(|n| format!("{} 0 R ", n + 3)).collect();
    let page = |n: usize| format!("{} 0 obj <</Type /Page /Parent 2 0 R>> endobj\n", n + 3);
    format!(
        "%PDF-1.4\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n2 0 obj <</Type /Pages /Kids [{kids}] /Count {pages}>> \
         endobj\n{}trailer <</Root 1 0 R>>\n%%EOF\n",
        (0..pages).map(page).collect::<String>()
    )
}

#[tokio::test]
async fn what_was_left_out_and_brought_back_is_there_in_the_next_process() {
    let refusal = "Request exceeds the maximum allowed content length";
    let script = Script::new()
        .reply((0..4).map(|n| tool("Album", page(n))))
        .step(Step::status(400).message(refusal))
        .reply([text("Seen.")])
        .reply([text("Again.")])
        .reply([text("And again.")]);
    let stage = Stage::new(script).await;
    let mut engine = with_album(&stage, (0..4).map(|n| noise(60, 65 - n)));
    let told = run(&mut engine, "Look.").await;
    assert_eq!(heights(&stage.request(3)), [63, 62]);
    assert!(!run(&mut engine, "/context undo").await.outcome().is_error);
    run(&mut engine, "And now?").await.assert_completed();
    assert_eq!(heights(&stage.request(4)), [65, 64, 63, 62]);
    drop(engine);
    run(&mut stage.resume(&file_of(&told)), "And now?").await.assert_completed();
    assert_eq!(heights(&stage.request(5)), [65, 64, 63, 62]);
    stage.assert_all_played();
}
