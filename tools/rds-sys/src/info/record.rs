// SPDX-License-Identifier: GPL-2.0

//! The records of the tables.
//!
//! Integers are in host order, addresses and ports in network order, and nothing is padded except in
//! the RDMA records. IPv6 records hold IPv4 addresses in mapped form; they are shown as IPv4 here.

use super::{Family, Raw, Record};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Raw<'_> {
    fn u8(self, offset: usize) -> u8 {
        u8::from_ne_bytes(self.bytes(offset))
    }

    fn u32(self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(offset))
    }

    fn u64(self, offset: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(offset))
    }

    fn port(self, offset: usize) -> u16 {
        u16::from_be_bytes(self.bytes(offset))
    }

    fn v4(self, offset: usize) -> IpAddr {
        Ipv4Addr::from(self.bytes::<4>(offset)).into()
    }

    fn v6(self, offset: usize) -> IpAddr {
        Ipv6Addr::from(self.bytes::<16>(offset)).to_canonical()
    }

    fn text<const N: usize>(self, offset: usize) -> String {
        let bytes = self.bytes::<N>(offset);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// A counter of the whole system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// How often it happened since the module was loaded.
    pub value: u64,
}

impl Record for Counter {
    fn parse(raw: Raw<'_>, _: Family) -> Self {
        Self {
            name: raw.text::<32>(0),
            value: raw.u64(32),
        }
    }
}

/// A connection between two addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// Name of the transport.
    pub transport: String,
    /// Type of service.
    pub tos: u8,
    /// Sequence number of the next message to send.
    pub next_tx: u64,
    /// Sequence number expected next.
    pub next_rx: u64,
    /// State, see the constants.
    pub flags: u8,
}

impl Connection {
    /// Somebody is transmitting right now.
    pub const SENDING: u8 = 1;
    /// Not connected yet, but trying.
    pub const CONNECTING: u8 = 2;
    /// Connected.
    pub const CONNECTED: u8 = 4;
    /// The connection failed and waits for the application to read about it.
    pub const ERROR: u8 = 8;

    /// The four flags as rds-info shows them.
    pub fn flag_letters(&self) -> String {
        [
            (Self::SENDING, 's'),
            (Self::CONNECTING, 'c'),
            (Self::CONNECTED, 'C'),
            (Self::ERROR, 'E'),
        ]
        .iter()
        .map(|(flag, letter)| if self.flags & flag != 0 { *letter } else { '-' })
        .collect()
    }
}

impl Record for Connection {
    fn parse(raw: Raw<'_>, family: Family) -> Self {
        let (local, remote, at) = match family {
            Family::V4 => (raw.v4(16), raw.v4(20), 24),
            Family::V6 => (raw.v6(16), raw.v6(32), 48),
        };
        Self {
            local,
            remote,
            transport: raw.text::<15>(at),
            tos: raw.u8(at + 17),
            next_tx: raw.u64(0),
            next_rx: raw.u64(8),
            // Ancient kernels had the flags in the last byte of the name, which is otherwise zero.
            flags: raw.u8(at + 16) | raw.u8(at + 15),
        }
    }
}

/// A path of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// Name of the transport.
    pub transport: String,
    /// Type of service.
    pub tos: u8,
    /// Which path of the connection, from 0.
    pub index: u8,
    /// Paths that both ends use; 0 as long as that is unknown.
    pub paths: u8,
    /// Its state, a word.
    pub state: &'static str,
    /// Sequence number of the next message to send.
    pub next_tx: u64,
    /// Sequence number expected next.
    pub next_rx: u64,
    /// Messages that wait for being sent or acknowledged.
    pub waiting: u32,
    /// How often what carried it was lost or closed.
    pub losses: u32,
}

impl Path {
    /// States by number.
    const STATES: [&'static str; 6] = [
        "down",
        "connecting",
        "disconnecting",
        "up",
        "resetting",
        "error",
    ];
}

impl Record for Path {
    fn parse(raw: Raw<'_>, _: Family) -> Self {
        let state = usize::from(raw.u8(75));
        Self {
            local: raw.v6(16),
            remote: raw.v6(32),
            transport: raw.text::<16>(48),
            tos: raw.u8(72),
            index: raw.u8(73),
            paths: raw.u8(74),
            state: Self::STATES.get(state).unwrap_or(&"unknown"),
            next_tx: raw.u64(0),
            next_rx: raw.u64(8),
            waiting: raw.u32(64),
            losses: raw.u32(68),
        }
    }
}

/// A message in one of the queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Our address.
    pub local: IpAddr,
    /// Our port.
    pub local_port: u16,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's port.
    pub remote_port: u16,
    /// Type of service.
    pub tos: u8,
    /// Sequence number on the connection.
    pub sequence: u64,
    /// Payload bytes.
    pub bytes: u32,
}

