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
    request,
    setup::Information,
    slot::{
        Group,
        Invalidation,
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
use weft::fmt::Plain;
use weft_proto::rtrs::{
    geometry::ChunkId,
    imm::{
        self,
        ToServer, //
    },
    info,
    wire::InfoReq, //
};
use weft_rdma::{
    cm::{
        CmId,
        Token, //
    },
    mr::Access,
    pd::Pd,
    qp::{
        Attrs,
        Chain,
        Handler,
        Kind,
        Owner,
        PostError,
        Qp,
        Received,
        Remote,
        Sent,
        Signal,
        WcStatus, //
    },
};

/// What sends.
pub(crate) struct Live {
    /// Dropped outside of the lock that this is under.
    pub(crate) qp: Qp<Receiver>,
    /// The chunks, once the path is set up.
    pub(crate) slots: Option<Arc<Slots>>,
    /// Chunks whose slots wait for room, in order; its capacity is the number of chunks.
    parked: KVVec<ChunkId>,
    /// A heartbeat is to be sent.
    beat: bool,
    /// A heartbeat of the client is to be answered.
    ack: bool,
    mute: Arc<Mute>,
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
    live: SpinLockIrq<Option<Live>>,
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
    /// Has the client's key taken away; the request of `claim` is executed when that is done.
    fn invalidate(&mut self, claim: Claim) -> Result {
        let chunk = claim.chunk();
        let slots = self.slots.as_ref().ok_or(ENOTCONN)?;
        let slot = slots.get(chunk).ok_or(EINVAL)?.clone();
        let owner = slots.invalidation(chunk).ok_or(EINVAL)?.clone();
        slot.set(Stage::Invalidating(claim));
        let posted = self.qp.post(owner, Signal::Always, |owner, chain| {
            let key = owner.0.key.as_ref().ok_or(EINVAL)?;
            chain.invalidate(&key.region)
        });
        match (posted, slot) {
            (Ok(()), _) => Ok(()),
            (Err(error), slot) => match (error, slot.set(Stage::Idle)) {
                (PostError::Full, Stage::Invalidating(claim)) => {
                    self.park(&slot, Stage::Uninvalidated(claim))
                }
                (error, _) => Err(error.into()),
            },
        }
    }

    /// Posts an answer.
    fn answer(&mut self, reply: Reply) -> Result {
        let chunk = reply.question.claim.chunk();
        let slots = self.slots.as_ref().ok_or(ENOTCONN)?;
        let slot = slots.get(chunk).ok_or(EINVAL)?.clone();
        match reply::post(&self.qp, &slot, &reply) {
            Ok(()) => Ok(()),
            Err(PostError::Full) => self.park(&slot, Stage::Unanswered(reply)),
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
    pub(crate) fn invalidate(claim: Claim) {
        let conn = claim.conn().clone();
        conn.with(|live| live.invalidate(claim));
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
    fn acknowledge(&self) {
        self.with(|live| {
            live.ack = true;
            live.beat()
        });
    }

    /// Room appeared in the send queue.
    fn room(&self) {
        self.with(|live| {
            live.beat()?;
            while live.resume()? {}
            Ok(())
        });
        self.path.changed.wake_all();
    }
}

/// Hears what the device has to say of a connection.
pub(crate) struct Receiver(Arc<Conn>);

impl Handler for Receiver {
    fn received(&self, message: Received<'_>) {
        let conn = &self.0;
        let path = &conn.path;
        path.pulse.heard();
        match message.kind() {
            Kind::Imm(imm) => {
                message.repost();
                conn.announced(imm);
            }
            Kind::Send if conn.cid == 0 => match info::parse_request(message.payload()) {
                Ok(name) => path.asked(name),
                Err(error) => path.close(Plain(error)),
            },
            Kind::Send | Kind::SendInv(_) => {
                path.close(fmt!("a message on connection {}", conn.cid))
            }
        }
    }

    fn error(&self, status: WcStatus) {
        self.0
            .path
            .close(fmt!("connection {}: {status}", self.0.cid));
    }

    fn writable(&self) {
        self.0.room();
    }
}

impl Conn {
    /// The client announced something. Process context.
    fn announced(self: &Arc<Self>, imm: u32) {
        let geometry = &self.path.session.server().config().geometry;
        match ToServer::parse(geometry, imm) {
            Ok(ToServer::Request { chunk, off }) => request::arrived(self, chunk, off),
            Ok(ToServer::Heartbeat | ToServer::HeartbeatAck) if self.cid != 0 => {
                self.path
                    .close(fmt!("a heartbeat on connection {}", self.cid));
            }
            Ok(ToServer::Heartbeat) => self.acknowledge(),
            Ok(ToServer::HeartbeatAck) => {}
            Err(error) => self.path.close(Plain(error)),
        }
    }
}

/// Bytes that a work request takes in a queue of the device and of the library, roughly.
const WR_BYTES: u64 = 256;
/// Work requests of the first connection, one way: `SERVICE_CON_QUEUE_DEPTH`, twice, and two.
const SERVICE_WRS: u32 = 2 * 512 + 2;
/// Receives of the first connection.
const SERVICE_RECEIVES: u32 = 512;

impl Conn {
    /// How long the queues are.
    fn attrs(&self) -> Attrs {
        let config = self.path.session.server().config();
        let limit = self.path.ends.device.limits().max_qp_wr;
        let depth = u32::from(config.geometry.queue_depth());
        // Of an answer: data, invalidation, new key, immediate; and the invalidation before.
        let each = if config.always_invalidate { 5 } else { 3 };
        let (send, recv, entry) = match self.cid {
            0 => (SERVICE_WRS, SERVICE_WRS, size_of::<InfoReq>()),
            _ => (
                depth.saturating_mul(each).saturating_add(1),
                depth.saturating_add(1),
                0,
            ),
        };
        Attrs {
            send: send.min(limit),
            recv: recv.min(limit),
            entry,
            vector: u32::from(self.cid),
        }
    }

    /// Makes the queue pair, ready to receive the first message. Sleeps.
    pub(crate) fn make(self: &Arc<Self>, token: &Token<'_>, pd: &Arc<Pd>) -> Result {
        let attrs = self.attrs();
        let wrs = u64::from(attrs.send) + u64::from(attrs.recv);
        let reserved = self
            .path
            .session
            .server()
            .budget
            .take(wrs.saturating_mul(WR_BYTES))?;
        let receiver = Arc::new(Receiver(self.clone()), GFP_KERNEL)?;
        let qp = Qp::new(token, pd, attrs, receiver)?;
        if self.cid == 0 {
            qp.post_recv(1)?;
        }
        let live = Live {
            qp,
            slots: None,
            parked: KVVec::new(),
            beat: false,
            ack: false,
            mute: Arc::new(Mute, GFP_KERNEL)?,
            _reserved: reserved,
        };
        *self.live.lock() = Some(live);
        Ok(())
    }

    /// Makes the connection ready for requests. Sleeps.
    pub(crate) fn open(&self, slots: &Arc<Slots>) -> Result {
        let depth = self.path.session.queue_depth();
        let parked = KVVec::with_capacity(usize::from(depth), GFP_KERNEL)?;
        let receives = match self.cid {
            0 => SERVICE_RECEIVES,
            // One less than there is room for, as C has it.
            _ => u32::from(depth),
        };
        let receives = receives.min(self.attrs().recv.saturating_sub(1).max(1));
        let mut live = self.live.lock();
        let live = (*live).as_mut().ok_or(ENOTCONN)?;
        live.parked = parked;
        live.slots = Some(slots.clone());
        live.qp.post_recv(receives)
    }

    /// Has the device learn the key of a chunk. `EAGAIN` if there is no room now.
    pub(crate) fn register_slot(&self, slot: &Arc<Slot>) -> Result {
        self.post(slot, Signal::Auto, |slot, chain| match &slot.key {
            Some(key) => chain.register(&key.region, Access::RemoteWrite).map(|_| ()),
            None => Ok(()),
        })
    }

    /// Has the device learn the key of a group of chunks. `EAGAIN` if there is no room now.
    pub(crate) fn register_group(&self, group: &Arc<Group>) -> Result {
        self.post(group, Signal::Auto, |group, chain| {
            chain
                .register(&group.region, Access::RemoteWrite)
                .map(|_| ())
        })
    }

    /// Answers the request for information. `EAGAIN` if there is no room now.
    pub(crate) fn inform(&self, information: &Arc<Information>) -> Result {
        self.post(information, Signal::Always, |information, chain| {
            chain.send(information.0.sge(0, information.0.len())?)
        })
    }

    fn post<T: Owner>(
        &self,
        owner: &Arc<T>,
        signal: Signal,
        build: impl for<'o> FnOnce(&'o T, &mut Chain<'o>) -> Result,
    ) -> Result {
        let live = self.live.lock();
        let live = live.as_ref().ok_or(ENOTCONN)?;
        match live.qp.post(owner.clone(), signal, build) {
            Ok(()) => Ok(()),
            Err(PostError::Full) => Err(EAGAIN),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends what the device does for the connection, and drops what waited for it. Sleeps.
    pub(crate) fn shut(&self) {
        let Some(live) = self.live.lock().take() else {
            return;
        };
        // Ends the work requests under way, and with them the claims of their requests.
        live.qp.shutdown();
        for chunk in live.parked.iter() {
            if let Some(slot) = live.slots.as_ref().and_then(|slots| slots.get(*chunk)) {
                let stage = slot.set(Stage::Idle);
                drop(stage);
            }
        }
    }
}

impl Owner for Group {}

impl Owner for Invalidation {
    fn sent(self: Arc<Self>, result: Result<(), WcStatus>, _sent: &Sent<'_>) {
        match (self.0.set(Stage::Idle), result) {
            (Stage::Invalidating(claim), Ok(())) => request::run(claim),
            (stage, _) => drop(stage),
        }
    }
}
