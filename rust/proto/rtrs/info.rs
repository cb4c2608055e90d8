// SPDX-License-Identifier: GPL-2.0

//! The info exchange: the client names its session, the server tells where its chunks are.
//!
//! It takes place on connection 0 when all connections of the path are there. The server describes its chunks in as few
//! pieces as its memory regions need; each piece is a whole number of chunks under one key, and together they are all
//! chunks in order.
//!
//! C counterpart: `process_info_req()` in `rtrs-srv.c`, `process_info_rsp()` in `rtrs-clt.c`.

use core::fmt;
use zerocopy::FromBytes as _;

use super::{
    geometry::{
        ChunkId,
        Geometry, //
    },
    name::{
        NameError,
        SessionName, //
    },
    wire::{
        Desc,
        InfoReq,
        InfoRspHdr,
        MSG_INFO_REQ,
        MSG_INFO_RSP, //
    }, //
};
use crate::errno::{
    Errno,
    Failure, //
};

/// Length of a request in bytes.
pub const INFO_REQ_LEN: usize = size_of::<InfoReq>();

/// Reads the request, which is all that a client may send on a new path.
pub fn parse_request(message: &[u8]) -> Result<SessionName, InfoError> {
    let len = message.len();
    let wire = InfoReq::read_from_bytes(message).map_err(|_| InfoError::RequestLen { len })?;
    if wire.kind() != MSG_INFO_REQ {
        return Err(InfoError::Kind {
            kind: wire.kind(),
            expected: MSG_INFO_REQ,
        });
    }
    SessionName::from_wire(wire.name()).map_err(InfoError::Name)
}

/// The request of a session with this name.
pub fn request(name: &SessionName) -> InfoReq {
    InfoReq::new(name.to_wire())
}

/// Length in bytes of an answer with `descriptors` descriptors.
pub const fn response_len(descriptors: u16) -> usize {
    // CAST: Widening, `From` is not const; at most 1 MiB.
    size_of::<InfoRspHdr>().saturating_add(size_of::<Desc>().saturating_mul(descriptors as usize))
}

/// Length in bytes of the longest answer that a server with these chunks may send: one descriptor for each.
pub const fn max_response_len(geometry: &Geometry) -> usize {
    response_len(geometry.queue_depth())
}

/// First part of the answer, in front of `descriptors` [`Desc`]s.
pub fn response_header(descriptors: u16) -> InfoRspHdr {
    InfoRspHdr::new(descriptors)
}

/// How a server divides its chunks into memory regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Number of regions, which divides the queue depth.
    pub regions: u16,
    /// Chunks in each.
    pub chunks: u16,
}

impl Division {
    /// As few regions as possible of at most `max_chunks` chunks each (device limit `max_fast_reg_page_list_len`).
    ///
    /// A client refuses a number of regions that does not divide the queue depth. 0 counts as 1.
    pub fn new(geometry: &Geometry, max_chunks: u32) -> Self {
        let depth = geometry.queue_depth();
        let most = u16::try_from(max_chunks)
            .unwrap_or(u16::MAX)
            .clamp(1, depth);
        // 1 divides everything, so there is always one.
        let chunks = (1..=most)
            .rev()
            .find(|chunks| divides(*chunks, depth))
            .unwrap_or(1);
        Self {
            regions: depth.checked_div(chunks).unwrap_or(depth),
            chunks,
        }
    }
}

/// Whether `number` is a multiple of `divisor`.
fn divides(divisor: u16, number: u16) -> bool {
    number.checked_rem(divisor) == Some(0)
}

/// The chunks as the server describes them, checked to be complete.
///
/// # Invariants
///
/// Each descriptor stands for at least one chunk and ends below the end of the address space; together they stand for
/// exactly as many chunks as the geometry has.
#[derive(Clone, Copy, Debug)]
pub struct InfoResponse<'a> {
    /// The descriptors.
    descriptors: &'a [Desc],
    /// The chunks.
    geometry: Geometry,
}

impl<'a> InfoResponse<'a> {
    /// Reads the answer of a server with these chunks.
    pub fn parse(geometry: &Geometry, message: &'a [u8]) -> Result<Self, InfoError> {
        let len = message.len();
        let (header, rest) = InfoRspHdr::ref_from_prefix(message)
            .map_err(|_| InfoError::ResponseLen { len, sg_cnt: 0 })?;
        if header.kind() != MSG_INFO_RSP {
            return Err(InfoError::Kind {
                kind: header.kind(),
                expected: MSG_INFO_RSP,
            });
        }
        let sg_cnt = header.sg_cnt();
        let queue_depth = geometry.queue_depth();
        if !divides(sg_cnt, queue_depth) {
            return Err(InfoError::Descriptors {
                sg_cnt,
                queue_depth,
            });
        }
        let descriptors =
            <[Desc]>::ref_from_bytes(rest).map_err(|_| InfoError::ResponseLen { len, sg_cnt })?;
        if descriptors.len() != usize::from(sg_cnt) {
            return Err(InfoError::ResponseLen { len, sg_cnt });
        }
        let mut chunks = 0u32;
        for desc in descriptors {
            chunks = chunks.saturating_add(check_descriptor(geometry, desc)?);
        }
        if chunks != u32::from(queue_depth) {
            return Err(InfoError::Chunks {
                chunks,
                queue_depth,
            });
        }
        // INVARIANT: Just checked.
        Ok(Self {
            descriptors,
            geometry: *geometry,
        })
    }

