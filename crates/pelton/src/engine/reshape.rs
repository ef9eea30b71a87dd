//! What people do to the context by hand: `/compact`, `/uncompact`, `/context`, `/clear`, and the same from a program. What
//! was said stays as it is; everything done here can be undone, and a conversation that was cleared can be gone on with.

use std::sync::Arc;
use std::time::Duration;

use pelton_model::stream::Sender;
use pelton_model::{Prefix, catalogue};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Engine;
use super::input::{Answered, Taken};
use crate::command::Called;
use crate::compact::auto::Keep;
use crate::compact::surgery::Situation;
use crate::compact::{AutoWindow, ContextUsage, Level, NotAutoWindow, Surgery};
use crate::context::{git_branch, tools_by_server};
use crate::event::{Boundary, CommandInfo, ContextEvent, Event, LoopEvent, LoopKind, Trigger};
use crate::gauge::ContextWatch;
use crate::history::{Edit, EditId, Edited, View};
use crate::session::{Made, Must, UndoError};
use crate::transcript::TranscriptError;
use crate::turn::Bystander;
use crate::turn::live::{Around, Attempt, Summed, context_usage, know_what_is_sent};

/// What a command wants to be done to the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reshaping {
    /// C8: sum it up, with wishes.
    Compact(Option<String>),
    /// Undo the newest summary.
    Uncompact,
    /// Tell what is in it.
    Report,
    /// Tell what it is kept within, or keep it within something else.
    Window(Option<AutoWindow>),
    /// Something without a model.
    Surgery(Surgery),
    /// Begin another conversation.
    Clear,
    /// Nothing that could be understood, and why.
    Unclear(String),
}

/// What was done to what the model is sent.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four. ".repeat(500))]).reply([text("Five.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
///
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// engine.submit(Prompt::text("And one more?")?).for_each(async |_| {}).await;
/// let reshaped = engine.reshape(&"drop 1".parse()?).await?;
/// assert!(reshaped.after_tokens < reshaped.before_tokens);
/// assert_eq!(reshaped.edits.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reshaped {
    /// The edits that did it, each of which can be undone.
    pub edits: Vec<EditId>,
    /// What the next request would have taken, in tokens.
    pub before_tokens: u64,
    /// What it takes now.
    pub after_tokens: u64,
}

/// Something cannot be done to what the model is sent.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::ReshapeError;
/// use pelton::compact::Surgery;
///
/// let nothing_said = engine.reshape(&Surgery::Drop(1..=1)).await;
/// assert!(matches!(nothing_said, Err(ReshapeError::Nothing(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReshapeError {
    /// There is nothing of what it is about.
    #[error("{0}")]
    Nothing(String),
    /// What is wanted back cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It cannot be written down, so it is not done.
    #[error(transparent)]
    Unrecorded(#[from] TranscriptError),
}

impl Reshaping {
    /// What a command wants, if it is one of these.
    pub fn called(called: &Called<'_>) -> Option<Self> {
        let arguments = Some(called.arguments).filter(|arguments| !arguments.is_empty());
        match called.name {
            "compact" => Some(Self::Compact(arguments.map(str::to_owned))),
            "uncompact" => Some(Self::Uncompact),
            "autocompact" => Some(match arguments.map(str::parse) {
                None => Self::Window(None),
                Some(Ok(window)) => Self::Window(Some(window)),
                Some(Err(NotAutoWindow)) => Self::Unclear(format!("/autocompact {NotAutoWindow}")),
            }),
            "clear" | "reset" | "new" => Some(Self::Clear),
            "context" => Some(match arguments.map(str::parse) {
                None => Self::Report,
                Some(Ok(surgery)) => Self::Surgery(surgery),
                Some(Err(why)) => Self::Unclear(why.to_string()),
            }),
            _ => None,
        }
    }
}

