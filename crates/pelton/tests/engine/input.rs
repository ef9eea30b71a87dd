//! What becomes of a prompt on its way to the model: commands, mentions, pictures, hooks.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::command::{Command, CommandCx, CommandError, CommandSpec, Expansion};
use pelton::permission::Mode;
use pelton::{EndReason, Engine, Event, Options, Prompt, PromptBlock, Terminal};
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::hooks::{hook, on, said};
use crate::stage::{Stage, Told, last_user_blocks, prompt, rest, results_in, run, sh};

/// A command made of a function.
struct Makes<F>(&'static str, F);

impl<F> Command for Makes<F>
where
    F: Fn(&str) -> Result<Expansion, CommandError> + Send + Sync,
{
    fn spec(&self) -> CommandSpec<'_> {
        CommandSpec { name: self.0, description: "For tests.", argument_hint: "[anything]" }
    }

    fn expand<'a>(
        &'a self,
        arguments: &'a str,
        _: &'a CommandCx<'_>,
    ) -> BoxFuture<'a, Result<Expansion, CommandError>> {
        async move { (self.1)(arguments) }.boxed()
    }
}

pub fn command(
    options: &mut Options,
    name: &'static str,
    makes: impl Fn(&str) -> Result<Expansion, CommandError> + Send + Sync + 'static,
) {
    options.commands.push(Arc::new(Makes(name, makes)));
}

fn outputs(told: &Told) -> Vec<&str> {
    let mut outputs = Vec::new();
    for event in &told.0 {
        if let Event::CommandOutput { content } = event {
            outputs.push(content.as_str());
        }
    }
    outputs
}

