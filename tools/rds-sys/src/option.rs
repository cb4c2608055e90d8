// SPDX-License-Identifier: GPL-2.0

//! Socket options.

use crate::addr::RawAddr;
use crate::{sys, uapi, Socket};
use std::ffi::{c_int, c_ulong};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// What carries the messages of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RDMA (InfiniBand, RoCE).
    Rdma,
    /// TCP.
    Tcp,
    /// The loopback inside the kernel. It can be read but not chosen: binding to a loopback address
    /// chooses it.
    Loopback,
    /// A number this crate does not know.
    Other(i32),
}

impl Transport {
    fn from_number(number: i32) -> Option<Self> {
        match number {
            -1 => None,
            0 => Some(Self::Rdma),
            2 => Some(Self::Tcp),
            3 => Some(Self::Loopback),
            other => Some(Self::Other(other)),
        }
    }

    fn number(self) -> i32 {
        match self {
            Self::Rdma => 0,
            Self::Tcp => 2,
            Self::Loopback => 3,
            Self::Other(other) => other,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rdma => f.write_str("rdma"),
            Self::Tcp => f.write_str("tcp"),
            Self::Loopback => f.write_str("loop"),
            Self::Other(number) => write!(f, "transport {number}"),
        }
    }
}

impl Socket {
    /// Chooses the transport; only before [`Socket::bind`]. Loads its module if it can.
    pub fn set_transport(&self, transport: Transport) -> io::Result<()> {
        self.set_int(uapi::SOL_RDS, uapi::SO_RDS_TRANSPORT, transport.number())
    }

    /// The transport, or `None` if the socket has none yet.
    pub fn transport(&self) -> io::Result<Option<Transport>> {
        let number = self.int(uapi::SOL_RDS, uapi::SO_RDS_TRANSPORT)?;
        Ok(Transport::from_number(number))
    }

    /// Switches reports about failed RDMA operations that did not ask for one.
    pub fn set_recverr(&self, on: bool) -> io::Result<()> {
        self.set_int(uapi::SOL_RDS, uapi::RDS_RECVERR, c_int::from(on))
    }

    /// Whether failed RDMA operations are reported in any case.
    pub fn recverr(&self) -> io::Result<bool> {
        self.int(uapi::SOL_RDS, uapi::RDS_RECVERR)
            .map(|value| value != 0)
    }

    /// Switches [`crate::Control::CongestionUpdate`] messages.
    ///
    /// With them a socket whose send failed with `ENOBUFS` is told when to try again. Without them it
    /// only becomes readable when the congestion of any port of any peer changes.
    pub fn set_cong_monitor(&self, on: bool) -> io::Result<()> {
        self.set_int(uapi::SOL_RDS, uapi::RDS_CONG_MONITOR, c_int::from(on))
    }

    /// Takes back all messages to `destination` that the peer has not acknowledged.
    pub fn cancel_sent_to(&self, destination: SocketAddr) -> io::Result<()> {
        let raw = RawAddr::from(destination);
        // CAST: at most 128.
        let value = &raw.bytes[..raw.len as usize];
        sys::setsockopt(self.as_fd(), uapi::SOL_RDS, uapi::RDS_CANCEL_SENT_TO, value)
    }

    /// Allows zerocopy sends.
    pub fn set_zerocopy(&self, on: bool) -> io::Result<()> {
        self.set_int(libc::SOL_SOCKET, libc::SO_ZEROCOPY, c_int::from(on))
    }

    /// Sets the type of service; only on a bound socket that has not sent anything.
    pub fn set_tos(&self, tos: u8) -> io::Result<()> {
        // The kernel reads the first byte of the argument, rds-tools pass a long.
        let mut value = c_ulong::from_ne_bytes(first_byte(tos));
        sys::ioctl_ulong(self.as_fd(), uapi::SIOCRDSSETTOS, &mut value)
    }

    /// The type of service.
    pub fn tos(&self) -> io::Result<u8> {
        let mut value = 0;
        sys::ioctl_ulong(self.as_fd(), uapi::SIOCRDSGETTOS, &mut value)?;
        Ok(value.to_ne_bytes()[0])
    }

    /// Asks for room for `bytes` of unacknowledged payload and returns the room there is.
    ///
    /// The limit of the system (`net.core.wmem_max`) is exceeded if the process may do that.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<usize> {
        self.set_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes)?;
        self.send_buffer()
    }

    /// Payload bytes that may be queued; this is also the longest message the socket can send.
    pub fn send_buffer(&self) -> io::Result<usize> {
        self.buffer(libc::SO_SNDBUF)
    }

    /// Asks for room for `bytes` of unread payload and returns the room there is.
    pub fn set_recv_buffer(&self, bytes: usize) -> io::Result<usize> {
        self.set_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, bytes)?;
        self.recv_buffer()
    }

    /// Unread payload bytes above which the port is congested.
    pub fn recv_buffer(&self) -> io::Result<usize> {
        self.buffer(libc::SO_RCVBUF)
    }

    /// How long a receive waits before it fails with `ETIMEDOUT`; zero means for ever.
    pub fn set_recv_timeout(&self, limit: Duration) -> io::Result<()> {
        self.set_time(libc::SO_RCVTIMEO, limit)
    }

    /// How long a send waits for room before it fails with `ETIMEDOUT`; zero means for ever.
    pub fn set_send_timeout(&self, limit: Duration) -> io::Result<()> {
        self.set_time(libc::SO_SNDTIMEO, limit)
    }

    /// Switches waiting off or on for all calls.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        sys::set_nonblocking(self.as_fd(), on)
    }

    fn set_int(&self, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
        sys::setsockopt(self.as_fd(), level, name, &value.to_ne_bytes())
    }

    fn int(&self, level: c_int, name: c_int) -> io::Result<c_int> {
        let mut value = [0; 4];
        sys::getsockopt(self.as_fd(), level, name, &mut value).0?;
        Ok(c_int::from_ne_bytes(value))
    }

    fn set_time(&self, name: c_int, limit: Duration) -> io::Result<()> {
        let time = sys::timeval(limit);
        let mut value = [0; 16];
        value[..8].copy_from_slice(&time.tv_sec.to_ne_bytes());
        value[8..].copy_from_slice(&time.tv_usec.to_ne_bytes());
        sys::setsockopt(self.as_fd(), libc::SOL_SOCKET, name, &value)
    }

    /// The kernel doubles what it is given and RDS halves it again, so both sides count payload.
    fn set_buffer(&self, force: c_int, plain: c_int, bytes: usize) -> io::Result<()> {
        let value = c_int::try_from(bytes).unwrap_or(c_int::MAX / 2);
        self.set_int(libc::SOL_SOCKET, force, value)
            .or_else(|_| self.set_int(libc::SOL_SOCKET, plain, value))
    }

    fn buffer(&self, name: c_int) -> io::Result<usize> {
        let value = self.int(libc::SOL_SOCKET, name)?;
        Ok(usize::try_from(value).unwrap_or_default() / 2)
    }
}

fn first_byte<const N: usize>(byte: u8) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[0] = byte;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_numbers() {
        for number in -1..5 {
            let transport = Transport::from_number(number);
            assert_eq!(transport.map_or(-1, Transport::number), number);
        }
        assert_eq!(Transport::Tcp.to_string(), "tcp");
    }

    #[test]
    fn tos_is_in_the_first_byte() {
        assert_eq!(first_byte::<8>(9), [9, 0, 0, 0, 0, 0, 0, 0]);
    }
}
