// SPDX-License-Identifier: GPL-2.0

//! What hangs on a `struct gendisk` of this library.

use crate::{
    bindings,
    block::{
        gate::Gate,
        major::MajorHandle,
        mq::Operations, //
    },
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Completion, //
    }, //
};

/// The part of the private data that is the library's.
#[pin_data]
pub(super) struct Base {
    /// Frees all of the private data.
    release: unsafe fn(NonNull<Base>),
    /// One disk of it is counted for this one.
    major: MajorHandle,
    /// Those who change the disk; closed before it is removed.
    #[pin]
    pub(super) changes: Gate,
    /// Those who schedule its queues; closed after it was removed.
    #[pin]
    pub(super) kicks: Gate,
    /// Set by who removes the disk, which is done once `removed` is complete.
    pub(super) removing: Atomic<bool>,
    #[pin]
    pub(super) removed: Completion,
}

/// The private data of a disk of driver `T`, with the library's part at its start.
#[pin_data]
#[repr(C)]
struct Private<T: Operations> {
    #[pin]
    base: Base,
    data: T::QueueData,
}

/// Makes the private data of a disk of driver `T`, to be given to [`free`].
pub(super) fn new<T: Operations>(major: &MajorHandle, data: T::QueueData) -> Result<NonNull<Base>> {
    major.enter()?;
    let private = KBox::pin_init(
        pin_init!(Private::<T> {
            base <- pin_init!(Base {
                release: release::<T>,
                major: major.clone(),
                changes <- Gate::new(),
                kicks <- Gate::new(),
                removing: Atomic::new(false),
                removed <- Completion::new(),
            }),
            data,
        }),
        GFP_KERNEL,
    );
    match private {
        Ok(private) => {
            // SAFETY: The object is not moved out of its place.
            let private = KBox::into_raw(unsafe { Pin::into_inner_unchecked(private) });
            // SAFETY: A box is not null.
            Ok(unsafe { NonNull::new_unchecked(private.cast()) })
        }
        Err(error) => {
            major.leave();
            Err(error)
        }
    }
}

/// # Safety
///
/// `base` must be made by [`new`] for the same driver, and is gone afterwards.
unsafe fn release<T: Operations>(base: NonNull<Base>) {
    // SAFETY: The box was made by `new` for the same driver; it has not been moved since.
    drop(unsafe { Pin::new_unchecked(KBox::from_raw(base.as_ptr().cast::<Private<T>>())) });
}

/// Frees private data. May sleep.
///
/// Not inlined into other modules: after the driver's data is gone, the driver's module may go as well.
///
/// # Safety
///
/// `base` must be made by [`new`], and nobody uses it any more.
#[inline(never)]
pub(super) unsafe fn free(base: NonNull<Base>) {
    // SAFETY: By the safety requirements.
    let (release, major) = unsafe { ((*base.as_ptr()).release, (*base.as_ptr()).major.clone()) };
    // SAFETY: As above.
    unsafe { release(base) };
    major.leave();
}

/// The driver's data.
///
/// # Safety
///
/// `base` must be made by [`new`] for driver `T`, and stay for `'a`.
#[inline]
pub(super) unsafe fn data<'a, T: Operations>(base: NonNull<Base>) -> &'a T::QueueData {
    // SAFETY: By the safety requirements; the data is only ever shared.
    unsafe { &(*base.as_ptr().cast::<Private<T>>()).data }
}

/// The driver's data of the disk whose queue this is.
///
/// # Safety
///
/// `queue` must be that of a disk of driver `T`, in use for `'a`.
#[inline]
pub(in crate::block) unsafe fn queue_data<'a, T: Operations>(
    queue: *mut bindings::request_queue,
) -> &'a T::QueueData {
    // SAFETY: The queue data of disks of this library is their private data, which stays longer than the queue is in
    // use.
    unsafe { data::<T>(NonNull::new_unchecked((*queue).queuedata.cast())) }
}

/// The library's part of the private data of the disk whose queue this is.
///
/// # Safety
///
/// `queue` must be that of a disk of this library, in use.
#[inline]
pub(super) unsafe fn base_of(queue: *mut bindings::request_queue) -> NonNull<Base> {
    // SAFETY: As in `queue_data`.
    unsafe { NonNull::new_unchecked((*queue).queuedata.cast()) }
}
