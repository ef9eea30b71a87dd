//! `git`: global options before the sub-command, and sub-commands that run something.

use crate::script::Command;
use crate::word::Word;

use super::options::is_one_word;
use super::riders::{ridden, values};
use super::{Further, inner, shell};

/// Global options that take the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
    "--exec-path",
];

/// Settings that run nothing: families that end with a dot, names that end with a sign, and values that are all there is.
const HARMLESS_SETTINGS: &[&str] = &[
    "advice.",
    "branch.",
    "color.",
    "column.",
    "commit.gpgsign=",
    "core.abbrev=",
    "core.autocrlf=",
    "core.eol=",
    "core.filemode=",
    "core.ignorecase=",
    "core.longpaths=",
    "core.quotepath=",
    "core.safecrlf=",
    "core.pager=cat",
    "core.fsmonitor=false",
    "core.hookspath=/dev/null",
    "diff.algorithm=",
    "diff.renames=",
    "diff.renamelimit=",
    "fetch.prune=",
    "grep.",
    "http.postbuffer=",
    "init.defaultbranch=",
    "log.",
    "merge.conflictstyle=",
    "protocol.version=",
    "pull.",
    "push.default=",
    "rebase.autostash=",
    "safe.directory=",
    "status.",
    "tag.gpgsign=",
    "user.email=",
    "user.name=",
];

pub(super) fn git(command: &Command, arguments: &[Word]) -> Further {
    let mut further = Further::default();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(option) = word.literal() else {
            if word.literal_prefix().starts_with('-') {
                further.unknown |= !word.literal_prefix().starts_with("--git-dir=")
                    && !word.literal_prefix().starts_with("--work-tree=");
                rest = after;
                continue;
            }
            return Further::unknown();
        };
        if !option.starts_with('-') {
            break;
        }
        rest = after;
        let valued = VALUED.contains(&option) && (option != "--exec-path" || !after.is_empty());
        match option {
            "-c" => further.add(after.first().map_or_else(Further::unknown, |word| setting(command, word))),
            "--config-env" => further.add(Further { hidden: true, ..Further::unknown() }),
            _ if option.starts_with("--config-env=") || option.starts_with("--exec-path=") => {
                further.add(Further { hidden: true, ..Further::unknown() });
            }
            // `-cname=value` in one word.
            _ if option.starts_with("-c") => further.add(setting(command, &Word::of_literal(&option[2..]))),
            _ => {}
        }
        // `--exec-path` alone prints the path and ends.
        if valued && option != "--exec-path" {
            further.unknown |= !after.first().is_none_or(is_one_word);
            rest = after.get(1..).unwrap_or_default();
        }
    }
    if rest.len() < arguments.len() && !rest.is_empty() {
        let mut words = vec![command.words[0].clone()];
        words.extend_from_slice(rest);
        further.commands.push(inner(command, Vec::new(), &words));
        // What the sub-command runs is found when this one is looked at.
        return further;
    }
    further.add(subcommand(command, rest));
    further
}

/// `name=value`: what it makes git run, if it is not known to run nothing.
fn setting(command: &Command, word: &Word) -> Further {
    match word.literal() {
        Some(text) if is_harmless(text) => Further::default(),
        Some(text) => {
            let value = text.split_once('=').map_or("", |(_, value)| value);
            let mut further = Further { hidden: true, ..Further::unknown() };
            further.add(ridden(command, &Word::of_literal(value)));
            further
        }
        None => Further { hidden: true, ..Further::unknown() },
    }
}

fn is_harmless(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    // `core.pager=cat; x` is another value than `cat`.
    HARMLESS_SETTINGS.iter().any(|known| match known.ends_with(['.', '=']) {
        true => setting.starts_with(known),
        false => setting == *known,
    })
}

