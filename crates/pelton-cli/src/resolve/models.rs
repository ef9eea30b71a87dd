//! Which models are asked, and how hard they try.

use pelton::settings::Settings;
use pelton::{FALLBACK_MODELS_MAX, ModelChoice, Options};
use pelton_model::{CacheLife, Effort, Thinking, ThinkingDisplay, catalogue};

use super::env::Env;
use crate::args::{RunArgs, ThinkingArg, ThinkingDisplayArg};
use crate::fail::{Fail, tell};

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

/// Whether the model was chosen for this run, or by an administrator: agents then choose no other for the main thread.
pub(super) fn is_named(args: &RunArgs, settings: &Settings) -> bool {
    settings.policy.model.is_some()
        || args.model.as_deref().is_some_and(|model| !matches!(model, "" | "default"))
}

/// A session that goes on is answered by the model that answered it so far, unless one was named for this run. One that took
/// another's place for a while does not stay.
pub(super) fn go_on(options: &mut Options, args: &RunArgs, env: &Env) {
    // `default` names the usual one, too.
    let is_named = options.model_is_named
        || args.model.as_deref().is_some_and(|model| !model.is_empty())
        || env.get("ANTHROPIC_MODEL").is_some()
        || options.planner.is_some();
    let last = options.resume.as_ref().and_then(|resumed| resumed.conversation.model()).map(str::to_owned);
    let Some(last) = last.filter(|_| !is_named) else { return };
    let stood_in = options.fallback_models.contains(&last);
    // Servers do not say how long a window was asked for.
    if options.model.strip_suffix("[1m]") == Some(last.as_str()) {
        return;
    }
    if !stood_in && catalogue::caps(&last).is_some() && options.model_choice.allows(&last) {
        options.model = last;
    }
}

/// Which models may be asked, whoever names them.
pub(super) fn choice(settings: &Settings) -> ModelChoice {
    let mut choice = ModelChoice::default();
    choice.available.clone_from(&settings.models.available);
    choice.denied.clone_from(&settings.models.denied);
    if settings.models.enforced != Some(true) {
        choice.excepted.push(Options::DEFAULT_MODEL.to_owned());
    }
    choice
}

/// The model that is asked first, and the one that is asked while planning where that is another.
pub(super) fn first_models(
    args: &RunArgs,
    env: &Env,
    settings: &Settings,
    choice: &ModelChoice,
) -> Result<(String, Option<String>), Fail> {
    let named = model(args, env, settings);
    if named.as_deref().is_none_or(|named| catalogue::pair(named).is_none()) {
        return Ok((first_model(args, env, settings, choice)?, None));
    }
    let suffix = if named.is_some_and(|named| named.ends_with("[1m]")) { "[1m]" } else { "" };
    let (works, plans) = (behind_alias("sonnet", env), behind_alias(&format!("opus{suffix}"), env));
    for model in [&works, &plans] {
        if !choice.allows(model) {
            return Err(Fail::at_start(choice.refusal(model)));
        }
    }
    Ok((works, Some(plans)))
}

/// The model that is asked first. One that may not be asked is refused if it was named for this run; if it stands in a file,
/// the usual one is asked, or the first there may be.
pub(super) fn first_model(
    args: &RunArgs,
    env: &Env,
    settings: &Settings,
    choice: &ModelChoice,
) -> Result<String, Fail> {
    let named = model(args, env, settings);
    let for_this_run = args.model.is_some() || env.get("ANTHROPIC_MODEL").is_some();
    let refused = match named {
        Some(model) if choice.allows(&model) => return Ok(model),
        Some(model) if for_this_run => return Err(Fail::at_start(choice.refusal(&model))),
        Some(model) => Some(model),
        None => None,
    };
    let mut others =
        std::iter::once(Options::DEFAULT_MODEL).chain(choice.available.iter().flatten().map(String::as_str));
    let Some(usual) = others.find(|model| choice.allows(model)) else {
        return Err(Fail::at_start(format!(
            "{} (say which may be, under `availableModels` in the settings)",
            choice.refusal(Options::DEFAULT_MODEL)
        )));
    };
    if let Some(refused) = refused {
        tell(&format!("warning: {}; {usual} is asked", choice.refusal(&refused)));
    }
    Ok(behind_alias(usual, env))
}

