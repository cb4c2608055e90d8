// SPDX-License-Identifier: GPL-2.0

//! What is done with the queues of a socket: charging, receiving, cancelling.
//!
//! C counterpart: `rds_recv_rcvbuf_delta`, `rds_send_drop_to`.

use super::{
    most_messages,
    RdsSock,
    Rx, //
};
use crate::{
    cong::CongMap,
    message::Message,
    path::Path,
    recv::{
        self,
        Arrival,
        Overload, //
    },
    trace::{
        self,
        Reason, //
    },
};
use kernel::{
    list::List,
    prelude::*, //
};
use weft::time;
use weft_proto::rds::{
    addr::Addr,
    counters::Core, //
};

/// What RDS does with a socket, besides what every socket has.
pub trait RdsSockExt {
    /// Bytes that may be queued for sending: what was given to `SO_SNDBUF`.
    fn send_limit(&self) -> usize;
    /// Bytes that may be queued for reading before the port counts as congested: what was given to `SO_RCVBUF`.
    fn receive_limit(&self) -> usize;
    /// Ports became free. Up to softirq.
    fn congestion_freed(&self, ports: u64);
    /// A message left its path for good. Up to softirq.
    fn message_finished(&self, message: &Message);
    /// Queues a message that arrived on `path` for this socket. Up to softirq.
    ///
    /// Gives the message back if the socket has far more unread than it asked for and `overload` says so.
    fn receive(
        &self,
        arrival: Arrival,
        path: &Path,
        map: &CongMap,
        overload: Overload,
    ) -> Result<(), Arrival>;
    /// Books a change of the receive queue and marks the port congested or free; with `rx` locked.
    fn charge_received(&self, rx: &mut Rx, map: &CongMap, port: u16);
    /// Cancels what was sent and not acknowledged, to one destination or to all.
    fn cancel_sent(&self, only: Option<(Addr, u16)>);
}

impl RdsSockExt for RdsSock {
    #[inline]
    fn send_limit(&self) -> usize {
        usize::try_from(self.sndbuf() / 2).unwrap_or(0)
    }

    #[inline]
    fn receive_limit(&self) -> usize {
        usize::try_from(self.rcvbuf() / 2).unwrap_or(0)
    }

    fn congestion_freed(&self, ports: u64) {
        if self.note_freed(ports) {
            self.wake_sleepers();
        }
    }

    #[inline]
    fn message_finished(&self, message: &Message) {
        let limit = self.send_limit();
        let (entry, wake) = {
            let mut tx = self.tx.lock();
            let Some(entry) = tx.messages.remove(message) else {
                return;
            };
            let had_room = tx.has_room(limit);
            tx.bytes = tx.bytes.saturating_sub(message.len());
            tx.count = tx.count.saturating_sub(1);
            (entry, !had_room && tx.has_room(limit))
        };
        drop(entry);
        if wake {
            self.wake_sleepers();
        }
    }

    #[inline]
    fn receive(
        &self,
        arrival: Arrival,
        path: &Path,
        map: &CongMap,
        overload: Overload,
    ) -> Result<(), Arrival> {
        let limit = self.receive_limit();
        let timestamp = self.rcvtstamp_flag().then(time::ktime_get_real);
        let port = arrival.header.dport();
        {
            let mut rx = self.rx.lock();
            if rx.closed {
                drop(rx);
                recv::drop_arrival(path, &arrival, Reason::DeadSocket);
                return Ok(());
            }
            // With nothing to read an application could not make room for anybody.
            let too_much =
                rx.is_overloaded(limit) || (rx.count > 0 && self.rds.has_too_much_unread());
            if overload == Overload::GiveBack && too_much {
                return Err(arrival);
            }
            let incoming = arrival.slot.fill(
                arrival.source,
                arrival.header,
                path.via(),
                timestamp,
                arrival.trace,
                arrival.data,
            );
            let len = incoming.len();
            rx.bytes += len;
            rx.count += 1;
            // Before anybody can read it.
            trace::event::receive(|| {
                let to = arrival.destination;
                let place = trace::place(&self.net, to, incoming.source, incoming.via);
                (place, trace::arrived(&incoming.header))
            });
            rx.messages.push_back(incoming);
            self.rds.add_unread(1, len);
            self.rds.count(Core::RecvQueued);
            self.rds.count_by(Core::RecvBytesAddedToSock, len);
            self.charge_received(&mut rx, map, port);
        }
        self.wake_sleepers();
        Ok(())
    }

    #[inline]
    fn charge_received(&self, rx: &mut Rx, map: &CongMap, port: u16) {
        let limit = self.receive_limit();
        let full = rx.bytes > limit || rx.count > most_messages(limit);
        let drained = rx.bytes < limit / 2 && rx.count < most_messages(limit) / 2;
        if full && !rx.congested {
            rx.congested = true;
            map.set(&self.net, port, true);
        } else if rx.congested && drained {
            rx.congested = false;
            map.set(&self.net, port, false);
        }
    }

    fn cancel_sent(&self, only: Option<(Addr, u16)>) {
        let matches = |message: &Message| {
            only.is_none_or(|(address, port)| {
                message.path.conn.key.peer == address && message.envelope.dport == port
            })
        };
        let closed = self.zerocopy.lock().is_closed();
        let mut cancelled: List<Message, 0> = List::new();
        {
            let mut tx = self.tx.lock();
            let mut kept: List<Message, 0> = List::new();
            while let Some(message) = tx.messages.pop_front() {
                if matches(&message) {
                    tx.bytes = tx.bytes.saturating_sub(message.len());
                    tx.count = tx.count.saturating_sub(1);
                    cancelled.push_back(message);
                } else {
                    kept.push_back(message);
                }
            }
            while let Some(message) = kept.pop_front() {
                tx.messages.push_back_list_arc(message);
            }
        }
        let reason = match only {
            Some(_) => Reason::Cancelled,
            None => Reason::Closed,
        };
        while let Some(message) = cancelled.pop_front() {
            // Unless it was acknowledged just now.
            if message.path.remove(&message) {
                let datagram = || trace::outgoing(&message);
                message.path.drop_datagram(reason, datagram);
            }
            message.disown();
            if let (true, Some(completion)) = (closed, &message.completion) {
                completion.forget();
            }
        }
        self.wake_sleepers();
    }
}
