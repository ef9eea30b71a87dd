//! What must hold whatever happened. Each rule says what broke in words; the first that breaks ends the seed.
//!
//! - here: what is known of the session over all its processes, and what outlives them
//! - [`outcome`]: one submission and its result
//! - [`requests`]: what the model was sent, and what it cost

mod outcome;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pelton::history::{Entry, EntryId, Kind, Piece};
use pelton::transcript::{self, Durability};
use pelton::{Event, Outcome, Terminal};
use pelton_testkit::ScriptedModel;

use crate::hooks::Host;
use crate::plan::{Death, Setup};
use crate::tools::Deeds;

/// What one submission told.
#[derive(Default)]
pub struct Heard {
    pub events: Vec<Event>,
    /// The stream came to its end by itself.
    pub ended: bool,
    /// So many events had come when the user interrupted.
    pub interrupted_at: Option<usize>,
    /// How long the end took after that, by the stopped clock.
    pub end_took: Duration,
    /// Something could not be written or synced.
    pub disk_failed: bool,
    /// Requests before this submission.
    pub requests_before: usize,
}

impl Heard {
    pub fn outcome(&self) -> Option<Arc<Outcome>> {
        self.events.iter().find_map(|event| match event {
            Event::Result(outcome) => Some(Arc::clone(outcome)),
            _ => None,
        })
    }

    /// Everything recorded that was told, in order.
    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.events.iter().filter_map(|event| match event {
            Event::Prompt(entry) | Event::Message(entry) => Some(entry),
            _ => None,
        })
    }
}

/// What is known of a session.
pub struct Checker {
    setup: Setup,
    broken: Vec<String>,
    /// What was told and counts, in order.
    told: Vec<Told>,
    /// So much of it was acknowledged by a result.
    acknowledged: usize,
    withdrawn: BTreeSet<EntryId>,
    /// Those of them that a result came after.
    withdrawn_for_good: BTreeSet<EntryId>,
    /// Texts that were taken back, each with the number of the first request that came after.
    withdrawn_texts: Vec<(String, usize)>,
    /// By number of the request, what its answer has cost at least, in dollars.
    costs: BTreeMap<usize, f64>,
    /// Answers of the model whose end nobody read.
    unread: BTreeSet<usize>,
    /// Requests and calls before this process began.
    requests_before_boot: usize,
    begun_before_boot: usize,
    requests_checked: usize,
    /// What the record said that was spent before this process began.
    spent_before_boot: f64,
}

struct Told {
    id: EntryId,
    json: Bytes,
    /// What only this entry says.
    words: Vec<String>,
}

