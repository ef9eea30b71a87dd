//! Sub-agents: a loop of their own, for one call of a tool.

mod beside; // those that nobody waits for
mod limits; // depth, width, total; interrupts
mod money; // one purse for all of them
mod places; // checkouts, notes and skills of their own
mod rights; // rules, modes, hooks and askers of the parent

use std::sync::Arc;

use pelton::event::{AgentEnd, AgentEvent, AgentFacts, AgentNews};
use pelton::history::Kind;
use pelton::permission::Mode;
use pelton::tools::AgentDefinition;
use pelton::{Event, Terminal};
use pelton_testkit::{Part, Script, Step, When, error, gate, text, tool};
use serde_json::{Value, json};

use crate::probe::Notes;
use crate::stage::{Stage, Told, lines, results_in, run, until};

/// Words of the built-in agent's system prompt.
pub const CHILD: &str = "working for another agent";

/// A request of an agent with this task.
pub fn child(task: &str) -> When {
    When::any().system(CHILD).last_user_text(task)
}

pub fn start(id: &str, task: &str) -> Part {
    tool("Agent", json!({"description": format!("do {task}"), "prompt": task})).id(id)
}

/// What was told about agents.
pub fn news(told: &Told) -> Vec<&AgentEvent> {
    let mut news = Vec::new();
    for event in &told.0 {
        if let Event::Agent(told) = event {
            news.push(told);
        }
    }
    news
}

/// The agent a call started.
#[track_caller]
pub fn agent_of(told: &Told, call: &str) -> Arc<AgentFacts> {
    let found = news(told).into_iter().find(|news| &*news.agent.call == call);
    Arc::clone(&found.unwrap_or_else(|| panic!("no agent of {call}")).agent)
}

/// How each agent ended, by the call that started it.
pub fn ends(told: &Told) -> Vec<(String, AgentEnd)> {
    let ended = |news: &&AgentEvent| match news.news {
        AgentNews::Ended { end, .. } => Some((news.agent.call.to_string(), end)),
        _ => None,
    };
    news(told).iter().filter_map(ended).collect()
}

