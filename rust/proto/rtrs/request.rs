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

use core::{
    fmt,
    ops::Range, //
};
use zerocopy::{
    FromBytes as _,
    IntoBytes as _, //
};

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
use crate::errno::{
    Errno,
    Failure, //
};

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

    /// Offset of the header in the chunk, for [`imm::request`](super::imm::request).
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn geometry() -> Geometry {
        Geometry::new(512, 126_976, 4096).unwrap()
    }

    fn target(len: u32) -> Target {
        Target {
            addr: 0xff11_0000_0344_4000,
            rkey: 0x452,
            len,
            invalidate: true,
        }
    }

    /// Parses a header at `off` that is cut where the chunk ends.
    fn parse(off: u32, header: &[u8]) -> Result<Request, RequestError> {
        let range = Request::header_range(&geometry(), off);
        let room = (range.end - range.start) as usize;
        Request::parse(&geometry(), off, &header[..header.len().min(room)])
    }

    fn read_header(usr_len: u16, sg_cnt: u16, len: u32) -> [u8; MAX_HEADER] {
        let mut out = [0; MAX_HEADER];
        ReadHdr::new(usr_len, 1, sg_cnt)
            .write_to_prefix(&mut out)
            .unwrap();
        Desc::new(0x1000, 7, len).write_to_suffix(&mut out).unwrap();
        out
    }

    #[test]
    fn placements_read_back() {
        let cases = [
            (Transfer::Write, 4096, 32, 4, 0),
            (Transfer::Write, 0, 8, 4, 0),
            (Transfer::Read(Some(target(4096))), 4096, 32, 24, 4096),
            (Transfer::Read(Some(target(1))), 4096, 32, 24, 4096),
            (Transfer::Read(None), 0, 32, 8, 0),
        ];
        for (transfer, data_len, usr_len, header_len, remote_off) in cases {
            let placement = Placement::new(&geometry(), transfer, data_len, usr_len).unwrap();
            assert_eq!(placement.header().len(), header_len);
            assert_eq!(placement.remote_off(), remote_off);
            assert_eq!(placement.header_off(), data_len + u32::from(usr_len));
            let request = parse(placement.header_off(), placement.header()).unwrap();
            assert_eq!(request.transfer(), transfer);
            assert_eq!((request.data_len(), request.usr_len()), (data_len, usr_len));
            assert_eq!(request.usr_range(), data_len..placement.header_off());
        }
    }

    #[test]
    fn message_longer_than_offset() {
        let read = read_header(0xffff, 1, 1);
        assert_eq!(
            parse(32, &read),
            Err(RequestError::UsrLen {
                usr_len: 0xffff,
                off: 32
            })
        );
        let write = WriteHdr::new(33);
        assert_eq!(
            parse(32, write.as_bytes()),
            Err(RequestError::UsrLen {
                usr_len: 33,
                off: 32
            })
        );
        assert!(parse(33, write.as_bytes()).is_ok());
    }

    #[test]
    fn descriptor_longer_than_data() {
        let error = |len| {
            Err(RequestError::TargetLen {
                len,
                data_len: 4096,
            })
        };
        for len in [0, 4097, 131_073, 1 << 20, u32::MAX] {
            assert_eq!(parse(4096 + 32, &read_header(32, 1, len)), error(len));
        }
        assert!(parse(4096 + 32, &read_header(32, 1, 4096)).is_ok());
        let mut wraps = read_header(32, 1, 4096);
        wraps[8..16].fill(0xff);
        assert!(matches!(
            parse(4096 + 32, &wraps),
            Err(RequestError::TargetEnd { .. })
        ));
    }

    #[test]
    fn descriptor_counts() {
        assert_eq!(
            parse(64, &read_header(32, 2, 32)),
            Err(RequestError::Descriptors { sg_cnt: 2 })
        );
        assert_eq!(
            parse(64, &read_header(32, 0, 32)),
            Err(RequestError::NoTarget { data_len: 32 })
        );
        assert!(parse(32, &read_header(32, 0, 32)).is_ok());
    }

    #[test]
    fn header_at_the_end_of_the_chunk() {
        let size = 131_072;
        let write = WriteHdr::new(32);
        for off in [size - 3, size - 1, size, u32::MAX] {
            assert!(
                matches!(
                    parse(off, write.as_bytes()),
                    Err(RequestError::HeaderCut { .. })
                ),
                "{off}"
            );
            // Even if the caller has copied too much.
            let parsed = Request::parse(&geometry(), off, write.as_bytes());
            assert!(
                matches!(parsed, Err(RequestError::HeaderCut { .. })),
                "{off}"
            );
        }
        assert!(parse(size - 4, write.as_bytes()).is_ok());
        let read = read_header(32, 1, 32);
        assert!(matches!(
            parse(size - 23, &read),
            Err(RequestError::HeaderCut { .. })
        ));
        assert!(parse(size - 24, &read).is_ok());
        assert!(matches!(parse(0, &[]), Err(RequestError::HeaderCut { .. })));
        assert_eq!(Request::header_range(&geometry(), u32::MAX).len(), 0);
    }

    #[test]
    fn types_and_lengths() {
        for kind in [0u16, 1, 4, 5, 0xffff] {
            let mut header = read_header(0, 0, 0);
            header[..2].copy_from_slice(&kind.to_le_bytes());
            assert_eq!(parse(0, &header), Err(RequestError::Kind { kind }));
        }
        let longest = WriteHdr::new(4092);
        assert!(parse(8192, longest.as_bytes()).is_ok());
        let error = parse(8192, WriteHdr::new(4093).as_bytes()).unwrap_err();
        assert_eq!(
            error,
            RequestError::Message {
                len: 4097,
                max_hdr_size: 4096
            }
        );
        assert_eq!(error.errno(), Errno::EMSGSIZE);
        assert!(error.to_string().contains("4097"));
    }

    #[test]
    fn own_requests_are_checked() {
        let place =
            |transfer, data_len, usr_len| Placement::new(&geometry(), transfer, data_len, usr_len);
        assert!(place(Transfer::Write, 131_072 - 36, 32).is_ok());
        assert!(matches!(
            place(Transfer::Write, 131_072 - 35, 32),
            Err(RequestError::TooLong { .. })
        ));
        assert!(matches!(
            place(Transfer::Write, u32::MAX, 32),
            Err(RequestError::TooLong { .. })
        ));
        assert!(matches!(
            place(Transfer::Write, 0, 4093),
            Err(RequestError::Message { .. })
        ));
        assert!(matches!(
            place(Transfer::Read(None), 1, 32),
            Err(RequestError::NoTarget { .. })
        ));
        assert!(matches!(
            place(Transfer::Read(Some(target(2))), 1, 32),
            Err(RequestError::TargetLen { .. })
        ));
    }
}
