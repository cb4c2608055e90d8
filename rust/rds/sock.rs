// SPDX-License-Identifier: GPL-2.0

//! The socket and its state.
//!
//! C counterpart: `struct rds_sock`, `net/rds/af_rds.c`.

mod ext;
mod protocol;

pub use ext::RdsSockExt;

use crate::{
    bind::Key,
    incoming::Incoming,
    maps::MapRef,
    message::Message,
    netns::NetState,
    path::Path,
    state::Rds,
    transport::Attached,
    zerocopy::Completions, //
};
use kernel::{
    list::List,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        barrier::{
            smp_mb,
            Full, //
        },
        Arc, //
    },
};
use weft::{
    list::HomeList,
    net::{
        sock::Sock,
        socket::Socket, //
    },
    new_spinlock_bh,
    sync::bh::SpinLockBh,
    time, //
};
use weft_proto::rds::{
    addr::Addr,
    sockaddr::Endpoint,
    wire::MAX_MESSAGE, //
};

/// A socket, for those that keep it.
pub type RdsSock = Sock<SockState>;

/// A socket in a system call.
pub type UserSock = Socket<SockState>;

/// Each message counts as at least this many bytes towards the number of messages a socket may have queued, so that
/// empty ones do not use memory for free. C has no such limit.
const LEAST_CHARGE: usize = 64;

/// How many times the receive limit in bytes, and in messages, may be unread before a transport reads no further.
const OVERLOAD_BYTES: usize = 8;
const OVERLOAD_COUNT: usize = 4;

/// How many messages a buffer of `bytes` may hold.
#[inline]
fn most_messages(bytes: usize) -> usize {
    (bytes / LEAST_CHARGE).max(64)
}

/// Where a socket is bound.
#[derive(Clone)]
pub struct Bound {
    /// What it is found under.
    pub key: Key,
    /// Congestion map of the address.
    pub map: MapRef,
}

/// Addresses and what follows from them.
pub struct Binding {
    /// Own address and port.
    pub bound: Option<Bound>,
    /// Transport, chosen by option or by the bound address.
    pub attached: Option<Attached>,
    /// Destination of messages without one.
    pub peer: Option<Endpoint>,
    /// Interface that a link-local `connect` named, else 0.
    pub scope_id: u32,
    /// Type of service.
    pub tos: u8,
    /// Path of the message sent last.
    pub cached: Option<(Addr, Arc<Path>)>,
}

/// What a socket has sent and is charged for.
pub struct Tx {
    /// Messages that are not acknowledged.
    pub messages: HomeList<Message, 0>,
    /// Their payload bytes.
    pub bytes: usize,
    /// How many.
    pub count: usize,
    /// The socket is closed: nothing is added any more.
    pub closed: bool,
}

impl Binding {
    /// The interface of link-local addresses: the bound one, else the one that `connect` named; 0 if none.
    pub fn interface(&self) -> u32 {
        match &self.bound {
            Some(bound) if bound.key.scope_id != 0 => bound.key.scope_id,
            _ => self.scope_id,
        }
    }
}

impl Tx {
    /// Whether another message may be queued.
    #[inline]
    pub fn has_room(&self, limit: usize) -> bool {
        self.bytes < limit && self.count < most_messages(limit)
    }
}

/// What a socket has received.
pub struct Rx {
    /// Messages that were not read.
    pub messages: List<Incoming>,
    /// Their payload bytes.
    pub bytes: usize,
    /// How many.
    pub count: usize,
    /// The port is marked congested.
    pub congested: bool,
    /// The socket is closed: what arrives is dropped.
    pub closed: bool,
}

impl Rx {
    /// Whether so much is unread that a peer must have ignored for long that the port is congested, or a great many
    /// senders have met. `limit` is what the socket asked for.
    #[inline]
    fn is_overloaded(&self, limit: usize) -> bool {
        self.bytes
            > limit
                .saturating_mul(OVERLOAD_BYTES)
                .max(MAX_MESSAGE as usize)
            || self.count > most_messages(limit).saturating_mul(OVERLOAD_COUNT)
    }
}

