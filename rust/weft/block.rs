// SPDX-License-Identifier: GPL-2.0

//! Block devices, from both sides: disks that a module offers ([`mq`], [`disk`]) and devices that it uses ([`bdev`],
//! [`bio`]).
//!
//! C headers: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h),
//! [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h), [`include/linux/bio.h`](srctree/include/linux/bio.h)
//!
//! Positions and sizes named `sector` or `sectors` are in units of 512 bytes, whatever the block size of a device is.

pub mod bdev;
pub mod bio;
pub mod disk;
mod gate;
pub mod limits;
pub mod major;
pub mod mq;
mod op;
pub mod sg;

pub use self::op::{
    Flags,
    IoPrio,
    Op, //
};

/// Bytes of a sector.
pub const SECTOR_SIZE: u32 = 512;

/// Binary logarithm of [`SECTOR_SIZE`].
pub const SECTOR_SHIFT: u32 = 9;
