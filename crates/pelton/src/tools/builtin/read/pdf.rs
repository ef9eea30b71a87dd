//! A PDF document: given to the model as it is, when it is short enough, or some of its pages.

mod objects; // what a document is made of: pure
mod part; // some of its pages: pure
mod tokens; // the words it is written in: pure

use std::ops::RangeInclusive;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::json;

use self::part::Document;
use crate::limits::{PDF_BYTES_MAX, PDF_PAGES_ASKED_MAX, PDF_PAGES_MAX, PDF_SOURCE_BYTES_MAX};
use crate::media::pages;
use crate::tools::tool::{Output, ResultBlock};

/// Which pages are wanted, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pages(RangeInclusive<usize>);

impl Pages {
    /// `3`, `1-5` or `7-` for all from there on, as far as they are shown at once.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("`pages` is '{text}': write one page or a range, such as 3 or 1-5");
        let number =
            |text: &str| text.trim().parse::<usize>().ok().filter(|page| *page > 0).ok_or_else(wrong);
        let (first, last) = match text.split_once(['-', '–']) {
            None => (number(text)?, number(text)?),
            Some((first, last)) if last.trim().is_empty() => {
                let first = number(first)?;
                (first, first.saturating_add(PDF_PAGES_ASKED_MAX - 1))
            }
            Some((first, last)) => (number(first)?, number(last)?),
        };
        if last < first {
            return Err(wrong());
        }
        if last - first >= PDF_PAGES_ASKED_MAX {
            return Err(format!(
                "`pages` asks for {} pages: at most {PDF_PAGES_ASKED_MAX} are shown at once",
                last - first + 1
            ));
        }
        Ok(Self(first..=last))
    }
}

/// The answer that shows a document, or why there is none; reads on after the file's name.
pub(super) fn show(path: &Path, bytes: &[u8], wanted: Option<&Pages>) -> Result<Output, String> {
    if memmem::rfind(bytes, b"%%EOF").is_none() && bytes.len() as u64 <= PDF_SOURCE_BYTES_MAX {
        return Err("is a PDF that is damaged or cut off: its end is missing".to_owned());
    }
    match wanted {
        Some(wanted) => show_part(path, bytes, wanted),
        None => show_all(path, bytes),
    }
}

fn show_all(path: &Path, bytes: &[u8]) -> Result<Output, String> {
    let mb = PDF_BYTES_MAX / 1_000_000;
    let pages =
        Document::of(bytes).map_or_else(|_| pages::count(bytes).unwrap_or(0), |document| document.pages());
    let ask = format!(
        "ask for some of them with `pages`, at most {PDF_PAGES_ASKED_MAX} at once, such as \"1-{PDF_PAGES_MAX}\""
    );
    if pages > PDF_PAGES_MAX {
        return Err(format!(
            "is a PDF of {pages} pages; at most {PDF_PAGES_MAX} are shown without being named: {ask}"
        ));
    }
    if bytes.len() as u64 > PDF_BYTES_MAX {
        return Err(format!(
            "is a PDF of more than {mb} MB, too large to be shown as a whole ({pages} pages): {ask}"
        ));
    }
    let said = match pages {
        0 => "PDF document".to_owned(),
        1 => "PDF document, 1 page".to_owned(),
        pages => format!("PDF document, {pages} pages"),
    };
    let detail = json!({"originalSize": bytes.len(), "pages": pages});
    Ok(shown(path, &said, bytes, detail))
}

/// Some of its pages, as a document of their own.
fn show_part(path: &Path, bytes: &[u8], Pages(wanted): &Pages) -> Result<Output, String> {
    if bytes.len() as u64 > PDF_SOURCE_BYTES_MAX {
        let mb = PDF_SOURCE_BYTES_MAX / 1_000_000;
        return Err(format!("is a PDF of more than {mb} MB, too large to be taken apart here"));
    }
    let document = Document::of(bytes)?;
    let (total, first) = (document.pages(), *wanted.start());
    if first > total {
        return Err(format!("is a PDF of {total} pages: there is no page {first}"));
    }
    let last = total.min(*wanted.end());
    let part = document.part(&(first..=last))?;
    let said = match first == last {
        true => format!("PDF document, page {first} of {total}"),
        false => format!("PDF document, pages {first} to {last} of {total}"),
    };
    let detail = json!({"originalSize": bytes.len(), "pages": total, "firstPage": first, "lastPage": last});
    Ok(shown(path, &said, &part, detail))
}

