//! Commands that are always there: those that tell how the session stands, those that set something for its rest, and a few texts
//! that tell the model what to do. Whoever brings a command or a skill of the same name is called instead.

use std::fmt::Write as _;

use pelton_model::{Effort, Speed, catalogue};
use pelton_wire::usage::Usage;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::beside::SESSION_COLORS;
use super::input::{Answered, Taken, tell};
use crate::command::{Called, Expansion};
use crate::event::{CommandInfo, Event};
use crate::hooks::{HookEvent, ModelSwitch, PermissionDecision};
use crate::permission::{Behavior, Change, Mode, Update};

/// A command that is always there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct House {
    command: Command,
    arguments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    AddDir,
    Agents,
    Btw,
    Color,
    Cost,
    Effort,
    Fast,
    Help,
    Hooks,
    Mcp,
    Model,
    Permissions,
    Plan,
    Rename,
    Skills,
    Status,
    Tasks,
}

/// Name, other names, what it does, what comes behind it.
const COMMANDS: [(Command, &str, &[&str], &str, &str); 17] = [
    (Command::AddDir, "add-dir", &[], "Lets the session work in one more directory", "<directory>"),
    (Command::Agents, "agents", &[], "Tells which agents there are", ""),
    (Command::Btw, "btw", &[], "Asks beside the conversation; nothing of it is kept", "<question>"),
    (Command::Color, "color", &[], "Shows the session in another colour", "<colour | default>"),
    (Command::Cost, "cost", &["usage", "stats"], "Tells what the session has consumed", ""),
    (
        Command::Effort,
        "effort",
        &[],
        "Tells or sets how hard the model tries",
        "[low | medium | high | xhigh | max]",
    ),
    (Command::Fast, "fast", &[], "Switches fast answers on or off", "[on | off]"),
    (Command::Help, "help", &[], "Tells which commands there are", ""),
    (Command::Hooks, "hooks", &[], "Tells which hooks are called", ""),
    (Command::Mcp, "mcp", &[], "Tells how the MCP servers are doing", ""),
    (Command::Model, "model", &[], "Tells or sets which model is asked", "[model | default]"),
    (Command::Permissions, "permissions", &["allowed-tools"], "Tells what may run", ""),
    (Command::Plan, "plan", &[], "Lets the model plan before it changes anything", ""),
    (Command::Rename, "rename", &[], "Gives the session a name", "<name>"),
    (Command::Skills, "skills", &[], "Tells which skills there are", ""),
    (Command::Status, "status", &[], "Tells how the session stands", ""),
    (Command::Tasks, "tasks", &["bashes"], "Tells what runs in the background", ""),
];

/// Commands that tell the model what to do: name, what it does, what comes behind it, the text.
const TEXTS: [(&str, &str, &str, &str); 3] = [
    (
        "init",
        "Writes what an agent must know about this project into CLAUDE.md",
        "[what to look after]",
        include_str!("house/init.md"),
    ),
    ("review", "Reviews a change", "[pull request, branch or commit]", include_str!("house/review.md")),
    (
        "security-review",
        "Looks for security problems in what is about to be merged",
        "[branch or commit]",
        include_str!("house/security_review.md"),
    ),
];

impl House {
    /// The command that was called, if it is one of these.
    pub fn called(called: &Called<'_>) -> Option<Self> {
        let is_it = |name: &str, others: &[&str]| name == called.name || others.contains(&called.name);
        let (command, ..) = COMMANDS.iter().find(|(_, name, others, ..)| is_it(name, others))?;
        Some(Self { command: *command, arguments: called.arguments.to_owned() })
    }
}

/// What the model is told by a command that is always there.
pub(super) fn text(called: &Called<'_>) -> Option<Expansion> {
    // Some know it by this name.
    let wanted = if called.name == "code-review" { "review" } else { called.name };
    let (.., text) = TEXTS.iter().find(|(name, ..)| *name == wanted)?;
    let wishes = match called.arguments {
        "" => String::new(),
        arguments => format!("\n\nWhat the user adds: {arguments}"),
    };
    Some(Expansion::prompt(format!("{}{wishes}", text.trim_end())))
}

