//! Hooks that are never called, and those that let pass what they should hold.

use serde_json::Value;

use super::nearest::suggestion;
use super::rules::normalised;
use super::{Around, Finding, FindingKind, Looked, Page, Weight};
use crate::hooks::{Blocking, HookEvent, HttpHookTerms, Matcher};
use crate::permission::{Rule, known_tools};
use crate::tools::agent::FORK;
use crate::tools::built_in_agents;

/// Programs that read the program from a file.
const INTERPRETERS: [&str; 10] =
    ["sh", "bash", "zsh", "dash", "python", "python3", "node", "ruby", "perl", "deno"];
/// Nobody means to wait longer for a hook.
const TIMEOUT_SECONDS_MEANT_MAX: f64 = 3_600.0;
/// What a text has in it that can hold a call back.
const HOLDS: [&str; 8] =
    ["exit 2", "exit(2", "permissionDecision", "\"decision\"", "\"continue\"", "exit $", "exit \"$", "exec "];

pub(super) fn lint(page: &Page<'_>, terms: &HttpHookTerms, around: &Around<'_>, findings: &mut Vec<Finding>) {
    let Some(events) = page.value.get("hooks").and_then(Value::as_object) else { return };
    let mut found = Found { page, terms, around, findings };
    for (name, groups) in events {
        let Some(event) = HookEvent::from_name(name) else {
            let known = HookEvent::ALL.iter().map(|event| event.name());
            let hint = suggestion(name, known);
            if !hint.is_empty() {
                found.dead(&format!("hooks.{name}"), &format!("is no event{hint}"));
            }
            continue;
        };
        let groups: Vec<&Value> = groups.as_array().into_iter().flatten().collect();
        if !event.is_told() && !groups.is_empty() {
            found.dead(
                &format!("hooks.{name}"),
                "is an event that never comes here: its hooks are never called",
            );
            continue;
        }
        for (at, group) in groups.into_iter().enumerate() {
            found.group(event, &format!("hooks.{name}[{at}]"), group);
        }
    }
    if page.value.get("disableAllHooks") == Some(&Value::Bool(true)) && !events.is_empty() {
        found.dead("hooks", &format!("are switched off by `disableAllHooks` in the same {}", page.layer()));
    }
}

struct Found<'a, 'p> {
    page: &'a Page<'p>,
    /// What addresses have to keep to, whoever says so.
    terms: &'a HttpHookTerms,
    around: &'a Around<'a>,
    findings: &'a mut Vec<Finding>,
}

impl Found<'_, '_> {
    fn dead(&mut self, place: &str, text: &str) {
        self.findings.push(self.page.finding(FindingKind::DeadHook, Weight::Warning, place, text));
    }

    fn open(&mut self, place: &str, text: &str) {
        self.findings.push(self.page.finding(FindingKind::FailsOpen, Weight::Warning, place, text));
    }

    fn group(&mut self, event: HookEvent, place: &str, group: &Value) {
        let text = group["matcher"].as_str().unwrap_or_default();
        if let Ok(matcher) = Matcher::read(text, event) {
            self.matcher(event, &matcher, text, &format!("{place}.matcher"));
            for (at, hook) in group["hooks"].as_array().into_iter().flatten().enumerate() {
                let place = format!("{place}.hooks[{at}]");
                self.condition(&matcher, &place, hook);
                self.way(event, &place, hook);
                self.guard(event, &place, hook);
                self.patience(&place, hook);
            }
        }
    }

    /// Other programs count in thousandths.
    fn patience(&mut self, place: &str, hook: &Value) {
        if let Some(seconds) = hook["timeout"].as_f64().filter(|seconds| *seconds > TIMEOUT_SECONDS_MEANT_MAX)
        {
            let text = format!("is {:.0} minutes: it is a number of seconds", seconds / 60.0);
            let place = format!("{place}.timeout");
            self.findings.push(self.page.finding(FindingKind::WrongValue, Weight::Note, &place, text));
        }
    }

