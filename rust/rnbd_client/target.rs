// SPDX-License-Identifier: GPL-2.0

//! Where the requests of a device go: what the server calls it, and in which life of the session it said so.
//!
//! Read for every request, without a lock.

use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Release, //
};

/// The two numbers, if there are any, in one word.
pub(crate) struct Target(Atomic<u64>);

/// No server gives out this number: it would need 2^32 devices.
const NONE: u64 = u64::MAX;

impl Target {
    /// Nowhere.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(NONE))
    }

    /// The device's number, and the life of the session in which it was given.
    #[inline]
    pub(crate) fn get(&self) -> Option<(u32, u32)> {
        // ORDERING: Pairs with `set`: who sees the numbers sees the limits that were set before.
        let word = self.0.load(Acquire);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        (word != NONE).then_some((word as u32, (word >> 32) as u32))
    }

    /// Requests go there from now on.
    pub(crate) fn set(&self, id: u32, life: u32) {
        // ORDERING: See `get`.
        self.0.store(u64::from(id) | u64::from(life) << 32, Release);
    }

    /// Requests fail from now on.
    pub(crate) fn clear(&self) {
        // ORDERING: See `get`.
        self.0.store(NONE, Release);
    }
}
