// SPDX-License-Identifier: GPL-2.0

//! Receiving, and judging what came.

use super::family::{RECEIVED, SOL_RDS, SOL_SOCKET, TIMESTAMPS, ZCOPY_COMPLETION};
use crate::calls::Call;
use crate::message::{self, Content};
use crate::name::Name;
use crate::shared::{lock, Sock};
use crate::worker::{place, Worker};
use std::sync::atomic::Ordering;

const OOB: usize = 1;
const PEEK: usize = 2;
const CTRUNC: u32 = 8;
const TRUNC: usize = 0x20;
const DONTWAIT: usize = 0x40;
const WAITALL: usize = 0x100;
const ERRQUEUE: usize = 0x2000;

/// What a receive has brought.
struct Incoming {
    /// The result of the call.
    len: usize,
    /// The room it had.
    room: usize,
    /// The flags of the call.
    flags: usize,
    /// The time when it began.
    begin: u64,
    /// The flags that it has set.
    got: u32,
    from: Option<Name>,
}

impl Worker {
    /// Receives something, by `recvmsg` or `read`.
    pub(crate) fn receive(&mut self) {
        let Some(sock) = self.bound_sock() else {
            return;
        };
        match self.rng.below(12) {
            0 => self.read(&sock),
            1 => self.write(),
            _ => self.recvmsg(&sock),
        }
    }

    fn receive_flags(&mut self) -> usize {
        let wait = if self.rng.permille(60) { 0 } else { DONTWAIT };
        wait | match self.rng.below(40) {
            0..3 => PEEK,
            3..6 => TRUNC,
            6 => WAITALL,
            7 => ERRQUEUE,
            8 => OOB,
            9 => PEEK | TRUNC,
            // CMSG_CLOEXEC
            10 => 0x4000_0000,
            _ => 0,
        }
    }

    fn room(&mut self) -> usize {
        match self.rng.below(10) {
            0 => self.rng.below(200),
            1 => self.rng.below(20_000),
            _ => place::DATA_LEN,
        }
    }

    fn recvmsg(&mut self, sock: &Sock) {
        let flags = self.receive_flags();
        let room = self.room();
        let data = self.memory.at(place::DATA);
        let mut pieces = self.split(data, room);
        if self.rng.permille(20) {
            let spoilt = self.rng.below(pieces.len());
            pieces[spoilt].0 = self.nowhere();
        }
        self.write_vectors(&pieces);
        let (words, names, controls) = self.write_receive_header(pieces.len());
        let header = self.memory.at(place::MSGHDR);
        let header = self.output(header);
        let begin = lock(&self.shared.ledger).now();
        let Ok(len) = self.call(Call::Recvmsg, [sock.fd, header, flags, 0, 0, 0]) else {
            return;
        };
        let names_given = words[0] == self.memory.at(place::NAME_OUT);
        let from_len = if words[0] == 0 {
            0
        } else {
            self.memory.u32(place::MSGHDR + 8)
        };
        // CAST: To a wider type.
        let known = names_given && from_len as usize <= names;
        let from = known
            .then(|| Name::parse(self.memory.get(place::NAME_OUT, from_len as usize)))
            .flatten();
        let got = self.memory.u32(place::MSGHDR + 48);
        self.judge_control(sock, words[4], controls, got);
        self.judge_message(
            sock,
            &Incoming {
                len,
                room,
                flags,
                begin,
                got,
                from,
            },
        );
    }

    /// Writes a `msghdr` for `count` vectors, seldom with a wrong address; its words, and the room for a name and for
    /// control messages.
    fn write_receive_header(&mut self, count: usize) -> ([usize; 7], usize, usize) {
        let names = self.rng.of(&[0, 128, 128, 128, 28, 16, 7]);
        let controls = self.rng.of(&[0, 512, 512, 512, 512, 56, 40, 20, 15]);
        self.memory.put(place::MSGHDR, &[0; 56]);
        let at = |offset: usize, len: usize| if len == 0 { 0 } else { self.memory.at(offset) };
        let vectors = self.memory.at(place::IOV);
        let mut words = [
            at(place::NAME_OUT, names),
            names,
            vectors,
            count,
            at(place::CONTROL, controls),
            controls,
            0,
        ];
        for (field, chance) in [(0, 10), (4, 10)] {
            if words[field] != 0 && self.rng.permille(chance) {
                words[field] = self.output(0);
            }
        }
        // Zeros that can be read would be vectors of no length.
        if self.rng.permille(3) {
            words[2] = self.nowhere();
        }
        self.memory.put_words(place::MSGHDR, &words);
        (words, names, controls)
    }

