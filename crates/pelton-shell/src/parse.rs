//! Bash's grammar, read from left to right without going back.
//!
//! One [`Parser`] stands over one text. Backquotes and here-documents are texts of their own, with a parser each; what all of them
//! find goes into one [`Findings`].

mod list; // lists, pipelines
mod compound; // groups, loops, branches, functions
mod condition; // [[ … ]]
mod arithmetic; // (( … )), $(( … )), subscripts
mod simple; // assignments, words, redirections
mod builtin; // arguments that bash evaluates
mod redirection; // < > >> <<< and descriptors
mod document; // the texts of here-documents
mod pieces; // one word, quotes and all
mod dollar; // what begins with a dollar sign or a backquote
mod ansi; // $'…'

use crate::limits::{COMMAND_MAX_CHARS, NESTING_MAX};
use crate::script::{Command, Doubt, DoubtKind, Place, Script, Unclear};
use crate::word::Word;

type Read<T> = Result<T, Unclear>;

/// Takes a command apart. `Err`: nothing can be said about it.
///
/// ```
/// let script = pelton_shell::read("make 2>&1 | tail -n 5").unwrap();
/// assert_eq!(script.commands.len(), 2);
/// assert!(script.commands[1].place.piped);
/// assert!(pelton_shell::read("echo 'no end").is_err());
/// ```
pub fn read(command: &str) -> Result<Script, Unclear> {
    if command.len() > COMMAND_MAX_CHARS && command.chars().count() > COMMAND_MAX_CHARS {
        return Err(Unclear::TooLong);
    }
    let mut findings = Findings::default();
    for c in command.chars() {
        // A carriage return is an ordinary character for bash, and the most common one that cannot be seen.
        if c.is_control() && !matches!(c, '\t' | '\n' | '\r') {
            return Err(Unclear::ControlCharacter(c.into()));
        }
        if is_invisible(c) && !findings.doubts.iter().any(|doubt| doubt.kind == DoubtKind::Invisible) {
            findings.doubt(DoubtKind::Invisible, format!("U+{:04X}", u32::from(c)));
        }
    }
    Parser::new(command, &mut findings).whole()?;
    Ok(findings.into_script())
}

/// Whether a character is drawn as nothing, as a blank, or moves what is drawn. Bash takes them all as ordinary letters.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\r' | '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}'
        | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// What has been found so far, by all parsers together.
#[derive(Default)]
struct Findings {
    drafts: Vec<Draft>,
    /// The texts of here-documents, by number.
    documents: Vec<Option<Word>>,
    doubts: Vec<Doubt>,
    asked_about: Vec<Word>,
    /// How many pipelines were begun.
    pipelines: usize,
    /// How many lists of `&&` and `||` were begun.
    chains: usize,
}

/// A command whose here-documents may still have to be read.
struct Draft {
    command: Command,
    /// Which redirection waits for which document.
    documents: Vec<(usize, usize)>,
}

impl Findings {
    fn doubt(&mut self, kind: DoubtKind, text: impl Into<String>) {
        self.doubts.push(Doubt { kind, text: text.into() });
    }

    fn into_script(mut self) -> Script {
        let mut commands = Vec::with_capacity(self.drafts.len());
        for draft in self.drafts {
            let mut command = draft.command;
            for (redirection, document) in draft.documents {
                let text = self.documents.get_mut(document).and_then(Option::take);
                if let (Some(redirection), Some(text)) = (command.redirections.get_mut(redirection), text) {
                    redirection.target = text;
                }
            }
            commands.push(command);
        }
        Script { commands, doubts: self.doubts, asked_about: self.asked_about }
    }
}

/// A here-document whose text begins on the next line.
struct Pending {
    number: usize,
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
    /// Where the command stands that reads it.
    place: Place,
}

struct Parser<'s, 'f> {
    text: &'s str,
    at: usize,
    found: &'f mut Findings,
    depth: usize,
    place: Place,
    pending: Vec<Pending>,
    /// Here-documents that were pending where the substitution around this place began.
    held: usize,
}

impl<'s, 'f> Parser<'s, 'f> {
    fn new(text: &'s str, found: &'f mut Findings) -> Self {
        Self { text, at: 0, found, depth: 0, place: Place::default(), pending: Vec::new(), held: 0 }
    }

