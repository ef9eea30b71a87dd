//! One block of a recorded message: whether it is still what a server takes. Records are damaged, and others write them too.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::limits::{IMAGE_BYTES_MAX, IMAGE_EDGE_PX_MAX};
use crate::media::look::{Format, Size};
use crate::media::pages;

/// What the model reads where something inside a result is damaged.
const DAMAGED: &str = "[What was here is damaged in the record of this session.]";

/// What is looked at in a block. Everything else is left alone.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    pub r#type: String,
    pub id: Option<String>,
    pub name: Option<String>,
    pub tool_use_id: Option<String>,
    pub is_error: Option<bool>,
    #[serde(borrow)]
    pub text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Where a picture or a page comes from.
#[derive(Deserialize)]
struct Source<'a> {
    r#type: String,
    #[serde(borrow)]
    media_type: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    file_id: Option<&'a RawValue>,
}

/// The fields of a result. No server writes results, so there can be no others that one wants back.
const RESULT_FIELDS: [&str; 4] = ["type", "tool_use_id", "content", "is_error"];

impl Block<'_> {
    /// Whether it has what no server does without, and stands where servers take it. What does not is left out, whatever else
    /// it says.
    pub fn can_be_sent(&self, in_answer: bool) -> bool {
        let is_at_home = match self.r#type.as_str() {
            "tool_result" | "image" | "document" | "container_upload" | "search_result" => !in_answer,
            "tool_use" | "thinking" | "redacted_thinking" | "server_tool_use" | "mcp_tool_use" => in_answer,
            kind => in_answer || !kind.ends_with("_tool_result"),
        };
        is_at_home && self.is_whole()
    }

    fn is_whole(&self) -> bool {
        match self.r#type.as_str() {
            "text" => is_text(self.text),
            // Nobody takes thinking back that is not signed.
            "thinking" => is_text(self.thinking) && is_text(self.signature),
            "redacted_thinking" => is_text(self.data),
            "image" | "document" => self.source.is_some_and(leads_somewhere),
            "search_result" => is_text(self.source) && is_text(self.title) && begins(self.content, '['),
            "tool_result" => self.content.is_none() || is_text(self.content) || begins(self.content, '['),
            "server_tool_use" | "mcp_tool_use" => {
                self.id.is_some() && self.name.is_some() && begins(self.input, '{')
            }
            // A kind of a later server is a name like these; what is none was one.
            kind => {
                let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
                let answers = !kind.ends_with("_tool_result") || self.tool_use_id.is_some();
                !kind.is_empty() && kind.bytes().all(is_name) && answers
            }
        }
    }

    /// Whether it is a text of nothing but blanks.
    pub fn is_blank(&self) -> bool {
        self.r#type == "text" && self.text.is_none_or(is_blank)
    }
}

fn begins(value: Option<&RawValue>, with: char) -> bool {
    value.is_some_and(|value| value.get().starts_with(with))
}

fn is_text(value: Option<&RawValue>) -> bool {
    begins(value, '"')
}

fn leads_somewhere(source: &RawValue) -> bool {
    let Ok(source) = serde_json::from_str::<Source<'_>>(source.get()) else { return false };
    match source.r#type.as_str() {
        "base64" => is_text(source.media_type) && source.data.is_some_and(is_base64),
        "text" => is_text(source.media_type) && is_text(source.data),
        "url" => is_text(source.url),
        "file" => is_text(source.file_id),
        _ => true,
    }
}

/// Whether it is a text in the letters of base64.
fn is_base64(data: &RawValue) -> bool {
    let Some(letters) = data.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return false;
    };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    !letters.is_empty() && letters.len() % 4 == 0 && letters.bytes().all(is_letter)
}

/// Whether a text is nothing but blanks. Only a short one is looked at as what it means.
fn is_blank(text: &RawValue) -> bool {
    const LOOKED_AT_BYTES_MAX: usize = 4096;
    match text.get() {
        short if short.len() <= LOOKED_AT_BYTES_MAX => {
            serde_json::from_str::<String>(short).is_ok_and(|text| text.trim().is_empty())
        }
        long => !long.trim_matches('"').contains(|c: char| !c.is_whitespace() && !"\\nrt".contains(c)),
    }
}

