// SPDX-License-Identifier: GPL-2.0

//! Receives.
//!
//! Two kinds can be posted to one queue, in any mixture: *empty* ones, for immediates and for messages without bytes,
//! and ones with an entry of the queue's slab, for messages with bytes. The peer's messages take them in the order in
//! which they were posted.

mod batch;
mod received;
mod slab;

pub use received::{
    Message,
    Received, //
};

use super::{
    ring::cqe_of,
    Handler,
    Inner,
    PostError,
    QpInit,
    QueuePair, //
};
use crate::bindings;
use batch::{
    Batch,
    BATCH, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr, //
};
use kernel::{
    container_of, new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SpinLockIrq, //
    },
};
use received::decode;
use slab::{
    Slab,
    Slot, //
};

/// Which receives can be posted.
struct State {
    closed: bool,
    /// Entries of the slab that nobody has: neither the queue nor a [`Received`]. Never grows beyond its capacity.
    free: KVVec<u32>,
    /// Receives that are to be posted again with the next ones of their kind: empty ones, and entries of the slab.
    owed_empty: usize,
    owed_filled: usize,
}

impl State {
    /// Closed, with these entries free. Not inlined, for the sake of the lock class: see `Stage`.
    #[inline(never)]
    fn locked(free: KVVec<u32>) -> impl PinInit<SpinLockIrq<Self>> {
        let state = Self {
            closed: true,
            free,
            owed_empty: 0,
            owed_filled: 0,
        };
        new_spinlock_irq!(state, "weft_rdma::qp::recv")
    }
}

/// The receives of a queue pair.
///
/// # Invariants
///
/// At most `max` receives are in the queue; `posted` is not less than those. An entry of the slab is in the queue, or
/// in one [`Received`], or in `State::free`.
#[pin_data]
pub(super) struct Receives {
    max: u32,
    /// How many that are over are posted again together.
    batch: usize,
    posted: Atomic<u32>,
    slab: Option<Slab>,
    empty: UnsafeCell<bindings::ib_cqe>,
    #[pin]
    state: SpinLockIrq<State>,
}

impl Receives {
    /// Receives for handlers of type `H`, still closed.
    pub(super) fn new<H: Handler>(init: &QpInit<'_>) -> Result<impl PinInit<Self>> {
        Self::with(init, [empty_callback::<H>, slab_callback::<H>])
    }

    fn with(init: &QpInit<'_>, [empty, filled]: [Done; 2]) -> Result<impl PinInit<Self>> {
        let slab = match init.slab {
            Some(size) => Some(Slab::new(init.pd.device(), size, filled)?),
            None => None,
        };
        let count = slab.as_ref().map_or(0, |slab| slab.slots.len());
        let mut free = KVVec::with_capacity(count, GFP_KERNEL)?;
        for index in (0..u32::try_from(count)?).rev() {
            free.push(index, GFP_KERNEL)?;
        }
        let state = State::locked(free);
        let max = init.max_recv_wr;
        let batch = usize::try_from(init.recv_batch)?.clamp(1, BATCH);
        // INVARIANT: Nothing is posted, and all entries are free.
        Ok(pin_init!(Self {
            max,
            batch,
            posted: Atomic::new(0),
            slab,
            empty: UnsafeCell::new(bindings::ib_cqe { done: Some(empty) }),
            state <- state,
        }))
    }

    /// Tells the slots whose they are, before receives are posted.
    ///
    /// # Safety
    ///
    /// `qp` must be the queue pair that this is pinned in.
    pub(super) unsafe fn attach(&self, qp: *const QueuePair) {
        for slot in self.slab.iter().flat_map(|slab| slab.slots.iter()) {
            // SAFETY: Nothing was posted yet, so nobody reads the field.
            unsafe { (&raw const slot.qp).cast_mut().write(qp) };
        }
    }

    /// Lets receives in.
    pub(super) fn open(&self) {
        self.state.lock().closed = false;
    }

