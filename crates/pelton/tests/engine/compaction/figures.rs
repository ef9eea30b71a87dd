use futures::StreamExt;
use pelton::compact::Level;
use pelton::event::ContextEvent;
use pelton::{Engine, Event};
use pelton_testkit::{Part, Script, Step, text, tool};
use serde_json::json;

use super::{boundaries, small, with_helpers};
use crate::media::leaving::document;
use crate::media::{Album, noise};
use crate::stage::{Stage, prompt, resume_from, run, sh};

/// What is known of a request before it is answered: the figure that was shown when it was sent, and what the server
/// counted.
#[derive(Debug)]
struct Asked {
    shown: u64,
    counted: u64,
}

/// Runs a prompt to its end. Every request and every boundary, in order; and how it was before and after each boundary.
async fn watched(engine: &mut Engine, words: &str) -> (Vec<Asked>, Vec<(Level, u64, u64)>) {
    let status = engine.watch();
    let (mut asked, mut boundaries) = (Vec::new(), Vec::new());
    let mut events = Box::pin(engine.submit(prompt(words)));
    while let Some(event) = events.next().await {
        match event {
            Event::Started(started) => {
                let shown = status.borrow().context_tokens;
                asked.push(Asked { shown, counted: started.usage.prompt_tokens() });
            }
            Event::Context(ContextEvent::Boundary(boundary)) => {
                boundaries.push((boundary.level, boundary.before_tokens, boundary.after_tokens));
            }
            Event::Result(outcome) => assert!(!outcome.is_error, "{}", outcome.text),
            _ => {}
        }
    }
    (asked, boundaries)
}

fn off_percent(asked: &Asked) -> u64 {
    asked.shown.abs_diff(asked.counted) * 100 / asked.counted
}

/// Prints the text of a file in the place.
fn show(name: &str) -> Part {
    tool("Bash", sh(&format!("cat {name}")))
}

#[tokio::test]
async fn pit_C5_words_of_any_language_are_known_within_fifteen_percent_after_the_first_count() {
    let beans = "豆を一つずつ数えて、袋に入れる。";
    let languages = [
        ("Count the beans, one by one, and put them into the bag. ", "english"),
        (beans, "japanese"),
        ("콩을 하나씩 세어 자루에 넣는다. ", "korean"),
        ("Сосчитай бобы и положи их в мешок. ", "russian"),
    ];
    for model in ["claude-sonnet-4-5", "claude-opus-5-5"] {
        for (words, name) in languages {
            let script = Script::new()
                .reply([text(words.repeat(3)), show("short")])
                .reply([show("long")])
                .reply([show("longer"), text(words.repeat(40))])
                .reply([show("english")])
                .reply([text("Done.")]);
            let stage = Stage::new(script).await;
            let english = languages[0].0;
            for (file, words, bytes) in [
                ("short", words, 2_000),
                ("long", words, 20_000),
                ("longer", words, 28_000),
                ("english", english, 20_000),
            ] {
                stage.write(file, &words.repeat(bytes / words.len()));
            }
            let mut engine = stage.engine_with(|options| {
                small(options, &["Bash", "Read", "Write"]);
                options.model = model.to_owned();
                options.window_tokens = None;
            });
            let (asked, boundaries) = watched(&mut engine, &words.repeat(20)).await;
            assert_eq!((asked.len(), boundaries.len()), (5, 0));
            let off: Vec<u64> = asked.iter().map(off_percent).collect();
            assert!(off[1..].iter().all(|percent| *percent <= 15), "{model}, {name}: {off:?} of {asked:?}");
            // What everybody is shown between two prompts is the same figure.
            let shown = engine.watch().borrow().context_tokens;
            let usage = engine.context_usage();
            assert_eq!(
                (usage.used_tokens, usage.shares.iter().map(|share| share.tokens).sum()),
                (shown, shown)
            );
            // And to another process, which knows the record only.
            let file = engine.transcript_file().unwrap();
            drop(engine);
            let mut engine = stage.engine_with(|options| {
                small(options, &["Bash", "Read", "Write"]);
                options.model = model.to_owned();
                options.window_tokens = None;
                resume_from(options, &file);
            });
            let again = engine.context_usage().used_tokens;
            assert!(again.abs_diff(shown) * 100 <= shown * 5, "{model}, {name}: {again} instead of {shown}");
        }
    }
}