/// The commands, as users see them.
pub(super) fn commands(with_texts: bool) -> impl Iterator<Item = CommandInfo> {
    let house = COMMANDS.iter().map(|(_, name, _, description, hint)| (*name, *description, *hint));
    let texts = TEXTS
        .iter()
        .filter(move |_| with_texts)
        .map(|(name, description, hint, _)| (*name, *description, *hint));
    house.chain(texts).map(|(name, description, argument_hint)| CommandInfo {
        name: name.to_owned(),
        description: description.to_owned(),
        argument_hint: argument_hint.to_owned(),
    })
}

impl Engine {
    /// Works off a command that is always there.
    pub(super) async fn keep_house(
        &mut self,
        wanted: House,
        cancel: &CancellationToken,
        told: &mut Vec<Event>,
    ) -> Taken {
        let arguments = wanted.arguments.as_str();
        let answer = match wanted.command {
            Command::AddDir => self.add_dir(arguments, cancel, told).await,
            Command::Agents => Ok(self.tell_agents()),
            Command::Btw => {
                let asked = self.bystander().ask(arguments);
                match cancel.run_until_cancelled(asked).await {
                    Some(answer) => answer.map_err(|why| why.to_string()),
                    None => Err("The question was given up.".to_owned()),
                }
            }
            Command::Color if arguments.is_empty() => {
                Err(format!("Which one? /color <{}>", SESSION_COLORS.join(" | ")))
            }
            Command::Color => {
                let colored = self.title().color(arguments).map_err(|error| error.to_string());
                colored.map(|()| format!("The session is shown in {arguments} from now on."))
            }
            Command::Cost => Ok(self.tell_cost()),
            Command::Effort => self.set_effort(arguments),
            Command::Fast => self.set_fast(arguments),
            Command::Help => Ok(self.tell_commands()),
            Command::Hooks => {
                let hooks: Vec<String> = self.kin.hooks.listed().iter().map(ToString::to_string).collect();
                Ok(or_none(&hooks, "No hooks are called."))
            }
            Command::Mcp => Ok(self.tell_servers()),
            Command::Model if arguments.is_empty() => Ok(format!("{} is asked.", self.options.model)),
            Command::Model => {
                let wanted = Some(arguments).filter(|model| *model != "default");
                self.switch_model(wanted, cancel, told).await
            }
            Command::Permissions => Ok(self.tell_permissions()),
            Command::Plan => {
                let update = Update::session(Change::SetMode(Mode::Plan));
                let set = self.kin.permissions.apply(&update).map_err(|error| error.to_string());
                told.push(Event::PermissionsChanged([update].into()));
                set.map(|()| "Plan mode is on: nothing is changed before you have agreed.".to_owned())
            }
            Command::Rename if arguments.is_empty() => Err("What is it called? /rename <name>".to_owned()),
            Command::Rename => {
                let named = self.title().set(arguments).map_err(|error| error.to_string());
                named.map(|()| format!("The session is called {arguments} now."))
            }
            Command::Skills => Ok(self.tell_skills()),
            Command::Status => Ok(self.tell_status()),
            Command::Tasks => {
                let line = |task: &crate::tools::BackgroundTask| format!("{} {}", task.id, task.description);
                let lines: Vec<String> = self.tasks().running().iter().map(|task| line(task)).collect();
                Ok(or_none(&lines, "Nothing runs in the background."))
            }
        };
        let (text, is_error) = match answer {
            Ok(text) => (text, false),
            Err(text) => (text, true),
        };
        told.push(match is_error {
            true => self.synthetic(text.clone()),
            false => Event::CommandOutput { content: text.clone() },
        });
        Taken::Local(Answered { text, is_error })
    }

