use pelton::{Event, Terminal};
use pelton_testkit::{Script, Step, When, text, tool};

use super::{asks_for_summary, boundaries, fold, heard, levels, small, summary, with_helpers};
use crate::stage::{Stage, run, sh};

fn say(n: usize, tokens: usize) -> [pelton_testkit::Part; 2] {
    let words = format!("Round {n}. {}", "word ".repeat(tokens * 4 / 5));
    [text(words), tool("Bash", sh(&format!("echo {n}")))]
}

fn too_long(tokens: u64) -> Step {
    let message = format!("prompt is too long: {tokens} tokens > 60000 maximum");
    Step::status(400).error_type("invalid_request_error").message(message)
}

fn plain(stage: &Stage) -> pelton::Engine {
    stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
    })
}

fn summaries_asked(stage: &Stage) -> usize {
    stage.model.reply_requests().iter().filter(|seen| asks_for_summary(&seen.body)).count()
}

#[tokio::test]
async fn loop_C6_pit_C1_a_summariser_that_fails_for_ever_gives_way_to_the_step_that_needs_no_model() {
    let fails = Step::status(400)
        .error_type("invalid_request_error")
        .message("no summaries today")
        .when(When::any().last_user_text("call no tools"))
        .always();
    let script = (0..30).fold(Script::new().step(fails), |script, n| script.reply(say(n, 2_500)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = plain(&stage);

    let told = run(&mut engine, "Count, please.").await;

    told.assert_completed();
    assert_eq!(summaries_asked(&stage), 3, "three failures in a row, and no more");
    assert_eq!(levels(&told), ["local"]);
    let last = stage.request(stage.request_count());
    assert!(heard(&last).contains("Count, please.") && last.to_string().contains("Round 29. "));
    assert!(stage.model.illegal().is_empty());
}

#[tokio::test]
async fn loop_C7_pit_C1_a_conversation_too_long_to_be_summed_up_loses_its_oldest_rounds_first() {
    // Written where there was room for it.
    let script = (0..24).fold(Script::new(), |script, n| script.reply(say(n, 3_000)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.window_tokens = None;
    });
    run(&mut engine, "Count, please.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    // Resumed where there is not: the summariser says twice that it is still too long.
    let twice = too_long(70_000).when(When::any().last_user_text("call no tools")).times(2);
    let stage = stage
        .playing(Script::new().step(twice).step(summary("They were counted.")).reply([text("Here.")]))
        .await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
        crate::stage::resume_from(options, &file);
    });
    let told = run(&mut engine, "And now?").await;
    told.assert_completed();
    assert_eq!((levels(&told), summaries_asked(&stage)), (vec!["autocompact"], 3));
    let sizes: Vec<usize> = (1..=3).map(|n| stage.request(n).to_string().len()).collect();
    assert!(sizes[0] < 60_000 * 4 && sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
    let last = heard(&stage.request(4));
    assert!(
        last.contains("They were counted.") && last.contains("Count, please.") && last.contains("And now?")
    );

    drop(engine);

    // And one that never fits gives way.
    let never = too_long(70_000).when(When::any().last_user_text("call no tools")).always();
    let stage = stage.playing(Script::new().step(never).reply([text("Here.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
        let mut conversation = pelton::transcript::read(&file).unwrap();
        conversation.edits.clear();
        options.resume = Some(pelton::Resumed { file: file.clone(), conversation });
    });
    let told = run(&mut engine, "And then?").await;
    told.assert_completed();
    assert_eq!(levels(&told), ["local"]);
    assert!(stage.request_count() <= 6, "{}", stage.request_count());
}

#[tokio::test]
async fn pit_C1_a_session_of_260_000_tokens_goes_on_in_a_window_of_200_000() {
    let script = (0..13).fold(Script::new(), |script, n| script.reply(say(n, 20_000)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| options.window_tokens = Some(1_000_000));
    run(&mut engine, "Count, please.").await.assert_completed();
    assert!(engine.context_usage().used_tokens > 260_000, "{}", engine.context_usage());
    let file = engine.transcript_file().unwrap();
    drop(engine);

    for fails in [false, true] {
        let summariser = match fails {
            false => summary("They were counted.").always(),
            true => too_long(260_000).when(When::any().last_user_text("call no tools")).always(),
        };
        let stage = Stage::new(Script::new().step(summariser).reply([text("Here.")])).await;
        let mut engine = stage.engine_with(|options| {
            options.window_tokens = Some(200_000);
            crate::stage::resume_from(options, &file);
            options.sessions = None;
        });
        let told = run(&mut engine, "And now?").await;
        told.assert_completed();
        assert_eq!(levels(&told), [if fails { "local" } else { "autocompact" }]);
        assert!(stage.request_count() <= 6, "{} calls", stage.request_count());
        for seen in stage.model.reply_requests() {
            assert!(seen.body.to_string().len() < 4 * 200_000, "every request fits");
        }
        // Folds may be asked for beside the conversation.
        let asked: Vec<String> = stage.model.reply_requests().iter().map(|seen| heard(&seen.body)).collect();
        let last = asked.iter().rev().find(|words| words.contains("And now?")).expect("it was asked");
        assert!(last.contains("Count, please."), "the first request is told again");
        assert!(engine.context_usage().used_tokens < 160_000);
    }
}

#[tokio::test]
async fn pit_C2_what_cannot_help_is_tried_once_and_said_once() {
    // The tools alone are more than the threshold.
    let script = (0..6).fold(with_helpers(), |script, n| script.reply(say(n, 20)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| {
        options.window_tokens = Some(super::WINDOW);
        options.compact = options.compact.clone().lowered_to(8);
        options.compact.folds = false;
    });
    assert!(engine.context_usage().used_tokens > engine.context_usage().auto_compact_threshold);
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert!(summaries_asked(&stage) <= 1);
    let said: Vec<&String> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Informational { content, .. } if content.contains("tools") => Some(content),
            _ => None,
        })
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("built-in tools"), "{said:?}");
}

#[tokio::test]
async fn pit_C2_a_front_that_leaves_no_room_for_a_summary_is_said_once_and_nobody_is_asked() {
    let script = (0..6).fold(with_helpers(), |script, n| script.reply(say(n, 20)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
        options.system_prompt.appended = Some("Every jar is counted twice. ".repeat(5_500));
    });
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(summaries_asked(&stage), 0);
    let said: Vec<&String> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Informational { content, .. } => Some(content),
            _ => None,
        })
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("too long to be summed up") && said[0].contains("system prompt"), "{said:?}");
    let tries = told.loop_reasons("compaction");
    let again = tries.iter().filter(|why| why.starts_with("autocompact"));
    assert!(again.clone().all(|why| why.contains("did not run")), "{again:?}");
}

