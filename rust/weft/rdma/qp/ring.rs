// SPDX-License-Identifier: GPL-2.0

//! What was posted to a send queue and is not over yet.
//!
//! Each chain has one [`Slot`] of the ring, in which its owner is kept. A chain gets its number, its slot and its place
//! in the send queue under one lock, so that numbers are in the order of the queue. Completions come in that order,
//! too: that of one chain proves that all chains before it are over.
//!
//! Work requests complete if they are signalled, or if they fail. Only the last one of a chain may be signalled; after
//! an error, every one that was not done completes, each for itself. So each slot has two completion entries: one for
//! the last work request, whose completion ends the chain, and one for all others.
//!
//! A work request has its room in the send queue until the completion of it, or of one after it. `free` counts so, and
//! is never more than the hardware has. To make sure that completions come, a chain is signalled at the latest when
//! [`State::unsignalled`] would reach `threshold`.

mod slot;

pub(super) use slot::{
    cqe_of,
    SlotKeys, //
};

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
use core::ptr;
use kernel::{
    ffi, new_spinlock_irq,
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
use slot::{
    Entry,
    Slot, //
};

/// Work requests that a queue must have room for at least: a chain of any length fits then beside unsignalled ones.
pub(super) const LEAST_WRS: u32 = MAX_WRS as u32 + 1;

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

impl State {
    /// Takes [`Ring::admit`] back; `unsignalled` is what it was before.
    #[cold]
    fn dismiss(&mut self, seq: u64, wrs: u32, unsignalled: u32) {
        self.tail = seq;
        self.free += wrs;
        self.unsignalled = unsignalled;
    }
}

/// What [`Ring::release`] gives of the last chain.
type Last = Option<(Arc<dyn Owner>, bool, Option<WcStatus>)>;

/// The chains of a send queue.
///
/// The *consumer* is whoever handles completions of the queue pair's send queue. There is one at a time: the RDMA core
/// handles a completion queue in one place, [`Cq`](crate::cq::Cq) sees to it for those handled directly, and
/// [`Self::finish`] is called when none come any more.
///
/// # Invariants
///
/// The slots of the chains from `head` up to `State::tail` are in use; that of chain n is `slots[n & mask]`. There are
/// at least as many slots as work requests in the queue, so one is free when there is room for a work request. `head`
/// is changed by the consumer only. All chains before `over` are over, all before `good` were done without an error.
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
    #[inline(never)]
    pub(super) fn new(max_wrs: u32) -> Result<impl PinInit<Self>> {
        let count = max_wrs.max(LEAST_WRS).next_power_of_two();
        let mut slots = KVVec::with_capacity(usize::try_from(count)?, GFP_KERNEL)?;
        for _ in 0..count {
            slots.push(Slot::new(), GFP_KERNEL)?;
        }
        // Often enough for the queue to be always half open, but not so often that it costs.
        let threshold = (max_wrs / 4).clamp(1, max_wrs.saturating_sub(LEAST_WRS).max(1));
        // As for the lock of `Stage`.
        let state = new_spinlock_irq!(
            State {
                tail: 0,
                free: max_wrs,
                unsignalled: 0,
                starved: false,
                closed: true,
            },
            "weft_rdma::qp::ring"
        );
        // INVARIANT: Nothing was posted.
        Ok(pin_init!(Self {
            slots,
            mask: u64::from(count) - 1,
            max_wrs,
            threshold,
            head: Atomic::new(0),
            over: Atomic::new(0),
            good: Atomic::new(0),
            state <- state,
        }))
    }

    /// Tells the slots whose they are, before the ring is opened.
    ///
    /// # Safety
    ///
    /// `qp` must be the queue pair that this ring is pinned in.
    pub(super) unsafe fn attach(&self, qp: *const QueuePair) {
        for slot in &self.slots {
            // SAFETY: Nothing was posted yet, as the ring is closed; the rest is promised by the caller.
            unsafe { slot.attach(qp) };
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
        let report = signal == Signal::Always;
        let mut state = self.state.lock();
        let before = state.unsignalled;
        let admitted = self.admit(&mut state, wrs, report);
        let (seq, slot, signalled) = match admitted {
            Ok(place) => place,
            Err(error) => {
                drop(state);
                // Before the owner is dropped, in which what is lent may be.
                chain.cancel();
                return Err(error);
            }
        };
        // SAFETY: By the type invariants the slot was free, as there was room, and we hold the lock. It has no owner
        // that would be to drop.
        unsafe { slot.entry.get().write(Entry::new(owner, seq, wrs, report)) };
        let first = chain.link(&slot.keys(), if signalled { SIGNALED } else { 0 });
        chain.commit(seq);
        let mut bad = ptr::null();
        // SAFETY: `qp` is there, since the ring is closed before it is destroyed. The chain is well-formed, and its
        // memory stays as it is until it is over, because the slot has its owner: see `qp`.
        let ret = unsafe { bindings::weft_helper_ib_post_send(qp, first, &mut bad) };
        if ret == 0 {
            return Ok(());
        }
        let error = Error::from_errno(ret);
        if chain.before(bad) > 0 || !chain.revert() {
            // Some of it is in the queue, or somebody looks at what is lent and saw that this chain uses it: no other
            // may have its number. Its owner stays until the queue is drained; more of the same would not help.
            state.closed = true;
            return Err(PostError::Broken);
        }
        state.dismiss(seq, wrs, before);
        // SAFETY: The slot was not posted, so it is free, and we hold the lock.
        let owner = unsafe { (*slot.entry.get()).owner.take() };
        drop(state);
        chain.forget();
        drop(owner);
        Err(PostError::Failed(error))
    }

    /// Takes room for a chain: its number, its slot, and whether it is to be signalled.
    #[inline]
    fn admit(
        &self,
        state: &mut State,
        wrs: u32,
        report: bool,
    ) -> Result<(u64, &Slot, bool), PostError> {
        if state.closed {
            return Err(PostError::Closed);
        }
        if wrs == 0 || wrs > self.max_wrs {
            return Err(PostError::Failed(EINVAL));
        }
        if state.free < wrs {
            state.starved = true;
            return Err(PostError::Full);
        }
        let seq = state.tail;
        let slot = self.slot(seq).ok_or(PostError::Failed(EINVAL))?;
        let unsignalled = state.unsignalled.saturating_add(wrs);
        let signalled = report || unsignalled >= self.threshold;
        // INVARIANT: The slot is in use from here on, which is before a completion can come.
        state.tail = seq.wrapping_add(1);
        state.free -= wrs;
        state.unsignalled = if signalled { 0 } else { unsignalled };
        Ok((seq, slot, signalled))
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
        let (wrs, last) = self.release(head, seq);
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

    /// Releases the owners of chains `head` up to `seq`, but gives that of the last one: the number of their work
    /// requests; the owner, whether it wants to know, and how an earlier work request of its chain failed. By the
    /// consumer.
    fn release(&self, head: u64, seq: u64) -> (u32, Last) {
        let mut wrs = 0;
        let mut last = None;
        for at in head..=seq {
            let Some(slot) = self.slot(at) else { continue };
            // SAFETY: By the type invariants the slot is in use, and we are the consumer.
            let entry = unsafe { &mut *slot.entry.get() };
            wrs += entry.wrs;
            let owner = entry.owner.take();
            // What comes before the last one is over without a completion, so nothing is to be told of it.
            last = owner.map(|owner| (owner, entry.report, entry.error));
        }
        (wrs, last)
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
