//! What git writes in the working tree, as far as it is named. Going from one version to another (`pull`, `switch`, `merge`) is no
//! edit: what is put there is what the repository holds.

use super::super::arg::{Arg, Files};
use super::{Deed, Deeds, here, is_any_flag, may_be_option};

pub(super) fn deeds(args: &[Arg]) -> Deeds {
    let mut deeds = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let (name, glued) = match arg.literal().and_then(|text| text.split_once('=')) {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg.prefix(), None),
        };
        // Options for all of git are called otherwise.
        let is_begun = |option: &str| name.len() > "--d".len() && may_be_option(name, option);
        if name.starts_with("--") && (is_begun("--output") || is_begun("--directory")) {
            let file = match glued {
                Some(value) => Some(Files::Named(value)),
                None => args.get(at + 1).and_then(Arg::probable_files),
            };
            deeds.extend(file.map(Deed::Write));
        }
    }
    let (dirs, args) = before_command(args);
    let Some((command, rest)) = args.split_first() else {
        return Deeds { deeds, is_plain_edit: false };
    };
    let already = deeds.len();
    let files = || rest.iter().filter(|arg| !arg.prefix().starts_with('-')).filter_map(path);
    let behind_dashes = || {
        let at = rest.iter().position(|arg| arg.literal() == Some("--"));
        rest.iter().skip(at.map_or(rest.len(), |at| at + 1)).filter_map(path)
    };
    let everything = || Files::Named(".".to_owned());
    let has = |options: &[&str]| rest.iter().any(|arg| options.contains(&arg.prefix()));
    match command.literal() {
        // Whatever was changed is thrown away.
        Some("checkout" | "switch") if has(&["-f", "--force", "--discard-changes"]) => deeds.push(here()),
        Some("checkout" | "restore") => deeds.extend(files().map(Deed::Write)),
        // What stands behind `push` are the files that are put away.
        Some("stash") if rest.first().and_then(Arg::literal) == Some("push") => {
            deeds.extend(files().skip(1).map(Deed::Write));
        }
        Some("stash") => deeds.extend(behind_dashes().map(Deed::Write)),
        Some("rm" | "mv") => deeds.extend(files().map(Deed::Remove)),
        Some("clean") if rest.iter().any(|arg| is_any_flag(arg, "n")) || has(&["--dry-run"]) => {}
        Some("clean") if files().next().is_none() => deeds.push(Deed::Remove(everything())),
        Some("clean") => deeds.extend(files().map(Deed::Remove)),
        // These put the whole tree back, whatever was done to it.
        Some("reset") if has(&["--hard", "--merge", "--keep"]) => deeds.push(here()),
        Some("checkout-index") if has(&["--all"]) || rest.iter().any(|arg| is_any_flag(arg, "a")) => {
            deeds.push(here());
        }
        Some("checkout-index") => deeds.extend(files().map(Deed::Write)),
        Some("read-tree") if has(&["-u"]) => deeds.push(here()),
        // What is not among the directories it names is taken away.
        Some("sparse-checkout") if has(&["set", "reapply"]) => deeds.push(Deed::Remove(everything())),
        // Files that git does not keep are looked through, too.
        Some("grep") if has(&["--no-index", "--untracked"]) => deeds.push(Deed::Read(everything())),
        Some("config") => {
            let is_file = |option: &str| {
                matches!(option, "-f" | "-ef" | "-lf" | "-zf")
                    || option.len() > 3 && may_be_option(option, "--file")
            };
            let at = rest.iter().position(|arg| arg.literal().is_some_and(is_file));
            let long = |word| {
                str::split_once(word, '=').filter(|(option, _)| option.starts_with("--") && is_file(option))
            };
            // `-ffile`, also behind letters that take nothing.
            let short = |word| {
                let (letters, file) = str::strip_prefix(word, '-')?.split_once('f')?;
                (letters.chars().all(|letter| "elz".contains(letter)) && !file.is_empty())
                    .then_some((letters, file))
            };
            let glued =
                rest.iter().filter_map(Arg::literal).filter_map(|word| long(word).or_else(|| short(word)));
            let reads = has(&["--get", "--get-all", "--list", "-l", "--get-regexp"]);
            let file = at.and_then(|at| rest.get(at + 1)).and_then(Arg::probable_files);
            let files = glued.map(|(_, file)| Files::Named(file.to_owned())).chain(file);
            deeds.extend(files.map(if reads { Deed::Read } else { Deed::Write }));
        }
        Some("interpret-trailers") if has(&["--in-place"]) => deeds.extend(files().map(Deed::Write)),
        Some("mailinfo") => deeds.extend(files().map(Deed::Write)),
        // The name that the files it makes begin with.
        Some("pack-objects") => deeds.extend(files().map(Deed::Write)),
        // The others are what it is merged with.
        Some("merge-file") => deeds.extend(files().next().map(Deed::Write)),
        Some("bundle") if has(&["create"]) => deeds.extend(files().nth(1).map(Deed::Write)),
        Some("init" | "clone") => deeds.extend(files().next_back().map(Deed::Write)),
        Some("worktree" | "submodule") => deeds.extend(files().skip(1).map(Deed::Write)),
        _ => {}
    }
    for dir in dirs {
        let there: Vec<Deed> = deeds[already..].iter().filter_map(|deed| deed.below(dir)).collect();
        deeds.extend(there);
    }
    Deeds { deeds, is_plain_edit: false }
}

/// The directories that options before a command name to work in, and the words from the command on.
fn before_command(args: &[Arg]) -> (Vec<&str>, &[Arg]) {
    let mut dirs = Vec::new();
    let mut args = args;
    while let [option, rest @ ..] = args
        && option.prefix().starts_with('-')
    {
        args = rest;
        match option.prefix() {
            "-C" | "--work-tree" => {
                dirs.extend(args.first().and_then(Arg::literal));
                args = args.get(1..).unwrap_or_default();
            }
            "-c" | "--git-dir" | "--namespace" | "--config-env" | "--super-prefix" => {
                args = args.get(1..).unwrap_or_default();
            }
            option => dirs.extend(option.strip_prefix("--work-tree=")),
        }
    }
    (dirs, args)
}

/// The files of a path as git reads it: behind `:/` it begins at the top, and other signs behind a colon narrow it down.
fn path(arg: &Arg) -> Option<Files> {
    match arg.literal().and_then(|text| text.strip_prefix(':')) {
        Some(magic) => {
            let rest = magic.trim_start_matches(['/', '!', '^', ':']);
            let rest = rest.split_once(')').map_or(rest, |(_, rest)| rest);
            Some(Files::Named(if rest.is_empty() { ".".to_owned() } else { rest.to_owned() }))
        }
        None => arg.probable_files(),
    }
}
