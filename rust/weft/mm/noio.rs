// SPDX-License-Identifier: GPL-2.0

//! Allocating memory where reclaim may wait for the caller.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::bindings;

/// Calls `work`, in which no allocation of this task starts I/O to free memory.
///
/// For work that block I/O waits for: if that allocated the ordinary way, it could end up waiting for itself. Process
/// context.
pub fn scope<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: Marks the current task; restored below by the same task, also for nested scopes.
    let flags = unsafe { bindings::weft_helper_memalloc_noio_save() };
    let result = work();
    // SAFETY: `flags` came from the matching call.
    unsafe { bindings::weft_helper_memalloc_noio_restore(flags) };
    result
}
