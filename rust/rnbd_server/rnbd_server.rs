// SPDX-License-Identifier: GPL-2.0

//! RDMA network block device server

#![forbid(unsafe_code)]

use kernel::prelude::*;

module! {
    type: RnbdServer,
    name: "rnbd_server",
    authors: ["The Weft developers"],
    description: "RDMA network block device server",
    license: "GPL",
}

/// The module.
struct RnbdServer;

impl kernel::Module for RnbdServer {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
