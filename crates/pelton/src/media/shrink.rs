//! Bringing one image down: as few changes as it takes, none if it fits.
//!
//! Whatever comes in is somebody else's file: sizes are checked before anything is allocated, and every image is opened
//! once even if nothing has to change, because the API cannot say which of many it was unable to open.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{self, CompressionType, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};
use tokio_util::sync::CancellationToken;

use super::look::{Format, Size};
use crate::limits::{
    IMAGE_BYTES_MAX, IMAGE_DECODED_BYTES_MAX, IMAGE_EDGE_PX_MAX, IMAGE_PIXELS_MAX, IMAGE_REWRITTEN_BYTES,
    IMAGE_SHRINKS_MAX, IMAGE_SOURCE_BYTES_MAX,
};

/// How small an image must be to stay as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// What the API takes, in the company of any number of others.
    Sendable,
    /// The same, and written anew if that makes a large file much smaller: for files that can be looked at again.
    Small,
}

/// An image that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// What the bytes are.
    pub format: Format,
    /// The bytes, as base64 text.
    pub base64: String,
    /// How large it is now.
    pub size: Size,
    /// How large it was.
    pub original: Size,
    /// How many bytes it had.
    pub original_bytes: usize,
}

/// Why an image cannot be used. Reads on after its name: "a.png is damaged".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// None of the formats the API takes.
    #[error("is not a PNG, JPEG, GIF or WebP image. Convert it first, for example with ImageMagick in Bash")]
    NotAnImage,
    /// It begins like an image, but cannot be opened.
    #[error("is a {} image that cannot be opened: {reason}. It is damaged or incomplete", format.name())]
    Damaged {
        /// What it claims to be.
        format: Format,
        /// What is wrong with it.
        reason: String,
    },
    /// Opening it would take too much memory.
    #[error(
        "has {size} pixels, more than can be opened here. Make a smaller copy or cut out a part first, for example with \
         ImageMagick in Bash"
    )]
    TooManyPixels {
        /// How many it declares.
        size: Size,
    },
    /// More than is read into memory.
    #[error(
        "has {} MB; images of more than {} MB are not read. Make a smaller copy first, for example with ImageMagick in \
         Bash", bytes / 1_000_000, IMAGE_SOURCE_BYTES_MAX / 1_000_000
    )]
    TooManyBytes {
        /// How many there are.
        bytes: u64,
    },
    /// It was stopped before it was done.
    #[error("was not looked at to the end: interrupted")]
    Interrupted,
}

impl Picture {
    /// What the model needs to know beside the picture, if anything.
    pub fn note(&self) -> Option<String> {
        let Self { size, original, .. } = self;
        (size != original).then(|| {
            let factor = f64::from(original.edge()) / f64::from(size.edge());
            format!(
                "[Scaled down from {original} to {size} pixels. Coordinates in the original are {factor:.2} times those \
                 seen here.]"
            )
        })
    }
}

/// Makes an image fit, or says why it cannot. Takes as long as opening and writing it takes: not for the runtime's
/// threads.
pub(super) fn bring_down(bytes: &[u8], goal: Goal, cancel: &CancellationToken) -> Result<Picture, Unfit> {
    if bytes.len() > IMAGE_SOURCE_BYTES_MAX {
        return Err(Unfit::TooManyBytes { bytes: bytes.len() as u64 });
    }
    let format = Format::of(bytes).ok_or(Unfit::NotAnImage)?;
    let damaged = |reason: &str| Unfit::Damaged { format, reason: reason.to_owned() };
    let original = Size::of(bytes).ok_or_else(|| damaged("its header is unreadable"))?;
    if original.pixels() > IMAGE_PIXELS_MAX {
        return Err(Unfit::TooManyPixels { size: original });
    }
    let picture = |format: Format, bytes_now: &[u8], size: Size| Picture {
        format,
        base64: BASE64.encode(bytes_now),
        size,
        original,
        original_bytes: bytes.len(),
    };
    stop_if(cancel)?;
    let opened = open(bytes, format, original)?;
    let sendable = original.edge() <= IMAGE_EDGE_PX_MAX && bytes.len() <= IMAGE_BYTES_MAX;
    let complete = format != Format::Jpeg || jpeg_is_complete(bytes);
    // A moving GIF written anew would be its first frame.
    let small = goal == Goal::Sendable || format == Format::Gif || bytes.len() <= IMAGE_REWRITTEN_BYTES;
    if sendable && complete && small {
        return Ok(picture(format, bytes, original));
    }
    let (rewritten_as, rewritten, size) = rewrite(opened, format, cancel)?;
    if sendable && complete && rewritten.len() >= bytes.len() {
        return Ok(picture(format, bytes, original));
    }
    Ok(picture(rewritten_as, &rewritten, size))
}

/// The pixels, the right way up.
fn open(bytes: &[u8], format: Format, size: Size) -> Result<DynamicImage, Unfit> {
    let failed = |error: ImageError| match error {
        ImageError::Limits(_) => Unfit::TooManyPixels { size },
        error => Unfit::Damaged { format, reason: error.to_string() },
    };
    let mut limits = image::Limits::no_limits();
    limits.max_image_width = Some(size.edge());
    limits.max_image_height = Some(size.edge());
    limits.max_alloc = Some(IMAGE_DECODED_BYTES_MAX);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format.into());
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(failed)?;
    if decoder.total_bytes() > IMAGE_DECODED_BYTES_MAX {
        return Err(Unfit::TooManyPixels { size });
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut opened = DynamicImage::from_decoder(decoder).map_err(failed)?;
    opened.apply_orientation(orientation);
    Ok(opened)
}

