//! Questions of servers and tools to people: hooks may answer in their place, and hear what was answered.

use std::sync::Arc;

use futures::future::BoxFuture;
use pelton_model::stream::Sender;
use serde_json::{Map, Value};

use crate::event::Event;
use crate::hooks::{Fired, HookEvent, SessionHooks};
use crate::host::{Elicitation, Elicited, Elicitor, Host};

/// The host, with hooks before and behind whoever answers for it; the same host if none listens.
pub(super) fn heard_by_hooks(host: Host, hooks: &SessionHooks, events: &Sender<Event>) -> Host {
    let heard = [HookEvent::Elicitation, HookEvent::ElicitationResult, HookEvent::Notification];
    if !heard.into_iter().any(|event| hooks.listens(event)) {
        return host;
    }
    let person = host.elicitor();
    host.with_elicitor(Arc::new(Heard { person, hooks: hooks.clone(), events: events.clone() }))
}

struct Heard {
    /// Who answers what hooks leave open; without anybody, the answer is that nobody wants to say.
    person: Option<Arc<dyn Elicitor>>,
    hooks: SessionHooks,
    events: Sender<Event>,
}

impl Elicitor for Heard {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        Box::pin(async move {
            let cwd = self.hooks.base.cwd.clone();
            let fired = self.hooks.elicitation(question, &cwd).await;
            let decided = match fired {
                Some(fired) => self.decided(fired).await,
                None => None,
            };
            let answer = match (decided, &self.person) {
                (Some(answer), _) => answer,
                (None, None) => Elicited::Decline,
                (None, Some(person)) => {
                    let said = format!("{} asks: {}", question.asker, question.message);
                    let kind =
                        if question.url.is_some() { "elicitation_url_dialog" } else { "elicitation_dialog" };
                    self.notify(kind, &said).await;
                    let answer = person.elicit(question).await;
                    let said = format!("{} was answered: {}", question.asker, answer.action());
                    self.notify("elicitation_response", &said).await;
                    answer
                }
            };
            let fired = self.hooks.elicitation_result(question, &answer, &cwd).await;
            match fired {
                Some(fired) => self.decided(fired).await.unwrap_or(answer),
                None => answer,
            }
        })
    }
}

impl Heard {
    async fn notify(&self, kind: &str, message: &str) {
        if let Some(fired) = self.hooks.notify(kind, message, &self.hooks.base.cwd).await {
            self.tell(fired).await;
        }
    }

    /// The answer that hooks give, if they do.
    async fn decided(&self, fired: Fired) -> Option<Elicited> {
        let answer = answer_in(fired.verdict.block.as_deref(), &fired.verdict.extras);
        self.tell(fired).await;
        answer
    }

    async fn tell(&self, fired: Fired) {
        for run in fired.runs {
            self.events.send(Event::Hook(Arc::new(run))).await;
        }
        for content in fired.verdict.messages {
            self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
    }
}

/// What hooks answer: whoever blocks does not want to say.
fn answer_in(block: Option<&str>, extras: &Map<String, Value>) -> Option<Elicited> {
    match extras.get("action").and_then(Value::as_str) {
        _ if block.is_some() => Some(Elicited::Decline),
        Some("accept") => {
            let nothing = || Value::Object(Map::new());
            Some(Elicited::Accept(extras.get("content").cloned().unwrap_or_else(nothing)))
        }
        Some("decline") => Some(Elicited::Decline),
        Some("cancel") => Some(Elicited::Cancel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hook_answers_by_an_action_and_whoever_blocks_does_not_want_to_say() {
        let said = |extras: Value| extras.as_object().cloned().unwrap();
        for (block, extras, expected) in [
            (None, json!({}), None),
            (None, json!({"action": "accept", "content": {"a": 1}}), Some(Elicited::Accept(json!({"a": 1})))),
            (None, json!({"action": "accept"}), Some(Elicited::Accept(json!({})))),
            (None, json!({"action": "cancel"}), Some(Elicited::Cancel)),
            (None, json!({"action": "shrug"}), None),
            (Some("no"), json!({"action": "accept"}), Some(Elicited::Decline)),
        ] {
            assert_eq!(answer_in(block, &said(extras.clone())), expected, "{extras}");
        }
    }
}
