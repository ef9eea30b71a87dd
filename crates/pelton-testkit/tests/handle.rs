//! What a test can see and do while the model plays, and what it leaves behind.

mod client;

use client::{ask, ask_with, post, post_to};
use pelton_testkit::{
    Fault, Notice, REDACTED, Script, ServeOptions, StartError, Step, gate, serve, text, thinking, tool,
};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

fn panic_text(action: impl FnOnce()) -> String {
    let caught = catch_unwind(AssertUnwindSafe(action)).expect_err("did not panic");
    caught.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_forgotten_illegal_request_fails_the_test() {
    let model = Script::new().start().await.unwrap();
    post(&model, &ask_with(&json!([]))).await;
    let said = panic_text(|| model.assert_clean());
    assert!(said.starts_with("scripted model: request 1 is illegal (shape): messages:"), "{said}");
    let said = panic_text(|| drop(model));
    assert!(
        said.starts_with("scripted model: 1 illegal requests; request 1 broke shape: messages:"),
        "{said}"
    );
}

#[tokio::test]
async fn an_expected_illegal_request_does_not() {
    let model = Script::new().start().await.unwrap().expect_illegal();
    post(&model, &ask_with(&json!([]))).await;
    drop(model);
}

#[tokio::test]
async fn unexpected_requests_and_unplayed_steps_can_be_asserted() {
    let model = Script::new().start().await.unwrap();
    post(&model, &ask("hi")).await;
    let said = panic_text(|| model.assert_clean());
    assert!(said.starts_with("scripted model: request 1 was unexpected"), "{said}");
    let model = Script::new().reply([text("never")]).start().await.unwrap();
    assert!(panic_text(|| model.assert_played_out()).contains("steps [1]"));
}

#[tokio::test]
async fn requests_are_seen_as_they_came() {
    let model = Script::new().reply([text("ok")]).start().await.unwrap();
    let request = ask("hi");
    post(&model, &request).await;
    model.wait_for_answers(1).await;
    let seen = &model.requests()[0];
    assert_eq!((seen.number, seen.method.as_str(), seen.path.as_str()), (1, "POST", "/v1/messages"));
    assert_eq!((&*seen.body, &seen.raw[..]), (&request, request.to_string().as_bytes()));
    assert_eq!(seen.header("X-Api-Key"), Some("sk-test"));
    assert_eq!((seen.reply.status, seen.step, seen.hung_up), (Some(200), Some(1), false));
    assert_eq!(seen.reply.events.last().unwrap().name, "message_stop");
    assert_eq!(model.reply_requests().len(), 1);
}

#[test]
fn a_test_without_a_runtime_can_have_a_model_too() {
    let model = Script::new().reply([text("ok")]).start_on_thread().unwrap();
    let url = model.base_url();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(post(&model, &ask("hi"))).joined("text"), "ok");
    drop(model);
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        std::net::TcpStream::connect(url.strip_prefix("http://").unwrap()).is_err()
    });
    assert!(gone, "the server outlived its handle");
}

#[tokio::test]
async fn dropping_the_model_ends_server_and_connections() {
    let model = Script::new().reply([gate("never")]).start().await.unwrap();
    let url = model.base_url();
    let asking = tokio::spawn({
        let url = url.clone();
        async move { post_to(&url, "/v1/messages", &ask("hi")).await }
    });
    model.wait_at_gate("never").await;
    drop(model);
    assert!(!asking.await.unwrap().complete);
    assert!(tokio::net::TcpStream::connect(url.strip_prefix("http://").unwrap()).await.is_err());
}

