//! Summaries and changes by hand that are undone when what they took away is on the disk only.

use pelton::{Engine, Resumed, transcript};
use pelton_testkit::{Script, Step, text};
use serde_json::{Value, json};

use super::{boundaries, summary};
use crate::resuming::AsNamed;
use crate::stage::{Stage, lines, resume_from, run, unmarked};

/// So many exchanges of some length.
fn exchanges(from: usize, to: usize) -> Script {
    let answer = |n: usize| [text(format!("Answer {n}. {}", "And more. ".repeat(200)))];
    (from..=to).fold(Script::new(), |script, n| script.reply(answer(n)))
}

async fn ask(engine: &mut Engine, from: usize, to: usize) {
    for n in from..=to {
        run(engine, &format!("Question {n}?")).await.assert_completed();
    }
}

/// What is sent but for where the cache is marked and what was asked last.
fn messages(request: &Value) -> Vec<Value> {
    let mut messages = unmarked(request)["messages"].as_array().unwrap().clone();
    messages.pop();
    messages
}

/// Which answers are sent.
fn answers(request: &Value, upto: usize) -> Vec<usize> {
    let words = request.to_string();
    (1..=upto).filter(|n| words.contains(&format!("Answer {n}."))).collect()
}

#[tokio::test]
async fn loop_C10_loop_E27_what_others_took_away_stays_away_when_a_summary_is_undone() {
    let script = exchanges(1, 3)
        .reply([text("Without the first.")])
        .step(summary("The second and the third were asked."))
        .reply([text("Behind the summary.")])
        .reply([text("As before.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    ask(&mut engine, 1, 3).await;
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let said = lines(&file);
    let first = said.iter().filter(|line| {
        let words = line.to_string();
        words.contains("Question 1?") || words.contains("Answer 1.")
    });
    let removed: Vec<_> = first.map(|line| line["uuid"].clone()).collect();
    assert_eq!(removed.len(), 2);
    let boundary = json!({"type": "system", "subtype": "snip_boundary", "removedUuids": removed,
        "uuid": "00000000-0000-4000-8000-00000000cafe", "parentUuid": said.last().unwrap()["uuid"],
        "sessionId": said[0]["sessionId"], "timestamp": "2026-01-01T00:00:00.000Z"});
    let recorded = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{recorded}{boundary}\n")).unwrap();
    let resumed = || {
        stage.engine_with(|options| {
            resume_from(options, &file);
            options.snip_replay = Some(std::sync::Arc::new(AsNamed));
        })
    };
    let mut engine = resumed();
    run(&mut engine, "And the first?").await.assert_completed();
    let before = stage.request(stage.request_count());
    assert_eq!(answers(&before, 3), [2, 3]);
    assert!(!run(&mut engine, "/compact").await.outcome().is_error);
    run(&mut engine, "Go on.").await.assert_completed();
    assert_eq!(answers(&stage.request(stage.request_count()), 3), [0; 0]);
    drop(engine);

    // In another process, what the summary took away is on the disk only.
    let mut engine = resumed();
    let told = run(&mut engine, "/uncompact").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    run(&mut engine, "And now?").await.assert_completed();
    let after = stage.request(stage.request_count());
    assert_eq!(answers(&after, 3), [2, 3]);
    let (before, after) = (messages(&before), messages(&after));
    assert_eq!(before[..], after[..before.len()], "exactly what was sent before");
    stage.assert_all_played();
}

/// A session that was summed up after its second exchange, resumed behind its third, with two more in its file.
async fn gone_back(more: impl IntoIterator<Item = Step>) -> (Stage, std::path::PathBuf, Engine) {
    let script = exchanges(1, 2).step(summary("Two questions were asked."));
    let script = (3..=5).fold(script, |script, n| script.reply([text(format!("Answer {n}."))]));
    let script = more.into_iter().fold(script, Script::step);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    ask(&mut engine, 1, 2).await;
    assert!(!run(&mut engine, "/compact").await.outcome().is_error);
    ask(&mut engine, 3, 5).await;
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let said = lines(&file);
    let third = said.iter().find(|line| line.to_string().contains("Answer 3.")).unwrap();
    let third = third["uuid"].as_str().unwrap().parse().unwrap();
    let engine = stage.engine_with(|options| {
        let conversation = transcript::read_window_until(&file, third).unwrap().unwrap();
        options.resume = Some(Resumed { file: file.clone(), conversation });
    });
    (stage, file, engine)
}

#[tokio::test]
async fn loop_C10_a_summary_is_undone_where_the_conversation_went_back_to() {
    let more = [Step::reply([text("As before.")]), Step::reply([text("On.")])];
    let (stage, file, mut engine) = gone_back(more).await;
    // The first thing that is done behind the third exchange: the fourth and the fifth are none of it.
    let told = run(&mut engine, "/uncompact").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    run(&mut engine, "And now?").await.assert_completed();
    let sent = stage.request(stage.request_count());
    assert_eq!(answers(&sent, 5), [1, 2, 3]);
    assert!(!sent.to_string().contains("Two questions were asked."));
    drop(engine);
    run(&mut stage.resume(&file), "And on?").await.assert_completed();
    assert_eq!(answers(&stage.request(stage.request_count()), 5), [1, 2, 3]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_C10_what_is_done_first_behind_an_earlier_message_is_done_to_that_for_good() {
    let more = [Step::reply([text("On.")]), Step::reply([text("Back.")])];
    let (stage, file, mut engine) = gone_back(more).await;
    let told = run(&mut engine, "/context drop 2").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    drop(engine);
    // Nothing was said since; another process goes on from there all the same, and knows the same figure.
    let figure = boundaries(&told).last().unwrap().after_tokens;
    let mut engine = stage.resume(&file);
    assert_eq!(engine.context_usage().used_tokens, figure);
    run(&mut engine, "And on?").await.assert_completed();
    assert_eq!(
        answers(&stage.request(stage.request_count()), 5),
        [2],
        "what the summary left, and nothing behind it"
    );
    assert!(!run(&mut engine, "/context undo").await.outcome().is_error);
    run(&mut engine, "And back?").await.assert_completed();
    assert_eq!(answers(&stage.request(stage.request_count()), 5), [2, 3]);
    stage.assert_all_played();
}
