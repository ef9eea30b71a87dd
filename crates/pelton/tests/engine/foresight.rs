//! Z2: likely calls, made before the model asks for them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use pelton::ToolLimits;
use pelton::permission::Mode;
use pelton::tools::Speculation;
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, builtin};
use pelton::{Engine, Event, Options};
use pelton_testkit::{Part, Script, Step, When, error, gate, text, tool};
use serde_json::{Value, json};

use crate::stage::{
    Stage, Told, is_result_of, is_start_of, prompt, pulling, rest, results_in, run, unmarked, until,
};

/// Read, but slower, and it counts its runs.
#[derive(Clone)]
struct SlowRead {
    read: Arc<dyn Tool>,
    takes: Duration,
    /// What ran, and how it ended.
    runs: Runs,
}

type Runs = Arc<Mutex<Vec<(String, Option<Ending>)>>>;

#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Whole,
    Stopped,
}

/// Notes that a run was stopped, unless something else was noted of it before.
struct Note {
    runs: Runs,
    at: usize,
}

impl Drop for Note {
    fn drop(&mut self) {
        self.runs.lock().unwrap()[self.at].1.get_or_insert(Ending::Stopped);
    }
}

impl SlowRead {
    fn new(takes: Duration) -> Self {
        let read = builtin::all().into_iter().find(|tool| tool.spec().name == "Read").unwrap();
        Self { read, takes, runs: Arc::default() }
    }

    /// The files it was run for.
    fn files(&self) -> Vec<String> {
        self.runs.lock().unwrap().iter().map(|(file, _)| file.clone()).collect()
    }

    fn ended(&self) -> usize {
        self.count(Ending::Whole)
    }

    fn stopped(&self) -> usize {
        self.count(Ending::Stopped)
    }

    fn count(&self, ending: Ending) -> usize {
        self.runs.lock().unwrap().iter().filter(|(_, ended)| *ended == Some(ending)).count()
    }
}

impl Tool for SlowRead {
    fn spec(&self) -> Spec<'_> {
        self.read.spec()
    }

    fn safety(&self, input: &Value) -> Safety {
        self.read.safety(input)
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        self.read.access(input, cx)
    }

    fn foreseeable(&self, input: &Value, cx: &ToolCx) -> Option<Value> {
        self.read.foreseeable(input, cx)
    }

    fn result_chars_max(&self, limits: &ToolLimits) -> usize {
        self.read.result_chars_max(limits)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let file = input["file_path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            let at = {
                let mut runs = self.runs.lock().unwrap();
                runs.push((file, None));
                runs.len() - 1
            };
            let _note = Note { runs: Arc::clone(&self.runs), at };
            let output = self.read.run(input, cx).await;
            tokio::time::sleep(self.takes).await;
            self.runs.lock().unwrap()[at].1 = Some(Ending::Whole);
            output
        })
    }
}

const NAMES: [&str; 3] = ["a.txt", "b.txt", "c.txt"];

/// A place with three files that a search for `pump` finds.
async fn stage(script: Script) -> Stage {
    let stage = Stage::new(script).await;
    for name in NAMES {
        stage.write(name, &format!("the pump of {name}\n"));
    }
    // What was written this very moment is not trusted to stay.
    tokio::time::sleep(Duration::from_millis(80)).await;
    stage
}

fn engine(stage: &Stage, read: &SlowRead, change: impl FnOnce(&mut Options)) -> Engine {
    stage.engine_with(|options| {
        options.mode = Mode::Default;
        options.tools.retain(|tool| tool.spec().name != "Read");
        options.tools.push(Arc::new(read.clone()));
        options.speculation = Some(Speculation::default());
        change(options);
    })
}

fn grep() -> Part {
    tool("Grep", json!({"pattern": "pump"})).id("toolu_grep")
}

fn read(name: &str) -> Part {
    tool("Read", json!({"file_path": name})).id(format!("toolu_{}", &name[..1]))
}

/// A model that searches, and then reads what it found, in one go and one by one.
fn habit() -> Script {
    Script::new()
        .reply([grep()])
        .reply([read("a.txt"), read("b.txt")])
        .reply([read("c.txt")])
        .reply([text("Done.")])
}

