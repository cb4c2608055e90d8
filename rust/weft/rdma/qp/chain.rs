// SPDX-License-Identifier: GPL-2.0

//! Chains of work requests, while they are built.
//!
//! A [`Chain`] is on the stack of [`QueuePair::post`](super::QueuePair::post). Everything in it has the lifetime `'o`
//! of the owner's borrow, which is longer than the hardware's use of it: see [`qp`](super).

use super::{
    gather::{
        Gather,
        Gathering, //
    },
    ring::SlotKeys,
    wr::{
        send_wr,
        Wr, //
    },
    QueuePair, //
};
use crate::{
    bindings,
    loan::{
        Lent,
        Loan,
        Pledge, //
    },
    mr::{
        Access,
        Mr,
        Registered, //
    },
    pages::Mapped,
};
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr, //
};
use kernel::{
    ffi,
    prelude::*, //
};

/// Work requests of one chain.
pub const MAX_WRS: usize = 8;
/// Scatter-gather entries of one chain, all its work requests together.
pub const MAX_SGES: usize = 32;

/// Memory of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Its address, as the peer counts.
    pub addr: u64,
    /// The key of the memory region.
    pub rkey: u32,
}

impl Remote {
    /// No memory: for writes of nothing.
    pub const NONE: Self = Self { addr: 0, rkey: 0 };
}

