//! Programs in other languages, given on the command line or as input: what they hand to the system.
//!
//! Nobody can say what a program does without running it. Its texts can be looked at: if the program knows a way to run others,
//! every text in it may be a command, and there may be more than those.

use crate::limits::CODE_TEXTS_MAX;
use crate::script::Command;
use crate::word::Word;

use super::{Further, inner, shell};

/// A language, and how its interpreter is told a program.
struct Language {
    /// Without the number of a version.
    names: &'static [&'static str],
    /// Letters of options whose value is a program. They may stand at the end of a cluster.
    letters: &'static str,
    /// Long options whose value is a program.
    long: &'static [&'static str],
    /// Letters of options whose value is something else.
    valued: &'static str,
    /// The letter among them that names a module to run.
    module: char,
    /// Backquotes hold commands, and a file may be one.
    backquotes: bool,
    /// Without a program and a file it reads its input.
    reads_input: bool,
}

const NONE: Language = Language {
    names: &[],
    letters: "",
    long: &[],
    valued: "",
    module: '\0',
    backquotes: false,
    reads_input: true,
};

const LANGUAGES: &[Language] = &[
    Language {
        names: &["python", "pypy", "ipython", "bpython"],
        letters: "c",
        valued: "WXQm",
        module: 'm',
        ..NONE
    },
    Language { names: &["perl"], letters: "eE", valued: "IMm", backquotes: true, ..NONE },
    Language { names: &["ruby", "irb", "jruby"], letters: "e", valued: "IrCE", backquotes: true, ..NONE },
    Language {
        names: &["node", "nodejs", "bun", "deno", "tsx", "ts-node", "electron"],
        letters: "ep",
        long: &["--eval", "--print", "eval"],
        valued: "r",
        ..NONE
    },
    Language { names: &["php"], letters: "rBRE", long: &["--run"], valued: "dcz", backquotes: true, ..NONE },
    Language { names: &["lua", "luajit"], letters: "e", valued: "l", ..NONE },
    Language { names: &["R", "Rscript"], letters: "e", ..NONE },
    Language { names: &["julia"], letters: "eE", long: &["--eval", "--print"], backquotes: true, ..NONE },
    Language { names: &["elixir", "iex"], letters: "e", long: &["--eval", "--rpc-eval"], ..NONE },
    Language { names: &["erl"], long: &["-eval"], reads_input: false, ..NONE },
    Language {
        names: &["ghc", "runghc", "groovy", "scala", "clojure", "clj", "raku"],
        letters: "e",
        long: &["--eval"],
        ..NONE
    },
    Language { names: &["octave", "sbcl", "guile", "gst"], letters: "ce", long: &["--eval"], ..NONE },
    Language {
        names: &["emacs", "emacsclient"],
        letters: "e",
        long: &["--eval", "-eval", "--execute"],
        reads_input: false,
        ..NONE
    },
    Language { names: &["swift"], letters: "e", reads_input: false, ..NONE },
    Language {
        names: &["osascript", "expect", "tclsh", "wish", "jshell", "gnuplot", "m4"],
        letters: "ce",
        ..NONE
    },
];

/// Words of programs that know a way to run others, or to hide that they do.
const RUNNING: &[&str] = &[
    "system",
    "exec",
    "spawn",
    "popen",
    "Popen",
    "subprocess",
    "child_process",
    "binding",
    "fork",
    "pty",
    "eval",
    "__import__",
    "importlib",
    "getattr",
    "__builtins__",
    "builtins",
    "globals(",
    "vars(",
    "__dict__",
    "__subclasses__",
    "ctypes",
    "cffi",
    "compile(",
    "marshal",
    "pickle",
    "b64decode",
    "fromhex",
    "codecs",
    "Function(",
    "constructor",
    "atob",
    "shell",
    "passthru",
    "proc_open",
    "pcntl",
    "syscall",
    "syscmd",
    "esyscmd",
    "dlopen",
    "Command",
    "callCommand",
    "readProcess",
    "run(",
    "run-program",
    "(sh ",
    "call-process",
    "start-process",
    "System.cmd",
    "os:cmd",
    "open_port",
    "getRuntime",
    "ProcessBuilder",
    "sys.process",
    "Open3",
    "open3",
    "send(",
    "method(",
    "qx",
    "%x",
    "posix",
    "@load",
    "getline",
    "Bun.$",
    "startLoop",
    "!",
];

/// Whether this is the interpreter of a language.
pub(super) fn is_known(name: &str) -> bool {
    language(name).is_some()
}

fn language(name: &str) -> Option<&'static Language> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LANGUAGES.iter().find(|language| language.names.contains(&bare) || language.names.contains(&name))
}