#[tokio::test]
async fn loop_Z2_results_of_likely_calls_are_there_and_are_the_same() {
    let (with, without) = (stage(habit()).await, stage(habit()).await);
    let reads = SlowRead::new(Duration::ZERO);
    let told = run(&mut engine(&with, &reads, |_| {}), "Search.").await;
    let outcome = told.assert_completed();
    let figures = outcome.speculation;
    assert_eq!((figures.calls, figures.hits, figures.misses), (3, 3, 0));
    assert_eq!((figures.wasted_calls, figures.wasted_bytes), (0, 0));
    assert!(figures.hits * 100 >= 30 * outcome.tool_calls as usize, "{figures:?} of {}", outcome.tool_calls);
    assert_eq!(reads.files().len(), 3, "nothing is read twice");
    assert_eq!(outcome.loop_events["speculation"], 2);

    let told = run(
        &mut engine(&without, &SlowRead::new(Duration::ZERO), |options| options.speculation = None),
        "Search.",
    )
    .await;
    assert_eq!(told.assert_completed().speculation, Default::default());
    assert!(!told.outcome().loop_events.contains_key("speculation"), "it is off unless it is wanted");
    for nth in 3..=4 {
        // The search itself may list files of the same age in any order.
        assert_eq!(results_in(&with.request(nth))[1..], results_in(&without.request(nth))[1..]);
    }
    assert_eq!(unmarked(&with.request(4)["tools"]), unmarked(&without.request(4)["tools"]));
    with.assert_all_played();
}

#[tokio::test]
async fn loop_Z2_a_hit_saves_the_time_of_the_call() {
    let takes = Duration::from_millis(400);
    let mut took = Vec::new();
    for speculation in [Some(Speculation::default()), None] {
        let script =
            Script::new().reply([grep()]).reply([gate("thinking"), read("a.txt")]).reply([text("Done.")]);
        let stage = stage(script).await;
        let reads = SlowRead::new(takes);
        let mut engine = engine(&stage, &reads, |options| options.speculation.clone_from(&speculation));
        let mut events = Box::pin(engine.submit(prompt("Search.")));
        until(&mut events, |event| matches!(event, Event::Requesting)).await;
        until(&mut events, |event| matches!(event, Event::Requesting)).await;
        // The model takes its time; meanwhile all that was found is read, if that is wanted.
        pulling(&mut events, tokio::time::sleep(takes * 2)).await;
        assert_eq!(reads.ended(), if speculation.is_some() { 3 } else { 0 });
        stage.model.open("thinking");
        until(&mut events, |event| is_start_of(event, "toolu_a")).await;
        let begun = Instant::now();
        until(&mut events, |event| is_result_of(event, "toolu_a")).await;
        took.push(begun.elapsed());
        rest(&mut events).await;
    }
    assert!(took[0] < takes / 2 && took[1] >= takes, "{took:?}");
}

#[tokio::test]
async fn loop_Z2_a_call_that_is_still_being_made_is_waited_for_and_not_made_twice() {
    let stage = stage(Script::new().reply([grep()]).reply([read("a.txt")]).reply([text("Done.")])).await;
    let reads = SlowRead::new(Duration::from_millis(200));
    let told = run(&mut engine(&stage, &reads, |_| {}), "Search.").await;
    let figures = told.assert_completed().speculation;
    assert_eq!((figures.hits, figures.wasted_calls), (1, 2));
    assert_eq!(reads.files().iter().filter(|file| *file == "a.txt").count(), 1);
}

#[tokio::test]
async fn loop_Z2_a_file_that_changed_meanwhile_is_read_again() {
    let script = Script::new().reply([grep()]).reply([gate("change"), read("a.txt")]).reply([text("Done.")]);
    let stage = stage(script).await;
    let reads = SlowRead::new(Duration::ZERO);
    let mut engine = engine(&stage, &reads, |_| {});
    let mut events = Box::pin(engine.submit(prompt("Search.")));
    pulling(&mut events, crate::stage::holds(|| reads.ended() == 3)).await;
    stage.write("a.txt", "THE PUMP OF A.TXT\n");
    stage.model.open("change");
    let told = Told(rest(&mut events).await);
    drop(events);
    let figures = told.assert_completed().speculation;
    assert_eq!((figures.hits, figures.misses, figures.wasted_calls), (0, 1, 3));
    assert!(figures.wasted_bytes > 3 * 10, "{figures:?}");
    assert!(results_in(&stage.request(3))[1].2.contains("THE PUMP"));
}