#[tokio::test]
async fn loop_C3_nobody_folds_what_a_summary_has_taken_away() {
    // From too little for a fold to enough for a summary in one answer: both are wanted before the same question.
    let script = (0..6).fold(with_helpers(), |script, n| script.reply(say(n, 3_000)));
    let stage = Stage::new(script.reply(say(6, 24_000)).reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| small(options, &["Bash"]));
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(levels(&told), ["autocompact"]);
    let folds = stage.model.reply_requests();
    let folds = folds.iter().filter(|seen| seen.body["system"].to_string().contains("You shorten"));
    assert_eq!(folds.count(), 0, "it would be of no use");
}

#[tokio::test]
async fn pit_C2_a_summary_that_is_no_smaller_is_thrown_away() {
    let long = "Everything was said, at length. ".repeat(6_000);
    let always = Step::reply([text(long)]).when(When::any().last_user_text("call no tools")).always();
    let script = (0..16).fold(Script::new().step(always), |script, n| script.reply(say(n, 2_500)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let told = run(&mut plain(&stage), "Go.").await;
    told.assert_completed();
    assert_eq!(summaries_asked(&stage), 1);
    assert!(boundaries(&told).is_empty());
}

#[tokio::test]
async fn loop_C6_loop_X8_a_context_that_fills_as_fast_as_it_is_emptied_ends_the_run_with_the_figures() {
    // Each answer alone nearly fills the window: behind a summary there is still some room, or none; or there are no summaries.
    let none =
        || Script::new().step(too_long(70_000).when(When::any().last_user_text("call no tools")).always());
    for (script, tokens) in
        [(with_helpers(), 30_000), (with_helpers(), 36_000), (none(), 30_000), (none(), 36_000)]
    {
        let stage = Stage::new((0..30).fold(script, |script, n| script.reply(say(n, tokens)))).await;
        let told = run(&mut plain(&stage), "Go.").await;
        let outcome = told.outcome();
        assert_eq!((outcome.terminal, outcome.is_error), (Terminal::RapidRefill, true), "{tokens}");
        assert_eq!(outcome.terminal.name(), "rapid_refill_breaker");
        let text = &outcome.text;
        assert!(text.starts_with("The context fills again as fast as it is emptied. "), "{text}");
        assert!(text.contains("system prompt") && text.contains("messages"), "{text}");
        assert!(stage.request_count() < 20, "{tokens}: {}", stage.request_count());
        // Each was given a turn to help.
        assert!(boundaries(&told).len() >= 2, "{tokens}: {:?}", levels(&told));
    }
}

#[tokio::test]
async fn a_fold_that_is_no_gain_or_fails_is_not_asked_for_for_ever() {
    let useless = Step::status(400)
        .error_type("invalid_request_error")
        .when(When::any().system("You shorten"))
        .always();
    let script = (0..12)
        .fold(Script::new().step(useless).step(summary("In short.").always()), |script, n| {
            script.reply(say(n, 2_500))
        });
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| small(options, &["Bash"]));
    run(&mut engine, "Go.").await.assert_completed();
    let folds = stage
        .model
        .reply_requests()
        .iter()
        .filter(|seen| seen.body["system"].to_string().contains("You shorten"))
        .count();
    assert!((1..=3).contains(&folds), "{folds}");
    let _ = fold("");
}

#[tokio::test]
async fn loop_X8_switched_off_a_full_window_ends_the_run() {
    let script = (0..30).fold(Script::new(), |script, n| script.reply(say(n, 2_500)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.auto = false;
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::BlockingLimit);
    assert!(told.outcome().text.contains("messages"), "{}", told.outcome().text);
    assert_eq!(summaries_asked(&stage), 0);
}

#[tokio::test]
async fn one_result_larger_than_the_window_can_still_be_sent() {
    let script = Script::new()
        .reply([tool("Bash", sh("head -c 1700000 /dev/zero | tr '\\0' x"))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        // As if nobody had kept it short before.
        options.tool_limits.shell_output_chars_max = 2_000_000;
        options.tool_limits.message_result_chars_max = 2_000_000;
    });
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(stage.request_count(), 2);
    stage.model.assert_clean();
}
