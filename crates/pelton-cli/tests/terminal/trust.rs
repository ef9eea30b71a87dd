//! What a repository supplies, and what is used of it before anybody trusts the directory: every row of the table, with somebody in
//! front who says no, without anybody, and once it is trusted, when all of it counts.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pelton_testkit::{Script, ScriptedModel, Step, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

const NOT_TRUSTED: &str = "not trusted";

/// One cell of the table's first column.
struct Row {
    what: &'static str,
    files: Value,
    /// Links in the directory, by name.
    links: &'static [(&'static str, &'static str)],
    is_tracked: bool,
    has_key: bool,
    /// What is typed.
    prompt: &'static str,
    /// What the model calls, with what.
    calls: Option<(&'static str, Value)>,
    /// Whether it was used, by what came of it.
    used: fn(&Place, &ScriptedModel) -> bool,
    with_somebody: bool,
    without_anybody: bool,
}

fn row(what: &'static str, files: Value, used: fn(&Place, &ScriptedModel) -> bool) -> Row {
    Row {
        what,
        files,
        links: &[],
        is_tracked: false,
        has_key: true,
        prompt: "go",
        calls: None,
        used,
        with_somebody: false,
        without_anybody: false,
    }
}

fn bash(command: &str) -> Option<(&'static str, Value)> {
    Some(("Bash", json!({"command": command, "description": "Do"})))
}

fn marked(place: &Place, _: &ScriptedModel) -> bool {
    place.has("mark")
}

/// The last result that the model was told.
fn told(model: &ScriptedModel, words: &str) -> bool {
    let requests = model.requests();
    let results = requests.iter().flat_map(|request| request.body["messages"].as_array().unwrap().clone());
    results
        .filter(|message| message["role"] == "user")
        .any(|message| message["content"].to_string().contains(words))
}

fn counted(_: &Place, model: &ScriptedModel) -> bool {
    told(model, "3 lines.txt")
}

fn rows() -> Vec<Row> {
    let settings = |settings: Value| json!({".claude/settings.json": settings});
    let hook = json!([{"hooks": [{"type": "command", "command": "touch mark"}]}]);
    let agent = |extras: &str| {
        let file = format!("---\nname: helper\ndescription: d\n{extras}---\nYou help.\n");
        json!({".claude/agents/helper.md": file})
    };
    let asks_agent =
        || Some(("Agent", json!({"subagent_type": "helper", "description": "d", "prompt": "p"})));
    let touches = json!({"permissions": {"allow": ["Bash(touch *)"]}});
    vec![
        // They only restrict, so what they forbid does not happen.
        Row {
            calls: bash("wc -l lines.txt"),
            with_somebody: true,
            without_anybody: true,
            ..row("deny rules", settings(json!({"permissions": {"deny": ["Bash(wc *)"]}})), |place, model| {
                !counted(place, model)
            })
        },
        Row {
            calls: bash("wc -l lines.txt"),
            with_somebody: true,
            without_anybody: true,
            ..row("ask rules", settings(json!({"permissions": {"ask": ["Bash(wc *)"]}})), |place, model| {
                !counted(place, model)
            })
        },
        Row { calls: bash("touch mark"), ..row("allow rules", settings(touches.clone()), marked) },
        Row {
            calls: Some(("Read", json!({"file_path": "@HOME@/beside/secret.txt"}))),
            ..row(
                "additional directories",
                settings(json!({"permissions": {"additionalDirectories": ["@HOME@/beside"]}})),
                |_, model| told(model, "between us"),
            )
        },
        Row {
            without_anybody: true,
            ..row("hooks", settings(json!({"hooks": {"UserPromptSubmit": hook}})), marked)
        },
        Row {
            calls: bash("printenv COLOUR"),
            without_anybody: true,
            ..row("env", settings(json!({"env": {"COLOUR": "periwinkle"}})), |_, model| {
                told(model, "periwinkle")
            })
        },
        Row {
            has_key: false,
            without_anybody: true,
            ..row("helper commands", settings(json!({"apiKeyHelper": "touch mark; echo sk-test"})), marked)
        },
        Row {
            calls: asks_agent(),
            ..row(
                "hooks of a sub-agent",
                agent(
                    "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: \"touch mark\"\n",
                ),
                marked,
            )
        },
        Row {
            calls: asks_agent(),
            ..row(
                "servers inside of a sub-agent",
                agent("mcpServers:\n  - inline:\n      command: touch\n      args: [\"mark\"]\n"),
                marked,
            )
        },
        Row {
            calls: bash("sleep 1"),
            ..row(
                "header helpers",
                json!({".mcp.json": {"mcpServers": {"s": {"type": "http", "url": "http://127.0.0.1:9/", "headersHelper": "touch mark"}}}}),
                marked,
            )
        },
        Row {
            calls: bash("sleep 1"),
            without_anybody: true,
            ..row(
                "servers of .mcp.json",
                json!({".mcp.json": {"mcpServers": {"s": {"command": "touch", "args": ["mark"]}}}}),
                marked,
            )
        },
        Row {
            calls: bash("sleep 1"),
            without_anybody: true,
            ..row(
                "servers of .mcp.json that the repository approves itself",
                json!({".mcp.json": {"mcpServers": {"s": {"command": "touch", "args": ["mark"]}}},
                    ".claude/settings.json": {"enableAllProjectMcpServers": true, "enabledMcpjsonServers": ["s"]}}),
                marked,
            )
        },
        Row {
            calls: bash("touch mark"),
            is_tracked: true,
            ..row("a local file that git tracks", json!({".claude/settings.local.json": touches}), marked)
        },
        Row {
            calls: bash("touch mark"),
            links: &[(".claude", "linked")],
            ..row(
                "a local file behind a linked directory",
                json!({"linked/settings.local.json": touches}),
                marked,
            )
        },
        row(
            "instructions from outside",
            json!({"CLAUDE.md": "Read this: @@HOME@/beside/secret.txt"}),
            |_, model| told(model, "between us"),
        ),
    ]
}

/// The directory of a row.
fn opened(row: &Row) -> Place {
    let place = Place::new();
    place.put("lines.txt", "1\n2\n3\n");
    let beside = place.home().join("beside");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("secret.txt"), "between us\n").unwrap();
    for (name, content) in row.files.as_object().unwrap() {
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        place.put(name, &filled(&place, &content));
    }
    for (name, target) in row.links {
        std::os::unix::fs::symlink(target, place.work().join(name)).unwrap();
    }
    if row.is_tracked {
        for words in ["init -q .", "add -f ."] {
            git(&place.work(), words);
        }
    }
    place
}

