//! What one command of a line makes for another: files that are run in the same line, and texts that others are told.

use pelton_shell::{Command, Part, RedirectionKind, Script};

use super::arg::{Arg, Files};
use super::decoded::{input_of, output_of};
use super::deeds::Deed;
use super::launch::base_name;
use super::mention::commands_mentioned;
use super::veiled::removals_in_text;
use super::{HOLE, Step, renamed};

/// A file that a line makes.
struct Made {
    path: String,
    from: Origin,
}

/// What is in it.
enum Origin {
    /// This text.
    Text(String),
    /// What is in this file.
    CopyOf(String),
    /// What came from elsewhere.
    Fetched,
}

/// Lets prohibitions know what the files are that a line makes and runs: a copy of a program is that program, a text that is
/// written there may be its commands.
pub(super) fn see_files_made(script: &Script, steps: &mut [Step]) {
    if steps.iter().all(|step| step.runs_files.is_empty()) {
        return;
    }
    let made: Vec<Made> = script.commands.iter().flat_map(|command| made_by(command, script)).collect();
    if made.is_empty() {
        return;
    }
    for step in steps {
        for file in std::mem::take(&mut step.runs_files) {
            for made in made.iter().filter(|made| is_same(&made.path, &file.path)) {
                match &made.from {
                    Origin::Text(text) => {
                        step.may_run.extend(commands_mentioned(text));
                        step.removals.extend(removals_in_text(text));
                        step.may_evaluate.push(text.clone());
                    }
                    Origin::CopyOf(program) => step.see_as(&renamed(base_name(program), &file.rest), false),
                    Origin::Fetched => step.see_text(HOLE.to_string()),
                }
            }
        }
    }
}

/// A file that a command runs, and the words it gets.
#[derive(Debug)]
pub(super) struct RunsFile {
    path: String,
    rest: Vec<Arg>,
}

/// The files that a command reads as its input.
pub(super) fn files_fed(command: &Command) -> impl Iterator<Item = RunsFile> + '_ {
    let read = command.redirections.iter().filter(|redirection| redirection.kind == RedirectionKind::Read);
    read.filter_map(|redirection| redirection.target.literal())
        .map(|path| RunsFile { path: path.to_owned(), rest: Vec::new() })
}

/// The files that a command would run: itself, and scripts that an interpreter is given.
pub(super) fn files_run(args: &[Arg], reads_scripts: bool) -> Vec<RunsFile> {
    let Some((name, rest)) = args.split_first() else { return Vec::new() };
    let own = name.literal();
    let own = own.map(|path| RunsFile { path: path.to_owned(), rest: rest.to_vec() });
    let scripts = rest.iter().filter(|_| reads_scripts).filter_map(Arg::literal);
    let scripts = scripts
        .filter(|word| !word.starts_with('-') && !word.is_empty())
        .map(|path| RunsFile { path: path.to_owned(), rest: Vec::new() });
    own.into_iter().chain(scripts).collect()
}

/// Whether a file that was made is the one that is run. One in a directory may be found by its name, where `PATH` says so.
fn is_same(made: &str, run: &str) -> bool {
    let plain = |path: &str| path.trim_start_matches("./").to_owned();
    plain(made) == plain(run) || !run.contains('/') && made.contains('/') && base_name(made) == run
}

