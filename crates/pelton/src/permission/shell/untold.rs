//! Files whose names only running a line would tell: `cat "$(…)"`, `… | xargs cat`, `curl -K list`. A rule that keeps files from being
//! read may mean any of them, so somebody is asked where there is one. What a line sets, finds or says itself is told.

use std::collections::BTreeMap;

use pelton_shell::{
    Assignment, AssignmentKind, Command, Part, Redirection, RedirectionKind, Script, Word, further_commands,
    has_language,
};

use super::arg::{self, Arg};
use super::deeds::{self, Deed};
use super::feed::Feed;
use super::found::{feed_of, names_of};
use super::held::{changes, stand_ins};
use super::launch::{base_name, is_shell};
use super::passed::{reads_names, texts_told, words_fed};
use super::programs::{self, Operands, Takes};
use super::{HOLE, git, mention, numbers};

/// How many variables are followed from one to the next.
const VARIABLES_FOLLOWED_MAX: usize = 8;

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Reading,
    Changing,
}

impl Done {
    fn is_done_by(self, kind: RedirectionKind) -> bool {
        match self {
            Self::Reading => kind.reads(),
            Self::Changing => kind.writes(),
        }
    }
}

/// What a line tells of the names in it.
pub(super) struct Tale<'s> {
    script: &'s Script,
    /// Variables that hold names which other commands find.
    found: &'s BTreeMap<String, Feed>,
    /// Commands of a text for a shell, which sets variables of its own.
    inner: &'s [Command],
    /// The command that runs these.
    outer: Option<&'s Command>,
}

impl<'s> Tale<'s> {
    pub fn of(script: &'s Script, found: &'s BTreeMap<String, Feed>) -> Self {
        Self { script, found, inner: &[], outer: None }
    }

