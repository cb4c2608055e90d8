// SPDX-License-Identifier: GPL-2.0

//! What the server sends over one connection.
//!
//! C counterpart: `rtrs_clt_rdma_done`, `rtrs_clt_rkey_rsp_done`, `rtrs_clt_info_rsp_done`. Everything runs where the
//! completions of the connection do: in softirq, or in whoever polls. A server that breaks the protocol loses the path,
//! with one line in the log.
//!
//! A receive that is used up is replaced, several at a time; there are two for each request that can be under way, so a
//! few missing ones do no harm.

use crate::{
    burden::Burden,
    lane::{
        Lane,
        Next, //
    },
    line::Nobody,
    link::{
        on_lane,
        Core, //
    }, //
};
use kernel::{
    error::code::EPROTO,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        ArcBorrow, //
    }, //
};
use weft::{
    fmt::Plain,
    pr_ratelimited,
    time::ktime_get, //
};
use weft_proto::rtrs::{
    answer::{
        Incoming,
        Response, //
    },
    imm::HEARTBEAT_ACK, //
};
use weft_rdma::qp::{
    Handler,
    Message,
    PostError,
    QueuePair,
    Received,
    Remote,
    Signal,
    WcStatus, //
};

/// Listens on one connection.
pub(crate) struct Receiver {
    core: Arc<Core>,
    /// Index of the connection.
    cid: u16,
    /// Which CPU's connection it is.
    cpu: u32,
    nobody: Arc<Nobody>,
    /// Something could not be posted for want of room: an invalidation, or the answer to a heartbeat.
    owed: Atomic<bool>,
}

impl Receiver {
    pub(crate) fn new(core: &Arc<Core>, cid: u16, cpu: u32) -> Result<Arc<Self>> {
        let receiver = Self {
            core: core.clone(),
            cid,
            cpu,
            nobody: Arc::new(Nobody, GFP_KERNEL)?,
            owed: Atomic::new(false),
        };
        Ok(Arc::new(receiver, GFP_KERNEL)?)
    }

    /// Acts on a message. `EPROTO` if the server must not send such a one.
    fn act(&self, qp: &QueuePair, received: &Received<'_>) -> Result {
        match received.message() {
            Message::SendInv(rkey) => self.invalidated(qp, received, rkey),
            Message::Send if self.cid == 0 => self.letter(received),
            Message::Send => Err(EPROTO),
            Message::WriteImm(imm) => self.immediate(qp, imm, None),
            Message::SendImm(imm) => {
                self.immediate(qp, imm, Some(received.payload().unwrap_or_default()))
            }
        }
    }

    /// The answer in the info exchange.
    fn letter(&self, received: &Received<'_>) -> Result {
        self.core.inbox.put(received.payload().ok_or(EPROTO)?)?;
        self.core.path().changed.wake_all();
        Ok(())
    }

    fn immediate(&self, qp: &QueuePair, imm: u32, message: Option<&[u8]>) -> Result {
        let accepted = self.core.accepted().ok_or(EPROTO)?;
        let incoming = match message {
            None => Incoming::parse_write(&accepted.geometry, accepted.new_rkey, imm),
            Some(message) => {
                Incoming::parse_send(&accepted.geometry, accepted.new_rkey, imm, message)
            }
        };
        match incoming {
            Ok(Incoming::Response(response)) => self.answered(qp, &response),
            // Only the connection for messages has heartbeats.
            Ok(_) if self.cid != 0 => Err(EPROTO),
            Ok(Incoming::Heartbeat) => {
                self.acknowledge(qp);
                Ok(())
            }
            Ok(Incoming::HeartbeatAck) => {
                self.measure();
                Ok(())
            }
            Err(error) => {
                pr_ratelimited!(pr_err, "{}: {}\n", self.core.path().label(), Plain(error));
                Err(EPROTO)
            }
        }
    }

    #[inline]
    fn answered(&self, qp: &QueuePair, response: &Response) -> Result {
        let lanes = self.core.lanes().ok_or(EPROTO)?;
        let slot = response.chunk.number();
        let lane = lanes.get(slot).ok_or(EPROTO)?;
        // Before the request is completed: then the chunk may be used again.
        if let (Some(rkey), Some(chunks)) = (response.new_rkey, self.core.chunks.as_ref()) {
            chunks.set_key(slot, rkey);
        }
        on_lane!(&lane, lane => {
            let next = lane.answered(self.cid, response.status)?;
            self.follow(qp, lane, next);
        });
        Ok(())
    }