fn made_by(command: &Command, script: &Script) -> Vec<Made> {
    let name = command.name().map(base_name);
    let words = || command.words.iter().skip(1).map(Arg::of);
    let mut made = Vec::new();
    let written = command.redirections.iter().filter(|redirection| redirection.kind.writes());
    for path in written.filter_map(|redirection| redirection.target.literal()) {
        // What is in a file that nobody can work out, the user can see.
        let worked_out = || output_of(command, script).text().map(|text| Origin::Text(text.to_owned()));
        let said = said_by(command).or_else(worked_out);
        made.extend(said.map(|from| Made { path: path.to_owned(), from }));
    }
    match name {
        Some("tee" | "sponge") => {
            let mut texts = texts_told(command, script);
            texts.extend(output_of(command, script).text().map(str::to_owned));
            let text = texts.join("\n");
            let files = words().filter_map(|word| word.literal().map(str::to_owned));
            made.extend(files.map(|path| Made { path, from: Origin::Text(text.clone()) }));
        }
        Some("cp" | "mv" | "ln" | "install" | "dd") => {
            let args: Vec<Arg> = command.words.iter().map(|word| program_asked_for(Arg::of(word))).collect();
            let deeds = super::deeds::deeds(&args).deeds;
            let named = |files: &Files| match files {
                Files::Named(path) => Some(path.clone()),
                _ => None,
            };
            let source = deeds.iter().find_map(|deed| match deed {
                Deed::Read(files) | Deed::Remove(files) => named(files),
                _ => None,
            });
            let target = deeds.iter().find_map(|deed| match deed {
                Deed::Write(files) => named(files),
                _ => None,
            });
            if let (Some(source), Some(path)) = (source, target) {
                // In a directory it keeps its name.
                let inside = format!("{}/{}", path.trim_end_matches('/'), base_name(&source));
                made.push(Made { path: inside, from: Origin::CopyOf(source.clone()) });
                made.push(Made { path, from: Origin::CopyOf(source) });
            }
        }
        Some("curl" | "wget") => {
            let mut before = None;
            for word in words() {
                let is_named = before.as_deref().is_some_and(|option: &str| {
                    matches!(option, "--output" | "--output-document")
                        || option.starts_with('-')
                            && !option.starts_with("--")
                            && option.ends_with(['o', 'O'])
                });
                if let Some(path) = word.literal().filter(|_| is_named) {
                    made.push(Made { path: path.to_owned(), from: Origin::Fetched });
                }
                before = word.literal().map(str::to_owned);
            }
        }
        _ => {}
    }
    made
}

/// `"$(which rm)"` is that program.
fn program_asked_for(arg: Arg) -> Arg {
    let [Part::Substitution { inside, .. }] = arg.parts() else { return arg };
    match inside.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["which", name] | ["command", "-v", name] | ["type", "-p" | "-P", name] => Arg::certain(name),
        _ => arg,
    }
}

/// What a command whose output goes to a file writes there, as far as it is written in the line.
fn said_by(command: &Command) -> Option<Origin> {
    let rest = || command.words.iter().skip(1).map(Arg::of);
    match base_name(command.name()?) {
        "echo" | "printf" => Some(Origin::Text(rest().map(|word| said(&word)).collect::<Vec<_>>().join(" "))),
        "cat" => match rest().find_map(|word| word.literal().map(str::to_owned)) {
            Some(file) if file != "-" => Some(Origin::CopyOf(file)),
            _ => Some(Origin::Text(here_texts(command).join(" "))),
        },
        "curl" | "wget" => Some(Origin::Fetched),
        _ => None,
    }
}

/// The texts that stand in the line for a command to read: here-documents, and what an `echo` hands on, before it or in
/// `<(echo …)`.
pub(super) fn texts_told(command: &Command, script: &Script) -> Vec<String> {
    let mut texts = here_texts(command);
    let read = command.redirections.iter().filter(|redirection| redirection.kind.reads());
    let read = read.map(|redirection| &redirection.target).chain(&command.words);
    texts.extend(read.filter_map(|word| {
        let inside = word.text().strip_prefix("<(")?.strip_suffix(')')?;
        Arg::of(word).is_pipe().then(|| text_said(inside)).flatten()
    }));
    if let Some(stage) = command.place.stage
        && let Some(number) = stage.number.checked_sub(1)
    {
        let is_before = |other: &&Command| {
            other.place.stage.is_some_and(|it| it.pipeline == stage.pipeline && it.number == number)
        };
        let before = script.commands.iter().find(is_before);
        if let Some(Origin::Text(text)) = before.and_then(said_by) {
            texts.push(text);
        }
    }
    texts
}

/// What a line says, where it is one command that only says what it is told.
pub(super) fn text_said(line: &str) -> Option<String> {
    let script = pelton_shell::read(line).ok()?;
    let [command] = script.commands.as_slice() else { return None };
    match said_by(command)? {
        Origin::Text(text) => Some(text),
        Origin::CopyOf(_) | Origin::Fetched => None,
    }
}

