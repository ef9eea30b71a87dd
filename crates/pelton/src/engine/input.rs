//! From what was typed to what the model is told: hooks, commands, mentions. Nothing is recorded before it is clear
//! that the model will be asked; then all of it is, and it is on the disk before the model hears of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pelton_model::{Effort, catalogue};
use pelton_wire::content::Block;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Engine;
use super::arriving::Statement;
use super::followed;
use super::gather::{self, CALLED_AGAIN, Gathered};
use super::house::{self, House};
use super::reshape::Reshaping;
use crate::command::{Called, Command, CommandCx};
use crate::context::attachment::Attachment;
use crate::context::{
    Surroundings, git_branch, news_of_the_branch, news_of_the_day, news_of_the_place, reminder,
};
use crate::event::{Event, Synthetic};
use crate::history::Entry;
use crate::hooks::{Expanded, Fired, HookEvent, SessionHooks};
use crate::limits::SKILLS_STACKED_MAX;
use crate::permission::{Loan, Mode};
use crate::prompt::{Prompt, PromptBlock};
use crate::reload;
use crate::session::{content, fresh_id};
use crate::status::Phase;
use crate::tools::agent;
use crate::tools::background::lost_agent;
use crate::tools::builtin::plan;
use crate::tools::changed::{Changed, Which, changed_since};
use crate::tools::file_memory::Fingerprint;
use crate::tools::mentions::{Attached, Mentioned, attachments};
use crate::tools::offer::Callable;
use crate::transcript::TranscriptError;
use crate::turn::Terminal;
use crate::turn::live::{INTERRUPTED, attachment_of};

/// What comes of a prompt.
pub(super) enum Taken {
    /// The model is asked.
    Ask(Order),
    /// It is not: this is the answer.
    Local(Answered),
    /// Something is to be done to what the model is sent.
    Reshape(Reshaping),
    /// A command that is always there was called.
    House(House),
    /// The submission ends before the model is asked.
    Ended(Terminal),
    /// The user interrupted.
    Interrupted {
        /// Nothing was done about it yet: a prompt that waited goes on waiting.
        before_it_began: bool,
    },
}

/// What the model is asked, and how.
pub(super) struct Order {
    pub prompt: Arc<Entry>,
    pub choices: Choices,
    /// An agent is to answer, and not the model of the main thread.
    pub agent: Option<agent::Order>,
}

/// What holds for one submission only.
#[derive(Debug, Default)]
pub(super) struct Choices {
    pub model: Option<String>,
    pub effort: Option<Effort>,
    pub loan: Loan,
}

/// An answer without a model.
pub(super) struct Answered {
    pub text: String,
    pub is_error: bool,
}

/// What is said around a prompt.
#[derive(Default)]
struct Around {
    /// Words of hooks.
    contexts: Vec<String>,
    attached: Vec<Attached>,
    /// Files that are not any more what the model read.
    changed: Vec<Changed>,
    /// The file of the skill whose text the prompt is.
    skill: Option<PathBuf>,
    /// The task of the agent that follows the skill instead.
    agent: Option<agent::Order>,
}

/// What an agent is told that must not change anything.
const ONLY_LOOKS: &str = "Nothing may be changed here: you can read and search, and run commands that do no more than that. \
Everything else is refused.";

