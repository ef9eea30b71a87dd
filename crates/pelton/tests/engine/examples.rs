//! The programs users start from do what they say.

use pelton_model::{Auth, Endpoint, Secret};

#[path = "../../examples/custom_tool.rs"]
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "each stands alone, and the test calls what its main calls"
)]
mod custom_tool;
#[path = "../../examples/engine.rs"]
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "each stands alone, and the test calls what its main calls"
)]
mod engine;

#[path = "../../examples/event_consumer.rs"]
#[allow(dead_code, reason = "the test calls what its main calls")]
mod event_consumer;
#[path = "../../examples/permission_callback.rs"]
#[allow(dead_code, reason = "the test calls what its main calls")]
mod permission_callback;

#[tokio::test]
async fn the_engine_example_finds_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("found.toml"), "").unwrap();
    let model = engine::script().start().await.unwrap();
    let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
    let answer = engine::ask(dir.path(), endpoint).await.unwrap();
    assert!(answer.starts_with("I found this:") && answer.contains("found.toml"), "{answer}");
}

#[tokio::test]
async fn the_tool_example_counts_words() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "three little words\n").unwrap();
    assert_eq!(custom_tool::count(dir.path(), "a.txt").await.unwrap(), "3 words, says the tool.");
    let missing = custom_tool::count(dir.path(), "b.txt").await.unwrap();
    assert!(missing.contains("cannot read ") && missing.contains("b.txt"), "{missing}");
}

#[tokio::test]
async fn the_permission_example_asks_once_and_keeps_what_is_refused_away() {
    let dir = tempfile::tempdir().unwrap();
    let (answer, asked) = permission_callback::work(dir.path()).await.unwrap();
    assert_eq!(asked, ["Write notes.txt", "Bash unlink notes.txt"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "second\n");
    assert!(answer.contains("Files are not removed here."), "{answer}");
}

#[tokio::test]
async fn the_consumer_example_counts_what_a_run_did() {
    let dir = tempfile::tempdir().unwrap();
    let report = event_consumer::report(dir.path()).await.unwrap();
    assert!(report.contains("2 calls, at most "), "{report}");
    assert!(report.contains("Bash: 1") && report.contains("Glob: 1"), "{report}");
    assert!(report.contains("asked 2 times"), "{report}");
}
