// SPDX-License-Identifier: GPL-2.0

//! Transmitting what is queued on a path.
//!
//! C counterpart: `rds_send_xmit` in `net/rds/send.c`. Whoever queues a message tries to become the transmitter; if
//! somebody else is, that one sends the message too, because a transmitter looks at the queue again after it let go.

use crate::{
    message::{
        Envelope,
        Message,
        Payload, //
    },
    path::{
        Path,
        Xmit, //
    },
    trace, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        barrier::smp_mb,
        Arc, //
    },
};
use weft_proto::rds::{
    counters::Core,
    wire::{
        FLAG_CONG_BITMAP,
        HEADER_LEN,
        PORT_PING,
        PORT_PROBE, //
    },
};

/// How a turn of the transmitter ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is sent, or the transport goes on with it.
    Done,
    /// Somebody else transmits.
    Busy,
    /// Path 0 has to deliver something before.
    Behind,
    /// It is not known yet for which path the peer has opened the connection.
    HeldBack,
    /// The turn was long enough, there is more.
    More,
    /// Memory ran out.
    NoMemory,
}

/// How one message ended.
enum Step {
    Sent,
    /// The transport has no room; it calls when it has.
    Full,
    /// The path is down or going down.
    Down,
    /// Path 0 has to deliver something before.
    Behind,
    NoMemory,
}

impl Path {
    /// Sends what is queued, unless somebody else is at it. Sleeps.
    pub fn transmit(self: &Arc<Self>) -> Outcome {
        let rds = &self.conn.rds;
        let mut sent = 0;
        loop {
            // Pairs with the barrier below: either we get the lock, or its holder sees what we queued.
            smp_mb(kernel::sync::barrier::Full);
            let Some(mut xmit) = self.xmit.try_lock() else {
                rds.count(Core::SendLockContention);
                return Outcome::Busy;
            };
            // ORDERING: A hint for those who list connections.
            self.transmitting.store(true, Relaxed);
            let step = self.transmit_all(&mut xmit, &mut sent);
            if xmit.unflushed {
                xmit.unflushed = false;
                self.ops.flush();
            }
            self.transmitting.store(false, Relaxed);
            drop(xmit);
            smp_mb(kernel::sync::barrier::Full);
            match step {
                Step::Sent if self.is_held_back() => return Outcome::HeldBack,
                Step::NoMemory => return Outcome::NoMemory,
                Step::Behind => return Outcome::Behind,
                Step::Full | Step::Down => return Outcome::Done,
                Step::Sent if !self.has_work() => return Outcome::Done,
                Step::Sent if sent >= rds.tunables.send_batch => return Outcome::More,
                Step::Sent => {}
            }
        }
    }

    /// Sends what is queued as far as it goes now, and has the task do the rest. Sleeps.
    #[inline]
    pub fn transmit_or_defer(self: &Arc<Self>) {
        if !self.is_up() {
            // The task sends when the path comes up. If it went down just before the message was queued, either the
            // task has seen the message, or this sees that the path is down.
            smp_mb(kernel::sync::barrier::Full);
            self.connect_if_down();
            return;
        }
        match self.transmit() {
            // Whoever transmits looks at the queue again.
            Outcome::Busy => {}
            outcome => self.finish_turn(outcome),
        }
    }

    /// Sends until the queue is empty, the turn is over, or something stops it.
    fn transmit_all(self: &Arc<Self>, xmit: &mut Xmit, sent: &mut usize) -> Step {
        while *sent < self.conn.rds.tunables.send_batch {
            if !self.is_up() || self.conn.is_destroying() {
                return Step::Down;
            }
            if self.index > 0 && xmit.current.is_none() && !self.conn.has_caught_up() {
                self.conn.rds.count(Core::MprdsCatchupTx0Retries);
                return Step::Behind;
            }
            let (message, more) = match self.next_message(xmit) {
                Ok(Some(next)) => next,
                Ok(None) => return Step::Sent,
                Err(_) => return Step::NoMemory,
            };
            match self.transmit_one(xmit, message, more) {
                Step::Sent => *sent += 1,
                other => return other,
            }
        }
        Step::Sent
    }

