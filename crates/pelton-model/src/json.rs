//! JSON as text: what serde does not do, or refuses to.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::{memchr_iter, memchr2, memchr3};

/// The escape that stands in for half a character.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// The same JSON on one line and without halves of surrogate pairs, which strict readers refuse.
///
/// Both repairs keep the length, so nothing is copied unless there is something to repair. Line breaks in valid
/// JSON are never inside a string.
pub(crate) fn tidy(json: Bytes) -> Bytes {
    // Most texts have none of the bytes that could need it.
    if memchr3(b'\\', b'\n', b'\r', &json).is_none() {
        return json;
    }
    let broken = memchr2(b'\n', b'\r', &json).is_some();
    let halves = lone_surrogates(&json);
    if !broken && halves.is_empty() {
        return json;
    }
    let mut json = Vec::from(json);
    for at in halves {
        json[at..at + REPLACEMENT.len()].copy_from_slice(REPLACEMENT);
    }
    if broken {
        for byte in &mut json {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    Bytes::from(json)
}

/// The same JSON without halves of surrogate pairs, which strict readers refuse: U+FFFD stands in for each.
pub fn without_halves(json: &[u8]) -> Cow<'_, [u8]> {
    let halves = lone_surrogates(json);
    if halves.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut json = json.to_vec();
    for at in halves {
        json[at..at + REPLACEMENT.len()].copy_from_slice(REPLACEMENT);
    }
    Cow::Owned(json)
}

/// Appends the text that a JSON string literal stands for. `literal` is valid JSON, quotes included; half a
/// surrogate pair becomes U+FFFD. A literal that is no string adds nothing.
pub(crate) fn unescape(literal: &str, text: &mut String) {
    let Some(mut rest) = inside(literal) else { return };
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = &rest.as_bytes()[at..];
        let (letter, length) = match escape.get(1) {
            Some(b'u') => code_point(escape),
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(&other) => (char::from(other), 2),
            None => (char::REPLACEMENT_CHARACTER, 1),
        };
        text.push(letter);
        rest = rest.get(at + length..).unwrap_or_default();
    }
    text.push_str(rest);
}

/// The text that a JSON string literal stands for.
pub(crate) fn text(literal: &str) -> String {
    let mut text = String::with_capacity(literal.len());
    unescape(literal, &mut text);
    text
}

/// The same, with not a byte more than it takes.
pub(crate) fn boxed_text(literal: &str) -> Box<str> {
    match inside(literal) {
        Some(plain) if !plain.contains('\\') => plain.into(),
        _ => text(literal).into(),
    }
}

/// A string literal without its quotes.
pub(crate) fn inside(literal: &str) -> Option<&str> {
    literal.trim().strip_prefix('"')?.strip_suffix('"')
}

/// The character at the front of `escape`, which begins with `\u`, and the length of its escape.
fn code_point(escape: &[u8]) -> (char, usize) {
    let Some(first) = code_unit(escape) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if let Some(letter) = char::from_u32(first) {
        return (letter, 6);
    }
    match code_unit(&escape[6..]) {
        Some(second) if is_high(first) && is_low(second) => {
            let joined = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// Where escapes of half a surrogate pair begin.
fn lone_surrogates(json: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut next = 0;
    for at in memchr_iter(b'\\', json) {
        // The second backslash of `\\`, or one that belongs to a pair already judged.
        if at < next {
            continue;
        }
        next = at + 2;
        let Some(first) = code_unit(&json[at..]).filter(|unit| is_high(*unit) || is_low(*unit)) else {
            continue;
        };
        next = at + 6;
        match code_unit(&json[next..]) {
            Some(second) if is_high(first) && is_low(second) => next += 6,
            _ => found.push(at),
        }
    }
    found
}

/// The number of a `\uXXXX` at the front.
fn code_unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}

fn is_high(unit: u32) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u32) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_tidy(json: &str, expected: &str) {
        assert_eq!(tidy(Bytes::copy_from_slice(json.as_bytes())), expected.as_bytes(), "{json}");
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        check_tidy(r#"{"a":"plain"}"#, r#"{"a":"plain"}"#);
        check_tidy(r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#);
        check_tidy(r#"{"a":"\uD83D"}"#, r#"{"a":"\ufffd"}"#);
        check_tidy(r#"{"a":"\ude00x"}"#, r#"{"a":"\ufffdx"}"#);
        check_tidy(r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#);
        check_tidy(r#"{"a":"\ud83d\n\ude00"}"#, r#"{"a":"\ufffd\n\ufffd"}"#);
        // An escaped backslash before a `u` is no escape of a character.
        check_tidy(r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#);
        check_tidy(r#"{"a":"\\\ud83d"}"#, r#"{"a":"\\\ufffd"}"#);
        check_tidy(r#"{"a":"\ud8"}"#, r#"{"a":"\ud8"}"#);
    }

    #[test]
    fn line_breaks_between_tokens_become_spaces() {
        check_tidy("{\n\"a\":\r\n1}", "{ \"a\":  1}");
    }

    #[test]
    fn literals_are_read() {
        for (literal, expected) in [
            (r#""""#, ""),
            (r#""a\"b\\c\/d""#, "a\"b\\c/d"),
            (r#""\b\f\n\r\t""#, "\u{8}\u{c}\n\r\t"),
            (r#""\u00e9\ud83d\ude00""#, "é😀"),
            (r#""\ud83d""#, "\u{FFFD}"),
            (r#""\ude00\ud83dx""#, "\u{FFFD}\u{FFFD}x"),
            ("null", ""),
            ("17", ""),
        ] {
            assert_eq!(text(literal), expected, "{literal}");
        }
    }

    proptest! {
        #[test]
        fn literals_are_read_as_serde_reads_them(expected: String) {
            let literal = serde_json::to_string(&expected).unwrap();
            prop_assert_eq!(text(&literal), expected.clone());
            let escaped: String = expected.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            prop_assert_eq!(text(&format!("\"{escaped}\"")), expected);
        }

        #[test]
        fn tidied_text_is_always_readable(units: Vec<u16>) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let tidied = tidy(Bytes::from(format!("\"{escaped}\"")));
            let read: String = serde_json::from_slice(&tidied).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }
    }
}
