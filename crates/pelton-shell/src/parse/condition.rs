//! `[[ … ]]`. Nothing in it is a command, but words are expanded, numbers are evaluated and names may have subscripts.

use crate::script::{DoubtKind, Place, Unclear};
use crate::word::Word;

use super::pieces::Lexing;
use super::{Parser, Read, is_name};

/// Letters of tests with one operand.
const UNARY: &str = "abcdefghknoprstuvwxzGLNORS";

/// Tests with two operands. `<` and `>` are read as operators.
const TEXTS: &[&str] = &["==", "=", "!=", "-ef", "-nt", "-ot"];
/// Letters of tests that are no questions about a file.
const NO_FILES: &str = "nvzoRt";
/// Tests that compare files.
const FILES: &[&str] = &["-ef", "-nt", "-ot"];
const NUMBERS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

const MISPLACED: Unclear = Unclear::Syntax("a condition that bash may read in another way");

impl Parser<'_, '_> {
    pub(super) fn condition(&mut self) -> Read<()> {
        self.expect_reserved("[[")?;
        self.any_of()?;
        if !self.closes_condition() {
            return Err(self.missing("`]]`"));
        }
        self.eat("]]");
        Ok(())
    }

    /// Terms between `||` and `&&`. Which of them binds stronger makes no difference here.
    fn any_of(&mut self) -> Read<()> {
        self.term()?;
        loop {
            self.blanks_in_condition(Lines::Several)?;
            if !(self.eat("&&") || self.eat("||")) {
                return Ok(());
            }
            self.placed(Place { conditional: true, ..self.place }, Self::term)?;
        }
    }

    fn term(&mut self) -> Read<()> {
        self.blanks_in_condition(Lines::Several)?;
        if self.eat("(") {
            self.deeper(Self::any_of)?;
            return if self.eat(")") { Ok(()) } else { Err(self.missing("`)`")) };
        }
        let left = self.operand(Lexing::Pattern)?;
        if left.text() == "!" {
            return self.deeper(Self::term);
        }
        if let Some(letter) = left.text().strip_prefix('-')
            && letter.len() == 1
            && UNARY.contains(letter)
        {
            let operand = self.operand(Lexing::Pattern)?;
            if matches!(letter, "v" | "R") && !operand.literal().is_some_and(is_name) {
                self.found.doubt(DoubtKind::Subscript, operand.text());
            }
            if !NO_FILES.contains(letter) {
                self.found.asked_about.push(operand);
            }
            return Ok(());
        }
        self.blanks_in_condition(Lines::One)?;
        match self.peek() {
            None | Some(b'\n' | b'&' | b'|' | b')') => return Ok(()),
            Some(b'<' | b'>') if self.peek_second() != Some(b'(') => {
                self.bump();
                self.operand(Lexing::Pattern)?;
                return Ok(());
            }
            Some(_) if self.closes_condition() => return Ok(()),
            Some(_) => {}
        }
        let operator = self.operand(Lexing::Pattern)?;
        match operator.text() {
            "=~" => {
                self.operand(Lexing::Regex)?;
            }
            operator if TEXTS.contains(&operator) => {
                let right = self.operand(Lexing::Pattern)?;
                if FILES.contains(&operator) {
                    self.found.asked_about.extend([left, right]);
                }
            }
            operator if NUMBERS.contains(&operator) => {
                let right = self.operand(Lexing::Pattern)?;
                for number in [left, right] {
                    if !number.literal().is_some_and(is_integer) {
                        self.found.doubt(DoubtKind::Arithmetic, number.text());
                    }
                }
            }
            _ => return Err(MISPLACED),
        }
        Ok(())
    }

    fn operand(&mut self, lexing: Lexing) -> Read<Word> {
        self.blanks_in_condition(Lines::One)?;
        if self.closes_condition() {
            return Err(MISPLACED);
        }
        let word = self.plain_word(lexing)?;
        self.doubt_outside(&word);
        Ok(word)
    }

    fn closes_condition(&mut self) -> bool {
        self.sees_word("]]")
    }

    fn blanks_in_condition(&mut self, lines: Lines) -> Read<()> {
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t')) {
                self.at += 1;
            }
            match self.peek() {
                Some(b'#') => return Err(Unclear::Syntax("a comment in a condition")),
                Some(b'\n') if !self.pending.is_empty() || self.held > 0 => {
                    return Err(Unclear::Syntax("a here-document that begins inside something else"));
                }
                Some(b'\n') if lines == Lines::Several => self.bump(),
                _ => return Ok(()),
            }
        }
    }
}

/// Whether lines may end here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    One,
    Several,
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
