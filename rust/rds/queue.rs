// SPDX-License-Identifier: GPL-2.0

//! What is queued on a path, and what was sent on it and not acknowledged.
//!
//! C counterpart: `cp_send_queue` and `cp_retrans` of `struct rds_conn_path`. A message is on one of the two lists until
//! the peer has it, so nothing is lost with what carries the path.

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
    trace::{
        self,
        Datagram,
        Reason, //
    },
    worker::Event, //
};
use kernel::{
    list::List,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use weft::list::HomeList;
use weft_proto::rds::{
    counters::Core,
    handshake,
    window::AckPolicy,
    wire::PORT_PING, //
};

/// Protocol messages that may be queued on a path: a peer that pings and does not read gets no more answers.
const MOST_CONTROLS: usize = 1024;

/// Why a message was not queued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotQueued {
    /// The path is destroyed.
    Destroyed,
    /// Its socket sends on another path by now.
    Moved,
}

/// Messages of a path.
pub struct TxQueue {
    /// Not sent yet.
    pub send: HomeList<Message, 1>,
    /// Sent, or being sent, and not acknowledged.
    pub unacked: HomeList<Message, 1>,
    /// Number that the next message gets.
    pub next_sequence: u64,
    /// When to ask for an acknowledgement.
    pub ack_policy: AckPolicy,
    /// Protocol messages in the two lists.
    controls: usize,
    /// The path is destroyed: nothing is queued any more.
    closed: bool,
}

impl TxQueue {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self {
            send: HomeList::new(),
            unacked: HomeList::new(),
            next_sequence: 1,
            ack_policy: AckPolicy::new(),
            controls: 0,
            closed: false,
        }
    }
}

impl Path {
    /// Queues a message of the protocol itself: ping, pong, probe. Up to softirq.
    ///
    /// `ENOMEM`, `ENOBUFS` if the port is congested or a peer that does not read has [`MOST_CONTROLS`] of them coming,
    /// `ENETUNREACH` if the path is destroyed.
    pub fn send_control(self: &Arc<Self>, sport: u16, dport: u16) -> Result {
        self.queue_control(sport, dport).inspect_err(|_| {
            self.drop_datagram(Reason::ControlRefused, || Datagram {
                local_port: sport,
                peer_port: dport,
                ..Datagram::default()
            });
        })
    }

    /// A message of the protocol itself, not queued. `ENOMEM`. Any context that `flags` allow.
    pub(crate) fn control_message(
        self: &Arc<Self>,
        sport: u16,
        dport: u16,
        flags: kernel::alloc::Flags,
    ) -> Result<Arc<Message>> {
        let mut extensions = [0; 16];
        if handshake::is_probe(sport, dport) || handshake::is_probe_reply(sport, dport) {
            handshake::write_probe(
                &mut extensions,
                u16::from(self.conn.transport.max_paths()),
                self.conn.net.life,
            );
        }
        let envelope = Envelope {
            sport,
            dport,
            flags: 0,
            extensions,
        };
        Message::new(self.clone(), None, envelope, Payload::EMPTY, None, flags)
    }

    fn queue_control(self: &Arc<Self>, sport: u16, dport: u16) -> Result {
        self.connect_if_down();
        if self.conn.peer_map.test(dport) || self.queue.lock().controls >= MOST_CONTROLS {
            return Err(ENOBUFS);
        }
        let message = self.control_message(sport, dport, GFP_ATOMIC)?;
        if self.enqueue(&message, || true).is_err() {
            return Err(ENETUNREACH);
        }
        self.conn.rds.count(Core::SendQueued);
        self.conn.rds.count(Core::SendPong);
        self.kick(Event::Send);
        Ok(())
    }

    /// Appends a message to what is to be sent, and numbers it. Up to softirq.
    ///
    /// `is_right` says, with the queue locked, whether the path is still the one that the message should take. So what
    /// is queued on path 0 before a fan-out is known when that is done, and nothing is added.
    #[inline]
    pub(crate) fn enqueue(
        &self,
        message: &Arc<Message>,
        is_right: impl FnOnce() -> bool,
    ) -> Result<(), NotQueued> {
        let mut queue = self.queue.lock();
        if queue.closed {
            return Err(NotQueued::Destroyed);
        }
        if !is_right() {
            return Err(NotQueued::Moved);
        }
        message.set_sequence(queue.next_sequence);
        queue.next_sequence += 1;
        queue.controls += usize::from(message.is_control());
        // Before anybody can send it.
        trace::event::send(|| (self.place(), trace::outgoing(message)));
        // A new message is on no list.
        queue
            .send
            .push_back(message.clone())
            .map_err(|_| NotQueued::Destroyed)
    }

