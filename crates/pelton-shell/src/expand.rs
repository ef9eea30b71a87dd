//! From the pieces of a word to the words it becomes: braces, tildes, pathname patterns.

mod brace; // {a,b} and {1..3}

use crate::word::{Part, Word};

/// A piece of a word as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Characters without quotes: braces, tildes and patterns in them mean something.
    Bare(String),
    /// Characters that were quoted or escaped.
    Quoted(String),
    /// Something uncertain.
    Special(Part),
}

/// Which expansions happen where the word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// All of them.
    Argument,
    /// All of them, but more than one word is an error that bash finds when it runs.
    Target,
    /// Only tildes: the value of an assignment, the word of a `case`.
    Value,
}

/// The words that a written word becomes.
pub(crate) fn words(text: &str, pieces: Vec<Piece>, expansion: Expansion) -> Vec<Word> {
    if expansion == Expansion::Value || !brace::may_expand(&pieces) {
        return vec![Word::new(text.to_owned(), parts(pieces, expansion))];
    }
    if expansion == Expansion::Argument
        && let Some(expanded) = brace::expand(&pieces)
    {
        return expanded
            .into_iter()
            .filter(|pieces| !pieces.is_empty())
            .map(|pieces| Word::new(text.to_owned(), parts(pieces, expansion)))
            .collect();
    }
    let mut doubted = vec![Part::Brace];
    doubted.extend(parts(pieces, expansion));
    vec![Word::new(text.to_owned(), doubted)]
}

/// The one word that a written word becomes where it cannot become several.
pub(crate) fn word(text: &str, pieces: Vec<Piece>, expansion: Expansion) -> Word {
    debug_assert!(expansion != Expansion::Argument, "an argument may become several words");
    words(text, pieces, expansion).pop().unwrap_or_default()
}

fn parts(pieces: Vec<Piece>, expansion: Expansion) -> Vec<Part> {
    let mut parts = Parts {
        found: Vec::new(),
        closing_brackets: pieces.iter().map(closing_brackets).sum(),
        in_bracket: false,
        patterns: expansion != Expansion::Value,
        at_tilde_place: true,
    };
    for piece in pieces {
        match piece {
            Piece::Bare(text) => parts.bare(&text),
            Piece::Quoted(text) => {
                parts.at_tilde_place = false;
                parts.found.push(Part::Literal(text));
            }
            Piece::Special(part) => {
                parts.at_tilde_place = false;
                parts.found.push(part);
            }
        }
    }
    parts.found
}

fn closing_brackets(piece: &Piece) -> usize {
    match piece {
        Piece::Bare(text) => text.matches(']').count(),
        _ => 0,
    }
}

/// The parts of a word while they are made.
struct Parts {
    found: Vec<Part>,
    /// How many bare `]` are still to come.
    closing_brackets: usize,
    in_bracket: bool,
    patterns: bool,
    /// Whether a tilde here would be expanded.
    at_tilde_place: bool,
}

impl Parts {
    fn bare(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if c == '~' && self.at_tilde_place {
                let end = rest.find(['/', ':']).unwrap_or(rest.len());
                self.found.push(Part::Tilde(rest[..end].to_owned()));
                self.at_tilde_place = false;
                rest = &rest[end..];
                continue;
            }
            rest = &rest[c.len_utf8()..];
            // Also behind `=` where bash would not expand it: a doubt too many does no harm.
            self.at_tilde_place = matches!(c, ':' | '=');
            self.closing_brackets -= usize::from(c == ']');
            let special = self.patterns
                && match c {
                    '*' | '?' => true,
                    '[' => self.in_bracket || self.closing_brackets > 0,
                    _ => self.in_bracket,
                };
            if special {
                self.in_bracket = (self.in_bracket || c == '[') && c != ']';
            }
            match (special, self.found.last_mut()) {
                (true, Some(Part::Glob(pattern))) => pattern.push(c),
                (true, _) => self.found.push(Part::Glob(c.into())),
                (false, Some(Part::Literal(literal))) => literal.push(c),
                (false, _) => {
                    let mut literal = String::with_capacity(c.len_utf8() + rest.len());
                    literal.push(c);
                    self.found.push(Part::Literal(literal));
                }
            }
        }
    }
}
