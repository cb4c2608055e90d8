// SPDX-License-Identifier: GPL-2.0

//! Memory regions that work requests register and invalidate.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h) (`ib_alloc_mr`, `IB_WR_REG_MR`)
//!
//! An [`Mr`] is a table of pages of the device. Memory is put in ([`Mr::put`]), registered under a key by a work
//! request ([`Chain::register`]), invalidated by another one, here or by the peer, and taken out ([`Mr::take`]):
//!
//! ```text
//!             put             register                   invalidate
//!     Empty <-----> Unregistered ----> Registered {rkey} ----------> Invalidating
//!             take       ^                |                              |
//!                        +----------------+------------------------------+
//!                           invalidated         settle, if it was done
//!                                                                        | otherwise
//!                           any but Empty  ---->  Dead   <---- Poisoned <+
//!                                         revoke
//! ```
//!
//! While the key may be good the peer may write or read the memory. It leaves `Registered` and `Invalidating` only with
//! a proof that the key is not good any more: the peer's message that has invalidated it ([`Invalidated`]), or the end
//! of the chain with the invalidation, without an error ([`Sent`]). If a queue pair breaks, there will be no such
//! proof: then [`Mr::revoke`] deregisters the region, which ends every access, and gives the memory back.
//!
//! What is not taken out is dropped with the region, after that was deregistered.

mod access;
mod keys;
mod registered;

pub use access::{
    Access,
    Kind, //
};
pub use keys::Invalidated;
pub use registered::Registered;

use crate::{
    bindings,
    loan::{
        Cell,
        Pledge,
        Proof,
        Sent,
        EMPTY,
        FIRST_OWN,
        FREE,
        HELD, //
    },
    pages::Mapped,
    pd::Pd,
    qp::Chain, //
};
use keys::Keys;

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::{
        code::EBUSY,
        from_err_ptr,
        to_result, //
    },
    ffi,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

/// The key may be good.
const REGISTERED: u32 = FIRST_OWN;
/// An invalidation was posted.
const INVALIDATING: u32 = FIRST_OWN + 1;
/// An invalidation was not done.
const POISONED: u32 = FIRST_OWN + 2;
/// The region was deregistered.
const DEAD: u32 = FIRST_OWN + 3;

/// A memory region, and the memory in it. See the [module](self) for what happens to it.
///
/// Must be dropped where sleeping is allowed; all other methods but [`Self::new`] and [`Self::revoke`] may be called in
/// any context and never wait. Two that meet do not both succeed.
///
/// # Invariants
///
/// `raw`, `memory`, `keys` and `rkey` are changed only by whoever turned the state of `cell` to `HELD`. There is
/// memory unless the state is `EMPTY` or `DEAD`, and `raw` is a region of `pd` that belongs to this object unless it is
/// `DEAD`. Where there is memory, the page table of `raw` says it. Hardware may use the table and the memory only in
/// `REGISTERED`, `INVALIDATING` and `POISONED`, and only through the current `rkey`, while a chain up to the user of
/// `cell` is not over or the region is neither invalidated nor deregistered.
pub struct Mr<M: Mapped> {
    raw: UnsafeCell<*mut bindings::ib_mr>,
    memory: UnsafeCell<Option<M>>,
    cell: Cell,
    keys: UnsafeCell<Keys>,
    rkey: Atomic<u32>,
    pd: Arc<Pd>,
}

// SAFETY: A region belongs to no thread, and the memory may move to another one, as `M: Send`.
unsafe impl<M: Mapped> Send for Mr<M> {}
// SAFETY: By the type invariants all is accessed by one at a time, or atomic.
unsafe impl<M: Mapped> Sync for Mr<M> {}

impl<M: Mapped> Mr<M> {
    /// Allocates a region for up to `max_pages` pages (or segments, for [`Kind::Gaps`]). May sleep.
    ///
    /// `EOPNOTSUPP` if the device cannot do that, `EINVAL` for more pages than it can or none, `ENODEV` once it is
    /// gone.
    pub fn new(pd: &Arc<Pd>, kind: Kind, max_pages: u32) -> Result<Self> {
        let limits = pd.device().limits();
        if !limits.fast_reg || (kind == Kind::Gaps && !limits.sg_gaps) {
            return Err(EOPNOTSUPP);
        }
        if max_pages == 0 || max_pages > limits.max_fast_reg_pages {
            return Err(EINVAL);
        }
        if pd.device().is_gone() {
            return Err(ENODEV);
        }
        // SAFETY: The domain is there, and keeps its device.
        let raw = unsafe { bindings::ib_alloc_mr(pd.as_raw(), kind.as_raw(), max_pages) };
        let raw = from_err_ptr(raw)?;
        // SAFETY: Just allocated.
        let rkey = unsafe { (*raw).rkey };
        // INVARIANT: Nothing is in it.
        Ok(Self {
            raw: UnsafeCell::new(raw),
            memory: UnsafeCell::new(None),
            cell: Cell::new(EMPTY),
            keys: UnsafeCell::new(Keys::new()),
            rkey: Atomic::new(rkey),
            pd: pd.clone(),
        })
    }

