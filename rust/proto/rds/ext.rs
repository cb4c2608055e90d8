// SPDX-License-Identifier: GPL-2.0

//! Extension headers: the 16 bytes at the end of a message header.
//!
//! The space holds entries of one type byte and data whose length the type implies; type 0 or the
//! end of the space ends it. Types 7 and 9 are only sent by Oracle's kernels: mainline C takes them
//! for empty and then reads their data as further types, here they have their length.
//!
//! C counterpart: `RDS_EXTHDR_*` in `net/rds/rds.h`, `net/rds/message.c`.

use super::wire::EXT_SPACE;

const END: u8 = 0;
const VERSION: u8 = 1;
const RDMA: u8 = 2;
const RDMA_DEST: u8 = 3;
const RDMA_BYTES: u8 = 4;
const NPATHS: u8 = 5;
const GENERATION: u8 = 6;
const CAPABILITIES: u8 = 7;
const SPORT_INDEX: u8 = 8;
const PAYLOAD_CHECKSUM: u8 = 9;
/// First type that ends parsing (`__RDS_EXTHDR_MAX`).
const TYPE_LIMIT: u8 = 16;

/// [`Ext::RdmaBytes`] direction: the sender wrote into the receiver's memory.
pub const DIRECTION_WRITE: u8 = 1;

/// [`Ext::RdmaBytes`] direction: the sender read from the receiver's memory.
pub const DIRECTION_READ: u8 = 2;

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ext {
    /// Type 1: a protocol version; never sent, ignored.
    Version(u32),
    /// Type 2: R_Key an RDMA operation before this message used (`RDS_EXTHDR_RDMA`).
    Rdma(u32),
    /// Type 3: memory offered to the receiver (`RDS_EXTHDR_RDMA_DEST`).
    RdmaDest {
        /// R_Key of the memory region.
        key: u32,
        /// Offset of the start within the region, in bytes.
        offset: u32,
    },
    /// Type 4: size of the RDMA operation before this message (`RDS_EXTHDR_RDMA_BYTES`).
    RdmaBytes {
        /// Bytes moved.
        bytes: u32,
        /// [`DIRECTION_WRITE`] or [`DIRECTION_READ`].
        direction: u8,
    },
    /// Type 5: number of paths the sender can use (`RDS_EXTHDR_NPATHS`).
    Npaths(u16),
    /// Type 6: random number of the sender's module load, 0 = unknown (`RDS_EXTHDR_GEN_NUM`).
    Generation(u32),
    /// Type 7, Oracle only: capability bits, bit 0 heartbeat.
    Capabilities(u32),
    /// Type 8: the sender's TCP source ports encode the path (`RDS_EXTHDR_SPORT_IDX`).
    SportIndex,
    /// Type 9, Oracle only: checksum over the payload.
    PayloadChecksum {
        /// The checksum.
        sum: u32,
        /// Whether the sender filled it in.
        enabled: bool,
    },
    /// A type of 10 to 15: no data, as in C.
    Unknown(u8),
}

impl Ext {
    /// Iterates over the entries in `space`, which may hold anything.
    #[inline]
    pub fn iter(space: &[u8; EXT_SPACE]) -> ExtIter<'_> {
        ExtIter { rest: space }
    }
}

/// Iterator over the entries of a header, see [`Ext::iter`].
#[derive(Clone, Debug)]
pub struct ExtIter<'a> {
    /// Bytes not parsed yet.
    rest: &'a [u8],
}

