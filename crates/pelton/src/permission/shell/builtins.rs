//! Builtins of the shell, in the forms that only tell how things are, or set what nothing but the shell sees.

use pelton_shell::is_harmless as does_no_harm;

use super::arg::Arg;
use super::is_private;
use super::look::is_number;

/// Whether this is one of them.
pub(super) fn is_known(name: &str) -> bool {
    matches!(
        name,
        "ulimit"
            | "hash"
            | "history"
            | "alias"
            | "shopt"
            | "trap"
            | "set"
            | "declare"
            | "typeset"
            | "export"
            | "readonly"
            | "mapfile"
            | "readarray"
            | "wait"
            | "dirs"
            | "compgen"
            | "complete"
            | "kill"
    )
}

/// Whether that is all it does.
pub(super) fn tells_only(name: &str, args: &[Arg]) -> bool {
    let Some(words) = args.iter().map(Arg::literal).collect::<Option<Vec<&str>>>() else {
        return name == "wait" && args.iter().all(Arg::is_count);
    };
    match (name, words.as_slice()) {
        ("hash" | "history" | "alias" | "trap" | "shopt" | "complete" | "wait" | "dirs", []) => true,
        // With a value it would set one.
        ("ulimit", []) => true,
        ("ulimit", [one]) => one.len() == 2 && one.starts_with('-'),
        ("hash", ["-l"]) | ("alias" | "complete", ["-p"]) | ("dirs", ["-v" | "-p" | "-l"]) => true,
        ("trap", ["-l"]) | ("kill", ["-l" | "-L"]) => true,
        // Whether a process is there.
        ("kill", ["-0", processes @ ..]) => {
            processes.iter().all(|process| process.bytes().all(|byte| byte.is_ascii_digit()))
        }
        ("hash", ["-t", names @ ..]) => names.iter().all(|name| is_word(name)),
        ("trap", ["-p", signals @ ..]) => signals.iter().all(|signal| is_word(signal)),
        ("shopt", [options @ .., name]) if is_word(name) => options.iter().all(|option| asks_shopt(option)),
        ("shopt", options) => options.iter().all(|option| asks_shopt(option)),
        ("set", ["-o"]) => true,
        // Alone it would tell every variable and its value.
        ("set", [_, ..]) => handles_errors(&words),
        ("declare" | "typeset" | "export" | "readonly", ["-p"]) => true,
        ("declare" | "typeset", ["-p" | "-F" | "-f", names @ ..]) => names.iter().all(|name| is_word(name)),
        ("export", [_, ..]) => words.iter().all(|word| sets_harmless(word)),
        ("mapfile" | "readarray", words) => fills(words),
        ("wait", words) => words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_digit())),
        // Those of its options that are given texts evaluate them.
        ("compgen", [option, prefix @ ..]) => {
            matches!(*option, "-a" | "-b" | "-c" | "-k")
                && prefix.len() <= 1
                && prefix.iter().all(|word| is_word(word))
        }
        _ => false,
    }
}

/// A name, and nothing in it that could be evaluated.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether an option of `shopt` asks how something is set.
fn asks_shopt(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|letter| "pqo".contains(letter))
}

/// Whether a variable says how things look, for the programs that follow.
fn sets_harmless(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| does_no_harm(name))
}

/// Whether lines of the input go into an array that nothing but the shell sees. With `-C` something runs for them.
fn fills(words: &[&str]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "-t" => {}
            "-d" => _ = words.next(),
            "-n" | "-s" | "-O" => {
                if !words.next().is_some_and(|value| is_number(value)) {
                    return false;
                }
            }
            name => return is_private(name) && !name.is_empty() && words.next().is_none(),
        }
    }
    true
}

/// Whether lines of the input go into variables that nothing but the shell sees.
pub(super) fn reads(args: &[Arg]) -> bool {
    let mut args = args.iter().peekable();
    while let Some(option) = args.next_if(|arg| arg.prefix().starts_with('-')) {
        let is_fine = match option.literal() {
            Some("-r" | "-s" | "-rs") => true,
            Some("-d" | "-rd" | "-n" | "-N" | "-t" | "-p") => {
                args.next().is_some_and(|value| value.literal().is_some())
            }
            Some(text) => text.starts_with("-d"),
            None => false,
        };
        if !is_fine {
            return false;
        }
    }
    // What goes into `_` is gone with the next command.
    args.all(|name| name.literal().is_some_and(|name| is_private(name) || name == "_"))
}

/// Whether options of `set` say how errors are handled and told, and nothing else.
fn handles_errors(words: &[&str]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
        if letters.is_empty() || !letters.chars().all(|c| "euxo".contains(c)) {
            return false;
        }
        let is_named = |name: Option<&&str>| {
            name.is_some_and(|name| matches!(*name, "pipefail" | "errexit" | "nounset" | "xtrace"))
        };
        if letters.contains('o') && !is_named(words.next()) {
            return false;
        }
    }
    true
}
