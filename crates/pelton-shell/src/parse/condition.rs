//! `[[ … ]]`. Nothing in it is a command, but words are expanded, numbers are evaluated and names may have subscripts.

use crate::script::{DoubtKind, Unclear};
use crate::word::Word;

use super::pieces::Lexing;
use super::{Parser, Read, is_break, is_name};

/// What the next operand is taken for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
    Text,
    Regex,
    Number,
    Name,
}

impl Parser<'_, '_> {
    pub(super) fn condition(&mut self) -> Read<()> {
        self.expect_reserved("[[")?;
        let mut expected = Operand::Text;
        let mut before: Option<Word> = None;
        loop {
            self.blanks_in_condition()?;
            if self.closes_condition() {
                self.eat("]]");
                return Ok(());
            }
            match self.peek() {
                None => return Err(Unclear::Unfinished("`]]`")),
                Some(b'<' | b'>') if self.peek_second() != Some(b'(') => {
                    self.bump();
                    continue;
                }
                Some(b'(' | b')') if expected != Operand::Regex => {
                    self.bump();
                    before = None;
                    continue;
                }
                Some(b'&' | b'|') if expected != Operand::Regex => {
                    if !(self.eat("&&") || self.eat("||")) {
                        return Err(Unclear::Syntax("an operator out of place"));
                    }
                    before = None;
                    continue;
                }
                Some(b';') => return Err(Unclear::Syntax("an operator out of place")),
                Some(_) => {}
            }
            let lexing = if expected == Operand::Regex { Lexing::Regex } else { Lexing::Pattern };
            let word = self.plain_word(lexing)?;
            self.doubt_outside(&word);
            self.doubt_operand(expected, &word);
            expected = match word.text() {
                "=~" => Operand::Regex,
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                    if let Some(left) = &before {
                        self.doubt_operand(Operand::Number, left);
                    }
                    Operand::Number
                }
                "-v" | "-R" => Operand::Name,
                _ => Operand::Text,
            };
            before = Some(word);
        }
    }

    fn doubt_operand(&mut self, expected: Operand, word: &Word) {
        match expected {
            Operand::Number if !word.literal().is_some_and(is_integer) => {
                self.found.doubt(DoubtKind::Arithmetic, word.text());
            }
            Operand::Name if !word.literal().is_some_and(is_name) => {
                self.found.doubt(DoubtKind::Subscript, word.text());
            }
            _ => {}
        }
    }

    fn closes_condition(&mut self) -> bool {
        let start = self.at;
        let closes = self.eat("]]") && self.peek().is_none_or(is_break);
        self.at = start;
        closes
    }

    fn blanks_in_condition(&mut self) -> Read<()> {
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t')) {
                self.at += 1;
            }
            match self.peek() {
                Some(b'#') => return Err(Unclear::Syntax("a comment in a condition")),
                Some(b'\n') if !self.pending.is_empty() || self.held > 0 => {
                    return Err(Unclear::Syntax("a here-document that begins inside something else"));
                }
                Some(b'\n') => self.bump(),
                _ => return Ok(()),
            }
        }
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
