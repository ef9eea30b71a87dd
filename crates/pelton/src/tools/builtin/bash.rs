//! Bash: a command, what it printed, and nothing of it left running.

mod beside; // in the background
mod boxed; // in a box
mod capture;
mod seen; // commands that show a file
mod shell;
mod words;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::boxed::Held;
use self::capture::{Captured, Pipes};
use self::shell::{Directory, Shell};
use crate::limits::{SHELL_COMMAND_BYTES_MAX, SHELL_KILL_GRACE_SHORT};
use crate::permission::shell::is_read_only;
use crate::tools::lenient;
use crate::tools::process::{Ended, ProcessTree, exit_code};
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(BashTool)
}

struct BashTool;

const SPEC: Spec<'static> = Spec {
    name: "Bash",
    description: include_str!("bash.md"),
    input_schema: r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"},"description":{"type":"string"},"run_in_background":{"type":"boolean"},"dangerouslyDisableSandbox":{"type":"boolean"}},"required":["command"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    #[serde(default, deserialize_with = "lenient::count")]
    timeout: Option<u64>,
    /// For the people who watch.
    #[serde(default)]
    description: Option<String>,
    #[serde(default, deserialize_with = "lenient::flag")]
    run_in_background: bool,
    #[serde(default, rename = "dangerouslyDisableSandbox", deserialize_with = "lenient::flag")]
    outside: bool,
}

impl Tool for BashTool {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, input: &Value) -> Safety {
        match parse(input) {
            Ok(input) if is_read_only(&input.command) => Safety::Shared,
            _ => Safety::Alone,
        }
    }

    fn access(&self, input: &Value, _cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse(input).map(|input| Access::Shell(input.command))
    }

    fn is_held(&self, input: &Value, cx: &ToolCx) -> bool {
        parse(input).is_ok_and(|input| boxed::vouches(&input, cx))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match parse(&input) {
                Ok(input) if input.run_in_background => {
                    beside::run(&input, cx).await.unwrap_or_else(Output::error)
                }
                Ok(input) => run(&input, cx).await.unwrap_or_else(Output::error),
                Err(InvalidInput(why)) => Output::unusable(why),
            }
        })
    }
}

fn parse(input: &Value) -> Result<Input, InvalidInput> {
    let input: Input = parse_input(input)?;
    let wrong = |why: &str| Err(InvalidInput(why.to_owned()));
    if input.command.trim().is_empty() {
        return wrong("`command` is empty");
    }
    if input.command.contains('\0') {
        return wrong("`command` holds a zero byte, which no shell can take");
    }
    if input.command.len() > SHELL_COMMAND_BYTES_MAX {
        return wrong("`command` is longer than 128 KB: write it to a file with Write and run that");
    }
    if input.timeout == Some(0) {
        return wrong("`timeout` must be 1 or more milliseconds");
    }
    Ok(input)
}

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Exited,
    TimedOut,
    Interrupted,
    PrintedTooMuch,
}

