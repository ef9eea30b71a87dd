//! Questions about a conversation that are no part of it: the model sees all that was said, and neither the question nor its
//! answer is said there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use pelton_model::{Ask, Client, Source, World};
use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::budget::prompt_tokens_max;
use super::live::thinking_for;
use super::side;
use super::spending::{Forecast, Spending, Wish};
use crate::aside::Told;
use crate::history::{Entry, Kind, View};
use crate::limits::SIDE_ANSWER_TOKENS_MAX;

/// What the model is told before the question.
const WORDS: &str = include_str!("bystander.md");
/// What a call has brought that is not over.
const STILL_RUNS: &str = "(It has not ended yet: there is no result so far.)";
/// What the question is for, where it is told how it fares.
const PURPOSE: &str = "a question beside the conversation";

/// Asks about a conversation what does not belong into it: a handle, usable also while a submission runs. The model knows what
/// it was last sent; it calls no tools, and keeps nothing of the question. All clones are one.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).reply([text("Two and two.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let bystander = engine.bystander();
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// let before = engine.history().len();
/// assert_eq!(bystander.ask("What did I want to know?").await?, "Two and two.");
/// assert_eq!(engine.history().len(), before);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Bystander(Arc<Shared>);

struct Shared {
    client: Client,
    spending: Arc<Spending>,
    world: Arc<dyn World>,
    /// Somebody has a handle: from then on it is kept what the model was last sent.
    is_held: AtomicBool,
    seen: Mutex<Option<Seen>>,
}

/// The conversation, as far as the model knows it.
#[derive(Clone)]
struct Seen {
    /// Without its messages.
    question: Ask,
    view: View,
}

/// There is no answer. The words are for whoever asked.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let refused = engine.bystander().ask("  ").await.unwrap_err();
/// assert_eq!(refused.to_string(), "there is no question");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
#[non_exhaustive]
pub struct NotAnswered(pub String);

impl Bystander {
    pub(crate) fn new(client: &Client, spending: &Arc<Spending>, world: &Arc<dyn World>) -> Self {
        Self(Arc::new(Shared {
            client: client.clone(),
            spending: Arc::clone(spending),
            world: Arc::clone(world),
            is_held: AtomicBool::new(false),
            seen: Mutex::default(),
        }))
    }

    /// Asks. Dropping it gives the question up.
    ///
    /// # Errors
    ///
    /// If there is no answer: too little money, a model that declines or cannot be reached, or one that wanted to call a tool.
    pub fn ask(&self, question: &str) -> BoxFuture<'static, Result<String, NotAnswered>> {
        let (shared, question) = (Arc::clone(&self.0), question.trim().to_owned());
        Box::pin(async move { shared.ask(&question).await.map_err(NotAnswered) })
    }

    /// Whether anybody has a handle.
    pub(crate) fn is_held(&self) -> bool {
        self.0.is_held.load(Ordering::Relaxed)
    }

    /// Somebody has a handle from now on. The conversation stands so, and the model would be asked like this.
    pub(crate) fn hold(&self, question: Ask, view: View) {
        self.0.is_held.store(true, Ordering::Relaxed);
        *self.0.seen() = Some(Seen { question, view });
    }

    /// The conversation stands so by now. What it knows of it already is not gone through again: nobody may ever ask.
    pub(crate) fn sees(&self, question: &Ask, view: &mut View) {
        if !self.is_held() {
            return;
        }
        let mut seen = self.0.seen();
        let seen = seen.get_or_insert_with(|| Seen { question: question.clone(), view: View::default() });
        seen.question.clone_from(question);
        view.bring_up(&mut seen.view);
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, question: &str) -> Result<String, String> {
        if question.is_empty() {
            return Err("there is no question".to_owned());
        }
        let seen = self.seen().clone().ok_or("the conversation is not known yet")?;
        let paid = loop {
            // Listening begins before the question: an end in between is not missed.
            let freed = self.spending.freed();
            let (ask, wish) = self.put(seen.clone(), question)?;
            match wish {
                Wish::Granted(paid) => break (ask, paid),
                Wish::Refused(why) => return Err(why),
                Wish::Later(_) => freed.await,
            }
        };
        let (ask, paid) = paid;
        // How it fares is told to nobody: whoever waits sees that there is no answer yet.
        let (news, _) = mpsc::channel(1);
        let answer = side::ask(self.client.clone(), ask, paid, PURPOSE, news).await?;
        let words = Told::from(answer).words();
        match words.is_empty() {
            true => Err("the model gave no answer: it may have wanted to look something up, which it can only do in the \
                         conversation"
                .to_owned()),
            false => Ok(words),
        }
    }

    /// The question behind the same conversation, so that the server has all of that in its cache. The tools stay where they are for
    /// the same reason.
    fn put(&self, seen: Seen, question: &str) -> Result<(Ask, Wish), String> {
        let Seen { question: mut ask, mut view } = seen;
        let now = self.world.now();
        let told = |kind: Kind, block: serde_json::Value| {
            let json = Bytes::from(json!([block]).to_string());
            Entry::new(Uuid::nil(), now, kind, json).map(Arc::new).map_err(|error| error.to_string())
        };
        for call in view.open_calls().to_vec() {
            let block = json!({"type": "tool_result", "tool_use_id": &*call, "content": STILL_RUNS});
            view.push(told(Kind::ToolResult { call, is_error: false }, block)?);
        }
        let words = format!("{}\n\n{question}", WORDS.trim_end());
        view.push(told(Kind::Prompt { meta: true }, json!({"type": "text", "text": words}))?);
        ask.thinking = thinking_for(&ask, &view);
        let prompt_tokens = view.tokens();
        let bytes = view.bytes() + ask.prefix.system.len() + ask.prefix.tools.len();
        ask.messages = view.request(ask.cache);
        ask.max_tokens = ask.max_tokens.min(SIDE_ANSWER_TOKENS_MAX);
        (ask.task_budget, ask.source) = (None, Source::Foreground);
        let wish = self.spending.set_aside(Forecast {
            ask: &ask,
            prompt_tokens,
            prompt_tokens_max: prompt_tokens_max(bytes as u64),
            searches_max: 0,
            last: None,
        });
        Ok((ask, wish))
    }
}
