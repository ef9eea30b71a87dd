//! What a reply looks like on the wire when nothing goes wrong.

mod client;

use client::{MODEL, ask, ask_with, post, post_to};
use pelton_testkit::{
    Ending, Fragments, Script, Step, comment, error, event, gate, pause, ping, raw_block,
    raw_block_with_deltas, redacted_thinking, text, thinking, tool, tool_with_json,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_stream_has_the_shape_of_the_real_one() {
    let model = Script::new().reply([text("Hello"), tool("Read", json!({"a": 1}))]).start().await.unwrap();
    let answer = post(&model, &ask("hi")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("text/event-stream"));
    assert!(answer.header("request-id").unwrap().starts_with("req_"));
    assert!(answer.complete);
    assert_eq!(
        answer.names(),
        [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    let data = answer.data();
    for (name, data) in answer.names().iter().zip(&data) {
        assert_eq!(data["type"], *name);
    }
    let start = &data[0]["message"];
    assert_eq!(
        (&start["role"], &start["model"], &start["content"]),
        (&json!("assistant"), &json!(MODEL), &json!([]))
    );
    assert_eq!((&start["stop_reason"], &start["usage"]["output_tokens"]), (&Value::Null, &json!(1)));
    assert!(start["usage"]["input_tokens"].as_u64().unwrap() > 0);
    let tool = &data[5]["content_block"];
    assert!(tool["id"].as_str().unwrap().starts_with("toolu_"));
    assert_eq!((&tool["name"], &tool["input"]), (&json!("Read"), &json!({})));
    assert_eq!(data[6]["delta"], json!({"type": "input_json_delta", "partial_json": ""}));
    assert_eq!(data[9]["delta"], json!({"stop_reason": "tool_use", "stop_sequence": null}));
    assert_eq!(data[9]["usage"]["input_tokens"], start["usage"]["input_tokens"]);
    assert!(data[9]["usage"]["output_tokens"].as_u64().unwrap() > 1);
    model.assert_clean();
    model.assert_played_out();
}

#[tokio::test]
async fn thinking_ends_with_its_signature_and_can_be_sent_back() {
    let model = Script::new()
        .reply([thinking("Let me see."), redacted_thinking("secret"), tool("Read", json!({}))])
        .reply([text("Done.")])
        .start()
        .await
        .unwrap();
    let mut request = ask("hi");
    request["thinking"] = json!({"type": "adaptive"});
    request["tools"] = json!([{"name": "Read", "input_schema": {"type": "object"}}]);
    let answer = post(&model, &request).await;
    let blocks = answer.blocks();
    assert_eq!(blocks[0]["thinking"], "Let me see.");
    assert!(!blocks[0]["signature"].as_str().unwrap().is_empty());
    let names = answer.names();
    let stop = names.iter().position(|name| name == "content_block_stop").unwrap();
    assert_eq!(answer.data()[stop - 1]["delta"]["type"], "signature_delta");

    let result = json!({"type": "tool_result", "tool_use_id": blocks[2]["id"], "content": "text"});
    request["messages"] = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [result]},
    ]);
    assert_eq!(post(&model, &request).await.joined("text"), "Done.");

    // The same with a changed thought is refused.
    request["messages"][1]["content"][0]["thinking"] = json!("Something else.");
    let refused = post(&model, &request).await;
    assert_eq!(refused.status, 400, "{:?}", String::from_utf8_lossy(&refused.body));
    assert_eq!(model.illegal().len(), 1);
    let _model = model.expect_illegal();
}

#[tokio::test]
async fn omitted_thinking_is_empty_but_signed() {
    let model = Script::new().reply([thinking("hidden"), text("shown")]).start().await.unwrap();
    let mut request = ask("hi");
    request["thinking"] = json!({"type": "adaptive", "display": "omitted"});
    let blocks = post(&model, &request).await.blocks();
    assert_eq!(blocks[0]["thinking"], "");
    assert!(!blocks[0]["signature"].as_str().unwrap().is_empty());
    assert_eq!(blocks[1]["text"], "shown");
}

