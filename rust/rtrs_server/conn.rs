// SPDX-License-Identifier: GPL-2.0

//! A connection: one queue pair of a path.
//!
//! C counterpart: `struct rtrs_srv_con`. What the device needs of it is in [`Live`], which the closing task takes out;
//! what is left after that is memory that operations still under way refer to.
//!
//! Nothing waits for ever for room in the send queue: what does not fit is parked in its slot, with the number of the
//! chunk in a list that has room for all of them, since a chunk waits for one thing at a time.

use crate::{
    budget::Reserved,
    chunks::Claim,
    path::Path,
    reply,
    setup::Information,
    slot::{
        Reply,
        Slot,
        Slots,
        Stage, //
    },
    user::SessionUser, //
};
use kernel::{
    new_mutex, new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLockIrq, //
    },
};
use weft_proto::rtrs::{
    geometry::ChunkId,
    imm, //
};
use weft_rdma::{
    cm::CmId,
    qp::{
        Owner,
        PostError,
        Qp,
        Remote,
        Signal, //
    },
};

/// What sends.
pub(crate) struct Live {
    /// Dropped outside of the lock that this is under.
    pub(crate) qp: Qp<Conn>,
    /// The chunks, once the path is set up.
    pub(crate) slots: Option<Arc<Slots>>,
    /// Chunks whose slots wait for room, in order; its capacity is the number of chunks.
    pub(crate) parked: KVVec<ChunkId>,
    /// A heartbeat is to be sent.
    beat: bool,
    /// A heartbeat of the client is to be answered.
    ack: bool,
    mute: Arc<Mute>,
    /// What the client was told of the memory.
    pub(crate) information: Option<Arc<Information>>,
    /// For the memory of the queues.
    _reserved: Reserved,
}

/// What executes requests.
pub(crate) struct Serving {
    pub(crate) user: Arc<dyn SessionUser>,
    pub(crate) slots: Arc<Slots>,
    /// Room for a message of the upper layer.
    pub(crate) message: KVVec<u8>,
}

/// A connection.
#[pin_data]
pub(crate) struct Conn {
    /// Keeps the path; see `close.rs` for the end of the circle.
    pub(crate) path: Arc<Path>,
    pub(crate) cid: u16,
    /// Taken for each post, with interrupts off. Slots are locked under it.
    #[pin]
    pub(crate) live: SpinLockIrq<Option<Live>>,
    /// Held while the user looks at a request.
    #[pin]
    pub(crate) serving: Mutex<Option<Serving>>,
    /// The connection manager's side.
    #[pin]
    pub(crate) id: Mutex<Option<CmId>>,
}

/// Owns work requests that use no memory.
struct Mute;

impl Owner for Mute {}

impl Live {
    /// What sends through `qp`.
    pub(crate) fn new(qp: Qp<Conn>, reserved: Reserved) -> Result<Self> {
        Ok(Self {
            qp,
            slots: None,
            parked: KVVec::new(),
            beat: false,
            ack: false,
            mute: Arc::new(Mute, GFP_KERNEL)?,
            information: None,
            _reserved: reserved,
        })
    }

    /// Has the client's key taken away; the request of `claim` is executed when that is done.
    fn invalidate(&mut self, claim: Claim) -> Result {
        let chunk = claim.chunk();
        let slots = self.slots.as_ref().ok_or(ENOTCONN)?;
        let slot = slots.get(chunk).ok_or(EINVAL)?;
        let owner = slots.invalidation(chunk).ok_or(EINVAL)?.clone();
        *slot.stage.lock() = Stage::Invalidating(claim);
        let posted = self.qp.post(owner, Signal::Always, |owner, chain| {
            let key = owner.0.key.as_ref().ok_or(EINVAL)?;
            chain.invalidate(&key.region)
        });
        let Err(error) = posted else {
            return Ok(());
        };
        match (error, slot.set(Stage::Idle)) {
            (PostError::Full, Stage::Invalidating(claim)) => {
                let slot = slot.clone();
                self.park(&slot, Stage::Uninvalidated(claim))
            }
            (error, _) => Err(error.into()),
        }
    }

