//! Repositories that want something run: the table `hostile.json` has one per entry.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pelton_testkit::{Part, Script, ScriptedModel, Step, gate, text, tool};
use serde_json::Value;

use crate::place::{Commanded, Place, model};

/// One of them, on disk.
pub struct Opened {
    pub place: Place,
    pub case: Value,
    /// A server of its own, if it has one.
    pub evil: Option<ScriptedModel>,
}

impl Opened {
    pub fn new(case: &Value) -> Self {
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
        for name in case["executable"].as_array().into_iter().flatten() {
            let program = opened.place.work().join(name.as_str().unwrap());
            std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
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

    pub fn dir(&self) -> PathBuf {
        self.place.work().join(self.case["cwd"].as_str().unwrap_or_default())
    }

    pub fn trust(&self, dir: &Path) {
        self.place.pelton(["trust", "--yes"]).current_dir(dir).run().well();
    }

    pub fn mark(&self) -> PathBuf {
        let said = self.case["mark"].as_str().unwrap_or("@MARK@");
        self.filled(said).into()
    }

    pub fn is_trusted(&self) -> bool {
        !self.place.pelton(["trust"]).current_dir(self.dir()).run().well().contains("is not trusted")
    }

    /// What the model does: what the repository would have it do, and waits where a program is to be started beside.
    pub fn script(&self) -> Script {
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
        if self.case["wait"] == true {
            script = script.reply([gate("end"), text("Done.")]);
        }
        script.step(Step::reply([text("Done.")]).always())
    }

    /// Whether the payload ran, or somebody was reached who should not be.
    pub fn has_struck(&self, good: &ScriptedModel) -> bool {
        let told_evil = self.evil.as_ref().is_some_and(|evil| !evil.requests().is_empty());
        let header = self.case["evil_header"].as_str();
        let sent =
            header.is_some_and(|name| good.requests().iter().any(|request| request.header(name).is_some()));
        self.mark().exists() || told_evil || sent
    }

    /// What a command is told that is run in it.
    pub fn surround(&self, command: &mut Command) {
        command.current_dir(self.dir());
        for (name, value) in self.case["env"].as_object().into_iter().flatten() {
            command.env(name, self.filled(value.as_str().unwrap()));
        }
        if self.case["without_key"] == true {
            command.env_remove("ANTHROPIC_API_KEY");
        }
    }
}

/// A third of them.
pub fn cases(part: usize) -> impl Iterator<Item = Value> {
    let all: Vec<Value> = serde_json::from_str(include_str!("hostile.json")).unwrap();
    assert!(all.len() >= 30);
    all.into_iter().enumerate().filter(move |(at, _)| at % 3 == part).map(|(_, case)| case)
}
