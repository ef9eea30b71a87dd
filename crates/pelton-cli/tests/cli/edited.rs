//! Records that somebody wrote in: every field of every line becomes something else, by chance. What a line proves of itself tells
//! that, so that the first thing the model is sent is legal already. What nobody wrote in is still said.

use pelton_testkit::{Script, Step, text};
use serde_json::{Map, Value, json};

use crate::damage::{chance, recorded};
use crate::place::{Commanded, Place, model};

/// Seeds that are tried; more of them, where somebody has the time.
const SEEDS: u64 = 60;
const SEEDS_VARIABLE: &str = "PELTON_TEST_SEEDS";

/// Where something is in a value.
type Way = Vec<String>;

/// All places in a value, itself left out.
fn places(value: &Value, way: &mut Way, found: &mut Vec<Way>) {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, inner)| (name.clone(), inner)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, inner)| (index.to_string(), inner)).collect()
        }
        _ => return,
    };
    for (name, inner) in inside {
        way.push(name);
        found.push(way.clone());
        places(inner, way, found);
        way.pop();
    }
}

fn at<'a>(value: &'a mut Value, way: &[String]) -> &'a mut Value {
    way.iter().fold(value, |value, name| match value {
        Value::Array(items) => &mut items[name.parse::<usize>().unwrap()],
        value => &mut value[name.as_str()],
    })
}

/// Another text of about the same kind.
fn other_text(before: &str, seed: &mut u64) -> String {
    let mut letters: Vec<char> = before.chars().collect();
    match chance(seed, 5) {
        0 => String::new(),
        1 => "x".repeat(100_000),
        2 => format!("{before}{before}"),
        3 if !letters.is_empty() => {
            letters.remove(chance(seed, letters.len()));
            letters.into_iter().collect()
        }
        _ if letters.is_empty() => "new".to_owned(),
        _ => {
            let place = chance(seed, letters.len());
            letters[place] = ['7', 'q', ' ', 'ü', '"', '+'][chance(seed, 6)];
            letters.into_iter().collect()
        }
    }
}

/// Writes in a line; tells what was done.
fn edit(line: &mut Value, seed: &mut u64) -> String {
    let mut all = Vec::new();
    places(line, &mut Way::new(), &mut all);
    // What is said is most of a record, and little of its fields.
    let said: Vec<Way> = all.iter().filter(|way| way[0] == "message").cloned().collect();
    let from = if chance(seed, 3) > 0 && !said.is_empty() { &said } else { &all };
    let way = from[chance(seed, from.len())].clone();
    let told = way.join("/");
    let (name, parent) = way.split_last().unwrap();
    let parent = at(line, parent);
    match (chance(seed, 4), parent) {
        (0, Value::Object(fields)) => {
            fields.remove(name);
            format!("{told} is gone")
        }
        (0, Value::Array(items)) => {
            items.remove(name.parse().unwrap());
            format!("{told} is gone")
        }
        (1, Value::Object(fields)) => {
            let value = fields.remove(name).unwrap();
            fields.insert(format!("{name}x"), value);
            format!("{told} has another name")
        }
        (1, Value::Array(items)) => {
            let twice = items[name.parse::<usize>().unwrap()].clone();
            items.push(twice);
            format!("{told} is there twice")
        }
        (2, parent) => {
            let others = [
                json!(null),
                json!(7),
                json!(-0.5),
                json!(true),
                json!(""),
                json!([]),
                json!({}),
                json!([{"type": "text"}]),
                json!({"type": "tool_use"}),
                Value::Object(Map::new()),
            ];
            let other = others[chance(seed, others.len())].clone();
            let told = format!("{told} is {other}");
            *at(parent, std::slice::from_ref(name)) = other;
            told
        }
        (_, parent) => {
            let value = at(parent, std::slice::from_ref(name));
            match value {
                Value::String(before) => *before = other_text(before, seed),
                Value::Bool(is) => *is = !*is,
                Value::Number(_) => *value = json!(chance(seed, 1_000_000)),
                Value::Object(fields) => _ = fields.insert("new".to_owned(), json!("field")),
                Value::Array(items) => items.push(json!({"type": "text", "text": "new"})),
                Value::Null => *value = json!("something"),
            }
            format!("{told} is another")
        }
    }
}

#[test]
fn pit_S1_whatever_somebody_writes_in_a_record_the_first_request_is_legal() {
    let place = Place::new();
    let (session, file, _) = recorded(&place);
    let sound = std::fs::read_to_string(&file).unwrap();
    let seeds = std::env::var(SEEDS_VARIABLE).ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let of_line = |words: &'static str| (sound.lines().position(|line| line.contains(words)).unwrap(), words);
    let said = ["FIRST-PROMPT", "Looking.", "First done.", "SECOND-PROMPT", "Second done."].map(of_line);
    let mut refused = Vec::new();
    for first in 1..=seeds {
        let mut seed = first;
        let mut lines: Vec<String> = sound.lines().map(str::to_owned).collect();
        let (mut told, mut touched) = (Vec::new(), Vec::new());
        for _ in 0..=chance(&mut seed, 3) {
            let index = chance(&mut seed, lines.len());
            let mut line: Value = serde_json::from_str(&lines[index]).unwrap();
            told.push(format!("line {}: {}", index + 1, edit(&mut line, &mut seed)));
            lines[index] = line.to_string();
            touched.push(index);
        }
        let bytes = lines.join("\n") + "\n";
        std::fs::write(&file, &bytes).unwrap();
        let model = model(Script::new().step(Step::reply([text("Going on.")]).always()));
        let ran = place.task(&model, ["NEXT-PROMPT", "--resume", &session]).run();
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Going on.\n"), "{first} {told:?}: {ran:?}");
        assert!(std::fs::read_to_string(&file).unwrap().starts_with(&bytes), "{first}: old bytes stay");
        let requests = model.requests();
        assert!(
            requests.iter().any(|asked| asked.body["messages"].to_string().contains("NEXT-PROMPT")),
            "{first}"
        );
        // Whatever is edited elsewhere, what was said stays.
        let sent: String = requests.iter().map(|asked| asked.body["messages"].to_string()).collect();
        for (index, words) in said.iter().filter(|(index, _)| !touched.contains(index)) {
            assert!(sent.contains(words), "{first} {told:?}: line {}, {words}", index + 1);
        }
        if !model.illegal().is_empty() {
            refused.push(format!("{first} {told:?}: {:?}", model.illegal()));
        }
    }
    assert!(refused.is_empty(), "{} refused at first, of {seeds}: {refused:#?}", refused.len());
}
