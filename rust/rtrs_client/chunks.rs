// SPDX-License-Identifier: GPL-2.0

//! Where the chunks of the server are, and under which keys.
//!
//! C counterpart: `struct rtrs_rbuf`. A server that invalidates gives each chunk a new key with every answer; the key is
//! stored before the request is completed, hence before the chunk can be used again.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};
use weft_proto::rtrs::info::InfoResponse;
use weft_rdma::qp::Remote;

struct Chunk {
    addr: u64,
    rkey: Atomic<u32>,
}

/// The chunks.
pub(crate) struct Chunks(KVec<Chunk>);

impl Chunks {
    /// As the server describes them. May sleep.
    pub(crate) fn new(response: &InfoResponse<'_>, count: u16) -> Result<Self> {
        let mut chunks = KVec::with_capacity(count.into(), GFP_KERNEL)?;
        for (_, addr, rkey) in response.chunks() {
            let chunk = Chunk {
                addr,
                rkey: Atomic::new(rkey),
            };
            chunks.push(chunk, GFP_KERNEL)?;
        }
        Ok(Self(chunks))
    }

    /// Where chunk number `slot` is now.
    #[inline]
    pub(crate) fn get(&self, slot: u16) -> Option<Remote> {
        let chunk = self.0.get(usize::from(slot))?;
        Some(Remote {
            addr: chunk.addr,
            // ORDERING: Who uses the chunk got it from whoever completed the request before, after the key was stored.
            rkey: chunk.rkey.load(Relaxed),
        })
    }

    /// Stores a new key.
    #[inline]
    pub(crate) fn set_key(&self, slot: u16, rkey: u32) {
        if let Some(chunk) = self.0.get(usize::from(slot)) {
            // ORDERING: See `get`.
            chunk.rkey.store(rkey, Relaxed);
        }
    }
}
