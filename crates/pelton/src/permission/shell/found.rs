//! Names that other commands of a line find: those that a loop goes through, and those that `xargs` is fed with.

use std::collections::BTreeMap;

use pelton_shell::{AssignmentKind, Command, Part, Redirection, Script};

use super::arg::{self, Arg};
use super::feed::{self, Feed};
use super::is_private;

/// The variables that hold names which other commands find: `… | while read f`, `for f in $(…)`.
pub(super) fn found_names(script: &Script) -> BTreeMap<String, Feed> {
    let mut found: BTreeMap<String, Feed> = BTreeMap::new();
    let mut set: Vec<&str> = Vec::new();
    for command in &script.commands {
        for assignment in &command.assignments {
            set.push(&assignment.name);
            if let (AssignmentKind::Loop, [Part::Substitution { inside, quoted: false }]) =
                (assignment.kind, assignment.value.parts())
                && let Some(feed) = names_of(inside)
            {
                found.insert(assignment.name.clone(), feed);
            }
        }
        if command.name() != Some("read") {
            continue;
        }
        let words: Option<Vec<&str>> = command.words.iter().map(|word| word.literal()).collect();
        let Some(["read", options @ .., name]) = words.as_deref() else { continue };
        set.push(command.words.last().and_then(|word| word.literal()).unwrap_or_default());
        let is_fed =
            command.place.stage.is_none_or(|stage| stage.number == 0) && command.redirections.is_empty();
        // All of a line goes into one variable.
        let is_whole = options.iter().all(|option| matches!(*option, "-r" | "-d" | "" | "-rd"));
        if is_fed
            && is_whole
            && let Some(stage) = command.place.fed
            && let Some(feed) = stages_before(stage.pipeline, stage.number, script)
        {
            found.insert((*name).to_owned(), feed);
        }
    }
    let sets = |command: &Command| {
        !command.words.is_empty() && command.name() != Some("read") && arg::sets_by_name(command)
    };
    let is_lost = script.commands.iter().any(sets);
    let reads = |command: &&Command| command.name() == Some("read");
    let is_one_name = |command: &Command| {
        command.words[1..]
            .iter()
            .filter(|word| !word.literal_prefix().starts_with('-'))
            .filter(|word| word.literal() != Some(""))
            .count()
            == 1
    };
    let all_plain = script.commands.iter().filter(reads).all(is_one_name);
    found.retain(|name, _| {
        !is_lost && all_plain && is_private(name) && set.iter().filter(|set| *set == name).count() == 1
    });
    found
}

/// What the stages before a command hand on to it, if it is `xargs` and they do nothing else.
pub(super) fn feed_of(command: &Command, script: &Script) -> Option<Feed> {
    let stage = command.place.stage.filter(|_| command.name() == Some("xargs"))?;
    stages_before(stage.pipeline, stage.number, script)
}

/// The names that a line writes, if it is one pipeline that writes nothing else.
pub(super) fn names_of(line: &str) -> Option<Feed> {
    let script = pelton_shell::read(line).ok()?;
    let first = script.commands.first()?.place.stage?;
    let is_stage =
        |command: &Command| command.place.stage.is_some_and(|stage| stage.pipeline == first.pipeline);
    (script.doubts.is_empty() && script.commands.iter().all(is_stage)).then_some(())?;
    stages_before(first.pipeline, script.commands.len(), &script)
}

fn stages_before(pipeline: usize, count: usize, script: &Script) -> Option<Feed> {
    let at = |number: usize| {
        let is_it = |other: &&Command| {
            other.place.stage.is_some_and(|it| it.pipeline == pipeline && it.number == number)
        };
        let before = script.commands.iter().find(is_it)?;
        let is_quiet = |redirection: &Redirection| {
            redirection.descriptor.as_deref() == Some("2")
                && redirection.target.literal() == Some("/dev/null")
        };
        let is_plain = before.assignments.is_empty() && before.redirections.iter().all(is_quiet);
        is_plain.then(|| before.words.iter().map(Arg::of).collect::<Vec<_>>())
    };
    let stages: Option<Vec<Vec<Arg>>> = (0..count).map(at).collect();
    feed::feed(&stages?)
}
