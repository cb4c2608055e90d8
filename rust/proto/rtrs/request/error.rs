// SPDX-License-Identifier: GPL-2.0

//! What can be wrong with a request.

use core::fmt;

use crate::{
    errno::{
        Errno,
        Failure, //
    },
    rtrs::wire::{
        MSG_READ,
        MSG_WRITE, //
    }, //
};

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The header does not end inside of the chunk.
    HeaderCut {
        /// Offset of the header.
        off: u32,
        /// Bytes from there to the end of the chunk.
        room: u32,
    },
    /// Neither a request to write nor one to read.
    Kind {
        /// Type in the header.
        kind: u16,
    },
    /// The user message begins in front of the chunk.
    UsrLen {
        /// Length of the message.
        usr_len: u16,
        /// Offset of the header.
        off: u32,
    },
    /// Message and header are longer than the server takes.
    Message {
        /// Their length.
        len: usize,
        /// What the server takes.
        max_hdr_size: u32,
    },
    /// More than one target.
    Descriptors {
        /// Number of them.
        sg_cnt: u16,
    },
    /// Data is asked for without a place to put it.
    NoTarget {
        /// Length of the data.
        data_len: u32,
    },
    /// The target is empty, or longer than the data.
    TargetLen {
        /// Length of the target.
        len: u32,
        /// Length of the data.
        data_len: u32,
    },
    /// The target ends beyond the address space.
    TargetEnd {
        /// Its address.
        addr: u64,
        /// Its length.
        len: u32,
    },
    /// The client's own: data, message and header do not fit the chunk.
    TooLong {
        /// Length of the data.
        data_len: u32,
        /// Length of the message.
        usr_len: u16,
        /// Size of the chunk.
        chunk_size: u32,
    },
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::HeaderCut { off, room } => {
                write!(f, "header at offset {off} does not fit the {room} bytes that the chunk has there")
            }
            Self::Kind { kind } => {
                write!(f, "request has type {kind}, it must be {MSG_WRITE} (write) or {MSG_READ} (read)")
            }
            Self::UsrLen { usr_len, off } => {
                write!(f, "user message has {usr_len} bytes, there are {off} in front of the header")
            }
            Self::Message { len, max_hdr_size } => {
                write!(f, "message and header have {len} bytes, at most {max_hdr_size} are allowed")
            }
            Self::Descriptors { sg_cnt } => write!(f, "request has {sg_cnt} descriptors, it must be 0 or 1"),
            Self::NoTarget { data_len } => write!(f, "request for {data_len} bytes has no descriptor for them"),
            Self::TargetLen { len, data_len } => {
                write!(f, "descriptor has {len} bytes, it must be from 1 to the {data_len} of the data")
            }
            Self::TargetEnd { addr, len } => {
                write!(f, "descriptor of {len} bytes at {addr:#x} ends beyond the address space")
            }
            Self::TooLong {
                data_len,
                usr_len,
                chunk_size,
            } => write!(
                f,
                "{data_len} bytes of data and a message of {usr_len} do not fit a chunk of {chunk_size} bytes"
            ),
        }
    }
}

impl Failure for RequestError {
    fn errno(&self) -> Errno {
        match self {
            Self::Message { .. } | Self::TooLong { .. } => Errno::EMSGSIZE,
            _ => Errno::EINVAL,
        }
    }
}
