//! How long people wait: for files behind an `@` in a very large project, for a key in a long prompt, for a paste of a megabyte, for the first
//! code and for a long answer. Prints what it measures and fails beyond what is promised; `--paths N` makes the project smaller.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pelton_tui::complete::{Files, Offered};
use pelton_tui::input::{Command, Editor};
use pelton_tui::markdown::Stream;
use pelton_tui::theme::{Surroundings, Theme, Wanted};
use pelton_tui::{highlight, markdown};

/// Files of the project that is made, unless told otherwise.
const PATHS: usize = 500_000;
const PATHS_PER_FOLDER: usize = 500;
/// What is promised: the first files behind an `@`, and each key once all are known.
const FIRST_FILES: Duration = Duration::from_millis(200);
const FILES_KEY: Duration = Duration::from_millis(50);
/// A paste of a megabyte, and a key in so long a prompt: what nobody notices.
const PASTE: Duration = Duration::from_millis(100);
const PROMPT_KEY: Duration = Duration::from_millis(20);

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--paths").skip(1);
    let paths = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(PATHS);
    let surroundings =
        Surroundings { term: Some("xterm"), colorterm: Some("truecolor"), ..Default::default() };
    let theme = Theme::new(surroundings, Wanted::default());
    let mut missed = Missed::default();
    prompt(&theme, &mut missed);
    answers(theme);
    files(paths, &mut missed);
    if !missed.0.is_empty() {
        eprintln!("beyond what is promised: {}", missed.0.join("; "));
        std::process::exit(1);
    }
}

/// Figures that are beyond what is promised.
#[derive(Default)]
struct Missed(Vec<String>);

impl Missed {
    /// Says what was measured.
    fn judge(&mut self, what: &str, took: Duration, promised: Duration) {
        println!("{what}: {} (at most {})", ms(took), ms(promised));
        if took > promised {
            self.0.push(what.trim().to_owned());
        }
    }
}

fn files(paths: usize, missed: &mut Missed) {
    let dir = tempfile::tempdir().expect("a folder for the project");
    make(dir.path(), paths);
    let began = Instant::now();
    let mut files = Files::walk(dir.path().to_owned(), Offered::NotIgnored);
    // As an application does: look again every few milliseconds until there is something.
    while files.typed("handler", 20).is_empty() && files.is_walking() {
        std::thread::sleep(Duration::from_millis(2));
    }
    missed.judge(&format!("@ in {paths} files: first results"), began.elapsed(), FIRST_FILES);
    while files.is_walking() {
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("  all {} paths after {}", files.count(), ms(began.elapsed()));
    files.typed("", 20);
    for word in ["s", "service_handler", "src/m12/test_e", "ee", "zzzz", "controller.ts"] {
        let mut slowest = Duration::ZERO;
        for end in word.char_indices().map(|(at, c)| at + c.len_utf8()) {
            let began = Instant::now();
            let found = files.typed(&word[..end], 20);
            slowest = slowest.max(began.elapsed());
            std::hint::black_box(found);
        }
        files.typed("", 20);
        let at_once = Instant::now();
        files.typed(word, 20);
        missed.judge(&format!("  `{word}`: slowest key"), slowest, FILES_KEY);
        missed.judge(&format!("  `{word}`: pasted"), at_once.elapsed(), FILES_KEY);
    }
}

fn make(root: &Path, paths: usize) {
    let kinds = ["service_handler", "user_controller", "test_engine", "model", "README", "index"];
    let endings = ["rs", "ts", "py", "md", "json"];
    for folder in 0..paths.div_ceil(PATHS_PER_FOLDER) {
        let path = root.join(format!("src/m{}/part_{folder}", folder % 40));
        fs::create_dir_all(&path).expect("a folder");
        for at in 0..PATHS_PER_FOLDER.min(paths - folder * PATHS_PER_FOLDER) {
            let name = format!("{}_{at}.{}", kinds[at % kinds.len()], endings[at % endings.len()]);
            fs::write(path.join(name), "").expect("a file");
        }
    }
}

fn prompt(theme: &Theme, missed: &mut Missed) {
    let line = "All of this has to arrive: äöü 日本語.\n";
    let paste = line.repeat(1_048_576 / line.len() + 1);
    let mut editor = Editor::default();
    let began = Instant::now();
    editor.paste(&paste);
    editor.view(80, 10, theme);
    missed.judge("paste of a megabyte", began.elapsed(), PASTE);
    assert_eq!(editor.submit().text, paste);

    // As long as it can get by typing: not folded.
    let mut editor = Editor::default();
    editor.set(&paste);
    let mut slowest = Duration::ZERO;
    for at in 0..200 {
        let began = Instant::now();
        editor.act(if at % 10 == 9 { Command::Up } else { Command::Insert('x') });
        editor.view(80, 10, theme);
        slowest = slowest.max(began.elapsed());
    }
    missed.judge("slowest of 200 keys in a prompt of a megabyte", slowest, PROMPT_KEY);
}

fn answers(theme: Theme) {
    let began = Instant::now();
    highlight::load();
    println!("grammars: {}", ms(began.elapsed()));
    let part = "## A part\n\nSome *words* with `code` and [links](https://a.example).\n\n- one\n- two\n\n```rust\nfn main() { let x = 1; }\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n";
    let text = part.repeat(400);
    let began = Instant::now();
    let whole = markdown::lines(&text, 80, theme).len();
    println!("an answer of {} KB, {whole} lines, at once: {}", text.len() / 1024, ms(began.elapsed()));
    let mut stream = Stream::new(80, theme);
    let (mut slowest, mut lines) = (Duration::ZERO, 0);
    for piece in text.as_bytes().chunks(12).map(String::from_utf8_lossy) {
        let began = Instant::now();
        lines += stream.push(&piece).len();
        stream.tail();
        slowest = slowest.max(began.elapsed());
    }
    lines += stream.finish().len();
    println!("the same in pieces, with its tail each time: slowest piece {}, {lines} lines", ms(slowest));
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1_000.0)
}