    /// Puts `memory` in, in pages of `page_size` bytes: a power of two that the device knows.
    ///
    /// Gives it back with `EBUSY` if there is memory already, `EINVAL` if it does not fit (too many pages, wrong page
    /// size, mapped for another device), `ENODEV` after [`Self::revoke`]. Soft-RoCE allocates, and so sleeps, the first
    /// time that `page_size` is larger than a page.
    pub fn put(&self, memory: M, page_size: u32) -> Result<(), (Error, M)> {
        if !self.cell.hold(EMPTY) {
            let dead = self.cell.state() == DEAD;
            return Err((if dead { ENODEV } else { EBUSY }, memory));
        }
        let mapped = self.map(&memory, page_size);
        if let Err(error) = mapped {
            self.cell.release(EMPTY);
            return Err((error, memory));
        }
        // SAFETY: By the type invariants we are the one to access it.
        unsafe { *self.memory.get() = Some(memory) };
        // INVARIANT: It is there and in the table.
        self.cell.release(FREE);
        Ok(())
    }

    /// Writes the page table. By whoever holds the region, when hardware does not use it.
    fn map(&self, memory: &M, page_size: u32) -> Result {
        let limits = self.pd.device().limits();
        let known = page_size.is_power_of_two()
            && (limits.page_sizes & u64::from(page_size) != 0
                || u64::from(page_size) == kernel::page::PAGE_SIZE as u64);
        if !known || !Arc::ptr_eq(memory.device(), self.pd.device()) {
            return Err(EINVAL);
        }
        let (first, count) = memory.table();
        let entries = ffi::c_int::try_from(count)?;
        let mut offset = 0;
        // SAFETY: By the type invariants the region is ours to change. The list is as `Mapped` promises.
        let done = unsafe {
            bindings::ib_map_mr_sg(*self.raw.get(), first, entries, &mut offset, page_size)
        };
        if done == entries {
            Ok(())
        } else if done < 0 {
            Err(Error::from_errno(done))
        } else {
            Err(EINVAL)
        }
    }

    /// The key: the one under which the memory is registered, if it is.
    #[inline]
    pub fn rkey(&self) -> u32 {
        // ORDERING: A number.
        self.rkey.load(Relaxed)
    }

    /// Whether the key may be good. A hint.
    #[inline]
    pub fn is_registered(&self) -> bool {
        matches!(self.cell.state(), REGISTERED | INVALIDATING | POISONED)
    }

