//! Removals that are not written as such: by a program whose name is put together, with words that stand in a variable, in a text
//! that another command hands to a shell, or in one with variables in it. What is found here is only asked about, so everything
//! that might be meant counts.

use pelton_shell::{AssignmentKind, Command, DoubtKind, Part, Script, Unclear, further_commands};

use super::HOLE;
use super::arg::Arg;
use super::carried::{Carried, words_of};
use super::decoded::{Output, input_of, inside_pipe, output_inside, words_become};
use super::held::Held;
use super::launch::{base_name, is_shell};
use super::moves::{Move, moves};
use super::passed::{text_said, texts_told};
use super::removal::{Removal, removals};
use super::renamed;

/// What a shell runs in a line besides what is written there as a command.
#[derive(Debug, Default)]
pub(super) struct Veiled {
    /// What that may take away.
    pub removals: Vec<Removal>,
    /// Texts that are run, as far as they can be worked out.
    pub texts: Vec<Run>,
    /// Where it goes by a program that a variable names.
    pub moves: Option<Move>,
    /// What the line makes of a text of its own so that only running it would tell.
    pub hides: Option<String>,
}

/// A text that is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub text: String,
    /// The shell of the line itself runs it: where that goes, what follows is.
    pub in_place: bool,
}

/// What a command may run and take away besides what its words say.
pub(super) fn veiled(
    command: &Command,
    args: &[Arg],
    script: &Script,
    held: &Held,
    carried: &Carried<'_>,
) -> Veiled {
    let mut veiled = Veiled::default();
    veiled.see(command, args, script);
    // Most commands stand in no pipeline and have no words that others say.
    let may_launch = command.place.piped || args.iter().any(Arg::has_commands);
    for inner in may_launch.then(|| further_commands(command).commands).into_iter().flatten() {
        let words: Vec<Arg> = inner.words.iter().map(Arg::of).collect();
        veiled.see(&inner, &words, script);
    }
    veiled.removals.extend(written_removals(command, args, script, held, carried));
    if args.first().is_some_and(|name| name.literal().is_none()) {
        veiled.moves = held.rounds(args).into_iter().find_map(|round| moves(&split(args, round)));
    }
    veiled
}

impl Veiled {
    /// Adds what a shell gets from other programs.
    fn see(&mut self, command: &Command, args: &[Arg], script: &Script) {
        let name = args.first().and_then(Arg::literal).map(base_name);
        let in_place = matches!(name, Some("eval" | "source" | "." | "trap"));
        for (output, written) in texts_run(command, args, script) {
            match output {
                // A shell does not run any of it.
                Output::Text(text) if is_cut_short(&text) => {}
                // One that is too long to be read could say anything, and what becomes of a NUL is for shells to say.
                Output::Text(text) if text.contains('\0') || pelton_shell::read(&text).is_err() => {
                    self.hides = Some(written);
                }
                Output::Lines(text) if !lines_stand_alone(&text) => self.hides = Some(written),
                Output::Text(text) | Output::Lines(text) => {
                    self.removals.extend(removals_in_text(&text));
                    self.texts.push(Run { text, in_place });
                }
                Output::Hidden => self.hides = Some(written),
                Output::Elsewhere => {}
            }
        }
    }
}

/// Whether a shell finds no end of the one line that a text is: it reads all of a line before it runs any of it.
fn is_cut_short(text: &str) -> bool {
    let is_one_line = !text.trim_end_matches('\n').contains('\n') && !text.contains("<<");
    is_one_line && matches!(pelton_shell::read(text), Err(Unclear::Unfinished(_)))
}

