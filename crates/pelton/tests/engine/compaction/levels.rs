use futures::StreamExt;
use pelton::compact::Level;
use pelton::event::{ContextEvent, Trigger};
use pelton::{Event, Terminal};
use pelton_testkit::{Script, Step, When, gate, text, thinking, tool};
use serde_json::json;

use super::{asks_for_summary, boundaries, fold, heard, levels, newest, small, summary, with_helpers};
use crate::hooks::{hook, on};
use crate::stage::{Stage, Told, prompt, run, sh, unmarked};

/// Prints about so many tokens, differently every time.
fn print(n: usize, tokens: usize) -> pelton_testkit::Part {
    tool("Bash", sh(&format!("printf '%{}s' {n}", tokens * 4)))
}

/// Says about so many tokens and looks at nothing much.
fn say(n: usize, tokens: usize) -> [pelton_testkit::Part; 3] {
    let words = format!("Round {n}. {}", "word ".repeat(tokens * 4 / 5));
    [thinking("Hm."), text(words), tool("Bash", sh(&format!("echo {n}")))]
}

fn with_bash(stage: &Stage) -> pelton::Engine {
    stage.engine_with(|options| small(options, &["Bash", "Read", "TodoWrite", "Write"]))
}

#[track_caller]
fn assert_told(told: &Told) {
    for boundary in boundaries(told) {
        assert!(boundary.after_tokens < boundary.before_tokens, "{boundary:?}");
        assert!(boundary.reason.contains(boundary.level.name()), "{boundary:?}");
    }
}

#[tokio::test]
async fn loop_C2_old_bulky_results_lose_their_words_oldest_first() {
    let script = (0..10).fold(Script::new(), |script, n| {
        script.reply([thinking("Hm."), text(format!("Round {n}.")), print(n, 3_600)])
    });
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
    });

    let told = run(&mut engine, "Go.").await;

    told.assert_completed();
    assert_eq!(levels(&told), ["microcompact"]);
    assert_told(&told);
    let last = stage.request(11);
    let cleared = "This result was left out";
    let results = crate::stage::results_in(&last);
    let is_cleared: Vec<bool> = results.iter().map(|(_, _, words)| words.contains(cleared)).collect();
    assert!(
        is_cleared[0] && !is_cleared[9] && is_cleared.is_sorted_by(|one, two| one >= two),
        "{is_cleared:?}"
    );
    stage.assert_all_played();

    // Somebody who knows the file only sends the same.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let again = Stage::new(Script::new().reply([text("Here.")])).await;
    let mut options = again.options();
    small(&mut options, &["Bash"]);
    crate::stage::resume_from(&mut options, &file);
    run(&mut pelton::Engine::new(options).unwrap(), "And?").await.assert_completed();
    let messages = |request: &serde_json::Value| unmarked(request)["messages"].as_array().unwrap().clone();
    let (before, after) = (messages(&last), messages(&again.request(1)));
    assert_eq!(after[..before.len()], before[..]);
}

#[tokio::test]
async fn loop_C3_folds_made_beforehand_keep_everything_else_from_being_summed_up() {
    for is_first in [true, false] {
        folds_alone_make_room(is_first).await;
    }
}

