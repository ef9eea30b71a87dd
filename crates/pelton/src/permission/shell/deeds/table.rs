//! Programs that are about files, and how their words name the files that they read and change.

/// How a program names the files it changes.
pub(super) struct Known {
    pub(super) names: &'static [&'static str],
    /// Letters and names of options that take a value, so that it is not taken for a file.
    pub(super) takes: &'static str,
    pub(super) takes_long: &'static [&'static str],
    /// Options whose value is a file that is written.
    pub(super) writes: &'static [&'static str],
    /// Options whose value is a file that is read.
    pub(super) reads: &'static [&'static str],
    /// Words with which nothing is written, only told what would be.
    pub(super) unless: &'static [&'static str],
    pub(super) shape: Shape,
    pub(super) plain_edit: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Every operand is written.
    Writes,
    /// Every operand but the first, which says how, is written.
    ChangesBehindFirst,
    /// Every operand is taken away.
    Removes,
    /// The last operand is written from the others.
    Copies,
    /// The same, and the others are gone.
    Moves,
    /// The first operand is written from the others.
    Archives,
    /// The first operand is read, and the others are written.
    Unpacks,
    /// Every operand is written if there is a word that begins like one of these.
    WritesWith(&'static [&'static str]),
    /// Every operand is read.
    Reads,
    /// Operands are no files.
    Nothing,
}

pub(super) const PLAIN: Known = Known {
    names: &[],
    takes: "",
    takes_long: &[],
    writes: &[],
    reads: &[],
    unless: &[],
    shape: Shape::Writes,
    plain_edit: false,
};

/// Words with which programs that write their files anew only say what they would do.
pub(super) const ONLY_CHECKED: &[&str] =
    &["--check", "--check-only", "-check", "--diff", "--dry-run", "--output=none", "--lint", "-d"];

