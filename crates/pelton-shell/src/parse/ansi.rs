//! `$'…'`, with its escapes.

use crate::expand::Piece;
use crate::script::Unclear;
use crate::word::Part;

use super::pieces::push_quoted;
use super::{Parser, Read};

impl Parser<'_, '_> {
    /// At the dollar sign of `$'…'`.
    pub(super) fn ansi(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        const OPEN: Unclear = Unclear::Unfinished("a closing single quote");
        self.bump();
        self.bump();
        let mut bytes = Vec::new();
        let mut readable = true;
        loop {
            match self.take_char().ok_or(OPEN)? {
                '\'' => break,
                '\\' => {
                    let c = self.take_char().ok_or(OPEN)?;
                    match self.escape(c) {
                        Some(more) => bytes.extend(more),
                        None => readable = false,
                    }
                }
                c => bytes.extend(c.to_string().into_bytes()),
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) if readable => push_quoted(pieces, &text),
            _ => pieces.push(Piece::Special(Part::Unreadable)),
        }
        Ok(())
    }

    /// What an escape stands for; nothing if that depends on more than the text.
    fn escape(&mut self, c: char) -> Option<Vec<u8>> {
        let byte = match c {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '?' => u8::try_from(u32::from(c)).ok()?,
            '0'..='7' => {
                let first = c.to_digit(8)?;
                let value = self.digits(8, 2).into_iter().fold(first, |value, digit| value * 8 + digit);
                u8::try_from(value & 0xff).ok()?
            }
            'x' => {
                let digits = self.digits(16, 2);
                if digits.is_empty() {
                    return None;
                }
                u8::try_from(digits.into_iter().fold(0, |value, digit| value * 16 + digit)).ok()?
            }
            'u' | 'U' => {
                let digits = self.digits(16, if c == 'u' { 4 } else { 8 });
                let value = digits.iter().fold(0_u64, |value, digit| value * 16 + u64::from(*digit));
                // Beyond ASCII it depends on the locale.
                u8::try_from(value).ok().filter(|value| !digits.is_empty() && value.is_ascii())?
            }
            'c' => {
                self.take_char();
                return None;
            }
            other => return Some(format!("\\{other}").into_bytes()),
        };
        // Nothing ends the text early, and bash uses these two for itself.
        (!matches!(byte, 0 | 1 | 127)).then(|| vec![byte])
    }

    fn digits(&mut self, radix: u32, most: usize) -> Vec<u32> {
        let mut digits = Vec::new();
        while digits.len() < most {
            let Some(digit) = self.rest().first().and_then(|byte| char::from(*byte).to_digit(radix)) else {
                break;
            };
            digits.push(digit);
            self.at += 1;
        }
        digits
    }
}
