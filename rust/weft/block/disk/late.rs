// SPDX-License-Identifier: GPL-2.0

//! Memory of disks that is kept for a while, on kernels that look for errors in the use of kobjects.
//!
//! The kobject of the queue is a part of the disk, and the kernel frees the disk directly after it has put the last
//! reference of that kobject. With `DEBUG_KOBJECT_RELEASE` it puts off the release of every kobject by up to four
//! seconds and so finds this error of its own whenever any disk goes. What holds the memory of the disk is the inode of
//! its block device.
//!
//! How long that takes cannot be told: a directory below the disk is released first, then the disk, then its queue, each
//! late, and the disk may still be open. So the kobject is looked at.

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

/// How often the kobject is looked at, in milliseconds.
const POLL_MS: i64 = 1_000;

/// The memory of a disk.
///
/// # Invariants
///
/// `inode` is an owned reference to the inode of the block device of `disk`, which holds the memory.
struct Memory {
    inode: NonNull<bindings::inode>,
    disk: NonNull<bindings::gendisk>,
}

// SAFETY: A reference to an inode belongs to no thread in particular, and of the disk nothing but its queue's kobject is
// looked at.
unsafe impl Send for Memory {}

impl Memory {
    /// Whether the kobject of the queue is released. Right after its last reference was put it may seem to be.
    fn is_released(&self) -> bool {
        // SAFETY: By the type invariants the memory is there.
        unsafe { bindings::weft_helper_disk_queue_released(self.disk.as_ptr()) }
    }

    /// Waits until the kobject of the queue is released, and a bit longer. Sleeps.
    fn wait(&self) {
        let mut seen = 0;
        while seen < 2 {
            fsleep(Delta::from_millis(POLL_MS));
            seen = if self.is_released() { seen + 1 } else { 0 };
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the reference is ours.
        unsafe { bindings::iput(self.inode.as_ptr()) };
    }
}

impl Memory {
    /// Takes a reference.
    ///
    /// # Safety
    ///
    /// `disk` must be a disk that the caller holds a reference of.
    unsafe fn of(disk: *mut bindings::gendisk) -> Option<Self> {
        // SAFETY: The disk has a block device with an inode as long as it is referenced.
        let inode = unsafe { bindings::igrab((*(*(*disk).part0).bd_mapping).host) };
        // INVARIANT: Just taken.
        Some(Self {
            inode: NonNull::new(inode)?,
            disk: NonNull::new(disk)?,
        })
    }
}

/// The memory of a disk that nobody else keeps; the drop waits until it is not needed any more. Sleeps.
pub(super) struct Unkept(Option<Memory>);

impl Drop for Unkept {
    fn drop(&mut self) {
        if let Some(memory) = &self.0 {
            memory.wait();
        }
    }
}

/// Has the memory of a disk kept in the background. Without memory for that it is the caller who has to keep it, until
/// after the last reference of the disk was put.
///
/// # Safety
///
/// `disk` must be a disk that the caller holds a reference of.
pub(super) unsafe fn keep(disk: *mut bindings::gendisk) -> Unkept {
    // SAFETY: The caller holds a reference.
    let Some(memory) = (unsafe { Memory::of(disk) }) else {
        return Unkept(None);
    };
    // SAFETY: As above.
    let spare = unsafe { Memory::of(disk) };
    let stay = Stay::new();
    let spawned = workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
        memory.wait();
        drop(memory);
        drop(stay);
    });
    Unkept(spawned.err().and(spare))
}
