// SPDX-License-Identifier: GPL-2.0

//! Sending.

use super::family::{self, Control};
use crate::calls::Call;
use crate::memory::pattern;
use crate::message::{Header, HEADER, STARTS};
use crate::name::Name;
use crate::shared::{lock, Sock};
use crate::worker::{place, Worker};

const DONTWAIT: usize = 0x40;
const ZEROCOPY: usize = 0x400_0000;
/// Vectors that the kernel takes at most.
const UIO_MAXIOV: usize = 1024;

/// A message that is being sent.
struct Outgoing {
    number: u32,
    /// The cookie, and where the header is.
    lent: Option<(u32, usize)>,
}

impl Worker {
    /// Sends a message, or tries to.
    pub(crate) fn send(&mut self) {
        let Some(sock) = self.bound_sock() else {
            return;
        };
        let flags = self.send_flags();
        let len = self.length();
        let to = self.destination(&sock);
        let (header, out) = if len < HEADER {
            (self.memory.at(place::FILLER), None)
        } else {
            match self.header(&sock, len, to, flags & ZEROCOPY != 0) {
                Some((at, out)) => (at, Some(out)),
                None => return,
            }
        };
        let cookie = out
            .as_ref()
            .and_then(|out| out.lent)
            .map(|(cookie, _)| cookie);
        let control = self.controls(cookie, flags & ZEROCOPY != 0);
        let name = self.write_name(to);
        let count = self.vectors(header, len);
        self.write_msghdr(name, count, control);
        let header = self.memory.at(place::MSGHDR);
        let header = self.input(header);
        let result = self.call(Call::Sendmsg, [sock.fd, header, flags, 0, 0, 0]);
        self.conclude(&sock, len, out, result);
    }

    fn send_flags(&mut self) -> usize {
        let wait = if self.rng.permille(60) { 0 } else { DONTWAIT };
        let kind = match self.rng.below(40) {
            0 => 1 << self.rng.below(31),
            1..4 => 0x4000,
            4..6 => 0x80,
            6..12 => ZEROCOPY,
            _ => 0,
        };
        wait | kind
    }

    fn length(&mut self) -> usize {
        match self.rng.below(1000) {
            0..60 => self.rng.below(HEADER),
            60..600 => HEADER + self.rng.below(1000),
            600..860 => HEADER + self.rng.below(9000),
            860..990 => HEADER + self.rng.below(100_000),
            _ => HEADER + self.rng.below(1_100_000),
        }
    }

    /// Where to: None is where the socket is connected to.
    fn destination(&mut self, sock: &Sock) -> Option<Name> {
        match self.rng.below(20) {
            0..3 => None,
            3 => Some(Name::unlikely(&mut self.rng)),
            4..8 => Some(Name::likely(&mut self.rng)),
            _ => {
                let own = sock.name.get().map(Name::is_v4);
                let others = (0..4).filter_map(|_| self.bound_sock()?.name.get().copied());
                let others: Vec<_> = others.collect();
                // Mostly one of the same family.
                let same = others.iter().find(|name| own == Some(name.is_v4()));
                same.or(others.first()).copied()
            }
        }
    }

    /// Writes a header; its address.
    fn header(
        &mut self,
        sock: &Sock,
        len: usize,
        to: Option<Name>,
        zerocopy: bool,
    ) -> Option<(usize, Outgoing)> {
        let lent = match zerocopy && !self.rng.permille(50) {
            true => Some((self.shared.cookie(), lock(&self.shared.places).take()?)),
            false => None,
        };
        let start = self.rng.below(STARTS);
        let mut ledger = lock(&self.shared.ledger);
        let number = ledger.send(sock.id, self.index);
        if let Some((cookie, place)) = lent {
            ledger.lend(sock.id, cookie, place);
        }
        drop(ledger);
        let len = u32::try_from(len).ok()?;
        let start = u32::try_from(start).ok()?;
        let bytes = Header {
            sender: sock.id,
            thread: self.index,
            number,
            len,
            start,
            to,
        }
        .bytes();
        // The body's place is read from here when the vectors are written.
        self.memory.put(place::HEADER, &bytes);
        let at = match lent {
            Some((_, place)) => lock(&self.shared.places).write(place, &bytes),
            None => self.memory.at(place::HEADER),
        };
        Some((at, Outgoing { number, lent }))
    }

