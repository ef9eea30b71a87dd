//! A command in a box: built before it starts, looked after when it has ended.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use futures::future::BoxFuture;
use pelton_sandbox::{FAILED_CODE, FAILED_WORDS, Prepared};

use super::Input;
use super::capture::Captured;
use crate::sandbox::{Proxy, Sandbox, Seen};
use crate::tools::tool::ToolCx;

/// A command's box.
pub(super) struct Held {
    sandbox: Arc<Sandbox>,
    prepared: Prepared,
    /// The way out, if there is one.
    proxy: Option<Arc<Proxy>>,
}

/// Whether the box takes the place of an approval.
pub(super) fn vouches(input: &Input, cx: &ToolCx) -> bool {
    sandbox_of(input, cx).is_some_and(|sandbox| sandbox.vouches())
}

/// The sandbox, if this command runs in one.
fn sandbox_of<'a>(input: &Input, cx: &'a ToolCx) -> Option<&'a Arc<Sandbox>> {
    cx.sandbox.as_ref().filter(|sandbox| sandbox.holds(&input.command, input.outside))
}

impl Held {
    /// The box of this command, if it gets one. The error says why it cannot be had.
    pub async fn prepare(input: &Input, cx: &ToolCx) -> Result<Option<Self>, String> {
        let Some(sandbox) = sandbox_of(input, cx).cloned() else { return Ok(None) };
        let unbuilt = |error: io::Error| format!("Nothing was run: no sandbox could be made: {error}.");
        let proxy = sandbox.proxy(cx.door.clone()).map_err(unbuilt)?.map(Arc::new);
        let bridge = proxy.as_ref().map(|proxy| proxy.socket().to_path_buf());
        let (roots, cwd) = (Arc::clone(&cx.roots), cx.cwd.clone());
        let work = move || {
            let prepared = sandbox.prepare(&roots, &cwd, bridge)?;
            Ok(Self { sandbox, prepared, proxy })
        };
        off_the_runtime(work).await.map(Some).map_err(unbuilt)
    }

    /// What has to be started so that the shell runs in the box.
    pub fn command(
        &self,
        shell: &Path,
        args: &[&OsStr],
        env: &mut Vec<(OsString, OsString)>,
        keep: &[RawFd],
    ) -> (PathBuf, Vec<OsString>) {
        self.sandbox.dress(env, self.proxy.is_some());
        self.prepared.command(self.sandbox.helper(), shell, args, env, keep)
    }

    /// Serves the command's way out, for as long as it is polled.
    pub async fn serve(held: Option<&Self>) -> Infallible {
        match held.and_then(|held| held.proxy.as_ref()) {
            Some(proxy) => proxy.serve().await,
            None => std::future::pending().await,
        }
    }

    /// The same for a command that is left to itself.
    pub fn way_out(&self) -> Option<BoxFuture<'static, Infallible>> {
        let proxy = Arc::clone(self.proxy.as_ref()?);
        Some(Box::pin(async move { proxy.serve().await }))
    }

    /// When nothing of the command runs any more. What the model has to know about the box; the error says that the command
    /// never began.
    pub async fn finish(
        self,
        input: &Input,
        cx: &ToolCx,
        status: ExitStatus,
        captured: &Captured,
    ) -> Result<Vec<String>, String> {
        let Self { sandbox, prepared, proxy } = self;
        let hosts = proxy.map(|proxy| proxy.refused()).unwrap_or_default();
        let plan = prepared.plan().clone();
        let tampering = off_the_runtime(move || Ok(prepared.finish())).await;
        let tampering =
            tampering.map_err(|error| format!("The sandbox could not be taken down: {error}."))?;
        if status.code() == Some(i32::from(FAILED_CODE))
            && let Some(why) = captured.stderr.lines().last().and_then(|line| line.strip_prefix(FAILED_WORDS))
        {
            return Err(format!("Nothing was run: the sandbox could not be built: {why}."));
        }
        let seen = Seen {
            command: &input.command,
            stderr: &captured.stderr,
            stdout: &captured.stdout,
            cwd: &cx.cwd,
            plan: &plan,
            tampering: &tampering,
            hosts: &hosts,
        };
        Ok(sandbox.report(&seen))
    }
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
