// SPDX-License-Identifier: GPL-2.0

//! Properties that hold for any input.

mod common;

use common::Receiver;
use proptest::{
    array::uniform16,
    collection::vec,
    prelude::*, //
};
use weft_proto::rds::{
    addr::{
        check_bind,
        check_connect,
        check_send,
        Addr,
        Endpoint, //
    },
    arbitration::{
        role,
        Role, //
    },
    cong,
    ext::{
        Ext,
        ExtWriter, //
    },
    handshake::{
        settle_paths,
        write_probe,
        PeerCaps, //
    },
    path::{
        path_index,
        path_of_source_port,
        SourcePorts, //
    },
    window::{
        tcp_acked,
        tcp_end_sequence, //
    },
    wire::{
        checksum_ok,
        set_checksum,
        Header, //
    }, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

/// Any extension header that reads back as it was written.
fn any_ext() -> impl Strategy<Value = Ext> {
    prop_oneof![
        any::<u32>().prop_map(Ext::Version),
        any::<u32>().prop_map(Ext::Rdma),
        any::<(u32, u32)>().prop_map(|(key, offset)| Ext::RdmaDest { key, offset }),
        any::<(u32, u8)>().prop_map(|(bytes, direction)| Ext::RdmaBytes { bytes, direction }),
        any::<u16>().prop_map(Ext::Npaths),
        any::<u32>().prop_map(Ext::Generation),
        any::<u32>().prop_map(Ext::Capabilities),
        Just(Ext::SportIndex),
        any::<(u32, bool)>().prop_map(|(sum, enabled)| Ext::PayloadChecksum { sum, enabled }),
        (10..16u8).prop_map(Ext::Unknown),
    ]
}

/// A message as a peer might send it, short enough for a test.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let fields = any::<(u64, u16, u16)>();
    (fields, any::<u8>(), vec(any::<u8>(), 0..200)).prop_map(|(fields, flags, data)| {
        let (sequence, sport, dport) = fields;
        // Bit 1 keeps it from being a congestion map.
        let header = Header::new(sequence, data.len() as u32, sport, dport, flags | 2);
        [header.as_bytes(), &data].concat()
    })
}

/// Receives `stream` in pieces of the given sizes, repeated; the outcome includes a refusal.
fn receive(stream: &[u8], sizes: &[usize]) -> (Receiver, bool) {
    let mut receiver = Receiver::default();
    let mut rest = stream;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, tail) = rest.split_at(rest.len().min(*size));
        if receiver.receive(piece).is_err() {
            return (receiver, true);
        }
        rest = tail;
    }
    (receiver, false)
}