#[tokio::test]
async fn the_record_has_every_request_and_reply_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.jsonl");
    let model = Script::new()
        .record(&path)
        .reply([thinking("hm"), text("hello"), tool("Read", json!({}))])
        .step(Step::status(529).header("retry-after", "1"))
        .step(Step::reply([text("cut off")]).fault(Fault::cut_after_events(2)))
        .step(Step::reply([text("broken")]).fault(Fault::MalformedJsonAtEvent(1)))
        .start()
        .await
        .unwrap()
        .expect_illegal();
    for _ in 0..4 {
        post(&model, &ask("hi")).await;
    }
    let bearer = "authorization: Bearer sk-ant-oat-1\r\nCookie: sk-c\r\nx-goog-api-key: sk-g\r\n\
                  anthropic-version: 2023-06-01\r\n";
    let bytes = client::request("POST", "/v1/messages", bearer, ask_with(&json!([])).to_string().as_bytes());
    client::send(&model.base_url(), &bytes).await;
    model.wait_for_answers(5).await;

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("sk-"), "a secret is in the record");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str, number: u64| {
        lines.iter().find(|line| line["kind"] == kind && line["request"] == number).unwrap().clone()
    };
    assert_eq!(lines.len(), 10);
    let request = of("request", 1);
    assert_eq!(request["headers"]["x-api-key"], REDACTED);
    assert_eq!((&request["body"], &request["path"]), (&ask("hi"), &json!("/v1/messages")));
    assert_eq!(of("request", 5)["headers"]["authorization"], REDACTED);
    let reply = of("reply", 1);
    assert_eq!(
        (&reply["status"], &reply["step"], &reply["ending"]),
        (&json!(200), &json!(1), &json!("complete"))
    );
    assert_eq!(reply["events"][0]["data"]["type"], "message_start");
    assert!(reply["usage"]["output_tokens"].is_u64());
    let overloaded = of("reply", 2);
    assert_eq!(
        (&overloaded["body"]["error"]["type"], &overloaded["headers"]["retry-after"]),
        (&json!("overloaded_error"), &json!("1"))
    );
    let cut = of("reply", 3);
    assert_eq!((cut["events"].as_array().unwrap().len(), &cut["ending"]), (2, &json!("cut")));
    assert!(of("reply", 4)["events"][0]["data"].is_string());
    assert_eq!(of("reply", 5)["refusal"]["rule"], "shape");
}

#[tokio::test]
async fn a_record_that_cannot_be_written_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let error = Script::new().record(folder.path()).start().await.unwrap_err();
    assert!(matches!(error, StartError::Record { .. }), "{error}");
}

#[tokio::test]
async fn serving_tells_one_line_per_request() {
    let script = Script::from_yaml_or_json(
        "steps:\n- reply: [{text: hi}, {gate: slow}]\n- status: 529\n- fault: {close_before_headers: true}\n",
    )
    .unwrap();
    let mut serving = serve(script, ServeOptions::default()).await.unwrap();
    let url = serving.base_url();
    let asking = tokio::spawn({
        let url = url.clone();
        async move { post_to(&url, "/v1/messages", &ask("hi")).await }
    });
    let waiting = serving.next().await;
    assert_eq!(waiting, Notice::Waiting { request: 1, gate: "slow".to_owned() });
    assert_eq!(waiting.to_string(), "#1 waits at gate slow: POST /_script/gates/slow opens it");
    let opened = post_to(&url, "/_script/gates/slow", &json!({})).await;
    assert_eq!(opened.json(), json!({"opened": "slow"}));
    assert_eq!(asking.await.unwrap().joined("text"), "hi");
    let model = client::MODEL;
    let mut lines = vec![serving.next().await.to_string()];
    for _ in 0..3 {
        post_to(&url, "/v1/messages", &ask("hi")).await;
        lines.push(serving.next().await.to_string());
    }
    post_to(&url, "/v1/messages", &ask_with(&json!([]))).await;
    let last = serving.next().await;
    assert!(matches!(last, Notice::Finished { illegal: true, unexpected: false, request: 5, .. }));
    assert!(last.to_string().contains("-> 400, complete, illegal (shape): messages"), "{last}");
    assert_eq!(
        lines,
        [
            format!("#1 POST /v1/messages {model} -> 200, step 1, 7 events, complete"),
            format!("#2 POST /v1/messages {model} -> 529, step 2, complete"),
            format!("#3 POST /v1/messages {model} -> no answer, step 3, cut"),
            format!("#4 POST /v1/messages {model} -> 400, complete, no step left"),
        ]
    );
    let summary = client::get(&url, "/_script/summary").await.json();
    assert_eq!(
        (&summary["requests"], &summary["illegal_count"], &summary["unexpected_count"]),
        (&json!(5), &json!(1), &json!(1))
    );
    assert_eq!(client::get(&url, "/_script/nothing").await.status, 404);
    let summary = serving.summary();
    assert!(!summary.is_clean());
    let line = summary.to_string();
    assert!(line.starts_with("5 requests, 1 illegal, 1 unexpected; request 4 was unexpected"), "{line}");
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let first = serve(Script::new(), ServeOptions::default()).await.unwrap();
    let port = first.base_url().rsplit(':').next().unwrap().parse().unwrap();
    let error = serve(Script::new(), ServeOptions { port, record: None }).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen on 127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
async fn many_clients_at_once_are_all_served() {
    let model = Script::new().step(Step::reply([text("ok")]).always()).start().await.unwrap();
    let url = model.base_url();
    let asking: Vec<_> = (0..100)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { post_to(&url, "/v1/messages", &ask("hi")).await })
        })
        .collect();
    for answer in asking {
        assert_eq!(answer.await.unwrap().joined("text"), "ok");
    }
    model.wait_for_answers(100).await;
    assert_eq!(model.summary().requests, 100);
}
