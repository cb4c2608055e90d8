// SPDX-License-Identifier: GPL-2.0

//! Properties of RNBD, and of what users write, that hold for any input.

use proptest::{
    collection::vec,
    prelude::*, //
};
use weft_proto::{
    rnbd::{
        limits::{
            Device,
            MAX_BLOCK_SIZE, //
        },
        message::{
            Carrier,
            DeviceLimits,
            Io,
            Message, //
        },
        op::{
            Flags,
            Op,
            Rw, //
        },
        options::MapOptions,
        path::{
            DevicePath,
            SearchPath,
            PATH_SPACE, //
        },
        wire::{
            OpenRsp,
            VERSION, //
        }, //
    },
    rtrs::name::SessionName,
    text, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

proptest! {
    #[test]
    fn io_round_trips(
        op in 0..6usize,
        bits in 0..16u8,
        device_id: u32,
        sector in 0..1u64 << 50,
        sectors in 1..=2048u32,
        prio: u16,
    ) {
        let flags = Flags {
            sync: bits & 1 != 0,
            fua: bits & 2 != 0,
            preflush: bits & 4 != 0,
            nounmap: bits & 8 != 0,
        };
        let op = Op::ALL[op];
        let bytes = if op == Op::Flush { 0 } else { sectors * 512 };
        let io = Io::new(device_id, Rw::from_block(op, flags), sector, bytes, prio).unwrap();
        let carrier = Carrier { is_write: op.travels_as_write(), data_len: io.data_len() };
        let wire = io.to_wire();
        prop_assert_eq!(Message::parse(wire.as_bytes(), carrier, VERSION), Ok(Message::Io(io)));
        prop_assert!(io.server_prio() >> 13 != 1 && io.server_prio() >> 13 <= 3);
    }

    #[test]
    fn any_message_is_consistent_or_refused(
        kind in 0..7u16,
        mut message in vec(any::<u8>(), 0..300),
        is_write: bool,
        data_len in prop_oneof![Just(0u32), Just(56), Just(4096), any::<u32>()],
        small: bool,
        capacity: u64,
    ) {
        if let Some(space) = message.first_chunk_mut::<2>() {
            *space = kind.to_le_bytes();
        }
        // Operations and sizes that have a chance to fit.
        if let (true, Some(space)) = (small, message.get_mut(16..24)) {
            space[1..4].fill(0);
            space[4..8].copy_from_slice(&data_len.to_le_bytes());
        }
        let carrier = Carrier { is_write, data_len };
        match Message::parse(&message, carrier, VERSION) {
            Ok(Message::Io(io)) => {
                prop_assert_eq!(io.data_len(), data_len);
                prop_assert_eq!(io.bytes() % 512, 0);
                let limits = DeviceLimits { access: Default::default(), capacity, logical_block_size: 512 };
                if io.check(&limits).is_ok() {
                    prop_assert!(io.sector() + u64::from(io.bytes() / 512) <= capacity);
                }
                match io.rw().op {
                    Op::Read => prop_assert!(!is_write && io.bytes() > 0),
                    Op::Write => prop_assert!(is_write && io.bytes() > 0),
                    Op::Flush => prop_assert_eq!(io.bytes(), 0),
                    Op::Discard | Op::SecureErase | Op::WriteZeroes => prop_assert!(io.bytes() > 0),
                }
            }
            Ok(Message::Open { .. }) => prop_assert!(!is_write && data_len >= 56 && message.len() >= 264),
            Ok(Message::SessInfo { version }) => prop_assert!(version <= 2 && data_len >= 36),
            Ok(Message::Close { .. }) => prop_assert!(message.len() >= 8),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_device_is_sound(mut answer in vec(any::<u8>(), 56), shifts in (9..16u8, 9..16u8), capacity: u64) {
        answer[..2].copy_from_slice(&[3, 0]);
        answer[8..16].copy_from_slice(&capacity.to_le_bytes());
        answer[36..38].copy_from_slice(&(1u16 << shifts.0).to_le_bytes());
        answer[38..40].copy_from_slice(&(1u16 << shifts.1).to_le_bytes());
        let parsed = Device::parse(&answer, 1 << 20);
        prop_assert_eq!(parsed.is_ok(), capacity <= text::MAX_SECTORS);
        let Ok(device) = parsed else { return Ok(()) };
        let (logical, physical) = (device.logical_block_size, device.physical_block_size);
        prop_assert!(logical.is_power_of_two() && physical.is_power_of_two());
        prop_assert!(512 <= logical && logical <= physical && physical <= MAX_BLOCK_SIZE);
        let discard = device.discard.map_or(0, |discard| discard.max_sectors);
        for sectors in [discard, device.max_write_zeroes, device.max_secure_erase] {
            prop_assert_eq!(sectors % (logical / 512), 0);
            prop_assert!(sectors.checked_mul(512).is_some());
        }
        if let Some(discard) = device.discard {
            prop_assert!(discard.max_sectors > 0 && discard.alignment < discard.granularity);
            prop_assert_eq!((discard.granularity % logical, discard.alignment % 512), (0, 0));
        }
    }

    #[test]
    fn open_answers_round_trip(answer in vec(any::<u8>(), 56)) {
        let wire = OpenRsp::read_from_bytes(&answer).unwrap();
        let again = OpenRsp::new(&wire.fields());
        prop_assert_eq!(again.fields(), wire.fields());
        prop_assert_eq!(&again.as_bytes()[4..44], &answer[4..44]);
        prop_assert_eq!(again.as_bytes()[45], answer[45]);
        prop_assert!(again.as_bytes()[46..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn devices_stay_below_their_folder(device in "[a-c./]{1,12}", session in "[a-z]{1,5}", token: bool) {
        let Ok(path) = DevicePath::new(device.as_bytes()) else {
            prop_assert!(device.split('/').any(|part| part == ".."));
            return Ok(());
        };
        let folder = if token { "/dev/%SESSNAME%/disks" } else { "/dev" };
        let mut space = [0xff; PATH_SPACE];
        let session = SessionName::new(session.as_bytes()).unwrap();
        let search = SearchPath::new(folder.as_bytes()).unwrap();
        let full = search.resolve(&session, path, &mut space).unwrap().to_str().unwrap();
        let start = if token { format!("/dev/{session}/disks/") } else { "/dev/".into() };
        prop_assert!(full.starts_with(&start), "{}", full);
        prop_assert!(!full.contains("//") && !full.split('/').any(|part| part == ".."));
    }

    #[test]
    fn options_may_be_anything(
        words in vec("(sessname|device_path|path|dest_port|access_mode|nr_poll_queues|x)=?[ -~]{0,12}", 0..8),
        cpus in 1..64u32,
    ) {
        let text = words.join(" ");
        match MapOptions::parse(text.as_bytes(), cpus) {
            Ok(options) => {
                prop_assert!(options.nr_poll_queues <= cpus && options.paths().count() <= 6);
                let session = format!("sessname={}", options.session);
                prop_assert!(text.split(' ').any(|word| word == session));
            }
            Err(error) => prop_assert!(error.to_string().len() < 256),
        }
    }

    #[test]
    fn values_may_be_anything(text in "[ \n]?[-+]?(0x)?[0-9a-fG]{0,22}\n?") {
        if let Ok(sectors) = text::parse_sectors(text.as_bytes()) {
            prop_assert!(sectors <= text::MAX_SECTORS);
        }
        let decimal = text::parse_decimal(text.as_bytes(), -1, 9999).ok();
        let expected = text.trim().parse::<i64>().ok().filter(|number| (-1..=9999).contains(number));
        prop_assert_eq!(decimal, expected.filter(|_| !text.contains('+')));
    }
}
