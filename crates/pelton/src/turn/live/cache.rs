//! What became of the server's cache with each request, and, where it was missed, what changed and what changed it. What
//! stands in front of the messages is compared with the request before; of the messages the view itself knows what was done
//! to them since, so that nobody has to go through them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use pelton_model::{Ask, Effort, Prefix, Speed, Thinking};
use pelton_wire::usage::Usage;
use serde::Deserialize;

use crate::context::tools_by_server;
use crate::event::{Asked, CacheReport};
use crate::history::ChangedSince;
use crate::limits::{CACHE_KEPT, CACHE_REPORTS_KEPT_MAX};
use crate::tools::Tool;
use crate::transcript::{PrefixFacts, RequestFacts, kept_prefix};

/// Compares each request of a conversation with the one before.
#[derive(Debug, Default)]
pub(crate) struct CacheAudit {
    last: Option<Sent>,
    /// Tokens that the server has in its cache for this conversation, as it said itself.
    held: u64,
    /// How the newest request differs from the one before in what was there already.
    difference: Option<String>,
    /// What became of the newest requests, the newest last.
    reports: VecDeque<CacheReport>,
}

/// A request, as the cache sees it.
#[derive(Debug, Clone)]
struct Sent {
    model: String,
    /// `None` if another process sent it.
    prefix: Option<Arc<Prefix>>,
    facts: PrefixFacts,
    /// Thinking, effort and speed.
    manner: String,
    /// There are images in it.
    has_images: bool,
    at: Timestamp,
}

/// What is known of the messages of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Messages<'a> {
    /// What was done to them since the request before.
    pub changed: Option<&'a ChangedSince>,
    /// There are images among them.
    pub has_images: bool,
}

impl CacheAudit {
    /// What the record of an earlier process tells of its requests. The newest is what the next one is compared with.
    pub fn recall(recorded: &[RequestFacts], at: Option<Timestamp>) -> Self {
        let turns = recorded.iter().rev().find(|request| request.cache.asked == Asked::Turn);
        let last = turns.zip(at).map(|(request, at)| Sent {
            model: request.model.clone(),
            prefix: None,
            facts: request.prefix.clone(),
            manner: request.manner.clone(),
            has_images: request.has_images,
            at,
        });
        let held = turns.map_or(0, |request| request.cache.read + request.cache.written);
        let mut audit = Self { last, held, ..Self::default() };
        recorded.iter().for_each(|request| audit.keep(request.cache.clone()));
        audit
    }

    /// A request is sent.
    pub fn sent(&mut self, ask: &Ask, tools: &[Arc<dyn Tool>], messages: Messages<'_>, now: Timestamp) {
        let facts = match &self.last {
            Some(Sent { prefix: Some(prefix), facts, .. }) if Arc::ptr_eq(prefix, &ask.prefix) => {
                facts.clone()
            }
            _ => prefix_facts(&ask.prefix, tools),
        };
        let sent = Sent {
            model: ask.model.clone(),
            prefix: Some(Arc::clone(&ask.prefix)),
            facts,
            manner: manner(ask),
            has_images: messages.has_images,
            at: now,
        };
        self.difference = self.last.as_ref().and_then(|last| difference(last, &sent, messages.changed));
        self.last = Some(sent);
    }

    /// It was answered.
    pub fn answered(&mut self, usage: &Usage) -> CacheReport {
        let difference = self.difference.take();
        let report = self.report(Asked::Turn, usage, difference);
        self.held = report.read + report.written;
        report
    }

    /// How a request beside the conversation, but with its words in front, differs from the conversation's last one.
    pub fn compared(&self, ask: &Ask, changed: Option<&ChangedSince>, now: Timestamp) -> Option<String> {
        let last = self.last.as_ref()?;
        let sent = Sent { model: ask.model.clone(), manner: manner(ask), at: now, ..last.clone() };
        difference(last, &sent, changed)
    }

    /// Such a request was answered. What the conversation itself has in the cache stays what it is.
    pub fn answered_beside(&mut self, usage: &Usage, difference: Option<String>) -> CacheReport {
        self.report(Asked::Summary, usage, difference)
    }

