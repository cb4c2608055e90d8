// SPDX-License-Identifier: GPL-2.0

//! Whether the client of a path is alive.
//!
//! Each message of the client sets a mark; the timer of the path looks at it and forgets it.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Milliseconds between heartbeats: `RTRS_HB_INTERVAL_MS`.
pub(crate) const INTERVAL_MS: u32 = 5_000;
/// Heartbeats that may go without any sign of the client: `RTRS_HB_MISSED_MAX`.
const MISSED_MAX: u32 = 5;

/// What the timer has to do.
pub(crate) enum Beat {
    /// Send a heartbeat.
    Send,
    /// Nothing: one is under way.
    Wait,
    /// Give the client up.
    Dead,
}

/// Signs of life of a client.
pub(crate) struct Pulse {
    /// There was one since the timer looked.
    heard: Atomic<bool>,
    /// How often the timer found none.
    missed: Atomic<u32>,
    /// One look without a sign is enough.
    suspected: Atomic<bool>,
}

// ORDERING: Everywhere here, marks that the timer looks at seconds later.
impl Pulse {
    pub(crate) const fn new() -> Self {
        Self {
            heard: Atomic::new(true),
            missed: Atomic::new(0),
            suspected: Atomic::new(false),
        }
    }

    /// A message of the client arrived. Any context.
    #[inline]
    pub(crate) fn heard(&self) {
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// The client may be gone: `true` if the timer is to look soon, after a heartbeat was sent.
    pub(crate) fn suspect(&self) -> bool {
        self.heard.store(false, Relaxed);
        !self.suspected.xchg(true, Relaxed)
    }

    /// The timer looks.
    pub(crate) fn tick(&self) -> Beat {
        let heard = self.heard.xchg(false, Relaxed);
        let suspected = self.suspected.xchg(false, Relaxed);
        if heard {
            self.missed.store(1, Relaxed);
            return Beat::Send;
        }
        let missed = self.missed.fetch_add(1, Relaxed);
        if suspected || missed > MISSED_MAX {
            Beat::Dead
        } else if missed == 0 {
            Beat::Send
        } else {
            Beat::Wait
        }
    }
}
