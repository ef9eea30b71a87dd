//! Tools that somebody else serves, and that come and go.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::command::{Command, CommandCx, CommandError, CommandSpec, Expansion};
use pelton::tools::{
    Access, InvalidInput, Output, Resource, ResultBlock, Safety, ServerState, Spec, Tool, ToolCx, ToolSearch,
    ToolServer,
};
use pelton::{Engine, Event};
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::compaction::summary;
use crate::stage::{Stage, Told, last_user_blocks, notes, results_in, resume_from, run, text_of, unmarked};

/// A server whose tools are changed by calling one of them.
pub struct Calculator {
    state: Mutex<ServerState>,
    tools: Arc<Mutex<Vec<&'static str>>>,
}

impl Calculator {
    pub fn with(state: ServerState, tools: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), tools: Arc::new(Mutex::new(tools.to_vec())) })
    }

    fn serve(&self, tools: &[&'static str]) {
        *self.state.lock().unwrap() = ServerState::Connected;
        *self.tools.lock().unwrap() = tools.to_vec();
    }
}

impl ToolServer for Calculator {
    fn name(&self) -> &str {
        "calc"
    }

    fn state(&self) -> ServerState {
        *self.state.lock().unwrap()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let names = self.tools.lock().unwrap().clone();
        let made = names.into_iter().map(|name| Key { name, tools: Arc::clone(&self.tools) });
        made.map(|key| Arc::new(key) as Arc<dyn Tool>).collect()
    }

    fn instructions(&self) -> Option<String> {
        Some("Angles are in degrees.".to_owned())
    }
}

/// Answers with its name; `swap` takes itself away and brings `add`.
struct Key {
    name: &'static str,
    tools: Arc<Mutex<Vec<&'static str>>>,
}

impl Tool for Key {
    fn spec(&self) -> Spec<'_> {
        Spec { name: self.name, description: "A key.", input_schema: r#"{"type":"object"}"# }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move {
            if self.name == "swap" {
                *self.tools.lock().unwrap() = vec!["sine", "add"];
            }
            Output::text(format!("{} was pressed", self.name))
        }
        .boxed()
    }
}

fn engine(stage: &Stage, server: &Arc<Calculator>) -> Engine {
    stage.engine_with(|options| options.servers = vec![Arc::clone(server) as Arc<dyn ToolServer>])
}

/// All tools stand in front of every request.
pub fn without_search(stage: &Stage, server: &Arc<Calculator>) -> Engine {
    stage.engine_with(|options| {
        options.servers = vec![Arc::clone(server) as Arc<dyn ToolServer>];
        options.tool_search = ToolSearch::Off;
    })
}

