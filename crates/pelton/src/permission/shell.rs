//! Which commands only look, and at what. Conservative: a command is understood only when it is plain words, and it
//! only looks when its program and every option are in the table. Everything else is unknown, and unknown is asked
//! for.

mod programs; // the table

pub(super) use self::programs::Reach;
use self::programs::{GIT, Operands, Program, find_takes, program};

/// The words of a command made of nothing but words: no expansion, chaining, redirection, globbing or escapes.
/// Quotes are understood. `None` means a shell could make something else of it.
pub fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' | '!' => return None,
                        c => word.push(c),
                    }
                }
            }
            '$' | '`' | '\\' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '#' | '!' | '*'
            | '?' | '[' | ']' => return None,
            // A home directory only at the beginning of a word or of a value, not in `HEAD~3`.
            '~' if word.as_ref().is_none_or(|word| word.is_empty() || word.ends_with(['=', ':'])) => {
                return None;
            }
            c if c.is_control() => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    // `NAME=value program` runs the program in a changed environment.
    match words.first() {
        Some(first) if !first.is_empty() && !first.contains('=') => Some(words),
        _ => None,
    }
}

/// Whether a command certainly changes nothing.
pub fn is_read_only(command: &str) -> bool {
    plain_words(command).is_some_and(|words| look(&words).is_some())
}

/// What a command that only looks looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// The words that may name files. `.` when it starts where it is run.
    pub paths: Vec<String>,
    /// Whose contents it may show.
    pub reach: Reach,
}

/// What the command looks at, if looking is all that it does.
pub(super) fn look(words: &[String]) -> Option<Look> {
    let (name, args) = words.split_first()?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match name.as_str() {
        "find" => find(&args),
        "git" => git(&args),
        name => understand(program(name)?, &args),
    }
}

/// Every part of a command's words that could name a file, whatever the program makes of it.
pub(super) fn possible_paths(words: &[String]) -> impl Iterator<Item = &str> {
    words.iter().skip(1).flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value);
        let glued = if word.starts_with('-') && !word.starts_with("--") { word.get(2..) } else { None };
        [Some(word.as_str()), value, glued].into_iter().flatten().filter(|part| !part.is_empty())
    })
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Digits with a sign before and a unit behind them.
    Number,
    /// Text that names no file.
    Word,
    Path,
    /// A value only when it is glued to the option.
    Maybe,
}

impl Takes {
    fn accepts(self, value: &str) -> bool {
        self != Self::Number || {
            let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
            let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit());
            unit.len() < digits.len() && unit.chars().all(|c| c.is_ascii_alphabetic())
        }
    }
}

/// Goes through the arguments as the usual option parsers do. `None` as soon as one is not in the table.
fn understand(program: &Program, args: &[&str]) -> Option<Look> {
    if program.operands == Operands::Anything {
        return Some(Look { paths: Vec::new(), reach: program.reach });
    }
    let mut operands = Vec::new();
    let mut paths = Vec::new();
    let mut seen = Vec::new();
    let mut reach = program.reach;
    let mut args = args.iter().copied();
    while let Some(arg) = args.next() {
        if arg == "--" {
            operands.extend(args.by_ref());
        } else if let Some(long) = arg.strip_prefix("--") {
            let (name, glued) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let option = program.long(name)?;
            let value = match (option.takes, glued) {
                (Takes::Nothing, Some(_)) => return None,
                (Takes::Nothing | Takes::Maybe, value) => value,
                (_, Some(value)) => Some(value),
                (_, None) => Some(args.next()?),
            };
            if !value.is_none_or(|value| option.takes.accepts(value)) {
                return None;
            }
            paths.extend(value.filter(|_| option.takes == Takes::Path));
            reach = reach.max(option.reach);
            seen.push(format!("--{name}"));
        } else if let Some(cluster) = arg.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            let mut letters = cluster.chars();
            while let Some(letter) = letters.next() {
                let option = program.short(letter)?;
                reach = reach.max(option.reach);
                seen.push(format!("-{letter}"));
                match option.takes {
                    Takes::Nothing => continue,
                    Takes::Maybe => break,
                    takes => {
                        let glued = letters.as_str();
                        let value = if glued.is_empty() { args.next()? } else { glued };
                        if !takes.accepts(value) {
                            return None;
                        }
                        paths.extend((takes == Takes::Path).then_some(value));
                        break;
                    }
                }
            }
        } else {
            // A lone dash too: it stands for the standard input and takes an operand's place.
            operands.push(arg);
        }
    }
    let is_seen = |options: &[&str]| seen.iter().any(|seen| options.contains(&seen.as_str()));
    match program.operands {
        Operands::Anything => {}
        Operands::None => operands.is_empty().then_some(())?,
        Operands::Words => {}
        Operands::Formats => operands.iter().all(|operand| operand.starts_with('+')).then_some(())?,
        Operands::Paths => paths.extend(operands),
        // A second one would be written.
        Operands::OnePath => paths.extend((operands.len() <= 1).then_some(operands)?),
        Operands::PatternThenPaths { unless } => {
            paths.extend(operands.into_iter().skip(usize::from(!is_seen(unless))));
        }
        // Without such an option an operand is something to be made.
        Operands::PatternsWith(listing) => (operands.is_empty() || is_seen(listing)).then_some(())?,
    }
    if program.operands.default_here() && paths.is_empty() {
        paths.push(".");
    }
    if reach == Reach::BelowAndLinked && is_seen(&["--no-dereference"]) {
        reach = Reach::Below;
    }
    Some(Look { paths: paths.into_iter().map(str::to_owned).collect(), reach })
}

fn git(args: &[&str]) -> Option<Look> {
    // Other options before the sub-command can run programs (`-c`, `--exec-path`) or look elsewhere (`-C`).
    let args = args.strip_prefix(&["--no-pager"]).unwrap_or(args);
    let (command, args) = match args {
        [group @ ("stash" | "worktree"), command, args @ ..] => (format!("{group} {command}"), args),
        [command, args @ ..] => ((*command).to_owned(), args),
        [] => return None,
    };
    let mut look = understand(GIT.iter().find(|program| program.names.contains(&command.as_str()))?, args)?;
    // `HEAD:src/x` names a file too.
    let in_revisions: Vec<String> = look
        .paths
        .iter()
        .filter_map(|word| word.rsplit_once(':'))
        .map(|(_, path)| path.trim_start_matches('/').to_owned())
        .collect();
    look.paths.extend(in_revisions);
    Some(look)
}

/// `find` has a grammar of its own: where to start, then tests with one dash.
fn find(args: &[&str]) -> Option<Look> {
    let args = args.strip_prefix(&["-P"]).unwrap_or(args);
    let is_expression = |arg: &&&str| arg.starts_with('-') || matches!(**arg, "(" | ")" | "!" | ",");
    let starts = args.iter().take_while(|arg| !is_expression(arg)).count();
    let (starts, expression) = args.split_at(starts);
    let mut paths: Vec<String> = starts.iter().map(|start| (*start).to_owned()).collect();
    if paths.is_empty() {
        paths.push(".".to_owned());
    }
    let mut expression = expression.iter();
    while let Some(word) = expression.next() {
        if matches!(*word, "(" | ")" | "!" | ",") {
            continue;
        }
        match find_takes(word.strip_prefix('-')?)? {
            Takes::Nothing => {}
            Takes::Path => paths.push((*expression.next()?).to_owned()),
            takes => takes.accepts(expression.next()?).then_some(())?,
        }
    }
    Some(Look { paths, reach: Reach::Named })
}

#[cfg(test)]
mod tests;
