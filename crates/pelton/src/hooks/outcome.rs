//! What a hook said, and what several said together. Pure.
//!
//! A command speaks through its exit code and what it printed, a callback through the same JSON object. `Speaker`
//! turns either into what was `Said`; `merge` makes one [`Verdict`] of what all hooks of an event said.

use std::time::Duration;

use serde_json::{Map, Value};

use super::config::OnFailure;
use super::event::{Blocking, HookEvent};
use super::limits::{NOTICE_CHARS_MAX, TERMINAL_BYTES_MAX};

/// The exit code that blocks. Every other code that is not zero is just a failure.
const EXIT_BLOCKS: i32 = 2;

/// How a run of a hook ended.
///
/// ```
/// use pelton::hooks::HookOutcome;
///
/// /// Whether a line about it is worth the reader's time.
/// fn is_news(outcome: HookOutcome) -> bool {
///     !matches!(outcome, HookOutcome::Success | HookOutcome::Background)
/// }
/// assert!(is_news(HookOutcome::TimedOut));
/// assert_eq!(HookOutcome::TimedOut.wire_name(), "cancelled"); // as the protocol calls it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HookOutcome {
    /// It did its work.
    #[default]
    Success,
    /// It did its work and objects.
    Blocked,
    /// It did not start, crashed, or said something nobody understands.
    Failed,
    /// It took too long and was ended.
    TimedOut,
    /// The user interrupted it.
    Cancelled,
    /// It is still running; nobody waits for it.
    Background,
}

/// What several hooks said together about one event.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Verdict {
    /// The run ends after this, and why. Beats everything else.
    pub stop: Option<String>,
    /// What was about to happen must not, or what happened is objected to, and why. Where the answer is a permission,
    /// a refusal is there instead.
    pub block: Option<String>,
    /// Whether the call in question may run.
    pub permission: Option<PermissionAnswer>,
    /// The input the call gets instead of its own.
    pub updated_input: Option<Value>,
    /// What the model should know, in the order of the configuration.
    pub contexts: Vec<String>,
    /// What the user should see.
    pub messages: Vec<String>,
    /// Everything else an event's own answer may hold (`updatedToolOutput`, `sessionTitle`, `updatedPermissions`, …),
    /// the last hook's word for each.
    pub extras: Map<String, Value>,
}

/// An answer to whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionAnswer {
    /// The answer.
    pub decision: PermissionDecision,
    /// Why; for the model when refused, else for the user.
    pub reason: Option<String>,
}

/// Whether a call may run. The later in this list, the stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionDecision {
    /// It may, unless a rule says otherwise.
    Allow,
    /// The user is asked.
    Ask,
    /// The run ends and somebody decides later.
    Defer,
    /// It may not.
    Deny,
}

/// What one hook said.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Said {
    pub outcome: HookOutcome,
    pub stop: Option<String>,
    pub block: Option<String>,
    pub permission: Option<PermissionAnswer>,
    pub updated_input: Option<Value>,
    pub context: Option<String>,
    pub messages: Vec<String>,
    pub terminal_sequence: Option<String>,
    pub extras: Map<String, Value>,
}

/// A hook about to be understood.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speaker<'a> {
    pub event: HookEvent,
    /// The event and its subject: `PreToolUse:Bash`.
    pub name: &'a str,
    /// The hook's command.
    pub label: &'a str,
    pub on_failure: OnFailure,
}

impl HookOutcome {
    /// Its name in the `hook_response` frame, which knows only three.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Success | Self::Background => "success",
            Self::Blocked | Self::Failed => "error",
            Self::TimedOut | Self::Cancelled => "cancelled",
        }
    }
}

/// Makes one verdict of what all hooks of an event said, in the order of the configuration.
pub(super) fn merge(all: impl IntoIterator<Item = Said>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut inputs = 0;
    for said in all {
        verdict.stop = verdict.stop.or(said.stop);
        verdict.block = joined(verdict.block, said.block);
        verdict.permission = stronger(verdict.permission, said.permission);
        if let Some(input) = said.updated_input {
            inputs += 1;
            verdict.updated_input = Some(input);
        }
        verdict.contexts.extend(said.context);
        verdict.messages.extend(said.messages);
        verdict.extras.extend(said.extras);
    }
    if inputs > 1 {
        verdict.messages.push(format!("{inputs} hooks changed the same input; the last one's is used."));
    }
    verdict
}

