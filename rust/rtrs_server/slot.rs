// SPDX-License-Identifier: GPL-2.0

//! What a path has of each chunk: its mapping for the device, the key that the client writes with, and the request in
//! it while it waits for the device.
//!
//! C counterpart: `struct rtrs_srv_mr`, `rtrs_srv_path::dma_addr`.

use crate::{
    chunks::Claim,
    operation::Question,
    pool::Pool,
    session::Session, //
};
use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    },
};
use weft_proto::{
    errno::Errno,
    rtrs::{
        answer::RKEY_RSP_LEN,
        geometry::{
            ChunkId,
            Geometry, //
        },
        info::Division, //
    },
};
use weft_rdma::{
    dma::{
        DmaBuf,
        ToDevice, //
    },
    mr::Mr,
    pages::{
        MappedList,
        MappedPages,
        Pages, //
    },
    pd::Pd, //
};

/// An answer that is not posted yet.
pub(crate) struct Reply {
    pub(crate) question: Question,
    /// Bytes that were written for the client, or what went wrong.
    pub(crate) status: Result<u32, Errno>,
}

/// What a slot waits for.
pub(crate) enum Stage {
    /// Nothing: there is no request, or its user works on it.
    Idle,
    /// Room in the send queue, to take the client's key away.
    Uninvalidated(Claim),
    /// The device, which takes the client's key away.
    Invalidating(Claim),
    /// Room in the send queue, to answer.
    Unanswered(Reply),
}

/// The key to one chunk, given out anew with each answer.
pub(crate) struct Key {
    /// The client writes through it.
    pub(crate) region: Mr<Arc<MappedPages>>,
    /// Carries the key to the client.
    pub(crate) message: DmaBuf<ToDevice>,
}

/// A chunk on a path.
#[pin_data]
pub(crate) struct Slot {
    pub(crate) chunk: ChunkId,
    /// Shared with the operation that uses it.
    pub(crate) pages: Arc<Pages>,
    /// Shared with the memory region over it.
    pub(crate) mapped: Arc<MappedPages>,
    /// Only with `always_invalidate`.
    pub(crate) key: Option<Key>,
    /// Taken under the lock of a connection's send queue; nothing but chunk locks is taken under it.
    #[pin]
    pub(crate) stage: SpinLockIrq<Stage>,
}

impl Slot {
    fn new(chunk: ChunkId, pages: &Arc<Pages>, pd: &Arc<Pd>, keyed: bool) -> Result<Arc<Self>> {
        let mapped = Arc::new(MappedPages::new(pd.device(), pages.clone())?, GFP_KERNEL)?;
        let key = match keyed {
            true => Some(Key {
                region: Mr::new(pd, mapped.clone(), 1)?,
                message: DmaBuf::new(pd.device(), RKEY_RSP_LEN)?,
            }),
            false => None,
        };
        Arc::pin_init(
            pin_init!(Self {
                chunk,
                pages: pages.clone(),
                mapped,
                key,
                stage <- new_spinlock_irq!(Stage::Idle, "rtrs_slot"),
            }),
            GFP_KERNEL,
        )
    }

    /// Sets what the slot waits for and gives back what it waited for before.
    pub(crate) fn set(&self, stage: Stage) -> Stage {
        core::mem::replace(&mut *self.stage.lock(), stage)
    }
}

/// The same chunk, as the owner of the work requests that take its key away.
pub(crate) struct Invalidation(pub(crate) Arc<Slot>);

/// A memory region over several chunks, whose key the client keeps; without `always_invalidate`.
pub(crate) struct Group {
    pub(crate) region: Mr<MappedList>,
}

impl Group {
    /// As few regions over all chunks as the device can do.
    fn all(
        geometry: &Geometry,
        slots: &[(Arc<Slot>, Arc<Invalidation>)],
        pd: &Arc<Pd>,
    ) -> Result<KVVec<Arc<Self>>> {
        let division = Division::new(geometry, pd.device().limits().max_fast_reg_pages);
        let mut groups = KVVec::with_capacity(usize::from(division.regions), GFP_KERNEL)?;
        for part in slots.chunks(usize::from(division.chunks.max(1))) {
            let mut blocks = KVec::with_capacity(part.len(), GFP_KERNEL)?;
            for (slot, _) in part {
                blocks.push(slot.mapped.clone(), GFP_KERNEL)?;
            }
            let region = Mr::new(pd, MappedList::new(blocks)?, u32::from(division.chunks))?;
            groups.push(Arc::new(Self { region }, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(groups)
    }
}

/// What a path has of all chunks.
pub(crate) struct Slots {
    slots: KVVec<(Arc<Slot>, Arc<Invalidation>)>,
    groups: KVVec<Arc<Group>>,
    /// Keeps the memory reserved.
    _pool: Arc<Pool>,
}

impl Slots {
    /// Maps the memory of a path and makes memory regions over it. Sleeps.
    pub(crate) fn new(session: &Session, pd: &Arc<Pd>) -> Result<Arc<Self>> {
        let server = session.server();
        let keyed = server.config().always_invalidate;
        let pool = session.memory()?;
        let mut slots = KVVec::with_capacity(pool.chunks().len(), GFP_KERNEL)?;
        for (chunk, pages) in server.config().geometry.chunks().zip(pool.chunks()) {
            let slot = Slot::new(chunk, pages, pd, keyed)?;
            let invalidation = Arc::new(Invalidation(slot.clone()), GFP_KERNEL)?;
            slots.push((slot, invalidation), GFP_KERNEL)?;
        }
        let groups = match keyed {
            true => KVVec::new(),
            false => Group::all(&server.config().geometry, &slots, pd)?,
        };
        Ok(Arc::new(
            Self {
                slots,
                groups,
                _pool: pool,
            },
            GFP_KERNEL,
        )?)
    }

    /// The slot of a chunk.
    pub(crate) fn get(&self, chunk: ChunkId) -> Option<&Arc<Slot>> {
        self.slots.get(chunk.index()).map(|(slot, _)| slot)
    }

    /// What owns the work request that takes the key of a chunk away.
    pub(crate) fn invalidation(&self, chunk: ChunkId) -> Option<&Arc<Invalidation>> {
        self.slots
            .get(chunk.index())
            .map(|(_, invalidation)| invalidation)
    }

    /// All slots in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.slots.iter().map(|(slot, _)| slot)
    }

    /// All groups in order of their chunks; none with `always_invalidate`.
    pub(crate) fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }
}
