//! `find` has a grammar of its own: where to start, then tests with one dash.

use super::arg::{Arg, Files};
use super::look::{Look, is_number};
use super::programs::{Reach, Takes, find_takes};

/// What it looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let (starts, expression) = split(args);
    let mut files = Vec::new();
    for start in starts {
        (start.is_sure() && !start.may_be_option()).then_some(())?;
        files.push(start.files()?);
    }
    if files.is_empty() {
        files.push(Files::Named(".".to_owned()));
    }
    let mut expression = expression.iter();
    while let Some(word) = expression.next() {
        let word = word.literal()?;
        if matches!(word, "(" | ")" | "!" | ",") {
            continue;
        }
        match find_takes(word.strip_prefix('-')?)? {
            Takes::Nothing | Takes::Maybe => {}
            Takes::Path => files.push(expression.next()?.files()?),
            Takes::Number => is_number(expression.next()?.literal()?).then_some(())?,
            Takes::Word | Takes::Two => is_text(expression.next()?).then_some(())?,
        }
    }
    Some(Look { files, reach: Reach::Named, works_in: Vec::new() })
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
    arg.literal().is_some()
        || (arg.is_sure()
            && (!arg.may_be_option()
                || matches!(arg.files(), Some(Files::Matching(text)) if text.contains('.'))))
}
