//! Calls that somebody is asked about.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use pelton::hooks::{HookConfig, Source};
use pelton::permission::{
    Answer, Asker, Behavior, Cause, Change, Destination, Mode, Question, Questions, Update,
};
use pelton::{Engine, Event, Options, Terminal};
use pelton::{Phase, Status, Wait};
use pelton_testkit::{Script, Step, When, error, gate, text, tool};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::probe::Notes;
use crate::stage::{Stage, holds, last_user_blocks, prompt, pulling, rest, results_in, run, sh, text_of};

/// Somebody who answers by a rule of their own, and remembers.
#[derive(Clone)]
struct Person(Arc<Inner>);

type Opinion = dyn Fn(&Question) -> Option<Answer> + Send + Sync;

struct Inner {
    answer: Box<Opinion>,
    many: bool,
    takes: fn(&Question) -> Duration,
    asked: Mutex<Vec<Question>>,
    /// How many questions are before them now, and were at most.
    open: Mutex<(usize, usize)>,
}

impl Person {
    /// Answers so; nothing means thinking about it for ever.
    fn who(answer: impl Fn(&Question) -> Option<Answer> + Send + Sync + 'static) -> Self {
        Self::new(false, |_| Duration::ZERO, answer)
    }

    fn new(
        many: bool,
        takes: fn(&Question) -> Duration,
        answer: impl Fn(&Question) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let (asked, open) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { answer: Box::new(answer), many, takes, asked, open }))
    }

    fn asked(&self) -> Vec<Question> {
        self.0.asked.lock().unwrap().clone()
    }

    fn calls(&self) -> Vec<String> {
        self.asked().iter().map(|question| question.call.to_string()).collect()
    }

    fn open(&self) -> usize {
        self.0.open.lock().unwrap().0
    }

    fn open_most(&self) -> usize {
        self.0.open.lock().unwrap().1
    }
}

/// A question before them.
struct Open<'a>(&'a Inner);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.lock().unwrap().0 -= 1;
    }
}

impl Asker for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            self.0.asked.lock().unwrap().push(question.clone());
            {
                let mut open = self.0.open.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
            }
            let _open = Open(&self.0);
            tokio::time::sleep((self.0.takes)(question)).await;
            match (self.0.answer)(question) {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn takes_many(&self) -> bool {
        self.0.many
    }
}

fn allowing(updates: Vec<Update>) -> Option<Answer> {
    Some(Answer::Allow { updated_input: None, updates })
}

/// A session in which such a person is asked.
fn engine(stage: &Stage, person: &Person, notes: &Notes, change: impl FnOnce(&mut Options)) -> Engine {
    stage.engine_with(|options| {
        options.mode = Mode::Default;
        options.tools.extend(notes.tools());
        options.questions = Some(Questions::to(person.clone()));
        change(options);
    })
}

fn change(name: &str) -> pelton_testkit::Part {
    tool("Change", json!({"name": name})).id(format!("toolu_{name}"))
}

fn look(name: &str) -> pelton_testkit::Part {
    tool("Look", json!({"name": name})).id(format!("toolu_{name}"))
}

/// Reading is asked about, too.
fn ask_about_looks(options: &mut Options) {
    options.rules.ask.push("Look".parse().unwrap());
}

