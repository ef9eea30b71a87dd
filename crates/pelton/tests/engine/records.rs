//! What is on disk.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pelton::transcript::Durability;
use pelton::{Engine, Event, Prompt, Sessions, Terminal};
use pelton_model::{HttpOptions, HttpTransport, Post, Response, Transport, TransportError};
use pelton_testkit::{Script, Step, text, thinking, tool};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::stage::{Stage, lines, rest, run, sh};

/// A road to the model that looks at the transcript whenever a request passes.
struct Watching {
    road: HttpTransport,
    config_dir: PathBuf,
    /// The transcript as it was at each request.
    seen: Mutex<Vec<Vec<Value>>>,
}

impl Transport for Watching {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        self.seen
            .lock()
            .unwrap()
            .push(the_only_session(&self.config_dir).map_or(Vec::new(), |file| lines(&file)));
        self.road.post(post)
    }
}

fn the_only_session(config_dir: &Path) -> Option<PathBuf> {
    let below = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files =
        below(&config_dir.join("projects")).flat_map(|project| below(&project).collect::<Vec<_>>());
    files.find(|file| file.extension().is_some_and(|extension| extension == "jsonl"))
}

fn words(line: &Value) -> String {
    crate::stage::text_of(&line["message"]["content"])
}

#[tokio::test]
async fn loop_S4_the_prompt_is_on_disk_before_the_model_hears_of_it() {
    let script = Script::new()
        .reply([tool("Bash", sh("echo out"))])
        .reply([text("Done.")])
        .reply([text("Done again.")]);
    let stage = Stage::new(script).await;
    let road = HttpTransport::new(HttpOptions::default());
    let watching = Arc::new(Watching { road, config_dir: stage.config_dir(), seen: Mutex::default() });
    let mut engine = stage.engine_with(|options| {
        options.transport = Arc::clone(&watching) as Arc<dyn Transport>;
        // The way it is meant to be used: the disk itself is waited for.
        options.sessions = Some(Sessions { config_dir: stage.config_dir(), durability: Durability::Synced });
    });

    run(&mut engine, "Remember this.").await.assert_completed();
    run(&mut engine, "And this.").await.assert_completed();

    let seen = watching.seen.lock().unwrap();
    let [first, second, third] = &seen[..] else { panic!("{} requests", seen.len()) };
    assert_eq!(words(first.last().unwrap()), "Remember this.");
    let result = &second.last().unwrap()["message"]["content"][0];
    assert_eq!(result["type"], "tool_result", "results too are there before they are sent");
    assert_eq!(words(third.last().unwrap()), "And this.");
    stage.assert_all_played();
}

