//! Which tool, source or reason a hook listens to.
//!
//! A plain word is a whole name, never a part of one: `mcp__memory` is no tool and matches nothing, `mcp__memory__.*`
//! is a pattern and matches a server's tools.

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::event::HookEvent;
use super::limits::{MATCHER_BYTES_MAX, MATCHER_REGEX_BYTES_MAX};

/// What a hook listens to.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Everything.
    All,
    /// Any of these names, exactly.
    Names(Vec<String>),
    /// Every name with a part that fits the pattern.
    Pattern(Box<Pattern>),
}

/// A pattern, and what was written for it.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: RegexMatcher,
}

impl Matcher {
    /// Reads a matcher as settings write it for an event.
    pub fn read(text: &str, event: HookEvent) -> Result<Self, String> {
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        if text.len() > MATCHER_BYTES_MAX {
            return Err(format!("is longer than {MATCHER_BYTES_MAX} bytes"));
        }
        let list = |separators: &[char]| {
            let names = text.split(separators).map(str::trim).filter(|name| !name.is_empty());
            Self::Names(names.map(str::to_owned).collect())
        };
        match event {
            // Names of files: a dot is a dot.
            HookEvent::FileChanged => return Ok(list(&['|'])),
            HookEvent::StopFailure if text.chars().all(|c| is_of_a_name(c) || c == '|') => {
                return Ok(list(&['|']));
            }
            HookEvent::StopFailure => {}
            _ if text.chars().all(|c| is_of_a_name(c) || matches!(c, '-' | ' ' | ',' | '|')) => {
                return Ok(list(&['|', ',']));
            }
            _ => {}
        }
        // Linear in the text it looks at: a pattern from a stranger's repository cannot hang the session.
        let built = RegexMatcherBuilder::new().size_limit(MATCHER_REGEX_BYTES_MAX).build(text);
        let regex = built.map_err(|error| format!("is no pattern we can use: {error}"))?;
        Ok(Self::Pattern(Box::new(Pattern { text: text.to_owned(), regex })))
    }

    /// What settings write for it; nothing for everything.
    pub fn text(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::Names(names) => names.join("|"),
            Self::Pattern(pattern) => pattern.text.clone(),
        }
    }

    /// Whether a subject is listened to. An event without one reaches everybody.
    pub fn matches(&self, subject: Option<&str>) -> bool {
        let Some(subject) = subject else { return true };
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern(pattern) => pattern.regex.is_match(subject.as_bytes()).unwrap_or(false),
        }
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(event: HookEvent, matcher: &str, yes: &[&str], no: &[&str]) {
        let read = Matcher::read(matcher, event).unwrap();
        for subject in yes {
            assert!(read.matches(Some(subject)), "{matcher:?} should match {subject:?}");
        }
        for subject in no {
            assert!(!read.matches(Some(subject)), "{matcher:?} should not match {subject:?}");
        }
    }

    #[test]
    fn matchers_are_names_lists_or_patterns() {
        use HookEvent::{FileChanged, PreToolUse, SessionStart, StopFailure};
        check(PreToolUse, "", &["Bash", "x"], &[]);
        check(PreToolUse, "*", &["Bash", "x"], &[]);
        check(PreToolUse, "Bash", &["Bash"], &["bash", "BashOutput", "MyBash"]);
        check(PreToolUse, "Write|Edit", &["Write", "Edit"], &["MultiEdit", "Write|Edit"]);
        check(PreToolUse, "Write, Edit", &["Write", "Edit"], &["Write, Edit"]);
        check(PreToolUse, "mcp__memory", &[], &["mcp__memory__add"]);
        check(PreToolUse, "my-tool", &["my-tool"], &["my-tool2"]);
        check(PreToolUse, "mcp__memory__.*", &["mcp__memory__add"], &["mcp__files__add"]);
        check(PreToolUse, "^Note", &["NotebookEdit", "Note"], &["MyNote"]);
        check(PreToolUse, "Edit$|Wri.e", &["MultiEdit", "Write", "OverWrite"], &["Editor"]);
        check(PreToolUse, ".*", &["", "Bash"], &[]);
        check(SessionStart, "startup|resume", &["startup", "resume"], &["clear"]);
        check(FileChanged, ".envrc|.env", &[".envrc", ".env"], &["xenv", ".env,"]);
        check(StopFailure, "rate_limit|overloaded", &["rate_limit"], &["rate"]);
        // A comma separates nothing here, so this is a pattern.
        check(StopFailure, "a,b", &["xa,bx"], &["a", "b"]);
    }

    #[test]
    fn an_event_without_a_subject_reaches_everybody() {
        assert!(Matcher::read("Bash", HookEvent::Stop).unwrap().matches(None));
    }

    #[test]
    fn unusable_patterns_are_refused() {
        for matcher in ["(", "(?=x)y", "(a{1000}){1000}"] {
            assert!(Matcher::read(matcher, HookEvent::PreToolUse).is_err(), "{matcher}");
        }
        assert!(Matcher::read(&"x".repeat(MATCHER_BYTES_MAX + 1), HookEvent::PreToolUse).is_err());
    }
}
