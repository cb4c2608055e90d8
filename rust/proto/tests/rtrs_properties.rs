// SPDX-License-Identifier: GPL-2.0

//! Properties of RTRS that hold for any input.

use proptest::{
    array::uniform16,
    collection::vec,
    prelude::*, //
};
use weft_proto::{
    errno::Errno,
    rtrs::{
        addr::{
            Addr,
            AddrText,
            PathText, //
        },
        answer::{
            Answer,
            Incoming,
            Response, //
        },
        cid::{
            Connections,
            Use, //
        },
        conn::{
            self,
            Accepted,
            ConnectRequest,
            PathUuid,
            SessionUuid, //
        },
        geometry::Geometry,
        imm::{
            self,
            Status,
            ToClient,
            ToServer, //
        },
        info::{
            self,
            Division,
            InfoResponse, //
        },
        name::SessionName,
        policy::{
            Candidate,
            Policy,
            Search, //
        },
        request::{
            Placement,
            Request,
            Target,
            Transfer, //
        },
        sizes::{
            Needs,
            QueueSizes, //
        },
        wire::Desc, //
    }, //
};
use zerocopy::IntoBytes as _;

/// Chunks of up to 1 MiB, and up to as many as an immediate can tell apart.
fn geometry() -> impl Strategy<Value = Geometry> {
    (13..=20u32)
        .prop_flat_map(|bits| {
            (
                1..=(1u32 << (28 - bits)).min(65535),
                4096..=(1u32 << bits) - 4096,
                512..=4096u32,
            )
        })
        .prop_map(|(depth, io, hdr)| Geometry::new(depth as u16, io, hdr).unwrap())
}

/// Any outcome that an immediate can carry.
fn status() -> impl Strategy<Value = Status> {
    (0..512u16).prop_map(|number| Errno::from_number(number).map_or(Ok(()), Err))
}

/// Any way for data, with a target of up to `data_len` bytes.
fn transfer(data_len: u32) -> impl Strategy<Value = Transfer> {
    let target = (
        0..1u64 << 63,
        any::<u32>(),
        1..=data_len.max(1),
        any::<bool>(),
    );
    let read = target.prop_map(move |(addr, rkey, len, invalidate)| {
        let target = Target {
            addr,
            rkey,
            len,
            invalidate,
        };
        Transfer::Read((data_len != 0).then_some(target))
    });
    prop_oneof![Just(Transfer::Write), read]
}

/// Chunks, and a request that fits one of them.
fn request() -> impl Strategy<Value = (Geometry, u32, Transfer, u32, u16)> {
    (geometry(), any::<u32>(), 0..=480u16).prop_flat_map(|(geometry, number, usr_len)| {
        let data_len = 0..=geometry.max_io_size();
        let chunk = number % u32::from(geometry.queue_depth());
        data_len.prop_flat_map(move |data_len| {
            (
                Just(geometry),
                Just(chunk),
                transfer(data_len),
                Just(data_len),
                Just(usr_len),
            )
        })
    })
}

