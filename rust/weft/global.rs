// SPDX-License-Identifier: GPL-2.0

//! A module-wide object for entry points that get no context, such as the creation of a socket.

use core::ptr;
use kernel::{
    error::code::EBUSY,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        rcu,
        Arc,
        ArcBorrow, //
    },
};

/// A static that holds an object while its [`Published`] guard lives.
///
/// # Invariants
///
/// The pointer is null, or came from [`Arc::into_raw`] and its reference is dropped only an RCU grace period after
/// the pointer was cleared.
pub struct Global<T>(Atomic<*mut T>);

// SAFETY: All access goes through an atomic pointer to an object that is `Send + Sync` where it matters (`publish`).
unsafe impl<T: Send + Sync> Send for Global<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Global<T> {}

impl<T: Send + Sync + 'static> Global<T> {
    /// An empty one.
    pub const fn new() -> Self {
        // INVARIANT: Null.
        Self(Atomic::new(ptr::null_mut()))
    }

    /// Makes `object` available to [`Self::get`] until the guard is dropped. `EBUSY` if there is one already.
    pub fn publish(&'static self, object: Arc<T>) -> Result<Published<T>> {
        let raw = Arc::into_raw(object).cast_mut();
        // ORDERING: `Full` publishes the object before the pointer to it.
        if self.0.cmpxchg(ptr::null_mut(), raw, Full).is_err() {
            // SAFETY: `raw` came from `Arc::into_raw` just now and was given to nobody.
            drop(unsafe { Arc::from_raw(raw.cast_const()) });
            return Err(EBUSY);
        }
        // INVARIANT: The pointer came from `Arc::into_raw`.
        Ok(Published(self))
    }

    /// The object, if one is published now. Any context.
    pub fn get(&self) -> Option<Arc<T>> {
        let _guard = rcu::read_lock();
        // ORDERING: `Acquire` pairs with `publish`.
        let raw = self.0.load(Acquire);
        if raw.is_null() {
            return None;
        }
        // SAFETY: The pointer came from `Arc::into_raw`; by the type invariant its reference lives at least until
        // this RCU read section ends.
        Some(unsafe { ArcBorrow::from_raw(raw.cast_const()) }.into())
    }
}

impl<T: Send + Sync + 'static> Default for Global<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps an object published in a [`Global`]. Dropping it waits for an RCU grace period.
pub struct Published<T: Send + Sync + 'static>(&'static Global<T>);

impl<T: Send + Sync + 'static> Drop for Published<T> {
    fn drop(&mut self) {
        let raw = self.0 .0.load(Acquire);
        // ORDERING: `Release` is enough: readers that still see the old pointer are waited for.
        self.0 .0.store(ptr::null_mut(), Release);
        rcu::synchronize_rcu();
        // SAFETY: The pointer came from `Arc::into_raw` in `publish`, this guard is the only one for it, and no
        // reader that saw it is left in its read section.
        drop(unsafe { Arc::from_raw(raw.cast_const()) });
    }
}
