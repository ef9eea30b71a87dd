//! Permissions that were asked for by a process that is gone, and answered since.

use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use pelton::StartError;
use pelton::command::Expansion;
use pelton::permission::{Answer, Asker, Mode, Question, Questions};
use pelton::{Engine, Event, LateAnswer, MemorySources, Options, Prompt, PromptBlock, Wait};
use pelton_testkit::{Script, text, thinking, tool};
use serde_json::{Value, json};

use crate::hooks::{hook, on, said};
use crate::input::command;
use crate::stage::{
    Stage, Told, blocks, holds, last_user_blocks, prompt, pulling, rest, results_in, resume_from, run, sh,
    text_of,
};

/// Never answers, or always yes.
struct Person {
    answers: bool,
}

impl Asker for Person {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move { if self.answers { Answer::allow() } else { std::future::pending().await } })
    }
}

fn asks(options: &mut Options, answers: bool) {
    options.mode = Mode::Default;
    options.questions = Some(Questions::to(Person { answers }));
}

/// Submits, waits until a condition of the status holds, and dies there: what is left is a copy of the file.
async fn killed_when(
    stage: &Stage,
    mut engine: Engine,
    condition: impl Fn(&pelton::Status) -> bool,
) -> PathBuf {
    let (watch, file) = (engine.watch(), engine.transcript_file().unwrap());
    let mut events = engine.submit(prompt("Do it."));
    pulling(&mut events, holds(|| condition(&watch.borrow()))).await;
    let copy = stage.path("killed.jsonl");
    std::fs::copy(file, &copy).unwrap();
    copy
}

fn is_asked(status: &pelton::Status) -> bool {
    status.waits.iter().any(|wait| matches!(wait, Wait::Permission { .. }))
}

fn options(stage: &Stage, file: &Path, call: &str, answer: Answer) -> Options {
    let mut options = stage.options();
    asks(&mut options, false);
    resume_from(&mut options, file);
    options.late_answer = Some(LateAnswer { call: call.to_owned(), answer });
    options
}

fn late(stage: &Stage, file: &Path, call: &str, answer: Answer) -> Engine {
    Engine::new(options(stage, file, call, answer)).unwrap()
}

fn once() -> Script {
    let call = tool("Bash", sh("echo ran >> ran.txt; cat ran.txt")).id("toolu_late");
    Script::new().reply([thinking("Hm."), text("I will."), call])
}

