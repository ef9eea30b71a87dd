//! The scripted model in memory: what a client sees and what the model remembers are the same as over HTTP, and
//! waiting takes no time on a stopped clock.

use futures::StreamExt;
use pelton_model::{
    Ask, Auth, Client, Endpoint, HttpOptions, HttpTransport, Prefix, RetryPolicy, Secret, Transport,
};
use pelton_testkit::{
    Chunk, Ending, Fault, LineEnd, Pace, Script, ScriptedModel, SeededWorld, Step, error, gate, pause, text,
    thinking, tool,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn ask(words: &str) -> Ask {
    let message = json!({"role": "user", "content": words}).to_string();
    let mut ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![message.into()]);
    ask.streaming = true;
    ask
}

fn client(model: &ScriptedModel, transport: Arc<dyn Transport>, retries_max: u32) -> Client {
    let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
    let mut policy = RetryPolicy::default();
    (policy.retries_max, policy.base) = (retries_max, Duration::from_millis(1));
    Client::new(endpoint, transport, policy, Arc::new(SeededWorld::new(1)))
}

/// The steps of a call, in words, without what names the way it went.
async fn told(client: &Client) -> Vec<String> {
    let words = |step: pelton_model::Step| match step {
        pelton_model::Step::Delta(delta) => format!("delta {}", String::from_utf8_lossy(&delta.raw)),
        pelton_model::Step::Block(block) => format!("block {}", String::from_utf8_lossy(&block.json)),
        pelton_model::Step::Retry(notice) => format!("retry {:?} {:?}", notice.kind, notice.status),
        pelton_model::Step::Failed(error) => format!("failed {:?} {:?}", error.kind, error.status),
        pelton_model::Step::Finished(reply) => {
            format!("finished {:?} {:?} {:?}", reply.stop_reason, reply.usage, reply.cut.map(|e| e.kind))
        }
        other => format!("{other:?}"),
    };
    client.call(ask("Hi.")).map(words).collect().await
}

fn script() -> Script {
    let whole = || Step::reply([thinking("Hm."), text("Some words."), tool("Look", json!({"at": "it"}))]);
    [
        whole(),
        whole().gzip(),
        whole().line_end(LineEnd::Mixed).bom(),
        whole().pace(Pace { chunk: Chunk::Random, ..Pace::default() }),
        whole().fault(Fault::cut_after_events(7)),
        whole().fault(Fault::reset_after_events(9)),
        whole().fault(Fault::cut_after_bytes(300)),
        whole().fault(Fault::end_after_events(4)),
        whole().fault(Fault::empty_stream()),
        whole().fault(Fault::close_before_headers()),
        whole().fault(Fault::MalformedJsonAtEvent(4)),
        Step::reply([text("Well"), error("overloaded_error", "")]),
        Step::status(429).header("retry-after", "0"),
        Step::status(400).message("prompt is too long: 250000 tokens > 200000 maximum"),
        Step::status(502).body("<html>bad gateway</html>").gzip(),
        Step::status(200).body(json!({"not": "a message"})),
    ]
    .into_iter()
    .fold(Script::new().seed(5), Script::step)
}

#[tokio::test]
async fn what_a_client_sees_is_the_same_as_over_http() {
    let over_http = script().start().await.unwrap();
    let in_memory = script().start_in_memory().unwrap();
    let http = client(&over_http, Arc::new(HttpTransport::new(HttpOptions::default())), 0);
    let memory = client(&in_memory, Arc::new(in_memory.transport()), 0);
    while !in_memory.summary().steps_left.is_empty() {
        let steps_left = in_memory.summary().steps_left;
        let (one, other) = (told(&http).await, told(&memory).await);
        assert!(!one.is_empty());
        assert_eq!(one, other, "steps left before: {steps_left:?}");
    }
    over_http.wait_for_answers(over_http.requests().len()).await;
    for (one, other) in over_http.requests().iter().zip(in_memory.requests()) {
        assert_eq!(one.raw, other.raw);
        assert_eq!(one.reply.status, other.reply.status);
        assert_eq!(one.reply.usage, other.reply.usage);
        if other.reply.ending == Some(Ending::ClientLeft) {
            // In memory nothing is sent that is not read; a network has room for more.
            assert!(one.reply.events.starts_with(&other.reply.events));
        } else {
            assert_eq!(one.reply.events, other.reply.events);
            assert_eq!(one.reply.ending, other.reply.ending);
        }
    }
    assert_eq!(over_http.requests().len(), in_memory.requests().len());
}

