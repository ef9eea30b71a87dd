//! Plan mode, in and out, and questions that only the user can answer.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pelton::permission::{Answer, Asker, Cause, Change, Mode, Question, Questions, Update};
use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, results_in, run};

/// Answers what it is told to, and remembers what it was asked.
#[derive(Clone)]
struct User(Arc<(Answer, Mutex<Vec<Question>>)>);

impl User {
    fn who(answer: Answer) -> Self {
        Self(Arc::new((answer, Mutex::default())))
    }

    fn asked(&self) -> Vec<Question> {
        self.0.1.lock().unwrap().clone()
    }
}

impl Asker for User {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.0.1.lock().unwrap().push(question.clone());
        Box::pin(async { self.0.0.clone() })
    }
}

fn offered(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

const WAITING: [&str; 3] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

#[tokio::test]
async fn pit_P5_in_plan_mode_nothing_changes_until_the_plan_is_approved() {
    let write = |name: &str| tool("Write", json!({"file_path": name, "content": "x"}));
    let stage = Stage::new(
        Script::new()
            .step(Step::reply([tool("EnterPlanMode", json!({}))]))
            .step(Step::reply([write("early.txt"), tool("Bash", json!({"command": "touch early2.txt"}))]))
            .step(Step::reply([tool("ExitPlanMode", json!({"plan": "# Write a file"}))]))
            .step(Step::reply([write("late.txt")]))
            .step(Step::reply([text("Done.")])),
    )
    .await;
    let user = User::who(Answer::allow());
    // Whatever would be asked about in plan mode is refused, the plan itself is approved.
    let plans_only = Questions::to(OnlyPlans(user.clone()));
    let mut engine = stage.engine_with(|options| {
        options.questions = Some(plans_only);
        options.mode = Mode::AcceptEdits;
    });

    run(&mut engine, "Write a file.").await.assert_completed();

    assert!(!stage.path("early.txt").exists() && !stage.path("early2.txt").exists());
    assert!(stage.path("late.txt").exists(), "the mode from before is back");
    assert_eq!(engine.permissions().mode(), Mode::AcceptEdits);
    let approved = results_in(&stage.request(4));
    assert!(approved.last().unwrap().2.contains("# Write a file"), "{approved:?}");
    let asked = user.asked();
    let plan = asked.iter().find(|question| &*question.tool == "ExitPlanMode").unwrap();
    assert_eq!((&plan.cause, plan.suggestions.is_empty()), (&Cause::Person, true));
}

/// Lets plans pass and nothing else.
struct OnlyPlans(User);

impl Asker for OnlyPlans {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let is_plan = &*question.tool == "ExitPlanMode";
        let asked = self.0.ask(question);
        Box::pin(async move {
            let answer = asked.await;
            if is_plan { answer } else { Answer::deny("not now") }
        })
    }
}

#[tokio::test]
async fn whoever_approves_a_plan_may_choose_the_mode_to_go_on_in() {
    let stage = Stage::new(
        Script::new()
            .step(Step::reply([tool("ExitPlanMode", json!({"plan": "p"}))]))
            .step(Step::reply([text("Done.")])),
    )
    .await;
    let updates = vec![Update::session(Change::SetMode(Mode::AcceptEdits))];
    let user = User::who(Answer::Allow { updated_input: None, updates });
    let mut engine = stage.engine_with(|options| {
        options.questions = Some(Questions::to(user));
        options.mode = Mode::Plan;
    });
    run(&mut engine, "Go.").await.assert_completed();
    assert_eq!(engine.permissions().mode(), Mode::AcceptEdits);
    let first = stage.request(1)["messages"].to_string();
    assert!(first.contains("Plan mode is on"), "the model knows from the start: {first}");
    let again = stage.request(2)["messages"].to_string();
    assert_eq!(again.matches("Plan mode is on").count(), 1);
}

#[tokio::test]
async fn a_plan_is_in_a_file_before_anybody_is_asked_about_it() {
    let stage = Stage::new(
        Script::new()
            .step(Step::reply([tool("ExitPlanMode", json!({"plan": "# Do it"}))]))
            .step(Step::reply([text("Then not.")])),
    )
    .await;
    let plans = stage.path("kept/plans");
    let user = User::who(Answer::deny("no"));
    let mut engine = stage.engine_with(|options| {
        options.questions = Some(Questions::to(user.clone()));
        options.mode = Mode::Plan;
        options.plans_dir = Some(plans.clone());
    });
    run(&mut engine, "Go.").await.assert_completed();
    let asked = user.asked();
    assert_eq!(asked[0].input["plan"], "# Do it");
    let file = std::path::Path::new(asked[0].input["planFilePath"].as_str().unwrap());
    assert_eq!((file.parent(), file.extension().and_then(|end| end.to_str())), (Some(&*plans), Some("md")));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "# Do it");
    let sent = &stage.request(2)["messages"][1]["content"];
    assert_eq!(sent[0]["input"], json!({"plan": "# Do it"}), "what the model said stays as it was");
}

#[tokio::test]
async fn a_question_is_put_to_the_user_in_every_mode_and_the_answer_comes_back() {
    let question = json!({"question": "Which?", "header": "Choice", "multiSelect": false,
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]});
    for mode in [Mode::Default, Mode::BypassPermissions] {
        let stage = Stage::new(
            Script::new()
                .step(Step::reply([tool("AskUserQuestion", json!({"questions": [question]}))]))
                .step(Step::reply([text("Done.")])),
        )
        .await;
        let answered = json!({"questions": [question], "answers": {"Which?": "B"}});
        let user = User::who(Answer::Allow { updated_input: Some(answered), updates: Vec::new() });
        let mut engine = stage.engine_with(|options| {
            options.questions = Some(Questions::to(user.clone()));
            options.mode = mode;
        });
        run(&mut engine, "Ask me.").await.assert_completed();
        assert_eq!(user.asked().len(), 1, "{mode:?}");
        let results = results_in(&stage.request(2));
        assert!(results[0].2.contains("\"Which?\": B") && !results[0].1, "{results:?}");
    }
}

#[tokio::test]
async fn without_anybody_to_ask_such_tools_are_not_offered() {
    let script = || Script::new().step(Step::reply([text("Done.")]));
    let stage = Stage::new(script()).await;
    let mut engine = stage.engine_with(|_| {});
    run(&mut engine, "Go.").await.assert_completed();
    assert!(!offered(&stage.request(1)).iter().any(|name| WAITING.contains(name)));

    let stage = Stage::new(script()).await;
    let user = User::who(Answer::allow());
    let mut engine = stage.engine_with(|options| options.questions = Some(Questions::to(user)));
    run(&mut engine, "Go.").await.assert_completed();
    let request = stage.request(1);
    let names = offered(&request);
    assert!(WAITING.iter().all(|name| names.contains(name)), "{names:?}");
}
