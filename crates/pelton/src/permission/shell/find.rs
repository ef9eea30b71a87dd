//! `find` has a grammar of its own: where to start, then tests with one dash.

use super::arg::{Arg, Files};
use super::feed;
use super::look::{Look, is_number, is_value};
use super::programs::{Takes, find_takes};

/// What it looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let (starts, expression) = split(args);
    let mut files = Vec::new();
    for start in starts {
        (start.names_surely() && !start.is_pipe() && !start.may_be_option()).then_some(())?;
        files.push(start.files()?);
    }
    if files.is_empty() {
        files.push(Files::Named(".".to_owned()));
    }
    let below = files.clone();
    let mut look = Look::nothing();
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
            let run = feed::executed(&rest[..end], many, &below)?;
            look.files.extend(run.files);
            look.reach = look.reach.max(run.reach);
            expression = rest[end + 1..].iter();
            continue;
        }
        match find_takes(word.strip_prefix('-')?)? {
            Takes::Nothing | Takes::Maybe => {}
            Takes::Path => files.push(expression.next()?.files()?),
            Takes::Number => is_number(expression.next()?.literal()?).then_some(())?,
            Takes::Word | Takes::Two => is_text(expression.next()?).then_some(())?,
        }
    }
    look.files.extend(files);
    Some(look)
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
