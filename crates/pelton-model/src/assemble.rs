//! Events become content blocks. No IO.
//!
//! A block is kept as it was received: the fields of its first event in their order, known or not, with what the
//! later events added. String literals are joined as JSON, without being read and written again. Blocks may grow
//! side by side.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::messages::Change;
use crate::json;
use crate::step::{BadInput, Block, BlockKind, Opened};

/// The most bytes the blocks of one message may have.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most blocks that may grow at the same time.
pub(crate) const OPEN_BLOCKS_MAX: usize = 1024;

/// A message beyond what is held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooLarge {
    #[error("the message is larger than {} MB", MESSAGE_BYTES_MAX / 1024 / 1024)]
    Bytes,
    #[error("more than {OPEN_BLOCKS_MAX} blocks of the message are open at once")]
    Blocks,
}

/// Builds the blocks of one message.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    open: Vec<Open>,
    bytes: usize,
}

impl Assembler {
    /// A block begins. `made_up_id` names a call that came without an id. `None`: this is no block.
    pub(crate) fn open(
        &mut self,
        index: u32,
        start: Bytes,
        made_up_id: &str,
    ) -> Result<Option<Opened>, TooLarge> {
        self.count(start.len())?;
        if self.open.len() >= OPEN_BLOCKS_MAX {
            return Err(TooLarge::Blocks);
        }
        let Some(block) = Open::new(index, start, made_up_id) else { return Ok(None) };
        let opened = Opened {
            block_type: block.block_type.clone(),
            tool_name: block.call.as_ref().map(|call| Arc::clone(&call.name)),
            tool_use_id: block.call.as_ref().map(|call| Arc::clone(&call.id)),
        };
        self.open.push(block);
        Ok(Some(opened))
    }

    /// A block grows. One that never began is passed over.
    pub(crate) fn change(&mut self, index: u32, change: &Change<'_>) -> Result<(), TooLarge> {
        let grown = match self.open.iter_mut().find(|block| block.index == index) {
            Some(block) => block.change(change),
            None => 0,
        };
        self.count(grown)
    }

    /// A block is complete.
    pub(crate) fn close(&mut self, index: u32) -> Option<Block> {
        let at = self.open.iter().position(|block| block.index == index)?;
        Some(self.open.remove(at).close())
    }

    /// The message is complete, and with it every block that was not said to be.
    pub(crate) fn close_all(&mut self) -> impl Iterator<Item = Block> + use<> {
        std::mem::take(&mut self.open).into_iter().map(Open::close)
    }

    fn count(&mut self, more: usize) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > MESSAGE_BYTES_MAX { Err(TooLarge::Bytes) } else { Ok(()) }
    }
}

/// A block that came in one piece; `None` if it is no block.
pub(crate) fn whole(index: u32, json: Bytes, made_up_id: &str) -> Option<Block> {
    Open::new(index, json, made_up_id).map(Open::close)
}

/// A block that grows.
#[derive(Debug)]
struct Open {
    index: u32,
    /// The block as it began: a JSON object.
    start: Bytes,
    block_type: Box<str>,
    call: Option<Called>,
    /// What was added since, by field.
    grown: Vec<(&'static str, Growth)>,
}

/// A call of one of our tools.
#[derive(Debug)]
struct Called {
    id: Arc<str>,
    name: Arc<str>,
}

/// What was added to a field.
#[derive(Debug)]
enum Growth {
    /// The inside of a string literal, to be joined to the one the block began with.
    Text(String),
    /// JSON in place of what was there.
    Value(String),
    /// Elements of an array, to be joined to the ones the block began with.
    Elements(String),
    /// The text of a JSON value.
    Input(String),
}

impl Open {
    fn new(index: u32, start: Bytes, made_up_id: &str) -> Option<Self> {
        let fields: Fields<'_> = serde_json::from_slice(&start).ok()?;
        let block_type = json::text(fields.get("type")?);
        let text = |name| fields.get(name).map(json::text).unwrap_or_default();
        let mut grown = Vec::new();
        let call = (block_type == "tool_use").then(|| {
            let mut id = text("id");
            if id.is_empty() {
                made_up_id.clone_into(&mut id);
                grown.push(("id", Growth::Value(Value::from(made_up_id).to_string())));
            }
            Called { id: id.into(), name: text("name").into() }
        });
        Some(Self { index, block_type: block_type.into(), call, grown, start })
    }

    /// Adds to the block; returns by how many bytes it grew.
    fn change(&mut self, change: &Change<'_>) -> usize {
        match *change {
            Change::Text(literal) => self.add_text("text", literal),
            Change::Thinking { text, .. } => self.add_text("thinking", text),
            Change::Signature(literal) => self.set("signature", literal),
            Change::Compaction { content, encrypted_content } => {
                content.map_or(0, |json| self.set("content", json))
                    + encrypted_content.map_or(0, |json| self.set("encrypted_content", json))
            }
            Change::InputJson(literal) => {
                let Growth::Input(input) = self.grown("input", || Growth::Input(String::new())) else {
                    return 0;
                };
                json::unescape(literal, input);
                literal.len()
            }
            Change::Citation(json) => {
                let elements = self.grown("citations", || Growth::Elements(String::new()));
                let Growth::Elements(elements) = elements else { return 0 };
                if !elements.is_empty() {
                    elements.push(',');
                }
                elements.push_str(json);
                json.len()
            }
            Change::Unknown => 0,
        }
    }

    fn add_text(&mut self, field: &'static str, literal: &str) -> usize {
        let Some(inside) = json::inside(literal) else { return 0 };
        if let Growth::Text(text) = self.grown(field, || Growth::Text(String::new())) {
            text.push_str(inside);
        }
        inside.len()
    }