#[tokio::test]
async fn loop_Z2_only_the_very_same_input_is_a_hit() {
    let script = Script::new()
        .reply([grep()])
        .reply([
            tool("Read", json!({"file_path": "a.txt", "limit": 1})),
            // As the tool sees it, this is the same as what is foreseen.
            tool("Read", json!({"file_path": ".//b.txt", "offset": null})),
        ])
        .reply([text("Done.")]);
    let stage = stage(script).await;
    let reads = SlowRead::new(Duration::ZERO);
    let told = run(&mut engine(&stage, &reads, |_| {}), "Search.").await;
    let figures = told.assert_completed().speculation;
    assert_eq!((figures.hits, figures.misses), (1, 1));
}

#[tokio::test]
async fn loop_Z2_what_the_model_never_saw_does_not_count_as_read() {
    let edit = |name: &str| {
        tool("Edit", json!({"file_path": name, "old_string": "pump", "new_string": "valve"}))
            .id(format!("toolu_edit_{}", &name[..1]))
    };
    let script = Script::new()
        .reply([grep()])
        .reply([read("a.txt")])
        .reply([edit("a.txt"), edit("b.txt")])
        .reply([text("Done.")]);
    let stage = stage(script).await;
    let reads = SlowRead::new(Duration::ZERO);
    let mut engine = engine(&stage, &reads, |options| options.mode = Mode::AcceptEdits);
    let told = run(&mut engine, "Search.").await;
    assert_eq!(told.assert_completed().speculation.hits, 1);
    assert!(reads.files().contains(&"b.txt".to_owned()), "it was read ahead");
    let results = results_in(&stage.request(4));
    assert!(!results[2].1, "what it saw it may change: {results:?}");
    assert!(results[3].1 && results[3].2.contains("read"), "what it did not see it may not: {results:?}");
    assert_eq!(stage.read("b.txt"), "the pump of b.txt\n");
}

