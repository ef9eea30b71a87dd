//! Hooks that are no programs: an address on the web, a question to a model, a tool of a server. What leads there is
//! the session's, in a [`Reach`]; what comes back is understood like the output of a command.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use pelton_model::{Post, Transport};
use serde_json::{Map, Value, json};

use super::config::{HttpHook, JudgeHook, ServerToolHook};
use super::event::{Blocking, HookEvent};
use super::limits::{JUDGE_TOKENS_MAX, OUTPUT_BYTES_MAX};
use super::terms::HttpHookTerms;
use crate::aside::{Aside, AsideQuestion, Whom};
use crate::secrets::is_withheld;

/// The roads of a session to what hooks may be. A road that is not there makes such a hook fail, and says so.
#[derive(Clone, Default)]
pub struct Reach {
    /// To the web.
    pub web: Option<Arc<dyn Transport>>,
    /// To a model.
    pub aside: Option<Arc<dyn Aside>>,
    /// To an agent that looks around.
    pub agents: Option<Arc<dyn HookAgents>>,
    /// To the tools of servers.
    pub servers: Option<Arc<dyn ServerTools>>,
    /// What addresses on the web must keep to.
    pub terms: HttpHookTerms,
}

/// Calls tools of servers for hooks.
pub trait ServerTools: Send + Sync {
    /// What the tool says, or why it says nothing.
    fn call(&self, server: &str, tool: &str, input: Value) -> BoxFuture<'static, Result<String, String>>;
}

/// Has agents look around for hooks.
pub trait HookAgents: Send + Sync {
    /// The last words of an agent that was told `system` and asked `prompt`, or why there are none.
    fn look(
        &self,
        system: &'static str,
        prompt: String,
        model: Option<String>,
    ) -> BoxFuture<'static, Result<String, String>>;
}

/// Sends an event to an address. What it answers, as a command would print it.
pub async fn post(
    reach: &Reach,
    hook: &HttpHook,
    event: Bytes,
    env: &[(OsString, OsString)],
) -> Result<String, String> {
    let web = reach.web.as_ref().ok_or("cannot be reached: this session has no road to the web")?;
    if !reach.terms.allow(&hook.url) {
        return Err("is not asked: its address is not among `allowedHttpHookUrls`".to_owned());
    }
    let allowed_env = reach.terms.known(&hook.allowed_env);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &hook.headers {
        let value = with_variables(value, &allowed_env, env);
        let header = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value).ok());
        let (name, value) = header.ok_or_else(|| format!("has a header `{name}` that cannot be sent"))?;
        headers.insert(name, value);
    }
    let post = Post { url: hook.url.clone(), headers, body: vec![event].into(), fresh_connection: false };
    let response = web.post(post).await.map_err(|error| format!("could not be asked: {error}"))?;
    if !(200..300).contains(&response.status) {
        return Err(format!("answered with HTTP {}", response.status));
    }
    let mut said = Vec::new();
    let mut body = response.body;
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| format!("broke off its answer: {error}"))?;
        if said.len() + piece.len() > OUTPUT_BYTES_MAX {
            return Err(format!("answered with more than {OUTPUT_BYTES_MAX} bytes"));
        }
        said.extend_from_slice(&piece);
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    // Plain words of an address are no words for the model.
    match said.trim() {
        "" => Ok(String::new()),
        text if text.starts_with('{') => Ok(text.to_owned()),
        _ => Err("answered with something that is no JSON object".to_owned()),
    }
}

/// A text with the values of those variables that it may know; others are empty, and so are those that no program is given.
fn with_variables(text: &str, allowed: &[String], env: &[(OsString, OsString)]) -> String {
    let value = |name: &str| {
        let known = allowed.iter().any(|allowed| allowed == name) && !is_withheld(OsStr::new(name));
        let found = env.iter().find(|(variable, _)| known && variable == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        whole.push_str(before);
        if let Some((name, behind)) = behind.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            whole.push_str(&value(name));
            rest = behind;
            continue;
        }
        let end = behind.find(|c| !is_name(c)).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        match name {
            "" => whole.push('$'),
            name => whole.push_str(&value(name)),
        }
        rest = behind;
    }
    whole + rest
}

