//! The Messages dialect.

mod errors;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use pelton_wire::pieces::Pieces;
use pelton_wire::stop::StopReason;
use pelton_wire::usage::{Usage, UsageDelta};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(crate) use errors::{from_answer, from_event};

use crate::ask::{Ask, Effort, Prefix, TaskBudget, Thinking, ThinkingDisplay};
use crate::catalogue::{self, Caps, FastKind, LONG_WINDOW_BETA, ThinkingKinds};
use crate::error::ModelError;
use crate::json;
use crate::transport::Body;

/// The fewest tokens a model may be given to think.
const THINKING_TOKENS_MIN: u32 = 1024;

/// The smallest budget that can be set for a task.
const TASK_TOKENS_MIN: u64 = 20_000;

const FAST_BETA: &str = "fast-mode-2026-02-01";
const TASK_BUDGET_BETA: &str = "task-budgets-2026-03-13";

/// How a question is put this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) max_tokens: u32,
    pub(crate) streaming: bool,
    pub(crate) fast: bool,
}

/// Whether a model would answer fast only with a beta that the server will not have.
pub(crate) fn fast_is_refused(ask: &Ask) -> bool {
    let caps = catalogue::caps(&catalogue::resolve(&ask.model));
    ask.refused_betas.contains(FAST_BETA) && caps.is_some_and(|caps| caps.fast == FastKind::Beta)
}

/// The beta features that a request makes use of.
pub(crate) fn betas(ask: &Ask, manner: Manner) -> impl Iterator<Item = &'static str> {
    let model = catalogue::resolve(&ask.model);
    let fast = manner.fast && catalogue::caps(&model).is_some_and(|caps| caps.fast == FastKind::Beta);
    let needed = [
        (fast, FAST_BETA),
        (task_budget_of(ask).is_some(), TASK_BUDGET_BETA),
        (catalogue::wants_long_window_beta(&model), LONG_WINDOW_BETA),
    ];
    needed.into_iter().filter_map(|(needed, name)| needed.then_some(name))
}

