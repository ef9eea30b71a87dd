use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_directory_behind_a_link_is_known_by_both_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(dir.join("real/work/secret")).unwrap();
    fs::create_dir(dir.join("work")).unwrap();
    symlink("real/work", dir.join("link")).unwrap();
    let deny = vec!["Read(/secret/**)".parse().unwrap(), "Read(./hidden)".parse().unwrap()];
    let rules = Arc::new(RuleSet { deny, ..RuleSet::default() });
    let root = dir.join("link");
    let gate = Gate::new(rules, Mode::Default, std::slice::from_ref(&root), None);
    let judged = |path: PathBuf, cwd: &str| match gate.judge(
        "Read",
        &Access::Read(path),
        &dir.join(cwd),
        HookSays::Nothing,
    ) {
        Verdict::Allow => "allow",
        Verdict::Deny(_) => "deny",
        Verdict::Ask { .. } => "ask",
    };
    for (path, expected) in [
        ("link/a", "allow"),
        ("real/work/a", "allow"),
        ("work/a", "ask"),
        ("link/../a", "ask"),
        ("link/secret/a", "deny"),
        ("real/work/secret/a", "deny"),
        ("link/hidden", "deny"),
        ("real/work/hidden", "deny"),
    ] {
        for cwd in ["link", "real/work"] {
            assert_eq!(judged(dir.join(path), cwd), expected, "{path} in {cwd}");
        }
    }
    // By its letters this is `work`, but it leads to `real/work`.
    let roots = [dir.join("link/../work")];
    let gate = Gate::new(Arc::default(), Mode::Default, &roots, None);
    assert_eq!(
        gate.judge("Read", &Access::Read(dir.join("real/work/a")), &dir, HookSays::Nothing),
        Verdict::Allow
    );
    assert_ne!(
        gate.judge("Read", &Access::Read(dir.join("work/a")), &dir, HookSays::Nothing),
        Verdict::Allow
    );
}
