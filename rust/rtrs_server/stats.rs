// SPDX-License-Identifier: GPL-2.0

//! Counters of one path, as its file `stats/rdma` shows them.

use core::array;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use weft::percpu::Counters;

/// Requests read, bytes read, requests written, bytes written.
const COUNTERS: usize = 4;

/// What a path carried.
pub(crate) struct Stats {
    counters: Counters<COUNTERS>,
    /// What the counters were at the last reset.
    base: [Atomic<u64>; COUNTERS],
}

impl Stats {
    /// Counters that stand at 0. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            counters: Counters::new()?,
            base: array::from_fn(|_| Atomic::new(0)),
        })
    }

    /// Counts a request of `bytes`, data and message of the upper layer together. Any context.
    #[inline]
    pub(crate) fn count(&self, write: bool, bytes: u32) {
        let first = if write { 2 } else { 0 };
        self.counters.add(first, 1);
        self.counters.add(first + 1, u64::from(bytes));
    }

    /// The values since the last reset.
    pub(crate) fn values(&self) -> [u64; COUNTERS] {
        // ORDERING: Statistics.
        let base =
            array::from_fn::<_, COUNTERS, _>(|i| self.base.get(i).map_or(0, |b| b.load(Relaxed)));
        array::from_fn(|i| {
            self.counters
                .sum(i)
                .wrapping_sub(base.get(i).copied().unwrap_or(0))
        })
    }

    /// Starts from 0 again.
    pub(crate) fn reset(&self) {
        for (index, base) in self.base.iter().enumerate() {
            // ORDERING: Statistics.
            base.store(self.counters.sum(index), Relaxed);
        }
    }
}
