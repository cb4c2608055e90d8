// SPDX-License-Identifier: GPL-2.0

//! Scattered memory, such as the data of a block request, mapped for a device.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h) (`ib_dma_map_sg`)

use crate::{
    bindings,
    device::{
        Device,
        Use, //
    },
    dma::DataDirection,
    pages::Mapped,
};
use core::mem::ManuallyDrop;
use kernel::{
    ffi,
    prelude::*,
    sync::Arc, //
};
use weft::block::sg::{
    Sg,
    SgSource, //
};

/// An owner of scattered memory, and the mapping of that memory.
///
/// # Invariants
///
/// `sg` is the list of `source`, mapped for `device` in `direction`, in `mapped` segments. `source` is not used until
/// the list is unmapped.
pub struct SgMapped<S: SgSource> {
    source: ManuallyDrop<S>,
    sg: Sg,
    mapped: u32,
    direction: DataDirection,
    device: Use,
}

// SAFETY: The list belongs to `source`, which is `Send`, and to no thread.
unsafe impl<S: SgSource> Send for SgMapped<S> {}

impl<S: SgSource> SgMapped<S> {
    /// Maps the memory of `source`. Any context.
    ///
    /// Gives `source` back with `ENODATA` if it has no memory, `ENODEV` once the device is gone, `EIO` if the memory
    /// cannot be mapped (now).
    #[inline]
    pub fn new(
        device: &Arc<Device>,
        source: S,
        direction: DataDirection,
    ) -> Result<Self, (Error, S)> {
        let Some(sg) = source.sg() else {
            return Err((ENODATA, source));
        };
        let device = match device.enter() {
            Ok(device) => device,
            Err(error) => return Err((error, source)),
        };
        let Ok(nents) = ffi::c_int::try_from(sg.nents) else {
            return Err((EINVAL, source));
        };
        // SAFETY: The device is there as it is in use. The list is valid, as `SgSource` promises, and ours to write.
        let mapped = unsafe {
            bindings::weft_helper_ib_dma_map_sg(
                device.as_raw(),
                sg.list.as_ptr(),
                nents,
                direction.as_raw(),
            )
        };
        match u32::try_from(mapped) {
            // INVARIANT: Just mapped.
            Ok(mapped) if mapped > 0 => Ok(Self {
                source: ManuallyDrop::new(source),
                sg,
                mapped,
                direction,
                device,
            }),
            _ => Err((EIO, source)),
        }
    }

    /// How many segments the mapping has.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.mapped
    }

    /// Unmaps the memory and gives its owner back. Any context.
    #[inline]
    pub fn into_inner(self) -> S {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: Once: `this` is not dropped.
        unsafe { this.unmap() };
        // SAFETY: As above; neither is used again.
        unsafe {
            core::ptr::drop_in_place(&mut this.device);
            ManuallyDrop::take(&mut this.source)
        }
    }

    /// # Safety
    ///
    /// To be called once, when hardware does not use the memory any more.
    #[inline]
    unsafe fn unmap(&mut self) {
        // CAST: It was checked in `new`.
        let nents = self.sg.nents as ffi::c_int;
        // SAFETY: By the type invariants it is mapped so.
        unsafe {
            bindings::weft_helper_ib_dma_unmap_sg(
                self.device.as_raw(),
                self.sg.list.as_ptr(),
                nents,
                self.direction.as_raw(),
            )
        };
    }
}

impl<S: SgSource> Drop for SgMapped<S> {
    fn drop(&mut self) {
        // SAFETY: Whoever lends the memory to hardware keeps this object until that is over.
        unsafe { self.unmap() };
        // SAFETY: Not used again.
        unsafe { ManuallyDrop::drop(&mut self.source) };
    }
}

// SAFETY: By the type invariants the list is mapped until the value is dropped, and `SgSource` promises the rest.
unsafe impl<S: SgSource + 'static> Mapped for SgMapped<S> {
    #[inline]
    fn device(&self) -> &Arc<Device> {
        self.device.device()
    }

    #[inline]
    fn table(&self) -> (*mut bindings::scatterlist, u32) {
        (self.sg.list.as_ptr(), self.mapped)
    }

    #[inline]
    fn writable(&self) -> bool {
        self.direction != DataDirection::ToDevice
    }
}
