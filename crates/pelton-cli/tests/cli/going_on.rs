//! Going on with a session: where it is looked for, and under which name.

use std::io::Write;
use std::path::Path;

use pelton_testkit::{Script, Step, When, error, gate, text, tool};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::place::{Commanded, Place, lines_of, model, wait};

fn server() -> pelton_testkit::ScriptedModel {
    model(Script::new().step(Step::reply([text("hello")]).always()))
}

fn said_last(model: &pelton_testkit::ScriptedModel) -> String {
    model.reply_requests().last().unwrap().body["messages"].to_string()
}

#[test]
fn the_session_of_a_renamed_project_is_gone_on_with() {
    let (place, model) = (Place::new(), server());
    let (old, new) = (place.work().join("shop/desk"), place.work().join("store"));
    std::fs::create_dir_all(&old).unwrap();
    place.task(&model, ["remember the jars"]).current_dir(&old).run().well();
    // Above it, and then itself.
    std::fs::rename(place.work().join("shop"), place.work().join("mall")).unwrap();
    std::fs::rename(place.work().join("mall/desk"), &new).unwrap();
    let listed = place.pelton(["sessions", "list"]).current_dir(&new).run();
    assert!(listed.well().contains("remember the jars"), "{listed:?}");
    let ran = place.task(&model, ["what was it?", "--continue"]).current_dir(&new).run();
    ran.well();
    assert!(said_last(&model).contains("remember the jars"));
    assert_eq!(place.transcripts().len(), 1, "it goes on where it was");
    let lines = lines_of(&place.transcripts()[0]);
    let newest = lines.iter().rev().find(|line| line.get("cwd").is_some()).unwrap();
    assert_eq!(newest["cwd"], new.display().to_string());

    // One of its own is newer, and then the old one is again.
    place.task(&model, ["remember the lids"]).current_dir(&new).run().well();
    place.task(&model, ["and?", "-c"]).current_dir(&new).run().well();
    let said = said_last(&model);
    assert!(said.contains("the lids") && !said.contains("the jars"), "{said}");
}

#[test]
fn another_directory_of_the_same_name_is_another_project() {
    let (place, model) = (Place::new(), server());
    let (old, new) = (place.work().join("shop"), place.work().join("store"));
    std::fs::create_dir_all(&old).unwrap();
    place.task(&model, ["remember the jars"]).current_dir(&old).run().well();
    // A copy does not take the conversation with it.
    std::fs::create_dir_all(&new).unwrap();
    let listed = place.pelton(["sessions", "list"]).current_dir(&new).run();
    assert!(!listed.well().contains("remember the jars"));
    let ran = place.task(&model, ["what was it?", "--continue"]).current_dir(&new).run();
    ran.failed(1, &["no session to continue in this directory"]);
}

#[test]
fn a_session_is_gone_on_with_by_its_name() {
    let (place, model) = (Place::new(), server());
    let other = place.work().join("other");
    std::fs::create_dir_all(&other).unwrap();
    place.task(&model, ["remember the jars", "--name", "jars and lids"]).run().well();
    place.task(&model, ["what was it?", "--resume", "jars and lids"]).run().well();
    assert!(said_last(&model).contains("remember the jars"));
    // The name it was given last, from any directory.
    place.task(&model, ["/rename only lids", "--resume=jars and lids"]).run().well();
    place.task(&model, ["and?", "-r", "only lids"]).current_dir(&other).run().well();
    assert!(said_last(&model).contains("remember the jars"));
    let gone = "No conversation found with session ID: jars and lids";
    place.task(&model, ["and?", "--resume", "jars and lids"]).run().failed(1, &[gone]);
    // One of this directory counts before others; of two nobody knows which is meant.
    place.task(&model, ["remember the lids", "--name", "only lids"]).current_dir(&other).run().well();
    place.task(&model, ["and?", "-r", "only lids"]).current_dir(&other).run().well();
    assert!(said_last(&model).contains("remember the lids"));
    let elsewhere = place.work().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let several = place.task(&model, ["and?", "-r", "only lids"]).current_dir(&elsewhere).run();
    several.failed(1, &["several sessions are called 'only lids'"]);
}

