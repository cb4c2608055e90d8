// SPDX-License-Identifier: GPL-2.0

//! I/O on block devices.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)
//!
//! A module that does I/O has a [`Pool`], in which memory for some bios is set aside, so that I/O goes on when there is
//! no other. Each I/O is a [`Command`], the [`Data`] it moves, and a value of the module's type [`Done`], which is kept
//! beside the bio and told the result: submitting allocates nothing else, and completing nothing at all.
//!
//! Commands may be made of what another machine sent: submitting checks them against the device before
//! there is a bio.

mod check;
mod pages;
mod pool;

use super::{
    Flags,
    IoPrio,
    Op, //
};
use kernel::prelude::*;

pub use self::{
    pages::{
        BioPages,
        Data,
        Run, //
    },
    pool::{
        Pool,
        PoolHandle, //
    }, //
};

/// What is to be done to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The operation.
    pub op: Op,
    /// How: FUA and PREFLUSH are for writes, NOUNMAP is for writing zeroes. A flush takes no notice of them.
    pub flags: Flags,
    /// Where it starts; 0 for a flush.
    pub sector: u64,
    /// How many bytes of the device it is about; 0 for a flush.
    pub bytes: u64,
    /// Its priority.
    pub prio: IoPrio,
}

/// What is told the result of an I/O.
pub trait Done: Send + 'static {
    /// The I/O is over: the device does not use the memory any more. The reference of the memory and that of the
    /// device have been dropped.
    ///
    /// Called once, in any context, also with interrupts disabled: must not sleep. An error is that of the device
    /// (C: `blk_status_to_errno`).
    fn done(self, result: Result);
}
