//! Directories that options of a command name for it to work in, whose files say what it does: `git -C dir`, `npm --prefix dir`,
//! `make -C dir`.

use super::arg::{Arg, Files};
use super::deeds::may_be_option;
use super::launch::base_name;

/// Programs that run what files of a directory say, and their options that name another directory or the file.
const SENT: &[(&[&str], &[&str])] = &[
    (&["npm", "npx"], &["-C", "--prefix"]),
    (&["pnpm", "pnpx"], &["-C", "--dir", "--prefix"]),
    (&["yarn", "bun", "bunx"], &["--cwd"]),
    (&["make", "gmake"], &["-C", "-f", "--directory", "--file", "--makefile"]),
    (&["cargo"], &["-C", "--manifest-path"]),
    (&["just"], &["-d", "-f", "--justfile", "--working-directory"]),
    (&["gradle", "gradlew"], &["-p", "--project-dir"]),
    (&["mvn", "mvnw"], &["-f", "--file"]),
    (&["go"], &["-C"]),
];

/// Launchers that run a command in another directory.
const LAUNCHERS: &[(&[&str], &[&str])] = &[
    (&["env"], &["-C", "--chdir"]),
    (&["sudo"], &["-D", "--chdir"]),
    (&["bwrap"], &["--chdir"]),
    (&["unshare", "nsenter"], &["--wd"]),
    (&["parallel"], &["--wd", "--workdir"]),
    (&["systemd-run"], &["--working-directory"]),
];

/// The directories that a launcher may run its command in.
pub(super) fn sent_by_launcher(args: &[Arg]) -> Vec<String> {
    let named = sent(args, LAUNCHERS).into_iter().filter_map(|files| match files {
        Files::Named(path) => Some(path),
        _ => None,
    });
    named.collect()
}

/// Where a command is sent for what it runs.
pub(super) fn sent_for_scripts(args: &[Arg]) -> Vec<Files> {
    sent(args, SENT)
}

fn sent(args: &[Arg], programs: &[(&[&str], &[&str])]) -> Vec<Files> {
    let Some((name, rest)) = args.split_first() else { return Vec::new() };
    let Some(name) = name.literal().map(base_name) else { return Vec::new() };
    let Some((_, options)) = programs.iter().find(|(names, _)| names.contains(&name)) else {
        return Vec::new();
    };
    // What stands behind is for others.
    let own = rest.iter().position(|arg| arg.literal() == Some("--")).map_or(rest, |end| &rest[..end]);
    named_by(own, options)
}

/// The directories that `git` is told to take for its own, or to work in.
pub(super) fn repositories(args: &[Arg]) -> Vec<Files> {
    let Some((_, rest)) = args.split_first() else { return Vec::new() };
    let is_global = |at: &usize| {
        let is_valued = |arg: &Arg| {
            matches!(arg.literal(), Some("-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace"))
        };
        rest[*at].prefix().starts_with('-') || *at > 0 && is_valued(&rest[*at - 1])
    };
    let count = (0..rest.len()).take_while(is_global).count();
    named_by(&rest[..count], &["-C", "--git-dir"])
}

fn named_by(args: &[Arg], options: &[&str]) -> Vec<Files> {
    let mut named = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let text = arg.prefix();
        let Some(letters) = text.strip_prefix('-') else { continue };
        if letters.starts_with('-') {
            let (option, glued) =
                text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
            if option.len() > 3 && options.iter().any(|known| known.len() > 2 && may_be_option(option, known))
            {
                match glued {
                    Some(_) => named.extend(arg.behind_sign().and_then(|value| value.probable_files())),
                    None => named.extend(args.get(at + 1).and_then(Arg::probable_files)),
                }
            }
            continue;
        }
        for known in options.iter().filter(|known| known.len() == 2 && text.starts_with(**known)) {
            match arg.literal().map(|text| &text[known.len()..]) {
                Some("") => named.extend(args.get(at + 1).and_then(Arg::probable_files)),
                Some(glued) => named.push(Files::Named(glued.to_owned())),
                None => {}
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        let args: Vec<Arg> = line.split(' ').map(Arg::certain).collect();
        let found = if line.starts_with("git") { repositories(&args) } else { sent_for_scripts(&args) };
        let expected: Vec<Files> = expected.iter().map(|path| Files::Named((*path).to_owned())).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn directories_are_told_from_other_words() {
        check("npm run test --prefix /x", &["/x"]);
        check("npm run test --pref=../x", &["../x"]);
        check("npm run test -- --prefix /x", &[]);
        check("make test -C/x -f y", &["/x", "y"]);
        check("cargo test --manifest-path x/Cargo.toml", &["x/Cargo.toml"]);
        check("cargo test --prefix x", &[]);
        check("git -C x --git-dir=y log -C z", &["x", "y"]);
        check("git -c a=b -C x status", &["x"]);
        check("git log -C", &[]);
    }
}
