// SPDX-License-Identifier: GPL-2.0

//! What a path has of each chunk: its mapping for the device, the key that the client writes with, and the request in
//! it while it waits for the device.
//!
//! C counterpart: `struct rtrs_srv_mr`, `rtrs_srv_path::dma_addr`.

use crate::{
    chunks::Claim,
    conn::Conn,
    operation::Question,
    pool::{
        Memory,
        Pool, //
    },
    session::Session, //
};
use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
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
    device::Limits,
    dma::{
        DmaBuf,
        ToDevice, //
    },
    mr::{
        Kind,
        Mr, //
    },
    pages::{
        Mapped,
        MappedList,
        MappedPages, //
    },
    pd::Pd, //
};

/// The page size that every device has, in bytes.
const MR_PAGE: u32 = 4096;

/// How the device is told of a chunk: in as few pages as it can.
#[derive(Clone, Copy)]
struct Paging {
    /// Bytes of a page of a memory region, a power of two.
    size: u32,
    /// Pages of a chunk, at least 1.
    pages: u32,
}

impl Paging {
    fn new(limits: &Limits, chunk_size: u32) -> Self {
        let mut size = chunk_size;
        while size > MR_PAGE && limits.page_sizes & u64::from(size) == 0 {
            size /= 2;
        }
        Self {
            size,
            pages: chunk_size.checked_div(size).unwrap_or(1).max(1),
        }
    }

    /// A memory region over `chunks` chunks.
    fn region<M: Mapped>(self, pd: &Arc<Pd>, memory: M, chunks: u16) -> Result<Mr<M>> {
        let pages = self.pages.saturating_mul(u32::from(chunks));
        let region = Mr::new(pd, Kind::Pages, pages)?;
        region.put(memory, self.size).map_err(|(error, _)| error)?;
        Ok(region)
    }
}

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
    /// Number of the connection whose queue pair registered it last.
    home: Atomic<u32>,
}

impl Key {
    /// A key over the memory of one chunk, not given out yet.
    fn new(pd: &Arc<Pd>, mapped: &Arc<MappedPages>, paging: Paging) -> Result<Self> {
        Ok(Self {
            region: paging.region(pd, mapped.clone(), 1)?,
            message: DmaBuf::new(pd.device(), RKEY_RSP_LEN)?,
            home: Atomic::new(0),
        })
    }

    /// Notes that connection `cid` is about to register it.
    #[inline]
    pub(crate) fn registered_by(&self, cid: u16) {
        // ORDERING: The lock of the queue pair that is posted to; the client's next request comes after that.
        self.home.store(u32::from(cid), Relaxed);
    }
}

/// A chunk on a path.
#[pin_data]
pub(crate) struct Slot {
    pub(crate) chunk: ChunkId,
    /// Shared with the operation that uses it.
    pub(crate) memory: Arc<Memory>,
    /// Shared with the memory region over it.
    pub(crate) mapped: Arc<MappedPages>,
    /// Only with `always_invalidate`.
    pub(crate) key: Option<Key>,
    /// Taken under the lock of a connection's send queue; nothing but chunk locks is taken under it.
    #[pin]
    pub(crate) stage: SpinLockIrq<Stage>,
}

impl Slot {
    fn new(
        chunk: ChunkId,
        memory: &Arc<Memory>,
        pd: &Arc<Pd>,
        keys: Option<Paging>,
    ) -> Result<Arc<Self>> {
        let mapped = Arc::new(
            MappedPages::new(pd.device(), memory.pages.clone())?,
            GFP_KERNEL,
        )?;
        let key = match keys {
            Some(paging) => Some(Key::new(pd, &mapped, paging)?),
            None => None,
        };
        Arc::pin_init(
            pin_init!(Self {
                chunk,
                memory: memory.clone(),
                mapped,
                key,
                stage <- new_spinlock_irq!(Stage::Idle, "rtrs_slot"),
            }),
            GFP_KERNEL,
        )
    }

    /// The request whose key the device has taken away; `None` if that is not what the slot waits for.
    pub(crate) fn take_invalidated(&self) -> Option<Claim> {
        let mut stage = self.stage.lock();
        if !matches!(*stage, Stage::Invalidating(_)) {
            return None;
        }
        match core::mem::replace(&mut *stage, Stage::Idle) {
            Stage::Invalidating(claim) => Some(claim),
            _ => None,
        }
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
        paging: Paging,
        slots: &[(Arc<Slot>, Arc<Invalidation>)],
        pd: &Arc<Pd>,
    ) -> Result<KVVec<Arc<Self>>> {
        let most = pd
            .device()
            .limits()
            .max_fast_reg_pages
            .checked_div(paging.pages);
        let division = Division::new(geometry, most.unwrap_or(1));
        let mut groups = KVVec::with_capacity(usize::from(division.regions), GFP_KERNEL)?;
        for part in slots.chunks(usize::from(division.chunks.max(1))) {
            let mut blocks = KVec::with_capacity(part.len(), GFP_KERNEL)?;
            for (slot, _) in part {
                blocks.push(slot.mapped.clone(), GFP_KERNEL)?;
            }
            let region = paging.region(pd, MappedList::new(blocks)?, division.chunks)?;
            groups.push(Arc::new(Self { region }, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(groups)
    }
}

/// What a path has of all chunks.
pub(crate) struct Slots {
    slots: KVVec<(Arc<Slot>, Arc<Invalidation>)>,
    groups: KVVec<Arc<Group>>,
    /// The connections of the path, by number. A circle, which the closing task ends.
    conns: KVVec<Arc<Conn>>,
    /// Keeps the memory reserved.
    _pool: Arc<Pool>,
}

impl Slots {
    /// Maps the memory of a path and makes memory regions over it. Sleeps.
    pub(crate) fn new(
        session: &Session,
        pd: &Arc<Pd>,
        conns: KVVec<Arc<Conn>>,
    ) -> Result<Arc<Self>> {
        let server = session.server();
        let config = server.config();
        let paging = Paging::new(pd.device().limits(), config.geometry.chunk_size());
        let keys = config.always_invalidate.then_some(paging);
        let pool = session.memory()?;
        let mut slots = KVVec::with_capacity(pool.chunks().len(), GFP_KERNEL)?;
        for (chunk, memory) in config.geometry.chunks().zip(pool.chunks()) {
            let slot = Slot::new(chunk, memory, pd, keys)?;
            let invalidation = Arc::new(Invalidation(slot.clone()), GFP_KERNEL)?;
            slots.push((slot, invalidation), GFP_KERNEL)?;
        }
        let groups = match keys {
            Some(_) => KVVec::new(),
            None => Group::all(&config.geometry, paging, &slots, pd)?,
        };
        Ok(Arc::new(
            Self {
                slots,
                groups,
                conns,
                _pool: pool,
            },
            GFP_KERNEL,
        )?)
    }

    /// The slot of a chunk.
    pub(crate) fn get(&self, chunk: ChunkId) -> Option<&Arc<Slot>> {
        self.slots.get(chunk.index()).map(|(slot, _)| slot)
    }

    /// The connection that gave the key to a chunk out last.
    pub(crate) fn home(&self, chunk: ChunkId) -> Option<&Arc<Conn>> {
        let key = self.get(chunk)?.key.as_ref()?;
        // ORDERING: See `Key::registered_by`.
        self.conns
            .get(usize::try_from(key.home.load(Relaxed)).ok()?)
    }

    /// The connections of the path, by number.
    pub(crate) fn conns(&self) -> &[Arc<Conn>] {
        &self.conns
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