#[tokio::test]
async fn pit_C5_the_figure_that_is_shown_is_the_one_that_sets_a_level_off() {
    let script = (0..24).fold(with_helpers(), |script, n| {
        script.reply([text(format!("第{n}回。{}", "豆を数えた。".repeat(150))), show("beans")])
    });
    let stage = Stage::new(script.reply([text("Done.")])).await;
    stage.write("beans", &"豆が一つ。".repeat(300));
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash", "Read", "TodoWrite", "Write"]);
        options.compact.folds = false;
    });
    let usage = engine.context_usage();

    let (asked, boundaries) = watched(&mut engine, "数えて。").await;

    for level in [Level::Microcompact, Level::Autocompact] {
        let from = usage.levels.iter().find(|plan| plan.level == level.name()).unwrap().from_tokens;
        let mut of_level = boundaries.iter().filter(|(other, ..)| *other == level).peekable();
        assert!(of_level.peek().is_some(), "{} never ran", level.name());
        for (_, before, after) in of_level {
            assert!(
                *before >= from && after < before,
                "{}: {before} to {after}, from {from} on",
                level.name()
            );
        }
    }
    // Nothing is ever sent that is shown as being above what sets a summary off.
    let sent_most = asked.iter().map(|asked| asked.shown).max().unwrap();
    assert!(sent_most < usage.auto_compact_threshold, "{sent_most} of {}", usage.auto_compact_threshold);
    stage.model.assert_clean();
}

#[tokio::test]
async fn pit_C5_usage_that_was_added_up_twice_changes_nothing() {
    let stage = Stage::new(Script::new()).await;
    let honest = Script::new().reply([text("One.")]).reply([text("Two.")]).reply([text("Three.")]);
    let stage = stage.playing(honest).await;
    let mut engine = stage.engine();
    run(&mut engine, "One?").await.assert_completed();
    run(&mut engine, "Two?").await.assert_completed();
    let before = engine.context_usage().used_tokens;
    drop(engine);

    // The same with a server that counts the second answer twice.
    let doubled = Step::reply([text("Two.")])
        .usage("input_tokens", before * 2)
        .usage("cache_read_input_tokens", 0)
        .usage("cache_creation_input_tokens", 0);
    let stage = stage.playing(Script::new().reply([text("One.")]).step(doubled)).await;
    let mut engine = stage.engine();
    run(&mut engine, "One?").await.assert_completed();
    run(&mut engine, "Two?").await.assert_completed();
    let after = engine.context_usage().used_tokens;
    assert!(after.abs_diff(before) * 100 <= before * 2, "{after} instead of {before}");
}

#[tokio::test]
async fn pit_C5_pages_of_documents_are_known_within_fifteen_percent_after_the_first_count() {
    for model in ["claude-haiku-4-5", "claude-opus-5-5"] {
        let read = |name: &str| tool("Read", json!({"file_path": name}));
        let script = Script::new()
            .reply([read("three.pdf")])
            .reply([read("twelve.pdf")])
            .reply([read("heavy.pdf"), show("words")])
            .reply([text("Read.")]);
        let stage = Stage::new(script).await;
        stage.write("three.pdf", &document(3));
        stage.write("twelve.pdf", &document(12));
        // What it weighs in bytes says nothing.
        let heavy = format!("{}%{}\n", document(9), "picture".repeat(200_000));
        stage.write("heavy.pdf", &heavy);
        stage.write("words", &"Count the beans, one by one. ".repeat(1_000));
        let mut engine = stage.engine_with(|options| {
            small(options, &["Bash", "Read"]);
            options.model = model.to_owned();
            options.window_tokens = None;
        });
        let (asked, boundaries) = watched(&mut engine, "Read all of it.").await;
        assert_eq!((asked.len(), boundaries.len()), (4, 0));
        let off: Vec<u64> = asked.iter().map(off_percent).collect();
        // Before a document was ever counted there is only a guess; one full of words costs half as much again.
        assert!(off[2] <= 15 && off[3] <= 35, "{model}: {off:?} of {asked:?}");
        stage.model.assert_clean();
    }
}

