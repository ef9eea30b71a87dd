//! What takes a while and is not waited for, and what is done when it is there.

use pelton::event::CommandInfo;
use pelton::{Event, QueueError};
use pelton_serve::Served;
use serde_json::Value;
use uuid::Uuid;

use super::changes::Changed;
use super::copying::Copied;
use super::outside::Edits;
use super::{Session, answers};
use crate::input::{Image, Submission};
use crate::theme::Role;

/// Something that took a while.
pub(super) enum Chore {
    Queued(Submission, Result<Uuid, QueueError>),
    /// A request, and what to call it.
    Served(&'static str, Result<Value, String>),
    Preview(Result<Value, String>),
    /// A picture from the clipboard.
    Picture(Result<Image, String>),
    /// What a program of the user's own says which files fit these words; nothing, if nobody waits for it any more.
    Files(String, Option<Result<Value, String>>),
    /// What prompts may call by `/name`.
    Commands(Vec<CommandInfo>),
    /// Something was looked for anew, and what is called so was found.
    Reloaded(&'static str, Result<Value, String>),
    /// What was changed in the working directory.
    Changed(Result<Changed, String>),
    /// An answer that was to go into the clipboard.
    Copied(String, Copied),
    /// The answer to a question beside the conversation, or why there is none; nothing if it was given up.
    Beside(u64, Option<Result<String, String>>),
    /// What the model would call this session.
    Named(Result<String, String>),
    /// What another program said.
    Said(String),
    /// What hooks did that heard that nobody types.
    Idled(Vec<Event>),
    /// What an editor of the user's own made of words, or why nothing.
    Edited(Edits, Result<String, String>),
    /// What the user's own line says, and which asking that was.
    Status(u64, Option<Vec<ratatui_core::text::Line<'static>>>),
}

impl Session<'_> {
    pub(super) fn chore_done(&mut self, chore: Chore) {
        match chore {
            Chore::Queued(said, Ok(id)) => {
                self.is_asked = true;
                self.app.queued(&said, id);
            }
            Chore::Queued(said, Err(why)) => self.app.not_queued(&said, &why.to_string()),
            Chore::Served(what, Ok(_)) => self.app.say(&format!("{what}: done"), Role::Faint),
            Chore::Served(what, Err(why)) => self.app.say(&format!("{what}: {why}"), Role::Error),
            Chore::Status(generation, lines) => self.status_said(generation, lines),
            Chore::Commands(commands) => self.app.draft.knows(&commands),
            Chore::Files(typed, answer) => self.told_files(typed, answer),
            Chore::Edited(what, edited) => self.edited(what, edited),
            Chore::Changed(changed) => self.changes_told(changed),
            Chore::Copied(answer, copied) => self.copied(&answer, &copied),
            Chore::Reloaded(what, Ok(found)) => {
                let found = found[format!("{what}s")].as_array().map_or(0, Vec::len);
                let many = if found == 1 { "" } else { "s" };
                self.app.say(&format!("{found} {what}{many} found"), Role::Faint);
                // What was found can be called.
                let menu = self.menu.clone();
                self.chores.push(Box::pin(async move { Chore::Commands(menu.look().await) }));
            }
            Chore::Reloaded(what, Err(why)) => self.app.say(&format!("{what}s: {why}"), Role::Error),
            Chore::Beside(id, answer) => self.answered_beside(id, answer),
            Chore::Named(answer) => self.named(answer),
            Chore::Said(words) => self.app.say(&words, Role::Text),
            Chore::Idled(told) => told.iter().for_each(|event| self.heard_event(event)),
            Chore::Picture(Ok(picture)) => self.app.draft.attach(picture),
            Chore::Picture(Err(why)) => self.app.say(&why, Role::Error),
            Chore::Preview(preview) => {
                self.app.ask_undo(preview.map(|preview| answers::files_of(&preview, &self.cwd)));
            }
        }
    }

    /// A request that takes a while, and what comes of it.
    pub(super) fn serve_with(
        &mut self,
        subtype: &str,
        body: Value,
        done: fn(Result<Value, String>) -> Chore,
    ) {
        match self.handles.ask(subtype, body) {
            Served::Now(answer) => self.chore_done(done(answer)),
            Served::Later(work) => self.chores.push(Box::pin(async move { done(work.await) })),
            _ => {}
        }
    }
}
