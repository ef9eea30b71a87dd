//! What may be looked at and changed without asking, and what not: links, commands and rules about reading.

use std::fs;
use std::os::unix::fs::symlink;

use pelton::permission::{Mode, Rule, RuleSet};
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, results_in, run, sh};

/// What every file outside of the working directory holds.
const SECRET: &str = "topsecret";

/// A session with one answer that makes these calls. `outside/secret.txt` lies beside the working directory.
async fn stage(calls: &[(&str, Value)]) -> Stage {
    let calls = calls.iter().map(|(name, input)| tool(*name, input.clone()));
    let stage = Stage::new(Script::new().reply(calls).reply([text("Done.")])).await;
    fs::create_dir(stage.path("../outside")).unwrap();
    fs::write(stage.path("../outside/secret.txt"), SECRET).unwrap();
    stage
}

/// What the calls answered: whether it is an error, and the text.
async fn answers(stage: &Stage, mode: Mode, rules: RuleSet) -> Vec<(bool, String)> {
    let mut engine = stage.engine_with(|options| {
        options.mode = mode;
        options.rules = rules;
    });
    run(&mut engine, "Go.").await.assert_completed();
    results_in(&stage.request(2)).into_iter().map(|(_, is_error, text)| (is_error, text)).collect()
}

fn deny(rule: &str) -> RuleSet {
    RuleSet { deny: vec![rule.parse::<Rule>().unwrap()], ..RuleSet::default() }
}

#[tokio::test]
async fn a_link_before_two_dots_does_not_lead_reading_out() {
    let calls = [
        ("Read", json!({"file_path": "sub/up/../outside/secret.txt"})),
        ("Bash", sh("cat sub/up/../outside/secret.txt")),
        ("Grep", json!({"pattern": "secret", "path": "sub/up/..", "output_mode": "content"})),
        ("Glob", json!({"pattern": "**/*.txt", "path": "sub/up/.."})),
    ];
    let stage = stage(&calls).await;
    fs::create_dir(stage.path("sub")).unwrap();
    symlink("..", stage.path("sub/up")).unwrap();
    for ((is_error, text), call) in answers(&stage, Mode::Default, RuleSet::default()).await.iter().zip(calls)
    {
        assert!(is_error, "{call:?}: {text}");
        assert!(!text.contains(SECRET) && !text.contains("secret.txt\n"), "{call:?}: {text}");
    }
}

#[tokio::test]
async fn links_do_not_lead_writing_out_nor_past_protected_names() {
    let write = |path: &str| ("Write", json!({"file_path": path, "content": "x"}));
    let stage = stage(&[
        write("sub/up/../esc.txt"),
        write("dangling"),
        write("deep/dangling/new/file"),
        write("hook"),
        ("Edit", json!({"file_path": "dangling", "old_string": "", "new_string": "x"})),
        write("circle"),
        write("inner"),
    ])
    .await;
    fs::create_dir_all(stage.path("sub")).unwrap();
    fs::create_dir_all(stage.path("deep")).unwrap();
    fs::create_dir_all(stage.path(".git/hooks")).unwrap();
    for (target, link) in [
        ("..", "sub/up"),
        ("../outside/new.txt", "dangling"),
        ("../../outside/dir", "deep/dangling"),
        (".git/hooks/post-checkout", "hook"),
        ("circle", "circle"),
        ("sub/made", "inner"),
    ] {
        symlink(target, stage.path(link)).unwrap();
    }
    let answers = answers(&stage, Mode::AcceptEdits, RuleSet::default()).await;
    let refused: Vec<bool> = answers.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(refused, [true, true, true, true, true, true, false], "{answers:#?}");
    assert!(answers[3].1.contains(".git is protected"), "{}", answers[3].1);
    for path in ["../esc.txt", "../outside/new.txt", "../outside/dir", ".git/hooks/post-checkout"] {
        assert!(!stage.path(path).exists(), "{path}");
    }
    assert_eq!(stage.read("sub/made"), "x", "a link that stays inside is written through");
}

#[tokio::test]
async fn a_looking_command_neither_writes_nor_follows_links_out() {
    let calls = [
        sh("uniq - victim.txt"),
        sh("grep -R secret ."),
        sh("grep -f../outside/secret.txt -r ."),
        sh("rg -L secret"),
        sh("find -L . -name secret.txt"),
        sh("du -X ../outside/secret.txt"),
        sh("diff out empty"),
        sh("tail -f victim.txt"),
    ];
    let stage = stage(&calls.clone().map(|input| ("Bash", input))).await;
    stage.write("victim.txt", "kept\n");
    symlink("../outside", stage.path("out")).unwrap();
    fs::create_dir(stage.path("empty")).unwrap();
    for ((is_error, text), call) in answers(&stage, Mode::Default, RuleSet::default()).await.iter().zip(calls)
    {
        assert!(is_error, "{call}: {text}");
        assert!(!text.contains(SECRET), "{call}: {text}");
    }
    assert_eq!(stage.read("victim.txt"), "kept\n");
}

