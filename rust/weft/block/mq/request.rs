// SPDX-License-Identifier: GPL-2.0

//! Requests of the block layer.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h) (`struct request`)

use super::{
    pdu,
    Operations, //
};
use crate::{
    bindings,
    block::{
        disk,
        sg::{
            Sg,
            SgSource, //
        },
        Flags,
        IoPrio,
        Op,
        SECTOR_SHIFT, //
    },
};
use core::{
    any::TypeId,
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// A request in flight, owned by the driver.
///
/// It has to be consumed by [`Self::complete`] or [`Self::requeue`]; dropped, it is completed with `EIO`. A request
/// that is forgotten is never completed: whoever waits for it, and the removal of its disk, wait for ever.
///
/// # Invariants
///
/// `rq` has been started by this library and was neither completed nor requeued since; its private data is
/// initialised. This is the only owner of it. `op` is its operation.
pub struct Request {
    rq: NonNull<bindings::request>,
    op: Op,
    serial: u32,
}

// SAFETY: A request may be used and completed on any thread.
unsafe impl Send for Request {}
// SAFETY: Methods on shared references only read what does not change while the request is owned; the driver's data
// is `Sync`.
unsafe impl Sync for Request {}

impl Request {
    /// Starts a request and takes it.
    ///
    /// # Safety
    ///
    /// `rq` must be given out by the block layer to the driver now, have operation `op`, and belong to a tag set of
    /// this library.
    #[inline]
    pub(super) unsafe fn start(rq: NonNull<bindings::request>, op: Op) -> Self {
        // SAFETY: The private data is initialised, and nobody owns the request but the caller.
        let serial = unsafe {
            let head = pdu::head(rq.as_ptr());
            (*head).serial = (*head).serial.wrapping_add(1);
            (*head).serial
        };
        // SAFETY: The request was given out and has not been started.
        unsafe { bindings::blk_mq_start_request(rq.as_ptr()) };
        // INVARIANT: Just started; nobody else owns it.
        Self { rq, op, serial }
    }

    #[inline]
    fn cmd_flags(&self) -> bindings::blk_opf_t {
        // SAFETY: By the type invariants the request is in flight; the field does not change until it is given up.
        unsafe { (*self.rq.as_ptr()).cmd_flags }
    }

    /// What is to be done.
    #[inline]
    pub fn op(&self) -> Op {
        self.op
    }

    /// How it is to be done.
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags::from_raw(self.cmd_flags())
    }

    /// Where it starts.
    #[inline]
    pub fn sector(&self) -> u64 {
        // SAFETY: By the type invariants the request is in flight; the field does not change until it is given up.
        unsafe { (*self.rq.as_ptr()).__sector }
    }

    /// How many bytes of the disk it is about, which is also how much data a read or a write has. 0 for a flush.
    #[inline]
    pub fn bytes(&self) -> u32 {
        // SAFETY: By the type invariants the request is in flight; the field does not change until it is given up.
        unsafe { (*self.rq.as_ptr()).__data_len }
    }

    /// [`Self::bytes`] in sectors.
    #[inline]
    pub fn sectors(&self) -> u32 {
        self.bytes() >> SECTOR_SHIFT
    }

    /// Its I/O priority; none if it has an impossible one.
    #[inline]
    pub fn ioprio(&self) -> IoPrio {
        // SAFETY: By the type invariants the request is in flight; its bios are not touched by anybody else.
        let raw = unsafe { bindings::weft_helper_req_get_ioprio(self.rq.as_ptr()) };
        IoPrio::from_raw(raw).unwrap_or(IoPrio::NONE)
    }

    /// Its tag: no other request of the tag set has it as long as this one is in flight, if the set shares tags among
    /// its queues; else no other request of the same hardware queue.
    #[inline]
    pub fn tag(&self) -> u16 {
        // SAFETY: By the type invariants the request is in flight; the field does not change until it is given up.
        let tag = unsafe { (*self.rq.as_ptr()).tag };
        u16::try_from(tag).unwrap_or(u16::MAX)
    }

    /// Whether somebody polls for its completion.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.cmd_flags() & bindings::WEFT_REQ_POLLED != 0
    }

    /// Whether its submitter rather has an error (`EAGAIN`) than waits.
    #[inline]
    pub fn is_nowait(&self) -> bool {
        self.cmd_flags() & bindings::WEFT_REQ_NOWAIT != 0
    }

    /// The driver's data of the request, if it is of this type.
    #[inline]
    pub fn data<D: Send + Sync + 'static>(&self) -> Option<&D> {
        // SAFETY: By the type invariants the private data is initialised. `data` never changes.
        if unsafe { (*pdu::head(self.rq.as_ptr())).data } != TypeId::of::<D>() {
            return None;
        }
        // SAFETY: It is of this type and stays until the request is completed; it is only ever shared.
        Some(unsafe { &(*pdu::pdu::<D>(self.rq.as_ptr())).data })
    }

    /// Lists the memory of the request, and returns the number of entries; 0 if the operation has no data.
    ///
    /// The list is freed with the completion. `ENOMEM` if there is no memory for a long list now: the request should
    /// be tried again later. Any context.
    pub fn map_sg(&mut self) -> Result<u32> {
        if !self.op.has_data() || self.bytes() == 0 {
            return Ok(0);
        }
        // SAFETY: By the type invariants the request is ours alone, in flight, and initialised.
        match unsafe { pdu::list(self.rq.as_ptr()) } {
            Some((_, nents)) => Ok(nents),
            // SAFETY: As above; it has data.
            None => unsafe { pdu::map(self.rq.as_ptr()) },
        }
    }

    /// Gives up the ownership, and whatever was made for the request.
    #[inline]
    fn into_raw(self) -> NonNull<bindings::request> {
        let this = ManuallyDrop::new(self);
        this.rq
    }

    /// Whether this is the request `rq` as it was given out with `serial`.
    #[inline]
    pub(super) fn is(&self, rq: NonNull<bindings::request>, serial: u32) -> bool {
        self.rq == rq && self.serial == serial
    }

    #[inline]
    pub(super) fn serial(&self) -> u32 {
        self.serial
    }

    /// Gives the request back to the caller of `queue_rq`.
    #[inline]
    pub(super) fn refuse(self) {
        let rq = self.into_raw();
        // SAFETY: The request was ours alone; nobody uses the list since it can only be reached through `self`.
        unsafe { pdu::unmap(rq.as_ptr()) };
    }

    /// Completes the request. Any context.
    ///
    /// The block layer does the rest here, in softirq or on the CPU the request came from. An error becomes the status
    /// that stands for it (C: `errno_to_blk_status`); those by which the layers of the kernel talk among themselves
    /// become `EIO`.
    #[inline]
    pub fn complete(self, result: Result) {
        let nowait = self.is_nowait();
        let rq = self.into_raw();
        let status = match result {
            Ok(()) => 0,
            Err(error) => status_of(error, nowait),
        };
        // SAFETY: The request was ours alone until here, in flight and initialised.
        unsafe { (*pdu::head(rq.as_ptr())).status = status };
        // SAFETY: As above. From here on the block layer owns it, and calls `complete_callback` once.
        unsafe { bindings::blk_mq_complete_request(rq.as_ptr()) };
    }

    /// Gives the request back to be queued again soon, perhaps on another tag. Any context.
    pub fn requeue(self) {
        let rq = self.into_raw();
        // SAFETY: The request was ours alone, in flight and initialised; nobody uses the list.
        unsafe { pdu::unmap(rq.as_ptr()) };
        // SAFETY: As above.
        unsafe { bindings::blk_mq_requeue_request(rq.as_ptr(), true) };
    }

    /// Gives the request back to be queued again after `delay_ms` milliseconds, or sooner if another one of the disk
    /// is. Any context.
    pub fn requeue_after(self, delay_ms: u32) {
        let rq = self.into_raw();
        // SAFETY: The request was ours alone, in flight and initialised; nobody uses the list.
        unsafe { pdu::unmap(rq.as_ptr()) };
        // SAFETY: A request of this library that is in flight; its ownership is passed on.
        unsafe { disk::requeue(rq, delay_ms) };
    }

    /// Ends a request whose result is stored.
    ///
    /// # Safety
    ///
    /// To be called by the block layer, once, for a request that was completed with [`Self::complete`].
    #[inline(never)]
    pub(super) unsafe extern "C" fn complete_callback(rq: *mut bindings::request) {
        // SAFETY: `complete` passed the ownership on to us; nobody uses the list since its owner is gone.
        unsafe { pdu::unmap(rq) };
        // SAFETY: As above.
        let status = unsafe { (*pdu::head(rq)).status };
        // SAFETY: The request has been completed and is ended once.
        unsafe { bindings::blk_mq_end_request(rq, status) };
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // INVARIANT: `self` is not used again, so that the new value is the only owner.
        let request = Self { ..*self };
        request.complete(Err(EIO));
    }
}

