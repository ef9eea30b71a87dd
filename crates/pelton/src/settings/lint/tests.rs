//! Files in, findings out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;

/// What there is besides the settings.
#[derive(Default)]
struct Ground {
    files: HashMap<PathBuf, Looked>,
}

impl Ground {
    fn with(mut self, path: &str, runs: bool, text: &str) -> Self {
        self.files.insert(path.into(), Looked { runs, text: Some(text.to_owned()) });
        self
    }
}

fn findings_on(ground: &Ground, files: &[(&Source, &str, &str)], agents: &[(&str, &str)]) -> Vec<String> {
    let look = |path: &Path| {
        let path: PathBuf = path.components().collect();
        ground.files.get(&path).cloned()
    };
    let mut around = Around::nothing("/w", &look);
    around.tools = ["Bash", "Read", "Edit", "Write", "Grep", "Glob", "Agent"].map(str::to_owned).to_vec();
    around.servers = vec!["memory".to_owned(), "plugin:kit:files".to_owned()];
    around.path = vec!["/bin".into()];
    around.agents = agents
        .iter()
        .map(|(name, tools)| {
            let mut agent = AgentDefinition::new(*name, "d", "p");
            agent.tools = Some(tools.split(',').map(str::to_owned).collect());
            (PathBuf::from(format!("/w/.claude/agents/{name}.md")), Some(agent))
        })
        .collect();
    let written: Vec<Written<'_>> = files
        .iter()
        .map(|(source, file, text)| Written { origin: Origin { source, file, anchor: None }, text })
        .collect();
    lint(&written, &around)
        .iter()
        .map(|found| {
            let line = found.line.map(|line| line.to_string()).unwrap_or_default();
            format!("{} {} {}:{line} {}", found.weight.name(), found.kind.name(), found.file, found.text)
        })
        .collect()
}

/// One finding for each beginning and part, in this order, and no more.
#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    check_on(&Ground::default(), text, expected);
}

#[track_caller]
fn check_on(ground: &Ground, text: &str, expected: &[(&str, &str)]) {
    let found = findings_on(ground, &[(&Source::User, "u", text)], &[]);
    assert_eq!(found.len(), expected.len(), "{text}\n{found:#?}");
    for (found, (beginning, part)) in found.iter().zip(expected) {
        assert!(
            found.starts_with(beginning) && found.contains(part),
            "{found}\nshould be {beginning} … {part}"
        );
    }
}

#[test]
fn what_is_right_is_left_alone() {
    let all = json!({
        "model": "opus", "fallbackModel": ["a"], "effortLevel": "low", "fastMode": true, "env": {"ANY": "x"},
        "permissions": {"allow": ["Bash(ls *)", "Read(src/**)", "mcp__memory", "mcp__memory__*"], "ask": ["Bash(git push *)"],
            "deny": ["Read(.env)"], "defaultMode": "plan", "additionalDirectories": ["x"],
            "disableBypassPermissionsMode": "disable"},
        "hooks": {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "/bin/guard"}]},
                                 {"matcher": "mcp__memory__.*", "hooks": [{"type": "command", "command": "/bin/guard", "if": "mcp__memory__x"}]}],
            "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "no-such-program"}]}]},
        "modelPricing": {"m": {"input": 1, "output": 2}}, "retry": {"maxRetries": 3}, "loop": {"speculation": true},
        "fileHistory": {"maxFileBytes": 3}, "enabledPlugins": {"a@b": true}, "agentsMd": "both",
        "sandbox": {"enabled": true, "filesystem": {"denyRead": ["x"]}, "network": {"allowedDomains": ["x.org"]},
            "credentials": {"files": ["x"]}, "ignoreViolations": {"anything": ["x"]}},
    });
    let ground = Ground::default().with("/bin/guard", true, "#!/bin/sh\nexit 2\n");
    let rules = "needless";
    let found = findings_on(&ground, &[(&Source::User, "u", &all.to_string())], &[]);
    assert!(found.iter().all(|found| found.contains(rules)) && found.len() == 1, "{found:#?}");
}

