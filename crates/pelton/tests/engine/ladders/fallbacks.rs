//! Models that do not answer, and those asked instead.

use pelton::{Event, Terminal};
use pelton_testkit::{Fault, Script, Step, When, error, gate, text, thinking, tool};
use serde_json::json;

use crate::probe::{Note, Notes};
use crate::stage::{
    Stage, Told, blocks, holds, is_start_of, notes, prompt, pulling, rest, results_in, run, until,
};

use super::{assert_no_error_shown, kinds, synthetics, thoughts};

const PRIMARY: &str = "claude-sonnet-5-5";
const SECOND: &str = "claude-opus-5-5";
const THIRD: &str = "claude-haiku-5-5";

/// The models asked, in order.
fn models(stage: &Stage) -> Vec<String> {
    let requests = stage.model.reply_requests();
    requests.iter().map(|seen| seen.body["model"].as_str().unwrap().to_owned()).collect()
}

fn swaps(told: &Told) -> Vec<(String, String)> {
    let swap = |event: &Event| match event {
        Event::ModelFallback { from, to, .. } => Some((from.clone(), to.clone())),
        _ => None,
    };
    told.0.iter().filter_map(swap).collect()
}

#[tokio::test]
async fn loop_T8_loop_R2_loop_F3_loop_F4_loop_F5_loop_F6_three_overloads_ask_the_next_model_without_foreign_thinking()
 {
    let script = Script::new()
        .reply([thinking("First thoughts."), text("Looking."), tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(529).times(3).when(When::any().model(PRIMARY)))
        .step(Step::reply([thinking("Other thoughts."), text("Done.")]).when(When::any().model(SECOND)))
        .step(Step::reply([text("Back.")]).times(2).when(When::any().model(PRIMARY)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.fallback_models = vec!["opus".to_owned()]);

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["next_turn", "fallback_retry"]);
    assert_eq!(swaps(&told), [(PRIMARY.to_owned(), SECOND.to_owned())]);
    assert_no_error_shown(&told);
    let asked = stage.request(5);
    assert_eq!((thoughts(&stage.request(2)), thoughts(&asked)), (1, 0));
    assert_eq!(results_in(&asked).len(), 1, "what was done is kept");
    assert!(told.outcome().by_model.contains_key(PRIMARY) && told.outcome().by_model.contains_key(SECOND));
    assert_eq!(kinds(&engine), ["retry", "retry", "withheld", "fallback"]);

    // For this submission only; what the other model thought is not for the first one either.
    let told = run(&mut engine, "And?").await;
    assert_eq!(told.assert_completed().text, "Back.");
    // Another process reads in the file who thought what.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    run(&mut stage.resume(&file), "Sure?").await.assert_completed();
    assert_eq!(models(&stage), [PRIMARY, PRIMARY, PRIMARY, PRIMARY, SECOND, PRIMARY, PRIMARY]);
    assert_eq!((thoughts(&stage.request(6)), thoughts(&stage.request(7))), (0, 0));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T8_a_chain_of_three_is_asked_in_its_order() {
    let script = Script::new()
        .step(Step::status(529).times(9))
        .step(Step::reply([text("At last.")]).when(When::any().model("claude-opus-5$")));
    let stage = Stage::new(script).await;
    // The first itself, one twice, and one too many.
    let chain = [SECOND, PRIMARY, THIRD, SECOND, "claude-opus-5", "claude-sonnet-5"];
    let mut engine = stage.engine_with(|options| options.fallback_models = chain.map(str::to_owned).to_vec());

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "At last.");
    let to: Vec<String> = swaps(&told).into_iter().map(|(_, to)| to).collect();
    assert_eq!(to, [SECOND, THIRD, "claude-opus-5"]);
    assert_eq!(models(&stage).len(), 10);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X7_when_nobody_answers_it_is_said_after_a_bounded_number_of_calls() {
    let stage = Stage::new(Script::new().step(Step::status(529).always())).await;
    let mut engine = stage.engine_with(|options| options.fallback_models = vec![SECOND.to_owned()]);

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::ModelError, true));
    assert_eq!(outcome.error.as_ref().unwrap().status, Some(529));
    assert_eq!((synthetics(&told), swaps(&told).len()), (1, 1));
    // Three of the first, and the last one as often as is left of what a model that stands alone is asked.
    assert_eq!(stage.request_count(), 3 + 8);
}

