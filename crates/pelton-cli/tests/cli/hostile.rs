//! Repositories that want something run. Each is opened before anybody has trusted it, and again afterwards, when its payload
//! does run: what was held back was a real attack. The table `hostile.json` has one repository per entry; what a run with
//! somebody in front would use of them is looked at in `src/resolve/layers.rs`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use pelton_testkit::{Part, Script, ScriptedModel, Step, gate, text, tool};
use serde_json::Value;

use crate::place::{Commanded, Place, model};

const CASES: &str = include_str!("hostile.json");
/// How long a program is given to be started that nobody waits for and that must not be.
const STARTED_UNASKED_WAIT: Duration = Duration::from_millis(700);
/// How long a program is waited for that must be started.
const STARTED_WAIT_MAX: Duration = Duration::from_secs(20);

/// A repository on disk.
struct Opened {
    place: Place,
    case: Value,
    evil: Option<ScriptedModel>,
}

impl Opened {
    fn new(case: &Value) -> Self {
        let evil =
            (case["evil"] == true).then(|| model(Script::new().step(Step::reply([text("Mine.")]).always())));
        let opened = Self { place: Place::new(), case: case.clone(), evil };
        for (name, content) in case["files"].as_object().unwrap() {
            let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
            opened.place.put(name, &opened.filled(&content));
        }
        for (name, target) in case["links"].as_object().into_iter().flatten() {
            let link = opened.place.work().join(name);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target.as_str().unwrap(), link).unwrap();
        }
        if !case["user"].is_null() {
            std::fs::write(opened.place.config().join("settings.json"), case["user"].to_string()).unwrap();
        }
        if case["tracked"] == true {
            for words in ["init -q .", "add -f ."] {
                let git =
                    Command::new("git").args(words.split(' ')).current_dir(opened.place.work()).status();
                assert!(git.unwrap().success());
            }
        }
        if case["outer_trusted"] == true {
            opened.trust(&opened.place.work());
        }
        if let Some(dir) = case["trusted_first"].as_str() {
            opened.trust(&opened.place.work().join(dir));
        }
        opened
    }

    fn filled(&self, text: &str) -> String {
        let evil = self.evil.as_ref().map(ScriptedModel::base_url).unwrap_or_default();
        text.replace("@MARK@", &self.place.home().join("ran").display().to_string())
            .replace("@WORK@", &self.place.work().display().to_string())
            .replace("@HOME@", &self.place.home().display().to_string())
            .replace("@EVIL@", &evil)
    }

    fn dir(&self) -> PathBuf {
        self.place.work().join(self.case["cwd"].as_str().unwrap_or_default())
    }

    fn trust(&self, dir: &Path) {
        self.place.pelton(["trust", "--yes"]).current_dir(dir).run().well();
    }

    fn mark(&self) -> PathBuf {
        let said = self.case["mark"].as_str().unwrap_or("@MARK@");
        self.filled(said).into()
    }

    /// One run without anybody in front. Whether the payload ran.
    fn run(&self) -> bool {
        let parts = |calls: &Value| -> Vec<Part> {
            let calls = calls.as_array().into_iter().flatten();
            calls
                .map(|call| {
                    let input = self.filled(&call["input"].to_string());
                    tool(call["tool"].as_str().unwrap(), serde_json::from_str::<Value>(&input).unwrap())
                })
                .collect()
        };
        let mut script = Script::new();
        let first = parts(&self.case["calls"]);
        if !first.is_empty() {
            script = script.reply(first);
        }
        let child = parts(&self.case["child"]);
        if !child.is_empty() {
            script = script.reply(child);
        }
        let is_waited_for = self.case["wait"] == true;
        if is_waited_for {
            script = script.reply([gate("end"), text("Done.")]);
        }
        let good = model(script.step(Step::reply([text("Done.")]).always()));
        let mut command = self.place.task(&good, [self.case["prompt"].as_str().unwrap_or("Go.")]);
        command.current_dir(self.dir());
        for (name, value) in self.case["env"].as_object().into_iter().flatten() {
            command.env(name, value.as_str().unwrap());
        }
        if self.case["without_key"] == true {
            command.env_remove("ANTHROPIC_API_KEY");
        }
        let running = command.start();
        if is_waited_for {
            let began = Instant::now();
            let expected = self.case["headless"] == "runs" || self.is_trusted();
            let longest = if expected { STARTED_WAIT_MAX } else { STARTED_UNASKED_WAIT };
            while !self.mark().exists() && began.elapsed() < longest {
                std::thread::sleep(Duration::from_millis(10));
            }
            good.open("end");
        }
        let ran = running.end();
        assert!(ran.code.is_some(), "{ran:?}");
        let told_evil = self.evil.as_ref().is_some_and(|evil| !evil.requests().is_empty());
        let header = self.case["evil_header"].as_str();
        let sent =
            header.is_some_and(|name| good.requests().iter().any(|request| request.header(name).is_some()));
        self.mark().exists() || told_evil || sent
    }

    fn is_trusted(&self) -> bool {
        !self.place.pelton(["trust"]).current_dir(self.dir()).run().well().contains("is not trusted")
    }
}

fn check(cases: impl Iterator<Item = Value>) {
    for case in cases {
        let name = case["name"].as_str().unwrap().to_owned();
        let opened = Opened::new(&case);
        // Whoever only looks runs nothing.
        for words in
            [&["trust"][..], &["config", "check"], &["config", "show", "--effective"], &["mcp", "list"]]
        {
            opened.place.pelton(words.iter().copied()).current_dir(opened.dir()).run();
            assert!(!opened.mark().exists(), "{name}: {words:?} ran it");
        }
        assert_eq!(opened.run(), case["headless"] == "runs", "{name}, before trust");
        let again = Opened::new(&case);
        again.trust(&again.dir());
        assert!(again.run(), "{name}: once it is trusted its payload runs");
        // The switches for machines that open what nobody has read.
        let switched = Opened::new(&case);
        let bare = model(Script::new().step(Step::reply([text("Done.")]).always()));
        for switch in [&["--bare"][..], &["--setting-sources", "user"]] {
            let words = std::iter::once("Go.").chain(switch.iter().copied());
            switched.place.task(&bare, words).current_dir(switched.dir()).run();
            assert!(!switched.mark().exists(), "{name}: {switch:?} ran it");
        }
    }
}

fn cases(part: usize) -> impl Iterator<Item = Value> {
    let all: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert!(all.len() >= 30);
    all.into_iter().enumerate().filter(move |(at, _)| at % 3 == part).map(|(_, case)| case)
}

#[test]
fn hostile_repositories_get_what_the_table_allows_first_third() {
    check(cases(0));
}

#[test]
fn hostile_repositories_get_what_the_table_allows_second_third() {
    check(cases(1));
}

#[test]
fn hostile_repositories_get_what_the_table_allows_last_third() {
    check(cases(2));
}
