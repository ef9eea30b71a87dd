//! What the variables of a line may hold, for rules that restrict: every value that the line gives them anywhere, whichever of them it
//! is in the end. Allowances go by what is [certain](super::arg::Values).

use std::collections::{BTreeMap, BTreeSet};

use pelton_shell::{Assignment, AssignmentKind, Command, Part, RedirectionKind, Script, Word};

use super::arg::Arg;
use super::carried::words_of;
use super::declared::declared;
use super::launch::base_name;
use super::passed::looked_through;
use crate::limits::{FILLED_WORD_BYTES_MAX, LOOP_WORDS_JUDGED_MAX};

/// The values of variables, by name.
#[derive(Debug, Default)]
pub(super) struct Held {
    values: BTreeMap<String, Vec<Arg>>,
    /// Those that may hold nothing.
    unset: BTreeSet<String>,
}

impl Held {
    pub fn of(script: &Script) -> Self {
        let mut held = Self::default();
        // What a whole loop or group reads.
        let around: Vec<Arg> =
            script.commands.iter().filter(|command| command.words.is_empty()).flat_map(read_by).collect();
        for command in &script.commands {
            held.assign(command);
            // `… | while read f`, `read f < <(…)`
            if matches!(command.name(), Some("read" | "mapfile" | "readarray"))
                && let Some(name) = command.words.last().and_then(|word| word.literal())
            {
                let first = command.place.fed.or(command.place.stage).and_then(|stage| {
                    let is_first = |other: &&Command| {
                        other.place.stage.is_some_and(|it| it.pipeline == stage.pipeline && it.number == 0)
                    };
                    script.commands.iter().find(is_first)
                });
                let texts = super::passed::texts_told(command, script);
                held.add(name, texts.iter().flat_map(|text| text.split_whitespace()).map(Arg::certain));
                held.add(name, first.into_iter().flat_map(names_found));
                held.add(name, read_by(command).into_iter().chain(around.iter().cloned()));
            }
        }
        held.give(script);
        held.leave_empty(script);
        held.resolve();
        held.cut(script);
        held
    }

    /// Of the commands in a text for a shell.
    pub fn of_commands(commands: &[Command]) -> Self {
        let mut held = Self::default();
        commands.iter().for_each(|command| held.assign(command));
        held.resolve();
        held
    }

    fn assign(&mut self, command: &Command) {
        for assignment in &command.assignments {
            let values = match assignment.kind {
                AssignmentKind::Array => assignment.elements.iter().map(Arg::of).collect(),
                AssignmentKind::Append => self.appended(assignment),
                _ => vec![Arg::of(&assignment.value)],
            };
            self.add(&assignment.name, values.into_iter().flat_map(named_by));
        }
        for (name, values) in declared(command) {
            self.add(&name, values.into_iter().flat_map(named_by));
        }
        for word in words_in(command) {
            let is_more = |part: &Part| matches!(part, Part::Parameter { plain: false, .. });
            if word.parts().iter().any(is_more) {
                for (name, value) in stand_ins(word.text()) {
                    self.add(name, words_of(value).into_iter());
                }
            }
        }
    }

    /// What a variable may hold with more behind it, and that alone.
    fn appended(&self, assignment: &Assignment) -> Vec<Arg> {
        let more = Arg::of(&assignment.value);
        let before = self.values.get(&assignment.name).into_iter().flatten();
        let mut values: Vec<Arg> = before.map(|before| before.followed_by(&more)).collect();
        values.push(more);
        values
    }

    /// What functions are called with is `$1` and the like inside of them.
    fn give(&mut self, script: &Script) {
        let in_function = |command: &&Command| command.place.in_function;
        if !script.commands.iter().any(|command| in_function(&command)) {
            return;
        }
        let outside = script.commands.iter().filter(|command| !in_function(command));
        let words: Vec<Arg> = outside.flat_map(|command| command.words.iter().skip(1)).map(Arg::of).collect();
        for name in ["1", "2", "3", "@", "*"] {
            self.add(name, words.iter().filter(|word| word.literal().is_some()).cloned());
        }
    }