    fn commands(&self) -> impl Iterator<Item = &'s Command> {
        self.script.commands.iter().chain(self.inner)
    }

    /// The first word by which a command reads, or changes, a file that only running it would tell.
    pub fn untold(&self, done: Done, command: &Command, args: &[Arg], targets: &[Arg]) -> Option<String> {
        let redirected = command.redirections.iter().zip(targets);
        let mut redirected = redirected.filter(|(it, _)| done.is_done_by(it.kind)).map(|(_, target)| target);
        if let Some(target) = redirected.find(|target| !self.tells(target, 0)) {
            return Some(target.written.clone());
        }
        // Almost every line says all there is to say.
        let is_open = |text: &str| text.contains(['$', '`']);
        let is_open = is_open(&command.text)
            || command.redirections.iter().any(|redirection| is_open(redirection.target.text()));
        let name = args.first().and_then(Arg::literal).map(base_name);
        let takes_lists = name.is_some_and(|name| LISTED.iter().any(|(of, _)| of.contains(&name)));
        if !is_open && !takes_lists && !reads_names(args) {
            return None;
        }
        if let Some(word) = self.untold_word(done, command, args) {
            return Some(word);
        }
        let further = further_commands(command).commands;
        let does_it_to_what_it_gets = |inner: &Command| {
            let words: Vec<Arg> = inner.words.iter().map(Arg::of).collect();
            Naming::of(done, inner, &words).is_some()
        };
        let is_fed = name.is_some_and(|name| matches!(name, "xargs" | "parallel"));
        if is_fed && further.iter().any(does_it_to_what_it_gets) && !self.is_fed_names(command, args) {
            return Some(command.text.clone());
        }
        let within = Tale { script: self.script, found: self.found, inner: &further, outer: Some(command) };
        further.iter().find_map(|inner| {
            let words: Vec<Arg> = inner.words.iter().map(Arg::of).collect();
            let targets = inner.redirections.iter().filter(|it| done.is_done_by(it.kind));
            let mut targets = targets.map(|redirection| Arg::of(&redirection.target));
            let target = targets.find(|target| !within.tells(target, 0)).map(|target| target.written);
            target.or_else(|| within.untold_word(done, inner, &words))
        })
    }

    /// The same among the words of the command itself.
    fn untold_word(&self, done: Done, command: &Command, args: &[Arg]) -> Option<String> {
        let (name, rest) = args.split_first()?;
        let name = base_name(name.literal()?);
        if done == Done::Reading {
            if let Some(list) = list_of_names(name, rest) {
                return Some(list);
            }
            if reads_names(args)
                && words_fed(command, self.script).is_empty()
                && texts_told(command, self.script).is_empty()
            {
                return Some(command.text.clone());
            }
        }
        if args.iter().all(|arg| arg.literal().is_some()) {
            return None;
        }
        let naming = Naming::of(done, command, args);
        let words = naming.map(|naming| naming.words(rest)).unwrap_or_default();
        let by_options = match done {
            Done::Reading => named_by_options(name, rest),
            Done::Changing => values(rest, deeds::options_that_write(name), |_, _| true).collect(),
        };
        let mut words = words.into_iter().chain(by_options);
        words.find(|word| !self.tells(word, 0)).map(|word| word.written.clone())
    }

    /// Whether what `xargs` is handed are names that the line says or finds.
    fn is_fed_names(&self, command: &Command, args: &[Arg]) -> bool {
        let is_list = |arg: &Arg| arg.literal() == Some("::::");
        let from_list = args.split_first().and_then(|(_, rest)| list_of_names("xargs", rest));
        if args.iter().any(is_list) || from_list.is_some() {
            return false;
        }
        let texts = texts_told(command, self.script);
        let behind = args.iter().skip_while(|arg| arg.literal() != Some(":::")).skip(1);
        feed_of(command, self.script).is_some()
            || !texts.is_empty() && texts.iter().all(|text| !text.contains(HOLE))
            || behind.clone().count() > 0 && behind.clone().all(|word| self.tells(word, 0))
    }

    /// Whether the line tells what a word is, or where the names come from that it may be.
    fn tells(&self, word: &Arg, depth: usize) -> bool {
        word.literal().is_some() || word.parts().iter().all(|part| self.tells_part(part, word, depth))
    }

    fn tells_part(&self, part: &Part, word: &Arg, depth: usize) -> bool {
        match part {
            Part::Literal(_) | Part::Glob(_) | Part::Arithmetic | Part::Tilde(_) | Part::Pipe => true,
            // What several of them become that a line gives itself, nobody has put together.
            Part::Parameter { name, .. } if is_given(name) && has_several(word) && self.gives_words() => {
                false
            }
            Part::Parameter { name, plain: true, .. } => self.tells_variable(name, depth),
            Part::Parameter { name, .. } => {
                is_worked_out(&word.written, name, self.is_set(name)) && self.tells_variable(name, depth)
            }
            // With something around it, it is another name than the one that is looked at.
            Part::Substitution { inside, .. } => {
                tells_itself(inside) && (stands_alone(word) || says_no_letters(inside))
            }
            _ => false,
        }
    }

    /// Whether the line says itself what `$1` and the like are.
    fn gives_words(&self) -> bool {
        self.commands().any(|command| command.place.in_function || command.name() == Some("set"))
    }

    fn is_set(&self, name: &str) -> bool {
        self.commands().flat_map(|command| &command.assignments).any(|it| it.name == name)
    }

    /// Whether all is told that a variable may hold. What nothing in the line sets came with the environment: the line chooses no file
    /// by it.
    fn tells_variable(&self, name: &str, depth: usize) -> bool {
        if self.found.contains_key(name) {
            return true;
        }
        // The last word of the command before, whatever that was.
        if name == "_" || depth >= VARIABLES_FOLLOWED_MAX {
            return false;
        }
        self.commands().all(|command| {
            let of_name = command.assignments.iter().filter(|assignment| assignment.name == name);
            let mut values = of_name.flat_map(values_of);
            values.all(|value| self.tells(&value, depth + 1)) && self.sets_told(command, name, depth)
        })
    }

    /// Whether a command that sets variables by their names sets this one to what is told, if it sets it.
    fn sets_told(&self, command: &Command, name: &str, depth: usize) -> bool {
        if command.words.is_empty() || !arg::sets_by_name(command) {
            return true;
        }
        // `-vx` is `-v x`.
        let names = |word: &str| word == name || word.starts_with('-') && word.ends_with(name);
        let is_named = command.words.iter().skip(1).any(|word| word.literal().is_none_or(names));
        match command.name() {
            Some("read" | "mapfile" | "readarray") => {
                let is_reply = matches!(name, "REPLY" | "MAPFILE");
                !(is_named || is_reply) || !command.place.piped && self.reads_told(command)
            }
            Some("printf" | "getopts") => !is_named,
            // It becomes another name of a variable.
            Some("declare" | "typeset" | "local") if command.words.iter().any(makes_reference) => {
                let sets = |word: &Word| {
                    let text = word.literal_prefix();
                    text.split_once('=').map_or(text, |(set, _)| set) == name
                };
                !command.words.iter().skip(1).any(sets)
            }
            _ => command.words.iter().skip(1).map(Arg::of).all(|word| {
                let sets = word.prefix().split_once('=').is_some_and(|(set, _)| set == name);
                !sets || self.tells(&word, depth + 1)
            }),
        }
    }

    /// Whether what a command reads stands in the line, or is found by it.
    fn reads_told(&self, command: &Command) -> bool {
        // Of a descriptor that is another nobody looks where that leads, unless it is one for writing.
        let is_input = |it: &&Redirection| {
            it.kind.reads()
                || it.kind == RedirectionKind::Duplicate
                    && !matches!(it.descriptor.as_deref(), Some("1" | "2"))
                || matches!(it.kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
        };
        let is_given =
            |outer: &Command| outer.place.piped || outer.redirections.iter().any(|it| is_input(&it));
        let is_descriptor = |word: &Word| word.literal().is_none_or(|text| text.starts_with("-u"));
        if command.words.iter().skip(1).any(is_descriptor) || self.outer.is_some_and(is_given) {
            return false;
        }
        // `exec < list` says for all that follows what they read.
        let says_for_others = |command: &&Command| command.words.is_empty() || command.name() == Some("exec");
        let around = self.script.commands.iter().filter(says_for_others);
        let mut inputs = around.chain([command]).flat_map(|command| &command.redirections).filter(is_input);
        inputs.all(|input| {
            let pipe = input.target.text().strip_prefix("<(").and_then(|text| text.strip_suffix(')'));
            match pipe {
                Some(inside) => names_of(inside).is_some(),
                None => {
                    let is_text = !input.kind.reads() && input.kind != RedirectionKind::Duplicate;
                    is_text && self.tells(&Arg::of(&input.target), 0)
                }
            }
        })
    }
}

