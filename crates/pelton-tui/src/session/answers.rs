//! What the terminal's own commands answer.

use std::fmt::Write as _;
use std::path::Path;

use pelton::permission::{Mode, Rule};
use pelton::transcript::{self, Listed, with_facts};
use pelton::{CLI_VERSION, Engine};
use pelton_model::{Effort, catalogue};
use pelton_serve::Served;
use ratatui_core::text::Line;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Chore, Left, Session};
use crate::app::Effect;
use crate::clean;
use crate::commands::{self, Own};
use crate::complete::palette::Entry;
use crate::draft::said;
use crate::feed::as_typed;
use crate::input::Submission;
use crate::status::mode_words;
use crate::theme::Role;

/// What the model is told about status lines.
const STATUS_LINE: &str = include_str!("statusline.md");

/// Keys, and what they do.
const KEYS: [(&str, &str); 11] = [
    ("Enter", "sends; while the model works: is read at its next step"),
    ("Tab", "while the model works: is read when it is done"),
    ("\\ Enter, Alt-Enter, Ctrl-J", "another line"),
    ("Esc", "interrupts; twice: back to an earlier prompt, files too"),
    ("Shift+Tab", "asks before changes / edits without asking / plans only"),
    ("Ctrl-C, Ctrl-D", "interrupts, clears, and twice leaves; leaves"),
    ("Ctrl-R, ↑ ↓", "looks through earlier prompts; goes through them"),
    ("Ctrl-O", "all of what was folded since your last prompt: output, thinking, diffs"),
    ("Ctrl-G, Ctrl-B, Ctrl-Z", "your own editor; what runs goes into the background; stops"),
    ("Ctrl-V, Ctrl-L", "a picture from the clipboard; paints the live rows anew"),
    ("@  /  !", "a file; a command; a command line of your own"),
];

