//! What the tools are doing, as a tree of lines that are written once and never redrawn: one for each call that has
//! ended, one before it if it takes long, and one for the end.
//!
//! ```text
//! ├─ Reading src/main.rs · 120 lines
//! │  Running cargo test …
//! ├─ Running cargo test · 14 lines · 8.2 s
//! │  ├─ Reading src/lib.rs · 40 lines
//! ├─ Agent: look around · 1 tool call · 5120 tokens
//! └─ 4 turns · 3 tool calls · 12 s
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pelton::event::{AgentEvent, AgentFacts, AgentNews, AgentWork, Event, Outcome, ToolStarted};
use pelton::history::{Entry, Kind};
use pelton_model::World;
use serde_json::Value;

use crate::plain::plain;

/// Characters of a command or path shown on one line.
const SUBJECT_CHARS_MAX: usize = 100;

/// What becomes of a call that nobody waits for.
const BESIDE: &str = "in the background";

/// Results are told in the order of their calls. Of one that is told so soon behind another, it is not known when it was there.
const TOLD_TOGETHER: Duration = Duration::from_millis(20);

/// When nothing has happened for this long, the calls that run are named: people want to know what they wait for.
const QUIET_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Progress {
    colour: bool,
    world: Arc<dyn World>,
    /// Where the session works: files below are named from there.
    cwd: PathBuf,
    /// In the order in which they began. The engine bounds how many run.
    running: Vec<Running>,
    /// What agents have done so far, by the calls that started them.
    agents: HashMap<Arc<str>, AgentWork>,
    /// When a call last ended.
    took: Took,
    /// When something last happened, by the world's clock.
    quiet_since: Duration,
    /// The tree has begun, so that it wants an end.
    begun: bool,
}

struct Running {
    call: Arc<str>,
    tool: Arc<str>,
    input: Arc<Value>,
    doing: String,
    since: Duration,
    announced: bool,
    /// It is a call of an agent's.
    is_agents: bool,
}

impl Running {
    /// Nobody waits for it.
    fn is_beside(&self) -> bool {
        self.input["run_in_background"] == true
    }

    fn of(started: &ToolStarted, doing: String, now: Duration) -> Self {
        let (call, tool) = (Arc::clone(&started.call), Arc::clone(&started.tool));
        Self {
            call,
            tool,
            input: Arc::clone(&started.input),
            doing,
            since: now,
            announced: false,
            is_agents: false,
        }
    }
}

impl Progress {
    pub fn new(colour: bool, world: Arc<dyn World>) -> Self {
        let quiet_since = world.monotonic();
        let (running, agents) = (Vec::new(), HashMap::new());
        let took = Took::default();
        Self { colour, took, quiet_since, world, cwd: PathBuf::new(), running, agents, begun: false }
    }

    /// The line an event adds.
    pub fn of(&mut self, event: &Event) -> String {
        let now = self.world.monotonic();
        match event {
            // More output of a command that runs is not shown, and so is no news.
            Event::ToolProgress { .. } => return String::new(),
            _ => self.quiet_since = now,
        }
        match event {
            Event::Init(init) => {
                self.cwd.clone_from(&init.cwd);
                String::new()
            }
            Event::ToolStarted(started) => {
                let doing = doing(&started.tool, &started.input, &self.cwd);
                self.running.push(Running::of(started, doing, now));
                String::new()
            }
            Event::Agent(AgentEvent { agent, news, .. }) => self.agent(agent, news, now),
            Event::Message(entry) => match &entry.kind {
                Kind::ToolResult { call, is_error } => self.ended(call, *is_error, entry, now),
                _ => String::new(),
            },
            Event::Tombstone(_) => self.taken_back(),
            Event::Result(outcome) if self.begun => self.line("└─ ", "", &summary(outcome)),
            _ => String::new(),
        }
    }

