//! P10, C0: results that are too much for one message go to a file before they are sent.

use std::path::Path;
use std::sync::Arc;

use super::Live;
use crate::compact::result_budget::too_much;
use crate::event::LoopKind;
use crate::history::{Entry, Kind, result};
use crate::spill::{self, Shown};

impl Live<'_> {
    /// Looks at the results that came since the last time. Those that are too much together are replaced in the view; the
    /// log keeps them, and a resumed session, which reads it, decides the same.
    pub(super) async fn weigh_results(&mut self) {
        let bench = Arc::clone(&self.bench);
        let limits = &bench.cx.limits;
        let (chars_max, shown_chars) = (limits.message_result_chars_max, limits.result_preview_chars);
        for message in self.session.history.view().unweighed_results() {
            // No character is shorter than a byte: most messages need no closer look.
            if message.iter().map(|entry| entry.json.len()).sum::<usize>() <= chars_max {
                continue;
            }
            let words: Vec<String> =
                message.iter().map(|entry| result::words(entry).unwrap_or_default()).collect();
            let chars: Vec<usize> = words.iter().map(|words| words.chars().count()).collect();
            let replaced = too_much(&chars, chars_max, shown_chars);
            let mut kept = 0;
            for index in &replaced {
                let dir = &bench.cx.spill_dir;
                if let Some(smaller) = in_part(dir, &message[*index], &words[*index], shown_chars).await {
                    self.session.history.view_mut().replace_result(Arc::new(smaller));
                    kept += 1;
                }
            }
            if !replaced.is_empty() {
                let all: usize = chars.iter().sum();
                let reason = format!(
                    "{all} characters of results in one message are too much: {kept} of {} results went to files",
                    message.len()
                );
                self.note(LoopKind::ResultBudget, reason).await;
            }
        }
        self.session.history.view_mut().all_weighed();
    }
}

/// The result with its beginning, its end and the place of the rest. A result that cannot be kept stays whole.
async fn in_part(dir: &Path, entry: &Entry, words: &str, shown_chars: usize) -> Option<Entry> {
    let Kind::ToolResult { call, .. } = &entry.kind else { return None };
    let path = spill::keep(dir, &format!("{call}-result"), words).await.ok()?;
    result::with_words(entry, &Shown::of(words, shown_chars).with_note(Some(&path)))
}