    /// What is recorded of the newest request.
    pub fn facts(&self, cache: CacheReport) -> Option<RequestFacts> {
        let Sent { model, facts, manner, has_images, .. } = self.last.clone()?;
        let (usual_model, files, counted) = (None, None, None);
        Some(RequestFacts { model, usual_model, cache, prefix: facts, manner, has_images, files, counted })
    }

    /// What stood in front of the newest request.
    pub fn prefix(&self) -> Option<&PrefixFacts> {
        self.last.as_ref().map(|last| &last.facts)
    }

    /// What is no longer as it was in front of the last request of an earlier process, or not known to be: others do not
    /// record it, and a record may have lost it.
    pub fn differs_from_resumed(&self, prefix: &Prefix) -> Option<&'static str> {
        let Some(last) = &self.last else { return Some("perhaps something else in front") };
        if last.prefix.is_some() {
            return None;
        }
        let facts = &last.facts;
        if facts.tools_hash != hash(&prefix.tools) {
            return Some("other tools");
        }
        (facts.system_hash != hash(&prefix.system)).then_some("another system prompt")
    }

    /// What became of the newest requests, the newest last.
    pub fn reports(&self) -> Vec<CacheReport> {
        self.reports.iter().cloned().collect()
    }

    fn report(&mut self, asked: Asked, usage: &Usage, difference: Option<String>) -> CacheReport {
        let (read, written) = (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
        // A request that became shorter cannot read what it does not have any more.
        let missed = self.held.min(usage.prompt_tokens()).saturating_sub(read);
        let reason = (missed > 0).then(|| {
            let unexplained = || {
                "nothing of what was sent before has changed: the server does not have it any more".to_owned()
            };
            difference.unwrap_or_else(unexplained)
        });
        let report = CacheReport { asked, read, written, missed, reason };
        self.keep(report.clone());
        report
    }

    fn keep(&mut self, report: CacheReport) {
        self.reports.push_back(report);
        if self.reports.len() > CACHE_REPORTS_KEPT_MAX {
            self.reports.pop_front();
        }
    }
}

