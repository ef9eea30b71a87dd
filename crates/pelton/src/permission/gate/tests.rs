use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn judge(gate: &Gate, tool: &str, access: &Access, cwd: &Path) -> &'static str {
    let call = Judged { tool, input: &Value::Null, access, cwd, hook: HookSays::Nothing };
    gate.judge(&call).verdict.name()
}

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
    let judged = |path: PathBuf, cwd: &str| judge(&gate, "Read", &Access::Read(path), &dir.join(cwd));
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
    assert_eq!(judge(&gate, "Read", &Access::Read(dir.join("real/work/a")), &dir), "allow");
    assert_eq!(judge(&gate, "Read", &Access::Read(dir.join("work/a")), &dir), "ask");
}

#[test]
fn files_that_are_more_than_files_are_asked_about_and_rules_cover_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    fs::write(dir.join("plain"), "").unwrap();
    fs::write(dir.join("one"), "").unwrap();
    fs::hard_link(dir.join("one"), dir.join("two")).unwrap();
    nix::unistd::mkfifo(&dir.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", dir.join("device")).unwrap();
    let gate = |allow: &[&str]| {
        let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        let rules = Arc::new(RuleSet { allow, ..RuleSet::default() });
        Gate::new(rules, Mode::AcceptEdits, std::slice::from_ref(&dir), None)
    };
    for (file, expected) in
        [("plain", "allow"), ("new", "allow"), ("two", "ask"), ("pipe", "ask"), ("device", "ask")]
    {
        for access in [Access::Read(dir.join(file)), Access::Edit(dir.join(file))] {
            assert_eq!(judge(&gate(&[]), "Edit", &access, &dir), expected, "{access:?}");
        }
    }
    assert_eq!(judge(&gate(&[]), "Read", &Access::Read("/proc/self/environ".into()), &dir), "deny");
    assert_eq!(judge(&gate(&["Read"]), "Read", &Access::Read(dir.join("two")), &dir), "allow");
}
