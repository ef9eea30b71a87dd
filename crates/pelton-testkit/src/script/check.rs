//! What a script may not say, whether it was built or read. Checked when it is read and again when it starts.

use super::part::{Fragments, Kind, Part};
use super::travel::{Chunk, Fault, Pace, Place};
use super::when::Matcher;
use super::{Answer, PAUSE_MS_MAX, REPLY_ITEMS_MAX, STEPS_MAX, Script, ScriptError, Status, Step, Times};
use crate::server::perform::NO_BODY;
use std::time::Duration;

/// Checks every step and compiles its conditions.
pub(crate) fn validate(script: &Script) -> Result<Vec<Matcher>, ScriptError> {
    if script.steps.len() > STEPS_MAX {
        let problem = format!("{} steps are more than {STEPS_MAX}", script.steps.len());
        return Err(ScriptError::new("script", "steps", problem, "use `times` for repetition"));
    }
    let numbered = script.steps.iter().enumerate();
    numbered.map(|(index, step)| validate_step(step, &format!("step {}", index + 1))).collect()
}

fn validate_step(step: &Step, place: &str) -> Result<Matcher, ScriptError> {
    let fail = |field: &str, problem: String, way_out: &str| {
        Err(ScriptError::new(place, field, problem, way_out.to_owned()))
    };
    if let Some(word) = step.staging.misplaced.first() {
        let (here, there) = match step.answer {
            Answer::Reply(_) => ("reply", "status"),
            Answer::Status(_) => ("status", "reply"),
        };
        return fail(
            word,
            format!("a `{here}` step has no `{word}`"),
            &format!("it belongs to a `{there}` step"),
        );
    }
    if step.times == Times::AtMost(0) {
        return fail("times", "a step that never plays".to_owned(), "write `times: 1` or remove the step");
    }
    for (name, value) in &step.headers {
        let legal_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(legal_name) || value.contains(['\r', '\n', '\0']) {
            let problem = format!("`{name}` is not a header HTTP can carry");
            return fail(
                "headers",
                problem,
                "use letters, digits and `-` in names and no line breaks in values",
            );
        }
        if ["content-length", "transfer-encoding", "connection"].contains(&name.to_ascii_lowercase().as_str())
        {
            let problem = format!("`{name}` is set by the server");
            return fail("headers", problem, "use `fault` to break the transfer");
        }
    }
    validate_pace(&step.staging.pace, place)?;
    validate_faults(step, place)?;
    match &step.answer {
        Answer::Status(status) if !(200..=599).contains(&status.status) => {
            return fail("status", format!("{} is no final HTTP status", status.status), "write 200 to 599");
        }
        Answer::Status(status) => validate_status(status, place)?,
        Answer::Reply(reply) => validate_parts(&reply.parts, place)?,
    }
    Matcher::new(&step.when, place)
}

fn validate_status(status: &Status, place: &str) -> Result<(), ScriptError> {
    let code = status.status;
    let fail = |field: &str, problem: &str, way_out: &str| {
        Err(ScriptError::new(place, field, format!("{code} {problem}"), way_out))
    };
    if NO_BODY.contains(&code) && status.body.is_some() {
        return fail("body", "has no body", "remove it, or use another status");
    }
    for (field, said) in [("message", &status.message), ("error_type", &status.kind)] {
        if said.is_none() {
            continue;
        }
        if code < ERROR_STATUS_MIN {
            return fail(field, "is no error", "write the whole answer as `body`");
        }
        if status.body.is_some() {
            return fail(field, "has a `body` that says it all", "keep one of them");
        }
    }
    Ok(())
}

/// Statuses from here on carry the API's error body unless the script gives another.
const ERROR_STATUS_MIN: u16 = 400;

fn validate_pace(pace: &Pace, place: &str) -> Result<(), ScriptError> {
    if pace.chunk == Chunk::Bytes(0) {
        let problem = "writes of no bytes never end";
        return Err(ScriptError::new(place, "pace.chunk_bytes", problem, "write 1 or more"));
    }
    for (field, wait) in [("pace.delay_ms", pace.delay), ("pace.jitter_ms", pace.jitter)] {
        validate_wait(wait, field, place)?;
    }
    Ok(())
}

fn validate_wait(wait: Duration, field: &str, place: &str) -> Result<(), ScriptError> {
    if wait > Duration::from_millis(PAUSE_MS_MAX) {
        let problem = format!("longer than {PAUSE_MS_MAX} ms");
        return Err(ScriptError::new(place, field, problem, "use a gate or a stall to wait without end"));
    }
    Ok(())
}

