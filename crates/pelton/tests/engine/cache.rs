//! What became of the server's cache with every request: as the server itself counted, and for a miss the first part that
//! differs and what changed it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::event::{Asked, CacheReport};
use pelton::tools::{
    Access, InvalidInput, Output, Safety, ServerState, Spec, Tool, ToolCx, ToolSearch, ToolServer,
};
use pelton::{Engine, Event, Options};
use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, Told, results_in, resume_from, run, sh};
use crate::streams::months_later;

fn reports(told: &Told) -> Vec<&CacheReport> {
    let report = |event: &'_ Event| matches!(event, Event::Cache(_));
    let all = told.0.iter().filter(|event| report(event));
    all.filter_map(|event| match event {
        Event::Cache(report) => Some(report),
        _ => None,
    })
    .collect()
}

/// Why the first request of a submission missed the cache.
#[track_caller]
fn reason(told: &Told) -> String {
    let first = reports(told)[0];
    assert!(first.missed > 0, "{first:?}");
    first.reason.clone().expect("a reason")
}

/// A session that has said something, and a result of some length.
async fn begun(more: impl IntoIterator<Item = Step>) -> (Stage, Engine) {
    let script = Script::new().reply([tool("Bash", sh("seq 1 600"))]).reply([text("Listed.")]);
    let stage = Stage::new(more.into_iter().fold(script, Script::step)).await;
    let mut engine = stage.engine();
    run(&mut engine, "List.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let engine = stage.resume(&file);
    (stage, engine)
}

fn says(words: &str) -> Step {
    Step::reply([text(words)])
}

/// The record of an engine, which lets go of it.
fn file_of(engine: Engine) -> std::path::PathBuf {
    let file = engine.transcript_file().unwrap();
    drop(engine);
    file
}

#[tokio::test]
async fn every_request_tells_what_was_read_and_written_and_misses_nothing() {
    let mut script = Script::new();
    for n in 0..5 {
        script = script.reply([tool("Bash", sh(&format!("seq 1 {}", 100 + n)))]);
    }
    let stage = Stage::new(script.reply([text("Done.")]).reply([text("Again.")])).await;
    let mut engine = stage.engine();
    let told = [run(&mut engine, "Go.").await, run(&mut engine, "Once more.").await];
    let reports: Vec<&CacheReport> = told.iter().flat_map(reports).collect();
    let counted: Vec<(u64, u64)> = stage
        .model
        .reply_requests()
        .iter()
        .map(|seen| {
            let usage = seen.reply.usage.as_ref().unwrap();
            let figure = |name: &str| usage[name].as_u64().unwrap();
            (figure("cache_read_input_tokens"), figure("cache_creation_input_tokens"))
        })
        .collect();
    let told: Vec<(u64, u64)> = reports.iter().map(|report| (report.read, report.written)).collect();
    assert_eq!((told.len(), &told), (7, &counted));
    for pair in told.windows(2) {
        assert_eq!(pair[1].0, pair[0].0 + pair[0].1, "all that was written is read: {told:?}");
    }
    assert!(reports.iter().all(|report| report.missed == 0 && report.reason.is_none()), "{reports:?}");
    // The same is known to whoever looks at the context, and to another process.
    let kept = engine.context_usage().cache;
    assert_eq!(kept.iter().collect::<Vec<_>>(), reports);
    let file = file_of(engine);
    assert_eq!(stage.resume(&file).context_usage().cache, kept);
}

#[tokio::test]
async fn another_model_is_named() {
    let (_stage, mut engine) = begun([says("Hm.")]).await;
    engine.dials().set_model(Some("claude-haiku-5-5")).unwrap();
    let told = run(&mut engine, "And?").await;
    assert!(reason(&told).starts_with("model: claude-haiku-5-5 is asked instead of"), "{}", reason(&told));
}

#[tokio::test]
async fn a_system_prompt_that_is_another_is_named_after_a_resume() {
    let (stage, engine) = begun([says("Hm.")]).await;
    let file = file_of(engine);
    let mut engine = resumed(&stage, &file, |options| {
        options.system_prompt.appended = Some("Speak plainly.".to_owned());
    });
    let told = run(&mut engine, "And?").await;
    assert!(reason(&told).starts_with("system: the system prompt is another"), "{}", reason(&told));
}

#[tokio::test]
async fn the_tool_that_is_another_is_named() {
    let (stage, engine) = begun([says("One."), says("Two."), says("Three.")]).await;
    let file = file_of(engine);
    let server = Arc::new(Served::default());
    let mut engine = resumed(&stage, &file, |options| {
        options.servers = vec![Arc::clone(&server) as Arc<dyn ToolServer>];
        options.tool_search = ToolSearch::Off;
    });
    let told = run(&mut engine, "One.").await;
    assert!(reports(&told)[0].missed > 0 || reports(&told)[0].written > 0);
    server.0.lock().unwrap().push("ring");
    let told = run(&mut engine, "Two.").await;
    assert!(
        reason(&told).starts_with("tools[") && reason(&told).contains("mcp__late__ring is offered there now"),
        "{}",
        reason(&told)
    );
    // One that goes away stays where it was sent: that costs no cache.
    server.0.lock().unwrap().clear();
    let told = run(&mut engine, "Three.").await;
    assert_eq!(reports(&told)[0].missed, 0);

    // Whoever looks at the record later sees what each server took, without the servers.
    let file = file_of(engine);
    let usage = resumed(&stage, &file, |_| {}).context_usage_recorded();
    let share = usage.shares.iter().find(|share| share.name == "late");
    assert!(share.is_some_and(|share| share.kind == "tools" && share.tokens > 0), "{usage:?}");
}

#[tokio::test]
async fn a_boundary_is_named_with_the_message_and_the_level() {
    let (stage, mut engine) = begun([says("Hm."), says("Well.")]).await;
    run(&mut engine, "And?").await.assert_completed();
    let call = results_in(&stage.request(2))[0].0.clone();
    let told = run(&mut engine, &format!("/context clear {call}")).await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    let told = run(&mut engine, "Go on.").await;
    assert_eq!(reason(&told), "messages[2]: changed after it was sent, by: snip");
    let report = reports(&told)[0];
    assert!(report.read > 0 && report.asked == Asked::Turn, "what stands before it is read: {report:?}");
}

#[tokio::test]
async fn a_cache_that_is_kept_no_longer_is_told_with_the_time() {
    let cold =
        || says("Hm.").usage("cache_read_input_tokens", 0).usage("cache_creation_input_tokens", 20_000);
    let (stage, engine) = begun([cold()]).await;
    let file = file_of(engine);
    let mut engine = resumed(&stage, &file, |options| options.world = months_later());
    let told = run(&mut engine, "And?").await;
    let waited = reason(&told);
    assert!(waited.starts_with("time: 60") && waited.contains("keeps it no longer"), "{waited}");

    // At once it is nobody's fault here.
    let (_stage, mut engine) = begun([cold()]).await;
    let told = run(&mut engine, "And?").await;
    assert!(reason(&told).contains("the server does not have it any more"), "{}", reason(&told));
    assert!(engine.context_usage().to_string().contains("missed"), "{}", engine.context_usage());
}

fn resumed(stage: &Stage, file: &Path, change: impl FnOnce(&mut Options)) -> Engine {
    stage.engine_with(|options| {
        resume_from(options, file);
        change(options);
    })
}

/// A server with these tools.
#[derive(Default)]
struct Served(Mutex<Vec<&'static str>>);

impl ToolServer for Served {
    fn name(&self) -> &str {
        "late"
    }

    fn state(&self) -> ServerState {
        ServerState::Connected
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.lock().unwrap().iter().map(|name| Arc::new(Bell(name)) as Arc<dyn Tool>).collect()
    }

    fn instructions(&self) -> Option<String> {
        None
    }
}

struct Bell(&'static str);

impl Tool for Bell {
    fn spec(&self) -> Spec<'_> {
        Spec { name: self.0, description: "Rings.", input_schema: r#"{"type":"object"}"# }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        async { Output::text(json!("rung").to_string()) }.boxed()
    }
}
