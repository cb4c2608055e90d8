// SPDX-License-Identifier: GPL-2.0

//! Byte layout of the `RDS_INFO` records: every field at its offset, nothing in between.

use weft_proto::rds::{
    addr::{
        Addr,
        Endpoint, //
    },
    info::{
        Connection6,
        Counter,
        Message6,
        Socket6,
        TcpSocket6, //
    }, //
};
use zerocopy::IntoBytes;

const LOCAL: Endpoint = Endpoint {
    addr: Addr::from_v4([10, 9, 0, 1]),
    port: 0x1112,
    scope_id: 0,
};
const FOREIGN: Endpoint = Endpoint {
    addr: Addr::from_v4([10, 9, 0, 2]),
    port: 0x2122,
    scope_id: 0,
};

/// Concatenates fields.
fn join(fields: &[&[u8]]) -> Vec<u8> {
    fields.concat()
}

#[test]
fn counter() {
    let mut name = [0; 32];
    name[..10].copy_from_slice(b"conn_reset");
    let expected = join(&[&name, &7u64.to_ne_bytes()]);
    assert_eq!(Counter::new("conn_reset", 7).as_bytes(), expected);
}

#[test]
fn long_names_stay_terminated() {
    let counter = Counter::new(&"x".repeat(40), 0);
    assert_eq!(counter.name[..31], [b'x'; 31]);
    assert_eq!(counter.name[31], 0);
}

#[test]
fn connection() {
    let mut transport = [0; 16];
    transport[..3].copy_from_slice(b"tcp");
    let six = Connection6::new(LOCAL.addr, FOREIGN.addr, (3, 4), "tcp", 4);
    let head = join(&[&3u64.to_ne_bytes(), &4u64.to_ne_bytes()]);
    let expected = join(&[&head, &LOCAL.addr.0, &FOREIGN.addr.0, &transport, &[4]]);
    assert_eq!(six.as_bytes(), expected);

    let four = six.to_v4(9).unwrap();
    let expected = join(&[&head, &[10, 9, 0, 1, 10, 9, 0, 2], &transport, &[4, 9]]);
    assert_eq!(four.as_bytes(), expected);

    let mixed = Connection6::new(LOCAL.addr, Addr::LOOPBACK, (3, 4), "tcp", 4);
    assert_eq!(mixed.to_v4(0), None);
}

#[test]
fn message() {
    let six = Message6::new(5, 6, &LOCAL, &FOREIGN, 9);
    let head = join(&[&5u64.to_ne_bytes(), &6u32.to_ne_bytes()]);
    let tail = [0x11, 0x12, 0x21, 0x22, 0, 9];
    let expected = join(&[&head, &LOCAL.addr.0, &FOREIGN.addr.0, &tail]);
    assert_eq!(six.as_bytes(), expected);

    let expected = join(&[&head, &[10, 9, 0, 1, 10, 9, 0, 2], &tail]);
    assert_eq!(six.to_v4().unwrap().as_bytes(), expected);
}

#[test]
fn socket() {
    let six = Socket6::new(&LOCAL, &FOREIGN, 0x31, 0x41, 0x51);
    let ports = [0x11, 0x12, 0x21, 0x22];
    let tail = join(&[&0x41u32.to_ne_bytes(), &0x51u64.to_ne_bytes()]);
    let sndbuf = 0x31u32.to_ne_bytes();
    let expected = join(&[&sndbuf, &LOCAL.addr.0, &FOREIGN.addr.0, &ports, &tail]);
    assert_eq!(six.as_bytes(), expected);

    let addrs = [10, 9, 0, 1, 10, 9, 0, 2];
    let expected = join(&[&sndbuf, &addrs, &ports, &tail]);
    assert_eq!(six.to_v4().unwrap().as_bytes(), expected);

    // Not connected shows as zeroes, not bound is not listed.
    let none = Endpoint::default();
    let four = Socket6::new(&LOCAL, &none, 1, 1, 1).to_v4().unwrap();
    assert_eq!(four.connected_addr, [0; 4]);
    assert_eq!(Socket6::new(&none, &none, 1, 1, 1).to_v4(), None);
}

#[test]
fn tcp_socket() {
    let six = TcpSocket6 {
        local_addr: LOCAL.addr,
        local_port: LOCAL.port.into(),
        peer_addr: FOREIGN.addr,
        peer_port: FOREIGN.port.into(),
        hdr_rem: 48.into(),
        data_rem: 7.into(),
        last_sent_nxt: 1.into(),
        last_expected_una: 2.into(),
        last_seen_una: 3.into(),
    };
    let remaining = join(&[&48u64.to_ne_bytes(), &7u64.to_ne_bytes()]);
    let numbers = join(&[
        &1u32.to_ne_bytes(),
        &2u32.to_ne_bytes(),
        &3u32.to_ne_bytes(),
    ]);
    let tail = join(&[&remaining, &numbers]);
    let (local, peer) = (LOCAL.addr.0, FOREIGN.addr.0);
    let expected = join(&[&local, &[0x11, 0x12], &peer, &[0x21, 0x22], &tail]);
    assert_eq!(six.as_bytes(), expected);

    let addrs = [10, 9, 0, 1, 0x11, 0x12, 10, 9, 0, 2, 0x21, 0x22];
    let expected = join(&[&addrs, &tail, &[9]]);
    assert_eq!(six.to_v4(9).unwrap().as_bytes(), expected);
}
