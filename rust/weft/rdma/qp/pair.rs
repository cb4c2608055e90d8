// SPDX-License-Identifier: GPL-2.0

//! A queue pair as those see it who post to it.

use super::{
    chain::Chain,
    recv::Receives,
    ring::Ring,
    shutdown::{
        Sentinel,
        Stage, //
    },
    Owner,
    PostError,
    Signal,
    WcStatus, //
};
use crate::{
    bindings,
    cm::IdQp,
    cq::Room,
    device::Device,
    loan::Sent,
    pd::Pd, //
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    },
};

/// What the library calls of a handler whose type it does not know. All take the queue pair in an
/// [`Inner`](super::inner::Inner) of the right
/// type.
pub(super) struct Calls {
    pub(super) error: unsafe fn(&QueuePair, WcStatus),
    pub(super) writable: unsafe fn(&QueuePair),
    pub(super) release: unsafe fn(&QueuePair),
}

/// A queue pair as those see it who post to it: see [`Qp`](super::Qp) for its owner.
///
/// # Invariants
///
/// It is the first field of an [`Inner`](super::inner::Inner) of the type that `calls` is for. `qp` is initialised
/// while `raw` is not null, and
/// `raw` is its queue pair, which holds nothing that `ring` and `recv` do not know. They are closed before it is
/// destroyed.
#[pin_data]
#[repr(C)]
pub struct QueuePair {
    #[pin]
    pub(super) ring: Ring,
    #[pin]
    pub(super) recv: Receives,
    pub(super) raw: Atomic<*mut bindings::ib_qp>,
    pub(super) id: u64,
    pub(super) max_send_sge: usize,
    pub(super) pd: Arc<Pd>,
    pub(super) send: Room,
    pub(super) receive: Room,
    pub(super) failed: Atomic<bool>,
    pub(super) calls: Calls,
    pub(super) qp: UnsafeCell<MaybeUninit<IdQp>>,
    #[pin]
    pub(super) sentinel: Sentinel,
    #[pin]
    pub(super) stage: Stage,
}

// SAFETY: A queue pair may be used from any thread; all fields are `Send`, or only used as their invariants say.
unsafe impl Send for QueuePair {}
// SAFETY: As above: what changes is atomic, locked, or changed by the consumer of the ring only.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Posts the chain that `build` makes. Any context; allocates nothing.
    ///
    /// The work requests are done in the order in which they were added, after all that were posted before. `owner` is
    /// kept until they are over; after an error, other than [`PostError::Broken`], it is released at once. If `build`
    /// fails, that is [`PostError::Failed`]. See [`qp`](self) for why `build` has to work for any `'o`.
    ///
    /// `build` must not wait; it may post other chains.
    #[inline]
    pub fn post<T: Owner>(
        &self,
        owner: Arc<T>,
        signal: Signal,
        build: impl for<'o> FnOnce(&'o T, &mut Chain<'o>) -> Result,
    ) -> Result<(), PostError> {
        let raw = self.working()?;
        // SAFETY: `owner` is kept until the chain is over if it is posted, and else until the chain has forgotten it,
        // or, if `build` fails, is dropped: it is declared later. In that time nobody has a mutable reference, since an
        // `Arc` gives shared ones only.
        let borrow = unsafe { &*Arc::as_ptr(&owner) };
        let mut chain = Chain::new(self);
        build(borrow, &mut chain).map_err(PostError::Failed)?;
        self.ring.post(raw, owner, signal, &mut chain)
    }

    /// Posts `count` receives without buffers. Any context. After an error some may have been posted.
    #[inline]
    pub fn post_recv(&self, count: u32) -> Result<(), PostError> {
        self.recv.post_empty(self, count)
    }

    /// Posts `count` receives with buffers of the slab. Any context. After an error some may have been posted.
    #[inline]
    pub fn post_slab_recv(&self, count: u32) -> Result<(), PostError> {
        self.recv.post_filled(self, count)
    }

    /// Proof of what is over by now. Any context.
    #[inline]
    pub fn progress(&self) -> Sent {
        self.ring.progress(self.id)
    }

    /// Work requests that its send queue has room for.
    pub fn max_send_wr(&self) -> u32 {
        self.ring.max_wrs()
    }

    /// Scatter-gather entries that one work request can have.
    #[inline]
    pub fn max_send_sge(&self) -> usize {
        self.max_send_sge
    }

    /// Its protection domain.
    #[inline]
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Its device.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        self.pd.device()
    }

    /// Whether an error has come; a hint.
    #[inline]
    pub fn has_failed(&self) -> bool {
        // ORDERING: A hint.
        self.failed.load(Relaxed)
    }

    /// The library's number for it.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    pub(super) fn as_raw(&self) -> Option<*mut bindings::ib_qp> {
        // ORDERING: `Acquire` pairs with `Qp::new`. That it is not destroyed meanwhile is for the locks of the queues.
        let raw = self.raw.load(Acquire);
        (!raw.is_null()).then_some(raw)
    }

    #[inline]
    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    #[inline]
    pub(super) fn receives(&self) -> &Receives {
        &self.recv
    }

    /// The queue pair of C, unless it does not work any more.
    #[inline]
    pub(super) fn working(&self) -> Result<*mut bindings::ib_qp, PostError> {
        match self.as_raw() {
            Some(raw) if !self.has_failed() => Ok(raw),
            _ => Err(PostError::Closed),
        }
    }

    /// Errors from here on are none.
    pub(super) fn silence(&self) {
        // ORDERING: As in `fail`.
        self.failed.xchg(true, Full);
    }

    /// An error has come; the first one is told to the handler.
    #[cold]
    pub(super) fn fail(&self, status: WcStatus) {
        // ORDERING: One is the first.
        if !self.failed.xchg(true, Full) {
            // SAFETY: By the type invariants.
            unsafe { (self.calls.error)(self, status) }
        }
    }

    #[cold]
    pub(super) fn writable(&self) {
        // SAFETY: By the type invariants.
        unsafe { (self.calls.writable)(self) }
    }
}
