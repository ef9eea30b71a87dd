//! Just enough Rust to see what a file names: words, paths, attributes. Strings and comments are set aside, so
//! a rule cannot be broken, or a row covered, by something that is only quoted.

mod lex;
mod path;

use std::collections::BTreeSet;

pub use lex::{Token, TokenKind};
pub use path::{Named, Scope};

use crate::Tree;

/// One Rust file, read.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Everything that is code, in order.
    pub tokens: Vec<Token<'a>>,
    /// Comments with the line they start on.
    pub comments: Vec<(usize, &'a str)>,
    /// Modules declared as `#[cfg(test)] mod name;`.
    pub test_modules: Vec<TestModule<'a>>,
}

/// A module that is only there for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestModule<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its file, from the folder of the one that declares it, when `#[path = "…"]` says so.
    pub file: Option<&'a str>,
}

impl<'a> Source<'a> {
    /// Reads a file. Never fails: what is no Rust gives odd tokens, and the compiler will say so.
    pub fn read(text: &'a str) -> Self {
        let (tokens, comments) = lex::lex(text);
        Self { tokens, comments, test_modules: Vec::new() }
    }

    /// The same file less everything that only exists under `#[cfg(test)]`.
    pub fn without_tests(self) -> Self {
        let mut kept = Vec::with_capacity(self.tokens.len());
        let mut test_modules = self.test_modules;
        let mut at = 0;
        while at < self.tokens.len() {
            let attribute = Attribute::at(&self.tokens, at);
            match attribute {
                Some(attribute) if attribute.is_test_only(&self.tokens) => {
                    if attribute.inner {
                        // `#![cfg(test)]`: nothing in this file reaches a user.
                        return Self { tokens: Vec::new(), comments: self.comments, test_modules };
                    }
                    let end = item_end(&self.tokens, attribute.end);
                    test_modules.extend(declared_module(&self.tokens[attribute.end..end]));
                    at = end;
                }
                Some(attribute) => {
                    kept.extend_from_slice(&self.tokens[at..attribute.end]);
                    at = attribute.end;
                }
                None => {
                    kept.push(self.tokens[at]);
                    at += 1;
                }
            }
        }
        Self { tokens: kept, comments: self.comments, test_modules }
    }

    /// The macros called, by name.
    pub fn macros(&self) -> impl Iterator<Item = Token<'a>> + '_ {
        self.tokens
            .windows(3)
            .filter(|three| three[0].is_word() && three[1].text == "!" && three[2].text != "=")
            .map(|three| three[0])
    }

    /// The functions the test runner will run: marked `#[test]` or `#[…::test]` and not `#[ignore]`d.
    pub fn tests(&self) -> Vec<Token<'a>> {
        const BEFORE_FN: [&str; 8] = ["pub", "(", ")", "crate", "super", "async", "unsafe", "const"];
        let mut found = Vec::new();
        let mut marks: Vec<String> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            if let Some(attribute) = Attribute::at(&self.tokens, at) {
                marks.push(attribute.path(&self.tokens));
                at = attribute.end;
                continue;
            }
            let token = self.tokens[at];
            if token.text == "fn" {
                let is_test = marks.iter().any(|mark| mark == "test" || mark.ends_with("::test"));
                let ignored = marks.iter().any(|mark| mark == "ignore");
                if let Some(name) = self.tokens.get(at + 1).filter(|_| is_test && !ignored) {
                    found.push(*name);
                }
            }
            if !BEFORE_FN.contains(&token.text) {
                marks.clear();
            }
            at += 1;
        }
        found
    }
}

/// Whether a path is by its place a test, a benchmark or an example: a program of its own, not the library.
pub fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples"))
}

