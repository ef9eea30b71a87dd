use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use super::*;
use crate::hooks::callback::{CallbackError, HookCall};

fn read(hooks: &Value) -> (HookConfig, Vec<Problem>) {
    let mut config = HookConfig::default();
    let problems = config.add_settings(hooks, &Source::User);
    (config, problems)
}

fn labels(entries: &[Arc<Entry>]) -> Vec<&str> {
    entries.iter().map(|entry| entry.label()).collect()
}

struct Nothing;

impl HookCallback for Nothing {
    fn call<'a>(&'a self, _: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        async { Ok(json!({})) }.boxed()
    }
}

#[test]
fn a_whole_settings_object_becomes_entries() {
    let (config, problems) = read(&json!({
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [
                {"type": "command", "command": "check.sh", "timeout": 2.5, "if": "Bash(rm *)", "statusMessage": "Checking"},
                {"type": "command", "command": "${CLAUDE_PROJECT_DIR}/x", "args": ["--a", "b c"], "async": true}]},
            {"hooks": [{"type": "command", "command": "log", "shell": "bash", "asyncRewake": true}]}],
        "Stop": [{"matcher": null, "hooks": [{"type": "command", "command": "tests"}]}],
    }));
    assert_eq!(problems, []);
    let entries: Vec<&Entry> = config.entries().collect();
    assert_eq!(entries.len(), 4);
    let command = |at: usize| match &entries[at].hook {
        Hook::Command(command) => command,
        _ => panic!("not a command"),
    };
    assert_eq!(entries[0].timeout, Some(Duration::from_millis(2_500)));
    assert_eq!(entries[0].condition.as_deref(), Some("Bash(rm *)"));
    assert_eq!(entries[0].status_message.as_deref(), Some("Checking"));
    assert_eq!(
        (command(0).shell, command(0).waiting, &command(0).args),
        (Shell::Sh, Waiting::UntilDone, &None)
    );
    assert_eq!(command(1).args.as_deref(), Some(&["--a".to_owned(), "b c".to_owned()][..]));
    assert_eq!(command(1).waiting, Waiting::Never);
    assert_eq!((command(2).shell, command(2).waiting), (Shell::Bash, Waiting::NeverButWakes));
    assert_eq!((entries[3].event, entries[3].source.clone()), (HookEvent::Stop, Source::User));
    assert!(config.listens(HookEvent::Stop) && !config.listens(HookEvent::PostToolUse));
}

