//! Patterns over the text of a command.

/// Stands in a text for a part that only running it would tell. No command holds it: control characters are refused.
pub(in super::super) const HOLE: char = '\0';

/// `*` is any text. A pattern that ends in ` *` or `:*` also means what stands before it, alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct CommandPattern {
    glob: String,
    /// What stands before a trailing ` *`.
    alone: Option<String>,
}

impl CommandPattern {
    pub fn new(pattern: &str) -> Self {
        let pattern = blanks_folded(pattern);
        match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
            Some(prefix) => Self { glob: format!("{prefix} *"), alone: Some(prefix.to_owned()) },
            None => Self { glob: pattern, alone: None },
        }
    }

    /// Whether it means one command and no other.
    pub fn is_exact(&self) -> bool {
        !self.glob.contains('*')
    }

    /// Whether it speaks of more than one command: then it is looked for in the whole line.
    pub fn is_compound(&self) -> bool {
        self.glob.contains(['|', ';', '&', '\n', '<', '>', '`']) || self.glob.contains("$(")
    }

    /// Whether the text, with its blanks folded, certainly matches, whatever is in its holes.
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.glob, text) || self.alone.as_deref().is_some_and(|alone| glob(alone, text))
    }

    /// Whether it matches somewhere in the text.
    pub fn is_in(&self, text: &str) -> bool {
        glob(&format!("*{}*", self.glob), text)
            || self.alone.as_deref().is_some_and(|alone| glob(&format!("*{alone}"), text))
    }

    /// Whether it speaks of what begins at one of these words.
    pub fn is_mentioned(&self, words: &str) -> bool {
        if self.glob.starts_with('*') {
            return false;
        }
        let begins =
            |at: usize| self.matches(&words[at..]) || glob(&format!("{} *", self.glob), &words[at..]);
        begins(0) || words.match_indices(' ').any(|(at, _)| begins(at + 1))
    }

    /// Whether something in the holes of a text would make it match.
    pub fn could_match(&self, text: &str) -> bool {
        could_be_one(&self.glob, text) || self.alone.as_deref().is_some_and(|alone| could_be_one(alone, text))
    }
}

/// Runs of blanks and tabs count as one blank.
pub(in super::super) fn blanks_folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split([' ', '\t']).filter(|word| !word.is_empty()) {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// Whether a text matches a pattern in which `*` is any text. Takes time in proportion to both lengths at worst.
pub(in super::super) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // The last star, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((behind, taken)) = star {
            star = Some((behind, taken + 1));
            (p, t) = (behind, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Whether some text matches both a pattern and a text with holes.
fn could_be_one(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let hole = HOLE as u8;
    // `row[t]`: whether what is left of the pattern and the text behind `t` can be one. From the end backwards.
    let mut row = vec![false; text.len() + 1];
    row[text.len()] = true;
    for t in (0..text.len()).rev() {
        row[t] = text[t] == hole && row[t + 1];
    }
    for byte in pattern.iter().rev() {
        let behind = std::mem::replace(&mut row, vec![false; text.len() + 1]);
        for t in (0..=text.len()).rev() {
            let at = text.get(t);
            row[t] = match byte {
                b'*' => behind[t] || (t < text.len() && row[t + 1]),
                byte => at == Some(byte) && behind[t + 1],
            } || (at == Some(&hole) && (row[t + 1] || behind[t]));
        }
    }
    row[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_anything_and_a_last_word_has_a_border() {
        for (pattern, text, expected) in [
            ("ls", "ls", true),
            ("ls", "ls -l", false),
            ("ls *", "ls", true),
            ("ls *", "ls -l", true),
            ("ls *", "lsof", false),
            ("ls:*", "ls -l", true),
            ("ls:*", "lsof", false),
            ("ls*", "lsof", true),
            ("a:*b", "a:xb", true),
            ("git * main", "git push -f origin main", true),
            ("git * main *", "git push main", true),
            ("git * main *", "git push main now", true),
            ("git * main *", "git push maintain", false),
            ("* --version", "node --version", true),
            ("npm  run\ttest", "npm run test", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXcYb", false),
            ("*", "", true),
        ] {
            assert_eq!(
                CommandPattern::new(pattern).matches(&blanks_folded(text)),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn holes_match_stars_only_but_could_be_anything() {
        for (pattern, text, certain, possible) in [
            ("rm *", "rm \0", true, true),
            ("rm *", "\0 x", false, true),
            ("rm *", "\0", false, true),
            ("git push *", "git \0 x", false, true),
            ("git push *", "git log \0", false, false),
            ("git push", "git p\0", false, true),
            ("git push", "git q\0", false, false),
            ("curl * evil", "curl \0", false, true),
            ("ls", "echo \0", false, false),
        ] {
            let pattern = CommandPattern::new(pattern);
            assert_eq!((pattern.matches(text), pattern.could_match(text)), (certain, possible), "{text:?}");
        }
    }

    #[test]
    fn a_pattern_for_a_whole_line_is_found_in_it() {
        let pattern = CommandPattern::new("curl * | sh");
        assert!(
            pattern.is_compound() && pattern.is_in("ls; curl x | sh; ls") && !pattern.is_in("curl x; sh")
        );
    }
}
