//! Conversations that begin anew in the middle of their file, go on from elsewhere, or have answers on several branches: who goes
//! on and who looks find the same.

use pelton_testkit::{Script, Step, text};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, lines_of, model};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

fn id(number: u128) -> String {
    uuid::Uuid::from_u128(number).to_string()
}

/// A line as other programs write it.
fn line(number: u128, parent: Option<u128>, message: &Value) -> String {
    let line = json!({"parentUuid": parent.map(id), "isSidechain": false, "type": message["role"], "message": message,
        "uuid": id(number), "timestamp": "2026-01-01T00:00:00.000Z", "sessionId": SESSION, "version": "2.1.326",
        "userType": "external", "entrypoint": "cli"});
    line.to_string() + "\n"
}

fn asked(words: &str) -> Value {
    json!({"role": "user", "content": words})
}

fn answered(message: &str, block: &Value) -> Value {
    json!({"role": "assistant", "id": message, "type": "message", "model": "claude-sonnet-5-5", "content": [block],
        "usage": {"input_tokens": 1, "output_tokens": 1}})
}

fn said(message: &str, words: &str) -> Value {
    answered(message, &json!({"type": "text", "text": words}))
}

fn called(message: &str, call: &str) -> Value {
    answered(message, &json!({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": call}}))
}

fn brought(call: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": format!("of {call}")}]})
}

/// A place with such a record in it.
fn recorded(lines: &str) -> Place {
    let place = Place::new();
    let key = pelton::transcript::project_key(&place.work().canonicalize().unwrap());
    let dir = place.config().join("projects").join(key);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("{SESSION}.jsonl")), lines).unwrap();
    place
}

/// What the model is sent to go on, block by block, without what the session itself has to say.
fn sent(place: &Place) -> Vec<String> {
    let model = model(Script::new().step(Step::reply([text("Going on.")]).always()));
    place.task(&model, ["NEXT", "--resume", SESSION]).run().well();
    model.assert_clean();
    let mut told = Vec::new();
    for message in model.requests()[0].body["messages"].as_array().unwrap() {
        for block in message["content"].as_array().unwrap() {
            let what = ["text", "id", "tool_use_id"].iter().find_map(|name| block[*name].as_str()).unwrap();
            if !what.starts_with('<') {
                told.push(what.to_owned());
            }
        }
    }
    told
}

#[test]
fn what_follows_nothing_begins_the_conversation_anew_and_the_rest_is_there_for_those_who_ask() {
    let lines = [
        line(1, None, &asked("FIRST")),
        line(2, Some(1), &said("m1", "Of the first.")),
        // Somebody went back to before the first prompt.
        line(3, None, &asked("SECOND")),
        line(4, Some(3), &said("m2", "Of the second.")),
    ];
    let place = recorded(&lines.concat());
    for command in [["sessions", "show"], ["sessions", "export"]] {
        let words =
            |more: &'static [&'static str]| command.into_iter().chain([SESSION]).chain(more.iter().copied());
        let shown = place.pelton(words(&[])).run();
        assert!(shown.out.contains("Of the second.") && !shown.out.contains("Of the first."), "{shown:?}");
        assert!(
            shown.err.contains("2 messages stand on branches that were left; --all shows them"),
            "{shown:?}"
        );
        let all = place.pelton(words(&["--all"])).run();
        assert!(all.out.contains("Of the second.") && all.out.contains("Of the first."), "{all:?}");
        assert!(!all.err.contains("branches"), "{all:?}");
    }
    let found = place.pelton(["sessions", "search", "of the first"]).run();
    assert!(found.out.contains("Of the first."), "nothing is lost: {found:?}");
    assert_eq!(sent(&place), ["SECOND", "Of the second.", "NEXT"]);
}