#[test]
fn unknown_keys_are_told_with_what_was_meant_and_where() {
    check("{\n \"modle\": 1\n}", &[("warning unknown-key u:2 `modle`", "`model`")]);
    check(
        "{\"permissions\": {\n\"alow\": []}}",
        &[("warning unknown-key u:2 `permissions.alow`", "`allow`")],
    );
    check("{\"defaultMode\": \"plan\"}", &[("warning unknown-key u:1", "`permissions.defaultMode`")]);
    check(
        "{\"modelPricing\": {\"a.b\": {\"input\": 1, \"output\": 1, \"cacheWrites\": 1}}}",
        &[("warning unknown-key u:1 `modelPricing.a.b.cacheWrites`", "is no key")],
    );
    check(
        "{\"sandbox\": {\"network\": {\"allowDomains\": []}}}",
        &[("warning unknown-key", "`allowedDomains`")],
    );
    check(
        "{\"tui\": \"dark\", \"spinnerVerbs\": {}}",
        &[("note key-without-effect", "tui"), ("note", "spinnerVerbs")],
    );
    check("{\"zzz\": 1}", &[("warning unknown-key u:1 `zzz` is no key that is known", "known")]);
}

#[test]
fn what_cannot_be_read_is_told_with_its_line() {
    check("{\n\n\"a\" 1}", &[("error broken-file u:3", "nothing of this file counts")]);
    check("[]", &[("error broken-file u:", "must be a JSON object")]);
    check("{\n\"model\": 1}", &[("error wrong-value u:2", "must be a text")]);
    check(
        "{\"permissions\": {\"allow\": [\"Bash\",\n\"Bash(\"]}}",
        &[("warning dead-rule u:2", "closing ')'")],
    );
}

#[test]
fn rules_that_never_decide_are_told() {
    let rules = |allow: &[&str], ask: &[&str], deny: &[&str]| {
        json!({"permissions": {"allow": allow, "ask": ask, "deny": deny}}).to_string()
    };
    check(
        &rules(&["Bash(git log *)"], &[], &["Bash(git *)"]),
        &[("warning shadowed-rule", "`Bash(git *)` in deny")],
    );
    check(&rules(&["Edit(src/**)"], &["Edit"], &[]), &[("warning shadowed-rule", "`Edit` in ask")]);
    check(&rules(&[], &["WebFetch"], &["WebFetch"]), &[("warning shadowed-rule", "in deny")]);
    check(&rules(&["Bash(git *)", "Bash(git log *)"], &[], &[]), &[("warning shadowed-rule", "needless")]);
    check(&rules(&["Bash(a)", "Bash(a)"], &[], &[]), &[("warning shadowed-rule", "needless")]);
    // Some commands are allowed by an exact rule only.
    check(&rules(&["Bash(find *)", "Bash(find . -delete)"], &[], &[]), &[]);
    check(&rules(&["Bash(git *)"], &[], &["Bash(git push *)"]), &[]);
    let unknown = [("warning dead-rule", "is never looked at"), ("warning dead-rule", "`Bash`")];
    check(&rules(&["Bsh(ls)"], &[], &[]), &unknown);
    check(&rules(&["Bsh"], &[], &[]), &[("warning dead-rule", "`Bash`")]);
    check(&rules(&[], &[], &["Bsh"]), &[("warning dead-rule", "tool there is not")]);
    check(&rules(&["Write(src/**)"], &[], &[]), &[("warning dead-rule", "Edit(src/**)")]);
    check(&rules(&["mcp__gone__x"], &[], &[]), &[("note dead-rule", "`gone`")]);
    check(&rules(&["mcp__plugin_kit_files"], &[], &[]), &[]);
}

#[test]
fn a_rule_of_another_file_is_named_with_its_place() {
    let one = "{\"permissions\": {\"allow\": [\n\"Bash(make)\"]}}";
    let two = "{\"permissions\":\n {\"deny\": [\n\"Bash(make *)\"]}}";
    let found = findings_on(
        &Ground::default(),
        &[(&Source::User, "user.json", one), (&Source::Project, "project.json", two)],
        &[],
    );
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("warning shadowed-rule user.json:2"), "{}", found[0]);
    assert!(found[0].contains("project settings, project.json:3"), "{}", found[0]);
}

