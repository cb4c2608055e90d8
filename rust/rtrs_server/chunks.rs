// SPDX-License-Identifier: GPL-2.0

//! The chunks of a session and who uses them.
//!
//! The rules are in `weft_proto::rtrs::ownership`; here is one lock for each chunk, and [`Claim`], which makes sure that
//! a chunk is let go of exactly once, whatever becomes of the request.

use crate::{
    conn::Conn,
    path::Path,
    session::Session, //
};
use kernel::{
    alloc::KVBox,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        SpinLockIrq, //
    },
};
use weft_proto::rtrs::{
    geometry::ChunkId,
    ownership::{
        self,
        Chunk, //
    },
};

/// A request that arrived and was not looked at yet.
struct Arrived {
    /// Where it came from and its answer goes to.
    conn: Arc<Conn>,
    /// Its chunk.
    chunk: ChunkId,
    /// Where in the chunk its header is.
    offset: u32,
}

/// Who uses one chunk.
#[pin_data]
struct Place {
    #[pin]
    chunk: SpinLockIrq<Chunk<Arrived>>,
}

/// Who uses which chunk. The locks are leaves: nothing else is taken under them.
pub(crate) struct Chunks(Pin<KVBox<[Place]>>);

impl Chunks {
    /// `count` chunks that nobody uses. May sleep.
    pub(crate) fn new(count: u16) -> Result<Self> {
        let place = |_| {
            try_pin_init!(Place {
                chunk <- new_spinlock_irq!(Chunk::new(), "rtrs_chunk"),
            }? Error)
        };
        Ok(Self(KVBox::pin_slice(
            place,
            usize::from(count),
            GFP_KERNEL,
        )?))
    }

    fn get(&self, chunk: ChunkId) -> Option<&SpinLockIrq<Chunk<Arrived>>> {
        self.0.get(chunk.index()).map(|place| &place.chunk)
    }

    /// Takes requests of `path` off that wait for their chunk. Process context.
    pub(crate) fn cancel(&self, path: &Path) {
        for place in self.0.iter() {
            let cancelled = place.chunk.lock().cancel(path.id);
            drop(cancelled);
        }
    }
}

/// What became of a request that arrived.
pub(crate) enum Admission {
    /// It is to be executed now.
    Execute(Claim),
    /// It waits until the chunk is free; nothing to do.
    Waits,
    /// The peer has a request on this chunk already.
    Refused,
}

/// The right to use a chunk, held by a request until its answer is posted.
///
/// Dropping it, in any context, lets go of the chunk; then what waits for it is executed by the session's task.
pub(crate) struct Claim(Arrived);

impl Claim {
    /// Asks for the chunk of a request that came over `conn`, with its header at `offset`.
    pub(crate) fn ask(conn: ArcBorrow<'_, Conn>, number: ChunkId, offset: u32) -> Admission {
        let path = &conn.path;
        let Some(chunk) = path.session.chunks.get(number) else {
            return Admission::Refused;
        };
        let arrived = Arrived {
            conn: conn.into(),
            chunk: number,
            offset,
        };
        let claim = chunk.lock().claim(path.id, arrived);
        match claim {
            ownership::Claim::Granted(arrived) => Admission::Execute(Self(arrived)),
            ownership::Claim::Waits { superseded } => {
                if let Some(old) = superseded {
                    old.conn.path.close("a request was given up by its client");
                }
                Admission::Waits
            }
            ownership::Claim::Refused(_) => Admission::Refused,
        }
    }

    /// The next request that waited for `chunk`, if the chunk is free.
    pub(crate) fn next(session: &Session, chunk: ChunkId) -> Option<Self> {
        session.chunks.get(chunk)?.lock().take_next().map(Self)
    }

    /// The connection of the request.
    pub(crate) fn conn(&self) -> &Arc<Conn> {
        &self.0.conn
    }

    /// The number of the chunk.
    pub(crate) fn chunk(&self) -> ChunkId {
        self.0.chunk
    }

    /// Where in the chunk the header is.
    pub(crate) fn offset(&self) -> u32 {
        self.0.offset
    }

    /// The answer is about to be posted: the client may use the chunk again before this is dropped.
    pub(crate) fn answering(&self) {
        if let Some(chunk) = self.0.conn.path.session.chunks.get(self.0.chunk) {
            chunk.lock().answering();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let session = &self.0.conn.path.session;
        let waits = session
            .chunks
            .get(self.0.chunk)
            .is_some_and(|chunk| chunk.lock().release());
        if waits {
            session.execute_waiting();
        }
    }
}
