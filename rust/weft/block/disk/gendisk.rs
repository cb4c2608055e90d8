// SPDX-License-Identifier: GPL-2.0

//! What can be done with a disk, whoever drives it.

use super::{
    private::{
        self,
        Base, //
    },
    shown::Shown, //
};
use crate::{
    bindings,
    block::{
        gate::Pass,
        limits::Limits,
        SECTOR_SHIFT, //
    },
    sysfs::{
        KobjRef,
        Node, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr, //
};

/// A disk that has been added, without its driver's data.
///
/// Whoever keeps something that refers to it ([`Self::node`]) keeps its memory and that of its driver's data, but not
/// the disk from being removed.
pub struct Gendisk {
    node: Node,
    disk: Shown,
}

impl Gendisk {
    /// Wraps a disk that is being made; removes it if that fails. `ENOMEM`.
    pub(super) fn new(disk: Shown) -> Result<Self> {
        // SAFETY: The disk is valid, and its object is in sysfs until it is removed, which is not before `remove`
        // has closed the place.
        let node = unsafe {
            let kobj = bindings::weft_helper_disk_kobj(disk.as_raw());
            Node::new(KobjRef::get(NonNull::new_unchecked(kobj)))?
        };
        Ok(Self { node, disk })
    }

    /// The C object, which is valid as long as `self`.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::gendisk {
        self.disk.as_raw()
    }

    #[inline]
    fn queue(&self) -> *mut bindings::request_queue {
        self.disk.queue()
    }

    #[inline]
    pub(super) fn private(&self) -> NonNull<Base> {
        self.disk.private()
    }

    #[inline]
    fn base(&self) -> &Base {
        self.disk.base()
    }

    /// Its directory in sysfs, such as `/sys/block/NAME`: for others below it, for links and for events.
    #[inline]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Keeps the disk from being removed; nothing if it is.
    fn change(&self) -> Option<Pass<'_>> {
        self.base().changes.pass()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        // SAFETY: By the type invariants; the name is a string that does not change.
        let name = unsafe { CStr::from_char_ptr((*self.as_raw()).disk_name.as_ptr()) };
        name.to_str().unwrap_or("")
    }

    /// Its size in sectors; 0 once it is removed.
    pub fn capacity(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_get_capacity(self.as_raw()) }
    }

    /// Gives it another size, in sectors, and tells user space; whether it was told. May sleep.
    ///
    /// C: `set_capacity_and_notify`.
    pub fn set_capacity(&self, sectors: u64) -> bool {
        let sectors = sectors.min((i64::MAX as u64) >> SECTOR_SHIFT);
        let Some(_pass) = self.change() else {
            return false;
        };
        // SAFETY: By the type invariants; it is not removed meanwhile.
        unsafe { bindings::set_capacity_and_notify(self.as_raw(), sectors) }
    }

    /// Whether it is read-only.
    pub fn is_read_only(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_get_disk_ro(self.as_raw()) }
    }

    /// Makes it read-only or not, and tells user space. May sleep.
    pub fn set_read_only(&self, read_only: bool) {
        if let Some(_pass) = self.change() {
            // SAFETY: By the type invariants; it is not removed meanwhile.
            unsafe { bindings::set_disk_ro(self.as_raw(), read_only) };
        }
    }

    /// How many have it open now; somebody else may come or go at any time. Who needs to be sure counts with
    /// [`Operations::open`](crate::block::mq::Operations::open).
    pub fn openers(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weft_helper_disk_openers(self.as_raw()) }
    }

    /// Fails all I/O from now on and has file systems on it shut down, as for a disk that was pulled out. Sleeps.
    ///
    /// Requests in flight are still the driver's to complete. C: `blk_mark_disk_dead`.
    pub fn mark_dead(&self) {
        if let Some(_pass) = self.change() {
            // SAFETY: By the type invariants; it is not removed meanwhile.
            unsafe { bindings::blk_mark_disk_dead(self.as_raw()) };
        }
    }

    /// Replaces what it can do, waiting for the requests in flight. Sleeps.
    ///
    /// `EINVAL` if the new limits are out of range, `ENODEV` if it is being removed.
    pub fn set_limits(&self, limits: &Limits) -> Result {
        limits.check()?;
        let _pass = self.change().ok_or(ENODEV)?;
        let mut raw: bindings::queue_limits = pin_init::zeroed();
        // SAFETY: The queue is valid; this takes the lock of its limits.
        unsafe { bindings::weft_helper_queue_limits_start_update(self.queue(), &mut raw) };
        // Checked above, so that the lock is released in any case by what comes.
        let _ = limits.apply(&mut raw);
        // SAFETY: The queue is valid, and the lock of its limits is held.
        to_result(unsafe { bindings::queue_limits_commit_update_frozen(self.queue(), &mut raw) })
    }

    /// Calls `work` while no request is in flight and none comes. Sleeps, and waits for those in flight.
    ///
    /// `work` must not wait for I/O to the disk, nor for its removal. `ENODEV` if it is being removed.
    /// C: `blk_mq_freeze_queue`.
    pub fn frozen<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        let _pass = self.change().ok_or(ENODEV)?;
        // SAFETY: The queue is valid, and not removed meanwhile.
        let flags = unsafe { bindings::weft_helper_blk_mq_freeze_queue(self.queue()) };
        let result = work();
        // SAFETY: Undoes the call above, on the same task.
        unsafe { bindings::weft_helper_blk_mq_unfreeze_queue(self.queue(), flags) };
        Ok(result)
    }

    /// Calls `work` while no call of `queue_rq` runs for the disk. Sleeps, but does not wait for requests in flight.
    ///
    /// `work` must not wait for I/O to the disk, nor for its removal. `ENODEV` if it is being removed.
    /// C: `blk_mq_quiesce_queue`.
    pub fn quiesced<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        let _pass = self.change().ok_or(ENODEV)?;
        // SAFETY: The queue is valid, and not removed meanwhile.
        unsafe { bindings::blk_mq_quiesce_queue(self.queue()) };
        let result = work();
        // SAFETY: Undoes the call above.
        unsafe { bindings::blk_mq_unquiesce_queue(self.queue()) };
        Ok(result)
    }

    /// Has the queues give out what they hold, such as requests that were refused as busy. Any context.
    pub fn run_queues(&self) {
        if let Some(_pass) = self.base().kicks.pass() {
            // SAFETY: The queue is valid, and what is scheduled is cancelled after its removal.
            unsafe { bindings::blk_mq_run_hw_queues(self.queue(), true) };
        }
    }

    /// [`Self::run_queues`] after `delay_ms` milliseconds. Any context.
    pub fn run_queues_after(&self, delay_ms: u32) {
        if let Some(_pass) = self.base().kicks.pass() {
            // SAFETY: As in `run_queues`.
            unsafe { bindings::blk_mq_delay_run_hw_queues(self.queue(), delay_ms as usize) };
        }
    }

    /// Has requests that were put back queued again now. Any context.
    pub fn kick_requeued(&self) {
        if let Some(_pass) = self.base().kicks.pass() {
            // SAFETY: As in `run_queues`.
            unsafe { bindings::blk_mq_kick_requeue_list(self.queue()) };
        }
    }

    /// Removes the disk: nobody can open it any more, what is dirty is written, the requests in flight are waited for,
    /// and all later ones fail. Sleeps. Does nothing if it was removed; waits if somebody else removes it.
    ///
    /// Must not be called under the lock that `open` and `release` run with. What the driver has put below [`Self::node`]
    /// should be removed before. C: `del_gendisk`.
    pub fn remove(&self) {
        self.node.close();
        self.disk.remove();
    }
}

impl Drop for Gendisk {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Puts a request back to be queued again after a while.
///
/// # Safety
///
/// `rq` must be in flight for a disk of this library, and be the caller's alone, which it is not afterwards.
pub(in crate::block) unsafe fn requeue(rq: NonNull<bindings::request>, delay_ms: u32) {
    // SAFETY: By the safety requirements; the disk stays as long as the request is in flight.
    let queue = unsafe { (*rq.as_ptr()).q };
    // SAFETY: As above. The pass keeps the removal, and so the private data, from ending.
    let base = unsafe { private::base_of(queue).as_ref() };
    let pass = base.kicks.pass();
    // SAFETY: The request is the caller's.
    unsafe { bindings::blk_mq_requeue_request(rq.as_ptr(), pass.is_none()) };
    if pass.is_some() {
        // SAFETY: The queue stays as long as its removal has not ended.
        unsafe { bindings::blk_mq_delay_kick_requeue_list(queue, delay_ms as usize) };
    }
}
