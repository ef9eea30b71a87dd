//! Whatever is done by hand to whatever conversation, the rest can be sent, and all of it can be undone.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::auto::{Asked, AskedBlock, InPlace, Memory, Said, Sources};
use super::local;
use super::surgery::{Situation, Surgery};
use crate::history::tests::{any_entry, entry, image, legal, prompt, renamed, says, sent, summary_named};
use crate::history::{By, Edit, Entry, History, Kind, View};

fn any_surgery() -> impl Strategy<Value = Surgery> {
    let rounds = || (0usize..10, 0usize..10);
    prop_oneof![
        rounds().prop_map(|(first, last)| Surgery::Drop(first..=last)),
        rounds().prop_map(|(first, last)| Surgery::Keep(first..=last)),
        (0usize..10).prop_map(Surgery::KeepLast),
        (1usize..6).prop_map(|call| Surgery::Clear(call.to_string())),
        (0usize..3).prop_map(|kept| Surgery::Media { kept }),
    ]
}

fn with_pictures() -> impl Strategy<Value = Arc<Entry>> {
    let picture = || entry(Kind::Prompt { meta: false }, &json!([{"type": "text", "text": "look"}, image()]));
    prop_oneof![6 => any_entry(), 1 => Just(()).prop_map(move |()| picture())]
}

/// What would be sent, apart from thinking, which is bound to what stood before it.
fn said(view: &View) -> Vec<Value> {
    let mut view = view.clone();
    view.leave_out_thinking("test");
    let blocks = sent(&mut view).into_iter().flat_map(|message| match message["content"].clone() {
        Value::Array(blocks) => blocks,
        other => vec![other],
    });
    let unmarked = |mut block: Value| {
        block.as_object_mut().map(|block| block.remove("cache_control"));
        block
    };
    blocks.map(unmarked).collect()
}

proptest! {
    #[test]
    fn pit_C3_loop_C11_whatever_is_done_by_hand_the_rest_is_legal_and_it_can_be_undone(
        samples in prop::collection::vec(with_pictures(), 1..40),
        boundary in (0usize..40, 0usize..40),
        surgeries in prop::collection::vec(any_surgery(), 1..4),
    ) {
        let all: Vec<Arc<Entry>> = samples.iter().map(|sample| renamed(sample)).collect();
        let mut history = History::default();
        all.iter().for_each(|entry| _ = history.push(Arc::clone(entry)));
        // An earlier summary of a part of it.
        let summary = Uuid::from_u128(7 << 64);
        let (from, to) = (all[boundary.0 % all.len()].id, all[boundary.1 % all.len()].id);
        let mut summed_up = history.clone();
        summed_up.keep(summary_named(summary));
        let edit = Edit::Replace { from, to, by: By::Entry(summary) };
        if summed_up.edit(Uuid::from_u128(8 << 64), "autocompact", edit).is_some() {
            history = summed_up;
        }
        history.push(prompt("go on"));
        let whole = said(history.view());

        let mut made = Vec::new();
        for surgery in &surgeries {
            let view = history.view();
            let (outline, media, edits) = (view.outline(), view.media_places(), history.edits());
            let situation = Situation { outline: &outline, media: &media, edits: &edits };
            for edit in surgery.plan(&situation).unwrap_or_default() {
                let name = Uuid::from_u128(9 << 64 | made.len() as u128);
                if history.edit(name, "snip", edit).is_some() {
                    made.push(name);
                }
            }
            let mut view = history.view().clone();
            view.push(prompt("what now?"));
            prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
        }
        for (number, edit) in made.into_iter().rev().enumerate() {
            let name = Uuid::from_u128(10 << 64 | number as u128);
            let undone = history.edit(name, "undo", Edit::Undo { edit });
            prop_assert!(undone.is_some());
            let mut view = history.view().clone();
            view.push(prompt("what now?"));
            prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
        }
        prop_assert_eq!(said(history.view()), whole);
    }

    #[test]
    fn pit_C1_pit_C3_whatever_was_said_the_last_step_leaves_something_legal_with_the_newest_prompt(
        samples in prop::collection::vec(with_pictures(), 1..40),
        answers in prop::collection::vec(any_entry(), 0..6),
        keep in 0u64..400,
    ) {
        let mut history = History::default();
        samples.iter().for_each(|sample| _ = history.push(renamed(sample)));
        let before_prompt = history.view().len();
        history.push(prompt("the newest request"));
        answers.iter().for_each(|sample| _ = history.push(renamed(sample)));
        let view = history.view();
        let outline = view.outline();
        let Some(cut) = local::cut(&outline, view.tokens(), keep) else {
            prop_assert!(before_prompt == 0 || outline.len() == 1, "there is a place to cut before the prompt");
            return Ok(());
        };
        prop_assert!(0 < cut.kept && cut.kept < outline.len());
        let summary = Uuid::from_u128(7 << 64);
        history.keep(summary_named(summary));
        let edit = Edit::Replace { from: cut.from, to: cut.to, by: By::Entry(summary) };
        // A call that waits for its result cannot be taken away.
        prop_assume!(history.edit(Uuid::from_u128(8 << 64), "local", edit).is_some());
        let mut view = history.view().clone();
        prop_assert_eq!(view.outline()[0].id, summary, "nothing stands before it");
        view.push(prompt("what now?"));
        prop_assert_eq!(legal(&sent(&mut view)), Ok(()));
    }
}

