//! The sub-commands of git that only look. What git itself keeps can hold any file of the repository.

use pelton_shell::Part;

use super::arg::{Arg, Files};
use super::look::{Look, understand};
use super::programs::{DIGITS, Operands, PLAIN, Program, Reach};
use super::{Step, names_of};

/// What it looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let args: Vec<Arg> = args.iter().map(with_revisions).collect();
    let (works_in, args) = without_globals(&args)?;
    let words: Vec<&str> = args.iter().map_while(Arg::literal).take(2).collect();
    let (name, args) = match words.as_slice() {
        [
            group @ ("stash" | "worktree" | "reflog" | "remote" | "submodule" | "notes" | "bisect"
            | "sparse-checkout"),
            command,
            ..,
        ] if !command.starts_with('-') => (format!("{group} {command}"), &args[2..]),
        ["archive", "--list" | "-l"] if args.len() == 2 => ("archive --list".to_owned(), &args[2..]),
        // A patch that is told of, and not applied.
        ["apply", told @ ("--stat" | "--numstat" | "--summary" | "--check"), ..] => {
            (format!("apply {told}"), &args[2..])
        }
        // Their listing.
        [group @ ("remote" | "submodule")] if args.len() == 1 => ((*group).to_owned(), &args[1..]),
        [command, ..] => ((*command).to_owned(), &args[1..]),
        [] => return None,
    };
    if name == "config" {
        return config(args).then(|| Look { works_in, ..Look::nothing() });
    }
    let program = GIT.iter().find(|program| program.names.contains(&name.as_str()))?;
    let mut look = understand(program, args)?;
    // `HEAD:src/x` names a file too.
    let in_revisions: Vec<Files> = look
        .files
        .iter()
        .filter_map(|file| match file {
            Files::Named(word) => word.rsplit_once(':'),
            _ => None,
        })
        .map(|(_, path)| Files::Named(path.trim_start_matches('/').to_owned()))
        .collect();
    look.files.extend(in_revisions);
    // What it names is seen from there; what a pattern becomes is seen from here.
    for dir in &works_in {
        look.files = look.files.iter().map(|file| below(dir, file)).collect::<Option<_>>()?;
    }
    look.works_in = works_in;
    Some(look)
}

/// Files that words of git name as they are seen from where the repository begins: `HEAD:path`, `:/path`, `:(top)path`.
pub(super) fn may_name_from_top(args: &[Arg], step: &mut Step) {
    for text in args.iter().skip(1).filter_map(Arg::literal) {
        for (at, _) in text.match_indices(':') {
            let behind = &text[at + 1..];
            // `:(top,icase)path`, `:!path`, `:^/path`
            let path = match behind.strip_prefix('(') {
                Some(magic) => magic.split_once(')').map_or("", |(_, path)| path),
                None => behind.trim_start_matches(['/', '!', '^']),
            };
            if path.is_empty() {
                continue;
            }
            for files in [
                Files::InRepository { rest: path.to_owned(), may_split: false },
                Files::Named(path.to_owned()),
            ] {
                if !step.may_name.contains(&files) {
                    step.may_name.push(files);
                }
            }
        }
    }
}

/// A path as it is seen from a directory; `None` if nobody can say. A pattern is matched where the line is run.
fn below(dir: &Files, file: &Files) -> Option<Files> {
    let Files::Named(path) = file else { return None };
    if path.starts_with('/') {
        return Some(file.clone());
    }
    match dir {
        Files::Named(dir) => Some(Files::Named(format!("{dir}/{path}"))),
        Files::InHome(dir) => Some(Files::InHome(format!("{dir}/{path}"))),
        Files::InRepository { rest, may_split } => {
            let rest = match (rest.as_str(), path.as_str()) {
                (rest, ".") => rest.to_owned(),
                ("", path) => path.to_owned(),
                (rest, path) => format!("{rest}/{path}"),
            };
            Some(Files::InRepository { rest, may_split: *may_split })
        }
        Files::Matching(_) => None,
    }
}

