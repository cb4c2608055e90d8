// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::{
    errno::Failure as _,
    rtrs::geometry::GeometryError, //
};
use std::string::ToString;
use zerocopy::IntoBytes as _;

fn request() -> ConnectRequest {
    ConnectRequest {
        cid: 1,
        cid_num: 2,
        recon_cnt: 3,
        path: PathUuid([4; 16]),
        session: SessionUuid([5; 16]),
        first_conn: true,
    }
}

#[test]
fn request_round_trips() {
    for first_conn in [false, true] {
        let request = ConnectRequest {
            first_conn,
            ..request()
        };
        let mut padded = [0; 92];
        padded[..56].copy_from_slice(request.to_wire().as_bytes());
        assert_eq!(ConnectRequest::parse(&padded), Ok(request));
        assert_eq!(ConnectRequest::parse(&padded[..56]), Ok(request));
        assert_eq!(
            ConnectRequest::parse(&padded[..55]),
            Err(ConnectError::Short { len: 55 })
        );
    }
}

#[test]
fn bad_requests() {
    let error = |change: fn(&mut [u8])| {
        let mut bytes = request().to_wire();
        change(bytes.as_mut_bytes());
        ConnectRequest::parse(bytes.as_bytes()).unwrap_err()
    };
    assert_eq!(
        error(|bytes| bytes[2] = 0),
        ConnectError::Magic { magic: 0x1b00 }
    );
    assert_eq!(
        error(|bytes| bytes[5] = 3),
        ConnectError::Version { major: 3, minor: 0 }
    );
    assert_eq!(
        error(|bytes| bytes[6] = 2),
        ConnectError::Cid { cid: 2, cid_num: 2 }
    );
    assert_eq!(
        error(|bytes| bytes[8] = 0),
        ConnectError::Cid { cid: 1, cid_num: 0 }
    );
    let many = error(|bytes| bytes[8..10].copy_from_slice(&4097u16.to_le_bytes()));
    assert_eq!(many, ConnectError::TooManyConnections { cid_num: 4097 });
    assert_eq!(many.errno(), Errno::ECONNRESET);
    let most = ConnectRequest {
        cid: 4095,
        cid_num: 4096,
        ..request()
    };
    assert_eq!(ConnectRequest::parse(most.to_wire().as_bytes()), Ok(most));
    // A newer minor version, reserved bits and bytes do not matter.
    let mut newer = request().to_wire();
    newer.as_mut_bytes()[4] = 9;
    newer.as_mut_bytes()[44..].fill(0xff);
    assert_eq!(ConnectRequest::parse(newer.as_bytes()), Ok(request()));
}

#[test]
fn admission() {
    let first = ConnectRequest {
        cid: 0,
        ..request()
    };
    let stranger = ConnectRequest {
        first_conn: false,
        ..first
    };
    let none = Known::default();
    assert_eq!(admit(&first, &none), Ok(Admission::NewSession));
    assert_eq!(
        admit(&request(), &none),
        Err(ConnectError::FirstCid { cid: 1 })
    );
    assert_eq!(admit(&stranger, &none), Err(ConnectError::NoSession));
    assert_eq!(ConnectError::NoSession.errno(), Errno::ENXIO);

    let known = Known {
        session: true,
        paths: 1,
        ..none
    };
    assert_eq!(admit(&stranger, &known), Ok(Admission::NewPath));
    assert_eq!(
        admit(&request(), &known),
        Err(ConnectError::FirstCid { cid: 1 })
    );
    assert_eq!(
        admit(
            &first,
            &Known {
                paths: 128,
                ..known
            }
        ),
        Err(ConnectError::TooManyPaths)
    );
    let same = Known {
        same_addresses: true,
        ..known
    };
    assert_eq!(admit(&first, &same), Err(ConnectError::SameAddresses));
    assert_eq!(ConnectError::SameAddresses.errno(), Errno::EEXIST);

    // Neither a new path nor one that is being connected can join a session that has ended.
    let ended = Known {
        ended: true,
        ..known
    };
    assert_eq!(admit(&first, &ended), Err(ConnectError::Ended));
    assert_eq!(ConnectError::Ended.errno(), Errno::ECONNRESET);
    assert_eq!(admit(&stranger, &ended), Err(ConnectError::NoSession));

    let path = KnownPath {
        state: ServerState::Connecting,
        cid_num: 2,
        cid_taken: false,
    };
    let with = |path| Known {
        path: Some(path),
        ..same
    };
    assert_eq!(admit(&request(), &with(path)), Ok(Admission::Join));
    let joining = Known {
        ended: true,
        ..with(path)
    };
    assert!(admit(&request(), &joining).is_err());
    let taken = KnownPath {
        cid_taken: true,
        ..path
    };
    assert_eq!(
        admit(&request(), &with(taken)),
        Err(ConnectError::CidTaken { cid: 1 })
    );
    let other = KnownPath { cid_num: 3, ..path };
    let error = ConnectError::CidNum {
        cid_num: 2,
        expected: 3,
    };
    assert_eq!(admit(&request(), &with(other)), Err(error));
    for state in [
        ServerState::Connected,
        ServerState::Closing,
        ServerState::Closed,
    ] {
        let path = KnownPath { state, ..path };
        assert_eq!(
            admit(&request(), &with(path)),
            Err(ConnectError::State { state })
        );
    }
}

