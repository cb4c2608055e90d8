// SPDX-License-Identifier: GPL-2.0

//! Operations on a device and their flags, and the number that carries both.
//!
//! C counterpart: `enum rnbd_io_flags`, `rnbd_to_bio_flags()` and `rq_to_rnbd_flags()` in `rnbd-proto.h`.

use core::fmt;

/// Lower bits of the number: the operation (`RNBD_OP_MASK`).
const OP_MASK: u32 = 0xff;
/// The request is synchronous (`RNBD_F_SYNC`).
const SYNC: u32 = 1 << 8;
/// The data has to be on stable storage before the answer (`RNBD_F_FUA`).
const FUA: u32 = 1 << 9;
/// The cache has to be flushed first (`RNBD_F_PREFLUSH`).
const PREFLUSH: u32 = 1 << 10;
/// Zeroed blocks stay allocated (`RNBD_F_NOUNMAP`).
const NOUNMAP: u32 = 1 << 11;

/// An operation on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes the volatile cache.
    Flush,
    /// Discards a range.
    Discard,
    /// Erases a range securely.
    SecureErase,
    /// Fills a range with zeros.
    WriteZeroes,
}

impl Op {
    /// All operations in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::SecureErase,
        Self::WriteZeroes,
    ];

    /// Number of the operation on the wire (`RNBD_OP_*`).
    #[inline]
    pub const fn number(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 2,
            Self::Discard => 3,
            Self::SecureErase => 4,
            Self::WriteZeroes => 5,
        }
    }

    /// Operation with this number, if there is one.
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Flush,
            3 => Self::Discard,
            4 => Self::SecureErase,
            5 => Self::WriteZeroes,
            _ => return None,
        })
    }

    /// Whether the operation changes what is on the device.
    #[inline]
    pub const fn changes_data(self) -> bool {
        match self {
            Self::Read | Self::Flush => false,
            Self::Write | Self::Discard | Self::SecureErase | Self::WriteZeroes => true,
        }
    }

    /// Whether RTRS carries the operation as a write.
    ///
    /// As in C, whatever has data goes where its data goes, and a flush goes as a read without data.
    #[inline]
    pub const fn travels_as_write(self) -> bool {
        self.changes_data()
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::SecureErase => "secure erase",
            Self::WriteZeroes => "write zeroes",
        })
    }
}

/// Flags of a request, as the block layer has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Somebody waits for it (`REQ_SYNC`).
    pub sync: bool,
    /// The data has to be on stable storage before the answer (`REQ_FUA`).
    pub fua: bool,
    /// The cache has to be flushed first (`REQ_PREFLUSH`).
    pub preflush: bool,
    /// Zeroed blocks stay allocated (`REQ_NOUNMAP`); only with [`Op::WriteZeroes`].
    pub nounmap: bool,
}

/// Operation and flags together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// Operation.
    pub op: Op,
    /// Its flags.
    pub flags: Flags,
}

impl Rw {
    /// What a client sends for an operation of the block layer.
    ///
    /// As in C a request counts as synchronous if it is a read or has any of the first three flags, and one with a
    /// flush before it is sent as forced unit access too.
    pub const fn from_block(op: Op, flags: Flags) -> Self {
        let fua = flags.fua || flags.preflush;
        Self {
            op,
            flags: Flags {
                sync: matches!(op, Op::Read) || flags.sync || fua,
                fua,
                preflush: flags.preflush,
                nounmap: flags.nounmap && matches!(op, Op::WriteZeroes),
            },
        }
    }

    /// The number on the wire.
    pub const fn to_wire(self) -> u32 {
        let Flags {
            sync,
            fua,
            preflush,
            nounmap,
        } = self.flags;
        // CAST: Widening, `From` is not const.
        self.op.number() as u32
            | if sync { SYNC } else { 0 }
            | if fua { FUA } else { 0 }
            | if preflush { PREFLUSH } else { 0 }
            | if nounmap { NOUNMAP } else { 0 }
    }

    /// What a number says; unknown flags are ignored, an unknown operation is returned as the error.
    ///
    /// "No unmap" counts only where it means something.
    pub const fn from_wire(rw: u32) -> Result<Self, u8> {
        // CAST: Eight bits are left.
        let number = (rw & OP_MASK) as u8;
        match Op::from_number(number) {
            None => Err(number),
            Some(op) => Ok(Self {
                op,
                flags: Flags {
                    sync: rw & SYNC != 0,
                    fua: rw & FUA != 0,
                    preflush: rw & PREFLUSH != 0,
                    nounmap: rw & NOUNMAP != 0 && matches!(op, Op::WriteZeroes),
                },
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_flags() -> impl Iterator<Item = Flags> {
        (0..16u8).map(|bits| Flags {
            sync: bits & 1 != 0,
            fua: bits & 2 != 0,
            preflush: bits & 4 != 0,
            nounmap: bits & 8 != 0,
        })
    }

    #[test]
    fn numbers() {
        for (number, op) in (0..).zip(Op::ALL) {
            assert_eq!((op.number(), Op::from_number(number)), (number, Some(op)));
        }
        for number in 6..=255 {
            assert_eq!(Op::from_number(number), None);
            assert_eq!(Rw::from_wire(0x0f00 | u32::from(number)), Err(number));
        }
    }

    #[test]
    fn no_flag_is_lost() {
        for op in Op::ALL {
            for flags in all_flags() {
                let sent = Rw::from_block(op, flags);
                let received = Rw::from_wire(sent.to_wire()).unwrap();
                assert_eq!(received, sent);
                let means = received.flags;
                assert_eq!(means.preflush, flags.preflush);
                assert_eq!(means.fua, flags.fua || flags.preflush);
                assert_eq!(means.nounmap, flags.nounmap && op == Op::WriteZeroes);
                assert!(means.sync || !flags.sync);
            }
        }
    }

    #[test]
    fn numbers_of_c() {
        let wire = |op, flags| Rw::from_block(op, flags).to_wire();
        let none = Flags::default();
        assert_eq!(wire(Op::Read, none), 0x100);
        assert_eq!(wire(Op::Write, none), 0x001);
        assert_eq!(wire(Op::Write, Flags { sync: true, ..none }), 0x101);
        assert_eq!(wire(Op::Write, Flags { fua: true, ..none }), 0x301);
        assert_eq!(
            wire(
                Op::Flush,
                Flags {
                    preflush: true,
                    ..none
                }
            ),
            0x702
        );
        assert_eq!(
            wire(
                Op::WriteZeroes,
                Flags {
                    nounmap: true,
                    ..none
                }
            ),
            0x805
        );
        assert_eq!(
            wire(
                Op::Discard,
                Flags {
                    nounmap: true,
                    ..none
                }
            ),
            0x003
        );
        assert_eq!(
            Rw::from_wire(0xffff_f000).unwrap(),
            Rw {
                op: Op::Read,
                flags: none
            }
        );
    }
}
