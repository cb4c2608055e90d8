// SPDX-License-Identifier: GPL-2.0

//! Room for one chain, and the completions of its work requests.

use crate::{
    bindings,
    qp::{
        Owner,
        QueuePair,
        WcStatus, //
    },
};
use core::{
    cell::UnsafeCell,
    ptr, //
};
use kernel::{
    container_of,
    sync::Arc, //
};

/// What names a slot in its work requests: the addresses of its completion entries.
pub(in crate::qp) struct SlotKeys {
    pub(in crate::qp) last: u64,
    pub(in crate::qp) others: u64,
}

/// A chain that is not over.
pub(super) struct Entry {
    pub(super) owner: Option<Arc<dyn Owner>>,
    /// Its number.
    pub(super) seq: u64,
    /// Its work requests.
    pub(super) wrs: u32,
    /// Whether the owner is told if it is done without an error.
    pub(super) report: bool,
    /// How a work request before the last one failed.
    pub(super) error: Option<WcStatus>,
}

impl Entry {
    /// A chain that is about to be posted.
    #[inline]
    pub(super) fn new(owner: Arc<dyn Owner>, seq: u64, wrs: u32, report: bool) -> Self {
        Self {
            owner: Some(owner),
            seq,
            wrs,
            report,
            error: None,
        }
    }
}

/// Room for one chain.
///
/// # Invariants
///
/// `qp` is the queue pair that the slot is of. `entry` is accessed by whoever holds the lock of the ring while the slot
/// is free, and by the ring's consumer while it is not.
#[repr(C)]
pub(super) struct Slot {
    last: UnsafeCell<bindings::ib_cqe>,
    others: UnsafeCell<bindings::ib_cqe>,
    qp: *const QueuePair,
    pub(super) entry: UnsafeCell<Entry>,
}

impl Slot {
    pub(super) fn new() -> Self {
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

    /// Tells the slot whose it is.
    ///
    /// # Safety
    ///
    /// Nothing may have been posted with it yet, and `qp` must be the queue pair that its ring is in.
    pub(super) unsafe fn attach(&self, qp: *const QueuePair) {
        // SAFETY: Nobody reads the field before something was posted.
        unsafe { (&raw const self.qp).cast_mut().write(qp) };
    }

    #[inline]
    pub(super) fn keys(&self) -> SlotKeys {
        // CAST: Addresses, in the 64 bits that C has for them.
        SlotKeys {
            last: self.last.get().addr() as u64,
            others: self.others.get().addr() as u64,
        }
    }
}

/// The completion entry that a completion names.
#[inline]
pub(in crate::qp) fn cqe_of(wc: &bindings::ib_wc) -> *mut UnsafeCell<bindings::ib_cqe> {
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