    /// What to send next, and whether something follows it.
    #[inline]
    fn next_message(self: &Arc<Self>, xmit: &mut Xmit) -> Result<Option<(Arc<Message>, bool)>> {
        if let Some(current) = xmit.current.take() {
            return Ok(Some((current, false)));
        }
        if self.index == 0 && self.conn.take_map_mark() {
            let map = self.map_message();
            if map.is_err() {
                // The peer must hear of it in the end.
                self.conn.mark_map();
            }
            let map = map?;
            trace::event::cong_send(|| (self.place(), self.conn.local_map.count()));
            return Ok(Some((map, false)));
        }
        if self.is_stand_in() {
            return self.stand_in_probe();
        }
        let mut queue = self.queue.lock();
        let Some(entry) = queue.send.pop_front() else {
            return Ok(None);
        };
        let message = entry.clone_arc();
        queue.unacked.push_back_list_arc(entry);
        let tunables = &self.conn.rds.tunables;
        // ORDERING: Settings on their own.
        let asks = queue.ack_policy.must_ask(
            u32::try_from(message.len()).unwrap_or(u32::MAX),
            u32::try_from(tunables.max_unacked_packets.load(Relaxed)).unwrap_or(0),
            u32::try_from(tunables.max_unacked_bytes.load(Relaxed)).unwrap_or(0),
        );
        let more = !queue.send.is_empty();
        drop(queue);
        if asks {
            self.conn.rds.count(Core::SendAckRequired);
        }
        Ok(Some((message, more)))
    }

    /// Whether messages wait until it is known for which path the connection is.
    fn is_held_back(&self) -> bool {
        self.is_stand_in()
            && !self.conn.map_is_queued()
            && !self.owes_probe()
            && !self.queue.lock().send.is_empty()
    }

    /// The probe that path 0 sends while it stands for another path, if it is due. Its number, 0, is before all others.
    fn stand_in_probe(self: &Arc<Self>) -> Result<Option<(Arc<Message>, bool)>> {
        if !self.take_owed_probe() {
            return Ok(None);
        }
        let probe = self.control_message(PORT_PROBE, PORT_PING, GFP_KERNEL);
        if probe.is_err() {
            self.probe_as_stand_in();
        }
        Ok(Some((probe?, false)))
    }

    /// A message with the own congestion map.
    fn map_message(self: &Arc<Self>) -> Result<Arc<Message>> {
        let envelope = Envelope {
            sport: 0,
            dport: 0,
            flags: FLAG_CONG_BITMAP,
            extensions: [0; 16],
        };
        let payload = Payload::Inline(self.conn.local_map.to_bytes()?);
        Message::new(self.clone(), None, envelope, payload, None, GFP_KERNEL)
    }

    /// Gives one message to the transport, from where it stopped taking it before.
    #[inline]
    fn transmit_one(self: &Arc<Self>, xmit: &mut Xmit, message: Arc<Message>, more: bool) -> Step {
        let end = HEADER_LEN + message.len();
        // ORDERING: The transport's own lock, which the call takes, orders this before its callbacks.
        self.partial.store(true, Relaxed);
        while xmit.offset < end {
            match self.ops.send(self, &message, xmit.offset, more) {
                Ok(taken) => xmit.offset += taken,
                Err(error) => {
                    xmit.current = Some(message);
                    return match error {
                        EAGAIN => Step::Full,
                        ENOMEM => Step::NoMemory,
                        _ => Step::Down,
                    };
                }
            }
        }
        self.partial.store(false, Relaxed);
        xmit.offset = 0;
        xmit.unflushed = more;
        Step::Sent
    }
}
