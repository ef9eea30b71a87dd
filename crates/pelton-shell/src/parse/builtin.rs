//! Builtins whose arguments are more than data: names with subscripts and arithmetic that bash evaluates, options that change how it reads what follows.

use crate::launch::behind_plain_launchers;
use crate::script::DoubtKind;
use crate::word::Word;

use super::is_name;

/// Letters of `set` that change nothing about how commands are read. `x` shows them through `PS4`, which is a variable that steers.
const HARMLESS_SET_LETTERS: &str = "abehmnuvxCEHPT";
const HARMLESS_SET_NAMES: &[&str] = &[
    "allexport",
    "errexit",
    "errtrace",
    "functrace",
    "monitor",
    "noclobber",
    "noexec",
    "nounset",
    "physical",
    "pipefail",
    "verbose",
    "xtrace",
];

/// Why the arguments of a command are more than data, if they are.
pub(super) fn doubt(words: &[Word]) -> Option<DoubtKind> {
    let words = behind_plain_launchers(words).words;
    let (name, arguments) = words.split_first()?;
    let name = name.literal()?;
    let evaluated = match name {
        "alias" if arguments.is_empty() || is_just(arguments, &["-p"]) => return None,
        "shopt" if arguments.iter().all(asks_shopt) => return None,
        "alias" | "unalias" | "enable" | "shopt" | "bind" => return Some(DoubtKind::ShellOptions),
        "hash" => return changes_the_path(arguments).then_some(DoubtKind::ShellOptions),
        "set" => return (!sets_harmless_options(arguments)).then_some(DoubtKind::ShellOptions),
        "let" => !arguments.iter().all(is_plain_number),
        "declare" | "typeset" if tells_functions(arguments) => false,
        "declare" | "typeset" | "local" | "export" | "readonly" => !declares_plainly(name, arguments),
        "read" | "mapfile" | "readarray" | "unset" | "getopts" => !arguments.iter().all(names_plainly),
        "printf" | "wait" => {
            !names_after(leading_options(arguments), &["-v", "-p", "-np", "-fp", "-nfp", "-fnp"])
        }
        "test" | "[" => !names_after(arguments, &["-v", "-R"]),
        "compgen" => !lists_names(arguments),
        "complete" => !(arguments.is_empty() || is_just(arguments, &["-p"])),
        "compopt" => true,
        _ => return None,
    };
    evaluated.then_some(DoubtKind::EvaluatedArgument)
}

/// Whether there is one argument, and it is one of these.
fn is_just(arguments: &[Word], known: &[&str]) -> bool {
    matches!(arguments, [one] if one.literal().is_some_and(|text| known.contains(&text)))
}

/// Whether an argument of `shopt` is a name, or an option that tells how something is set.
fn asks_shopt(word: &Word) -> bool {
    word.literal().is_some_and(|text| match text.strip_prefix('-') {
        Some(letters) => !letters.is_empty() && letters.chars().all(|letter| "pqo".contains(letter)),
        None => is_name(text),
    })
}

/// Whether functions are told, by their plain names.
fn tells_functions(arguments: &[Word]) -> bool {
    arguments.split_first().is_some_and(|(option, names)| {
        matches!(option.literal(), Some("-f" | "-F"))
            && names.iter().all(|name| name.literal().is_some_and(is_name))
    })
}

/// Whether `compgen` lists names of a kind; others of its options evaluate what they are given.
fn lists_names(arguments: &[Word]) -> bool {
    arguments.split_first().is_some_and(|(option, prefix)| {
        matches!(option.literal(), Some("-a" | "-b" | "-c" | "-k"))
            && (prefix.is_empty() || matches!(prefix, [name] if name.literal().is_some_and(is_name)))
    })
}

/// `hash -p file name` makes a name mean another file.
fn changes_the_path(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let option = word.literal_prefix().starts_with('-');
        word.literal().is_none() || (option && word.literal_prefix().contains('p'))
    })
}

fn sets_harmless_options(arguments: &[Word]) -> bool {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.literal() else { return false };
        let Some(letters) = text.strip_prefix(['-', '+']) else { return true };
        if letters.is_empty() || letters == "-" {
            // What follows are arguments of the script.
            return true;
        }
        let mut named = 0;
        for letter in letters.chars() {
            match letter {
                'o' => named += 1,
                letter if HARMLESS_SET_LETTERS.contains(letter) => {}
                _ => return false,
            }
        }
        for _ in 0..named {
            // `set -o` alone only prints.
            let Some(name) = rest.next() else { return true };
            if !name.literal().is_some_and(|name| HARMLESS_SET_NAMES.contains(&name)) {
                return false;
            }
        }
    }
    true
}

/// Whether an argument of `let` is a number.
fn is_plain_number(word: &Word) -> bool {
    word.literal().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether declared names are plain names, and no value is evaluated: not with `-i`, and not through another name (`-n`).
fn declares_plainly(builtin: &str, arguments: &[Word]) -> bool {
    // Takes the mark of an exported variable off.
    let unmarks = |option: &str| builtin == "export" && option == "-n";
    arguments.iter().all(|word| {
        let text = word.literal_prefix();
        if text.starts_with(['-', '+']) {
            return word
                .literal()
                .is_some_and(|option| !option.contains(['i', 'n', 'a', 'A', 'f', 'F']) || unmarks(option));
        }
        match text.split_once('=') {
            Some((name, _)) => is_name(name.strip_suffix('+').unwrap_or(name)) && !word.doubts().array,
            None => word.literal().is_some_and(is_name),
        }
    })
}

/// Whether an argument cannot be a name with a subscript.
fn names_plainly(word: &Word) -> bool {
    word.literal().is_some_and(|text| !text.contains('['))
}

/// The options and their values, and the first word that is certainly neither.
fn leading_options(arguments: &[Word]) -> &[Word] {
    let mut end = 0;
    while let Some(word) = arguments.get(end) {
        end += match word.literal() {
            Some("-v" | "-p") => 2,
            Some("--") => return &arguments[..end],
            Some(text) if !text.starts_with('-') => return &arguments[..end],
            _ => 1,
        };
    }
    arguments
}

/// Whether what follows one of these options is a plain name, and no option is hidden.
fn names_after(arguments: &[Word], options: &[&str]) -> bool {
    arguments.iter().enumerate().all(|(at, word)| {
        // An expansion that stays one word can still be the option; then the word behind it must be a name all the same.
        let Some(text) = word.literal() else { return !may_be_option(word, arguments.get(at + 1)) };
        match options.iter().find(|option| text.starts_with(**option)) {
            Some(option) if *option == text => {
                arguments.get(at + 1).is_none_or(|name| name.literal().is_some_and(is_name_or_end))
            }
            Some(option) => is_name(&text[option.len()..]) || !text[option.len()..].contains('['),
            None => true,
        }
    })
}

/// Whether an uncertain word may be an option whose value is evaluated: only if what follows could be evaluated.
fn may_be_option(word: &Word, next: Option<&Word>) -> bool {
    let could_begin_option = word.literal_prefix().is_empty() || word.literal_prefix().starts_with('-');
    could_begin_option
        && next.is_some_and(|next| next.literal().is_none_or(|text| text.contains('[') && text.contains(']')))
}

fn is_name_or_end(text: &str) -> bool {
    is_name(text) || matches!(text, "]" | "=" | "==" | "!=" | "-a" | "-o")
}
