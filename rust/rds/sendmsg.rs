// SPDX-License-Identifier: GPL-2.0

//! `sendmsg`.
//!
//! C counterpart: `rds_sendmsg` in `net/rds/send.c`; the order of the checks is part of the interface. Unlike C,
//! `MSG_NOSIGNAL` and `MSG_EOR` (which `write` implies) are accepted, and `SO_SNDTIMEO` holds while the destination is
//! congested, too.

use crate::{
    conn::{
        Conn,
        ConnKey, //
    },
    idle::InUse,
    message::{
        Envelope,
        Message,
        Payload, //
    },
    names,
    operations::Operations,
    path::Path,
    queue::NotQueued,
    sock::{
        self,
        RdsSockExt,
        UserSock, //
    },
    transport::{
        Kind,
        TransportRef, //
    },
    zerocopy::Completion, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use weft::{
    mm::user_pages::UserPages,
    net::msg::{
        MsgSource,
        MSG_CMSG_COMPAT,
        MSG_DONTWAIT,
        MSG_EOR,
        MSG_NOSIGNAL,
        MSG_ZEROCOPY, //
    },
    sync::wait::{
        Mode,
        WaitResult,
        MAX_TIMEOUT, //
    },
};
use weft_proto::rds::{
    addr::Addr,
    cong,
    counters::Core,
    sockaddr,
    wire::MAX_MESSAGE, //
};

/// How often a message is given another path because their number has changed.
const MOST_MOVES: usize = 8;

/// Flags that a sender may set.
const ACCEPTED_FLAGS: u32 = MSG_DONTWAIT | MSG_CMSG_COMPAT | MSG_ZEROCOPY | MSG_NOSIGNAL | MSG_EOR;

/// Where a message goes.
struct Route {
    source: Addr,
    sport: u16,
    destination: Addr,
    dport: u16,
    interface: u32,
    tos: u8,
    cached: Option<Arc<Path>>,
}

/// Sends one message. Sleeps.
pub(crate) fn sendmsg(sk: &UserSock, msg: &mut MsgSource<'_>, len: usize) -> Result<usize> {
    if msg.flags() & !ACCEPTED_FLAGS != 0 {
        return Err(EOPNOTSUPP);
    }
    let mut route = route(sk, msg)?;
    let operations = Operations::parse(msg)?;
    if len.max(operations.remote_bytes) > MAX_MESSAGE as usize || len > sk.send_limit() {
        return Err(EMSGSIZE);
    }
    operations.check(sk, msg)?;
    let (payload, completion) = payload(sk, msg, len, &operations)?;
    let path = find_path(sk, &mut route)?;
    let nonblock = msg.flags() & MSG_DONTWAIT != 0;
    wake_path(&path);
    operations.refuse(completion.is_some())?;
    if path.conn.is_destroying() {
        return Err(EAGAIN);
    }
    let mut timeout = sk.sndtimeo(nonblock);
    wait_for_congestion(sk, &path, route.dport, nonblock, &mut timeout)?;
    let envelope = Envelope {
        sport: route.sport,
        dport: route.dport,
        flags: 0,
        extensions: [0; 16],
    };
    let message = Message::new(
        path.clone(),
        Some(sk.to_aref()),
        envelope,
        payload,
        completion,
        GFP_KERNEL,
    )?;
    let (path, message) = place(sk, &mut route, path, message, nonblock, timeout)?;
    if let Some(completion) = &message.completion {
        completion.queued();
    }
    sk.rds.count(Core::SendQueued);
    path.transmit_or_defer();
    Ok(len)
}

/// What a message carries, and what is to be told when the memory is free again if it is sent from where it is. Sleeps.
#[inline]
fn payload(
    sk: &UserSock,
    msg: &mut MsgSource<'_>,
    len: usize,
    operations: &Operations,
) -> Result<(Payload, Option<Completion>)> {
    let zerocopy = len > 0 && msg.flags() & MSG_ZEROCOPY != 0 && sk.zerocopy_flag();
    match operations.zerocopy_cookie {
        Some(cookie) if zerocopy => {
            let completion = Completion::new(sk.to_aref(), cookie)?;
            let pages = UserPages::take(msg.iter(), len)?;
            Ok((Payload::User(pages), Some(completion)))
        }
        _ => {
            let payload = Payload::copy_from(msg.iter(), len)?;
            sk.rds.count_by(Core::CopyFromUser, len);
            Ok((payload, None))
        }
    }
}

/// Where a message goes, from its own address or the connected one.
#[inline]
fn route(sk: &UserSock, msg: &MsgSource<'_>) -> Result<Route> {
    let named = match msg.name() {
        Some(name) => Some(sockaddr::check_send(name).map_err(names::errno)?),
        None => None,
    };
    let binding = sk.binding.lock();
    let (Some(bound), Some(to)) = (&binding.bound, named.or(binding.peer)) else {
        return Err(ENOTCONN);
    };
    let bound_scope = binding.interface();
    let mut scope_id = bound_scope;
    if let Some(named) = named {
        if named.addr.is_v4_mapped() != bound.key.address.is_v4_mapped() {
            return Err(EOPNOTSUPP);
        }
        if named.scope_id != 0 {
            if bound_scope != 0 && bound_scope != named.scope_id {
                return Err(EINVAL);
            }
            scope_id = named.scope_id;
        }
    }
    let interface = ConnKey::interface(&bound.key.address, &to.addr, scope_id);
    let cached = match &binding.cached {
        Some((destination, path))
            if *destination == to.addr
                && path.conn.key.tos == binding.tos
                && path.conn.key.interface == interface =>
        {
            Some(path.clone())
        }
        _ => None,
    };
    Ok(Route {
        source: bound.key.address,
        sport: bound.key.port,
        destination: to.addr,
        dport: to.port,
        interface,
        tos: binding.tos,
        cached: cached.filter(|path| !path.conn.is_destroying()),
    })
}

/// The path for a message: that of the last one, if it is still the socket's.
#[inline]
fn find_path(sk: &UserSock, route: &mut Route) -> Result<InUse> {
    let cached = route.cached.take().filter(|path| {
        usize::from(path.index) == path.conn.path_index_of(route.sport, sk.hash_start)
    });
    match cached.and_then(Path::enter) {
        Some(path) => Ok(path),
        None => look_up_path(sk, route),
    }
}

/// The path for a message, its connection made if need be; remembered for the next one.
fn look_up_path(sk: &UserSock, route: &Route) -> Result<InUse> {
    let transport = transport(sk)?;
    let key = ConnKey {
        peer: route.destination,
        local: route.source,
        kind: transport.kind(),
        tos: route.tos,
        interface: route.interface,
    };
    let path = Conn::enter(&sk.net, key, false, |conn| {
        conn.path_index_of(route.sport, sk.hash_start)
    })?;
    let replaced = sk
        .binding
        .lock()
        .cached
        .replace((route.destination, path.clone()));
    drop(replaced);
    Ok(path)
}

/// The transport that the socket is attached to.
pub(crate) fn transport(sk: &UserSock) -> Result<TransportRef> {
    let binding = sk.binding.lock();
    let attached = binding.attached.as_ref().ok_or(ENOTCONN)?;
    Ok(attached.transport.clone())
}

/// Has a path that is down come up.
#[inline]
fn wake_path(path: &Arc<Path>) {
    if path.is_up() {
        return;
    }
    let conn = &path.conn;
    if conn.key.kind != Kind::Loop {
        // Path 0 is what the peer answers on, and what it can be called up on.
        if let Some(first) = conn.path(0).filter(|first| !first.is_up()) {
            conn.probe(&first);
            first.connect_if_down();
        }
    }
    path.connect_if_down();
}

/// Waits until the destination port takes messages.
#[inline]
fn wait_for_congestion(
    sk: &UserSock,
    path: &Arc<Path>,
    port: u16,
    nonblock: bool,
    timeout: &mut i64,
) -> Result {
    let map = &path.conn.peer_map;
    if !map.test(port) {
        return Ok(());
    }
    sock::note_congestion(sk)?;
    // A path that was given up before this could be noticed is to come up for the news.
    wake_path(path);
    if nonblock {
        // ORDERING: A setting on its own.
        if sk.monitoring.load(Relaxed) {
            sk.monitor.lock().waiting |= cong::monitor_bit(port);
        }
        // An update may have come before it was noted who wants to know of it.
        if !map.test(port) {
            return Ok(());
        }
        sk.rds.count(Core::CongSendError);
        return Err(ENOBUFS);
    }
    sk.rds.count(Core::CongSendBlocked);
    let gone = || path.conn.is_destroying();
    match map
        .waiters
        .wait(Mode::Interruptible, *timeout, || !map.test(port) || gone())
    {
        WaitResult::Ready(_) if gone() => Err(ENETUNREACH),
        WaitResult::Ready(left) => {
            *timeout = left;
            Ok(())
        }
        WaitResult::TimedOut => Err(ETIMEDOUT),
        // Begun anew by the kernel, a call would have its whole time again.
        WaitResult::Signal(_) if *timeout != MAX_TIMEOUT => Err(EINTR),
        WaitResult::Signal(error) => Err(error),
    }
}

/// Queues a message; if the number of paths changes meanwhile, on the path that the socket has got then.
fn place(
    sk: &UserSock,
    route: &mut Route,
    mut path: InUse,
    mut message: Arc<Message>,
    nonblock: bool,
    mut timeout: i64,
) -> Result<(InUse, Arc<Message>)> {
    for _ in 0..MOST_MOVES {
        match queue_or_wait(sk, &path, &message, nonblock, &mut timeout)? {
            Placing::Moved => {
                path = find_path(sk, route)?;
                wake_path(&path);
                message = Message::redirect(message, path.clone()).ok_or(EAGAIN)?;
            }
            _ => return Ok((path, message)),
        }
    }
    Err(EAGAIN)
}

/// What came of an attempt to queue a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placing {
    Queued,
    /// The send buffer has no room.
    Full,
    /// The socket sends on another path by now.
    Moved,
    /// The path is destroyed.
    Destroyed,
}

