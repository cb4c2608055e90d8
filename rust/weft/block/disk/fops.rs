// SPDX-License-Identifier: GPL-2.0

//! The `struct block_device_operations` of a driver.

use super::private::{
    self,
    Base, //
};
use crate::{
    bindings,
    block::mq::{
        Open,
        Operations, //
    },
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi,
    module::this_module,
    prelude::*, //
};

struct Fops<T: Operations>(PhantomData<T>);

/// The table of driver `T`.
pub(super) const fn table<T: Operations>() -> &'static bindings::block_device_operations {
    &Fops::<T>::TABLE
}

/// The private data of a disk of this library.
///
/// # Safety
///
/// `disk` must be one, and alive.
#[inline]
pub(super) unsafe fn base(disk: *mut bindings::gendisk) -> NonNull<Base> {
    // SAFETY: By the safety requirements; set before the disk was added.
    unsafe { NonNull::new_unchecked((*disk).private_data.cast()) }
}

/// Called when the last reference of a disk is gone, in process context.
///
/// # Safety
///
/// To be called by the block layer as `free_disk`, for a disk of this library.
#[inline(never)]
unsafe extern "C" fn free_disk_callback(disk: *mut bindings::gendisk) {
    // SAFETY: The disk is one of this library, and nobody uses it any more.
    unsafe { private::free(base(disk)) };
}

impl<T: Operations> Fops<T> {
    const TABLE: bindings::block_device_operations = bindings::block_device_operations {
        owner: this_module::<T::OwnerModule>().as_ptr(),
        open: if T::HAS_OPEN {
            Some(Self::open_callback)
        } else {
            None
        },
        release: if T::HAS_RELEASE {
            Some(Self::release_callback)
        } else {
            None
        },
        getgeo: if T::GEOMETRY.is_some() {
            Some(Self::getgeo_callback)
        } else {
            None
        },
        free_disk: Some(free_disk_callback),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// To be called by the block layer as `open`.
    unsafe extern "C" fn open_callback(
        disk: *mut bindings::gendisk,
        mode: bindings::blk_mode_t,
    ) -> ffi::c_int {
        // SAFETY: The disk is one of this driver, and alive during the call.
        let (data, read_only) = unsafe {
            (
                private::data::<T>(base(disk)),
                bindings::weft_helper_get_disk_ro(disk),
            )
        };
        let open = Open {
            write: mode & bindings::WEFT_BLK_OPEN_WRITE != 0,
            read_only,
        };
        match T::open(data, open) {
            Ok(()) => 0,
            Err(error) => error.to_errno(),
        }
    }

    /// # Safety
    ///
    /// To be called by the block layer as `release`.
    unsafe extern "C" fn release_callback(disk: *mut bindings::gendisk) {
        // SAFETY: The disk is one of this driver, and alive during the call.
        T::release(unsafe { private::data::<T>(base(disk)) });
    }

    /// # Safety
    ///
    /// To be called by the block layer as `getgeo`.
    unsafe extern "C" fn getgeo_callback(
        disk: *mut bindings::gendisk,
        geo: *mut bindings::hd_geometry,
    ) -> ffi::c_int {
        let Some(geometry) = T::GEOMETRY else {
            return ENOTTY.to_errno();
        };
        // SAFETY: The disk is alive during the call.
        let capacity = unsafe { bindings::weft_helper_get_capacity(disk) };
        let cylinder = u64::from(geometry.heads) * u64::from(geometry.sectors);
        // CAST: The field is too small for large disks, in C as well.
        let cylinders = capacity.checked_div(cylinder).unwrap_or(0) as u16;
        // SAFETY: `geo` is valid for writes.
        unsafe {
            bindings::weft_helper_set_geometry(geo, geometry.heads, geometry.sectors, cylinders)
        };
        0
    }
}
