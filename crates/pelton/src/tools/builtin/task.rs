//! TaskStop and TaskOutput: what was started in the background.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::spill::{Shown, last_chars};
use crate::tools::background::{BackgroundEnd, BackgroundKind, BackgroundTask};
use crate::tools::lenient;
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The one that stops.
pub(super) fn stop() -> Arc<dyn Tool> {
    Arc::new(TaskStop)
}

/// The one that looks.
pub(super) fn output() -> Arc<dyn Tool> {
    Arc::new(TaskOutput)
}

struct TaskStop;
struct TaskOutput;

/// What they are called.
pub(crate) const STOP_NAME: &str = "TaskStop";
pub(crate) const OUTPUT_NAME: &str = "TaskOutput";

/// How long a call waits for an end when it does not say.
const WAIT_DEFAULT: Duration = Duration::from_secs(30);
/// How long it may wait.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// Bytes of a command's output that are looked at.
const SHOWN_BYTES_MAX: u64 = 1024 * 1024;

const STOP: Spec<'static> = Spec {
    name: STOP_NAME,
    description: include_str!("task_stop.md"),
    input_schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"shell_id":{"type":"string","description":"old name of task_id"}}}"#,
};

const OUTPUT: Spec<'static> = Spec {
    name: OUTPUT_NAME,
    description: include_str!("task.md"),
    input_schema: r#"{"type":"object","properties":{"task_id":{"type":"string"},"block":{"type":"boolean"},"timeout":{"type":"integer"}},"required":["task_id"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopInput {
    #[serde(default)]
    task_id: Option<String>,
    // Old names of the field are still written by old prompts.
    #[serde(default, alias = "bash_id")]
    shell_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputInput {
    #[serde(alias = "shell_id", alias = "bash_id")]
    task_id: String,
    #[serde(default = "yes", deserialize_with = "lenient::flag")]
    block: bool,
    #[serde(default, deserialize_with = "lenient::count")]
    timeout: Option<u64>,
}

fn yes() -> bool {
    true
}

impl Tool for TaskStop {
    fn spec(&self) -> Spec<'_> {
        STOP
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        // It can only end what a call has started.
        parse_input::<StopInput>(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match parse_input::<StopInput>(&input) {
                Ok(StopInput { task_id, shell_id }) => match task_id.or(shell_id) {
                    Some(id) => stop_task(&id, cx).await,
                    None => Output::error(format!("`task_id` is missing. {}", those_running(cx))),
                },
                Err(InvalidInput(why)) => Output::unusable(why),
            }
        })
    }
}

impl Tool for TaskOutput {
    fn spec(&self) -> Spec<'_> {
        OUTPUT
    }

    fn safety(&self, _: &Value) -> Safety {
        // Who has read how a command ended is not told of it again: that cannot be taken back.
        Safety::Beside
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<OutputInput>(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match parse_input::<OutputInput>(&input) {
                Ok(input) => look_at(&input, cx).await,
                Err(InvalidInput(why)) => Output::unusable(why),
            }
        })
    }
}

async fn stop_task(id: &str, cx: &ToolCx) -> Output {
    let Some((task, ended)) = cx.background.find(id) else { return unknown(id, cx) };
    if let Some(end) = ended {
        cx.background.model_knows(id);
        return Output::error(format!("{id} is not running: it has ended before ({}).", end.words()));
    }
    // TERM, a moment, KILL: twice that is more than it takes.
    let end = cx.background.stop(id, cx.limits.kill_grace * 2).await;
    cx.background.model_knows(id);
    let BackgroundTask { kind, command, description, output, .. } = &*task;
    let detail = json!({"message": format!("Stopped {id}"), "task_id": id, "task_type": kind.name(), "command": command});
    match end {
        None => Output::error(format!("{id} was told to end and has not done so yet.")),
        Some(end) if *kind == BackgroundKind::Agent => Output::text(format!(
            "{id} ({description}): {}.\n\n{}",
            end.words(),
            cx.background.report(id).unwrap_or_default()
        ))
        .with_detail(detail),
        Some(end) => Output::text(format!(
            "{id} ({description}): {}. What it printed is in {}.",
            end.words(),
            output.display()
        ))
        .with_detail(detail),
    }
}

async fn look_at(input: &OutputInput, cx: &ToolCx) -> Output {
    let id = &input.task_id;
    let Some((task, mut ended)) = cx.background.find(id) else { return unknown(id, cx) };
    if input.block && ended.is_none() {
        let at_most = input.timeout.map_or(WAIT_DEFAULT, Duration::from_millis).min(WAIT_MAX);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Output::error(super::INTERRUPTED),
            end = cx.background.wait(id, at_most) => ended = end,
        }
    }
    cx.background.model_knows(id);
    let state = ended.map_or_else(|| "still running".to_owned(), BackgroundEnd::words);
    let (text, whole) = match cx.background.report(id) {
        Some(report) => (report.to_string(), true),
        None => {
            let output = task.output.clone();
            let chars_max = cx.limits.task_output_chars_max;
            match super::looking_for(cx, move |_| newest(&output, chars_max)).await {
                Ok(Ok(shown)) => shown,
                Ok(Err(error)) => (format!("[What it printed cannot be read: {error}.]"), true),
                Err(interrupted) => return interrupted,
            }
        }
    };
    let note =
        if whole { String::new() } else { format!(" The end of it; all is in {}:", task.output.display()) };
    let printed = if text.trim().is_empty() { "[No output so far.]".to_owned() } else { text };
    let (status, code) = match ended {
        None => ("running", None),
        Some(BackgroundEnd::Exited(code)) => (if code == 0 { "completed" } else { "failed" }, Some(code)),
        Some(BackgroundEnd::Reported) => ("completed", None),
        Some(BackgroundEnd::Failed) => ("failed", None),
        Some(_) => ("killed", None),
    };
    let detail = json!({
        "retrieval_status": if ended.is_some() || !input.block { "success" } else { "timeout" },
        "task": {
            "task_id": id,
            "task_type": task.kind.name(),
            "status": status,
            "description": task.description,
            "output": printed,
            "exitCode": code,
        },
    });
    Output::text(format!("{id} ({}): {state}.{note}\n{printed}", task.description)).with_detail(detail)
}

/// The end of what was printed, and whether that is all of it.
fn newest(output: &Path, chars_max: usize) -> std::io::Result<(String, bool)> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(output)?;
    let size = file.metadata()?.len();
    let from = size.saturating_sub(SHOWN_BYTES_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(SHOWN_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let shown = last_chars(&text, chars_max);
    let whole = from == 0 && shown.len() == text.len();
    Ok((Shown::of(shown, chars_max).with_note(None), whole))
}

fn unknown(id: &str, cx: &ToolCx) -> Output {
    Output::error(format!("Nothing in the background is called '{id}'. {}", those_running(cx)))
}

fn those_running(cx: &ToolCx) -> String {
    let running = cx.background.running();
    match running.is_empty() {
        true => "Nothing runs in the background.".to_owned(),
        false => format!("Running: {}.", running.join(", ")),
    }
}

#[cfg(test)]
mod tests;
