//! Images and documents: how many, and whether each is what it says it is.

use super::{Judge, Refusal, Rule, Verdict};
use crate::base64;
use crate::image::{self, Format, Size};
use crate::pdf;
use crate::prompt::{Body, Part};
use serde_json::Value;

const EDGE_PX_MAX: u32 = 8000;
/// The limit once a request holds more than [`FEW_IMAGES_MAX`] images.
const EDGE_PX_MAX_OF_MANY: u32 = 2000;
const FEW_IMAGES_MAX: usize = 20;

/// Longest base64 text of one image, in bytes: the API measures what is sent, not what it decodes to.
const IMAGE_BASE64_BYTES_MAX: usize = 5 * 1024 * 1024;

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    let media: Vec<(String, &Value)> = judge.parts.iter().flat_map(blocks_of).collect();
    let of_kind = |kind: &'static str| {
        media.iter().filter(move |(_, block)| block.get("type").and_then(Value::as_str) == Some(kind))
    };
    let pages_max = judge.facts.images_max();
    let mut pages = 0;
    for (path, block) in of_kind("document") {
        pages += check_document(judge, path, block, pages_max)?;
    }
    let images = of_kind("image").count();
    if pages + images > pages_max {
        judge.refuse(
            Rule::ImageCount,
            format!("Too much media: {pages} document pages + {images} images > {pages_max}"),
        )?;
    }
    let many = images > FEW_IMAGES_MAX;
    of_kind("image").try_for_each(|(path, block)| check_image(judge, path, block, many))
}

/// A block and, when it is a tool result, the blocks inside it, each with its path.
fn blocks_of<'a>(part: &Part<'a>) -> Vec<(String, &'a Value)> {
    let Body::Block(block) = part.body else { return Vec::new() };
    let path = part.path();
    let nested = part.nested().iter().enumerate();
    let nested =
        nested.map(|(i, inner)| (format!("{path}.tool_result.content.{i}"), inner)).collect::<Vec<_>>();
    std::iter::once((path.clone(), block)).chain(nested).collect()
}

/// Judges a document and returns its pages. One that is not here, or no PDF, counts as a page.
fn check_document(judge: &Judge<'_>, path: &str, block: &Value, pages_max: usize) -> Result<usize, Refusal> {
    let Some(source) = base64_source(block) else { return Ok(1) };
    let refuse = |rule, at: &str, why: &str| judge.refuse(rule, format!("{path}.{at}: {why}")).map(|()| 1);
    if source.get("media_type").and_then(Value::as_str) != Some("application/pdf") {
        let media_type = "document.source.base64.media_type";
        refuse(Rule::ImageSize, media_type, "Input should be 'application/pdf'")?;
    }
    let data = source.get("data").and_then(Value::as_str).unwrap_or_default();
    if data.is_empty() {
        return refuse(Rule::ImageSize, "document.source.base64", "PDF cannot be empty");
    }
    let Some(bytes) = base64::decode(data) else {
        return refuse(Rule::ImageSize, "document.source.base64", "invalid base64 data");
    };
    let data = "pdf.source.base64.data";
    match pdf::read(&bytes) {
        None => refuse(Rule::ImageSize, data, "The PDF specified was not valid."),
        Some(pdf) if pdf.encrypted => {
            refuse(Rule::ImageSize, data, "The PDF specified is password protected.")
        }
        Some(pdf) if pdf.pages > pages_max => {
            let most = format!("A maximum of {pages_max} PDF pages may be provided.");
            refuse(Rule::ImageCount, data, &most)
        }
        Some(pdf) => Ok(pdf.pages),
    }
}

fn base64_source(block: &Value) -> Option<&Value> {
    block.get("source").filter(|source| source.get("type").and_then(Value::as_str) == Some("base64"))
}

fn check_image(judge: &Judge<'_>, path: &str, block: &Value, many: bool) -> Verdict {
    let Some(source) = base64_source(block) else { return Ok(()) };
    let path = format!("{path}.image.source.base64");
    let refuse = |at: &str, why: String| judge.refuse(Rule::ImageSize, format!("{path}{at}: {why}"));
    let declared = source.get("media_type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(declared, "image/jpeg" | "image/png" | "image/gif" | "image/webp") {
        let kinds = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
        refuse(".media_type", kinds.into())?;
    }
    let data = source.get("data").and_then(Value::as_str).unwrap_or_default();
    if data.is_empty() {
        return refuse("", "image cannot be empty".into());
    }
    if data.len() > IMAGE_BASE64_BYTES_MAX {
        let sent = data.len();
        return refuse(
            "",
            format!("image exceeds 5 MB maximum: {sent} bytes > {IMAGE_BASE64_BYTES_MAX} bytes"),
        );
    }
    let Some(bytes) = base64::decode(data) else {
        return refuse("", "invalid base64 data".into());
    };
    match Format::of(&bytes) {
        None => return judge.refuse(Rule::ImageSize, "Could not process image"),
        Some(format) if format.media_type() != declared => {
            let found = format.media_type();
            refuse(
                "",
                format!(
                    "The image was specified using the {declared} media type, but the image appears to be a {found} image"
                ),
            )?;
        }
        Some(_) => {}
    }
    let Some(Size { width, height }) = image::size(&bytes) else {
        return judge.refuse(Rule::ImageSize, "Could not process image");
    };
    let edge = width.max(height);
    let large = "At least one of the image dimensions exceed max allowed size";
    if edge > EDGE_PX_MAX {
        return refuse(".data", format!("{large}: {EDGE_PX_MAX} pixels"));
    }
    if many && edge > EDGE_PX_MAX_OF_MANY {
        return refuse(".data", format!("{large} for many-image requests: {EDGE_PX_MAX_OF_MANY} pixels"));
    }
    Ok(())
}
