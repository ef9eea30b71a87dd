//! What a session takes from the program around it, and asks of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::host::{AppState, Elicitation, Elicited, Elicitor, Host};
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx};
use pelton::{Event, Terminal, Wait};
use pelton_testkit::{Script, gate, text, tool};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::stage::{
    Stage, Told, entry_of, holds, is_start_of, lines, prompt, pulling, rest, results_in, run, until,
};

#[tokio::test]
async fn loop_E25_a_signal_of_the_host_ends_the_submission_and_every_later_one() {
    let script = Script::new().reply([text("A long story").fragments(2).after(1, gate("rest"))]);
    let stage = Stage::new(script).await;
    let cancel = CancellationToken::new();
    let mut engine = stage.engine_with(|options| options.cancel = cancel.clone());

    let mut events = engine.submit(prompt("Talk."));
    let (mut told, ()) = pulling(&mut events, stage.model.wait_at_gate("rest")).await;
    let at = Instant::now();
    cancel.cancel();
    told.extend(rest(&mut events).await);
    drop(events);
    assert_eq!(Told(told).outcome().terminal, Terminal::AbortedStreaming);
    assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
    let recorded = lines(&engine.transcript_file().unwrap()).len();

    let told = run(&mut engine, "And now?").await;
    assert_eq!(told.outcome().terminal, Terminal::AbortedStreaming);
    assert!(told.outcome().is_error && told.entries().is_empty());
    assert_eq!(stage.request_count(), 1, "nobody is asked any more");
    assert_eq!(lines(&engine.transcript_file().unwrap()).len(), recorded, "and nothing is recorded");
}

#[tokio::test]
async fn an_interrupt_ends_one_submission_and_not_the_next() {
    let script = Script::new().reply([gate("never")]).reply([text("Here.")]);
    let stage = Stage::new(script).await;
    let cancel = CancellationToken::new();
    let mut engine = stage.engine_with(|options| options.cancel = cancel.clone());
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("Wait."));
    pulling(&mut events, stage.model.wait_at_gate("never")).await;
    interrupter.interrupt();
    rest(&mut events).await;
    drop(events);
    assert!(!cancel.is_cancelled(), "the host's signal is the host's");
    run(&mut engine, "Hello?").await.assert_completed();
}

