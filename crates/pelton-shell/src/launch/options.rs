//! How the options of a launcher are read, up to the command behind them.

use crate::script::{Assignment, AssignmentKind};
use crate::word::{Part, Word};

use super::table::Launcher;

/// What a launcher launches.
pub(super) struct Launched<'w> {
    /// Variables it sets for the command.
    pub(super) assignments: Vec<Assignment>,
    /// The command; empty when there is none.
    pub(super) words: &'w [Word],
    /// Texts among the options that a shell runs.
    pub(super) texts: Vec<&'w Word>,
    /// Whether every option before the command is one that the table knows.
    pub(super) certain: bool,
}

/// Reads the words of a launcher. `None`: a word that is not literal stands before the command, so that nobody knows where it begins.
pub(super) fn launched<'w>(launcher: &Launcher, words: &'w [Word]) -> Option<Launched<'w>> {
    let skipped = launcher.after.map_or(1, |after| {
        1 + words.iter().skip(1).position(|word| word.literal() == Some(after)).map_or(0, |at| at + 1)
    });
    let mut reading = Reading { launcher, texts: Vec::new(), certain: true, runs: true };
    let mut rest = reading.options(words.get(skipped..)?)?;
    let mut assignments = Vec::new();
    let mut operands = launcher.operands;
    loop {
        if launcher.assigns
            && let Some(word) = rest.first()
            && let Some(assignment) = assignment(word)
        {
            assignments.push(assignment);
            rest = &rest[1..];
        } else if operands > 0 && !rest.is_empty() {
            // An operand need not be literal: it is one word as long as it is quoted.
            if !is_one_word(&rest[0]) {
                return None;
            }
            operands -= 1;
            rest = &rest[1..];
            rest = reading.options(rest)?;
        } else {
            break;
        }
    }
    if let Some(end) = launcher.until {
        let length = rest.iter().position(|word| word.literal().is_some_and(|text| end.contains(&text)));
        rest = &rest[..length.unwrap_or(rest.len())];
    }
    // A word that begins the command and might be nothing or an option.
    if rest.first().is_some_and(|word| word.literal().is_none()) {
        reading.certain = false;
    }
    let words = if reading.runs { rest } else { &[] };
    Some(Launched { assignments, words, texts: reading.texts, certain: reading.certain })
}

struct Reading<'l, 'w> {
    launcher: &'l Launcher,
    texts: Vec<&'w Word>,
    certain: bool,
    runs: bool,
}

impl<'w> Reading<'_, 'w> {
    /// Passes over options; gives what is behind them.
    fn options(&mut self, mut rest: &'w [Word]) -> Option<&'w [Word]> {
        while let Some((word, after)) = rest.split_first() {
            let Some(text) = word.literal() else {
                // `--user=$x` is one word that begins like an option. Anything else may be an option, an operand or the command.
                if word.literal_prefix().starts_with('-') && is_one_word(word) {
                    rest = after;
                    continue;
                }
                return Some(rest);
            };
            if text == "--" {
                return Some(after);
            }
            if !text.starts_with('-') || text == "-" {
                return Some(rest);
            }
            let takes_next = if let Some(long) = text.strip_prefix("--") {
                self.long(long, after.first())
            } else {
                self.short(&text[1..], after.first())
            };
            if takes_next {
                // A value that may be several words may be the command as well.
                self.certain &= after.first().is_none_or(is_one_word);
            }
            rest = if takes_next { after.get(1..).unwrap_or_default() } else { after };
        }
        Some(rest)
    }

    /// Tells whether the option takes the next word.
    fn long(&mut self, long: &str, next: Option<&'w Word>) -> bool {
        let (name, has_value) = match long.split_once('=') {
            Some((name, _)) => (name, true),
            None => (long, false),
        };
        if self.launcher.text_long.contains(&name) {
            if has_value {
                // The text is glued to the option: what runs is not a word of its own.
                self.certain = false;
            } else {
                self.texts.extend(next);
            }
            return !has_value;
        }
        if self.launcher.valued_long.contains(&name) {
            return !has_value;
        }
        if self.launcher.idle.contains(&long) {
            self.runs = false;
        } else if !self.launcher.flags_long.contains(&name) {
            self.certain = false;
        }
        false
    }

    /// Tells whether the option takes the next word.
    fn short(&mut self, letters: &str, next: Option<&'w Word>) -> bool {
        // `find`-like words: one dash and a whole name.
        if self.launcher.valued_long.contains(&letters) {
            return true;
        }
        if letters.bytes().all(|byte| byte.is_ascii_digit()) && self.launcher.numbers {
            return false;
        }
        for (at, letter) in letters.char_indices() {
            let is_last = at + letter.len_utf8() == letters.len();
            if self.launcher.text.contains(letter) {
                if is_last {
                    self.texts.extend(next);
                } else {
                    self.certain = false;
                }
                return is_last;
            }
            if self.launcher.valued.contains(letter) {
                return is_last;
            }
            if self.launcher.glued.contains(letter) {
                return false;
            }
            if self.launcher.idle.contains(&letter.to_string().as_str()) {
                self.runs = false;
            } else if !self.launcher.flags.contains(letter) {
                self.certain = false;
            }
        }
        false
    }
}

/// Whether a word stays one word whatever is in it.
pub(super) fn is_one_word(word: &Word) -> bool {
    word.parts().iter().all(|part| match part {
        Part::Literal(_) | Part::Tilde(_) | Part::Arithmetic => true,
        Part::Parameter { name, quoted, .. } => *quoted && name != "@",
        _ => false,
    })
}

/// `NAME=value` as an argument.
fn assignment(word: &Word) -> Option<Assignment> {
    let (name, _) = word.literal_prefix().split_once('=')?;
    if name.is_empty() || name.starts_with('-') {
        return None;
    }
    let value = match word.literal() {
        Some(text) => Word::of_literal(text.split_once('=')?.1),
        None => word.clone(),
    };
    Some(Assignment { name: name.to_owned(), kind: AssignmentKind::Plain, value, elements: Vec::new() })
}
