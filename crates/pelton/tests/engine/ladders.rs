//! Errors the loop climbs out of: nobody is shown one while there is a way on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::compact::{LocalShaper, Room, Shaper};
use pelton::history::View;
use pelton::tools::tool::ResultBlock;
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx};
use pelton::{Engine, Event, Terminal};
use pelton_testkit::{Fault, Script, Step, When, error, text, thinking, tool};
use serde_json::{Value, json};

use crate::probe::Notes;
use crate::stage::{Stage, Told, blocks, last_user_blocks, notes, results_in, run, text_of};

const PRIMARY: &str = "claude-sonnet-5-5";
const SECOND: &str = "claude-opus-5-5";
const THIRD: &str = "claude-haiku-5-5";

/// A refusal of a prompt that is `over` tokens too long.
fn too_long(over: u64) -> Step {
    let message = format!("prompt is too long: {} tokens > 200000 maximum", 200_000 + over);
    Step::status(400).error_type("invalid_request_error").message(message)
}

/// Rounds with something in them that can be left out.
fn rounds(script: Script, count: usize) -> Script {
    (0..count).fold(script, |script, n| {
        let words = format!("Round {n}. {}", "Words upon words. ".repeat(40));
        script.reply([text(words), tool("Glob", json!({"pattern": format!("{n}*")}))])
    })
}

#[track_caller]
fn assert_no_error_shown(told: &Told) {
    let shown = told.0.iter().find(|event| matches!(event, Event::Synthetic(_)));
    assert!(shown.is_none(), "an error was shown: {shown:?}");
}

fn synthetics(told: &Told) -> usize {
    told.0.iter().filter(|event| matches!(event, Event::Synthetic(_))).count()
}

/// The kinds of what the loop noted in the transcript, beside its transitions.
fn kinds(engine: &Engine) -> Vec<String> {
    let noted = notes(&engine.transcript_file().unwrap());
    noted.into_iter().map(|(kind, _)| kind).filter(|kind| kind != "transition").collect()
}

/// The models asked, in order.
fn models(stage: &Stage) -> Vec<String> {
    let requests = stage.model.reply_requests();
    requests.iter().map(|seen| seen.body["model"].as_str().unwrap().to_owned()).collect()
}

/// How many thinking blocks a request brings. Their text is not sent by default, so it cannot be looked for.
fn thoughts(request: &Value) -> usize {
    blocks(request, "assistant").iter().filter(|block| block["type"] == "thinking").count()
}

fn swaps(told: &Told) -> Vec<(String, String)> {
    let swap = |event: &Event| match event {
        Event::ModelFallback { from, to } => Some((from.clone(), to.clone())),
        _ => None,
    };
    told.0.iter().filter_map(swap).collect()
}

/// Has one fold staged, and is the local shaper beside that.
struct Folding(AtomicBool);

impl Folding {
    fn staged() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }
}

impl Shaper for Folding {
    fn fit<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, ()> {
        LocalShaper.fit(view, room)
    }

    fn drain(&self, view: &mut View) -> bool {
        // Two thirds of it: something is left to be compacted.
        let keep = view.tokens() * 2 / 3;
        self.0.swap(false, Ordering::Relaxed) && view.leave_out_oldest(keep) > 0
    }

    fn compact<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, bool> {
        LocalShaper.compact(view, room)
    }

    fn could_free(&self, view: &View) -> u64 {
        LocalShaper.could_free(view)
    }
}

