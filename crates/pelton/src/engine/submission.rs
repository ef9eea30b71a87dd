//! One submission, from what was submitted to its result.

use std::sync::Arc;

use pelton_model::stream::Sender;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Engine;
use super::arriving::Statement;
use super::input::{Answered, Choices, Order, Taken};
use super::late::Settled;
use super::outcome::Ending;
use crate::account::Tally;
use crate::event::Event;
use crate::file_history::Beside;
use crate::prompt::Prompt;
use crate::queue::Held;
use crate::transcript::TranscriptError;
use crate::turn::Terminal;
use crate::turn::live::{INTERRUPTED, INTERRUPTED_IN_TOOLS, LastReply};

impl Engine {
    /// A submission, and what agents in the background tell meanwhile. Its result comes last.
    pub(super) async fn run(
        &mut self,
        prompt: Prompt,
        held: Option<Held>,
        cancel: CancellationToken,
        events: Sender<Event>,
    ) {
        let roster = self.roster.clone();
        // In a box: agents below agents stand on one stack.
        let alone = Box::pin(self.run_alone(prompt, held, cancel, events.clone()));
        tokio::select! {
            biased;
            () = alone => {}
            never = roster.pass_on_always(events) => match never {},
        }
    }

    async fn run_alone(
        &mut self,
        prompt: Prompt,
        held: Option<Held>,
        cancel: CancellationToken,
        events: Sender<Event>,
    ) {
        let started_at = self.options.world.monotonic();
        let mut told = Vec::new();
        self.heed_client(&cancel, &mut told).await;
        self.skills.begin();
        if self.kin.agent.is_none() {
            self.kin.census.begin();
        }
        let roots = self.kin.permissions.roots();
        self.offer.list().all().iter().for_each(|server| server.works_in(&roots));
        let submitted = self.board.begin(&self.options.model, self.session.history.view().tokens());
        let mut tally = Tally::default();
        let mut last = LastReply::default();
        let mut settled = Ok(Settled::GoOn);
        let late = if cancel.is_cancelled() { None } else { self.take_late() };
        let mut statement = Statement { events: &events, is_made: false };
        if let Some(late) = late {
            self.meet_servers(&cancel, &mut statement, &mut told).await;
            self.renew_prefix();
            self.state(self.options.model.clone(), &mut statement).await;
            settled = self.settle(late, &cancel, &mut tally, &mut last, &events).await;
        }
        let queued = held.as_ref().map(Held::ids).unwrap_or_default();
        // Interrupted before it began, or a host has ended the engine for good: nothing is recorded, nobody is asked.
        let taken = match settled {
            Err(error) => Err(error),
            Ok(Settled::Ended(terminal)) => Ok(Taken::Ended(terminal)),
            Ok(Settled::Interrupted(terminal)) => {
                let gathered = self.gather().await;
                let noted =
                    self.record_interrupted(&prompt, &queued, INTERRUPTED_IN_TOOLS, gathered, &mut told);
                noted.await.map(|notes| {
                    tally.user_messages += notes;
                    Taken::Ended(terminal)
                })
            }
            Ok(Settled::GoOn) if cancel.is_cancelled() => {
                self.interrupted_at_once(&prompt, &queued, &mut told).await
            }
            Ok(Settled::GoOn) => self.take_in(prompt, &queued, &cancel, &mut statement, &mut told).await,
        };
        let taken = match taken {
            Ok(Taken::Reshape(wanted)) => {
                self.reshape_by_command(wanted, &queued, &events, &cancel, started_at, &mut told).await
            }
            Ok(Taken::House(wanted)) => Ok(self.keep_house(wanted, &cancel, &mut told).await),
            taken => taken,
        };
        let model = match &taken {
            Ok(Taken::Ask(Order { choices: Choices { model: Some(model), .. }, .. })) => model.clone(),
            _ => self.options.model.clone(),
        };
        self.state(model, &mut statement).await;
        told.extend(
            self.to_tell
                .notice
                .take()
                .map(|content| Event::Informational { content, prevents_continuation: false }),
        );
        for event in told {
            events.send(event).await;
        }
        // What was not begun, or cannot be written down, goes on waiting.
        let is_over = match &taken {
            Ok(Taken::Ask(_) | Taken::Local(_) | Taken::Ended(Terminal::HookStopped)) => true,
            Ok(Taken::Interrupted { before_it_began }) => !before_it_began,
            Ok(Taken::Ended(_) | Taken::Reshape(_) | Taken::House(_)) | Err(_) => false,
        };
        match held {
            Some(held) if is_over => {
                held.settle();
                tally.consumed.clone_from(&queued);
                events.send(Event::PromptsConsumed(queued)).await;
            }
            Some(held) if taken.is_err() => held.put_off(),
            _ => {}
        }
        let ending = match taken {
            Ok(Taken::Ask(Order { prompt, choices, agent })) => {
                let message = prompt.id;
                events.send(Event::Prompt(prompt)).await;
                self.mark_files(message, &events).await;
                match agent {
                    None => Ending::Loop(
                        self.turns(&events, &cancel, started_at, choices, &mut tally, &mut last).await,
                    ),
                    Some(order) => {
                        let followed =
                            self.follow_in_agent(order, choices, &events, &cancel, &mut tally).await;
                        match followed {
                            // A report has no form: who wants one gets it from the model, which has read the report.
                            Ok(Ending::Local(Answered { is_error: false, .. }))
                                if self.structured.is_some() =>
                            {
                                let choices = Choices::default();
                                let turns =
                                    self.turns(&events, &cancel, started_at, choices, &mut tally, &mut last);
                                Ending::Loop(turns.await)
                            }
                            Ok(ending) => ending,
                            Err(error) => Ending::unrecorded(&mut last, error),
                        }
                    }
                }
            }
            Ok(Taken::Local(answered)) => Ending::Local(answered),
            // Worked off above.
            Ok(Taken::Reshape(_) | Taken::House(_)) => Ending::BeforeLoop(Terminal::Completed),
            Ok(Taken::Ended(terminal)) => Ending::BeforeLoop(terminal),
            Ok(Taken::Interrupted { .. }) => Ending::BeforeLoop(Terminal::AbortedStreaming),
            Err(error) => Ending::unrecorded(&mut last, error),
        };
        let consumed = std::mem::take(&mut tally.consumed);
        let outcome = self.outcome(ending, started_at, tally, last, &events).await;
        self.tell_fill();
        drop(submitted);
        if !consumed.is_empty() {
            events.send(Event::PromptsCompleted(consumed)).await;
        }
        events.send(Event::Result(Arc::new(outcome))).await;
    }

    /// The user interrupted before anything was done. A prompt that waited was on its way already, and is over; nothing is
    /// recorded of others, nor where a host has ended the engine for good.
    async fn interrupted_at_once(
        &mut self,
        prompt: &Prompt,
        queued: &[Uuid],
        told: &mut Vec<Event>,
    ) -> Result<Taken, TranscriptError> {
        if queued.is_empty() || self.options.cancel.is_cancelled() {
            return Ok(Taken::Interrupted { before_it_began: true });
        }
        let gathered = self.gather().await;
        self.record_interrupted(prompt, queued, INTERRUPTED, gathered, told).await?;
        Ok(Taken::Interrupted { before_it_began: false })
    }

    /// S7: what is done to files from here on can be taken back to this message.
    async fn mark_files(&self, message: Uuid, events: &Sender<Event>) {
        if let (Some(history), None) = (&self.kin.file_history, &self.kin.agent)
            && let Some(content) = history.mark(message, Beside::of(&self.background)).await
        {
            events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
    }
}
