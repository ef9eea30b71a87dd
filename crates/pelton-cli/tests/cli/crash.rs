//! Killed in the middle, and gone on with: nothing that was told is lost, and nothing is done twice.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pelton_testkit::{Pace, Part, Script, ScriptedModel, Seen, Step, When, gate, text, thinking, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, lines_of, model, processes_with, until, wait};

const STREAM: [&str; 3] = ["--output-format", "stream-json", "--verbose"];

/// A step that takes long, says that it began, and counts how often it ran.
fn long_step() -> [pelton_testkit::Part; 2] {
    let command = "echo ran >> count; touch began; sleep 60";
    [
        text("This takes a while."),
        tool("Bash", json!({"command": command, "description": "Wait"})).id("toolu_long"),
    ]
}

/// The answers to a call in a request.
fn answers(seen: &Seen, call: &str) -> Vec<Value> {
    let messages = seen.body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    blocks.filter(|block| block["tool_use_id"] == call).cloned().collect()
}

/// All that was said, in a request.
fn said(seen: &Seen) -> String {
    seen.body["messages"].to_string()
}

fn kill_in_the_tool(place: &Place, model: &ScriptedModel) {
    let running =
        place.task(model, ["take your time", "--allowedTools", "Bash(*)"].into_iter().chain(STREAM)).start();
    until("the command runs", || place.has("began"));
    running.signal(Signal::SIGKILL);
    assert_eq!(running.end().signal, Some(9));
}

#[test]
fn pit_L1_a_call_cut_by_a_kill_is_answered_once_and_not_run_again() {
    let place = Place::new();
    let model = model(Script::new().reply(long_step()).reply([text("gone on")]).reply([text("and on")]));
    kill_in_the_tool(&place, &model);

    let ran = place.task(&model, ["go on", "--continue"]).run();
    assert_eq!(ran.well(), "gone on\n");
    let id = place.transcripts()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    assert_eq!(place.task(&model, ["and further", "--resume", &id]).run().well(), "and on\n");

    // The strict model refuses histories with an open call, or with one answered twice.
    model.assert_clean();
    let requests = model.reply_requests();
    for seen in &requests[1..] {
        let answers = answers(seen, "toolu_long");
        assert_eq!(answers.len(), 1, "{}", said(seen));
        assert_eq!(answers[0]["is_error"], true);
    }
    assert!(said(&requests[2]).contains("take your time"));
    assert!(said(&requests[2]).contains("gone on"));
    assert_eq!(place.read("count"), "ran\n");
    // It is one conversation in one file.
    assert_eq!(place.transcripts().len(), 1);
}

