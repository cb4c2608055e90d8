// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! Where the completions of a queue pair are handled is a property of its completion queues ([`Context`]). The core
//! handles one queue in one place at a time, so the handlers of queue pairs that share one take turns.
//!
//! A queue pair takes the room for all its work requests in advance, so that a completion queue never overflows.

use crate::{
    bindings,
    device::{
        Device,
        Use, //
    },
};
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    ffi,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};

/// Where completions are handled; `enum ib_poll_context`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// In softirq. Handlers must not sleep.
    Softirq,
    /// In a work item of the RDMA core. Handlers may sleep, but hold up the other users of the queue if it is shared.
    Workqueue,
    /// By whoever calls [`Cq::process`], in its context. Never shared with others through the pool.
    Direct,
}

impl Context {
    fn as_raw(self) -> bindings::ib_poll_context {
        match self {
            Self::Softirq => bindings::ib_poll_context_IB_POLL_SOFTIRQ,
            Self::Workqueue => bindings::ib_poll_context_IB_POLL_WORKQUEUE,
            Self::Direct => bindings::ib_poll_context_IB_POLL_DIRECT,
        }
    }
}

/// A completion queue, or a share of one.
///
/// The last reference must be dropped where sleeping is allowed.
///
/// # Invariants
///
/// `raw` is a completion queue of `device` with room for `entries` completions that belongs to this object, or whose
/// pool has lent that room to it (`pooled`). Those that use it have taken `taken` of them. `busy` is true while
/// somebody handles the completions of a [`Context::Direct`] queue.
pub struct Cq {
    raw: NonNull<bindings::ib_cq>,
    context: Context,
    pooled: bool,
    entries: u32,
    taken: Atomic<u32>,
    busy: Atomic<bool>,
    device: Use,
}

// SAFETY: An `ib_cq` may be used from any thread.
unsafe impl Send for Cq {}
// SAFETY: As above; where one at a time is demanded, `busy` sees to it.
unsafe impl Sync for Cq {}

impl Cq {
    /// Room for `entries` completions in a queue that others may use, too. May sleep.
    ///
    /// `vector` is the completion vector, modulo those there are; `None` leaves it to the core. `EINVAL` for
    /// [`Context::Direct`], no entries, or more than the device has; `ENODEV` once the device is gone.
    pub fn pooled(
        device: &Arc<Device>,
        context: Context,
        entries: u32,
        vector: Option<u32>,
    ) -> Result<Arc<Self>> {
        if context == Context::Direct {
            return Err(EINVAL);
        }
        let device = device.enter()?;
        // The pool would look for ever for a queue that the device cannot make.
        checked_entries(&device, entries)?;
        let vector = vector.map_or(-1, |vector| checked_vector(&device, vector));
        // SAFETY: The device is there as it is in use; it can make a queue with that many entries.
        let raw = from_err_ptr(unsafe {
            bindings::ib_cq_pool_get(device.as_raw(), entries, vector, context.as_raw())
        })?;
        Self::wrap(raw, context, true, entries, device)
    }

    /// A queue of its own. May sleep. Errors as for [`Self::pooled`].
    pub fn private(
        device: &Arc<Device>,
        context: Context,
        entries: u32,
        vector: u32,
    ) -> Result<Arc<Self>> {
        let device = device.enter()?;
        let count = checked_entries(&device, entries)?;
        let vector = checked_vector(&device, vector);
        // SAFETY: The device is there as it is in use.
        let raw = from_err_ptr(unsafe {
            bindings::__ib_alloc_cq(
                device.as_raw(),
                core::ptr::null_mut(),
                count,
                vector,
                context.as_raw(),
                c"weft_rdma".as_char_ptr(),
            )
        })?;
        Self::wrap(raw, context, false, entries, device)
    }

    fn wrap(
        raw: *mut bindings::ib_cq,
        context: Context,
        pooled: bool,
        entries: u32,
        device: Use,
    ) -> Result<Arc<Self>> {
        // INVARIANT: As just made by the caller. If there is no memory for the object, its drop gives it back.
        let this = Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            context,
            pooled,
            entries,
            taken: Atomic::new(0),
            busy: Atomic::new(false),
            device,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        self.device.device()
    }

    /// Where completions are handled.
    #[inline]
    pub fn context(&self) -> Context {
        self.context
    }

    /// Handles up to `budget` completions, here, and returns how many there were.
    ///
    /// 0 if somebody else is at it, and if the queue is not [`Context::Direct`]. The handlers run in the context of
    /// the caller.
    pub fn process(&self, budget: u16) -> usize {
        if self.context != Context::Direct || !self.enter() {
            return 0;
        }
        // SAFETY: The queue is there and, by `busy`, nobody else handles it. The budget is at least 1.
        let count = unsafe {
            bindings::ib_process_cq_direct(self.raw.as_ptr(), ffi::c_int::from(budget.max(1)))
        };
        self.leave();
        usize::try_from(count).unwrap_or(0)
    }

    /// Makes the caller the one who handles a [`Context::Direct`] queue, unless somebody else is.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        // ORDERING: `Acquire` pairs with `leave`.
        !self.busy.xchg(true, Acquire)
    }

    /// After [`Self::enter`].
    #[inline]
    pub(crate) fn leave(&self) {
        // ORDERING: Pairs with `enter`.
        self.busy.store(false, Release);
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_cq {
        self.raw.as_ptr()
    }

    /// Takes room for `count` completions. `ENOSPC` if there is not that much left.
    pub(crate) fn reserve(self: &Arc<Self>, count: u32) -> Result<Room> {
        let mut taken = self.taken.load(Relaxed);
        loop {
            let now = taken.checked_add(count).filter(|now| *now <= self.entries);
            let now = now.ok_or(ENOSPC)?;
            // ORDERING: Only the sum counts.
            match self.taken.cmpxchg(taken, now, Relaxed) {
                Ok(_) => {
                    // INVARIANT: Just taken.
                    return Ok(Room {
                        cq: self.clone(),
                        count,
                    });
                }
                Err(seen) => taken = seen,
            }
        }
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: By the type invariants it is ours, or that much room of it. Queue pairs hold references of this
        // object, so none is left that uses it.
        unsafe {
            if self.pooled {
                bindings::ib_cq_pool_put(self.raw.as_ptr(), self.entries);
            } else {
                bindings::ib_free_cq(self.raw.as_ptr());
            }
        }
    }
}

/// Room in a completion queue, which it keeps.
///
/// # Invariants
///
/// `count` entries of `cq` are taken for it.
pub(crate) struct Room {
    cq: Arc<Cq>,
    count: u32,
}

impl Room {
    #[inline]
    pub(crate) fn cq(&self) -> &Arc<Cq> {
        &self.cq
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // ORDERING: Only the sum counts.
        self.cq.taken.fetch_sub(self.count, Relaxed);
    }
}

/// The number of entries for C. `EINVAL` if the device cannot have so many, or there are none.
fn checked_entries(device: &Use, entries: u32) -> Result<ffi::c_int> {
    if entries == 0 || entries > device.device().limits().max_cqe {
        return Err(EINVAL);
    }
    Ok(ffi::c_int::try_from(entries)?)
}

/// The completion vector for C.
fn checked_vector(device: &Use, vector: u32) -> ffi::c_int {
    let vector = vector
        .checked_rem(device.device().limits().comp_vectors)
        .unwrap_or(0);
    ffi::c_int::try_from(vector).unwrap_or(0)
}