pub(super) const KNOWN: &[Known] = &[
    Known { names: &["rm", "rmdir"], shape: Shape::Removes, plain_edit: true, ..PLAIN },
    Known { names: &["unlink", "srm", "wipe", "trash", "trash-put"], shape: Shape::Removes, ..PLAIN },
    Known {
        names: &["shred"],
        takes: "ns",
        takes_long: &["iterations", "size", "random-source"],
        shape: Shape::Removes,
        ..PLAIN
    },
    Known {
        names: &["touch"],
        takes: "dtr",
        takes_long: &["date", "time", "reference"],
        reads: &["-r", "--reference"],
        plain_edit: true,
        ..PLAIN
    },
    Known { names: &["mkdir"], takes: "m", takes_long: &["mode"], plain_edit: true, ..PLAIN },
    Known { names: &["mkfifo", "mknod"], takes: "m", takes_long: &["mode"], ..PLAIN },
    Known { names: &["truncate"], takes: "sr", takes_long: &["size", "reference"], ..PLAIN },
    Known { names: &["tee", "sponge"], ..PLAIN },
    Known {
        names: &["cp"],
        takes: "St",
        takes_long: &["suffix", "target-directory", "no-preserve", "sparse"],
        writes: &["-t", "--target-directory"],
        shape: Shape::Copies,
        plain_edit: true,
        ..PLAIN
    },
    Known {
        names: &["mv"],
        takes: "St",
        takes_long: &["suffix", "target-directory"],
        writes: &["-t", "--target-directory"],
        shape: Shape::Moves,
        plain_edit: true,
        ..PLAIN
    },
    Known {
        names: &["ln"],
        takes: "St",
        takes_long: &["suffix", "target-directory"],
        writes: &["-t", "--target-directory"],
        shape: Shape::Copies,
        ..PLAIN
    },
    Known {
        names: &["install"],
        takes: "Sgomt",
        takes_long: &["suffix", "group", "owner", "mode", "target-directory"],
        writes: &["-t", "--target-directory"],
        shape: Shape::Copies,
        ..PLAIN
    },
    Known {
        names: &["rsync", "scp"],
        takes: "efTPiSoFcl",
        takes_long: &["exclude", "include", "rsh", "filter"],
        shape: Shape::Copies,
        ..PLAIN
    },
    Known {
        names: &["chmod", "chown", "chgrp", "setfacl", "chattr"],
        shape: Shape::ChangesBehindFirst,
        ..PLAIN
    },
    Known {
        names: &["gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "compress"],
        takes: "S",
        takes_long: &["suffix"],
        ..PLAIN
    },
    Known {
        names: &["patch"],
        takes: "pidoDFBrVYz",
        writes: &["-o", "--output", "-r", "--reject-file"],
        takes_long: &["input", "output", "directory", "strip"],
        ..PLAIN
    },
    Known { names: &["ed", "ex", "vi", "vim", "nvim", "nano", "emacs"], takes: "c", ..PLAIN },
    Known {
        names: &["sort"],
        takes: "oktTS",
        writes: &["-o", "--output"],
        takes_long: &["output", "key", "field-separator", "temporary-directory", "buffer-size", "parallel"],
        shape: Shape::Reads,
        ..PLAIN
    },
    Known {
        names: &["shuf"],
        takes: "oin",
        writes: &["-o", "--output"],
        takes_long: &["output", "input-range", "head-count"],
        shape: Shape::Reads,
        ..PLAIN
    },
    Known { names: &["tree"], takes: "oLPI", writes: &["-o"], shape: Shape::Reads, ..PLAIN },
    Known {
        names: &["curl"],
        takes: "oDcXHdFAebuKmTxwYyzEtCQrP",
        writes: &["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar", "--output-dir"],
        takes_long: &[
            "output",
            "dump-header",
            "cookie-jar",
            "header",
            "data",
            "request",
            "user",
            "output-dir",
        ],
        shape: Shape::Nothing,
        ..PLAIN
    },
    Known {
        names: &["wget"],
        takes: "OoPaUeitTwQADXI",
        writes: &["-O", "--output-document", "-o", "--output-file", "-P", "--directory-prefix", "-a"],
        takes_long: &["output-document", "output-file", "directory-prefix"],
        shape: Shape::Nothing,
        ..PLAIN
    },
    Known { names: &["split"], takes: "abCnl", shape: Shape::Copies, ..PLAIN },
    Known {
        names: &["csplit"],
        takes: "bnfk",
        writes: &["-f", "--prefix"],
        takes_long: &["prefix", "suffix-format", "digits"],
        shape: Shape::Reads,
        ..PLAIN
    },
    Known { names: &["xxd"], takes: "cglos", shape: Shape::Copies, ..PLAIN },
    Known { names: &["mktemp"], takes: "p", writes: &["-p", "--tmpdir"], takes_long: &["tmpdir"], ..PLAIN },
    Known { names: &["zip"], takes: "tbnxi", shape: Shape::Archives, ..PLAIN },
    Known { names: &["sass", "lessc", "sftp"], shape: Shape::Copies, ..PLAIN },
    Known { names: &["setfattr"], takes: "nvx", takes_long: &["name", "value", "remove"], ..PLAIN },
    Known { names: &["script"], takes: "cEITBOom", takes_long: &["command"], ..PLAIN },
    // Programs that write their files anew, or do so if they are told to.
    Known {
        names: &[
            "rustfmt",
            "black",
            "isort",
            "stylua",
            "swiftformat",
            "dos2unix",
            "unix2dos",
            "fallocate",
            "mmv",
        ],
        takes: "l",
        unless: ONLY_CHECKED,
        ..PLAIN
    },
    Known { names: &["autopep8"], ..PLAIN },
    Known { names: &["rename", "prename", "perl-rename"], shape: Shape::ChangesBehindFirst, ..PLAIN },
    Known { names: &["ruff"], shape: Shape::WritesWith(&["--fix", "format"]), unless: ONLY_CHECKED, ..PLAIN },
    Known { names: &["biome"], shape: Shape::WritesWith(&["--write", "--apply", "--fix"]), ..PLAIN },
    Known { names: &["shfmt", "buf"], shape: Shape::WritesWith(&["-w", "--write"]), ..PLAIN },
    Known {
        names: &["dart", "dprint", "terraform", "tofu", "deno", "zig", "nixpkgs-fmt", "taplo"],
        shape: Shape::WritesWith(&["fmt", "format", "fix"]),
        unless: ONLY_CHECKED,
        ..PLAIN
    },
    Known { names: &["ktlint"], shape: Shape::WritesWith(&["-F", "--format"]), ..PLAIN },
    Known { names: &["rubocop"], shape: Shape::WritesWith(&["-a", "-A", "-x", "--auto", "--fix"]), ..PLAIN },
    Known {
        names: &["standard", "xo", "swiftlint", "oxlint"],
        shape: Shape::WritesWith(&["--fix"]),
        ..PLAIN
    },
    Known {
        names: &["gofmt", "goimports", "gofumpt"],
        takes: "r",
        shape: Shape::WritesWith(&["-w"]),
        ..PLAIN
    },
    Known { names: &["prettier"], shape: Shape::WritesWith(&["--write", "-w"]), ..PLAIN },
    Known { names: &["eslint", "stylelint"], shape: Shape::WritesWith(&["--fix"]), ..PLAIN },
    Known { names: &["clang-format"], shape: Shape::WritesWith(&["-i"]), ..PLAIN },
    Known { names: &["yq"], shape: Shape::WritesWith(&["-i", "--inplace"]), ..PLAIN },
    Known {
        names: &["awk", "gawk"],
        takes: "Fv",
        shape: Shape::WritesWith(&["-iinplace", "inplace"]),
        ..PLAIN
    },
    Known {
        names: &["perl", "ruby"],
        takes: "eEIMmrC",
        shape: Shape::WritesWith(&["-i", "-pi", "-ni"]),
        ..PLAIN
    },
    // Programs that write what an option names.
    Known {
        names: &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "rustc", "go", "pandoc", "tsc", "as"],
        takes: "o",
        writes: &["-o", "--output"],
        takes_long: &["output"],
        shape: Shape::Nothing,
        ..PLAIN
    },
    Known { names: &["strace", "ltrace"], takes: "oeps", writes: &["-o"], shape: Shape::Nothing, ..PLAIN },
    Known { names: &["tcpdump"], takes: "wricsCGWFzy", writes: &["-w"], shape: Shape::Nothing, ..PLAIN },
    Known {
        names: &["ffmpeg", "convert", "magick", "pdftotext", "pdftoppm", "ps2pdf", "qpdf"],
        shape: Shape::Copies,
        ..PLAIN
    },
    Known {
        names: &["uniq"],
        takes: "fsw",
        takes_long: &["skip-fields", "skip-chars", "check-chars"],
        shape: Shape::Copies,
        ..PLAIN
    },
    Known { names: &["unzip"], takes: "dPx", writes: &["-d"], shape: Shape::Unpacks, ..PLAIN },
];

/// Long options of programs that edits cover, which name no files.
pub(super) const EDIT_FLAGS: &[&str] = &[
    "archive",
    "backup",
    "debug",
    "dir",
    "force",
    "ignore-fail-on-non-empty",
    "interactive",
    "no-clobber",
    "no-create",
    "no-dereference",
    "no-preserve-root",
    "no-target-directory",
    "one-file-system",
    "parents",
    "preserve",
    "preserve-root",
    "recursive",
    "reflink",
    "remove-destination",
    "strip-trailing-slashes",
    "update",
    "verbose",
];
