// SPDX-License-Identifier: GPL-2.0

//! Blocks of pages that a peer may write while they are used here.
//!
//! C headers: [`include/linux/gfp.h`](srctree/include/linux/gfp.h),
//! [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! [`Pages`] is memory: one physically contiguous block, zeroed. [`MappedPages`] is its mapping for one device; a block
//! may be mapped for several at once. [`MappedList`] is several blocks for one memory region.
//!
//! While a memory region gives a peer access, the peer writes whenever it likes. So there is never a reference to
//! the bytes: they are copied, in C, to and from private memory, and what was copied may be torn.

use crate::{
    bindings,
    device::{
        Device,
        Use, //
    },
    dma::{
        inside,
        DataDirection,
        Lkey,
        Sge, //
    },
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::block::bio::{
    BioPages,
    Run, //
};

/// The largest order of [`Pages`]: 4 MiB with 4 KiB pages.
pub const MAX_ORDER: u32 = 10;

/// A physically contiguous block of pages.
///
/// # Invariants
///
/// `page` is the first of `1 << order` pages that belong to this object; `memory` is where they are mapped, for `len`
/// bytes. Nobody makes a reference to the bytes.
pub struct Pages {
    page: NonNull<bindings::page>,
    memory: NonNull<u8>,
    order: u32,
    len: usize,
}

// SAFETY: The pages belong to the object and to no thread.
unsafe impl Send for Pages {}
// SAFETY: The bytes are only accessed by copies in C, which may run at the same time as others and as hardware.
unsafe impl Sync for Pages {}

impl Pages {
    /// Allocates the smallest block with at least `len` bytes, all zero. May sleep.
    ///
    /// `EINVAL` for no bytes or too many, `ENOMEM` if there is no such block.
    pub fn new(len: usize) -> Result<Arc<Self>> {
        let order = len
            .div_ceil(kernel::page::PAGE_SIZE)
            .checked_next_power_of_two()
            .ok_or(EINVAL)?
            .trailing_zeros();
        if len == 0 || order > MAX_ORDER {
            return Err(EINVAL);
        }
        // SAFETY: Allocates, or gives null.
        let page = NonNull::new(unsafe { bindings::weft_helper_rdma_alloc_zeroed_pages(order) });
        let page = page.ok_or(ENOMEM)?;
        // SAFETY: Pages of the kernel have an address.
        let memory = unsafe { bindings::weft_helper_rdma_page_address(page.as_ptr()) };
        let memory = NonNull::new(memory.cast()).ok_or(ENOMEM)?;
        // INVARIANT: Just allocated.
        let this = Self {
            page,
            memory,
            order,
            len: kernel::page::PAGE_SIZE << order,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Its size in bytes: at least what was asked for.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // Never empty.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies from `offset` on to `out`. `EINVAL` if that is not inside. Any context.
    #[inline]
    pub fn copy_out(&self, offset: usize, out: &mut [u8]) -> Result {
        inside(offset, out.len(), self.len)?;
        // SAFETY: The range is inside the block, and `out` is not part of it, as there are no references to that.
        unsafe {
            bindings::weft_helper_rdma_memcpy(
                out.as_mut_ptr().cast(),
                self.memory.as_ptr().add(offset).cast(),
                out.len(),
            )
        };
        Ok(())
    }

    /// Copies `bytes` to `offset`. `EINVAL` if that is not inside. Any context.
    #[inline]
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result {
        inside(offset, bytes.len(), self.len)?;
        // SAFETY: As in `copy_out`.
        unsafe {
            bindings::weft_helper_rdma_memcpy(
                self.memory.as_ptr().add(offset).cast(),
                bytes.as_ptr().cast(),
                bytes.len(),
            )
        };
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the pages are ours. Mappings and bios hold a reference of this object.
        unsafe { bindings::__free_pages(self.page.as_ptr(), self.order) }
    }
}

// SAFETY: There is one run, all of the block, which stays allocated as long as the object, without references to it.
unsafe impl BioPages for Pages {
    fn run(&self, index: usize) -> Option<Run> {
        (index == 0).then_some(Run {
            page: self.page,
            offset: 0,
            len: self.len,
        })
    }
}

/// Mapped memory that a memory region can give access to.
///
/// # Safety
///
/// `table` must give the first of that many entries of a scatterlist whose DMA addresses are mapped for `device`; the
/// same memory each time. As long as the value is not dropped they stay mapped, the memory stays there, and nobody
/// makes a reference to its bytes. The entries are valid as long as the value is also not moved.
pub unsafe trait Mapped: Send + 'static {
    /// The device that it is mapped for.
    fn device(&self) -> &Arc<Device>;

    /// The scatterlist, after mapping: its first entry and the number of those with a DMA address.
    fn table(&self) -> (*mut bindings::scatterlist, u32);

    /// Whether hardware may write the memory.
    fn writable(&self) -> bool;
}

/// A block of pages, mapped for one device in both directions.
///
/// # Invariants
///
/// `addr` maps the whole block for `device`; `entry` is a scatterlist of one entry that says so, and does not change.
pub struct MappedPages {
    pages: Arc<Pages>,
    addr: u64,
    entry: UnsafeCell<bindings::scatterlist>,
    device: Use,
}

// SAFETY: The mapping belongs to no thread.
unsafe impl Send for MappedPages {}
// SAFETY: By the type invariants the scatterlist does not change.
unsafe impl Sync for MappedPages {}

impl MappedPages {
    /// Maps `pages` for `device`. Any context. `ENODEV` once the device is gone, `EIO` if it cannot be mapped.
    pub fn new(device: &Arc<Device>, pages: Arc<Pages>) -> Result<Self> {
        let device = device.enter()?;
        // SAFETY: The device is there as it is in use; the pages are there, and stay as long as the mapping.
        let addr = unsafe {
            bindings::weft_helper_ib_dma_map_page(
                device.as_raw(),
                pages.page.as_ptr(),
                pages.len,
                DataDirection::Bidirectional.as_raw(),
            )
        };
        // SAFETY: The device is there.
        if unsafe { bindings::weft_helper_ib_dma_mapping_error(device.as_raw(), addr) } != 0 {
            return Err(EIO);
        }
        let entry = UnsafeCell::new(bindings::scatterlist::default());
        let len = u32::try_from(pages.len)?;
        // SAFETY: The entry is valid for writes.
        unsafe {
            bindings::weft_helper_rdma_sg_set_mapped(entry.get(), pages.page.as_ptr(), len, addr)
        };
        // INVARIANT: Just mapped and described.
        Ok(Self {
            pages,
            addr,
            entry,
            device,
        })
    }

    /// The memory.
    #[inline]
    pub fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// The piece from `offset` on with `len` bytes, for a work request to read. `EINVAL` if it is not inside.
    #[inline]
    pub fn sge(&self, offset: usize, len: usize) -> Result<Sge<'_>> {
        inside(offset, len, self.pages.len)?;
        // INVARIANT: Inside the mapping, which lasts as long as the borrow.
        Ok(Sge {
            // CAST: 64 bits.
            addr: self.addr.wrapping_add(offset as u64),
            len: u32::try_from(len)?,
            lkey: Lkey::Dma,
            device: Arc::as_ptr(self.device.device()),
            _mapping: PhantomData,
        })
    }

    /// Makes what hardware wrote visible to the processor. `EINVAL` if the range is not inside. Any context.
    #[inline]
    pub fn sync_for_cpu(&self, offset: usize, len: usize) -> Result {
        inside(offset, len, self.pages.len)?;
        // SAFETY: The range is inside the mapping.
        unsafe {
            bindings::weft_helper_ib_dma_sync_single_for_cpu(
                self.device.as_raw(),
                // CAST: 64 bits.
                self.addr.wrapping_add(offset as u64),
                len,
                DataDirection::Bidirectional.as_raw(),
            )
        };
        Ok(())
    }

    /// Makes what the processor wrote visible to hardware. `EINVAL` if the range is not inside. Any context.
    #[inline]
    pub fn sync_for_device(&self, offset: usize, len: usize) -> Result {
        inside(offset, len, self.pages.len)?;
        // SAFETY: The range is inside the mapping.
        unsafe {
            bindings::weft_helper_ib_dma_sync_single_for_device(
                self.device.as_raw(),
                // CAST: 64 bits.
                self.addr.wrapping_add(offset as u64),
                len,
                DataDirection::Bidirectional.as_raw(),
            )
        };
        Ok(())
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        // SAFETY: Mapped in `new` with the same arguments.
        unsafe {
            bindings::weft_helper_ib_dma_unmap_page(
                self.device.as_raw(),
                self.addr,
                self.pages.len,
                DataDirection::Bidirectional.as_raw(),
            )
        };
    }
}

// SAFETY: By the type invariants the entry describes the mapping, which lasts as long as the value; `Pages` has no
// references to its bytes. An `Arc` does not move what it points to.
unsafe impl Mapped for Arc<MappedPages> {
    fn device(&self) -> &Arc<Device> {
        self.device.device()
    }

    #[inline]
    fn table(&self) -> (*mut bindings::scatterlist, u32) {
        (self.entry.get(), 1)
    }

    fn writable(&self) -> bool {
        true
    }
}

/// Several mapped blocks, one after the other, for one memory region.
///
/// # Invariants
///
/// `table` is a scatterlist with one entry for each of `blocks`, in their order. All are mapped for the same device,
/// and there is at least one.
pub struct MappedList {
    blocks: KVec<Arc<MappedPages>>,
    first: Arc<MappedPages>,
    table: UnsafeCell<KVec<bindings::scatterlist>>,
}

// SAFETY: The blocks are `Send + Sync`, and the table belongs to no thread.
unsafe impl Send for MappedList {}

impl MappedList {
    /// Puts `blocks` together. May sleep. `EINVAL` if there are none, or for different devices.
    pub fn new(blocks: KVec<Arc<MappedPages>>) -> Result<Self> {
        let first = blocks.first().ok_or(EINVAL)?.clone();
        let device = first.device.device();
        if blocks
            .iter()
            .any(|at| !Arc::ptr_eq(at.device.device(), device))
        {
            return Err(EINVAL);
        }
        let mut table = KVec::with_capacity(blocks.len(), GFP_KERNEL)?;
        for _ in 0..blocks.len() {
            table.push(bindings::scatterlist::default(), GFP_KERNEL)?;
        }
        let count = u32::try_from(table.len())?;
        // SAFETY: The table has that many entries.
        unsafe { bindings::sg_init_table(table.as_mut_ptr(), count) };
        for (entry, block) in table.iter_mut().zip(&blocks) {
            let len = u32::try_from(block.pages.len)?;
            // SAFETY: The entry is valid for writes.
            unsafe {
                bindings::weft_helper_rdma_sg_fill_mapped(
                    entry,
                    block.pages.page.as_ptr(),
                    len,
                    block.addr,
                )
            };
        }
        // INVARIANT: As just made.
        Ok(Self {
            blocks,
            first,
            table: UnsafeCell::new(table),
        })
    }

    /// The blocks.
    pub fn blocks(&self) -> &[Arc<MappedPages>] {
        &self.blocks
    }
}

// SAFETY: By the type invariants the table describes the blocks, whose mappings last as long as they are held.
unsafe impl Mapped for MappedList {
    fn device(&self) -> &Arc<Device> {
        self.first.device.device()
    }

    fn table(&self) -> (*mut bindings::scatterlist, u32) {
        // SAFETY: The vector itself is not changed after `new`.
        let first = unsafe { (*self.table.get()).as_mut_ptr() };
        // CAST: Counted in `new`.
        (first, self.blocks.len() as u32)
    }

    fn writable(&self) -> bool {
        true
    }
}
