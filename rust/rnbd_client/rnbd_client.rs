// SPDX-License-Identifier: GPL-2.0

//! RDMA network block device client

#![forbid(unsafe_code)]

use kernel::prelude::*;

module! {
    type: RnbdClient,
    name: "rnbd_client",
    authors: ["The Weft developers"],
    description: "RDMA network block device client",
    license: "GPL",
}

/// The module.
struct RnbdClient;

impl kernel::Module for RnbdClient {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
