// SPDX-License-Identifier: GPL-2.0

//! The life of a socket: made, named, shared, closed; and of processes and namespaces that have it.

use crate::calls::Call;
use crate::memory;
use crate::message::FILLER;
use crate::name::Name;
use crate::shared::{lock, Sock};
use crate::worker::{place, Worker};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const AF_RDS: usize = 21;
const SEQPACKET: usize = 5;
const SOL_SOCKET: usize = 1;
const SO_SNDTIMEO: usize = 21;
const SO_RCVTIMEO: usize = 20;
const SO_ZEROCOPY: usize = 60;
const SIGKILL: usize = 9;
const CLONE_NEWNET: usize = 0x4000_0000;
/// Sockets that a child uses.
const USED: usize = 4;

impl Worker {
    /// Makes a socket for a place, or tries to.
    pub(crate) fn open(&mut self, slot: usize) -> Option<Arc<Sock>> {
        let kind = if self.rng.permille(30) {
            self.rng.below(20)
        } else {
            SEQPACKET
        };
        let protocol = if self.rng.permille(20) {
            self.rng.below(3)
        } else {
            0
        };
        let mode = self.rng.of(&[0, 0, 0o4000, 0o2_000_000]);
        let fd = self
            .call(Call::Socket, [AF_RDS, kind | mode, protocol, 0, 0, 0])
            .ok()?;
        let sock = self.shared.sock(fd, self.namespace);
        // Most sockets do not wait for long, but signals must end what the others do.
        if !self.rng.permille(100) {
            self.memory.put_words(place::OPTION, &[0, 20_000]);
            let at = self.memory.at(place::OPTION);
            for option in [SO_SNDTIMEO, SO_RCVTIMEO] {
                let _set = self.call(Call::SetSocket, [fd, SOL_SOCKET, option, at, 16, 0]);
            }
        }
        if self.rng.permille(500) {
            self.memory.put_words(place::OPTION, &[1]);
            let at = self.memory.at(place::OPTION);
            let _set = self.call(Call::SetSocket, [fd, SOL_SOCKET, SO_ZEROCOPY, at, 4, 0]);
        }
        *lock(&self.shared.slots[slot]) = Some(Arc::clone(&sock));
        Some(sock)
    }

    /// Closes a socket, and makes another one.
    pub(crate) fn replace(&mut self) {
        let slot = self.rng.below(self.shared.slots.len());
        let old = lock(&self.shared.slots[slot]).take();
        drop(old);
        self.open(slot);
    }

    /// Writes an address for a call, right or wrong; where, and its length.
    fn address(&mut self) -> (usize, usize) {
        let name = match self.rng.permille(60) {
            true => Name::unlikely(&mut self.rng),
            false => Name::likely(&mut self.rng),
        };
        let mut raw = name.bytes(self.rng.permille(50));
        if self.rng.permille(30) {
            raw[0] = self.rng.of(&[0, 1, 3, 21, 255]);
        }
        if self.rng.permille(30) {
            raw.resize(self.rng.below(140), 0);
        }
        self.memory.put(place::NAME, &raw);
        let at = self.memory.at(place::NAME);
        let len = if self.rng.permille(5) {
            self.rng.of(&[usize::MAX, 129, 1 << 31])
        } else {
            raw.len()
        };
        (self.input(at), len)
    }

    /// Names a socket.
    pub(crate) fn bind(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        let (at, len) = self.address();
        if self.call(Call::Bind, [sock.fd, at, len, 0, 0, 0]).is_err() {
            return;
        }
        self.memory.put(place::NAME_LEN, &128u32.to_ne_bytes());
        let out = [
            self.memory.at(place::NAME_OUT),
            self.memory.at(place::NAME_LEN),
        ];
        let result = self.call(Call::Getsockname, [sock.fd, out[0], out[1], 0, 0, 0]);
        // CAST: To a wider type.
        let used = self.memory.u32(place::NAME_LEN) as usize;
        let name = Name::parse(self.memory.get(place::NAME_OUT, used.min(128)))
            .filter(|name| name.port > 1);
        match name.filter(|_| result.is_ok()) {
            Some(name) => {
                lock(&self.shared.ledger).bound(sock.id, name);
                if sock.name.set(name).is_err() {
                    self.violation(&format!("socket {} was bound twice", sock.id));
                }
            }
            None => self.violation(&format!("a bound socket has no name: {result:?}")),
        }
    }

