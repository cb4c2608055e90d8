// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::options::tests::options;

/// Options in which no two numbers are equal, and everything is switched.
fn distinct() -> Options {
    let mut options = options();
    options.depth = 2;
    options.ack_size = 100;
    options.port = 5000;
    options.tasks = 3;
    options.run_time = 60;
    options.connect_retries = 7;
    options.summary_only = true;
    options.verify = true;
    options.one_way = true;
    options.rdma.vector = 4;
    options.rdma.mode = 2;
    options.rdma.alignment = 5;
    options
}

fn round_trip(options: &Options, family: Family) -> Options {
    let bytes = encode(options, "2.3.0");
    let mut rest = bytes.as_slice();
    let read = read(&mut rest, family).unwrap();
    assert!(rest.is_empty(), "all of it belongs to the options");
    read
}

#[test]
fn plain_layout_is_that_of_rds_tools() {
    let bytes = encode(&distinct(), "2.0.7");
    assert_eq!(bytes.len(), 59);
    assert_eq!(
        bytes[..16],
        [0, 0, 0, 2, 0, 0, 4, 0, 0, 0, 0, 100, 0, 0, 0, 0]
    );
    assert_eq!(bytes[16..24], [10, 0, 0, 2, 10, 0, 0, 1]);
    assert_eq!(bytes[24..32], [0x13, 0x88, 0, 3, 0, 0, 0, 60]);
    assert_eq!(bytes[32..46], [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(bytes[46..], [2, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 7]);
}

#[test]
fn a_type_of_service_needs_the_versioned_layout() {
    let mut options = distinct();
    options.tos = 9;
    let bytes = encode(&options, "2.0.7");
    assert_eq!(bytes.len(), 77);
    assert_eq!(bytes[..8], *b"2.0.7\0\0\0");
    assert_eq!(bytes[16..20], [0, 0, 0, 2]);
    assert_eq!(bytes[75..], [9, 0]);
}

#[test]
fn ipv6_has_a_layout_of_its_own() {
    let mut options = distinct();
    options.send_addr = "fd08::2".parse().unwrap();
    options.receive_addr = "fd08::1".parse().unwrap();
    let bytes = encode(&options, "2.3.0");
    assert_eq!(bytes.len(), 113);
    assert_eq!(bytes[32..40], [0; 8]);
    assert_eq!(
        (bytes[77], bytes[92], bytes[93], bytes[108]),
        (0xfd, 2, 0xfd, 1)
    );
    assert_eq!(bytes[109..], [0; 4]);
}

#[test]
fn options_survive_the_round_trip() {
    let mut options = distinct();
    assert_eq!(round_trip(&options, Family::V4), options);
    options.tos = 200;
    assert_eq!(round_trip(&options, Family::V4), options);
    options.async_send = true;
    options.send_addr = "fd08::2".parse().unwrap();
    options.receive_addr = "fd08::1".parse().unwrap();
    assert_eq!(round_trip(&options, Family::V6), options);
}

/// rds-tools fill the version and the switch for warnings up with ones.
#[test]
fn what_rds_tools_leave_in_unused_bytes_does_not_matter() {
    let mut options = distinct();
    options.tos = 1;
    let mut bytes = encode(&options, "2.0.7");
    bytes[6..16].fill(0xff);
    bytes[60] = 0xff;
    assert_eq!(read(&mut bytes.as_slice(), Family::V4).unwrap(), options);
}

#[test]
fn versions_and_numbers() {
    assert!(is_version(
        b"2.0.7\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
    ));
    assert!(is_version(b"2.3.0\0\0\0json\0\0\0\0"));
    assert!(!is_version(&[0; 16]));
    assert!(!is_version(b"20\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
    assert!(!is_version(b".1\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
    assert!(!is_version(b"GET / HTTP/1.1\r\n"));
}

#[test]
fn short_or_foreign_options_are_refused() {
    let plain = encode(&distinct(), "2.0.7");
    assert!(read(&mut &plain[..58], Family::V4).is_err());
    assert!(read(&mut &plain[..10], Family::V4).is_err());
    assert!(read(&mut plain.as_slice(), Family::V6).is_err());
    let noise = b"GET / HTTP/1.1\r\nHost: a.example\r\nAccept: everything there is\r\n";
    let options = read(&mut noise.as_slice(), Family::V4).unwrap();
    assert!(options.check().is_err());
}
