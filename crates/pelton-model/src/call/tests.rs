mod broken; // streams that fail on the way
mod fast; // the fast mode
mod refused; // answers that are no success
mod renewed; // credentials that are not accepted
mod silent; // streams that say nothing
mod unattended; // nobody waits
mod whole; // answers in one piece

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Mutex;

use bytes::Bytes;
use expect_test::expect;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use tokio::time::Instant;

use super::*;
use crate::ask::{Prefix, Source};
use crate::client::{Auth, Client, Endpoint, Secret};
use crate::error::ErrorKind;
use crate::retry::{Advice, RetryPolicy};
use crate::step::{Block, BlockKind, Delta, DeltaKind};
use crate::transport::{Post, Response, Transport, TransportError, TransportErrorKind};
use crate::world::World;

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","model":"m-1","usage":{"input_tokens":12,"output_tokens":1}}}"#;
const TEXT_START: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const HEL: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}"#;
const LO: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#;
const TEXT_STOP: &str = r#"{"type":"content_block_stop","index":0}"#;
const CALL_START: &str = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}"#;
const CALL_INPUT: &str = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#;
const CALL_STOP: &str = r#"{"type":"content_block_stop","index":1}"#;
const END: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":57}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const PING: &str = r#"{"type":"ping"}"#;
const HELLO: [&str; 7] = [START, TEXT_START, HEL, LO, TEXT_STOP, END, STOP];

/// Time is tokio's, which tests pause; chance always says the same.
struct PausedWorld {
    began: Instant,
}

impl World for PausedWorld {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + self.began.elapsed()
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }

    fn random(&self) -> u64 {
        0
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(wait).boxed()
    }
}

/// One thing a scripted server does.
#[derive(Clone)]
enum Act {
    Send(String),
    Wait(u64),
    Break(TransportErrorKind),
    Hang,
}

/// How a scripted server treats one request.
#[derive(Clone)]
enum Turn {
    Answer { status: u16, headers: Vec<(&'static str, &'static str)>, acts: Vec<Act> },
    Fail(TransportErrorKind),
    Hang,
}

/// A stream of these events.
fn events<'a>(events: impl IntoIterator<Item = &'a str>) -> Turn {
    acts(events.into_iter().map(event).collect())
}

fn event(data: &str) -> Act {
    Act::Send(format!("data: {data}\n\n"))
}

fn acts(acts: Vec<Act>) -> Turn {
    Turn::Answer { status: 200, headers: vec![("request-id", "req_7")], acts }
}

/// An error in the server's own shape.
fn error(status: u16, name: &str, message: &str, headers: &[(&'static str, &'static str)]) -> Turn {
    let body = serde_json::json!({"type": "error", "error": {"type": name, "message": message}});
    Turn::Answer { status, headers: headers.to_vec(), acts: vec![Act::Send(body.to_string())] }
}

/// A server in memory that plays a script and remembers what it was asked.
struct Scripted {
    turns: Mutex<VecDeque<Turn>>,
    posts: Mutex<Vec<Post>>,
}

impl Transport for Scripted {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        self.posts.lock().unwrap().push(post);
        let turn = self.turns.lock().unwrap().pop_front().expect("a request too many");
        async move {
            match turn {
                Turn::Fail(kind) => Err(TransportError::new(kind, "scripted")),
                Turn::Hang => futures::future::pending().await,
                Turn::Answer { status, headers, acts } => {
                    let headers = headers
                        .iter()
                        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                        .collect();
                    let body = futures::stream::iter(acts).filter_map(play).boxed();
                    Ok(Response { status, headers, body })
                }
            }
        }
        .boxed()
    }
}

async fn play(act: Act) -> Option<Result<Bytes, TransportError>> {
    match act {
        Act::Send(text) => Some(Ok(Bytes::from(text))),
        Act::Wait(seconds) => {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            None
        }
        Act::Break(kind) => Some(Err(TransportError::new(kind, "scripted"))),
        Act::Hang => futures::future::pending().await,
    }
}

/// What came of a call.
struct Outcome {
    /// One line for each step.
    log: String,
    last: Step,
    posts: Vec<Post>,
    took: Duration,
}

impl Outcome {
    fn sent_max_tokens(&self) -> Vec<u64> {
        self.posts.iter().map(|post| sent(post)["max_tokens"].as_u64().unwrap()).collect()
    }
}

/// The body of a request.
fn sent(post: &Post) -> serde_json::Value {
    serde_json::from_slice(&post.body.to_vec()).unwrap()
}

fn header<'a>(post: &'a Post, name: &str) -> Option<&'a str> {
    post.headers.get(name).map(|value| value.to_str().unwrap())
}

