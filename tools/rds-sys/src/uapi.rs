// SPDX-License-Identifier: GPL-2.0

//! Numbers from `include/uapi/linux/rds.h` that the `libc` crate lacks.

use std::ffi::{c_int, c_ulong};

/// Address family of RDS.
pub(crate) const AF_RDS: c_int = 21;
/// Level of the RDS socket options and control messages.
pub(crate) const SOL_RDS: c_int = 276;

/// Largest payload the kernel takes, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// The one port besides 0 that can not be bound: the kernel's own probes use it.
pub const RESERVED_PORT: u16 = 1;

/// Socket option: take back what was queued for one destination.
pub(crate) const RDS_CANCEL_SENT_TO: c_int = 1;
/// Socket option: report failed RDMA operations even if they did not ask for it.
pub(crate) const RDS_RECVERR: c_int = 5;
/// Socket option: report the end of congestion by control message.
pub(crate) const RDS_CONG_MONITOR: c_int = 6;
/// Socket option: the transport.
pub(crate) const SO_RDS_TRANSPORT: c_int = 8;

/// Control message: an RDMA operation ended.
pub(crate) const RDS_CMSG_RDMA_STATUS: c_int = 4;
/// Control message: ports became uncongested.
pub(crate) const RDS_CMSG_CONG_UPDATE: c_int = 5;
/// Control message: the peer's memory region.
pub(crate) const RDS_CMSG_RDMA_DEST: c_int = 2;
/// Control message: time spent on the way in.
pub(crate) const RDS_CMSG_RXPATH_LATENCY: c_int = 11;
/// Control message: name of a zerocopy send.
pub(crate) const RDS_CMSG_ZCOPY_COOKIE: c_int = 12;
/// Control message: names of the zerocopy sends that ended.
pub(crate) const RDS_CMSG_ZCOPY_COMPLETION: c_int = 13;

/// Sets the type of service of a bound socket.
pub(crate) const SIOCRDSSETTOS: c_ulong = 0x89E0;
/// Reads the type of service.
pub(crate) const SIOCRDSGETTOS: c_ulong = 0x89E1;
