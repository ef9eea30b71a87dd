//! Things to do: which tools for them are told of, and what becomes of them when a session goes on.

use pelton::tools::TodoTools;
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, results_in, run};

fn names(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    tools
        .filter(|name| {
            name.starts_with("To")
                || (name.starts_with("Task") && !matches!(*name, "TaskOutput" | "TaskStop"))
        })
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn tasks_survive_a_resume() {
    let create =
        |id: &str, subject: &str| tool("TaskCreate", json!({"subject": subject, "description": "d"})).id(id);
    let script = Script::new()
        .reply([create("toolu_1", "one"), create("toolu_2", "two"), create("toolu_3", "three")])
        .reply([
            tool(
                "TaskUpdate",
                json!({"taskId": "2", "status": "in_progress", "addBlockedBy": ["1"], "owner": "me"}),
            )
            .id("toolu_4"),
            tool("TaskUpdate", json!({"taskId": "9", "status": "completed"})).id("toolu_5"),
            tool("TaskUpdate", json!({"taskId": "3", "status": "deleted"})).id("toolu_6"),
        ])
        .reply([text("Later.")])
        .reply([create("toolu_7", "four"), tool("TaskList", json!({})).id("toolu_8")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Plan.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    run(&mut stage.resume(&file), "Go on.").await.assert_completed();
    let results = results_in(&stage.request(5));
    assert_eq!(
        results.last().unwrap().2,
        "#1 [pending] one\n#2 [in_progress] two (me) [waits for #1]\n#4 [pending] four"
    );
    assert!(results[4].1, "an unknown task is an error");
    stage.assert_all_played();
}

#[tokio::test]
async fn the_newest_models_are_told_of_no_list_and_older_ones_of_tasks() {
    let tasks = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];
    for (which, model, expected) in [
        (TodoTools::ByModel, "claude-sonnet-5-5", &[][..]),
        (TodoTools::ByModel, "claude-sonnet-4-5", &tasks),
        (TodoTools::Tasks, "claude-sonnet-5-5", &tasks),
        (TodoTools::Todos, "claude-sonnet-4-5", &["TodoWrite"]),
        (
            TodoTools::AsGiven,
            "claude-sonnet-5-5",
            &["TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TodoWrite"],
        ),
    ] {
        // Whatever is told of, a call is a call.
        let todo = json!({"todos": [{"content": "a", "status": "pending", "activeForm": "b"}]});
        let script = Script::new().reply([tool("TodoWrite", todo).id("toolu_1")]).reply([text("Done.")]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| {
            options.todo_tools = which;
            options.model = model.to_owned();
        });
        run(&mut engine, "Go.").await.assert_completed();
        assert_eq!(names(&stage.request(1)), expected, "{which:?} {model}");
        assert!(!results_in(&stage.request(2))[0].1);
    }
}