/// What stands behind options for all sub-commands that only say how, and the directories they name. Others can run
/// programs (`-c`, `--exec-path`).
fn without_globals(mut args: &[Arg]) -> Option<(Vec<Files>, &[Arg])> {
    let mut works_in = Vec::new();
    loop {
        match args {
            [option, rest @ ..]
                if matches!(
                    option.literal(),
                    Some("--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs")
                ) =>
            {
                args = rest;
            }
            [option, setting, rest @ ..]
                if option.literal() == Some("-c") && setting.literal().is_some_and(only_shows) =>
            {
                args = rest;
            }
            [option, dir, rest @ ..] if option.literal() == Some("-C") => {
                let next = dir.files().filter(|dir| !matches!(dir, Files::Matching(_)))?;
                // Each is seen from the one before.
                works_in = match works_in.pop() {
                    Some(before) => vec![below(&before, &next)?],
                    None => vec![next],
                };
                args = rest;
            }
            args => return Some((works_in, args)),
        }
    }
}

/// Whether a setting, given for one command, only says how something is shown.
fn only_shows(setting: &str) -> bool {
    let Some((name, value)) = setting.split_once('=') else { return false };
    let name = name.to_ascii_lowercase();
    let is_word = value.chars().all(|c| c.is_ascii_alphanumeric());
    match name.as_str() {
        "core.pager" => matches!(value, "cat" | ""),
        "core.quotepath"
        | "core.abbrev"
        | "log.showsignature"
        | "log.decorate"
        | "log.date"
        | "diff.renames"
        | "diff.noprefix"
        | "diff.mnemonicprefix"
        | "diff.context"
        | "status.short"
        | "status.branch" => is_word && !(name == "log.showsignature" && value != "false"),
        name => is_word && (name.starts_with("color.") || name.starts_with("advice.")),
    }
}

/// A word in which commands that print hashes of commits stand for such hashes.
fn with_revisions(arg: &Arg) -> Arg {
    let known = |part: &Part| match part {
        Part::Literal(text) => Some(text.clone()),
        Part::Substitution { inside, .. } => prints_hashes(inside).then(|| "HEAD".to_owned()),
        _ => None,
    };
    if is_range(arg) {
        return Arg::certain("HEAD..HEAD");
    }
    let text: Option<String> = arg.parts().iter().map(known).collect();
    match text {
        Some(text) if arg.literal().is_none() && !text.starts_with('-') => Arg::certain(&text),
        _ => arg.clone(),
    }
}

/// Whether a word is a range of revisions whatever its variables hold: `"origin/$branch..HEAD"`. No option begins so, and no file
/// that anybody means has such a name.
fn is_range(arg: &Arg) -> bool {
    let is_name = |part: &Part| match part {
        Part::Literal(text) => {
            text.chars().all(|c| c.is_ascii_alphanumeric() || "@{}~^/._-".contains(c))
                && !text.contains("/..")
                && !text.contains("../")
        }
        Part::Parameter { plain, quoted, .. } => *plain && *quoted,
        _ => false,
    };
    let parts = arg.parts();
    arg.literal().is_none()
        && arg.is_one_word()
        && parts.iter().all(is_name)
        && matches!(parts.first(), Some(Part::Literal(text)) if text.starts_with(|c: char| c.is_ascii_alphanumeric()))
        && matches!(parts.last(), Some(Part::Literal(text)) if text.contains("..") && !text.ends_with('.'))
}

/// Whether all that a command prints are hashes of commits, or else the words it was given.
pub(super) fn prints_hashes(line: &str) -> bool {
    if names_of(line).is_some_and(|names| names.are_commits) {
        return true;
    }
    let Ok(script) = pelton_shell::read(line) else { return false };
    let [command] = script.commands.as_slice() else { return false };
    let words: Option<Vec<&str>> = command.words.iter().map(|word| word.literal()).collect();
    let is_name = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "@{}~^/._-".contains(c))
    };
    let is_alone = command.assignments.is_empty() && command.redirections.is_empty();
    match words.as_deref() {
        Some(["git", "merge-base", names @ ..]) if is_alone => names.iter().all(is_name),
        Some(["git", "rev-parse", names @ ..]) if is_alone => {
            names.iter().all(|name| is_name(name) || matches!(*name, "--verify" | "--short"))
        }
        Some(["git", "rev-list", words @ ..]) if is_alone && !words.is_empty() => {
            let is_limit = |word: &&str| {
                matches!(*word, "-n1" | "-1" | "--max-count=1" | "--max-parents=0" | "--tags" | "--all")
            };
            words.iter().all(|word| is_name(word) || is_limit(word)) && words.iter().any(is_limit)
        }
        _ => false,
    }
}

