//! Standard base64 with padding: strict when reading, as the API is, and small enough not to need a crate.

/// Reads base64; line breaks, a `data:` prefix or missing padding are refused.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(body.len() * 3 / 4);
    for group in body.chunks(4) {
        if group.len() == 1 {
            return None; // six bits are no byte
        }
        let mut bits = 0u32;
        for &symbol in group {
            bits = bits << 6 | u32::from(sextet(symbol)?);
        }
        let word = (bits << (6 * (4 - group.len()))).to_be_bytes();
        let (whole, rest) = word[1..].split_at(group.len() - 1);
        if rest.iter().any(|&byte| byte != 0) {
            return None; // bits after the last byte: two spellings of one value
        }
        bytes.extend_from_slice(whole);
    }
    Some(bytes)
}

/// Writes base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(word);
        for i in 0..4 {
            let symbol = SYMBOLS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() { char::from(symbol) } else { '=' });
        }
    }
    text
}

const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn sextet(symbol: u8) -> Option<u8> {
    match symbol {
        b'A'..=b'Z' => Some(symbol - b'A'),
        b'a'..=b'z' => Some(symbol - b'a' + 26),
        b'0'..=b'9' => Some(symbol - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reading_is_strict() {
        assert_eq!(decode("aGk="), Some(b"hi".to_vec()));
        assert_eq!(decode(""), Some(vec![]));
        for bad in ["aGk", "aG\nk", "data:image/png;base64,aGk=", "aG=k", "====", "a===", "aaaaa===", "aGl="]
        {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_survive_a_round_trip(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
