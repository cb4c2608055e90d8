// SPDX-License-Identifier: GPL-2.0

//! Records of the `RDS_INFO` snapshots that `getsockopt` returns.
//!
//! Each record is written byte for byte as C writes it: integers unaligned, host order except where
//! a network-order type says otherwise. There is no padding, so no record can carry stray memory.
//! Records for IPv4 ("v4") exist only for connections and sockets with IPv4 addresses.
//!
//! C counterpart: `struct rds_info_*` in `include/uapi/linux/rds.h`.

use zerocopy::{
    big_endian,
    native_endian::{
        U32,
        U64, //
    }, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::addr::{
    Addr,
    Endpoint, //
};

pub use super::uapi::info as number;

/// Connection flag: somebody is transmitting (`RDS_INFO_CONNECTION_FLAG_SENDING`).
pub const CONN_SENDING: u8 = 0x01;
/// Connection flag: not up yet (`RDS_INFO_CONNECTION_FLAG_CONNECTING`).
pub const CONN_CONNECTING: u8 = 0x02;
/// Connection flag: up (`RDS_INFO_CONNECTION_FLAG_CONNECTED`).
pub const CONN_CONNECTED: u8 = 0x04;
/// Connection flag: dropped; known to rds-info but never set by mainline C.
pub const CONN_ERROR: u8 = 0x08;

/// Copies as much of `name` as leaves a zero byte at the end.
///
/// That byte matters: rds-info takes a set last byte of a transport name for flags of old kernels.
fn padded<const N: usize>(name: &str) -> [u8; N] {
    let mut out = [0; N];
    let room = N.saturating_sub(1);
    for (to, from) in out.iter_mut().take(room).zip(name.bytes()) {
        *to = from;
    }
    out
}

/// Derives what every record needs and asserts its size in bytes.
macro_rules! record {
    ($size:literal, $(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(
            FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, Default,
            PartialEq, Eq,
        )]
        pub struct $name { $($fields)* }

        const _: () = assert!(size_of::<$name>() == $size);
    };
}

record! { 40,
    /// An event counter (`struct rds_info_counter`).
    pub struct Counter {
        /// Name, padded with zeroes.
        pub name: [u8; 32],
        /// Sum over all processors.
        pub value: U64,
    }
}

impl Counter {
    /// Makes the record; of `name` at most 31 bytes are kept.
    pub fn new(name: &str, value: u64) -> Self {
        Self {
            name: padded(name),
            value: value.into(),
        }
    }
}

record! { 42,
    /// A connection between two IPv4 addresses (`struct rds_info_connection`).
    pub struct Connection {
        /// Sequence number of the next message sent.
        pub next_tx_seq: U64,
        /// Sequence number expected next.
        pub next_rx_seq: U64,
        /// Local address, network order.
        pub laddr: [u8; 4],
        /// Peer's address, network order.
        pub faddr: [u8; 4],
        /// Name of the transport, padded with zeroes.
        pub transport: [u8; 16],
        /// `CONN_*` bits.
        pub flags: u8,
        /// Type of service.
        pub tos: u8,
    }
}

record! { 65,
    /// A connection (`struct rds6_info_connection`).
    pub struct Connection6 {
        /// Sequence number of the next message sent.
        pub next_tx_seq: U64,
        /// Sequence number expected next.
        pub next_rx_seq: U64,
        /// Local address.
        pub laddr: Addr,
        /// Peer's address.
        pub faddr: Addr,
        /// Name of the transport, padded with zeroes.
        pub transport: [u8; 16],
        /// `CONN_*` bits.
        pub flags: u8,
    }
}

impl Connection6 {
    /// Makes the record for one path; `next_seq` is (next sent, next expected).
    pub fn new(laddr: Addr, faddr: Addr, next_seq: (u64, u64), transport: &str, flags: u8) -> Self {
        Self {
            next_tx_seq: next_seq.0.into(),
            next_rx_seq: next_seq.1.into(),
            laddr,
            faddr,
            transport: padded(transport),
            flags,
        }
    }

    /// The IPv4 record with type of service `tos`; `None` if an address is not IPv4.
    pub fn to_v4(&self, tos: u8) -> Option<Connection> {
        Some(Connection {
            next_tx_seq: self.next_tx_seq,
            next_rx_seq: self.next_rx_seq,
            laddr: self.laddr.v4()?,
            faddr: self.faddr.v4()?,
            transport: self.transport,
            flags: self.flags,
            tos,
        })
    }
}

record! { 80,
    /// A path of a connection. Not in C, whose lists have room for one path of each connection.
    pub struct Path {
        /// Sequence number of the next message sent.
        pub next_tx_seq: U64,
        /// Sequence number expected next.
        pub next_rx_seq: U64,
        /// Local address; IPv4 in mapped form.
        pub laddr: Addr,
        /// Peer's address.
        pub faddr: Addr,
        /// Name of the transport, padded with zeroes.
        pub transport: [u8; 16],
        /// Messages that wait for being sent, and for their acknowledgement.
        pub waiting: U32,
        /// How often what carried it was taken down.
        pub losses: U32,
        /// Type of service.
        pub tos: u8,
        /// Which path of the connection, from 0.
        pub index: u8,
        /// Paths that both ends use; 0 as long as that is unknown.
        pub paths: u8,
        /// A [`PathState`](super::state::PathState).
        pub state: u8,
        /// Zero.
        pub reserved: [u8; 4],
    }
}

impl Path {
    /// The name of a transport as the record has it.
    pub fn transport(name: &str) -> [u8; 16] {
        padded(name)
    }
}

record! { 26,
    /// A message in a queue, IPv4 (`struct rds_info_message`).
    pub struct Message {
        /// Sequence number.
        pub seq: U64,
        /// Payload bytes.
        pub len: U32,
        /// Local address, network order.
        pub laddr: [u8; 4],
        /// Peer's address, network order.
        pub faddr: [u8; 4],
        /// Local port.
        pub lport: big_endian::U16,
        /// Peer's port.
        pub fport: big_endian::U16,
        /// Zero.
        pub flags: u8,
        /// Type of service.
        pub tos: u8,
    }
}

record! { 50,
    /// A message in a queue (`struct rds6_info_message`).
    pub struct Message6 {
        /// Sequence number.
        pub seq: U64,
        /// Payload bytes.
        pub len: U32,
        /// Local address.
        pub laddr: Addr,
        /// Peer's address.
        pub faddr: Addr,
        /// Local port.
        pub lport: big_endian::U16,
        /// Peer's port.
        pub fport: big_endian::U16,
        /// Zero.
        pub flags: u8,
        /// Type of service.
        pub tos: u8,
    }
}

impl Message6 {
    /// Makes the record of message `seq` with `len` payload bytes between two endpoints.
    pub fn new(seq: u64, len: u32, local: &Endpoint, foreign: &Endpoint, tos: u8) -> Self {
        Self {
            seq: seq.into(),
            len: len.into(),
            laddr: local.addr,
            faddr: foreign.addr,
            lport: local.port.into(),
            fport: foreign.port.into(),
            flags: 0,
            tos,
        }
    }

    /// The IPv4 record; `None` if an address is not IPv4.
    pub fn to_v4(&self) -> Option<Message> {
        Some(Message {
            seq: self.seq,
            len: self.len,
            laddr: self.laddr.v4()?,
            faddr: self.faddr.v4()?,
            lport: self.lport,
            fport: self.fport,
            flags: self.flags,
            tos: self.tos,
        })
    }
}

record! { 28,
    /// A socket bound to an IPv4 address (`struct rds_info_socket`).
    pub struct Socket {
        /// Send limit in bytes: half of `sk_sndbuf`.
        pub sndbuf: U32,
        /// Address it is bound to, network order.
        pub bound_addr: [u8; 4],
        /// Address it is connected to, network order, or zero.
        pub connected_addr: [u8; 4],
        /// Port it is bound to.
        pub bound_port: big_endian::U16,
        /// Port it is connected to, or 0.
        pub connected_port: big_endian::U16,
        /// Receive limit in bytes: half of `sk_rcvbuf`.
        pub rcvbuf: U32,
        /// Inode number.
        pub inum: U64,
    }
}

record! { 52,
    /// A socket (`struct rds6_info_socket`).
    pub struct Socket6 {
        /// Send limit in bytes: half of `sk_sndbuf`.
        pub sndbuf: U32,
        /// Address it is bound to, or zero.
        pub bound_addr: Addr,
        /// Address it is connected to, or zero.
        pub connected_addr: Addr,
        /// Port it is bound to, or 0.
        pub bound_port: big_endian::U16,
        /// Port it is connected to, or 0.
        pub connected_port: big_endian::U16,
        /// Receive limit in bytes: half of `sk_rcvbuf`.
        pub rcvbuf: U32,
        /// Inode number.
        pub inum: U64,
    }
}

impl Socket6 {
    /// Makes the record; `bound` and `connected` are zero if there is none.
    pub fn new(
        bound: &Endpoint,
        connected: &Endpoint,
        sndbuf: u32,
        rcvbuf: u32,
        inum: u64,
    ) -> Self {
        Self {
            sndbuf: sndbuf.into(),
            bound_addr: bound.addr,
            connected_addr: connected.addr,
            bound_port: bound.port.into(),
            connected_port: connected.port.into(),
            rcvbuf: rcvbuf.into(),
            inum: inum.into(),
        }
    }

    /// The IPv4 record; `None` unless the socket is bound to an IPv4 address.
    ///
    /// An IPv6 peer shows as C shows it: the last four bytes of the address.
    pub fn to_v4(&self) -> Option<Socket> {
        Some(Socket {
            sndbuf: self.sndbuf,
            bound_addr: self.bound_addr.v4()?,
            connected_addr: self.connected_addr.0.last_chunk().copied()?,
            bound_port: self.bound_port,
            connected_port: self.connected_port,
            rcvbuf: self.rcvbuf,
            inum: self.inum,
        })
    }
}

record! { 41,
    /// A TCP connection between IPv4 addresses (`struct rds_info_tcp_socket`).
    pub struct TcpSocket {
        /// Local address, network order.
        pub local_addr: [u8; 4],
        /// Local TCP port.
        pub local_port: big_endian::U16,
        /// Peer's address, network order.
        pub peer_addr: [u8; 4],
        /// Peer's TCP port.
        pub peer_port: big_endian::U16,
        /// Header bytes missing from the message being received.
        pub hdr_rem: U64,
        /// Payload bytes missing from the message being received.
        pub data_rem: U64,
        /// TCP sequence number of the next byte written.
        pub last_sent_nxt: U32,
        /// TCP sequence number behind the last byte of the last message.
        pub last_expected_una: U32,
        /// Lowest unacknowledged TCP sequence number seen.
        pub last_seen_una: U32,
        /// Type of service.
        pub tos: u8,
    }
}

record! { 64,
    /// A TCP connection (`struct rds6_info_tcp_socket`).
    pub struct TcpSocket6 {
        /// Local address.
        pub local_addr: Addr,
        /// Local TCP port.
        pub local_port: big_endian::U16,
        /// Peer's address.
        pub peer_addr: Addr,
        /// Peer's TCP port.
        pub peer_port: big_endian::U16,
        /// Header bytes missing from the message being received.
        pub hdr_rem: U64,
        /// Payload bytes missing from the message being received.
        pub data_rem: U64,
        /// TCP sequence number of the next byte written.
        pub last_sent_nxt: U32,
        /// TCP sequence number behind the last byte of the last message.
        pub last_expected_una: U32,
        /// Lowest unacknowledged TCP sequence number seen.
        pub last_seen_una: U32,
    }
}

impl TcpSocket6 {
    /// The IPv4 record with type of service `tos`; `None` if an address is not IPv4.
    pub fn to_v4(&self, tos: u8) -> Option<TcpSocket> {
        Some(TcpSocket {
            local_addr: self.local_addr.v4()?,
            local_port: self.local_port,
            peer_addr: self.peer_addr.v4()?,
            peer_port: self.peer_port,
            hdr_rem: self.hdr_rem,
            data_rem: self.data_rem,
            last_sent_nxt: self.last_sent_nxt,
            last_expected_una: self.last_expected_una,
            last_seen_una: self.last_seen_una,
            tos,
        })
    }
}
