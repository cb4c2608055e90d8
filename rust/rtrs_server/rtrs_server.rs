// SPDX-License-Identifier: GPL-2.0

//! RTRS server

#![forbid(unsafe_code)]

use kernel::prelude::*;

module! {
    type: RtrsServer,
    name: "rtrs_server",
    authors: ["The Weft developers"],
    description: "RTRS server",
    license: "GPL",
}

/// The module.
struct RtrsServer;

impl kernel::Module for RtrsServer {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
