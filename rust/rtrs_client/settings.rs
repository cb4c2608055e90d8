// SPDX-License-Identifier: GPL-2.0

//! What an administrator can change about a session while it runs.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use weft_proto::rtrs::{
    policy::Policy,
    reconnect::Limit, //
};

// ORDERING: Each setting stands for itself: `Relaxed` throughout.

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
    pub(crate) fn new(limit: Limit) -> Self {
        Self {
            max_reconnect_attempts: Atomic::new(limit.number()),
            policy: Atomic::new(Policy::default().as_i32()),
            no_path_timeout: Atomic::new(0),
            io_timeout: Atomic::new(0),
        }
    }

    /// How often a path is connected again before it is given up.
    pub(crate) fn reconnect_limit(&self) -> Limit {
        u16::try_from(self.max_reconnect_attempts.load(Relaxed))
            .map_or(Limit::Forever, Limit::Times)
    }

    pub(crate) fn set_reconnect_limit(&self, limit: Limit) {
        self.max_reconnect_attempts.store(limit.number(), Relaxed);
    }

    /// How the path of a request is chosen.
    #[inline]
    pub(crate) fn policy(&self) -> Policy {
        Policy::from_i32(self.policy.load(Relaxed)).unwrap_or_default()
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        self.policy.store(policy.as_i32(), Relaxed);
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
