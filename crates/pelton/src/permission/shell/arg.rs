//! A word of a command as it is judged: what is certain about it, with the variables of loops filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pelton_shell::{Assignment, AssignmentKind, Command, DoubtKind, Part, Redirection, Script, Word};

use super::super::rule::HOLE;
use super::carried::is_value_of;
use super::git;
use super::numbers::{self, Numbers, names_in};
use super::removal::TOP_OF_REPOSITORY;
use crate::limits::{FILLED_WORD_BYTES_MAX, LOOP_ROUNDS_JUDGED_MAX, LOOP_WORDS_JUDGED_MAX};

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Arg {
    /// As written.
    pub written: String,
    parts: Vec<Part>,
    literal: Option<String>,
    /// As written it stays one word, whatever its variables are.
    one_word: bool,
}

impl Arg {
    fn new(written: String, parts: Vec<Part>) -> Self {
        let literal = match parts.as_slice() {
            [] => Some(String::new()),
            [Part::Literal(text)] => Some(text.clone()),
            _ => None,
        };
        let one_word = literal.is_some();
        Self { written, parts, literal, one_word }
    }

    pub fn of(word: &Word) -> Self {
        let stays_one = |part: &Part| match part {
            Part::Literal(_) | Part::Arithmetic | Part::Substitution { quoted: true, .. } => true,
            Part::Parameter { name, plain, quoted } => {
                *plain && *quoted && !matches!(name.as_str(), "@" | "*")
            }
            _ => false,
        };
        Self {
            written: word.text().to_owned(),
            parts: word.parts().to_vec(),
            literal: word.literal().map(str::to_owned),
            one_word: word.parts().iter().all(stays_one),
        }
    }

    /// Text that is what it says.
    pub fn certain(text: &str) -> Self {
        Self::new(text.to_owned(), vec![Part::Literal(text.to_owned())])
    }

    /// Any number of words that nobody knows.
    pub fn unknown() -> Self {
        Self::new(String::new(), vec![unknown()])
    }

    /// What the program gets, when that is certain.
    pub fn literal(&self) -> Option<&str> {
        self.literal.as_deref()
    }

