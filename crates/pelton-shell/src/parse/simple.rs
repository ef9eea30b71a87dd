//! One simple command: assignments, words, redirections, in any order bash takes them.

use crate::expand::{Expansion, Piece, words};
use crate::script::{Assignment, AssignmentKind, Command, DoubtKind, Place, Redirection, Unclear};
use crate::word::Word;

use super::pieces::{Lexed, Lexing};
use super::{Draft, Parser, Read, builtin, is_name};

/// Builtins whose arguments may be assignments of arrays.
const DECLARING: &[&str] = &["alias", "declare", "eval", "export", "let", "local", "readonly", "typeset"];

/// A simple command while it is read.
#[derive(Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirections: Vec<Redirection>,
    pub(super) documents: Vec<(usize, usize)>,
}

impl Simple {
    pub(super) fn into_draft(self, text: &str, place: Place) -> Draft {
        let Self { assignments, words, redirections, documents } = self;
        let command =
            Command { text: text.to_owned(), assignments, words, redirections, place, ..Command::default() };
        Draft { command, documents }
    }

    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirections.is_empty()
    }
}

impl Parser<'_, '_> {
    pub(super) fn simple_command(&mut self) -> Read<()> {
        let index = self.found.drafts.len();
        let start = self.at;
        let mut end = start;
        let mut simple = Simple::default();
        // Whether a word was there, even if its braces became nothing.
        let mut worded = false;
        loop {
            self.blanks();
            if self.redirection(&mut simple)? {
                end = self.at;
                continue;
            }
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(b'(') => {
                    let alone = simple.assignments.is_empty() && simple.redirections.is_empty();
                    let [name] = simple.words.as_slice() else {
                        return Err(Unclear::Syntax("a parenthesis out of place"));
                    };
                    if !alone {
                        return Err(Unclear::Syntax("a parenthesis out of place"));
                    }
                    let name = name.text().to_owned();
                    return self.function_by_parentheses(&name);
                }
                Some(_) if worded => {
                    let declaring = simple
                        .words
                        .first()
                        .and_then(Word::literal)
                        .is_some_and(|name| DECLARING.contains(&name));
                    let from = self.at;
                    let lexed = self.pieces(if declaring { Lexing::Declaration } else { Lexing::Word })?;
                    simple.words.extend(words(self.since(from), lexed.pieces, Expansion::Argument));
                }
                Some(_) => {
                    let from = self.at;
                    let lexed = self.pieces(Lexing::Command)?;
                    let text = self.since(from);
                    match assignment(text, lexed) {
                        Ok(assignment) => simple.assignments.push(assignment),
                        Err(pieces) => {
                            worded = true;
                            simple.words.extend(words(text, pieces, Expansion::Argument));
                        }
                    }
                }
            }
            end = self.at;
        }
        if simple.is_empty() && !worded {
            return Err(self.missing("a command"));
        }
        let text = self.text.get(start..end).unwrap_or_default();
        for assignment in &simple.assignments {
            if assignment.kind == AssignmentKind::Array {
                self.found.doubt(DoubtKind::Array, text);
            }
        }
        if let Some(kind) = builtin::doubt(&simple.words) {
            self.found.doubt(kind, text);
        }
        let draft = simple.into_draft(text, self.place);
        self.found.drafts.insert(index, draft);
        Ok(())
    }

    /// A word whose braces and patterns are expanded.
    pub(super) fn expanded_word(&mut self) -> Read<Vec<Word>> {
        let start = self.at;
        let lexed = self.pieces(Lexing::Word)?;
        Ok(words(self.since(start), lexed.pieces, Expansion::Argument))
    }

    /// A word that stays one word, whatever is in it.
    pub(super) fn plain_word(&mut self, lexing: Lexing) -> Read<Word> {
        let start = self.at;
        let lexed = self.pieces(lexing)?;
        Ok(crate::expand::word(self.since(start), lexed.pieces, Expansion::Value))
    }

    fn function_by_parentheses(&mut self, name: &str) -> Read<()> {
        self.bump();
        self.blanks();
        if !self.eat(")") {
            return Err(self.missing("`)`"));
        }
        self.function_body(name)
    }
}

/// The assignment that a word at the beginning of a command is, or its pieces back.
fn assignment(text: &str, mut lexed: Lexed) -> Result<Assignment, Vec<Piece>> {
    let Some(Piece::Bare(first)) = lexed.pieces.first_mut() else { return Err(lexed.pieces) };
    let Some(equals) = first.find('=') else { return Err(lexed.pieces) };
    let left = &first[..equals];
    let (name, append) = match left.strip_suffix('+') {
        Some(name) => (name, true),
        None => (left, false),
    };
    if !is_name(name) {
        return Err(lexed.pieces);
    }
    let elements = lexed.array.take();
    let kind = match (lexed.element, elements.is_some(), append) {
        (true, _, _) => AssignmentKind::Element,
        (_, true, _) => AssignmentKind::Array,
        (_, _, true) => AssignmentKind::Append,
        _ => AssignmentKind::Plain,
    };
    let name = name.to_owned();
    first.drain(..=equals);
    // With a subscript that holds `=` this is not where the value begins; what is written is all there is to show then.
    let written = text.split_once('=').map_or("", |(_, value)| value);
    let value = crate::expand::word(written, lexed.pieces, Expansion::Value);
    Ok(Assignment { name, kind, value, elements: elements.unwrap_or_default() })
}
