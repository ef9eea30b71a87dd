//! `patch` and `git apply` change the files that a patch names. The patch stands in the line or in a file, which is looked into when
//! the line is judged; of any other nothing is known.

use pelton_shell::{Command, RedirectionKind, Script};

use super::super::arg::{Arg, Files};
use super::super::launch::base_name;
use super::super::passed::texts_told;
use super::Deed;

/// Changes to files below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super::super) struct Patch {
    pub text: PatchText,
    pub below: Files,
    /// How many directories are taken off the names in it, if that is known.
    pub strip: Option<usize>,
}

/// Where a patch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super::super) enum PatchText {
    Written(String),
    In(Vec<Files>),
    /// Another program writes it.
    Unknown,
}

/// What a command that applies a patch does.
pub(in super::super) fn patch(command: &Command, args: &[Arg], script: &Script) -> Option<Deed> {
    let (name, rest) = args.split_first()?;
    let (rest, is_git) = match base_name(name.literal()?) {
        "patch" => (rest, false),
        "git" => {
            let at = rest.iter().position(|arg| matches!(arg.literal(), Some("apply" | "am")))?;
            rest[..at].iter().all(|arg| arg.prefix().starts_with('-')).then_some(())?;
            (&rest[at + 1..], true)
        }
        _ => return None,
    };
    let only_tells = |arg: &Arg| {
        matches!(
            arg.literal(),
            Some("--check" | "--stat" | "--numstat" | "--summary" | "--dry-run" | "--cached")
        )
    };
    if rest.iter().any(only_tells) {
        return None;
    }
    let mut below = Files::Named(".".to_owned());
    let mut strip = is_git.then_some(1);
    let mut files = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let text = word.prefix();
        if let Some(dir) = text.strip_prefix("--directory=") {
            below = Files::Named(dir.to_owned());
        } else if text == "--directory" || !is_git && text == "-d" {
            below = words.next().and_then(Arg::probable_files)?;
        } else if let Some(count) = text.strip_prefix("-p").or_else(|| text.strip_prefix("--strip=")) {
            let count = if count.is_empty() { words.next().and_then(Arg::literal) } else { Some(count) };
            strip = count.and_then(|count| count.parse().ok());
        } else if !is_git && matches!(text, "-i" | "--input") {
            files.extend(words.next().and_then(Arg::probable_files));
        } else if let Some(file) = text.strip_prefix("--input=").filter(|_| !is_git) {
            files.push(Files::Named(file.to_owned()));
        } else if !text.starts_with('-') && is_git {
            files.extend(word.probable_files());
        }
    }
    let read = command.redirections.iter().filter(|redirection| redirection.kind == RedirectionKind::Read);
    files.extend(read.filter_map(|redirection| Arg::of(&redirection.target).probable_files()));
    let told = texts_told(command, script).join("\n");
    let text = match files.is_empty() {
        false => PatchText::In(files),
        true if !told.is_empty() => PatchText::Written(told),
        true => PatchText::Unknown,
    };
    Some(Deed::Patch(Patch { text, below, strip }))
}

/// The files that a patch names.
pub(in super::super::super) fn names_in_patch(patch: &str, strip: Option<usize>) -> Vec<String> {
    const BEFORE_NAMES: &[&str] =
        &["--- ", "+++ ", "*** ", "Index: ", "rename to ", "rename from ", "copy to ", "diff --git "];
    let mut names: Vec<String> = Vec::new();
    for line in patch.lines() {
        let Some(rest) = BEFORE_NAMES.iter().find_map(|before| line.strip_prefix(before)) else { continue };
        // Names of a rename have nothing in front of them.
        let strip = if line.starts_with("rename ") || line.starts_with("copy ") { Some(0) } else { strip };
        let written = rest.split('\t').next().unwrap_or(rest).trim_matches(['"', ' ']);
        let several = line.starts_with("diff --git ").then(|| written.split_whitespace());
        let whole = [written];
        for name in whole.into_iter().chain(several.into_iter().flatten()) {
            let parts: Vec<&str> = name.split('/').collect();
            let strips = match strip {
                Some(count) => count..count + 1,
                None => 0..parts.len(),
            };
            for count in strips.filter(|count| *count < parts.len()) {
                let name = parts[count..].join("/");
                if !name.is_empty() && name != "dev/null" && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::names_in_patch;

    #[test]
    fn a_patch_names_its_files() {
        let patch = "diff --git a/src/x.rs b/src/y.rs\nrename from src/x.rs\nrename to src/y.rs\n--- a/src/x.rs\t2024\n+++ b/src/y.rs\n@@\n--- no name\n";
        let names = names_in_patch(patch, Some(1));
        assert!(
            names.contains(&"src/x.rs".to_owned()) && names.contains(&"src/y.rs".to_owned()),
            "{names:?}"
        );
        assert!(!names.contains(&"x.rs".to_owned()), "{names:?}");
        let names = names_in_patch("+++ b/src/y.rs\n", None);
        assert_eq!(names, ["b/src/y.rs", "src/y.rs", "y.rs"]);
        assert!(names_in_patch("{}\n", None).is_empty());
    }
}
