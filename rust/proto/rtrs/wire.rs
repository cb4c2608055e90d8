// SPDX-License-Identifier: GPL-2.0

//! Structures and fixed numbers of the RTRS wire format.
//!
//! All integers are little endian on the wire and host integers outside this file; only the 32-bit immediate travels
//! big endian, which is the verbs layer's affair. Reserved bytes are sent as zeros and ignored when received. What is
//! read here is not checked: see [`conn`](super::conn), [`info`](super::info) and [`request`](super::request).
//!
//! C counterpart: `drivers/infiniband/ulp/rtrs/rtrs-pri.h`.

use zerocopy::little_endian::{
    U16,
    U32,
    U64, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

pub use conn::{
    ConnReq,
    ConnReqFields,
    ConnRsp,
    ConnRspFields, //
};

mod conn;

/// First two bytes of everything that the connection manager carries (`RTRS_MAGIC`).
pub const MAGIC: u16 = 0x1bbd;

/// Major version that both sides must have (`RTRS_PROTO_VER_MAJOR`).
pub const VERSION_MAJOR: u8 = 2;

/// Version that is sent: the major in the upper byte, 0 as the minor, which nobody looks at (`RTRS_PROTO_VER`).
pub const VERSION: u16 = 0x0200;

/// Port of the server if nobody says otherwise (`RTRS_PORT`).
pub const DEFAULT_PORT: u16 = 1234;

/// Most paths of one session (`MAX_PATHS_NUM`).
pub const MAX_PATHS: usize = 128;

/// Most connections of one path that a server accepts.
pub const MAX_CONNECTIONS: u16 = 4096;

/// Size of the buffer for the name of a session in bytes (`NAME_MAX`).
pub const NAME_SPACE: usize = 255;

/// Type of [`InfoReq`] (`RTRS_MSG_INFO_REQ`).
pub const MSG_INFO_REQ: u16 = 0;

/// Type of [`InfoRspHdr`] (`RTRS_MSG_INFO_RSP`).
pub const MSG_INFO_RSP: u16 = 1;

/// Type of [`WriteHdr`] (`RTRS_MSG_WRITE`).
pub const MSG_WRITE: u16 = 2;

/// Type of [`ReadHdr`] (`RTRS_MSG_READ`).
pub const MSG_READ: u16 = 3;

/// Type of [`RkeyRsp`] (`RTRS_MSG_RKEY_RSP`).
pub const MSG_RKEY_RSP: u16 = 4;

/// In [`ReadHdr`]: the answer has to invalidate the key of the descriptor (`RTRS_MSG_NEED_INVAL_F`).
pub const FLAG_NEED_INVAL: u16 = 1 << 0;

/// In [`ConnRsp`]: each answer brings a new key for its chunk (`RTRS_MSG_NEW_RKEY_F`).
pub const FLAG_NEW_RKEY: u32 = 1 << 1;

/// First message of the client on a complete path (`struct rtrs_msg_info_req`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct InfoReq {
    /// [`MSG_INFO_REQ`].
    kind: U16,
    /// Name of the session, ended by a zero.
    name: [u8; NAME_SPACE],
    /// Zero.
    reserved: [u8; 15],
}

const _: () = assert!(size_of::<InfoReq>() == 272);

impl InfoReq {
    /// Makes a request; `name` is ended by a zero.
    pub fn new(name: [u8; NAME_SPACE]) -> Self {
        Self {
            kind: MSG_INFO_REQ.into(),
            name,
            reserved: [0; 15],
        }
    }

    /// Should be [`MSG_INFO_REQ`].
    pub fn kind(&self) -> u16 {
        self.kind.get()
    }

    /// Bytes of the name with whatever follows it.
    pub fn name(&self) -> &[u8; NAME_SPACE] {
        &self.name
    }
}

/// First part of the server's answer to [`InfoReq`]; descriptors follow (`struct rtrs_msg_info_rsp`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct InfoRspHdr {
    /// [`MSG_INFO_RSP`].
    kind: U16,
    /// Number of descriptors that follow.
    sg_cnt: U16,
    /// Zero.
    reserved: [u8; 4],
}

const _: () = assert!(size_of::<InfoRspHdr>() == 8);

impl InfoRspHdr {
    /// Makes the part in front of `sg_cnt` descriptors.
    pub fn new(sg_cnt: u16) -> Self {
        Self {
            kind: MSG_INFO_RSP.into(),
            sg_cnt: sg_cnt.into(),
            reserved: [0; 4],
        }
    }

