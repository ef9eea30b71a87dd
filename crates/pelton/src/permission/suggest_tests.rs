use std::path::Path;

use serde_json::{Value, json};

use super::super::{HookSays, Judged, Permissions, RuleSet};
use super::*;

fn edit(path: &str) -> Access {
    Access::Edit(path.into())
}

fn shell(command: &str) -> Access {
    Access::Shell(command.to_owned())
}

/// A call that is asked about is not asked about any more once the suggestions were taken.
fn check(tool: &str, access: &Access) -> Vec<Value> {
    let permissions = Permissions::new(RuleSet::default(), Mode::Default, "/w".into(), Vec::new(), None);
    let judge = || {
        let call =
            Judged { tool, input: &Value::Null, access, cwd: Path::new("/w"), hook: HookSays::Nothing };
        permissions.gate().judge(&call)
    };
    let decision = judge();
    assert_eq!(decision.verdict, Verdict::Ask, "{access:?}");
    let suggestions = suggestions(tool, access, &decision);
    for update in &suggestions {
        permissions.apply(update).unwrap();
    }
    if !suggestions.is_empty() {
        assert_eq!(judge().verdict, Verdict::Allow, "{access:?} after {suggestions:?}");
    }
    suggestions.iter().map(Update::to_json).collect()
}

fn rules(tool: &str, contents: &[&str]) -> Value {
    let rules: Vec<Value> =
        contents.iter().map(|content| json!({"toolName": tool, "ruleContent": content})).collect();
    json!({"type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings"})
}

#[test]
fn suggestions_are_as_wide_as_they_say_and_settle_the_question() {
    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    assert_eq!(check("Edit", &edit("/w/a")), std::slice::from_ref(&mode));
    let directory = json!({"type": "addDirectories", "directories": ["/x"], "destination": "session"});
    assert_eq!(check("Write", &edit("/x/a")), [directory, mode]);
    let below = json!({"type": "addRules", "rules": [{"toolName": "Read", "ruleContent": "//x/y/**"}], "behavior": "allow", "destination": "session"});
    assert_eq!(check("Read", &Access::Read("/x/y/a".into())), [below]);
    assert_eq!(
        check("WebFetch", &Access::Url("https://Example.com/a".into())),
        [rules("WebFetch", &["domain:example.com"])]
    );
    assert_eq!(check("Skill", &Access::Skill("pdf".into())), [rules("Skill", &["pdf"])]);
}

#[test]
fn pit_P3_each_command_that_is_asked_about_gets_a_rule_of_its_own() {
    for (command, expected) in [
        ("npm test && ls && ./run x", &["npm test *", "./run x"][..]),
        ("npm run build -- --fast", &["npm run build *"]),
        ("cargo test -q", &["cargo test *"]),
        ("pytest tests -k x", &["pytest *"]),
        ("git commit -m 'a b'", &["git commit *"]),
        ("docker run x", &["docker run x"]),
        ("python x.py", &["python x.py"]),
        ("rm a", &["rm a"]),
        ("git -C . push", &["git -C . push"]),
    ] {
        assert_eq!(check("Bash", &shell(command)), [rules("Bash", expected)], "{command}");
    }
}

#[test]
fn a_command_that_changes_something_elsewhere_may_be_an_edit_there() {
    let edits = |directories: &[&str]| {
        let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
        let more = json!({"type": "addDirectories", "directories": directories, "destination": "session"});
        if directories.is_empty() { vec![mode] } else { vec![more, mode] }
    };
    for (command, exact, directories) in [
        ("touch /x/y/a", &["touch /x/y/a"][..], &["/x/y"][..]),
        ("mkdir -p /x/y && touch /x/y/a", &["mkdir -p /x/y", "touch /x/y/a"], &["/x", "/x/y"]),
        ("make && ls", &["make"], &[]),
        ("touch a", &["touch a"], &[]),
        // A rule about a command does not say where its output goes.
        ("echo hi > /x/y/a", &[], &["/x/y"]),
        ("echo hi >> a", &[], &[]),
    ] {
        let rule = (!exact.is_empty()).then(|| rules("Bash", exact));
        let way = if exact.is_empty() || !directories.is_empty() { edits(directories) } else { vec![] };
        let expected: Vec<Value> = rule.into_iter().chain(way).collect();
        assert_eq!(check("Bash", &shell(command)), expected, "{command}");
    }
    // Where a command is no edit, or all there is would be opened, there is no such way.
    assert!(check("Bash", &shell("make > /x/y/a")).is_empty());
    assert!(check("Bash", &shell("echo hi > /a")).is_empty());
    assert_eq!(check("Bash", &shell("touch /a")), [rules("Bash", &["touch /a"])]);
    assert!(check("Write", &edit("/a")).is_empty());
}

#[test]
fn nothing_is_suggested_that_would_not_help_or_would_mean_more() {
    assert!(check("Edit", &edit("/w/.git/config")).is_empty());
    assert!(check("Read", &Access::Read("/x/[a]/b".into())).is_empty());
    for command in ["rm x*", "make $X", "a; b; c; d; e; f", "make &", "make $(id)", "make > x", "rm -rf /"] {
        assert!(check("Bash", &shell(command)).is_empty(), "{command}");
    }
}
