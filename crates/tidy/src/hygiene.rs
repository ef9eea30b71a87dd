//! Small rules about files: nothing half done, names that say something, no traces of one machine.

use crate::rust::{Source, is_test_path, test_files};
use crate::{Finding, Tree};

/// A source file longer than this is a tangle waiting to happen.
pub const SOURCE_LINES_MAX: usize = 800;

/// Where a built-in tool's file and the page the model reads stand side by side.
const TOOLS: &str = "crates/pelton/src/tools/builtin/";

/// Files that are programs, whatever language they are written in.
const PROGRAMS: &[&str] = &[".rs", ".py", ".js", ".mjs", ".ts", ".sh"];

/// Names under which anything could hide.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc"];

/// No marker of unfinished work in any source.
pub fn unfinished(tree: &Tree) -> Vec<Finding> {
    // Written in two halves so that this very file can be searched like any other.
    let marker = concat!("FIX", "ME");
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_program(path)) {
        if !path.ends_with(".rs") {
            let marked = text.lines().enumerate().filter(|(_, line)| line.contains(marker));
            findings.extend(
                marked.map(|(at, _)| Finding::at(path, at + 1, format!("{marker}: finish it or record it"))),
            );
            continue;
        }
        let source = Source::read(text);
        for (line, comment) in &source.comments {
            for (below, _) in comment.lines().enumerate().filter(|(_, row)| row.contains(marker)) {
                findings.push(Finding::at(path, line + below, format!("{marker}: finish it or record it")));
            }
        }
        for name in source.macros().filter(|name| matches!(name.text, "todo" | "unimplemented")) {
            findings.push(Finding::at(
                path,
                name.line,
                format!("`{}!`: finish it or leave it out", name.text),
            ));
        }
    }
    findings
}

/// Every built-in tool has the page that describes it beside it.
pub fn tool_pages(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter_map(|(path, _)| Some((path, path.strip_prefix(TOOLS)?.strip_suffix(".rs")?)))
        .filter(|(_, name)| !name.contains('/') && !matches!(*name, "mod" | "tests"))
        .filter(|(_, name)| tree.text(&format!("{TOOLS}{name}.md")).is_none_or(|page| page.trim().is_empty()))
        .map(|(path, name)| Finding::about(path, format!("no page `{name}.md` beside it")))
        .collect()
}

/// No file or folder with a name that says nothing.
pub fn names(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter_map(|(path, _)| {
            let part = path.split('/').find(|part| {
                let stem = part.split('.').next().unwrap_or(part);
                EMPTY_NAMES.contains(&stem.to_ascii_lowercase().as_str())
            })?;
            Some(Finding::about(path, format!("`{part}` says nothing: name it after what is in it")))
        })
        .collect()
}

/// No source file too long to read. Tests may be long lists.
pub fn lengths(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    tree.files()
        .filter(|(path, _)| is_program(path) && !is_test_path(path) && !tests.contains(*path))
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > SOURCE_LINES_MAX)
        .map(|(path, lines)| {
            Finding::about(
                path,
                format!("{lines} lines, at most {SOURCE_LINES_MAX}: split it by what it is about"),
            )
        })
        .collect()
}

/// No file names a package registry's host or a folder of somebody's machine.
pub fn places(tree: &Tree) -> Vec<Finding> {
    // Halves again, for the same reason as above.
    let hosts: [String; 8] = [
        concat!("registry.npm", "js.org"),
        concat!("npm", "js.com"),
        concat!("py", "pi.org"),
        concat!("python", "hosted.org"),
        concat!("index.crates", ".io"),
        concat!("static.crates", ".io"),
        concat!("//crates", ".io"),
        concat!("art", "ifactory"),
    ]
    .map(str::to_owned);
    let folders = ["work", "root"].map(|name| format!("/{name}/"));
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        for (line, row) in text.lines().enumerate().map(|(at, row)| (at + 1, row)) {
            if let Some(host) = hosts.iter().find(|host| row.contains(host.as_str())) {
                findings.push(Finding::at(path, line, format!("names the registry host `{host}`")));
            }
            if let Some(folder) = folders.iter().find(|folder| starts_a_path(row, folder)) {
                findings.push(Finding::at(path, line, format!("names `{folder}`, a folder of one machine")));
            }
        }
    }
    findings
}

