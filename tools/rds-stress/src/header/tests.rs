// SPDX-License-Identifier: GPL-2.0

use super::*;

fn header(from: &str, to: &str) -> Header {
    Header {
        seq: 0x0102_0304,
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        index: 0x0506,
        op: Op::Ack,
    }
}

#[test]
fn layout_is_that_of_rds_tools() {
    let mut message = [0xff; 65];
    header("10.0.0.1:4001", "10.0.0.2:4002").encode(&mut message);
    let expected = [
        1, 2, 3, 4, 10, 0, 0, 1, 10, 0, 0, 2, 0x0f, 0xa1, 0x0f, 0xa2, 5, 6, 2,
    ];
    assert_eq!(message[..19], expected);
    assert!(message[19..63].iter().all(|byte| *byte == 0));
    assert_eq!(message[63..], [0xff, 0xff], "not part of the header");
}

#[test]
fn ipv6_addresses_are_at_the_end() {
    let mut message = [0xff; 97];
    header("[fd08::1]:4001", "[fd08::2]:4002").encode(&mut message);
    assert_eq!(message[4..12], [0; 8]);
    assert_eq!(message[12..19], [0x0f, 0xa1, 0x0f, 0xa2, 5, 6, 2]);
    assert_eq!((message[64], message[79]), (0xfd, 1));
    assert_eq!((message[80], message[95], message[96]), (0xfd, 2, 0xff));
}

#[test]
fn headers_survive_the_round_trip() {
    for (from, to, family) in [
        ("10.0.0.1:4001", "10.0.0.2:65535", Family::V4),
        ("[fd08::1]:2", "[fd08::2]:4001", Family::V6),
    ] {
        let mut header = header(from, to);
        for op in [Op::Request, Op::Ack] {
            header.op = op;
            let mut message = [0; 96];
            header.encode(&mut message);
            assert_eq!(Header::decode(&message, family), Ok(header));
        }
    }
}

#[test]
fn what_is_no_header() {
    let mut message = [0; 96];
    header("10.0.0.1:4001", "10.0.0.2:4002").encode(&mut message);
    assert!(Header::decode(&message[..62], Family::V4).is_err());
    assert!(Header::decode(&message[..63], Family::V4).is_ok());
    assert!(Header::decode(&message[..95], Family::V6).is_err());
    for op in [0, 3, 255] {
        message[18] = op;
        assert!(Header::decode(&message, Family::V4).is_err());
    }
}

#[test]
fn every_difference_is_named() {
    let expected = header("10.0.0.1:4001", "10.0.0.2:4002");
    assert_eq!(expected.difference(&expected), None);
    let mut got = expected;
    got.seq = 7;
    got.to.set_port(1);
    assert_eq!(
        got.difference(&expected).unwrap(),
        "seq is 7 instead of 16909060, to is 10.0.0.2:1 instead of 10.0.0.2:4002"
    );
    for change in [
        |header: &mut Header| header.from.set_port(9),
        |header: &mut Header| header.index = 0,
        |header: &mut Header| header.op = Op::Request,
    ] {
        let mut got = expected;
        change(&mut got);
        assert!(got.difference(&expected).is_some());
    }
}

#[test]
fn pattern_is_that_of_rds_tools() {
    let long = pattern(1024);
    assert_eq!(long[..4], [11, 62, 105, 76]);
    assert_eq!(long[254..260], [141, 16, 12, 104, 36, 64]);
    assert_eq!(long[1000..1004], [254, 44, 138, 152]);
    let mut block = long[..256].to_vec();
    block.sort_unstable();
    block.dedup();
    assert_eq!(block.len(), 256, "each byte once");
    assert_ne!(long[..256], long[256..512]);
    assert_ne!(long[256..512], long[512..768]);
}

#[test]
fn one_wrong_byte_is_found() {
    let pattern = pattern(1000);
    assert_eq!(corruption(&pattern, &pattern), None);
    assert_eq!(corruption(&[], &pattern), None);
    let mut payload = pattern.clone();
    payload[998] ^= 1;
    payload[17] ^= 0x80;
    assert_eq!(
        corruption(&payload, &pattern).unwrap(),
        "payload is corrupted at offset 17: 2 of 1000 bytes"
    );
}
