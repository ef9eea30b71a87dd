//! Time and chance come in by this door, so that a run can be replayed from a seed.
//!
//! This is the only file of the libraries that asks the machine for the time or for randomness; the `tidy` test
//! holds that.

use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;

/// What a run may ask of the world around it, besides the model and the tools.
///
/// ```
/// use std::time::Duration;
///
/// use pelton_model::{RealWorld, World};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let world = RealWorld::new();
/// let before = world.monotonic();
/// world.sleep(Duration::from_millis(5)).await;
/// assert!(world.monotonic() >= before + Duration::from_millis(5));
/// # }
/// ```
pub trait World: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;

    /// 64 random bits.
    fn random(&self) -> u64;

    /// Waits.
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()>;

    /// Waits before a failed request is made again. Nothing of the call goes on meanwhile, so a world that stands in for
    /// hours can let them pass at once; timers that run beside something else are [`sleep`](Self::sleep)s.
    fn back_off(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.sleep(wait)
    }
}

/// The machine's own clock and randomness.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton_model::{RealWorld, World};
///
/// let world: Arc<dyn World> = Arc::new(RealWorld::new()); // tests bring another
/// assert_ne!(world.random(), world.random());
/// ```
#[derive(Debug)]
pub struct RealWorld {
    started: Instant,
}

impl RealWorld {
    /// A world whose monotonic clock starts now.
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for RealWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn random(&self) -> u64 {
        // Every `RandomState` carries fresh keys derived from the operating system's generator: enough for jitter
        // and ids, without a dependency.
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write_u128(self.started.elapsed().as_nanos());
        hasher.finish()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(wait))
    }
}
