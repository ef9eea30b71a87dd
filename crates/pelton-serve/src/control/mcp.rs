//! Tools that run inside the client: MCP, with every message in a line of the conversation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pelton::tools::{
    Access, InvalidInput, Output, ResultBlock, Safety, ServerState, Spec, Tool, ToolCx, ToolServer,
};
use serde_json::{Value, json};

use super::client::Client;
use super::limits::{SERVER_PAGES_MAX, SERVER_TOOLS_MAX};

/// The protocol we speak.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// A server inside the client.
pub(crate) struct ClientServer {
    name: String,
    client: Client,
    /// The longest a call may take, if there is such a bound.
    timeout: Option<Duration>,
    next_id: AtomicU64,
    known: Mutex<Known>,
}

/// What is known of a server.
struct Known {
    state: ServerState,
    error: Option<String>,
    info: Option<Value>,
    instructions: Option<String>,
    tools: Vec<Arc<ClientTool>>,
    enabled: bool,
}

impl ClientServer {
    pub fn new(name: impl Into<String>, client: Client, timeout: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            client,
            timeout,
            next_id: AtomicU64::new(0),
            known: Mutex::new(Known {
                state: ServerState::Pending,
                error: None,
                info: None,
                instructions: None,
                tools: Vec::new(),
                enabled: true,
            }),
        })
    }

    /// Shakes hands and learns what there is. However that ends, it is known afterwards.
    pub async fn connect(self: &Arc<Self>) {
        let met = self.meet().await;
        let mut known = self.known();
        match met {
            Ok((info, instructions, tools)) => {
                (known.state, known.error) = (ServerState::Connected, None);
                (known.info, known.instructions, known.tools) = (info, instructions, tools);
            }
            Err(why) => {
                (known.state, known.error) = (ServerState::Failed, Some(why));
                known.tools.clear();
            }
        }
    }

    /// Learns anew what there is. A list that cannot be had leaves the old one.
    pub async fn refresh(self: &Arc<Self>) {
        if let Ok(tools) = self.list().await {
            self.known().tools = tools;
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.known().enabled
    }

    pub fn set_enabled(&self, enabled: bool) {
        self.known().enabled = enabled;
    }

    /// Everything there is to know, for clients.
    pub fn status(&self) -> Value {
        let state = self.state().name();
        let known = self.known();
        let tools: Vec<Value> = known.tools.iter().map(|tool| tool.listed()).collect();
        let mut status = json!({"name": self.name, "status": state, "scope": "dynamic", "config": {"type": "sdk", "name": self.name}});
        if let Some(info) = &known.info {
            status["serverInfo"] = info.clone();
        }
        if let Some(error) = &known.error {
            status["error"] = json!(error);
        }
        if state == "connected" {
            status["tools"] = json!(tools);
        }
        status
    }

    /// Calls a tool, by its own name.
    pub async fn call(&self, tool: &str, input: Value, call: &str) -> Result<Output, String> {
        let token = self.next_id.load(Ordering::Relaxed);
        let params = json!({
            "name": tool,
            "arguments": input,
            "_meta": {"claudecode/toolUseId": call, "progressToken": token},
        });
        let asked = self.request("tools/call", params);
        let answer = match self.timeout {
            None => asked.await?,
            Some(time) => tokio::time::timeout(time, asked)
                .await
                .map_err(|_| format!("{tool} did not answer within {} s", time.as_secs_f64()))??,
        };
        Ok(output(&answer))
    }

    async fn meet(self: &Arc<Self>) -> Result<(Option<Value>, Option<String>, Vec<Arc<ClientTool>>), String> {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {"elicitation": {}, "roots": {}},
            "clientInfo": {"name": "pelton", "version": env!("CARGO_PKG_VERSION")},
        });
        let met = self.request("initialize", params).await?;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        // A server without tools has nothing to list.
        let has_tools = met.get("capabilities").is_none_or(|able| able.get("tools").is_some());
        let tools = if has_tools { self.list().await? } else { Vec::new() };
        let instructions = met.get("instructions").and_then(Value::as_str).map(str::to_owned);
        Ok((met.get("serverInfo").cloned(), instructions, tools))
    }

    async fn list(self: &Arc<Self>) -> Result<Vec<Arc<ClientTool>>, String> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..SERVER_PAGES_MAX {
            let page = self.request("tools/list", params).await?;
            let listed = page.get("tools").and_then(Value::as_array).into_iter().flatten();
            tools.extend(listed.filter_map(|tool| ClientTool::read(self, tool)).map(Arc::new));
            match page.get("nextCursor").filter(|cursor| cursor.is_string()) {
                Some(cursor) if tools.len() < SERVER_TOOLS_MAX => params = json!({"cursor": cursor}),
                _ => break,
            }
        }
        tools.truncate(SERVER_TOOLS_MAX);
        Ok(tools)
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let answer =
            self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            let words = error.get("message").and_then(Value::as_str);
            return Err(words.map_or_else(|| error.to_string(), str::to_owned));
        }
        Ok(answer.get("result").cloned().unwrap_or_default())
    }

    async fn send(&self, message: Value) -> Result<Value, String> {
        let fields = json!({"server_name": self.name, "message": message});
        let answer = self.client.ask("mcp_message", fields).await.map_err(|none| none.words())?;
        Ok(answer.get("mcp_response").cloned().unwrap_or_default())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolServer for ClientServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> ServerState {
        let known = self.known();
        if known.enabled { known.state } else { ServerState::Disabled }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let known = self.known();
        let offered = known.tools.iter().filter(|_| known.enabled);
        offered.map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn instructions(&self) -> Option<String> {
        self.known().instructions.clone()
    }
}

/// A server that this version cannot reach.
pub(crate) struct OutOfReach {
    pub name: String,
    pub why: String,
}

impl OutOfReach {
    pub fn status(&self) -> Value {
        json!({"name": self.name, "status": ServerState::Failed.name(), "error": self.why, "scope": "dynamic"})
    }
}

impl ToolServer for OutOfReach {
    fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> ServerState {
        ServerState::Failed
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

/// A tool inside the client.
struct ClientTool {
    name: String,
    description: String,
    input_schema: String,
    annotations: Value,
    server: std::sync::Weak<ClientServer>,
}

impl ClientTool {
    fn read(server: &Arc<ClientServer>, listed: &Value) -> Option<Self> {
        let schema = listed.get("inputSchema").filter(|schema| schema.is_object());
        Some(Self {
            name: listed.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?.to_owned(),
            description: listed.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
            input_schema: schema.map_or_else(|| r#"{"type":"object"}"#.to_owned(), Value::to_string),
            annotations: listed.get("annotations").cloned().unwrap_or_default(),
            server: Arc::downgrade(server),
        })
    }

    fn listed(&self) -> Value {
        let mut listed = json!({"name": self.name, "description": self.description});
        if !self.annotations.is_null() {
            let says = |hint: &str| self.annotations.get(hint).and_then(Value::as_bool).unwrap_or_default();
            listed["annotations"] = json!({
                "readOnly": says("readOnlyHint"),
                "destructive": says("destructiveHint"),
                "openWorld": says("openWorldHint"),
            });
        }
        listed
    }
}

impl Tool for ClientTool {
    fn spec(&self) -> Spec<'_> {
        Spec { name: &self.name, description: &self.description, input_schema: &self.input_schema }
    }

    fn safety(&self, _: &Value) -> Safety {
        match self.annotations.get("readOnlyHint") {
            Some(Value::Bool(true)) => Safety::Shared,
            _ => Safety::Alone,
        }
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Anything)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else {
                return Output::error("The server of this tool is gone.");
            };
            let called = server.call(&self.name, input, &cx.call_id);
            match cx.cancel.run_until_cancelled(called).await {
                Some(Ok(output)) => output,
                Some(Err(why)) => Output::error(why),
                None => Output::error("Interrupted by the user."),
            }
        })
    }
}

