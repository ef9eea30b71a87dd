//! Programs whose words follow no table: each has a form of its own in which it only looks.

use super::arg::{Arg, Files};
use super::look::{Look, is_value, understand};
use super::programs::{Operands, PLAIN, Program, program};

/// `bat`, told that it pages nothing.
pub(super) fn unpaged(name: &str, args: &[Arg]) -> Option<Look> {
    let rest: Vec<Arg> = args.iter().filter(|arg| arg.literal() != Some("--paging=never")).cloned().collect();
    understand(program(name)?, &rest)
}

/// Which processes there are; not what is in their environment.
pub(super) fn ps(args: &[Arg]) -> Option<Look> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.literal()?;
        match text {
            "-o" | "-O" | "-eo" | "-Ao" | "-axo" | "axo" | "axwwo" | "auxo" | "o" | "-efo" | "-wwo"
            | "-axwwo" => {
                shows_no_environment(args.next()?.literal()?).then_some(())?;
            }
            "-p" | "-u" | "-U" | "-C" | "-g" | "-t" | "--ppid" | "--pid" | "--user" | "--sort" => {
                names_one(args.next()?).then_some(())?;
            }
            text if text.starts_with("--sort=") || text == "--no-headers" || text == "--forest" => {}
            text if text.starts_with("--") => return None,
            text if text.starts_with("-o") => shows_no_environment(text).then_some(())?,
            text => {
                let letters = text.strip_prefix('-');
                let allowed = if letters.is_some() { "AaefFlyjHwLMT" } else { "auxfwlhjsT" };
                let letters = letters.unwrap_or(text);
                letters.chars().all(|c| allowed.contains(c) || c.is_ascii_digit()).then_some(())?;
            }
        }
    }
    Some(Look::nothing())
}

/// One word, or the number of a process.
fn names_one(arg: &Arg) -> bool {
    is_value(arg) || arg.is_count()
}

fn shows_no_environment(columns: &str) -> bool {
    !columns.to_ascii_lowercase().contains("env")
}

/// Names that everybody on the machine may know; not passwords, and nobody is asked over the network.
pub(super) fn database(args: &[Arg]) -> Option<Look> {
    let (database, keys) = args.split_first()?;
    let is_open = matches!(
        database.literal()?,
        "passwd" | "group" | "services" | "protocols" | "rpc" | "ethers" | "aliases" | "initgroups"
    );
    let is_key = |key: &Arg| key.literal().is_some_and(|text| !text.starts_with('-'));
    (is_open && keys.iter().all(is_key)).then(Look::nothing)
}

/// Values of the kernel, not set.
pub(super) fn kernel(args: &[Arg]) -> Option<Look> {
    let is_asked = |arg: &Arg| {
        arg.literal().is_some_and(|text| {
            matches!(text, "-a" | "-n" | "-e" | "-N" | "--all" | "--values" | "--names")
                || !text.starts_with('-') && !text.contains('=')
        })
    };
    (!args.is_empty() && args.iter().all(is_asked)).then(Look::nothing)
}

/// What is in files of structured text. Its programs can read and load other files, and the environment.
pub(super) fn yq(args: &[Arg]) -> Option<Look> {
    let mut words = Vec::new();
    for arg in args {
        let text = arg.literal()?;
        match text {
            "e" | "eval" if words.is_empty() => {}
            "-r" | "-P" | "-j" | "-C" | "-M" | "-N" | "-e" | "--prettyPrint" | "--no-colors" => {}
            text if text.starts_with("-o=") || text.starts_with("-p=") => {}
            text if text.starts_with('-') && text != "-" => return None,
            text => words.push(text),
        }
    }
    let (program, files) = words.split_first()?;
    let reaches = ["load", "env", "eval", "system", "input", "include", "import", "split_doc"];
    (!reaches.iter().any(|word| program.contains(word))).then_some(())?;
    Some(Look::at(
        files.iter().filter(|file| **file != "-").map(|file| Files::Named((*file).to_owned())).collect(),
    ))
}

/// The addresses and routes of the machine, as they are.
pub(super) fn addresses(args: &[Arg]) -> Option<Look> {
    let words: Option<Vec<&str>> = args.iter().map(Arg::literal).collect();
    let words = words?;
    let shown = words.iter().position(|word| !word.starts_with('-'))?;
    let (options, words) = words.split_at(shown);
    let is_option =
        |option: &&str| matches!(*option, "-4" | "-6" | "-br" | "-brief" | "-c" | "-s" | "-o" | "-j" | "-p");
    let is_shown = match words {
        [object] | [object, "show" | "list" | "ls"] => {
            matches!(
                *object,
                "a" | "addr" | "address" | "l" | "link" | "r" | "route" | "n" | "neigh" | "rule"
            )
        }
        [object, "show", ..] => matches!(*object, "a" | "addr" | "address" | "link") && words.len() <= 4,
        _ => false,
    };
    (is_shown && options.iter().all(is_option)).then(Look::nothing)
}

