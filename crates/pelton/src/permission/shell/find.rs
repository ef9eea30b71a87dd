//! `find` has a grammar of its own: where to start, then tests with one dash.

use super::arg::{Arg, Files};
use super::feed;
use super::look::{Look, is_number, is_value, understand};
use super::programs::{self, Takes, find_takes};

/// What it looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let (starts, expression) = split(args);
    let mut files = Vec::new();
    let mut dashless = Vec::new();
    for start in starts {
        (start.names_surely() && !start.is_pipe()).then_some(())?;
        if start.may_be_option() {
            dashless.push(start.matches_some()?);
        }
        files.push(start.files()?);
    }
    if files.is_empty() {
        files.push(Files::Named(".".to_owned()));
    }
    let below = files.clone();
    let mut look = Look { dashless, ..Look::nothing() };
    let tests = expression;
    let mut rest = expression;
    let mut expression = rest.iter();
    while let Some(word) = expression.next() {
        let word = word.literal()?;
        rest = expression.as_slice();
        if matches!(word, "(" | ")" | "!" | ",") {
            continue;
        }
        if word == "-exec" {
            let end = end_of_command(rest)?;
            let many = rest[end].literal() == Some("+");
            let ending = ending_wanted(&tests[..tests.len() - rest.len()]);
            look.add(feed::executed(&rest[..end], many, &below, ending)?);
            expression = rest[end + 1..].iter();
            continue;
        }
        match find_takes(word.strip_prefix('-')?)? {
            Takes::Nothing | Takes::Maybe => {}
            Takes::Path => files.push(expression.next()?.files()?),
            Takes::Number => is_number(expression.next()?.literal()?).then_some(())?,
            Takes::Word | Takes::Two | Takes::NameAndPath => is_text(expression.next()?).then_some(())?,
        }
    }
    look.files.extend(files);
    Some(look)
}

/// How the names end that these tests want, whatever else they want: `-name '*.rs'`. Nothing if something is done before that is asked.
pub(super) fn ending_wanted(tests: &[Arg]) -> Option<String> {
    let words: Option<Vec<&str>> = tests.iter().map(Arg::literal).collect();
    let words = words?;
    let chooses = |word: &&str| matches!(*word, "-o" | "-or" | "!" | "-not" | "," | "(" | ")");
    (!words.iter().any(chooses)).then_some(())?;
    let at = words.iter().position(|word| *word == "-name")?;
    let acts = |word: &&str| word.starts_with("-print") || word.starts_with("-exec");
    (!words[..at].iter().any(acts)).then_some(())?;
    let ending = words.get(at + 1)?.strip_prefix('*')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (ending.starts_with('.') && ending.chars().all(is_plain)).then(|| ending.to_owned())
}