/// The image written anew, small enough.
fn rewrite(
    opened: DynamicImage,
    format: Format,
    cancel: &CancellationToken,
) -> Result<(Format, Vec<u8>, Size), Unfit> {
    let failed = |error: ImageError| Unfit::Damaged { format, reason: error.to_string() };
    let pixels = Pixels::of(opened);
    let whole = pixels.size();
    let mut edge = whole.edge().min(IMAGE_EDGE_PX_MAX);
    for _ in 0..IMAGE_SHRINKS_MAX {
        stop_if(cancel)?;
        let size = whole.within(edge);
        let scaled = (size != whole).then(|| pixels.scaled(size));
        let scaled = scaled.as_ref().unwrap_or(&pixels);
        for attempt in scaled.attempts(format) {
            stop_if(cancel)?;
            let written = scaled.write(attempt).map_err(failed)?;
            if written.len() <= attempt.bytes_max() {
                return Ok((attempt.format(), written, size));
            }
        }
        edge = edge / 4 * 3;
    }
    // The smallest tried has a few hundred pixels a side, and no way to write those comes near the limit.
    Err(Unfit::TooManyPixels { size: whole })
}

/// A way to write an image.
#[derive(Debug, Clone, Copy)]
enum Attempt {
    /// Exact: if the result is small, or if only PNG keeps what shows through.
    Png { bytes_max: usize },
    /// Photographs.
    Jpeg { quality: u8 },
}

impl Attempt {
    fn format(self) -> Format {
        match self {
            Self::Png { .. } => Format::Png,
            Self::Jpeg { .. } => Format::Jpeg,
        }
    }

    fn bytes_max(self) -> usize {
        match self {
            Self::Png { bytes_max } => bytes_max,
            Self::Jpeg { .. } => IMAGE_BYTES_MAX,
        }
    }
}

/// Eight bits a channel, and no channel that says nothing.
struct Pixels {
    image: DynamicImage,
    see_through: bool,
}

impl Pixels {
    const JPEG_GOOD: u8 = 85;
    const JPEG_FAIR: u8 = 60;

    fn of(opened: DynamicImage) -> Self {
        let colour = opened.color();
        if colour.has_alpha() {
            let pixels = opened.into_rgba8();
            if pixels.pixels().any(|pixel| pixel.0[3] < u8::MAX) {
                return Self { image: pixels.into(), see_through: true };
            }
            return Self { image: DynamicImage::from(pixels).into_rgb8().into(), see_through: false };
        }
        let image = if colour.has_color() { opened.into_rgb8().into() } else { opened.into_luma8().into() };
        Self { image, see_through: false }
    }

    fn size(&self) -> Size {
        Size { width: self.image.width(), height: self.image.height() }
    }

    fn scaled(&self, Size { width, height }: Size) -> Self {
        // Sharp enough that text stays readable.
        let image = self.image.resize_exact(width, height, FilterType::CatmullRom);
        Self { image, see_through: self.see_through }
    }

    /// Ways to write it, best first.
    fn attempts(&self, source: Format) -> Vec<Attempt> {
        let exact = |bytes_max: usize| Attempt::Png { bytes_max };
        let photograph = |quality: u8| Attempt::Jpeg { quality };
        match source {
            _ if self.see_through => vec![exact(IMAGE_BYTES_MAX)],
            // What was lossy gains nothing from being exact.
            Format::Jpeg => vec![photograph(Self::JPEG_GOOD), photograph(Self::JPEG_FAIR)],
            _ => vec![exact(IMAGE_REWRITTEN_BYTES), photograph(Self::JPEG_GOOD), photograph(Self::JPEG_FAIR)],
        }
    }

    fn write(&self, attempt: Attempt) -> Result<Vec<u8>, ImageError> {
        let mut written = Vec::new();
        match attempt {
            Attempt::Png { .. } => self.image.write_with_encoder(PngEncoder::new_with_quality(
                &mut written,
                CompressionType::Default,
                png::FilterType::Adaptive,
            )),
            Attempt::Jpeg { quality } => {
                self.image.write_with_encoder(JpegEncoder::new_with_quality(&mut written, quality))
            }
        }?;
        Ok(written)
    }
}

impl From<Format> for ImageFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Gif => Self::Gif,
            Format::Jpeg => Self::Jpeg,
            Format::Png => Self::Png,
            Format::Webp => Self::WebP,
        }
    }
}

/// Our reader makes do with half a JPEG; others may not, so one without an end is written anew.
fn jpeg_is_complete(bytes: &[u8]) -> bool {
    // The end of a thumbnail in the header is not the end of the image.
    let behind = &bytes[bytes.len() / 2..];
    memchr::memmem::rfind(behind, b"\xFF\xD9").is_some()
}

fn stop_if(cancel: &CancellationToken) -> Result<(), Unfit> {
    if cancel.is_cancelled() { Err(Unfit::Interrupted) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
