//! Summaries that are none, and the trouble on the way to one.

use std::time::Duration;

use pelton::event::LoopKind;
use pelton::{Event, Options};
use pelton_model::{ErrorKind, Notice};
use pelton_testkit::{Fault, Part, Script, Step, When, error, text, tool};

use super::{asks_for_summary, boundaries, levels, small};
use crate::stage::{Stage, Told, run, sh, words_of};

/// Answers the question for a summary.
fn when_asked(step: Step) -> Step {
    step.when(When::any().last_user_text("call no tools"))
}

/// A long conversation behind these answers to the question for its summary.
async fn played(answers: impl IntoIterator<Item = Step>) -> (Stage, Told) {
    played_with(answers, |_| {}).await
}

async fn played_with(
    answers: impl IntoIterator<Item = Step>,
    change: impl FnOnce(&mut Options),
) -> (Stage, Told) {
    let script = answers.into_iter().fold(Script::new(), |script, step| script.step(when_asked(step)));
    let script = (0..20).fold(script, |script, n| {
        let words = format!("Round {n}. {}", "word ".repeat(2_000));
        script.reply([text(words), tool("Bash", sh(&format!("echo {n}")))])
    });
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
        change(options);
    });
    let told = run(&mut engine, "Count, please.").await;
    (stage, told)
}

fn summaries_asked(stage: &Stage) -> usize {
    stage.model.reply_requests().iter().filter(|seen| asks_for_summary(&seen.body)).count()
}

/// How often the loop told of something.
fn told_of(told: &Told, kind: LoopKind) -> usize {
    told.0.iter().filter(|event| matches!(event, Event::Loop(told) if told.kind == kind)).count()
}

const HALF: &str = "In short: half of what was sa";

fn half() -> [Part; 1] {
    [text(HALF)]
}

#[tokio::test]
async fn loop_C4_loop_C6_a_summary_that_was_refused_or_cut_takes_the_place_of_nothing() {
    for stop in ["refusal", "max_tokens", "pause_turn", "tool_use", "model_context_window_exceeded"] {
        let (stage, told) = played([Step::reply(half()).stop(stop).always()]).await;
        told.assert_completed();
        assert_eq!(levels(&told), ["local"], "{stop}: the step that needs no model helps");
        assert!(summaries_asked(&stage) >= 2, "{stop}: a failed attempt is made again another time");
        let taken_over = |seen: &pelton_testkit::Seen| seen.body["messages"].to_string().contains(HALF);
        assert!(!stage.model.reply_requests().iter().any(taken_over), "{stop}");
        stage.model.assert_clean();
    }
}

#[tokio::test]
async fn loop_C4_loop_R1_a_summary_that_broke_off_is_asked_for_again_and_everybody_hears_of_it() {
    let broken: [(&str, Step); 3] = [
        ("overload behind a text", Step::reply([text(HALF), error("overloaded_error", "")])),
        ("a lost connection behind a text", Step::reply(half()).fault(Fault::cut_after_events(6))),
        ("a status", Step::status(529)),
    ];
    for (what, step) in broken {
        let (stage, told) = played([step, Step::reply([text("In short: all is well.")])]).await;
        told.assert_completed();
        assert_eq!((levels(&told), summaries_asked(&stage)), (vec!["autocompact"], 2), "{what}");
        let summary = boundaries(&told)[0].summary.clone().unwrap();
        assert!(!words_of(&summary).contains(HALF), "{what}");
        assert_eq!((told.retries().len(), told_of(&told, LoopKind::Retry)), (1, 1), "{what}");
        assert!(!told.retries()[0].withdrawn, "{what}: nothing of it was shown");
        assert_eq!(told.outcome().retries, 1, "{what}");
        stage.model.assert_clean();
    }
}

#[tokio::test]
async fn loop_R2_the_summarising_call_is_as_patient_as_one_without_a_fallback() {
    let answers = [Step::status(529).times(5), Step::reply([text("In short: all is well.")])];
    let (stage, told) =
        played_with(answers, |options| options.fallback_models = vec!["opus".to_owned()]).await;
    told.assert_completed();
    assert_eq!((levels(&told), summaries_asked(&stage)), (vec!["autocompact"], 6));
    let patient = |notice: &&Notice| notice.kind == ErrorKind::Overloaded && notice.retries_max == 10;
    assert_eq!(told.retries().into_iter().filter(patient).count(), 5);
    assert!(!told.0.iter().any(|event| matches!(event, Event::ModelFallback { .. })));
}

#[tokio::test]
async fn loop_M5_loop_R12_a_silent_summariser_is_told_of_and_cut() {
    let answers = [
        Step::reply(half()).fault(Fault::stall_after_events(3)),
        Step::status(529).header("retry-after-ms", "300"),
        Step::reply([text("In short: all is well.")]),
    ];
    let (_stage, told) = played_with(answers, |options| {
        options.retry.notice = Duration::from_millis(100);
        options.retry.idle = Duration::from_millis(1_500);
        options.retry.heartbeat = Duration::from_millis(50);
    })
    .await;
    told.assert_completed();
    assert_eq!(levels(&told), ["autocompact"]);
    assert!(told.0.iter().any(|event| matches!(event, Event::Stalled { .. })));
    assert!(told_of(&told, LoopKind::Stalled) > 0);
    let waits = told.0.iter().any(|event| matches!(event, Event::Waiting { .. }));
    assert!(waits, "a long wait says that it goes on");
    assert_eq!(told.retries().len(), 2);
}
