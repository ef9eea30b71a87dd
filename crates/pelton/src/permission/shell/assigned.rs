//! What a command sets for itself and for others.

use pelton_shell::{Assignment, AssignmentKind, Command, is_harmless as does_no_harm, steers};

use super::arg::Arg;
use super::mention;

/// The assignments before a command that allow rules do not look past, as written; and why nobody may.
pub(super) fn assigned(command: &Command) -> (String, Option<String>) {
    let mut before = String::new();
    for assignment in &command.assignments {
        let Assignment { name, kind, value, .. } = assignment;
        let alone = command.words.is_empty();
        // `while IFS= read -r line` says how that one line is taken apart.
        if name == "IFS" && command.name() == Some("read") && value.literal().is_some() {
            continue;
        }
        // Many write this so that nothing waits for a key: it shows what it gets.
        if matches!(name.as_str(), "PAGER" | "GIT_PAGER" | "MANPAGER")
            && *kind == AssignmentKind::Plain
            && !command.words.is_empty()
            && matches!(value.literal(), Some("cat" | ""))
        {
            continue;
        }
        let becomes = Arg::of(value);
        // Nothing but the shell sees it, and what its elements are is only told when it is used.
        if *kind == AssignmentKind::Array && alone && is_private(name) {
            continue;
        }
        // A variable that is set by itself is judged where it is used.
        if !(becomes.has_only_values() || alone && becomes.is_data()) {
            return (before, Some(format!("only running it would tell what {name} becomes")));
        }
        if name == "PWD" {
            return (before, Some("PWD would no longer be the current directory".to_owned()));
        }
        match kind {
            AssignmentKind::Loop | AssignmentKind::Plain | AssignmentKind::Append => {}
            _ => return (before, Some(format!("{name} is an array"))),
        }
        if steers(name) {
            return (before, Some(format!("{name} steers other programs")));
        }
        let is_own = is_private(name) || is_word(name) || does_no_harm(name);
        if alone && !is_own && *kind != AssignmentKind::Loop {
            return (before, Some(format!("{name} may steer other programs")));
        }
        if !alone && !does_no_harm(name) {
            before.push_str(&format!("{name}={} ", value.text()));
        }
    }
    (before, None)
}

/// Builtins that set variables which other programs see.
pub(super) const SET_FOR_OTHERS: &[&str] = &["export", "declare", "typeset", "readonly"];

/// What a variable may make other programs run: whatever its value speaks of.
pub(super) fn steering(assignment: &Assignment) -> Option<String> {
    if does_no_harm(&assignment.name) || assignment.kind == AssignmentKind::Loop {
        return None;
    }
    mention::steering(&assignment.name, &Arg::of(&assignment.value))
}

/// Whether a variable may be set by itself because nothing but the shell sees it: names that programs look for are written
/// in capitals, most of all those of the shell.
pub(super) fn is_private(variable: &str) -> bool {
    variable.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !variable.ends_with("_proxy")
        && variable != "_"
}

/// Words in capitals that programs go by; those that choose what runs are known to [`steers`].
const PROGRAMS_GO_BY: &[&str] = &[
    "BLOCKSIZE",
    "BZIP",
    "BZIP2",
    "COLUMNS",
    "CTAGS",
    "DISPLAY",
    "EMAIL",
    "GZIP",
    "LINES",
    "LOGNAME",
    "MAGIC",
    "MORE",
    "SHLVL",
    "TAPE",
    "TERM",
    "UNZIPOPT",
    "USER",
    "USERNAME",
    "XTERM",
    "ZIPINFO",
    "ZSTD",
];

/// Whether a name is one word in capitals that no program is known to look for: `VERSION`, `COUNT`. Names with more than one word are
/// often those of families that programs look for.
fn is_word(variable: &str) -> bool {
    variable.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && !steers(variable)
        && !PROGRAMS_GO_BY.contains(&variable)
}