    fn set(&mut self, field: &'static str, json: &str) -> usize {
        *self.grown(field, || Growth::Value(String::new())) = Growth::Value(json.to_owned());
        json.len()
    }

    fn grown(&mut self, field: &'static str, none: impl FnOnce() -> Growth) -> &mut Growth {
        let at = self.grown.iter().position(|(name, _)| *name == field).unwrap_or_else(|| {
            self.grown.push((field, none()));
            self.grown.len() - 1
        });
        &mut self.grown[at].1
    }

    fn close(self) -> Block {
        // It was read before, in `new`.
        let fields: Fields<'_> = serde_json::from_slice(&self.start).unwrap_or_default();
        let takes_input = self.call.is_some() || self.grown.iter().any(|(name, _)| *name == "input");
        let input = takes_input.then(|| self.input(&fields));
        let json = self.json(&fields, input.as_ref());
        let kind = match (&*self.block_type, self.call) {
            (_, Some(call)) => BlockKind::ToolUse {
                id: call.id,
                name: call.name,
                input: match input {
                    Some(Ok((_, input))) => Ok(input),
                    Some(Err(bad)) => Err(bad),
                    None => Ok(no_input().1),
                },
            },
            ("text", None) => BlockKind::Text { blank: is_blank(&json) },
            ("thinking", None) => BlockKind::Thinking,
            ("redacted_thinking", None) => BlockKind::RedactedThinking,
            ("server_tool_use" | "mcp_tool_use", None) => BlockKind::ServerTool,
            (name, None) if name.ends_with("tool_result") => BlockKind::ServerTool,
            _ => BlockKind::Other,
        };
        Block { index: self.index, json, kind }
    }

    /// The tool's input: as bytes to keep and as a value to use.
    fn input(&self, fields: &Fields<'_>) -> Result<(Bytes, Value), BadInput> {
        let streamed = self.grown.iter().find_map(|(name, growth)| match growth {
            Growth::Input(text) if *name == "input" && !text.trim().is_empty() => Some(text.trim()),
            _ => None,
        });
        // A server that does not stream inputs gives them at the start.
        let Some(text) = streamed.or(fields.get("input")) else { return Ok(no_input()) };
        let json = json::tidy(Bytes::copy_from_slice(text.as_bytes()));
        match serde_json::from_slice(&json) {
            Ok(Value::Null) => Ok(no_input()),
            Ok(input @ Value::Object(_)) => Ok((json, input)),
            Ok(_) => {
                Err(BadInput { raw: text.to_owned(), error: "the input is not a JSON object".to_owned() })
            }
            Err(error) => Err(BadInput { raw: text.to_owned(), error: error.to_string() }),
        }
    }

    /// The block with everything that was added, on one line.
    fn json(&self, fields: &Fields<'_>, input: Option<&Result<(Bytes, Value), BadInput>>) -> Bytes {
        if self.grown.is_empty() && input.is_none() {
            return json::tidy(self.start.clone());
        }
        let input = input.map(|input| input.as_ref().map_or_else(|_| no_input().0, |(json, _)| json.clone()));
        let input = input.as_ref().map(|json| String::from_utf8_lossy(json));
        let mut out = String::with_capacity(
            self.start.len() + self.grown.iter().map(|(_, g)| g.len() + 16).sum::<usize>(),
        );
        let mut write = |name: &str, parts: &[&str]| {
            out.push(if out.is_empty() { '{' } else { ',' });
            out.push_str(&Value::from(name).to_string());
            out.push(':');
            parts.iter().for_each(|part| out.push_str(part));
        };
        for (name, began) in &fields.0 {
            match (self.grown.iter().find(|(field, _)| field == name), &input) {
                (_, Some(input)) if name == "input" => write(name, &[input]),
                (Some((_, growth)), _) => growth.write_after(name, began.get(), &mut write),
                (None, _) => write(name, &[began.get()]),
            }
        }
        for (name, growth) in
            self.grown.iter().filter(|(name, _)| *name != "input" && fields.get(name).is_none())
        {
            growth.write_after(name, "", &mut write);
        }
        if let (Some(input), None) = (&input, fields.get("input")) {
            write("input", &[input]);
        }
        out.push('}');
        json::tidy(Bytes::from(out))
    }
}

impl Growth {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Value(text) | Self::Elements(text) | Self::Input(text) => text.len(),
        }
    }

    /// Writes the field `name`, which began as the JSON `began`.
    fn write_after(&self, name: &str, began: &str, write: &mut impl FnMut(&str, &[&str])) {
        match self {
            Self::Text(more) => write(name, &["\"", json::inside(began).unwrap_or_default(), more, "\""]),
            Self::Value(json) | Self::Input(json) => write(name, &[json]),
            Self::Elements(more) => {
                let array = began.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                let earlier = array.unwrap_or_default().trim();
                write(name, &["[", earlier, if earlier.is_empty() { "" } else { "," }, more, "]"]);
            }
        }
    }
}

/// An input without anything in it.
fn no_input() -> (Bytes, Value) {
    (Bytes::from_static(b"{}"), Value::Object(serde_json::Map::new()))
}

/// Whether a text block says nothing.
fn is_blank(block: &[u8]) -> bool {
    let Ok(fields) = serde_json::from_slice::<Fields<'_>>(block) else { return false };
    let inside = fields.get("text").and_then(json::inside).unwrap_or_default().trim_start();
    match inside.chars().next() {
        None => true,
        // Perhaps an escaped line break, perhaps a letter.
        Some('\\') => json::text(&format!("\"{inside}\"")).trim().is_empty(),
        Some(_) => false,
    }
}

/// The fields of a JSON object in their order, each value as it was written.
#[derive(Debug, Default)]
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests;
