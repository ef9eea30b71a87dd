//! Whether fast answers are to be had. What one call finds out, the others know.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a question in fast mode gets from a client.
///
/// ```
/// use std::time::Duration;
///
/// use pelton_model::FastMode;
///
/// /// What stands beside the model's name; `Client::fast_mode` says which it is.
/// fn line(mode: FastMode) -> String {
///     match mode {
///         FastMode::On => "fast".to_owned(),
///         FastMode::Cooldown { left } => format!("fast again in {left:?}"),
///         _ => String::new(),
///     }
/// }
/// assert_eq!(line(FastMode::Cooldown { left: Duration::from_secs(90) }), "fast again in 90s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FastMode {
    /// A fast answer, as far as is known.
    On,
    /// Standard speed, for a while: the limit of fast mode was reached.
    Cooldown {
        /// How long that lasts.
        left: Duration,
    },
    /// Standard speed: the server refused fast mode altogether.
    Off,
}

/// The switch that the calls of one client share.
#[derive(Debug, Default)]
pub(crate) struct FastSwitch {
    position: Mutex<Position>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Position {
    #[default]
    On,
    /// On again at this time of the monotonic clock.
    From(Duration),
    Off,
}

impl FastSwitch {
    pub(crate) fn state(&self, now: Duration) -> FastMode {
        match *self.lock() {
            Position::From(at) if at > now => FastMode::Cooldown { left: at - now },
            Position::On | Position::From(_) => FastMode::On,
            Position::Off => FastMode::Off,
        }
    }

    /// Standard speed until this time, or longer if somebody already said so.
    pub(crate) fn cool_down(&self, until: Duration) {
        let mut position = self.lock();
        *position = match *position {
            Position::On => Position::From(until),
            Position::From(at) => Position::From(at.max(until)),
            Position::Off => Position::Off,
        };
    }

    /// Standard speed for good.
    pub(crate) fn turn_off(&self) {
        *self.lock() = Position::Off;
    }

    /// Nothing panics while the lock is held.
    fn lock(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cooldown_passes_and_a_refusal_does_not() {
        let second = Duration::from_secs;
        let switch = FastSwitch::default();
        assert_eq!(switch.state(second(1)), FastMode::On);
        switch.cool_down(second(10));
        switch.cool_down(second(5));
        assert_eq!(switch.state(second(4)), FastMode::Cooldown { left: second(6) });
        assert_eq!(switch.state(second(10)), FastMode::On);
        switch.turn_off();
        switch.cool_down(second(20));
        assert_eq!(switch.state(second(99)), FastMode::Off);
    }
}
