//! Agents are bounded in depth, width and number, and end with the one that started them.

use std::time::{Duration, Instant};

use super::*;
use crate::stage::{holds, prompt, pulling, rest, sh};

/// A model that gives everything it is asked for to others.
fn always_spawns(width: usize) -> Script {
    let calls = (0..width).map(|_| tool("Agent", json!({"description": "more", "prompt": "More."})));
    Script::new()
        .step(Step::reply(calls.collect::<Vec<_>>()).when(When::any().last_user_text("More|Go")).always())
        .step(Step::reply([text("Enough.")]).always())
}

#[tokio::test]
async fn pit_A2_a_model_that_always_spawns_is_stopped_at_every_cap_and_usage_adds_up() {
    // Two at a time, three deep: 2 + 4 + 8.
    let stage = Stage::new(always_spawns(2)).await;
    let told = run(&mut stage.engine(), "Go.").await;
    let outcome = told.assert_completed();
    assert_eq!(ends(&told).len(), 14);
    // Each of the 14 and the main thread; those at the bottom have no such tool and only say a word.
    let all = &outcome.by_model["claude-sonnet-5-5"].usage;
    let own: u64 = news(&told)
        .iter()
        .map(|news| match news.news {
            AgentNews::Ended { done, .. } => done.tokens,
            _ => 0,
        })
        .sum();
    let main = outcome.usage.prompt_tokens() + outcome.usage.output_tokens;
    assert_eq!(all.prompt_tokens() + all.output_tokens, main + own);

    // Width: of three at once, one has no seat.
    let stage = Stage::new(always_spawns(3)).await;
    let mut engine = stage.engine_with(|options| {
        options.agent_limits.running_max = 2;
        options.agent_limits.depth_max = 1;
    });
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(ends(&told).len(), 2);
    let refused = results_in(&stage.request(stage.request_count()));
    let [(_, true, words)] =
        &refused.iter().filter(|(_, is_error, _)| *is_error).cloned().collect::<Vec<_>>()[..]
    else {
        panic!("{refused:?}")
    };
    assert!(words.contains("2 agents are running"), "{words}");

    // In all: the fifth is not started, and the next prompt counts anew.
    let stage = Stage::new(always_spawns(2)).await;
    let mut engine = stage.engine_with(|options| options.agent_limits.started_max = 4);
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(ends(&told).len(), 4);
    assert_eq!(ends(&run(&mut engine, "Go.").await).len(), 4);
}

#[tokio::test]
async fn pit_A2_an_interrupt_ends_all_agents_at_once_and_leaves_nothing_behind() {
    let sleep = format!("sleep 300.{}731", std::process::id());
    let script = Script::new()
        .reply([start("toolu_a", "sleep"), start("toolu_b", "stream")])
        .step(Step::reply([tool("Bash", sh(&sleep))]).when(child("sleep")))
        .step(Step::reply([text("Half"), gate("never")]).when(child("stream")))
        .reply([text("Back.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("Go."));
    let running = async {
        stage.model.wait_at_gate("never").await;
        holds(|| !processes(&sleep).is_empty()).await;
    };
    let (mut told, ()) = pulling(&mut events, running).await;

    let asked = Instant::now();
    interrupter.interrupt();
    told.extend(rest(&mut events).await);

    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    drop(events);
    let told = Told(told);
    assert_eq!(told.outcome().terminal, Terminal::AbortedToolExecution);
    assert_eq!(told.results(), ["toolu_a", "toolu_b"], "each is answered once");
    let mut stopped = ends(&told);
    stopped.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = ["toolu_a", "toolu_b"].map(|call| (call.to_owned(), AgentEnd::Stopped));
    assert_eq!(stopped, expected);
    holds(|| processes(&sleep).is_empty()).await;
    // The session is usable at once.
    run(&mut engine, "Go on.").await.assert_completed();
    stage.model.assert_clean();
}

#[tokio::test]
async fn dropping_the_stream_ends_its_agents() {
    let sleep = format!("sleep 300.{}732", std::process::id());
    let script = Script::new()
        .reply([start("toolu_a", "sleep")])
        .step(Step::reply([tool("Bash", sh(&sleep))]).when(child("sleep")));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    {
        let mut events = engine.submit(prompt("Go."));
        pulling(&mut events, holds(|| !processes(&sleep).is_empty())).await;
    }
    holds(|| processes(&sleep).is_empty()).await;
}

#[tokio::test]
async fn a_slow_reader_stalls_only_itself() {
    let script = Script::new()
        .reply([start("toolu_a", "talk")])
        .step(Step::reply([tool("Glob", json!({"pattern": "*"}))]).when(When::any().system(CHILD)).times(60))
        .step(Step::reply([text("Said.")]).when(When::any().system(CHILD)))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let told = {
        let mut events = engine.submit(prompt("Go."));
        let mut told = until(&mut events, |event| matches!(event, Event::Agent(_))).await;
        // Nobody reads for a while: the queue fills, and everything behind it waits.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut slow = 0;
        while let Some(event) = futures::StreamExt::next(&mut events).await {
            slow += 1;
            if slow % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            told.push(event);
        }
        Told(told)
    };
    told.assert_completed();
    let calls = news(&told).iter().filter(|news| matches!(news.news, AgentNews::Progress { .. })).count();
    assert_eq!(calls, 60, "nothing is lost");
    stage.assert_all_played();
}

/// Processes with this command line.
pub fn processes(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.trim() == command {
            found.push(line);
        }
    }
    found
}
