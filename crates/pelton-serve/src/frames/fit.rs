//! Lines that readers can take: the longest texts of one that is too long are cut. Pure.

use serde_json::Value;

/// Texts are not cut below this many characters: what is too long even so consists of too many of them.
const TEXT_CHARS_MIN: usize = 256;

/// The same lines, each with at most so many bytes.
pub(super) fn made_to_fit(lines: Vec<u8>, bytes_max: usize) -> Vec<u8> {
    if lines.len() <= bytes_max {
        return lines;
    }
    let mut fitting = Vec::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        match line.len() <= bytes_max {
            true => fitting.extend_from_slice(line),
            false => fitting.extend(cut(line, bytes_max)),
        }
    }
    fitting
}

fn cut(line: &[u8], bytes_max: usize) -> Vec<u8> {
    // What is no JSON is none of ours.
    let Ok(mut json) = serde_json::from_slice::<Value>(line) else { return line.to_vec() };
    let mut chars_max = bytes_max / 2;
    loop {
        shorten(&mut json, chars_max);
        let mut text = json.to_string().into_bytes();
        if text.len() < bytes_max || chars_max <= TEXT_CHARS_MIN {
            text.push(b'\n');
            return text;
        }
        chars_max /= 2;
    }
}

fn shorten(json: &mut Value, chars_max: usize) {
    match json {
        Value::String(text) if text.len() > chars_max => *text = shortened(text, chars_max),
        Value::Array(values) => values.iter_mut().for_each(|value| shorten(value, chars_max)),
        // A picture that is cut is none.
        Value::Object(map) if is_media(map) && longest(map) > chars_max => {
            let kind = map.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
            map.clear();
            map.insert("type".to_owned(), Value::from("text"));
            map.insert("text".to_owned(), Value::from(format!("[{kind} too large to be shown here]")));
        }
        Value::Object(map) => map.values_mut().for_each(|value| shorten(value, chars_max)),
        _ => {}
    }
}

fn is_media(map: &serde_json::Map<String, Value>) -> bool {
    map.get("source").is_some_and(|source| source.get("data").is_some())
}

fn longest(map: &serde_json::Map<String, Value>) -> usize {
    map.get("source").and_then(|source| source.get("data")).and_then(Value::as_str).map_or(0, str::len)
}

fn shortened(text: &str, chars_max: usize) -> String {
    let mut end = chars_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… [{} bytes cut]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAX: usize = 4_096;

    fn fitted(json: &Value) -> Vec<u8> {
        made_to_fit(format!("{json}\n").into_bytes(), MAX)
    }

    #[test]
    fn what_fits_is_not_touched_and_what_does_not_is_cut_at_its_longest() {
        let small = json!({"type": "user", "text": "x".repeat(2_000)});
        assert_eq!(fitted(&small), format!("{small}\n").into_bytes());
        for long in [
            json!({"type": "user", "uuid": "u", "message": {"content": [{"type": "text", "text": "\u{1}ä".repeat(9_000)}]}}),
            json!({"type": "user", "uuid": "u", "a": ["y".repeat(3_000), "z".repeat(3_000)]}),
        ] {
            let line = fitted(&long);
            assert!(line.len() <= MAX && line.ends_with(b"\n"), "{}", line.len());
            let read: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!((&read["type"], &read["uuid"]), (&json!("user"), &json!("u")));
        }
    }

    #[test]
    fn a_picture_is_shown_whole_or_not_at_all() {
        let picture =
            json!({"content": [{"type": "image", "source": {"type": "base64", "data": "A".repeat(9_000)}}]});
        let read: Value = serde_json::from_slice(&fitted(&picture)).unwrap();
        assert_eq!(read["content"][0]["type"], "text");
    }

    #[test]
    fn of_several_lines_only_the_long_one_is_cut() {
        let (short, long) = (json!({"a": 1}).to_string(), json!({"b": "x".repeat(9_000)}).to_string());
        let lines = made_to_fit(format!("{short}\n{long}\n{short}\n").into_bytes(), MAX);
        let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(
            (lines.len(), lines[0], lines[2]),
            (3, format!("{short}\n").as_bytes(), format!("{short}\n").as_bytes())
        );
        assert!(lines[1].len() <= MAX);
    }
}
