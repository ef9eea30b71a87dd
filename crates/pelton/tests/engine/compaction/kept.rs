//! What the model must have after a level took something away: told again, or known to be unknown.

use pelton::{Event, MemorySources, Options, SkillSources};
use pelton_testkit::{Part, Script, Step, When, text, tool};
use serde_json::{Value, json};

use super::{boundaries, fold, heard, levels, newest, small};
use crate::stage::{Stage, Told, run, sh};

const TOOLS: [&str; 4] = ["Bash", "Read", "Skill", "TodoWrite"];

fn wanted(options: &mut Options) {
    small(options, &TOOLS);
    options.memory = Some(MemorySources::project());
    options.skills = Some(SkillSources::project());
}

/// A project with instructions, a rule about some files, words of a directory below, and a skill.
async fn project(script: Script) -> Stage {
    let stage = Stage::new(script).await;
    for (name, content) in [
        ("CLAUDE.md", "Speak of beans."),
        (".claude/rules/code.md", "---\npaths: [\"**/*.rs\"]\n---\nIndent by four."),
        ("part/CLAUDE.md", "This part is old."),
        ("part/a.rs", "fn main() {}\n"),
        (".claude/skills/greet/SKILL.md", "---\ndescription: Greets\n---\nSay hello to everybody."),
    ] {
        std::fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        stage.write(name, content);
    }
    stage
}

/// Makes a list, reads a file with rules about it, and calls for the skill.
fn prepares() -> [Part; 3] {
    let todos =
        json!({"todos": [{"content": "Count them all", "status": "in_progress", "activeForm": "Counting"}]});
    [
        tool("TodoWrite", todos),
        tool("Read", json!({"file_path": "part/a.rs"})),
        tool("Skill", json!({"skill": "greet"})),
    ]
}

/// The same file and skill again.
fn looks_again() -> [Part; 2] {
    [tool("Read", json!({"file_path": "part/a.rs", "limit": 1})), tool("Skill", json!({"skill": "greet"}))]
}

fn say(n: usize, tokens: usize) -> [Part; 2] {
    let words = format!("Round {n}. {}", "word ".repeat(tokens * 4 / 5));
    [text(words), tool("Bash", sh(&format!("echo {n}")))]
}

fn no_summaries() -> Step {
    Step::status(400)
        .error_type("invalid_request_error")
        .message("no summaries today")
        .when(When::any().last_user_text("call no tools"))
        .always()
}

#[track_caller]
fn assert_has(request: &Value, wanted: &[&str]) {
    let words = heard(request);
    for wanted in wanted {
        assert!(words.contains(wanted), "{wanted:?} is missing: {words}");
    }
}

fn times(request: &Value, words: &str) -> usize {
    heard(request).matches(words).count()
}

