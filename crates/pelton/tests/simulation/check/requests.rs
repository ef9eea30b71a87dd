//! What the model was sent, and what it cost. Written without the strict model's rules, as a second opinion.

use std::collections::BTreeSet;

use pelton::{Event, Terminal};
use pelton_model::catalogue;
use pelton_testkit::{Ending, ScriptedModel, Seen};
use pelton_wire::usage::Usage;
use serde_json::Value;

use super::{Checker, Heard, words_of};

/// Sums of floats in another order differ by less than this.
const ROUNDING_USD: f64 = 1e-9;

impl Checker {
    pub(super) fn requests_are_right(&mut self, heard: &Heard, model: &ScriptedModel) {
        let requests = model.requests();
        for seen in &requests[self.requests_checked..] {
            self.request_is_right(seen);
        }
        self.requests_checked = requests.len();
        let recorded = heard.outcome().is_some_and(|outcome| outcome.terminal != Terminal::Unrecorded);
        let undisturbed = heard.ended && heard.interrupted_at.is_none() && recorded;
        self.note_costs(heard, &requests, undisturbed);
        let (before, since) = requests.split_at(self.requests_before_boot);
        self.money_is_kept(heard, before, since);
        let told = heard.events.iter().filter(|event| matches!(event, Event::Requesting)).count();
        let sent = requests.len() - heard.requests_before;
        self.expect(told == sent || !undisturbed, || format!("{told} requests were told, {sent} sent"));
    }

    /// What each answer has cost at least: of one that was followed to its end, all of it; of any other that was told to
    /// have begun, what it said then.
    fn note_costs(&mut self, heard: &Heard, requests: &[Seen], undisturbed: bool) {
        let mut number = heard.requests_before;
        let mut came_to_its_end = true;
        for event in &heard.events {
            match event {
                Event::Requesting => (number, came_to_its_end) = (number + 1, false),
                Event::Delta(delta) => came_to_its_end |= delta.raw.starts_with(br#"{"type":"message_stop""#),
                Event::Started(started) => {
                    let cost = catalogue::cost(&started.model, &started.usage, &[]).unwrap_or_default();
                    self.costs.insert(number, cost);
                }
                _ => {}
            }
        }
        // An answer that cannot be kept is left where that is seen: what the model reports at its end is read by nobody.
        let unrecorded = heard.outcome().is_some_and(|outcome| outcome.terminal == Terminal::Unrecorded);
        if unrecorded && !came_to_its_end {
            self.unread.insert(number);
        }
        if undisturbed {
            let whole = requests[heard.requests_before..].iter().filter(|seen| is_whole(seen));
            self.costs.extend(whole.map(|seen| (seen.number, cost(seen))));
        }
    }

    fn request_is_right(&mut self, seen: &Seen) {
        let number = seen.number;
        let messages = seen.body["messages"].as_array().cloned().unwrap_or_default();
        for (at, message) in messages.iter().enumerate() {
            let calls = ids(message, "tool_use", "id");
            let results = messages.get(at + 1).map(|next| ids(next, "tool_result", "tool_use_id"));
            let results = results.unwrap_or_default();
            self.expect(calls == results, || {
                format!("request {number}: calls {calls:?} of message {at} are answered by {results:?}")
            });
        }
        let mut words: Vec<String> = messages
            .iter()
            .filter(|message| message["role"] == "assistant")
            .flat_map(|message| words_of(message["content"].to_string().as_bytes()))
            .collect();
        words.sort();
        let twice = words.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone());
        self.broken.extend(twice.map(|word| format!("request {number}: {word} is in it twice")));
        let words: BTreeSet<String> = words.into_iter().collect();
        let back = self.withdrawn_texts.iter().find(|(word, from)| *from <= number && words.contains(word));
        let back = back.map(|(word, _)| format!("request {number}: {word} was taken back and is in it"));
        self.broken.extend(back);
    }

    /// B1: no call is sent once the cap is reached, and the sum told is what the model reported, behind what the record says
    /// that was spent in processes before; of answers that broke off, as much as came of them.
    fn money_is_kept(&mut self, heard: &Heard, before: &[Seen], requests: &[Seen]) {
        let known = self.spent_before_boot;
        let known_at_most: f64 = before.iter().map(cost_at_most).sum();
        self.expect(known <= known_at_most + ROUNDING_USD, || {
            format!("the record says ${known} was spent before, it was ${known_at_most} at most")
        });
        let mut spent = 0.0;
        let mut spent_at_most = 0.0;
        for seen in requests {
            if let Some(cap) = self.setup.budget_usd {
                let number = seen.number;
                self.expect(spent < cap, || format!("request {number} was sent after ${spent} of ${cap}"));
            }
            let was_read = is_whole(seen) && !self.unread.contains(&seen.number);
            spent_at_most += if was_read { cost(seen) } else { cost_at_most(seen) };
            spent += self.costs.get(&seen.number).copied().unwrap_or_default();
        }
        let Some(outcome) = heard.outcome() else { return };
        let told = outcome.cost_usd - known;
        let fits = spent - ROUNDING_USD <= told && told <= spent_at_most + ROUNDING_USD;
        self.expect(fits, || format!("the cost told is ${told}, it was ${spent} to ${spent_at_most}"));
    }
}

/// The whole answer came through.
fn is_whole(seen: &Seen) -> bool {
    let stopped = seen.reply.events.iter().any(|event| event.name == "message_stop");
    let body = seen.reply.body.as_ref().filter(|body| body["type"] == "message");
    let in_one_piece = body.is_some_and(|body| body.to_string().len() == seen.reply.bytes);
    seen.reply.ending == Some(Ending::Complete) && (stopped || in_one_piece)
}

fn cost(seen: &Seen) -> f64 {
    cost_of(seen, &usage(seen))
}

/// Of an answer without an end the model has not reported all; it wrote no more tokens than a quarter of its bytes.
fn cost_at_most(seen: &Seen) -> f64 {
    let usage = usage(seen);
    cost_of(seen, &Usage { output_tokens: usage.output_tokens.max(seen.reply.bytes as u64 / 4), ..usage })
}

fn usage(seen: &Seen) -> Usage {
    serde_json::from_value(seen.reply.usage.clone().unwrap_or_default()).unwrap_or_default()
}

fn cost_of(seen: &Seen, usage: &Usage) -> f64 {
    catalogue::cost(seen.body["model"].as_str().unwrap_or_default(), usage, &[]).unwrap_or_default()
}

fn ids(message: &Value, kind: &str, key: &str) -> Vec<String> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks
        .filter(|block| block["type"] == kind)
        .map(|block| block[key].as_str().unwrap_or_default().to_owned())
        .collect()
}
