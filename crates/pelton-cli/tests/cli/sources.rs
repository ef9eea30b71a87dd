//! Whose settings and instructions count: each choice of sources, and what is read for it. The kernel says which files were
//! opened, so that something read and thrown away is seen, too.

use std::collections::BTreeSet;
use std::path::PathBuf;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use pelton_testkit::{Script, text};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model, of_type};
use crate::talk::Talk;

/// One of everything, by whose it is.
const FILES: [(&str, &str, &str); 15] = [
    (
        "user",
        "config/settings.json",
        r#"{"env": {"FROM_USER": "1"}, "permissions": {"allow": ["Bash(user:*)"]}}"#,
    ),
    ("user", "config/CLAUDE.md", "WORDS-OF-user"),
    ("user", "config/rules/r.md", "RULE-OF-user"),
    ("user", "config/agents/a.md", "---\nname: agent-user\ndescription: d\n---\nBody"),
    ("user", "config/skills/skill-user/SKILL.md", "---\ndescription: d\n---\nBody"),
    ("user", "config/commands/command-user.md", "Body"),
    (
        "project",
        "work/.claude/settings.json",
        r#"{"env": {"FROM_PROJECT": "1"}, "permissions": {"deny": ["Bash(project:*)"]}}"#,
    ),
    ("project", "work/CLAUDE.md", "WORDS-OF-project"),
    ("project", "work/.claude/rules/r.md", "RULE-OF-project"),
    ("project", "work/.claude/agents/a.md", "---\nname: agent-project\ndescription: d\n---\nBody"),
    ("project", "work/.claude/skills/skill-project/SKILL.md", "---\ndescription: d\n---\nBody"),
    ("project", "work/.claude/commands/command-project.md", "Body"),
    ("project", "work/.mcp.json", r#"{"mcpServers": {"server-project": {"command": "true"}}}"#),
    (
        "local",
        "work/.claude/settings.local.json",
        r#"{"env": {"FROM_LOCAL": "1"}, "permissions": {"ask": ["Bash(local:*)"]}}"#,
    ),
    ("local", "work/CLAUDE.local.md", "WORDS-OF-local"),
];

fn file(place: &Place, name: &str) -> PathBuf {
    place.work().parent().unwrap().join(name)
}

/// Opened files, by the kernel's word.
struct Watch {
    inotify: Inotify,
    dirs: Vec<(nix::sys::inotify::WatchDescriptor, PathBuf)>,
}

impl Watch {
    fn on(dirs: BTreeSet<PathBuf>) -> Self {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).unwrap();
        let watch = |dir: PathBuf| (inotify.add_watch(&dir, AddWatchFlags::IN_OPEN).unwrap(), dir);
        let dirs = dirs.into_iter().map(watch).collect();
        Self { inotify, dirs }
    }

    fn opened(&self) -> BTreeSet<PathBuf> {
        let mut opened = BTreeSet::new();
        while let Ok(events) = self.inotify.read_events() {
            for event in events {
                assert!(!event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW));
                let dir = &self.dirs.iter().find(|(watched, _)| *watched == event.wd).unwrap().1;
                opened.extend(event.name.map(|name| dir.join(name)));
            }
        }
        opened
    }
}

fn names(list: &Value, marked: &str) -> Vec<String> {
    let names = list.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    names.filter_map(|name| name.strip_prefix(marked)).map(str::to_owned).collect()
}

