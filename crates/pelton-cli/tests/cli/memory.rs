//! Memory files: which of them reach the model, by flags, variables and settings.

use pelton_testkit::{Script, Step, text};

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
fn an_import_from_outside_is_said_to_be_left_out() {
    let place = place();
    place.put("CLAUDE.md", "@../home/more/CLAUDE.md");
    let (request, said) = sent(&place, &["--output-format", "stream-json", "--verbose"], &[]);
    assert!(!request.contains("word of another"));
    assert!(said.contains("outside of the working directory"), "{said}");
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
