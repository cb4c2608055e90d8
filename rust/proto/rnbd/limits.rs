// SPDX-License-Identifier: GPL-2.0

//! What a device can do, as the server says it in the answer to an open and as the client may rely on it.
//!
//! The client builds a disk from this, so nothing in it may be able to confuse the block layer: block sizes are powers
//! of two that it knows, the capacity fits a file offset, ranges fit a message. Limits that concern single transfers of
//! the server's device do not travel on: the client's transfers are bounded by the session.
//!
//! C counterpart: `process_msg_open_rsp()` and `rnbd_client_setup_device()` in `rnbd-clt.c`,
//! `rnbd_srv_fill_msg_open_rsp()` in `rnbd-srv.c`.

use core::fmt;
use zerocopy::FromBytes as _;

use super::{
    message::{
        MAX_RANGE_SECTORS,
        SECTOR, //
    },
    wire::{
        OpenRsp,
        OpenRspFields,
        CACHE_FUA,
        CACHE_WRITEBACK,
        MSG_OPEN_RSP, //
    }, //
};
use crate::{
    errno::{
        Errno,
        Failure, //
    },
    text::MAX_SECTORS, //
};

/// Length of an answer in bytes.
pub const OPEN_RSP_LEN: usize = size_of::<OpenRsp>();

/// Largest block size in bytes that the sixteen bits of an answer can hold.
pub const MAX_BLOCK_SIZE: u32 = 32768;

/// The cache of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// None that could lose anything: there is nothing to flush.
    #[default]
    Safe,
    /// Volatile.
    Volatile,
    /// Volatile, and writes can go around it.
    VolatileWithFua,
}

impl Cache {
    /// Reads `cache_policy`; forced unit access means nothing without a cache.
    pub const fn from_wire(cache_policy: u8) -> Self {
        match (
            cache_policy & CACHE_WRITEBACK != 0,
            cache_policy & CACHE_FUA != 0,
        ) {
            (false, _) => Self::Safe,
            (true, false) => Self::Volatile,
            (true, true) => Self::VolatileWithFua,
        }
    }

    /// `cache_policy` of a device.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Safe => 0,
            Self::Volatile => CACHE_WRITEBACK,
            Self::VolatileWithFua => CACHE_WRITEBACK | CACHE_FUA,
        }
    }
}

/// How a device discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discard {
    /// Longest range at once, in sectors: whole logical blocks, not 0.
    pub max_sectors: u32,
    /// Unit, in bytes: whole logical blocks, not 0.
    pub granularity: u32,
    /// Offset of the first unit, in bytes: whole sectors, below the unit.
    pub alignment: u32,
}

/// A device of a server, checked.
///
/// Block sizes are powers of two from 512 to [`MAX_BLOCK_SIZE`] and the physical one is not below the logical one;
/// ranges are whole logical blocks and fit a message, and 0 means that the device cannot do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The server's number of the device.
    pub device_id: u32,
    /// Capacity in sectors of 512 bytes; may be 0.
    pub capacity: u64,
    /// Logical block size in bytes.
    pub logical_block_size: u32,
    /// Physical block size in bytes.
    pub physical_block_size: u32,
    /// How it discards, if it does.
    pub discard: Option<Discard>,
    /// Longest range that can be zeroed at once, in sectors.
    pub max_write_zeroes: u32,
    /// Longest range that can be erased securely at once, in sectors.
    pub max_secure_erase: u32,
    /// Its cache.
    pub cache: Cache,
}

impl Device {
    /// Reads the answer to an open in a session whose requests have at most `max_io_size` bytes of data.
    pub fn parse(answer: &[u8], max_io_size: u32) -> Result<Self, OpenError> {
        let len = answer.len();
        let (wire, _) = OpenRsp::read_from_prefix(answer).map_err(|_| OpenError::Short { len })?;
        if wire.kind() != MSG_OPEN_RSP {
            return Err(OpenError::Kind { kind: wire.kind() });
        }
        let fields = wire.fields();
        let logical = u32::from(fields.logical_block_size);
        if !is_block_size(logical) {
            return Err(OpenError::LogicalBlockSize { size: logical });
        }
        if logical > max_io_size {
            return Err(OpenError::BlockTooLong {
                size: logical,
                max_io_size,
            });
        }
        let physical = match u32::from(fields.physical_block_size) {
            // What does not fit sixteen bits arrives as 0.
            0 => logical,
            size if is_block_size(size) => size.max(logical),
            size => return Err(OpenError::PhysicalBlockSize { size }),
        };
        if fields.nsectors > MAX_SECTORS {
            return Err(OpenError::Capacity {
                sectors: fields.nsectors,
            });
        }
        Ok(Self {
            device_id: fields.device_id,
            capacity: fields.nsectors,
            logical_block_size: logical,
            physical_block_size: physical,
            discard: discard(&fields, logical, physical),
            max_write_zeroes: range(fields.max_write_zeroes_sectors, logical),
            // The lower half of what the device can do, so never too much.
            max_secure_erase: range(fields.secure_discard.into(), logical),
            cache: Cache::from_wire(fields.cache_policy),
        })
    }

    /// Whether a disk that was built from `before` can go on with this.
    ///
    /// Capacity and longest ranges may change. With another logical block size what is above the disk would be lost; with
    /// a volatile cache where there was none, nobody would ever flush it.
    pub fn continues(&self, before: &Self) -> Result<(), OpenError> {
        let (was, is) = (before.logical_block_size, self.logical_block_size);
        if was != is {
            return Err(OpenError::BlockSizeChanged { was, is });
        }
        if before.cache == Cache::Safe && self.cache != Cache::Safe {
            return Err(OpenError::CacheAppeared);
        }
        Ok(())
    }
}