/// Whether several variables are parts of a word.
fn has_several(word: &Arg) -> bool {
    word.parts().iter().filter(|part| matches!(part, Part::Parameter { .. })).count() > 1
}

/// Whether a word is what a text, a function or a line is given: `$1`, `$@`.
fn is_given(name: &str) -> bool {
    matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit()) && name != "0"
}

/// Whether an option of `declare` makes a variable another name of one.
fn makes_reference(word: &Word) -> bool {
    word.literal_prefix().strip_prefix('-').is_some_and(|letters| letters.contains('n'))
}

/// What an assignment gives its variable; of more behind what it held before nobody works out what that becomes.
fn values_of(assignment: &Assignment) -> Vec<Arg> {
    match assignment.kind {
        AssignmentKind::Array => assignment.elements.iter().map(Arg::of).collect(),
        AssignmentKind::Append => vec![Arg::unknown()],
        _ => vec![Arg::of(&assignment.value)],
    }
}

/// Where a command reads files whose names it finds by commands of its own: `cp "$(find src -name x)" y`.
pub(super) fn read_below(command: &Command, args: &[Arg]) -> Vec<Deed> {
    if args.iter().all(|arg| !arg.has_commands()) {
        return Vec::new();
    }
    let naming = Naming::of(Done::Reading, command, args);
    let words = naming.map(|naming| naming.words(&args[1..])).unwrap_or_default();
    let found = words.into_iter().filter_map(found_by);
    found.flat_map(|feed| feed.below.into_iter().map(Deed::Read)).collect()
}

/// The directories below which a word finds names.
fn found_by(word: &Arg) -> Option<Feed> {
    let [Part::Substitution { inside, .. }] = word.parts() else { return None };
    names_of(inside).filter(|feed| !feed.are_commits)
}

