//! The same reply under any framing, pace and compression carries the same events, and faults hit where they say.

use super::*;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use std::io::Read;

fn event(name: &str, data: &str) -> Cue {
    Cue::Event(Event { name: name.to_owned(), data: data.to_owned() })
}

fn three() -> Vec<Cue> {
    vec![event("a", r#"{"n":1}"#), event("b", r#"{"n":"zwölf 🎈"}"#), event("c", r#"{"n":3}"#)]
}

fn stage(cues: Vec<Cue>, staging: &Staging) -> Performance {
    stage_stream(cues, staging, &mut Dice::new(7, b"test"))
}

fn with(fault: Fault) -> Staging {
    Staging { faults: vec![fault], ..Staging::default() }
}

fn bytes(performance: &Performance) -> Vec<u8> {
    let write = |piece: &Piece| match piece {
        Piece::Write { bytes, .. } => bytes.to_vec(),
        _ => Vec::new(),
    };
    performance.pieces.iter().flat_map(write).collect()
}

/// A reader of event streams made from their definition alone: name and data of each finished event.
fn decode(stream: &[u8]) -> Vec<(String, String)> {
    // A character cut in half is a text that ends before it.
    let readable = std::str::from_utf8(stream).map_or_else(|error| error.valid_up_to(), str::len);
    let text = std::str::from_utf8(&stream[..readable]).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), None::<String>);
    for line in text.split_inclusive('\n') {
        let Some(line) = line.strip_suffix('\n') else { break };
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" if !line.is_empty() => name = value.to_owned(),
            "data" => data = Some(value.to_owned()),
            "" if line.is_empty() => {
                if let Some(data) = data.take() {
                    events.push((std::mem::take(&mut name), data));
                }
            }
            _ => {}
        }
    }
    events
}

#[test]
fn one_event_is_one_write() {
    let performance = stage(three(), &Staging::default());
    assert_eq!(
        bytes(&performance),
        "event: a\ndata: {\"n\":1}\n\nevent: b\ndata: {\"n\":\"zwölf 🎈\"}\n\nevent: c\ndata: {\"n\":3}\n\n"
            .as_bytes()
    );
    assert_eq!(performance.pieces.len(), 3);
    assert_eq!(performance.ending, Ending::Complete);
}

#[test]
fn one_byte_writes_cut_characters_in_half() {
    let staging = Staging { pace: Pace::chunk_bytes(1), ..Staging::default() };
    let performance = stage(three(), &staging);
    let halves = performance.pieces.iter().filter(|piece| match piece {
        Piece::Write { bytes, .. } => std::str::from_utf8(bytes).is_err(),
        _ => false,
    });
    // Two bytes of ö, four of the balloon.
    assert_eq!(halves.count(), 6);
}

#[test]
fn delays_stand_between_writes_only() {
    let pace = Pace::chunk_bytes(1000).delay(Duration::from_millis(5));
    let mut cues = three();
    cues.insert(1, Cue::Gate("g".to_owned()));
    let pieces = stage(cues, &Staging { pace, ..Staging::default() }).pieces;
    assert!(matches!(
        pieces.as_slice(),
        [Piece::Write { events_done: 1, .. }, Piece::Gate(_), Piece::Write { events_done: 3, .. }]
    ));
    let pace = Pace::default().delay(Duration::from_millis(5));
    let pieces = stage(three(), &Staging { pace, ..Staging::default() }).pieces;
    let waits: Vec<bool> = pieces.iter().map(|piece| matches!(piece, Piece::Wait(_))).collect();
    assert_eq!(waits, [false, true, false, true, false]);
}

#[test]
fn jitter_stays_within_its_bound_and_follows_the_seed() {
    let pace = Pace { chunk: Chunk::Bytes(1), jitter: Duration::from_millis(3), ..Pace::default() };
    let staging = Staging { pace, ..Staging::default() };
    let pieces = stage(three(), &staging).pieces;
    let waits: Vec<Duration> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Wait(wait) => Some(*wait),
            _ => None,
        })
        .collect();
    assert!(waits.iter().all(|wait| *wait <= Duration::from_millis(3)));
    assert!(waits.iter().any(|wait| *wait != waits[0]), "all waits are alike: {waits:?}");
    assert_eq!(pieces, stage(three(), &staging).pieces);
}

