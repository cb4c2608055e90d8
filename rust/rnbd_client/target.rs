// SPDX-License-Identifier: GPL-2.0

//! Where the requests of a device go: what the server calls it, and in which life of the session it said so.
//!
//! Read for every request, without a lock.

use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// The two numbers, if there are any, in one word.
pub(crate) struct Target {
    word: Atomic<u64>,
    /// The link has not gone down since the numbers were set.
    up: Atomic<bool>,
}

/// No server gives out this number: it would need 2^32 devices.
const NONE: u64 = u64::MAX;

impl Target {
    /// Nowhere.
    pub(crate) const fn new() -> Self {
        Self {
            word: Atomic::new(NONE),
            up: Atomic::new(false),
        }
    }

    /// The device's number, and the life of the session in which it was given.
    #[inline]
    pub(crate) fn get(&self) -> Option<(u32, u32)> {
        // ORDERING: Pairs with `set`.
        let word = self.word.load(Acquire);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        (word != NONE).then_some((word as u32, (word >> 32) as u32))
    }

    /// Requests go there from now on.
    pub(crate) fn set(&self, id: u32, life: u32) {
        // ORDERING: Whoever is sent there finds that the link is up.
        self.up.store(true, Relaxed);
        self.word
            .store(u64::from(id) | u64::from(life) << 32, Release);
    }

    /// The link is down. Requests still go there, and the session decides what becomes of them.
    pub(crate) fn link_down(&self) {
        // ORDERING: Who sees it late tries once more.
        self.up.store(false, Relaxed);
    }

    /// Whether a request that the session did not take should be tried again soon: it is about to let requests in, or
    /// about to tell that it is down.
    pub(crate) fn is_up(&self) -> bool {
        // ORDERING: As above.
        self.up.load(Relaxed)
    }

    /// Requests fail from now on.
    pub(crate) fn clear(&self) {
        // ORDERING: As in `set`.
        self.up.store(false, Relaxed);
        self.word.store(NONE, Release);
    }
}
