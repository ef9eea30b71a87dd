//! The pictures of a tool's answer, made to fit before they enter the conversation: the one place all of them pass.

use tokio_util::sync::CancellationToken;

use super::tool::{Output, ResultBlock};
use crate::limits::IMAGES_OF_RESULT_MAX;
use crate::media::{self, Entering};

/// Makes the images of an answer fit. One that cannot be used is replaced by a note that says why.
pub(super) async fn fitted(mut output: Output, cancel: &CancellationToken) -> Output {
    let is_image = |block: &ResultBlock| matches!(block, ResultBlock::Image { .. });
    if !output.content.iter().any(is_image) {
        return output;
    }
    let mut content = Vec::with_capacity(output.content.len());
    let mut images = 0;
    for block in output.content {
        let ResultBlock::Image { base64, .. } = block else {
            content.push(block);
            continue;
        };
        images += 1;
        if images > IMAGES_OF_RESULT_MAX {
            continue;
        }
        let Some(Entering { picture, note }) = cancel.run_until_cancelled(media::enter(base64)).await else {
            content.push(ResultBlock::Text("[An image was left out here: interrupted.]".to_owned()));
            continue;
        };
        content.extend(picture.map(|picture| ResultBlock::Image {
            media_type: picture.format.media_type(),
            base64: picture.base64,
        }));
        content.extend(note.map(ResultBlock::Text));
    }
    if let Some(over) = images.checked_sub(IMAGES_OF_RESULT_MAX).filter(|over| *over > 0) {
        content.push(ResultBlock::Text(format!(
            "[{over} more images were left out: one result may hold {IMAGES_OF_RESULT_MAX}.]"
        )));
    }
    output.content = content;
    output
}
