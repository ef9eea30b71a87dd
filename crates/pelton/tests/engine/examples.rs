//! The programs users start from do what they say.

#[path = "../../examples/custom_tool.rs"]
#[allow(dead_code, reason = "the test calls what its main calls")]
mod custom_tool;
#[path = "../../examples/engine.rs"]
#[allow(dead_code, reason = "the test calls what its main calls")]
mod engine;

#[tokio::test]
async fn the_engine_example_finds_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("found.toml"), "").unwrap();
    let answer = engine::ask(dir.path()).await.unwrap();
    assert!(answer.starts_with("I found this:") && answer.contains("found.toml"), "{answer}");
}

#[tokio::test]
async fn the_tool_example_counts_words() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "three little words\n").unwrap();
    assert_eq!(custom_tool::count(dir.path(), "a.txt").await.unwrap(), "3 words, says the tool.");
    let missing = custom_tool::count(dir.path(), "b.txt").await.unwrap();
    assert!(missing.contains("cannot read b.txt"), "{missing}");
}
