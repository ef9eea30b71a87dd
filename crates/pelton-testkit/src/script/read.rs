//! The script file: YAML or JSON to a [`Script`].

use super::fields::{Fields, list_of, suggest};
use super::lines::locate;
use super::parse::parse;
use super::part::{self, Fragments, Kind, Part};
use super::travel::{Chunk, EarlyEnd, Fault, LineEnd, Pace, Place};
use super::when::When;
use super::{SCRIPT_BYTES_MAX, Script, ScriptError, Step, validate};
use crate::strict::{Rule, Strictness};
use serde_json::Value;
use std::time::Duration;

pub(super) const SCRIPT_FIELDS: &[&str] = &["model", "strict", "seed", "vars", "steps"];
pub(super) const STEP_FIELDS: &[&str] = &[
    "when",
    "times",
    "always",
    "reply",
    "stop",
    "stop_sequence",
    "stop_details",
    "usage",
    "opening_ping",
    "non_streaming",
    "status",
    "headers",
    "body",
    "message",
    "error_type",
    "pace",
    "line_end",
    "bom",
    "gzip",
    "fault",
];
pub(super) const WHEN_FIELDS: &[&str] = &[
    "nth",
    "model",
    "last_tool_result",
    "last_user_text",
    "tool",
    "system",
    "has_tool",
    "path",
    "stream",
    "header",
];
/// The field that says what an item is; exactly one per item.
pub(super) const ITEM_KINDS: &[&str] = &[
    "text",
    "thinking",
    "tool",
    "redacted_thinking",
    "raw_block",
    "gate",
    "pause_ms",
    "ping",
    "comment",
    "event",
    "error",
];
pub(super) const ITEM_DETAILS: &[&str] =
    &["fragments", "after", "id", "input", "input_json", "signature", "deltas"];
