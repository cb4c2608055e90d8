// SPDX-License-Identifier: GPL-2.0

//! What a disk can do and how requests for it are cut.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h) (`struct queue_limits`)

use crate::{
    bindings,
    block::{
        SECTOR_SHIFT,
        SECTOR_SIZE, //
    },
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Sectors of a page: the least that a request can be limited to.
// CAST: A page is a few thousand bytes.
const PAGE_SECTORS: u32 = (PAGE_SIZE >> SECTOR_SHIFT) as u32;

/// The limits of a disk. Fields that are 0 have the block layer's default, or say that there is no such operation.
///
/// Values may come from another machine: they are checked when a disk is made of them, see [`Self::check`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the smallest unit that can be addressed: a power of two from 512 to the largest the kernel can do.
    pub logical_block_size: u32,
    /// Bytes of the smallest unit that is written in one piece: 0 or a power of two. Raised to the logical one.
    pub physical_block_size: u32,
    /// Most sectors of one request, at least a page and a block.
    pub max_hw_sectors: u32,
    /// Most parts of memory of one request.
    pub max_segments: u16,
    /// Most bytes of one part of memory, at least a page. Not together with `virt_boundary`.
    pub max_segment_size: u32,
    /// Parts of memory meet only at multiples of this power of two of bytes. 0: they meet anywhere.
    pub virt_boundary: u32,
    /// Memory starts at a multiple of this power of two of bytes. 0: of a sector.
    pub dma_alignment: u32,
    /// Bytes of the smallest request that is done well.
    pub io_min: u32,
    /// Bytes of a request that is done best; rounded down to the physical block size.
    pub io_opt: u32,
    /// Most sectors of one discard.
    pub max_discard_sectors: u32,
    /// Bytes of what a discard frees at a time.
    pub discard_granularity: u32,
    /// Bytes by which the first such unit is off the start of the disk.
    pub discard_alignment: u32,
    /// Most sectors of one secure erase.
    pub max_secure_erase_sectors: u32,
    /// Most sectors of one request to write zeroes.
    pub max_write_zeroes_sectors: u32,
    /// Writes are stable after a flush only.
    pub write_cache: bool,
    /// Single writes can be made stable; without a write cache this has no meaning.
    pub fua: bool,
    /// Seeking takes time.
    pub rotational: bool,
    /// Memory must not change while it is written from.
    pub stable_writes: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            logical_block_size: SECTOR_SIZE,
            physical_block_size: 0,
            max_hw_sectors: 0,
            max_segments: 0,
            max_segment_size: 0,
            virt_boundary: 0,
            dma_alignment: 0,
            io_min: 0,
            io_opt: 0,
            max_discard_sectors: 0,
            discard_granularity: 0,
            discard_alignment: 0,
            max_secure_erase_sectors: 0,
            max_write_zeroes_sectors: 0,
            write_cache: false,
            fua: false,
            rotational: false,
            stable_writes: false,
        }
    }
}

/// Whether `value` is 0, that is not set, or a power of two.
fn unset_or_power(value: u32) -> bool {
    value == 0 || value.is_power_of_two()
}

impl Limits {
    /// Whether the block layer can work with these; `EINVAL` if not.
    ///
    /// The block layer checks as well, but warns with a stack trace about what it takes for an error of the driver.
    pub fn check(&self) -> Result {
        let block = self.logical_block_size;
        let size = (SECTOR_SIZE..=bindings::WEFT_BLK_MAX_BLOCK_SIZE).contains(&block);
        let powers = block.is_power_of_two()
            && unset_or_power(self.physical_block_size)
            && unset_or_power(self.virt_boundary)
            && unset_or_power(self.dma_alignment);
        let sectors = self.max_hw_sectors;
        let request = sectors == 0 || sectors >= PAGE_SECTORS.max(block >> SECTOR_SHIFT);
        let segment = self.max_segment_size == 0
            || (self.virt_boundary == 0 && self.max_segment_size as usize >= PAGE_SIZE);
        let align = self.dma_alignment as usize <= PAGE_SIZE;
        if size && powers && request && segment && align {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// The bits of `features` that are a driver's.
    const FEATURES: u32 = bindings::WEFT_BLK_FEAT_WRITE_CACHE
        | bindings::WEFT_BLK_FEAT_FUA
        | bindings::WEFT_BLK_FEAT_ROTATIONAL
        | bindings::WEFT_BLK_FEAT_STABLE_WRITES;

    fn features(&self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        bit(self.write_cache, bindings::WEFT_BLK_FEAT_WRITE_CACHE)
            | bit(self.write_cache && self.fua, bindings::WEFT_BLK_FEAT_FUA)
            | bit(self.rotational, bindings::WEFT_BLK_FEAT_ROTATIONAL)
            | bit(self.stable_writes, bindings::WEFT_BLK_FEAT_STABLE_WRITES)
    }

    /// Puts the limits into those of a queue, which has others that are its users' or the block layer's. `EINVAL`.
    pub(super) fn apply(&self, raw: &mut bindings::queue_limits) -> Result {
        self.check()?;
        raw.features = (raw.features & !Self::FEATURES) | self.features();
        raw.logical_block_size = self.logical_block_size;
        raw.physical_block_size = self.physical_block_size;
        raw.max_hw_sectors = self.max_hw_sectors;
        raw.max_segments = self.max_segments;
        raw.max_segment_size = self.max_segment_size;
        // CAST: Of a `u32` to the `unsigned long` of C.
        raw.virt_boundary_mask = self.virt_boundary.saturating_sub(1) as usize;
        raw.dma_alignment = self.dma_alignment.saturating_sub(1);
        raw.io_min = self.io_min;
        raw.io_opt = self.io_opt;
        raw.max_hw_discard_sectors = self.max_discard_sectors;
        raw.discard_granularity = self.discard_granularity;
        raw.discard_alignment = self.discard_alignment;
        raw.max_secure_erase_sectors = self.max_secure_erase_sectors;
        raw.max_write_zeroes_sectors = self.max_write_zeroes_sectors;
        Ok(())
    }
}