const JUDGE: &str = "You are a hook of a coding agent: an event of its session is put before you with a condition, and you judge \
whether the condition holds. Answer with one JSON object and nothing else: {\"ok\": true} if it holds, otherwise \
{\"ok\": false, \"reason\": \"what is missing, in one or two sentences\"}. Add \"impossible\": true if nothing the agent does \
could make it hold.";

const LOOKING_JUDGE: &str = "You are a hook of a coding agent: an event of its session is put before you with a condition, and you judge \
whether the condition holds. You may look at files with your tools first; you change nothing. End with one JSON object and nothing \
else: {\"ok\": true} if it holds, otherwise {\"ok\": false, \"reason\": \"what is missing, in one or two sentences\"}. Add \
\"impossible\": true if nothing the agent does could make it hold.";

/// Puts an event before a model, or before an agent. What it answers, as a command would print it.
pub async fn judge(
    reach: &Reach,
    hook: &JudgeHook,
    event: HookEvent,
    told: &Value,
) -> Result<String, String> {
    let words = match hook.looks {
        true => {
            let agents = reach.agents.as_ref();
            let agents = agents.ok_or("cannot be asked: there are no agents at this moment of a session")?;
            agents.look(LOOKING_JUDGE, with_arguments(&hook.prompt, told), hook.model.clone()).await?
        }
        false => asked(reach, hook, told).await?,
    };
    let judgement = object_in(&words).ok_or("was not answered with a JSON object")?;
    let ok = judgement.get("ok").and_then(Value::as_bool).ok_or("was answered without a word on `ok`")?;
    let reason = judgement.get("reason").and_then(Value::as_str).unwrap_or("The condition does not hold.");
    let impossible = judgement.get("impossible") == Some(&Value::Bool(true));
    Ok(if ok { String::new() } else { objection(hook, event, reason, impossible).to_string() })
}

async fn asked(reach: &Reach, hook: &JudgeHook, told: &Value) -> Result<String, String> {
    let aside =
        reach.aside.as_ref().ok_or("cannot be asked: there is no model at this moment of a session")?;
    let whom = match &hook.model {
        Some(model) => Whom::Named(model.clone()),
        None if aside.has_small() => Whom::Small,
        None => Whom::Main,
    };
    let question = AsideQuestion {
        purpose: "a hook",
        whom,
        system: JUDGE,
        prompt: with_arguments(&hook.prompt, told),
        max_tokens: JUDGE_TOKENS_MAX,
        server_tools: String::new(),
        searches_max: 0,
    };
    let told = aside.ask(question).await.map_err(|why| format!("was not answered: {why}"))?;
    told.whole_words().ok_or_else(|| "was answered in part only".to_owned())
}

/// The prompt with the event in it.
fn with_arguments(prompt: &str, event: &Value) -> String {
    const PLACE: &str = "$ARGUMENTS";
    match prompt.contains(PLACE) {
        true => prompt.replace(PLACE, &event.to_string()),
        false => format!("{prompt}\n\nThe event:\n{event}"),
    }
}

/// The first JSON object in an answer: models like to wrap it into words.
fn object_in(words: &str) -> Option<Map<String, Value>> {
    let from = &words[words.find('{')?..];
    serde_json::Deserializer::from_str(from).into_iter().next()?.ok()
}

/// What a hook answers that does not agree.
fn objection(hook: &JudgeHook, event: HookEvent, reason: &str, impossible: bool) -> Value {
    let ends = match event {
        // A turn that cannot be finished as wanted ends, or it would never.
        HookEvent::Stop | HookEvent::SubagentStop => impossible,
        _ => event.is_about_a_call() && !hook.continue_on_block,
    };
    let mut answer = match event.blocking() {
        Blocking::Denies => json!({"hookSpecificOutput": {
            "hookEventName": event.name(),
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }}),
        Blocking::Blocks => json!({"decision": "block", "reason": reason}),
        Blocking::Tells => json!({"systemMessage": reason}),
    };
    if ends {
        (answer["continue"], answer["stopReason"]) = (false.into(), reason.into());
    }
    answer
}