/// Asking for values, not setting them.
fn config(args: &[Arg]) -> bool {
    let texts: Option<Vec<&str>> = args.iter().map(Arg::literal).collect();
    let Some(texts) = texts else { return false };
    let is_scope = |text: &&str| {
        matches!(
            *text,
            "--local"
                | "--global"
                | "--system"
                | "--worktree"
                | "--show-origin"
                | "--show-scope"
                | "--null"
                | "-z"
                | "--name-only"
                | "--includes"
        )
    };
    let is_type = |text: &&str| {
        matches!(*text, "--bool" | "--int" | "--bool-or-int" | "--path") || text.starts_with("--type=")
    };
    let rest: Vec<&str> = texts.into_iter().filter(|text| !is_scope(text) && !is_type(text)).collect();
    let rest = match rest.as_slice() {
        ["--default", _, rest @ ..] => rest,
        rest => rest,
    };
    match rest {
        ["--list" | "-l" | "list"] => true,
        ["--get" | "--get-all" | "--get-regexp" | "get", name] => !name.starts_with('-'),
        ["--get" | "--get-all" | "--get-regexp", name, value] => {
            !name.starts_with('-') && !value.starts_with('-')
        }
        [name] => !name.starts_with('-') && name.contains('.'),
        _ => false,
    }
}

const GIT_DIFF_SHORT: &str = "abRwzst !pucmW !U? CMBD? SGl:";
const GIT_DIFF_LONG: &str = "!patch !unified? no-patch raw !patch-with-stat stat? numstat shortstat summary name-only \
    name-status compact-summary dirstat? minimal patience histogram diff-algorithm: diff-filter: color? no-color \
    !word-diff? !word-diff-regex: !color-words? color-moved? no-color-moved no-renames find-renames? find-copies? \
    find-copies-harder !cc !combined-all-paths check full-index !binary abbrev? no-abbrev ignore-all-space \
    ignore-space-change ignore-space-at-eol ignore-cr-at-eol ignore-blank-lines !function-context \
    inter-hunk-context# exit-code quiet no-ext-diff no-textconv relative? no-relative text no-prefix src-prefix: \
    dst-prefix: submodule? ignore-submodules? pickaxe-all pickaxe-regex stat-width# stat-name-width# stat-count#";
const GIT_LOG_SHORT: &str = "iEFPgq n# !L:";
const GIT_LOG_LONG: &str = "oneline graph all decorate? no-decorate decorate-refs: branches? tags? remotes? glob: exclude: \
    since: after: until: before: author: committer: grep: all-match invert-grep regexp-ignore-case extended-regexp \
    fixed-strings perl-regexp merges no-merges min-parents? max-parents? first-parent follow max-count# skip# \
    reverse date: relative-date pretty? format? abbrev-commit no-abbrev-commit left-right left-only right-only \
    cherry-pick cherry-mark cherry topo-order date-order author-date-order full-history ancestry-path \
    simplify-by-decoration simplify-merges sparse dense walk-reflogs no-walk? notes? no-notes source parents \
    children boundary not mailmap use-mailmap no-mailmap encoding: clear-decorations";
const GIT_LIST_LONG: &str = "list contains no-contains merged no-merged points-at: sort: format: color? no-color column? \
    no-column ignore-case abbrev? no-abbrev";
