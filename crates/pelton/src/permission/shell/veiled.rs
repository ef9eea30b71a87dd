//! Removals that are not written as such: by a program whose name is put together, with words that stand in a variable, in a text
//! that another command hands to a shell, or in one with variables in it. What is found here is only asked about, so everything
//! that might be meant counts.

use pelton_shell::{Command, Part, Script, further_commands};

use super::HOLE;
use super::arg::Arg;
use super::carried::{Carried, words_of};
use super::held::Held;
use super::launch::{base_name, is_shell};
use super::passed::{text_said, texts_told};
use super::removal::{Removal, removals};
use super::renamed;

/// What a command may take away besides what its words say.
pub(super) fn veiled_removals(
    command: &Command,
    args: &[Arg],
    script: &Script,
    held: &Held,
    carried: &Carried<'_>,
) -> Vec<Removal> {
    let Some((name, rest)) = args.split_first() else {
        let values = command.assignments.iter().filter_map(|assignment| assignment.value.literal());
        return values.flat_map(removals_when_evaluated).collect();
    };
    let known = name.literal().map(base_name);
    let runs_text = known.is_some_and(|name| is_shell(name) || matches!(name, "eval" | "source" | "."));
    // Almost every command is another one.
    if !(known.is_none_or(is_removing) || runs_text) {
        return Vec::new();
    }
    let mut removed = Vec::new();
    for round in held.rounds(args) {
        removed.extend(removals_within(&split(args, round)));
    }
    if known.is_none() {
        // Whatever it is called, it is told what `rm` is told.
        if rest.iter().any(takes_directories) {
            removed.extend(removals(&renamed("rm", rest)));
        }
        removed.extend(removals_within(carried.loose()));
        removed.extend(removals_in_text(&with_what_is_said(args)));
    }
    if runs_text {
        let mut texts = texts_told(command, script);
        texts.push(rest.iter().map(as_source).collect::<Vec<_>>().join(" "));
        texts.extend(rest.iter().filter(|arg| arg.literal().is_none()).map(as_source));
        texts.push(with_what_is_said(rest));
        removed.extend(texts.iter().flat_map(|text| removals_in_text(text)));
    }
    removed
}

/// What a value takes away where it is evaluated once more: `PS4='$(…)'`, `x='a[$(…)]'; echo $((x))`.
fn removals_when_evaluated(value: &str) -> Vec<Removal> {
    let inside = value.split_once("$(").and_then(|(_, behind)| Some(behind.rsplit_once(')')?.0));
    let inside =
        inside.or_else(|| value.split_once('`').and_then(|(_, behind)| Some(behind.rsplit_once('`')?.0)));
    inside.map(removals_in_text).unwrap_or_default()
}

fn is_removing(name: &str) -> bool {
    matches!(name, "rm" | "rmdir" | "find")
}

/// Whether a word is an option of `rm` that takes directories along.
fn takes_directories(arg: &Arg) -> bool {
    let letters = arg.prefix().strip_prefix('-').unwrap_or_default();
    letters == "-recursive"
        || letters.contains(['r', 'R']) && letters.chars().all(|letter| "rRfvidI".contains(letter))
}

/// The words that a command gets where a variable holds several.
fn split(written: &[Arg], filled: Vec<Arg>) -> Vec<Arg> {
    let several = |(written, filled): (&Arg, Arg)| match filled.literal() {
        Some(text) if written.literal().is_none() && text.contains(char::is_whitespace) => words_of(text),
        _ => vec![filled],
    };
    written.iter().zip(filled).flat_map(several).collect()
}

/// What is taken away by commands that begin anywhere among these words.
fn removals_within(words: &[Arg]) -> Vec<Removal> {
    let begins = |at: &usize| words[*at].literal().map(base_name).is_some_and(is_removing);
    (0..words.len()).filter(begins).flat_map(|at| removals(&words[at..])).collect()
}

/// What is taken away where a text is run.
pub(super) fn removals_in_text(text: &str) -> Vec<Removal> {
    // Few texts speak of it.
    if !["rm", "find"].iter().any(|name| text.contains(name)) {
        return Vec::new();
    }
    let Ok(script) = pelton_shell::read(text) else { return Vec::new() };
    let further = script.commands.iter().flat_map(|command| further_commands(command).commands);
    let commands: Vec<Command> = script.commands.iter().cloned().chain(further).collect();
    let words = commands.iter().map(|command| command.words.iter().map(Arg::of).collect::<Vec<_>>());
    words.flat_map(|words| removals_within(&words)).collect()
}

/// Words as the text that they become, with what an `echo` in them says: `bash -c "$(echo …)"`.
fn with_what_is_said(args: &[Arg]) -> String {
    let says = |part: &Part| matches!(part, Part::Substitution { .. });
    if !args.iter().any(|arg| arg.parts().iter().any(says)) {
        return String::new();
    }
    let said = |part: &Part| match part {
        Part::Literal(text) | Part::Glob(text) => text.clone(),
        Part::Substitution { inside, .. } => text_said(inside).unwrap_or_default(),
        _ => HOLE.to_string(),
    };
    let words: Vec<String> = args.iter().map(|arg| arg.parts().iter().map(said).collect()).collect();
    words.join(" ")
}

/// A word as the text that it becomes, in which what is not certain is written as before.
fn as_source(arg: &Arg) -> String {
    let written = |part: &Part| match part {
        Part::Literal(text) | Part::Glob(text) => text.clone(),
        Part::Parameter { name, .. } => format!("${{{name}}}"),
        Part::Substitution { inside, .. } => format!("$({inside})"),
        Part::Tilde(_) => "~".to_owned(),
        _ => HOLE.to_string(),
    };
    match arg.literal() {
        Some(text) => text.to_owned(),
        None => arg.parts().iter().map(written).collect(),
    }
}