    /// What nobody sets may be nothing, so that what stands beside it is the whole word: `.e${x}nv`.
    fn leave_empty(&mut self, script: &Script) {
        for word in script.commands.iter().flat_map(words_in).filter(|word| word.literal().is_none()) {
            for part in word.parts() {
                if let Part::Parameter { name, plain, .. } = part
                    && !SET_ALREADY.contains(&name.as_str())
                    && (!plain || !self.values.contains_key(name))
                {
                    self.unset.insert(name.clone());
                }
            }
        }
    }

    /// A variable that is written with a part cut off or replaced holds what that leaves: `${f%.bak}`, `${f/x/y}`.
    fn cut(&mut self, script: &Script) {
        let mut left: Vec<(String, Arg)> = Vec::new();
        for word in script.commands.iter().flat_map(words_in).filter(|word| word.literal().is_none()) {
            for (name, how) in changes(word.text()) {
                let values = self.values.get(name).into_iter().flatten().filter_map(Arg::literal);
                let values = values.filter(|value| value.len() <= FILLED_WORD_BYTES_MAX);
                let changed = values.filter_map(|value| changed(value, how));
                let changed = changed.filter(|value| value.len() <= FILLED_WORD_BYTES_MAX);
                left.extend(changed.map(|value| (name.to_owned(), Arg::certain(&value))));
            }
        }
        for (name, value) in left {
            self.add(&name, std::iter::once(value));
        }
    }

    /// Variables whose value is that of another hold what the other does.
    fn resolve(&mut self) {
        let more: Vec<(String, Vec<Arg>)> = self
            .values
            .iter()
            .map(|(name, values)| {
                (
                    name.clone(),
                    values
                        .iter()
                        .flat_map(|value| self.rounds(std::slice::from_ref(value)))
                        .flatten()
                        .collect(),
                )
            })
            .collect();
        for (name, values) in more {
            self.add(&name, values.into_iter());
        }
    }

    fn add(&mut self, name: &str, values: impl Iterator<Item = Arg>) {
        let known = self.values.entry(name.to_owned()).or_default();
        for value in values {
            if known.len() < LOOP_WORDS_JUDGED_MAX && !known.contains(&value) {
                known.push(value);
            }
        }
    }

    /// The words with the values in the place of variables, once for each of the values.
    pub fn rounds(&self, args: &[Arg]) -> Vec<Vec<Arg>> {
        let used: Vec<(&String, &Vec<Arg>)> = self
            .values
            .iter()
            .filter(|(name, values)| !values.is_empty() && args.iter().any(|arg| arg.uses(name)))
            .collect();
        let count = used.iter().map(|(_, values)| values.len()).max().unwrap_or_default();
        let round = |at: usize| {
            let fill = |arg: &Arg| {
                used.iter().fold(arg.clone(), |arg, (name, values)| {
                    arg.with_any_value(name, values[at % values.len()].parts())
                })
            };
            args.iter().map(fill).collect()
        };
        (0..count).map(round).collect()
    }

    /// The same, and once more with nothing in the place of what may hold nothing.
    pub fn rounds_and_without(&self, args: &[Arg]) -> Vec<Vec<Arg>> {
        let mut rounds = self.rounds(args);
        let unset: Vec<&String> =
            self.unset.iter().filter(|name| args.iter().any(|arg| arg.uses(name))).collect();
        if !unset.is_empty() {
            let emptied = |arg: &Arg| {
                let empty = [Part::Literal(String::new())];
                unset.iter().fold(arg.clone(), |arg, name| arg.with_any_value(name, &empty))
            };
            let mut from = rounds.clone();
            from.push(args.to_vec());
            rounds.extend(from.iter().map(|words| words.iter().map(emptied).collect()));
        }
        rounds
    }
}

/// Variables that hold something wherever a line is run.
const SET_ALREADY: &[&str] =
    &["HOME", "PWD", "USER", "LOGNAME", "SHELL", "PATH", "HOSTNAME", "UID", "$", "?", "#", "0"];

/// The words of a command that may name files.
fn words_in(command: &Command) -> impl Iterator<Item = &Word> {
    let targets = command.redirections.iter().map(|redirection| &redirection.target);
    let values = command.assignments.iter().map(|assignment| &assignment.value);
    command.words.iter().chain(targets).chain(values)
}

