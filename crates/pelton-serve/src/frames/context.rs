//! What was done to the context: that a model sums it up, and the boundary behind which a summary stands for the rest.

use pelton::event::{Boundary, ContextEvent};
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

    /// Only summaries are boundaries to clients; what else was done is told with what the loop does.
    fn boundary(&mut self, boundary: &Boundary) -> Vec<u8> {
        let (Some(summary), Some(trigger)) = (&boundary.summary, boundary.trigger) else { return Vec::new() };
        let metadata = json!({
            "trigger": trigger.name(),
            "pre_tokens": boundary.before_tokens,
            "post_tokens": boundary.after_tokens,
            "duration_ms": millis(boundary.duration),
        });
        let mut frames = self.system("compact_boundary").field("compact_metadata", metadata).finish_line();
        frames.extend(self.message(summary, None));
        frames
    }
}