#[test]
fn an_end_after_events_drops_the_rest_and_what_stands_before_it() {
    let mut cues = three();
    cues.insert(1, Cue::Gate("never reached".to_owned()));
    for (fault, ending) in [
        (Fault::cut_after_events(1), Ending::Cut),
        (Fault::reset_after_events(1), Ending::Reset),
        (Fault::stall_after_events(1), Ending::Stalled),
        (Fault::end_after_events(1), Ending::EndedEarly),
    ] {
        let performance = stage(cues.clone(), &with(fault));
        assert_eq!(decode(&bytes(&performance)), [("a".to_owned(), r#"{"n":1}"#.to_owned())]);
        assert_eq!((performance.pieces.len(), performance.events.len()), (1, 1));
        assert_eq!(performance.ending, ending);
    }
}

#[test]
fn an_end_beyond_the_last_event_still_happens() {
    let performance = stage(three(), &with(Fault::cut_after_events(99)));
    assert_eq!((performance.events.len(), performance.ending), (3, Ending::Cut));
    for (fault, ending) in [
        (Fault::end_after_events(3), Ending::Complete),
        (Fault::Ends(EarlyEnd::End, Place::Bytes(9999)), Ending::Complete),
        (Fault::Ends(EarlyEnd::End, Place::Bytes(5)), Ending::EndedEarly),
    ] {
        assert_eq!(stage(three(), &with(fault)).ending, ending, "{fault:?}");
    }
}

#[test]
fn an_end_after_bytes_counts_bytes_on_the_wire() {
    let whole = bytes(&stage(three(), &Staging::default()));
    for count in 0..=whole.len() {
        let performance = stage(three(), &with(Fault::cut_after_bytes(count)));
        assert_eq!(bytes(&performance), whole[..count]);
        assert_eq!(performance.ending, Ending::Cut);
        let done = performance.pieces.iter().rev().find_map(|piece| match piece {
            Piece::Write { events_done, .. } => Some(*events_done),
            _ => None,
        });
        assert_eq!(done.unwrap_or(0), decode(&whole[..count]).len(), "events after {count} bytes");
    }
}

#[test]
fn a_malformed_event_is_broken_and_the_others_are_not() {
    for number in 1..=3 {
        let events = decode(&bytes(&stage(three(), &with(Fault::MalformedJsonAtEvent(number)))));
        let broken: Vec<usize> = (1..)
            .zip(&events)
            .filter(|(_, (_, data))| serde_json::from_str::<serde_json::Value>(data).is_err())
            .map(|(number, _)| number)
            .collect();
        assert_eq!((events.len(), broken), (3, vec![number]));
    }
}

#[test]
fn before_the_headers_there_is_nothing() {
    let fault = Fault::Ends(EarlyEnd::Reset, Place::BeforeHeaders);
    for performance in
        [stage(three(), &with(fault)), stage_body(Vec::new(), b"{}", &with(fault), &mut Dice::new(0, b""))]
    {
        assert_eq!((performance.headers, performance.pieces.len()), (false, 0));
        assert_eq!(performance.ending, Ending::Reset);
    }
}

#[test]
fn a_body_announces_its_whole_length_unless_it_ends_properly() {
    let staged = |fault| stage_body(Vec::new(), b"0123456789", &with(fault), &mut Dice::new(0, b""));
    let cut = staged(Fault::cut_after_bytes(4));
    assert_eq!((bytes(&cut).as_slice(), cut.length), (&b"0123"[..], 10));
    let ended = staged(Fault::Ends(EarlyEnd::End, Place::Bytes(4)));
    assert_eq!((bytes(&ended).as_slice(), ended.length), (&b"0123"[..], 4));
    let empty = staged(Fault::empty_stream());
    assert_eq!((bytes(&empty).as_slice(), empty.length, empty.ending), (&b""[..], 0, Ending::EndedEarly));
}

#[test]
fn a_compressed_stream_holds_back_no_event_and_has_its_checksum_only_at_a_proper_end() {
    let staging = Staging { gzip: true, ..Staging::default() };
    let performance = stage(three(), &staging);
    let mut encoded = Vec::new();
    for (number, piece) in (1..).zip(&performance.pieces[..3]) {
        let Piece::Write { bytes, .. } = piece else { panic!("{piece:?}") };
        encoded.extend_from_slice(bytes);
        let mut plain = Vec::new();
        // The end is missing, which is an error; what came so far is all there nevertheless.
        GzDecoder::new(&encoded[..]).read_to_end(&mut plain).unwrap_err();
        assert_eq!(decode(&plain).len(), number);
    }
    let mut plain = Vec::new();
    GzDecoder::new(&bytes(&performance)[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, bytes(&stage(three(), &Staging::default())));
}

#[test]
fn mixed_line_ends_never_melt_into_one() {
    for comments in 0..4 {
        let mut cues = vec![Cue::Comment("c".to_owned()); comments];
        cues.extend(three());
        let staging = Staging { line_end: LineEnd::Mixed, ..Staging::default() };
        assert_eq!(decode(&bytes(&stage(cues, &staging))).len(), 3, "{comments} comments before");
    }
}

fn any_cue() -> impl Strategy<Value = Cue> {
    prop_oneof![
        6 => ("[a-z_]{1,8}", "[^\r\n]{0,40}").prop_map(|(name, data)| event(&name, &data)),
        1 => "[a-z ]{0,9}".prop_map(Cue::Comment),
        1 => (0_u64..5).prop_map(|wait| Cue::Wait(Duration::from_millis(wait))),
        1 => "[a-z]{1,3}".prop_map(Cue::Gate),
    ]
}

fn any_staging() -> impl Strategy<Value = Staging> {
    let chunk = prop_oneof![Just(Chunk::Event), (1_usize..90).prop_map(Chunk::Bytes), Just(Chunk::Random)];
    let line_end =
        prop_oneof![Just(LineEnd::Lf), Just(LineEnd::CrLf), Just(LineEnd::Cr), Just(LineEnd::Mixed)];
    (chunk, 0_u64..3, line_end, any::<bool>(), any::<bool>()).prop_map(
        |(chunk, delay, line_end, bom, gzip)| {
            let pace = Pace { chunk, delay: Duration::from_millis(delay), jitter: Duration::ZERO };
            Staging { pace, line_end, bom, gzip, ..Staging::default() }
        },
    )
}

proptest! {
    #[test]
    fn any_reply_under_any_staging_decodes_to_the_same_events(
        cues in proptest::collection::vec(any_cue(), 0..12),
        staging in any_staging(),
        seed: u64,
    ) {
        let said: Vec<(String, String)> = cues.iter().filter_map(|cue| match cue {
            Cue::Event(event) => Some((event.name.clone(), event.data.clone())),
            _ => None,
        }).collect();
        let performance = stage_stream(cues, &staging, &mut Dice::new(seed, b""));
        let mut plain = bytes(&performance);
        if staging.gzip {
            let encoded = std::mem::take(&mut plain);
            GzDecoder::new(&encoded[..]).read_to_end(&mut plain).unwrap();
        }
        prop_assert_eq!(decode(&plain), said);
    }

    #[test]
    fn pace_changes_no_byte(
        cues in proptest::collection::vec(any_cue(), 0..12),
        staging in any_staging(),
        seed: u64,
    ) {
        let unpaced = Staging { pace: Pace::default(), ..staging.clone() };
        let paced = stage_stream(cues.clone(), &staging, &mut Dice::new(seed, b""));
        let plain = stage_stream(cues, &unpaced, &mut Dice::new(seed, b""));
        prop_assert_eq!(bytes(&paced), bytes(&plain));
        let waits = |performance: &Performance| performance.pieces.iter()
            .filter(|piece| matches!(piece, Piece::Gate(_))).count();
        prop_assert_eq!(waits(&paced), waits(&plain));
    }

    #[test]
    fn a_cut_keeps_a_prefix_and_counts_only_whole_events(
        cues in proptest::collection::vec(any_cue(), 1..12),
        staging in any_staging(),
        count in 0_usize..400,
    ) {
        let cut = Staging { faults: vec![Fault::cut_after_bytes(count)], gzip: false, ..staging.clone() };
        let whole = bytes(&stage(cues.clone(), &Staging { gzip: false, ..staging }));
        let performance = stage(cues, &cut);
        let kept = bytes(&performance);
        prop_assert_eq!(&kept[..], &whole[..count.min(whole.len())]);
        prop_assert!(super::events_done(&performance.pieces) <= decode(&kept).len());
    }
}
