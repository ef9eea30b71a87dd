//! Agents that nobody waits for: each ends once, and whoever started it hears of it.

use std::time::{Duration, Instant};

use pelton::Engine;
use pelton::tools::BackgroundKind;

use super::*;
use crate::stage::{holds, prompt, pulling, rest, sh};

fn launch(id: &str, task: &str) -> Part {
    let input = json!({"description": format!("do {task}"), "prompt": task, "name": "scribe", "run_in_background": true});
    tool("Agent", input).id(id)
}

/// The model of the main thread: it starts an agent and ends its turn.
fn launches(task: &str) -> Script {
    Script::new().step(Step::reply([launch("toolu_a", task)]).when(When::any().last_user_text("Go")))
}

fn started() -> Step {
    Step::reply([text("It works.")]).when(When::any().last_tool_result("runs in the background"))
}

fn heard(words: &str) -> Step {
    Step::reply([text("Heard.")]).when(When::any().last_user_text(words))
}

/// How often requests of the main thread say that an agent has ended; the newest counts.
fn ends_told(stage: &Stage) -> usize {
    let requests = stage.model.reply_requests();
    let mains = requests.iter().filter(|seen| !seen.body["system"].to_string().contains(CHILD));
    mains.last().unwrap().body["messages"].to_string().matches("has ended: ").count()
}

/// Waits until an agent has ended that the model does not know of.
async fn ended(engine: &Engine) {
    tokio::time::timeout(Duration::from_secs(20), engine.tasks().ended()).await.expect("nothing ends");
}

/// Tells the model how agents have ended, as a submission of its own.
async fn tell(engine: &mut Engine) -> Told {
    let mut events = Box::pin(engine.submit_news().expect("there is something to tell"));
    Told(rest(&mut events).await)
}

#[tokio::test]
async fn pit_A1_however_a_child_ends_its_parent_hears_it_once_within_a_second_and_is_not_done_before() {
    type Act = fn(&Stage, &Engine) -> Option<String>;
    let nothing: Act = |_, _| None;
    let killed: Act = |_, engine| Some(engine.tasks().running()[0].id.clone());
    let hold = || gate("hold");
    let sleep = format!("sleep 300.{}881", std::process::id());
    // (what the model of the agent does, what is done to it, words of its end)
    let endings: Vec<(Vec<Step>, Act, Vec<&str>)> = vec![
        (vec![Step::reply([hold(), text("Fine.")])], nothing, vec!["has ended: completed", "Fine."]),
        (
            vec![
                Step::reply([hold(), tool("Bash", sh("exit 3"))]),
                Step::status(400).message("no such thing"),
            ],
            nothing,
            vec!["has ended: failed", "no such thing"],
        ),
        (vec![Step::reply([hold(), text("never")])], killed, vec!["has ended: stopped"]),
        (
            vec![Step::reply([hold(), tool("Bash", sh("sleep 30"))])],
            nothing,
            vec!["has ended: failed", "did nothing for too long"],
        ),
        (
            vec![
                Step::reply([hold(), tool("Write", json!({"file_path": "no.txt", "content": ""}))]),
                Step::reply([text("I may not.")]),
            ],
            nothing,
            vec!["has ended: completed", "I may not."],
        ),
        (
            vec![
                Step::reply([hold(), tool("Bash", json!({"command": sleep, "run_in_background": true}))]),
                Step::reply([text("Left it running.")]),
            ],
            nothing,
            vec!["has ended: completed", "Left it running.", "were ended with it"],
        ),
    ];
    for (steps, act, words) in endings {
        let mut script = launches("task");
        for step in steps {
            script = script.step(step.when(When::any().system(CHILD)));
        }
        let stage = Stage::new(script.step(started()).step(heard(words[0]))).await;
        let mut engine = stage.engine_with(|options| {
            options.mode = pelton::permission::Mode::Default;
            options.rules.allow.push("Bash".parse().unwrap());
            options.agent_limits.silent_max = Duration::from_millis(800);
        });
        let told = run(&mut engine, "Go.").await;
        assert_eq!(told.assert_completed().text, "It works.", "it is not waited for");
        let tasks = engine.tasks();
        stage.model.wait_at_gate("hold").await;
        let [task] = &tasks.running()[..] else { panic!("one runs: {words:?}") };
        assert_eq!((task.kind, task.description.as_str()), (BackgroundKind::Agent, "do task"));
        assert!(tasks.has_agents(), "the session is not done before the agent is");

        let stopped = act(&stage, &engine);
        if stopped.is_none() {
            stage.model.open("hold");
        }
        let mut events = told.0;
        let ended = |events: &[Event]| {
            let is_end = |event: &&Event| matches!(event, Event::Agent(told) if matches!(told.news, AgentNews::Ended { .. }));
            events.iter().filter(is_end).count()
        };
        if let Some(id) = stopped {
            assert!(tasks.stop(&id).await);
        }
        // Its end is told, and within a second from then on there is something to tell the model.
        tokio::time::timeout(Duration::from_secs(20), async {
            while ended(&events) == 0 {
                tasks.told().await;
                events.extend(tasks.news());
            }
        })
        .await
        .unwrap();
        let at = Instant::now();
        tasks.ended().await;
        assert!(at.elapsed() < Duration::from_secs(1), "{words:?}: {:?}", at.elapsed());
        assert!(tasks.has_agents(), "not before the model knows");
        let told = tell(&mut engine).await;
        assert_eq!(told.assert_completed().text, "Heard.", "{words:?}");
        events.extend(told.0);
        assert_eq!(ended(&events), 1, "{words:?}");
        let last = stage.request(stage.request_count());
        let said = last["messages"].to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        assert_eq!(ends_told(&stage), 1, "{words:?}");
        assert!(!tasks.has_agents() && engine.submit_news().is_none(), "told once: {words:?}");
        stage.model.assert_clean();
        if words.contains(&"were ended with it") {
            holds(|| super::limits::processes(&sleep).is_empty()).await;
        }
    }
}