/// Both sides are answers; the error side says what is wrong with the machine.
async fn run(input: &Input, cx: &ToolCx) -> Result<Output, String> {
    let time = input
        .timeout
        .map_or(cx.limits.shell_time_default, Duration::from_millis)
        .min(cx.limits.shell_time_max);
    if cx.cancel.is_cancelled() {
        return Err(super::INTERRUPTED.to_owned());
    }
    // Starting the command goes there as well, and waits as long: a thread for this would not make it any shorter.
    if std::fs::metadata(&cx.cwd).is_err() {
        return Ok(lost_directory(cx).await);
    }
    let shell = Shell::find(&cx.env);
    let held = Held::prepare(input, cx).await?;
    let (mut tree, directory) = shell
        .start(&input.command, cx, held.as_ref())
        .map_err(|error| format!("{} could not be started: {error}.", shell.program().display()))?;
    let mut pipes = Pipes::new(&mut tree, cx).ok_or_else(|| "The shell has no pipes.".to_owned())?;

    let in_front = cx.background.in_front(&cx.call_id);
    let (began, mut may_be_put_aside) = (cx.world.monotonic(), true);
    let mut time_is_up = std::pin::pin!(sleep(time));
    let over = loop {
        // Nothing: somebody wants it to go on in the background.
        let over = pipes
            .read_until(async {
                tokio::select! {
                    biased;
                    never = Held::serve(held.as_ref()) => match never {},
                    () = cx.cancel.cancelled() => Some(Over::Interrupted),
                    _ = tree.wait() => Some(Over::Exited),
                    () = &mut time_is_up => Some(Over::TimedOut),
                    () = in_front.put_aside(), if may_be_put_aside => None,
                }
            })
            .await
            .unwrap_or(Some(Over::PrintedTooMuch));
        let by_time = over == Some(Over::TimedOut);
        if (over.is_none() || by_time && cx.limits.shell_goes_on_beside)
            && !cx.limits.background_off
            && cx.background.has_room().is_ok()
            && let Some(output) = pipes.put_aside().await
        {
            let way_out = held.as_ref().and_then(Held::way_out);
            // It says where it ended up, and would be surprised if nobody listened. Its box is looked after when it has ended.
            tree.outlive_with((directory, held));
            let after = if by_time { time } else { cx.world.monotonic().saturating_sub(began) };
            let aside = beside::Aside { output: &output, after, by_time, way_out };
            return Ok(beside::go_on(input, cx, tree, pipes, aside));
        }
        if let Some(over) = over {
            break over;
        }
        // There is no place for it: it stays in front.
        may_be_put_aside = false;
    };
    drop(in_front);
    let ended = match over {
        Over::Exited => {
            // The shell has ended. What is still on its way is read; whoever else holds the pipes is not waited for.
            pipes.drain().await;
            tree.end(SHELL_KILL_GRACE_SHORT, SHELL_KILL_GRACE_SHORT).await
        }
        Over::Interrupted => stop(&mut tree, &mut pipes, SHELL_KILL_GRACE_SHORT, cx).await,
        Over::TimedOut | Over::PrintedTooMuch => stop(&mut tree, &mut pipes, cx.limits.kill_grace, cx).await,
    };
    let ended = ended.map_err(|error| format!("The command's end could not be observed: {error}."))?;
    let left_running = ended.asked && over == Over::Exited;
    let moved = directory.and_then(Directory::read).filter(|_| over == Over::Exited);
    let is_answer = over == Over::Exited
        && match exit_code(ended.status) {
            0 => true,
            1 => words::meaning_of_exit_one(&input.command).is_some(),
            _ => false,
        };
    let shown = if is_answer { cx.limits.shell_output_chars_max } else { cx.limits.shell_failure_chars_max };
    let captured = pipes.finish(shown).await;
    if is_answer && exit_code(ended.status) == 0 && captured.kept_at.is_none() && captured.bytes > 0 {
        seen::note(&input.command, cx).await;
    }
    let held = match held {
        Some(held) => held.finish(input, cx, ended.status, &captured).await?,
        None => Vec::new(),
    };
    let outcome = Outcome { over, status: ended.status, time, captured, left_running, held };
    Ok(answer(input, cx, &outcome, moved).await)
}

/// Ends a command that is still running.
async fn stop(
    tree: &mut ProcessTree,
    pipes: &mut Pipes<'_>,
    grace: Duration,
    cx: &ToolCx,
) -> io::Result<Ended> {
    tree.terminate();
    let was_interrupted = cx.cancel.is_cancelled();
    // Read on meanwhile: a program that tidies up may have something to say, and must not wait for a reader.
    let gone = async {
        tokio::select! {
            _ = tree.gone() => {}
            () = sleep(grace) => {}
            () = cx.cancel.cancelled(), if !was_interrupted => {}
        }
    };
    pipes.read_on_until(gone).await;
    let ended = tree.end(Duration::ZERO, Duration::ZERO).await;
    pipes.drain().await;
    ended
}

struct Outcome {
    over: Over,
    status: ExitStatus,
    time: Duration,
    captured: Captured,
    /// Something in the background had to be stopped.
    left_running: bool,
    /// What the box has to say.
    held: Vec<String>,
}

