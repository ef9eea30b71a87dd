//! Redirections, with whatever stands in front of the operator.

use crate::expand::{Expansion, Piece, word};
use crate::script::{DoubtKind, Redirection, RedirectionKind, Unclear};
use crate::word::Word;

use super::pieces::Lexing;
use super::simple::Simple;
use super::{Parser, Pending, Read, is_name};

/// Longer numbers are no descriptors, and bash takes them for words at some length.
const DESCRIPTOR_DIGITS_MAX: usize = 5;

impl Parser<'_, '_> {
    /// Reads a redirection if one stands here.
    pub(super) fn redirection(&mut self, simple: &mut Simple) -> Read<bool> {
        if self.eat("&>>") {
            self.file(simple, None, RedirectionKind::AppendBoth)?;
            return Ok(true);
        }
        if self.eat("&>") {
            self.file(simple, None, RedirectionKind::WriteBoth)?;
            return Ok(true);
        }
        let start = self.at;
        let descriptor = self.descriptor()?;
        // A process substitution belongs to a word even behind digits.
        if !matches!(self.peek(), Some(b'<' | b'>')) || self.peek_second() == Some(b'(') {
            self.at = start;
            return Ok(false);
        }
        if descriptor.as_deref().is_some_and(|descriptor| descriptor.starts_with('{')) {
            let text = self.since(start);
            self.found.doubt(DoubtKind::Descriptor, text);
        }
        if self.eat("<<<") {
            self.blanks();
            let target = self.plain_word(Lexing::Word)?;
            let kind = RedirectionKind::HereString;
            simple.redirections.push(Redirection { descriptor, kind, target });
        } else if self.eat("<<-") {
            self.here_document(simple, descriptor, true)?;
        } else if self.eat("<<") {
            self.here_document(simple, descriptor, false)?;
        } else if self.eat("<>") {
            self.file(simple, descriptor, RedirectionKind::ReadWrite)?;
        } else if self.eat("<&") {
            self.duplicate(simple, descriptor, RedirectionKind::Read)?;
        } else if self.eat("<") {
            self.file(simple, descriptor, RedirectionKind::Read)?;
        } else if self.eat(">>") {
            self.file(simple, descriptor, RedirectionKind::Append)?;
        } else if self.eat(">|") {
            self.file(simple, descriptor, RedirectionKind::Clobber)?;
        } else if self.eat(">&") {
            self.duplicate(simple, descriptor, RedirectionKind::Write)?;
        } else if self.eat(">") {
            self.file(simple, descriptor, RedirectionKind::Write)?;
        }
        Ok(true)
    }

    /// `2` or `{name}`, if an operator stands right behind it.
    fn descriptor(&mut self) -> Read<Option<String>> {
        let start = self.at;
        let mut text = String::new();
        if self.eat("{") {
            text.push('{');
        }
        while let Some(byte) = self.peek().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            text.push(byte.into());
            self.at += 1;
        }
        if text.starts_with('{') && self.sees("[") {
            return self.element_as_descriptor(start);
        }
        let named = text.strip_prefix('{').is_some_and(is_name) && self.eat("}");
        if named {
            text.push('}');
        }
        let numbered = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !(named || numbered) || !matches!(self.peek(), Some(b'<' | b'>')) {
            self.at = start;
            return Ok(None);
        }
        if text.len() > DESCRIPTOR_DIGITS_MAX && numbered {
            return Err(Unclear::Syntax("a descriptor with many digits"));
        }
        Ok(Some(text))
    }

    /// `{name[…]}>` is possible, too, and evaluates the subscript.
    fn element_as_descriptor(&mut self, start: usize) -> Read<Option<String>> {
        self.at = start;
        let rest = self.text.get(start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        if line.contains("]}<") || line.contains("]}>") || line.ends_with('\\') {
            return Err(Unclear::Syntax("a descriptor with a subscript"));
        }
        Ok(None)
    }

    fn file(&mut self, simple: &mut Simple, descriptor: Option<String>, kind: RedirectionKind) -> Read<()> {
        let target = self.target()?;
        simple.redirections.push(Redirection { descriptor, kind, target });
        Ok(())
    }

    fn target(&mut self) -> Read<Word> {
        self.blanks();
        let start = self.at;
        let lexed = self.pieces(Lexing::Word)?;
        let target = word(self.since(start), lexed.pieces, Expansion::Target);
        if ["/dev/tcp/", "/dev/udp/"].iter().any(|device| target.literal_prefix().starts_with(device)) {
            self.found.doubt(DoubtKind::Network, target.text());
        }
        Ok(target)
    }

    /// What follows `<&` or `>&`.
    fn duplicate(
        &mut self,
        simple: &mut Simple,
        descriptor: Option<String>,
        towards: RedirectionKind,
    ) -> Read<()> {
        self.blanks();
        if self.eat("-") {
            let target = Word::of_literal("-");
            simple.redirections.push(Redirection { descriptor, kind: RedirectionKind::Close, target });
            return Ok(());
        }
        let target = self.target()?;
        let kind = match target.literal() {
            Some(text) if is_descriptor(text) => RedirectionKind::Duplicate,
            // `>&file`: the old form of `&>file`.
            Some(text)
                if towards == RedirectionKind::Write
                    && is_safe_to_expand_twice(text)
                    && !text.starts_with(|c: char| c.is_ascii_digit())
                    && descriptor.as_deref().is_none_or(|descriptor| descriptor == "1") =>
            {
                RedirectionKind::WriteBoth
            }
            // Bash expands this word a second time, without the quotes it had.
            Some(text) if !is_safe_to_expand_twice(text) => {
                return Err(Unclear::Syntax("a quoted target behind `>&` or `<&`"));
            }
            _ => {
                self.found.doubt(DoubtKind::Descriptor, target.text());
                RedirectionKind::Unknown
            }
        };
        simple.redirections.push(Redirection { descriptor, kind, target });
        Ok(())
    }

    fn here_document(
        &mut self,
        simple: &mut Simple,
        descriptor: Option<String>,
        strip_tabs: bool,
    ) -> Read<()> {
        self.blanks();
        let start = self.at;
        let lexed = self.pieces(Lexing::Word)?;
        let written = self.since(start);
        let mut delimiter = String::new();
        let mut quoted = false;
        for piece in lexed.pieces {
            match piece {
                Piece::Bare(text) => delimiter.push_str(&text),
                Piece::Quoted(text) => {
                    quoted = true;
                    delimiter.push_str(&text);
                }
                Piece::Special(_) => return Err(Unclear::Syntax("an expansion as a delimiter")),
            }
        }
        // Expansions are not expanded here, and quotes in them are read in ways of their own.
        if delimiter.is_empty() || written.contains(['$', '`', '\n']) {
            return Err(Unclear::Syntax("an uncommon delimiter"));
        }
        let number = self.found.documents.len();
        self.found.documents.push(None);
        self.pending.push(Pending { number, delimiter, quoted, strip_tabs, place: self.place });
        simple.documents.push((simple.redirections.len(), number));
        let kind = RedirectionKind::HereDocument { quoted };
        simple.redirections.push(Redirection { descriptor, kind, target: Word::of_literal("") });
        Ok(())
    }
}

/// Whether a text means itself with and without quotes.
fn is_safe_to_expand_twice(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./+,:@%=".contains(&byte))
}

/// `1`, `12`, `1-`
fn is_descriptor(text: &str) -> bool {
    let digits = text.strip_suffix('-').unwrap_or(text);
    !digits.is_empty()
        && digits.len() <= DESCRIPTOR_DIGITS_MAX
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}
