// SPDX-License-Identifier: GPL-2.0

//! Memory that hardware uses, and the proof that it does not any more.
//!
//! A work request lends memory to hardware. Where that memory must be given back while its owner lives on (the data of
//! a block request, which is completed), it is kept in a [`Loan`]. A chain of work requests
//! ([`Chain::lend`](crate::qp::Chain::lend)) notes in the loan which queue pair reads the memory, and in which of its
//! chains; the memory comes out again only for a proof that this chain is over.
//!
//! A proof is a statement about a queue pair that stays true for ever, so it may be copied, kept and sent elsewhere.
//! Only this library makes them:
//!
//! * [`Sent`]: everything up to some chain of some queue pair is over. Given with each completion, and by
//!   [`QueuePair::progress`](crate::qp::QueuePair::progress).
//! * [`Drained`]: everything that was ever posted to some queue pair is over. Given by
//!   [`Qp::shutdown`](crate::qp::Qp::shutdown).
//!
//! Queue pairs have numbers that are never used twice, so a proof about one says nothing about another.
//!
//! Memory that is only dropped together with its owner needs no loan: chains keep their owner until they are over.
//!
//! All methods here may be called in any context and never wait. Two that meet on one loan do not both succeed.

mod cell;
mod proof;

pub(crate) use cell::{
    Cell,
    Pledge,
    EMPTY,
    FIRST_OWN,
    FREE,
    HELD, //
};
pub use proof::{
    Drained,
    Proof,
    Sent, //
};

use crate::{
    bindings,
    device::Device,
    dma::{
        Lkey,
        Sge, //
    },
    pages::Mapped,
    qp::Chain, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};
use kernel::{
    error::code::EBUSY,
    prelude::*,
    sync::Arc, //
};

/// State of a [`Loan`]: a chain uses what is in it.
const LENT: u32 = FIRST_OWN;

/// Keeps memory while hardware may read it.
///
/// # Invariants
///
/// There is memory unless the state is [`EMPTY`]. It is accessed only by whoever turned the state to [`HELD`], and in
/// the state [`LENT`] every chain that reads it comes no later than `cell`'s user, on the same queue pair.
pub struct Loan<M> {
    cell: Cell,
    memory: UnsafeCell<Option<M>>,
}

// SAFETY: The memory may move to another thread, as `M: Send`.
unsafe impl<M: Send> Send for Loan<M> {}
// SAFETY: By the type invariants it is accessed by one at a time.
unsafe impl<M: Send> Sync for Loan<M> {}

impl<M> Loan<M> {
    /// One with nothing in it.
    pub fn new() -> Self {
        // INVARIANT: Nothing is there.
        Self {
            cell: Cell::new(EMPTY),
            memory: UnsafeCell::new(None),
        }
    }

    /// Puts memory in; gives it back if there is something already.
    #[inline]
    pub fn put(&self, memory: M) -> Result<(), M> {
        if !self.cell.hold(EMPTY) {
            return Err(memory);
        }
        // SAFETY: By the type invariants we are the one to access it.
        unsafe { *self.memory.get() = Some(memory) };
        // INVARIANT: It is there, and nobody uses it.
        self.cell.set_user(0, 0);
        self.cell.release(FREE);
        Ok(())
    }

    /// Takes the memory out. `None` if it was lent to a chain that `proof` does not show to be over, or is not there,
    /// or is being lent.
    #[inline]
    pub fn take(&self, proof: &impl Proof) -> Option<M> {
        let state = self.cell.state();
        if state == FREE {
            return self.take_unlent();
        }
        // Looked at before, too, so that one who has no proof does not get into the way of one who lends.
        if state != LENT || !self.cell.covered(proof) || !self.cell.hold(LENT) {
            return None;
        }
        if !self.cell.covered(proof) {
            self.cell.release(LENT);
            return None;
        }
        self.out()
    }

    /// Takes the memory out if it was never lent since it was put in, or only to chains that were not posted.
    #[inline]
    pub fn take_unlent(&self) -> Option<M> {
        if self.cell.hold(FREE) {
            self.out()
        } else {
            None
        }
    }

    /// Whether there is memory. A hint.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.cell.state() != EMPTY
    }

    /// Takes the memory out. By whoever holds it.
    #[inline]
    fn out(&self) -> Option<M> {
        // SAFETY: By the type invariants we are the one to access it.
        let memory = unsafe { (*self.memory.get()).take() };
        self.cell.release(EMPTY);
        memory
    }
}

impl<M> Default for Loan<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Mapped> Loan<M> {
    /// Lends the memory to a chain.
    #[inline]
    pub(crate) fn lend<'o>(&'o self, chain: &mut Chain<'o>) -> Result<Lent<'o>> {
        let from = if self.cell.hold(FREE) {
            FREE
        } else if self.cell.hold(LENT) {
            LENT
        } else {
            return Err(EBUSY);
        };
        // INVARIANT: Held just now, in state `from`.
        let pledge = Pledge::new(&self.cell, from, LENT);
        // What another queue pair may still read cannot be lent: the loan notes one only.
        let elsewhere = from == LENT && self.cell.user().0 != chain.qp_id();
        // SAFETY: By the type invariants we are the one to access it.
        let memory = unsafe { (*self.memory.get()).as_ref() };
        match memory {
            Some(memory) if !elsewhere => {
                let device = memory.device();
                let (first, count) = memory.table();
                // INVARIANT: The memory stays where it is, and mapped, at least until the chain is over, since the
                // state is not `FREE` until then: the chain's owner, in which the loan is, is kept for that long.
                let lent = Lent {
                    first,
                    count,
                    device: Arc::as_ptr(device),
                    _loan: PhantomData,
                };
                chain.pledge(pledge)?;
                Ok(lent)
            }
            _ => {
                pledge.cancel();
                Err(EBUSY)
            }
        }
    }
}

/// Memory that was lent to a chain that is being built; a [`Gather`](crate::qp::Gather) of all of it.
///
/// # Invariants
///
/// `first` and `count` are a scatterlist as [`Mapped`] promises it for `device`, at least for `'o`.
#[derive(Clone, Copy)]
pub struct Lent<'o> {
    first: *mut bindings::scatterlist,
    count: u32,
    device: *const Device,
    _loan: PhantomData<&'o ()>,
}

impl<'o> Lent<'o> {
    /// How many scatter-gather entries it takes.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.count
    }

    /// Calls `f` with each segment.
    #[inline]
    pub(crate) fn each(self, mut f: impl FnMut(Sge<'o>) -> Result) -> Result {
        let mut entry = self.first;
        for _ in 0..self.count {
            if entry.is_null() {
                return Err(EINVAL);
            }
            // SAFETY: By the type invariants it is a mapped entry.
            let (addr, len) = unsafe {
                (
                    bindings::weft_helper_rdma_sg_dma_address(entry),
                    bindings::weft_helper_rdma_sg_dma_len(entry),
                )
            };
            // INVARIANT: By the type invariants, mapped for `'o`.
            f(Sge {
                addr,
                len,
                lkey: Lkey::Dma,
                device: self.device,
                _mapping: PhantomData,
            })?;
            // SAFETY: As above.
            entry = unsafe { bindings::sg_next(entry) };
        }
        Ok(())
    }
}
