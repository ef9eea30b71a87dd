//! Programs that run other programs: what runs behind them.
//!
//! Two views, for two kinds of rules. [`behind_plain_launchers`] is for rules that allow: it takes off only what changes nothing about the
//! command behind it. [`further_commands`] is for rules that deny or ask: it sees through everything that is known to run something
//! else, and says when it cannot tell what that is.

mod options; // how the options of launchers are read
mod table; // which launchers there are
mod git; // global options, and sub-commands that run something
mod shell; // eval, sh -c, trap: text that is a command again
mod riders; // options and variables of other programs that name a command
mod escape; // programs with a language of their own that can leave it for a shell
mod code; // programs in other languages

use crate::limits::{FURTHER_COMMANDS_MAX, LAUNCHERS_NESTED_MAX};
use crate::script::{Assignment, Command, Redirection, RedirectionKind};
use crate::word::{Part, Word};

use options::Launched;

/// A command behind its launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Behind<'w> {
    /// Its words.
    pub words: &'w [Word],
    /// Whether it gets more arguments than these, as behind `xargs`.
    pub more_arguments: bool,
}

/// The command behind `timeout time nice nohup stdbuf command builtin noglob` with their options and behind bare `xargs`: what a rule that allows
/// looks at.
///
/// ```
/// let script = pelton_shell::read("timeout -k 5 10 nice -n 3 cargo test").unwrap();
/// let behind = pelton_shell::behind_plain_launchers(&script.commands[0].words);
/// assert_eq!(behind.words[0].literal(), Some("cargo"));
/// ```
pub fn behind_plain_launchers(words: &[Word]) -> Behind<'_> {
    let mut behind = Behind { words, more_arguments: false };
    // Each round takes words off, so there are never more rounds than words.
    while let Some(inner) = plain_step(behind.words) {
        behind.more_arguments |= behind.words.first().and_then(Word::literal) == Some("xargs");
        behind.words = inner;
    }
    behind
}

/// One launcher taken off, if it is one that changes nothing and all its options are known.
fn plain_step(words: &[Word]) -> Option<&[Word]> {
    let launcher = table::plain(words.first()?.literal()?)?;
    let launched = options::launched(launcher, words)?;
    (launched.certain && launched.assignments.is_empty() && !launched.words.is_empty())
        .then_some(launched.words)
}

/// What a command runs besides itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Further {
    /// Every further command that is known to run, each as if it had been written by itself. A launcher's command comes before what is
    /// behind that in turn; `git` appears once more without its global options.
    pub commands: Vec<Command>,
    /// Something runs that is not known: a variable as the command, a text that is not literal or cannot be read, input that is run.
    pub unknown: bool,
    /// Some of it rides on an option or a text of a program that is known for something else: who allows that program does not mean
    /// this.
    pub hidden: bool,
}

impl Further {
    fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.commands.extend(other.commands);
        self.unknown |= other.unknown;
        self.hidden |= other.hidden;
    }
}

/// What a command runs besides itself, for rules that deny or ask.
///
/// ```
/// let script = pelton_shell::read("sudo -u root sh -c 'cd /; rm -rf x'").unwrap();
/// let further = pelton_shell::further_commands(&script.commands[0]);
/// let names: Vec<_> = further.commands.iter().map(|command| command.name()).collect();
/// assert_eq!(names, [Some("sh"), Some("cd"), Some("rm")]);
/// assert!(!further.unknown);
/// ```
pub fn further_commands(command: &Command) -> Further {
    let mut further = Further::default();
    let mut waiting: Vec<(Command, usize)> = Vec::new();
    let mut step = directly(command);
    let mut depth = 0;
    loop {
        further.unknown |= step.unknown;
        further.hidden |= step.hidden;
        waiting.extend(step.commands.into_iter().rev().map(|command| (command, depth + 1)));
        let Some((command, deeper)) = waiting.pop() else { break };
        if deeper >= LAUNCHERS_NESTED_MAX || further.commands.len() + waiting.len() >= FURTHER_COMMANDS_MAX {
            further.commands.push(command);
            further.unknown = true;
            break;
        }
        step = directly(&command);
        depth = deeper;
        further.commands.push(command);
    }
    further
}