    /// The line that something adds which an agent did: its calls are a branch of the one that started it.
    fn agent(&mut self, agent: &AgentFacts, news: &AgentNews, now: Duration) -> String {
        match news {
            AgentNews::Told(event) => match &**event {
                Event::ToolStarted(started) => {
                    let mut doing = doing(&started.tool, &started.input, &self.cwd);
                    if self.agents.len() > 1 {
                        doing = format!("{}: {doing}", subject(&agent.description));
                    }
                    self.running.push(Running { is_agents: true, ..Running::of(started, doing, now) });
                    String::new()
                }
                Event::Message(entry) => match &entry.kind {
                    Kind::ToolResult { call, is_error } => self.ended(call, *is_error, entry, now),
                    _ => String::new(),
                },
                _ => String::new(),
            },
            AgentNews::Started => {
                self.agents.insert(Arc::clone(&agent.call), AgentWork::default());
                String::new()
            }
            AgentNews::Progress { done, .. }
            | AgentNews::Doing { done, .. }
            | AgentNews::Ended { done, .. } => {
                self.agents.insert(Arc::clone(&agent.call), *done);
                String::new()
            }
            _ => String::new(),
        }
    }

    /// How long until [`announce`](Self::announce) has something to tell, unless something happens before.
    pub fn announces_in(&self) -> Option<Duration> {
        let waiting = self.running.iter().any(|running| !running.announced);
        waiting.then(|| (self.quiet_since + QUIET_MAX).saturating_sub(self.world.monotonic()))
    }

    /// Names the calls that run and were not named yet.
    pub fn announce(&mut self) -> String {
        let unnamed = self.running.iter_mut().filter(|running| !running.announced);
        let unnamed: Vec<String> = unnamed
            .map(|running| {
                running.announced = true;
                format!("{} …", running.doing)
            })
            .collect();
        unnamed.iter().map(|doing| self.line("│  ", doing, "")).collect()
    }

    /// The calls that run go with the answer that made them. Those that were named are waited for.
    fn taken_back(&mut self) -> String {
        let named = std::mem::take(&mut self.running).into_iter().filter(|running| running.announced);
        named.map(|running| self.line("├─ ", &running.doing, "taken back with its answer")).collect()
    }

    fn ended(&mut self, call: &Arc<str>, is_error: bool, entry: &Entry, now: Duration) -> String {
        let at = self.running.iter().position(|running| running.call == *call);
        let running = at.map(|at| self.running.remove(at));
        let doing = running.as_ref().map_or("Call", |running| &running.doing);
        let mut told = match (is_error, self.agents.remove(call), &running) {
            (true, ..) => format!("failed: {}", first_line(entry)),
            (false, Some(done), running) if !running.as_ref().is_some_and(Running::is_beside) => {
                worked(&done)
            }
            (false, Some(_), _) => BESIDE.to_owned(),
            (false, None, Some(running)) => brought(&running.tool, &running.input, entry),
            (false, None, None) => measure(entry),
        };
        let took = running.as_ref().and_then(|running| self.took.of(running.since, now));
        if let Some(took) = took.filter(|_| running.as_ref().is_some_and(|running| running.announced)) {
            told += &format!(" · {}", seconds(took));
        }
        let is_agents = running.as_ref().is_some_and(|running| running.is_agents);
        self.line(if is_agents { "│  ├─ " } else { "├─ " }, doing, &told)
    }

    fn line(&mut self, branch: &str, doing: &str, told: &str) -> String {
        self.begun = true;
        let dot = if doing.is_empty() || told.is_empty() { "" } else { " · " };
        let (dim, normal) = if self.colour { ("\u{1b}[2m", "\u{1b}[0m") } else { ("", "") };
        format!("{dim}{branch}{normal}{doing}{dim}{dot}{told}{normal}\n")
    }
}

/// How long calls took, as far as that is known.
#[derive(Debug, Default)]
pub struct Took {
    ended_at: Option<Duration>,
}

