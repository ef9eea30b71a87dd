//! Records that something happened to. Whatever it was: the session goes on, what is sent is legal, and the old bytes stay.

use std::path::{Path, PathBuf};

use pelton_testkit::{Script, Step, raw_block, text, thinking, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};

/// A picture of one point.
const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4, 0x89, 0x00,
    0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0x00, 0x05,
    0x00, 0x01, 0xff, 0x56, 0xc7, 0x2f, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42,
    0x60, 0x82,
];

/// A record with everything in it that can be torn apart: thinking and words before calls, calls side by side, a failed one, a
/// picture, a search of the server's, two prompts.
pub fn recorded(place: &Place) -> (String, PathBuf, Vec<Value>) {
    place.put("a.txt", "alpha");
    std::fs::write(place.work().join("dot.png"), PIXEL).unwrap();
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let read = |id: &str, file: &str| tool("Read", json!({"file_path": file})).id(id);
    let script = Script::new()
        .reply([thinking("Hm."), text("Looking."), read("toolu_1", "a.txt"), read("toolu_2", "none.txt")])
        .reply([tool("Bash", json!({"command": "echo beta"})).id("toolu_3"), read("toolu_5", "dot.png")])
        .reply([raw_block(search), raw_block(found), thinking("So."), text("First done.")])
        .reply([read("toolu_4", "a.txt")])
        .reply([text("Second done.")]);
    let model = model(script);
    let words = ["--allowedTools", "Bash", "--output-format", "json"];
    let first = place.task(&model, ["FIRST-PROMPT"].into_iter().chain(words)).run().result();
    let session = first["session_id"].as_str().unwrap().to_owned();
    place.task(&model, ["SECOND-PROMPT", "--resume", &session].into_iter().chain(words)).run().result();
    let file = place.transcripts().remove(0);
    let lines = crate::place::lines_of(&file);
    (session, file, lines)
}

type Damage = fn(&mut Vec<String>);

fn change(lines: &mut [String], is_it: impl Fn(&Value) -> bool, how: impl Fn(&mut Value)) {
    for text in lines {
        if let Ok(mut line) = serde_json::from_str::<Value>(text)
            && is_it(&line)
        {
            how(&mut line);
            *text = line.to_string();
        }
    }
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |line| line["type"] == kind
}

fn is_result(line: &Value) -> bool {
    line["message"]["content"][0]["type"] == "tool_result"
}

fn anything(_: &Value) -> bool {
    true
}

fn at(lines: &[String], words: &str) -> usize {
    lines.iter().position(|line| line.contains(words)).unwrap()
}

