//! `pelton sessions` and `pelton doctor`: past sessions, looked at from outside.

use std::fs;
use std::path::PathBuf;

use pelton_testkit::{Script, Step, When, error, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};
use crate::talk::Talk;

/// Two sessions, the older one first.
fn two(place: &Place) -> [String; 2] {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "echo turnip; echo '</script><b>'"}))])
        .reply([text("A **Parsnip** it is.\n```\ncode\n```")])
        .reply([text("Hello.")]);
    let model = model(script);
    place.task(&model, ["find the vegetable", "--allowedTools", "Bash"]).run().well();
    place.task(&model, ["say hello"]).run().well();
    let id = |words: &str| {
        let file =
            place.transcripts().into_iter().find(|file| fs::read_to_string(file).unwrap().contains(words));
        file.unwrap().file_stem().unwrap().to_str().unwrap().to_owned()
    };
    [id("find the vegetable"), id("say hello")]
}

fn file_of(place: &Place, id: &str) -> PathBuf {
    place.transcripts().into_iter().find(|file| file.to_string_lossy().contains(id)).unwrap()
}

#[test]
fn past_sessions_are_listed_shown_and_searched() {
    let place = Place::new();
    let [first, second] = two(&place);
    let listed = place.pelton(["sessions", "list"]).run();
    let lines: Vec<&str> = listed.well().lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with(&second) && lines[1].starts_with(&first), "{lines:?}");
    assert!(lines[1].contains("find the vegetable"));
    let all: Value =
        serde_json::from_str(place.pelton(["sessions", "list", "--json", "--limit", "1"]).run().well())
            .unwrap();
    assert_eq!(
        (&all[0]["session_id"], &all[0]["first_prompt"], &all[1]),
        (&json!(second), &json!("say hello"), &Value::Null)
    );

    let shown = place.pelton(["sessions", "show", &first]).run();
    for part in [
        "find the vegetable",
        "├─ Bash echo turnip",
        "A **Parsnip** it is.",
        &*place.work().to_string_lossy(),
    ] {
        assert!(shown.well().contains(part), "{part}: {}", shown.out);
    }

    let found = place.pelton(["sessions", "search", "PARSNIP"]).run();
    assert!(found.well().contains(&first) && !found.out.contains(&second), "{}", found.out);
    place.pelton(["sessions", "search", "turnip"]).run().failed(1, &["Nobody said that"]);
    let found = place.pelton(["sessions", "search", "turnip", "--tools", "--json"]).run();
    assert!(found.well().lines().count() >= 2, "the call and its result: {}", found.out);

    // From elsewhere they are found by their ids, or with all the others.
    let elsewhere = place.home();
    let list = place.pelton(["sessions", "list"]).current_dir(&elsewhere).run();
    assert!(list.well().contains("no sessions in this directory"));
    assert_eq!(
        place.pelton(["sessions", "list", "--all"]).current_dir(&elsewhere).run().well().lines().count(),
        2
    );
    place.pelton(["sessions", "show", &first]).current_dir(&elsewhere).run().well();
    let nobody = "00000000-0000-4000-8000-000000000000";
    place.pelton(["sessions", "show", nobody]).run().failed(1, &["No conversation found"]);
}

#[test]
fn a_session_is_exported_for_people_programs_and_browsers() {
    let place = Place::new();
    let [first, _] = two(&place);
    let export = |format: &str| place.pelton(["sessions", "export", &first, "--format", format]).run();
    let markdown = export("markdown");
    assert_eq!(export("md").well(), markdown.well());
    for part in
        ["# find the vegetable", "## User", "## Assistant", "**Bash echo turnip", "A **Parsnip** it is."]
    {
        assert!(markdown.well().contains(part), "{part}: {}", markdown.out);
    }
    let messages: Value = serde_json::from_str(export("json").well()).unwrap();
    let messages = messages.as_array().unwrap();
    assert!(
        messages
            .iter()
            .any(|message| message["role"] == "assistant"
                && message["content"].to_string().contains("Parsnip"))
    );
    let page = export("html");
    assert!(
        page.well().contains("<title>find the vegetable</title>")
            && page.out.contains("&lt;/script&gt;&lt;b&gt;")
    );
    assert!(!page.out.contains("</script>"), "what was said is text: {}", page.out);
    // A file is written once.
    let to_file = || place.pelton(["sessions", "export", &first, "-o", "out.md"]).run();
    to_file().well();
    assert_eq!(place.read("out.md"), markdown.out);
    to_file().failed(1, &["out.md", "exists"]);
}