/// The commands, as users see them.
pub(super) fn commands() -> impl Iterator<Item = CommandInfo> {
    let all = [
        ("compact", "Sums up the conversation to make room", "[what to look after]"),
        ("clear", "Begins another conversation; this one is kept", ""),
        ("uncompact", "Undoes the newest summary", ""),
        (
            "context",
            "Tells what fills the context, or changes it",
            "[drop A-B | keep-last N | clear CALL | undo]",
        ),
        ("autocompact", "Tells or sets what the context is kept within", "[TOKENS | auto]"),
    ];
    all.into_iter().map(|(name, description, argument_hint)| CommandInfo {
        name: name.to_owned(),
        description: description.to_owned(),
        argument_hint: argument_hint.to_owned(),
    })
}

impl Engine {
    /// What fills the context, what each level of the cascade would free, and what the next turn costs.
    pub fn context_usage(&mut self) -> ContextUsage {
        let prefix = self.weighed_prefix();
        self.usage_of(&prefix, self.session.history.view())
    }

    /// What stands in front of the messages, counted with them from here on.
    fn weighed_prefix(&mut self) -> Arc<Prefix> {
        self.renew_prefix();
        let prefix = Arc::clone(&self.question.prefix);
        let view = self.session.history.view_mut();
        view.set_overhead(prefix.system.len() + prefix.tools.len());
        view.set_counting(
            catalogue::counts_more(&self.options.model),
            catalogue::looks_closely(&self.options.model),
        );
        prefix
    }

    /// A handle to see the same from outside, also while a submission runs. Until the first prompt it tells of what is
    /// known by then: what stands in front of the messages is settled by the prompt, not by whoever looks.
    pub fn context_watch(&self) -> ContextWatch {
        if !self.gauge.is_held() {
            let mut view = self.session.history.view().clone();
            let prefix = self.prefix_so_far();
            view.set_overhead(prefix.system.len() + prefix.tools.len());
            view.set_counting(
                catalogue::counts_more(&self.options.model),
                catalogue::looks_closely(&self.options.model),
            );
            self.gauge.tell(self.usage_of(&prefix, &view));
        }
        ContextWatch::new(self.gauge.clone(), self.board.watch())
    }

    /// A handle to ask about the conversation what does not belong into it, also while a submission runs.
    pub fn bystander(&self) -> Bystander {
        if !self.bystander.is_held() {
            let mut question = self.question.clone();
            question.prefix = self.prefix_so_far();
            self.bystander.hold(question, self.session.history.view().clone());
        }
        self.bystander.clone()
    }

    /// The same for whoever only looks at a conversation: what stands in front of the messages is what the record says,
    /// because whoever asked may have offered other tools. Without a record of that, as it would be here.
    pub fn context_usage_recorded(&mut self) -> ContextUsage {
        let Some(recorded) = self.cache.prefix().cloned() else { return self.context_usage() };
        let view = self.session.history.view_mut();
        view.set_overhead(recorded.bytes());
        view.set_counting(
            catalogue::counts_more(&self.options.model),
            catalogue::looks_closely(&self.options.model),
        );
        let around = Around {
            model: &self.options.model,
            room: self.options.room(&self.options.model),
            compact: &self.options.compact,
            system_bytes: recorded.system_bytes,
            tools_bytes: recorded.tools_bytes,
            cache: &self.cache,
            prices: &self.options.prices,
            kept: self.options.cache_for(&self.options.model),
        };
        context_usage(self.session.history.view(), &around)
    }

    pub(super) fn usage_of(&self, prefix: &Prefix, view: &View) -> ContextUsage {
        let around = Around {
            model: &self.options.model,
            room: self.options.room(&self.options.model),
            compact: &self.options.compact,
            system_bytes: prefix.system.len(),
            tools_bytes: tools_by_server(self.offer.tools()),
            cache: &self.cache,
            prices: &self.options.prices,
            kept: self.options.cache_for(&self.options.model),
        };
        context_usage(view, &around)
    }

