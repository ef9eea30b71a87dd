//! What the agent did to files, and the way back.

use pelton::file_history::{Conflicts, FileHistoryLimits, HistoryError};
use pelton::{Engine, Event};
use pelton_testkit::{Script, text, tool};
use serde_json::json;

use uuid::Uuid;

use crate::stage::{Stage, Told, resume_from, run, sh};

fn kept(stage: &Stage) -> Engine {
    stage.engine_with(|options| options.file_history = Some(FileHistoryLimits::default()))
}

/// The messages of the user in a submission that went well.
fn prompt_ids(told: &Told) -> Vec<Uuid> {
    told.assert_completed();
    let prompts = told.0.iter().filter_map(|event| match event {
        Event::Prompt(entry) => Some(entry.id),
        _ => None,
    });
    prompts.collect()
}

#[tokio::test]
async fn loop_S7_pit_S6_every_submission_is_a_point_to_go_back_to() {
    let agent = json!({"description": "d", "prompt": "Write it.", "subagent_type": "general-purpose"});
    let script = Script::new()
        .reply([
            tool("Write", json!({"file_path": "new.txt", "content": "made\n"})),
            tool("Bash", sh("echo changed > old.txt; mkdir deep; echo x > deep/x; rm gone.txt")),
        ])
        .reply([text("Done.")])
        .reply([tool("Agent", agent)])
        .reply([tool("Bash", sh("echo by-agent > deep/agent.txt"))])
        .reply([text("Written.")])
        .reply([text("Done again.")])
        .reply([text("And on.")]);
    let stage = Stage::new(script).await;
    stage.write("old.txt", "old\n");
    stage.write("gone.txt", "still here\n");
    stage.write("users.txt", "mine\n");
    let mut engine = kept(&stage);
    let first = prompt_ids(&run(&mut engine, "Change things.").await);
    stage.write("users.txt", "mine, changed\n");
    let second = prompt_ids(&run(&mut engine, "Let an agent do more.").await);
    assert_eq!(stage.read("deep/agent.txt"), "by-agent\n");
    let file = engine.transcript_file().unwrap();
    drop(engine);

    // Another process goes on with the session.
    let mut engine = stage.engine_with(|options| {
        options.file_history = Some(FileHistoryLimits::default());
        resume_from(options, &file);
    });
    let third = prompt_ids(&run(&mut engine, "Go on.").await);
    let history = engine.file_history().unwrap();
    assert_eq!(history.messages().unwrap(), [first.clone(), second.clone(), third].concat());

    history.rewind(second[0], Conflicts::Leave).unwrap();
    assert!(!stage.path("deep/agent.txt").exists(), "what an agent of the agent did is undone, too");
    assert_eq!(stage.read("deep/x"), "x\n");
    history.rewind(first[0], Conflicts::Leave).unwrap();
    assert!(!stage.path("new.txt").exists() && !stage.path("deep").exists());
    assert_eq!(stage.read("old.txt"), "old\n");
    assert_eq!(stage.read("gone.txt"), "still here\n");
    assert_eq!(stage.read("users.txt"), "mine, changed\n", "what the user did stays");
    history.undo(Conflicts::Leave).unwrap();
    history.undo(Conflicts::Leave).unwrap();
    assert_eq!(stage.read("deep/agent.txt"), "by-agent\n");
    assert_eq!(stage.read("old.txt"), "changed\n");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_S7_nothing_is_kept_unless_that_is_wanted_and_recorded() {
    let stage =
        Stage::new(Script::new().reply([tool("Bash", sh("echo x > a"))]).reply([text("Done.")])).await;
    let mut engine = stage.engine();
    run(&mut engine, "Change it.").await.assert_completed();
    assert!(engine.file_history().is_none());
    assert!(!stage.config_dir().join("file-history").exists());
    let unrecorded = stage.engine_with(|options| {
        options.file_history = Some(FileHistoryLimits::default());
        options.sessions = None;
    });
    assert!(unrecorded.file_history().is_none());
}

#[tokio::test]
async fn a_history_that_cannot_be_kept_is_told_and_stops_nothing() {
    let script = Script::new().reply([tool("Bash", sh("echo x > a"))]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    std::fs::create_dir_all(stage.config_dir()).unwrap();
    std::fs::write(stage.config_dir().join("file-history"), "in the way").unwrap();
    let mut engine = kept(&stage);
    let told: Told = run(&mut engine, "Change it.").await;
    told.assert_completed();
    let is_about_it = |event: &&Event| matches!(event, Event::Informational { content, .. } if content.contains("file history"));
    assert_eq!(told.0.iter().filter(is_about_it).count(), 1);
    assert_eq!(stage.read("a"), "x\n");
    assert!(matches!(engine.file_history().unwrap().messages(), Err(HistoryError::None)));
}
