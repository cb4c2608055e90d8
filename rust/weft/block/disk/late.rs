// SPDX-License-Identifier: GPL-2.0

//! Memory of disks that is kept for a while, on kernels that look for errors in the use of kobjects.
//!
//! The kobject of the queue is a part of the disk, and the kernel frees the disk directly after it has put the last
//! reference of that kobject. With `DEBUG_KOBJECT_RELEASE` it puts off the release of every kobject by up to four
//! seconds and so finds this error of its own whenever any disk goes. What holds the memory of the disk is the inode of
//! its block device.

use crate::{
    bindings,
    sysfs::life::Stay, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue, //
};

/// Twice the longest delay, for the disk's device and then for its queue, and some more, in milliseconds.
const KEEP_MS: i64 = 9_500;

/// A reference to an inode.
///
/// # Invariants
///
/// It is owned.
struct Inode(NonNull<bindings::inode>);

// SAFETY: A reference to an inode belongs to no thread in particular.
unsafe impl Send for Inode {}

impl Drop for Inode {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the reference is ours.
        unsafe { bindings::iput(self.0.as_ptr()) };
    }
}

/// Keeps the memory of a disk.
///
/// # Safety
///
/// `disk` must be a disk that the caller holds a reference of.
pub(super) unsafe fn keep(disk: *mut bindings::gendisk) {
    // SAFETY: The disk has a block device with an inode as long as it is referenced.
    let inode = unsafe { bindings::igrab((*(*(*disk).part0).bd_mapping).host) };
    let Some(inode) = NonNull::new(inode) else {
        return;
    };
    // INVARIANT: Just taken.
    let inode = Inode(inode);
    let stay = Stay::new();
    let _ = workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
        fsleep(Delta::from_millis(KEEP_MS));
        drop(inode);
        drop(stay);
    });
}
