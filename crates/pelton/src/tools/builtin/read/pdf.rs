//! A PDF document: given to the model as it is, when it is short enough.

use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use memchr::memmem;
use serde_json::json;

use crate::limits::{PDF_BYTES_MAX, PDF_PAGES_MAX, PDF_UNPACKED_BYTES_MAX};
use crate::tools::tool::{Output, ResultBlock};

/// The answer that shows a document, or why there is none; reads on after the file's name.
pub(super) fn show(path: &Path, bytes: &[u8]) -> Result<Output, String> {
    if bytes.len() as u64 > PDF_BYTES_MAX {
        return Err(format!(
            "is a PDF of more than {} MB, too large to be shown. `pdftotext` in Bash shows its text",
            PDF_BYTES_MAX / 1_000_000
        ));
    }
    if memmem::rfind(bytes, b"%%EOF").is_none() {
        return Err("is a PDF that is damaged or cut off: its end is missing".to_owned());
    }
    let pages = pages(bytes);
    if pages > PDF_PAGES_MAX {
        return Err(format!(
            "is a PDF of {pages} pages; at most {PDF_PAGES_MAX} are shown at once. `pdftotext -f 1 -l {PDF_PAGES_MAX}` in Bash \
             shows the text of some, `pdfseparate` or `qpdf --pages` makes a smaller document"
        ));
    }
    let said = match pages {
        0 => "PDF document".to_owned(),
        1 => "PDF document, 1 page".to_owned(),
        pages => format!("PDF document, {pages} pages"),
    };
    let base64 = STANDARD.encode(bytes);
    let detail = json!({
        "type": "pdf",
        "file": {"filePath": path, "base64": base64, "originalSize": bytes.len(), "pages": pages},
    });
    let mut output = Output::text(format!("{}: {said}.", path.display())).with_detail(detail);
    output.content.push(ResultBlock::Document { base64 });
    Ok(output)
}

/// How many pages there are; 0 if that cannot be told (in encrypted documents).
fn pages(bytes: &[u8]) -> usize {
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
    pages
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
        assert_eq!(pages(page.as_bytes()), 2);
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, page.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        let document =
            [b"<</Type /ObjStm>>\nstream\r\n", &packed[..], b"\nendstream <</Type /Page>>"].concat();
        assert_eq!(pages(&document), 3);
        assert_eq!(pages(b"/ObjStm stream"), 0);
    }

    #[test]
    fn only_short_and_whole_documents_are_shown() {
        let document = |pages: usize| format!("%PDF-1.4\n{}%%EOF\n", "<</Type /Page>>\n".repeat(pages));
        let path = Path::new("/a.pdf");
        let shown = show(path, document(3).as_bytes()).unwrap();
        assert!(
            matches!(&shown.content[..], [ResultBlock::Text(text), ResultBlock::Document { .. }] if text.contains("3 pages"))
        );
        assert!(show(path, document(11).as_bytes()).unwrap_err().contains("11 pages"));
        assert!(show(path, b"%PDF-1.7\n1 0 obj").unwrap_err().contains("cut off"));
    }
}
