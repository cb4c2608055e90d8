// SPDX-License-Identifier: GPL-2.0

//! The C side of [`Operations`]: one trampoline for each callback of `struct blk_mq_ops`.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    pdu::{
        self,
        Head,
        Pdu, //
    },
    Busy,
    Hw,
    Operations,
    Request,
    RequestRef,
    TagSet,
    Timeout, //
};
use crate::{
    bindings,
    block::{
        disk,
        Op, //
    },
    mm::noio, //
};
use core::{
    any::TypeId,
    marker::PhantomData,
    mem::size_of,
    ptr::{
        self,
        addr_of_mut,
        NonNull, //
    }, //
};
use kernel::{
    ffi,
    prelude::*, //
};

/// The `struct blk_mq_ops` of the driver `T`.
pub(super) struct Table<T: Operations>(PhantomData<T>);

/// What a callback returns for success.
fn done(result: Result) -> ffi::c_int {
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

impl<T: Operations> Table<T> {
    const OPS: bindings::blk_mq_ops = bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq_callback),
        commit_rqs: if T::HAS_COMMIT_RQS {
            Some(Self::commit_rqs_callback)
        } else {
            None
        },
        timeout: if T::HAS_TIMEOUT {
            Some(bindings::weft_helper_blk_timeout)
        } else {
            None
        },
        poll: if T::HAS_POLL {
            Some(Self::poll_callback)
        } else {
            None
        },
        complete: Some(Request::complete_callback),
        init_hctx: Some(Self::init_hctx_callback),
        exit_hctx: Some(Self::exit_hctx_callback),
        init_request: Some(Self::init_request_callback),
        exit_request: Some(Self::exit_request_callback),
        map_queues: Some(Self::map_queues_callback),
        ..pin_init::zeroed()
    };

    pub(super) const fn ops() -> &'static bindings::blk_mq_ops {
        &Self::OPS
    }

    /// # Safety
    ///
    /// To be called by the block layer, with an initialised hardware queue of a disk of `T` that is alive.
    #[inline]
    unsafe fn parts<'a>(hctx: *mut bindings::blk_mq_hw_ctx) -> (Hw<'a, T>, &'a T::QueueData) {
        // SAFETY: By the safety requirements both stay for the call, for which the result is used.
        unsafe {
            let queue = disk::queue_data::<T>((*hctx).queue);
            (Hw::from_raw(NonNull::new_unchecked(hctx)), queue)
        }
    }

    /// # Safety
    ///
    /// To be called by the block layer as `queue_rq`.
    unsafe extern "C" fn queue_rq_callback(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: The block layer gives a valid description with a request.
        let (rq, last) = unsafe { (NonNull::new_unchecked((*bd).rq), (*bd).last) };
        // SAFETY: The request is given out to us.
        let Some(op) = Op::from_raw(unsafe { (*rq.as_ptr()).cmd_flags }) else {
            return bindings::WEFT_BLK_STS_NOTSUPP;
        };
        // SAFETY: As above; this is its operation.
        let request = unsafe { Request::start(rq, op) };
        let serial = request.serial();
        // SAFETY: The hardware queue is alive during the call.
        let (hw, queue) = unsafe { Self::parts(hctx) };
        match T::queue_rq(hw, queue, request, last) {
            Ok(()) => 0,
            Err(Busy(request)) if request.is(rq, serial) => {
                request.refuse();
                bindings::WEFT_BLK_STS_RESOURCE
            }
            // Not the one that was given out: that one has been dealt with.
            Err(Busy(other)) => {
                other.requeue();
                0
            }
        }
    }

    /// # Safety
    ///
    /// To be called by the block layer as `commit_rqs`.
    unsafe extern "C" fn commit_rqs_callback(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: The hardware queue is alive during the call.
        let (hw, queue) = unsafe { Self::parts(hctx) };
        T::commit_rqs(hw, queue);
    }

    /// # Safety
    ///
    /// To be called by the block layer as `poll`.
    unsafe extern "C" fn poll_callback(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _batch: *mut bindings::io_comp_batch,
    ) -> ffi::c_int {
        // SAFETY: The hardware queue is alive during the call.
        let (hw, queue) = unsafe { Self::parts(hctx) };
        T::poll(hw, queue)
    }

    /// Called from C for `timeout`: 1 if the request gets more time.
    ///
    /// # Safety
    ///
    /// `rq` must be a started request of `T` to which the caller holds a reference.
    unsafe extern "C" fn timeout_callback(rq: *mut bindings::request) -> ffi::c_uint {
        if !T::HAS_TIMEOUT {
            return 1;
        }
        // SAFETY: The reference keeps the request from being used for anything else during the call.
        let request = unsafe { RequestRef::from_raw(NonNull::new_unchecked(rq)) };
        match T::timeout(request) {
            Timeout::Again => 1,
            Timeout::Seen => 0,
        }
    }

    /// # Safety
    ///
    /// To be called by the block layer as `init_hctx`.
    unsafe extern "C" fn init_hctx_callback(
        hctx: *mut bindings::blk_mq_hw_ctx,
        driver_data: *mut ffi::c_void,
        index: ffi::c_uint,
    ) -> ffi::c_int {
        // SAFETY: The driver data of the set of a disk is a tag set, which the disk holds.
        let tags = unsafe { &*driver_data.cast_const().cast::<TagSet<T>>() };
        done(noio::scope(|| {
            let data = KBox::new(T::new_hw(tags.data(), index)?, GFP_KERNEL)?;
            // SAFETY: The queue is being made.
            unsafe { (*hctx).driver_data = KBox::into_raw(data).cast() };
            Ok(())
        }))
    }

    /// # Safety
    ///
    /// To be called by the block layer as `exit_hctx`.
    unsafe extern "C" fn exit_hctx_callback(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _index: ffi::c_uint,
    ) {
        // SAFETY: Made by `init_hctx_callback`; the queue is not used any more.
        drop(unsafe { KBox::from_raw((*hctx).driver_data.cast::<T::HwData>()) });
    }

    /// # Safety
    ///
    /// To be called by the block layer as `init_request`.
    unsafe extern "C" fn init_request_callback(
        set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _index: ffi::c_uint,
        _node: ffi::c_int,
    ) -> ffi::c_int {
        // SAFETY: The set is that of a `TagSet<T>`.
        let (data, size) = unsafe { (TagSet::<T>::data_of(set), (*set).cmd_size as usize) };
        // SAFETY: The private data of the request is not initialised yet and has room for this.
        let pdu = unsafe { pdu::pdu::<T::RequestData>(rq) };
        let room = size.saturating_sub(size_of::<Pdu<T::RequestData>>())
            / size_of::<bindings::scatterlist>();
        let head = Head {
            timeout: Self::timeout_callback,
            data: TypeId::of::<T::RequestData>(),
            status: 0,
            inline_offset: size_of::<Pdu<T::RequestData>>() as u16,
            inline_sg: room as u16,
            nents: 0,
            serial: 0,
            table: pin_init::zeroed(),
        };
        // SAFETY: As above.
        unsafe { addr_of_mut!((*pdu).head).write(head) };
        done(noio::scope(|| {
            // SAFETY: As above; the data stays where it is until `exit_request_callback` drops it.
            unsafe { pin_init::raw_try_init(addr_of_mut!((*pdu).data), T::new_request(data)) }
        }))
    }

    /// # Safety
    ///
    /// To be called by the block layer as `exit_request`.
    unsafe extern "C" fn exit_request_callback(
        _set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _index: ffi::c_uint,
    ) {
        // SAFETY: Initialised by `init_request_callback`; the request is not used any more.
        unsafe { ptr::drop_in_place(addr_of_mut!((*pdu::pdu::<T::RequestData>(rq)).data)) };
    }

    /// # Safety
    ///
    /// To be called by the block layer as `map_queues`.
    unsafe extern "C" fn map_queues_callback(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: The set is that of a `TagSet<T>`, and is being made.
        unsafe { TagSet::<T>::map_queues(set) };
    }
}
