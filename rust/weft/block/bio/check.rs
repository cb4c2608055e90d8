// SPDX-License-Identifier: GPL-2.0

//! What of a command is checked before a bio is made of it, and how it is cut.

use super::{
    Command,
    Data, //
};
use crate::{
    bindings,
    block::{
        bdev::{
            Bdev,
            Mode, //
        },
        Op,
        SECTOR_SHIFT, //
    },
};
use kernel::prelude::*;

/// Checks a command with its data against the device. Returns how many parts the memory has.
///
/// `EINVAL` if it cannot be meant, `EROFS` if the device must not be changed, `EOPNOTSUPP` if it cannot do that.
pub(super) fn check(bdev: &Bdev, command: &Command, data: Option<&Data>) -> Result<u16> {
    if command.op == Op::Flush {
        let nothing = command.bytes == 0 && command.sector == 0 && data.is_none();
        return if nothing { Ok(0) } else { Err(EINVAL) };
    }
    flags(command)?;
    range(bdev, command)?;
    if command.op.changes() && (bdev.mode() != Mode::Write || bdev.is_read_only()) {
        return Err(EROFS);
    }
    match (command.op.has_data(), data) {
        (true, Some(data)) => memory(bdev, command, data),
        (false, None) if limit(bdev, command.op, command.sector) == 0 => Err(EOPNOTSUPP),
        (false, None) => Ok(0),
        _ => Err(EINVAL),
    }
}

/// The block layer warns with a stack trace about flags that do not go with the operation.
fn flags(command: &Command) -> Result {
    let flags = &command.flags;
    let write = command.op == Op::Write || (!flags.fua && !flags.preflush);
    let zeroes = command.op == Op::WriteZeroes || !flags.nounmap;
    if write && zeroes {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// Whole blocks, which the device has.
fn range(bdev: &Bdev, command: &Command) -> Result {
    let mask = u64::from(bdev.logical_block_size().saturating_sub(1));
    let sectors = command.bytes >> SECTOR_SHIFT;
    let whole = command.bytes & mask == 0 && command.sector & (mask >> SECTOR_SHIFT) == 0;
    let end = command.sector.checked_add(sectors).ok_or(EINVAL)?;
    if sectors != 0 && whole && end <= bdev.capacity() {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// As many bytes as the command says, in parts that DMA can reach and a bio can hold.
fn memory(bdev: &Bdev, command: &Command, data: &Data) -> Result<u16> {
    // CAST: A `usize` is 64 bits.
    let len = data.len as u64;
    if len != command.bytes || len > u64::from(bindings::WEFT_BIO_MAX_SIZE) {
        return Err(EINVAL);
    }
    let mask = bdev.dma_alignment().saturating_sub(1);
    let mut parts = 0_u16;
    data.for_each(|run| {
        let len = u32::try_from(run.len)?;
        if (run.offset | len) & mask != 0 || u32::from(parts) == bindings::BIO_MAX_VECS {
            return Err(EINVAL);
        }
        parts += 1;
        Ok(())
    })?;
    Ok(parts)
}

/// How many sectors one bio of an operation without data can have that starts at `sector`; 0 if the device cannot.
///
/// C: `bio_discard_limit`, `bio_write_zeroes_limit`, `blkdev_issue_secure_erase`.
pub(super) fn limit(bdev: &Bdev, op: Op, sector: u64) -> u64 {
    let most = bindings::WEFT_BIO_MAX_SIZE >> SECTOR_SHIFT;
    let blocks = !((bdev.logical_block_size() >> SECTOR_SHIFT).saturating_sub(1));
    let limit = match op {
        Op::Discard if bdev.max_discard_sectors() == 0 => 0,
        Op::Discard => return discard_limit(bdev, sector, most & blocks),
        Op::SecureErase => bdev.max_secure_erase_sectors().min(most) & blocks,
        Op::WriteZeroes => bdev.max_write_zeroes_sectors().min(most) & blocks,
        Op::Read | Op::Write | Op::Flush => most & blocks,
    };
    u64::from(limit)
}

/// Up to the next unit of discards, or whole units from there on, so that no unit is cut.
fn discard_limit(bdev: &Bdev, sector: u64, most: u32) -> u64 {
    let unit = u64::from(bdev.discard_granularity() >> SECTOR_SHIFT);
    let block = u64::from(bdev.logical_block_size() >> SECTOR_SHIFT);
    let most = u64::from(most);
    // A unit that is no multiple of the block size is of no use.
    if unit == 0 || block == 0 || unit % block != 0 || unit > most {
        return most;
    }
    match sector.saturating_add(bdev.start()) % unit {
        0 => most - most % unit,
        over if (unit - over) % block == 0 => unit - over,
        _ => most,
    }
}
