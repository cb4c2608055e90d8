// SPDX-License-Identifier: GPL-2.0

//! What was posted to a send queue and is not over yet.
//!
//! Each chain has one [`Slot`] of the ring, in which its owner is kept. A chain gets its number, its slot and its place
//! in the send queue under one lock, so that numbers are in the order of the queue. Completions come in that order,
//! too: that of one chain proves that all chains before it are over.
//!
//! Work requests complete if they are signalled, or if they fail. Only the last one of a chain may be signalled; after an
//! error, every one that was not done completes, each for itself. So each slot has two completion entries: one for
//! the last work request, whose completion ends the chain, and one for all others.
//!
//! A work request has its room in the send queue until the completion of it, or of one after it. `free` counts so, and is
//! never more than the hardware has. To make sure that completions come, a chain is signalled at the latest when
//! [`State::unsignalled`] would reach `threshold`.

use super::{
    chain::{
        Chain,
        MAX_WRS, //
    },
    status::WcStatus,
    Owner,
    PostError,
    QueuePair,
    Signal, //
};
use crate::{
    bindings,
    loan::Sent, //
};
use core::{
    cell::UnsafeCell,
    ptr, //
};
use kernel::{
    container_of, ffi, new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        SpinLockIrq, //
    },
};

/// Work requests that a queue must have room for at least: a chain of any length fits then beside unsignalled ones.
pub(super) const LEAST_WRS: u32 = MAX_WRS as u32 + 1;

/// What names a slot in its work requests: the addresses of its completion entries.
pub(super) struct SlotKeys {
    pub(super) last: u64,
    pub(super) others: u64,
}

/// A chain that is not over.
struct Entry {
    owner: Option<Arc<dyn Owner>>,
    /// Its number.
    seq: u64,
    /// Its work requests.
    wrs: u32,
    /// Whether the owner is told if it is done without an error.
    report: bool,
    /// How a work request before the last one failed.
    error: Option<WcStatus>,
}

/// Room for one chain.
///
/// # Invariants
///
/// `qp` is the queue pair that the slot is of. `entry` is accessed by whoever holds the lock of the ring while the slot is
/// free, and by the ring's consumer while it is not.
#[repr(C)]
struct Slot {
    last: UnsafeCell<bindings::ib_cqe>,
    others: UnsafeCell<bindings::ib_cqe>,
    qp: *const QueuePair,
    entry: UnsafeCell<Entry>,
}

/// The part of a ring that those who post change.
struct State {
    /// The number of the next chain.
    tail: u64,
    /// Work requests that there is room for.
    free: u32,
    /// Work requests posted after the last signalled one.
    unsignalled: u32,
    /// Somebody found no room.
    starved: bool,
    /// Nothing can be posted (any more).
    closed: bool,
}

/// The chains of a send queue.
///
/// The *consumer* is whoever handles completions of the queue pair's send queue. There is one at a time: the RDMA core
/// handles a completion queue in one place, [`Cq`](crate::cq::Cq) sees to it for those handled directly, and
/// [`Self::finish`] is called when none come any more.
///
/// # Invariants
///
/// The slots of the chains from `head` up to `State::tail` are in use; that of chain n is `slots[n & mask]`. There are at
/// least as many slots as work requests in the queue, so one is free when there is room for a work request. `head` is
/// changed by the consumer only. All chains before `over` are over, all before `good` were done without an error.
#[pin_data]
pub(super) struct Ring {
    slots: KVVec<Slot>,
    mask: u64,
    max_wrs: u32,
    threshold: u32,
    head: Atomic<u64>,
    over: Atomic<u64>,
    good: Atomic<u64>,
    #[pin]
    state: SpinLockIrq<State>,
}

impl Ring {
    /// A ring, still closed, for `max_wrs` work requests, at least [`LEAST_WRS`].
    pub(super) fn new(max_wrs: u32) -> Result<impl PinInit<Self>> {
        let count = max_wrs.max(LEAST_WRS).next_power_of_two();
        let mut slots = KVVec::with_capacity(usize::try_from(count)?, GFP_KERNEL)?;
        for _ in 0..count {
            slots.push(Slot::new(), GFP_KERNEL)?;
        }
        // Often enough for the queue to be always half open, but not so often that it costs.
        let threshold = (max_wrs / 4).clamp(1, max_wrs.saturating_sub(LEAST_WRS).max(1));
        // INVARIANT: Nothing was posted.
        Ok(pin_init!(Self {
            slots,
            mask: u64::from(count) - 1,
            max_wrs,
            threshold,
            head: Atomic::new(0),
            over: Atomic::new(0),
            good: Atomic::new(0),
            state <- new_spinlock_irq!(
                State {
                    tail: 0,
                    free: *max_wrs,
                    unsignalled: 0,
                    starved: false,
                    closed: true,
                },
                "weft_rdma::qp::ring"
            ),
        }))
    }

