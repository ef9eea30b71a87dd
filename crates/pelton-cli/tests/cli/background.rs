//! Commands in the background, as clients and the model see them.

use std::time::{Duration, Instant};

use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::frames::{STREAM, check_stream};
use crate::place::{Commanded, Place, model, of_type, until};
use crate::talk::Talk;

fn in_background(command: &str) -> Step {
    let input = json!({"command": command, "run_in_background": true, "description": "a server"});
    Step::reply([tool("Bash", input).id("toolu_started")])
}

fn system<'a>(frames: &'a [Value], subtype: &str) -> Vec<&'a Value> {
    of_type(frames, "system").into_iter().filter(|frame| frame["subtype"] == subtype).collect()
}

#[test]
fn a_command_in_the_background_is_told_of_when_it_starts_and_when_it_ends() {
    let script = Script::new()
        .step(in_background("echo up; while ! test -e stop; do sleep 0.05; done; echo down"))
        .step(Step::reply([tool("Bash", json!({"command": "touch stop; sleep 1"}))]))
        .step(Step::reply([text("Done.")]));
    let (place, model) = (Place::new(), model(script));
    let ran = place.task(&model, ["hi", "--allowedTools", "Bash"].into_iter().chain(STREAM)).run();
    let frames = check_stream(&ran);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [started] = system(&frames, "task_started")[..] else { panic!("one start: {frames:?}") };
    assert_eq!((&started["task_type"], &started["description"]), (&json!("local_bash"), &json!("a server")));
    assert_eq!(started["tool_use_id"], "toolu_started");
    let [ended] = system(&frames, "task_notification")[..] else { panic!("one end: {frames:?}") };
    assert_eq!((&ended["status"], &ended["task_id"]), (&json!("completed"), &started["task_id"]));
    let printed = std::fs::read_to_string(ended["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(printed, "up\ndown\n");
    // The model is told, once, behind the results of the turn in which it ended.
    let told = |request: usize| {
        model.requests()[request - 1].body["messages"].to_string().matches("has ended: completed").count()
    };
    assert_eq!((told(2), told(3)), (0, 1));
    model.assert_clean();
}

#[test]
fn what_still_runs_at_the_end_has_a_little_time_and_is_killed() {
    let script =
        Script::new().step(in_background("echo $$ > pid; sleep 300")).step(Step::reply([text("Done.")]));
    let (place, model) = (Place::new(), model(script));
    let begun = Instant::now();
    let ran = place.task(&model, ["hi", "--allowedTools", "Bash"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(20), "{took:?}");
    let pid = place.read("pid");
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(), "still running");
}

/// Processes whose parent this is.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<String> {
    let stats = std::fs::read_dir("/proc").unwrap();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    let is_child = |stat: &String| {
        let behind_name = &stat[stat.rfind(')').unwrap() + 1..];
        behind_name.split_ascii_whitespace().nth(1) == Some(&*parent.to_string())
    };
    stats.filter(is_child).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn loop_A2_between_two_prompts_no_process_is_left_of_the_first() {
    let script = Script::new()
        .step(Step::reply([tool("Bash", json!({"command": "true"}))]))
        .step(Step::reply([text("Done.")]))
        .step(Step::reply([tool("Bash", json!({"command": "touch running; sleep 300"}))]));
    let (place, model) = (Place::new(), model(script));
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "Bash"]);
    talk.prompt("hi");
    talk.result();
    until("what commands needed is gone", || children(talk.id()).is_empty());
    talk.prompt("and now?");
    until("the command runs", || place.has("running"));
    assert!(!children(talk.id()).is_empty());
    talk.asked(&json!({"subtype": "interrupt"}));
    talk.result();
    until("what was interrupted is gone", || children(talk.id()).is_empty());
}
