//! Time and chance from a seed, so that a run can be played again.

use crate::dice::Dice;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use pelton_model::World;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// When the wall clock of a seeded world begins: 2026-01-01, in seconds since 1970.
const BEGINNING_SECONDS: i64 = 1_767_225_600;

/// A world that follows from its seed. Its clock is the runtime's: stop that (`tokio::time::pause`, or
/// `start_paused`) and waiting takes no time.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use pelton_model::World;
/// use pelton_testkit::SeededWorld;
///
/// let (one, other) = (SeededWorld::new(7), SeededWorld::new(7));
/// assert_eq!(one.random(), other.random());
/// // Somebody sets the clock; time goes on as ever.
/// let before = one.now();
/// one.jump(jiff::SignedDuration::from_hours(-2));
/// assert!(one.now() < before);
/// # }
/// ```
#[derive(Debug)]
pub struct SeededWorld {
    started: Instant,
    /// What the wall clock showed at the start, jumps included.
    wall: Mutex<Timestamp>,
    dice: Mutex<Dice>,
}

impl SeededWorld {
    /// A world that begins now, as the runtime counts, and always at the same date.
    pub fn new(seed: u64) -> Self {
        Self {
            started: Instant::now(),
            wall: Mutex::new(Timestamp::from_second(BEGINNING_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH)),
            dice: Mutex::new(Dice::new(seed, b"world")),
        }
    }

    /// Sets the wall clock forward, or back. Only [`World::now`] sees it; at the ends of time it stays where it is.
    pub fn jump(&self, by: SignedDuration) {
        let mut wall = self.wall.lock().unwrap_or_else(PoisonError::into_inner);
        *wall = wall.checked_add(by).unwrap_or(*wall);
    }
}

impl World for SeededWorld {
    fn now(&self) -> Timestamp {
        let wall = *self.wall.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        wall.checked_add(passed).unwrap_or(wall)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn random(&self) -> u64 {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(wait))
    }
}
