// SPDX-License-Identifier: GPL-2.0

//! Memory of chunks.
//!
//! C counterpart: `rtrs_srv_sess::chunks`. All of it is zeroed, so that a reply which is longer than what was written
//! for it, or a write that was never preceded by data, shows nothing of others.

use crate::{
    budget::{
        Budget,
        Reserved, //
    },
    config::Config, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft_rdma::pages::Pages;

/// Memory of as many chunks as a session has.
///
/// An operation that outlives its path keeps the chunk it uses, not the whole.
pub(crate) struct Pool {
    chunks: KVVec<Arc<Pages>>,
    /// Given back with the chunks.
    _reserved: Reserved,
}

impl Pool {
    /// Allocates it all, or `ENOMEM`. Sleeps, but reclaims no memory by force: a client that does not get its chunks is
    /// turned away and comes again.
    pub(crate) fn new(config: &Config, budget: &Arc<Budget>) -> Result<Arc<Self>> {
        let reserved = budget.take(config.pool_size())?;
        let mut chunks =
            KVVec::with_capacity(usize::from(config.geometry.queue_depth()), GFP_KERNEL)?;
        for _ in config.geometry.chunks() {
            let pages = Pages::new(usize::try_from(config.geometry.chunk_size())?)?;
            chunks.push(pages, GFP_KERNEL)?;
        }
        Ok(Arc::new(
            Self {
                chunks,
                _reserved: reserved,
            },
            GFP_KERNEL,
        )?)
    }

    /// The memory of each chunk.
    pub(crate) fn chunks(&self) -> &[Arc<Pages>] {
        &self.chunks
    }
}
