// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions of RDMA verbs and the connection manager

#[allow(dead_code)]
mod bindings;

use kernel::prelude::*;

module! {
    type: WeftRdma,
    name: "weft_rdma",
    authors: ["The Weft developers"],
    description: "Safe abstractions of RDMA verbs and the connection manager",
    license: "GPL",
}

/// The module.
struct WeftRdma;

impl kernel::Module for WeftRdma {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