const GIT_LISTING: &[&str] =
    &["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];

const GIT: &[Program] = &[
    Program { names: &["version", "--version", "archive --list"], operands: Operands::None, ..PLAIN },
    Program {
        names: &["status"],
        short: &["sbz !v u?"],
        long: &[
            "short branch show-stash porcelain? long !verbose untracked-files? ignored? ignore-submodules? \
                 renames no-renames find-renames? ahead-behind no-ahead-behind column? no-column",
        ],
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["log", "stash list"],
        short: &[GIT_DIFF_SHORT, GIT_LOG_SHORT, DIGITS],
        long: &[GIT_DIFF_LONG, GIT_LOG_LONG],
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["show"],
        short: &[GIT_DIFF_SHORT, GIT_LOG_SHORT, DIGITS],
        long: &[GIT_DIFF_LONG, GIT_LOG_LONG],
        reach: Reach::Unnamed,
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["diff"],
        short: &[GIT_DIFF_SHORT, DIGITS],
        long: &[GIT_DIFF_LONG, "cached staged merge-base base ours theirs no-index"],
        reach: Reach::Unnamed,
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["shortlog"],
        short: &["snec w?"],
        long: &["numbered summary email committer group: format:", GIT_LOG_LONG],
        ..PLAIN
    },
    Program {
        names: &["blame", "annotate"],
        short: &["bcefFlnpstw CM? L:"],
        long: &[
            "root show-stats porcelain line-porcelain show-name show-number show-email date: since: abbrev? \
                 ignore-rev: first-parent",
        ],
        ..PLAIN
    },
    Program {
        names: &["rev-parse"],
        short: &["q"],
        long: &["verify quiet short? abbrev-ref? symbolic symbolic-full-name all branches? tags? remotes? \
                 show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir \
                 is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository \
                 show-superproject-working-tree show-object-format?"],
        ..PLAIN
    },
    Program {
        names: &["ls-files"],
        short: &["cdmoisktuvz x:"],
        long: &["cached deleted modified others ignored stage unmerged killed directory no-empty-directory \
                 exclude: exclude-standard error-unmatch full-name abbrev? eol deduplicate format: \
                 recurse-submodules"],
        ..PLAIN
    },
    Program {
        names: &["ls-tree"],
        short: &["drtlz"],
        long: &["long name-only name-status object-only full-name full-tree abbrev? format:"],
        ..PLAIN
    },
    Program {
        names: &["branch"],
        short: &["arvi"],
        long: &[GIT_LIST_LONG, "all remotes verbose show-current"],
        operands: Operands::PatternsWith(GIT_LISTING),
        ..PLAIN
    },
    Program {
        names: &["tag"],
        short: &["li n?"],
        long: &[GIT_LIST_LONG],
        operands: Operands::PatternsWith(&[
            "-l",
            "--list",
            "--contains",
            "--no-contains",
            "--merged",
            "--no-merged",
        ]),
        ..PLAIN
    },
    // With one name it shows where that leads; with a second it would set it.
    Program {
        names: &["symbolic-ref"],
        short: &["q"],
        long: &["short quiet no-recurse"],
        operands: Operands::OneWord,
        ..PLAIN
    },
    Program { names: &["submodule"], operands: Operands::None, ..PLAIN },
    Program {
        names: &["diff-index", "diff-files"],
        short: &[GIT_DIFF_SHORT],
        long: &[GIT_DIFF_LONG, "cached merge-base base ours theirs"],
        reach: Reach::Unnamed,
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["show-branch"],
        short: &["ar"],
        long: &[
            "all remotes current topo-order date-order list merge-base independent no-name sha1-name no-color color?",
        ],
        operands: Operands::Words,
        ..PLAIN
    },
    Program { names: &["remote"], short: &["v"], long: &["verbose"], operands: Operands::None, ..PLAIN },
    Program {
        names: &["worktree list"],
        short: &["vz"],
        long: &["verbose porcelain"],
        operands: Operands::None,
        ..PLAIN
    },
    Program {
        names: &["describe"],
        long: &[
            "all tags always contains long exact-match first-parent dirty? abbrev? candidates# match: exclude:",
        ],
        ..PLAIN
    },
    Program {
        names: &["merge-base"],
        short: &["a"],
        long: &["all octopus is-ancestor fork-point independent"],
        ..PLAIN
    },
    Program {
        names: &["grep"],
        short: &["aiIwvhHlLocnEGFPqzWp rt? ABCm# e:", DIGITS],
        long: &[
            "cached untracked no-exclude-standard exclude-standard recurse-submodules text ignore-case word-regexp \
                 invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column \
                 files-with-matches name-only files-without-match null only-matching count color? no-color break \
                 heading show-function context# after-context# before-context# function-context max-count# \
                 threads# all-match quiet and or not max-depth# recursive no-recursive",
        ],
        operands: Operands::PatternThenPaths { unless: &["-e"] },
        reach: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["rev-list"],
        short: &["iEFPgq n#", DIGITS],
        // What others take as two words it does not know, and goes on with the second.
        long: &[
            "decorate-refs?",
            GIT_LOG_LONG,
            "count objects timestamp header stdin disk-usage? missing? exclude-promisor-objects",
        ],
        ..PLAIN
    },
    // Others of its options run what is configured for files of a kind.
    Program {
        names: &["cat-file"],
        short: &["ptesz"],
        long: &["batch-check? batch-all-objects unordered buffer allow-unknown-type"],
        reach: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["for-each-ref"],
        long: &[
            "count# sort: format: points-at: merged? no-merged? contains? no-contains? ignore-case color? omit-empty",
        ],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["show-ref"],
        short: &["qdsh"],
        long: &["head heads tags branches dereference hash? verify quiet abbrev? exists"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["name-rev"],
        long: &["tags refs: exclude: all name-only no-undefined always"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["reflog", "reflog show"],
        short: &[GIT_LOG_SHORT, DIGITS],
        long: &[GIT_LOG_LONG],
        ..PLAIN
    },
    Program {
        names: &["reflog list", "bisect log", "notes list", "remote show"],
        operands: Operands::None,
        ..PLAIN
    },
    Program {
        names: &["fsck"],
        long: &["full no-dangling connectivity-only strict no-progress"],
        operands: Operands::None,
        ..PLAIN
    },
    Program { names: &["remote get-url"], long: &["push all"], operands: Operands::Words, ..PLAIN },
    Program {
        names: &["stash show"],
        short: &[GIT_DIFF_SHORT],
        long: &[GIT_DIFF_LONG, "include-untracked only-untracked"],
        reach: Reach::Unnamed,
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program { names: &["submodule status"], long: &["cached recursive"], ..PLAIN },
    Program {
        names: &["count-objects"],
        short: &["vH"],
        long: &["verbose human-readable"],
        operands: Operands::None,
        ..PLAIN
    },
    Program {
        names: &["check-ignore"],
        short: &["qvnz"],
        long: &["quiet verbose non-matching no-index"],
        harmless: true,
        ..PLAIN
    },
    Program { names: &["check-attr"], short: &["az"], long: &["all cached"], ..PLAIN },
    Program {
        names: &["range-diff"],
        short: &["s"],
        long: &["no-patch stat name-only left-only right-only creation-factor#"],
        operands: Operands::Words,
        reach: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["apply --stat", "apply --numstat", "apply --summary", "apply --check"],
        short: &["vR p#"],
        long: &["stat numstat summary check verbose reverse"],
        ..PLAIN
    },
    Program { names: &["hash-object"], short: &["t:"], long: &["no-filters"], ..PLAIN },
    Program { names: &["sparse-checkout list"], operands: Operands::None, ..PLAIN },
    Program { names: &["cherry"], short: &["v"], long: &["abbrev?"], operands: Operands::Words, ..PLAIN },
    Program {
        names: &["diff-tree"],
        short: &["r", GIT_DIFF_SHORT],
        long: &[GIT_DIFF_LONG, "root no-commit-id"],
        reach: Reach::Unnamed,
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program {
        names: &["whatchanged"],
        short: &[GIT_DIFF_SHORT, GIT_LOG_SHORT, DIGITS],
        long: &[GIT_DIFF_LONG, GIT_LOG_LONG],
        wide: Reach::Unnamed,
        ..PLAIN
    },
    Program { names: &["var"], short: &["l"], operands: Operands::Words, ..PLAIN },
];
