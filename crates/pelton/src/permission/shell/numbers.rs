//! Variables that can hold nothing but numbers, and arithmetic that evaluates nothing else.
//!
//! Arithmetic evaluates what a variable holds, and a subscript in there can run a command. A variable that gets nothing but
//! numbers in a line, and that no program looks for, holds a number or nothing.

use std::collections::BTreeSet;

use pelton_shell::{Assignment, AssignmentKind, Part, Script};

use super::arg::{names_read, sets_by_name};
use super::assigned::is_private;

/// What is known about the variables of a line.
#[derive(Debug)]
pub(super) struct Numbers<'s> {
    /// They may hold any text.
    texts: BTreeSet<&'s str>,
    /// They get a number, and never anything else.
    numbers: BTreeSet<&'s str>,
    /// Something sets variables whose names nobody knows.
    is_lost: bool,
}

impl<'s> Numbers<'s> {
    pub fn of(script: &'s Script) -> Self {
        let mut texts = BTreeSet::new();
        let mut numbers = BTreeSet::new();
        for assignment in script.commands.iter().flat_map(|command| &command.assignments) {
            let set = if is_number(assignment) { &mut numbers } else { &mut texts };
            set.insert(assignment.name.as_str());
        }
        numbers.retain(|name| !texts.contains(name) && is_private(name));
        let mut is_lost = false;
        for command in script.commands.iter().filter(|command| !command.words.is_empty()) {
            match names_read(command) {
                Some(names) => texts.extend(names),
                None => is_lost |= sets_by_name(command),
            }
        }
        numbers.retain(|name| !texts.contains(name));
        Self { texts, numbers, is_lost }
    }

    /// Whether a variable holds a number, and nothing else.
    pub fn is_number(&self, name: &str) -> bool {
        !self.is_lost && self.numbers.contains(name)
    }

    /// Whether arithmetic, as written, evaluates nothing but numbers.
    pub fn settle(&self, arithmetic: &str) -> bool {
        let counted = arithmetic.strip_prefix("$(").and_then(|text| text.strip_suffix(')'));
        if counted.is_some_and(counts) {
            return true;
        }
        let is_fine =
            |name: &str| (is_private(name) || OF_THE_SHELL.contains(&name)) && !self.texts.contains(name);
        !self.is_lost && names_in(arithmetic).is_some_and(|names| names.into_iter().all(is_fine))
    }
}

