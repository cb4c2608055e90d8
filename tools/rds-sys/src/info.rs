// SPDX-License-Identifier: GPL-2.0

//! `RDS_INFO` snapshots: what the kernel knows about its sockets, connections and queues.
//!
//! A snapshot is a table of equal records that `getsockopt` copies out. The call returns the size of
//! one record, which may grow at the end with the kernel version: a parser steps by the size the kernel
//! says and reads the fields it knows. A shorter record of an older kernel reads as zero where it ends.

mod record;

use crate::{sys, uapi, Socket};
use std::io;
use std::os::fd::AsFd;

pub use record::{Connection, Counter, IbConnection, Message, Path, SocketInfo, TcpSocket};

/// A table of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Counters of the whole system.
    Counters,
    /// Connections of this network namespace.
    Connections,
    /// Messages that wait for being transmitted.
    SendQueue,
    /// Messages that wait for their acknowledgement.
    RetransQueue,
    /// Messages that wait for being read.
    RecvQueue,
    /// Sockets.
    Sockets,
    /// TCP connections that carry RDS.
    TcpSockets,
    /// RDMA connections that carry RDS.
    IbConnections,
    /// Paths of connections; only Weft has it.
    Paths,
}

/// Which addresses a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The tables every kernel has: IPv4 only.
    V4,
    /// The newer tables: IPv6 and IPv4.
    V6,
}

impl Table {
    /// The socket option that takes the snapshot.
    pub fn option(self, family: Family) -> i32 {
        let (v4, v6) = match self {
            Self::Counters => (10000, 10000),
            Self::Connections => (10001, 10011),
            Self::SendQueue => (10003, 10012),
            Self::RetransQueue => (10004, 10013),
            Self::RecvQueue => (10005, 10014),
            Self::Sockets => (10006, 10015),
            Self::TcpSockets => (10007, 10016),
            Self::IbConnections => (10008, 10017),
            Self::Paths => (10100, 10100),
        };
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }
}

/// A record of a table.
pub trait Record: Sized {
    /// Reads one record laid out for `family`.
    fn parse(raw: Raw<'_>, family: Family) -> Self;
}

/// The bytes of one record; reading beyond its end gives zero.
#[derive(Clone, Copy)]
pub struct Raw<'a>(&'a [u8]);

impl Raw<'_> {
    fn bytes<const N: usize>(self, offset: usize) -> [u8; N] {
        let mut out = [0; N];
        let have = self.0.get(offset..).unwrap_or_default();
        let len = have.len().min(N);
        out[..len].copy_from_slice(&have[..len]);
        out
    }
}

/// A copy of a table.
pub struct Snapshot {
    record_size: usize,
    data: Vec<u8>,
}

impl Snapshot {
    /// Takes a snapshot of a table by its option number. Any RDS socket will do.
    ///
    /// The table may grow between asking for its size and copying it, therefore the loop, and some
    /// room is added so that a busy system does not keep it running.
    pub fn take(socket: &Socket, option: i32) -> io::Result<Self> {
        let mut data = Vec::new();
        loop {
            let (result, len) = sys::getsockopt(socket.as_fd(), uapi::SOL_RDS, option, &mut data);
            match result {
                Ok(record_size) => {
                    data.truncate(len);
                    let record_size = usize::try_from(record_size).unwrap_or_default();
                    return Ok(Self { record_size, data });
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) && len > data.len() => {
                    data = vec![0; len + len / 8];
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The records one after the other; an incomplete one at the end is left out.
    pub fn records(&self) -> impl Iterator<Item = Raw<'_>> {
        self.data.chunks_exact(self.record_size.max(1)).map(Raw)
    }
}

/// Takes a snapshot of `table` and parses it.
pub fn read<R: Record>(socket: &Socket, table: Table, family: Family) -> io::Result<Vec<R>> {
    let snapshot = Snapshot::take(socket, table.option(family))?;
    Ok(snapshot
        .records()
        .map(|raw| R::parse(raw, family))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_by_the_size_the_kernel_says() {
        let snapshot = Snapshot {
            record_size: 3,
            data: vec![1, 2, 3, 4, 5, 6, 7],
        };
        let firsts: Vec<[u8; 2]> = snapshot.records().map(|raw| raw.bytes(0)).collect();
        assert_eq!(firsts, [[1, 2], [4, 5]]);
    }

    #[test]
    fn empty_tables_have_no_records() {
        assert_eq!(
            Snapshot {
                record_size: 0,
                data: vec![]
            }
            .records()
            .count(),
            0
        );
        assert_eq!(
            Snapshot {
                record_size: 42,
                data: vec![]
            }
            .records()
            .count(),
            0
        );
    }

    #[test]
    fn short_records_read_as_zero() {
        let raw = Raw(&[1, 2, 3]);
        assert_eq!(raw.bytes::<4>(1), [2, 3, 0, 0]);
        assert_eq!(raw.bytes::<4>(9), [0; 4]);
    }
}