    /// What stands before the first uncertain part.
    pub fn prefix(&self) -> &str {
        match (&self.literal, self.parts.first()) {
            (Some(text), _) => text,
            (None, Some(Part::Literal(text))) => text,
            _ => "",
        }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What it says with some number in the place of each that is not certain but is one, where that is `fine` behind what it
    /// says before.
    pub fn with_numbers(&self, fine: impl Fn(&str) -> bool) -> Option<String> {
        if self.literal.is_some() {
            return self.literal.clone();
        }
        let mut said = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => said.push_str(text),
                Part::Arithmetic if fine(&said) => said.push('1'),
                _ => return None,
            }
        }
        Some(said)
    }

    /// The text with a hole for every part that is not certain.
    pub fn with_holes(&self) -> String {
        if let Some(text) = &self.literal {
            return text.clone();
        }
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                _ => text.push(HOLE),
            }
        }
        text
    }

    /// What it names, if it names files in a way that is certain.
    pub fn files(&self) -> Option<Files> {
        if let Some(text) = &self.literal {
            return Some(Files::Named(text.clone()));
        }
        if let Some(rest) = self.below_here() {
            return Some(Files::Named(format!("./{rest}")));
        }
        match self.parts.as_slice() {
            [Part::Tilde(user)] if user == "~" || user.is_empty() => Some(Files::InHome(String::new())),
            [Part::Tilde(user), Part::Literal(rest)]
                if (user == "~" || user.is_empty()) && rest.starts_with('/') =>
            {
                Some(Files::InHome(rest.trim_start_matches('/').to_owned()))
            }
            parts => self.in_repository().or_else(|| pattern(parts).map(Files::Matching)),
        }
    }

    /// What it names if it begins with what git says of where the repository begins.
    fn in_repository(&self) -> Option<Files> {
        let (Part::Substitution { inside, quoted }, rest) = self.parts.split_first()? else { return None };
        let said = inside.trim();
        (said.strip_suffix("2>/dev/null").unwrap_or(said).trim_end() == TOP_OF_REPOSITORY).then_some(())?;
        let rest = match rest {
            [] => String::new(),
            [Part::Literal(rest)] if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
            _ => return None,
        };
        Some(Files::InRepository { rest, may_split: !quoted })
    }

    /// What it may name: variables that are hardly ever changed are taken for what they are.
    pub fn probable_files(&self) -> Option<Files> {
        if let Some(files) = self.files() {
            return Some(files);
        }
        let (first, rest) = self.parts.split_first()?;
        let name = match first {
            Part::Parameter { name, .. } => name.as_str(),
            Part::Tilde(place) if matches!(place.as_str(), "~+" | "+") => "PWD",
            _ => return None,
        };
        let rest = match rest {
            [] => "",
            [Part::Literal(rest)] if rest.starts_with('/') => rest.trim_start_matches('/'),
            _ => return None,
        };
        match name {
            "HOME" => Some(Files::InHome(rest.to_owned())),
            // Where a line has been is mostly where it is.
            "PWD" | "OLDPWD" => Some(Files::Named(format!("./{rest}"))),
            _ => None,
        }
    }

    /// The pattern it begins with, if everything up to the last of its stars and the like is certain.
    pub fn pattern_before_doubt(&self) -> Option<Files> {
        let end = self.parts.iter().rposition(|part| matches!(part, Part::Glob(_)))? + 1;
        let (start, rest) = match self.parts.first() {
            Some(Part::Tilde(_)) => return None,
            _ => (&self.parts[..end], &self.parts[end..]),
        };
        let path = match rest {
            [Part::Literal(_)] => &self.parts,
            _ => start,
        };
        pattern(path).map(Files::Matching)
    }

    /// The last name of a path whose beginning is not certain.
    pub fn last_name(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [.., before, Part::Literal(text)] if !matches!(before, Part::Literal(_)) => {
                text.rsplit_once('/').map(|(_, name)| name).filter(|name| !name.is_empty())
            }
            _ => None,
        }
    }

    /// Whether all that is uncertain about it are values of variables, as they are.
    pub fn has_only_values(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Literal(_) | Part::Glob(_) | Part::Tilde(_) => true,
            Part::Parameter { name, plain, .. } => *plain && !matches!(name.as_str(), "@" | "*"),
            _ => false,
        })
    }

    /// Whether it is text to whoever gets it, however it comes about: what runs for it is judged by itself, and what
    /// evaluates more than values is a doubt about the whole line.
    pub fn is_data(&self) -> bool {
        let is_text =
            |part: &Part| !matches!(part, Part::Pipe | Part::Brace | Part::Array | Part::Unreadable);
        self.parts.iter().all(is_text)
    }

    /// Whether it is the number of a process or of words, or how a command ended.
    pub fn is_count(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Parameter { name, plain: true, .. }] if matches!(name.as_str(), "$" | "!" | "#" | "?"))
    }

    /// Whether it is one variable in quotes with a name in its place where it is not set: `"${CI:-}"`.
    pub fn has_plain_stand_in(&self) -> bool {
        let [Part::Parameter { name, plain: false, quoted: true }] = self.parts.as_slice() else {
            return false;
        };
        let inside = self.written.strip_prefix("\"${").and_then(|text| text.strip_suffix("}\""));
        let behind = inside.and_then(|inside| inside.strip_prefix(name.as_str()));
        let value =
            behind.map(|text| text.trim_start_matches(':')).and_then(|text| text.strip_prefix(['-', '+']));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        value.is_some_and(|value| value.chars().all(is_plain))
    }

    /// Whether it stays one word, whatever its variables are and commands say.
    pub fn is_one_word(&self) -> bool {
        self.one_word
    }

    /// Whether commands say what it is or stand behind it, or may do so inside of `${…}`.
    pub fn has_commands(&self) -> bool {
        let may_run = |part: &Part| {
            matches!(part, Part::Substitution { .. } | Part::Pipe | Part::Parameter { plain: false, .. })
        };
        self.parts.iter().any(may_run)
    }

    /// What it says if nothing in it is uncertain but the home and the current directory, as seen from there.
    pub fn seen_from_here(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Parameter { name, plain: true, .. } if name == "PWD" => text.push('.'),
                Part::Substitution { inside, .. } if inside.trim() == "pwd" => text.push('.'),
                Part::Parameter { name, plain: true, .. } if name == "HOME" => text.push('~'),
                Part::Tilde(user) if user == "~" || user.is_empty() => text.push('~'),
                _ => return None,
            }
        }
        Some(text)
    }

    /// What braces may make of it, if nobody knows.
    pub fn in_braces(&self) -> impl Iterator<Item = &str> {
        let is_open = self.parts.contains(&Part::Brace);
        self.written.split(['{', ',', '}']).filter(move |_| is_open)
    }

    /// What is left of a word where the commands in it say nothing, if that is certain.
    pub fn without_commands(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Substitution { .. } => {}
                _ => return None,
            }
        }
        (!text.is_empty() && self.literal.is_none()).then_some(text)
    }

    /// What is written behind the current directory in `"$PWD/x"` and `"$(pwd)/x"`.
    fn below_here(&self) -> Option<&str> {
        let (first, rest) = self.parts.split_first()?;
        let is_here = match first {
            Part::Parameter { name, plain, quoted } => name == "PWD" && *plain && *quoted,
            Part::Substitution { inside, quoted } => inside == "pwd" && *quoted,
            _ => false,
        };
        match rest {
            [] if is_here => Some(""),
            [Part::Literal(rest)] if is_here && rest.starts_with('/') => Some(rest.trim_start_matches('/')),
            _ => None,
        }
    }

    /// What stands behind the first `=`, if that is certainly one.
    pub fn behind_sign(&self) -> Option<Self> {
        let (first, rest) = self.parts.split_first()?;
        let Part::Literal(text) = first else { return None };
        let (_, value) = text.split_once('=')?;
        let mut parts = vec![Part::Literal(value.to_owned())];
        // A value that is one variable is that, and not a word with one in it.
        if value.is_empty() && !rest.is_empty() {
            parts.clear();
        }
        parts.extend_from_slice(rest);
        Some(Self::new(self.written.clone(), parts))
    }

    /// The same word with a value in the place of a variable, as if it stayed one word.
    pub fn with_value(&self, variable: &str, value: &[Part]) -> Self {
        self.filled(value, |part| is_value_of(part, variable))
    }

    /// One word of this and what is put behind it.
    pub fn followed_by(&self, more: &Self) -> Self {
        let empty = vec![Part::Literal(String::new())];
        let both: Vec<Part> = self.parts.iter().chain(&more.parts).cloned().collect();
        // Parts that stand beside each other become one.
        Self::new(format!("{}{}", self.written, more.written), empty).filled(&both, |_| true)
    }

    /// Whether it is what a text for a shell was given along with: `$1`, `"$@"`.
    pub fn is_given(&self) -> bool {
        let is_given =
            |name: &str| matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit());
        self.parts.iter().any(|part| matches!(part, Part::Parameter { name, .. } if is_given(name)))
    }

    /// Whether the value of this variable, or one of its elements, is a part of it.
    pub fn uses(&self, variable: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Parameter { name, .. } if name == variable))
    }

    /// The same word with a value in the place of a variable, however the variable is written.
    pub fn with_any_value(&self, variable: &str, value: &[Part]) -> Self {
        self.filled(value, |part| matches!(part, Part::Parameter { name, .. } if name == variable))
    }

    fn filled(&self, value: &[Part], stands_in: impl Fn(&Part) -> bool) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut bytes = 0;
        for part in &self.parts {
            let new = if stands_in(part) { value } else { std::slice::from_ref(part) };
            for part in new {
                bytes += if let Part::Literal(text) = part { text.len().max(1) } else { 1 };
                if bytes > FILLED_WORD_BYTES_MAX {
                    return Self::new(self.written.clone(), vec![unknown()]);
                }
                match (parts.last_mut(), part) {
                    (Some(Part::Literal(before)), Part::Literal(more)) => before.push_str(more),
                    (_, part) => parts.push(part.clone()),
                }
            }
        }
        let stays = |part: &Part| matches!(part, Part::Literal(_) | Part::Arithmetic);
        let one_word = self.one_word || parts.iter().all(stays);
        Self { one_word, ..Self::new(self.written.clone(), parts) }
    }

    /// Whether nothing but patterns and homes is uncertain about it.
    pub fn is_sure(&self) -> bool {
        let is_sure = |part: &Part| match part {
            Part::Literal(_) | Part::Glob(_) => true,
            // The homes of others, and where the shell has been, are not known.
            Part::Tilde(user) => user == "~" || user.is_empty(),
            _ => false,
        };
        self.literal.is_some() || self.parts.iter().all(is_sure)
    }

    /// The files that it matches, if it is a pattern that matches some and not all: `*.md`, `src*`. None of `*/` is an option, whatever it is
    /// called.
    pub fn matches_some(&self) -> Option<Files> {
        let is_some = |text: &str| text.contains(|c: char| c.is_ascii_alphanumeric()) || text.ends_with('/');
        self.files().filter(|files| matches!(files, Files::Matching(text) if is_some(text)))
    }

    /// Whether it is certain which files it names, if it names any: such a word, one in the current directory, or a pipe.
    pub fn names_surely(&self) -> bool {
        self.is_sure() || self.below_here().is_some() || self.in_repository().is_some() || self.is_pipe()
    }

    /// Whether it is the name of a pipe to commands.
    pub fn is_pipe(&self) -> bool {
        self.parts == [Part::Pipe]
    }

    /// Whether it is, or may become, an option: nothing keeps its first character from being a dash.
    pub fn may_be_option(&self) -> bool {
        let prefix = self.prefix();
        prefix.starts_with('-')
            || (prefix.is_empty()
                && !matches!(self.parts.first(), Some(Part::Tilde(_) | Part::Pipe) | None)
                && self.below_here().is_none()
                && self.in_repository().is_none())
    }
}

