//! Programs that only look, with the options that keep it so. What is not listed is unknown.
//!
//! Left out on purpose: options that write (`sort -o`), run (`rg --pre`), read lists of files or patterns from files
//! (`grep -f`, `du -X`), follow the links that a search meets (`grep -R`, `rg -L`, `find -L`, `ls -L`), or never end
//! (`tail -f`). Long options count only when written out, because an abbreviation may come to mean another.
//!
//! Options are written in words. A word for short options is letters that take the same: `alh`; a word for a long
//! option is its name. Behind them stands what they take: `#` a number, `:` text that names no file, `@` a file, `?`
//! text that is glued to the option or missing (what follows is another word), `^` two texts that name no file, `&` such a text and
//! then a file. A `!` before them says that with them the
//! program shows [more](Program::wide).

use std::collections::HashMap;
use std::sync::LazyLock;

use super::subcommands::MACHINE;

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// Digits with a sign before and a unit behind them.
    Number,
    /// Text that names no file.
    Word,
    /// Two texts that name no files.
    Two,
    /// A text that names no file, and then a file.
    NameAndPath,
    Path,
    /// A value only when it is glued to the option.
    Maybe,
}

/// A program, or a sub-command of git.
pub(super) struct Program {
    pub names: &'static [&'static str],
    pub short: &'static [&'static str],
    pub long: &'static [&'static str],
    pub operands: Operands,
    /// Whose contents it may show.
    pub reach: Reach,
    /// The same with options that are marked with `!`.
    pub wide: Reach,
    /// None of its options, known or not, writes or runs anything: a pattern may become one.
    pub harmless: bool,
    /// None of its options harms but one that nobody gives to a file as its name: where no file is called like an option, even a pattern for
    /// all of them is fine.
    pub fine_without_dashes: bool,
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
    /// At most one word, which names no file.
    OneWord,
    /// Numbers.
    Numbers,
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
    // Asked several times for each command.
    static BY_NAME: LazyLock<HashMap<&str, &Program>> = LazyLock::new(|| {
        let named = |program: &'static Program| program.names.iter().map(move |name| (*name, program));
        // The first of a name counts.
        PROGRAMS.iter().chain(MACHINE).rev().flat_map(named).collect()
    });
    BY_NAME.get(name).copied()
}

/// What a test of `find` takes, if it only looks.
pub(super) fn find_takes(test: &str) -> Option<Takes> {
    FIND.split_whitespace().map(name_and_takes).find(|(name, _)| *name == test).map(|(_, takes)| takes)
}

fn name_and_takes(word: &str) -> (&str, Takes) {
    for (mark, takes) in [
        ('#', Takes::Number),
        (':', Takes::Word),
        ('@', Takes::Path),
        ('?', Takes::Maybe),
        ('^', Takes::Two),
        ('&', Takes::NameAndPath),
    ] {
        if let Some(name) = word.strip_suffix(mark) {
            return (name, takes);
        }
    }
    (word, Takes::Nothing)
}

pub(super) const PLAIN: Program = Program {
    names: &[],
    short: &[],
    long: &[],
    operands: Operands::Paths,
    reach: Reach::Named,
    wide: Reach::Named,
    harmless: false,
    fine_without_dashes: false,
};

pub(super) const DIGITS: &str = "0123456789";

