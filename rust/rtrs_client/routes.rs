// SPDX-License-Identifier: GPL-2.0

//! The ways that requests of a session can go now.
//!
//! C counterpart: the RCU list of paths with their states. Here it is a value that is replaced as a whole
//! ([`Snapshot`](weft::sync::snapshot::Snapshot)): who submits a request reads it without a lock, and who takes a link
//! out of it knows afterwards that no request can start there.

use crate::link::Link;
use kernel::{
    alloc::KBox,
    prelude::*,
    sync::Arc, //
};
use weft_proto::rtrs::{
    policy::{
        Candidate,
        Search, //
    },
    wire::MAX_PATHS, //
};

/// Links that are up.
pub(crate) struct Routes {
    pub(crate) links: KVec<Arc<Link>>,
    /// Whether requests of the user are let through.
    pub(crate) open: bool,
    /// How often the session came up.
    pub(crate) life: u32,
}

impl Routes {
    /// No way at all, with room for [`MAX_PATHS`]. May sleep.
    pub(crate) fn none() -> Result<KBox<Self>> {
        let none = Self {
            links: KVec::with_capacity(MAX_PATHS, GFP_KERNEL)?,
            open: false,
            life: 0,
        };
        Ok(KBox::new(none, GFP_KERNEL)?)
    }

    /// The next link to try with a request.
    #[inline]
    pub(crate) fn next(&self, search: &mut Search) -> Option<&Arc<Link>> {
        if let [link] = self.links.as_slice() {
            return (search.only() && link.is_usable()).then_some(link);
        }
        let index = search.next(self.links.iter().map(|link| Candidate {
            connected: link.is_usable(),
            inflight: link.path().stats.inflight(),
            latency_ns: link.path().latency(),
        }))?;
        self.links.get(index)
    }
}
