//! The repository as text, and what a rule says about it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// A file larger than this is not source and is not read.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Folders deeper than this are a link gone wrong.
const DEPTH_MAX: usize = 24;

/// What breaks a rule, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// Line, counted from one; zero when the whole file is meant.
    pub line: usize,
    /// What is wrong and what to do instead.
    pub message: String,
}

impl Finding {
    /// A finding about one line of a file.
    pub fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }

    /// A finding about a file as a whole.
    pub fn about(path: &str, message: impl Into<String>) -> Self {
        Self::at(path, 0, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Files by path. A file that is not text has an empty body: it can be linked to, nothing is read from it.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// A tree made of the given paths and texts.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self { files: files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect() }
    }

    /// The files under `root` that git would track: what `.gitignore` names is passed over.
    ///
    /// # Errors
    /// When a folder or file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let ignored = Ignored::parse(&fs::read_to_string(root.join(".gitignore")).unwrap_or_default());
        let mut tree = Self::default();
        tree.walk(root, "", 0, &ignored)?;
        Ok(tree)
    }

    /// All paths and texts, in order of path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust sources, in order of path.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file, or a folder with files in it, has this path.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|(next, _)| next.starts_with(&folder))
    }

    fn walk(&mut self, folder: &Path, prefix: &str, depth: usize, ignored: &Ignored) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Ok(());
        }
        for item in fs::read_dir(folder)? {
            let item = item?;
            let name = item.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            if name == ".git" || ignored.matches(&name, depth) {
                continue;
            }
            let kind = item.file_type()?;
            if kind.is_dir() {
                self.walk(&item.path(), &path, depth + 1, ignored)?;
            } else if kind.is_file() {
                // Others may be at work in the same checkout: a file that went away meanwhile is not there.
                let text = match item.metadata() {
                    Ok(facts) if facts.len() <= FILE_BYTES_MAX => fs::read(item.path()).unwrap_or_default(),
                    _ => Vec::new(),
                };
                self.files.insert(path, String::from_utf8(text).unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// The few forms of `.gitignore` lines this repository uses: `/name`, `name`, `*.ending`.
struct Ignored {
    at_root: Vec<String>,
    anywhere: Vec<String>,
    endings: Vec<String>,
}

impl Ignored {
    fn parse(text: &str) -> Self {
        let mut ignored = Self { at_root: Vec::new(), anywhere: Vec::new(), endings: Vec::new() };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let line = line.trim_end_matches('/');
            if let Some(name) = line.strip_prefix('/') {
                ignored.at_root.push(name.to_owned());
            } else if let Some(ending) = line.strip_prefix('*') {
                ignored.endings.push(ending.to_owned());
            } else {
                ignored.anywhere.push(line.to_owned());
            }
        }
        ignored
    }

    fn matches(&self, name: &str, depth: usize) -> bool {
        (depth == 0 && self.at_root.iter().any(|known| known == name))
            || self.anywhere.iter().any(|known| known == name)
            || self.endings.iter().any(|ending| name.ends_with(ending.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_names_are_matched_where_they_apply() {
        let ignored = Ignored::parse("/target\nnode_modules/\n# note\n*.profraw\n");
        assert!(ignored.matches("target", 0));
        assert!(!ignored.matches("target", 1));
        assert!(ignored.matches("node_modules", 3));
        assert!(ignored.matches("x.profraw", 2));
        assert!(!ignored.matches("# note", 0));
    }

    #[test]
    fn folders_are_known_by_their_files() {
        let tree = Tree::of([("docs/a.md", ""), ("docs-old/b.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/a.md") && tree.has(""));
        assert!(!tree.has("doc") && !tree.has("docs/b.md"));
    }

    #[test]
    fn findings_name_the_line_only_when_there_is_one() {
        assert_eq!(Finding::at("a.rs", 3, "wrong").to_string(), "a.rs:3: wrong");
        assert_eq!(Finding::about("a.rs", "wrong").to_string(), "a.rs: wrong");
    }
}