/// Name, end, and what its number counts.
pub(super) type CountedFault = (&'static str, EarlyEnd, fn(usize) -> Place);
pub(super) const FAULTS_COUNTED: &[CountedFault] = &[
    ("cut_after_bytes", EarlyEnd::Cut, Place::Bytes),
    ("cut_after_events", EarlyEnd::Cut, Place::Events),
    ("end_after_bytes", EarlyEnd::End, Place::Bytes),
    ("end_after_events", EarlyEnd::End, Place::Events),
    ("reset_after_bytes", EarlyEnd::Reset, Place::Bytes),
    ("reset_after_events", EarlyEnd::Reset, Place::Events),
    ("stall_after_bytes", EarlyEnd::Stall, Place::Bytes),
    ("stall_after_events", EarlyEnd::Stall, Place::Events),
];
pub(super) const FAULTS_PLAIN: &[(&str, EarlyEnd, Place)] = &[
    ("close_before_headers", EarlyEnd::Cut, Place::BeforeHeaders),
    ("reset_before_headers", EarlyEnd::Reset, Place::BeforeHeaders),
    ("stall_before_headers", EarlyEnd::Stall, Place::BeforeHeaders),
    ("headers_then_stall", EarlyEnd::Stall, Place::Bytes(0)),
    ("empty_stream", EarlyEnd::End, Place::Events(0)),
];
pub(super) const MALFORMED: &str = "malformed_json_at_event";

pub(super) fn script(text: &str) -> Result<Script, ScriptError> {
    if text.len() > SCRIPT_BYTES_MAX {
        let problem = format!("{} bytes are more than the {SCRIPT_BYTES_MAX} a script may have", text.len());
        return Err(ScriptError::new("script", "", problem, "split it into several scripts"));
    }
    // Some editors begin a file with a mark that is no part of it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value = parse(text)?;
    from_value(&value)
        .map_err(|error| ScriptError { line: locate(text, &error.place, &error.field), ..error })
}

fn from_value(value: &Value) -> Result<Script, ScriptError> {
    let fields = Fields::open(value, "script", SCRIPT_FIELDS)?;
    let mut script = Script::new();
    script.model = fields.text("model")?;
    script.seed = fields.number("seed")?.unwrap_or_default();
    script.vars = fields.pairs("vars")?.into_iter().collect();
    script.strictness = strictness(&fields)?;
    let way_out = "write `steps:` with one `- reply: ...` or `- status: ...` per request";
    let steps = fields.list("steps")?.ok_or_else(|| fields.error("steps", "missing", way_out))?;
    for (index, value) in steps.iter().enumerate() {
        script.steps.push(step(value, &format!("step {}", index + 1))?);
    }
    validate(&script)?;
    Ok(script)
}

fn strictness(fields: &Fields<'_>) -> Result<Strictness, ScriptError> {
    let way_out = "write `strict: false` or `strict: {off: [tool-pairs]}`";
    match fields.get("strict") {
        None | Some(Value::Bool(true)) => return Ok(Strictness::default()),
        Some(Value::Bool(false)) => return Ok(Strictness::none()),
        Some(Value::Object(_)) => {}
        Some(other) => return Err(fields.wrong("strict", "false or a list of rules", other, way_out)),
    }
    let Some(lists) = fields.open_field("strict", &["off", "only"])? else {
        return Ok(Strictness::default());
    };
    let rules = |list: &str| -> Result<Option<Vec<Rule>>, ScriptError> {
        let Some(names) = lists.list(list)? else { return Ok(None) };
        let rule = |name: &Value| {
            let said = name.as_str().unwrap_or_default();
            let known: Vec<String> = Rule::ALL.iter().map(|rule| rule.name()).collect();
            let hint = || suggest(said, &known.iter().map(String::as_str).collect::<Vec<_>>());
            let found = Rule::ALL.iter().copied().find(|rule| rule.name() == said);
            found.ok_or_else(|| lists.error(list, format!("there is no rule {name}"), hint()))
        };
        names.iter().map(rule).collect::<Result<_, _>>().map(Some)
    };
    match (rules("off")?, rules("only")?) {
        (Some(_), Some(_)) => {
            Err(lists.error("only", "`off` and `only` exclude each other", "keep one of them"))
        }
        (Some(off), None) => Ok(off.into_iter().fold(Strictness::default(), Strictness::relax)),
        (None, Some(only)) => Ok(Strictness::only(&only)),
        (None, None) => Ok(Strictness::default()),
    }
}

fn step(value: &Value, place: &str) -> Result<Step, ScriptError> {
    let fields = Fields::open(value, place, STEP_FIELDS)?;
    let mut step = match (fields.get("reply"), fields.number("status")?) {
        (Some(_), Some(_)) => {
            return Err(fields.error(
                "status",
                "a step is a reply or a status, not both",
                "make two steps of it",
            ));
        }
        (Some(reply), None) => Step::reply(items(reply, &fields)?),
        (None, Some(status)) => Step::status(u16::try_from(status).map_err(|_| {
            fields.error("status", format!("{status} is no final HTTP status"), "write 200 to 599")
        })?),
        (None, None) if fields.has("fault") => Step::reply([]),
        (None, None) => {
            let way_out = "write `reply: [...]`, `status: 529` or `fault: {...}`";
            return Err(fields.error("", "the step says nothing to answer", way_out));
        }
    };
    if let Some(conditions) = fields.open_field("when", WHEN_FIELDS)? {
        step.when = when(&conditions)?;
    }
    step = repetition(step, &fields)?;
    step = answer_details(step, &fields)?;
    for (name, value) in fields.pairs("headers")? {
        step = step.header(name, value);
    }
    travel(step, &fields)
}

fn repetition(step: Step, fields: &Fields<'_>) -> Result<Step, ScriptError> {
    match (fields.number("times")?, fields.flag("always")?) {
        (Some(_), Some(true)) => {
            Err(fields.error("always", "`times` and `always` exclude each other", "keep one of them"))
        }
        (Some(times), _) => Ok(step.times(u32::try_from(times).unwrap_or(u32::MAX))),
        (None, Some(true)) => Ok(step.always()),
        (None, _) => Ok(step),
    }
}

/// What belongs to a reply or to a status; a word about the wrong one is caught when the script is checked.
fn answer_details(mut step: Step, fields: &Fields<'_>) -> Result<Step, ScriptError> {
    if let Some(reason) = fields.text("stop")? {
        step = step.stop(reason);
    }
    if let Some(sequence) = fields.text("stop_sequence")? {
        step = step.stop_sequence(sequence);
    }
    if let Some(details) = fields.get("stop_details") {
        step = step.stop_details(details.clone());
    }
    if let Some(usage) = fields.open_field("usage", &[])? {
        for (figure, value) in usage.entries() {
            step = step.usage(figure.clone(), value.clone());
        }
    }
    if fields.flag("opening_ping")? == Some(false) {
        step = step.no_opening_ping();
    }
    if fields.word("non_streaming", &[("ok", false), ("refuse", true)])? == Some(true) {
        step = step.refuse_non_streaming();
    }
    if let Some(body) = fields.get("body") {
        step = step.body(body.clone());
    }
    if let Some(message) = fields.text("message")? {
        step = step.message(message);
    }
    if let Some(kind) = fields.text("error_type")? {
        step = step.error_type(kind);
    }
    Ok(step)
}

fn travel(mut step: Step, fields: &Fields<'_>) -> Result<Step, ScriptError> {
    if let Some(pace) = fields.open_field("pace", &["chunk_bytes", "delay_ms", "jitter_ms"])? {
        let chunk = match pace.get("chunk_bytes") {
            None => Chunk::Event,
            Some(Value::String(word)) if word == "random" => Chunk::Random,
            Some(_) => Chunk::Bytes(pace.size("chunk_bytes")?.unwrap_or_default()),
        };
        let wait = |name| Ok(Duration::from_millis(pace.number(name)?.unwrap_or_default()));
        step = step.pace(Pace { chunk, delay: wait("delay_ms")?, jitter: wait("jitter_ms")? });
    }
    let line_ends =
        [("lf", LineEnd::Lf), ("crlf", LineEnd::CrLf), ("cr", LineEnd::Cr), ("mixed", LineEnd::Mixed)];
    if let Some(line_end) = fields.word("line_end", &line_ends)? {
        step = step.line_end(line_end);
    }
    if fields.flag("bom")? == Some(true) {
        step = step.bom();
    }
    if fields.flag("gzip")? == Some(true) {
        step = step.gzip();
    }
    let counted = FAULTS_COUNTED.iter().map(|(name, ..)| *name);
    let plain = FAULTS_PLAIN.iter().map(|(name, ..)| *name);
    let known: Vec<&str> = counted.chain(plain).chain([MALFORMED]).collect();
    if let Some(faults) = fields.open_field("fault", &known)? {
        if let Some(event) = faults.size(MALFORMED)? {
            step = step.fault(Fault::MalformedJsonAtEvent(event));
        }
        for (name, end, place) in FAULTS_COUNTED {
            if let Some(count) = faults.size(name)? {
                step = step.fault(Fault::Ends(*end, place(count)));
            }
        }
        for (name, end, place) in FAULTS_PLAIN {
            if faults.flag(name)? == Some(true) {
                step = step.fault(Fault::Ends(*end, *place));
            }
        }
    }
    Ok(step)
}

fn when(fields: &Fields<'_>) -> Result<When, ScriptError> {
    Ok(When {
        nth: fields.number("nth")?.map(|nth| u32::try_from(nth).unwrap_or(u32::MAX)),
        model: fields.text("model")?,
        last_tool_result: fields.text("last_tool_result")?,
        last_user_text: fields.text("last_user_text")?,
        tool: fields.text("tool")?,
        system: fields.text("system")?,
        has_tool: fields.text("has_tool")?,
        path: fields.text("path")?,
        stream: fields.flag("stream")?,
        headers: fields.pairs("header")?,
    })
}

/// A reply is a list of items; one text alone may stand without the list.
fn items(reply: &Value, fields: &Fields<'_>) -> Result<Vec<Part>, ScriptError> {
    if let Value::String(text) = reply {
        return Ok(vec![part::text(text)]);
    }
    let list = fields.list("reply")?.unwrap_or_default();
    let place = |index| format!("{}, reply item {}", fields.place(), index + 1);
    list.iter().enumerate().map(|(index, value)| item(value, &place(index))).collect()
}

fn item(value: &Value, place: &str) -> Result<Part, ScriptError> {
    if let Value::String(text) = value {
        return Ok(part::text(text));
    }
    let known: Vec<&str> = ITEM_KINDS.iter().chain(ITEM_DETAILS).copied().collect();
    let fields = Fields::open(value, place, &known)?;
    let kinds: Vec<&str> = ITEM_KINDS.iter().copied().filter(|kind| fields.has(kind)).collect();
    let [kind] = kinds.as_slice() else {
        let way_out = format!("write exactly one of {}", list_of(ITEM_KINDS));
        let problem = if kinds.is_empty() { "the item says nothing" } else { "the item says several things" };
        return Err(fields.error(kinds.get(1).unwrap_or(&""), problem, way_out));
    };
    let mut part = kind_of_item(kind, &fields)?;
    part.id = fields.text("id")?;
    part.signature = fields.text("signature")?;
    if let Some(fragments) = fragments(&fields)? {
        part.fragments = fragments;
    }
    part.after = after(&fields)?;
    for (detail, kind) in [("input", "tool"), ("input_json", "tool"), ("deltas", "raw_block")] {
        if fields.has(detail) && !fields.has(kind) {
            let way_out = format!("remove it, or make the item a `{kind}`");
            return Err(fields.error(detail, format!("only a `{kind}` item has this"), way_out));
        }
    }
    Ok(part)
}

fn kind_of_item(kind: &str, fields: &Fields<'_>) -> Result<Part, ScriptError> {
    let text = |name: &str| Ok(fields.text(name)?.unwrap_or_default());
    Ok(match kind {
        "text" => part::text(text("text")?),
        "thinking" => part::thinking(text("thinking")?),
        "redacted_thinking" => part::redacted_thinking(text("redacted_thinking")?),
        "tool" => tool(&text("tool")?, fields)?,
        "raw_block" => {
            let deltas = fields.list("deltas")?.unwrap_or_default();
            part::raw_block_with_deltas(fields.get("raw_block").cloned().unwrap_or_default(), deltas.to_vec())
        }
        "gate" => part::gate(text("gate")?),
        "pause_ms" => part::pause(Duration::from_millis(fields.number("pause_ms")?.unwrap_or_default())),
        "comment" => part::comment(text("comment")?),
        "event" => {
            let event = fields.open_field("event", &["name", "data"])?;
            let name = event.as_ref().map(|event| event.text("name")).transpose()?.flatten();
            let data = event.as_ref().and_then(|event| event.get("data")).cloned().unwrap_or_default();
            let way_out = "write `event: {name: future_event, data: {...}}`";
            part::event(name.ok_or_else(|| fields.error("event.name", "missing", way_out))?, data)
        }
        "error" => match fields.get("error") {
            Some(Value::String(kind)) => part::error(kind, ""),
            _ => {
                let error = fields.open_field("error", &["type", "message"])?;
                let said = |name| Ok(error.as_ref().map(|error| error.text(name)).transpose()?.flatten());
                let kind = said("type")?.unwrap_or_else(|| "api_error".to_owned());
                part::error(kind, said("message")?.unwrap_or_default())
            }
        },
        _ => {
            if fields.flag("ping")? == Some(false) {
                return Err(fields.error("ping", "a ping that is not sent", "remove the item"));
            }
            part::ping()
        }
    })
}

fn tool(name: &str, fields: &Fields<'_>) -> Result<Part, ScriptError> {
    match (fields.get("input"), fields.text("input_json")?) {
        (Some(_), Some(_)) => {
            Err(fields.error("input_json", "`input` and `input_json` exclude each other", "keep one of them"))
        }
        (_, Some(json)) => Ok(part::tool_with_json(name, json)),
        (Some(input @ Value::Object(_)), None) => Ok(part::tool(name, input.clone())),
        (None, None) => Ok(part::tool(name, Value::Object(serde_json::Map::new()))),
        (Some(other), None) => {
            let way_out =
                "write fields below `input:`, or use `input_json` for a text that is no JSON object";
            Err(fields.wrong("input", "fields", other, way_out))
        }
    }
}

fn fragments(fields: &Fields<'_>) -> Result<Option<Fragments>, ScriptError> {
    let way_out = "write a number of pieces, a list of places like `[2, 5]`, `random`, `whole` or `natural`";
    let Some(value) = fields.get("fragments") else { return Ok(None) };
    let wrong = || fields.wrong("fragments", "where to cut", value, way_out);
    Ok(Some(match value {
        Value::String(word) => match word.as_str() {
            "random" => Fragments::Random,
            "whole" => Fragments::Count(1),
            "natural" => Fragments::Natural,
            _ => {
                let hint = suggest(word, &["random", "whole", "natural"]);
                return Err(fields.error("fragments", format!("unknown word `{word}`"), hint));
            }
        },
        Value::Array(places) => {
            let place = |value: &Value| value.as_u64().and_then(|place| usize::try_from(place).ok());
            Fragments::At(places.iter().map(place).collect::<Option<_>>().ok_or_else(wrong)?)
        }
        Value::Number(_) => Fragments::Count(fields.size("fragments")?.ok_or_else(wrong)?),
        _ => return Err(wrong()),
    }))
}

/// `after: {2: {gate: slow}}`, or a list of items after the same fragment.
fn after(fields: &Fields<'_>) -> Result<Vec<(usize, Part)>, ScriptError> {
    let Some(places) = fields.open_field("after", &[])? else { return Ok(Vec::new()) };
    let mut parts = Vec::new();
    for (key, value) in places.entries() {
        let way_out = "write a number of fragments: `after: {1: {gate: slow}}`";
        let count: usize =
            key.parse().map_err(|_| fields.error(&format!("after.{key}"), "not a number", way_out))?;
        let place = format!("{}, after fragment {count}", fields.place());
        match value {
            Value::Array(values) => {
                for value in values {
                    parts.push((count, item(value, &place)?));
                }
            }
            value => parts.push((count, item(value, &place)?)),
        }
    }
    Ok(parts)
}

impl Kind {
    /// The field that makes such an item, for error messages.
    pub(super) fn field(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Thinking(_) => "thinking",
            Self::Tool { .. } => "tool",
            Self::RedactedThinking(_) => "redacted_thinking",
            Self::RawBlock { .. } => "raw_block",
            Self::Gate(_) => "gate",
            Self::Pause(_) => "pause_ms",
            Self::Ping => "ping",
            Self::Comment(_) => "comment",
            Self::Event { .. } => "event",
            Self::Error { .. } => "error",
        }
    }
}
