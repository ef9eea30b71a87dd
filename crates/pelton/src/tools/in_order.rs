//! P11: what calls change happens in the order of asking, though they run side by side.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::permission::{Permissions, Update};

/// The calls of one answer, as far as they change what may run.
#[derive(Debug)]
pub struct Line {
    waiting: Mutex<Waiting>,
    moved: Notify,
    permissions: Permissions,
}

/// A call's place in the line. It settles what the call changes, nothing unless told otherwise.
#[derive(Debug)]
pub struct Place {
    line: Arc<Line>,
    slot: usize,
    settled: bool,
}

/// Changes of calls whose turn has not come.
#[derive(Debug, Default)]
struct Waiting {
    /// The first call that has not settled.
    next: usize,
    settled: BTreeMap<usize, Vec<Update>>,
    /// How many calls the answer has made so far, and whether it makes more.
    calls: usize,
    complete: bool,
    /// Something was changed.
    changed: bool,
}

impl Waiting {
    /// A call has settled; what may be changed now, in order.
    fn settle(&mut self, slot: usize, updates: Vec<Update>) -> Vec<Update> {
        self.settled.insert(slot, updates);
        let mut ready = Vec::new();
        while let Some(updates) = self.settled.remove(&self.next) {
            ready.extend(updates);
            self.next += 1;
        }
        ready
    }
}

impl Line {
    /// Nobody stands in it yet.
    pub fn new(permissions: Permissions) -> Self {
        Self { waiting: Mutex::default(), moved: Notify::new(), permissions }
    }

    /// The answer has made another call.
    pub fn one_more(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).calls += 1;
        self.moved.notify_waiters();
    }

    /// The answer makes no more calls.
    pub fn complete(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).complete = true;
        self.moved.notify_waiters();
    }

    /// Whether any call has changed what may run.
    pub fn has_changed_anything(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).changed
    }

    /// The place of a call. Every slot must be taken, in any order, and each once.
    pub fn place(self: &Arc<Self>, slot: usize) -> Place {
        Place { line: Arc::clone(self), slot, settled: false }
    }
}

impl Place {
    /// Waits until every call before this one has settled.
    pub async fn turn(&self) {
        self.until(|waiting| (waiting.next >= self.slot).then_some(())).await;
    }

    /// Waits until it is known whether the answer makes other calls beside this one. Tells whether it makes none.
    pub async fn is_alone(&self) -> bool {
        self.until(|waiting| (waiting.complete || waiting.calls > 1).then_some(waiting.calls <= 1)).await
    }

    async fn until<T>(&self, known: impl Fn(&Waiting) -> Option<T>) -> T {
        loop {
            let mut moved = std::pin::pin!(self.line.moved.notified());
            // Listen first, then look: a move in between is not missed.
            moved.as_mut().enable();
            if let Some(known) = known(&self.line.waiting.lock().unwrap_or_else(PoisonError::into_inner)) {
                return known;
            }
            moved.await;
        }
    }

    /// Nothing more will be changed by this call than this. It happens once the calls before have settled. Says what
    /// was not changed.
    pub fn settle(&mut self, updates: Vec<Update>) -> Vec<String> {
        if std::mem::replace(&mut self.settled, true) {
            return Vec::new();
        }
        // Applied under the lock: the next call must not overtake.
        let mut waiting = self.line.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = waiting.settle(self.slot, updates);
        waiting.changed |= !ready.is_empty();
        let refused = ready.iter().flat_map(|update| self.line.permissions.apply_and_keep(update)).collect();
        drop(waiting);
        self.line.moved.notify_waiters();
        refused
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.settle(Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::{Change, Mode, RuleSet};
    use proptest::prelude::*;

    fn directory(slot: usize) -> Update {
        Update::session(Change::AddDirectories(vec![format!("/{slot}").into()]))
    }

    proptest! {
        #[test]
        fn whatever_order_they_settle_in_changes_come_in_the_order_of_asking(
            order in (0usize..12).prop_flat_map(|count| Just((0..count).collect::<Vec<_>>()).prop_shuffle()),
            dropped in prop::collection::vec(any::<bool>(), 12),
        ) {
            let permissions = Permissions::new(RuleSet::default(), Mode::Default, "/".into(), Vec::new(), None);
            let line = Arc::new(Line::new(permissions.clone()));
            let mut places: Vec<Option<Place>> = (0..order.len()).map(|slot| Some(line.place(slot))).collect();
            for slot in &order {
                let mut place = places[*slot].take().unwrap();
                if !dropped[*slot] {
                    prop_assert!(place.settle(vec![directory(*slot)]).is_empty());
                }
            }
            let expected: Vec<std::path::PathBuf> = std::iter::once("/".into())
                .chain((0..order.len()).filter(|slot| !dropped[*slot]).map(|slot| format!("/{slot}").into()))
                .collect();
            prop_assert_eq!(permissions.roots(), expected);
        }
    }

    #[tokio::test]
    async fn a_turn_comes_when_all_before_have_settled() {
        let permissions = Permissions::new(RuleSet::default(), Mode::Default, "/".into(), Vec::new(), None);
        let line = Arc::new(Line::new(permissions));
        let [first, mut second, third] = [0, 1, 2].map(|slot| line.place(slot));
        let mut turn = std::pin::pin!(third.turn());
        assert!(futures::poll!(&mut turn).is_pending());
        second.settle(Vec::new());
        assert!(futures::poll!(&mut turn).is_pending());
        drop(first);
        assert!(futures::poll!(&mut turn).is_ready());
    }
}
