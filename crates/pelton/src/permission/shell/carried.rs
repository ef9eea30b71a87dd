//! Removals whose targets are written elsewhere in the line: in a variable, before a pipe to `xargs`, behind `:::`. What is
//! found here is only asked about, so everything that might be meant counts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pelton_shell::{AssignmentKind, Command, Part, RedirectionKind, Script};

use super::arg::{Arg, Files};
use super::decoded::{Output, output_before, output_of_line};
use super::launch::base_name;
use super::removal::{Removal, TOP_OF_REPOSITORY, removals};
use crate::limits::LOOP_ROUNDS_JUDGED_MAX;

/// The values that variables get anywhere in a script, as far as they are written there.
#[derive(Debug, Default)]
pub(super) struct Carried<'s> {
    values: BTreeMap<&'s str, Vec<Cow<'s, [Part]>>>,
    /// Words that become elements of arrays, or arguments of functions and of the line itself.
    loose: Vec<Arg>,
}

impl<'s> Carried<'s> {
    pub fn of(script: &'s Script) -> Self {
        let mut values: BTreeMap<&str, Vec<Cow<'_, [Part]>>> = BTreeMap::new();
        for assignment in script.commands.iter().flat_map(|command| &command.assignments) {
            let is_written = |part: &Part| match part {
                Part::Literal(_) | Part::Glob(_) | Part::Tilde(_) => true,
                Part::Parameter { name, plain, .. } => *plain && matches!(name.as_str(), "HOME" | "PWD"),
                _ => false,
            };
            let is_value = matches!(assignment.kind, AssignmentKind::Plain | AssignmentKind::Loop);
            // Where a command says it, what it says is known of some.
            let is_said = matches!(
                assignment.value.parts(),
                [Part::Substitution { inside, .. }] if output_of_line(inside) != Output::Hidden
            );
            if is_value && (is_said || assignment.value.parts().iter().all(is_written)) {
                values.entry(&assignment.name).or_default().push(Cow::Borrowed(assignment.value.parts()));
            }
        }
        let reads = |command: &&Command| matches!(command.name(), Some("read" | "mapfile" | "readarray"));
        for command in script.commands.iter().filter(reads) {
            let words = words_read(command, script);
            for name in command.words.iter().skip(1).filter_map(|word| word.literal()) {
                let known = values.entry(name).or_default();
                known.extend(words.iter().map(|word| Cow::Owned(word.parts().to_vec())));
            }
        }
        Self { values, loose: loose_words(script) }
    }

    /// Whether no variable gets a value that is written.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.loose.is_empty()
    }

    /// Words that become elements of arrays, or arguments of functions and of the line itself.
    pub fn loose(&self) -> &[Arg] {
        &self.loose
    }

    /// What a command takes away by way of variables.
    pub fn removed_by(&self, args: &[Arg]) -> Vec<Removal> {
        let is_removal = args.first().and_then(Arg::literal).map(base_name);
        if self.is_empty() || !matches!(is_removal, Some("rm" | "rmdir" | "find")) {
            return Vec::new();
        }
        let is_loose = |part: &Part| match part {
            Part::Parameter { name, plain, .. } => {
                !plain || name.chars().all(|c| c.is_ascii_digit() || "@*".contains(c))
            }
            _ => false,
        };
        let used = |arg: &Arg, name: &str| arg.parts().iter().any(|part| is_value_of(part, name));
        let mut removed = Vec::new();
        if args.iter().any(|arg| arg.parts().iter().any(is_loose)) {
            let words: Vec<Arg> = args.iter().chain(&self.loose).cloned().collect();
            removed.extend(removals(&words));
        }
        for (name, values) in &self.values {
            if !args.iter().any(|arg| used(arg, name)) {
                continue;
            }
            for value in values.iter().take(LOOP_ROUNDS_JUDGED_MAX) {
                let filled: Vec<Arg> = args.iter().map(|arg| arg.with_value(name, value)).collect();
                removed.extend(removals(&filled));
            }
        }
        removed
    }
}

/// What `read` gets to read, where it is written: beside itself, around its loop, or by an `echo` before it.
fn words_read(command: &Command, script: &Script) -> Vec<Arg> {
    let mut words = texts_beside(command);
    words.extend(script.commands.iter().filter(|around| around.words.is_empty()).flat_map(texts_beside));
    let said = command.place.fed.or(command.place.stage).and_then(|stage| {
        let is_first = |other: &&Command| {
            other.place.stage.is_some_and(|it| it.pipeline == stage.pipeline && it.number == 0)
        };
        script.commands.iter().find(is_first)
    });
    let said = said.filter(|said| matches!(said.name(), Some("echo" | "printf")));
    words.extend(said.into_iter().flat_map(|said| said.words.iter().skip(1)).map(Arg::of));
    words
}

