//! `tool_progress`: a call that takes long is no silence. Who watches is told that it still runs, and for how long.

use std::sync::Arc;
use std::time::Duration;

use pelton::event::Event;
use pelton::history::Kind;
use pelton::tools::served_name;
use pelton_model::World;
use pelton_wire::line::Line;
use serde_json::{Value, json};

use super::Frames;

/// A call that has run for this long is told of, and again each time it has run for as long again: often enough to see
/// that it lives, and a command that runs for an hour does not fill the pipe.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// The calls that run, in the order in which they began. The engine bounds how many.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

struct Call {
    id: Arc<str>,
    tool: Arc<str>,
    since: Duration,
    told_next: Duration,
}

impl Calls {
    /// What an event says about them.
    pub fn heed(&mut self, event: &Event, world: &dyn World) {
        match event {
            Event::ToolStarted(started) => {
                let now = world.monotonic();
                let (id, tool) = (Arc::clone(&started.call), Arc::clone(&started.tool));
                self.0.push(Call { id, tool, since: now, told_next: now + TOLD_EVERY });
            }
            Event::Message(entry) => {
                if let Kind::ToolResult { call, .. } = &entry.kind {
                    self.0.retain(|running| running.id != *call);
                }
            }
            Event::Result(_) => self.0.clear(),
            _ => {}
        }
    }

    fn told_next(&self) -> Option<Duration> {
        self.0.iter().map(|call| call.told_next).min()
    }
}

/// What people call a tool of a server's, where a call of one is told; nothing of other tools.
pub(super) fn meta(call: &str, tool: &str, servers: &[String]) -> Option<Value> {
    let (server, own) =
        servers.iter().find_map(|server| Some((server, tool.strip_prefix(&served_name(server, ""))?)))?;
    Some(json!([{"id": call, "display_name": own, "server_display_name": server}]))
}

impl Frames {
    /// How long until [`announce`](Self::announce) has something to tell.
    pub fn announces_in(&self) -> Option<Duration> {
        Some(self.calls.told_next()?.saturating_sub(self.world.monotonic()))
    }

    /// Tells of the calls that have run for long.
    pub fn announce(&mut self) -> Vec<u8> {
        let now = self.world.monotonic();
        let mut due = Vec::new();
        for call in self.calls.0.iter_mut().filter(|call| call.told_next <= now) {
            call.told_next = now + TOLD_EVERY;
            due.push((Arc::clone(&call.id), Arc::clone(&call.tool), now.saturating_sub(call.since)));
        }
        let frame = |(id, tool, elapsed): (Arc<str>, Arc<str>, Duration)| {
            Line::new("tool_progress")
                .field("tool_use_id", &*id)
                .field("tool_name", &*tool)
                .field("parent_tool_use_id", None::<&str>)
                .field("elapsed_time_seconds", elapsed.as_secs())
                .field("session_id", self.session)
                .field("uuid", self.id())
                .finish_line()
        };
        due.into_iter().flat_map(frame).collect()
    }
}
