//! `git`: global options before the sub-command, and sub-commands that run something.

use crate::script::Command;
use crate::word::Word;

use super::options::is_one_word;
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

/// Beginnings of settings that run nothing.
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
            "-c" => further.unknown |= !after.first().and_then(Word::literal).is_some_and(is_harmless),
            "--config-env" | "--exec-path" => further.unknown = true,
            _ if option.starts_with("--config-env=") || option.starts_with("--exec-path=") => {
                further.unknown = true;
            }
            // `-cname=value` in one word.
            _ if option.starts_with("-c") => further.unknown |= !is_harmless(&option[2..]),
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

fn is_harmless(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    HARMLESS_SETTINGS.iter().any(|known| setting.starts_with(known))
}

/// Sub-commands that run commands of their own.
fn subcommand(command: &Command, words: &[Word]) -> Further {
    let Some((name, arguments)) = words.split_first() else { return Further::default() };
    let literal = |at: usize| arguments.get(at).and_then(Word::literal);
    match name.literal() {
        Some("bisect") if literal(0) == Some("run") => {
            let mut further = Further::default();
            further.commands.push(inner(command, Vec::new(), &arguments[1..]));
            further
        }
        Some("submodule") => {
            let Some(at) = arguments.iter().position(|word| word.literal() == Some("foreach")) else {
                return Further::default();
            };
            let rest = &arguments[at + 1..];
            let options = rest.iter().take_while(|word| word.literal_prefix().starts_with('-')).count();
            shell::joined(command, &rest[options..])
        }
        Some("rebase") => shell::option_texts(command, arguments, &["-x", "--exec"]),
        Some("difftool" | "mergetool") => shell::option_texts(command, arguments, &["-x", "--extcmd"]),
        Some("filter-branch") => Further::unknown(),
        _ => Further::default(),
    }
}
