//! What happens inside, noted from now on, and the model asked to look at it (`/debug`).

use std::path::PathBuf;

use pelton::Engine;
use pelton::permission::{Behavior, Change, Rule, Update};
use pelton_serve::DebugLog;
use uuid::Uuid;

use super::Session;
use crate::draft::said;
use crate::input::Submission;
use crate::theme::Role;

/// What the model is told about the log.
const WORDS: &str = include_str!("debug.md");

/// Where what happens inside is noted.
pub trait Logs: Send + Sync {
    /// A log of everything from now on.
    fn begin(&self) -> DebugLog;

    /// The file it goes to, for a session; `None` where there is no place for one.
    fn file(&self, session: Uuid) -> Option<PathBuf>;
}

impl Session<'_> {
    /// Begins the log unless there is one, and has the model look for what is wrong.
    pub(super) async fn debug(&mut self, engine: &mut Engine, about: &str) {
        let file = self.logs.as_ref().and_then(|logs| Some((logs.clone(), logs.file(self.session_id)?)));
        let Some((logs, file)) = file else {
            return self.app.say("there is no place for a log of this session", Role::Error);
        };
        let since = match (&self.log, self.log_is_late) {
            (None, _) => "It was switched on just now, so it holds nothing of what came before.",
            (Some(_), true) => {
                "It was switched on in the middle of this session: of what came before nothing is in it."
            }
            (Some(_), false) => "It was written from the start.",
        };
        if self.log.is_none() {
            (self.log, self.log_is_late) = (Some(logs.begin()), true);
        }
        self.app.say(&format!("what happens is noted in {}", file.display()), Role::Faint);
        // Whoever asks for that wants it read. A name that rules cannot say is asked about.
        if let Ok(rule) = format!("Read(/{})", file.display()).parse::<Rule>() {
            let change = Change::AddRules(Behavior::Allow, vec![rule]);
            // Where there are too many rules already, it is asked about.
            let _ = self.handles.permissions.apply(&Update::session(change));
        }
        let wishes = match about {
            "" => String::new(),
            words => format!("\nWhat they say about it: {words}\n"),
        };
        let words = WORDS.replace("{file}", &file.display().to_string()).replace("{since}", since);
        let shown = format!("/debug {about}").trim_end().to_owned();
        self.submit(engine, &Submission { shown, ..said(&format!("{words}{wishes}")) }).await;
    }
}
