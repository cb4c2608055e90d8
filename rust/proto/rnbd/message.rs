// SPDX-License-Identifier: GPL-2.0

//! Messages of a client, as the server reads them and the client makes them.
//!
//! A message comes with a request of RTRS, which has a direction and a length of data of its own; both have to agree
//! with what the message asks for. Whether the device allows it is a second question, see [`Io::check`].
//!
//! C counterpart: `rnbd_srv_rdma_ev()` and `process_rdma()` in `rnbd-srv.c`.

use zerocopy::FromBytes as _;

use super::{
    access::Access,
    op::{
        Op,
        Rw, //
    },
    path::DevicePath,
    wire::{
        self,
        Close,
        Hdr,
        IoFields,
        IoStart,
        Open,
        OpenRsp,
        SessInfo,
        MSG_CLOSE,
        MSG_IO,
        MSG_OPEN,
        MSG_SESS_INFO,
        VERSION, //
    }, //
};

pub use error::MessageError;

mod error;

/// Length of the longest message in bytes: room for a private copy.
pub const MAX_MESSAGE: usize = size_of::<Open>();

/// Bytes of a sector.
pub const SECTOR: u32 = 512;

/// Longest range in sectors whose length in bytes fits a message.
pub const MAX_RANGE_SECTORS: u32 = u32::MAX / SECTOR;

/// How RTRS carried a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Whether the data goes from client to server.
    pub is_write: bool,
    /// Data, or room for it, in bytes.
    pub data_len: u32,
}

/// A message that can be acted upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Opens the session; the answer is [`SessInfo::response`] with this version, which both sides have.
    SessInfo {
        /// Version of the session.
        version: u8,
    },
    /// Opens a device; the answer is an [`OpenRsp`].
    Open {
        /// How.
        access: Access,
        /// Which.
        path: DevicePath<'a>,
    },
    /// Closes a device.
    Close {
        /// The server's number of the device.
        device_id: u32,
    },
    /// Does something with a device.
    Io(Io),
}

impl<'a> Message<'a> {
    /// Reads a message.
    ///
    /// `message` is the server's own copy. `version` is that of the session, or 0 before there is one.
    pub fn parse(message: &'a [u8], carrier: Carrier, version: u8) -> Result<Self, MessageError> {
        let len = message.len();
        let short = |expected| MessageError::Short { len, expected };
        let (hdr, _) = Hdr::read_from_prefix(message).map_err(|_| short(size_of::<Hdr>()))?;
        match hdr.kind() {
            MSG_SESS_INFO => {
                let (wire, _) =
                    SessInfo::ref_from_prefix(message).map_err(|_| short(size_of::<SessInfo>()))?;
                check_reply_room(carrier, size_of::<SessInfo>())?;
                let version = wire.ver().min(VERSION);
                Ok(Self::SessInfo { version })
            }
            MSG_OPEN => {
                let (wire, _) =
                    Open::ref_from_prefix(message).map_err(|_| short(size_of::<Open>()))?;
                check_reply_room(carrier, size_of::<OpenRsp>())?;
                let mode = wire.access_mode();
                Ok(Self::Open {
                    access: Access::from_number(mode).ok_or(MessageError::Access { mode })?,
                    path: DevicePath::from_wire(wire.dev_name()).map_err(MessageError::Path)?,
                })
            }
            MSG_CLOSE => {
                let (wire, _) =
                    Close::ref_from_prefix(message).map_err(|_| short(size_of::<Close>()))?;
                let device_id = wire.device_id();
                Ok(Self::Close { device_id })
            }
            MSG_IO => {
                let (wire, _) =
                    IoStart::ref_from_prefix(message).map_err(|_| short(size_of::<IoStart>()))?;
                let mut fields = wire.fields();
                // Behind the fields of old clients there may be anything.
                if len < size_of::<wire::Io>() || version < VERSION {
                    fields.prio = 0;
                }
                Io::parse(&fields, carrier).map(Self::Io)
            }
            kind => Err(MessageError::Kind { kind }),
        }
    }
}

/// Checks that the client has room for an answer of `expected` bytes.
fn check_reply_room(carrier: Carrier, expected: usize) -> Result<(), MessageError> {
    let room = match carrier {
        Carrier { is_write: true, .. } => 0,
        Carrier { data_len, .. } => data_len,
    };
    if usize::try_from(room).is_ok_and(|room| room < expected) {
        return Err(MessageError::ReplyRoom { room, expected });
    }
    Ok(())
}

/// Something to be done with a device.
///
/// # Invariants
///
/// * [`Op::Read`], [`Op::Write`]: `bytes` is the length of the data, whole sectors and at least one.
/// * [`Op::Discard`], [`Op::SecureErase`], [`Op::WriteZeroes`]: `bytes` is a range of whole sectors, at least one; there
///   is no data.
/// * [`Op::Flush`]: `sector` and `bytes` are 0; there is no data.
/// * The end, in bytes, fits a file offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The server's number of the device.
    device_id: u32,
    /// Operation and flags.
    rw: Rw,
    /// First sector.
    sector: u64,
    /// Length of the data or of the range.
    bytes: u32,
    /// Priority.
    prio: u16,
}