#[tokio::test]
async fn pit_A1_a_child_that_is_written_to_goes_on_with_all_it_knew_and_reports_again() {
    let script = launches("Learn the word plover.")
        .step(Step::reply([gate("hold"), text("Learnt.")]).when(child("plover")))
        .step(started())
        .step(heard("has ended: completed"))
        .step(
            Step::reply([
                tool("SendMessage", json!({"to": "scribe", "message": "Say the word."})).id("toolu_s")
            ])
            .when(When::any().last_user_text("Ask it")),
        )
        .step(Step::reply([gate("again"), text("Plover.")]).when(child("Say the word")))
        .step(Step::reply([text("Asked.")]).when(When::any().last_tool_result("goes on in the background")))
        .step(Step::reply([text("It is plover.")]).when(When::any().last_user_text("Plover\\.")));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    stage.model.open("hold");
    ended(&engine).await;
    tell(&mut engine).await.assert_completed();

    let told = run(&mut engine, "Ask it.").await;
    assert_eq!(told.assert_completed().text, "Asked.");
    stage.model.open("again");
    ended(&engine).await;
    let told = tell(&mut engine).await;
    assert_eq!(told.assert_completed().text, "It is plover.");
    // It is the same agent, with what it knew.
    let requests = stage.model.reply_requests();
    let again = requests.iter().rfind(|seen| seen.body["system"].to_string().contains(CHILD));
    let again = again.unwrap().body["messages"].to_string();
    assert!(again.contains("Learn the word plover") && again.contains("Learnt."), "{again}");
    let folder = engine.transcript_file().unwrap().with_extension("").join("subagents");
    let records = std::fs::read_dir(folder).unwrap().flatten();
    let records: Vec<_> = records.filter(|entry| entry.path().extension().unwrap() == "jsonl").collect();
    assert_eq!(records.len(), 1, "one agent");
    stage.assert_all_played();
}