    /// Posts an answer.
    fn answer(&mut self, reply: Reply) -> Result {
        let chunk = reply.question.claim.chunk();
        let slots = self.slots.as_ref().ok_or(ENOTCONN)?;
        let slot = slots.get(chunk).ok_or(EINVAL)?;
        match reply::post(&self.qp, slot, &reply) {
            Ok(()) => Ok(()),
            Err(PostError::Full) => {
                let slot = slot.clone();
                self.park(&slot, Stage::Unanswered(reply))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn park(&mut self, slot: &Slot, stage: Stage) -> Result {
        slot.set(stage);
        self.parked
            .push_within_capacity(slot.chunk)
            .map_err(|_| EOVERFLOW)
    }

    /// Takes the first that is parked up again. `false` if there is none, or no room for it.
    fn resume(&mut self) -> Result<bool> {
        let Ok(chunk) = self.parked.remove(0) else {
            return Ok(false);
        };
        let before = self.parked.len();
        let slot = self
            .slots
            .as_ref()
            .and_then(|slots| slots.get(chunk))
            .ok_or(EINVAL)?;
        match slot.set(Stage::Idle) {
            Stage::Uninvalidated(claim) => self.invalidate(claim)?,
            Stage::Unanswered(reply) => self.answer(reply)?,
            Stage::Idle | Stage::Invalidating(_) => {}
        }
        // What found no room is parked again, behind the others: their order means nothing.
        Ok(self.parked.len() <= before)
    }

    /// Sends the heartbeats that are due.
    fn beat(&mut self) -> Result {
        for (due, imm) in [
            (&mut self.beat, imm::HEARTBEAT),
            (&mut self.ack, imm::HEARTBEAT_ACK),
        ] {
            if !*due {
                continue;
            }
            match self.qp.post(self.mute.clone(), Signal::Auto, |_, chain| {
                chain.write_imm((), Remote::NONE, imm)
            }) {
                Ok(()) => *due = false,
                Err(PostError::Full) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Conn {
    /// A connection without a queue pair. May sleep.
    pub(crate) fn new(path: &Arc<Path>, cid: u16) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                path: path.clone(),
                cid,
                live <- new_spinlock_irq!(None, "rtrs_conn_live"),
                serving <- new_mutex!(None, "rtrs_conn_serving"),
                id <- new_mutex!(None, "rtrs_conn_id"),
            }),
            GFP_KERNEL,
        )
    }

    /// Does something with the send queue, if there still is one. Any context.
    fn with(&self, what: impl FnOnce(&mut Live) -> Result) {
        let result = match &mut *self.live.lock() {
            Some(live) => what(live),
            None => Ok(()),
        };
        if let Err(error) = result {
            self.path.close(fmt!("cannot send: {error:?}"));
        }
    }

    /// Takes the client's key to a chunk away, then has the request in it executed.
    ///
    /// That is done by the connection that gave the key out last, whichever the request came over: only there is it
    /// certain that the one comes after the other.
    pub(crate) fn invalidate(claim: Claim) {
        let conn = claim.conn().clone();
        let mut elsewhere = None;
        conn.with(|live| {
            match live
                .slots
                .as_ref()
                .and_then(|slots| slots.home(claim.chunk()))
            {
                Some(home) if home.cid == conn.cid => live.invalidate(claim),
                // Not here, under a lock of the same kind.
                home => {
                    elsewhere = home.cloned().map(|home| (home, claim));
                    Ok(())
                }
            }
        });
        if let Some((home, claim)) = elsewhere {
            home.with(|live| live.invalidate(claim));
        }
    }

    /// Sends an answer, if the path is still there. Any context.
    pub(crate) fn answer(reply: Reply) {
        let conn = reply.question.claim.conn().clone();
        if conn.path.is_connected() {
            conn.with(|live| live.answer(reply));
        }
    }

    /// Sends a heartbeat. Any context.
    pub(crate) fn heartbeat(&self) {
        self.with(|live| {
            live.beat = true;
            live.beat()
        });
    }

    /// Answers a heartbeat. Any context.
    pub(crate) fn acknowledge(&self) {
        self.with(|live| {
            live.ack = true;
            live.beat()
        });
    }

    /// Room appeared in the send queue.
    pub(crate) fn room(&self) {
        self.with(|live| {
            live.beat()?;
            while live.resume()? {}
            Ok(())
        });
        self.path.changed.wake_all();
    }
}