/// Congestion monitoring.
#[derive(Default)]
pub struct Monitor {
    /// Ports (modulo 64) to which sending failed.
    pub waiting: u64,
    /// Ports (modulo 64) that are free again and not reported yet.
    pub freed: u64,
}

/// The state of a socket.
#[pin_data]
pub struct SockState {
    /// The module.
    pub rds: Arc<Rds>,
    /// The namespace.
    pub net: Arc<NetState>,
    /// Addresses.
    #[pin]
    pub binding: SpinLockBh<Binding>,
    /// Sending.
    #[pin]
    pub tx: SpinLockBh<Tx>,
    /// Receiving.
    #[pin]
    pub rx: SpinLockBh<Rx>,
    /// Congestion monitoring.
    #[pin]
    pub monitor: SpinLockBh<Monitor>,
    /// Zero-copy messages whose memory is free again.
    #[pin]
    pub zerocopy: SpinLockBh<Completions>,
    /// Whether freed ports are reported by message instead of by poll.
    pub monitoring: Atomic<bool>,
    /// Whether errors of remote memory operations are reported.
    pub report_errors: Atomic<bool>,
    /// Sending met congestion since poll last told of an update.
    pub saw_congestion: Atomic<bool>,
    /// The namespace has it among the sockets that have met congestion.
    pub(crate) met_congestion: Atomic<bool>,
    /// Congestion generation that poll reported last.
    pub seen_generation: Atomic<u32>,
    /// Latency points to report with each message: bits 0..2 count, then 2 bits for each position.
    pub trace_points: Atomic<u32>,
    /// Start value of the path hash.
    pub hash_start: u32,
}

impl SockState {
    fn init(rds: Arc<Rds>, net: Arc<NetState>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            rds,
            net,
            binding <- new_spinlock_bh!(Binding {
                bound: None,
                attached: None,
                peer: None,
                scope_id: 0,
                tos: 0,
                cached: None,
            }, "rds_binding"),
            tx <- new_spinlock_bh!(Tx {
                messages: HomeList::new(),
                bytes: 0,
                count: 0,
                closed: false,
            }, "rds_sock_tx"),
            rx <- new_spinlock_bh!(Rx {
                messages: List::new(),
                bytes: 0,
                count: 0,
                congested: false,
                closed: false,
            }, "rds_sock_rx"),
            monitor <- new_spinlock_bh!(Monitor::default(), "rds_sock_monitor"),
            zerocopy <- new_spinlock_bh!(Completions::default(), "rds_sock_zerocopy"),
            monitoring: Atomic::new(false),
            report_errors: Atomic::new(false),
            saw_congestion: Atomic::new(false),
            met_congestion: Atomic::new(false),
            seen_generation: Atomic::new(0),
            trace_points: Atomic::new(0),
            hash_start: time::random_u32(),
        }? Error)
    }

    /// Ports became free: tells the application if it waits for one of them. Up to softirq.
    pub(crate) fn note_freed(&self, ports: u64) -> bool {
        let mut monitor = self.monitor.lock();
        monitor.freed |= monitor.waiting & ports;
        monitor.waiting &= !ports;
        monitor.freed != 0
    }
}

/// Marks that sending met congestion: who waits for something on the socket is woken by the next update, until `poll` has
/// told of one. Wherever the waiting began: what was registered with `epoll` long ago is not looked at before.
///
/// `ENOMEM` if that cannot be seen to. May sleep.
pub(crate) fn note_congestion(sk: &RdsSock) -> Result {
    // ORDERING: `Release` pairs with `saw_congestion`.
    sk.saw_congestion.store(true, Release);
    if !sk.met_congestion.load(Acquire) {
        // Two senders may both do so, which makes no difference.
        sk.net.add_congested(sk)?;
        // ORDERING: `Release`: who sees this finds the socket there.
        sk.met_congestion.store(true, Release);
    }
    // ORDERING: The caller looks at the map once more. Either it sees an update, or that sees the mark.
    smp_mb(Full);
    Ok(())
}

/// Whether sending met congestion.
#[inline]
pub(crate) fn saw_congestion(sk: &RdsSock) -> bool {
    sk.saw_congestion.load(Acquire)
}
