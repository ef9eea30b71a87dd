//! Prompts that come while the engine is busy.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pelton::{Engine, Event, Priority, Prompt, QueueError, Terminal, transcript};
use pelton::{QUEUED_BYTES_MAX, QUEUED_PROMPTS_MAX};
use pelton_testkit::{Script, Step, error, gate, text, tool};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hooks::{hook, on, said};
use crate::probe::Notes;
use crate::stage::{
    Stage, Told, is_start_of, last_user_blocks, prompt, pulling, rest, results_in, run, sh, text_of, until,
};

/// What was reported about queued prompts: `+` consumed, `-` completed.
fn reported(told: &Told) -> Vec<(char, Vec<Uuid>)> {
    let report = |event: &Event| match event {
        Event::PromptsConsumed(ids) => Some(('+', ids.clone())),
        Event::PromptsCompleted(ids) => Some(('-', ids.clone())),
        _ => None,
    };
    told.0.iter().filter_map(report).collect()
}

fn texts(request: &Value) -> Vec<&str> {
    last_user_blocks(request).iter().filter_map(|block| block["text"].as_str()).collect()
}

/// A copy of the transcript as it is now: what a kill at this moment would leave.
fn killed_here(stage: &Stage, file: &Path) -> PathBuf {
    let copy = stage.path("killed.jsonl");
    std::fs::copy(file, &copy).unwrap();
    copy
}

fn waiting_in(file: &Path) -> Vec<Uuid> {
    transcript::read(file).unwrap().queued.iter().map(|queued| queued.id).collect()
}

async fn submit_queued(engine: &mut Engine) -> Told {
    let mut events = engine.submit_queued().expect("nothing waits");
    Told(rest(&mut events).await)
}

