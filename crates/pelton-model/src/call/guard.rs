//! Patience with a silent server, and its end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};

use crate::answer::Life;
use crate::client::Road;
use crate::error::{ErrorKind, ModelError};
use crate::step::Step;
use crate::stream::Sender;
use crate::watch::{Alarm, Watch};

/// A timer that is noticed later than this was not listened to.
const UNHEARD_MAX: Duration = Duration::from_secs(1);

/// Waits for the server, and says so when it is silent for long.
pub(super) struct Guard<'a> {
    pub(super) road: &'a Road,
    pub(super) steps: &'a Sender<Step>,
    watch: Watch,
    /// Runs on while events come; whether it rang too early is looked up when it rings. Setting a timer for every
    /// event would cost more than reading the event.
    timer: BoxFuture<'static, ()>,
    rings_at: Duration,
}

impl<'a> Guard<'a> {
    pub(super) fn new(road: &'a Road, streaming: bool, steps: &'a Sender<Step>) -> Self {
        let now = road.world.monotonic();
        let watch = Watch::new(now, streaming, &road.policy);
        let rings_at = watch.due();
        Self { timer: road.world.sleep(rings_at.saturating_sub(now)), rings_at, road, steps, watch }
    }

    pub(super) fn saw(&mut self, life: Life) {
        let now = self.road.world.monotonic();
        self.watch.saw(life, now);
        // After a notice the timer waits for the cut, but now the next notice comes first.
        if self.watch.due() < self.rings_at {
            self.wind(now);
        }
    }

    fn wind(&mut self, now: Duration) {
        self.rings_at = self.watch.due();
        self.timer = self.road.world.sleep(self.rings_at.saturating_sub(now));
    }

    /// Waits for `work`, but no longer than the server may be silent.
    pub(super) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ModelError> {
        let mut work = pin!(work);
        loop {
            match select(work.as_mut(), &mut self.timer).await {
                Either::Left((done, _)) => return Ok(done),
                Either::Right(((), _)) => {}
            }
            let now = self.road.world.monotonic();
            // Whoever pulls the call was busy elsewhere: that is no silence of the server's.
            if now.saturating_sub(self.rings_at) > UNHEARD_MAX {
                self.watch.excuse(now);
            }
            match self.watch.alarm(now) {
                Some(Alarm::Cut(silent)) => {
                    let message = format!("nothing came from the server for {}", in_words(silent));
                    return Err(ModelError::new(ErrorKind::Stalled, message));
                }
                Some(Alarm::Notice(silent_for)) => self.steps.send(Step::Stalled { silent_for }).await,
                None => {}
            }
            self.wind(now);
        }
    }
}

fn in_words(silence: Duration) -> String {
    match silence.as_secs() {
        0 => format!("{} milliseconds", silence.as_millis()),
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}
