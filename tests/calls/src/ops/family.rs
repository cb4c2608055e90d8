// SPDX-License-Identifier: GPL-2.0

//! The control messages and options that RDS has, and those it has not.

use crate::worker::{place, Worker};

/// The level of RDS.
pub(super) const SOL_RDS: i32 = 276;
pub(super) const SOL_SOCKET: i32 = 1;
/// Control message: the cookie of a zero-copy message.
pub(super) const ZCOPY_COOKIE: i32 = 12;
/// Control message: cookies of zero-copy messages that are done.
pub(super) const ZCOPY_COMPLETION: i32 = 13;
/// Control messages that receivers can get, besides timestamps: congestion, times, completions.
pub(super) const RECEIVED: [i32; 3] = [5, 11, ZCOPY_COMPLETION];
/// Timestamps, old and new.
pub(super) const TIMESTAMPS: [i32; 2] = [29, 63];

/// Control messages one after the other.
#[derive(Default)]
pub(super) struct Control {
    pub(super) bytes: Vec<u8>,
}

impl Control {
    /// Appends one.
    pub(super) fn add(&mut self, level: i32, kind: i32, data: &[u8]) {
        self.add_claiming(16 + data.len(), level, kind, data);
    }

    /// Appends one that says another length.
    fn add_claiming(&mut self, len: usize, level: i32, kind: i32, data: &[u8]) {
        self.bytes.extend(len.to_ne_bytes());
        self.bytes.extend(level.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}

impl Worker {
    /// Appends control messages that TCP and loopback refuse, or that nobody knows; where one has a meaning, no cookie.
    pub(super) fn odd_controls(&mut self, control: &mut Control, zerocopy: bool) {
        for _ in 0..=self.rng.below(3) {
            let kind = match i32::try_from(self.rng.below(15)).unwrap_or(0) {
                ZCOPY_COOKIE if zerocopy => 1,
                kind => kind,
            };
            let mut data = self.operation(kind);
            if self.rng.permille(150) {
                data.resize(self.rng.below(160), 0);
            }
            let level = if self.rng.permille(150) {
                self.rng.of(&[0, SOL_SOCKET, 41, 277])
            } else {
                SOL_RDS
            };
            match self.rng.permille(80) {
                true => {
                    let len = self
                        .rng
                        .of(&[0, 1, 15, 17, 200, usize::MAX, usize::MAX - 7]);
                    control.add_claiming(len, level, kind, &data);
                }
                false => control.add(level, kind, &data),
            }
        }
    }

    /// What a control message of this kind has in it: an operation on this thread's own memory.
    fn operation(&mut self, kind: i32) -> Vec<u8> {
        let own = self.memory.at(place::DATA) + self.rng.below(4096);
        let own = self.input(own);
        let len = self
            .rng
            .of(&[0, 8, 100, 4096, 1 << 20, (1 << 20) + 1, 1 << 33]);
        let flags = self.rng.below(1024);
        let store = self.memory.at(place::NAME_OUT);
        // CAST: All 64 bits.
        let token = self.rng.next() as usize;
        let words = match kind {
            // Remote vector, local vectors, flags, token.
            1 => {
                let count = self.rng.of(&[0, 1, 1, 2, 1024, 1025]);
                self.memory.put_words(place::OPTION, &[own, len, own, len]);
                vec![
                    token,
                    own,
                    len,
                    self.memory.at(place::OPTION),
                    count,
                    flags,
                    token,
                ]
            }
            2 => vec![token],
            3 => vec![own, len, store, flags],
            6..=9 => vec![token, own, own, 1, 2, 3, 4, flags, token],
            10 => vec![token, flags],
            ZCOPY_COOKIE => return vec![1, 2, 3, 4],
            _ => vec![token; self.rng.below(6)],
        };
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}