#[tokio::test]
async fn loop_C6_pit_C4_without_a_model_too_what_matters_is_told_again() {
    let script = Script::new().step(no_summaries()).reply([text("Hello.")]).reply(prepares());
    let script = (0..24).fold(script, |script, n| script.reply(say(n, 2_500)));
    let script = script.reply(looks_again()).reply([text("Done.")]);
    let stage = project(script).await;
    let mut engine = stage.engine_with(|options| {
        wanted(options);
        options.compact.folds = false;
    });
    run(&mut engine, "Hello!").await.assert_completed();

    let told = run(&mut engine, "Count them, and greet.").await;

    told.assert_completed();
    assert_eq!(levels(&told), ["local"]);
    for boundary in boundaries(&told) {
        assert!(boundary.after_tokens < boundary.before_tokens && boundary.summary.is_some(), "{boundary:?}");
    }
    let requests = stage.model.reply_requests();
    let first = requests.iter().position(|seen| heard(&seen.body).contains("were left out")).unwrap();
    let matters = [
        "Speak of beans.",
        "The user's first request, word for word:\nHello!",
        "The user's latest request, which you are working on, word for word:\nCount them, and greet.",
        "[in progress] Count them all",
        "Say hello to everybody.",
        "<environment>",
    ];
    for request in &requests[first..] {
        if request.body["tools"].is_array() && !super::asks_for_summary(&request.body) {
            assert_has(&request.body, &matters);
        }
    }
    // What came with a file comes with it again; what is told again is there.
    let last = newest(&stage);
    assert_has(
        &last,
        &["This part is old.", "Indent by four.", "You have the text of the skill greet already"],
    );
    assert_eq!(times(&last, "Say hello to everybody."), 1);
    stage.model.assert_clean();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_C3_what_a_fold_takes_away_is_not_taken_for_known() {
    let script = Script::new().step(fold("They were counted.").always()).reply(prepares());
    let script = (0..24).fold(script, |script, n| script.reply(say(n, 2_500)));
    let stage = project(script.reply(looks_again()).reply([text("Done.")])).await;
    let mut engine = stage.engine_with(wanted);

    let told = run(&mut engine, "Count them, and greet.").await;

    told.assert_completed();
    assert_eq!(levels(&told), ["collapse"]);
    let requests = stage.model.reply_requests();
    let folded = |seen: &&pelton_testkit::Seen| {
        seen.body["tools"].is_array() && heard(&seen.body).contains("They were counted.")
    };
    for request in requests.iter().filter(folded) {
        assert_has(&request.body, &["Speak of beans.", "Count them, and greet.", "Say hello to everybody."]);
    }
    let last = newest(&stage);
    assert_has(
        &last,
        &["This part is old.", "Indent by four.", "You have the text of the skill greet already"],
    );
    assert_eq!((times(&last, "Say hello to everybody."), times(&last, "This part is old.")), (1, 1));
    stage.model.assert_clean();
}

#[tokio::test]
async fn loop_C11_what_is_dropped_by_hand_is_told_anew_when_it_is_needed() {
    for (surgery, is_gone) in
        [(&["drop 2-3"][..], true), (&["keep 1-1"], true), (&["drop 2-3", "undo"], false)]
    {
        for in_another_process in [false, true] {
            let script = Script::new().reply([text("Hello.")]).reply(prepares()).reply([text("Ready.")]);
            let script = script.reply(looks_again()).reply([text("Done.")]);
            let stage = project(script).await;
            let mut engine = stage.engine_with(wanted);
            run(&mut engine, "Hello!").await.assert_completed();
            run(&mut engine, "Prepare.").await.assert_completed();
            for surgery in surgery {
                let told = run(&mut engine, &format!("/context {surgery}")).await;
                assert!(!told.outcome().is_error, "{surgery}: {}", told.outcome().text);
                assert!(told.0.iter().any(|event| matches!(event, Event::Loop(_))), "it is noted");
            }
            if in_another_process {
                let file = engine.transcript_file().unwrap();
                drop(engine);
                engine = stage.engine_with(|options| {
                    wanted(options);
                    crate::stage::resume_from(options, &file);
                });
            }
            run(&mut engine, "Look again.").await.assert_completed();
            let last = newest(&stage);
            for words in
                ["Say hello to everybody.", "This part is old.", "Indent by four.", "Speak of beans."]
            {
                assert_eq!(
                    times(&last, words),
                    1,
                    "{surgery:?}, {in_another_process}: {words}: {}",
                    heard(&last)
                );
            }
            let already = times(&last, "You have the text of the skill greet already");
            assert_eq!(already, usize::from(!is_gone), "{surgery:?}, {in_another_process}");
            stage.model.assert_clean();
        }
    }
}

#[tokio::test]
async fn one_undo_takes_back_what_one_command_did() {
    let script = (1..=4).fold(Script::new(), |script, n| script.reply([text(format!("Answer {n}."))]));
    for in_another_process in [false, true] {
        let stage = Stage::new(script.clone().reply([text("After.")])).await;
        let mut engine = stage.engine();
        for n in 1..=4 {
            run(&mut engine, &format!("Question {n}?")).await.assert_completed();
        }
        let before = engine.context_usage().used_tokens;
        let told = run(&mut engine, "/context keep 2-3").await;
        assert_eq!((boundaries(&told).len(), engine.context_usage().rounds), (1, 2));
        if in_another_process {
            let file = engine.transcript_file().unwrap();
            drop(engine);
            engine = stage.resume(&file);
        }
        assert!(!run(&mut engine, "/context undo").await.outcome().is_error);
        assert_eq!((engine.context_usage().rounds, engine.context_usage().used_tokens), (4, before));
        assert!(run(&mut engine, "/context undo").await.outcome().is_error, "there is no more of it");
        run(&mut engine, "All there?").await.assert_completed();
        let words = newest(&stage).to_string();
        assert!((1..=4).all(|n| words.contains(&format!("Answer {n}."))), "{words}");
    }
}

#[tokio::test]
async fn pit_C2_a_step_that_would_free_nothing_is_discarded_and_said() {
    // What cannot be left out fills the window by itself.
    let stage = Stage::new(Script::new()).await;
    let fixed = stage.engine_with(|options| small(options, &["Bash"])).context_usage().used_tokens;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.window_tokens = Some(fixed);
    });
    for prompt in ["Hello?", "Is anybody there?", "No?"] {
        let told = run(&mut engine, prompt).await;
        assert_eq!(told.outcome().terminal, pelton::Terminal::BlockingLimit);
        assert!(boundaries(&told).is_empty(), "{:?}", boundaries(&told));
    }
    let said = run(&mut engine, "Well?").await.loop_reasons("compaction");
    assert!(said.iter().any(|reason| reason.starts_with("local was discarded: ")), "{said:?}");
    assert_eq!(stage.request_count(), 0);
}