/// What happened, and to which lines.
const DAMAGES: [(&str, Damage); 47] = [
    ("all lines in reverse", |lines| lines.reverse()),
    ("lines sorted by their letters", |lines| lines.sort()),
    ("every second line is gone", |lines| {
        let mut nth = 0;
        lines.retain(|_| {
            nth += 1;
            nth % 2 == 0
        });
    }),
    ("the first prompt is gone", |lines| {
        let at = at(lines, "FIRST-PROMPT");
        lines.remove(at);
    }),
    ("all prompts are gone", |lines| lines.retain(|line| !line.contains("-PROMPT"))),
    ("all answers are gone", |lines| lines.retain(|line| !line.contains("\"type\":\"assistant\""))),
    ("all results are gone", |lines| lines.retain(|line| !line.contains("\"type\":\"tool_result\""))),
    ("one call of two is gone", |lines| {
        let at = at(lines, "\"id\":\"toolu_2\"");
        lines.remove(at);
    }),
    ("one result of two is gone", |lines| {
        let at = at(lines, "\"tool_use_id\":\"toolu_1\"");
        lines.remove(at);
    }),
    ("all words of the model are gone", |lines| {
        lines.retain(|line| !line.contains("\"type\":\"text\",\"text\""));
    }),
    ("the whole file twice", |lines| lines.extend(lines.clone())),
    ("every line twice, one behind the other", |lines| {
        *lines = lines.iter().flat_map(|line| [line.clone(), line.clone()]).collect();
    }),
    ("every line in two halves", |lines| {
        *lines = lines
            .iter()
            .flat_map(|line| {
                let mut middle = line.len() / 2;
                while !line.is_char_boundary(middle) {
                    middle += 1;
                }
                [line[..middle].to_owned(), line[middle..].to_owned()]
            })
            .collect();
    }),
    ("two lines run together", |lines| {
        let second = lines.remove(3);
        lines[2].push_str(&second);
    }),
    ("lines of three kinds run together without an end", |lines| *lines = vec![lines.concat()]),
    ("carriage returns", |lines| lines.iter_mut().for_each(|line| line.push('\r'))),
    ("blanks before and behind", |lines| lines.iter_mut().for_each(|line| *line = format!("\t  {line}  "))),
    ("a mark of the byte order on every line", |lines| {
        lines.iter_mut().for_each(|line| line.insert(0, '\u{feff}'));
    }),
    ("written over with another program's words", |lines| {
        lines[2] = "<html>502 Bad Gateway</html>".to_owned();
    }),
    ("marks of a merge", |lines| {
        lines.insert(2, "<<<<<<< HEAD".to_owned());
        lines.insert(5, "=======".to_owned());
        lines.push(">>>>>>> theirs".to_owned());
    }),
    ("all ids are the same", |lines| {
        change(lines, anything, |line| line["uuid"] = json!("11111111-1111-4111-8111-111111111111"));
    }),
    ("ids that are none", |lines| change(lines, anything, |line| line["uuid"] = json!("x"))),
    ("ids that are numbers", |lines| change(lines, anything, |line| line["uuid"] = json!(7))),
    ("no ids", |lines| change(lines, anything, |line| _ = line.as_object_mut().unwrap().remove("uuid"))),
    ("each its own parent", |lines| {
        change(lines, anything, |line| line["parentUuid"] = line["uuid"].clone());
    }),
    ("all without a parent", |lines| change(lines, anything, |line| line["parentUuid"] = Value::Null)),
    ("parents of nobody", |lines| {
        change(lines, anything, |line| line["parentUuid"] = json!("22222222-2222-4222-8222-222222222222"));
    }),
    ("another session's id", |lines| {
        change(lines, anything, |line| line["sessionId"] = json!("33333333-3333-4333-8333-333333333333"));
    }),
    ("the years 0 and 9999", |lines| {
        change(lines, is("user"), |line| line["timestamp"] = json!("0000-01-01T00:00:00Z"));
        change(lines, is("assistant"), |line| line["timestamp"] = json!("9999-12-31T23:59:59Z"));
    }),
    ("moments that are none", |lines| change(lines, anything, |line| line["timestamp"] = json!("yesterday"))),
    ("roles exchanged", |lines| {
        change(lines, is("assistant"), |line| line["message"]["role"] = json!("user"));
    }),
    ("answers that say they are prompts", |lines| {
        change(lines, is("assistant"), |line| line["type"] = json!("user"));
    }),
    ("prompts that say they are answers", |lines| {
        change(lines, is("user"), |line| line["type"] = json!("assistant"));
    }),
    ("messages that are words", |lines| change(lines, is("user"), |line| line["message"] = json!("words"))),
    ("parts of results without words", |lines| {
        change(lines, is_result, |line| {
            line["message"]["content"][0]["content"] =
                json!([{"type": "text"}, {"type": "text", "text": "kept"}]);
        });
    }),
    ("parts of results that are none", |lines| {
        change(lines, is_result, |line| {
            line["message"]["content"][0]["content"] = json!([7, {"type": "tool_use"}]);
        });
    }),
    ("results with more fields than there are", |lines| {
        change(lines, is_result, |line| line["message"]["content"][0]["is_errpr"] = json!(false));
    }),
    ("kinds whose letters are lost", |lines| {
        for line in lines {
            *line = line.replace("\"type\":\"text\"", "\"type\":\"te\u{fffd}t\"");
        }
    }),
    ("a picture whose letters are lost", |lines| {
        for line in lines {
            *line = line.replace("\"data\":\"iVBOR", "\"data\":\"iV OR");
        }
    }),
    ("a search without its question", |lines| {
        let at = at(lines, "\"type\":\"server_tool_use\"");
        lines.remove(at);
    }),
    ("nothing of what stood in front", |lines| {
        lines.retain(|line| !line.contains("\"subtype\":\"request\""));
    }),
    ("thinking that lost what it thought", |lines| {
        for line in lines {
            *line = line.replace("\"thinking\":\"Hm.\"", "\"thinking\":null");
        }
    }),
    ("messages without content", |lines| {
        change(lines, is("assistant"), |line| line["message"]["content"] = Value::Null);
    }),
    ("content that is an object", |lines| {
        change(lines, is("user"), |line| line["message"]["content"] = json!({"text": "x"}));
    }),
    ("blocks without a kind", |lines| {
        change(lines, is("assistant"), |line| {
            line["message"]["content"] = json!([{"data": [1, 2]}, 7, null, "words"]);
        });
    }),
    ("inputs of calls that are texts", |lines| {
        change(lines, is("assistant"), |line| {
            if line["message"]["content"][0]["type"] == "tool_use" {
                line["message"]["content"][0]["input"] = json!("{\"file_path\":");
            }
        });
    }),
    ("results for calls of the other prompt", |lines| {
        for line in lines.iter_mut() {
            *line = line
                .replace("\"tool_use_id\":\"toolu_1\"", "\"tool_use_id\":\"toolu_4\"")
                .replace("\"tool_use_id\":\"toolu_4\",\"type", "\"tool_use_id\":\"toolu_1\",\"type");
        }
    }),
];

