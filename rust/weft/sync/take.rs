// SPDX-License-Identifier: GPL-2.0

//! A value that is taken once, by whoever comes first.

use core::{
    cell::UnsafeCell,
    mem::ManuallyDrop, //
};
use kernel::sync::atomic::{
    Atomic,
    Full,
    Relaxed, //
};

/// Holds a value until somebody takes it.
///
/// # Invariants
///
/// The value is there as long as `taken` is false. Whoever turns `taken` to true owns the value.
pub struct TakeCell<T> {
    value: UnsafeCell<ManuallyDrop<T>>,
    taken: Atomic<bool>,
}

// SAFETY: The value moves out to one thread only.
unsafe impl<T: Send> Send for TakeCell<T> {}
// SAFETY: As above; no reference to the value is given out.
unsafe impl<T: Send> Sync for TakeCell<T> {}

impl<T> TakeCell<T> {
    /// Holds `value`.
    pub const fn new(value: T) -> Self {
        // INVARIANT: The value is there and was not taken.
        Self {
            value: UnsafeCell::new(ManuallyDrop::new(value)),
            taken: Atomic::new(false),
        }
    }

    /// Takes the value; `None` if it was taken before. Any context.
    #[inline]
    pub fn take(&self) -> Option<T> {
        // ORDERING: `Full` orders the creation of the value before its use by the one who takes it.
        if self.taken.xchg(true, Full) {
            return None;
        }
        // SAFETY: By the type invariant the value is ours now: nobody else reads or moves it any more.
        Some(unsafe { ManuallyDrop::take(&mut *self.value.get()) })
    }

    /// Whether the value was there when this looked.
    #[inline]
    pub fn is_full(&self) -> bool {
        // ORDERING: A hint.
        !self.taken.load(Relaxed)
    }
}

impl<T> Drop for TakeCell<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
