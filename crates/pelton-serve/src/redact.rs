//! Keys in texts that are logged, by what they look like: nobody who sends a log to somebody should have to read it first.

use std::borrow::Cow;

/// What stands where a key was.
const REDACTED: &str = "[redacted]";

/// How well-known keys begin, and how many characters they have at least behind that.
const BEGINNINGS: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 16),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 30),
    ("SG.", 30),
    ("dop_v1_", 30),
    // Three parts in base64, of which the first is an object.
    ("eyJ", 30),
];

/// Words behind which a key stands.
const INTRODUCED: &[&str] = &["bearer ", "x-api-key: ", "authorization: "];

/// The same text without keys.
pub(crate) fn without_keys(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((at, length)) = first_key(rest) {
        kept.push_str(&rest[..at]);
        kept.push_str(REDACTED);
        rest = &rest[at + length..];
    }
    if kept.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// Where the first key is, and how long.
fn first_key(text: &str) -> Option<(usize, usize)> {
    let known = BEGINNINGS.iter().filter_map(|(begin, least)| {
        text.match_indices(begin).find_map(|(at, _)| {
            let starts_word = text[..at].chars().next_back().is_none_or(|c| !c.is_ascii_alphanumeric());
            let length = key_length(&text[at..]);
            (starts_word && length >= begin.len() + least).then_some((at, length))
        })
    });
    let lower = text.to_ascii_lowercase();
    let introduced = INTRODUCED.iter().filter_map(|word| {
        let at = lower.find(word)? + word.len();
        // What stands there already says that a key was there.
        let length = key_length(&text[at..]);
        (length >= 8).then_some((at, length))
    });
    known.chain(introduced).chain(private_key(text)).min()
}

/// A block that holds a private key, to its end or that of the text.
fn private_key(text: &str) -> Option<(usize, usize)> {
    const END: &str = "PRIVATE KEY-----";
    let at = text.find("-----BEGIN ")?;
    let named = text[at..].find(END).filter(|length| *length < 40)? + END.len();
    let closed = text[at + named..].find(END).map(|length| named + length + END.len());
    Some((at, closed.unwrap_or(text.len() - at)))
}

/// How far the characters go that keys are made of.
fn key_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.~+/=".contains(c))).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_and_words_are_left() {
        let check = |text: &str, expected: &str| assert_eq!(without_keys(text), expected);
        check(&format!("sk-ant-{} failed", "a1".repeat(12)), "[redacted] failed");
        check("token=ghp_abcdefghijklmnopqrstuvwxyz;", "token=[redacted];");
        check("AKIAIOSFODNN7EXAMPLE, AKIAIOSFODNN7EXAMPLE", "[redacted], [redacted]");
        check("Authorization: Bearer abc.def-123456", "Authorization: Bearer [redacted]");
        check("a -----BEGIN RSA PRIVATE KEY----- MIIE -----END RSA PRIVATE KEY----- b", "a [redacted] b");
        check("a -----BEGIN PRIVATE KEY----- MIIE", "a [redacted]");
        check("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[redacted]");
        for text in [
            "the task-list is done",
            "risk-based",
            "npm_config",
            "bearer of news",
            "sk-1",
            "größe ghp_kurz",
            "AKIA",
        ] {
            check(text, text);
        }
    }
}