#[test]
fn pit_K8_each_choice_of_sources_is_read_and_nothing_else_and_the_beginning_says_so() {
    for chosen in 0..8_u8 {
        let sources: Vec<&str> = ["user", "project", "local"]
            .into_iter()
            .enumerate()
            .filter(|(nth, _)| chosen & (1 << nth) != 0)
            .map(|(_, name)| name)
            .collect();
        let counts = |source: &str| sources.contains(&source);
        let place = Place::new();
        for (_, name, content) in FILES {
            let file = file(&place, name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let dirs = FILES.iter().map(|(_, name, _)| file(&place, name).parent().unwrap().to_path_buf());
        let watch = Watch::on(dirs.collect());
        let model = model(Script::new().reply([text("Done.")]));
        let option = format!("--setting-sources={}", sources.join(","));
        let mut talk = Talk::with(&place, &model, &[&option], |command| {
            command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-py");
        });
        talk.prompt("hi");
        let init = talk.system("init");
        talk.result();
        let settings = talk.asked(&json!({"subtype": "get_settings"}))["response"]["effective"].clone();
        let over = talk.end();
        assert_eq!(over.code, Some(0), "{}", over.err);

        // What was opened.
        let opened = watch.opened();
        for (source, name, _) in FILES {
            assert_eq!(opened.contains(&file(&place, name)), counts(source), "{sources:?}: {name}");
        }
        // What is stated.
        assert_eq!(init["setting_sources"], json!(sources));
        let of_both = |marked: &str| {
            let mut found = names(
                &init[match marked {
                    "agent-" => "agents",
                    "skill-" => "skills",
                    _ => "slash_commands",
                }],
                marked,
            );
            found.sort();
            found
        };
        let expected: Vec<&str> = ["project", "user"].into_iter().filter(|source| counts(source)).collect();
        for marked in ["agent-", "skill-", "command-"] {
            assert_eq!(of_both(marked), expected, "{sources:?}: {marked}");
        }
        let servers = init["mcp_servers"].as_array().unwrap();
        assert_eq!(servers.iter().any(|server| server["name"] == "server-project"), counts("project"));
        // What holds.
        let rules = |of: &str| -> Vec<String> {
            settings["permissions"][of]
                .as_array()
                .unwrap()
                .iter()
                .map(|rule| rule.as_str().unwrap().to_owned())
                .collect()
        };
        for (of, source) in [("allow", "user"), ("deny", "project"), ("ask", "local")] {
            let expected: Vec<String> =
                if counts(source) { vec![format!("Bash({source}:*)")] } else { Vec::new() };
            assert_eq!(rules(of), expected, "{sources:?}: {of}");
        }
        // What the model is told.
        let said = model.requests()[0].body.to_string();
        for source in ["user", "project", "local"] {
            assert_eq!(said.contains(&format!("WORDS-OF-{source}")), counts(source), "{sources:?}: {source}");
        }
        for source in ["user", "project"] {
            assert_eq!(said.contains(&format!("RULE-OF-{source}")), counts(source), "{sources:?}: {source}");
        }
    }
}

#[test]
fn pit_K8_variables_come_from_the_sources_that_count() {
    let place = Place::new();
    for (_, name, content) in FILES {
        let file = file(&place, name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    place.pelton(["trust", "--yes"]).run();
    let seen = |sources: &str| {
        let model = model(
            Script::new()
                .reply([pelton_testkit::tool(
                    "Bash",
                    json!({"command": "env | grep ^FROM_ | sort | tr '\\n' ' '"}),
                )])
                .reply([text("Done.")]),
        );
        let option = format!("--setting-sources={sources}");
        let words = ["go", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash", &option];
        let ran = place.task(&model, words).run();
        let frames = ran.frames();
        let results = of_type(&frames, "user");
        results[0]["tool_use_result"]["stdout"].as_str().unwrap().trim().to_owned()
    };
    for (sources, expected) in [
        ("", ""),
        ("user", "FROM_USER=1"),
        ("local", "FROM_LOCAL=1"),
        ("user,project,local", "FROM_LOCAL=1 FROM_PROJECT=1 FROM_USER=1"),
    ] {
        assert_eq!(seen(sources), expected, "{sources:?}");
    }
}

/// The half of M5 that has no screen. How long it takes by the clock is measured by `scripts/bench start`.
#[test]
fn the_version_is_told_without_a_look_at_transcripts_plugins_or_the_network() {
    let place = Place::new();
    let (projects, plugins) = (place.config().join("projects/-a-project"), place.config().join("plugins"));
    std::fs::create_dir_all(&projects).unwrap();
    let mut dirs: BTreeSet<PathBuf> =
        [place.config(), place.config().join("projects"), projects.clone()].into();
    for nth in 0..10_000 {
        std::fs::write(projects.join(format!("{nth:08}-0000-4000-8000-000000000000.jsonl")), "{}\n").unwrap();
    }
    for nth in 0..50 {
        let plugin = plugins.join(format!("p{nth}/.claude-plugin"));
        std::fs::create_dir_all(&plugin).unwrap();
        std::fs::write(plugin.join("plugin.json"), format!("{{\"name\": \"p{nth}\"}}")).unwrap();
        dirs.extend([plugins.clone(), plugin.parent().unwrap().to_path_buf(), plugin]);
    }
    dirs.insert(place.work());
    let watch = Watch::on(dirs);
    let model = model(Script::new());
    let told = place.pelton(["--version"]).asks(&model).run();
    assert!(told.well().contains(env!("CARGO_PKG_VERSION")), "{}", told.out);
    assert_eq!(watch.opened(), BTreeSet::new(), "nothing was opened");
    assert!(model.requests().is_empty());
}
