//! How many pages a PDF document has, without taking it apart: where images are limited, each page counts as one.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use memchr::memmem;

use crate::limits::PDF_UNPACKED_BYTES_MAX;

/// How many pages there seem to be in a document; `None` if that cannot be told.
pub fn count(bytes: &[u8]) -> Option<usize> {
    let mut pages = page_objects(bytes);
    let mut room = PDF_UNPACKED_BYTES_MAX;
    // Newer documents have their objects packed in streams.
    for at in memmem::find_iter(bytes, b"/ObjStm") {
        let Some(packed) = stream_behind(bytes, at) else { continue };
        let mut unpacked = Vec::new();
        // One that is damaged half way through still has its first half.
        let _ = ZlibDecoder::new(packed).take(room).read_to_end(&mut unpacked);
        room = room.saturating_sub(unpacked.len() as u64);
        pages += page_objects(&unpacked);
    }
    (pages > 0).then_some(pages)
}

fn stream_behind(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let start = at + memmem::find(&bytes[at..], b"stream")? + b"stream".len();
    let rest = bytes.get(start..)?;
    let rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
    Some(&rest[..memmem::find(rest, b"endstream")?])
}

/// How many objects of the type `/Page` there are.
fn page_objects(bytes: &[u8]) -> usize {
    let is_page = |at: &usize| {
        let value = bytes[at + b"/Type".len()..].trim_ascii_start();
        value.strip_prefix(b"/Page").is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
    };
    memmem::find_iter(bytes, b"/Type").filter(is_page).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_packed_or_not() {
        let page =
            "<</Type/Page /Parent 2 0 R>> <</Type /Page>> <</Type /Pages /Count 2>> <</Type/PageLabel>>";
        assert_eq!(count(page.as_bytes()), Some(2));
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, page.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        let document =
            [b"<</Type /ObjStm>>\nstream\r\n", &packed[..], b"\nendstream <</Type /Page>>"].concat();
        assert_eq!(count(&document), Some(3));
        assert_eq!(count(b"/ObjStm stream"), None);
    }
}
