//! Commands made of commands: groups, loops, branches, functions.

use crate::script::{Assignment, AssignmentKind, Body, Command, DoubtKind, Place, Unclear};
use crate::word::{Part, Word};

use super::pieces::Lexing;
use super::simple::Simple;
use super::{Draft, Parser, Read, is_name};

impl Parser<'_, '_> {
    /// One command of a pipeline.
    pub(super) fn command(&mut self) -> Read<()> {
        self.blanks();
        if self.opens_compound() {
            return self.deeper(Self::compound);
        }
        match self.peek_reserved() {
            Some("function") => self.function_by_word(),
            Some("coproc") => self.coprocess(),
            // After `|`, where `time` does not time anything.
            Some("time") | None => self.deeper(Self::simple_command),
            Some(_) => Err(Unclear::Syntax("a reserved word out of place")),
        }
    }

    pub(super) fn opens_compound(&mut self) -> bool {
        self.peek() == Some(b'(')
            || matches!(
                self.peek_reserved(),
                Some("{" | "if" | "while" | "until" | "for" | "select" | "case" | "[[")
            )
    }

    /// A compound command and its redirections.
    fn compound(&mut self) -> Read<()> {
        let first = self.found.drafts.len();
        let fed =
            self.place.stage.and_then(|stage| if stage.number > 0 { Some(stage) } else { self.place.fed });
        self.placed(Place { stage: None, fed, nested: true, ..self.place }, Self::compound_alone)?;
        let mut redirections = Simple::default();
        self.blanks();
        let start = self.at;
        let mut end = self.at;
        while self.redirection(&mut redirections)? {
            end = self.at;
            self.blanks();
        }
        if !redirections.redirections.is_empty() {
            // What is in it may read something else then.
            for draft in &mut self.found.drafts[first..] {
                draft.command.place.fed = None;
            }
            let text = self.text.get(start..end).unwrap_or_default();
            let draft = redirections.into_draft(text, Place { stage: None, ..self.place });
            self.found.drafts.insert(first, draft);
        }
        Ok(())
    }

    fn compound_alone(&mut self) -> Read<()> {
        if self.peek() == Some(b'(') {
            return if self.sees("((") { self.arithmetic_command() } else { self.subshell() };
        }
        let inner = Place { conditional: true, ..self.place };
        match self.peek_reserved() {
            Some("{") => self.group(),
            Some("if") => self.placed(inner, Self::branches),
            Some(word @ ("while" | "until")) => {
                self.eat(word);
                self.placed(inner, |it| {
                    it.some_list()?;
                    it.body()
                })
            }
            Some(word @ ("for" | "select")) => {
                self.eat(word);
                self.placed(inner, |it| it.for_each(word == "for"))
            }
            Some("case") => self.placed(inner, Self::case),
            Some("[[") => self.condition(),
            _ => Err(Unclear::Syntax("something that is no compound command")),
        }
    }

    fn subshell(&mut self) -> Read<()> {
        self.bump();
        self.placed(Place { in_subshell: true, ..self.place }, Self::some_list)?;
        if self.eat(")") { Ok(()) } else { Err(self.missing("`)`")) }
    }

    fn group(&mut self) -> Read<()> {
        self.expect_reserved("{")?;
        self.some_list()?;
        self.expect_reserved("}")
    }

    fn branches(&mut self) -> Read<()> {
        self.expect_reserved("if")?;
        loop {
            self.some_list()?;
            self.expect_reserved("then")?;
            self.some_list()?;
            if !self.eat_reserved("elif") {
                break;
            }
        }
        if self.eat_reserved("else") {
            self.some_list()?;
        }
        self.expect_reserved("fi")
    }

    /// `do …; done`
    fn body(&mut self) -> Read<()> {
        self.expect_reserved("do")?;
        self.some_list()?;
        self.expect_reserved("done")
    }

    /// What follows `for` or `select`. With the latter the variable may also become empty.
    fn for_each(&mut self, takes_all: bool) -> Read<()> {
        self.blanks();
        if self.sees("((") {
            return self.for_arithmetic();
        }
        let start = self.at;
        let index = self.found.drafts.len();
        let name = self.bare_word()?;
        if !is_name(&name) {
            return Err(Unclear::Syntax("a loop variable that is no name"));
        }
        self.blank_lines()?;
        let mut values = Vec::new();
        if self.eat_reserved("in") {
            loop {
                self.blanks();
                if matches!(self.peek(), Some(b';' | b'\n')) {
                    break;
                }
                values.extend(self.expanded_word()?);
            }
        }
        if values.is_empty() {
            // The arguments of the script, or nothing.
            values.push(Word::new(
                "\"$@\"".into(),
                vec![Part::Parameter { name: "@".into(), plain: true, quoted: true }],
            ));
        }
        let text = self.since(start).trim_end().to_owned();
        let assignments = values
            .into_iter()
            .map(|value| Assignment {
                name: name.clone(),
                kind: AssignmentKind::Loop,
                value,
                elements: Vec::new(),
            })
            .collect();
        let command = Command { text, assignments, place: self.place, ..Command::default() };
        self.found.drafts.insert(index, Draft { command, documents: Vec::new() });
        let from = self.found.drafts.len() - index;
        self.loop_body()?;
        let to = self.found.drafts.len() - index;
        self.found.drafts[index].command.body = takes_all.then_some(Body { from, to });
        Ok(())
    }

