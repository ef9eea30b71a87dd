//! Stopping in the middle: by an interrupt, or by letting go of the stream.

use std::time::{Duration, Instant};

use nix::sys::signal::kill;
use nix::unistd::Pid;
use pelton::{Engine, Event, Terminal};
use pelton_model::{Delta, DeltaKind};
use pelton_testkit::{Part, Script, Step, When, gate, text, tool};
use serde_json::{Value, json};

use crate::probe::{Note, Notes};
use crate::stage::{
    Stage, Told, blocks, holds, is_result_of, is_start_of, last_user_blocks, prompt, pulling, rest,
    results_in, run, sh, text_of, until, words_of,
};

/// An interrupt takes effect within a tenth of a second on a quiet machine; tests run on busy ones.
const PROMPTLY: Duration = Duration::from_secs(1);

/// A command that says who it is and then takes for ever.
fn sleeping() -> Part {
    tool("Bash", sh("sleep 300 & echo $! > child; echo $$ > shell; wait")).id("toolu_sleep")
}

fn is_alive(pid: Pid) -> bool {
    // A process that has ended and that nobody has waited for yet is not alive.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let ended = state
        .is_some_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with(['Z', 'X'])));
    !ended && kill(pid, None).is_ok()
}

impl Stage {
    /// The process a command wrote down, once it has.
    async fn pid(&self, name: &str) -> Pid {
        holds(|| std::fs::read_to_string(self.path(name)).is_ok_and(|text| text.ends_with('\n'))).await;
        Pid::from_raw(self.read(name).trim().parse().unwrap())
    }
}

/// Submits, pulls until the condition holds, interrupts, and pulls the rest; says how long that took.
async fn interrupt_when(
    engine: &mut Engine,
    text: &str,
    condition: impl Future<Output = ()>,
) -> (Told, Duration) {
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt(text));
    let (mut told, ()) = pulling(&mut events, condition).await;
    let at = Instant::now();
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    (Told(told), at.elapsed())
}

/// What the user can read of an answer that is not at its end.
fn read(event: &Event) -> Option<&str> {
    match event {
        Event::Delta(Delta { kind: DeltaKind::Text(text), .. }) => Some(text),
        _ => None,
    }
}

fn note(request: &Value) -> String {
    text_of(&json!(last_user_blocks(request)))
}

