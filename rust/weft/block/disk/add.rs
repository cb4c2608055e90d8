// SPDX-License-Identifier: GPL-2.0

//! Making a `struct gendisk` and showing it.

use super::{
    gendisk::Gendisk,
    private::{
        self,
        Base, //
    },
    shown::Shown,
    Spec, //
};
use crate::bindings;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi,
    prelude::*,
    static_lock_class, //
};

/// A disk that is not visible yet.
///
/// # Invariants
///
/// `disk` is allocated and has not been added; `private` is its private data. Both are this object's.
struct Hidden {
    disk: NonNull<bindings::gendisk>,
    private: NonNull<Base>,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // SAFETY: By the type invariants. `free_disk` is not called for disks that were never added.
        unsafe { bindings::put_disk(self.disk.as_ptr()) };
        // SAFETY: By the type invariants; with the disk the last user of it is gone.
        unsafe { private::free(self.private) };
    }
}

/// Makes a disk and shows it; frees `private` if that fails. Not inlined, so that there is one lock class.
///
/// # Safety
///
/// `set` must be the tag set of a driver that stays until the disk is removed; `table` and `private` must be for that
/// driver, and `private` must not be used by anybody else.
#[inline(never)]
pub(super) unsafe fn add(
    set: *mut bindings::blk_mq_tag_set,
    table: &'static bindings::block_device_operations,
    private: NonNull<Base>,
    spec: &Spec<'_>,
) -> Result<Gendisk> {
    // SAFETY: By the safety requirements.
    let hidden = unsafe { alloc(set, private, spec) }?;
    let disk = hidden.disk.as_ptr();
    // SAFETY: By the type invariants of `Hidden` the disk is ours and not visible yet.
    unsafe {
        (*disk).fops = table;
        (*disk).private_data = private.as_ptr().cast();
        (*disk).major = i32::try_from(spec.major.number())?;
        (*disk).first_minor = i32::try_from(spec.first_minor)?;
        (*disk).minors = i32::try_from(spec.minors)?;
        for (to, from) in (*disk).disk_name.iter_mut().zip(spec.name.bytes()) {
            *to = from as ffi::c_char;
        }
        bindings::set_capacity(disk, spec.capacity);
        if spec.read_only {
            bindings::set_disk_ro(disk, true);
        }
    }
    // SAFETY: The disk is complete.
    to_result(unsafe { bindings::device_add_disk(ptr::null_mut(), disk, ptr::null_mut()) })?;
    core::mem::forget(hidden);
    // SAFETY: The disk was added, and its reference is ours.
    Gendisk::new(unsafe { Shown::from_raw(NonNull::new_unchecked(disk)) })
}

/// # Safety
///
/// As for [`add`].
unsafe fn alloc(
    set: *mut bindings::blk_mq_tag_set,
    private: NonNull<Base>,
    spec: &Spec<'_>,
) -> Result<Hidden> {
    let mut limits: bindings::queue_limits = pin_init::zeroed();
    let disk = spec.limits.apply(&mut limits).and_then(|()| {
        // SAFETY: The tag set is valid by the safety requirements, the rest is for the duration of the call or, the
        // lock class, for ever.
        from_err_ptr(unsafe {
            bindings::__blk_mq_alloc_disk(
                set,
                &mut limits,
                private.as_ptr().cast(),
                static_lock_class!().as_ptr(),
            )
        })
    });
    match disk {
        // INVARIANT: Just allocated, with this private data.
        Ok(disk) => Ok(Hidden {
            // SAFETY: `__blk_mq_alloc_disk` gives a disk or an error.
            disk: unsafe { NonNull::new_unchecked(disk) },
            private,
        }),
        Err(error) => {
            // SAFETY: Nobody else knows it.
            unsafe { private::free(private) };
            Err(error)
        }
    }
}