/// What is wrong with a settings object, and how many hooks are left of it.
#[track_caller]
fn check(hooks: &Value, left: usize, expected: &[&str]) {
    let (config, problems) = read(hooks);
    let told: Vec<String> = problems
        .iter()
        .map(|problem| match problem.severity {
            Severity::Error => format!("error: {problem}"),
            Severity::Warning => format!("warning: {problem}"),
        })
        .collect();
    assert_eq!(told, expected, "{hooks}");
    assert_eq!(config.entries().count(), left, "{hooks}");
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let good = json!({"type": "command", "command": "x"});
    check(&json!(null), 0, &[]);
    check(&json!([]), 0, &["error: `hooks` must be an object with the names of events"]);
    check(
        &json!({"BeforeTool": [{"hooks": [good]}], "Stop": [{"hooks": [good]}]}),
        1,
        &["warning: `hooks.BeforeTool` is no event we know: its hooks are never called"],
    );
    check(
        &json!({"Stop": {"hooks": [good]}}),
        0,
        &["error: `hooks.Stop` must be a list of objects with `matcher` and `hooks`"],
    );
    check(
        &json!({"Stop": ["x"]}),
        0,
        &["error: `hooks.Stop[0]` must be an object with `matcher` and `hooks`"],
    );
    check(&json!({"Stop": [{}]}), 0, &["error: `hooks.Stop[0].hooks` must be a list of hooks"]);
    check(
        &json!({"Stop": [{"hooks": ["x", good]}]}),
        1,
        &["error: `hooks.Stop[0].hooks[0]` must be an object with `type` and `command`"],
    );
    check(
        &json!({"PreToolUse": [{"hooks": [good]}, {"matcher": 1, "hooks": [good]}]}),
        1,
        &["error: `hooks.PreToolUse[1].matcher` must be a text"],
    );
    check(
        &json!({"Stop": [{"matcher": "Bash", "hooks": [good]}]}),
        1,
        &["warning: `hooks.Stop[0].matcher` has no effect: this event has nothing to match"],
    );
    check(
        &json!({"Stop": [{"hooks": [{"command": "x"}]}]}),
        0,
        &[
            "error: `hooks.Stop[0].hooks[0].type` is missing; it must be one of `command`, `http`, `prompt`, `agent`, `mcp_tool`",
        ],
    );
    check(
        &json!({"Stop": [{"hooks": [{"type": "shell", "command": "x"}]}]}),
        0,
        &[
            "error: `hooks.Stop[0].hooks[0].type` is `shell`; it must be one of `command`, `http`, `prompt`, `agent`, `mcp_tool`",
        ],
    );
    check(&json!({"Stop": [{"hooks": [{"type": "agent", "prompt": "x"}]}]}), 1, &[]);
    check(
        &json!({"Stop": [{"hooks": [{"type": "http", "url": "x"}, {"type": "prompt"}, {"type": "mcp_tool", "server": "s"},
            {"type": "prompt", "prompt": "x", "args": []}]}]}),
        1,
        &[
            "error: `hooks.Stop[0].hooks[0].url` must begin with https:// or http://",
            "error: `hooks.Stop[0].hooks[1].prompt` is missing or empty",
            "error: `hooks.Stop[0].hooks[2].tool` is missing or empty",
            "warning: `hooks.Stop[0].hooks[3].args` is no field of a prompt hook",
        ],
    );
    check(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": " "}]}]}),
        0,
        &["error: `hooks.Stop[0].hooks[0].command` is missing or empty"],
    );
    check(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "a\0b"}]}]}),
        0,
        &["error: `hooks.Stop[0].hooks[0].command` holds a zero byte, which no program can be given"],
    );
    // Two mistakes in one hook are both named.
    check(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "args": "y", "timeout": "5"}]}]}),
        0,
        &[
            "error: `hooks.Stop[0].hooks[0].args` must be a list of texts",
            "error: `hooks.Stop[0].hooks[0].timeout` must be a number of seconds above zero",
        ],
    );
    for timeout in [json!(0), json!(-1)] {
        check(
            &json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": timeout}]}]}),
            0,
            &["error: `hooks.Stop[0].hooks[0].timeout` must be a number of seconds above zero"],
        );
    }
    check(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 1e300}]}]}),
        1,
        &["warning: `hooks.Stop[0].hooks[0].timeout` is more than a day; 86400 seconds are used"],
    );
    check(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "timout": 5, "if": "Bash"}]}]}),
        1,
        &[
            "warning: `hooks.Stop[0].hooks[0].timout` is no field of a command hook",
            "warning: `hooks.Stop[0].hooks[0].if` can only be met by a call of a tool, and this event is about none: the hook is never called",
        ],
    );
    check(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "shell": "powershell"}]}]}),
        0,
        &["error: `hooks.Stop[0].hooks[0].shell` must be `bash`"],
    );
}

#[test]
fn an_unusable_pattern_is_named() {
    let (config, problems) = read(&json!({"PreToolUse": [{"matcher": "Bash(", "hooks": []}]}));
    assert_eq!(config.entries().count(), 0);
    assert_eq!(problems[0].place, "hooks.PreToolUse[0].matcher");
    assert_eq!(problems[0].severity, Severity::Error);
}

