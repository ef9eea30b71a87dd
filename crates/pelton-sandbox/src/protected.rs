//! Names that steer other programs: whoever may change such a file runs commands by it, later and outside. They stay as
//! they are, also inside directories that may be written. The one list: permissions ask before such a name is changed, the box
//! holds it. Pure.

use std::borrow::Cow;
use std::ffi::OsStr;

/// A protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// In small letters; a `*` at its end stands for any end.
    pub name: &'static str,
    /// What it is when it is there.
    pub kind: Kind,
    /// What is done while it is not there.
    pub absent: Absent,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// Anything else.
    File,
}

/// What keeps a name from being made that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Something empty stands in its place while a command runs.
    Masked,
    /// Making it is refused where the kernel asks, and it is looked for when the command has ended. Ordinary programs read
    /// these names in passing, and something empty in their place would be a configuration.
    Watched,
    /// Like `Masked` in the user's home, like `Watched` elsewhere: start-up files mean nothing in a project.
    MaskedAtHome,
}

/// The repository itself: most of it must change for a commit, so it has rules of its own.
pub const REPOSITORY: &str = ".git";
/// The configuration directory of the project.
pub const CONFIGURATION: &str = ".claude";
/// What of the configuration directory may be written.
pub const CONFIGURATION_FREE: &str = "worktrees";

/// What in a repository steers git.
pub const IN_REPOSITORY: &[Name] = &[
    Name { name: "hooks", kind: Kind::Directory, absent: Absent::Masked },
    Name { name: "config", kind: Kind::File, absent: Absent::Masked },
    // With a file of this name the configuration and the hooks are somewhere else; an empty one is an error.
    Name { name: "commondir", kind: Kind::File, absent: Absent::Watched },
    Name { name: "config.worktree", kind: Kind::File, absent: Absent::Watched },
];

/// All names but those in a repository.
pub const NAMES: &[Name] = &[
    directory(REPOSITORY),
    directory(CONFIGURATION),
    directory(".vscode"),
    directory(".idea"),
    directory(".husky"),
    directory(".cargo"),
    directory(".devcontainer"),
    directory(".yarn"),
    directory(".mvn"),
    Name { name: ".mcp.json", kind: Kind::File, absent: Absent::Masked },
    Name { name: ".claude.json", kind: Kind::File, absent: Absent::MaskedAtHome },
    start_up(".bashrc"),
    start_up(".bash_profile"),
    start_up(".bash_login"),
    start_up(".bash_aliases"),
    start_up(".bash_logout"),
    start_up(".zshrc"),
    start_up(".zprofile"),
    start_up(".zshenv"),
    start_up(".zlogin"),
    start_up(".zlogout"),
    start_up(".profile"),
    start_up(".gitconfig"),
    // Shells and sessions that few people have.
    read_in_passing(".kshrc"),
    read_in_passing(".mkshrc"),
    read_in_passing(".cshrc"),
    read_in_passing(".tcshrc"),
    read_in_passing(".login"),
    read_in_passing(".logout"),
    read_in_passing(".inputrc"),
    read_in_passing(".xprofile"),
    read_in_passing(".xinitrc"),
    read_in_passing(".xsessionrc"),
    read_in_passing(".gitmodules"),
    read_in_passing(".envrc"),
    read_in_passing(".npmrc"),
    read_in_passing(".yarnrc*"),
    read_in_passing(".pnp*"),
    read_in_passing(".bazelrc*"),
    read_in_passing(".bazelversion"),
    read_in_passing(".bazeliskrc"),
    read_in_passing("bunfig.toml"),
    read_in_passing(".bunfig.toml"),
    read_in_passing(".pre-commit-config.*"),
    read_in_passing("lefthook.*"),
    read_in_passing(".lefthook.*"),
    read_in_passing("lefthook-local.*"),
    read_in_passing(".lefthook-local.*"),
    read_in_passing("gradle-wrapper.properties"),
    read_in_passing("maven-wrapper.properties"),
    read_in_passing(".devcontainer.json"),
    read_in_passing(".ripgreprc"),
    read_in_passing("pyrightconfig.json"),
];

/// The rule for a name, if it is protected. Case does not count: some file systems ignore it.
pub fn find(name: &OsStr) -> Option<&'static Name> {
    within(NAMES, name)
}

/// The rule for a name inside a repository.
pub fn find_in_repository(name: &OsStr) -> Option<&'static Name> {
    within(IN_REPOSITORY, name)
}

fn within(names: &'static [Name], name: &OsStr) -> Option<&'static Name> {
    let said = name.to_str()?;
    // Some letters become ordinary ones when they are made small; nearly no name has such a letter.
    let small = if said.is_ascii() { Cow::Borrowed(said) } else { Cow::Owned(said.to_lowercase()) };
    // Every name of every path that is judged comes by here; most differ in their first letter, or in the second.
    let beginning = |name: &str| name.as_bytes().get(..2).map(|letters| [letters[0], letters[1]]);
    let first = beginning(&small)?.map(|letter| letter.to_ascii_lowercase());
    let may_be = |known: &&Name| beginning(known.name) == Some(first);
    names.iter().filter(may_be).find(|known| match known.name.strip_suffix('*') {
        Some(beginning) => {
            small.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
        }
        None => small.eq_ignore_ascii_case(known.name),
    })
}

impl Name {
    /// The very name, if it is only one.
    pub fn single(&self) -> Option<&'static str> {
        (!self.name.ends_with('*')).then_some(self.name)
    }
}

const fn directory(name: &'static str) -> Name {
    Name { name, kind: Kind::Directory, absent: Absent::Masked }
}

const fn start_up(name: &'static str) -> Name {
    Name { name, kind: Kind::File, absent: Absent::MaskedAtHome }
}

const fn read_in_passing(name: &'static str) -> Name {
    Name { name, kind: Kind::File, absent: Absent::Watched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whatever_their_case_and_their_end() {
        for name in
            [".git", ".GIT", ".Mcp.Json", ".yarnrc.yml", ".pnp.loader.mjs", "lefthook.yaml", ".BASHRC"]
        {
            assert!(find(OsStr::new(name)).is_some(), "{name}");
        }
        for known in NAMES.iter().chain(IN_REPOSITORY) {
            let (name, end) =
                (known.name.trim_end_matches('*'), if known.single().is_none() { "x" } else { "" });
            let written = (name.to_owned() + end).to_uppercase();
            let found = find(OsStr::new(&written)).or_else(|| find_in_repository(OsStr::new(&written)));
            assert_eq!(found, Some(known), "{written}");
        }
        for name in [".github", ".gitignore", "git", ".gitattributes", "yarnrc", ".vscode2", "lefthook", ""] {
            assert!(find(OsStr::new(name)).is_none(), "{name}");
        }
        assert!(find_in_repository(OsStr::new("Hooks")).is_some());
        assert!(find_in_repository(OsStr::new("HEAD")).is_none());
    }
}