    /// Where each chunk is: its number, its address and its key, in order; one for each chunk there is.
    pub fn chunks(&self) -> impl Iterator<Item = (ChunkId, u64, u32)> + 'a {
        let size = self.geometry.chunk_size();
        let places = self.descriptors.iter().flat_map(move |desc| {
            let chunks = desc.len().checked_div(size).unwrap_or(0);
            // By the invariants no address overflows.
            (0..chunks).map(move |index| {
                let off = u64::from(index).saturating_mul(size.into());
                (desc.addr().saturating_add(off), desc.key())
            })
        });
        self.geometry
            .chunks()
            .zip(places)
            .map(|(chunk, (addr, rkey))| (chunk, addr, rkey))
    }
}

/// Checks one descriptor; returns the number of chunks it stands for.
fn check_descriptor(geometry: &Geometry, desc: &Desc) -> Result<u32, InfoError> {
    let chunk_size = geometry.chunk_size();
    let (addr, len) = (desc.addr(), desc.len());
    if len == 0 || len.checked_rem(chunk_size) != Some(0) {
        return Err(InfoError::DescriptorLen { len, chunk_size });
    }
    match addr.checked_add(len.into()) {
        Some(_) => Ok(len.checked_div(chunk_size).unwrap_or(0)),
        None => Err(InfoError::DescriptorEnd { addr, len }),
    }
}

/// What is wrong with a message of the info exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoError {
    /// A request of the wrong length.
    RequestLen {
        /// Its length in bytes.
        len: usize,
    },
    /// Another type of message.
    Kind {
        /// Its type.
        kind: u16,
        /// What it must be.
        expected: u16,
    },
    /// The name of the session.
    Name(NameError),
    /// An answer whose length does not fit the number of descriptors.
    ResponseLen {
        /// Its length in bytes.
        len: usize,
        /// Number of descriptors.
        sg_cnt: u16,
    },
    /// A number of descriptors that does not divide the queue depth.
    Descriptors {
        /// Their number.
        sg_cnt: u16,
        /// Number of chunks.
        queue_depth: u16,
    },
    /// A descriptor that is no whole number of chunks.
    DescriptorLen {
        /// Its length in bytes.
        len: u32,
        /// Length of a chunk in bytes.
        chunk_size: u32,
    },
    /// A descriptor that ends beyond the address space.
    DescriptorEnd {
        /// Its address.
        addr: u64,
        /// Its length in bytes.
        len: u32,
    },
    /// More or fewer chunks than there are.
    Chunks {
        /// Number of those described.
        chunks: u32,
        /// Number of chunks.
        queue_depth: u16,
    },
}

impl fmt::Display for InfoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RequestLen { len } => write!(
                f,
                "info request has {len} bytes, it must have {INFO_REQ_LEN}"
            ),
            Self::Kind { kind, expected } => {
                write!(f, "message has type {kind}, it must be {expected}")
            }
            Self::Name(error) => fmt::Display::fmt(&error, f),
            Self::ResponseLen { len, sg_cnt } => write!(
                f,
                "info response has {len} bytes, with {sg_cnt} descriptors it must have {}",
                response_len(sg_cnt)
            ),
            Self::Descriptors {
                sg_cnt,
                queue_depth,
            } => {
                write!(f, "info response has {sg_cnt} descriptors, which does not divide {queue_depth} chunks")
            }
            Self::DescriptorLen { len, chunk_size } => {
                write!(f, "descriptor has {len} bytes, it must be a multiple of the chunk size {chunk_size}")
            }
            Self::DescriptorEnd { addr, len } => {
                write!(
                    f,
                    "descriptor of {len} bytes at {addr:#x} ends beyond the address space"
                )
            }
            Self::Chunks {
                chunks,
                queue_depth,
            } => {
                write!(
                    f,
                    "info response describes {chunks} chunks, there are {queue_depth}"
                )
            }
        }
    }
}

impl Failure for InfoError {
    fn errno(&self) -> Errno {
        Errno::EINVAL
    }
}

#[cfg(test)]
mod tests;