#[tokio::test]
async fn loop_S3_loop_E26_a_late_answer_is_settled_once_and_then_the_prompt_is_worked_off() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let script = once()
        .reply([tool("Bash", sh("touch allowed"))])
        .reply([text("It ran.")])
        .reply([tool("Bash", sh("touch denied"))])
        .reply([text("Enough.")]);
    let stage = Stage::new(script).await;
    stage.write("notes.txt", "remember the milk");
    let first = stage.engine_with(|options| asks(options, false));
    let file = killed_when(&stage, first, is_asked).await;
    assert!(!stage.path("ran.txt").exists());

    let mut options = options(&stage, &file, "toolu_late", Answer::allow());
    options.questions = None;
    command(&mut options, "go", |arguments| {
        let mut expansion = Expansion::prompt(format!("Look at {arguments} and go on."));
        expansion.model = Some("haiku".to_owned());
        expansion.allowed_tools = vec!["Bash(touch:*)".parse().unwrap()];
        Ok(expansion)
    });
    hook(&mut options, &on("UserPromptSubmit", &["echo 'it is Monday'"]));
    let mut engine = Engine::new(options).unwrap();
    let picture = PromptBlock::Image { media_type: "image/png".to_owned(), base64: PIXEL.to_owned() };
    let typed = Prompt::blocks([PromptBlock::Text("/go @notes.txt".to_owned()), picture]).unwrap();
    let told = Told(rest(&mut engine.submit(typed)).await);
    told.assert_completed();

    // The call ran once, and its result stands where the API needs it: directly behind the call, before all else.
    assert_eq!(stage.read("ran.txt"), "ran\n");
    let second = stage.request(2);
    let last = last_user_blocks(&second);
    assert_eq!((&last[0]["type"], &last[0]["tool_use_id"]), (&json!("tool_result"), &json!("toolu_late")));
    assert_eq!(results_in(&second), [("toolu_late".to_owned(), false, "ran".to_owned())]);
    let said = text_of(&json!(last));
    for words in ["it is Monday", "remember the milk", "Look at @notes.txt and go on."] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(last.iter().any(|block| block["type"] == "image"));
    assert!(second["model"].as_str().unwrap().starts_with("claude-haiku"));
    assert!(stage.path("allowed").exists());
    assert_eq!(told.results()[0], "toolu_late");
    assert!(matches!(told.0[0], Event::Init(_)), "{:?}", told.0[0]);
    assert_eq!(told.0.iter().filter(|event| matches!(event, Event::Init(_))).count(), 1);

    // Once per engine, and what the command chose is over.
    run(&mut engine, "And now?").await.assert_completed();
    assert_eq!(stage.read("ran.txt"), "ran\n");
    assert!(stage.request(4)["model"].as_str().unwrap().starts_with("claude-sonnet"));
    assert!(!stage.path("denied").exists());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_E26_a_refusal_that_comes_late_is_the_calls_result() {
    let stage = Stage::new(once().reply([text("As you like.")])).await;
    let file = killed_when(&stage, stage.engine_with(|options| asks(options, false)), is_asked).await;
    let mut engine = late(&stage, &file, "toolu_late", Answer::deny("Rather not."));
    let told = run(&mut engine, "Go on.").await;
    let outcome = told.assert_completed();
    assert_eq!(outcome.denials.len(), 1);
    assert_eq!(results_in(&stage.request(2)), [("toolu_late".to_owned(), true, "Rather not.".to_owned())]);
    assert!(!stage.path("ran.txt").exists());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_E26_rules_stand_above_a_late_answer() {
    let stage = Stage::new(once().reply([text("Then not.")])).await;
    let file = killed_when(&stage, stage.engine_with(|options| asks(options, false)), is_asked).await;
    let mut options = options(&stage, &file, "toolu_late", Answer::allow());
    options.rules.deny = vec!["Bash(echo:*)".parse().unwrap()];
    run(&mut Engine::new(options).unwrap(), "Go on.").await.assert_completed();
    assert!(results_in(&stage.request(2))[0].1 && !stage.path("ran.txt").exists());
}

#[tokio::test]
async fn loop_E26_a_call_that_may_have_run_is_not_run_again() {
    let call = tool("Bash", sh("echo ran >> ran.txt; sleep 60")).id("toolu_late");
    let stage = Stage::new(Script::new().reply([call]).reply([text("I see.")])).await;
    let ran = stage.path("ran.txt");
    let first = stage.engine_with(|options| asks(options, true));
    let file = killed_when(&stage, first, |_| std::fs::read(&ran).is_ok_and(|said| said == b"ran\n")).await;
    assert_eq!(stage.read("ran.txt"), "ran\n");

    let mut engine = late(&stage, &file, "toolu_late", Answer::allow());
    let told = run(&mut engine, "Go on.").await;
    told.assert_completed();
    assert_eq!(stage.read("ran.txt"), "ran\n");
    let [(words, false)] = &said(&told)[..] else { panic!("{:?}", said(&told)) };
    assert!(words.contains("toolu_late") && words.contains("may have run already"), "{words}");
    let [(_, true, result)] = &results_in(&stage.request(2))[..] else { panic!("one result") };
    assert!(result.contains("interrupted"), "{result}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_E26_an_answer_for_a_call_that_has_its_result_changes_nothing() {
    let script = Script::new()
        .reply([tool("Bash", sh("echo ran >> ran.txt")).id("toolu_late")])
        .reply([text("Done.")])
        .reply([text("Hello.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| asks(options, true));
    run(&mut engine, "Do it.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let mut engine = late(&stage, &file, "toolu_late", Answer::allow());
    let told = run(&mut engine, "Hello?").await;
    told.assert_completed();
    assert!(said(&told)[0].0.contains("has its result already"));
    assert_eq!(stage.read("ran.txt"), "ran\n");
}

#[tokio::test]
async fn loop_E26_a_call_nobody_made_is_named_at_once() {
    let stage = Stage::new(once()).await;
    let file = killed_when(&stage, stage.engine_with(|options| asks(options, false)), is_asked).await;
    let error = Engine::new(options(&stage, &file, "toolu_other", Answer::allow())).err().unwrap();
    assert!(matches!(&error, StartError::NoSuchCall { call } if call == "toolu_other"), "{error}");
    assert!(error.to_string().contains("toolu_other"), "{error}");
}

#[tokio::test]
async fn loop_E26_an_answer_may_come_after_the_conversation_went_on_without_it() {
    let script = once()
        .reply([thinking("Lost."), text("It was interrupted.")])
        .reply([text("Now it ran.")])
        .reply([text("Still there.")]);
    let stage = Stage::new(script).await;
    let file = killed_when(&stage, stage.engine_with(|options| asks(options, false)), is_asked).await;
    let mut engine = stage.engine_with(|options| {
        asks(options, false);
        resume_from(options, &file);
    });
    run(&mut engine, "What happened?").await.assert_completed();
    assert!(results_in(&stage.request(2))[0].2.contains("interrupted"));
    drop(engine);

    let mut engine = late(&stage, &file, "toolu_late", Answer::allow());
    run(&mut engine, "Go on.").await.assert_completed();
    assert_eq!(stage.read("ran.txt"), "ran\n");
    let third = stage.request(3);
    let messages = third["messages"].as_array().unwrap();
    assert_eq!(
        messages[2]["content"][0]["tool_use_id"], "toolu_late",
        "in the place of what stood in for it"
    );
    assert_eq!(results_in(&third), [("toolu_late".to_owned(), false, "ran".to_owned())]);
    drop(engine);

    // And it stays there after another restart.
    run(&mut stage.resume(&file), "Still there?").await.assert_completed();
    let fourth: Value = (*stage.request(4)).clone();
    assert_eq!(results_in(&fourth), [("toolu_late".to_owned(), false, "ran".to_owned())]);
    assert!(blocks(&fourth, "assistant").iter().all(|block| block["type"] != "thinking"));
    stage.assert_all_played();
}

#[tokio::test]
async fn what_waits_for_the_prompt_is_told_beside_what_hooks_of_the_start_say() {
    let stage = Stage::new(once().reply([text("It ran.")])).await;
    let keeps_notes = |options: &mut Options, dir: &str| {
        options.memory = Some(MemorySources::project());
        options.memory.as_mut().unwrap().notes_dir = Some(dir.into());
    };
    let mut first = stage.engine_with(|options| {
        asks(options, false);
        keeps_notes(options, "/notes/here");
    });
    let (watch, file) = (first.watch(), first.transcript_file().unwrap());
    let mut events = first.submit(prompt("Do it."));
    pulling(&mut events, holds(|| is_asked(&watch.borrow()))).await;
    // What was sent is written down a moment later; without it, another front is made.
    let is_noted = || std::fs::read_to_string(&file).is_ok_and(|record| record.contains("\"systemHash\""));
    pulling(&mut events, holds(is_noted)).await;
    drop(events);
    drop(first);
    let mut options = options(&stage, &file, "toolu_late", Answer::allow());
    keeps_notes(&mut options, "/notes/elsewhere");
    hook(&mut options, &on("SessionStart", &["echo 'it is Monday'"]));
    let mut engine = Engine::new(options).unwrap();
    Told(rest(&mut engine.submit(prompt("Go on."))).await).assert_completed();
    let said = text_of(&json!(last_user_blocks(&stage.request(2))));
    for words in ["it is Monday", "/notes/elsewhere"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
