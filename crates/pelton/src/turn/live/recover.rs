//! What is done about errors, between two trips to the model.

use std::sync::Arc;

use pelton_model::{ErrorKind, ModelError, Prefix, catalogue};

use super::{Live, StopFeedback};
use crate::compact::Level;
use crate::context::{served_by, tools_json};
use crate::dials::{Dials, Set};
use crate::event::{Event, LoopKind};
use crate::history::{Edit, MediaLeftOut, View, is_familiar};
use crate::limits::{IMAGES_LARGE_MAX, REQUEST_BYTES_KEPT, REQUEST_BYTES_MAX};
use crate::permission::Mode;
use crate::session::Must;
use crate::tools::structured::{self, REMINDER};
use crate::transcript::TranscriptError;
use crate::turn::decide::{Failure, Rung};
use crate::turn::reasons::Transition;

/// What the model reads when its answer was cut.
const GO_ON: &str = "Your answer was cut off. Go on exactly where it stopped, without repeating or summarising what \
you already wrote. If it was long, finish it in smaller parts.";
/// What the model reads when it said nothing.
const SAY_SOMETHING: &str =
    "Your last answer was empty. If the task is done, say so in a sentence; otherwise go on.";
/// What the model reads when more output is wanted.
const SAY_MORE: &str =
    "Go on working on the task: there is room for more. Do not repeat or summarise what is there.";
/// T4: the output limit is not raised above this.
const RAISED_OUTPUT_TOKENS_MAX: u32 = 64_000;
/// Images and documents a request may hold when nothing is known of the model.
const MEDIA_UNKNOWN_MODEL_MAX: usize = 100;

/// Whether what comes next is another answer, and not the rest of one or the same again.
fn begins_anew(transition: Transition) -> bool {
    matches!(
        transition,
        Transition::NextTurn
            | Transition::StopHookBlocking
            | Transition::EmptyReplyNudge
            | Transition::StructuredOutputRetry
    )
}

/// What may be changed while the turn goes on: which model is asked, and how.
pub(crate) struct Dialled {
    pub dials: Dials,
    /// The changes that count already.
    pub seen: u64,
    /// The model they stand at, as far as that counts already.
    pub model: String,
}

