//! What may be changed while a session runs: which model is asked, and how much it thinks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pelton_model::{Effort, Thinking, ThinkingDisplay, catalogue};

/// Which model is asked, and how. All clones are one; a change holds from the next question to the model on, also in the
/// middle of a submission.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let dials = engine.dials(); // a handle: turn it from anywhere, also while a submission runs
/// dials.set_model(Some("opus"))?;
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// assert!(model.requests()[0].body["model"].as_str().is_some_and(|model| model.contains("opus")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Dials(Arc<Shared>);

/// Whether a model may be asked.
type MayAsk = dyn Fn(&str) -> Result<(), ModelRefused> + Send + Sync;

struct Shared {
    /// What the session started with.
    first: Set,
    now: Mutex<(u64, Set)>,
    may_ask: Box<MayAsk>,
}

/// Where the dials stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    pub model: String,
    pub thinking: Thinking,
    pub display: ThinkingDisplay,
    pub effort: Option<Effort>,
    /// Who is asked while planning, and who otherwise, where that are two.
    pub pair: Option<(String, String)>,
}

/// What of the dials stands elsewhere than at the start, but for the model.
///
/// ```
/// # use pelton_model::{Auth, Effort, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let options = || pelton::Options::new(dir.path(), Endpoint::new("http://127.0.0.1:9", Auth::None));
/// let dials = pelton::Engine::new(options())?.dials();
/// assert_eq!(dials.turned_since_start(), pelton::Turned::default());
/// dials.set_effort(Some(Effort::High));
/// let other = pelton::Engine::new(options())?.dials();
/// other.turn(&dials.turned_since_start());
/// assert_eq!(other.effort(), Some(Effort::High));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turned {
    /// How hard the model tries; inside, nothing is as hard as it does by itself.
    pub effort: Option<Option<Effort>>,
    /// How much it thinks.
    pub thinking: Option<Thinking>,
    /// What is shown of that.
    pub display: Option<ThinkingDisplay>,
}

/// A model that is not asked from now on, and why.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let mut options = Options::new(dir.path(), endpoint);
/// options.max_budget_usd = Some(2.50);
/// let dials = Engine::new(options)?.dials();
/// let refused = dials.set_model(Some("a-model-of-ours")).unwrap_err();
/// assert!(refused.to_string().contains("the price of a-model-of-ours is not known"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelRefused {
    /// The budget of the session cannot be kept with a model whose price is not known.
    #[error("the price of {0} is not known, so the budget cannot be kept")]
    UnknownPrice(String),
    /// It is none of those that may be asked. What those are.
    #[error("{0}")]
    NotAvailable(String),
}

impl Dials {
    pub(crate) fn new(
        first: Set,
        may_ask: impl Fn(&str) -> Result<(), ModelRefused> + Send + Sync + 'static,
    ) -> Self {
        let now = Mutex::new((0, first.clone()));
        Self(Arc::new(Shared { first, now, may_ask: Box::new(may_ask) }))
    }

    /// The model that is asked from now on: an id or an alias; `None` for the one the session started with.
    pub fn set_model(&self, model: Option<&str>) -> Result<(), ModelRefused> {
        let (model, pair) = match model {
            None => (self.0.first.model.clone(), self.0.first.pair.clone()),
            Some(name) => match catalogue::pair(name) {
                Some((plans, works)) => (works.clone(), Some((plans, works))),
                None => (catalogue::resolve(name), None),
            },
        };
        (self.0.may_ask)(&model)?;
        if let Some((plans, _)) = &pair {
            (self.0.may_ask)(plans)?;
        }
        self.change(|set| (set.model, set.pair) = (model, pair));
        Ok(())
    }

    /// Planning goes on, or does not: where one model plans and another works, that decides who is asked.
    pub(crate) fn set_planning(&self, is_planning: bool) {
        self.change(|set| {
            if let Some((plans, works)) = &set.pair {
                set.model.clone_from(if is_planning { plans } else { works });
            }
        });
    }

    /// How much the model thinks from now on; `None` for as much as at the start.
    pub fn set_thinking(&self, thinking: Option<Thinking>) {
        self.change(|set| set.thinking = thinking.unwrap_or(self.0.first.thinking));
    }

    /// What is shown of that; `None` for as much as at the start.
    pub fn set_thinking_display(&self, display: Option<ThinkingDisplay>) {
        self.change(|set| set.display = display.unwrap_or(self.0.first.display));
    }

    /// How hard the model tries from now on; `None` for as hard as it does by itself.
    pub fn set_effort(&self, effort: Option<Effort>) {
        self.change(|set| set.effort = effort);
    }

    /// What stands elsewhere than at the start, for a session that takes the place of this one.
    pub fn turned_since_start(&self) -> Turned {
        let (first, now) = (&self.0.first, &self.lock().1);
        Turned {
            effort: (now.effort != first.effort).then_some(now.effort),
            thinking: (now.thinking != first.thinking).then_some(now.thinking),
            display: (now.display != first.display).then_some(now.display),
        }
    }

    /// Turns them so; what is not said stays as it is.
    pub fn turn(&self, turned: &Turned) {
        self.change(|set| {
            set.effort = turned.effort.unwrap_or(set.effort);
            set.thinking = turned.thinking.unwrap_or(set.thinking);
            set.display = turned.display.unwrap_or(set.display);
        });
    }

    /// How hard the model tries, if anybody has said so.
    pub fn effort(&self) -> Option<Effort> {
        self.lock().1.effort
    }

    /// Whether the model thinks before it answers.
    pub fn thinks(&self) -> bool {
        self.lock().1.thinking != Thinking::Disabled
    }

    /// The model that is asked.
    pub fn model(&self) -> String {
        self.lock().1.model.clone()
    }

    /// Where they stand, if they were turned since `seen`, which is brought up to date.
    pub(crate) fn turned(&self, seen: &mut u64) -> Option<Set> {
        let (turns, set) = &*self.lock();
        (std::mem::replace(seen, *turns) != *turns).then(|| set.clone())
    }

    fn change(&self, change: impl FnOnce(&mut Set)) {
        let mut now = self.lock();
        let before = now.1.clone();
        change(&mut now.1);
        if now.1 != before {
            now.0 += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Set)> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once_by_everyone_who_looks() {
        let first = Set {
            model: "a".to_owned(),
            thinking: Thinking::ModelDefault,
            display: ThinkingDisplay::Omitted,
            effort: None,
            pair: None,
        };
        let dials = Dials::new(first, |model| match model {
            "dear" => Err(ModelRefused::UnknownPrice(model.to_owned())),
            _ => Ok(()),
        });
        let (mut one, mut other) = (0, 0);
        assert_eq!(dials.turned(&mut one), None);
        dials.set_model(Some("b")).unwrap();
        assert!(dials.set_model(Some("dear")).is_err());
        assert_eq!(dials.turned(&mut one).map(|set| set.model).as_deref(), Some("b"));
        assert_eq!(dials.turned(&mut one), None);
        dials.set_model(Some("b")).unwrap();
        assert_eq!(dials.turned(&mut one), None, "nothing has changed");
        dials.set_model(None).unwrap();
        assert_eq!(dials.turned(&mut other).map(|set| set.model).as_deref(), Some("a"));
        dials.set_planning(true);
        assert_eq!(dials.turned(&mut other), None, "one model does both");
        dials.set_model(Some("opusplan")).unwrap();
        assert!(dials.model().contains("sonnet"));
        dials.set_planning(true);
        assert!(dials.model().contains("opus"));
        dials.set_planning(false);
        assert!(dials.model().contains("sonnet"));
    }
}
