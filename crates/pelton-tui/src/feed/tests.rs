use super::*;

#[test]
fn lines_are_broken_between_words() {
    for (line, rows) in [
        ("", &[""][..]),
        ("short", &["short"]),
        ("files and code; nothing else", &["files and", "code;", "nothing", "else"]),
        // What is longer than a row is broken where it can be.
        ("see https://a.example/long/path", &["see https:", "//", "a.example/", "long/path"]),
        ("漢字漢字漢字漢字", &["漢字漢字漢", "字漢字"]),
    ] {
        assert_eq!(wrapped(line, 10), rows, "{line}");
    }
}
