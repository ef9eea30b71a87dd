//! What the bytes of a page are: a page to be read, another text, or something for programs. Pure.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use super::markdown;
use crate::tools::text;

/// Bytes at the beginning of a page in which it may say how it is written.
const CHARSET_SOUGHT_BYTES: usize = 2_048;

/// What came.
#[derive(Debug)]
pub(super) struct Body {
    /// What the server calls it, with what it says about characters.
    pub media_type: String,
    pub content: Vec<u8>,
    /// There was more.
    pub is_cut: bool,
}

/// What it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text { title: String, text: String, is_cut: bool },
    Binary { media_type: String, content: Vec<u8>, is_cut: bool },
}

/// Reads what was found at an address.
pub(super) fn read(body: Body, found_at: &Url) -> Content {
    let Body { media_type, content, is_cut } = body;
    let (kind, charset) = parted(&media_type);
    if !is_text(&kind, charset.as_deref(), &content) {
        return Content::Binary { media_type: kind, content, is_cut };
    }
    let is_page = match kind.as_str() {
        "text/html" | "application/xhtml+xml" => true,
        // Nobody said what it is.
        "" | "application/octet-stream" => looks_like_a_page(&content),
        _ => false,
    };
    let text = decoded(&content, charset.as_deref(), is_page);
    if !is_page {
        return Content::Text { title: String::new(), text: text.into_owned(), is_cut };
    }
    let page = markdown::of(&text, found_at);
    Content::Text { title: page.title, text: page.markdown, is_cut: is_cut || page.is_cut }
}

/// What a server calls it: the kind, and the characters it is written in.
fn parted(media_type: &str) -> (String, Option<String>) {
    let mut parts = media_type.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (kind, charset)
}

fn is_text(kind: &str, charset: Option<&str>, content: &[u8]) -> bool {
    let is_wide = charset.is_some_and(|charset| charset.to_ascii_lowercase().starts_with("utf-16"));
    let head = &content[..content.len().min(text::SNIFFED_BYTES)];
    let looks_like_text = || is_wide || content.is_empty() || text::Encoding::sniff(head).is_some();
    let said = kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(
            kind,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-javascript"
                | "application/ecmascript"
                | "application/typescript"
                | "application/x-ndjson"
                | "application/jsonl"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/graphql"
                | "application/sql"
                | "application/x-sh"
                | "application/x-httpd-php"
                | "application/x-www-form-urlencoded"
        );
    let unsaid =
        matches!(kind, "" | "application/octet-stream" | "binary/octet-stream" | "application/x-unknown");
    (said || unsaid) && looks_like_text()
}

fn looks_like_a_page(content: &[u8]) -> bool {
    let head =
        String::from_utf8_lossy(&content[..content.len().min(CHARSET_SOUGHT_BYTES)]).to_ascii_lowercase();
    let head = head.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

fn decoded<'a>(content: &'a [u8], charset: Option<&str>, is_page: bool) -> Cow<'a, str> {
    let said = || charset.and_then(|charset| Encoding::for_label(charset.as_bytes()));
    let written = || is_page.then(|| charset_in(content)).flatten();
    // What the bytes begin with is above what anybody says about them.
    let encoding = Encoding::for_bom(content).map(|(encoding, _)| encoding).or_else(said).or_else(written);
    let encoding = encoding.unwrap_or_else(|| match std::str::from_utf8(content) {
        Ok(_) => UTF_8,
        // The last character may have been cut.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => {
            let mut guess = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
            guess.feed(content, true);
            guess.guess(None, chardetng::Utf8Detection::Allow)
        }
    });
    encoding.decode_with_bom_removal(content).0
}

/// How a page says it is written.
fn charset_in(content: &[u8]) -> Option<&'static Encoding> {
    let head =
        String::from_utf8_lossy(&content[..content.len().min(CHARSET_SOUGHT_BYTES)]).to_ascii_lowercase();
    let mut rest = head.as_str();
    while let Some(at) = rest.find("<meta") {
        rest = &rest[at + 5..];
        let tag = rest.split('>').next().unwrap_or_default();
        let said = tag.find("charset").map(|at| tag[at + 7..].trim_start());
        let value = said
            .and_then(|said| said.strip_prefix('='))
            .map(|value| value.trim_start().trim_start_matches(['"', '\'']));
        let label = value.and_then(|value| value.split(['"', '\'', ';', ' ', '/']).next());
        if let Some(encoding) = label.and_then(|label| Encoding::for_label(label.as_bytes())) {
            // A page that can be read this far is not written in two bytes a character.
            return Some(encoding.output_encoding());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(media_type: &str, content: &[u8]) -> String {
        let body = Body { media_type: media_type.to_owned(), content: content.to_vec(), is_cut: false };
        match read(body, &Url::parse("https://e.org/").unwrap()) {
            Content::Text { text, .. } => text,
            Content::Binary { media_type, .. } => format!("binary {media_type}"),
        }
    }

    #[test]
    fn pages_are_read_in_the_characters_they_are_written_in() {
        for (media_type, content, expected) in [
            ("text/html; charset=ISO-8859-1", &b"<p>gr\xfc\xdfe"[..], "grüße"),
            ("text/html;charset=\"windows-1251\"", b"<p>\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
            ("text/html", b"<meta charset=shift_jis><p>\x93\xfa\x96\x7b", "日本"),
            (
                "text/html",
                b"<META http-equiv=content-type content='text/html; charset=euc-kr'><p>\xc7\xd1",
                "한",
            ),
            ("text/html; charset=utf-8", b"\xff\xfe<\0p\0>\0x\0", "x"),
            ("text/plain; charset=utf-16be", b"\0h\0i", "hi"),
            ("text/plain; charset=nonsense", "für".as_bytes(), "für"),
            ("text/html; charset=utf-8", b"<p>a\xffb", "a\u{fffd}b"),
            ("text/plain", b"caf\xe9 au lait", "café au lait"),
            ("application/json", b"{\"a\": \"<b>\"}", "{\"a\": \"<b>\"}"),
            ("", b" <!DOCTYPE html><h1>x", "# x"),
            ("", b"plain", "plain"),
            ("image/svg+xml", b"<svg/>", "<svg/>"),
            ("application/pdf", b"%PDF-1.7 text", "binary application/pdf"),
            ("text/plain", b"a\0b\0\x01\x02", "binary text/plain"),
            ("application/octet-stream", b"\x7fELF\0\0\0", "binary application/octet-stream"),
            ("text/plain", b"", ""),
        ] {
            assert_eq!(check(media_type, content), expected, "{media_type}");
        }
    }
}