    /// Writes the vectors of a message; how many they are. Few of them are wrong.
    fn vectors(&mut self, header: usize, len: usize) -> usize {
        // CAST: To a wider type.
        let start = self.memory.u32(place::HEADER + 24) as usize;
        let body = pattern().as_ptr().addr() + start;
        let mut pieces = self.split(header, len.min(HEADER));
        if len > HEADER {
            pieces.extend(self.split(body, len - HEADER));
        }
        if self.rng.permille(15) {
            let spoilt = self.rng.below(pieces.len());
            pieces[spoilt].0 = self.nowhere();
        }
        if self.rng.permille(3) {
            let spoilt = self.rng.below(pieces.len());
            pieces[spoilt].1 = self.rng.of(&[usize::MAX, usize::MAX / 2, 1 << 40]);
        }
        self.write_vectors(&pieces);
        match self.rng.permille(3) {
            true => self.rng.of(&[UIO_MAXIOV + 1, usize::MAX, 1 << 32]),
            false => pieces.len(),
        }
    }

    /// A piece of memory in up to four pieces, empty ones among them.
    pub(super) fn split(&mut self, at: usize, len: usize) -> Vec<(usize, usize)> {
        let mut pieces = Vec::new();
        let mut done = 0;
        while self.rng.below(4) == 0 && pieces.len() < 3 {
            let piece = self.rng.below(len - done + 1);
            pieces.push((at + done, piece));
            done += piece;
        }
        pieces.push((at + done, len - done));
        pieces
    }

    pub(super) fn write_vectors(&mut self, pieces: &[(usize, usize)]) {
        for (number, (at, len)) in pieces.iter().enumerate() {
            self.memory
                .put_words(place::IOV + 16 * number, &[*at, *len]);
        }
    }

    /// Writes the destination; its address and length.
    fn write_name(&mut self, to: Option<Name>) -> (usize, usize) {
        let Some(to) = to else {
            return (0, 0);
        };
        let raw = to.bytes(self.rng.permille(50));
        self.memory.put(place::NAME, &raw);
        let at = self.memory.at(place::NAME);
        // Null would mean the destination that the socket is connected to.
        (self.input(at).max(1), raw.len())
    }

    /// Writes control messages; `zerocopy` says that a cookie has a meaning.
    fn controls(&mut self, cookie: Option<u32>, zerocopy: bool) -> (usize, usize) {
        let mut control = Control::default();
        if let Some(cookie) = cookie {
            control.add(family::SOL_RDS, family::ZCOPY_COOKIE, &cookie.to_ne_bytes());
        }
        if self.rng.permille(if cookie.is_some() { 20 } else { 100 }) {
            self.odd_controls(&mut control, zerocopy);
        }
        if control.bytes.is_empty() {
            return (0, 0);
        }
        self.memory.put(place::CONTROL, &control.bytes);
        let at = self.memory.at(place::CONTROL);
        (self.input(at), control.bytes.len())
    }

    fn write_msghdr(&mut self, name: (usize, usize), vectors: usize, control: (usize, usize)) {
        let mut words = [
            name.0,
            name.1,
            self.memory.at(place::IOV),
            vectors,
            control.0,
            control.1,
            0,
        ];
        if self.rng.permille(3) {
            words[2] = self.bad_address();
        }
        if self.rng.permille(3) && words[4] != 0 {
            words[5] = self.rng.of(&[usize::MAX, 1 << 31, 3, 1 << 20]);
        }
        self.memory.put_words(place::MSGHDR, &words);
    }

    /// Writes down what has become of a message.
    fn conclude(
        &mut self,
        sock: &Sock,
        len: usize,
        out: Option<Outgoing>,
        result: Result<usize, i32>,
    ) {
        if result.is_ok_and(|sent| sent != len) {
            self.violation(&format!("{result:?} of {len} bytes were sent"));
        }
        let Some(out) = out.filter(|_| result.is_err()) else {
            return;
        };
        let refused = lock(&self.shared.ledger).refuse(sock.id, self.index, out.number);
        self.judge(refused);
        if let Some((cookie, _)) = out.lent {
            self.take_back(sock, cookie);
        }
    }

    /// Memory that the kernel has used is free again.
    pub(super) fn take_back(&mut self, sock: &Sock, cookie: u32) {
        let place = lock(&self.shared.ledger).give_back(sock.id, cookie);
        match place {
            Ok(place) => lock(&self.shared.places).retire(vec![place]),
            Err(text) => self.violation(&text),
        }
    }

    /// Sends bytes without a header by `write`.
    pub(super) fn write(&mut self) {
        let Some(sock) = self.bound_sock() else {
            return;
        };
        // It waits where the socket does, so it is for those that do not.
        let len = self.rng.below(HEADER);
        let at = match self.rng.permille(15) {
            true => self.nowhere(),
            false => self.memory.at(place::FILLER),
        };
        let result = self.call(Call::Write, [sock.fd, at, len, 0, 0, 0]);
        if result.is_ok_and(|sent| sent != len) {
            self.violation(&format!("{result:?} of {len} bytes were written"));
        }
    }
}
