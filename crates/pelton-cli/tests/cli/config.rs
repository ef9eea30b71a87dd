//! `pelton config`: what counts, where it stands, and what is wrong with it.

use serde_json::{Value, json};

use crate::place::{Commanded, Place};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A place where one of each is wrong.
fn faulty() -> Place {
    let place = Place::new();
    std::fs::write(
        place.config().join("settings.json"),
        "{\n  \"modle\": \"opus\",\n  \"model\": \"sonnet\"\n}\n",
    )
    .unwrap();
    place.put(
        ".claude/settings.json",
        "{\n  \"permissions\": {\n    \"allow\": [\"Bash(make test)\"],\n    \"deny\": [\"Bash(make *)\", \"Wrte\"]\n  },\n\
         \"hooks\": {\"PreToolUse\": [\n  {\"matcher\": \"bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"./guard.sh\"}]}\n]}}\n",
    );
    place.put(".claude/agents/look.md", "---\nname: look\ndescription: Looks.\ntools: Raed\n---\nYou look.");
    place.put(".claude/agents/none.md", "---\nname: none\n---\nYou are nothing.");
    place.put(".mcp.json", r#"{"mcpServers": {"far": {"url": "http://127.0.0.1:1/"}}}"#);
    place
}

#[test]
fn each_fault_is_named_with_its_file_and_line_and_nothing_is_run() {
    let place = faulty();
    let ran = place.pelton(["config", "check"]).run();
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
    let project = place.work().join(".claude/settings.json").display().to_string();
    let agents = place.work().join(".claude/agents").display().to_string();
    for (at, words) in [
        (format!("{}:2: warning", place.config().join("settings.json").display()), "did you mean `model`?"),
        (format!("{project}:3: warning"), "shadowed-rule"),
        (format!("{project}:4: warning"), "Wrte"),
        (format!("{project}:7: warning"), "did you mean `Bash`?"),
        (format!("{project}:7: warning"), "hook-fails-open"),
        (format!("{agents}/look.md:4: error"), "no tool at all"),
        (format!("{agents}/look.md:4: warning"), "did you mean `Read`?"),
        (format!("{agents}/none.md:1: warning"), "no-agent"),
        (format!("{}: warning", place.work().join(".mcp.json").display()), "`far`"),
    ] {
        let found = ran.out.lines().any(|line| line.starts_with(&at) && line.contains(words));
        assert!(found, "{at} … {words} is missing in:\n{}", ran.out);
    }
    assert!(ran.out.ends_with("1 error, 8 warnings\n"), "{}", ran.out);

    let ran = place.pelton(["config", "check", "--json"]).run();
    assert_eq!(ran.code, Some(1));
    let findings = json_of(&ran.out)["findings"].as_array().unwrap().clone();
    assert_eq!(findings.len(), 9);
    assert_eq!(findings[0]["kind"], "unknown-key");
    assert_eq!((&findings[0]["line"], &findings[0]["severity"]), (&json!(2), &json!("warning")));
}

#[test]
fn where_nothing_is_wrong_that_is_said() {
    let place = Place::new();
    place.put(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(ls *)"]}, "voice": true}"#);
    let ran = place.pelton(["config", "check"]).run();
    assert!(ran.well().ends_with("1 note\n"), "{}", ran.out);
    assert_eq!(
        place.pelton(["config", "check", "--setting-sources", "user"]).run().well(),
        "Nothing is wrong.\n"
    );
    place.put(".claude/settings.json", "{");
    let ran = place.pelton(["config", "check"]).run();
    assert!(ran.code == Some(1) && ran.out.contains("settings.json:1: error"), "{ran:?}");
    place.pelton(["config", "check", "surprise"]).run().failed(1, &["surprise"]);
}

#[test]
fn every_value_is_shown_with_where_it_stands_and_why_it_does_not_count() {
    let place = Place::new();
    let users = "{\n \"model\": \"sonnet\",\n \"env\": {\"A\": \"1\", \"ANTHROPIC_API_KEY\": \"sk-secret\"},\n \"permissions\": {\"deny\": [\"WebFetch\"]}}";
    std::fs::write(place.config().join("settings.json"), users).unwrap();
    place.put(
        ".claude/settings.json",
        "{\"model\": \"haiku\",\n\"env\": {\"A\": \"2\"},\n\"permissions\": {\"allow\": [\n\"Bash(make)\"], \"deny\": [\"Bash(rm *)\"]}}",
    );
    let shown = |words: &[&str]| -> Vec<Value> {
        let ran =
            place.pelton(["config", "show", "--effective", "--json"].iter().chain(words).copied()).run();
        assert!(!ran.out.contains("sk-secret"), "{}", ran.out);
        json_of(ran.well())["settings"].as_array().unwrap().clone()
    };
    let told = |settings: &[Value], used: bool| -> Vec<String> {
        let of = |setting: &&Value| setting["used"] == used;
        let line = |setting: &Value| {
            format!("{} {} {} {}", setting["key"], setting["value"], setting["layer"], setting["line"])
        };
        settings.iter().filter(of).map(line).collect()
    };
    let before = shown(&[]);
    assert_eq!(
        told(&before, true),
        [
            "\"env.A\" \"2\" \"project\" 2",
            "\"env.ANTHROPIC_API_KEY\" \"[redacted]\" \"user\" 3",
            "\"model\" \"haiku\" \"project\" 1",
            "\"permissions.deny\" \"WebFetch\" \"user\" 4",
            "\"permissions.deny\" \"Bash(rm *)\" \"project\" 4",
        ]
    );
    assert_eq!(
        told(&before, false),
        [
            "\"env.A\" \"1\" \"user\" 3",
            "\"model\" \"sonnet\" \"user\" 2",
            "\"permissions.allow\" \"Bash(make)\" \"project\" 4",
        ]
    );
    let not = before.iter().find(|setting| setting["key"] == "permissions.allow").unwrap();
    assert!(not["reason"].as_str().unwrap().contains("not trusted"));
    place.pelton(["trust", "--yes"]).run().well();
    let flags = shown(&["--model", "opus", "--settings", r#"{"fastMode": true}"#]);
    let used = told(&flags, true);
    for expected in [
        "\"fastMode\" true \"command line\" 1",
        "\"model\" \"opus\" \"command line\" null",
        "\"permissions.allow\" \"Bash(make)\" \"project\" 4",
    ] {
        assert!(used.iter().any(|line| line == expected), "{expected}: {used:#?}");
    }
    let text = place.pelton(["config", "show", "--effective"]).run();
    let line =
        format!("model = \"haiku\"  (project, {}:1)\n", place.work().join(".claude/settings.json").display());
    assert!(text.well().contains(&line), "{}", text.out);
    let files = place.pelton(["config", "show"]).run();
    assert_eq!(files.well().lines().count(), 3, "{}", files.out);
}

#[test]
fn what_is_said_to_count_is_what_a_session_goes_by() {
    let place = Place::new();
    std::fs::write(
        place.config().join("settings.json"),
        r#"{"permissions": {"defaultMode": "acceptEdits"}}"#,
    )
    .unwrap();
    place.put(
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(make:*)"], "ask": ["Bash(git push:*)"]}}"#,
    );
    for trusted in [false, true] {
        if trusted {
            place.pelton(["trust", "--yes"]).run().well();
        }
        let ran = place.pelton(["config", "show", "--effective", "--json"]).run();
        let settings = json_of(ran.well());
        let counts = settings["settings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["key"] == "permissions.allow" && one["used"] == true);
        assert_eq!(counts, trusted);
        let explained = place.pelton(["permissions", "explain", "--json", "make all"]).run();
        assert_eq!(json_of(&explained.out)["decision"] == "allow", trusted, "{explained:?}");
    }
}

#[test]
fn what_cannot_be_read_does_not_count_and_the_reason_is_its_own() {
    let place = Place::new();
    place.put(
        ".claude/settings.json",
        r#"{"model": 5, "permissions": {"deny": ["Read(", "WebFetch"]}, "hooks": {"Stop": [{"hooks": [{"type": "weird"}]}]}}"#,
    );
    let ran = place.pelton(["config", "show", "--effective", "--json"]).run();
    let settings = json_of(&ran.out)["settings"].as_array().unwrap().clone();
    let of = |key: &str, value: Value| {
        let found = settings.iter().find(|setting| setting["key"] == key && setting["value"] == value);
        found.unwrap_or_else(|| panic!("{key} {value}: {}", ran.out)).clone()
    };
    assert_eq!(of("permissions.deny", json!("WebFetch"))["used"], true);
    for (key, value, why) in [
        ("model", json!(5), "must be a text"),
        ("permissions.deny", json!("Read("), "is left out"),
        ("hooks.Stop", json!({"type": "weird"}), "it must be one of"),
    ] {
        let setting = of(key, value);
        assert_eq!(setting["used"], false, "{setting}");
        assert!(setting["reason"].as_str().unwrap().contains(why), "{setting}");
    }
}

/// Keys of other programs do nothing here, and are said to: by the check, and beside the values that count.
#[test]
fn keys_that_do_nothing_are_named_and_do_not_count() {
    let foreign = json!({
        "idleCompaction": true,
        "subagentStatusLine": {"type": "command", "command": "touch ran"},
        "worktree": {"bgIsolation": "worktree", "baseRef": "head"},
        "attribution": {"sessionUrl": true, "commit": "By us"},
        "otelHeadersHelper": "touch ran",
        "awsAuthRefresh": "touch ran",
        "proxyAuthHelper": "touch ran",
        "modle": "opus",
        "permissions": {"disableAutoMode": "disable"},
    });
    let nothing = [
        "attribution.sessionUrl",
        "awsAuthRefresh",
        "idleCompaction",
        "modle",
        "otelHeadersHelper",
        "permissions.disableAutoMode",
        "proxyAuthHelper",
        "subagentStatusLine",
        "worktree.bgIsolation",
    ];
    let place = Place::new();
    std::fs::write(place.config().join("settings.json"), foreign.to_string()).unwrap();
    let checked = json_of(&place.pelton(["config", "check", "--json"]).run().out);
    let found = checked["findings"].as_array().unwrap();
    for key in nothing {
        let kind = if key == "modle" { "unknown-key" } else { "key-without-effect" };
        let named = |finding: &&Value| finding["message"].as_str().unwrap().contains(&format!("`{key}`"));
        assert_eq!(
            found.iter().find(named).map(|finding| &finding["kind"]),
            Some(&json!(kind)),
            "{key}: {found:?}"
        );
    }
    let shown = json_of(place.pelton(["config", "show", "--effective", "--json"]).run().well());
    for setting in shown["settings"].as_array().unwrap() {
        let key = setting["key"].as_str().unwrap();
        let does_nothing = nothing.iter().any(|nothing| key.starts_with(nothing));
        assert_eq!(setting["used"], !does_nothing, "{setting}");
    }
    // And a session is as it is without them.
    let model = crate::place::model(pelton_testkit::Script::new().reply([pelton_testkit::text("Yes.")]));
    let ran = place.task(&model, ["hi"]).run();
    assert_eq!(ran.well(), "Yes.\n");
    assert!(!place.has("ran"));
}

/// A hook that ends with 1 holds nothing back, wherever that is written; agents that are always there can be waited for.
#[test]
fn hooks_that_hold_nothing_back_and_those_that_can_be_called_are_told_apart() {
    let place = Place::new();
    place.put("guard.sh", "#!/bin/sh\nexit 1\n");
    let check = |event: &str, matcher: &str, command: &str| {
        let hooks = json!({"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}});
        place.put(".claude/settings.json", &hooks.to_string());
        let found = json_of(&place.pelton(["config", "check", "--json"]).run().out)["findings"].clone();
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["kind"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for command in ["exit 1", "sh guard.sh", "sh -c 'exit 1'", "echo no; exit 1", "test -e x || exit 1"] {
        assert_eq!(check("PreToolUse", "Bash", command), ["hook-fails-open"], "{command}");
    }
    for command in ["exit 2", "echo no; exit 2", "true"] {
        assert!(check("PreToolUse", "Bash", command).is_empty(), "{command}");
    }
    for (event, matcher) in
        [("SubagentStart", "Explore|Plan"), ("SubagentStop", "general-purpose"), ("MessageDisplay", "")]
    {
        assert!(check(event, matcher, "true").is_empty(), "{event} {matcher}");
    }
    assert_eq!(check("SubagentStop", "Explorer", "true"), ["dead-hook"]);
    assert_eq!(check("TeammateIdle", "", "true"), ["dead-hook"]);
}

/// What would be passed over in silence, or does less than it says.
#[test]
fn mistakes_that_nothing_else_tells_of_are_named() {
    let found = |file: &str, text: &str| {
        let place = Place::new();
        place.put(file, text);
        place.pelton(["config", "check"]).run().out
    };
    let settings = ".claude/settings.json";
    for (file, text, parts) in [
        (
            settings,
            "{\"permissions\": {\"deny\": [\"Bash\"]},\n\"model\": \"opus\",\n\"permissions\": {\"allow\": [\"Read\"]}}",
            &["settings.json:3: error: `permissions` is written twice"][..],
        ),
        (settings, r#"{"permissions": {"deny": ["Read(/etc/passwd)"]}}"#, &["note", "write //etc/passwd"]),
        (settings, r#"{"permissions": {"allow": ["Bsh(ls)"]}}"#, &["did you mean `Bash`?"]),
        (
            settings,
            r#"{"allowManagedHooksOnly": true}"#,
            &["`allowManagedHooksOnly` is for managed settings"],
        ),
        (settings, r#"{"managedMcpServers": {}, "claudeMd": "x"}"#, &["`managedMcpServers`", "`claudeMd`"]),
        (
            settings,
            r#"{"agent": "nobody", "outputStyle": "odd"}"#,
            &["no agent `nobody`", "no output style `odd`"],
        ),
        (
            settings,
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true", "timeout": 60000}]}]}}"#,
            &["note", "1000 minutes"],
        ),
        (".mcp.json", r#"{"files": {"command": "sh"}}"#, &["has no object `mcpServers`"]),
        (
            ".mcp.json",
            r#"{"mcpServers": {"files": {"command": "no-such-program", "timout": 5}}}"#,
            &["cannot be started: there is no `no-such-program`", "a key that nobody knows: `timout`"],
        ),
    ] {
        let out = found(file, text);
        for part in parts {
            assert!(out.contains(part), "{part} is missing for {text}:\n{out}");
        }
    }
    for (file, text) in [
        (settings, r#"{"agent": "Explore", "outputStyle": "Concise"}"#),
        (settings, r#"{"permissions": {"deny": ["Read(//etc/passwd)", "Read(/src/**)"]}}"#),
        (".mcp.json", "{}"),
        (".mcp.json", r#"{"mcpServers": {"files": {"command": "sh", "args": [], "timeout": 5000}}}"#),
    ] {
        assert_eq!(found(file, text), "Nothing is wrong.\n", "{text}");
    }
}
