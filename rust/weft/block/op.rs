// SPDX-License-Identifier: GPL-2.0

//! What a request or a bio does.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h) (`enum req_op`, `enum req_flag_bits`)

use crate::bindings;
use kernel::prelude::*;

/// An operation on a block device. C: `enum req_op`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// What the device has acknowledged becomes stable.
    Flush,
    /// The device may forget these sectors.
    Discard,
    /// The device must forget these sectors for good.
    SecureErase,
    /// These sectors read as zeroes from now on.
    WriteZeroes,
}

impl Op {
    /// The operation in `opf`, or nothing if it is one that this library does not do.
    #[inline]
    pub(crate) fn from_raw(opf: bindings::blk_opf_t) -> Option<Self> {
        match opf & bindings::WEFT_REQ_OP_MASK {
            bindings::req_op_REQ_OP_READ => Some(Self::Read),
            bindings::req_op_REQ_OP_WRITE => Some(Self::Write),
            bindings::req_op_REQ_OP_FLUSH => Some(Self::Flush),
            bindings::req_op_REQ_OP_DISCARD => Some(Self::Discard),
            bindings::req_op_REQ_OP_SECURE_ERASE => Some(Self::SecureErase),
            bindings::req_op_REQ_OP_WRITE_ZEROES => Some(Self::WriteZeroes),
            _ => None,
        }
    }

    /// The value of `enum req_op`.
    #[inline]
    pub(crate) fn to_raw(self) -> bindings::blk_opf_t {
        match self {
            Self::Read => bindings::req_op_REQ_OP_READ,
            Self::Write => bindings::req_op_REQ_OP_WRITE,
            Self::Flush => bindings::req_op_REQ_OP_FLUSH,
            Self::Discard => bindings::req_op_REQ_OP_DISCARD,
            Self::SecureErase => bindings::req_op_REQ_OP_SECURE_ERASE,
            Self::WriteZeroes => bindings::req_op_REQ_OP_WRITE_ZEROES,
        }
    }

    /// Whether bytes are moved between memory and the device.
    #[inline]
    pub fn has_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Whether the contents of the device may change.
    #[inline]
    pub fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::Flush)
    }
}

/// How an operation is done. C: `enum req_flag_bits`, those that travel to another machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags {
    /// Somebody waits for it.
    pub sync: bool,
    /// A write is done only when its data is stable.
    pub fua: bool,
    /// What was acknowledged before becomes stable first.
    pub preflush: bool,
    /// Zeroed sectors keep their place on the device.
    pub nounmap: bool,
}

impl Flags {
    #[inline]
    pub(crate) fn from_raw(opf: bindings::blk_opf_t) -> Self {
        Self {
            sync: opf & bindings::WEFT_REQ_SYNC != 0,
            fua: opf & bindings::WEFT_REQ_FUA != 0,
            preflush: opf & bindings::WEFT_REQ_PREFLUSH != 0,
            nounmap: opf & bindings::WEFT_REQ_NOUNMAP != 0,
        }
    }

    #[inline]
    pub(crate) fn to_raw(self) -> bindings::blk_opf_t {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        bit(self.sync, bindings::WEFT_REQ_SYNC)
            | bit(self.fua, bindings::WEFT_REQ_FUA)
            | bit(self.preflush, bindings::WEFT_REQ_PREFLUSH)
            | bit(self.nounmap, bindings::WEFT_REQ_NOUNMAP)
    }
}

/// Bits of an I/O priority below its class.
const CLASS_SHIFT: u32 = 13;

/// The last class there is, idle.
const CLASS_MAX: u16 = 3;

/// An I/O priority: a class and a level in it. C: `bi_ioprio`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoPrio(u16);

impl IoPrio {
    /// None set.
    pub const NONE: Self = Self(0);

    /// The priority with this value; `EINVAL` if it names a class that does not exist.
    ///
    /// I/O schedulers index tables with the class, so one that does not exist must never reach them.
    #[inline]
    pub fn from_raw(raw: u16) -> Result<Self> {
        if raw >> CLASS_SHIFT > CLASS_MAX {
            return Err(EINVAL);
        }
        Ok(Self(raw))
    }

    /// Its value, as user space and the wire have it.
    #[inline]
    pub fn to_raw(self) -> u16 {
        self.0
    }

    /// The class: 0 none, 1 real time, 2 best effort, 3 idle.
    #[inline]
    pub fn class(self) -> u16 {
        self.0 >> CLASS_SHIFT
    }
}
