//! What is kept while parts come and go says the same as a look at all of them.

use super::*;

/// Something that is done to a conversation.
#[derive(Debug, Clone)]
enum Deed {
    Say(Arc<Entry>),
    Ask,
    Clear(usize),
    LeaveOut(usize, usize),
    Undo,
    ForgetThinking,
    TakeBack,
    DropMedia,
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => any_entry().prop_map(Deed::Say),
        2 => Just(Deed::Say(entry(Kind::Prompt { meta: false }, &json!([{"type": "text", "text": "look"}, image()])))),
        6 => Just(Deed::Ask),
        1 => (0usize..6).prop_map(Deed::Clear),
        1 => (0usize..30, 0usize..30).prop_map(|(from, to)| Deed::LeaveOut(from, to)),
        1 => Just(Deed::Undo),
        1 => Just(Deed::ForgetThinking),
        1 => Just(Deed::TakeBack),
        1 => Just(Deed::DropMedia),
    ]
}

impl Deed {
    /// Does it, as far as it is no more than a change; `name` is what it is called from then on.
    fn carry_out(self, history: &mut History, name: Uuid, edits: &mut Vec<Uuid>) {
        match self {
            Self::Clear(call) => {
                let clear = Edit::Clear { calls: vec![call.to_string()] };
                edits.extend(history.edit(name, "clear", clear).map(|_| name));
            }
            Self::LeaveOut(from, to) if !history.entries().is_empty() => {
                let all = history.entries();
                let edit = replace(&all[from % all.len()].clone(), &all[to % all.len()].clone());
                edits.extend(history.edit(name, "leave out", edit).map(|_| name));
            }
            Self::Undo => {
                if let Some(edit) = edits.pop() {
                    history.edit(name, "undo", Edit::Undo { edit });
                }
            }
            Self::ForgetThinking => _ = history.view_mut().leave_out_thinking("test"),
            Self::TakeBack => {
                let answer = history.entries().iter().rev().take_while(|entry| entry.is_assistant());
                let ids: Vec<EntryId> = answer.map(|entry| entry.id).collect();
                history.withdraw(&ids);
            }
            Self::DropMedia => _ = history.view_mut().leave_out_oldest_media(1),
            Self::Say(_) | Self::Ask | Self::LeaveOut(..) => {}
        }
    }
}

/// The blocks of all messages, without their marks, and the message each is in.
fn blocks_of(messages: &[Value]) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        for block in message["content"].as_array().unwrap() {
            let mut block = block.clone();
            block.as_object_mut().unwrap().remove("cache_control");
            blocks.push((place, block.to_string()));
        }
    }
    blocks
}

