//! From the JSON of a settings file to entries, with the place of everything that is wrong.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    CommandHook, Entry, Hook, HttpHook, JudgeHook, OnFailure, Problem, ServerToolHook, Severity, Shell,
    Source, Waiting,
};
use crate::hooks::event::HookEvent;
use crate::hooks::limits::{CONFIGURED_MAX, TIME_MAX};
use crate::hooks::matcher::Matcher;
use crate::limits::SHELL_COMMAND_BYTES_MAX;

/// Fields of every hook.
pub(super) const COMMON_FIELDS: &[&str] = &["type", "if", "timeout", "statusMessage", "once"];

/// What hooks can be, and the fields each has of its own.
pub(super) const KINDS: [(&str, &[&str]); 5] = [
    ("command", &["command", "args", "async", "asyncRewake", "shell"]),
    ("http", &["url", "headers", "allowedEnvVars"]),
    ("prompt", &["prompt", "model", "continueOnBlock"]),
    ("agent", &["prompt", "model", "continueOnBlock"]),
    ("mcp_tool", &["server", "tool", "input"]),
];

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
        let kind = hook.get("type").and_then(Value::as_str);
        let own_fields = KINDS.iter().find(|(name, _)| Some(*name) == kind).map(|(_, fields)| *fields);
        let known = KINDS.map(|(name, _)| format!("`{name}`")).join(", ");
        match kind {
            Some(_) if own_fields.is_some() => {}
            Some(kind) => {
                self.error(&format!("{place}.type"), &format!("is `{kind}`; it must be one of {known}"));
                return Err(Wrong);
            }
            None => {
                self.error(&format!("{place}.type"), &format!("is missing; it must be one of {known}"));
                return Err(Wrong);
            }
        }
        // All fields are read before any of them gives up, so that every mistake is named at once.
        let called = match kind {
            Some("http") => self.http(place, hook),
            Some("prompt") => self.judge(place, hook, false),
            Some("agent") => self.judge(place, hook, true),
            Some("mcp_tool") => self.server_tool(place, hook),
            _ => self.command(place, hook).map(Hook::Command),
        };
        let timeout = self.timeout(place, hook);
        let condition = self.field(place, hook, "if", "a permission rule", Value::as_str);
        let status = self.field(place, hook, "statusMessage", "a text", Value::as_str);
        let once = self.field(place, hook, "once", "true or false", Value::as_bool);
        let fields = || own_fields.unwrap_or_default().iter().chain(COMMON_FIELDS);
        for name in hook.keys().filter(|name| !fields().any(|field| field == name)) {
            let kind = kind.unwrap_or_default();
            self.warn(&format!("{place}.{name}"), &format!("is no field of a {kind} hook"));
        }
        let (called, timeout, condition, status, once) = (called?, timeout?, condition?, status?, once?);
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
            hook: called,
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

    fn http(&mut self, place: &str, hook: &Map<String, Value>) -> Result<Hook, Wrong> {
        let url = self.field(place, hook, "url", "an address", Value::as_str);
        let headers = self.field(place, hook, "headers", "an object of texts", |headers| {
            let texts = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            headers.as_object()?.iter().map(texts).collect::<Option<Vec<_>>>()
        });
        let allowed = self.field(place, hook, "allowedEnvVars", "a list of names", |names| {
            names.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        let (url, headers, allowed_env) = (url?.unwrap_or_default(), headers?, allowed?);
        if !(url.starts_with("https://") || url.starts_with("http://")) {
            self.error(&format!("{place}.url"), "must begin with https:// or http://");
            return Err(Wrong);
        }
        let (headers, allowed_env) = (headers.unwrap_or_default(), allowed_env.unwrap_or_default());
        Ok(Hook::Http(HttpHook { url: url.to_owned(), headers, allowed_env }))
    }

    fn judge(&mut self, place: &str, hook: &Map<String, Value>, looks: bool) -> Result<Hook, Wrong> {
        let prompt = self.needed(place, hook, "prompt");
        let model = self.field(place, hook, "model", "a model", Value::as_str);
        let goes_on = self.field(place, hook, "continueOnBlock", "true or false", Value::as_bool);
        let (prompt, model, continue_on_block) = (prompt?, model?.map(str::to_owned), goes_on? == Some(true));
        Ok(Hook::Judge(JudgeHook { prompt, model, continue_on_block, looks }))
    }

    fn server_tool(&mut self, place: &str, hook: &Map<String, Value>) -> Result<Hook, Wrong> {
        let (server, tool) = (self.needed(place, hook, "server"), self.needed(place, hook, "tool"));
        let input =
            self.field(place, hook, "input", "an object", |input| input.as_object().map(|_| input.clone()));
        let input = input?.unwrap_or_else(|| Value::Object(Map::new()));
        Ok(Hook::ServerTool(ServerToolHook { server: server?, tool: tool?, input }))
    }

    /// A text that has to be there.
    fn needed(&mut self, place: &str, hook: &Map<String, Value>, name: &str) -> Result<String, Wrong> {
        match self.field(place, hook, name, "a text", Value::as_str)?.filter(|text| !text.trim().is_empty()) {
            Some(text) => Ok(text.to_owned()),
            None => {
                self.error(&format!("{place}.{name}"), "is missing or empty");
                Err(Wrong)
            }
        }
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