#[tokio::test]
async fn loop_E6_loop_S1_the_host_decides_what_the_rules_leave_open_and_refusals_are_recorded() {
    let script = Script::new()
        .reply([look("a"), change("b"), change("c"), tool("Bash", sh("make it so")).id("toolu_d")])
        .reply([text("Done.")])
        .reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let person = Person::who(|question| {
        Some(match &*question.call {
            "toolu_b" => Answer::allow(),
            "toolu_c" => Answer::deny("Not this one, please."),
            _ => Answer::deny(""),
        })
    });
    let mut engine = engine(&stage, &person, &notes, |_| {});

    let told = run(&mut engine, "Go.").await;

    let outcome = told.assert_completed();
    assert_eq!(notes.begun(), ["a", "b"]);
    assert_eq!(person.calls(), ["toolu_b", "toolu_c", "toolu_d"], "what is allowed is not asked about");
    let results = results_in(&stage.request(2));
    assert_eq!(results[1], ("toolu_b".to_owned(), false, "b".to_owned()));
    assert_eq!(results[2], ("toolu_c".to_owned(), true, "Not this one, please.".to_owned()));
    assert!(results[3].1 && !results[3].2.trim().is_empty(), "{results:?}");
    let denied: Vec<&str> = outcome.denials.iter().map(|denial| &*denial.call).collect();
    assert_eq!(denied, ["toolu_c", "toolu_d"]);
    let question = &person.asked()[0];
    assert_eq!((&*question.tool, &question.input), ("Change", &json!({"name": "b"})));
    assert!(question.why.contains("needs approval"), "{}", question.why);
    assert_eq!(question.cause, Cause::Unapproved);
    assert_eq!(question.suggestions, [Update::session(Change::SetMode(Mode::AcceptEdits))]);
    let Change::AddRules(Behavior::Allow, rules) = &person.asked()[2].suggestions[0].change else {
        panic!("{:?}", person.asked()[2].suggestions)
    };
    assert_eq!(rules[0].to_string(), "Bash(make it *)");
    // Refusals count for the submission they happened in.
    assert!(run(&mut engine, "Really?").await.assert_completed().denials.is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_E6_an_input_that_was_changed_is_checked_and_judged_anew() {
    for (input, expected) in [
        (json!({"name": "other"}), (false, "other")),
        (json!({"game": 1}), (true, "InputValidationError")),
        (json!("x"), (true, "InputValidationError")),
    ] {
        let stage = Stage::new(Script::new().reply([change("own")]).reply([text("Done.")])).await;
        let notes = Notes::default();
        let updated = input.clone();
        let person = Person::who(move |_| {
            Some(Answer::Allow { updated_input: Some(updated.clone()), updates: Vec::new() })
        });
        run(&mut engine(&stage, &person, &notes, |_| {}), "Go.").await.assert_completed();
        let (_, is_error, words) = results_in(&stage.request(2)).remove(0);
        assert!(is_error == expected.0 && words.contains(expected.1), "{input}: {words}");
        assert_eq!(person.asked().len(), 1, "what somebody has spoken about is not asked again");
    }

    let script = Script::new().reply([tool("Bash", sh("touch allowed"))]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let person = Person::who(|_| {
        Some(Answer::Allow { updated_input: Some(sh("touch forbidden")), updates: Vec::new() })
    });
    let mut engine = engine(&stage, &person, &Notes::default(), |options| {
        options.rules.deny.push("Bash(touch forbidden)".parse().unwrap());
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().denials.len(), 1);
    assert!(results_in(&stage.request(2))[0].2.contains("Denied by the permission rule"));
    assert!(!stage.path("forbidden").exists() && !stage.path("allowed").exists());
}

#[tokio::test]
async fn what_is_put_in_the_way_while_somebody_is_asked_is_not_followed() {
    let write = json!({"file_path": "inner/made.txt", "content": "mine"});
    let stage = Stage::new(Script::new().reply([tool("Write", write)]).reply([text("Done.")])).await;
    let (inner, outside) = (stage.path("inner"), stage.path("../outside"));
    std::fs::create_dir(&inner).unwrap();
    std::fs::create_dir(&outside).unwrap();
    let target = outside.clone();
    let person = Person::who(move |_| {
        std::fs::remove_dir(&inner).unwrap();
        std::os::unix::fs::symlink(&target, &inner).unwrap();
        Some(Answer::allow())
    });
    run(&mut engine(&stage, &person, &Notes::default(), |_| {}), "Go.").await.assert_completed();
    let (_, is_error, words) = results_in(&stage.request(2)).remove(0);
    assert!(is_error, "{words}");
    assert!(!outside.join("made.txt").exists());
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn loop_P2_loop_E6_questions_come_one_at_a_time_and_in_call_order_while_hooks_run_together() {
    let script = Script::new().reply([look("a"), look("b"), look("c")]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let person = Person::new(false, |_| Duration::from_millis(20), |_| Some(Answer::allow()));
    // Every hook waits until all three have begun, and the first call's is the last to end.
    let hook = "cat > in.$$; id=$(grep -o 'toolu_[abc]' in.$$ | head -1); touch begun.$id; \
                while [ $(ls begun.* | wc -l) -lt 3 ]; do sleep 0.01; done; [ $id = toolu_a ] && sleep 0.2; true";
    let mut engine = engine(&stage, &person, &notes, |options| {
        ask_about_looks(options);
        options.hooks = hooks("PreToolUse", hook);
    });

    run(&mut engine, "Look.").await.assert_completed();

    assert_eq!(person.open_most(), 1);
    assert_eq!(person.calls(), ["toolu_a", "toolu_b", "toolu_c"]);
    assert_eq!(notes.begun().len(), 3);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P2_a_program_that_takes_many_questions_gets_them_at_once() {
    let script = Script::new().reply([look("a"), look("b"), look("c")]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let person = Person::new(true, |_| Duration::from_millis(60), |_| Some(Answer::allow()));
    let mut engine = engine(&stage, &person, &notes, ask_about_looks);
    run(&mut engine, "Look.").await.assert_completed();
    assert_eq!(person.open_most(), 3);
    assert_eq!(notes.begun().len(), 3);
}

#[tokio::test]
async fn a_call_that_needs_no_question_does_not_wait_for_another_ones() {
    let script = Script::new()
        .reply([look("asked"), tool("Glob", json!({"pattern": "*"})).id("toolu_free")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    stage.write("here.txt", "");
    let person = Person::who(|_| None);
    let mut engine = engine(&stage, &person, &Notes::default(), ask_about_looks);
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("Go."));
    let (told, ()) = pulling(&mut events, holds(|| person.open() == 1)).await;
    // The other one has a result by now or soon; it is told behind the first, which never comes.
    tokio::time::timeout(Duration::from_millis(200), pulling(&mut events, std::future::pending::<()>()))
        .await
        .unwrap_err();
    interrupter.interrupt();
    let results: Vec<_> = told.into_iter().chain(rest(&mut events).await).collect();
    let found = results.iter().filter_map(crate::stage::entry_of);
    assert!(found.into_iter().any(|entry| String::from_utf8_lossy(&entry.json).contains("here.txt")));
}

#[tokio::test]
async fn loop_P11_what_an_answer_changes_holds_for_the_calls_behind_and_later_submissions() {
    let script = Script::new()
        .reply([change("a"), change("b"), tool("Bash", sh("sh -c 'touch made'")).id("toolu_bash")])
        .reply([text("Done.")])
        .reply([change("c"), tool("Bash", sh("sh -c 'touch made'")).id("toolu_again")])
        .reply([text("Done again.")]);
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let rule = || Change::AddRules(Behavior::Allow, vec!["Bash(sh -c 'touch made')".parse().unwrap()]);
    let local = move || Update { change: rule(), destination: Destination::LocalSettings };
    let wanted = local();
    let person = Person::who(move |question| match &*question.tool {
        "Change" => allowing(question.suggestions.clone()),
        _ => allowing(vec![local()]),
    });
    let mut engine = engine(&stage, &person, &notes, |_| {});

    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(person.calls(), ["toolu_a", "toolu_bash"]);
    let updates = |event: &Event| match event {
        Event::PermissionsChanged(updates) => updates.to_vec(),
        _ => Vec::new(),
    };
    let changed: Vec<Update> = told.0.iter().flat_map(updates).collect();
    assert_eq!(changed.len(), 2);
    assert_eq!(changed[1], wanted, "the host is told what is to be kept, and where");
    assert_eq!(engine.permissions().mode(), Mode::AcceptEdits);

    let told = run(&mut engine, "Again.").await;
    told.assert_completed();
    assert_eq!(person.asked().len(), 2, "nothing is asked twice");
    assert_eq!(notes.begun(), ["a", "b", "c"]);
    let mode = told.0.iter().find_map(|event| match event {
        Event::Init(init) => Some(init.mode),
        _ => None,
    });
    assert_eq!(mode, Some(Mode::AcceptEdits));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P11_side_by_side_the_last_call_has_the_last_word_whoever_is_answered_first() {
    let script = Script::new().reply([look("slow"), look("fast")]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let mode = |mode| allowing(vec![Update::session(Change::SetMode(mode))]);
    // Both are asked at once.
    let takes = |question: &Question| match &*question.call {
        "toolu_slow" => Duration::from_millis(60),
        _ => Duration::ZERO,
    };
    let person = Person::new(true, takes, move |question| match &*question.call {
        "toolu_slow" => mode(Mode::Plan),
        _ => mode(Mode::AcceptEdits),
    });
    let mut engine = engine(&stage, &person, &notes, ask_about_looks);
    run(&mut engine, "Look.").await.assert_completed();
    assert_eq!(notes.begun(), ["fast", "slow"]);
    assert_eq!(engine.permissions().mode(), Mode::AcceptEdits);
}

#[tokio::test]
async fn a_question_that_an_earlier_answer_settles_is_not_asked() {
    let script = Script::new()
        .reply([
            tool("Read", json!({"file_path": "/etc/hostname"})).id("toolu_a"),
            tool("Read", json!({"file_path": "/etc/passwd"})).id("toolu_b"),
        ])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let person =
        Person::new(false, |_| Duration::from_millis(20), |question| allowing(question.suggestions.clone()));
    let mut engine = engine(&stage, &person, &Notes::default(), |_| {});
    run(&mut engine, "Read.").await.assert_completed();
    assert_eq!(person.calls(), ["toolu_a"], "the directory was allowed with the first");
    assert_eq!(person.asked()[0].cause, Cause::Outside("/etc/hostname".into()));
    assert!(results_in(&stage.request(2)).iter().all(|(_, is_error, _)| !is_error));
}

#[tokio::test]
async fn loop_A6_loop_X3_an_interrupt_takes_the_question_back_at_once() {
    let script = Script::new().reply([change("a"), change("b")]).reply([text("Fine.")]);
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let person = Person::who(|_| None);
    let mut engine = engine(&stage, &person, &notes, |_| {});
    let (interrupter, status) = (engine.interrupter(), engine.watch());
    let mut events = engine.submit(prompt("Go."));
    let asked = || person.open() == 1 && status.borrow().phase == Phase::ToolExec;
    let (mut told, ()) = pulling(&mut events, holds(asked)).await;
    let waits = |status: &watch::Receiver<Status>| status.borrow().waits.clone();
    assert_eq!(waits(&status), [Wait::Permission { call: "toolu_a".into() }]);
    let at = Instant::now();
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    let took = at.elapsed();
    drop(events);
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_eq!(person.open(), 0);
    assert!(waits(&status).is_empty());
    let told = crate::stage::Told(told);
    assert_eq!(told.outcome().terminal, Terminal::AbortedToolExecution);
    assert_eq!(told.results(), ["toolu_a", "toolu_b"]);
    run(&mut engine, "Never mind.").await.assert_completed();
    assert!(notes.begun().is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn letting_go_of_the_stream_takes_the_question_back() {
    let script = Script::new().reply([change("a")]).reply([text("Fine.")]);
    let stage = Stage::new(script).await;
    let person = Person::who(|_| None);
    let mut engine = engine(&stage, &person, &Notes::default(), |_| {});
    let mut events = engine.submit(prompt("Go."));
    pulling(&mut events, holds(|| person.open() == 1)).await;
    drop(events);
    assert_eq!(person.open(), 0);
    run(&mut engine, "Never mind.").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P8_a_discarded_answer_takes_its_question_back() {
    let script = Script::new()
        .step(Step::status(529).times(2))
        .step(Step::reply([
            look("asked"),
            gate("asked"),
            text("half a te").fragments(2).after(1, error("overloaded_error", "")),
        ]))
        .step(Step::reply([text("Done.")]).when(When::any().model("claude-haiku-4-5")));
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let person = Person::who(|_| None);
    let mut engine = engine(&stage, &person, &notes, |options| {
        ask_about_looks(options);
        options.fallback_models = vec!["claude-haiku-4-5".to_owned()];
    });
    let mut events = engine.submit(prompt("Go."));
    let (mut told, ()) = pulling(&mut events, holds(|| person.open() == 1)).await;
    stage.model.open("asked");
    told.extend(rest(&mut events).await);
    let told = crate::stage::Told(told);
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(person.open(), 0);
    assert!(notes.begun().is_empty() && told.results().is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X3_loop_E6_a_refusal_may_end_the_run() {
    // With the answer complete, and in the middle of it.
    for script in [
        Script::new().reply([change("a"), change("b")]).reply([text("Fine.")]),
        Script::new().reply([change("a"), change("b"), gate("never"), text("…")]).reply([text("Fine.")]),
    ] {
        let stage = Stage::new(script).await;
        let notes = Notes::default();
        let person = Person::who(|_| Some(Answer::Deny { message: "Stop it.".into(), interrupt: true }));
        let mut engine = engine(&stage, &person, &notes, |_| {});
        let told = run(&mut engine, "Go.").await;
        let outcome = told.outcome();
        assert_eq!(outcome.terminal, Terminal::AbortedToolExecution);
        assert!(outcome.is_error);
        assert_eq!(outcome.denials.len(), 1);
        assert_eq!(person.asked().len(), 1);
        run(&mut engine, "Calm down.").await.assert_completed();
        let request = stage.request(2);
        assert_eq!(results_in(&request)[0], ("toolu_a".to_owned(), true, "Stop it.".to_owned()));
        let words = text_of(&json!(last_user_blocks(&request)));
        assert!(words.contains("[Request interrupted by user for tool use]"), "{words}");
        assert!(notes.begun().is_empty());
    }
}

fn hooks(event: &str, command: &str) -> HookConfig {
    let settings = json!({event: [{"hooks": [{"type": "command", "command": command}]}]});
    let mut hooks = HookConfig::default();
    assert!(hooks.add_settings(&settings, &Source::User).is_empty());
    hooks
}

/// A hook that writes down what it hears, and prints this.
fn on(event: &str, prints: &Value) -> HookConfig {
    hooks(event, &format!("cat > heard.json; echo '{prints}'"))
}

fn decision(decision: &Value) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
}

#[tokio::test]
async fn a_hook_may_decide_before_the_person_does() {
    let updates =
        json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}, {"type": "?"}]);
    let allow =
        json!({"behavior": "allow", "updatedInput": {"name": "changed"}, "updatedPermissions": updates});
    let stage = Stage::new(Script::new().reply([change("a"), change("b")]).reply([text("Done.")])).await;
    let notes = Notes::default();
    let person = Person::who(|_| None);
    let hooks = on("PermissionRequest", &decision(&allow));
    let mut engine = engine(&stage, &person, &notes, |options| options.hooks = hooks);
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(notes.begun(), ["changed", "b"], "the mode holds for the next");
    assert_eq!(person.open(), 0, "the person's question was taken back");
    let heard: Value = serde_json::from_str(&stage.read("heard.json")).unwrap();
    assert_eq!(heard["permission_suggestions"][0]["type"], "setMode");
    assert_eq!((&heard["tool_name"], &heard["tool_input"]), (&json!("Change"), &json!({"name": "a"})));
    let said =
        |event: &Event| matches!(event, Event::Informational { content, .. } if content.contains("'?'"));
    assert!(told.0.iter().any(said), "what cannot be understood is told");
    stage.assert_all_played();
}

#[tokio::test]
async fn hooks_may_decide_when_there_is_nobody_and_without_a_word_of_theirs_it_is_refused() {
    for (prints, begun, words) in [
        (decision(&json!({"behavior": "allow"})), 1, "a"),
        (decision(&json!({"behavior": "deny", "message": "No."})), 0, "No."),
        (json!({}), 0, "nobody to ask"),
    ] {
        let stage = Stage::new(Script::new().reply([change("a")]).reply([text("Done.")])).await;
        let notes = Notes::default();
        let hooks = on("PermissionRequest", &prints);
        let mut engine = stage.engine_with(|options| {
            options.mode = Mode::Default;
            options.tools.extend(notes.tools());
            options.hooks = hooks;
        });
        run(&mut engine, "Go.").await.assert_completed();
        assert_eq!(notes.begun().len(), begun, "{prints}");
        let result = results_in(&stage.request(2)).remove(0).2;
        assert!(result.contains(words), "{prints}: {result}");
    }
}

#[tokio::test]
async fn a_hook_that_asks_leads_to_the_person_whatever_the_mode() {
    let prints = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "Is it late?"}});
    let stage = Stage::new(Script::new().reply([change("a")]).reply([text("Done.")])).await;
    let notes = Notes::default();
    let person = Person::who(|_| Some(Answer::allow()));
    let mut engine = engine(&stage, &person, &notes, |options| {
        options.mode = Mode::BypassPermissions;
        options.hooks = on("PreToolUse", &prints);
    });
    run(&mut engine, "Go.").await.assert_completed();
    assert_eq!(notes.begun(), ["a"]);
    let question = &person.asked()[0];
    assert_eq!((question.why.as_str(), &question.cause), ("Is it late?", &Cause::Hook));
}

#[tokio::test]
async fn hooks_hear_of_refusals_nobody_was_asked_about() {
    let stage = Stage::new(Script::new().reply([change("a")]).reply([text("Done.")])).await;
    let prints = json!({"hookSpecificOutput": {"hookEventName": "PermissionDenied", "retry": true}});
    let person = Person::who(|_| Some(Answer::deny("no")));
    let mut engine = engine(&stage, &person, &Notes::default(), |options| {
        options.mode = Mode::DontAsk;
        options.hooks = on("PermissionDenied", &prints);
    });
    run(&mut engine, "Go.").await.assert_completed();
    assert!(person.asked().is_empty());
    let heard: Value = serde_json::from_str(&stage.read("heard.json")).unwrap();
    assert_eq!((&heard["tool_use_id"], &heard["permission_mode"]), (&json!("toolu_a"), &json!("dontAsk")));
    assert!(heard["reason"].as_str().unwrap().contains("dontAsk"));
    assert!(stage.request(2).to_string().contains("may be tried again"));
}

#[tokio::test]
async fn somebody_who_crashes_has_not_allowed_it() {
    let stage = Stage::new(Script::new().reply([change("a")]).reply([text("Done.")])).await;
    let notes = Notes::default();
    let person = Person::who(|_| panic!("oh no"));
    run(&mut engine(&stage, &person, &notes, |_| {}), "Go.").await.assert_completed();
    assert!(notes.begun().is_empty());
    assert!(results_in(&stage.request(2))[0].2.contains("crashed"));
}

/// What a call would be refused for whatever the answer is, nobody is asked about: a file that was not read, a text that is not there, a
/// directory, input that is not whole. A rule that denies says no more than that.
#[tokio::test]
async fn nobody_is_asked_about_an_edit_that_cannot_happen() {
    let notebook = json!({"cells": [{"id": "c", "cell_type": "code", "source": "1", "metadata": {},
        "outputs": [], "execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    let edit = |file: &str, old: &str, new: &str| {
        tool("Edit", json!({"file_path": file, "old_string": old, "new_string": new}))
    };
    let write = |file: &str| tool("Write", json!({"file_path": file, "content": "new\n"}));
    let cell = |file: &str, id: Option<&str>| {
        tool("NotebookEdit", json!({"notebook_path": file, "cell_id": id, "new_source": "2"}))
    };
    let cases = [
        (None, edit("a.txt", "one", "two"), "has not been read in this session"),
        (None, write("a.txt"), "has not been read in this session"),
        (None, cell("n.ipynb", Some("c")), "has not been read in this session"),
        (None, cell("n.ipynb", None), "`cell_id` is missing"),
        (None, edit("gone.txt", "one", "two"), "does not exist"),
        (None, edit("gone/gone.txt", "one", "two"), "does not exist"),
        (None, edit("dir", "one", "two"), "is a directory"),
        (None, write("dir"), "is a directory"),
        (None, edit("a.txt", "", "two"), "is not empty"),
        (None, edit("n.ipynb", "", "two"), "NotebookEdit"),
        (Some("a.txt"), edit("a.txt", "absent", "two"), "`old_string` is not in it"),
        (Some("a.txt"), edit("a.txt", "o", "two"), "Add surrounding lines until it is unique"),
        (Some("n.ipynb"), cell("n.ipynb", Some("d")), "has no cell 'd'"),
    ];
    for (read, call, why) in cases {
        let first = read.map(|file| tool("Read", json!({"file_path": file})));
        let script = Script::new().reply(first.into_iter().chain([call])).reply([text("Done.")]);
        let stage = Stage::new(script).await;
        std::fs::write(stage.path("a.txt"), "one\ntwo o\n").unwrap();
        std::fs::write(stage.path("n.ipynb"), notebook.to_string()).unwrap();
        std::fs::create_dir(stage.path("dir")).unwrap();
        let person = Person::who(|_| Some(Answer::allow()));
        let notes = Notes::default();
        run(&mut engine(&stage, &person, &notes, |_| {}), "Go.").await.assert_completed();
        let (_, is_error, words) = results_in(&stage.request(2)).pop().unwrap();
        assert!(is_error && words.contains(why), "{why}: {words}");
        assert!(person.asked().is_empty(), "{why}");
        assert!(!stage.path("gone").exists(), "looking makes nothing");
    }
}

/// Of a file that could not be looked at without a question nothing is told before there was one: not how large it is, nor what is in it, nor
/// whether it is there.
#[tokio::test]
async fn of_a_file_outside_nothing_is_told_before_somebody_is_asked() {
    let outside = tempfile::tempdir().unwrap();
    let path = |name: &str| outside.path().canonicalize().unwrap().join(name);
    std::fs::write(path("text"), "one\n").unwrap();
    std::fs::write(path("binary"), b"one\0\0").unwrap();
    std::fs::write(path("large"), "one, and more than may be edited").unwrap();
    std::fs::create_dir(path("dir")).unwrap();
    std::fs::write(path("n.ipynb"), "no notebook").unwrap();
    let edit = |name: &str, old: &str| {
        tool("Edit", json!({"file_path": path(name), "old_string": old, "new_string": "two"}))
    };
    let cell = |name: &str| {
        tool("NotebookEdit", json!({"notebook_path": path(name), "cell_id": "c", "new_source": "2"}))
    };
    let files = ["text", "binary", "large", "dir", "gone", "gone/gone"];
    let calls = files.map(|name| (name, edit(name, "one"))).into_iter();
    let calls = calls.chain(["n.ipynb", "gone.ipynb"].map(|name| (name, cell(name))));
    for (name, call) in calls {
        let stage = Stage::new(Script::new().reply([call]).reply([text("Done.")])).await;
        let person = Person::who(|_| Some(Answer::allow()));
        let mut engine =
            engine(&stage, &person, &Notes::default(), |options| options.tool_limits.edit_bytes_max = 20);
        run(&mut engine, "Go.").await.assert_completed();
        let words = results_in(&stage.request(2)).remove(0).2;
        let expected = format!("{} has not been read in this session", path(name).display());
        assert!(words.contains(&expected), "{name}: {words}");
        assert!(person.asked().is_empty(), "{name}");
    }
    // Where it would make or fill a file, somebody is asked first.
    for call in [edit("text", ""), tool("Write", json!({"file_path": path("large"), "content": "new"}))] {
        let stage = Stage::new(Script::new().reply([call]).reply([text("Done.")])).await;
        let person = Person::who(|_| Some(Answer::allow()));
        run(&mut engine(&stage, &person, &Notes::default(), |_| {}), "Go.").await.assert_completed();
        assert_eq!(person.asked().len(), 1);
        let (_, is_error, words) = results_in(&stage.request(2)).remove(0);
        assert!(is_error && words.contains("Nothing was written"), "{words}");
    }
}

/// What can happen is asked about, once, and what a rule denies is told by nothing else.
#[tokio::test]
async fn edits_that_can_happen_are_asked_about_and_denied_ones_say_nothing_of_the_file() {
    let edit = || tool("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"}));
    let write = tool("Write", json!({"file_path": "sub/b.txt", "content": "new\n"}));
    let read = tool("Read", json!({"file_path": "a.txt"}));
    let script = Script::new().reply([read, edit(), write]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    std::fs::write(stage.path("a.txt"), "one\n").unwrap();
    let person = Person::who(|question| {
        Some(if &*question.tool == "Edit" { Answer::allow() } else { Answer::deny("") })
    });
    run(&mut engine(&stage, &person, &Notes::default(), |_| {}), "Go.").await.assert_completed();
    let asked: Vec<String> = person.asked().iter().map(|question| question.tool.to_string()).collect();
    assert_eq!(asked, ["Edit", "Write"]);
    assert_eq!(std::fs::read_to_string(stage.path("a.txt")).unwrap(), "two\n");
    assert!(!stage.path("sub").exists(), "nothing is made before somebody agrees");

    let stage = Stage::new(Script::new().reply([edit()]).reply([text("Done.")])).await;
    std::fs::write(stage.path("a.txt"), "one\n").unwrap();
    let mut engine = engine(&stage, &person, &Notes::default(), |options| {
        options.rules.deny.push("Edit(a.txt)".parse().unwrap());
    });
    run(&mut engine, "Go.").await.assert_completed();
    let words = results_in(&stage.request(2)).remove(0).2;
    assert!(words.contains("Denied by the permission rule") && !words.contains("read"), "{words}");
}