/// Whether a line says names that stand in it, that it finds, or that are no files of anybody's choice.
fn tells_itself(line: &str) -> bool {
    let line = line.trim();
    if names_of(line).is_some() || numbers::counts(line) || git::prints_hashes(line) {
        return true;
    }
    let Ok(script) = pelton_shell::read(line) else { return false };
    let [command] = script.commands.as_slice() else { return false };
    // What is set for it may be what it says: `TZ=env0 date +.%Z`.
    let words: Option<Vec<&str>> = command.words.iter().map(|word| word.literal()).collect();
    let Some(words) = words.filter(|_| command.assignments.is_empty()) else { return false };
    match words.as_slice() {
        [
            "pwd" | "nproc" | "whoami" | "hostname" | "uname" | "id" | "arch" | "mktemp" | "tty" | "which",
            ..,
        ] => true,
        ["date", words @ ..] => words.iter().all(|word| says_time(word)),
        ["command", "-v", ..] => true,
        // No name of a branch begins with a dot, or has a dot behind a slash. A format says whatever it is told.
        ["git", "rev-parse" | "branch" | "describe" | "symbolic-ref" | "merge-base", words @ ..] => !words
            .iter()
            .any(|word| ["--format", "--sq", "--dirty=", "--broken="].iter().any(|it| word.starts_with(it))),
        ["go", "env", ..] => true,
        _ => false,
    }
}

/// Whether nothing but whole names stands beside what commands say in a word: `"$(pwd)/x"`.
fn stands_alone(word: &Arg) -> bool {
    let is_apart = |pair: &[Part]| match pair {
        [Part::Substitution { .. }, Part::Literal(behind)] => behind.starts_with('/'),
        [Part::Literal(before), Part::Substitution { .. }] => before.ends_with('/'),
        [Part::Substitution { .. }, _] | [_, Part::Substitution { .. }] => false,
        _ => true,
    };
    word.parts().windows(2).all(is_apart)
}

/// Whether all that a line says are hashes, numbers and times in numbers: what stands beside that in a word is no name with letters of
/// somebody's choice, as branches, users and zones are.
fn says_no_letters(line: &str) -> bool {
    if numbers::counts(line) || git::prints_hashes(line) {
        return true;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["nproc"] => true,
        ["date", words @ ..] => words.iter().all(|word| match word.strip_prefix('+') {
            Some(format) => !format.split('%').skip(1).any(|behind| {
                let letter = behind.trim_start_matches(|c: char| "-_0123456789:".contains(c));
                letter.starts_with(|c: char| "aAbBchpPrxXZ".contains(c))
            }),
            None => matches!(*word, "-u" | "-I" | "--utc"),
        }),
        _ => false,
    }
}

/// Whether a word of `date` is an option, or a format of times with nothing but signs between them: other letters are a name, and so are
/// those of a zone, which a variable says.
fn says_time(word: &str) -> bool {
    let Some(format) = word.strip_prefix('+') else { return true };
    let mut rest = format;
    while let Some((before, behind)) = rest.split_once('%') {
        // Between the sign and its letter may be how it is filled up.
        let letter = behind.trim_start_matches(|c: char| "-_0123456789:".contains(c));
        let mut letters = letter.chars();
        let is_time =
            letters.next().is_some_and(|letter| "aAbBcCdDeFgGhHIjklmMNpPrRsSTuUVwWxXyYz".contains(letter));
        if !is_time || !is_between(before) {
            return false;
        }
        rest = letters.as_str();
    }
    is_between(rest)
}

/// Whether letters between two times name nothing: `2026-11-19T04:30:00Z`.
fn is_between(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(c, 'T' | 'Z' | '-' | '_' | ':' | '/' | ' ' | ',' | '+') || c.is_ascii_digit())
        || text == "."
}

/// Whether it is known what a variable becomes that is written with a part cut off or replaced, or with something in its place.
fn is_worked_out(written: &str, name: &str, is_set: bool) -> bool {
    let has_commands = ["$(", "`", "${!", "@}"].iter().any(|sign| written.contains(sign));
    let elements = [format!("${{{name}[@]}}"), format!("${{#{name}")];
    // One of them by its number, and nothing else that is uncertain.
    let is_one = written.split_once(&format!("${{{name}[")).is_some_and(|(_, behind)| {
        let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < behind.len() && rest.starts_with("]}") && written.matches('$').count() == 1
    });
    if is_one || elements.iter().any(|element| written.contains(element.as_str())) {
        return !written.contains("$(") && !written.contains('`');
    }
    let stands_in =
        stand_ins(written).into_iter().any(|(variable, value)| variable == name && !value.contains('$'));
    let simple = |how: &str| {
        let pattern = how.trim_start_matches(['%', '#', '/', ':']).trim_matches('*');
        !pattern.contains(['*', '?', '[', '$'])
    };
    let changed = changes(written).into_iter().find(|(variable, _)| *variable == name);
    !has_commands && (stands_in || changed.is_some_and(|(_, how)| is_set && simple(how)))
}