#[test]
fn sessions_are_taken_away_only_when_that_is_meant_and_nobody_has_them_open() {
    let place = Place::new();
    let [first, second] = two(&place);
    let said = place.pelton(["sessions", "delete", &first]).run();
    assert!(said.well().contains("would take away") && place.transcripts().len() == 2);
    place
        .pelton(["sessions", "delete", &first, "00000000-0000-4000-8000-000000000000", "--yes"])
        .run()
        .failed(1, &["No conversation"]);
    assert_eq!(place.transcripts().len(), 2, "all or nothing is looked for first");
    place.pelton(["sessions", "delete", &first, "--yes"]).run().well();
    assert!(
        place.transcripts().len() == 1
            && !file_of(&place, &second).with_extension("").with_file_name(&first).exists()
    );

    let script = Script::new().reply([gate("go"), text("done")]);
    let (busy, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&busy, &model, &[]);
    talk.prompt("go");
    let id = talk.system("init")["session_id"].as_str().unwrap().to_owned();
    busy.pelton(["sessions", "delete", &id, "--yes"]).run().failed(1, &["is open", "stays"]);
    model.open("go");
    talk.result();
    talk.end().well();
    busy.pelton(["sessions", "delete", &id, "--yes"]).run().well();
    assert!(busy.transcripts().is_empty());
}

#[test]
fn old_sessions_are_pruned_and_the_newest_kept() {
    let place = Place::new();
    let [first, second] = two(&place);
    assert!(place.pelton(["sessions", "prune", "--yes"]).run().well().contains("nothing that old"));
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 24 * 60 * 60);
    for (id, more) in [(&first, 1), (&second, 2)] {
        let file = fs::File::options().append(true).open(file_of(&place, id)).unwrap();
        file.set_modified(old + std::time::Duration::from_secs(more)).unwrap();
    }
    assert!(place.pelton(["sessions", "prune"]).run().well().contains("would take away"));
    assert_eq!(place.transcripts().len(), 2);
    place.pelton(["sessions", "prune", "--keep", "1", "--yes"]).run().well();
    assert_eq!(place.transcripts(), [file_of(&place, &second)]);
    let wrong = place.pelton(["sessions", "prune", "--older-than", "a week", "--yes"]).run();
    wrong.failed(1, &["expected a number of days"]);
    place.pelton(["sessions", "prune", "--older-than", "39d", "--yes"]).run().well();
    assert!(place.transcripts().is_empty());
}

#[test]
fn the_doctor_says_what_is_wrong_and_makes_a_new_one() {
    let place = Place::new();
    let [first, _] = two(&place);
    assert!(place.pelton(["doctor", &first]).run().well().contains("Nothing is wrong"));
    let file = file_of(&place, &first);
    let whole = fs::read(&file).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    // A line twice, one cut, zeros, and a torn end.
    let mut damaged: Vec<u8> = lines[..3].concat();
    damaged.extend_from_slice(lines[2]);
    damaged.extend_from_slice(b"{\"type\":\"user\",\"uu\n\0\0\0\0\n");
    damaged.extend_from_slice(&lines[3..].concat());
    damaged.extend_from_slice(b"{\"type\":\"assis");
    fs::write(&file, &damaged).unwrap();
    let checked = place.pelton(["doctor", &first, "--explain"]).run();
    assert_eq!(checked.code, Some(1));
    let told = &checked.out;
    for part in ["not a JSON object", "runs of zero bytes", "written twice", "not ended", "byte "] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let facts: Value = serde_json::from_str(&place.pelton(["doctor", &first, "--json"]).run().out).unwrap();
    assert_eq!((&facts["is_sound"], &facts["is_torn"]), (&json!(false), &json!(true)));
    assert_eq!(fs::read(&file).unwrap(), damaged, "looking changes nothing");

    let made = place.pelton(["doctor", &first, "--repair", "--json"]).run();
    let made: Value = serde_json::from_str(made.well()).unwrap();
    let new = made["session_id"].as_str().unwrap();
    assert_eq!(fs::read(&file).unwrap(), damaged, "the old one is as it was");
    place.pelton(["doctor", new]).run().well();
    let model = model(Script::new().reply([text("Still here.")]));
    place.task(&model, ["and?", "--resume", new]).run().well();
    let sent = model.requests()[0].body["messages"].to_string();
    assert!(sent.contains("find the vegetable") && sent.contains("Parsnip"), "{sent}");
    place.pelton(["doctor", &first, "--shrink"]).run().well();
    let told = place.pelton(["doctor", new, "--repair"]).run();
    assert!(told.well().starts_with("Nothing is wrong with it, so no new session"), "{}", told.out);

    // Named twice, it is taken away once; and none shown is not none there.
    let listed = place.pelton(["sessions", "list", "--limit", "0"]).run();
    assert!(listed.well().starts_with('(') && listed.out.contains("more; --limit"), "{}", listed.out);
    let removed = place.pelton(["sessions", "delete", new, new, "--yes"]).run();
    assert_eq!(removed.well().lines().count(), 1, "{}", removed.out);
}

