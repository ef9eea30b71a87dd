//! Images and documents in entries: where they are, what they weigh, and the same entry without them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::entry::{Entry, Kind};
use super::tokens::Weight;
use crate::limits::IMAGE_EDGE_PX_MAX;
use crate::media::look::Size;
use crate::media::pages;

/// What the model reads in place of media that were left out.
pub const MEDIA_LEFT_OUT: &str = "[An image or document was left out here because it was too large to be sent, or too old to be sent with the others.]";

/// Where an image or document is. It stays true whatever else is left out: a note takes the place of what goes.
///
/// ```
/// use pelton::history::{Edit, MediaPlace};
///
/// // The second block of a result becomes a note in what the model is sent.
/// let place = MediaPlace { of: "toolu_01".to_owned(), block: 0, inner: Some(1) };
/// let edit = Edit::Media { places: vec![place] };
/// assert_eq!(serde_json::to_value(&edit)?["places"][0]["inner"], 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MediaPlace {
    /// The call whose result it is in; for prompts, the entry.
    pub of: String,
    /// The block in the entry.
    pub block: usize,
    /// The block in that block, for results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<usize>,
}

/// An image or document in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Medium {
    pub block: usize,
    pub inner: Option<usize>,
    pub is_image: bool,
    /// Bytes of its block.
    pub bytes: usize,
    /// How many it counts for where images and pages are limited together: an image for one, a document for its pages.
    pub pages: usize,
    /// Somebody has counted them.
    pub pages_known: bool,
    /// Bytes of base64 text, if it is in place.
    pub base64_bytes: Option<usize>,
    /// What an image in place says of its size.
    pub size: Option<Size>,
}

impl Medium {
    /// About what it costs of the context window.
    pub fn weight(&self) -> Weight {
        if !self.is_image {
            let documents = match self.pages_known {
                true => self.pages as u64 * PAGE_TOKENS,
                false => PAGE_TOKENS + (self.bytes / UNKNOWN_PAGES_BYTES_PER_TOKEN) as u64,
            };
            return Weight { documents, ..Weight::default() };
        }
        let images = COMMON_SIGHT.tokens(self.size);
        let images_sharp = CLOSE_SIGHT.tokens(self.size).saturating_sub(images);
        Weight { images, images_sharp, ..Weight::default() }
    }

    /// Whether it is larger than an image may be among many others.
    pub fn is_large(&self) -> bool {
        self.size.is_some_and(|size| size.edge() > IMAGE_EDGE_PX_MAX)
    }

    /// How to find it again, in an entry that can hold any.
    pub(crate) fn place(&self, entry: &Entry) -> Option<MediaPlace> {
        let of = match &entry.kind {
            Kind::ToolResult { call, .. } => call.to_string(),
            Kind::Prompt { .. } => entry.id.to_string(),
            Kind::Assistant { .. } => return None,
        };
        Some(MediaPlace { of, block: self.block, inner: self.inner })
    }
}

/// How closely a model looks at images: larger ones are made smaller for it.
struct Sight {
    edge_px: u64,
    tokens_max: u64,
}

const COMMON_SIGHT: Sight = Sight { edge_px: 1_568, tokens_max: 1_600 };
const CLOSE_SIGHT: Sight = Sight { edge_px: 2_576, tokens_max: 4_784 };

impl Sight {
    /// What an image costs; one of which nobody knows the size as much as any.
    fn tokens(&self, size: Option<Size>) -> u64 {
        let Some(size) = size else { return self.tokens_max };
        let (edge, pixels) = (u64::from(size.edge()).max(1), u128::from(size.pixels()));
        let seen = match edge > self.edge_px {
            true => pixels * u128::from(self.edge_px).pow(2) / u128::from(edge).pow(2),
            false => pixels,
        };
        u64::try_from(seen).unwrap_or(u64::MAX).div_ceil(PIXELS_PER_TOKEN).clamp(1, self.tokens_max)
    }
}

/// Pixels of an image for each token.
const PIXELS_PER_TOKEN: u64 = 750;
/// A page of a document is text and picture at once.
const PAGE_TOKENS: u64 = 2_500;
/// Bytes of base64 text for each further token of a document whose pages nobody can count.
const UNKNOWN_PAGES_BYTES_PER_TOKEN: usize = 64;
/// Base64 symbols looked at to find the size of an image.
const HEAD_SYMBOLS_MAX: usize = 64 * 1024;

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Source<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The images and documents of a content array, in order.
pub(super) fn find(json: &[u8]) -> Vec<Medium> {
    // Nearly all entries have none, and this is asked of each. Inside of strings quotes are escaped, so that no text can
    // look like this.
    let named = |name: &[u8]| memchr::memmem::find(json, name).is_some();
    if !named(br#""image""#) && !named(br#""document""#) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (block, raw) in array(json).into_iter().enumerate() {
        let Ok(outer) = serde_json::from_str::<Block<'_>>(raw.get()) else { continue };
        match outer.r#type.as_ref() {
            "image" | "document" => found.push(medium(&outer, raw, block, None)),
            "tool_result" => {
                let content = outer.content.map_or(Vec::new(), |content| array(content.get().as_bytes()));
                for (inner, raw) in content.into_iter().enumerate() {
                    if let Ok(nested) = serde_json::from_str::<Block<'_>>(raw.get())
                        && matches!(nested.r#type.as_ref(), "image" | "document")
                    {
                        found.push(medium(&nested, raw, block, Some(inner)));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// The same entry with notes in place of some of its media.
pub(super) fn without(entry: &Entry, media: &[Medium]) -> Option<Entry> {
    let mut blocks: Vec<Value> = serde_json::from_slice(&entry.json).ok()?;
    for medium in media {
        let block = blocks.get_mut(medium.block)?;
        let place = match medium.inner {
            Some(inner) => block.get_mut("content")?.get_mut(inner)?,
            None => block,
        };
        *place = json!({"type": "text", "text": MEDIA_LEFT_OUT});
    }
    let json = Bytes::from(serde_json::to_vec(&blocks).ok()?);
    let smaller = Entry::new(entry.id, entry.at, entry.kind.clone(), json).ok()?;
    Some(smaller.with_detail(entry.detail.clone()))
}

fn array(json: &[u8]) -> Vec<&RawValue> {
    // A result's content may be a string; that has no media.
    serde_json::from_slice(json).unwrap_or_default()
}

fn medium(read: &Block<'_>, raw: &RawValue, block: usize, inner: Option<usize>) -> Medium {
    let source = read.source.and_then(|source| serde_json::from_str::<Source<'_>>(source.get()).ok());
    let data = source.filter(|source| source.r#type == "base64").and_then(|source| source.data);
    let base64 = data.map(|data| data.get().trim_matches('"'));
    let is_image = read.r#type == "image";
    let size = base64.filter(|_| is_image).and_then(declared_size);
    let pages = match is_image {
        true => Some(1),
        false => base64.and_then(|base64| BASE64.decode(base64).ok()).and_then(|pdf| pages::count(&pdf)),
    };
    Medium {
        block,
        inner,
        is_image,
        bytes: raw.get().len(),
        pages: pages.unwrap_or(1),
        pages_known: pages.is_some(),
        base64_bytes: base64.map(str::len),
        size,
    }
}

fn declared_size(base64: &str) -> Option<Size> {
    let symbols = base64.len().min(HEAD_SYMBOLS_MAX) / 4 * 4;
    let head = BASE64.decode(base64.get(..symbols)?).ok()?;
    Size::of(&head)
}
