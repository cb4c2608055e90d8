// SPDX-License-Identifier: GPL-2.0

//! Delays between attempts to reconnect.
//!
//! C counterpart: `rds_queue_reconnect()` in `net/rds/threads.c`.

/// Exponential back-off with full jitter; one per path.
///
/// The unit of time is the caller's, as long as it is the same throughout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// Upper end of the next delay, exclusive; 0 before the first attempt.
    current: u64,
}

impl Backoff {
    /// Starts so that the first attempt is immediate.
    pub const fn new() -> Self {
        Self { current: 0 }
    }

    /// Time to wait before the next attempt.
    ///
    /// 0 the first time, then a random time below a limit that doubles from `min` up to `max`
    /// (`net.rds.reconnect_min_delay_ms`, `net.rds.reconnect_max_delay_ms`). `random` is any random
    /// number.
    pub fn next_delay(&mut self, min: u64, max: u64, random: u32) -> u64 {
        // `None` exactly when there was no attempt yet: nothing to divide by.
        let Some(delay) = u64::from(random).checked_rem(self.current) else {
            self.current = min.max(1);
            return 0;
        };
        self.current = self.current.saturating_mul(2).min(max.max(1));
        delay
    }

    /// Forgets the failed attempts: the path came up.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit a delay was drawn below: the largest delay that any random number gives, plus one.
    fn limit(backoff: Backoff, min: u64, max: u64) -> u64 {
        let largest = (0..4096).map(|random| backoff.clone().next_delay(min, max, random));
        largest.max().unwrap_or(0) + 1
    }

    #[test]
    fn doubles_from_min_to_max() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.next_delay(1, 1000, u32::MAX), 0);
        for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000, 1000] {
            assert_eq!(limit(backoff, 1, 1000), expected);
            backoff.next_delay(1, 1000, 12345);
        }
        backoff.reset();
        assert_eq!(backoff.next_delay(1, 1000, u32::MAX), 0);
    }

    #[test]
    fn odd_limits() {
        let mut backoff = Backoff::new();
        for _ in 0..100 {
            assert_eq!(backoff.next_delay(0, 0, u32::MAX), 0);
        }
        let mut backoff = Backoff::new();
        for _ in 0..100 {
            backoff.next_delay(u64::MAX, u64::MAX, u32::MAX);
        }
    }
}