/// Queues a message, waiting for room in the send buffer.
#[inline]
fn queue_or_wait(
    sk: &UserSock,
    path: &Arc<Path>,
    message: &Arc<Message>,
    nonblock: bool,
    timeout: &mut i64,
) -> Result<Placing> {
    let mut placing = try_queue(sk, path, message);
    if placing == Placing::Full && !path.conn.is_destroying() {
        sk.rds.count(Core::SendQueueFull);
        if nonblock {
            return Err(EAGAIN);
        }
        let mut tried = || {
            placing = try_queue(sk, path, message);
            placing != Placing::Full
        };
        match sk.wait_interruptible(*timeout, &mut tried) {
            WaitResult::Ready(left) => *timeout = left,
            WaitResult::TimedOut => return Err(ETIMEDOUT),
            WaitResult::Signal(error) => return Err(error),
        }
    }
    match placing {
        Placing::Full | Placing::Destroyed => Err(ENETUNREACH),
        placing => Ok(placing),
    }
}

/// Puts a message on its socket's list and its path's queue, if the socket has room for it.
#[inline]
fn try_queue(sk: &UserSock, path: &Arc<Path>, message: &Arc<Message>) -> Placing {
    let limit = sk.send_limit();
    let mut tx = sk.tx.lock();
    if !tx.has_room(limit) {
        return Placing::Full;
    }
    // A new message is on no list.
    if tx.messages.push_back(message.clone()).is_err() {
        return Placing::Full;
    }
    tx.bytes += message.len();
    tx.count += 1;
    let is_right = || {
        let wanted = path
            .conn
            .path_index_of(message.envelope.sport, sk.hash_start);
        usize::from(path.index) == wanted
    };
    let Err(reason) = path.enqueue(message, is_right) else {
        return Placing::Queued;
    };
    drop(tx.messages.remove(message));
    tx.bytes -= message.len();
    tx.count -= 1;
    match reason {
        NotQueued::Destroyed => Placing::Destroyed,
        NotQueued::Moved => Placing::Moved,
    }
}
