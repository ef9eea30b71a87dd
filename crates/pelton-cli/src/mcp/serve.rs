//! `pelton mcp serve`: the built-in tools, for programs that speak MCP.

use std::process::ExitCode;

use pelton::{EndReason, Engine};
use pelton_serve::serve_tools;

use crate::args::RunArgs;
use crate::fail::{Fail, tell};
use crate::resolve::{self, Env};
use crate::signals::Signals;

/// Tools that need neither a model nor a person.
const SERVED: [&str; 9] =
    ["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskOutput", "TaskStop", "Write"];

pub(super) async fn serve(args: &RunArgs) -> Result<ExitCode, Fail> {
    let mut signals = Signals::listen()?;
    let mut options = resolve::without_model(args, &Env::of_process())?;
    options.tools.retain(|tool| SERVED.contains(&tool.spec().name));
    // No conversation is had, so there is none to keep.
    options.sessions = None;
    let engine = Engine::new(options).map_err(|error| Fail::new(error.to_string()))?;
    let mut out = std::io::stdout();
    let served = tokio::select! {
        biased;
        // What runs ends with what is dropped.
        ending = signals.next() => {
            tell(ending.word());
            return Ok(ExitCode::from(ending.exit_code()));
        }
        served = serve_tools(&engine, std::io::stdin(), &mut out) => served,
    };
    engine.close(EndReason::Other).await;
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Fail::new(format!("the client is gone: {error}"))),
    }
}
