use pelton_testkit::{Part, Script, text, thinking, tool};
use serde_json::{Value, json};

use super::{heard, newest, small, summary};
use crate::stage::{Stage, lines, resume_from, run, sh, unmarked};

const TOOLS: [&str; 6] = ["Bash", "Read", "TaskCreate", "TaskUpdate", "TodoWrite", "Write"];

fn todo(content: &str, status: &str) -> Value {
    json!({"content": content, "status": status, "activeForm": "Doing"})
}

fn resumed(stage: &Stage, file: &std::path::Path) -> pelton::Engine {
    stage.engine_with(|options| {
        small(options, &TOOLS);
        options.todo_tools = pelton::tools::TodoTools::AsGiven;
        resume_from(options, file);
    })
}

/// A session with lists and files of its own, as it was left.
async fn left(stage: Stage, more: impl IntoIterator<Item = Part>) -> (Stage, std::path::PathBuf) {
    let file = stage.path("notes.txt").display().to_string();
    let parts = [
        tool(
            "TodoWrite",
            json!({"todos": [todo("Count the beans", "in_progress"), todo("Weigh them", "pending")]}),
        ),
        tool("TaskCreate", json!({"subject": "Cook the beans", "description": "All of them."})),
        tool("TaskCreate", json!({"subject": "Eat them", "description": "Slowly."})),
        tool("TaskUpdate", json!({"taskId": "2", "addBlockedBy": ["1"]})),
        tool("Write", json!({"file_path": file, "content": "A thousand beans.\n"})),
    ];
    let script =
        Script::new().reply(parts.into_iter().chain(more)).reply([text("Begun.")]).reply([text("Going on.")]);
    let stage = stage.playing(script).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &TOOLS);
        options.todo_tools = pelton::tools::TodoTools::AsGiven;
    });
    run(&mut engine, "Always speak of beans.").await.assert_completed();
    run(&mut engine, "Go on with them.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    (stage, file)
}

const TOLD_AGAIN: [&str; 7] = [
    "All is well so far.",
    "first request, word for word:\nAlways speak of beans.",
    "[in progress] Count the beans",
    "- [ ] Weigh them",
    "#1 [pending] Cook the beans",
    "#2 [pending] Eat them [waits for #1]",
    "A thousand beans.",
];

#[tokio::test]
async fn pit_C4_a_session_that_goes_on_still_tells_again_what_matters() {
    let (stage, file) = left(Stage::new(Script::new()).await, []).await;
    // Nothing of it is known to this process but the file.
    let script = Script::new()
        .step(summary("All is well so far.").always())
        .reply([text("Still at it.")])
        .reply([tool("TodoWrite", json!({"todos": [todo("Rest", "pending")]}))])
        .reply([text("Now.")])
        .reply([text("Here.")]);
    let stage = stage.playing(script).await;
    let mut engine = resumed(&stage, &file);
    run(&mut engine, "And?").await.assert_completed();
    let summed = run(&mut engine, "/compact").await;
    assert!(!summed.outcome().is_error, "{}", summed.outcome().text);
    let told = run(&mut engine, "Take a rest.").await;
    told.assert_completed();
    let words = heard(&newest(&stage));
    for told_again in TOLD_AGAIN {
        assert!(words.contains(told_again), "{told_again:?} is missing: {words}");
    }
    let old = told.entries().iter().find_map(|entry| {
        let detail: Value = serde_json::from_slice(entry.detail.as_deref()?).ok()?;
        detail["oldTodos"][0]["content"].as_str().map(str::to_owned)
    });
    assert_eq!(old.as_deref(), Some("Count the beans"), "the tool knows the list, too");
    drop(engine);

    // Once more: the list is the newest one by now.
    let mut engine = resumed(&stage, &file);
    run(&mut engine, "Still there?").await.assert_completed();
    let stage_of_last = stage
        .playing(Script::new().step(summary("All is well so far.").always()).reply([text("Bye.")]))
        .await;
    drop(engine);
    let mut engine = resumed(&stage_of_last, &file);
    run(&mut engine, "/compact").await;
    run(&mut engine, "And now?").await.assert_completed();
    let words = heard(&newest(&stage_of_last));
    assert!(words.contains("- [ ] Rest") && words.contains("Eat them [waits for #1]"), "{words}");
    assert!(!words.contains("Weigh them"), "{words}");
}

#[tokio::test]
async fn what_stands_before_a_summary_is_not_needed_to_go_on() {
    let (stage, file) = left(Stage::new(Script::new()).await, []).await;
    let helper = || Script::new().step(summary("All is well so far.").always());
    let stage = stage.playing(helper()).await;
    let mut engine = resumed(&stage, &file);
    let summed = run(&mut engine, "/compact").await;
    assert!(!summed.outcome().is_error, "{}", summed.outcome().text);
    drop(engine);
    // Somebody keeps the boundary and what stands behind it only.
    let mut rest = lines(&file);
    rest.drain(..rest.iter().position(|line| line["subtype"] == "compact_boundary").unwrap());
    let boundary = rest[0].as_object_mut().unwrap();
    boundary.remove("edit").unwrap();
    let rest: String = rest.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, rest).unwrap();

    let stage = stage.playing(helper().reply([text("Here.")]).reply([text("Again.")])).await;
    let mut engine = resumed(&stage, &file);
    run(&mut engine, "And?").await.assert_completed();
    run(&mut engine, "/compact").await;
    run(&mut engine, "And now?").await.assert_completed();
    let words = heard(&newest(&stage));
    for told_again in TOLD_AGAIN {
        assert!(words.contains(told_again), "{told_again:?} is missing: {words}");
    }
}

