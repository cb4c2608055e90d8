// SPDX-License-Identifier: GPL-2.0

//! What the connection manager carries: the private data of a request and of the answer to it.

use zerocopy::little_endian::{
    I16,
    U16,
    U32, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::{
    FLAG_NEW_RKEY,
    MAGIC,
    VERSION, //
};

/// Bit of [`ConnReq`]: the request may create a session.
const FIRST_CONN: u8 = 1 << 0;

/// Private data of a connection request (`struct rtrs_msg_conn_req`).
#[repr(C)]
#[derive(
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
    Clone,
    Copy,
    Default,
    Debug,
    PartialEq,
    Eq,
)]
pub struct ConnReq {
    /// 0: the connection manager looks at this byte if the address family is InfiniBand.
    cma_version: u8,
    /// 0, for the same reason.
    ip_version: u8,
    /// [`MAGIC`].
    magic: U16,
    /// Version of the client.
    version: U16,
    /// Index of this connection in its path.
    cid: U16,
    /// Number of connections of the path.
    cid_num: U16,
    /// Counts the attempts to connect this path, from 1.
    recon_cnt: U16,
    /// UUID of the path.
    sess_uuid: [u8; 16],
    /// UUID of the session.
    paths_uuid: [u8; 16],
    /// Bit 0: the request may create a session.
    first_conn: u8,
    /// Zero.
    reserved: [u8; 11],
}

const _: () = assert!(size_of::<ConnReq>() == 56);

/// Fields of a [`ConnReq`] as host integers, to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnReqFields {
    /// Index of this connection in its path.
    pub cid: u16,
    /// Number of connections of the path.
    pub cid_num: u16,
    /// Counts the attempts to connect this path, from 1.
    pub recon_cnt: u16,
    /// UUID of the path (`sess_uuid`).
    pub path: [u8; 16],
    /// UUID of the session (`paths_uuid`).
    pub session: [u8; 16],
    /// Whether the request may create a session.
    pub first_conn: bool,
}

impl ConnReq {
    /// Makes a request of the own version.
    pub fn new(fields: &ConnReqFields) -> Self {
        Self {
            magic: MAGIC.into(),
            version: VERSION.into(),
            cid: fields.cid.into(),
            cid_num: fields.cid_num.into(),
            recon_cnt: fields.recon_cnt.into(),
            sess_uuid: fields.path,
            paths_uuid: fields.session,
            first_conn: if fields.first_conn { FIRST_CONN } else { 0 },
            ..Self::default()
        }
    }

    /// Should be [`MAGIC`].
    pub fn magic(&self) -> u16 {
        self.magic.get()
    }

    /// Version of the client.
    pub fn version(&self) -> u16 {
        self.version.get()
    }

    /// What the request says, unchecked.
    pub fn fields(&self) -> ConnReqFields {
        ConnReqFields {
            cid: self.cid.get(),
            cid_num: self.cid_num.get(),
            recon_cnt: self.recon_cnt.get(),
            path: self.sess_uuid,
            session: self.paths_uuid,
            first_conn: self.first_conn & FIRST_CONN != 0,
        }
    }
}

/// Private data of an accepted or rejected connection (`struct rtrs_msg_conn_rsp`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct ConnRsp {
    /// [`MAGIC`].
    magic: U16,
    /// Version of the server.
    version: U16,
    /// 0 if accepted, else a negative error number.
    code: I16,
    /// Number of chunks.
    queue_depth: U16,
    /// Longest data of a request in bytes.
    max_io_size: U32,
    /// Longest user message and header together in bytes.
    max_hdr_size: U32,
    /// [`FLAG_NEW_RKEY`].
    flags: U32,
    /// Zero.
    reserved: [u8; 36],
}

const _: () = assert!(size_of::<ConnRsp>() == 56);

/// Fields of a [`ConnRsp`] that accepts, as host integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnRspFields {
    /// Number of chunks.
    pub queue_depth: u16,
    /// Longest data of a request in bytes.
    pub max_io_size: u32,
    /// Longest user message and header together in bytes.
    pub max_hdr_size: u32,
    /// Whether each answer brings a new key for its chunk.
    pub new_rkey: bool,
}

impl ConnRsp {
    /// Makes the answer that accepts.
    pub fn accept(fields: &ConnRspFields) -> Self {
        Self {
            queue_depth: fields.queue_depth.into(),
            max_io_size: fields.max_io_size.into(),
            max_hdr_size: fields.max_hdr_size.into(),
            flags: if fields.new_rkey { FLAG_NEW_RKEY } else { 0 }.into(),
            ..Self::reject(0)
        }
    }

    /// Makes the answer that rejects with a negative error number.
    pub fn reject(code: i16) -> Self {
        Self {
            magic: MAGIC.into(),
            version: VERSION.into(),
            code: code.into(),
            queue_depth: U16::ZERO,
            max_io_size: U32::ZERO,
            max_hdr_size: U32::ZERO,
            flags: U32::ZERO,
            reserved: [0; 36],
        }
    }

    /// Should be [`MAGIC`].
    pub fn magic(&self) -> u16 {
        self.magic.get()
    }

    /// Version of the server.
    pub fn version(&self) -> u16 {
        self.version.get()
    }

    /// 0 or a negative error number, unchecked.
    pub fn code(&self) -> i16 {
        self.code.get()
    }

    /// What the answer says, unchecked.
    pub fn fields(&self) -> ConnRspFields {
        ConnRspFields {
            queue_depth: self.queue_depth.get(),
            max_io_size: self.max_io_size.get(),
            max_hdr_size: self.max_hdr_size.get(),
            new_rkey: self.flags.get() & FLAG_NEW_RKEY != 0,
        }
    }
}
