//! Text that becomes a command again: `eval`, `sh -c`, `trap`, and input that a shell reads.

use crate::script::{Command, RedirectionKind};
use crate::word::{Part, Word};

use super::{Further, inner};

/// `eval words…`
pub(super) fn eval(command: &Command, arguments: &[Word]) -> Further {
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first.literal() == Some("--") => rest,
        _ => arguments,
    };
    joined(command, arguments)
}

/// Words that are joined with blanks and run by a shell.
pub(super) fn joined(command: &Command, words: &[Word]) -> Further {
    let literals: Option<Vec<_>> = words.iter().map(Word::literal).collect();
    match literals {
        Some(literals) => script(command, &literals.join(" ")),
        None => {
            // The command word may still be known: `eval rm "$x"`.
            let mut further = Further::unknown();
            let plain =
                |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
            if words.first().and_then(Word::literal).is_some_and(plain) {
                further.commands.push(inner(command, Vec::new(), words));
            }
            further
        }
    }
}

/// One word that a shell runs.
pub(super) fn text(command: &Command, word: &Word) -> Further {
    joined(command, std::slice::from_ref(word))
}

/// `trap text signals…`
pub(super) fn trap(command: &Command, arguments: &[Word]) -> Further {
    let rest = match arguments {
        [first, after @ ..] if first.literal() == Some("--") => after,
        // These only print.
        [first, ..] if matches!(first.literal(), Some("-p" | "-l" | "-lp" | "-pl" | "-P")) => &[],
        _ => arguments,
    };
    match rest {
        // One argument is a signal that is set back.
        [] | [_] => Further::default(),
        [first, ..] if matches!(first.literal(), Some("-" | "")) => Further::default(),
        [first, ..] => text(command, first),
    }
}

/// `alias name=text`: from then on the name may mean it.
pub(super) fn alias(command: &Command, arguments: &[Word]) -> Further {
    let mut further = Further::default();
    for word in arguments {
        match word.literal().map(|text| text.split_once('=')) {
            Some(Some((_, value))) => further.add(text(command, &Word::of_literal(value))),
            Some(None) => {}
            None => {
                further.unknown |= word.literal_prefix().contains('=') || word.literal_prefix().is_empty();
            }
        }
    }
    further
}

/// `source file`: a file is as known as any program, a pipe or a device is not.
pub(super) fn source(arguments: &[Word]) -> Further {
    let file = match arguments {
        [dashes, file, ..] if dashes.literal() == Some("--") => Some(file),
        [file, ..] => Some(file),
        [] => None,
    };
    match file {
        Some(file) if !is_plain_file(file) => Further::unknown(),
        _ => Further::default(),
    }
}

/// `mapfile -C text`
pub(super) fn callback(command: &Command, arguments: &[Word]) -> Further {
    let mut further = Further::default();
    for (at, word) in arguments.iter().enumerate() {
        match word.literal() {
            Some(option) if option.starts_with('-') && option.ends_with('C') => match arguments.get(at + 1) {
                Some(next) => further.add(called_back(command, next)),
                None => further.unknown = true,
            },
            Some(option) if option.starts_with('-') && option.contains('C') => further.unknown = true,
            Some(_) => {}
            None => further.unknown |= word.literal_prefix().is_empty(),
        }
    }
    further
}

/// The text with the two arguments that it gets.
fn called_back(command: &Command, word: &Word) -> Further {
    word.literal()
        .map_or_else(Further::unknown, |text| script(command, &format!("{text} \"$index\" \"$line\"")))
}

/// `sh`, `bash` and the like: `-c text`, a file, or the input.
pub(super) fn shell(command: &Command, arguments: &[Word]) -> Further {
    let mut takes_text = false;
    let mut takes_input = false;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(option) = word.literal() else { return Further::unknown() };
        if matches!(option, "--" | "-") {
            rest = after;
            break;
        }
        let Some(letters) = option.strip_prefix(['-', '+']) else { break };
        rest = after;
        match option {
            // Files that are run first.
            "--rcfile" | "--init-file" => return Further::unknown(),
            _ if option.starts_with("--") => {}
            _ => {
                takes_text |= option.starts_with('-') && letters.contains('c');
                takes_input |= letters.contains('s');
                // Interactive and login shells read files of the user first; those are not the command's.
                for _ in letters.matches(['o', 'O']) {
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
        }
    }
    match rest.first() {
        Some(first) if takes_text => text(command, first),
        None if takes_text => Further::default(),
        Some(file) if !takes_input => {
            if is_plain_file(file) {
                Further::default()
            } else {
                Further::unknown()
            }
        }
        _ => input(command),
    }
}

/// What a shell reads from its input.
pub(super) fn input(command: &Command) -> Further {
    match input_of(command) {
        Input::Text(text) => text.literal().map_or_else(Further::unknown, |text| script(command, text)),
        _ => Further::unknown(),
    }
}

/// What others than shells read: a text is given to `read`. Without any input somebody types.
pub(super) fn from_input(command: &Command, read: impl Fn(&Word) -> Further) -> Further {
    match input_of(command) {
        Input::Text(text) => read(text),
        Input::Elsewhere => Further::unknown(),
        Input::Terminal => Further::default(),
    }
}

enum Input<'c> {
    /// It is written there.
    Text(&'c Word),
    /// Another command writes it, or a file holds it.
    Elsewhere,
    /// It is what the line has.
    Terminal,
}

fn input_of(command: &Command) -> Input<'_> {
    let from = command.redirections.iter().rev().find(|redirection| {
        redirection.descriptor.as_deref().is_none_or(|descriptor| descriptor == "0")
            && (redirection.kind.reads()
                || matches!(
                    redirection.kind,
                    RedirectionKind::HereDocument { .. }
                        | RedirectionKind::HereString
                        | RedirectionKind::Duplicate
                ))
    });
    match from {
        Some(redirection)
            if matches!(
                redirection.kind,
                RedirectionKind::HereDocument { .. } | RedirectionKind::HereString
            ) =>
        {
            Input::Text(&redirection.target)
        }
        Some(_) => Input::Elsewhere,
        None if command.place.piped => Input::Elsewhere,
        None => Input::Terminal,
    }
}

/// A text as a script.
fn script(outer: &Command, text: &str) -> Further {
    match crate::read(text) {
        Ok(script) => {
            let mut commands = script.commands;
            for command in &mut commands {
                command.place.in_substitution |= outer.place.in_substitution;
                command.place.in_background |= outer.place.in_background;
                command.place.in_function |= outer.place.in_function;
                command.place.conditional |= outer.place.conditional;
            }
            Further { commands, ..Further::default() }
        }
        Err(_) => Further::unknown(),
    }
}

/// Whether a word names a file that lies there, as far as its name tells.
fn is_plain_file(word: &Word) -> bool {
    match word.literal() {
        Some(path) => !path.starts_with("/dev/") && !path.starts_with("/proc/") && !path.is_empty(),
        None => matches!(word.parts(), [Part::Tilde(_), Part::Literal(_)]),
    }
}