#[tokio::test]
async fn loop_E10_what_was_read_before_counts_as_read() {
    let edit = |id: &str| {
        tool("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})).id(id)
    };
    let script = Script::new()
        .reply([tool("Read", json!({"file_path": "a.txt"}))])
        .reply([text("Read.")])
        .reply([edit("toolu_stranger")])
        .reply([text("No.")])
        .reply([edit("toolu_heir")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    stage.write("a.txt", "one\n");
    let mut reader = stage.engine();
    run(&mut reader, "Read it.").await.assert_completed();

    run(&mut stage.engine(), "Edit it.").await.assert_completed();
    assert!(results_in(&stage.request(4))[0].1, "a session that has not read it may not edit it");
    assert_eq!(stage.read("a.txt"), "one\n");

    let files = reader.files();
    let mut heir = stage.engine_with(|options| options.files = files);
    run(&mut heir, "Edit it.").await.assert_completed();
    assert!(!results_in(&stage.request(6))[0].1, "{:?}", results_in(&stage.request(6)));
    assert_eq!(stage.read("a.txt"), "two\n");
}

#[tokio::test]
async fn loop_E21_the_prompt_is_in_the_stream_under_the_id_it_was_given() {
    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let mut engine = stage.engine();
    let id = uuid::Uuid::from_u128(7);
    let told = Told(rest(&mut engine.submit(prompt("Hi.").with_id(id))).await);
    let echoed: Vec<_> = told.0.iter().filter(|event| matches!(event, Event::Prompt(_))).collect();
    let [echo] = echoed[..] else { panic!("one prompt, one echo: {echoed:?}") };
    assert_eq!(entry_of(echo).unwrap().id, id);
    assert!(entry_of(echo).unwrap().json.windows(3).any(|bytes| bytes == b"Hi."));
}

/// State of a program, for its tools.
#[derive(Default)]
struct State(Mutex<HashMap<String, Value>>);

impl AppState for State {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.lock().unwrap().get(name).cloned()
    }

    fn set(&self, name: &str, value: Option<Value>) {
        let mut state = self.0.lock().unwrap();
        match value {
            Some(value) => state.insert(name.to_owned(), value),
            None => state.remove(name),
        };
    }
}

/// A tool that counts in the program's state, and one that asks the user.
enum HostTool {
    Count,
    Ask,
}

impl Tool for HostTool {
    fn spec(&self) -> Spec<'_> {
        let name = match self {
            Self::Count => "Count",
            Self::Ask => "AskName",
        };
        Spec { name, description: "Uses the host.", input_schema: r#"{"type":"object"}"# }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move {
            match (self, cx.host.state()) {
                (Self::Count, None) => Output::error("no state"),
                (Self::Count, Some(state)) => {
                    let count = state.get("count").and_then(|count| count.as_u64()).unwrap_or_default() + 1;
                    state.set("count", Some(count.into()));
                    Output::text(format!("count is {count}"))
                }
                (Self::Ask, _) => {
                    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                    match cx.elicit("names", "What is your name?", schema).await {
                        Elicited::Accept(answer) => Output::text(format!("the name is {}", answer["name"])),
                        Elicited::Decline => Output::text("declined"),
                        Elicited::Cancel => Output::error("cancelled"),
                    }
                }
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn loop_E7_loop_E8_tools_read_and_change_the_state_of_the_program() {
    let script = || Script::new().reply([tool("Count", json!({}))]).reply([text("Done.")]);
    let state = Arc::new(State::default());
    state.set("count", Some(41.into()));
    let stage = Stage::new(script()).await;
    let mut engine = stage.engine_with(|options| {
        options.tools.push(Arc::new(HostTool::Count));
        options.host = Host::default().with_state(Arc::clone(&state) as Arc<dyn AppState>);
    });
    run(&mut engine, "Count.").await.assert_completed();
    assert_eq!(results_in(&stage.request(2))[0].2, "count is 42");
    assert_eq!(state.get("count"), Some(42.into()));

    let stage = Stage::new(script()).await;
    let mut engine = stage.engine_with(|options| options.tools.push(Arc::new(HostTool::Count)));
    run(&mut engine, "Count.").await.assert_completed();
    assert_eq!(results_in(&stage.request(2))[0].2, "no state");
}

/// Answers each question with what is next, and hangs when there is nothing left.
#[derive(Default)]
struct Person {
    answers: Mutex<Vec<Elicited>>,
    asked: Mutex<Vec<Elicitation>>,
    /// The most questions at the same time.
    at_once: Mutex<(usize, usize)>,
}

impl Person {
    fn with(answers: &[Elicited]) -> Arc<Self> {
        let answers = answers.iter().rev().cloned().collect();
        Arc::new(Self { answers: Mutex::new(answers), ..Self::default() })
    }
}

impl Elicitor for Person {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        async move {
            self.asked.lock().unwrap().push(question.clone());
            {
                let (now, most) = &mut *self.at_once.lock().unwrap();
                *now += 1;
                *most = (*most).max(*now);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            let answer = self.answers.lock().unwrap().pop();
            self.at_once.lock().unwrap().0 -= 1;
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

fn asking(stage: &Stage, person: &Arc<Person>) -> pelton::Engine {
    stage.engine_with(|options| {
        options.tools.push(Arc::new(HostTool::Ask));
        options.host = Host::default().with_elicitor(Arc::clone(person) as Arc<dyn Elicitor>);
    })
}

#[tokio::test]
async fn loop_E22_questions_of_tools_reach_the_handler_one_at_a_time() {
    let ask = || tool("AskName", json!({}));
    let script = Script::new()
        .reply([ask().id("toolu_1"), ask().id("toolu_2"), ask().id("toolu_3")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let person =
        Person::with(&[Elicited::Accept(json!({"name": "Ada"})), Elicited::Decline, Elicited::Cancel]);
    run(&mut asking(&stage, &person), "Ask.").await.assert_completed();
    let mut answers: Vec<String> =
        results_in(&stage.request(2)).into_iter().map(|(_, _, text)| text).collect();
    answers.sort();
    assert_eq!(answers, ["cancelled", "declined", r#"the name is "Ada""#]);
    let asked = person.asked.lock().unwrap().clone();
    assert_eq!((asked.len(), person.at_once.lock().unwrap().1), (3, 1));
    assert_eq!((asked[0].asker.as_str(), asked[0].message.as_str()), ("names", "What is your name?"));
    assert_eq!(asked[0].schema["properties"]["name"]["type"], "string");

    // Nobody to ask: the tool is told, and the run goes on.
    let stage = Stage::new(Script::new().reply([ask()]).reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| options.tools.push(Arc::new(HostTool::Ask)));
    run(&mut engine, "Ask.").await.assert_completed();
    assert_eq!(results_in(&stage.request(2))[0].2, "declined");
}

#[tokio::test]
async fn loop_E22_a_question_can_be_seen_and_interrupted() {
    let stage = Stage::new(Script::new().reply([tool("AskName", json!({})).id("toolu_ask")])).await;
    let person = Person::with(&[]);
    let mut engine = asking(&stage, &person);
    let (interrupter, watch) = (engine.interrupter(), engine.watch());
    let mut events = engine.submit(prompt("Ask."));
    until(&mut events, |event| is_start_of(event, "toolu_ask")).await;
    pulling(&mut events, holds(|| !person.asked.lock().unwrap().is_empty())).await;
    assert_eq!(watch.borrow().waits, [Wait::Elicitation { call: "toolu_ask".into() }]);
    let at = Instant::now();
    interrupter.interrupt();
    let told = Told(rest(&mut events).await);
    assert!(told.outcome().is_error && at.elapsed() < Duration::from_secs(1));
    assert!(watch.borrow().waits.is_empty());
}
