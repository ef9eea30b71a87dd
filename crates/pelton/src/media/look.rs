//! What an image says about itself: format and size, read from its first bytes. By content, never by name.
//!
//! Nothing is opened and nothing is allocated from a declared size; a header that is cut short simply has no size.

/// The formats the API takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// GIF, moving or not.
    Gif,
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    Webp,
}

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

impl Format {
    /// Recognises a format by its first bytes.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if bytes.starts_with(b"\xFF\xD8\xFF") {
            Some(Self::Jpeg)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else {
            None
        }
    }

    /// `image/png` and the like.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Gif => "image/gif",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gif => "GIF",
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Webp => "WebP",
        }
    }
}

impl Size {
    /// The size an image declares; `None` when its header is damaged or cut off.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (width, height) = match Format::of(bytes)? {
            Format::Png if bytes.get(12..16) == Some(b"IHDR") => (be32(bytes, 16)?, be32(bytes, 20)?),
            Format::Png => return None,
            Format::Gif => (le16(bytes, 6)?, le16(bytes, 8)?),
            Format::Webp => webp(bytes)?,
            Format::Jpeg => jpeg(bytes)?,
        };
        (width > 0 && height > 0).then_some(Self { width, height })
    }

    /// The longer side.
    pub fn edge(self) -> u32 {
        self.width.max(self.height)
    }

    /// How many pixels there are.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The same shape with no side longer than `edge_max`; never larger than it was.
    #[must_use]
    pub fn within(self, edge_max: u32) -> Self {
        let edge = self.edge();
        if edge <= edge_max {
            return self;
        }
        let scaled = |side: u32| {
            let side = (u64::from(side) * u64::from(edge_max) + u64::from(edge) / 2) / u64::from(edge);
            u32::try_from(side).unwrap_or(edge_max).clamp(1, edge_max.max(1))
        };
        Self { width: scaled(self.width), height: scaled(self.height) }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}", self.width, self.height)
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((le24(bytes, 24)? + 1, le24(bytes, 27)? + 1)),
        _ => None,
    }
}

/// Walks the segments to the frame header. Every step moves forward, so the walk ends with the bytes.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    const PADDING: u8 = 0xff;
    const END_OF_IMAGE: u8 = 0xd9;
    const START_OF_SCAN: u8 = 0xda;
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            PADDING => at += 1,
            // Markers without a segment.
            0x01 | 0xd0..=0xd8 => at += 2,
            // Pixels, or the end, before any frame header.
            END_OF_IMAGE | START_OF_SCAN => return None,
            // Of this range, three are tables and not frames.
            marker @ 0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            _ => {
                let length = be16(bytes, at + 2)? as usize;
                if length < 2 {
                    return None;
                }
                at += 2 + length;
            }
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    let [a, b, c] = bytes.get(at..at + 3)?.try_into().ok()?;
    Some(u32::from_le_bytes([a, b, c, 0]))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_every_format_however_short_the_bytes() {
        let check = |bytes: &[u8], format: Format, width: u32, height: u32| {
            assert_eq!((Format::of(bytes), Size::of(bytes)), (Some(format), Some(Size { width, height })));
            for cut in 0..bytes.len() {
                let size = Size::of(&bytes[..cut]);
                assert!(size.is_none_or(|size| size == Size { width, height }), "{format:?} cut at {cut}");
            }
        };
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x1f\x41\0\0\0\x03\x08", Format::Png, 8001, 3);
        check(b"GIF89a\x72\x08\x42\x01", Format::Gif, 2162, 322);
        check(b"\xFF\xD8\xFF\xE1\0\x06abcd\xFF\xFF\xC2\0\x11\x08\x01\xe0\x02\x80", Format::Jpeg, 640, 480);
        let webp = |chunk: &[u8], tail: &[u8]| [b"RIFF\0\0\0\0WEBP", chunk, b"\0\0\0\0", tail].concat();
        check(&webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x40\x01\xf0\0"), Format::Webp, 320, 240);
        check(&webp(b"VP8L", b"\x2f\x3f\xc1\x3b\0"), Format::Webp, 320, 240);
        check(&webp(b"VP8X", b"\0\0\0\0\x3f\x01\0\xef\0\0"), Format::Webp, 320, 240);
    }
}