fn git(dir: &Path, words: &str) {
    assert!(Command::new("git").args(words.split(' ')).current_dir(dir).status().unwrap().success());
}

fn filled(place: &Place, text: &str) -> String {
    text.replace("@HOME@", place.home().canonicalize().unwrap().to_str().unwrap())
}

/// A model that makes the calls of a row.
fn calling(place: &Place, row: &Row) -> ScriptedModel {
    let script = match &row.calls {
        Some((name, input)) => {
            let input: Value = serde_json::from_str(&filled(place, &input.to_string())).unwrap();
            Script::new().reply([tool(*name, input)])
        }
        None => Script::new(),
    };
    model(script.step(Step::reply([text("Done.")]).always()))
}

fn with_key(command: &mut Command, row: &Row) {
    if !row.has_key {
        command.env_remove("ANTHROPIC_API_KEY");
    }
}

/// A session at a terminal in which the question about the directory gets this answer, and every other a no.
fn at_a_terminal(row: &Row, place: &Place, answer: &str) -> bool {
    at_a_terminal_in(&place.work(), row, place, answer)
}

fn at_a_terminal_in(dir: &Path, row: &Row, place: &Place, answer: &str) -> bool {
    const NO_KEY: &str = "error: no API key";
    let model = calling(place, row);
    let mut command = place.pelton([]);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8").current_dir(dir);
    with_key(&mut command, row);
    let mut seat = Seat::with(command, 120, 40);
    seat.until("it asks or begins", |seat| {
        seat.screen().contains("[y/N]") || seat.screen().contains("asks before changes")
    });
    if seat.screen().contains("[y/N]") {
        seat.types(answer);
    }
    seat.until("it begins, or cannot", |seat| {
        seat.screen().contains("asks before changes") || seat.screen().contains(NO_KEY)
    });
    if seat.screen().contains(NO_KEY) {
        return (row.used)(place, &model);
    }
    seat.types(&format!("{}\r", row.prompt));
    let began = Instant::now();
    loop {
        let screen = seat.screen();
        // A no that says nothing more ends the turn.
        if screen.contains("Done.") || screen.contains("interrupted: say what to do instead") {
            break;
        }
        if screen.contains("this once (y)") && !screen.contains("once you pause") {
            seat.types("n\r");
            seat.sees_no_more("this once (y)");
        }
        assert!(began.elapsed() < Duration::from_secs(90), "{}:\n{screen}", row.what);
        std::thread::sleep(Duration::from_millis(10));
    }
    (row.used)(place, &model)
}

