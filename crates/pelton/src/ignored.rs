//! Directories of a project that are nobody's work here: those that git leaves out, and those that packages of others are put in.
//! What lies there instructs nobody. Blocks.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::limits::IGNORE_FILE_BYTES_MAX;

/// Packages of others are put there, whether git leaves them out or not.
const PACKAGES: &str = "node_modules";

/// Whether a directory below `root`, or one on the way to it, is left out. Where the work itself is done is not.
pub(crate) fn is_ignored(dir: &Path, root: &Path) -> bool {
    let Ok(below) = dir.strip_prefix(root) else { return false };
    if below.iter().any(|name| name == PACKAGES) {
        return true;
    }
    let top = repository(root);
    let mut on_the_way: Vec<&Path> = dir.ancestors().take_while(|dir| *dir != root).collect();
    on_the_way.reverse();
    on_the_way.into_iter().any(|dir| is_left_out(dir, &top))
}

/// The directory of the repository around this one, or this one if there is none.
fn repository(root: &Path) -> PathBuf {
    root.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(root).to_owned()
}

/// What the nearest rule says that speaks of it.
fn is_left_out(dir: &Path, top: &Path) -> bool {
    let above: Vec<&Path> = dir.ancestors().skip(1).take_while(|dir| dir.starts_with(top)).collect();
    let files = above.iter().map(|dir| (*dir, dir.join(".gitignore")));
    let excludes = std::iter::once((top, top.join(".git/info/exclude")));
    let says = files.chain(excludes).find_map(|(base, file)| match rules(base, &file)?.matched(dir, true) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    });
    says.unwrap_or(false)
}

/// The rules of a file, for what is below `base`.
fn rules(base: &Path, file: &Path) -> Option<Gitignore> {
    // Only files are read: a pipe would be waited for.
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(IGNORE_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new(base);
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no rule leaves nothing out.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_git_leaves_out_and_what_packages_are_in_is_nobodys_work() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let put = |file: &str, text: &str| {
            let file = top.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put(".gitignore", "/target\n*.d\nvendor/*\n!vendor/ours\n[z-a\n");
        put("part/.gitignore", "out\n!kept.d\n");
        let check = |dir: &str, root: &str, expected: bool| {
            assert_eq!(is_ignored(&top.join(dir), &top.join(root)), expected, "{dir} in {root}");
        };
        for (dir, expected) in [
            ("target", true),
            ("target/debug/build", true),
            ("part/target", false),
            ("a.d/b", true),
            ("part/kept.d", false),
            ("part/out/deep", true),
            ("out", false),
            ("vendor/theirs", true),
            ("vendor/ours/src", false),
            ("web/node_modules/x", true),
            ("src", false),
        ] {
            check(dir, "", expected);
        }
        // Rules of the repository hold in a part of it; of no repository, only those of where the work is done.
        check("part/x.d", "part", false);
        fs::create_dir_all(top.join(".git/info")).unwrap();
        fs::write(top.join(".git/info/exclude"), "/mine\n").unwrap();
        check("part/x.d", "part", true);
        check("mine", "", true);
        // Whoever works in such a directory works there.
        check("target/debug", "target", false);
        check("elsewhere", "part", false);
    }
}
