//! What programs that are about files do to which of them.

mod archives; // what goes into archives, and comes out of them
mod git; // what git writes in the working tree
mod patches; // files that a patch names
mod table; // programs that are about files
mod rewriters; // programs that write sources anew, or make directories of files

pub(super) use self::patches::patch;
pub(in super::super) use self::patches::{Patch, PatchText, names_in_patch};
use self::table::{EDIT_FLAGS, KNOWN, Known, PLAIN, Shape};
use super::arg::{Arg, Files};
use super::find;
use super::launch::base_name;
use super::passed::search_starts;
use super::sed;

/// The letters of options that take a word which names no file, if a program reads the files that its operands name.
pub(super) fn letters_before_sources(name: &str) -> Option<&'static str> {
    let known = KNOWN.iter().find(|known| known.names.contains(&name))?;
    matches!(known.shape, Shape::Reads | Shape::Copies | Shape::Moves | Shape::Archives | Shape::Unpacks)
        .then_some(known.takes)
}

/// The same of a program that changes, or takes away, files that its operands name.
pub(super) fn letters_before_targets(name: &str, rest: &[Arg]) -> Option<&'static str> {
    let known = KNOWN.iter().find(|known| known.names.contains(&name))?;
    let changes = match known.shape {
        Shape::Reads | Shape::Nothing => false,
        Shape::WritesWith(signs) => {
            rest.iter().any(|arg| signs.iter().any(|sign| arg.prefix().starts_with(sign)))
        }
        _ => true,
    };
    changes.then_some(known.takes)
}

/// Options of a program whose value is a file that it writes.
pub(super) fn options_that_write(name: &str) -> &'static [&'static str] {
    let known = KNOWN.iter().find(|known| known.names.contains(&name));
    known.map_or(&[], |known| known.writes)
}

/// Something a command does to files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Deed {
    Read(Files),
    Write(Files),
    /// Takes it away.
    Remove(Files),
    /// Puts one there under its own name, if that is a directory.
    WriteInto(Files, Files),
    /// Changes what a patch names.
    Patch(Patch),
}

impl Deed {
    /// What it is done to.
    pub fn files(&self) -> &Files {
        match self {
            Self::Read(files) | Self::Write(files) | Self::Remove(files) | Self::WriteInto(files, _) => files,
            Self::Patch(patch) => &patch.below,
        }
    }

    /// The same in another directory, if that makes a difference.
    pub fn below(&self, dir: &str) -> Option<Self> {
        let inside = |files: &Files| files.below(dir);
        Some(match self {
            Self::Read(files) => Self::Read(inside(files)?),
            Self::Write(files) => Self::Write(inside(files)?),
            Self::Remove(files) => Self::Remove(inside(files)?),
            Self::WriteInto(target, source) => Self::WriteInto(inside(target)?, source.clone()),
            Self::Patch(patch) => Self::Patch(Patch { below: inside(&patch.below)?, ..patch.clone() }),
        })
    }
}

/// What a command does to files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Deeds {
    pub deeds: Vec<Deed>,
    /// The program is one of those that [accepting edits](super::super::Mode::AcceptEdits) covers, and these are all of its
    /// deeds.
    pub is_plain_edit: bool,
}

/// What this command does to files, as far as its program is known.
pub(super) fn deeds(args: &[Arg]) -> Deeds {
    let Some((name, rest)) = args.split_first() else { return Deeds::default() };
    let Some(name) = name.literal() else { return Deeds::default() };
    match base_name(name) {
        "sed" => of_sed(rest),
        "dd" => of_dd(rest),
        "test" | "[" => of_test(rest),
        "find" | "gfind" | "bfs" => of_find(rest),
        "tar" | "gtar" | "bsdtar" => archives::of_tar(rest),
        "git" => git::deeds(rest),
        "go" => rewriters::deeds("go", rest),
        "cpio" => archives::of_cpio(rest),
        "pax" => archives::of_pax(rest),
        "aws" | "gsutil" | "gcloud" | "rclone" => of_cloud(rest),
        "fd" | "fdfind" => of_fd(rest),
        "cargo" => of_cargo(rest),
        "7z" | "7za" | "7zr" | "7zz" => archives::of_archiver(rest),
        "ag" | "ack" | "pt" | "ugrep" | "ug" | "sift" => of_search(rest),
        "docker" | "podman" | "nerdctl" | "kubectl" | "oc" => of_containers(rest),
        "gh" | "glab" if rest.get(1).and_then(Arg::literal) == Some("clone") => PLAIN.deeds(&rest[2..], true),
        "gio" | "hg" | "svn" if rest.first().and_then(Arg::literal).is_some_and(is_taking_away) => {
            PLAIN.deeds(&rest[1..], true)
        }
        // Their files are created, not copied.
        "install" if rest.iter().any(is_making_directories) => {
            MAKES_DIRECTORIES.deeds(rest, name == "install")
        }
        base => match KNOWN.iter().find(|known| known.names.contains(&base)) {
            Some(known) => known.deeds(rest, name == base),
            None => rewriters::deeds(base, rest),
        },
    }
}