impl Checker {
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            broken: Vec::new(),
            told: Vec::new(),
            acknowledged: 0,
            withdrawn: BTreeSet::new(),
            withdrawn_for_good: BTreeSet::new(),
            withdrawn_texts: Vec::new(),
            costs: BTreeMap::new(),
            unread: BTreeSet::new(),
            requests_before_boot: 0,
            begun_before_boot: 0,
            requests_checked: 0,
            spent_before_boot: 0.0,
        }
    }

    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    pub fn broken(&mut self, what: impl Into<String>) {
        self.broken.push(what.into());
    }

    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(what());
        }
    }

    /// A new process begins.
    pub fn boot(&mut self, requests: usize, spent: f64) {
        (self.requests_before_boot, self.spent_before_boot) = (requests, spent);
    }

    /// Whether nothing better can be expected of a session that was set up like this.
    pub fn may_end_so(&self, outcome: &Outcome) -> bool {
        match outcome.terminal {
            Terminal::BudgetExhausted => self.setup.budget_usd.is_some(),
            // One result larger than the whole window stays in the newest round.
            Terminal::BlockingLimit | Terminal::RapidRefill => self.setup.window_tokens.is_some(),
            _ => false,
        }
    }

    /// Once a submission is over or let go, nothing of it is left.
    pub fn nothing_runs(&mut self, deeds: &Deeds, host: &Host, model: &ScriptedModel) {
        let running = deeds.running();
        self.expect(running.is_empty(), || format!("calls still run: {running:?}"));
        let hooks = host.running();
        self.expect(hooks == 0, || format!("{hooks} hooks still run"));
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        self.expect(tasks == 0, || format!("{tasks} tasks are left"));
        for seen in model.requests() {
            self.expect(seen.reply.ending.is_some(), || format!("request {} is still open", seen.number));
        }
        for wrong in deeds.wrong() {
            self.broken(wrong);
        }
    }

    /// One submission is over, or was let go. `file` is its transcript as it is now.
    pub fn submission(&mut self, heard: &Heard, model: &ScriptedModel, file: &[u8]) {
        self.broken.extend(model.summary().first_problem());
        self.note_told(heard);
        self.outcome_is_right(heard);
        self.requests_are_right(heard, model);
        self.is_recorded(file);
        if heard.outcome().is_some_and(|outcome| outcome.errors.is_empty()) {
            self.acknowledged = self.told.len();
            self.withdrawn_for_good.clone_from(&self.withdrawn);
        }
    }

    fn note_told(&mut self, heard: &Heard) {
        let mut requests = heard.requests_before;
        for event in &heard.events {
            match event {
                Event::Requesting => requests += 1,
                Event::Prompt(entry) | Event::Message(entry) => {
                    let words = if entry.is_assistant() { words_of(&entry.json) } else { Vec::new() };
                    self.told.push(Told { id: entry.id, json: entry.json.clone(), words });
                }
                Event::Tombstone(ids) => {
                    for id in ids {
                        let Some(at) = self.told.iter().position(|told| told.id == *id) else {
                            self.broken(format!("{id} was taken back but never told"));
                            continue;
                        };
                        let told = self.told.remove(at);
                        self.acknowledged -= usize::from(at < self.acknowledged);
                        self.withdrawn.insert(told.id);
                        let words = told.words.into_iter().map(|word| (word, requests + 1));
                        self.withdrawn_texts.extend(words);
                    }
                }
                _ => {}
            }
        }
    }

    /// What was told and counts is in the transcript, in order and as it was; what was taken back is not.
    fn is_recorded(&mut self, file: &[u8]) {
        let loaded = transcript::read_from(file).unwrap();
        let mut entries = loaded.entries.iter();
        let missing = self.told.iter().find_map(|told| match entries.find(|entry| entry.id == told.id) {
            None => Some(format!("{} was told but is not in the transcript, or not in its place", told.id)),
            Some(entry) if entry.json != told.json => Some(format!("{} is recorded otherwise", told.id)),
            Some(_) => None,
        });
        self.broken.extend(missing);
        let kept = loaded.entries.iter().find(|entry| self.withdrawn.contains(&entry.id));
        let kept = kept.map(|entry| format!("{} was taken back but is still in the transcript", entry.id));
        self.broken.extend(kept);
    }

    /// A process died. What it had acknowledged is in `file`, what is left of its transcript.
    pub fn died(&mut self, death: Death, file: &[u8], deeds: &Deeds) {
        let loaded = transcript::read_from(file).unwrap();
        let left: BTreeSet<EntryId> = loaded.entries.iter().map(|entry| entry.id).collect();
        let safe = match (death, self.setup.durability) {
            (Death::OfProcess, _) => self.told.len(),
            (Death::OfMachine, Durability::Synced) => self.acknowledged,
            (Death::OfMachine, Durability::Fast) => 0,
        };
        let lost = self.told[..safe].iter().find(|told| !left.contains(&told.id));
        let lost = lost.map(|told| format!("{} was acknowledged and is lost ({death:?})", told.id));
        self.broken.extend(lost);
        let all_begun = deeds.begun();
        if death == Death::OfProcess || self.setup.durability == Durability::Synced {
            let calls: BTreeSet<&str> = loaded.entries.iter().filter_map(|entry| call_of(entry)).collect();
            for begun in all_begun[self.begun_before_boot..].iter().filter(|begun| begun.alone) {
                self.expect(calls.contains(begun.call.as_str()), || {
                    format!("{} changed something and nobody knows after {death:?}", begun.name)
                });
            }
        }
        self.begun_before_boot = all_begun.len();
        // What was lost with the machine is forgotten here too; the rest is on the disk itself now.
        if death == Death::OfMachine {
            self.told.retain(|told| left.contains(&told.id));
            self.acknowledged = self.told.len();
            // So is that something was taken back, unless that was acknowledged and the disk waited for.
            let for_good = |id: &EntryId| {
                self.setup.durability == Durability::Synced && self.withdrawn_for_good.contains(id)
            };
            self.withdrawn.retain(|id| for_good(id) || !left.contains(id));
        }
    }

    /// The whole session is over.
    pub fn at_the_end(&mut self, deeds: &Deeds) -> Vec<String> {
        let mut names = BTreeSet::new();
        for begun in deeds.begun() {
            self.expect(names.insert(begun.name.clone()), || format!("{} ran twice", begun.name));
        }
        std::mem::take(&mut self.broken)
    }
}

fn call_of(entry: &Entry) -> Option<&str> {
    match &entry.kind {
        Kind::Assistant { piece: Piece::Call { id, .. }, .. } => Some(id),
        _ => None,
    }
}

/// The words that only one step of the script says: `T3.1`.
fn words_of(json: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(json);
    let word = |word: &str| {
        let (step, part) = word.strip_prefix('T')?.split_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(step) && is_number(part)).then(|| word.to_owned())
    };
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.')
        .filter_map(|found| word(found.trim_end_matches('.')))
        .collect()
}
