use serde_json::json;

use super::super::place::{Base, Kind};
use super::super::source::Layer;
use super::*;

fn rule(text: &str) -> Rule {
    text.parse().expect(text)
}

fn here(cwd: &str) -> Here {
    let one = |path: &str| vec![path.into()];
    let base = Base { start: one("/w"), home: one("/home/u"), roots: one("/w"), ..Base::default() };
    Here { base: Arc::new(base), cwd: one(cwd).into() }
}

fn at(given: &str, real: &str) -> Place {
    Place { given: given.into(), real: real.into(), kind: Kind::Plain }
}

#[track_caller]
fn check(text: &str, path: &str, vouches: bool, catches: bool) {
    let covers = |need| rule(text).covers_file(Deed::Edit, &at(path, path), &here("/w"), need);
    assert_eq!((covers(Need::Vouch), covers(Need::Catch)), (vouches, catches), "{text} {path}");
}

#[test]
fn paths_are_anchored_as_written() {
    check("Edit(//etc/hosts)", "/etc/hosts", true, true);
    check("Edit(//etc)", "/etc/hosts", true, true);
    check("Edit(~/notes)", "/home/u/notes", true, true);
    check("Edit(~/notes)", "/w/notes", false, false);
    check("Edit(/src/**)", "/w/src/a/b", true, true);
    check("Edit(/src/**)", "/w/sub/src/a", false, false);
    check("Edit(/src/*.rs)", "/w/src/a.rs", true, true);
    check("Edit(/src/*.rs)", "/w/src/sub/a.rs", false, false);
    check("Edit(./src)", "/w/src/a", true, true);
    check("Edit(./src)", "/w/sub/src/a", false, false);
    check("Edit(src/lib/x.rs)", "/w/src/lib/x.rs", true, true);
    check("Edit(src/lib/x.rs)", "/w/sub/src/lib/x.rs", false, false);
    check("Edit(../other/**)", "/other/a", true, true);
    check("Edit(/w2)", "/w/w2/a", true, true);
}

#[test]
fn a_name_alone_is_at_any_depth_and_prohibitions_reach_further() {
    check("Edit(*.pem)", "/w/deep/key.pem", true, true);
    check("Edit(*.pem)", "/elsewhere/key.pem", false, true);
    check("Edit(.env)", "/w/a/.env", true, true);
    check("Edit(.env)", "/w/a/.env.local", false, false);
    check("Edit(**/.env)", "/w/a/.env", true, true);
    check("Edit(**/.env)", "/x/.env", false, true);
    check("Edit(secrets/)", "/w/a/secrets/k", true, true);
    check("Edit(src/**)", "/w/src/a", true, true);
    check("Edit(src/**)", "/w/sub/src/a", false, true);
    check("Edit(src/**)", "/w/src", false, true);
    check("Edit(src/**)", "/w/srcs/a", false, false);
    check("Edit(**)", "/w/a/b", true, true);
}

#[test]
fn a_link_needs_both_ends_to_be_allowed_and_one_to_be_denied() {
    let linked = at("/w/src/link", "/etc/hosts");
    let covers = |text: &str, need| rule(text).covers_file(Deed::Edit, &linked, &here("/w"), need);
    assert!(!covers("Edit(/src/**)", Need::Vouch) && covers("Edit(/src/**)", Need::Catch));
    assert!(!covers("Edit(//etc/**)", Need::Vouch) && covers("Edit(//etc/**)", Need::Catch));
}

#[test]
fn a_slash_begins_where_the_rule_was_written() {
    let source =
        RuleSource { anchor: Some(Path::new("/home/u/.claude").into()), ..RuleSource::layer(Layer::User) };
    let rule = rule("Read(/x)").with_source(source);
    let covers = |path: &str| rule.covers_file(Deed::Read, &at(path, path), &here("/w"), Need::Catch);
    assert!(covers("/home/u/.claude/x/y") && !covers("/w/x"));
    assert_eq!(rule.source().to_string(), "user settings");
}