    /// Whether anything waits to be sent.
    #[inline]
    pub fn has_work(&self) -> bool {
        let map = self.index == 0 && self.conn.map_is_queued();
        if self.is_stand_in() {
            return map || self.owes_probe();
        }
        map || !self.queue.lock().send.is_empty()
    }

    /// The lowest number of a message that the peer may not have.
    pub(crate) fn oldest_pending(&self) -> Option<u64> {
        let queue = self.queue.lock();
        let sent = queue.unacked.front().map(|first| first.sequence());
        let unsent = queue.send.front().map(|first| first.sequence());
        // What was taken back to be sent again is older than what was never sent.
        match (sent, unsent) {
            (Some(sent), Some(unsent)) => Some(sent.min(unsent)),
            (sent, unsent) => sent.or(unsent),
        }
    }

    /// Drops what waits on a path that the peer does not have any more.
    pub(crate) fn drop_surplus(&self) {
        let mut dropped = 0;
        loop {
            let message = {
                let mut queue = self.queue.lock();
                let message = queue.unacked.pop_front().or_else(|| queue.send.pop_front());
                if message.as_ref().is_some_and(|message| message.is_control()) {
                    queue.controls -= 1;
                }
                message
            };
            let Some(message) = message else {
                break;
            };
            message.finish();
            self.drop_datagram(Reason::SurplusPath, || trace::outgoing(&message));
            dropped += 1;
        }
        if dropped > 0 {
            weft::pr_ratelimited!(
                pr_warn,
                "RDS: {} has fewer paths than before, {} messages to its former self are dropped\n",
                weft::fmt::Plain(self.conn.key.peer),
                dropped
            );
        }
    }

    /// Whether messages of sockets are on the path, sent or not.
    pub(crate) fn holds_user_messages(&self) -> bool {
        let queue = self.queue.lock();
        queue.send.iter().any(|message| !message.is_control())
            || queue.unacked.iter().any(|message| !message.is_control())
    }

    /// Takes off everything that the peer has, as told by `acked` for the end of a message. Up to softirq.
    ///
    /// Returns whether messages wait to be sent.
    #[inline]
    pub fn drop_acked(&self, acked: impl Fn(u32) -> bool) -> bool {
        let mut done = List::new();
        let waiting = {
            let mut queue = self.queue.lock();
            while let Some(first) = queue.unacked.front() {
                if !first.end().is_some_and(&acked) {
                    break;
                }
                if let Some(first) = queue.unacked.pop_front() {
                    queue.controls -= usize::from(first.is_control());
                    done.push_back(first);
                }
            }
            !queue.send.is_empty()
        };
        while let Some(message) = done.pop_front() {
            message.finish();
        }
        // ORDERING: The transport's own lock orders this after the transmitter's store.
        waiting || self.partial.load(Relaxed) || (self.index == 0 && self.conn.map_is_queued())
    }

    /// Takes one message off the path, wherever it is. Up to softirq. `false` if it had left already.
    pub(crate) fn remove(&self, message: &Message) -> bool {
        let removed = {
            let mut queue = self.queue.lock();
            let removed = queue
                .send
                .remove(message)
                .or_else(|| queue.unacked.remove(message));
            if removed.is_some() {
                queue.controls -= usize::from(message.is_control());
            }
            removed
        };
        removed.is_some()
    }

    /// After the transport is gone: what was not acknowledged is to be sent again, before everything else.
    ///
    /// The caller holds `xmit`, so that nobody transmits.
    pub(crate) fn reset_transmit(&self, xmit: &mut Xmit) {
        *xmit = Xmit::default();
        // ORDERING: The transport is gone; nobody reads this until the next connection.
        self.partial.store(false, Relaxed);
        let mut queue = self.queue.lock();
        queue.ack_policy.reset();
        while let Some(message) = queue.unacked.pop_back() {
            message.reset_for_retransmission();
            if !self.conn.is_destroying() {
                trace::event::retransmit(|| (self.place(), trace::outgoing(&message)));
            }
            queue.send.push_front_list_arc(message);
        }
    }

    /// Drops everything queued; the path is destroyed.
    pub(crate) fn purge(&self) {
        self.xmit.lock().current = None;
        loop {
            let message = {
                let mut queue = self.queue.lock();
                queue.closed = true;
                queue.unacked.pop_front().or_else(|| queue.send.pop_front())
            };
            let Some(message) = message else {
                break;
            };
            message.finish();
            self.drop_datagram(Reason::ConnDestroyed, || trace::outgoing(&message));
        }
    }

    /// Answers a ping: an empty message to the port that sent it.
    pub(crate) fn pong(self: &Arc<Self>, port: u16) {
        // Without memory the peer pings again; a probe is repeated with the next message.
        let _ = self.send_control(PORT_PING, port);
    }
}