fn goes_on(place: &Place, session: &str, file: &Path, what: &str) {
    eprintln!("{what}");
    let before = std::fs::read(file).unwrap();
    let model = model(Script::new().step(Step::reply([text("Going on.")]).always()));
    let ran = place.task(&model, ["NEXT-PROMPT", "--resume", session, "--output-format", "json"]).run();
    assert_eq!(ran.code, Some(0), "{what}: {ran:?}");
    assert_eq!(ran.result()["result"], "Going on.", "{what}");
    // The scripted model refuses what the API would refuse, and says so here.
    model.assert_clean();
    let requests = model.requests();
    assert_eq!(requests.len(), 1, "{what}: at once");
    assert!(requests[0].body["messages"].to_string().contains("NEXT-PROMPT"), "{what}");
    let after = std::fs::read(file).unwrap();
    assert!(after.starts_with(&before), "{what}: old bytes stay");
    // Whoever looks at it is told something, and nothing breaks.
    for words in [["doctor", session], ["sessions", "list"]] {
        let looked = place.pelton(words).run();
        assert!(looked.signal.is_none() && !looked.err.contains("panicked"), "{what}: {looked:?}");
    }
    let shown = place.pelton(["sessions", "show", session]).run();
    assert_eq!(shown.code, Some(0), "{what}: {shown:?}");
    // And what is made anew goes on, too.
    let mended = place.pelton(["doctor", session, "--repair", "--json"]).run();
    assert_eq!(mended.code, Some(0), "{what}: {mended:?}");
    let mended: Value = serde_json::from_str(&mended.out).unwrap();
    if let Some(mended) = mended["session_id"].as_str() {
        let again = place.task(&model, ["AGAIN", "--resume", mended]).run();
        assert_eq!((again.code, again.out.as_str()), (Some(0), "Going on.\n"), "{what}: {again:?}");
        model.assert_clean();
    }
}

#[test]
fn pit_S1_whatever_happened_to_a_record_the_session_goes_on() {
    let place = Place::new();
    let (session, file, _) = recorded(&place);
    let sound = std::fs::read_to_string(&file).unwrap();
    for (what, damage) in DAMAGES {
        let mut lines: Vec<String> = sound.lines().map(str::to_owned).collect();
        damage(&mut lines);
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        goes_on(&place, &session, &file, what);
    }
}

