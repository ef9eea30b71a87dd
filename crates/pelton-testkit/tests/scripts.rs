//! Which step answers which request, and what the server does by itself.

mod client;

use client::{MODEL, ask, ask_with, get, post, post_to, request, send};
use pelton_testkit::strict::{Rule, Strictness};
use pelton_testkit::{Script, Step, When, text, tool};
use serde_json::{Value, json};

fn said(answer: &client::Answer) -> String {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    answer.joined("text")
}

/// A conversation whose last message holds the result of a call.
fn result_of(tool: &str, text: &str) -> Value {
    let mut request = ask_with(&json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}]},
    ]));
    request["tools"] = json!([{"name": tool, "input_schema": {"type": "object"}}]);
    request
}

#[tokio::test]
async fn steps_without_conditions_play_in_order() {
    let model = Script::new()
        .reply([text("one")])
        .step(Step::reply([text("two")]).times(2))
        .reply([text("three")])
        .start()
        .await
        .unwrap();
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(said(&post(&model, &ask("hi")).await));
    }
    assert_eq!(heard, ["one", "two", "two", "three"]);
    let steps: Vec<_> = model.requests().iter().map(|seen| seen.step.unwrap()).collect();
    assert_eq!(steps, [1, 2, 2, 3]);
}

#[tokio::test]
async fn side_calls_do_not_disturb_the_script() {
    let model = Script::new()
        .step(Step::reply([text("a title")]).when(When::any().model("haiku")).always())
        .reply([text("one")])
        .reply([text("two")])
        .start()
        .await
        .unwrap();
    let mut title = ask("make a title");
    title["model"] = json!("claude-haiku-4-5");
    let mut heard = Vec::new();
    for request in [&title, &ask("hi"), &title, &title, &ask("hi")] {
        heard.push(said(&post(&model, request).await));
    }
    assert_eq!(heard, ["a title", "one", "a title", "a title", "two"]);
    model.assert_clean();
    model.assert_played_out();
}

#[tokio::test]
async fn nth_counts_the_requests_that_meet_the_other_conditions() {
    let haiku = || When::any().model("haiku");
    let model = Script::new()
        .step(Step::status(529).when(haiku().nth(2)))
        .step(Step::reply([text("haiku")]).when(haiku()).always())
        .step(Step::reply([text("main")]).always())
        .start()
        .await
        .unwrap();
    let mut side = ask("x");
    side["model"] = json!("claude-haiku-4-5");
    let mut statuses = Vec::new();
    for request in [&ask("hi"), &side, &ask("hi"), &side, &side] {
        statuses.push(post(&model, request).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 529, 200]);
}

#[tokio::test]
async fn conditions_read_the_request() {
    let model = Script::new()
        .step(Step::reply([text("saw 42")]).when(When::any().last_tool_result("answer: 42")))
        .step(Step::reply([text("from Bash")]).when(When::any().tool("Bash")))
        .step(Step::reply([text("asked")]).when(When::any().last_user_text("^please")))
        .step(Step::reply([text("titled")]).when(When::any().system("title")))
        .step(Step::reply([text("whole")]).when(When::any().stream(false)))
        .step(Step::reply([text("from the sdk")]).when(When::any().header("user-agent", "sdk")))
        .step(Step::reply([text("can edit")]).when(When::any().has_tool("Edit")))
        .start()
        .await
        .unwrap();
    assert_eq!(said(&post(&model, &result_of("Edit", "no")).await), "can edit");
    assert_eq!(said(&post(&model, &result_of("Bash", "no")).await), "from Bash");
    assert_eq!(said(&post(&model, &result_of("Read", "the answer: 42.")).await), "saw 42");
    assert_eq!(said(&post(&model, &ask("please")).await), "asked");
    let mut titled = ask("x");
    titled["system"] = json!([{"type": "text", "text": "make a title"}]);
    assert_eq!(said(&post(&model, &titled).await), "titled");
    let mut whole = ask("x");
    whole["stream"] = json!(false);
    assert_eq!(post(&model, &whole).await.json()["content"][0]["text"], "whole");
    let headers = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\nUser-Agent: my-sdk/1\r\n";
    let bytes = request("POST", "/v1/messages", headers, ask("x").to_string().as_bytes());
    assert_eq!(said(&send(&model.base_url(), &bytes).await), "from the sdk");
    model.assert_played_out();
}

