// SPDX-License-Identifier: GPL-2.0

//! Sets of tags, which several disks may share.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h) (`struct blk_mq_tag_set`)

use super::{
    pdu::Pdu,
    table::Table,
    Operations, //
};
use crate::bindings;
use core::{
    pin::Pin,
    ptr::addr_of_mut, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta,
        Msecs, //
    },
    types::Opaque, //
};

/// How a tag set is made.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Hardware queues of the default kind: at least 1, at most one for each possible CPU.
    pub queues: u32,
    /// Hardware queues for reads; 0 if reads go to those of the default kind.
    pub read_queues: u32,
    /// Hardware queues for polled requests, which need [`Operations::poll`].
    pub poll_queues: u32,
    /// Tags: at least 1, at most 10240.
    pub depth: u32,
    /// All queues share the tags, instead of having that many each.
    pub shared: bool,
    /// No I/O scheduler is set by default.
    pub no_scheduler: bool,
    /// Entries of a scatter list for which every request has room; longer ones are allocated in pieces of 128.
    pub inline_sg: u16,
    /// Milliseconds after which [`Operations::timeout`] looks at a request; 0 for the block layer's default, 30 s.
    pub timeout_ms: Msecs,
}

/// How many queues a driver should have if it can have `most` (0: any number): one for each CPU that is online.
pub fn online_queues(most: u32) -> u32 {
    // SAFETY: Reads the mask of CPUs only.
    unsafe { bindings::blk_mq_num_online_queues(most) }
}

/// The numbers of hardware queues.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    default: u32,
    read: u32,
    poll: u32,
}

impl Shape {
    fn new<T: Operations>(params: &Params) -> Result<Self> {
        // SAFETY: Reads the mask of CPUs only.
        let cpus = unsafe { bindings::blk_mq_num_possible_queues(0) };
        let fits = (1..=cpus).contains(&params.queues)
            && params.read_queues <= cpus
            && params.poll_queues <= cpus
            && (T::HAS_POLL || params.poll_queues == 0);
        fits.then_some(Self {
            default: params.queues,
            read: params.read_queues,
            poll: params.poll_queues,
        })
        .ok_or(EINVAL)
    }

    /// How many maps from CPUs to queues are needed.
    fn maps(&self) -> u32 {
        match (self.read, self.poll) {
            (0, 0) => 1,
            (_, 0) => 2,
            _ => 3,
        }
    }

    fn total(&self) -> u32 {
        self.default + self.read + self.poll
    }

    /// Number and first of the queues of each map.
    fn ranges(&self) -> [(u32, u32); 3] {
        let read = if self.read == 0 {
            (self.default, 0)
        } else {
            (self.read, self.default)
        };
        [
            (self.default, 0),
            read,
            (self.poll, self.default + self.read),
        ]
    }
}

/// Tags, the requests that go with them, and what the disks that use them share. Dropping the last reference sleeps.
///
/// # Invariants
///
/// `set` is an allocated tag set whose driver data points to this object; `data` and `shape` are initialised before it
/// and outlive it.
#[pin_data(PinnedDrop)]
pub struct TagSet<T: Operations> {
    data: T::TagSetData,
    shape: Shape,
    #[pin]
    set: Opaque<bindings::blk_mq_tag_set>,
}

// SAFETY: A tag set may be used from any thread; the data is `Send` and `Sync`, as is the data of requests.
unsafe impl<T: Operations> Send for TagSet<T> {}
// SAFETY: As above.
unsafe impl<T: Operations> Sync for TagSet<T> {}

impl<T: Operations> TagSet<T> {
    /// Makes a tag set. Sleeps.
    ///
    /// `EINVAL` if the parameters are out of range or there are poll queues and no [`Operations::poll`]; `ENOMEM`, or
    /// an error of [`Operations::new_request`], as which `ENOMEM` is given.
    pub fn new(params: &Params, data: T::TagSetData) -> Result<Arc<Self>> {
        let () = Pdu::<T::RequestData>::FITS;
        let shape = Shape::new::<T>(params)?;
        if !(1..=bindings::BLK_MQ_MAX_DEPTH).contains(&params.depth) {
            return Err(EINVAL);
        }
        let set = Self::describe(params, shape)?;
        Arc::pin_init(
            // INVARIANT: The fields are initialised in this order; `free` undoes the allocation before they are gone.
            try_pin_init!(&this in Self {
                data,
                shape,
                set <- Opaque::try_ffi_init(|slot: *mut bindings::blk_mq_tag_set| {
                    // SAFETY: `slot` is valid for writes.
                    unsafe { slot.write(set) };
                    // SAFETY: As above; the object stays where it is.
                    unsafe { (*slot).driver_data = this.as_ptr().cast() };
                    // SAFETY: The set is described, and what its callbacks use is initialised.
                    kernel::error::to_result(unsafe { bindings::blk_mq_alloc_tag_set(slot) })
                }),
            }),
            GFP_KERNEL,
        )
    }

