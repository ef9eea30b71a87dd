//! Sub-agents, as clients of the command see them.

use pelton_testkit::{Part, Script, Step, When, error, gate, text, tool};
use serde_json::{Value, json};

use crate::frames::STREAM;
use crate::place::{Commanded, Place, Ran, lines_of, model, of_type};
use crate::talk::Talk;

/// Words of the built-in agent's system prompt.
const CHILD: &str = "working for another agent";

fn start(id: &str, task: &str) -> Part {
    tool("Agent", json!({"description": format!("do {task}"), "prompt": task})).id(id)
}

fn run(script: Script, words: &[&str]) -> (Place, Ran) {
    let (place, model) = (Place::new(), model(script));
    let ran = place.task(&model, ["hi"].into_iter().chain(words.iter().copied()).chain(STREAM)).run();
    model.assert_clean();
    (place, ran)
}

/// What a frame is, in a word or two.
fn kind(frame: &Value) -> String {
    let block = frame["message"]["content"][0]["type"].as_str().unwrap_or_default();
    let subtype = frame["subtype"].as_str().unwrap_or_default();
    let own = if frame["parent_tool_use_id"].is_string() { "agent: " } else { "" };
    format!("{own}{} {subtype}{block}", frame["type"].as_str().unwrap())
}

fn looks_and_reports() -> Script {
    Script::new()
        .reply([start("toolu_a", "look")])
        .step(
            Step::reply([text("Let me see."), tool("Glob", json!({"pattern": "*"})).id("toolu_g")])
                .when(When::any().system(CHILD).last_user_text("look")),
        )
        .step(Step::reply([text("Nothing there.")]).when(When::any().system(CHILD)))
        .reply([text("Done.")])
}

#[test]
fn loop_Z6_frames_of_an_agent_name_the_call_and_stand_between_its_beginning_and_its_end() {
    let (place, ran) = run(looks_and_reports(), &[]);
    assert_eq!(ran.well(), ran.out);
    let frames = ran.frames();
    let kinds: Vec<String> = frames.iter().map(kind).collect();
    let expected = [
        "system init",
        "assistant tool_use",
        "system task_started",
        "agent: user text",
        "agent: assistant tool_use",
        "system task_progress",
        "agent: user tool_result",
        "system task_updated",
        "system task_notification",
        "user tool_result",
        "assistant text",
        "result success",
    ];
    assert_eq!(kinds, expected);
    let init = &frames[0];
    assert_eq!(init["agents"], json!(["general-purpose", "Explore", "Plan"]));
    assert!(init["tools"].as_array().unwrap().contains(&json!("Task")), "{init}");
    assert!(!init["tools"].as_array().unwrap().contains(&json!("Agent")), "{init}");
    let started = &frames[2];
    let id = started["task_id"].as_str().unwrap();
    assert_eq!(
        (&started["tool_use_id"], &started["description"], &started["task_type"], &started["prompt"]),
        (&json!("toolu_a"), &json!("do look"), &json!("local_agent"), &json!("look"))
    );
    for frame in frames.iter().filter(|frame| frame["parent_tool_use_id"].is_string()) {
        assert_eq!(frame["parent_tool_use_id"], "toolu_a");
        assert_eq!(
            (&frame["subagent_type"], &frame["task_description"]),
            (&json!("general-purpose"), &json!("do look"))
        );
        assert_eq!(frame["session_id"], init["session_id"]);
    }
    assert_eq!((&frames[5]["last_tool_name"], &frames[5]["usage"]["tool_uses"]), (&json!("Glob"), &json!(1)));
    assert_eq!(frames[7]["patch"]["status"], "completed");
    assert_eq!((&frames[8]["status"], &frames[8]["task_id"]), (&json!("completed"), &json!(id)));
    let detail = &frames[9]["tool_use_result"];
    assert_eq!(
        (&detail["status"], &detail["agentId"], &detail["totalToolUseCount"]),
        (&json!("completed"), &json!(id), &json!(1))
    );
    assert_eq!(
        detail["toolStats"],
        json!({"readCount": 0, "searchCount": 1, "bashCount": 0, "editFileCount": 0, "linesAdded": 0,
            "linesRemoved": 0, "otherToolCount": 0})
    );
    assert_eq!(frames[9]["message"]["content"][0]["content"][0]["text"], "Nothing there.");
    assert_eq!(ran.result()["num_turns"], 2);

    // Its record is where clients look for it, and does not count as a session.
    let [file] = &place.transcripts()[..] else { panic!("{:?}", place.transcripts()) };
    let record = lines_of(&file.with_extension("").join(format!("subagents/agent-{id}.jsonl")));
    assert!(
        record.len() > 3
            && record
                .iter()
                .filter(|line| line.get("uuid").is_some())
                .all(|line| line["isSidechain"] == true)
    );
}

