// SPDX-License-Identifier: GPL-2.0

//! Whether the client of a path is alive.
//!
//! Each message of the client sets a mark; the timer of the path looks at it and forgets it. What follows from that is in
//! `weft_proto::rtrs::hb`.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SpinLock, //
    },
};
use weft_proto::rtrs::hb::{
    Beat,
    Monitor, //
};

/// Signs of life of a client.
#[pin_data]
pub(crate) struct Pulse {
    /// There was one since the timer looked.
    heard: Atomic<bool>,
    /// One look without a sign is enough.
    suspected: Atomic<bool>,
    /// For the timer only.
    #[pin]
    monitor: SpinLock<Monitor>,
}

// ORDERING: Everywhere here, marks that the timer looks at seconds later.
impl Pulse {
    /// Of a client that was just heard.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            heard: Atomic::new(true),
            suspected: Atomic::new(false),
            monitor <- new_spinlock!(Monitor::new(), "rtrs_pulse"),
        })
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

    /// The timer looks. Process context.
    pub(crate) fn look(&self) -> Beat {
        let heard = self.heard.xchg(false, Relaxed);
        let suspected = self.suspected.xchg(false, Relaxed);
        if suspected && !heard {
            return Beat::Dead;
        }
        self.monitor.lock().look(heard)
    }
}
