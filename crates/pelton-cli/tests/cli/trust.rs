//! Trust in a directory, and rules that outlast the session.

use std::os::unix::fs::PermissionsExt;

use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};

const BROUGHT: &str = r#"{"permissions": {"allow": ["Bash(touch *)"]}, "env": {"COLOUR": "blue"},
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo stopped"}]}]}}"#;

fn touches() -> Script {
    Script::new().reply([tool("Bash", json!({"command": "touch made"}))]).reply([text("Done.")])
}

#[test]
fn a_directory_is_trusted_once_somebody_saw_what_it_adds() {
    let place = Place::new();
    place.put(".claude/settings.json", BROUGHT);
    place.put(".mcp.json", r#"{"mcpServers": {"tickets": {"command": "x"}}}"#);
    let state = place.config().join(".claude.json");
    std::fs::write(&state, "{\n  \"theme\": \"dark\", \"projects\": {\"/other\": {\"x\": 1}}\n}\n").unwrap();
    let said = place.pelton(["trust"]).run();
    for part in [
        "not trusted",
        "allow rule Bash(touch *)",
        "variable COLOUR",
        "hook at Stop: echo stopped",
        "server tickets",
        "Nothing was changed",
    ] {
        assert!(said.well().contains(part), "{part}: {}", said.out);
    }
    let ran = place.task(&model(touches()), ["go"]).run();
    assert!(!place.has("made") && ran.err.contains("not trusted"), "{ran:?}");
    assert!(place.pelton(["trust", "--yes"]).run().well().contains("is trusted from now on"));
    place.task(&model(touches()), ["go"]).run().well();
    assert!(place.has("made"));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&state).unwrap()).unwrap();
    assert_eq!(
        (&kept["theme"], &kept["projects"]["/other"]["x"]),
        (&json!("dark"), &json!(1)),
        "the rest stays"
    );
    assert!(place.config().join("backups").read_dir().unwrap().count() == 1);
    place.put(".mcp.json", r#"{"mcpServers": {"tickets": {"command": "x", "args": ["--all"]}}}"#);
    assert!(place.pelton(["trust"]).run().well().contains("server tickets, which has changed since"));
    place.pelton(["trust", "--yes"]).run().well();
    assert!(!place.pelton(["trust"]).run().well().contains("changed since"));
    place.pelton(["trust", "--revoke"]).run().well();
    assert!(place.pelton(["trust"]).run().well().contains("not trusted"));
}

/// A session that goes on has no more power than its directory has now: neither what was granted before, nor the mode that the directory had set
/// then, outlasts the trust in it; what it denies counts throughout.
#[test]
fn a_session_that_goes_on_has_the_power_that_its_directory_has_now() {
    let place = Place::new();
    place.put(
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(touch *)"], "deny": ["Bash(chmod *)"], "defaultMode": "acceptEdits"}}"#,
    );
    let script = || {
        let bash = |command: &str| tool("Bash", json!({"command": command}));
        let write = tool("Write", json!({"file_path": "written", "content": "x"}));
        Script::new().reply([bash("touch made"), bash("chmod +x a"), write]).reply([text("Done.")])
    };
    let goes_on = |words: &[&str], may: bool| {
        for file in ["made", "written"] {
            _ = std::fs::remove_file(place.work().join(file));
        }
        let ran = place.task(&model(script()), words.iter().copied().chain(["go"])).run();
        assert_eq!((place.has("made"), place.has("written")), (may, may), "{words:?}: {ran:?}");
        assert_eq!(ran.err.contains("not trusted"), !may, "{}", ran.err);
    };
    goes_on(&[], false);
    place.pelton(["trust", "--yes"]).run().well();
    goes_on(&["-c"], true);
    place.pelton(["trust", "--revoke"]).run().well();
    goes_on(&["-c"], false);
    place.pelton(["trust", "--yes"]).run().well();
    goes_on(&["-c"], true);
}

#[test]
fn nothing_of_a_directory_runs_git_before_it_is_trusted() {
    let place = Place::new();
    std::fs::create_dir_all(place.work().join(".git")).unwrap();
    place.put(".claude/settings.local.json", "{}");
    let programs = place.home().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let git = programs.join("git");
    std::fs::write(&git, format!("#!/bin/sh\ntouch {}/ran\n", place.home().display())).unwrap();
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let model = model(Script::new().reply([text("Hello.")]));
    place.task(&model, ["hi"]).env("PATH", &path).run().well();
    place.pelton(["trust"]).env("PATH", &path).run().well();
    assert!(!place.home().join("ran").exists());
}