/// Whether it is known where in its words a program is told what to run: [`further_commands`] has looked there.
///
/// ```
/// let first = |text: &str| pelton_shell::read(text).unwrap().commands.remove(0);
/// assert!(pelton_shell::is_seen_through(&first("sudo rm x")));
/// assert!(pelton_shell::is_seen_through(&first("python3 -c 'print(1)'")));
/// assert!(!pelton_shell::is_seen_through(&first("some-program rm x")));
/// ```
pub fn is_seen_through(command: &Command) -> bool {
    let Some(name) = command.name().map(program) else { return false };
    let arguments = &command.words[1..];
    table::launcher(name, arguments).is_some()
        || matches!(name, "eval" | "trap" | "source" | "." | "git" | "at" | "batch")
        || SHELLS.contains(&name)
        || escape::is_known(name)
        || code::is_known(name)
}

/// Whether a program runs the file that it is given.
///
/// ```
/// let first = |text: &str| pelton_shell::read(text).unwrap().commands.remove(0);
/// assert!(pelton_shell::reads_scripts(&first("sh x")) && pelton_shell::reads_scripts(&first("python3 x.py")));
/// assert!(!pelton_shell::reads_scripts(&first("cat x")));
/// ```
pub fn reads_scripts(command: &Command) -> bool {
    let Some(name) = command.name().map(program) else { return false };
    matches!(name, "source" | ".") || SHELLS.contains(&name) || code::is_known(name)
}

/// Whether a program has a language of its own, in which its words may be written: files can be named anywhere in them.
///
/// ```
/// let first = |text: &str| pelton_shell::read(text).unwrap().commands.remove(0);
/// assert!(pelton_shell::has_language(&first("python3 -c 'print(1)'")) && pelton_shell::has_language(&first("vim x")));
/// assert!(!pelton_shell::has_language(&first("cat x")));
/// ```
pub fn has_language(command: &Command) -> bool {
    command.name().map(program).is_some_and(|name| escape::is_known(name) || code::is_known(name))
}

/// Programs that run a text, a file or their input as commands.
const SHELLS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "csh", "tcsh", "xonsh", "nu"];

/// Launchers that start a shell if they are told no command.
const START_SHELLS: &[&str] = &[
    "sudo",
    "su",
    "doas",
    "runuser",
    "ssh",
    "chroot",
    "unshare",
    "nsenter",
    "script",
    "newgrp",
    "sg",
    "fakeroot",
    "proot",
    "nix-shell",
    "machinectl",
];

/// What a command runs, one step deep.
fn directly(command: &Command) -> Further {
    let Some(first) = command.words.first() else { return riders::variables(command) };
    let arguments = &command.words[1..];
    let Some(name) = first.literal() else {
        let mut further = Further::unknown();
        // Where it becomes nothing, what stands behind it is run: `$sudo rm x`.
        if !arguments.is_empty() && may_become_nothing(first) {
            further.commands.push(inner(command, Vec::new(), arguments));
        }
        return further;
    };
    let name = program(name);
    let mut further = named(command, name, arguments);
    further.add(riders::options(command, name, arguments));
    further.add(riders::variables(command));
    further
}

/// Whether a word may become no argument at all.
fn may_become_nothing(word: &Word) -> bool {
    word.parts().iter().all(|part| match part {
        Part::Parameter { name, plain, quoted } => !quoted || !plain || name == "@",
        Part::Substitution { quoted, .. } => !quoted,
        _ => false,
    })
}

/// What a program runs that is known for it.
fn named(command: &Command, name: &str, arguments: &[Word]) -> Further {
    match name {
        "eval" => shell::eval(command, arguments),
        "trap" => shell::trap(command, arguments),
        "alias" => shell::alias(command, arguments),
        "source" | "." => shell::source(arguments),
        "mapfile" | "readarray" => shell::callback(command, arguments),
        name if SHELLS.contains(&name) => shell::shell(command, arguments),
        "find" | "gfind" | "bfs" => found(command, arguments, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => {
            let mut further = found(command, arguments, &["-x", "-X", "--exec", "--exec-batch"]);
            for word in riders::values(arguments, &["--exec", "--exec-batch"]) {
                further.add(riders::ridden(command, &word));
            }
            further
        }
        "git" => git::git(command, arguments),
        // Runs a command with the numbers of jobs replaced in its words.
        "jobs"
            if arguments
                .first()
                .and_then(Word::literal)
                .is_some_and(|option| option.starts_with('-') && option.contains('x')) =>
        {
            Further { commands: vec![inner(command, Vec::new(), &arguments[1..])], ..Further::default() }
        }
        "at" | "batch" => shell::input(command),
        // The loader of programs runs the one that is named behind its options.
        _ if name == "ld.so" || name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            let options = arguments.iter().take_while(|word| word.literal_prefix().starts_with('-')).count();
            Further {
                commands: vec![inner(command, Vec::new(), &arguments[options..])],
                unknown: options > 0,
                hidden: false,
            }
        }
        _ => match table::launcher(name, arguments) {
            Some(launcher) => {
                let mut further = behind(command, launcher, name);
                further.add(escape::escapes(command, name, arguments).unwrap_or_default());
                further
            }
            None => escape::escapes(command, name, arguments)
                .or_else(|| code::code(command, name, arguments))
                .unwrap_or_default(),
        },
    }
}