/// Work requests for one queue pair, in the order in which they are done.
///
/// `'o` is invariant and different for each chain, so nothing of one chain gets into another.
///
/// # Invariants
///
/// The first `wr_count` of `wrs` are initialised, but for their links, keys and lists. For each, `lists` has the first
/// of its `num_sge` entries, which are in the first `sge_count` of `sges`, all initialised. The first `pledge_count` of
/// `pledges` are initialised; they were committed if `committed` says so.
pub struct Chain<'o> {
    qp: &'o QueuePair,
    lkey: u32,
    wr_count: usize,
    sge_count: usize,
    pledge_count: usize,
    committed: bool,
    lists: [u8; MAX_WRS],
    wrs: [MaybeUninit<Wr>; MAX_WRS],
    sges: [MaybeUninit<bindings::ib_sge>; MAX_SGES],
    pledges: [MaybeUninit<Pledge<'o>>; MAX_WRS],
    _invariant: PhantomData<fn(&'o ()) -> &'o ()>,
}

impl<'o> Chain<'o> {
    #[inline]
    pub(super) fn new(qp: &'o QueuePair) -> Self {
        // INVARIANT: Nothing is there.
        Self {
            qp,
            lkey: qp.pd().local_dma_lkey(),
            wr_count: 0,
            sge_count: 0,
            pledge_count: 0,
            committed: false,
            lists: [0; MAX_WRS],
            wrs: [const { MaybeUninit::uninit() }; MAX_WRS],
            sges: [const { MaybeUninit::uninit() }; MAX_SGES],
            pledges: [const { MaybeUninit::uninit() }; MAX_WRS],
            _invariant: PhantomData,
        }
    }

    /// RDMA WRITE of `data` to memory of the peer.
    #[inline]
    pub fn write(&mut self, data: impl Gather<'o>, to: Remote) -> Result {
        self.rdma(data, to, bindings::ib_wr_opcode_IB_WR_RDMA_WRITE, 0)
    }

    /// RDMA WRITE of `data` to memory of the peer, which then gets `imm` for a receive.
    #[inline]
    pub fn write_imm(&mut self, data: impl Gather<'o>, to: Remote, imm: u32) -> Result {
        let opcode = bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM;
        self.rdma(data, to, opcode, imm.to_be())
    }

    /// SEND of `data`, into a receive of the peer.
    #[inline]
    pub fn send(&mut self, data: impl Gather<'o>) -> Result {
        self.message(data, bindings::ib_wr_opcode_IB_WR_SEND, 0)
    }

    /// SEND of `data` with the immediate `imm`.
    #[inline]
    pub fn send_imm(&mut self, data: impl Gather<'o>, imm: u32) -> Result {
        let opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM;
        self.message(data, opcode, imm.to_be())
    }

    /// SEND of `data` that invalidates the peer's memory region with the key `rkey`.
    #[inline]
    pub fn send_inv(&mut self, data: impl Gather<'o>, rkey: u32) -> Result {
        self.message(data, bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV, rkey)
    }

    /// Registers the memory in `mr` under a new key, which is valid for what comes after this in the queue.
    ///
    /// `EBUSY` if there is no memory, or it is registered already, or an invalidation is not known to be over
    /// ([`Mr::settle`]); `EACCES` if `access` lets the peer write memory that was mapped for reading; `EINVAL` if `mr`
    /// is of another protection domain; `ENODEV` after [`Mr::revoke`].
    #[inline]
    pub fn register<M: Mapped>(&mut self, mr: &'o Mr<M>, access: Access) -> Result<Registered<'o>> {
        mr.register(self, access)
    }

    /// Invalidates `mr`: when this is over, its key opens nothing. `EBUSY` if it is not registered, `EINVAL` if it was
    /// by another queue pair.
    #[inline]
    pub fn invalidate<M: Mapped>(&mut self, mr: &'o Mr<M>) -> Result {
        mr.invalidate(self)
    }

    /// Lends what is in `loan`, for use in any work requests of this chain.
    ///
    /// `EBUSY` if there is nothing, or it was lent to another queue pair or to another chain that is being built.
    #[inline]
    pub fn lend<M: Mapped>(&mut self, loan: &'o Loan<M>) -> Result<Lent<'o>> {
        loan.lend(self)
    }

    /// How many work requests there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.wr_count
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.wr_count == 0
    }

    /// The number of the queue pair.
    #[inline]
    pub(crate) fn qp_id(&self) -> u64 {
        self.qp.id()
    }

    /// The queue pair.
    #[inline]
    pub(crate) fn qp(&self) -> &'o QueuePair {
        self.qp
    }

    /// The key of all mapped memory.
    #[inline]
    pub(super) fn dma_lkey(&self) -> u32 {
        self.lkey
    }

    /// How many scatter-gather entries there are.
    #[inline]
    pub(super) fn sges(&self) -> usize {
        self.sge_count
    }

    /// Adds a scatter-gather entry. `EINVAL` if there are too many.
    #[inline]
    pub(super) fn add_sge(&mut self, sge: bindings::ib_sge) -> Result {
        let at = self.sges.get_mut(self.sge_count).ok_or(EINVAL)?;
        at.write(sge);
        // INVARIANT: One more.
        self.sge_count += 1;
        Ok(())
    }

    /// Takes over `pledge`, or cancels it if there are too many.
    #[inline]
    pub(crate) fn pledge(&mut self, pledge: Pledge<'o>) -> Result {
        match self.pledges.get_mut(self.pledge_count) {
            Some(at) => {
                // INVARIANT: One more.
                at.write(pledge);
                self.pledge_count += 1;
                Ok(())
            }
            None => {
                pledge.cancel();
                Err(EINVAL)
            }
        }
    }

    /// Whether one more work request fits.
    #[inline]
    pub(crate) fn check_room(&self) -> Result {
        if self.wr_count < MAX_WRS {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Adds a registration of `mr` under `key`, with `access` flags for C.
    #[inline]
    pub(crate) fn add_register(
        &mut self,
        mr: *mut bindings::ib_mr,
        key: u32,
        access: ffi::c_int,
    ) -> Result {
        let wr = bindings::ib_reg_wr {
            wr: send_wr(bindings::ib_wr_opcode_IB_WR_REG_MR, 0, 0),
            mr,
            key,
            access,
        };
        self.add(wr, self.sge_count)
    }

    /// Adds the invalidation of `key`.
    #[inline]
    pub(crate) fn add_invalidate(&mut self, key: u32) -> Result {
        let wr = send_wr(bindings::ib_wr_opcode_IB_WR_LOCAL_INV, key, 0);
        self.add(wr, self.sge_count)
    }

    #[inline]
    fn rdma(
        &mut self,
        data: impl Gather<'o>,
        to: Remote,
        opcode: bindings::ib_wr_opcode,
        ex: u32,
    ) -> Result {
        let (first, count) = self.gather(data)?;
        let wr = bindings::ib_rdma_wr {
            wr: send_wr(opcode, ex, count),
            remote_addr: to.addr,
            rkey: to.rkey,
        };
        self.add(wr, first)
    }

    #[inline]
    fn message(
        &mut self,
        data: impl Gather<'o>,
        opcode: bindings::ib_wr_opcode,
        ex: u32,
    ) -> Result {
        let (first, count) = self.gather(data)?;
        self.add(send_wr(opcode, ex, count), first)
    }

    /// Collects the entries of one work request: where they begin, and how many they are.
    #[inline]
    fn gather(&mut self, data: impl Gather<'o>) -> Result<(usize, ffi::c_int)> {
        let mut out = Gathering::new(self);
        data.gather(&mut out)?;
        let (first, count) = out.range();
        if count > self.qp.max_send_sge() {
            return Err(EINVAL);
        }
        // CAST: At most `MAX_SGES`.
        Ok((first, count as ffi::c_int))
    }

    /// Adds a work request whose entries begin at `first`. `W` begins with an `ib_send_wr`.
    #[inline]
    fn add<W>(&mut self, wr: W, first: usize) -> Result {
        const { assert!(size_of::<W>() <= size_of::<Wr>() && align_of::<W>() <= align_of::<Wr>()) };
        let (at, list) = match (
            self.wrs.get_mut(self.wr_count),
            self.lists.get_mut(self.wr_count),
        ) {
            (Some(at), Some(list)) => (at, list),
            _ => return Err(EINVAL),
        };
        // SAFETY: There is room for it, by the assertion above.
        unsafe { at.as_mut_ptr().cast::<W>().write(wr) };
        // CAST: At most `MAX_SGES`.
        *list = first as u8;
        // INVARIANT: One more.
        self.wr_count += 1;
        Ok(())
    }

    /// Links the work requests, gives them their keys, and the last one its flags. The first of them.
    ///
    /// The result is good as long as the chain is not moved.
    #[inline]
    pub(super) fn link(&mut self, keys: &SlotKeys, flags: ffi::c_int) -> *mut bindings::ib_send_wr {
        let sges = self.sges.as_mut_ptr().cast::<bindings::ib_sge>();
        let wrs = self.wrs.as_mut_ptr();
        let mut next: *mut bindings::ib_send_wr = ptr::null_mut();
        for (index, list) in self.lists.iter().enumerate().take(self.wr_count).rev() {
            let wr = wrs.wrapping_add(index).cast::<bindings::ib_send_wr>();
            let last = next.is_null();
            // SAFETY: By the type invariants this one is initialised, and begins with an `ib_send_wr`.
            let raw = unsafe { &mut *wr };
            raw.next = next;
            raw.__bindgen_anon_1.bindgen_union_field = if last { keys.last } else { keys.others };
            raw.sg_list = sges.wrapping_add(usize::from(*list));
            if last {
                raw.send_flags = flags;
            }
            next = wr;
        }
        next
    }

    /// How many of the work requests come before `bad`.
    pub(super) fn before(&self, bad: *const bindings::ib_send_wr) -> usize {
        let wrs = self.wrs.as_ptr();
        (0..self.wr_count)
            .find(|index| ptr::eq(wrs.wrapping_add(*index).cast(), bad))
            .unwrap_or(0)
    }

    /// Notes in all that is lent who uses it. Before the chain is posted.
    #[inline]
    pub(super) fn commit(&mut self, seq: u64) {
        let id = self.qp.id();
        self.pledges().for_each(|pledge| pledge.commit(id, seq));
        self.committed = true;
    }

    /// After [`Self::commit`]: nothing was posted. False if something that is lent still says that it was.
    ///
    /// To be called before another chain can get the same number.
    #[cold]
    pub(super) fn revert(&mut self) -> bool {
        self.pledges()
            .fold(true, |all, pledge| pledge.revert() && all)
    }

    /// Instead of [`Self::commit`]: the chain is not posted, and its owner may go.
    #[cold]
    pub(super) fn cancel(&mut self) {
        self.pledges().for_each(Pledge::cancel);
        self.forget();
    }

    /// Does not look at what is lent any more: the owner may go.
    #[cold]
    pub(super) fn forget(&mut self) {
        // INVARIANT: None of them.
        self.pledge_count = 0;
    }

    #[inline]
    fn pledges(&self) -> impl Iterator<Item = &Pledge<'o>> {
        let all = self.pledges.iter().take(self.pledge_count);
        // SAFETY: By the type invariants these are initialised.
        all.map(|pledge| unsafe { pledge.assume_init_ref() })
    }
}

impl Drop for Chain<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.committed {
            self.pledges().for_each(Pledge::cancel);
        }
    }
}
