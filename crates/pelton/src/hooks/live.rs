//! What hooks do while they run, for whoever shows it as it happens.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::event::HookEvent;
use super::limits::{ENDS_MAX, NOTES_MAX, PROGRESS_CHARS_MAX};
use super::run::{HookKind, HookRun};

/// News of hooks that still run. Nothing is kept before somebody listens, and what nobody takes is forgotten at some point:
/// every run is told again, whole, when it is over ([`Event::Hook`](crate::Event::Hook)).
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Done.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let stop = json!({"Stop": [{"hooks": [{"type": "command", "command": "echo tested"}]}]});
/// # assert!(options.hooks.add_settings(&stop, &pelton::hooks::Source::User).is_empty());
/// # let mut engine = pelton::Engine::new(options)?;
/// let live = engine.hooks_live();
/// live.listen();
/// engine.submit(pelton::Prompt::text("Do it.")?).collect::<Vec<_>>().await;
/// let notes = live.take();
/// assert_eq!(notes[0].name, "Stop");
/// assert!(notes[0].printed.is_none(), "it was started");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct HooksLive(Arc<Kept>);

#[derive(Default)]
struct Kept {
    is_listened_to: AtomicBool,
    notes: Mutex<VecDeque<HookNote>>,
    told: Notify,
}

/// A hook was started, has printed something, or is over.
///
/// ```
/// use pelton::hooks::HookNote;
///
/// /// A line for people who watch. [`HooksLive`](pelton::hooks::HooksLive) has the notes.
/// fn line(note: &HookNote) -> String {
///     match &note.printed {
///         Some((out, err)) => format!("{}: {out}{err}", note.name),
///         None => format!("{} runs", note.name),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookNote {
    /// The run, as [`HookRun`](super::HookRun) calls it.
    pub id: String,
    /// The event and its subject: `PreToolUse:Bash`.
    pub name: String,
    /// The event.
    pub event: HookEvent,
    /// What is called.
    pub kind: HookKind,
    /// What it has printed so far on its two outputs; `None`: it was just started, or is over.
    pub printed: Option<(String, String)>,
    /// It is over, and did this. What becomes of it is told later, and the same with it.
    pub over: Option<Arc<HookRun>>,
}

impl HooksLive {
    /// From here on, news are kept.
    pub fn listen(&self) {
        self.0.is_listened_to.store(true, Ordering::Relaxed);
    }

    /// Returns when there are news.
    pub async fn told(&self) {
        loop {
            let told = self.0.told.notified();
            if !self.notes().is_empty() {
                return;
            }
            told.await;
        }
    }

    /// The news, oldest first.
    pub fn take(&self) -> Vec<HookNote> {
        self.notes().drain(..).collect()
    }

    /// Whether anybody listens.
    pub(super) fn is_listened_to(&self) -> bool {
        self.0.is_listened_to.load(Ordering::Relaxed)
    }

    pub(super) fn tell(&self, note: impl FnOnce() -> HookNote) {
        if !self.is_listened_to() {
            return;
        }
        let mut notes = self.notes();
        if notes.len() >= NOTES_MAX {
            notes.pop_front();
        }
        notes.push_back(note());
        drop(notes);
        self.0.told.notify_waiters();
    }

    /// A hook is over. What many have done is not kept beside what is told of it anyway.
    pub(super) fn tell_over(&self, run: &HookRun) {
        if self.notes().iter().filter(|note| note.over.is_some()).count() < ENDS_MAX {
            self.tell(|| HookNote {
                id: run.id.clone(),
                name: run.name.clone(),
                event: run.event,
                kind: run.kind,
                printed: None,
                over: Some(Arc::new(run.clone())),
            });
        }
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, VecDeque<HookNote>> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for HooksLive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HooksLive").field("notes", &self.notes().len()).finish_non_exhaustive()
    }
}

/// The newest part of what was printed.
pub(super) fn newest(text: &str) -> String {
    let chars = text.chars().count();
    text.chars().skip(chars.saturating_sub(PROGRESS_CHARS_MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(id: usize) -> HookNote {
        let (event, kind) = (HookEvent::Stop, HookKind::Command);
        HookNote { id: id.to_string(), name: "Stop".to_owned(), event, kind, printed: None, over: None }
    }

    #[test]
    fn nothing_is_kept_for_nobody_and_not_everything_for_somebody() {
        let live = HooksLive::default();
        live.tell(|| note(0));
        assert!(live.take().is_empty());
        live.listen();
        (0..=NOTES_MAX).for_each(|id| live.tell(|| note(id)));
        let notes = live.take();
        assert_eq!((notes.len(), notes[0].id.as_str()), (NOTES_MAX, "1"));
        assert!(live.take().is_empty());
    }

    #[test]
    fn the_newest_part_is_shown() {
        assert_eq!(newest("ab"), "ab");
        let long = format!("{}é", "x".repeat(PROGRESS_CHARS_MAX));
        let shown = newest(&long);
        assert!(shown.ends_with('é') && shown.chars().count() == PROGRESS_CHARS_MAX);
    }
}
