//! How long is waited before another attempt, by the numbers of the specification: real HTTP, and a machine that keeps
//! each wait and lets it pass at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use pelton::{Event, Options, Terminal};
use pelton_model::credentials::{Issued, Issuer, Keeper};
use pelton_model::{Auth, ModelError, RetryPolicy, Secret};
use pelton_testkit::{Fault, Script, Step, When, error, text};

use crate::clock::Hasty;
use crate::stage::{Stage, Told, run};

/// What one wait may be.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// The n-th of our own: 500 ms, doubled up to 32 s, and up to a quarter more by chance.
    Own(u32),
    /// As long as the server says.
    Told(Duration),
    /// Until a moment the server names, which was so far away when the test began.
    Until(Duration),
}

impl Wait {
    fn check(self, wait: Duration, row: &str) {
        let (least, most) = match self {
            Self::Own(nth) => {
                let base = Duration::from_millis(500 << nth).min(Duration::from_secs(32));
                (base, base.mul_f64(1.25))
            }
            Self::Told(told) => (told, told),
            // Dates know whole seconds, and the request took a moment.
            Self::Until(away) => (away.saturating_sub(Duration::from_secs(5)), away),
        };
        assert!((least..=most).contains(&wait), "{row}: {wait:?} is not in {least:?}..={most:?}");
    }
}

const SECOND: &str = "claude-opus-5-5";

fn seconds(seconds: u64) -> Wait {
    Wait::Told(Duration::from_secs(seconds))
}

/// The first so many waits of our own.
fn own(count: u32) -> Vec<Wait> {
    (0..count).map(Wait::Own).collect()
}

/// A moment from now, in one of the forms of HTTP.
fn date(form: &str, away: u64) -> String {
    let at = jiff::Timestamp::now() + Duration::from_secs(away);
    at.to_zoned(jiff::tz::TimeZone::UTC).strftime(form).to_string()
}

struct Row {
    name: &'static str,
    steps: Vec<Step>,
    change: fn(&mut Options),
    waits: Vec<Wait>,
    /// The error that is told, or none.
    fails: Option<Terminal>,
}

fn row(name: &'static str, steps: impl IntoIterator<Item = Step>, waits: Vec<Wait>) -> Row {
    Row { name, steps: steps.into_iter().collect(), change: |_| {}, waits, fails: None }
}

/// Plays a row; what was told, the machine, and how often the model was asked.
async fn play(row: &Row) -> (Told, Arc<Hasty>, usize) {
    let script = row.steps.iter().cloned().fold(Script::new(), Script::step);
    let script = if row.fails.is_none() { script.reply([text("At last.")]) } else { script };
    let stage = Stage::new(script).await;
    let world = Hasty::new();
    let mut engine = stage.engine_with(|options| {
        options.retry = RetryPolicy::default();
        options.world = Arc::clone(&world) as _;
        (row.change)(options);
    });
    let told = run(&mut engine, "Hi.").await;
    stage.assert_all_played();
    (told, world, stage.request_count())
}

async fn check(rows: impl IntoIterator<Item = Row>) {
    for row in rows {
        let (told, world, requests) = play(&row).await;
        let name = row.name;
        match row.fails {
            None => assert_eq!(told.assert_completed().text, "At last.", "{name}"),
            Some(terminal) => assert_eq!(told.outcome().terminal, terminal, "{name}"),
        }
        // Each wait is announced before it begins, and what is announced is waited.
        let announced: Vec<Duration> =
            told.retries().iter().map(|notice| notice.wait).filter(|wait| !wait.is_zero()).collect();
        assert_eq!(announced.len(), row.waits.len(), "{name}: {announced:?}");
        for (wait, expected) in announced.iter().zip(&row.waits) {
            expected.check(*wait, name);
        }
        assert_eq!(world.skipped(), announced.iter().sum(), "{name}");
        for notice in told.retries() {
            assert!(notice.attempt <= notice.retries_max, "{name}: {notice:?}");
        }
        assert!(requests > told.retries().len(), "{name}");
    }
}

#[tokio::test]
async fn loop_R1_loop_R2_overload_is_waited_for_and_then_somebody_else_is_asked() {
    let busy = |times| Step::status(529).times(times);
    check([
        row("R1 once", [busy(1)], own(1)),
        row("R1 ten times", [busy(10)], own(10)),
        Row { fails: Some(Terminal::ModelError), ..row("R1 for ever", [busy(11)], own(10)) },
        row("R1 in the stream", [Step::reply([error("overloaded_error", "")]).times(2)], own(2)),
        Row {
            change: |options| options.fallback_models = vec![SECOND.to_owned()],
            ..row(
                "R2",
                [busy(3), busy(1).when(When::any().model(SECOND))],
                vec![Wait::Own(0), Wait::Own(1), Wait::Own(0)],
            )
        },
    ])
    .await;
}

