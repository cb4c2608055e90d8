// SPDX-License-Identifier: GPL-2.0

//! The trace events of RDS.
//!
//! They are defined by `rust/rds/events.c`, so these functions can be called by the module `rds` only, and end up in
//! it: nothing of them is compiled into the library. `Documentation/tracing.rst` says what users see.

use crate::{
    bindings,
    trace::events, //
};

/// Which path of which connection something happened on.
pub struct Place(bindings::rds_trace_place);

/// Both ends of a connection.
pub struct Ends {
    /// Inode number of the network namespace.
    pub netns: u32,
    /// Own address, IPv4 in its mapped form.
    pub local: [u8; 16],
    /// Peer's address.
    pub peer: [u8; 16],
}

impl Place {
    /// Path number `path` of a connection between `ends`; `transport` as in `SO_RDS_TRANSPORT`.
    pub fn new(ends: &Ends, transport: u8, tos: u8, path: u8) -> Self {
        Self(bindings::rds_trace_place {
            local: ends.local,
            peer: ends.peer,
            netns: ends.netns,
            transport,
            tos,
            path,
        })
    }
}

/// What identifies a datagram on its path.
#[derive(Clone, Copy, Default)]
pub struct Datagram {
    /// Number on the path.
    pub sequence: u64,
    /// Payload bytes.
    pub len: u32,
    /// RDS port of this host.
    pub local_port: u16,
    /// RDS port of the peer.
    pub peer_port: u16,
    /// Flags of the header.
    pub flags: u8,
}

impl Datagram {
    fn to_c(self) -> bindings::rds_trace_datagram {
        bindings::rds_trace_datagram {
            sequence: self.sequence,
            len: self.len,
            local_port: self.local_port,
            peer_port: self.peer_port,
            flags: self.flags,
        }
    }
}

/// Defines [`Reason`] with the numbers that C has.
macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $number:ident,)+) => {
        /// Why something was dropped: a datagram or, from [`Self::BadHeader`] on, a transport connection.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Reason {
            $($(#[$doc])* $variant = bindings::$number,)+
        }
    };
}

reasons! {
    /// It was delivered before.
    OldSequence = rds_drop_reason_RDS_DROP_OLD_SEQUENCE,
    /// Nobody is bound to its port.
    NoSocket = rds_drop_reason_RDS_DROP_NO_SOCKET,
    /// Its socket was being closed.
    DeadSocket = rds_drop_reason_RDS_DROP_DEAD_SOCKET,
    /// A ping that the administrator does not want to be answered.
    PingDisabled = rds_drop_reason_RDS_DROP_PING_DISABLED,
    /// A ping from the port that answers pings.
    PingUnanswerable = rds_drop_reason_RDS_DROP_PING_UNANSWERABLE,
    /// Its socket was closed before it was read.
    Unread = rds_drop_reason_RDS_DROP_UNREAD,
    /// Its reader's control buffer could not be written.
    BadControlBuffer = rds_drop_reason_RDS_DROP_BAD_CONTROL_BUFFER,
    /// Its reader's buffer was too short: the rest was dropped.
    Truncated = rds_drop_reason_RDS_DROP_TRUNCATED,
    /// The transport connection ended in the middle of it.
    CutOff = rds_drop_reason_RDS_DROP_CUT_OFF,
    /// Its socket had no room for it until the connection was destroyed.
    Undelivered = rds_drop_reason_RDS_DROP_UNDELIVERED,
    /// Its sender's socket was closed before it was acknowledged.
    Closed = rds_drop_reason_RDS_DROP_CLOSED,
    /// Its sender took it back.
    Cancelled = rds_drop_reason_RDS_DROP_CANCELLED,
    /// The connection was destroyed before it was acknowledged.
    ConnDestroyed = rds_drop_reason_RDS_DROP_CONN_DESTROYED,
    /// The peer does not have its path any more.
    SurplusPath = rds_drop_reason_RDS_DROP_SURPLUS_PATH,
    /// A message of the protocol, such as the answer to a ping, that could not be queued.
    ControlRefused = rds_drop_reason_RDS_DROP_CONTROL_REFUSED,
    /// The peer broke the protocol.
    BadHeader = rds_drop_reason_RDS_DROP_BAD_HEADER,
    /// The peer had not closed its side in time.
    NotDrained = rds_drop_reason_RDS_DROP_NOT_DRAINED,
    /// It comes from the larger address: a wake-up call.
    WrongWay = rds_drop_reason_RDS_DROP_WRONG_WAY,
    /// It belongs to no connection that could be had.
    NotAccepted = rds_drop_reason_RDS_DROP_NOT_ACCEPTED,
    /// Too many of the same peer wait already.
    Crowded = rds_drop_reason_RDS_DROP_CROWDED,
    /// It waited for its path until the connection was destroyed.
    Parked = rds_drop_reason_RDS_DROP_PARKED,
}

events! {
    /// A path goes from one state to another. Any context.
    pub fn state_change(place: Place, last: i32, curr: i32) = rds_state_change(&place.0, last, curr);

    /// A datagram is queued to be sent. Any context.
    pub fn send(place: Place, datagram: Datagram) = rds_send(&place.0, &datagram.to_c());

    /// A datagram is queued to the socket it was sent to. Any context.
    pub fn receive(place: Place, datagram: Datagram) = rds_receive(&place.0, &datagram.to_c());

    /// A datagram will be sent again. Any context.
    pub fn retransmit(place: Place, datagram: Datagram) = rds_retransmit(&place.0, &datagram.to_c());

    /// A datagram or a transport connection is dropped. Any context.
    pub fn drop(place: Place, datagram: Datagram, reason: Reason) =
        rds_drop(&place.0, &datagram.to_c(), reason as u32);

    /// The own congestion map, with so many ports congested, is about to be sent. Any context.
    pub fn cong_send(place: Place, ports: u32) = rds_cong_send(&place.0, ports);

    /// A congestion map of the peer's has arrived. Any context.
    pub fn cong_receive(place: Place, ports: u32) = rds_cong_receive(&place.0, ports);
}