/// What `fd` looks at, with a command for what it finds behind its own words.
pub(super) fn fd(args: &[Arg]) -> Option<Look> {
    let program = programs::program("fd")?;
    let runs = |arg: &Arg| matches!(arg.literal(), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(at) = args.iter().position(runs) else { return understand(program, args) };
    let mut look = understand(program, &args[..at])?;
    let many = matches!(args[at].literal(), Some("-X" | "--exec-batch"));
    let command: Vec<Arg> =
        args[at + 1..].iter().take_while(|arg| arg.literal() != Some(";")).cloned().collect();
    // Behind a semicolon there would be more of its own words.
    (at + 1 + command.len() >= args.len() - 1).then_some(())?;
    look.add(feed::handed(&command, many, &look.files)?);
    Some(look)
}

/// The names that tests before a `-delete` want, if there is one: what it looks for is what is taken away. Of those behind `!`, and of
/// those on the other side of an `-o`, nothing is.
pub(super) fn names_deleted(args: &[Arg]) -> Option<Vec<&Arg>> {
    /// What stands between two brackets, as far as it is read.
    #[derive(Default)]
    struct Group<'a> {
        is_negated: bool,
        /// The names wanted since the last `-o`, and before it.
        wanted: Vec<&'a Arg>,
        earlier: Vec<&'a Arg>,
    }
    let mut deleted = None;
    let mut open: Vec<Group<'_>> = Vec::new();
    let mut group = Group::default();
    let mut is_negated = false;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let word = arg.literal().unwrap_or_default();
        match word {
            "!" | "-not" => {
                is_negated = !is_negated;
                continue;
            }
            "-a" | "-and" => continue,
            "(" => {
                let inner = Group { is_negated: group.is_negated != is_negated, ..Group::default() };
                open.push(std::mem::replace(&mut group, inner));
            }
            ")" => {
                let inner = std::mem::replace(&mut group, open.pop().unwrap_or_default());
                group.wanted.extend(inner.earlier.into_iter().chain(inner.wanted));
            }
            "-o" | "-or" | "," => {
                let passed = std::mem::take(&mut group.wanted);
                group.earlier.extend(passed);
            }
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" => {
                let name = rest.next();
                group.wanted.extend(name.filter(|_| group.is_negated == is_negated));
            }
            "-delete" => {
                let wanted = open.iter().chain([&group]).flat_map(|group| &group.wanted).copied();
                deleted.get_or_insert_with(Vec::new).extend(wanted);
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let ends = end_of_command(rest.as_slice());
                rest = rest.as_slice().get(ends.map_or(0, |end| end + 1)..).unwrap_or_default().iter();
            }
            _ => {
                let taken = match word {
                    "-fprintf" => 2,
                    "-fprint" | "-fprint0" | "-fls" => 1,
                    test => match test.strip_prefix('-').and_then(find_takes) {
                        Some(Takes::Two | Takes::NameAndPath) => 2,
                        Some(Takes::Number | Takes::Word | Takes::Path) => 1,
                        Some(Takes::Nothing | Takes::Maybe) | None => 0,
                    },
                };
                rest = rest.as_slice().get(taken..).unwrap_or_default().iter();
            }
        }
        is_negated = false;
    }
    deleted
}

/// Where the words of `-exec` end: at `;`, or at `+` behind `{}`.
fn end_of_command(words: &[Arg]) -> Option<usize> {
    let text = |at: usize| words.get(at).and_then(Arg::literal);
    (1..words.len())
        .find(|&at| text(at) == Some(";") || (text(at) == Some("+") && text(at - 1) == Some("{}")))
}

/// Where it starts, and what it does there.
pub(super) fn split(args: &[Arg]) -> (&[Arg], &[Arg]) {
    let args = match args.first().and_then(Arg::literal) {
        Some("-P") => &args[1..],
        _ => args,
    };
    let is_expression =
        |arg: &Arg| arg.prefix().starts_with('-') || matches!(arg.literal(), Some("(" | ")" | "!" | ","));
    let starts = args.iter().take_while(|arg| !is_expression(arg)).count();
    args.split_at(starts)
}

/// A pattern that is not quoted may become names of files, but none that mean something to `find`.
fn is_text(arg: &Arg) -> bool {
    is_value(arg)
        || (arg.is_sure()
            && (!arg.may_be_option()
                || matches!(arg.files(), Some(Files::Matching(text)) if text.contains('.'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deleted_is_what_the_tests_before_it_want() {
        let names = |line: &str| {
            let args: Vec<Arg> = line.split(' ').map(Arg::certain).collect();
            let names = names_deleted(&args);
            names.map(|names| names.iter().map(|name| name.prefix().to_owned()).collect::<Vec<_>>().join(" "))
        };
        for (line, expected) in [
            (". -name a", None),
            (". -delete", Some("")),
            (". -name a -delete", Some("a")),
            (". -not -path b -name a -delete", Some("a")),
            (". -type f ! -path b -name a -delete", Some("a")),
            (". ! ! -path b -delete", Some("b")),
            (". ( -path b -o -path c ) -prune -o -name a -delete", Some("a")),
            (". -name b -type d -prune -o -name a -delete", Some("a")),
            (". ! ( -name b -o -name c ) -name a -delete", Some("a")),
            (". ! ( ! -name b ) -delete", Some("b")),
            (". ( -name a -o -name b ) -delete", Some("a b")),
            (". -name b ( -prune -o -true ) -delete", Some("b")),
            (". -name b -prune -delete", Some("b")),
            (". -name b -newer -o -delete", Some("b")),
            (". -name b -exec true -o ; -delete", Some("b")),
            (". -name a -delete -o -name b -delete", Some("a b")),
        ] {
            assert_eq!(names(line).as_deref(), expected, "{line}");
        }
    }
}
