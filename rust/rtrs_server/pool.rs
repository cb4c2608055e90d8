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

/// Memory of a chunk.
pub(crate) struct Memory {
    pub(crate) pages: Arc<Pages>,
    /// Given back with the memory.
    _reserved: Reserved,
}

/// Memory of as many chunks as a session has.
///
/// An operation that outlives its path keeps the chunk it uses, not the whole.
pub(crate) struct Pool {
    chunks: KVVec<Arc<Memory>>,
}

impl Pool {
    /// Allocates it all, or `ENOMEM`. Sleeps, but reclaims no memory by force: a client that does not get its chunks is
    /// turned away and comes again.
    pub(crate) fn new(config: &Config, budget: &Arc<Budget>) -> Result<Arc<Self>> {
        let mut reserved = budget.take(config.pool_size())?;
        let size = config.geometry.chunk_size();
        let mut chunks =
            KVVec::with_capacity(usize::from(config.geometry.queue_depth()), GFP_KERNEL)?;
        for _ in config.geometry.chunks() {
            let memory = Memory {
                pages: Pages::new(usize::try_from(size)?)?,
                _reserved: reserved.split(size.into()),
            };
            chunks.push(Arc::new(memory, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(Arc::new(Self { chunks }, GFP_KERNEL)?)
    }

    /// The memory of each chunk.
    pub(crate) fn chunks(&self) -> &[Arc<Memory>] {
        &self.chunks
    }
}
