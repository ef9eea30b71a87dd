//! Which prompts an answer is to: clients that send several find theirs by its id.

use std::collections::HashSet;

use pelton::event::Event;
use pelton::history::Kind;
use uuid::Uuid;

/// More ids than this are not told with one frame.
const TOLD_MAX: usize = 64;
/// Of more prompts that wait it is not known who wrote them.
const BY_HUMAN_MAX: usize = 4_096;

/// The prompts that a submission has read so far.
#[derive(Default)]
pub(super) struct Prompts {
    read: Vec<Uuid>,
    /// No answer has named the newest of them yet, and no beginning of one.
    is_unnamed: bool,
    is_unstreamed: bool,
    /// Those of which the client says that a person wrote them, until they are answered.
    by_human: HashSet<Uuid>,
}

/// The newest of them, and all; nothing if there are none.
type Named = (Option<Uuid>, Option<Vec<Uuid>>);

impl Prompts {
    /// What an event says about them.
    pub fn heed(&mut self, event: &Event) {
        match event {
            Event::Init(_) => {
                let by_human = std::mem::take(&mut self.by_human);
                *self = Self { by_human, ..Self::default() };
            }
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

    /// The client says that a person wrote this one.
    pub fn said_by_human(&mut self, id: Uuid) {
        if self.by_human.len() < BY_HUMAN_MAX {
            self.by_human.insert(id);
        }
    }

    /// They are answered. Tells whether a person wrote the one that began it.
    pub fn answered(&mut self) -> bool {
        let by_human = self.read.first().is_some_and(|id| self.by_human.contains(id));
        self.read.iter().for_each(|id| _ = self.by_human.remove(id));
        by_human
    }

    pub fn all(&self) -> Named {
        let last = self.read.last().copied();
        (last, last.map(|_| self.read.clone()))
    }
}