/// The program that a command word names: `/usr/bin/env` is `env`.
fn program(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The command behind a launcher of the table.
fn behind(command: &Command, launcher: &table::Launcher, name: &str) -> Further {
    let Some(Launched { assignments, words, texts, certain }) = options::launched(launcher, &command.words)
    else {
        return Further::unknown();
    };
    let mut further = Further { unknown: !certain, ..Further::default() };
    for text in texts {
        further.add(shell::text(command, text));
        // `env -S 'git -C x' push`: the words behind the text are its last ones.
        if name == "env" && !words.is_empty() {
            let all: Vec<Word> = std::iter::once(text).chain(words).cloned().collect();
            further.add(shell::joined(command, &all));
        }
    }
    if words.is_empty() {
        // `parallel` takes its commands from the input then, and some start a shell that does.
        further.unknown |= name == "parallel";
        if START_SHELLS.contains(&name) {
            further.add(shell::from_input(command, |text| shell::text(command, text)));
        }
        return further;
    }
    if launcher.joins {
        further.add(shell::joined(command, words));
    } else {
        further.commands.push(inner(command, assignments, words));
        // Some hand the text to a shell when it is one word (`sudo -s`, `entr -s`), or take `-c` behind other words (`runuser`).
        if let [only] = words
            && only.literal().is_none_or(|text| text.contains([' ', '\t', '\n', ';', '|', '&']))
        {
            further.add(shell::text(command, only));
        }
        if launcher.text.contains('c')
            && let Some(at) = words.iter().position(|word| word.literal() == Some("-c"))
            && let Some(text) = words.get(at + 1)
        {
            further.add(shell::text(command, text));
        }
    }
    if name == "xargs" {
        further.unknown |= input_is_run(words);
    }
    further
}

/// Whether what `xargs` appends or puts in would itself be run.
fn input_is_run(words: &[Word]) -> bool {
    let literal = |word: &Word| word.literal().map(str::to_owned);
    let Some(name) = words.first().and_then(literal) else { return true };
    let replaced = name.contains("{}") || name == "%" || name == "_";
    let is_shell = matches!(program(&name), "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "eval");
    let wants_text =
        is_shell && !words[1..].iter().any(|word| word.literal().is_none_or(|text| text.contains(' ')));
    let last_is_open = words.last().and_then(literal).is_some_and(|last| last == "-c" || last == "-exec");
    replaced
        || wants_text
        || last_is_open
        || table::launcher(program(&name), &words[1..]).is_some() && words.len() == 1
}

/// The commands of `find -exec … ;` and the like.
fn found(command: &Command, arguments: &[Word], options: &[&str]) -> Further {
    let mut further = Further::default();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let Some(text) = word.literal() else {
            // An expansion may be an option; one with a fixed beginning that is no dash cannot.
            further.unknown |= word.literal_prefix().is_empty() && !is_pattern_or_path(word);
            continue;
        };
        if options.contains(&text) {
            let end = after
                .iter()
                .position(|word| matches!(word.literal(), Some(";" | "+")))
                .unwrap_or(after.len());
            further.commands.push(inner(command, Vec::new(), &after[..end]));
            further.unknown |=
                after[..end].first().and_then(Word::literal).is_none_or(|name| name.contains("{}"));
            rest = after.get(end..).unwrap_or_default();
        }
    }
    further
}

/// Whether an uncertain word is at least one word that begins with a path: `~/x`, `*.rs`, `"$dir"`.
fn is_pattern_or_path(word: &Word) -> bool {
    matches!(
        word.parts().first(),
        Some(Part::Tilde(_) | Part::Glob(_) | Part::Parameter { quoted: true, .. })
    )
}

/// A command that stands where another one stands, and reads what that one would.
fn inner(outer: &Command, assignments: Vec<Assignment>, words: &[Word]) -> Command {
    let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
    // Files stay with the outer command: they are opened once.
    let texts = |redirection: &&Redirection| {
        matches!(redirection.kind, RedirectionKind::HereDocument { .. } | RedirectionKind::HereString)
    };
    let redirections = outer.redirections.iter().filter(texts).cloned().collect();
    Command { text, assignments, words: words.to_vec(), redirections, place: outer.place, body: None }
}
