//! Images and documents: how many, and whether each image is what it says it is.

use super::{Judge, Rule, Verdict};
use crate::base64;
use crate::image::{self, Format, Size};
use crate::prompt::Body;
use serde_json::Value;

const EDGE_PX_MAX: u32 = 8000;
/// The limit once a request holds more than [`FEW_IMAGES_MAX`] images.
const EDGE_PX_MAX_OF_MANY: u32 = 2000;
const FEW_IMAGES_MAX: usize = 20;

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    let mut images = Vec::new();
    let mut pages = 0;
    for part in &judge.parts {
        let Body::Block(block) = part.body else { continue };
        let nested = part
            .nested()
            .iter()
            .enumerate()
            .map(|(i, b)| (format!("{}.tool_result.content.{i}", part.path()), b));
        for (path, block) in std::iter::once((part.path(), block)).chain(nested) {
            match block.get("type").and_then(Value::as_str) {
                Some("image") => images.push((path, block)),
                // Pages are not counted without reading the PDF, but each document has at least one.
                Some("document") => pages += 1,
                _ => {}
            }
        }
    }
    let most = judge.facts.images_max();
    if pages + images.len() > most {
        let count = images.len();
        judge.refuse(
            Rule::ImageCount,
            format!("Too much media: {pages} document pages + {count} images > {most}"),
        )?;
    }
    let many = images.len() > FEW_IMAGES_MAX;
    images.iter().try_for_each(|(path, block)| check_image(judge, path, block, many))
}

fn check_image(judge: &Judge<'_>, path: &str, block: &Value, many: bool) -> Verdict {
    let Some(source) = block.get("source") else { return Ok(()) };
    if source.get("type").and_then(Value::as_str) != Some("base64") {
        return Ok(());
    }
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
    let Some(bytes) = base64::decode(data) else {
        return refuse("", "invalid base64 data".into());
    };
    match Format::of(&bytes) {
        None => return judge.refuse(Rule::ImageSize, "Could not process image"),
        Some(format) if format.media_type() != declared => {
            let found = format.media_type();
            refuse(
                ".data",
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
