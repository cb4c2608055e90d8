// SPDX-License-Identifier: GPL-2.0

//! RTRS client

#![forbid(unsafe_code)]

use kernel::prelude::*;

module! {
    type: RtrsClient,
    name: "rtrs_client",
    authors: ["The Weft developers"],
    description: "RTRS client",
    license: "GPL",
}

/// The module.
struct RtrsClient;

impl kernel::Module for RtrsClient {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
