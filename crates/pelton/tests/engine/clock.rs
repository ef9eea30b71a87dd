//! A machine on which nobody waits for another attempt: every such wait is kept and passes at once, and the clock says
//! that it passed. Timers that run beside a request are those of the real machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use pelton_model::{RealWorld, World};

/// The machine.
#[derive(Default)]
pub struct Hasty {
    real: RealWorld,
    waits: Mutex<Vec<Duration>>,
}

impl Hasty {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The waits so far. A long one comes in parts: with a sign of life between two of them.
    pub fn waits(&self) -> Vec<Duration> {
        self.waits.lock().unwrap().clone()
    }

    /// How much time passed without passing.
    pub fn skipped(&self) -> Duration {
        self.waits.lock().unwrap().iter().sum()
    }
}

impl World for Hasty {
    fn now(&self) -> Timestamp {
        self.real.now() + self.skipped()
    }

    fn monotonic(&self) -> Duration {
        self.real.monotonic() + self.skipped()
    }

    fn random(&self) -> u64 {
        self.real.random()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(wait)
    }

    fn back_off(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.waits.lock().unwrap().push(wait);
        Box::pin(std::future::ready(()))
    }
}
