//! How long a silent server is waited for. Pure: it is told the time.

use std::time::Duration;

use crate::answer::Life;
use crate::retry::RetryPolicy;

/// Looks after one attempt. Events count as signs of life, bytes do not: a relay can keep a dead stream dripping.
#[derive(Debug)]
pub(crate) struct Watch {
    idle: Duration,
    idle_pings_only: Duration,
    notice: Duration,
    last_event: Duration,
    last_progress: Duration,
    noticed: bool,
}

/// Silence that lasted too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Long enough to be told.
    Notice(Duration),
    /// Too long.
    Cut(Duration),
}

impl Watch {
    /// Begins to watch `now`. An answer that comes at once is silent until it is there: it gets the longer limit.
    pub(crate) fn new(now: Duration, streaming: bool, policy: &RetryPolicy) -> Self {
        let idle = if streaming { policy.idle } else { policy.idle.max(policy.idle_pings_only) };
        Self {
            idle,
            idle_pings_only: policy.idle_pings_only,
            // However short the patience is, it is told before it ends.
            notice: policy.notice.min(idle / 2).min(policy.idle_pings_only / 2),
            last_event: now,
            last_progress: now,
            noticed: false,
        }
    }

    /// Something came.
    pub(crate) fn saw(&mut self, life: Life, now: Duration) {
        self.last_event = now;
        if life != Life::Ping {
            self.last_progress = now;
            self.noticed = false;
        }
    }

    /// Nobody was listening until `now`: what the server said or did not say meanwhile is not known.
    pub(crate) fn excuse(&mut self, now: Duration) {
        self.last_event = now;
        self.last_progress = now;
    }

    /// When the next alarm is due, unless something comes.
    pub(crate) fn due(&self) -> Duration {
        let cut = (self.last_event + self.idle).min(self.last_progress + self.idle_pings_only);
        if self.noticed { cut } else { cut.min(self.last_progress + self.notice) }
    }

    /// The alarm that is due, if one is.
    pub(crate) fn alarm(&mut self, now: Duration) -> Option<Alarm> {
        if now < self.due() {
            return None;
        }
        if now >= self.last_event + self.idle {
            return Some(Alarm::Cut(now - self.last_event));
        }
        let silent = now - self.last_progress;
        if silent >= self.idle_pings_only {
            return Some(Alarm::Cut(silent));
        }
        self.noticed = true;
        Some(Alarm::Notice(silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn watch() -> Watch {
        Watch::new(Duration::ZERO, true, &RetryPolicy::default())
    }

    #[test]
    fn silence_is_told_once_and_then_cut() {
        let mut watch = watch();
        assert_eq!((watch.due(), watch.alarm(seconds(14))), (seconds(15), None));
        assert_eq!(watch.alarm(seconds(15)), Some(Alarm::Notice(seconds(15))));
        assert_eq!((watch.due(), watch.alarm(seconds(16))), (seconds(300), None));
        assert_eq!(watch.alarm(seconds(301)), Some(Alarm::Cut(seconds(301))));
    }

    #[test]
    fn pings_keep_a_stream_but_not_for_ever() {
        let mut watch = watch();
        let mut alarms = Vec::new();
        for now in (0..2000).step_by(10).map(seconds) {
            watch.saw(Life::Ping, now);
            match watch.alarm(now) {
                Some(cut @ Alarm::Cut(_)) => {
                    alarms.push(cut);
                    break;
                }
                other => alarms.extend(other),
            }
        }
        assert_eq!(alarms, [Alarm::Notice(seconds(20)), Alarm::Cut(seconds(900))]);
    }

    #[test]
    fn progress_starts_all_clocks_again() {
        let mut watch = watch();
        watch.alarm(seconds(15));
        watch.saw(Life::Progress, seconds(100));
        assert_eq!(watch.due(), seconds(115));
        assert_eq!(watch.alarm(seconds(115)), Some(Alarm::Notice(seconds(15))));
        assert_eq!(watch.due(), seconds(400));
    }

    #[test]
    fn an_answer_in_one_piece_has_the_longer_limit() {
        let mut watch = Watch::new(Duration::ZERO, false, &RetryPolicy::default());
        watch.alarm(seconds(15));
        assert_eq!(watch.due(), seconds(900));
    }

    #[test]
    fn a_short_patience_is_told_before_it_ends() {
        for (idle, idle_pings_only) in [(4, 900), (300, 4)] {
            let policy = RetryPolicy {
                idle: seconds(idle),
                idle_pings_only: seconds(idle_pings_only),
                ..RetryPolicy::default()
            };
            let mut watch = Watch::new(Duration::ZERO, true, &policy);
            assert_eq!((watch.due(), watch.alarm(seconds(1))), (seconds(2), None));
            assert_eq!(watch.alarm(seconds(2)), Some(Alarm::Notice(seconds(2))));
            assert_eq!(watch.alarm(seconds(4)), Some(Alarm::Cut(seconds(4))));
        }
    }
}