#[test]
fn durability_is_a_setting_and_a_flag() {
    let (place, model) = (Place::new(), server());
    for (settings, flag, is_fine) in [
        (r#"{"durability": "fast"}"#, None, true),
        (r#"{"durability": "fast"}"#, Some("synced"), true),
        (r#"{"durability": "never"}"#, None, false),
        ("{}", Some("fast"), true),
    ] {
        std::fs::write(place.config().join("settings.json"), settings).unwrap();
        let flags = flag.map(|flag| ["--durability", flag]);
        let ran = place.task(&model, ["hi"].into_iter().chain(flags.into_iter().flatten())).run();
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"), "{settings} {flag:?}: {ran:?}");
        assert_eq!(ran.err.is_empty(), is_fine, "{settings} {flag:?}: {ran:?}");
        assert!(
            is_fine || ran.err.contains("durability") && ran.err.contains("\"synced\" or \"fast\""),
            "{ran:?}"
        );
    }
    place.task(&model, ["hi", "--durability", "never"]).run().failed(1, &["--durability", "never"]);
}

/// A transcript as long sessions leave it: many summaries, and one line that is longer than all others.
fn write_long_transcript(
    file: &Path,
    session: &str,
    boundaries: u128,
    window_bytes: usize,
    long_bytes: usize,
) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut file = std::io::BufWriter::new(std::fs::File::create(file).unwrap());
    let mut newest: Option<Uuid> = None;
    let mut write = |id: u128, mut line: Value| {
        let id = Uuid::from_u128(id);
        let parent = if line["type"] == "system" { "logicalParentUuid" } else { "parentUuid" };
        line["parentUuid"] = Value::Null;
        (line["uuid"], line["sessionId"], line[parent]) = (json!(id), json!(session), json!(newest));
        newest = Some(id);
        writeln!(file, "{line}").unwrap();
    };
    let said = |words: String| json!({"type": "user", "message": {"role": "user", "content": words}});
    for boundary in 1..=boundaries {
        let id = boundary * 1_000;
        write(
            id,
            json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}),
        );
        write(id + 1, said(format!("summary {boundary}")));
        for line in 0..window_bytes / 10_000 {
            write(id + 2 + line as u128, said("w".repeat(10_000)));
        }
        if boundary == boundaries / 2 {
            write(id + 900, said("w".repeat(long_bytes)));
        }
    }
}

