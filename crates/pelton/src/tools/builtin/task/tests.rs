use std::time::Instant;

use super::*;
use crate::tools::background::BackgroundNews;
use crate::tools::builtin::bash;
use crate::tools::builtin::tests::Bench;

/// Starts a command in the background and returns its id.
async fn start(bench: &Bench, command: &str) -> String {
    let input = json!({"command": command, "run_in_background": true, "description": "a test"});
    let output = bash::tool().run(input, &bench.cx).await;
    assert!(!output.is_error, "{output:?}");
    output.detail.unwrap()["backgroundTaskId"].as_str().unwrap().to_owned()
}

/// Whether a process runs. One that has ended and was not waited for does not.
fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z") && !rest.starts_with(" X"))
}

async fn ask(bench: &Bench, input: Value) -> Output {
    output().run(input, &bench.cx).await
}

#[tokio::test]
async fn a_command_goes_on_by_itself_and_its_end_is_told_once() {
    let bench = Bench::new();
    let started = Instant::now();
    let id = start(&bench, "echo one; sleep 1; echo two >&2; exit 3").await;
    assert!(started.elapsed() < Duration::from_millis(900), "it is not waited for");
    let running = ask(&bench, json!({"task_id": id, "block": false})).await;
    assert!(running.words().contains("still running"), "{running:?}");
    assert!(bench.cx.background.news_for_model().is_empty());

    let ended = ask(&bench, json!({"task_id": id})).await;
    let text = ended.words();
    assert!(text.contains("failed with exit code 3") && text.contains("one\ntwo"), "{text}");
    assert_eq!(ended.detail.unwrap()["task"]["exitCode"], 3);
    assert!(bench.cx.background.news_for_model().is_empty(), "the model has just read it");
    let news = bench.cx.background.news();
    assert!(
        matches!(&news[..], [BackgroundNews::Started(_), BackgroundNews::Ended(_, BackgroundEnd::Exited(3))]),
        "{news:?}"
    );
    assert!(bench.cx.background.news().is_empty());
}

#[tokio::test]
async fn an_end_nobody_asked_about_is_news_for_the_model() {
    let bench = Bench::new();
    let id = start(&bench, "true").await;
    bench.cx.background.wait(&id, Duration::from_secs(10)).await.unwrap();
    let news = bench.cx.background.news_for_model();
    assert!(matches!(&news[..], [line] if line.contains(&id) && line.contains("completed")), "{news:?}");
    assert!(bench.cx.background.news_for_model().is_empty());
}

#[tokio::test]
async fn pit_M3_stopping_takes_what_was_started_along() {
    let bench = Bench::new();
    let pid = bench.home.path().join("pid");
    let id = start(&bench, &format!("(trap '' TERM; sleep 300) & echo $! > {}; wait", pid.display())).await;
    let pid = loop {
        match std::fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse::<i32>().ok()) {
            Some(pid) => break pid,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let stopped = stop().run(json!({"shell_id": id}), &bench.cx).await;
    assert!(!stopped.is_error && stopped.words().contains("stopped"), "{stopped:?}");
    assert!(!runs(pid), "it ignores TERM and is gone");
    let again = stop().run(json!({"task_id": id}), &bench.cx).await;
    assert!(again.is_error && again.words().contains("ended before"), "{again:?}");
}

#[tokio::test]
async fn time_runs_out_and_output_has_an_end() {
    let bench = Bench::with_limits(|limits| {
        limits.background_time_max = Duration::from_millis(300);
        limits.kill_grace = Duration::from_millis(100);
    });
    let id = start(&bench, "sleep 300").await;
    let end = bench.cx.background.wait(&id, Duration::from_secs(10)).await;
    assert_eq!(end, Some(BackgroundEnd::TimedOut));

    let bench = Bench::with_limits(|limits| {
        limits.shell_spill_bytes_max = 1000;
        limits.kill_grace = Duration::from_millis(100);
    });
    let id = start(&bench, "yes").await;
    let end = bench.cx.background.wait(&id, Duration::from_secs(20)).await;
    assert_eq!(end, Some(BackgroundEnd::PrintedTooMuch));
    let long = ask(&bench, json!({"task_id": id})).await;
    assert!(long.words().contains("all is in"), "{}", long.words().chars().take(200).collect::<String>());
}

#[tokio::test]
async fn with_the_session_everything_ends() {
    let bench = Bench::new();
    let pid = bench.home.path().join("pid");
    start(&bench, &format!("echo $$ > {}; sleep 300", pid.display())).await;
    let pid = loop {
        match std::fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse::<i32>().ok()) {
            Some(pid) => break pid,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    drop(bench);
    let gone = async {
        while runs(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("killed with the session");
}

#[tokio::test]
async fn unknown_ids_are_answered_with_the_known_ones() {
    let bench = Bench::new();
    let nothing = ask(&bench, json!({"task_id": "b1"})).await;
    assert!(nothing.is_error && nothing.words().contains("Nothing runs"), "{nothing:?}");
    let id = start(&bench, "sleep 300").await;
    let known = stop().run(json!({"task_id": "b1"}), &bench.cx).await;
    assert!(known.is_error && known.words().contains(&id), "{known:?}");
}