/// What is in compressed files, shown or listed.
pub(super) fn compressed(args: &[Arg]) -> Option<Look> {
    let (options, files): (Vec<&Arg>, Vec<&Arg>) = args.iter().partition(|arg| arg.prefix().starts_with('-'));
    let shows =
        |text: &str| matches!(text, "-l" | "-lv" | "-c" | "-dc" | "-cd" | "--list" | "--stdout" | "-t");
    let only_shows = options.iter().all(|option| option.literal().is_some_and(shows)) && !options.is_empty();
    let literal = files.iter().all(|file| file.literal().is_some());
    let files: Option<Vec<Files>> = files.iter().map(|file| file.files()).collect();
    (only_shows && literal).then(|| files.map(Look::at)).flatten()
}

/// What is in an archive: listed, or shown. `host:file` would be fetched.
pub(super) fn tar(args: &[Arg]) -> Option<Look> {
    const LISTS: Program = Program {
        short: &["tvzjJa f@"],
        long: &[
            "list verbose file@ gzip gunzip bzip2 xz zstd auto-compress wildcards no-wildcards wildcards-match-slash \
                 no-wildcards-match-slash anchored no-anchored ignore-case no-ignore-case full-time numeric-owner \
                 exclude: occurrence? utc totals",
        ],
        operands: Operands::Words,
        ..PLAIN
    };
    const SHOWS: Program = Program { short: &["xOvzjJa f@"], ..LISTS };
    let (first, rest) = args.split_first()?;
    // Without a dash the letters come first, and what they take behind all of them.
    let first = match first.literal()? {
        letters if letters.starts_with('-') => first.clone(),
        letters => Arg::certain(&format!("-{letters}")),
    };
    // Where it takes files out, the same word must say that they are only shown: what looks like an option behind it may be
    // the name of an archive.
    let letters = first.prefix().strip_prefix('-').filter(|word| !word.starts_with('-')).unwrap_or_default();
    let letters = letters.split('f').next().unwrap_or_default();
    let program = if letters.contains('x') && letters.contains('O') { &SHOWS } else { &LISTS };
    let args: Vec<Arg> = std::iter::once(first).chain(rest.iter().cloned()).collect();
    let look = understand(program, &args)?;
    let [Files::Named(archive)] = look.files.as_slice() else { return None };
    (!archive.contains(':')).then_some(look)
}

/// What is in an archive, listed, tried or shown.
pub(super) fn unzip(args: &[Arg]) -> Option<Look> {
    match args {
        [list, file] if matches!(list.literal(), Some("-l" | "-t" | "-v" | "-Z1")) => {
            Some(Look::at(vec![file.files()?]))
        }
        // What it shows of the archive is named by patterns of its own.
        [show, file, members @ ..] if show.literal() == Some("-p") => {
            let is_name = |arg: &Arg| arg.literal().is_some_and(|text| !text.starts_with('-'));
            (is_name(file) && members.iter().all(is_name))
                .then(|| file.files().map(|file| Look::at(vec![file])))?
        }
        _ => None,
    }
}

/// Where there is no terminal a pager shows a file and ends. A word that begins with `+` is a command for it.
pub(super) fn pager(args: &[Arg]) -> Option<Look> {
    const PAGER: Program = Program { short: &["NSRFXinEmMsrgGQJ"], long: &["LINE-NUMBERS"], ..PLAIN };
    let is_command = |arg: &Arg| match arg.literal() {
        Some(text) => text.starts_with('+'),
        None => arg.prefix().starts_with('+') || arg.may_be_option(),
    };
    (!args.iter().any(is_command)).then(|| understand(&PAGER, args)).flatten()
}

/// Which processes have files and sockets open. `-D` writes, `-r` never ends, `+D` looks through directories.
pub(super) fn open_files(args: &[Arg]) -> Option<Look> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.literal()?;
        let Some(cluster) = text.strip_prefix('-') else {
            (!text.starts_with('+')).then_some(())?;
            continue;
        };
        // Letters that stand alone, then perhaps one that takes what is behind it.
        let value = cluster.trim_start_matches(|c| "anPltURwVbhv".contains(c));
        match value.strip_prefix(['i', 's', 'p', 'u', 'c', 'd']) {
            None => (value.is_empty() && !cluster.is_empty()).then_some(())?,
            // An address or a state is a word of its own, or missing.
            Some("") if !value.starts_with(['i', 's']) => names_one(args.next()?).then_some(())?,
            Some(_) => {}
        }
    }
    Some(Look::nothing())
}
