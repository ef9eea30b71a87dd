//! The picture in a file.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::limits::IMAGE_SOURCE_BYTES_MAX;
use crate::media::{self, Unfit};
use crate::tools::builtin::INTERRUPTED;
use crate::tools::tool::{Output, ResultBlock};

/// Bytes read between two looks at whether it was interrupted.
const PIECE_BYTES: u64 = 1024 * 1024;

/// All bytes of a file that began like an image, or why not; reads on after the file's name.
pub(super) fn load(file: &mut File, bytes: u64, cancel: &CancellationToken) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    if bytes > IMAGE_SOURCE_BYTES_MAX as u64 {
        return Err(Unfit::TooManyBytes { bytes }.to_string());
    }
    file.rewind().map_err(failed)?;
    let mut content = Vec::new();
    // It may grow while it is read: the bound is on what is read, not on what it said.
    while content.len() <= IMAGE_SOURCE_BYTES_MAX {
        if cancel.is_cancelled() {
            return Err(Unfit::Interrupted.to_string());
        }
        if file.by_ref().take(PIECE_BYTES).read_to_end(&mut content).map_err(failed)? == 0 {
            break;
        }
    }
    Ok(content)
}

/// The answer that shows an image, with its structured twin.
pub(super) async fn show(path: &Path, bytes: Vec<u8>, cancel: &CancellationToken) -> Output {
    let picture = tokio::select! {
        biased;
        () = cancel.cancelled() => return Output::error(INTERRUPTED),
        picture = media::fit_file(bytes) => picture,
    };
    let picture = match picture {
        Ok(picture) => picture,
        Err(why) => return Output::error(format!("{} {why}.", path.display())),
    };
    let note = picture.note();
    let media_type = picture.format.media_type();
    let detail = json!({
        "type": "image",
        "file": {
            "base64": picture.base64,
            "type": media_type,
            "originalSize": picture.original_bytes,
            "dimensions": {
                "originalWidth": picture.original.width,
                "originalHeight": picture.original.height,
                "displayWidth": picture.size.width,
                "displayHeight": picture.size.height,
            },
        },
    });
    let mut content = vec![ResultBlock::Image { media_type, base64: picture.base64 }];
    content.extend(note.map(ResultBlock::Text));
    Output { content, is_error: false, detail: Some(detail), new_cwd: None }
}
