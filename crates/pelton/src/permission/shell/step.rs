//! One command of a line, understood: what prohibitions and allowances see of it, and what it does to files.

use std::collections::BTreeMap;

use pelton_shell::{
    Assignment, Command, Redirection, RedirectionKind, Script, Word, behind_plain_launchers,
    further_commands, has_language, reads_scripts, steers,
};

use super::super::rule::{HOLE, blanks_folded};
use super::arg::{Arg, Files};
use super::assigned::{SET_FOR_OTHERS, assigned, is_private, steering};
use super::carried::{Carried, removed_by_feeding};
use super::deeds::{self, Deed, deeds, patch};
use super::feed::{self, Feed};
use super::held::Held;
use super::launch::{base_name, launches};
use super::look::{self, Look};
use super::moves::{Move, moves};
use super::named::{self, Widening, may_name};
use super::passed::{self, RunsFile, files_fed, files_run, texts_told};
use super::removal::{Removal, removals};
use super::{builtins, git, is_harmless, mention, outputs, sed, sent, untold};

/// One command of a line.
#[derive(Debug, Default)]
pub(in super::super) struct Step {
    /// As written.
    pub text: String,
    /// The texts that it stands in, made by the line for a shell, as far as that can be worked out: then it is asked about, and nothing
    /// more.
    pub within: Vec<Within>,
    /// Every spelling that prohibitions know it by, with holes for what is not certain.
    pub seen: Vec<String>,
    /// The spelling that allowances know it by.
    pub plain: String,
    /// Spellings that only a rule without a star vouches for.
    pub exact: Vec<String>,
    /// It runs whatever its words say: no rule with a star vouches for it.
    pub launches: bool,
    /// It gets more words than are written, from `xargs`.
    pub gets_more: bool,
    /// Words of programs that nobody knows, each of which may begin a command.
    pub may_run: Vec<String>,
    /// Files that it runs.
    pub(super) runs_files: Vec<RunsFile>,
    /// Why no rule but one about everything vouches for it.
    pub doubt: Option<String>,
    /// What it looks at, if looking is all it does.
    pub look: Option<Look>,
    /// What its program does to files.
    pub deeds: Vec<Deed>,
    /// The program is one that accepting edits covers, and all it does is known.
    pub is_plain_edit: bool,
    /// Patterns of an edit that would become options, were there files of such names: there must be none.
    pub dashless: Vec<Files>,
    /// It changes files where they are, and makes none of other names.
    pub keeps_names: bool,
    /// What its redirections do to files.
    pub redirected: Vec<Deed>,
    /// A redirection to where only running it would tell.
    pub redirected_somewhere: Option<String>,
    /// Files its words may name, whatever the program makes of them.
    pub may_name: Vec<Files>,
    /// Files its options may name for it to write.
    pub may_write: Vec<Files>,
    /// By which word it reads a file that only running it would tell.
    pub untold: Option<String>,
    /// By which word it changes one.
    pub untold_target: Option<String>,
    /// Texts that the shell may evaluate once more, in which files may be named.
    pub may_evaluate: Vec<String>,
    /// Texts in languages of programs, anywhere in which files may be named.
    pub may_hold: Vec<String>,
    /// What it says names files for other commands.
    pub names_for_others: bool,
    /// What the line has patterns match that they do not match otherwise.
    pub widening: Widening,
    /// Last names of paths that are not certain.
    pub last_names: Vec<String>,
    pub removals: Vec<Removal>,
    /// What it has a shell run, made of a text in the line so that only running it would tell.
    pub hides: Option<String>,
    /// It changes the directory.
    pub moves: Option<Move>,
    pub runs_git: bool,
    /// Directories that git is told to work in.
    pub repositories: Vec<Files>,
    /// Directories whose files say what it runs, besides the one it is run in.
    pub sent_to: Vec<Files>,
    /// Which list of `&&` it stands in: it runs only if everything before it there has succeeded.
    pub chain: Option<usize>,
    /// It stands by itself, not in a pipeline: where it goes, what follows is.
    pub stands_alone: bool,
    /// It runs whatever else happens, in the shell of the line itself.
    pub certainly_runs: bool,
    /// Other commands say what its words are.
    pub(super) has_commands: bool,
    /// Other commands say what it is told. Who only looks may be told anything.
    pub(super) input_is_open: bool,
}

