// SPDX-License-Identifier: GPL-2.0

//! What the C modules said to each other over RTRS, read by this crate and written again; `data/README.md` describes
//! the files.

use weft_proto::{
    rnbd::{
        access::Access,
        limits::{
            Cache,
            Device, //
        },
        message::{
            Carrier,
            Message, //
        },
        op::Op,
        wire::{
            Close,
            Open,
            OpenRsp,
            SessInfo,
            VERSION, //
        }, //
    },
    rtrs::{
        answer::{
            Answer,
            DataWrite,
            Incoming,
            Response, //
        },
        conn::{
            self,
            Accepted,
            ConnectRequest, //
        },
        geometry::Geometry,
        imm::{
            self,
            ToServer, //
        },
        info::{
            self,
            InfoResponse, //
        },
        request::{
            Placement,
            Request, //
        }, //
    }, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

/// One message.
struct Event {
    from_client: bool,
    kind: String,
    addr: u64,
    rkey: u32,
    imm: Option<u32>,
    bytes: Vec<u8>,
}

/// Bytes in the form of the files: pieces in hexadecimal, `xx*n` for `n` equal bytes, `-` for none.
fn bytes(text: &str) -> Vec<u8> {
    let hex = |digits: &str| u8::from_str_radix(digits, 16).unwrap();
    let piece = |piece: &str| match piece.split_once('*') {
        Some((byte, count)) => vec![hex(byte); count.parse().unwrap()],
        None => (0..piece.len())
            .step_by(2)
            .map(|at| hex(&piece[at..at + 2]))
            .collect(),
    };
    text.split(',')
        .filter(|text| *text != "-")
        .flat_map(piece)
        .collect()
}

/// A request that has no answer yet, and what came of the answer.
struct Pending {
    chunk: u32,
    request: Request,
    data: Option<Vec<u8>>,
    write: Option<DataWrite>,
    invalidated: Option<u32>,
}

/// What both sides know.
#[derive(Default)]
struct Replay {
    accepted: Option<Accepted>,
    connections: u16,
    /// Address and key of each chunk.
    chunks: Vec<(u64, u32)>,
    pending: Option<Pending>,
    heartbeats: Vec<u32>,
    operations: Vec<String>,
}

impl Replay {
    fn geometry(&self) -> Geometry {
        self.accepted.unwrap().geometry
    }

    fn new_rkey(&self) -> bool {
        self.accepted.unwrap().new_rkey
    }

    fn take(&mut self, event: &Event) {
        match (event.from_client, &event.kind[..]) {
            (true, "connect") => self.connect(&event.bytes),
            (false, "accept") => self.accept(&event.bytes),
            (true, "send") => {
                let name = info::parse_request(&event.bytes).unwrap();
                assert_eq!(name.as_str(), "vec");
                assert_eq!(info::request(&name).as_bytes(), event.bytes);
            }
            (false, "send") if event.imm.is_none() => self.info(&event.bytes),
            (true, "write") => self.request(event),
            (false, "invalidate") => self.pending.as_mut().unwrap().invalidated = Some(event.rkey),
            (false, "write") if event.imm.is_none() => {
                let pending = self.pending.as_mut().unwrap();
                pending.write = Some(DataWrite {
                    addr: event.addr,
                    rkey: event.rkey,
                    len: event.bytes.len() as u32,
                });
                pending.data = Some(event.bytes.clone());
            }
            (false, _) => self.answer(event),
            (true, kind) => panic!("{kind}"),
        }
    }

    fn connect(&mut self, bytes: &[u8]) {
        let request = ConnectRequest::parse(bytes).unwrap();
        assert_eq!(request.to_wire().as_bytes(), bytes);
        assert_eq!((request.cid, request.cid_num), (self.connections, 2));
        assert_eq!((request.recon_cnt, request.first_conn), (1, true));
        self.connections += 1;
    }

    fn accept(&mut self, bytes: &[u8]) {
        let accepted = Accepted::parse(bytes).unwrap();
        assert_eq!(
            accepted.geometry,
            Geometry::from_settings(131_072, 512, 4096).unwrap()
        );
        assert_eq!(
            conn::accept(&accepted.geometry, accepted.new_rkey).as_bytes(),
            bytes
        );
        assert!(self.accepted.is_none_or(|before| before == accepted));
        self.accepted = Some(accepted);
    }

    fn info(&mut self, bytes: &[u8]) {
        let parsed = InfoResponse::parse(&self.geometry(), bytes).unwrap();
        self.chunks = parsed
            .chunks()
            .map(|(_, addr, rkey)| (addr, rkey))
            .collect();
        assert_eq!(self.chunks.len(), 512);
        let descriptors = if self.new_rkey() { 512 } else { 1 };
        assert_eq!(bytes.len(), info::response_len(descriptors));
        assert_eq!(&bytes[..8], info::response_header(descriptors).as_bytes());
    }

    fn request(&mut self, event: &Event) {
        let imm = event.imm.unwrap();
        let (chunk, off) = match ToServer::parse(&self.geometry(), imm).unwrap() {
            ToServer::Request { chunk, off } => (chunk, off),
            ToServer::Heartbeat | ToServer::HeartbeatAck => return self.heartbeats.push(imm),
        };
        assert_eq!(imm::request(&self.geometry(), chunk, off), Some(imm));
        let (addr, rkey) = self.chunks[chunk.index()];
        assert_eq!(event.rkey, rkey);

        let mut memory = vec![0xee; self.geometry().chunk_size() as usize];
        let start = (event.addr - addr) as usize;
        memory[start..start + event.bytes.len()].copy_from_slice(&event.bytes);
        let header = Request::header_range(&self.geometry(), off);
        let header = &memory[header.start as usize..header.end as usize];
        let request = Request::parse(&self.geometry(), off, header).unwrap();

        let placement = Placement::new(
            &self.geometry(),
            request.transfer(),
            request.data_len(),
            request.usr_len(),
        )
        .unwrap();
        assert_eq!(placement.header_off(), off);
        assert_eq!(placement.remote_off() as usize, start);
        assert!(event.bytes.ends_with(placement.header()));

        let usr = request.usr_range();
        self.message(&request, &memory[usr.start as usize..usr.end as usize]);
        self.pending = Some(Pending {
            chunk: chunk.number().into(),
            request,
            data: None,
            write: None,
            invalidated: None,
        });
    }

    /// Reads a message of RNBD and writes it again.
    fn message(&mut self, request: &Request, message: &[u8]) {
        let carrier = Carrier {
            is_write: request.is_write(),
            data_len: request.data_len(),
        };
        let (name, again) = match Message::parse(message, carrier, VERSION).unwrap() {
            Message::SessInfo { version } => (
                "info".into(),
                SessInfo::request(version).as_bytes().to_vec(),
            ),
            Message::Open { access, path } => {
                assert_eq!((access, path.as_str()), (Access::ReadWrite, "/dev/ram0"));
                (
                    "open".into(),
                    Open::new(access.number(), path.to_wire())
                        .as_bytes()
                        .to_vec(),
                )
            }
            Message::Close { device_id } => (
                format!("close {device_id}"),
                Close::new(device_id).as_bytes().to_vec(),
            ),
            Message::Io(io) => {
                assert_eq!(carrier.is_write, io.rw().op == Op::Write);
                assert!(io.rw().flags.sync);
                assert_eq!((io.device_id(), io.server_prio()), (0, 0x4004));
                let name = format!("{} {} {}", io.rw().op, io.sector(), io.bytes());
                (name, io.to_wire().as_bytes().to_vec())
            }
        };
        assert_eq!(again, message);
        self.operations.push(name);
    }

    fn answer(&mut self, event: &Event) {
        let imm = event.imm.unwrap();
        let incoming = match &event.kind[..] {
            "send" => Incoming::parse_send(&self.geometry(), self.new_rkey(), imm, &event.bytes),
            _ => Incoming::parse_write(&self.geometry(), self.new_rkey(), imm),
        };
        let Incoming::Response(response) = incoming.unwrap() else {
            return self.heartbeats.push(imm);
        };
        let pending = self.pending.take().unwrap();
        let chunk = self.geometry().chunk(pending.chunk).unwrap();
        let (_, old_key) = self.chunks[chunk.index()];
        // The lower eight bits count.
        let new_rkey = self
            .new_rkey()
            .then_some((old_key & !0xff) | ((old_key + 1) & 0xff));
        let invalidated = pending.invalidated.is_some();
        let expected = Response {
            chunk,
            status: Ok(()),
            invalidated,
            new_rkey,
        };
        assert_eq!(response, expected);
        if let Some(rkey) = new_rkey {
            self.chunks[chunk.index()].1 = rkey;
        }

        let reply_len = pending.data.as_ref().map_or(0, Vec::len) as u32;
        let answer = Answer::new(chunk, &pending.request, Ok(()), reply_len, new_rkey);
        assert_eq!(answer.imm, imm);
        assert_eq!(
            (answer.data, answer.invalidate),
            (pending.write, pending.invalidated)
        );
        assert_eq!(answer.message.map_or(vec![], Vec::from), event.bytes);
        self.reply(pending.data.unwrap_or_default());
    }

    /// Reads the answer of RNBD and writes it again.
    fn reply(&self, data: Vec<u8>) {
        match &self.operations.last().unwrap()[..] {
            "info" => assert_eq!(SessInfo::response(VERSION).as_bytes(), data),
            "open" => {
                let device = Device::parse(&data, self.geometry().max_io_size()).unwrap();
                assert_eq!((device.device_id, device.capacity), (0, 131_072));
                assert_eq!(
                    (device.logical_block_size, device.physical_block_size),
                    (512, 4096)
                );
                assert_eq!(
                    device.discard.map(|discard| discard.granularity),
                    Some(4096)
                );
                assert_eq!((device.max_write_zeroes, device.cache), (0, Cache::Safe));
                let wire = OpenRsp::read_from_bytes(&data).unwrap();
                assert_eq!(OpenRsp::new(&wire.fields()).as_bytes(), data);
            }
            "read 24 4096" => assert_eq!(data, [b'W'; 4096]),
            "read 0 65536" => assert_eq!(data[12288..16384], [b'W'; 4096]),
            _ => {}
        }
    }
}

/// Reads a file to its end.
fn replay(text: &str) -> Replay {
    let mut replay = Replay::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [from, kind, addr, rkey, imm, data] = words[..] else {
            panic!("{line}");
        };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        replay.take(&Event {
            from_client: from == "client",
            kind: kind.into(),
            addr: hex(addr).unwrap_or(0),
            rkey: hex(rkey).unwrap_or(0) as u32,
            imm: hex(imm).map(|imm| imm as u32),
            bytes: bytes(data),
        });
    }
    assert!(replay.pending.is_none());
    assert_eq!(
        replay.heartbeats,
        [0x8000_0000, 0x9000_0000, 0x8000_0000, 0x9000_0000]
    );
    let expected = [
        "info",
        "open",
        "read 0 4096",
        "write 24 4096",
        "read 24 4096",
        "read 0 65536",
        "close 0",
    ];
    assert_eq!(replay.operations, expected);
    replay
}

#[test]
fn server_that_invalidates() {
    let replay = replay(include_str!("data/rtrs-invalidating.txt"));
    assert!(replay.new_rkey());
    assert_eq!(replay.connections, 2);
}

#[test]
fn server_that_does_not() {
    let replay = replay(include_str!("data/rtrs-plain.txt"));
    assert!(!replay.new_rkey());
    assert_eq!(replay.connections, 2);
}
