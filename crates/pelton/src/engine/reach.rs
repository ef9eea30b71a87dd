//! What hooks that are no programs are reached by. Whoever set up a hook has allowed what it does.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::hooks::{Reach, ServerTools};
use crate::tools::background::Background;
use crate::tools::{ServerList, ToolCx};

/// The servers of a session, as they are when they are called.
struct ServersForHooks {
    servers: ServerList,
    cx: ToolCx,
}

impl Engine {
    /// The roads there are at any moment of the session. Nobody hears what becomes of a question meanwhile.
    pub(super) fn reach(&self, cancel: &CancellationToken) -> Reach {
        let (unheard, _) = mpsc::channel(1);
        // Nothing of what runs in the background: an agent there has hooks, and would hold what holds it.
        let cx = ToolCx { background: Background::default(), ..self.tool_cx(cancel.child_token()) };
        let servers = ServersForHooks { servers: self.servers(), cx };
        Reach {
            web: Some(Arc::clone(&self.options.transport)),
            aside: Some(self.aside(unheard)),
            agents: None,
            servers: Some(Arc::new(servers)),
            terms: self.options.http_hooks.clone(),
        }
    }
}

impl ServerTools for ServersForHooks {
    fn call(&self, server: &str, tool: &str, input: Value) -> BoxFuture<'static, Result<String, String>> {
        let tools = self.servers.get(server).map(|server| server.tools()).unwrap_or_default();
        let found = tools.into_iter().find(|found| found.spec().name == tool);
        let missing = format!("cannot be called: no server `{server}` has a tool `{tool}` now");
        let cx = self.cx.clone();
        async move {
            let output = found.ok_or(missing)?.run(input, &cx).await;
            let words = output.words();
            if output.is_error { Err(format!("failed: {words}")) } else { Ok(words) }
        }
        .boxed()
    }
}
