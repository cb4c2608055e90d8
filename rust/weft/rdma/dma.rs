// SPDX-License-Identifier: GPL-2.0

//! DMA of an RDMA device: directions, small buffers, and pieces of memory that work requests name.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h) (`ib_dma_*`)
//!
//! Software devices (`rxe`, `siw`) have no DMA and use virtual addresses, so all mapping goes through `ib_dma_*`.
//!
//! Whatever is mapped holds a use of its device ([`device`](crate::device)) and is unmapped when it is dropped, in any
//! context. That hardware does not use it any more by then is what [`qp`](crate::qp) sees to: a chain of work
//! requests keeps its owner, and with it all memory that it names, until it is over.

use crate::{
    bindings,
    device::{
        Device,
        Use, //
    },
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::code::EBUSY,
    ffi,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    },
};

/// Which way data goes; `enum dma_data_direction`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DataDirection {
    /// Hardware reads the memory.
    ToDevice,
    /// Hardware writes the memory.
    FromDevice,
    /// Both.
    Bidirectional,
}

impl DataDirection {
    #[inline]
    pub(crate) fn as_raw(self) -> bindings::dma_data_direction {
        match self {
            Self::ToDevice => bindings::dma_data_direction::DMA_TO_DEVICE,
            Self::FromDevice => bindings::dma_data_direction::DMA_FROM_DEVICE,
            Self::Bidirectional => bindings::dma_data_direction::DMA_BIDIRECTIONAL,
        }
    }
}

/// A [`DataDirection`] as a type.
pub trait Direction: Send + Sync + 'static {
    /// The direction.
    const DIRECTION: DataDirection;
}

/// Hardware reads the memory.
pub enum ToDevice {}
/// Hardware writes the memory.
pub enum FromDevice {}

impl Direction for ToDevice {
    const DIRECTION: DataDirection = DataDirection::ToDevice;
}

impl Direction for FromDevice {
    const DIRECTION: DataDirection = DataDirection::FromDevice;
}

/// The protection key of a piece of local memory.
#[derive(Clone, Copy)]
pub(crate) enum Lkey {
    /// The `local_dma_lkey` of the queue's protection domain.
    Dma,
    /// That of a memory region of the protection domain at this address.
    Region(u32, *const bindings::ib_pd),
}

/// A piece of mapped memory that a work request reads: a scatter-gather entry.
///
/// # Invariants
///
/// `addr` and `len` are inside a mapping of `device` that stays mapped, with its memory, at least for `'o`; through
/// the key that `lkey` says.
#[derive(Clone, Copy)]
pub struct Sge<'o> {
    pub(crate) addr: u64,
    pub(crate) len: u32,
    pub(crate) lkey: Lkey,
    pub(crate) device: *const Device,
    pub(crate) _mapping: PhantomData<&'o ()>,
}

impl Sge<'_> {
    /// Its length in bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Whether `len` bytes from `offset` on are inside of `size`.
#[inline]
pub(crate) fn inside(offset: usize, len: usize, size: usize) -> Result {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => Err(EINVAL),
    }
}

/// A small buffer that is mapped as long as it is there.
///
/// One with [`ToDevice`] is for headers and messages: [`Self::write`] copies into it, [`Self::sge`] lets a work
/// request read it. A write while hardware reads garbles the message and nothing else.
///
/// # Invariants
///
/// `addr` maps `memory`, all of it, for `device`. Nobody makes a reference to the bytes. Those of a [`ToDevice`] buffer
/// are accessed by whoever turned `busy` to true.
pub struct DmaBuf<D: Direction = ToDevice> {
    memory: *mut u8,
    len: usize,
    addr: u64,
    busy: Atomic<bool>,
    device: Use,
    _direction: PhantomData<D>,
}

// SAFETY: The memory belongs to the buffer and has no thread; the other fields are `Send`.
unsafe impl<D: Direction> Send for DmaBuf<D> {}
// SAFETY: By the type invariants writers exclude each other.
unsafe impl<D: Direction> Sync for DmaBuf<D> {}

