// SPDX-License-Identifier: GPL-2.0

//! Calls that no RDS socket knows, and ioctls.

use crate::calls::Call;
use crate::worker::{place, Worker};

const SETTOS: usize = 0x89e0;
const GETTOS: usize = 0x89e1;
const AF_RDS: usize = 21;
const SEQPACKET: usize = 5;
const F_GETFL: usize = 3;
const F_SETFL: usize = 4;
const O_NONBLOCK: usize = 0o4000;
/// `SPLICE_F_NONBLOCK`
const NONBLOCK: usize = 2;

impl Worker {
    /// A call that is not for RDS.
    pub(crate) fn refused(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        let out = self.memory.at(place::NAME_OUT);
        let any = self.rng.below(5);
        let result = match self.rng.below(5) {
            0 => self.call(Call::Listen, [sock.fd, any, 0, 0, 0, 0]),
            1 => {
                let flags = self.rng.of(&[0, 0, 0o2_000_000, 1]);
                self.call(Call::Accept, [sock.fd, 0, 0, flags, 0, 0])
            }
            2 => {
                let kind = self.rng.of(&[SEQPACKET, SEQPACKET, 1, 2]);
                self.call(Call::Socketpair, [AF_RDS, kind, 0, out, 0, 0])
            }
            3 => self.call(Call::Shutdown, [sock.fd, any, 0, 0, 0, 0]),
            _ => {
                let share = self.rng.of(&[1, 2]);
                self.call(Call::Mmap, [0, 4096, 3, share, sock.fd, 0])
            }
        };
        if result.is_ok() {
            self.violation("a call that RDS does not have has worked");
        }
    }

    /// Reads and sets the type of service, or something unknown.
    pub(crate) fn ioctl(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        // Besides: Oracle's for netfilter, what is queued, and the mark of urgent data.
        let request = self
            .rng
            .of(&[SETTOS, GETTOS, GETTOS, 0x89e2, 0x541b, 0x5411, 0x8905]);
        let at = self.memory.at(place::NAME_OUT);
        let at = self.output(at);
        let _tos = self.call(Call::Ioctl, [sock.fd, request, at, 0, 0, 0]);
    }

    /// Makes a socket wait or not, or lets it send signals.
    pub(crate) fn fcntl(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        let _old = self.call(Call::Fcntl, [sock.fd, F_GETFL, 0, 0, 0, 0]);
        // O_ASYNC
        let flags = self
            .rng
            .of(&[0, 0, O_NONBLOCK, O_NONBLOCK | 0o20_000, 0o20_000]);
        let _set = self.call(Call::Fcntl, [sock.fd, F_SETFL, flags, 0, 0, 0]);
    }

    /// Splices from a pipe to a socket, which RDS has not.
    pub(crate) fn splice(&mut self) {
        let Some(sock) = self.bound_sock() else {
            return;
        };
        let filler = self.memory.at(place::FILLER);
        let len = 1 + self.rng.below(60);
        let [source, sink] = self.pipe;
        let _written = self.call(Call::PipeWrite, [sink, filler, len, 0, 0, 0]);
        if self
            .call(Call::Splice, [source, 0, sock.fd, 0, len, NONBLOCK])
            .is_ok()
        {
            self.violation("splice to a socket has worked");
        }
        let out = self.memory.at(place::OPTION);
        let _drained = self.call(Call::PipeRead, [source, out, 4096, 0, 0, 0]);
    }
}