    /// Should be [`MSG_INFO_RSP`].
    pub fn kind(&self) -> u16 {
        self.kind.get()
    }

    /// Number of descriptors that should follow.
    pub fn sg_cnt(&self) -> u16 {
        self.sg_cnt.get()
    }
}

/// Remote memory (`struct rtrs_sg_desc`).
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
pub struct Desc {
    /// Address in the owner's memory region.
    addr: U64,
    /// Key that allows the other side to write there.
    key: U32,
    /// Length in bytes.
    len: U32,
}

const _: () = assert!(size_of::<Desc>() == 16);

impl Desc {
    /// Describes `len` bytes at `addr`.
    pub fn new(addr: u64, key: u32, len: u32) -> Self {
        Self {
            addr: addr.into(),
            key: key.into(),
            len: len.into(),
        }
    }

    /// Address in the owner's memory region.
    pub fn addr(&self) -> u64 {
        self.addr.get()
    }

    /// Key that allows the other side to write there.
    pub fn key(&self) -> u32 {
        self.key.get()
    }

    /// Length in bytes.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a field, not the size of a collection"
    )]
    pub fn len(&self) -> u32 {
        self.len.get()
    }
}

/// Header of a request that sends data (`struct rtrs_msg_rdma_write`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct WriteHdr {
    /// [`MSG_WRITE`].
    kind: U16,
    /// Length of the user message in bytes.
    usr_len: U16,
}

const _: () = assert!(size_of::<WriteHdr>() == 4);

impl WriteHdr {
    /// Makes the header behind a user message of `usr_len` bytes.
    pub fn new(usr_len: u16) -> Self {
        Self {
            kind: MSG_WRITE.into(),
            usr_len: usr_len.into(),
        }
    }

    /// Type of the message, which tells whether this is a [`ReadHdr`].
    pub fn kind(&self) -> u16 {
        self.kind.get()
    }

    /// Length of the user message in bytes; stands at the same place in a [`ReadHdr`].
    pub fn usr_len(&self) -> u16 {
        self.usr_len.get()
    }
}

/// Header of a request that asks for data; descriptors follow (`struct rtrs_msg_rdma_read`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct ReadHdr {
    /// [`MSG_READ`].
    kind: U16,
    /// Length of the user message in bytes.
    usr_len: U16,
    /// [`FLAG_NEED_INVAL`].
    flags: U16,
    /// Number of descriptors that follow, 0 or 1.
    sg_cnt: U16,
}

const _: () = assert!(size_of::<ReadHdr>() == 8);

impl ReadHdr {
    /// Makes the header in front of `sg_cnt` descriptors and behind a user message of `usr_len` bytes.
    pub fn new(usr_len: u16, flags: u16, sg_cnt: u16) -> Self {
        Self {
            kind: MSG_READ.into(),
            usr_len: usr_len.into(),
            flags: flags.into(),
            sg_cnt: sg_cnt.into(),
        }
    }

    /// [`FLAG_NEED_INVAL`].
    pub fn flags(&self) -> u16 {
        self.flags.get()
    }

    /// Number of descriptors that should follow.
    pub fn sg_cnt(&self) -> u16 {
        self.sg_cnt.get()
    }
}

/// New key of a chunk, sent with the answer to the request in it (`struct rtrs_msg_rkey_rsp`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct RkeyRsp {
    /// [`MSG_RKEY_RSP`].
    kind: U16,
    /// Number of the chunk.
    buf_id: U16,
    /// Its new key.
    rkey: U32,
}

const _: () = assert!(size_of::<RkeyRsp>() == 8);

impl RkeyRsp {
    /// Announces the new key of chunk `buf_id`.
    pub fn new(buf_id: u16, rkey: u32) -> Self {
        Self {
            kind: MSG_RKEY_RSP.into(),
            buf_id: buf_id.into(),
            rkey: rkey.into(),
        }
    }

    /// Should be [`MSG_RKEY_RSP`].
    pub fn kind(&self) -> u16 {
        self.kind.get()
    }

    /// Number of the chunk.
    pub fn buf_id(&self) -> u16 {
        self.buf_id.get()
    }

    /// Its new key.
    pub fn rkey(&self) -> u32 {
        self.rkey.get()
    }
}
