//! What a file names, in full: `use` trees are spread out and short names followed back to their imports.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, Token};

/// A chain of imports longer than this is a circle.
const ALIAS_STEPS_MAX: usize = 4;

/// A path that the code names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// Its parts from the outermost: `["crate", "turn", "decide"]`, `["std", "env"]`.
    pub path: Vec<String>,
    /// Line it stands on.
    pub line: usize,
}

impl Named {
    /// The path as it would be written.
    pub fn text(&self) -> String {
        self.path.join("::")
    }

    /// Whether this names `what` or something inside it.
    pub fn is_in(&self, what: &str) -> bool {
        let mut parts = self.path.iter();
        what.split("::").all(|part| parts.next().is_some_and(|own| own == part))
    }
}

/// Where a file stands in its crate, and what the crate's root hands on under shorter names.
#[derive(Debug, Default)]
pub struct Scope {
    /// The file's module, from the crate's root: `["turn", "decide"]`; empty for `lib.rs`.
    pub module: Vec<String>,
    /// `pub use` of the crate's root: name → where it really lives.
    pub root_names: BTreeMap<String, Vec<String>>,
}

impl Scope {
    /// The scope of a file given by its path below `src`.
    pub fn of(path_in_src: &str) -> Self {
        let path = path_in_src.trim_end_matches(".rs");
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let module = match path {
            "lib" | "main" | "mod" => Vec::new(),
            _ => path.split('/').map(str::to_owned).collect(),
        };
        Self { module, root_names: BTreeMap::new() }
    }

    /// The same scope, with the short names that the root file makes public.
    pub fn with_root(mut self, root: &Source<'_>) -> Self {
        let at_root = Scope::default();
        let mut uses = Vec::new();
        collect(root, &mut uses, &mut Vec::new(), &mut BTreeSet::new());
        let children = declared(root);
        for import in uses {
            let path = at_root.absolute(&import.path, &import.inside, &children);
            if path.first().is_some_and(|first| first == "crate") && path.len() > 2 {
                self.root_names.insert(import.name, path);
            }
        }
        self
    }

    /// Follows `crate`, `self`, `super` and child modules to a path from the crate's root; others stay.
    fn absolute(&self, path: &[String], inside: &[String], children: &BTreeSet<String>) -> Vec<String> {
        let mut here: Vec<String> = self.module.iter().chain(inside).cloned().collect();
        let mut rest = path;
        let is_child = |name: &String| inside.is_empty() && children.contains(name);
        match path.first().map(String::as_str) {
            Some("crate") => {
                here.clear();
                rest = &path[1..];
            }
            Some("self") => rest = &path[1..],
            Some("super") => {
                while rest.first().is_some_and(|first| first == "super") {
                    here.pop();
                    rest = &rest[1..];
                }
            }
            Some(_) if is_child(&path[0]) => {}
            _ => return path.to_vec(),
        }
        let full: Vec<String> =
            std::iter::once("crate".to_owned()).chain(here).chain(rest.iter().cloned()).collect();
        match full.get(1).and_then(|name| self.root_names.get(name)) {
            Some(real) => real.iter().chain(&full[2..]).cloned().collect(),
            None => full,
        }
    }
}

impl Source<'_> {
    /// Every path of two or more parts that the code names, and every import, followed back in full. A short
    /// name that could come from several imports gives one result for each.
    pub fn named(&self, scope: &Scope) -> Vec<Named> {
        let (mut uses, mut mentions) = (Vec::new(), Vec::new());
        let mut globs = BTreeSet::new();
        collect(self, &mut uses, &mut mentions, &mut globs);
        let children = declared(self);
        let mut aliases: BTreeMap<&str, Vec<&Vec<String>>> = BTreeMap::new();
        for import in &uses {
            aliases.entry(import.name.as_str()).or_default().push(&import.path);
        }
        let mut found = BTreeSet::new();
        for import in &uses {
            found.insert(Named {
                path: scope.absolute(&import.path, &import.inside, &children),
                line: import.line,
            });
        }
        for mention in uses.iter().chain(&mentions) {
            for path in spread(&mention.path, &aliases, &globs) {
                found.insert(Named {
                    path: scope.absolute(&path, &mention.inside, &children),
                    line: mention.line,
                });
            }
        }
        found.into_iter().collect()
    }
}

/// An import or a mention, before it is followed anywhere.
struct Mention {
    path: Vec<String>,
    /// The name it is known by in this file.
    name: String,
    /// Inline modules around it.
    inside: Vec<String>,
    line: usize,
}

