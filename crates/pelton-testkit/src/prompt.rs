//! A request as the model reads it: one flat row of parts, tools first, then system, then messages.
//!
//! Caching, token counts and the binding of thinking blocks all speak about "everything before this block". They share
//! this one walk, so they agree on what comes before what. A message that is a plain string counts as one text block,
//! and neighbouring messages of one role are simply neighbouring parts: that is how the API merges them.

use serde_json::Value;
use std::hash::{DefaultHasher, Hasher};

/// The three stretches of a prompt, in the order they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Tools,
    System,
    Messages,
}

/// One tool, one system block or one content block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) section: Section,
    /// The role of the message; empty outside messages.
    pub(crate) role: &'a str,
    /// Position in `tools`, `system` or `messages`, as the client counts.
    pub(crate) index: usize,
    /// Position in the content of the message; 0 outside messages.
    pub(crate) block: usize,
    pub(crate) body: Body<'a>,
}

/// A block, or the string that stands for a text block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'a> {
    Text(&'a str),
    Block(&'a Value),
}

/// How long a cache entry lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ttl {
    FiveMinutes,
    OneHour,
}

impl Ttl {
    pub(crate) fn of(mark: &Value) -> Self {
        if mark.get("ttl").and_then(Value::as_str) == Some("1h") { Self::OneHour } else { Self::FiveMinutes }
    }
}

/// A `cache_control` and the part whose end it marks.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    /// Index into the parts.
    pub(crate) part: usize,
    pub(crate) ttl: Ttl,
    /// Where the mark is written, e.g. `system.0.cache_control`.
    pub(crate) path: String,
}

impl<'a> Part<'a> {
    /// The `type` of the block; tools have none.
    pub(crate) fn kind(&self) -> &'a str {
        match self.body {
            Body::Text(_) => "text",
            Body::Block(block) => block.get("type").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'a Value> {
        match self.body {
            Body::Text(_) => None,
            Body::Block(block) => block.get(name),
        }
    }

    pub(crate) fn str_field(&self, name: &str) -> Option<&'a str> {
        match self.body {
            Body::Text(text) if name == "text" => Some(text),
            _ => self.field(name).and_then(Value::as_str),
        }
    }

    /// The path the API uses in its messages.
    pub(crate) fn path(&self) -> String {
        match self.section {
            Section::Tools => format!("tools.{}", self.index),
            Section::System => format!("system.{}", self.index),
            Section::Messages => format!("messages.{}.content.{}", self.index, self.block),
        }
    }

    pub(crate) fn is_thinking(&self) -> bool {
        self.section == Section::Messages && matches!(self.kind(), "thinking" | "redacted_thinking")
    }

    /// A tool the model does not see until it asks for it. Until then it costs nothing and is no part of the prefix.
    pub(crate) fn is_deferred(&self) -> bool {
        self.section == Section::Tools && self.field("defer_loading") == Some(&Value::Bool(true))
    }

    /// Text that says nothing. A model may write it, but it cannot be sent back.
    pub(crate) fn is_blank(&self) -> bool {
        self.kind() == "text" && self.str_field("text").is_none_or(|text| text.trim().is_empty())
    }

    /// The blocks inside a tool result, if it has any.
    pub(crate) fn nested(&self) -> &'a [Value] {
        if self.kind() != "tool_result" {
            return &[];
        }
        self.field("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// A hash of what the model reads: not of cache marks, of the order of a block's members, or of absent values
    /// spelled as null. The order inside inputs and schemas does count, as it does for the API.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(self.role.as_bytes());
        match self.body {
            Body::Text(text) => feed_text_block(&mut hasher, text),
            Body::Block(block) => feed_block(&mut hasher, block),
        }
        hasher.finish()
    }
}

/// All parts of a request in reading order. Anything that is not where it should be is passed over: complaining is the
/// work of [`crate::strict`].
pub(crate) fn parts(request: &Value) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (index, tool) in list(request, "tools").iter().enumerate() {
        parts.push(Part { section: Section::Tools, role: "", index, block: 0, body: Body::Block(tool) });
    }
    match request.get("system") {
        Some(Value::String(text)) if !text.is_empty() => {
            parts.push(Part {
                section: Section::System,
                role: "",
                index: 0,
                block: 0,
                body: Body::Text(text),
            });
        }
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                parts.push(Part {
                    section: Section::System,
                    role: "",
                    index,
                    block: 0,
                    body: Body::Block(block),
                });
            }
        }
        _ => {}
    }
    for (index, message) in list(request, "messages").iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let part = |block, body| Part { section: Section::Messages, role, index, block, body };
        match message.get("content") {
            Some(Value::String(text)) => parts.push(part(0, Body::Text(text))),
            Some(Value::Array(blocks)) => {
                parts.extend(blocks.iter().enumerate().map(|(i, block)| part(i, Body::Block(block))));
            }
            _ => {}
        }
    }
    parts
}