fn joined(one: Option<String>, two: Option<String>) -> Option<String> {
    match (one, two) {
        (Some(one), Some(two)) if one.ends_with('\n') => Some(one + &two),
        (Some(one), Some(two)) => Some(one + "\n" + &two),
        (one, two) => one.or(two),
    }
}

/// The stronger answer; of two equal ones, both their reasons.
fn stronger(one: Option<PermissionAnswer>, two: Option<PermissionAnswer>) -> Option<PermissionAnswer> {
    match (one, two) {
        (Some(one), Some(two)) if one.decision == two.decision => {
            Some(PermissionAnswer { decision: one.decision, reason: joined(one.reason, two.reason) })
        }
        (Some(one), Some(two)) => Some(if one.decision > two.decision { one } else { two }),
        (one, two) => one.or(two),
    }
}

/// A command that printed this wants to go on in the background; for how long, if it says so.
pub(super) fn goes_on_in_background(line: &str) -> Option<Option<Duration>> {
    let object: Map<String, Value> = serde_json::from_str(line).ok()?;
    let time = object.get("asyncTimeout").and_then(Value::as_u64).map(Duration::from_millis);
    (object.get("async") == Some(&Value::Bool(true))).then_some(time)
}

/// What a command printed.
enum Printed<'a> {
    Object(Map<String, Value>),
    Text(&'a str),
    /// It begins like an object and is none.
    Broken(serde_json::Error),
}

impl<'a> Printed<'a> {
    fn read(stdout: &'a str) -> Self {
        let text = stdout.trim();
        let text = match text.split_once('\n') {
            // Words from before it went into the background; its answer comes after them.
            Some((first, rest)) if goes_on_in_background(first).is_some() => rest.trim(),
            _ => text,
        };
        if !text.starts_with('{') {
            return Self::Text(text);
        }
        match serde_json::from_str(text) {
            Ok(object) => Self::Object(object),
            Err(error) => Self::Broken(error),
        }
    }
}

