//! The tokens a task may take, as the model is told.

use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, notes, run};

const TOTAL: u64 = 100_000;

/// Rounds with something in them that can be left out.
fn rounds(count: usize) -> Script {
    (0..count).fold(Script::new(), |script, n| {
        let words = format!("Round {n}. {}", "Words upon words. ".repeat(40));
        script.reply([text(words), tool("Glob", json!({"pattern": format!("{n}*")}))])
    })
}

fn budget(stage: &Stage, request: usize) -> Value {
    stage.request(request)["output_config"]["task_budget"].clone()
}

#[tokio::test]
async fn loop_B3_loop_E18_what_a_compaction_folds_away_is_no_longer_left_of_the_task() {
    let too_long = "prompt is too long: 200010 tokens > 200000 maximum";
    let script = rounds(6)
        .step(Step::status(400).error_type("invalid_request_error").message(too_long))
        .reply([text("In short: it was counted.")])
        .reply([text("Done.")])
        .reply([text("Again.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.task_budget = Some(TOTAL));

    run(&mut engine, "Go.").await.assert_completed();
    run(&mut engine, "And again.").await.assert_completed();

    // Until something is folded away, counting is the server's business.
    for request in 1..=7 {
        assert_eq!(budget(&stage, request), json!({"type": "tokens", "total": TOTAL}), "{request}");
        let requests = stage.model.reply_requests();
        let betas = requests[request - 1].header("anthropic-beta").unwrap_or_default();
        assert!(betas.contains("task-budgets-2026-03-13"), "{betas}");
    }
    let noted = notes(&engine.transcript_file().unwrap());
    let compacted = noted.iter().find_map(|(_, reason)| {
        let (before, after) = reason.strip_prefix("compacted from about ")?.split_once(" to ")?;
        Some((before.parse::<u64>().ok()?, after.strip_suffix(" tokens")?.parse::<u64>().ok()?))
    });
    let (before, after) = compacted.unwrap_or_else(|| panic!("{noted:?}"));
    assert!(before > after);
    let left = json!({"type": "tokens", "total": TOTAL, "remaining": TOTAL - (before - after)});
    assert_eq!(budget(&stage, 8), Value::Null, "a summary is no part of the task");
    assert_eq!(budget(&stage, 9), left);
    assert_eq!(budget(&stage, 10), left, "what is gone stays gone");
    stage.assert_all_played();
}

#[tokio::test]
async fn without_a_budget_nothing_is_said_of_one() {
    let stage = Stage::new(Script::new().reply([text("Done.")])).await;
    run(&mut stage.engine(), "Go.").await.assert_completed();
    assert_eq!(budget(&stage, 1), Value::Null);
    assert_eq!(stage.model.reply_requests()[0].header("anthropic-beta"), None);
}
