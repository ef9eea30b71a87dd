use pelton::Event;
use pelton::compact::Surgery;
use pelton::event::ContextEvent;
use pelton_testkit::{Script, text, tool};
use serde_json::json;

use super::{boundaries, heard, levels, summary};
use crate::stage::{Stage, run};

fn three_exchanges() -> Script {
    (1..=3).fold(Script::new(), |script, n| {
        script
            .reply([
                text(format!("Looking {n}.")),
                tool("Glob", json!({"pattern": format!("{n}*")})).id(format!("call_{n}")),
            ])
            .reply([text(format!("Answer {n}. {}", "And more. ".repeat(60)))])
    })
}

async fn talk(stage: &Stage) -> pelton::Engine {
    let mut engine = stage.engine();
    for n in 1..=3 {
        run(&mut engine, &format!("Question {n}?")).await.assert_completed();
    }
    engine
}

#[tokio::test]
async fn loop_C8_somebody_asks_for_a_summary_and_takes_it_back() {
    let script = three_exchanges()
        .step(summary("Two questions were answered."))
        .reply([text("After.")])
        .reply([text("Again.")]);
    let stage = Stage::new(script).await;
    let mut engine = talk(&stage).await;

    let told = run(&mut engine, "/compact keep the questions").await;

    let outcome = told.outcome();
    assert_eq!((outcome.is_error, outcome.num_turns), (false, 0), "{outcome:#?}");
    assert_eq!(levels(&told), ["manual"]);
    // A client reads: compacting, done, init, boundary.
    let place = |wanted: fn(&Event) -> bool| told.position(wanted);
    let compacting = place(|event| matches!(event, Event::Context(ContextEvent::Compacting { .. })));
    let done = place(|event| matches!(event, Event::Context(ContextEvent::Compacted(Ok(())))));
    let init = place(|event| matches!(event, Event::Init(_)));
    let boundary = place(|event| matches!(event, Event::Context(ContextEvent::Boundary(_))));
    assert!(compacting < done && done < init && init < boundary);
    assert!(heard(&stage.request(7)).ends_with("above all: keep the questions"));

    run(&mut engine, "What now?").await.assert_completed();
    let words = stage.request(8).to_string();
    assert!(words.contains("Two questions were answered.") && !words.contains("Answer 1."), "{words}");

    let told = run(&mut engine, "/uncompact").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    run(&mut engine, "And now?").await.assert_completed();
    let words = stage.request(9).to_string();
    assert!(!words.contains("Two questions were answered."), "{words}");
    for n in 1..=3 {
        assert!(words.contains(&format!("Answer {n}.")), "{words}");
    }
    assert!(run(&mut engine, "/uncompact").await.outcome().is_error, "there is nothing left to undo");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_C4_files_are_told_again_by_their_words_and_documents_not_at_all() {
    let read = |file: &str| tool("Read", json!({"file_path": file}));
    let script = Script::new()
        .reply([read("page.pdf"), read("older.txt"), read("plain.txt")])
        .reply([text(format!("All read. {}", "And more. ".repeat(300)))])
        .reply([text("And now?")])
        .step(summary("Three files were read."))
        .reply([text("After.")]);
    let stage = Stage::new(script).await;
    // A document may be made of nothing but letters.
    stage.write(
        "page.pdf",
        "%PDF-1.4\n1 0 obj\n<< /Type /Page >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n",
    );
    let cafes = "Ein Café für müde Bären, schön am Fluß, mit Äpfeln und Öl. ".repeat(20);
    let in_latin_1: Vec<u8> = cafes.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    std::fs::write(stage.path("older.txt"), in_latin_1).unwrap();
    stage.write("plain.txt", "Beans.\n");
    let mut engine = stage.engine();
    run(&mut engine, "Read them.").await.assert_completed();
    run(&mut engine, "Go on.").await.assert_completed();

    assert_eq!(levels(&run(&mut engine, "/compact").await), ["manual"]);

    run(&mut engine, "What now?").await.assert_completed();
    let words = stage.request(5).to_string();
    for there in ["Three files were read.", "Beans.", "Ein Café für müde Bären"] {
        assert!(words.contains(there), "{there} is missing: {words}");
    }
    assert!(!words.contains("endobj"), "{words}");
    stage.assert_all_played();
}

#[tokio::test]
async fn what_a_change_by_hand_tells_is_the_figure_that_is_shown_also_in_another_process() {
    let stage = Stage::new(three_exchanges()).await;
    let file = talk(&stage).await.transcript_file().unwrap();
    let mut engine = stage.resume(&file);
    let told = run(&mut engine, "/context keep-last 1").await;
    let after = boundaries(&told).last().unwrap().after_tokens;
    assert_eq!(after, engine.context_usage().used_tokens);
    assert!(told.outcome().text.contains(&format!("about {after} tokens now")), "{}", told.outcome().text);
}

#[tokio::test]
async fn there_must_be_something_to_sum_up() {
    let stage = Stage::new(Script::new()).await;
    let told = run(&mut stage.engine(), "/compact").await;
    assert!(!told.outcome().is_error && told.outcome().text.contains("nothing to sum up"));
}

#[tokio::test]
async fn loop_C8_one_exchange_is_summed_up_where_somebody_wants_that() {
    for exchanges in 1..=2 {
        let script = (0..exchanges).fold(Script::new(), |script, _| script.reply([text("An answer.")]));
        let script = script.reply([text("It was answered.")]).reply([text("Later.")]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine();
        for _ in 0..exchanges {
            run(&mut engine, "A question?").await.assert_completed();
        }
        let told = run(&mut engine, "/compact").await;
        assert!(!told.outcome().is_error, "{}", told.outcome().text);
        assert_eq!(levels(&told), ["manual"]);
        run(&mut engine, "And?").await.assert_completed();
        let sent = stage.request(exchanges + 2)["messages"].to_string();
        // The newest of two stays, the only one does not.
        assert!(sent.contains("It was answered."), "{sent}");
        assert_eq!(sent.contains("An answer."), exchanges == 2, "{sent}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_C1_what_is_marked_goes_and_comes_back_and_the_figures_follow() {
    let script = three_exchanges().reply([text("After.")]).reply([text("Later.")]).reply([text("Again.")]);
    let stage = Stage::new(script).await;
    let mut engine = talk(&stage).await;
    let before = engine.context_usage();
    // Rounds are answers: the second question is answered in the third and the fourth.
    let told = run(&mut engine, "/context drop 3-4").await;
    assert_eq!(levels(&told), ["snip"]);
    let boundary = &boundaries(&told)[0];
    let after = engine.context_usage();
    assert_eq!((boundary.before_tokens, boundary.after_tokens), (before.used_tokens, after.used_tokens));
    assert!(after.used_tokens < before.used_tokens && after.rounds == before.rounds - 2);

    run(&mut engine, "And?").await.assert_completed();
    let words = stage.request(7).to_string();
    assert!(
        words.contains("Answer 1.") && !words.contains("Answer 2.") && !words.contains("call_2"),
        "{words}"
    );
    // The question goes with its answers, and that of others stays with theirs.
    assert!(!words.contains("Question 2?") && words.contains("Question 3?"), "{words}");

    // In another process, too.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let mut engine = stage.resume(&file);
    run(&mut engine, "Still?").await.assert_completed();
    assert!(!stage.request(8).to_string().contains("Answer 2."));
    engine.reshape(&Surgery::Undo(Some(boundary.edit))).await.unwrap();
    run(&mut engine, "Back?").await.assert_completed();
    assert!(stage.request(9).to_string().contains("Answer 2."));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_C11_each_kind_of_surgery_leaves_a_conversation_that_can_be_sent() {
    for (surgery, gone, stays) in [
        ("keep 5-6", "Answer 2.", "Answer 3."),
        ("keep 5-6", "Question 2?", "Question 3?"),
        ("keep-last 1", "Looking 3.", "Answer 3."),
        ("clear call_2", "No files", "Answer 2."),
        ("drop 1", "call_1", "Answer 1."),
    ] {
        let stage = Stage::new(three_exchanges().reply([text("After.")])).await;
        let mut engine = talk(&stage).await;
        let told = run(&mut engine, &format!("/context {surgery}")).await;
        if told.outcome().is_error {
            // A result that is short already is not worth a note.
            assert!(surgery.starts_with("clear"), "{surgery}: {}", told.outcome().text);
            continue;
        }
        run(&mut engine, "And?").await.assert_completed();
        let words = stage.request(7).to_string();
        assert!(!words.contains(gone) && words.contains(stays), "{surgery}: {words}");
        stage.assert_all_played();
    }
    let stage = Stage::new(three_exchanges()).await;
    let mut engine = talk(&stage).await;
    for wrong in ["drop 9", "drop 0", "drop 3-2", "clear nobody", "undo", "dance", "media"] {
        let told = run(&mut engine, &format!("/context {wrong}")).await;
        assert!(told.outcome().is_error, "{wrong}: {}", told.outcome().text);
    }
    let report = run(&mut engine, "/context").await.outcome().text.clone();
    assert!(report.contains("System prompt") && report.contains("microcompact"), "{report}");
}

#[tokio::test]
async fn the_newest_rounds_keep_the_question_that_they_answer() {
    for (kept, gone, stays) in [
        (1, vec!["Answer 1.", "Question 2?", "Answer 2.", "Looking 3."], vec!["Question 3?", "Answer 3."]),
        (2, vec!["Question 2?", "Answer 2."], vec!["Question 3?", "Looking 3.", "Answer 3."]),
        (3, vec!["Looking 2.", "Answer 1."], vec!["Question 2?", "Answer 2.", "Question 3?", "Answer 3."]),
    ] {
        let stage = Stage::new(three_exchanges().reply([text("After.")])).await;
        let mut engine = talk(&stage).await;
        let told = run(&mut engine, &format!("/context keep-last {kept}")).await;
        assert!(!told.outcome().is_error, "{}", told.outcome().text);
        run(&mut engine, "And?").await.assert_completed();
        let words = stage.request(7).to_string();
        assert!(gone.iter().all(|gone| !words.contains(gone)), "{kept}: {words}");
        assert!(stays.iter().all(|stays| words.contains(stays)), "{kept}: {words}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn what_an_undo_tells_is_what_another_process_comes_to() {
    let script = three_exchanges().step(summary("Two questions were answered.")).reply([text("After.")]);
    let stage = Stage::new(script).await;
    let mut engine = talk(&stage).await;
    run(&mut engine, "/compact").await;
    run(&mut engine, "What now?").await.assert_completed();
    for command in ["/context drop 1", "/context undo", "/uncompact"] {
        let told = run(&mut engine, command).await;
        assert!(!told.outcome().is_error, "{command}: {}", told.outcome().text);
        let shown = engine.context_usage().used_tokens;
        let file = engine.transcript_file().unwrap();
        let there = stage.resume(&file).context_usage_recorded().used_tokens;
        assert_eq!(there, shown, "{command}");
    }
}

#[tokio::test]
async fn why_the_cache_is_missed_is_known_to_the_next_process_too() {
    let stage = Stage::new(three_exchanges().reply([text("After.")])).await;
    let mut engine = talk(&stage).await;
    let told = run(&mut engine, "/context drop 1-2").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let told = run(&mut stage.resume(&file), "And?").await;
    let report = told.0.iter().find_map(|event| match event {
        Event::Cache(report) => Some(report.clone()),
        _ => None,
    });
    let reason = report.unwrap().reason.unwrap();
    assert!(reason.starts_with("messages[") && reason.ends_with("by: snip"), "{reason}");
}

#[tokio::test]
async fn what_the_context_is_kept_within_can_be_said_while_a_session_runs() {
    let stage = Stage::new(Script::new().reply([text("One.")])).await;
    let mut engine = stage.engine();
    let mut answers = async |words: &str| {
        let told = run(&mut engine, words).await;
        (told.outcome().is_error, told.outcome().text.clone())
    };
    let (_, own) = answers("/autocompact").await;
    assert_eq!(
        own,
        "The context is kept within 1000000 tokens, the model's own. It is summed up from 784000 tokens on."
    );
    let (_, said) = answers("/autocompact 150k").await;
    assert_eq!(
        said,
        "The context is kept within 150000 tokens, as it was asked for. It is summed up from 104000 tokens on."
    );
    for wrong in ["5", "2M", "little"] {
        let (is_error, why) = answers(&format!("/autocompact {wrong}")).await;
        assert!(is_error && why.contains("a number of tokens between 100k and 1M"), "{why}");
    }
    assert_eq!(answers("/autocompact").await.1, said);
    assert_eq!(engine.context_usage().window_tokens, 150_000);
    let mut answers = async |words: &str| run(&mut engine, words).await.outcome().text.clone();
    assert_eq!(answers("/autocompact auto").await, own);
    answers("Go on.").await;
    assert_eq!(engine.context_usage().window_tokens, 1_000_000);
    stage.assert_all_played();
}