/// Files that a word names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Files {
    /// One, by this path.
    Named(String),
    /// One, by this path from the user's home.
    InHome(String),
    /// One, by this path from where the repository begins. Where its name stands outside of quotes, blanks divide it.
    InRepository { rest: String, may_split: bool },
    /// All that match, quoted characters behind a backslash.
    Matching(String),
}

impl Files {
    /// The same as seen from another directory, if that makes a difference.
    pub fn below(&self, dir: &str) -> Option<Self> {
        // The name of the directory is none of the pattern.
        let is_plain = !dir.contains(['*', '?', '[', '\\']);
        match self {
            Self::Named(path) if !path.starts_with('/') => Some(Self::Named(format!("{dir}/{path}"))),
            Self::Matching(path) if !path.starts_with('/') && is_plain => {
                Some(Self::Matching(format!("{dir}/{path}")))
            }
            _ => None,
        }
    }
}

/// Output of which nothing is known.
fn unknown() -> Part {
    Part::Substitution { inside: String::new(), quoted: false }
}

fn pattern(parts: &[Part]) -> Option<String> {
    let mut pattern = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => {
                for c in text.chars() {
                    if matches!(c, '*' | '?' | '[' | ']' | '\\' | '!' | '^' | '-') {
                        pattern.push('\\');
                    }
                    pattern.push(c);
                }
            }
            Part::Glob(text) => pattern.push_str(text),
            _ => return None,
        }
    }
    Some(pattern)
}