/// Every Rust file that is only built for tests, by its place or because its parent declares it so.
pub fn test_files(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in tree.rust() {
        if is_test_path(path) {
            found.insert(path.to_owned());
            continue;
        }
        let folder = children_folder(path);
        for module in Source::read(text).without_tests().test_modules {
            let TestModule { name, file } = module;
            let beside = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let given = file.map(|file| format!("{beside}/{file}"));
            let usual = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            found.extend(given.into_iter().chain(usual).filter(|candidate| tree.text(candidate).is_some()));
            let inside = format!("{folder}/{name}/");
            found.extend(
                tree.rust().map(|(path, _)| path.to_owned()).filter(|path| path.starts_with(&inside)),
            );
        }
    }
    found
}

/// The folder in which the modules declared by a file live.
fn children_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    }
}

/// An attribute's place in the tokens.
struct Attribute {
    start: usize,
    end: usize,
    inner: bool,
}

impl Attribute {
    fn at(tokens: &[Token<'_>], at: usize) -> Option<Self> {
        if tokens.get(at)?.text != "#" {
            return None;
        }
        let inner = tokens.get(at + 1)?.text == "!";
        let open = at + 1 + usize::from(inner);
        if tokens.get(open)?.text != "[" {
            return None;
        }
        Some(Self { start: open + 1, end: closing(tokens, open) + 1, inner })
    }

    fn path(&self, tokens: &[Token<'_>]) -> String {
        tokens[self.start..self.end.min(tokens.len())]
            .iter()
            .take_while(|token| token.is_word() || token.text == "::")
            .map(|token| token.text)
            .collect()
    }

    /// `cfg(test)` or `cfg(all(test, …))`; `any` and `not` also hold outside of tests.
    fn is_test_only(&self, tokens: &[Token<'_>]) -> bool {
        let words: Vec<_> = tokens[self.start..self.end.min(tokens.len())]
            .iter()
            .filter(|token| token.is_word())
            .map(|token| token.text)
            .collect();
        match words.as_slice() {
            ["cfg", "test"] => true,
            ["cfg", "all", rest @ ..] => {
                rest.contains(&"test") && !rest.contains(&"any") && !rest.contains(&"not")
            }
            _ => false,
        }
    }
}

/// Index of the bracket that closes the one at `open`, or the last token when none does.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

/// One past the end of the item (or field, or arm) that starts at `at`, which may open with more attributes.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    while let Some(attribute) = Attribute::at(tokens, at) {
        at = attribute.end;
    }
    let mut head = tokens[at..].iter().filter(|token| token.is_word()).map(|token| token.text);
    let mut keyword = head.next().unwrap_or_default();
    while matches!(keyword, "pub" | "crate" | "super" | "in" | "async" | "unsafe" | "extern") {
        keyword = head.next().unwrap_or_default();
    }
    let constant_function = keyword == "const" && head.next() == Some("fn");
    let ends_with_semicolon =
        matches!(keyword, "use" | "static" | "type" | "let") || (keyword == "const" && !constant_function);
    let is_item = ends_with_semicolon
        || matches!(
            keyword,
            "mod" | "fn" | "const" | "struct" | "enum" | "impl" | "trait" | "union" | "macro_rules"
        );
    while at < tokens.len() {
        match tokens[at].text {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            ")" | "]" | "}" => return at,
            "{" => {
                at = closing(tokens, at);
                if !ends_with_semicolon {
                    return at + 1;
                }
            }
            "(" | "[" => at = closing(tokens, at),
            _ => {}
        }
        at += 1;
    }
    tokens.len()
}

/// The module in `mod name;`, if that is what the item is.
fn declared_module<'a>(item: &[Token<'a>]) -> Option<TestModule<'a>> {
    let at = item.iter().position(|token| token.text == "mod")?;
    let mut attributes = item[..at].windows(3);
    let file = attributes.find(|three| three[0].text == "path" && three[1].text == "=");
    let file = file.map(|three| three[2].text.trim_matches('"'));
    (item.get(at + 2)?.text == ";").then_some(TestModule { name: item[at + 1].text, file })
}

#[cfg(test)]
mod tests;
