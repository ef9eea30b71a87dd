//! What bash ran, compared with what the analyser said.

use pelton_shell::{
    AssignmentKind, Command, Doubt, DoubtKind, Script, Word, further_commands, read, steers, variables_set,
};

use crate::bash::{Bash, Ran};

/// How much is asked of the analyser.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Bash runs nothing that the analyser does not list.
    NothingUnseenRuns,
    /// And it runs all of those that are certain and stand where nothing decides whether they run.
    AllThatIsCertainRuns,
}

/// `Err`: how they disagree.
pub fn check(bash: &Bash, command: &str, demand: Demand) -> Result<(), String> {
    let Ok(script) = read(command) else { return Ok(()) };
    if demand == Demand::NothingUnseenRuns && !crate::soup::is_finite(command) {
        return Ok(());
    }
    // A function may be anything from now on, and may call itself: it is doubted, and not run here.
    if script.doubts.iter().any(|doubt| doubt.kind == DoubtKind::FunctionDefinition) {
        return Ok(());
    }
    let ran = bash.run(command);
    let seen = Seen::of(&script);
    for argv in &ran.argvs {
        if !seen.lists(argv) {
            return Err(format!("bash ran {argv:?}, which is not listed\n{}", show(command, &script, &ran)));
        }
    }
    if demand == Demand::AllThatIsCertainRuns
        && !stops_early(&script)
        && let Some(missing) = seen.certain().find(|argv| !ran.argvs.contains(argv))
    {
        return Err(format!("bash did not run {missing:?}\n{}", show(command, &script, &ran)));
    }
    Ok(())
}

/// Whether bash may find an error in it when it runs: in arithmetic, or because an element of an array cannot be set for one command.
fn stops_early(script: &Script) -> bool {
    let is_arithmetic = |doubt: &Doubt| doubt.kind == DoubtKind::Arithmetic;
    script.doubts.iter().any(is_arithmetic)
        || script.commands.iter().any(|command| {
            let is_array = |kind| matches!(kind, AssignmentKind::Element | AssignmentKind::Array);
            !command.words.is_empty()
                && command.assignments.iter().any(|assignment| is_array(assignment.kind))
        })
}

/// What the analyser said.
struct Seen {
    commands: Vec<Command>,
    unknown: bool,
}

impl Seen {
    fn of(script: &Script) -> Self {
        let mut commands = script.commands.clone();
        let mut unknown = false;
        for command in &script.commands {
            let further = further_commands(command);
            commands.extend(further.commands);
            // A command word that is not literal is matched below.
            unknown |= further.unknown && command.name().is_some();
            unknown |= variables_set(command).iter().any(|name| steers(name));
        }
        // Arithmetic and subscripts may run what stands in a variable.
        unknown |= script.doubts.iter().any(|doubt| {
            matches!(
                doubt.kind,
                DoubtKind::Arithmetic
                    | DoubtKind::Subscript
                    | DoubtKind::EvaluatedArgument
                    | DoubtKind::ShellOptions
                    | DoubtKind::Parameter
                    | DoubtKind::Descriptor
            )
        });
        Self { commands, unknown }
    }

    fn lists(&self, argv: &[String]) -> bool {
        self.unknown || self.commands.iter().any(|command| fits(&command.words, argv))
    }

    /// Commands that must run.
    fn certain(&self) -> impl Iterator<Item = Vec<String>> {
        self.commands.iter().filter_map(|command| {
            let place = command.place;
            let decided = place.conditional || place.in_background || place.in_function || place.in_process;
            let argv: Vec<String> =
                command.words.iter().map(|word| Some(word.literal()?.to_owned())).collect::<Option<_>>()?;
            // Names of the generator; a redirection may fail, a slash is not looked for on the path.
            let recorded = argv.first()?.starts_with('n')
                && !argv.first()?.contains('/')
                && command.redirections.is_empty();
            (!decided && recorded).then_some(argv)
        })
    }
}

/// Whether these words can have become those arguments.
fn fits(words: &[Word], argv: &[String]) -> bool {
    match (words.split_first(), argv.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((word, words)), argv_split) => match word.literal() {
            Some(literal) => argv_split.is_some_and(|(first, rest)| first == literal && fits(words, rest)),
            // Uncertain words may become any number of arguments; the certain ones behind them must still follow in order.
            None if uncertain_count(word) => (0..=argv.len()).any(|taken| fits(words, &argv[taken..])),
            None => argv_split.is_some_and(|(first, rest)| {
                (word.doubts().brace || first.starts_with(word.literal_prefix())) && fits(words, rest)
            }),
        },
    }
}

/// Whether it may become other than one argument.
fn uncertain_count(word: &Word) -> bool {
    let doubts = word.doubts();
    doubts.parameter || doubts.substitution || doubts.brace || doubts.arithmetic || doubts.glob
}

fn show(command: &str, script: &Script, ran: &Ran) -> String {
    let listed: Vec<Vec<&str>> =
        script.commands.iter().map(|command| command.words.iter().map(Word::text).collect()).collect();
    format!(
        "command: {command:?}\nlisted: {listed:?}\ndoubts: {:?}\nran: {:?}\nbash said: {}",
        script.doubts, ran.argvs, ran.stderr
    )
}
