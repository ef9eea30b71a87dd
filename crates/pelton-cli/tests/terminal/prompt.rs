//! The prompt as people write it: what is seen, where the caret is, and what the model reads in the end.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pelton_testkit::{Script, Step, text};
use serde_json::json;

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

fn always() -> pelton_testkit::ScriptedModel {
    model(Script::new().step(Step::reply([text("Read.")]).always()))
}

/// The words of the newest prompt that the model was asked.
fn asked(model: &pelton_testkit::ScriptedModel) -> String {
    let requests = model.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let last = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    match last["content"].as_array() {
        Some(blocks) => blocks.last().unwrap()["text"].as_str().unwrap().to_owned(),
        None => last["content"].as_str().unwrap().to_owned(),
    }
}

pub fn pasted(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

#[test]
fn pit_U2_a_megabyte_that_is_pasted_arrives_whole() {
    let (place, model) = (Place::new(), always());
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    // Terminals send a return for each line end.
    let line = "All of this has to arrive: äöü 日本語 👩\u{200d}👧";
    let lines = 1_048_576 / line.len() + 1;
    seat.types("see ");
    seat.types(&pasted(&format!("{line}\r").repeat(lines)));
    seat.sees(&format!("> see [Pasted text #1 +{lines} lines]"));
    seat.types(" please\r");
    seat.sees("Read.");
    assert_eq!(asked(&model), format!("see {} please", format!("{line}\n").repeat(lines)));
}

#[test]
fn pit_U2_the_cursor_is_where_an_input_method_must_show_its_choices() {
    let (place, model) = (Place::new(), always());
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    let column = |seat: &Seat| seat.cursor().1;
    for (typed, seen, at) in [
        ("日本", "> 日本", 6),
        ("語", "> 日本語", 8),
        ("\u{1b}[D", "> 日本語", 6),
        ("x", "> 日本x語", 7),
        ("\u{1}", "> 日本x語", 2),
    ] {
        seat.types(typed);
        seat.until(&format!("{seen:?} with the cursor at {at}"), |seat| {
            seat.screen().contains(seen) && column(seat) == at
        });
    }
    // The row is that of the prompt, and the cursor is shown there.
    let (row, _) = seat.cursor();
    let screen = seat.screen();
    assert!(
        screen.lines().nth(usize::from(row)).is_some_and(|line| line.starts_with("> 日本x語")),
        "{screen}"
    );
}

#[test]
fn prompts_are_edited_with_the_keys_people_know() {
    let (place, model) = (Place::new(), always());
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    // Two lines, a word cut and put back elsewhere, and one edit undone.
    seat.types("first\\\rsecond line");
    seat.sees("  second line");
    seat.types("\u{17}");
    seat.types("\u{1}\u{19}, ");
    seat.sees("  line, second");
    seat.types("\u{5}!\u{1f}");
    seat.types("\r");
    seat.sees("Read.");
    assert_eq!(asked(&model), "first\nline, second ");
    seat.rests();
    // Up brings it back, whole; Ctrl-R finds it by a word.
    seat.types("another\r");
    seat.until("it is asked", |_| model.requests().len() >= 2 && asked(&model) == "another");
    seat.rests();
    seat.types("\u{12}lin");
    seat.sees("looking for: lin");
    seat.types("\r\r");
    seat.until("it is asked again", |_| asked(&model).starts_with("first\nline"));
}

#[test]
fn files_and_commands_are_offered_while_they_are_typed() {
    let (place, model) = (Place::new(), always());
    place.put("src/engine/handler.rs", "fn handle() {}\n");
    place.put("build/handler.o", "");
    place.put(".gitignore", "build\n");
    place.put(".claude/commands/ship.md", "---\ndescription: Makes a release\n---\nShip it.\n");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("see @hand");
    seat.sees("› src/engine/handler.rs");
    assert!(!seat.screen().contains("handler.o"));
    // Tab puts it in; the rest is written behind it.
    seat.types("\t");
    seat.sees("> see @src/engine/handler.rs");
    seat.types("please\r");
    seat.sees("Read.");
    let told = model.requests().last().unwrap().body.to_string();
    assert!(told.contains("see @src/engine/handler.rs please") && told.contains("fn handle()"), "{told}");
    seat.rests();
    // Commands: the terminal's own, the engine's and the user's, by name or by what they do.
    seat.types("/");
    seat.sees("› /");
    seat.types("shi");
    seat.sees("› /ship  Makes a release");
    // Esc leaves what is offered, not what is written.
    seat.types("\u{1b}");
    seat.sees_no_more("Makes a release");
    assert!(seat.screen().contains("> /shi"));
    seat.types("\u{15}/exi");
    seat.sees("› /exit");
    seat.types("\r");
    assert_eq!(seat.ends(), Some(0));
}

#[test]
fn a_program_of_ones_own_says_which_files_are_offered() {
    let (place, model) = (Place::new(), always());
    place.put("src/engine.rs", "fn engine() {}\n");
    // Told what was typed, it answers with what has those letters and with something that is no file of the project.
    let program = place.put(
        "suggest.sh",
        "query=$(sed 's/.*:\"\\(.*\\)\".*/\\1/'); printf '%s\\n' \"found-by-$query\" 'docs/a\u{1b}[31mb.md'\n",
    );
    let settings =
        json!({"fileSuggestion": {"type": "command", "command": format!("sh {}", program.display())}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("see @en");
    seat.sees("› found-by-en");
    seat.sees("  docs/ab.md");
    assert!(!seat.screen().contains("engine.rs"), "{}", seat.screen());
    seat.types("g");
    seat.sees("› found-by-eng");
    seat.types("\t");
    seat.sees("> see @found-by-eng");
    seat.types("\u{15}");
    // One that fails is told of, and what is typed stays.
    std::fs::write(&program, "sleep 60\n").unwrap();
    seat.types("@slow");
    seat.sees("did not end within");
    seat.sees("> @slow");
}

#[test]
fn what_git_ignores_is_offered_to_whoever_wants_it() {
    let (place, model) = (Place::new(), always());
    place.put("build/handler.o", "");
    place.put(".gitignore", "build\n");
    std::fs::write(place.config().join("settings.json"), r#"{"respectGitignore": false}"#).unwrap();
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("see @hand");
    seat.sees("› build/handler.o");
}

#[test]
fn an_editor_of_ones_own_gets_the_words_and_gives_them_back() {
    let (place, model) = (Place::new(), always());
    let editor = place.put("editor.sh", "cat \"$1\" > seen\nprintf 'written\\nelsewhere\\n' > \"$1\"\n");
    let mut command = place.pelton([]);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command.env("VISUAL", format!("sh {}", editor.display()));
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("> ");
    seat.types("half a tho\u{7}");
    seat.sees("> written");
    seat.sees("  elsewhere");
    assert_eq!(place.read("seen"), "half a tho");
    seat.types("\r");
    seat.sees("Read.");
    assert_eq!(asked(&model), "written\nelsewhere");
    assert!(
        std::fs::read_dir(place.temp())
            .unwrap()
            .flatten()
            .all(|file| !file.file_name().to_string_lossy().ends_with(".md"))
    );
}

/// The smallest picture there is: one dot.
const DOT: &str = "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de000\
                   0000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082";

pub fn dot() -> Vec<u8> {
    (0..DOT.len()).step_by(2).map(|at| u8::from_str_radix(&DOT[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn a_picture_comes_from_the_clipboard_by_whatever_program_knows_it() {
    let place = Place::new();
    let file = place.put("dot.png", "");
    std::fs::write(&file, dot()).unwrap();
    let shows = format!("/bin/cat '{}'", file.display());
    for (program, says) in [
        ("wl-paste", shows.clone()),
        // The first has none, the second does.
        ("xclip", shows),
        ("osascript", format!("echo '«data PNGf{DOT}»'")),
    ] {
        let model = always();
        // One that is there, and every one before it that knows of no picture.
        let bin = place.work().join(format!("bin-{program}"));
        std::fs::create_dir(&bin).unwrap();
        for name in ["wl-paste", "xclip", "pngpaste", "osascript"] {
            let script = if name == program { &*says } else { "echo 'no image' >&2; echo text; exit 1" };
            let path = bin.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut seat = at_desktop(&place, &model, &bin);
        seat.types("what is \u{16}");
        seat.sees("> what is [Image #1]");
        seat.types("\r");
        seat.sees("Read.");
        let requests = model.requests();
        let messages = requests[0].body["messages"].as_array().unwrap().iter();
        let blocks = messages.flat_map(|message| message["content"].as_array().unwrap());
        let pictures = blocks.filter(|block| block["type"] == "image");
        let sent: Vec<_> = pictures.map(|block| &block["source"]).collect();
        assert_eq!((sent.len(), &sent[0]["media_type"]), (1, &"image/png".into()), "{program}");
        std::fs::write(bin.join(program), "#!/bin/sh\nexit 1\n").unwrap();
        seat.types("\u{16}");
        seat.sees("there is no picture in the clipboard");
    }
    let model = always();
    let mut seat = at_desktop(&place, &model, &place.work().join("none"));
    seat.types("\u{16}");
    seat.sees("nothing here can read pictures from the clipboard");
}

/// A terminal of a desktop whose programs are there and nowhere else.
fn at_desktop(place: &Place, model: &pelton_testkit::ScriptedModel, bin: &Path) -> Seat {
    let mut command = place.pelton([]);
    command.asks(model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command.env("PATH", bin);
    let seat = Seat::with(command, 80, 24);
    seat.sees("> ");
    seat
}

#[test]
fn pictures_that_are_dropped_together_go_along_and_what_is_none_stays_a_path() {
    let (place, model) = (Place::new(), always());
    let paths: Vec<String> = ["one.png", "the other.png", "words.png"]
        .iter()
        .map(|name| place.work().join(name).display().to_string())
        .collect();
    for path in &paths[..2] {
        std::fs::write(path, dot()).unwrap();
    }
    std::fs::write(&paths[2], "no picture").unwrap();
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types(&pasted(&format!("{} '{}'", paths[0], paths[1])));
    seat.sees("> [Image #1] [Image #2]");
    seat.types(" and ");
    seat.types(&pasted(&paths[2]));
    seat.sees("words.png");
    seat.types("\r");
    seat.sees("Read.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(told.matches("\"type\":\"image\"").count(), 2, "{told}");
    assert!(told.contains("words.png"), "{told}");
}

#[test]
fn a_picture_goes_along_by_its_path() {
    let (place, model) = (Place::new(), always());
    let file = place.work().join("dot.png");
    std::fs::write(&file, dot()).unwrap();
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("what is ");
    seat.types(&pasted(file.to_str().unwrap()));
    seat.sees("> what is [Image #1]");
    seat.types("\r");
    seat.sees("Read.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("\"type\":\"image\"") && told.contains("image/png"), "{told}");
}
