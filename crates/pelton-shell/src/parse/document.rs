//! The texts of here-documents, which begin on the line after the one that asks for them.

use crate::expand::{Expansion, word};
use crate::script::Unclear;
use crate::word::Word;

use super::pieces::Quoting;
use super::{Parser, Pending, Read};

impl Parser<'_, '_> {
    /// Reads the here-documents that were asked for, at the beginning of a line.
    pub(super) fn documents(&mut self) -> Read<()> {
        for pending in std::mem::take(&mut self.pending) {
            let body = self.document(&pending)?;
            let text = if pending.quoted {
                Word::of_literal(body)
            } else {
                self.inside(&body, |parser| {
                    parser.place = pending.place;
                    let mut pieces = Vec::new();
                    while parser.peek().is_some() {
                        parser.quoted_character(&mut pieces, Quoting::Document)?;
                    }
                    Ok(word(&body, pieces, Expansion::Value))
                })?
            };
            if let Some(slot) = self.found.documents.get_mut(pending.number) {
                *slot = Some(text);
            }
        }
        Ok(())
    }

    /// The lines up to the delimiter.
    fn document(&mut self, pending: &Pending) -> Read<String> {
        let mut body = String::new();
        loop {
            if self.rest().is_empty() {
                return Err(Unclear::Unfinished("the end of a here-document"));
            }
            let line = self.document_line(pending.quoted);
            let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if line == pending.delimiter {
                return Ok(body);
            }
            // In a substitution bash may take the beginning of a line for the delimiter.
            if self.place.in_substitution && line.starts_with(&pending.delimiter) {
                return Err(Unclear::Syntax("a line that may end a here-document"));
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    /// One line without its end; several when they are continued, which they can be if the delimiter is not quoted.
    fn document_line(&mut self, quoted: bool) -> String {
        let mut line = String::new();
        while let Some(c) = self.take_char() {
            match c {
                '\n' => break,
                '\\' if !quoted => match self.take_char() {
                    Some('\n') => {}
                    Some(escaped) => line.extend(['\\', escaped]),
                    None => line.push('\\'),
                },
                c => line.push(c),
            }
        }
        line
    }
}