    /// Lets no receive in any more; when this returns, nobody is posting.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
    }

    /// Posts `count` empty receives, all or, after an error, some.
    pub(super) fn post_empty(&self, qp: &QueuePair, count: u32) -> Result<(), PostError> {
        let mut left = usize::try_from(count).map_err(|_| PostError::Full)?;
        while left > 0 {
            let now = left.min(BATCH);
            self.submit_empty(qp, &self.state.lock(), now)?;
            left -= now;
        }
        Ok(())
    }

    /// Posts `count` receives with entries of the slab, all or, after an error, some.
    pub(super) fn post_filled(&self, qp: &QueuePair, count: u32) -> Result<(), PostError> {
        let mut left = usize::try_from(count).map_err(|_| PostError::Full)?;
        while left > 0 {
            let now = left.min(BATCH);
            self.submit_filled(qp, &mut self.state.lock(), now)?;
            left -= now;
        }
        Ok(())
    }

    /// An empty receive is over: posts it again, when there are enough.
    fn repost_empty(&self, qp: &QueuePair) -> Result<(), PostError> {
        let mut state = self.state.lock();
        state.owed_empty += 1;
        if state.owed_empty < self.batch {
            return Ok(());
        }
        let count = core::mem::take(&mut state.owed_empty);
        self.submit_empty(qp, &state, count)
    }

    /// The same with an entry of the slab, which the caller has.
    fn repost_filled(&self, qp: &QueuePair, index: u32) -> Result<(), PostError> {
        let mut state = self.state.lock();
        state.put_back(index);
        state.owed_filled += 1;
        if state.owed_filled < self.batch {
            return Ok(());
        }
        let count = core::mem::take(&mut state.owed_filled);
        self.submit_filled(qp, &mut state, count)
    }

    /// Posts up to [`BATCH`] empty receives under the lock.
    fn submit_empty(&self, qp: &QueuePair, state: &State, count: usize) -> Result<(), PostError> {
        let mut batch = Batch::new();
        for _ in 0..count {
            batch.add(self.empty.get(), bindings::ib_sge::default());
        }
        self.submit(qp, state, &mut batch).1
    }

    /// Posts up to [`BATCH`] receives with free entries of the slab under the lock.
    fn submit_filled(
        &self,
        qp: &QueuePair,
        state: &mut State,
        count: usize,
    ) -> Result<(), PostError> {
        let slab = self.slab.as_ref().ok_or(PostError::Failed(EINVAL))?;
        if state.free.len() < count {
            return Err(PostError::Full);
        }
        let mut indices = [0; BATCH];
        let mut batch = Batch::new();
        for at in indices.iter_mut().take(count) {
            *at = state.free.pop().ok_or(PostError::Full)?;
            slab.memory.give(slab.offset(*at), slab.bytes());
            slab.add(*at, qp, &mut batch);
        }
        let (posted, result) = self.submit(qp, state, &mut batch);
        for index in indices.iter().take(count).skip(posted) {
            state.put_back(*index);
        }
        result
    }

    /// Posts a batch under the lock; how many of it were posted, and why not more.
    fn submit(
        &self,
        qp: &QueuePair,
        state: &State,
        batch: &mut Batch,
    ) -> (usize, Result<(), PostError>) {
        let raw = match qp.working() {
            Ok(raw) if !state.closed => raw,
            _ => return (0, Err(PostError::Closed)),
        };
        // CAST: At most `BATCH`.
        let count = batch.count as u32;
        // ORDERING: It is raised only under the lock, which is held; that it drops meanwhile is harmless.
        if self.posted.load(Relaxed).saturating_add(count) > self.max {
            return (0, Err(PostError::Full));
        }
        // INVARIANT: Counted before they are in the queue.
        self.posted.fetch_add(count, Relaxed);
        let mut bad = ptr::null();
        // SAFETY: The queue pair is there, since receives are closed before it is destroyed. The batch is well-formed;
        // the memory in it is in the slab, of which this part is in nobody else's hands until its completion.
        let ret = unsafe { bindings::weft_helper_ib_post_recv(raw, batch.link(), &mut bad) };
        if ret == 0 {
            return (batch.count, Ok(()));
        }
        let posted = batch.before(bad);
        // CAST: Not more than `BATCH`.
        self.posted.fetch_sub(count - posted as u32, Relaxed);
        (posted, Err(PostError::Failed(Error::from_errno(ret))))
    }

    /// The bytes of an entry that was received.
    #[inline]
    fn bytes_of(&self, index: u32, len: usize) -> Option<*const u8> {
        let slab = self.slab.as_ref()?;
        slab.memory.received(slab.offset(index), len)
    }

    /// An entry of the slab is nobody's again.
    #[inline]
    fn put_back(&self, index: u32) {
        self.state.lock().put_back(index);
    }

    /// One receive is over.
    #[inline]
    fn over(&self) {
        // ORDERING: Only the number counts.
        self.posted.fetch_sub(1, Relaxed);
    }
}

impl State {
    /// An entry of the slab is nobody's again.
    #[inline]
    fn put_back(&mut self, index: u32) {
        // There is capacity for all entries.
        let _ = self.free.push_within_capacity(index);
    }
}

/// The callback of a completion entry.
type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

/// Handles a completed receive.
#[inline]
fn handle<H: Handler>(inner: &Inner<H>, wc: &bindings::ib_wc, index: Option<u32>) {
    let qp = inner.queues();
    qp.receives().over();
    let message = decode(wc);
    // CAST: To a wider type.
    let room = qp.receives().slab.as_ref().map_or(0, Slab::bytes);
    // INVARIANT: The receive is over, so the entry is in nobody's hands.
    let received = Received {
        qp,
        message: message.unwrap_or(Message::Send),
        bytes: wc.byte_len,
        entry: index.map(|index| (index, room.min(wc.byte_len as usize))),
        _call: PhantomData,
    };
    match (message, inner.handler()) {
        (Ok(_), Some(handler)) => H::received(handler, qp, received),
        (Ok(_), None) => {}
        (Err(status), _) => qp.fail(status),
    }
}

/// An empty receive has completed.
///
/// # Safety
///
/// To be called by the RDMA core for a receive with the key `empty` of the [`Receives`] of an [`Inner<H>`].
unsafe extern "C" fn empty_callback<H: Handler>(
    _cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: C gives a completion that is valid during the call.
    let wc = unsafe { &*wc };
    // SAFETY: By the safety requirements. The queue pair stays until the last completion was handled.
    let inner = unsafe {
        let receives = container_of!(cqe_of(wc), Receives, empty);
        &*Inner::<H>::of(container_of!(receives, QueuePair, recv))
    };
    handle(inner, wc, None);
}

/// A receive with an entry of the slab has completed.
///
/// # Safety
///
/// To be called by the RDMA core for a receive with the key of a slot of the [`Receives`] of an [`Inner<H>`].
unsafe extern "C" fn slab_callback<H: Handler>(
    _cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: C gives a completion that is valid during the call.
    let wc = unsafe { &*wc };
    // SAFETY: By the safety requirements, as above.
    let (inner, index) = unsafe {
        let slot = &*container_of!(cqe_of(wc), Slot, cqe);
        (&*Inner::<H>::of(slot.qp), slot.index)
    };
    handle(inner, wc, Some(index));
}
