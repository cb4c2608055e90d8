// SPDX-License-Identifier: GPL-2.0

//! The socket: its state, its life, and the table of what can be done with it.
//!
//! C counterpart: `struct rds_sock`, `net/rds/af_rds.c`.

use crate::{
    bind::Key,
    cong::CongMap,
    incoming::Incoming,
    maps::MapRef,
    message::Message,
    names,
    netns::NetState,
    path::Path,
    poll,
    recv::{
        self,
        Arrival,
        Overload, //
    },
    recvmsg,
    sendmsg,
    sockopt,
    state::{
        Rds,
        RDS, //
    },
    trace::{
        self,
        Reason, //
    },
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
            Relaxed,
            Release, //
        },
        Arc, //
    },
};
use weft::{
    list::HomeList,
    net::{
        msg::{
            MsgDest,
            MsgSource, //
        },
        ns::Net,
        poll::PollTable,
        proto::{
            Protocol,
            SockAddrBuf, //
        },
        sock::Sock,
        socket::Socket,
        sockopt::{
            OptIn,
            OptOut, //
        },
    },
    new_spinlock_bh,
    sync::bh::SpinLockBh,
    time, //
};
use weft_proto::rds::{
    addr::Addr,
    counters::Core,
    sockaddr::Endpoint,
    uapi::AF_RDS,
    wire::MAX_MESSAGE, //
};

/// A socket, for those that keep it.
pub type RdsSock = Sock<SockState>;

/// A socket in a system call.
pub type UserSock = Socket<SockState>;

/// The only type of socket there is.
const SOCK_SEQPACKET: i32 = 5;

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
    /// Sending failed for congestion since poll last reported something.
    pub saw_congestion: Atomic<bool>,
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

/// Ends the socket: drops what it received, cancels what it sent, frees its address. Sleeps.
fn release(sk: &UserSock) {
    sk.net.remove_socket(sk);
    let mut received = {
        let mut rx = sk.rx.lock();
        rx.closed = true;
        sk.rds.remove_unread(rx.count, rx.bytes);
        core::mem::take(&mut rx.messages)
    };
    while let Some(message) = received.pop_front() {
        trace::drop_incoming(sk, &message, Reason::Unread);
    }
    let completions = sk.zerocopy.lock().close();
    drop(completions);
    // ORDERING: Nobody else is in a system call on this socket.
    if sk.monitoring.load(Relaxed) {
        sk.net.remove_monitor(sk);
    }
    let (bound, attached, cached) = {
        let mut binding = sk.binding.lock();
        (
            binding.bound.take(),
            binding.attached.take(),
            binding.cached.take(),
        )
    };
    if let Some(bound) = &bound {
        // In this order: another socket may take the port as soon as it is free.
        bound.map.set(&sk.net, bound.key.port, false);
        sk.net.binds.remove(&bound.key);
    }
    sk.tx.lock().closed = true;
    sk.cancel_sent(None);
    drop(cached);
    drop(attached);
}

#[vtable]
impl Protocol for SockState {
    const FAMILY: i32 = AF_RDS as i32;
    const NAME: &'static CStr = c"RDS";
    const SOCK_TYPE: i32 = SOCK_SEQPACKET;

    fn new(net: &Net, _type: i32, protocol: i32, _kern: bool) -> Result<impl PinInit<Self, Error>> {
        if protocol != 0 {
            return Err(ESOCKTNOSUPPORT);
        }
        let rds = RDS.get().ok_or(EAFNOSUPPORT)?;
        let state = rds.namespace(net).ok_or(EAFNOSUPPORT)?;
        Ok(Self::init(rds, state))
    }

    fn created(sk: &UserSock) -> Result {
        sk.net.add_socket(sk)
    }

    fn release(sk: &UserSock) {
        release(sk);
    }

    fn bind(sk: &UserSock, addr: &[u8]) -> Result {
        names::bind(sk, addr)
    }

    fn connect(sk: &UserSock, addr: &[u8], _flags: i32) -> Result {
        names::connect(sk, addr)
    }

    fn getname(sk: &UserSock, out: &mut SockAddrBuf, peer: bool) -> Result<usize> {
        names::getname(sk, out, peer)
    }

    #[inline]
    fn sendmsg(sk: &UserSock, msg: &mut MsgSource<'_>, len: usize) -> Result<usize> {
        sendmsg::sendmsg(sk, msg, len)
    }

    #[inline]
    fn recvmsg(sk: &UserSock, msg: &mut MsgDest<'_>, len: usize, flags: i32) -> Result<usize> {
        recvmsg::recvmsg(sk, msg, len, flags)
    }

    #[inline]
    fn poll<'a>(sk: &'a UserSock, table: &PollTable<'a>) -> u32 {
        poll::poll(sk, table)
    }

    fn setsockopt(sk: &UserSock, level: i32, name: i32, val: OptIn<'_>) -> Result {
        sockopt::set(sk, level, name, &val)
    }

    fn getsockopt(sk: &UserSock, level: i32, name: i32, val: &mut OptOut<'_>) -> Result<i32> {
        sockopt::get(sk, level, name, val)
    }

    fn ioctl(sk: &UserSock, cmd: u32, arg: usize) -> Result<i32> {
        sockopt::ioctl(sk, cmd, arg)
    }
}

/// Marks that sending met congestion, which makes poll watch for updates.
#[inline]
pub(crate) fn note_congestion(sk: &RdsSock) {
    // ORDERING: `Release` pairs with `took_congestion_note`.
    sk.saw_congestion.store(true, Release);
}

/// Whether sending met congestion.
#[inline]
pub(crate) fn saw_congestion(sk: &RdsSock) -> bool {
    sk.saw_congestion.load(Acquire)
}
