// SPDX-License-Identifier: GPL-2.0

//! What lies behind a `struct request`: the library's part, the driver's data, and room for a scatter list.

use crate::bindings;
use core::{
    any::TypeId,
    mem::size_of,
    ptr::{
        addr_of_mut,
        NonNull, //
    }, //
};
use kernel::{
    ffi,
    prelude::*, //
};

/// The library's part, at the start of the private data of every request.
///
/// `timeout` comes first: the C side knows it there (`struct weft_request_head`). All other fields but `data` belong
/// to the owner of the request, or to the library while the block layer owns it; they are accessed through raw
/// pointers.
#[repr(C)]
pub(super) struct Head {
    pub(super) timeout: unsafe extern "C" fn(*mut bindings::request) -> ffi::c_uint,
    /// The type of the driver's data.
    pub(super) data: TypeId,
    /// What the request is completed with.
    pub(super) status: bindings::blk_status_t,
    /// Where the room for the scatter list is, in bytes from the start of the private data, and its entries.
    pub(super) inline_offset: u16,
    pub(super) inline_sg: u16,
    /// Entries in use of `table`, if it is allocated.
    pub(super) nents: u32,
    /// Goes up each time the request is given out.
    pub(super) serial: u32,
    pub(super) table: bindings::sg_table,
}

/// The private data of a request of a driver with request data `D`.
#[repr(C)]
pub(super) struct Pdu<D> {
    pub(super) head: Head,
    pub(super) data: D,
}

/// The most private data: the block layer allocates requests in blocks of pages.
const MAX_SIZE: usize = 8192;

impl<D> Pdu<D> {
    /// Fails to compile for data that cannot lie behind a `struct request`.
    pub(super) const FITS: () = assert!(
        align_of::<Self>() <= align_of::<bindings::request>()
            && align_of::<bindings::scatterlist>() <= align_of::<Self>()
            && size_of::<Self>() <= MAX_SIZE
    );

    /// Size of the private data with room for `inline_sg` entries; `EINVAL` if it is too much.
    pub(super) fn size(inline_sg: u16) -> Result<u32> {
        let size = size_of::<Self>() + usize::from(inline_sg) * size_of::<bindings::scatterlist>();
        if size > MAX_SIZE {
            return Err(EINVAL);
        }
        Ok(u32::try_from(size)?)
    }
}

/// The private data of a request.
///
/// # Safety
///
/// `rq` must be a request of a tag set of this library, whose data is for type `D`.
#[inline]
pub(super) unsafe fn pdu<D>(rq: *mut bindings::request) -> *mut Pdu<D> {
    // SAFETY: It lies directly behind the request.
    unsafe { rq.add(1).cast() }
}

/// The library's part of the private data of a request.
///
/// # Safety
///
/// `rq` must be a request of a tag set of this library.
#[inline]
pub(super) unsafe fn head(rq: *mut bindings::request) -> *mut Head {
    // SAFETY: It lies directly behind the request.
    unsafe { rq.add(1).cast() }
}

/// The room for a scatter list in the private data.
///
/// # Safety
///
/// As for [`head`], and the private data must be initialised.
#[inline]
unsafe fn inline_list(rq: *mut bindings::request) -> *mut bindings::scatterlist {
    // SAFETY: By the safety requirements.
    let head = unsafe { head(rq) };
    // SAFETY: The offset is that of room in the same allocation.
    unsafe { head.byte_add(usize::from((*head).inline_offset)).cast() }
}

/// Lists the memory of a request, which may be done once until [`unmap`]. `ENOMEM`, to be tried again.
///
/// # Safety
///
/// `rq` must be in flight with initialised private data, have data, and be the caller's alone.
pub(super) unsafe fn map(rq: *mut bindings::request) -> Result<u32> {
    // SAFETY: The request is the caller's alone, and so is all of its head but `data`.
    let (head, inline) = unsafe { (head(rq), inline_list(rq)) };
    // SAFETY: The request is valid.
    let segments = unsafe { bindings::weft_helper_blk_rq_nr_phys_segments(rq) };
    if segments == 0 {
        return Err(EINVAL);
    }
    // SAFETY: As above.
    let (table, room) = unsafe { (addr_of_mut!((*head).table), (*head).inline_sg) };
    // SAFETY: As above. C takes the first chunk from here if it is enough.
    unsafe { (*table).sgl = inline };
    // SAFETY: `inline` has `room` entries.
    let result = unsafe {
        bindings::sg_alloc_table_chained(table, i32::from(segments), inline, u32::from(room))
    };
    kernel::error::to_result(result)?;
    // SAFETY: The list has an entry for each segment of the request, whose memory stays while it is in flight.
    let nents = unsafe { bindings::weft_helper_blk_rq_map_sg(rq, (*table).sgl) };
    let nents = u32::try_from(nents).unwrap_or(0);
    // SAFETY: As above.
    unsafe { (*head).nents = nents };
    if nents == 0 {
        // SAFETY: The table was allocated above with this room.
        unsafe { bindings::sg_free_table_chained(table, u32::from(room)) };
        return Err(EINVAL);
    }
    Ok(nents)
}

/// Frees the list of [`map`], if there is one. Any context.
///
/// # Safety
///
/// `rq` must be the caller's alone, with initialised private data; nobody uses the list any more.
pub(super) unsafe fn unmap(rq: *mut bindings::request) {
    // SAFETY: The request is the caller's alone, and so is all of its head but `data`.
    unsafe {
        let head = head(rq);
        if (*head).nents != 0 {
            (*head).nents = 0;
            let room = u32::from((*head).inline_sg);
            bindings::sg_free_table_chained(addr_of_mut!((*head).table), room);
        }
    }
}

/// The list of [`map`], if there is one.
///
/// # Safety
///
/// As for [`unmap`], but that the list may be in use.
pub(super) unsafe fn list(
    rq: *mut bindings::request,
) -> Option<(NonNull<bindings::scatterlist>, u32)> {
    // SAFETY: By the safety requirements.
    let (nents, sgl) = unsafe {
        let head = head(rq);
        ((*head).nents, (*head).table.sgl)
    };
    match NonNull::new(sgl) {
        Some(sgl) if nents != 0 => Some((sgl, nents)),
        _ => None,
    }
}