/// A text that a line has a shell run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Within {
    /// Which of all.
    pub number: usize,
    /// The shell of the line itself runs it: where that goes, what follows is.
    pub in_place: bool,
    /// The list of `&&` in which the command stands that runs it.
    pub chain: Option<usize>,
}

pub(super) fn step(
    command: &Command,
    args: &[Arg],
    targets: &[Arg],
    feed: Option<&Feed>,
    found: &BTreeMap<String, Feed>,
    script: &Script,
) -> Step {
    let mut step = Step { text: command.text.trim().to_owned(), ..Step::default() };
    let is_plain_edit = step.see(args, false);
    step.see_text(blanks_folded(&command.text));
    step.see_text(written(args));
    let further = further_commands(command);
    let gets_more = args
        .first()
        .and_then(Arg::literal)
        .is_some_and(|name| matches!(base_name(name), "xargs" | "parallel"));
    let fed = if gets_more { passed::words_fed(command, script) } else { Vec::new() };
    for word in &fed {
        may_name(word, &mut step);
    }
    step.hold_texts(command, args, script);
    step.deeds.extend(patch(command, args, script));
    if passed::reads_names(args) {
        step.deeds.extend(
            passed::words_fed(command, script).iter().filter_map(Arg::probable_files).map(Deed::Read),
        );
    }
    // What `$1` and the like may be in the text of a shell.
    let given: Vec<Arg> = args.iter().skip(1).chain(&fed).cloned().collect();
    let inner = Held::of_commands(&further.commands);
    // Directories that commands of a text change to.
    let mut gone_to: Vec<String> = sent::sent_by_launcher(args);
    for further in &further.commands {
        let mut words: Vec<Arg> = further.words.iter().map(Arg::of).collect();
        step.see(&words, gets_more);
        step.hold_texts(further, &words, script);
        step.deeds.extend(patch(further, &words, script));
        if let Some(Move::To(Files::Named(dir))) = moves(&words) {
            gone_to.push(dir);
        }
        gone_to.extend(sent::sent_by_launcher(&words));
        for dir in &gone_to {
            step.deeds.extend(deeds(&words).deeds.iter().filter_map(|deed| deed.below(dir)));
            step.removals.extend(removals(&words).iter().filter_map(|removal| removal.below(dir)));
            for file in words.iter().skip(1).filter_map(Arg::probable_files) {
                step.may_name.extend(file.below(dir));
            }
        }
        if !fed.is_empty() {
            words.extend(fed.iter().cloned());
            step.deeds.extend(deeds(&words).deeds);
        }
        step.may_run.extend(mention::mentioned(further, &words, script));
        step.runs_files.extend(files_run(&words, reads_scripts(further)));
        step.may_run.extend(further.assignments.iter().filter_map(steering));
        if words.iter().any(Arg::is_given) {
            let places = words.iter().filter(|word| !word.is_given()).chain(&given).cloned();
            let places: Vec<Arg> = places.collect();
            step.deeds.extend(deeds(&places).deeds);
            step.removals.extend(removals(&places));
        }
        for word in words.iter().skip(1) {
            may_name(word, &mut step);
        }
        for redirection in &further.redirections {
            let target = Arg::of(&redirection.target);
            let (reads, writes) = (redirection.kind.reads(), redirection.kind.writes());
            let may_be = inner.rounds(std::slice::from_ref(&target)).concat();
            if target.is_given() || may_be.iter().any(Arg::is_given) {
                let files = given.iter().filter_map(Arg::probable_files);
                step.deeds.extend(files.flat_map(|files| touching(&files, reads, writes)));
            }
            if let Some(files) = target.probable_files() {
                for dir in &gone_to {
                    if let Files::Named(path) = &files
                        && !path.starts_with('/')
                    {
                        let there = Files::Named(format!("{dir}/{path}"));
                        step.deeds.extend(touching(&there, reads, writes));
                    }
                }
                step.deeds.extend(touching(&files, reads, writes));
            }
        }
    }
    if further.unknown {
        step.seen.push(HOLE.to_string());
    }
    let mut found_inputs: Vec<Files> = Vec::new();
    for (redirection, target) in command.redirections.iter().zip(targets) {
        match feed::input_found(redirection, target, found) {
            Some(below) => found_inputs.extend_from_slice(below),
            None => redirect(redirection, target, &mut step),
        }
    }
    step.has_commands = args.iter().chain(targets).any(Arg::has_commands)
        || command.assignments.iter().any(|assignment| Arg::of(&assignment.value).has_commands());
    let (before, doubt) = assigned(command);
    // A program whose name is put together is not the one that is read.
    let is_braced = args.first().is_some_and(|name| name.written.contains('{'));
    let doubt = doubt.or_else(|| is_braced.then(|| "its program is put together by braces".to_owned()));
    let behind = behind_plain_launchers(&command.words);
    let stripped = if before.is_empty() { command.words.len() - behind.words.len() } else { 0 };
    let plain = &args[stripped..];
    step.moves = moves(plain);
    step.look = match doubt.is_none() && before.is_empty() {
        true if args.is_empty() => Some(Look::nothing()),
        true if args[0].literal() == Some("xargs") => feed::xargs(&args[1..], feed),
        // Alone it would wait for somebody to type.
        true if args[0].literal() == Some("read") && is_given_input(command) => {
            builtins::reads(&args[1..]).then(Look::nothing)
        }
        true => looked(args, plain, behind.more_arguments, step.moves.as_ref())
            .or_else(|| feed::named(plain, found)),
        false => None,
    };
    if !found_inputs.is_empty() {
        step.look = step.look.and_then(|look| look.with_found(found_inputs));
    }
    if step.input_is_open && step.look.is_none() {
        step.redirected_somewhere.get_or_insert_with(|| OPEN_INPUT.to_owned());
    }
    step.doubt = doubt.or_else(|| doubtful(args, plain));
    step.gets_more = behind.more_arguments;
    step.launches = launches(plain) || further.hidden;
    step.may_evaluate = evaluated_later(command);
    if step.look.is_none() {
        step.deeds.extend(untold::read_below(command, args));
        step.may_run.extend(mention::mentioned(command, args, script));
        step.may_write = outputs::may_write(args);
        named::may_name_inside(args, &mut step);
    }
    let may_be_told = reads_scripts(command) || step.look.is_none() && mention::is_unknown(command, args);
    step.runs_files.extend(files_run(args, may_be_told));
    step.runs_files.extend(files_fed(command).filter(|_| may_be_told));
    let is_steering = |assignment: &&Assignment| !(command.words.is_empty() && is_private(&assignment.name));
    step.may_run.extend(command.assignments.iter().filter(is_steering).filter_map(steering));
    if args.first().and_then(Arg::literal).is_some_and(|name| SET_FOR_OTHERS.contains(&name)) {
        let values = args[1..].iter().filter_map(|arg| arg.literal()?.split_once('='));
        step.may_run.extend(values.filter_map(|(name, value)| mention::steering(name, &Arg::certain(value))));
    }
    let texts = |args: &[Arg]| blanks_folded(&format!("{before}{}", self::written(args)));
    step.plain = texts(plain);
    step.exact = if plain.len() == args.len() { Vec::new() } else { vec![texts(args)] };
    let is_plain_edit = if stripped == 0 { is_plain_edit } else { deeds(plain).is_plain_edit };
    step.is_plain_edit = is_plain_edit && before.is_empty() && step.doubt.is_none();
    if step.is_plain_edit
        && let Some((patterns, keeps_names)) = sed::edited_in_place(&plain[1..])
        && plain[0].literal().map(base_name) == Some("sed")
    {
        step.dashless = patterns;
        step.keeps_names = keeps_names;
    }
    if step.runs_git {
        git::may_name_from_top(args, &mut step);
    }
    for arg in args.iter().skip(1) {
        may_name(arg, &mut step);
    }
    if !command.words.is_empty() {
        for assignment in &command.assignments {
            may_name(&Arg::of(&assignment.value), &mut step);
        }
    }
    step
}

