// SPDX-License-Identifier: GPL-2.0

//! A value that is read often, without a lock, and replaced as a whole now and then.
//!
//! C header: [`include/linux/srcu.h`](srctree/include/linux/srcu.h)
//!
//! Readers use the value in place and write no memory that others read. Whoever replaces it gets the old value back
//! once no reader is left that could use it: from then on nobody acts on what the old value said.

use core::ops::Deref;
use kernel::{
    alloc::KBox,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        srcu::Guard,
        LockClassKey,
        Srcu, //
    },
};

/// The pointer of a [`Snapshot`].
///
/// # Invariants
///
/// The pointer came from [`KBox::into_raw`] and is owned here. It is freed only after an SRCU grace period that began
/// after it was replaced, or when nothing can read it any more.
struct Value<T>(Atomic<*mut T>);

// SAFETY: The value is owned; moving it to another thread moves the value.
unsafe impl<T: Send + Sync> Send for Value<T> {}
// SAFETY: Sharing it gives out shared references, and the value itself to the one that replaces it.
unsafe impl<T: Send + Sync> Sync for Value<T> {}

impl<T> Drop for Value<T> {
    fn drop(&mut self) {
        // ORDERING: Nobody else is left.
        let raw = self.0.load(Acquire);
        // SAFETY: By the type invariants the pointer came from a box that is owned here; readers borrow the
        // `Snapshot` around this, so there are none.
        drop(unsafe { KBox::from_raw(raw) });
    }
}

/// Holds one `T` that can be read and replaced at the same time.
///
/// Create one with [`new_snapshot!`](crate::new_snapshot).
#[pin_data]
pub struct Snapshot<T> {
    value: Value<T>,
    #[pin]
    srcu: Srcu,
}

/// Creates a [`Snapshot`] initialiser with its own lockdep class: `new_snapshot!(KBox, "name")`.
#[macro_export]
macro_rules! new_snapshot {
    ($value:expr $(, $name:literal)? $(,)?) => {
        $crate::sync::snapshot::Snapshot::new(
            $value,
            ::kernel::optional_name!($($name)?),
            ::kernel::static_lock_class!(),
        )
    };
}

impl<T: Send + Sync + 'static> Snapshot<T> {
    /// Creates an initialiser; see [`new_snapshot!`](crate::new_snapshot).
    pub fn new(
        value: KBox<T>,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        // INVARIANT: The pointer came from a box.
        try_pin_init!(Self {
            value: Value(Atomic::new(KBox::into_raw(value))),
            srcu <- Srcu::new(name, key),
        })
    }

    /// The value as it is now. Any context but NMI.
    ///
    /// While a guard is held [`Self::replace`] waits, so the same task must not call it meanwhile.
    #[inline]
    pub fn read(&self) -> Reading<'_, T> {
        let guard = self.srcu.read_lock();
        // ORDERING: `Acquire` pairs with the exchange in `replace`.
        let value = self.value.0.load(Acquire);
        Reading {
            // SAFETY: By the invariants of `Value` it is not freed before this read section ends.
            value: unsafe { &*value },
            _guard: guard,
        }
    }

    /// Puts another value in the place of the present one, waits until nobody reads that, and returns it. Sleeps.
    pub fn replace(&self, value: KBox<T>) -> KBox<T> {
        // ORDERING: `Full` publishes the value before the pointer to it.
        // INVARIANT: The new pointer came from a box.
        let old = self.value.0.xchg(KBox::into_raw(value), Full);
        self.srcu.synchronize_expedited();
        // SAFETY: By the invariants of `Value` it came from a box and was owned there; the exchange took it out, and
        // every reader that could have seen it has ended.
        unsafe { KBox::from_raw(old) }
    }
}

/// The right to use the value of a [`Snapshot`] in place.
pub struct Reading<'a, T> {
    value: &'a T,
    _guard: Guard<'a>,
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}
