//! From the JSON of a settings file to entries, with the place of everything that is wrong.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{CommandHook, Entry, Hook, OnFailure, Problem, Severity, Shell, Source, Waiting};
use crate::hooks::event::HookEvent;
use crate::hooks::limits::{CONFIGURED_MAX, TIME_MAX};
use crate::hooks::matcher::Matcher;
use crate::limits::SHELL_COMMAND_BYTES_MAX;

/// Kinds of hooks that exist elsewhere and are not built here.
const KINDS_NOT_BUILT: &[&str] = &["http", "mcp_tool", "prompt", "agent"];

/// Fields of a command hook.
const COMMAND_FIELDS: &[&str] =
    &["type", "command", "args", "async", "asyncRewake", "shell", "if", "timeout", "statusMessage", "once"];

/// The entries of a `hooks` object, at most `room` of them.
pub(super) fn settings(hooks: &Value, source: &Source, room: usize) -> (Vec<Entry>, Vec<Problem>) {
    let mut reader = Reader { source, room, entries: Vec::new(), problems: Vec::new() };
    match hooks {
        Value::Null => {}
        Value::Object(events) => events.iter().for_each(|(name, groups)| reader.event(name, groups)),
        _ => reader.error("hooks", "must be an object with the names of events"),
    }
    (reader.entries, reader.problems)
}

struct Reader<'a> {
    source: &'a Source,
    room: usize,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
}

/// The field has a value of the wrong kind; that was said already.
struct Wrong;

