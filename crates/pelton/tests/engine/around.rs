//! Moments around the conversation: instruction files, setting up, watched files, tasks, questions of tools; and hooks of the end
//! that never agree.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::hooks::HookKind;
use pelton::host::{Elicitation, Elicited, Elicitor};
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, TodoTools, Tool, ToolCx};
use pelton::{EndReason, Event, MemorySources, Setup, Terminal};
use pelton_testkit::{Script, Step, When, text, tool};
use serde_json::{Value, json};

use crate::hooks::{hook, on, said};
use crate::stage::{Stage, results_in, run, sh};

/// A hook that keeps what it is told, then goes on with a script.
fn listening(stage: &Stage, script: &str) -> String {
    let file = stage.path("heard.txt");
    format!("line=$(tr -d '\\n'); printf '%s\\n' \"$line\" >> {}; {script}", file.display())
}

fn heard(stage: &Stage) -> Vec<Value> {
    let Ok(all) = std::fs::read_to_string(stage.path("heard.txt")) else { return Vec::new() };
    all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn pit_H1_hooks_hear_of_every_instruction_file_and_why_it_is_told() {
    let script = Script::new()
        .reply([tool("Read", json!({"file_path": "below/code.rs"}))])
        .reply([tool("Read", json!({"file_path": "below/code.rs"}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    for (name, words) in [
        ("CLAUDE.md", "Be kind. @more.md"),
        ("more.md", "And brief."),
        ("below/CLAUDE.md", "Below."),
        ("below/code.rs", "fn main() {}"),
        (".claude/rules/rust.md", "---\npaths: ['**/*.rs']\n---\nOf Rust."),
    ] {
        std::fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        stage.write(name, words);
    }
    let settings = on("InstructionsLoaded", &[&listening(&stage, "exit 2")]);
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.memory = Some(MemorySources::project());
    });
    run(&mut engine, "Go.").await.assert_completed();

    let told = heard(&stage);
    let rows: Vec<(&str, &str)> = told
        .iter()
        .map(|told| {
            let file = told["file_path"].as_str().unwrap();
            let name = file.strip_prefix(stage.cwd().to_str().unwrap()).unwrap();
            (name, told["load_reason"].as_str().unwrap())
        })
        .collect();
    // Once each, and a hook that objects changes nothing.
    assert_eq!(
        rows,
        [
            ("/CLAUDE.md", "session_start"),
            ("/more.md", "include"),
            ("/below/CLAUDE.md", "nested_traversal"),
            ("/.claude/rules/rust.md", "path_glob_match"),
        ]
    );
    let path = |name: &str| json!(stage.path(name).to_str().unwrap());
    assert_eq!(
        (&told[0]["memory_type"], &told[1]["parent_file_path"]),
        (&json!("Project"), &path("CLAUDE.md"))
    );
    assert_eq!(
        (&told[3]["globs"], &told[3]["trigger_file_path"]),
        (&json!(["**/*.rs"]), &path("below/code.rs"))
    );
    assert!(stage.request(3).to_string().contains("Of Rust."));
}

#[tokio::test]
async fn hooks_that_set_up_leave_variables_for_commands_and_words_for_the_model() {
    let script = Script::new()
        .reply([tool("Bash", sh("echo \"$GREETING\" > said; echo $((1+1)) >> said"))])
        .reply([tool("Bash", sh("cd sub && echo $PLACE >> ../said"))])
        .reply([tool("Bash", sh("echo $PLACE >> ../said"))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    std::fs::create_dir(stage.path("sub")).unwrap();
    let words =
        r#"echo '{"hookSpecificOutput": {"hookEventName": "Setup", "additionalContext": "all set"}}'"#;
    let mut settings = on(
        "Setup",
        &[&listening(&stage, &format!("echo \"export GREETING='it is'\" >> $CLAUDE_ENV_FILE; {words}"))],
    );
    settings["CwdChanged"] =
        on("CwdChanged", &["echo \"export PLACE=$(basename $PWD)\" >> $CLAUDE_ENV_FILE"])["CwdChanged"]
            .clone();
    settings["PreToolUse"] =
        on("PreToolUse", &["test -z \"$CLAUDE_ENV_FILE\" || exit 2"])["PreToolUse"].clone();
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.setup = Some(Setup::Maintenance);
    });
    run(&mut engine, "Go.").await.assert_completed();
    assert_eq!(stage.read("said"), "it is\n2\n\nsub\n");
    let [told] = &heard(&stage)[..] else { panic!("once: {:?}", heard(&stage)) };
    assert_eq!((&told["hook_event_name"], &told["trigger"]), (&json!("Setup"), &json!("maintenance")));
    assert!(stage.request(1).to_string().contains("all set"));
    run(&mut engine, "And?").await;
    assert_eq!(heard(&stage).len(), 1, "set up is set up");
}

#[tokio::test]
async fn a_session_can_begin_before_its_first_prompt_and_begins_once() {
    let stage = Stage::new(Script::new().reply([text("Done.")])).await;
    let mut settings = on("SessionStart", &[&listening(&stage, "echo 'mind the gap'")]);
    settings["Setup"] = on("Setup", &[&listening(&stage, "true")])["Setup"].clone();
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.setup = Some(Setup::Init);
    });
    let told = engine.begin().await;
    assert_eq!(told.iter().filter(|event| matches!(event, Event::Hook(_))).count(), 2);
    run(&mut engine, "Go.").await.assert_completed();
    assert_eq!(heard(&stage).len(), 2);
    assert!(stage.request(1).to_string().contains("mind the gap"), "its words are kept for the first prompt");
    engine.close(EndReason::Other).await;
}

#[tokio::test]
async fn hooks_hear_of_files_they_name_when_those_come_change_and_go() {
    let script = Script::new()
        .reply([tool("Bash", sh("echo one > .envrc; echo one > other"))])
        .reply([tool("Bash", sh("echo another > .envrc"))])
        .reply([text("Done.")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    stage.write("more.txt", "");
    let settings = json!({
        "FileChanged": [{"matcher": ".envrc|.env", "hooks": [{"type": "command", "command": listening(&stage, "exit 0")}]},
            {"matcher": "more.txt", "hooks": [{"type": "command", "command": listening(&stage, "exit 0")}]}],
        "SessionStart": on("SessionStart", &[&format!(r#"echo '{{"hookSpecificOutput": {{"hookEventName": "SessionStart", "watchPaths": ["{}"]}}}}'"#, stage.path("more.txt").display())])["SessionStart"],
    });
    let mut engine = stage.engine_with(|options| hook(options, &settings));
    run(&mut engine, "Go.").await.assert_completed();
    std::fs::remove_file(stage.path(".envrc")).unwrap();
    std::fs::remove_file(stage.path("more.txt")).unwrap();
    run(&mut engine, "And now?").await.assert_completed();
    let told: Vec<(String, Value)> = heard(&stage)
        .iter()
        .map(|told| {
            (
                told["file_path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(),
                told["event"].clone(),
            )
        })
        .collect();
    let news = |file: &str, event: &str| (file.to_owned(), json!(event));
    assert_eq!(
        told,
        [
            news(".envrc", "add"),
            news(".envrc", "change"),
            news(".envrc", "unlink"),
            news("more.txt", "unlink")
        ]
    );
}

#[tokio::test]
async fn hooks_may_object_to_tasks_that_are_made_and_done() {
    let make = |subject: &str| tool("TaskCreate", json!({"subject": subject, "description": "d"}));
    let done = || tool("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    let script = Script::new()
        .reply([make("tests"), make("lunch")])
        .reply([done()])
        .reply([tool("Bash", sh("touch proof"))])
        .reply([done(), done(), tool("TaskList", json!({}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let no_lunch = "echo \"$line\" | grep -q lunch && { echo 'no lunch' >&2; exit 2; }; true";
    let mut settings = on("TaskCreated", &[&listening(&stage, no_lunch)]);
    let proven = "test -e proof || { echo 'no proof' >&2; exit 2; }";
    settings["TaskCompleted"] = on("TaskCompleted", &[&listening(&stage, proven)])["TaskCompleted"].clone();
    let mut engine = stage.engine_with(|options| {
        hook(options, &settings);
        options.todo_tools = TodoTools::Tasks;
    });
    run(&mut engine, "Go.").await.assert_completed();
    let made = results_in(&stage.request(2));
    assert!(!made[0].1 && made[1].1 && made[1].2.contains("no lunch"), "{made:?}");
    let refused = results_in(&stage.request(3)).pop().unwrap();
    assert!(
        refused.1 && refused.2.contains("not marked as done") && refused.2.contains("no proof"),
        "{refused:?}"
    );
    let list = results_in(&stage.request(5)).pop().unwrap().2;
    assert!(list.contains("tests") && list.contains("completed") && !list.contains("lunch"), "{list}");
    let told = heard(&stage);
    let rows: Vec<_> = told
        .iter()
        .map(|told| (told["task_id"].as_str().unwrap(), told["task_subject"].as_str().unwrap()))
        .collect();
    // Done twice is done once.
    assert_eq!(rows, [("1", "tests"), ("2", "lunch"), ("1", "tests"), ("1", "tests")]);
    assert_eq!(told[0]["task_description"], "d");
}

/// A tool that asks a person for a colour.
struct Painter;

impl Tool for Painter {
    fn spec(&self) -> Spec<'_> {
        Spec { name: "Painter", description: "Paints.", input_schema: r#"{"type":"object"}"# }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        let question =
            Elicitation::new(Arc::clone(&cx.call_id), "painter", "Which colour?", json!({"type": "object"}));
        async move { Output::text(format!("{:?}", cx.host.elicit(&question, &cx.cancel).await)) }.boxed()
    }
}

/// Likes blue.
struct Person;

impl Elicitor for Person {
    fn elicit<'a>(&'a self, _: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        async { Elicited::Accept(json!({"colour": "blue"})) }.boxed()
    }
}

#[tokio::test]
async fn hooks_may_answer_questions_of_tools_and_change_answers() {
    let own = |event: &str, rest: &str| {
        format!(r#"echo '{{"hookSpecificOutput": {{"hookEventName": "{event}", {rest}}}}}'"#)
    };
    let (before, behind) = ("Elicitation", "ElicitationResult");
    for (settings, answer, told_times) in [
        (on(before, &["exit 0"]), "blue", 0),
        (on(before, &[&own(before, r#""action": "accept", "content": {"colour": "red"}"#)]), "red", 0),
        (on(before, &["echo no >&2; exit 2"]), "Decline", 0),
        (on(behind, &[&own(behind, r#""action": "cancel""#)]), "Cancel", 0),
        (on(behind, &["exit 2"]), "Decline", 0),
        // Nobody is called to the screen where a hook answers.
        (
            json!({before: on(before, &["exit 2"])[before], "Notification": [{"matcher": "elicitation_dialog", "hooks": [{"type": "command", "command": "echo >> called"}]}]}),
            "Decline",
            0,
        ),
        // Before the person is asked, and when they have answered.
        (on("Notification", &["echo >> called"]), "blue", 2),
        (
            json!({"Notification": [{"matcher": "elicitation_response", "hooks": [{"type": "command", "command": "grep 'was answered: accept' >> called"}]}]}),
            "blue",
            1,
        ),
    ] {
        let stage =
            Stage::new(Script::new().reply([tool("Painter", json!({}))]).reply([text("Done.")])).await;
        let mut engine = stage.engine_with(|options| {
            hook(options, &settings);
            options.tools.push(Arc::new(Painter));
            options.host = options.host.clone().with_elicitor(Arc::new(Person));
        });
        run(&mut engine, "Go.").await.assert_completed();
        let result = &results_in(&stage.request(2))[0].2;
        assert!(result.contains(answer), "{settings}: {result}");
        let called = std::fs::read_to_string(stage.path("called")).unwrap_or_default();
        assert_eq!(called.lines().count(), told_times, "{settings}");
    }
}

#[tokio::test]
async fn pit_H3_hooks_of_the_end_that_never_agree_are_bounded_for_each_prompt_and_a_crash_is_no_objection() {
    let blocks = |line: &str| (line.to_owned(), Terminal::CompletedOverHooks, 9);
    let agrees = |line: &str| (line.to_owned(), Terminal::Completed, 1);
    for (line, terminal, questions) in [
        blocks("echo never >&2; exit 2"),
        blocks("date +%s%N >&2; exit 2"), // another reason each time
        blocks(r#"echo "{\"decision\": \"block\", \"reason\": \"$(date +%s%N)\"}""#),
        agrees("kill -9 $$"),
        agrees("exit 1"),
        agrees("exit 127"),
        agrees("echo '{broken'"),
    ] {
        // Calls in between make nobody more patient: each prompt is answered with and without one.
        for with_tool in [false, true] {
            let script = match with_tool {
                false => Script::new().step(Step::reply([text("Done.")]).always()),
                true => (0..20).fold(Script::new(), |script, _| {
                    script.reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")])
                }),
            };
            let stage = Stage::new(script).await;
            let mut engine = stage.engine_with(|options| hook(options, &on("Stop", &[&line])));
            for nth in 1..=2 {
                let told = run(&mut engine, "Go.").await;
                let outcome = told.outcome();
                assert_eq!((outcome.terminal, outcome.is_error), (terminal, false), "{line}");
                let asked = if with_tool { 2 * questions } else { questions };
                assert_eq!(stage.request_count(), asked * nth, "{line}: the next prompt counts anew");
                let overridden = said(&told).iter().any(|(words, _)| words.contains("against their will"));
                assert_eq!(overridden, terminal == Terminal::CompletedOverHooks, "{line}");
            }
        }
    }
}

#[tokio::test]
async fn a_hook_may_be_an_agent_that_looks_around_and_calls_no_hooks_itself() {
    let judge = || When::any().system("You are a hook");
    let script = Script::new()
        .step(
            Step::reply([tool("Read", json!({"file_path": "todo.txt"}))])
                .when(judge().last_user_text("one left")),
        )
        .step(Step::reply([text("I see. {\"ok\": false, \"reason\": \"one is left\"}")]).when(judge()))
        .step(Step::reply([text("{\"ok\": true}")]).when(judge()))
        .step(Step::reply([text("Done.")]).always());
    let stage = Stage::new(script).await;
    stage.write("todo.txt", "one left");
    let mut settings =
        json!({"Stop": [{"hooks": [{"type": "agent", "prompt": "Is there one left? $ARGUMENTS"}]}]});
    settings["PreToolUse"] = on("PreToolUse", &[&listening(&stage, "exit 2")])["PreToolUse"].clone();
    let mut engine = stage.engine_with(|options| hook(options, &settings));
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(told.transitions(), ["stop_hook_blocking"]);
    let kinds: Vec<HookKind> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Hook(run) => Some(run.kind),
            _ => None,
        })
        .collect();
    assert_eq!((kinds, heard(&stage).len()), (vec![HookKind::Agent; 2], 0));
    // It reads, and nothing else; what it is told is what hooks are told.
    let first = stage.request(2);
    let tools: Vec<&str> =
        first["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["Glob", "Grep", "Read"]);
    assert!(first["messages"].to_string().contains("last_assistant_message"), "{first}");
    assert!(!told.0.iter().any(|event| matches!(event, Event::Agent(_))), "it is no task of the model's");
}

#[tokio::test]
async fn an_agent_may_look_around_before_a_prompt_is_taken() {
    let judge = || When::any().system("You are a hook");
    let script = Script::new()
        .step(Step::reply([tool("Read", json!({"file_path": "freeze.txt"}))]).when(judge()))
        .step(Step::reply([text("{\"ok\": false, \"reason\": \"nothing is changed today\"}")]).when(judge()))
        .step(Step::reply([text("{\"ok\": true}")]).when(judge()))
        .step(Step::reply([text("Done.")]).always());
    let stage = Stage::new(script).await;
    stage.write("freeze.txt", "since Monday");
    let asks = json!({"UserPromptSubmit": [{"hooks": [{"type": "agent", "prompt": "May this be done? $ARGUMENTS"}]}]});
    let mut engine = stage.engine_with(|options| hook(options, &asks));
    let told = run(&mut engine, "Change it.").await;
    assert!(said(&told).iter().any(|(words, _)| words.contains("nothing is changed today")), "{told:?}");
    assert_eq!(stage.request_count(), 2, "nobody but the agent was asked");
    assert!(stage.request(1)["messages"].to_string().contains("Change it."));
    run(&mut engine, "Look at it.").await.assert_completed();
    assert_eq!(stage.request_count(), 4);
}