#[tokio::test]
async fn loop_X2_an_interrupt_while_the_model_speaks_ends_the_submission() {
    let script = Script::new()
        .reply([text("I was about to say something long.").fragments(2).after(1, gate("rest"))])
        .reply([text("Yes?")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("Talk."));
    let mut told = until(&mut events, |event| read(event).is_some()).await;
    let at = Instant::now();
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    drop(events);
    let (told, took) = (Told(told), at.elapsed());

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::AbortedStreaming);
    assert!(outcome.is_error && outcome.errors[0].contains("Interrupted"), "{outcome:#?}");
    assert!(took < PROMPTLY, "{took:?}");
    holds(|| stage.model.reply_requests()[0].hung_up).await;

    run(&mut engine, "Are you there?").await.assert_completed();
    let second = stage.request(2);
    let said = blocks(&second, "assistant");
    let words: String = told.0.iter().filter_map(read).collect();
    assert_eq!(
        (said.len(), &said[0]["text"]),
        (1, &json!(words)),
        "what the user has read stays, and no more"
    );
    assert!(note(&second).contains("[Request interrupted by user]"), "{}", note(&second));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X3_loop_I9_loop_A2_an_interrupt_in_a_command_kills_it_and_answers_the_call() {
    let script = Script::new()
        .reply([text("Sleeping."), tool("Bash", sh("true")).id("toolu_true"), sleeping()])
        .reply([text("Good morning.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let interrupter = engine.interrupter();

    let mut events = engine.submit(prompt("Sleep."));
    // Results are told once the model has ended, so from here on there is nothing but tools.
    let mut told = until(&mut events, |event| is_result_of(event, "toolu_true")).await;
    let (more, shell) = pulling(&mut events, stage.pid("shell")).await;
    told.extend(more);
    let child = stage.pid("child").await;
    let at = Instant::now();
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    drop(events);
    let (told, took) = (Told(told), at.elapsed());

    assert_eq!(told.outcome().terminal, Terminal::AbortedToolExecution);
    assert_eq!(told.outcome().terminal.name(), "aborted_tools");
    assert!(told.outcome().is_error);
    assert!(took < PROMPTLY, "{took:?}");
    assert_eq!(told.results(), ["toolu_true", "toolu_sleep"]);
    assert_eq!(stage.request_count(), 1, "the turn ends there");
    holds(|| !is_alive(shell) && !is_alive(child)).await;

    run(&mut engine, "Wake up.").await.assert_completed();
    let second = stage.request(2);
    let errors: Vec<bool> = results_in(&second).into_iter().map(|(_, is_error, _)| is_error).collect();
    assert_eq!(errors, [false, true]);
    assert!(note(&second).contains("[Request interrupted by user for tool use]"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_A2_a_command_is_terminated_first_and_killed_if_it_does_not_listen() {
    for (trap, listens) in [("trap 'echo bye > heard; exit' TERM", true), ("trap '' TERM", false)] {
        let command = format!("{trap}; echo $$ > shell; while :; do sleep 0.02; done");
        let script = Script::new().reply([tool("Bash", sh(&command))]).reply([text("Good.")]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine();

        let started = async {
            stage.pid("shell").await;
        };
        let (told, took) = interrupt_when(&mut engine, "Go.", started).await;

        assert!(told.outcome().is_error);
        assert!(took < PROMPTLY, "{took:?}");
        let shell = stage.pid("shell").await;
        holds(|| !is_alive(shell)).await;
        assert_eq!(stage.path("heard").exists(), listens, "{trap}");
        run(&mut engine, "Go on.").await.assert_completed();
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_I5_loop_P9_an_interrupt_while_calls_run_and_wait_answers_each_of_them_once() {
    let notes = Notes::default();
    let script = Script::new()
        .reply([
            tool("Look", json!({"name": "ended"})).id("toolu_ended"),
            tool("Look", json!({"name": "hangs", "does": "hang"})).id("toolu_hangs"),
            tool("Change", json!({"name": "waits"})).id("toolu_waits"),
            gate("rest"),
            tool("Change", json!({"name": "never came"})).id("toolu_never"),
        ])
        .reply([text("I see.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));

    let reached = async {
        stage.model.wait_at_gate("rest").await;
        holds(|| notes.has(&Note::Begun("hangs".into())) && notes.has(&Note::Ended("ended".into()))).await;
    };
    let (told, took) = interrupt_when(&mut engine, "Go.", reached).await;

    assert_eq!(told.outcome().terminal, Terminal::AbortedStreaming);
    assert!(took < PROMPTLY, "{took:?}");
    assert_eq!(told.results(), ["toolu_ended", "toolu_hangs", "toolu_waits"]);
    assert_eq!(notes.begun(), ["ended", "hangs"]);
    assert!(notes.has(&Note::Dropped("hangs".into())));

    run(&mut engine, "What happened?").await.assert_completed();
    let results = results_in(&stage.request(2));
    let errors: Vec<(&str, bool)> =
        results.iter().map(|(id, is_error, _)| (id.as_str(), *is_error)).collect();
    assert_eq!(errors, [("toolu_ended", false), ("toolu_hangs", true), ("toolu_waits", true)]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_A4_the_session_takes_the_next_prompt_at_once_again_and_again() {
    let mut script = Script::new();
    for n in 0..5 {
        script = script
            .reply([text("Sleeping."), tool("Bash", sh(&format!("echo $$ > shell{n}; sleep 300")))])
            .reply([text("One more thing.").after(0, gate(format!("gate{n}")))]);
    }
    let stage = Stage::new(script.reply([text("Finally.")])).await;
    let mut engine = stage.engine();

    for n in 0..5 {
        let name = format!("shell{n}");
        let running = async {
            stage.pid(&name).await;
        };
        assert!(interrupt_when(&mut engine, "Sleep.", running).await.0.outcome().is_error);
        let gate = format!("gate{n}");
        assert!(
            interrupt_when(&mut engine, "Talk.", stage.model.wait_at_gate(&gate)).await.0.outcome().is_error
        );
    }
    assert_eq!(run(&mut engine, "And now?").await.assert_completed().text, "Finally.");
    stage.assert_all_played();
}

#[tokio::test]
async fn an_interrupt_ends_the_wait_for_a_retry() {
    let script = Script::new().step(Step::status(429).header("retry-after", "120")).reply([text("Yes?")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("Hi."));
    until(&mut events, |event| matches!(event, Event::Retry(_))).await;
    let at = Instant::now();
    interrupter.interrupt();
    let told = Told(rest(&mut events).await);
    assert_eq!(told.outcome().terminal, Terminal::AbortedStreaming);
    assert!(at.elapsed() < PROMPTLY);
    drop(events);
    run(&mut engine, "Hi again.").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn an_interrupt_without_a_submission_does_nothing() {
    let stage = Stage::new(Script::new().step(Step::reply([text("Hello.")]).times(2))).await;
    let mut engine = stage.engine();
    engine.interrupter().interrupt();
    run(&mut engine, "Hi.").await.assert_completed();
    engine.interrupter().interrupt();
    run(&mut engine, "Hi.").await.assert_completed();
}

#[tokio::test]
async fn letting_go_of_the_stream_in_a_command_leaves_no_process_and_a_usable_session() {
    let script = Script::new().reply([sleeping()]).reply([text("Good morning.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let mut events = engine.submit(prompt("Sleep."));
    let (_, shell) = pulling(&mut events, stage.pid("shell")).await;
    let (_, child) = pulling(&mut events, stage.pid("child")).await;
    assert!(is_alive(shell) && is_alive(child));
    drop(events);

    holds(|| !is_alive(shell) && !is_alive(child)).await;
    let told = run(&mut engine, "Wake up.").await;
    told.assert_completed();
    let results = results_in(&stage.request(2));
    assert_eq!(results.len(), 1);
    assert!(results[0].1 && results[0].2.contains("interrupted"), "{results:?}");
    stage.assert_all_played();
}

#[tokio::test]
async fn letting_go_of_the_stream_closes_the_connection_to_the_model() {
    let script = Script::new().reply([text("I was about to say"), gate("rest")]).reply([text("Yes?")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let mut events = engine.submit(prompt("Talk."));
    pulling(&mut events, stage.model.wait_at_gate("rest")).await;
    drop(events);
    holds(|| stage.model.reply_requests()[0].hung_up).await;
    run(&mut engine, "Are you there?").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn whatever_is_going_on_an_interrupt_ends_it_with_one_result() {
    let notes = Notes::default();
    // Each stage of a submission, and how it is recognised.
    let moments: [fn(&Event) -> bool; 6] = [
        |event| matches!(event, Event::Init(_)),
        |event| matches!(event, Event::Requesting),
        |event| matches!(event, Event::Started(_)),
        |event| matches!(event, Event::Delta(_)),
        |event| is_start_of(event, "toolu_1"),
        |event| is_result_of(event, "toolu_1"),
    ];
    for (n, moment) in moments.into_iter().enumerate() {
        let script = Script::new()
            .step(Step::reply([text("Fine.")]).when(When::any().last_user_text("And now")))
            .reply([
                text("Two calls, then more."),
                tool("Look", json!({"name": "one"})).id("toolu_1"),
                tool("Look", json!({"name": "two", "does": "hang"})).id("toolu_2"),
            ]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));
        let interrupter = engine.interrupter();
        let mut events = engine.submit(prompt("Go."));
        let mut told = until(&mut events, moment).await;
        interrupter.interrupt();
        told.extend(rest(&mut events).await);
        drop(events);
        let outcome = Told(told).outcome().clone();
        let aborted = matches!(outcome.terminal, Terminal::AbortedStreaming | Terminal::AbortedToolExecution);
        assert!(aborted && outcome.is_error, "moment {n}: {outcome:#?}");
        run(&mut engine, "And now?").await.assert_completed();
        stage.model.assert_clean();
    }
}

#[tokio::test]
async fn loop_A3_an_interrupt_in_a_hook_before_the_model_is_recorded_with_the_prompt() {
    for (event, urgent) in [("UserPromptSubmit", false), ("SessionStart", false), ("UserPromptSubmit", true)]
    {
        let stage = Stage::new(Script::new().reply([text("Here.")]).reply([text("Again.")])).await;
        let line =
            "echo ran >> runs; test -e let-go || { touch begun; sleep 30; }; echo started > heard; exit 0";
        let hooks = json!({event: [{"hooks": [{"type": "command", "command": line}]}]});
        let mut engine = stage.engine_with(|options| {
            assert!(options.hooks.add_settings(&hooks, &pelton::hooks::Source::User).is_empty());
        });
        let (interrupter, queue) = (engine.interrupter(), engine.queue());
        let mut events = engine.submit(prompt("The first."));
        let begun = stage.path("begun");
        let (mut told, ()) = pulling(&mut events, holds(|| begun.exists())).await;
        match urgent {
            true => _ = queue.add(prompt("In its place."), pelton::Priority::Now).await.unwrap(),
            false => interrupter.interrupt(),
        }
        told.extend(rest(&mut events).await);
        drop(events);
        let told = Told(told);
        assert_eq!(told.outcome().terminal, Terminal::AbortedStreaming, "{event}");
        let said: Vec<String> = told.entries().iter().map(|entry| words_of(entry)).collect();
        let note = "[Request interrupted by user]".to_owned();
        let expected =
            if urgent { vec!["The first.".to_owned()] } else { vec!["The first.".to_owned(), note] };
        assert_eq!(said, expected, "{event}");
        assert_eq!(stage.request_count(), 0);

        stage.write("let-go", "");
        let file = engine.transcript_file().unwrap();
        if urgent {
            Told(rest(&mut engine.submit_queued().unwrap()).await).assert_completed();
        } else {
            run(&mut engine, "The second.").await.assert_completed();
        }
        // What was cut runs again: before every prompt, or once for the session.
        assert_eq!(stage.read("runs").lines().count(), 2, "{event}");
        let sent = text_of(&json!(last_user_blocks(&stage.request(1))));
        assert!(sent.contains("The first."), "{event}: {sent}");
        assert_eq!(sent.contains("[Request interrupted by user]"), !urgent, "{event}: {sent}");
        drop((engine, queue));
        run(&mut stage.resume(&file), "The third.").await.assert_completed();
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_A3_a_prompt_that_a_hook_refused_is_not_recorded_because_somebody_interrupted() {
    let stage = Stage::new(Script::new()).await;
    // One hook refuses at once, the other one takes its time.
    let hooks = json!({"UserPromptSubmit": [{"hooks": [
        {"type": "command", "command": "echo no >&2; exit 2"},
        {"type": "command", "command": "touch begun; sleep 30"},
    ]}]});
    let mut engine = stage.engine_with(|options| {
        assert!(options.hooks.add_settings(&hooks, &pelton::hooks::Source::User).is_empty());
    });
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("A secret."));
    let begun = stage.path("begun");
    let (mut told, ()) = pulling(&mut events, async {
        holds(|| begun.exists()).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    })
    .await;
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    assert!(Told(told).entries().is_empty());
}