/// The cache marks of a request in reading order, the one the server places for a top-level `cache_control` included.
pub(crate) fn marks(request: &Value, parts: &[Part<'_>]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        for (i, block) in part.nested().iter().enumerate() {
            if let Some(mark) = mark_of(block) {
                let path = format!("{}.tool_result.content.{i}.cache_control", part.path());
                marks.push(Mark { part: at, ttl: Ttl::of(mark), path });
            }
        }
        if let Body::Block(block) = part.body
            && let Some(mark) = mark_of(block)
        {
            marks.push(Mark { part: at, ttl: Ttl::of(mark), path: format!("{}.cache_control", part.path()) });
        }
    }
    if let Some(mark) = mark_of(request)
        && let Some(last) = parts.iter().rposition(is_cacheable)
        && marks.iter().all(|other| other.part != last)
    {
        marks.push(Mark { part: last, ttl: Ttl::of(mark), path: "cache_control".into() });
    }
    marks.sort_by_key(|mark| mark.part);
    marks
}

/// Folds one more hash into a running one.
pub(crate) fn chain(before: u64, next: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(before);
    hasher.write_u64(next);
    hasher.finish()
}

/// A hash of a plain value; `null` and an absent member are the same.
pub(crate) fn hash_value(value: Option<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher, value.unwrap_or(&Value::Null));
    hasher.finish()
}

/// A hash of a text.
pub(crate) fn hash_text(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

fn list<'a>(request: &'a Value, name: &str) -> &'a [Value] {
    request.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn mark_of(block: &Value) -> Option<&Value> {
    block.get("cache_control").filter(|mark| mark.is_object())
}

/// Whether the server may put a mark of its own on this part.
pub(crate) fn is_cacheable(part: &Part<'_>) -> bool {
    !part.is_thinking() && part.str_field("text").is_none_or(|text| !text.is_empty())
}

fn feed_text_block(hasher: &mut DefaultHasher, text: &str) {
    feed_key(hasher, "text");
    feed_str(hasher, text);
    feed_key(hasher, "type");
    feed_str(hasher, "text");
}

fn feed_block(hasher: &mut DefaultHasher, block: &Value) {
    let Value::Object(members) = block else {
        return feed(hasher, block);
    };
    let mut members: Vec<_> =
        members.iter().filter(|(key, value)| *key != "cache_control" && !value.is_null()).collect();
    members.sort_by_key(|(key, _)| key.as_str());
    for (key, value) in members {
        feed_key(hasher, key);
        match value {
            // Blocks inside a tool result may carry marks of their own.
            Value::Array(blocks) if key == "content" => blocks.iter().for_each(|b| feed_block(hasher, b)),
            other => feed(hasher, other),
        }
    }
}

fn feed(hasher: &mut DefaultHasher, value: &Value) {
    match value {
        Value::Null => hasher.write_u8(b'n'),
        Value::Bool(yes) => hasher.write(if *yes { b"t" } else { b"f" }),
        Value::Number(number) => feed_str(hasher, &number.to_string()),
        Value::String(text) => feed_str(hasher, text),
        Value::Array(items) => {
            hasher.write_u8(b'[');
            items.iter().for_each(|item| feed(hasher, item));
            hasher.write_u8(b']');
        }
        Value::Object(members) => {
            hasher.write_u8(b'{');
            for (key, value) in members {
                feed_key(hasher, key);
                feed(hasher, value);
            }
            hasher.write_u8(b'}');
        }
    }
}

fn feed_key(hasher: &mut DefaultHasher, key: &str) {
    hasher.write_u8(b'k');
    feed_str(hasher, key);
}

fn feed_str(hasher: &mut DefaultHasher, text: &str) {
    hasher.write_usize(text.len());
    hasher.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_string_is_one_text_block() {
        let short = json!({"system": "s", "messages": [{"role": "user", "content": "hi"}]});
        let long = json!({"system": [{"type": "text", "text": "s"}],
            "messages": [{"role": "user", "content": [{"text": "hi", "type": "text", "citations": null}]}]});
        let hashes = |request| parts(request).iter().map(Part::hash).collect::<Vec<_>>();
        assert_eq!(hashes(&short), hashes(&long));
    }

    #[test]
    fn marks_do_not_change_a_hash_and_everything_else_does() {
        let hash = |block: Value| {
            let request = json!({"messages": [{"role": "user", "content": [block]}]});
            parts(&request)[0].hash()
        };
        let result = |inner: Value| json!({"type": "tool_result", "tool_use_id": "a", "content": [inner]});
        let plain = hash(result(json!({"type": "text", "text": "x"})));
        let marked =
            hash(result(json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}})));
        assert_eq!(plain, marked);
        assert_ne!(plain, hash(result(json!({"type": "text", "text": "y"}))));
        let call = |input: Value| hash(json!({"type": "tool_use", "id": "a", "name": "n", "input": input}));
        assert_ne!(
            call(json!({"a": 1, "b": 2})),
            call(json!({"b": 2, "a": 1})),
            "inputs are compared byte by byte"
        );
    }

    #[test]
    fn a_top_level_mark_falls_on_the_last_block_that_can_carry_it() {
        let request = json!({"cache_control": {"type": "ephemeral", "ttl": "1h"}, "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "ho"}, {"type": "thinking", "thinking": "t", "signature": "s"}]},
        ]});
        let parts = parts(&request);
        let marks = marks(&request, &parts);
        assert_eq!(marks.iter().map(|m| (m.part, m.ttl)).collect::<Vec<_>>(), [(1, Ttl::OneHour)]);
    }
}
