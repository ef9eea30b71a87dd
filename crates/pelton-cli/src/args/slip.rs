//! Words that were meant as commands. A prompt may be one word, too, so only what a slip of the finger makes of a name counts.

use super::{definition, is_command};

/// Shorter names are one letter away from too many words.
const NAME_CHARS_MIN: usize = 4;

/// The command that a word is, or is one slip away from.
pub(crate) fn nearest_command(word: &str) -> Option<String> {
    if is_command(word.as_ref()) {
        return Some(word.to_owned());
    }
    let definition = definition();
    let mut names = definition.get_subcommands().map(clap::Command::get_name);
    names.find(|name| name.len() >= NAME_CHARS_MIN && is_one_slip(word, name)).map(str::to_owned)
}

/// Whether one letter too many, too few, another one, or two in the wrong order make one of the other.
fn is_one_slip(word: &str, name: &str) -> bool {
    let (word, name): (Vec<char>, Vec<char>) = (word.chars().collect(), name.chars().collect());
    let same = word.iter().zip(&name).take_while(|(a, b)| a == b).count();
    let (word, name) = (&word[same..], &name[same..]);
    match (word, name) {
        ([], [_]) | ([_], []) => true,
        ([a, b, word @ ..], [c, d, name @ ..]) if (a, b) == (d, c) && word == name => true,
        ([_, word_rest @ ..], [_, name_rest @ ..]) => {
            word_rest == name_rest || word_rest == name || word == name_rest
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_one_letter_and_no_more() {
        for (word, meant) in [
            ("demo", "demo"),
            ("demoo", "demo"),
            ("deo", "demo"),
            ("dmeo", "demo"),
            ("doctro", "doctor"),
            ("session", "sessions"),
            ("xdoctor", "doctor"),
        ] {
            assert_eq!(nearest_command(word).as_deref(), Some(meant), "{word}");
        }
        for word in
            ["begin", "continue", "commit", "review", "rewrite", "test", "fix", "", "d", "demonstrate", "map"]
        {
            assert_eq!(nearest_command(word), None, "{word}");
        }
    }
}
