//! What a PDF says about itself: whether it is one, whether it is locked, and how many pages it has.
//!
//! Nothing is decompressed, so pages that are listed only inside compressed object streams are not seen; such a file
//! counts as one page, the least it can have.

/// A PDF as far as it can be read without decompressing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pdf {
    /// At least one.
    pub(crate) pages: usize,
    pub(crate) encrypted: bool,
}

/// Reads a PDF, or `None` when the bytes are none.
pub(crate) fn read(bytes: &[u8]) -> Option<Pdf> {
    // Readers accept a little noise before the header.
    let head = &bytes[..bytes.len().min(HEADER_BYTES_MAX)];
    let is_pdf = head.windows(HEADER.len()).any(|window| window == HEADER);
    is_pdf.then(|| Pdf {
        pages: values_of(bytes, b"/Type").filter(|value| is_page(value)).count().max(1),
        encrypted: values_of(bytes, b"/Encrypt").next().is_some(),
    })
}

const HEADER: &[u8] = b"%PDF-";
/// Where the header must have begun, in bytes.
const HEADER_BYTES_MAX: usize = 1024;

/// What stands behind each occurrence of a name, white space skipped.
fn values_of<'a>(bytes: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let ends_name = |byte: &u8| !byte.is_ascii_alphanumeric();
    bytes
        .windows(name.len())
        .enumerate()
        .filter(move |(_, window)| *window == name)
        .map(move |(at, _)| &bytes[at + name.len()..])
        .filter(move |rest| rest.first().is_some_and(ends_name))
        .map(<[u8]>::trim_ascii_start)
}

/// A page, and not the tree of pages.
fn is_page(value: &[u8]) -> bool {
    value.strip_prefix(b"/Page").is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
}

/// A file with so many empty pages, for the tests of every module that looks at PDFs.
#[cfg(test)]
pub(crate) fn sample(pages: usize) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n1 0 obj\n<</Type /Pages /Count 0>>\nendobj\n".to_vec();
    for number in 0..pages {
        bytes.extend(format!("{} 0 obj\n<</Type/Page /Parent 1 0 R>>\nendobj\n", number + 2).bytes());
    }
    bytes.extend(b"trailer\n<</Root 1 0 R>>\n%%EOF\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_and_locks_are_seen() {
        assert_eq!(read(&sample(3)), Some(Pdf { pages: 3, encrypted: false }));
        assert_eq!(read(&sample(0)), Some(Pdf { pages: 1, encrypted: false }), "compressed, perhaps");
        assert_eq!(read(b"noise %PDF-1.4 /Type\n /Page>>"), Some(Pdf { pages: 1, encrypted: false }));
        assert_eq!(read(b"%PDF-1.4 trailer <</Encrypt 5 0 R>>"), Some(Pdf { pages: 1, encrypted: true }));
        assert_eq!(read(b"%PDF-1.4 /TypePage /Type /PageLabel"), Some(Pdf { pages: 1, encrypted: false }));
    }

    #[test]
    fn other_files_are_none() {
        for bytes in [&b""[..], b"%PD", b"hello", &[b' '; 2000]] {
            assert_eq!(read(bytes), None);
        }
    }
}