impl Speaker<'_> {
    /// What a command said that exited. No code means that a signal ended it.
    pub fn exited(&self, code: Option<i32>, stdout: &str, stderr: &str) -> Said {
        let printed = Printed::read(stdout);
        let mut said = match &printed {
            Printed::Object(object) => self.understood(object),
            Printed::Text(_) | Printed::Broken(_) => Said::default(),
        };
        match (code, &printed) {
            (Some(EXIT_BLOCKS), _) => {
                let reason = match &printed {
                    Printed::Object(object) => reason_in(object),
                    _ => None,
                };
                let words = reason.unwrap_or_else(|| {
                    format!(
                        "[{}]: {}",
                        self.label,
                        if stderr.is_empty() { "(no words on stderr)" } else { stderr }
                    )
                });
                // Whatever the object allowed: the code is the last word.
                (said.block, said.permission) = (None, None);
                self.object_to(&mut said, words);
            }
            (Some(0), Printed::Text(text)) => {
                let context = self.event.takes_plain_text() && !text.is_empty();
                said.context = context.then(|| (*text).to_owned());
            }
            // Prose may begin with a brace.
            (Some(0), Printed::Broken(_)) if self.event.takes_plain_text() => {
                said.context = Some(stdout.trim().to_owned());
            }
            (Some(0), Printed::Broken(error)) => {
                return self.failed(&format!("printed JSON that cannot be read: {error}"));
            }
            (code, _) if code != Some(0) && self.event == HookEvent::WorktreeCreate => {
                said.block = Some(format!("[{}]: {stderr}", self.label));
                said.outcome = HookOutcome::Blocked;
            }
            (_, Printed::Object(_)) => {}
            (code, _) => {
                let how = match code {
                    Some(code) => format!("exited with code {code}"),
                    None => "was ended by a signal".to_owned(),
                };
                let line = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let colon = if line.is_empty() { "" } else { ": " };
                return self.failed(&format!("{how}{colon}{}", shortened(line.trim())));
            }
        }
        said
    }

    /// What a callback said.
    pub fn answered(&self, output: &Value) -> Said {
        match output {
            Value::Null => Said::default(),
            Value::Object(object) => self.understood(object),
            _ => self.failed("answered with something that is no object"),
        }
    }

    /// The hook could not do its work.
    pub fn failed(&self, why: &str) -> Said {
        let mut said = Said::default();
        if self.on_failure == OnFailure::Blocks {
            self.object_to(&mut said, format!("The hook [{}] {why}.", shortened(self.label)));
        }
        self.notice(&mut said, why);
        said.outcome = HookOutcome::Failed;
        said
    }

    /// The hook took too long. `waited_for` says that something waits for this hook's permission.
    pub fn timed_out(&self, limit: Duration, waited_for: bool) -> Said {
        let why = format!("did not end within {} seconds and was stopped", limit.as_secs_f64());
        let mut said = Said::default();
        if waited_for || self.on_failure == OnFailure::Blocks {
            self.object_to(&mut said, format!("The hook [{}] {why}.", shortened(self.label)));
        }
        self.notice(&mut said, &why);
        said.outcome = HookOutcome::TimedOut;
        said
    }

    /// The user interrupted it.
    pub fn cancelled() -> Said {
        Said { outcome: HookOutcome::Cancelled, ..Said::default() }
    }

    fn understood(&self, object: &Map<String, Value>) -> Said {
        let mut said = Said::default();
        if object.get("async") == Some(&Value::Bool(true)) {
            return said;
        }
        let text = |said: &mut Said, field: &str| self.text(said, object, field);
        let stop_reason = text(&mut said, "stopReason");
        let reason = text(&mut said, "reason");
        let message = text(&mut said, "systemMessage");
        said.messages.extend(message);
        said.terminal_sequence =
            text(&mut said, "terminalSequence").and_then(|sequence| terminal_words(&sequence));
        match object.get("continue") {
            Some(Value::Bool(false)) => {
                said.stop =
                    Some(stop_reason.unwrap_or_else(|| format!("Stopped by the hook [{}].", self.label)));
            }
            None | Some(Value::Null | Value::Bool(true)) => {}
            Some(_) => self.notice(&mut said, "said `continue` and neither true nor false"),
        }
        match object.get("decision").filter(|decision| !decision.is_null()).map(Value::as_str) {
            Some(Some("block")) => {
                self.object_to(
                    &mut said,
                    reason.unwrap_or_else(|| format!("Blocked by the hook [{}].", self.label)),
                );
            }
            Some(Some("approve")) if self.event.blocking() == Blocking::Denies => {
                said.permission = Some(PermissionAnswer { decision: PermissionDecision::Allow, reason });
            }
            None | Some(Some("approve")) => {}
            Some(_) => self.notice(&mut said, "said a `decision` that is neither `block` nor `approve`"),
        }
        match object.get("hookSpecificOutput") {
            None | Some(Value::Null) => {}
            Some(Value::Object(own)) => self.own_words(&mut said, own),
            Some(_) => self.notice(&mut said, "said a `hookSpecificOutput` that is no object"),
        }
        said
    }

    /// The part of an answer that is particular to the event.
    fn own_words(&self, said: &mut Said, own: &Map<String, Value>) {
        let named = self.text(said, own, "hookEventName");
        if named.is_some_and(|named| named != self.event.name()) {
            return self.notice(said, "answered for another event in `hookSpecificOutput`");
        }
        said.context = self.text(said, own, "additionalContext").filter(|context| !context.is_empty());
        let mut known = vec!["hookEventName", "additionalContext"];
        if self.event.blocking() == Blocking::Denies {
            known.extend(["permissionDecision", "permissionDecisionReason", "updatedInput"]);
            let reason = self.text(said, own, "permissionDecisionReason");
            let decision = self.text(said, own, "permissionDecision");
            match decision.as_deref().map(permission) {
                Some(Some(PermissionDecision::Deny)) => {
                    let refused = || format!("Refused by the hook [{}].", self.label);
                    said.permission = None;
                    self.object_to(said, reason.unwrap_or_else(refused));
                }
                Some(Some(decision)) => {
                    said.outcome = HookOutcome::Success;
                    said.permission = Some(PermissionAnswer { decision, reason });
                }
                Some(None) => {
                    self.notice(
                        said,
                        "said a `permissionDecision` that is none of allow, deny, ask and defer",
                    );
                }
                None => {}
            }
            self.change_input(said, own);
        }
        if self.event == HookEvent::PermissionRequest
            && let Some(decision) = own.get("decision").and_then(Value::as_object)
        {
            known.push("decision");
            self.decide_request(said, decision);
        }
        let rest = own.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        said.extras.extend(rest.map(|(name, value)| (name.clone(), value.clone())));
    }

    /// The answer in the place of the user.
    fn decide_request(&self, said: &mut Said, answer: &Map<String, Value>) {
        let reason = self.text(said, answer, "message");
        match answer.get("behavior").and_then(Value::as_str) {
            Some("allow") => {
                said.permission = Some(PermissionAnswer { decision: PermissionDecision::Allow, reason });
                self.change_input(said, answer);
            }
            Some("deny") => {
                said.outcome = HookOutcome::Blocked;
                said.permission = Some(PermissionAnswer { decision: PermissionDecision::Deny, reason });
            }
            _ => self.notice(said, "said a `behavior` that is neither `allow` nor `deny`"),
        }
        for name in ["updatedPermissions", "interrupt"] {
            if let Some(value) = answer.get(name) {
                said.extras.insert(name.to_owned(), value.clone());
            }
        }
    }

    fn change_input(&self, said: &mut Said, own: &Map<String, Value>) {
        match own.get("updatedInput") {
            None | Some(Value::Null) => {}
            Some(input @ Value::Object(_)) => said.updated_input = Some(input.clone()),
            Some(_) => self.notice(said, "said an `updatedInput` that is no object"),
        }
    }

    /// Objects, in the way that means something for the event.
    fn object_to(&self, said: &mut Said, words: String) {
        match self.event.blocking() {
            Blocking::Denies => {
                let decision = PermissionDecision::Deny;
                said.permission = Some(PermissionAnswer { decision, reason: Some(words) });
                said.outcome = HookOutcome::Blocked;
            }
            Blocking::Blocks => {
                said.block = Some(words);
                said.outcome = HookOutcome::Blocked;
            }
            Blocking::Tells => {
                said.messages.push(format!("{} hook: {}", self.name, words.trim_end()));
                said.outcome = HookOutcome::Failed;
            }
        }
    }

    fn text(&self, said: &mut Said, object: &Map<String, Value>, field: &str) -> Option<String> {
        match object.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.notice(said, &format!("said a `{field}` that is no text"));
                None
            }
        }
    }

    fn notice(&self, said: &mut Said, what: &str) {
        said.messages.push(format!("{} hook [{}] {what}.", self.name, shortened(self.label)));
    }
}

