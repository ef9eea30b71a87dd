//! What clients build on whatever happens: one result for every prompt, every question answered however late, answers in the form of
//! a schema, and files that many processes change at once.

use std::collections::HashSet;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use pelton_testkit::{Part, Script, ScriptedModel, Step, When, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model, of_type};
use crate::talk::{TALK, Talk};

fn agent(prompt: &str, in_background: bool) -> Part {
    let order = json!({"description": "help", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": in_background});
    tool("Agent", order)
}

/// The frames of a session in which one prompt is sent, and then no more.
fn frames(place: &Place, model: &ScriptedModel, words: &[&str]) -> Vec<Value> {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    let mut command = place.pelton(TALK.into_iter().chain(words.iter().copied()));
    let ran = command.asks(model).env("CLAUDE_CODE_MAX_RETRIES", "0").run_with_input(&format!("{prompt}\n"));
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    ran.frames()
}

#[test]
fn pit_K1_every_way_of_ending_has_exactly_one_result() {
    let glob = || tool("Glob", json!({"pattern": "*"}));
    let child = || Step::reply([text("found")]).when(When::any().last_user_text("Find it"));
    // What happens, how it was asked for, and how it ends.
    let cases: Vec<(Script, &[&str], &str)> = vec![
        (Script::new().reply([text("done")]), &[], "success"),
        (Script::new().step(Step::status(400)), &[], "success"),
        (Script::new().step(Step::status(529).always()), &[], "success"),
        (Script::new().step(Step::reply([glob()]).always()), &["--max-turns", "2"], "error_max_turns"),
        (
            Script::new().reply([glob()]).reply([text("done")]),
            &["--max-budget-usd", "0.000001"],
            "error_max_budget_usd",
        ),
        // The money of a whole tree of agents is spent inside of one of them.
        (
            Script::new()
                .step(Step::reply([glob()]).when(When::any().last_user_text("Find it")).always())
                .step(Step::reply([agent("Find it", false)]).always()),
            &["--max-budget-usd", "0.02", "--allowedTools", "Agent"],
            "error_max_budget_usd",
        ),
        (
            Script::new().step(child()).reply([agent("Find it", false)]).reply([text("done")]),
            &["--allowedTools", "Agent"],
            "success",
        ),
    ];
    for (script, words, subtype) in cases {
        let (place, model) = (Place::new(), model(script));
        let frames = frames(&place, &model, words);
        let results = of_type(&frames, "result");
        assert_eq!(results.len(), 1, "{words:?}: {frames:#?}");
        assert_eq!(results[0]["subtype"], subtype, "{words:?}: {}", results[0]);
        let inits = frames.iter().filter(|frame| frame["subtype"] == "init").count();
        assert_eq!(inits, 1, "{words:?}");
    }
    // An agent in the background ends later: a turn of its own, with a result of its own that says so.
    let script = Script::new()
        .step(child())
        .reply([agent("Find it", true)])
        .reply([text("started")])
        .reply([text("it ended")]);
    let (place, model) = (Place::new(), model(script));
    let frames = frames(&place, &model, &["--allowedTools", "Agent"]);
    let results: Vec<(&Value, &Value)> = of_type(&frames, "result")
        .iter()
        .map(|result| (&result["result"], &result["origin"]["kind"]))
        .collect();
    let late = json!("task-notification");
    assert!(
        results.len() <= 2
            && results.iter().filter(|(_, origin)| **origin == late).count() == results.len() - 1,
        "{results:?}"
    );
    assert_eq!(frames.iter().filter(|frame| frame["subtype"] == "init").count(), results.len());
}

/// Five hundred calls while nobody reads: everything is there when somebody does, and one result.
#[test]
fn pit_K1_a_reader_that_sleeps_gets_everything_and_one_result() {
    const ROUNDS: usize = 50;
    const CALLS: usize = 10;
    let round = || (0..CALLS).map(|_| tool("Glob", json!({"pattern": "*"})));
    let script = (0..ROUNDS).fold(Script::new(), |script, _| script.reply(round())).reply([text("done")]);
    let (place, model) = (Place::new(), model(script));
    for n in 0..60 {
        std::fs::write(place.work().join(format!("a-file-with-a-name-that-takes-some-room-{n}")), "")
            .unwrap();
    }
    let words = ["go", "--output-format", "stream-json", "--verbose"];
    let mut child = place.task(&model, words).stdin(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(6));
    assert!(child.try_wait().unwrap().is_none(), "what nobody reads fills every pipe");
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(child.wait().unwrap().success());
    let frames: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(of_type(&frames, "result").len(), 1);
    assert_eq!(frames.last().unwrap()["result"], "done");
    let answered: HashSet<&str> = of_type(&frames, "user")
        .iter()
        .filter_map(|frame| frame["message"]["content"][0]["tool_use_id"].as_str())
        .collect();
    assert_eq!(answered.len(), ROUNDS * CALLS);
}

/// Twenty tools of the client that take their time, asked about one by one by a client that takes its time, too.
#[test]
fn pit_K3_slow_tools_and_slow_permissions_are_all_waited_for() {
    const TOOLS: usize = 20;
    const SLOW: Duration = Duration::from_secs(4);
    let calls = (0..TOOLS).map(|n| tool("mcp__x__slow", json!({"n": n})));
    let (place, model) = (Place::new(), model(Script::new().reply(calls).reply([text("done")])));
    let mut talk = Talk::start(&place, &model, &["--permission-prompt-tool", "stdio"]);
    talk.ask(&json!({"subtype": "initialize", "sdkMcpServers": ["x"]}));
    talk.prompt("go");
    let started = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}});
    let listed = json!({"tools": [{"name": "slow", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]});
    let respond = |talk: &mut Talk, asked: &Value, result: &Value| {
        let id = &asked["request"]["message"]["id"];
        talk.answer(asked, &json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}}));
    };
    for result in [&started, &json!({}), &listed] {
        let asked = talk.question("mcp_message");
        respond(&mut talk, &asked, result);
    }
    // Nobody hears of a permission for a while; then one of them is given without another word about the input.
    let (mut asked, mut called) = (Vec::new(), Vec::new());
    let mut answered = 0;
    while called.len() < TOOLS {
        let question = talk.until(|line| line["type"] == "control_request");
        match question["request"]["subtype"].as_str() {
            Some("can_use_tool") => asked.push(question),
            Some("mcp_message") => called.push(question),
            other => panic!("{other:?}"),
        }
        if called.is_empty() && answered == 0 {
            std::thread::sleep(SLOW);
        }
        for question in asked.drain(..) {
            answered += 1;
            talk.answer(&question, &json!({"behavior": "allow"}));
        }
        // The client works on some at a time: what it has done makes room for the next.
        if called.len().is_multiple_of(10) && !called.is_empty() && called.len() < TOOLS {
            std::thread::sleep(SLOW);
            for question in &called[called.len() - 10..] {
                let n = question["request"]["message"]["params"]["arguments"]["n"].clone();
                respond(&mut talk, question, &json!({"content": [{"type": "text", "text": n.to_string()}]}));
            }
        }
    }
    for question in &called[TOOLS - 10..] {
        let n = question["request"]["message"]["params"]["arguments"]["n"].clone();
        respond(&mut talk, question, &json!({"content": [{"type": "text", "text": n.to_string()}]}));
    }
    assert_eq!(talk.result()["result"], "done");
    assert_eq!(answered, TOOLS);
    talk.end().well();
    let sent = &model.reply_requests()[1].body["messages"];
    let results = sent.as_array().unwrap().last().unwrap()["content"].as_array().unwrap().clone();
    let texts: Vec<String> = results
        .iter()
        .map(|block| block["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(texts, (0..TOOLS).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn pit_K6_a_structured_answer_is_unwrapped_asked_for_again_or_the_documented_error() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
    let out = |input: Value| tool("StructuredOutput", input);
    let wrong = || Step::reply([out(json!({"n": "four"}))]);
    // Four that do not fit, and a fifth that does: the next prompt may fail as often again.
    let mut script = Script::new();
    for _ in 0..2 {
        script = (0..4).fold(script, |script, _| script.step(wrong())).reply([out(json!({"n": 4}))]);
    }
    let script = script
        .reply([out(json!({"output": {"n": 5}}))])
        .reply([out(json!({"output": "{\"n\": 6}"}))])
        .reply([text("I forgot.")])
        .reply([out(json!({"n": 7}))])
        .step(wrong().always());
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--json-schema", schema]);
    for n in [4, 4, 5, 6, 7] {
        talk.prompt("How many?");
        let result = talk.result();
        assert_eq!(
            (&result["subtype"], &result["structured_output"]),
            (&json!("success"), &json!({"n": n})),
            "{result}"
        );
    }
    talk.prompt("How many?");
    let result = talk.result();
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("error_max_structured_output_retries"), &json!(true))
    );
    assert!(result["structured_output"].is_null() && !result["errors"][0].as_str().unwrap().is_empty());
    assert_eq!(talk.end().code, Some(1));
}