/// Whether a program is known for what it does to files.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "sed" | "dd" | "test" | "[" | "find" | "tar" | "git" | "ag" | "ack" | "ugrep")
        || KNOWN.iter().any(|known| known.names.contains(&name))
        || rewriters::is_known(name)
}

/// `install -d`.
const MAKES_DIRECTORIES: Known = Known { takes: "gom", takes_long: &["group", "owner", "mode"], ..PLAIN };

fn is_making_directories(arg: &Arg) -> bool {
    let text = arg.prefix();
    text == "--directory" || text.starts_with('-') && !text.starts_with("--") && text.contains('d')
}

fn is_taking_away(command: &str) -> bool {
    matches!(command, "trash" | "remove" | "rm" | "delete" | "revert")
}

/// Writes somewhere below the current directory.
fn here() -> Deed {
    Deed::Write(Files::Named(".".to_owned()))
}

/// Whether one of the letters of short options is one of these.
fn is_any_flag(arg: &Arg, letters: &str) -> bool {
    let text = arg.prefix();
    text.starts_with('-') && !text.starts_with("--") && text.contains(|letter| letters.contains(letter))
}

/// Whether a long option, as it is written, may be this one: programs take the beginning of a name for all of it.
pub(super) fn may_be_option(written: &str, option: &str) -> bool {
    let written = written.trim_start_matches('-');
    !written.is_empty() && option.trim_start_matches('-').starts_with(written)
}

/// What people put behind the name of a file that is kept.
const USUAL_SUFFIXES: &[&str] = &["~", ".bak", ".backup", ".old", ".orig", ".save"];

