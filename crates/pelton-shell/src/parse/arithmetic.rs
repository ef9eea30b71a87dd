//! Arithmetic: where it ends, which commands run in it, and whether it is only numbers.

use crate::script::{DoubtKind, Unclear};

use super::pieces::Quoting;
use super::{Parser, Read};

impl Parser<'_, '_> {
    /// `((…))`, as a command or as the head of a loop.
    pub(super) fn arithmetic_command(&mut self) -> Read<()> {
        let start = self.at;
        self.bump();
        self.bump();
        let plain = self.expression(b'(', b')')?;
        self.second_parenthesis()?;
        if !plain {
            let text = self.since(start);
            self.found.doubt(DoubtKind::Arithmetic, text);
        }
        Ok(())
    }

    /// `$((…))`; tells whether it is only numbers.
    pub(super) fn arithmetic_expansion(&mut self) -> Read<bool> {
        for _ in 0.."$((".len() {
            self.bump();
        }
        let start = self.at;
        let plain = self.expression(b'(', b')')?;
        let inner = self.since(start);
        self.second_parenthesis()?;
        // Bash counts once more when it expands: if the count differs, it takes it for a command after all.
        if inner.matches('(').count() + 1 != inner.matches(')').count() {
            return Err(Unclear::Syntax("arithmetic with parentheses that do not match"));
        }
        Ok(plain)
    }

    /// `[…]`; tells whether anything in it is evaluated.
    pub(super) fn subscript(&mut self) -> Read<bool> {
        self.bump();
        Ok(!self.expression(b'[', b']')?)
    }

    /// Takes what begins with a digit. Tells whether it is a number, in digits or hexadecimal.
    fn is_number(&mut self) -> bool {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'#' | b'@'))
        {
            self.take_char();
        }
        let word = self.since(start);
        let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
        let is_hexadecimal = digits.len() < word.len();
        digits.bytes().all(|byte| byte.is_ascii_digit() || is_hexadecimal && byte.is_ascii_hexdigit())
    }

    /// With anything between the parentheses bash reads `((` as two subshells.
    fn second_parenthesis(&mut self) -> Read<()> {
        if self.rest().first() != Some(&b')') {
            return Err(Unclear::Syntax("two parentheses that may be arithmetic or subshells"));
        }
        self.at += 1;
        Ok(())
    }

    /// An expression and its closing sign. Tells whether it is made of numbers and operators only.
    fn expression(&mut self, open: u8, close: u8) -> Read<bool> {
        let mut plain = true;
        let mut depth = 0_usize;
        let mut unused = Vec::new();
        loop {
            let byte = self.peek().ok_or(Unclear::Unfinished("the end of an expression"))?;
            if byte == close {
                self.bump();
                if depth == 0 {
                    return Ok(plain);
                }
                depth -= 1;
                continue;
            }
            depth += usize::from(byte == open);
            match byte {
                b'$' if matches!(self.peek_second(), Some(b'\'' | b'"')) => {
                    return Err(Unclear::Syntax("a quote in an expression"));
                }
                b'$' => {
                    plain = false;
                    self.deeper(|it| it.dollar(&mut unused, Quoting::Double))?;
                    unused.clear();
                }
                b'`' => {
                    plain = false;
                    self.backquote(&mut unused, Quoting::Double)?;
                    unused.clear();
                }
                b'\'' | b'"' | b'\\' => return Err(Unclear::Syntax("a quote in an expression")),
                b'\n' if !self.pending.is_empty() || self.held > 0 => {
                    return Err(Unclear::Syntax("a here-document that begins inside something else"));
                }
                b'0'..=b'9' => plain &= self.is_number(),
                _ => {
                    plain &= is_plain(byte);
                    self.take_char();
                }
            }
        }
    }
}

/// Whether a character can do nothing but calculate.
fn is_plain(byte: u8) -> bool {
    b" \t\n+-*/%<>=!&|^~?:,;()".contains(&byte)
}