/// Calls a server's tool. What it says counts as the output of a command.
pub async fn call(reach: &Reach, hook: &ServerToolHook, told: &Value) -> Result<String, String> {
    let servers =
        reach.servers.as_ref().ok_or("cannot be called: there are no servers at this moment of a session")?;
    servers.call(&hook.server, &hook.tool, with_paths(&hook.input, told)).await
}

/// A value whose texts name places in the event, with what stands there.
fn with_paths(value: &Value, event: &Value) -> Value {
    match value {
        Value::String(text) => text_with_paths(text, event),
        Value::Array(items) => items.iter().map(|item| with_paths(item, event)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), with_paths(field, event))).collect()
        }
        other => other.clone(),
    }
}

fn text_with_paths(text: &str, event: &Value) -> Value {
    let at = |path: &str| path.split('.').try_fold(event, |value, name| value.get(name));
    // A place alone stands for its value, whatever that is.
    if let Some(path) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
        && !path.contains('}')
    {
        return at(path).cloned().unwrap_or_default();
    }
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        whole.push_str(before);
        let Some((path, behind)) = behind.split_once('}') else {
            whole.push_str("${");
            rest = behind;
            continue;
        };
        match at(path) {
            Some(Value::String(text)) => whole.push_str(text),
            Some(other) => whole.push_str(&other.to_string()),
            None => {}
        }
        rest = behind;
    }
    Value::String(whole + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_knows_only_the_variables_it_may() {
        let env: Vec<(OsString, OsString)> =
            [("TOKEN", "secret"), ("HOME", "/home/x"), ("ANTHROPIC_API_KEY", "sk-x")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        // Whoever writes a project's settings may not have the key of whoever pays.
        let allowed = ["TOKEN", "ANTHROPIC_API_KEY"].map(str::to_owned);
        for (text, expected) in [
            ("Bearer $TOKEN", "Bearer secret"),
            ("Bearer ${TOKEN}!", "Bearer secret!"),
            ("$HOME-${HOME}", "-"),
            ("${ANTHROPIC_API_KEY}$ANTHROPIC_API_KEY", ""),
            ("a$", "a$"),
            ("$$TOKEN", "$secret"),
            ("${TOKEN", "${TOKEN"),
        ] {
            assert_eq!(with_variables(text, &allowed, &env), expected, "{text}");
        }
    }

    #[test]
    fn places_in_the_event_are_filled_in() {
        let event = json!({"tool_name": "Write", "tool_input": {"file_path": "/a", "n": 3}});
        let input = json!({"path": "${tool_input.file_path}", "n": "${tool_input.n}",
            "words": "${tool_name} of ${tool_input.n}, ${nothing}", "list": ["${tool_name}", 1], "open": "${x"});
        let expected =
            json!({"path": "/a", "n": 3, "words": "Write of 3, ", "list": ["Write", 1], "open": "${x"});
        assert_eq!(with_paths(&input, &event), expected);
    }

    #[test]
    fn an_objection_is_what_the_event_understands() {
        let hook = |continue_on_block| JudgeHook {
            prompt: String::new(),
            model: None,
            continue_on_block,
            looks: false,
        };
        let said = |event, continues, impossible| objection(&hook(continues), event, "no", impossible);
        assert_eq!(said(HookEvent::Stop, false, false), json!({"decision": "block", "reason": "no"}));
        assert_eq!(said(HookEvent::Stop, false, true)["continue"], false);
        let denied = said(HookEvent::PreToolUse, false, false);
        assert_eq!(
            (&denied["continue"], &denied["hookSpecificOutput"]["permissionDecision"]),
            (&json!(false), &json!("deny"))
        );
        assert_eq!(said(HookEvent::PreToolUse, true, false).get("continue"), None);
        assert_eq!(
            said(HookEvent::UserPromptSubmit, false, false),
            json!({"decision": "block", "reason": "no"})
        );
    }

    #[test]
    fn an_object_is_found_among_words() {
        assert_eq!(object_in("Sure: ```json\n{\"ok\": true}\n```").unwrap()["ok"], true);
        assert_eq!((object_in("no"), object_in("{")), (None, None));
    }
}
