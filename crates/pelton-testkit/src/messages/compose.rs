//! A reply in events, and the same reply as one message.

use super::message_of_kind;
use crate::cache::CacheUsage;
use crate::cut::cut;
use crate::dice::Dice;
use crate::issued::Issued;
use crate::play::{Cue, Event};
use crate::script::Reply;
use crate::script::part::{Kind, Part, ToolInput};
use crate::tokens;
use serde_json::{Map, Value, json};

/// What a reply answers, and with what.
pub(crate) struct Scene<'a> {
    pub(crate) request: &'a Value,
    pub(crate) model: &'a str,
    pub(crate) request_id: &'a str,
    pub(crate) issued: &'a Issued,
    pub(crate) counted: CacheUsage,
}

/// A reply in both of its forms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Composed {
    /// The stream.
    pub(crate) cues: Vec<Cue>,
    /// The message of a reply without stream.
    pub(crate) message: Value,
    /// Type and message of the error that ends the reply, if one does.
    pub(crate) error: Option<(String, String)>,
    /// The final usage.
    pub(crate) usage: Value,
}

/// Turns a reply, its variables filled in, into events and message.
pub(crate) fn compose(reply: &Reply, scene: &Scene<'_>, dice: &mut Dice) -> Composed {
    let message_id = dice.id("msg_");
    let mut composer = Composer { scene, dice, cues: Vec::new(), content: Vec::new(), error: None };
    for part in &reply.parts {
        composer.part(part);
    }
    let Composer { cues: body, content, error, .. } = composer;

    let output = tokens::count_blocks(scene.model, &content).max(1);
    let usage = usage(scene, output, &reply.usage);
    let mut opening = json!({
        "id": message_id, "type": "message", "role": "assistant", "model": scene.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    opening["usage"]["output_tokens"] = json!(1);
    let mut cues = vec![event("message_start", &json!({"type": "message_start", "message": opening}))];
    if reply.opening_ping {
        cues.push(ping());
    }
    cues.extend(body);

    let called = content.iter().any(|block| block["type"] == "tool_use");
    let stop = reply.stop.clone().unwrap_or(if called { "tool_use" } else { "end_turn" }.to_owned());
    let mut delta = json!({"stop_reason": stop, "stop_sequence": reply.stop_sequence});
    if let Some(details) = &reply.stop_details {
        delta["stop_details"] = details.clone();
    }
    if error.is_none() {
        let closing = json!({"type": "message_delta", "delta": delta, "usage": usage});
        cues.push(event("message_delta", &closing));
        cues.push(event("message_stop", &json!({"type": "message_stop"})));
    }

    let mut message = opening;
    message["content"] = Value::Array(content);
    message["usage"] = usage.clone();
    if let (Value::Object(message), Value::Object(delta)) = (&mut message, delta) {
        message.extend(delta);
    }
    Composed { cues, message, error, usage }
}

struct Composer<'a, 'b> {
    scene: &'a Scene<'a>,
    dice: &'b mut Dice,
    cues: Vec<Cue>,
    content: Vec<Value>,
    error: Option<(String, String)>,
}

impl Composer<'_, '_> {
    fn part(&mut self, part: &Part) {
        match &part.kind {
            Kind::Text(text) => self.text(part, text),
            Kind::Thinking(text) => self.thinking(part, text),
            Kind::Tool { name, input } => self.tool(part, name, input),
            Kind::RedactedThinking(data) => {
                let data =
                    self.scene.issued.redact(self.scene.request, &self.content, self.scene.model, data);
                let block = json!({"type": "redacted_thinking", "data": data});
                self.start(&block);
                self.stop(block);
            }
            Kind::RawBlock { block, deltas } => {
                self.start(block);
                for delta in deltas {
                    self.delta(delta);
                }
                self.stop(block.clone());
            }
            Kind::Gate(name) => self.cues.push(Cue::Gate(name.clone())),
            Kind::Pause(wait) => self.cues.push(Cue::Wait(*wait)),
            Kind::Ping => self.cues.push(ping()),
            Kind::Comment(text) => self.cues.push(Cue::Comment(text.clone())),
            Kind::Event { name, data } => self.cues.push(Cue::Event(Event {
                name: name.clone(),
                // A string is sent as it stands: it may be no JSON at all.
                data: data.as_str().map_or_else(|| data.to_string(), str::to_owned),
            })),
            Kind::Error { kind, message } => {
                let message = if message.is_empty() { message_of_kind(kind) } else { message };
                let body = super::error_body(kind, message, None, self.scene.request_id);
                self.cues.push(event("error", &body));
                self.error = Some((kind.clone(), message.to_owned()));
            }
        }
    }

    fn text(&mut self, part: &Part, text: &str) {
        self.start(&json!({"type": "text", "text": ""}));
        self.fragments(part, text, |piece| json!({"type": "text_delta", "text": piece}));
        self.stop(json!({"type": "text", "text": text}));
    }

    fn thinking(&mut self, part: &Part, text: &str) {
        // A request may ask for signed but empty thinking.
        let hidden = self.scene.request["thinking"]["display"] == "omitted";
        let shown = if hidden { "" } else { text };
        let Scene { request, model, issued, .. } = self.scene;
        let signature = match &part.signature {
            Some(given) => given.clone(),
            None => issued.sign(request, &self.content, model, shown),
        };
        self.start(&json!({"type": "thinking", "thinking": "", "signature": ""}));
        self.fragments(part, shown, |piece| json!({"type": "thinking_delta", "thinking": piece}));
        if self.error.is_none() {
            self.delta(&json!({"type": "signature_delta", "signature": signature}));
        }
        self.stop(json!({"type": "thinking", "thinking": shown, "signature": signature}));
    }

    fn tool(&mut self, part: &Part, name: &str, input: &ToolInput) {
        let id = part.id.clone().unwrap_or_else(|| self.dice.id("toolu_"));
        let (text, value) = match input {
            ToolInput::Value(value) => (value.to_string(), value.clone()),
            // Outside a stream an input is always JSON; what cannot be read is left out.
            ToolInput::Text(text) => (text.clone(), serde_json::from_str(text).unwrap_or_else(|_| json!({}))),
        };
        self.start(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        self.delta(&json!({"type": "input_json_delta", "partial_json": ""}));
        self.fragments(part, &text, |piece| json!({"type": "input_json_delta", "partial_json": piece}));
        self.stop(json!({"type": "tool_use", "id": id, "name": name, "input": value}));
    }

    /// Sends a text in deltas, with what the script wants between them.
    fn fragments(&mut self, part: &Part, text: &str, delta: impl Fn(&str) -> Value) {
        let pieces = cut(text, &part.fragments, self.dice);
        let last = pieces.len();
        self.between(part, |at| at == 0);
        for (index, piece) in pieces.into_iter().enumerate() {
            if self.error.is_some() {
                return;
            }
            self.delta(&delta(piece));
            self.between(part, |at| at == index + 1);
        }
        // A text may have fewer fragments than the script thought; its gates are not passed over.
        if self.error.is_none() {
            self.between(part, |at| at > last);
        }
    }

    fn between(&mut self, part: &Part, here: impl Fn(usize) -> bool) {
        for (_, inner) in part.after.iter().filter(|(at, _)| here(*at)) {
            if self.error.is_none() {
                self.part(inner);
            }
        }
    }

    fn start(&mut self, block: &Value) {
        let index = self.content.len();
        let data = json!({"type": "content_block_start", "index": index, "content_block": block});
        self.cues.push(event("content_block_start", &data));
    }

    fn delta(&mut self, delta: &Value) {
        let index = self.content.len();
        let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
        self.cues.push(event("content_block_delta", &data));
    }

    /// Closes the block, unless an error inside it has ended the reply.
    fn stop(&mut self, block: Value) {
        let index = self.content.len();
        if self.error.is_none() {
            let data = json!({"type": "content_block_stop", "index": index});
            self.cues.push(event("content_block_stop", &data));
        }
        self.content.push(block);
    }
}

fn event(name: &str, data: &Value) -> Cue {
    Cue::Event(Event { name: name.to_owned(), data: data.to_string() })
}

fn ping() -> Cue {
    event("ping", &json!({"type": "ping"}))
}

/// The counted usage, with the script's figures in place of the counted ones.
fn usage(scene: &Scene<'_>, output_tokens: u64, said: &Map<String, Value>) -> Value {
    let Scene { request, counted, .. } = scene;
    let mut usage = json!({
        "input_tokens": counted.input_tokens,
        "cache_creation_input_tokens": counted.write_5m + counted.write_1h,
        "cache_read_input_tokens": counted.cache_read_input_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counted.write_5m,
            "ephemeral_1h_input_tokens": counted.write_1h,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    });
    // What was asked for is what was used: here nothing is ever short.
    for setting in ["speed", "inference_geo"] {
        if let Some(asked) = request[setting].as_str() {
            usage[setting] = json!(asked);
        }
    }
    // A total without its parts would contradict the counted parts.
    if let Some(total) = said.get("cache_creation_input_tokens") {
        usage["cache_creation"] = json!({"ephemeral_5m_input_tokens": total, "ephemeral_1h_input_tokens": 0});
    }
    for (figure, value) in said {
        usage[figure.as_str()] = value.clone();
    }
    usage
}
