//! Text to tokens. Handles what makes naive searching wrong: nested comments, raw strings, lifetimes.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// An identifier or a keyword.
    Word,
    /// A string, character or number.
    Literal,
    /// A lifetime.
    Lifetime,
    /// Anything else: one character, or `::`.
    Mark,
}

/// A piece of code and the line it stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// Its text; for a string the text with its quotes.
    pub text: &'a str,
    /// Line, counted from one.
    pub line: usize,
}

impl Token<'_> {
    /// Whether this is an identifier or keyword.
    pub fn is_word(&self) -> bool {
        self.kind == TokenKind::Word
    }
}

/// Splits a file into its code and its comments.
pub fn lex(text: &str) -> (Vec<Token<'_>>, Vec<(usize, &str)>) {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut tokens = Vec::new();
    let mut comments = Vec::new();
    while let Some(first) = lexer.peek() {
        let (start, line) = (lexer.at, lexer.line);
        if first.is_whitespace() {
            lexer.advance(first.len_utf8());
        } else if lexer.rest().starts_with("//") {
            lexer.take_while(|c| c != '\n');
            comments.push((line, &text[start..lexer.at]));
        } else if lexer.rest().starts_with("/*") {
            lexer.block_comment();
            comments.push((line, &text[start..lexer.at]));
        } else {
            let kind = lexer.token(first);
            tokens.push(Token { kind, text: &text[start..lexer.at], line });
        }
    }
    (tokens, comments)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, bytes: usize) {
        let passed = &self.text[self.at..self.at + bytes];
        self.line += passed.matches('\n').count();
        self.at += bytes;
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.advance(rest.find(|c| !keep(c)).unwrap_or(rest.len()));
    }

    fn token(&mut self, first: char) -> TokenKind {
        if let Some(hashes) = raw_string_hashes(self.rest()) {
            self.raw_string(hashes);
            return TokenKind::Literal;
        }
        match first {
            '"' => {
                self.string();
                TokenKind::Literal
            }
            'b' | 'c' if self.rest()[1..].starts_with('"') => {
                self.advance(1);
                self.string();
                TokenKind::Literal
            }
            'b' if self.rest()[1..].starts_with('\'') => {
                self.advance(1);
                self.quote()
            }
            '\'' => self.quote(),
            '0'..='9' => {
                self.take_while(is_word_part);
                TokenKind::Literal
            }
            _ if is_word_part(first) => {
                // `r#type` is the word `type`, but nobody here compares those: keep it whole.
                if self.rest().starts_with("r#") {
                    self.advance(2);
                }
                self.take_while(is_word_part);
                TokenKind::Word
            }
            ':' if self.rest().starts_with("::") => {
                self.advance(2);
                TokenKind::Mark
            }
            _ => {
                self.advance(first.len_utf8());
                TokenKind::Mark
            }
        }
    }

    fn string(&mut self) {
        self.advance(1);
        let mut escaped = false;
        while let Some(c) = self.peek() {
            self.advance(c.len_utf8());
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return,
                _ => {}
            }
        }
    }

    fn raw_string(&mut self, hashes: usize) {
        let opening = self.rest().find('"').map_or(self.rest().len(), |quote| quote + 1);
        self.advance(opening);
        let end = format!("\"{}", "#".repeat(hashes));
        let length = self.rest().find(&end).map_or(self.rest().len(), |found| found + end.len());
        self.advance(length);
    }

    /// A character or a lifetime: `'x'` and `'\n'` against `'static`.
    fn quote(&mut self) -> TokenKind {
        self.advance(1);
        let mut ahead = self.rest().chars();
        match (ahead.next(), ahead.next()) {
            (Some('\\'), Some(escaped)) => {
                self.advance(1 + escaped.len_utf8());
                self.take_while(|c| c != '\'' && c != '\n');
                self.advance(usize::from(self.peek() == Some('\'')));
                TokenKind::Literal
            }
            (Some(c), Some('\'')) => {
                self.advance(c.len_utf8() + 1);
                TokenKind::Literal
            }
            _ => {
                self.take_while(is_word_part);
                TokenKind::Lifetime
            }
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0usize;
        while let Some(c) = self.peek() {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.advance(2);
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.advance(2);
                if depth == 0 {
                    return;
                }
            } else {
                self.advance(c.len_utf8());
            }
        }
    }
}

/// How many `#` open the raw string at the start of `rest`, if one starts there.
fn raw_string_hashes(rest: &str) -> Option<usize> {
    let after =
        rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr")).or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
