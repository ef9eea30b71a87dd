//! The words a PDF is written in: one pass, no depth. Pure.

/// One word, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    DictOpen,
    DictClose,
    ArrayOpen,
    ArrayClose,
    Name,
    /// A whole number, not negative.
    Count(u64),
    /// Any other number, a text, or a word such as `true` and `R`.
    Other,
    /// The word that makes two numbers a reference.
    Reference,
}

/// Words from a place on; ends at the first thing that is none.
pub(super) struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'%' => {
                    let line = &self.bytes[self.at..];
                    self.at +=
                        line.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(line.len());
                }
                byte if is_blank(*byte) => self.at += 1,
                _ => return,
            }
        }
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|byte| !is_blank(*byte) && !is_delimiter(*byte)) {
            self.at += 1;
        }
        match &self.bytes[start..self.at] {
            b"R" => Token::Reference,
            word => match std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()) {
                Some(count) => Token::Count(count),
                None => Token::Other,
            },
        }
    }

    /// A text in parentheses, which may hold others.
    fn text(&mut self) {
        let mut open = 0usize;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'(' => open += 1,
                b')' => open -= 1,
                _ => {}
            }
            if open == 0 {
                break;
            }
        }
        self.at = self.at.min(self.bytes.len());
    }
}

impl Iterator for Tokens<'_> {
    /// A word, where it begins, and where it ends.
    type Item = (Token, usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.bytes[start.min(self.bytes.len())..];
        let token = match rest {
            [] => return None,
            [b'<', b'<', ..] => {
                self.at += 2;
                Token::DictOpen
            }
            [b'>', b'>', ..] => {
                self.at += 2;
                Token::DictClose
            }
            [b'<', ..] => {
                self.at += rest.iter().position(|byte| *byte == b'>').map_or(rest.len(), |end| end + 1);
                Token::Other
            }
            [b'[', ..] => {
                self.at += 1;
                Token::ArrayOpen
            }
            [b']', ..] => {
                self.at += 1;
                Token::ArrayClose
            }
            [b'/', ..] => {
                self.at += 1;
                self.word();
                Token::Name
            }
            [b'(', ..] => {
                self.text();
                Token::Other
            }
            [byte, ..] if is_delimiter(*byte) => return None,
            _ => self.word(),
        };
        Some((token, start, self.at))
    }
}

/// Where the value ends that begins at a place: a word, or all between two brackets. A reference counts as its first number.
pub(super) fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut open = 0usize;
    for (token, _, end) in Tokens::from(bytes, at) {
        match token {
            Token::DictOpen | Token::ArrayOpen => open += 1,
            Token::DictClose | Token::ArrayClose => open = open.checked_sub(1)?,
            _ => {}
        }
        if open == 0 {
            return Some(end);
        }
    }
    None
}

/// The entries of a dictionary: names without their slash, and values as they are written.
pub(super) fn entries(dict: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut entries = Vec::new();
    let mut at = match Tokens::from(dict, 0).next() {
        Some((Token::DictOpen, _, end)) => end,
        _ => return entries,
    };
    while let Some((Token::Name, name, name_end)) = Tokens::from(dict, at).next() {
        let Some(mut end) = value_end(dict, name_end) else { break };
        let mut behind = Tokens::from(dict, name_end);
        if let (
            Some((Token::Count(_), ..)),
            Some((Token::Count(_), ..)),
            Some((Token::Reference, _, reference_end)),
        ) = (behind.next(), behind.next(), behind.next())
        {
            end = reference_end;
        }
        entries.push((&dict[name + 1..name_end], dict[name_end..end].trim_ascii()));
        at = end;
    }
    entries
}

/// One entry of a dictionary.
pub(super) fn entry<'a>(dict: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    entries(dict).into_iter().find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

/// The numbers of the objects that are referred to.
pub(super) fn references(bytes: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    let mut last = [None, None];
    for (token, ..) in Tokens::from(bytes, 0) {
        match (token, last) {
            (Token::Count(count), _) => last = [last[1], Some(count)],
            (Token::Reference, [Some(number), Some(_)]) => {
                found.extend(u32::try_from(number).ok());
                last = [None, None];
            }
            _ => last = [None, None],
        }
    }
    found
}

/// The number of the one object that a value refers to.
pub(super) fn reference(value: &[u8]) -> Option<u32> {
    references(value).first().copied()
}

pub(super) fn count(value: &[u8]) -> Option<u64> {
    match Tokens::from(value, 0).next() {
        Some((Token::Count(count), ..)) => Some(count),
        _ => None,
    }
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c | 0)
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}