#[test]
fn pit_M3_a_killed_run_leaves_no_command_behind() {
    let place = Place::new();
    let mark = format!("61.{}", std::process::id());
    // The shell's child, one in the background, one that does not want to end, and one in a session of its own.
    let stubborn =
        format!("trap '' TERM INT HUP; while :; do sleep 0.{mark}; done", mark = mark.replace('.', ""));
    let command = format!("({stubborn}) & setsid sleep {mark} & sleep {mark} & touch began; sleep {mark}");
    let call = tool("Bash", json!({"command": command, "description": "Wait"}));
    let model = model(Script::new().reply([call]));
    kill_in_the_tool(&place, &model);
    let began = Instant::now();
    until("the commands are gone", || {
        processes_with(&mark).is_empty() && processes_with(&mark.replace('.', "")).is_empty()
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn what_was_told_of_a_cut_answer_is_kept() {
    let place = Place::new();
    let model = model(
        Script::new()
            .reply([thinking("Hm."), text("First things first."), gate("never"), text("Never said.")])
            .reply([text("gone on")]),
    );
    let mut running = place.task(&model, ["begin"].into_iter().chain(STREAM));
    let mut child = running.spawn().unwrap();
    // The block is told while the answer still streams.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("First things first.")));
    wait(model.wait_at_gate("never"));
    child.kill().unwrap();
    child.wait().unwrap();

    assert_eq!(place.task(&model, ["--continue", "go on"]).run().well(), "gone on\n");
    model.assert_clean();
    let second = said(&model.reply_requests()[1]);
    for words in ["begin", "First things first.", "go on"] {
        assert!(second.contains(words), "{words}: {second}");
    }
}

#[test]
fn an_answer_cut_before_anything_was_told_leaves_the_prompt() {
    let place = Place::new();
    let model =
        model(Script::new().reply([text("Half of a").after(1, gate("never"))]).reply([text("gone on")]));
    let running = place.task(&model, ["begin"]).start();
    wait(model.wait_at_gate("never"));
    running.signal(Signal::SIGKILL);
    running.end();
    assert_eq!(place.task(&model, ["go on", "-c"]).run().well(), "gone on\n");
    model.assert_clean();
    let second = said(&model.reply_requests()[1]);
    assert!(second.contains("begin") && second.contains("go on") && !second.contains("Half"), "{second}");
}

/// Kills at random moments of the same run: whatever a reader was told is on disk, and the session goes on. `scripts/soak`
/// makes it many more; a seed plays the same moments again.
#[test]
fn pit_S1_a_kill_at_any_moment_loses_nothing_that_was_told() {
    let said = |name: &str, unless: u64| std::env::var(name).map_or(unless, |value| value.parse().unwrap());
    let (kills, mut seed) = (said("PELTON_KILLS", 12), said("PELTON_KILLS_SEED", 1));
    // How long the run takes when nobody disturbs it, so that moments are spread over all of it, and somewhat behind it.
    let (place, server) = (Place::new(), model(a_run()));
    let whole = working(&place, &server).run();
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let (mut told_in_all, mut cut) = (0, 0);
    for kill in 0..kills {
        seed = next(seed);
        let moment = whole.took.mul_f64((seed >> 11) as f64 / (1u64 << 53) as f64 * 1.1);
        let at = format!("kill {kill} of {kills} at {moment:?}");
        let (place, server) = (Place::new(), model(a_run()));
        let running = working(&place, &server).start();
        std::thread::sleep(moment);
        running.signal(Signal::SIGKILL);
        let ran = running.end();
        cut += u64::from(ran.signal == Some(9));
        told_in_all += everything_told_is_recorded(&place, &ran, &at);
        // What was recorded before the kill stays as it is, byte for byte.
        let record = place.transcripts().first().map(|file| (file.clone(), std::fs::read(file).unwrap()));
        let words: &[&str] = if record.is_some() { &["go on", "--continue"] } else { &["go on"] };
        let after = place.task(&server, words.iter().copied().chain(["--allowedTools", "Bash(*)"])).run();
        assert_eq!(after.code, Some(0), "{at}: {after:?}");
        server.assert_clean();
        if let Some((file, before)) = record {
            assert!(std::fs::read(file).unwrap().starts_with(&before), "{at}: old bytes were changed");
        }
        if place.has("log") {
            let log = place.read("log");
            let done: Vec<&str> = log.lines().collect();
            let mut once = done.clone();
            once.dedup();
            assert_eq!(done, once, "{at}: something was done twice");
        }
    }
    assert!(
        told_in_all > 0 && cut * 2 > kills,
        "{cut} of {kills} kills came in time, {told_in_all} frames were told"
    );
    println!("{kills} kills, {cut} of them before the end: {told_in_all} messages were told, none was lost");
}

fn a_run() -> Script {
    let slow = Pace::chunk_bytes(200).delay(Duration::from_millis(1));
    let bash = |command: &str| tool("Bash", json!({"command": command, "description": "A step"}));
    Script::new()
        .step(Step::reply([thinking("Hm."), text("One."), bash("echo 1 >> log")]).pace(slow))
        .step(Step::reply([text("Two."), bash("sleep 0.02; echo 2 >> log"), bash("cat log")]).pace(slow))
        .step(Step::reply([text("Three."), bash("echo 3 >> log")]).pace(slow))
        .step(Step::reply([text("Four.")]).always())
}

fn working(place: &Place, server: &ScriptedModel) -> std::process::Command {
    let words = ["work", "--allowedTools", "Bash(*)", "--include-partial-messages"].into_iter().chain(STREAM);
    place.task(server, words)
}

/// The frames of messages that were told, each of which has its line.
fn everything_told_is_recorded(place: &Place, ran: &crate::place::Ran, at: &str) -> u64 {
    let lines = place.transcripts().first().map_or(Vec::new(), |file| lines_of(file));
    let recorded: HashMap<String, Value> = lines
        .into_iter()
        // What the loop noted stands beside the conversation and has no id.
        .filter_map(|line| Some((line["uuid"].as_str()?.to_owned(), line["message"]["content"].clone())))
        .collect();
    // The last line may be torn: it was not told.
    let whole = ran.out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let frames = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = frames.filter(|frame| ["assistant", "user"].contains(&frame["type"].as_str().unwrap()));
    told.map(|frame| {
        let line = recorded.get(frame["uuid"].as_str().unwrap());
        assert_eq!(line, Some(&frame["message"]["content"]), "{at}");
    })
    .count() as u64
}

/// The next number of a row that looks like chance.
fn next(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn a_session_that_is_not_there_is_said_so_in_every_format() {
    let (place, model) = (Place::new(), model(Script::new()));
    for id in ["11111111-2222-4333-8444-555555555555", "not-an-id"] {
        let line = format!("No conversation found with session ID: {id}");
        let text = place.task(&model, ["go on", "--resume", id]).run();
        assert_eq!((text.failed(1, &[]), text.out.as_str()), (line.as_str(), ""));

        for format in [&STREAM[..], &["--output-format", "json"]] {
            let words = ["go on", "--resume", id].into_iter().chain(format.iter().copied());
            // Nothing is waited for: the input may stay open and silent.
            let ran = place.task(&model, words).stdin(std::process::Stdio::piped()).run();
            assert_eq!(ran.failed(1, &[]), line);
            assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
            assert_eq!(ran.frames().len(), 1);
            let result = ran.result();
            assert_eq!(
                (&result["subtype"], &result["is_error"]),
                (&json!("error_during_execution"), &json!(true))
            );
            assert_eq!(result["errors"], json!([line]));
            for zero in ["duration_ms", "duration_api_ms", "num_turns", "total_cost_usd"] {
                assert_eq!(result[zero], 0, "{zero}");
            }
            assert_eq!(result["usage"]["input_tokens"], 0);
            assert_eq!((&result["modelUsage"], &result["permission_denials"]), (&json!({}), &json!([])));
            assert!(result["session_id"].is_string() && result["uuid"].is_string());
        }
    }
    let ran = place.task(&model, ["go on", "--continue"]).run();
    ran.failed(1, &["no session to continue in this directory", "without --continue"]);
    assert!(model.requests().is_empty() && place.transcripts().is_empty());
}

#[test]
fn an_id_may_be_chosen_but_only_once() {
    let (place, model) = (Place::new(), model(Script::new().step(Step::reply([text("hello")]).always())));
    let id = "5f0c6a52-93b1-4c3e-8d27-1c0f6a7e9b40";
    let words = ["hi", "--session-id", id, "--output-format", "json"];
    assert_eq!(place.task(&model, words).run().result()["session_id"], id);
    assert!(place.transcripts()[0].ends_with(format!("{id}.jsonl")));
    place.task(&model, words).run().failed(1, &[id, "exists already", "--resume"]);
    let again = place.task(&model, ["hi", "-r", id, "--output-format", "json"]).run();
    assert_eq!(again.result()["session_id"], id);
    assert_eq!(place.transcripts().len(), 1);
}

#[test]
fn pit_S7_a_session_is_found_by_its_id_from_anywhere() {
    let (place, model) = (Place::new(), model(Script::new().step(Step::reply([text("hello")]).always())));
    let id = "0b5e3c1a-6d2f-4a49-9c7e-2f8d1e6b7a90";
    place.task(&model, ["remember this", "--session-id", id]).run().well();
    // Another program may have written its own kind of line first.
    let file = &place.transcripts()[0];
    let lines = std::fs::read_to_string(file).unwrap();
    std::fs::write(
        file,
        format!("{{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"{id}\"}}\n{lines}"),
    )
    .unwrap();
    for dir in [place.home(), place.work(), "/".into()] {
        let mut command = place.task(&model, ["go on", "--resume", id, "--output-format", "json"]);
        let ran = command.current_dir(dir).run();
        ran.well();
        assert_eq!(ran.result()["session_id"], id);
        assert!(said(model.reply_requests().last().unwrap()).contains("remember this"));
    }
    assert_eq!(place.transcripts(), std::slice::from_ref(file));
}

#[test]
fn pit_S3_a_session_in_use_is_not_written_by_two() {
    let place = Place::new();
    let model = model(
        Script::new().reply([text("hello")]).reply([gate("busy"), text("at last")]).reply([text("forked")]),
    );
    place.task(&model, ["hi"]).run().well();
    let file = place.transcripts().remove(0);
    let id = file.file_stem().unwrap().to_str().unwrap().to_owned();
    let first = place.task(&model, ["first", "--continue"]).start();
    wait(model.wait_for_requests(2));
    let second = place.task(&model, ["second", "--continue"]).run();
    let pid = format!("pid {}", first.pid());
    second.failed(1, &["in use by another process", &pid, "--fork-session"]);
    assert!(!second.err.contains("make room"), "there is enough: {}", second.err);
    // The way out that it names.
    let forked = place.task(&model, ["second", "--resume", &id, "--fork-session"]).run();
    assert_eq!(forked.well(), "forked\n");
    model.open("busy");
    assert_eq!(first.end().well(), "at last\n");
    model.assert_clean();
    assert!(!std::fs::read_to_string(&file).unwrap().contains("second"));
    assert!(!file.with_extension("").join("lease.json").exists(), "nothing is left of the lease");
}

#[test]
fn pit_S3_the_session_of_a_dead_process_is_taken_over_at_once() {
    let place = Place::new();
    let model = model(Script::new().reply([gate("never"), text("never")]).reply([text("gone on")]));
    let first = place.task(&model, ["first"]).start();
    wait(model.wait_for_requests(1));
    first.signal(Signal::SIGKILL);
    first.end();
    let lease = place.transcripts()[0].with_extension("").join("lease.json");
    assert!(lease.is_file(), "nobody could take it back");
    let second = place.task(&model, ["second", "--continue"]).run();
    assert_eq!(second.well(), "gone on\n");
    assert!(second.took < Duration::from_secs(2), "{:?}", second.took);
    assert!(!lease.exists());
    model.assert_clean();
}

#[test]
fn a_torn_line_is_left_out_and_the_session_goes_on() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("hello")]).reply([text("again")])));
    place.task(&model, ["hi"]).run().well();
    let file = &place.transcripts()[0];
    let before = std::fs::read(file).unwrap();
    let mut torn = before.clone();
    torn.extend_from_slice(&before[..100]);
    std::fs::write(file, &torn).unwrap();
    let ran = place.task(&model, ["more", "-c"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "again\n"));
    assert!(ran.err.starts_with("warning: a damaged line of "), "{}", ran.err);
    assert!(std::fs::read(file).unwrap().starts_with(&torn), "nothing that was there is changed");
    model.assert_clean();
}