/// A run without anybody in front. What it complained about comes with it.
fn without_anybody(row: &Row, place: &Place, words: &[&str]) -> (bool, String) {
    let model = calling(place, row);
    let mut command = place.task(&model, std::iter::once("go").chain(words.iter().copied()));
    with_key(&mut command, row);
    let ran = command.run();
    ((row.used)(place, &model), ran.err)
}

#[test]
fn the_table_of_trust_holds_with_somebody_in_front_and_without() {
    for row in rows() {
        let name = row.what;
        let place = opened(&row);
        assert_eq!(
            at_a_terminal(&row, &place, "n\r"),
            row.with_somebody,
            "{name}, with somebody who said no"
        );
        let place = opened(&row);
        let (used, complaint) = without_anybody(&row, &place, &[]);
        assert_eq!(used, row.without_anybody, "{name}, without anybody: {complaint}");
        if matches!(name, "allow rules" | "additional directories") {
            let warnings = complaint.lines().filter(|line| line.contains(NOT_TRUSTED)).count();
            assert_eq!(warnings, 1, "{name}: one warning: {complaint}");
        }
        // The switches for machines that open what nobody has read.
        for switch in [&["--setting-sources", "user"][..], &["--bare"]] {
            let place = opened(&row);
            let (used, complaint) = without_anybody(&row, &place, switch);
            assert!(!used || name.ends_with("rules"), "{name}, with {switch:?}: {complaint}");
        }
        // Once somebody has said yes, all of it is used: what was held back is real.
        let place = opened(&row);
        assert!(at_a_terminal(&row, &place, "y\r"), "{name}, with somebody who said yes");
        let place = opened(&row);
        place.pelton(["trust", "--yes"]).run().well();
        assert!(without_anybody(&row, &place, &[]).0, "{name}, without anybody, trusted");
    }
}

#[test]
fn an_approval_of_a_server_is_for_what_it_is() {
    let named =
        |words: &str| json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", words]}}}).to_string();
    let row = Row {
        calls: bash("sleep 1"),
        ..row("a server", json!({".mcp.json": named("touch mark").as_str()}), marked)
    };
    let place = opened(&row);
    assert!(at_a_terminal(&row, &place, "y\r"));
    // As it is, it is started again without a question; as something else it is asked about again.
    std::fs::remove_file(place.work().join("mark")).unwrap();
    assert!(at_a_terminal(&row, &place, "n\r"), "nobody was asked");
    std::fs::remove_file(place.work().join("mark")).unwrap();
    place.put(".mcp.json", &named("touch mark; touch more"));
    assert!(!at_a_terminal(&row, &place, "n\r"), "it has changed");
    assert!(!place.has("more"));
    assert!(at_a_terminal(&row, &place, "y\r") && place.has("more"));
}

#[test]
fn whoever_wants_no_instructions_from_outside_is_asked_once() {
    let what = json!({"CLAUDE.md": "Read this: @@HOME@/beside/secret.txt"});
    let row = row("instructions from outside", what, |_, model| told(model, "between us"));
    let place = opened(&row);
    assert!(!at_a_terminal(&row, &place, "n\r"));
    let model = calling(&place, &row);
    let mut command = place.pelton([]);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let seat = Seat::with(command, 120, 40);
    seat.until("it asks or begins", |seat| {
        seat.screen().contains("[y/N]") || seat.screen().contains("asks before changes")
    });
    assert!(!seat.screen().contains("[y/N]"), "{}", seat.screen());
}