#[test]
fn hooks_that_are_never_called_are_told() {
    let hook = |event: &str, matcher: &str, more: &str| {
        format!(
            "{{\"hooks\": {{\n\"{event}\": [{{\"matcher\": \"{matcher}\",\n\"hooks\": [{{\"type\": \"command\", \"command\": \"true\"{more}}}]}}]}}}}"
        )
    };
    check(
        &hook("PreToolUse", "bash", ""),
        &[("warning dead-hook u:2 `hooks.PreToolUse[0].matcher`", "`Bash`")],
    );
    check(&hook("PreToolUse", "Bash|Edti", ""), &[("warning dead-hook u:2", "`Edit`")]);
    check(&hook("PreToolUse", "mcp__memory", ""), &[("warning dead-hook", "mcp__memory__.*")]);
    check(&hook("PreToolUse", "mcp__memory__read", ""), &[]);
    check(&hook("PreToolUse", "mcp__gone__read", ""), &[("note dead-hook", "`gone`")]);
    check(&hook("PreToolUse", "^Bassh$", ""), &[("warning dead-hook", "^Bassh$")]);
    check(&hook("PreToolUse", "Note.*", ""), &[]);
    check(&hook("SessionStart", "start", ""), &[("warning dead-hook", "never comes")]);
    check(&hook("PreCompact", "automatic|manual", ""), &[("warning dead-hook", "`automatic`")]);
    check(&hook("SubagentStop", "reviewer", ""), &[("warning dead-hook", "`reviewer`")]);
    check(&hook("TeammateIdle", "", ""), &[("warning dead-hook u:2", "never comes here")]);
    for (event, fits, fails) in [
        ("Notification", "idle_prompt|permission_prompt", "auth_success"),
        ("StopFailure", "rate_limit|max_output_tokens", "ratelimit"),
        ("InstructionsLoaded", "session_start", "start"),
        ("ConfigChange", "project_settings", "skills"),
        ("DirectoryAdded", "slash_.*", "^startup$"),
        ("PreToolUse", "*", " | "),
    ] {
        check(&hook(event, fits, ""), &[]);
        check(&hook(event, fails, ""), &[("warning dead-hook u:2", "")]);
    }
    check(&hook("Stop", "", ", \"if\": \"Bash(ls)\""), &[("warning dead-hook", "this event is about none")]);
    check(
        &hook("PreTooluse", "", ""),
        &[("warning dead-hook", "no event we know"), ("warning dead-hook", "`PreToolUse`")],
    );
    check(
        &hook("PreToolUse", "Bash", ", \"if\": \"Edit(src/**)\""),
        &[("warning dead-hook u:3", "is about Edit")],
    );
    check(&hook("PreToolUse", "Bash", ", \"if\": \"Bash(\""), &[("warning dead-hook", "no rule")]);
    let off = hook("PreToolUse", "", "").replacen('{', "{\"disableAllHooks\": true, ", 1);
    check(&off, &[("warning dead-hook u:1 `hooks`", "disableAllHooks")]);
}

#[test]
fn hooks_that_hold_nothing_back_are_told() {
    let hook = |hook: &str| {
        format!(
            "{{\"hooks\": {{\"PreToolUse\": [{{\"matcher\": \"Bash\", \"hooks\": [\n{{\"type\": \"command\", {hook}}}]}}]}}}}"
        )
    };
    let ground = Ground::default()
        .with("/bin/python3", true, "")
        .with("/w/ok.sh", true, "#!/bin/sh\n[ -f x ] || exit 1\nexit 2\n")
        .with("/w/weak.sh", true, "#!/bin/sh\ngrep -q rm && exit 1\nexit 0\n")
        .with("/w/plain.sh", false, "exit 2")
        .with("/w/weak.py", false, "import sys\nsys.exit(1)");
    let (open, at) = ("warning hook-fails-open u:2", "passes");
    for (said, part) in [
        ("\"command\": \"./gone.sh\"", Some(at)),
        ("\"command\": \"$CLAUDE_PROJECT_DIR/gone.sh\"", Some(at)),
        ("\"command\": \"\\\"$CLAUDE_PROJECT_DIR\\\"/gone.sh now\"", Some(at)),
        ("\"command\": \"${CLAUDE_PROJECT_DIR}/ok.sh\"", None),
        ("\"command\": \"./ok.sh\"", None),
        ("\"command\": \"./plain.sh\"", Some("chmod +x")),
        ("\"command\": \"./weak.sh\"", Some("only 2 blocks")),
        ("\"command\": \"python3 weak.py\"", Some("only 2 blocks")),
        ("\"command\": \"python3 gone.py\"", Some(at)),
        ("\"command\": \"python3\", \"args\": [\"gone.py\"]", Some(at)),
        ("\"command\": \"no-such\"", Some("`no-such`")),
        ("\"command\": \"jq -e .x || exit 1\"", Some("only 2 blocks")),
        ("\"command\": \"jq -e .x || exit 2\"", None),
        ("\"command\": \"x=$(cat); echo $x\"", None),
        ("\"command\": \"./ok.sh\", \"async\": true", Some("not waited for")),
    ] {
        let expected: Vec<(&str, &str)> = part.map(|part| (open, part)).into_iter().collect();
        check_on(&ground, &hook(said), &expected);
    }
}

