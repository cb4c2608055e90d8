// SPDX-License-Identifier: GPL-2.0

//! Extension headers: what was read can be written, and then reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_proto::rds::{
    ext::{
        Ext,
        ExtWriter, //
    },
    handshake::{
        settle_paths,
        PeerCaps, //
    }, //
};

fuzz_target!(|space: [u8; 16]| {
    let mut copy = [0; 16];
    let mut writer = ExtWriter::new(&mut copy);
    for entry in Ext::iter(&space) {
        assert!(writer.push(entry));
    }
    assert!(Ext::iter(&space).eq(Ext::iter(&copy)));

    let caps = PeerCaps::parse(&space);
    assert_eq!(caps, PeerCaps::parse(&copy));
    assert!((1..=8).contains(&settle_paths(8, caps.npaths)));
});
