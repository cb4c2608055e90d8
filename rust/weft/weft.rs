// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions that the kernel crate does not have yet.
//!
//! This crate plays the part of `rust/kernel` for the modules of this tree: the only place that names C bindings and
//! uses `unsafe`. One concept per file, named as in C; every method is driven by a caller in this tree.

#[allow(dead_code)]
mod bindings;

pub mod block;
pub mod fmt;
pub mod global;
pub mod list;
pub mod mm;
pub mod module;
pub mod net;
pub mod params;
pub mod percpu;
pub mod ratelimit;
pub mod sync;
pub mod sysfs;
pub mod time;
pub mod trace;
pub mod workqueue;

use kernel::prelude::*;

module! {
    type: Weft,
    name: "weft",
    authors: ["The Weft developers"],
    description: "Rust abstractions for network and RDMA protocols",
    license: "GPL",
}

/// The library module: it holds no state, loading it makes its symbols available.
struct Weft;

impl kernel::Module for Weft {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}

impl Drop for Weft {
    fn drop(&mut self) {
        sysfs::life::wait();
    }
}
