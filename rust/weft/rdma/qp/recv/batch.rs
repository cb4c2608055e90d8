// SPDX-License-Identifier: GPL-2.0

//! Receives on their way to C.

use crate::bindings;
use core::{
    mem::MaybeUninit,
    ptr, //
};
use kernel::ffi;

/// Receives posted with one call of C.
pub(super) const BATCH: usize = 16;

/// Receives that are about to be posted.
///
/// # Invariants
///
/// The first `count` of `wrs` and of `sges` are initialised.
pub(super) struct Batch {
    pub(super) count: usize,
    wrs: [MaybeUninit<bindings::ib_recv_wr>; BATCH],
    sges: [MaybeUninit<bindings::ib_sge>; BATCH],
}

impl Batch {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            count: 0,
            wrs: [const { MaybeUninit::uninit() }; BATCH],
            sges: [const { MaybeUninit::uninit() }; BATCH],
        }
    }

    /// Adds a receive, with a buffer unless `sge` is empty. What does not fit is left out.
    #[inline]
    pub(super) fn add(&mut self, cqe: *mut bindings::ib_cqe, sge: bindings::ib_sge) {
        let (Some(wr), Some(list)) = (self.wrs.get_mut(self.count), self.sges.get_mut(self.count))
        else {
            return;
        };
        let num_sge = ffi::c_int::from(sge.length != 0);
        list.write(sge);
        wr.write(bindings::ib_recv_wr {
            next: ptr::null_mut(),
            __bindgen_anon_1: bindings::ib_recv_wr__bindgen_ty_1 {
                wr_id: bindings::__BindgenUnionField::new(),
                wr_cqe: bindings::__BindgenUnionField::new(),
                // CAST: An address, in the 64 bits that C has for it.
                bindgen_union_field: cqe.addr() as u64,
            },
            sg_list: ptr::null_mut(),
            num_sge,
        });
        // INVARIANT: One more.
        self.count += 1;
    }

    /// Links the receives; the first of them. Good as long as the batch is not moved.
    #[inline]
    pub(super) fn link(&mut self) -> *const bindings::ib_recv_wr {
        let sges = self.sges.as_mut_ptr().cast::<bindings::ib_sge>();
        let wrs = self.wrs.as_mut_ptr().cast::<bindings::ib_recv_wr>();
        let mut next = ptr::null_mut();
        for index in (0..self.count).rev() {
            let at = wrs.wrapping_add(index);
            // SAFETY: By the type invariants it is initialised.
            let wr = unsafe { &mut *at };
            wr.next = next;
            wr.sg_list = sges.wrapping_add(index);
            next = at;
        }
        next
    }

    /// How many come before `bad`.
    #[cold]
    pub(super) fn before(&self, bad: *const bindings::ib_recv_wr) -> usize {
        let wrs = self.wrs.as_ptr();
        (0..self.count)
            .find(|index| ptr::eq(wrs.wrapping_add(*index).cast(), bad))
            .unwrap_or(0)
    }
}
