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

/// Names that are found are looked at where the line is judged: what they lead to counts, and what splitting makes of them.
#[test]
fn names_that_others_find_are_followed_before_they_are_handed_on() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let work = dir.join("work");
    for sub in ["plain", "blank/a /etc", "dashed", "away", "quoted", "guarded"] {
        fs::create_dir_all(work.join(sub)).unwrap();
    }
    for file in ["plain/My file.txt", "blank/a /etc/passwd", "dashed/-f", "quoted/it's", "guarded/key"] {
        fs::write(work.join(file), "").unwrap();
    }
    symlink("/etc", work.join("away/etc")).unwrap();
    symlink("plain", work.join("plain/inside")).unwrap();
    let deny = vec!["Read(./guarded/*)".parse().unwrap()];
    let rules = Arc::new(RuleSet { deny, ..RuleSet::default() });
    let gate = Gate::new(rules, Mode::Default, std::slice::from_ref(&work), None);
    let judged = |line: &str| judge(&gate, "Bash", &Access::Shell(line.to_owned()), &work);
    for (start, split, whole) in [
        ("plain", "allow", "allow"),
        ("blank", "ask", "allow"),
        ("dashed", "ask", "allow"),
        ("quoted", "ask", "allow"),
        ("away", "ask", "ask"),
        ("guarded", "ask", "ask"),
        (".", "ask", "ask"),
        ("..", "ask", "ask"),
    ] {
        assert_eq!(judged(&format!("find {start} | xargs cat")), split, "{start}");
        assert_eq!(judged(&format!("wc -l $(find {start} -type f)")), split, "{start}");
        assert_eq!(judged(&format!("find {start} -print0 | xargs -0 cat")), whole, "{start}");
        assert_eq!(judged(&format!("find {start} -type f -exec cat {{}} +")), whole, "{start}");
    }
    assert_eq!(judged("grep -r x away"), "allow", "links are passed over");
    assert_eq!(judged("grep -R x away"), "ask", "links are followed");
    assert_eq!(judged("grep -r x ."), "ask", "a rule guards a file there");
}

/// A line may make any number of links: past those that are followed nobody knows what lies behind.
#[test]
fn more_links_than_are_followed_make_what_comes_after_them_a_question() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir(dir.join("d")).unwrap();
    let line = |links: usize| {
        let names: Vec<String> = (0..links).map(|name| format!("n{name}")).collect();
        format!("ln -s {} .git/config d; echo x > d/config", names.join(" "))
    };
    let harmless = |links: usize| line(links).replace(".git/config ", "").replace("d/config", "out");
    let judged = |mode: Mode, deny: &[&str], line: &str| {
        let rules = |rules: &[&str]| rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let rules = Arc::new(RuleSet { allow: rules(&["Bash"]), deny: rules(deny), ..RuleSet::default() });
        let gate = Gate::new(rules, mode, std::slice::from_ref(&dir), None);
        judge(&gate, "Bash", &Access::Shell(line.to_owned()), &dir)
    };
    for links in [0, 1, 2, 3, 10, 100, 600] {
        assert_eq!(judged(Mode::Default, &[], &line(links)), "ask", "{links}");
    }
    assert_eq!(judged(Mode::Default, &[], &harmless(100)), "allow");
    assert_eq!(judged(Mode::Default, &[], &harmless(600)), "ask");
    assert_eq!(judged(Mode::BypassPermissions, &[], &harmless(600)), "allow");
    assert_eq!(judged(Mode::BypassPermissions, &["Read(.env)"], &harmless(600)), "ask");
}

/// `**` is followed as far as it leads, so that it is asked about only where it reaches what a rule guards.
#[test]
fn stars_that_go_through_directories_are_followed_there() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(dir.join("src/deep/er")).unwrap();
    for file in ["src/a.rs", "src/deep/er/key", "src/deep/er/b.rs"] {
        fs::write(dir.join(file), "").unwrap();
    }
    let deny = vec!["Read(src/deep/er/key)".parse().unwrap()];
    let rules = Arc::new(RuleSet { allow: vec!["Bash".parse().unwrap()], deny, ..RuleSet::default() });
    let gate = Gate::new(rules, Mode::Default, std::slice::from_ref(&dir), None);
    let judged = |line: &str| judge(&gate, "Bash", &Access::Shell(line.to_owned()), &dir);
    assert_eq!(judged("shopt -s globstar; cat **/*.rs"), "allow");
    assert_eq!(judged("shopt -s globstar; wc -l src/**/*.rs"), "allow");
    for line in ["cat **/key", "cat **/k*", "cat src/**", "python3 x.py src/**/k?y", "cat src/**/er/*"] {
        assert_eq!(judged(&format!("shopt -s globstar; {line}")), "deny", "{line}");
    }
    assert_eq!(judged("shopt -s globstar dotglob; cat *.rs"), "ask");
    assert_eq!(judged("shopt -u dotglob; cat *.rs"), "allow");
}

/// A clone brings no settings of git's, but what was unpacked may: looking is then not all that git does.
#[test]
fn git_is_asked_about_where_the_repository_has_it_run_something() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(dir.join(".git/objects")).unwrap();
    fs::create_dir(dir.join("src")).unwrap();
    fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let config = dir.join(".git/config");
    let gate = |allow: &[&str], mode| {
        let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        let rules = Arc::new(RuleSet { allow, ..RuleSet::default() });
        Gate::new(rules, mode, std::slice::from_ref(&dir), None)
    };
    let judged = |allow: &[&str], mode, command: &str| {
        let (input, access) = (serde_json::json!({"command": command}), Access::Shell(command.to_owned()));
        let call =
            Judged { tool: "Bash", input: &input, access: &access, cwd: &dir, hook: HookSays::Nothing };
        gate(allow, mode).judge(&call)
    };
    let looks =
        ["git status", "git -C src diff", "cd src && git log -p", "ls; git show | head", "git branch"];
    fs::write(&config, "[core]\n\tbare = false\n[user]\n\tname = x\n").unwrap();
    for command in looks {
        assert_eq!(judged(&[], Mode::Default, command).verdict.name(), "allow", "{command}");
    }
    fs::write(&config, "[core]\n\tfsmonitor = ./evil\n").unwrap();
    for command in looks {
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
            assert_ne!(judged(&[], mode, command).verdict.name(), "allow", "{command}");
        }
    }
    let decision = judged(&[], Mode::Default, "git status");
    assert!(decision.reason.contains("core.fsmonitor"), "{decision:?}");
    assert_eq!(judged(&["Bash(git status)"], Mode::Default, "git status").verdict.name(), "allow");
    assert_eq!(judged(&[], Mode::Default, "ls src").verdict.name(), "allow");
}