#[tokio::test]
async fn loop_T2_staged_folds_are_committed_when_the_prompt_is_too_long() {
    let script = rounds(Script::new(), 6).step(too_long(10)).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.shaper = Folding::staged());

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions().last(), Some(&"collapse_drain_retry"));
    assert!(!told.transitions().contains(&"reactive_compact_retry"));
    assert_no_error_shown(&told);
    let (refused, sent) = (stage.request(7), stage.request(8));
    assert!(sent.to_string().len() < refused.to_string().len());
    assert_eq!(kinds(&engine), ["withheld", "ladder"]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T3_what_is_still_too_long_after_the_folds_is_compacted_once() {
    let script =
        rounds(Script::new(), 8).step(too_long(10)).step(too_long(5)).step(too_long(1)).reply([text("No.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.shaper = Folding::staged());

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.outcome().terminal, Terminal::PromptTooLong);
    assert_eq!(told.transitions()[8..], ["collapse_drain_retry", "reactive_compact_retry"]);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 11));
    let sizes: Vec<usize> = (9..=11).map(|n| stage.request(n).to_string().len()).collect();
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}

#[tokio::test]
async fn loop_T3_loop_W1_a_prompt_too_long_is_made_shorter_and_nobody_is_shown_an_error() {
    let script =
        rounds(Script::new(), 6).step(too_long(100)).reply([text("Done.")]).reply([text("Still here.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "The task itself.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions().last(), Some(&"reactive_compact_retry"));
    assert_no_error_shown(&told);
    // Withheld, and two rungs: no folds were staged, so it was compacted.
    assert_eq!(kinds(&engine), ["withheld", "ladder", "ladder"]);
    let held: Vec<&str> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Loop(told) => Some(told.kind.name()),
            _ => None,
        })
        .collect();
    assert_eq!(held, ["withheld", "ladder", "ladder"]);
    assert_eq!(told.outcome().transitions["reactive_compact_retry"], 1);
    let sent = stage.request(8);
    let words: String = blocks(&sent, "user").iter().map(|block| text_of(&json!([block]))).collect();
    assert!(words.contains("The task itself.") && words.contains("were left out"), "{words}");
    assert!(!sent.to_string().contains("Round 0.") && sent.to_string().contains("Round 5."));

    // Nothing is lost for good: the file has all of it, and the session goes on.
    run(&mut engine, "And?").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    assert!(std::fs::read_to_string(file).unwrap().contains("Round 0."));
    stage.assert_all_played();
}

#[tokio::test]
async fn thinking_from_after_a_compaction_does_not_trip_a_resumed_session() {
    let script = rounds(Script::new(), 6)
        .step(too_long(100))
        .reply([thinking("Bound to what was left."), text("Done.")])
        .reply([text("Here.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Go.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    // The file has all of it, so all of it is sent again; the model would refuse thoughts about less.
    assert_eq!(run(&mut stage.resume(&file), "And?").await.assert_completed().text, "Here.");
    let request = stage.request(9);
    assert!(request.to_string().contains("Round 0.") && thoughts(&request) == 0);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X5_one_round_cannot_be_made_shorter_so_it_is_said_at_once() {
    let stage = Stage::new(Script::new().step(too_long(100)).reply([text("Better.")])).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::PromptTooLong, true));
    assert!(outcome.text.contains("prompt is too long: 200100 tokens"), "{}", outcome.text);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 1));
    assert!(told.transitions().is_empty());
    run(&mut engine, "Shorter.").await.assert_completed();
}

#[tokio::test]
async fn loop_X5_an_overrun_beyond_what_could_be_left_out_is_not_climbed() {
    let stage = Stage::new(rounds(Script::new(), 4).step(too_long(1_000_000))).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::PromptTooLong);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 5));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X5_what_is_too_long_after_its_compaction_is_shown_exactly_once() {
    let stage = Stage::new(rounds(Script::new(), 6).step(too_long(10).times(2))).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::PromptTooLong, true));
    assert_eq!(outcome.transitions["reactive_compact_retry"], 1);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 8));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T4_a_low_output_limit_is_raised_and_the_cut_answer_withdrawn() {
    let script = Script::new()
        .step(Step::reply([thinking("Hm."), text("Half an ans")]).stop("max_tokens"))
        .reply([thinking("Hm."), text("A whole answer.")])
        .reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.max_output_tokens = Some(4_096));

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "A whole answer.");
    assert_eq!(told.transitions(), ["max_output_tokens_escalate"]);
    assert_no_error_shown(&told);
    let (first, second) = (stage.request(1), stage.request(2));
    assert_eq!((first["max_tokens"].as_u64(), second["max_tokens"].as_u64()), (Some(4_096), Some(64_000)));
    assert_eq!(first["messages"], second["messages"], "the same question");
    // What was shown of it is taken back by name.
    let shown: Vec<_> =
        told.entries().iter().filter(|entry| entry.is_assistant()).map(|entry| entry.id).collect();
    let withdrawn: Vec<_> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Tombstone(ids) => Some(ids.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(withdrawn, shown[..2]);

    // Another process does not meet it either.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    run(&mut stage.resume(&file), "Sure?").await.assert_completed();
    let resumed = stage.request(3).to_string();
    assert!(resumed.contains("A whole answer.") && !resumed.contains("Half an ans"), "{resumed}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T5_loop_X7_after_the_raised_limit_it_goes_on_three_times_and_then_says_so() {
    let cut = |n: usize| Step::reply([text(format!("Part {n}."))]).stop("max_tokens");
    let stage = Stage::new((0..5).map(cut).fold(Script::new(), Script::step)).await;
    let mut engine = stage.engine_with(|options| options.max_output_tokens = Some(4_096));

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::ModelError, true));
    let recovery = "max_output_tokens_recovery";
    assert_eq!(told.transitions(), ["max_output_tokens_escalate", recovery, recovery, recovery]);
    assert_eq!(synthetics(&told), 1);
    assert!(outcome.text.contains("output limit"), "{}", outcome.text);
    let last = stage.request(5);
    assert!(text_of(&json!(last_user_blocks(&last))).contains("Go on exactly where it stopped"));
    let said: Vec<String> = blocks(&last, "assistant").iter().map(|block| text_of(&json!([block]))).collect();
    assert_eq!(said, ["Part 1.", "Part 2.", "Part 3."], "the first part was withdrawn");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T7_loop_B4_more_output_is_asked_for_until_there_is_enough() {
    let part = |n: usize| Step::reply([text(format!("Part {n}."))]).usage("output_tokens", 1_000);
    let stage = Stage::new((0..4).map(part).fold(Script::new(), Script::step)).await;
    let mut engine = stage.engine_with(|options| options.limits.output_tokens_wanted = Some(4_000));

    let told = run(&mut engine, "A long story.").await;

    let more = "token_budget_continuation";
    assert_eq!(told.transitions(), [more, more, more]);
    assert_eq!(told.assert_completed().usage.output_tokens, 4_000);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T7_little_by_little_is_not_asked_for_for_ever() {
    let stage =
        Stage::new(Script::new().step(Step::reply([text("Hm.")]).usage("output_tokens", 10).always())).await;
    let mut engine = stage.engine_with(|options| options.limits.output_tokens_wanted = Some(1_000_000));
    let told = run(&mut engine, "A long story.").await;
    told.assert_completed();
    assert_eq!(told.transitions(), ["token_budget_continuation"; 3]);
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
    // Three of the first, and the last one is asked as often as any that stands alone.
    assert_eq!(stage.request_count(), 3 + 11);
}

#[tokio::test]
async fn loop_M4_a_call_made_before_the_overload_is_kept_and_the_rest_asked_of_the_next_model() {
    let script = Script::new()
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
    assert_eq!(models(&stage), [PRIMARY, SECOND]);
    assert_eq!(swaps(&told).len(), 1);
    let asked = stage.request(2);
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
async fn loop_T11_thinking_bound_to_another_conversation_is_left_out_once() {
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a \
                   different conversation.";
    let script = Script::new()
        .reply([thinking("Deep thoughts."), text("Looking."), tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(400).message(refusal))
        .reply([thinking("More thoughts."), text("Done.")])
        .reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["next_turn", "request_repair"]);
    assert_no_error_shown(&told);
    assert_eq!(kinds(&engine), ["withheld", "repair"]);
    assert_eq!((thoughts(&stage.request(2)), thoughts(&stage.request(3))), (1, 0));
    assert!(stage.request(3).to_string().contains("Looking."));
    // The next question does not bring it again.
    run(&mut engine, "Sure?").await.assert_completed();
    assert_eq!(stage.request_count(), 4);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T11_a_repair_that_does_not_help_is_not_made_twice() {
    let refusal = "The block is bound to a different conversation.";
    let stage = Stage::new(Script::new().step(Step::status(400).message(refusal).always())).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert_eq!((told.transitions(), stage.request_count()), (vec!["request_repair"], 2));
    assert_eq!(synthetics(&told), 1);
}

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Shows a picture.
struct Camera;

impl Tool for Camera {
    fn spec(&self) -> Spec<'_> {
        let input_schema = r#"{"type":"object","properties":{}}"#;
        Spec { name: "Camera", description: "Takes a picture.", input_schema }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        let mut output = Output::text("Click.");
        output.content.push(ResultBlock::Image { media_type: "image/png", base64: PIXEL.to_owned() });
        async move { output }.boxed()
    }
}

/// Which results of a request show their picture.
fn pictures(request: &Value) -> Vec<bool> {
    let results = blocks(request, "user").into_iter().filter(|block| block["type"] == "tool_result");
    results.map(|block| block["content"].to_string().contains(PIXEL)).collect()
}

/// Two pictures with thoughts in between, then a refusal.
fn two_pictures(refusal: Step) -> Script {
    let shot = |n: usize| Step::reply([thinking(format!("Shot {n}.")), tool("Camera", json!({}))]);
    Script::new().step(shot(1)).step(shot(2)).step(refusal).reply([thinking("Hm."), text("Done.")])
}

async fn with_camera(stage: &Stage) -> Told {
    let mut engine = stage.engine_with(|options| options.tools.push(Arc::new(Camera)));
    run(&mut engine, "Take two.").await
}

#[tokio::test]
async fn loop_T11_loop_W2_the_image_that_is_refused_is_replaced_by_a_note() {
    let refusal = "messages.4.content.0.image.source.base64.data: image exceeds 5 MB maximum";
    let stage = Stage::new(two_pictures(Step::status(400).message(refusal))).await;

    let told = with_camera(&stage).await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_no_error_shown(&told);
    assert_eq!(told.transitions().last(), Some(&"request_repair"));
    assert_eq!(pictures(&stage.request(3)), [true, true]);
    assert_eq!(pictures(&stage.request(4)), [true, false]);
    assert_eq!(
        (thoughts(&stage.request(3)), thoughts(&stage.request(4))),
        (2, 0),
        "it is bound to the image"
    );
    assert!(stage.request(4).to_string().contains("was left out here"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T11_a_request_of_too_many_bytes_is_sent_without_its_oldest_media() {
    let stage = Stage::new(two_pictures(Step::status(413).error_type("request_too_large"))).await;

    let told = with_camera(&stage).await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_no_error_shown(&told);
    assert_eq!(pictures(&stage.request(3)), [true, true]);
    assert_eq!(pictures(&stage.request(4)), [false, true]);
    stage.assert_all_played();
}

#[tokio::test]
async fn an_image_that_nobody_can_name_costs_all_of_them_and_nothing_else() {
    let stage = Stage::new(two_pictures(Step::status(400).message("Could not process image"))).await;
    let told = with_camera(&stage).await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(pictures(&stage.request(4)), [false, false]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X6_media_that_are_refused_whatever_is_left_out_end_the_run_once() {
    let always = Step::status(413)
        .error_type("request_too_large")
        .message("Request exceeds the maximum size")
        .always();
    let stage = Stage::new(Script::new().reply([tool("Camera", json!({}))]).step(always)).await;
    let told = with_camera(&stage).await;
    assert_eq!((told.outcome().terminal, told.outcome().is_error), (Terminal::ImageError, true));
    assert_eq!(synthetics(&told), 1);
    assert!(stage.request_count() <= 5, "{}", stage.request_count());
}

#[tokio::test]
async fn loop_T11_a_tool_whose_schema_is_refused_is_left_out() {
    let script = Script::new()
        .reply([thinking("Hm."), tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(400).message("tools.1.custom.input_schema: JSON schema is invalid"))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;

    let told = run(&mut stage.engine(), "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_no_error_shown(&told);
    let names = |n: usize| -> Vec<String> {
        let request = stage.request(n);
        let tools = request["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut kept = names(2);
    kept.remove(1);
    assert_eq!(names(3), kept);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X8_loop_I2_a_full_window_is_said_without_asking() {
    let stage = Stage::new(Script::new()).await;
    let mut engine = stage.engine_with(|options| options.window_tokens = Some(3_001));

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::BlockingLimit, true));
    assert!(outcome.text.contains("context window"), "{}", outcome.text);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 0));
}

#[tokio::test]
async fn loop_M6_after_two_broken_streams_the_answer_comes_in_one_piece() {
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
    assert!(stage.request(3)["max_tokens"].as_u64().unwrap() <= 21_333);
    // The next question is streamed again.
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

    let stage = Stage::new(Script::new().step(Step::status(404).always())).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.outcome().error.as_ref().unwrap().status, Some(404));
    assert_eq!((synthetics(&told), stage.request_count()), (1, 2));
}
