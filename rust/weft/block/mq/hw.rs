// SPDX-License-Identifier: GPL-2.0

//! Hardware queues.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h) (`struct blk_mq_hw_ctx`)

use super::Operations;
use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// Which requests come to a hardware queue. C: `enum hctx_type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueKind {
    /// All that the other kinds do not take.
    Default,
    /// Reads.
    Read,
    /// Those that are polled for.
    Poll,
}

/// A hardware queue of a disk, for the time of a call.
///
/// # Invariants
///
/// `hctx` is an initialised hardware queue of a disk of driver `T`, which stays for `'a`.
pub struct Hw<'a, T: Operations> {
    hctx: NonNull<bindings::blk_mq_hw_ctx>,
    _data: PhantomData<&'a T::HwData>,
}

impl<'a, T: Operations> Hw<'a, T> {
    /// # Safety
    ///
    /// `hctx` must be an initialised hardware queue of a disk of driver `T`, which stays for the lifetime.
    #[inline]
    pub(super) unsafe fn from_raw(hctx: NonNull<bindings::blk_mq_hw_ctx>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            hctx,
            _data: PhantomData,
        }
    }

    /// Its number among all queues of the tag set: first those of the default kind, then those for reads that are
    /// their own, then the poll queues.
    #[inline]
    pub fn index(&self) -> u32 {
        // SAFETY: By the type invariants; the field never changes.
        unsafe { (*self.hctx.as_ptr()).queue_num }
    }

    /// What it is for. A queue that default and read requests share is of the default kind.
    #[inline]
    pub fn kind(&self) -> QueueKind {
        // SAFETY: By the type invariants; the field does not change while the queue is in use.
        match u32::from(unsafe { (*self.hctx.as_ptr()).type_ }) {
            bindings::hctx_type_HCTX_TYPE_READ => QueueKind::Read,
            bindings::hctx_type_HCTX_TYPE_POLL => QueueKind::Poll,
            _ => QueueKind::Default,
        }
    }

    /// The driver's data of the queue.
    #[inline]
    pub fn data(&self) -> &'a T::HwData {
        // SAFETY: By the type invariants the data was made by `init_hctx` and is dropped by `exit_hctx`; it is only
        // ever shared.
        unsafe { &*(*self.hctx.as_ptr()).driver_data.cast::<T::HwData>() }
    }
}