impl Io {
    /// Checks what a client asks for.
    fn parse(fields: &IoFields, carrier: Carrier) -> Result<Self, MessageError> {
        let rw = Rw::from_wire(fields.rw).map_err(|op| MessageError::Op { op })?;
        let (op, bi_size, data_len) = (rw.op, fields.bi_size, carrier.data_len);
        let expected = match op {
            Op::Read | Op::Write => bi_size,
            Op::Flush | Op::Discard | Op::SecureErase | Op::WriteZeroes => 0,
        };
        if data_len != expected {
            return Err(MessageError::DataLen {
                op,
                data_len,
                expected,
            });
        }
        let direction_matters = matches!(op, Op::Read | Op::Write);
        if direction_matters && carrier.is_write != op.travels_as_write() {
            return Err(MessageError::Direction { op });
        }
        Self::new(fields.device_id, rw, fields.sector, bi_size, fields.prio)
    }

    /// Makes a request; the sector of a flush does not count.
    pub fn new(
        device_id: u32,
        rw: Rw,
        sector: u64,
        bytes: u32,
        prio: u16,
    ) -> Result<Self, MessageError> {
        let op = rw.op;
        let sector = if op == Op::Flush { 0 } else { sector };
        let size_ok = match op {
            Op::Flush => bytes == 0,
            _ => bytes != 0 && bytes.checked_rem(SECTOR) == Some(0),
        };
        if !size_ok {
            return Err(MessageError::Size { op, bytes });
        }
        let end = end_of(sector, bytes).filter(|end| *end <= crate::text::MAX_SECTORS);
        if end.is_none() {
            return Err(MessageError::End { sector, bytes });
        }
        // INVARIANT: Just checked; that data has this length is for the caller to know, or was checked by `parse`.
        Ok(Self {
            device_id,
            rw,
            sector,
            bytes,
            prio,
        })
    }

    /// The request as the client sends it.
    pub fn to_wire(&self) -> wire::Io {
        wire::Io::new(&IoFields {
            device_id: self.device_id,
            sector: self.sector,
            rw: self.rw.to_wire(),
            bi_size: self.bytes,
            prio: self.prio,
        })
    }

    /// The server's number of the device.
    #[inline]
    pub fn device_id(&self) -> u32 {
        self.device_id
    }

    /// Operation and flags.
    #[inline]
    pub fn rw(&self) -> Rw {
        self.rw
    }

    /// First sector, in units of 512 bytes.
    #[inline]
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// Length of the data or of the range in bytes, 0 for a flush.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Length of the data in bytes, 0 if the operation has none.
    #[inline]
    pub fn data_len(&self) -> u32 {
        match self.rw.op {
            Op::Read | Op::Write => self.bytes,
            Op::Flush | Op::Discard | Op::SecureErase | Op::WriteZeroes => 0,
        }
    }

    /// Priority that the server gives the request.
    ///
    /// A client does not get real time on the server: it becomes best effort. A class that does not exist becomes none.
    #[inline]
    pub fn server_prio(&self) -> u16 {
        /// Bits below the class (`IOPRIO_CLASS_SHIFT`).
        const CLASS_SHIFT: u32 = 13;
        /// `IOPRIO_CLASS_BE`.
        const BEST_EFFORT: u16 = 2 << CLASS_SHIFT;
        /// What is below the class.
        const REST: u16 = (1 << CLASS_SHIFT) - 1;

        match self.prio >> CLASS_SHIFT {
            1 => BEST_EFFORT | (self.prio & REST),
            0 | 2 | 3 => self.prio,
            _ => 0,
        }
    }

    /// Whether a device allows the request.
    pub fn check(&self, device: &DeviceLimits) -> Result<(), MessageError> {
        let op = self.rw.op;
        if op.changes_data() && !device.access.may_write() {
            return Err(MessageError::ReadOnly { op });
        }
        let block_size = device.logical_block_size;
        let offset = self.sector.checked_mul(SECTOR.into());
        let aligned = |bytes: u64| bytes.checked_rem(block_size.into()) == Some(0);
        if !offset.is_some_and(aligned) || !aligned(self.bytes.into()) {
            return Err(MessageError::Unaligned { block_size });
        }
        if end_of(self.sector, self.bytes).is_none_or(|end| end > device.capacity) {
            let capacity = device.capacity;
            return Err(MessageError::BeyondEnd {
                sector: self.sector,
                capacity,
            });
        }
        Ok(())
    }
}

/// First sector behind a range.
fn end_of(sector: u64, bytes: u32) -> Option<u64> {
    sector.checked_add(bytes.checked_div(SECTOR)?.into())
}

/// What of a device decides whether a request is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// How the session has opened it.
    pub access: Access,
    /// Capacity in sectors of 512 bytes.
    pub capacity: u64,
    /// Logical block size in bytes.
    pub logical_block_size: u32,
}

#[cfg(test)]
mod tests;
