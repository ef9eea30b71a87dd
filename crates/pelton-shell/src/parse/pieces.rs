//! One word, from its first character to the blank or operator behind it, as pieces with and without quotes.

use crate::expand::Piece;
use crate::script::{DoubtKind, Place, Unclear};
use crate::word::{Part, Word};

use super::{Parser, Read, is_break, is_name};

/// Where a word stands, as far as it changes how it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexing {
    /// An argument.
    Word,
    /// Where an assignment may stand: `name[…]=…` and `name=(…)` are read.
    Command,
    /// An argument of a declaring builtin: `name=(…)` is read.
    Declaration,
    /// In `case` and `[[ ]]`.
    Pattern,
    /// To the right of `=~`, where parentheses and bars belong to the word.
    Regex,
}

/// Inside which quotes something stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Bare,
    Double,
    /// In the text of a here-document, where double quotes are ordinary characters.
    Document,
}

/// A word that has been read.
pub(super) struct Lexed {
    pub(super) pieces: Vec<Piece>,
    /// It began with `name[…]=`; the subscript is not among the pieces.
    pub(super) element: bool,
    /// It was `name=(…)`, with these elements.
    pub(super) array: Option<Vec<Word>>,
}

impl Parser<'_, '_> {
    pub(super) fn pieces(&mut self, lexing: Lexing) -> Read<Lexed> {
        let start = self.at;
        let mut lexed = Lexed { pieces: Vec::new(), element: false, array: None };
        let mut parentheses = 0_usize;
        while let Some(byte) = self.peek() {
            let pieces = &mut lexed.pieces;
            match byte {
                b'\\' => {
                    self.at += 1;
                    let c =
                        self.take_char().ok_or(Unclear::Unfinished("the character behind a backslash"))?;
                    push(pieces, c, Quoting::Double);
                }
                b'\'' => self.single_quoted(pieces)?,
                b'"' => {
                    self.bump();
                    self.deeper(|it| it.double_quoted(pieces))?;
                }
                b'$' => self.dollar(pieces, Quoting::Bare)?,
                b'`' => self.backquote(pieces, Quoting::Bare)?,
                b'<' | b'>' if self.peek_second() == Some(b'(') => {
                    self.bump();
                    self.bump();
                    self.placed(Place { in_process: true, ..self.place }, Self::substitution)?;
                    pieces.push(Piece::Special(Part::Pipe));
                }
                b'\n' if parentheses > 0 => {
                    return Err(Unclear::Syntax("a regular expression over several lines"));
                }
                b'(' if lexing == Lexing::Regex => {
                    parentheses += 1;
                    self.ordinary(pieces);
                }
                b')' if parentheses > 0 => {
                    parentheses -= 1;
                    self.ordinary(pieces);
                }
                b'|' if lexing == Lexing::Regex => self.ordinary(pieces),
                byte if parentheses > 0 && is_break(byte) => self.ordinary(pieces),
                b'(' if matches!(lexing, Lexing::Command | Lexing::Declaration) && awaits_array(pieces) => {
                    let start = self.at;
                    let elements = self.deeper(Self::array)?;
                    // Bash reads a substitution twice, and loses the backslashes of arrays in between: what was quoted ends
                    // commands then, and the lines behind it run.
                    let inside = self.text.get(start..self.at).unwrap_or_default();
                    if self.place.in_substitution && inside.contains('\\') {
                        return Err(Unclear::Syntax("a backslash in an array inside of a substitution"));
                    }
                    pieces.push(Piece::Special(Part::Array));
                    lexed.array = Some(elements);
                    if !self.peek().is_none_or(is_break) || self.peek() == Some(b'(') {
                        return Err(Unclear::Syntax("something glued to an array"));
                    }
                    break;
                }
                b'(' if is_extended_pattern(pieces) => {
                    return Err(Unclear::Syntax("an extended pattern"));
                }
                b'[' if lexing == Lexing::Command && is_single_name(pieces) => self.element(&mut lexed)?,
                byte if is_break(byte) => break,
                _ => self.ordinary(pieces),
            }
        }
        if parentheses > 0 {
            return Err(Unclear::Unfinished("the end of a regular expression"));
        }
        if self.at == start || lexed.pieces.is_empty() {
            return Err(self.missing("a word"));
        }
        Ok(lexed)
    }

    fn ordinary(&mut self, pieces: &mut Vec<Piece>) {
        if let Some(c) = self.take_char() {
            push(pieces, c, Quoting::Bare);
        }
    }

    fn single_quoted(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        self.bump();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.find('\'').ok_or(Unclear::Unfinished("a closing single quote"))?;
        push_quoted(pieces, &rest[..length]);
        self.at += length + 1;
        Ok(())
    }