/// The body of a request. Only what surrounds the prefix and the messages is made anew. `ids` are what the server calls
/// models that are known by another id, `extra` further fields.
pub(crate) fn body(
    ask: &Ask,
    manner: Manner,
    ids: &BTreeMap<String, String>,
    extra: &Map<String, Value>,
) -> Body {
    let Manner { max_tokens, streaming, fast } = manner;
    let model = catalogue::resolve(&ask.model);
    let caps = catalogue::caps(&model);
    let Prefix { system, tools } = &*ask.prefix;

    let mut pieces = Pieces::default();
    let id = catalogue::api_id(&model);
    let model = Value::from(ids.get(id).map_or(id, String::as_str));
    pieces.push(Bytes::from(format!(r#"{{"model":{model},"max_tokens":{max_tokens},"stream":{streaming}"#)));
    for (name, array) in [(r#","system":"#, system), (r#","tools":"#, tools)] {
        if !is_empty_array(array) {
            pieces.push(Bytes::from_static(name.as_bytes()));
            pieces.push(array.clone());
        }
    }

    let mut tail = String::new();
    // A model that nobody told how hard to try tries as hard as it may.
    let asked = match (ask.effort, ask.effort_max) {
        (Some(asked), Some(most)) => Some(asked.min(most)),
        (asked, most) => asked.or(most),
    };
    let effort = match caps {
        Some(caps) => asked.and_then(|asked| caps.effort(asked)),
        None => asked,
    };
    if let Some(thinking) = thinking(ask.thinking, ask.display, caps, effort, max_tokens) {
        tail += r#","thinking":"#;
        tail += &thinking;
    }
    let effort = effort.map(|effort| format!(r#""effort":"{effort}""#));
    let output: Vec<String> = effort.into_iter().chain(task_budget_of(ask).map(task_budget)).collect();
    if !output.is_empty() {
        tail += &format!(r#","output_config":{{{}}}"#, output.join(","));
    }
    if fast {
        tail += r#","speed":"fast""#;
    }
    if let Some(user_id) = &ask.user_id {
        tail += &format!(r#","metadata":{{"user_id":{}}}"#, Value::from(user_id.as_str()));
    }
    if !extra.is_empty() {
        tail = with_extra(&tail, extra);
    }
    tail += r#","messages":["#;
    pieces.push(Bytes::from(tail));
    pieces.append(&ask.messages);
    pieces.push(Bytes::from_static(b"]}"));
    Body::from(pieces)
}

/// Fields of a request that nobody but the conversation decides.
const OURS: [&str; 6] = ["model", "max_tokens", "stream", "system", "tools", "messages"];

/// Fields, each behind a comma, with further ones: those win, and objects are put together unless theirs is of a type of its own.
fn with_extra(fields: &str, extra: &Map<String, Value>) -> String {
    let object = format!("{{{}}}", fields.strip_prefix(',').unwrap_or(fields));
    let mut all: Map<String, Value> = serde_json::from_str(&object).unwrap_or_default();
    for (name, value) in extra.iter().filter(|(name, _)| !OURS.contains(&name.as_str())) {
        match (all.get_mut(name), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) if !theirs.contains_key("type") => {
                ours.extend(theirs.clone());
            }
            _ => _ = all.insert(name.clone(), value.clone()),
        }
    }
    all.into_iter().map(|(name, value)| format!(",{}:{value}", Value::from(name))).collect()
}

/// A server that will not have the beta will not have the budget.
fn task_budget_of(ask: &Ask) -> Option<TaskBudget> {
    ask.task_budget.filter(|_| !ask.refused_betas.contains(TASK_BUDGET_BETA))
}

fn task_budget(budget: TaskBudget) -> String {
    let total = budget.total.max(TASK_TOKENS_MIN);
    // A budget below the smallest one is the end of it.
    let remaining = budget.remaining.or((budget.total < total).then_some(budget.total));
    let remaining = remaining.map(|left| format!(r#","remaining":{}"#, left.min(budget.total)));
    format!(r#""task_budget":{{"type":"tokens","total":{total}{}}}"#, remaining.unwrap_or_default())
}

fn is_empty_array(array: &[u8]) -> bool {
    array.iter().all(|byte| matches!(byte, b'[' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
}

/// The request's `thinking`: what was asked for, or the nearest thing the model accepts.
fn thinking(
    asked: Thinking,
    display: ThinkingDisplay,
    caps: Option<Caps>,
    effort: Option<Effort>,
    max_tokens: u32,
) -> Option<String> {
    let adaptive = || {
        let display = match display {
            ThinkingDisplay::Omitted => "omitted",
            ThinkingDisplay::Summarized => "summarized",
        };
        Some(format!(r#"{{"type":"adaptive","display":"{display}"}}"#))
    };
    let enabled = |budget: u32| {
        let budget = budget.max(THINKING_TOKENS_MIN).min(max_tokens.saturating_sub(1));
        // Too small an answer to think about.
        (budget >= THINKING_TOKENS_MIN).then(|| format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#))
    };
    let disabled = || Some(r#"{"type":"disabled"}"#.to_owned());
    let Some(caps) = caps else {
        return match asked {
            Thinking::ModelDefault => None,
            Thinking::Adaptive => adaptive(),
            Thinking::Enabled { budget } => enabled(budget),
            Thinking::Disabled => disabled(),
        };
    };
    match (asked, caps.thinking) {
        (Thinking::Disabled, ThinkingKinds::AdaptiveAlways) => adaptive(),
        (Thinking::Disabled, ThinkingKinds::AdaptiveOffUpToHigh) if effort > Some(Effort::High) => adaptive(),
        (Thinking::Disabled, _) => disabled(),
        (Thinking::Enabled { budget }, ThinkingKinds::Budget | ThinkingKinds::AdaptiveOrBudget) => {
            enabled(budget)
        }
        (_, ThinkingKinds::Budget) => enabled(u32::MAX),
        _ => adaptive(),
    }
}

/// An event of the stream. String literals are left as JSON, for whoever needs them.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    MessageStart(Head),
    BlockStart { index: u32, block: &'a str },
    BlockDelta { index: u32, change: Change<'a> },
    BlockStop { index: u32 },
    MessageDelta(Tail),
    MessageStop,
    Ping,
    Error(ModelError),
    Unknown,
}

/// What an event adds to a block. The texts are JSON.
#[derive(Debug)]
pub(crate) enum Change<'a> {
    Text(&'a str),
    Thinking { text: &'a str, estimated_tokens: Option<u64> },
    Signature(&'a str),
    InputJson(&'a str),
    Citation(&'a str),
    Compaction { content: Option<&'a str>, encrypted_content: Option<&'a str> },
    Unknown,
}

/// How a message begins.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) rounds: Option<Rounds>,
}

/// How a message ends, as far as an event says.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) stop_details: Option<Value>,
    pub(crate) usage: UsageDelta,
    pub(crate) rounds: Option<Rounds>,
}

/// The rounds in which a server made an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// What compactions consumed: the totals leave them out.
    pub(crate) compactions: Usage,
    /// The last round that wrote the answer itself.
    pub(crate) last_message: Option<Usage>,
}

/// A message that came whole.
#[derive(Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) head: Head,
    pub(crate) blocks: Vec<&'a str>,
    pub(crate) tail: Tail,
}

/// Reads an event; `name` is the one the stream gave it. `None`: it is no JSON object.
pub(crate) fn event<'a>(name: &str, data: &'a str) -> Option<Event<'a>> {
    // Ends streams of another dialect; relays add it to this one, where it says no more than a ping.
    if data.trim() == "[DONE]" {
        return Some(Event::Ping);
    }
    let said: Said<'a> = serde_json::from_str(data).ok()?;
    let kind = plain(said.kind).unwrap_or(name);
    let index = said.index.and_then(|index| index.get().parse().ok()).unwrap_or_default();
    Some(match kind {
        "content_block_delta" => Event::BlockDelta { index, change: said.delta.change() },
        "content_block_start" => match said.content_block {
            Some(block) => Event::BlockStart { index, block: block.get() },
            None => Event::Unknown,
        },
        "content_block_stop" => Event::BlockStop { index },
        "ping" => Event::Ping,
        "message_start" => Event::MessageStart(said.message.map(head).unwrap_or_default()),
        "message_delta" => Event::MessageDelta(tail(&said.delta.stop(), said.usage)),
        "message_stop" => Event::MessageStop,
        "error" => Event::Error(from_event(data)),
        // Relays report failures in shapes of their own, without a type.
        _ if said.is_error() => Event::Error(from_event(data)),
        _ => Event::Unknown,
    })
}

/// Reads an answer that was not streamed.
pub(crate) fn whole(data: &str) -> Option<Result<Whole<'_>, ModelError>> {
    let said: Said<'_> = serde_json::from_str(data).ok()?;
    if said.is_error() {
        return Some(Err(from_event(data)));
    }
    let message: Message<'_> = serde_json::from_str(data).ok()?;
    let blocks: Vec<&RawValue> = read(message.content)?;
    let stop: Stop<'_> = serde_json::from_str(data).ok()?;
    Some(Ok(Whole {
        head: head_of(&message),
        blocks: blocks.into_iter().map(RawValue::get).collect(),
        tail: tail(&stop, message.usage),
    }))
}

/// Any event. Fields that an event does not need may hold anything.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "if_object")]
    delta: SaidDelta<'a>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

impl Said<'_> {
    fn is_error(&self) -> bool {
        plain(self.kind) == Some("error") || self.error.is_some() || plain(self.object) == Some("error")
    }
}

/// What is added to a block, or to the message.
#[derive(Default, Deserialize)]
struct SaidDelta<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    estimated_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow, default)]
    citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Stop<'a> {
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SaidRounds<'a> {
    #[serde(borrow, default)]
    iterations: Option<&'a RawValue>,
}

impl<'a> SaidDelta<'a> {
    fn change(&self) -> Change<'a> {
        let change = match plain(self.kind).unwrap_or_default() {
            "text_delta" => self.text.map(|text| Change::Text(text.get())),
            "input_json_delta" => self.partial_json.map(|part| Change::InputJson(part.get())),
            "thinking_delta" => self.thinking.map(|text| Change::Thinking {
                text: text.get(),
                estimated_tokens: read(self.estimated_tokens),
            }),
            "signature_delta" => self.signature.map(|signature| Change::Signature(signature.get())),
            "citations_delta" => self.citation.map(|citation| Change::Citation(citation.get())),
            "compaction_delta" => Some(Change::Compaction {
                content: self.content.map(RawValue::get),
                encrypted_content: self.encrypted_content.map(RawValue::get),
            }),
            _ => None,
        };
        change.unwrap_or(Change::Unknown)
    }

    fn stop(&self) -> Stop<'a> {
        Stop { stop_reason: self.stop_reason, stop_details: self.stop_details }
    }
}

/// Reads an object in place, in the same pass as what it is in; anything else says nothing.
fn if_object<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct IfObject<T>(PhantomData<T>);

    impl<'de, T: Default + Deserialize<'de>> Visitor<'de> for IfObject<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(T::default())
        }

        fn visit_unit<E>(self) -> Result<T, E> {
            Ok(T::default())
        }

        fn visit_bool<E>(self, _: bool) -> Result<T, E> {
            Ok(T::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<T, E> {
            Ok(T::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<T, E> {
            Ok(T::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<T, E> {
            Ok(T::default())
        }

        fn visit_str<E>(self, _: &str) -> Result<T, E> {
            Ok(T::default())
        }
    }

    deserializer.deserialize_any(IfObject(PhantomData))
}

fn head(message: &RawValue) -> Head {
    serde_json::from_str(message.get()).map(|message| head_of(&message)).unwrap_or_default()
}

fn head_of(message: &Message<'_>) -> Head {
    let text =
        |literal: Option<&RawValue>| literal.map(|literal| json::text(literal.get())).unwrap_or_default();
    Head {
        id: text(message.id),
        model: text(message.model),
        usage: read(message.usage).unwrap_or_default(),
        rounds: rounds(message.usage),
    }
}

fn tail(stop: &Stop<'_>, usage: Option<&RawValue>) -> Tail {
    let reason = stop.stop_reason.map(|reason| json::text(reason.get())).filter(|reason| !reason.is_empty());
    Tail {
        stop_reason: reason.map(|reason| StopReason::from(reason.as_str())),
        stop_details: read(stop.stop_details),
        usage: read(usage).unwrap_or_default(),
        rounds: rounds(usage),
    }
}

fn rounds(usage: Option<&RawValue>) -> Option<Rounds> {
    let said: SaidRounds<'_> = read(usage)?;
    let all: Vec<&RawValue> = read(said.iterations)?;
    let mut rounds = Rounds::default();
    for round in all {
        let Some(usage) = read::<Usage>(Some(round)) else { continue };
        match read::<Said<'_>>(Some(round)).and_then(|said| plain(said.kind)) {
            Some("compaction") => rounds.compactions.add(&usage),
            Some("message") => rounds.last_message = Some(usage),
            _ => {}
        }
    }
    Some(rounds)
}

/// A name: a string without escapes, or it is none of those we know.
fn plain(part: Option<&RawValue>) -> Option<&str> {
    json::inside(part?.get())
}

/// What a part of an event says, if it says what it should: a strange part does not spoil the rest.
fn read<'a, T: Deserialize<'a>>(part: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(part?.get()).ok()
}

#[cfg(test)]
mod tests;
