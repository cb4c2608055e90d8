// SPDX-License-Identifier: GPL-2.0

//! A TCP stream: messages come out the same whatever pieces it arrives in.
//!
//! The last byte of the input is the size of the pieces, so that a captured stream is an input.

#![no_main]

#[path = "../../rust/proto/tests/common/mod.rs"]
mod common;

use common::Receiver;
use libfuzzer_sys::fuzz_target;
use weft_proto::rds::{
    cong::words_from_bytes,
    handshake::PeerCaps,
    wire::{
        checksum_ok,
        MAX_WIRE_LEN, //
    }, //
};

fuzz_target!(|input: &[u8]| {
    let mut whole = Receiver::default();
    let refused = whole.receive(input);
    for (header, data) in &whole.messages {
        assert_eq!(header.len() as usize, data.len());
        assert!(header.len() <= MAX_WIRE_LEN);
        assert!(!header.is_congestion_map() || data.len() == 8192);
        let _ = checksum_ok(header);
        let _ = PeerCaps::parse(header.ext());
    }

    // A congestion map of whatever length.
    assert_eq!(words_from_bytes(input).count(), input.len() / 8);

    let size = input.last().map_or(1, |last| usize::from(*last).max(1));
    let mut pieces = Receiver::default();
    let outcome = input
        .chunks(size)
        .try_for_each(|piece| pieces.receive(piece));
    assert_eq!(refused, outcome);
    assert!(whole == pieces);
});
