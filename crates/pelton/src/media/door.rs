//! The way in for images: opened and scaled beside the runtime, a few at a time. Dropping the future gives up; work
//! that has begun ends at its next step.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::shrink::{Goal, Picture, Unfit, bring_down};
use crate::limits::{IMAGE_SOURCE_BYTES_MAX, IMAGES_OPENED_MAX};

/// Memory belongs to the process, so the bound on it does too.
static OPENED: Semaphore = Semaphore::const_new(IMAGES_OPENED_MAX);

/// Makes an image fit that came as base64 text, or says why it cannot. What it is is seen from its bytes.
pub async fn fit(mut base64: String) -> Result<Picture, Unfit> {
    beside(move |cancel| {
        if base64.len() > IMAGE_SOURCE_BYTES_MAX / 3 * 4 {
            return Err(Unfit::TooManyBytes { bytes: (base64.len() / 4 * 3) as u64 });
        }
        base64.retain(|symbol| !symbol.is_ascii_whitespace());
        let bytes = BASE64.decode(&base64).map_err(|_| Unfit::NotAnImage)?;
        drop(base64);
        bring_down(&bytes, Goal::Sendable, cancel)
    })
    .await
}

/// Makes the content of an image file fit.
pub async fn fit_file(bytes: Vec<u8>) -> Result<Picture, Unfit> {
    beside(move |cancel| bring_down(&bytes, Goal::Small, cancel)).await
}

async fn beside(
    work: impl FnOnce(&CancellationToken) -> Result<Picture, Unfit> + Send + 'static,
) -> Result<Picture, Unfit> {
    let Ok(permit) = OPENED.acquire().await else { return Err(Unfit::Interrupted) };
    let cancel = CancellationToken::new();
    let _dropped = cancel.clone().drop_guard();
    let work = move || {
        // Held until the memory is free, whether or not anybody still waits for the picture.
        let _permit = permit;
        work(&cancel)
    };
    // A decoder that panics costs the image, not the session.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Unfit::Interrupted))
}

/// Makes the images among content blocks fit, blocks as the API writes them. One that cannot be used is replaced by a note
/// that says why. Images that are somewhere else (by URL, by file) stay as they are.
pub async fn fit_blocks(blocks: Vec<Value>) -> Vec<Value> {
    let mut fitted = Vec::with_capacity(blocks.len());
    for mut block in blocks {
        let Some(base64) = take_base64(&mut block) else {
            fitted.push(block);
            continue;
        };
        match fit(base64).await {
            Ok(picture) => {
                let note = picture.note();
                let media_type = picture.format.media_type();
                block["source"] = json!({"type": "base64", "media_type": media_type, "data": picture.base64});
                fitted.push(block);
                fitted.extend(note.map(|text| json!({"type": "text", "text": text})));
            }
            Err(why) => fitted.push(json!({"type": "text", "text": left_out(&why)})),
        }
    }
    fitted
}

fn take_base64(block: &mut Value) -> Option<String> {
    let is = |value: &Value, kind: &str| value.get("type").and_then(Value::as_str) == Some(kind);
    if !is(block, "image") {
        return None;
    }
    let source = block.get_mut("source").filter(|source| is(source, "base64"))?;
    match source.get_mut("data").filter(|data| data.is_string())?.take() {
        Value::String(data) => Some(data),
        _ => None,
    }
}

/// What stands in the place of an image that cannot be used.
pub(crate) fn left_out(why: &Unfit) -> String {
    format!("[An image was left out here. It {why}.]")
}
