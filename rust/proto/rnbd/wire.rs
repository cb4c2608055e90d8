// SPDX-License-Identifier: GPL-2.0

//! Structures and fixed numbers of the RNBD wire format.
//!
//! The messages travel as user messages of RTRS, the answers as its data. All integers are little endian on the wire and
//! host integers outside this file. Reserved bytes are sent as zeros and ignored when received: the C client sends
//! whatever is on its stack there, so they must never mean anything. What is read here is not checked: see
//! [`message`](super::message) and [`limits`](super::limits).
//!
//! C counterpart: `drivers/block/rnbd/rnbd-proto.h`.

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

/// Version of the protocol; the minor one never travels (`RNBD_PROTO_VER_MAJOR`).
pub const VERSION: u8 = 2;

/// Size of the buffer for the path of a device in bytes (`NAME_MAX`).
pub const NAME_SPACE: usize = 255;

/// Type of [`SessInfo`] (`RNBD_MSG_SESS_INFO`).
pub const MSG_SESS_INFO: u16 = 0;

/// Type of [`SessInfo`] as an answer (`RNBD_MSG_SESS_INFO_RSP`).
pub const MSG_SESS_INFO_RSP: u16 = 1;

/// Type of [`Open`] (`RNBD_MSG_OPEN`).
pub const MSG_OPEN: u16 = 2;

/// Type of [`OpenRsp`] (`RNBD_MSG_OPEN_RSP`).
pub const MSG_OPEN_RSP: u16 = 3;

/// Type of [`Io`] (`RNBD_MSG_IO`).
pub const MSG_IO: u16 = 4;

/// Type of [`Close`] (`RNBD_MSG_CLOSE`).
pub const MSG_CLOSE: u16 = 5;

/// In [`OpenRsp`]: the device knows forced unit access (`RNBD_FUA`).
pub const CACHE_FUA: u8 = 1 << 0;

/// In [`OpenRsp`]: the device has a volatile cache (`RNBD_WRITEBACK`).
pub const CACHE_WRITEBACK: u8 = 1 << 1;

/// First part of every message (`struct rnbd_msg_hdr`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct Hdr {
    /// Type of the message.
    kind: U16,
    /// Zero.
    padding: [u8; 2],
}

const _: () = assert!(size_of::<Hdr>() == 4);

impl Hdr {
    /// Begins a message of this type.
    fn new(kind: u16) -> Self {
        Self {
            kind: kind.into(),
            padding: [0; 2],
        }
    }

    /// Type of the message.
    pub fn kind(&self) -> u16 {
        self.kind.get()
    }
}

/// Opens a session, and the answer to it (`struct rnbd_msg_sess_info`, `struct rnbd_msg_sess_info_rsp`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct SessInfo {
    /// [`MSG_SESS_INFO`] or [`MSG_SESS_INFO_RSP`].
    hdr: Hdr,
    /// Version of the sender; in the answer the one that both have.
    ver: u8,
    /// Zero.
    reserved: [u8; 31],
}

const _: () = assert!(size_of::<SessInfo>() == 36);

impl SessInfo {
    /// The client's message.
    pub fn request(ver: u8) -> Self {
        Self {
            hdr: Hdr::new(MSG_SESS_INFO),
            ver,
            reserved: [0; 31],
        }
    }

    /// The server's answer.
    pub fn response(ver: u8) -> Self {
        Self {
            hdr: Hdr::new(MSG_SESS_INFO_RSP),
            ..Self::request(ver)
        }
    }

    /// Type of the message.
    pub fn kind(&self) -> u16 {
        self.hdr.kind()
    }

    /// Version.
    pub fn ver(&self) -> u8 {
        self.ver
    }
}