impl ExtIter<'_> {
    /// Takes `N` data bytes, or `None` when the entry is cut off.
    #[inline]
    fn data<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (data, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*data)
    }

    /// Parses one entry; `None` ends the iteration.
    #[inline]
    fn entry(&mut self) -> Option<Ext> {
        let [kind] = self.data()?;
        Some(match kind {
            END | TYPE_LIMIT.. => return None,
            VERSION => Ext::Version(u32::from_be_bytes(self.data()?)),
            RDMA => Ext::Rdma(u32::from_be_bytes(self.data()?)),
            RDMA_DEST => Ext::RdmaDest {
                key: u32::from_be_bytes(self.data()?),
                offset: u32::from_be_bytes(self.data()?),
            },
            RDMA_BYTES => {
                let bytes = u32::from_be_bytes(self.data()?);
                let [direction, _, _, _] = self.data()?;
                Ext::RdmaBytes { bytes, direction }
            }
            NPATHS => Ext::Npaths(u16::from_be_bytes(self.data()?)),
            GENERATION => Ext::Generation(u32::from_be_bytes(self.data()?)),
            CAPABILITIES => Ext::Capabilities(u32::from_be_bytes(self.data()?)),
            SPORT_INDEX => {
                let [_] = self.data()?;
                Ext::SportIndex
            }
            PAYLOAD_CHECKSUM => {
                let sum = u32::from_be_bytes(self.data()?);
                let [enabled, _, _, _] = self.data()?;
                Ext::PayloadChecksum {
                    sum,
                    enabled: enabled != 0,
                }
            }
            unknown => Ext::Unknown(unknown),
        })
    }
}

impl Iterator for ExtIter<'_> {
    type Item = Ext;

    #[inline]
    fn next(&mut self) -> Option<Ext> {
        let entry = self.entry();
        if entry.is_none() {
            self.rest = &[];
        }
        entry
    }
}

impl core::iter::FusedIterator for ExtIter<'_> {}

/// Fills the extension header space of a message.
#[derive(Debug)]
pub struct ExtWriter<'a> {
    /// Bytes not written yet; zero.
    rest: &'a mut [u8],
}

impl<'a> ExtWriter<'a> {
    /// Clears `space` and starts at its beginning.
    #[inline]
    pub fn new(space: &'a mut [u8; EXT_SPACE]) -> Self {
        *space = [0; EXT_SPACE];
        Self { rest: space }
    }

    /// Appends `entry`; returns whether it fitted. One that does not fit is left out, as in C.
    ///
    /// [`Ext::Unknown`] is refused unless its type is one that [`ExtIter`] would give back.
    pub fn push(&mut self, entry: Ext) -> bool {
        match entry {
            Ext::Version(version) => self.put(VERSION, version.to_be_bytes()),
            Ext::Rdma(key) => self.put(RDMA, key.to_be_bytes()),
            Ext::RdmaDest { key, offset } => {
                self.put(RDMA_DEST, pair(key.to_be_bytes(), offset.to_be_bytes()))
            }
            Ext::RdmaBytes { bytes, direction } => {
                self.put(RDMA_BYTES, pair(bytes.to_be_bytes(), [direction, 0, 0, 0]))
            }
            Ext::Npaths(npaths) => self.put(NPATHS, npaths.to_be_bytes()),
            Ext::Generation(generation) => self.put(GENERATION, generation.to_be_bytes()),
            Ext::Capabilities(bits) => self.put(CAPABILITIES, bits.to_be_bytes()),
            Ext::SportIndex => self.put(SPORT_INDEX, [0]),
            Ext::PayloadChecksum { sum, enabled } => self.put(
                PAYLOAD_CHECKSUM,
                pair(sum.to_be_bytes(), [u8::from(enabled), 0, 0, 0]),
            ),
            Ext::Unknown(kind) => {
                kind > PAYLOAD_CHECKSUM && kind < TYPE_LIMIT && self.put(kind, [])
            }
        }
    }

    /// Writes one entry if there is room for its type and data.
    fn put<const N: usize>(&mut self, kind: u8, data: [u8; N]) -> bool {
        // `split_first_chunk_mut` borrows for `'a`, so the slice is moved out and put back.
        let rest = core::mem::take(&mut self.rest);
        if rest.len() <= N {
            self.rest = rest;
            return false;
        }
        let Some((head, rest)) = rest.split_first_mut() else {
            return false;
        };
        let Some((body, rest)) = rest.split_first_chunk_mut::<N>() else {
            return false;
        };
        *head = kind;
        *body = data;
        self.rest = rest;
        true
    }
}