// SAFETY: The list lies in the request's private data or in memory that belongs to it. It is made by `map_sg`, which
// borrows mutably, and freed by methods that consume the request. Its memory is that of the request's bios, which stay
// until the request is completed. Nothing else touches the entries meanwhile.
unsafe impl SgSource for Request {
    #[inline]
    fn sg(&self) -> Option<Sg> {
        // SAFETY: By the type invariants the request is ours alone and initialised.
        let (list, nents) = unsafe { pdu::list(self.rq.as_ptr()) }?;
        Some(Sg { list, nents })
    }
}

/// The status for an error. `EAGAIN` is for submitters who do not wait.
fn status_of(error: Error, nowait: bool) -> bindings::blk_status_t {
    // SAFETY: Pure computation.
    let status = unsafe { bindings::errno_to_blk_status(error.to_errno()) };
    match status {
        bindings::WEFT_BLK_STS_DM_REQUEUE => bindings::WEFT_BLK_STS_IOERR,
        bindings::WEFT_BLK_STS_AGAIN if !nowait => bindings::WEFT_BLK_STS_IOERR,
        // Not an error in C.
        0 => bindings::WEFT_BLK_STS_IOERR,
        other => other,
    }
}

/// A request that somebody else owns, for the time of a call.
///
/// The owner may complete or requeue it meanwhile; it is not used for anything else until the call returns.
///
/// # Invariants
///
/// `rq` is a request of a driver `T`, with initialised private data that stays for `'a`.
pub struct RequestRef<'a, T: Operations> {
    rq: NonNull<bindings::request>,
    _data: PhantomData<&'a T::RequestData>,
}

impl<T: Operations> RequestRef<'_, T> {
    /// # Safety
    ///
    /// `rq` must be a request of a driver `T`, with initialised private data that stays for the lifetime.
    #[inline]
    pub(super) unsafe fn from_raw(rq: NonNull<bindings::request>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            rq,
            _data: PhantomData,
        }
    }

    /// Its tag; nothing if it has just been given back. By the time the caller looks, the tag may be another's.
    #[inline]
    pub fn tag(&self) -> Option<u16> {
        // SAFETY: By the type invariants the request is valid.
        u16::try_from(unsafe { bindings::weft_helper_rq_read_tag(self.rq.as_ptr()) }).ok()
    }

    /// The driver's data of the request.
    #[inline]
    pub fn data(&self) -> &T::RequestData {
        // SAFETY: By the type invariants; the data is only ever shared.
        unsafe { &(*pdu::pdu::<T::RequestData>(self.rq.as_ptr())).data }
    }
}
