//! Which models are asked, and how hard they try.

use pelton::Options;
use pelton::settings::Settings;
use pelton_model::{Effort, Thinking, ThinkingDisplay};

use super::env::Env;
use crate::args::{RunArgs, ThinkingArg, ThinkingDisplayArg};
use crate::fail::Fail;

/// The model to ask, if anybody named one.
pub(super) fn model(args: &RunArgs, env: &Env, settings: &Settings) -> Option<String> {
    let said = args.model.as_deref().filter(|model| !model.is_empty());
    let managed = settings.policy.model.as_deref();
    let model = managed
        .or(said)
        .or(env.get("ANTHROPIC_MODEL"))
        .or(settings.model.as_deref())
        .or(env.get("ANTHROPIC_DEFAULT_MODEL"))
        .filter(|model| *model != "default")?;
    Some(behind_alias(model, env))
}

/// The models to ask when that one does not answer.
pub(super) fn fallbacks(args: &RunArgs, env: &Env, settings: &Settings) -> Vec<String> {
    let said: Vec<&str> =
        args.fallback_model.iter().map(|model| model.trim()).filter(|model| !model.is_empty()).collect();
    let models = match (&settings.fallback_models, said.is_empty()) {
        (Some(models), true) => models.iter().map(String::as_str).collect(),
        _ => said,
    };
    models.into_iter().map(|model| behind_alias(model, env)).collect()
}

/// The small model, for what is asked beside the conversation.
pub(super) fn small(env: &Env) -> String {
    match env.get("ANTHROPIC_SMALL_FAST_MODEL") {
        Some(model) => model.to_owned(),
        None => behind_alias(Options::DEFAULT_SMALL_MODEL, env),
    }
}

/// The environment's own meaning of a family's name, if it has one.
fn behind_alias(model: &str, env: &Env) -> String {
    let (name, suffix) = match model.strip_suffix("[1m]") {
        Some(name) => (name, "[1m]"),
        None => (model, ""),
    };
    let name = name.to_ascii_uppercase();
    let meant = matches!(name.as_str(), "OPUS" | "SONNET" | "HAIKU" | "FABLE")
        .then(|| env.get(&format!("ANTHROPIC_DEFAULT_{name}_MODEL")))
        .flatten();
    match meant {
        Some(meant) if meant.ends_with("[1m]") => meant.to_owned(),
        Some(meant) => format!("{meant}{suffix}"),
        None => model.to_owned(),
    }
}

/// How hard the model tries, if anybody said so.
pub(super) fn effort(args: &RunArgs, env: &Env, settings: &Settings) -> Result<Option<Effort>, Fail> {
    let said = args.effort.as_deref().filter(|level| !level.is_empty());
    let Some(level) = env.get("CLAUDE_CODE_EFFORT_LEVEL").or(said) else { return Ok(settings.effort) };
    level.parse().map(Some).map_err(|error| Fail::new(format!("{error}")))
}

/// How much it thinks.
pub(super) fn thinking(args: &RunArgs, env: &Env) -> Result<Thinking, Fail> {
    let tokens = match (args.client.thinking, args.client.max_thinking_tokens) {
        (Some(ThinkingArg::Adaptive), _) => return Ok(Thinking::Adaptive),
        (Some(ThinkingArg::Enabled), _) => return Ok(Thinking::ModelDefault),
        (Some(ThinkingArg::Disabled), _) => return Ok(Thinking::Disabled),
        (None, Some(tokens)) => Some(tokens),
        (None, None) => env.number("MAX_THINKING_TOKENS")?,
    };
    Ok(tokens.map_or(Thinking::ModelDefault, Thinking::up_to))
}

/// What is shown of it.
pub(super) fn thinking_display(args: &RunArgs) -> ThinkingDisplay {
    match args.client.thinking_display {
        Some(ThinkingDisplayArg::Summarized) => ThinkingDisplay::Summarized,
        Some(ThinkingDisplayArg::Omitted) | None => ThinkingDisplay::Omitted,
    }
}
