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
            files.push(FileChange { name: last_name(names), note: None, hunks: Vec::new() });
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
            // Behind a name with spaces git puts a tab.
            let name = unquoted(name.trim_end_matches('\t'));
            if let Some(name) = name.strip_prefix("b/").or_else(|| name.strip_prefix("a/")) {
                name.clone_into(&mut file.name);
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
    line.strip_prefix("rename from ").map(|from| format!("was {}", unquoted(from)))
}

/// The second of two names in one line: `a/x b/x`, or each in quotes.
fn last_name(names: &str) -> String {
    let quoted =
        names.strip_suffix('"').and_then(|names| names.rfind(" \"").map(|at| unquoted(&names[at + 1..])));
    let name = quoted.as_deref().or_else(|| names.split_once(" b/").map(|(_, name)| name)).unwrap_or(names);
    name.strip_prefix("b/").unwrap_or(name).to_owned()
}

/// A name as it is. Git puts one with odd characters into quotes, and writes those as C does; the last quote may be missing.
fn unquoted(name: &str) -> String {
    let Some(inside) = name.strip_prefix('"') else { return name.to_owned() };
    let mut bytes = Vec::new();
    let mut rest = inside.strip_suffix('"').unwrap_or(inside).bytes().peekable();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        bytes.push(match escaped {
            None => byte,
            Some(b'a') => 0x07,
            Some(b'b') => 0x08,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 0x0b,
            Some(b'f') => 0x0c,
            Some(b'r') => b'\r',
            Some(digit @ b'0'..=b'7') => {
                // Three of them, always.
                let more = |value: u8, digit: u8| value.wrapping_mul(8).wrapping_add(digit - b'0');
                let is_digit = |byte: &u8| (b'0'..=b'7').contains(byte);
                let two = [rest.next_if(is_digit), rest.next_if(is_digit)];
                two.into_iter().flatten().fold(digit - b'0', more)
            }
            Some(other) => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
        let odd = r#"diff --git "a/o\"\033\303\274 x" "b/o\"\033\303\274 x"
old mode 100644
new mode 100755
diff --git "a/n\\\n" "b/n\\\n"
--- "a/n\\\n"
+++ "b/n\\\n"
@@ -1 +1 @@
-a
+b"#;
        let names: Vec<String> = of_git(odd).into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["o\"\u{1b}ü x", "n\\\n"]);
        for broken in
            ["", "@@ -1 +1 @@\n-a", "diff --git a/x b/x\n@@ nonsense", "diff --git \n@@ -1,9 +1,9 @@\n+a\n"]
        {
            of_git(broken);
        }
    }
}