fn is_program(path: &str) -> bool {
    PROGRAMS.iter().any(|ending| path.ends_with(ending))
}

/// Whether `folder` occurs as the start of a path, not in the middle of one.
fn starts_a_path(row: &str, folder: &str) -> bool {
    row.match_indices(folder).any(|(at, _)| {
        let before = row[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '~' | '}' | ')' | '>'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
        rule(&Tree::of([(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_comments_but_not_in_quotes() {
        let marker = concat!("FIX", "ME");
        assert_eq!(lines(unfinished, "a.rs", &format!("\n// {marker}: x")), [2]);
        assert_eq!(lines(unfinished, "a.rs", &format!("/* a\n {marker} */")), [2]);
        assert_eq!(lines(unfinished, "a.rs", "fn f() { todo!() }"), [1]);
        assert_eq!(lines(unfinished, "a.rs", "fn f() { unimplemented!(\"x\") }"), [1]);
        assert_eq!(lines(unfinished, "a.py", &format!("x = 1\n# {marker}")), [2]);
        assert!(lines(unfinished, "a.rs", &format!("fn f() {{ x(\"{marker} todo!()\") }}")).is_empty());
        assert!(lines(unfinished, "a.md", marker).is_empty());
    }

    #[test]
    fn a_tool_without_its_page_is_found() {
        let path = |name: &str| format!("{TOOLS}{name}");
        let (read, page, write, root, inner) =
            (path("read.rs"), path("read.md"), path("write.rs"), path("mod.rs"), path("read/lines.rs"));
        let tree =
            Tree::of([(read.as_str(), ""), (&page, "Reads."), (&write, ""), (&root, ""), (&inner, "")]);
        let found = tool_pages(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), format!("{write}: no page `write.md` beside it"));
        let empty = Tree::of([(read.as_str(), ""), (&page, "\n")]);
        assert_eq!(tool_pages(&empty).len(), 1, "an empty page is no page");
    }

    #[test]
    fn empty_names_are_found_in_files_and_folders() {
        for path in ["a/utils.rs", "a/Common/x.rs", "helpers.py", "tests/misc.test.js"] {
            assert_eq!(lines(names, path, "").len(), 1, "{path}");
        }
        assert!(lines(names, "a/common_prefix.rs", "").is_empty());
    }

    #[test]
    fn long_sources_are_found_and_long_tests_are_not() {
        let long = "x\n".repeat(SOURCE_LINES_MAX + 1);
        assert_eq!(lines(lengths, "crates/a/src/b.rs", &long).len(), 1);
        assert!(lines(lengths, "crates/a/src/b.rs", &long[2..]).is_empty());
        assert!(lines(lengths, "crates/a/tests/b.rs", &long).is_empty());
        assert!(lines(lengths, "crates/a/src/b/tests.rs", &long).is_empty());
        assert!(lines(lengths, "docs/a.md", &long).is_empty());
    }

    #[test]
    fn places_of_one_machine_are_found() {
        let (work, root) = (concat!("/wo", "rk/x"), concat!("/ro", "ot/.cargo"));
        assert_eq!(lines(places, "a.md", &format!("see {work}")), [1]);
        assert_eq!(lines(places, "a.rs", &format!("\n\"{root}\"")), [2]);
        assert!(lines(places, "a.rs", &format!("\"home{work} $x{root} ~{root}\"")).is_empty());
        assert!(lines(places, "a.rs", "\"{dir}/work/x\" \"src/root/y\"").is_empty());
        assert_eq!(lines(places, "package-lock.json", concat!("https://registry.npm", "js.org/x")), [1]);
        assert!(
            lines(places, "Cargo.lock", "registry+https://github.com/rust-lang/crates.io-index").is_empty()
        );
    }
}