#[tokio::test]
async fn loop_Z2_nothing_is_done_ahead_that_somebody_would_be_asked_or_told_about() {
    let stage_one = stage(habit()).await;
    let reads = SlowRead::new(Duration::ZERO);
    let mut engine_one = engine(&stage_one, &reads, |options| {
        options.rules.ask.push("Read(b.txt)".parse().unwrap());
        options.rules.deny.push("Read(c.txt)".parse().unwrap());
    });
    run(&mut engine_one, "Search.").await.assert_completed();
    assert_eq!(reads.files(), ["a.txt"]);

    let stage_two = stage(habit()).await;
    let reads = SlowRead::new(Duration::ZERO);
    let mut engine_two = engine(&stage_two, &reads, |options| {
        let hook =
            json!({"PostToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "true"}]}]});
        assert!(options.hooks.add_settings(&hook, &pelton::hooks::Source::User).is_empty());
    });
    let told = run(&mut engine_two, "Search.").await;
    assert_eq!(told.assert_completed().speculation.calls, 0);
    assert_eq!(reads.files(), NAMES, "only what was asked for");
}

#[tokio::test]
async fn loop_Z2_there_is_an_end_to_what_is_done_for_nothing() {
    // Calls after one answer, calls for nothing in all, bytes, and time; with how long a read takes and what is waited for.
    type Case = (fn(&mut Speculation), Duration, fn(&SlowRead) -> bool, (usize, usize));
    const SHORT: Duration = Duration::from_millis(1);
    const ENDLESS: Duration = Duration::from_secs(3_600);
    let cases: [Case; 4] = [
        (|terms| terms.calls_max = 2, SHORT, |reads| reads.ended() == 2, (2, 2)),
        (|terms| terms.wasted_calls_max = 1, SHORT, |reads| reads.ended() == 1, (1, 1)),
        (|terms| terms.bytes_max = 30, SHORT, |reads| reads.ended() == 3, (3, 3)),
        (|terms| terms.time_max = Duration::from_millis(5), ENDLESS, |reads| reads.stopped() == 3, (3, 3)),
    ];
    let search = || tool("Grep", json!({"pattern": "pump"}));
    for (change, takes, over, expected) in cases {
        let script = Script::new().reply([search()]).reply([gate("late"), search()]).reply([text("Done.")]);
        let stage = stage(script).await;
        let reads = SlowRead::new(takes);
        let mut terms = Speculation::default();
        change(&mut terms);
        let mut engine = engine(&stage, &reads, |options| options.speculation = Some(terms.clone()));
        let mut events = Box::pin(engine.submit(prompt("Search.")));
        pulling(&mut events, crate::stage::holds(|| over(&reads))).await;
        // What comes behind a read, its file being looked at again, is seen by nobody but the figures.
        pulling(&mut events, tokio::time::sleep(Duration::from_millis(200))).await;
        stage.model.open("late");
        let told = Told(rest(&mut events).await);
        drop(events);
        let figures = told.assert_completed().speculation;
        assert_eq!((figures.calls, figures.wasted_calls), expected, "{terms:?}");
        if terms.bytes_max == 30 {
            assert!((1..=30).contains(&figures.wasted_bytes), "{figures:?}");
        }
    }
}

#[tokio::test]
async fn loop_Z2_it_ends_with_the_submission() {
    let script = Script::new().reply([grep()]).reply([gate("never"), text("…")]).reply([text("Here.")]);
    let stage = stage(script).await;
    let reads = SlowRead::new(Duration::from_millis(150));
    let mut engine = engine(&stage, &reads, |_| {});
    let interrupter = engine.interrupter();
    let mut events = Box::pin(engine.submit(prompt("Search.")));
    pulling(&mut events, crate::stage::holds(|| reads.files().len() == 3)).await;
    interrupter.interrupt();
    let told = Told(events.by_ref().collect().await);
    drop(events);
    assert_eq!(told.outcome().speculation.wasted_calls, 3);
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(reads.ended(), 0);
    run(&mut engine, "Go on.").await.assert_completed();
}

#[tokio::test]
async fn loop_Z2_loop_P8_what_a_discarded_answer_took_is_used_only_if_the_next_takes_it_again() {
    const SECOND: &str = "claude-opus-5-5";
    // Whether the next model reads what the discarded answer read, and what was of use in the end.
    for (reads_again, hits, wasted) in [(true, 1, 2), (false, 0, 3)] {
        let next = if reads_again { vec![read("a.txt")] } else { vec![text("Done.")] };
        let mut script = Script::new()
            .reply([grep()])
            .step(Step::status(529).header("retry-after-ms", "1").times(2))
            .step(Step::reply([read("a.txt"), gate("read"), error("overloaded_error", "")]))
            .step(Step::reply(next).when(When::any().model(SECOND)));
        if reads_again {
            script = script.step(Step::reply([text("Done.")]).when(When::any().model(SECOND)));
        }
        let stage = stage(script).await;
        let reads = SlowRead::new(Duration::ZERO);
        let mut engine = engine(&stage, &reads, |options| options.fallback_models = vec![SECOND.to_owned()]);
        let mut events = Box::pin(engine.submit(prompt("Search.")));
        let mut told = until(&mut events, |event| is_start_of(event, "toolu_a")).await;
        told.extend(pulling(&mut events, crate::stage::holds(|| reads.ended() == 3)).await.0);
        stage.model.open("read");
        told.extend(rest(&mut events).await);
        drop(events);
        let told = Told(told);
        let outcome = told.assert_completed();
        let figures = outcome.speculation;
        assert_eq!((figures.calls, figures.hits, figures.misses), (3, hits, 0), "{figures:?}");
        assert_eq!(figures.wasted_calls, wasted, "{figures:?}");
        assert_eq!(outcome.tool_calls, 1 + u32::from(reads_again));
        assert_eq!(reads.files().len(), 3, "nothing is read twice");
        stage.assert_all_played();
    }
}