/// The values that variables take, as far as they are certain: those of loops, and those that are set once and for all.
#[derive(Debug, Default)]
pub(super) struct Values {
    known: BTreeMap<String, Vec<Vec<Part>>>,
    /// Where in the list of commands they hold.
    holds: Vec<(String, Range<usize>)>,
    /// Those that hold the name of a commit, which only git takes for one.
    commits: BTreeSet<String>,
}

impl Values {
    /// Of the variables of a script. One that may get a value elsewhere is left out.
    pub fn of(script: &Script, numbers: &Numbers<'_>) -> Self {
        let mut values = Self::default();
        let mut others: Vec<&str> = Vec::new();
        for command in script.commands.iter().filter(|command| !command.words.is_empty()) {
            match names_read(command) {
                Some(names) => others.extend(names),
                None if sets_by_name(command) => return Self::default(),
                None => {}
            }
        }
        let all_set = script.commands.iter().flat_map(|command| &command.assignments);
        let keeps_home = !all_set.into_iter().any(|assignment| assignment.name == "HOME");
        for (at, command) in script.commands.iter().enumerate() {
            let place = command.place;
            // Beyond these its value is another.
            let is_alone = !(place.in_substitution
                || place.piped
                || place.in_background
                || place.in_function
                || place.in_subshell);
            for assignment in &command.assignments {
                // A name that came with the environment is written otherwise.
                let is_own =
                    assignment.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
                let holds = match (assignment.kind, command.body) {
                    (AssignmentKind::Loop, Some(body)) => Some(at + body.from..at + body.to),
                    // Where it may be passed over, nobody knows what it was before.
                    (AssignmentKind::Plain, _) if is_for_good(command, next_outside(at, script)) => {
                        Some(at + 1..usize::MAX)
                    }
                    _ => None,
                };
                let mut arg = Arg::of(&assignment.value);
                // A value that is made of others which are set once: `d=src; for f in $d/*`.
                for (name, known) in &values.known {
                    if let [value] = known.as_slice()
                        && !others.contains(&name.as_str())
                        && times_set(script, name) == 1
                        && value.iter().all(is_one_literal)
                    {
                        arg = arg.with_value(name, value);
                    }
                }
                if told(&arg).is_some() {
                    values.commits.insert(assignment.name.clone());
                }
                let is_number = numbers.is_number(&assignment.name);
                let value = match arg.files() {
                    // A pattern is not matched when it becomes the value.
                    Some(Files::Matching(_)) if assignment.kind == AssignmentKind::Plain => vec![unknown()],
                    Some(Files::Named(_) | Files::Matching(_) | Files::InHome(_)) if is_own && is_alone => {
                        arg.parts
                    }
                    None if is_own && is_alone && keeps_home => match arg.probable_files() {
                        Some(Files::InHome(rest)) => {
                            vec![Part::Tilde("~".to_owned()), Part::Literal(format!("/{rest}"))]
                        }
                        _ if is_number => vec![Part::Arithmetic],
                        _ => vec![told(&arg).map_or_else(unknown, |text| Part::Literal(text.to_owned()))],
                    },
                    _ if is_number => vec![Part::Arithmetic],
                    _ => vec![unknown()],
                };
                if let (Some(range), Some(elements)) =
                    (&holds, elements_gone_through(assignment, &script.commands[..at], script))
                {
                    values.known.entry(assignment.name.clone()).or_default().extend(elements);
                    values.holds.push((assignment.name.clone(), range.clone()));
                    continue;
                }
                // Another number, whether it is passed over or not.
                let counts_on = is_number && values.known.contains_key(&assignment.name);
                if holds.is_none() && !counts_on {
                    others.push(&assignment.name);
                    continue;
                }
                values.known.entry(assignment.name.clone()).or_default().push(value);
                values.holds.extend(holds.map(|range| (assignment.name.clone(), range)));
            }
        }
        let arithmetic: Vec<&str> = script
            .doubts
            .iter()
            .filter(|doubt| doubt.kind == DoubtKind::Arithmetic)
            .flat_map(|doubt| names_in(&doubt.text).unwrap_or_default())
            .collect();
        let certain = |part: &Part| {
            matches!(part, Part::Literal(_) | Part::Glob(_) | Part::Arithmetic | Part::Tilde(_))
        };
        values.known.retain(|name, values| {
            let is_counted = arithmetic.contains(&name.as_str());
            if is_counted {
                values.push(vec![Part::Arithmetic]);
            }
            !others.contains(&name.as_str())
                && (!is_counted || numbers.is_number(name))
                && values.len() <= LOOP_WORDS_JUDGED_MAX
                && values.iter().flatten().all(certain)
        });
        values
    }