impl Step {
    /// Whether nothing is on the disk afterwards that was not there before.
    pub fn writes_nothing(&self) -> bool {
        self.look.is_some() && self.redirects_nowhere()
    }

    /// Whether no file has a name afterwards that none had before.
    pub fn makes_no_names(&self) -> bool {
        (self.look.is_some() || self.keeps_names) && self.redirects_nowhere()
    }

    fn redirects_nowhere(&self) -> bool {
        self.redirected_somewhere.is_none() && self.redirected.iter().all(is_harmless)
    }

    /// Whether it stands in a text that the line makes for a shell.
    pub fn is_worked_out(&self) -> bool {
        !self.within.is_empty()
    }

    /// Whether it makes links.
    pub fn makes_links(&self) -> bool {
        let is_symbolic = |word: &str| {
            word.starts_with("--sy") || word.starts_with('-') && !word.starts_with("--") && word.contains('s')
        };
        self.seen.iter().any(|seen| {
            let mut words = seen.split(' ');
            match words.next() {
                Some("ln") => true,
                Some("cp") => words.any(is_symbolic),
                _ => false,
            }
        })
    }

    /// What prohibitions should know of a command: this one, or one that it runs. Gives whether it is one that accepting edits
    /// covers.
    fn see(&mut self, args: &[Arg], gets_more: bool) -> bool {
        let Some((name, rest)) = args.split_first() else { return false };
        self.see_as(args, gets_more);
        if let Some(name) = name.literal() {
            let base = base_name(name);
            if base != name {
                self.see_as(&renamed(base, rest), gets_more);
            }
            // Where others have the name, those of GNU have it with a letter more.
            if let Some(plain) = base.strip_prefix('g').filter(|plain| deeds::is_known(plain)) {
                self.see_as(&renamed(plain, rest), gets_more);
                self.removals.extend(removals(&renamed(plain, rest)));
                self.deeds.extend(deeds(&renamed(plain, rest)).deeds);
            }
            if base == "git" {
                self.runs_git = true;
                self.repositories.extend(sent::repositories(args));
            }
            self.sent_to.extend(sent::sent_for_scripts(args));
        }
        self.removals.extend(removals(args));
        let own = deeds(args);
        self.deeds.extend(own.deeds);
        own.is_plain_edit
    }

