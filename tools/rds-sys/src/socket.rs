// SPDX-License-Identifier: GPL-2.0

//! The RDS socket.

use crate::addr::RawAddr;
use crate::control::{ControlBuffer, ZerocopyCookie};
use crate::{sys, uapi};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An RDS socket: one local address and port from which datagrams go to any number of peers.
///
/// Delivery to a bound port is reliable and in order for each pair of sockets. A message to a port
/// that nobody has bound is dropped by the peer without notice.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

/// What one receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes written to the buffer.
    pub len: usize,
    /// Who sent the message; `None` if only control messages arrived.
    pub from: Option<SocketAddr>,
    /// The message was longer than the buffer; its rest is lost.
    pub truncated: bool,
    /// The control messages did not fit; the rest is lost.
    pub control_truncated: bool,
}

/// How to send one message.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendFlags {
    /// Fail with `EAGAIN` or `ENOBUFS` instead of waiting.
    pub dont_wait: bool,
    /// Send from the caller's pages; the end is reported under this name. The socket needs
    /// [`Socket::set_zerocopy`], and the bytes must stay as they are until then.
    pub zerocopy: Option<u32>,
}

impl Socket {
    /// Makes a socket. Fails with `EAFNOSUPPORT` if no RDS module is loaded.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        Ok(Self {
            fd: sys::socket(uapi::AF_RDS, kind)?,
        })
    }

    /// Makes a socket that is bound to `addr`; port 0 lets the kernel choose one.
    pub fn bound(addr: SocketAddr) -> io::Result<Self> {
        let socket = Self::new()?;
        socket.bind(addr)?;
        Ok(socket)
    }

    /// Binds the socket, once and for ever.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        sys::bind(self.as_fd(), &addr.into())
    }

    /// Sets where [`Socket::send`] sends to; nothing is transmitted.
    pub fn connect(&self, addr: SocketAddr) -> io::Result<()> {
        sys::connect(self.as_fd(), &addr.into())
    }

    /// The bound address, or `None` if the socket is not bound.
    pub fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        let addr = sys::local_addr(self.as_fd())?.get();
        Ok(addr.filter(|addr| !addr.ip().is_unspecified()))
    }

    /// Sends to the connected destination.
    pub fn send(&self, data: &[u8], flags: SendFlags) -> io::Result<usize> {
        self.sendmsg(data, None, flags)
    }

    /// Sends to `to`.
    pub fn send_to(&self, data: &[u8], to: SocketAddr, flags: SendFlags) -> io::Result<usize> {
        self.sendmsg(data, Some(&to.into()), flags)
    }

    fn sendmsg(&self, data: &[u8], to: Option<&RawAddr>, flags: SendFlags) -> io::Result<usize> {
        let mut bits = if flags.dont_wait {
            libc::MSG_DONTWAIT
        } else {
            0
        };
        let Some(cookie) = flags.zerocopy else {
            return sys::sendmsg(self.as_fd(), data, to, &[], bits);
        };
        bits |= libc::MSG_ZEROCOPY;
        let cookie = ZerocopyCookie::new(cookie);
        sys::sendmsg(self.as_fd(), data, to, &cookie.bytes, bits)
    }

    /// Receives one message, or notifications, or (zerocopy only) both.
    ///
    /// Control messages are left in `control`. If [`Received::from`] is `None` there was no message,
    /// which is not the same as an empty one.
    pub fn recv(
        &self,
        data: &mut [u8],
        control: &mut ControlBuffer,
        dont_wait: bool,
    ) -> io::Result<Received> {
        let bits = if dont_wait { libc::MSG_DONTWAIT } else { 0 };
        let mut from = RawAddr::room();
        let (len, flags) = sys::recvmsg(self.as_fd(), data, &mut from, control, bits)?;
        Ok(Received {
            len,
            from: from.get(),
            truncated: flags & libc::MSG_TRUNC != 0,
            control_truncated: flags & libc::MSG_CTRUNC != 0,
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a send failed because the destination is congested: its socket does not read fast enough.
pub fn is_congested(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}
