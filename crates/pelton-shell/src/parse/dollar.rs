//! What begins with a dollar sign or a backquote: parameters, substitutions, arithmetic, `$'…'`.

use crate::expand::Piece;
use crate::script::{DoubtKind, Place, RedirectionKind, Unclear};
use crate::word::Part;

use super::pieces::{Quoting, push, push_quoted};
use super::{Parser, Read};

impl Parser<'_, '_> {
    /// At a dollar sign.
    pub(super) fn dollar(&mut self, pieces: &mut Vec<Piece>, quoting: Quoting) -> Read<()> {
        match (self.peek_second(), quoting) {
            (Some(b'('), _) if self.sees("$((") => {
                let start = self.at;
                let plain = self.arithmetic_expansion()?;
                if !plain {
                    let text = self.since(start);
                    self.found.doubt(DoubtKind::Arithmetic, text);
                }
                pieces.push(Piece::Special(Part::Arithmetic));
            }
            (Some(b'['), _) => {
                let start = self.at;
                self.bump();
                if self.subscript()? {
                    let text = self.since(start);
                    self.found.doubt(DoubtKind::Arithmetic, text);
                }
                pieces.push(Piece::Special(Part::Arithmetic));
            }
            (Some(b'('), _) => {
                self.bump();
                self.bump();
                let start = self.at;
                let quoted = quoting != Quoting::Bare;
                match self.substitution()? {
                    // Outside quotes the text would be split into words.
                    Some(text) if quoted => push_quoted(pieces, &text),
                    _ => {
                        let inside = self.since(start);
                        let inside = inside.strip_suffix(')').unwrap_or(inside).trim().to_owned();
                        pieces.push(Piece::Special(Part::Substitution { inside, quoted }));
                    }
                }
            }
            (Some(b'{'), _) => {
                let part = self.deeper(|it| it.parameter_in_braces(quoting))?;
                pieces.push(Piece::Special(part));
            }
            (Some(b'\''), Quoting::Bare) => self.ansi(pieces)?,
            (Some(b'"'), Quoting::Bare) => {
                let start = self.at;
                self.bump();
                self.bump();
                self.deeper(|it| it.double_quoted(pieces))?;
                let text = self.since(start);
                self.found.doubt(DoubtKind::Translation, text);
            }
            (Some(byte), _) if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.bump();
                let name = self.name();
                pieces.push(parameter(name, quoting));
            }
            (Some(byte), _) if byte.is_ascii_digit() || is_special(byte) => {
                self.bump();
                self.bump();
                pieces.push(parameter(char::from(byte).into(), quoting));
            }
            _ => {
                self.bump();
                push(pieces, '$', quoting);
            }
        }
        Ok(())
    }

    /// The commands after `$(`, `<(` or `>(`, and the closing parenthesis. Gives the text if it is certain.
    pub(super) fn substitution(&mut self) -> Read<Option<String>> {
        let first = self.found.drafts.len();
        let doubts = self.found.doubts.len();
        let documents = self.found.documents.len();
        let pending = std::mem::take(&mut self.pending);
        let held = self.held;
        self.held += pending.len();
        let place = Place { in_substitution: true, piped: false, stage: None, fed: None, ..self.place };
        self.deeper(|it| it.placed(place, Self::list))?;
        if !self.eat(")") {
            return Err(self.missing("`)`"));
        }
        if !self.pending.is_empty() {
            return Err(Unclear::Syntax("a here-document that begins after its substitution"));
        }
        // Bash writes the commands of a substitution anew before it runs them, and where a here-document ends it forgets separators.
        if self.found.documents.len() > documents && self.found.drafts.len() > first + 1 {
            return Err(Unclear::Syntax("a here-document beside other commands in a substitution"));
        }
        self.pending = pending;
        self.held = held;
        Ok(if self.found.doubts.len() == doubts { self.shown_document(first) } else { None })
    }

    /// The text of a substitution that is nothing but `cat` with a quoted here-document: a way to write text.
    fn shown_document(&self, first: usize) -> Option<String> {
        let [draft] = self.found.drafts.get(first..)? else { return None };
        let command = &draft.command;
        let [word] = command.words.as_slice() else { return None };
        let [redirection] = command.redirections.as_slice() else { return None };
        let document = redirection.kind == RedirectionKind::HereDocument { quoted: true }
            && redirection.descriptor.as_deref().is_none_or(|descriptor| descriptor == "0");
        if !document || word.text() != "cat" || !command.assignments.is_empty() {
            return None;
        }
        let [(0, number)] = draft.documents.as_slice() else { return None };
        let text = self.found.documents.get(*number)?.as_ref()?.literal()?;
        Some(text.trim_end_matches('\n').to_owned())
    }

    /// `` `…` ``
    pub(super) fn backquote(&mut self, pieces: &mut Vec<Piece>, quoting: Quoting) -> Read<()> {
        const OPEN: Unclear = Unclear::Unfinished("a closing backquote");
        self.bump();
        let mut inner = String::new();
        loop {
            match self.take_char().ok_or(OPEN)? {
                '`' => break,
                // Bash reads these twice, and when it looks for braces it loses track.
                '\\' | '"' if quoting != Quoting::Bare => {
                    return Err(Unclear::Syntax("quotes or escapes in backquotes in quotes"));
                }
                '\\' => match self.take_char().ok_or(OPEN)? {
                    c @ ('`' | '\\' | '$') => inner.push(c),
                    '\n' => return Err(Unclear::Syntax("a continued line in backquotes")),
                    c => inner.extend(['\\', c]),
                },
                // Bash looks for comments before it looks for the end, but not in every quoting.
                '#' if inner.is_empty() || inner.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']) => {
                    return Err(Unclear::Syntax("a comment in backquotes"));
                }
                c => inner.push(c),
            }
        }
        self.deeper(|it| {
            it.inside(&inner, |parser| {
                parser.place =
                    Place { in_substitution: true, piped: false, stage: None, fed: None, ..parser.place };
                parser.whole()
            })
        })?;
        pieces.push(Piece::Special(Part::Substitution { inside: inner, quoted: quoting != Quoting::Bare }));
        Ok(())
    }

    /// `${…}`
    fn parameter_in_braces(&mut self, quoting: Quoting) -> Read<Part> {
        let quoted = quoting != Quoting::Bare;
        let start = self.at;
        self.bump();
        self.bump();
        let prefix = self.peek().filter(|byte| matches!(byte, b'!' | b'#'));
        let mut plain = true;
        if prefix.is_some() && self.peek_second() != Some(b'}') {
            self.bump();
            plain = false;
        }
        let name = match self.peek() {
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => self.name(),
            Some(byte) if byte.is_ascii_digit() => self.number(),
            Some(byte) if is_special(byte) => {
                self.bump();
                char::from(byte).into()
            }
            None => return Err(Unclear::Unfinished("`}`")),
            Some(_) => return Err(Unclear::Syntax("a parameter without a name")),
        };
        if plain && self.eat("}") {
            return Ok(Part::Parameter { name, plain, quoted });
        }
        let operation = self.at;
        if !self.peek().is_some_and(|byte| b"}:-=?+#%/^,@[*".contains(&byte)) {
            return Err(self.missing("`}`"));
        }
        self.operation(quoting)?;
        let text = self.since(start);
        if let Some(kind) = evaluated(prefix == Some(b'!') && !plain, self.since(operation)) {
            self.found.doubt(kind, text);
        }
        Ok(Part::Parameter { name, plain: false, quoted })
    }

    /// What follows the name in `${name…}`, and the brace. All of it is uncertain; what matters is which commands run in it.
    fn operation(&mut self, quoting: Quoting) -> Read<()> {
        let mut unused = Vec::new();
        loop {
            match self.peek().ok_or(Unclear::Unfinished("`}`"))? {
                b'}' => {
                    self.bump();
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    self.take_char().ok_or(Unclear::Unfinished("`}`"))?;
                }
                // Whether these quote anything in here depends on the operator and on the quotes around.
                b'\'' if quoting != Quoting::Bare => {
                    return Err(Unclear::Syntax("a single quote in a quoted parameter"));
                }
                b'"' if quoting == Quoting::Document => {
                    return Err(Unclear::Syntax("a double quote in a parameter of a here-document"));
                }
                b'$' if quoting != Quoting::Bare && matches!(self.peek_second(), Some(b'\'' | b'"')) => {
                    return Err(Unclear::Syntax("a quote in a quoted parameter"));
                }
                b'<' | b'>' if quoting == Quoting::Bare && self.peek_second() == Some(b'(') => {
                    return Err(Unclear::Syntax("a process substitution in a parameter"));
                }
                b'\'' => {
                    self.bump();
                    while self.take_char().ok_or(Unclear::Unfinished("a closing single quote"))? != '\'' {}
                }
                b'"' => {
                    self.bump();
                    self.deeper(|it| it.double_quoted(&mut unused))?;
                }
                b'$' => self.dollar(&mut unused, quoting)?,
                b'`' => self.backquote(&mut unused, quoting)?,
                _ => {
                    self.take_char();
                }
            }
            unused.clear();
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            name.push(byte.into());
            self.at += 1;
        }
        name
    }

    fn number(&mut self) -> String {
        let mut number = String::new();
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            number.push(byte.into());
            self.at += 1;
        }
        number
    }
}