/// The first part in which a request differs from the one before, in what was there already, and what changed it.
fn difference(last: &Sent, now: &Sent, changed: Option<&ChangedSince>) -> Option<String> {
    if last.model != now.model {
        return Some(format!("model: {} is asked instead of {}", now.model, last.model));
    }
    if last.facts.tools_hash != now.facts.tools_hash {
        return Some(tools_difference(last.prefix.as_deref(), now.prefix.as_deref()));
    }
    if last.facts.system_hash != now.facts.system_hash {
        let place = first_difference(last.prefix.as_deref(), now.prefix.as_deref());
        return Some(format!("{place}: the system prompt is another"));
    }
    if last.manner != now.manner {
        return Some(manner_difference(&last.manner, &now.manner));
    }
    if last.has_images != now.has_images {
        let what = if now.has_images { "the first came" } else { "the last went" };
        return Some(format!("images: {what}, and the server reads messages with them in another way"));
    }
    if let Some(ChangedSince { message, by }) = changed {
        return Some(format!("messages[{message}]: changed after it was sent, by: {by}"));
    }
    let waited = now.at.duration_since(last.at);
    let waited = waited.try_into().unwrap_or_default();
    (CACHE_KEPT < waited)
        .then(|| format!("time: {} s have passed, and the server keeps it no longer", waited.as_secs()))
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

/// The first tool that is not what it was.
fn tools_difference(last: Option<&Prefix>, now: Option<&Prefix>) -> String {
    let read = |prefix: Option<&Prefix>| -> Vec<Named> {
        prefix.and_then(|prefix| serde_json::from_slice(&prefix.tools).ok()).unwrap_or_default()
    };
    let (old, new) = (read(last), read(now));
    if last.is_none() {
        return "tools: others are offered than before the session was resumed".to_owned();
    }
    let same = old.iter().zip(&new).take_while(|(old, new)| old.name == new.name && old.rest == new.rest);
    let place = same.count();
    let what = match (old.get(place), new.get(place)) {
        (Some(old), Some(new)) if old.name == new.name => format!("{} is described in another way", new.name),
        (Some(gone), _) if !new.iter().any(|tool| tool.name == gone.name) => {
            format!("{} is not offered any more", gone.name)
        }
        (_, Some(new)) => format!("{} is offered there now", new.name),
        _ => "others are offered".to_owned(),
    };
    format!("tools[{place}]: {what}")
}

/// The first block of the system prompt that is not what it was.
fn first_difference(last: Option<&Prefix>, now: Option<&Prefix>) -> String {
    let (Some(last), Some(now)) = (last, now) else { return "system".to_owned() };
    let read = |system: &Bytes| serde_json::from_slice::<Vec<serde_json::Value>>(system).unwrap_or_default();
    let (old, new) = (read(&last.system), read(&now.system));
    format!("system[{}]", old.iter().zip(&new).take_while(|(old, new)| old == new).count())
}

/// What is asked for beside the words, field by field.
fn manner(ask: &Ask) -> String {
    let thinking = match ask.thinking {
        Thinking::ModelDefault => "what suits the model".to_owned(),
        Thinking::Adaptive => "as much as the model likes".to_owned(),
        Thinking::Enabled { budget } => format!("up to {budget} tokens"),
        Thinking::Disabled => "none".to_owned(),
        other => format!("{other:?}"),
    };
    let effort = ask.effort.map_or("what is usual", Effort::as_str);
    let speed = match ask.speed {
        Speed::Standard => "standard",
        Speed::Fast => "fast",
    };
    [format!("thinking: {thinking}"), format!("effort: {effort}"), format!("speed: {speed}")]
        .join(MANNER_PARTED)
}

const MANNER_PARTED: &str = "; ";

/// The first field that is not what it was.
fn manner_difference(last: &str, now: &str) -> String {
    let fields = last.split(MANNER_PARTED).zip(now.split(MANNER_PARTED));
    let named = fields.filter_map(|(old, new)| Some((old.split_once(": ")?, new.split_once(": ")?)));
    match named.into_iter().find(|(old, new)| old.1 != new.1) {
        Some(((_, old), (field, new))) => format!("{field}: {new} instead of {old}"),
        // Somebody else wrote it down.
        None => "thinking, effort or speed: another is asked for".to_owned(),
    }
}

fn prefix_facts(prefix: &Prefix, tools: &[Arc<dyn Tool>]) -> PrefixFacts {
    PrefixFacts {
        system_hash: hash(&prefix.system),
        tools_hash: hash(&prefix.tools),
        system_bytes: prefix.system.len(),
        tools_bytes: tools_by_server(tools),
        kept: kept_prefix(prefix).map(|(name, _)| name),
    }
}

fn hash(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(system: &'static str, tools: &'static str) -> Arc<Prefix> {
        Arc::new(Prefix {
            system: Bytes::from_static(system.as_bytes()),
            tools: Bytes::from_static(tools.as_bytes()),
        })
    }

    fn ask() -> Ask {
        Ask::new("m", 10, prefix(r#"["s"]"#, r#"[{"name":"A","x":1},{"name":"B","x":1}]"#), Vec::new())
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn usage(read: u64, written: u64) -> Usage {
        Usage { cache_read_input_tokens: read, cache_creation_input_tokens: written, ..Usage::default() }
    }

    fn report(read: u64, written: u64, missed: u64) -> CacheReport {
        CacheReport { asked: Asked::Turn, read, written, missed, reason: None }
    }

    fn asked_once() -> CacheAudit {
        let mut audit = CacheAudit::default();
        audit.sent(&ask(), &[], Messages::default(), at(0));
        assert_eq!(audit.answered(&usage(0, 100)), report(0, 100, 0));
        audit
    }

    /// What is said of a second request that reads nothing from the cache.
    fn check(change: impl FnOnce(&mut Ask), changed: Option<&ChangedSince>, after: i64, expected: &str) {
        let mut audit = asked_once();
        let mut second = ask();
        change(&mut second);
        audit.sent(&second, &[], Messages { changed, has_images: false }, at(after));
        let report = audit.answered(&usage(0, 120));
        assert_eq!(report.missed, 100);
        assert_eq!(report.reason.unwrap(), expected);
    }

    #[test]
    fn the_first_part_that_differs_is_named_and_what_changed_it() {
        let boundary = ChangedSince { message: 3, by: "microcompact".to_owned() };
        let gone = "nothing of what was sent before has changed: the server does not have it any more";
        check(|_| {}, None, 1, gone);
        check(|_| {}, None, 301, "time: 301 s have passed, and the server keeps it no longer");
        check(|_| {}, Some(&boundary), 301, "messages[3]: changed after it was sent, by: microcompact");
        check(|ask| ask.model = "n".to_owned(), Some(&boundary), 1, "model: n is asked instead of m");
        let system = r#"["s"]"#;
        let tools = |tools| move |ask: &mut Ask| ask.prefix = prefix(system, tools);
        check(
            tools(r#"[{"name":"A","x":1},{"name":"B","x":2}]"#),
            None,
            1,
            "tools[1]: B is described in another way",
        );
        check(tools(r#"[{"name":"A","x":1}]"#), None, 1, "tools[1]: B is not offered any more");
        let three = r#"[{"name":"A","x":1},{"name":"B","x":1},{"name":"C"}]"#;
        check(tools(three), None, 1, "tools[2]: C is offered there now");
        check(
            |ask| ask.prefix = prefix(r#"["s","more"]"#, r#"[{"name":"A","x":1},{"name":"B","x":1}]"#),
            None,
            1,
            "system[1]: the system prompt is another",
        );
        check(|ask| ask.speed = Speed::Fast, None, 1, "speed: fast instead of standard");
        check(|ask| ask.effort = Some(Effort::High), None, 1, "effort: high instead of what is usual");
        let silent = |ask: &mut Ask| (ask.thinking, ask.speed) = (Thinking::Disabled, Speed::Fast);
        check(silent, None, 1, "thinking: none instead of what suits the model");
        let foreign = manner_difference("Disabled None Standard", "thinking: none; effort: low; speed: fast");
        assert_eq!(foreign, "thinking, effort or speed: another is asked for");
    }

    #[test]
    fn the_first_image_is_a_reason_of_its_own() {
        let mut audit = asked_once();
        let with_image = Messages { has_images: true, ..Messages::default() };
        audit.sent(&ask(), &[], with_image, at(1));
        let reason = audit.answered(&usage(0, 120)).reason.unwrap();
        assert!(reason.starts_with("images: the first came"), "{reason}");
        audit.sent(&ask(), &[], with_image, at(1));
        let reason = audit.answered(&usage(0, 120)).reason.unwrap();
        assert!(reason.starts_with("nothing of what was sent before"), "{reason}");
    }

    #[test]
    fn what_is_read_or_was_left_out_is_not_missed() {
        let mut audit = asked_once();
        audit.sent(&ask(), &[], Messages::default(), at(0));
        assert_eq!(audit.answered(&usage(100, 20)), report(100, 20, 0));
        let changed = ChangedSince { message: 0, by: "autocompact".to_owned() };
        audit.sent(&ask(), &[], Messages { changed: Some(&changed), has_images: false }, at(0));
        assert_eq!(audit.answered(&usage(30, 20)).missed, 20, "more than that was not sent");
        assert_eq!(audit.reports().len(), 3);
    }

    #[test]
    fn another_process_goes_by_the_record() {
        let audit = asked_once();
        let report = audit.reports().remove(0);
        let recorded = serde_json::to_string(&audit.facts(report).unwrap()).unwrap();
        let recorded: RequestFacts = serde_json::from_str(&recorded).unwrap();
        let mut audit = CacheAudit::recall(std::slice::from_ref(&recorded), Some(at(0)));
        audit.sent(&ask(), &[], Messages::default(), at(90_000));
        assert!(audit.answered(&usage(0, 120)).reason.unwrap().starts_with("time: 90000 s"));
        let mut audit = CacheAudit::recall(&[recorded], Some(at(0)));
        let mut toolless = ask();
        toolless.prefix = prefix("[]", "[]");
        audit.sent(&toolless, &[], Messages::default(), at(1));
        assert!(audit.answered(&usage(0, 120)).reason.unwrap().starts_with("tools: others are offered"));
    }

    #[test]
    fn a_summary_beside_the_conversation_changes_nothing_of_it() {
        let mut audit = asked_once();
        assert_eq!(audit.compared(&ask(), None, at(1)), None);
        let report = audit.answered_beside(&usage(100, 7), None);
        assert_eq!((report.asked, report.missed), (Asked::Summary, 0));
        audit.sent(&ask(), &[], Messages::default(), at(1));
        assert_eq!(audit.answered(&usage(100, 7)).missed, 0);
    }
}