#[tokio::test]
async fn loop_Z7_a_prompt_for_the_next_question_is_in_it_also_where_a_stream_broke() {
    let broken = Step::reply([text("One. "), gate("asked"), error("api_error", "broken")]);
    let stage = Stage::new(Script::new().step(broken).reply([text("Two.")])).await;
    let mut engine = stage.engine();
    let queue = engine.queue();
    let mut events = engine.submit(prompt("Count."));
    let mut told = until(&mut events, |event| matches!(event, Event::Message(_))).await;
    let add = async { queue.add(prompt("Quickly!"), Priority::Next).await.unwrap() };
    let (more, id) = pulling(&mut events, add).await;
    told.extend(more);
    stage.model.open("asked");
    told.extend(rest(&mut events).await);
    drop(events);
    let told = Told(told);
    assert_eq!(told.transitions(), ["stream_cut_retry"]);
    assert_eq!(texts(&stage.request(2)).last(), Some(&"Quickly!"));
    assert_eq!(reported(&told), [('+', vec![id]), ('-', vec![id])]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z7_pit_K7_a_prompt_for_the_next_question_is_in_it_behind_the_results() {
    let look = tool("Look", json!({"name": "a", "ms": 100})).id("toolu_a");
    let script = Script::new().reply([look]).reply([text("Both done.")]);
    let stage = Stage::new(script).await;
    stage.write("notes.txt", "remember the milk");
    let mut engine = stage.engine_with(|options| options.tools.extend(Notes::default().tools()));
    let queue = engine.queue();
    let mut events = engine.submit(prompt("Look."));
    let mut told = until(&mut events, |event| is_start_of(event, "toolu_a")).await;
    let (more, id) = pulling(&mut events, async {
        queue.add(prompt("And mind @notes.txt!"), Priority::Next).await.unwrap()
    })
    .await;
    told.extend(more);
    told.extend(rest(&mut events).await);
    drop(events);
    let told = Told(told);
    assert_eq!(told.assert_completed().text, "Both done.");

    let second = stage.request(2);
    let blocks = last_user_blocks(&second);
    assert_eq!(blocks[0]["type"], "tool_result", "results come first");
    assert_eq!(texts(&second).last(), Some(&"And mind @notes.txt!"));
    assert!(text_of(&json!(blocks)).contains("remember the milk"), "it is worked off like any other");
    assert_eq!(reported(&told), [('+', vec![id]), ('-', vec![id])]);
    let consumed = told.position(|event| matches!(event, Event::PromptsConsumed(_)));
    let transition = told.position(|event| matches!(event, Event::Transition(_)));
    assert!(consumed > transition);
    assert!(queue.waiting().is_empty() && waiting_in(&engine.transcript_file().unwrap()).is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z7_pit_K7_prompts_without_a_hurry_are_merged_into_the_next_submission() {
    let script =
        Script::new().reply([text("One.").fragments(2).after(1, gate("rest"))]).reply([text("All.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let queue = engine.queue();
    let mut events = engine.submit(prompt("First."));
    pulling(&mut events, stage.model.wait_at_gate("rest")).await;
    let given = Uuid::from_u128(42);
    let (_, ids) = pulling(&mut events, async {
        let second = queue.add(prompt("Second.").with_id(given), Priority::Later).await.unwrap();
        let again = queue.add(prompt("Second.").with_id(given), Priority::Later).await.unwrap();
        assert_eq!((second, again), (given, given), "the same id twice is one prompt");
        [second, queue.add(prompt("Third."), Priority::default()).await.unwrap()]
    })
    .await;
    stage.model.open("rest");
    let told = Told(rest(&mut events).await);
    drop(events);
    assert!(reported(&told).is_empty() && queue.waiting() == ids);

    let told = submit_queued(&mut engine).await;
    assert_eq!(told.assert_completed().text, "All.");
    assert_eq!(texts(&stage.request(2)), ["Second.\nThird."], "one message for all");
    assert_eq!(reported(&told), [('+', ids.to_vec()), ('-', ids.to_vec())]);
    let entries = told.entries();
    assert_eq!(entries[0].id, given);
    assert!(engine.submit_queued().is_none());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z7_pit_K7_no_prompt_is_lost_by_a_kill_and_none_is_read_twice() {
    let script = Script::new()
        .reply([text("One.").fragments(2).after(1, gate("rest"))])
        .reply([text("Resumed.")])
        .reply([text("Later.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let (queue, file) = (engine.queue(), engine.transcript_file().unwrap());
    let mut events = engine.submit(prompt("First."));
    pulling(&mut events, stage.model.wait_at_gate("rest")).await;
    let (_, ids) = pulling(&mut events, async {
        let next = queue.add(prompt("Urgent."), Priority::Next).await.unwrap();
        let verbatim = prompt("Mail @me.").verbatim();
        [next, queue.add(verbatim, Priority::Later).await.unwrap()]
    })
    .await;
    // The process dies: nothing but the file is left.
    let copy = killed_here(&stage, &file);
    drop(events);
    drop(engine);

    assert_eq!(waiting_in(&copy), ids);
    let mut engine = stage.resume(&copy);
    assert_eq!(engine.queue().waiting(), ids);
    let told = submit_queued(&mut engine).await;
    assert_eq!(told.assert_completed().text, "Resumed.");
    assert_eq!(
        reported(&told)[0],
        ('+', vec![ids[0]]),
        "what means what it says is not mixed with what does not"
    );
    assert!(text_of(&json!(last_user_blocks(&stage.request(2)))).contains("Urgent."));

    // Killed again, between consumption and the bookkeeping of it: the line of the prompt is enough.
    let text = std::fs::read_to_string(&copy).unwrap();
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains(r#""operation":"dequeue""#)).collect();
    let second = stage.path("second.jsonl");
    std::fs::write(&second, kept.join("\n") + "\n").unwrap();
    assert_eq!(waiting_in(&second), [ids[1]]);
    drop(engine);
    let mut engine = stage.resume(&second);
    submit_queued(&mut engine).await.assert_completed();
    assert_eq!(texts(&stage.request(3)).last(), Some(&"Mail @me."));
    assert!(waiting_in(&second).is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn a_prompt_can_wait_before_anything_was_said() {
    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let engine = stage.engine();
    let queue = engine.queue();
    let id = queue.add(prompt("Hi."), Priority::Later).await.unwrap();
    let file = engine.transcript_file().unwrap();
    assert_eq!(waiting_in(&file), [id]);
    let copy = killed_here(&stage, &file);
    drop(engine);
    let mut engine = stage.resume(&copy);
    submit_queued(&mut engine).await.assert_completed();
    assert_eq!(texts(&stage.request(1)).last(), Some(&"Hi."));
}

#[tokio::test]
async fn loop_A3_a_prompt_that_cannot_wait_takes_the_place_of_the_running_one_without_a_note() {
    let script =
        || Script::new().reply([tool("Bash", sh("sleep 60")).id("toolu_sleep")]).reply([text("Here.")]);
    for by_prompt in [true, false] {
        let stage = Stage::new(script()).await;
        let mut engine = stage.engine();
        let (queue, interrupter) = (engine.queue(), engine.interrupter());
        let mut events = engine.submit(prompt("Sleep."));
        let mut told = until(&mut events, |event| is_start_of(event, "toolu_sleep")).await;
        let (more, ()) = pulling(&mut events, async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if by_prompt {
                queue.add(prompt("Wake up!"), Priority::Now).await.unwrap();
            } else {
                interrupter.interrupt();
            }
        })
        .await;
        told.extend(more);
        told.extend(rest(&mut events).await);
        drop(events);
        let told = Told(told);
        let aborted = [Terminal::AbortedToolExecution, Terminal::AbortedStreaming];
        assert!(aborted.contains(&told.outcome().terminal), "{:?}", told.outcome().terminal);
        if by_prompt {
            submit_queued(&mut engine).await.assert_completed();
        } else {
            run(&mut engine, "Wake up!").await.assert_completed();
        }
        let second = stage.request(2);
        assert_eq!(results_in(&second).len(), 1, "the open call is answered");
        assert_eq!(second.to_string().contains("[Request interrupted by user"), !by_prompt);
        assert_eq!(texts(&second).last(), Some(&"Wake up!"));
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn a_prompt_can_be_taken_back_and_arrivals_waited_for() {
    let stage = Stage::new(Script::new()).await;
    let mut engine = stage.engine();
    let queue = engine.queue();
    let waits = {
        let queue = queue.clone();
        tokio::spawn(async move { queue.arrived().await })
    };
    let id = queue.add(prompt("Never mind."), Priority::Later).await.unwrap();
    waits.await.unwrap();
    assert!(queue.cancel(id) && !queue.cancel(id));
    assert!(engine.submit_queued().is_none());
    assert!(
        waiting_in(&engine.transcript_file().unwrap()).is_empty(),
        "a resumed session does not bring it back"
    );
}

#[tokio::test]
async fn a_submission_that_is_let_go_before_it_began_leaves_its_prompts_waiting() {
    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let mut engine = stage.engine();
    let queue = engine.queue();
    let ids = [
        queue.add(prompt("One."), Priority::Later).await.unwrap(),
        queue.add(prompt("Two."), Priority::Later).await.unwrap(),
    ];
    drop(engine.submit_queued().unwrap());
    assert_eq!(queue.waiting(), ids);
    submit_queued(&mut engine).await.assert_completed();
    assert_eq!(texts(&stage.request(1)).last(), Some(&"One.\nTwo."));
}

#[tokio::test]
async fn commands_wait_for_a_submission_of_their_own() {
    let script = Script::new()
        .reply([tool("Look", json!({"name": "a", "ms": 100})).id("toolu_a")])
        .reply([text("Looked.")])
        .reply([text("After.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(Notes::default().tools()));
    let queue = engine.queue();
    let mut events = engine.submit(prompt("Look."));
    until(&mut events, |event| is_start_of(event, "toolu_a")).await;
    pulling(&mut events, async {
        queue.add(prompt("/unknown"), Priority::Next).await.unwrap();
        queue.add(prompt("Afterwards."), Priority::Later).await.unwrap();
    })
    .await;
    rest(&mut events).await;
    drop(events);
    assert_eq!(queue.waiting().len(), 2, "a command is not told to the model");
    let told = submit_queued(&mut engine).await;
    assert_eq!(told.outcome().text, "Unknown command: /unknown");
    assert_eq!(reported(&told).len(), 2);
    assert_eq!(submit_queued(&mut engine).await.assert_completed().text, "After.");
    assert!(queue.waiting().is_empty() && waiting_in(&engine.transcript_file().unwrap()).is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn hooks_judge_prompts_that_come_in_between() {
    let script = Script::new()
        .reply([tool("Look", json!({"name": "a", "ms": 100})).id("toolu_a")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let guard = "grep -q password && { echo 'no secrets' >&2; exit 2; } || echo 'guarded'";
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(Notes::default().tools());
        hook(options, &on("UserPromptSubmit", &[guard]));
    });
    let queue = engine.queue();
    let mut events = engine.submit(prompt("Look."));
    let mut told = until(&mut events, |event| is_start_of(event, "toolu_a")).await;
    let (more, ids) = pulling(&mut events, async {
        let secret = queue.add(prompt("my password is 1234"), Priority::Next).await.unwrap();
        [secret, queue.add(prompt("Go on."), Priority::Next).await.unwrap()]
    })
    .await;
    told.extend(more);
    told.extend(rest(&mut events).await);
    let told = Told(told);
    told.assert_completed();
    let second = stage.request(2);
    assert!(!second.to_string().contains("1234"));
    assert_eq!(texts(&second).last(), Some(&"Go on."));
    assert!(said(&told).iter().any(|(words, _)| words.contains("no secrets")), "{:?}", said(&told));
    assert_eq!(reported(&told), [('+', vec![ids[0]]), ('+', vec![ids[1]]), ('-', ids.to_vec())]);
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let stage = Stage::new(Script::new()).await;
    let queue = stage.engine().queue();
    let huge = "x".repeat(QUEUED_BYTES_MAX + 1);
    assert!(matches!(queue.add(prompt(&huge), Priority::Later).await, Err(QueueError::Full)));
    for n in 0..QUEUED_PROMPTS_MAX {
        queue.add(Prompt::text(format!("{n}")).unwrap(), Priority::Later).await.unwrap();
    }
    let refused = queue.add(prompt("One too many."), Priority::Later).await;
    assert!(matches!(refused, Err(QueueError::Full)), "{refused:?}");
    assert_eq!(queue.waiting().len(), QUEUED_PROMPTS_MAX);
}
