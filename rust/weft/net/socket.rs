// SPDX-License-Identifier: GPL-2.0

//! The half of a socket that belongs to a file descriptor.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h)
//!
//! See [`sock`](super::sock) for how the two halves go together.

use crate::{
    bindings,
    net::{
        proto::Protocol,
        sock::Sock, //
    },
    sync::wait::{
        wait_on,
        Mode,
        WaitResult,
        Waiter,
        MAX_TIMEOUT, //
    },
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// The user's half of a socket, lent to the methods of [`Protocol`].
///
/// Dereferences to [`Sock<T>`].
///
/// # Invariants
///
/// A valid `struct socket` whose `sk` was made by the trampolines of `T`, with its state
/// initialised. References to it exist only during a call of one of the methods of [`Protocol`],
/// when neither it nor its wait queue can go away.
#[repr(transparent)]
pub struct Socket<T: Protocol> {
    inner: Opaque<bindings::socket>,
    _state: PhantomData<T>,
}

impl<T: Protocol> Socket<T> {
    /// Borrows a `struct socket` for a call.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(sock: *mut bindings::socket) -> &'a Self {
        // SAFETY: `Self` is transparent over `struct socket`; valid by the safety requirements.
        unsafe { &*sock.cast::<Self>() }
    }

    /// The wait queue of the socket, on which system calls and pollers wait.
    #[inline]
    pub(super) fn wait_queue(&self) -> *mut bindings::wait_queue_head {
        // SAFETY: By the type invariants this is a valid `struct socket`.
        unsafe { &raw mut (*self.inner.get()).wq.wait }
    }

    /// Sleeps until `condition` holds, `timeout` jiffies pass or a signal arrives. May sleep.
    ///
    /// [`Sock::wake_sleepers`] makes it look at the condition again. `condition` may take sleeping
    /// locks. An interrupted wait ends with `ERESTARTSYS` if the timeout was infinite, otherwise
    /// with `EINTR`.
    #[inline]
    pub fn wait_interruptible(&self, timeout: i64, condition: impl FnMut() -> bool) -> WaitResult {
        let on_signal = if timeout == MAX_TIMEOUT {
            ERESTARTSYS
        } else {
            EINTR
        };
        let waiter = Waiter::shared(Mode::Interruptible, on_signal);
        // SAFETY: By the type invariants the wait queue stays valid during the call of the method
        // of `Protocol` that we are in.
        unsafe { wait_on(self.wait_queue(), waiter, timeout, condition) }
    }
}

impl<T: Protocol> Deref for Socket<T> {
    type Target = Sock<T>;

    #[inline]
    fn deref(&self) -> &Sock<T> {
        // SAFETY: By the type invariants `sk` is a socket of `T` that the `struct socket` owns a
        // reference of.
        unsafe { Sock::from_raw((*self.inner.get()).sk) }
    }
}
