// SPDX-License-Identifier: GPL-2.0

//! What a message that has invalidated a key proves, and for how long.
//!
//! A key has eight bits that change with each registration, so it comes again. "The peer has invalidated key K" is
//! therefore no statement that stays true, unlike the proofs of [`loan`](crate::loan). Two things could make an old one
//! pass for a new one:
//!
//! * The proof is kept while the region goes through all keys. So each protection domain counts how often a region
//!   of it began with the keys anew; a proof has that count, and is good for no region that began anew after it.
//! * The message itself lies in the completion queue for that long. Then the registration that it is about was ended by
//!   a work request of this side meanwhile. So a region notes under which keys that happened, and believes no message
//!   about these any more.
//!
//! The latter relies on the device for one thing: that it refuses to invalidate a key twice, as the InfiniBand
//! specification says. Soft-RoCE does not. There a peer can send two such messages for one registration; if the second
//! one lies in the completion queue while the region goes through all keys, by work requests whose completions come
//! through another queue, it is believed wrongly. Who handles the completions of a region's work requests and the
//! messages in one queue, as the users here do, is safe: the second message is handled before the next key is used up.

use crate::pd::Pd;
use core::marker::PhantomData;
use kernel::sync::Arc;

/// The peer has invalidated the memory region with some key.
///
/// # Invariants
///
/// The device has done so, in the protection domain `pd`, before that had `anew` for its count.
pub struct Invalidated<'a> {
    pd: &'a Arc<Pd>,
    rkey: u32,
    anew: u64,
    _message: PhantomData<&'a mut ()>,
}

impl<'a> Invalidated<'a> {
    /// By the library, for a message that says so.
    #[inline]
    pub(crate) fn new(pd: &'a Arc<Pd>, rkey: u32) -> Self {
        // INVARIANT: The count was not less when the device did it.
        Self {
            pd,
            rkey,
            anew: pd.anew(),
            _message: PhantomData,
        }
    }

    /// The key.
    #[inline]
    pub fn rkey(&self) -> u32 {
        self.rkey
    }

    /// Whether it happened in this domain.
    #[inline]
    pub(super) fn is_of(&self, pd: &Arc<Pd>) -> bool {
        Arc::ptr_eq(self.pd, pd)
    }
}

/// Which keys a region has had.
pub(super) struct Keys {
    /// The count of the protection domain when the region last began anew.
    since: u64,
    /// Keys, by their low eight bits, under which a registration was ended by this side.
    ended_here: [u64; 4],
}

impl Keys {
    pub(super) fn new() -> Self {
        Self {
            since: 0,
            ended_here: [0; 4],
        }
    }

    /// The region goes on to `key`.
    #[inline]
    pub(super) fn next(&mut self, key: u32, pd: &Pd) {
        if key & 0xff == 0 {
            self.since = pd.begin_anew();
        }
    }

    /// A registration under `key` was ended by a work request of this side.
    #[inline]
    pub(super) fn ended_here(&mut self, key: u32) {
        let (word, bit) = place(key);
        if let Some(word) = self.ended_here.get_mut(word) {
            *word |= bit;
        }
    }

    /// Whether what `by` says is about the registration there is now, under its key.
    #[inline]
    pub(super) fn is_current(&self, by: &Invalidated<'_>) -> bool {
        let (word, bit) = place(by.rkey);
        let ended = self.ended_here.get(word).is_none_or(|word| word & bit != 0);
        by.anew >= self.since && !ended
    }
}

/// Where the mark of a key is.
#[inline]
fn place(key: u32) -> (usize, u64) {
    // CAST: Less than 4.
    (((key & 0xff) >> 6) as usize, 1 << (key & 0x3f))
}