    /// Connects a socket.
    pub(crate) fn connect(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        let (at, len) = self.address();
        let _connected = self.call(Call::Connect, [sock.fd, at, len, 0, 0, 0]);
    }

    /// Asks for the names of a socket; its own must not change.
    pub(crate) fn names(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        let call = if self.rng.permille(500) {
            Call::Getsockname
        } else {
            Call::Getpeername
        };
        let known = sock.name.get().copied();
        let room = self.rng.of(&[128, 128, 28, 16, 3, 0, u32::MAX]);
        self.memory.put(place::NAME_LEN, &room.to_ne_bytes());
        let out = [
            self.memory.at(place::NAME_OUT),
            self.memory.at(place::NAME_LEN),
        ];
        let at = self.output(out[0]);
        let len = self.output(out[1]);
        let result = self.call(call, [sock.fd, at, len, 0, 0, 0]);
        if result.is_ok() && call == Call::Getsockname && room == 128 && [at, len] == out {
            // CAST: To a wider type.
            let used = self.memory.u32(place::NAME_LEN) as usize;
            let name = Name::parse(self.memory.get(place::NAME_OUT, used.min(128)));
            if known.is_some_and(|known| !name.is_some_and(|name| name.is(&known))) {
                self.violation(&format!("{name:?} was {known:?}"));
            }
        }
    }

    /// Uses a socket under another number.
    pub(crate) fn dup(&mut self) {
        let Some(sock) = self.bound_sock() else {
            return;
        };
        let Ok(fd) = self.call(Call::Dup, [sock.fd, 0, 0, 0, 0, 0]) else {
            return;
        };
        let filler = self.memory.at(place::FILLER);
        let len = self.rng.below(30);
        let _sent = self.call(Call::Write, [fd, filler, len, 0, 0, 0]);
        let _closed = self.call(Call::Close, [fd, 0, 0, 0, 0, 0]);
    }

    /// Goes to another namespace, if it is there.
    pub(crate) fn move_namespace(&mut self) {
        let name = self.rng.below(self.shared.namespaces.len());
        let Ok(file) = File::open(&self.shared.namespaces[name]) else {
            return;
        };
        let (Ok(fd), Ok(data)) = (usize::try_from(file.as_raw_fd()), file.metadata()) else {
            return;
        };
        if self
            .call(Call::Setns, [fd, CLONE_NEWNET, 0, 0, 0, 0])
            .is_ok()
        {
            self.namespace = data.ino();
        }
    }

    /// Lets another process use some sockets for a moment.
    pub(crate) fn fork(&mut self) {
        let socks: Vec<_> = (0..USED).filter_map(|_| self.bound_sock()).collect();
        let mut fds = [usize::MAX; USED];
        for (to, sock) in fds.iter_mut().zip(&socks) {
            *to = sock.fd;
        }
        let out = self.memory.at(place::OPTION);
        let data = self.memory.at(place::FILLER);
        let wait = self.rng.permille(300);
        self.memory.put(place::FILLER, &[FILLER; 64]);
        let Ok(pid) = memory::fork(|| child(&fds, data, out, wait)) else {
            return;
        };
        thread::sleep(Duration::from_millis(self.rng.next() % 8));
        if wait || self.rng.permille(600) {
            let _killed = self.call(Call::Kill, [pid, SIGKILL, 0, 0, 0, 0]);
        }
        while self.call(Call::Wait, [pid, 0, 0, 0, 0, 0]) == Err(libc::EINTR) {}
    }
}

/// What a child does: a little of everything, and then nothing, or it waits to be killed.
fn child(fds: &[usize; USED], data: usize, out: usize, wait: bool) {
    // MSG_DONTWAIT
    let flags = 0x40;
    for fd in *fds {
        // The results do not matter: the parent may have closed them, or they are full, or empty.
        for (number, args) in [
            (libc::SYS_sendto, [fd, data, 20, flags, 0, 0]),
            (libc::SYS_recvfrom, [fd, out, 60_000, flags, 0, 0]),
            (libc::SYS_shutdown, [fd, 2, 0, 0, 0, 0]),
            (libc::SYS_close, [fd, 0, 0, 0, 0, 0]),
        ] {
            let _any = memory::call(number, args);
            if wait && number == libc::SYS_recvfrom {
                let _killed = memory::call(number, [fd, out, 60_000, 0, 0, 0]);
            }
        }
    }
}