impl Took {
    /// A call ends that began then: how long it took. Nothing, if it may have waited for one before it to be told.
    pub fn of(&mut self, since: Duration, now: Duration) -> Option<Duration> {
        let waited = |ended: Duration| since < ended && now.saturating_sub(ended) < TOLD_TOGETHER;
        let is_known = !self.ended_at.replace(now).is_some_and(waited);
        is_known.then(|| now.saturating_sub(since))
    }
}

/// What an agent has done, in a few words.
pub fn worked(done: &AgentWork) -> String {
    format!("{} · {} tokens", counted(done.tool_calls, "tool call"), done.tokens)
}

/// A duration as people say it.
pub fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else if duration < Duration::from_secs(10) {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} s", duration.as_secs())
    }
}

/// What a submission took, in a few words.
pub fn summary(outcome: &Outcome) -> String {
    let mut parts = vec![counted(turns(outcome), "turn"), counted(outcome.tool_calls, "tool call")];
    match outcome.retries {
        0 => {}
        1 => parts.push("1 retry".to_owned()),
        retries => parts.push(format!("{retries} retries")),
    }
    parts.push(seconds(outcome.duration));
    parts.join(" · ")
}

/// How often the model had its turn, which is what `--max-turns` counts. `num_turns` counts messages: of five calls in one answer, each.
fn turns(outcome: &Outcome) -> u32 {
    if outcome.num_turns == 0 { 0 } else { 1 + outcome.transitions.values().sum::<u32>() }
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What a call does, in a few words that are safe to show. Files below `cwd` are named from there.
pub fn doing(tool: &str, input: &Value, cwd: &Path) -> String {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let field = |name: &str| text(name).map(subject).unwrap_or_default();
    let file = |name: &str| text(name).map(|path| subject(below(cwd, path))).unwrap_or_default();
    match tool {
        "Read" => format!("Reading {}", file("file_path")),
        "Write" => format!("Writing {}", file("file_path")),
        "Edit" => format!("Editing {}", file("file_path")),
        "NotebookEdit" => format!("Editing {}", file("notebook_path")),
        "Bash" => format!("Running {}", field("command")),
        "Glob" => format!("Finding {}", field("pattern")),
        "Grep" => format!("Searching {}", field("pattern")),
        "Agent" | "Task" => format!("Agent: {}", field("description")),
        "WebFetch" => format!("Fetching {}", field("url")),
        "WebSearch" => format!("Searching the web for {}", field("query")),
        "Skill" => format!("Using the skill {}", field("skill")),
        "ToolSearch" => format!("Looking for tools: {}", field("query")),
        "TodoWrite" => "Updating the to-do list".to_owned(),
        "TaskCreate" => format!("Noting a task: {}", field("subject")),
        "TaskGet" => format!("Looking at task {}", field("taskId")),
        "TaskList" => "Looking at the tasks".to_owned(),
        "SendMessage" => format!("Telling {}", field("to")),
        "TaskUpdate" => format!("Updating task {}", field("taskId")),
        "TaskOutput" | "BashOutput" => format!("Looking at {}", id_of(input)),
        "TaskStop" | "KillShell" => format!("Stopping {}", id_of(input)),
        "AskUserQuestion" => "Asking you".to_owned(),
        "EnterPlanMode" => "Beginning to plan".to_owned(),
        "ExitPlanMode" => "Proposing a plan".to_owned(),
        other => match other.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((server, tool)) => subject(&format!("{server}: {tool}")),
            None => subject(other),
        },
    }
}

/// A path as it is called in a directory, if it is below.
fn below<'p>(cwd: &Path, path: &'p str) -> &'p str {
    let rest = Path::new(path).strip_prefix(cwd).ok().filter(|_| cwd.is_absolute());
    rest.and_then(Path::to_str).filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// What runs in the background and is meant, by whichever of its names.
fn id_of(input: &Value) -> String {
    let id = ["task_id", "shell_id", "bash_id"].into_iter().find_map(|name| input.get(name)?.as_str());
    id.map(subject).unwrap_or_default()
}

