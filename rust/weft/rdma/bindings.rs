// SPDX-License-Identifier: GPL-2.0

//! Raw bindings of what the kernel crate's bindings lack.
//!
//! Generated from `rust/bindings/rdma_helper.h` and the helpers in `rust/helpers/rdma.c`. Only names listed in
//! `rust/bindings/rdma_parameters` are generated; every other type resolves to `kernel::bindings`, so that a
//! `struct sock` here and there is the same Rust type.

#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    improper_ctypes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    dead_code,
    unused_imports
)]

use kernel::ffi;
use pin_init::{
    MaybeZeroable,
    Zeroable, //
};

pub(crate) use kernel::bindings::*;

type __kernel_size_t = usize;
type __kernel_ssize_t = isize;
type __kernel_ptrdiff_t = isize;

include!(concat!(
    env!("WEFT_OBJ"),
    "/rust/bindings/rdma_generated.rs"
));
include!(concat!(
    env!("WEFT_OBJ"),
    "/rust/bindings/rdma_helpers_generated.rs"
));
