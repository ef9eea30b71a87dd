use pelton_testkit::{Fault, Script, Step, When, gate, text, tool};
use serde_json::json;

#[tokio::test]
async fn my_agent_survives_an_overload() {
    let model = Script::new()
        .step(Step::reply([text("A title")]).when(When::any().model("haiku")).always())
        .step(Step::status(529).header("retry-after", "0"))
        .reply([text("Reading."), tool("Read", json!({"file_path": "a"})), gate("slow"), text("And more.")])
        .step(Step::reply([text("cut")]).fault(Fault::cut_after_events(4)))
        .reply([text("Done.")])
        .start()
        .await
        .unwrap();

    let agent = tokio::spawn(run_my_agent(model.base_url()));
    model.wait_at_gate("slow").await; // the tool call is out, the stream is still open
    model.open("slow");
    agent.await.unwrap();

    let last = model.reply_requests().pop().unwrap();
    assert_eq!(last.body["model"], "claude-sonnet-5-5");
    model.assert_clean(); // no illegal and no unexpected request
    model.assert_played_out(); // every step was played
}

// The lines above are the example of docs/scripted-model.md; what follows makes it run, and plays the page's other
// examples.

mod client;

use client::{ask, post, post_to};
use serde_json::Value;

async fn run_my_agent(base_url: String) {
    let mut title = ask("make a title");
    title["model"] = json!("claude-haiku-4-5");
    post_to(&base_url, "/v1/messages", &title).await;
    let mut request = ask("read a");
    request["tools"] = json!([{"name": "Read", "input_schema": {"type": "object"}}]);
    loop {
        let answer = post_to(&base_url, "/v1/messages", &request).await;
        if answer.status != 200 || !answer.complete {
            continue;
        }
        let blocks = answer.blocks();
        let Some(call) = blocks.iter().find(|block| block["type"] == "tool_use") else { return };
        let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "hello"});
        let messages = request["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": blocks}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
}

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripted-model.md");
    std::fs::read_to_string(path).unwrap()
}

/// The code blocks of a language, in order.
fn blocks(language: &str) -> Vec<String> {
    let page = page();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The script among the page's examples that holds this text.
fn script(holding: &str) -> Script {
    let found: Vec<String> = blocks("yaml").into_iter().filter(|block| block.contains(holding)).collect();
    assert_eq!(found.len(), 1, "examples with {holding:?}");
    Script::from_yaml_or_json(&found[0]).unwrap()
}

#[test]
fn the_rust_example_is_the_one_that_runs() {
    let source = include_str!("documented.rs");
    let example = source.split("\n// The lines above").next().unwrap();
    assert_eq!(blocks("rust")[0], example);
}

#[test]
fn every_script_of_the_page_can_be_read() {
    let scripts = blocks("yaml");
    assert!(scripts.len() >= 5);
    for text in scripts {
        Script::from_yaml_or_json(&text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
    }
}

#[test]
fn the_mistake_of_the_page_is_told_in_those_words() {
    let error = Script::from_yaml_or_json("steps:\n  - reply: hi\n  - reply:\n      - txt: a\n").unwrap_err();
    assert_eq!(blocks("text"), [format!("{error}\n")]);
}

#[tokio::test]
async fn the_first_script_and_its_curl_command_work() {
    let page = page();
    let body = page.split("-d '").nth(1).unwrap().split('\'').next().unwrap();
    let mut request: Value = serde_json::from_str(body).unwrap();
    let model = script("hello.txt").start().await.unwrap();
    let first = post(&model, &request).await.blocks();
    assert_eq!(first[1]["input"], json!({"file_path": "hello.txt"}));
    request["tools"] = json!([{"name": "Read", "input_schema": {"type": "object"}}]);
    request["messages"] = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": first[1]["id"], "content": "hello, world"},
        ]},
    ]);
    assert_eq!(post(&model, &request).await.joined("text"), "The file says: hello, world");
    model.assert_clean();
    model.assert_played_out();
}

#[tokio::test]
async fn the_faults_of_the_page_happen() {
    let model = script("reset_before_headers").start().await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..7 {
        let answer = post(&model, &ask("hi")).await;
        seen.push((answer.status, answer.complete));
    }
    assert_eq!(
        seen,
        [(429, true), (400, true), (502, true), (200, false), (0, false), (200, true), (200, true)]
    );
    model.assert_clean();
    model.assert_played_out();
}

#[tokio::test]
async fn the_replies_of_the_page_play() {
    let model = script("half-said").start().await.unwrap();
    model.open("half-said");
    let first = post(&model, &ask("hi")).await.blocks();
    let kinds: Vec<&str> = first.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(first[3]["id"], "toolu_second");
    let second = post(&model, &ask("hi")).await;
    assert!(second.joined("partial_json").ends_with("cut o"));
    assert_eq!(post(&model, &ask("hi")).await.names().last().unwrap(), "error");
    model.assert_clean();
}
