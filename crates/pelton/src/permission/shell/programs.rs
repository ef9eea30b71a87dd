//! Programs that only look, with the options that keep it so. What is not listed is unknown.
//!
//! Left out on purpose: options that write (`sort -o`), run (`rg --pre`), read lists of files or patterns from files
//! (`grep -f`, `du -X`), follow the links that a search meets (`grep -R`, `rg -L`, `find -L`, `ls -L`), or never end
//! (`tail -f`). Long options count only when written out, because an abbreviation may come to mean another.
//!
//! Options are written in words. A word for short options is letters that take the same: `alh`; a word for a long
//! option is its name. Behind them stands what they take: `#` a number, `:` text that names no file, `@` a file, `?`
//! text that is glued to the option or missing. A `!` before them says that with them the program shows
//! [more](Program::wide).

use super::Takes;

/// A program, or a sub-command of git.
pub(super) struct Program {
    pub names: &'static [&'static str],
    short: &'static [&'static str],
    long: &'static [&'static str],
    pub operands: Operands,
    /// Whose contents it may show.
    pub reach: Reach,
    /// The same with options that are marked with `!`.
    wide: Reach,
}

/// What the words are that belong to no option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Files.
    Paths,
    /// At most one file.
    OnePath,
    /// A pattern, then files; only files with one of these options.
    PatternThenPaths { unless: &'static [&'static str] },
    /// Patterns or revisions, but only with one of these options.
    PatternsWith(&'static [&'static str]),
    /// No files.
    Words,
    /// Formats, which begin with `+`.
    Formats,
    /// There are none.
    None,
    /// Not even options matter.
    Anything,
}

impl Operands {
    /// Whether a program without files looks at the directory it is run in.
    pub fn default_here(self) -> bool {
        matches!(self, Self::Paths | Self::PatternThenPaths { .. })
    }
}

/// Whose contents a program may show. Each includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Reach {
    /// Of the files that are named.
    Named,
    /// Of everything below the directories that are named.
    Below,
    /// The same, and links in there are followed.
    BelowAndLinked,
    /// Of files that no word names.
    Unnamed,
}

pub(super) struct Opt {
    pub takes: Takes,
    pub reach: Reach,
}

impl Program {
    pub fn short(&self, letter: char) -> Option<Opt> {
        self.option(self.short, |letters| letters.contains(letter))
    }

    pub fn long(&self, name: &str) -> Option<Opt> {
        self.option(self.long, |listed| listed == name)
    }

    fn option(&self, lists: &[&str], is_it: impl Fn(&str) -> bool) -> Option<Opt> {
        lists.iter().flat_map(|list| list.split_whitespace()).find_map(|word| {
            let (shows_more, word) = match word.strip_prefix('!') {
                Some(word) => (true, word),
                None => (false, word),
            };
            let (name, takes) = name_and_takes(word);
            let reach = if shows_more { self.wide } else { Reach::Named };
            is_it(name).then_some(Opt { takes, reach })
        })
    }
}

/// The program of that name.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.names.contains(&name))
}

/// What a test of `find` takes, if it only looks.
pub(super) fn find_takes(test: &str) -> Option<Takes> {
    FIND.split_whitespace().map(name_and_takes).find(|(name, _)| *name == test).map(|(_, takes)| takes)
}

fn name_and_takes(word: &str) -> (&str, Takes) {
    for (mark, takes) in [('#', Takes::Number), (':', Takes::Word), ('@', Takes::Path), ('?', Takes::Maybe)] {
        if let Some(name) = word.strip_suffix(mark) {
            return (name, takes);
        }
    }
    (word, Takes::Nothing)
}

const PLAIN: Program = Program {
    names: &[],
    short: &[],
    long: &[],
    operands: Operands::Paths,
    reach: Reach::Named,
    wide: Reach::Named,
};

const DIGITS: &str = "0123456789";

