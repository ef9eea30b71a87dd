//! ListMcpResourcesTool, ReadMcpResourceTool and ReadMcpResourceDirTool: what servers have to read, besides tools.

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
pub(crate) const READ_DIR: &str = "ReadMcpResourceDirTool";

const LIST_SPEC: Spec<'static> = Spec {
    name: LIST,
    description: include_str!("list_resources.md"),
    input_schema: r#"{"type":"object","properties":{"server":{"type":"string"}}}"#,
};
const READ_SPEC: Spec<'static> = Spec {
    name: READ,
    description: include_str!("read_resource.md"),
    input_schema: r#"{"type":"object","properties":{"server":{"type":"string"},"uri":{"type":"string"}},"required":["server","uri"]}"#,
};
const READ_DIR_SPEC: Spec<'static> = Spec {
    name: READ_DIR,
    description: include_str!("read_resource_dir.md"),
    input_schema: r#"{"type":"object","properties":{"server":{"type":"string"},"uri":{"type":"string"}},"required":["server","uri"]}"#,
};
/// What a directory of resources is called where others have a type.
const DIRECTORY: &str = "inode/directory";

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

    pub fn tools(&self) -> [Arc<dyn Tool>; 3] {
        [Arc::new(List(self.clone())), Arc::new(Read(self.clone())), Arc::new(ReadDir(self.clone()))]
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

struct ReadDir(Library);

impl Tool for ReadDir {
    fn spec(&self) -> Spec<'_> {
        READ_DIR_SPEC
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
            let Some(open) = self.0.open().into_iter().find(|open| open.name() == server) else {
                return Output::error(self.0.others(&server));
            };
            let children = match cx.cancel.run_until_cancelled(open.resources()).await {
                Some(Ok(resources)) => children(&uri, &resources),
                Some(Err(why)) => return Output::error(format!("{server} {uri}: {why}")),
                None => return Output::error("Interrupted by the user."),
            };
            if children.is_empty() {
                return Output::error(format!("{server} lists nothing below {uri}."));
            }
            let told = json!({"resources": children});
            Output::text(told["resources"].to_string()).with_detail(told)
        }
        .boxed()
    }
}

/// What is directly below a URI, in the order it was listed: resources, and once each what has resources below it.
fn children(uri: &str, resources: &[super::server::Resource]) -> Vec<Value> {
    let directory = if uri.ends_with('/') { uri.to_owned() } else { format!("{uri}/") };
    let mut children: Vec<Value> = Vec::new();
    for resource in resources {
        let Some(below) = resource.uri.strip_prefix(&directory).filter(|below| !below.is_empty()) else {
            continue;
        };
        let child = match below.trim_end_matches('/').split_once('/') {
            Some((name, _)) => {
                json!({"uri": format!("{directory}{name}"), "name": name, "mimeType": DIRECTORY})
            }
            None => {
                let mut child = json!({"uri": resource.uri, "name": resource.name});
                if let Some(media_type) = &resource.media_type {
                    child["mimeType"] = json!(media_type);
                }
                child
            }
        };
        let uri = |child: &Value| child["uri"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
        let is_new = children.iter().all(|known| uri(known) != uri(&child));
        if children.len() < RESOURCES_LISTED_MAX && is_new {
            children.push(child);
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_directly_below_is_listed_once() {
        let resource = |uri: &str| super::super::server::Resource {
            uri: uri.to_owned(),
            name: uri.rsplit('/').next().unwrap().to_owned(),
            description: None,
            media_type: None,
        };
        let all = ["x://a/one", "x://a/deep/two", "x://a/deep/three", "x://ab/no", "x://a", "x://a/"];
        let all: Vec<_> = all.iter().map(|uri| resource(uri)).collect();
        for uri in ["x://a", "x://a/"] {
            assert_eq!(
                json!(children(uri, &all)),
                json!([
                    {"uri": "x://a/one", "name": "one"},
                    {"uri": "x://a/deep", "name": "deep", "mimeType": "inode/directory"},
                ])
            );
        }
        assert_eq!(children("x://b", &all), Vec::<Value>::new());
        let top: Vec<Value> = children("x://", &all).into_iter().map(|child| child["name"].clone()).collect();
        assert_eq!(top, ["a", "ab"]);
    }
}