    /// Whether what a matcher waits for can come.
    fn matcher(&mut self, event: HookEvent, matcher: &Matcher, text: &str, place: &str) {
        if matches!(matcher, Matcher::All) || event.matched_by().is_none() {
            return;
        }
        if matches!(matcher, Matcher::Names(names) if names.is_empty()) {
            return self.dead(place, &format!("names nothing: {text:?}"));
        }
        if let Some(subjects) = event.subjects() {
            let subjects: Vec<String> = subjects.iter().map(|subject| (*subject).to_owned()).collect();
            self.names_or_pattern(matcher, text, place, &subjects);
        } else if event.is_about_a_call() {
            let mut tools: Vec<String> = known_tools().map(str::to_owned).collect();
            tools.extend(self.around.tools.iter().cloned());
            match matcher {
                Matcher::Names(names) => self.tools(names, &tools, place),
                // Servers come and go: what could be a tool of one is let be.
                Matcher::Pattern(_) if text.contains("mcp") || matcher.matches(Some("mcp__a__b")) => {}
                _ => self.names_or_pattern(matcher, text, place, &tools),
            }
        } else if event.matched_by() == Some("agent_type") {
            let described = self.around.agents.iter().filter_map(|(_, agent)| agent.as_ref());
            let mut agents: Vec<String> = described.map(|agent| agent.name.clone()).collect();
            agents.extend(built_in_agents().into_iter().map(|agent| agent.name));
            agents.push(FORK.to_owned());
            self.names_or_pattern(matcher, text, place, &agents);
        }
    }

    fn names_or_pattern(&mut self, matcher: &Matcher, text: &str, place: &str, subjects: &[String]) {
        match matcher {
            Matcher::All => {}
            Matcher::Names(names) => {
                for name in names.iter().filter(|name| !subjects.contains(name)) {
                    let hint = suggestion(name, subjects.iter().map(String::as_str));
                    self.dead(place, &format!("waits for `{name}`, which never comes{hint}"));
                }
            }
            Matcher::Pattern(_) => {
                if !subjects.iter().any(|subject| matcher.matches(Some(subject))) {
                    self.dead(place, &format!("is a pattern that fits nothing that comes: {text}"));
                }
            }
        }
    }

    fn tools(&mut self, names: &[String], tools: &[String], place: &str) {
        for name in names {
            let server = name.strip_prefix("mcp__");
            match server {
                Some(server) if !server.contains("__") => {
                    let text =
                        format!("is no name of a tool: write `{name}__.*` for all tools of that server");
                    self.dead(place, &text);
                }
                Some(server) => {
                    let server = server.split_once("__").map_or(server, |(server, _)| server);
                    if !self.around.servers.iter().any(|known| normalised(known) == server) {
                        let text = format!(
                            "waits for a tool of the server `{server}`, which is not configured here"
                        );
                        self.findings.push(self.page.finding(
                            FindingKind::DeadHook,
                            Weight::Note,
                            place,
                            text,
                        ));
                    }
                }
                None if tools.contains(name) => {}
                None => {
                    let hint = suggestion(name, tools.iter().map(String::as_str));
                    self.dead(place, &format!("waits for a tool there is not: `{name}`{hint}"));
                }
            }
        }
    }

    /// Whether a call can meet the condition of a hook and its matcher.
    fn condition(&mut self, matcher: &Matcher, place: &str, hook: &Value) {
        let Some(text) = hook["if"].as_str() else { return };
        let place = format!("{place}.if");
        match text.parse::<Rule>() {
            Err(error) => {
                self.dead(&place, &format!("is no rule, so the hook is never called: {}", error.problem));
            }
            Ok(rule) if !rule.tool().contains('*') && !matcher.matches(Some(rule.tool())) => {
                let text = format!("is about {}, and the matcher lets no such call through", rule.tool());
                self.dead(&place, &text);
            }
            Ok(_) => {}
        }
    }

    /// Whether an address may be asked, and whether there is a server whose tool is called.
    fn way(&mut self, event: HookEvent, place: &str, hook: &Value) {
        match hook["type"].as_str() {
            Some("http") => {
                let Some(url) = hook["url"].as_str().filter(|url| !self.terms.allow(url)) else { return };
                let place = format!("{place}.url");
                match holds(event) {
                    true => self.open(&place, &format!("holds nothing back: {url} is not among `allowedHttpHookUrls`, so it is never asked")),
                    false => self.dead(&place, &format!("is never asked: {url} is not among `allowedHttpHookUrls`")),
                }
            }
            Some("mcp_tool") => {
                let Some(server) = hook["server"].as_str() else { return };
                if !self.around.servers.iter().any(|known| known == server) {
                    let text = format!("calls a tool of the server `{server}`, which is not configured here");
                    let place = format!("{place}.server");
                    self.findings.push(self.page.finding(FindingKind::DeadHook, Weight::Note, &place, text));
                }
            }
            _ => {}
        }
    }