#[tokio::test]
async fn comparing_directories_does_not_follow_links_in_them() {
    let stage = stage(&[("Bash", sh("diff a b")), ("Bash", sh("diff --no-dereference a b"))]).await;
    for dir in ["a", "b"] {
        fs::create_dir(stage.path(dir)).unwrap();
    }
    stage.write("b/x", "");
    symlink("../../outside/secret.txt", stage.path("a/x")).unwrap();
    let answers = answers(&stage, Mode::Default, RuleSet::default()).await;
    assert!(answers[0].0 && answers[0].1.contains("approval"), "{answers:?}");
    assert!(!answers[1].1.contains("approval") && !answers[1].1.contains(SECRET), "{answers:?}");
}

#[tokio::test]
async fn ordinary_inspection_is_not_asked_for() {
    let calls = [
        "ls -la",
        "cat -n a.txt",
        "head -5 a.txt",
        "grep -rn -i -A3 '--include=*.txt' /one .",
        "find . -name '*.txt'",
    ];
    let stage = stage(&calls.map(|command| ("Bash", sh(command)))).await;
    stage.write("a.txt", "/one\n");
    for ((is_error, text), call) in answers(&stage, Mode::Default, RuleSet::default()).await.iter().zip(calls)
    {
        assert!(!is_error && text.contains(if call.contains("cat") { "/one" } else { "" }), "{call}: {text}");
    }
}

#[tokio::test]
async fn what_must_not_be_read_is_neither_printed_nor_found() {
    let calls = [
        ("Read", json!({"file_path": "denied.txt"})),
        ("Bash", sh("cat denied.txt")),
        ("Bash", sh("cat ./sub/../denied.txt open.txt")),
        ("Bash", sh("head -n1 link")),
        ("Bash", sh("grep -r topsecret .")),
        ("Bash", sh("grep topsecret -e x denied.txt")),
        ("Bash", sh("git show HEAD:denied.txt")),
        ("Grep", json!({"pattern": SECRET, "output_mode": "content"})),
        ("Grep", json!({"pattern": SECRET, "path": "denied.txt", "output_mode": "content"})),
        ("Glob", json!({"pattern": "*.txt"})),
        ("Bash", sh("cat open.txt")),
    ];
    let stage = stage(&calls).await;
    fs::create_dir(stage.path("sub")).unwrap();
    stage.write("denied.txt", "topsecret one\n");
    stage.write("sub/denied.txt", "topsecret two\n");
    stage.write("open.txt", "topsecret but open\n");
    symlink("denied.txt", stage.path("link")).unwrap();
    let answers = answers(&stage, Mode::Default, deny("Read(denied.txt)")).await;
    for ((is_error, text), call) in answers.iter().zip(&calls) {
        assert!(!text.contains("topsecret one") && !text.contains("topsecret two"), "{call:?}: {text}");
        let refused = !matches!(call.0, "Grep" | "Glob") && !text.contains("but open");
        assert!(*is_error || !refused, "{call:?}: {text}");
    }
    assert_eq!(
        answers[7].1,
        "open.txt:1:topsecret but open\n[2 files were left out: a permission rule guards them.]"
    );
    assert!(answers[8].0, "{:?}", answers[8]);
    assert!(answers[9].1.contains("open.txt") && !answers[9].1.contains("denied.txt"), "{:?}", answers[9]);
    assert!(answers[9].1.contains("2 files were left out"), "{:?}", answers[9]);
    assert_eq!(answers[10], (false, "topsecret but open".to_owned()));
}

#[tokio::test]
async fn a_command_that_names_what_must_not_be_read_stops_whatever_the_mode() {
    let calls = ["cat denied.txt", "base64 denied.txt", "dd if=denied.txt", "sort -o x -T. denied.txt"];
    let stage = stage(&calls.map(|command| ("Bash", sh(command)))).await;
    stage.write("denied.txt", SECRET);
    for (is_error, text) in answers(&stage, Mode::BypassPermissions, deny("Read(denied.txt)")).await {
        assert!(is_error && text.contains("Read(denied.txt)"), "{text}");
    }
}