#[tokio::test]
async fn loop_M4_loop_R2_a_call_made_before_the_third_overload_is_kept_and_the_rest_asked_of_the_next_model()
{
    let script = Script::new()
        .step(Step::status(529).times(2))
        .step(Step::reply([
            thinking("First thoughts."),
            tool("Change", json!({"name": "a"})).id("toolu_a"),
            text("half a te").fragments(2).after(1, error("overloaded_error", "")),
        ]))
        .step(Step::reply([text("Done.")]).when(When::any().model(SECOND)));
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.fallback_models = vec![SECOND.to_owned()];
        options.tools.extend(calls.tools());
    });

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(calls.begun(), ["a"]);
    assert!(
        told.0.iter().any(|event| matches!(event, Event::Cut { .. })),
        "it is said that something is missing"
    );
    assert_eq!(models(&stage), [PRIMARY, PRIMARY, PRIMARY, SECOND]);
    assert_eq!(swaps(&told).len(), 1);
    let asked = stage.request(4);
    assert_eq!(results_in(&asked), [("toolu_a".to_owned(), false, "a".to_owned())]);
    assert_eq!(thoughts(&asked), 0);
    assert!(!asked.to_string().contains("half a te"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_F2_what_was_not_complete_is_discarded_for_the_next_model() {
    let overloaded = || {
        Step::reply([
            thinking("Thoughts."),
            text("half a te").fragments(2).after(1, error("overloaded_error", "")),
        ])
    };
    let script = Script::new()
        .step(overloaded().times(3))
        .step(Step::reply([text("Done.")]).when(When::any().model(SECOND)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.fallback_models = vec![SECOND.to_owned()];
        options.retry.non_streaming_fallback = false;
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    let said: Vec<_> = told.entries().into_iter().filter(|entry| entry.is_assistant()).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(blocks(&stage.request(4), "assistant").is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T8_loop_M6_after_two_broken_streams_the_answer_comes_in_one_piece() {
    let script = Script::new()
        .step(Step::reply([text("One.").fragments(4)]).fault(Fault::cut_after_events(4)))
        .step(Step::reply([text("One.").fragments(4)]).fault(Fault::reset_after_events(4)))
        .step(Step::reply([text("One.")]).when(When::any().stream(false)))
        .step(Step::reply([text("Two.")]).when(When::any().stream(true)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "One.");
    let said = told.entries().into_iter().filter(|entry| entry.is_assistant()).count();
    assert_eq!((said, told.retries().len()), (1, 2));
    assert!(told.retries()[1].non_streaming && told.retries()[1].withdrawn);
    // T8: another way to the same model is a fallback, too.
    assert_eq!(told.transitions(), ["fallback_retry"]);
    assert_eq!(told.outcome().transitions["fallback_retry"], 1);
    // With its reason in the stream, in the account and in the record, behind the failure it is about.
    let why = "streams break; asking for the answer in one piece".to_owned();
    assert_eq!(told.loop_reasons("fallback"), std::slice::from_ref(&why));
    assert_eq!(told.outcome().loop_events["fallback"], 1);
    let recorded = notes(&engine.transcript_file().unwrap());
    let went_on = ("transition".to_owned(), "fallback_retry".to_owned());
    let place = recorded.iter().position(|note| *note == went_on).expect("the transition is on record");
    assert_eq!(
        (recorded[place - 1].0.as_str(), &recorded[place + 1]),
        ("retry", &("fallback".to_owned(), why))
    );
    assert!(stage.request(3)["max_tokens"].as_u64().unwrap() <= 21_333);
    // The next question is streamed again.
    assert_eq!(run(&mut engine, "And?").await.assert_completed().text, "Two.");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M6_an_answer_in_one_piece_is_asked_for_within_a_bound_and_can_be_interrupted() {
    let broken = || Step::reply([text("One.").fragments(4)]).fault(Fault::cut_after_events(4));
    // The bound is the loop's own: no request follows.
    let stage = Stage::new(Script::new().step(broken().times(2))).await;
    let mut engine = stage.engine_with(|options| options.limits.in_one_piece_max = 0);
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert_eq!((synthetics(&told), told.transitions().len(), stage.request_count()), (1, 0, 2));

    // Whoever is interrupted while it is awaited has a session that goes on, with streams.
    let script = Script::new()
        .step(broken().times(2))
        .step(Step::reply([gate("never"), text("One.")]).when(When::any().stream(false)))
        .step(Step::reply([text("Two.")]).when(When::any().stream(true)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let interrupter = engine.interrupter();
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let mut told = until(&mut events, |event| matches!(event, Event::Transition(_))).await;
    told.extend(pulling(&mut events, holds(|| stage.request_count() == 3)).await.0);
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    drop(events);
    assert_eq!(Told(told).outcome().terminal, Terminal::AbortedStreaming);
    assert_eq!(run(&mut engine, "And?").await.assert_completed().text, "Two.");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M6_a_404_is_asked_once_more_without_streaming() {
    let stage = Stage::new(
        Script::new()
            .step(Step::status(404))
            .step(Step::reply([text("Here.")]).when(When::any().stream(false))),
    )
    .await;
    assert_eq!(run(&mut stage.engine(), "Go.").await.assert_completed().text, "Here.");
    stage.assert_all_played();

    // It is remembered as long as the submission goes on.
    let script = Script::new()
        .step(Step::status(404).when(When::any().stream(true)))
        .step(Step::reply([tool("Look", json!({"name": "a"}))]).when(When::any().stream(false)))
        .step(Step::reply([text("Seen.")]).when(When::any().stream(false)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(Notes::default().tools()));
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Seen.");
    assert_eq!(told.transitions(), ["fallback_retry", "next_turn"]);
    assert!(stage.request(3)["max_tokens"].as_u64().unwrap() <= 21_333);
    stage.assert_all_played();

    let stage = Stage::new(Script::new().step(Step::status(404).always())).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.outcome().error.as_ref().unwrap().status, Some(404));
    assert_eq!((synthetics(&told), stage.request_count()), (1, 2));
}

#[tokio::test]
async fn loop_F1_loop_F2_loop_P8_calls_that_only_looked_are_discarded_with_the_answer_for_the_next_model() {
    let script = Script::new()
        .step(Step::status(529).times(2))
        .step(Step::reply([
            thinking("First thoughts."),
            tool("Read", json!({"file_path": "a.txt"})).id("toolu_read"),
            tool("Look", json!({"name": "slow", "ms": 60_000})).id("toolu_slow"),
            gate("both run"),
            text("half a te").fragments(2).after(1, error("overloaded_error", "")),
        ]))
        .step(
            Step::reply([tool(
                "Edit",
                json!({
                    "file_path": "a.txt", "old_string": "old", "new_string": "new",
                }),
            )])
            .when(When::any().model(SECOND)),
        )
        .step(Step::reply([text("Done.")]).when(When::any().model(SECOND)))
        .reply([text("Sure.")]);
    let stage = Stage::new(script).await;
    stage.write("a.txt", "old\n");
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.fallback_models = vec![SECOND.to_owned()];
        options.tools.extend(calls.tools());
    });

    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let mut told = until(&mut events, |event| is_start_of(event, "toolu_slow")).await;
    let slow = Note::Begun("slow".to_owned());
    told.extend(pulling(&mut events, holds(|| calls.has(&slow))).await.0);
    stage.model.open("both run");
    told.extend(rest(&mut events).await);
    drop(events);
    let told = Told(told);

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["fallback_retry", "next_turn"]);
    assert!(calls.has(&Note::Dropped("slow".to_owned())), "what ran is ended: {:?}", calls.all());
    let shown: Vec<_> =
        told.entries().iter().filter(|entry| entry.is_assistant()).map(|entry| entry.id).collect();
    let tombstone = told.0.iter().find_map(|event| match event {
        Event::Tombstone(ids) => Some(ids.clone()),
        _ => None,
    });
    assert_eq!(tombstone.as_deref(), Some(&shown[..3]), "thinking and both calls are taken back by name");
    assert_eq!(told.results().len(), 1, "no result of a discarded call is told");
    assert_eq!(told.outcome().tool_calls, 1, "nor is it counted");
    assert_eq!(stage.request(3)["messages"], stage.request(4)["messages"], "the whole request is sent again");
    // The next model never saw the file, so it may not change it yet.
    assert!(results_in(&stage.request(5))[0].1, "{:?}", results_in(&stage.request(5)));
    assert_eq!(stage.read("a.txt"), "old\n");
    assert_eq!(models(&stage), [PRIMARY, PRIMARY, PRIMARY, SECOND, SECOND]);

    // Neither the same session nor another process meets what was discarded.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    run(&mut stage.resume(&file), "Sure?").await.assert_completed();
    assert!(!stage.request(6).to_string().contains("toolu_slow"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_F2_loop_P8_looks_are_discarded_whatever_the_server_failed_with() {
    let script = Script::new()
        .step(Step::status(500))
        .step(Step::reply([
            tool("Look", json!({"name": "a"})).id("toolu_look"),
            error("api_error", "internal server error"),
        ]))
        .step(Step::reply([text("Done.")]).when(When::any().model(SECOND)));
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.fallback_models = vec![SECOND.to_owned()];
        options.retry.retries_max = 2;
        options.tools.extend(calls.tools());
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["fallback_retry"]);
    assert!(told.results().is_empty() && !stage.request(3).to_string().contains("toolu_look"));
    assert!(!told.0.iter().any(|event| matches!(event, Event::Cut { .. })), "nothing of it is kept");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L11_when_all_models_fail_for_ever_the_calls_are_bounded_and_listed() {
    let models = ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"];
    // The status for ever, and how often each model is asked before the next: overload goes elsewhere after three, and ten
    // retries are all there are, one of them for each model that is left.
    for (status, times) in [(529, [3, 3, 5]), (500, [9, 1, 1])] {
        let stage = Stage::new(Script::new().step(Step::status(status).always())).await;
        let mut engine = stage.engine_with(|options| {
            options.model = models[0].to_owned();
            options.fallback_models = models[1..].iter().map(|model| (*model).to_owned()).collect();
        });

        let told = run(&mut engine, "Go.").await;

        let outcome = told.outcome();
        assert_eq!(outcome.terminal, Terminal::ModelError);
        let sum: u32 = times.iter().sum();
        assert_eq!(stage.request_count(), sum as usize);
        let error = outcome.error.as_ref().unwrap();
        let tried: Vec<(&str, Option<u16>, u32)> =
            error.tried.iter().map(|tried| (tried.model.as_str(), tried.status, tried.times)).collect();
        let expected = [0, 1, 2].map(|at| (models[at], Some(status), times[at]));
        assert_eq!((tried, error.attempts()), (expected.to_vec(), sum));
        // And whoever reads it sees the same.
        let list = format!(
            "(tried {sum} times: {} {} × {status}, {} {} × {status}, {} {} × {status})",
            models[0], times[0], models[1], times[1], models[2], times[2]
        );
        assert!(outcome.text.ends_with(&list), "{}", outcome.text);
        assert_eq!(synthetics(&told), 1);
    }
}

#[tokio::test]
async fn what_was_tried_before_an_answer_is_not_held_against_the_next_failure() {
    let [first, second] = ["claude-sonnet-5-5", "claude-opus-5-5"];
    let script = Script::new()
        .step(Step::status(529).times(3).when(When::any().model(first)))
        .reply([tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(400).message("no"));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.model = first.to_owned();
        options.fallback_models = vec![second.to_owned()];
    });
    let told = run(&mut engine, "Go.").await;
    let error = told.outcome().error.clone().unwrap();
    assert_eq!((error.attempts(), error.tried[0].model.as_str()), (1, second));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_R2_loop_M4_an_overload_in_the_middle_of_an_answer_is_one_of_three() {
    let looked = || {
        Step::reply([
            tool("Look", json!({"name": "a"})),
            text("half a te").fragments(2).after(1, error("overloaded_error", "")),
        ])
    };
    // One alone asks the same model for the rest; what is complete is kept, and its result goes back.
    let stage = Stage::new(Script::new().step(looked()).reply([text("Done.")])).await;
    let calls = Notes::default();
    let engine = |stage: &Stage, calls: &Notes| {
        stage.engine_with(|options| {
            options.fallback_models = vec![SECOND.to_owned()];
            options.tools.extend(calls.tools());
        })
    };
    let told = run(&mut engine(&stage, &calls), "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!((models(&stage), swaps(&told).len()), (vec![PRIMARY.to_owned(); 2], 0));
    assert_eq!((results_in(&stage.request(2)).len(), calls.begun().len()), (1, 1));
    assert_eq!(told.retries().len(), 1, "somebody waits before the same model is asked again");
    stage.assert_all_played();

    // The row goes on in the next question: with two more it is three.
    let script = Script::new()
        .step(looked())
        .step(Step::status(529).times(2).when(When::any().model(PRIMARY)))
        .step(Step::reply([text("Done.")]).when(When::any().model(SECOND)));
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let told = run(&mut engine(&stage, &calls), "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(models(&stage), [PRIMARY, PRIMARY, PRIMARY, SECOND]);
    assert_eq!((results_in(&stage.request(4)).len(), calls.begun().len()), (1, 1));
    stage.assert_all_played();
}

/// How often models are asked that are overloaded for ever: of a chain each three times, the last one eleven times.
async fn asked_in_vain(turn: impl FnOnce(&mut pelton::Engine), prompt: &str) -> Vec<(String, usize)> {
    let stage = Stage::new(Script::new().step(Step::status(529).always())).await;
    let mut engine = stage.engine_with(|options| {
        options.fallback_models = vec![SECOND.to_owned()];
        crate::input::command(options, "second", |_| {
            let mut expansion = pelton::command::Expansion::prompt("Go.".to_owned());
            expansion.model = Some(SECOND.to_owned());
            Ok(expansion)
        });
    });
    turn(&mut engine);
    let told = run(&mut engine, prompt).await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    let mut asked: Vec<(String, usize)> = Vec::new();
    for model in models(&stage) {
        match asked.last_mut().filter(|(last, _)| *last == model) {
            Some((_, times)) => *times += 1,
            None => asked.push((model, 1)),
        }
    }
    asked
}

#[tokio::test]
async fn loop_R2_who_stands_ready_is_seen_when_the_question_is_asked() {
    let (first, second) = (|times| (PRIMARY.to_owned(), times), |times| (SECOND.to_owned(), times));
    // The fallback itself was chosen: there is nobody else, and patience is that of a model alone.
    let chosen = |engine: &mut pelton::Engine| engine.dials().set_model(Some(SECOND)).unwrap();
    assert_eq!(asked_in_vain(chosen, "Go.").await, [second(11)]);
    assert_eq!(asked_in_vain(|_| {}, "/second").await, [second(11)]);
    // And back again: it stands ready as before.
    let there_and_back = |engine: &mut pelton::Engine| {
        engine.dials().set_model(Some(SECOND)).unwrap();
        engine.dials().set_model(None).unwrap();
    };
    assert_eq!(asked_in_vain(there_and_back, "Go.").await, [first(3), second(8)]);
    // A third model has the whole chain behind it.
    let another = |engine: &mut pelton::Engine| engine.dials().set_model(Some(THIRD)).unwrap();
    assert_eq!(asked_in_vain(another, "Go.").await, [(THIRD.to_owned(), 3), second(8)]);
}

#[tokio::test]
async fn loop_R2_a_model_chosen_between_submissions_and_in_the_middle_of_one_leaves_the_chain_as_it_was() {
    let script = Script::new()
        .step(Step::reply([text("One.")]).when(When::any().model(SECOND)))
        .step(Step::reply([tool("Bash", json!({"command": "echo"})), gate("chosen")]))
        .step(
            Step::reply([tool("Bash", json!({"command": "echo"})), gate("back")])
                .when(When::any().model(SECOND)),
        )
        .step(Step::status(529).times(3).when(When::any().model(PRIMARY)))
        .step(Step::reply([text("Two.")]).when(When::any().model(SECOND)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.fallback_models = vec![SECOND.to_owned()]);
    let dials = engine.dials();
    dials.set_model(Some(SECOND)).unwrap();
    assert_eq!(run(&mut engine, "Go.").await.assert_completed().text, "One.");
    dials.set_model(None).unwrap();
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let mut told = pulling(&mut events, stage.model.wait_at_gate("chosen")).await.0;
    dials.set_model(Some(SECOND)).unwrap();
    stage.model.open("chosen");
    told.extend(pulling(&mut events, stage.model.wait_at_gate("back")).await.0);
    dials.set_model(None).unwrap();
    stage.model.open("back");
    told.extend(rest(&mut events).await);
    let told = Told(told);
    assert_eq!(told.assert_completed().text, "Two.");
    assert_eq!(models(&stage), [SECOND, PRIMARY, SECOND, PRIMARY, PRIMARY, PRIMARY, SECOND]);
    stage.assert_all_played();
}

#[tokio::test]
async fn a_model_chosen_for_one_command_stays_when_only_the_thinking_is_changed() {
    let script = Script::new()
        .step(Step::reply([tool("Bash", json!({"command": "echo"})), gate("thinking")]))
        .step(Step::reply([text("Done.")]));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        crate::input::command(options, "third", |_| {
            let mut expansion = pelton::command::Expansion::prompt("Go.".to_owned());
            expansion.model = Some(SECOND.to_owned());
            Ok(expansion)
        });
    });
    let dials = engine.dials();
    let mut events = Box::pin(engine.submit(prompt("/third")));
    pulling(&mut events, stage.model.wait_at_gate("thinking")).await;
    dials.set_thinking(Some(pelton_model::Thinking::Disabled));
    stage.model.open("thinking");
    Told(rest(&mut events).await).assert_completed();
    assert_eq!(models(&stage), [SECOND, SECOND]);
}

#[tokio::test]
async fn loop_B5_loop_T8_the_window_that_was_chosen_holds_for_the_next_model_too() {
    let stage = Stage::new(
        Script::new()
            .step(Step::status(529).times(3).when(When::any().model(PRIMARY)))
            .step(Step::reply([text("Done."), gate("asked")]).when(When::any().model(SECOND))),
    )
    .await;
    let mut engine = stage.engine_with(|options| {
        options.fallback_models = vec![SECOND.to_owned()];
        options.compact.window_tokens = Some(70_000);
    });
    let context = engine.context_watch();
    context.usage();
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    pulling(&mut events, stage.model.wait_at_gate("asked")).await;
    assert_eq!(context.usage().window_tokens, 70_000);
    stage.model.open("asked");
    Told(rest(&mut events).await).assert_completed();
}

#[tokio::test]
async fn what_the_host_said_of_its_model_holds_again_when_that_is_chosen_again() {
    let stage = Stage::new(Script::new().step(Step::reply([text("Done.")]).times(3))).await;
    let mut engine = stage.engine_with(|options| {
        options.window_tokens = Some(54_321);
        options.max_output_tokens = Some(7_000);
    });
    let (dials, context) = (engine.dials(), engine.context_watch());
    context.usage();
    let mut windows = Vec::new();
    for model in [None, Some(SECOND), None] {
        dials.set_model(model).unwrap();
        run(&mut engine, "Go.").await.assert_completed();
        windows.push(context.usage().window_tokens);
    }
    assert_eq!(models(&stage), [PRIMARY, SECOND, PRIMARY]);
    assert!(windows[0] == 54_321 && windows[1] > 100_000 && windows[2] == 54_321, "{windows:?}");
    // How long an answer may be is the host's wish, whoever answers.
    for nth in 1..=3 {
        assert_eq!(stage.request(nth)["max_tokens"], 7_000);
    }
}