#[test]
fn pit_S2_a_long_transcript_is_gone_on_with_in_little_memory() {
    const MEMORY_KB_MAX: u64 = 80_000;
    let place = Place::new();
    let model = model(Script::new().reply([gate("looked"), text("hello")]));
    let id = "77777777-2222-4333-8444-555555555555";
    let file = place.config().join("projects/-somewhere").join(format!("{id}.jsonl"));
    write_long_transcript(&file, id, 30, 1_500_000, 40_000_000);
    let before = std::fs::metadata(&file).unwrap().len();
    assert!(before > 80_000_000, "{before}");
    let running = place.task(&model, ["and?", "--resume", id]).start();
    wait(model.wait_at_gate("looked"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    model.open("looked");
    assert_eq!(running.end().well(), "hello\n");
    assert!(peak < MEMORY_KB_MAX, "{peak} kB");
    let said = said_last(&model);
    assert!(said.contains("summary 30") && !said.contains("summary 29") && said.contains("and?"));
    model.assert_clean();
}

#[test]
fn what_was_taken_back_is_no_place_to_go_on_from() {
    let (first, second) = ("claude-sonnet-5-5", "claude-opus-5-5");
    let script = Script::new()
        .step(Step::status(529).header("retry-after-ms", "1").times(2).when(When::any().model(first)))
        .step(
            Step::reply([
                tool("Glob", json!({"pattern": "*"})).id("toolu_gone"),
                error("overloaded_error", "Overloaded"),
            ])
            .when(When::any().model(first)),
        )
        .step(Step::reply([text("Done.")]).when(When::any().model(second)))
        .step(Step::reply([text("Fine.")]).always());
    let (place, model) = (Place::new(), model(script));
    let ran = place.task(&model, ["hi", "--fallback-model", second]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let file = &place.transcripts()[0];
    let lines = lines_of(file);
    let gone = lines.iter().find(|line| line["type"] == "tombstone").expect("an answer was taken back");
    let gone = gone["uuids"][0].as_str().unwrap();
    let session = file.file_stem().unwrap().to_str().unwrap();
    let asked = model.reply_requests().len();
    let back_to =
        |id: &str| place.task(&model, ["and?", "--resume", session, "--resume-session-at", id]).run();
    back_to(gone).failed(1, &[gone, "was taken back", "Name the message before it, or leave the option out"]);
    assert_eq!(model.reply_requests().len(), asked, "nobody was asked");
    // Both ways out are ways out.
    let prompt =
        lines.iter().find(|line| line["type"] == "user" && line.to_string().contains("\"hi\"")).unwrap();
    back_to(prompt["uuid"].as_str().unwrap()).well();
    assert!(!said_last(&model).contains("Done."));
    place.task(&model, ["and?", "--resume", session]).run().well();
    assert!(!said_last(&model).contains("toolu_gone"));
    model.assert_clean();
}

#[test]
fn what_a_session_has_cost_outlasts_summaries_kills_and_going_back() {
    const SESSION: &str = "11111111-1111-4111-8111-111111111111";
    const FORK: &str = "22222222-2222-4222-8222-222222222222";
    let place = Place::new();
    let answer = Step::reply([text("Yes.")])
        .usage("input_tokens", 1_000)
        .usage("output_tokens", 2_000)
        .usage("cache_creation_input_tokens", 0)
        .usage("cache_read_input_tokens", 0);
    let model = model(Script::new().step(answer.always()));
    let total = |words: &[&str]| {
        let ran = place.task(&model, words.iter().copied().chain(["--output-format", "json"])).run();
        serde_json::from_str::<Value>(ran.well()).unwrap()["total_cost_usd"].as_f64().unwrap()
    };
    let each = total(&["ONE", "--session-id", SESSION]);
    let is = |total: f64, answers: f64| {
        assert!((total - each * answers).abs() < 1e-9, "{total} is not {answers} of {each}");
    };
    is(total(&["TWO", "--resume", SESSION]), 2.0);
    is(total(&["/compact", "--resume", SESSION]), 3.0);
    let file =
        place.transcripts().into_iter().find(|file| file.ends_with(format!("{SESSION}.jsonl"))).unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let summary = lines.iter().position(|line| line.contains("\"isCompactSummary\":true")).unwrap();
    // Killed behind the summary: with all that one write said, with a part of it, and as earlier versions wrote it.
    let behind =
        |from: usize| lines[from..].iter().take_while(|line| line.contains("\"type\":\"session-")).count();
    assert!(behind(summary + 1) > 0, "what is of the whole session stands behind the summary");
    let all = lines[..=summary + behind(summary + 1)].join("\n");
    let part = lines[..=summary].join("\n");
    let earlier = part.replace(",\"saysAll\":true", "");
    assert_ne!(earlier, part);
    for cut in [all, part, earlier] {
        std::fs::write(&file, cut + "\n").unwrap();
        is(total(&["THREE", "--resume", SESSION]), 4.0);
    }
    // Killed in the middle of a turn: what was answered is paid.
    let newest = lines_of(&file).iter().rposition(|line| line["type"] == "session-cost").unwrap();
    let kept: Vec<String> =
        std::fs::read_to_string(&file).unwrap().lines().take(newest + 1).map(str::to_owned).collect();
    std::fs::write(&file, kept.join("\n") + "\n").unwrap();
    is(total(&["FOUR", "--resume", SESSION]), 5.0);
    // Going back takes no money back, and a fork has cost what it goes on from.
    let answers = lines_of(&file);
    let first =
        answers.iter().find(|line| line["type"] == "assistant").unwrap()["uuid"].as_str().unwrap().to_owned();
    is(total(&["FIVE", "--resume", SESSION, "--resume-session-at", &first]), 6.0);
    is(total(&["SIX", "--resume", SESSION]), 7.0);
    is(
        total(&[
            "SIX",
            "--resume",
            SESSION,
            "--fork-session",
            "--session-id",
            FORK,
            "--resume-session-at",
            &first,
        ]),
        8.0,
    );
    is(total(&["SEVEN", "--resume", FORK]), 9.0);
    is(total(&["SEVEN", "--resume", SESSION]), 8.0);
}

#[test]
fn nothing_is_known_of_files_that_were_read_on_the_way_that_was_left() {
    const SESSION: &str = "11111111-1111-4111-8111-111111111111";
    let place = Place::new();
    place.put("f.txt", "old words\n");
    let edit = || tool("Edit", json!({"file_path": "f.txt", "old_string": "old", "new_string": "new"}));
    let script = Script::new()
        .reply([tool("Read", json!({"file_path": "f.txt"}))])
        .reply([text("Read.")])
        .reply([text("Hello.")])
        .reply([edit()])
        .reply([text("Well.")]);
    let model = model(script);
    place.task(&model, ["READ", "--session-id", SESSION]).run().well();
    let file = place.transcripts().remove(0);
    let first = lines_of(&file).iter().find(|line| line["type"] == "user").unwrap()["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    place.task(&model, ["OTHER", "--resume", SESSION, "--resume-drops-turn", &first]).run().well();
    let mode = ["--permission-mode", "acceptEdits"];
    place.task(&model, ["EDIT", "--resume", SESSION].into_iter().chain(mode)).run().well();
    assert!(!said_last(&model).contains("old words"), "it was never told what is in the file");
    assert_eq!(place.read("f.txt"), "old words\n");
}