impl Live<'_> {
    /// Does what the next trip needs.
    pub(super) async fn make_ready(&mut self, transition: Transition) -> Result<(), TranscriptError> {
        if begins_anew(transition) {
            self.last.begun.clear();
        }
        self.tell_cut().await;
        // What calls bring is attached with the prompts that wait.
        let goes_on_alone = self.executor.is_empty() && !self.last.text.is_empty();
        self.say_what_goes_before(transition).await?;
        match transition {
            // Z7: the model reads something new in the user's role anyway.
            Transition::FallbackRetry if goes_on_alone => self.attach_prompts().await,
            Transition::PauseTurn if !self.last.has_server_tool => self.attach_prompts().await,
            Transition::StreamCutRetry
            | Transition::MaxOutputTokensRecovery
            | Transition::EmptyReplyNudge
            | Transition::TokenBudgetContinuation
            | Transition::StopHookBlocking
            | Transition::StructuredOutputRetry => self.attach_prompts().await,
            _ => Ok(()),
        }
    }

    async fn say_what_goes_before(&mut self, transition: Transition) -> Result<(), TranscriptError> {
        match transition {
            // The call that was cut has its answer; the next may be longer.
            Transition::MaxOutputTokensRecovery if !self.executor.is_empty() => {
                self.question.max_tokens = self.question.max_tokens.max(self.raised_output_limit());
                self.last.cut_call = None;
                self.last.begun.clear();
                self.attach_changes().await
            }
            Transition::MaxOutputTokensRecovery => self.ask_for_rest().await,
            Transition::EmptyReplyNudge => self.say_as_user(SAY_SOMETHING).await,
            Transition::TokenBudgetContinuation => {
                self.last.keep_words("\n\n");
                self.say_as_user(SAY_MORE).await
            }
            Transition::MaxOutputTokensEscalate => self.raise_output_limit().await,
            Transition::FallbackRetry if self.attempts.put_again.is_some() => {
                self.tell_another_way().await;
                Ok(())
            }
            Transition::FallbackRetry => {
                let error = self.last.error.take();
                let because = error.as_ref().map_or(&ErrorKind::Overloaded, |error| &error.kind).wire_name();
                self.attempts.tried = error.map(|error| error.tried).unwrap_or_default();
                self.ask_next_model(because).await;
                // If something of the last answer was complete, the rest of it is wanted.
                if !self.executor.is_empty() {
                    self.last.begun.clear();
                    self.attach_changes().await
                } else if !self.last.text.is_empty() {
                    self.ask_to_go_on().await
                } else {
                    Ok(())
                }
            }
            Transition::StreamCutRetry => self.ask_to_go_on().await,
            // A message of the assistant's at the end is refused, unless the server itself has something to do in it.
            Transition::PauseTurn if !self.last.has_server_tool => self.ask_to_go_on().await,
            // The same, where the window filled up in the middle of an answer.
            Transition::CollapseDrainRetry | Transition::ReactiveCompactRetry
                if !self.last.entries.is_empty() || self.last.cut_call.is_some() =>
            {
                self.ask_for_rest().await
            }
            Transition::RequestRepair => self.repair().await,
            Transition::NextTurn => self.attach_changes().await,
            Transition::PauseTurn | Transition::CollapseDrainRetry | Transition::ReactiveCompactRetry => {
                Ok(())
            }
            Transition::StopHookBlocking => {
                self.stop_hook_active = true;
                match self.stop_feedback.take() {
                    Some(StopFeedback::Refusal(why)) => {
                        self.say_as_user(&format!("Stop hook feedback:\n{why}")).await
                    }
                    Some(StopFeedback::Words(words)) => self.remind(&words).await,
                    None => Ok(()),
                }
            }
            // A call that did not fit has its answer already; no call at all needs a word.
            Transition::StructuredOutputRetry if self.executor.is_empty() => self.say_as_user(REMINDER).await,
            Transition::StructuredOutputRetry => Ok(()),
        }
    }

    /// A limit cut the answer: what is there stays.
    async fn ask_for_rest(&mut self) -> Result<(), TranscriptError> {
        match self.last.cut_call.take() {
            Some(tool) => self.say_as_user(&smaller_call(&tool)).await,
            None => self.ask_to_go_on().await,
        }
    }

    async fn ask_to_go_on(&mut self) -> Result<(), TranscriptError> {
        self.last.keep_words("");
        self.say_as_user(GO_ON).await
    }

    /// T4: the cut answer does not count, and is asked for again with more room.
    async fn raise_output_limit(&mut self) -> Result<(), TranscriptError> {
        self.question.max_tokens = self.raised_output_limit();
        self.withdraw_answer().await
    }

    fn raised_output_limit(&self) -> u32 {
        let most =
            catalogue::caps(&self.question.model).map_or(RAISED_OUTPUT_TOKENS_MAX, |caps| caps.output_max);
        most.min(RAISED_OUTPUT_TOKENS_MAX)
    }

    /// Whether the tool that a request was refused for can be left out of it. The last one stays: a conversation with calls in
    /// it is refused without any. So does the one that the answer has to come by.
    pub(super) fn can_leave_out_tool(&self, error: &ModelError) -> bool {
        let refused = tool_place(error).and_then(|index| self.tools.get(index));
        self.tools.len() > 1 && refused.is_none_or(|tool| tool.spec().name != structured::NAME)
    }

    /// What a refused request could be sent without, if there is any of it, and what the refusal is if that was tried.
    pub(super) fn rung(&self, error: &ModelError) -> Option<(Rung, Failure)> {
        let (rung, otherwise) = rung(error)?;
        let is_there = match rung {
            Rung::Tool => self.can_leave_out_tool(error),
            Rung::Block => !self.kinds_refused(error).is_empty(),
            _ => otherwise != Failure::Media || self.session.history.view().media_count() > 0,
        };
        let again = self.left_out_by_name.contains(&rung);
        let rung = match rung {
            Rung::Tool if again => Rung::EveryTool,
            Rung::Block if again => Rung::EveryBlock,
            _ => rung,
        };
        is_there.then_some((rung, otherwise))
    }

    /// The newest answer does not count any more.
    pub(super) async fn withdraw_answer(&mut self) -> Result<(), TranscriptError> {
        let withdrawn = std::mem::take(&mut self.last.entries);
        if !withdrawn.is_empty() {
            self.session.withdraw(&withdrawn)?;
            self.events.send(Event::Tombstone(withdrawn)).await;
        }
        Ok(())
    }

    /// What was changed since the model was last asked holds from here on.
    pub(super) fn heed_dials(&mut self) {
        self.dialled.dials.set_planning(self.bench.permissions.mode() == Mode::Plan);
        let Some(Set { model, thinking, display, effort, .. }) =
            self.dialled.dials.turned(&mut self.dialled.seen)
        else {
            return;
        };
        (self.question.thinking, self.question.display, self.question.effort) = (thinking, display, effort);
        // Another model may be asked than the dials say, for this submission or instead of it: that holds until they are turned to
        // another.
        let before = std::mem::replace(&mut self.dialled.model, model.clone());
        if model == before || model == self.question.model {
            return;
        }
        self.turn_to(model);
    }

    /// Who is asked if this model does not answer: the first of the chain that was not given up and is not asked already.
    pub(super) fn next_model(&self) -> Option<&String> {
        self.fallbacks.iter().find(|fallback| **fallback != self.question.model)
    }

    /// How many there are of those.
    pub(super) fn models_left(&self) -> u32 {
        let left = self.fallbacks.iter().filter(|fallback| **fallback != self.question.model);
        u32::try_from(left.count()).unwrap_or(u32::MAX)
    }

    /// Until the next prompt another model is asked, because a skill wants it.
    pub(super) async fn ask_from_now_on(&mut self, model: &str) {
        let model = catalogue::resolve(model);
        if !self.options.model_choice.allows(&model) {
            let content = format!(
                "A skill asks for another model. {}: {} goes on.",
                self.options.model_choice.refusal(&model),
                self.question.model
            );
            return self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
        if self.spending.is_capped() && !self.spending.knows(&model) {
            let content = format!(
                "A skill asks for {model}, whose price is not known, so the budget could not be kept: {} goes on.",
                self.question.model
            );
            return self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
        if model != self.question.model {
            self.turn_to(model);
        }
    }

    /// T8, F3–F5: the next model is asked, without the thinking that belongs to the last one.
    async fn ask_next_model(&mut self, because: &'static str) {
        let Some(to) = self.next_model().cloned() else { return };
        let from = self.question.model.clone();
        // Neither is asked again on its own account: each of the chain once.
        self.fallbacks.retain(|fallback| *fallback != to && *fallback != from);
        self.turn_to(to.clone());
        self.note(LoopKind::Fallback, format!("{from} does not answer; asking {to}")).await;
        self.events.send(Event::ModelFallback { from, to, because }).await;
    }

    /// From here on another model is asked, within its own limits and without what was thought by others.
    fn turn_to(&mut self, model: String) {
        if let Some(caps) = catalogue::caps(&model) {
            self.question.max_tokens = self.question.max_tokens.min(caps.output_max);
        }
        self.room = self.options.room(&model);
        let view = self.session.history.view_mut();
        view.set_counting(catalogue::counts_more(&model), catalogue::looks_closely(&model));
        view.leave_out_thinking("another model");
        self.question.cache = self.options.cache_for(&model);
        self.question.model = model;
    }

    /// T11: leaves out what the request was refused for.
    async fn repair(&mut self) -> Result<(), TranscriptError> {
        let Some(error) = self.last.error.take() else { return Ok(()) };
        let Some((rung, _)) = self.rung(&error) else { return Ok(()) };
        self.left_out_by_name.insert(rung);
        let view = self.session.history.view_mut();
        let reason = match rung {
            Rung::Thinking => {
                format!("{} thinking blocks were left out", view.leave_out_thinking("the server refused it"))
            }
            Rung::Image => {
                let left_out = leave_out_refused(view, &error);
                let reason = format!(
                    "{} images were left out, the one that was refused among them",
                    left_out.places.len()
                );
                self.session.note_media_left_out(&left_out);
                self.tell_left_out(reason).await;
                return Ok(());
            }
            Rung::Media => {
                let left_out = match pages_allowed(&error) {
                    Some(most) => view.leave_out_pages_beyond(some_less(most)),
                    None => view.leave_out_oldest_media(bytes_over(view)),
                };
                let reason = format!(
                    "{} images and documents of {} bytes were left out, oldest first",
                    left_out.places.len(),
                    left_out.bytes
                );
                self.session.note_media_left_out(&left_out);
                self.tell_left_out(reason).await;
                return Ok(());
            }
            Rung::Tool | Rung::EveryTool => self.leave_out_tools(&error, rung),
            Rung::Beta => self.leave_out_betas(&error),
            Rung::Block | Rung::EveryBlock => return self.leave_out_blocks(&error, rung).await,
        };
        self.note(LoopKind::Repair, reason).await;
        Ok(())
    }

    /// Leaves out images and documents that a request may not hold: the oldest if there are too many or too many bytes of
    /// them, and large ones among many.
    pub(super) async fn limit_media(&mut self) {
        if self.session.history.view().media_count() == 0 {
            return;
        }
        self.limit_media_count().await;
        let prefix = self.question.prefix.system.len() + self.question.prefix.tools.len();
        let view = self.session.history.view_mut();
        if view.media_count() > IMAGES_LARGE_MAX && view.has_large_images() {
            let left_out = view.leave_out_large_images();
            self.session.note_media_left_out(&left_out);
            let reason = format!("{} images are too large to be sent among many", left_out.places.len());
            self.tell_left_out(reason).await;
        }
        let view = self.session.history.view_mut();
        let bytes = view.bytes() + prefix;
        if bytes > REQUEST_BYTES_MAX {
            let left_out = view.leave_out_oldest_media(bytes - REQUEST_BYTES_KEPT);
            self.session.note_media_left_out(&left_out);
            let reason = format!(
                "{} images and documents of {} bytes were left out, oldest first: the request had {bytes} bytes",
                left_out.places.len(),
                left_out.bytes
            );
            self.tell_left_out(reason).await;
        }
    }

    async fn limit_media_count(&mut self) {
        let most =
            catalogue::caps(&self.question.model).map_or(MEDIA_UNKNOWN_MODEL_MAX, |caps| caps.media_max());
        let view = self.session.history.view_mut();
        let (media, pages) = (view.media_count(), view.page_count());
        if pages <= most {
            return;
        }
        let left_out = view.leave_out_pages_beyond(some_less(most));
        self.session.note_media_left_out(&left_out);
        let gone = left_out.places.len();
        let reason = format!(
            "{gone} of {media} images and documents were left out, oldest first: {pages} images and pages are more than the \
             {most} that may be sent"
        );
        self.tell_left_out(reason).await;
    }

    /// Something the user gave or the model saw is not sent any more.
    async fn tell_left_out(&mut self, reason: String) {
        self.note(LoopKind::Repair, reason.clone()).await;
        self.events.send(Event::Informational { content: reason, prevents_continuation: false }).await;
    }

    /// The kinds of blocks that a request was refused for, as far as it can be sent without them.
    pub(super) fn kinds_refused(&self, error: &ModelError) -> Vec<String> {
        let view = self.session.history.view();
        match block_place(&error.message) {
            Some((message, block, inner)) => view.kind_at(message, block, inner).into_iter().collect(),
            // Behind this a server tells which kinds it does know.
            None => {
                let said = error.message.split("expected").next().unwrap_or_default();
                let is_named = |kind: &String| {
                    [format!("'{kind}'"), format!("`{kind}`")].iter().any(|name| said.contains(name))
                };
                view.kinds_not_needed().into_iter().filter(is_named).collect()
            }
        }
    }

    /// Blocks of kinds that the server refuses, and of others that nobody is known to take: it names only the first. If it
    /// refuses another then, it is none of those that are known, and all go.
    async fn leave_out_blocks(&mut self, error: &ModelError, rung: Rung) -> Result<(), TranscriptError> {
        let mut kinds = self.kinds_refused(error);
        for kind in self.session.history.view().kinds_not_needed() {
            if (rung == Rung::EveryBlock || !is_familiar(&kind)) && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let named = kinds.join(", ");
        self.session.edit(Level::Repair, &Edit::Blocks { kinds }, Must::Change)?;
        self.tell_left_out(format!("Blocks of kinds that the server refuses were left out: {named}")).await;
        Ok(())
    }

    fn leave_out_betas(&mut self, error: &ModelError) -> String {
        let ErrorKind::BetaRefused { names } = &error.kind else { return String::new() };
        self.question.refused_betas.add(names);
        match names.is_empty() {
            true => "all beta features were left out".to_owned(),
            false => format!("the beta features {} were left out", names.join(", ")),
        }
    }

    /// The tool that the server refuses. If it refuses another then, what servers bring is none of what it takes, and all of
    /// that goes.
    fn leave_out_tools(&mut self, error: &ModelError, rung: Rung) -> String {
        let refused = tool_place(error).and_then(|index| self.tools.get(index));
        let Some(refused) = refused.map(|tool| tool.spec().name.to_owned()) else {
            return "the error names no tool that was offered".to_owned();
        };
        let goes = |name: &str| name == refused || rung == Rung::EveryTool && served_by(name).is_some();
        let is_all = self.tools.iter().all(|tool| goes(tool.spec().name));
        let left_out: Vec<String> = self
            .tools
            .iter()
            .map(|tool| tool.spec().name)
            // One stays, whichever.
            .filter(|name| if is_all { *name == refused } else { goes(name) })
            .map(str::to_owned)
            .collect();
        self.tools.retain(|tool| !left_out.iter().any(|name| name == tool.spec().name));
        // For good: they would be refused again, and thinking is bound to what is offered.
        left_out.iter().for_each(|name| self.offer.leave_out(name));
        let tools = tools_json(&self.tools);
        *self.prefix = Arc::new(Prefix { system: self.question.prefix.system.clone(), tools });
        self.question.prefix = Arc::clone(self.prefix);
        // What comes before the messages has changed, and thinking is bound to it.
        self.session.history.view_mut().leave_out_thinking("other tools");
        match &left_out[..] {
            [one] => format!("the tool {one} was left out"),
            all => format!("{} tools were left out: {}", all.len(), all.join(", ")),
        }
    }
}

/// What the model reads when the output limit cut a call.
fn smaller_call(tool: &str) -> String {
    format!(
        "Your call of {tool} was longer than an answer may be. It was cut off and not run. Make it again in smaller \
         parts: several calls, each with a part of the content."
    )
}

/// What a refusal is about, and what it is if nothing can be done about that.
fn rung(error: &ModelError) -> Option<(Rung, Failure)> {
    match &error.kind {
        ErrorKind::ThinkingBound => Some((Rung::Thinking, Failure::Api)),
        ErrorKind::Image { .. } => Some((Rung::Image, Failure::Media)),
        ErrorKind::RequestTooLarge => Some((Rung::Media, Failure::Media)),
        ErrorKind::BetaRefused { .. } => Some((Rung::Beta, Failure::Api)),
        ErrorKind::InvalidRequest if tool_place(error).is_some() => Some((Rung::Tool, Failure::Api)),
        ErrorKind::InvalidRequest => Some((Rung::Block, Failure::Api)),
        _ => None,
    }
}

/// Leaves out the image that was refused, and others that would be next. If nobody can tell which one it is, all.
fn leave_out_refused(view: &mut View, error: &ModelError) -> MediaLeftOut {
    let mut left_out = match image_place(error) {
        Some((message, block, inner)) => view.leave_out_media_at(message, block, inner),
        None => MediaLeftOut::default(),
    };
    left_out.add(view.leave_out_unfit_media());
    if left_out.places.is_empty() {
        left_out.add(view.leave_out_oldest_media(usize::MAX));
    }
    left_out
}

/// More media go than must: each time it happens, everything behind them is read anew.
fn some_less(most: usize) -> usize {
    most / 5 * 4
}

/// `Too much media: 110 document pages + 3 images > 100`: 100.
fn pages_allowed(error: &ModelError) -> Option<usize> {
    let (_, counted) = error.message.split_once("Too much media: ")?;
    let (_, most) = counted.split_once("> ")?;
    most.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// How many bytes of media must go from a refused request: enough that some more turns fit.
fn bytes_over(view: &View) -> usize {
    let bytes = view.bytes();
    if bytes > REQUEST_BYTES_MAX {
        bytes - REQUEST_BYTES_KEPT
    } else {
        // Somebody on the way takes less, and does not say how much.
        (view.media_bytes() / 2).max(1)
    }
}

fn image_place(error: &ModelError) -> Option<(usize, usize, Option<usize>)> {
    let ErrorKind::Image { path: Some(path) } = &error.kind else { return None };
    block_place(path)
}

/// `messages.7.content.3.image…`: message 7, block 3. In results `….3.tool_result.content.1.image…`: block 1 in it.
fn block_place(said: &str) -> Option<(usize, usize, Option<usize>)> {
    let path = &said[said.find("messages.")?..];
    let path = path.split(|c: char| c == ':' || c.is_whitespace()).next()?;
    let mut words = path.split('.');
    let (Some("messages"), Some(message), Some("content"), Some(block)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return None;
    };
    let inner = words.skip_while(|word| *word != "content").nth(1).and_then(|inner| inner.parse().ok());
    Some((message.parse().ok()?, block.parse().ok()?, inner))
}

/// `tools.4.custom.input_schema: …`: tool 4.
fn tool_place(error: &ModelError) -> Option<usize> {
    let (place, _) = error.message.strip_prefix("tools.")?.split_once('.')?;
    place.parse().ok()
}
