// SPDX-License-Identifier: GPL-2.0

//! Socket options and snapshots.

use super::family::{SOL_RDS, SOL_SOCKET};
use crate::calls::Call;
use crate::name::Name;
use crate::worker::{place, Worker};

const CANCEL_SENT_TO: usize = 1;
const TRANSPORT: usize = 8;
/// The first and the number of the snapshots, with those that only Oracle's kernels have.
const INFO: (usize, usize) = (10000, 22);
/// Bytes of the records of each snapshot; 0: there is none.
const RECORDS: [usize; INFO.1] = [
    40, 42, 0, 26, 26, 26, 28, 41, 0, 0, 0, 65, 50, 50, 50, 52, 64, 0, 0, 0, 0, 0,
];
/// Options of all sockets: buffers, timestamps, time limits, zero-copy, the queue's low mark, priority, lingering.
const GENERIC: [usize; 14] = [7, 8, 7, 8, 20, 21, 29, 63, 60, 60, 18, 12, 13, 2];
const SNDTIMEO: usize = 21;
const RCVTIMEO: usize = 20;

impl Worker {
    /// Sets an option: of RDS, of all sockets, or of neither.
    pub(crate) fn set_option(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        let at = self.memory.at(place::OPTION);
        let at = self.input(at);
        // CAST: Levels are small numbers.
        let (rds, socket) = (SOL_RDS as usize, SOL_SOCKET as usize);
        let _set = match self.rng.below(20) {
            0 => {
                let level = self.rng.of(&[0, 6, 17, 41, 275, 277]);
                let option = self.rng.below(70);
                self.memory.put_words(place::OPTION, &[1]);
                self.call(Call::SetOther, [sock.fd, level, option, at, 4, 0])
            }
            1..11 => {
                let (option, len) = self.rds_option();
                self.call(Call::SetRds, [sock.fd, rds, option, at, len, 0])
            }
            _ => {
                let (option, len) = self.generic_option();
                self.call(Call::SetSocket, [sock.fd, socket, option, at, len, 0])
            }
        };
    }

    /// Writes the value of an RDS option; the option and its length.
    fn rds_option(&mut self) -> (usize, usize) {
        let option = match self.rng.below(10) {
            0 => self.rng.below(70),
            1..5 => CANCEL_SENT_TO,
            _ => self.rng.of(&[2, 3, 5, 6, 6, 7, TRANSPORT, 10, 10, 29, 63]),
        };
        let mut value = match option {
            CANCEL_SENT_TO => {
                let wide = self.rng.permille(300);
                Name::likely(&mut self.rng).bytes(wide)
            }
            2 | 3 | 7 => {
                let own = self.memory.at(place::DATA);
                let store = self.memory.at(place::NAME_OUT);
                let address = if option == 7 { 16 } else { 0 };
                let words = [
                    &vec![0; address][..],
                    &[own, 4096, store, self.rng.below(256)],
                ]
                .concat();
                let len = self.rng.of(&[16, 32, 160]);
                words
                    .iter()
                    .flat_map(|word| word.to_ne_bytes())
                    .cycle()
                    .take(len)
                    .collect()
            }
            // RDMA seldom, as the kernel looks for its module each time.
            TRANSPORT if self.rng.permille(20) => 0i32.to_ne_bytes().to_vec(),
            TRANSPORT => self
                .rng
                .of(&[2i32, 2, 2, 2, 2, 3, 7])
                .to_ne_bytes()
                .to_vec(),
            10 => [3, self.rng.below(4), self.rng.below(4), self.rng.below(4)]
                .map(|byte| byte.to_ne_bytes()[0])
                .to_vec(),
            _ => self.rng.of(&[0i32, 1, 1, 2, -1]).to_ne_bytes().to_vec(),
        };
        if self.rng.permille(100) {
            value.resize(self.rng.below(200), 0);
        }
        self.memory.put(place::OPTION, &value);
        (
            option,
            if self.rng.permille(10) {
                usize::MAX
            } else {
                value.len()
            },
        )
    }

    fn generic_option(&mut self) -> (usize, usize) {
        let option = self.rng.of(&GENERIC);
        let value = match option {
            // Seconds and microseconds; mostly short.
            SNDTIMEO | RCVTIMEO => {
                let micros = self.rng.of(&[1, 1000, 20_000, 50_000]);
                [0, micros].map(usize::to_ne_bytes).concat()
            }
            7 | 8 => self
                .rng
                .of(&[0i32, 1000, 20_000, 100_000, 200_000, 1 << 20])
                .to_ne_bytes()
                .to_vec(),
            13 => [self.rng.u32() & 1, self.rng.u32() & 1]
                .map(u32::to_ne_bytes)
                .concat(),
            _ => (self.rng.u32() & 1).to_ne_bytes().to_vec(),
        };
        self.memory.put(place::OPTION, &value);
        (
            option,
            if self.rng.permille(20) {
                self.rng.below(20)
            } else {
                value.len()
            },
        )
    }

    /// Reads an option, or takes a snapshot.
    pub(crate) fn get_option(&mut self) {
        let Some(sock) = self.sock() else {
            return;
        };
        let at = self.memory.at(place::OPTION);
        let at = self.output(at);
        let room = match self.rng.below(8) {
            0 => 0,
            1 => self.rng.below(300),
            2 => 0x8000_0000 | self.rng.below(10),
            3 => self.rng.below(place::OPTION_LEN),
            _ => place::OPTION_LEN,
        };
        // CAST: To 32 bits, which some of them are too big for on purpose.
        self.memory
            .put(place::NAME_LEN, &(room as u32).to_ne_bytes());
        let len = self.memory.at(place::NAME_LEN);
        let len = self.output(len);
        // CAST: Levels are small numbers.
        let (rds, socket) = (SOL_RDS as usize, SOL_SOCKET as usize);
        match self.rng.below(10) {
            0 => {
                let option = self.rng.below(70);
                let _got = self.call(Call::GetRds, [sock.fd, rds, option, at, len, 0]);
            }
            1..3 => {
                let option = self.rng.of(&[5, TRANSPORT]);
                let _got = self.call(Call::GetRds, [sock.fd, rds, option, at, len, 0]);
            }
            3..5 => {
                let option = self.rng.of(&[3, 4, 7, 8, 18, 20, 21, 38, 39, 57, 60, 63]);
                let _got = self.call(Call::GetSocket, [sock.fd, socket, option, at, len, 0]);
            }
            _ => self.snapshot(sock.fd, at, len),
        }
    }

    fn snapshot(&mut self, fd: usize, at: usize, len: usize) {
        let which = self.rng.below(INFO.1);
        // CAST: A level is a small number.
        let result = self.call(
            Call::GetInfo,
            [fd, SOL_RDS as usize, INFO.0 + which, at, len, 0],
        );
        if let Ok(size) = result {
            let used = self.memory.u32(place::NAME_LEN);
            // CAST: To a wider type.
            if size == 0 || size != RECORDS[which] || used as usize % size != 0 {
                self.violation(&format!(
                    "snapshot {which}: {used} bytes of records of {size}"
                ));
            }
        }
    }
}
