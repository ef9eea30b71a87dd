//! Programs with a language of their own that can leave it for a shell: `vim -c '!…'`, `sqlite3 x '.shell …'`, `sed '1e …'`.

use crate::script::Command;
use crate::word::{Part, Word};

use super::code::commands_in;
use super::riders::values;
use super::{Further, shell};

/// How such a program is told what to do.
struct Told {
    names: &'static [&'static str],
    /// Options whose value is in its language.
    options: &'static [&'static str],
    /// Options whose value is a file in its language.
    files: &'static [&'static str],
    /// Words behind the first that is no option are.
    operands: bool,
    /// Without any of them its input is.
    input: bool,
}

const NONE: Told = Told { names: &[], options: &[], files: &[], operands: false, input: false };

const TOLD: &[Told] = &[
    Told {
        names: &["vim", "vi", "nvim", "view", "gvim", "vimdiff"],
        options: &["-c", "--cmd", "+"],
        files: &["-S", "-s", "-u"],
        ..NONE
    },
    Told { names: &["ex"], options: &["-c", "--cmd", "+"], input: true, ..NONE },
    Told { names: &["less", "more", "most"], options: &["+"], ..NONE },
    Told {
        names: &["gdb"],
        options: &["-ex", "--ex", "-iex", "-eval-command", "--eval-command", "--init-eval-command"],
        input: true,
        ..NONE
    },
    Told {
        names: &["lldb"],
        options: &["-o", "-O", "--one-line", "--one-line-before-file"],
        input: true,
        ..NONE
    },
    Told { names: &["sqlite3", "duckdb"], options: &["-cmd", "-c"], operands: true, input: true, ..NONE },
    Told { names: &["psql"], options: &["-c", "--command"], input: true, ..NONE },
    Told { names: &["mysql", "mariadb"], options: &["-e", "--execute"], input: true, ..NONE },
    Told { names: &["ed", "red", "ftp", "sftp", "telnet", "mail", "mailx"], input: true, ..NONE },
    Told { names: &["lftp"], options: &["-e", "-c"], input: true, ..NONE },
    Told { names: &["gnuplot", "mutt"], options: &["-e"], ..NONE },
    Told { names: &["screen"], options: &["-X"], input: true, ..NONE },
    Told { names: &["crontab"], input: true, ..NONE },
];

/// What leads to a shell: the rest of the line is a command.
const SIGNS: &[&str] = &["!", "shell ", "system ", "exec "];

/// Words that lead to other languages, or to programs that are named in quotes.
const LANGUAGES: &[&str] =
    &["python", "perl", "ruby", "lua", "tcl", "system(", "program", "PROGRAM", "execute", "source", "pipe"];

/// Whether this is such a program.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk")
        || TOLD.iter().any(|told| told.names.contains(&name))
}

/// What such a program runs, if this is one.
pub(super) fn escapes(command: &Command, name: &str, arguments: &[Word]) -> Option<Further> {
    match name {
        "sed" | "gsed" => return Some(sed(command, arguments)),
        "awk" | "gawk" | "mawk" | "nawk" => return Some(awk(command, arguments)),
        _ => {}
    }
    let told = TOLD.iter().find(|told| told.names.contains(&name))?;
    let mut texts = values(arguments, told.options);
    // `ex -sc '…'`: the letter may stand behind others.
    for pair in arguments.windows(2) {
        let letters = pair[0].literal_prefix().strip_prefix('-').filter(|text| !text.starts_with('-'));
        if told.options.contains(&"-c") && letters.is_some_and(|text| text.len() > 1 && text.ends_with('c')) {
            texts.push(pair[1].clone());
        }
    }
    if told.operands {
        texts
            .extend(arguments.iter().filter(|word| !word.literal_prefix().starts_with('-')).skip(1).cloned());
    }
    let mut further = Further::default();
    for text in &texts {
        further.add(escaped(command, text));
    }
    // What files say is as known as any program; what other commands write is not.
    let written = |word: &Word| word.parts().iter().any(|part| matches!(part, Part::Pipe));
    further.unknown |= values(arguments, told.files).iter().any(written);
    if told.input && texts.is_empty() {
        further.add(shell::from_input(command, |text| escaped(command, text)));
    }
    further.hidden = further.unknown || !further.commands.is_empty();
    Some(further)
}

