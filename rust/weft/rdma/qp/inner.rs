// SPDX-License-Identifier: GPL-2.0

//! A queue pair together with its handler, whose type it knows.

use super::{
    pair::{
        Calls,
        QueuePair, //
    },
    Handler, //
};
use core::cell::UnsafeCell;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};

/// A queue pair and its handler.
///
/// # Invariants
///
/// The handler is there until the queue pair was destroyed, and changed only then.
#[pin_data]
#[repr(C)]
pub(super) struct Inner<H: Handler> {
    #[pin]
    pub(super) queues: QueuePair,
    pub(super) handler: UnsafeCell<Option<Arc<H>>>,
}

// SAFETY: The handler is `Send + Sync`, and so is the queue pair.
unsafe impl<H: Handler> Send for Inner<H> {}
// SAFETY: As above, and by the type invariants it does not change while others look.
unsafe impl<H: Handler> Sync for Inner<H> {}

impl<H: Handler> Inner<H> {
    /// The object around the queue pair at `queues`.
    #[inline]
    pub(super) fn of(queues: *const QueuePair) -> *const Self {
        queues.cast()
    }

    #[inline]
    pub(super) fn queues(&self) -> &QueuePair {
        &self.queues
    }

    #[inline]
    pub(super) fn handler(&self) -> Option<ArcBorrow<'_, H>> {
        // SAFETY: By the type invariants it is not changed while completions and events come, which call this.
        unsafe { &*self.handler.get() }
            .as_ref()
            .map(Arc::as_arc_borrow)
    }

    /// For [`QueuePair::calls`].
    pub(super) const CALLS: Calls = Calls {
        error: |queues, status| {
            // SAFETY: By the invariants of `QueuePair`, as for those below.
            let inner = unsafe { &*Self::of(queues) };
            if let Some(handler) = inner.handler() {
                H::error(handler, status);
            }
        },
        writable: |queues| {
            // SAFETY: See above.
            let inner = unsafe { &*Self::of(queues) };
            if let Some(handler) = inner.handler() {
                H::writable(handler, queues);
            }
        },
        release: |queues| {
            // SAFETY: See above. To be called when the queue pair is destroyed.
            let handler = unsafe { (*(*Self::of(queues)).handler.get()).take() };
            drop(handler);
        },
    };
}