    /// The words of a command and the targets of its redirections, once for each round; once as they are if nothing in them
    /// is certain. `at` is where it stands in the list of commands.
    pub fn rounds(
        &self,
        at: usize,
        words: &[Word],
        redirections: &[Redirection],
    ) -> Vec<(Vec<Arg>, Vec<Arg>)> {
        let all_words = || words.iter().chain(redirections.iter().map(|redirection| &redirection.target));
        let as_written: Vec<Arg> = all_words().map(Arg::of).collect();
        let holds = |name: &str| self.holds.iter().any(|(held, range)| held == name && range.contains(&at));
        let used =
            |name: &str| all_words().any(|word| word.parts().iter().any(|part| is_value_of(part, name)));
        let is_git = words.first().and_then(Word::literal) == Some("git") && redirections.is_empty();
        let counts = |name: &str| is_git || !self.commits.contains(name);
        let used: Vec<_> =
            self.known.iter().filter(|(name, _)| counts(name) && holds(name) && used(name)).collect();
        let rounds: usize = used.iter().map(|(_, values)| values.len()).product();
        let mut all = vec![as_written];
        if rounds <= LOOP_ROUNDS_JUDGED_MAX {
            for (name, values) in used {
                all = all
                    .iter()
                    .flat_map(|args| values.iter().map(|value| filled(args, name, value)))
                    .collect();
            }
        }
        all.into_iter()
            .map(|mut args| {
                let targets = args.split_off(words.len());
                (args, targets)
            })
            .collect()
    }
}

