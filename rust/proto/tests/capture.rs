// SPDX-License-Identifier: GPL-2.0

//! What the C modules sent, read by this crate; `data/README.md` describes the streams.

mod common;

use common::Receiver;
use weft_proto::rds::{
    cong::words_from_bytes,
    handshake::{
        is_probe,
        is_probe_reply,
        write_probe,
        PeerCaps, //
    },
    window::accept,
    wire::{
        checksum_ok,
        Header, //
    }, //
};

/// All messages of a stream, which must end with the last of them.
fn messages(stream: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut receiver = Receiver::default();
    receiver.receive(stream).unwrap();
    assert_eq!(receiver.rest(), (None, 48, 0));
    receiver.messages
}

/// Asserts that a message is the congestion map of a host without congestion.
fn assert_empty_map((header, data): &(Header, Vec<u8>)) {
    assert_eq!(*header, Header::congestion_map());
    assert_eq!(words_from_bytes(data).count(), 1024);
    assert!(words_from_bytes(data).all(|word| word == 0));
}

/// Asserts that a message is a probe or answer numbered 1, and that this crate writes it the same.
fn assert_probe((header, data): &(Header, Vec<u8>), generation: u32) {
    assert!(data.is_empty());
    let caps = PeerCaps::parse(header.ext());
    assert_eq!(caps.npaths, Some(8));
    assert_eq!(caps.generation, Some(generation));
    assert!(caps.sport_encodes_path);

    let mut own = Header::new(1, 0, header.sport(), header.dport(), 0);
    write_probe(own.ext_mut(), 8, generation);
    assert_eq!(own, *header);
}

#[test]
fn client_on_path_0() {
    let messages = messages(include_bytes!("data/path0-client.bin"));
    let [map, probe, (header, data)] = &messages[..] else {
        panic!("{} messages", messages.len());
    };
    assert_empty_map(map);
    assert!(is_probe(probe.0.sport(), probe.0.dport()));
    assert_probe(probe, 0xf9fc_76ce);
    assert_eq!(*header, Header::new(2, 1, 6666, 5555, 0));
    assert_eq!(data[..], [1]);
}

#[test]
fn server_on_path_0() {
    let messages = messages(include_bytes!("data/path0-server.bin"));
    let [map, reply] = &messages[..] else {
        panic!("{} messages", messages.len());
    };
    assert_empty_map(map);
    assert!(is_probe_reply(reply.0.sport(), reply.0.dport()));
    assert_probe(reply, 0x11d9_f9d2);
}

#[test]
fn datagrams_on_path_6() {
    let messages = messages(include_bytes!("data/path6-client.bin"));
    let lengths: Vec<usize> = messages.iter().map(|(_, data)| data.len()).collect();
    assert_eq!(lengths, [64, 1024, 70000]);
    let mut expected = 0;
    for (sequence, (header, data)) in (1..).zip(&messages) {
        let n = data.len();
        assert_eq!(*header, Header::new(sequence, n as u32, 6666, 5555, 0));
        assert!(checksum_ok(header));
        assert!(data
            .iter()
            .enumerate()
            .all(|(i, byte)| *byte == (7 * i + n) as u8));
        expected = accept(expected, header.sequence(), header.flags()).unwrap();
    }
    assert_eq!(expected, 4);
}