fn shown(path: &Path, said: &str, document: &[u8], detail: serde_json::Value) -> Output {
    let base64 = STANDARD.encode(document);
    let mut file = json!({"filePath": path, "base64": base64});
    if let (Some(file), serde_json::Value::Object(more)) = (file.as_object_mut(), detail) {
        file.extend(more);
    }
    let mut output = Output::text(format!("{}: {said}.", path.display()))
        .with_detail(json!({"type": "pdf", "file": file}));
    output.content.push(ResultBlock::Document { base64 });
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_and_whole_documents_are_shown() {
        let document = |pages: usize| format!("%PDF-1.4\n{}%%EOF\n", "<</Type /Page>>\n".repeat(pages));
        let path = Path::new("/a.pdf");
        let shown = show(path, document(3).as_bytes(), None).unwrap();
        assert!(
            matches!(&shown.content[..], [ResultBlock::Text(text), ResultBlock::Document { .. }] if text.contains("3 pages"))
        );
        let long = show(path, document(11).as_bytes(), None).unwrap_err();
        assert!(long.contains("11 pages") && long.contains("`pages`"), "{long}");
        assert!(show(path, b"%PDF-1.7\n1 0 obj", None).unwrap_err().contains("cut off"));
    }

    /// A document whose pages have a text each, and share what stands above them.
    fn document(pages: usize, packed: bool) -> Vec<u8> {
        let mut objects = vec![(1, "<</Type/Catalog/Pages 2 0 R>>".to_owned())];
        let (low, high) = (pages / 2, pages);
        let kids = |from: usize, to: usize| {
            (from..to).map(|n| format!("{} 0 R", 10 + 2 * n)).collect::<Vec<_>>().join(" ")
        };
        objects.push((
            2,
            format!("<</Type/Pages/Count {pages}/Kids[3 0 R 4 0 R]/MediaBox[0 0 612 792]/Resources 5 0 R>>"),
        ));
        objects.push((3, format!("<</Type/Pages/Parent 2 0 R/Kids[{}]>>", kids(0, low))));
        objects.push((4, format!("<</Type/Pages/Parent 2 0 R/Rotate 90/Kids[{}]>>", kids(low, high))));
        objects.push((5, "<</Font<</F1 6 0 R>>>>".to_owned()));
        objects.push((6, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned()));
        for n in 0..pages {
            // The text in parentheses is no reference, and the link leads to another page.
            let page = format!(
                "<</Type/Page/Parent 3 0 R/Contents {} 0 R/X(9 0 R \\) endobj)/Next {} 0 R>>",
                11 + 2 * n,
                10 + 2 * ((n + 1) % pages)
            );
            objects.push((10 + 2 * n as u32, page));
        }
        let mut bytes = b"%PDF-1.5\n".to_vec();
        if packed {
            let (mut head, mut body) = (String::new(), String::new());
            for (number, value) in &objects {
                head += &format!("{number} {} ", body.len());
                body += &format!("{value}\n");
            }
            let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packer, (head.clone() + &body).as_bytes()).unwrap();
            let data = packer.finish().unwrap();
            bytes.extend(
                format!(
                    "900 0 obj\n<</Type/ObjStm/N {}/First {}/Filter/FlateDecode/Length {}>>\nstream\n",
                    objects.len(),
                    head.len(),
                    data.len()
                )
                .bytes(),
            );
            bytes.extend(data);
            bytes.extend(b"\nendstream\nendobj\n901 0 obj <</Type/XRef/Root 1 0 R/Length 0>> stream\n\nendstream endobj\n");
        } else {
            for (number, value) in &objects {
                bytes.extend(format!("{number} 0 obj\n{value}\nendobj\n").bytes());
            }
            bytes.extend(b"trailer\n<</Root 1 0 R>>\n");
        }
        for n in 0..pages {
            let text = format!("BT /F1 12 Tf (Page {}) Tj ET", n + 1);
            bytes.extend(
                format!(
                    "{} 0 obj <</Length {}>>\nstream\n{text}\nendstream\nendobj\n",
                    11 + 2 * n,
                    text.len()
                )
                .bytes(),
            );
        }
        bytes.extend(b"%%EOF\n");
        bytes
    }

    #[test]
    fn some_pages_are_a_document_of_their_own() {
        for packed in [false, true] {
            let bytes = document(30, packed);
            let whole = show(Path::new("/a.pdf"), &bytes, None).unwrap_err();
            assert!(whole.contains("30 pages"), "{whole}");
            let part = Document::of(&bytes).unwrap().part(&(14..=17)).unwrap();
            let again = Document::of(&part).unwrap();
            assert_eq!(again.pages(), 4);
            let text = String::from_utf8_lossy(&part);
            for n in 1..=30 {
                assert_eq!(text.contains(&format!("(Page {n})")), (14..=17).contains(&n), "{n}");
            }
            // What stood above is with each page now; a turn only with those that had it.
            assert_eq!(text.matches("/MediaBox [0 0 612 792]").count(), 4);
            assert_eq!(
                (text.matches("/Resources 5 0 R").count(), text.matches("/BaseFont/Helvetica").count()),
                (4, 1)
            );
            assert_eq!(text.matches("/Rotate 90").count(), 2);
            // The table of contents tells where everything is.
            let table = &text[text.rfind("\nxref\n").unwrap()..];
            let places = table.lines().filter(|line| line.ends_with(" n "));
            for place in places.map(|line| line[..10].parse::<usize>().unwrap()) {
                let line = String::from_utf8_lossy(&part[place..place + 12]);
                assert!(line.contains(" 0 obj"), "{line}");
            }
        }
    }

    #[test]
    fn pages_are_named_and_bounded() {
        let wanted = |text: &str| Pages::read(text).map(|Pages(pages)| pages);
        assert_eq!(wanted("3"), Ok(3..=3));
        assert_eq!(wanted(" 1 - 5 "), Ok(1..=5));
        assert_eq!(wanted("7-"), Ok(7..=26));
        for (text, why) in [
            ("0", "write one page"),
            ("5-3", "write one page"),
            ("a", "write one page"),
            ("1-21", "at most 20"),
            ("", "write one page"),
            ("-3", "write one page"),
        ] {
            assert!(wanted(text).unwrap_err().contains(why), "{text}");
        }
        let bytes = document(12, false);
        let ask = |text: &str| show(Path::new("/a.pdf"), &bytes, Some(&Pages::read(text).unwrap()));
        assert!(ask("13").unwrap_err().contains("12 pages"));
        assert!(ask("11-20").unwrap().words().contains("pages 11 to 12 of 12"));
        let locked = [&bytes[..], b"trailer <</Encrypt 9 0 R>>\n%%EOF"].concat();
        let pages = Pages::read("1").unwrap();
        assert!(show(Path::new("/a.pdf"), &locked, Some(&pages)).unwrap_err().contains("encrypted"));
    }

    #[test]
    fn nonsense_takes_no_time() {
        for piece in ["1 0 obj <<", "1 0 obj<<>>stream\n", "trailer<<", "1 0 obj (", "[", "1 0 obj <</A/B"] {
            let bytes = format!("%PDF-1.4\n{}%%EOF", piece.repeat(20_000));
            let began = std::time::Instant::now();
            assert!(Document::of(bytes.as_bytes()).is_err());
            assert!(began.elapsed().as_secs() < 10, "{piece}: {:?}", began.elapsed());
        }
    }

    proptest::proptest! {
        #[test]
        fn anything_is_looked_at_to_its_end(soup in "(<<|>>|\\[|\\]|\\(|\\)|/Type|/Page|/Kids|/Root|1 0 R|2 0 R|1 0 obj|2 0 obj|endobj|stream\n|endstream|trailer|%|<| ){0,40}") {
            let bytes = soup.into_bytes();
            if let Ok(document) = Document::of(&bytes) {
                let _ = document.part(&(1..=3));
            }
        }
    }
}
