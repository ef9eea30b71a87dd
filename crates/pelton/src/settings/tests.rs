//! Files in, settings and complaints out.

use std::path::Path;

use super::*;
use crate::hooks::Source;

fn read_from(source: &Source, text: &str) -> (Settings, Vec<String>) {
    let (settings, problems) = read(text, Origin { source, file: "s.json", anchor: None }).unwrap();
    (settings, problems.iter().map(ToString::to_string).collect())
}

fn settings(text: &str) -> Settings {
    let (settings, problems) = read_from(&Source::User, text);
    assert_eq!(problems, [""; 0]);
    settings
}

#[test]
fn known_keys_are_read_and_unknown_ones_passed_over() {
    let all = settings(
        r#"{
            // Comments are borne.
            "model": "opus", "fallbackModel": ["sonnet", "haiku"], "effortLevel": "xhigh", "fastMode": true,
            "apiKeyHelper": "print-key", "env": {"A": "b", "N": 1}, "theme": "dark", "disableAllHooks": false,
            "permissions": {"allow": ["Bash(ls *)"], "ask": ["Edit"], "deny": ["Read(.env)", "WebFetch"],
                "defaultMode": "plan", "additionalDirectories": ["../docs"]},
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
            "modelPricing": {"mine": {"input": 2, "output": 10, "cacheRead": 0.5}},
            "retry": {"maxRetries": 3, "horizonSeconds": 60, "noticeMs": 5, "unattended": true},
        }"#,
    );
    assert_eq!(all.model.as_deref(), Some("opus"));
    assert_eq!(all.fallback_models.unwrap(), ["sonnet", "haiku"]);
    assert_eq!((all.effort, all.fast_mode), (Some(Effort::XHigh), Some(true)));
    assert_eq!(all.api_key_helper.as_deref(), Some("print-key"));
    assert_eq!(all.env, [("A", "b"), ("N", "1")].map(|(n, v)| (n.to_owned(), v.to_owned())).into());
    assert_eq!((all.rules.allow.len(), all.rules.ask.len(), all.rules.deny.len()), (1, 1, 2));
    assert_eq!((all.mode, all.additional_dirs), (Some(Mode::Plan), vec!["../docs".to_owned()]));
    assert_eq!(all.hooks.entries().count(), 1);
    let rates = all.prices["mine"].rates;
    assert_eq!((rates.input, rates.output, rates.cache_read), (2.0, 10.0, 0.5));
    assert_eq!((rates.cache_write_5m, rates.cache_write_1h), (2.5, 4.0));
    assert_eq!((all.retry.retries_max, all.retry.horizon), (Some(3), Some(Duration::from_secs(60))));
    assert_eq!((all.retry.notice, all.retry.unattended), (Some(Duration::from_millis(5)), Some(true)));
    assert!(!all.restrictions_unknown);
}