    /// Tells the slots whose they are, before the ring is opened.
    ///
    /// # Safety
    ///
    /// `qp` must be the queue pair that this ring is pinned in.
    pub(super) unsafe fn attach(&self, qp: *const QueuePair) {
        for slot in &self.slots {
            // SAFETY: Nothing was posted yet, so nobody reads the field.
            unsafe { (&raw const slot.qp).cast_mut().write(qp) };
        }
    }

    /// Lets chains in.
    pub(super) fn open(&self) {
        self.state.lock().closed = false;
    }

    /// Lets no chain in any more; when this returns, nobody is posting.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
    }

    #[inline]
    fn slot(&self, seq: u64) -> Option<&Slot> {
        // CAST: Masked, so it is an index.
        self.slots.get((seq & self.mask) as usize)
    }

    /// Posts a chain.
    pub(super) fn post(
        &self,
        qp: *mut bindings::ib_qp,
        owner: Arc<dyn Owner>,
        signal: Signal,
        chain: &mut Chain<'_>,
    ) -> Result<(), PostError> {
        // CAST: At most `MAX_WRS`.
        let wrs = chain.len() as u32;
        if wrs == 0 || wrs > self.max_wrs {
            return Err(PostError::Failed(EINVAL));
        }
        let mut state = self.state.lock();
        if state.closed {
            return Err(PostError::Closed);
        }
        if state.free < wrs {
            state.starved = true;
            return Err(PostError::Full);
        }
        let seq = state.tail;
        let slot = self.slot(seq).ok_or(PostError::Failed(EINVAL))?;
        let report = signal == Signal::Always;
        let before = state.unsignalled;
        let unsignalled = before.saturating_add(wrs);
        let signalled = report || unsignalled >= self.threshold;
        // SAFETY: By the type invariants the slot is free, as there is room, and we hold the lock.
        unsafe {
            *slot.entry.get() = Entry {
                owner: Some(owner),
                seq,
                wrs,
                report,
                error: None,
            }
        };
        // INVARIANT: The slot is in use now, which is before a completion can come.
        state.tail = seq.wrapping_add(1);
        state.free -= wrs;
        state.unsignalled = if signalled { 0 } else { unsignalled };
        let flags = if signalled { SIGNALED } else { 0 };
        let first = chain.link(&slot.keys(), flags);
        chain.commit(seq);
        let mut bad = ptr::null();
        // SAFETY: `qp` is there, since the ring is closed before it is destroyed. The chain is well-formed, and its
        // memory stays as it is until it is over, because the slot has its owner: see `qp`.
        let ret = unsafe { bindings::weft_helper_ib_post_send(qp, first, &mut bad) };
        if ret == 0 {
            return Ok(());
        }
        if chain.before(bad) > 0 {
            // Some of it is in the queue. Its owner stays until the queue is drained; more of the same would not help.
            state.closed = true;
            return Err(PostError::Broken);
        }
        state.tail = seq;
        state.free += wrs;
        state.unsignalled = before;
        // SAFETY: The slot was not posted, so it is free, and we hold the lock.
        let owner = unsafe { (*slot.entry.get()).owner.take() };
        drop(state);
        chain.revert();
        drop(owner);
        Err(PostError::Failed(Error::from_errno(ret)))
    }

    /// What is over now.
    #[inline]
    pub(super) fn progress(&self, qp: u64) -> Sent {
        // INVARIANT: By the type invariants. `good` is read first, so it is not ahead of `over`.
        // ORDERING: `Acquire` pairs with `advance`: who sees the numbers may use the memory.
        let good = self.good.load(Acquire);
        let over = self.over.load(Acquire);
        Sent { qp, over, good }
    }

    /// All chains up to `seq` are over. By the consumer, with `result` for the last of them.
    ///
    /// Their room is there again when the owner is told. Whether somebody waits for room.
    fn advance(&self, qp: u64, seq: u64, result: Result<(), WcStatus>) -> bool {
        // ORDERING: Only the consumer writes it.
        let head = self.head.load(Relaxed);
        // Not one that is in use: a completion came twice.
        if seq < head || seq - head > self.mask {
            return false;
        }
        let mut wrs = 0;
        let mut last = None;
        for at in head..=seq {
            let Some(slot) = self.slot(at) else { continue };
            // SAFETY: By the type invariants the slot is in use, and we are the consumer.
            let entry = unsafe { &mut *slot.entry.get() };
            wrs += entry.wrs;
            // What comes before the last one is over without a completion, so nothing is to be told of it.
            last = entry
                .owner
                .take()
                .map(|owner| (owner, entry.report, entry.error));
        }
        let next = seq.wrapping_add(1);
        // INVARIANT: The slots are not in use any more once others can see this, under the lock.
        let starved = {
            let mut state = self.state.lock();
            // ORDERING: Read by the consumer, and by `finish` when there is none.
            self.head.store(next, Relaxed);
            state.free = state.free.saturating_add(wrs).min(self.max_wrs);
            core::mem::take(&mut state.starved)
        };
        // ORDERING: `Release` pairs with `progress`. A chain that failed ends what was good, for ever.
        if result.is_ok() {
            self.good.store(next, Release);
        }
        self.over.store(next, Release);
        if let Some((owner, report, error)) = last {
            let result = error.map_or(result, Err);
            if report || result.is_err() {
                owner.sent(result, &self.progress(qp));
            }
        }
        starved
    }

    /// Ends all chains that are left.
    ///
    /// # Safety
    ///
    /// The ring must be closed and the queue pair destroyed; no completion of it is handled or will be.
    pub(super) unsafe fn finish(&self, qp: u64) {
        let tail = self.state.lock().tail;
        // ORDERING: Only the consumer writes it, which we are now.
        while self.head.load(Relaxed) < tail {
            let seq = self.head.load(Relaxed);
            self.advance(qp, seq, Err(WcStatus::FLUSHED));
        }
    }

    /// Work requests that a queue has room for.
    pub(super) fn max_wrs(&self) -> u32 {
        self.max_wrs
    }
}