    /// Adds a registration to a chain.
    #[inline]
    pub(crate) fn register<'o>(
        &'o self,
        chain: &mut Chain<'o>,
        access: Access,
    ) -> Result<Registered<'o>> {
        chain.check_room()?;
        if !Arc::ptr_eq(chain.qp().pd(), &self.pd) {
            return Err(EINVAL);
        }
        if !self.cell.hold(FREE) {
            let dead = self.cell.state() == DEAD;
            return Err(if dead { ENODEV } else { EBUSY });
        }
        let pledge = Pledge::new(&self.cell, FREE, REGISTERED);
        // SAFETY: By the type invariants we are the one to access it.
        let writable = unsafe { (*self.memory.get()).as_ref() }.is_some_and(Mapped::writable);
        if access == Access::RemoteWrite && !writable {
            pledge.cancel();
            return Err(EACCES);
        }
        // SAFETY: As above.
        let raw = unsafe { *self.raw.get() };
        // SAFETY: We hold it, unregistered.
        let registered = unsafe { self.renew(raw) };
        chain.pledge(pledge)?;
        chain.add_register(raw, registered.remote().rkey, access.flags())?;
        Ok(registered)
    }

    /// Goes on to the next key.
    ///
    /// # Safety
    ///
    /// To be called by whoever holds the region, when it is not registered, with its `raw`; a chain is to register it.
    #[inline]
    unsafe fn renew(&self, raw: *mut bindings::ib_mr) -> Registered<'_> {
        // SAFETY: By the type invariants it is there, and nobody uses the old key.
        let (rkey, lkey, addr, len) = unsafe {
            bindings::weft_helper_ib_next_key(raw);
            ((*raw).rkey, (*raw).lkey, (*raw).iova, (*raw).length)
        };
        // SAFETY: The caller holds it.
        unsafe { (*self.keys.get()).next(rkey, &self.pd) };
        // ORDERING: A number.
        self.rkey.store(rkey, Relaxed);
        // INVARIANT: The memory is in the table and stays at least until the chain is over, since the state is
        // `REGISTERED` then.
        Registered {
            rkey,
            lkey,
            addr,
            len,
            pd: self.pd.as_raw(),
            device: Arc::as_ptr(self.pd.device()),
            _region: PhantomData,
        }
    }

    /// Adds the invalidation to a chain.
    #[inline]
    pub(crate) fn invalidate<'o>(&'o self, chain: &mut Chain<'o>) -> Result {
        chain.check_room()?;
        if !self.cell.hold(REGISTERED) {
            return Err(EBUSY);
        }
        let pledge = Pledge::new(&self.cell, REGISTERED, INVALIDATING);
        // The registration must be over when the invalidation is.
        if self.cell.user().0 != chain.qp_id() {
            pledge.cancel();
            return Err(EINVAL);
        }
        chain.pledge(pledge)?;
        chain.add_invalidate(self.rkey())
    }

    /// The peer has invalidated a key: if it is that of this region, the memory is unregistered now.
    ///
    /// `EINVAL` if it is not, or if an old message could say the same: then invalidate it with a work request. `EBUSY`
    /// if the memory is not registered.
    #[inline]
    pub fn invalidated(&self, by: &Invalidated<'_>) -> Result {
        if by.rkey() != self.rkey() || !by.is_of(&self.pd) {
            return Err(EINVAL);
        }
        if !self.cell.hold(REGISTERED) {
            return Err(EBUSY);
        }
        // SAFETY: We hold it.
        if by.rkey() != self.rkey() || !unsafe { &*self.keys.get() }.is_current(by) {
            self.cell.release(REGISTERED);
            return Err(EINVAL);
        }
        // INVARIANT: The device has invalidated the key, so it had executed the registration. Local work requests that
        // use it fail.
        self.cell.release(FREE);
        Ok(())
    }

    /// If an invalidation is over according to `proof`, the memory is unregistered now.
    ///
    /// `EBUSY` if there is none or it is not known to be over. `EIO` if it was not done: only [`Self::revoke`] helps.
    #[inline]
    pub fn settle(&self, proof: &Sent) -> Result {
        if self.cell.state() == POISONED {
            return Err(EIO);
        }
        if !self.cell.hold(INVALIDATING) {
            return Err(EBUSY);
        }
        if !self.cell.covered(proof) {
            self.cell.release(INVALIDATING);
            return Err(EBUSY);
        }
        if self.cell.user().1 >= proof.good {
            self.cell.release(POISONED);
            return Err(EIO);
        }
        // SAFETY: We hold it.
        unsafe { (*self.keys.get()).ended_here(self.rkey()) };
        // INVARIANT: The invalidation was done, and with it all before it.
        self.cell.release(FREE);
        Ok(())
    }

    /// Takes the memory out if it is not registered.
    #[inline]
    pub fn take(&self) -> Option<M> {
        if !self.cell.hold(FREE) {
            return None;
        }
        // SAFETY: By the type invariants we are the one to access it.
        let memory = unsafe { (*self.memory.get()).take() };
        self.cell.release(EMPTY);
        memory
    }

    /// Deregisters the region for good and takes the memory out, whatever its state. Sleeps.
    ///
    /// `EBUSY` if `proof` does not show that the last chain that uses the region is over, or somebody else is at it. `EIO`
    /// if the device does not do it: then it may still use the memory.
    pub fn revoke(&self, proof: &impl Proof) -> Result<Option<M>> {
        let state = self.cell.state();
        if state == DEAD {
            return Ok(None);
        }
        if state == HELD || !self.cell.hold(state) {
            return Err(EBUSY);
        }
        if !self.cell.covered(proof) {
            self.cell.release(state);
            return Err(EBUSY);
        }
        // SAFETY: We hold it, and no work request that names it is left.
        if unsafe { self.deregister() }.is_err() {
            // INVARIANT: Without memory there is nothing that the device could use.
            self.cell
                .release(if state == EMPTY { EMPTY } else { POISONED });
            return Err(EIO);
        }
        // SAFETY: By the type invariants we are the one to access it, and hardware has no access any more.
        let memory = unsafe { (*self.memory.get()).take() };
        self.cell.release(DEAD);
        Ok(memory)
    }

    /// Gives the region back to the device, unless that was done. On an error the device still has it, with the memory.
    ///
    /// # Safety
    ///
    /// To be called by whoever holds the region, when all chains that use it are over.
    unsafe fn deregister(&self) -> Result {
        // SAFETY: The caller holds it.
        let raw = unsafe { &mut *self.raw.get() };
        if !raw.is_null() {
            // SAFETY: By the type invariants it is ours.
            to_result(unsafe { bindings::ib_dereg_mr_user(*raw, ptr::null_mut()) })?;
            *raw = ptr::null_mut();
        }
        Ok(())
    }
}

impl<M: Mapped> Drop for Mr<M> {
    fn drop(&mut self) {
        // SAFETY: We have the only reference. The chains that use it are over, as they keep their owner, in which the
        // region was. The memory is dropped after this.
        if unsafe { self.deregister() }.is_err() {
            pr_err!(
                "{}: a memory region is not given back, its memory is lost\n",
                self.pd.device().name()
            );
            core::mem::forget((self.memory.get_mut().take(), self.pd.clone()));
        }
    }
}