    fn describe(params: &Params, shape: Shape) -> Result<bindings::blk_mq_tag_set> {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        Ok(bindings::blk_mq_tag_set {
            ops: Table::<T>::ops(),
            nr_maps: shape.maps(),
            nr_hw_queues: shape.total(),
            queue_depth: params.depth,
            cmd_size: Pdu::<T::RequestData>::size(params.inline_sg)?,
            numa_node: bindings::NUMA_NO_NODE,
            timeout: u32::try_from(msecs_to_jiffies(params.timeout_ms))?,
            flags: bit(params.shared, bindings::BLK_MQ_F_TAG_HCTX_SHARED)
                | bit(params.no_scheduler, bindings::BLK_MQ_F_NO_SCHED_BY_DEFAULT),
            ..pin_init::zeroed()
        })
    }

    /// What the disks share.
    #[inline]
    pub fn data(&self) -> &T::TagSetData {
        &self.data
    }

    /// Tags there are, which are fewer than asked for if the kernel is short of memory from the start (kdump).
    pub fn depth(&self) -> u32 {
        // SAFETY: By the type invariants; set before the object was complete.
        unsafe { (*self.set.get()).queue_depth }
    }

    /// Hardware queues of each disk.
    pub fn hw_queues(&self) -> u32 {
        // SAFETY: By the type invariants; set before the object was complete.
        unsafe { (*self.set.get()).nr_hw_queues }
    }

    /// The C object.
    #[inline]
    pub(in crate::block) fn as_raw(&self) -> *mut bindings::blk_mq_tag_set {
        self.set.get()
    }

    /// The object around a set that is being made or in use.
    ///
    /// # Safety
    ///
    /// `set` must be that of a `TagSet<T>`.
    #[inline]
    pub(super) unsafe fn of(set: *mut bindings::blk_mq_tag_set) -> *const Self {
        // SAFETY: By the safety requirements the driver data points to the object.
        unsafe { (*set).driver_data.cast_const().cast() }
    }

    /// The data of a set that is being made or in use.
    ///
    /// # Safety
    ///
    /// As for [`Self::of`].
    #[inline]
    pub(super) unsafe fn data_of<'a>(set: *mut bindings::blk_mq_tag_set) -> &'a T::TagSetData {
        // SAFETY: The field is initialised before the set.
        unsafe { &(*Self::of(set)).data }
    }

    /// Distributes the CPUs over the queues.
    ///
    /// # Safety
    ///
    /// As for [`Self::of`], while the set is being made.
    pub(super) unsafe fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: The field is initialised before the set.
        let shape = unsafe { (*Self::of(set)).shape };
        // SAFETY: The set is valid, and nobody else uses it now.
        let map = unsafe { addr_of_mut!((*set).map) }.cast::<bindings::blk_mq_queue_map>();
        // CAST: At most three.
        let maps = shape.maps() as usize;
        for (index, (number, first)) in shape.ranges().into_iter().enumerate().take(maps) {
            // SAFETY: There are three maps, of which the first `maps` are allocated.
            unsafe {
                let map = map.add(index);
                (*map).nr_queues = number;
                (*map).queue_offset = first;
                bindings::blk_mq_map_queues(map);
            }
        }
    }
}

/// How often the drop of a tag set looks whether it is still used, in milliseconds.
const POLL_MS: i64 = 20;

#[pinned_drop]
impl<T: Operations> PinnedDrop for TagSet<T> {
    fn drop(self: Pin<&mut Self>) {
        // Disks hold a reference until they are removed. But one that could not be shown leaves the set when its last
        // reference is gone, which with `DEBUG_KOBJECT_RELEASE` is a few seconds later.
        // SAFETY: By the type invariants the set is allocated.
        while unsafe { bindings::weft_helper_tag_set_is_used(self.set.get()) } {
            fsleep(Delta::from_millis(POLL_MS));
        }
        // SAFETY: As above, and no disk uses it.
        unsafe { bindings::blk_mq_free_tag_set(self.set.get()) };
    }
}