/// Whether each line of a text does what it does whichever of the others are run: then all of them together are what some of them may do.
fn lines_stand_alone(text: &str) -> bool {
    const CHANGING: &[&str] = &[
        "cd",
        "pushd",
        "popd",
        "set",
        "shopt",
        "export",
        "declare",
        "typeset",
        "local",
        "readonly",
        "read",
        "mapfile",
        "readarray",
        "alias",
        "unalias",
        "eval",
        "source",
        ".",
        "unset",
        "exec",
        "enable",
        "hash",
        "umask",
    ];
    text.lines().all(|line| {
        let Ok(script) = pelton_shell::read(line) else { return line.trim().is_empty() };
        let stays = |command: &Command| {
            let sets = command.words.is_empty() && !command.assignments.is_empty();
            !sets && command.name().is_none_or(|name| !CHANGING.contains(&name))
        };
        !line.ends_with('\\')
            && !line.contains("<<")
            && script.doubts.iter().all(|doubt| doubt.kind != DoubtKind::FunctionDefinition)
            && script.commands.iter().all(stays)
    })
}

/// The texts that a shell gets from other programs: behind a pipe, from `<(…)`, and in words of `eval` and `sh -c`. With each what is
/// written for it.
fn texts_run(command: &Command, args: &[Arg], script: &Script) -> Vec<(Output, String)> {
    let Some((name, rest)) = args.split_first() else { return Vec::new() };
    let known = name.literal().map(base_name);
    let is_shell = known.is_some_and(is_shell);
    if let Some(text) = known.and_then(|name| called_back(name, rest)) {
        return vec![(Output::Text(text), written(rest))];
    }
    if known.is_some_and(|name| {
        !is_shell && !matches!(name, "eval" | "source" | "." | "trap" | "xargs" | "at" | "batch" | "parallel")
    }) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    // Each line is a command for them.
    let runs_lines = match known {
        Some("at" | "batch") => true,
        Some("parallel") => rest.iter().all(|arg| arg.prefix().starts_with('-')),
        _ => false,
    };
    if runs_lines {
        return vec![(input_of(command, script), "what it reads".to_owned())];
    }
    let is_input = |arg: &Arg| {
        matches!(arg.literal(), Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-s" | "-"))
    };
    let has_script = rest.iter().any(|arg| !arg.prefix().starts_with('-') && !arg.is_pipe());
    let is_fed = is_shell && !has_script || rest.iter().any(is_input);
    let through_pipe = || "what comes through the pipe".to_owned();
    match (known, script_of_fed_shell(rest)) {
        (Some("xargs"), Some((text, sign))) => {
            texts.extend(filled_in(&text, sign, input_of(command, script)).map(|it| (it, through_pipe())));
        }
        (Some("xargs"), None) if runs_shell(rest) => texts.push((input_of(command, script), through_pipe())),
        _ if is_fed && known != Some("trap") => texts.push((input_of(command, script), through_pipe())),
        _ => {}
    }
    let targets = command.redirections.iter().filter(|it| it.kind.reads()).map(|it| it.target.text());
    let pipes = rest.iter().filter(|arg| arg.is_pipe()).map(|arg| arg.written.as_str()).chain(targets);
    texts.extend(
        pipes.filter_map(|written| Some((output_inside(inside_pipe(written)?, script), written.to_owned()))),
    );
    // A word of a shell is run only where it is told to.
    let is_option = |arg: &Arg| arg.prefix().starts_with('-') && arg.prefix().contains('c');
    let runs_words = !is_shell || rest.iter().any(is_option);
    // What stands beside that in a word is a part of the text.
    let is_made = |word: &&Arg| word.parts().len() > 1 && word.literal().is_none();
    // What a variable gets bit by bit, or is printed into it.
    let is_gathered = |word: &Arg| {
        word.parts().iter().any(|part| {
            let Part::Parameter { name, .. } = part else { return false };
            let assignments = script.commands.iter().flat_map(|command| &command.assignments);
            let mut appended = assignments.filter(|it| it.kind == AssignmentKind::Append);
            appended.any(|it| it.name == *name) || script.commands.iter().any(|it| prints_into(it, name))
        })
    };
    if known == Some("eval") && rest.iter().any(|word| is_made(&word) || is_gathered(word)) {
        texts.push((words_become(rest, script), written(rest)));
    }
    let made = rest.iter().filter(|_| runs_words && (is_shell || known == Some("trap")));
    let made = made.filter(|word| is_shell && is_made(word) || is_gathered(word));
    texts.extend(made.map(|word| (words_become(std::slice::from_ref(word), script), word.written.clone())));
    texts.extend(literal_text(known, is_shell, rest).map(|text| (Output::Text(text), written(rest))));
    for word in args.iter().filter(|_| runs_words) {
        for part in word.parts() {
            match part {
                Part::Substitution { inside, .. } => {
                    texts.push((output_inside(inside, script), word.written.clone()));
                }
                Part::Parameter { name, .. } => {
                    let said = values_said(name, script);
                    texts.extend(said.map(|output| (output, word.written.clone())));
                }
                _ => {}
            }
        }
    }
    texts
}

fn written(words: &[Arg]) -> String {
    words.iter().map(|word| word.written.as_str()).collect::<Vec<_>>().join(" ")
}

/// The command that a builtin is told to call.
fn called_back(name: &str, rest: &[Arg]) -> Option<String> {
    let option = match name {
        "compgen" | "complete" | "mapfile" | "readarray" => "-C",
        "fc" => "-e",
        "bind" => "-x",
        _ => return None,
    };
    let at = rest.iter().position(|arg| arg.literal() == Some(option))?;
    let text = rest.get(at + 1)?.literal()?;
    // `"\C-a": command`
    Some(text.split_once(':').filter(|_| name == "bind").map_or(text, |(_, command)| command).to_owned())
}

/// The text of `sh -c` and `eval`, where it is as it stands. One that is given words of its own is judged with those.
fn literal_text(known: Option<&str>, is_shell: bool, rest: &[Arg]) -> Option<String> {
    let text = match known {
        Some("eval") => rest.iter().map(Arg::literal).collect::<Option<Vec<&str>>>()?.join(" "),
        _ if is_shell => {
            let behind = rest.iter().skip_while(|arg| !is_told(arg)).skip(1);
            behind.into_iter().find(|arg| !arg.prefix().starts_with('-'))?.literal()?.to_owned()
        }
        _ => return None,
    };
    let is_given = |(at, _): (usize, &str)| {
        text[at + 1..].trim_start_matches('{').starts_with(|c: char| c.is_ascii_digit() || "@*".contains(c))
    };
    (!text.match_indices('$').any(is_given)).then_some(text)
}

/// What commands say that a variable gets its value from, and what it is read from.
fn values_said<'s>(name: &'s str, script: &'s Script) -> impl Iterator<Item = Output> + 's {
    let all = script.commands.iter().flat_map(|command| &command.assignments);
    let values = all.filter(move |assignment| assignment.name == name).flat_map(|it| it.value.parts());
    let said = values.filter_map(|part| match part {
        Part::Literal(text) => Some(Output::Text(text.clone())),
        Part::Substitution { inside, .. } => Some(output_inside(inside, script)),
        _ => None,
    });
    let reads = move |command: &&Command| {
        matches!(command.name(), Some("read" | "mapfile" | "readarray"))
            && command.words.iter().skip(1).any(|word| word.literal() == Some(name))
    };
    said.chain(script.commands.iter().filter(reads).map(|command| input_of(command, script)))
}

/// Whether a `printf -v` gives this variable its value.
fn prints_into(command: &Command, name: &str) -> bool {
    let is_named =
        |pair: &[&str]| pair[0] == "-v" && pair[1] == name || pair[0].strip_prefix("-v") == Some(name);
    let words: Vec<&str> = command.words.iter().filter_map(|word| word.literal()).collect();
    command.name() == Some("printf") && words.windows(2).any(is_named)
}

/// The text of the shell that `xargs` starts, if that has one of its own as it stands, and the sign in it for which lines of the input stand.
/// What it is handed are words then; `None` if the text runs those.
fn script_of_fed_shell(words: &[Arg]) -> Option<(String, Option<String>)> {
    let at = words.iter().position(|word| word.literal().map(base_name).is_some_and(is_shell))?;
    let text = literal_text(words[at].literal().map(base_name), true, &words[at + 1..]).or_else(|| {
        let behind = words[at + 1..].iter().skip_while(|word| !is_told(word)).skip(1);
        let text = behind.into_iter().find(|arg| !arg.prefix().starts_with('-'))?.literal()?;
        (!runs_what_it_is_given(text)).then(|| text.to_owned())
    })?;
    let mut options = words[..at].iter().filter_map(Arg::literal);
    let sign = options.find_map(|option| {
        match option.strip_prefix("-I").or_else(|| option.strip_prefix("--replace=")) {
            Some("") => Some(None),
            Some(sign) => Some(Some(sign.to_owned())),
            None if matches!(option, "-i" | "--replace") => Some(Some("{}".to_owned())),
            None => None,
        }
    });
    let sign = match sign {
        Some(None) => options.next().map(str::to_owned),
        sign => sign.flatten(),
    };
    Some((text, sign))
}

/// Whether a text for a shell may run a word that it is given.
fn runs_what_it_is_given(text: &str) -> bool {
    let Ok(script) = pelton_shell::read(text) else { return true };
    let is_plain = |command: &Command| match command.words.first() {
        Some(name) => name.literal().is_some_and(|name| {
            let name = base_name(name);
            !is_shell(name)
                && further_commands(command).commands.is_empty()
                && !matches!(name, "eval" | "source" | "." | "trap")
        }),
        None => true,
    };
    !script.commands.iter().all(is_plain)
}

/// A text with each line of an input in the place of a sign; nothing if the sign is not in it.
fn filled_in(text: &str, sign: Option<String>, input: Output) -> impl Iterator<Item = Output> {
    let sign = sign.filter(|sign| text.contains(sign.as_str()));
    let outputs: Vec<Output> = match (sign, input) {
        (None, _) => Vec::new(),
        (Some(sign), Output::Text(lines) | Output::Lines(lines)) => {
            lines.lines().map(|line| Output::Text(text.replace(&sign, line.trim_start()))).collect()
        }
        (Some(_), other) => vec![other],
    };
    outputs.into_iter()
}

/// Whether a word tells a shell that the next one is its text.
fn is_told(arg: &Arg) -> bool {
    let letters = arg.prefix().strip_prefix('-').unwrap_or_default();
    letters.contains('c') && !letters.starts_with('-')
}

/// Whether `xargs` is told to start a shell.
fn runs_shell(words: &[Arg]) -> bool {
    words.iter().filter_map(Arg::literal).any(|word| is_shell(base_name(word)))
}

/// What a command takes away by what is written in it.
fn written_removals(
    command: &Command,
    args: &[Arg],
    script: &Script,
    held: &Held,
    carried: &Carried<'_>,
) -> Vec<Removal> {
    let values = command.assignments.iter().filter_map(|assignment| assignment.value.literal());
    let set = command.words.iter().skip(1).filter_map(|word| Some(word.literal()?.split_once('=')?.1));
    let mut removed: Vec<Removal> = values.chain(set).flat_map(removals_when_evaluated).collect();
    let Some((name, rest)) = args.split_first() else { return removed };
    let known = name.literal().map(base_name);
    let runs_text = known.is_some_and(|name| is_shell(name) || matches!(name, "eval" | "source" | "."));
    // Almost every command is another one.
    if !(known.is_none_or(is_removing) || runs_text) {
        return removed;
    }
    for round in held.rounds(args) {
        removed.extend(removals_within(&split(args, round)));
    }
    if known.is_none() {
        // Whatever it is called, it is told what `rm` is told.
        if rest.iter().any(takes_directories) {
            removed.extend(removals(&renamed("rm", rest)));
        }
        removed.extend(removals_within(carried.loose()));
        removed.extend(removals_in_text(&with_what_is_said(args)));
    }
    if runs_text {
        let mut texts = texts_told(command, script);
        texts.push(rest.iter().map(as_source).collect::<Vec<_>>().join(" "));
        texts.extend(rest.iter().filter(|arg| arg.literal().is_none()).map(as_source));
        texts.push(with_what_is_said(rest));
        removed.extend(texts.iter().flat_map(|text| removals_in_text(text)));
    }
    removed
}

/// What a value takes away where it is evaluated once more: `PS4='$(…)'`, `x='a[$(…)]'; echo $((x))`.
fn removals_when_evaluated(value: &str) -> Vec<Removal> {
    let inside = value.split_once("$(").and_then(|(_, behind)| Some(behind.rsplit_once(')')?.0));
    let inside =
        inside.or_else(|| value.split_once('`').and_then(|(_, behind)| Some(behind.rsplit_once('`')?.0)));
    inside.map(removals_in_text).unwrap_or_default()
}

fn is_removing(name: &str) -> bool {
    matches!(name, "rm" | "rmdir" | "find")
}

/// Whether a word is an option of `rm` that takes directories along.
fn takes_directories(arg: &Arg) -> bool {
    let letters = arg.prefix().strip_prefix('-').unwrap_or_default();
    letters == "-recursive"
        || letters.contains(['r', 'R']) && letters.chars().all(|letter| "rRfvidI".contains(letter))
}

/// The words that a command gets where a variable holds several.
fn split(written: &[Arg], filled: Vec<Arg>) -> Vec<Arg> {
    let several = |(written, filled): (&Arg, Arg)| match filled.literal() {
        Some(text) if written.literal().is_none() && text.contains(char::is_whitespace) => words_of(text),
        _ => vec![filled],
    };
    written.iter().zip(filled).flat_map(several).collect()
}

/// What is taken away by commands that begin anywhere among these words.
fn removals_within(words: &[Arg]) -> Vec<Removal> {
    let begins = |at: &usize| words[*at].literal().map(base_name).is_some_and(is_removing);
    (0..words.len()).filter(begins).flat_map(|at| removals(&words[at..])).collect()
}

/// What is taken away where a text is run.
pub(super) fn removals_in_text(text: &str) -> Vec<Removal> {
    // Few texts speak of it.
    if !["rm", "find"].iter().any(|name| text.contains(name)) {
        return Vec::new();
    }
    let Ok(script) = pelton_shell::read(text) else { return Vec::new() };
    let further = script.commands.iter().flat_map(|command| further_commands(command).commands);
    let commands: Vec<Command> = script.commands.iter().cloned().chain(further).collect();
    let words = commands.iter().map(|command| command.words.iter().map(Arg::of).collect::<Vec<_>>());
    words.flat_map(|words| removals_within(&words)).collect()
}

/// Words as the text that they become, with what an `echo` in them says: `bash -c "$(echo …)"`.
fn with_what_is_said(args: &[Arg]) -> String {
    let says = |part: &Part| matches!(part, Part::Substitution { .. });
    if !args.iter().any(|arg| arg.parts().iter().any(says)) {
        return String::new();
    }
    let said = |part: &Part| match part {
        Part::Literal(text) | Part::Glob(text) => text.clone(),
        Part::Substitution { inside, .. } => text_said(inside).unwrap_or_default(),
        _ => HOLE.to_string(),
    };
    let words: Vec<String> = args.iter().map(|arg| arg.parts().iter().map(said).collect()).collect();
    words.join(" ")
}

/// A word as the text that it becomes, in which what is not certain is written as before.
fn as_source(arg: &Arg) -> String {
    let written = |part: &Part| match part {
        Part::Literal(text) | Part::Glob(text) => text.clone(),
        Part::Parameter { name, .. } => format!("${{{name}}}"),
        Part::Substitution { inside, .. } => format!("$({inside})"),
        Part::Tilde(_) => "~".to_owned(),
        _ => HOLE.to_string(),
    };
    match arg.literal() {
        Some(text) => text.to_owned(),
        None => arg.parts().iter().map(written).collect(),
    }
}
