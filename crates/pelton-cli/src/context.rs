//! `pelton context`: what fills the context of a session, and what could be done about it.

use std::io::Write as _;
use std::process::ExitCode;

use pelton::history::Kind;
use pelton::transcript::{self, find_session};
use pelton::{Engine, Resumed};
use pelton_serve::plain;

use crate::args::{ContextArgs, RunArgs};
use crate::fail::Fail;
use crate::resolve::{Env, sessions, without_model, working_directory};

pub(crate) fn run(args: &ContextArgs, said: &RunArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let config_dir = sessions::config_dir(&env)
        .ok_or_else(|| Fail::new("cannot look for sessions: set CLAUDE_CONFIG_DIR or HOME"))?;
    let cwd = working_directory()?;
    let real = cwd.canonicalize().unwrap_or_else(|_| cwd.clone());
    let file = find_session(&config_dir, &real, args.session)
        .ok_or_else(|| Fail::no_conversation(&args.session.to_string()))?;
    let conversation = transcript::read_window(&file).map_err(|error| Fail::new(error.to_string()))?;
    // Nobody is asked, and nothing is written. Thresholds and prices are those of a session that goes on here.
    let mut options = without_model(said, &env)?;
    let model = conversation.entries.iter().rev().find_map(|entry| match &entry.kind {
        Kind::Assistant { origin, .. } => Some(origin.model.clone()),
        _ => None,
    });
    options.model = model.unwrap_or(options.model);
    options.resume = Some(Resumed { file, conversation });
    let usage = Engine::new(options).map_err(|error| Fail::new(error.to_string()))?.context_usage_recorded();
    let told = match args.json {
        true => serde_json::to_string(&usage).map_err(|error| Fail::new(error.to_string()))?,
        false => plain(&usage.to_string()).to_string(),
    };
    let written = writeln!(std::io::stdout(), "{told}");
    written.map_err(|error| Fail::new(format!("cannot write to standard output: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