/// Joins two halves of an entry's data.
fn pair(first: [u8; 4], second: [u8; 4]) -> [u8; 8] {
    let [a, b, c, d] = first;
    let [e, f, g, h] = second;
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn space(bytes: &[u8]) -> [u8; EXT_SPACE] {
        let mut space = [0; EXT_SPACE];
        space[..bytes.len()].copy_from_slice(bytes);
        space
    }

    fn entries(bytes: &[u8]) -> Vec<Ext> {
        Ext::iter(&space(bytes)).collect()
    }

    #[test]
    fn every_type_round_trips() {
        let all = [
            Ext::Version(0x0102_0304),
            Ext::Rdma(0x1112_1314),
            Ext::RdmaDest {
                key: 0x21,
                offset: 0x31,
            },
            Ext::RdmaBytes {
                bytes: 0x41,
                direction: DIRECTION_READ,
            },
            Ext::Npaths(8),
            Ext::Generation(0x5152_5354),
            Ext::Capabilities(1),
            Ext::SportIndex,
            Ext::PayloadChecksum {
                sum: 0x61,
                enabled: true,
            },
            Ext::Unknown(10),
            Ext::Unknown(15),
        ];
        for entry in all {
            let mut space = [0xff; EXT_SPACE];
            assert!(ExtWriter::new(&mut space).push(entry));
            assert_eq!(Ext::iter(&space).collect::<Vec<_>>(), [entry]);
        }
    }

    #[test]
    fn bytes_of_rdma_entries() {
        let mut space = [0; EXT_SPACE];
        let mut writer = ExtWriter::new(&mut space);
        assert!(writer.push(Ext::Rdma(0x0a0b_0c0d)));
        assert!(writer.push(Ext::RdmaBytes {
            bytes: 4096,
            direction: DIRECTION_WRITE
        }));
        // 14 bytes are taken: two more hold an entry of one byte and none of two.
        assert!(!writer.push(Ext::Npaths(8)));
        assert!(writer.push(Ext::SportIndex));
        assert!(!writer.push(Ext::Unknown(10)));
        assert_eq!(space, [2, 10, 11, 12, 13, 4, 0, 0, 16, 0, 1, 0, 0, 0, 8, 0]);
    }

    #[test]
    fn refuses_types_that_would_read_back_differently() {
        let mut space = [0; EXT_SPACE];
        let mut writer = ExtWriter::new(&mut space);
        for kind in [END, NPATHS, PAYLOAD_CHECKSUM, TYPE_LIMIT, 0xff] {
            assert!(!writer.push(Ext::Unknown(kind)));
        }
        assert_eq!(space, [0; EXT_SPACE]);
    }

    #[test]
    fn zero_and_high_types_end() {
        assert_eq!(entries(&[]), []);
        assert_eq!(entries(&[8, 0, 0, 8, 0]), [Ext::SportIndex]);
        assert_eq!(entries(&[8, 0, 16, 8, 0]), [Ext::SportIndex]);
        assert_eq!(entries(&[255, 8, 0]), []);
    }

    #[test]
    fn unknown_types_have_no_data() {
        assert_eq!(entries(&[12, 5, 0, 3]), [Ext::Unknown(12), Ext::Npaths(3)]);
    }

    #[test]
    fn data_of_oracle_types_is_not_taken_for_types() {
        // Mainline C would read a type 2 out of the checksum.
        let bytes = [9, 2, 0, 0, 1, 1, 0, 0, 0, 7, 0, 0, 0, 1];
        let sum = Ext::PayloadChecksum {
            sum: 0x0200_0001,
            enabled: true,
        };
        assert_eq!(entries(&bytes), [sum, Ext::Capabilities(1)]);
    }

    #[test]
    fn cut_off_entry_ends() {
        // The second RdmaDest starts at byte 9 and would end at 18.
        let bytes = [3, 0, 0, 0, 1, 0, 0, 0, 2, 3, 0, 0, 0, 1, 0, 0];
        assert_eq!(entries(&bytes), [Ext::RdmaDest { key: 1, offset: 2 }]);
        let mut last = [0; EXT_SPACE];
        last[..15].fill(10);
        last[15] = 8;
        let mut iter = Ext::iter(&last);
        assert_eq!(iter.by_ref().count(), 15);
        assert_eq!(iter.next(), None);
    }
}