#[tokio::test]
async fn an_agent_that_works_reads_what_it_is_written_with_its_next_step() {
    let script = Script::new()
        .step(Step::reply([launch("toolu_a", "dig")]).when(When::any().last_user_text("Go")))
        .step(Step::reply([gate("hold"), tool("Glob", json!({"pattern": "*"}))]).when(child("dig")))
        .step(started())
        .step(
            Step::reply([tool("SendMessage", json!({"to": "scribe", "message": "Dig deeper."}))])
                .when(When::any().last_user_text("Tell it")),
        )
        .step(Step::reply([text("Told.")]).when(When::any().last_tool_result("with its next step")))
        .step(Step::reply([text("Deep.")]).when(When::any().system(CHILD).last_user_text("Dig deeper")))
        .step(heard("Deep\\."));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    stage.model.wait_at_gate("hold").await;
    let told = run(&mut engine, "Tell it.").await;
    assert_eq!(told.assert_completed().text, "Told.");
    stage.model.open("hold");
    ended(&engine).await;
    tell(&mut engine).await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn an_agent_that_is_waited_for_can_be_put_into_the_background() {
    let script = Script::new()
        .step(Step::reply([start("toolu_a", "ponder")]).when(When::any().last_user_text("Go")))
        .step(Step::reply([gate("hold"), text("Pondered.")]).when(child("ponder")))
        .step(started())
        .step(heard("Pondered"));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let tasks = engine.tasks();
    let told = {
        let mut events = engine.submit(prompt("Go."));
        let (mut told, ()) = pulling(&mut events, stage.model.wait_at_gate("hold")).await;
        assert!(tasks.put_aside(Some("toolu_a")));
        told.extend(rest(&mut events).await);
        Told(told)
    };
    assert_eq!(told.assert_completed().text, "It works.");
    assert!(tasks.has_agents() && ends(&told).is_empty());
    stage.model.open("hold");
    ended(&engine).await;
    tell(&mut engine).await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn an_agent_waits_for_its_own_agents_and_an_interrupt_leaves_those_in_the_background_alone() {
    let script = launches("outer")
        .step(Step::reply([launch("toolu_b", "inner")]).when(child("outer")))
        .step(Step::reply([gate("hold"), text("Inside.")]).when(child("inner")))
        .step(Step::reply([text("Outside.")]).when(When::any().system(CHILD).last_tool_result("Inside")))
        .step(
            Step::reply([text("Half"), gate("never")])
                .when(When::any().last_tool_result("runs in the background")),
        )
        .step(heard("Outside"));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let (tasks, interrupter) = (engine.tasks(), engine.interrupter());
    let told = {
        let mut events = engine.submit(prompt("Go."));
        let both = async {
            stage.model.wait_at_gate("never").await;
            stage.model.wait_at_gate("hold").await;
        };
        let (mut told, ()) = pulling(&mut events, both).await;
        interrupter.interrupt();
        told.extend(rest(&mut events).await);
        Told(told)
    };
    assert_eq!(told.outcome().terminal, Terminal::AbortedStreaming);
    assert!(tasks.has_agents());
    stage.model.open("hold");
    ended(&engine).await;
    tell(&mut engine).await.assert_completed();
    stage.model.assert_clean();
}

#[tokio::test]
async fn pit_A1_an_agent_whose_process_is_gone_is_told_as_lost_once_and_can_go_on() {
    let script = launches("count")
        .step(Step::reply([tool("Glob", json!({"pattern": "*"}))]).when(child("count")))
        .step(Step::reply([text("One, two"), gate("never")]).when(When::any().system(CHILD)))
        .step(started());
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let file = engine.transcript_file().unwrap();
    run(&mut engine, "Go.").await.assert_completed();
    stage.model.wait_at_gate("never").await;
    let id = engine.tasks().running()[0].id.clone();
    // Dropped where it stands, as a killed process would leave it. Nothing of it is left.
    drop(engine);
    let agents_record = file.with_extension("").join("subagents").join(format!("agent-{id}.jsonl"));
    holds(|| pelton::transcript::holder(&agents_record).is_none()).await;

    let script = Script::new()
        .step(
            Step::reply([tool("SendMessage", json!({"to": id, "message": "Go on counting."}))])
                .when(When::any().last_user_text("Back")),
        )
        .step(Step::reply([gate("more"), text("Three.")]).when(child("Go on counting")))
        .step(
            Step::reply([text("It counts.")]).when(When::any().last_tool_result("goes on in the background")),
        )
        .step(heard("Three"));
    let stage = stage.playing(script).await;
    let mut engine = stage.resume(&file);
    assert_eq!(run(&mut engine, "Back.").await.assert_completed().text, "It counts.");
    let said = stage.request(1)["messages"].to_string();
    assert_eq!(said.matches(&format!("The background agent {id} (")).count(), 1, "{said}");
    stage.model.open("more");
    ended(&engine).await;
    tell(&mut engine).await.assert_completed();
    stage.assert_all_played();
    drop(engine);

    let stage = stage.playing(Script::new().reply([text("Again.")])).await;
    run(&mut stage.resume(&file), "And now?").await.assert_completed();
    let said = stage.request(1)["messages"].to_string();
    assert_eq!(said.matches("of an earlier process").count(), 1, "not told again: {said}");
}

#[tokio::test]
async fn tools_look_at_agents_in_the_background_and_stop_them_and_then_no_more_is_told() {
    let dig = || {
        let digs = Step::reply([text("Digging."), gate("hold"), tool("Glob", json!({"pattern": "*"}))]);
        launches("dig").step(digs.when(child("dig"))).step(started())
    };
    let seeded =
        |options: &mut pelton::Options| options.world = Arc::new(pelton_testkit::SeededWorld::new(7));
    // A rehearsal: chance comes from a seed, so the agent has the same id again.
    let rehearsed = Stage::new(dig()).await;
    let mut engine = rehearsed.engine_with(seeded);
    run(&mut engine, "Go.").await.assert_completed();
    let id = engine.tasks().running()[0].id.clone();
    drop(engine);
    for stops in [false, true] {
        let last = match stops {
            true => tool("TaskStop", json!({"task_id": id})),
            false => tool("TaskOutput", json!({"task_id": id, "timeout": 20_000})),
        };
        let script = dig()
            .step(Step::reply([last]).when(When::any().last_user_text("Look")))
            .step(Step::reply([text("Dug.")]).when(When::any().system(CHILD)))
            .step(Step::reply([text("Seen.")]).when(When::any().last_tool_result("do dig")));
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(seeded);
        run(&mut engine, "Go.").await.assert_completed();
        stage.model.wait_at_gate("hold").await;
        if !stops {
            stage.model.open("hold");
        }
        let told = run(&mut engine, "Look.").await;
        assert_eq!(told.assert_completed().text, "Seen.");
        let words = results_in(&stage.request(stage.request_count())).last().unwrap().2.clone();
        assert!(words.contains(if stops { "stopped" } else { "Dug." }), "{words}");
        assert!(!engine.tasks().has_agents() && engine.submit_news().is_none(), "the model knows");
    }
}
