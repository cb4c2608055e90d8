// SPDX-License-Identifier: GPL-2.0

//! What a peer sends over RNBD: a message that is accepted is consistent with what carried it, and a device with itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_proto::{
    rnbd::{
        access::Access,
        limits::Device,
        message::{
            Carrier,
            DeviceLimits,
            Message, //
        },
        op::Op,
        path::{
            SearchPath,
            PATH_SPACE, //
        },
        wire::Open, //
    },
    rtrs::name::SessionName, //
};
use zerocopy::IntoBytes;

/// A message of a client.
fn message(data: &[u8], carrier: Carrier, version: u8) {
    match Message::parse(data, carrier, version) {
        Ok(Message::Io(io)) => {
            assert_eq!(io.data_len(), carrier.data_len);
            assert_eq!(io.bytes() == 0, io.rw().op == Op::Flush);
            assert_eq!(
                Message::parse(io.to_wire().as_bytes(), carrier, 2),
                Ok(Message::Io(io))
            );
            let limits = DeviceLimits {
                access: Access::ReadOnly,
                capacity: 1 << 30,
                logical_block_size: 4096,
            };
            if io.check(&limits).is_ok() {
                assert!(!io.rw().op.changes_data());
                assert!(io.sector() * 512 + u64::from(io.bytes()) <= 1 << 39);
            }
        }
        Ok(Message::Open { access, path }) => {
            let again = Open::new(access.number(), path.to_wire());
            assert_eq!(
                Message::parse(again.as_bytes(), carrier, 2),
                Ok(Message::Open { access, path })
            );
            let session = SessionName::new(b"vec").unwrap();
            let mut space = [0; PATH_SPACE];
            let search = SearchPath::new(b"/dev/%SESSNAME%/disks").unwrap();
            let full = search
                .resolve(&session, path, &mut space)
                .unwrap()
                .to_bytes();
            assert!(full.starts_with(b"/dev/vec/disks/"));
            assert!(!full.split(|byte| *byte == b'/').any(|part| part == b".."));
        }
        Ok(Message::SessInfo { .. } | Message::Close { .. }) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// An answer of a server.
fn answer(data: &[u8]) {
    let Ok(device) = Device::parse(data, 1 << 20) else {
        return;
    };
    let (logical, physical) = (device.logical_block_size, device.physical_block_size);
    assert!(logical.is_power_of_two() && physical.is_power_of_two() && logical <= physical);
    assert!(device.capacity <= u64::MAX >> 10);
    let discard = device.discard.map_or(0, |discard| discard.max_sectors);
    for sectors in [discard, device.max_write_zeroes, device.max_secure_erase] {
        assert!(sectors % (logical / 512) == 0 && sectors.checked_mul(512).is_some());
    }
    assert_eq!(device.continues(&device), Ok(()));
}

fuzz_target!(|input: (bool, u32, u8, Vec<u8>)| {
    let (is_write, data_len, version, data) = input;
    message(&data, Carrier { is_write, data_len }, version);
    answer(&data);
});
