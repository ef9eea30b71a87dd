//! Calls that nobody has decided about, as questions to the client.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use pelton::permission::{Access, Answer, Asker, Cause, Question, Questions, Rule, Update};
use pelton::tools::ToolServer as _;
use pelton_mcp::{Caller, Server};
use serde_json::{Map, Value, json};

use super::client::Client;
use super::reports::layer_name;

/// Asks the client (`can_use_tool`).
pub(crate) struct AskClient(pub Client);

impl Asker for AskClient {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            match self.0.ask("can_use_tool", request(question)).await {
                Ok(answer) => read(&answer),
                Err(none) => Answer::deny(none.words()),
            }
        })
    }

    fn takes_many(&self) -> bool {
        true
    }
}

/// Asks a tool of a server.
struct AskTool {
    server: Arc<Server>,
    tool: String,
}

/// Lets a tool decide about calls that no rule decides about, if it is one of these servers'. It is named as the model would
/// call it.
pub fn decided_by(name: &str, servers: &[Arc<Server>]) -> Option<Questions> {
    let named = servers.iter().find_map(|server| {
        let tool = name.strip_prefix("mcp__")?.strip_prefix(server.name())?.strip_prefix("__")?;
        Some(AskTool { server: Arc::clone(server), tool: tool.to_owned() })
    });
    named.map(Questions::to)
}

impl Asker for AskTool {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let input = json!({
                "tool_name": &*question.tool,
                "input": question.input,
                "tool_use_id": &*question.call,
            });
            let caller = Caller::alone(Arc::clone(&question.call));
            let said = match self.server.call(&self.tool, input, &caller).await {
                Ok(output) if output.is_error => return Answer::deny(output.words()),
                Ok(output) => output.words(),
                Err(why) => return Answer::deny(why),
            };
            match serde_json::from_str(&said) {
                Ok(answer) => read(&answer),
                Err(_) => Answer::deny(format!("The answer of {} is no JSON: {said}", self.tool)),
            }
        })
    }

    fn takes_many(&self) -> bool {
        true
    }
}

/// The question on the wire.
fn request(question: &Question) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    put("tool_name", json!(&*question.tool));
    put("display_name", json!(&*question.tool));
    put("mcp_server", json!(question.server));
    put("input", with_whole_path(question));
    put("tool_use_id", json!(&*question.call));
    let suggestions: Vec<Value> = question.suggestions.iter().map(Update::to_json).collect();
    put("permission_suggestions", json!(suggestions));
    put(
        "blocked_path",
        blocked_path(&question.cause).map_or(Value::Null, |path| json!(path.to_string_lossy())),
    );
    put("decision_reason", json!(question.why));
    put("decision_reason_type", json!(question.cause.name()));
    put("description", json!(description(question)));
    put("title", json!(title(question)));
    put("agent_id", json!(question.agent_id));
    put("matched_ask_rule", question.rule.as_ref().map_or(Value::Null, matched));
    if matches!(question.access, Access::Person(_)) {
        put("requires_user_interaction", json!(true));
    }
    Value::Object(fields)
}

/// Its input. A path is told whole: whoever decides by it does not know where relative ones start.
fn with_whole_path(question: &Question) -> Value {
    let mut input = question.input.clone();
    if matches!(question.access, Access::Read(_) | Access::Edit(_)) {
        for name in ["file_path", "notebook_path"] {
            if let Some(Value::String(path)) = input.get_mut(name)
                && !path.starts_with(['/', '~'])
            {
                *path = question.cwd.join(&*path).to_string_lossy().into_owned();
            }
        }
    }
    input
}

/// The rule that wants somebody to be asked.
fn matched(rule: &Rule) -> Value {
    let written = rule.to_string();
    let (tool, content) = match written.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap_or(rest))),
        None => (written.as_str(), None),
    };
    let mut matched = json!({"source": layer_name(rule.source().layer), "tool_name": tool});
    if let Some(content) = content {
        matched["rule_content"] = json!(content);
    }
    matched
}

fn blocked_path(cause: &Cause) -> Option<&Path> {
    match cause {
        Cause::Protected(path)
        | Cause::Special(path)
        | Cause::Redirected(path)
        | Cause::Outside(path)
        | Cause::Unfollowable(path) => Some(path),
        _ => None,
    }
}

/// What it is about, in a few words.
fn description(question: &Question) -> String {
    match &question.access {
        Access::Read(path) | Access::Edit(path) => {
            path.strip_prefix(&question.cwd).unwrap_or(path).to_string_lossy().into_owned()
        }
        Access::Shell(command) => {
            let said = question.input.get("description").and_then(Value::as_str);
            said.filter(|said| !said.trim().is_empty()).unwrap_or(command).to_owned()
        }
        Access::Agent(text) | Access::Person(text) | Access::Skill(text) | Access::Url(text) => text.clone(),
        _ => String::new(),
    }
}

/// What would happen, as a question.
fn title(question: &Question) -> String {
    let what = description(question);
    match &question.access {
        Access::Read(_) => format!("Read {what}?"),
        Access::Edit(_) => format!("Change {what}?"),
        Access::Shell(command) => format!("Run {command}?"),
        Access::Agent(_) => format!("Start the agent {what}?"),
        Access::Url(_) => format!("Ask for {what}?"),
        Access::Person(_) => what,
        _ => format!("Use {}?", question.tool),
    }
}

/// What the client answered. What cannot be understood is no permission.
fn read(answer: &Value) -> Answer {
    let misunderstood =
        |why: String| Answer::deny(format!("The answer cannot be understood, so it was not run: {why}"));
    match answer.get("behavior").and_then(Value::as_str) {
        Some("allow") => {
            let updates = match answer.get("updatedPermissions") {
                Some(Value::Array(updates)) => updates.iter().map(Update::from_json).collect(),
                _ => Ok(Vec::new()),
            };
            match updates {
                Ok(updates) => {
                    let updated_input = answer.get("updatedInput").filter(|input| input.is_object()).cloned();
                    Answer::Allow { updated_input, updates }
                }
                Err(error) => misunderstood(error.to_string()),
            }
        }
        Some("deny") => Answer::Deny {
            message: answer.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            interrupt: answer.get("interrupt").and_then(Value::as_bool).unwrap_or_default(),
        },
        other => misunderstood(format!("its behavior is {}", other.unwrap_or("missing"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_what_is_not_understood_is_no_permission() {
        assert_eq!(read(&json!({"behavior": "allow"})), Answer::allow());
        assert_eq!(
            read(&json!({"behavior": "allow", "updatedInput": null, "updatedPermissions": null})),
            Answer::allow()
        );
        let changed = json!({"behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": [{"type": "setMode", "mode": "plan", "destination": "session"}]});
        let Answer::Allow { updated_input: Some(input), updates } = read(&changed) else { panic!() };
        assert_eq!((input, updates.len()), (json!({"a": 1}), 1));
        let denied = read(&json!({"behavior": "deny", "message": "no", "interrupt": true}));
        assert_eq!(denied, Answer::Deny { message: "no".to_owned(), interrupt: true });
        for bad in [
            json!({}),
            json!(null),
            json!({"behavior": "maybe"}),
            json!({"behavior": "allow", "updatedPermissions": [{"type": "x"}]}),
        ] {
            assert!(matches!(read(&bad), Answer::Deny { interrupt: false, .. }), "{bad}");
        }
    }
}
