//! What was done to the context: that a model sums it up, and the boundary behind which a summary stands for the rest.

use pelton::compact::Level;
use pelton::event::{Boundary, ContextEvent, Trigger};
use serde_json::json;

use super::{Frames, millis};

impl Frames {
    pub(super) fn context(&mut self, told: &ContextEvent) -> Vec<u8> {
        match told {
            ContextEvent::Compacting { .. } => {
                self.compacting = true;
                self.system("status").field("status", "compacting").finish_line()
            }
            ContextEvent::Compacted(ended) => {
                self.compacting = false;
                let result = if ended.is_ok() { "success" } else { "failed" };
                self.system("status")
                    .field("status", None::<&str>)
                    .field("compact_result", result)
                    .field_if("compact_error", ended.as_ref().err())
                    .finish_line()
            }
            ContextEvent::Boundary(boundary) => self.boundary(boundary),
            _ => Vec::new(),
        }
    }

    /// Wherever something goes that the model was sent, there is a boundary; behind one that a summary stands at, the
    /// summary. A result that went to a file is there as long as the file is.
    fn boundary(&mut self, boundary: &Boundary) -> Vec<u8> {
        // Where something was undone, something has come back.
        let takes_away = !matches!(boundary.level, Level::ResultBudget | Level::Undo);
        let is_seen = boundary.summary.is_some() || boundary.after_tokens < boundary.before_tokens;
        if !is_seen || !takes_away {
            return Vec::new();
        }
        let by_hand = matches!(boundary.level, Level::Snip | Level::Manual);
        let trigger = boundary.trigger.unwrap_or(if by_hand { Trigger::Manual } else { Trigger::Auto });
        let metadata = json!({
            "trigger": trigger.name(),
            "pre_tokens": boundary.before_tokens,
            "post_tokens": boundary.after_tokens,
            "duration_ms": millis(boundary.duration),
        });
        let mut frames = self.system("compact_boundary").field("compact_metadata", metadata).finish_line();
        self.summed_up = trigger == Trigger::Manual && boundary.summary.is_some();
        if let Some(summary) = &boundary.summary {
            frames.extend(self.message(summary, None));
        }
        frames
    }
}
