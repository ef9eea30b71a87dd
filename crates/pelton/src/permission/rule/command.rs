//! Patterns over the text of a command.

/// Stands in a text for a part that only running it would tell. No command holds it: control characters are refused.
pub(in super::super) const HOLE: char = '\0';

/// `*` is any text. A pattern that ends in ` *` or `:*` also means what stands before it, alone. What every call is compared
/// with is put together once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct CommandPattern {
    glob: String,
    /// What stands before a trailing ` *`.
    alone: Option<String>,
    /// Both of them, somewhere in a text.
    within: (String, Option<String>),
    /// The first, with more words behind it.
    followed: String,
    is_exact: bool,
    is_compound: bool,
}

impl CommandPattern {
    pub fn new(pattern: &str) -> Self {
        let pattern = blanks_folded(pattern);
        let (glob, alone) = match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
            Some(prefix) => (format!("{prefix} *"), Some(prefix.to_owned())),
            None => (pattern, None),
        };
        Self {
            within: (format!("*{glob}*"), alone.as_ref().map(|alone| format!("*{alone}"))),
            followed: format!("{glob} *"),
            is_exact: !glob.contains('*'),
            is_compound: glob.contains(['|', ';', '&', '\n', '<', '>', '`']) || glob.contains("$("),
            glob,
            alone,
        }
    }

    /// Whether it means one command and no other.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Whether it speaks of more than one command: then it is looked for in the whole line.
    pub fn is_compound(&self) -> bool {
        self.is_compound
    }

    /// Whether the text, with its blanks folded, certainly matches, whatever is in its holes.
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.glob, text) || self.alone.as_deref().is_some_and(|alone| glob(alone, text))
    }

    /// Whether every text that the other matches is matched here, too. Only a star takes in a star.
    pub fn covers(&self, other: &Self) -> bool {
        self.matches(&other.glob) && other.alone.as_deref().is_none_or(|alone| self.matches(alone))
    }

    /// Whether it matches somewhere in the text.
    pub fn is_in(&self, text: &str) -> bool {
        let (anywhere, at_end) = &self.within;
        glob(anywhere, text) || at_end.as_deref().is_some_and(|at_end| glob(at_end, text))
    }

    /// Whether it speaks of what begins at one of these words.
    pub fn is_mentioned(&self, words: &str) -> bool {
        if self.glob.starts_with('*') {
            return false;
        }
        let begins = |at: usize| self.matches(&words[at..]) || glob(&self.followed, &words[at..]);
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
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
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
    // Most part ways before anything is open.
    let differ = |(said, seen): (&u8, &u8)| *said != b'*' && *seen != hole && said != seen;
    let is_open = |(said, seen): (&u8, &u8)| *said == b'*' || *seen == hole;
    let both = || pattern.iter().zip(text);
    if both().take_while(|pair| !is_open(*pair)).any(differ) {
        return false;
    }
    // `row[t]`: whether what is left of the pattern and the text behind `t` can be one. From the end backwards.
    let mut row = vec![false; text.len() + 1];
    row[text.len()] = true;
    for t in (0..text.len()).rev() {
        row[t] = text[t] == hole && row[t + 1];
    }
    let mut behind = vec![false; text.len() + 1];
    for byte in pattern.iter().rev() {
        std::mem::swap(&mut row, &mut behind);
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
            ("https://*.x/*", "https://a.x/", true),
            ("https://*.x/*", "https://x/", false),
            ("ab*ba", "aba", false),
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