#[test]
fn words_of_agents_are_told_to_those_who_ask() {
    let words = |ran: &Ran| {
        let frames = ran.frames();
        let told =
            of_type(&frames, "assistant").into_iter().filter(|frame| frame["parent_tool_use_id"].is_string());
        told.filter_map(|frame| frame["message"]["content"][0]["text"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&run(looks_and_reports(), &[]).1), [""; 0]);
    assert_eq!(
        words(&run(looks_and_reports(), &["--forward-subagent-text"]).1),
        ["Let me see.", "Nothing there."]
    );
}

#[test]
fn loop_E5_tools_that_are_chosen_decide_whether_there_are_agents() {
    let offered = |words: &[&str]| {
        let (_, ran) = run(Script::new().reply([text("Hi.")]), words);
        let init = ran.frames()[0].clone();
        (init["tools"].as_array().unwrap().contains(&json!("Task")), init["agents"].as_array().unwrap().len())
    };
    assert_eq!(offered(&[]), (true, 3));
    assert_eq!(offered(&["--tools", "Read,Task"]), (true, 3));
    assert_eq!(offered(&["--tools", "Read"]), (false, 0));
    assert!(!offered(&["--disallowedTools", "Task"]).0);
}

fn spends_with_five_children(output_tokens: u64) -> Script {
    let priced = |step: Step| {
        step.usage("input_tokens", 1_000)
            .usage("cache_creation_input_tokens", 0)
            .usage("cache_read_input_tokens", 0)
            .usage("output_tokens", output_tokens)
    };
    let calls: Vec<Part> = (1..=5).map(|n| start(&format!("toolu_{n}"), &format!("task {n}"))).collect();
    let look = || Step::reply([tool("Glob", json!({"pattern": "*"}))]);
    Script::new()
        .step(priced(look()))
        .step(priced(Step::reply(calls)))
        .step(priced(look()).when(When::any().system(CHILD)).always())
        .step(priced(Step::reply([text("Done.")])).always())
}

#[test]
fn pit_B1_loop_B1_a_budget_is_shared_by_parallel_children_and_ends_in_one_result() {
    // 30 cents for each answer, at ten dollars for a million tokens.
    let (_, ran) =
        run(spends_with_five_children(30_000), &["--max-budget-usd", "1", "--include-loop-events"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result = ran.result();
    assert_eq!(
        (&result["subtype"], &result["terminal_reason"]),
        (&json!("error_max_budget_usd"), &json!("budget_exhausted"))
    );
    let cost = result["total_cost_usd"].as_f64().unwrap();
    // What flies when the cap is reached: two children, and the answer that started them.
    assert!((1.0..=1.0 + 3.0 * 0.31).contains(&cost), "{cost}");
    let frames = ran.frames();
    let told: Vec<&Value> = frames.iter().filter(|frame| frame["kind"] == "budget").collect();
    assert!(told.iter().any(|frame| frame["parent_tool_use_id"].is_string()), "{told:#?}");
    let answered = |kind: &str| {
        let of = |frame: &&Value| frame["message"]["content"][0]["type"] == kind;
        frames.iter().filter(of).count()
    };
    assert_eq!(answered("tool_use"), answered("tool_result"), "every call of everybody is answered");
}

#[test]
fn loop_B1_a_strict_budget_is_not_passed_by_parallel_children() {
    // It never writes more than a call may have in this mode once it is shortened.
    let (_, ran) = run(
        spends_with_five_children(1_024),
        &["--max-budget-usd", "0.4", "--strict-budget", "--include-loop-events"],
    );
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result = ran.result();
    assert_eq!(result["subtype"], "error_max_budget_usd");
    let cost = result["total_cost_usd"].as_f64().unwrap();
    assert!(cost > 0.1 && cost <= 0.4, "{cost}");

    let ran = Place::new().pelton(["-p", "hi", "--strict-budget"]).run();
    ran.failed(1, &["--max-budget-usd"]);
}

#[test]
fn loop_Z6_loop_R2_retries_and_the_fallback_of_an_agent_name_its_call() {
    let overloaded = Step::status(529).header("retry-after-ms", "100").times(3);
    let script = Script::new()
        .reply([start("toolu_a", "look")])
        .step(overloaded.when(When::any().system(CHILD).model("claude-sonnet-5-5")))
        .step(Step::reply([text("Nothing there.")]).when(When::any().system(CHILD).model("claude-opus-5-5")))
        .reply([text("Done.")]);
    let (_, ran) = run(script, &["--model", "claude-sonnet-5-5", "--fallback-model", "claude-opus-5-5"]);
    let frames = ran.frames();
    let of = |subtype: &str| {
        let wanted = frames.iter().filter(|frame| frame["subtype"] == subtype);
        wanted.map(|frame| frame["parent_tool_use_id"].as_str().unwrap_or("none")).collect::<Vec<_>>()
    };
    assert_eq!((of("api_retry"), of("model_fallback")), (vec!["toolu_a"; 2], vec!["toolu_a"]));
    let switched = frames.iter().find(|frame| frame["subtype"] == "model_fallback").unwrap();
    assert_eq!(switched["fallback_model"], "claude-opus-5-5");
    assert_eq!(ran.result()["result"], "Done.");
}

/// The frames of a run in which the agent's first model says this and breaks off; the next one says what follows.
fn broken_off(said: Part, then: Vec<Step>, words: &[&str]) -> Vec<Value> {
    let first = When::any().system(CHILD).model("claude-sonnet-5-5");
    let mut script = Script::new()
        .reply([start("toolu_a", "look")])
        .step(Step::reply([said, error("api_error", "x")]).when(first));
    for step in then {
        script = script.step(step.when(When::any().system(CHILD).model("claude-opus-5-5")));
    }
    let (place, model) = (Place::new(), model(script.reply([text("Done.")])));
    let models = ["hi", "--model", "claude-sonnet-5-5", "--fallback-model", "claude-opus-5-5"];
    let mut task = place.task(&model, models.into_iter().chain(words.iter().copied()).chain(STREAM));
    let ran = task.env("CLAUDE_CODE_MAX_RETRIES", "1").run();
    model.assert_clean();
    assert_eq!(ran.result()["result"], "Done.");
    ran.frames()
}

#[test]
fn loop_F1_what_an_agent_took_back_is_named_whatever_is_told_of_it_afterwards() {
    let glob = |id: &str| tool("Glob", json!({"pattern": "*"})).id(id);
    let report = || Step::reply([text("Nothing there.")]);
    let calls_again = vec![Step::reply([glob("toolu_h")]), report()];
    for (then, words, named_by) in [
        // The words that come next are not told.
        (vec![report()], &[][..], "agent: system informational"),
        (vec![report()], &["--forward-subagent-text"], "agent: assistant text"),
        (calls_again, &[], "agent: assistant tool_use"),
        // Nothing comes next: the agent has failed.
        (
            vec![Step::status(400).error_type("invalid_request_error").message("no")],
            &[],
            "agent: assistant text",
        ),
    ] {
        let frames = broken_off(glob("toolu_g"), then, words);
        let is_call = |frame: &&Value| frame["message"]["content"][0]["id"] == "toolu_g";
        let call = frames.iter().find(is_call).unwrap();
        let naming: Vec<&Value> = frames.iter().filter(|frame| frame.get("supersedes").is_some()).collect();
        let [naming] = naming[..] else { panic!("{naming:#?}") };
        assert_eq!((kind(naming).as_str(), &naming["supersedes"]), (named_by, &json!([call["uuid"]])));
        assert_eq!(naming["parent_tool_use_id"], "toolu_a");
        let place = |wanted: &Value| frames.iter().position(|frame| frame["uuid"] == wanted["uuid"]);
        let end = frames.iter().find(|frame| frame["subtype"] == "task_notification").unwrap();
        assert!(place(call) < place(naming) && place(naming) < place(end), "{frames:#?}");
    }
}

#[test]
fn words_of_an_agent_that_nobody_was_told_are_not_taken_back() {
    let half = Step::reply([text("Half a")]).stop("max_tokens").when(When::any().system(CHILD));
    let script = Script::new()
        .reply([start("toolu_a", "look")])
        .step(half)
        .step(Step::reply([text("Nothing there.")]).when(When::any().system(CHILD)))
        .reply([text("Done.")]);
    let (place, model) = (Place::new(), model(script));
    let mut task = place.task(&model, ["hi"].into_iter().chain(STREAM));
    let ran = task.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4000").run();
    assert_eq!((ran.code, model.requests().len()), (Some(0), 4), "{ran:?}");
    assert!(!ran.out.contains("supersedes"), "{}", ran.out);
}

/// The main thread starts an agent, does not wait for it, and hears of it.
fn launches_and_hears() -> Script {
    let input = json!({"description": "dig", "prompt": "Dig.", "run_in_background": true});
    Script::new()
        .step(Step::reply([tool("Agent", input).id("toolu_a")]).when(When::any().last_user_text("hi")))
        .step(
            Step::reply([pelton_testkit::pause(std::time::Duration::from_millis(1_500)), text("Gold.")])
                .when(When::any().system(CHILD)),
        )
        .step(Step::reply([text("It digs.")]).when(When::any().last_tool_result("runs in the background")))
        .step(Step::reply([text("It found gold.")]).when(When::any().last_user_text("Gold")))
}

#[test]
fn pit_A1_a_run_waits_for_an_agent_in_the_background_and_each_turn_has_one_result() {
    let (_place, ran) = run(launches_and_hears(), &[]);
    assert_eq!(ran.well(), ran.out);
    let frames = ran.frames();
    let place = |wanted: &str| {
        let found = frames.iter().position(|frame| kind(frame) == wanted);
        found.unwrap_or_else(|| panic!("no {wanted}: {frames:#?}"))
    };
    let results = of_type(&frames, "result");
    let [first, second] = &results[..] else { panic!("one for each turn: {results:#?}") };
    assert_eq!((&first["result"], &first["origin"]), (&json!("It digs."), &Value::Null));
    assert_eq!(
        (&second["result"], &second["origin"]["kind"]),
        (&json!("It found gold."), &json!("task-notification"))
    );
    let launched =
        frames.iter().find(|frame| frame["tool_use_result"]["status"] == "async_launched").unwrap();
    let notified = &frames[place("system task_notification")];
    assert_eq!(notified["task_id"], launched["tool_use_result"]["agentId"]);
    assert_eq!(notified["output_file"], launched["tool_use_result"]["outputFile"]);
    let words = std::fs::read_to_string(notified["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(words, "Gold.\n");
    assert!(place("result success") < place("system task_notification"));
    assert_eq!(frames.iter().filter(|frame| kind(frame) == "system task_notification").count(), 1);
    assert_eq!(frames.iter().filter(|frame| kind(frame) == "system init").count(), 2);
}

#[test]
fn whoever_reads_one_answer_gets_the_last_one() {
    for (format, expected) in [("text", "It found gold.\n"), ("json", "")] {
        let (place, model) = (Place::new(), model(launches_and_hears()));
        let ran = place.task(&model, ["hi", "--output-format", format]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        match format {
            "text" => assert_eq!(ran.out, expected),
            _ => {
                let result: Value = serde_json::from_str(&ran.out).unwrap();
                assert_eq!(
                    (&result["result"], &result["is_error"]),
                    (&json!("It found gold."), &json!(false))
                );
            }
        }
        model.assert_clean();
    }
}

/// An agent digs until a gate opens, which nobody does who interrupted it.
fn digs_on() -> Script {
    let input = json!({"description": "dig", "prompt": "Dig.", "run_in_background": true});
    Script::new()
        .step(Step::reply([gate("dug"), text("Gold.")]).when(When::any().system(CHILD)))
        .reply([tool("Agent", input).id("toolu_a")])
        .reply([text("It digs.")])
        .reply([text("I see.")])
}

#[test]
fn an_interrupt_ends_agents_in_the_background_unless_they_can_be_stopped_one_by_one() {
    for spares in [false, true] {
        let (place, model) = (Place::new(), model(digs_on()));
        let mut talk = Talk::with(&place, &model, &[], |command| {
            command.env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");
        });
        talk.asked(&json!({"subtype": "initialize", "perTaskStopAffordance": spares}));
        talk.prompt("go");
        let task = talk.system("task_started")["task_id"].clone();
        assert_eq!(talk.result()["result"], "It digs.");
        assert_eq!(talk.asked(&json!({"subtype": "interrupt"}))["subtype"], "success");
        if spares {
            model.open("dug");
            assert_eq!(talk.system("task_notification")["status"], "completed");
            assert_eq!(talk.result()["result"], "I see.");
        } else {
            let ended = talk.system("task_notification");
            assert_eq!((&ended["task_id"], &ended["status"]), (&task, &json!("stopped")));
            assert!(!talk.seen.iter().any(|frame| frame["state"] == "idle"), "an agent ran");
            assert_eq!(talk.system("session_state_changed")["state"], "idle");
            // Nothing happens behind an interrupt; what ended is told with what is said next.
            talk.prompt("And now?");
            assert_eq!(talk.result()["result"], "I see.");
        }
        let frames = talk.end();
        let results = of_type(frames.well(), "result");
        assert_eq!(results.len(), 2, "{results:#?}");
        let told = model.reply_requests().last().unwrap().body["messages"].to_string();
        assert!(told.contains(if spares { "has ended: completed" } else { "has ended: stopped" }), "{told}");
        assert_eq!(told.contains("And now?"), !spares);
    }
}

/// A session that works as an agent starts those agents alone that its tools name; what those start is theirs.
#[test]
fn whoever_says_which_agents_it_starts_starts_no_others() {
    let place = Place::new();
    let describe = |name: &str, tools: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n{tools}---\nYou are {name}.\n");
        place.put(&format!(".claude/agents/{name}.md"), &text);
    };
    describe("boss", "tools: Agent(digger, painter), Read\n");
    describe("digger", "");
    describe("writer", "");
    let ask = |kind: &str| tool("Agent", json!({"subagent_type": kind, "description": "d", "prompt": "p"}));
    let script = Script::new()
        .reply([ask("writer"), ask("fork"), ask("digger")])
        .step(Step::reply([ask("writer")]).when(When::any().system("You are digger").nth(1)))
        .step(Step::reply([text("Dug.")]).when(When::any().system("You are digger")))
        .step(Step::reply([text("Written.")]).when(When::any().system("You are writer")))
        .reply([text("Done.")]);
    let model = model(script);
    let ran = place.task(&model, ["go", "--agent", "boss", "--allowedTools", "Agent"]).run();
    assert_eq!(ran.out, "Done.\n", "{ran:?}");
    let requests = model.requests();
    let tools = requests[0].body["tools"].as_array().unwrap().clone();
    let offered = tools.iter().find(|tool| tool["name"] == "Agent").unwrap()["description"].to_string();
    assert!(offered.contains("- digger:") && !offered.contains("- writer:"), "{offered}");
    let told =
        requests.last().unwrap().body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let told: Vec<String> =
        told.as_array().unwrap().iter().map(|result| result["content"].to_string()).collect();
    assert!(told[0].contains("there is no agent 'writer'; there are: digger"), "{told:?}");
    assert!(told[1].contains("there is no agent 'fork'"), "{told:?}");
    assert!(told[2].contains("Dug."), "{told:?}");
    assert!(requests.iter().any(|request| request.body["system"].to_string().contains("You are writer")));
}