    fn read(&mut self, sock: &Sock) {
        let room = place::DATA_LEN;
        let data = match self.rng.below(60) {
            0 => self.nowhere(),
            1 => self.read_only.at(0),
            _ => self.memory.at(place::DATA),
        };
        let begin = lock(&self.shared.ledger).now();
        if let Ok(len) = self.call(Call::Read, [sock.fd, data, room, 0, 0, 0]) {
            self.judge_message(
                sock,
                &Incoming {
                    len,
                    room,
                    flags: 0,
                    begin,
                    got: 0,
                    from: None,
                },
            );
        }
    }

    fn judge_message(&mut self, sock: &Sock, message: &Incoming) {
        let Incoming {
            len,
            room,
            flags,
            begin,
            got,
            from,
        } = *message;
        // CAST: To a wider type.
        let cut = got as usize & TRUNC != 0;
        if len > room && (flags & TRUNC == 0 || !cut) {
            return self.violation(&format!("{len} bytes in a buffer of {room}"));
        }
        if flags & (OOB | ERRQUEUE) != 0 {
            return self.judge(
                (len == 0)
                    .then_some(())
                    .ok_or_else(|| format!("{len} bytes of flags {flags:#x}")),
            );
        }
        // A notice, or a message without content.
        if len == 0 {
            return;
        }
        let content = message::parse(self.memory.get(place::DATA, len.min(room)), !cut);
        let header = match content {
            Ok(Content::Known(header)) => header,
            Ok(Content::Filler) => return,
            Err(text) => return self.violation(&format!("socket {}: {text}", sock.id)),
        };
        self.shared.received.fetch_add(1, Ordering::Relaxed);
        let by = sock.receiver();
        let mut ledger = lock(&self.shared.ledger);
        let mut result = ledger.addresses(&header, by, from);
        if result.is_ok() && flags & PEEK == 0 {
            result = ledger.receive(&header, by, begin);
        }
        drop(ledger);
        self.judge(result);
    }

    /// Goes through the control messages of a receive.
    fn judge_control(&mut self, sock: &Sock, at: usize, room: usize, got: u32) {
        if at != self.memory.at(place::CONTROL) {
            return;
        }
        // CAST: To a wider type; the kernel writes what it has used.
        let used = self.memory.u32(place::MSGHDR + 40) as usize;
        if used > room {
            return self.violation(&format!("{used} bytes in a control buffer of {room}"));
        }
        let raw = self.memory.get(place::CONTROL, used).to_vec();
        let mut rest = &raw[..];
        while rest.len() >= 16 {
            let word = |at: usize| {
                rest.get(at..at + 4)
                    .and_then(|raw| raw.try_into().ok())
                    .map_or(0, i32::from_ne_bytes)
            };
            let len = usize::try_from(word(0)).unwrap_or(0);
            let (level, kind) = (word(8), word(12));
            if len < 16 || (len > rest.len() && got & CTRUNC == 0) {
                return self.violation(&format!("a control message of {len} bytes in {used}"));
            }
            let known = (level == SOL_RDS && RECEIVED.contains(&kind))
                || (level == SOL_SOCKET && TIMESTAMPS.contains(&kind));
            if !known {
                return self.violation(&format!("a control message of level {level}, type {kind}"));
            }
            let data = &rest[16..len.min(rest.len())];
            if kind == ZCOPY_COMPLETION {
                self.completions(sock, data);
            }
            rest = rest.get(len.next_multiple_of(8)..).unwrap_or_default();
        }
    }

    fn completions(&mut self, sock: &Sock, data: &[u8]) {
        let words: Vec<_> = data
            .chunks_exact(4)
            .map(|raw| u32::from_ne_bytes([raw[0], raw[1], raw[2], raw[3]]))
            .collect();
        // CAST: To a wider type.
        let count = words.first().map_or(0, |count| *count as usize);
        match words.get(1..=count) {
            Some(cookies) if count > 0 => cookies
                .iter()
                .for_each(|cookie| self.take_back(sock, *cookie)),
            _ => self.violation(&format!("{count} cookies in {} bytes", data.len())),
        }
    }
}
