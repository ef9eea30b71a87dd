//! Where the session is: told once, in front of the first prompt, because it changes from run to run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::git::GitState;

/// Facts about the place and the day.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// The working directories, the first one current.
    pub roots: &'a [PathBuf],
    /// The checked-out branch, if it is a repository.
    pub git_branch: Option<&'a str>,
    /// More about the repository, if that is wanted.
    pub git: Option<&'a GitState>,
    /// The wall clock.
    pub now: Timestamp,
}

const WORKS_IN: &str = "Working directory: ";
/// The same where it is another than the model was told.
const NOW_WORKS_IN: &str = "The working directory is now ";
const NO_REPOSITORY: &str = "Not a git repository";
const ON_BRANCH: &str = "Git repository, on branch ";
/// The same where it is another than the model was told.
const NOW_ON_BRANCH: &str = "The repository is now on branch ";

impl Surroundings<'_> {
    /// What the model reads about them.
    pub fn text(&self) -> String {
        let mut text = String::from("<environment>\n");
        let mut roots = self.roots.iter();
        if let Some(cwd) = roots.next() {
            let _ = writeln!(text, "{WORKS_IN}{}", cwd.display());
        }
        for root in roots {
            let _ = writeln!(text, "Also working in: {}", root.display());
        }
        let _ = writeln!(text, "Platform: {}", std::env::consts::OS);
        match self.git_branch {
            Some(branch) => _ = writeln!(text, "{ON_BRANCH}{branch}"),
            None => _ = writeln!(text, "{NO_REPOSITORY}"),
        }
        if let Some(git) = self.git {
            describe(git, &mut text);
        }
        let _ = writeln!(text, "Today: {}", day(self.now));
        text.push_str("</environment>");
        text
    }
}

/// What is told of a repository besides its branch.
fn describe(git: &GitState, text: &mut String) {
    let indented =
        |text: &mut String, lines: &[String]| lines.iter().for_each(|line| _ = writeln!(text, "  {line}"));
    if let Some(main) = git.main.as_ref().filter(|main| **main != git.branch) {
        let _ = writeln!(text, "Its main branch is {main}");
    }
    match &git.status {
        Some(status) if status.is_empty() => {
            text.push_str("Nothing in the work tree differs from the index\n");
        }
        Some(status) => {
            text.push_str("What differs from the index, when the session began:\n");
            indented(text, status);
            if git.is_cut {
                text.push_str("  (and more)\n");
            }
        }
        None => {}
    }
    if !git.commits.is_empty() {
        text.push_str("Newest commits made here:\n");
        indented(text, &git.commits);
    }
}

/// What the model is told when it is another day than when it was last told something.
pub fn news_of_the_day(last: Timestamp, now: Timestamp) -> Option<String> {
    (day(last) < day(now)).then(|| format!("It is another day by now: today is {}.", day(now)))
}

/// What the model is told when it works in another directory than it was told of last. `told` finds that; `results` is where the whole
/// of long results is kept by now, which moves with a session.
pub fn news_of_the_place(
    now: &Path,
    results: &Path,
    told: impl FnOnce(&dyn Fn(&str) -> Option<String>) -> Option<String>,
) -> Option<String> {
    let (now, last) = (now.display().to_string(), told(&place_in)?);
    (last != now).then(|| {
        let results = results.display();
        format!(
            "{NOW_WORKS_IN}{now}\nThe user moved the session there. Paths without a beginning are meant from there; what was said of files \
             before is about those of {last}. What was kept of long results is in {results} now."
        )
    })
}

/// The directory that these words tell of, if they do.
fn place_in(words: &str) -> Option<String> {
    words.lines().rev().find_map(|line| {
        line.strip_prefix(NOW_WORKS_IN).or_else(|| line.strip_prefix(WORKS_IN)).map(str::to_owned)
    })
}

/// What the model is told when another branch is checked out than the one it was told of last. `told` finds that.
pub fn news_of_the_branch(
    now: Option<&str>,
    told: impl FnOnce(&dyn Fn(&str) -> Option<String>) -> Option<String>,
) -> Option<String> {
    let now = now?;
    let last = told(&branch_in)?;
    (last != now).then(|| format!("{NOW_ON_BRANCH}{now}"))
}

/// The branch that these words tell of, if they do; empty where they tell that there is no repository.
fn branch_in(words: &str) -> Option<String> {
    words.lines().rev().find_map(|line| {
        let branch = line.strip_prefix(NOW_ON_BRANCH).or_else(|| line.strip_prefix(ON_BRANCH));
        branch.or((line == NO_REPOSITORY).then_some("")).map(str::to_owned)
    })
}

fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn another_directory_is_told_once_and_the_same_never() {
        let news = |now: &str, said: &[&str]| {
            let told =
                |find: &dyn Fn(&str) -> Option<String>| said.iter().rev().find_map(|words| find(words));
            news_of_the_place(Path::new(now), Path::new("/kept"), told)
        };
        let roots = [PathBuf::from("/a"), PathBuf::from("/b")];
        let now = "2026-03-04T05:06:07Z".parse().unwrap();
        let first = Surroundings { roots: &roots, git_branch: None, git: None, now }.text();
        assert_eq!(news("/a", &[&first]), None);
        assert_eq!(
            news("/a", &["nothing about it"]),
            None,
            "it was told in words that are not sent any more"
        );
        let moved = news("/c", &[&first]).unwrap();
        assert!(moved.contains("/c") && moved.contains("/a") && moved.contains("/kept"), "{moved}");
        assert_eq!(news("/c", &[&first, &moved]), None);
        assert!(news("/a", &[&first, &moved]).is_some(), "and back");
    }

    #[test]
    fn the_model_is_told_where_it_is() {
        let git = GitState {
            branch: "trunk".to_owned(),
            main: Some("main".to_owned()),
            status: Some(vec![" M a.rs".to_owned(), "?? new/".to_owned()]),
            is_cut: true,
            commits: vec!["0123456 Begin".to_owned()],
        };
        let roots = [PathBuf::from("/srv/project"), PathBuf::from("/srv/other")];
        let now = "2026-03-04T05:06:07Z".parse().unwrap();
        let text = Surroundings { roots: &roots, git_branch: Some("trunk"), git: Some(&git), now }.text();
        expect![[r#"
            <environment>
            Working directory: /srv/project
            Also working in: /srv/other
            Platform: linux
            Git repository, on branch trunk
            Its main branch is main
            What differs from the index, when the session began:
               M a.rs
              ?? new/
              (and more)
            Newest commits made here:
              0123456 Begin
            Today: 2026-03-04
            </environment>"#]]
        .assert_eq(&text.replace(std::env::consts::OS, "linux"));
        let told = |now| news_of_the_branch(Some(now), |told| told(&text));
        assert_eq!(told("trunk"), None);
        assert_eq!(told("other").as_deref(), Some("The repository is now on branch other"));
        let later = "2026-03-05T00:00:00Z".parse().unwrap();
        assert_eq!(news_of_the_day(now, now), None);
        assert!(news_of_the_day(now, later).unwrap().contains("2026-03-05"));
    }
}
