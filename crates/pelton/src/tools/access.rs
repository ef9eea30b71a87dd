//! What a call would touch, by the tool's name alone: for those who judge calls without a session.

use std::path::Path;

use serde_json::Value;

use super::agent;
use super::builtin;
use super::tool::{Access, InvalidInput, ToolCx};
use super::web;

/// What a call of this tool would touch. Tools that are not built in are known by name; what is not known at all
/// may touch anything.
///
/// ```
/// use pelton::tools::{Access, access_of};
/// use serde_json::json;
///
/// let input = json!({"url": "https://example.com/"});
/// let access = access_of("WebFetch", &input, "/work".as_ref()).unwrap();
/// assert_eq!(access, Access::Url("https://example.com/".to_owned()));
/// ```
pub fn access_of(tool: &str, input: &Value, cwd: &Path) -> Result<Access, InvalidInput> {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    let needed =
        |name: &str| field(name).ok_or_else(|| InvalidInput(format!("`{name}` is missing, or no text")));
    let name = if tool == agent::ALIAS { agent::NAME } else { tool };
    match name {
        // Whatever else is wrong with it: this is what rules are about.
        "Bash" | "Monitor" => return Ok(Access::Shell(needed("command")?.to_owned())),
        agent::NAME => {
            let kind = field("subagent_type").map_or_else(|| agent::general_purpose().name, str::to_owned);
            return Ok(Access::Agent(kind));
        }
        "AskUserQuestion" => return Ok(Access::Person("A question to the user needs the user.".to_owned())),
        "WebSearch" => return Ok(Access::Anything),
        "WebFetch" => {
            let url = needed("url")?;
            return Ok(Access::Url(web::address(url).map_or_else(|_| url.to_owned(), String::from)));
        }
        _ => {}
    }
    if let Some(tool) = builtin::all().into_iter().find(|tool| tool.spec().name == name) {
        return tool.access(input, &ToolCx::outside(cwd));
    }
    Ok(match name {
        "MultiEdit" => Access::Edit(cwd.join(needed("file_path")?)),
        "NotebookEdit" => Access::Edit(cwd.join(needed("notebook_path")?)),
        "NotebookRead" => Access::Read(cwd.join(needed("notebook_path")?)),
        "LS" | "LSP" => Access::Read(cwd.join(field("path").or_else(|| field("file_path")).unwrap_or("."))),
        "Skill" | "SlashCommand" => {
            let name = field("skill").or_else(|| field("command")).unwrap_or_default();
            Access::Skill(name.to_owned())
        }
        "TodoWrite" | "TodoRead" | "StructuredOutput" | "EnterPlanMode" | "ToolSearch" => Access::Nothing,
        _ => Access::Anything,
    })
}
