// SPDX-License-Identifier: GPL-2.0

//! Registering pollers of a socket.
//!
//! C header: [`include/linux/poll.h`](srctree/include/linux/poll.h)
//!
//! `poll` first registers the poller with each queue whose wake-ups can change its answer, then
//! computes the answer.

use crate::{
    bindings,
    net::{
        proto::Protocol,
        socket::Socket, //
    },
    sync::wait::WaitQueue, //
};
use core::marker::PhantomData;

/// There is something to read.
pub const POLLIN: u32 = bindings::POLLIN;
/// Writing does not block.
pub const POLLOUT: u32 = bindings::POLLOUT;
/// There is an error to be read.
pub const POLLERR: u32 = bindings::POLLERR;
/// There is ordinary data to read.
pub const POLLRDNORM: u32 = bindings::POLLRDNORM;
/// Ordinary data can be written.
pub const POLLWRNORM: u32 = bindings::POLLWRNORM;
/// Priority data can be written.
pub const POLLWRBAND: u32 = bindings::POLLWRBAND;

/// The poller of a socket.
///
/// A poller stays registered after `poll` returned: `poll` and `select` hold the file until they
/// have left all queues, and epoll leaves them before the file is released. So a queue that is
/// there until the state of the socket is dropped is there long enough. Such a queue is part of the
/// state or is owned by it, or it is a static: exactly what can be borrowed for `'a`, a lifetime
/// that says nothing but that it is the one for which the socket itself is borrowed.
///
/// # Invariants
///
/// `file` is a socket file whose `poll` is running, `table` is null or its valid `poll_table`.
/// `'a` is the lifetime of the borrow of this file's socket that [`Protocol::poll`] gets. (It
/// cannot become shorter, because the type is invariant in it.)
pub struct PollTable<'a> {
    file: *mut bindings::file,
    table: *mut bindings::poll_table,
    _socket: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a> PollTable<'a> {
    /// Wraps the arguments of a `poll` call.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw(
        file: *mut bindings::file,
        table: *mut bindings::poll_table,
    ) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            file,
            table,
            _socket: PhantomData,
        }
    }

    /// Registers the poller with [`Sock::wake_sleepers`].
    ///
    /// [`Sock::wake_sleepers`]: super::sock::Sock::wake_sleepers
    #[inline]
    pub fn register_sock<T: Protocol>(&self, sk: &'a Socket<T>) {
        // SAFETY: `file` and `table` are valid by the type invariants. The wait queue is that of
        // the file's socket: no other is borrowed for `'a`.
        unsafe { bindings::poll_wait(self.file, sk.wait_queue(), self.table) };
    }

    /// Registers the poller with a further queue.
    #[inline]
    pub fn register(&self, queue: &'a WaitQueue) {
        // SAFETY: `file` and `table` are valid by the type invariants. `queue` is borrowed for
        // `'a`, so it lives until the state of the socket is dropped, which is after all pollers
        // have left it (see the type).
        unsafe { bindings::poll_wait(self.file, queue.as_raw(), self.table) };
    }
}