#[tokio::test]
async fn the_figure_after_media_were_left_out_by_hand_is_what_the_server_counts_next() {
    let script = Script::new()
        .reply((0..5).map(|page| tool("Album", json!({"page": page}))))
        .reply([text("Seen.")])
        .reply([text("Two are left.")])
        .reply([text("All are back.")]);
    let stage = Stage::new(script).await;
    let album = Album::of((0..5).map(|n| noise(900 + n, 700)));
    let mut engine = stage.engine_with(|options| options.tools.push(album));
    run(&mut engine, "Look at them.").await.assert_completed();
    let share = |engine: &mut Engine, kind: &str| {
        let usage = engine.context_usage();
        usage.shares.iter().filter(|share| share.kind == kind).map(|share| share.tokens).sum::<u64>()
    };
    let (before, media) = (engine.context_usage().used_tokens, share(&mut engine, "media"));

    let told = run(&mut engine, "/context media 2").await;

    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    let after = engine.context_usage().used_tokens;
    let boundary = boundaries(&told).pop().unwrap();
    assert_eq!((boundary.before_tokens, boundary.after_tokens), (before, after));
    assert_eq!(engine.watch().borrow().context_tokens, after);
    assert!(told.outcome().text.contains(&format!("about {after} tokens now")), "{}", told.outcome().text);
    let left = share(&mut engine, "media");
    assert!((left * 5).abs_diff(media * 2) * 20 <= media * 2, "{left} of {media}");
    let (asked, _) = watched(&mut engine, "How many are left?").await;
    assert!(off_percent(&asked[0]) <= 5, "{asked:?}");
    assert_eq!(stage.request(3).to_string().matches(r#""type":"image""#).count(), 2);

    let told = run(&mut engine, "/context undo").await;
    assert!(!told.outcome().is_error, "{}", told.outcome().text);
    assert_eq!(boundaries(&told).pop().unwrap().after_tokens, engine.context_usage().used_tokens);
    let (asked, _) = watched(&mut engine, "And now?").await;
    assert!(off_percent(&asked[0]) <= 5, "{asked:?}");
    assert_eq!(stage.request(4).to_string().matches(r#""type":"image""#).count(), 5);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_C5_the_first_figure_after_another_model_was_chosen_is_what_that_counts() {
    let script = Script::new()
        .reply([show("words"), text("Reading.")])
        .reply([text("Read.")])
        .reply([text("Here.")])
        .reply([text("There.")]);
    let stage = Stage::new(script).await;
    stage.write("words", &"Count the beans, one by one. ".repeat(1_000));
    let mut file: Option<std::path::PathBuf> = None;
    for (turn, model) in ["claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-5-5"].into_iter().enumerate()
    {
        let mut engine = stage.engine_with(|options| {
            small(options, &["Bash", "Read"]);
            options.model = model.to_owned();
            options.window_tokens = None;
            if let Some(file) = &file {
                resume_from(options, file);
            }
        });
        let usage = engine.context_usage();
        let (asked, boundaries) = watched(&mut engine, "Go on.").await;
        assert_eq!(boundaries.len(), 0);
        if turn > 0 {
            assert!(off_percent(&asked[0]) <= 5, "{model}: {asked:?}");
            assert!(usage.used_tokens.abs_diff(asked[0].shown) < 100, "{usage:?}, {asked:?}");
        }
        file = engine.transcript_file();
    }
    stage.model.assert_clean();
}

#[tokio::test]
async fn pit_C5_what_was_counted_for_another_program_is_the_figure_a_resumed_session_begins_with() {
    const COUNTED: u64 = 30_000;
    let figures =
        [("input_tokens", COUNTED), ("cache_creation_input_tokens", 0), ("cache_read_input_tokens", 0)];
    let seen = Step::reply([text("Seen.")]);
    let script = Script::new().step(figures.into_iter().fold(seen, |step, (name, n)| step.usage(name, n)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Look.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    // Others write down what was said, with what it cost, and nothing of ours.
    let is_said = |line: &&str| line.contains(r#""type":"user""#) || line.contains(r#""type":"assistant""#);
    let text = std::fs::read_to_string(&file).unwrap();
    let said: Vec<&str> = text.lines().filter(is_said).collect();
    assert!(said.len() < text.lines().count());
    std::fs::write(&file, said.join("\n") + "\n").unwrap();
    let shown = stage.resume(&file).context_usage().used_tokens;
    assert!((COUNTED..COUNTED + 100).contains(&shown), "{shown}");
}
