// SPDX-License-Identifier: GPL-2.0

//! Waiting: poll and epoll.

use crate::calls::Call;
use crate::worker::{place, Worker};

/// POLLERR, POLLHUP, POLLNVAL: RDS sockets have none of them.
const NEVER: u16 = 0x8 | 0x10 | 0x20;
/// Milliseconds to wait at most.
const TIMEOUT: usize = 20;

impl Worker {
    /// Waits for up to four sockets.
    pub(crate) fn poll(&mut self) {
        let socks: Vec<_> = (0..=self.rng.below(4))
            .filter_map(|_| self.bound_sock())
            .collect();
        for (number, sock) in socks.iter().enumerate() {
            // CAST: A descriptor, and 16 of the bits.
            let (fd, events) = (sock.fd as u32, self.rng.u32() as u16 & 0x3ff & !NEVER);
            let raw = [&fd.to_ne_bytes()[..], &events.to_ne_bytes(), &[0; 2]].concat();
            self.memory.put(place::POLL + 8 * number, &raw);
        }
        let at = self.memory.at(place::POLL);
        let at = self.output(at);
        let timeout = if self.rng.permille(200) {
            self.rng.below(TIMEOUT)
        } else {
            0
        };
        if self
            .call(Call::Poll, [at, socks.len(), timeout, 0, 0, 0])
            .is_err()
        {
            return;
        }
        for number in 0..socks.len() {
            let raw = self.memory.get(place::POLL + 8 * number + 6, 2);
            let got = u16::from_ne_bytes([raw[0], raw[1]]);
            if got & NEVER != 0 && at == self.memory.at(place::POLL) {
                self.violation(&format!("poll reports {got:#x}"));
            }
        }
    }

    /// Adds a socket to the thread's set, changes or removes it, or waits for the set.
    pub(crate) fn epoll(&mut self) {
        let at = self.memory.at(place::POLL);
        let at = self.output(at);
        if self.rng.permille(400) {
            let timeout = if self.rng.permille(200) {
                self.rng.below(TIMEOUT)
            } else {
                0
            };
            let count = self.rng.of(&[1, 4, 16, 0]);
            // The result is a number of events; of which sockets, other threads may have changed.
            let _events = self.call(Call::EpollWait, [self.epoll, at, count, timeout, 0, 0]);
            return;
        }
        let Some(sock) = self.bound_sock() else {
            return;
        };
        // Edge or level, and for one time.
        let events = self.rng.u32() & 0xc000_03c7;
        self.memory.put(
            place::POLL,
            &[&events.to_ne_bytes()[..], &sock.fd.to_ne_bytes()].concat(),
        );
        let operation = self.rng.of(&[1, 1, 2, 3]);
        let _known = self.call(Call::EpollCtl, [self.epoll, operation, sock.fd, at, 0, 0]);
    }
}