/// The same, of bytes rather than lines.
#[test]
fn pit_S1_whatever_happened_to_the_bytes_of_a_record_the_session_goes_on() {
    let place = Place::new();
    let (session, file, _) = recorded(&place);
    let sound = std::fs::read(&file).unwrap();
    let middle = sound.len() / 2;
    let damages: [(&str, Vec<u8>); 8] = [
        ("nothing is left", Vec::new()),
        ("line ends alone", b"\n".repeat(300)),
        ("a file of zeros", vec![0; 10_000]),
        ("zeros in its middle", [&sound[..middle], &[0; 4096], &sound[middle..]].concat()),
        ("its first half is gone", sound[middle..].to_vec()),
        ("one byte in a hundred is another", {
            let mut bytes = sound.clone();
            bytes.iter_mut().step_by(100).for_each(|byte| *byte ^= 0x15);
            bytes
        }),
        (
            "halves of characters",
            sound.iter().flat_map(|byte| if *byte == b'e' { vec![0xC3] } else { vec![*byte] }).collect(),
        ),
        (
            "a line without an end of 40 MB",
            [&sound[..], b"{\"type\":\"user\",\"x\":\"", &vec![b'x'; 40_000_000][..]].concat(),
        ),
    ];
    for (what, bytes) in damages {
        std::fs::write(&file, bytes).unwrap();
        goes_on(&place, &session, &file, what);
    }
}

/// A number from a seed, below `most`.
pub fn chance(seed: &mut u64, most: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap() % most.max(1)
}

/// Something that happens to a record, by chance.
fn hurt(bytes: &mut Vec<u8>, seed: &mut u64) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (chance(seed, lines.len()), chance(seed, lines.len()));
    match chance(seed, 7) {
        0 => lines.swap(one, other),
        1 => lines.insert(one, lines[other].clone()),
        2 => _ = lines.remove(one),
        3 => lines[one].truncate(other),
        4 => {
            let place = chance(seed, bytes.len());
            bytes.drain(place..(place + 1 + chance(seed, 2000)).min(bytes.len()));
            return;
        }
        5 => {
            for _ in 0..=chance(seed, 20) {
                let place = chance(seed, bytes.len());
                bytes[place] = u8::try_from(chance(seed, 256)).unwrap();
            }
            return;
        }
        _ => {
            if let Ok(Value::Object(mut line)) = serde_json::from_slice(&lines[one]) {
                let field = line.keys().nth(chance(seed, line.len())).cloned();
                field.map(|field| line.remove(&field));
                lines[one] = Value::Object(line).to_string().into_bytes();
            }
        }
    }
    *bytes = lines.join(&b'\n');
}

/// Nothing is refused, not even once: words before thinking that have become others are known.
#[test]
fn pit_S1_whatever_happens_to_a_record_by_chance_the_session_goes_on() {
    let place = Place::new();
    let (session, file, _) = recorded(&place);
    let sound = std::fs::read(&file).unwrap();
    for first in 1..=40 {
        let (mut seed, mut bytes) = (first, sound.clone());
        for _ in 0..=chance(&mut seed, 4) {
            hurt(&mut bytes, &mut seed);
        }
        std::fs::write(&file, &bytes).unwrap();
        let model = model(Script::new().step(Step::reply([text("Going on.")]).always()));
        let ran = place.task(&model, ["NEXT-PROMPT", "--resume", &session]).run();
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Going on.\n"), "{first}: {ran:?}");
        model.assert_clean();
        assert!(std::fs::read(&file).unwrap().starts_with(&bytes), "{first}: old bytes stay");
        for words in [["sessions", "show"], ["sessions", "export"]] {
            let looked = place.pelton(words.into_iter().chain([session.as_str()])).run();
            assert_eq!(looked.code, Some(0), "{first}: {looked:?}");
        }
    }
}

/// Thinking is bound to what stood in front of it. Another front leaves it out, and it stays out when that front is used again.
#[test]
fn thinking_from_behind_another_front_does_not_come_back() {
    let place = Place::new();
    let script = Script::new().reply([thinking("Hm."), text("One.")]);
    let model = model(script.step(Step::reply([text("More.")]).always()));
    let session = "33333333-2222-4333-8444-555555555555";
    place.task(&model, ["FIRST", "--session-id", session]).run().well();
    for _ in 0..2 {
        place.task(&model, ["NEXT", "--resume", session, "--append-system-prompt", "Be brief."]).run().well();
    }
    model.assert_clean();
    assert_eq!(model.requests().len(), 3);
}
