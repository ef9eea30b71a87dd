//! Programs that write sources anew, and programs that make a directory of files. Which of their words say so is all that is known of them.

use super::super::arg::{Arg, Files};
use super::table::ONLY_CHECKED;
use super::{Deed, Deeds, here, is_any_flag};

/// A program that writes the files it is given.
struct Rewriter {
    names: &'static [&'static str],
    /// It does so only with one of these words.
    with: &'static [&'static str],
    /// How many operands come before the files.
    skipped: usize,
    /// Without files it takes everything here.
    all_here: bool,
}

const PLAIN: Rewriter = Rewriter { names: &[], with: &[], skipped: 0, all_here: false };

const REWRITERS: &[Rewriter] = &[
    Rewriter { names: &["yapf", "autoflake"], with: &["-i", "--in-place"], ..PLAIN },
    Rewriter { names: &["pyupgrade", "astyle", "indent", "codemod", "repren", "ambr", "augtool"], ..PLAIN },
    Rewriter { names: &["nixfmt", "alejandra", "yamlfmt"], all_here: true, ..PLAIN },
    Rewriter { names: &["jscodeshift"], ..PLAIN },
    Rewriter { names: &["2to3"], with: &["-w", "--write"], ..PLAIN },
    Rewriter { names: &["golangci-lint"], with: &["--fix", "fmt"], skipped: 1, all_here: true },
    Rewriter { names: &["clang-tidy"], with: &["--fix", "-fix"], ..PLAIN },
    Rewriter { names: &["uncrustify"], with: &["--replace", "--no-backup"], ..PLAIN },
    Rewriter { names: &["sqlfluff"], with: &["fix", "format"], skipped: 1, ..PLAIN },
    Rewriter { names: &["dotnet", "mix"], with: &["format"], skipped: 1, all_here: true },
    Rewriter { names: &["ormolu", "fourmolu"], with: &["-i", "inplace", "--mode=inplace"], ..PLAIN },
    Rewriter { names: &["ocamlformat"], with: &["-i", "--inplace"], ..PLAIN },
    Rewriter { names: &["comby"], with: &["-i", "-in-place"], skipped: 2, all_here: true },
    Rewriter { names: &["ast-grep", "sg"], with: &["-U", "--update-all"], all_here: true, ..PLAIN },
    Rewriter { names: &["sd", "rpl", "fastmod", "replace"], skipped: 2, ..PLAIN },
    Rewriter { names: &["recode"], skipped: 1, ..PLAIN },
    Rewriter { names: &["xmlstarlet", "xml"], with: &["-L", "--inplace"], ..PLAIN },
    Rewriter { names: &["crudini"], with: &["--set", "--del", "--merge"], ..PLAIN },
    Rewriter { names: &["objcopy", "llvm-objcopy", "strip", "llvm-strip", "patchelf", "chrpath"], ..PLAIN },
    // What they make is a directory full of files.
    Rewriter { names: &["virtualenv"], ..PLAIN },
    Rewriter { names: &["meson"], with: &["setup"], skipped: 1, ..PLAIN },
    Rewriter { names: &["degit", "cookiecutter"], skipped: 1, ..PLAIN },
    Rewriter { names: &["uv"], with: &["venv"], skipped: 1, ..PLAIN },
];

pub(super) fn is_known(name: &str) -> bool {
    REWRITERS.iter().any(|rewriter| rewriter.names.contains(&name))
}

pub(super) fn deeds(name: &str, args: &[Arg]) -> Deeds {
    let deeds = match name {
        "go" => of_go(args),
        "python" | "python3" => of_module(args),
        "npm" | "pnpm" if is_setting(args) => vec![
            Deed::Write(Files::InHome(".npmrc".to_owned())),
            Deed::Write(Files::Named(".npmrc".to_owned())),
        ],
        "yarn" if is_setting(args) => vec![Deed::Write(Files::Named(".yarnrc.yml".to_owned()))],
        // A script of the project, or a program that it has installed.
        "yarn" => super::deeds(args).deeds,
        "php" => served(args, "-S", "-t"),
        "http-server" | "serve" | "live-server" | "darkhttpd" => vec![Deed::Read(first_or_here(args))],
        _ => match REWRITERS.iter().find(|rewriter| rewriter.names.contains(&name)) {
            Some(rewriter) => rewriter.deeds(args),
            None => Vec::new(),
        },
    };
    Deeds { deeds, is_plain_edit: false }
}

