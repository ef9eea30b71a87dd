//! What was counted in an earlier process: by the record of ours, or by answers that nobody else recorded anything of.

use super::*;

/// The first question and its answer, which was counted so, and a question behind it.
fn asked_again(counted: u64) -> View {
    let mut said = vec![prompt(&"word ".repeat(4_000))];
    let usage = Usage { input_tokens: counted, ..Usage::default() };
    for words in ["One. ".repeat(2_000), "Two. ".repeat(2_000)] {
        let origin =
            Origin { message_id: "msg".into(), model: "m".into(), usage: usage.clone(), request_id: None };
        let kind = Kind::Assistant { piece: Piece::Text, origin: Arc::new(origin) };
        said.push(entry(kind, &json!([{"type": "text", "text": words}])));
    }
    said.push(prompt(&"And more? ".repeat(1_000)));
    view_of(&said)
}

#[test]
fn what_an_answer_counted_is_what_stood_before_it_and_the_rest_comes_on_top() {
    let guessed = asked_again(0).tokens();
    let before = view_of(&[prompt(&"word ".repeat(4_000))]).tokens();
    let after = guessed - before;
    for (counted, expected) in [
        (before + 3_000, before + 3_000 + after),
        // What stood in front may be a lot. What is far beside all that there is was counted by somebody else's rules.
        (before + 200_000, before + 200_000 + after),
        (before * 100 + 1_000_000, guessed),
        (before / 5, guessed),
    ] {
        let mut view = asked_again(counted);
        view.recall_count();
        let tokens = view.tokens();
        assert!(tokens.abs_diff(expected) <= expected / 50, "{counted}: {tokens} instead of {expected}");
        assert_eq!(view.counted_tokens(), 0, "nobody has counted all of it");
    }
}

#[test]
fn what_was_recorded_holds_for_what_stood_in_front_of_it() {
    let said = long_talk(4);
    let mut view = view_of(&said);
    view.set_overhead(40_000);
    view.counted(&Usage { input_tokens: 13_000, ..Usage::default() });
    let recalled = |overhead: usize| {
        let mut again = view_of(&said);
        again.set_overhead(overhead);
        again.recall(&view.count_facts().unwrap());
        assert_eq!(again.counted_tokens(), 0, "it may be sent in another way now");
        again.tokens()
    };
    assert_eq!(recalled(40_000), 13_000);
    let (less, more) = (recalled(20_000), recalled(80_000));
    assert!(less < 12_000 && more > 15_000, "{less} {more}");
}