#[test]
fn rounds_go_without_what_tells_of_others_and_what_nobody_has_answered() {
    let mut history = History::default();
    let talk: Vec<Arc<Entry>> =
        (1..=4).flat_map(|n| [prompt(&format!("q{n}")), says(&format!("a{n}"))]).collect();
    talk.iter().chain([&prompt("q5")]).for_each(|entry| _ = history.push(Arc::clone(entry)));
    let fold = Edit::Replace { from: talk[2].id, to: talk[3].id, by: By::Words("in short".into()) };
    history.edit(Uuid::from_u128(1), "collapse", fold).unwrap();
    let left = |words: &str| {
        let mut history = history.clone();
        let (outline, edits) = (history.view().outline(), history.edits());
        let situation = Situation { outline: &outline, media: &[], edits: &edits };
        let plan = words.parse::<Surgery>().unwrap().plan(&situation).unwrap();
        for (number, edit) in plan.into_iter().enumerate() {
            history.edit(Uuid::from_u128(2 + number as u128), "snip", edit).unwrap();
        }
        let texts = said(history.view()).into_iter().map(|block| block["text"].as_str().unwrap().to_owned());
        texts.map(|text| if text.len() > 9 { "-".to_owned() } else { text }).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left("drop 2"), "q1 a1 in short - q4 a4 q5");
    assert_eq!(left("drop 1"), "q1 - in short q3 a3 q4 a4 q5");
    assert_eq!(left("drop 3"), "q1 a1 in short q3 a3 - q5");
    assert_eq!(left("keep 2"), "q1 - in short q3 a3 - q5");
}

fn asked(id: u128, letter: &str) -> Asked {
    let words = json!({"type": "text", "text": letter.repeat(100)}).to_string();
    let blocks = [(true, words), (false, image().to_string())];
    let block = |(is_words, json): (bool, String)| AskedBlock { is_words, json: json.into() };
    Asked { id: Uuid::from_u128(id), blocks: blocks.map(block).to_vec(), short: None }
}

fn told(sources: &Sources) -> String {
    let said = |said: &Said| match said {
        Said::Words(text) => text.clone(),
        Said::Again(block) => String::from_utf8(block.to_vec()).unwrap(),
    };
    sources.told(InPlace::Note).0.iter().map(said).collect()
}