impl Session<'_> {
    /// Commands that work whatever the engine does.
    pub(super) fn command(&mut self, own: Own, arguments: &str) {
        match own {
            Own::Help => self.help(),
            Own::Exit => self.perform(Effect::Leave),
            Own::Cost => self.cost(),
            Own::Model => self.model(arguments),
            Own::Effort => self.effort(arguments),
            Own::Permissions => self.permissions(),
            Own::Mcp => self.servers(arguments),
            Own::Agents => {
                let agents = self.agents.clone();
                self.tell_list("there are no agents", agents);
            }
            Own::Skills => self.skills(),
            Own::Memory => self.memory(),
            Own::Hooks => self.hooks(),
            Own::Btw => self.ask_beside(arguments),
            Own::Config => self.config(arguments),
            Own::Diff => self.changes(arguments),
            Own::OutputStyle => self.output_style(arguments),
            Own::Plugin => {
                let words = if arguments.is_empty() { "list" } else { arguments };
                let words = ["plugin"].into_iter().chain(words.split_whitespace());
                self.ask_program(vec![words.map(str::to_owned).collect()]);
            }
            Own::ReloadPlugins => {
                self.serve_with("reload_plugins", json!({}), |answer| Chore::Reloaded("plugin", answer));
            }
            Own::ReloadSkills => {
                self.serve_with("reload_skills", json!({}), |answer| Chore::Reloaded("skill", answer));
            }
            Own::VimMode => self.vim_mode(),
            Own::Status => self.status(),
            Own::Todos => {
                let todos = self.app.feed.todos();
                self.app.put(todos);
            }
            Own::Bashes => self.background(arguments),
            Own::Rename if arguments.is_empty() => self.name_session(),
            Own::Rename => self.rename(arguments),
            Own::Doctor => {
                let is_recorded = self.transcript.as_ref().is_some_and(|file| file.exists());
                let of_record = is_recorded.then(|| vec!["doctor".to_owned(), self.session_id.to_string()]);
                self.ask_program([vec!["doctor".to_owned()]].into_iter().chain(of_record).collect());
            }
            // These need the engine, and so wait for it.
            Own::Plan
            | Own::Resume
            | Own::Rewind
            | Own::Export
            | Own::Branch
            | Own::Cd
            | Own::Copy
            | Own::Debug
            | Own::StatusLine
            | Own::Theme => {
                self.needs.push_back(Effect::Command(own, arguments.to_owned()));
            }
        }
    }

    /// Commands that need the engine itself.
    pub(super) async fn command_with(&mut self, engine: &mut Engine, own: Own, arguments: String) {
        match own {
            Own::Plan => {
                self.set_mode(Mode::Plan);
                if arguments.is_empty() {
                    let words = "nothing is changed until you approve a plan (shift+tab ends this)";
                    self.app.say(words, Role::Faint);
                } else {
                    let shown = format!("/plan {arguments}");
                    self.submit(engine, &Submission { shown, ..said(&arguments) }).await;
                }
            }
            Own::Branch => self.branch(engine, &arguments),
            Own::Cd => self.move_to(engine, &arguments),
            Own::Copy => self.copy(engine, &arguments),
            Own::Debug => self.debug(engine, &arguments).await,
            Own::Theme => self.theme(&arguments),
            Own::StatusLine => {
                let shown = format!("/statusline {arguments}").trim_end().to_owned();
                let wishes = match arguments.as_str() {
                    "" => String::new(),
                    words => format!("\nWhat it should show: {words}\n"),
                };
                let text = format!("{STATUS_LINE}{wishes}");
                self.submit(engine, &Submission { shown, ..said(&text) }).await;
            }
            Own::Rewind => self.perform(Effect::ListPast),
            Own::Resume => self.resume(engine, &arguments),
            Own::Export => {
                let id = engine.session_id().to_string();
                let file = match arguments.as_str() {
                    "" => format!("pelton-{}.md", &id[..8]),
                    file => file.to_owned(),
                };
                self.app.say(&format!("the conversation goes to {file}"), Role::Faint);
                let words = ["sessions", "export", &id, "--output", &file];
                self.ask_program(vec![words.map(str::to_owned).to_vec()]);
            }
            own => self.command(own, &arguments),
        }
    }

    fn help(&mut self) {
        let told = |entry: &Entry| (format!("/{} {}", entry.name, entry.hint), entry.description.clone());
        let commands: Vec<(String, String)> = self.app.draft.commands().iter().map(told).collect();
        let knows_all = commands.len() > commands::all().count();
        let keys = KEYS.iter().map(|(keys, what)| ((*keys).to_owned(), (*what).to_owned()));
        self.app.say("Keys", Role::Strong);
        self.app.say_table(keys.collect());
        self.app.put(vec![Line::default()]);
        self.app.say("Commands", Role::Strong);
        self.app.say_table(commands);
        if !knows_all {
            self.app.say(
                "/compact, /uncompact, /autocompact, /context and /clear are about what the model is sent.",
                Role::Faint,
            );
        }
    }

    fn cost(&mut self) {
        let cost = &self.handles.cost;
        let (by_model, counted_usd) = (cost.by_model(), cost.counted_usd());
        if by_model.is_empty() && counted_usd == 0.0 {
            return self.app.say("nothing was spent yet", Role::Faint);
        }
        let mut text = format!("${:.4} in all\n", cost.usd());
        if self.spent_before > 0.0 {
            let _ =
                writeln!(text, "  ${:.4} of it before the session was gone on with here", self.spent_before);
        }
        if let Some(budget) = self.app.status.budget_usd {
            let _ = writeln!(
                text,
                "  ${counted_usd:.4} of ${budget:.2} that may be spent since the program began"
            );
        }
        for (model, used) in &by_model {
            let usage = &used.usage;
            let cost = used.cost_usd.map_or_else(|| "price unknown".to_owned(), |usd| format!("${usd:.4}"));
            let _ = writeln!(
                text,
                "  {model}: {cost} · {} in · {} out · {} read from the cache · {} written to it",
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens
            );
        }
        self.app.say(&text, Role::Text);
    }

    fn model(&mut self, wanted: &str) {
        if wanted.is_empty() {
            let now = self.handles.dials.model();
            let others = catalogue::models().iter().filter(|caps| caps.id != now);
            let others = others.map(|caps| (caps.id.to_owned(), window(caps.window)));
            let all = [(now.clone(), "now".to_owned())].into_iter().chain(others).collect();
            return self.app.ask_argument(Own::Model, "Ask which model?", all);
        }
        match self.handles.ask("set_model", json!({"model": wanted})) {
            Served::Now(Err(why)) => self.app.say(&why, Role::Error),
            _ => {
                let model = clean::line(&self.handles.dials.model());
                self.app.say(&format!("{model} is asked from now on"), Role::Faint);
            }
        }
    }

    fn effort(&mut self, wanted: &str) {
        match wanted.parse::<Effort>() {
            Ok(effort) => {
                self.handles.dials.set_effort(Some(effort));
                self.app.say(&format!("effort is {wanted} from now on"), Role::Faint);
            }
            Err(_) => {
                let now = self.handles.dials.effort().map_or("the model's own", Effort::as_str);
                let words = format!("effort is {now}; /effort low, medium, high, xhigh or max changes it");
                self.app.say(&words, if wanted.is_empty() { Role::Text } else { Role::Error });
            }
        }
    }

    fn permissions(&mut self) {
        let rules = self.handles.permissions.rules();
        let mode = self.handles.permissions.mode();
        let mut text = format!("mode: {} ({})\n", mode.name(), mode_words(mode));
        let mut tell = |name: &str, rules: &[Rule]| {
            for rule in rules {
                let _ = writeln!(text, "{name}: {rule}");
            }
        };
        tell("allow", &rules.allow);
        tell("ask", &rules.ask);
        tell("deny", &rules.deny);
        for root in self.handles.permissions.roots() {
            let _ = writeln!(text, "works in {}", root.display());
        }
        self.app.say(&text, Role::Text);
    }

    fn servers(&mut self, arguments: &str) {
        let (what, name) = arguments.split_once(' ').unwrap_or((arguments, ""));
        let body = match what {
            "reconnect" => ("mcp_reconnect", json!({"serverName": name})),
            "on" | "off" => ("mcp_toggle", json!({"serverName": name, "enabled": what == "on"})),
            _ => {
                let Served::Now(Ok(status)) = self.handles.ask("mcp_status", json!({})) else { return };
                let servers = status["mcpServers"].as_array().cloned().unwrap_or_default();
                let mut text = String::new();
                for server in &servers {
                    let word = |name: &str| server[name].as_str().unwrap_or_default();
                    let tools = server["tools"].as_array().map_or(0, Vec::len);
                    let error = server["error"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
                    let many = if tools == 1 { "tool" } else { "tools" };
                    let _ = writeln!(text, "{} · {} · {tools} {many}{error}", word("name"), word("status"));
                }
                return match servers.is_empty() {
                    true => self.app.say("there are no servers of tools (pelton mcp add)", Role::Faint),
                    false => self.app.say(&text, Role::Text),
                };
            }
        };
        self.serve_with(body.0, body.1, |answer| Chore::Served("mcp", answer));
    }

    fn hooks(&mut self) {
        let Served::Now(Ok(listing)) = self.handles.ask("get_hooks_listing", json!({})) else { return };
        let word = |hook: &Value, name: &str| hook[name].as_str().unwrap_or_default().to_owned();
        let told = |hook: &Value| {
            let when = match word(hook, "matcher").as_str() {
                "" => word(hook, "event"),
                matcher => format!("{} ({matcher})", word(hook, "event")),
            };
            let text = word(hook, "commandText");
            let first = text.lines().next().unwrap_or_default();
            (when, format!("{first} · {}", word(hook, "sourceLabel")))
        };
        let hooks = listing["hooks"].as_array().into_iter().flatten().map(told).collect();
        self.tell_list("no hooks are called", hooks);
    }

    fn memory(&mut self) {
        let Served::Now(Ok(usage)) = self.handles.ask("get_context_usage", json!({})) else { return };
        let files = usage["memoryFiles"].as_array().cloned().unwrap_or_default();
        let line =
            |file: &Value| format!("{} · {} tokens", file["path"].as_str().unwrap_or("?"), file["tokens"]);
        let files: Vec<String> = files.iter().map(line).collect();
        match files.is_empty() {
            true if self.init.is_none() => {
                self.app.say("memory files are read with the first prompt", Role::Faint);
            }
            true => self.app.say("the model was told of no memory files", Role::Faint),
            false => self.app.say(&files.join("\n"), Role::Text),
        }
    }

    fn status(&mut self) {
        let mut text = format!("Pelton {} (as {CLI_VERSION})\n", env!("CARGO_PKG_VERSION"));
        let mode = self.handles.permissions.mode();
        let _ = writeln!(text, "model {} · mode {}", self.handles.dials.model(), mode.name());
        let _ = writeln!(text, "works in {}", self.cwd.display());
        let _ = writeln!(text, "session {}", self.session_id);
        if let Some(file) = &self.transcript {
            let _ = writeln!(text, "recorded in {}", file.display());
        }
        if let Some(init) = &self.init {
            let _ = writeln!(
                text,
                "{} tools · {} commands · style {}",
                init.tools.len(),
                init.commands.len(),
                init.output_style
            );
        }
        if let Some(percent) = self.app.status.context_percent() {
            let _ = writeln!(text, "context {percent}% of {} tokens", self.app.status.window_tokens);
        }
        self.app.say(&text, Role::Text);
    }

    fn background(&mut self, arguments: &str) {
        if let Some(id) = arguments.strip_prefix("stop ") {
            return self.serve_with("stop_task", json!({"task_id": id.trim()}), |answer| {
                Chore::Served("stop", answer)
            });
        }
        let running = self.handles.tasks.running();
        if running.is_empty() {
            return self.app.say("nothing runs in the background", Role::Faint);
        }
        let lines: Vec<String> = running
            .iter()
            .map(|task| {
                let words = clean::line(&task.description);
                format!("{} · {words} · output in {}", task.id, task.output.display())
            })
            .collect();
        self.app.say(&format!("{}\n/bashes stop ID ends one", lines.join("\n")), Role::Text);
    }

    /// Another session goes on from here, and this one stays as it is.
    fn branch(&mut self, engine: &Engine, name: &str) {
        let session = engine.session_id();
        let is_recorded = engine.transcript_file().is_some_and(|file| file.exists());
        if !is_recorded || engine.history().is_empty() {
            return self
                .app
                .say("nothing of this session is recorded that a branch could go on from", Role::Error);
        }
        if !self.is_somewhere() {
            return;
        }
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        // Whoever went on writing while this waited goes on there.
        let written = self.app.draft.submit();
        let stands = self.stands();
        self.leave(Left::Branch { session, name, written, stands });
    }

    fn resume(&mut self, engine: &Engine, wanted: &str) {
        if !self.is_somewhere() {
            return;
        }
        if let Ok(id) = wanted.parse::<Uuid>() {
            let dir = self.config_dir.as_deref();
            return match dir.and_then(|dir| transcript::find_session(dir, &self.cwd, id)) {
                Some(_) => self.leave_for(id),
                None => self.app.say(&format!("there is no session {id}"), Role::Error),
            };
        }
        let sessions = self.config_dir.as_deref().map(|dir| sessions_of(dir, &self.cwd)).unwrap_or_default();
        let own = engine.session_id();
        let others: Vec<_> = sessions.into_iter().filter(|(id, ..)| *id != own).collect();
        let mut named = others.iter().filter(|(_, name, _)| !wanted.is_empty() && name == wanted);
        match (named.next(), named.next()) {
            (Some((id, ..)), None) => return self.leave_for(*id),
            (None, _) if !wanted.is_empty() => {
                self.app.say(&format!("no session here is called {}", clean::line(wanted)), Role::Error);
            }
            _ => {}
        }
        self.app.ask_session(others);
    }

    fn skills(&mut self) {
        let Some(init) = &self.init else {
            let words = "skills are looked for with the first prompt; /help lists the commands";
            return self.app.say(words, Role::Faint);
        };
        let about = |name: &String| {
            let known = init.commands.iter().find(|command| command.name == *name);
            (name.clone(), known.map(|command| command.description.clone()).unwrap_or_default())
        };
        let skills = init.skills.iter().map(about).collect();
        self.tell_list("there are no skills", skills);
    }

    /// Names, and the first line of what is said about each.
    fn tell_list(&mut self, none: &str, named: Vec<(String, String)>) {
        let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
        match named.is_empty() {
            true => self.app.say(none, Role::Faint),
            false => {
                self.app.say_table(named.into_iter().map(|(name, about)| (name, first(about))).collect());
            }
        }
    }
}

