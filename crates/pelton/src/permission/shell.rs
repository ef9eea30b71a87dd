//! What a command line would do, before it runs: taken apart by `pelton-shell`, each command is understood as far as its
//! program is known. Pure: nothing is looked up on the disk.
//!
//! Two readings go side by side. Prohibitions look at every spelling a command has: without quotes, behind launchers, inside
//! of `sh -c`. Allowances look at the one that is written, and only if nothing about it is in doubt.

mod step; // one command
mod arg; // a word, and what is certain about it
mod assigned; // what is set for itself and for others
mod numbers; // variables that hold nothing but numbers
mod launch; // programs that run whatever their words say
mod programs; // the table of programs that only look
mod subcommands; // programs of which some sub-commands only look
mod look; // what a command looks at
mod forms; // programs that follow no table
mod builtins; // what the shell itself tells
mod versions; // what is asked for its version
mod feed; // names that one command finds and another looks at
mod found; // where they are found
mod mention; // what programs that nobody knows may run
mod passed; // what one command makes for another
mod find; // programs with a grammar of their own
mod git;
mod sed;
mod awk;
mod deeds; // what programs do to files
mod outputs; // files that options may name for writing
mod named; // files that words may name
mod held; // what variables may hold
mod declared; // what builtins set them to
mod untold; // files whose names only running it would tell
mod moves; // where commands go
mod sent; // directories whose files say what runs
mod removal; // what is taken away
mod carried; // the same, when its names are written elsewhere in the line
mod veiled; // the same, when it is not written as a removal
mod decoded; // texts that other programs make of those in the line

use pelton_shell::{Command, Doubt, DoubtKind, Script, Unclear};

pub(super) use self::arg::Files;
use self::arg::{Arg, Values};
use self::assigned::is_private;
use self::carried::Carried;
pub(super) use self::deeds::{Deed, Patch, PatchText, names_in_patch};
use self::found::{feed_of, found_names, names_of};
use self::held::Held;
pub(super) use self::look::Look;
use self::mention::commands_mentioned;
pub(super) use self::moves::Move;
use self::moves::certainly_runs;
pub(super) use self::named::Widening;
use self::numbers::Numbers;
pub(super) use self::programs::Reach;
pub(super) use self::removal::Removal;
pub(super) use self::step::Step;
pub(super) use self::step::Within;
use self::step::{asked_about, renamed, step};
use self::untold::{Done, Tale};
use self::veiled::{Run, veiled};
use super::rule::HOLE;
use crate::limits::{COMMANDS_JUDGED_MAX, TEXTS_IN_TEXTS_MAX, TEXTS_JUDGED_BYTES_MAX, TEXTS_JUDGED_MAX};

/// A line, understood.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Its commands, in the order they are written.
    pub steps: Vec<Step>,
    /// What only a rule about everything can vouch for.
    pub doubts: Vec<Open>,
}

/// Something that only a rule about everything can vouch for.
#[derive(Debug)]
pub(super) struct Open {
    /// As written.
    pub text: String,
    /// Why.
    pub why: &'static str,
    /// Whether it may run what nobody sees.
    pub may_run: MayRun,
}

/// Whether what is evaluated once more may run commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MayRun {
    Nothing,
    /// One that these words name.
    Mentioned(String),
    /// Any.
    Anything,
}

/// Whether a command certainly changes nothing, neither on the disk nor for the commands after it.
pub fn is_read_only(command: &str) -> bool {
    let only_looks = |step: &Step| step.writes_nothing() && step.moves.is_none();
    survey(command).is_ok_and(|survey| {
        survey.doubts.is_empty() && !survey.steps.is_empty() && survey.steps.iter().all(only_looks)
    })
}

/// Reads a line.
pub(super) fn survey(command: &str) -> Result<Survey, Unclear> {
    let script = pelton_shell::read(command)?;
    let mut survey = Survey::default();
    survey.add(&script, &[], &mut Budget::new()).then_some(survey).ok_or(Unclear::TooLong)
}

/// How much more is looked at of a line, over all the texts in it: each may hold others, several times over.
#[derive(Debug)]
struct Budget {
    commands: usize,
    texts: usize,
    bytes: usize,
}

impl Budget {
    fn new() -> Self {
        Self { commands: COMMANDS_JUDGED_MAX, texts: TEXTS_JUDGED_MAX, bytes: TEXTS_JUDGED_BYTES_MAX }
    }

    /// Takes a command off, if one is left.
    fn take_command(&mut self) -> Option<()> {
        self.commands = self.commands.checked_sub(1)?;
        Some(())
    }

    /// Takes a text off, if one of its length is left; says which of them it is.
    fn take_text(&mut self, text: &str) -> Option<usize> {
        self.bytes = self.bytes.checked_sub(text.len())?;
        self.texts = self.texts.checked_sub(1)?;
        Some(self.texts)
    }
}

