// SPDX-License-Identifier: GPL-2.0

//! A disk that can be seen, and its removal.

use super::{
    fops,
    private::Base, //
};
use crate::bindings;
use core::ptr::{
    addr_of_mut,
    NonNull, //
};
use kernel::sync::atomic::Full;

/// A disk that has been added; dropping it removes it.
///
/// # Invariants
///
/// `0` was added by this library, is referenced by this object, and is removed only through it. Its queue is valid as
/// long as it is.
pub(super) struct Shown(NonNull<bindings::gendisk>);

// SAFETY: A `struct gendisk` may be used from any thread, and private data is `Send`.
unsafe impl Send for Shown {}
// SAFETY: As above; private data is `Sync`.
unsafe impl Sync for Shown {}

impl Shown {
    /// # Safety
    ///
    /// `disk` must have been added by this library; its reference is passed on.
    pub(super) unsafe fn from_raw(disk: NonNull<bindings::gendisk>) -> Self {
        // INVARIANT: By the safety requirements.
        Self(disk)
    }

    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::gendisk {
        self.0.as_ptr()
    }

    #[inline]
    pub(super) fn queue(&self) -> *mut bindings::request_queue {
        // SAFETY: By the type invariants; the field never changes.
        unsafe { (*self.as_raw()).queue }
    }

    #[inline]
    pub(super) fn private(&self) -> NonNull<Base> {
        // SAFETY: By the type invariants the disk is one of this library.
        unsafe { fops::base(self.as_raw()) }
    }

    #[inline]
    pub(super) fn base(&self) -> &Base {
        // SAFETY: The private data stays as long as the disk is referenced.
        unsafe { self.private().as_ref() }
    }

    /// See [`Gendisk::remove`](super::Gendisk::remove).
    pub(super) fn remove(&self) {
        let base = self.base();
        // ORDERING: `Full`: exactly one caller goes on.
        if base.removing.xchg(true, Full) {
            base.removed.wait_for_completion();
            return;
        }
        base.changes.close();
        // SAFETY: By the type invariants the disk was added; it is removed here only, once.
        unsafe { bindings::del_gendisk(self.as_raw()) };
        base.kicks.close();
        self.cancel_kicks();
        base.removed.complete_all();
    }

    /// Takes back what was scheduled after `del_gendisk` had cancelled all. Sleeps.
    fn cancel_kicks(&self) {
        let queue = self.queue();
        // SAFETY: The queue is valid as long as the disk is referenced. Nobody schedules its work any more.
        unsafe { bindings::cancel_delayed_work_sync(addr_of_mut!((*queue).requeue_work)) };
        // SAFETY: As above; the number does not change after the removal.
        for index in 0..unsafe { (*queue).nr_hw_queues } {
            let Ok(index) = i32::try_from(index) else {
                continue;
            };
            // SAFETY: The queue has that many hardware queues, which stay as long as it does.
            unsafe {
                let hctx = bindings::weft_helper_queue_hctx(queue, index);
                if !hctx.is_null() {
                    bindings::cancel_delayed_work_sync(addr_of_mut!((*hctx).run_work));
                }
            }
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.remove();
        // SAFETY: By the type invariants the disk is referenced.
        #[cfg(CONFIG_DEBUG_KOBJECT_RELEASE)]
        let unkept = unsafe { super::late::keep(self.as_raw()) };
        // SAFETY: By the type invariants this reference is ours.
        unsafe { bindings::put_disk(self.as_raw()) };
        #[cfg(CONFIG_DEBUG_KOBJECT_RELEASE)]
        drop(unkept);
    }
}