/// How a program is told files.
enum Naming {
    /// By its operands, as the table of programs that look has its options.
    Listed(&'static programs::Program),
    /// By its operands; these letters of options take a word that names none.
    Operands(&'static str),
    /// The same, behind what is looked for or a text in a language of its own.
    BehindFirst(&'static str),
    /// By any of its words.
    Words,
    /// By words that begin so.
    Beginning(&'static str),
    /// By values of such options: `-d @file`.
    Values(&'static [&'static str]),
}

impl Naming {
    /// How this command is told files to which it does this, if words name any.
    fn of(done: Done, command: &Command, args: &[Arg]) -> Option<Self> {
        match done {
            Done::Reading => Self::of_read(command, args),
            Done::Changing => Self::of_changed(args),
        }
    }

    /// How a command is told the files that it changes or takes away. A directory that it makes is none.
    fn of_changed(args: &[Arg]) -> Option<Self> {
        let (name, rest) = args.split_first()?;
        let name = base_name(name.literal()?);
        let is_in_place = || {
            rest.iter().any(|arg| {
                let text = arg.prefix();
                text.starts_with("--in-place") || text.starts_with("-i") || text.starts_with("-ni")
            })
        };
        Some(match name {
            "mkdir" | "mktemp" => return None,
            "dd" => Self::Beginning("of="),
            "sed" | "gsed" if !is_in_place() => return None,
            "sed" | "gsed" if rest.iter().any(|arg| matches!(arg.literal(), Some("-e" | "-f"))) => {
                Self::Operands("el")
            }
            "sed" | "gsed" => Self::BehindFirst("l"),
            name => Self::Operands(deeds::letters_before_targets(name, rest)?),
        })
    }

    /// How a command is told the files that it reads.
    fn of_read(command: &Command, args: &[Arg]) -> Option<Self> {
        let (name, rest) = args.split_first()?;
        let name = base_name(name.literal()?);
        let has = |word: &str| rest.iter().any(|arg| arg.literal() == Some(word));
        Some(match name {
            // What they tell of a file is not what is in it.
            "ls" | "stat" | "du" | "tree" | "test" | "[" | "realpath" | "readlink" | "basename"
            | "dirname" | "df" | "cd" | "pushd" | "file" | "exa" | "eza" | "lsof" => return None,
            // What they find they hand to others.
            "find" | "fd" | "fdfind" | "gfind" | "bfs" => {
                let runs = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
                runs.iter().any(|option| has(option)).then_some(Self::Words)?
            }
            "source" | "." | "eval" | "set" => Self::Words,
            "xargs" | "parallel" => return None,
            // A text of theirs is run.
            "script" | "su" | "runuser" | "watch" | "flock" | "sg" => Self::Words,
            "git" => {
                let shows = [
                    "show",
                    "diff",
                    "blame",
                    "annotate",
                    "cat-file",
                    "archive",
                    "hash-object",
                    "grep",
                    "format-patch",
                    "whatchanged",
                ];
                let is_patch = |arg: &Arg| {
                    let text = arg.prefix();
                    matches!(text, "-p" | "-u" | "--patch" | "--patch-with-stat" | "-c" | "--cc")
                        || ["-L", "-U", "-S", "-G"].iter().any(|option| text.starts_with(option))
                };
                let logs = has("log") || has("stash") || has("reflog");
                (shows.iter().any(|command| has(command)) || logs && rest.iter().any(is_patch))
                    .then_some(Self::BehindFirst("Cc"))?
            }
            "ag" | "ack" | "pt" | "ugrep" | "ug" | "sift" => Self::BehindFirst("ABCegmt"),
            "m4" | "crontab" => Self::Operands(""),
            "rustc" => Self::Operands("oLlC"),
            "docker" | "podman" | "nerdctl" | "kubectl" | "oc" if has("cp") => Self::Words,
            "curl" | "wget" => Self::Values(&[
                "-d",
                "--data",
                "--data-ascii",
                "--data-binary",
                "--data-raw",
                "--data-urlencode",
                "--url-query",
                "--variable",
                "--json",
                "-F",
                "--form",
                "-T",
                "--upload-file",
                "--post-file",
                "--body-file",
            ]),
            "dd" => Self::Beginning("if="),
            "sqlite3" => Self::Words,
            "gh" | "glab" if has("gist") || has("snippet") => Self::Words,
            "ed" | "ex" | "vi" | "vim" | "nvim" | "view" | "nano" | "emacs" | "yq" | "mail" | "mailx"
            | "mutt" => Self::Operands(""),
            "sed" | "gsed" => match has("-e") || has("-f") {
                true => Self::Operands("el"),
                false => Self::BehindFirst("l"),
            },
            "awk" | "gawk" | "mawk" | "nawk" => match has("-f") {
                true => Self::Operands("Fv"),
                false => Self::BehindFirst("Fv"),
            },
            "tar" | "bsdtar" | "gtar" | "cpio" | "pax" | "7z" | "7za" | "7zz" | "less" | "more" | "bat"
            | "batcat" => Self::Operands(""),
            "aws" | "gsutil" | "gcloud" | "rclone" if has("cp") || has("sync") || has("copy") => {
                Self::Operands("")
            }
            name if is_shell(name) => Self::Words,
            // A text of its own may open any word that it is given.
            _ if has_language(command) => {
                let is_text = |arg: &Arg| {
                    let text = arg.prefix();
                    text.starts_with('-')
                        && !text.starts_with("--")
                        && text.contains(['c', 'e', 'n', 'p', 'r'])
                };
                rest.iter().any(is_text).then_some(Self::BehindFirst(""))?
            }
            name => match programs::program(name) {
                Some(program) => {
                    let names_files = matches!(
                        program.operands,
                        Operands::Paths | Operands::OnePath | Operands::PatternThenPaths { .. }
                    );
                    names_files.then_some(Self::Listed(program))?
                }
                None => match deeds::letters_before_sources(name) {
                    Some(letters) => Self::Operands(letters),
                    None if mention::is_unknown(command, args) => Self::Words,
                    None => return None,
                },
            },
        })
    }

    /// The words of them.
    fn words<'a>(&self, rest: &'a [Arg]) -> Vec<&'a Arg> {
        match self {
            Self::Words => rest.iter().filter(|arg| may_begin_path(arg)).collect(),
            Self::Beginning(sign) => rest.iter().filter(|arg| arg.prefix().starts_with(sign)).collect(),
            Self::Values(options) => {
                let mut words: Vec<&Arg> = values(rest, options, may_be_file).collect();
                words.extend(glued_values(rest, options));
                words.extend(rest.iter().filter(|arg| arg.prefix().starts_with("file:")));
                words
            }
            Self::Operands(letters) => operands(rest, |option| takes_one(option, letters)),
            Self::BehindFirst(letters) => {
                let mut words = operands(rest, |option| takes_one(option, letters));
                words.drain(..words.len().min(1));
                words
            }
            Self::Listed(program) => {
                let mut words = operands(rest, |option| words_taken(program, option));
                if let Operands::PatternThenPaths { unless } = program.operands {
                    let is_given = rest.iter().filter_map(Arg::literal).any(|word| unless.contains(&word));
                    words.drain(..words.len().min(usize::from(!is_given)));
                }
                words
            }
        }
    }
}

/// Whether nothing certain keeps a word from being a path: `--x=$(…)` is an option, whatever comes behind it.
fn may_begin_path(arg: &Arg) -> bool {
    !arg.prefix().starts_with('-')
}

fn takes_one(option: &str, letters: &str) -> usize {
    let is_short = !option.starts_with("--");
    usize::from(is_short && option.chars().last().is_some_and(|letter| letters.contains(letter)))
}

/// How many words an option of a program takes that name no file.
fn words_taken(program: &programs::Program, option: &str) -> usize {
    let known = match option.strip_prefix("--") {
        Some(long) => program.long(long),
        None => option.chars().last().and_then(|letter| program.short(letter)),
    };
    match known.map(|known| known.takes) {
        // The file behind it counts as one.
        Some(Takes::Word | Takes::Number | Takes::NameAndPath) => 1,
        Some(Takes::Two) => 2,
        _ => 0,
    }
}

/// The words that are neither options nor taken by them.
fn operands(rest: &[Arg], taken: impl Fn(&str) -> usize) -> Vec<&Arg> {
    let mut words = Vec::new();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.literal() {
            Some(option) if option.starts_with('-') && option.len() > 1 => {
                for _ in 0..taken(option) {
                    rest.next();
                }
            }
            _ if may_begin_path(word) => words.push(word),
            _ => {}
        }
    }
    words
}