#[test]
fn hooks_that_reach_nobody_are_told() {
    let hook = |event: &str, hook: &str, more: &str| {
        format!("{{{more}\"hooks\": {{\"{event}\": [{{\"hooks\": [\n{{{hook}}}]}}]}}}}")
    };
    let http = "\"type\": \"http\", \"url\": \"https://a.example/told\"";
    let only = "\"allowedHttpHookUrls\": [\"https://b.example/*\"], ";
    check(&hook("Stop", http, ""), &[]);
    check(&hook("Stop", http, &only.replace('b', "a")), &[]);
    check(&hook("Stop", http, only), &[("warning dead-hook u:2", "allowedHttpHookUrls")]);
    check(&hook("PreToolUse", http, only), &[("warning hook-fails-open u:2", "allowedHttpHookUrls")]);
    // Whoever says which addresses may be asked.
    let (users, projects) = (hook("Stop", http, ""), format!("{{{}}}", only.trim_end_matches(", ")));
    let both = [(&Source::User, "u", users.as_str()), (&Source::Project, "p", projects.as_str())];
    assert_eq!(findings_on(&Ground::default(), &both, &[]).len(), 1);
    let server = |name: &str| format!("\"type\": \"mcp_tool\", \"server\": \"{name}\", \"tool\": \"add\"");
    check(&hook("Stop", &server("memory"), ""), &[]);
    check(&hook("Stop", &server("gone"), ""), &[("note dead-hook u:2", "`gone`")]);
}

#[test]
fn agents_without_tools_are_told() {
    let check = |tools: &str, expected: &[&str]| {
        let ground = Ground::default().with("/w/.claude/agents/a.md", false, "---\nname: a\ntools: x\n---\n");
        let found = findings_on(&ground, &[], &[("a", tools)]);
        assert_eq!(found.len(), expected.len(), "{tools}: {found:#?}");
        for (found, beginning) in found.iter().zip(expected) {
            assert!(found.starts_with(beginning), "{found}");
            assert!(found.contains("/w/.claude/agents/a.md:3"), "{found}");
        }
    };
    check("Read,Grep", &[]);
    check("Read,Greb", &["warning agent-tools"]);
    check("Greb", &["warning agent-tools", "error agent-tools"]);
    check("mcp__memory__*", &[]);
    check("mcp__memory", &[]);
    check("mcp__gone", &["warning agent-tools", "error agent-tools"]);
    check("Bash(git *)", &[]);
}

#[test]
fn whatever_a_file_holds_it_is_looked_through() {
    for text in [
        "{\"hooks\": 3}",
        "{\"hooks\": {\"Stop\": 3}}",
        "{\"hooks\": {\"Stop\": [3, {\"hooks\": [3]}]}}",
        "",
        "3",
        "{\"permissions\": 3}",
        "{\"modelPricing\": {\"a\": 3}}",
        "{\"permissions\": {\"allow\": [3, null]}}",
    ] {
        findings_on(&Ground::default(), &[(&Source::User, "u", text)], &[]);
    }
}
