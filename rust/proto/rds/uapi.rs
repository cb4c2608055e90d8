// SPDX-License-Identifier: GPL-2.0

//! Numbers that user programs use.
//!
//! C counterpart: `include/uapi/linux/rds.h`; the general ones as in the headers named beside them.

/// Address family of RDS sockets (`AF_RDS`, `PF_RDS`).
pub const AF_RDS: u16 = 21;
/// Address family of IPv4 (`AF_INET`).
pub const AF_INET: u16 = 2;
/// Address family of IPv6 (`AF_INET6`).
pub const AF_INET6: u16 = 10;

/// Level of RDS socket options and control messages (`SOL_RDS`).
pub const SOL_RDS: i32 = 276;
/// Level of general socket options and control messages (`SOL_SOCKET`).
pub const SOL_SOCKET: i32 = 1;

/// Protocol number of TCP (`IPPROTO_TCP`).
pub const IPPROTO_TCP: i32 = 6;
/// Protocol number of IPv6, also the level of its options (`IPPROTO_IPV6`).
pub const IPPROTO_IPV6: i32 = 41;

/// Socket options at level [`SOL_RDS`].
pub mod option {
    /// Cancel what is queued to an address; takes a socket address (`RDS_CANCEL_SENT_TO`).
    pub const CANCEL_SENT_TO: i32 = 1;
    /// Register memory (`RDS_GET_MR`).
    pub const GET_MR: i32 = 2;
    /// Free registered memory (`RDS_FREE_MR`).
    pub const FREE_MR: i32 = 3;
    /// Report failed RDMA operations even if not asked (`RDS_RECVERR`).
    pub const RECVERR: i32 = 5;
    /// Report ports that are no longer congested (`RDS_CONG_MONITOR`); a boolean.
    pub const CONG_MONITOR: i32 = 6;
    /// Register memory for a destination (`RDS_GET_MR_FOR_DEST`).
    pub const GET_MR_FOR_DEST: i32 = 7;
    /// Choose the transport before binding (`SO_RDS_TRANSPORT`).
    pub const TRANSPORT: i32 = 8;
    /// [`TRANSPORT`] in Oracle's kernels, where 8 with 12 bytes resets a connection.
    pub const TRANSPORT_UEK: i32 = 9;
    /// Trace the way of received messages (`SO_RDS_MSG_RXPATH_LATENCY`).
    pub const MSG_RXPATH_LATENCY: i32 = 10;
    /// Receive timestamps, `struct timeval` of the machine (`SO_TIMESTAMP_OLD`).
    pub const TIMESTAMP_OLD: i32 = 29;
    /// Receive timestamps, 64-bit (`SO_TIMESTAMP_NEW`).
    pub const TIMESTAMP_NEW: i32 = 63;
}

/// `getsockopt` numbers of the snapshots, at level [`SOL_RDS`].
pub mod info {
    /// First number of the range.
    pub const FIRST: i32 = 10000;
    /// [`Counter`](crate::rds::info::Counter)s.
    pub const COUNTERS: i32 = 10000;
    /// [`Connection`](crate::rds::info::Connection)s.
    pub const CONNECTIONS: i32 = 10001;
    /// Queued [`Message`](crate::rds::info::Message)s.
    pub const SEND_MESSAGES: i32 = 10003;
    /// Unacknowledged [`Message`](crate::rds::info::Message)s.
    pub const RETRANS_MESSAGES: i32 = 10004;
    /// Received [`Message`](crate::rds::info::Message)s not yet read.
    pub const RECV_MESSAGES: i32 = 10005;
    /// [`Socket`](crate::rds::info::Socket)s.
    pub const SOCKETS: i32 = 10006;
    /// [`TcpSocket`](crate::rds::info::TcpSocket)s.
    pub const TCP_SOCKETS: i32 = 10007;
    /// RDMA connections.
    pub const IB_CONNECTIONS: i32 = 10008;
    /// [`Connection6`](crate::rds::info::Connection6)s.
    pub const CONNECTIONS6: i32 = 10011;
    /// Queued [`Message6`](crate::rds::info::Message6)s.
    pub const SEND_MESSAGES6: i32 = 10012;
    /// Unacknowledged [`Message6`](crate::rds::info::Message6)s.
    pub const RETRANS_MESSAGES6: i32 = 10013;
    /// Received [`Message6`](crate::rds::info::Message6)s not yet read.
    pub const RECV_MESSAGES6: i32 = 10014;
    /// [`Socket6`](crate::rds::info::Socket6)s.
    pub const SOCKETS6: i32 = 10015;
    /// [`TcpSocket6`](crate::rds::info::TcpSocket6)s.
    pub const TCP_SOCKETS6: i32 = 10016;
    /// RDMA connections, IPv6 form.
    pub const IB_CONNECTIONS6: i32 = 10017;
    /// [`Path`](crate::rds::info::Path)s, of both families. C has no such list.
    pub const PATHS: i32 = 10100;
    /// Last number of the range.
    pub const LAST: i32 = PATHS;
}

