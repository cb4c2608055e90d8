// SPDX-License-Identifier: GPL-2.0

//! A namespace that may be gone.

use super::{
    scope::Revoke,
    Net,
    NetRef,
    ScopedNet, //
};
use crate::{
    bindings,
    new_spinlock_bh,
    sync::bh::SpinLockBh, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Points to a namespace without keeping it alive.
///
/// For objects that belong to a namespace and go down with it, but now and then need it to work, such as a connection
/// that has to open another socket.
#[derive(Clone)]
pub struct WeakNet(Arc<Cell>);

#[pin_data]
struct Cell {
    #[pin]
    net: SpinLockBh<Option<Address>>,
}

/// # Invariants
///
/// Exists only while the pernet registration it was bound for has not left the namespace.
struct Address(*const bindings::net);

// SAFETY: A `struct net` may be used from any thread.
unsafe impl Send for Address {}

impl WeakNet {
    /// Points to `net`. Sleeps.
    pub fn new(net: &ScopedNet<'_>) -> Result<Self> {
        // INVARIANT: Bound to the scope below, which is emptied when the namespace is left.
        let address = Address(net.as_raw());
        let cell = Arc::pin_init(
            pin_init!(Cell {
                net <- new_spinlock_bh!(Some(address), "WeakNet"),
            }),
            GFP_KERNEL,
        )?;
        net.add(cell.clone())?;
        Ok(Self(cell))
    }

    /// The namespace, unless it is going away or gone. Any context but hard interrupts.
    pub fn try_get(&self) -> Option<NetRef> {
        let guard = self.0.net.lock();
        let address = guard.as_ref()?;
        // SAFETY: By the invariant of `Address` the namespace has not been left, and will not be before the lock is
        // released, so its subsystems are up.
        unsafe { Net::from_raw(address.0) }.try_get()
    }
}

impl Revoke for Cell {
    fn revoke(&self) {
        *self.net.lock() = None;
    }
}
