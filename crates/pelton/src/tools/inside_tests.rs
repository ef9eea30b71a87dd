//! What the tools do without asking stays in the working directories, whatever links lead out of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Access, Output, ResultBlock, Tool, ToolCx, builtin};
use crate::permission::{Gate, HookSays, Judged, Mode};

/// What every file outside of the working directory holds.
const SECRET: &str = "topsecret";

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
        let mut cx = ToolCx::outside(self.work());
        cx.env = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into();
        cx.spill_dir = self.root().join("spill");
        cx
    }

    /// The answer of a call, if it may run.
    async fn call(&self, mode: Mode, name: &str, input: Value) -> Option<String> {
        let cx = self.cx();
        let tool: Arc<dyn Tool> = builtin::all().into_iter().find(|tool| tool.spec().name == name).unwrap();
        let gate = Gate::new(Arc::default(), mode, &[self.work()], None);
        let access: Access = tool.access(&input, &cx).unwrap();
        let hook = HookSays::Nothing;
        let call = Judged { tool: name, input: &input, access: &access, cwd: &cx.cwd, hook };
        if !gate.judge(&call).is_allowed() {
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
                    let shown = tree.call(Mode::Default, "Bash", json!({"command": command})).await;
                    prop_assert!(!shown.is_some_and(|text| leaks(&tree, path, &text)), "{command}");
                    let command = format!("grep -r . {}", path.display());
                    let shown = tree.call(Mode::Default, "Bash", json!({"command": command})).await;
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
