use std::path::Path;

use super::super::{Gate, HookSays, Permissions, RuleSet, Verdict};
use super::*;

fn edit(path: &str) -> Access {
    Access::Edit(path.into())
}

/// A call that is asked about is not asked about any more once the suggestions were taken.
fn check(tool: &str, access: &Access) -> Vec<Value> {
    let permissions = Permissions::new(RuleSet::default(), Mode::Default, "/w".into(), Vec::new(), None);
    let judge = |gate: &Gate| gate.judge(tool, access, Path::new("/w"), HookSays::Nothing);
    let Verdict::Ask { cause, .. } = judge(&permissions.gate()) else {
        panic!("{access:?} is not asked about")
    };
    let suggestions = suggestions(tool, access, &cause);
    for update in &suggestions {
        permissions.apply(update).unwrap();
    }
    if !suggestions.is_empty() {
        assert_eq!(judge(&permissions.gate()), Verdict::Allow, "{access:?} after {suggestions:?}");
    }
    suggestions.iter().map(Update::to_json).collect()
}

#[test]
fn suggestions_are_as_wide_as_they_say_and_settle_the_question() {
    use serde_json::json;
    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    assert_eq!(check("Edit", &edit("/w/a")), std::slice::from_ref(&mode));
    let directory = json!({"type": "addDirectories", "directories": ["/x"], "destination": "session"});
    assert_eq!(check("Write", &edit("/x/a")), [directory, mode]);
    let exact = json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm test && make"}], "behavior": "allow", "destination": "localSettings"});
    assert_eq!(check("Bash", &Access::Shell("npm test && make".into())), [exact]);
    let below = json!({"type": "addRules", "rules": [{"toolName": "Read", "ruleContent": "//x/y/**"}], "behavior": "allow", "destination": "session"});
    assert_eq!(check("Read", &Access::Read("/x/y/a".into())), [below]);
}

#[test]
fn nothing_is_suggested_that_would_not_help_or_would_mean_more() {
    assert!(check("Edit", &edit("/w/.git/config")).is_empty());
    assert!(check("Bash", &Access::Shell("rm *".into())).is_empty());
    assert!(check("Read", &Access::Read("/x/[a]/b".into())).is_empty());
}
