//! What stands in front of every request of a session that another process goes on with, and what has changed around it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::tools::{
    Access, AgentDefinition, InvalidInput, Output, Safety, ServerState, Spec, Tool, ToolCx, ToolServer,
};
use pelton::{Engine, Options};
use pelton_testkit::{Script, Step, When, text, tool};
use serde_json::{Value, json};

use crate::compaction::{asks_for_summary, levels, small, summary};
use crate::stage::{Stage, last_user_blocks, notes, results_in, resume_from, run, unmarked};

/// A server of these tools, all described by the same words.
struct Desk {
    name: &'static str,
    state: ServerState,
    tools: Vec<String>,
    words: &'static str,
}

impl Desk {
    fn of(tools: &[&str]) -> Self {
        let tools = tools.iter().map(|name| (*name).to_owned()).collect();
        Self { name: "desk", state: ServerState::Connected, tools, words: "Something on it." }
    }

    fn failed() -> Self {
        Self { state: ServerState::Failed, ..Self::of(&[]) }
    }
}

impl ToolServer for Desk {
    fn name(&self) -> &str {
        self.name
    }

    fn state(&self) -> ServerState {
        self.state
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let thing = |name: &String| Arc::new(Thing(name.clone(), self.words)) as Arc<dyn Tool>;
        self.tools.iter().map(thing).collect()
    }

    fn instructions(&self) -> Option<String> {
        Some("Keep the desk tidy.".to_owned())
    }
}

