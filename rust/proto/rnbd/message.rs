// SPDX-License-Identifier: GPL-2.0

//! Messages of a client, as the server reads them and the client makes them.
//!
//! A message comes with a request of RTRS, which has a direction and a length of data of its own; both have to agree
//! with what the message asks for. Whether the device allows it is a second question, see [`Io::check`].
//!
//! C counterpart: `rnbd_srv_rdma_ev()` and `process_rdma()` in `rnbd-srv.c`.

use core::fmt;
use zerocopy::FromBytes as _;

use super::{
    access::Access,
    op::{
        Op,
        Rw, //
    },
    path::{
        DevicePath,
        DevicePathError, //
    },
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
use crate::errno::{
    Errno,
    Failure, //
};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rnbd::op::Flags;
    use zerocopy::IntoBytes as _;

    const READ: fn(u32) -> Carrier = |data_len| Carrier {
        is_write: false,
        data_len,
    };
    const WRITE: fn(u32) -> Carrier = |data_len| Carrier {
        is_write: true,
        data_len,
    };

    fn fields(op: u8, bi_size: u32) -> IoFields {
        IoFields {
            device_id: 3,
            sector: 24,
            rw: op.into(),
            bi_size,
            prio: 0x4004,
        }
    }

    fn io(op: u8, bi_size: u32, carrier: Carrier) -> Result<Io, MessageError> {
        match Message::parse(
            wire::Io::new(&fields(op, bi_size)).as_bytes(),
            carrier,
            VERSION,
        )? {
            Message::Io(io) => Ok(io),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn admin_messages() {
        let info = SessInfo::request(9);
        let parse = |bytes, carrier| Message::parse(bytes, carrier, 0);
        assert_eq!(
            parse(info.as_bytes(), READ(36)),
            Ok(Message::SessInfo { version: 2 })
        );
        let old = SessInfo::request(1);
        assert_eq!(
            parse(old.as_bytes(), READ(4096)),
            Ok(Message::SessInfo { version: 1 })
        );
        let room = |room, expected| Err(MessageError::ReplyRoom { room, expected });
        assert_eq!(parse(info.as_bytes(), READ(35)), room(35, 36));
        assert_eq!(parse(info.as_bytes(), WRITE(36)), room(0, 36));

        let path = DevicePath::new(b"/dev/ram0").unwrap();
        let open = Open::new(1, path.to_wire());
        let expected = Message::Open {
            access: Access::ReadWrite,
            path,
        };
        assert_eq!(parse(open.as_bytes(), READ(56)), Ok(expected));
        assert_eq!(parse(open.as_bytes(), READ(55)), room(55, 56));
        let odd = Open::new(3, path.to_wire());
        assert_eq!(
            parse(odd.as_bytes(), READ(56)),
            Err(MessageError::Access { mode: 3 })
        );
        let endless = Open::new(0, [b'a'; 255]);
        let error = MessageError::Path(DevicePathError::NotEnded);
        assert_eq!(parse(endless.as_bytes(), READ(56)), Err(error));

        let close = Close::new(7);
        assert_eq!(
            parse(close.as_bytes(), WRITE(0)),
            Ok(Message::Close { device_id: 7 })
        );
    }

    #[test]
    fn short_and_foreign_messages() {
        fn parse(bytes: &[u8]) -> Result<Message<'_>, MessageError> {
            Message::parse(bytes, READ(4096), VERSION)
        }
        assert_eq!(
            parse(&[]),
            Err(MessageError::Short {
                len: 0,
                expected: 4
            })
        );
        // What is in a four-byte message does not reach what follows.
        for (kind, expected) in [(0u8, 36), (2, 264), (4, 26), (5, 8)] {
            for len in [4, expected - 1] {
                let mut bytes = [0; 264];
                bytes[0] = kind;
                assert_eq!(
                    parse(&bytes[..len]),
                    Err(MessageError::Short { len, expected })
                );
            }
        }
        for kind in [1, 3, 6, 0xff] {
            assert_eq!(
                parse(&[kind, 0, 0, 0]),
                Err(MessageError::Kind { kind: kind.into() })
            );
        }
    }

    #[test]
    fn priority_of_old_clients() {
        let bytes = wire::Io::new(&fields(0, 4096));
        let prio =
            |len, version| match Message::parse(&bytes.as_bytes()[..len], READ(4096), version) {
                Ok(Message::Io(io)) => io.prio,
                other => panic!("{other:?}"),
            };
        assert_eq!(
            (prio(32, 2), prio(31, 2), prio(26, 2), prio(32, 1)),
            (0x4004, 0, 0, 0)
        );
    }

    #[test]
    fn priority_on_the_server() {
        let prio = |prio| {
            Io {
                prio,
                ..io(0, 512, READ(512)).unwrap()
            }
            .server_prio()
        };
        assert_eq!((prio(0), prio(0x4004), prio(0x6000)), (0, 0x4004, 0x6000));
        assert_eq!((prio(0x2000), prio(0x2007)), (0x4000, 0x4007));
        assert_eq!((prio(0x8000), prio(0xffff)), (0, 0));
    }

    #[test]
    fn data_and_no_data() {
        // Operation, carrier, size, and whether it is right.
        let mismatch = |op, data_len, expected| {
            Err(MessageError::DataLen {
                op,
                data_len,
                expected,
            })
        };
        assert!(io(0, 4096, READ(4096)).is_ok());
        assert!(io(1, 4096, WRITE(4096)).is_ok());
        assert_eq!(
            io(0, 4096, WRITE(4096)),
            Err(MessageError::Direction { op: Op::Read })
        );
        assert_eq!(
            io(1, 4096, READ(4096)),
            Err(MessageError::Direction { op: Op::Write })
        );
        assert_eq!(io(0, 4096, READ(512)), mismatch(Op::Read, 512, 4096));
        // No data but a size.
        assert_eq!(io(0, 4096, READ(0)), mismatch(Op::Read, 0, 4096));
        assert_eq!(io(1, 4096, WRITE(0)), mismatch(Op::Write, 0, 4096));
        assert_eq!(
            io(2, 4096, READ(0)),
            Err(MessageError::Size {
                op: Op::Flush,
                bytes: 4096
            })
        );
        assert_eq!(
            io(1, 0, WRITE(0)),
            Err(MessageError::Size {
                op: Op::Write,
                bytes: 0
            })
        );
        assert!(io(2, 0, READ(0)).is_ok() && io(2, 0, WRITE(0)).is_ok());
        // A range.
        for (number, op) in [(3, Op::Discard), (4, Op::SecureErase), (5, Op::WriteZeroes)] {
            assert_eq!(io(number, 1 << 20, WRITE(0)).unwrap().bytes(), 1 << 20);
            assert_eq!(io(number, 1 << 20, WRITE(0)).unwrap().data_len(), 0);
            assert_eq!(io(number, 4096, WRITE(4096)), mismatch(op, 4096, 0));
            assert_eq!(
                io(number, 0, WRITE(0)),
                Err(MessageError::Size { op, bytes: 0 })
            );
            assert_eq!(
                io(number, 513, WRITE(0)),
                Err(MessageError::Size { op, bytes: 513 })
            );
        }
        assert_eq!(io(6, 4096, READ(4096)), Err(MessageError::Op { op: 6 }));
        assert_eq!(
            io(6, 4096, READ(4096)).unwrap_err().errno(),
            Errno::EOPNOTSUPP
        );
    }

    #[test]
    fn ends() {
        let rw = Rw {
            op: Op::Read,
            flags: Flags::default(),
        };
        let last = crate::text::MAX_SECTORS - 1;
        assert!(Io::new(0, rw, last, 512, 0).is_ok());
        for (sector, bytes) in [(last, 1024), (u64::MAX, 512), (u64::MAX - 7, 4096)] {
            assert_eq!(
                Io::new(0, rw, sector, bytes, 0),
                Err(MessageError::End { sector, bytes })
            );
        }
        let flush = Rw {
            op: Op::Flush,
            ..rw
        };
        assert_eq!(Io::new(0, flush, u64::MAX, 0, 0).unwrap().sector(), 0);
    }

    #[test]
    fn what_a_device_allows() {
        let device = DeviceLimits {
            access: Access::ReadWrite,
            capacity: 32,
            logical_block_size: 4096,
        };
        assert_eq!(io(1, 4096, WRITE(4096)).unwrap().check(&device), Ok(()));
        let beyond = MessageError::BeyondEnd {
            sector: 24,
            capacity: 32,
        };
        assert_eq!(
            io(1, 8192, WRITE(8192)).unwrap().check(&device),
            Err(beyond)
        );
        let unaligned = Err(MessageError::Unaligned { block_size: 4096 });
        assert_eq!(io(1, 512, WRITE(512)).unwrap().check(&device), unaligned);
        let odd = Io {
            sector: 1,
            ..io(1, 4096, WRITE(4096)).unwrap()
        };
        assert_eq!(odd.check(&device), unaligned);

        let readonly = DeviceLimits {
            access: Access::ReadOnly,
            ..device
        };
        assert_eq!(io(0, 4096, READ(4096)).unwrap().check(&readonly), Ok(()));
        assert_eq!(io(2, 0, READ(0)).unwrap().check(&readonly), Ok(()));
        for (number, op) in [(3, Op::Discard), (4, Op::SecureErase), (5, Op::WriteZeroes)] {
            let error = io(number, 4096, WRITE(0))
                .unwrap()
                .check(&readonly)
                .unwrap_err();
            assert_eq!(
                (error, error.errno()),
                (MessageError::ReadOnly { op }, Errno::EROFS)
            );
        }
        let error = io(1, 4096, WRITE(4096)).unwrap().check(&readonly);
        assert_eq!(error, Err(MessageError::ReadOnly { op: Op::Write }));
        // A device without blocks allows nothing, not even a division.
        let broken = DeviceLimits {
            logical_block_size: 0,
            ..device
        };
        assert!(io(0, 4096, READ(4096)).unwrap().check(&broken).is_err());
    }
}