#[tokio::test]
async fn inputs_are_cut_where_the_script_says() {
    let input = json!({"path": "größe.txt"});
    let model = Script::new()
        .reply([
            tool("A", input.clone()).fragments([2, 5]),
            tool("B", input.clone()).fragments(4),
            tool("C", input.clone()).fragments(Fragments::Random),
            tool_with_json("D", r#"{"path": "unfini"#),
        ])
        .start()
        .await
        .unwrap();
    let answer = post(&model, &ask("hi")).await;
    let pieces = |index: u64| -> Vec<String> {
        let data = answer.data();
        let deltas =
            data.iter().filter(|data| data["index"] == index && data["type"] == "content_block_delta");
        deltas.map(|data| data["delta"]["partial_json"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(pieces(0), ["", "{\"", "pat", "h\":\"größe.txt\"}"]);
    assert_eq!(pieces(1).len(), 5);
    for index in 0..3 {
        assert_eq!(serde_json::from_str::<Value>(&pieces(index).concat()).unwrap(), input);
    }
    assert_eq!(pieces(3).concat(), r#"{"path": "unfini"#);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let play = async |seed| {
        let reply =
            [text("one two three four five six seven").fragments(Fragments::Random), tool("A", json!({}))];
        let model = Script::new().seed(seed).reply(reply).start().await.unwrap();
        post(&model, &ask("hi")).await.body
    };
    assert_eq!(play(1).await, play(1).await);
    assert_ne!(play(1).await, play(2).await);
}

#[tokio::test]
async fn ids_differ_from_request_to_request_and_from_conversation_to_conversation() {
    let id = async |text: &str| {
        let model = Script::new().reply([tool("A", json!({}))]).start().await.unwrap();
        post(&model, &ask(text)).await.blocks()[0]["id"].clone()
    };
    assert_ne!(id("one").await, id("two").await);
    let model = Script::new().step(Step::reply([tool("A", json!({}))]).times(2)).start().await.unwrap();
    let first = post(&model, &ask("hi")).await.blocks()[0]["id"].clone();
    assert_ne!(post(&model, &ask("hi")).await.blocks()[0]["id"], first);
}

#[tokio::test]
async fn strange_things_arrive_as_written() {
    let model = Script::new()
        .step(
            Step::reply([
                raw_block(json!({"type": "future_block", "x": 1})),
                raw_block_with_deltas(
                    json!({"type": "future_block"}),
                    [json!({"type": "future_delta", "y": 2})],
                ),
                event("future_event", json!({"type": "future_event"})),
                event("content_block_delta", r#"{"lone": "\ud83d"}"#),
                ping(),
                comment("keep alive"),
                text("end"),
            ])
            .no_opening_ping()
            .stop("invented_reason")
            .stop_details(json!({"category": "none"})),
        )
        .start()
        .await
        .unwrap();
    let answer = post(&model, &ask("hi")).await;
    let events = answer.events();
    assert!(!answer.names()[..2].contains(&"ping".to_owned()));
    assert!(events.iter().any(|(name, _)| name == "future_event"));
    assert!(events.iter().any(|(_, data)| data == r#"{"lone": "\ud83d"}"#));
    assert!(events.iter().any(|(_, data)| data.contains(r#""content_block":{"type":"future_block","x":1}"#)));
    assert!(events.iter().any(|(_, data)| data.contains(r#""delta":{"type":"future_delta","y":2}"#)));
    assert!(String::from_utf8(answer.body.clone()).unwrap().contains("\n: keep alive\n"));
    let (_, delta) = &events[events.len() - 2];
    assert!(delta.contains(r#""stop_reason":"invented_reason""#) && delta.contains(r#""category":"none""#));
}

#[tokio::test]
async fn an_unknown_block_may_be_sent_back() {
    let block = json!({"type": "future_block", "x": 1});
    let model = Script::new().reply([raw_block(block.clone())]).reply([text("ok")]).start().await.unwrap();
    post(&model, &ask("hi")).await;
    let answer = post(
        &model,
        &ask_with(&json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [block]},
            {"role": "user", "content": "go on"},
        ])),
    )
    .await;
    assert_eq!(answer.joined("text"), "ok");
    model.assert_clean();
}

#[tokio::test]
async fn without_a_stream_the_message_comes_whole() {
    let model = Script::new()
        .reply([text("Hello"), tool("Read", json!({"a": 1}))])
        .step(Step::reply([text("x")]).refuse_non_streaming())
        .reply([text("half"), error("overloaded_error", "")])
        .start()
        .await
        .unwrap();
    let mut request = ask("hi");
    request["stream"] = json!(false);
    let answer = post(&model, &request).await;
    let message = answer.json();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!((&message["type"], &message["stop_reason"]), (&json!("message"), &json!("tool_use")));
    assert_eq!(message["content"][0], json!({"type": "text", "text": "Hello"}));
    assert_eq!(message["content"][1]["input"], json!({"a": 1}));
    assert!(message["usage"]["output_tokens"].as_u64().unwrap() > 1);
    assert_eq!(post(&model, &request).await.status, 400);
    let overloaded = post(&model, &request).await;
    assert_eq!(
        (overloaded.status, overloaded.json()["error"]["type"].as_str()),
        (529, Some("overloaded_error"))
    );
    model.assert_clean();
}

#[tokio::test]
async fn usage_is_counted_and_can_be_said() {
    let model = Script::new()
        .reply([text("one")])
        .step(
            Step::reply([text("two")])
                .usage("input_tokens", 178_959)
                .usage("output_tokens", 7)
                .usage("cache_creation_input_tokens", 5)
                .usage("speed", "fast"),
        )
        .start()
        .await
        .unwrap();
    let counted = post_to(&model.base_url(), "/v1/messages/count_tokens", &{
        let mut request = ask("hi");
        let fields = request.as_object_mut().unwrap();
        fields.remove("max_tokens");
        fields.remove("stream");
        request
    })
    .await;
    let first = post(&model, &ask("hi")).await;
    assert_eq!(first.data()[0]["message"]["usage"]["input_tokens"], counted.json()["input_tokens"]);
    let second = post(&model, &ask("hi")).await;
    let start = &second.data()[0]["message"]["usage"];
    assert_eq!((&start["input_tokens"], &start["output_tokens"]), (&json!(178_959), &json!(1)));
    let end = second.data().iter().find(|data| data["type"] == "message_delta").unwrap()["usage"].clone();
    assert_eq!((&end["output_tokens"], &end["speed"]), (&json!(7), &json!("fast")));
    assert_eq!(
        end["cache_creation"],
        json!({"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 0})
    );
    assert_eq!(model.requests()[2].reply.usage.as_ref().unwrap(), &end);
}

#[tokio::test]
async fn the_usage_says_how_fast_and_where_it_ran() {
    let model = Script::new().reply([text("ok")]).start().await.unwrap();
    let mut request = ask("hi");
    request["model"] = json!("claude-opus-5-5");
    request["speed"] = json!("fast");
    request["inference_geo"] = json!("us");
    let usage = post(&model, &request).await.data()[0]["message"]["usage"].clone();
    assert_eq!((&usage["speed"], &usage["inference_geo"]), (&json!("fast"), &json!("us")));
    model.assert_clean();
}

#[tokio::test]
async fn the_prompt_cache_shows_in_the_usage() {
    let model = Script::new().step(Step::reply([text("ok")]).always()).start().await.unwrap();
    let mut request = ask("hi");
    let long = "All work and no play makes a dull prompt. ".repeat(200);
    request["system"] = json!([{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]);
    let usage = |answer: client::Answer| answer.data()[0]["message"]["usage"].clone();
    let cold = usage(post(&model, &request).await);
    assert!(cold["cache_creation_input_tokens"].as_u64().unwrap() > 1000, "{cold}");
    assert_eq!(cold["cache_creation"]["ephemeral_5m_input_tokens"], cold["cache_creation_input_tokens"]);
    assert_eq!(cold["cache_read_input_tokens"], 0);
    let warm = usage(post(&model, &request).await);
    assert_eq!(warm["cache_read_input_tokens"], cold["cache_creation_input_tokens"]);
    assert_eq!(warm["cache_creation_input_tokens"], 0);
    request["system"][0]["text"] = json!(long.replace("dull", "bright"));
    assert_eq!(usage(post(&model, &request).await)["cache_read_input_tokens"], 0);
}

#[tokio::test]
async fn a_request_for_no_tokens_only_warms_the_cache() {
    let model = Script::new().reply([text("ok")]).start().await.unwrap();
    let mut request = ask("warm up");
    let long = "All work and no play makes a dull prompt. ".repeat(200);
    request["system"] = json!([{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]);
    let mut warming = request.clone();
    warming["max_tokens"] = json!(0);
    warming.as_object_mut().unwrap().remove("stream");
    let answer = post(&model, &warming).await;
    let message = answer.json();
    assert_eq!(
        (answer.status, &message["content"], &message["stop_reason"]),
        (200, &json!([]), &json!("max_tokens"))
    );
    assert_eq!(message["usage"]["output_tokens"], 0);
    let written = &message["usage"]["cache_creation_input_tokens"];
    assert!(written.as_u64().unwrap() > 1000, "{message}");
    assert_eq!(model.requests()[0].step, None, "no step is used up");
    request["messages"][0]["content"] = json!("the real question");
    let usage = post(&model, &request).await.data()[0]["message"]["usage"].clone();
    assert_eq!(&usage["cache_read_input_tokens"], written);
    model.assert_clean();
    model.assert_played_out();
}

#[tokio::test]
async fn gates_hold_the_stream_between_and_inside_blocks() {
    let model = Script::new()
        .reply([text("first"), gate("between"), text("second third").fragments(2).after(1, gate("inside"))])
        .start()
        .await
        .unwrap();
    let asking = tokio::spawn({
        let base_url = model.base_url();
        async move { post_to(&base_url, "/v1/messages", &ask("hi")).await }
    });
    let sent = |count: usize| {
        let seen = &model.requests()[count - 1];
        assert_eq!(seen.reply.ending, None);
        seen.reply.events.iter().filter(|event| event.data.contains("text_delta")).count()
    };
    model.wait_at_gate("between").await;
    assert_eq!(sent(1), 1);
    model.open("between");
    model.wait_at_gate("inside").await;
    assert_eq!(sent(1), 2);
    model.open("inside");
    assert_eq!(asking.await.unwrap().joined("text"), "firstsecond third");
    model.wait_for_answers(1).await;
    assert_eq!(model.requests()[0].reply.ending, Some(Ending::Complete));
}

#[tokio::test]
async fn pauses_take_their_time() {
    let model = Script::new().reply([pause(Duration::from_millis(80)), text("late")]).start().await.unwrap();
    let start = Instant::now();
    post(&model, &ask("hi")).await;
    assert!(start.elapsed() >= Duration::from_millis(80));
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let model = Script::new().step(Step::reply([text("ok")]).times(3)).start().await.unwrap();
    // The client insists on one although nothing is encrypted here; another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    for _ in 0..3 {
        let sending = client
            .post(format!("{}/v1/messages?beta=true", model.base_url()))
            .header("authorization", "Bearer t")
            .header("anthropic-version", "2023-06-01")
            .body(ask("hi").to_string());
        let answer = sending.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(
            answer
                .text()
                .await
                .unwrap()
                .ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
        );
    }
    assert_eq!(model.requests()[0].query, "beta=true");
    model.assert_clean();
}
