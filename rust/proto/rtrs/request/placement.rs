// SPDX-License-Identifier: GPL-2.0

//! Where a client puts what.

use zerocopy::IntoBytes as _;

use super::{
    check_message,
    check_target,
    RequestError,
    Transfer,
    MAX_HEADER, //
};
use crate::rtrs::{
    geometry::Geometry,
    wire::{
        Desc,
        ReadHdr,
        WriteHdr,
        FLAG_NEED_INVAL, //
    }, //
};

/// How a client places a request in its chunk.
///
/// # Invariants
///
/// `header_len` is at most [`MAX_HEADER`]; header, message and data fit the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Header, from the start.
    header: [u8; MAX_HEADER],
    /// Its length in bytes.
    header_len: usize,
    /// Where in the chunk the client writes to.
    remote_off: u32,
    /// Offset of the header in the chunk.
    header_off: u32,
}

impl Placement {
    /// Places a request with `data_len` bytes of data (or room for them) and a user message of `usr_len` bytes.
    pub fn new(
        geometry: &Geometry,
        transfer: Transfer,
        data_len: u32,
        usr_len: u16,
    ) -> Result<Self, RequestError> {
        match transfer {
            Transfer::Read(None) if data_len != 0 => {
                return Err(RequestError::NoTarget { data_len })
            }
            Transfer::Read(Some(target)) => check_target(target, data_len)?,
            Transfer::Read(None) | Transfer::Write => {}
        }
        let (header, header_len) = write_header(transfer, usr_len);
        check_message(geometry, usr_len, header_len)?;
        let header_off = data_len.saturating_add(usr_len.into());
        let room = geometry.chunk_size().checked_sub(header_off);
        if room.is_none_or(|room| usize::try_from(room).is_ok_and(|room| header_len > room)) {
            return Err(RequestError::TooLong {
                data_len,
                usr_len,
                chunk_size: geometry.chunk_size(),
            });
        }
        // INVARIANT: `write_header` returns no more; the end was just checked.
        Ok(Self {
            header,
            header_len,
            remote_off: if matches!(transfer, Transfer::Write) {
                0
            } else {
                data_len
            },
            header_off,
        })
    }

    /// Header, to be sent behind the user message.
    #[inline]
    pub fn header(&self) -> &[u8] {
        self.header.get(..self.header_len).unwrap_or_default()
    }

    /// Offset in the chunk that the client writes to: data if it sends any, message and header.
    #[inline]
    pub fn remote_off(&self) -> u32 {
        self.remote_off
    }

    /// Offset of the header in the chunk, for [`imm::request`](crate::rtrs::imm::request).
    #[inline]
    pub fn header_off(&self) -> u32 {
        self.header_off
    }
}

/// The header of a request, and its length in bytes.
fn write_header(transfer: Transfer, usr_len: u16) -> ([u8; MAX_HEADER], usize) {
    let mut out = [0; MAX_HEADER];
    // The longest is what `out` has room for, so no write can fail.
    let len = match transfer {
        Transfer::Write => {
            let _ = WriteHdr::new(usr_len).write_to_prefix(&mut out);
            size_of::<WriteHdr>()
        }
        Transfer::Read(None) => {
            let _ = ReadHdr::new(usr_len, 0, 0).write_to_prefix(&mut out);
            size_of::<ReadHdr>()
        }
        Transfer::Read(Some(target)) => {
            let flags = if target.invalidate {
                FLAG_NEED_INVAL
            } else {
                0
            };
            let desc = Desc::new(target.addr, target.rkey, target.len);
            let _ = ReadHdr::new(usr_len, flags, 1).write_to_prefix(&mut out);
            let _ = desc.write_to_suffix(&mut out);
            MAX_HEADER
        }
    };
    (out, len)
}