/// How many tokens a model reads, in two or three letters.
fn window(tokens: u64) -> String {
    match tokens {
        1_000_000.. => format!("{}M", tokens / 1_000_000),
        tokens => format!("{}k", tokens / 1_000),
    }
}

/// The sessions of a directory, the newest first: their ids, what they are called, when they were last written to.
pub fn sessions_of(config_dir: &Path, cwd: &Path) -> Vec<(Uuid, String, String)> {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let here = |one: &Listed| !one.facts.is_sidechain;
    let told = |one: Listed| {
        let facts = &one.facts;
        let words = facts.title.as_ref().or(facts.first_prompt.as_ref()).or(facts.last_prompt.as_ref());
        let words = words.map(|words| as_typed(words)).filter(|words| !words.is_empty());
        let words = words.unwrap_or_else(|| "(nothing was asked)".to_owned());
        let ago = one.file.modified.elapsed().map(|ago| ago.as_secs()).unwrap_or_default();
        let when = match ago {
            0..60 => format!("{ago} s ago"),
            60..3_600 => format!("{} min ago", ago / 60),
            3_600..86_400 => format!("{} h ago", ago / 3_600),
            86_400..172_800 => "1 day ago".to_owned(),
            _ => format!("{} days ago", ago / 86_400),
        };
        (one.file.id, words.split_whitespace().collect::<Vec<_>>().join(" "), when)
    };
    with_facts(&transcript::sessions_of(config_dir, &cwd)).into_iter().filter(here).map(told).collect()
}

/// What going back would do to files, in a line each: paths as they are seen from here.
pub(super) fn files_of(preview: &Value, cwd: &Path) -> Vec<String> {
    let files = preview["filesChanged"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let short =
        |file: &str| Path::new(file).strip_prefix(cwd).unwrap_or(Path::new(file)).display().to_string();
    let mut lines: Vec<String> = files.map(short).collect();
    if !lines.is_empty() {
        let lines_of = |name: &str| match preview[name].as_u64() {
            Some(1) => "1 line".to_owned(),
            count => format!("{} lines", count.unwrap_or_default()),
        };
        lines.push(format!("comes back: {} · goes: {}", lines_of("insertions"), lines_of("deletions")));
    }
    lines
}
