//! A command in the background: started, and left to itself.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::Input;
use super::boxed::Held;
use super::shell::Shell;
use super::words;
use crate::spill;
use crate::tools::background::{BackgroundTask, Terms};
use crate::tools::tool::{Output, ToolCx};

/// Characters of a command that stand for it where nobody said what it is for.
const DESCRIPTION_CHARS_MAX: usize = 100;

/// Both sides are answers; the error side says why nothing was started.
pub(super) async fn run(input: &Input, cx: &ToolCx) -> Result<Output, String> {
    let limits = &cx.limits;
    let time = input
        .timeout
        .map_or(limits.background_time_default, Duration::from_millis)
        .min(limits.background_time_max);
    cx.background.has_room()?;
    let id = format!("b{:08x}", cx.world.random() >> 32);
    let (file, output) = spill::growing(&cx.spill_dir, &id)
        .await
        .map_err(|error| format!("There is no file for what it prints: {error}. Nothing was run."))?;
    let shell = Shell::find(&cx.env);
    let held = Held::prepare(input, cx).await?;
    let way_out = held.as_ref().and_then(Held::way_out);
    let tree = shell
        .start_into(&file, &input.command, cx, held)
        .map_err(|error| format!("{} could not be started: {error}.", shell.program().display()))?;
    let task = BackgroundTask {
        id: id.clone(),
        call: cx.call_id.clone(),
        command: input.command.clone(),
        description: description(input),
        output: output.clone(),
    };
    let terms = Terms { time, output_bytes_max: limits.shell_spill_bytes_max, kill_grace: limits.kill_grace };
    cx.background.keep(task, tree, terms, way_out);
    Ok(started(input, &id, &output, time))
}

fn started(input: &Input, id: &str, output: &Path, time: Duration) -> Output {
    let text = format!(
        "Runs in the background as {id}, for at most {} s. What it prints goes to {}: use Read or Grep on it, or \
         TaskOutput to wait for its end. You are told when it ends. TaskStop stops it.",
        time.as_secs(),
        output.display()
    );
    Output::text(text).with_detail(json!({
        "stdout": "",
        "stderr": "",
        "interrupted": false,
        "isImage": false,
        "noOutputExpected": words::is_silent(&input.command),
        "backgroundTaskId": id,
    }))
}

fn description(input: &Input) -> String {
    match input.description.as_deref().map(str::trim) {
        Some(description) if !description.is_empty() => description.to_owned(),
        _ => spill::first_chars(input.command.trim(), DESCRIPTION_CHARS_MAX).to_owned(),
    }
}
