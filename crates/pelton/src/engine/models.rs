//! Which models are asked, and what they can hold.

use std::sync::Arc;

use pelton_model::catalogue;

use super::Engine;
use crate::dials::{Dials, ModelRefused, Set};
use crate::limits::FALLBACK_MODELS_MAX;
use crate::options::Options;
use crate::turn::spending::Spending;

impl Engine {
    /// A handle to change which model is asked, and how.
    pub fn dials(&self) -> Dials {
        self.panel.dials.clone()
    }

    /// The betas that every model is asked with.
    pub fn betas(&self) -> &[String] {
        &self.options.endpoint.betas
    }

    /// What was changed since the last submission holds for this one.
    pub(super) fn heed_dials(&mut self) {
        let Some(Set { model, thinking, display, effort, .. }) = self.panel.turned() else {
            return;
        };
        if model != self.options.model {
            (self.options.window_tokens, self.options.max_output_tokens) =
                self.panel.chosen.figures_for(&model);
            self.question.max_tokens = self.options.max_tokens(&model);
            self.question.model.clone_from(&model);
            self.options.model = model;
        }
        (self.options.thinking, self.options.thinking_display) = (thinking, display);
        (self.question.thinking, self.question.display) = (thinking, display);
        (self.options.effort, self.question.effort) = (effort, effort);
    }
}

/// What may be changed from outside.
pub(super) struct Panel {
    pub dials: Dials,
    /// Which of the changes count already.
    pub seen: u64,
    chosen: Chosen,
}

impl Panel {
    pub fn of(options: &Options, spending: &Arc<Spending>) -> Self {
        Self { dials: dials(options, spending), seen: 0, chosen: Chosen::of(options) }
    }

    /// How the dials stand, if they were turned since they were last looked at.
    fn turned(&mut self) -> Option<Set> {
        self.dials.turned(&mut self.seen)
    }
}

/// The model the host chose, and what it said of it.
struct Chosen {
    model: String,
    window_tokens: Option<u64>,
    max_output_tokens: Option<u32>,
}

impl Chosen {
    fn of(options: &Options) -> Self {
        let Options { model, window_tokens, max_output_tokens, .. } = options;
        Self { model: model.clone(), window_tokens: *window_tokens, max_output_tokens: *max_output_tokens }
    }

    /// The window and the longest answer of a model, as far as the host's figures hold for it: its window is its own, and it
    /// may not answer as much.
    fn figures_for(&self, model: &str) -> (Option<u64>, Option<u32>) {
        let is_chosen = model == self.model;
        let output_max =
            catalogue::caps(model).filter(|_| !is_chosen).map_or(u32::MAX, |caps| caps.output_max);
        (self.window_tokens.filter(|_| is_chosen), self.max_output_tokens.map(|most| most.min(output_max)))
    }
}

/// Where the dials stand at the start.
fn dials(options: &Options, spending: &Arc<Spending>) -> Dials {
    let first = Set {
        model: options.model.clone(),
        thinking: options.thinking,
        display: options.thinking_display,
        effort: options.effort,
        pair: options.planner.clone().map(|plans| (catalogue::resolve(&plans), options.model.clone())),
    };
    let spending = Arc::clone(spending);
    let choice = options.model_choice.clone();
    Dials::new(first, move |model| match choice.allows(model) {
        false => Err(ModelRefused::NotAvailable(choice.refusal(model))),
        true if spending.is_capped() && !spending.knows(model) => {
            Err(ModelRefused::UnknownPrice(model.to_owned()))
        }
        true => Ok(()),
    })
}

/// The models asked after the first, each once.
pub(super) fn fallbacks(options: &Options) -> Vec<String> {
    let mut models = Vec::new();
    for model in options.fallback_models.iter().map(|model| catalogue::resolve(model)) {
        if model != options.model && !models.contains(&model) && options.model_choice.allows(&model) {
            models.push(model);
        }
    }
    models.truncate(FALLBACK_MODELS_MAX);
    models
}

/// Whether these are certainly two models. A server may call the one it was asked for by a longer name.
pub(super) fn is_another(one: &str, other: &str) -> bool {
    catalogue::caps(one).zip(catalogue::caps(other)).is_some_and(|(one, other)| one.id != other.id)
}