fn subject(text: &str) -> String {
    let line = plain(text).lines().next().unwrap_or_default().to_owned();
    if line.chars().count() > SUBJECT_CHARS_MAX || text.lines().nth(1).is_some() {
        let cut: String = line.chars().take(SUBJECT_CHARS_MAX).collect();
        return format!("{cut}…");
    }
    line
}

/// What a call brought, as it came.
pub fn result_text(entry: &Entry) -> String {
    let blocks: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
    match &blocks[0]["content"] {
        Value::String(text) => text.clone(),
        content => {
            let texts = content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// The first line of what a call brought: why it failed, if it did.
fn first_line(entry: &Entry) -> String {
    subject(&result_text(entry).replace("<tool_use_error>", "").replace("</tool_use_error>", ""))
}

/// What came of a call that went well, in a few words.
pub fn brought(tool: &str, input: &Value, entry: &Entry) -> String {
    match tool {
        // What is written in the result is for the model; people want to know how much has changed.
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => match lines_changed(entry) {
            Some((added, removed)) => format!("+{added} −{removed}"),
            None => String::new(),
        },
        "TodoWrite" => {
            let todos = input["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
            let done = todos.iter().filter(|todo| todo["status"] == "completed").count();
            format!("{done} of {} done", todos.len())
        }
        "AskUserQuestion" => "answered".to_owned(),
        "EnterPlanMode" => String::new(),
        "ExitPlanMode" => "approved".to_owned(),
        "Bash" if is_silent(&result_text(entry)) => "no output".to_owned(),
        "Grep" | "Glob" if is_none(&result_text(entry)) => "nothing found".to_owned(),
        "Grep" | "Glob" => found(entry).unwrap_or_else(|| measure(entry)),
        "Bash" | "Agent" | "Task" if input["run_in_background"] == true => BESIDE.to_owned(),
        _ => measure(entry),
    }
}

/// What a search found: files, or lines of them. What it says beside that is for the model.
fn found(entry: &Entry) -> Option<String> {
    let detail: Value = serde_json::from_slice(entry.detail.as_ref()?).ok()?;
    let count = |name: &str| u32::try_from(detail[name].as_u64()?).ok();
    let files = || Some(counted(count("numFiles")?, "file"));
    let lines = |name: &str| Some(counted(count(name)?, "line"));
    let told = match detail["mode"].as_str() {
        Some("content") => lines("numLines"),
        Some("count") => Some(format!("{} in {}", lines("numMatches")?, files()?)),
        _ => files(),
    }?;
    // There may be more than the model was shown.
    Some(if detail["truncated"] == true { format!("the first {told}") } else { told })
}

/// How many lines a call added to a file and took away from it, if it did.
pub fn lines_changed(entry: &Entry) -> Option<(usize, usize)> {
    let detail: Value = serde_json::from_slice(entry.detail.as_ref()?).ok()?;
    let hunks = detail["structuredPatch"].as_array()?;
    // A file that is new is all new.
    if detail["type"] == "create" {
        return Some((detail["content"].as_str()?.lines().count(), 0));
    }
    let lines = hunks.iter().filter_map(|hunk| hunk["lines"].as_array()).flatten().filter_map(Value::as_str);
    Some(lines.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
        Some(b'+') => (added + 1, removed),
        Some(b'-') => (added, removed + 1),
        _ => (added, removed),
    }))
}

/// How much output was kept in a file because it was too long for the model.
fn bytes_kept(entry: &Entry) -> Option<u64> {
    let detail: Value = serde_json::from_slice(entry.detail.as_ref()?).ok()?;
    detail.get("persistedOutputSize")?.as_u64()
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Whether a search says that there is nothing.
fn is_none(found: &str) -> bool {
    found.starts_with("No ") && found.trim_end().ends_with(" found.") && found.trim_end().lines().count() == 1
}

/// Whether a command said nothing: that is told to the model in words.
fn is_silent(said: &str) -> bool {
    let said = said.trim();
    said.starts_with("[No output") && said.ends_with(']') && said.lines().count() == 1
}

/// How much a call brought: all of it, also where the model is shown a part.
pub fn measure(entry: &Entry) -> String {
    if let Some(bytes) = bytes_kept(entry) {
        return size(bytes);
    }
    let lines = result_text(entry).lines().count();
    counted(u32::try_from(lines).unwrap_or(u32::MAX), "line")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_tool_there_is_has_words() {
        for tool in pelton::tools::builtin::all() {
            let name = tool.spec().name;
            assert_ne!(doing(name, &json!({}), Path::new("/")), name);
        }
    }

    #[test]
    fn sizes_are_told_as_people_say_them() {
        for (bytes, told) in [(1, "1 kB"), (48_894, "49 kB"), (999_999, "1000 kB"), (2_000_000, "2.0 MB")] {
            assert_eq!(size(bytes), told);
        }
    }

    #[test]
    fn how_long_a_call_took_is_told_where_that_is_known() {
        let ms = Duration::from_millis;
        let mut took = Took::default();
        assert_eq!(took.of(ms(0), ms(4_500)), Some(ms(4_500)));
        // It was there long before, and told now.
        assert_eq!(took.of(ms(1), ms(4_501)), None);
        assert_eq!(took.of(ms(2), ms(4_503)), None);
        // These ended by themselves.
        assert_eq!(took.of(ms(3), ms(6_000)), Some(ms(5_997)));
        assert_eq!(took.of(ms(6_001), ms(6_010)), Some(ms(9)));
    }

    #[test]
    fn a_search_that_found_nothing_says_so() {
        for (found, none) in [
            ("No matches found.", true),
            ("No files found.\n", true),
            ("No one\nwas found.", false),
            ("a.rs", false),
            ("", false),
        ] {
            assert_eq!(is_none(found), none, "{found:?}");
        }
    }

    #[test]
    fn a_command_that_said_nothing_is_not_said_to_have_said_a_line() {
        for (said, silent) in [
            ("[No output.]", true),
            ("[No output; exit code 1: nothing was found.]\n", true),
            ("[No output.]\nor is there", false),
            ("No output", false),
            ("", false),
        ] {
            assert_eq!(is_silent(said), silent, "{said:?}");
        }
    }

    #[test]
    fn calls_are_told_in_words() {
        for (tool, input, told) in [
            ("NotebookEdit", json!({"notebook_path": "a.ipynb"}), "Editing a.ipynb"),
            ("WebFetch", json!({"url": "https://a.example/b"}), "Fetching https://a.example/b"),
            ("TaskOutput", json!({"task_id": "b1"}), "Looking at b1"),
            ("KillShell", json!({"shell_id": "b1"}), "Stopping b1"),
            ("mcp__weather__get_forecast", json!({}), "weather: get_forecast"),
            ("Bash", json!({"command": "ls\nrm"}), "Running ls…"),
            // Whatever is missing, or of another kind, or not known.
            ("Read", json!({"file_path": 3}), "Reading "),
            // Where the session works need not be said.
            ("Read", json!({"file_path": "/there/src/a.rs"}), "Reading src/a.rs"),
            ("Edit", json!({"file_path": "/there/a.rs"}), "Editing a.rs"),
            ("Write", json!({"file_path": "/theres/a.rs"}), "Writing /theres/a.rs"),
            ("Read", json!({"file_path": "/there"}), "Reading /there"),
            ("Read", json!({"file_path": "src/a.rs"}), "Reading src/a.rs"),
            ("mcp__odd", json!({}), "mcp__odd"),
            ("Own\u{1b}[2J", json!(null), "Own"),
        ] {
            assert_eq!(doing(tool, &input, Path::new("/there")), told, "{tool}");
        }
    }
}