async fn answer(input: &Input, cx: &ToolCx, outcome: &Outcome, moved: Option<PathBuf>) -> Output {
    let Outcome { over, status, time, captured, left_running, held } = outcome;
    let code = exit_code(*status);
    let meaning =
        if *over == Over::Exited && code == 1 { words::meaning_of_exit_one(&input.command) } else { None };
    let failed = *over != Over::Exited || (code != 0 && meaning.is_none());
    let (new_cwd, moved_note) = match moved {
        Some(moved) => follow(cx, moved).await,
        None => (None, None),
    };

    let mut lines = Vec::new();
    match over {
        Over::Exited if failed => {
            lines.push(format!("Exit code {code}"));
            lines.extend(shell::signal_of(*status).map(|signal| format!("[Killed by signal {signal}.]")));
        }
        Over::Exited => {}
        Over::TimedOut => lines
            .push(format!("[Timed out after {} ms and was killed. Printed until then:]", time.as_millis())),
        Over::Interrupted => {
            lines.push("[Interrupted by the user and killed. Printed until then:]".to_owned());
        }
        Over::PrintedTooMuch => lines.push(format!(
            "[Killed: it printed more than {} bytes. The beginning and the end:]",
            cx.limits.shell_spill_bytes_max
        )),
    }
    if !captured.text.trim().is_empty() {
        lines.push(captured.text.clone());
    } else if let Some(meaning) = meaning {
        lines.push(format!("[No output; exit code 1: {meaning}.]"));
    } else {
        lines.push("[No output.]".to_owned());
    }
    if *left_running {
        lines.push("[Processes it left running in the background were stopped.]".to_owned());
    }
    lines.extend(captured.lost.as_ref().map(|why| format!("[The whole output could not be kept: {why}.]")));
    lines.extend(held.iter().cloned());
    lines.extend(moved_note);

    let mut detail = json!({
        "stdout": captured.stdout,
        "stderr": captured.stderr,
        "interrupted": matches!(over, Over::Interrupted | Over::TimedOut),
        "isImage": false,
        "noOutputExpected": words::is_silent(&input.command),
    });
    if *over == Over::TimedOut {
        detail["timedOutAfterMs"] = json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }
    if let Some(meaning) = meaning {
        detail["returnCodeInterpretation"] = json!(meaning);
    }
    if let Some(path) = &captured.kept_at {
        detail["persistedOutputPath"] = json!(path);
        detail["persistedOutputSize"] = json!(captured.bytes);
    }
    Output { is_error: failed, new_cwd, ..Output::text(lines.join("\n")).with_detail(detail) }
}

/// Where the next call starts, and a note when that is not where this one ended.
async fn follow(cx: &ToolCx, moved: PathBuf) -> (Option<PathBuf>, Option<String>) {
    let real = async |path: &PathBuf| tokio::fs::canonicalize(path).await.ok();
    if cx.limits.shell_stays || moved == cx.cwd || real(&cx.cwd).await.as_ref() == Some(&moved) {
        return (None, None);
    }
    for root in cx.roots.iter() {
        if real(root).await.is_some_and(|root| moved.starts_with(root)) {
            return (Some(moved), None);
        }
    }
    let note = format!(
        "[The working directory is again {}: {} is outside of the session's directories.]",
        cx.cwd.display(),
        moved.display()
    );
    (None, Some(note))
}

/// The working directory is gone: say so, and go on from the first root that is there.
async fn lost_directory(cx: &ToolCx) -> Output {
    let mut output =
        Output::error(format!("The working directory {} does not exist any more.", cx.cwd.display()));
    for root in cx.roots.iter() {
        if tokio::fs::metadata(root).await.is_ok_and(|metadata| metadata.is_dir()) {
            output = Output::error(format!(
                "The working directory {} does not exist any more; it is {} now. Nothing was run.",
                cx.cwd.display(),
                root.display()
            ));
            output.new_cwd = Some(root.clone());
            break;
        }
    }
    output
}

#[cfg(test)]
mod tests;