/// Many processes change one file, and some are killed while they do: it can always be read, and whatever was said to be kept is.
#[test]
fn pit_S4_many_processes_change_a_shared_file_and_nothing_is_lost() {
    const PROCESSES: usize = 10;
    const CHANGES: usize = 20;
    let place = Place::new();
    for n in 0..PROCESSES * CHANGES {
        std::fs::create_dir(place.work().join(n.to_string())).unwrap();
    }
    let state = || {
        let text = std::fs::read_to_string(place.config().join(".claude.json")).ok();
        text.map(|text| {
            serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
        })
    };
    let kept: Vec<usize> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..PROCESSES)
            .map(|process| {
                let (place, state) = (&place, &state);
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for change in 0..CHANGES {
                        let n = process * CHANGES + change;
                        let name = n.to_string();
                        let running = place.pelton(["trust", &name, "--yes"]).start();
                        if n.is_multiple_of(3) {
                            std::thread::sleep(Duration::from_millis((n * 7 % 40) as u64));
                            running.signal(Signal::SIGKILL);
                        }
                        let ran = running.end();
                        if ran.code == Some(0) {
                            kept.push(n);
                        }
                        state();
                    }
                    kept
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(kept.len() > PROCESSES * CHANGES / 2, "{} were kept", kept.len());
    // Where nothing more can be written, the file stays as it was, and the answer is no.
    std::fs::create_dir(place.work().join("full")).unwrap();
    let full = place.shell("trap '' XFSZ; ulimit -f 0; exec \"$PELTON\" trust full --yes").run();
    assert!(full.code != Some(0) && full.err.contains("cannot be kept"), "{full:?}");
    let state = state().expect("a file of state").to_string();
    for n in kept {
        let path = place.work().join(n.to_string()).canonicalize().unwrap();
        assert!(state.contains(&format!("\"{}\"", path.display())), "{n} is lost");
    }
}
