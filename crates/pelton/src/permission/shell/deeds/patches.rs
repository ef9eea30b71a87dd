//! `patch` and `git apply` change the files that a patch names. The patch stands in the line or in a file, which is looked into when
//! the line is judged; of any other nothing is known.

use pelton_shell::{Command, RedirectionKind, Script};

use super::super::arg::{Arg, Files};
use super::super::launch::base_name;
use super::super::passed::texts_told;
use super::{Deed, may_be_option};

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
        let Some((option, glued)) = option_of(text, is_git) else {
            files.extend(word.probable_files().filter(|_| is_git));
            continue;
        };
        let value = match glued {
            Some(glued) => Some(Arg::certain(glued)),
            None => words.next().cloned(),
        };
        match option {
            Told::Below => below = value.as_ref().and_then(Arg::probable_files)?,
            Told::Strip => strip = value.as_ref().and_then(Arg::literal).and_then(|count| count.parse().ok()),
            Told::Patch => files.extend(value.as_ref().and_then(Arg::probable_files)),
            Told::Nothing => {}
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

/// What an option of a program that applies patches tells.
enum Told {
    Below,
    Strip,
    Patch,
    Nothing,
}

/// What this option tells, and the value that is glued to it; without one the value is the next word. `None`: it is no option.
fn option_of(text: &str, is_git: bool) -> Option<(Told, Option<&str>)> {
    const NONE: (Told, Option<&str>) = (Told::Nothing, Some(""));
    if let Some(long) = text.strip_prefix("--") {
        let (name, glued) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        return Some(match name {
            _ if may_be_option(name, "directory") => (Told::Below, glued),
            _ if may_be_option(name, "strip") && !is_git => (Told::Strip, glued),
            _ if may_be_option(name, "input") && !is_git => (Told::Patch, glued),
            _ => NONE,
        });
    }
    let letters = text.strip_prefix('-')?;
    let takes = if is_git { "pC" } else { "BDFVYdgioprxz" };
    let Some((at, letter)) = letters.char_indices().find(|(_, letter)| takes.contains(*letter)) else {
        return Some(NONE);
    };
    let glued = Some(&letters[at + 1..]).filter(|glued| !glued.is_empty());
    Some(match letter {
        'p' => (Told::Strip, glued),
        'd' => (Told::Below, glued),
        'i' => (Told::Patch, glued),
        _ => (Told::Nothing, glued),
    })
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
