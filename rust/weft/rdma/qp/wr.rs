// SPDX-License-Identifier: GPL-2.0

//! Work requests as C has them.

use crate::bindings;
use core::{
    mem::ManuallyDrop,
    ptr, //
};
use kernel::ffi;

/// Room for any kind of work request. All begin with an `ib_send_wr`.
#[repr(C)]
pub(super) union Wr {
    send: ManuallyDrop<bindings::ib_send_wr>,
    rdma: ManuallyDrop<bindings::ib_rdma_wr>,
    reg: ManuallyDrop<bindings::ib_reg_wr>,
}

/// A work request without links.
#[inline]
pub(super) fn send_wr(
    opcode: bindings::ib_wr_opcode,
    ex: u32,
    num_sge: ffi::c_int,
) -> bindings::ib_send_wr {
    // Field by field: the defaults of bindgen are calls that clear memory.
    bindings::ib_send_wr {
        next: ptr::null_mut(),
        __bindgen_anon_1: bindings::ib_send_wr__bindgen_ty_1 {
            wr_id: bindings::__BindgenUnionField::new(),
            wr_cqe: bindings::__BindgenUnionField::new(),
            bindgen_union_field: 0,
        },
        sg_list: ptr::null_mut(),
        num_sge,
        opcode,
        send_flags: 0,
        ex: bindings::ib_send_wr__bindgen_ty_2 {
            imm_data: bindings::__BindgenUnionField::new(),
            invalidate_rkey: bindings::__BindgenUnionField::new(),
            bindgen_union_field: ex,
        },
    }
}