/// Control messages at level [`SOL_RDS`].
pub mod cmsg {
    /// RDMA operation to run before the message (`RDS_CMSG_RDMA_ARGS`).
    pub const RDMA_ARGS: i32 = 1;
    /// Memory offered to the peer; received: by the peer (`RDS_CMSG_RDMA_DEST`).
    pub const RDMA_DEST: i32 = 2;
    /// Memory to register and offer (`RDS_CMSG_RDMA_MAP`).
    pub const RDMA_MAP: i32 = 3;
    /// Received: outcome of an RDMA operation (`RDS_CMSG_RDMA_STATUS`).
    pub const RDMA_STATUS: i32 = 4;
    /// Received: mask of ports no longer congested (`RDS_CMSG_CONG_UPDATE`).
    pub const CONG_UPDATE: i32 = 5;
    /// Atomic fetch and add (`RDS_CMSG_ATOMIC_FADD`).
    pub const ATOMIC_FADD: i32 = 6;
    /// Atomic compare and swap (`RDS_CMSG_ATOMIC_CSWP`).
    pub const ATOMIC_CSWP: i32 = 7;
    /// Atomic fetch and add with mask (`RDS_CMSG_MASKED_ATOMIC_FADD`).
    pub const MASKED_ATOMIC_FADD: i32 = 8;
    /// Atomic compare and swap with masks (`RDS_CMSG_MASKED_ATOMIC_CSWP`).
    pub const MASKED_ATOMIC_CSWP: i32 = 9;
    /// Completion for a plain send; Oracle's kernels only (`RDS_CMSG_ASYNC_SEND`).
    pub const ASYNC_SEND: i32 = 10;
    /// Received: latency trace (`RDS_CMSG_RXPATH_LATENCY`).
    pub const RXPATH_LATENCY: i32 = 11;
    /// Cookie of a zerocopy send (`RDS_CMSG_ZCOPY_COOKIE`).
    pub const ZCOPY_COOKIE: i32 = 12;
    /// Received: cookies of completed zerocopy sends (`RDS_CMSG_ZCOPY_COMPLETION`).
    pub const ZCOPY_COMPLETION: i32 = 13;
}

/// Ioctls of an RDS socket.
pub mod ioctl {
    /// Set the type of service; reads one byte (`SIOCRDSSETTOS`).
    pub const SET_TOS: u32 = 0x89e0;
    /// Get the type of service; writes one byte (`SIOCRDSGETTOS`).
    pub const GET_TOS: u32 = 0x89e1;
    /// Switch netfilter hooks on; Oracle's kernels only (`SIOCRDSENABLENETFILTER`).
    pub const ENABLE_NETFILTER: u32 = 0x89e2;
}

/// Transport numbers of [`option::TRANSPORT`].
pub mod transport {
    /// RDMA (`RDS_TRANS_IB`).
    pub const IB: i32 = 0;
    /// Unused; iWARP once (`RDS_TRANS_GAP`).
    pub const GAP: i32 = 1;
    /// TCP (`RDS_TRANS_TCP`).
    pub const TCP: i32 = 2;
    /// Within the host; can be read but not chosen (`RDS_TRANS_LOOP`).
    pub const LOOP: i32 = 3;
    /// Not chosen yet (`RDS_TRANS_NONE`).
    pub const NONE: i32 = -1;
}

/// Outcomes of an RDMA operation in [`cmsg::RDMA_STATUS`].
pub mod status {
    /// Done (`RDS_RDMA_SUCCESS`).
    pub const SUCCESS: i32 = 0;
    /// The peer's memory did not allow it (`RDS_RDMA_REMOTE_ERROR`).
    pub const REMOTE_ERROR: i32 = 1;
    /// Cancelled by the sender (`RDS_RDMA_CANCELED`).
    pub const CANCELED: i32 = 2;
    /// The connection broke (`RDS_RDMA_DROPPED`).
    pub const DROPPED: i32 = 3;
    /// Anything else (`RDS_RDMA_OTHER_ERROR`).
    pub const OTHER_ERROR: i32 = 4;
}

/// Bits in the flags of RDMA arguments; unknown ones are ignored.
pub mod rdma {
    /// Write to the peer (`RDS_RDMA_READWRITE`).
    pub const READWRITE: u64 = 0x01;
    /// The message must not overtake the operation (`RDS_RDMA_FENCE`).
    pub const FENCE: u64 = 0x02;
    /// Invalidate at once when freed (`RDS_RDMA_INVALIDATE`).
    pub const INVALIDATE: u64 = 0x04;
    /// Free after the peer has used it once (`RDS_RDMA_USE_ONCE`).
    pub const USE_ONCE: u64 = 0x08;
    /// No effect (`RDS_RDMA_DONTWAIT`).
    pub const DONTWAIT: u64 = 0x10;
    /// Report the outcome (`RDS_RDMA_NOTIFY_ME`).
    pub const NOTIFY_ME: u64 = 0x20;
    /// Send no message after the operation (`RDS_RDMA_SILENT`).
    pub const SILENT: u64 = 0x40;
}

/// Most trace positions of [`option::MSG_RXPATH_LATENCY`] (`RDS_MSG_RX_DGRAM_TRACE_MAX`).
pub const RX_TRACE_MAX: usize = 3;

/// Most cookies of one [`cmsg::ZCOPY_COMPLETION`] (`RDS_MAX_ZCOOKIES`).
pub const ZCOPY_COOKIES_MAX: usize = 8;
