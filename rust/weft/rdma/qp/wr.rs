// SPDX-License-Identifier: GPL-2.0

//! Work requests as C has them.

use crate::bindings;
use core::mem::ManuallyDrop;
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
    bindings::ib_send_wr {
        opcode,
        num_sge,
        ex: bindings::ib_send_wr__bindgen_ty_2 {
            bindgen_union_field: ex,
            ..Default::default()
        },
        ..Default::default()
    }
}