const PROGRAMS: &[Program] = &[
    Program { names: &["echo", "true", "false"], operands: Operands::Anything, ..PLAIN },
    Program { names: &["pwd"], short: &["LP"], operands: Operands::None, ..PLAIN },
    Program { names: &["whoami"], operands: Operands::None, ..PLAIN },
    Program {
        names: &["uname"],
        short: &["asnrvmpio"],
        long: &["all kernel-name nodename kernel-release kernel-version machine processor operating-system"],
        operands: Operands::None,
        ..PLAIN
    },
    Program {
        names: &["id"],
        short: &["ugGnra"],
        long: &["user group groups name real"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["date"],
        short: &["uR I?"],
        long: &["utc universal rfc-email rfc-3339: iso-8601? date:"],
        operands: Operands::Formats,
        ..PLAIN
    },
    Program {
        names: &["basename", "dirname"],
        short: &["az s:"],
        long: &["multiple suffix: zero"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["tr"],
        short: &["cCdst"],
        long: &["complement delete squeeze-repeats truncate-set1"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program { names: &["which"], short: &["a"], long: &["all"], ..PLAIN },
    Program {
        names: &["ls"],
        short: &["1aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ w#"],
        long: &[
            "all almost-all author escape ignore-backups color? directory classify? file-type format: full-time \
                 no-group group-directories-first human-readable si inode indicator-style: literal \
                 numeric-uid-gid quote-name reverse recursive size sort: time: time-style: width# zero",
        ],
        ..PLAIN
    },
    Program {
        names: &["cat"],
        short: &["AbeEnstTuv"],
        long: &["number number-nonblank show-all show-ends show-tabs show-nonprinting squeeze-blank"],
        ..PLAIN
    },
    Program {
        names: &["head", "tail"],
        short: &["qvz nc#", DIGITS],
        long: &["lines# bytes# quiet silent verbose zero-terminated"],
        ..PLAIN
    },
    Program {
        names: &["wc"],
        short: &["clmwL"],
        long: &["bytes chars lines words max-line-length"],
        ..PLAIN
    },
    Program { names: &["stat"], short: &["ftx c:"], long: &["file-system terse format: printf:"], ..PLAIN },
    Program {
        names: &["realpath", "readlink"],
        short: &["efmnqsz"],
        long: &["canonicalize canonicalize-existing canonicalize-missing no-newline quiet no-symlinks zero"],
        ..PLAIN
    },
    Program {
        names: &["cut"],
        short: &["sz dfcb:"],
        long: &["delimiter: fields: characters: bytes: only-delimited complement output-delimiter: \
                 zero-terminated"],
        ..PLAIN
    },
    Program {
        names: &["nl"],
        short: &["p bdfhns: ilvw#"],
        long: &["body-numbering: number-format: number-separator: number-width# starting-line-number#"],
        ..PLAIN
    },
    Program { names: &["tac"], short: &["br s:"], long: &["before regex separator:"], ..PLAIN },
    Program {
        names: &["diff"],
        short: &["abBcdeEiNnpqstTuwyZ !r UCW# IF:", DIGITS],
        long: &[
            "normal brief report-identical-files context? unified? ed rcs side-by-side width# left-column \
                 suppress-common-lines show-c-function show-function-line: label: expand-tabs initial-tab \
                 !recursive no-dereference new-file ignore-case ignore-tab-expansion ignore-trailing-space \
                 ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: text \
                 strip-trailing-cr minimal speed-large-files color?",
        ],
        // Given directories it compares what is in them, links included.
        reach: Reach::BelowAndLinked,
        wide: Reach::BelowAndLinked,
        ..PLAIN
    },
    Program {
        names: &["cmp"],
        short: &["bls n#"],
        long: &["print-bytes verbose silent quiet bytes#"],
        ..PLAIN
    },
    Program {
        names: &["du"],
        short: &["abchklmsxS0 d# tB:"],
        long: &[
            "all apparent-size bytes total count-links human-readable si inodes summarize max-depth# null \
                 one-file-system separate-dirs threshold: time? time-style: exclude: block-size:",
        ],
        ..PLAIN
    },
    Program {
        names: &["grep", "egrep", "fgrep"],
        short: &["abcEFGhHiIlLnoPqsTUvwxyZ !r mABC# e:", DIGITS],
        long: &["extended-regexp fixed-strings basic-regexp perl-regexp regexp: ignore-case no-ignore-case \
                 invert-match word-regexp line-regexp count color? colour? files-with-matches \
                 files-without-match max-count# only-matching quiet silent no-messages byte-offset \
                 with-filename no-filename label: line-number initial-tab null after-context# \
                 before-context# context# text binary-files: include: exclude: exclude-dir: !recursive \
                 line-buffered"],
        operands: Operands::PatternThenPaths { unless: &["-e", "--regexp"] },
        wide: Reach::Below,
        ..PLAIN
    },
    Program {
        names: &["rg"],
        short: &["abcFHhiIlnNopPqsSuUvVwx0. ABCmMjd# egtTrE:"],
        long: &["regexp: fixed-strings ignore-case smart-case case-sensitive invert-match word-regexp \
                 line-regexp glob: iglob: type: type-not: type-add: type-list files files-with-matches \
                 files-without-match count count-matches hidden no-hidden no-ignore no-ignore-vcs \
                 no-ignore-parent no-ignore-global unrestricted no-config line-number no-line-number \
                 heading no-heading with-filename no-filename column no-column byte-offset max-count# \
                 max-depth# max-columns# max-columns-preview max-filesize# after-context# before-context# \
                 context# context-separator: multiline multiline-dotall pcre2 only-matching replace: \
                 passthru sort: sortr: stats text trim json vimgrep null color: colors: pretty no-messages \
                 encoding: crlf quiet threads# one-file-system glob-case-insensitive"],
        operands: Operands::PatternThenPaths { unless: &["-e", "--regexp", "--files", "--type-list"] },
        reach: Reach::Below,
        ..PLAIN
    },
    Program {
        names: &["sort"],
        short: &["bcCdfghiMmnrRsuVz ktS:"],
        long: &[
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting \
                 month-sort human-numeric-sort numeric-sort random-sort reverse version-sort sort: check? \
                 key: field-separator: merge stable unique zero-terminated parallel# buffer-size: debug",
        ],
        ..PLAIN
    },
    Program {
        names: &["uniq"],
        short: &["cdDiuz fsw#"],
        long: &[
            "count repeated all-repeated? group? skip-fields# skip-chars# check-chars# ignore-case unique \
                 zero-terminated",
        ],
        operands: Operands::OnePath,
        ..PLAIN
    },
];

/// The tests and actions of `find`, without their dash.
const FIND: &str = "name: iname: path: ipath: wholename: iwholename: regex: iregex: regextype: lname: ilname: \
    type: xtype: size: empty perm: user: group: uid: gid: nouser nogroup links: inum: readable writable executable \
    mtime: atime: ctime: mmin: amin: cmin: newer@ anewer@ cnewer@ newermt: newerat: newerct: samefile@ daystart \
    maxdepth# mindepth# depth mount xdev noleaf ignore_readdir_race prune quit print print0 printf: ls true false \
    not a and o or";

const GIT_DIFF_SHORT: &str = "abRwzst !pucmW !U# CMBD? SGl:";
const GIT_DIFF_LONG: &str = "!patch !unified# no-patch raw !patch-with-stat stat? numstat shortstat summary name-only \
    name-status compact-summary dirstat? minimal patience histogram diff-algorithm: diff-filter: color? no-color \
    !word-diff? !word-diff-regex: !color-words? color-moved? no-color-moved no-renames find-renames? find-copies? \
    find-copies-harder !cc !combined-all-paths check full-index !binary abbrev? no-abbrev ignore-all-space \
    ignore-space-change ignore-space-at-eol ignore-cr-at-eol ignore-blank-lines !function-context \
    inter-hunk-context# exit-code quiet no-ext-diff no-textconv relative? no-relative text no-prefix src-prefix: \
    dst-prefix: submodule? ignore-submodules? pickaxe-all pickaxe-regex stat-width# stat-name-width# stat-count#";
const GIT_LOG_SHORT: &str = "iEFPgq n# !L:";
const GIT_LOG_LONG: &str = "oneline graph all decorate? no-decorate decorate-refs: branches? tags? remotes? glob: exclude: \
    since: after: until: before: author: committer: grep: all-match invert-grep regexp-ignore-case extended-regexp \
    fixed-strings perl-regexp merges no-merges min-parents# max-parents# first-parent follow max-count# skip# \
    reverse date: relative-date pretty? format: abbrev-commit no-abbrev-commit left-right left-only right-only \
    cherry-pick cherry-mark cherry topo-order date-order author-date-order full-history ancestry-path \
    simplify-by-decoration simplify-merges sparse dense walk-reflogs no-walk? notes? no-notes source parents \
    children boundary mailmap use-mailmap no-mailmap encoding: clear-decorations";
const GIT_LIST_LONG: &str = "list contains no-contains merged no-merged points-at: sort: format: color? no-color column? \
    no-column ignore-case abbrev? no-abbrev";
const GIT_LISTING: &[&str] =
    &["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];

/// The sub-commands of git that only look. What git itself keeps can hold any file of the repository.
pub(super) const GIT: &[Program] = &[
    Program { names: &["version", "--version"], operands: Operands::None, ..PLAIN },
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
        long: &[GIT_DIFF_LONG, "cached staged merge-base base ours theirs"],
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
        names: &["blame"],
        short: &["bcefFlnpstw CM? L:"],
        long: &[
            "root show-stats porcelain line-porcelain show-name show-number show-email date: since: abbrev# \
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
            "all tags always contains long exact-match first-parent dirty? abbrev# candidates# match: exclude:",
        ],
        ..PLAIN
    },
    Program {
        names: &["merge-base"],
        short: &["a"],
        long: &["all octopus is-ancestor fork-point independent"],
        ..PLAIN
    },
];