impl Engine {
    /// Works off what was submitted; `queued` are the prompts that waited and are part of it. What there is to tell is
    /// told behind the submission's first event.
    pub(super) async fn take_in(
        &mut self,
        mut prompt: Prompt,
        queued: &[Uuid],
        cancel: &CancellationToken,
        statement: &mut Statement<'_>,
        told: &mut Vec<Event>,
    ) -> Result<Taken, TranscriptError> {
        self.board.enter(Phase::SystemPromptConstruction);
        let id = *prompt.id.get_or_insert_with(|| fresh_id(self.options.world.as_ref()));
        if self.kin.agent.is_none() {
            self.prompt_id = Some(id);
        }
        // What an agent is told, no user has typed.
        let typed = self.kin.agent.is_none() && !prompt.by_harness;
        let mut hooks = self.session_hooks(cancel);
        let judging = [HookEvent::UserPromptSubmit, HookEvent::UserPromptExpansion];
        if typed && judging.into_iter().any(|event| hooks.listens(event)) {
            hooks.cx.reach.agents = Some(self.judges(cancel, statement.events));
        }
        if let (Some(watch), None) = (&self.options.settings_watch, &self.kin.agent) {
            told.extend(reload::heed(&**watch, &hooks, &self.kin.permissions, &self.cwd()).await);
        }
        self.take_in_what_joined();
        self.take_in_roots(&hooks, told).await;
        // A file or two of a few bytes: a thread for them would cost more, and a session played from a seed has none.
        let branch = git_branch(&self.options.cwd);
        let gathering = self.gather();
        let (gathered, stopped) =
            tokio::join!(gathering, self.begin_session(self.beginning(), &hooks, cancel, told));
        if let Some(content) = stopped {
            told.push(Event::Informational { content, prevents_continuation: true });
            return Ok(Taken::Ended(Terminal::HookStopped));
        }
        if std::mem::take(&mut self.to_tell.skills_came) {
            // They were looked for while the hooks were at work that brought some.
            self.skills.discover().await;
        }
        let notices = self.memory.take_notices().into_iter();
        told.extend(notices.map(|content| Event::Informational { content, prevents_continuation: false }));
        self.hear_files(&hooks, told).await;
        self.hear_background(&hooks, told);
        if !self.has_gathered {
            self.bring_back_skill_hooks().await;
        }
        self.renew_prefix_if_all_are_there();

        self.board.enter(Phase::ProcessUserInput);
        let mut around = Around::default();
        if typed {
            self.woken = 0;
        }
        let is_new = self.session.history.entries().is_empty();
        if typed && let Some(words) = self.options.initial_prompt.take().filter(|_| is_new) {
            prompt.say_first(&words);
        }
        let asks_hooks = typed && !cancel.is_cancelled();
        let fired = if asks_hooks { hooks.prompt(&prompt.words()).await } else { None };
        self.heed_title(fired.as_ref());
        let mut choices = Choices::default();
        let taken = match heard(fired, cancel, &mut around.contexts, told) {
            None => {
                // Commands may be theirs, too.
                self.meet_servers(cancel, statement, told).await;
                let interrupted =
                    cancel.is_cancelled().then_some(Taken::Interrupted { before_it_began: false });
                match interrupted {
                    None => {
                        self.expand_command(&mut prompt, &hooks, cancel, &mut choices, &mut around, told)
                            .await
                    }
                    interrupted => interrupted,
                }
            }
            taken => taken,
        };
        match taken {
            Some(taken @ Taken::Interrupted { .. }) => {
                self.record_interrupted(&prompt, queued, INTERRUPTED, gathered, told).await?;
                return Ok(taken);
            }
            Some(taken) => return Ok(taken),
            None => {}
        }
        if let Some(words) = self.to_tell.initial_message.take().filter(|_| typed) {
            prompt.blocks.insert(0, PromptBlock::Text(words));
        }
        let mut changed = self.changed_meanwhile().await;
        let now = self.options.world.monotonic();
        changed.extend(self.file_news.changed.look(&self.options.files, Which::All, now).await);
        if !prompt.verbatim && self.options.attaches_mentioned {
            let cx = self.tool_cx(cancel.child_token());
            let Mentioned { attached, problems } =
                attachments(&prompt.words(), &self.kin.permissions, self.offer.library(), &cx).await;
            around.attached = attached;
            around.contexts.extend(problems.iter().cloned());
            let said = problems.into_iter();
            told.extend(said.map(|content| Event::Informational { content, prevents_continuation: false }));
        }
        let words = prompt.only_words();
        let Some(prompt) = cancel.run_until_cancelled(prompt.made_to_fit()).await else {
            self.record_interrupted(&words, queued, INTERRUPTED, gathered, told).await?;
            return Ok(Taken::Interrupted { before_it_began: false });
        };
        let agent = around.agent.take();
        let prompt =
            self.record_input(&prompt, queued, Around { changed, ..around }, branch, gathered, told).await?;
        if let Some(title) = self.to_tell.title.take() {
            // A name is a courtesy: without one the session is found by its first words.
            let _ = self.title().set(&title);
        }
        // Everything the prompt produced is on the disk before the model is asked: a killed process resumes from it.
        self.session.sync().await?;
        Ok(Taken::Ask(Order { prompt, choices, agent }))
    }

    /// A3: the user interrupted before the prompt was recorded, in a hook for example. Both are recorded now, and are on the
    /// disk before the result is told. Tells how many words there are in the user's role beside the prompt.
    pub(super) async fn record_interrupted(
        &mut self,
        prompt: &Prompt,
        queued: &[Uuid],
        note: &str,
        gathered: Gathered,
        told: &mut Vec<Event>,
    ) -> Result<u32, TranscriptError> {
        let branch = git_branch(&self.options.cwd);
        if !prompt.blocks.is_empty() {
            let entry = self.record_input(prompt, queued, Around::default(), branch, gathered, told).await?;
            told.push(Event::Prompt(entry));
        } else {
            self.session.record.open(branch)?;
        }
        // A prompt that takes this one's place says enough, and nothing was interrupted where nothing was said.
        if self.queue.is_urgent() || self.session.history.entries().is_empty() {
            return Ok(0);
        }
        told.push(Event::Message(self.session.record_prompt(note, true)?));
        Ok(1)
    }