#[tokio::test]
async fn what_an_agent_is_refused_is_in_the_result_of_its_turn() {
    let agent = tool("Agent", json!({"description": "Look", "prompt": "Look.", "run_in_background": false}));
    let script = Script::new()
        .reply([agent])
        .reply([tool("Bash", json!({"command": "touch made"}))])
        .reply([text("I may not.")])
        .reply([text("It may not.")])
        .reply([text("Well.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.mode = Mode::Default);
    let told = run(&mut engine, "Look.").await;
    let denied: Vec<&str> = told.outcome().denials.iter().map(|denial| &*denial.tool).collect();
    assert_eq!(denied, ["Bash"]);
    assert!(run(&mut engine, "And?").await.outcome().denials.is_empty());
}

#[tokio::test]
async fn loop_Z6_loop_E5_an_agent_runs_a_loop_of_its_own_and_its_messages_name_the_call() {
    let script = Script::new()
        .reply([text("Asking."), start("toolu_a", "find the word")])
        .step(Step::reply([tool("Read", json!({"file_path": "word.txt"})).id("toolu_r")]).when(child("find")))
        .step(
            Step::reply([text("The word is plover.")])
                .when(When::any().last_tool_result("plover").system(CHILD)),
        )
        .step(
            Step::reply([text("It is plover.")]).when(When::any().tool("Agent").last_tool_result("plover")),
        );
    let stage = Stage::new(script).await;
    stage.write("word.txt", "plover\n");
    let mut engine = stage.engine();

    let told = run(&mut engine, "Which word?").await;

    assert_eq!(told.assert_completed().text, "It is plover.");
    // The agent has the task and its surroundings, and nothing of the conversation.
    let first = stage.request(2);
    assert!(!first.to_string().contains("Which word?"), "{first:#}");
    assert_eq!(first["messages"].as_array().unwrap().len(), 1);
    // The parent has the report, and nothing of what led to it.
    let last = stage.request(4);
    assert_eq!(results_in(&last), [("toolu_a".to_owned(), false, "The word is plover.".to_owned())]);
    assert!(!last.to_string().contains("toolu_r"));
    // What it tells comes out of the parent's stream while it runs, marked with the call.
    let agent = agent_of(&told, "toolu_a");
    assert_eq!((agent.agent_type.as_str(), agent.prompt.as_str()), ("general-purpose", "find the word"));
    let kinds: Vec<&str> = news(&told)
        .iter()
        .filter_map(|news| match &news.news {
            AgentNews::Started => Some("started"),
            AgentNews::Told(event) => match &**event {
                Event::Prompt(_) => Some("prompt"),
                Event::Message(entry) => match entry.kind {
                    Kind::Assistant { .. } => Some("answer"),
                    Kind::ToolResult { .. } => Some("result"),
                    Kind::Prompt { .. } => Some("words"),
                },
                Event::Result(_) | Event::Delta(_) => panic!("{event:?}"),
                _ => None,
            },
            AgentNews::Progress { .. } => Some("progress"),
            AgentNews::Ended { .. } => Some("ended"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["started", "prompt", "answer", "progress", "result", "answer", "ended"]);
    let ended = told
        .position(|event| matches!(event, Event::Agent(AgentEvent { news: AgentNews::Ended { .. }, .. })));
    assert!(ended < told.position(|event| crate::stage::is_result_of(event, "toolu_a")));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z6_an_agent_is_recorded_beside_its_session_and_counted_in_its_cost() {
    let script = Script::new()
        .reply([start("toolu_a", "count")])
        .step(Step::reply([tool("Glob", json!({"pattern": "*"}))]).when(child("count")))
        .step(Step::reply([text("Two.")]).when(When::any().system(CHILD)).usage("output_tokens", 50))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let outcome = told.assert_completed().clone();
    let file = engine.transcript_file().unwrap();
    let agent = agent_of(&told, "toolu_a");
    let folder = file.with_extension("").join("subagents");
    let record = lines(&folder.join(format!("agent-{}.jsonl", agent.id)));
    assert!(record.iter().all(|line| line["isSidechain"] == true), "{record:#?}");
    assert!(record.iter().all(|line| line["agentId"] == agent.id.as_str()));
    assert!(record.iter().all(|line| line["sessionId"] == engine.session_id().to_string()));
    assert!(record.iter().any(|line| line["message"]["content"][0]["text"] == "count"));
    assert!(lines(&file).iter().all(|line| line["isSidechain"] == false));
    let meta = std::fs::read_to_string(folder.join(format!("agent-{}.meta.json", agent.id))).unwrap();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    assert_eq!((&meta["agentType"], &meta["toolUseId"]), (&json!("general-purpose"), &json!("toolu_a")));

    // The structured answer tells what it took.
    let results = told.entries();
    let result = results.iter().find(|entry| matches!(entry.kind, Kind::ToolResult { .. })).unwrap();
    let detail: Value = serde_json::from_slice(result.detail.as_ref().unwrap()).unwrap();
    assert_eq!((&detail["status"], &detail["agentId"]), (&json!("completed"), &json!(agent.id)));
    assert_eq!(detail["content"], json!([{"type": "text", "text": "Two."}]));
    assert_eq!(
        (&detail["totalToolUseCount"], &detail["resolvedModel"]),
        (&json!(1), &json!("claude-sonnet-5-5"))
    );
    let own = detail["usage"]["output_tokens"].as_u64().unwrap();
    assert!(own >= 50);
    // Of the session's sum, the main loop's own usage is the rest.
    let all = &outcome.by_model["claude-sonnet-5-5"].usage;
    assert_eq!(all.output_tokens, outcome.usage.output_tokens + own);
    assert_eq!(outcome.num_turns, 2, "an agent's messages are not the user's");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z6_agents_of_one_answer_run_side_by_side_and_are_answered_in_order() {
    let script = Script::new()
        .reply([start("toolu_a", "first"), start("toolu_b", "second")])
        .step(Step::reply([gate("a"), text("One.")]).when(child("first")))
        .step(Step::reply([gate("b"), text("Two.")]).when(child("second")))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let mut events = engine.submit(crate::stage::prompt("Go."));
    let both = async {
        stage.model.wait_at_gate("a").await;
        stage.model.wait_at_gate("b").await;
    };
    let (mut told, ()) = crate::stage::pulling(&mut events, both).await;
    // The second is done first.
    stage.model.open("b");
    told.extend(
        until(
            &mut events,
            |event| matches!(event, Event::Agent(told) if matches!(told.news, AgentNews::Ended { .. })),
        )
        .await,
    );
    stage.model.open("a");
    told.extend(crate::stage::rest(&mut events).await);
    let told = Told(told);
    told.assert_completed();
    assert_eq!(
        ends(&told),
        [("toolu_b".to_owned(), AgentEnd::Completed), ("toolu_a".to_owned(), AgentEnd::Completed)]
    );
    assert_eq!(told.results(), ["toolu_a", "toolu_b"]);
    drop(events);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_E5_definitions_say_what_an_agent_is_told_has_and_asks() {
    let script = Script::new()
        .reply([tool("Task", json!({"description": "look", "prompt": "Look.", "subagent_type": "scout"}))])
        .step(
            Step::reply([tool("Change", json!({"name": "no"}))])
                .when(When::any().system("You are a scout").model("claude-haiku-5-5")),
        )
        .step(Step::reply([text("Seen.")]).when(When::any().system("You are a scout")))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(calls.tools());
        let mut scout = AgentDefinition::new("scout", "Looks around.", "You are a scout.");
        scout.tools = Some(vec!["Look".to_owned(), "Read".to_owned(), "Change".to_owned()]);
        scout.disallowed_tools = vec!["Change".to_owned()];
        scout.model = Some("haiku".to_owned());
        options.agents.push(scout);
    });

    let told = run(&mut engine, "Go.").await;

    told.assert_completed();
    let Some(Event::Init(init)) = told.0.first() else { panic!("{:?}", told.0.first()) };
    assert_eq!(init.agents, ["general-purpose", "Explore", "Plan", "scout"]);
    let main = stage.request(1);
    let agent = main["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "Agent").unwrap();
    assert!(
        agent["description"].as_str().unwrap().contains("- scout: Looks around. (tools: Look, Read, Change)")
    );
    let scouts = stage.request(2);
    let names: Vec<&Value> = scouts["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["Read", "Look"], "no more than it lists, and nothing that it must not have");
    let [(_, is_error, words)] = &results_in(&stage.request(3))[..] else { panic!() };
    assert!(is_error & words.contains("No such tool"), "{words}");
    assert!(calls.all().is_empty());
    assert!(told.outcome().by_model.contains_key("claude-haiku-5-5"));
    stage.assert_all_played();
}

#[tokio::test]
async fn an_agent_has_no_tool_that_waits_for_what_runs_beside_it() {
    let order = json!({"description": "x", "prompt": "Dig.", "subagent_type": "general-purpose"});
    let script = Script::new()
        .step(Step::reply([text("Gold.")]).when(When::any().last_user_text("Dig.")))
        .reply([tool("Agent", order)])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    run(&mut stage.engine(), "Go.").await.assert_completed();
    let has = |at: usize, name: &str| {
        stage.request(at)["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name)
    };
    assert_eq!((has(1, "TaskOutput"), has(2, "TaskOutput")), (true, false));
    assert!(has(2, "TaskStop") && has(2, "Bash"), "it may start such things, and end them");
}

#[tokio::test]
async fn loop_E5_without_agents_there_is_no_tool_and_an_unknown_one_is_named() {
    let stage = Stage::new(Script::new().reply([text("Hi.")])).await;
    let mut engine = stage.engine_with(|options| options.agents.clear());
    run(&mut engine, "Hi.").await.assert_completed();
    assert!(!stage.request(1)["tools"].to_string().contains("\"Agent\""));

    // Denied by either of its names, it is not offered.
    for rule in ["Agent", "Task"] {
        let stage = Stage::new(Script::new().reply([text("Hi.")])).await;
        let mut engine = stage.engine_with(|options| options.rules.deny.push(rule.parse().unwrap()));
        run(&mut engine, "Hi.").await.assert_completed();
        assert!(!stage.request(1)["tools"].to_string().contains("\"Agent\""), "{rule}");
    }

    let script = Script::new()
        .reply([tool("Agent", json!({"description": "x", "prompt": "y", "subagent_type": "boss"}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    run(&mut stage.engine(), "Go.").await.assert_completed();
    let [(_, true, words)] = &results_in(&stage.request(2))[..] else { panic!() };
    assert!(words.contains("general-purpose"), "{words}");
}

#[tokio::test]
async fn loop_Z6_a_fork_knows_everything_and_reads_its_parents_cache() {
    let prompt = "Remember the word plover. ".repeat(400);
    let script = Script::new()
        .reply([text("I will."), tool("Glob", json!({"pattern": "*"}))])
        .reply([tool(
            "Agent",
            json!({"description": "recall", "prompt": "Say it.", "subagent_type": "fork"}),
        )
        .id("toolu_f")])
        .step(Step::reply([text("Plover.")]).when(When::any().last_user_text("Say it")))
        .step(Step::reply([text("Done.")]).when(When::any().last_tool_result("Plover")));
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine(), &prompt).await;
    told.assert_completed();
    let (parent, fork) = (stage.request(2), stage.request(3));
    assert_eq!((&fork["system"], &fork["tools"]), (&parent["system"], &parent["tools"]));
    let (said, known) = (parent["messages"].as_array().unwrap(), fork["messages"].as_array().unwrap());
    let plain = |messages: &[Value]| messages.iter().map(crate::stage::unmarked).collect::<Vec<_>>();
    assert_eq!(plain(&known[..said.len()]), plain(said), "it starts from what was said");
    assert_eq!(results_in(&fork).last().unwrap().0, "toolu_f");
    let reply = stage.model.reply_requests()[2].reply.usage.clone().unwrap();
    let read = reply["cache_read_input_tokens"].as_u64().unwrap();
    assert!(read > 2_000, "the server has the prefix: {read}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z6_a_session_that_crashed_in_an_agent_goes_on() {
    let script = Script::new()
        .reply([start("toolu_a", "hang")])
        .step(Step::reply([text("Half"), gate("never")]).when(child("hang")))
        .reply([text("Back.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let file = engine.transcript_file().unwrap();
    {
        let mut events = engine.submit(crate::stage::prompt("Go."));
        let (_, ()) = crate::stage::pulling(&mut events, stage.model.wait_at_gate("never")).await;
        // Dropped where it stands, as a killed process would leave it.
    }
    drop(engine);
    let told = run(&mut stage.resume(&file), "Go on.").await;
    told.assert_completed();
    let results = results_in(&stage.request(3));
    assert_eq!((results.len(), results[0].0.as_str(), results[0].1), (1, "toolu_a", true));
    stage.model.assert_clean();
}

#[tokio::test]
async fn loop_Z6_however_an_agent_ends_there_is_one_outcome_that_says_why() {
    // (what the model does, a word of the outcome)
    let endings: Vec<(Vec<Step>, &str)> = vec![
        (vec![Step::reply([text("Fine.")])], "Fine."),
        (vec![Step::status(400).message("no such thing")], "no such thing"),
        (
            vec![
                Step::reply([text("Half."), tool("Glob", json!({"pattern": "*"}))]),
                Step::status(400).message("gone"),
            ],
            "Half.",
        ),
        (vec![Step::reply([tool("Glob", json!({"pattern": "*"}))]).times(3)], "within its 3 turns"),
        (vec![Step::reply([text("No.")]).stop("refusal")], "declined"),
        (
            vec![
                Step::reply([tool("Write", json!({"file_path": "/etc/x", "content": ""}))]),
                Step::reply([text("It was denied.")]),
            ],
            "It was denied.",
        ),
    ];
    for (steps, word) in endings {
        let mut script = Script::new().reply([start("toolu_a", "task")]);
        for step in steps {
            script = script.step(step.when(When::any().system(CHILD)));
        }
        let stage = Stage::new(script.reply([text("Done.")])).await;
        let mut engine = stage.engine_with(|options| {
            options.mode = pelton::permission::Mode::Default;
            options.agent_limits.turns_max = 3;
        });
        let told = run(&mut engine, "Go.").await;
        told.assert_completed();
        let results = results_in(&stage.request(stage.request_count()));
        let [(id, is_error, words)] = &results[..] else { panic!("{word}: {results:?}") };
        assert_eq!(id, "toolu_a");
        assert!(words.contains(word), "{word}: {words}");
        assert_eq!(ends(&told).len(), 1, "{word}");
        let completed = ends(&told)[0].1 == AgentEnd::Completed;
        assert_eq!(*is_error, !completed, "{words}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn a_silent_agent_is_given_up() {
    let script = Script::new()
        .reply([start("toolu_a", "hang")])
        .step(Step::reply([gate("never")]).when(child("hang")))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.agent_limits.silent_max = std::time::Duration::from_millis(150);
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::Completed);
    let [(_, true, words)] = &results_in(&stage.request(3))[..] else { panic!() };
    assert!(words.contains("given up"), "{words}");
}

#[tokio::test]
async fn what_an_agent_is_doing_is_told_every_now_and_then_if_it_does_something() {
    let line = |words: &str| Step::reply([text(words)]).when(When::any().model("haiku"));
    for wanted in [true, false] {
        let script = Script::new()
            .step(line("\"Waiting for the kettle\"\nand more"))
            .step(line("never asked for"))
            .reply([start("toolu_a", "brew")])
            .step(Step::reply([tool("Bash", json!({"command": "sleep 0.4 # KETTLE"}))]).when(child("brew")))
            .reply([text("Brewed.")])
            .reply([text("Done.")]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            options.agent_progress_summaries = wanted;
            options.agent_limits.progress_every = std::time::Duration::from_millis(50);
            options.rules.allow = vec!["Bash".parse().unwrap()];
        });
        let told = run(&mut engine, "Go.").await;
        assert_eq!(told.outcome().terminal, Terminal::Completed);
        let doing = |news: &&AgentEvent| match &news.news {
            AgentNews::Doing { summary, done } => Some((summary.clone(), done.tool_calls)),
            _ => None,
        };
        let told: Vec<(String, u32)> = news(&told).iter().filter_map(doing).collect();
        let asked: Vec<_> = stage.model.reply_requests().into_iter().map(|seen| seen.body).collect();
        let asked: Vec<_> =
            asked.iter().filter(|body| body["model"].as_str().unwrap().contains("haiku")).collect();
        if wanted {
            // One call is worth one line, however long it takes.
            assert_eq!(told, [("Waiting for the kettle".to_owned(), 1)]);
            assert_eq!(asked.len(), 1);
            let said = asked[0]["messages"].to_string();
            assert!(said.contains("KETTLE") && said.contains("do brew"), "{said}");
        } else {
            assert!(told.is_empty() && asked.is_empty());
        }
    }
}

#[tokio::test]
async fn loop_P8_loop_Z6_what_an_agent_took_back_it_neither_did_nor_said() {
    const SECOND: &str = "claude-opus-5-5";
    let first = || When::any().system(CHILD).model("sonnet");
    let half = [tool("Read", json!({"file_path": "word.txt"})), error("overloaded_error", "")];
    let script = Script::new()
        .reply([start("toolu_a", "find the word")])
        .step(Step::status(529).times(2).when(first()))
        .step(Step::reply(half).when(first()))
        .step(Step::reply([text("It is plover.")]).when(When::any().system(CHILD).model(SECOND)))
        .step(Step::reply([text("Done.")]).when(When::any().tool("Agent")));
    let stage = Stage::new(script).await;
    stage.write("word.txt", "plover\n");
    let mut engine = stage.engine_with(|options| options.fallback_models = vec![SECOND.to_owned()]);
    let told = run(&mut engine, "Find it.").await;
    told.assert_completed();
    let calls: Vec<u32> = news(&told)
        .iter()
        .filter_map(|news| match &news.news {
            AgentNews::Progress { done, .. } | AgentNews::Ended { done, .. } => Some(done.tool_calls),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [1, 0], "it counts while it may count");
    stage.assert_all_played();
}