/// Whether the block layer knows this block size.
const fn is_block_size(size: u32) -> bool {
    size.is_power_of_two() && SECTOR <= size && size <= MAX_BLOCK_SIZE
}

/// A longest range in sectors, cut to whole blocks and to what fits a message.
fn range(sectors: u32, logical_block_size: u32) -> u32 {
    let block = logical_block_size.checked_div(SECTOR).unwrap_or(1);
    let sectors = sectors.min(MAX_RANGE_SECTORS);
    sectors.saturating_sub(sectors.checked_rem(block).unwrap_or(0))
}

/// How a device discards.
fn discard(fields: &OpenRspFields, logical: u32, physical: u32) -> Option<Discard> {
    let max_sectors = range(fields.max_discard_sectors, logical);
    if max_sectors == 0 {
        return None;
    }
    let granularity = match fields.discard_granularity {
        0 => physical,
        unit if unit.checked_rem(logical) == Some(0) => unit,
        _ => physical,
    };
    let alignment = match fields.discard_alignment {
        offset if offset < granularity && offset.checked_rem(SECTOR) == Some(0) => offset,
        _ => 0,
    };
    Some(Discard {
        max_sectors,
        granularity,
        alignment,
    })
}

/// A device of the server as its block layer describes it, to be opened by a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Capacity in sectors of 512 bytes.
    pub capacity: u64,
    /// Logical block size in bytes.
    pub logical_block_size: u32,
    /// Physical block size in bytes.
    pub physical_block_size: u32,
    /// Longest transfer in sectors.
    pub max_hw_sectors: u32,
    /// Most segments of a transfer.
    pub max_segments: u16,
    /// Longest range that can be discarded at once, in sectors.
    pub max_discard_sectors: u32,
    /// Unit in which the device discards, in bytes.
    pub discard_granularity: u32,
    /// Offset of the first such unit, in bytes.
    pub discard_alignment: u32,
    /// Longest range that can be zeroed at once, in sectors.
    pub max_write_zeroes_sectors: u32,
    /// Longest range that can be erased securely at once, in sectors.
    pub max_secure_erase_sectors: u32,
    /// Its cache.
    pub cache: Cache,
}

impl Export {
    /// The answer to the client that opened the device as number `device_id`.
    ///
    /// Fails for a device with blocks that the answer cannot describe.
    pub fn answer(&self, device_id: u32) -> Result<OpenRsp, OpenError> {
        let size = self.logical_block_size;
        let logical_block_size = match u16::try_from(size) {
            Ok(size) if is_block_size(size.into()) => size,
            _ => return Err(OpenError::LogicalBlockSize { size }),
        };
        Ok(OpenRsp::new(&OpenRspFields {
            device_id,
            nsectors: self.capacity,
            max_hw_sectors: self.max_hw_sectors,
            max_write_zeroes_sectors: self.max_write_zeroes_sectors,
            max_discard_sectors: self.max_discard_sectors,
            discard_granularity: self.discard_granularity,
            discard_alignment: self.discard_alignment,
            // The largest that fits; only hints follow from it.
            physical_block_size: u16::try_from(self.physical_block_size.min(MAX_BLOCK_SIZE))
                .unwrap_or(logical_block_size),
            logical_block_size,
            max_segments: self.max_segments,
            secure_discard: u16::try_from(self.max_secure_erase_sectors).unwrap_or(u16::MAX),
            cache_policy: self.cache.to_wire(),
        }))
    }
}

/// What is wrong with the answer to an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Too short.
    Short {
        /// Its length in bytes.
        len: usize,
    },
    /// Another type of message.
    Kind {
        /// The type.
        kind: u16,
    },
    /// A logical block size that the block layer does not know or the answer cannot hold.
    LogicalBlockSize {
        /// The size in bytes.
        size: u32,
    },
    /// A logical block that does not fit a request.
    BlockTooLong {
        /// Its size in bytes.
        size: u32,
        /// Longest data of a request in bytes.
        max_io_size: u32,
    },
    /// A physical block size that the block layer does not know.
    PhysicalBlockSize {
        /// The size in bytes.
        size: u32,
    },
    /// More than a file offset can reach.
    Capacity {
        /// Capacity in sectors.
        sectors: u64,
    },
    /// Another logical block size than the disk has.
    BlockSizeChanged {
        /// Size before, in bytes.
        was: u32,
        /// Size now, in bytes.
        is: u32,
    },
    /// A volatile cache that the disk knows nothing of.
    CacheAppeared,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { len } => write!(f, "open response has {len} bytes, it must have {OPEN_RSP_LEN}"),
            Self::Kind { kind } => write!(f, "open response has type {kind}, it must be {MSG_OPEN_RSP}"),
            Self::LogicalBlockSize { size } => write!(
                f,
                "logical block size is {size}, it must be a power of two from {SECTOR} to {MAX_BLOCK_SIZE}"
            ),
            Self::BlockTooLong { size, max_io_size } => {
                write!(f, "logical block size is {size}, a request holds at most {max_io_size} bytes")
            }
            Self::PhysicalBlockSize { size } => write!(
                f,
                "physical block size is {size}, it must be a power of two from {SECTOR} to {MAX_BLOCK_SIZE}"
            ),
            Self::Capacity { sectors } => write!(f, "device has {sectors} sectors, at most {MAX_SECTORS} are possible"),
            Self::BlockSizeChanged { was, is } => write!(f, "logical block size changed from {was} to {is}"),
            Self::CacheAppeared => f.write_str("device has a volatile cache now, which it had not before"),
        }
    }
}

impl Failure for OpenError {
    fn errno(&self) -> Errno {
        Errno::EINVAL
    }
}

#[cfg(test)]
mod tests;
