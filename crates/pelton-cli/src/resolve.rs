//! What was said, by flags and environment, becomes what is meant: complete `Options`. The only place that reads
//! the environment.

mod credentials; // who pays
mod env; // what the process was given
mod limits; // how often, how long, how much
mod network; // which server, by which road
mod permission; // what may run
mod sessions; // where sessions are kept, and which one goes on

use std::sync::Arc;

use pelton::Options;
use pelton::permission::RuleSet;
use pelton::transcript::find_session;
use pelton_model::{Effort, Endpoint, HttpTransport, Thinking};

use self::credentials::credentials;
pub(crate) use self::env::Env;
use self::limits::limits;
use self::network::{endpoint, http_options};
use self::permission::{keep_tools, mode, rules};
use self::sessions::{resumed, sessions};
use crate::args::RunArgs;
use crate::fail::Fail;

/// Everything the engine needs to know.
pub(crate) fn options(args: &RunArgs, env: &Env) -> Result<Options, Fail> {
    let (auth, api_key_source) = credentials(env)?;
    let mut options = options_for(args, env, endpoint(env, auth)?)?;
    options.api_key_source = api_key_source;
    Ok(options)
}

/// The same, for a server that is known already.
pub(crate) fn options_for(args: &RunArgs, env: &Env, endpoint: Endpoint) -> Result<Options, Fail> {
    let cwd = std::env::current_dir().map_err(|error| {
        Fail::at_start(format!("cannot read the working directory: {error} (change to one that exists)"))
    })?;
    let mut options = Options::new(cwd.clone(), endpoint);
    options.transport = Arc::new(HttpTransport::new(http_options(env)?));
    options.additional_dirs = args.add_dir.iter().map(|dir| cwd.join(dir)).collect();
    if let Some(model) =
        args.model.as_deref().filter(|model| !model.is_empty()).or(env.get("ANTHROPIC_MODEL"))
    {
        options.model = model.to_owned();
    }
    options.max_output_tokens = env.number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?;
    options.effort = effort(args, env)?;
    options.thinking = match env.number::<u32>("MAX_THINKING_TOKENS")? {
        None => Thinking::ModelDefault,
        Some(0) => Thinking::Disabled,
        Some(budget) => Thinking::Enabled { budget },
    };
    options.system_prompt.custom.clone_from(&args.system_prompt);
    options.system_prompt.appended.clone_from(&args.append_system_prompt);
    if let Some(names) = &args.tools {
        keep_tools(&mut options, names)?;
    }
    options.mode = mode(args, env)?;
    options.rules =
        RuleSet { allow: rules(&args.allowed_tools)?, ask: Vec::new(), deny: rules(&args.disallowed_tools)? };
    options.fallback_models = args
        .fallback_model
        .iter()
        .map(|model| model.trim().to_owned())
        .filter(|model| !model.is_empty())
        .collect();
    options.max_budget_usd = budget(args)?;
    options.window_tokens = env.number("CLAUDE_CODE_MAX_CONTEXT_TOKENS")?;
    options.json_schema = schema(args)?;
    options.limits.turns_max = match args.max_turns {
        Some(turns) => Some(turns),
        None => env.number("CLAUDE_CODE_MAX_TURNS")?,
    };
    limits(&mut options, env)?;
    options.env = env.all();
    options.home = env.path("HOME");
    options.temp_dir = env.path("TMPDIR").unwrap_or(options.temp_dir);
    options.session_id = args.session_id;
    options.entrypoint = env.get("CLAUDE_CODE_ENTRYPOINT").unwrap_or("cli").to_owned();
    options.sessions = if args.no_session_persistence { None } else { sessions(args, env) };
    options.resume = resumed(args, env, &options)?;
    if let (Some(id), Some(sessions)) = (args.session_id, &options.sessions)
        && find_session(&sessions.config_dir, &cwd, id).is_some()
    {
        return Err(Fail::at_start(format!("session {id} exists already: go on with it by --resume {id}")));
    }
    Ok(options)
}

fn effort(args: &RunArgs, env: &Env) -> Result<Option<Effort>, Fail> {
    let said = args.effort.as_deref().filter(|level| !level.is_empty());
    let Some(level) = env.get("CLAUDE_CODE_EFFORT_LEVEL").or(said) else { return Ok(None) };
    level.parse().map(Some).map_err(|error| Fail::new(format!("{error}")))
}

fn budget(args: &RunArgs) -> Result<Option<f64>, Fail> {
    match args.max_budget_usd {
        Some(usd) if !(usd.is_finite() && usd > 0.0) => Err(Fail::new(format!(
            "--max-budget-usd {usd} is not an amount: write one above 0, such as 2.50"
        ))),
        budget => Ok(budget),
    }
}

fn schema(args: &RunArgs) -> Result<Option<serde_json::Value>, Fail> {
    let Some(text) = args.json_schema.as_deref().filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let schema = serde_json::from_str(text)
        .map_err(|error| Fail::new(format!("--json-schema is not JSON: {error}")))?;
    Ok(Some(schema))
}