#[test]
fn who_may_create() {
    assert!(may_create_session(true, false) && may_create_session(false, true));
    assert!(!may_create_session(false, false));
}

fn geometry() -> Geometry {
    Geometry::new(512, 126_976, 4096).unwrap()
}

#[test]
fn answer_round_trips() {
    for new_rkey in [false, true] {
        let mut padded = [0; 196];
        padded[..56].copy_from_slice(accept(&geometry(), new_rkey).as_bytes());
        let accepted = Accepted {
            geometry: geometry(),
            new_rkey,
        };
        assert_eq!(Accepted::parse(&padded), Ok(accepted));
        assert_eq!(
            Accepted::parse(&padded[..55]),
            Err(ConnectError::Short { len: 55 })
        );
        assert_eq!(Accepted::check_other(&padded), Ok(()));
    }
}

#[test]
fn bad_answers() {
    let rejected = reject(Errno::EBUSY);
    assert_eq!(
        Accepted::parse(rejected.as_bytes()),
        Err(ConnectError::AcceptedError { code: -16 })
    );
    let mut empty = accept(&geometry(), true);
    empty.as_mut_bytes()[6..8].fill(0);
    let error = ConnectError::Geometry(GeometryError::NoChunks);
    assert_eq!(Accepted::parse(empty.as_bytes()), Err(error));
    assert_eq!(error.to_string(), GeometryError::NoChunks.to_string());
    // Of the other connections this does not count.
    assert_eq!(Accepted::check_other(empty.as_bytes()), Ok(()));
}

#[test]
fn rejections() {
    for errno in [
        Errno::ECONNRESET,
        Errno::EEXIST,
        Errno::from_number(511).unwrap(),
    ] {
        let mut padded = [0; 148];
        padded[..56].copy_from_slice(reject(errno).as_bytes());
        assert_eq!(rejection(&padded), errno);
    }
    let mut foreign = reject(Errno::EEXIST);
    foreign.as_mut_bytes()[0] = 0;
    for data in [
        &[][..],
        &[0; 148],
        foreign.as_bytes(),
        accept(&geometry(), false).as_bytes(),
    ] {
        assert_eq!(rejection(data), Errno::ECONNRESET);
    }
    // Positive, and numbers that are the kernel's own.
    for code in [17, -512, -4095, i16::MIN] {
        let wrong = ConnRsp::reject(code);
        assert_eq!(rejection(wrong.as_bytes()), Errno::ECONNRESET);
    }
}

#[test]
fn paths_of_one_session() {
    let accepted = |depth, io| Accepted {
        geometry: Geometry::new(depth, io, 4096).unwrap(),
        new_rkey: false,
    };
    let agreed = Agreed::first(&accepted(512, 126_976))
        .with(&accepted(512, 61_440))
        .unwrap();
    assert_eq!(
        agreed,
        Agreed {
            queue_depth: 512,
            max_io_size: 61_440
        }
    );
    assert_eq!(accepted(512, 126_976).continues(&agreed), Ok(()));
    let changed = accepted(64, 126_976).continues(&agreed).unwrap_err();
    assert_eq!(changed, ConnectError::DepthChanged { was: 512, is: 64 });
    assert!(changed.is_final());
    let shrunk = accepted(512, 4096).continues(&agreed).unwrap_err();
    assert_eq!(
        shrunk,
        ConnectError::IoShrunk {
            was: 61_440,
            is: 4096
        }
    );
    assert!(shrunk.is_final() && !ConnectError::NoSession.is_final());
    assert!(agreed.with(&accepted(64, 126_976)).is_err());
}