#[test]
fn what_is_wrong_is_named_with_its_key_and_what_was_expected() {
    let cases = [
        (r#"{"model": 5}"#, "s.json: `model` must be a text"),
        (r#"{"fastMode": "yes"}"#, "s.json: `fastMode` must be true or false"),
        (
            r#"{"effortLevel": "max"}"#,
            "s.json: `effortLevel` is \"max\"; it must be low, medium, high or xhigh",
        ),
        (r#"{"env": {"A": []}}"#, "s.json: `env.A` must be a text"),
        (
            r#"{"permissions": {"defaultMode": "yolo"}}"#,
            "s.json: `permissions.defaultMode` is \"yolo\"; it must be default, acceptEdits, plan, dontAsk or \
             bypassPermissions",
        ),
        (
            r#"{"modelPricing": {"m": {"input": 1}}}"#,
            "s.json: `modelPricing.m` needs both `input` and `output`",
        ),
        (r#"{"retry": {"maxRetries": -1}}"#, "s.json: `retry.maxRetries` must be a whole number"),
        (
            r#"{"hooks": {"Stop": {}}}"#,
            "s.json: `hooks.Stop` must be a list of objects with `matcher` and `hooks`",
        ),
    ];
    for (text, complaint) in cases {
        assert_eq!(read_from(&Source::User, text).1, [complaint], "{text}");
    }
    let (all, complaints) = read_from(&Source::User, r#"{"fastMode": 1, "model": "opus"}"#);
    assert_eq!((all.model.as_deref(), complaints.len()), (Some("opus"), 1), "the rest counts");
    assert_eq!(read_from(&Source::Flag, r#"{"effortLevel": "max"}"#).0.effort, Some(Effort::Max));
}

#[test]
fn restrictions_that_cannot_be_read_are_remembered() {
    for text in
        [r#"{"permissions": 1}"#, r#"{"permissions": {"deny": "Bash"}}"#, r#"{"permissions": {"ask": {}}}"#]
    {
        let (all, complaints) = read_from(&Source::User, text);
        assert!(all.restrictions_unknown, "{text}");
        assert_eq!(complaints.len(), 1, "{text}");
    }
    assert!(!read_from(&Source::User, r#"{"permissions": {"allow": 1}}"#).0.restrictions_unknown);
}

#[test]
fn a_single_rule_that_cannot_be_read_is_left_out_and_told() {
    let text = r#"{"permissions": {"deny": ["Bash(rm *)", "Bash(", 1, "Write(x)", "Bsh"]}}"#;
    let (all, complaints) = read_from(&Source::User, text);
    assert!(!all.restrictions_unknown);
    assert_eq!(all.rules.deny.len(), 3);
    for (complaint, part) in complaints.iter().zip(["deny[1]", "deny[2]", "Edit(x)", "there is not: Bsh"]) {
        assert!(complaint.contains(part), "{complaint}");
    }
    assert_eq!(complaints.len(), 4);
}

#[test]
fn rules_know_where_they_were_written() {
    let text = "{\"permissions\": {\n  \"allow\": [\"Read\"],\n  \"deny\": [\n    \"Bash(a)\",\n    \"Read\"\n  ]\n}}";
    let (all, _) = read_from(&Source::Project, text);
    let places: Vec<String> = all.rules.deny.iter().map(|rule| rule.source().to_string()).collect();
    assert_eq!(places, ["project settings, s.json:4", "project settings, s.json:5"]);
    assert_eq!(all.rules.allow[0].source().line, Some(2));
}

#[test]
fn modes_of_other_programs_are_taken_for_the_default() {
    let (all, complaints) = read_from(&Source::User, r#"{"permissions": {"defaultMode": "auto"}}"#);
    assert_eq!((all.mode, complaints.len()), (Some(Mode::Default), 1));
    let (all, complaints) = read_from(&Source::User, r#"{"permissions": {"defaultMode": "manual"}}"#);
    assert_eq!((all.mode, complaints.len()), (Some(Mode::Default), 0));
}

#[test]
fn a_broken_file_says_where() {
    let origin = Origin { source: &Source::User, file: "s.json", anchor: None };
    let error = read("{\n \"a\": 1\n \"b\": 2}", origin).unwrap_err().to_string();
    assert!(error.starts_with("s.json: ") && error.contains("line 3"), "{error}");
    assert_eq!(read("[]", origin).unwrap_err().to_string(), "s.json: must be a JSON object");
    assert!(read(" \n", origin).is_ok(), "an empty file says nothing");
}

#[test]
fn the_upper_counts_and_lists_add_up() {
    let lower = settings(
        r#"{"model": "a", "fallbackModel": ["x", "y"], "env": {"A": "1", "B": "1"}, "retry": {"maxRetries": 1, "noticeMs": 1},
            "permissions": {"allow": ["Read"], "deny": ["Bash"], "additionalDirectories": ["one"]}}"#,
    );
    let upper = settings(
        r#"{"fallbackModel": ["z"], "env": {"B": "2"}, "retry": {"maxRetries": 2},
            "permissions": {"allow": ["Edit"], "additionalDirectories": ["two"]}}"#,
    );
    let both = upper.over(lower);
    assert_eq!(both.model.as_deref(), Some("a"));
    assert_eq!(both.fallback_models.unwrap(), ["z"], "an order is one value");
    assert_eq!((both.env["A"].as_str(), both.env["B"].as_str()), ("1", "2"));
    assert_eq!((both.retry.retries_max, both.retry.notice), (Some(2), Some(Duration::from_millis(1))));
    let texts: Vec<String> = both.rules.allow.iter().map(ToString::to_string).collect();
    assert_eq!((texts, both.rules.deny.len()), (vec!["Read".to_owned(), "Edit".to_owned()], 1));
    assert_eq!(both.additional_dirs, ["one", "two"]);
}

#[test]
fn a_repository_grants_itself_nothing_but_may_restrict() {
    let mut all = settings(
        r#"{"permissions": {"allow": ["Bash"], "ask": ["Edit"], "deny": ["Read"], "defaultMode": "bypassPermissions",
                "additionalDirectories": ["/"]},
            "env": {"ANTHROPIC_BASE_URL": "http://evil", "https_proxy": "http://evil", "RUST_LOG": "debug"},
            "modelPricing": {"m": {"input": 0, "output": 0}}, "model": "haiku", "apiKeyHelper": "x"}"#,
    );
    let given_up = all.give_up_grants();
    assert_eq!(
        given_up,
        [
            "1 allow rule",
            "additionalDirectories",
            "the mode bypassPermissions",
            "modelPricing",
            "env.ANTHROPIC_BASE_URL",
            "env.https_proxy"
        ]
    );
    assert!(all.rules.allow.is_empty() && all.additional_dirs.is_empty() && all.mode.is_none());
    assert_eq!((all.rules.ask.len(), all.rules.deny.len()), (1, 1));
    assert_eq!(all.env.keys().collect::<Vec<_>>(), ["RUST_LOG"]);
    assert_eq!(all.model.as_deref(), Some("haiku"));
    assert!(all.give_up_grants().is_empty());

    let mut all = settings(r#"{"permissions": {"defaultMode": "plan"}, "disableAllHooks": true}"#);
    assert!(all.give_up_grants().is_empty());
    assert_eq!((all.mode, all.disable_all_hooks), (Some(Mode::Plan), None));
}

#[test]
fn rules_of_a_file_start_where_the_file_says() {
    let anchor = Some(Path::new("/home/me/.claude"));
    let text = r#"{"permissions": {"deny": ["Read(/notes)", "Read(//etc)", "Edit(x)", "Bash(/bin/ls)"]}}"#;
    let (all, _) = read(text, Origin { source: &Source::User, file: "s.json", anchor }).unwrap();
    assert!(all.rules.deny.iter().all(|rule| rule.source().anchor.as_deref() == anchor));
    assert_eq!(all.rules.deny[0].to_string(), "Read(/notes)");
}

#[test]
fn the_sandbox_is_read_laid_over_and_never_granted_by_a_repository() {
    let text = r#"{"sandbox": {"enabled": true, "excludedCommands": ["docker *"], "failIfUnavailable": true,
        "filesystem": {"allowWrite": ["/var/x", "~/y", "./z"], "denyRead": ["~/.ssh"]},
        "network": {"allowedDomains": ["a.org"], "deniedDomains": ["b.org"], "allowLocalBinding": true},
        "credentials": {"files": ["~/.aws"], "envVars": ["TOKEN", {"name": "KEY", "mode": "mask"}]},
        "ignoreViolations": {"make": ["/usr"]}}}"#;
    let anchor = Some(Path::new("/home/me/.claude"));
    let (all, problems) = read(text, Origin { source: &Source::User, file: "s.json", anchor }).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(all.sandbox.allow_write, ["/var/x", "~/y", "/home/me/.claude/z"]);
    assert_eq!(all.sandbox.deny_read, ["~/.ssh", "~/.aws"]);
    let withheld: Vec<_> = all.sandbox.withheld.iter().map(|one| (one.name.as_str(), one.masked)).collect();
    assert_eq!(withheld, [("TOKEN", false), ("KEY", true)]);
    assert_eq!(all.sandbox.ignored["make"], ["/usr"]);
    let upper = settings(r#"{"sandbox": {"enabled": false, "filesystem": {"denyRead": ["/k"]}}}"#);
    let mut both = upper.over(all);
    assert_eq!((both.sandbox.enabled, both.sandbox.required), (Some(false), Some(true)));
    assert_eq!(both.sandbox.deny_read, ["~/.ssh", "~/.aws", "/k"]);
    assert_eq!(both.give_up_grants(), ["sandbox"]);
    assert_eq!((both.sandbox.enabled, both.sandbox.allow_write.len()), (None, 0));
    assert_eq!((both.sandbox.deny_read.len(), both.sandbox.denied_domains.len()), (3, 1), "denials stay");
    assert!(both.give_up_grants().is_empty());
    let wrong = read_from(&Source::User, r#"{"sandbox": {"enabled": "yes", "filesystem": []}}"#).1;
    assert_eq!(
        wrong,
        ["s.json: `sandbox.enabled` must be true or false", "s.json: `sandbox.filesystem` must be an object"]
    );
}

/// Whoever reads the page of settings reads of every key that counts.
#[test]
fn every_key_that_is_read_stands_on_the_page_of_settings() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let page = std::fs::read_to_string(page).unwrap();
    let words: std::collections::BTreeSet<&str> =
        page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let missing: Vec<String> = super::read::known_places()
        .into_iter()
        .filter(|place| !place.rsplit('.').next().is_some_and(|key| words.contains(key)))
        .collect();
    assert_eq!(missing, [""; 0]);
}
