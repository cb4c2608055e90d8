// SPDX-License-Identifier: GPL-2.0

//! Block devices that a module uses.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h) (`struct block_device`)

use crate::{
    bindings,
    sysfs::KobjRef, //
};
use core::{
    ptr::NonNull,
    str, //
};
use kernel::{
    error::from_err_ptr,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// What a device is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// Longest name of a device with the number of a partition, in bytes.
const MAX_NAME: usize = 48;

/// The name of a device, such as `sda1`.
#[derive(Clone, Copy)]
pub struct Name {
    bytes: [u8; MAX_NAME],
    len: usize,
}

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        str::from_utf8(bytes).unwrap_or("")
    }
}

/// An open block device.
///
/// It can be dropped in any context; if it is not in that of a system call, the device is closed a little later.
///
/// # Invariants
///
/// `file` is an open file of a block device, and a reference of it is this object's. `bdev` is its device.
pub struct Bdev {
    file: NonNull<bindings::file>,
    bdev: NonNull<bindings::block_device>,
    mode: Mode,
}

// SAFETY: A `struct block_device` and its file may be used from any thread.
unsafe impl Send for Bdev {}
// SAFETY: As above; the methods only read what may change at any time.
unsafe impl Sync for Bdev {}

impl Bdev {
    /// Opens the device with this path name, as seen by the calling task or, if that is a thread of the kernel, by the
    /// first process. Sleeps.
    ///
    /// Others may have it open as well. Errors are those of opening it: `ENOENT`, `ENOTBLK`, `ENXIO`, `EACCES`,
    /// `EBUSY` and others. C: `bdev_file_open_by_path`.
    pub fn open(path: &CStr, mode: Mode) -> Result<Arc<Self>> {
        let flags = match mode {
            Mode::Read => bindings::WEFT_BLK_OPEN_READ,
            Mode::Write => bindings::WEFT_BLK_OPEN_READ | bindings::WEFT_BLK_OPEN_WRITE,
        };
        // SAFETY: The path is a valid string.
        let file = from_err_ptr(unsafe {
            bindings::weft_helper_bdev_file_open_by_path(path.as_char_ptr(), flags)
        })?;
        // SAFETY: An open file of a block device.
        let bdev = unsafe { bindings::file_bdev(file) };
        // INVARIANT: The file was just opened for us.
        let this = Self {
            // SAFETY: `bdev_file_open_by_path` gives a file or an error, and such a file has a device.
            file: unsafe { NonNull::new_unchecked(file) },
            // SAFETY: As above.
            bdev: unsafe { NonNull::new_unchecked(bdev) },
            mode,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The C object, which is valid as long as `self`.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::block_device {
        self.bdev.as_ptr()
    }

    /// One value of the limits of its queue, which may change at any time.
    #[inline]
    fn limit<V: Copy>(&self, field: impl FnOnce(*const bindings::queue_limits) -> *const V) -> V {
        // SAFETY: By the type invariants; the limits live as long as the device.
        let limits = unsafe { bindings::weft_helper_bdev_limits(self.as_raw()) };
        // SAFETY: `field` gives the address of a field of them.
        unsafe { field(limits).read_volatile() }
    }

    /// What it was opened for.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its name.
    pub fn name(&self) -> Name {
        let mut name = Name {
            bytes: [0; MAX_NAME],
            len: 0,
        };
        // SAFETY: By the type invariants; the buffer is valid for writes of its length.
        let len = unsafe {
            bindings::weft_helper_bdev_name(self.as_raw(), name.bytes.as_mut_ptr().cast(), MAX_NAME)
        };
        name.len = usize::try_from(len).unwrap_or(0);
        name
    }

    /// The whole disk that it is or is a part of, for a link. To be dropped where sleeping is allowed.
    pub fn disk_object(&self) -> KobjRef {
        // SAFETY: By the type invariants; an open device has a disk.
        unsafe {
            let disk = bindings::weft_helper_bdev_disk(self.as_raw());
            KobjRef::get(NonNull::new_unchecked(bindings::weft_helper_disk_kobj(
                disk,
            )))
        }
    }

    /// Its device number.
    pub fn dev(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_bdev_dev(self.as_raw()) }
    }

    /// Whether it cannot be written now, however it was opened.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_bdev_read_only(self.as_raw()) }
    }

    /// Its size in sectors.
    #[inline]
    pub fn capacity(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_bdev_nr_sectors(self.as_raw()) }
    }

    /// The sector of the whole disk that its first one is.
    #[inline]
    pub(super) fn start(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_bdev_start_sector(self.as_raw()) }
    }

    /// Bytes of its smallest unit, a power of two.
    #[inline]
    pub fn logical_block_size(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).logical_block_size })
    }

    /// Bytes that it writes in one piece, a power of two.
    #[inline]
    pub fn physical_block_size(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).physical_block_size })
    }

    /// Most sectors of one request; bios may be larger.
    #[inline]
    pub fn max_hw_sectors(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).max_hw_sectors })
    }

    /// Most parts of memory of one request; bios may have more.
    #[inline]
    pub fn max_segments(&self) -> u16 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).max_segments })
    }

    /// Most sectors of one discard; 0 if it cannot discard.
    #[inline]
    pub fn max_discard_sectors(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).max_discard_sectors })
    }

    /// Bytes of what a discard frees at a time.
    #[inline]
    pub fn discard_granularity(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).discard_granularity })
    }

    /// Most sectors of one secure erase; 0 if it cannot.
    #[inline]
    pub fn max_secure_erase_sectors(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).max_secure_erase_sectors })
    }

    /// Most sectors of one request to write zeroes; 0 if it cannot.
    #[inline]
    pub fn max_write_zeroes_sectors(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).max_write_zeroes_sectors })
    }

    /// Memory of bios starts at, and is a multiple of, this many bytes, a power of two.
    #[inline]
    pub fn dma_alignment(&self) -> u32 {
        // SAFETY: Gives the address of a field.
        self.limit(|limits| unsafe { &raw const (*limits).dma_alignment })
            .saturating_add(1)
    }

    /// Bytes by which the first unit of discards is off its start.
    pub fn discard_alignment(&self) -> u32 {
        // SAFETY: By the type invariants.
        let alignment = unsafe { bindings::weft_helper_bdev_discard_alignment(self.as_raw()) };
        u32::try_from(alignment).unwrap_or(0)
    }

    /// Whether writes are stable after a flush only.
    #[inline]
    pub fn write_cache(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_bdev_write_cache(self.as_raw()) }
    }

    /// Whether single writes can be made stable.
    #[inline]
    pub fn fua(&self) -> bool {
        // SAFETY: Gives the address of a field.
        let features = self.limit(|limits| unsafe { &raw const (*limits).features });
        features & bindings::WEFT_BLK_FEAT_FUA != 0
    }
}

impl Drop for Bdev {
    fn drop(&mut self) {
        // SAFETY: By the type invariants this reference is ours. `fput` may be called in any context.
        unsafe { bindings::fput(self.file.as_ptr()) };
    }
}