/// What a program in another language runs, if this is the interpreter of one.
pub(super) fn code(command: &Command, name: &str, arguments: &[Word]) -> Option<Further> {
    let language = language(name)?;
    let mut further = Further::default();
    let mut has_program = false;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let Some(text) = word.literal() else {
            // Whatever it is, it may hold the program.
            further.unknown |= word.literal_prefix().is_empty() || word.literal_prefix().starts_with('-');
            has_program = true;
            break;
        };
        if language.long.contains(&text) {
            has_program = true;
            further.add(after.first().map_or_else(Further::unknown, |code| language.run(command, code)));
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        if let Some(glued) = language.long.iter().find_map(|long| text.strip_prefix(long)?.strip_prefix('='))
        {
            has_program = true;
            further.add(language.run(command, &Word::of_literal(glued)));
            continue;
        }
        match text.strip_prefix('-') {
            Some("") => break,
            Some(long) if long.starts_with('-') => {}
            Some(letters) => {
                let takes = language.cluster(command, letters, after.first(), &mut further);
                has_program |= takes.is_program;
                rest = after.get(usize::from(takes.next)..).unwrap_or_default();
                if takes.is_module {
                    // Some modules take a program themselves.
                    for word in rest.iter().filter(|word| word.literal_prefix().contains('(')) {
                        further.add(language.run(command, word));
                    }
                    break;
                }
            }
            // A file that holds the program; what follows is for it.
            None => {
                has_program = true;
                break;
            }
        }
    }
    if !has_program && language.reads_input {
        further.add(shell::from_input(command, |text| language.run(command, text)));
    }
    Some(further)
}

/// What a cluster of short options takes.
#[derive(Default)]
struct Takes {
    is_program: bool,
    is_module: bool,
    next: bool,
}

impl Language {
    fn cluster(&self, command: &Command, letters: &str, next: Option<&Word>, further: &mut Further) -> Takes {
        for (at, letter) in letters.char_indices() {
            let glued = &letters[at + letter.len_utf8()..];
            if self.letters.contains(letter) {
                // What is glued to it is the program, or further letters: then the program comes next.
                if !glued.is_empty() {
                    further.add(self.run(command, &Word::of_literal(glued)));
                }
                further.add(next.map_or_else(Further::default, |code| self.run(command, code)));
                return Takes { is_program: true, is_module: false, next: true };
            }
            if self.valued.contains(letter) {
                let is_module = letter == self.module;
                return Takes { is_program: is_module, is_module, next: glued.is_empty() };
            }
        }
        Takes::default()
    }

    /// The texts of a program, each as a command, if the program can run any.
    fn run(&self, command: &Command, program: &Word) -> Further {
        let Some(text) = program.literal() else { return Further::unknown() };
        let runs = RUNNING.iter().any(|word| text.contains(word))
            || (self.backquotes && (text.contains('`') || text.contains('|')));
        if runs { commands_in(command, text, self.backquotes) } else { Further::default() }
    }
}

/// Every text of a program that can run commands, as if it were one.
pub(super) fn commands_in(command: &Command, program: &str, backquotes: bool) -> Further {
    let mut further = Further::unknown();
    for statement in program.split([';', '\n']).take(CODE_TEXTS_MAX) {
        let words: Vec<Word> = texts(statement, backquotes).into_iter().map(Word::of_literal).collect();
        for (at, word) in words.iter().enumerate().take(CODE_TEXTS_MAX) {
            // By itself it is read by a shell; with those behind it, it is a list of words.
            if let Some(text) = word.literal().map(|text| text.trim().trim_matches('|')) {
                further.add(shell::text(command, &Word::of_literal(text)));
            }
            if at + 1 < words.len() {
                further.commands.push(inner(command, Vec::new(), &words[at..]));
            }
        }
    }
    further
}

/// The texts in quotes. One that is not closed goes to the end.
fn texts(program: &str, backquotes: bool) -> Vec<String> {
    let mut texts = Vec::new();
    let mut before = [' '; 2];
    let mut chars = program.chars();
    while let Some(c) = chars.next() {
        let closing = match c {
            '"' | '\'' => c,
            '`' if backquotes => c,
            // `qx(…)`, `%x{…}`.
            '(' if matches!(before, ['q' | '%', 'x']) => ')',
            '{' if matches!(before, ['q' | '%', 'x']) => '}',
            '[' if matches!(before, ['q' | '%', 'x']) => ']',
            '/' | '|' | '!' if matches!(before, ['q' | '%', 'x']) => c,
            c => {
                before = [before[1], c];
                continue;
            }
        };
        let mut text = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\\' => text.extend(chars.next()),
                c if c == closing => break,
                c => text.push(c),
            }
        }
        texts.push(text);
    }
    texts
}
