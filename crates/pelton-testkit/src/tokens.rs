//! Token estimates: cheap, deterministic, and additive over the parts of a request.
//!
//! Additive means that the count of a request is the sum over its parts, so cached and uncached stretches always add up
//! to the whole. Text counts about four bytes a token (fewer with the newer tokenizer), a character of three bytes and
//! more for itself and a bit; images count by their pixels, PDFs by their pages.

use crate::base64;
use crate::catalogue::{self, ModelFacts};
use crate::image;
use crate::pdf;
use crate::prompt::{self, Body, Part};
use serde_json::Value;

/// Input tokens of a whole request.
pub fn count(request: &Value) -> u64 {
    let facts = facts_of(request);
    let parts = prompt::parts(request);
    REQUEST_TOKENS + of_parts(facts, &parts).sum::<u64>()
}

/// Output tokens of the content blocks of a reply.
pub fn count_blocks(model: &str, blocks: &[Value]) -> u64 {
    let facts = catalogue::model(model).unwrap_or(catalogue::permissive());
    blocks.iter().map(|block| of_block(facts, block)).sum()
}

/// Tokens every request costs before its first part.
pub(crate) const REQUEST_TOKENS: u64 = 3;

/// Tokens of each part. The framing of a turn belongs to the turn's first part, so that splitting a turn into several
/// messages changes nothing.
pub(crate) fn of_parts<'a>(facts: &'a ModelFacts, parts: &'a [Part<'_>]) -> impl Iterator<Item = u64> + 'a {
    let mut before = "";
    parts.iter().map(move |part| {
        if part.is_deferred() {
            return 0;
        }
        let framing = if part.role == before { 0 } else { TURN_TOKENS };
        before = part.role;
        framing
            + match part.body {
                Body::Text(text) => of_bytes(facts, of_text(text)),
                Body::Block(block) => of_block(facts, block),
            }
    })
}

pub(crate) fn facts_of(request: &Value) -> &'static ModelFacts {
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    catalogue::model(model).unwrap_or(catalogue::permissive())
}

const TURN_TOKENS: u64 = 4;
/// What such a character counts for beside its three bytes: together that is one token and a quarter.
const WIDE_BYTES_MORE: usize = 2;
/// An image whose size is unknown (a URL or a file) counts as one of full size.
const IMAGE_TOKENS_DEFAULT: u64 = 1600;
const PIXELS_PER_TOKEN: u64 = 750;
/// What is seen of a page of a PDF: a picture of full size.
const PAGE_PICTURE_TOKENS: u64 = 1600;
/// What is read on a page beside that, at most. Nothing is decompressed here, so that its words are guessed by its bytes.
const PAGE_WORDS_BYTES_MAX: usize = 3000;
/// Base64 symbols decoded first when looking for the size of an image; only a JPEG with long metadata needs more.
const IMAGE_HEAD_SYMBOLS: usize = 64 * 1024;

fn of_bytes(facts: &ModelFacts, bytes: usize) -> u64 {
    let bytes = bytes as u64;
    if facts.dense_tokenizer { (bytes * 13).div_ceil(40) } else { bytes.div_ceil(4) }
}

fn of_block(facts: &ModelFacts, block: &Value) -> u64 {
    let source = block.get("source");
    match block.get("type").and_then(Value::as_str) {
        Some("image") => source.map_or(IMAGE_TOKENS_DEFAULT, |source| of_image(facts, source)),
        Some("document") if source.and_then(|s| s.get("data")).is_some() => of_document(facts, block),
        Some("tool_result") => {
            let nested = block.get("content").and_then(Value::as_array);
            match nested {
                Some(blocks) => TURN_TOKENS + blocks.iter().map(|inner| of_block(facts, inner)).sum::<u64>(),
                None => TURN_TOKENS + of_bytes(facts, block.get("content").map_or(0, text_bytes)),
            }
        }
        Some("text") => of_bytes(facts, block.get("text").map_or(0, text_bytes)).max(1),
        Some("thinking") => of_bytes(facts, block.get("thinking").map_or(0, text_bytes)).max(1),
        Some("redacted_thinking") => of_bytes(facts, block.get("data").map_or(0, text_bytes)).max(1),
        _ => of_bytes(facts, text_bytes(block)).max(1),
    }
}

fn of_document(facts: &ModelFacts, block: &Value) -> u64 {
    let source = &block["source"];
    if source.get("type").and_then(Value::as_str) == Some("base64") {
        let bytes = source.get("data").and_then(Value::as_str).and_then(base64::decode).unwrap_or_default();
        let pages = pdf::read(&bytes).map_or(1, |pdf| pdf.pages);
        let words = of_bytes(facts, (bytes.len() / pages).min(PAGE_WORDS_BYTES_MAX));
        pages as u64 * (PAGE_PICTURE_TOKENS + words)
    } else {
        of_bytes(facts, source.get("data").map_or(0, text_bytes)).max(1)
    }
}

