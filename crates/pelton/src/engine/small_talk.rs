//! Lines that a small model is asked for beside the conversation, for people who watch it: what the user may want to say next,
//! and what an agent is doing. Nothing waits for them, and what does not come is not missed.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_model::Client;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::Engine;
use crate::aside::Told;
use crate::context::{SESSION_NAME, SUGGESTION};
use crate::history::{Entry, Kind, Piece};
use crate::limits::{
    NAMED_CHARS_MAX, SUGGESTION_PROMPTS_MAX, SUGGESTION_SHOWN_CHARS_MAX, SUMMARY_CHARS_MAX,
    SUMMARY_TOKENS_MAX,
};
use crate::turn::side::{self, SideQuestion};
use crate::turn::spending::{Spending, Wish};

/// Asks the small model, and pays from the session's purse.
#[derive(Clone)]
pub(super) struct SmallTalk {
    client: Client,
    spending: Arc<Spending>,
    model: String,
}

impl SmallTalk {
    /// One line, if it comes. Asked without delay or not at all: for a line nobody waits for money.
    pub fn line(
        &self,
        purpose: &'static str,
        system: &'static str,
        prompt: String,
    ) -> BoxFuture<'static, Option<String>> {
        let question = SideQuestion::in_background(self.model.clone(), system, prompt, SUMMARY_TOKENS_MAX);
        let (ask, Wish::Granted(paid)) = question.pay(&self.spending) else {
            return std::future::ready(None).boxed();
        };
        // How it fares is told to nobody.
        let (news, _) = mpsc::channel(1);
        let asked = side::ask(self.client.clone(), ask, paid, purpose, news);
        asked.map(|answer| one_line(&Told::from(answer.ok()?).whole_words()?)).boxed()
    }
}

/// Makes names for a session out of words about it. All clones are one.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Fix the login button")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let namer = engine.namer(); // a handle: usable also while a submission runs
/// let name = namer.name("the login button does nothing on phones").await;
/// assert_eq!(name.as_deref(), Some("Fix the login button"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Namer(Option<SmallTalk>);

impl Namer {
    /// A few words for what is described, by the [small model](crate::Options::small_model): a call. `None` if it has none, or
    /// cannot be paid. Dropping it gives it up.
    pub fn name(&self, description: &str) -> BoxFuture<'static, Option<String>> {
        let Some(small) = self.0.as_ref().filter(|_| !description.trim().is_empty()) else {
            return std::future::ready(None).boxed();
        };
        let shown: String = description.chars().take(NAMED_CHARS_MAX).collect();
        small.line("a name for the session", SESSION_NAME, shown)
    }
}

impl Engine {
    /// A handle that makes names for the session.
    pub fn namer(&self) -> Namer {
        Namer(self.small_talk())
    }

    /// Who is asked for lines, if there is a small model that can be paid.
    pub(super) fn small_talk(&self) -> Option<SmallTalk> {
        let (client, spending) = (self.kin.client.clone(), Arc::clone(&self.kin.spending));
        Some(SmallTalk { client, spending, model: self.small_model()? })
    }

    /// What the user may want to say next, if that follows plainly from what was said: a guess of the
    /// [small model](crate::Options::small_model), which costs a call. Dropping it gives it up.
    ///
    /// ```
    /// # use futures::StreamExt;
    /// # use pelton_model::{Auth, Endpoint, Secret};
    /// # use pelton_testkit::{Script, text};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let model = Script::new().reply([text("Done. Shall I run the tests?")]).reply([text("yes, run them")]).start().await?;
    /// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
    /// use pelton::{Engine, Options, Prompt};
    ///
    /// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
    /// engine.submit(Prompt::text("Fix it.")?).for_each(async |_| {}).await;
    /// assert_eq!(engine.suggestion().await.as_deref(), Some("yes, run them"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn suggestion(&self) -> BoxFuture<'static, Option<String>> {
        const NONE: &str = "none";
        let (Some(small), Some(said)) = (self.small_talk(), said(self.history())) else {
            return std::future::ready(None).boxed();
        };
        let line = small.line("a suggestion", SUGGESTION, said);
        let is_one = |line: &String| !line.trim_end_matches('.').eq_ignore_ascii_case(NONE);
        line.map(move |line| line.filter(is_one)).boxed()
    }
}

/// The newest prompts, and the newest answer to them; nothing if there is none.
fn said(entries: &[Arc<Entry>]) -> Option<String> {
    let is_prompt = |entry: &&Arc<Entry>| matches!(entry.kind, Kind::Prompt { meta: false });
    let is_text = |entry: &&Arc<Entry>| matches!(&entry.kind, Kind::Assistant { piece: Piece::Text, .. });
    let answer = entries.iter().rev().take_while(|entry| !is_prompt(entry)).find(is_text)?;
    let mut prompts: Vec<String> = entries
        .iter()
        .rev()
        .filter(is_prompt)
        .take(SUGGESTION_PROMPTS_MAX)
        .map(|entry| words(entry))
        .collect();
    prompts.reverse();
    Some(format!("The person said:\n{}\n\nThe agent's newest answer:\n{}", prompts.join("\n"), words(answer)))
}

/// The end of what an entry says, where most often stands what matters for what comes next.
fn words(entry: &Entry) -> String {
    #[derive(Deserialize)]
    struct Text {
        #[serde(default)]
        text: String,
    }
    let blocks: Vec<Text> = serde_json::from_slice(&entry.json).unwrap_or_default();
    let text = blocks.into_iter().map(|block| block.text).collect::<Vec<_>>().join(" ");
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let more = line.chars().count().saturating_sub(SUGGESTION_SHOWN_CHARS_MAX);
    if more == 0 { line } else { format!("…{}", line.chars().skip(more).collect::<String>()) }
}

fn one_line(words: &str) -> Option<String> {
    let line = words.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.trim_matches('"').chars().take(SUMMARY_CHARS_MAX).collect())
}
