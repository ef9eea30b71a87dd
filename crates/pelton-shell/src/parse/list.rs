//! Lists and pipelines: what stands between `;`, `&`, newlines, `&&`, `||` and `|`.

use crate::script::{DoubtKind, Place, Stage, Unclear};

use super::{Parser, Read};

impl Parser<'_, '_> {
    /// Commands up to something that ends a list: `)`, `;;`, a closing reserved word, the end. Tells whether there were any.
    pub(super) fn list(&mut self) -> Read<bool> {
        self.blank_lines()?;
        let mut any = false;
        while !self.at_end_of_list() {
            let first = self.found.drafts.len();
            let start = self.at;
            self.and_or()?;
            any = true;
            self.blanks();
            match self.peek() {
                Some(b'&') => {
                    let text = self.since(start).trim_end();
                    self.found.doubt(DoubtKind::Background, text);
                    for draft in &mut self.found.drafts[first..] {
                        draft.command.place.in_background = true;
                    }
                    self.bump();
                }
                Some(b';') if !self.sees(";;") && !self.sees(";&") => self.bump(),
                Some(b'\n') => {}
                // Something else ends the list, or does not belong here: whoever asked for the list looks.
                _ => return Ok(true),
            }
            self.blank_lines()?;
        }
        Ok(any)
    }

    /// A list with at least one command in it.
    pub(super) fn some_list(&mut self) -> Read<()> {
        if self.list()? { Ok(()) } else { Err(self.missing("a command")) }
    }

    fn at_end_of_list(&mut self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.sees(";;") || self.sees(";&"),
            _ => matches!(
                self.peek_reserved(),
                Some("then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}")
            ),
        }
    }

    fn and_or(&mut self) -> Read<()> {
        let mut place = Place { chain: Some(self.found.chains), ..self.place };
        self.found.chains += 1;
        self.placed(place, Self::pipeline)?;
        loop {
            self.blanks();
            if self.eat("||") {
                // From here on nobody knows which of those before has succeeded.
                place.chain = None;
            } else if !self.eat("&&") {
                return Ok(());
            }
            place.conditional = true;
            self.blank_lines()?;
            self.placed(place, Self::pipeline)?;
        }
    }

    fn pipeline(&mut self) -> Read<()> {
        // `!` and `time` may stand alone, for a command that does nothing.
        let mut prefixed = false;
        loop {
            self.blanks();
            if self.eat_reserved("!") {
                prefixed = true;
                // What follows runs if this one fails.
                self.place.chain = None;
            } else if self.eat_reserved("time") {
                prefixed = true;
                self.time_options();
                // At the beginning of a substitution bash takes `time` for a word at first, and what follows for its arguments.
                if self.place.in_substitution && self.opens_compound() {
                    return Err(Unclear::Syntax("`time` before a compound command in a substitution"));
                }
            } else {
                break;
            }
        }
        self.blanks();
        if prefixed && matches!(self.peek(), None | Some(b';' | b'\n' | b'&' | b'|' | b')')) {
            return Err(Unclear::Syntax("`!` or `time` without a command"));
        }
        let pipeline = self.found.pipelines;
        self.found.pipelines += 1;
        let mut stage = Some(Stage { pipeline, number: 0 });
        self.placed(Place { stage, ..self.place }, Self::command)?;
        loop {
            self.blanks();
            if self.sees("||") || !self.eat("|") {
                return Ok(());
            }
            let both_outputs = self.eat("&");
            self.blank_lines()?;
            stage = match stage {
                Some(before) if !both_outputs => Some(Stage { number: before.number + 1, ..before }),
                _ => None,
            };
            self.placed(Place { piped: true, stage, fed: None, ..self.place }, Self::command)?;
        }
    }

    /// `-p` and `--` after `time`; anything else is the command.
    fn time_options(&mut self) {
        for option in ["-p", "--"] {
            self.blanks();
            let start = self.at;
            if self.eat(option) && !self.peek().is_none_or(super::is_break) {
                self.at = start;
            }
        }
    }
}