/// A plugin that lies in the directory changes with it: what it runs and allows itself counts as it was seen.
#[test]
fn a_plugin_that_lies_in_the_directory_is_asked_about_when_it_has_changed() {
    let hooks = |words: &str| {
        json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": words}]}]}})
            .to_string()
    };
    let files = json!({
        ".claude/settings.json": {"enabledPlugins": {"kit@m": true}, "extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": "./market"}}}},
        "market/.claude-plugin/marketplace.json": {"name": "m", "plugins": [{"name": "kit", "source": "./kit"}]},
        "market/kit/hooks/hooks.json": hooks("touch mark"),
    });
    let row = Row { calls: bash("sleep 1"), ..row("a plugin", files, marked) };
    let place = opened(&row);
    let runs = |answer: &str| {
        let _ = std::fs::remove_file(place.work().join("mark"));
        at_a_terminal(&row, &place, answer)
    };
    assert!(!runs("n\r"));
    assert!(runs("y\r"));
    assert!(runs("n\r"), "nobody was asked");
    place.put("market/kit/hooks/hooks.json", &hooks("touch mark; touch more"));
    let said = place.pelton(["trust"]).run();
    assert!(said.out.contains("plugins.kit@m.hooks") && said.out.contains("touch more"), "{}", said.out);
    assert!(!runs("n\r") && !place.has("more"), "it has changed");
    assert!(runs("y\r") && place.has("more"));
    // A server and programs that came since are no more than that, and leave what was seen.
    place.put("market/kit/.mcp.json", r#"{"mcpServers": {"s": {"command": "touch", "args": ["served"]}}}"#);
    let shadow = place.put("market/kit/bin/sleep", "#!/bin/sh\ntouch shadowed\n");
    std::fs::set_permissions(shadow, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(runs("n\r") && !place.has("served") && !place.has("shadowed"));
    assert!(runs("y\r") && place.has("served") && place.has("shadowed"));
}

#[test]
fn a_skill_of_a_plugin_in_the_directory_allows_itself_what_was_seen() {
    let skill = |rules: &str| format!("---\ndescription: d\nallowed-tools: {rules}\n---\nGo on.\n");
    let files = json!({
        ".claude/settings.json": {"enabledPlugins": {"kit@m": true}, "extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": "./market"}}}},
        "market/.claude-plugin/marketplace.json": {"name": "m", "plugins": [{"name": "kit", "source": "./kit"}]},
        "market/kit/skills/evil/SKILL.md": skill("Bash(true *)"),
    });
    let row =
        Row { calls: bash("touch mark"), prompt: "/kit:evil", ..row("a skill of a plugin", files, marked) };
    let place = opened(&row);
    assert!(!at_a_terminal(&row, &place, "y\r"), "it allows itself something else");
    place.put("market/kit/skills/evil/SKILL.md", &skill("Bash(touch *)"));
    assert!(!at_a_terminal(&row, &place, "n\r"), "it has changed");
    assert!(at_a_terminal(&row, &place, "y\r"));
}

/// A marketplace of this path, with a plugin that is switched on.
fn named_at(path: &str) -> Value {
    json!({"enabledPlugins": {"kit@m": true}, "extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": path}}}})
}