/// What a call brought, in the model's terms.
fn output(result: &Value) -> Output {
    let listed = result.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut content: Vec<ResultBlock> = listed.iter().map(block).collect();
    if content.is_empty()
        && let Some(structured) = result.get("structuredContent").filter(|content| !content.is_null())
    {
        content.push(ResultBlock::Text(structured.to_string()));
    }
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let mut output = if is_error { Output::error("") } else { Output::text("") }.with_detail(json!(listed));
    output.content = content;
    if is_error {
        // Clients look for an error's words there.
        output.detail = Some(json!(format!("Error: {}", output.words())));
    }
    output
}

fn block(listed: &Value) -> ResultBlock {
    let word = |path: &str| listed.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let picture = |media_type: &str, base64: &str| {
        let media_type = match media_type {
            "image/jpeg" | "image/jpg" => "image/jpeg",
            "image/gif" => "image/gif",
            "image/webp" => "image/webp",
            _ => "image/png",
        };
        ResultBlock::Image { media_type, base64: base64.to_owned() }
    };
    match word("/type") {
        "text" => ResultBlock::Text(word("/text").to_owned()),
        "image" => picture(word("/mimeType"), word("/data")),
        "resource" if !word("/resource/text").is_empty() => {
            ResultBlock::Text(word("/resource/text").to_owned())
        }
        "resource" if word("/resource/mimeType").starts_with("image/") => {
            picture(word("/resource/mimeType"), word("/resource/blob"))
        }
        "resource" if word("/resource/mimeType") == "application/pdf" => {
            ResultBlock::Document { base64: word("/resource/blob").to_owned() }
        }
        "resource" => {
            ResultBlock::Text(format!("[a resource that cannot be shown: {}]", word("/resource/uri")))
        }
        "resource_link" => ResultBlock::Text(format!("[{}: {}]", word("/name"), word("/uri"))),
        other => ResultBlock::Text(format!("[content that cannot be shown: {other}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_what_the_model_can_read() {
        let made = output(&json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "mimeType": "image/jpeg", "data": "AA=="},
            {"type": "resource", "resource": {"uri": "x:y", "text": "inside"}},
            {"type": "resource_link", "name": "n", "uri": "x:z"},
            {"type": "audio", "data": "AA=="}]}));
        let image = ResultBlock::Image { media_type: "image/jpeg", base64: "AA==".to_owned() };
        assert!(made.content.contains(&image) && !made.is_error);
        assert_eq!(made.words(), "a\ninside\n[n: x:z]\n[content that cannot be shown: audio]");
        let failed = output(&json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
        assert_eq!((failed.is_error, failed.detail), (true, Some(json!("Error: no"))));
        let structured = output(&json!({"content": [], "structuredContent": {"a": 1}}));
        assert_eq!(structured.words(), r#"{"a":1}"#);
        assert_eq!(output(&Value::Null).content, []);
    }
}
