//! What was written down, and what is now.

use std::fmt;

/// The most a path may take above what was written down, in percent.
const RISE_PERCENT_MAX: f64 = 5.0;
/// The same with other tools, which make other instructions of the same words: then it only finds what became much dearer.
const RISE_ELSEWHERE_PERCENT_MAX: f64 = 25.0;

/// Instructions of each path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The compiler, the library of the system and the kind of machine: with others, other instructions come of the same words.
    pub tools: String,
    pub paths: Vec<(String, u64)>,
}

const TITLE: &str = "# Instructions of one operation. Written by: scripts/counts --write\n";

impl Counts {
    pub fn text(&self) -> String {
        let rows: String = self.paths.iter().map(|(path, count)| format!("{path}\t{count}\n")).collect();
        format!("{TITLE}# {}\n{rows}", self.tools)
    }

    pub fn read(text: &str) -> Result<Self, String> {
        let mut lines = text.strip_prefix(TITLE).unwrap_or_default().lines();
        let tools = lines.next().and_then(|line| line.strip_prefix("# ")).ok_or("no line names the tools")?;
        let path = |line: &str| {
            let (path, count) = line.split_once('\t')?;
            Some((path.to_owned(), count.parse().ok()?))
        };
        let paths = lines.map(|line| path(line).ok_or_else(|| format!("not a path and a number: '{line}'")));
        Ok(Self { tools: tools.to_owned(), paths: paths.collect::<Result<_, _>>()? })
    }
}

/// What to think of what is counted now.
pub(crate) struct Verdict {
    rows: Vec<Row>,
    /// The tools of then and of now, if they are not the same.
    elsewhere: Option<(String, String)>,
}

struct Row {
    path: String,
    then: Option<u64>,
    now: u64,
}

impl Row {
    fn percent(&self) -> Option<f64> {
        let then = self.then? as f64;
        Some((self.now as f64 - then) / then * 100.0)
    }
}

impl Verdict {
    pub fn of(then: &Counts, now: &Counts) -> Self {
        let known = |path: &str| then.paths.iter().find(|(known, _)| known == path).map(|(_, count)| *count);
        let row = |(path, now): &(String, u64)| Row { path: path.clone(), then: known(path), now: *now };
        let differ = then.tools != now.tools;
        Self {
            rows: now.paths.iter().map(row).collect(),
            elsewhere: differ.then(|| (then.tools.clone(), now.tools.clone())),
        }
    }

    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| self.row_holds(row))
    }

    /// A path that nobody wrote down is held by nothing.
    fn row_holds(&self, row: &Row) -> bool {
        row.percent().is_some_and(|percent| percent <= self.rise_percent_max())
    }

    fn rise_percent_max(&self) -> f64 {
        if self.elsewhere.is_some() { RISE_ELSEWHERE_PERCENT_MAX } else { RISE_PERCENT_MAX }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let then = row.then.map_or_else(|| "-".to_owned(), |count| count.to_string());
            let change = row.percent().map_or_else(|| "new".to_owned(), |percent| format!("{percent:+.1} %"));
            let word = if self.row_holds(row) { "" } else { "  TOO MUCH" };
            writeln!(f, "{:<34} {then:>12} {:>12} {change:>9}{word}", row.path, row.now)?;
        }
        if let Some((then, now)) = &self.elsewhere {
            writeln!(
                f,
                "written down with {then}, counted with {now}: up to {RISE_ELSEWHERE_PERCENT_MAX} % more may come of that alone"
            )?;
        }
        if !self.holds() {
            writeln!(
                f,
                "more than {} % above what was written down: make it cheaper, or say why in the commit that runs scripts/counts --write",
                self.rise_percent_max()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(tools: &str, paths: &[(&str, u64)]) -> Counts {
        let paths = paths.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
        Counts { tools: tools.to_owned(), paths }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let some = counts("rustc 1", &[("sse", 100), ("turn at 10", 2_000)]);
        assert_eq!(Counts::read(&some.text()), Ok(some));
        assert!(Counts::read("").is_err());
        assert!(Counts::read(&format!("{TITLE}# rustc 1\nsse many\n")).is_err());
    }

    #[test]
    fn a_rise_of_more_than_five_percent_fails_with_the_numbers() {
        let then = counts("rustc 1", &[("sse", 1_000), ("append", 1_000)]);
        let verdict = Verdict::of(&then, &counts("rustc 1", &[("sse", 1_050), ("append", 900)]));
        assert!(verdict.holds(), "{verdict}");
        let verdict = Verdict::of(&then, &counts("rustc 1", &[("sse", 1_051), ("append", 900)]));
        assert!(!verdict.holds());
        let text = verdict.to_string();
        assert!(text.contains("1000         1051    +5.1 %  TOO MUCH"), "{text}");
    }

    #[test]
    fn an_unknown_path_fails() {
        let then = counts("rustc 1", &[("sse", 1_000)]);
        assert!(!Verdict::of(&then, &counts("rustc 1", &[("sse", 1_000), ("new", 5)])).holds());
    }

    #[test]
    fn with_other_tools_only_what_became_much_dearer_fails() {
        let then = counts("rustc 1", &[("sse", 1_000)]);
        let verdict = Verdict::of(&then, &counts("rustc 2", &[("sse", 1_250)]));
        assert!(verdict.holds());
        assert!(verdict.to_string().contains("written down with rustc 1, counted with rustc 2"), "{verdict}");
        let verdict = Verdict::of(&then, &counts("rustc 2", &[("sse", 1_260)]));
        assert!(!verdict.holds());
        assert!(verdict.to_string().contains("+26.0 %  TOO MUCH"), "{verdict}");
    }
}
