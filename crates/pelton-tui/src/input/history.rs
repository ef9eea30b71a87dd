//! What was asked before, and the way back to it. Where it is kept between sessions is for others to know.

use std::collections::VecDeque;

use super::parts::Draft;
use crate::limits::HISTORY_PROMPTS_MAX;

#[derive(Debug, Default)]
pub struct History {
    /// The oldest first.
    prompts: VecDeque<Draft>,
}

impl History {
    /// What was kept, the oldest first. Only the newest count.
    pub fn of(prompts: impl IntoIterator<Item = String>) -> Self {
        let mut history = Self::default();
        for prompt in prompts {
            history.add(Draft::of(&prompt));
        }
        history
    }

    /// A prompt that was sent. The same twice in a row is one.
    pub fn add(&mut self, prompt: Draft) {
        if prompt.text.trim().is_empty() || self.prompts.back() == Some(&prompt) {
            return;
        }
        self.prompts.push_back(prompt);
        if self.prompts.len() > HISTORY_PROMPTS_MAX {
            self.prompts.pop_front();
        }
    }

    pub fn len(&self) -> usize {
        self.prompts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Draft> {
        self.prompts.get(at)
    }

    /// The nearest older than `at` that begins so.
    pub(super) fn older(&self, at: usize, prefix: &str) -> Option<usize> {
        (0..at.min(self.prompts.len())).rev().find(|at| self.prompts[*at].text.starts_with(prefix))
    }

    /// The nearest newer than `at` that begins so.
    pub(super) fn newer(&self, at: usize, prefix: &str) -> Option<usize> {
        (at + 1..self.prompts.len()).find(|at| self.prompts[*at].text.starts_with(prefix))
    }

    /// The nearest older than `at` that has these words somewhere. Capitals count only if the words have some.
    pub(super) fn having(&self, at: usize, words: &str) -> Option<usize> {
        let exact = words.chars().any(char::is_uppercase);
        let has = |text: &str| if exact { text.contains(words) } else { text.to_lowercase().contains(words) };
        (0..at.min(self.prompts.len())).rev().find(|at| has(&self.prompts[*at].text))
    }
}
