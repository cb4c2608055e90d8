// SPDX-License-Identifier: GPL-2.0

//! What the administrator set with module parameters.

use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use weft::fmt::Plain;
use weft_proto::rtrs::geometry::Geometry;

/// Sizes and habits of this server; the same for all sessions.
#[derive(Clone, Copy)]
pub(crate) struct Config {
    /// The chunks of a session.
    pub(crate) geometry: Geometry,
    /// Whether a client loses its key to a chunk while a request in it is executed.
    pub(crate) always_invalidate: bool,
}

impl Config {
    /// Checks module parameters; `EINVAL` with a line in the log if they make no sense.
    pub(crate) fn new(chunk_size: i32, queue_depth: i32, always_invalidate: bool) -> Result<Self> {
        let page = u32::try_from(PAGE_SIZE)?;
        match Geometry::from_settings(chunk_size, queue_depth, page) {
            Ok(geometry) => Ok(Self {
                geometry,
                always_invalidate,
            }),
            Err(error) => {
                pr_err!("{}\n", Plain(error));
                Err(EINVAL)
            }
        }
    }

    /// Bytes of all chunks of one set.
    pub(crate) fn pool_size(&self) -> u64 {
        u64::from(self.geometry.chunk_size()).saturating_mul(u64::from(self.geometry.queue_depth()))
    }
}
