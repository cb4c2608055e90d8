// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::{
    errno::{
        Errno,
        Failure as _, //
    },
    rtrs::wire::{
        Desc,
        ReadHdr,
        WriteHdr, //
    }, //
};
use std::string::ToString;
use zerocopy::IntoBytes as _;

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
