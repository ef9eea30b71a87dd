//! Files that can be mentioned, as a program of the user's own says (`fileSuggestion`).

use futures::future::abortable;
use pelton_serve::Served;
use serde_json::{Value, json};

use super::{Chore, Session};
use crate::theme::Role;

impl Session<'_> {
    /// Asks a program of the user's own which files fit. What it was asked before is of yesterday.
    pub(super) fn ask_for_files(&mut self, typed: String) {
        let Served::Later(work) = self.handles.ask("file_suggestions", json!({"query": typed})) else {
            return;
        };
        let (work, running) = abortable(work);
        if let Some(before) = self.files_asked.replace(running) {
            before.abort();
        }
        self.chores.push(Box::pin(async move { Chore::Files(typed, work.await.ok()) }));
    }

    /// What it said; nothing, if something else was asked in the meantime.
    pub(super) fn told_files(&mut self, typed: String, answer: Option<Result<Value, String>>) {
        match answer {
            Some(Ok(found)) => {
                let paths = found["suggestions"].as_array().into_iter().flatten();
                let paths = paths.filter_map(|found| found["path"].as_str().map(str::to_owned));
                self.app.draft.told_files(typed, paths.collect());
            }
            Some(Err(why)) => self.app.say(&why, Role::Error),
            None => {}
        }
    }
}