impl Reader<'_> {
    fn event(&mut self, name: &str, groups: &Value) {
        let place = format!("hooks.{name}");
        let Some(event) = HookEvent::from_name(name) else {
            return self.warn(&place, "is no event we know: its hooks are never called");
        };
        let Some(groups) = groups.as_array() else {
            return self.error(&place, "must be a list of objects with `matcher` and `hooks`");
        };
        for (at, group) in groups.iter().enumerate() {
            self.group(event, &format!("{place}[{at}]"), group);
        }
    }

    fn group(&mut self, event: HookEvent, place: &str, group: &Value) {
        let Some(group) = group.as_object() else {
            return self.error(place, "must be an object with `matcher` and `hooks`");
        };
        let Ok(matcher) = self.field(place, group, "matcher", "a text", Value::as_str) else { return };
        let matcher = matcher.unwrap_or_default();
        if event.matched_by().is_none() && !matches!(matcher, "" | "*") {
            self.warn(&format!("{place}.matcher"), "has no effect: this event has nothing to match");
        }
        let matcher = match Matcher::read(matcher, event) {
            Ok(matcher) => matcher,
            Err(why) => return self.error(&format!("{place}.matcher"), &why),
        };
        let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
            return self.error(&format!("{place}.hooks"), "must be a list of hooks");
        };
        for (at, hook) in hooks.iter().enumerate() {
            let place = format!("{place}.hooks[{at}]");
            if self.entries.len() >= self.room {
                return self
                    .error(&place, &format!("is left out: there are more than {CONFIGURED_MAX} hooks"));
            }
            let Some(hook) = hook.as_object() else {
                self.error(&place, "must be an object with `type` and `command`");
                continue;
            };
            if let Ok(Some(entry)) = self.hook(event, &matcher, &place, hook) {
                self.entries.push(entry);
            }
        }
    }

    fn hook(
        &mut self,
        event: HookEvent,
        matcher: &Matcher,
        place: &str,
        hook: &Map<String, Value>,
    ) -> Result<Option<Entry>, Wrong> {
        match hook.get("type").and_then(Value::as_str) {
            Some("command") => {}
            Some(kind) if KINDS_NOT_BUILT.contains(&kind) => {
                self.warn(
                    place,
                    &format!("is never called: hooks of the type `{kind}` are not supported yet"),
                );
                return Ok(None);
            }
            Some(kind) => {
                self.error(&format!("{place}.type"), &format!("is `{kind}`; it must be `command`"));
                return Err(Wrong);
            }
            None => {
                self.error(&format!("{place}.type"), "is missing; it must be `command`");
                return Err(Wrong);
            }
        }
        // All fields are read before any of them gives up, so that every mistake is named at once.
        let command = self.command(place, hook);
        let timeout = self.timeout(place, hook);
        let condition = self.field(place, hook, "if", "a permission rule", Value::as_str);
        let status = self.field(place, hook, "statusMessage", "a text", Value::as_str);
        let once = self.field(place, hook, "once", "true or false", Value::as_bool);
        for name in hook.keys().filter(|name| !COMMAND_FIELDS.contains(&name.as_str())) {
            self.warn(&format!("{place}.{name}"), "is no field of a command hook");
        }
        let (command, timeout, condition, status, once) = (command?, timeout?, condition?, status?, once?);
        let once = once == Some(true);
        if once && *self.source != Source::Skill {
            self.warn(&format!("{place}.once"), "has no effect: only hooks of skills are called once");
        }
        if condition.is_some() && !event.is_about_a_call() {
            let why =
                "can only be met by a call of a tool, and this event is about none: the hook is never called";
            self.warn(&format!("{place}.if"), why);
        }
        Ok(Some(Entry {
            event,
            matcher: matcher.clone(),
            condition: condition.map(str::to_owned),
            hook: Hook::Command(command),
            timeout,
            status_message: status.map(str::to_owned),
            on_failure: OnFailure::Usual,
            source: self.source.clone(),
            once: once && *self.source == Source::Skill,
        }))
    }

    fn command(&mut self, place: &str, hook: &Map<String, Value>) -> Result<CommandHook, Wrong> {
        let command = self.field(place, hook, "command", "a text", Value::as_str);
        let args = self.field(place, hook, "args", "a list of texts", |args| {
            args.as_array()?.iter().map(|arg| arg.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        let in_background = self.field(place, hook, "async", "true or false", Value::as_bool);
        let wakes = self.field(place, hook, "asyncRewake", "true or false", Value::as_bool);
        let shell = self.field(place, hook, "shell", "`bash`", |shell| match shell.as_str()? {
            "bash" => Some(Shell::Bash),
            "sh" => Some(Shell::Sh),
            _ => None,
        });
        let (command, args) = (command?.unwrap_or_default(), args?);
        let texts = || std::iter::once(command).chain(args.iter().flatten().map(String::as_str));
        let wrong = if command.trim().is_empty() {
            Some("is missing or empty")
        } else if texts().any(|text| text.contains('\0')) {
            Some("holds a zero byte, which no program can be given")
        } else if texts().map(str::len).sum::<usize>() > SHELL_COMMAND_BYTES_MAX {
            Some("is longer than 128 KB")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.error(&format!("{place}.command"), wrong);
            return Err(Wrong);
        }
        let waiting = match (in_background?, wakes?) {
            (_, Some(true)) => Waiting::NeverButWakes,
            (Some(true), _) => Waiting::Never,
            _ => Waiting::UntilDone,
        };
        Ok(CommandHook { command: command.to_owned(), args, shell: shell?.unwrap_or_default(), waiting })
    }

    fn timeout(&mut self, place: &str, hook: &Map<String, Value>) -> Result<Option<Duration>, Wrong> {
        let seconds = self.field(place, hook, "timeout", "a number of seconds above zero", |seconds| {
            seconds.as_f64().filter(|seconds| *seconds > 0.0)
        })?;
        let Some(seconds) = seconds else { return Ok(None) };
        if seconds > TIME_MAX.as_secs_f64() {
            let note = format!("is more than a day; {} seconds are used", TIME_MAX.as_secs());
            self.warn(&format!("{place}.timeout"), &note);
            return Ok(Some(TIME_MAX));
        }
        // Above zero and at most a day: it fits.
        Ok(Duration::try_from_secs_f64(seconds).ok())
    }

    /// A field that may be absent; null is absent too.
    fn field<'v, T>(
        &mut self,
        place: &str,
        object: &'v Map<String, Value>,
        name: &str,
        expected: &str,
        read: impl Fn(&'v Value) -> Option<T>,
    ) -> Result<Option<T>, Wrong> {
        match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(value) {
                Some(value) => Ok(Some(value)),
                None => {
                    self.error(&format!("{place}.{name}"), &format!("must be {expected}"));
                    Err(Wrong)
                }
            },
        }
    }

    fn error(&mut self, place: &str, text: &str) {
        self.problem(Severity::Error, place, text);
    }

    fn warn(&mut self, place: &str, text: &str) {
        self.problem(Severity::Warning, place, text);
    }

    fn problem(&mut self, severity: Severity, place: &str, text: &str) {
        let (place, text) = (place.to_owned(), text.to_owned());
        self.problems.push(Problem { severity, source: self.source.clone(), place, text });
    }
}