impl Rewriter {
    fn deeds(&self, args: &[Arg]) -> Vec<Deed> {
        let is_told = |arg: &Arg| self.with.iter().any(|word| arg.prefix().starts_with(word));
        let only_checks = |arg: &Arg| arg.literal().is_some_and(|word| ONLY_CHECKED.contains(&word));
        if !self.with.is_empty() && !args.iter().any(is_told) || args.iter().any(only_checks) {
            return Vec::new();
        }
        let files: Vec<Deed> = operands(args).skip(self.skipped).map(Deed::Write).collect();
        match files.is_empty() && self.all_here {
            true => vec![here()],
            false => files,
        }
    }
}

/// `npm config set …`, `npm set …`
fn is_setting(args: &[Arg]) -> bool {
    let words: Vec<&str> = args.iter().filter_map(Arg::literal).take(2).collect();
    matches!(
        words.as_slice(),
        ["config" | "c", "set" | "delete" | "rm" | "edit" | "unset" | "fix"] | ["set", _]
    )
}

fn operands(args: &[Arg]) -> impl Iterator<Item = Files> + '_ {
    args.iter().filter(|arg| !arg.prefix().starts_with('-')).filter_map(Arg::probable_files)
}

fn first_or_here(args: &[Arg]) -> Files {
    operands(args).next().unwrap_or(Files::Named(".".to_owned()))
}

/// `go fmt ./...`, `go generate`: packages are directories.
fn of_go(args: &[Arg]) -> Vec<Deed> {
    let mut words = args.iter();
    if !matches!(words.next().and_then(Arg::literal), Some("fmt" | "generate" | "fix")) {
        return super::KNOWN
            .iter()
            .find(|known| known.names.contains(&"go"))
            .map(|known| known.deeds(args, true).deeds)
            .unwrap_or_default();
    }
    let mut deeds: Vec<Deed> = Vec::new();
    for package in words.filter_map(Arg::literal).filter(|word| !word.starts_with('-')) {
        let dir = package.strip_suffix("...").unwrap_or(package);
        deeds.push(Deed::Write(Files::Named(if dir.is_empty() { "." } else { dir }.to_owned())));
    }
    if deeds.is_empty() {
        deeds.push(here());
    }
    deeds
}

/// `python3 -m module …`: modules that come with Python and write files, or show them to whoever asks.
fn of_module(args: &[Arg]) -> Vec<Deed> {
    let Some(at) = args.iter().position(|arg| arg.literal() == Some("-m")) else { return Vec::new() };
    let Some((module, rest)) = args[at + 1..].split_first() else { return Vec::new() };
    match module.literal() {
        Some("venv" | "virtualenv" | "compileall") => operands(rest).map(Deed::Write).collect(),
        Some("zipfile" | "tarfile") => {
            let has = |letter: &str, long: &str| {
                rest.iter().any(|arg| is_any_flag(arg, letter) || arg.literal() == Some(long))
            };
            let mut files = operands(rest);
            let archive = files.next();
            match (has("e", "--extract"), has("c", "--create")) {
                (true, _) => vec![files.next().map_or_else(here, Deed::Write)],
                (_, true) => archive.map(Deed::Write).into_iter().chain(files.map(Deed::Read)).collect(),
                _ => Vec::new(),
            }
        }
        Some("http.server" | "SimpleHTTPServer") => {
            let at = rest.iter().position(|arg| matches!(arg.literal(), Some("-d" | "--directory")));
            let dir = at.and_then(|at| rest.get(at + 1)).and_then(Arg::probable_files);
            vec![Deed::Read(dir.unwrap_or(Files::Named(".".to_owned())))]
        }
        Some(module) => super::deeds(&[&[Arg::certain(module)], rest].concat()).deeds,
        None => Vec::new(),
    }
}

/// A server that shows a directory.
fn served(args: &[Arg], with: &str, option: &str) -> Vec<Deed> {
    if !args.iter().any(|arg| arg.literal() == Some(with)) {
        return Vec::new();
    }
    let at = args.iter().position(|arg| arg.literal() == Some(option));
    let dir = at.and_then(|at| args.get(at + 1)).and_then(Arg::probable_files);
    vec![Deed::Read(dir.unwrap_or(Files::Named(".".to_owned())))]
}