/// What the model is sent next, by somebody who reads all of the file, and by somebody who reads what is needed.
async fn next_request(stage: Stage, file: &std::path::Path, whole: bool) -> (Stage, Value) {
    let copy = file.with_file_name("copy.jsonl");
    std::fs::copy(file, &copy).unwrap();
    let stage = stage.playing(Script::new().reply([text("Here.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &TOOLS);
        resume_from(options, &copy);
        let resumed = options.resume.as_mut().unwrap();
        if whole {
            resumed.conversation = pelton::transcript::read(&copy).unwrap();
        }
        assert!(!(whole && resumed.conversation.is_partial));
    });
    run(&mut engine, "And?").await.assert_completed();
    let request = unmarked(&newest(&stage)["messages"]);
    (stage, request)
}

#[tokio::test]
async fn pit_B2_what_is_read_from_the_newest_summary_on_is_sent_like_the_whole() {
    let mut stage = Stage::new(Script::new()).await;
    let mut file: Option<std::path::PathBuf> = None;
    for round in 0..3 {
        let mut script = Script::new().step(summary(&format!("All is well in round {round}.")).always());
        for turn in 0..4 {
            script = script
                .reply([
                    thinking(format!("Thought {round}.{turn}.")),
                    text("Looking."),
                    tool("Bash", sh("seq 1 400")),
                    tool("Bash", sh("echo b")),
                ])
                .reply([thinking("Seen."), text(format!("Done {round}.{turn}."))]);
        }
        stage = stage.playing(script).await;
        let mut engine = stage.engine_with(|options| {
            small(options, &TOOLS);
            if let Some(file) = &file {
                resume_from(options, file);
            }
        });
        for turn in 0..4 {
            run(&mut engine, &format!("Question {round}.{turn}.")).await.assert_completed();
            if turn == 2 {
                let summed = run(&mut engine, "/compact").await;
                assert!(!summed.outcome().is_error, "{}", summed.outcome().text);
            }
        }
        let path = engine.transcript_file().unwrap();
        drop(engine);
        let (whole, part);
        (stage, whole) = next_request(stage, &path, true).await;
        (stage, part) = next_request(stage, &path, false).await;
        assert!(pelton::transcript::read_window(&path).unwrap().is_partial);
        assert_eq!(part, whole, "round {round}");
        let words = part.to_string();
        assert!(words.contains(&format!("All is well in round {round}.")), "{words}");
        assert!(
            words.contains(&format!("Done {round}.3.")) && words.contains(&format!("Done {round}.2.")),
            "{words}"
        );
        file = Some(path);
    }
}

#[tokio::test]
async fn pit_B2_whatever_was_summed_up_and_undone_in_a_row_is_read_like_the_whole() {
    for commands in [
        &["/compact", "/compact", "ask"][..],
        &["/compact", "/uncompact", "/compact", "ask", "/compact"],
        &["/compact", "ask", "/compact", "/uncompact", "/uncompact", "ask", "/compact", "/context undo"],
        &[
            "/compact",
            "ask",
            "/context drop 1-2",
            "/compact",
            "/context undo",
            "ask",
            "/compact",
            "/uncompact",
        ],
    ] {
        let mut script = Script::new().step(summary("All is well.").always());
        // Much is said at first; later so little that a summary leaves several rounds as they are.
        let looks = |turn: usize, what: &str| {
            [thinking("Hm."), text(format!("Looking {turn}.")), tool("Bash", sh(what))]
        };
        for turn in 0..commands.len() + 3 {
            script = match turn {
                0 | 1 => script.reply(looks(turn, "seq 1 2000")),
                2 => (0..4).fold(script, |script, _| script.reply(looks(turn, "echo b"))),
                _ => script.reply(looks(turn, "echo c")),
            };
            script = script.reply([thinking("Seen."), text(format!("Done {turn}."))]);
        }
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| small(options, &TOOLS));
        for turn in 0..3 {
            run(&mut engine, &format!("Question {turn}.")).await.assert_completed();
        }
        let file = engine.transcript_file().unwrap();
        drop(engine);
        for (nth, command) in commands.iter().enumerate() {
            let words = if *command == "ask" { format!("And {nth}?") } else { (*command).to_owned() };
            let told = run(&mut resumed(&stage, &file), &words).await;
            let (failed, said) = (told.outcome().is_error, &told.outcome().text);
            assert!(!failed || nth > 1 && said.contains("nothing to"), "{commands:?}, {words}: {said}");
            stage.model.assert_clean();
            // Neither the script nor the record is used up by those who look.
            let looking = Stage::new(Script::new()).await;
            let (looking, whole) = next_request(looking, &file, true).await;
            let (_, part) = next_request(looking, &file, false).await;
            assert_eq!(part, whole, "behind {:?}", &commands[..=nth]);
        }
    }
}