/// A result as a server takes it: with a note where something inside it is not whole, and without what no result has. The
/// same bytes if there is nothing of that.
pub(super) fn sendable_result(block: &str) -> Option<Cow<'_, str>> {
    let mut fields: BTreeMap<String, Cow<'_, str>> =
        serde_json::from_str::<BTreeMap<String, &RawValue>>(block)
            .ok()?
            .into_iter()
            .map(|(name, value)| (name, Cow::Borrowed(value.get())))
            .collect();
    let count = fields.len();
    fields.retain(|name, _| RESULT_FIELDS.contains(&name.as_str()));
    let mut is_changed = fields.len() != count;
    if let Some(content) = fields.get_mut("content").filter(|content| content.starts_with('[')) {
        let parts: Vec<&RawValue> = serde_json::from_str(content).ok()?;
        if !parts.iter().all(|part| can_be_inside(part)) {
            let note = format!(r#"{{"type":"text","text":"{DAMAGED}"}}"#);
            let parts = parts.iter().map(|part| if can_be_inside(part) { part.get() } else { &note });
            *content = Cow::Owned(format!("[{}]", parts.collect::<Vec<_>>().join(",")));
            is_changed = true;
        }
    }
    if !is_changed {
        return Some(Cow::Borrowed(block));
    }
    let written = fields.iter().map(|(name, value)| format!(r#""{name}":{value}"#));
    Some(Cow::Owned(format!("{{{}}}", written.collect::<Vec<_>>().join(","))))
}

/// A block of a message that is not as it was written, with nothing in it but what servers take for certain; `None` if that is
/// not enough to send it. Thinking is left to whoever knows that it cannot be sent any more.
pub(super) fn plain_block(block: &str) -> Option<Cow<'_, str>> {
    let mut fields = serde_json::from_str::<Map<String, Value>>(block).ok()?;
    let before = fields.clone();
    if !matches!(fields.get("type")?.as_str()?, "thinking" | "redacted_thinking") {
        make_plain(&mut fields)?;
    }
    Some(match fields == before {
        true => Cow::Borrowed(block),
        false => Cow::Owned(Value::Object(fields).to_string()),
    })
}

fn make_plain(fields: &mut Map<String, Value>) -> Option<()> {
    let kind = fields.get("type")?.as_str()?.to_owned();
    let known: &[&str] = match kind.as_str() {
        "text" => &["type", "text"],
        "tool_use" => &["type", "id", "name", "input"],
        "tool_result" => &RESULT_FIELDS,
        "image" | "document" => &["type", "source"],
        _ => return None,
    };
    fields.retain(|name, _| known.contains(&name.as_str()));
    let is_text = |name: &str| fields.get(name).is_some_and(|value| value.is_string());
    match kind.as_str() {
        "text" => is_text("text").then_some(()),
        "tool_use" => (is_text("id") && is_text("name")).then_some(()),
        "tool_result" => {
            let is_whole = is_text("tool_use_id");
            fields.retain(|name, value| name != "is_error" || value.is_boolean());
            if let Some(content) = fields.get_mut("content") {
                plain_content(content);
            }
            is_whole.then_some(())
        }
        kind => fields.get_mut("source")?.as_object_mut().and_then(|source| plain_source(kind, source)),
    }
}

/// What a result brought.
fn plain_content(content: &mut Value) {
    let note = || json!({"type": "text", "text": DAMAGED});
    match content {
        Value::String(_) => {}
        Value::Array(parts) => {
            for part in parts {
                let is_plain = part.as_object_mut().is_some_and(|part| {
                    matches!(part.get("type").and_then(Value::as_str), Some("text" | "image" | "document"))
                        && make_plain(part).is_some()
                });
                if !is_plain {
                    *part = note();
                }
            }
        }
        other => *other = json!([note()]),
    }
}

/// Where a picture or a page comes from. What is here has to be what it says it is.
fn plain_source(kind: &str, source: &mut Map<String, Value>) -> Option<()> {
    let known: &[&str] = match source.get("type")?.as_str()? {
        "base64" => &["type", "media_type", "data"],
        "text" if kind == "document" => &["type", "media_type", "data"],
        "url" => &["type", "url"],
        _ => return None,
    };
    source.retain(|name, _| known.contains(&name.as_str()));
    let text = |name: &str| source.get(name).and_then(Value::as_str);
    match (text("type")?, kind) {
        ("url", _) => text("url").filter(|url| url.starts_with("https://")).map(drop),
        ("text", _) => text("data").filter(|_| text("media_type") == Some("text/plain")).map(drop),
        (_, "document") => {
            let bytes = BASE64.decode(text("data")?).ok()?;
            (text("media_type") == Some("application/pdf") && pages::count(&bytes).is_some()).then_some(())
        }
        _ => {
            let bytes = BASE64.decode(text("data")?).ok()?;
            let fits = |size: Size| size.edge() <= IMAGE_EDGE_PX_MAX && bytes.len() <= IMAGE_BYTES_MAX;
            let format = Format::of(&bytes)?;
            (text("media_type") == Some(format.media_type()) && Size::of(&bytes).is_some_and(fits))
                .then_some(())
        }
    }
}

/// Whether a server takes it inside a result.
fn can_be_inside(part: &RawValue) -> bool {
    serde_json::from_str::<Block<'_>>(part.get())
        .is_ok_and(|part| part.r#type != "tool_result" && part.can_be_sent(false))
}
