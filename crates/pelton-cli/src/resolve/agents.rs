//! Which agents there are.

use std::path::Path;

use pelton::tools::AgentDefinition;
use serde_json::Value;

use crate::args::RunArgs;
use crate::fail::Fail;

/// The agents that are there anyway, and those the command line defines; of two with one name the latter counts.
pub(super) fn with_said(
    mut agents: Vec<AgentDefinition>,
    args: &RunArgs,
    cwd: &Path,
) -> Result<Vec<AgentDefinition>, Fail> {
    let Some(said) = args.client.agents.as_deref().filter(|said| !said.trim().is_empty()) else {
        return Ok(agents);
    };
    let (name, text) = if said.trim_start().starts_with('{') {
        ("--agents".to_owned(), said.to_owned())
    } else {
        let file = cwd.join(said);
        let name = format!("--agents {}", file.display());
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Fail::at_start(format!("{name} cannot be read: {error}")))?;
        (name, text)
    };
    let json: Value = serde_json::from_str(&text)
        .map_err(|error| Fail::at_start(format!("{name} is not JSON: {error}")))?;
    let said =
        AgentDefinition::all_from_json(&json).map_err(|error| Fail::at_start(format!("{name}: {error}")))?;
    agents.retain(|agent| said.iter().all(|said| said.name != agent.name));
    agents.extend(said);
    Ok(agents)
}
