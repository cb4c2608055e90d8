// SPDX-License-Identifier: GPL-2.0

//! Protection domains.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

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
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc, //
    },
};

/// A protection domain: queue pairs reach exactly the memory regions of their own.
///
/// A peer can use any remote key of the domain over any queue pair of it. Whoever trusts peers no more than they
/// deserve gives each its own.
///
/// The last reference must be dropped where sleeping is allowed.
///
/// # Invariants
///
/// `raw` is a protection domain that belongs to this object.
pub struct Pd {
    raw: NonNull<bindings::ib_pd>,
    /// How often one of its memory regions began with its keys anew; see `mr::keys`.
    anew: Atomic<u64>,
    device: Use,
}

// SAFETY: An `ib_pd` may be used from any thread.
unsafe impl Send for Pd {}
// SAFETY: As above, and at the same time.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates one. May sleep. `ENODEV` once the device is gone.
    pub fn new(device: &Arc<Device>) -> Result<Arc<Self>> {
        let device = device.enter()?;
        // SAFETY: The device is there as it is in use.
        let raw = from_err_ptr(unsafe {
            bindings::__ib_alloc_pd(device.as_raw(), 0, c"weft_rdma".as_char_ptr())
        })?;
        // INVARIANT: Just allocated.
        let this = Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            anew: Atomic::new(0),
            device,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        self.device.device()
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_pd {
        self.raw.as_ptr()
    }

    /// The key by which its queues read and write any mapped memory of this host.
    #[inline]
    pub(crate) fn local_dma_lkey(&self) -> u32 {
        // SAFETY: The domain is there; the key does not change.
        unsafe { (*self.raw.as_ptr()).local_dma_lkey }
    }
}

impl Pd {
    /// How often one of its memory regions has begun with its keys anew.
    #[inline]
    pub(crate) fn anew(&self) -> u64 {
        // ORDERING: `Acquire` pairs with `begin_anew`.
        self.anew.load(Acquire)
    }

    /// One more does; the count after that.
    #[cold]
    pub(crate) fn begin_anew(&self) -> u64 {
        // ORDERING: `Full`: a proof that is made before this has a lower count.
        self.anew.fetch_add(1, Full).wrapping_add(1)
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: By the type invariants it is ours; what was made from it holds a reference of this object.
        unsafe { bindings::ib_dealloc_pd_user(self.raw.as_ptr(), core::ptr::null_mut()) };
    }
}