fn validate_faults(step: &Step, place: &str) -> Result<(), ScriptError> {
    let faults = &step.staging.faults;
    if faults.iter().filter(|fault| matches!(fault, Fault::Ends(..))).count() > 1 {
        let problem = "an answer can end early only once";
        return Err(ScriptError::new(place, "fault", problem, "keep one of the ends"));
    }
    let counts_events =
        |fault: &Fault| matches!(fault, Fault::MalformedJsonAtEvent(_) | Fault::Ends(_, Place::Events(_)));
    if matches!(step.answer, Answer::Status(_)) && faults.iter().any(counts_events) {
        let problem = "a status has no events";
        return Err(ScriptError::new(
            place,
            "fault",
            problem,
            "count bytes instead, as in `cut_after_bytes`",
        ));
    }
    if faults.contains(&Fault::MalformedJsonAtEvent(0)) {
        let problem = "events are counted from 1";
        return Err(ScriptError::new(place, "fault.malformed_json_at_event", problem, "write 1 or more"));
    }
    Ok(())
}

fn validate_parts(parts: &[Part], place: &str) -> Result<(), ScriptError> {
    if parts.len() > REPLY_ITEMS_MAX {
        let problem = format!("{} items are more than {REPLY_ITEMS_MAX}", parts.len());
        return Err(ScriptError::new(place, "reply", problem, "use longer texts in fewer items"));
    }
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}, reply item {}", index + 1);
        validate_part(part, &place)?;
        if ends_reply(part) && index + 1 < parts.len() {
            let problem = "nothing plays after an error";
            return Err(ScriptError::new(place, "error", problem, "remove the items after it"));
        }
    }
    Ok(())
}

fn ends_reply(part: &Part) -> bool {
    matches!(part.kind, Kind::Error { .. }) || part.after.iter().any(|(_, inner)| ends_reply(inner))
}

fn validate_part(part: &Part, place: &str) -> Result<(), ScriptError> {
    let kind = part.kind.field();
    let fail =
        |field: &str, problem: String, way_out: &str| Err(ScriptError::new(place, field, problem, way_out));
    match &part.kind {
        Kind::Pause(wait) => validate_wait(*wait, "pause_ms", place)?,
        Kind::Tool { name, .. } if name.is_empty() => {
            return fail("tool", "a tool needs a name".to_owned(), "write `tool: Read`");
        }
        Kind::RawBlock { block, .. } if !block["type"].is_string() => {
            return fail(
                "raw_block",
                "a block needs a type".to_owned(),
                "write `raw_block: {type: future_block}`",
            );
        }
        Kind::Comment(text) if text.contains(['\r', '\n']) => {
            return fail("comment", "a comment is one line".to_owned(), "make one item of each line");
        }
        Kind::Event { name, data } => {
            let broken = |text: &str| text.contains(['\r', '\n']);
            if broken(name) || data.as_str().is_some_and(broken) {
                return fail(
                    "event",
                    "a line break would end the event".to_owned(),
                    r"write `\n` inside JSON",
                );
            }
        }
        _ => {}
    }
    if part.fragments != Fragments::Natural && !part.is_fragmented() {
        let way_out = "remove it; text, thinking and tool items can be cut";
        return fail("fragments", format!("a `{kind}` item is not sent in fragments"), way_out);
    }
    match &part.fragments {
        Fragments::Count(0) => return fail("fragments", "no pieces at all".to_owned(), "write 1 or more"),
        Fragments::At(places) if !places.is_sorted() => {
            return fail("fragments", "the places go backwards".to_owned(), "write them in rising order");
        }
        _ => {}
    }
    if part.id.is_some() && !matches!(part.kind, Kind::Tool { .. }) {
        return fail("id", format!("a `{kind}` item has no id"), "remove it; only tool items have one");
    }
    if part.signature.is_some() && !matches!(part.kind, Kind::Thinking(_)) {
        return fail(
            "signature",
            format!("a `{kind}` item has no signature"),
            "remove it; only thinking has one",
        );
    }
    if !part.after.is_empty() && !part.is_fragmented() {
        let way_out = "put the items next to it in the list";
        return fail("after", format!("nothing plays inside a `{kind}` item"), way_out);
    }
    for (count, inner) in &part.after {
        let place = format!("{place}, after fragment {count}");
        if inner.is_block() {
            let problem = format!("a `{}` cannot be inside another block", inner.kind.field());
            let way_out = "use gate, pause_ms, ping, comment, event or error";
            return Err(ScriptError::new(place, inner.kind.field(), problem, way_out));
        }
        validate_part(inner, &place)?;
    }
    Ok(())
}
