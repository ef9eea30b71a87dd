use pelton_testkit::{Script, text, tool};

use super::{boundaries, small, summary};
use crate::stage::{Stage, run, sh};

/// How many times the conversation is summed up.
const COMPACTIONS: usize = 50;

#[tokio::test]
async fn what_was_summed_up_is_let_go_at_once_however_often() {
    // A prompt, a command and an answer that fill most of the window.
    let words = "word ".repeat(14_000);
    let mut script = Script::new().step(summary("In short: so far all is well.").always());
    for n in 0..COMPACTIONS + 2 {
        script = script
            .reply([text(words.clone()), tool("Bash", sh(&format!("echo {n}")))])
            .reply([text("Done.")]);
    }
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
    });
    let (mut said, mut compactions, mut most) = (0, 0, (0, 0));
    for n in 0..COMPACTIONS + 2 {
        let told = run(&mut engine, &format!("Round {n}.")).await;
        told.assert_completed();
        said += told.entries().len();
        compactions += boundaries(&told).iter().filter(|boundary| boundary.summary.is_some()).count();
        let held = engine.history();
        let bytes: usize = held.iter().map(|entry| entry.json.len()).sum();
        if n > 2 {
            most = (most.0.max(held.len()), most.1.max(bytes));
        }
    }
    assert!(compactions >= COMPACTIONS - 5, "{compactions} of {said} entries");
    // No more than two rounds and a summary, however much was said.
    assert!(most.0 <= 16 && most.1 < 3 * words.len(), "{most:?} of {said} entries");
    assert!(said > 200, "{said}");
}
