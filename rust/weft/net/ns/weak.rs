// SPDX-License-Identifier: GPL-2.0

//! A namespace that may be gone, and the use of one that must end before it goes.

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
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        Completion, //
    },
};

/// Points to a namespace without keeping it alive.
///
/// For objects that belong to a namespace and go down with it, but now and then need it to work, such as a connection
/// that has to open another socket.
#[derive(Clone)]
pub struct WeakNet(Arc<Cell>);

/// What references to one namespace share.
///
/// # Invariants
///
/// Bound to the scope of the namespace for one registration, which is not left before [`Cell::revoke`] has returned.
#[pin_data]
struct Cell {
    #[pin]
    state: SpinLockBh<State>,
    /// Completed when the last use has ended after the address was taken away.
    #[pin]
    unused: Completion,
}

struct State {
    /// There until the namespace is left.
    address: Option<NonNull<bindings::net>>,
    /// [`NetUse`]s that exist.
    uses: usize,
}

// SAFETY: A `struct net` may be used from any thread.
unsafe impl Send for State {}

impl WeakNet {
    /// Points to `net`. Sleeps.
    pub fn new(net: &ScopedNet<'_>) -> Result<Self> {
        let address = NonNull::new(net.as_raw());
        let cell = Arc::pin_init(
            pin_init!(Cell {
                state <- new_spinlock_bh!(State { address, uses: 0 }, "WeakNet"),
                unused <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        // INVARIANT: From here on the scope revokes the cell; nobody else knows it before.
        net.add(cell.clone())?;
        Ok(Self(cell))
    }

    /// The namespace, unless it is going away or gone. Keeps it alive. Any context but hard interrupts.
    pub fn try_get(&self) -> Option<NetRef> {
        let state = self.0.state.lock();
        let address = state.address?;
        // SAFETY: By the invariant of `Cell` the namespace has not been left, and will not be before the lock is
        // released, so its subsystems are up.
        unsafe { Net::from_raw(address.as_ptr()) }.try_get()
    }

    /// Begins a use of the namespace that must end before it is left. Any context but hard interrupts.
    ///
    /// `None` if the namespace has been left. Unlike [`Self::try_get`] it works while the namespace comes to its end,
    /// and does not delay that.
    pub fn enter(&self) -> Option<NetUse> {
        let mut state = self.0.state.lock();
        let address = state.address?;
        state.uses += 1;
        // INVARIANT: The use is counted.
        Some(NetUse {
            cell: self.0.clone(),
            address,
        })
    }
}

impl Revoke for Cell {
    /// Waits for all uses to end. One that was forgotten is waited for, for ever.
    fn revoke(&self) {
        let uses = {
            let mut state = self.state.lock();
            state.address = None;
            state.uses
        };
        if uses != 0 {
            self.unused.wait_for_completion();
        }
    }
}

/// The use of a namespace by something that does not keep it alive. The registration does not leave the namespace
/// while it exists, so whatever holds one must be dropped at the latest in the registration's `exit`.
///
/// # Invariants
///
/// Counted in `cell`; `address` is the namespace of `cell`, which has not been left.
pub struct NetUse {
    cell: Arc<Cell>,
    address: NonNull<bindings::net>,
}

// SAFETY: A `struct net` may be used from any thread.
unsafe impl Send for NetUse {}
// SAFETY: As above.
unsafe impl Sync for NetUse {}

impl Deref for NetUse {
    type Target = Net;

    #[inline]
    fn deref(&self) -> &Net {
        // SAFETY: By the type invariants the namespace has not been left, and is not as long as `self` exists.
        unsafe { Net::from_raw(self.address.as_ptr()) }
    }
}

impl Drop for NetUse {
    fn drop(&mut self) {
        let last = {
            let mut state = self.cell.state.lock();
            state.uses -= 1;
            state.uses == 0 && state.address.is_none()
        };
        if last {
            self.cell.unused.complete_all();
        }
    }
}