proptest! {
    #[test]
    fn geometry_fits_an_immediate(geometry in geometry()) {
        let last = geometry.chunks().next_back().unwrap();
        let imm = imm::request(&geometry, last, geometry.chunk_size() - 1).unwrap();
        prop_assert!(imm < 1 << 28);
        let expected = ToServer::Request { chunk: last, off: geometry.chunk_size() - 1 };
        prop_assert_eq!(ToServer::parse(&geometry, imm), Ok(expected));
    }

    #[test]
    fn any_immediate_is_inside_or_refused(geometry in geometry(), word: u32) {
        if let Ok(ToServer::Request { chunk, off }) = ToServer::parse(&geometry, word) {
            prop_assert!(chunk.number() < geometry.queue_depth() && off < geometry.chunk_size());
            prop_assert_eq!(imm::request(&geometry, chunk, off), Some(word));
        }
        if let Ok(ToClient::Response { chunk, status, invalidated }) = ToClient::parse(&geometry, word) {
            prop_assert!(chunk.number() < geometry.queue_depth());
            prop_assert_eq!(imm::response(chunk, status, invalidated), word);
        }
    }

    #[test]
    fn requests_read_back((geometry, _, transfer, data_len, usr_len) in request()) {
        let placement = Placement::new(&geometry, transfer, data_len, usr_len);
        prop_assume!(placement.is_ok());
        let placement = placement.unwrap();
        let request = Request::parse(&geometry, placement.header_off(), placement.header()).unwrap();
        prop_assert_eq!(request.transfer(), transfer);
        prop_assert_eq!((request.data_len(), request.usr_len()), (data_len, usr_len));
    }

    #[test]
    fn any_request_is_inside_or_refused(
        geometry in geometry(),
        off: u32,
        kind in 0..6u16,
        mut header in vec(any::<u8>(), 0..32),
        near in any::<bool>(),
    ) {
        let off = if near { geometry.chunk_size().wrapping_sub(off % 64) } else { off % (geometry.chunk_size() + 64) };
        if let Some(space) = header.first_chunk_mut::<2>() {
            *space = kind.to_le_bytes();
        }
        if let Ok(request) = Request::parse(&geometry, off, &header) {
            let usr = request.usr_range();
            prop_assert_eq!(usr.end, off);
            prop_assert!(usr.start <= usr.end && usr.end < geometry.chunk_size());
            prop_assert_eq!(usr.start, request.data_len());
            if let Some(target) = request.target() {
                prop_assert!((1..=request.data_len()).contains(&target.len));
                prop_assert!(target.addr.checked_add(target.len.into()).is_some());
            }
        }
        let range = Request::header_range(&geometry, off);
        prop_assert!(range.is_empty() || range.end <= geometry.chunk_size());
    }

    #[test]
    fn answers_read_back(
        (geometry, chunk, transfer, data_len, usr_len) in request(),
        status in status(),
        reply_len: u32,
        new_rkey: Option<u32>,
    ) {
        let placement = Placement::new(&geometry, transfer, data_len, usr_len);
        prop_assume!(placement.is_ok());
        let placement = placement.unwrap();
        let request = Request::parse(&geometry, placement.header_off(), placement.header()).unwrap();
        let chunk = geometry.chunk(chunk).unwrap();
        let answer = Answer::new(chunk, &request, status, reply_len, new_rkey);
        if let Some(write) = answer.data {
            let target = request.target().unwrap();
            prop_assert!(write.len <= target.len && write.len <= reply_len && status.is_ok());
            prop_assert_eq!((write.addr, write.rkey), (target.addr, target.rkey));
        }
        let incoming = match answer.message {
            Some(message) => Incoming::parse_send(&geometry, true, answer.imm, &message),
            None => Incoming::parse_write(&geometry, false, answer.imm),
        };
        let invalidated = answer.invalidate.is_some();
        let expected = Response { chunk, status, invalidated, new_rkey };
        prop_assert_eq!(incoming, Ok(Incoming::Response(expected)));
    }

    #[test]
    fn connect_requests_round_trip(
        cid_num in 1..=4096u16,
        cid: u16,
        recon_cnt: u16,
        path in uniform16(any::<u8>()),
        session in uniform16(any::<u8>()),
        first_conn: bool,
    ) {
        let (path, session) = (PathUuid(path), SessionUuid(session));
        let request = ConnectRequest { cid: cid % cid_num, cid_num, recon_cnt, path, session, first_conn };
        prop_assert_eq!(ConnectRequest::parse(request.to_wire().as_bytes()), Ok(request));
    }

    #[test]
    fn private_data_may_be_anything(mut data in vec(any::<u8>(), 0..200), known: bool) {
        if known && data.len() > 6 {
            data[..6].copy_from_slice(&[0, 0, 0xbd, 0x1b, 0, 2]);
        }
        if let Ok(request) = ConnectRequest::parse(&data) {
            prop_assert!(request.cid < request.cid_num && request.cid_num <= 4096);
        }
        let answer = data.get(2..).unwrap_or_default();
        if let Ok(accepted) = Accepted::parse(answer) {
            let again = conn::accept(&accepted.geometry, accepted.new_rkey);
            prop_assert_eq!(Accepted::parse(again.as_bytes()), Ok(accepted));
        }
        let _ = conn::rejection(answer);
    }

    #[test]
    fn chunks_are_where_the_server_says(geometry in geometry(), max_chunks: u32, base in 0..1u64 << 40, key: u32) {
        let Division { regions, chunks } = Division::new(&geometry, max_chunks);
        prop_assert_eq!(u32::from(regions) * u32::from(chunks), u32::from(geometry.queue_depth()));
        prop_assert!(u32::from(chunks) <= max_chunks.max(1));
        let len = u32::from(chunks) * geometry.chunk_size();
        let place = |region: u16| (base + (u64::from(region) << 40), key.wrapping_add(region.into()));
        let descriptors: Vec<Desc> = (0..regions).map(place).map(|(addr, key)| Desc::new(addr, key, len)).collect();
        let message = [info::response_header(regions).as_bytes(), descriptors.as_bytes()].concat();
        prop_assert!(message.len() <= info::max_response_len(&geometry));
        let parsed = InfoResponse::parse(&geometry, &message).unwrap();
        let mut count = 0;
        for (index, (chunk, addr, key)) in parsed.chunks().enumerate() {
            let (region, nth) = (index / usize::from(chunks), index % usize::from(chunks));
            let (start, expected) = place(region as u16);
            prop_assert_eq!(chunk.index(), index);
            prop_assert_eq!((addr, key), (start + nth as u64 * u64::from(geometry.chunk_size()), expected));
            count += 1;
        }
        prop_assert_eq!(count, geometry.queue_depth());
    }

    #[test]
    fn info_messages_may_be_anything(geometry in geometry(), mut message in vec(any::<u8>(), 0..300), known: bool) {
        if known && message.len() >= 8 {
            message[..4].copy_from_slice(&[1, 0, 1, 0]);
        }
        if let Ok(parsed) = InfoResponse::parse(&geometry, &message) {
            prop_assert_eq!(parsed.chunks().count(), usize::from(geometry.queue_depth()));
        }
        if let Ok(name) = info::parse_request(&message) {
            prop_assert_eq!(info::parse_request(info::request(&name).as_bytes()), Ok(name));
        }
    }

    #[test]
    fn names_are_safe(name in vec(any::<u8>(), 0..300)) {
        if let Ok(parsed) = SessionName::new(&name) {
            prop_assert_eq!(parsed.as_bytes(), &name[..]);
            prop_assert!(name.iter().all(|byte| (32..127).contains(byte) && !b"/.".contains(byte)));
            prop_assert!((1..=254).contains(&name.len()));
        }
    }

    #[test]
    fn addresses_round_trip(gid in uniform16(any::<u8>()), kind in 0..3u8) {
        let addr = match kind {
            0 => Addr::V4(<[u8; 4]>::try_from(&gid[..4]).unwrap().into()),
            1 => Addr::V6 { addr: gid.into(), scope_id: 0 },
            _ => Addr::Gid(gid),
        };
        prop_assert_eq!(AddrText::parse(&addr.to_string()).map(|text| text.addr), Ok(addr));
        let pair = format!("{addr}@{addr}");
        let parsed = PathText::parse(&pair).unwrap();
        prop_assert_eq!((parsed.src.map(|src| src.addr), parsed.dst.addr), (Some(addr), addr));
    }

    #[test]
    fn searches_try_each_path_once(
        list in vec((any::<bool>(), 0..4u32, 0..4u64), 0..20),
        policy in 0..3i32,
        turn in 0..30usize,
    ) {
        let policy = Policy::from_i32(policy).unwrap();
        let paths = list.iter().map(|&(connected, inflight, latency_ns)| Candidate { connected, inflight, latency_ns });
        let mut search = Search::new(policy, turn);
        let order: Vec<usize> = std::iter::from_fn(|| search.next(paths.clone())).collect();
        let mut once = order.clone();
        once.sort_unstable();
        let connected: Vec<usize> = (0..list.len()).filter(|index| list[*index].0).collect();
        prop_assert_eq!(once, connected);
        let weight = |index: usize| match policy {
            Policy::RoundRobin => u64::from(index < turn),
            Policy::MinInflight => list[index].1.into(),
            Policy::MinLatency => list[index].2,
        };
        prop_assert!(order.windows(2).all(|pair| (weight(pair[0]), pair[0]) < (weight(pair[1]), pair[1])));
    }

    #[test]
    fn every_processor_has_a_connection(cpus: u32, polled: u32, cpu: u32, index: u32) {
        let connections = Connections::new(cpus, polled);
        prop_assert!((2..=4096).contains(&connections.cid_num()));
        prop_assert_eq!(connections.use_of(connections.for_cpu(cpu)), Some(Use::Io));
        let polled = connections.for_poll(index);
        prop_assert_eq!(polled.is_some(), index < connections.polled().into());
        if let Some(cid) = polled {
            prop_assert_eq!(connections.use_of(cid), Some(Use::Polled));
        }
    }

    #[test]
    fn queues_stay_within_the_device(depth: u16, limit in 4..=u32::MAX) {
        for needs in [Needs::CLIENT, Needs::SERVER, Needs::SERVER_INVALIDATING] {
            for connection in [Use::Admin, Use::Io, Use::Polled] {
                let sizes = QueueSizes::new(needs, connection, depth, limit);
                prop_assert!(sizes.max_send_wr <= limit && sizes.max_recv_wr <= limit);
                prop_assert!(sizes.receives < sizes.max_recv_wr && sizes.receives > 0);
            }
        }
    }
}