// CAST: A single bit.
const SIGNALED: ffi::c_int = bindings::ib_send_flags_IB_SEND_SIGNALED as ffi::c_int;

impl Slot {
    fn new() -> Self {
        Self {
            last: UnsafeCell::new(bindings::ib_cqe {
                done: Some(last_callback),
            }),
            others: UnsafeCell::new(bindings::ib_cqe {
                done: Some(others_callback),
            }),
            qp: ptr::null(),
            entry: UnsafeCell::new(Entry {
                owner: None,
                seq: 0,
                wrs: 0,
                report: false,
                error: None,
            }),
        }
    }

    #[inline]
    fn keys(&self) -> SlotKeys {
        // CAST: Addresses, in the 64 bits that C has for them.
        SlotKeys {
            last: self.last.get().addr() as u64,
            others: self.others.get().addr() as u64,
        }
    }
}

/// The completion entry that a completion names.
#[inline]
pub(super) fn cqe_of(wc: &bindings::ib_wc) -> *mut UnsafeCell<bindings::ib_cqe> {
    // CAST: An address, in the 64 bits that C has for it.
    wc.__bindgen_anon_1.bindgen_union_field as *mut UnsafeCell<bindings::ib_cqe>
}

/// The last work request of a chain has completed.
///
/// # Safety
///
/// To be called by the RDMA core for a work request with the key `last` of a slot.
unsafe extern "C" fn last_callback(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: C gives a completion that is valid during the call.
    let wc = unsafe { &*wc };
    // SAFETY: By the safety requirements it is in a slot. The slot, its ring and the queue pair stay until the last
    // completion was handled.
    let slot = unsafe { &*container_of!(cqe_of(wc), Slot, last) };
    // SAFETY: As above.
    let qp = unsafe { &*slot.qp };
    // SAFETY: The slot is in use, and we are the consumer.
    let seq = unsafe { (*slot.entry.get()).seq };
    let status = WcStatus::of(wc);
    if let Some(status) = status {
        qp.fail(status);
    }
    if qp.ring().advance(qp.id(), seq, status.map_or(Ok(()), Err)) {
        qp.writable();
    }
}

/// Another work request of a chain has failed: only then are they completed.
///
/// # Safety
///
/// To be called by the RDMA core for a work request with the key `others` of a slot.
unsafe extern "C" fn others_callback(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: C gives a completion that is valid during the call.
    let wc = unsafe { &*wc };
    // SAFETY: As in `last_callback`.
    let slot = unsafe { &*container_of!(cqe_of(wc), Slot, others) };
    let status = WcStatus::of(wc).unwrap_or(WcStatus::GENERAL);
    // SAFETY: The slot is in use, and we are the consumer.
    unsafe { (*slot.entry.get()).error.get_or_insert(status) };
    // SAFETY: As in `last_callback`.
    unsafe { &*slot.qp }.fail(status);
}
