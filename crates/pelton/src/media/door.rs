//! The way in for images: opened and scaled beside the runtime, a few at a time. Dropping the future gives up; work
//! that has begun ends at its next step.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
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

/// What enters in the place of an image: the picture, and a note where it is not the same any more, or not there.
#[derive(Debug)]
pub(crate) struct Entering {
    pub picture: Option<Picture>,
    pub note: Option<String>,
}

/// Makes an image fit that came as base64 text. One that cannot be used is replaced by a note that says why.
pub(crate) async fn enter(base64: String) -> Entering {
    match fit(base64).await {
        Ok(picture) => Entering { note: picture.note(), picture: Some(picture) },
        Err(why) => {
            Entering { note: Some(format!("[An image was left out here. It {why}.]")), picture: None }
        }
    }
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use futures::FutureExt;

    use super::*;

    fn picture() -> String {
        let mut bytes = Vec::new();
        let pixels = image::RgbImage::new(2100, 20);
        pixels.write_to(&mut Cursor::new(&mut bytes), image::ImageFormat::Png).unwrap();
        BASE64.encode(bytes)
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_room_for_others() {
        for _ in 0..IMAGES_OPENED_MAX * 5 {
            // Polled once: it has begun, or waits in the queue.
            let mut given_up = Box::pin(fit(picture()));
            let _ = given_up.as_mut().now_or_never();
        }
        assert_eq!(fit(picture()).await.unwrap().size.width, 2000);
    }

    #[tokio::test]
    async fn text_that_was_broken_into_lines_is_the_same_text() {
        let whole = picture();
        let (start, end) = whole.split_at(76);
        assert_eq!(fit(format!("{start}\r\n{end}\n")).await, fit(whole).await);
        assert_eq!(fit("no base64!".to_owned()).await, Err(Unfit::NotAnImage));
        let long = "A".repeat(IMAGE_SOURCE_BYTES_MAX / 3 * 4 + 4);
        assert!(matches!(fit(long).await, Err(Unfit::TooManyBytes { .. })));
    }
}