    /// Changes what the model is sent, without a model. Calls and their results stay together whatever is asked for, and
    /// nothing is lost: the record keeps what was said and what was done.
    ///
    /// ```
    /// # use futures::StreamExt;
    /// # use pelton_model::{Auth, Endpoint, Secret};
    /// # use pelton_testkit::{Script, text};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let model = Script::new().reply([text("One.")]).reply([text("Two.")]).start().await?;
    /// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
    /// use pelton::compact::Surgery;
    /// use pelton::{Engine, Options, Prompt};
    ///
    /// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
    /// for prompt in ["Say one.", "Say two."] {
    ///     engine.submit(Prompt::text(prompt)?).for_each(async |_| {}).await;
    /// }
    /// let dropped = engine.reshape(&Surgery::Drop(1..=1)).await?;
    /// let undone = engine.reshape(&Surgery::Undo(None)).await?;
    /// assert_eq!((dropped.edits.len(), undone.edits.len()), (1, 1), "each is on record");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reshape(&mut self, surgery: &Surgery) -> Result<Reshaped, ReshapeError> {
        self.session.record.open(git_branch(&self.options.cwd))?;
        // The figure that is told is the one everybody goes by.
        self.weighed_prefix();
        let history = &self.session.history;
        let view = history.view();
        let before_tokens = view.tokens();
        let situation =
            Situation { outline: &view.outline(), media: &view.media_places(), edits: &history.edits() };
        let plan = surgery.plan(&situation).map_err(ReshapeError::Nothing)?;
        let mut edits: Vec<EditId> = Vec::new();
        for edit in plan {
            let made = match edit {
                Edit::Undo { edit } => self.session.undo(edit).await.map_err(|error| match error {
                    UndoError::Read(why) => ReshapeError::Unreadable(why),
                    UndoError::Record(error) => ReshapeError::Unrecorded(error),
                })?,
                edit => self.session.edit_with(Level::Snip, &edit, Must::Change, edits.first().copied())?,
            };
            if let Made::Done(id, _) = made {
                edits.push(id);
            }
        }
        if edits.is_empty() {
            return Err(ReshapeError::Nothing("there is nothing to change".to_owned()));
        }
        self.session.folds.clear();
        know_what_is_sent(self.session.history.view(), &self.memory, &self.skills).await;
        self.tell_fill();
        Ok(Reshaped { edits, before_tokens, after_tokens: self.session.history.view().tokens() })
    }

    /// Whoever looks from outside sees the figure that counts.
    pub(super) fn tell_fill(&mut self) {
        self.board.fills(self.session.history.view().tokens());
        self.bystander.sees(&self.question, self.session.history.view_mut());
        if self.gauge.is_held() {
            self.gauge.tell(self.usage_of(&self.question.prefix, self.session.history.view()));
        }
    }

    /// Works off a command about the context. What is to be told behind the submission's first event goes to `told`.
    pub(super) async fn reshape_by_command(
        &mut self,
        wanted: Reshaping,
        queued: &[Uuid],
        events: &Sender<Event>,
        cancel: &CancellationToken,
        started_at: Duration,
        told: &mut Vec<Event>,
    ) -> Result<Taken, TranscriptError> {
        let answer = match wanted {
            Reshaping::Compact(wishes) => {
                self.session.record.open(git_branch(&self.options.cwd))?;
                let mut live = self.live(None, events, cancel, started_at);
                live.shaping.held = Some(Vec::new());
                let wishes = wishes.as_deref();
                let (level, trigger) = (Level::Manual, Trigger::Manual);
                let attempt = Attempt { level, trigger, keep: Keep::ByHand, wishes, over: None };
                let summed = match live.options.compact.enabled {
                    true => live.sum_up(attempt).await?,
                    false => Summed::Failed("compaction is switched off".to_owned()),
                };
                told.append(&mut live.shaping.held.take().unwrap_or_default());
                let question = live.question.clone();
                self.keep_of(question);
                match summed {
                    Summed::Smaller => Ok("The conversation was summed up. /uncompact undoes it.".to_owned()),
                    Summed::Aborted => return Ok(Taken::Interrupted { before_it_began: false }),
                    Summed::Nothing => Ok("There is nothing to sum up yet.".to_owned()),
                    Summed::NoSmaller(why) | Summed::Failed(why) | Summed::Hopeless(why) => {
                        Err(format!("There is no summary: {why}"))
                    }
                    Summed::Refused(why) => Err(format!("A hook refused it: {why}")),
                }
            }
            Reshaping::Clear => {
                let left = self.session.id;
                self.clear(queued, cancel, events, told).await?;
                told.push(
                    self.synthetic(format!("This is another conversation. The last one is kept as {left}.")),
                );
                return Ok(Taken::Local(Answered { text: String::new(), is_error: false }));
            }
            Reshaping::Report => Ok(self.context_usage().to_string()),
            Reshaping::Window(window) => Ok(self.keep_within(window)),
            Reshaping::Unclear(why) => Err(why),
            Reshaping::Uncompact => {
                let edits = self.session.history.edits();
                let takes_away = |edited: &&&Edited| {
                    Level::is_summary(&edited.by) && matches!(edited.edit, Edit::Replace { .. })
                };
                match edits.iter().rev().find(takes_away).map(|edited| edited.id) {
                    Some(edit) => self.operate(&Surgery::Undo(Some(edit)), Level::Undo, told).await,
                    None => Err("Nothing was summed up that could be undone.".to_owned()),
                }
            }
            Reshaping::Surgery(surgery) => {
                let level = if matches!(surgery, Surgery::Undo(_)) { Level::Undo } else { Level::Snip };
                self.operate(&surgery, level, told).await
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
        Ok(Taken::Local(Answered { text, is_error }))
    }

    /// Keeps the context within a window from here on, if one is named, and tells which it is.
    fn keep_within(&mut self, window: Option<AutoWindow>) -> String {
        if let Some(AutoWindow(tokens)) = window {
            self.options.compact.window_tokens = tokens;
            self.tell_fill();
        }
        let compact = &self.options.compact;
        let room = self.options.room(&self.options.model);
        let why = match compact.window_tokens {
            Some(wanted) if wanted <= room.window_tokens => "as it was asked for",
            Some(_) => "the model's own: it has no more",
            None => "the model's own",
        };
        let from = match compact.enabled && compact.auto {
            true => format!("It is summed up from {} tokens on.", room.percent(compact.auto_percent)),
            false => "Summing it up by itself is switched off.".to_owned(),
        };
        format!("The context is kept within {} tokens, {why}. {from}", room.window_tokens)
    }

    async fn operate(
        &mut self,
        surgery: &Surgery,
        level: Level,
        told: &mut Vec<Event>,
    ) -> Result<String, String> {
        let Reshaped { edits, before_tokens, after_tokens } =
            self.reshape(surgery).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = edits.iter().map(ToString::to_string).collect();
        let reason = format!(
            "{}: from about {before_tokens} to {after_tokens} tokens: asked for by hand",
            level.name()
        );
        self.session.note(LoopKind::Compaction, &reason, 0);
        told.push(Event::Loop(LoopEvent { kind: LoopKind::Compaction, reason: reason.clone(), turn: 0 }));
        // Several edits that do one thing are one to whoever asked for it.
        for edit in edits.into_iter().take(1) {
            let boundary = Boundary::by_hand(edit, level, before_tokens, after_tokens, reason.clone());
            told.push(Event::Context(ContextEvent::Boundary(boundary.into())));
        }
        Ok(format!(
            "The context takes about {after_tokens} tokens now, {before_tokens} before. (edit {})",
            names.join(", ")
        ))
    }
}