#[tokio::test]
async fn loop_R3_a_rate_limit_is_waited_out_as_long_as_the_server_says_in_whatever_form() {
    let limited = |name: &str, value: &str| Step::status(429).header(name, value);
    let away = Duration::from_secs(120);
    let imf = date("%a, %d %b %Y %H:%M:%S GMT", 120);
    let rfc850 = date("%A, %d-%b-%y %H:%M:%S GMT", 120);
    let asctime = date("%a %b %e %H:%M:%S %Y", 120);
    check([
        row("seconds", [limited("retry-after", "90")], vec![seconds(90)]),
        row(
            "milliseconds",
            [limited("retry-after-ms", "1500")],
            vec![Wait::Told(Duration::from_millis(1500))],
        ),
        row("a date", [limited("retry-after", &imf)], vec![Wait::Until(away)]),
        row("a date of RFC 850", [limited("retry-after", &rfc850)], vec![Wait::Until(away)]),
        row("a date of asctime", [limited("retry-after", &asctime)], vec![Wait::Until(away)]),
        row("none", [Step::status(429).times(2)], own(2)),
        row("then none", [limited("retry-after", "5"), Step::status(429)], vec![seconds(5), Wait::Own(1)]),
        Row {
            fails: Some(Terminal::ModelError),
            ..row("more than anybody waits", [limited("retry-after", "90000")], Vec::new())
        },
    ])
    .await;
}

/// Hands out one key after the other.
struct Keys(AtomicU32);

impl Issuer for Keys {
    fn issue(&self, _refused: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
        let key = format!("key-{}", self.0.fetch_add(1, Ordering::Relaxed));
        Box::pin(async move { Ok(Issued { auth: Auth::ApiKey(Secret::new(key)), good_until: None }) })
    }
}

fn with_keys(options: &mut Options) {
    let world = Arc::clone(&options.world);
    options.endpoint.credentials = Some(Arc::new(Keeper::new(Keys(AtomicU32::new(0)), world)));
}

#[tokio::test]
async fn loop_R4_loop_R5_loop_R8_loop_R9_what_is_repaired_is_asked_again_without_a_wait() {
    let overflow =
        "input length and `max_tokens` exceed context limit: 188240 + 32000 > 200000, decrease input length";
    let revoked = "OAuth token has been revoked. Please obtain a new token.";
    check([
        Row { change: with_keys, ..row("R4", [Step::status(401)], Vec::new()) },
        Row { change: with_keys, ..row("R5", [Step::status(403).message(revoked)], Vec::new()) },
        row("R8", [Step::status(400).message(overflow)], Vec::new()),
        Row {
            change: |options| {
                options.model = SECOND.to_owned();
                options.fast_mode = true;
            },
            ..row("R9", [Step::status(429).message("Extra usage is required for fast mode")], Vec::new())
        },
    ])
    .await;
}

#[tokio::test]
async fn loop_R6_loop_R10_loop_R11_what_passes_is_waited_for_and_what_does_not_is_not() {
    let fails = Some(Terminal::ModelError);
    check([
        row("R6", [Step::reply([text("Half")]).fault(Fault::reset_after_events(2))], own(1)),
        row("R10 408, 409, 5xx", [408, 409, 500, 502, 503, 504].map(Step::status), own(6)),
        row("R10 x-should-retry", [Step::status(400).header("x-should-retry", "true")], own(1)),
        row("R10 a broken stream", [Step::reply([text("Half")]).fault(Fault::cut_after_events(3))], own(1)),
        Row {
            fails,
            ..row("R10 not if it says so", [Step::status(500).header("x-should-retry", "false")], Vec::new())
        },
        Row { fails, ..row("R11 400", [Step::status(400).message("no")], Vec::new()) },
        Row { fails, ..row("R11 401", [Step::status(401)], Vec::new()) },
        Row { fails, ..row("R11 402", [Step::status(402)], Vec::new()) },
    ])
    .await;
}

#[tokio::test]
async fn loop_R12_an_unattended_run_outlasts_hours_and_says_every_half_minute_that_it_lives() {
    let stage = Stage::new(
        Script::new()
            .step(Step::status(529).times(40))
            .step(Step::status(429).header("retry-after", "36000"))
            .reply([text("At last.")]),
    )
    .await;
    let world = Hasty::new();
    let mut engine = stage.engine_with(|options| {
        options.retry = RetryPolicy::default();
        options.retry.unattended = true;
        options.world = Arc::clone(&world) as _;
    });
    let told = run(&mut engine, "Hi.").await;
    assert_eq!(told.assert_completed().text, "At last.");
    let retries = told.retries();
    assert_eq!(retries.len(), 41);
    let cap = Duration::from_secs(300);
    for (nth, notice) in retries[..40].iter().enumerate() {
        let base = Duration::from_millis(500).saturating_mul(1 << nth.min(20)).min(cap);
        assert!((base..=base.mul_f64(1.25)).contains(&notice.wait), "{nth}: {:?}", notice.wait);
    }
    // Ten hours are too long: it looks again after six.
    assert_eq!(retries[40].wait, Duration::from_secs(6 * 3600));
    let hours = world.skipped().as_secs_f64() / 3600.0;
    assert!(hours > 8.0, "{hours} hours");
    // No stretch without a sign of life is longer than half a minute.
    assert!(world.waits().iter().all(|wait| *wait <= Duration::from_secs(30)), "{:?}", world.waits());
    let signs = told.0.iter().filter(|event| matches!(event, Event::Waiting { .. })).count();
    assert_eq!(signs, world.waits().len() - retries.len());
    assert!(told.outcome().duration > Duration::from_secs(8 * 3600));
    stage.assert_all_played();
}