#[tokio::test]
async fn pit_C1_a_prompt_that_fits_by_itself_is_sent_whatever_was_said_before() {
    let paste = |name: &str| format!("The {name} paste. {}", "alpha beta gamma ".repeat(8_000));
    let script = Script::new()
        .step(no_summaries())
        .reply([text("One.")])
        .reply([text("Two.")])
        .reply([text("Three.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        small(options, &["Bash"]);
        options.compact.folds = false;
    });
    for name in ["first", "second", "third"] {
        let told = run(&mut engine, &paste(name)).await;
        told.assert_completed();
        assert_has(&newest(&stage), &[&paste(name)]);
        assert_eq!(levels(&told), if name == "first" { vec![] } else { vec!["local"] });
    }
    assert_has(&newest(&stage), &["The user's first request, word for word:\nThe first paste."]);
    stage.model.assert_clean();
}

#[tokio::test]
async fn pit_C5_after_a_change_everybody_goes_by_one_figure_also_those_who_know_the_record_only() {
    let beans = "豆を一つずつ数えて、袋に入れる。";
    let script = (1..=6).fold(Script::new(), |script, n| {
        script
            .reply([text(format!("{n}. {}", beans.repeat(40))), tool("Bash", sh("cat beans"))])
            .reply([text("So.")])
    });
    let stage = Stage::new(script).await;
    stage.write("beans", &format!("{} {}", "Count the beans. ".repeat(300), beans.repeat(200)));
    let options = |options: &mut Options| {
        small(options, &["Bash"]);
        options.window_tokens = None;
    };
    let mut engine = stage.engine_with(options);
    let context = engine.context_watch();
    for n in 1..=6 {
        run(&mut engine, &format!("Question {n}?")).await.assert_completed();
    }
    let file = engine.transcript_file().unwrap();
    for command in ["/context drop 2-3", "/context keep-last 4", "/context undo", "/context clear nobody"] {
        let told: Told = run(&mut engine, command).await;
        let usage = engine.context_usage();
        let shown = [context.usage().used_tokens, engine.watch().borrow().context_tokens];
        assert_eq!(shown, [usage.used_tokens; 2], "{command}");
        assert_eq!(context.usage().shares, usage.shares, "{command}");
        for boundary in boundaries(&told) {
            assert_eq!(boundary.after_tokens, usage.used_tokens, "{command}");
        }
        let mut other = stage.engine_with(|other| {
            options(other);
            crate::stage::resume_from(other, &file);
        });
        let recorded = other.context_usage_recorded();
        assert_eq!((recorded.used_tokens, &recorded.shares), (usage.used_tokens, &usage.shares), "{command}");
        assert_eq!(other.context_usage().used_tokens, usage.used_tokens, "{command}");
    }
}
