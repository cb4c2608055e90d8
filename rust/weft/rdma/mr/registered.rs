// SPDX-License-Identifier: GPL-2.0

//! What a chain knows of memory that it registers.

use crate::{
    bindings,
    device::Device,
    dma::{
        Lkey,
        Sge, //
    },
    qp::Remote, //
};
use core::marker::PhantomData;
use kernel::prelude::*;

/// Memory that a chain registers.
///
/// # Invariants
///
/// `addr` and `len` are in a region of `pd`, on `device`, with these keys, for work requests after its registration.
/// The memory stays mapped at least for `'o`.
#[derive(Clone, Copy)]
pub struct Registered<'o> {
    pub(super) rkey: u32,
    pub(super) lkey: u32,
    pub(super) addr: u64,
    pub(super) len: u64,
    pub(super) pd: *const bindings::ib_pd,
    pub(super) device: *const Device,
    pub(super) _region: PhantomData<&'o ()>,
}

impl<'o> Registered<'o> {
    /// What the peer is to be told: where the memory is, and its key.
    #[inline]
    pub fn remote(&self) -> Remote {
        Remote {
            addr: self.addr,
            rkey: self.rkey,
        }
    }

    /// Its size in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // Never empty.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The piece from `offset` on with `len` bytes, for a work request of the same chain to read. `EINVAL` if it is
    /// not inside.
    #[inline]
    pub fn sge(&self, offset: u64, len: u32) -> Result<Sge<'o>> {
        match offset.checked_add(u64::from(len)) {
            Some(end) if end <= self.len => {}
            _ => return Err(EINVAL),
        }
        // INVARIANT: Inside the region.
        Ok(Sge {
            addr: self.addr.wrapping_add(offset),
            len,
            lkey: Lkey::Region(self.lkey, self.pd),
            device: self.device,
            _mapping: PhantomData,
        })
    }
}