impl Known {
    /// The long option that this is, or may be the beginning of.
    fn spelled_out<'a>(&self, name: &'a str) -> &'a str
    where
        Self: 'a,
    {
        let is_known = self.takes_long.contains(&name) || EDIT_FLAGS.contains(&name);
        let mut begun = self.takes_long.iter().filter(|option| !is_known && may_be_option(name, option));
        begun.next().copied().unwrap_or(name)
    }

    /// Whether it gives files a second name: `ln` without `-s`, and `cp -l`.
    fn makes_names(&self, args: &[Arg]) -> bool {
        let has = |letter: &str, option: &str| {
            let is_long = |arg: &Arg| {
                let text = arg.prefix();
                text.len() > 3 && text.starts_with("--") && may_be_option(text, option)
            };
            args.iter().any(|arg| is_any_flag(arg, letter) || is_long(arg))
        };
        self.names.contains(&"ln") && !has("s", "--symbolic")
            || self.names.contains(&"cp") && has("l", "--link")
    }

    fn deeds(&self, args: &[Arg], by_name: bool) -> Deeds {
        let mut known = by_name;
        let mut operands: Vec<&Arg> = Vec::new();
        let mut deeds = Vec::new();
        let all = args;
        let mut target: Option<Files> = None;
        let mut write = |option: &str, value: &Arg, deeds: &mut Vec<Deed>, known: &mut bool| {
            if self.reads.contains(&option) {
                match value.probable_files() {
                    Some(files) => deeds.push(Deed::Read(files)),
                    None => *known = false,
                }
            }
            // What is put behind a name could lead elsewhere, or make another name of it.
            if matches!(option, "-S" | "--suffix") {
                *known &= value.literal().is_some_and(|suffix| USUAL_SUFFIXES.contains(&suffix));
            }
            if !self.writes.contains(&option) {
                return;
            }
            match value.probable_files() {
                Some(files) if matches!(option, "-t" | "--target-directory") => target = Some(files),
                Some(files) => deeds.push(Deed::Write(files)),
                None => *known = false,
            }
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let text = arg.prefix();
            if arg.literal() == Some("--") {
                operands.extend(args.by_ref());
            } else if let Some(long) = text.strip_prefix("--") {
                let (name, glued) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                let option = self.spelled_out(name);
                let value = match glued {
                    Some(value) => arg.literal().map(|_| Arg::certain(value)),
                    None if self.takes_long.contains(&option) => args.next().cloned(),
                    None => None,
                };
                // The beginning of a name is as good as all of it, and may be one that takes a directory.
                known &= arg.literal().is_some()
                    && (!self.plain_edit || self.takes_long.contains(&name) || EDIT_FLAGS.contains(&name))
                    && !(self.shape == Shape::Removes && name == "parents");
                if let Some(value) = value {
                    write(&format!("--{option}"), &value, &mut deeds, &mut known);
                }
            } else if let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
                known &= arg.literal().is_some();
                let mut letters = cluster.chars();
                while let Some(letter) = letters.next() {
                    // Copies of what links lead to are copies from anywhere, and a second name is no copy.
                    known &= self.shape != Shape::Copies || !matches!(letter, 'L' | 'H' | 'l');
                    // `rmdir -p` takes away what is above, too.
                    known &= self.shape != Shape::Removes || letter != 'p';
                    if !self.takes.contains(letter) {
                        continue;
                    }
                    let glued = letters.as_str();
                    let value =
                        if glued.is_empty() { args.next().cloned() } else { Some(Arg::certain(glued)) };
                    if let Some(value) = value {
                        write(&format!("-{letter}"), &value, &mut deeds, &mut known);
                    }
                    break;
                }
            } else {
                // Whatever options of `rm` names of files become, they say nothing about other files.
                known &= arg.is_sure() && (!arg.may_be_option() || self.shape == Shape::Removes);
                operands.push(arg);
            }
        }
        let mut files: Vec<Files> = Vec::new();
        let skipped = usize::from(self.shape == Shape::ChangesBehindFirst);
        for operand in operands.into_iter().skip(skipped) {
            match operand.probable_files() {
                Some(file) => {
                    known &= operand.files().is_some();
                    files.push(file);
                }
                None => known = false,
            }
        }
        let is_told = |arg: &Arg| arg.literal().is_some_and(|text| self.unless.contains(&text));
        match self.shape {
            _ if all.iter().any(is_told) => deeds.extend(files.into_iter().map(Deed::Read)),
            Shape::Writes | Shape::ChangesBehindFirst => deeds.extend(files.into_iter().map(Deed::Write)),
            Shape::Removes => deeds.extend(files.into_iter().map(Deed::Remove)),
            Shape::Reads => deeds.extend(files.into_iter().map(Deed::Read)),
            Shape::WritesWith(signs) => {
                let is_sign = |arg: &Arg| signs.iter().any(|sign| arg.prefix().starts_with(sign));
                let is_word = signs.iter().any(|sign| !sign.starts_with('-'));
                if all.iter().any(is_sign) {
                    // `terraform fmt` without a file means all of them.
                    deeds.extend((is_word && files.len() < 2).then(here));
                    deeds.extend(files.into_iter().map(Deed::Write));
                }
            }
            Shape::Archives => {
                let moves = all.iter().any(|arg| is_any_flag(arg, "m") || arg.literal() == Some("--move"));
                let mut files = files.into_iter();
                deeds.extend(files.next().map(Deed::Write));
                deeds.extend(files.map(|file| if moves { Deed::Remove(file) } else { Deed::Read(file) }));
            }
            Shape::Unpacks => {
                let mut files = files.into_iter();
                let is_told_where = deeds.iter().any(|deed| matches!(deed, Deed::Write(_)));
                // Otherwise it asks whoever is there, and leaves what is there.
                let overwrites = all.iter().any(|arg| is_any_flag(arg, "o"));
                deeds.extend(files.next().map(Deed::Read));
                if !is_told_where && overwrites && files.len() == 0 {
                    deeds.push(here());
                }
                deeds.extend(files.map(Deed::Write));
            }
            Shape::Nothing => {}
            Shape::Copies | Shape::Moves => {
                let target = target.or_else(|| (files.len() > 1).then(|| files.pop()).flatten());
                let makes_names = self.makes_names(all);
                // With it a copy lies below the target by its whole path.
                let keeps_path = all.iter().any(|arg| arg.literal() == Some("--parents"));
                for file in &files {
                    match (&target, file) {
                        _ if !keeps_path => {}
                        (Some(Files::Named(target)), Files::Named(file)) => {
                            deeds.push(Deed::Write(Files::Named(format!("{target}/{file}"))));
                        }
                        _ => known = false,
                    }
                    deeds.push(match self.shape {
                        Shape::Moves => Deed::Remove(file.clone()),
                        _ => Deed::Read(file.clone()),
                    });
                    match &target {
                        Some(target) => deeds.push(Deed::WriteInto(target.clone(), file.clone())),
                        // A link without a name of its own lies here.
                        None if self.names.contains(&"ln") => {
                            deeds.push(Deed::WriteInto(Files::Named(".".to_owned()), file.clone()));
                        }
                        None => {}
                    }
                }
                known &= target.is_some();
                deeds.extend(target.map(Deed::Write));
                // By a second name everybody may change what is in a file.
                deeds.extend(files.into_iter().filter(|_| makes_names).map(Deed::Write));
            }
        }
        let is_plain_edit = self.plain_edit && known && !deeds.is_empty();
        Deeds { deeds, is_plain_edit }
    }
}