/// Variables with what stands in for them, or in their place: `${x:-y}`, `${x=y}`, `${x:+y}`.
pub(super) fn stand_ins(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("${") {
        let inside = &text[at + 2..];
        let name = inside.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let behind = inside[name.len()..].trim_start_matches(':');
        let Some(value) = behind.strip_prefix(['-', '=', '+']) else { continue };
        // Where this one ends, whatever others stand in it.
        let mut depth = 0usize;
        let end = value.find(|c| match c {
            '{' => {
                depth += 1;
                false
            }
            '}' if depth == 0 => true,
            '}' => {
                depth -= 1;
                false
            }
            _ => false,
        });
        found.extend(end.map(|end| (name, &value[..end])));
    }
    found
}

/// Variables with how they are changed where they are written: `${x%y}`, `${x//y/z}`, `${x:1}`.
pub(super) fn changes(text: &str) -> Vec<(&str, &str)> {
    let begun = text.match_indices("${").filter_map(|(at, _)| text[at + 2..].split_once('}'));
    let changes = begun.filter_map(|(inside, _)| {
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        inside[end..].starts_with(['%', '#', '/', ':']).then(|| inside.split_at(end))
    });
    changes.collect()
}

/// What is left of a value. Patterns count where they are a star with a text before or behind it.
fn changed(value: &str, how: &str) -> Option<String> {
    if let Some(end) = how.strip_prefix('%') {
        let (all, end) = end.strip_prefix('%').map_or((false, end), |end| (true, end));
        return match end.strip_suffix('*') {
            Some(mark) if all => value.find(mark).map(|at| value[..at].to_owned()),
            Some(mark) => value.rfind(mark).map(|at| value[..at].to_owned()),
            None => value.strip_suffix(end).map(str::to_owned),
        };
    }
    if let Some(start) = how.strip_prefix('#') {
        let (all, start) = start.strip_prefix('#').map_or((false, start), |start| (true, start));
        return match start.strip_prefix('*') {
            Some(mark) if all => value.rfind(mark).map(|at| value[at + mark.len()..].to_owned()),
            Some(mark) => value.find(mark).map(|at| value[at + mark.len()..].to_owned()),
            None => value.strip_prefix(start).map(str::to_owned),
        };
    }
    if let Some(replaced) = how.strip_prefix('/') {
        let (all, replaced) = replaced.strip_prefix('/').map_or((false, replaced), |rest| (true, rest));
        let (old, new) = replaced.split_once('/').unwrap_or((replaced, ""));
        let times = if all { usize::MAX } else { 1 };
        return (!old.is_empty() && new.len() <= FILLED_WORD_BYTES_MAX)
            .then(|| value.replacen(old, new, times));
    }
    let mut numbers = how.strip_prefix(':')?.split(':').map(|number| number.trim().parse::<usize>().ok());
    let from = numbers.next()??;
    let rest = value.get(from..)?;
    match numbers.next() {
        None => Some(rest.to_owned()),
        Some(length) => Some(rest.get(..length?).unwrap_or(rest).to_owned()),
    }
}

/// The names that a command reads from a text or from other commands, by a redirection.
fn read_by(command: &Command) -> Vec<Arg> {
    let mut names = Vec::new();
    for redirection in &command.redirections {
        let target = Arg::of(&redirection.target);
        let pipe = target.written.strip_prefix("<(").and_then(|text| text.strip_suffix(')'));
        match (pipe.filter(|_| target.is_pipe()), redirection.kind) {
            (Some(inside), _) => names.extend(first_names(inside)),
            (None, RedirectionKind::HereString | RedirectionKind::HereDocument { .. }) => {
                names.extend(target.with_holes().split_whitespace().map(Arg::certain));
            }
            _ => {}
        }
    }
    names
}

/// The word itself, or where the commands look that say what it is.
fn named_by(word: Arg) -> Vec<Arg> {
    let [Part::Substitution { inside, .. }] = word.parts() else { return vec![word] };
    first_names(inside)
}

fn first_names(line: &str) -> Vec<Arg> {
    let Ok(script) = pelton_shell::read(line) else { return Vec::new() };
    script.commands.first().map(names_found).unwrap_or_default()
}

/// Where the names come from that a command writes, and names that it writes as they are.
fn names_found(command: &Command) -> Vec<Arg> {
    let args: Vec<Arg> = command.words.iter().skip(1).map(Arg::of).collect();
    match command.name().map(base_name) {
        Some("echo" | "printf") => args,
        name => looked_through(name, &args),
    }
}
