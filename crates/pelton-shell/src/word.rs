//! One word of a command: what is certain about it, and what is not.

/// One word, as the shell splits them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    text: String,
    parts: Vec<Part>,
    literal: Option<String>,
    pattern: Option<String>,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Text that stays as it is, quotes removed.
    Literal(String),
    /// Characters of a pathname pattern, not quoted: `*`, `?`, `[a-z]`.
    Glob(String),
    /// A parameter.
    Parameter {
        /// The variable, or the digit or sign: `HOME`, `1`, `@`.
        name: String,
        /// Whether it is just the value: `$x` or `${x}`.
        plain: bool,
        /// Whether it stands in double quotes, so that its value stays one word.
        quoted: bool,
    },
    /// The output of commands; they are in the script's list, too.
    Substitution {
        /// The commands, as written.
        inside: String,
        /// Whether it stands in double quotes, so that the output stays one word.
        quoted: bool,
    },
    /// `<(…)`, `>(…)`: the name of a pipe to commands, which are in the script's list.
    Pipe,
    /// `$((…))` or `$[…]`.
    Arithmetic,
    /// `~`, `~name`, `~+` at a place where it is expanded.
    Tilde(String),
    /// Braces that are expanded in a way that is not certain. It stands first in its word: nothing in front of it is certain either.
    Brace,
    /// `(…)` of an array.
    Array,
    /// Text that cannot be known here: bytes that are no characters, characters that depend on the locale.
    Unreadable,
}

/// What makes a word uncertain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WordDoubts {
    /// A parameter.
    pub parameter: bool,
    /// A parameter that does more than give the value of one variable: `$@`, `${!x}`, `${x@P}`, `${x:-y}`, `${x[i]}`.
    pub special_parameter: bool,
    /// The output of a command, or a pipe to one.
    pub substitution: bool,
    /// Arithmetic.
    pub arithmetic: bool,
    /// A home directory.
    pub tilde: bool,
    /// A pathname pattern.
    pub glob: bool,
    /// Braces that are expanded.
    pub brace: bool,
    /// An array.
    pub array: bool,
    /// Text that cannot be known here.
    pub unreadable: bool,
}

impl WordDoubts {
    /// Whether there is nothing to doubt: the word is literal.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Word {
    /// As written, with its quotes.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Exactly what the program gets, when that is certain: quotes and escapes removed, nothing left to expand.
    ///
    /// Text that is written as `$(cat <<'EOF' …)` in double quotes, with a quoted delimiter and nothing else in it, is certain.
    pub fn literal(&self) -> Option<&str> {
        self.literal.as_deref()
    }

    /// The text with the pattern in it, when a pathname pattern is the only thing uncertain about it. Quoted characters that would be
    /// special are escaped by a backslash. Also given for literal words.
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_deref()
    }

    /// Its fixed beginning, before the first uncertain part.
    pub fn literal_prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// Its parts, in order. Two literal parts never stand side by side.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What makes it uncertain.
    pub fn doubts(&self) -> WordDoubts {
        let mut doubts = WordDoubts::default();
        for part in &self.parts {
            match part {
                Part::Literal(_) => {}
                Part::Glob(_) => doubts.glob = true,
                Part::Parameter { name, plain, .. } => {
                    doubts.parameter = true;
                    doubts.special_parameter |= !plain || matches!(name.as_str(), "@" | "*");
                }
                Part::Substitution { .. } | Part::Pipe => doubts.substitution = true,
                Part::Arithmetic => doubts.arithmetic = true,
                Part::Tilde(_) => doubts.tilde = true,
                Part::Brace => doubts.brace = true,
                Part::Array => doubts.array = true,
                Part::Unreadable => doubts.unreadable = true,
            }
        }
        doubts
    }

    /// A word that is what it says.
    pub fn of_literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(text.clone(), vec![Part::Literal(text)])
    }

    pub(crate) fn new(text: String, parts: Vec<Part>) -> Self {
        let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
        for part in parts {
            match (merged.last_mut(), part) {
                (Some(Part::Literal(before)), Part::Literal(more)) => before.push_str(&more),
                (_, Part::Literal(empty)) if empty.is_empty() => {}
                (_, part) => merged.push(part),
            }
        }
        let literal = match merged.as_slice() {
            [] => Some(String::new()),
            [Part::Literal(text)] => Some(text.clone()),
            _ => None,
        };
        let pattern = pattern_of(&merged);
        Self { text, parts: merged, literal, pattern }
    }
}

/// The pattern that these parts are, if they are nothing else.
fn pattern_of(parts: &[Part]) -> Option<String> {
    let mut pattern = String::new();
    let mut in_bracket = false;
    for part in parts {
        match part {
            Part::Glob(special) => {
                for c in special.chars() {
                    in_bracket = (in_bracket || c == '[') && c != ']';
                }
                pattern.push_str(special);
            }
            Part::Literal(text) => {
                for c in text.chars() {
                    if matches!(c, '*' | '?' | '[' | ']' | '\\')
                        || (in_bracket && matches!(c, '!' | '^' | '-'))
                    {
                        pattern.push('\\');
                    }
                    pattern.push(c);
                }
            }
            _ => return None,
        }
    }
    Some(pattern)
}