/// That plugin, below a directory, with this hook.
fn put_kit(dir: &Path, hook: &str) {
    let hooks = json!({"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]});
    let list = json!({"name": "m", "plugins": [{"name": "kit", "source": "./kit"}]});
    for (name, content) in [
        (".claude-plugin/marketplace.json", list),
        ("kit/.claude-plugin/plugin.json", json!({"name": "kit"})),
        ("kit/hooks/hooks.json", json!({"hooks": hooks})),
    ] {
        let file = dir.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content.to_string()).unwrap();
    }
}

/// A mark in the home, wherever it was made.
fn marked_at_home(place: &Place, _: &ScriptedModel) -> bool {
    place.home().join("mark").exists()
}

const MARKS: &str = "touch \"$HOME/mark\"";

/// What a project names or links to comes with it, wherever that lies.
#[test]
fn a_plugin_that_a_project_has_from_elsewhere_is_asked_about_when_it_has_changed() {
    for (path, file, links) in [
        ("../shop", ".claude/settings.json", &[][..]),
        ("../shop", ".claude/settings.local.json", &[]),
        ("./market", ".claude/settings.json", &[("market", "../shop")]),
    ] {
        let row = Row {
            calls: bash("sleep 1"),
            links,
            ..row("a plugin from elsewhere", json!({file: named_at(path)}), marked_at_home)
        };
        let place = opened(&row);
        let shop = place.work().join("../shop");
        put_kit(&shop, MARKS);
        let runs = |answer: &str| {
            let _ = std::fs::remove_file(place.home().join("mark"));
            at_a_terminal(&row, &place, answer)
        };
        assert!(!runs("n\r"), "{path} in {file}");
        assert!(runs("y\r") && runs("n\r"), "{path} in {file}: it was seen");
        put_kit(&shop, &format!("true; {MARKS}"));
        assert!(!runs("n\r"), "{path} in {file}: it has changed");
        assert!(runs("y\r"), "{path} in {file}");
    }
}

/// Trust is in the main checkout; what lies in another of the same repository is as much of it, and what is the same in both is seen once.
#[test]
fn a_plugin_in_a_linked_checkout_is_asked_about_when_it_has_changed_there() {
    let files = json!({".claude/settings.json": named_at("./market")});
    let row = Row { calls: bash("sleep 1"), ..row("a plugin in a checkout", files, marked_at_home) };
    let place = opened(&row);
    put_kit(&place.work().join("market"), MARKS);
    for words in [
        "init -q .",
        "add -f .",
        "-c user.name=a -c user.email=a@b.example commit -qm one",
        "worktree add -q ../side",
    ] {
        git(&place.work(), words);
    }
    let side = place.work().parent().unwrap().join("side");
    place.pelton(["trust", "--yes"]).run().well();
    let runs = |dir: &Path, answer: &str| {
        let _ = std::fs::remove_file(place.home().join("mark"));
        at_a_terminal_in(dir, &row, &place, answer)
    };
    assert!(runs(&place.work(), "n\r") && runs(&side, "n\r"), "it was seen, and is the same");
    put_kit(&side.join("market"), &format!("true; {MARKS}"));
    assert!(!runs(&side, "n\r"), "it has changed there");
    assert!(runs(&place.work(), "n\r") && runs(&side, "y\r") && runs(&side, "n\r"));
}

/// What a plugin fills in by itself is as much of what it runs as the place where that is put.
#[test]
fn a_default_of_a_plugin_in_the_directory_is_seen_like_what_it_is_filled_into() {
    let manifest = |default: &str| {
        json!({"name": "kit", "userConfig": {"line": {"type": "string", "default": default}}}).to_string()
    };
    let servers = json!({"mcpServers": {"s": {"command": "/bin/sh", "args": ["-c", "${user_config.line}"]}}});
    let files = json!({
        ".claude/settings.json": named_at("./market"),
        "market/.claude-plugin/marketplace.json": {"name": "m", "plugins": [{"name": "kit", "source": "./kit"}]},
        "market/kit/.claude-plugin/plugin.json": manifest("true"),
        "market/kit/.mcp.json": servers,
    });
    let row = Row { calls: bash("sleep 1"), ..row("a default", files, marked) };
    let place = opened(&row);
    place.pelton(["trust", "--yes"]).run().well();
    assert!(!at_a_terminal(&row, &place, "n\r"));
    place.put("market/kit/.claude-plugin/plugin.json", &manifest("touch mark"));
    let said = place.pelton(["trust"]).run();
    assert!(said.out.contains(r#""args":["-c","touch mark"]"#), "what would run is shown: {}", said.out);
    assert!(!at_a_terminal(&row, &place, "n\r"), "it has changed");
    assert!(at_a_terminal(&row, &place, "y\r"));
}

/// A copy does not change, but what the list of a marketplace in the directory adds to it does.
#[test]
fn what_a_list_in_the_directory_adds_to_an_installed_plugin_is_asked_about() {
    let list = |hooks: Value| {
        json!({"name": "m", "plugins": [{"name": "kit", "source": "./kit", "hooks": hooks}]}).to_string()
    };
    let row = Row { calls: bash("sleep 1"), ..row("an installed plugin", json!({}), marked_at_home) };
    let place = opened(&row);
    put_kit(&place.work().join("market"), "true");
    place.pelton(["plugin", "marketplace", "add", "./market"]).run().well();
    place.pelton(["plugin", "install", "kit@m"]).run().well();
    let asks = |answer: &str| at_a_terminal(&row, &place, answer);
    assert!(!asks("n\r"));
    let said = place.pelton(["trust"]).run();
    assert!(
        !said.out.contains("plugins.kit@m"),
        "a copy was looked at by whoever installed it: {}",
        said.out
    );
    let hook = json!({"UserPromptSubmit": [{"hooks": [{"type": "command", "command": MARKS}]}]});
    place.put("market/.claude-plugin/marketplace.json", &list(hook));
    assert!(!asks("n\r"), "nobody was asked");
    assert!(asks("y\r"));
}