fn an_ask() -> Ask {
    let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
    Ask::new("some-model", 64_000, Arc::new(Prefix::default()), messages)
}

async fn play_through(turns: impl IntoIterator<Item = Turn>) -> Outcome {
    play_ask(an_ask(), RetryPolicy::default(), turns).await
}

async fn play_ask(ask: Ask, policy: RetryPolicy, turns: impl IntoIterator<Item = Turn>) -> Outcome {
    let server = scripted(turns);
    let endpoint = Endpoint::new("http://in.memory/", Auth::ApiKey(Secret::new("key")));
    play_on(&client(endpoint, &server, policy), &server, ask).await
}

async fn play_on(client: &Client, server: &Scripted, ask: Ask) -> Outcome {
    let began = Instant::now();
    let mut call = client.call(ask);
    let mut log = String::new();
    let mut last = None;
    while let Some(step) = call.next().await {
        writeln!(log, "{}", line(&step)).unwrap();
        last = Some(step);
    }
    let took = began.elapsed();
    assert!(server.turns.lock().unwrap().is_empty(), "the script was not played to its end:\n{log}");
    Outcome {
        log,
        last: last.expect("a call ends in a step"),
        posts: std::mem::take(&mut *server.posts.lock().unwrap()),
        took,
    }
}

fn start(ask: Ask, policy: RetryPolicy, turns: impl IntoIterator<Item = Turn>) -> (Arc<Scripted>, Call) {
    let server = scripted(turns);
    let endpoint = Endpoint::new("http://in.memory/", Auth::ApiKey(Secret::new("key")));
    let call = client(endpoint, &server, policy).call(ask);
    (server, call)
}

fn scripted(turns: impl IntoIterator<Item = Turn>) -> Arc<Scripted> {
    Arc::new(Scripted { turns: Mutex::new(turns.into_iter().collect()), posts: Mutex::default() })
}

fn client(endpoint: Endpoint, server: &Arc<Scripted>, policy: RetryPolicy) -> Client {
    Client::new(endpoint, server.clone(), policy, Arc::new(PausedWorld { began: Instant::now() }))
}

async fn call_steps(turns: impl IntoIterator<Item = Turn>) -> Vec<Step> {
    start(an_ask(), RetryPolicy::default(), turns).1.collect().await
}

