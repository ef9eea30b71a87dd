use proptest::prelude::*;

use super::*;

/// All events of a stream that comes in these chunks.
fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<(String, String)>, TooLong> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(event) = decoder.next_event()? {
            events.push(event);
        }
    }
    events.extend(decoder.finish());
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok(events.iter().map(|event| (text(&event.name), text(&event.data))).collect())
}

/// The same whether it comes at once, byte by byte, or in two parts cut anywhere.
fn check(stream: &str, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(name, data)| (name.to_string(), data.to_string())).collect();
    let bytes = stream.as_bytes();
    assert_eq!(decode([bytes]).unwrap(), expected, "{stream:?}");
    assert_eq!(decode(bytes.chunks(1)).unwrap(), expected, "{stream:?} byte by byte");
    for cut in 0..bytes.len() {
        assert_eq!(decode([&bytes[..cut], &bytes[cut..]]).unwrap(), expected, "{stream:?} cut at {cut}");
    }
}

#[test]
fn framing_of_all_kinds_is_read() {
    check("", &[]);
    check("data: a\n\n", &[("", "a")]);
    check("event: x\ndata: a\n\ndata: b\n\n", &[("x", "a"), ("", "b")]);
    check("event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", &[("x", "a"), ("", "b")]);
    check("event: x\rdata: a\r\rdata: b\r\r", &[("x", "a"), ("", "b")]);
    check("data: a\r\n\ndata: b\n\r\n", &[("", "a"), ("", "b")]);
    check("data:a\ndata:  b\n\n", &[("", "a\n b")]);
    check("data: a\ndata\ndata: c\n\n", &[("", "a\n\nc")]);
    check("data\n\n", &[("", "")]);
    check("\u{FEFF}data: a\n\n", &[("", "a")]);
    check("\u{FEFF}\n\u{FEFF}data: a\n\ndata: b\n\n", &[("", "b")]);
    check(": only a comment\n\n", &[]);
    check(": OPENROUTER PROCESSING\n\ndata: a\n\n:\n\n", &[("", "a")]);
    check("id: 7\nretry: 100\ndata: a\n\n", &[("", "a")]);
    check("database: no\ndata: a\n\n", &[("", "a")]);
    check("event: alone\n\ndata: a\n\n", &[("", "a")]);
    check("data: without its blank line\n", &[("", "without its blank line")]);
    check("data: without any line end", &[("", "without any line end")]);
    check("\n\n\n\ndata: a\n\n\n\n", &[("", "a")]);
    check("data: 😀\n\n", &[("", "😀")]);
}

#[test]
fn an_event_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"event: x\ndata: {\"a\":1}\n\n");
    let mut decoder = Decoder::default();
    decoder.push(chunk.clone());
    let event = decoder.next_event().unwrap().unwrap();
    assert!(chunk.as_ptr_range().contains(&event.data.as_ptr()));
}

#[test]
fn an_event_has_a_limit() {
    let block = vec![b'x'; 1024 * 1024];
    let endless_line = std::iter::once(&b"data: "[..]).chain(std::iter::repeat_n(&block[..], 33));
    assert_eq!(decode(endless_line), Err(TooLong));
    let line = [b"data: ", &block[..], b"\n"].concat();
    assert_eq!(decode(std::iter::repeat_n(&line[..], 33)), Err(TooLong));
    let event = [&line[..], b"\n"].concat();
    assert_eq!(decode(std::iter::repeat_n(&event[..], 40)).unwrap().len(), 40);
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "(data|event|id|:|data:|event:|: )[ a-z{}\u{e9}\u{1F600}]{0,6}",
        Just(String::new()),
        "[a-z:\u{FEFF} ]{0,5}"
    ];
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    proptest::collection::vec((line, end).prop_map(|(line, end)| format!("{line}{end}")), 0..20)
        .prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_events(stream in lines(), cuts: Vec<prop::sample::Index>) {
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(decode(pieces).unwrap(), decode([bytes]).unwrap());
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        prop_assert!(decode(bytes.chunks(3)).is_ok());
    }
}
