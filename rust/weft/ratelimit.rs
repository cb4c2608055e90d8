// SPDX-License-Identifier: GPL-2.0

//! Messages that a peer or a user can provoke, printed at a limited rate.
//!
//! C header: [`include/linux/ratelimit.h`](srctree/include/linux/ratelimit.h)
//!
//! A `struct ratelimit_state` has a spinlock that cannot be initialised in a Rust `static`, so
//! [`RateLimit`] is the same idea with two atomics: a burst of messages per interval, then silence;
//! the next message that passes tells how many did not. Any context.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Nanoseconds in which a burst of messages may be printed: `DEFAULT_RATELIMIT_INTERVAL`.
const INTERVAL: i64 = 5_000_000_000;
/// Messages per interval: `DEFAULT_RATELIMIT_BURST`.
const BURST: i32 = 10;

/// The rate limit of one message; a static.
pub struct RateLimit {
    /// When the current interval began, on the monotonic clock; 0 before the first message.
    begin: Atomic<i64>,
    /// Messages tried since then.
    tried: Atomic<i32>,
}

impl RateLimit {
    /// A limit of ten messages in five seconds.
    pub const fn new() -> Self {
        Self {
            begin: Atomic::new(0),
            tried: Atomic::new(0),
        }
    }

    /// Whether a message may be printed now, and then how many were not since the last interval.
    pub fn allow(&self) -> Option<i32> {
        // SAFETY: Reads the clock, in any context.
        let now = unsafe { crate::bindings::ktime_get() };
        // ORDERING: Only statistics; who loses a race here prints one message too many or too few.
        let begin = self.begin.load(Relaxed);
        let mut suppressed = 0;
        let expired = begin == 0 || now.wrapping_sub(begin) > INTERVAL;
        if expired && self.begin.cmpxchg(begin, now, Relaxed).is_ok() {
            suppressed = self.tried.xchg(0, Relaxed).saturating_sub(BURST).max(0);
        }
        // Stops counting before it could wrap.
        if self.tried.load(Relaxed) == i32::MAX {
            return None;
        }
        (self.tried.fetch_add(1, Relaxed) < BURST).then_some(suppressed)
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::new()
    }
}

/// Prints with one of the kernel's `pr_*!` macros, at a limited rate for each place in the code.
///
/// ```ignore
/// pr_ratelimited!(pr_warn, "connection to {}: bad checksum\n", peer);
/// ```
#[macro_export]
macro_rules! pr_ratelimited {
    ($print:ident, $($arg:tt)+) => {{
        static LIMIT: $crate::ratelimit::RateLimit = $crate::ratelimit::RateLimit::new();
        if let ::core::option::Option::Some(suppressed) = LIMIT.allow() {
            if suppressed > 0 {
                ::kernel::$print!("{} messages suppressed\n", suppressed);
            }
            ::kernel::$print!($($arg)+);
        }
    }};
}
