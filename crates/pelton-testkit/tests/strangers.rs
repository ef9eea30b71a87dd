//! Clients that are not written for us: old, slow, careless, or many at once. Each is answered or cut off; nobody hangs
//! and nobody disturbs the others.

mod client;

use client::{Answer, MODEL, ask, connect, parse, post, request, send};
use pelton_testkit::{BODY_BYTES_MAX, Ending, Pace, Script, ScriptedModel, Step, When, gate, text};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LEAVE: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";

async fn start(step: Step) -> ScriptedModel {
    Script::new().step(step).start().await.unwrap().expect_illegal()
}

fn hello() -> Step {
    Step::reply([text("Hello, stranger.")]).always()
}

fn whole() -> Value {
    json!({"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]})
}

/// Reads answers of known length off a connection that stays open.
async fn read_one(stream: &mut tokio::net::TcpStream) -> Answer {
    let mut raw = Vec::new();
    let reading = async {
        loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            raw.push(byte[0]);
            if raw.ends_with(b"\r\n\r\n") {
                let head = String::from_utf8(raw.clone()).unwrap();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let mut body = vec![0; length.parse().unwrap()];
                stream.read_exact(&mut body).await.unwrap();
                raw.extend(body);
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), reading).await.expect("no whole answer came");
    parse(&raw, None)
}

#[tokio::test]
async fn two_hundred_connections_at_once_are_all_served() {
    let model = start(hello()).await;
    let url = model.base_url();
    let clients: Vec<_> = (0..200)
        .map(|number| {
            let url = url.clone();
            tokio::spawn(async move {
                let answer = client::post_to(&url, "/v1/messages", &ask(&format!("I am {number}"))).await;
                (answer.complete, answer.joined("text"))
            })
        })
        .collect();
    for client in clients {
        assert_eq!(client.await.unwrap(), (true, "Hello, stranger.".to_owned()));
    }
    model.wait_for_answers(200).await;
    assert_eq!(model.summary().requests, 200);
    model.assert_clean();
}

#[tokio::test]
async fn half_a_request_holds_up_nobody_else() {
    let model = start(hello()).await;
    let mut idle = Vec::new();
    for half in ["", "POST /v1/mess", "POST /v1/messages HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = connect(&model.base_url()).await;
        stream.write_all(half.as_bytes()).await.unwrap();
        idle.push(stream);
    }
    let mut short = connect(&model.base_url()).await;
    short.write_all(&request("POST", "/v1/messages", LEAVE, b"{}")[..90]).await.unwrap();
    assert!(post(&model, &ask("hi")).await.complete);
    drop((idle, short));
    assert!(post(&model, &ask("hi")).await.complete);
    assert_eq!(model.summary().requests, 2, "halves are no requests");
}

#[tokio::test]
async fn a_request_may_come_byte_by_byte_and_be_read_slowly() {
    let long = "word ".repeat(20_000);
    let model = start(Step::reply([text(long.clone())]).pace(Pace::chunk_bytes(997))).await;
    let mut stream = connect(&model.base_url()).await;
    for byte in request("POST", "/v1/messages", LEAVE, ask("hi").to_string().as_bytes()) {
        stream.write_all(&[byte]).await.unwrap();
    }
    let mut raw = Vec::new();
    let mut scratch = [0; 10_000];
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        match stream.read(&mut scratch).await.unwrap() {
            0 => break,
            count => raw.extend_from_slice(&scratch[..count]),
        }
    }
    let answer = parse(&raw, None);
    assert!(answer.complete);
    assert_eq!(answer.joined("text"), long);
}

#[tokio::test]
async fn a_client_that_never_reads_can_leave() {
    let endless = Step::reply([text("x".repeat(16_000_000)).fragments(1)]);
    let model = start(endless).await;
    let mut stream = connect(&model.base_url()).await;
    stream
        .write_all(&request("POST", "/v1/messages", LEAVE, ask("hi").to_string().as_bytes()))
        .await
        .unwrap();
    model.wait_for_requests(1).await;
    drop(stream);
    model.wait_for_answers(1).await;
    assert_eq!(model.requests()[0].reply.ending, Some(Ending::ClientLeft));
}

#[tokio::test]
async fn old_http_is_answered_without_chunks() {
    let model = start(hello()).await;
    let body = ask("hi").to_string();
    let old = format!("POST /v1/messages HTTP/1.0\r\n{LEAVE}content-length: {}\r\n\r\n{body}", body.len());
    let mut stream = connect(&model.base_url()).await;
    stream.write_all(old.as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).await.unwrap();
    let raw = String::from_utf8(raw).unwrap();
    let (head, events) = raw.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("connection: close") && !head.contains("chunked"), "{head}");
    let events = client::decode(events.as_bytes());
    assert_eq!(events.last().unwrap().0, "message_stop");
    let answer = send(&model.base_url(), b"GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!((answer.status, answer.complete), (404, true));
}

#[tokio::test]
async fn a_connection_is_kept_and_requests_may_be_sent_ahead() {
    let model = start(hello()).await;
    let body = whole().to_string();
    let one = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\n{LEAVE}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let chunked = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\n{LEAVE}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let mut stream = connect(&model.base_url()).await;
    stream.write_all(format!("{one}{chunked}{one}").as_bytes()).await.unwrap();
    for _ in 0..3 {
        let answer = read_one(&mut stream).await;
        assert_eq!(answer.json()["content"][0]["text"], "Hello, stranger.");
    }
    assert_eq!(model.summary().requests, 3);
}

#[tokio::test]
async fn leave_to_send_is_given_and_refused() {
    let model = start(hello()).await;
    let mut stream = connect(&model.base_url()).await;
    let body = whole().to_string();
    let head = |length: usize| {
        format!(
            "POST /v1/messages HTTP/1.1\r\n{LEAVE}expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    stream.write_all(head(body.len()).as_bytes()).await.unwrap();
    let mut leave = [0; 25];
    stream.read_exact(&mut leave).await.unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(read_one(&mut stream).await.status, 200);
    // Nothing of a body that is too large has to be sent.
    stream.write_all(head(BODY_BYTES_MAX + 1).as_bytes()).await.unwrap();
    let answer = read_one(&mut stream).await;
    assert_eq!((answer.status, answer.json()["error"]["type"].clone()), (413, json!("request_too_large")));
}

#[tokio::test]
async fn a_body_that_cannot_be_taken_is_an_illegal_request() {
    let model = start(hello()).await;
    let cases = [
        ("content-encoding: br\r\n", &b"x"[..], 400, "shape"),
        ("content-encoding: gzip\r\n", b"no gzip", 400, "shape"),
    ];
    for (headers, body, status, _) in cases {
        let answer = send(&model.base_url(), &request("POST", "/v1/messages", headers, body)).await;
        assert_eq!((answer.status, answer.complete), (status, true));
        assert!(answer.header("request-id").is_some());
    }
    let too_large = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
    let answer = send(&model.base_url(), too_large.as_bytes()).await;
    assert_eq!(answer.status, 413);
    let rules: Vec<String> = model.illegal().iter().map(|illegal| illegal.refusal.rule.name()).collect();
    assert_eq!(rules, ["shape", "shape", "body-size"]);
    assert_eq!(model.requests()[2].reply.status, Some(413));
}

#[tokio::test]
async fn other_methods_and_paths_are_answered() {
    let model = start(hello()).await;
    for (method, path, status) in [
        ("OPTIONS", "/v1/messages", 404),
        ("GET", "/v1/messages", 404),
        ("PUT", "/v1/messages", 404),
        ("POST", "/v1/messages/", 404),
        ("POST", "/v1/complete", 404),
        ("GET", "/../etc/passwd", 404),
        ("GET", "/v1/models/", 404),
        ("GET", "/v1/models/nobody", 404),
        ("GET", "/v1/models", 200),
        ("HEAD", "/", 200),
        ("DELETE", "*", 404),
    ] {
        let answer = send(&model.base_url(), &request(method, path, LEAVE, b"")).await;
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.complete || method == "HEAD", "{method} {path}");
    }
    let head = send(&model.base_url(), &request("HEAD", "/nowhere", LEAVE, b"")).await;
    assert_eq!((head.status, head.body.len()), (404, 0));
    model.assert_clean();
}

#[tokio::test]
async fn statuses_without_a_body_have_none() {
    let model = Script::new()
        .step(Step::status(204))
        .step(Step::status(304).header("etag", "x"))
        .step(hello())
        .start()
        .await
        .unwrap();
    let body = whole().to_string();
    let one = format!("POST /v1/messages HTTP/1.1\r\n{LEAVE}content-length: {}\r\n\r\n{body}", body.len());
    let mut stream = connect(&model.base_url()).await;
    stream.write_all(format!("{one}{one}{one}").as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    while !raw.ends_with(b"}") {
        let mut scratch = [0; 4096];
        let count = stream.read(&mut scratch).await.unwrap();
        assert!(count > 0);
        raw.extend_from_slice(&scratch[..count]);
    }
    let raw = String::from_utf8(raw).unwrap();
    let heads: Vec<&str> = raw.split("\r\n\r\n").collect();
    assert!(heads[0].starts_with("HTTP/1.1 204 ") && !heads[0].contains("content-length"), "{raw}");
    assert!(heads[1].starts_with("HTTP/1.1 304 ") && !heads[1].contains("content-length"), "{raw}");
    assert!(heads[2].starts_with("HTTP/1.1 200 "), "{raw}");
    assert_eq!(heads.len(), 4);
}

#[tokio::test]
async fn noise_is_answered_and_cut_off() {
    let model = start(hello()).await;
    for noise in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"HELO mail\r\n\r\n",
        b"GET / HTTP/3.0\r\n\r\n",
    ] {
        let answer = send(&model.base_url(), noise).await;
        assert_eq!(answer.status, 400);
    }
    assert_eq!(model.summary().requests, 0);
    assert!(post(&model, &ask("hi")).await.complete);
}

#[tokio::test]
async fn a_gate_keeps_one_waiting_and_not_the_others() {
    let model = Script::new()
        .step(Step::reply([gate("shut"), text("late")]).when(When::any().last_user_text("wait")))
        .step(hello())
        .start()
        .await
        .unwrap();
    let url = model.base_url();
    let waiting = tokio::spawn(async move { client::post_to(&url, "/v1/messages", &ask("wait")).await });
    model.wait_at_gate("shut").await;
    assert!(post(&model, &ask("hi")).await.complete);
    model.open("shut");
    assert_eq!(waiting.await.unwrap().joined("text"), "late");
}