impl<D: Direction> DmaBuf<D> {
    /// Allocates and maps `len` bytes (at least 1), all zero. May sleep.
    ///
    /// `EINVAL` for 0 bytes, `ENOMEM`, `ENODEV` once the device is gone, `EIO` if it cannot be mapped.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self> {
        if len == 0 || u32::try_from(len).is_err() {
            return Err(EINVAL);
        }
        let device = device.enter()?;
        // SAFETY: Allocates, or gives null.
        let memory = unsafe { bindings::weft_helper_rdma_kzalloc(len) }.cast::<u8>();
        if memory.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: The device is there as it is in use; the memory was just allocated with this length.
        let addr = unsafe {
            bindings::weft_helper_ib_dma_map_single(
                device.as_raw(),
                memory.cast(),
                len,
                D::DIRECTION.as_raw(),
            )
        };
        // SAFETY: The device is there.
        if unsafe { bindings::weft_helper_ib_dma_mapping_error(device.as_raw(), addr) } != 0 {
            // SAFETY: Allocated above, and not mapped.
            unsafe { bindings::kfree(memory.cast()) };
            return Err(EIO);
        }
        // INVARIANT: Just mapped, and nobody knows the memory.
        Ok(Self {
            memory,
            len,
            addr,
            busy: Atomic::new(false),
            device,
            _direction: PhantomData,
        })
    }

    /// Its size in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // Never empty.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where hardware sees byte `offset`.
    #[inline]
    pub(crate) fn addr(&self, offset: usize) -> u64 {
        // CAST: 64 bits.
        self.addr.wrapping_add(offset as u64)
    }
}

impl DmaBuf<ToDevice> {
    /// Copies `bytes` to `offset`, for hardware to see. Any context.
    ///
    /// `EINVAL` if they do not fit, `EBUSY` if somebody else is writing.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result {
        inside(offset, bytes.len(), self.len)?;
        // ORDERING: `Acquire` and the `Release` below order one writer after the other.
        if self.busy.xchg(true, Acquire) {
            return Err(EBUSY);
        }
        // SAFETY: The range is inside the memory, which by the type invariants only we access, and has no references.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.add(offset), bytes.len());
        }
        // SAFETY: The range is inside the mapping.
        unsafe {
            bindings::weft_helper_ib_dma_sync_single_for_device(
                self.device.as_raw(),
                self.addr(offset),
                bytes.len(),
                ToDevice::DIRECTION.as_raw(),
            )
        };
        // ORDERING: See above.
        self.busy.store(false, Release);
        Ok(())
    }

    /// The piece from `offset` on with `len` bytes, for a work request to read. `EINVAL` if it is not inside.
    #[inline]
    pub fn sge(&self, offset: usize, len: usize) -> Result<Sge<'_>> {
        inside(offset, len, self.len)?;
        // INVARIANT: Inside the mapping, which lasts as long as the borrow.
        Ok(Sge {
            addr: self.addr(offset),
            len: u32::try_from(len)?,
            lkey: Lkey::Dma,
            device: Arc::as_ptr(self.device.device()),
            _mapping: PhantomData,
        })
    }
}

impl DmaBuf<FromDevice> {
    /// Makes what hardware wrote at `offset` visible, and gives its address.
    ///
    /// `None` if the range is not inside. Any context.
    #[inline]
    pub(crate) fn received(&self, offset: usize, len: usize) -> Option<*const u8> {
        inside(offset, len, self.len).ok()?;
        // SAFETY: The range is inside the mapping.
        unsafe {
            bindings::weft_helper_ib_dma_sync_single_for_cpu(
                self.device.as_raw(),
                self.addr(offset),
                len,
                FromDevice::DIRECTION.as_raw(),
            )
        };
        // SAFETY: The offset is inside the allocation.
        Some(unsafe { self.memory.add(offset) })
    }

    /// Gives a range back to hardware. Any context.
    #[inline]
    pub(crate) fn give(&self, offset: usize, len: usize) {
        if inside(offset, len, self.len).is_err() {
            return;
        }
        // SAFETY: The range is inside the mapping.
        unsafe {
            bindings::weft_helper_ib_dma_sync_single_for_device(
                self.device.as_raw(),
                self.addr(offset),
                len,
                FromDevice::DIRECTION.as_raw(),
            )
        };
    }
}

impl<D: Direction> Drop for DmaBuf<D> {
    fn drop(&mut self) {
        // SAFETY: Mapped in `new` with the same arguments.
        unsafe {
            bindings::weft_helper_ib_dma_unmap_single(
                self.device.as_raw(),
                self.addr,
                self.len,
                D::DIRECTION.as_raw(),
            )
        };
        // SAFETY: Allocated in `new`; hardware does not use it, as whoever lends it keeps it borrowed or alive.
        unsafe { bindings::kfree(self.memory.cast::<ffi::c_void>()) };
    }
}