/// Variables that the shell itself keeps, and that hold numbers whatever the environment says.
const OF_THE_SHELL: &[&str] =
    &["RANDOM", "SRANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "BASHPID", "PPID", "UID", "EUID"];

/// The variables of arithmetic; `None` if there is more in it than variables, numbers and signs.
pub(super) fn names_in(arithmetic: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = arithmetic;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if is_word(c) {
            let (word, behind) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
            let is_hexadecimal = || {
                let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or_default();
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            };
            let is_decimal = word.bytes().all(|byte| byte.is_ascii_digit());
            rest = behind;
            if !c.is_ascii_digit() {
                names.push(word);
            } else if let Some(behind) = behind.strip_prefix('#').filter(|_| is_decimal) {
                // A number to a base: what follows are its digits.
                rest = behind.trim_start_matches(is_word);
                (rest.len() < behind.len()).then_some(())?;
            } else if !is_decimal && !is_hexadecimal() {
                return None;
            }
        } else if let Some(behind) = rest.strip_prefix("$((").or_else(|| rest.strip_prefix("$[")) {
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("$(") {
            // A number that a command tells.
            let mut ends = behind.match_indices(')').map(|(at, _)| at);
            let end = ends.find(|end| counts(&behind[..*end]))?;
            rest = &behind[end + 1..];
        } else if c == '$' {
            // `$i` is what `i` is; anything else behind the sign is more.
            rest = &rest[1..];
            rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then_some(())?;
        } else if " \t\n+-*/%<>=!&|^~?:,;()\"".contains(c) {
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(names)
}

/// Whether a variable gets a number.
fn is_number(assignment: &Assignment) -> bool {
    let is_value = matches!(assignment.kind, AssignmentKind::Plain | AssignmentKind::Loop);
    is_value
        && match assignment.value.parts() {
            [Part::Literal(text)] => {
                !text.is_empty() && text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            [Part::Arithmetic] => true,
            // Each of the words that a loop goes through.
            [Part::Substitution { inside, quoted: false }] if assignment.kind == AssignmentKind::Loop => {
                counts(inside) || counts_up(inside)
            }
            [Part::Substitution { inside, .. }] => counts(inside),
            _ => false,
        }
}

/// Whether all that a line prints are numbers: `seq 1 "$n"`. Behind the first it takes no options.
fn counts_up(line: &str) -> bool {
    let Ok(script) = pelton_shell::read(line) else { return false };
    let [command] = script.commands.as_slice() else { return false };
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match command.words.as_slice() {
        [name, first, ..] => {
            script.doubts.is_empty()
                && command.assignments.is_empty()
                && name.literal() == Some("seq")
                && first.literal().is_some_and(is_whole)
        }
        _ => false,
    }
}

/// Whether all that a line prints is one number.
pub(super) fn counts(line: &str) -> bool {
    let Ok(script) = pelton_shell::read(line) else { return false };
    let Some(last) = script.commands.last() else { return false };
    let words: Option<Vec<&str>> = last.words.iter().map(|word| word.literal()).collect();
    let in_one_pipeline = script
        .commands
        .iter()
        .enumerate()
        .all(|(at, command)| command.place.stage.is_some_and(|stage| stage.number == at));
    in_one_pipeline
        && script.doubts.is_empty()
        && matches!(
            words.as_deref(),
            Some(["wc", "-l" | "-c" | "-w" | "-m"] | ["nproc"] | ["date", "+%s"] | ["id", "-u"])
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settles(line: &str) -> bool {
        let script = pelton_shell::read(line).unwrap();
        let numbers = Numbers::of(&script);
        script.doubts.iter().all(|doubt| numbers.settle(&doubt.text))
    }

    #[test]
    fn arithmetic_over_numbers_runs_nothing() {
        for line in [
            "for ((i=0;i<3;i++)); do echo $i; done",
            "i=0; while ((i < 3)); do ((i++)); done",
            "x=5; echo $((x*2))",
            "x=5; echo $(($x*2))",
            "n=$(ls | wc -l); echo $((n+1))",
            "for i in $(seq 1 5); do echo $((i+1)); done",
            "for i in 1 2 3; do echo $((i * i)); done",
            "echo $((16#ff)) $((0x1F + 2#101))",
            "echo $((RANDOM % 10))",
            "i=1; while read -r l; do i=$((i+1)); done < f",
            "echo $(( $(wc -l < a) + $(find . | wc -l) ))",
        ] {
            assert!(settles(line), "{line}");
        }
        for line in [
            "x='a[$(id)]'; echo $((x))",
            "x=y; y='a[$(id)]'; echo $((x))",
            "read x; echo $((x))",
            "echo $((a[1]))",
            "echo $((PATH=1))",
            "x=$(cat f); echo $((x))",
            "x=1; read x; echo $((x))",
            "x=1; read -r a x b < f; echo $((x))",
            "x=1; read 'a[$(id)]'; echo $((x))",
            "echo $(( $(cat f) + $(wc -l) ))",
            "for i in $(seq -f 'a[$(id)]' 1 2); do echo $((i)); done",
            "x=$(seq 1 5); echo $((x))",
            "x=$(wc -l f); echo $((x))",
            "echo $(($1))",
            "echo $((${x}))",
            "echo $((x=$(id)))",
            "printf -v x '%s' y; echo $((x))",
            "x+='a'; echo $((x))",
            "x=(1 2); echo $((x))",
            "echo $((IFS))",
            "echo $((x#1))",
            "echo $((16#$x))",
            "echo $((0xg))",
            "RANDOM='a[$(id)]'; echo $((RANDOM))",
            "x=$((1)); declare x=y; echo $((x))",
        ] {
            assert!(!settles(line), "{line}");
        }
    }
}