#[tokio::test]
async fn replies_speak_of_what_they_got() {
    let model = Script::new()
        .var("dir", "/srv")
        .step(
            Step::reply([
                text("found ${match.1} (${match.word}) in ${last_tool_result}, ${model}, request ${request}"),
                tool("Write", json!({"file_path": "${dir}/${match.1}", "content": "${HOME} $${dir}"})),
            ])
            .when(When::any().last_tool_result(r"(\d+) (?<word>\w+)")),
        )
        .start()
        .await
        .unwrap();
    let blocks = post(&model, &result_of("Grep", "12 hits")).await.blocks();
    assert_eq!(blocks[0]["text"], format!("found 12 (hits) in 12 hits, {MODEL}, request 1"));
    assert_eq!(blocks[1]["input"], json!({"file_path": "/srv/12", "content": "${HOME} ${dir}"}));
}

#[tokio::test]
async fn a_request_without_a_step_is_told_why() {
    let model = Script::new()
        .reply([text("only one")])
        .step(Step::reply([text("x")]).when(When::any().model("haiku")))
        .start()
        .await
        .unwrap();
    post(&model, &ask("hi")).await;
    let answer = post(&model, &ask("hi")).await;
    assert_eq!(answer.status, 400);
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(
        message,
        format!(
            "scripted model: no step left for request 2 (model {MODEL}); step 2 is unused, its `model` does not fit"
        )
    );
    assert_eq!(
        (model.unexpected()[0].request, model.unexpected()[0].message.as_str()),
        (2, message.as_str())
    );
    assert_eq!(model.summary().steps_left, [2]);
    assert!(model.illegal().is_empty());
    let seen = &model.requests()[1];
    assert!(seen.unexpected && seen.step.is_none());
}

#[tokio::test]
async fn a_long_script_tells_only_the_first_steps_that_did_not_fit() {
    let step = |n: usize| Step::reply([text("x")]).when(When::any().model(format!("never-{n}")));
    let model = (0..10_000).fold(Script::new(), |script, n| script.step(step(n))).start().await.unwrap();
    let answer = post(&model, &ask("hi")).await;
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("step 20 is unused") && !message.contains("step 21"), "{message}");
    assert!(message.ends_with("9980 more steps do not fit"), "{message}");
}

#[tokio::test]
async fn token_counts_and_models_are_answered_without_a_step() {
    let model = Script::new().start().await.unwrap();
    let base_url = model.base_url();
    let body = json!({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]});
    let count = post_to(&base_url, "/v1/messages/count_tokens", &body).await;
    assert!(count.json()["input_tokens"].as_u64().unwrap() > 0);
    let models = get(&base_url, "/v1/models").await.json();
    assert!(models["data"].as_array().unwrap().iter().any(|entry| entry["id"] == MODEL));
    assert_eq!(get(&base_url, &format!("/v1/models/{MODEL}")).await.json()["id"], MODEL);
    let missing = get(&base_url, "/v1/models/nobody").await;
    assert_eq!((missing.status, missing.json()["error"]["type"].as_str()), (404, Some("not_found_error")));
    let stray = send(&base_url, &request("POST", "/api/telemetry", "", b"{}")).await;
    assert_eq!((stray.status, stray.json()["error"]["type"].as_str()), (404, Some("not_found_error")));
    let root = send(&base_url, &request("HEAD", "/", "", b"")).await;
    assert_eq!((root.status, root.body.len()), (200, 0));
    model.assert_clean();
}