#[test]
fn a_changed_directory_does_not_take_prohibitions_along() {
    let covers = |need| rule("Edit(./x)").covers_file(Deed::Edit, &at("/w/x", "/w/x"), &here("/w/sub"), need);
    assert!(covers(Need::Catch) && !covers(Need::Vouch));
}

#[test]
fn reading_and_writing_imply_each_other_in_one_direction_each() {
    let covers =
        |text: &str, deed, need| rule(text).covers_file(deed, &at("/w/a", "/w/a"), &here("/w"), need);
    assert!(covers("Edit(a)", Deed::Read, Need::Vouch) && !covers("Edit(a)", Deed::Read, Need::Catch));
    assert!(!covers("Read(a)", Deed::Edit, Need::Vouch) && covers("Read(a)", Deed::Edit, Need::Catch));
}

#[test]
fn names_of_tools_may_be_patterns_where_they_restrict() {
    for (text, tool, vouches, catches) in [
        ("Bash", "Bash", true, true),
        ("Task", "Agent", true, true),
        ("*", "Bash", false, true),
        ("mcp__*", "mcp__a__b", false, true),
        ("mcp__a", "mcp__a__b", true, true),
        ("mcp__a", "mcp__ab__c", false, false),
        ("mcp__a__*", "mcp__a__b", true, true),
        ("mcp__a__get_*", "mcp__a__get_x", true, true),
        ("mcp__a__b", "mcp__a__bc", false, false),
        ("mcp__*__b", "mcp__a__b", false, true),
        ("mcp__a*", "mcp__ab__c", false, true),
    ] {
        let covers = |need| rule(text).covers_call(tool, &json!({}), need);
        assert_eq!((covers(Need::Vouch), covers(Need::Catch)), (vouches, catches), "{text} {tool}");
    }
}

#[test]
fn fields_of_the_input_can_be_caught_but_not_vouched_for() {
    let input = json!({"run_in_background": true, "model": "opus", "n": 3, "list": []});
    for (text, tool, catches) in [
        ("Bash(run_in_background:true)", "Bash", true),
        ("Bash(run_in_background:false)", "Bash", false),
        ("Agent(model:op*)", "Task", true),
        ("Foo(n:3)", "Foo", true),
        ("Foo(list:*)", "Foo", false),
        ("Foo(absent:*)", "Foo", false),
    ] {
        assert_eq!(rule(text).covers_call(tool, &input, Need::Catch), catches, "{text}");
        assert!(!rule(text).covers_call(tool, &input, Need::Vouch), "{text}");
    }
}

#[test]
fn agents_skills_and_hosts_are_named() {
    assert!(rule("Agent(Explore)").covers_name("Task", "Explore", Need::Vouch));
    assert!(rule("Skill(pdf)").covers_name("Skill", "pdf", Need::Vouch));
    assert!(!rule("Skill(pdf)").covers_name("Skill", "pdf x", Need::Vouch));
    assert!(rule("Skill(pdf *)").covers_name("Skill", "pdf x", Need::Vouch));
    assert!(rule("WebFetch(domain:*.x.org)").covers_host("WebFetch", "a.x.org"));
    assert!(rule("WebFetch(domain:*)").is_bare());
}

