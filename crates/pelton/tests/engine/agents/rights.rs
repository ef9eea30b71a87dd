//! What holds for the parent holds for its agents.

use std::sync::Mutex;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::hooks::{CallbackError, CallbackTerms, HookCall, HookCallback, HookEvent};
use pelton::permission::{Answer, Asker, Mode, Question, Questions};

use super::*;

fn write(id: &str) -> Part {
    tool("Write", json!({"file_path": format!("{id}.txt"), "content": "x"})).id(id)
}

/// An agent that tries to write and says how that went.
fn writer(id: &str) -> Script {
    Script::new()
        .reply([start("toolu_a", "write")])
        .step(Step::reply([write(id)]).when(child("write")))
        .step(Step::reply([text("${last_tool_result}")]).when(When::any().system(CHILD)))
        .reply([text("Done.")])
}

#[tokio::test]
async fn pit_P7_rules_and_modes_of_the_parent_bind_its_agents() {
    // (mode, allow, deny, definition's mode) → written
    type Row = (Mode, &'static [&'static str], &'static [&'static str], Option<Mode>, bool);
    let rows: [Row; 7] = [
        (Mode::Default, &[], &[], None, false),
        (Mode::Default, &["Write"], &[], None, true),
        (Mode::AcceptEdits, &[], &[], None, true),
        (Mode::AcceptEdits, &[], &["Edit(*.txt)"], None, false),
        (Mode::Plan, &["Write"], &[], None, false),
        // A definition narrows, and never widens.
        (Mode::BypassPermissions, &[], &[], Some(Mode::Plan), false),
        (Mode::Default, &[], &[], Some(Mode::BypassPermissions), false),
    ];
    for (mode, allow, deny, own, written) in rows {
        let stage = Stage::new(writer("w")).await;
        let mut engine = stage.engine_with(|options| {
            options.mode = mode;
            options.rules.allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
            options.rules.deny = deny.iter().map(|rule| rule.parse().unwrap()).collect();
            options.agents[0].permission_mode = own;
        });
        let told = run(&mut engine, "Go.").await;
        told.assert_completed();
        assert_eq!(stage.path("w.txt").exists(), written, "{mode:?} {allow:?} {deny:?} {own:?}");
        stage.assert_all_played();
    }
}

#[derive(Clone, Default)]
struct Yes(Arc<Mutex<Vec<Question>>>);

impl Asker for Yes {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.0.lock().unwrap().push(question.clone());
        async { Answer::allow() }.boxed()
    }
}

#[tokio::test]
async fn pit_P7_questions_of_agents_go_to_the_same_handler() {
    let stage = Stage::new(writer("w")).await;
    let yes = Yes::default();
    let mut engine = stage.engine_with(|options| {
        options.mode = Mode::Default;
        options.questions = Some(Questions::to(yes.clone()));
    });
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert!(stage.path("w.txt").exists());
    let asked = yes.0.lock().unwrap();
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(question.agent_id.as_deref(), Some(agent_of(&told, "toolu_a").id.as_str()));
}

struct StopAll;

impl Asker for StopAll {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        async { Answer::Deny { message: "Stop.".to_owned(), interrupt: true } }.boxed()
    }
}

#[tokio::test]
async fn a_refusal_that_ends_the_run_ends_all_of_it() {
    let stage = Stage::new(writer("w")).await;
    let mut engine = stage.engine_with(|options| {
        options.mode = Mode::Default;
        options.questions = Some(Questions::to(StopAll));
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::AbortedToolExecution);
    assert_eq!(stage.request_count(), 2);
    assert_eq!(told.results(), ["toolu_a"]);
}

#[tokio::test]
async fn agents_of_a_kind_can_be_denied() {
    for (rule, started) in
        [("Agent(general-purpose)", false), ("Task(general-purpose)", false), ("Agent(other)", true)]
    {
        let script = Script::new()
            .reply([start("toolu_a", "task")])
            .step(Step::reply([text("Fine.")]).when(When::any().system(CHILD)))
            .step(Step::reply([text("Done.")]).when(When::any().tool("Agent")));
        let stage = Stage::new(script).await;
        let told =
            run(&mut stage.engine_with(|options| options.rules.deny.push(rule.parse().unwrap())), "Go.")
                .await;
        told.assert_completed();
        assert_eq!(!ends(&told).is_empty(), started, "{rule}");
    }
}

type Heard = Arc<Mutex<Vec<Value>>>;

/// Writes down what it hears, and blocks the first end of an agent.
struct Listens(Heard);

impl HookCallback for Listens {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        self.0.lock().unwrap().push(call.input.clone());
        let answer = match call.input["hook_event_name"].as_str() {
            Some("SubagentStart") => {
                json!({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Mind the gap."}})
            }
            Some("SubagentStop") if call.input["stop_hook_active"] == false => {
                json!({"decision": "block", "reason": "Say please."})
            }
            _ => json!({}),
        };
        async { Ok(answer) }.boxed()
    }
}

#[tokio::test]
async fn loop_H6_an_agent_has_a_beginning_and_an_end_of_its_own_and_its_end_can_be_blocked() {
    let script = Script::new()
        .reply([start("toolu_a", "ask")])
        .step(Step::reply([tool("Glob", json!({"pattern": "*"}))]).when(child("Mind the gap(.|\n)*ask")))
        .step(Step::reply([text("Now.")]).when(When::any().system(CHILD).tool("Glob")))
        .step(Step::reply([text("Please, now.")]).when(child("Say please")))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let heard = Heard::default();
    let mut engine = stage.engine_with(|options| {
        for event in
            [HookEvent::SubagentStart, HookEvent::SubagentStop, HookEvent::Stop, HookEvent::PreToolUse]
        {
            let listens = Arc::new(Listens(Arc::clone(&heard)));
            options.hooks.add_callback(event, None, listens, CallbackTerms::default()).unwrap();
        }
    });

    let told = run(&mut engine, "Go.").await;

    told.assert_completed();
    let agent = agent_of(&told, "toolu_a");
    let heard = heard.lock().unwrap();
    let names: Vec<(&str, bool)> = heard
        .iter()
        .map(|input| (input["hook_event_name"].as_str().unwrap(), input["agent_id"] == agent.id.as_str()))
        .collect();
    let expected = [
        ("PreToolUse", false),
        ("SubagentStart", true),
        ("PreToolUse", true),
        ("SubagentStop", true),
        ("SubagentStop", true),
        ("Stop", false),
    ];
    assert_eq!(names, expected, "{heard:#?}");
    assert_eq!(heard[1]["agent_type"], "general-purpose");
    assert_eq!((&heard[3]["stop_hook_active"], &heard[4]["stop_hook_active"]), (&json!(false), &json!(true)));
    assert_eq!(heard[3]["last_assistant_message"], "Now.");
    let record = heard[3]["agent_transcript_path"].as_str().unwrap();
    assert!(
        record.ends_with(&format!("subagents/agent-{}.jsonl", agent.id))
            && std::path::Path::new(record).exists()
    );
    assert_eq!(heard[3]["transcript_path"], engine.transcript_file().unwrap().to_str().unwrap());
    assert_eq!(results_in(&stage.request(5))[0].2, "Please, now.");
    stage.assert_all_played();
}