impl Record for Message {
    fn parse(raw: Raw<'_>, family: Family) -> Self {
        let (local, remote, at) = match family {
            Family::V4 => (raw.v4(12), raw.v4(16), 20),
            Family::V6 => (raw.v6(12), raw.v6(28), 44),
        };
        Self {
            local,
            local_port: raw.port(at),
            remote,
            remote_port: raw.port(at + 2),
            tos: raw.u8(at + 5),
            sequence: raw.u64(0),
            bytes: raw.u32(8),
        }
    }
}

/// A socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SocketInfo {
    /// Address it is bound to; unspecified if it is not.
    pub bound: IpAddr,
    /// Port it is bound to.
    pub bound_port: u16,
    /// Address it is connected to; unspecified if it is not.
    pub connected: IpAddr,
    /// Port it is connected to.
    pub connected_port: u16,
    /// Payload bytes it may have queued for sending.
    pub send_buffer: u32,
    /// Unread payload bytes above which it is congested.
    pub recv_buffer: u32,
    /// Its inode number, as in `/proc/*/fd`.
    pub inode: u64,
}

impl Record for SocketInfo {
    fn parse(raw: Raw<'_>, family: Family) -> Self {
        let (bound, connected, at) = match family {
            Family::V4 => (raw.v4(4), raw.v4(8), 12),
            Family::V6 => (raw.v6(4), raw.v6(20), 36),
        };
        Self {
            bound,
            bound_port: raw.port(at),
            connected,
            connected_port: raw.port(at + 2),
            send_buffer: raw.u32(0),
            recv_buffer: raw.u32(at + 4),
            inode: raw.u64(at + 8),
        }
    }
}

/// A TCP connection that carries RDS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TcpSocket {
    /// Our address.
    pub local: IpAddr,
    /// Our port.
    pub local_port: u16,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's port.
    pub remote_port: u16,
    /// Bytes of the header being received that are still missing.
    pub header_remaining: u64,
    /// Bytes of the payload being received that are still missing.
    pub data_remaining: u64,
    /// TCP sequence number of the first byte of the message sent last.
    pub last_sent_nxt: u32,
    /// TCP sequence number after the message sent last.
    pub last_expected_una: u32,
    /// TCP sequence number the peer has acknowledged.
    pub last_seen_una: u32,
}

impl Record for TcpSocket {
    fn parse(raw: Raw<'_>, family: Family) -> Self {
        let (local, local_port, remote, remote_port, at) = match family {
            Family::V4 => (raw.v4(0), raw.port(4), raw.v4(6), raw.port(10), 12),
            Family::V6 => (raw.v6(0), raw.port(16), raw.v6(18), raw.port(34), 36),
        };
        Self {
            local,
            local_port,
            remote,
            remote_port,
            header_remaining: raw.u64(at),
            data_remaining: raw.u64(at + 8),
            last_sent_nxt: raw.u32(at + 16),
            last_expected_una: raw.u32(at + 20),
            last_seen_una: raw.u32(at + 24),
        }
    }
}

/// An RDMA connection that carries RDS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IbConnection {
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// Our device's identifier.
    pub local_gid: Ipv6Addr,
    /// The peer's device's identifier.
    pub remote_gid: Ipv6Addr,
    /// Type of service.
    pub tos: u8,
    /// Service level.
    pub sl: u8,
    /// Length of the send ring.
    pub max_send_wr: u32,
    /// Length of the receive ring.
    pub max_recv_wr: u32,
    /// Scatter entries of one send.
    pub max_send_sge: u32,
    /// Memory regions in the pool.
    pub rdma_mr_max: u32,
    /// Pages of one memory region.
    pub rdma_mr_size: u32,
    /// Memory in the receive caches, in KiB.
    pub cache_allocs: u32,
}

impl Record for IbConnection {
    fn parse(raw: Raw<'_>, family: Family) -> Self {
        let (local, remote, gids) = match family {
            Family::V4 => (raw.v4(0), raw.v4(4), 8),
            Family::V6 => (raw.v6(0), raw.v6(16), 32),
        };
        let at = gids + 32;
        Self {
            local,
            remote,
            local_gid: raw.bytes::<16>(gids).into(),
            remote_gid: raw.bytes::<16>(gids + 16).into(),
            tos: raw.u8(at + 20),
            sl: raw.u8(at + 21),
            max_send_wr: raw.u32(at),
            max_recv_wr: raw.u32(at + 4),
            max_send_sge: raw.u32(at + 8),
            rdma_mr_max: raw.u32(at + 12),
            rdma_mr_size: raw.u32(at + 16),
            cache_allocs: raw.u32(at + 24),
        }
    }
}

#[cfg(test)]
mod tests;