#[tokio::test]
async fn the_transcript_is_one_chain_of_the_entries_that_were_told() {
    let script = Script::new()
        .reply([
            thinking("Hm."),
            text("Two at once."),
            tool("Bash", sh("echo a")),
            tool("Bash", sh("echo b")),
        ])
        .step(Step::status(529))
        .reply([text("Done.")])
        .step(Step::status(400))
        .reply([text("Better.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let mut told = run(&mut engine, "One.").await.0;
    told.extend(run(&mut engine, "Two.").await.0);
    told.extend(run(&mut engine, "Three.").await.0);

    let file = engine.transcript_file().unwrap();
    let name = format!("{}.jsonl", engine.session_id());
    assert_eq!(
        file,
        stage.config_dir().join("projects").join(pelton::transcript::project_key(&stage.cwd())).join(name)
    );
    let lines = lines(&file);
    let mut parent = Value::Null;
    for line in &lines {
        assert_eq!(line["parentUuid"], parent, "{line}");
        parent = line["uuid"].clone();
        assert_eq!(line["sessionId"], engine.session_id().to_string());
        assert_eq!(line["cwd"], stage.cwd().display().to_string());
        assert_eq!(line["isSidechain"], false);
        assert!(line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        let role = line["message"]["role"].as_str().unwrap();
        assert_eq!(line["type"], role);
        assert_eq!(line["message"]["content"].as_array().unwrap().len(), 1, "one block per line");
    }
    // The surroundings are written first and are nobody's words; everything else was told under the same name.
    assert_eq!(lines[0]["isMeta"], true);
    let ids: Vec<String> = told
        .iter()
        .filter_map(|event| match event {
            Event::Prompt(entry) | Event::Message(entry) => Some(entry.id.to_string()),
            Event::Synthetic(synthetic) => Some(synthetic.id.to_string()),
            _ => None,
        })
        .collect();
    let written: Vec<&str> = lines[1..].iter().map(|line| line["uuid"].as_str().unwrap()).collect();
    assert_eq!(written, ids);
    assert!(ids.iter().all(|id| id.parse::<Uuid>().unwrap().get_version_num() == 4));
    stage.assert_all_played();
}

#[tokio::test]
async fn a_prompt_keeps_the_callers_id_and_a_session_too() {
    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let (session, id) = (Uuid::from_u128(7), Uuid::from_u128(8));
    let mut engine = stage.engine_with(|options| options.session_id = Some(session));
    let told = rest(&mut engine.submit(Prompt::text("Hi.").unwrap().with_id(id))).await;
    assert!(told.iter().any(|event| matches!(event, Event::Prompt(entry) if entry.id == id)));
    let file = engine.transcript_file().unwrap();
    assert_eq!(file.file_stem().unwrap().to_str(), Some(session.to_string().as_str()));
    assert_eq!(lines(&file)[1]["uuid"], id.to_string());
}

#[tokio::test]
async fn only_the_user_can_read_a_session() {
    let stage = Stage::new(Script::new().reply([text("Hello.")])).await;
    let mut engine = stage.engine();
    assert!(!stage.config_dir().exists(), "an engine in which nothing was said leaves no trace");
    run(&mut engine, "Hi.").await.assert_completed();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let file = engine.transcript_file().unwrap();
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(&stage.config_dir().join("projects")), 0o700);
}

#[tokio::test]
async fn an_unrecorded_session_leaves_nothing() {
    let script = Script::new().reply([tool("Bash", sh("echo a"))]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.sessions = None);
    run(&mut engine, "Hi.").await.assert_completed();
    assert_eq!(engine.transcript_file(), None);
    assert!(!stage.config_dir().exists());
}

/// The engine cannot write: nothing is asked, nothing is run, and the result says why.
async fn check_unrecorded(stage: &Stage, engine: &mut Engine, why: &str) {
    let before = stage.request_count();
    let told = run(engine, "Remember this.").await;
    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::Unrecorded);
    assert!(outcome.is_error);
    assert!(outcome.errors[0].contains(why), "{:?}", outcome.errors);
    assert_eq!(stage.request_count(), before);
}

#[tokio::test]
async fn a_session_that_is_open_elsewhere_is_not_written_to() {
    let script = Script::new().reply([text("Hello.")]).reply([text("Again.")]);
    let stage = Stage::new(script).await;
    let mut first = stage.engine();
    run(&mut first, "Hi.").await.assert_completed();
    let file = first.transcript_file().unwrap();
    let before = std::fs::read(&file).unwrap();

    let mut second = stage.resume(&file);
    check_unrecorded(&stage, &mut second, "in use").await;
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // Whoever holds it lets go of it by ending.
    drop(first);
    run(&mut second, "Hi again.").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn what_another_went_on_with_is_not_left_out() {
    let script = Script::new().reply([text("Hello.")]).reply([text("Again.")]).reply([text("All of it.")]);
    let stage = Stage::new(script).await;
    let mut first = stage.engine();
    run(&mut first, "Hi.").await.assert_completed();
    let file = first.transcript_file().unwrap();
    drop(first);

    // Both read the same conversation; one goes on with it and ends.
    let mut late = stage.resume(&file);
    run(&mut stage.resume(&file), "Hi again.").await.assert_completed();
    let before = std::fs::read(&file).unwrap();
    check_unrecorded(&stage, &mut late, "written to by another process since").await;
    assert_eq!(std::fs::read(&file).unwrap(), before);

    // A line that lacks nothing but its end was read.
    std::fs::write(&file, before.strip_suffix(b"\n").unwrap()).unwrap();
    let before = std::fs::read(&file).unwrap();
    // Titles that the SDK's own functions add are nobody's conversation.
    let mut last = stage.resume(&file);
    let title = format!("{}\n", json!({"type": "custom-title", "customTitle": "x"}));
    std::fs::write(&file, [before, b"\n".to_vec(), title.into_bytes()].concat()).unwrap();
    run(&mut last, "And now?").await.assert_completed();
    for words in ["Hi.", "Hi again.", "And now?"] {
        assert!(stage.request(3).to_string().contains(words), "{words}");
    }
    stage.assert_all_played();
}

#[tokio::test]
async fn nothing_is_asked_when_nothing_can_be_written() {
    let stage = Stage::new(Script::new()).await;
    std::fs::write(stage.config_dir(), "a file where the directory should be").unwrap();
    check_unrecorded(&stage, &mut stage.engine(), "cannot open the session file").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_asked_when_the_disk_is_full() {
    let stage = Stage::new(Script::new()).await;
    let mut engine = stage.engine();
    let file = engine.transcript_file().unwrap();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    check_unrecorded(&stage, &mut engine, "cannot write the session file").await;
}

#[tokio::test]
async fn a_torn_last_line_is_left_alone_and_the_next_one_starts_afresh() {
    let script = Script::new().reply([text("Hello.")]).reply([text("Again.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Hi.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let mut torn = std::fs::read(&file).unwrap();
    torn.extend_from_slice(br#"{"type":"assistant","uuid":"half a l"#);
    std::fs::write(&file, &torn).unwrap();

    let mut engine = stage.resume(&file);
    assert_eq!(std::fs::read(&file).unwrap(), torn, "reading changes nothing");
    run(&mut engine, "Hi again.").await.assert_completed();

    let after = std::fs::read(&file).unwrap();
    assert!(after.starts_with(&torn));
    assert_eq!(after[torn.len()], b'\n');
    let text = String::from_utf8(after).unwrap();
    let broken = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).count();
    assert_eq!(broken, 1);
    let loaded = pelton::transcript::read(&file).unwrap();
    assert_eq!((loaded.lines_skipped, loaded.entries.len()), (1, 5));
    stage.assert_all_played();
}

#[tokio::test]
async fn results_carry_their_structured_twin_on_disk_alone() {
    let script = Script::new().reply([tool("Bash", sh("echo a; echo b >&2"))]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Go.").await.assert_completed();
    let lines = lines(&engine.transcript_file().unwrap());
    let result = lines.iter().find(|line| line["message"]["content"][0]["type"] == "tool_result").unwrap();
    assert_eq!(result["toolUseResult"]["stdout"].as_str().map(str::trim), Some("a"));
    assert_eq!(result["toolUseResult"]["stderr"].as_str().map(str::trim), Some("b"));
    assert!(!stage.request(2).to_string().contains("toolUseResult"));
    assert_eq!(result["toolUseResult"]["interrupted"], json!(false));
}