/// The models to ask when that one does not answer.
pub(super) fn fallbacks(args: &RunArgs, env: &Env, settings: &Settings) -> Vec<String> {
    let said: Vec<&str> =
        args.fallback_model.iter().map(|model| model.trim()).filter(|model| !model.is_empty()).collect();
    let models = match (&settings.fallback_models, said.is_empty()) {
        (Some(models), true) => models.iter().map(String::as_str).collect(),
        _ => said,
    };
    let mut fallbacks: Vec<String> = Vec::new();
    for model in models.into_iter().map(|model| behind_alias(model, env)) {
        if !fallbacks.contains(&model) {
            fallbacks.push(model);
        }
    }
    if let Some(left_out @ [_, ..]) = fallbacks.get(FALLBACK_MODELS_MAX..) {
        tell(&format!(
            "warning: {FALLBACK_MODELS_MAX} fallback models count at most, so these are never asked: {}",
            left_out.join(", ")
        ));
    }
    fallbacks
}

/// Parts of the ids of models for which nothing is kept, whichever of them is asked.
pub(super) fn uncached(env: &Env) -> Vec<String> {
    let is_off =
        |family: &&str| env.is_on(&format!("DISABLE_PROMPT_CACHING_{}", family.to_ascii_uppercase()));
    ["opus", "sonnet", "haiku", "fable"].into_iter().filter(is_off).map(str::to_owned).collect()
}

/// How long the server keeps what it was sent: by the conversation, and by sub-agents. Whoever runs it has the last word.
pub(super) fn cache(env: &Env, settings: &Settings) -> (CacheLife, CacheLife) {
    if env.is_on("DISABLE_PROMPT_CACHING") {
        return (CacheLife::Nothing, CacheLife::Nothing);
    }
    if env.is_on("FORCE_PROMPT_CACHING_5M") {
        return (CacheLife::FiveMinutes, CacheLife::FiveMinutes);
    }
    let own = match env.is_on("ENABLE_PROMPT_CACHING_1H") {
        true => CacheLife::OneHour,
        false => settings.models.cache.unwrap_or_default(),
    };
    (own, settings.models.agents_cache.unwrap_or_default())
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
    let meant = named_by_alias(model, env);
    match meant.strip_suffix("[1m]") {
        Some(usual) if env.is_on("CLAUDE_CODE_DISABLE_1M_CONTEXT") => usual.to_owned(),
        _ => meant,
    }
}

fn named_by_alias(model: &str, env: &Env) -> String {
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
    let level = match env.get("CLAUDE_CODE_EFFORT_LEVEL").or(said) {
        None => settings.effort,
        Some(level) => Some(level.parse::<Effort>().map_err(|error| Fail::new(format!("{error}")))?),
    };
    let most = settings.models.effort_max;
    // A model that nobody told how hard to try tries as hard as it may.
    Ok(level.map(|level| most.map_or(level, |most| level.min(most))).or(most))
}

/// How much it thinks.
pub(super) fn thinking(args: &RunArgs, env: &Env, settings: &Settings) -> Result<Thinking, Fail> {
    let tokens = match (args.client.thinking, args.client.max_thinking_tokens) {
        (Some(ThinkingArg::Adaptive), _) => return Ok(Thinking::Adaptive),
        (Some(ThinkingArg::Enabled), _) => return Ok(Thinking::ModelDefault),
        (Some(ThinkingArg::Disabled), _) => return Ok(Thinking::Disabled),
        (None, Some(tokens)) => Some(tokens),
        (None, None) if env.is_on("CLAUDE_CODE_DISABLE_THINKING") => return Ok(Thinking::Disabled),
        (None, None) => env.number("MAX_THINKING_TOKENS")?,
    };
    let unless_said = match settings.models.thinks {
        Some(false) => Thinking::Disabled,
        Some(true) | None => Thinking::ModelDefault,
    };
    Ok(tokens.map_or(unless_said, Thinking::up_to))
}

/// What is shown of it.
pub(super) fn thinking_display(args: &RunArgs, settings: &Settings) -> ThinkingDisplay {
    match args.client.thinking_display {
        Some(ThinkingDisplayArg::Summarized) => ThinkingDisplay::Summarized,
        None if settings.models.shows_thinking == Some(true) => ThinkingDisplay::Summarized,
        Some(ThinkingDisplayArg::Omitted) | None => ThinkingDisplay::Omitted,
    }
}
