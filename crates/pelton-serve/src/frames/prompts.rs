//! Which prompts an answer is to: clients that send several find theirs by its id.

use pelton::event::Event;
use pelton::history::Kind;
use uuid::Uuid;

/// More ids than this are not told with one frame.
const TOLD_MAX: usize = 64;

/// The prompts that a submission has read so far.
#[derive(Default)]
pub(super) struct Prompts {
    read: Vec<Uuid>,
    /// No answer has named the newest of them yet, and no beginning of one.
    is_unnamed: bool,
    is_unstreamed: bool,
}

/// The newest of them, and all; nothing if there are none.
type Named = (Option<Uuid>, Option<Vec<Uuid>>);

impl Prompts {
    /// What an event says about them.
    pub fn heed(&mut self, event: &Event) {
        match event {
            Event::Init(_) => *self = Self::default(),
            Event::Prompt(entry) if matches!(entry.kind, Kind::Prompt { meta: false }) => self.add(entry.id),
            Event::PromptsConsumed(ids) => ids.iter().for_each(|id| self.add(*id)),
            _ => {}
        }
    }

    fn add(&mut self, id: Uuid) {
        if !self.read.contains(&id) && self.read.len() < TOLD_MAX {
            self.read.push(id);
            (self.is_unnamed, self.is_unstreamed) = (true, true);
        }
    }

    /// Those that the first answer since they were read names.
    pub fn unnamed(&mut self) -> Named {
        match std::mem::take(&mut self.is_unnamed) {
            true => self.all(),
            false => (None, None),
        }
    }

    /// The same for the first beginning of an answer.
    pub fn unstreamed(&mut self) -> Named {
        match std::mem::take(&mut self.is_unstreamed) {
            true => self.all(),
            false => (None, None),
        }
    }

    pub fn all(&self) -> Named {
        let last = self.read.last().copied();
        (last, last.map(|_| self.read.clone()))
    }
}
