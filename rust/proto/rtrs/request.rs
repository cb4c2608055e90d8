// SPDX-License-Identifier: GPL-2.0

//! Requests: how one lies in its chunk, written by the client and read by the server.
//!
//! ```text
//! writes data   chunk: data | user message | header       the client sends all of it
//! reads data    chunk: (room) | user message | header     the client leaves the first part out
//! ```
//!
//! The immediate names the chunk and the offset of the header; the length of the user message stands in the header, and
//! what lies in front of the message is the data, or the room for it. The client can write the chunk at any time, so
//! the server copies the header and the message once each and looks at nothing but its copies.
//!
//! C counterpart: `rtrs_clt_write_req()` and `rtrs_clt_read_req()` in `rtrs-clt.c`, `process_read()` and
//! `process_write()` in `rtrs-srv.c`.

use core::ops::Range;
use zerocopy::FromBytes as _;

use super::{
    geometry::Geometry,
    wire::{
        Desc,
        ReadHdr,
        WriteHdr,
        FLAG_NEED_INVAL,
        MSG_READ,
        MSG_WRITE, //
    }, //
};

pub use error::RequestError;
pub use placement::Placement;

mod error;
mod placement;

/// Longest header in bytes: that of a request for data, with one descriptor.
pub const MAX_HEADER: usize = size_of::<ReadHdr>() + size_of::<Desc>();

/// [`MAX_HEADER`] for offsets.
const MAX_HEADER_LEN: u32 = 24;

// CAST: Widening, `From` is not const.
const _: () = assert!(MAX_HEADER == MAX_HEADER_LEN as usize);

/// Memory of the client that the server may write the answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address in the client's memory region.
    pub addr: u64,
    /// Key of the region.
    pub rkey: u32,
    /// Length in bytes, not 0.
    pub len: u32,
    /// Whether the answer has to invalidate the key.
    pub invalidate: bool,
}

/// Which way the data of a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// From client to server; it is in the chunk.
    Write,
    /// From server to client, into the target; without one there is no data.
    Read(Option<Target>),
}

/// A request as the server sees it.
///
/// # Invariants
///
/// * `data_len + usr_len` is the offset of the header, inside of the chunk.
/// * A target is not empty, not longer than the data, and ends below the end of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Way of the data.
    transfer: Transfer,
    /// Data, or room for it, at the start of the chunk, in bytes.
    data_len: u32,
    /// User message behind it, in bytes.
    usr_len: u16,
}

impl Request {
    /// The part of the chunk that [`parse`](Self::parse) has to see, for a header at offset `off` of the chunk.
    ///
    /// Empty for an offset outside of the chunk.
    pub fn header_range(geometry: &Geometry, off: u32) -> Range<u32> {
        let end = off.saturating_add(MAX_HEADER_LEN);
        off..end.min(geometry.chunk_size()).max(off)
    }

    /// Reads a header that stands at offset `off` of its chunk.
    ///
    /// `header` is the caller's own copy of what [`header_range`](Self::header_range) says.
    pub fn parse(geometry: &Geometry, off: u32, header: &[u8]) -> Result<Self, RequestError> {
        let room = geometry.chunk_size().saturating_sub(off);
        let short = RequestError::HeaderCut { off, room };
        let (start, _) = WriteHdr::read_from_prefix(header).map_err(|_| short)?;
        let usr_len = start.usr_len();
        let (transfer, len) = match start.kind() {
            MSG_WRITE => (Transfer::Write, size_of::<WriteHdr>()),
            MSG_READ => {
                let (target, len) = parse_read(header, short)?;
                (Transfer::Read(target), len)
            }
            kind => return Err(RequestError::Kind { kind }),
        };
        // By the range the header was copied from, but a caller may have copied more.
        if u32::try_from(len).map_or(true, |len| len > room) {
            return Err(short);
        }
        let data_len = off
            .checked_sub(usr_len.into())
            .ok_or(RequestError::UsrLen { usr_len, off })?;
        check_message(geometry, usr_len, len)?;
        match transfer {
            Transfer::Read(Some(target)) => check_target(target, data_len)?,
            Transfer::Read(None) if data_len != 0 => {
                return Err(RequestError::NoTarget { data_len })
            }
            Transfer::Read(None) | Transfer::Write => {}
        }
        // INVARIANT: All checked above; `off` is inside, because a header fits behind it.
        Ok(Self {
            transfer,
            data_len,
            usr_len,
        })
    }

    /// Which way the data goes.
    #[inline]
    pub fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// Memory that the answer may be written to.
    #[inline]
    pub fn target(&self) -> Option<Target> {
        match self.transfer {
            Transfer::Write => None,
            Transfer::Read(target) => target,
        }
    }

    /// Whether the client sent data, or would have if there were any.
    #[inline]
    pub fn is_write(&self) -> bool {
        matches!(self.transfer, Transfer::Write)
    }

    /// Data, or room for it, at the start of the chunk, in bytes.
    #[inline]
    pub fn data_len(&self) -> u32 {
        self.data_len
    }

    /// Length of the user message in bytes.
    #[inline]
    pub fn usr_len(&self) -> u16 {
        self.usr_len
    }

    /// Where in the chunk the user message lies.
    #[inline]
    pub fn usr_range(&self) -> Range<u32> {
        self.data_len..self.data_len.saturating_add(self.usr_len.into())
    }

    /// Bytes the request moved or has room for: what the statistics count.
    #[inline]
    pub fn counted_bytes(&self) -> u32 {
        self.usr_range().end
    }
}

/// Reads the rest of a header that asks for data; returns its target and its length in bytes.
fn parse_read(header: &[u8], short: RequestError) -> Result<(Option<Target>, usize), RequestError> {
    let (start, rest) = ReadHdr::read_from_prefix(header).map_err(|_| short)?;
    match start.sg_cnt() {
        0 => Ok((None, size_of::<ReadHdr>())),
        1 => {
            let (desc, _) = Desc::read_from_prefix(rest).map_err(|_| short)?;
            let target = Target {
                addr: desc.addr(),
                rkey: desc.key(),
                len: desc.len(),
                invalidate: start.flags() & FLAG_NEED_INVAL != 0,
            };
            Ok((Some(target), MAX_HEADER))
        }
        sg_cnt => Err(RequestError::Descriptors { sg_cnt }),
    }
}

/// Checks that message and header have the length a server expects.
fn check_message(geometry: &Geometry, usr_len: u16, header: usize) -> Result<(), RequestError> {
    let len = usize::from(usr_len).saturating_add(header);
    let max_hdr_size = geometry.max_hdr_size();
    match u32::try_from(len) {
        Ok(len) if len <= max_hdr_size => Ok(()),
        _ => Err(RequestError::Message { len, max_hdr_size }),
    }
}

/// Checks the memory that the client offers for an answer of at most `data_len` bytes.
fn check_target(target: Target, data_len: u32) -> Result<(), RequestError> {
    let len = target.len;
    if len == 0 || len > data_len {
        return Err(RequestError::TargetLen { len, data_len });
    }
    match target.addr.checked_add(len.into()) {
        Some(_) => Ok(()),
        None => Err(RequestError::TargetEnd {
            addr: target.addr,
            len,
        }),
    }
}

#[cfg(test)]
mod tests;
