//! One JSON object per line, written field by field. Parts that exist as JSON text already are copied in as they
//! are: content is serialised once, when it is made.

use serde::Serialize;

/// Most lines have no more bytes than this: room for them is made once.
const BYTES_USUAL: usize = 512;

/// A JSON object being written.
#[derive(Debug)]
pub struct Line {
    text: Vec<u8>,
}

impl Line {
    /// An object whose first field is `"type"`.
    pub fn new(kind: &str) -> Self {
        Self::object().field("type", kind)
    }

    /// An empty object.
    pub fn object() -> Self {
        let mut text = Vec::with_capacity(BYTES_USUAL);
        text.push(b'{');
        Self { text }
    }

    /// Adds a field. A value that cannot be serialised becomes null; none of ours is such a value.
    #[must_use]
    pub fn field(mut self, key: &str, value: impl Serialize) -> Self {
        self.key(key);
        let before = self.text.len();
        if serde_json::to_writer(&mut self.text, &value).is_err() {
            self.text.truncate(before);
            self.text.extend_from_slice(b"null");
        }
        self
    }

    /// Adds a field whose value is text that needs no escapes, such as an id.
    #[must_use]
    pub fn plain(mut self, key: &str, text: &str) -> Self {
        debug_assert!(text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\'));
        self.key(key);
        self.text.push(b'"');
        self.text.extend_from_slice(text.as_bytes());
        self.text.push(b'"');
        self
    }

    /// Adds a field if there is a value.
    #[must_use]
    pub fn field_if(self, key: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }

    /// Adds a field whose value is JSON text already.
    #[must_use]
    pub fn raw(mut self, key: &str, json: &[u8]) -> Self {
        self.key(key);
        self.text.extend_from_slice(json);
        self
    }

    /// Adds a field whose value is JSON text already, if there is one.
    #[must_use]
    pub fn raw_if(self, key: &str, json: Option<&[u8]>) -> Self {
        match json {
            Some(json) => self.raw(key, json),
            None => self,
        }
    }

    /// The object, without a line end.
    pub fn finish(mut self) -> Vec<u8> {
        self.text.push(b'}');
        self.text
    }

    /// The object as a whole line.
    pub fn finish_line(mut self) -> Vec<u8> {
        self.text.extend_from_slice(b"}\n");
        self.text
    }

    fn key(&mut self, key: &str) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        // Keys are ours: plain ASCII names that need no escaping.
        debug_assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
        self.text.push(b'"');
        self.text.extend_from_slice(key.as_bytes());
        self.text.extend_from_slice(b"\":");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_parts_are_copied_and_others_serialised() {
        let line = Line::object()
            .plain("type", "user")
            .raw("message", br#"{"role":"user"}"#)
            .field("text", "a\n\"b\"")
            .field_if("absent", None::<u8>)
            .field_if("present", Some(1))
            .finish_line();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "{\"type\":\"user\",\"message\":{\"role\":\"user\"},\"text\":\"a\\n\\\"b\\\"\",\"present\":1}\n"
        );
        assert_eq!(Line::object().finish(), b"{}");
    }
}
