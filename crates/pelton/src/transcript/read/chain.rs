//! The chain of lines that is the conversation: each names the one it follows.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use uuid::Uuid;

use super::Lines;

/// The conversation's chain of lines.
pub(in crate::transcript) struct Chain {
    /// Its lines, the first one first.
    pub(super) links: Vec<usize>,
    /// Lines whose parents are not there, and the parents, as far as the lines name them.
    pub missing: Vec<(usize, Option<Uuid>)>,
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
                if link.parent.is_none() && !link.goes_on && !link.lost_parent {
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

    /// The same with every part of its answers. Other programs let the result of a call follow that call, and what comes next
    /// follow one of the results: calls that were made beside it stand on branches of their own. What somebody went back to
    /// before is left out, as they wanted.
    pub(super) fn with_whole_answers(&self, chain: Vec<usize>, left: &[RangeInclusive<usize>]) -> Vec<usize> {
        let answer = |index: usize| self.links[index].answer.as_ref();
        let on_chain: HashSet<usize> = chain.iter().copied().collect();
        let answers: HashSet<&Arc<str>> = chain.iter().filter_map(|index| answer(*index)).collect();
        let mut beside: HashMap<&Arc<str>, Vec<usize>> = HashMap::new();
        for index in (0..self.links.len()).filter(|index| !on_chain.contains(index)) {
            if let Some(answer) = answer(index).filter(|answer| answers.contains(answer))
                && !left.iter().any(|left| left.contains(&index))
            {
                beside.entry(answer).or_default().push(index);
            }
        }
        if beside.is_empty() {
            return chain;
        }
        let last_of: HashMap<&Arc<str>, usize> =
            chain.iter().filter_map(|index| Some((answer(*index)?, *index))).collect();
        let with_others = |index: usize| {
            let ends = answer(index).filter(|answer| last_of.get(answer) == Some(&index));
            let others = ends.and_then(|answer| beside.get(answer)).into_iter().flatten().copied();
            std::iter::once(index).chain(others)
        };
        chain.into_iter().flat_map(with_others).collect()
    }

    /// The lines of the conversation: those of the chain, and results beside it, wherever they stand.
    pub(in crate::transcript) fn conversation(&self) -> HashSet<Uuid> {
        let chain = self.chain().links;
        let left = self.left(&chain);
        let chain = self.with_whole_answers(chain, &left);
        let results = (0..self.links.len()).filter(|index| self.links[*index].is_result);
        chain.into_iter().chain(results).map(|index| self.links[index].id).collect()
    }
}