    /// Commands up to the end of this text.
    fn whole(&mut self) -> Read<()> {
        self.list()?;
        if self.peek().is_some() {
            return Err(Unclear::Syntax("a word or operator out of place"));
        }
        if !self.pending.is_empty() {
            return Err(Unclear::Unfinished("the text of a here-document"));
        }
        Ok(())
    }

    /// Runs one step deeper.
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= NESTING_MAX {
            return Err(Unclear::TooDeep);
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Runs a step at another place, and comes back to this one.
    fn placed<T>(&mut self, place: Place, step: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let before = std::mem::replace(&mut self.place, place);
        let result = step(self);
        self.place = before;
        result
    }

    /// A text of its own, read by a parser of its own at the same depth and place.
    fn inside<T>(&mut self, text: &str, step: impl FnOnce(&mut Parser<'_, '_>) -> Read<T>) -> Read<T> {
        let mut parser = Parser::new(text, self.found);
        parser.depth = self.depth;
        parser.place = self.place;
        step(&mut parser)
    }

    /// The next byte, line continuations passed over.
    fn peek(&mut self) -> Option<u8> {
        while self.rest().starts_with(b"\\\n") {
            self.at += 2;
        }
        self.rest().first().copied()
    }

    /// The byte after the next one, line continuations passed over.
    fn peek_second(&mut self) -> Option<u8> {
        self.peek()?;
        let mut ahead = &self.rest()[1..];
        while let Some(after) = ahead.strip_prefix(b"\\\n") {
            ahead = after;
        }
        ahead.first().copied()
    }

    /// Passes over the next byte, which must be ASCII.
    fn bump(&mut self) {
        self.peek();
        self.at += 1;
    }

    /// Passes over the operator if it is what comes next.
    fn eat(&mut self, operator: &str) -> bool {
        let start = self.at;
        for byte in operator.bytes() {
            if self.peek() != Some(byte) {
                self.at = start;
                return false;
            }
            self.at += 1;
        }
        true
    }

    /// Whether the operator is what comes next.
    fn sees(&mut self, operator: &str) -> bool {
        let start = self.at;
        let seen = self.eat(operator);
        self.at = start;
        seen
    }

    fn rest(&self) -> &'s [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// What is written from there to here.
    fn since(&self, start: usize) -> &'s str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// The next character, whatever it is, without regard to line continuations.
    fn take_char(&mut self) -> Option<char> {
        let c = self.text.get(self.at..)?.chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Passes over blanks and a comment, not over the end of the line.
    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.peek() == Some(b'#') {
            while self.rest().first().is_some_and(|&byte| byte != b'\n') {
                self.at += 1;
            }
        }
    }

    /// Passes over blank lines and comments; reads the here-documents that begin after a line.
    fn blank_lines(&mut self) -> Read<()> {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// The end of a line, at a place where commands may stand.
    fn newline(&mut self) -> Read<()> {
        self.bump();
        if self.held > 0 {
            return Err(Unclear::Syntax("a here-document that begins before a substitution ends"));
        }
        self.documents()
    }

    /// The reserved word that comes next, if one does: written without quotes, and a word of its own.
    fn peek_reserved(&mut self) -> Option<&'static str> {
        let first = self.peek()?;
        RESERVED.iter().find(|word| word.as_bytes()[0] == first && self.sees_word(word)).copied()
    }

    /// Whether this word comes next, followed by something that ends it.
    fn sees_word(&mut self, word: &str) -> bool {
        let start = self.at;
        let seen = self.eat(word) && self.peek().is_none_or(is_break);
        self.at = start;
        seen
    }

    /// Passes over the reserved word if it is what comes next.
    fn eat_reserved(&mut self, word: &str) -> bool {
        self.peek_reserved() == Some(word) && self.eat(word)
    }

    fn expect_reserved(&mut self, word: &'static str) -> Read<()> {
        if self.eat_reserved(word) { Ok(()) } else { Err(self.missing(word)) }
    }

    /// The error for something that should stand here.
    fn missing(&mut self, what: &'static str) -> Unclear {
        match self.peek() {
            None => Unclear::Unfinished(what),
            Some(_) => Unclear::Syntax("a word or operator out of place"),
        }
    }
}

/// Words that bash takes for something else where a command may begin.
const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}",
];

/// Whether a byte ends a word.
fn is_break(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Whether it is a name that a variable may have.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
