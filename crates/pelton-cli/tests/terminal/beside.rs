//! What goes on beside the conversation, or takes it elsewhere: side questions, another directory, a log on demand.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pelton_testkit::{Script, ScriptedModel, Step, When, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

/// Answers of the model: to questions beside the conversation, and to everything else.
fn answering(beside: &str, words: &str) -> ScriptedModel {
    let is_beside = When::any().last_user_text("beside the work");
    let beside = Step::reply([text(beside)]).when(is_beside).always();
    model(Script::new().step(beside).step(Step::reply([text(words)]).always()))
}

/// What is the same of a request whatever is asked last, without the marks that say what is to be kept.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "cache_control");
            Value::Object(fields.map(|(name, value)| (name.clone(), unmarked(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(unmarked).collect()),
        other => other.clone(),
    }
}

fn transcripts(place: &Place) -> Vec<PathBuf> {
    let folders = fs::read_dir(place.config().join("projects")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
    files
        .map(|file| file.path())
        .filter(|file| file.extension().is_some_and(|kind| kind == "jsonl"))
        .collect()
}

#[test]
fn a_question_beside_the_conversation_sees_it_and_leaves_nothing_there() {
    let place = Place::new();
    let model = answering("It was **forty-two**.", "Noted.");
    let mut seat = Seat::at(&place, &model, ["Remember 42"]);
    seat.sees("Noted.");
    seat.rests();
    seat.types("/btw which number?\r");
    seat.sees("beside: which number?");
    seat.sees("It was forty-two.");
    seat.sees("this is no part of the conversation");
    seat.types("Go on\r");
    seat.until("it is asked again", |_| model.requests().len() == 3);
    let requests = model.requests();
    let [first, beside, next] = [0, 1, 2].map(|at| requests[at].body.clone());
    // The same stands in front, so that the server has it in its cache.
    for part in ["system", "tools", "model"] {
        assert_eq!(unmarked(&beside[part]), unmarked(&first[part]), "{part}");
    }
    let messages = |body: &Value| unmarked(&body["messages"]).as_array().unwrap().clone();
    assert!(messages(&beside).starts_with(&messages(&first)));
    assert!(beside["messages"].to_string().contains("which number?"));
    // And nothing of it is said to the model again, or written down.
    assert!(!next["messages"].to_string().contains("which number?"));
    assert!(!next["messages"].to_string().contains("forty-two"));
    assert!(messages(&next).starts_with(&messages(&first)));
    let recorded = fs::read_to_string(&transcripts(&place)[0]).unwrap();
    assert!(recorded.contains("Remember 42") && !recorded.contains("forty-two"), "{recorded}");
    // A name is found for what was said, and for nothing else.
    seat.rests();
    seat.types("/clear\r");
    seat.sees("This is another conversation.");
    seat.rests();
    seat.types("/rename\r");
    seat.sees("nothing was said yet that it could be called after");
    // Without a question the answer is shown once more.
    seat.rests();
    seat.types("/btw\r");
    seat.until("it is told again", |seat| {
        seat.rows().iter().filter(|row| row.contains("It was forty-two.")).count() == 2
    });
    model.assert_clean();
}

#[test]
fn a_question_beside_the_work_neither_waits_for_it_nor_holds_it_up() {
    let place = Place::new();
    let is_beside = |words: &str| When::any().last_user_text(words);
    let sleeps =
        tool("Bash", json!({"command": "while [ ! -e go ]; do sleep 0.05; done", "description": "Wait"}));
    let script = Script::new()
        .step(Step::reply([text("I wait.")]).when(is_beside("what do you do")))
        .step(Step::reply([gate("never"), text("Unheard.")]).when(is_beside("slow one")))
        .reply([sleeps])
        .reply([text("All done.")]);
    let model = model(script);
    let mut seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("Running while");
    seat.types("/btw what do you do\r");
    seat.sees("I wait.");
    // The call that runs is known to whoever is asked, and not over.
    let asked = model.requests().last().unwrap().body["messages"].to_string();
    assert!(asked.contains("while [ ! -e go ]") && asked.contains("has not ended yet"), "{asked}");
    let long = format!("/btw slow one {}\r", "that goes on and on ".repeat(6));
    seat.types(&long);
    seat.sees("? slow one");
    // Esc gives up the question and nothing else.
    seat.types("\u{1b}");
    seat.sees("given up: nobody answers it");
    seat.sees_no_more("? slow one");
    assert!(!seat.screen().contains("interrupted"), "{}", seat.screen());
    place.put("go", "");
    seat.sees("All done.");
    seat.rests();
    model.assert_clean();
}

#[test]
fn a_question_beside_the_conversation_that_cannot_be_answered_says_why() {
    let place = Place::new();
    let is_beside = When::any().last_user_text("beside the work");
    let refuses = Step::status(400).message("no such luck").error_type("invalid_request_error");
    let wants = Step::reply([tool("Read", json!({"file_path": "x"}))]);
    let script = Script::new()
        .step(refuses.when(is_beside.clone()))
        .step(wants.when(is_beside))
        .step(Step::reply([text("Well.")]).always());
    let model = model(script);
    let mut seat = Seat::at(&place, &model, ["hello"]);
    seat.sees("Well.");
    seat.types("/btw one\r");
    seat.sees("not answered: ");
    seat.sees("no such luck");
    seat.types("/btw two\r");
    seat.sees("wanted to look something up");
    seat.types("/btw\r");
    seat.until("the newest is told again", |seat| seat.rows().join(" ").matches("beside: two").count() == 2);
}

#[test]
fn without_a_screen_a_question_beside_the_conversation_is_answered_too() {
    let place = Place::new();
    let model = answering("It was 42.", "Noted.");
    let first = place.pelton(["-p", "Remember 42"]).asks(&model).run();
    assert_eq!(first.code, Some(0), "{}", first.err);
    let recorded = fs::read(&transcripts(&place)[0]).unwrap();
    let ran = place.pelton(["-p", "-c", "/btw which number?"]).asks(&model).run();
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "It was 42."), "{}", ran.err);
    let now = fs::read_to_string(&transcripts(&place)[0]).unwrap();
    assert!(now.as_bytes().starts_with(&recorded) && !now.contains("It was 42."), "{now}");
    let ran = place.pelton(["-p", "/btw"]).asks(&model).run();
    assert!(ran.code == Some(1) && ran.err.contains("there is no question"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_session_goes_on_in_another_directory_with_what_it_knows() {
    let place = Place::new();
    let other = place.work().join("../other");
    fs::create_dir_all(other.join("sub")).unwrap();
    let other = other.canonicalize().unwrap();
    fs::write(place.work().join("CLAUDE.md"), "Work in the old place.").unwrap();
    fs::write(other.join("CLAUDE.md"), "Work in the new place.").unwrap();
    let model = model(Script::new().step(Step::reply([text("Answered.")]).always()));
    let mut seat = Seat::at(&place, &model, ["--effort", "high", "--add-dir", "../temp", "--", "one"]);
    seat.sees("Answered.");
    seat.rests();
    seat.types("\u{1b}[Z/effort low\r");
    seat.sees("effort is low");
    seat.types("/add-dir ../home\r");
    seat.sees("The session works in");
    seat.rests();
    seat.types("/cd ../nowhere\r");
    seat.sees("../nowhere: No such file");
    seat.types("/cd ../other\r");
    seat.sees("/other now");
    seat.types("two\r");
    seat.until("it is asked there", |_| model.requests().len() == 2);
    seat.rests();
    let requests = model.requests();
    let [before, now] = [0, 1].map(|at| requests[at].body.clone());
    let messages = |body: &Value| unmarked(&body["messages"]).as_array().unwrap().clone();
    // All that was said stands as it was sent, and what is new is told behind it.
    assert_eq!(unmarked(&now["system"]), unmarked(&before["system"]));
    assert_eq!(unmarked(&now["tools"]), unmarked(&before["tools"]));
    assert!(messages(&now).starts_with(&messages(&before)[..1]), "{now:#}");
    let told = now["messages"].to_string();
    for words in [format!("working directory is now {}", other.display()), "Work in the new place.".into()] {
        assert!(told.contains(&words), "{words}: {told}");
    }
    assert_eq!(now["output_config"]["effort"], "low");
    // What it does is done there, and what was named from the old place is still that.
    seat.types("!pwd\r");
    seat.sees(&format!("{}", other.display()));
    seat.rests();
    seat.types("/permissions\r");
    seat.sees("mode: acceptEdits");
    seat.sees(&format!("{}/../temp", place.work().display()));
    // What was allowed for the old place alone is not allowed here.
    let home = format!("works in {}", place.home().canonicalize().unwrap().display());
    assert!(seat.rows().iter().all(|row| *row != home), "{}", seat.rows().join("\n"));
    // It is found there, and no longer here.
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    let files = transcripts(&place);
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(files[0].parent().unwrap().to_string_lossy().ends_with("-other"), "{files:?}");
    let mut there = place.pelton(["-p", "-c", "three"]);
    let ran = there.current_dir(&other).asks(&model).run();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(model.requests().last().unwrap().body["messages"].to_string().contains("\"two\""));
    let here = place.pelton(["-p", "-c", "three"]).asks(&model).run();
    assert!(here.code == Some(1) && here.err.contains("no session to continue"), "{}", here.err);
    model.assert_clean();
}

#[test]
fn what_waited_behind_a_move_is_named_and_not_lost_in_silence() {
    let place = Place::new();
    fs::create_dir(place.work().join("sub")).unwrap();
    let model = model(Script::new().reply([text("Working"), gate("go"), text(" on.")]));
    let mut seat = Seat::at(&place, &model, ["one"]);
    seat.sees("Working");
    seat.types("/cd sub\r");
    seat.sees("(/cd waits until this is done)");
    seat.types("/debug slow\r");
    seat.sees("(/debug waits until this is done)");
    seat.types("!touch made\r");
    seat.sees("your command waits");
    model.open("go");
    seat.sees("not done any more: /debug slow");
    seat.sees("not done any more: !touch made");
    seat.sees("/sub now");
    assert!(!place.has("made") && !place.has("sub/made"));
}

#[test]
fn a_question_about_a_directory_can_be_left_on_the_way_there() {
    let place = Place::new();
    fs::create_dir_all(place.work().join("inner/.claude")).unwrap();
    fs::create_dir(place.work().join("inner/.git")).unwrap();
    let allows = json!({"permissions": {"allow": ["Bash"]}});
    fs::write(place.work().join("inner/.claude/settings.json"), allows.to_string()).unwrap();
    let model = answering("", "Answered.");
    let mut seat = Seat::at(&place, &model, ["one"]);
    seat.sees("Answered.");
    seat.rests();
    seat.types("/cd inner\r");
    seat.sees("Trust it, and all that is in it");
    kill(Pid::from_raw(seat.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(seat.ends(), Some(143));
    seat.sees("go on with: pelton --resume");
}

#[test]
fn a_directory_is_asked_about_before_a_session_goes_there() {
    let place = Place::new();
    let other = place.work().join("inner");
    fs::create_dir_all(other.join(".claude")).unwrap();
    fs::create_dir(other.join(".git")).unwrap();
    let hook =
        json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}});
    fs::write(other.join(".claude/settings.json"), hook.to_string()).unwrap();
    for (answer, runs) in [("\r", false), ("\u{1b}[B\r", true)] {
        let model = model(Script::new().step(Step::reply([text("Answered.")]).always()));
        let mut seat = Seat::at(&place, &model, ["one"]);
        seat.sees("Answered.");
        seat.rests();
        // What is typed ahead answers nothing.
        seat.types("/cd inner\r\u{1b}[B\r");
        seat.sees("Trust it, and all that is in it");
        seat.sees("touch ran");
        std::thread::sleep(std::time::Duration::from_millis(600));
        assert!(!seat.screen().contains("/inner now"), "{}", seat.screen());
        // It is a question with two answers, and no list to look through.
        assert!(!seat.screen().contains("type to find"), "{}", seat.screen());
        seat.types(answer);
        seat.sees("/inner now");
        seat.types("two\r");
        seat.until("it is asked there", |_| model.requests().len() == 2);
        seat.rests();
        assert_eq!(other.join("ran").exists(), runs, "{answer:?}");
    }
}

/// What there is to say when a session opens again is said in it, and nothing is written past it.
#[test]
fn warnings_of_a_session_that_opens_again_stand_in_it() {
    let place = Place::new();
    fs::create_dir_all(place.work().join("broken/.claude")).unwrap();
    fs::write(place.work().join("broken/.claude/settings.json"), "{ broken").unwrap();
    let model = answering("", "Answered.");
    // Both would come out on the terminal; apart one sees who wrote what.
    let mut command = place.shell("exec \"$PELTON\" one 2>past");
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("Answered.");
    seat.rests();
    for (line, said, count) in [("/cd broken\r", "/broken now", 1), ("/branch\r", "this is a branch now", 2)]
    {
        seat.types(line);
        seat.sees(said);
        // What came first may be above the screen by now.
        let told = |seat: &Seat, words: &str| seat.rows().iter().filter(|row| row.contains(words)).count();
        seat.until("it is warned", |seat| told(seat, "warning: ") == count);
        seat.types("more\r");
        seat.until("it goes on", |seat| told(seat, "Answered.") > count);
        seat.rests();
        assert_eq!(told(&seat, "warning: "), count, "{line}: {}", seat.rows().join("\n"));
        assert_eq!(place.read("past"), "", "{line}");
    }
}

/// Where the directory of a session is gone, or is called something else, the session can be taken elsewhere, and keeps its name.
#[test]
fn a_session_leaves_a_directory_that_is_gone() {
    for renamed in [false, true] {
        let place = Place::new();
        let model = answering("", "Answered.");
        let (there, other) = (place.work().join("gone"), place.work().join("other"));
        fs::create_dir(&there).unwrap();
        fs::create_dir(&other).unwrap();
        let mut command = place.pelton(["one"]);
        command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8").current_dir(&there);
        let mut seat = Seat::with(command, 80, 24);
        seat.sees("Answered.");
        seat.rests();
        if renamed {
            fs::rename(&there, place.work().join("renamed")).unwrap();
        } else {
            fs::remove_dir(&there).unwrap();
            seat.types("/branch\r");
            seat.sees("is gone: /cd DIRECTORY goes on elsewhere");
            seat.types("/resume\r");
            seat.until("it is said again", |seat| seat.screen().matches("is gone: /cd").count() == 2);
        }
        seat.types("/cd ../other\r");
        seat.sees("/other now");
        seat.types("two\r");
        seat.until("it is asked there", |_| model.requests().len() == 2);
        seat.rests();
        seat.types("\u{4}");
        assert_eq!(seat.ends(), Some(0), "{renamed}");
        seat.sees("go on with: pelton --resume");
        let files = transcripts(&place);
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(files[0].parent().unwrap().to_string_lossy().ends_with("-other"), "{files:?}");
    }
}

/// A session that cannot be opened takes the name of the one that was left away from nobody.
#[test]
fn the_session_that_was_left_is_named_if_another_cannot_be_opened() {
    let place = Place::new();
    let model = answering("", "Answered.");
    let other = "7c1b7a54-6f6e-4a3a-9b62-0d2f4f0d1c11";
    place.pelton(["-p", "one", "--session-id", other]).asks(&model).run().well();
    let own = "7c1b7a54-6f6e-4a3a-9b62-0d2f4f0d1c12";
    for (line, words) in [
        ("/branch\r", ["--session-id", own]),
        (&*format!("/resume {other}\r"), ["--resume", own]),
        ("/cd sub\r", ["--resume", own]),
    ] {
        fs::create_dir_all(place.work().join("sub")).unwrap();
        let settings = place.put("settings.json", "{}");
        let words = ["--settings", "settings.json"].into_iter().chain(words).chain(["--", "one"]);
        let mut seat = Seat::at(&place, &model, words);
        seat.sees("> one");
        seat.sees("Answered.");
        seat.rests();
        fs::remove_file(settings).unwrap();
        seat.types(line);
        assert_eq!(seat.ends(), Some(1), "{line}");
        seat.sees("settings.json");
        seat.sees(&format!("go on with: pelton --resume {own}"));
        let rows = seat.rows();
        let last = rows.iter().rev().find(|row| !row.is_empty()).unwrap();
        assert!(last.starts_with("go on with: "), "told where nobody holds the terminal: {rows:#?}");
    }
}

/// Where no instructions are read, nobody is asked whether they may import others.
#[test]
fn nobody_is_asked_on_the_way_about_instructions_that_are_not_read() {
    for (switch, is_asked) in [("--bare", false), ("--safe-mode", false), ("--verbose", true)] {
        let place = Place::new();
        let outside = place.home().join("beside.md");
        fs::write(&outside, "Be brief.").unwrap();
        fs::create_dir_all(place.work().join("inner/.git")).unwrap();
        place.put("inner/CLAUDE.md", &format!("Read this: @{}", outside.display()));
        let model = answering("", "Answered.");
        let mut seat = Seat::at(&place, &model, [switch]);
        seat.sees("asks before changes");
        seat.types("/cd inner\r");
        match is_asked {
            true => seat.sees("The model reads them"),
            false => seat.sees("/inner now"),
        }
        let asks = seat.rows().iter().any(|row| row.contains("import others"));
        assert_eq!(asks, is_asked, "{switch}: {}", seat.screen());
    }
}

#[test]
fn lines_that_were_typed_ahead_trust_no_directory() {
    let place = Place::new();
    fs::create_dir_all(place.work().join("inner/.claude")).unwrap();
    fs::create_dir(place.work().join("inner/.git")).unwrap();
    let allows = json!({"permissions": {"allow": ["Bash(make *)"]}});
    fs::write(place.work().join("inner/.claude/settings.json"), allows.to_string()).unwrap();
    let model = answering("", "Answered.");
    let mut seat = Seat::at(&place, &model, ["--plain"]);
    seat.sees("> ");
    seat.types("/cd inner\n2\n2\n");
    seat.sees("0: no");
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert!(!seat.screen().contains("/inner now"), "{}", seat.screen());
    seat.types("1\n");
    seat.sees("/inner now");
    seat.types("/permissions\n");
    seat.sees("mode: default");
    seat.sees("works in");
    assert!(!seat.screen().contains("allow: Bash"), "{}", seat.screen());
}

#[test]
fn directories_are_offered_to_whoever_types_where_to_go() {
    let place = Place::new();
    fs::create_dir_all(place.work().join("crates/inner")).unwrap();
    place.put("crates.md", "");
    let model = answering("", "Well.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    seat.types("/cd cr");
    seat.sees("› crates/");
    assert!(!seat.screen().contains("crates.md"), "{}", seat.screen());
    seat.types("\t");
    seat.sees("› crates/inner/");
    seat.types("\r");
    seat.sees(&format!("{} now", place.work().join("crates").display()));
}

#[test]
fn a_session_without_a_name_is_given_one_by_the_model() {
    let place = Place::new();
    let model = answering("Counting the jars\nand more", "Three.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    seat.types("/rename\r");
    seat.sees("nothing was said yet");
    seat.types("How many jars?\r");
    seat.sees("Three.");
    seat.rests();
    seat.types("/rename\r");
    seat.sees("this session is called Counting the jars now");
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    let ran = place.pelton(["-p", "--resume", "Counting the jars", "And now?"]).asks(&model).run();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(model.requests().last().unwrap().body["messages"].to_string().contains("How many jars?"));
}

#[test]
fn a_rule_keeps_a_session_out_of_a_directory() {
    let place = Place::new();
    fs::create_dir(place.work().join("secret")).unwrap();
    fs::create_dir(place.work().join("open")).unwrap();
    let rules = json!({"permissions": {"deny": ["Cd(*/secret)"]}});
    fs::write(place.config().join("settings.json"), rules.to_string()).unwrap();
    let model = answering("", "Well.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    seat.types("/cd secret\r");
    seat.sees("a rule denies it: Cd(*/secret)");
    // Where nothing was said yet a session begins there.
    seat.types("/cd open\r");
    seat.sees("/open now");
    seat.types("hello\r");
    seat.sees("Well.");
    assert!(transcripts(&place)[0].parent().unwrap().to_string_lossy().ends_with("-open"));
}

#[test]
fn a_log_is_written_from_when_it_is_wanted_and_the_model_reads_it_unasked() {
    let place = Place::new();
    let log = || {
        let file = fs::read_dir(place.config().join("debug")).ok()?.flatten().next()?;
        Some(file.path())
    };
    let is_read = When::any().last_tool_result("the model is asked");
    let script = Script::new()
        .reply([text("Well.")])
        .step(Step::reply([text("I read it.")]).when(is_read))
        .reply([tool("Read", json!({"file_path": "${file}"}))])
        .step(Step::reply([text("On it.")]).always());
    let session = "7c1b7a54-6f6e-4a3a-9b62-0d2f4f0d1c11";
    let file = place.config().join(format!("debug/{session}.txt"));
    let model = model(script.var("file", file.to_string_lossy()));
    let mut seat = Seat::at(&place, &model, ["--session-id", session, "--", "one"]);
    seat.sees("Well.");
    seat.rests();
    assert_eq!(log(), None, "nobody has asked for it");
    seat.types("/debug it is slow\r");
    seat.sees("what happens is noted in");
    seat.sees("I read it.");
    let asked = model.requests()[1].body["messages"].to_string();
    assert!(asked.contains("it is slow") && asked.contains(&*file.to_string_lossy()), "{asked}");
    assert!(asked.contains("switched on just now"), "{asked}");
    assert_eq!(log(), Some(file.clone()));
    // Whoever asks again is not told that it was there from the start; and it goes on where the session does.
    seat.rests();
    seat.types("/debug still\r");
    seat.until("it is asked again", |_| model.requests().len() == 4);
    let asked = model.requests()[3].body["messages"].to_string();
    assert!(
        asked.contains("switched on in the middle of this session") && !asked.contains("from the start."),
        "{asked}"
    );
    seat.rests();
    seat.types("/branch\r");
    seat.sees("this is a branch now");
    seat.types("on\r");
    seat.until("the branch is asked", |_| model.requests().len() == 5);
    seat.until("it is noted, too", |_| {
        let logs = fs::read_dir(file.parent().unwrap()).unwrap().flatten();
        logs.filter(|log| log.path() != file)
            .any(|log| fs::read_to_string(log.path()).unwrap().contains("[api]"))
    });
    let words = fs::read_to_string(&file).unwrap();
    assert!(words.contains("[api]") && !words.contains("it is slow"), "{words}");
    model.assert_clean();
}