    async fn add_dir(
        &mut self,
        named: &str,
        cancel: &CancellationToken,
        told: &mut Vec<Event>,
    ) -> Result<String, String> {
        if named.is_empty() {
            return Err("Which one? /add-dir <directory>".to_owned());
        }
        let cwd = self.cwd();
        let dir = match (named.strip_prefix("~/"), &self.options.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => cwd.join(named),
        };
        let dir =
            dir.canonicalize().map_err(|error| format!("{} cannot be added: {error}", dir.display()))?;
        if !dir.is_dir() {
            return Err(format!("{} is no directory.", dir.display()));
        }
        let update = Update::session(Change::AddDirectories(vec![dir.clone()]));
        self.kin.permissions.apply(&update).map_err(|error| error.to_string())?;
        told.push(Event::PermissionsChanged([update].into()));
        if let Some(fired) = self.session_hooks(cancel).directory_added(&dir, "slash_command", &cwd).await {
            tell(fired, told);
        }
        Ok(format!("The session works in {}, too.", dir.display()))
    }

    /// A client has set another model: hooks are asked before it counts, and told when it does.
    pub(super) async fn heed_client(&mut self, cancel: &CancellationToken, told: &mut Vec<Event>) {
        self.panel.dials.set_planning(self.kin.permissions.mode() == Mode::Plan);
        let (from, to) = (self.options.model.clone(), self.panel.dials.model());
        if from == to || self.kin.agent.is_some() {
            return self.heed_dials();
        }
        let refused = self.may_switch(&from, &to, &to, "sdk", cancel, told).await.err();
        if let Some(content) = refused {
            // It was the model before, so it may be asked.
            let _ = self.panel.dials.set_model(Some(&from));
            told.push(Event::Informational { content, prevents_continuation: false });
        }
        self.heed_dials();
        if self.options.model == to {
            self.tell_switched(&from, &to, &to, "sdk", cancel, told).await;
        }
    }

    async fn switch_model(
        &mut self,
        wanted: Option<&str>,
        cancel: &CancellationToken,
        told: &mut Vec<Event>,
    ) -> Result<String, String> {
        let from = self.options.model.clone();
        let requested = wanted.unwrap_or("default");
        if let Some(model) = wanted {
            let to = catalogue::resolve(model);
            self.may_switch(&from, &to, requested, "command", cancel, told).await?;
        }
        self.panel.dials.set_model(wanted).map_err(|error| error.to_string())?;
        self.heed_dials();
        let to = self.options.model.clone();
        if to != from {
            self.tell_switched(&from, &to, requested, "command", cancel, told).await;
        }
        Ok(format!("{to} is asked from now on."))
    }

    /// Whether hooks let another model be asked.
    async fn may_switch(
        &self,
        from: &str,
        to: &str,
        requested: &str,
        source: &str,
        cancel: &CancellationToken,
        told: &mut Vec<Event>,
    ) -> Result<(), String> {
        let switch = self.switch(from, to, requested, source);
        let hooks = self.session_hooks(cancel);
        let event = HookEvent::PreModelSwitch;
        let Some(mut fired) = hooks.model_switch(event, &switch, &self.cwd()).await else { return Ok(()) };
        let answer = fired.verdict.permission.take();
        let objection = fired.verdict.stop.take().or(fired.verdict.block.take());
        tell(fired, told);
        let refusal = answer.filter(|answer| answer.decision != PermissionDecision::Allow);
        let why = refusal.map(|answer| answer.reason.unwrap_or_default()).or(objection);
        match why {
            None => Ok(()),
            Some(why) if why.is_empty() => Err(format!("A hook did not let {to} be asked.")),
            Some(why) => Err(format!("A hook did not let {to} be asked: {why}")),
        }
    }

    async fn tell_switched(
        &self,
        from: &str,
        to: &str,
        requested: &str,
        source: &str,
        cancel: &CancellationToken,
        told: &mut Vec<Event>,
    ) {
        let switch = self.switch(from, to, requested, source);
        let hooks = self.session_hooks(cancel);
        if let Some(fired) = hooks.model_switch(HookEvent::PostModelSwitch, &switch, &self.cwd()).await {
            tell(fired, told);
        }
    }

    fn switch<'a>(&self, from: &'a str, to: &'a str, requested: &'a str, source: &'a str) -> ModelSwitch<'a> {
        let context_tokens = self.session.history.view().tokens();
        let prices = &self.options.prices;
        let written = Usage { cache_creation_input_tokens: context_tokens, ..Usage::default() };
        let write_usd = catalogue::cost(to, &written, prices);
        let is_priced_by_user = prices.iter().any(|(model, _)| model == to);
        ModelSwitch { from, to, requested, source, context_tokens, write_usd, is_priced_by_user }
    }

