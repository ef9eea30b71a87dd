//! ListMcpResourcesTool and ReadMcpResourceTool: what servers have to read, besides tools.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde::Deserialize;
use serde_json::{Value, json};

use super::server::{ServerList, ServerState, ToolServer};
use super::tool::{Access, InvalidInput, Output, ResultBlock, Safety, Spec, Tool, ToolCx, parse_input};
use crate::limits::RESOURCES_LISTED_MAX;

pub(crate) const LIST: &str = "ListMcpResourcesTool";
pub(crate) const READ: &str = "ReadMcpResourceTool";

const LIST_SPEC: Spec<'static> = Spec {
    name: LIST,
    description: include_str!("list_resources.md"),
    input_schema: r#"{"type":"object","properties":{"server":{"type":"string"}},"additionalProperties":false}"#,
};
const READ_SPEC: Spec<'static> = Spec {
    name: READ,
    description: include_str!("read_resource.md"),
    input_schema: r#"{"type":"object","properties":{"server":{"type":"string"},"uri":{"type":"string"}},"required":["server","uri"],"additionalProperties":false}"#,
};

/// The servers that have something to read. All clones are one.
#[derive(Clone)]
pub(crate) struct Library {
    servers: ServerList,
    /// Servers that rules keep away altogether.
    closed: Arc<Mutex<HashSet<String>>>,
}

impl Library {
    pub fn of(servers: ServerList) -> Self {
        Self { servers, closed: Arc::default() }
    }

    /// Rules keep these away from now on.
    pub fn close(&self, is_closed: impl Fn(&str) -> bool) {
        let names = self.servers.all().into_iter().map(|server| server.name().to_owned());
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) =
            names.filter(|name| is_closed(name)).collect();
    }

    /// Whether anybody has something to read.
    pub fn has_any(&self) -> bool {
        !self.open().is_empty()
    }

    pub fn tools(&self) -> [Arc<dyn Tool>; 2] {
        [Arc::new(List(self.clone())), Arc::new(Read(self.clone()))]
    }

    /// Reads something of a server's; `None` if there is no such server, or it has nothing to read.
    pub async fn read(&self, server: &str, uri: &str) -> Option<Result<Vec<ResultBlock>, String>> {
        let server = self.open().into_iter().find(|open| open.name() == server)?;
        Some(server.read_resource(uri).await)
    }

    fn open(&self) -> Vec<Arc<dyn ToolServer>> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |server: &Arc<dyn ToolServer>| {
            server.has_resources()
                && server.state() != ServerState::Disabled
                && !closed.contains(server.name())
        };
        self.servers.all().into_iter().filter(is_open).collect()
    }

    /// The servers that may be read from, by name, for whoever asked for another.
    fn others(&self, asked: &str) -> String {
        let names: Vec<String> = self.open().iter().map(|server| server.name().to_owned()).collect();
        match names.is_empty() {
            true => "No server has anything to read at the moment.".to_owned(),
            false => format!(
                "There is no server '{asked}' with something to read. There are: {}.",
                names.join(", ")
            ),
        }
    }
}

struct List(Library);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListInput {
    #[serde(default)]
    server: Option<String>,
}

impl Tool for List {
    fn spec(&self) -> Spec<'_> {
        LIST_SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<ListInput>(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move {
            let ListInput { server } = match parse_input(&input) {
                Ok(input) => input,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let asked = server.filter(|name| !name.trim().is_empty());
            let mut servers = self.0.open();
            if let Some(asked) = &asked {
                servers.retain(|server| server.name() == asked);
                if servers.is_empty() {
                    return Output::error(self.0.others(asked));
                }
            }
            let listed = join_all(servers.iter().map(|server| server.resources()));
            match cx.cancel.run_until_cancelled(listed).await {
                Some(listed) => list(&servers, listed),
                None => Output::error("Interrupted by the user."),
            }
        }
        .boxed()
    }
}

/// What servers said they have. One that cannot be asked is named, and spares the others.
fn list(
    servers: &[Arc<dyn ToolServer>],
    listed: Vec<Result<Vec<super::server::Resource>, String>>,
) -> Output {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    for (server, listed) in servers.iter().zip(listed) {
        match listed {
            Err(why) => faults.push(format!("{}: {why}", server.name())),
            Ok(resources) => all.extend(resources.into_iter().map(|resource| {
                let mut told = json!({"server": server.name(), "uri": resource.uri, "name": resource.name});
                if let Some(media_type) = resource.media_type {
                    told["mimeType"] = json!(media_type);
                }
                if let Some(description) = resource.description {
                    told["description"] = json!(description);
                }
                told
            })),
        }
    }
    let beyond = all.len().saturating_sub(RESOURCES_LISTED_MAX);
    all.truncate(RESOURCES_LISTED_MAX);
    let mut words = match all.is_empty() {
        true => "Nothing is there to be read.".to_owned(),
        false => json!(all).to_string(),
    };
    if beyond > 0 {
        words.push_str(&format!("\n({beyond} more are not listed: name a server)"));
    }
    for fault in &faults {
        words.push_str(&format!("\nNot listed: {fault}"));
    }
    match all.is_empty() && !faults.is_empty() {
        true => Output::error(words),
        false => Output::text(words).with_detail(json!(all)),
    }
}

struct Read(Library);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadInput {
    server: String,
    uri: String,
}

impl Tool for Read {
    fn spec(&self) -> Spec<'_> {
        READ_SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<ReadInput>(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move {
            let ReadInput { server, uri } = match parse_input(&input) {
                Ok(input) => input,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            match cx.cancel.run_until_cancelled(self.0.read(&server, &uri)).await {
                Some(Some(Ok(content))) => {
                    let mut output = Output::text("");
                    output.content = content;
                    output
                }
                Some(Some(Err(why))) => Output::error(format!("{server} {uri}: {why}")),
                Some(None) => Output::error(self.0.others(&server)),
                None => Output::error("Interrupted by the user."),
            }
        }
        .boxed()
    }
}
