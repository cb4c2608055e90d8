// SPDX-License-Identifier: GPL-2.0

//! When a client tries to connect a path again, and how often.
//!
//! After a server has gone, all its clients notice at about the same time. So each of them adds a random time to the
//! delay, of the order of seconds, lest they all come back in the same instant. (C adds milliseconds.)
//!
//! C counterpart: `rtrs_clt_reconnect_work()` and `rtrs_clt_err_recovery_work()` in `rtrs-clt.c`.

use crate::text::{
    parse_decimal,
    ValueError, //
};

/// Longest wait for one step of connecting in milliseconds: address, route, connection, info exchange
/// (`RTRS_CONNECT_TIMEOUT_MS`).
pub const STEP_TIMEOUT_MS: u32 = 30_000;

/// Longest wait for the peer to disconnect in milliseconds.
pub const DISCONNECT_TIMEOUT_MS: u32 = 30_000;

/// Pause between the end of a connection and the next attempt in milliseconds (`RTRS_RECONNECT_BACKOFF`).
pub const PAUSE_MS: u32 = 1000;

/// What is added to the delay at random, in milliseconds, is below this (`RTRS_RECONNECT_SEED`, there in other units).
pub const JITTER_MS: u32 = 8000;

/// Largest number of attempts that can be set.
const MAX_ATTEMPTS: i64 = 9999;

/// How often a client tries to connect a path (`max_reconnect_attempts`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// For ever.
    #[default]
    Forever,
    /// A number of times.
    Times(u16),
}

impl Limit {
    /// Reads the file `max_reconnect_attempts`: -1, or 0 to 9999.
    pub fn from_text(text: &[u8]) -> Result<Self, ValueError> {
        let times = parse_decimal(text, -1, MAX_ATTEMPTS)?;
        Ok(u16::try_from(times).map_or(Self::Forever, Self::Times))
    }

    /// What the file `max_reconnect_attempts` shows.
    pub fn number(self) -> i32 {
        match self {
            Self::Forever => -1,
            Self::Times(times) => times.into(),
        }
    }
}

/// Attempts to connect a path that was connected before; one per path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts since the last success.
    made: u32,
    /// Whether only an order starts another one.
    given_up: bool,
}

impl Attempts {
    /// Starts with a path that is connected.
    pub const fn new() -> Self {
        Self {
            made: 0,
            given_up: false,
        }
    }

    /// Whether there is another attempt, and after how many milliseconds.
    ///
    /// `delay_s` is in seconds (`reconnect_delay_sec`), `random` any random number. `None` if the attempts are used up.
    pub fn next(&mut self, limit: Limit, delay_s: u32, random: u32) -> Option<u64> {
        let left = match limit {
            Limit::Forever => true,
            Limit::Times(times) => self.made < u32::from(times),
        };
        if self.given_up || !left {
            return None;
        }
        self.made = self.made.saturating_add(1);
        let jitter = random.checked_rem(JITTER_MS).unwrap_or(0);
        Some(
            u64::from(delay_s)
                .saturating_mul(1000)
                .saturating_add(jitter.into()),
        )
    }

    /// Makes no further attempt of its own: another one would end the same way.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Starts over: the path is connected, or somebody has ordered an attempt.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_spread_over_seconds() {
        let mut attempts = Attempts::new();
        assert_eq!(attempts.next(Limit::Forever, 30, 0), Some(30_000));
        assert_eq!(attempts.next(Limit::Forever, 30, 7999), Some(37_999));
        assert_eq!(attempts.next(Limit::Forever, 30, 8000), Some(30_000));
        assert!(attempts.next(Limit::Forever, u32::MAX, u32::MAX).is_some());
    }

    #[test]
    fn attempts_are_used_up() {
        let mut attempts = Attempts::new();
        assert_eq!(attempts.next(Limit::Times(0), 0, 0), None);
        for _ in 0..3 {
            assert!(attempts.next(Limit::Times(3), 0, 0).is_some());
        }
        assert_eq!(attempts.next(Limit::Times(3), 0, 0), None);
        // A higher limit counts at once.
        assert!(attempts.next(Limit::Times(4), 0, 0).is_some());
        assert!(attempts.next(Limit::Forever, 0, 0).is_some());
        attempts.give_up();
        assert_eq!(attempts.next(Limit::Forever, 0, 0), None);
        attempts.reset();
        assert!(attempts.next(Limit::Times(1), 0, 0).is_some());
    }

    #[test]
    fn limits_as_text() {
        for (text, limit) in [
            ("-1\n", Limit::Forever),
            ("0", Limit::Times(0)),
            ("9999", Limit::Times(9999)),
        ] {
            let parsed = Limit::from_text(text.as_bytes()).unwrap();
            assert_eq!(parsed, limit);
            assert_eq!(std::format!("{}", parsed.number()), text.trim());
        }
        for text in ["", "-2", "10000", "x"] {
            assert!(Limit::from_text(text.as_bytes()).is_err());
        }
    }
}