    /// A prompt that nobody answers yet.
    pub(super) async fn record_alone(
        &mut self,
        prompt: &Prompt,
        branch: Option<String>,
    ) -> Result<(), TranscriptError> {
        let gathered = self.gather().await;
        // There is no submission to tell it in; whoever reads the record finds it there.
        let mut told = Vec::new();
        self.record_input(prompt, &[], Around::default(), branch, gathered, &mut told).await?;
        self.session.sync().await
    }

    async fn record_input(
        &mut self,
        prompt: &Prompt,
        queued: &[Uuid],
        around: Around,
        branch: Option<String>,
        gathered: Gathered,
        told: &mut Vec<Event>,
    ) -> Result<Arc<Entry>, TranscriptError> {
        self.session.record.open(branch.clone())?;
        let last_told = self.session.history.last().map(|entry| entry.at);
        let another_day = last_told.and_then(|last| news_of_the_day(last, self.options.world.now()));
        let view = self.session.history.view();
        let another_branch = news_of_the_branch(branch.as_deref(), |said| view.told_last(said));
        // A process stays where it began.
        let may_have_moved = self.kin.agent.is_none() && !self.has_gathered;
        let another_place = may_have_moved.then(|| {
            news_of_the_place(&self.options.cwd, &self.beside.spill_dir, |said| view.told_last(said))
        });
        let news = self.offer.news(Callable::Now, |words| view.tells(words));
        if self.session.history.entries().is_empty() {
            let roots = self.kin.permissions.roots();
            let now = self.options.world.now();
            let git = gathered.git.as_ref();
            let text = Surroundings { roots: &roots, git_branch: branch.as_deref(), git, now }.text();
            self.session.record_prompt(&text, true)?;
            let notes = gather::notes(&self.options);
            let told_later = self.options.system_prompt.told_later(notes, &self.tool_names());
            for words in told_later {
                self.session.record_prompt(&reminder(&[words]), true)?;
            }
            // What servers have from the beginning is no news, unless it is known by name only.
            if let Some(shelved) = self.offer.shelved() {
                self.session.record_attachment(&Attachment::served(self.offer.told(), shelved))?;
            }
        } else if let Some(news) = news {
            self.session.record_attachment(&Attachment::served(self.offer.told(), news))?;
        }
        let of_roots = self.memory.of_roots(std::mem::take(&mut self.to_tell.roots)).await;
        for instructions in gathered.instructions.into_iter().chain(of_roots) {
            told.push(Event::Attachment(self.session.record_attachment(&instructions)?));
        }
        self.has_gathered = true;
        if let Some(news) = self.skills.news(self.listing_chars_max()) {
            told.push(Event::Attachment(self.session.record_attachment(&news)?));
        }
        self.session.heard_of_files(&around.changed);
        if let Some(changed) = attachment_of(around.changed) {
            told.push(Event::Attachment(self.session.record_attachment(&changed)?));
        }
        let mut contexts = std::mem::take(&mut self.to_tell.contexts);
        contexts.extend(another_place.flatten());
        contexts.extend(another_day);
        contexts.extend(another_branch);
        contexts.extend(std::mem::take(&mut self.to_tell.lost_agents).iter().map(|agent| lost_agent(agent)));
        contexts.extend(self.background.news_for_model());
        contexts.extend(self.news_of_plan_mode());
        contexts.extend(around.contexts);
        self.session.record_around(&contexts, &around.attached)?;
        // What the prompt mentions was read.
        let read = self.options.files.used_since(self.file_news.told);
        self.file_news.told = self.options.files.now();
        for attachment in self.memory.touched(read).await {
            told.push(Event::Attachment(self.session.record_attachment(&attachment)?));
        }
        self.session.record_input(prompt, queued, around.skill, self.kin.permissions.mode())
    }

