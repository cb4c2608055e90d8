// SPDX-License-Identifier: GPL-2.0

//! `recvmsg`.
//!
//! C counterpart: `rds_recvmsg` in `net/rds/recv.c`. As there, a reader copies the first message and takes it off the
//! queue when that is done, if no other reader was faster. To take it before and put it back if the copy fails would let
//! another reader have a later message first.

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
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc,
        ArcBorrow, //
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
        if let Some(message) = first(sk) {
            let copied = message.copy_to(msg.iter())?;
            if peek || take(sk, &message) {
                return finish(sk, msg, &message, copied, flags);
            }
            // Another reader was faster.
            sk.rds.count(Core::RecvDeliverRaced);
            msg.rewind();
            continue;
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

/// The first message of the queue, left there.
#[inline]
fn first(sk: &UserSock) -> Option<Arc<Incoming>> {
    sk.rx.lock().messages.iter().next().map(Arc::from)
}

/// Takes a message off the queue if it is still the first there. That may make the port free again.
#[inline]
fn take(sk: &UserSock, message: &Arc<Incoming>) -> bool {
    let mut rx = sk.rx.lock();
    let is_first = |first: ArcBorrow<'_, Incoming>| ptr::eq(&*first, &**message);
    if !rx.messages.iter().next().is_some_and(is_first) {
        return false;
    }
    let taken = rx.messages.pop_front();
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
    drop(taken);
    sk.rds.count_by(Core::RecvBytesFreedFromSock, len);
    true
}

/// Some or all of a message is lost to its reader, unless it was left on the queue.
#[cold]
fn lose(sk: &UserSock, message: &Incoming, flags: u32, reason: Reason) {
    if flags & MSG_PEEK == 0 {
        trace::drop_incoming(sk, message, reason);
    }
}

/// Tells the reader of a message of which `copied` bytes were copied what there is to tell; returns what the call does.
#[inline]
fn finish(
    sk: &UserSock,
    msg: &mut MsgDest<'_>,
    message: &Incoming,
    mut copied: usize,
    flags: u32,
) -> Result<usize> {
    sk.rds.count_by(Core::CopyToUser, copied);
    let truncated = copied < message.len();
    if truncated {
        msg.flags_or(MSG_TRUNC);
        if flags & MSG_TRUNC != 0 {
            copied = message.len();
        }
    }
    if msg.has_control() {
        put_control(sk, msg, message, flags)
            .inspect_err(|_| lose(sk, message, flags, Reason::BadControlBuffer))?;
    }
    if truncated {
        lose(sk, message, flags, Reason::Truncated);
    }
    sk.rds.count(Core::RecvDelivered);
    if msg.wants_name() {
        put_name(sk, msg, message);
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
