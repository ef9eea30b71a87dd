//! Requests that are refused for something that can be left out.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::tools::ResultBlock;
use pelton::tools::{Access, InvalidInput, Output, Safety, ServerState, Spec, Tool, ToolCx};
use pelton::{Event, Terminal};
use pelton_testkit::{Script, Step, raw_block, text, thinking, tool};
use serde_json::{Value, json};

use crate::servers::{Calculator, without_search};
use crate::stage::{Stage, Told, blocks, run};

use super::{assert_no_error_shown, kinds, synthetics, thoughts};

#[tokio::test]
async fn loop_T11_thinking_bound_to_another_conversation_is_left_out_once() {
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a \
                   different conversation.";
    let script = Script::new()
        .reply([thinking("Deep thoughts."), text("Looking."), tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(400).message(refusal))
        .reply([thinking("More thoughts."), text("Done.")])
        .reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["next_turn", "request_repair"]);
    assert_no_error_shown(&told);
    assert_eq!(kinds(&engine), ["withheld", "repair"]);
    assert_eq!((thoughts(&stage.request(2)), thoughts(&stage.request(3))), (1, 0));
    assert!(stage.request(3).to_string().contains("Looking."));
    // The next question does not bring it again.
    run(&mut engine, "Sure?").await.assert_completed();
    assert_eq!(stage.request_count(), 4);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T11_a_repair_that_does_not_help_is_not_made_twice() {
    let refusal = "The block is bound to a different conversation.";
    let stage = Stage::new(Script::new().step(Step::status(400).message(refusal).always())).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert_eq!((told.transitions(), stage.request_count()), (vec!["request_repair"], 2));
    assert_eq!(synthetics(&told), 1);
}

/// A conversation with a newer server, and a block of somebody else's in what was asked.
async fn record_of_another() -> (Stage, std::path::PathBuf) {
    let script = Script::new()
        .reply([
            text("Looking."),
            raw_block(json!({"type": "future_chart", "id": "chart_1", "data": {}})),
            raw_block(json!({"type": "future_note", "words": "x"})),
            tool("Glob", json!({"pattern": "*.bean"})),
        ])
        .reply([text("Nothing there.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Where are the beans?").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let asked = r#"{"type":"text","text":"Where are the beans?"}"#;
    let record = std::fs::read_to_string(&file).unwrap();
    let with_more = record.replace(asked, &format!(r#"{asked},{{"type":"hologram","data":"?"}}"#));
    assert_ne!(record, with_more);
    // Whoever wrote it did not prove it, as this version would: what was changed later is judged more strictly.
    let unproven = with_more.lines().map(|line| match line.split_once(r#","proof":""#) {
        Some((before, rest)) => format!("{before}{}\n", rest.split_once('"').unwrap().1),
        None => format!("{line}\n"),
    });
    std::fs::write(&file, unproven.collect::<String>()).unwrap();
    (stage, file)
}

#[tokio::test]
async fn loop_T11_blocks_that_the_server_does_not_know_are_left_out_once_and_for_good() {
    let (stage, file) = record_of_another().await;
    // This server knows none of them, and names the first it meets.
    let script =
        Script::new().reply([thinking("Hm."), text("Done.")]).reply([text("Yes.")]).reply([text("On.")]);
    let mut stage = stage.playing(script).await;
    stage.model = stage.model.expect_illegal();
    let mut engine = stage.resume(&file);

    let told = run(&mut engine, "Look again.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["request_repair"]);
    assert_no_error_shown(&told);
    assert_eq!(stage.model.illegal().len(), 1, "one refusal, whatever there is");
    let sent = stage.request(stage.request_count());
    for (words, is_there) in [
        ("Where are the beans?", true),
        ("the server does not know its kind", true),
        ("Looking.", true),
        ("*.bean", true),
        ("hologram", false),
        ("future_", false),
    ] {
        assert_eq!(sent.to_string().contains(words), is_there, "{words}: {sent}");
    }
    let said = told.0.iter().find_map(|event| match event {
        Event::Informational { content, .. } => Some(content.as_str()),
        _ => None,
    });
    assert_eq!(
        said,
        Some("Blocks of kinds that the server refuses were left out: hologram, future_chart, future_note")
    );
    // Neither the next question nor another process brings them again.
    run(&mut engine, "Sure?").await.assert_completed();
    drop(engine);
    let mut engine = stage.resume(&file);
    run(&mut engine, "And on?").await.assert_completed();
    assert_eq!(stage.model.illegal().len(), 1);
    stage.model.assert_played_out();
    // It is a change like any other: whoever finds a server that knows them takes it back.
    let before = engine.context_usage().used_tokens;
    let told = run(&mut engine, "/context undo").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    assert!(engine.context_usage().used_tokens > before);
}

#[tokio::test]
async fn loop_T11_a_block_that_is_refused_whatever_is_left_out_ends_the_run_once() {
    let (stage, file) = record_of_another().await;
    let always = Step::status(400)
        .error_type("invalid_request_error")
        .message("messages.1.content.1: Input tag 'future_chart' found using 'type' does not match any of the expected tags: 'text'")
        .always();
    let mut stage = stage.playing(Script::new().step(always)).await;
    stage.model = stage.model.expect_illegal();
    let told = run(&mut stage.resume(&file), "Look again.").await;
    assert_eq!((told.outcome().terminal, synthetics(&told)), (Terminal::ModelError, 1));
    assert_eq!((told.transitions(), stage.request_count()), (vec!["request_repair"], 2));

    // A refusal that names nothing we could do without is none of this.
    let plain = Step::status(400)
        .error_type("invalid_request_error")
        .message("messages.0.content.0.text: Input should be a valid string")
        .always();
    let stage = Stage::new(Script::new().step(plain)).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!((told.outcome().terminal, stage.request_count()), (Terminal::ModelError, 1));
}

/// A refusal that names a kind of blocks, and behind it others that would be taken.
fn unknown(kind: &str) -> Step {
    Step::status(400).error_type("invalid_request_error").message(format!(
        "Input tag '{kind}' found using 'type' does not match any of the expected tags: 'text', 'fallback'"
    ))
}

#[tokio::test]
async fn loop_T11_all_kinds_that_the_server_can_do_without_go_when_it_refuses_a_second() {
    // Four kinds that the API takes, and a server that takes none of them and names one at a time.
    let searched = [
        raw_block(
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "beans"}}),
        ),
        raw_block(json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []})),
        raw_block(
            json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "server_name": "far", "input": {}}),
        ),
        raw_block(
            json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false, "content": []}),
        ),
        raw_block(json!({"type": "fallback"})),
        text("Beans are beans."),
    ];
    let stage = Stage::new(Script::new().reply(searched)).await;
    let mut engine = stage.engine();
    run(&mut engine, "What are beans?").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let script = Script::new()
        .step(unknown("server_tool_use"))
        .step(unknown("mcp_tool_use"))
        .reply([text("Done.")])
        .reply([text("On.")]);
    let stage = stage.playing(script).await;

    let told = run(&mut stage.resume(&file), "Sure?").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["request_repair", "request_repair"]);
    assert_no_error_shown(&told);
    let sent = |n| {
        let request = stage.request(n).to_string();
        ["server_tool_use", "mcp_tool_use", "\"fallback\"", "Beans are beans."]
            .map(|kind| request.contains(kind))
    };
    assert_eq!(sent(2), [false, true, true, true], "the one that it named, and its other half");
    assert_eq!(sent(3), [false, false, false, true], "whatever else there is");
    // In another process as well.
    run(&mut stage.resume(&file), "And on?").await.assert_completed();
    assert_eq!(sent(4), [false, false, false, true]);
    stage.assert_all_played();
}

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Shows a picture.
struct Camera;

