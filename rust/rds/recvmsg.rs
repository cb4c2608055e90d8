// SPDX-License-Identifier: GPL-2.0

//! `recvmsg`.
//!
//! C counterpart: `rds_recvmsg` in `net/rds/recv.c`. C copies a message and then looks whether another reader was
//! faster; here a reader takes the message off the queue first and puts it back if the copy fails.

use crate::{
    incoming::Incoming,
    sock::{
        RdsSockExt,
        UserSock, //
    },
    sockopt::TracePoints,
    trace::{
        self,
        Reason, //
    },
    zerocopy, //
};
use kernel::{
    list::ListArc,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use weft::{
    net::msg::{
        MsgDest,
        MSG_DONTWAIT,
        MSG_ERRQUEUE,
        MSG_OOB,
        MSG_PEEK,
        MSG_TRUNC, //
    },
    sync::wait::WaitResult, //
};
use weft_proto::rds::{
    counters::Core,
    sockaddr::{
        Endpoint,
        SOCKADDR_STORAGE_LEN, //
    },
    uapi::{
        self,
        cmsg, //
    },
};

/// What an entry of the error queue is labelled with, as in C.
const SOL_IP: i32 = 0;
const IP_RECVERR: i32 = 11;

/// A message to read.
enum Next {
    /// Taken off the queue.
    Taken(ListArc<Incoming>),
    /// Left on the queue.
    Peeked(Arc<Incoming>),
}

impl core::ops::Deref for Next {
    type Target = Incoming;

    #[inline]
    fn deref(&self) -> &Incoming {
        match self {
            Self::Taken(message) => message,
            Self::Peeked(message) => message,
        }
    }
}

/// Receives one message, or a notice. Sleeps.
pub(crate) fn recvmsg(
    sk: &UserSock,
    msg: &mut MsgDest<'_>,
    len: usize,
    flags: i32,
) -> Result<usize> {
    // Flags are bits; the sign bit is the compat one.
    let flags = u32::from_ne_bytes(flags.to_ne_bytes());
    if flags & MSG_OOB != 0 {
        return Ok(0);
    }
    if flags & MSG_ERRQUEUE != 0 {
        return sk.recv_error_queue(msg, len, SOL_IP, IP_RECVERR);
    }
    let nonblock = flags & MSG_DONTWAIT != 0;
    let peek = flags & MSG_PEEK != 0;
    let mut timeout = sk.rcvtimeo(nonblock);
    loop {
        if take_notice(sk, msg)? {
            return Ok(0);
        }
        if let Some(message) = next(sk, peek) {
            return receive(sk, msg, message, flags);
        }
        if !peek && zerocopy::put(sk, msg)? {
            return Ok(0);
        }
        if nonblock {
            return Err(EAGAIN);
        }
        let completions = !peek && zerocopy::wanted(sk, msg);
        match sk.wait_interruptible(timeout, || has_something(sk, completions)) {
            WaitResult::Ready(left) => timeout = left,
            WaitResult::TimedOut => return Err(ETIMEDOUT),
            WaitResult::Signal(error) => return Err(error),
        }
    }
}

fn has_something(sk: &UserSock, completions: bool) -> bool {
    !sk.rx.lock().messages.is_empty()
        || sk.monitor.lock().freed != 0
        || (completions && !sk.zerocopy.lock().is_empty())
}

/// Reports ports that became free, if the application monitors them and there are any.
#[inline]
fn take_notice(sk: &UserSock, msg: &mut MsgDest<'_>) -> Result<bool> {
    // ORDERING: A setting on its own.
    if !sk.monitoring.load(Relaxed) {
        return Ok(false);
    }
    let freed = sk.monitor.lock().freed;
    if freed == 0 {
        return Ok(false);
    }
    msg.put_cmsg(uapi::SOL_RDS, cmsg::CONG_UPDATE, &freed.to_ne_bytes())?;
    sk.monitor.lock().freed &= !freed;
    Ok(true)
}

/// The first message of the queue. Taking it may make the port free again.
#[inline]
fn next(sk: &UserSock, peek: bool) -> Option<Next> {
    let mut rx = sk.rx.lock();
    if peek {
        let first = rx.messages.iter().next()?;
        return Some(Next::Peeked(first.into()));
    }
    let message = rx.messages.pop_front()?;
    let len = message.len();
    rx.bytes = rx.bytes.saturating_sub(len);
    rx.count = rx.count.saturating_sub(1);
    sk.rds.remove_unread(1, len);
    if rx.congested {
        let bound = sk.binding.lock().bound.clone();
        if let Some(bound) = bound {
            sk.charge_received(&mut rx, &bound.map, bound.key.port);
        }
    }
    drop(rx);
    sk.rds.count_by(Core::RecvBytesFreedFromSock, len);
    Some(Next::Taken(message))
}

/// Puts a message back that could not be copied.
fn put_back(sk: &UserSock, message: Next) {
    if let Next::Taken(message) = message {
        let mut rx = sk.rx.lock();
        if rx.closed {
            drop(rx);
            trace::drop_incoming(sk, &message, Reason::Unread);
            return;
        }
        rx.bytes += message.len();
        rx.count += 1;
        sk.rds.add_unread(1, message.len());
        rx.messages.push_front(message);
        drop(rx);
        // Another reader may have gone to sleep meanwhile.
        sk.wake_sleepers();
    }
}

/// Some or all of a message is lost to its reader, unless it was left on the queue.
#[cold]
fn lose(sk: &UserSock, message: &Next, reason: Reason) {
    if let Next::Taken(message) = message {
        trace::drop_incoming(sk, message, reason);
    }
}

/// Copies a message and what comes with it to the user.
#[inline]
fn receive(sk: &UserSock, msg: &mut MsgDest<'_>, message: Next, flags: u32) -> Result<usize> {
    let mut copied = match message.copy_to(msg.iter()) {
        Ok(copied) => copied,
        Err(error) => {
            put_back(sk, message);
            return Err(error);
        }
    };
    sk.rds.count_by(Core::CopyToUser, copied);
    let truncated = copied < message.len();
    if truncated {
        msg.flags_or(MSG_TRUNC);
        if flags & MSG_TRUNC != 0 {
            copied = message.len();
        }
    }
    if msg.has_control() {
        put_control(sk, msg, &message, flags)
            .inspect_err(|_| lose(sk, &message, Reason::BadControlBuffer))?;
    }
    if truncated {
        lose(sk, &message, Reason::Truncated);
    }
    sk.rds.count(Core::RecvDelivered);
    if msg.wants_name() {
        put_name(sk, msg, &message);
    }
    Ok(copied)
}

/// Adds the control messages that the application asked for.
fn put_control(sk: &UserSock, msg: &mut MsgDest<'_>, message: &Incoming, flags: u32) -> Result {
    if let (Some(timestamp), true) = (message.timestamp, sk.rcvtstamp_flag()) {
        msg.put_timestamp(timestamp, sk.tstamp_new_flag())?;
    }
    let points = TracePoints::of(sk);
    if !points.is_empty() {
        let record = points.record(&message.trace, weft::time::local_clock());
        msg.put_cmsg(uapi::SOL_RDS, cmsg::RXPATH_LATENCY, &record)?;
    }
    if flags & MSG_PEEK == 0 {
        zerocopy::put(sk, msg)?;
    }
    Ok(())
}

#[inline]
fn put_name(sk: &UserSock, msg: &mut MsgDest<'_>, message: &Incoming) {
    let scope_id = if message.source.is_v4_mapped() {
        0
    } else {
        sk.binding.lock().interface()
    };
    let from = Endpoint {
        addr: message.source,
        port: message.header.sport(),
        scope_id,
    };
    let mut name = [0; SOCKADDR_STORAGE_LEN];
    let len = from.to_sockaddr(&mut name);
    msg.set_name(name.get(..len).unwrap_or(&[]));
}