    /// Adds what it takes away by names that are written elsewhere in the line.
    pub(super) fn carries(&mut self, command: &Command, script: &Script, carried: &Carried<'_>) {
        // Almost every line takes nothing away, and most that do name it where they do.
        let removes = |seen: &String| seen.contains("rm") || seen.contains("-delete");
        let is_fed = command.name().map(base_name).is_some_and(|name| matches!(name, "xargs" | "parallel"));
        if carried.is_empty() && !is_fed || !self.seen.iter().any(removes) {
            return;
        }
        let further = further_commands(command).commands;
        for command in std::iter::once(command).chain(&further) {
            let words: Vec<Arg> = command.words.iter().map(Arg::of).collect();
            self.removals.extend(carried.removed_by(&words));
        }
        self.removals.extend(removed_by_feeding(command, &further, script));
    }

    /// Adds what its variables may hold, for prohibitions.
    pub(super) fn holds(&mut self, command: &Command, args: &[Arg], targets: &[Arg], held: &Held) {
        for words in held.rounds_and_without(&[args, targets].concat()) {
            let (words, targets) = words.split_at(args.len());
            if words != args {
                self.deeds.extend(deeds(words).deeds);
                words.iter().skip(1).for_each(|word| may_name(word, self));
            }
            for (redirection, target) in command.redirections.iter().zip(targets) {
                let (reads, writes) = (redirection.kind.reads(), redirection.kind.writes());
                let files = target.probable_files().filter(|_| target.literal().is_none() || reads || writes);
                self.deeds.extend(files.into_iter().flat_map(|files| touching(&files, reads, writes)));
            }
        }
    }

