//! Every public type, trait and function of the engine's crate shows how it is used: its documentation has an example,
//! which the test run runs, or names the item whose example shows it (``See [`Engine`]``).
//!
//! Public is what can be reached from the crate's root: through `pub mod` and `pub use`.

use std::collections::BTreeMap;

use crate::{Finding, Tree};

/// The crate that embedders use.
const SOURCES: &str = "crates/pelton/src";

/// What counts as an item with a use.
const KINDS: [&str; 5] = ["struct ", "enum ", "trait ", "fn ", "async fn "];

/// Where an item is, and what its documentation says.
struct Item {
    name: String,
    path: String,
    line: usize,
    docs: String,
}

impl Item {
    fn has_example(&self) -> bool {
        self.docs.contains("```")
    }

    /// The item that its documentation refers to.
    fn sees(&self) -> Option<&str> {
        let (_, link) = self.docs.split_once("See [`")?;
        let (name, _) = link.split_once("`]")?;
        name.trim_end_matches("()").rsplit("::").next()
    }
}

/// Every public item has an example, or says where there is one.
pub fn shown(tree: &Tree) -> Vec<Finding> {
    let mut items = Vec::new();
    let root = Module { file: format!("{SOURCES}/lib.rs"), folder: SOURCES.to_owned() };
    root.exported(tree, &mut items);
    let with_example: BTreeMap<&str, bool> =
        items.iter().filter(|item| item.has_example()).map(|item| (item.name.as_str(), true)).collect();
    let mut findings: Vec<Finding> = items
        .iter()
        .filter(|item| {
            !item.has_example() && !item.sees().is_some_and(|name| with_example.contains_key(name))
        })
        .map(|item| {
            let why = format!(
                "`{}` is public: show how it is used in an example, or say ``See [`Name`]`` of one that does",
                item.name
            );
            Finding::at(&item.path, item.line, why)
        })
        .collect();
    findings.sort();
    findings.dedup();
    findings
}

/// A module's file, and the folder its children are in.
struct Module {
    file: String,
    folder: String,
}

impl Module {
    fn child(&self, tree: &Tree, name: &str) -> Option<Self> {
        let folder = format!("{}/{name}", self.folder);
        let files = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        let file = files.into_iter().find(|file| tree.text(file).is_some())?;
        Some(Self { file, folder })
    }

    /// All that is public in it, by whatever way.
    fn exported(&self, tree: &Tree, items: &mut Vec<Item>) {
        let text = tree.text(&self.file).unwrap_or_default();
        for statement in statements(text) {
            if let Some(name) = statement.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(';')) {
                if let Some(child) = self.child(tree, name.trim()) {
                    child.exported(tree, items);
                }
            } else if let Some(path) =
                statement.strip_prefix("pub use ").and_then(|rest| rest.strip_suffix(';'))
            {
                self.used(tree, path, items);
            }
        }
        items.extend(declared(&self.file, text));
    }

    /// What `pub use` of a path brings.
    fn used(&self, tree: &Tree, path: &str, items: &mut Vec<Item>) {
        let root = Self { file: format!("{SOURCES}/lib.rs"), folder: SOURCES.to_owned() };
        let (start, path) = match path.strip_prefix("crate::") {
            Some(rest) => (&root, rest),
            None => (self, path),
        };
        let (modules, names) = match path.split_once('{') {
            Some((modules, names)) => (modules.trim_end_matches("::"), names.trim_end_matches('}')),
            None => path.rsplit_once("::").unwrap_or(("", path)),
        };
        let mut module = Self { file: start.file.clone(), folder: start.folder.clone() };
        for name in modules.split("::").filter(|name| !name.is_empty()) {
            // What is not a module here belongs to another crate, which answers for itself.
            let Some(child) = module.child(tree, name) else { return };
            module = child;
        }
        let wanted: Vec<&str> = names.split(',').filter_map(|name| name.split_whitespace().next()).collect();
        let mut inside = Vec::new();
        module.exported(tree, &mut inside);
        items.extend(inside.into_iter().filter(|item| wanted.contains(&item.name.as_str())));
    }
}

/// The `pub mod` and `pub use` statements of a file, each on one line, those of inline modules too.
fn statements(text: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines().map(|line| line.split(" //").next().unwrap_or(line).trim()) {
        let begins = line.starts_with("pub use ") || line.starts_with("pub mod ");
        let statement = match open.take() {
            Some(open) => format!("{open} {line}"),
            None if begins => line.to_owned(),
            None => continue,
        };
        match statement.ends_with(';') || statement.ends_with('{') && statement.starts_with("pub mod ") {
            true => statements.push(statement),
            false => open = Some(statement),
        }
    }
    statements
}

/// The public items a file declares itself, with their documentation.
fn declared(path: &str, text: &str) -> Vec<Item> {
    let lines: Vec<&str> = text.lines().collect();
    let mut items = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("pub ") else { continue };
        let Some(rest) = KINDS.iter().find_map(|kind| rest.strip_prefix(kind)) else { continue };
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // Attributes may stand between the two, on several lines.
        let above = lines[..at].iter().rev().take_while(|line| {
            line.starts_with("///")
                || line.starts_with("#[")
                || line.starts_with(' ')
                || line.starts_with(")]")
        });
        let docs: Vec<&str> = above.filter(|line| line.starts_with("///")).copied().collect();
        let docs = docs.into_iter().rev().collect::<Vec<_>>().join("\n");
        items.push(Item { name, path: path.to_owned(), line: at + 1, docs });
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files.iter().copied());
        shown(&tree).into_iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    const LIB: &str = "crates/pelton/src/lib.rs";
    const ROOM: &str = "crates/pelton/src/room.rs";
    const WITH: &str =
        "/// A chair.\n///\n/// ```\n/// sit();\n/// ```\n#[derive(Debug)]\npub struct Chair;\n";

    #[test]
    fn an_example_or_the_way_to_one_is_enough() {
        let table = "/// A table.\n///\n/// See [`Chair`].\npub enum Table {}\n";
        assert!(
            check(&[(LIB, "pub mod room; // furniture\n"), (ROOM, &format!("{WITH}{table}"))]).is_empty()
        );
    }

    #[test]
    fn what_shows_nothing_is_found() {
        let bare = "/// A table.\npub fn table() {}\n";
        let found = check(&[(LIB, "pub mod room;\n"), (ROOM, &format!("{WITH}{bare}"))]);
        assert_eq!(found, ["crates/pelton/src/room.rs:9"]);
    }

    #[test]
    fn a_way_that_leads_to_no_example_is_none() {
        let lost = "/// A table.\n///\n/// See [`Lamp`].\npub struct Table;\n";
        assert_eq!(check(&[(LIB, "pub mod room;\n"), (ROOM, lost)]).len(), 1);
    }

    #[test]
    fn private_rooms_count_as_far_as_they_are_shown() {
        let files = |lib: &'static str| [(LIB, lib), (ROOM, "pub struct Chair;\n\npub struct Table;\n")];
        assert!(check(&files("mod room;\n")).is_empty());
        assert_eq!(check(&files("mod room;\npub use room::Chair;\n")), ["crates/pelton/src/room.rs:1"]);
        assert_eq!(check(&files("mod room;\npub use room::{\n    Chair,\n    Table,\n};\n")).len(), 2);
        assert_eq!(check(&files("mod room;\npub mod shop {\n    pub use crate::room::Table;\n}\n")).len(), 1);
        assert!(check(&files("mod room;\npub use other_crate::Chair;\n")).is_empty());
        assert!(check(&files("mod room;\npub(crate) use room::Chair;\n")).is_empty());
    }
}