impl Tool for Camera {
    fn spec(&self) -> Spec<'_> {
        let input_schema = r#"{"type":"object","properties":{}}"#;
        Spec { name: "Camera", description: "Takes a picture.", input_schema }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        let mut output = Output::text("Click.");
        output.content.push(ResultBlock::Image { media_type: "image/png", base64: PIXEL.to_owned() });
        async move { output }.boxed()
    }
}

/// Which results of a request show their picture.
fn pictures(request: &Value) -> Vec<bool> {
    let results = blocks(request, "user").into_iter().filter(|block| block["type"] == "tool_result");
    results.map(|block| block["content"].to_string().contains(PIXEL)).collect()
}

/// Two pictures with thoughts in between, then a refusal.
fn two_pictures(refusal: Step) -> Script {
    let shot = |n: usize| Step::reply([thinking(format!("Shot {n}.")), tool("Camera", json!({}))]);
    Script::new().step(shot(1)).step(shot(2)).step(refusal).reply([thinking("Hm."), text("Done.")])
}

async fn with_camera(stage: &Stage) -> Told {
    let mut engine = stage.engine_with(|options| options.tools.push(Arc::new(Camera)));
    run(&mut engine, "Take two.").await
}

#[tokio::test]
async fn loop_T11_loop_W2_the_image_that_is_refused_is_replaced_by_a_note() {
    let refusal = "messages.4.content.0.image.source.base64.data: image exceeds 5 MB maximum";
    let stage = Stage::new(two_pictures(Step::status(400).message(refusal))).await;

    let told = with_camera(&stage).await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_no_error_shown(&told);
    assert_eq!(told.transitions().last(), Some(&"request_repair"));
    assert_eq!(pictures(&stage.request(3)), [true, true]);
    assert_eq!(pictures(&stage.request(4)), [true, false]);
    assert_eq!(
        (thoughts(&stage.request(3)), thoughts(&stage.request(4))),
        (2, 2),
        "it came before the image, and is not bound to it"
    );
    assert!(stage.request(4).to_string().contains("was left out here"));
    // Somebody gave it: they are told, loop events or not.
    let said = told.0.iter().filter_map(|event| match event {
        Event::Informational { content, .. } => Some(content.as_str()),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["1 images were left out, the one that was refused among them"]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T11_a_request_of_too_many_bytes_is_sent_without_its_oldest_media() {
    let stage = Stage::new(two_pictures(Step::status(413).error_type("request_too_large"))).await;

    let told = with_camera(&stage).await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_no_error_shown(&told);
    assert_eq!(pictures(&stage.request(3)), [true, true]);
    assert_eq!(pictures(&stage.request(4)), [false, true]);
    stage.assert_all_played();
}

#[tokio::test]
async fn an_image_that_nobody_can_name_costs_all_of_them_and_nothing_else() {
    let stage = Stage::new(two_pictures(Step::status(400).message("Could not process image"))).await;
    let told = with_camera(&stage).await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(pictures(&stage.request(4)), [false, false]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X6_media_that_are_refused_whatever_is_left_out_end_the_run_once() {
    let always = Step::status(413)
        .error_type("request_too_large")
        .message("Request exceeds the maximum size")
        .always();
    let stage = Stage::new(Script::new().reply([tool("Camera", json!({}))]).step(always)).await;
    let told = with_camera(&stage).await;
    assert_eq!((told.outcome().terminal, told.outcome().is_error), (Terminal::ImageError, true));
    assert_eq!(synthetics(&told), 1);
    assert!(stage.request_count() <= 5, "{}", stage.request_count());
}

#[tokio::test]
async fn loop_T11_a_tool_whose_schema_is_refused_is_left_out() {
    let script = Script::new()
        .reply([thinking("Hm."), tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(400).message("tools.1.custom.input_schema: JSON schema is invalid"))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;

    let told = run(&mut stage.engine(), "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_no_error_shown(&told);
    let names = |n: usize| -> Vec<String> {
        let request = stage.request(n);
        let tools = request["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut kept = names(2);
    kept.remove(1);
    assert_eq!(names(3), kept);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T11_all_tools_of_servers_go_when_a_second_one_is_refused() {
    let refused = |place: usize| {
        Step::status(400).message(format!("tools.{place}.custom.input_schema: JSON schema is invalid"))
    };
    let named = |stage: &Stage, n: usize| -> Vec<String> {
        let request = stage.request(n);
        let tools = request["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let server = || Calculator::with(ServerState::Connected, &["sine", "root", "log"]);
    let plain = Stage::new(Script::new().reply([text("Done.")])).await;
    run(&mut without_search(&plain, &server()), "Go.").await.assert_completed();
    let place = |key: &str| named(&plain, 1).iter().position(|name| name.ends_with(key)).unwrap();

    // The second is refused where it stands once the first is gone.
    let script = Script::new()
        .step(refused(place("__sine")))
        .step(refused(place("__root") - 1))
        .reply([text("Done.")])
        .reply([text("Still.")]);
    let stage = Stage::new(script).await;
    let mut engine = without_search(&stage, &server());
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["request_repair", "request_repair"]);
    assert_no_error_shown(&told);
    let of_server = |n| named(&stage, n).into_iter().filter(|name| name.starts_with("mcp__")).count();
    assert_eq!([1, 2, 3].map(of_server), [3, 2, 0]);
    assert_eq!(named(&stage, 3).len(), named(&stage, 1).len() - 3, "ours stay");
    run(&mut engine, "And on?").await.assert_completed();
    assert_eq!(of_server(4), 0, "for good");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T11_betas_that_the_server_does_not_know_are_left_out_and_stay_out() {
    let script = Script::new().reply([text("Done.")]).reply([text("Yes.")]);
    let mut stage = Stage::new(script).await;
    stage.model = stage.model.expect_illegal();
    let mut engine = stage.engine_with(|options| {
        options.endpoint.betas =
            ["mine-2026-01-31", "files-api-2025-04-14", "theirs-2026-01-31"].map(str::to_owned).to_vec();
    });

    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["request_repair"]);
    assert_no_error_shown(&told);
    assert_eq!(kinds(&engine), ["withheld", "repair"]);
    run(&mut engine, "Sure?").await.assert_completed();

    let betas: Vec<String> = stage
        .model
        .reply_requests()
        .iter()
        .map(|seen| seen.header("anthropic-beta").unwrap_or_default().to_owned())
        .collect();
    let left = "files-api-2025-04-14";
    assert_eq!(betas, [&format!("mine-2026-01-31,{left},theirs-2026-01-31"), left, left]);
    assert_eq!(stage.request(1), stage.request(2), "nothing else has changed");
    stage.model.assert_played_out();
}

#[tokio::test]
async fn loop_T11_a_server_that_will_have_no_betas_is_asked_without_any_once() {
    let refusal = || Step::status(400).error_type("invalid_request_error").message("invalid beta flag");
    let with_budget = |stage: &Stage| stage.engine_with(|options| options.task_budget = Some(50_000));
    let stage = Stage::new(Script::new().step(refusal()).reply([text("Done.")])).await;
    run(&mut with_budget(&stage), "Go.").await.assert_completed();
    assert_eq!(stage.model.reply_requests()[1].header("anthropic-beta"), None);
    assert_eq!(stage.request(2)["output_config"]["task_budget"], Value::Null, "it needs the beta");
    stage.assert_all_played();

    let stage = Stage::new(Script::new().step(refusal().always())).await;
    let told = run(&mut with_budget(&stage), "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert_eq!((told.transitions(), stage.request_count()), (vec!["request_repair"], 2));
    assert_eq!(synthetics(&told), 1);
}