/// All full paths a written path may stand for, given what its first part may be short for.
fn spread(
    path: &[String],
    aliases: &BTreeMap<&str, Vec<&Vec<String>>>,
    globs: &BTreeSet<Vec<String>>,
) -> Vec<Vec<String>> {
    let mut all = vec![path.to_vec()];
    let mut fresh = all.clone();
    for _ in 0..ALIAS_STEPS_MAX {
        let mut next = Vec::new();
        for path in &fresh {
            for target in path.first().and_then(|first| aliases.get(first.as_str())).into_iter().flatten() {
                let longer: Vec<String> = target.iter().chain(&path[1..]).cloned().collect();
                if !all.contains(&longer) && !next.contains(&longer) {
                    next.push(longer);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        all.extend(next.iter().cloned());
        fresh = next;
    }
    // Anything not imported by name may come through a glob.
    if all.len() == 1 && !matches!(path[0].as_str(), "crate" | "self" | "super" | "std") {
        all.extend(globs.iter().map(|glob| glob.iter().chain(path).cloned().collect()));
    }
    all
}

/// Modules declared in the file itself.
fn declared(source: &Source<'_>) -> BTreeSet<String> {
    source
        .tokens
        .windows(2)
        .filter(|two| two[0].text == "mod" && two[1].is_word())
        .map(|two| two[1].text.to_owned())
        .collect()
}

fn collect(
    source: &Source<'_>,
    uses: &mut Vec<Mention>,
    mentions: &mut Vec<Mention>,
    globs: &mut BTreeSet<Vec<String>>,
) {
    let tokens = &source.tokens;
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        match token.text {
            "{" => {
                if at >= 2 && tokens[at - 2].text == "mod" {
                    inline.push((tokens[at - 1].text.to_owned(), depth));
                }
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if inline.last().is_some_and(|(_, opened)| *opened == depth) {
                    inline.pop();
                }
            }
            "use" if tokens.get(at + 1).is_some_and(|next| next.text != "<") => {
                let inside: Vec<String> = inline.iter().map(|(name, _)| name.clone()).collect();
                let mut tree = UseTree { tokens, at: at + 1, inside, uses, globs };
                tree.read(&[]);
                at = tree.at;
                continue;
            }
            _ if token.is_word() && tokens.get(at + 1).is_some_and(|next| next.text == "::") => {
                let path = plain_path(tokens, &mut at);
                let inside = inline.iter().map(|(name, _)| name.clone()).collect();
                let name = path.last().cloned().unwrap_or_default();
                mentions.push(Mention { path, name, inside, line: token.line });
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// The words of a path from `at` on; leaves `at` behind them.
fn plain_path(tokens: &[Token<'_>], at: &mut usize) -> Vec<String> {
    let mut path = vec![tokens[*at].text.to_owned()];
    *at += 1;
    while let [colons, word, ..] = &tokens[*at..] {
        if colons.text != "::" || !word.is_word() {
            break;
        }
        path.push(word.text.to_owned());
        *at += 2;
    }
    path
}

/// A `use` item being spread out.
struct UseTree<'s, 'a> {
    tokens: &'s [Token<'a>],
    at: usize,
    inside: Vec<String>,
    uses: &'s mut Vec<Mention>,
    globs: &'s mut BTreeSet<Vec<String>>,
}

impl UseTree<'_, '_> {
    fn text(&self) -> &str {
        self.tokens.get(self.at).map_or(";", |token| token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at.min(self.tokens.len().saturating_sub(1))).map_or(0, |token| token.line)
    }

    /// Reads one branch that hangs on `stem`; stops on the `,`, `}` or `;` that ends it.
    fn read(&mut self, stem: &[String]) {
        let mut path = stem.to_vec();
        let line = self.line();
        loop {
            match self.text() {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(), "}" | ";") {
                        self.read(&path);
                        if self.text() == "," {
                            self.at += 1;
                        }
                    }
                    self.at += usize::from(self.text() == "}");
                    return;
                }
                "*" => {
                    self.at += 1;
                    self.globs.insert(path.clone());
                    self.uses.push(Mention { path, name: "*".to_owned(), inside: self.inside.clone(), line });
                    return;
                }
                "as" => {
                    self.at += 1;
                    let name = self.text().to_owned();
                    self.at += 1;
                    self.uses.push(Mention { path, name, inside: self.inside.clone(), line });
                    return;
                }
                "," | "}" | ";" => {
                    if let Some(name) = path.last().cloned() {
                        self.uses.push(Mention { path, name, inside: self.inside.clone(), line });
                    }
                    return;
                }
                "self" if !path.is_empty() => self.at += 1,
                word => {
                    path.push(word.to_owned());
                    self.at += 1;
                }
            }
        }
    }
}
