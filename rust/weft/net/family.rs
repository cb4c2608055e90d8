// SPDX-License-Identifier: GPL-2.0

//! Which `struct proto` serves each address family, and who still uses it.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h) (`struct net_proto_family`)
//!
//! `net_proto_family.create` gets no pointer to the registration it belongs to, so the `struct
//! proto` of every family is found in a table. A [`User`] counts each socket and each creation
//! under way. [`Family::close`] waits for them, which is what makes it safe to drop a registration
//! at any time; when a module goes away in the ordinary way, nobody is left to be waited for.

use crate::{
    bindings,
    sync::wait::{
        wait_on,
        Mode,
        Waiter,
        MAX_TIMEOUT, //
    },
};
use core::{
    mem,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed,
        Release, //
    },
};

/// Number of address families.
pub(super) const FAMILIES: usize = bindings::AF_MAX as usize;

static SLOTS: [Slot; FAMILIES] = [const { Slot::new() }; FAMILIES];

/// One address family.
///
/// # Invariants
///
/// While `users` is not zero, `proto` points to a registered `struct proto` and does not change.
struct Slot {
    /// The protocol of the one [`Family`] that claimed this slot, or null.
    proto: Atomic<*mut bindings::proto>,
    /// One for the open family, one for each [`User`].
    users: Atomic<usize>,
}

impl Slot {
    const fn new() -> Self {
        // INVARIANT: No users.
        Self {
            proto: Atomic::new(ptr::null_mut()),
            users: Atomic::new(0),
        }
    }

    /// What sleepers in [`Family::close`] are found by.
    fn key(&self) -> *mut kernel::ffi::c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Drops one count.
    fn put(&self) {
        // ORDERING: `Full` orders everything done as a user before the count that `close` sees,
        // and the count before `wake_up_var` looks for sleepers.
        if self.users.fetch_sub(1, Full) == 1 {
            // SAFETY: The key is an address of static memory and only compared.
            unsafe { bindings::wake_up_var(self.key()) };
        }
    }
}

/// The right to be the protocol of one address family; gives it back when dropped.
///
/// # Invariants
///
/// No other `Family` has the same slot.
pub(super) struct Family(&'static Slot);

impl Family {
    /// Claims `family` for `proto`, without opening it. `EEXIST` if another protocol has it.
    pub(super) fn claim(family: usize, proto: *mut bindings::proto) -> Result<Self> {
        let slot = SLOTS.get(family).ok_or(EINVAL)?;
        // ORDERING: `Full` orders the claim after everything the former owner did.
        match slot.proto.cmpxchg(ptr::null_mut(), proto, Full) {
            // INVARIANT: Nobody else exchanges null until this claim is dropped.
            Ok(_) => Ok(Self(slot)),
            Err(_) => Err(EEXIST),
        }
    }

    /// Lets users in.
    ///
    /// # Safety
    ///
    /// The claimed `struct proto` must be registered and stay so until [`Self::close`] returned.
    /// This must be called at most once before that.
    pub(super) unsafe fn open(&self) {
        // INVARIANT: By the safety requirements; `proto` changes only when the claim is dropped.
        // ORDERING: `Release` publishes the `struct proto`; pairs with `User::get`.
        self.0.users.store(1, Release);
    }

    /// Lets no more users in and waits until all have gone, however long that takes. May sleep.
    ///
    /// A socket may still be on its way to the allocator when this returns, but only within the
    /// RCU read-side section that [`User::from_socket`] asks for.
    pub(super) fn close(&self) {
        self.0.put();
        // SAFETY: Returns one of the wait queue heads in the kernel's static table.
        let head = unsafe { bindings::__var_waitqueue(self.0.key()) };
        let waiter = Waiter::shared(Mode::Uninterruptible, EINTR);
        // SAFETY: The head is initialised and lives for ever.
        let _ = unsafe {
            // ORDERING: `Acquire` orders what comes next after what the last user did.
            wait_on(head, waiter, MAX_TIMEOUT, || {
                self.0.users.load(Acquire) == 0
            })
        };
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // ORDERING: `Release` pairs with the exchange in `claim`.
        self.0.proto.store(ptr::null_mut(), Release);
    }
}

/// Keeps the `struct proto` of an address family registered.
///
/// # Invariants
///
/// Owns one count of the slot's `users`.
pub(super) struct User(&'static Slot);

impl User {
    /// Becomes a user of `family`, unless it is closed.
    pub(super) fn get(family: usize) -> Option<Self> {
        let slot = SLOTS.get(family)?;
        let mut seen = slot.users.load(Relaxed);
        while seen != 0 {
            // ORDERING: `Full` includes the acquire that pairs with `Family::open`.
            match slot.users.cmpxchg(seen, seen + 1, Full) {
                // INVARIANT: Just counted.
                Ok(_) => return Some(Self(slot)),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// The registered protocol; it stays registered while this user exists.
    pub(super) fn proto(&self) -> *mut bindings::proto {
        // ORDERING: Ordered by the exchange in `get`.
        self.0.proto.load(Relaxed)
    }

    /// Leaves the count with a socket that was made.
    pub(super) fn into_socket(self) {
        mem::forget(self);
    }

    /// Takes the count of a socket that goes away.
    ///
    /// # Safety
    ///
    /// There must be a call of [`Self::into_socket`] for `family` that only this call matches. The
    /// caller must be inside the RCU read-side section in which the socket is freed.
    pub(super) unsafe fn from_socket(family: usize) -> Option<Self> {
        // INVARIANT: The caller passes the count on.
        SLOTS.get(family).map(Self)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.0.put();
    }
}