/// The values of options that may name a file, by what the option is and how the value begins.
fn values<'a>(
    rest: &'a [Arg],
    options: &[&str],
    may_name: impl Fn(&str, &str) -> bool,
) -> impl Iterator<Item = &'a Arg> {
    let pairs = rest.windows(2).filter(move |pair| {
        let option = pair[0].literal().filter(|text| options.contains(text));
        option.is_some_and(|option| may_name(option, pair[1].prefix()))
    });
    pairs.map(|pair| &pair[1])
}

/// The same of options that stand in one word with their values: `-d@file`, `--data=@file`.
fn glued_values<'a>(rest: &'a [Arg], options: &[&str]) -> impl Iterator<Item = &'a Arg> {
    rest.iter().filter(move |arg| {
        let text = arg.prefix();
        arg.literal().is_none()
            && options.iter().any(|option| {
                let Some(value) = text.strip_prefix(option) else { return false };
                match option.starts_with("--") {
                    true => value.strip_prefix('=').is_some_and(|value| may_be_file(option, value)),
                    false => may_be_file(option, value),
                }
            })
    })
}

/// Whether the value of such an option may be a file, going by what stands before the first doubt.
fn may_be_file(option: &str, value: &str) -> bool {
    match option {
        "-T" | "--upload-file" | "--post-file" | "--body-file" => true,
        "-F" | "--form" => {
            value.is_empty() || value.ends_with('=') || value.contains("=@") || value.contains("=<")
        }
        "--data-urlencode" | "--url-query" | "--variable" => value.is_empty() || value.contains('@'),
        _ => value.is_empty() || value.starts_with('@'),
    }
}

