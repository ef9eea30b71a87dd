//! Tools that somebody else serves, and that come and go.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::tools::{Access, InvalidInput, Output, Safety, ServerState, Spec, Tool, ToolCx, ToolServer};
use pelton::{Engine, Event};
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, Told, last_user_blocks, notes, results_in, run, text_of, unmarked};

/// A server whose tools are changed by calling one of them.
struct Calculator {
    state: Mutex<ServerState>,
    tools: Arc<Mutex<Vec<&'static str>>>,
}

impl Calculator {
    fn with(state: ServerState, tools: &[&'static str]) -> Arc<Self> {
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
            "TaskOutput",
            "TaskStop",
            "TodoWrite",
            "WebFetch",
            "WebSearch",
            "Write",
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
    let mut engine = engine(&stage, &server);

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
    let mut engine = engine(&stage, &server);
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