/// The texts of the last message of a request.
fn informed(told: &Told) -> Vec<&str> {
    told.0
        .iter()
        .filter_map(|event| match event {
            Event::Informational { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect()
}

fn texts(request: &Value) -> Vec<&str> {
    last_user_blocks(request).iter().filter_map(|block| block["text"].as_str()).collect()
}

#[tokio::test]
async fn loop_E3_a_command_becomes_the_prompt_it_stands_for() {
    let stage = Stage::new(Script::new().reply([text("Reviewed.")])).await;
    let mut engine = stage.engine_with(|options| {
        command(options, "review", |file| Ok(Expansion::prompt(format!("Review {file} with care."))));
    });
    let told = run(&mut engine, "/review  main.rs ").await;
    told.assert_completed();
    let sent = stage.request(1);
    let texts = texts(&sent);
    assert_eq!(texts.last(), Some(&"Review main.rs with care."));
    assert!(texts[texts.len() - 2].contains("/review"), "what was typed is there too: {texts:?}");
    let Event::Init(init) = &told.0[0] else { panic!("{:?}", told.0[0]) };
    assert_eq!(init.commands[0].name, "review");
    assert_eq!(init.commands[0].argument_hint, "[anything]");
}

#[tokio::test]
async fn loop_S6_loop_E3_a_command_that_needs_no_model_answers_by_itself() {
    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let mut engine = stage.engine_with(|options| {
        command(options, "cost", |_| Ok(Expansion::output("Nothing so far.")));
        command(options, "broken", |_| Err(CommandError("the disk is gone".to_owned())));
    });
    let told = run(&mut engine, "/cost").await;
    let outcome = told.assert_completed();
    assert_eq!((outcome.text.as_str(), outcome.num_turns, outcome.asked), ("Nothing so far.", 0, false));
    assert_eq!(outputs(&told), ["Nothing so far."]);
    assert!(matches!(told.0[0], Event::Init(_)), "{:?}", told.0[0]);
    assert!(told.entries().is_empty() && outcome.usage.output_tokens == 0);

    let told = run(&mut engine, "/broken").await;
    assert!(told.outcome().is_error);
    assert_eq!(told.outcome().text, "/broken: the disk is gone");

    assert_eq!(stage.request_count(), 0);
    assert!(!engine.transcript_file().unwrap().exists(), "nothing was said");
    run(&mut engine, "Hello?").await.assert_completed();
    run(&mut engine, "/cost").await.assert_completed();
    let file = std::fs::read_to_string(engine.transcript_file().unwrap()).unwrap();
    assert_eq!(
        file.matches(r#""subtype":"local_command""#).count(),
        1,
        "it is noted beside the conversation"
    );
    stage.assert_all_played();
}

#[tokio::test]
async fn a_command_nobody_knows_is_named_and_paths_and_verbatim_prompts_are_no_commands() {
    let script = Script::new().reply([text("A path.")]).reply([text("A word.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "/frobnicate now").await;
    let outcome = told.outcome();
    assert_eq!((outcome.text.as_str(), outcome.is_error), ("Unknown command: /frobnicate", true));
    assert_eq!((outcome.num_turns, stage.request_count()), (0, 0));
    let synthetic = |event: &Event| matches!(event, Event::Synthetic(said) if said.error.is_none());
    assert!(told.position(synthetic) > 0);

    run(&mut engine, "/etc/hosts looks odd").await.assert_completed();
    let verbatim = prompt("/frobnicate @now").verbatim();
    Told(rest(&mut engine.submit(verbatim)).await).assert_completed();
    assert_eq!(texts(&stage.request(2)), ["/frobnicate @now"]);
}

#[tokio::test]
async fn what_a_command_chooses_holds_for_its_submission_only() {
    let script = Script::new()
        .reply([tool("Bash", sh("touch allowed"))])
        .reply([text("Done.")])
        .reply([tool("Bash", sh("touch denied"))])
        .reply([text("No.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.mode = Mode::Default;
        command(options, "go", |_| {
            let mut expansion = Expansion::prompt("Go.");
            expansion.model = Some("haiku".to_owned());
            expansion.allowed_tools = vec!["Bash(touch:*)".parse().unwrap()];
            Ok(expansion)
        });
    });
    let told = run(&mut engine, "/go").await;
    told.assert_completed();
    let Event::Init(init) = &told.0[0] else { panic!("{:?}", told.0[0]) };
    assert!(init.model.starts_with("claude-haiku"), "{}", init.model);
    run(&mut engine, "Again.").await.assert_completed();

    let model = |nth: usize| stage.request(nth)["model"].as_str().unwrap().to_owned();
    assert!(model(1).starts_with("claude-haiku") && model(2).starts_with("claude-haiku"));
    assert!(model(3).starts_with("claude-sonnet"), "{}", model(3));
    assert!(stage.path("allowed").exists() && !stage.path("denied").exists());
    assert!(results_in(&stage.request(4)).last().unwrap().1);
    stage.assert_all_played();
}

#[tokio::test]
async fn a_model_without_a_price_is_not_chosen_under_a_budget() {
    let stage = Stage::new(Script::new()).await;
    let mut engine = stage.engine_with(|options| {
        options.max_budget_usd = Some(1.0);
        command(options, "go", |_| {
            let mut expansion = Expansion::prompt("Go.");
            expansion.model = Some("model-of-tomorrow".to_owned());
            Ok(expansion)
        });
    });
    let told = run(&mut engine, "/go").await;
    assert!(told.outcome().is_error && told.outcome().text.contains("price is not known"));
    assert_eq!(stage.request_count(), 0);
}

#[tokio::test]
async fn pictures_go_to_the_model_as_they_are() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let stage = Stage::new(Script::new().reply([text("A dot.")])).await;
    let mut engine = stage.engine();
    let blocks = [
        PromptBlock::Text("What is this?".to_owned()),
        PromptBlock::Image { media_type: "image/png".to_owned(), base64: PIXEL.to_owned() },
        PromptBlock::Text("  ".to_owned()),
    ];
    let prompt = Prompt::blocks(blocks).unwrap();
    Told(rest(&mut engine.submit(prompt)).await).assert_completed();
    let sent = stage.request(1);
    let blocks = last_user_blocks(&sent);
    let picture = blocks.iter().find(|block| block["type"] == "image").unwrap();
    assert_eq!(picture["source"], json!({"type": "base64", "media_type": "image/png", "data": PIXEL}));
    assert!(blocks.iter().all(|block| block["text"] != "  "), "blank words are refused by the API");
    assert!(Prompt::blocks([PromptBlock::Text(" ".to_owned())]).is_err());
    stage.assert_all_played();
}

#[tokio::test]
async fn what_a_prompt_mentions_is_attached_as_read_shows_it() {
    let edit = json!({"file_path": "a.txt", "old_string": "alpha", "new_string": "omega"});
    let script = Script::new().reply([tool("Edit", edit)]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    stage.write("a.txt", "alpha\nbeta\n");
    std::fs::create_dir(stage.path("sub")).unwrap();
    stage.write("sub/inside.txt", "x");
    stage.write("secret.env", "TOKEN=1");
    stage.write("with blank.txt", "gamma");
    stage.write("raw.bin", "\0\u{1}\u{2}\0\0");
    let mut engine =
        stage.engine_with(|options| options.rules.deny = vec!["Read(secret.env)".parse().unwrap()]);
    let typed = "Compare @a.txt, (@sub) and @\"with blank.txt\" with @missing.txt, @secret.env, @raw.bin. \
                 Mail me@a.txt; @a.txt again.";
    let told = run(&mut engine, typed).await;
    told.assert_completed();

    let first = stage.request(1);
    let sent = texts(&first);
    // What is there and cannot be attached is said to both.
    for problem in ["@secret.env was not attached: a rule", "@raw.bin was not attached: "] {
        assert!(sent.iter().any(|text| text.contains(problem)), "{problem}: {sent:#?}");
        assert!(informed(&told).iter().any(|content| content.starts_with(problem)), "{problem}");
    }
    assert!(!informed(&told).iter().any(|content| content.contains("missing.txt")), "a word like any other");
    assert_eq!(sent.last(), Some(&typed), "what was typed is sent as it was typed");
    let attached: Vec<&&str> = sent.iter().filter(|text| text.contains("The user mentioned")).collect();
    assert_eq!(attached.len(), 3, "{attached:#?}");
    assert!(attached[0].contains("@a.txt.") && attached[0].contains("alpha"), "{}", attached[0]);
    assert!(attached[1].contains("@sub.") && attached[1].contains("inside.txt"), "{}", attached[1]);
    assert!(attached[2].contains("gamma"));
    assert!(!first.to_string().contains("TOKEN=1"));
    // It counts as read: the edit needs no Read before it.
    assert!(!results_in(&stage.request(2))[0].1, "{:?}", results_in(&stage.request(2)));
    assert_eq!(stage.read("a.txt"), "omega\nbeta\n");
    stage.assert_all_played();
}

#[tokio::test]
async fn mentions_beyond_those_that_are_looked_at_are_said() {
    let stage = Stage::new(Script::new().reply([text("Seen.")])).await;
    (0..40).for_each(|n| stage.write(&format!("{n}.txt"), "text"));
    let typed: Vec<String> = (0..40).map(|n| format!("@{n}.txt")).collect();
    let told = run(&mut stage.engine(), &typed.join(" ")).await;
    told.assert_completed();
    let sent = stage.request(1);
    let sent = texts(&sent);
    assert_eq!(sent.iter().filter(|text| text.contains("The user mentioned")).count(), 32);
    assert!(
        sent.iter().any(|text| text.contains("@32.txt and those behind it were not attached")),
        "{sent:#?}"
    );
    assert_eq!(informed(&told).len(), 1);
}

#[tokio::test]
async fn a_directory_is_listed_without_what_may_not_be_read() {
    let stage = Stage::new(Script::new().reply([text("Seen.")])).await;
    stage.write("open.txt", "");
    stage.write("secret.env", "");
    let mut engine =
        stage.engine_with(|options| options.rules.deny = vec!["Read(secret.env)".parse().unwrap()]);
    run(&mut engine, "What is in @. here?").await.assert_completed();
    let sent = stage.request(1);
    let list = texts(&sent).into_iter().find(|text| text.contains("The user mentioned")).unwrap().to_owned();
    assert!(list.contains("open.txt") && !list.contains("secret.env"), "{list}");
}

#[tokio::test]
async fn a_hook_that_blocks_a_prompt_keeps_it_from_everybody() {
    let stage = Stage::new(Script::new().reply([text("Fine.")])).await;
    let guard = r#"grep -q password && { echo 'no secrets here' >&2; exit 2; } || true"#;
    let mut engine = stage.engine_with(|options| hook(options, &on("UserPromptSubmit", &[guard])));
    let told = run(&mut engine, "my password is 1234").await;
    let outcome = told.assert_completed();
    assert!(outcome.text.contains("no secrets here"), "{outcome:#?}");
    assert_eq!((outcome.num_turns, outcome.asked, stage.request_count()), (0, false, 0));
    let [(words, true)] = &said(&told)[..] else { panic!("{:?}", said(&told)) };
    assert!(words.contains("no secrets here"));
    assert!(!engine.transcript_file().unwrap().exists());

    run(&mut engine, "my name is Ada").await.assert_completed();
    assert!(!stage.request(1).to_string().contains("1234"));
    stage.assert_all_played();
}

#[tokio::test]
async fn words_of_prompt_hooks_stand_in_front_of_the_prompt_and_a_hook_can_stop_it() {
    let stage = Stage::new(Script::new().reply([text("Monday.")])).await;
    let mut engine =
        stage.engine_with(|options| hook(options, &on("UserPromptSubmit", &["echo 'it is Monday'"])));
    run(&mut engine, "What day?").await.assert_completed();
    let sent = stage.request(1);
    let texts = texts(&sent);
    assert_eq!(texts[texts.len() - 2], "<system-reminder>\nit is Monday\n</system-reminder>");
    assert_eq!(texts.last(), Some(&"What day?"));

    let stage = Stage::new(Script::new()).await;
    let stops = r#"echo '{"continue": false, "stopReason": "closed for today"}'"#;
    let mut engine = stage.engine_with(|options| hook(options, &on("UserPromptSubmit", &[stops])));
    let told = run(&mut engine, "What day?").await;
    assert_eq!((told.outcome().terminal, told.outcome().is_error), (Terminal::HookStopped, false));
    assert_eq!((told.outcome().text.as_str(), told.outcome().num_turns), ("", 0));
    assert_eq!(said(&told), [("closed for today".to_owned(), true)]);
    assert!(!engine.transcript_file().unwrap().exists());
}

#[tokio::test]
async fn a_hook_can_refuse_what_a_command_expands_to() {
    let stage = Stage::new(Script::new()).await;
    let expanded = Arc::new(Mutex::new(0));
    let count = Arc::clone(&expanded);
    let mut engine = stage.engine_with(|options| {
        command(options, "deploy", move |_| {
            *count.lock().unwrap() += 1;
            Ok(Expansion::prompt("Deploy."))
        });
        hook(options, &on("UserPromptExpansion", &["cat > heard.json; echo 'not on Friday' >&2; exit 2"]));
    });
    let told = run(&mut engine, "/deploy now").await;
    assert!(told.assert_completed().text.contains("not on Friday"));
    assert_eq!((*expanded.lock().unwrap(), stage.request_count()), (0, 0));
    let heard: Value = serde_json::from_str(&stage.read("heard.json")).unwrap();
    assert_eq!((&heard["command_name"], &heard["command_args"]), (&json!("deploy"), &json!("now")));
}

#[tokio::test]
async fn hooks_of_the_sessions_start_and_end_run_once_and_say_how_it_began() {
    let script = Script::new().reply([text("One.")]).reply([text("Two.")]).reply([text("Three.")]);
    let stage = Stage::new(script).await;
    let hooks = json!({
        "SessionStart": [{"hooks": [{"type": "command", "command":
            "cat >> starts.jsonl; echo 'mind the gap'"}]}],
        "SessionEnd": [{"hooks": [{"type": "command", "command": "cat >> ends.jsonl"}]}],
    });
    let starts = |stage: &Stage| -> Vec<String> {
        let source = |line: &str| serde_json::from_str::<Value>(line).unwrap()["source"].to_string();
        stage.read("starts.jsonl").lines().map(source).collect()
    };
    let mut engine = stage.engine_with(|options| hook(options, &hooks));
    run(&mut engine, "First.").await.assert_completed();
    run(&mut engine, "Second.").await.assert_completed();
    assert_eq!(starts(&stage), [r#""startup""#]);
    assert_eq!(stage.request(2).to_string().matches("mind the gap").count(), 1);
    let file = engine.transcript_file().unwrap();
    engine.close(EndReason::Other).await;
    let ended: Value = serde_json::from_str(&stage.read("ends.jsonl")).unwrap();
    assert_eq!((&ended["reason"], &ended["hook_event_name"]), (&json!("other"), &json!("SessionEnd")));

    let mut engine: Engine = stage.engine_with(|options| {
        hook(options, &hooks);
        crate::stage::resume_from(options, &file);
    });
    run(&mut engine, "Third.").await.assert_completed();
    assert_eq!(starts(&stage), [r#""startup""#, r#""resume""#]);
    assert_eq!(stage.request(3).to_string().matches("mind the gap").count(), 2, "the old words are replayed");
    stage.assert_all_played();
}