#[test]
fn sources_add_up_and_the_same_command_runs_once() {
    let group = |matcher: &str, command: &str| json!({"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]});
    let plugin =
        |root: &str| Source::Plugin { root: root.into(), data: "/data".into(), options: Default::default() };
    let mut config = HookConfig::default();
    for (settings, source) in [
        (group("Bash", "one"), Source::User),
        (group("Bash|Edit", "two"), Source::Project),
        (group("*", "one"), Source::Local),
        (group("Edit", "three"), Source::Flag),
        (group("Bash", "run"), plugin("/a")),
        (group("Bash", "run"), plugin("/b")),
        (group("Bash", "run"), plugin("/b")),
    ] {
        assert_eq!(config.add_settings(&settings, &source), []);
    }
    let callback: Arc<dyn HookCallback> = Arc::new(Nothing);
    for _ in 0..2 {
        config
            .add_callback(
                HookEvent::PreToolUse,
                Some("Bash"),
                Arc::clone(&callback),
                CallbackTerms::default(),
            )
            .unwrap();
    }
    let matching = |subject| config.matching(HookEvent::PreToolUse, Some(subject), |_| true);
    assert_eq!(labels(&matching("Bash")), ["one", "two", "run", "run", "callback", "callback"]);
    assert_eq!(matching("Bash")[0].source, Source::User);
    assert_eq!(labels(&matching("Edit")), ["two", "one", "three"]);
    assert_eq!(labels(&matching("Read")), ["one"]);
    assert_eq!(labels(&config.matching(HookEvent::Stop, None, |_| true)), [""; 0]);
}

#[test]
fn a_condition_is_asked_and_counts_only_for_calls() {
    let hook = json!([{"hooks": [{"type": "command", "command": "x", "if": "Bash(git *)"}]}]);
    let (config, _) = read(&json!({"PreToolUse": hook, "Stop": hook}));
    let count = |event, met: bool| {
        let condition = |rule: &str| {
            assert_eq!(rule, "Bash(git *)");
            met
        };
        config.matching(event, Some("Bash"), condition).len()
    };
    assert_eq!(count(HookEvent::PreToolUse, true), 1);
    assert_eq!(count(HookEvent::PreToolUse, false), 0);
    assert_eq!(count(HookEvent::Stop, true), 0);
}

#[test]
fn time_limits_follow_the_event() {
    let limit = |event: HookEvent, timeout: Option<f64>| {
        let mut hook = json!({"type": "command", "command": "x"});
        if let Some(timeout) = timeout {
            hook["timeout"] = json!(timeout);
        }
        let (config, _) = read(&json!({event.name(): [{"hooks": [hook]}]}));
        let entries = config.matching(event, None, |_| true);
        entries[0].time_limit(time_together(event, &entries)).as_secs_f64()
    };
    assert_eq!(limit(HookEvent::PreToolUse, None), 600.0);
    assert_eq!(limit(HookEvent::PreToolUse, Some(3.0)), 3.0);
    assert_eq!(limit(HookEvent::UserPromptSubmit, None), 30.0);
    assert_eq!(limit(HookEvent::MessageDisplay, None), 10.0);
    assert_eq!(limit(HookEvent::SessionEnd, None), 1.5);
    assert_eq!(limit(HookEvent::SessionEnd, Some(0.5)), 0.5);
    assert_eq!(limit(HookEvent::SessionEnd, Some(20.0)), 20.0);
    assert_eq!(limit(HookEvent::SessionEnd, Some(90.0)), 60.0);

    let mut config = HookConfig::default();
    config
        .add_callback(HookEvent::UserPromptSubmit, None, Arc::new(Nothing), CallbackTerms::default())
        .unwrap();
    let entries = config.matching(HookEvent::UserPromptSubmit, None, |_| true);
    assert_eq!(entries[0].time_limit(None), Duration::from_secs(60));
}

#[test]
fn there_are_only_so_many_hooks() {
    let hook = json!({"type": "command", "command": "x"});
    let many = vec![hook; CONFIGURED_MAX + 5];
    let (mut config, problems) = read(&json!({"Stop": [{"hooks": many}]}));
    assert_eq!(config.entries().count(), CONFIGURED_MAX);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].place, format!("hooks.Stop[0].hooks[{CONFIGURED_MAX}]"));
    assert!(config.add_callback(HookEvent::Stop, None, Arc::new(Nothing), CallbackTerms::default()).is_err());
}

/// Every moment stands on the page of hooks with what its matchers look at and what can come there, every kind with its fields.
#[test]
fn the_page_of_hooks_says_what_there_is() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hooks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |name: &str| {
        let beginning = format!("| `{name}` |");
        let mut rows = page.lines().filter(|line| line.starts_with(&beginning));
        let row = rows.next().unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(rows.count(), 0, "{name} stands there twice");
        row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    for event in HookEvent::ALL {
        let matched_by = event.matched_by().map_or("–".to_owned(), |field| format!("`{field}`"));
        assert_eq!(row(event.name())[2], matched_by, "{}", event.name());
        for subject in event.subjects().into_iter().flatten() {
            assert!(page.contains(&format!("`{subject}`")), "{}: {subject}", event.name());
        }
    }
    for (kind, fields) in super::read::KINDS {
        let listed: Vec<String> =
            row(kind)[2].split(", ").map(|field| field.trim_matches('`').to_owned()).collect();
        assert!(
            listed.iter().all(|field| fields.contains(&field.as_str())) && listed.len() == fields.len(),
            "{kind}"
        );
    }
    for field in super::read::COMMON_FIELDS.iter().filter(|field| **field != "type") {
        assert!(page.contains(&format!("`{field}`")), "{field}");
    }
}