/// What a search takes away, writes, or hands to other programs.
fn of_find(args: &[Arg]) -> Deeds {
    let mut deeds = Vec::new();
    let starts = search_starts(args);
    let files = |args: &[Arg]| args.iter().filter_map(Arg::probable_files).collect::<Vec<_>>();
    if let Some(names) = find::names_deleted(args) {
        let taken = files(&starts).into_iter().chain(names.iter().filter_map(|name| name.probable_files()));
        deeds.extend(taken.map(Deed::Remove));
    }
    for (at, arg) in args.iter().enumerate() {
        match arg.literal() {
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                deeds.extend(args.get(at + 1).and_then(Arg::probable_files).map(Deed::Write));
            }
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let command = args[at + 1..].iter();
                let command = command.take_while(|arg| !matches!(arg.literal(), Some(";" | "+")));
                let found = command.filter(|arg| arg.literal() != Some("{}")).cloned();
                let found: Vec<Arg> = found.chain(starts.iter().cloned()).collect();
                deeds.extend(self::deeds(&found).deeds);
            }
            _ => {}
        }
    }
    Deeds { deeds, is_plain_edit: false }
}

/// What a search hands to other programs.
fn of_fd(args: &[Arg]) -> Deeds {
    let mut deeds = Vec::new();
    let is_run = |arg: &Arg| matches!(arg.literal(), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    if let Some(at) = args.iter().position(is_run) {
        // The first word is what names look like.
        let operands = args[..at].iter().filter(|arg| !arg.prefix().starts_with('-'));
        let mut starts: Vec<Arg> = operands.skip(1).cloned().collect();
        starts.push(Arg::certain("."));
        let command = args[at + 1..].iter().take_while(|arg| arg.literal() != Some(";"));
        let command =
            command.filter(|arg| !matches!(arg.literal(), Some("{}" | "{/}" | "{//}" | "{.}" | "{/.}")));
        let found: Vec<Arg> = command.cloned().chain(starts).collect();
        deeds.extend(self::deeds(&found).deeds);
        if deeds.is_empty() {
            deeds.push(Deed::Read(Files::Named(".".to_owned())));
        }
    }
    Deeds { deeds, is_plain_edit: false }
}

/// Sub-commands that write sources anew or make new ones.
fn of_cargo(args: &[Arg]) -> Deeds {
    let words: Vec<&str> =
        args.iter().filter_map(Arg::literal).filter(|word| !word.starts_with('+')).collect();
    let has = |word: &str| words.contains(&word);
    let here = || vec![Deed::Write(Files::Named(".".to_owned()))];
    let deeds = match words.first() {
        Some(&"fmt") if !has("--check") => here(),
        Some(&"fix") => here(),
        Some(&"clippy") if has("--fix") => here(),
        Some(&("new" | "init" | "vendor")) => args
            .iter()
            .rev()
            .find(|arg| !arg.prefix().starts_with('-'))
            .and_then(Arg::probable_files)
            .map(Deed::Write)
            .into_iter()
            .collect(),
        _ => Vec::new(),
    };
    Deeds { deeds, is_plain_edit: false }
}

/// `aws s3 cp from to`: the last word is written, if it is a file here, and the ones before it are read.
fn of_cloud(args: &[Arg]) -> Deeds {
    let is_copy = |arg: &Arg| {
        matches!(arg.literal(), Some("cp" | "mv" | "sync" | "rsync" | "copy" | "move" | "copyto"))
    };
    let Some(at) = args.iter().position(is_copy) else { return Deeds::default() };
    let operands: Vec<&Arg> = args[at + 1..].iter().filter(|arg| !arg.prefix().starts_with('-')).collect();
    let is_file = |arg: &&&Arg| !arg.prefix().contains(':');
    let files = |args: &[&Arg]| -> Vec<Files> {
        args.iter().filter(is_file).filter_map(|arg| arg.probable_files()).collect()
    };
    let Some((to, from)) = operands.split_last() else { return Deeds::default() };
    let deeds = files(from).into_iter().map(Deed::Read).chain(files(&[to]).into_iter().map(Deed::Write));
    Deeds { deeds: deeds.collect(), is_plain_edit: false }
}

/// Programs that look through everything below, as `grep -r` does.
fn of_search(args: &[Arg]) -> Deeds {
    let operands: Vec<&Arg> = args.iter().filter(|arg| !arg.prefix().starts_with('-')).collect();
    let mut deeds: Vec<Deed> =
        operands.iter().skip(1).filter_map(|arg| arg.probable_files()).map(Deed::Read).collect();
    if operands.len() < 2 {
        deeds.push(Deed::Read(Files::Named(".".to_owned())));
    }
    Deeds { deeds, is_plain_edit: false }
}

/// `docker cp from to`.
fn of_containers(args: &[Arg]) -> Deeds {
    let operands: Vec<&Arg> = args.iter().filter(|arg| !arg.prefix().starts_with('-')).collect();
    let deeds = match operands.as_slice() {
        [copy, from, to] if copy.literal() == Some("cp") => {
            let is_inside = |arg: &Arg| arg.prefix().contains(':');
            let read = from.probable_files().filter(|_| !is_inside(from)).map(Deed::Read);
            let written = to.probable_files().filter(|_| !is_inside(to)).map(Deed::Write);
            read.into_iter().chain(written).collect()
        }
        _ => Vec::new(),
    };
    Deeds { deeds, is_plain_edit: false }
}

/// The files it asks about: nothing is shown of them but whether they are there.
fn of_test(args: &[Arg]) -> Deeds {
    let says = |at: Option<usize>, is_it: fn(&str) -> bool| {
        at.and_then(|at| args.get(at)).and_then(Arg::literal).is_some_and(is_it)
    };
    let is_file = |at: usize| {
        let before = at.checked_sub(1);
        says(before, asks_about_file) || says(before, compares_files) || says(Some(at + 1), compares_files)
    };
    let files = args.iter().enumerate().filter(|(at, _)| is_file(*at));
    let deeds = files.filter_map(|(_, arg)| arg.probable_files()).map(Deed::Read).collect();
    Deeds { deeds, is_plain_edit: false }
}

fn asks_about_file(operator: &str) -> bool {
    matches!(operator.as_bytes(), [b'-', letter] if b"abcdefghkprsuwxGLNOS".contains(letter))
}

fn compares_files(operator: &str) -> bool {
    matches!(operator, "-ef" | "-nt" | "-ot")
}

/// `sed -i` changes its files.
fn of_sed(args: &[Arg]) -> Deeds {
    if let Some(call) = sed::call(args) {
        let files: Option<Vec<Files>> = call.files.iter().map(|file| file.files()).collect();
        let prints = call.scripts.iter().all(|script| sed::only_prints(script));
        let is_known = files.is_some() && call.dashless().is_some();
        let is_plain_edit = is_known && prints && call.in_place && !call.files.is_empty();
        let deed = |files| if call.in_place { Deed::Write(files) } else { Deed::Read(files) };
        return Deeds { deeds: files.unwrap_or_default().into_iter().map(deed).collect(), is_plain_edit };
    }
    // Whatever it does, it may do it to any of its words.
    let in_place = args.iter().any(|arg| {
        let text = arg.prefix();
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        text.starts_with("--") && may_be_option(option, "--in-place")
            || (text.starts_with('-') && !text.starts_with("--") && text.contains('i'))
    });
    let files = args.iter().filter(|arg| !arg.prefix().starts_with('-')).filter_map(Arg::probable_files);
    let deed = |files| if in_place { Deed::Write(files) } else { Deed::Read(files) };
    Deeds { deeds: files.map(deed).collect(), is_plain_edit: false }
}

fn of_dd(args: &[Arg]) -> Deeds {
    let deed = |arg: &Arg| {
        let (name, value) = arg.literal()?.split_once('=')?;
        match name {
            "if" => Some(Deed::Read(Files::Named(value.to_owned()))),
            "of" => Some(Deed::Write(Files::Named(value.to_owned()))),
            _ => None,
        }
    };
    Deeds { deeds: args.iter().filter_map(deed).collect(), is_plain_edit: false }
}