/// Whether what a command sets holds for all that follows: it stands by itself, and is neither passed over nor run in a
/// process of its own.
fn is_for_good(command: &Command, next: Option<&Command>) -> bool {
    let place = command.place;
    let is_alone = command.words.is_empty() && command.redirections.is_empty();
    // The first stage of a pipeline is a process of its own, too.
    let is_piped = place.piped || next.is_some_and(|next| next.place.piped);
    let is_known = |value: &Arg| {
        told(value).is_some()
            || matches!(value.parts(), [Part::Substitution { inside, .. }] if numbers::counts(inside))
    };
    let runs = |assignment: &Assignment| {
        let value = Arg::of(&assignment.value);
        value.has_commands() && !is_known(&value)
    };
    is_alone && !place.conditional && !place.nested && !is_piped && !command.assignments.iter().any(runs)
}

/// The elements that a loop goes through, of an array that is filled once and for all before it: `for d in "${dirs[@]}"`.
fn elements_gone_through(
    assignment: &Assignment,
    before: &[Command],
    script: &Script,
) -> Option<Vec<Vec<Part>>> {
    let [Part::Parameter { name, plain: false, quoted: true }] = assignment.value.parts() else {
        return None;
    };
    let goes_through_all = assignment.value.text() == format!("\"${{{name}[@]}}\"");
    (assignment.kind == AssignmentKind::Loop && goes_through_all && times_set(script, name) == 1)
        .then_some(())?;
    let reads = |command: &Command| names_read(command).is_some_and(|names| names.contains(&name.as_str()));
    (!script.commands.iter().any(reads)).then_some(())?;
    let at = before.iter().position(|command| command.assignments.iter().any(|it| it.name == *name))?;
    let [filled] = before[at].assignments.as_slice() else { return None };
    (filled.kind == AssignmentKind::Array && is_for_good(&before[at], next_outside(at, script)))
        .then_some(())?;
    let elements =
        filled.elements.iter().map(|word| word.literal().map(|text| vec![Part::Literal(text.to_owned())]));
    elements.collect::<Option<Vec<_>>>().filter(|elements| !elements.is_empty())
}

