// SPDX-License-Identifier: GPL-2.0

//! The scatter-gather entries of a work request.

use super::chain::Chain;
use crate::{
    bindings,
    dma::{
        Lkey,
        Sge, //
    },
    loan::Lent, //
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Something that gives scatter-gather entries, in order: an [`Sge`], lent memory ([`Lent`]), nothing (`()`), or a
/// pair of these.
pub trait Gather<'o> {
    /// Adds the entries to `out`. `EINVAL` if there are too many.
    fn gather(self, out: &mut Gathering<'_, 'o>) -> Result;
}

impl<'o> Gather<'o> for () {
    #[inline]
    fn gather(self, _out: &mut Gathering<'_, 'o>) -> Result {
        Ok(())
    }
}

impl<'o> Gather<'o> for Sge<'o> {
    #[inline]
    fn gather(self, out: &mut Gathering<'_, 'o>) -> Result {
        out.add(self)
    }
}

impl<'o> Gather<'o> for Lent<'o> {
    #[inline]
    fn gather(self, out: &mut Gathering<'_, 'o>) -> Result {
        self.each(|sge| out.add(sge))
    }
}

impl<'o, A: Gather<'o>, B: Gather<'o>> Gather<'o> for (A, B) {
    #[inline]
    fn gather(self, out: &mut Gathering<'_, 'o>) -> Result {
        self.0.gather(out)?;
        self.1.gather(out)
    }
}

impl<'o, A: Gather<'o>> Gather<'o> for Option<A> {
    #[inline]
    fn gather(self, out: &mut Gathering<'_, 'o>) -> Result {
        self.map_or(Ok(()), |some| some.gather(out))
    }
}

/// Collects the scatter-gather entries of one work request.
pub struct Gathering<'a, 'o> {
    chain: &'a mut Chain<'o>,
    first: usize,
}

impl<'a, 'o> Gathering<'a, 'o> {
    /// Adds one. Empty ones are left out. `EINVAL` if there are too many, or it is of another device or domain.
    #[inline]
    pub fn add(&mut self, sge: Sge<'o>) -> Result {
        if sge.is_empty() {
            return Ok(());
        }
        let chain = &mut *self.chain;
        let lkey = match sge.lkey {
            Lkey::Dma => chain.dma_lkey(),
            Lkey::Region(lkey, pd) if ptr::eq(pd, chain.qp().pd().as_raw()) => lkey,
            Lkey::Region(..) => return Err(EINVAL),
        };
        if !ptr::eq(sge.device, Arc::as_ptr(chain.qp().device())) {
            return Err(EINVAL);
        }
        chain.add_sge(bindings::ib_sge {
            addr: sge.addr,
            length: sge.len,
            lkey,
        })
    }

    /// For the next work request of `chain`.
    #[inline]
    pub(super) fn new(chain: &'a mut Chain<'o>) -> Self {
        let first = chain.sges();
        Self { chain, first }
    }

    /// Where they begin, and how many there are.
    #[inline]
    pub(super) fn range(&self) -> (usize, usize) {
        (self.first, self.chain.sges() - self.first)
    }
}