    /// Files that are not what an earlier process of the session knew of them. Asked once.
    async fn changed_meanwhile(&mut self) -> Vec<Changed> {
        let Some(resumed) = &mut self.options.resume else { return Vec::new() };
        let known = std::mem::take(&mut resumed.conversation.files);
        if known.sample != Fingerprint::sample() {
            return Vec::new();
        }
        let readable = self.kin.permissions.gate().readable(&self.cwd());
        let files = &self.options.files;
        known.remember(files, |path| readable.allows(path, path));
        // That they were read is no news. Whether they have changed since is seen where all are looked at.
        (self.file_news.told, self.file_news.noted) = (files.now(), files.now());
        let is_other = |path: &Path| readable.allows(path, path) && !files.remembers(path);
        changed_since(known.held.into_iter().filter(|(path, _)| is_other(path)).collect()).await
    }

    /// What the model must know about plan mode, when that has changed since its last prompt.
    fn news_of_plan_mode(&mut self) -> Option<String> {
        let is_on = self.kin.permissions.mode() == Mode::Plan;
        let was_on = std::mem::replace(&mut self.plan_told, is_on);
        match (was_on, is_on) {
            (false, true) if self.kin.agent.is_some() => Some(ONLY_LOOKS.to_owned()),
            (false, true) => Some(plan::rules(self.options.plan_instructions.as_deref())),
            (true, false) => Some("Plan mode is over: you may change things again.".to_owned()),
            _ => None,
        }
    }

    /// A command takes the prompt's place, or answers it. `None` if the model is to be asked.
    async fn expand_command(
        &self,
        prompt: &mut Prompt,
        hooks: &SessionHooks,
        cancel: &CancellationToken,
        choices: &mut Choices,
        around: &mut Around,
        told: &mut Vec<Event>,
    ) -> Option<Taken> {
        let called = Called::in_text(prompt.first_words().filter(|_| !prompt.verbatim)?)?;
        let (command, source) = self.command(called.name).unzip();
        let skill = self.skills.get(called.name).filter(|skill| skill.for_user && command.is_none());
        let may_be_text = self.options.bundled_skills && command.is_none() && skill.is_none();
        let text = house::text(&called).filter(|_| may_be_text);
        if command.is_none() && skill.is_none() && text.is_none() {
            if let (None, Some(wanted)) = (&self.kin.agent, Reshaping::called(&called)) {
                return Some(Taken::Reshape(wanted));
            }
            if let (None, Some(wanted)) = (&self.kin.agent, House::called(&called)) {
                return Some(Taken::House(wanted));
            }
            if !called.is_plain() {
                return None;
            }
            let text = format!("Unknown command: /{}", called.name);
            told.push(self.synthetic(text.clone()));
            return Some(Taken::Local(Answered { text, is_error: true }));
        }
        let source = source.unwrap_or(Expanded::Command);
        let from = match (source, &skill) {
            (Expanded::ServersPrompt, _) => "mcp",
            (Expanded::Command, Some(skill)) => skill.whose(self.options.skills.as_ref()),
            (Expanded::Command, None) => "builtin",
        };
        let fired = hooks.expansion(source, called.name, called.arguments, from, &prompt.words()).await;
        if let Some(taken) = heard(fired, cancel, &mut around.contexts, told) {
            return Some(taken);
        }
        // Behind one skill there may be more of them: each is followed, and what is left is for the last.
        let mut stacked = Vec::new();
        let mut arguments = called.arguments;
        while let (true, Some(next)) =
            (skill.is_some() && stacked.len() + 1 < SKILLS_STACKED_MAX, Called::in_text(arguments))
        {
            let known = self.skills.get(next.name).filter(|skill| skill.for_user && skill.agent.is_none());
            let Some(known) = known.filter(|_| skill.as_ref().is_some_and(|first| first.agent.is_none()))
            else {
                break;
            };
            stacked.push(known);
            arguments = next.arguments;
        }
        let own_arguments = if stacked.is_empty() { called.arguments } else { "" };
        let cwd = self.cwd();
        let cx = CommandCx { cwd: &cwd, cancel };
        let expanded = tokio::select! {
            biased;
            () = cancel.cancelled() => return Some(Taken::Interrupted { before_it_began: false }),
            expanded = async {
                match (&command, &skill) {
                    (Some(command), _) => command.expand(called.arguments, &cx).await,
                    (None, Some(skill)) => {
                        let mut all = self.expand_skill(skill, own_arguments, cancel).await?;
                        for (at, skill) in stacked.iter().enumerate() {
                            let told = if at + 1 == stacked.len() { arguments } else { "" };
                            all.join(self.expand_skill(skill, told, cancel).await?);
                        }
                        Ok(all)
                    }
                    // One of them is there: looked at above.
                    (None, None) => Ok(text.unwrap_or_default()),
                }
            } => expanded,
        };
        let expansion = match expanded {
            Ok(expansion) => expansion,
            Err(error) => {
                let text = format!("/{}: {error}", called.name);
                told.push(self.synthetic(text.clone()));
                return Some(Taken::Local(Answered { text, is_error: true }));
            }
        };
        for problem in skill.iter().flat_map(|skill| &skill.hook_problems) {
            let content = format!("/{}: {problem}", called.name);
            told.push(Event::Informational { content, prevents_continuation: false });
        }
        let model = expansion.model.map(|model| catalogue::resolve(&model));
        let refused = model.as_ref().and_then(|model| match self.options.model_choice.allows(model) {
            false => Some(format!("/{}: {}", called.name, self.options.model_choice.refusal(model))),
            true if !self.can_pay(model) => Some(format!(
                "/{} asks for {model}, whose price is not known, so the budget cannot be kept.",
                called.name
            )),
            true => None,
        });
        if let Some(text) = refused {
            told.push(self.synthetic(text.clone()));
            return Some(Taken::Local(Answered { text, is_error: true }));
        }
        if let Some(output) = &expansion.output {
            self.session.note_command(called.name, called.arguments, output);
            told.push(Event::CommandOutput { content: output.clone() });
        }
        let Some(body) = expansion.prompt.filter(|body| !body.trim().is_empty()) else {
            return Some(Taken::Local(Answered {
                text: expansion.output.unwrap_or_default(),
                is_error: false,
            }));
        };
        around.skill = skill
            .as_ref()
            .filter(|skill| skill.agent.is_none() && !body.starts_with(CALLED_AGAIN))
            .map(|skill| skill.file.clone());
        let loan = Loan { allowed: expansion.allowed_tools, denied: expansion.disallowed_tools };
        *choices = Choices { model, effort: expansion.effort, loan };
        let typed = format!(
            "<command-name>/{}</command-name>\n<command-args>{}</command-args>",
            called.name, called.arguments
        );
        let agent = skill.as_ref().and_then(|skill| Some((skill, skill.agent.as_ref()?)));
        around.agent = agent.map(|(skill, agent)| followed::order(skill, agent, &body));
        if around.agent.is_some() {
            // The order names them: the session goes on as it is.
            (choices.model, choices.effort) = (None, None);
        }
        // What an agent is told is in the agent's record.
        let body = around.agent.is_none().then_some(PromptBlock::Text(body));
        prompt.blocks.splice(..1, [PromptBlock::Text(typed)].into_iter().chain(body));
        None
    }

