//! Whether a command in the box may reach a host that no list names: rules about fetching pages speak of hosts, too, and
//! what they leave open somebody is asked, once in a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::limits::HOSTS_ANSWERED_MAX;
use crate::permission::{
    Access, Answer, Cause, Decision, HookSays, Judged, Mode, Permissions, Question, Questions, Verdict,
    suggestions,
};

/// What the question is called.
const NAME: &str = "SandboxNetworkAccess";
/// The tool whose rules speak of hosts.
const FETCHING: &str = "WebFetch";

/// The hosts that somebody was asked about in a session.
pub(crate) type Answered = Arc<Mutex<BTreeMap<String, bool>>>;

/// Who decides about hosts, for one call.
#[derive(Clone)]
pub(crate) struct Door {
    pub permissions: Permissions,
    /// Whom to ask; nobody if absent.
    pub questions: Option<Questions>,
    pub call: Arc<str>,
    pub cwd: PathBuf,
}

impl Door {
    /// Whether anything could be let through that no list names.
    pub fn may_open(&self) -> bool {
        let rules = self.permissions.rules();
        self.can_ask() || rules.allow.iter().any(|rule| rule.tool() == FETCHING && !rule.is_bare())
    }

    /// Whether a host may be reached.
    pub async fn lets_through(&self, host: &str, answered: &Answered) -> bool {
        let is_bare_address = host.contains(':') && !host.starts_with('[');
        let access = match is_bare_address {
            true => Access::Url(format!("https://[{host}]/")),
            false => Access::Url(format!("https://{host}/")),
        };
        let decision = self.judged(&access);
        match (decision.verdict, &decision.cause) {
            (Verdict::Deny, _) => return false,
            (Verdict::Allow, Cause::Rule(_)) => return true,
            _ => {}
        }
        let Some(questions) = self.questions.as_ref().filter(|_| self.can_ask()) else { return false };
        // One connection asks, the others wait for its answer.
        let mut answered = answered.lock().await;
        let host = host.to_ascii_lowercase();
        if let Some(answer) = answered.get(&host) {
            return *answer;
        }
        let question = Question {
            tool: NAME.into(),
            call: Arc::clone(&self.call),
            input: json!({ "host": host }),
            cwd: self.cwd.clone(),
            suggestions: suggestions(FETCHING, &access, &decision),
            access,
            why: format!("A command in the sandbox wants to reach {host}."),
            cause: decision.cause,
            rule: decision.rule,
            parts: Vec::new(),
            agent_id: None,
            server: None,
        };
        let is_allowed = match questions.ask(&question).await {
            Answer::Allow { updates, .. } => {
                // That it could not be kept changes nothing for this session.
                updates.iter().for_each(|update| drop(self.permissions.apply_and_keep(update)));
                true
            }
            Answer::Deny { .. } => false,
        };
        if answered.len() < HOSTS_ANSWERED_MAX {
            answered.insert(host, is_allowed);
        }
        is_allowed
    }

    fn can_ask(&self) -> bool {
        self.questions.is_some()
            && !matches!(self.permissions.mode(), Mode::DontAsk | Mode::BypassPermissions)
    }

    /// By the rules alone: what a mode allows is meant for tools, and the box stays a box.
    fn judged(&self, access: &Access) -> Decision {
        let hook = HookSays::Nothing;
        let rules = self.permissions.rules();
        let alone = Permissions::new(rules, Mode::Default, self.cwd.clone(), Vec::new(), None);
        alone.judge(&Judged { tool: FETCHING, input: &Value::Null, access, cwd: &self.cwd, hook })
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("can_ask", &self.can_ask()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;

    use super::*;
    use crate::permission::{Asker, RuleSet};

    /// Says yes to one host, and counts.
    struct Porter(std::sync::atomic::AtomicUsize);

    impl Asker for Arc<Porter> {
        fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let is_known = question.input["host"] == "good.org";
            let updates = question.suggestions.clone();
            let answer = match is_known {
                true => Answer::Allow { updated_input: None, updates },
                false => Answer::deny("no"),
            };
            Box::pin(async { answer })
        }
    }

    fn door(mode: Mode, porter: Option<&Arc<Porter>>) -> Door {
        let rules = RuleSet {
            allow: vec!["WebFetch(domain:*.listed.org)".parse().unwrap()],
            deny: vec!["WebFetch(domain:bad.org)".parse().unwrap()],
            ..RuleSet::default()
        };
        let permissions = Permissions::new(rules, mode, "/".into(), Vec::new(), None);
        let questions = porter.map(|porter| Questions::to(Arc::clone(porter)));
        Door { permissions, questions, call: "c".into(), cwd: "/".into() }
    }

    #[tokio::test]
    async fn rules_speak_first_and_somebody_is_asked_once_about_the_rest() {
        let porter = Arc::new(Porter(0.into()));
        let (door, answered) = (door(Mode::Default, Some(&porter)), Answered::default());
        for (host, expected) in [
            ("a.listed.org", true),
            ("bad.org", false),
            ("good.org", true),
            ("GOOD.org", true),
            ("other.org", false),
            ("other.org", false),
        ] {
            assert_eq!(door.lets_through(host, &answered).await, expected, "{host}");
        }
        assert_eq!(porter.0.load(std::sync::atomic::Ordering::Relaxed), 2);
        assert!(
            door.permissions.rules().allow.iter().any(|rule| rule.to_string() == "WebFetch(domain:good.org)")
        );
    }

    #[tokio::test]
    async fn where_nobody_answers_only_rules_let_through() {
        let porter = Arc::new(Porter(0.into()));
        for door in [
            door(Mode::Default, None),
            door(Mode::DontAsk, Some(&porter)),
            door(Mode::BypassPermissions, Some(&porter)),
        ] {
            let answered = Answered::default();
            assert!(door.lets_through("a.listed.org", &answered).await);
            assert!(!door.lets_through("good.org", &answered).await);
        }
    }
}
