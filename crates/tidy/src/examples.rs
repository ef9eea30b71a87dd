//! Every public type and trait of the crates that embedders build on shows how it is used: its documentation has an
//! example of its own, which the test run runs. A function of the engine's crate may instead name the item whose example
//! shows it (``See [`Engine`]``).
//!
//! Public is what can be reached from a crate's root: through `pub mod` and `pub use`.

use std::collections::BTreeSet;

use crate::{Finding, Tree};

/// The crates that embedders build on, by the folders of their sources.
const SOURCES: [&str; 3] = [ENGINE, "crates/pelton-model/src", "crates/pelton-testkit/src"];

/// The crate whose functions are shown too.
const ENGINE: &str = "crates/pelton/src";

const TYPES: [&str; 4] = ["struct ", "enum ", "union ", "trait "];
const FUNCTIONS: [&str; 2] = ["fn ", "async fn "];

/// Where an item is, and what its documentation says.
struct Item {
    name: String,
    is_type: bool,
    path: String,
    line: usize,
    docs: String,
}

impl Item {
    /// Whether its documentation has an example that is at least compiled.
    fn has_example(&self) -> bool {
        // Every other fence closes what the one before opened.
        let fences =
            self.docs.lines().filter_map(|line| line.trim_start_matches("///").trim().strip_prefix("```"));
        let mut opening = fences.step_by(2);
        opening.any(|words| matches!(words, "" | "rust" | "no_run" | "should_panic" | "compile_fail"))
    }

    /// The item that its documentation refers to.
    fn sees(&self) -> Option<&str> {
        let (_, link) = self.docs.split_once("See [`")?;
        let (name, _) = link.split_once("`]")?;
        name.trim_end_matches("()").rsplit("::").next()
    }
}

/// Every public item has an example; functions may say where there is one.
pub fn shown(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = SOURCES.iter().flat_map(|sources| shown_in(tree, sources)).collect();
    findings.sort();
    findings.dedup();
    findings
}

fn shown_in(tree: &Tree, sources: &str) -> Vec<Finding> {
    let mut items = Vec::new();
    Module::root(sources).exported(tree, &mut items);
    let with_example: BTreeSet<&str> =
        items.iter().filter(|item| item.has_example()).map(|item| item.name.as_str()).collect();
    let missing = items.iter().filter(|item| match item.is_type {
        _ if item.has_example() => false,
        true => true,
        false => sources == ENGINE && !item.sees().is_some_and(|name| with_example.contains(name)),
    });
    missing.map(|item| Finding::at(&item.path, item.line, advice(item))).collect()
}

fn advice(item: &Item) -> String {
    let name = &item.name;
    match item.is_type {
        true => format!("`{name}` is public: show how it is met or used in an example of its own"),
        false => format!(
            "`{name}` is public: show how it is used in an example, or say ``See [`Name`]`` of one that does"
        ),
    }
}

/// A module's file, and the folder its children are in.
#[derive(Clone)]
struct Module {
    file: String,
    folder: String,
    /// The crate's.
    sources: String,
}

impl Module {
    fn root(sources: &str) -> Self {
        Self { file: format!("{sources}/lib.rs"), folder: sources.to_owned(), sources: sources.to_owned() }
    }

    fn child(&self, tree: &Tree, name: &str) -> Option<Self> {
        let folder = format!("{}/{name}", self.folder);
        let files = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        let file = files.into_iter().find(|file| tree.text(file).is_some())?;
        Some(Self { file, folder, sources: self.sources.clone() })
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
        let (mut module, path) = match path.strip_prefix("crate::") {
            Some(rest) => (Self::root(&self.sources), rest),
            None => (self.clone(), path.trim_start_matches("self::")),
        };
        let (modules, names) = match path.split_once('{') {
            Some((modules, names)) => (modules.trim_end_matches("::"), names.trim_end_matches('}')),
            None => path.rsplit_once("::").unwrap_or(("", path)),
        };
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
        let after = |kinds: &[&str]| kinds.iter().find_map(|kind| rest.strip_prefix(kind));
        let (is_type, rest) = match (after(&TYPES), after(&FUNCTIONS)) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => continue,
        };
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
        items.push(Item { name, is_type, path: path.to_owned(), line: at + 1, docs });
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
        let table = "/// A table.\n///\n/// See [`Chair`].\npub fn table() {}\n";
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
    fn a_type_has_an_example_of_its_own() {
        let table = "/// A table.\n///\n/// See [`Chair`].\npub enum Table {}\n";
        let found = check(&[(LIB, "pub mod room;\n"), (ROOM, &format!("{WITH}{table}"))]);
        assert_eq!(found, ["crates/pelton/src/room.rs:11"]);
    }

    #[test]
    fn what_is_not_compiled_is_no_example() {
        let fenced = |words: &str| {
            format!("/// A table.\n///\n/// ```{words}\n/// sit();\n/// ```\npub trait Table {{}}\n")
        };
        let check = |words: &str| check(&[(LIB, "pub mod room;\n"), (ROOM, &fenced(words))]).len();
        assert_eq!(["", "no_run", "ignore", "text", "json"].map(check), [0, 0, 1, 1, 1]);
    }

    #[test]
    fn the_crates_around_the_engine_show_their_types() {
        let lib = "mod room;\npub use self::room::Chair;\n\npub fn sit() {}\n";
        for folder in ["crates/pelton-model/src", "crates/pelton-testkit/src"] {
            let (lib_path, room) = (format!("{folder}/lib.rs"), format!("{folder}/room.rs"));
            assert_eq!(check(&[(&lib_path, lib), (&room, "pub struct Chair;\n")]), [format!("{room}:1")]);
        }
        assert!(check(&[("crates/pelton-wire/src/lib.rs", "pub struct Chair;\n")]).is_empty());
    }

    #[test]
    fn a_way_that_leads_to_no_example_is_none() {
        let lost = "/// A table.\n///\n/// See [`Lamp`].\npub fn table() {}\n";
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
