//! Memory files: what the project and its user want the model to know.

use pelton::history::Kind;
use pelton::{Event, MemorySources, Options};
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, blocks, last_user_blocks, lines, results_in, resume_from, run, unmarked};
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
async fn pit_B2_memory_that_changed_before_a_session_is_resumed_is_told_at_the_end() {
    let script = Script::new()
        .reply([read("part/a.rs")])
        .reply([text("One.")])
        .reply([text("Two.")])
        .reply([text("Three.")])
        .reply([text("Four.")]);
    let stage = Stage::new(script).await;
    for dir in ["part", ".claude/rules"] {
        std::fs::create_dir_all(stage.path(dir)).unwrap();
    }
    stage.write("part/a.rs", "fn main() {}\n");
    stage.write("CLAUDE.md", "As it was.");
    stage.write("part/CLAUDE.md", "Below, as it was.");
    stage.write(".claude/rules/code.md", "---\npaths: '**/*.rs'\n---\nThe rule, as it was.");
    stage.write(".claude/rules/gone.md", "This goes.");
    stage.write(".claude/rules/same.md", "This stays.");
    let mut engine = stage.engine_with(with_memory);
    run(&mut engine, "First.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    stage.write("CLAUDE.md", "As it is now.");
    stage.write("part/CLAUDE.md", "Below, as it is now.");
    stage.write(".claude/rules/code.md", "---\npaths: '**/*.rs'\n---\nThe rule, as it is now.");
    stage.write(".claude/rules/came.md", "This came.");
    std::fs::remove_file(stage.path(".claude/rules/gone.md")).unwrap();
    let resumed = || {
        stage.engine_with(|options| {
            with_memory(options);
            resume_from(options, &file);
            options.world = months_later();
        })
    };
    run(&mut resumed(), "Second.").await.assert_completed();
    let (first, second) = (stage.request(2), stage.request(3));
    assert_eq!(first["system"], second["system"]);
    let (old, new) = (unmarked(&first["messages"]), unmarked(&second["messages"]));
    let (old, new) = (old.as_array().unwrap(), new.as_array().unwrap());
    assert_eq!(new[..old.len()], old[..], "what was sent is the same, byte for byte");
    let news = words(last_user_blocks(&second));
    for told in
        ["As it is now.", "Below, as it is now.", "The rule, as it is now.", "This came.", "gone.md is gone"]
    {
        assert!(news.contains(told), "{told:?} is missing: {news}");
    }
    assert!(!news.contains("This stays.") && !news.contains("as it was"), "{news}");
    // Once: from here on that is what was told.
    let mut engine = resumed();
    run(&mut engine, "Third.").await.assert_completed();
    run(&mut engine, "Fourth.").await.assert_completed();
    for n in [4, 5] {
        let news = words(last_user_blocks(&stage.request(n)));
        assert!(!news.contains("have changed") && !news.contains("now."), "{news}");
    }
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

#[tokio::test]
async fn loop_I11_a_file_that_changed_since_it_was_read_is_told_with_the_change() {
    let script = Script::new()
        .reply([read("a.txt")])
        .reply([tool("Bash", json!({"command": "sed -i s/two/2/ a.txt"}))])
        .reply([text("Done.")])
        .reply([text("Seen.")]);
    let stage = Stage::new(script).await;
    stage.write("a.txt", "one\ntwo\nthree\n");
    let mut engine = stage.engine();
    run(&mut engine, "Change it.").await.assert_completed();
    assert!(!stage.request(2)["messages"].to_string().contains("has changed on disk"));
    let third = stage.request(3);
    let (_, behind) = last_user_blocks(&third).split_at(1);
    assert!(words(behind).contains("a.txt has changed on disk"), "{behind:?}");
    assert!(words(behind).contains("-two\n+2"), "{behind:?}");

    // Somebody else, between two prompts.
    stage.write("a.txt", "one\n2\nfour\n");
    run(&mut engine, "And now?").await.assert_completed();
    let fourth = stage.request(4);
    let now = words(last_user_blocks(&fourth));
    assert!(now.contains("-three\n+four") && now.ends_with("And now?"), "{now}");
    let told = lines(&engine.transcript_file().unwrap());
    let kinds: Vec<&Value> =
        told.iter().filter_map(|line| line.get("attachment")).map(|about| &about["type"]).collect();
    assert_eq!(kinds, ["changed_files", "changed_files"]);
    stage.assert_all_played();
}

#[tokio::test]
async fn the_model_is_reminded_of_a_list_it_forgets() {
    let todos = json!({"todos": [{"content": "Look", "status": "in_progress", "activeForm": "Looking"}]});
    let mut script = Script::new().reply([tool("TodoWrite", todos)]);
    for n in 0..12 {
        script = script.reply([tool("Bash", json!({"command": format!("echo {n}")}))]);
    }
    let stage = Stage::new(script.reply([text("Done.")])).await;
    run(&mut stage.engine(), "Work.").await.assert_completed();
    let reminded = |nth: usize| stage.request(nth)["messages"].to_string().matches("[~] Look").count();
    assert_eq!((reminded(10), reminded(11), reminded(14)), (0, 1, 1));
}

#[tokio::test]
async fn a_mention_of_lines_shows_those_lines() {
    let stage = Stage::new(Script::new().reply([text("Yes.")])).await;
    stage.write("a.txt", "one\ntwo\nthree\nfour\n");
    run(&mut stage.engine(), "Look at @a.txt#L2-3.").await.assert_completed();
    let sent = stage.request(1)["messages"].to_string();
    assert!(sent.contains("two") && sent.contains("three") && !sent.contains("four"), "{sent}");
}

#[tokio::test]
async fn loop_S2_the_repository_and_the_memory_are_told_and_a_schema_is_enforced() {
    let script = Script::new().reply([tool("StructuredOutput", json!({"n": 1}))]);
    let stage = Stage::new(script).await;
    stage.write("CLAUDE.md", "Speak plainly.");
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(words).current_dir(stage.cwd()).env("HOME", stage.cwd());
        assert!(git.output().unwrap().status.success());
    };
    git(&["init", "-q", "-b", "trunk"]);
    let mut engine = stage.engine_with(|options| {
        with_memory(options);
        options.memory.as_mut().unwrap().notes_dir = Some("/notes/here".into());
        options.git_state = true;
        options.system_prompt.appended = Some("At last.".to_owned());
        options.json_schema = Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    });
    run(&mut engine, "Count.").await.assert_completed();
    let request = stage.request(1);
    let system: Vec<&str> =
        request["system"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!(system.len(), 3);
    assert!(
        system[0].starts_with("You are Pelton")
            && system[1].contains("/notes/here")
            && system[2] == "At last."
    );
    let user: Vec<&str> =
        blocks(&request, "user").iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert!(
        user[0].contains("on branch trunk\n")
            && user[0].contains("?? CLAUDE.md")
            && user[0].contains("Today: ")
    );
    assert!(user[1].contains("Speak plainly."));
    let tools = request["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "StructuredOutput"));
}

#[tokio::test]
async fn an_index_of_notes_that_is_too_long_is_written_and_said_to_be() {
    let index = |lines: usize| "- a note\n".repeat(lines);
    let stage = Stage::new(Script::new()).await;
    let notes = stage.path("notes");
    std::fs::create_dir_all(&notes).unwrap();
    let write = |name: &str, content: String| {
        tool("Write", json!({"file_path": notes.join(name), "content": content}))
    };
    let add = json!({"file_path": notes.join("MEMORY.md"), "old_string": "- a note\n- the end", "new_string": "- a\n- note\n- the end"});
    let script = Script::new()
        .reply([write("MEMORY.md", index(199) + "- the end")])
        .reply([tool("Edit", add)])
        .reply([write("topic.md", index(300))])
        .reply([write("MEMORY.md", "x".repeat(25_001))])
        .reply([text("Noted.")]);
    let stage = stage.playing(script).await;
    let mut engine = stage.engine_with(|options| {
        with_memory(options);
        options.memory.as_mut().unwrap().notes_dir = Some(notes.clone());
    });
    let told = run(&mut engine, "Note it.").await;
    told.assert_completed();
    let results = results_in(&stage.request(5));
    let are_errors: Vec<bool> = results.iter().map(|(_, is_error, _)| *is_error).collect();
    assert_eq!(are_errors, [false, true, false, true], "{results:?}");
    assert!(results[1].2.contains("Shorten it"), "{results:?}");
    assert_eq!(stage.read("notes/MEMORY.md").len(), 25_001, "it was written all the same");
}

#[tokio::test]
async fn pit_C4_rules_larger_than_the_window_cost_no_resumed_session_its_conversation() {
    let script = Script::new().reply([text("A thousand.")]).reply([text("Still.")]).reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    stage.write("CLAUDE.md", &"Count every bean, one after the other.\n".repeat(20_000));
    let in_small_window = |options: &mut Options| {
        with_memory(options);
        options.model = "claude-haiku-4-5".to_owned();
    };
    let mut engine = stage.engine_with(in_small_window);
    let told = run(&mut engine, "How many beans?").await;
    told.assert_completed();
    let said = |event: &Event| matches!(event, Event::Informational { content, .. } if content.contains("told in part"));
    assert!(told.0.iter().any(said), "{told:#?}");
    let file = engine.transcript_file().unwrap();
    drop(engine);
    for prompt in ["Still so many?", "Sure?"] {
        let mut engine = stage.engine_with(|options| {
            in_small_window(options);
            resume_from(options, &file);
        });
        run(&mut engine, prompt).await.assert_completed();
    }
    let sent = stage.request(3).to_string();
    for there in ["How many beans?", "A thousand.", "Still so many?", "Sure?"] {
        assert!(sent.contains(there), "{there} is missing");
    }
    assert_eq!(sent.matches("Contents of ").count(), 1, "they are told once");
    stage.assert_all_played();
}

#[tokio::test]
async fn what_lies_in_directories_that_git_leaves_out_instructs_nobody() {
    let script = Script::new()
        .reply(["node_modules/x", "target", "src"].map(|dir| read(&format!("{dir}/a.txt"))))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    stage.write(".gitignore", "target\n");
    for dir in ["node_modules/x", "target", "src"] {
        for part in [".claude/rules", ".claude/skills/one"] {
            std::fs::create_dir_all(stage.path(dir).join(part)).unwrap();
        }
        stage.write(&format!("{dir}/a.txt"), "a\n");
        stage.write(&format!("{dir}/CLAUDE.md"), &format!("Obey {dir}."));
        stage.write(&format!("{dir}/.claude/rules/one.md"), &format!("Follow {dir}."));
        let skill = format!("---\ndescription: Use {dir}\n---\nx");
        stage.write(&format!("{dir}/.claude/skills/one/SKILL.md"), &skill);
    }
    let mut engine = stage.engine_with(|options| {
        with_memory(options);
        options.skills = Some(pelton::SkillSources::project());
    });
    run(&mut engine, "Look around.").await.assert_completed();
    let sent = stage.request(2)["messages"].to_string();
    for (dir, is_told) in [("node_modules/x", false), ("target", false), ("src", true)] {
        for said in ["Obey", "Follow", "Use"] {
            assert_eq!(sent.contains(&format!("{said} {dir}")), is_told, "{said} {dir}: {sent}");
        }
    }
}
