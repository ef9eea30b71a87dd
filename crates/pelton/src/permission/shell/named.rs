//! Files that the words of a command may name, whatever its program makes of them. Rules that restrict go by these.

use pelton_shell::{Command, Script, Word, further_commands};

use super::arg::{Arg, Files};
use super::launch::base_name;
use super::{HOLE, Step};

/// What patterns match that they do not match otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Widening {
    /// Nothing.
    #[default]
    Nothing,
    /// `**` goes through directories.
    Deep,
    /// Hidden files, names in other letters, or whatever else.
    Anything,
}

/// What a line has patterns match that they do not match otherwise.
pub(super) fn widening(script: &Script) -> Widening {
    let in_texts = |command: &Command| {
        // Almost no line says any of these words.
        let is_told =
            |word: &Word| word.literal().is_some_and(|text| text.contains("glob") || text.contains(IGNORED));
        match command.words.iter().any(is_told) {
            true => further_commands(command).commands.iter().map(widening_by).max().unwrap_or_default(),
            false => Widening::Nothing,
        }
    };
    script
        .commands
        .iter()
        .map(|command| widening_by(command).max(in_texts(command)))
        .max()
        .unwrap_or_default()
}

/// With this variable set, patterns match hidden files.
const IGNORED: &str = "GLOBIGNORE";

/// What one command has patterns match.
fn widening_by(command: &Command) -> Widening {
    let words = || command.words.iter().map(Word::literal);
    let is_named = |word: Option<&str>| word.is_some_and(|word| word.contains(IGNORED));
    if command.assignments.iter().any(|assignment| assignment.name == IGNORED)
        // `export`, `env`, `read` and others set it, too.
        || words().skip(1).any(is_named) && !matches!(command.name(), Some("echo" | "unset"))
    {
        return Widening::Anything;
    }
    let widened = |option: Option<&str>| match option {
        Some("globstar") => Widening::Deep,
        Some("dotglob" | "nocaseglob" | "extglob") => Widening::Anything,
        _ => Widening::Nothing,
    };
    let has = |word: Option<&str>, letter: char| {
        word.and_then(|word| word.strip_prefix('-')).is_some_and(|letters| letters.contains(letter))
    };
    if command.name() == Some("shopt") {
        let sets = words().any(|word| has(word, 's'));
        return words().filter(|_| sets).map(widened).max().unwrap_or_default();
    }
    // `bash -O dotglob`, whatever stands before the shell.
    let behind = words().zip(words().skip(1)).filter(|(option, _)| has(*option, 'O'));
    behind.map(|(_, option)| widened(option)).max().unwrap_or_default()
}

/// Every part of a word that could name a file, whatever the program makes of it.
pub(super) fn may_name(arg: &Arg, step: &mut Step) {
    let Some(word) = arg.literal() else {
        // Whoever goes by way of processes hides where.
        if arg.prefix().starts_with("/proc/") {
            let text = arg.with_holes().replace(HOLE, "self");
            step.may_name.push(Files::Named(text));
        }
        if let Some(text) = arg.seen_from_here() {
            may_name_in(&text, step);
        }
        for text in arg.in_braces() {
            may_name_in(text, step);
        }
        // Where commands say nothing, what stands beside that is all there is.
        if let Some(text) = arg.without_commands() {
            may_name_in(&text, step);
        }
        // Whatever it is called, it is in there.
        if let Some((dir, _)) = arg.prefix().rsplit_once('/').filter(|_| arg.has_commands()) {
            step.may_name.push(Files::Named(format!("{dir}/{SOME_NAME}")));
        }
        step.may_name.extend(arg.probable_files());
        step.last_names.extend(arg.last_name().map(str::to_owned));
        return;
    };
    may_name_in(word, step);
}

/// A name that no rule names.
const SOME_NAME: &str = "\u{1}";

/// The same for what is certain of a word.
fn may_name_in(word: &str, step: &mut Step) {
    // `f=@file` has a program send it.
    let value = word.split_once('=').map(|(_, value)| value.strip_prefix('@').unwrap_or(value));
    let glued = if word.starts_with('-') && !word.starts_with("--") { word.get(2..) } else { None };
    // `HEAD:path`, `@file`.
    let behind = word.rsplit_once(':').map(|(_, behind)| behind).or_else(|| word.strip_prefix('@'));
    // `id=x,src=file`, `file:/inside`.
    let listed = word.split([',', '=', ':']).filter(|part| part.len() < word.len());
    // `file:///$(pwd)/x`, seen from there.
    let address = word.strip_prefix("file://").map(|path| match path.trim_start_matches('/') {
        here if here.starts_with('.') => here,
        _ => path,
    });
    // `name@file`, `f=<file`.
    let told = word.split(['@', '<']).skip(1).filter(|part| part.len() < word.len());
    let parts = [Some(word), value, glued, behind, address].into_iter().flatten().chain(listed).chain(told);
    for part in parts.filter(|part| !part.is_empty()) {
        let file = match part.strip_prefix("~/") {
            Some(rest) => Files::InHome(rest.to_owned()),
            None => Files::Named(part.to_owned()),
        };
        if !step.may_name.contains(&file) {
            step.may_name.push(file);
        }
    }
}

/// Files of the machine that a command in a container is told by the names they have in there: `-v .:/w … cat /w/x`.
pub(super) fn may_name_inside(args: &[Arg], step: &mut Step) {
    let Some((name, rest)) = args.split_first() else { return };
    if !matches!(name.literal().map(base_name), Some("docker" | "podman" | "nerdctl")) {
        return;
    }
    let words: Vec<String> = rest.iter().map(|arg| arg.seen_from_here().unwrap_or_default()).collect();
    let shown: Vec<(&str, &str)> = words.iter().filter_map(|word| shown_as(word)).collect();
    let divides = |c: char| c.is_whitespace() || "'\"`()[]{};,=<>|&\\".contains(c);
    for (outside, inside) in shown {
        for path in words.iter().flat_map(|word| word.split(divides)) {
            if let Some(below) = path.strip_prefix(inside).filter(|below| below.starts_with('/')) {
                let file = Files::Named(format!("{outside}{below}"));
                if !step.may_name.contains(&file) {
                    step.may_name.push(file.clone());
                    step.may_write.push(file);
                }
            }
        }
    }
}

/// What is shown in a container, and where: `src:/s`, `--volume=src:/s`, `type=bind,source=src,target=/s`.
fn shown_as(word: &str) -> Option<(&str, &str)> {
    let field = |names: &[&str]| {
        word.split(',')
            .filter_map(|part| part.rsplit_once('='))
            .find(|(name, _)| names.iter().any(|known| name.rsplit('=').next() == Some(known)))
    };
    if let (Some((_, outside)), Some((_, inside))) =
        (field(&["source", "src"]), field(&["target", "dst", "destination"]))
    {
        return Some((outside, inside));
    }
    let pair = word.strip_prefix("--volume=").or_else(|| word.strip_prefix("-v")).unwrap_or(word);
    let mut parts = pair.split(':');
    let (outside, inside) = (parts.next()?, parts.next()?);
    (inside.starts_with('/') && !inside.starts_with("//") && !outside.is_empty()).then_some((outside, inside))
}