#[test]
fn pit_P2_rules_that_do_nothing_are_told() {
    for (text, behavior, part) in [
        ("Write(src/**)", Behavior::Deny, "Edit(src/**)"),
        ("MultiEdit(x)", Behavior::Allow, "Edit(x)"),
        ("Glob(x)", Behavior::Deny, "Read(x)"),
        ("Bash(command:rm *)", Behavior::Deny, "command itself"),
        ("WebSearch(x)", Behavior::Deny, "nothing between"),
        ("WebFetch(url:x)", Behavior::Deny, "domain:"),
        ("Bsh(ls)", Behavior::Deny, "never looked at"),
        ("Bsh", Behavior::Deny, "there is not: Bsh"),
        ("Bsh", Behavior::Ask, "there is not: Bsh"),
        ("Agent(model:opus)", Behavior::Allow, "not allowed"),
        ("*", Behavior::Allow, "mcp__server__*"),
        ("mcp__*", Behavior::Allow, "mcp__server__*"),
        ("Bash(make && make install)", Behavior::Allow, "one rule for each"),
    ] {
        let warning = rule(text).warning(behavior).unwrap_or_default();
        assert!(warning.contains(part), "{text}: {warning}");
    }
    for (text, behavior) in [
        ("Bsh", Behavior::Allow),
        ("my_tool", Behavior::Deny),
        ("mcp__*", Behavior::Deny),
        ("*", Behavior::Deny),
        ("Bash(rm *)", Behavior::Deny),
        ("Bash(timeout:1000)", Behavior::Deny),
        ("Grep(path:x)", Behavior::Deny),
        ("Bash(curl * | sh)", Behavior::Deny),
    ] {
        assert_eq!(rule(text).warning(behavior), None, "{text}");
    }
}

#[test]
fn bad_rules_are_named_with_a_way_out() {
    for (text, part) in [
        ("Bash(ls", "closing ')'"),
        ("", "tool name"),
        ("Ba sh", "tool name"),
        ("Read(!x)", "'!'"),
        ("WebFetch(domain:a b)", "no name of a host"),
    ] {
        let error = text.parse::<Rule>().expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Texts that look like rules in part.
    fn soup() -> impl Strategy<Value = String> {
        let parts = r"(Bash|Read|Edit|WebFetch|mcp__|\(|\)|\*\*|\*|:|/|~|\./|\.\.|\[|\]|\{|\}|!|\\|\?|domain:| |é|-|a|\x00){0,14}";
        prop_oneof![parts, any::<String>()]
    }

    proptest! {
        /// Rules come from files that anybody may have written, and are held against whatever a model says.
        #[test]
        fn any_rule_is_read_and_held_against_anything(
            text in soup(),
            command in soup(),
            path in "(/|a|\\.\\.|\\.|\\*|é| |\\[|src){0,10}",
        ) {
            let Ok(rule) = text.parse::<Rule>() else { return Ok(()) };
            let path = format!("/w/{path}");
            let here = here("/w");
            for need in [Need::Vouch, Need::Catch] {
                for deed in [Deed::Read, Deed::Edit] {
                    rule.covers_file(deed, &at(&path, &path), &here, need);
                }
                rule.names(&command, need);
                rule.covers_name("Skill", &command, need);
                rule.covers_call("Bash", &json!({"command": command, "timeout": 1}), need);
            }
            rule.covers_host("WebFetch", &command);
            if let Some(pattern) = rule.command("Bash") {
                // What matches certainly could match.
                prop_assert!(!pattern.matches(&command) || pattern.could_match(&command), "{text:?} {command:?}");
            }
            for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
                let _ = rule.warning(behavior);
            }
        }

        /// A path that a pattern vouches for is one that it catches: as a prohibition a rule reaches no less far.
        #[test]
        fn what_a_path_rule_vouches_for_it_catches(
            pattern in r"(//|~/|\./|/)?(a|b|src|\*|\*\*|/|\.|[ab]|\?){1,8}",
            path in "(a|b|src|\\.x)(/(a|b|src|\\.x)){0,4}",
        ) {
            let Ok(rule) = format!("Edit({pattern})").parse::<Rule>() else { return Ok(()) };
            let path = format!("/w/{path}");
            let covers = |need| rule.covers_file(Deed::Edit, &at(&path, &path), &here("/w"), need);
            prop_assert!(!covers(Need::Vouch) || covers(Need::Catch), "{pattern} {path}");
        }
    }
}
