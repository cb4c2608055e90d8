// SPDX-License-Identifier: GPL-2.0

//! Nothing is dropped in silence: each drop is counted and raises a trace event with its reason.
//!
//! Documentation/tracing.rst describes the events. What identifies a datagram is put together only if somebody
//! listens.
//!
//! C counterpart: none; of the drops C counts the first four.

use crate::{
    conn::ConnKey,
    incoming::{
        Incoming,
        Via, //
    },
    message::Message,
    netns::NetState,
    path::Path,
    sock::RdsSock,
    state::Rds, //
};
pub use weft::trace::rds::Reason;
pub(crate) use weft::trace::rds::{
    self as event,
    Datagram, //
};
use weft::trace::rds::{
    Ends,
    Place, //
};
use weft_proto::rds::{
    addr::Addr,
    counters::{
        Core,
        Drops, //
    },
    wire::Header, //
};

/// A datagram on its way out.
pub(crate) fn outgoing(message: &Message) -> Datagram {
    let header = message.header();
    Datagram {
        sequence: header.sequence(),
        len: header.len(),
        local_port: header.sport(),
        peer_port: header.dport(),
        flags: header.flags(),
    }
}

/// A datagram that arrived: here the receiver is the local side.
pub(crate) fn arrived(header: &Header) -> Datagram {
    Datagram {
        sequence: header.sequence(),
        len: header.len(),
        local_port: header.dport(),
        peer_port: header.sport(),
        flags: header.flags(),
    }
}

/// Where a datagram arrived that came from `source`.
pub(crate) fn place(net: &NetState, local: Addr, source: Addr, via: Via) -> Place {
    let ends = Ends {
        netns: net.inode,
        local: local.0,
        peer: source.0,
    };
    Place::new(&ends, via.kind as u8, via.tos, via.path)
}

impl Path {
    /// The path as trace events name it.
    pub(crate) fn place(&self) -> Place {
        let key = &self.conn.key;
        place(&self.conn.net, key.local, key.peer, self.via())
    }

    /// What datagrams of this path came by.
    #[inline]
    pub(crate) fn via(&self) -> Via {
        Via {
            kind: self.conn.key.kind,
            tos: self.conn.key.tos,
            path: self.index,
        }
    }

    /// A datagram of this path is dropped. Any context.
    pub(crate) fn drop_datagram(&self, reason: Reason, datagram: impl FnOnce() -> Datagram) {
        let what = || (self.place(), datagram());
        self.conn.net.drop_datagram(reason, what);
    }

    /// A datagram that has not arrived whole, or could not be delivered, is dropped with the transport connection.
    /// Without a header if not even that has arrived whole. Any context.
    pub fn drop_arriving(&self, reason: Reason, header: Option<&Header>) {
        self.drop_datagram(reason, || header.map(arrived).unwrap_or_default());
    }

    /// A transport connection of this path is dropped. Any context.
    pub fn drop_connection(&self, reason: Reason) {
        self.drop_datagram(reason, Datagram::default);
    }
}

impl NetState {
    /// A transport connection between the two addresses of `key` is dropped that has no path yet. Any context.
    pub fn drop_connection(&self, key: &ConnKey, reason: Reason) {
        self.drop_datagram(reason, || {
            let via = Via {
                kind: key.kind,
                tos: key.tos,
                path: 0,
            };
            let place = place(self, key.local, key.peer, via);
            (place, Datagram::default())
        });
    }

    /// A datagram, or what `what` names without one, is dropped. Any context.
    #[cold]
    pub(crate) fn drop_datagram(&self, reason: Reason, what: impl FnOnce() -> (Place, Datagram)) {
        self.rds.count_drop(reason);
        event::drop(|| {
            let (place, datagram) = what();
            (place, datagram, reason)
        });
    }
}

/// A message on the receive queue of `sk` is dropped. Up to softirq.
pub(crate) fn drop_incoming(sk: &RdsSock, message: &Incoming, reason: Reason) {
    sk.net.drop_datagram(reason, || {
        let local = {
            let binding = sk.binding.lock();
            binding.bound.as_ref().map(|bound| bound.key.address)
        };
        let place = place(
            &sk.net,
            local.unwrap_or(Addr::ANY),
            message.source,
            message.via,
        );
        (place, arrived(&message.header))
    });
}

impl Rds {
    /// Counts a drop where `RDS_INFO_COUNTERS` shows it; C has counters for some.
    fn count_drop(&self, reason: Reason) {
        let counter = match reason {
            Reason::OldSequence => return self.count(Core::RecvDropOldSeq),
            // A ping that is not answered counts as C counts it.
            Reason::NoSocket | Reason::PingDisabled => return self.count(Core::RecvDropNoSock),
            Reason::DeadSocket => return self.count(Core::RecvDropDeadSock),
            Reason::PingUnanswerable => Drops::PingUnanswerable,
            Reason::Unread => Drops::Unread,
            Reason::BadControlBuffer => Drops::BadControlBuffer,
            Reason::Truncated => Drops::Truncated,
            Reason::CutOff => Drops::CutOff,
            Reason::Undelivered => Drops::Undelivered,
            Reason::Closed => Drops::Closed,
            Reason::Cancelled => Drops::Cancelled,
            Reason::ConnDestroyed => Drops::ConnDestroyed,
            Reason::SurplusPath => Drops::SurplusPath,
            Reason::ControlRefused => Drops::ControlRefused,
            Reason::BadHeader => Drops::BadHeader,
            Reason::NotDrained => Drops::NotDrained,
            Reason::WrongWay => Drops::WrongWay,
            Reason::NotAccepted => Drops::NotAccepted,
            Reason::Crowded => Drops::Crowded,
            Reason::Parked => Drops::Parked,
        };
        self.count_own(counter);
    }
}
