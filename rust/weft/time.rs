// SPDX-License-Identifier: GPL-2.0

//! Clocks and randomness as protocol code needs them.
//!
//! C headers: [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h),
//! [`include/linux/sched/clock.h`](srctree/include/linux/sched/clock.h),
//! [`include/linux/random.h`](srctree/include/linux/random.h)

use crate::bindings;

/// The tick counter; wraps.
#[inline]
pub fn jiffies() -> usize {
    // SAFETY: Reads a global variable.
    unsafe { bindings::weft_helper_jiffies() }
}

/// `ms` milliseconds in ticks, rounded up.
#[inline]
pub fn msecs_to_jiffies(ms: u32) -> usize {
    // SAFETY: Pure computation.
    unsafe { bindings::__msecs_to_jiffies(ms) }
}

/// Nanoseconds of this CPU's clock, for differences on one machine.
#[inline]
pub fn local_clock() -> u64 {
    // SAFETY: Reads the clock.
    unsafe { bindings::weft_helper_local_clock() }
}

/// Nanoseconds of the monotonic clock; any context.
#[inline]
pub fn ktime_get() -> i64 {
    // SAFETY: Reads the clock.
    unsafe { crate::bindings::ktime_get() }
}

/// Nanoseconds of wall-clock time since 1970.
#[inline]
pub fn ktime_get_real() -> i64 {
    // SAFETY: Reads the clock.
    unsafe { bindings::ktime_get_with_offset(bindings::tk_offsets_TK_OFFS_REAL) }
}

/// A random number; any context.
#[inline]
pub fn random_u32() -> u32 {
    // SAFETY: Reads the random number generator.
    unsafe { bindings::weft_helper_get_random_u32() }
}
