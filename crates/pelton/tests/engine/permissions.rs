//! What may be looked at and changed without asking, and what not: links, commands and rules about reading.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pelton::host::Host;
use pelton::limits::ToolLimits;
use pelton::permission::{Access, Gate, HookSays, Mode, Readable, Rule, RuleSet, Verdict};
use pelton::tools::builtin;
use pelton::tools::file_memory::FileMemory;
use pelton::tools::{Output, Progress, ResultBlock, Tool, ToolCx};
use pelton_model::RealWorld;
use pelton_testkit::{Script, text, tool};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

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

/// A working directory `work` beside `out`, with links at random.
struct Tree {
    dir: tempfile::TempDir,
}

/// What paths are made of: what is there, links that may be there, something new, and the way up, often.
const NAMES: &[&str] = &["a", "b", "c", "f", "l", "m", "new", "out", "work", ".git", "..", "..", ".."];
/// Where links are.
const LINKS: &[&str] = &["l", "m", "a/l", "a/m", "a/b/l", "b/l", "b/c/l", "b/c/m"];

impl Tree {
    fn new(links: &[(&str, PathBuf, bool)]) -> Self {
        let tree = Self { dir: tempfile::tempdir().unwrap() };
        for (root, content) in [("work", "inside"), ("out", SECRET), ("work/.git", SECRET)] {
            for dir in ["a/b", "b/c"] {
                fs::create_dir_all(tree.root().join(root).join(dir)).unwrap();
            }
            for file in ["f", "a/f", "a/b/f", "b/c/f"] {
                fs::write(tree.root().join(root).join(file), content).unwrap();
            }
        }
        for (place, target, absolute) in links {
            let place = tree.root().join("work").join(place);
            let target = if *absolute { tree.root().join("out").join(target) } else { target.clone() };
            // The name may be taken by another.
            let _ = symlink(target, place);
        }
        tree
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// All that must stay as it is: what is outside, and what is protected.
    fn untouchable(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut dirs = vec![self.root()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let kind = fs::symlink_metadata(&path).unwrap().file_type();
                let is_ours = path.starts_with(self.work()) && !path.iter().any(|name| name == ".git");
                if kind.is_dir() {
                    dirs.push(path.clone());
                }
                if !is_ours {
                    let content = kind.is_file().then(|| fs::read(&path).unwrap());
                    found.push((path, content));
                }
            }
        }
        found.sort();
        found
    }

    fn cx(&self) -> ToolCx {
        ToolCx {
            call_id: "toolu_1".into(),
            cwd: self.work(),
            roots: [self.work()].into(),
            readable: Readable::everything(),
            env: [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into(),
            files: Arc::new(FileMemory::new()),
            spill_dir: self.root().join("spill"),
            limits: Arc::new(ToolLimits::default()),
            world: Arc::new(RealWorld::new()),
            cancel: CancellationToken::new(),
            progress: Progress::ignored(),
            host: Host::default(),
            agents: None,
        }
    }

    /// The answer of a call, if it may run.
    async fn call(&self, mode: Mode, name: &str, input: Value) -> Option<String> {
        let cx = self.cx();
        let tool: Arc<dyn Tool> = builtin::all().into_iter().find(|tool| tool.spec().name == name).unwrap();
        let gate = Gate::new(Arc::default(), mode, &[self.work()], None);
        let access: Access = tool.access(&input, &cx).unwrap();
        if gate.judge(name, &access, &cx.cwd, HookSays::Nothing) != Verdict::Allow {
            return None;
        }
        let Output { content, .. } = tool.run(input, &cx).await;
        let [ResultBlock::Text(text)] = &content[..] else { panic!("{content:?}") };
        Some(text.clone())
    }
}

fn paths(names_max: usize) -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(NAMES), 1..=names_max)
        .prop_map(|names| names.iter().collect::<PathBuf>())
}

/// Any path, or one that goes through a link.
fn asked() -> impl Strategy<Value = PathBuf> {
    let through = (prop::sample::select(LINKS), paths(3)).prop_map(|(link, path)| Path::new(link).join(path));
    prop_oneof![1 => paths(5), 1 => prop::sample::select(LINKS).prop_map(PathBuf::from), 3 => through]
}

/// Nothing outside is shown; `.git` may be read, so its content only counts when it comes from elsewhere.
fn leaks(tree: &Tree, path: &Path, text: &str) -> bool {
    let inside = fs::canonicalize(tree.work().join(path)).is_ok_and(|real| real.starts_with(tree.work()));
    !inside && text.contains(SECRET)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_may_run_unasked_stays_inside(
        links in prop::collection::vec((prop::sample::select(LINKS), paths(3), prop::bool::weighted(0.2)), 1..8),
        asked in prop::collection::vec(asked(), 12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tree = Tree::new(&links);
        let before = tree.untouchable();
        runtime.block_on(async {
            for (n, path) in asked.iter().enumerate() {
                let shown = tree.call(Mode::Default, "Read", json!({"file_path": path})).await;
                prop_assert!(!shown.is_some_and(|text| leaks(&tree, path, &text)), "Read {path:?}");
                let search = json!({"pattern": ".", "path": path, "output_mode": "content"});
                let shown = tree.call(Mode::Default, "Grep", search).await;
                prop_assert!(!shown.is_some_and(|text| leaks(&tree, path, &text)), "Grep {path:?}");
                let shown = tree.call(Mode::Default, "Glob", json!({"pattern": "**", "path": path})).await;
                let out = tree.root().join("out").display().to_string();
                prop_assert!(!shown.is_some_and(|text| text.contains(&out)), "Glob {path:?}");
                if n == 0 {
                    let command = format!("cat {}", path.display());
                    let shown = tree.call(Mode::Default, "Bash", sh(&command)).await;
                    prop_assert!(!shown.is_some_and(|text| leaks(&tree, path, &text)), "{command}");
                    let command = format!("grep -r . {}", path.display());
                    let shown = tree.call(Mode::Default, "Bash", sh(&command)).await;
                    prop_assert!(!shown.is_some_and(|text| leaks(&tree, path, &text)), "{command}");
                }
                let edit = json!({"file_path": path, "old_string": "", "new_string": "made"});
                tree.call(Mode::AcceptEdits, "Edit", edit).await;
                tree.call(Mode::AcceptEdits, "Write", json!({"file_path": path, "content": "made"})).await;
                prop_assert_eq!(&tree.untouchable(), &before, "written through {:?}", path);
            }
            Ok(())
        })?;
    }
}