/// Of what a hook wants said to the terminal, the sequences that cannot do harm there: titles (0, 1, 2), notifications (9, 99,
/// 777) and the bell. Everything else of it is left out.
fn terminal_words(sequence: &str) -> Option<String> {
    const COMMANDS: [&str; 6] = ["0", "1", "2", "9", "99", "777"];
    const BELL: char = '\u{7}';
    let mut kept = String::new();
    let mut rest = sequence;
    while let Some(at) = rest.find([BELL, '\u{1b}']) {
        let here = &rest[at..];
        let Some(body) = here.strip_prefix("\u{1b}]") else {
            if here.starts_with(BELL) {
                kept.push(BELL);
            }
            rest = &here[1..];
            continue;
        };
        let end = body.find(|c: char| c.is_control()).unwrap_or(body.len());
        let (words, after) = body.split_at(end);
        let ends = [("\u{7}", 1), ("\u{1b}\\", 2)];
        let ended = ends.iter().find(|(end, _)| after.starts_with(end));
        let command = words.split(';').next().unwrap_or_default();
        if let Some((end, _)) = ended
            && COMMANDS.contains(&command)
            && words.len() > command.len()
        {
            kept.push_str(&format!("\u{1b}]{words}{end}"));
        }
        rest = &after[ended.map_or(0, |(_, bytes)| *bytes)..];
    }
    (!kept.is_empty() && kept.len() <= TERMINAL_BYTES_MAX).then_some(kept)
}

fn permission(word: &str) -> Option<PermissionDecision> {
    match word {
        "allow" => Some(PermissionDecision::Allow),
        "ask" => Some(PermissionDecision::Ask),
        "defer" => Some(PermissionDecision::Defer),
        "deny" => Some(PermissionDecision::Deny),
        _ => None,
    }
}

/// The reason an object gives, wherever it gives it.
fn reason_in(object: &Map<String, Value>) -> Option<String> {
    let own = object.get("hookSpecificOutput").and_then(|own| own.get("permissionDecisionReason"));
    own.or_else(|| object.get("reason"))?.as_str().map(str::to_owned)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(NOTICE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