    /// Whether a hook that should hold something can.
    fn guard(&mut self, event: HookEvent, place: &str, hook: &Value) {
        let is_meant = holds(event) && hook["type"] == "command";
        let Some(command) = hook["command"].as_str().filter(|_| is_meant) else { return };
        if hook["async"] == true || hook["asyncRewake"] == true {
            return self.open(place, "is not waited for, so it holds nothing back: take `async` away");
        }
        let words: Vec<String> = match hook["args"].as_array() {
            Some(args) => {
                let args = args.iter().filter_map(Value::as_str).map(str::to_owned);
                std::iter::once(command.to_owned()).chain(args).collect()
            }
            None => match plain_words(command) {
                Some(words) => words,
                // A line that only the shell understands.
                None => return self.never_blocks(place, command, "the command"),
            },
        };
        let Some(program) = words.first() else { return };
        let place = format!("{place}.command");
        match self.find(program) {
            None => {
                let text =
                    format!("cannot be started: there is no `{program}`. What it should hold back passes");
                self.open(&place, &text);
            }
            Some(looked) if !looked.runs => {
                let text = format!(
                    "cannot be started: `{program}` is no program (chmod +x?). What it should hold back passes"
                );
                self.open(&place, &text);
            }
            Some(looked) => self.script(&place, &words, looked),
        }
    }

    /// A program that can be started: the text it is, or that it is given.
    fn script(&mut self, place: &str, words: &[String], program: Looked) {
        let name = words[0].rsplit('/').next().unwrap_or_default();
        if is_of_the_shell(name) {
            return self.never_blocks(place, &words.join(" "), "the command");
        }
        if !INTERPRETERS.contains(&name) {
            if let Some(text) = program.text {
                self.never_blocks(place, &text, "the script");
            }
            return;
        }
        let Some(file) = words[1..].iter().find(|word| !word.starts_with('-')) else { return };
        if words[1..].iter().any(|word| word == "-c" || word == "-e") {
            return self.never_blocks(place, file, "the command");
        }
        match self.find_file(file) {
            None => {
                let text = format!("cannot work: there is no `{file}`. What it should hold back passes");
                self.open(place, &text);
            }
            Some(looked) => {
                if let Some(text) = looked.text {
                    self.never_blocks(place, &text, "the script");
                }
            }
        }
    }

    /// A text that fails in a way that does not hold anything back.
    fn never_blocks(&mut self, place: &str, text: &str, what: &str) {
        let fails = text.contains("exit 1") || text.contains("exit(1)");
        if fails && !HOLDS.iter().any(|word| text.contains(word)) {
            self.open(place, &format!("holds nothing back: {what} ends with 1, and only 2 blocks"));
        }
    }

    fn find(&self, program: &str) -> Option<Looked> {
        if program.contains('/') {
            return self.find_file(program);
        }
        if is_of_the_shell(program) {
            return Some(Looked { runs: true, text: None });
        }
        self.around
            .path
            .iter()
            .find_map(|dir| (self.around.look)(&dir.join(program)).filter(|looked| looked.runs))
    }

    fn find_file(&self, path: &str) -> Option<Looked> {
        let path = match (path.strip_prefix("~/"), &self.around.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.around.cwd.join(path),
        };
        (self.around.look)(&path)
    }
}

/// Whether hooks are there to hold something back.
fn holds(event: HookEvent) -> bool {
    matches!(event, HookEvent::UserPromptSubmit | HookEvent::UserPromptExpansion)
        || event.blocking() == Blocking::Denies
}

/// The words of a line that a shell would not change, with the project's directory filled in; `None` if there is more in it.
fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut line = line.to_owned();
    for name in ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR"] {
        line = line.replace(&format!("\"{name}\"/"), "./").replace(&format!("{name}/"), "./");
    }
    let quoted =
        line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|rest| !rest.contains('"'));
    let line = quoted.map_or(line.clone(), str::to_owned);
    let is_plain = |c: char| !"\"'$`\\|&;<>(){}*?[]#~!\n=".contains(c) || c == '~';
    line.chars().all(is_plain).then(|| line.split_whitespace().map(str::to_owned).collect())
}

/// What a shell does by itself.
fn is_of_the_shell(word: &str) -> bool {
    matches!(
        word,
        "true"
            | "false"
            | "exit"
            | "echo"
            | "test"
            | "["
            | ":"
            | "cd"
            | "exec"
            | "export"
            | "printf"
            | "read"
            | "set"
    )
}
