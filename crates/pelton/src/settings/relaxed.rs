//! JSON as people write it: with comments, and a comma behind the last item.

/// The same text with blanks in place of comments and trailing commas, so that every other byte stays where it was
/// and errors point to the right line.
pub(super) fn strict(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    // A mark of the byte order is no part of the text.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes[..3].fill(b' ');
    }
    let mut at = 0;
    // The last comma with nothing but blanks and comments behind it.
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_text(&bytes, at);
                comma = None;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let end = end_of_comment(&bytes, at);
                for byte in &mut bytes[at..end] {
                    if !matches!(*byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
                at = end;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    // Only whole characters were replaced: a comment ends at an ASCII byte or at the end of the text.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Behind the quotation mark that ends the text beginning at `start`.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start + 2..];
    let length = if bytes[start + 1] == b'/' {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map(|at| at + 2)
    };
    length.map_or(bytes.len(), |length| start + 2 + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::strict;

    #[test]
    fn comments_and_trailing_commas_are_passed_over_and_texts_are_not() {
        let cases = [
            ("{\"a\": 1, // one\n \"b\": [1, 2,], /* two, */ }", r#"{"a":1,"b":[1,2]}"#),
            (r#"{"u": "https://x/*y*/", "q": "\"//\\", }"#, r#"{"u":"https://x/*y*/","q":"\"//\\"}"#),
            ("\u{feff}{} // the end: ß", "{}"),
            ("[1, /* a */ // b\n ]", "[1]"),
        ];
        for (text, meant) in cases {
            let value: Value = serde_json::from_str(&strict(text)).unwrap();
            assert_eq!(value.to_string(), meant, "{text}");
            assert_eq!(strict(text).len(), text.len());
        }
        for text in ["[1,,]", "{,}x", "{\"a\": /* }", "[1 / 2]"] {
            assert!(serde_json::from_str::<Value>(&strict(text)).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_length_and_its_lines(text in any::<String>()) {
            let strict = strict(&text);
            prop_assert_eq!(strict.len(), text.len());
            prop_assert_eq!(strict.matches('\n').count(), text.matches('\n').count());
        }

        #[test]
        fn what_was_strict_stays_as_it_was(words in prop::collection::vec(any::<String>(), 0..6)) {
            let text = serde_json::to_string(&words).unwrap();
            prop_assert_eq!(strict(&text), text);
        }
    }
}