    /// What follows the head of a `for`: a separator, and a body in either form.
    fn loop_body(&mut self) -> Read<()> {
        self.blanks();
        if self.peek() == Some(b';') && !self.sees(";;") {
            self.bump();
        }
        self.blank_lines()?;
        if self.peek_reserved() == Some("{") { self.group() } else { self.body() }
    }

    /// `for ((…; …; …))`
    fn for_arithmetic(&mut self) -> Read<()> {
        self.arithmetic_command()?;
        self.loop_body()
    }

    fn case(&mut self) -> Read<()> {
        self.expect_reserved("case")?;
        self.blanks();
        let word = self.plain_word(Lexing::Pattern)?;
        self.doubt_outside(&word);
        self.blank_lines()?;
        self.expect_reserved("in")?;
        loop {
            self.blank_lines()?;
            if self.eat_reserved("esac") {
                return Ok(());
            }
            let _ = self.eat("(");
            self.patterns()?;
            self.list()?;
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&")) {
                return self.expect_reserved("esac");
            }
        }
    }

    /// `pattern | pattern )`
    fn patterns(&mut self) -> Read<()> {
        loop {
            self.blanks();
            let word = self.plain_word(Lexing::Pattern)?;
            self.doubt_outside(&word);
            self.blanks();
            if self.eat(")") {
                return Ok(());
            }
            if self.sees("||") || !self.eat("|") {
                return Err(self.missing("`)`"));
            }
        }
    }

    /// `function name [()] body`
    fn function_by_word(&mut self) -> Read<()> {
        self.expect_reserved("function")?;
        self.blanks();
        let name = self.bare_word()?;
        self.blanks();
        if self.eat("(") {
            self.blanks();
            if !self.eat(")") {
                return Err(self.missing("`)`"));
            }
        }
        self.function_body(&name)
    }

    /// The body of a function, after its name and parentheses.
    pub(super) fn function_body(&mut self, name: &str) -> Read<()> {
        self.found.doubt(DoubtKind::FunctionDefinition, name);
        self.blank_lines()?;
        if !self.opens_compound() {
            return Err(self.missing("the body of a function"));
        }
        self.placed(Place { in_function: true, ..self.place }, |it| it.deeper(Self::compound))
    }

    fn coprocess(&mut self) -> Read<()> {
        let start = self.at;
        self.expect_reserved("coproc")?;
        // Bash writes the commands of a substitution anew, and gives a coprocess a name there that is then taken for its command.
        if self.place.in_substitution {
            return Err(Unclear::Syntax("a coprocess in a substitution"));
        }
        self.blanks();
        let background = Place { in_background: true, ..self.place };
        if !self.opens_compound() {
            // `coproc name { …; }` names it. With anything but braces the word might be a command's.
            let before = self.at;
            let named = self.bare_word().is_ok_and(|name| is_name(&name)) && {
                self.blanks();
                self.peek_reserved() == Some("{")
            };
            if !named {
                self.at = before;
            }
        }
        self.deeper(|it| it.placed(background, Self::command))?;
        let text = self.since(start).trim_end();
        self.found.doubt(DoubtKind::Coprocess, text);
        Ok(())
    }

    /// A word of ordinary characters only, as written.
    pub(super) fn bare_word(&mut self) -> Read<String> {
        let mut word = String::new();
        while let Some(byte) = self.peek() {
            if is_break_of_bare(byte) {
                break;
            }
            let Some(c) = self.take_char() else { break };
            word.push(c);
        }
        let ended = self.peek().is_none_or(super::is_break);
        if word.is_empty() || !ended { Err(self.missing("a name")) } else { Ok(word) }
    }

    /// A word outside the words of a command: what is uncertain in it is the script's doubt.
    pub(super) fn doubt_outside(&mut self, word: &Word) {
        let doubts = word.doubts();
        if doubts.substitution {
            self.found.doubt(DoubtKind::Substitution, word.text());
        }
        if doubts.arithmetic {
            self.found.doubt(DoubtKind::Arithmetic, word.text());
        }
    }
}

fn is_break_of_bare(byte: u8) -> bool {
    super::is_break(byte) || matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`')
}