    /// Keeps what is written in the language of a program.
    fn hold_texts(&mut self, command: &Command, args: &[Arg], script: &Script) {
        let has_own =
            || command.name().map(base_name).is_some_and(|name| matches!(name, "make" | "gmake" | "yq"));
        if has_language(command) || has_own() {
            let is_code = |text: &String| text.contains(['\'', '"', '(', ' ', '\n']);
            let texts = args.iter().skip(1).map(Arg::with_holes).chain(texts_told(command, script));
            let texts: Vec<String> = texts.filter(is_code).collect();
            if command.name().map(base_name) == Some("sed") {
                self.may_hold.extend(args.iter().skip(1).map(|arg| sed::glued_names(&arg.with_holes())));
            }
            self.may_hold.extend(texts);
        }
    }

    pub(super) fn see_as(&mut self, args: &[Arg], gets_more: bool) {
        let words: Vec<String> = args.iter().map(Arg::with_holes).collect();
        let mut text = blanks_folded(&words.join(" "));
        if gets_more {
            text.push(' ');
            text.push(HOLE);
        }
        self.see_text(text);
    }

    pub(super) fn see_text(&mut self, text: String) {
        if !text.is_empty() && !self.seen.contains(&text) {
            self.seen.push(text);
        }
    }
}

pub(super) fn renamed(name: &str, rest: &[Arg]) -> Vec<Arg> {
    std::iter::once(Arg::certain(name)).chain(rest.iter().cloned()).collect()
}

