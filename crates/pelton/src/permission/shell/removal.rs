//! Removals: of what, as far as the words say. Whether nobody recovers from it, the gate knows.

use pelton_shell::{Command, Part, further_commands};

use super::HOLE;
use super::arg::{Arg, Files};
use super::carried::words_of;
use super::decoded::{Output, output_of_line};
use super::find;
use super::launch::{base_name, is_shell};

/// Something that is taken away with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Removal {
    /// This; with a star at its end, everything in it.
    Of(Files),
    /// What `find` finds there, whatever its name.
    Found(Files),
    /// What `find` finds there, of certain names.
    FoundSome(Files),
    /// Whatever is in a directory that only a variable names. Without a value it is the root.
    UnderVariable(String),
    /// A path that begins with a variable. Without a value it is this one.
    IfUnset(String),
}

impl Removal {
    /// The same in another directory, if that makes a difference.
    pub fn below(&self, dir: &str) -> Option<Self> {
        match self {
            Self::Of(files) => files.below(dir).map(Self::Of),
            Self::Found(files) => files.below(dir).map(Self::Found),
            Self::FoundSome(files) => files.below(dir).map(Self::FoundSome),
            Self::UnderVariable(_) | Self::IfUnset(_) => None,
        }
    }
}

pub(super) const TOP_OF_REPOSITORY: &str = "git rev-parse --show-toplevel";

/// Variables that hold paths wherever a line is run.
const PATHS_KEPT: &[&str] = &["BASH", "HOME", "OLDPWD", "PATH", "PWD", "SHELL", "_"];

/// Tests of `find` that leave most files alone.
const NARROWING: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-empty",
    "-size",
    "-mtime",
    "-mmin",
    "-ctime",
    "-cmin",
    "-atime",
    "-amin",
    "-newer",
    "-newermt",
    "-user",
    "-group",
    "-perm",
    "-inum",
    "-samefile",
    "-lname",
];

/// What a command takes away.
pub(super) fn removals(args: &[Arg]) -> Vec<Removal> {
    let Some((name, rest)) = args.split_first() else { return Vec::new() };
    match name.literal().map(base_name) {
        Some("rm" | "rmdir") => {
            let mut are_options_over = false;
            let mut removed = Vec::new();
            for arg in rest {
                if !are_options_over && arg.prefix().starts_with('-') {
                    are_options_over = arg.literal() == Some("--");
                } else {
                    removed.extend(removal(arg));
                    removed.extend(hidden(arg));
                    removed.extend(said(arg).iter().filter_map(removal));
                    removed.extend(arg.in_braces().flat_map(words_of).filter_map(|arg| removal(&arg)));
                }
            }
            removed
        }
        Some("find") => found(rest),
        Some("fd" | "fdfind") => found_by_name(rest),
        _ => Vec::new(),
    }
}

