// SPDX-License-Identifier: GPL-2.0

//! Disks.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h) (`struct gendisk`)
//!
//! A [`Disk`] is visible from [`Disk::add`] on until [`Gendisk::remove`] or its drop. Removal is for disks in use as
//! well: it refuses new opens, waits for the requests in flight, and fails all that come later. Files that are open
//! then stay open; the driver's data stays until the last of them is closed, which
//! [`Operations::release`] tells. A disk whose driver cannot complete requests
//! any more must have them failed first, or its removal waits.
//!
//! - Methods that change a disk wait for nobody who removes it, and do nothing once it is being removed.
//! - Under the lock that [`Operations::open`] and `release` run with, a disk can be
//!   neither added nor removed.

mod add;
mod fops;
mod gendisk;
#[cfg(CONFIG_DEBUG_KOBJECT_RELEASE)]
mod late;
mod private;
mod shown;

use crate::{
    bindings,
    block::{
        limits::Limits,
        major::MajorHandle,
        mq::{
            Operations,
            TagSet, //
        }, //
    },
};
use core::ops::Deref;
use kernel::{
    prelude::*,
    sync::Arc, //
};

pub use self::gendisk::Gendisk;
pub(super) use self::{
    gendisk::requeue,
    private::queue_data, //
};

/// How a disk is made.
pub struct Spec<'a> {
    /// Its name, 1 to 31 characters without `/`.
    pub name: &'a str,
    /// The major number, which the driver has registered.
    pub major: &'a MajorHandle,
    /// The first of its minor numbers.
    pub first_minor: u32,
    /// How many minor numbers it has, one for the disk and the rest for its partitions: 1 to 256.
    pub minors: u32,
    /// Its size in sectors.
    pub capacity: u64,
    /// Whether it is read-only at first.
    pub read_only: bool,
    /// What it can do.
    pub limits: Limits,
}

impl Spec<'_> {
    /// `EINVAL` unless the block layer can take all of it.
    fn check(&self) -> Result {
        let name = (1..bindings::DISK_NAME_LEN as usize).contains(&self.name.len())
            && !self.name.bytes().any(|c| c == b'/' || c == 0);
        let end = self.first_minor.checked_add(self.minors).ok_or(EINVAL)?;
        let minors = (1..=bindings::DISK_MAX_PARTS).contains(&self.minors)
            && end <= bindings::WEFT_DISK_MAX_MINORS;
        // The size in bytes must be a `loff_t`.
        let capacity = self.capacity <= (i64::MAX as u64) >> super::SECTOR_SHIFT;
        if name && minors && capacity {
            self.limits.check()
        } else {
            Err(EINVAL)
        }
    }
}

/// A disk of driver `T`; dropping it removes it, which sleeps.
///
/// # Invariants
///
/// The private data of the disk is that of driver `T`.
pub struct Disk<T: Operations> {
    // First: its drop removes the disk, after which nobody uses the tags for it.
    gendisk: Gendisk,
    // The disk uses the tags until it is removed.
    tags: Arc<TagSet<T>>,
}

impl<T: Operations> Disk<T> {
    /// Makes a disk and shows it. Sleeps.
    ///
    /// Requests come before this returns: partitions are looked for. `EINVAL` if something in `spec` is out of range,
    /// `ENODEV` if its major number is being given back, `EBUSY` or `EEXIST` if there is such a disk, `ENOMEM`, or an
    /// error of [`Operations::new_hw`], as which `ENOMEM` is given. `data` is dropped then.
    pub fn add(tags: &Arc<TagSet<T>>, spec: &Spec<'_>, data: T::QueueData) -> Result<Arc<Self>> {
        spec.check()?;
        let private = private::new::<T>(spec.major, data)?;
        // SAFETY: The tag set is one of this driver, and the table and the private data are for it.
        let gendisk = unsafe { add::add(tags.as_raw(), fops::table::<T>(), private, spec)? };
        // INVARIANT: The private data is that of `T`.
        let disk = Self {
            gendisk,
            tags: tags.clone(),
        };
        Ok(Arc::new(disk, GFP_KERNEL)?)
    }

    /// The driver's side of the disk.
    #[inline]
    pub fn data(&self) -> &T::QueueData {
        // SAFETY: By the type invariants; the private data stays as long as the disk is referenced.
        unsafe { private::data::<T>(self.gendisk.private()) }
    }

    /// The tag set.
    #[inline]
    pub fn tags(&self) -> &Arc<TagSet<T>> {
        &self.tags
    }
}

impl<T: Operations> Deref for Disk<T> {
    type Target = Gendisk;

    #[inline]
    fn deref(&self) -> &Gendisk {
        &self.gendisk
    }
}
