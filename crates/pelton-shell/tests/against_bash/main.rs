//! The analyser against bash itself.
//!
//! A command that the analyser can read is run by bash, in an empty directory and with nothing but `cat` on the path, so that every command word ends in
//! a function that records its arguments. What bash ran must be what the analyser said, or the analyser must have said that it is not
//! certain.
//!
//! The normal run takes some thousand commands. For a long one: `PELTON_SHELL_CASES=200000 cargo test -p pelton-shell --test against_bash`.

mod bash; // running a command and reading what it ran
mod verdict; // comparing that with what the analyser said
mod grammar; // commands that are mostly right
mod soup; // commands that are mostly wrong
mod builtins; // arguments that bash may evaluate
mod corpus; // commands that somebody thought of
#[path = "../bypasses/hidden.rs"]
mod hidden; // ways to hide a command

use proptest::test_runner::{Config, TestCaseError, TestError, TestRng, TestRunner};

use verdict::Demand;

/// As many commands as the environment says, other ones each time; or the usual ones, the same each time.
fn runner(usual: u32) -> TestRunner {
    let config =
        |cases| Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    match std::env::var("PELTON_SHELL_CASES").ok().and_then(|cases| cases.parse().ok()) {
        Some(cases) => TestRunner::new(config(cases)),
        None => {
            let chance = TestRng::deterministic_rng(Config::default().rng_algorithm);
            TestRunner::new_with_rng(config(usual), chance)
        }
    }
}

/// Makes commands from rows of numbers, and checks each.
fn property(usual: u32, longest: usize, make: fn(&[u8]) -> String, demand: Demand) {
    let bash = bash::Bash::find();
    let strategy = proptest::collection::vec(proptest::num::u8::ANY, 4..longest);
    let outcome = runner(usual).run(&strategy, |choices| {
        verdict::check(&bash, &make(&choices), demand).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        // The numbers that made the command tell nobody anything.
        Err(TestError::Fail(disagreement, _)) => panic!("{disagreement}"),
        Err(abort) => panic!("{abort}"),
    }
}

#[test]
fn commands_of_the_grammar_run_as_they_are_read() {
    property(600, 120, grammar::script, Demand::AllThatIsCertainRuns);
}

#[test]
fn words_of_the_grammar_are_passed_as_they_are_read() {
    property(600, 60, grammar::simple_commands, Demand::AllThatIsCertainRuns);
}

#[test]
fn nothing_unseen_runs_in_a_soup_of_tokens() {
    property(6_000, 14, soup::tokens, Demand::NothingUnseenRuns);
}

#[test]
fn nothing_unseen_runs_in_tokens_at_right_places() {
    property(4_000, 8, soup::framed, Demand::NothingUnseenRuns);
}

#[test]
fn nothing_unseen_runs_in_damaged_commands() {
    property(700, 120, soup::damaged, Demand::NothingUnseenRuns);
}

#[test]
fn nothing_unseen_runs_in_the_corpus() {
    // No paths: whatever they name would be run. The recorder goes by other names than `rm`.
    let hidden = hidden::SEEN
        .iter()
        .chain(hidden::DOUBTED)
        .filter(|command| !command.contains('/'))
        .map(|command| command.replace("rm", "n1"));
    let commands: Vec<_> = corpus::NASTY.iter().map(|command| (*command).to_owned()).chain(hidden).collect();
    let bash = bash::Bash::find();
    let mut readable = 0;
    for command in &commands {
        readable += usize::from(pelton_shell::read(command).is_ok());
        if let Err(disagreement) = verdict::check(&bash, command, Demand::NothingUnseenRuns) {
            panic!("{disagreement}");
        }
    }
    assert!(readable * 5 > commands.len() * 3, "only {readable} of {} can be read", commands.len());
}

/// What must come out of the words of each of these, whatever bash does with the rest.
#[test]
fn words_of_the_corpus_are_passed_as_they_are_read() {
    let bash = bash::Bash::find();
    for command in corpus::WORDS {
        let script = pelton_shell::read(command).unwrap_or_else(|unclear| panic!("{command:?}: {unclear}"));
        assert!(
            script.commands.iter().all(|it| it.words.iter().all(|word| word.literal().is_some())),
            "{command:?}"
        );
        if let Err(disagreement) = verdict::check(&bash, command, Demand::AllThatIsCertainRuns) {
            panic!("{disagreement}");
        }
    }
}

#[test]
fn messages_in_quoted_here_documents_are_passed_as_they_are_read() {
    let bash = bash::Bash::find();
    for message in [
        "a",
        "a\n\nb",
        "it's \"quoted\"",
        "$x `y` $(z)",
        "a\\\nb\\",
        ")",
        "(",
        "\ta",
        "'",
        "a\n\n",
        "{a,b} * ~",
        "# a",
        "EO",
        "é",
    ] {
        let command = format!("n1 -m \"$(cat <<'EOF'\n{message}\nEOF\n)\" a");
        let script = pelton_shell::read(&command).unwrap_or_else(|unclear| panic!("{command:?}: {unclear}"));
        let argv: Vec<_> =
            script.commands[0].words.iter().map(|word| word.literal().expect("certain").to_owned()).collect();
        assert_eq!(bash.run(&command).argvs, [argv], "{command:?}");
    }
}