/// What `fd` finds and hands to `rm`. Its first word says what names look like.
fn found_by_name(args: &[Arg]) -> Vec<Removal> {
    let is_run = |arg: &Arg| matches!(arg.literal(), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(at) = args.iter().position(is_run) else { return Vec::new() };
    let program = args.get(at + 1).and_then(Arg::literal).map(base_name);
    if !matches!(program, Some("rm" | "rmdir" | "sh" | "bash")) {
        return Vec::new();
    }
    let words: Vec<&Arg> = args[..at].iter().filter(|arg| !arg.prefix().starts_with('-')).collect();
    let takes_all = words.first().is_none_or(|pattern| matches!(pattern.literal(), Some("." | "" | ".*")));
    let place = |files: Files| if takes_all { Removal::Found(files) } else { Removal::FoundSome(files) };
    match words.get(1..).filter(|starts| !starts.is_empty()) {
        Some(starts) => starts.iter().filter_map(|start| start.probable_files()).map(place).collect(),
        None => vec![place(Files::Named(".".to_owned()))],
    }
}

fn found(args: &[Arg]) -> Vec<Removal> {
    let (starts, expression) = find::split(args);
    let removes = |arg: &Arg| matches!(arg.literal(), Some("-delete"));
    let runs = |at: usize| {
        matches!(expression[at].literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir"))
            && match expression.get(at + 1).and_then(Arg::literal).map(base_name) {
                Some("rm" | "rmdir") => true,
                Some(name) if is_shell(name) => may_remove(&expression[at + 2..]),
                _ => false,
            }
    };
    if !expression.iter().any(removes) && !(0..expression.len()).any(runs) {
        return Vec::new();
    }
    let narrows = |pair: &[Arg]| {
        let test = pair[0].literal().is_some_and(|test| NARROWING.contains(&test));
        test && pair[1].literal().is_none_or(|value| !matches!(value, "*" | ".*" | "**" | "./*"))
    };
    let some =
        expression.windows(2).any(narrows) || expression.iter().any(|arg| arg.literal() == Some("-empty"));
    let place = |files: Files| if some { Removal::FoundSome(files) } else { Removal::Found(files) };
    if starts.is_empty() {
        return vec![place(Files::Named(".".to_owned()))];
    }
    starts
        .iter()
        .filter_map(|start| match start.probable_files() {
            Some(files) => Some(place(files)),
            None => removal(start),
        })
        .collect()
}

/// Whether a shell with these words may take files away: not if its text is nothing but commands that are named and do not.
fn may_remove(args: &[Arg]) -> bool {
    let Some(at) = args.iter().position(|arg| arg.literal() == Some("-c")) else { return true };
    let Some(Ok(script)) = args.get(at + 1).and_then(Arg::literal).map(pelton_shell::read) else {
        return true;
    };
    let further = script.commands.iter().flat_map(|command| further_commands(command).commands);
    let commands: Vec<Command> = script.commands.iter().cloned().chain(further).collect();
    let may = |command: &Command| match command.name().map(base_name) {
        None => !command.words.is_empty(),
        Some(name) => {
            is_shell(name)
                || matches!(name, "rm" | "rmdir" | "find" | "eval" | "." | "source" | "xargs" | "parallel")
        }
    };
    commands.iter().any(may)
}

/// A word that the line makes of a text of its own so that only running it would tell: it could be any.
fn hidden(arg: &Arg) -> Option<Removal> {
    let [Part::Substitution { inside, .. }] = arg.parts() else { return None };
    (output_of_line(inside) == Output::Hidden).then(|| Removal::UnderVariable(arg.written.clone()))
}

/// What a word becomes that says itself what it may be: `$(echo /)`, `${x:-/}`.
fn said(arg: &Arg) -> Vec<Arg> {
    match arg.parts() {
        [Part::Substitution { inside, .. }] => {
            let text = inside.trim_start();
            let said = text.strip_prefix("echo ").or_else(|| text.strip_prefix("printf "));
            let mut words = said.map(words_of).unwrap_or_else(|| led_to(text));
            if let Some(text) = output_of_line(text).text() {
                words.extend(text.split_whitespace().map(Arg::certain));
            }
            words
        }
        [Part::Parameter { plain: false, .. }] => {
            let inside =
                arg.written.trim_matches('"').strip_prefix("${").and_then(|text| text.strip_suffix('}'));
            let behind = inside.and_then(|text| {
                let name = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                name.trim_start_matches(':').strip_prefix(['-', '=', '+'])
            });
            behind.map(words_of).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The directories that a text leads to which says no more than where something is: `realpath ..`, `cd .. && pwd`.
fn led_to(text: &str) -> Vec<Arg> {
    let Ok(script) = pelton_shell::read(text) else { return Vec::new() };
    let mut led = Vec::new();
    for command in &script.commands {
        let words: Vec<Arg> = command.words.iter().map(Arg::of).collect();
        let Some((name, rest)) = words.split_first() else { continue };
        let above = match name.literal().map(base_name) {
            Some("realpath" | "readlink" | "cd") => "",
            Some("dirname") => "/..",
            _ => continue,
        };
        let seen = rest.iter().filter(|arg| !arg.prefix().starts_with('-')).filter_map(Arg::seen_from_here);
        led.extend(seen.flat_map(|path| words_of(&format!("{path}{above}"))));
    }
    led
}

fn removal(arg: &Arg) -> Option<Removal> {
    if let Some(files) = arg.probable_files() {
        return Some(Removal::Of(files));
    }
    if matches!(arg.parts(), [Part::Substitution { inside, .. }] if inside.trim() == "pwd") {
        return Some(Removal::Of(Files::Named(".".to_owned())));
    }
    // A part of what the shell keeps paths in may be any directory above.
    if let [Part::Parameter { name, plain: false, .. }] = arg.parts()
        && PATHS_KEPT.contains(&name.as_str())
        && arg.written.contains([':', '%', '#', '/'])
    {
        return Some(Removal::UnderVariable(arg.written.clone()));
    }
    // The top of the repository is where people work, or above it.
    if matches!(arg.parts(), [Part::Substitution { inside, .. }] if inside.trim() == TOP_OF_REPOSITORY) {
        return Some(Removal::Of(Files::Named(".".to_owned())));
    }
    // Whose number it is, nobody knows: what leads through a process leads anywhere.
    if arg.prefix().starts_with("/proc/") {
        return Some(Removal::Of(Files::Named(arg.with_holes().replace(HOLE, "self"))));
    }
    // The home of somebody, or where the shell has been.
    if matches!(arg.parts(), [Part::Tilde(_)] | [Part::Tilde(_), Part::Brace, ..] | [Part::Brace, ..])
        && arg.written.starts_with('~')
    {
        return Some(Removal::UnderVariable(arg.written.clone()));
    }
    let is_hole = |part: &Part| !matches!(part, Part::Literal(_) | Part::Glob(_));
    let last_hole = arg.parts().iter().rposition(is_hole)?;
    let behind = &arg.parts()[last_hole + 1..];
    let home = match (arg.parts().first(), last_hole) {
        (Some(Part::Tilde(user)), 0) if user == "~" || user.is_empty() => true,
        (Some(Part::Parameter { name, .. }), 0) => name == "HOME",
        _ => false,
    };
    if home {
        let pattern: String = behind
            .iter()
            .map(|part| match part {
                Part::Literal(text) | Part::Glob(text) => text.as_str(),
                _ => "",
            })
            .collect();
        let rest = pattern.trim_start_matches('/').to_owned();
        return Some(Removal::Of(Files::InHome(rest)));
    }
    let only_slashes = |text: &str| !text.is_empty() && text.chars().all(|c| c == '/' || c == '.');
    match behind {
        [Part::Glob(_), ..] => return Some(Removal::UnderVariable(arg.written.clone())),
        [Part::Literal(text)] if only_slashes(text) => {
            return Some(Removal::UnderVariable(arg.written.clone()));
        }
        [Part::Literal(text), Part::Glob(_), ..] if only_slashes(text) => {
            return Some(Removal::UnderVariable(arg.written.clone()));
        }
        _ => {}
    }
    let unset: String = arg
        .parts()
        .iter()
        .map(|part| match part {
            Part::Literal(text) | Part::Glob(text) => text.as_str(),
            _ => "",
        })
        .collect();
    unset.starts_with('/').then_some(Removal::IfUnset(unset))
}