#[tokio::test]
async fn any_model_can_be_asked_both_ways() {
    let model = Script::new().reply([text("One.")]).reply([text("Two.")]).start().await.unwrap();
    let memory = client(&model, Arc::new(model.transport()), 0);
    let http = client(&model, Arc::new(HttpTransport::new(HttpOptions::default())), 0);
    assert!(told(&memory).await.concat().contains("One."));
    assert!(told(&http).await.concat().contains("Two."));
    model.assert_played_out();
}

#[tokio::test]
async fn illegal_requests_are_refused_as_over_http() {
    let model = Script::new().reply([text("Never said.")]).start_in_memory().unwrap().expect_illegal();
    let client = client(&model, Arc::new(model.transport()), 0);
    let mut illegal = ask("Hi.");
    illegal.messages = [r#"{"role":"assistant","content":"I begin."}"#.into()].into_iter().collect();
    let steps: Vec<_> = client.call(illegal).collect().await;
    assert!(matches!(steps.last(), Some(pelton_model::Step::Failed(error)) if error.status == Some(400)));
    assert_eq!(model.illegal().len(), 1);
    assert_eq!(model.summary().steps_left, [1]);
}

#[tokio::test(start_paused = true)]
async fn waiting_takes_no_time_on_a_stopped_clock() {
    let a_while = Duration::from_secs(25);
    let model = Script::new()
        .step(Step::status(529).times(3))
        .reply([text("Slow").after(1, pause(a_while)), gate("open")])
        .start_in_memory()
        .unwrap();
    let client = client(&model, Arc::new(model.transport()), 5);
    let real = std::time::Instant::now();
    let began = tokio::time::Instant::now();
    let open = async {
        model.wait_at_gate("open").await;
        assert!(began.elapsed() >= a_while);
        model.open("open");
    };
    let (told, ()) = tokio::join!(told(&client), open);
    assert!(told.last().unwrap().starts_with("finished"), "{told:?}");
    assert!(real.elapsed() < Duration::from_secs(20), "that was real time");
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_cut_by_the_client_and_notices() {
    let silent = Fault::stall_after_events(2);
    let script = Script::new().step(Step::reply([text("And then")]).fault(silent)).reply([text("There.")]);
    let model = script.start_in_memory().unwrap();
    let told = told(&client(&model, Arc::new(model.transport()), 1)).await;
    assert!(told.iter().any(|step| step.starts_with("retry Stalled")), "{told:?}");
    let requests = model.requests();
    assert_eq!(requests[0].reply.ending, Some(Ending::Stalled));
    assert!(requests[0].hung_up);
    assert_eq!(requests[1].arrived.as_secs(), 300, "by the stopped clock");
}

#[tokio::test]
async fn letting_go_is_hanging_up() {
    let model = Script::new().reply([text("One two three four."), gate("never")]).start_in_memory().unwrap();
    let client = client(&model, Arc::new(model.transport()), 0);
    let mut call = client.call(ask("Hi."));
    tokio::select! {
        () = async { while call.next().await.is_some() {} } => panic!("it waits at the gate"),
        () = model.wait_at_gate("never") => {}
    }
    assert_eq!(model.requests()[0].reply.ending, None);
    drop(call);
    let seen = &model.requests()[0];
    assert_eq!((seen.reply.ending, seen.hung_up), (Some(Ending::ClientLeft), true));
}