/// Whether the request that is being worked on is the first thing said or not.
async fn folds_alone_make_room(is_first: bool) {
    let mut script = Script::new().step(fold("They were counted.").always());
    if !is_first {
        script = script.reply([text("Hello.")]);
    }
    let script = (0..24).fold(script, |script, n| script.reply(say(n, 2_500)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = with_bash(&stage);
    if !is_first {
        run(&mut engine, "Hello!").await.assert_completed();
    }

    let told = run(&mut engine, "Count, please.").await;

    told.assert_completed();
    assert_eq!(levels(&told), ["collapse"], "C4 never ran");
    assert!(boundaries(&told).len() > 1);
    assert_told(&told);
    let sent = newest(&stage);
    let words = heard(&sent);
    assert!(words.contains("They were counted.") && words.contains("Count, please."), "{words}");
    assert!(!sent.to_string().contains("Round 0. ") && sent.to_string().contains("Round 23. "));
    stage.model.assert_clean();
    // What a fold stands for is still there: it can be opened again.
    let file = std::fs::read_to_string(engine.transcript_file().unwrap()).unwrap();
    assert!(file.contains("Round 0. "));
    let fold = boundaries(&told)[0].edit;
    let opened = engine.reshape(&pelton::compact::Surgery::Undo(Some(fold))).await.unwrap();
    assert!(opened.after_tokens > opened.before_tokens);
}

#[tokio::test]
async fn loop_T2_loop_C3_staged_folds_are_committed_when_the_prompt_is_too_long() {
    let too_long = Step::status(400)
        .error_type("invalid_request_error")
        .message("prompt is too long: 60010 tokens > 60000 maximum");
    // Up to where folds are made, and not yet used.
    let script = (0..10).fold(Script::new().step(fold("They were counted.").always()), |script, n| {
        script.reply(say(n, 2_500))
    });
    let stage = Stage::new(script.step(too_long).reply([text("Done.")])).await;
    let mut engine = with_bash(&stage);

    let told = run(&mut engine, "Go.").await;

    told.assert_completed();
    assert_eq!(told.transitions().last(), Some(&"collapse_drain_retry"));
    assert!(!told.transitions().contains(&"reactive_compact_retry"));
    assert_eq!(levels(&told), ["collapse"]);
    stage.model.assert_clean();
}

#[tokio::test]
async fn loop_C3_a_fold_that_comes_when_its_stretch_is_gone_is_of_no_use_and_no_harm() {
    let is_fold = || When::any().system("You shorten a finished stretch");
    let late = Step::reply([gate("late"), text("They were folded.")]).when(is_fold());
    let no_more = Step::status(400).error_type("invalid_request_error").when(is_fold()).always();
    let too_long = Step::status(400)
        .error_type("invalid_request_error")
        .message("prompt is too long: 60010 tokens > 60000 maximum");
    let script = Script::new().step(late).step(no_more).step(summary("In short: all is well.").always());
    let script = (0..10).fold(script, |script, n| script.reply(say(n, 2_500))).step(too_long);
    // The next answer waits until the fold is there.
    let waits = [gate("behind"), text("Round 10."), tool("Bash", sh("echo 10"))];
    let script = (11..15).fold(script.reply(waits), |script, n| script.reply(say(n, 100)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = with_bash(&stage);

    let mut told = Vec::new();
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    while let Some(event) = events.next().await {
        if let Event::Context(ContextEvent::Boundary(boundary)) = &event {
            assert_eq!(boundary.level, Level::Reactive);
            // What was to be folded is summed up by now.
            stage.model.open("late");
            stage.model.wait_at_gate("late").await;
            stage.model.open("behind");
        }
        told.push(event);
    }
    drop(events);

    let told = Told(told);
    told.assert_completed();
    assert_eq!(levels(&told), ["reactive"], "{:?}", told.loop_reasons("compaction"));
    let reasons = told.loop_reasons("compaction");
    assert!(!reasons.iter().any(|reason| reason.contains("a fold is ready")), "{reasons:?}");
    let asked = stage.model.reply_requests().into_iter().filter(|seen| is_fold_request(&seen.body)).count();
    assert!(asked >= 1, "one was asked for");
    let sent = newest(&stage);
    assert!(
        heard(&sent).contains("In short: all is well.") && !sent.to_string().contains("They were folded.")
    );
    stage.model.assert_clean();
}

fn is_fold_request(request: &serde_json::Value) -> bool {
    request["system"].to_string().contains("You shorten")
}

#[tokio::test]
async fn loop_C4_pit_C4_a_summary_takes_the_place_of_the_rest_and_what_matters_is_told_again() {
    let todos = json!({"todos": [
        {"content": "Count the beans", "status": "in_progress", "activeForm": "Counting"},
        {"content": "Weigh them", "status": "pending", "activeForm": "Weighing"},
    ]});
    let write =
        |name: &str| tool("Write", json!({"file_path": name, "content": format!("The text of {name}.\n")}));
    let stage = Stage::new(Script::new()).await;
    let names: Vec<String> =
        ["a.txt", "b.txt", "c.txt"].map(|n| stage.path(n).display().to_string()).to_vec();
    let script = with_helpers()
        .reply([tool("TodoWrite", todos), write(&names[0]), write(&names[1]), write(&names[2])])
        .reply([tool("Bash", json!({"command": "sleep 300", "run_in_background": true}))])
        .reply([text("Ready.")]);
    let script = (0..20).fold(script, |script, n| script.reply(say(n, 2_500)));
    let stage = stage.playing(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash", "Write", "TodoWrite"]);
        options.compact.folds = false;
    });
    run(&mut engine, "First of all: always speak of beans.").await.assert_completed();
    // Files change while nobody looks: what is told again is what they hold now.
    stage.write("b.txt", "Somebody else wrote this.\n");

    let told = run(&mut engine, "Now count them, one by one.").await;

    told.assert_completed();
    assert_eq!(levels(&told), ["autocompact"]);
    assert_told(&told);
    let boundary = &boundaries(&told)[0];
    assert_eq!(boundary.trigger, Some(Trigger::Auto));
    let began = told.position(|event| matches!(event, Event::Context(ContextEvent::Compacting { .. })));
    let ended = told.position(|event| matches!(event, Event::Context(ContextEvent::Compacted(Ok(())))));
    assert!(began < ended);
    let requests = stage.model.reply_requests();
    let asked = requests.iter().position(|seen| asks_for_summary(&seen.body)).unwrap();
    // The summary is asked for behind the same conversation, which the server has in its cache.
    assert_eq!(requests[asked].body["system"], requests[asked - 1].body["system"]);
    assert_eq!(requests[asked].body["tools"], requests[asked - 1].body["tools"]);
    let messages = |at: usize| unmarked(&requests[at].body)["messages"].as_array().unwrap().clone();
    let before = messages(asked - 1);
    assert_eq!(messages(asked)[..before.len()], before[..]);
    let words = heard(&requests[asked + 1].body);
    for told_again in [
        "so far all is well",
        "The user's first request, word for word:\nFirst of all: always speak of beans.",
        "The user's latest request, which you are working on, word for word:\nNow count them, one by one.",
        "[in progress] Count the beans",
        "a.txt\">\nThe text of ",
        "Somebody else wrote this.",
        "c.txt\">\nThe text of ",
        "sleep 300",
        "<environment>",
    ] {
        assert!(words.contains(told_again), "{told_again:?} is missing: {words}");
    }
    assert!(!words.contains("b.txt\">\nThe text of "), "that is not so any more");
    stage.model.assert_clean();
    // Nothing is lost for good.
    let file = std::fs::read_to_string(engine.transcript_file().unwrap()).unwrap();
    assert!(file.contains("Round 0. ") && file.contains(r#""subtype":"compact_boundary""#));
}

#[tokio::test]
async fn loop_S8_loop_C10_what_is_summed_up_leaves_memory_and_comes_back_from_the_disk() {
    let script = (0..20).fold(with_helpers(), |script, n| script.reply(say(n, 2_500)));
    let stage =
        Stage::new(script.reply([text("Done.")]).reply([text("Here.")]).reply([text("Again.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
    });
    let told = run(&mut engine, "Count.").await;
    told.assert_completed();
    let said = told.entries().len();
    assert!(engine.history().len() < said, "{} of {said}", engine.history().len());
    let file = engine.transcript_file().unwrap();
    drop(engine);

    // Another process, another day: the same is sent.
    let resume = |auto: bool| {
        stage.engine_with(|options| {
            small(options, &["Bash"]);
            options.compact.folds = false;
            options.compact.auto = auto;
            crate::stage::resume_from(options, &file);
        })
    };
    let mut engine = resume(true);
    run(&mut engine, "And?").await.assert_completed();
    let count = stage.request_count();
    let messages = |nth: usize| unmarked(&stage.request(nth))["messages"].as_array().unwrap().clone();
    let (before, after) = (messages(count - 1), messages(count));
    assert_eq!(after[..before.len()], before[..]);
    drop(engine);

    // Resuming before it undoes it: nothing was deleted.
    let mut engine = resume(false);
    let in_short = engine.history().len();
    let told = run(&mut engine, "/uncompact").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    assert!(engine.history().len() > in_short, "{} of {in_short}", engine.history().len());
    let usage = engine.context_usage();
    assert!(usage.used_tokens > 40_000, "{usage:?}");
}

#[tokio::test]
async fn loop_C5_a_refusal_for_length_sets_off_a_compaction_of_its_own() {
    let too_long =
        Step::status(413).error_type("request_too_large").message("Request exceeds the maximum size");
    let script = (0..4).fold(with_helpers(), |script, n| script.reply(say(n, 500)));
    let stage = Stage::new(script.step(too_long).reply([text("Done.")])).await;
    let mut engine = with_bash(&stage);
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert_eq!(told.transitions().last(), Some(&"reactive_compact_retry"));
    assert_eq!(levels(&told), ["reactive"]);
    stage.model.assert_clean();
}

#[tokio::test]
async fn loop_C9_hooks_run_before_and_after_and_may_refuse() {
    let script = (0..20).fold(with_helpers(), |script, n| script.reply(say(n, 2_500)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    stage.write("CLAUDE.md", "Count beans.");
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
        hook(options, &on("PreCompact", &["cat >> pre.json"]));
        hook(options, &on("PostCompact", &["cat >> post.json"]));
        hook(options, &on("InstructionsLoaded", &["cat >> instructed.json"]));
        options.memory = Some(pelton::MemorySources::project());
        hook(options, &on("SessionStart", &["cat >> start.json; echo Beans are counted here."]));
    });
    run(&mut engine, "Go.").await.assert_completed();
    let read = |name: &str| stage.read(name);
    assert!(read("pre.json").contains(r#""trigger":"auto""#), "{}", read("pre.json"));
    assert!(read("post.json").contains("so far all is well"), "{}", read("post.json"));
    assert!(read("start.json").contains(r#""source":"compact""#), "{}", read("start.json"));
    let instructed = read("instructed.json");
    let times = |reason: &str| instructed.matches(&format!(r#""load_reason":"{reason}""#)).count();
    assert_eq!(times("session_start"), 1, "{instructed}");
    assert_eq!(times("compact"), read("post.json").matches(r#""hook_event_name":"#).count(), "{instructed}");
    let last = heard(&stage.request(stage.request_count()));
    assert!(last.contains("Beans are counted here."), "{last}");
}

#[tokio::test]
async fn loop_C9_a_hook_that_refuses_puts_it_off_and_lets_the_error_of_the_api_be_seen() {
    let refuses = on("PreCompact", &["echo not now >&2; exit 2"]);
    // Before it is needed: it is not done.
    let script = (0..16).fold(with_helpers(), |script, n| script.reply(say(n, 2_500)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
        hook(options, &refuses);
    });
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert!(levels(&told).is_empty());

    // Because the API refused: its error is shown.
    let message = "prompt is too long: 60010 tokens > 60000 maximum";
    let too_long = Step::status(400).error_type("invalid_request_error").message(message);
    let script = (0..4).fold(with_helpers(), |script, n| script.reply(say(n, 500)));
    let stage = Stage::new(script.step(too_long)).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        hook(options, &refuses);
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::PromptTooLong);
    assert!(told.outcome().text.contains(message), "{}", told.outcome().text);
}

#[tokio::test]
async fn a_summary_is_asked_for_with_the_users_words() {
    let stage = Stage::new(
        Script::new().reply([text("One.")]).reply([text("Two.")]).step(summary("Counted to two.")),
    )
    .await;
    let mut engine = stage.engine();
    run(&mut engine, "One?").await.assert_completed();
    run(&mut engine, "Two?").await.assert_completed();
    run(&mut engine, "/compact the numbers").await;
    assert!(heard(&stage.request(3)).ends_with("above all: the numbers"));
}

#[tokio::test]
async fn pit_C4_loop_C3_the_list_and_the_files_are_there_after_every_fold() {
    let todos =
        json!({"todos": [{"content": "Count the beans", "status": "in_progress", "activeForm": "Counting"}]});
    let notes = json!({"file_path": "notes.txt", "content": "A thousand beans.\n"});
    let script = Script::new()
        .step(fold("They were counted.").always())
        .reply([tool("TodoWrite", todos), tool("Write", notes)]);
    let script = (0..40).fold(script, |script, n| script.reply(say(n, 2_500)));
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = with_bash(&stage);

    let told = run(&mut engine, "Count, please.").await;

    told.assert_completed();
    assert_eq!(levels(&told), ["collapse"], "C4 never ran");
    let mut folded = 0;
    for seen in stage.model.reply_requests() {
        let request = &seen.body;
        if !heard(request).contains("<folded>") || request["system"].to_string().contains("You shorten") {
            continue;
        }
        folded += 1;
        let all = request["messages"].to_string();
        for there in ["Count the beans", "A thousand beans."] {
            assert!(all.contains(there), "{there} is missing in request {folded} behind a fold: {all}");
        }
    }
    assert!(folded > 5, "{folded}");
    stage.model.assert_clean();
}
