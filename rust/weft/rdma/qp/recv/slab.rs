// SPDX-License-Identifier: GPL-2.0

//! Buffers for receives.

use super::{
    batch::Batch,
    Done, //
};
use crate::{
    bindings,
    device::Device,
    dma::{
        DmaBuf,
        FromDevice, //
    },
    qp::{
        QueuePair,
        SlabSize, //
    },
};
use core::{
    cell::UnsafeCell,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Entries of a slab at most.
const MAX_SLAB: u32 = 1 << 16;

/// What names an entry of the slab in its receive.
///
/// # Invariants
///
/// `qp` is the queue pair that the slab is of; `index` is the place in the slab.
#[repr(C)]
pub(super) struct Slot {
    pub(super) cqe: UnsafeCell<bindings::ib_cqe>,
    pub(super) qp: *const QueuePair,
    pub(super) index: u32,
}

/// Buffers for receives, all of one size.
pub(super) struct Slab {
    pub(super) memory: DmaBuf<FromDevice>,
    entry: u32,
    pub(super) slots: KVVec<Slot>,
}

impl Slab {
    pub(super) fn new(device: &Arc<Device>, size: SlabSize, done: Done) -> Result<Self> {
        if size.entry == 0 || size.count == 0 || size.count > MAX_SLAB {
            return Err(EINVAL);
        }
        let bytes = size.entry.checked_mul(size.count).ok_or(EINVAL)?;
        let memory = DmaBuf::new(device, usize::try_from(bytes)?)?;
        let mut slots = KVVec::with_capacity(usize::try_from(size.count)?, GFP_KERNEL)?;
        for index in 0..size.count {
            let slot = Slot {
                cqe: UnsafeCell::new(bindings::ib_cqe { done: Some(done) }),
                qp: ptr::null(),
                index,
            };
            slots.push(slot, GFP_KERNEL)?;
        }
        Ok(Self {
            memory,
            entry: size.entry,
            slots,
        })
    }

    /// Bytes of an entry.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        // CAST: To a wider type.
        self.entry as usize
    }

    /// Where an entry begins.
    #[inline]
    pub(super) fn offset(&self, index: u32) -> usize {
        // CAST: To a wider type. The size of all of them was checked.
        (index as usize).wrapping_mul(self.bytes())
    }

    /// Adds an entry to a batch.
    #[inline]
    pub(super) fn add(&self, index: u32, qp: &QueuePair, batch: &mut Batch) {
        // CAST: To a wider type.
        let Some(slot) = self.slots.get(index as usize) else {
            return;
        };
        let sge = bindings::ib_sge {
            addr: self.memory.addr(self.offset(index)),
            length: self.entry,
            lkey: qp.pd().local_dma_lkey(),
        };
        batch.add(slot.cqe.get(), sge);
    }
}
