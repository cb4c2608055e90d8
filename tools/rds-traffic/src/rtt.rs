// SPDX-License-Identifier: GPL-2.0

//! Round-trip times, measured beside the traffic.

use serde::Serialize;
use std::time::{Duration, Instant};

/// Time between two measurements.
const INTERVAL: Duration = Duration::from_millis(100);

/// One measurement at a time and what came of them.
pub(crate) struct Rtt {
    base: Instant,
    due: Instant,
    waiting: bool,
    count: u64,
    total: u64,
    min: u64,
    max: u64,
}

/// The results, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RttSummary {
    pub(crate) count: u64,
    pub(crate) min: u64,
    pub(crate) avg: u64,
    pub(crate) max: u64,
}

impl Rtt {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            base: now,
            due: now,
            waiting: false,
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// The number to send now, if it is time for one.
    pub(crate) fn ping(&mut self, now: Instant) -> Option<u64> {
        if self.waiting || now < self.due {
            return None;
        }
        self.waiting = true;
        self.due = now + INTERVAL;
        Some(self.micros(now))
    }

    /// The number could not be sent.
    pub(crate) fn unsent(&mut self) {
        self.waiting = false;
    }

    /// The number came back.
    pub(crate) fn pong(&mut self, number: u64, now: Instant) {
        let usec = self.micros(now).saturating_sub(number);
        self.waiting = false;
        self.count += 1;
        self.total = self.total.saturating_add(usec);
        self.min = self.min.min(usec);
        self.max = self.max.max(usec);
    }

    pub(crate) fn summary(&self) -> Option<RttSummary> {
        let avg = self.total.checked_div(self.count)?;
        Some(RttSummary {
            count: self.count,
            min: self.min,
            avg,
            max: self.max,
        })
    }

    fn micros(&self, now: Instant) -> u64 {
        u64::try_from((now - self.base).as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let start = Instant::now();
        let mut rtt = Rtt::new(start);
        assert_eq!(rtt.summary(), None);
        assert_eq!(rtt.ping(start), Some(0));
        assert_eq!(rtt.ping(start + INTERVAL * 2), None);
        rtt.pong(0, start + Duration::from_micros(30));
        let at = start + INTERVAL;
        let number = rtt.ping(at).unwrap();
        rtt.pong(number, at + Duration::from_micros(10));
        assert_eq!(
            rtt.summary(),
            Some(RttSummary {
                count: 2,
                min: 10,
                avg: 20,
                max: 30
            })
        );
    }
}