    fn set_effort(&mut self, level: &str) -> Result<String, String> {
        if level.is_empty() {
            let level = self.options.effort.map_or("as hard as it does by itself", Effort::as_str);
            return Ok(format!("Effort: {level}."));
        }
        let level: Effort = level.parse().map_err(|error| format!("{error}"))?;
        (self.options.effort, self.question.effort) = (Some(level), Some(level));
        Ok(format!("Effort: {} from now on.", level.as_str()))
    }

    fn set_fast(&mut self, wanted: &str) -> Result<String, String> {
        let on = match wanted {
            "" => !self.options.fast_mode,
            "on" => true,
            "off" => false,
            other => return Err(format!("'{other}' is neither on nor off.")),
        };
        self.options.fast_mode = on;
        self.question.speed = if on { Speed::Fast } else { Speed::Standard };
        Ok(format!("Fast answers are {}.", if on { "on" } else { "off" }))
    }

    fn tell_agents(&self) -> String {
        let lines =
            self.options.agents.iter().map(|agent| format!("{}: {}", agent.name, agent.description.trim()));
        or_none(&lines.collect::<Vec<_>>(), "There are no agents.")
    }

    fn tell_cost(&self) -> String {
        let mut text = format!("Total cost: ${:.4}", self.kin.spending.cost_usd());
        for (model, used) in self.kin.spending.by_model() {
            let usage = &used.usage;
            let cost = used.cost_usd.map_or("price not known".to_owned(), |cost| format!("${cost:.4}"));
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n{model}: {} tokens in ({} from the cache), {} out, {cost}",
                usage.prompt_tokens(),
                usage.cache_read_input_tokens,
                usage.output_tokens
            );
        }
        text
    }

    fn tell_commands(&self) -> String {
        let mut lines: Vec<String> = self
            .menu()
            .all()
            .into_iter()
            .map(|command| {
                let hint = if command.argument_hint.is_empty() {
                    String::new()
                } else {
                    format!(" {}", command.argument_hint)
                };
                format!("/{}{hint}  {}", command.name, command.description)
            })
            .collect();
        lines.sort();
        lines.join("\n")
    }

    fn tell_servers(&self) -> String {
        let lines = self.offer.list().all().into_iter().map(|server| {
            let (state, tools) = (server.state().name(), server.tools().len());
            format!("{}: {state}, {tools} tools", server.name())
        });
        or_none(&lines.collect::<Vec<_>>(), "There are no MCP servers.")
    }

    fn tell_permissions(&self) -> String {
        let permissions = &self.kin.permissions;
        let rules = permissions.rules();
        let mut text = format!("Mode: {}", permissions.mode().name());
        for (behavior, rules) in
            [(Behavior::Deny, &rules.deny), (Behavior::Ask, &rules.ask), (Behavior::Allow, &rules.allow)]
        {
            for rule in rules {
                let _ = write!(text, "\n{}: {rule}", behavior.name());
            }
        }
        for root in permissions.roots() {
            let _ = write!(text, "\nworks in: {}", root.display());
        }
        text
    }

    fn tell_skills(&self) -> String {
        let skills = self.skills.all();
        let lines = skills.iter().map(|skill| format!("{}: {}", skill.name, skill.description));
        or_none(&lines.collect::<Vec<_>>(), "There are no skills.")
    }

    fn tell_status(&self) -> String {
        let usage = self.session.history.view().tokens();
        let window = self.options.room(&self.options.model).window_tokens;
        format!(
            "Session: {}\nModel: {}\nMode: {}\nDirectory: {}\nContext: about {usage} of {window} tokens\nCost: ${:.4}",
            self.session.id,
            self.options.model,
            self.kin.permissions.mode().name(),
            self.cwd().display(),
            self.kin.spending.cost_usd()
        )
    }
}

fn or_none(lines: &[String], none: &str) -> String {
    if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
}
