//! Which launchers there are, and which of their options take a value.

mod wider; // launchers that rules which allow do not look behind

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::word::Word;

/// A program that runs the command behind its options.
pub(super) struct Launcher {
    pub(super) name: &'static str,
    /// The command begins after this word, wherever it stands: `bundle exec …`.
    pub(super) after: Option<&'static str>,
    /// Letters of options that take the next word, or the rest of their own.
    pub(super) valued: &'static str,
    /// Letters of options whose value can only be the rest of their own word.
    pub(super) glued: &'static str,
    /// Letters of options without a value.
    pub(super) flags: &'static str,
    /// Names of options that take the next word unless they have `=`.
    pub(super) valued_long: &'static [&'static str],
    /// Names of options without a value, or with `=` only.
    pub(super) flags_long: &'static [&'static str],
    /// Letters and names of options whose value a shell runs.
    pub(super) text: &'static str,
    pub(super) text_long: &'static [&'static str],
    /// Letters and names of options with which nothing is run.
    pub(super) idle: &'static [&'static str],
    /// Whether `-5` is an option.
    pub(super) numbers: bool,
    /// How many words stand between the options and the command.
    pub(super) operands: usize,
    /// Whether `NAME=value` may stand before the command.
    pub(super) assigns: bool,
    /// The words of the command are joined, and a shell runs the text.
    pub(super) joins: bool,
    /// The command ends before one of these words.
    pub(super) until: Option<&'static [&'static str]>,
}

const NONE: Launcher = Launcher {
    name: "",
    after: None,
    valued: "",
    glued: "",
    flags: "",
    valued_long: &[],
    flags_long: &[],
    text: "",
    text_long: &[],
    idle: &[],
    numbers: false,
    operands: 0,
    assigns: false,
    joins: false,
    until: None,
};

/// Launchers that change nothing about what runs behind them.
const PLAIN: &[Launcher] = &[
    Launcher {
        name: "timeout",
        valued: "ks",
        flags: "fpv",
        valued_long: &["kill-after", "signal"],
        flags_long: &["foreground", "preserve-status", "verbose"],
        operands: 1,
        ..NONE
    },
    Launcher { name: "time", flags: "pv", flags_long: &["portability", "verbose"], ..NONE },
    Launcher { name: "nice", valued: "n", valued_long: &["adjustment"], numbers: true, ..NONE },
    Launcher { name: "nohup", ..NONE },
    Launcher { name: "stdbuf", valued: "ioe", valued_long: &["input", "output", "error"], ..NONE },
    Launcher { name: "command", flags: "p", idle: &["v", "V"], ..NONE },
    Launcher { name: "builtin", ..NONE },
    Launcher { name: "noglob", ..NONE },
    Launcher { name: "xargs", ..NONE },
];

/// A launcher that rules which allow may look behind.
pub(super) fn plain(name: &str) -> Option<&'static Launcher> {
    PLAIN.iter().find(|launcher| launcher.name == name)
}

/// A launcher that rules which deny or ask look behind.
pub(super) fn launcher(name: &str, arguments: &[Word]) -> Option<&'static Launcher> {
    // Asked for every command, and most are none.
    static BY_NAME: LazyLock<HashMap<&str, Vec<&Launcher>>> = LazyLock::new(|| {
        let mut by_name: HashMap<&str, Vec<&Launcher>> = HashMap::new();
        for launcher in wider::LAUNCHERS {
            by_name.entry(launcher.name).or_default().push(launcher);
        }
        by_name
    });
    let is_meant = |launcher: &&&'static Launcher| {
        launcher.after.is_none_or(|after| arguments.iter().any(|word| word.literal() == Some(after)))
    };
    let known = BY_NAME.get(name).into_iter().flatten().find(is_meant);
    known.copied().or_else(|| plain(name))
}
