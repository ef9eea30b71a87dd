//! What a server has besides tools: lists of any kind, and things to read.

use std::sync::Arc;

use pelton::tools::{Resource, ResultBlock};
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourcesRequest, ListToolsRequest, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams,
};
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;

use crate::content;
use crate::limits::{PAGES_MAX, PROMPTS_MAX, RESOURCES_MAX, TOOLS_MAX};
use crate::server::{Server, words};

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    Tools,
    Prompts,
    Resources,
}

impl Listing {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }

    fn most(self) -> usize {
        match self {
            Self::Tools => TOOLS_MAX,
            Self::Prompts => PROMPTS_MAX,
            Self::Resources => RESOURCES_MAX,
        }
    }

    fn request(self, params: PaginatedRequestParams) -> ClientRequest {
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params)),
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
        }
    }
}

/// A whole list, entry by entry as the server wrote them: one that is badly described does not take the others with it.
pub(crate) async fn list(peer: &Peer<RoleClient>, what: Listing) -> Result<Vec<Value>, String> {
    let mut all: Vec<Value> = Vec::new();
    let mut params = PaginatedRequestParams::default();
    for _ in 0..PAGES_MAX {
        let page = peer.send_request(what.request(params)).await;
        let page =
            page.map_err(|error| format!("its {} cannot be listed: {}", what.name(), words(&error)))?;
        let mut page = serde_json::to_value(page).unwrap_or_default();
        if let Some(Value::Array(listed)) = page.get_mut(what.name()).map(Value::take) {
            all.extend(listed);
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(cursor) if all.len() < what.most() => {
                params = PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned()));
            }
            _ => break,
        }
    }
    all.truncate(what.most());
    Ok(all)
}

impl Server {
    pub(crate) async fn list_resources(self: &Arc<Self>) -> Result<Vec<Resource>, String> {
        let peer = self.peer().await?;
        let listed = self.in_its_time(list(&peer, Listing::Resources)).await??;
        Ok(listed.iter().filter_map(resource).collect())
    }

    pub(crate) async fn read(self: &Arc<Self>, uri: &str) -> Result<Vec<ResultBlock>, String> {
        Ok(self.contents(uri).await?.iter().map(content::resource).collect())
    }

    /// What it has under an address, in its own words.
    ///
    /// # Errors
    ///
    /// If it does not answer, or with an error, in words.
    pub async fn contents(self: &Arc<Self>, uri: &str) -> Result<Vec<Value>, String> {
        let peer = self.peer().await?;
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let read = peer.send_request(ClientRequest::ReadResourceRequest(request));
        let read = self.in_its_time(read).await?.map_err(|error| words(&error))?;
        match serde_json::to_value(read).unwrap_or_default().get_mut("contents").map(Value::take) {
            Some(Value::Array(contents)) => Ok(contents),
            _ => Ok(Vec::new()),
        }
    }

    /// What comes of a question, or words for the time that is up.
    pub(crate) async fn in_its_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, String> {
        let time = self.silence();
        tokio::time::timeout(time, answer).await.map_err(|_| {
            format!("the server {} did not answer within {} s", self.config().name, time.as_secs_f64())
        })
    }
}

/// An entry of a list; one without an address is none.
fn resource(listed: &Value) -> Option<Resource> {
    let word = |name: &str| listed.get(name).and_then(Value::as_str).map(str::to_owned);
    let uri = word("uri")?;
    let name = word("title").or_else(|| word("name")).unwrap_or_else(|| uri.clone());
    Some(Resource { uri, name, description: word("description"), media_type: word("mimeType") })
}
