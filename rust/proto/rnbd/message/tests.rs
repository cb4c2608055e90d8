// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::{
    errno::{
        Errno,
        Failure as _, //
    },
    rnbd::{
        op::Flags,
        path::DevicePathError, //
    }, //
};
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
    let prio = |len, version| match Message::parse(&bytes.as_bytes()[..len], READ(4096), version) {
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
