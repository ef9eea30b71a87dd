//! What goes into archives, and comes out of them.

use super::super::arg::{Arg, Files};
use super::{Deed, Deeds, here, is_any_flag, may_be_option};

/// The letters of `tar` behind which a file or a directory is named.
const NAMING: [char; 4] = ['f', 'C', 'X', 'T'];

/// `tar xf archive -C directory`.
pub(super) fn of_tar(args: &[Arg]) -> Deeds {
    let mut deeds = Vec::new();
    let mut operands: Vec<Files> = Vec::new();
    let (mut makes, mut unpacks, mut to_stdout) = (false, false, false);
    let mut archives: Vec<Files> = Vec::new();
    let mut rest = args.iter().enumerate();
    while let Some((at, arg)) = rest.next() {
        let text = arg.prefix();
        if let Some(long) = text.strip_prefix("--") {
            let (name, glued) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let is_any = |options: &[&str]| options.iter().any(|option| may_be_option(name, option));
            makes |= is_any(&["create", "append", "update"]);
            unpacks |= is_any(&["extract", "get"]);
            to_stdout |= long == "to-stdout";
            let value = glued.filter(|_| arg.literal().is_some()).map(|value| Files::Named(value.to_owned()));
            if is_any(&["directory", "one-top-level"]) {
                operands.extend(value);
            } else if is_any(&["file"]) {
                archives.extend(value);
            }
            continue;
        }
        // The first word needs no dash.
        let Some(letters) = text.strip_prefix('-').or_else(|| (at == 0).then_some(text)) else {
            operands.extend(arg.probable_files());
            continue;
        };
        let dashed = text.starts_with('-');
        // Behind a dash the rest of the word is the name.
        let naming = match dashed {
            true => letters.find(NAMING),
            false => letters.ends_with(NAMING).then(|| letters.len() - 1),
        };
        let (letters, glued) = match naming {
            Some(at) => (&letters[..=at], &letters[at + 1..]),
            None => (letters, ""),
        };
        makes |= letters.contains(['c', 'r', 'u']);
        unpacks |= letters.contains('x');
        to_stdout |= letters.contains('O');
        if naming.is_some() {
            let value = match glued {
                "" => rest.next().and_then(|(_, value)| value.probable_files()),
                glued => arg.literal().map(|_| Files::Named(glued.to_owned())),
            };
            match letters.chars().last() {
                Some('C') => operands.extend(value),
                Some('f') => archives.extend(value),
                _ => deeds.extend(value.map(Deed::Read)),
            }
        }
    }
    deeds.extend(archives.into_iter().map(if makes { Deed::Write } else { Deed::Read }));
    if unpacks && !makes && operands.is_empty() && !to_stdout {
        deeds.push(here());
    }
    deeds.extend(operands.into_iter().map(if unpacks && !makes { Deed::Write } else { Deed::Read }));
    Deeds { deeds, is_plain_edit: false }
}

/// `7z a archive files`, `7z x archive -odirectory`.
pub(super) fn of_archiver(args: &[Arg]) -> Deeds {
    let operands: Vec<&Arg> = args.iter().filter(|arg| !arg.prefix().starts_with('-')).collect();
    let file = |at: usize| operands.get(at).and_then(|arg| arg.probable_files());
    let packed = operands.iter().skip(2).filter_map(|arg| arg.probable_files());
    let deeds = match operands.first().and_then(|arg| arg.literal()) {
        Some("a" | "u") => file(1).map(Deed::Write).into_iter().chain(packed.map(Deed::Read)).collect(),
        Some("x" | "e") => {
            let has = |beginning: &str| args.iter().any(|arg| arg.prefix().starts_with(beginning));
            let overwrites = has("-y") || has("-aoa");
            file(1).map(Deed::Read).into_iter().chain((overwrites && !has("-o")).then(here)).collect()
        }
        _ => Vec::new(),
    };
    Deeds { deeds, is_plain_edit: false }
}

/// `cpio -i`: what it unpacks goes to the current directory, or to the one behind `-D`. With `-p` it copies to its last word.
pub(super) fn of_cpio(args: &[Arg]) -> Deeds {
    /// Letters behind which a value stands.
    const NAMING: [char; 9] = ['C', 'D', 'E', 'F', 'H', 'I', 'M', 'O', 'R'];
    let (mut unpacks, mut lists, mut copies) = (false, false, false);
    let mut told = None;
    let mut operands = Vec::new();
    let mut rest = args.iter();
    let glued = |arg: &Arg, value: &str| arg.literal().map(|_| Files::Named(value.to_owned()));
    while let Some(arg) = rest.next() {
        let text = arg.prefix();
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            unpacks |= may_be_option(name, "extract");
            copies |= may_be_option(name, "pass-through");
            if may_be_option(name, "directory") {
                told = match value {
                    Some(value) => glued(arg, value),
                    None => rest.next().and_then(Arg::probable_files),
                };
            }
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let naming = letters.find(NAMING);
            let (letters, value) = letters.split_at(naming.map_or(letters.len(), |at| at + 1));
            unpacks |= letters.contains('i');
            copies |= letters.contains('p');
            lists |= letters.contains('t');
            if naming.is_some() {
                let value = match value {
                    "" => rest.next().and_then(Arg::probable_files),
                    value => glued(arg, value),
                };
                told = value.filter(|_| letters.ends_with('D')).or(told);
            }
        } else {
            operands.push(arg);
        }
    }
    let copied_to = operands.last().filter(|_| copies).and_then(|arg| arg.probable_files());
    let unpacked_to = (unpacks && !lists).then(|| told.map_or_else(here, Deed::Write));
    Deeds { deeds: copied_to.map(Deed::Write).into_iter().chain(unpacked_to).collect(), is_plain_edit: false }
}

/// `pax -r`: what it unpacks goes to the current directory.
pub(super) fn of_pax(args: &[Arg]) -> Deeds {
    let unpacks = args.iter().any(|arg| is_any_flag(arg, "r") && !is_any_flag(arg, "w"));
    Deeds { deeds: unpacks.then(here).into_iter().collect(), is_plain_edit: false }
}