fn names(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn init(told: &Told) -> &pelton::event::Init {
    let init = |event: &Event| matches!(event, Event::Init(_));
    let Event::Init(init) = &told.0[told.position(init)] else { unreachable!() };
    init
}

#[tokio::test]
async fn loop_E4_the_tools_of_a_server_join_the_built_in_ones() {
    let script = Script::new().reply([tool("mcp__calc__sine", json!({}))]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let server = Calculator::with(ServerState::Connected, &["sine"]);
    let told = run(&mut engine(&stage, &server), "Compute.").await;
    told.assert_completed();

    let first = stage.request(1);
    assert_eq!(
        names(&first),
        [
            "Agent",
            "Bash",
            "Edit",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
            "SendMessage",
            "TaskOutput",
            "TaskStop",
            "WebFetch",
            "WebSearch",
            "Write",
            "ToolSearch",
            "CallTool",
            "mcp__calc__sine"
        ]
    );
    assert!(first["system"].to_string().contains("Angles are in degrees."));
    assert_eq!(results_in(&stage.request(2))[0].2, "sine was pressed");
    assert_eq!(init(&told).servers, [("calc".to_owned(), ServerState::Connected)]);
    assert!(init(&told).tools.contains(&"mcp__calc__sine".to_owned()));
    stage.assert_all_played();
}

#[tokio::test]
async fn a_rule_keeps_a_tool_of_a_server_away() {
    let stage = Stage::new(Script::new().reply([text("Done.")])).await;
    let server = Calculator::with(ServerState::Connected, &["sine", "add"]);
    let mut engine = stage.engine_with(|options| {
        options.servers = vec![server as Arc<dyn ToolServer>];
        options.rules.deny = vec!["mcp__calc__add".parse().unwrap()];
    });
    run(&mut engine, "Compute.").await.assert_completed();
    assert_eq!(names(&stage.request(1)).last(), Some(&"mcp__calc__sine"));
}

#[tokio::test]
async fn loop_E4_a_server_that_changes_its_tools_is_noticed_without_touching_the_prefix() {
    let press = |name: &str| tool(format!("mcp__calc__{name}"), json!({}));
    let script = Script::new()
        .reply([press("swap")])
        .reply([text("Something changed.")])
        .reply([press("add"), press("swap")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let server = Calculator::with(ServerState::Connected, &["sine", "swap"]);
    let mut engine = without_search(&stage, &server);

    run(&mut engine, "Swap.").await.assert_completed();
    let (first, second) = (stage.request(1), stage.request(2));
    for part in ["tools", "system"] {
        assert_eq!(first[part], second[part], "{part}");
    }
    let told = text_of(&json!(last_user_blocks(&second)));
    assert!(
        told.contains("New: mcp__calc__add (they can be called from the user's next prompt on)"),
        "{told}"
    );
    assert!(told.contains("No longer there: mcp__calc__swap."), "{told}");
    let sent = unmarked(&first)["messages"].as_array().unwrap().clone();
    assert_eq!(
        unmarked(&second)["messages"].as_array().unwrap()[..sent.len()],
        sent[..],
        "nothing is spliced in"
    );

    run(&mut engine, "Add.").await.assert_completed();
    let third = stage.request(3);
    assert_eq!(
        names(&third)[13..],
        ["mcp__calc__sine", "mcp__calc__swap", "mcp__calc__add"],
        "what is new is appended, and what was there stays where it was"
    );
    assert!(!text_of(&json!(last_user_blocks(&third))).contains("have changed"), "it was told already");
    let results = results_in(&stage.request(4));
    let (added, swapped) = (&results[results.len() - 2], &results[results.len() - 1]);
    assert_eq!((added.1, added.2.as_str()), (false, "add was pressed"));
    assert!(swapped.1 && swapped.2.contains("does not offer this tool"), "{swapped:?}");
    let prefix = notes(&engine.transcript_file().unwrap()).into_iter().find(|(kind, _)| kind == "prefix");
    assert_eq!(prefix.unwrap().1, "new or changed: mcp__calc__add", "each break of the cache has a reason");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_E4_a_server_that_is_late_is_listed_and_joins_the_next_submission() {
    let script = Script::new()
        .reply([text("Not yet.")])
        .reply([tool("mcp__calc__sine", json!({}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let server = Calculator::with(ServerState::Pending, &[]);
    let mut engine = without_search(&stage, &server);
    let told = run(&mut engine, "Compute.").await;
    assert_eq!(init(&told).servers, [("calc".to_owned(), ServerState::Pending)]);
    assert_eq!(names(&stage.request(1)).len(), 13);

    server.serve(&["sine"]);
    let told = run(&mut engine, "And now?").await;
    assert_eq!(init(&told).servers, [("calc".to_owned(), ServerState::Connected)]);
    let second = stage.request(2);
    assert_eq!(second["system"], stage.request(1)["system"], "what is said once is said once");
    let told = text_of(&json!(last_user_blocks(&second)));
    assert!(told.contains("New: mcp__calc__sine (they can be called now)"), "{told}");
    assert!(told.contains("Angles are in degrees."), "{told}");
    assert_eq!(results_in(&stage.request(3))[0].2, "sine was pressed");
    stage.assert_all_played();
}

/// Serves as many tools as somebody could want.
struct Warehouse(usize);

struct Ware(String);

impl ToolServer for Warehouse {
    fn name(&self) -> &str {
        "house"
    }

    fn state(&self) -> ServerState {
        ServerState::Connected
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        (0..self.0).map(|n| Arc::new(Ware(format!("ware_{n}"))) as Arc<dyn Tool>).collect()
    }

    fn is_always_sent(&self, tool: &str) -> bool {
        tool == "ware_7"
    }
}

impl Tool for Ware {
    fn spec(&self) -> Spec<'_> {
        const SCHEMA: &str = r#"{"type":"object","properties":{"count":{"type":"integer","description":"How many of them are to be brought, as a whole number above zero."}},"required":["count"]}"#;
        Spec {
            name: &self.0,
            description: "Brings a ware from the house, as many as there are wanted.",
            input_schema: SCHEMA,
        }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        match input["count"].as_u64() {
            Some(_) => Ok(Access::Anything),
            None => Err(InvalidInput("`count` is missing".to_owned())),
        }
    }

    fn run<'a>(&'a self, input: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move { Output::text(format!("{} × {}", input["count"], self.0)) }.boxed()
    }
}

#[tokio::test]
async fn pit_X5_tools_that_are_known_by_name_are_known_after_a_summary_too() {
    let words = "word ".repeat(2_000);
    let script = Script::new()
        .reply([text(format!("One. {words}"))])
        .reply([text(format!("Two. {words}"))])
        .reply([text("What was said, in short.")])
        .reply([text("Three.")]);
    let stage = Stage::new(script).await;
    let mut engine =
        stage.engine_with(|options| options.servers = vec![Arc::new(Warehouse(200)) as Arc<dyn ToolServer>]);
    run(&mut engine, "Go.").await.assert_completed();
    run(&mut engine, "On.").await.assert_completed();
    run(&mut engine, "/compact").await;
    run(&mut engine, "And now?").await.assert_completed();
    let sent = stage.request(4)["messages"].to_string();
    assert!(sent.contains("What was said, in short.") && !sent.contains("One. word"), "{sent}");
    assert!(sent.contains("There are further tools") && sent.contains("mcp__house__ware_199"), "{sent}");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_X5_many_tools_are_told_of_by_name_and_found_without_touching_the_prefix() {
    let by_another = json!({"name": "mcp__house__ware_12", "input": {"count": 2}});
    let script = Script::new()
        .reply([tool("ToolSearch", json!({"query": "select:mcp__house__ware_11,mcp__house__ware_12"}))
            .id("toolu_1")])
        .reply([
            tool("mcp__house__ware_11", json!({"count": 3})).id("toolu_2"),
            tool("CallTool", by_another).id("toolu_3"),
        ])
        .reply([tool("CallTool", json!({"name": "mcp__house__ware_12", "input": {}})).id("toolu_4")])
        .reply([tool("mcp__house__ware_999", json!({"count": 1})).id("toolu_5")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.servers = vec![Arc::new(Warehouse(200)) as Arc<dyn ToolServer>];
        options.mode = pelton::permission::Mode::Default;
        options.rules.allow.push("mcp__house".parse().unwrap());
        options.rules.deny.push("mcp__house__ware_13".parse().unwrap());
    });
    let told = run(&mut engine, "Fetch.").await;
    told.assert_completed();
    let first = stage.request(1);
    assert_eq!(names(&first)[13..], ["ToolSearch", "CallTool", "mcp__house__ware_7"]);
    let told_of = first["messages"].to_string();
    assert!(told_of.contains("mcp__house__ware_11") && told_of.contains("mcp__house__ware_199"));
    assert!(!told_of.contains("mcp__house__ware_13,"), "what is denied is not there");
    // What 200 tools cost in front: their names, and the two tools to find and call them.
    let shelf_bytes: usize =
        first["tools"].as_array().unwrap()[13..].iter().map(|tool| tool.to_string().len()).sum();
    let names_bytes = told_of
        .find("There are further tools")
        .map(|at| told_of[at..].find("</system-reminder>").unwrap())
        .unwrap();
    assert!((shelf_bytes + names_bytes) / 4 <= 3_000, "{shelf_bytes} + {names_bytes}");
    for nth in 2..=5 {
        for part in ["tools", "system"] {
            assert_eq!(first[part], stage.request(nth)[part], "{part} of request {nth}");
        }
    }
    let results = results_in(&stage.request(5));
    assert!(
        results[0].2.contains("\"count\"") && results[0].2.contains("mcp__house__ware_12"),
        "{}",
        results[0].2
    );
    assert_eq!((results[1].1, results[1].2.as_str()), (false, "3 × ware_11"));
    assert_eq!((results[2].1, results[2].2.as_str()), (false, "2 × ware_12"));
    assert!(
        results[3].1 && results[3].2.contains("mcp__house__ware_12 was called with unusable input"),
        "{}",
        results[3].2
    );
    assert!(results[4].1 && results[4].2.contains("No such tool available"), "{}", results[4].2);
    assert!(init(&told).tools.contains(&"mcp__house__ware_199".to_owned()));
    stage.assert_all_played();

    // What each server is said to take is what it takes of the request.
    let usage = engine.context_usage();
    let share =
        |name: &str| usage.shares.iter().find(|share| share.name == name).map_or(0, |share| share.tokens);
    let front: u64 = ["System prompt", "Built-in tools", "house"].iter().map(|name| share(name)).sum();
    assert_eq!(usage.shares.iter().map(|share| share.tokens).sum::<u64>(), usage.used_tokens);
    let tools = first["tools"].as_array().unwrap();
    let bytes = |of_server: bool| -> usize {
        let is_of = |tool: &&Value| tool["name"].as_str().unwrap().starts_with("mcp__house__") == of_server;
        tools.iter().filter(is_of).map(|tool| tool.to_string().len()).sum()
    };
    let all = (bytes(true) + bytes(false) + first["system"].to_string().len()) as f64;
    for (name, bytes) in [("house", bytes(true)), ("Built-in tools", bytes(false))] {
        let (said, taken) = (share(name) as f64 / front as f64, bytes as f64 / all);
        assert!((said - taken).abs() <= 0.02, "{name}: {said:.3} instead of {taken:.3}");
    }
}

#[tokio::test]
async fn a_late_server_is_usable_at_once_without_touching_the_prefix() {
    let script = Script::new()
        .reply([text("Not yet.")])
        .reply([tool("mcp__calc__swap", json!({})).id("toolu_1")])
        .reply([tool("mcp__calc__add", json!({})).id("toolu_2")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let server = Calculator::with(ServerState::Pending, &[]);
    let mut engine = engine(&stage, &server);
    run(&mut engine, "Compute.").await.assert_completed();
    server.serve(&["swap"]);
    run(&mut engine, "And now?").await.assert_completed();
    let second = text_of(&json!(last_user_blocks(&stage.request(2))));
    assert!(second.contains("New: mcp__calc__swap (ToolSearch shows how they are called)"), "{second}");
    let third = text_of(&json!(last_user_blocks(&stage.request(3))));
    assert!(third.contains("New: mcp__calc__sine, mcp__calc__add (ToolSearch shows"), "{third}");
    let results = results_in(&stage.request(4));
    assert_eq!(results[0].2, "swap was pressed");
    assert_eq!((results[1].1, results[1].2.as_str()), (false, "add was pressed"), "in the same submission");
    for nth in 2..=4 {
        assert_eq!(stage.request(1)["tools"], stage.request(nth)["tools"]);
    }
    assert!(notes(&engine.transcript_file().unwrap()).iter().all(|(kind, _)| kind != "prefix"));
    stage.assert_all_played();
}

#[tokio::test]
async fn an_agent_finds_the_tools_of_servers_as_well() {
    let script = Script::new()
        .reply([tool(
            "Agent",
            json!({"description": "d", "prompt": "Fetch.", "subagent_type": "general-purpose"}),
        )])
        .reply([tool("mcp__house__ware_11", json!({"count": 1})).id("toolu_2")])
        .reply([text("Fetched.")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine =
        stage.engine_with(|options| options.servers = vec![Arc::new(Warehouse(200)) as Arc<dyn ToolServer>]);
    run(&mut engine, "Delegate.").await.assert_completed();
    let agent = stage.request(2);
    assert!(names(&agent).contains(&"ToolSearch") && !names(&agent).contains(&"mcp__house__ware_11"));
    assert!(agent["messages"].to_string().contains("mcp__house__ware_11"));
    assert_eq!(results_in(&stage.request(3))[0].2, "1 × ware_11");
}

/// The same tools under another name.
struct Named(&'static str, Arc<Calculator>);

impl ToolServer for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn state(&self) -> ServerState {
        self.1.state()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.1.tools()
    }
}

fn served(name: &'static str, tools: &[&'static str]) -> Arc<dyn ToolServer> {
    Arc::new(Named(name, Calculator::with(ServerState::Connected, tools)))
}

#[tokio::test]
async fn servers_come_and_go_while_a_session_runs_and_only_the_first_changes_what_stands_in_front() {
    let press = |name: &str| tool(format!("mcp__{name}"), json!({}));
    let script = Script::new()
        .reply([text("Alone.")])
        .reply([press("one__sine")])
        .reply([text("One.")])
        .reply([press("two__add"), press("one__sine")])
        .reply([text("Two.")])
        .reply([press("two__add"), press("one__sine"), press("one__cosine")])
        .reply([text("Gone.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Alone?").await.assert_completed();
    let alone = names(&stage.request(1)).len();

    let servers = engine.servers();
    assert!(servers.put(served("one", &["sine"])).unwrap().is_none());
    let told = run(&mut engine, "One.").await;
    assert_eq!(init(&told).servers, [("one".to_owned(), ServerState::Connected)]);
    let second = stage.request(2);
    assert_eq!(names(&second)[alone..], ["ToolSearch", "CallTool", "mcp__one__sine"], "appended, and once");
    assert_eq!(names(&second)[..alone], names(&stage.request(1))[..]);
    assert_eq!(results_in(&stage.request(3))[0].2, "sine was pressed");

    servers.put(served("two", &["add"])).unwrap();
    run(&mut engine, "Two.").await.assert_completed();
    let fourth = stage.request(4);
    assert_eq!((&fourth["tools"], &fourth["system"]), (&second["tools"], &second["system"]));
    let told = text_of(&json!(last_user_blocks(&fourth)));
    assert!(told.contains("New: mcp__two__add (ToolSearch shows how they are called)"), "{told}");
    let results = results_in(&stage.request(5));
    assert_eq!(results[results.len() - 2].2, "add was pressed");

    // One is replaced, the other is taken away.
    assert!(servers.put(served("one", &["sine", "cosine"])).unwrap().is_some());
    assert!(servers.remove("two").is_some() && servers.remove("two").is_none());
    let told = run(&mut engine, "And now?").await;
    assert_eq!(init(&told).servers, [("one".to_owned(), ServerState::Connected)]);
    let listed = &init(&told).tools;
    assert!(
        listed.contains(&"mcp__one__cosine".to_owned()) && !listed.iter().any(|name| name.contains("two"))
    );
    let sixth = stage.request(6);
    assert_eq!((&sixth["tools"], &sixth["system"]), (&second["tools"], &second["system"]));
    let told = text_of(&json!(last_user_blocks(&sixth)));
    assert!(told.contains("The server two is no longer part of this session."), "{told}");
    assert!(told.contains("No longer there: mcp__two__add."), "{told}");
    let results = results_in(&stage.request(7));
    let [gone, kept, new] = &results[results.len() - 3..] else { panic!("{results:?}") };
    assert!(gone.1 && gone.2.contains("the server two is no longer part of this session"), "{gone:?}");
    assert_eq!((kept.2.as_str(), new.2.as_str()), ("sine was pressed", "cosine was pressed"));
    stage.assert_all_played();
}

/// A server that has something to read, and a prompt.
struct Shop(ServerState);

impl ToolServer for Shop {
    fn name(&self) -> &str {
        "shop"
    }

    fn state(&self) -> ServerState {
        self.0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn has_resources(&self) -> bool {
        true
    }

    fn resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, String>> {
        let resource = Resource {
            uri: "shop://prices".to_owned(),
            name: "prices".to_owned(),
            description: None,
            media_type: Some("text/plain".to_owned()),
        };
        async { Ok(vec![resource]) }.boxed()
    }

    fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Vec<ResultBlock>, String>> {
        async move {
            match uri {
                "shop://prices" => Ok(vec![ResultBlock::Text("milk: 1.20".to_owned())]),
                _ => Err("no such thing".to_owned()),
            }
        }
        .boxed()
    }

    fn commands(&self) -> Vec<Arc<dyn Command>> {
        vec![Arc::new(Advice)]
    }
}

struct Advice;

impl Command for Advice {
    fn spec(&self) -> CommandSpec<'_> {
        CommandSpec { name: "mcp__shop__advice", description: "Advises.", argument_hint: "<what>" }
    }

    fn expand<'a>(
        &'a self,
        arguments: &'a str,
        _: &'a CommandCx<'_>,
    ) -> BoxFuture<'a, Result<Expansion, CommandError>> {
        async move { Ok(Expansion::prompt(format!("Should I buy {arguments}?"))) }.boxed()
    }
}

#[tokio::test]
async fn what_servers_have_to_read_is_listed_read_and_mentioned_and_their_prompts_are_commands() {
    let script = Script::new()
        .reply([
            tool("ListMcpResourcesTool", json!({})),
            tool("ReadMcpResourceTool", json!({"server": "shop", "uri": "shop://prices"})),
            tool("ReadMcpResourceTool", json!({"server": "shop", "uri": "shop://nothing"})),
            tool("ReadMcpResourceTool", json!({"server": "other", "uri": "shop://prices"})),
            tool("ReadMcpResourceDirTool", json!({"server": "shop", "uri": "shop://"})),
        ])
        .reply([text("Done.")])
        .reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.servers = vec![Arc::new(Shop(ServerState::Connected)) as Arc<dyn ToolServer>];
    });
    let told = run(&mut engine, "What costs what in @shop:shop://prices, and @shop:shop://nothing?").await;
    told.assert_completed();
    assert!(init(&told).commands.iter().any(|command| command.name == "mcp__shop__advice"));
    let first = stage.request(1);
    assert_eq!(
        names(&first)[15..],
        ["ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool"]
    );
    let asked = first["messages"].to_string();
    assert!(asked.contains("milk: 1.20") && !asked.contains("prices was not attached"), "{asked}");
    assert!(asked.contains("@shop:shop://nothing was not attached: no such thing"), "{asked}");
    let results = results_in(&stage.request(2));
    assert!(
        results[0].2.contains(r#""uri":"shop://prices""#) && results[0].2.contains("text/plain"),
        "{results:?}"
    );
    assert_eq!((results[1].1, results[1].2.as_str()), (false, "milk: 1.20"));
    assert!(results[2].1 && results[2].2.contains("no such thing"), "{results:?}");
    assert!(results[3].1 && results[3].2.contains("There are: shop."), "{results:?}");
    assert!(!results[4].1 && results[4].2.contains(r#""uri":"shop://prices""#), "{results:?}");

    run(&mut engine, "/mcp__shop__advice milk").await.assert_completed();
    let asked = text_of(&json!(last_user_blocks(&stage.request(3))));
    assert!(asked.contains("Should I buy milk?"), "{asked}");
    stage.assert_all_played();
}

#[tokio::test]
async fn a_rule_that_keeps_a_server_away_keeps_its_resources_away_and_later_ones_go_on_the_shelf() {
    let reads = || tool("ReadMcpResourceTool", json!({"server": "shop", "uri": "shop://prices"}));
    let script = Script::new().reply([reads()]).reply([text("No.")]);
    let stage = Stage::new(script).await;
    let mut denied = stage.engine_with(|options| {
        options.servers = vec![Arc::new(Shop(ServerState::Connected)) as Arc<dyn ToolServer>];
        options.rules.deny = vec!["mcp__shop".parse().unwrap()];
    });
    run(&mut denied, "Read @shop:shop://prices").await.assert_completed();
    let first = stage.request(1);
    assert!(!names(&first).iter().any(|name| name.contains("Resource")));
    assert!(!first["messages"].to_string().contains("milk: 1.20"));
    assert!(results_in(&stage.request(2))[0].1);

    let script = Script::new().reply([text("Nothing.")]).reply([reads()]).reply([text("Milk.")]);
    let stage = Stage::new(script).await;
    let server = Calculator::with(ServerState::Connected, &["sine"]);
    let mut engine = engine(&stage, &server);
    run(&mut engine, "Go.").await.assert_completed();
    engine.servers().put(Arc::new(Shop(ServerState::Connected))).unwrap();
    run(&mut engine, "And now?").await.assert_completed();
    assert_eq!(stage.request(2)["tools"], stage.request(1)["tools"]);
    let told = text_of(&json!(last_user_blocks(&stage.request(2))));
    assert!(told.contains("Servers have something to read: ListMcpResourcesTool"), "{told}");
    assert_eq!(results_in(&stage.request(3))[0].2, "milk: 1.20");
}

#[tokio::test]
async fn pit_X5_what_a_summary_could_not_tell_is_told_when_its_server_is_there() {
    let script = Script::new()
        .reply([text("One. ".repeat(2_000)), tool("Glob", json!({"pattern": "*"}))])
        .reply([text("One and a half.")])
        .step(summary("It was counted."))
        .reply([text("Two.")])
        .reply([text("Three.")]);
    let stage = Stage::new(script).await;
    let with = |options: &mut pelton::Options, server: &Arc<Calculator>| {
        options.servers = vec![Arc::clone(server) as Arc<dyn ToolServer>];
        options.tool_search = ToolSearch::Always;
    };
    let server = Calculator::with(ServerState::Connected, &["sine"]);
    let mut first = stage.engine_with(|options| with(options, &server));
    run(&mut first, "One?").await.assert_completed();
    let file = first.transcript_file().unwrap();
    drop(first);

    // Another process sums up while the server is on its way, and goes on when it has come.
    let server = Calculator::with(ServerState::Pending, &[]);
    let mut second = stage.engine_with(|options| {
        with(options, &server);
        resume_from(options, &file);
    });
    assert!(!run(&mut second, "/compact").await.outcome().is_error);
    server.serve(&["sine"]);
    let told = |nth| stage.request(nth)["messages"].to_string().matches("mcp__calc__sine").count();
    run(&mut second, "Two?").await.assert_completed();
    assert_eq!(told(4), 1, "{}", stage.request(4)["messages"]);
    run(&mut second, "Three?").await.assert_completed();
    assert_eq!(told(5), 1);
    stage.assert_all_played();
}
