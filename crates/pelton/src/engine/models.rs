//! Which models are asked, and what they can hold.

use std::collections::VecDeque;

use pelton_model::catalogue;

use crate::compact::Room;
use crate::limits::{FALLBACK_MODELS_MAX, OUTPUT_TOKENS_UNKNOWN_MODEL, WINDOW_TOKENS_UNKNOWN_MODEL};
use crate::options::Options;

/// The models asked after the first, each once.
pub(super) fn fallbacks(options: &Options) -> Vec<String> {
    let mut models = Vec::new();
    for model in options.fallback_models.iter().map(|model| catalogue::resolve(model)) {
        if model != options.model && !models.contains(&model) {
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

pub(super) fn fallbacks_of(options: &Options, model: &str) -> VecDeque<String> {
    options.fallback_models.iter().filter(|fallback| *fallback != model).cloned().collect()
}

pub(super) fn room(options: &Options, model: &str) -> Room {
    let known = catalogue::caps(model).map_or(WINDOW_TOKENS_UNKNOWN_MODEL, |caps| caps.window);
    // The host's figure is about the model it chose.
    let told = options.window_tokens.filter(|_| model == options.model);
    let window = told.unwrap_or(known);
    let window = options.compact.window_tokens.map_or(window, |most| window.min(most));
    Room::of(window, max_tokens(options, model))
}

pub(super) fn max_tokens(options: &Options, model: &str) -> u32 {
    let caps = catalogue::caps(model);
    let wanted = options
        .max_output_tokens
        .or(caps.map(|caps| caps.output_default))
        .unwrap_or(OUTPUT_TOKENS_UNKNOWN_MODEL);
    // The host's figure is about the model it chose: another may allow less.
    match caps.filter(|_| model != options.model) {
        Some(caps) => wanted.min(caps.output_max),
        None => wanted,
    }
}