#[tokio::test]
async fn a_step_with_a_path_answers_there() {
    let model = Script::new()
        .step(Step::status(500).when(When::any().path("/v1/messages/count_tokens")))
        .step(Step::status(200).body(json!({"hello": 1})).when(When::any().path("/api/hello")))
        .start()
        .await
        .unwrap();
    let body = json!({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(post_to(&model.base_url(), "/v1/messages/count_tokens", &body).await.status, 500);
    assert_eq!(post_to(&model.base_url(), "/v1/messages/count_tokens", &body).await.status, 200);
    assert_eq!(get(&model.base_url(), "/api/hello").await.json(), json!({"hello": 1}));
}

#[tokio::test]
async fn credentials_and_version_are_asked_for() {
    let model = Script::new().start().await.unwrap().expect_illegal();
    for (headers, status, kind) in [
        ("anthropic-version: 2023-06-01\r\n", 401, "authentication_error"),
        (
            "x-api-key: k\r\nauthorization: Bearer t\r\nanthropic-version: 2023-06-01\r\n",
            401,
            "authentication_error",
        ),
        ("authorization: Basic t\r\nanthropic-version: 2023-06-01\r\n", 401, "authentication_error"),
        ("x-api-key: k\r\n", 400, "invalid_request_error"),
        ("x-api-key: k\r\nanthropic-version: yesterday\r\n", 400, "invalid_request_error"),
    ] {
        let bytes = request("POST", "/v1/messages", headers, ask("hi").to_string().as_bytes());
        let answer = send(&model.base_url(), &bytes).await;
        assert_eq!(
            (answer.status, answer.json()["error"]["type"].as_str()),
            (status, Some(kind)),
            "{headers}"
        );
    }
    assert_eq!(model.summary().illegal_count, 5);
    assert!(model.unexpected().is_empty());
}

#[tokio::test]
async fn a_refused_request_uses_up_no_step() {
    let model = Script::new().reply([text("ok")]).start().await.unwrap();
    let refused = post(&model, &ask_with(&json!([]))).await;
    assert_eq!(refused.status, 400);
    assert_eq!(said(&post(&model, &ask("hi")).await), "ok");
    let illegal = model.illegal();
    assert_eq!((illegal.len(), illegal[0].request), (1, 1));
    assert_eq!(model.requests()[0].refusal.as_ref(), Some(&illegal[0].refusal));
    let broken = send(
        &model.base_url(),
        &request(
            "POST",
            "/v1/messages",
            "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n",
            b"{\"model\": ",
        ),
    )
    .await;
    assert_eq!((broken.status, model.summary().illegal_count), (400, 2));
    let _model = model.expect_illegal();
}

#[tokio::test]
async fn strictness_and_the_served_model_are_the_scripts() {
    let lax = Strictness::default().relax(Rule::KnownModel);
    let model = Script::new().strict(lax).step(Step::reply([text("ok")]).always()).start().await.unwrap();
    let mut request = ask("hi");
    request["model"] = json!("house-model-1");
    assert_eq!(said(&post(&model, &request).await), "ok");
    let one = Script::new().model(MODEL).reply([text("ok")]).start().await.unwrap().expect_illegal();
    request["model"] = json!("claude-haiku-4-5");
    let answer = post(&one, &request).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["message"].as_str()),
        (404, Some("model: claude-haiku-4-5"))
    );
    assert_eq!(said(&post(&one, &ask("hi")).await), "ok");
    let models = get(&one.base_url(), "/v1/models").await.json();
    assert_eq!((models["data"].as_array().unwrap().len(), models["first_id"].as_str()), (1, Some(MODEL)));
    assert_eq!(get(&one.base_url(), "/v1/models/claude-haiku-4-5").await.status, 404);
}

#[tokio::test]
async fn a_body_too_large_is_answered_not_dropped() {
    let model = Script::new().start().await.unwrap().expect_illegal();
    // Above the API's limit it is read and refused; above ours it is refused unread.
    for size in [33 * 1024 * 1024, 65 * 1024 * 1024] {
        let answer = post(&model, &ask(&"x".repeat(size))).await;
        assert_eq!(
            (answer.status, answer.json()["error"]["type"].as_str()),
            (413, Some("request_too_large"))
        );
    }
    assert_eq!((model.summary().requests, model.summary().illegal_count), (2, 2));
}
