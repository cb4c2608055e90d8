// SPDX-License-Identifier: GPL-2.0

//! Per-CPU statistics counters.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use crate::bindings;
use core::ptr::NonNull;
use kernel::prelude::*;

/// `N` counters, each kept once per CPU so that counting never shares a cache line.
///
/// # Invariants
///
/// `cells` is a per-CPU allocation of `N` words.
pub struct Counters<const N: usize> {
    cells: NonNull<u64>,
}

// SAFETY: Per-CPU memory may be used from any thread; each cell is changed with `this_cpu_add` and read with
// `READ_ONCE`.
unsafe impl<const N: usize> Send for Counters<N> {}
// SAFETY: As above.
unsafe impl<const N: usize> Sync for Counters<N> {}

impl<const N: usize> Counters<N> {
    /// Allocates the counters, all zero. May sleep.
    pub fn new() -> Result<Self> {
        // SAFETY: The helper only allocates.
        let cells = unsafe { bindings::weft_helper_alloc_percpu_u64(N) };
        // INVARIANT: The helper allocated `N` words per CPU.
        Ok(Self {
            cells: NonNull::new(cells).ok_or(ENOMEM)?,
        })
    }

    /// Adds `value` to counter `index`. Any context. An index out of range counts nothing.
    #[inline]
    pub fn add(&self, index: usize, value: u64) {
        if index < N {
            // SAFETY: By the type invariants the cell is inside the allocation.
            unsafe {
                bindings::weft_helper_this_cpu_add_u64(
                    self.cells.as_ptr().wrapping_add(index),
                    value,
                )
            }
        }
    }

    /// The sum of counter `index` over all CPUs: a snapshot that may miss what is counted meanwhile.
    pub fn sum(&self, index: usize) -> u64 {
        if index >= N {
            return 0;
        }
        // SAFETY: By the type invariants the cell is inside the allocation.
        unsafe { bindings::weft_helper_percpu_sum_u64(self.cells.as_ptr().wrapping_add(index)) }
    }
}

impl<const N: usize> Drop for Counters<N> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants this is a per-CPU allocation, and nobody else knows it.
        unsafe { bindings::free_percpu(self.cells.as_ptr().cast()) }
    }
}
