//! The chain of lines that is the conversation: each names the one it follows.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::{Lines, Link};
use crate::history::Kind;

/// The conversation's chain of lines.
pub(in crate::transcript) struct Chain {
    /// Its lines, the first one first.
    pub(super) links: Vec<usize>,
    /// Lines whose parents are not there, and the parents, as far as the lines name them.
    pub missing: Vec<(usize, Option<Uuid>)>,
}

impl Link {
    /// Whether something must stand before it: no conversation begins with an answer, or with the result of a call.
    fn goes_on(&self) -> bool {
        let first = self.entries.first().map(|entry| &entry.kind);
        matches!(first, Some(Kind::Assistant { .. } | Kind::ToolResult { .. }))
    }
}

impl Lines {
    /// Whether a line is part of the chain.
    pub fn is_on(&self, chain: &Chain, id: Uuid) -> bool {
        self.by_id.get(&id).is_some_and(|index| chain.links.contains(index))
    }

    /// The last line; where lines stand in another order than they were written in, the one at the end of what follows it.
    fn newest(&self) -> Option<usize> {
        let last = self.links.len().checked_sub(1)?;
        let id = self.links[last].id;
        if !self.links[..last].iter().any(|link| link.parent == Some(id)) {
            return Some(last);
        }
        let links = self.links.iter().enumerate().filter(|(_, link)| link.parent != Some(link.id));
        let followers: HashMap<Uuid, usize> =
            links.filter_map(|(index, link)| Some((link.parent?, index))).collect();
        let (mut at, mut seen) = (last, HashSet::from([last]));
        while let Some(next) = followers.get(&self.links[at].id) {
            // Lines that follow each other have no end.
            if !seen.insert(*next) {
                return Some(last);
            }
            at = *next;
        }
        Some(at)
    }

    /// The chain of parents from the newest line back to the first.
    pub fn chain(&self) -> Chain {
        let mut chain = Chain { links: Vec::new(), missing: Vec::new() };
        let mut on_chain = HashSet::new();
        let mut at = self.newest();
        while let Some(index) = at.filter(|index| on_chain.insert(*index)) {
            chain.links.push(index);
            let link = &self.links[index];
            // What says that it follows itself, at once or by way of others, follows what was written before it.
            let parent = link.parent.and_then(|parent| self.by_id.get(&parent).copied());
            at = parent.filter(|known| !on_chain.contains(known)).or_else(|| {
                if link.parent.is_none() && !link.goes_on() {
                    return None;
                }
                chain.missing.push((index, link.parent));
                // The parent's line is damaged: what was written before it is still the conversation.
                index.checked_sub(1)
            });
        }
        chain.links.reverse();
        chain
    }
}