/// The words of the texts that a command is told.
fn texts_beside(command: &Command) -> Vec<Arg> {
    let is_text = |kind| matches!(kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. });
    let mut words = Vec::new();
    for text in command.redirections.iter().filter(|redirection| is_text(redirection.kind)) {
        match text.target.literal() {
            Some(text) => words.extend(text.split_whitespace().map(Arg::certain)),
            None => words.push(Arg::of(&text.target)),
        }
    }
    words
}

/// The words that arrays, functions and `set` get.
fn loose_words(script: &Script) -> Vec<Arg> {
    let has_function = script.commands.iter().any(|command| command.place.in_function);
    let mut words: Vec<Arg> = Vec::new();
    for command in &script.commands {
        let arrays = command.assignments.iter().filter(|it| it.kind == AssignmentKind::Array);
        for array in arrays {
            words.extend(array.elements.iter().map(Arg::of));
        }
        if matches!(command.name(), Some("mapfile" | "readarray" | "read")) {
            words.extend(words_read(command, script));
        }
        // `declare -a a=(…)`
        let declared = command.words.iter().filter(|word| word.parts().contains(&Part::Array));
        let inside = declared.filter_map(|word| word.text().split_once("=(")?.1.strip_suffix(')'));
        words.extend(inside.flat_map(words_of));
        let gives = command.name() == Some("set") || has_function && !command.place.in_function;
        words.extend(command.words.iter().skip(1).filter(|_| gives).map(Arg::of));
    }
    words
}

/// A text as words of a command. Those of all its lines count, for where it is divided into words a new line is a blank.
pub(super) fn words_of(text: &str) -> Vec<Arg> {
    let Ok(script) = pelton_shell::read(&format!("echo {text}")) else { return Vec::new() };
    let words = script.commands.iter().flat_map(|command| &command.words);
    words.skip(1).map(Arg::of).collect()
}

pub(super) fn is_value_of(part: &Part, variable: &str) -> bool {
    matches!(part, Part::Parameter { name, plain: true, .. } if name == variable)
}

/// What `xargs` and `parallel` take away because another command, or a text, hands them the names.
pub(super) fn removed_by_feeding(command: &Command, inner: &[Command], script: &Script) -> Vec<Removal> {
    let is_fed = command.name().map(base_name).is_some_and(|name| matches!(name, "xargs" | "parallel"));
    if !is_fed {
        return Vec::new();
    }
    let mut removed = Vec::new();
    for removal in inner.iter().filter(|inner| inner.name().map(base_name).is_some_and(is_removal)) {
        let words: Vec<Arg> = removal.words.iter().map(Arg::of).collect();
        let fed = fed_words(command, script);
        removed.extend(removals(&words.into_iter().chain(fed).collect::<Vec<_>>()));
        // Whatever is listed there goes.
        if let Some(listed) = stage_before(command, script).filter(|args| is_named(args, &["ls"])) {
            let mut operands: Vec<Arg> =
                listed.into_iter().skip(1).filter(|arg| !arg.prefix().starts_with('-')).collect();
            if operands.is_empty() {
                operands = words_of("*");
            }
            removed
                .extend(removals(&std::iter::once(Arg::certain("rm")).chain(operands).collect::<Vec<_>>()));
        }
        // They say where people work.
        if let Some(said) = stage_before(command, script)
            && matches!(super::step::written(&said).as_str(), "pwd" | TOP_OF_REPOSITORY)
        {
            removed.push(Removal::Of(Files::Named(".".to_owned())));
        }
        // Whatever is found there goes.
        if let Some(mut search) = stage_before(command, script).filter(|args| is_named(args, &["find"])) {
            search.push(Arg::certain("-delete"));
            removed.extend(removals(&search));
        }
    }
    removed
}

fn is_removal(name: &str) -> bool {
    matches!(name, "rm" | "rmdir")
}

/// The words that are handed over, where they are written.
fn fed_words(command: &Command, script: &Script) -> Vec<Arg> {
    let said = stage_before(command, script).filter(|args| is_named(args, &["echo", "printf"]));
    let mut words: Vec<Arg> = said.into_iter().flat_map(|args| args.into_iter().skip(1)).collect();
    words.extend(texts_beside(command));
    if let Some(text) = output_before(command, script).text() {
        words.extend(text.split_whitespace().map(Arg::certain));
    }
    // `parallel rm ::: names`.
    let behind = command.words.iter().skip_while(|word| word.literal() != Some(":::")).skip(1);
    words.extend(behind.map(Arg::of));
    words
}

fn is_named(args: &[Arg], names: &[&str]) -> bool {
    args.first().and_then(Arg::literal).map(base_name).is_some_and(|name| names.contains(&name))
}

fn stage_before(command: &Command, script: &Script) -> Option<Vec<Arg>> {
    let stage = command.place.stage?;
    let number = stage.number.checked_sub(1)?;
    let is_it = |other: &&Command| {
        other.place.stage.is_some_and(|it| it.pipeline == stage.pipeline && it.number == number)
    };
    let before = script.commands.iter().find(is_it)?;
    Some(before.words.iter().map(Arg::of).collect())
}
