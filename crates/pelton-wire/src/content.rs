//! Content blocks we make ourselves. Blocks a model made are kept as received and never pass through here.

use serde::Serialize;

/// A content block in the shape the Messages API, the SDKs and transcripts share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block<'a> {
    /// Text.
    Text {
        /// Never blank: the API refuses that.
        text: &'a str,
    },
    /// An image.
    Image {
        /// Its bytes.
        source: ImageSource<'a>,
    },
    /// A document.
    Document {
        /// Its bytes.
        source: ImageSource<'a>,
    },
    /// The result of a call.
    ToolResult {
        /// Which call it answers.
        tool_use_id: &'a str,
        /// What the model reads.
        content: ResultContent<'a>,
        /// The call did not do what was asked.
        is_error: bool,
    },
}

/// What the result of a call says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ResultContent<'a> {
    /// Words and nothing else. Never blank: the API refuses that.
    Words(&'a str),
    /// Blocks, as a tool brought them.
    Blocks(Vec<Block<'a>>),
}

/// Where an image's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ImageSource<'a> {
    /// In place.
    Base64 {
        /// `image/png` and the like.
        media_type: &'a str,
        /// The base64 text.
        data: &'a str,
    },
    /// Where the server gets them itself.
    Url {
        /// The address.
        url: &'a str,
    },
}