/// Whether there is something for a command to read.
fn is_given_input(command: &Command) -> bool {
    let is_input = |redirection: &Redirection| {
        redirection.kind == RedirectionKind::Read
            || matches!(redirection.kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
    };
    command.place.conditional || command.place.piped || command.redirections.iter().any(is_input)
}

/// Values that hold commands which run where the value is evaluated once more: `PS4='$(…)'`, in front of a command, by itself, or as a
/// word of `export` and `env`.
fn evaluated_later(command: &Command) -> Vec<String> {
    let own = command.assignments.iter().filter_map(|assignment| assignment.value.literal());
    let words = command.words.iter().skip(1).filter_map(Word::literal);
    let set = words.filter_map(|word| word.split_once('=')).map(|(_, value)| value);
    own.chain(set).filter(|value| value.contains("$(") || value.contains('`')).map(str::to_owned).collect()
}

/// A file that a condition asks about. Nothing is shown of it but whether it is there, which is what a prohibition may be about.
pub(super) fn asked_about(word: &Word) -> Step {
    let arg = Arg::of(word);
    let files = arg.probable_files();
    let last_name = arg.last_name().filter(|_| files.is_none());
    Step {
        text: word.text().to_owned(),
        look: Some(Look::nothing()),
        last_names: last_name.map(str::to_owned).into_iter().collect(),
        deeds: files.map(Deed::Read).into_iter().collect(),
        ..Step::default()
    }
}

pub(super) fn written(args: &[Arg]) -> String {
    let words: Vec<&str> = args.iter().map(|arg| arg.written.as_str()).collect();
    blanks_folded(&words.join(" "))
}

/// What the command looks at. Words that come from elsewhere are looked at too.
fn looked(args: &[Arg], plain: &[Arg], gets_more: bool, moves: Option<&Move>) -> Option<Look> {
    match moves {
        Some(Move::To(_) | Move::Back) => return Some(Look::nothing()),
        Some(Move::Somewhere) => return None,
        None => {}
    }
    if !gets_more {
        // `command -v x` is more than a wrapper.
        let whole = || (plain.len() < args.len()).then(|| look::look(args)).flatten();
        return look::look(plain).or_else(whole).or_else(|| feed::substituted(plain));
    }
    let mut more = plain.to_vec();
    more.push(Arg::unknown());
    look::look(&more)
}

/// Builtins that change what later words mean, or run words in a way of their own.
const UNVOUCHED: &[&str] = &[
    "eval",
    "source",
    ".",
    "exec",
    "trap",
    "enable",
    "hash",
    "alias",
    "unalias",
    "shopt",
    "bind",
    "complete",
    "compopt",
    "fc",
    "history",
    "coproc",
    "mapfile",
    "readarray",
];

/// Builtins that set variables by name.
const NAMING: &[&str] = &[
    "export", "declare", "typeset", "local", "readonly", "read", "unset", "getopts", "let", "printf", "env",
];

/// Why no rule but one about everything vouches for these words.
fn doubtful(args: &[Arg], plain: &[Arg]) -> Option<String> {
    let name = plain.first()?;
    let Some(name) = name.literal() else {
        return Some("only running it would tell which program it is".to_owned());
    };
    if UNVOUCHED.contains(&name) {
        return Some(format!("{name} changes what other words mean"));
    }
    if let Some(arg) = args.iter().find(|arg| !arg.is_sure()) {
        return Some(format!("only running it would tell what {} is", arg.written));
    }
    if NAMING.contains(&name) {
        let variable = |arg: &Arg| {
            let prefix = arg.prefix();
            let name = prefix.split(['=', '[', '+']).next().unwrap_or(prefix);
            let name = name.strip_prefix("-v").unwrap_or(name);
            (!name.is_empty() && steers(name)).then(|| name.to_owned())
        };
        if let Some(variable) = plain[1..].iter().find_map(variable) {
            return Some(format!("{variable} steers other programs"));
        }
    }
    None
}

/// Why a rule about one program does not vouch for what it is told.
const OPEN_INPUT: &str = "only running it would tell what its input is";

fn redirect(redirection: &Redirection, target: &Arg, step: &mut Step) {
    let (reads, writes) = (redirection.kind.reads(), redirection.kind.writes());
    if !reads && !writes {
        if matches!(redirection.kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
            && !target.has_only_values()
        {
            step.input_is_open = true;
            // Documents with commands in them stay asked about, whoever reads them.
            if redirection.kind != RedirectionKind::HereString || !target.is_data() {
                step.redirected_somewhere = Some(OPEN_INPUT.to_owned());
            }
        }
        return;
    }
    match target.literal() {
        Some(path) if redirection.kind != RedirectionKind::Unknown => {
            step.redirected.extend(touching(&Files::Named(path.to_owned()), reads, writes));
        }
        // Looked at like any other file.
        None if !writes && target.is_pipe() => {}
        // One of those that match, or none if they are several.
        None if redirection.kind == RedirectionKind::Read
            && matches!(target.files(), Some(Files::Matching(_))) =>
        {
            step.redirected.extend(target.files().map(Deed::Read));
        }
        _ => {
            let text = redirection.target.text();
            step.redirected_somewhere = Some(format!("only running it would tell which file {text} is"));
            // What it may be, prohibitions should know.
            step.deeds.extend(
                target.probable_files().into_iter().flat_map(|files| touching(&files, reads, writes)),
            );
            // `> {a,}` is `> a`: words that are empty fall away.
            let in_braces = target.in_braces().filter(|text| !text.is_empty());
            step.deeds
                .extend(in_braces.flat_map(|text| touching(&Files::Named(text.to_owned()), reads, writes)));
            step.last_names.extend(target.last_name().map(str::to_owned));
        }
    }
}

/// What a redirection does to a file.
fn touching(files: &Files, reads: bool, writes: bool) -> impl Iterator<Item = Deed> + use<> {
    let read = reads.then(|| Deed::Read(files.clone()));
    read.into_iter().chain(writes.then(|| Deed::Write(files.clone())))
}
