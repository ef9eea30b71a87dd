//! Commands that fit what was typed behind a `/`: by their names first, then by what they are for.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// A command that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Without the slash.
    pub name: String,
    /// Other names it goes by.
    pub aliases: Vec<String>,
    /// What it does, in a line.
    pub description: String,
    /// What may come behind its name.
    pub hint: String,
}

impl Entry {
    fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.aliases)
    }

    /// Whether it goes by this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    /// Whether one of its names begins so, in whatever letters.
    pub fn begins(&self, typed: &str) -> bool {
        let typed = typed.to_lowercase();
        self.names().any(|own| own.to_lowercase().starts_with(&typed))
    }
}

/// How well an entry fits, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Words of its description.
    Described(u32),
    /// Letters of a name, in their order.
    Loose(u32),
    /// A part of a name begins so: `review` of `code-review`.
    Part,
    /// Another of its names begins so.
    Alias,
    Beginning,
    Exact,
}

/// The numbers of the entries that fit, the best first. With nothing typed, all, as they stand.
pub fn fitting(entries: &[Entry], typed: &str) -> Vec<usize> {
    let typed = typed.trim().to_lowercase();
    if typed.is_empty() {
        return (0..entries.len()).collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let letters = Pattern::new(&typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    let words = Pattern::new(&typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Substring);
    let mut fit = |entry: &Entry| {
        let name = entry.name.to_lowercase();
        let aliases: Vec<String> = entry.aliases.iter().map(|alias| alias.to_lowercase()).collect();
        let parts = |name: &str| name.split(['-', '_', ':', '.']).any(|part| part.starts_with(&typed));
        let mut score =
            |pattern: &Pattern, text: &str| pattern.score(Utf32Str::new(text, &mut Vec::new()), &mut matcher);
        if name == typed || aliases.contains(&typed) {
            return Some(Fit::Exact);
        }
        if name.starts_with(&typed) {
            return Some(Fit::Beginning);
        }
        if aliases.iter().any(|alias| alias.starts_with(&typed)) {
            return Some(Fit::Alias);
        }
        if parts(&name) {
            return Some(Fit::Part);
        }
        if let Some(score) = score(&letters, &name) {
            return Some(Fit::Loose(score));
        }
        // One letter is somewhere in every description.
        let long = typed.chars().nth(2).is_some();
        long.then(|| score(&words, &entry.description)).flatten().map(Fit::Described)
    };
    let mut fits: Vec<(Fit, usize)> =
        entries.iter().enumerate().filter_map(|(at, entry)| Some((fit(entry)?, at))).collect();
    // Among equals the shorter name, then the order in which they stand.
    fits.sort_by_key(|(fit, at)| (std::cmp::Reverse(*fit), entries[*at].name.chars().count(), *at));
    fits.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let entry = |name: &str, aliases: &[&str], description: &str| Entry {
            name: name.to_owned(),
            aliases: aliases.iter().map(ToString::to_string).collect(),
            description: description.to_owned(),
            hint: String::new(),
        };
        vec![
            entry("help", &[], "What there is"),
            entry("clear", &["reset", "new"], "Begin another conversation"),
            entry("compact", &[], "Sum up the conversation to make room"),
            entry("context", &[], "How full the context is"),
            entry("cost", &["usage"], "What it has cost"),
            entry("code-review", &[], "Look over a change"),
            entry("review", &[], "Look over a pull request"),
            entry("mcp__github__issues", &[], "Prompts of a server"),
        ]
    }

    #[test]
    fn names_come_before_what_they_are_for() {
        let entries = entries();
        for (typed, names) in [
            ("c", &["cost", "clear", "compact", "context", "code-review", "mcp__github__issues"][..]),
            ("co", &["cost", "compact", "context", "code-review"]),
            ("review", &["review", "code-review"]),
            ("rev", &["review", "code-review"]),
            ("reset", &["clear"]),
            ("us", &["cost", "mcp__github__issues"]),
            ("COST", &["cost"]),
            ("cmpct", &["compact"]),
            ("room", &["compact"]),
            ("github", &["mcp__github__issues"]),
            ("zzz", &[]),
        ] {
            let found: Vec<&str> =
                fitting(&entries, typed).into_iter().map(|at| &*entries[at].name).collect();
            assert_eq!(found, names, "{typed}");
        }
        assert_eq!(fitting(&entries, "  "), (0..entries.len()).collect::<Vec<_>>());
    }
}
