// SPDX-License-Identifier: GPL-2.0

//! What an administrator can change about a session while it runs.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use weft_proto::rtrs::policy::Policy;

// ORDERING: Each setting stands for itself: `Relaxed` throughout.

/// Most attempts to connect that can be asked for; -1 means no limit.
pub(crate) const MOST_ATTEMPTS: i32 = 9999;
/// Longest time-out that can be asked for, in seconds.
pub(crate) const MOST_SECONDS: u32 = 86_400;

/// The settings.
pub(crate) struct Settings {
    max_reconnect_attempts: Atomic<i32>,
    policy: Atomic<i32>,
    no_path_timeout: Atomic<u32>,
    io_timeout: Atomic<u32>,
}

impl Settings {
    pub(crate) fn new(max_reconnect_attempts: i16) -> Self {
        Self {
            max_reconnect_attempts: Atomic::new(i32::from(max_reconnect_attempts)),
            policy: Atomic::new(Policy::MinInflight as i32),
            no_path_timeout: Atomic::new(0),
            io_timeout: Atomic::new(0),
        }
    }

    /// Attempts to connect a path before it is given up; -1 for no limit.
    pub(crate) fn max_reconnect_attempts(&self) -> i32 {
        self.max_reconnect_attempts.load(Relaxed)
    }

    /// `EINVAL` outside of -1 to [`MOST_ATTEMPTS`].
    pub(crate) fn set_max_reconnect_attempts(&self, attempts: i32) -> Result {
        if !(-1..=MOST_ATTEMPTS).contains(&attempts) {
            return Err(EINVAL);
        }
        self.max_reconnect_attempts.store(attempts, Relaxed);
        Ok(())
    }

    /// How the path of a request is chosen.
    #[inline]
    pub(crate) fn policy(&self) -> Policy {
        Policy::from_i32(self.policy.load(Relaxed)).unwrap_or(Policy::MinInflight)
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        self.policy.store(policy as i32, Relaxed);
    }

    /// Seconds that a request waits for a path; 0: it fails at once.
    pub(crate) fn no_path_timeout(&self) -> u32 {
        self.no_path_timeout.load(Relaxed)
    }

    /// `EINVAL` above [`MOST_SECONDS`].
    pub(crate) fn set_no_path_timeout(&self, seconds: u32) -> Result {
        store_seconds(&self.no_path_timeout, seconds)
    }

    /// Seconds after which an unanswered request condemns its path; 0: never.
    pub(crate) fn io_timeout(&self) -> u32 {
        self.io_timeout.load(Relaxed)
    }

    /// `EINVAL` above [`MOST_SECONDS`].
    pub(crate) fn set_io_timeout(&self, seconds: u32) -> Result {
        store_seconds(&self.io_timeout, seconds)
    }
}

fn store_seconds(setting: &Atomic<u32>, seconds: u32) -> Result {
    if seconds > MOST_SECONDS {
        return Err(EINVAL);
    }
    setting.store(seconds, Relaxed);
    Ok(())
}
