// SPDX-License-Identifier: GPL-2.0

//! The table of what can be done with a socket, and how it ends.
//!
//! C counterpart: `rds_proto_ops`, `rds_release`.

use super::{
    RdsSockExt,
    SockState,
    UserSock, //
};
use crate::{
    names, poll, recvmsg, sendmsg, sockopt,
    state::RDS,
    trace::{
        self,
        Reason, //
    },
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};
use weft::net::{
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
    sockopt::{
        OptIn,
        OptOut, //
    },
};
use weft_proto::rds::{
    counters::Core,
    uapi::AF_RDS, //
};

/// The only type of socket there is.
const SOCK_SEQPACKET: i32 = 5;

/// Ends the socket: drops what it received, cancels what it sent, frees its address. Sleeps.
fn release(sk: &UserSock) {
    sk.net.remove_socket(sk);
    let mut received = {
        let mut rx = sk.rx.lock();
        rx.closed = true;
        sk.rds.remove_unread(rx.count, rx.bytes);
        sk.rds.count_by(Core::RecvBytesFreedFromSock, rx.bytes);
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
    if sk.met_congestion.load(Relaxed) {
        sk.net.remove_congested(sk);
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