proptest! {
    #[test]
    fn header_round_trips(bytes in vec(any::<u8>(), 48)) {
        let header = Header::read_from_bytes(&bytes).unwrap();
        prop_assert_eq!(header.as_bytes(), &bytes[..]);
        let mut copy = Header::new(
            header.sequence(), header.len(), header.sport(), header.dport(), header.flags(),
        );
        copy.set_ack(header.ack());
        copy.set_credit(header.credit());
        *copy.ext_mut() = *header.ext();
        prop_assert_eq!(&copy.as_bytes()[..26], &bytes[..26]);
        prop_assert_eq!(&copy.as_bytes()[32..], &bytes[32..]);
    }

    #[test]
    fn checksum_finds_any_changed_byte(bytes in vec(any::<u8>(), 48), at in 0..48usize, change: u8) {
        let mut header = Header::read_from_bytes(&bytes).unwrap();
        set_checksum(&mut header);
        prop_assert!(checksum_ok(&header));
        header.as_mut_bytes()[at] ^= change;
        // One byte off cannot keep the sum; a stored 0 means not checked.
        let same = change == 0 || header.stored_checksum() == 0;
        prop_assert_eq!(checksum_ok(&header), same);
    }

    #[test]
    fn ext_reads_what_was_written(entries in vec(any_ext(), 0..8)) {
        let mut space = [0xff; 16];
        let mut writer = ExtWriter::new(&mut space);
        let written: Vec<Ext> = entries.into_iter().filter(|entry| writer.push(*entry)).collect();
        prop_assert_eq!(Ext::iter(&space).collect::<Vec<_>>(), written);
    }

    #[test]
    fn ext_takes_anything(space in uniform16(any::<u8>())) {
        // What was read can be written, and then reads the same.
        let entries: Vec<Ext> = Ext::iter(&space).collect();
        let mut copy = [0; 16];
        let mut writer = ExtWriter::new(&mut copy);
        for entry in &entries {
            prop_assert!(writer.push(*entry));
        }
        prop_assert_eq!(Ext::iter(&copy).collect::<Vec<_>>(), entries);
        prop_assert_eq!(PeerCaps::parse(&copy), PeerCaps::parse(&space));
    }

    #[test]
    fn probe_round_trips(npaths: u16, generation: u32) {
        let mut space = [0; 16];
        write_probe(&mut space, npaths, generation);
        let caps = PeerCaps::parse(&space);
        prop_assert_eq!((caps.npaths, caps.generation), (Some(npaths), Some(generation)));
        prop_assert!(caps.sport_encodes_path);
    }

    #[test]
    fn both_sides_settle_on_the_same_paths(own in 1..=8u8, peer in 1..=8u8) {
        let here = settle_paths(own, Some(peer.into()));
        prop_assert_eq!(here, settle_paths(peer, Some(own.into())));
        prop_assert!((1..=8).contains(&here));
    }

    #[test]
    fn stream_does_not_depend_on_pieces(
        messages in vec(any_message(), 0..6),
        sizes in vec(1..300usize, 1..6),
        cut in 0..100usize,
    ) {
        let mut stream = messages.concat();
        stream.truncate(stream.len().saturating_sub(cut));
        let whole = receive(&stream, &[usize::MAX]);
        prop_assert!(!whole.1);
        let sent: usize = messages.iter().map(Vec::len).sum();
        if stream.len() == sent {
            let received: Vec<Vec<u8>> = whole.0.messages.iter()
                .map(|(header, data)| [header.as_bytes(), data].concat())
                .collect();
            prop_assert_eq!(received, messages);
        }
        prop_assert_eq!(&whole, &receive(&stream, &[1]));
        prop_assert_eq!(&whole, &receive(&stream, &sizes));
    }

    #[test]
    fn stream_takes_anything(bytes in vec(any::<u8>(), 0..400), sizes in vec(1..60usize, 1..6)) {
        prop_assert_eq!(receive(&bytes, &[usize::MAX]), receive(&bytes, &sizes));
    }

    #[test]
    fn congestion_map_round_trips(ports in vec(any::<u16>(), 0..50), probe: u16) {
        let mut words = [0; cong::MAP_WORDS];
        for port in &ports {
            cong::set(&mut words, *port);
        }
        let bytes: Vec<u8> = cong::bytes_from_words(&words).flatten().collect();
        let copy: Vec<u64> = cong::words_from_bytes(&bytes).collect();
        prop_assert_eq!(&copy[..], &words[..]);
        for port in ports.iter().copied().chain([probe]) {
            let bit = (bytes[usize::from(port) / 8] >> (port % 8)) & 1 == 1;
            prop_assert_eq!(cong::test(&copy, port), bit);
            prop_assert_eq!(ports.contains(&port), bit);
        }
        for port in &ports {
            cong::clear(&mut words, *port);
        }
        prop_assert_eq!(words, [0; cong::MAP_WORDS]);
    }

    #[test]
    fn source_ports_tell_the_path(low: u16, high: u16, path in 0..8usize, group: u32) {
        let ports: Vec<u16> = SourcePorts::new(low, high, path, group).collect();
        for port in &ports {
            prop_assert!((low..=high).contains(port));
            prop_assert_eq!(path_of_source_port(*port, 8), path);
        }
        let mut once = ports.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), ports.len());
    }

    #[test]
    fn path_is_stable_and_in_range(port: u16, initval: u32, npaths: u8) {
        let path = path_index(port, initval, npaths);
        prop_assert!(path < usize::from(npaths.max(1)));
        prop_assert_eq!(path, path_index(port, initval, npaths));
    }

    #[test]
    fn exactly_one_side_is_active(a in uniform16(any::<u8>()), b in uniform16(any::<u8>())) {
        let (a, b) = (Addr(a), Addr(b));
        if a != b {
            prop_assert_ne!(role(&a, &b), role(&b, &a));
            let number = |addr: Addr| u128::from_be_bytes(addr.0);
            prop_assert_eq!(role(&a, &b) == Role::Active, number(a) < number(b));
        }
    }

    #[test]
    fn sockaddr_takes_anything(
        family in prop_oneof![Just(2u16), Just(10), any::<u16>()],
        body in vec(any::<u8>(), 0..140),
        len in 0..142usize,
    ) {
        let mut name = [&family.to_ne_bytes()[..], &body].concat();
        name.truncate(len);
        let bind = check_bind(&name);
        // The three calls differ in their errors only.
        prop_assert_eq!(bind.ok(), check_connect(&name).ok());
        prop_assert_eq!(bind.ok(), check_send(&name).ok());
    }

    #[test]
    fn sockaddr_round_trips(addr in uniform16(any::<u8>()), v4: bool, port: u16, scope_id: u32) {
        let mut addr = Addr(addr);
        if v4 {
            addr = Addr::from_v4(*addr.0.last_chunk().unwrap());
        }
        prop_assume!(!addr.is_any() && !addr.is_multicast() && !addr.is_broadcast());
        let scope_id = if addr.is_link_local() { scope_id.max(1) } else { 0 };
        let endpoint = Endpoint { addr, port, scope_id };
        let mut name = [0xff; 128];
        let len = endpoint.to_sockaddr(&mut name);
        prop_assert_eq!(len, if v4 { 16 } else { 28 });
        prop_assert_eq!(check_bind(&name[..len]), Ok(endpoint));
        prop_assert!(name[len..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_message_is_acked_when_its_last_byte_is(start: u32, len in 0..=1u32 << 20, ahead in 0..1u32 << 30) {
        let end = tcp_end_sequence(start, len);
        prop_assert!(!tcp_acked(end, start));
        prop_assert!(!tcp_acked(end, end));
        prop_assert!(tcp_acked(end, start.wrapping_add(48 + len).wrapping_add(ahead)));
    }
}