    /// The text after an opening double quote, and the closing one.
    pub(super) fn double_quoted(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        push_quoted(pieces, "");
        loop {
            match self.peek().ok_or(Unclear::Unfinished("a closing double quote"))? {
                b'"' => {
                    self.bump();
                    return Ok(());
                }
                _ => self.quoted_character(pieces, Quoting::Double)?,
            }
        }
    }

    /// One character, escape or expansion in double quotes or in the text of a here-document.
    pub(super) fn quoted_character(&mut self, pieces: &mut Vec<Piece>, quoting: Quoting) -> Read<()> {
        match self.peek() {
            Some(b'\\') => {
                self.at += 1;
                let escapes = match self.rest().first() {
                    Some(b'$' | b'`' | b'\\') => true,
                    Some(b'"') => quoting == Quoting::Double,
                    _ => false,
                };
                if !escapes {
                    push(pieces, '\\', quoting);
                }
                match self.take_char() {
                    Some(c) => push(pieces, c, quoting),
                    None if quoting == Quoting::Document => {}
                    None => return Err(Unclear::Unfinished("a closing double quote")),
                }
                Ok(())
            }
            Some(b'$') => self.dollar(pieces, quoting),
            Some(b'`') => self.backquote(pieces, quoting),
            _ => {
                if let Some(c) = self.take_char() {
                    push(pieces, c, quoting);
                }
                Ok(())
            }
        }
    }

    /// `[…]=` after a name, where an assignment may stand.
    fn element(&mut self, lexed: &mut Lexed) -> Read<()> {
        let start = self.at;
        let evaluated = self.subscript()?;
        let subscript = self.since(start);
        if self.sees("=") || self.sees("+=") {
            if evaluated {
                self.found.doubt(DoubtKind::Subscript, subscript);
            }
            lexed.element = true;
            return Ok(());
        }
        if evaluated || subscript.contains('\\') {
            return Err(Unclear::Syntax("a bracket in a command word"));
        }
        for c in subscript.chars() {
            push(&mut lexed.pieces, c, Quoting::Bare);
        }
        Ok(())
    }

    /// `(…)` of an array: its elements, each without its subscript.
    fn array(&mut self) -> Read<Vec<Word>> {
        self.bump();
        let mut elements = Vec::new();
        loop {
            self.blank_lines_without_documents()?;
            if self.eat(")") {
                return Ok(elements);
            }
            if self.peek() == Some(b'[') {
                let start = self.at;
                if self.subscript()? {
                    let text = self.since(start);
                    self.found.doubt(DoubtKind::Subscript, text);
                }
                if !(self.eat("=") || self.eat("+=")) {
                    return Err(Unclear::Syntax("a bracket in an array"));
                }
                if self.peek().is_none_or(is_break) {
                    elements.push(Word::of_literal(""));
                    continue;
                }
            }
            elements.extend(self.expanded_word()?);
        }
    }

    /// Blank lines at a place where no here-document can begin.
    pub(super) fn blank_lines_without_documents(&mut self) -> Read<()> {
        let waiting = self.pending.len() + self.held;
        self.blanks();
        if waiting > 0 && self.peek() == Some(b'\n') {
            return Err(Unclear::Syntax("a here-document that begins inside something else"));
        }
        self.blank_lines()
    }
}

/// Adds a character to the last piece, or begins one.
pub(super) fn push(pieces: &mut Vec<Piece>, c: char, quoting: Quoting) {
    match (pieces.last_mut(), quoting) {
        (Some(Piece::Bare(text)), Quoting::Bare) => text.push(c),
        (Some(Piece::Quoted(text)), Quoting::Double | Quoting::Document) => text.push(c),
        (_, Quoting::Bare) => pieces.push(Piece::Bare(c.into())),
        (_, Quoting::Double | Quoting::Document) => pieces.push(Piece::Quoted(c.into())),
    }
}

pub(super) fn push_quoted(pieces: &mut Vec<Piece>, more: &str) {
    match pieces.last_mut() {
        Some(Piece::Quoted(text)) => text.push_str(more),
        _ => pieces.push(Piece::Quoted(more.to_owned())),
    }
}

/// `name=` or `name+=`, and nothing else.
fn awaits_array(pieces: &[Piece]) -> bool {
    let [Piece::Bare(text)] = pieces else { return false };
    text.strip_suffix('=').is_some_and(|name| is_name(name.strip_suffix('+').unwrap_or(name)))
}

fn is_single_name(pieces: &[Piece]) -> bool {
    matches!(pieces, [Piece::Bare(text)] if is_name(text))
}

fn is_extended_pattern(pieces: &[Piece]) -> bool {
    matches!(pieces.last(), Some(Piece::Bare(text)) if text.ends_with(['?', '*', '+', '@', '!']))
}