/// The words behind options that name a file to read, of programs whose other words name none.
fn named_by_options<'a>(name: &str, rest: &'a [Arg]) -> Vec<&'a Arg> {
    let short: &[&str] = match name {
        "grep" | "egrep" | "fgrep" | "rg" | "date" | "file" | "make" | "gmake" => &["-f"],
        "ssh" | "sftp" => &["-F", "-i"],
        "git" => &["-F", "-f"],
        "openssl" => &["-in", "-config", "-key", "-CAfile"],
        "docker" | "podman"
            if rest.iter().any(|arg| matches!(arg.literal(), Some("build" | "compose" | "buildx"))) =>
        {
            &["-f"]
        }
        "kubectl" | "oc" | "helm" | "docker-compose" => &["-f", "-k"],
        _ => &[],
    };
    let is_long = |text: &str| text.starts_with("--") && text.contains("file");
    let pairs = rest.windows(2).filter(|pair| {
        pair[0].literal().is_some_and(|text| short.contains(&text) || is_long(text) && !text.contains('='))
    });
    let glued = rest.iter().filter(|arg| {
        arg.literal().is_none() && arg.prefix().split_once('=').is_some_and(|(option, _)| is_long(option))
    });
    pairs.map(|pair| &pair[1]).chain(glued).collect()
}

/// Programs with options that name a list of names, or of options that name files.
const LISTED: &[(&[&str], &[&str])] = &[
    (&["xargs", "parallel"], &["-a", "--arg-file", "--arg-file="]),
    (&["tar", "bsdtar", "gtar"], &["-T", "--files-from", "--files-from="]),
    (&["rsync"], &["--files-from", "--files-from=", "--include-from", "--include-from="]),
    (&["wget", "aria2c"], &["-i", "--input-file", "--input-file="]),
    (&["curl"], &["-K", "--config", "--config="]),
    (&["wc", "du", "sort"], &["--files0-from", "--files0-from="]),
];

/// An option with a list of names, or of options that name files, which lies on the disk: nobody sees what is in it.
fn list_of_names(name: &str, rest: &[Arg]) -> Option<String> {
    let (_, options) = LISTED.iter().find(|(of, _)| of.contains(&name))?;
    let is_list = |arg: &&Arg| {
        let text = arg.prefix();
        options.iter().any(|option| match option.strip_suffix('=') {
            Some(_) => text.starts_with(option),
            None => text == *option || option.len() == 2 && text.starts_with(option),
        })
    };
    // Names that come through a pipe are judged where they come from.
    let is_input =
        rest.iter().any(|arg| arg.literal().is_some_and(|text| text == "-" || text.ends_with("=-")));
    let list = rest.iter().find(is_list).filter(|_| !is_input || name == "curl")?;
    Some(list.written.clone())
}
