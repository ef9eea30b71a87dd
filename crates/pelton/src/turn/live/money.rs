//! What a trip to the model may cost, and what it did.

use std::sync::Arc;

use pelton_model::{ModelError, Notice, Reply, catalogue};
use pelton_wire::usage::Usage;

use super::Live;
use crate::event::LoopKind;
use crate::history::{Kind, Origin};
use crate::turn::budget::prompt_tokens_max;
use crate::turn::spending::{Forecast, Wish};

impl Live<'_> {
    /// Sets money aside for the next call, waiting for calls in flight if those may leave enough. Tells whether it may
    /// be sent. An interrupted wait is no refusal: the call sees the interrupt before it is sent.
    pub(super) async fn set_aside(&mut self) -> bool {
        let capped = self.spending.is_capped();
        let mut told = false;
        loop {
            let spending = Arc::clone(&self.spending);
            // Listening begins before the question: an end in between is not missed.
            let freed = spending.freed();
            let wish = spending.set_aside(self.forecast());
            match wish {
                Wish::Granted(paid) => {
                    if capped {
                        self.note(LoopKind::Budget, paid.in_words()).await;
                    }
                    self.paid = Some(paid);
                    return true;
                }
                Wish::Refused(why) => {
                    self.note(LoopKind::Budget, why).await;
                    return false;
                }
                // Nobody waits for a summary or a fold.
                Wish::Later(_) if self.summaries.give_up() | self.shaping.folding.give_up() => continue,
                Wish::Later(why) => {
                    if !std::mem::replace(&mut told, true) {
                        self.note(LoopKind::Budget, why).await;
                    }
                }
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return true,
                () = freed => {}
            }
        }
    }

    /// The tokens this answer may have.
    pub(super) fn max_tokens(&self) -> u32 {
        self.paid.as_ref().map_or(self.question.max_tokens, |paid| paid.max_tokens())
    }

    /// Whether it is money that keeps the answer short.
    pub(super) fn is_cut_by_money(&self) -> bool {
        self.paid.as_ref().is_some_and(|paid| paid.is_lowered())
    }

    /// An attempt failed. Tells whether the money allows another.
    pub(super) async fn pay_again(&mut self, notice: &Notice) -> bool {
        let Some(paid) = &mut self.paid else { return true };
        let (usage, may) = paid.failed_once(notice);
        self.consumed(usage);
        if !may {
            self.note(LoopKind::Budget, "not enough money to ask again".to_owned()).await;
        }
        may
    }

    /// The call is not made.
    pub(super) fn pay_nothing(&mut self) {
        if let Some(paid) = self.paid.take() {
            paid.unsent();
        }
    }

    /// Tells what the answer consumed.
    pub(super) fn pay_for_answer(&mut self, reply: &Reply) -> Usage {
        let usage = match self.paid.take() {
            Some(paid) => paid.answered(reply),
            None => reply.usage.clone(),
        };
        self.tally.usage.add(&usage);
        usage
    }

    pub(super) fn pay_for_failure(&mut self, error: &ModelError) {
        let usage = self.paid.take().and_then(|paid| paid.failed(error));
        self.consumed(usage);
    }

    /// Tells what the answer consumed until nobody waited for it any more, if that is known.
    pub(super) fn pay_for_what_was_given_up(&mut self) -> Option<Usage> {
        let usage = self.paid.take().and_then(|paid| paid.given_up());
        self.consumed(usage.clone());
        usage
    }

    fn consumed(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.tally.usage.add(&usage);
        }
    }

    fn forecast(&self) -> Forecast<'_> {
        let view = self.session.history.view();
        let prefix = &self.question.prefix;
        let prefix_bytes = (prefix.system.len() + prefix.tools.len()) as u64;
        let last = self.last_origin().filter(|last| is_same(&last.model, &self.question.model));
        let counted = view.counted_tokens();
        let prompt_tokens_max = match last {
            Some(_) if counted > 0 => counted + prompt_tokens_max(view.uncounted_tokens_max()),
            // Nobody has counted it, or another model has, by its own measure.
            _ => prompt_tokens_max(prefix_bytes + view.bytes() as u64),
        };
        Forecast {
            ask: &self.question,
            prompt_tokens: view.tokens(),
            prompt_tokens_max,
            searches_max: 0,
            last: last.map(|last| &last.usage),
        }
    }

    /// The newest answer.
    fn last_origin(&self) -> Option<&Origin> {
        self.session.history.entries().iter().rev().find_map(|entry| match &entry.kind {
            Kind::Assistant { origin, .. } => Some(&**origin),
            _ => None,
        })
    }
}

/// Whether these are certainly one model, which counts tokens in one way.
fn is_same(one: &str, other: &str) -> bool {
    one == other
        || catalogue::caps(one).zip(catalogue::caps(other)).is_some_and(|(one, other)| one.id == other.id)
}
