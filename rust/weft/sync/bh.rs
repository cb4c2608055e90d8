// SPDX-License-Identifier: GPL-2.0

//! A spinlock that keeps bottom halves off while it is held.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)
//!
//! Data that both process context and softirq (network receive, timers) touch lives in a [`SpinLockBh`]. It must not
//! be taken with interrupts disabled or in hard interrupt context.

use crate::bindings;
use kernel::sync::lock::{
    Backend,
    Guard,
    Lock, //
};

/// A spinlock taken with `spin_lock_bh`.
///
/// Create one with [`new_spinlock_bh!`](crate::new_spinlock_bh).
pub type SpinLockBh<T> = Lock<T, SpinLockBhBackend>;

/// The guard of a [`SpinLockBh`].
pub type SpinLockBhGuard<'a, T> = Guard<'a, T, SpinLockBhBackend>;

/// The [`Backend`] of [`SpinLockBh`].
pub struct SpinLockBhBackend;

/// Creates a [`SpinLockBh`] initialiser with its own lockdep class.
#[macro_export]
macro_rules! new_spinlock_bh {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::sync::bh::SpinLockBh::new(
            $inner,
            ::kernel::optional_name!($($name)?),
            ::kernel::static_lock_class!(),
        )
    };
}

// SAFETY: `spin_lock_bh` and `spin_trylock_bh` make the caller the one owner of the lock until `spin_unlock_bh`;
// `relock` is the default, which calls `lock` again.
unsafe impl Backend for SpinLockBhBackend {
    type State = bindings::spinlock_t;
    type GuardState = ();

    #[inline]
    unsafe fn init(
        ptr: *mut Self::State,
        name: *const kernel::ffi::c_char,
        key: *mut bindings::lock_class_key,
    ) {
        // SAFETY: The caller gives a pointer valid for writes, and `name` and `key` that stay valid.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller ensures that the lock was initialised.
        unsafe { bindings::weft_helper_spin_lock_bh(ptr) }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, _guard_state: &Self::GuardState) {
        // SAFETY: The caller owns the lock.
        unsafe { bindings::weft_helper_spin_unlock_bh(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        // SAFETY: The caller ensures that the lock was initialised.
        (unsafe { bindings::weft_helper_spin_trylock_bh(ptr) } != 0).then_some(())
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // Each guard comes here: without lockdep that would be a call that does nothing.
        if cfg!(CONFIG_LOCKDEP) {
            // SAFETY: The caller ensures that the lock was initialised.
            unsafe { bindings::weft_helper_lockdep_assert_held(ptr) }
        }
    }
}