/// A session in which words and a call were taken back.
fn with_withdrawn(place: &Place) -> String {
    let glob = tool("Glob", json!({"pattern": "*.swede"}));
    let sonnet = || When::any().model("claude-sonnet-5-5");
    let script = Script::new()
        .step(Step::reply([text("A Swede, so")]).stop("max_tokens"))
        .reply([text("A Parsnip it is.")])
        .step(Step::reply([glob, error("api_error", "x")]).when(sonnet()))
        .reply([text("Still a Parsnip.")]);
    let model = model(script);
    let models = ["--model", "claude-sonnet-5-5", "--fallback-model", "claude-haiku-4-5"];
    for words in [&["find the vegetable"][..], &["sure?", "--continue"]] {
        let mut task = place.task(&model, words.iter().copied().chain(models));
        let ran = task.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4000").env("CLAUDE_CODE_MAX_RETRIES", "1").run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    model.assert_clean();
    place.transcripts()[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn what_was_taken_back_was_not_said() {
    let place = Place::new();
    let id = with_withdrawn(&place);
    let file = file_of(&place, &id);
    let recorded = fs::read_to_string(&file).unwrap();
    assert!(
        recorded.contains("A Swede, so") && recorded.contains("*.swede"),
        "it is in the file: {recorded}"
    );
    for words in [
        &["sessions", "show", &id][..],
        &["sessions", "export", &id],
        &["sessions", "export", &id, "--format", "json"],
        &["sessions", "export", &id, "--format", "html"],
    ] {
        let told = place.pelton(words.iter().copied()).run();
        assert!(told.well().contains("A Parsnip it is."), "{words:?}: {}", told.out);
        assert!(!told.out.to_lowercase().contains("swede"), "{words:?}: {}", told.out);
    }
    let found = place.pelton(["sessions", "search", "swede", "--tools"]).run();
    assert_eq!((found.code, found.out.as_str()), (Some(1), ""), "{found:?}");
    let told = place.pelton(["doctor", &id]).run();
    assert!(told.well().contains("2 messages were taken back"), "{}", told.out);
    assert!(told.out.contains(" 0 calls\n") && !told.out.contains("no result"), "{}", told.out);

    // Nor does it come back by a new record.
    fs::write(&file, format!("{recorded}{{\"type\":\"assis")).unwrap();
    for how in ["--repair", "--shrink"] {
        let made = place.pelton(["doctor", &id, how, "--json"]).run();
        let made: Value = serde_json::from_str(made.well()).unwrap();
        let new = made["session_id"].as_str().unwrap();
        assert!(place.pelton(["doctor", new]).run().well().contains("Nothing is wrong"));
        assert!(!place.pelton(["sessions", "show", new]).run().well().contains("Swede"));
        let model = model(Script::new().reply([text("Still here.")]));
        place.task(&model, ["and?", "--resume", new]).run().well();
        let sent = model.requests()[0].body["messages"].to_string();
        assert!(sent.contains("A Parsnip it is.") && !sent.to_lowercase().contains("swede"), "{sent}");
    }
}