/// Opens a device (`struct rnbd_msg_open`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct Open {
    /// [`MSG_OPEN`].
    hdr: Hdr,
    /// [`Access`](super::access::Access) as a number.
    access_mode: u8,
    /// Zero.
    reserved1: u8,
    /// Path of the device on the server, ended by a zero.
    dev_name: [u8; NAME_SPACE],
    /// Zero.
    reserved: [u8; 3],
}

const _: () = assert!(size_of::<Open>() == 264);

impl Open {
    /// Asks for a device; `dev_name` is ended by a zero.
    pub fn new(access_mode: u8, dev_name: [u8; NAME_SPACE]) -> Self {
        Self {
            hdr: Hdr::new(MSG_OPEN),
            access_mode,
            reserved1: 0,
            dev_name,
            reserved: [0; 3],
        }
    }

    /// Access mode as a number.
    pub fn access_mode(&self) -> u8 {
        self.access_mode
    }

    /// Path of the device with whatever follows it.
    pub fn dev_name(&self) -> &[u8; NAME_SPACE] {
        &self.dev_name
    }
}

/// Closes a device (`struct rnbd_msg_close`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct Close {
    /// [`MSG_CLOSE`].
    hdr: Hdr,
    /// The server's number of the device.
    device_id: U32,
}

const _: () = assert!(size_of::<Close>() == 8);

impl Close {
    /// Closes the device with this number.
    pub fn new(device_id: u32) -> Self {
        Self {
            hdr: Hdr::new(MSG_CLOSE),
            device_id: device_id.into(),
        }
    }

    /// The server's number of the device.
    pub fn device_id(&self) -> u32 {
        self.device_id.get()
    }
}

/// Answer to [`Open`] (`struct rnbd_msg_open_rsp`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct OpenRsp {
    /// [`MSG_OPEN_RSP`].
    hdr: Hdr,
    /// The server's number of the device, unique in the session.
    device_id: U32,
    /// Capacity in sectors of 512 bytes.
    nsectors: U64,
    /// Longest transfer of the device in sectors.
    max_hw_sectors: U32,
    /// Longest range that can be zeroed at once, in sectors.
    max_write_zeroes_sectors: U32,
    /// Longest range that can be discarded at once, in sectors.
    max_discard_sectors: U32,
    /// Unit in which the device discards, in bytes.
    discard_granularity: U32,
    /// Offset of the first such unit, in bytes.
    discard_alignment: U32,
    /// Physical block size in bytes.
    physical_block_size: U16,
    /// Logical block size in bytes.
    logical_block_size: U16,
    /// Most segments of a transfer of the device.
    max_segments: U16,
    /// Longest range that can be erased securely at once, in sectors, as far as 16 bits go; 0 if the device cannot do it.
    secure_discard: U16,
    /// Nobody looks at it.
    obsolete_rotational: u8,
    /// [`CACHE_FUA`], [`CACHE_WRITEBACK`].
    cache_policy: u8,
    /// Zero.
    reserved: [u8; 10],
}

const _: () = assert!(size_of::<OpenRsp>() == 56);

/// Fields of an [`OpenRsp`] as host integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenRspFields {
    /// The server's number of the device, unique in the session.
    pub device_id: u32,
    /// Capacity in sectors of 512 bytes.
    pub nsectors: u64,
    /// Longest transfer of the device in sectors.
    pub max_hw_sectors: u32,
    /// Longest range that can be zeroed at once, in sectors.
    pub max_write_zeroes_sectors: u32,
    /// Longest range that can be discarded at once, in sectors.
    pub max_discard_sectors: u32,
    /// Unit in which the device discards, in bytes.
    pub discard_granularity: u32,
    /// Offset of the first such unit, in bytes.
    pub discard_alignment: u32,
    /// Physical block size in bytes.
    pub physical_block_size: u16,
    /// Logical block size in bytes.
    pub logical_block_size: u16,
    /// Most segments of a transfer of the device.
    pub max_segments: u16,
    /// Longest range that can be erased securely at once, in sectors; 0 if the device cannot do it.
    pub secure_discard: u16,
    /// [`CACHE_FUA`], [`CACHE_WRITEBACK`].
    pub cache_policy: u8,
}