    #[inline]
    fn invalidated(&self, qp: &QueuePair, received: &Received<'_>, rkey: u32) -> Result {
        let lanes = self.core.lanes().ok_or(EPROTO)?;
        let lane = lanes.of_key(rkey).ok_or(EPROTO)?;
        let proof = received.invalidated().ok_or(EPROTO)?;
        on_lane!(&lane, lane => {
            let next = lane.invalidated(&proof)?;
            self.follow(qp, lane, next);
        });
        Ok(())
    }

    /// Does what follows for a lane.
    #[inline]
    pub(crate) fn follow<M: Burden>(&self, qp: &QueuePair, lane: &Arc<Lane<M>>, next: Next) {
        match next {
            Next::Wait => {}
            Next::Done(done) => done.tell(),
            Next::Invalidate => self.invalidate(qp, lane),
        }
    }

    /// Invalidates the memory region of a lane, now or when there is room.
    fn invalidate<M: Burden>(&self, qp: &QueuePair, lane: &Arc<Lane<M>>) {
        let mut result = lane.invalidate(qp);
        if result == Err(PostError::Full) {
            // ORDERING: `Full`: noted before the queue is asked once more, which makes it tell when there is room.
            self.owed.xchg(true, Full);
            if lane.is_stuck(self.cid) {
                result = lane.invalidate(qp);
            }
        }
        if matches!(result, Err(PostError::Failed(_) | PostError::Broken)) {
            self.core.fail();
        }
    }

    /// Answers a heartbeat of the server.
    fn acknowledge(&self, qp: &QueuePair) {
        let result = qp.post(self.nobody.clone(), Signal::Auto, |_, chain| {
            chain.write_imm((), Remote::NONE, HEARTBEAT_ACK)
        });
        // Without room the server hears other messages.
        if matches!(result, Err(PostError::Failed(_) | PostError::Broken)) {
            self.core.fail();
        }
    }

    /// The server has answered a heartbeat.
    fn measure(&self) {
        // ORDERING: A number on its own; stored before the heartbeat was sent.
        let sent = self.core.beat_sent.load(Relaxed);
        let took = ktime_get().saturating_sub(sent);
        self.core
            .path()
            .latency
            .store(took.max(0).unsigned_abs(), Relaxed);
    }

    /// Replaces a receive that was used up.
    #[inline]
    fn replace(&self, qp: &QueuePair, received: Received<'_>) {
        let new_rkeys = self
            .core
            .accepted()
            .is_some_and(|accepted| accepted.new_rkey);
        let result = if received.has_buffer() && !new_rkeys {
            // The one receive with a buffer was for the answer of the info exchange.
            drop(received);
            qp.post_recv(1)
        } else {
            received.repost()
        };
        if matches!(result, Err(PostError::Failed(_) | PostError::Broken)) {
            self.core.fail();
        }
    }

    /// Tries again what found no room.
    fn settle_debts(&self, qp: &QueuePair) {
        // ORDERING: See `invalidate`.
        if !self.owed.xchg(false, Full) {
            return;
        }
        let Some(lanes) = self.core.lanes() else {
            return;
        };
        for lane in lanes.iter() {
            on_lane!(&lane, lane => if lane.is_stuck(self.cid) {
                self.invalidate(qp, lane);
            });
        }
    }
}

impl Handler for Receiver {
    fn received(this: ArcBorrow<'_, Self>, qp: &QueuePair, received: Received<'_>) {
        this.core.hear();
        this.core.path().stats.completion(this.cpu);
        match this.act(qp, &received) {
            Ok(()) => this.replace(qp, received),
            Err(_) => {
                if this.core.fail() {
                    pr_ratelimited!(
                        pr_err,
                        "{}: the server sent what it must not on connection {}: {:?}\n",
                        this.core.path().label(),
                        this.cid,
                        received.message()
                    );
                }
            }
        }
    }

    fn error(this: ArcBorrow<'_, Self>, status: WcStatus) {
        // Also of a receive that was flushed: if nobody has given the path up before, nobody has said why.
        if this.core.fail() {
            pr_ratelimited!(
                pr_err,
                "{}: connection {} broke: {}\n",
                this.core.path().label(),
                this.cid,
                status
            );
        }
    }

    fn writable(this: ArcBorrow<'_, Self>, qp: &QueuePair) {
        this.settle_debts(qp);
        this.core.session().room();
    }
}
