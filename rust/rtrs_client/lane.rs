// SPDX-License-Identifier: GPL-2.0

//! One chunk of the server as one link sees it, and the request that is under way in it.
//!
//! C counterpart: `struct rtrs_clt_io_req` with its IU and MR.
//!
//! A request is over when two things have happened, in whatever order: the server has answered, and its memory is
//! proven back from the device. The proof is
//!
//! * of a write from memory that the device reads in place: the completion of the work request;
//! * of a request whose memory is in a memory region: the invalidation of the region, by the server's message that
//!   carries its key or by a work request of our own, which is posted when the answer came without one;
//! * of whatever is left when the link breaks: the drained queue pair.
//!
//! Without data there is nothing to prove. The lock of a lane is held for a few words at a time, and never while
//! anything is called.
//!
//! A server may answer while the request is still being posted. That is the end of it, and another request may be under
//! way in the lane when posting returns. If posting has failed, an answer broke the protocol; so who takes a request back
//! looks whether it is still the same.

mod end;
mod send;

pub(crate) use self::{
    end::{
        Next,
        Salvage, //
    },
    send::Way, //
};

use crate::{
    burden::Burden,
    job::{
        Cargo,
        Order, //
    },
    path::Path, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};
use weft::{
    new_spinlock_bh,
    sync::bh::SpinLockBh, //
};
use weft_proto::rtrs::{
    geometry::ChunkId,
    imm::Status,
    request::MAX_HEADER, //
};
use weft_rdma::{
    dma::{
        DmaBuf,
        ToDevice, //
    },
    loan::Loan,
    mr::{
        Kind,
        Mr, //
    },
    pd::Pd, //
};

/// Where the memory of a request is.
enum Memory<M> {
    /// There is none, or it was given back for good.
    None,
    /// A work request reads it in place.
    Lent,
    /// In the memory region.
    Region,
    /// In the memory region, whose invalidation is posted.
    Leaving,
    /// In the memory region, whose invalidation found no room in the send queue.
    Stuck,
    /// Proven back.
    Back(M),
}

/// A request under way.
struct Busy<M> {
    order: Order,
    /// Who asked for it, unless that is known from the memory.
    kept: Option<Cargo>,
    memory: Memory<M>,
    /// Which connection carries it.
    cid: u16,
    /// When it was sent, in ticks.
    since: usize,
    /// Its number among the requests of the lane.
    serial: u32,
    /// What the server said.
    answer: Option<Status>,
}

/// A lane.
#[pin_data]
pub(crate) struct Lane<M: Burden> {
    /// Its path, for the statistics; the lane ends with the link.
    path: Arc<Path>,
    chunk: ChunkId,
    /// The message of the user and the header behind it.
    header: DmaBuf<ToDevice>,
    region: Mr<M>,
    loan: Loan<M>,
    shelf: M::Shelf,
    /// Somebody makes a request ready, or one is under way.
    claimed: Atomic<bool>,
    /// Requests so far; counted by whoever has claimed the lane.
    serial: Atomic<u32>,
    /// The request under way.
    #[pin]
    busy: SpinLockBh<Option<Busy<M>>>,
}

impl<M: Burden> Lane<M> {
    /// Makes the lane of a chunk. May sleep.
    pub(crate) fn new(
        path: &Arc<Path>,
        pd: &Arc<Pd>,
        chunk: ChunkId,
        pages: u32,
    ) -> Result<Arc<Self>> {
        let device = pd.device();
        let kind = match device.limits().sg_gaps {
            true => Kind::Gaps,
            false => Kind::Pages,
        };
        let header = DmaBuf::new(device, M::MAX_MESSAGE.saturating_add(MAX_HEADER))?;
        let region = Mr::new(pd, kind, M::pages(pages))?;
        let shelf = M::shelf(device)?;
        Arc::pin_init(
            pin_init!(Self {
                path: path.clone(),
                chunk,
                header,
                region,
                loan: Loan::new(),
                shelf,
                claimed: Atomic::new(false),
                serial: Atomic::new(0),
                busy <- new_spinlock_bh!(None, "rtrs_lane"),
            }),
            GFP_KERNEL,
        )
    }

    /// What stays the same in the keys of the lane's memory region.
    pub(crate) fn region_index(&self) -> u32 {
        self.region.rkey() >> 8
    }

    /// Whether a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        // ORDERING: A hint; `claim` says for sure.
        self.claimed.load(Relaxed)
    }

    /// Takes the lane for one request, whose number is returned; `None` if it has one.
    #[inline]
    fn claim(&self) -> Option<u32> {
        // ORDERING: `Acquire` pairs with `unclaim`.
        if self.claimed.xchg(true, Acquire) {
            return None;
        }
        // ORDERING: One at a time counts.
        let serial = self.serial.load(Relaxed).wrapping_add(1);
        self.serial.store(serial, Relaxed);
        Some(serial)
    }

    /// Lets the next request in. Nothing of the last one is left.
    #[inline]
    fn unclaim(&self) {
        // ORDERING: `Release` pairs with `claim`.
        self.claimed.store(false, Release);
    }

    /// Which connection carries a request and since when, if one is under way.
    pub(crate) fn under_way(&self) -> Option<(u16, usize)> {
        let busy = self.busy.lock();
        busy.as_ref().map(|busy| (busy.cid, busy.since))
    }
}
