// SPDX-License-Identifier: GPL-2.0

//! Counts what is under way on a device and tells when nothing is left after it was closed.
//!
//! C counterpart: the `kref` of `struct rnbd_srv_sess_dev` together with its `destroy_comp`.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
};
use weft::{
    new_wait_queue,
    sync::wait::{
        Mode,
        WaitQueue,
        WaitResult, //
    },
};

/// Set in [`Gate::state`] once the gate is closed; below it is the count of those inside.
const CLOSED: i64 = 1 << 62;

/// A count of those inside that nobody can join once it is closed.
#[pin_data]
pub(crate) struct Gate {
    state: Atomic<i64>,
    #[pin]
    empty: WaitQueue,
}

impl Gate {
    /// An open gate with nobody inside.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state: Atomic::new(0),
            empty <- new_wait_queue!("rnbd_server_gate"),
        })
    }

    /// Goes in; `false` if the gate is closed. Any context. Whoever is inside calls [`Self::leave`] once.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        // ORDERING: `Full` orders the check of CLOSED before what is done inside, against `close`.
        if self.state.fetch_add(1, Full) & CLOSED == 0 {
            return true;
        }
        self.leave();
        false
    }

    /// Goes out. Any context.
    #[inline]
    pub(crate) fn leave(&self) {
        // ORDERING: `Full` orders what was done inside before the count is seen as zero.
        if self.state.fetch_sub(1, Full) == CLOSED + 1 {
            self.empty.wake_all();
        }
    }

    /// Lets nobody in any more. `false` if the gate was closed before. Any context.
    pub(crate) fn close(&self) -> bool {
        let mut seen = self.state.load(Relaxed);
        loop {
            if seen & CLOSED != 0 {
                return false;
            }
            // ORDERING: `Full` as in `enter`.
            match self.state.cmpxchg(seen, seen | CLOSED, Full) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether nobody is let in any more.
    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING: A hint; `enter` decides.
        self.state.load(Relaxed) & CLOSED != 0
    }

    /// Waits until nobody is inside of a closed gate, but no longer than `timeout` jiffies. Sleeps.
    pub(crate) fn wait_empty(&self, timeout: usize) -> bool {
        let timeout = i64::try_from(timeout).unwrap_or(i64::MAX);
        // ORDERING: `Full` pairs with `leave`.
        let empty = || self.state.fetch_add(0, Full) == CLOSED;
        matches!(
            self.empty.wait(Mode::Uninterruptible, timeout, empty),
            WaitResult::Ready(_)
        )
    }
}
