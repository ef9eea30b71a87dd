//! The analyser against bash itself.
//!
//! A command that the analyser can read is run by bash, in an empty directory and with nothing on the path, so that every command word ends in
//! a function that records its arguments. What bash ran must be what the analyser said, or the analyser must have said that it is not
//! certain.
//!
//! The normal run takes some thousand commands. For a long one: `PELTON_SHELL_CASES=200000 cargo test -p pelton-shell --test against_bash`.

mod bash; // running a command and reading what it ran
mod verdict; // comparing that with what the analyser said
mod grammar; // commands that are mostly right
mod soup; // commands that are mostly wrong
mod corpus; // commands that somebody thought of

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
    property(800, 120, grammar::script, Demand::AllThatIsCertainRuns);
}

#[test]
fn words_of_the_grammar_are_passed_as_they_are_read() {
    property(800, 60, grammar::simple_commands, Demand::AllThatIsCertainRuns);
}

#[test]
fn nothing_unseen_runs_in_a_soup_of_tokens() {
    property(10_000, 14, soup::tokens, Demand::NothingUnseenRuns);
}

#[test]
fn nothing_unseen_runs_in_damaged_commands() {
    property(1_000, 120, soup::damaged, Demand::NothingUnseenRuns);
}

#[test]
fn nothing_unseen_runs_in_the_corpus() {
    let bash = bash::Bash::find();
    let mut readable = 0;
    for command in corpus::NASTY {
        readable += usize::from(pelton_shell::read(command).is_ok());
        if let Err(disagreement) = verdict::check(&bash, command, Demand::NothingUnseenRuns) {
            panic!("{disagreement}");
        }
    }
    assert!(readable * 2 > corpus::NASTY.len(), "only {readable} of {} can be read", corpus::NASTY.len());
}