impl OpenRsp {
    /// Makes the answer.
    pub fn new(fields: &OpenRspFields) -> Self {
        Self {
            hdr: Hdr::new(MSG_OPEN_RSP),
            device_id: fields.device_id.into(),
            nsectors: fields.nsectors.into(),
            max_hw_sectors: fields.max_hw_sectors.into(),
            max_write_zeroes_sectors: fields.max_write_zeroes_sectors.into(),
            max_discard_sectors: fields.max_discard_sectors.into(),
            discard_granularity: fields.discard_granularity.into(),
            discard_alignment: fields.discard_alignment.into(),
            physical_block_size: fields.physical_block_size.into(),
            logical_block_size: fields.logical_block_size.into(),
            max_segments: fields.max_segments.into(),
            secure_discard: fields.secure_discard.into(),
            obsolete_rotational: 0,
            cache_policy: fields.cache_policy,
            reserved: [0; 10],
        }
    }

    /// Type of the message.
    pub fn kind(&self) -> u16 {
        self.hdr.kind()
    }

    /// What the answer says, unchecked.
    pub fn fields(&self) -> OpenRspFields {
        OpenRspFields {
            device_id: self.device_id.get(),
            nsectors: self.nsectors.get(),
            max_hw_sectors: self.max_hw_sectors.get(),
            max_write_zeroes_sectors: self.max_write_zeroes_sectors.get(),
            max_discard_sectors: self.max_discard_sectors.get(),
            discard_granularity: self.discard_granularity.get(),
            discard_alignment: self.discard_alignment.get(),
            physical_block_size: self.physical_block_size.get(),
            logical_block_size: self.logical_block_size.get(),
            max_segments: self.max_segments.get(),
            secure_discard: self.secure_discard.get(),
            cache_policy: self.cache_policy,
        }
    }
}

/// The part of [`Io`] that every client sends.
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct IoStart {
    /// [`MSG_IO`].
    hdr: Hdr,
    /// The server's number of the device.
    device_id: U32,
    /// First sector, in units of 512 bytes.
    sector: U64,
    /// [`Rw`](super::op::Rw): operation and flags.
    rw: U32,
    /// Number of bytes, of data or of the range.
    bi_size: U32,
    /// Priority; absent in old clients, see [`message`](super::message).
    prio: U16,
}

const _: () = assert!(size_of::<IoStart>() == 26);

/// Reads, writes, or does something else with a device (`struct rnbd_msg_io`).
#[repr(C)]
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq,
)]
pub struct Io {
    /// Everything that means something.
    start: IoStart,
    /// Zero: what the C structure is padded with on 64-bit machines.
    padding: [u8; 6],
}

const _: () = assert!(size_of::<Io>() == 32);

/// Fields of an [`Io`] as host integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFields {
    /// The server's number of the device.
    pub device_id: u32,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Operation and flags.
    pub rw: u32,
    /// Number of bytes, of data or of the range.
    pub bi_size: u32,
    /// Priority.
    pub prio: u16,
}

impl Io {
    /// Makes a request.
    pub fn new(fields: &IoFields) -> Self {
        Self {
            start: IoStart {
                hdr: Hdr::new(MSG_IO),
                device_id: fields.device_id.into(),
                sector: fields.sector.into(),
                rw: fields.rw.into(),
                bi_size: fields.bi_size.into(),
                prio: fields.prio.into(),
            },
            padding: [0; 6],
        }
    }
}

impl IoStart {
    /// What the request says, unchecked.
    pub fn fields(&self) -> IoFields {
        IoFields {
            device_id: self.device_id.get(),
            sector: self.sector.get(),
            rw: self.rw.get(),
            bi_size: self.bi_size.get(),
            prio: self.prio.get(),
        }
    }
}
