//! What git says has changed, file by file.

use super::Hunk;

/// A file that has changed.
#[derive(Debug, PartialEq, Eq)]
pub struct FileChange {
    /// What it is called now.
    pub name: String,
    /// What became of it, if it is more than a change of what it says.
    pub note: Option<String>,
    /// Where it has changed.
    pub hunks: Vec<Hunk>,
}

impl FileChange {
    /// Lines added and removed.
    pub fn counts(&self) -> (usize, usize) {
        let add = |(added, removed): (usize, usize), (more, fewer)| (added + more, removed + fewer);
        self.hunks.iter().map(Hunk::counts).fold((0, 0), add)
    }
}

/// The files of a patch as git writes it.
pub fn of_git(patch: &str) -> Vec<FileChange> {
    let mut files: Vec<FileChange> = Vec::new();
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            // Said again more clearly below, unless nothing of the text has changed.
            let name = names.split_once(" b/").map_or(names, |(_, name)| name);
            files.push(FileChange { name: name.to_owned(), note: None, hunks: Vec::new() });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if let Some(at) = line.strip_prefix("@@ ") {
            let (old, new) = starts(at);
            let (mut old_left, mut new_left) = lengths(at);
            let mut rows = Vec::new();
            // A line of the text may look like one of git's own: how many there are is known.
            while old_left > 0 || new_left > 0 || lines.peek().is_some_and(|line| line.starts_with('\\')) {
                let Some(row) = lines.next() else { break };
                match row.as_bytes().first() {
                    Some(b'+') => new_left = new_left.saturating_sub(1),
                    Some(b'-') => old_left = old_left.saturating_sub(1),
                    Some(b'\\') => {}
                    _ => {
                        old_left = old_left.saturating_sub(1);
                        new_left = new_left.saturating_sub(1);
                    }
                }
                rows.push(row);
            }
            file.hunks.push(Hunk::of_patch(old, new, rows));
        } else if let Some(name) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
            if let Some(name) = name.strip_prefix("b/").or_else(|| name.strip_prefix("a/")) {
                // Behind a name with spaces git puts a tab.
                name.trim_end_matches('\t').clone_into(&mut file.name);
            }
        } else if let Some(note) = note(line) {
            file.note = Some(match file.note.take() {
                Some(before) => format!("{before}, {note}"),
                None => note,
            });
        }
    }
    files
}

fn note(line: &str) -> Option<String> {
    let told = |words: &str| Some(words.to_owned());
    if line.starts_with("new file mode") {
        return told("new");
    }
    if line.starts_with("deleted file mode") {
        return told("deleted");
    }
    if line.starts_with("Binary files ") {
        return told("binary");
    }
    if let Some(mode) = line.strip_prefix("new mode ") {
        return Some(format!("mode {mode}"));
    }
    line.strip_prefix("rename from ").map(|from| format!("was {from}"))
}

/// Where a part begins: `-3,5 +4,6 @@ …`.
fn starts(at: &str) -> (usize, usize) {
    let mut ranges = at.split(' ').map(|range| range.trim_start_matches(['-', '+']));
    let mut start = || {
        let range = ranges.next().unwrap_or_default();
        range.split(',').next().and_then(|start| start.parse().ok()).unwrap_or(1)
    };
    (start(), start())
}

/// How many lines it has, before and after.
fn lengths(at: &str) -> (usize, usize) {
    let mut ranges = at.split(' ');
    let mut length = || {
        let range = ranges.next().unwrap_or_default();
        range.split_once(',').map_or(1, |(_, length)| length.parse().unwrap_or(0))
    };
    (length(), length())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_is_told_file_by_file() {
        let patch = "diff --git a/one.txt b/one.txt\nindex 1..2 100644\n--- a/one.txt\n+++ b/one.txt\n\
            @@ -1,3 +1,3 @@ fn x\n same\n--- gone\n+++ come\n end\n@@ -9 +9,2 @@\n-a\n+b\n+c\n\\ No newline at end of file\n\
            diff --git a/a b.txt b/a b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a b.txt\t\n@@ -0,0 +1 @@\n+x\n\
            diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
            diff --git a/p.png b/p.png\nnew file mode 100644\nBinary files a/p.png and b/p.png differ\n\
            diff --git a/was b/is\nsimilarity index 100%\nrename from was\nrename to is\n\
            diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
        let told: Vec<_> = of_git(patch)
            .iter()
            .map(|file| (file.name.clone(), file.note.clone(), file.hunks.len(), file.counts()))
            .collect();
        let file = |name: &str, note: Option<&str>, hunks, counts| {
            (name.to_owned(), note.map(str::to_owned), hunks, counts)
        };
        assert_eq!(
            told,
            [
                file("one.txt", None, 2, (3, 2)),
                file("a b.txt", Some("new"), 1, (1, 0)),
                file("old", Some("deleted"), 1, (0, 1)),
                file("p.png", Some("new, binary"), 0, (0, 0)),
                file("is", Some("was was"), 0, (0, 0)),
                file("run", Some("mode 100755"), 0, (0, 0)),
            ]
        );
        for broken in
            ["", "@@ -1 +1 @@\n-a", "diff --git a/x b/x\n@@ nonsense", "diff --git \n@@ -1,9 +1,9 @@\n+a\n"]
        {
            of_git(broken);
        }
    }
}
