// SPDX-License-Identifier: GPL-2.0

//! What can be wrong with a message.

use core::fmt;

use super::SECTOR;
use crate::{
    errno::{
        Errno,
        Failure, //
    },
    rnbd::{
        op::Op,
        path::DevicePathError, //
    }, //
};

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// Too short.
    Short {
        /// Its length.
        len: usize,
        /// What it must have at least.
        expected: usize,
    },
    /// A type that a client does not send.
    Kind {
        /// The type.
        kind: u16,
    },
    /// The answer does not fit what the client has room for.
    ReplyRoom {
        /// The room in bytes.
        room: u32,
        /// Length of the answer.
        expected: usize,
    },
    /// An access mode that does not exist.
    Access {
        /// Its number.
        mode: u8,
    },
    /// The path of the device.
    Path(DevicePathError),
    /// An operation that does not exist.
    Op {
        /// Its number.
        op: u8,
    },
    /// Data goes the other way than the operation says.
    Direction {
        /// The operation.
        op: Op,
    },
    /// The data has another length than the operation says.
    DataLen {
        /// The operation.
        op: Op,
        /// Length of the data.
        data_len: u32,
        /// What it must be.
        expected: u32,
    },
    /// A size that the operation cannot have.
    Size {
        /// The operation.
        op: Op,
        /// The size in bytes.
        bytes: u32,
    },
    /// A range that ends beyond what any device can have.
    End {
        /// First sector.
        sector: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// The device was opened to be read.
    ReadOnly {
        /// The operation.
        op: Op,
    },
    /// Begin or length are not whole blocks of the device.
    Unaligned {
        /// Logical block size in bytes.
        block_size: u32,
    },
    /// Beyond the end of the device.
    BeyondEnd {
        /// First sector.
        sector: u64,
        /// Capacity of the device in sectors.
        capacity: u64,
    },
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { len, expected } => write!(f, "message has {len} bytes, it must have {expected}"),
            Self::Kind { kind } => write!(f, "message has type {kind}, which no client sends"),
            Self::ReplyRoom { room, expected } => {
                write!(f, "client has room for {room} bytes, the answer has {expected}")
            }
            Self::Access { mode } => write!(f, "access mode is {mode}, it must be from 0 to 2"),
            Self::Path(error) => fmt::Display::fmt(&error, f),
            Self::Op { op } => write!(f, "operation is {op}, it must be from 0 to 5"),
            Self::Direction { op } => write!(f, "data of a {op} goes the wrong way"),
            Self::DataLen { op, data_len, expected } => {
                write!(f, "{op} comes with {data_len} bytes of data, it must be {expected}")
            }
            Self::Size { op, bytes } => write!(
                f,
                "{op} of {bytes} bytes, it must be a multiple of {SECTOR} and not 0, except that of a flush"
            ),
            Self::End { sector, bytes } => {
                write!(f, "{bytes} bytes from sector {sector} on end beyond what a device can have")
            }
            Self::ReadOnly { op } => write!(f, "{op} on a device that was opened read-only"),
            Self::Unaligned { block_size } => write!(f, "begin or length is no multiple of the block size {block_size}"),
            Self::BeyondEnd { sector, capacity } => {
                write!(f, "request at sector {sector} ends beyond the {capacity} sectors of the device")
            }
        }
    }
}

impl Failure for MessageError {
    fn errno(&self) -> Errno {
        match self {
            Self::Path(error) => error.errno(),
            Self::Op { .. } => Errno::EOPNOTSUPP,
            Self::ReadOnly { .. } => Errno::EROFS,
            // As the block layer has it.
            Self::BeyondEnd { .. } => Errno::EIO,
            _ => Errno::EINVAL,
        }
    }
}