/// What stands behind a sign or a word that leads to a shell.
fn escaped(command: &Command, word: &Word) -> Further {
    let Some(text) = word.literal() else { return Further::unknown() };
    let mut further = Further::default();
    for line in text.lines() {
        for sign in SIGNS {
            if let Some((_, behind)) = line.split_once(sign) {
                further.add(shell::text(command, &Word::of_literal(behind.trim())));
            }
        }
        // `* * * * * command`.
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.len() > 5
            && fields[..5].iter().all(|field| field.starts_with(|c: char| c == '*' || c.is_ascii_digit()))
        {
            further.add(shell::text(command, &Word::of_literal(fields[5..].join(" "))));
        }
    }
    if LANGUAGES.iter().any(|language| text.contains(language)) {
        further.add(commands_in(command, text, false));
    }
    further
}

/// `awk`: `system`, and pipes to and from texts.
fn awk(command: &Command, arguments: &[Word]) -> Further {
    let mut programs = values(arguments, &["-e", "--source"]);
    let mut has_file = false;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let text = word.literal_prefix();
        rest = after;
        match text {
            "-F" | "-v" | "-f" | "-e" | "-i" | "--file" | "--source" => {
                // A program that other commands write.
                if matches!(text, "-f" | "--file")
                    && after.first().is_some_and(|file| file.literal().is_none())
                {
                    return Further { hidden: true, ..Further::unknown() };
                }
                has_file |= matches!(text, "-f" | "--file" | "-e" | "--source");
                rest = after.get(1..).unwrap_or_default();
            }
            "-l" | "--load" => return Further { hidden: true, ..Further::unknown() },
            "--" => {}
            text if text.starts_with('-') && text.len() > 1 => {
                has_file |=
                    text.starts_with("-f") || text.starts_with("--file") || text.starts_with("--source");
            }
            _ => {
                programs.extend((!has_file).then(|| word.clone()));
                break;
            }
        }
    }
    let mut further = Further::default();
    for program in &programs {
        let Some(text) = program.literal() else {
            further.unknown = true;
            continue;
        };
        let has = |sign: &str| text.contains(sign);
        let pipes = text.replace("||", "").contains('|') && has("\"");
        if has("system") || has("getline") || has("@") || pipes {
            further.add(commands_in(command, text, false));
        }
    }
    further.hidden = further.unknown;
    further
}

/// `sed`: the command `e`, and `s` with that flag.
fn sed(command: &Command, arguments: &[Word]) -> Further {
    let mut scripts = values(arguments, &["-e", "--expression"]);
    if scripts.is_empty() && values(arguments, &["-f", "--file"]).is_empty() {
        scripts.extend(arguments.iter().find(|word| !word.literal_prefix().starts_with('-')).cloned());
    }
    let mut further = Further::default();
    for script in &scripts {
        let Some(text) = script.literal() else {
            further.unknown = true;
            continue;
        };
        for line in text.split(['\n', ';', '{', '}']) {
            further.add(sed_line(command, line.trim()));
        }
    }
    further.hidden = further.unknown || !further.commands.is_empty();
    further
}

/// One command of a script, roughly: what might run something counts.
fn sed_line(command: &Command, line: &str) -> Further {
    // Addresses, as far as they are numbers; one that is a pattern ends with a slash.
    let behind = line.trim_start_matches(|c: char| c.is_ascii_digit() || "$,~+! ".contains(c));
    let behind = match behind.strip_prefix('/') {
        Some(rest) => {
            rest.rsplit_once('/').map_or(rest, |(_, behind)| behind).trim_start_matches([' ', '!', 'I'])
        }
        None => behind,
    };
    match behind.strip_prefix('e') {
        Some("") => return Further::unknown(),
        Some(text) if text.starts_with(' ') => return shell::text(command, &Word::of_literal(text.trim())),
        _ => {}
    }
    let mut chars = line.trim_start_matches(|c: char| c.is_ascii_digit() || "$,~+! ".contains(c)).chars();
    let is_substitution = chars.next() == Some('s');
    let Some(delimiter) = chars.next().filter(|c| is_substitution && !c.is_alphanumeric()) else {
        return Further::default();
    };
    let flags = line.rsplit(delimiter).next().unwrap_or_default();
    if flags.len() < line.len() && flags.contains('e') && flags.chars().all(|c| c.is_ascii_alphanumeric()) {
        // What was put in is run.
        let parts: Vec<&str> = line.split(delimiter).collect();
        let put = parts.len().checked_sub(2).and_then(|at| parts.get(at)).copied().unwrap_or_default();
        let mut further = Further::unknown();
        further.add(shell::text(command, &Word::of_literal(put)));
        return further;
    }
    Further::default()
}
