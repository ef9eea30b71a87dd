//! Records that something happened to. Whatever it was: the session goes on, what is sent is legal, and the old bytes stay.

use std::path::{Path, PathBuf};

use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};

/// A record with everything in it that can be torn apart: words before calls, calls side by side, a failed one, two prompts.
fn recorded(place: &Place) -> (String, PathBuf, Vec<Value>) {
    place.put("a.txt", "alpha");
    let read = |id: &str, file: &str| tool("Read", json!({"file_path": file})).id(id);
    let script = Script::new()
        .reply([text("Looking."), read("toolu_1", "a.txt"), read("toolu_2", "none.txt")])
        .reply([tool("Bash", json!({"command": "echo beta"})).id("toolu_3")])
        .reply([text("First done.")])
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

fn anything(_: &Value) -> bool {
    true
}

fn at(lines: &[String], words: &str) -> usize {
    lines.iter().position(|line| line.contains(words)).unwrap()
}

/// What happened, and to which lines.
const DAMAGES: [(&str, Damage); 36] = [
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