/// What bash evaluates or assigns in `${name…}`, quoted or not, given what stands behind the name.
fn evaluated(indirect: bool, operation: &str) -> Option<DoubtKind> {
    let operation = operation.strip_suffix('}').unwrap_or(operation);
    let (subscript, operation) = match operation.strip_prefix('[') {
        // What follows a subscript with brackets in it is not looked for: the subscript is doubted.
        Some(rest) => rest.split_once(']').unwrap_or((rest, "")),
        None => ("0", operation),
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b" -:".contains(&byte));
    if !(matches!(subscript, "@" | "*") || is_number(subscript) && !subscript.is_empty()) {
        return Some(DoubtKind::Subscript);
    }
    let assigns = operation.starts_with('=') || operation.starts_with(":=");
    if indirect || assigns || operation.starts_with('@') && operation != "@Q" {
        return Some(DoubtKind::Parameter);
    }
    let offset = operation.strip_prefix(':').filter(|offset| !offset.starts_with(['-', '=', '?', '+']));
    offset.filter(|offset| !is_number(offset)).map(|_| DoubtKind::Arithmetic)
}

fn parameter(name: String, quoting: Quoting) -> Piece {
    Piece::Special(Part::Parameter { name, plain: true, quoted: quoting != Quoting::Bare })
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')
}