fn here_texts(command: &Command) -> Vec<String> {
    let is_text = |kind: RedirectionKind| {
        matches!(kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
    };
    let texts = command.redirections.iter().filter(|redirection| is_text(redirection.kind));
    texts.map(|redirection| said(&Arg::of(&redirection.target))).collect()
}

/// A word as a text, with holes for what nobody knows.
fn said(word: &Arg) -> String {
    word.seen_from_here().unwrap_or_else(|| word.with_holes())
}

/// The names that `xargs` and the like get from texts, as far as they stand in the line, and the directories that are searched
/// for them.
pub(super) fn words_fed(command: &Command, script: &Script) -> Vec<Arg> {
    let texts = texts_told(command, script);
    let mut words: Vec<Arg> =
        texts.iter().flat_map(|text| text.split_whitespace()).map(Arg::certain).collect();
    if let Some(text) = input_of(command, script).text() {
        words.extend(
            text.split(|c: char| c.is_whitespace() || c == '\0')
                .filter(|word| !word.is_empty())
                .map(Arg::certain),
        );
    }
    // `parallel rm ::: names`.
    let behind = command.words.iter().skip_while(|word| word.literal() != Some(":::")).skip(1);
    words.extend(behind.map(Arg::of));
    let before = command.place.stage.and_then(|stage| {
        let first = |other: &&Command| {
            other.place.stage.is_some_and(|it| it.pipeline == stage.pipeline && it.number == 0)
        };
        script.commands.iter().find(first).filter(|_| stage.number > 0)
    });
    if let Some(search) = before {
        let args: Vec<Arg> = search.words.iter().skip(1).map(Arg::of).collect();
        words.extend(looked_through(search.name().map(base_name), &args));
    }
    words
}

/// Whether a command reads from its input the names of files that it then reads.
pub(super) fn reads_names(args: &[Arg]) -> bool {
    let Some((name, rest)) = args.split_first() else { return false };
    let has = |word: &str| rest.iter().any(|arg| arg.literal() == Some(word));
    let is_flag = |letter: char| {
        rest.iter().any(|arg| {
            let text = arg.prefix();
            text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
        })
    };
    let from_input = |arg: &Arg| {
        arg.literal()
            .is_some_and(|text| text.starts_with("--") && text.contains("from") && text.ends_with("=-"))
    };
    match name.literal().map(base_name) {
        Some("cpio") => is_flag('o') || is_flag('p') || has("--create") || has("--pass-through"),
        Some("pax") => is_flag('w'),
        Some("zip") => has("-@"),
        Some("tar" | "bsdtar" | "gtar") => {
            has("-T-") || is_flag('T') && has("-") || rest.iter().any(from_input)
        }
        _ => rest.iter().any(from_input),
    }
}

/// Where the names come from that a command writes.
pub(super) fn looked_through(name: Option<&str>, args: &[Arg]) -> Vec<Arg> {
    let has = |options: &[&str]| args.iter().any(|arg| options.contains(&arg.prefix()));
    let operands = |skipped: usize| {
        let mut operands: Vec<Arg> =
            args.iter().filter(|arg| !arg.prefix().starts_with('-')).skip(skipped).cloned().collect();
        if operands.is_empty() {
            operands.push(Arg::certain("."));
        }
        operands
    };
    match name {
        Some("find" | "gfind" | "bfs") => search_starts(args),
        Some("ls") => operands(0),
        // The first word is what is looked for.
        Some("grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack") => {
            operands(usize::from(!has(&["-e", "--regexp", "--files"])))
        }
        Some("fd" | "fdfind") => operands(1),
        Some("git") if has(&["ls-files", "diff", "grep", "ls-tree"]) => vec![Arg::certain(".")],
        _ => Vec::new(),
    }
}

/// Where a `find` begins.
pub(super) fn search_starts(args: &[Arg]) -> Vec<Arg> {
    let is_start = |arg: &&Arg| !arg.prefix().starts_with(['-', '(', '!']);
    let options = args.iter().take_while(|arg| matches!(arg.literal(), Some("-H" | "-L" | "-P"))).count();
    args[options..].iter().take_while(is_start).cloned().collect()
}
