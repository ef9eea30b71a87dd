//! Answers that do not come at once.

use std::time::Duration;

use pelton_model::ErrorKind;
use pelton_testkit::{Fault, Script, Step, text, tool};
use serde_json::json;

use crate::stage::{Stage, Told, run, unmarked};

/// Plays these failures, then an answer; what was told, and the place to look at.
async fn check(failures: impl IntoIterator<Item = Step>) -> (Told, Stage) {
    let script = failures.into_iter().fold(Script::new(), Script::step).reply([text("At last.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine(), "Hi.").await;
    (told, stage)
}

#[tokio::test]
async fn loop_R1_an_overloaded_api_is_asked_again() {
    let (told, stage) = check([Step::status(529).times(3)]).await;

    let outcome = told.assert_completed();
    assert_eq!((outcome.text.as_str(), outcome.retries), ("At last.", 3));
    let notices = told.retries();
    assert_eq!(notices.iter().map(|notice| notice.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    for (notice, base) in notices.iter().zip([2, 4, 8].map(Duration::from_millis)) {
        assert_eq!((notice.status, notice.kind.clone()), (Some(529), ErrorKind::Overloaded));
        assert_eq!(notice.retries_max, 10);
        // Doubling from the base, and up to a quarter more by chance.
        assert!(notice.wait >= base && notice.wait <= base.mul_f64(1.25), "{:?} after {base:?}", notice.wait);
    }
    let requests = stage.model.reply_requests();
    assert_eq!(requests.len(), 4);
    for (pair, notice) in requests.windows(2).zip(notices) {
        assert_eq!(pair[0].raw, pair[1].raw, "the same question, byte for byte");
        assert!(pair[1].arrived - pair[0].arrived >= notice.wait, "the wait was kept");
    }
    stage.assert_all_played();
}

#[tokio::test]
async fn a_rate_limit_waits_as_long_as_the_answer_says() {
    for (header, value, wait) in
        [("retry-after-ms", "150", Duration::from_millis(150)), ("retry-after", "1", Duration::from_secs(1))]
    {
        let (told, stage) = check([Step::status(429).header(header, value)]).await;
        told.assert_completed();
        let [notice] = told.retries()[..] else { panic!("one retry") };
        assert_eq!(
            (notice.wait, notice.status, notice.kind.clone()),
            (wait, Some(429), ErrorKind::RateLimited)
        );
        let requests = stage.model.reply_requests();
        assert!(requests[1].arrived - requests[0].arrived >= wait, "{header}: {value}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_R10_what_passes_by_itself_is_asked_again() {
    let passing = || {
        [
            Step::status(408),
            Step::status(409),
            Step::status(500),
            Step::status(502).body("<html>Bad Gateway</html>").header("content-type", "text/html"),
            Step::status(504),
            Step::status(400).header("x-should-retry", "true"),
            Step::reply([]).fault(Fault::close_before_headers()),
        ]
    };
    for (n, step) in passing().into_iter().enumerate() {
        let (told, stage) = check([step]).await;
        assert_eq!(told.assert_completed().retries, 1, "{n}");
        assert_eq!((told.retries().len(), stage.request_count()), (1, 2), "{n}");
    }
    // One after the other too: each is only one of ten.
    let (told, stage) = check(passing()).await;
    assert_eq!(told.assert_completed().retries, 7);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_R10_an_answer_that_asks_not_to_be_retried_is_not() {
    let (told, stage) = check([Step::status(500).header("x-should-retry", "false")]).await;
    assert!(told.outcome().is_error);
    assert_eq!((told.retries().len(), stage.request_count()), (0, 1));
}

#[tokio::test]
async fn loop_R11_anything_else_is_not_asked_again() {
    // A 404 is asked once more in another way: see M6.
    for status in [400, 401, 402, 403, 413, 418, 422] {
        let (told, stage) = check([Step::status(status).message("no").header("request-id", "req_9")]).await;
        let outcome = told.outcome();
        assert!(outcome.is_error, "{status}");
        let error = outcome.error.as_ref().unwrap();
        assert_eq!((error.status, error.message.as_str()), (Some(status), "no"));
        assert!(error.error_type.is_some(), "{status}");
        assert_eq!(error.request_id.as_deref(), Some("req_9"));
        assert_eq!((told.retries().len(), stage.request_count()), (0, 1), "{status}");
    }
}

#[tokio::test]
async fn loop_R8_input_and_output_beyond_the_window_ask_for_less_output() {
    let words =
        "input length and `max_tokens` exceed context limit: 188240 + 32000 > 200000, decrease input length";
    let (told, stage) = check([Step::status(400).message(words)]).await;

    told.assert_completed();
    assert_eq!(told.retries()[0].max_tokens, Some(200_000 - 188_240 - 1_000));
    assert_eq!(stage.request(2)["max_tokens"], 200_000 - 188_240 - 1_000);
    let mut first = unmarked(&stage.request(1));
    first["max_tokens"] = stage.request(2)["max_tokens"].clone();
    assert_eq!(first, unmarked(&stage.request(2)), "nothing else changed");

    // Under 3,000 it is not worth it.
    let words =
        "input length and `max_tokens` exceed context limit: 197240 + 32000 > 200000, decrease input length";
    let (told, stage) = check([Step::status(400).message(words)]).await;
    assert!(told.outcome().is_error);
    assert_eq!(stage.request_count(), 1);
}

#[tokio::test]
async fn retries_are_counted_anew_for_every_question() {
    let script = Script::new()
        .step(Step::status(529).times(2))
        .reply([tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(529).times(2))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.retry.retries_max = 2);
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().retries, 4);
    assert_eq!(told.retries().iter().map(|notice| notice.attempt).collect::<Vec<_>>(), [1, 2, 1, 2]);
    stage.assert_all_played();
}