    /// A command of that name: one of the host's, or a prompt of a server's.
    fn command(&self, name: &str) -> Option<(Arc<dyn Command>, Expanded)> {
        let brought = self.options.commands.iter().cloned().map(|command| (command, Expanded::Command));
        let served = self.offer.list().all().into_iter().flat_map(|server| server.commands());
        let served = served.map(|command| (command, Expanded::ServersPrompt));
        brought.chain(served).find(|(command, _)| command.spec().name == name)
    }

    /// Words in the assistant's role that no model said. They are not part of the conversation.
    pub(super) fn synthetic(&self, text: String) -> Event {
        let json = content(&[Block::Text { text: &text }]);
        Event::Synthetic(Synthetic { id: fresh_id(self.options.world.as_ref()), text, error: None, json })
    }
}

/// What hooks said about a prompt: their words, or the end of it.
fn heard(
    fired: Option<Fired>,
    cancel: &CancellationToken,
    contexts: &mut Vec<String>,
    told: &mut Vec<Event>,
) -> Option<Taken> {
    let interrupted = || cancel.is_cancelled().then_some(Taken::Interrupted { before_it_began: false });
    let Some(mut fired) = fired else { return interrupted() };
    let stop = fired.verdict.stop.take();
    let block = fired.verdict.block.take();
    contexts.append(&mut fired.verdict.contexts);
    tell(fired, told);
    // A prompt that a hook will not have is not recorded, interrupted or not.
    let Some(content) = stop.as_ref().or(block.as_ref()).cloned() else { return interrupted() };
    told.push(Event::Informational { content, prevents_continuation: true });
    Some(match (stop, block) {
        (None, Some(text)) => Taken::Local(Answered { text, is_error: false }),
        _ => Taken::Ended(Terminal::HookStopped),
    })
}

pub(super) fn tell(fired: Fired, told: &mut Vec<Event>) {
    told.extend(fired.runs.into_iter().map(|run| Event::Hook(Arc::new(run))));
    let messages = fired.verdict.messages.into_iter();
    told.extend(messages.map(|content| Event::Informational { content, prevents_continuation: false }));
}
