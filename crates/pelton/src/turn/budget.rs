//! The money of a run, shared by everyone who spends it: pure sums, no clock, no lock.

/// What may be spent, what was, and what is about to be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Purse {
    cap_usd: Option<f64>,
    spent_usd: f64,
    reserved_usd: f64,
}

/// Money set aside for one call. Give it back with [`Purse::settle`].
#[derive(Debug, PartialEq)]
#[must_use = "what is reserved must be settled"]
pub struct Reserved(f64);

impl Purse {
    /// A purse; without a cap it never runs out.
    pub fn new(cap_usd: Option<f64>) -> Self {
        Self { cap_usd, ..Self::default() }
    }

    /// Sets aside the likely cost of a call, if anything is left beside what others have set aside.
    pub fn reserve(&mut self, likely_usd: f64) -> Option<Reserved> {
        if self.left_usd().is_some_and(|left| left <= 0.0) {
            return None;
        }
        let likely_usd = likely_usd.max(0.0);
        self.reserved_usd += likely_usd;
        Some(Reserved(likely_usd))
    }

    /// Counts what a call cost, and frees what was set aside for it.
    pub fn settle(&mut self, Reserved(likely_usd): Reserved, cost_usd: f64) {
        self.reserved_usd = (self.reserved_usd - likely_usd).max(0.0);
        self.spent_usd += cost_usd.max(0.0);
    }

    /// Counts what was spent beside what was set aside: an attempt that failed is paid for, and so is the next.
    pub fn spend(&mut self, cost_usd: f64) {
        self.spent_usd += cost_usd.max(0.0);
    }

    /// Whether the cap is reached.
    pub fn is_spent(&self) -> bool {
        self.cap_usd.is_some_and(|cap| self.spent_usd >= cap)
    }

    /// What is neither spent nor set aside; `None` without a cap.
    pub fn left_usd(&self) -> Option<f64> {
        self.cap_usd.map(|cap| cap - self.spent_usd - self.reserved_usd)
    }

    /// What was spent.
    #[cfg(test)]
    pub fn spent_usd(&self) -> f64 {
        self.spent_usd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_call_is_sent_while_something_is_left_beside_the_reservations_of_others() {
        let mut purse = Purse::new(Some(1.0));
        let first = purse.reserve(0.6).unwrap();
        let second = purse.reserve(0.6).unwrap();
        assert_eq!(purse.reserve(0.1), None, "both are in flight");
        purse.settle(first, 0.3);
        let third = purse.reserve(0.1).unwrap();
        purse.settle(second, 0.3);
        purse.settle(third, 0.5);
        assert!(purse.is_spent());
        assert_eq!(purse.reserve(0.0), None);
        assert!((purse.spent_usd() - 1.1).abs() < 1e-9);
    }

    #[test]
    fn without_a_cap_there_is_no_end() {
        let mut purse = Purse::new(None);
        let reserved = purse.reserve(1e9).unwrap();
        purse.settle(reserved, 1e9);
        assert!(!purse.is_spent() && purse.reserve(1.0).is_some() && purse.left_usd().is_none());
    }

    proptest! {
        /// Whatever children do, the cap is passed by no more than the calls that were in flight.
        #[test]
        fn the_cap_is_never_passed_by_more_than_the_calls_in_flight(
            moves in prop::collection::vec((any::<bool>(), 0.0f64..0.5, 0.0f64..0.5), 1..200),
        ) {
            let mut purse = Purse::new(Some(1.0));
            let mut in_flight: Vec<(Reserved, f64)> = Vec::new();
            for (send, likely, cost) in moves {
                let spent_before = purse.spent_usd();
                if send {
                    let left = purse.left_usd().unwrap_or_default();
                    match purse.reserve(likely) {
                        Some(reserved) => {
                            prop_assert!(left > 0.0);
                            in_flight.push((reserved, cost));
                        }
                        None => prop_assert!(left <= 0.0),
                    }
                } else if let Some((reserved, cost)) = in_flight.pop() {
                    purse.settle(reserved, cost);
                    prop_assert!(purse.spent_usd() >= spent_before);
                }
                let flying: f64 = in_flight.iter().map(|(_, cost)| cost).sum();
                // Everything sent was sent below the cap: at most the calls in flight, and the last that ended.
                prop_assert!(spent_before < 1.0 || purse.spent_usd() <= spent_before + 0.5 + flying);
            }
        }
    }
}
