//! One call, judged as a session that was started here would judge it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pelton::permission::{Decision, HookSays, Judged, Permissions};
use pelton::tools::access_of;
use serde_json::{Value, json};

use super::show;
use crate::args::ExplainArgs;
use crate::fail::Fail;
use crate::resolve::{self, Env};

pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let (permissions, cwd) = resolve::rights(&args.run, &env)?;
    let (tool, input) = match (&args.tool, &args.input, &args.run.prompt) {
        (tool, Some(input), None) => {
            let input: Value = serde_json::from_str(input)
                .map_err(|error| Fail::new(format!("--input is no JSON: {error}")))?;
            (tool.as_deref().unwrap_or("Bash"), input)
        }
        (_, None, Some(command)) => ("Bash", json!({"command": command})),
        _ => {
            return Err(Fail::new(
                "say one command in quotes, or --tool with --input: pelton permissions explain 'git log; rm -rf x'",
            ));
        }
    };
    let decision = judge(&permissions, tool, &input, &cwd)?;
    let text = if args.json {
        Value::Object(show::json(&decision)).to_string()
    } else {
        let shown = show::text(&decision);
        shown.lines().map(pelton_serve::plain).collect::<Vec<_>>().join("\n")
    };
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(ExitCode::SUCCESS)
}

pub(super) fn judge(
    permissions: &Permissions,
    tool: &str,
    input: &Value,
    cwd: &Path,
) -> Result<Decision, Fail> {
    let access = access_of(tool, input, cwd)
        .map_err(|invalid| Fail::new(format!("{tool} cannot be called with this: {}", invalid.0)))?;
    let call = Judged { tool, input, access: &access, cwd, hook: HookSays::Nothing };
    Ok(permissions.judge(&call))
}