#[test]
fn calls_beside_each_other_are_all_gone_on_with_wherever_their_results_stand() {
    // Each result follows its call, and what comes next follows one of the results.
    for next_follows in [6, 7, 8] {
        let lines = [
            line(1, None, &asked("FIRST")),
            line(2, Some(1), &said("m1", "Looking.")),
            line(3, Some(2), &called("m1", "toolu_1")),
            line(4, Some(3), &called("m1", "toolu_2")),
            line(5, Some(4), &called("m1", "toolu_3")),
            line(6, Some(4), &brought("toolu_2")),
            line(7, Some(5), &brought("toolu_3")),
            line(8, Some(3), &brought("toolu_1")),
            line(9, Some(next_follows), &said("m2", "Done.")),
        ];
        let place = recorded(&lines.concat());
        let shown = place.pelton(["sessions", "show", SESSION]).run();
        for call in ["toolu_1", "toolu_2", "toolu_3"] {
            assert!(shown.out.contains(&format!("Bash {call}")), "{next_follows}: {shown:?}");
        }
        assert!(!shown.err.contains("branches"), "{next_follows}: {shown:?}");
        let mut sent = sent(&place);
        // The server takes results in any order.
        sent[5..8].sort_unstable();
        let calls = ["toolu_1", "toolu_2", "toolu_3"];
        let whole = [&["FIRST", "Looking."][..], &calls, &calls, &["Done.", "NEXT"]].concat();
        assert_eq!(sent, whole, "{next_follows}");
    }
}

#[test]
fn calls_that_somebody_went_back_to_before_stay_away() {
    let (place, script) = (Place::new(), Script::new());
    let call = |id: &str| pelton_testkit::tool("Bash", json!({"command": "echo hi"})).id(id);
    let model = model(
        script
            .reply([text("Looking."), call("toolu_1"), call("toolu_2")])
            .step(Step::reply([text("On.")]).always()),
    );
    place.task(&model, ["FIRST", "--session-id", SESSION, "--allowedTools", "Bash"]).run().well();
    let looking = |line: &&Value| line["message"]["content"][0]["text"] == "Looking.";
    let at = place.transcript().iter().find(looking).unwrap()["uuid"].as_str().unwrap().to_owned();
    place.task(&model, ["SECOND", "--resume", SESSION, "--resume-session-at", &at]).run().well();
    assert_eq!(sent(&place), ["FIRST", "Looking.", "SECOND", "On.", "NEXT"]);
}

#[test]
fn a_line_of_ours_that_lost_what_it_follows_loses_nothing() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Answered.")]).always()));
    for (prompt, option) in [("FIRST", "--session-id"), ("SECOND", "--resume")] {
        place.task(&model, [prompt, option, SESSION]).run().well();
    }
    let file = place.transcripts().remove(0);
    let sound = std::fs::read_to_string(&file).unwrap();
    let second =
        lines_of(&file).into_iter().find(|line| line["message"].to_string().contains("SECOND")).unwrap();
    let parent = second["parentUuid"].as_str().unwrap();
    let first = id_of_first(&file);
    for other in
        ["null".to_owned(), format!("\"{first}\""), "\"nobody\"".to_owned(), format!("\"{}\"", id(7))]
    {
        let named = |parent: &str| format!("\"parentUuid\":{parent}");
        let damaged = sound.replace(&named(&format!("\"{parent}\"")), &named(&other));
        std::fs::write(&file, &damaged).unwrap();
        let shown = place.pelton(["sessions", "show", SESSION]).run();
        assert!(shown.out.contains("FIRST") && shown.out.contains("SECOND"), "{other}: {shown:?}");
        let doctor = place.pelton(["doctor", SESSION]).run();
        assert!(
            doctor.out.contains("the line it follows is missing") || other == "\"nobody\"",
            "{other}: {doctor:?}"
        );
        assert_eq!(sent(&place), ["FIRST", "Answered.", "SECOND", "Answered.", "NEXT"], "{other}");
        // Made anew, it says so to programs that know nothing of this.
        std::fs::write(&file, &damaged).unwrap();
        let mended = place.pelton(["doctor", SESSION, "--repair", "--json"]).run();
        let mended: Value = serde_json::from_str(&mended.out).unwrap();
        let lines = lines_of(mended["file"].as_str().unwrap().as_ref());
        let roots = lines.iter().filter(|line| line["uuid"].is_string() && line["parentUuid"].is_null());
        assert_eq!(roots.count(), 1, "{other}");
    }
}

fn id_of_first(file: &std::path::Path) -> String {
    let lines = lines_of(file);
    lines.iter().find_map(|line| line["uuid"].as_str()).unwrap().to_owned()
}
