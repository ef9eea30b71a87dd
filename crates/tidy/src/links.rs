//! Links between documents. A link to the web is somebody else's promise and is not followed.

use std::collections::BTreeSet;

use crate::{Finding, Tree};

/// Every link in a Markdown file leads to a file, a folder or a heading that is there.
pub fn resolve(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in targets(text) {
            let outside = target.contains("://") || target.starts_with("mailto:");
            if outside || target.is_empty() {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let Some(full) = join(path, file) else {
                findings.push(Finding::at(path, line, format!("`{target}` leads out of the repository")));
                continue;
            };
            if !tree.has(&full) {
                findings.push(Finding::at(path, line, format!("`{target}` leads nowhere")));
            } else if !heading.is_empty() && full.ends_with(".md") {
                let known = headings(tree.text(&full).unwrap_or_default());
                if !known.contains(heading) {
                    findings.push(Finding::at(path, line, format!("`{target}`: no such heading")));
                }
            }
        }
    }
    findings
}

/// Targets of `[text](target)` with their lines, outside of code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, row) in outside_fences(text) {
        let row = without_code(row);
        for (at, _) in row.match_indices("](") {
            let rest = &row[at + 2..];
            if let Some(end) = rest.find([')', ' ']) {
                found.push((line, rest[..end].trim_matches(['<', '>']).to_owned()));
            }
        }
    }
    found
}

/// The lines that are not inside a fenced block.
fn outside_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(at, row)| {
        let start = row.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                None
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                None
            }
            (Some(_), _) => None,
            (None, None) => Some((at + 1, row)),
        }
    })
}

/// A row with what stands between backticks taken out.
fn without_code(row: &str) -> String {
    row.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "`" }).collect()
}

/// The anchors a Markdown file offers: its headings as slugs, repeated ones numbered, and explicit ids.
fn headings(text: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (_, row) in outside_fences(text) {
        if let Some(title) = row.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) {
            let slug = slug(title);
            let mut name = slug.clone();
            let mut again = 0;
            while !known.insert(name) {
                again += 1;
                name = format!("{slug}-{again}");
            }
        }
        for (at, _) in row.match_indices("<a id=\"") {
            known.extend(row[at + 7..].split('"').next().map(str::to_owned));
        }
    }
    known
}

fn slug(title: &str) -> String {
    title
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() })
        .collect()
}

/// The path a link in `from` leads to, from the root of the repository; none when it climbs out.
fn join(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = if link.starts_with('/') { Vec::new() } else { from.split('/').collect() };
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let tree = Tree::of([
            ("docs/page.md", text),
            ("docs/other.md", "# A title: with marks\n\n## Again\n\n## Again\n"),
            ("README.md", ""),
            ("crates/a/src/lib.rs", ""),
        ]);
        resolve(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        for link in [
            "[a](other.md)",
            "[a](other.md#a-title-with-marks)",
            "[a](other.md#again-1)",
            "[a](../README.md)",
            "[a](../crates/a)",
            "[a](../crates/a/src/lib.rs \"title\")",
            "[a](/README.md)",
            "# Here\n[a](#here)",
            "[a](https://example.org/x)",
            "`[a](nowhere.md)`",
            "```\n[a](nowhere.md)\n```",
        ] {
            assert_eq!(check(link), Vec::<String>::new(), "{link}");
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        assert_eq!(check("[a](nowhere.md)"), ["`nowhere.md` leads nowhere"]);
        assert_eq!(check("![a](../docs/no.png)"), ["`../docs/no.png` leads nowhere"]);
        assert_eq!(check("[a](other.md#no)"), ["`other.md#no`: no such heading"]);
        assert_eq!(check("[a](#no)"), ["`#no`: no such heading"]);
        assert_eq!(check("[a](../../x)"), ["`../../x` leads out of the repository"]);
        assert_eq!(check("```\n```\n[a](no) [b](../README.md) [c](gone)").len(), 2);
    }
}
