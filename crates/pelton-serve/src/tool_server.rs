//! The tools of a session, for programs that speak MCP: one message a line. Calls are made one after the other, as they
//! come, and what comes meanwhile is heard. A call is judged as the model's would be.

use std::collections::VecDeque;
use std::io::{Read, Write};

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use pelton::Engine;
use pelton::tools::{Output, ResultBlock, Safety};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::control::lines::{self, Incoming};

/// Versions of the protocol that are spoken, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Calls that may wait for the one that runs.
const CALLS_WAITING_MAX: usize = 256;

const PARSE_ERROR: i32 = -32700;
const NO_SUCH_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const OVERLOADED: i32 = -32000;

/// Serves until there is nothing more to read and everything is answered. Dropping it ends what runs.
///
/// ```
/// # use pelton_model::{Auth, Endpoint};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::None);
/// let engine = pelton::Engine::new(pelton::Options::new("/", endpoint))?;
/// let lines = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// let mut said = Vec::new();
/// pelton_serve::serve_tools(&engine, &lines[..], &mut said).await?;
/// assert_eq!(said, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok(())
/// # }
/// ```
pub async fn serve_tools(
    engine: &Engine,
    input: impl Read + Send + 'static,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut lines = lines::read(input);
    let mut waiting: VecDeque<Asked> = VecDeque::new();
    // The call that runs, and how to take it back.
    let mut running: Option<(Asked, LocalBoxFuture<'_, Output>)> = None;
    let mut is_open = true;
    loop {
        if running.is_none()
            && let Some(asked) = waiting.pop_front()
        {
            running = Some((asked.clone(), call(engine, asked).boxed_local()));
        }
        if !is_open && running.is_none() {
            return Ok(());
        }
        tokio::select! {
            biased;
            output = ended(&mut running) => {
                // One that was taken back has no answer.
                if let Some((asked, _)) = running.take().filter(|(asked, _)| !asked.cancel.is_cancelled()) {
                    write(out, &success(&asked.id, &result(&output)))?;
                }
            }
            came = lines.recv(), if is_open => match came {
                None => is_open = false,
                Some(Incoming::Failed(error)) => return Err(error),
                Some(Incoming::TooLong) => {
                    write(out, &failure(&Value::Null, PARSE_ERROR, "the message is too long"))?;
                    is_open = false;
                }
                Some(Incoming::Line(line)) => match heard(&line, engine) {
                    Heard::Nothing => {}
                    Heard::Answer(answer) => write(out, &answer)?,
                    Heard::Call(asked) if waiting.len() < CALLS_WAITING_MAX => waiting.push_back(asked),
                    Heard::Call(asked) => {
                        write(out, &failure(&asked.id, OVERLOADED, "too many calls wait already"))?;
                    }
                    Heard::Cancel(id) => {
                        waiting.retain(|asked| asked.id != id);
                        if let Some((asked, _)) = &running
                            && asked.id == id
                        {
                            asked.cancel.cancel();
                        }
                    }
                },
            }
        }
    }
}

/// A call that is to be made.
#[derive(Clone)]
struct Asked {
    id: Value,
    tool: String,
    input: Value,
    cancel: CancellationToken,
}

/// What a message wants.
enum Heard {
    Nothing,
    Answer(Value),
    Call(Asked),
    Cancel(Value),
}

async fn call(engine: &Engine, asked: Asked) -> Output {
    engine.call(&asked.tool, asked.input, &asked.cancel).await
}

async fn ended(running: &mut Option<(Asked, LocalBoxFuture<'_, Output>)>) -> Output {
    match running {
        Some((_, call)) => call.await,
        None => std::future::pending().await,
    }
}

fn heard(line: &[u8], engine: &Engine) -> Heard {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Heard::Nothing;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Heard::Answer(failure(&Value::Null, PARSE_ERROR, "the message is no JSON"));
    };
    let params = &message["params"];
    // What answers something we never asked, and what tells us something, want no answer.
    let (Some(method), id) = (message["method"].as_str(), &message["id"]) else { return Heard::Nothing };
    if id.is_null() {
        return match method {
            "notifications/cancelled" => Heard::Cancel(params["requestId"].clone()),
            _ => Heard::Nothing,
        };
    }
    match method {
        "initialize" => Heard::Answer(success(id, &about(params))),
        "ping" => Heard::Answer(success(id, &json!({}))),
        "tools/list" => Heard::Answer(success(id, &json!({"tools": listed(engine)}))),
        "tools/call" => {
            let name = params["name"].as_str().unwrap_or_default();
            if !engine.tools().iter().any(|tool| tool.spec().name == name) {
                return Heard::Answer(failure(id, INVALID_PARAMS, &format!("there is no tool '{name}'")));
            }
            let input = params.get("arguments").filter(|input| !input.is_null()).cloned();
            Heard::Call(Asked {
                id: id.clone(),
                tool: name.to_owned(),
                input: input.unwrap_or_else(|| json!({})),
                cancel: CancellationToken::new(),
            })
        }
        other => Heard::Answer(failure(id, NO_SUCH_METHOD, &format!("there is no method '{other}'"))),
    }
}

fn about(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.into_iter().find(|known| *known == asked).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "pelton", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn listed(engine: &Engine) -> Vec<Value> {
    let tools = engine.tools();
    let one = |tool: &std::sync::Arc<dyn pelton::tools::Tool>| {
        let spec = tool.spec();
        let schema: Value = serde_json::from_str(spec.input_schema).unwrap_or_default();
        let reads = tool.safety(&json!({})) == Safety::Shared;
        json!({
            "name": spec.name,
            "description": spec.description,
            "inputSchema": schema,
            "annotations": {"readOnlyHint": reads},
        })
    };
    tools.iter().map(one).collect()
}

fn result(output: &Output) -> Value {
    let block = |block: &ResultBlock| match block {
        ResultBlock::Text(text) => json!({"type": "text", "text": text}),
        ResultBlock::Image { media_type, base64 } => {
            json!({"type": "image", "mimeType": media_type, "data": base64})
        }
        ResultBlock::Document { base64 } => json!({"type": "resource", "resource": {
            "uri": "document:///result.pdf", "mimeType": "application/pdf", "blob": base64}}),
        _ => json!({"type": "text", "text": "[content that cannot be shown]"}),
    };
    let content: Vec<Value> = output.content.iter().map(block).collect();
    json!({"content": content, "isError": output.is_error})
}

fn success(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn write(out: &mut impl Write, message: &Value) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}