/// Whether a redirection touches no file.
pub(super) fn is_harmless(deed: &Deed) -> bool {
    match deed {
        // The streams are there already: who opens them by name opens nothing new.
        Deed::Write(Files::Named(path)) => {
            matches!(path.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2")
        }
        Deed::Read(_) => true,
        _ => false,
    }
}

impl Survey {
    /// Adds what a line does; `within` are the texts that it stands in, itself one of them. Gives whether all of it could be looked at.
    fn add(&mut self, script: &Script, within: &[Within], budget: &mut Budget) -> bool {
        let numbers = Numbers::of(script);
        let values = Values::of(script, &numbers);
        let found = found_names(script);
        let carried = Carried::of(script);
        let held = Held::of(script);
        let tale = Tale::of(script, &found);
        // What runs for a word must be looking and nothing else, and of a kind that people look at that way: then the word is
        // no more than text.
        let mut all_inner_look = true;
        let mut steps: Vec<Step> = Vec::new();
        // The texts that they have a shell run.
        let mut texts: Vec<(usize, Run)> = Vec::new();
        for (at, command) in script.commands.iter().enumerate() {
            let feed = feed_of(command, script);
            let others = texts.len();
            for (args, targets) in values.rounds(at, &command.words, &command.redirections) {
                if budget.take_command().is_none() {
                    return false;
                }
                let mut step = step(command, &args, &targets, feed.as_ref(), &found, script);
                step.carries(command, script, &carried);
                let veiled = veiled(command, &args, script, &held, &carried);
                step.removals.extend(veiled.removals);
                step.hides = veiled.hides;
                step.moves = step.moves.or(veiled.moves);
                for text in veiled.texts {
                    // Other rounds may say the same.
                    if !texts[others..].iter().any(|(_, known)| *known == text) {
                        texts.push((steps.len(), text));
                    }
                }
                step.holds(command, &args, &targets, &held);
                step.untold = tale.untold(Done::Reading, command, &args, &targets);
                step.untold_target = tale.untold(Done::Changing, command, &args, &targets);
                step.chain = command.place.chain;
                step.names_for_others = names_for_others(command, script);
                step.stands_alone = !command.place.piped && !is_read_by_next(command, script);
                step.certainly_runs = step.stands_alone && certainly_runs(command);
                let is_known = || step.look.is_some() && (is_read_by_next(command, script) || tells(&args));
                all_inner_look &= !command.place.in_substitution || is_known();
                steps.push(step);
            }
        }
        passed::see_files_made(script, &mut steps);
        let widening = named::widening(script);
        steps.iter_mut().for_each(|step| step.widening = widening);
        steps.extend(script.asked_about.iter().map(asked_about));
        if !all_inner_look {
            for step in steps.iter_mut().filter(|step| step.has_commands) {
                step.look = None;
            }
        }
        let is_settled = |doubt: &&Doubt| match doubt.kind {
            // What such commands say is only compared there.
            DoubtKind::Substitution => all_inner_look,
            DoubtKind::Arithmetic => numbers.settle(&doubt.text),
            // Where it is filled, it is judged like any other variable.
            DoubtKind::Array => true,
            _ => false,
        };
        let open = script.doubts.iter().filter(|doubt| !is_settled(doubt));
        self.doubts = open.map(|doubt| Open::of(doubt, script)).collect();
        let mut texts = texts.into_iter().peekable();
        for (at, step) in steps.into_iter().enumerate() {
            let own = self.steps.len();
            let chain = step.chain;
            self.steps.push(Step { within: within.to_vec(), ..step });
            while let Some((_, text)) = texts.next_if(|(of, _)| *of == at) {
                // Whoever makes it so long hides what is run.
                if !self.add_text(&text, chain, within, budget) {
                    let step = &mut self.steps[own];
                    step.hides.get_or_insert_with(|| step.text.clone());
                    break;
                }
            }
            while texts.next_if(|(of, _)| *of == at).is_some() {}
        }
        // Data that the shell evaluates once more.
        let evaluated = script.doubts.iter().filter(|doubt| evaluates(doubt));
        evaluated.flat_map(|doubt| inside_of(&doubt.text)).all(|text| {
            let run = Run { text, in_place: true };
            self.add_text(&run, None, within, budget)
        })
    }

    /// Adds the commands of a text that a shell gets, behind the command that runs it. Gives whether all of it could be looked at.
    fn add_text(&mut self, run: &Run, chain: Option<usize>, within: &[Within], budget: &mut Budget) -> bool {
        let number = budget.take_text(&run.text).filter(|_| within.len() < TEXTS_IN_TEXTS_MAX);
        let Some(number) = number else { return false };
        // One that cannot be read has been told of where it was found.
        let Ok(script) = pelton_shell::read(&run.text) else { return true };
        let within = [within, &[Within { number, in_place: run.in_place, chain }]].concat();
        let mut inside = Self::default();
        let is_whole = inside.add(&script, &within, budget);
        self.steps.extend(inside.steps.into_iter().map(|step| Step { certainly_runs: false, ..step }));
        is_whole
    }
}

impl Open {
    fn of(doubt: &Doubt, script: &Script) -> Self {
        let evaluates = evaluates(doubt);
        let holds_commands = ["@P", "$(", "`"].iter().any(|sign| doubt.text.contains(sign));
        let may_run = match evaluates {
            true if holds_commands => MayRun::Anything,
            // Its value may hold them: it is looked for in all that the line says.
            true => {
                let words = script.commands.iter().flat_map(|command| {
                    let values = command.assignments.iter().map(|assignment| &assignment.value);
                    values.chain(&command.words).map(|word| Arg::of(word).with_holes())
                });
                let said: Vec<String> = words.filter(|word| word.contains(['$', '`'])).collect();
                commands_mentioned(&said.join(" ")).map_or(MayRun::Nothing, MayRun::Mentioned)
            }
            false => MayRun::Nothing,
        };
        Self { text: doubt.text.clone(), why: reason(doubt), may_run }
    }
}

/// Whether the shell evaluates once more what a doubt is about.
fn evaluates(doubt: &Doubt) -> bool {
    matches!(
        doubt.kind,
        DoubtKind::Arithmetic | DoubtKind::Subscript | DoubtKind::Parameter | DoubtKind::EvaluatedArgument
    )
}

/// What stands in a text between `$(` and `)`, and between backticks: `'a[$(rm x)]'`.
fn inside_of(text: &str) -> Vec<String> {
    let begun = text.match_indices("$(").map(|(at, sign)| &text[at + sign.len()..]);
    // What is calculated holds no commands but in further ones.
    let begun = begun.filter(|behind| !behind.starts_with('('));
    let ended = begun.filter_map(|behind| {
        let mut open = 1usize;
        let end = behind.find(|c| {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            open == 0
        })?;
        Some(&behind[..end])
    });
    let quoted = text.split('`').skip(1).step_by(2);
    // Behind a backslash a blank divides nothing yet.
    ended.chain(quoted).map(|inside| inside.replace('\\', "")).collect()
}

/// Whether another command reads what this one writes.
fn is_read_by_next(command: &Command, script: &Script) -> bool {
    let Some(stage) = command.place.stage else { return false };
    let is_next = |it: &Command| {
        it.place.stage.is_some_and(|it| it.pipeline == stage.pipeline && it.number == stage.number + 1)
    };
    script.commands.iter().any(is_next)
}

/// Whether what a command says is of the kind that people put into other commands: names, numbers, dates, lines of files
/// that are looked at. Who asks in there for the user or the environment is asked why.
fn tells(args: &[Arg]) -> bool {
    const TELLING: &[&str] = &[
        "echo",
        "printf",
        "git",
        "date",
        "pwd",
        "basename",
        "dirname",
        "realpath",
        "readlink",
        "wc",
        "seq",
        "find",
        "stat",
        "du",
        "ls",
        "cat",
        "rg",
        "fd",
        "tac",
        "nl",
        "diff",
        "comm",
        "expr",
        "grep",
        "sort",
        "uniq",
        "cut",
        "tr",
        "head",
        "tail",
        "sed",
        "awk",
        "jq",
        "nproc",
        "uname",
        "true",
        "false",
        ":",
        "file",
        "md5sum",
        "sha1sum",
        "sha256sum",
        "cksum",
        "which",
        "command",
        "df",
        "free",
        "uptime",
        "test",
        "[",
        "paste",
        "rev",
        "column",
        "cargo",
        "rustc",
        "node",
        "npm",
        "python3",
        "python",
        "go",
        "docker",
    ];
    args.first().is_none_or(|name| name.literal().is_some_and(|name| TELLING.contains(&name)))
}

/// Whether a command says words for others to take for names: in a substitution, or before a loop that reads them.
fn names_for_others(command: &Command, script: &Script) -> bool {
    if !matches!(command.name(), Some("echo" | "printf")) {
        return false;
    }
    let is_read = |stage: pelton_shell::Stage| {
        script.commands.iter().any(|it| it.place.fed.is_some_and(|fed| fed.pipeline == stage.pipeline))
    };
    command.place.in_substitution || command.place.stage.is_some_and(is_read)
}

fn reason(doubt: &Doubt) -> &'static str {
    match doubt.kind {
        DoubtKind::Background => "it goes on in the background",
        DoubtKind::FunctionDefinition => "a name gets another meaning",
        DoubtKind::Coprocess => "it goes on beside the others",
        DoubtKind::Arithmetic => "names in arithmetic can run commands",
        DoubtKind::Subscript => "a subscript can run commands",
        DoubtKind::Array => "an array is filled",
        DoubtKind::Substitution => "only running it would tell what it becomes",
        DoubtKind::Parameter => "only running it would tell what it becomes",
        DoubtKind::EvaluatedArgument => "a word is evaluated once more",
        DoubtKind::ShellOptions => "it changes how the shell reads what follows",
        DoubtKind::Translation => "its text is looked up in a catalogue",
        DoubtKind::Invisible => "it holds characters that cannot be seen",
        DoubtKind::Descriptor => "it redirects a descriptor that a variable names",
        _ => "it cannot be analysed",
    }
}

#[cfg(test)]
mod tests;