const PROGRAMS: &[Program] = &[
    Program { names: &["echo", "true", "false", ":"], operands: Operands::Anything, ..PLAIN },
    Program {
        names: &["exit", "return", "break", "continue", "sleep"],
        operands: Operands::Numbers,
        ..PLAIN
    },
    Program {
        names: &["nproc", "arch", "logname", "tty", "groups", "users", "lscpu"],
        long: &["all"],
        operands: Operands::None,
        ..PLAIN
    },
    Program {
        names: &["hostname"],
        short: &["fisdIA"],
        long: &["fqdn ip-address short domain"],
        operands: Operands::None,
        ..PLAIN
    },
    Program { names: &["duf", "procs"], operands: Operands::None, ..PLAIN },
    Program { names: &["hexyl"], short: &["ns#"], long: &["length# skip#"], ..PLAIN },
    Program {
        names: &["pr"],
        short: &["dfFmrtTaJ lwWNo# hD: s?", DIGITS],
        long: &["columns# across double-space merge omit-header length# width# header:"],
        ..PLAIN
    },
    Program {
        names: &["uptime"],
        short: &["ps"],
        long: &["pretty since"],
        operands: Operands::None,
        ..PLAIN
    },
    Program {
        names: &["free"],
        short: &["bkmghtlwv"],
        long: &["bytes kibi mebi gibi mega giga human total wide si"],
        operands: Operands::None,
        ..PLAIN
    },
    Program { names: &["who", "w"], short: &["abdHlmqrTuhsfoi"], operands: Operands::None, ..PLAIN },
    Program { names: &["env"], short: &["0"], long: &["null"], operands: Operands::None, ..PLAIN },
    Program {
        names: &["printenv"],
        short: &["0"],
        long: &["null"],
        operands: Operands::Words,
        harmless: true,
        ..PLAIN
    },
    Program { names: &["whereis"], short: &["bms"], operands: Operands::Words, ..PLAIN },
    Program { names: &["cal", "ncal"], short: &["13jmsy"], operands: Operands::Words, ..PLAIN },
    Program { names: &["umask"], short: &["Sp"], operands: Operands::None, ..PLAIN },
    Program { names: &["jobs"], short: &["lnprs"], operands: Operands::None, ..PLAIN },
    Program { names: &["yes"], operands: Operands::Words, ..PLAIN },
    Program {
        names: &["uuidgen"],
        short: &["rt"],
        long: &["random time"],
        operands: Operands::None,
        ..PLAIN
    },
    // Sums of what it is told; it has no way to run or open anything but the files that are named.
    Program { names: &["bc"], short: &["lqs"], long: &["mathlib quiet standard"], ..PLAIN },
    Program {
        names: &["numfmt"],
        short: &["z d:"],
        long: &[
            "from: to: from-unit: to-unit: suffix: padding# round: field: format: grouping header? invalid: delimiter: zero-terminated",
        ],
        operands: Operands::Words,
        ..PLAIN
    },
    Program { names: &["apropos", "whatis"], short: &["adelrw"], operands: Operands::Words, ..PLAIN },
    Program { names: &["clear"], operands: Operands::None, ..PLAIN },
    Program { names: &["vmstat"], short: &["asdwtm"], operands: Operands::Numbers, ..PLAIN },
    Program { names: &["tput"], operands: Operands::Words, ..PLAIN },
    Program { names: &["lsmod", "lsusb", "lspci"], operands: Operands::None, ..PLAIN },
    Program { names: &["gofmt"], short: &["ldes r:"], ..PLAIN },
    Program {
        names: &["pkg-config", "pkgconf"],
        long: &[
            "modversion list-all cflags libs exists static print-errors variable: print-requires short-errors",
        ],
        ..PLAIN
    },
    Program {
        names: &["lsb_release"],
        short: &["aidcrs"],
        long: &["all id description release codename short"],
        operands: Operands::None,
        ..PLAIN
    },
    // Its words say which connections.
    Program { names: &["ss"], short: &["tulnpaexs46"], operands: Operands::Words, ..PLAIN },
    Program { names: &["netstat"], short: &["tulnpaers"], operands: Operands::None, ..PLAIN },
    Program {
        names: &["zgrep", "zegrep", "zfgrep"],
        short: &["cHhilLnovwxE ABCm#"],
        operands: Operands::PatternThenPaths { unless: &[] },
        ..PLAIN
    },
    Program { names: &["zipinfo"], short: &["1sml"], operands: Operands::OnePath, ..PLAIN },
    Program { names: &["type"], short: &["aftpP"], operands: Operands::Words, harmless: true, ..PLAIN },
    Program {
        names: &["help", "getconf", "factor", "expr", "pidof"],
        short: &["ds"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["locale"],
        short: &["amkc"],
        long: &["all-locales charmaps keyword-name category-name"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["pgrep"],
        short: &["aflnovxc uUPgG:"],
        long: &["full list-name list-full newest oldest exact count ignore-case"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["seq"],
        short: &["w fs:"],
        long: &["equal-width format: separator:"],
        operands: Operands::Numbers,
        ..PLAIN
    },
    Program {
        names: &["df"],
        short: &["ahHiklPT tBx:"],
        long: &[
            "all human-readable si inodes local portability print-type total type: exclude-type: block-size: output? sync no-sync",
        ],
        // How full a file system is, whichever file it is asked by.
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["lsblk"],
        short: &["abdfilmnpPrStJ o:"],
        long: &["all bytes fs json list output: paths tree noheadings"],
        operands: Operands::None,
        ..PLAIN
    },
    Program {
        names: &["tree"],
        short: &["adfpshugDFviNnCAtcrUqxJXQ L# PIH:"],
        long: &[
            "noreport dirsfirst filesfirst du si inodes device prune gitignore matchdirs ignore-case charset: filelimit: sort: timefmt: metafirst",
        ],
        ..PLAIN
    },
    Program {
        names: &["eza", "exa", "lsd"],
        short: &["1aAlhrRSTFdGgimnuUHtxb L# sI:"],
        long: &[
            "tree all almost-all long oneline grid recurse reverse icons? color? classify header group-directories-first only-dirs only-files level# depth# sort: ignore-glob: time: time-style: no-user no-permissions no-time no-filesize total-size git-ignore",
        ],
        ..PLAIN
    },
    Program {
        names: &["dust"],
        short: &["d# n# rsbcfap"],
        long: &["depth# reverse apparent-size no-percent-bars"],
        ..PLAIN
    },
    Program {
        names: &["tokei"],
        short: &["fC et s:"],
        long: &["files compact exclude: types: sort: hidden no-ignore"],
        ..PLAIN
    },
    Program {
        names: &["cloc"],
        long: &[
            "by-file by-file-by-lang quiet json csv md yaml exclude-dir: include-lang: exclude-lang: exclude-ext: include-ext:",
        ],
        ..PLAIN
    },
    Program {
        names: &["scc"],
        short: &["w is f:"],
        long: &["by-file wide include-ext: exclude-dir: exclude-ext: format: sort: no-cocomo no-complexity"],
        ..PLAIN
    },
    Program { names: &["otool"], short: &["LlhtTdDfvVX"], ..PLAIN },
    Program { names: &["xxd"], short: &["abeEiupP cglos#"], operands: Operands::OnePath, ..PLAIN },
    Program {
        names: &["od"],
        short: &["abcdfhilosvx At: w? jNS#"],
        long: &["address-radix: format: read-bytes# skip-bytes# width? output-duplicates"],
        ..PLAIN
    },
    Program {
        names: &["hexdump", "hd"],
        short: &["bcCdovx ns# e:"],
        long: &["canonical length# skip# no-squeezing"],
        ..PLAIN
    },
    Program {
        names: &["strings"],
        short: &["afwo n# te:", DIGITS],
        long: &["all bytes# radix: encoding: print-file-name"],
        ..PLAIN
    },
    Program {
        names: &[
            "md5sum",
            "sha1sum",
            "sha224sum",
            "sha256sum",
            "sha384sum",
            "sha512sum",
            "b2sum",
            "cksum",
            "sum",
            "shasum",
        ],
        short: &["btzrs al:"],
        long: &["binary text tag zero algorithm: length#"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["file"],
        short: &["bhiknNrsv0 eFP:"],
        long: &[
            "brief mime mime-type mime-encoding keep-going no-dereference extension exclude: separator: no-pad",
        ],
        fine_without_dashes: true,
        ..PLAIN
    },
    Program {
        names: &["column"],
        short: &["tenxJL sconNRTHO:"],
        long: &[
            "table separator: output-separator: columns: table-columns: fillrows json table-name: table-right: table-hide:",
        ],
        ..PLAIN
    },
    Program {
        names: &["fold"],
        short: &["bcs w#"],
        long: &["bytes spaces width# characters"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["fmt"],
        short: &["cstu w# p: g#"],
        long: &["width# goal# split-only uniform-spacing prefix:"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["expand", "unexpand"],
        short: &["ai t:"],
        long: &["initial all tabs: first-only"],
        harmless: true,
        ..PLAIN
    },
    Program { names: &["rev"], harmless: true, ..PLAIN },
    Program {
        names: &["paste"],
        short: &["sz d:"],
        long: &["serial zero-terminated delimiters:"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["join"],
        short: &["iz aetv12j: o:"],
        long: &["ignore-case check-order nocheck-order header zero-terminated"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["comm"],
        short: &["123z"],
        long: &["check-order nocheck-order output-delimiter: total zero-terminated"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["base64", "base32"],
        short: &["di w#"],
        long: &["decode ignore-garbage wrap#"],
        operands: Operands::OnePath,
        ..PLAIN
    },
    Program {
        names: &["shuf"],
        short: &["ezr i: n#"],
        long: &["echo input-range: head-count# repeat zero-terminated"],
        ..PLAIN
    },
    Program { names: &["tsort", "zcat", "bzcat", "xzcat", "zstdcat"], ..PLAIN },
    Program {
        names: &["nm", "size", "readelf"],
        short: &["aABCDgnopPrsuhSldewVWx"],
        long: &[
            "all demangle? extern-only defined-only undefined-only numeric-sort size-sort reverse-sort headers sections symbols segments dynamic wide print-file-name",
        ],
        ..PLAIN
    },
    Program {
        names: &["jq"],
        short: &["rcMCsneSajR"],
        long: &[
            "raw-output compact-output monochrome-output color-output slurp null-input exit-status sort-keys ascii-output \
                 join-output raw-input tab indent# arg^ argjson^ slurpfile& rawfile& stream seq unbuffered raw-output0",
        ],
        operands: Operands::PatternThenPaths { unless: &[] },
        ..PLAIN
    },
    Program {
        names: &["fd", "fdfind"],
        short: &["HIusigFap0lq1 dj# tecES:"],
        long: &[
            "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path \
                 full-path print0 max-depth# min-depth# exact-depth# type: extension: exclude: size: changed-within: \
                 changed-before: owner: color: threads# max-results# show-errors list-details quiet prune strip-cwd-prefix?",
        ],
        operands: Operands::PatternThenPaths { unless: &[] },
        ..PLAIN
    },
    Program {
        names: &["bat", "batcat"],
        short: &["pnAuP lHrm:"],
        long: &[
            "plain number show-all style: language: line-range: highlight-line: color: theme: decorations: wrap: tabs# terminal-width: file-name: no-paging",
        ],
        ..PLAIN
    },
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
        short: &["uR I? d: r@"],
        long: &["utc universal rfc-email rfc-3339: iso-8601? date: reference@"],
        operands: Operands::Formats,
        ..PLAIN
    },
    Program {
        names: &["basename", "dirname"],
        short: &["az s:"],
        long: &["multiple suffix: zero"],
        operands: Operands::Words,
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["tr"],
        short: &["cCdst"],
        long: &["complement delete squeeze-repeats truncate-set1"],
        operands: Operands::Words,
        harmless: true,
        ..PLAIN
    },
    Program { names: &["which"], short: &["a"], long: &["all"], harmless: true, ..PLAIN },
    Program {
        names: &["ls"],
        short: &["1aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ wT# I:"],
        long: &[
            "all almost-all author escape ignore-backups color? directory classify? file-type format: full-time \
                 no-group group-directories-first human-readable si inode indicator-style: literal \
                 numeric-uid-gid quote-name reverse recursive size sort: time: time-style: width# zero \
                 ignore: hide: tabsize#",
        ],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["cat"],
        short: &["AbeEnstTuv"],
        long: &["number number-nonblank show-all show-ends show-tabs show-nonprinting squeeze-blank"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["head", "tail"],
        short: &["qvz nc#", DIGITS],
        long: &["lines# bytes# quiet silent verbose zero-terminated"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["wc"],
        short: &["clmwL"],
        long: &["bytes chars lines words max-line-length"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["stat"],
        short: &["ftxL c:"],
        long: &["file-system terse format: printf: dereference"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["realpath", "readlink"],
        short: &["efmnqsz"],
        long: &[
            "canonicalize canonicalize-existing canonicalize-missing no-newline quiet no-symlinks zero relative-to@ relative-base@",
        ],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["cut"],
        short: &["sz dfcb:"],
        long: &["delimiter: fields: characters: bytes: only-delimited complement output-delimiter: \
                 zero-terminated"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["nl"],
        short: &["p bdfhns: ilvw#"],
        long: &["body-numbering: number-format: number-separator: number-width# starting-line-number#"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["tac"],
        short: &["br s:"],
        long: &["before regex separator:"],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["diff"],
        short: &["abBcdeEiNnpqstTuwyZ !r UCW# IFx:", DIGITS],
        long: &[
            "normal brief report-identical-files context? unified? ed rcs side-by-side width# left-column \
                 suppress-common-lines show-c-function show-function-line: label: expand-tabs initial-tab \
                 !recursive no-dereference new-file ignore-case ignore-tab-expansion ignore-trailing-space \
                 ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: text \
                 strip-trailing-cr minimal speed-large-files color? exclude:",
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
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["du"],
        short: &["abchklmsxS0 d# tB:"],
        long: &[
            "all apparent-size bytes total count-links human-readable si inodes summarize max-depth# null \
                 one-file-system separate-dirs threshold: time? time-style: exclude: block-size:",
        ],
        harmless: true,
        ..PLAIN
    },
    Program {
        names: &["grep", "egrep", "fgrep"],
        short: &["abcEFGhHiIlLnoPqsTUvwxyzZ !rR mABC# e:", DIGITS],
        long: &["extended-regexp fixed-strings basic-regexp perl-regexp regexp: ignore-case no-ignore-case \
                 invert-match word-regexp line-regexp count color? colour? files-with-matches \
                 files-without-match max-count# only-matching quiet silent no-messages byte-offset \
                 with-filename no-filename label: line-number initial-tab null null-data after-context# \
                 before-context# context# text binary-files: include: exclude: exclude-dir: !recursive !dereference-recursive \
                 line-buffered"],
        operands: Operands::PatternThenPaths { unless: &["-e", "--regexp"] },
        wide: Reach::Below,
        harmless: true,
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
