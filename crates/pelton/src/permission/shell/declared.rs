//! Variables that builtins set: `export x=y`, `declare -a a=(y)`, `local d=$1`, `printf -v x y`.

use pelton_shell::{Command, Word, behind_plain_launchers};

use super::arg::Arg;
use super::carried::words_of;
use super::decoded::printf_says;

/// What a command sets as a builtin, and to what, as far as it is written there.
pub(super) fn declared(command: &Command) -> Vec<(String, Vec<Arg>)> {
    let words = behind_plain_launchers(&command.words).words;
    let Some((builtin, rest)) = words.split_first() else { return Vec::new() };
    match builtin.literal() {
        Some("export" | "declare" | "typeset" | "local" | "readonly") => {
            let refers = rest
                .iter()
                .filter_map(Word::literal)
                .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('n'));
            let set = rest.iter().filter_map(set_by);
            let meant = |value: &Arg| match value.literal() {
                // The name of the variable that is meant.
                Some(name) if refers => words_of(&format!("${name}")),
                _ => vec![value.clone()],
            };
            set.map(|(name, values)| (name, values.iter().flat_map(meant).collect())).collect()
        }
        Some("printf") => {
            let [option, name, said @ ..] = rest else { return Vec::new() };
            let Some(name) = name.literal().filter(|_| option.literal() == Some("-v")) else {
                return Vec::new();
            };
            let mut values: Vec<Arg> = said.iter().map(Arg::of).collect();
            values.extend(printf_says(&values).as_deref().map(Arg::certain));
            vec![(name.to_owned(), values)]
        }
        _ => Vec::new(),
    }
}

/// `name=value` and `name=(values)`.
fn set_by(word: &Word) -> Option<(String, Vec<Arg>)> {
    let (name, _) = word.literal_prefix().split_once('=')?;
    let name = name.trim_end_matches('+');
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name(name).then_some(())?;
    if let Some((_, inside)) = word.text().split_once("=(").filter(|_| word.literal().is_none()) {
        let values = words_of(inside.trim_end_matches(')'));
        return Some((name.to_owned(), values.into_iter().map(|value| behind_key(&value)).collect()));
    }
    Some((name.to_owned(), vec![Arg::of(word).behind_sign()?]))
}

/// `[key]=value` as the value.
fn behind_key(value: &Arg) -> Arg {
    let is_keyed = value.written.starts_with('[');
    value.written.split_once("]=").filter(|_| is_keyed).map_or_else(
        || value.clone(),
        |(_, written)| words_of(written).into_iter().next().unwrap_or_else(|| value.clone()),
    )
}