#[test]
fn a_session_may_go_without_a_record() {
    let (place, model) = (Place::new(), model(Script::new().step(Step::reply([text("hello")]).always())));
    assert_eq!(place.task(&model, ["hi", "--no-session-persistence"]).run().well(), "hello\n");
    assert!(place.transcripts().is_empty());
    let ran = place.task(&model, ["hi"]).env_remove("CLAUDE_CONFIG_DIR").env_remove("HOME").run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"));
    assert!(ran.err.starts_with("warning: neither CLAUDE_CONFIG_DIR nor HOME is set"), "{}", ran.err);
}

/// Killed while the conversation is being summed up: before a word of the summary came, in the middle of it, and when the
/// summary stood in the place of what was said.
#[test]
fn loop_C10_a_kill_inside_a_compaction_loses_nothing_and_leaves_one_boundary() {
    let summary =
        |parts: Vec<Part>| Step::reply(parts).when(When::any().last_user_text("call no tools")).always();
    let words = "Everything is going well so far, and the beans are being counted one by one.";
    let never = || gate("never");
    // More than it takes to fill the share of the window that is left to it, and less than to fill it twice.
    const ROUNDS: usize = 10;
    for (moment, summing, behind, boundaries) in [
        ("asked", vec![never(), text(words)], vec![], 0),
        ("half", vec![text(words).after(3, never())], vec![], 0),
        ("done", vec![text(words)], vec![never()], 1),
    ] {
        let round = |n: usize| {
            let said = format!("Round {n}. {}", "word ".repeat(1_000));
            [thinking("Hm."), text(said), tool("Glob", json!({"pattern": format!("{n}*")}))]
        };
        let place = Place::new();
        place.put("CLAUDE.md", "Always speak of beans.");
        let script =
            (0..ROUNDS).fold(Script::new().step(summary(summing)), |script, n| script.reply(round(n)));
        let first = model(script.reply(behind.into_iter().chain([text("Done.")])));
        let small = |command: &mut std::process::Command| {
            command.envs([
                ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "60000"),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "40"),
            ]);
        };
        let mut command = place.task(&first, ["count the beans"].into_iter().chain(STREAM));
        small(&mut command);
        let running = command.start();
        wait(first.wait_at_gate("never"));
        running.signal(Signal::SIGKILL);
        assert_eq!(running.end().signal, Some(9), "{moment}");
        first.assert_clean();
        let count = |kind: &str| {
            let lines = place.transcript();
            lines.iter().filter(|line| line["subtype"] == kind || line[kind] == true).count()
        };
        assert_eq!(count("compact_boundary"), boundaries, "{moment}");
        let file = place.transcripts().remove(0);
        let before = std::fs::read(&file).unwrap();

        let second = model(
            Script::new()
                .step(summary(vec![text("In short, all is well.")]))
                .reply([text("Gone on.")])
                .reply([text("Still there.")]),
        );
        for (asked, said) in [("go on", "Gone on.\n"), ("and?", "Still there.\n")] {
            let mut command = place.task(&second, ["--continue", asked]);
            small(&mut command);
            assert_eq!(command.run().well(), said, "{moment}");
        }

        // What is sent is legal, and what matters is there: after the kill as before it.
        second.assert_clean();
        let sent = said(second.reply_requests().last().unwrap());
        for kept in ["count the beans", "Always speak of beans.", "all is well", "Gone on."]
            .iter()
            .filter(|kept| moment != "done" || **kept != "all is well")
        {
            assert!(sent.contains(kept), "{moment}: {kept:?} is missing");
        }
        // Summed up once, whole, and nothing that was said is gone.
        assert_eq!((count("compact_boundary"), count("isCompactSummary")), (1, 1), "{moment}");
        let after = std::fs::read(&file).unwrap();
        assert!(after.starts_with(&before), "{moment}: old bytes stay as they are");
        let all = String::from_utf8(after).unwrap();
        assert!((0..4).all(|n| all.contains(&format!("Round {n}. "))), "{moment}");
    }
}
