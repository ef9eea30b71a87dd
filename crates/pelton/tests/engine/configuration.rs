//! What the host chooses reaches the model.

use std::sync::Arc;
use std::time::Duration;

use pelton_model::{Effort, Thinking};
use pelton_testkit::{Script, Step, When, pause, text, tool};
use serde_json::{Value, json};

use crate::probe::Notes;
use crate::stage::{Stage, marks, results_in, run, sh, text_of};

fn hello() -> Script {
    Script::new().reply([text("Hello.")])
}

fn tool_names(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn loop_E1_a_session_works_in_the_directory_it_is_given() {
    let script = Script::new()
        .reply([tool("Bash", sh("pwd")), tool("Write", json!({"file_path": "here.txt", "content": "x"}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    assert_ne!(std::env::current_dir().unwrap(), stage.cwd());

    run(&mut stage.engine(), "Where are you?").await.assert_completed();

    let (_, _, printed) = results_in(&stage.request(2)).remove(0);
    assert_eq!(printed.trim(), stage.cwd().display().to_string());
    assert_eq!(stage.read("here.txt"), "x");
    let told = text_of(&stage.request(1)["messages"][0]["content"]);
    assert!(told.contains(&stage.cwd().display().to_string()), "{told}");
}

#[tokio::test]
async fn loop_E2_the_host_chooses_the_tools() {
    let notes = Notes::default();
    let stage = Stage::new(hello()).await;
    let mut engine = stage.engine_with(|options| {
        options.tools.retain(|tool| tool.spec().name == "Read");
        options.tools.extend(notes.tools());
    });
    run(&mut engine, "Hi.").await.assert_completed();
    assert_eq!(tool_names(&stage.request(1)), ["Read", "Look", "Change"]);

    let stage = Stage::new(hello()).await;
    run(&mut stage.engine_with(|options| options.tools.clear()), "Hi.").await.assert_completed();
    assert_eq!(stage.request(1).get("tools"), None);

    // A tool that a rule denies altogether is not offered either.
    let stage = Stage::new(hello()).await;
    let mut engine = stage.engine_with(|options| options.rules.deny = vec!["Bash".parse().unwrap()]);
    run(&mut engine, "Hi.").await.assert_completed();
    assert_eq!(
        tool_names(&stage.request(1)),
        [
            "Agent",
            "Edit",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
            "SendMessage",
            "TaskOutput",
            "TaskStop",
            "WebFetch",
            "WebSearch",
            "Write"
        ]
    );
}

#[tokio::test]
async fn loop_E11_loop_E12_a_system_prompt_can_be_replaced_and_added_to() {
    let check = async |custom: Option<&str>, appended: Option<&str>| -> Arc<Value> {
        let stage = Stage::new(hello()).await;
        let mut engine = stage.engine_with(|options| {
            options.system_prompt.custom = custom.map(str::to_owned);
            options.system_prompt.appended = appended.map(str::to_owned);
        });
        run(&mut engine, "Hi.").await.assert_completed();
        stage.request(1)
    };
    let base = |request: &Value| pelton::SystemPrompt::base(&tool_names(request));
    let texts = |request: &Value| -> Vec<String> {
        request["system"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let own = check(None, None).await;
    assert_eq!(texts(&own), [base(&own)]);
    assert_eq!(texts(&*check(Some("Be brief."), None).await), ["Be brief."]);
    assert_eq!(texts(&*check(Some("Be brief."), Some("In verse.")).await), ["Be brief.", "In verse."]);
    let added = check(None, Some("In verse.")).await;
    assert_eq!(texts(&added), [base(&added), "In verse.".to_owned()]);
}

#[tokio::test]
async fn loop_E13_the_model_is_an_option() {
    for (name, id) in [
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("haiku", "claude-haiku-5-5"),
        ("sonnet", "claude-sonnet-5-5"),
    ] {
        let stage = Stage::new(hello()).await;
        run(&mut stage.engine_with(|options| options.model = name.to_owned()), "Hi.")
            .await
            .assert_completed();
        let asked = stage.request(1)["model"].as_str().unwrap().to_owned();
        assert!(asked.starts_with(id), "{name}: {asked}");
    }
}

#[tokio::test]
async fn loop_E15_how_the_model_thinks_reaches_the_request() {
    let check = async |thinking, effort| {
        let stage = Stage::new(hello()).await;
        let mut engine = stage.engine_with(|options| {
            options.model = "claude-haiku-5-5".to_owned();
            options.thinking = thinking;
            options.effort = effort;
        });
        run(&mut engine, "Hi.").await.assert_completed();
        let request = stage.request(1);
        (request["thinking"]["type"].as_str().map(str::to_owned), request["output_config"]["effort"].clone())
    };
    assert_eq!(check(Thinking::Adaptive, None).await, (Some("adaptive".to_owned()), Value::Null));
    assert_eq!(check(Thinking::Disabled, None).await, (Some("disabled".to_owned()), Value::Null));
    assert_eq!(check(Thinking::Adaptive, Some(Effort::Low)).await.1, "low");
}

#[tokio::test]
async fn loop_M1_a_request_carries_every_piece() {
    let script = Script::new()
        .step(Step::status(529).header("retry-after-ms", "1").when(When::any().model("opus")))
        .step(Step::status(529).header("retry-after-ms", "1").when(When::any().model("haiku")).always())
        .reply([text("Let me look."), tool("Glob", json!({"pattern": "*"}))])
        .reply([pause(Duration::from_millis(200)), text("Done.")]);
    let stage = Stage::new(script).await;
    std::fs::create_dir(stage.path(".git")).unwrap();
    stage.write(".git/HEAD", "ref: refs/heads/turbine\n");
    let mut engine = stage.engine_with(|options| {
        options.model = "claude-opus-5-5".to_owned();
        options.system_prompt.appended = Some("Speak softly.".to_owned());
        options.thinking = Thinking::Adaptive;
        options.effort = Some(Effort::High);
        options.fast_mode = true;
        options.max_output_tokens = Some(9_000);
        options.task_budget = Some(50_000);
        options.tool_use_summaries = true;
    });
    let told = run(&mut engine, "What is here?").await;
    told.assert_completed();
    let told_of = told.0.iter().find_map(|event| match event {
        pelton::Event::Init(init) => Some(init.tools.clone()),
        _ => None,
    });
    let told_of = told_of.unwrap_or_default();

    let options = stage.options();
    // Those that need somebody to ask are not offered where nobody is.
    let offered: Vec<&str> = options
        .tools
        .iter()
        .map(|tool| tool.spec().name)
        .filter(|name| told_of.contains(&(*name).to_owned()))
        .collect();
    assert!(offered.len() > 6, "{offered:?}");
    let requests = stage.model.requests();
    let (side, main): (Vec<_>, Vec<_>) =
        requests.iter().partition(|seen| seen.body["model"].as_str().unwrap().contains("haiku"));
    // The source: somebody waits for the main loop, so it is asked again; nobody waits for a summary.
    assert_eq!((main.len(), side.len()), (3, 1));
    for request in main.iter().map(|seen| &seen.body) {
        // User context in front of everything said: where, which branch, which day.
        let first = text_of(&request["messages"][0]["content"]);
        let today = this_year();
        let (context, prompt) = first.split_once("What is here?").unwrap_or_else(|| panic!("{first}"));
        for piece in [stage.cwd().display().to_string(), "turbine".to_owned(), today] {
            assert!(context.contains(&piece), "{piece} is missing in: {first}");
        }
        assert_eq!(prompt, "");
        let system: Vec<&str> = request["system"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap())
            .collect();
        assert_eq!(system, [pelton::SystemPrompt::base(&tool_names(request)).as_str(), "Speak softly."]);
        assert_eq!(tool_names(request), offered);
        assert_eq!(request["thinking"]["type"], "adaptive");
        assert_eq!(request["output_config"]["effort"], "high");
        assert_eq!(request["output_config"]["task_budget"], json!({"type": "tokens", "total": 50_000}));
        assert_eq!((&request["speed"], &request["max_tokens"]), (&json!("fast"), &json!(9_000)));
        assert_eq!(request["stream"], true);
        // Marks on the prefix and on what was said last.
        let prefix = request["system"].as_array().unwrap().last().unwrap();
        assert!(prefix.get("cache_control").is_some(), "{prefix}");
        let last = request["messages"].as_array().unwrap().last().unwrap();
        assert!(marks(last) == 1 && (2..=4).contains(&marks(request)), "{last}");
    }
}

/// The year, as the context says it.
fn this_year() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    (1970 + since.as_secs() / 31_556_952).to_string()
}
