// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions of RDMA verbs and the connection manager.
//!
//! What lends memory to hardware is the heart of it; read [`qp`] first, then [`loan`] and [`mr`].

#[allow(dead_code)]
mod bindings;

pub mod addr;
pub mod cm;
pub mod cq;
pub mod device;
pub mod dma;
pub mod loan;
pub mod mr;
pub mod pages;
pub mod pd;
pub mod qp;
pub mod sg;
pub mod watch;

use kernel::prelude::*;

module! {
    type: WeftRdma,
    name: "weft_rdma",
    authors: ["The Weft developers"],
    description: "Safe abstractions of RDMA verbs and the connection manager",
    license: "GPL",
}

/// The module: the library's registration with the RDMA core.
struct WeftRdma {
    _client: device::Client,
}

impl kernel::Module for WeftRdma {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // SAFETY: The module is initialised once, and this comes first.
        unsafe { watch::init() };
        Ok(Self {
            _client: device::Client::register()?,
        })
    }
}
