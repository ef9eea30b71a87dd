//! A command in the background: started, and left to itself.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;

use super::Input;
use super::boxed::Held;
use super::capture::Pipes;
use super::shell::Shell;
use super::words;
use crate::spill;
use crate::tools::background::{BackgroundKind, BackgroundTask, Terms};
use crate::tools::process::ProcessTree;
use crate::tools::tool::{Output, ToolCx};

/// Characters of a command that stand for it where nobody said what it is for.
const DESCRIPTION_CHARS_MAX: usize = 100;

/// What the model reads where nothing runs in the background.
const OFF: &str =
    "Commands in the background are switched off here, so nothing was run. Run it without run_in_background.";

/// Both sides are answers; the error side says why nothing was started.
pub(super) async fn run(input: &Input, cx: &ToolCx) -> Result<Output, String> {
    let limits = &cx.limits;
    if limits.background_off {
        return Err(OFF.to_owned());
    }
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
        kind: BackgroundKind::Command,
        id: id.clone(),
        call: cx.call_id.clone(),
        command: input.command.clone(),
        description: description(input),
        agent_type: None,
        output: output.clone(),
    };
    let terms = Terms::new(time, cx);
    cx.background.keep(task, tree, terms, way_out);
    Ok(started(input, &id, &output, time))
}

/// A command that was in front, and goes on here.
pub(super) struct Aside<'a> {
    /// Where what it printed so far is already.
    pub output: &'a Path,
    /// How long it has run.
    pub after: Duration,
    /// Its time was up; otherwise somebody wanted it.
    pub by_time: bool,
    /// What it reaches others by.
    pub way_out: Option<BoxFuture<'static, Infallible>>,
}

/// A command goes on here that was in front.
pub(super) fn go_on(
    input: &Input,
    cx: &ToolCx,
    tree: ProcessTree,
    pipes: Pipes<'_>,
    aside: Aside<'_>,
) -> Output {
    let Aside { output, after, by_time, way_out } = aside;
    let limits = &cx.limits;
    let id = format!("b{:08x}", cx.world.random() >> 32);
    let task = BackgroundTask {
        kind: BackgroundKind::Command,
        id: id.clone(),
        call: cx.call_id.clone(),
        command: input.command.clone(),
        description: description(input),
        agent_type: None,
        output: output.to_path_buf(),
    };
    let time = limits.background_time_default.min(limits.background_time_max);
    let terms = Terms::new(time, cx);
    let (shown, rest) = pipes.leave();
    cx.background.keep_with(task, tree, terms, way_out, rest);
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    let shown = shown.with_note(Some(output));
    let text = format!(
        "[{} after {after_ms} ms: it goes on in the background as {id}, for at most {} s. All it prints goes to {}: use \
         Read or Grep on it. You are told when it ends. TaskStop stops it. Printed until now:]\n{}",
        if by_time { "Not done" } else { "Put aside by the user" },
        time.as_secs(),
        output.display(),
        if shown.trim().is_empty() { "[No output.]" } else { &shown },
    );
    let mut detail = json!({
        "stdout": shown,
        "stderr": "",
        "interrupted": false,
        "isImage": false,
        "noOutputExpected": words::is_silent(&input.command),
        "backgroundTaskId": id,
    });
    if by_time {
        detail["timedOutAfterMs"] = after_ms.into();
    } else {
        detail["backgroundedByUser"] = true.into();
    }
    Output::text(text).with_detail(detail)
}

fn started(input: &Input, id: &str, output: &Path, time: Duration) -> Output {
    let text = format!(
        "Runs in the background as {id}, for at most {} s. What it prints goes to {}: use Read or Grep on it. \
         You are told when it ends. TaskStop stops it.",
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