fn line(step: &Step) -> String {
    match step {
        Step::Requesting { attempt } => format!("requesting {attempt}"),
        Step::Subscription(used) => format!("subscription {:?}", used.status),
        Step::Started(started) => format!("started {} {}", started.message_id, started.model),
        Step::Delta(Delta { kind: DeltaKind::Text(text), .. }) => format!("text {text:?}"),
        Step::Delta(Delta { kind: DeltaKind::BlockStart(opened), .. }) => {
            format!("opened {}", opened.block_type)
        }
        Step::Delta(Delta { kind: DeltaKind::Other, raw, .. }) => {
            format!("event {}", String::from_utf8_lossy(raw))
        }
        Step::Delta(Delta { kind, .. }) => format!("{kind:?}"),
        Step::Block(Block { json, .. }) => format!("block {}", String::from_utf8_lossy(json)),
        Step::Retry(notice) => {
            let taken_back = if notice.withdrawn { ", taken back" } else { "" };
            let fewer = notice.max_tokens.map(|fewer| format!(", with {fewer} tokens")).unwrap_or_default();
            let whole = if notice.non_streaming { ", in one piece" } else { "" };
            let Notice { attempt, wait, message, .. } = notice;
            format!("retry {attempt} in {wait:?}{taken_back}{whole}{fewer}: {message}")
        }
        Step::Waiting { left } => format!("waiting {left:?}"),
        Step::Stalled { silent_for } => format!("stalled {silent_for:?}"),
        Step::Finished(reply) => {
            let cut = reply.cut.as_ref().map(|error| format!(", cut: {error}")).unwrap_or_default();
            format!("finished {}, {} tokens{cut}", reply.stop_reason, reply.usage.output_tokens)
        }
        // What was tried is in the lines before it.
        Step::Failed(error) => {
            format!("failed {:?}: {}", error.kind, ModelError { tried: Arc::default(), ..error.clone() })
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_step_by_step() {
    let script = [
        START,
        PING,
        TEXT_START,
        HEL,
        LO,
        TEXT_STOP,
        CALL_START,
        CALL_INPUT,
        CALL_STOP,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":57}}"#,
        STOP,
    ];
    let outcome = play_through([events(script)]).await;
    expect![[r#"
        requesting 1
        started msg_1 m-1
        opened text
        text "hel"
        text "lo"
        block {"type":"text","text":"hello"}
        event {"type":"content_block_stop","index":0}
        opened tool_use
        InputJson
        block {"type":"tool_use","id":"toolu_1","name":"Read","input":{"a":1}}
        event {"type":"content_block_stop","index":1}
        event {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":57}}
        event {"type":"message_stop"}
        finished tool_use, 57 tokens
    "#]]
    .assert_eq(&outcome.log);
    let Step::Finished(reply) = outcome.last else { panic!("{}", outcome.log) };
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (12, 57));
    assert_eq!((&*reply.message_id, reply.request_id.as_deref()), ("msg_1", Some("req_7")));
    assert_eq!(reply.max_tokens, 64_000);
}

#[tokio::test(start_paused = true)]
async fn a_reply_tells_the_limits_of_the_account() {
    let headers = vec![
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-11-15T12:00:30Z"),
    ];
    let limited = Turn::Answer { status: 200, headers, acts: HELLO.map(event).to_vec() };
    let Step::Finished(reply) = play_through([limited]).await.last else { panic!("no answer") };
    let requests = reply.limits.and_then(|limits| limits.requests).unwrap();
    assert_eq!((requests.limit, requests.remaining), (Some(50), Some(49)));
    let Step::Finished(reply) = play_through([events(HELLO)]).await.last else { panic!("no answer") };
    assert_eq!(reply.limits, None);
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_an_answered_request_tells_its_id() {
    let breaking = |act: Act| acts(vec![event(START), act]);
    let turns = [
        breaking(Act::Break(TransportErrorKind::Reset)),
        breaking(Act::Hang),
        breaking(event("{\"type")),
        error(500, "api_error", "m", &[("request-id", "req_7")]),
        acts(vec![]),
    ];
    let (_, call) = start(an_ask(), RetryPolicy::default(), turns.into_iter().chain([events(HELLO)]));
    let steps: Vec<_> = call.collect().await;
    let retries: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Retry(notice) => Some(notice.request_id.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [Some("req_7"); 5]);
}

#[tokio::test(start_paused = true)]
async fn events_are_handed_on_as_received() {
    let outcome = call_steps([events(HELLO)]).await;
    let raw: Vec<_> = outcome
        .iter()
        .filter_map(|step| match step {
            Step::Started(started) => Some(&started.raw),
            Step::Delta(delta) => Some(&delta.raw),
            _ => None,
        })
        .collect();
    assert_eq!(raw, HELLO);
}

#[tokio::test(start_paused = true)]
async fn chunks_may_be_cut_anywhere() {
    let stream: String = HELLO.iter().map(|data| format!("event: x\r\ndata: {data}\r\n\r\n")).collect();
    let whole = play_through([acts(vec![Act::Send(stream.clone())])]).await.log;
    let bytewise = stream.chars().map(|letter| Act::Send(letter.to_string())).collect();
    assert_eq!(play_through([acts(bytewise)]).await.log, whole);
    assert!(whole.ends_with("finished end_turn, 57 tokens\n"), "{whole}");
}

#[tokio::test(start_paused = true)]
async fn loop_M3_unknown_events_do_not_disturb() {
    let strange = [
        r#"{"type":"tea_break","minutes":5}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"hologram","beam":1}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"beam_delta","beam":2}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"smell_delta","smell":"tea"}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"content_block_stop","index":99}"#,
    ];
    let script = [START, TEXT_START, HEL].into_iter().chain(strange).chain([LO, TEXT_STOP, END, STOP]);
    let outcome = play_through([events(script)]).await;
    assert!(outcome.log.contains("block {\"type\":\"hologram\",\"beam\":1}\n"), "{}", outcome.log);
    assert!(outcome.log.contains("block {\"type\":\"text\",\"text\":\"hello\"}\n"), "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn half_a_character_in_a_stream_is_replaced() {
    let half = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi \ud83d"}}"#;
    let steps = call_steps([events([START, TEXT_START, half, TEXT_STOP, END, STOP])]).await;
    let mut seen = 0;
    for step in &steps {
        match step {
            Step::Delta(delta) => {
                serde_json::from_slice::<serde_json::Value>(&delta.raw).unwrap();
                if let DeltaKind::Text(text) = &delta.kind {
                    assert_eq!(&**text, "hi \u{FFFD}");
                    seen += 1;
                }
            }
            Step::Block(block) => {
                let block: serde_json::Value = serde_json::from_slice(&block.json).unwrap();
                assert_eq!(block["text"], "hi \u{FFFD}");
                seen += 1;
            }
            _ => {}
        }
    }
    assert_eq!(seen, 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_one_piece_is_read_too() {
    let whole = r#" {"type":"message","id":"msg_2","model":"m-1","role":"assistant","content":[
        {"type":"text","text":"hello"},{"type":"tool_use","id":"t","name":"Read","input":{"a":1}}],
        "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":9}}"#;
    let (front, back) = whole.split_at(40);
    for streaming in [true, false] {
        let turn = acts(vec![Act::Send(front.to_owned()), Act::Wait(200), Act::Send(back.to_owned())]);
        let outcome = play_ask(Ask { streaming, ..an_ask() }, RetryPolicy::default(), [turn]).await;
        assert!(
            outcome.log.ends_with(concat!(
                "started msg_2 m-1\n",
                "block {\"type\":\"text\",\"text\":\"hello\"}\n",
                "block {\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Read\",\"input\":{\"a\":1}}\n",
                "finished tool_use, 9 tokens\n"
            )),
            "{}",
            outcome.log
        );
    }
}

#[tokio::test(start_paused = true)]
async fn requests_carry_one_kind_of_credentials() {
    let check = async |endpoint: Endpoint, expected: &[(&str, Option<&str>)]| {
        assert!(!format!("{endpoint:?}").contains("s3cret"), "{endpoint:?}");
        let server = scripted([events(HELLO)]);
        let call = client(endpoint, &server, RetryPolicy::default()).call(an_ask());
        call.for_each(|_| std::future::ready(())).await;
        let post = server.posts.lock().unwrap().remove(0);
        assert_eq!(post.url, "http://in.memory/v1/messages");
        for (name, value) in expected {
            assert_eq!(post.headers.get(*name).map(|value| value.to_str().unwrap()), *value, "{name}");
        }
        assert!(!format!("{:?}", post.headers).contains("s3cret"), "{:?}", post.headers);
    };
    let secret = || Secret::new("s3cret");
    check(
        Endpoint::new("http://in.memory", Auth::ApiKey(secret())),
        &[
            ("x-api-key", Some("s3cret")),
            ("authorization", None),
            ("anthropic-version", Some("2023-06-01")),
            ("anthropic-beta", None),
            ("content-type", Some("application/json")),
        ],
    )
    .await;
    let betas = vec!["a-1".to_owned(), "b-2".to_owned()];
    check(
        Endpoint { betas, ..Endpoint::new("http://in.memory//", Auth::Bearer(secret())) },
        &[("authorization", Some("Bearer s3cret")), ("x-api-key", None), ("anthropic-beta", Some("a-1,b-2"))],
    )
    .await;
    let custom_headers = vec![
        ("Authorization".to_owned(), "Basic s3cret".to_owned()),
        ("X-Team".to_owned(), " blue ".to_owned()),
        ("User-Agent".to_owned(), "mine".to_owned()),
    ];
    check(
        Endpoint { custom_headers, ..Endpoint::new("http://in.memory", Auth::ApiKey(secret())) },
        &[
            ("authorization", Some("Basic s3cret")),
            ("x-api-key", None),
            ("x-team", Some("blue")),
            ("user-agent", Some("mine")),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn credentials_that_cannot_be_sent_are_an_error_and_no_panic() {
    let endpoint = Endpoint::new("http://x", Auth::ApiKey(Secret::new("two\nlines")));
    let call = client(endpoint, &scripted([]), RetryPolicy::default()).call(an_ask());
    let steps: Vec<_> = call.collect().await;
    expect!["failed InvalidRequest: the API key holds characters that a header cannot carry"]
        .assert_eq(&line(steps.last().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_before_a_call_is_polled_and_after_it_is_dropped() {
    let server = scripted([acts(vec![event(START), Act::Hang])]);
    let client = client(Endpoint::new("http://x", Auth::None), &server, RetryPolicy::default());
    let mut call = client.call(an_ask());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(server.posts.lock().unwrap().is_empty());
    assert!(matches!(call.next().await, Some(Step::Requesting { attempt: 1 })));
    assert!(matches!(call.next().await, Some(Step::Started(_))));
    drop(call);
    // Call and client held the server; nothing else does.
    drop(client);
    assert_eq!(Arc::strong_count(&server), 1);
}

#[tokio::test(start_paused = true)]
async fn blocks_tell_what_they_are() {
    let redacted = r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"Em"}}"#;
    let steps =
        call_steps([events([START, redacted, TEXT_STOP, CALL_START, CALL_INPUT, CALL_STOP, END, STOP])])
            .await;
    let kinds: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Block(block) => Some(&block.kind),
            _ => None,
        })
        .collect();
    let input = serde_json::json!({"a": 1});
    let call = BlockKind::ToolUse { id: "toolu_1".into(), name: "Read".into(), input: Ok(input) };
    assert_eq!(kinds, [&BlockKind::RedactedThinking, &call]);
}