/// Sub-commands that run commands of their own.
fn subcommand(command: &Command, words: &[Word]) -> Further {
    let Some((name, arguments)) = words.split_first() else { return Further::default() };
    let literal = |at: usize| arguments.get(at).and_then(Word::literal);
    let transport = transported(command, arguments);
    let mut further = match name.literal() {
        // `git x/y` runs the file `git-x/y`.
        Some(path) if path.contains('/') => Further { hidden: true, ..Further::unknown() },
        Some("config") => configured(command, arguments),
        Some("clone") => {
            let mut further = programs(command, arguments, &["-u", "--upload-pack", "--template"]);
            for word in values(arguments, &["-c", "--config"]) {
                further.add(setting(command, &word));
            }
            further
        }
        Some("grep") => programs(command, arguments, &["-O", "--open-files-in-pager"]),
        Some("fetch" | "pull" | "push" | "ls-remote" | "archive" | "send-pack" | "fetch-pack" | "remote") => {
            programs(command, arguments, &["--upload-pack", "--receive-pack", "--exec"])
        }
        Some("bisect") if literal(0) == Some("run") => {
            let mut further = Further { hidden: true, ..Further::default() };
            further.commands.push(inner(command, Vec::new(), &arguments[1..]));
            further
        }
        // What stands behind its options are words of git's own, run in directories that a setting names.
        Some("for-each-repo") => {
            let mut words = vec![command.words[0].clone()];
            words.extend_from_slice(behind_settings(arguments));
            let mut further = Further { hidden: true, ..Further::default() };
            further.commands.push(inner(command, Vec::new(), &words));
            further
        }
        Some("submodule") => match arguments.iter().position(|word| word.literal() == Some("foreach")) {
            Some(at) => {
                let rest = &arguments[at + 1..];
                let options = rest.iter().take_while(|word| word.literal_prefix().starts_with('-')).count();
                Further { hidden: true, ..shell::joined(command, &rest[options..]) }
            }
            None => Further::default(),
        },
        Some("rebase") => {
            let mut further = programs(command, arguments, &["--exec"]);
            further.add(behind_an_x(command, arguments));
            further
        }
        // They run what they are told in their words or on their input.
        Some("remote-ext" | "remote-fd" | "merge-index") => Further { hidden: true, ..Further::unknown() },
        Some("send-email") => {
            let options = &["--smtp-server", "--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd"];
            programs(command, arguments, options)
        }
        Some("init") => programs(command, arguments, &["--template"]),
        Some("instaweb") => programs(command, arguments, &["-d", "--httpd", "-b", "--browser"]),
        Some("daemon") => programs(command, arguments, &["--access-hook"]),
        Some("difftool" | "mergetool") => {
            let mut further = programs(command, arguments, &["--extcmd"]);
            further.add(behind_an_x(command, arguments));
            // Git reads a file of that name beside its own, and runs it.
            if tools(arguments).any(|tool| tool.contains('/')) {
                further.add(Further { hidden: true, ..Further::unknown() });
            }
            further
        }
        Some("svn") => programs(command, arguments, &["--authors-prog"]),
        Some("filter-branch") => {
            let mut further = Further { hidden: true, ..Further::unknown() };
            for word in arguments.windows(2).filter(|pair| pair[0].literal_prefix().ends_with("-filter")) {
                further.add(ridden(command, &word[1]));
            }
            further
        }
        _ => Further::default(),
    };
    further.add(transport);
    further
}

/// What is said in place of the tools that `difftool` and `mergetool` know: `-t x`, `-yt../x`, `--tool=x`.
fn tools(arguments: &[Word]) -> impl Iterator<Item = &str> {
    arguments.iter().enumerate().filter_map(|(at, word)| {
        let text = word.literal().filter(|text| text.starts_with('-'))?;
        let next = || arguments.get(at + 1).and_then(Word::literal);
        if text.starts_with("--") {
            let (option, value) =
                text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
            return (option.len() > 3 && "--tool".starts_with(option)).then(|| value.or_else(next)).flatten();
        }
        let (_, glued) = text.split_once('t')?;
        if glued.is_empty() { next() } else { Some(glued) }
    })
}

/// What stands behind the options of `for-each-repo`.
fn behind_settings(mut words: &[Word]) -> &[Word] {
    while let [option, rest @ ..] = words
        && option.literal_prefix().starts_with('-')
    {
        words = match option.literal() {
            Some("--") => return rest,
            Some("--config") => rest.get(1..).unwrap_or_default(),
            _ => rest,
        };
    }
    words
}

/// Options of a sub-command that name a program.
fn programs(command: &Command, arguments: &[Word], options: &[&str]) -> Further {
    let mut further = Further::default();
    for word in values(arguments, options) {
        further.add(ridden(command, &word));
    }
    further
}

/// Short options that stand together: what follows an `x` among them is run, whether it is the rest of the word or the next one
/// (`-yxid`, `-ix command`).
fn behind_an_x(command: &Command, arguments: &[Word]) -> Further {
    let mut further = Further::default();
    for (at, word) in arguments.iter().enumerate() {
        let Some(letters) = word.literal().and_then(|text| text.strip_prefix('-')) else { continue };
        match letters.split_once('x') {
            Some((before, _)) if before.starts_with('-') => {}
            Some((_, "")) => {
                if let Some(next) = arguments.get(at + 1) {
                    further.add(ridden(command, next));
                }
            }
            Some((_, rest)) => further.add(ridden(command, &Word::of_literal(rest))),
            None => {}
        }
    }
    further
}

/// `ext::command` as the address of a repository is run, also where it is the value of an option.
fn transported(command: &Command, arguments: &[Word]) -> Further {
    let mut further = Further::default();
    for word in arguments {
        let address = |text: &'_ str| match text.strip_prefix('-').and_then(|option| option.split_once('=')) {
            Some((_, value)) => value.strip_prefix("ext::").map(str::to_owned),
            None => text.strip_prefix("ext::").map(str::to_owned),
        };
        if let Some(text) = word.literal().and_then(address) {
            // A blank that belongs to a word is written behind a `%`.
            further.add(ridden(command, &Word::of_literal(text.replace("% ", " "))));
            further.add(Further { hidden: true, ..Further::unknown() });
        }
    }
    further
}

/// `git config name value`: a command that will run when git does.
fn configured(command: &Command, arguments: &[Word]) -> Further {
    let operands: Vec<&Word> = arguments
        .iter()
        .filter(|word| !word.literal_prefix().starts_with('-') && word.literal() != Some("set"))
        .collect();
    match operands.as_slice() {
        [name, value, ..] => match (name.literal(), value.literal()) {
            (Some(name), Some(value)) => setting(command, &Word::of_literal(format!("{name}={value}"))),
            _ => Further { hidden: true, ..Further::unknown() },
        },
        _ => Further::default(),
    }
}
