//! What an image says about itself: format and size, read from its first bytes.
//!
//! Nothing is decoded and nothing is allocated from a declared size; a header that is cut short simply has no size.

/// The four formats the API accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Gif,
    Jpeg,
    Png,
    Webp,
}

impl Format {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Gif => "image/gif",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
        }
    }

    /// Recognises a format by its magic bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
            Some(Self::Jpeg)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else {
            None
        }
    }
}

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The size an image declares, or `None` when the header is damaged or cut off.
pub(crate) fn size(bytes: &[u8]) -> Option<Size> {
    let (width, height) = match Format::of(bytes)? {
        Format::Png => (be32(bytes, 16)?, be32(bytes, 20)?),
        Format::Gif => (le16(bytes, 6)?, le16(bytes, 8)?),
        Format::Webp => webp(bytes)?,
        Format::Jpeg => jpeg(bytes)?,
    };
    (width > 0 && height > 0).then_some(Size { width, height })
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

/// Walks the JPEG segments to the frame header. Every step moves forward, so the walk ends with the bytes.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            0xff => at += 1,               // padding
            0x01 | 0xd0..=0xd8 => at += 2, // markers without a segment
            0xd9 | 0xda => return None,    // image data before any frame header
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
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

/// Smallest possible headers, for the tests of every module that looks at images.
#[cfg(test)]
pub(crate) mod samples {
    pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0]);
        bytes
    }

    pub(crate) fn gif(width: u16, height: u16) -> Vec<u8> {
        let mut bytes = b"GIF89a".to_vec();
        bytes.extend(width.to_le_bytes());
        bytes.extend(height.to_le_bytes());
        bytes
    }

    pub(crate) fn jpeg(width: u16, height: u16) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8, 0xff, 0xe1, 0, 6, 1, 2, 3, 4, 0xff, 0xff, 0xc2, 0, 17, 8];
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes
    }

    pub(crate) fn webp(chunk: &[u8; 4], tail: &[u8]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WEBP".to_vec();
        bytes.extend(chunk);
        bytes.extend([0; 4]);
        bytes.extend(tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_from_every_format() {
        let check = |bytes: &[u8], format, width, height| {
            assert_eq!(Format::of(bytes), Some(format));
            assert_eq!(size(bytes), Some(Size { width, height }), "{format:?}");
            for cut in 0..bytes.len() {
                // A shorter file may still hold the whole size, never another one.
                assert!(
                    size(&bytes[..cut]).is_none_or(|s| s == Size { width, height }),
                    "{format:?} cut at {cut}"
                );
            }
        };
        check(&samples::png(8001, 3), Format::Png, 8001, 3);
        check(&samples::gif(2162, 322), Format::Gif, 2162, 322);
        check(&samples::jpeg(640, 480), Format::Jpeg, 640, 480);
        check(&samples::webp(b"VP8 ", &[0, 0, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xf0, 0]), Format::Webp, 320, 240);
        check(&samples::webp(b"VP8L", &[0x2f, 0x3f, 0xc1, 0x3b, 0]), Format::Webp, 320, 240);
        check(&samples::webp(b"VP8X", &[0, 0, 0, 0, 0x3f, 1, 0, 0xef, 0, 0]), Format::Webp, 320, 240);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_readers_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), magic in 0..4usize) {
            let start: &[u8] = [&b"\xff\xd8\xff"[..], b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X"][magic];
            bytes.splice(0..0, start.iter().copied());
            let _ = size(&bytes);
        }
    }
}
