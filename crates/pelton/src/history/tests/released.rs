//! What the model is not sent leaves memory, and nobody who goes on notices.

use super::super::log::Stays;
use super::*;

fn said_so(said: &[Arc<Entry>]) -> History {
    let mut history = History::default();
    said.iter().for_each(|entry| _ = history.push(Arc::clone(entry)));
    history
}

fn bytes_in(history: &History) -> usize {
    let bytes =
        |entry: &Arc<Entry>| entry.json.len() + entry.detail.as_ref().map_or(0, |detail| detail.len());
    history.entries().iter().map(bytes).sum()
}

#[test]
fn what_is_released_is_what_nobody_sends() {
    let said = long_talk(6);
    let mut history = said_so(&said);
    history.edit(Uuid::from_u128(9), "test", replace(&said[1], &said[4])).unwrap();
    let summary = prompt("in short");
    history.keep(Arc::clone(&summary));
    let edit = Edit::Replace { from: said[0].id, to: said[16].id, by: By::Entry(summary.id) };
    history.edit(Uuid::from_u128(1), "test", edit).unwrap();
    let sent = outline(&mut history.view().clone());
    history.release();
    assert_eq!(
        history.all_edits().len(),
        1,
        "the one that put the summary there; of the one before nothing is left"
    );
    assert_eq!(history.entries().len(), 7, "two rounds of four, less the thoughts, and the summary");
    assert_eq!(outline(&mut history.view().clone()), sent);
    assert_eq!(history.edit(Uuid::from_u128(2), "undo", Edit::Undo { edit: Uuid::from_u128(1) }), None);
}

#[test]
fn words_of_cleared_results_and_of_what_was_folded_are_not_kept() {
    let long = "line\n".repeat(10_000);
    let mut said = vec![prompt("the task")];
    for round in 0..6 {
        let id = round.to_string();
        let result =
            json!([{"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": long}]}]);
        let kind = Kind::ToolResult { call: id.as_str().into(), is_error: false };
        let result = Entry::clone(&entry(kind, &result))
            .with_detail(Some(Bytes::from(json!({"stdout": long}).to_string())));
        said.extend([calls(&id), Arc::new(result)]);
    }
    let mut history = said_so(&said);
    let one_round = bytes_in(&history) / 6;
    history.edit(Uuid::from_u128(1), "test", Edit::Clear { calls: vec!["0".into(), "1".into()] }).unwrap();
    history.release_unsent();
    let is_near = |history: &History, rounds: usize| {
        let (kept, wanted) = (bytes_in(history), rounds * one_round);
        assert!(kept.abs_diff(wanted) < one_round / 10, "{kept} bytes instead of about {wanted}");
    };
    is_near(&history, 4);
    let fold = Edit::Replace { from: said[5].id, to: said[8].id, by: By::Words("in short".into()) };
    history.edit(Uuid::from_u128(2), "test", fold).unwrap();
    history.release_unsent();
    is_near(&history, 2);
    assert_eq!(history.edits().len(), 2, "what can be undone is still known");

    // Where the fold begins is still known: what is read to go on begins there, not at the fold's own place.
    let summary = prompt("all in short");
    history.keep(Arc::clone(&summary));
    let edit = Edit::Replace { from: said[0].id, to: said[4].id, by: By::Entry(summary.id) };
    history.edit(Uuid::from_u128(3), "test", edit).unwrap();
    assert_eq!(history.stays_behind(summary.id), Stays::From(said[5].id));
    history.release();
    assert_eq!(history.stays_behind(summary.id), Stays::From(said[5].id), "for the summary after this one");
    is_near(&history, 2);
}

proptest! {
    #[test]
    fn a_conversation_on_the_disk_goes_on_as_one_in_memory(
        samples in prop::collection::vec(any_entry(), 1..40),
        cuts in prop::collection::vec((0usize..40, 0usize..40, 0usize..6), 1..8),
    ) {
        let said: Vec<Arc<Entry>> = samples.iter().map(|sample| renamed(sample)).collect();
        let (mut whole, mut lean) = (said_so(&said), said_so(&said));
        for (number, (first, last, kind)) in cuts.into_iter().enumerate() {
            let number = number as u128;
            let (from, to) = (said[first % said.len()].id, said[last % said.len()].id);
            let summary = summary_named(Uuid::from_u128(3 << 64 | number));
            let edit = match kind {
                0 => Edit::Replace { from, to, by: By::Nothing },
                1 => Edit::Replace { from, to, by: By::Words("in short".into()) },
                2 => Edit::Clear { calls: vec![(first % 6).to_string()] },
                3 => Edit::Blocks { kinds: vec!["future".into()] },
                4 => Edit::Replace { from, to: Uuid::from_u128(1 << 64 | number.saturating_sub(1)), by: By::Words("shorter".into()) },
                _ => Edit::Replace { from, to, by: By::Entry(summary.id) },
            };
            let is_summary = matches!(edit, Edit::Replace { by: By::Entry(_), .. });
            let mut made = Vec::new();
            for history in [&mut whole, &mut lean] {
                let mut tried = history.clone();
                if is_summary {
                    tried.keep(Arc::clone(&summary));
                }
                let change = tried.edit(Uuid::from_u128(1 << 64 | number), "test", edit.clone());
                if change.is_some() {
                    *history = tried;
                }
                made.push((change, history.stays_behind(summary.id)));
            }
            prop_assert_eq!(&made[0], &made[1]);
            if is_summary {
                lean.release();
            } else {
                lean.release_unsent();
            }
            let more = renamed(&samples[first % samples.len()]);
            let next = prompt("what now?");
            let [as_whole, as_lean] = [&mut whole, &mut lean].map(|history| {
                history.push(Arc::clone(&more));
                let mut view = history.view().clone();
                view.push(Arc::clone(&next));
                sent(&mut view)
            });
            prop_assert_eq!(as_whole, as_lean);
        }
    }
}
