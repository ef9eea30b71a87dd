//! Memory files: what the project and its user want the model to know.

use pelton::history::Kind;
use pelton::{Event, MemorySources, Options};
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, blocks, last_user_blocks, lines, resume_from, run, unmarked};
use crate::streams::months_later;

fn with_memory(options: &mut Options) {
    options.memory = Some(MemorySources::project());
}

fn words(blocks: &[Value]) -> String {
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn read(file: &str) -> pelton_testkit::Part {
    tool("Read", json!({"file_path": file}))
}

#[tokio::test]
async fn memory_is_told_in_the_users_role_in_front_of_the_prompt() {
    let stage = Stage::new(Script::new().reply([text("Yes.")])).await;
    stage.write("CLAUDE.md", "Speak plainly.\n<!-- not this -->\n");
    let mut engine = stage.engine_with(with_memory);
    let told = run(&mut engine, "Hello?").await;
    told.assert_completed();
    let request = stage.request(1);
    let system = request["system"].to_string();
    assert!(!system.contains("Speak plainly."), "it is not part of the system prompt");
    let user = blocks(&request, "user");
    let at =
        user.iter().position(|block| block["text"].as_str().unwrap().contains("Speak plainly.")).unwrap();
    let memory = user[at]["text"].as_str().unwrap();
    let name = format!("Contents of {} (project instructions", stage.path("CLAUDE.md").display());
    assert!(memory.contains(&name) && !memory.contains("not this"), "{memory}");
    assert_eq!(user.last().unwrap()["text"], "Hello?");
    assert!(at < user.len() - 1);

    let entries = lines(&engine.transcript_file().unwrap());
    let facts: Vec<&Value> = entries.iter().filter_map(|line| line.get("attachment")).collect();
    assert_eq!(*facts[0], json!({"type": "instructions", "files": [stage.path("CLAUDE.md")]}));
    let is_attachment = |event: &Event| matches!(event, Event::Attachment(_));
    assert_eq!(told.0.iter().filter(|event| is_attachment(event)).count(), 1);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_B2_memory_is_not_read_anew_when_a_session_is_resumed() {
    let script = Script::new().reply([text("One.")]).reply([text("Two.")]);
    let stage = Stage::new(script).await;
    stage.write("CLAUDE.md", "As it was.");
    let mut engine = stage.engine_with(with_memory);
    run(&mut engine, "First.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    stage.write("CLAUDE.md", "As it is now.");
    let mut engine = stage.engine_with(|options| {
        with_memory(options);
        resume_from(options, &file);
        options.world = months_later();
    });
    run(&mut engine, "Second.").await.assert_completed();
    let (first, second) = (stage.request(1), stage.request(2));
    assert_eq!(first["system"], second["system"]);
    let (old, new) = (unmarked(&first["messages"]), unmarked(&second["messages"]));
    let (old, new) = (old.as_array().unwrap(), new.as_array().unwrap());
    assert_eq!(new[..old.len()], old[..]);
    assert!(!second["messages"].to_string().contains("As it is now."));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_I11_memory_of_a_directory_comes_once_behind_the_first_file_read_there() {
    let script = Script::new().reply([read("src/a.rs")]).reply([read("src/b.rs")]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    std::fs::create_dir_all(stage.path("src")).unwrap();
    std::fs::create_dir_all(stage.path(".claude/rules")).unwrap();
    for name in ["src/a.rs", "src/b.rs"] {
        stage.write(name, "fn main() {}\n");
    }
    stage.write("src/CLAUDE.md", "Of the sources.");
    stage.write(".claude/rules/rust.md", "---\npaths: **/b.rs\n---\nOf b alone.");
    let mut engine = stage.engine_with(with_memory);
    let told = run(&mut engine, "Read.").await;
    let outcome = told.assert_completed();
    assert_eq!(outcome.num_turns, 3, "what is attached is no turn");

    assert!(!stage.request(1)["messages"].to_string().contains("Of the sources."));
    let second = stage.request(2);
    let (results, behind) = last_user_blocks(&second).split_at(1);
    assert_eq!(results[0]["type"], "tool_result");
    assert!(words(behind).contains("Of the sources.") && !words(behind).contains("Of b alone."));
    let third = stage.request(3);
    let (_, behind) = last_user_blocks(&third).split_at(1);
    assert!(words(behind).contains("Of b alone.") && !words(behind).contains("Of the sources."));
    // What was sent stays as it is.
    let (old, new) = (unmarked(&second["messages"]), unmarked(&third["messages"]));
    assert_eq!(new.as_array().unwrap()[..old.as_array().unwrap().len()], old.as_array().unwrap()[..]);
    let metas = told.0.iter().filter(|event| match event {
        Event::Attachment(entry) => matches!(entry.kind, Kind::Prompt { meta: true }),
        _ => false,
    });
    assert_eq!(metas.count(), 2);
    stage.assert_all_played();
}

#[tokio::test]
async fn a_file_that_rules_keep_from_being_read_is_not_imported() {
    let stage = Stage::new(Script::new().reply([text("Yes.")])).await;
    stage.write("CLAUDE.md", "See @.env and @open.md");
    stage.write(".env", "SECRET=1");
    stage.write("open.md", "An open word.");
    let mut engine = stage.engine_with(|options| {
        with_memory(options);
        options.rules.deny.push("Read(.env)".parse().unwrap());
    });
    run(&mut engine, "Hello?").await.assert_completed();
    let sent = stage.request(1)["messages"].to_string();
    assert!(sent.contains("An open word.") && !sent.contains("SECRET=1"));
}