/// A hook that answers every question with a rule for later.
fn always(place: &Place, destination: &str) {
    let update = json!({"type": "addRules", "behavior": "allow", "destination": destination,
        "rules": [{"toolName": "Bash", "ruleContent": "touch *"}]});
    let decision = json!({"behavior": "allow", "updatedPermissions": [update]});
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    let hook = json!({"type": "command", "command": format!("echo '{answer}'")});
    let settings = json!({"hooks": {"PermissionRequest": [{"hooks": [hook]}]}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
}

#[test]
fn pit_P3_always_is_kept_where_it_says_and_holds_in_the_next_session() {
    for (destination, file) in [
        ("localSettings", ".claude/settings.local.json"),
        ("userSettings", ""),
        ("projectSettings", ".claude/settings.json"),
    ] {
        let place = Place::new();
        always(&place, destination);
        let file = match file {
            "" => place.config().join("settings.json"),
            // What was there stays, comments included.
            file => place.put(file, "{\n  // ours\n  \"permissions\": {\"deny\": [\"Bash(rm *)\"]}\n}\n"),
        };
        place.task(&model(touches()), ["go"]).run().well();
        assert!(place.has("made"), "{destination}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"Bash(touch *)\""), "{destination}: {text}");
        assert!(
            destination == "userSettings" || text.contains("// ours") && text.contains("Bash(rm *)"),
            "{text}"
        );
        // Without the hook, by the rule alone; the project's rules count once it is trusted.
        std::fs::remove_file(place.work().join("made")).unwrap();
        if destination != "userSettings" {
            std::fs::remove_file(place.config().join("settings.json")).unwrap();
            place.pelton(["trust", "--yes"]).run().well();
        }
        place.task(&model(touches()), ["go"]).run().well();
        assert!(place.has("made"), "{destination}");
    }
}

#[test]
fn a_rule_that_cannot_be_kept_holds_for_the_session_and_nothing_is_written_through_a_link() {
    let place = Place::new();
    always(&place, "localSettings");
    let elsewhere = place.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.work().join(".claude")).unwrap();
    let ran = place.task(&model(touches()), ["go"]).run();
    assert!(place.has("made") && ran.err.contains("not kept") && ran.err.contains("is a link"), "{ran:?}");
    assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
    // Nor is a file replaced that nobody can read.
    let place = Place::new();
    always(&place, "localSettings");
    place.put(".claude/settings.local.json", "{ \"permissions\": ");
    place.task(&model(touches()), ["go"]).run();
    assert_eq!(place.read(".claude/settings.local.json"), "{ \"permissions\": ");
}

/// What agents of a further directory would run counts once that directory is trusted: trust in the one beside it is no trust in it.
#[test]
fn agents_of_a_further_directory_run_nothing_before_it_is_trusted() {
    let place = Place::new();
    let other = place.temp().join("other");
    std::fs::create_dir_all(other.join(".claude/agents")).unwrap();
    let agent = "---\nname: helper\ndescription: d\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: \"touch ran\"\nmcpServers:\n  - s:\n      command: sh\n      args: [\"-c\", \"touch served\"]\n---\nYou help.\n";
    std::fs::write(other.join(".claude/agents/helper.md"), agent).unwrap();
    place.pelton(["trust", "--yes"]).run().well();
    let runs = |expected: bool| {
        let call = tool("Agent", json!({"subagent_type": "helper", "description": "d", "prompt": "p"}));
        let script = Script::new().reply([call]).step(Step::reply([text("Done.")]).always());
        let ran = place.task(&model(script), ["go", "--add-dir", other.to_str().unwrap()]).run();
        assert_eq!(ran.out, "Done.\n", "{ran:?}");
        assert_eq!((place.has("ran"), place.has("served")), (expected, expected));
    };
    runs(false);
    place.pelton(["trust", "--yes"]).current_dir(&other).run().well();
    runs(true);
}

/// Whether a user's plugins count is for the user to say: one may be a guard.
#[test]
fn no_variable_of_a_repository_puts_a_guard_of_its_user_aside() {
    let place = Place::new();
    let guard = place.home().join("shop/guard/hooks");
    std::fs::create_dir_all(&guard).unwrap();
    let refuses = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}});
    std::fs::write(guard.join("hooks.json"), refuses.to_string()).unwrap();
    let list = place.home().join("shop/.claude-plugin");
    std::fs::create_dir_all(&list).unwrap();
    let listed = json!({"name": "shop", "plugins": [{"name": "guard", "source": "./guard"}]});
    std::fs::write(list.join("marketplace.json"), listed.to_string()).unwrap();
    let shop = json!({"shop": {"source": {"source": "directory", "path": place.home().join("shop")}}});
    let users = json!({"enabledPlugins": {"guard@shop": true}, "extraKnownMarketplaces": shop, "permissions": {"allow": ["Bash(touch *)"]}});
    std::fs::write(place.config().join("settings.json"), users.to_string()).unwrap();
    for name in ["CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE", "claude_code_simple"] {
        place.put(".claude/settings.json", &json!({"env": {name: "1"}}).to_string());
        let ran = place.task(&model(touches()), ["go"]).run();
        assert!(ran.code == Some(0) && ran.err.contains(name), "{name}: {ran:?}");
        assert!(!place.has("made"), "{name}");
    }
    // Who says it for themselves gets it.
    let ran = place.task(&model(touches()), ["go"]).env("CLAUDE_CODE_SAFE_MODE", "1").run();
    assert!(place.has("made"), "{ran:?}");
}

/// Servers that an agent brings are a project's like those of its `.mcp.json`: they are not told who pays.
#[test]
fn an_agents_own_server_is_not_told_the_key_of_whoever_pays() {
    let place = Place::new();
    let agent = "---\nname: helper\ndescription: d\nmcpServers:\n  - s:\n      command: sh\n      args: [\"-c\", \"printf %s '${ANTHROPIC_API_KEY} ${COLOUR}' > told\"]\n---\nYou help.\n";
    place.put(".claude/agents/helper.md", agent);
    place.pelton(["trust", "--yes"]).run().well();
    let call = tool("Agent", json!({"subagent_type": "helper", "description": "d", "prompt": "p"}));
    let script = Script::new().reply([call]).step(Step::reply([text("Done.")]).always());
    let ran = place.task(&model(script), ["go"]).env("COLOUR", "blue").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.read("told"), "${ANTHROPIC_API_KEY} blue");
}
