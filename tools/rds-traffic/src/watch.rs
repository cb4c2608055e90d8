// SPDX-License-Identifier: GPL-2.0

//! Watches whether anything moves.

use std::time::{Duration, Instant};

/// When something moved last.
pub(crate) struct Watch {
    limit: Duration,
    moved: u64,
    last: Instant,
}

impl Watch {
    /// Begins to watch; `limit` is how long nothing may move.
    pub(crate) fn new(limit: Duration, now: Instant) -> Self {
        Self {
            limit,
            moved: 0,
            last: now,
        }
    }

    /// Takes note of how much has moved in all.
    pub(crate) fn see(&mut self, moved: u64, now: Instant) {
        if moved != self.moved {
            self.moved = moved;
            self.last = now;
        }
    }

    /// When patience ends.
    pub(crate) fn deadline(&self) -> Instant {
        self.last + self.limit
    }
}

/// Something that is due again and again.
pub(crate) struct Every {
    interval: Duration,
    due: Instant,
}

impl Every {
    pub(crate) fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            due: now + interval,
        }
    }

    /// Whether it is due; if so the next time begins now.
    pub(crate) fn due(&mut self, now: Instant) -> bool {
        let due = now >= self.due;
        if due {
            self.due = now + self.interval;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_movement_prolongs_patience() {
        let (start, limit) = (Instant::now(), Duration::from_secs(5));
        let later = start + Duration::from_secs(3);
        let mut watch = Watch::new(limit, start);
        watch.see(0, later);
        assert_eq!(watch.deadline(), start + limit);
        watch.see(1, later);
        assert_eq!(watch.deadline(), later + limit);
    }

    #[test]
    fn every_so_often() {
        let start = Instant::now();
        let mut every = Every::new(Duration::from_secs(1), start);
        assert!(!every.due(start));
        assert!(every.due(start + Duration::from_secs(1)));
        assert!(!every.due(start + Duration::from_millis(1500)));
    }
}
