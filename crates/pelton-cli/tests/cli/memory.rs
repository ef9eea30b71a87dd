//! Memory files: which of them reach the model, by flags, variables and settings.

use pelton_testkit::{Script, Step, text, tool};
use serde_json::json;

use crate::place::{Commanded, Place, model};

/// Everything the model was sent, and what was said beside it.
fn sent(place: &Place, words: &[&str], set: &[(&str, &str)]) -> (String, String) {
    let model = model(Script::new().step(Step::reply([text("Hello.")]).always()));
    let mut task = place.task(&model, ["hi"].into_iter().chain(words.iter().copied()));
    let ran = task.envs(set.iter().copied()).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    (model.requests()[0].body.to_string(), ran.out + &ran.err)
}

fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.config().join("CLAUDE.md"), "word of the user").unwrap();
    place.put("CLAUDE.md", "word of the project");
    place.put("CLAUDE.local.md", "word of the place");
    std::fs::create_dir(place.home().join("more")).unwrap();
    std::fs::write(place.home().join("more/CLAUDE.md"), "word of another").unwrap();
    place
}

const WORDS: [&str; 4] = ["word of the user", "word of the project", "word of the place", "word of another"];

#[track_caller]
fn check(words: &[&str], set: &[(&str, &str)], expected: [bool; 4]) {
    let place = place();
    let more = place.home().join("more");
    let mut words = words.to_vec();
    words.extend(["--add-dir", more.to_str().unwrap()]);
    let (sent, _) = sent(&place, &words, set);
    assert_eq!(WORDS.map(|word| sent.contains(word)), expected, "{words:?} {set:?}");
}

#[test]
fn flags_variables_and_settings_choose_what_counts() {
    check(&[], &[], [true, true, true, false]);
    check(&["--setting-sources", "user"], &[], [true, false, false, false]);
    check(&["--setting-sources", "project"], &[], [false, true, false, false]);
    check(&["--setting-sources", ""], &[], [false; 4]);
    check(&["--bare"], &[], [false; 4]);
    check(&[], &[("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1")], [false; 4]);
    check(&[], &[("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1")], [true; 4]);
    check(
        &["--settings", r#"{"claudeMdExcludes": ["/**/?ork/CLAUDE.md"]}"#],
        &[],
        [true, false, true, false],
    );
}

#[test]
fn an_import_from_outside_is_said_to_be_left_out_until_somebody_approves_it() {
    let place = place();
    place.put("CLAUDE.md", "@../home/more/CLAUDE.md");
    let request = || sent(&place, &["--output-format", "stream-json", "--verbose"], &[]);
    let (before, said) = request();
    assert!(!before.contains("word of another"));
    assert!(said.contains("outside of the working directory"), "{said}");
    let shown = place.pelton(["trust"]).run();
    assert!(shown.well().contains("home/more/CLAUDE.md, imported by "), "{shown:?}");
    place.pelton(["trust", "--yes"]).run().well();
    let (after, said) = request();
    assert!(
        after.contains("word of another") && !said.contains("outside of the working directory"),
        "{said}"
    );
    place.pelton(["trust", "--revoke"]).run().well();
    assert!(!request().0.contains("word of another"));
}

#[test]
fn pit_K8_the_users_own_files_are_no_projects_wherever_the_work_is_done() {
    let place = place();
    // A directory of work below the home, as most are.
    let own = place.work().join(".claude");
    let work = place.work().join("below");
    std::fs::create_dir_all(own.join("rules")).unwrap();
    std::fs::create_dir(&work).unwrap();
    std::fs::write(own.join("CLAUDE.md"), "mine alone").unwrap();
    std::fs::write(own.join("rules/one.md"), "a rule of mine").unwrap();
    std::fs::remove_file(place.work().join("CLAUDE.md")).unwrap();
    std::fs::write(work.join("AGENTS.md"), "word for agents").unwrap();
    let told = |words: &[&str]| {
        let model = model(Script::new().step(Step::reply([text("Hello.")]).always()));
        let mut task = place.task(&model, ["hi"].into_iter().chain(words.iter().copied()));
        let ran = task.env("CLAUDE_CONFIG_DIR", &own).current_dir(&work).run();
        ran.well();
        let sent = model.requests()[0].body.to_string();
        ["mine alone", "a rule of mine", "word for agents"].map(|word| sent.matches(word).count())
    };
    assert_eq!(told(&[]), [1, 1, 1]);
    assert_eq!(told(&["--setting-sources", "project"]), [0, 0, 1]);
    assert_eq!(told(&["--setting-sources", "user"]), [1, 1, 0]);
}

#[test]
fn notes_are_kept_unasked_and_shown_to_the_next_session() {
    let place = place();
    let key = pelton::transcript::project_key(&place.work().canonicalize().unwrap());
    let notes = place.config().join("projects").join(key).join("memory");
    let note =
        |name: &str, words: &str| tool("Write", json!({"file_path": notes.join(name), "content": words}));
    let script = Script::new()
        .reply([
            note("MEMORY.md", "- tea.md: what she drinks"),
            note("tea.md", "Green."),
            note("run.sh", "rm"),
        ])
        .reply([text("Noted.")])
        .reply([tool("Read", json!({"file_path": notes.join("tea.md")}))])
        .reply([text("Green.")]);
    let model = model(script);
    place.task(&model, ["note it"]).run().well();
    assert_eq!(std::fs::read_to_string(notes.join("tea.md")).unwrap(), "Green.");
    assert!(!notes.join("run.sh").exists(), "what is no note is asked about");
    place.task(&model, ["what does she drink?"]).run().well();
    let requests = model.requests();
    assert!(requests[2].body["messages"].to_string().contains("what she drinks"));
    assert!(requests[3].body["messages"].to_string().contains("1\\tGreen."), "{}", requests[3].body);
}

#[test]
fn skills_commands_and_agents_of_files_are_listed_and_can_be_called() {
    let place = place();
    place.put(".claude/skills/greet/SKILL.md", "---\ndescription: Greets\n---\nSay hello to $ARGUMENTS.");
    place.put(".claude/commands/tidy.md", "Tidy up.");
    place.put(".claude/agents/reviewer.md", "---\nname: reviewer\ndescription: Reviews.\n---\nYou review.");
    let model = model(Script::new().step(Step::reply([text("Hello.")]).always()));
    let words = ["/greet Ada", "--output-format", "stream-json", "--verbose"];
    let ran = place.task(&model, words).run();
    ran.well();
    let init = &ran.frames()[0];
    assert_eq!(init["skills"], serde_json::json!(["greet", "tidy"]));
    let commands = init["slash_commands"].as_array().unwrap();
    assert!(["greet", "tidy"].iter().all(|name| commands.contains(&serde_json::json!(name))), "{init}");
    assert_eq!(init["agents"], serde_json::json!(["general-purpose", "Explore", "Plan", "reviewer"]));
    assert_eq!(init["plugins"], serde_json::json!([]));
    let sent = model.requests()[0].body.to_string();
    assert!(sent.contains("Say hello to Ada.") && sent.contains("reviewer: Reviews."), "{sent}");

    let off = place.task(&model, ["/greet Ada", "--disable-slash-commands"]).run();
    assert!(off.err.contains("Unknown command: /greet") && off.code == Some(1), "{off:?}");
}
