// SPDX-License-Identifier: GPL-2.0

use super::*;
use std::vec::Vec;
use zerocopy::IntoBytes as _;

fn geometry() -> Geometry {
    Geometry::new(4, 61_440, 4096).unwrap()
}

fn response(descriptors: &[Desc]) -> Vec<u8> {
    let header = response_header(descriptors.len() as u16);
    [header.as_bytes(), descriptors.as_bytes()].concat()
}

fn error(descriptors: &[Desc]) -> InfoError {
    InfoResponse::parse(&geometry(), &response(descriptors)).unwrap_err()
}

#[test]
fn requests() {
    let name = SessionName::new(b"vec").unwrap();
    let wire = request(&name);
    assert_eq!(parse_request(wire.as_bytes()), Ok(name));
    for len in [0, 1, 271] {
        assert_eq!(
            parse_request(&wire.as_bytes()[..len]),
            Err(InfoError::RequestLen { len })
        );
    }
    assert_eq!(
        parse_request(&[0; 273]),
        Err(InfoError::RequestLen { len: 273 })
    );
    assert_eq!(
        parse_request(&[0x41; 272]),
        Err(InfoError::Kind {
            kind: 0x4141,
            expected: 0
        })
    );
    let mut endless = [0x41; 272];
    endless[..2].fill(0);
    assert_eq!(
        parse_request(&endless),
        Err(InfoError::Name(NameError::NotEnded))
    );
}

#[test]
fn one_region_and_one_for_each_chunk() {
    let one = response(&[Desc::new(0x10_0000, 7, 4 * 65536)]);
    let chunks: Vec<_> = InfoResponse::parse(&geometry(), &one)
        .unwrap()
        .chunks()
        .collect();
    let expected: Vec<_> = geometry()
        .chunks()
        .map(|chunk| (chunk, 0x10_0000 + 65536 * chunk.index() as u64, 7))
        .collect();
    assert_eq!(chunks, expected);

    let each: Vec<Desc> = (0..4)
        .map(|index| Desc::new(index << 40, index as u32, 65536))
        .collect();
    let each = response(&each);
    let chunks: Vec<_> = InfoResponse::parse(&geometry(), &each)
        .unwrap()
        .chunks()
        .collect();
    let expected: Vec<_> = geometry()
        .chunks()
        .map(|chunk| (chunk, (chunk.index() as u64) << 40, chunk.index() as u32))
        .collect();
    assert_eq!(chunks, expected);
}

#[test]
fn hostile_answers() {
    let desc = |chunks: u32| Desc::new(0, 0, chunks * 65536);
    assert_eq!(
        error(&[]),
        InfoError::Descriptors {
            sg_cnt: 0,
            queue_depth: 4
        }
    );
    assert_eq!(
        error(&[desc(1); 3]),
        InfoError::Descriptors {
            sg_cnt: 3,
            queue_depth: 4
        }
    );
    assert_eq!(
        error(&[desc(1); 8]),
        InfoError::Descriptors {
            sg_cnt: 8,
            queue_depth: 4
        }
    );
    assert_eq!(
        error(&[desc(3)]),
        InfoError::Chunks {
            chunks: 3,
            queue_depth: 4
        }
    );
    assert_eq!(
        error(&[desc(5)]),
        InfoError::Chunks {
            chunks: 5,
            queue_depth: 4
        }
    );
    assert_eq!(
        error(&[desc(2), desc(1)]),
        InfoError::Chunks {
            chunks: 3,
            queue_depth: 4
        }
    );
    let lens = [0, 1, 65535, 65537, u32::MAX];
    for len in lens {
        let expected = InfoError::DescriptorLen {
            len,
            chunk_size: 65536,
        };
        assert_eq!(error(&[Desc::new(0, 0, len)]), expected);
    }
    // Lengths that come to the right sum modulo 2^32.
    let wraps = [desc(0xffff), desc(0xffff), desc(4), desc(2)];
    assert!(matches!(error(&wraps), InfoError::Chunks { .. }));
    let end = Desc::new(u64::MAX - 65536, 0, 4 * 65536);
    assert!(matches!(error(&[end]), InfoError::DescriptorEnd { .. }));
}

#[test]
fn answers_of_the_wrong_length() {
    let good = response(&[desc_all()]);
    for len in [0, 7, 8, 23] {
        let parsed = InfoResponse::parse(&geometry(), &good[..len]);
        assert!(
            matches!(parsed, Err(InfoError::ResponseLen { .. })),
            "{len}"
        );
    }
    let longer = [&good[..], &[0; 16]].concat();
    assert!(InfoResponse::parse(&geometry(), &longer).is_err());
    let mut kind = good.clone();
    kind[0] = 0;
    let parsed = InfoResponse::parse(&geometry(), &kind).unwrap_err();
    assert_eq!(
        parsed,
        InfoError::Kind {
            kind: 0,
            expected: 1
        }
    );
}

fn desc_all() -> Desc {
    Desc::new(0, 0, 4 * 65536)
}

#[test]
fn divisions() {
    let divide = |depth, max| Division::new(&Geometry::new(depth, 4096, 4096).unwrap(), max);
    assert_eq!(
        divide(512, 512),
        Division {
            regions: 1,
            chunks: 512
        }
    );
    assert_eq!(
        divide(512, u32::MAX),
        Division {
            regions: 1,
            chunks: 512
        }
    );
    assert_eq!(
        divide(512, 200),
        Division {
            regions: 4,
            chunks: 128
        }
    );
    assert_eq!(
        divide(511, 200),
        Division {
            regions: 7,
            chunks: 73
        }
    );
    assert_eq!(
        divide(509, 200),
        Division {
            regions: 509,
            chunks: 1
        }
    );
    assert_eq!(
        divide(512, 1),
        Division {
            regions: 512,
            chunks: 1
        }
    );
    assert_eq!(
        divide(512, 0),
        Division {
            regions: 512,
            chunks: 1
        }
    );
}
