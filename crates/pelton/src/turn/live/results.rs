//! P10, C0: results that are too much for one message go to a file before they are sent.

use std::path::PathBuf;
use std::sync::Arc;

use super::Live;
use crate::compact::Level;
use crate::compact::result_budget::too_much;
use crate::event::LoopKind;
use crate::history::{Edit, Kind, result};
use crate::spill::{self, Shown};
use crate::tools::ToolCx;
use crate::transcript::TranscriptError;

impl Live<'_> {
    /// Looks at the results that came since the last time. Those that are too much together are shown in part; the log
    /// keeps them.
    pub(super) async fn weigh_results(&mut self) -> Result<(), TranscriptError> {
        let bench = Arc::clone(&self.bench);
        for entry in std::mem::take(&mut self.session.in_files) {
            if let (Kind::ToolResult { call, .. }, Some(words)) = (&entry.kind, result::words(&entry)) {
                // What cannot be written is missed by whoever looks for it, and said then.
                let _ = keep(&bench.cx, call, &words).await;
            }
        }
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
                let Kind::ToolResult { call, .. } = &message[*index].kind else { continue };
                if let Some(text) = in_part(&bench.cx, call, &words[*index], shown_chars).await {
                    let edit = Edit::Shorten { call: call.to_string(), text };
                    self.edit(Level::ResultBudget, edit, "a result went to a file").await?;
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
        Ok(())
    }
}

/// The beginning of a result, its end and the place of the rest. A result that cannot be kept stays whole.
async fn in_part(cx: &ToolCx, call: &str, words: &str, shown_chars: usize) -> Option<String> {
    let path = keep(cx, call, words).await?;
    Some(Shown::of(words, shown_chars).with_note(Some(&path)))
}

async fn keep(cx: &ToolCx, call: &str, words: &str) -> Option<PathBuf> {
    spill::keep(&cx.spill_dir, &cx.secrets, &format!("{call}-result"), words).await.ok()
}