fn of_image(facts: &ModelFacts, source: &Value) -> u64 {
    let Some(data) = source.get("data").and_then(Value::as_str) else {
        return IMAGE_TOKENS_DEFAULT;
    };
    let head = data.get(..IMAGE_HEAD_SYMBOLS).unwrap_or(data);
    let size = base64::decode(head)
        .and_then(|bytes| image::size(&bytes))
        .or_else(|| image::size(&base64::decode(data)?));
    let Some(size) = size else { return IMAGE_TOKENS_DEFAULT };
    let edge_max = u64::from(facts.image_edge_px_max);
    let (width, height) = (u64::from(size.width), u64::from(size.height));
    let edge = width.max(height);
    // Scaled down to the longest edge the model sees, both sides by the same factor.
    let pixels =
        if edge > edge_max { width * edge_max / edge * (height * edge_max / edge) } else { width * height };
    let whole_image = edge_max * edge_max / 2 / PIXELS_PER_TOKEN;
    pixels.div_ceil(PIXELS_PER_TOKEN).clamp(1, whole_image.max(1))
}

/// The bytes of a text, where characters that take tokens of their own count for as many bytes as those do.
fn of_text(text: &str) -> usize {
    let wide = text.bytes().filter(|byte| *byte >= 0xe0).count();
    text.len() + wide * WIDE_BYTES_MORE
}

/// About the length of the JSON text, without building it. Cache marks and signatures cost nothing.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Number(_) => 6,
        Value::String(text) => of_text(text),
        Value::Array(items) => items.iter().map(|item| text_bytes(item) + 1).sum(),
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "cache_control" | "signature"))
            .map(|(key, value)| key.len() + text_bytes(value) + 4)
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::samples;
    use serde_json::json;

    fn text_request(model: &str, text: &str) -> Value {
        json!({"model": model, "messages": [{"role": "user", "content": text}]})
    }

    #[test]
    fn text_counts_about_four_bytes_a_token() {
        let old = count(&text_request("claude-sonnet-4-5", &"x".repeat(4000)));
        assert_eq!(old, REQUEST_TOKENS + TURN_TOKENS + 1000);
        let new = count(&text_request("claude-opus-5-5", &"x".repeat(4000)));
        assert_eq!(new, REQUEST_TOKENS + TURN_TOKENS + 1300, "the newer tokenizer counts about 30 % more");
    }

    #[test]
    fn characters_of_three_bytes_are_tokens_of_their_own() {
        let count = count(&text_request("claude-sonnet-4-5", &"豆".repeat(800)));
        assert_eq!(count, REQUEST_TOKENS + TURN_TOKENS + 1000);
    }

    #[test]
    fn neither_marks_nor_split_messages_change_the_count() {
        let mut request = json!({"model": "claude-opus-5-5", "system": "be brief", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]});
        let plain = count(&request);
        request["messages"][0]["content"][1]["cache_control"] = json!({"type": "ephemeral"});
        assert_eq!(count(&request), plain);
        request["messages"] = json!([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]);
        assert_eq!(count(&request), plain);
    }

    #[test]
    fn images_count_by_pixels_after_scaling() {
        let image = |model, width, height| {
            let data = base64::encode(&samples::png(width, height));
            count(&json!({"model": model, "messages": [{"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]}]}))
                - REQUEST_TOKENS
                - TURN_TOKENS
        };
        assert_eq!(image("claude-sonnet-4-5", 750, 100), 100);
        assert_eq!(image("claude-sonnet-4-5", 4000, 4000), 1639, "long edge 1568");
        assert_eq!(image("claude-opus-5-5", 4000, 4000), 4423, "long edge 2576");
        assert_eq!(
            image("claude-opus-5-5", u32::MAX, 1),
            1,
            "a declared size is never allocated or multiplied out"
        );
    }

    #[test]
    fn documents_count_by_their_pages() {
        let document = |model: &str, bytes: &[u8]| {
            let data = base64::encode(bytes);
            let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
            count_blocks(model, &[json!({"type": "document", "source": source})])
        };
        let (one, ten) = (pdf::sample(1), pdf::sample(10));
        assert!((1_600..1_700).contains(&document("claude-sonnet-4-5", &one)), "next to nothing to read");
        let pages = document("claude-sonnet-4-5", &ten);
        assert!((16_000..17_000).contains(&pages), "{pages}");
        // A page full of words, to either tokenizer.
        let full = [&one[..], &[b'x'; 50_000][..]].concat();
        assert_eq!(document("claude-sonnet-4-5", &full), 1_600 + 750);
        assert_eq!(document("claude-opus-5-5", &full), 1_600 + 975);
        // However large it is: pictures in it are seen with the page.
        let heavy = [&ten[..], &vec![b'x'; 3_000_000][..]].concat();
        assert_eq!(document("claude-sonnet-4-5", &heavy), 10 * (1_600 + 750));
    }

    #[test]
    fn tools_and_results_are_counted() {
        let tool = json!({"name": "Read", "description": "reads", "input_schema": {"type": "object"}});
        let bare = text_request("claude-opus-5-5", "hi");
        let mut with_tool = bare.clone();
        with_tool["tools"] = json!([tool]);
        assert!(count(&with_tool) > count(&bare) + 10);
        let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": "x".repeat(400)}]);
        assert!(count_blocks("claude-opus-5-5", result.as_array().unwrap()) > 100);
    }
}