proptest! {
    #[test]
    fn what_is_kept_in_passing_is_what_is_there(deeds in prop::collection::vec(any_deed(), 1..60)) {
        let mut history = History::default();
        let mut asked: Option<Vec<(usize, String)>> = None;
        let mut edits = Vec::new();
        for (number, deed) in deeds.into_iter().enumerate() {
            let name = Uuid::from_u128(1 << 65 | number as u128);
            match deed {
                Deed::Say(sample) => _ = history.push(renamed(&sample)),
                Deed::Ask if history.view().open_calls().is_empty() && !history.view().is_empty() => {
                    let changed = history.view().changed_since_sent();
                    let now = blocks_of(&sent(history.view_mut()));
                    let before = asked.take().unwrap_or_default();
                    let same = before.iter().zip(&now).take_while(|(before, now)| before == now).count();
                    match changed {
                        None => prop_assert_eq!(same, before.len(), "it only went on"),
                        Some(changed) => {
                            // What stood at the end of one message may have made way for the beginning of the next.
                            let places = [before.get(same), now.get(same)].into_iter().flatten();
                            let first = places.map(|(message, _)| *message).max().unwrap_or(usize::MAX);
                            prop_assert!(changed.message <= first, "{:?} instead of {}", changed, first);
                        }
                    }
                    asked = Some(now);
                }
                deed => deed.carry_out(&mut history, name, &mut edits),
            }
            prop_assert_eq!(history.view().disagreement(), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_put_together_is_what_is_there(
        rounds in 30usize..120,
        deeds in prop::collection::vec((any_deed(), 0usize..120), 1..25),
    ) {
        let mut history = History::default();
        history.push(prompt("hi"));
        for round in 0..rounds {
            let id = round.to_string();
            history.push(calls(&id));
            history.push(answers_at_length(&id));
        }
        let mut edits = Vec::new();
        let mut copy = View::default();
        for (number, (deed, place)) in deeds.into_iter().enumerate() {
            let name = Uuid::from_u128(1 << 65 | number as u128);
            match deed {
                Deed::Say(sample) => _ = history.push(renamed(&sample)),
                // Anywhere, not among the first few only.
                Deed::Clear(_) => Deed::Clear(place).carry_out(&mut history, name, &mut edits),
                Deed::LeaveOut(from, to) => {
                    Deed::LeaveOut(from + place, to + place).carry_out(&mut history, name, &mut edits);
                }
                deed => deed.carry_out(&mut history, name, &mut edits),
            }
            if history.view().open_calls().is_empty() && !history.view().is_empty() {
                history.view_mut().request(CacheLife::default());
            }
            prop_assert_eq!(history.view().disagreement(), None);
            if number % 2 == 0 {
                history.view_mut().bring_up(&mut copy);
                prop_assert_eq!(copy.disagreement(), None);
                prop_assert_eq!(copy.open_calls(), history.view().open_calls());
                prop_assert_eq!(copy.tokens(), history.view().tokens());
                let has_same_calls = (0..rounds).all(|round| {
                    copy.has_call(&round.to_string()) == history.view().has_call(&round.to_string())
                });
                prop_assert!(has_same_calls);
                if history.view().open_calls().is_empty() && !history.view().is_empty() {
                    let (one, other) = (&mut copy.clone(), &mut history.view().clone());
                    prop_assert_eq!(
                        one.request(CacheLife::default()).to_vec(),
                        other.request(CacheLife::default()).to_vec()
                    );
                }
            }
        }
    }
}

#[test]
fn a_copy_costs_what_came_since() {
    let mut history = History::default();
    history.push(prompt("hi"));
    for round in 0..100 {
        let id = round.to_string();
        history.push(calls(&id));
        history.push(answers(&id));
    }
    let mut copy = View::default();
    assert_eq!(history.view_mut().bring_up(&mut copy), 201, "it knows nothing yet");
    assert_eq!(history.view_mut().bring_up(&mut copy), 0);
    history.push(says("well"));
    history.push(prompt("more"));
    assert_eq!(history.view_mut().bring_up(&mut copy), 2);
    assert_eq!(copy.len(), 203);
}

#[test]
fn after_a_change_the_newest_place_the_server_knows_is_marked() {
    let mut view = View::default();
    view.push(prompt("hi"));
    for id in ["1", "2", "3"] {
        view.request(CacheLife::default());
        view.push(calls(id));
        view.push(answers_at_length(id));
    }
    view.request(CacheLife::default());
    assert!(view.apply(&Edit::Clear { calls: vec!["2".into()] }, None, "clear"));
    let changed = view.changed_since_sent().unwrap();
    assert_eq!((changed.message, changed.by.as_str()), (4, "clear"));
    assert_eq!(
        outline(&mut view),
        "user: hi | assistant: call 1 | user: result 1* | assistant: call 2 | user: result 2 | assistant: call 3 | user: result 3*",
    );
    assert_eq!(view.changed_since_sent(), None);
}

fn answers_at_length(id: &str) -> Arc<Entry> {
    let kind = Kind::ToolResult { call: id.into(), is_error: false };
    entry(
        kind,
        &json!([{"type": "tool_result", "tool_use_id": id, "content": "ok ".repeat(200), "is_error": false}]),
    )
}