/// The next command of the line that is not run for a word.
fn next_outside(at: usize, script: &Script) -> Option<&Command> {
    script.commands[at + 1..].iter().find(|command| !command.place.in_substitution)
}

fn times_set(script: &Script, name: &str) -> usize {
    let all = script.commands.iter().flat_map(|command| &command.assignments);
    all.filter(|assignment| assignment.name == name).count()
}

/// What stands for the text that a command tells, where it is as good as any other of its kind: the name of a commit.
fn told(value: &Arg) -> Option<&'static str> {
    let is_commit =
        |part: &Part| matches!(part, Part::Substitution { inside, .. } if git::prints_hashes(inside));
    matches!(value.parts(), [one] if is_commit(one)).then_some("HEAD")
}

/// Whether a command gives variables values that it is told the names of.
pub(super) fn sets_by_name(command: &Command) -> bool {
    command.name().is_none_or(|name| match name {
        "printf" => {
            let first = command.words.get(1);
            first.is_some_and(|word| word.literal().is_none_or(|text| text.starts_with('-') && text != "--"))
        }
        // Where it only says what a name stands for, it sets nothing.
        "command" => {
            !command.words.get(1).is_some_and(|option| matches!(option.literal(), Some("-v" | "-V")))
        }
        name => SETTERS.contains(&name),
    })
}

/// The variables that a command reads into, if all of its words are names, options and what those take.
pub(super) fn names_read(command: &Command) -> Option<Vec<&str>> {
    matches!(command.name(), Some("read" | "mapfile" | "readarray")).then_some(())?;
    let mut names = vec!["REPLY", "MAPFILE"];
    for word in &command.words[1..] {
        let text = word.literal()?;
        // What is in a subscript is evaluated, and `-aname` is a name, too.
        let is_option =
            matches!(text, "-r" | "-s" | "-rs" | "-t" | "-a" | "-ra" | "-d" | "-rd" | "-n" | "-p" | "-u");
        (is_option || !text.starts_with('-') && !text.contains('[')).then_some(())?;
        names.push(text);
    }
    Some(names)
}

/// Builtins that give values to variables they are told the names of.
const SETTERS: &[&str] = &[
    "read",
    "readarray",
    "mapfile",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "getopts",
    "let",
    "unset",
    "eval",
    "source",
    ".",
    "wait",
    "builtin",
    "command",
    "trap",
];

/// Text that is neither split nor matched where it stands outside of quotes.
fn is_one_literal(part: &Part) -> bool {
    matches!(part, Part::Literal(text) if !text.contains([' ', '\t', '\n', '*', '?', '[', '\\']))
}

/// The same words with a value in the place of a variable.
fn filled(args: &[Arg], variable: &str, value: &[Part]) -> Vec<Arg> {
    // Outside of quotes a value is split and matched again.
    let stays_one =
        value.iter().all(|part| is_one_literal(part) || matches!(part, Part::Arithmetic | Part::Tilde(_)));
    let fill = |arg: &Arg| {
        arg.filled(value, |part| {
            is_value_of(part, variable) && (stays_one || matches!(part, Part::Parameter { quoted: true, .. }))
        })
    };
    args.iter().map(|arg| if arg.literal.is_some() { arg.clone() } else { fill(arg) }).collect()
}
