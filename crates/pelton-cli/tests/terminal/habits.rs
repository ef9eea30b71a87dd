//! What people bring along from elsewhere: a way to edit, colours, and commands that they type without thinking.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use pelton_testkit::{Script, ScriptedModel, Step, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

fn always(words: &str) -> ScriptedModel {
    model(Script::new().step(Step::reply([text(words)]).always()))
}

/// The user's own settings.
fn settings(place: &Place) -> Value {
    let text = std::fs::read_to_string(place.config().join("settings.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// What the model was asked last.
fn asked(model: &ScriptedModel) -> String {
    model.requests().last().unwrap().body["messages"].to_string()
}

/// Programs of this name, and nothing else, in the place of what the machine has.
fn programs(place: &Place, name: &str, script: &str) -> PathBuf {
    let dir = place.temp().join("bin");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(name), script).unwrap();
    std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[test]
fn whoever_edits_as_in_vi_can() {
    let place = Place::new();
    // A status line of one's own is told what letters mean, too.
    let line = r#"sed 's/.*"vim":{"mode":"\([A-Z]*\)".*/letters: \1/'"#;
    let with = json!({"editorMode": "vim", "statusLine": {"type": "command", "command": line}});
    std::fs::write(place.config().join("settings.json"), with.to_string()).unwrap();
    place.put("known.txt", "");
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("letters: INSERT");
    seat.types("one two three");
    seat.sees("> one two three");
    // The first Esc makes letters commands, and neither asks to clear nor to go back.
    seat.types("\u{1b}");
    seat.sees("letters: NORMAL");
    seat.types("0wcw2\u{1b}");
    seat.sees("> one 2 three");
    seat.types("u");
    seat.sees("> one two three");
    seat.types("0dw$p");
    seat.sees("> two threeone");
    assert!(!seat.screen().contains("Esc again"), "{}", seat.screen());
    seat.types("\r");
    seat.sees("Well.");
    assert!(asked(&model).contains("two threeone"), "{}", asked(&model));
    // What comes next is written, and completed as ever.
    seat.sees("INSERT");
    seat.types("@kno");
    seat.sees("› known.txt");
    seat.types("\u{1b}");
    seat.sees_no_more("› known.txt");
    // An Esc and what follows it may come as one: that is how Alt is sent.
    seat.types("\u{1b}dd");
    seat.sees_no_more("@kno");
    // Where there is nothing to command, Esc is what it always is.
    seat.types("i");
    seat.sees("INSERT");
    seat.types("\u{1b}");
    seat.sees("Esc again to go back");
    seat.types("/vim-mode\r");
    seat.sees("editorMode is normal from now on");
    seat.sees_no_more("letters: INSERT");
    assert_eq!(settings(&place)["editorMode"], "normal");
    seat.types("dd");
    seat.sees("> dd");
}

#[test]
fn in_the_middle_of_work_esc_first_leaves_what_is_written() {
    let place = Place::new();
    std::fs::write(place.config().join("settings.json"), r#"{"editorMode": "vim"}"#).unwrap();
    let sleeps = tool("Bash", json!({"command": "sleep 60", "description": "Sleep"}));
    let model = model(Script::new().reply([sleeps]).step(Step::reply([text("Later.")]).always()));
    let mut seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("Running sleep 60");
    seat.types("half");
    seat.sees("> half");
    seat.types("\u{1b}");
    seat.sees("NORMAL");
    assert!(seat.screen().contains("Running sleep 60 …"), "{}", seat.screen());
    seat.types("\u{1b}");
    seat.sees("interrupted");
    seat.sees("> half");
}

#[test]
fn colours_are_changed_at_once_and_kept() {
    let place = Place::new();
    let model = always("It is `code`.");
    let mut command = place.pelton(["hello"]);
    command.asks(&model).env("TERM", "xterm").env("COLORTERM", "truecolor").env("LANG", "C.UTF-8");
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("It is code.");
    seat.rests();
    let colour = |seat: &Seat| {
        let shown = String::from_utf8(seat.bytes()).unwrap();
        let (before, _) = shown.rsplit_once("code\u{1b}").unwrap();
        before.rsplit_once('\u{1b}').unwrap().1.to_owned()
    };
    let dark = colour(&seat);
    seat.types("/theme\r");
    seat.sees("Which colours?");
    seat.types("light-dal");
    seat.sees("1 of ");
    seat.types("\r");
    seat.sees("theme is light-daltonized from now on");
    assert_eq!(settings(&place)["theme"], "light-daltonized");
    seat.types("again\r");
    seat.until("the answer is there", |seat| {
        seat.screen().matches("It is code.").count() == 2 && seat.screen().contains("> again")
    });
    seat.rests();
    assert_ne!(colour(&seat), dark);
    seat.types("/theme pink\r");
    seat.sees("there is no theme 'pink'");
    assert_eq!(settings(&place)["theme"], "light-daltonized");
}

#[test]
fn settings_are_changed_by_their_names_if_they_mean_something() {
    let place = Place::new();
    std::fs::write(place.config().join("settings.json"), "{\n  // mine\n  \"model\": \"opus\"\n}\n").unwrap();
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("/config permissions.defaultMode=plan\r");
    seat.sees("permissions.defaultMode is plan in your settings");
    seat.types("/config editorMode=vim\r");
    seat.sees("INSERT");
    seat.types("/config modle=opus\r");
    seat.sees("modle");
    seat.types("/config theme\r");
    seat.sees("/config KEY=VALUE");
    seat.types("/config permissions={\"defaultMode\":\"default\"}\r");
    seat.sees("permissions: a group is not written whole");
    let text = std::fs::read_to_string(place.config().join("settings.json")).unwrap();
    assert!(text.contains("// mine") && text.contains("\"defaultMode\": \"plan\""), "{text}");
    assert!(text.contains("\"editorMode\": \"vim\"") && !text.contains("modle"), "{text}");
}

#[test]
fn a_way_to_answer_is_chosen_for_the_sessions_to_come() {
    let place = Place::new();
    place.put(
        ".claude/output-styles/rhymes.md",
        "---\nname: Rhymes\ndescription: x\n---\nAnswer in rhymes.\n",
    );
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("/output-style\r");
    seat.sees("Which way to answer?");
    seat.sees("Explanatory");
    seat.types("rhy\r");
    seat.sees("outputStyle is Rhymes in sessions that begin here from now on");
    let local: Value = serde_json::from_str(&place.read(".claude/settings.local.json")).unwrap();
    assert_eq!(local["outputStyle"], "Rhymes");
    seat.types("/output-style prose\r");
    seat.sees("there is no style 'prose'");
}

#[test]
fn the_answer_goes_into_the_clipboard() {
    let place = Place::new();
    let file = place.temp().join("clipboard");
    let bin = programs(&place, "wl-copy", &format!("#!/bin/sh\nexec /bin/cat > '{}'\n", file.display()));
    let script = Script::new()
        .reply([text("Looking."), tool("Bash", json!({"command": "true", "description": "x"}))])
        .reply([text("The *first*, ü.")])
        .reply([text("The second.")]);
    let model = model(script);
    let mut command = place.pelton(["--allowedTools", "Bash", "--", "go"]);
    command.asks(&model).env("TERM", "xterm").env("LANG", "C.UTF-8").env("PATH", &bin);
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("The first, ü.");
    seat.rests();
    seat.types("/copy\r");
    seat.sees("15 characters are in the clipboard (wl-copy)");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "The *first*, ü.");
    seat.types("more\r");
    seat.sees("The second.");
    seat.rests();
    seat.types("/copy 2\r");
    seat.until("the one before is copied", |seat| {
        seat.screen().matches("15 characters are in the clipboard").count() == 2
    });
    seat.types("/copy 3\r");
    seat.sees("there is no such answer");
    // Where there is no such program, the terminal is asked, in letters that nothing else can be made of.
    std::fs::remove_file(bin.join("wl-copy")).unwrap();
    seat.types("/copy\r");
    seat.sees("11 characters were handed to your terminal");
    let told = "\u{1b}]52;c;VGhlIHNlY29uZC4=\u{7}";
    let shown = String::from_utf8(seat.bytes()).unwrap();
    assert_eq!(shown.matches("\u{1b}]52").count(), 1);
    assert!(shown.contains(told));
}

#[test]
fn what_is_not_committed_is_told_as_diffs() {
    let place = Place::new();
    let git = |words: &[&str]| git(&place, words);
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("/diff\r");
    seat.sees("not a git repository");
    git(&["init", "-q"]);
    place.put("a.txt", "one\ntwo\n");
    seat.types("/diff\r");
    seat.sees("a.txt · new, and not known to git");
    git(&["add", "a.txt"]);
    git(&["commit", "-q", "-m", "x"]);
    seat.types("/clear\r/diff\r");
    seat.sees("nothing was changed since the last commit");
    place.put("a.txt", "one\n2\u{1b}[2J\n");
    place.put("b c.txt", "new\n");
    git(&["add", "b c.txt"]);
    // What is configured for diffs is not run.
    let ran = place.temp().join("ran");
    git(&["config", "diff.external", &format!("touch {}", ran.display())]);
    seat.types("/diff\r");
    seat.sees("a.txt · +1 −1");
    seat.sees("2 + 2‹U+001B›[2J");
    seat.sees("b c.txt · new · +1 −0");
    seat.types("/diff b*\r");
    seat.until("only one is told", |seat| {
        let screen = seat.screen();
        screen
            .split("> /diff b*")
            .nth(1)
            .is_some_and(|told| told.contains("b c.txt") && !told.contains("a.txt"))
    });
    assert!(!ran.exists());
    assert!(model.requests().is_empty());
}

/// What git says in a directory of the place.
fn git(place: &Place, words: &[&str]) {
    let identity = ["-c", "user.name=x", "-c", "user.email=x@y"];
    let done = Command::new("git").args(identity).args(words).current_dir(place.work()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn more_than_is_read_of_what_is_not_committed_is_told_to_be_more() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    place.put("large.txt", &"a line of sixteen\n".repeat(6 * 1024 * 1024 / 18));
    git(&place, &["add", "."]);
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("/diff\r");
    seat.sees("… more than 4 MB: `git diff` has the rest");
    assert!(seat.rows().iter().any(|row| row.contains("large.txt · new")), "{:?}", seat.rows());
}

#[test]
fn what_is_not_committed_is_told_whole_from_wherever_it_is_asked() {
    let place = Place::new();
    git(&place, &["init", "-q", "--object-format=sha256"]);
    git(&place, &["config", "diff.relative", "true"]);
    for name in ["staged.txt", "new.txt", "below/new.txt"] {
        place.put(name, "one\n");
    }
    git(&place, &["add", "staged.txt"]);
    let model = always("Well.");
    let mut command = place.pelton([]);
    command.asks(&model).env("TERM", "xterm").env("LANG", "C.UTF-8").current_dir(place.work().join("below"));
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("> ");
    // Nothing is committed, and this repository counts otherwise.
    seat.types("/diff\r");
    seat.sees("staged.txt · new · +1 −0");
    let is_told = |seat: &Seat, row: &str| seat.rows().iter().any(|told| told == row);
    for name in ["new.txt", "below/new.txt"] {
        seat.until(name, |seat| is_told(seat, &format!("{name} · new, and not known to git")));
    }
}

#[test]
fn what_was_chosen_goes_along_into_a_branch() {
    let place = Place::new();
    let model = always("Answered.");
    let mut seat = Seat::at(&place, &model, ["--model", "sonnet", "--max-budget-usd", "5", "--", "one"]);
    seat.sees("Answered.");
    seat.rests();
    seat.types("/model claude-opus-4-5\r");
    seat.types("\u{1b}[Z\u{1b}[Z");
    seat.types("/status\r");
    seat.sees("model claude-opus-4-5 · mode plan");
    seat.types("/branch\r");
    seat.sees("this is a branch now");
    seat.types("/status\r");
    seat.until("it says the same there", |seat| {
        seat.rows().iter().filter(|row| row.starts_with("model claude-opus-4-5 · mode plan")).count() == 2
    });
    // What was spent before counts, and is told.
    let spent = |seat: &Seat| {
        let screen = seat.screen();
        let line = screen.lines().rev().find(|row| row.contains(" of $5.00")).unwrap_or_default().to_owned();
        line.split('$')
            .nth(1)
            .and_then(|told| told.split(' ').next()?.parse::<f64>().ok())
            .unwrap_or_default()
    };
    let before = spent(&seat);
    assert!(before > 0.0, "{}", seat.screen());
    seat.types("/cost\r");
    seat.sees("of it before the session was gone on with here");
    seat.types("two\r");
    seat.until("the branch is asked", |_| model.requests().len() == 2);
    assert_eq!(model.requests()[1].body["model"], "claude-opus-4-5");
    seat.until("both are told", |seat| spent(seat) > before);
}

#[test]
fn what_was_set_for_the_session_goes_along_into_a_branch_and_no_further() {
    let place = Place::new();
    let model = always("Answered.");
    let mut seat = Seat::at(&place, &model, ["--effort", "low", "--", "one"]);
    seat.sees("Answered.");
    seat.rests();
    seat.types("/effort max\r");
    seat.sees("effort is max");
    seat.types("/add-dir ../temp\r");
    seat.sees("The session works in");
    seat.rests();
    seat.types("/branch\r");
    seat.sees("this is a branch now");
    let temp = format!("works in {}", place.temp().canonicalize().unwrap().display());
    let told = |seat: &Seat| seat.rows().join("").matches(&temp).count();
    let before = told(&seat);
    seat.types("/permissions\r");
    seat.until("it works there, too", |seat| told(seat) == before + 1);
    seat.types("two\r");
    seat.until("the branch is asked", |_| model.requests().len() == 2);
    assert_eq!(model.requests()[1].body["output_config"]["effort"], "max");
    seat.rests();
    // Another session knows nothing of it.
    seat.types("/resume\r");
    seat.sees("Go on with");
    seat.types("\r");
    seat.sees_no_more("Go on with");
    seat.types("/effort\r");
    seat.sees("effort is low");
    seat.types("/permissions\r");
    seat.sees("mode: default");
    assert_eq!(told(&seat), before + 1, "{}", seat.rows().join("\n"));
}

#[test]
fn a_setting_that_does_not_count_here_is_said_to() {
    let place = Place::new();
    place.put(
        ".claude/settings.json",
        "{\n  // ours\n  \"theme\": \"dark\", \"outputStyle\": \"Concise\",\n}",
    );
    let model = always("It is `code`.");
    let mut command = place.pelton(["--settings", r#"{"language": "French", "outputStyle": "Learning"}"#]);
    command.asks(&model).env("TERM", "xterm").env("COLORTERM", "truecolor").env("LANG", "C.UTF-8");
    let mut seat = Seat::with(command, 100, 24);
    seat.sees("asks before changes");
    let before = seat.bytes().len();
    seat.types("/theme light\r");
    seat.sees("theme is light in your settings, but it does not count here: the project");
    assert_eq!(settings(&place)["theme"], "light");
    // So nothing looks different.
    seat.types("hello\r");
    seat.sees("It is code.");
    let shown = String::from_utf8_lossy(&seat.bytes()[before..]).into_owned();
    let mut dark = place.pelton(["hello"]);
    std::fs::remove_file(place.config().join("settings.json")).unwrap();
    dark.asks(&model).env("TERM", "xterm").env("COLORTERM", "truecolor").env("LANG", "C.UTF-8");
    let other = Seat::with(dark, 100, 24);
    other.sees("It is code.");
    let code = |shown: &str| shown.split("code").next().unwrap().rsplit('\u{1b}').next().unwrap().to_owned();
    let of_other = String::from_utf8_lossy(&other.bytes()).into_owned();
    let (one, two) = (shown.split("It is ").nth(1).unwrap(), of_other.split("It is ").nth(1).unwrap());
    assert_eq!(code(one), code(two));
    seat.types("/config language=German\r");
    seat.sees("language is German in your settings, but it does not count here: --settings says French");
    seat.types("/output-style Explanatory\r");
    seat.sees("outputStyle is Explanatory in your settings, but it does not count here: --settings says");
    seat.types("/config editorMode=vim\r");
    seat.sees("editorMode is vim from now on");
}

#[test]
fn what_waits_takes_no_list_away_that_somebody_looks_at() {
    let place = Place::new();
    let model = model(Script::new().reply([text("Slow"), gate("go")]).reply([text("Later.")]));
    let mut seat = Seat::at(&place, &model, ["one"]);
    seat.sees("Slow");
    seat.types("/theme\r");
    seat.sees("(/theme waits until this is done)");
    seat.types("/output-style\r");
    seat.sees("Which way to answer?");
    model.open("go");
    seat.rests();
    seat.types("xpl");
    seat.sees("1 of ");
    assert!(!seat.screen().contains("Which colours?"), "{}", seat.screen());
    seat.types("\u{1b}");
    seat.sees("Which colours?");
}

#[test]
fn a_conversation_goes_on_in_a_branch_and_the_other_stays() {
    let place = Place::new();
    let model = always("Answered.");
    let mut seat = Seat::at(&place, &model, ["--name", "Trunk", "first words"]);
    seat.sees("Answered.");
    seat.rests();
    seat.types("/status\r");
    let id_of = |seat: &Seat| {
        let rows = seat.rows();
        rows.iter().rev().find_map(|row| row.strip_prefix("session ").map(str::to_owned))
    };
    seat.until("the session is named", |seat| id_of(seat).is_some());
    let trunk = id_of(&seat).unwrap();
    seat.types("/branch Twig\r");
    seat.sees(&format!("/resume {trunk}"));
    let told = seat.rows().iter().filter(|row| row.contains("first words")).count();
    assert_eq!(told, 1, "what stands there already is not told again");
    seat.types("second words\r");
    seat.until("the branch is asked", |_| model.requests().len() == 2);
    assert!(asked(&model).contains("first words"), "{}", asked(&model));
    seat.rests();
    seat.types("/status\r");
    seat.until("it is another session", |seat| id_of(seat).as_ref() != Some(&trunk));
    seat.types(&format!("/resume {trunk}\r"));
    seat.until("it is the first again", |seat| {
        seat.rows().iter().filter(|row| row.contains("> first words")).count() == 2
    });
    seat.types("third words\r");
    seat.until("the first goes on", |_| model.requests().len() == 3);
    assert!(!asked(&model).contains("second words"), "{}", asked(&model));
    seat.rests();
    // Each keeps its name.
    seat.types("/resume\r");
    seat.sees("Twig");
    seat.types("\u{1b}");
    seat.sees_no_more("Twig");
    let told = place.pelton(["sessions", "list"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("Trunk") && told.contains("Twig"), "{told}");
}

#[test]
fn what_is_being_written_when_a_branch_begins_is_written_there() {
    let place = Place::new();
    let model = model(
        Script::new().reply([text("First.")]).reply([text("Slow"), gate("go")]).reply([text("Later.")]),
    );
    let mut seat = Seat::at(&place, &model, ["one"]);
    seat.sees("First.");
    seat.rests();
    seat.types("two\r");
    seat.sees("Slow");
    seat.types("/branch\r");
    seat.sees("(/branch waits until this is done)");
    seat.types("half a tho");
    seat.sees("> half a tho");
    model.open("go");
    seat.sees("this is a branch now");
    seat.sees("> half a tho");
    seat.types("ught\r");
    seat.sees("Later.");
    assert!(asked(&model).contains("half a thought"), "{}", asked(&model));
}

#[test]
fn what_came_meanwhile_is_found_when_it_is_looked_for() {
    let place = Place::new();
    let model = always("Done.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("/reload-skills\r");
    seat.sees("0 skills found");
    let skill = place.config().join("skills/sweep");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: sweep\ndescription: Sweeps\n---\nSweep.\n").unwrap();
    seat.types("/reload-skills\r");
    seat.sees("1 skill found");
    seat.types("/swee");
    seat.sees("› /sweep");
    seat.types("\u{15}/reload-plugins\r");
    seat.sees("0 plugins found");
    seat.types("/plugin\r");
    seat.sees("> /plugin");
    assert!(model.requests().is_empty());
    for name in ["/review", "/code-review"] {
        let before = model.requests().len();
        seat.types(&format!("{name} main\r"));
        seat.until(&format!("{name} is asked"), |_| model.requests().len() > before);
        let last = asked(&model);
        let prompt = last.rsplit("\"role\":\"user\"").next().unwrap_or_default();
        assert!(last.contains("What the user adds: main") && !prompt.contains("Unknown"), "{last}");
        seat.rests();
    }
    seat.types("/statusline the time\r");
    seat.sees("> /statusline the time");
    seat.until("it is asked", |_| asked(&model).contains("Set up a status line"));
    assert!(asked(&model).contains("What it should show: the time"), "{}", asked(&model));
}
