// SPDX-License-Identifier: GPL-2.0

//! What a driver of disks implements.

use super::{
    Hw,
    Request,
    RequestRef, //
};
use kernel::{
    build_error,
    prelude::*, //
};

/// A request that could not be started for want of something that will be there again.
///
/// The block layer keeps the request and gives it out again when another request of its queue is completed, when the
/// queues are run ([`Gendisk::run_queues`](crate::block::disk::Gendisk::run_queues)), or after a few milliseconds.
pub struct Busy(pub Request);

/// What is done about a request that takes longer than the time limit of its tag set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timeout {
    /// It gets the same time once more.
    Again,
    /// The driver is going to complete it; the request is not looked at again.
    Seen,
}

/// How somebody opens a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// Writing is asked for.
    pub write: bool,
    /// The disk is read-only now.
    pub read_only: bool,
}

/// What `HDIO_GETGEO` tells; the cylinders follow from the capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Heads, not 0.
    pub heads: u8,
    /// Sectors of a track, not 0.
    pub sectors: u8,
}

/// A driver of disks. C: `struct blk_mq_ops` and `struct block_device_operations`.
///
/// The methods are called by the block layer, many at a time. None may sleep unless it says so.
#[vtable]
pub trait Operations: Sized + 'static {
    /// What all disks of a tag set share.
    type TagSetData: Send + Sync + 'static;

    /// The driver's side of a disk. It is dropped when the disk has been removed and the last user of it is gone, in
    /// process context.
    type QueueData: Send + Sync + 'static;

    /// What belongs to one hardware queue of one disk.
    type HwData: Send + Sync + 'static;

    /// What belongs to each request, of which there are more than tags: those of I/O schedulers and for flushes.
    type RequestData: Send + Sync + 'static;

    /// What `HDIO_GETGEO` tells, if anything.
    const GEOMETRY: Option<Geometry> = None;

    /// Makes the data of a request. May sleep, must not start I/O to allocate memory (and does not if it allocates as
    /// usual: the caller sees to it).
    fn new_request(tags: &Self::TagSetData) -> impl PinInit<Self::RequestData, Error>;

    /// Makes the data of hardware queue `index` of a disk. May sleep, as for [`Self::new_request`].
    fn new_hw(tags: &Self::TagSetData, index: u32) -> Result<Self::HwData>;

    /// Starts a request, which is the driver's from here on. Its time runs already.
    ///
    /// With `last`, no other request follows directly; without, either one does or [`Self::commit_rqs`]. Called in
    /// process or softirq context, in an RCU read-side section.
    fn queue_rq(
        hw: Hw<'_, Self>,
        queue: &Self::QueueData,
        request: Request,
        last: bool,
    ) -> Result<(), Busy>;

    /// Requests were queued of which none was the last, and no more follow.
    fn commit_rqs(hw: Hw<'_, Self>, queue: &Self::QueueData) {
        let _ = (hw, queue);
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// A request takes long. Process context. Its owner may complete it at the same time.
    fn timeout(request: RequestRef<'_, Self>) -> Timeout {
        let _ = request;
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Looks for completed requests of a poll queue, and completes them: returns how many, or something negative if
    /// there is no use in polling on. In an RCU read-side section.
    fn poll(hw: Hw<'_, Self>, queue: &Self::QueueData) -> i32 {
        let _ = (hw, queue);
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Somebody opens the disk or a part of it; an error refuses. May sleep. A lock of the disk is held, under which
    /// the disk can neither be added nor removed.
    fn open(queue: &Self::QueueData, open: Open) -> Result {
        let _ = (queue, open);
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// What was opened is closed: called once for each [`Self::open`] that succeeded, under the same lock.
    fn release(queue: &Self::QueueData) {
        let _ = queue;
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }
}
