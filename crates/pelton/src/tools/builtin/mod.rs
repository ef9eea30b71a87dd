//! The tools every session has. Each file is one tool; the page beside it is what the model reads about it.

pub(crate) mod ask_user;
mod bash;
mod edit;
mod glob;
mod grep;
mod notebook_edit;
pub(crate) mod plan;
pub(crate) mod read;
pub(crate) mod task;
pub(crate) mod tasks;
pub(crate) mod todo;
mod web_fetch;
pub(crate) mod web_search;
mod write;

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::agent;
use super::disk::is_quick;
use super::tool::{Output, Tool, ToolCx};
use crate::skills;

/// Tools that read or change one file, which their input names.
pub(crate) const FILE_TOOLS: [&str; 4] = ["Read", "Write", "Edit", "NotebookEdit"];

/// All built-in tools, by name: the order is part of what is cached, so it never depends on anything.
///
/// ```
/// let names: Vec<String> = pelton::tools::builtin::all().iter().map(|tool| tool.spec().name.to_owned()).collect();
/// assert!(names.contains(&"Read".to_owned()));
/// ```
pub fn all() -> Vec<Arc<dyn Tool>> {
    let [enter_plan, exit_plan] = plan::tools();
    let [task_create, task_get, task_list, task_update] = tasks::tools();
    vec![
        agent::tool(),
        ask_user::tool(),
        bash::tool(),
        edit::tool(),
        enter_plan,
        exit_plan,
        glob::tool(),
        grep::tool(),
        notebook_edit::tool(),
        read::tool(),
        agent::message_tool(),
        skills::tool(),
        task_create,
        task_get,
        task_list,
        task::output(),
        task::stop(),
        task_update,
        todo::tool(),
        web_fetch::tool(),
        web_search::tool(),
        write::tool(),
    ]
}

/// Read alone, for what a prompt mentions.
pub(crate) fn reader() -> Arc<dyn Tool> {
    read::tool()
}

/// Bash alone, for commands in skills.
pub(crate) fn shell() -> Arc<dyn Tool> {
    bash::tool()
}

/// What a call answers that the user stopped.
const INTERRUPTED: &str = "Interrupted by the user before it was done.";

/// Runs work that blocks beside the runtime. The work sees a token that is set when the call is interrupted or
/// dropped, and the call answers at once when that happens.
async fn looking(cx: &ToolCx, work: impl FnOnce(&CancellationToken) -> Output + Send + 'static) -> Output {
    looking_for(cx, work).await.unwrap_or_else(|failed| failed)
}

/// The same for work that is not the whole answer yet; fails with the answer of a call that ends here.
async fn looking_for<T: Send + 'static>(
    cx: &ToolCx,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<T, Output> {
    let cancel = cx.cancel.child_token();
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(Output::error(INTERRUPTED)),
        seen = beside(cancel, work) => seen,
    }
}

/// The same for looking at one file.
async fn looking_at<T: Send + 'static>(
    cx: &ToolCx,
    file: &Path,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<T, Output> {
    if !cx.cancel.is_cancelled() && is_quick(file) {
        Ok(work(&cx.cancel))
    } else {
        looking_for(cx, work).await
    }
}

/// The same for work that changes something: it is waited for, so that the answer says what really happened.
async fn changing(
    cancel: CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Output + Send + 'static,
) -> Output {
    beside(cancel, work).await.unwrap_or_else(|failed| failed)
}

/// The refusal that work which only looks comes to, if it does.
async fn refused_by(work: impl FnOnce() -> Option<String> + Send + 'static) -> Option<Output> {
    let why = beside(CancellationToken::new(), move |_| work()).await.ok().flatten();
    why.map(Output::error)
}

async fn beside<T: Send + 'static>(
    cancel: CancellationToken,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<T, Output> {
    let _dropped = cancel.clone().drop_guard();
    // One tool's panic is an error result, not the end of the session.
    tokio::task::spawn_blocking(move || work(&cancel))
        .await
        .map_err(|error| Output::error(format!("The tool failed inside: {error}")))
}

#[cfg(test)]
mod tests;
