use super::*;

#[test]
fn addresses_have_one_form() {
    for (text, expected) in [
        ("https://Example.com", "https://example.com/"),
        (" http://example.com:80/a b ", "http://example.com/a%20b"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("https://evil.org\\@example.com/", "https://evil.org/@example.com/"),
        ("https://ex\u{e4}mple.com/", "https://xn--exmple-cua.com/"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    ] {
        assert_eq!(address(text).unwrap().as_str(), expected, "{text}");
    }
    for (text, why) in [
        ("example.com", "no address"),
        ("file:///etc/passwd", "only http"),
        ("javascript:alert(1)", "only http"),
        ("https://me:secret@example.com/", "password"),
        ("https://me@example.com/", "user name"),
        ("https://", "no address"),
        ("", "no address"),
    ] {
        let refused = address(text).unwrap_err();
        assert!(refused.contains(why), "{text}: {refused}");
        assert!(!refused.contains("secret"));
    }
    assert!(address(&format!("https://e.org/{}", "x".repeat(10_000))).unwrap_err().contains("8192"));
}
