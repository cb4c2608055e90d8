// SPDX-License-Identifier: GPL-2.0

use super::*;
use zerocopy::IntoBytes as _;

fn fields() -> OpenRspFields {
    OpenRspFields {
        device_id: 3,
        nsectors: 131_072,
        max_hw_sectors: 255,
        max_write_zeroes_sectors: 1000,
        max_discard_sectors: u32::MAX,
        discard_granularity: 4096,
        discard_alignment: 512,
        physical_block_size: 4096,
        logical_block_size: 512,
        max_segments: 128,
        secure_discard: 65535,
        cache_policy: 3,
    }
}

fn parse(fields: &OpenRspFields) -> Result<Device, OpenError> {
    Device::parse(OpenRsp::new(fields).as_bytes(), 126_976)
}

#[test]
fn a_good_answer() {
    let device = parse(&fields()).unwrap();
    let expected = Device {
        device_id: 3,
        capacity: 131_072,
        logical_block_size: 512,
        physical_block_size: 4096,
        discard: Some(Discard {
            max_sectors: MAX_RANGE_SECTORS,
            granularity: 4096,
            alignment: 512,
        }),
        max_write_zeroes: 1000,
        max_secure_erase: 65535,
        cache: Cache::VolatileWithFua,
    };
    assert_eq!(device, expected);
    // An empty device is one, and limits of single transfers do not count.
    let empty = OpenRspFields {
        nsectors: 0,
        max_segments: 0,
        max_hw_sectors: 0,
        ..fields()
    };
    assert_eq!(
        parse(&empty),
        Ok(Device {
            capacity: 0,
            ..expected
        })
    );
}

#[test]
fn block_sizes() {
    for size in [0, 1, 3, 256, 511, 513, 1000, 65535] {
        let bad = OpenRspFields {
            logical_block_size: size,
            ..fields()
        };
        assert_eq!(
            parse(&bad),
            Err(OpenError::LogicalBlockSize { size: size.into() })
        );
    }
    for (logical, physical, expected) in [
        (512, 0, 512),
        (4096, 0, 4096),
        (4096, 512, 4096),
        (4096, 4096, 4096),
        (512, 32768, 32768),
    ] {
        let sizes = OpenRspFields {
            logical_block_size: logical,
            physical_block_size: physical,
            ..fields()
        };
        let device = parse(&sizes).unwrap();
        assert_eq!(device.physical_block_size, expected);
        assert_eq!(device.logical_block_size, logical.into());
    }
    let odd = OpenRspFields {
        physical_block_size: 3,
        ..fields()
    };
    assert_eq!(parse(&odd), Err(OpenError::PhysicalBlockSize { size: 3 }));
    let large = OpenRspFields {
        logical_block_size: 32768,
        ..fields()
    };
    let error = OpenError::BlockTooLong {
        size: 32768,
        max_io_size: 4096,
    };
    assert_eq!(
        Device::parse(OpenRsp::new(&large).as_bytes(), 4096),
        Err(error)
    );
}

#[test]
fn capacities() {
    for (sectors, good) in [
        (1 << 40, true),
        (MAX_SECTORS, true),
        (MAX_SECTORS + 1, false),
        (u64::MAX, false),
    ] {
        assert_eq!(
            parse(&OpenRspFields {
                nsectors: sectors,
                ..fields()
            })
            .is_ok(),
            good
        );
    }
}

#[test]
fn ranges() {
    let of = |max, granularity, alignment| {
        let discard = OpenRspFields {
            max_discard_sectors: max,
            discard_granularity: granularity,
            discard_alignment: alignment,
            logical_block_size: 4096,
            ..fields()
        };
        parse(&discard)
            .unwrap()
            .discard
            .map(|discard| (discard.max_sectors, discard.granularity, discard.alignment))
    };
    assert_eq!(of(0, 4096, 0), None);
    assert_eq!(of(7, 4096, 0), None);
    assert_eq!(of(15, 4096, 0), Some((8, 4096, 0)));
    assert_eq!(of(8, 0, 0), Some((8, 4096, 0)));
    assert_eq!(of(8, 513, 0), Some((8, 4096, 0)));
    assert_eq!(of(8, 12288, 8192), Some((8, 12288, 8192)));
    assert_eq!(of(8, 4096, 4096), Some((8, 4096, 0)));
    assert_eq!(of(8, 4096, 1), Some((8, 4096, 0)));
    assert_eq!(
        of(u32::MAX, 4096, 0),
        Some((MAX_RANGE_SECTORS - 7, 4096, 0))
    );
}

#[test]
fn caches() {
    for (wire, cache) in [
        (0, Cache::Safe),
        (1, Cache::Safe),
        (2, Cache::Volatile),
        (3, Cache::VolatileWithFua),
    ] {
        assert_eq!(Cache::from_wire(wire), cache);
        assert_eq!(Cache::from_wire(wire | 0xfc), cache);
        assert_eq!(Cache::from_wire(cache.to_wire()), cache);
    }
}

#[test]
fn other_answers() {
    let answer = OpenRsp::new(&fields());
    assert_eq!(
        Device::parse(&answer.as_bytes()[..55], 4096),
        Err(OpenError::Short { len: 55 })
    );
    assert_eq!(
        Device::parse(&[0; 56], 4096),
        Err(OpenError::Kind { kind: 0 })
    );
}

#[test]
fn what_the_server_says() {
    let export = Export {
        capacity: 131_072,
        logical_block_size: 512,
        physical_block_size: 65536,
        max_secure_erase_sectors: 0x10000,
        ..Export::default()
    };
    let device = Device::parse(export.answer(7).unwrap().as_bytes(), 4096).unwrap();
    assert_eq!((device.device_id, device.capacity), (7, 131_072));
    assert_eq!(
        (device.logical_block_size, device.physical_block_size),
        (512, 32768)
    );
    // C says 0 here, and with it that the device cannot do it.
    assert_eq!(device.max_secure_erase, 65535);
    assert_eq!((device.discard, device.max_write_zeroes), (None, 0));
    for size in [0, 256, 65536] {
        let export = Export {
            logical_block_size: size,
            ..export
        };
        assert_eq!(export.answer(7), Err(OpenError::LogicalBlockSize { size }));
    }
}

#[test]
fn remapping() {
    let before = parse(&fields()).unwrap();
    let grown = Device {
        capacity: 1 << 30,
        max_write_zeroes: 0,
        discard: None,
        ..before
    };
    assert_eq!(grown.continues(&before), Ok(()));
    let other = Device {
        logical_block_size: 4096,
        ..before
    };
    assert_eq!(
        other.continues(&before),
        Err(OpenError::BlockSizeChanged { was: 512, is: 4096 })
    );
    let [safe, cached] =
        [Cache::Safe, Cache::VolatileWithFua].map(|cache| Device { cache, ..before });
    assert_eq!(safe.continues(&cached), Ok(()));
    assert_eq!(cached.continues(&safe), Err(OpenError::CacheAppeared));
}