fn length(said: &Said) -> u64 {
    match said {
        Said::Words(text) => text.len() as u64,
        // As to models, the bytes of a picture are not what it costs.
        Said::Again(block) if block.windows(7).any(|bytes| bytes == b"\"image\"") => 10,
        Said::Again(block) => block.len() as u64,
    }
}

#[test]
fn where_there_is_no_room_the_least_needed_is_not_told_again_and_the_request_always() {
    let sources = Sources {
        surroundings: "here".to_owned(),
        memory: Some(Memory { text: "m".repeat(100), files: vec!["CLAUDE.md".into()] }),
        first_request: Some(asked(1, "f")),
        request: Some(Asked { short: Some("q".repeat(50)), ..asked(2, "r") }),
        todos: vec!["t".repeat(100)],
        files: vec![("a".to_owned(), "a".repeat(100)), ("b".to_owned(), "b".repeat(100))],
        skills: vec![("old".into(), "o".repeat(100)), ("new".into(), "n".repeat(100))],
        ..Sources::default()
    };
    let left = |most: u64| {
        let texts = told(&sources.clone().within(most, 0, length));
        let letters = "abonfmtr".chars().filter(|letter| texts.contains(&letter.to_string().repeat(100)));
        let image = if texts.contains("image/png") { "+" } else { "" };
        letters.collect::<String>() + image
    };
    assert_eq!(left(10_000), "abonfmtr+");
    let mut steps: Vec<String> = (0..200).rev().map(|most| left(most * 10)).collect();
    steps.dedup();
    let one_by_one = ["abonfmtr+", "aonfmtr+", "onfmtr+", "nfmtr+", "fmtr+", "mtr+", "mt+", "t+", "+", ""];
    assert_eq!(steps, one_by_one);
    assert!(told(&sources.clone().within(0, 0, length)).contains(&"q".repeat(50)), "its beginning and end");
    let whole = told(&sources.clone().within(0, 10_000, length));
    assert!(whole.contains(&"r".repeat(100)) && whole.contains(&"m".repeat(100)), "they fit: {whole}");
    let can_be_had_again = ["a", "b", "o", "n"].map(|letter| letter.repeat(100));
    assert!(!can_be_had_again.iter().any(|text| whole.contains(text)), "nothing else may take that room");
}

#[test]
fn pit_C4_a_request_stands_word_for_word_where_the_record_says() {
    let sources =
        Sources { first_request: Some(asked(1, "f")), request: Some(asked(2, "r")), ..Sources::default() };
    let (blocks, places) = sources.told(InPlace::Summary("s"));
    for (place, asked) in [(places.first_request, asked(1, "f")), (places.request, asked(2, "r"))] {
        let again: Vec<Said> = asked.blocks.into_iter().map(|block| Said::Again(block.json)).collect();
        assert_eq!(blocks[place.unwrap()], again);
    }
    let same = Sources { request: sources.first_request.clone(), ..sources };
    let (blocks, places) = same.told(InPlace::Summary("s"));
    assert_eq!(places.first_request, places.request, "one request is told once");
    assert_eq!(blocks.iter().filter(|said| matches!(said, Said::Again(_))).count(), 2);
}

#[test]
fn a_request_that_fills_the_context_again_is_told_in_part_and_its_pictures_go_last() {
    let long = Asked { short: Some("q".repeat(50)), ..asked(2, "r") };
    let mut sources =
        Sources { first_request: Some(asked(1, "f")), request: Some(long), ..Sources::default() };
    let mut seen = Vec::new();
    while sources.ask_less() {
        let told = told(&sources);
        let pictures = told.matches("image/png").count();
        seen.push((told.contains(&"r".repeat(100)), pictures));
    }
    assert_eq!(seen, [(true, 1), (false, 1), (false, 0)]);
    assert!(told(&sources).contains(&"q".repeat(50)) && told(&sources).contains(&"f".repeat(100)));
}