struct Thing(String, &'static str);

impl Tool for Thing {
    fn spec(&self) -> Spec<'_> {
        Spec { name: &self.0, description: self.1, input_schema: r#"{"type":"object"}"# }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move { Output::text(format!("{} was used", self.0)) }.boxed()
    }
}

fn with(server: Desk) -> impl FnOnce(&mut Options) {
    move |options| options.servers = vec![Arc::new(server)]
}

/// One process of a session: what it is asked, and where it was recorded.
async fn process(
    stage: &Stage,
    file: Option<&Path>,
    words: &str,
    change: impl FnOnce(&mut Options),
) -> PathBuf {
    let mut engine: Engine = stage.engine_with(|options| {
        change(options);
        if let Some(file) = file {
            resume_from(options, file);
        }
    });
    run(&mut engine, words).await.assert_completed();
    engine.transcript_file().unwrap()
}

/// The bytes in front of the messages, apart from marks.
fn front(stage: &Stage, nth: usize) -> (String, String) {
    let body = unmarked(&stage.request(nth));
    (body["system"].to_string(), body["tools"].to_string())
}

fn newest_words(stage: &Stage, nth: usize) -> String {
    Value::from(last_user_blocks(&stage.request(nth)).to_vec()).to_string()
}

fn read_from_cache(stage: &Stage, nth: usize) -> u64 {
    let usage = stage.model.reply_requests()[nth - 1].reply.usage.clone().unwrap();
    usage["cache_read_input_tokens"].as_u64().unwrap()
}

#[tokio::test]
async fn pit_B2_a_server_that_is_down_or_gone_or_another_changes_nothing_in_front_of_a_resumed_session() {
    let script = Script::new()
        .reply([text("One.")])
        .reply([tool("mcp__desk__pen", json!({})).id("toolu_1")])
        .reply([text("Two.")])
        .reply([tool("mcp__desk__pen", json!({})).id("toolu_2")])
        .reply([text("Three.")])
        .reply([tool("mcp__desk__pen", json!({})), tool("mcp__desk__ruler", json!({}))])
        .reply([text("Four.")])
        .reply([text("Five.")]);
    let stage = Stage::new(script).await;
    let file = process(&stage, None, "One?", with(Desk::of(&["pen", "ink"]))).await;
    let first = front(&stage, 1);
    assert!(first.1.contains("mcp__desk__pen") && first.0.contains("Keep the desk tidy."));

    process(&stage, Some(&file), "Two?", with(Desk::failed())).await;
    assert_eq!(front(&stage, 2), first, "its server is down");
    assert!(newest_words(&stage, 2).contains("No longer there: mcp__desk__pen, mcp__desk__ink"));
    let (_, is_error, words) = results_in(&stage.request(3)).remove(0);
    assert!(is_error && words.contains("the server desk is not connected (failed)"), "{words}");

    process(&stage, Some(&file), "Three?", |_| {}).await;
    assert_eq!(front(&stage, 4), first, "its server is not part of the session any more");
    let (_, is_error, words) = results_in(&stage.request(5)).pop().unwrap();
    assert!(is_error && words.contains("its server is not connected"), "{words}");

    process(&stage, Some(&file), "Four?", with(Desk::of(&["pen", "ruler"]))).await;
    assert_eq!(front(&stage, 6), first, "it is back, with another tool");
    let news = newest_words(&stage, 6);
    assert!(news.contains("mcp__desk__ruler") && news.contains("mcp__desk__pen"), "{news}");
    assert!(!news.contains("mcp__desk__ink") && !news.contains("tidy"), "known already: {news}");
    let results = results_in(&stage.request(7));
    let words: Vec<&str> = results.iter().rev().take(2).map(|(_, _, words)| words.as_str()).collect();
    assert_eq!(words, ["ruler was used", "pen was used"]);

    process(&stage, Some(&file), "Five?", with(Desk::of(&["pen", "ruler"]))).await;
    assert_eq!(front(&stage, 8), first);
    assert!(!newest_words(&stage, 8).contains("mcp__desk__"), "nothing is new");
    for nth in [2, 4, 6, 8] {
        assert!(read_from_cache(&stage, nth) > 0, "request {nth} finds its prefix in the cache");
    }
    assert!(notes(&file).iter().all(|(kind, _)| kind != "prefix"), "nothing had to be made anew");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_B2_pit_X5_tools_known_by_name_are_told_of_once_whatever_processes_a_session_goes_through() {
    let names: Vec<String> = (0..200).map(|n| format!("drawer_with_a_long_name_{n}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let script = Script::new()
        .reply([text("One.")])
        .reply([tool("CallTool", json!({"name": "mcp__desk__drawer_with_a_long_name_9", "input": {}}))])
        .reply([text("Two.")]);
    let stage = Stage::new(script).await;
    let file = process(&stage, None, "One?", with(Desk::of(&all))).await;
    assert!(stage.request(1)["messages"].to_string().contains("mcp__desk__drawer_with_a_long_name_199"));

    process(&stage, Some(&file), "Two?", with(Desk::of(&all[..199]))).await;

    assert_eq!(front(&stage, 2), front(&stage, 1));
    let news = newest_words(&stage, 2);
    assert!(news.contains("No longer there: mcp__desk__drawer_with_a_long_name_199"), "{news}");
    assert!(!news.contains("mcp__desk__drawer_with_a_long_name_7"), "{news}");
    assert!(results_in(&stage.request(3))[0].2.contains("drawer_with_a_long_name_9 was used"));
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_B2_pit_X5_a_summary_tells_what_is_there_and_the_next_process_what_it_did_not() {
    let names: Vec<String> = (0..200).map(|n| format!("drawer_with_a_long_name_{n}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    const LAST: &str = "mcp__desk__drawer_with_a_long_name_199";
    // The server is there, or on its way, when a process has nothing to do but to sum up.
    for state in [ServerState::Connected, ServerState::Pending] {
        let there = state == ServerState::Connected;
        let script = Script::new()
            .reply([text("One. ".repeat(2_000)), tool("Glob", json!({"pattern": "*"}))])
            .reply([text("One and a half.")])
            .step(summary("It was counted."))
            .reply([text("Two.")])
            .reply([text("Three.")]);
        let stage = Stage::new(script).await;
        // One more has come since.
        let file = process(&stage, None, "One?", with(Desk::of(&all[..199]))).await;
        let tools = if there { &all[..] } else { &[] };
        process(&stage, Some(&file), "/compact", with(Desk { state, ..Desk::of(tools) })).await;

        process(&stage, Some(&file), "Two?", with(Desk::of(&all))).await;
        let told = |nth| stage.request(nth)["messages"].to_string().matches(LAST).count();
        assert_eq!(told(4), 1, "{state:?}: once, in the summary or behind it");
        assert_eq!(newest_words(&stage, 4).contains("have changed"), !there, "{state:?}");
        process(&stage, Some(&file), "Three?", with(Desk::of(&all))).await;
        assert_eq!(told(5), 1, "{state:?}");
        assert_eq!(front(&stage, 5), front(&stage, 1));
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn pit_X5_names_there_was_no_room_for_are_told_again_as_soon_as_there_is() {
    const LAST: &str = "mcp__desk__drawer_that_has_a_much_longer_name_than_it_needs_699";
    let names: Vec<String> =
        (0..700).map(|n| format!("drawer_that_has_a_much_longer_name_than_it_needs_{n}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let words = |tokens: usize| text("word ".repeat(tokens * 4 / 5));
    let look = || tool("Glob", json!({"pattern": "*"}));
    let no_summary = || {
        Step::status(400)
            .error_type("invalid_request_error")
            .when(When::any().last_user_text("call no tools"))
            .always()
    };
    // Right behind it, or by the next process.
    for is_last in [false, true] {
        let script = Script::new()
            .step(no_summary())
            .reply([words(15_000), look()])
            .reply([words(18_000)])
            .reply(if is_last { [text("Two.")] } else { [look()] })
            .reply([text("Two, or three.")]);
        let stage = Stage::new(script).await;
        let options = |options: &mut Options| {
            small(options, &["Glob"]);
            with(Desk::of(&all))(options);
        };
        let mut engine = stage.engine_with(options);
        run(&mut engine, "One?").await.assert_completed();
        let told = run(&mut engine, "Two?").await;
        told.assert_completed();
        assert_eq!(levels(&told), ["local"], "{told:#?}");
        let file = engine.transcript_file().unwrap();
        drop(engine);
        if is_last {
            process(&stage, Some(&file), "Three?", options).await;
        }
        let conversation: Vec<_> = stage
            .model
            .reply_requests()
            .into_iter()
            .filter(|seen| !asks_for_summary(&seen.body))
            .map(|seen| seen.body["messages"].to_string().matches(LAST).count())
            .collect();
        // With the first prompt; left out by the step that needs no model; and told anew.
        assert_eq!(conversation, [1, 1, 0, 1]);
        stage.model.assert_clean();
    }
}

#[tokio::test]
async fn pit_B2_a_tool_that_is_described_in_another_way_keeps_its_place_and_is_found_as_it_is() {
    let script = Script::new()
        .reply([text("One.")])
        .reply([tool("ToolSearch", json!({"query": "select:mcp__desk__pen"}))])
        .reply([text("Two.")]);
    let stage = Stage::new(script).await;
    let file = process(&stage, None, "One?", with(Desk::of(&["pen"]))).await;

    let other = Desk { words: "Writes in blue.", ..Desk::of(&["pen"]) };
    process(&stage, Some(&file), "Two?", with(other)).await;

    assert_eq!(front(&stage, 2), front(&stage, 1));
    let news = newest_words(&stage, 2);
    assert!(news.contains("The tool mcp__desk__pen is called in another way now"), "{news}");
    assert!(results_in(&stage.request(3))[0].2.contains("Writes in blue."));
    stage.assert_all_played();
}

#[tokio::test]
async fn what_people_choose_counts_at_once_in_a_resumed_session() {
    let script = (0..4).fold(Script::new(), |script, _| script.reply([text("Yes.")]));
    let stage = Stage::new(script).await;
    let file = process(&stage, None, "One?", with(Desk::of(&["pen", "ink"]))).await;

    let denied = |options: &mut Options| {
        with(Desk::of(&["pen", "ink"]))(options);
        options.rules.deny.push("mcp__desk__ink".parse().unwrap());
    };
    process(&stage, Some(&file), "Two?", denied).await;
    assert!(!front(&stage, 2).1.contains("mcp__desk__ink"), "a rule keeps it away");
    let without_shell = |options: &mut Options| {
        denied(options);
        options.tools.retain(|tool| tool.spec().name != "Bash");
    };
    process(&stage, Some(&file), "Three?", without_shell).await;
    assert!(!front(&stage, 3).1.contains(r#""name":"Bash""#), "it is not wanted any more");
    assert!(!front(&stage, 3).0.contains("Commit or push"), "and nothing is said of it");
    let in_french = |options: &mut Options| {
        without_shell(options);
        options.system_prompt.appended = Some("Answer in French.".to_owned());
    };
    process(&stage, Some(&file), "Four?", in_french).await;
    assert!(front(&stage, 4).0.contains("Answer in French."));
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_B2_agents_that_came_since_are_told_behind_the_same_prefix() {
    let script = Script::new().reply([text("One.")]).reply([text("Two.")]);
    let stage = Stage::new(script).await;
    let file = process(&stage, None, "One?", |_| {}).await;

    let with_another = |options: &mut Options| {
        options.agents.push(AgentDefinition::new("tailor", "Sews what is torn.", "You sew."));
    };
    process(&stage, Some(&file), "Two?", with_another).await;

    assert_eq!(front(&stage, 2), front(&stage, 1));
    let news = newest_words(&stage, 2);
    assert!(news.contains("- tailor: Sews what is torn."), "{news}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_I11_files_that_changed_between_two_processes_are_told_of_once() {
    let read = |name: &str| tool("Read", json!({"file_path": name}));
    let script = Script::new()
        .reply([read("a.txt"), read("b.txt"), read("c.txt"), read("d.txt")])
        .reply([tool("Edit", json!({"file_path": "d.txt", "old_string": "d", "new_string": "D"}))])
        .reply([text("One.")])
        .reply([text("Two.")])
        .reply([text("Three.")])
        .reply([text("Four.")]);
    let stage = Stage::new(script).await;
    for name in ["a", "b", "c", "d"] {
        stage.write(&format!("{name}.txt"), name);
    }
    let file = process(&stage, None, "One?", |_| {}).await;

    stage.write("a.txt", "Another text.");
    std::fs::remove_file(stage.path("b.txt")).unwrap();
    // Written anew, and the same.
    stage.write("c.txt", "c");
    process(&stage, Some(&file), "Two?", |_| {}).await;
    let news = newest_words(&stage, 4);
    assert!(news.contains("a.txt has changed on disk since you read it"), "{news}");
    assert!(news.contains("b.txt was deleted since you read it"), "{news}");
    assert!(!news.contains("c.txt") && !news.contains("d.txt"), "they are as it knows them: {news}");

    process(&stage, Some(&file), "Three?", |_| {}).await;
    assert!(!newest_words(&stage, 5).contains(".txt"), "it was told already");
    stage.write("d.txt", "Not by the model.");
    process(&stage, Some(&file), "Four?", |_| {}).await;
    let news = newest_words(&stage, 6);
    assert!(news.contains("d.txt has changed on disk") && !news.contains("a.txt"), "{news}");
    stage.assert_all_played();
}
